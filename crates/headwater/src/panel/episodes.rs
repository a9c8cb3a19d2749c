//! Episodes: several conversations of the same agents over one network.

use super::{Panel, Times};
use crate::{Error, Roster};
use std::collections::HashMap;
use std::ops::Range;

/// Steps that every episode must have for levels, evidence and held-out steps of its own; with fewer, a few posts would
/// determine them.
const LONG: usize = 10;

/// The episodes of a panel: several conversations (topics, questions, periods) of the same agents over one network. Time
/// starts anew in each, and nothing passes from one to the next. Most panels have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episodes {
    /// The first step of each, and one past the last step of all.
    borders: Vec<usize>,
    /// None for one episode without a name.
    names: Option<Vec<String>>,
    /// Whether each is long enough for levels of its own; parts of a panel keep what the whole decided.
    own_levels: bool,
}

impl Episodes {
    /// One episode without a name.
    pub(super) fn single(steps: usize) -> Self {
        Episodes { borders: vec![0, steps], names: None, own_levels: false }
    }

    /// Episodes with these names and numbers of steps.
    ///
    /// # Errors
    /// [`Error::DuplicateName`], and [`Error::Episode`] for no name, or a single step where there are several episodes.
    pub(super) fn new(episodes: Vec<(String, usize)>) -> Result<Self, Error> {
        let several = episodes.len() > 1;
        let mut borders = vec![0];
        let mut names: Vec<String> = Vec::with_capacity(episodes.len());
        for (name, steps) in episodes {
            let wrong = |problem: &str| Err(Error::Episode { episode: name.clone(), problem: problem.to_owned() });
            if name.is_empty() {
                return wrong("the name is empty; every episode needs one");
            }
            if steps == 0 || (several && steps < 2) {
                return wrong(
                    "it has a single time step, so nothing can be heard in it; leave it out, or add later steps",
                );
            }
            borders.push(borders[borders.len() - 1] + steps);
            names.push(name);
        }
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::DuplicateName { kind: "episode", name: pair[0].clone() });
        }
        let own_levels = several && borders.windows(2).all(|border| border[1] - border[0] >= LONG);
        Ok(Episodes { borders, names: Some(names), own_levels })
    }

    /// Parts of episodes: for each its number here and its number of steps, which is not zero.
    fn parts(&self, parts: &[(usize, usize)]) -> Self {
        let mut borders = vec![0];
        parts.iter().for_each(|(_, steps)| borders.push(borders[borders.len() - 1] + steps));
        let names = self.names.as_ref().map(|names| parts.iter().map(|(number, _)| names[*number].clone()).collect());
        Episodes { borders, names, own_levels: self.own_levels }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.borders.len() - 1
    }

    /// Whether there is only one.
    pub fn is_single(&self) -> bool {
        self.count() == 1
    }

    /// The steps of an episode.
    pub fn range(&self, number: usize) -> Range<usize> {
        self.borders[number]..self.borders[number + 1]
    }

    /// The steps of each episode, in order.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        self.borders.windows(2).map(|border| border[0]..border[1])
    }

    /// The number of the episode of a step.
    pub fn at(&self, step: usize) -> usize {
        self.borders.partition_point(|border| *border <= step) - 1
    }

    /// Whether an episode begins with this step: no transition leads into it.
    pub fn begins(&self, step: usize) -> bool {
        self.borders[..self.count()].binary_search(&step).is_ok()
    }

    /// Their names; none for one episode without a name.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// The name of an episode, or its number from 1 on.
    pub fn label(&self, number: usize) -> String {
        self.names.as_ref().map_or_else(|| (number + 1).to_string(), |names| names[number].clone())
    }

    /// Transitions from a step to the next within an episode.
    pub fn transitions(&self) -> usize {
        self.borders[self.count()] - self.count()
    }

    /// Whether each episode has levels, evidence and held-out steps of its own: all of several are at least ten steps long.
    /// Otherwise those are common to all.
    pub fn have_own_levels(&self) -> bool {
        self.own_levels
    }

    /// Number of levels of an agent: one for each episode, or one for all.
    pub(crate) fn level_count(&self) -> usize {
        if self.own_levels { self.count() } else { 1 }
    }

    /// Which level belongs to an episode.
    pub(crate) fn level(&self, episode: usize) -> usize {
        if self.own_levels { episode } else { 0 }
    }
}

