//! The common trend: the lagged mean of the other members of an agent's group.
//!
//! In: a panel and the group of each agent. Out: one regressor per step and series. News that reaches all agents moves their
//! beliefs together without any influence between them; a network whose forecasts are still better than each agent's own
//! past after controlling for the trend explains more than that.

use crate::Panel;

/// Mean deviation of the other members of each agent's group from their own means, one step before.
#[derive(Debug)]
pub(crate) struct CommonTrend {
    /// T × D.
    values: Vec<f64>,
    width: usize,
    /// The group of each agent, 0 to `count`.
    pub(crate) groups: Vec<usize>,
    pub(crate) count: usize,
}

impl CommonTrend {
    /// The trend of a whole panel; the agents' own means are those of the first steps of each episode, so many as `seen`. At
    /// the first step of an episode there is none.
    pub(crate) fn from_panel(panel: &Panel, seen: &[usize], groups: &[usize]) -> Self {
        let (agents, size) = (panel.agents(), panel.width());
        let count = groups.iter().max().map_or(0, |group| group + 1);
        let episodes = panel.episodes();
        let mut usual = vec![(0.0, 0.0); size * episodes.level_count()];
        for (number, range) in episodes.ranges().enumerate() {
            for step in range.start..range.start + seen[number] {
                for cell in (0..size).filter(|cell| panel.posts(step, cell % agents) > 0) {
                    let mean = &mut usual[episodes.level(number) * size + cell];
                    mean.0 += panel.cells()[step * size + cell];
                    mean.1 += 1.0;
                }
            }
        }
        let usual: Vec<f64> = usual.iter().map(|(sum, count)| sum / f64::max(*count, 1.0)).collect();
        let mut values = vec![0.0; panel.steps() * size];
        for step in (1..panel.steps()).filter(|step| !episodes.begins(*step)) {
            let usual = &usual[episodes.level(episodes.at(step)) * size..];
            let posts = |agent: usize| f64::from(panel.posts(step - 1, agent));
            let said = |cell: usize| match panel.posts(step - 1, cell % agents) {
                0 => 0.0,
                posts => f64::from(posts) * (panel.cells()[(step - 1) * size + cell] - usual[cell]),
            };
            for ratio in 0..panel.ratios() {
                let mut sums = vec![(0.0, 0.0); count];
                for agent in 0..agents {
                    sums[groups[agent]].0 += said(ratio * agents + agent);
                    sums[groups[agent]].1 += posts(agent);
                }
                for agent in 0..agents {
                    let (sum, weight) = sums[groups[agent]];
                    let (others, left) = (sum - said(ratio * agents + agent), weight - posts(agent));
                    if left > 0.0 {
                        values[step * size + ratio * agents + agent] = others / left;
                    }
                }
            }
        }
        CommonTrend { values, width: size, groups: groups.to_vec(), count }
    }

    /// D numbers: the trend of each series at a step.
    pub(crate) fn at(&self, step: usize) -> &[f64] {
        &self.values[step * self.width..(step + 1) * self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roster;

    #[test]
    fn the_others_of_the_group_a_step_before() {
        // Agents 0 and 1 are of one group, 2 of another; usual values are 1, 2 and 5.
        let cells = vec![0.0, 2.0, 5.0, 2.0, 2.0, 5.0, 1.0, 2.0, 5.0];
        let panel = Panel::complete(Roster::numbered(3, 2).unwrap(), cells).unwrap();
        let trend = CommonTrend::from_panel(&panel, &[3], &[0, 0, 1]);
        assert_eq!(trend.at(0), [0.0; 3], "nothing was said before the first step");
        assert_eq!(trend.at(1), [0.0, -1.0, 0.0], "agent 2 has no other member in its group");
        assert_eq!(trend.at(2), [0.0, 1.0, 0.0]);
        assert_eq!(trend.count, 2);
    }

    #[test]
    fn no_trend_leads_into_an_episode() {
        let cells = vec![0.0, 2.0, 2.0, 2.0, 1.0, 5.0, 3.0, 5.0];
        let panel = Panel::complete(Roster::numbered(2, 2).unwrap(), cells).unwrap();
        let panel = panel.in_episodes(vec![("a".into(), 2), ("b".into(), 2)]).unwrap();
        // The usual values of two short episodes are common to both: 1.5 and 3.5.
        let trend = CommonTrend::from_panel(&panel, &[2, 2], &[0, 0]);
        assert_eq!((trend.at(1), trend.at(2), trend.at(3)), (&[-1.5, -1.5][..], &[0.0, 0.0][..], &[1.5, -0.5][..]));
    }
}