/// What of each episode a fit may see, and the steps whose forecasts are scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldOutSteps {
    /// Steps seen of each episode, from its first.
    pub(crate) seen: Vec<usize>,
    /// The steps scored, in order: each follows another one of its episode.
    pub(crate) scored: Vec<usize>,
}

impl Panel {
    /// A panel of several episodes, each a panel of its own with its name: the same hypotheses in each, agents by name. An
    /// agent that is missing in an episode is silent throughout it. Agents keep the order of first appearance.
    ///
    /// ```
    /// use headwater::{Panel, Roster};
    /// let episode = |agents: [&str; 2], cells: [f64; 4]| {
    ///     Panel::complete(Roster::new(agents, ["yes", "no"]).unwrap(), cells.to_vec()).unwrap()
    /// };
    /// let panel = Panel::from_episodes(&[
    ///     ("tax".to_owned(), episode(["ann", "bob"], [1.0, 2.0, 3.0, 4.0])),
    ///     ("war".to_owned(), episode(["bob", "cem"], [5.0, 6.0, 7.0, 8.0])),
    /// ])?;
    /// assert_eq!((panel.steps(), panel.agents(), panel.episodes().count()), (4, 3, 2));
    /// assert_eq!((panel.posts(2, 0), panel.frame(2)[(1, 0)]), (0, 5.0));
    /// # Ok::<(), headwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Episode`] and [`Error::DuplicateName`] for names and lengths of episodes, [`Error::Shape`] where hypotheses or
    /// units of time differ.
    pub fn from_episodes(episodes: &[(String, Panel)]) -> Result<Self, Error> {
        let Some((_, first)) = episodes.first() else { return Err(Error::NotReady { seen: 0, needed: 2 }) };
        let (hypotheses, ratios) = (first.roster.hypotheses().to_vec(), first.ratios());
        let lengths = Episodes::new(episodes.iter().map(|(name, panel)| (name.clone(), panel.steps())).collect())?;
        let mut agents: Vec<String> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for (_, panel) in episodes {
            if panel.roster.hypotheses() != hypotheses {
                return Err(Error::Shape {
                    what: "hypotheses of an episode",
                    met: panel.roster.hypotheses().join(", "),
                    wanted: hypotheses.join(", "),
                });
            }
            for name in panel.roster.agents() {
                if !places.contains_key(name) {
                    places.insert(name.clone(), agents.len());
                    agents.push(name.clone());
                }
            }
        }
        let (roster, width) = (Roster::new(agents, hypotheses)?, places.len());
        let steps: usize = episodes.iter().map(|(_, panel)| panel.steps()).sum();
        let (mut cells, mut posts) = (vec![0.0; steps * width * ratios], vec![0; steps * width]);
        let mut times: Option<Times> = None;
        for ((_, panel), range) in episodes.iter().zip(lengths.ranges()) {
            let place: Vec<usize> = panel.roster.agents().iter().map(|name| places[name]).collect();
            for (step, to) in range.enumerate() {
                for (agent, &place) in place.iter().enumerate() {
                    posts[to * width + place] = panel.posts(step, agent);
                    for ratio in 0..ratios {
                        cells[(to * ratios + ratio) * width + place] =
                            panel.cells()[(step * ratios + ratio) * panel.agents() + agent];
                    }
                }
            }
            times = Some(match times {
                None => panel.times.clone(),
                Some(before) => before.followed_by(&panel.times)?,
            });
        }
        let times = times.unwrap_or(Times::Steps(Vec::new()));
        Panel::new(roster, times, cells, Some(posts))?.with_episodes(lengths)
    }

    /// The same frames in episodes of these names and numbers of steps, which follow each other.
    ///
    /// # Errors
    /// [`Error::Shape`] where the numbers do not add up to the steps, otherwise as [`Panel::from_episodes`].
    pub fn in_episodes(self, episodes: Vec<(String, usize)>) -> Result<Self, Error> {
        let episodes = Episodes::new(episodes)?;
        self.with_episodes(episodes)
    }

    fn with_episodes(mut self, episodes: Episodes) -> Result<Self, Error> {
        let steps = episodes.borders[episodes.count()];
        if steps != self.steps() {
            return Err(Error::Shape {
                what: "steps of all episodes",
                met: steps.to_string(),
                wanted: self.steps().to_string(),
            });
        }
        self.episodes = episodes;
        Ok(self)
    }

    /// The same frames in the episodes of another panel of as many steps.
    pub(crate) fn with_episodes_of(self, other: &Panel) -> Result<Self, Error> {
        self.with_episodes(other.episodes.clone())
    }

    /// The episodes; one for most panels.
    pub fn episodes(&self) -> &Episodes {
        &self.episodes
    }

    /// A panel for each episode, with all agents: those that are absent from it are silent throughout.
    pub fn by_episode(&self) -> Vec<Panel> {
        (0..self.episodes.count())
            .map(|number| {
                self.part(
                    &[self.episodes.range(number)],
                    self.episodes.parts(&[(number, self.episodes.range(number).len())]),
                )
            })
            .collect()
    }

    /// Who is absent from an episode: agents and the number of the episode, by episode.
    pub fn absences(&self) -> Vec<(usize, usize)> {
        let mut absent = Vec::new();
        if self.is_complete() {
            return absent;
        }
        for (number, range) in self.episodes.ranges().enumerate() {
            let silent = |agent: &usize| range.clone().all(|step| self.posts(step, *agent) == 0);
            absent.extend((0..self.agents()).filter(silent).map(|agent| (agent, number)));
        }
        absent
    }

    /// An error where an agent is absent from an episode: for learners that take no silence.
    pub(crate) fn check_presence(&self) -> Result<(), Error> {
        let absences = self.absences();
        let Some(&(_, episode)) = absences.first() else { return Ok(()) };
        let agents: Vec<usize> =
            absences.iter().filter(|(_, other)| *other == episode).map(|(agent, _)| *agent).collect();
        Err(Error::Absent { agents: self.roster.list(&agents), episode: self.episodes.label(episode) })
    }

    /// The first steps of each episode, so many of each; agents may be silent throughout.
    pub(crate) fn kept(&self, seen: &[usize]) -> Panel {
        let some = |(number, seen): (usize, &usize)| (*seen > 0).then_some((number, *seen));
        let parts: Vec<(usize, usize)> = seen.iter().enumerate().filter_map(some).collect();
        let ranges: Vec<Range<usize>> = parts
            .iter()
            .map(|(number, seen)| self.episodes.borders[*number]..self.episodes.borders[*number] + seen)
            .collect();
        self.part(&ranges, self.episodes.parts(&parts))
    }

    /// The episodes of a range of steps.
    pub(super) fn episodes_within(&self, steps: &Range<usize>) -> Episodes {
        let parts: Vec<(usize, usize)> = (self.episodes.ranges().enumerate())
            .map(|(number, range)| (number, range.end.min(steps.end).saturating_sub(range.start.max(steps.start))))
            .filter(|(_, steps)| *steps > 0)
            .collect();
        if parts.is_empty() { Episodes::single(0) } else { self.episodes.parts(&parts) }
    }

    /// Stretches of several episodes one after another: a whole one is an episode of its own, parts of one are one together.
    /// Stretches of a single episode make one.
    pub(super) fn episodes_joined(&self, stretches: &[Range<usize>]) -> Episodes {
        if self.episodes.is_single() {
            return Episodes::single(stretches.iter().map(ExactSizeIterator::len).sum());
        }
        let whole = |range: &Range<usize>| self.episodes.range(self.episodes.at(range.start)) == *range;
        let together = |one: &Range<usize>, next: &Range<usize>| {
            self.episodes.at(one.start) == self.episodes.at(next.start) && !whole(one) && !whole(next)
        };
        let parts: Vec<(usize, usize)> =
            stretches.chunk_by(together).map(|parts| (0, parts.iter().map(ExactSizeIterator::len).sum())).collect();
        let mut episodes = self.episodes.parts(&parts);
        episodes.names = Some((1..=parts.len()).map(|number| number.to_string()).collect());
        episodes
    }

    /// Ranges of steps as a panel that may have silent agents.
    fn part(&self, ranges: &[Range<usize>], episodes: Episodes) -> Panel {
        let (agents, width) = (self.agents(), self.width());
        let gathered = |width: usize| ranges.iter().map(move |range| range.start * width..range.end * width);
        Panel {
            roster: self.roster.clone(),
            times: self.times.gathered(ranges),
            log_beliefs: gathered(width).flat_map(|range| &self.log_beliefs[range]).copied().collect(),
            posts: self.posts.as_ref().map(|posts| gathered(agents).flat_map(|range| &posts[range]).copied().collect()),
            episodes,
        }
    }

    /// Opinions on any scale made comparable: in each episode and ratio centred on the median of first answers and divided by
    /// their spread, 1.4826 times the median absolute deviation, or the standard deviation where more than half of the first
    /// answers are equal. A first answer is an agent's first in the episode.
    ///
    /// ```
    /// use headwater::{Panel, Roster};
    /// let values = vec![10.0, 20.0, 30.0, 20.0, 20.0, 20.0];
    /// let panel = Panel::complete(Roster::numbered(3, 2)?, values)?.scaled_to_first()?;
    /// assert!((panel.cells()[2] - 1.0 / 1.4826).abs() < 1e-15 && panel.cells()[3] == 0.0);
    /// # Ok::<(), headwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Episode`] where all first answers of an episode are equal.
    pub fn scaled_to_first(mut self) -> Result<Self, Error> {
        /// Standard deviation of normal numbers over their median absolute deviation.
        const NORMAL: f64 = 1.4826;
        let (agents, ratios) = (self.agents(), self.ratios());
        for (number, range) in self.episodes.clone().ranges().enumerate() {
            for ratio in 0..ratios {
                let cell = |step: usize, agent: usize| (step * ratios + ratio) * agents + agent;
                let first = |agent: usize| {
                    let step = range.clone().find(|step| self.posts(*step, agent) > 0)?;
                    Some(self.log_beliefs[cell(step, agent)])
                };
                let first: Vec<f64> = (0..agents).filter_map(first).collect();
                let centre = median(&first);
                let off: Vec<f64> = first.iter().map(|value| (value - centre).abs()).collect();
                let mut spread = NORMAL * median(&off);
                if spread == 0.0 {
                    let mean = first.iter().sum::<f64>() / first.len() as f64;
                    spread =
                        (first.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / first.len() as f64).sqrt();
                }
                if spread <= centre.abs() * f64::EPSILON {
                    let problem =
                        format!("all {} first answers are {centre}, so there is no spread to divide by", first.len());
                    return Err(Error::Episode { episode: self.episodes.label(number), problem });
                }
                for step in range.clone() {
                    for agent in 0..agents {
                        if self.posts(step, agent) > 0 {
                            let value = &mut self.log_beliefs[cell(step, agent)];
                            *value = (*value - centre) / spread;
                        }
                    }
                }
            }
        }
        Ok(self)
    }

    /// What is held out for a measure of forecasts: the last fifth of each episode where all are long; otherwise the last
    /// fifth of the episodes, whole, because a few steps do not determine the level of an episode.
    pub(crate) fn held_out_steps(&self) -> HeldOutSteps {
        let episodes = &self.episodes;
        if episodes.is_single() || episodes.own_levels {
            let seen: Vec<usize> = episodes.ranges().map(|range| range.len() - range.len().div_ceil(5)).collect();
            let scored = episodes.ranges().zip(&seen).flat_map(|(range, seen)| range.start + seen..range.end);
            return HeldOutSteps { scored: scored.filter(|step| !episodes.begins(*step)).collect(), seen };
        }
        let whole = episodes.count() - episodes.count().div_ceil(5);
        let seen = episodes.ranges().enumerate().map(|(number, range)| if number < whole { range.len() } else { 0 });
        let scored = (whole..episodes.count()).flat_map(|number| episodes.range(number).skip(1));
        HeldOutSteps { seen: seen.collect(), scored: scored.collect() }
    }
}

/// The median; the mean of the middle two.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        _ if sorted.is_empty() => 0.0,
        1 => sorted[half],
        _ => 0.5 * (sorted[half - 1] + sorted[half]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(agents: &[&str], steps: usize, from: f64) -> Panel {
        let roster = Roster::new(agents.iter().copied(), ["yes", "no"]).unwrap();
        Panel::complete(roster, (0..steps * agents.len()).map(|cell| from + cell as f64).collect()).unwrap()
    }

    fn two() -> Panel {
        Panel::from_episodes(&[
            ("tax".to_owned(), panel(&["ann", "bob"], 3, 0.0)),
            ("war".to_owned(), panel(&["cem", "bob"], 2, 10.0)),
        ])
        .unwrap()
    }

    #[test]
    fn episodes_are_put_together_by_name() {
        let both = two();
        assert_eq!((both.steps(), both.agents(), both.episodes().transitions()), (5, 3, 3));
        assert_eq!(both.roster().agents(), ["ann", "bob", "cem"]);
        assert_eq!(both.times().raw(), [0, 1, 2, 0, 1]);
        let episodes = both.episodes();
        assert_eq!((0..5).map(|step| episodes.at(step)).collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
        assert_eq!((0..5).filter(|step| episodes.begins(*step)).collect::<Vec<_>>(), [0, 3]);
        assert_eq!((episodes.label(1), episodes.names().unwrap().len()), ("war".to_owned(), 2));
        assert_eq!(both.absences(), [(2, 0), (0, 1)]);
        assert_eq!((both.frame(3)[(2, 0)], both.frame(4)[(1, 0)], both.posts(4, 0)), (10.0, 13.0, 0));
        assert_eq!(both.check_presence().unwrap_err(), Error::Absent { agents: "cem".into(), episode: "tax".into() });
        let apart = both.by_episode();
        assert_eq!((apart.len(), apart[1].steps(), apart[1].agents()), (2, 2, 3));
        assert_eq!(apart[1].cells(), [0.0, 11.0, 10.0, 0.0, 13.0, 12.0]);
    }

    #[test]
    fn nothing_passes_from_one_episode_to_the_next() {
        let roster = Roster::numbered(1 + 1, 2).unwrap();
        let cells = vec![1.0, 5.0, 0.0, 6.0, 0.0, 7.0, 2.0, 8.0];
        let posts = vec![1, 1, 0, 1, 0, 1, 1, 1];
        let panel = Panel::new(roster, Times::Steps((0..4).collect()), cells, Some(posts)).unwrap();
        let panel = panel.in_episodes(vec![("a".into(), 2), ("b".into(), 2)]).unwrap();
        let (filled, count) = panel.clone().carry_forward();
        // The first episode's belief is not carried into the second, whose first one holds before it.
        assert_eq!((count, filled.cells()), (2, &[1.0, 5.0, 1.0, 6.0, 2.0, 7.0, 2.0, 8.0][..]));
        let again = filled.in_episodes(vec![("a".into(), 2), ("b".into(), 2)]).unwrap();
        let (undone, silent) = again.silence_repeats();
        // Both repeats are within an episode.
        assert_eq!((silent, undone.posts(1, 0), undone.posts(3, 0)), (2, 0, 0));
        // A shift stays within its episode.
        let shifted = two_long().rotated(&[0, 1, 2, 0]).unwrap();
        assert_eq!(shifted.cells()[..6], [0.0, 3.0, 2.0, 5.0, 4.0, 1.0]);
        assert_eq!(shifted.cells()[6..], [10.0, 7.0, 6.0, 9.0, 8.0, 11.0]);
    }

    fn two_long() -> Panel {
        panel(&["a", "b"], 6, 0.0).in_episodes(vec![("x".into(), 3), ("y".into(), 3)]).unwrap()
    }

    #[test]
    fn an_agent_absent_from_an_episode_stays_silent_in_it() {
        let (filled, count) = two().carry_forward();
        assert_eq!(count, 0);
        assert_eq!((filled.posts(0, 2), filled.posts(3, 0), filled.posts(0, 0)), (0, 0, 1));
        assert!(!filled.is_complete());
    }

    #[test]
    fn parts_keep_their_episodes() {
        let whole = two_long();
        let part = whole.slice(1..5).unwrap();
        assert_eq!((part.steps(), part.episodes().count(), part.episodes().range(1)), (4, 2, 2..4));
        assert_eq!(whole.slice(3..6).unwrap().episodes().names().unwrap(), ["y"]);
        assert_eq!(whole.among(&[1]).unwrap_err(), Error::TooFewAgents { agents: 1 });
        assert_eq!(whole.among(&[1, 0]).unwrap().episodes(), whole.episodes());
        let kept = whole.kept(&[1, 3]);
        assert_eq!((kept.steps(), kept.cells()[2], kept.episodes().range(1)), (4, 6.0, 1..4));
        assert_eq!(whole.kept(&[0, 2]).episodes().names().unwrap(), ["y"]);
        let joined = whole.joined(&[3..6, 3..5]).unwrap();
        assert_eq!((joined.steps(), joined.episodes().range(1)), (5, 3..5));
        let joined = whole.joined(&[0..2, 1..3, 3..5, 3..6, 3..6]).unwrap();
        assert_eq!(joined.episodes().ranges().collect::<Vec<_>>(), [0..4, 4..6, 6..9, 9..12]);
        assert_eq!(panel(&["a", "b"], 6, 0.0).joined(&[0..2, 3..5]).unwrap().episodes(), &Episodes::single(4));
    }

    #[test]
    fn held_out_are_last_steps_or_last_episodes() {
        let single = panel(&["a", "b"], 11, 0.0);
        assert_eq!(single.held_out_steps(), HeldOutSteps { seen: vec![8], scored: vec![8, 9, 10] });
        let long = panel(&["a", "b"], 21, 0.0).in_episodes(vec![("x".into(), 10), ("y".into(), 11)]).unwrap();
        assert!(long.episodes().have_own_levels());
        assert_eq!(long.held_out_steps(), HeldOutSteps { seen: vec![8, 8], scored: vec![8, 9, 18, 19, 20] });
        assert!(long.kept(&[8, 8]).episodes().have_own_levels(), "a part keeps what the whole decided");
        let short = panel(&["a", "b"], 18, 0.0);
        let short = short.in_episodes((0..6).map(|number| (number.to_string(), 3)).collect()).unwrap();
        assert!(!short.episodes().have_own_levels());
        let held_out = HeldOutSteps { seen: vec![3, 3, 3, 3, 0, 0], scored: vec![13, 14, 16, 17] };
        assert_eq!(short.held_out_steps(), held_out);
    }

    #[test]
    fn values_are_scaled_within_episodes() {
        // First answers 1, 2, 9 and, of agent 2, a late one; then a thousand times as much.
        let one = [1.0, 2.0, 0.0, 5.0, 4.0, 9.0];
        let cells: Vec<f64> = one.iter().copied().chain(one.iter().map(|value| 1000.0 * value)).collect();
        let posts = vec![1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1];
        let panel =
            Panel::new(Roster::numbered(3, 2).unwrap(), Times::Steps(vec![0, 1, 0, 1]), cells, Some(posts)).unwrap();
        let panel = panel.in_episodes(vec![("x".into(), 2), ("y".into(), 2)]).unwrap().scaled_to_first().unwrap();
        // The median is 2, the absolute deviations 1, 0 and 7.
        assert_eq!(panel.cells()[..6], [-1.0 / 1.4826, 0.0, 0.0, 3.0 / 1.4826, 2.0 / 1.4826, 7.0 / 1.4826]);
        assert!(panel.cells()[..6].iter().zip(&panel.cells()[6..]).all(|(a, b)| (a - b).abs() < 1e-12));
        let equal = Panel::complete(Roster::numbered(3, 2).unwrap(), vec![4.0, 4.0, 4.0, 1.0, 2.0, 3.0]).unwrap();
        assert!(equal.scaled_to_first().unwrap_err().to_string().contains("all 3 first answers are 4"));
        let most = Panel::complete(Roster::numbered(3, 2).unwrap(), vec![4.0, 4.0, 7.0, 1.0, 2.0, 3.0]).unwrap();
        assert!((most.scaled_to_first().unwrap().cells()[2] - 3.0 / 2f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn bad_episodes_are_named() {
        let cut = |episodes: &[(&str, usize)]| {
            let episodes = episodes.iter().map(|(name, steps)| ((*name).to_owned(), *steps)).collect();
            panel(&["a", "b"], 4, 0.0).in_episodes(episodes).map_err(|error| error.to_string())
        };
        assert!(cut(&[("x", 2), ("y", 2)]).is_ok() && cut(&[("x", 4)]).is_ok());
        assert!(cut(&[("x", 3), ("y", 1)]).unwrap_err().contains("\"y\": it has a single time step"));
        assert!(cut(&[("x", 2), ("", 2)]).unwrap_err().contains("name is empty"));
        assert!(cut(&[("x", 2), ("x", 2)]).unwrap_err().contains("\"x\" is named twice"));
        assert!(cut(&[("x", 2), ("y", 3)]).unwrap_err().contains("found 5, expected 4"));
        let other = Panel::complete(Roster::new(["a", "b"], ["yes", "maybe"]).unwrap(), vec![0.0; 4]).unwrap();
        let mixed = Panel::from_episodes(&[("x".into(), panel(&["a", "b"], 2, 0.0)), ("y".into(), other)]);
        assert!(matches!(mixed, Err(Error::Shape { .. })));
        let dated = panel(&["a", "b"], 2, 0.0).with_times(Times::utc(vec![0, 1])).unwrap();
        let mixed = Panel::from_episodes(&[("x".into(), panel(&["a", "b"], 2, 0.0)), ("y".into(), dated)]);
        assert!(matches!(mixed, Err(Error::Shape { .. })));
        assert!(Panel::from_episodes(&[]).is_err());
    }
}
