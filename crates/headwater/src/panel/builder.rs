//! Rows in any order become a panel: sorted by time, gaps opened, repeated rows refused.

use super::{Panel, Times};
use crate::{Error, Roster};
use std::collections::HashMap;

/// In a builder: the agent is recorded as silent, which differs from no record at all.
const SAID_SILENT: u32 = u32::MAX;

/// Silent steps that a gap may open for each step that is present; more of them suggest that the times are wrong.
const MOST_SILENCE: u64 = 1000;

/// Collects rows in any order into a [`Panel`], holding each number once.
///
/// ```
/// use headwater::panel::{PanelBuilder, Unit};
/// let mut rows = PanelBuilder::new(vec!["yes".into(), "no".into()], Unit::Steps);
/// rows.push(0, "ann", &[0.5], 1).unwrap();
/// rows.push(0, "bob", &[0.1], 1).unwrap();
/// rows.push(2, "ann", &[0.7], 3).unwrap();
/// let panel = rows.finish().unwrap();
/// assert_eq!((panel.steps(), panel.posts(1, 0), panel.posts(2, 0), panel.posts(2, 1)), (3, 0, 3, 0));
/// ```
#[derive(Debug)]
pub struct PanelBuilder {
    hypotheses: Vec<String>,
    unit: Unit,
    agents: Vec<String>,
    agent_index: HashMap<String, usize>,
    /// Raw time of each frame in order of first appearance.
    frames: Vec<i64>,
    frame_index: HashMap<i64, usize>,
    /// Offset of the local clock of each frame.
    offsets: Vec<i32>,
    /// Offset of frames to come.
    offset: i32,
    latest: usize,
    /// Agents that a frame has space for; doubled when exceeded.
    capacity: usize,
    log_beliefs: Vec<f64>,
    posts: Vec<u32>,
    /// Log-ratios that the panel may have, silent ones included.
    limit: usize,
    /// Builders of the named episodes, which hold the rows where there are any.
    episodes: Vec<(String, PanelBuilder)>,
    episode_index: HashMap<String, usize>,
    /// The episode of the rows to come.
    episode: usize,
}

/// Unit of the raw times of a [`PanelBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Step numbers; a missing number is a step at which all are silent.
    Steps,
    /// Microseconds since 1970; the step is the median spacing and gaps are rounded to steps.
    Microseconds,
}

impl PanelBuilder {
    /// An empty panel over these hypotheses, the first being the reference.
    pub fn new(hypotheses: Vec<String>, unit: Unit) -> Self {
        PanelBuilder {
            hypotheses,
            unit,
            agents: Vec::new(),
            agent_index: HashMap::new(),
            frames: Vec::new(),
            frame_index: HashMap::new(),
            offsets: Vec::new(),
            offset: 0,
            latest: 0,
            capacity: 8,
            log_beliefs: Vec::new(),
            posts: Vec::new(),
            limit: usize::MAX,
            episodes: Vec::new(),
            episode_index: HashMap::new(),
            episode: 0,
        }
    }

    /// Rows pushed from now on belong to the episode of this name ([`Panel::from_episodes`]). Either all rows belong to
    /// episodes or none.
    ///
    /// ```
    /// use headwater::panel::{PanelBuilder, Unit};
    /// let mut rows = PanelBuilder::new(vec!["yes".into(), "no".into()], Unit::Steps);
    /// for (episode, time, agent) in [("tax", 0, "ann"), ("war", 0, "bob"), ("tax", 1, "bob"), ("war", 1, "ann")] {
    ///     rows.set_episode(episode).unwrap();
    ///     rows.push(time, agent, &[0.5], 1).unwrap();
    /// }
    /// let panel = rows.finish().unwrap();
    /// assert_eq!((panel.episodes().names().unwrap(), panel.steps()), (&["tax".to_owned(), "war".to_owned()][..], 4));
    /// assert_eq!((panel.posts(0, 0), panel.posts(1, 0), panel.posts(3, 0)), (1, 0, 1));
    /// ```
    ///
    /// # Errors
    /// [`Error::Episode`] for an empty name, and where rows were pushed without an episode.
    pub fn set_episode(&mut self, name: &str) -> Result<(), Error> {
        if self.episodes.get(self.episode).is_some_and(|(known, _)| known == name) {
            return Ok(());
        }
        let wrong = |problem: &str| Error::Episode { episode: name.to_owned(), problem: problem.to_owned() };
        if name.is_empty() {
            return Err(wrong("the name is empty; every episode needs one"));
        }
        if !self.frames.is_empty() {
            return Err(wrong("rows before it belong to no episode; name one for every row"));
        }
        self.episode = match self.episode_index.get(name) {
            Some(&known) => known,
            None => {
                let ratios = self.hypotheses.len() - 1;
                self.check_size(self.episodes.len() + 1, self.capacity, ratios)?;
                let mut builder = PanelBuilder::new(self.hypotheses.clone(), self.unit);
                builder.limit = self.limit;
                self.episodes.push((name.to_owned(), builder));
                self.episode_index.insert(name.to_owned(), self.episodes.len() - 1);
                self.episodes.len() - 1
            }
        };
        self.episodes[self.episode].1.limit = self.limit;
        Ok(())
    }

    /// Limits the log-ratios that the panel may have, silent ones included: a few rows with many names at many times would fill
    /// the memory with silence. Beyond it [`PanelBuilder::push`] and [`PanelBuilder::finish`] return [`Error::TooLarge`].
    pub fn set_limit(&mut self, log_ratios: usize) {
        self.limit = log_ratios;
        if let Some((_, builder)) = self.episodes.get_mut(self.episode) {
            builder.limit = log_ratios;
        }
    }

    fn check_size(&self, steps: usize, agents: usize, ratios: usize) -> Result<(), Error> {
        match steps.checked_mul(agents).and_then(|cells| cells.checked_mul(ratios)) {
            Some(numbers) if numbers <= self.limit => Ok(()),
            _ => Err(Error::TooLarge { steps, agents, ratios, limit: self.limit }),
        }
    }

    /// Seconds that the local clock is ahead of UTC at the times that are pushed from now on; 0 at the start. It decides how a
    /// time is shown, and nothing else. Of several offsets at one instant the first counts.
    pub fn local_offset(&mut self, seconds: i32) {
        self.offset = seconds;
    }

    /// Adds the log-ratios of one agent at one time. `posts = 0` says that the agent was silent.
    pub fn push(&mut self, time: i64, agent: &str, log_ratios: &[f64], posts: u32) -> Result<(), Error> {
        let ratios = self.hypotheses.len() - 1;
        if let Some((_, episode)) = self.episodes.get_mut(self.episode) {
            if !self.agent_index.contains_key(agent) {
                self.agent_index.insert(agent.to_owned(), self.agents.len());
                self.agents.push(agent.to_owned());
            }
            episode.offset = self.offset;
            return episode.push(time, agent, log_ratios, posts);
        }
        let frame = self.frame(time, ratios)?;
        let agent = match self.agent_index.get(agent) {
            Some(&agent) => agent,
            None => self.add_agent(agent, ratios)?,
        };
        let cell = frame * self.capacity + agent;
        if self.posts[cell] > 0 {
            return Err(Error::DuplicateBelief { agent: self.agents[agent].clone(), time: time.to_string() });
        }
        self.posts[cell] = if posts == 0 { SAID_SILENT } else { posts };
        for (ratio, &value) in log_ratios.iter().enumerate() {
            self.log_beliefs[(frame * ratios + ratio) * self.capacity + agent] = value;
        }
        Ok(())
    }

    fn frame(&mut self, time: i64, ratios: usize) -> Result<usize, Error> {
        if self.frames.get(self.latest) == Some(&time) {
            return Ok(self.latest);
        }
        let next = self.frames.len();
        self.latest = *self.frame_index.entry(time).or_insert(next);
        if self.latest == next {
            self.check_size(next + 1, self.capacity, ratios)?;
            self.frames.push(time);
            self.offsets.push(self.offset);
            self.log_beliefs.resize((next + 1) * ratios * self.capacity, 0.0);
            self.posts.resize((next + 1) * self.capacity, 0);
        }
        Ok(self.latest)
    }

    fn add_agent(&mut self, name: &str, ratios: usize) -> Result<usize, Error> {
        let agent = self.agents.len();
        if agent == self.capacity {
            self.check_size(self.frames.len(), self.capacity * 2, ratios)?;
        }
        self.agents.push(name.to_owned());
        self.agent_index.insert(name.to_owned(), agent);
        if agent == self.capacity {
            let wider = self.capacity * 2;
            widen(&mut self.log_beliefs, self.capacity, wider, self.frames.len() * ratios);
            widen(&mut self.posts, self.capacity, wider, self.frames.len());
            self.capacity = wider;
        }
        Ok(agent)
    }

    /// Sorts by time, opens gaps as silence, and checks the whole panel.
    pub fn finish(mut self) -> Result<Panel, Error> {
        if self.episodes.is_empty() {
            let (roster, times, log_beliefs, posts) = self.parts()?;
            return Panel::new(roster, times, log_beliefs, Some(posts));
        }
        let (limit, agents, ratios) = (self.limit, self.agents.len(), self.hypotheses.len() - 1);
        let mut episodes = Vec::with_capacity(self.episodes.len());
        let mut steps = 0;
        for (name, mut builder) in std::mem::take(&mut self.episodes) {
            let within = |error: Error| match error {
                error @ Error::TooLarge { .. } => error,
                // An episode may have one agent; the network may not.
                error => Error::Episode { episode: name.clone(), problem: error.to_string() },
            };
            builder.limit = limit;
            let one = builder.agents.len() == 1;
            if one {
                let other = self.agents.iter().find(|other| **other != builder.agents[0]);
                let Some(other) = other else { return Err(Error::TooFewAgents { agents: 1 }) };
                builder.add_agent(other, ratios)?;
            }
            let (roster, times, log_beliefs, posts) = builder.parts().map_err(within)?;
            steps += times.raw().len();
            self.check_size(steps, agents, ratios)?;
            let panel = Panel::with_silent_agents(roster, times, log_beliefs, Some(posts)).map_err(within)?;
            episodes.push((name, panel));
        }
        let panel = Panel::from_episodes(&episodes)?;
        // In the order of the rows, not of the episodes.
        let order: Vec<usize> = self.agents.iter().map(|name| panel.roster().agent(name)).collect::<Result<_, _>>()?;
        if order.is_sorted() { Ok(panel) } else { panel.among(&order) }
    }

    /// Roster, times, log-ratios and posts.
    fn parts(&mut self) -> Result<(Roster, Times, Vec<f64>, Vec<u32>), Error> {
        let roster = Roster::new(std::mem::take(&mut self.agents), std::mem::take(&mut self.hypotheses))?;
        let (agents, ratios) = (roster.agents().len(), roster.ratios());
        narrow(&mut self.log_beliefs, self.capacity, agents, self.frames.len() * ratios);
        narrow(&mut self.posts, self.capacity, agents, self.frames.len());
        self.sort(agents, ratios);
        let times = self.place(&roster, agents, ratios)?;
        self.posts.iter_mut().filter(|posts| **posts == SAID_SILENT).for_each(|posts| *posts = 0);
        Ok((roster, times, std::mem::take(&mut self.log_beliefs), std::mem::take(&mut self.posts)))
    }

    fn sort(&mut self, agents: usize, ratios: usize) {
        if self.frames.is_sorted() {
            return;
        }
        // Follow the cycles of the sorting permutation, so that only one frame is ever held twice.
        let mut order: Vec<usize> = (0..self.frames.len()).collect();
        order.sort_by_key(|&frame| self.frames[frame]);
        permute(&mut self.frames, 1, &order);
        permute(&mut self.offsets, 1, &order);
        permute(&mut self.log_beliefs, agents * ratios, &order);
        permute(&mut self.posts, agents, &order);
    }

    /// Moves every frame to the step it belongs to, from the last to the first.
    fn place(&mut self, roster: &Roster, agents: usize, ratios: usize) -> Result<Times, Error> {
        let (first, last) = match (self.frames.first(), self.frames.last()) {
            (Some(&first), Some(&last)) => (first, last),
            _ => return Err(Error::NotReady { seen: 0, needed: 2 }),
        };
        let step = match self.unit {
            Unit::Steps => 1,
            Unit::Microseconds => median_spacing(&self.frames),
        };
        let position = |time: i64| ((i128::from(time) - i128::from(first)) * 2 / i128::from(step) + 1) / 2;
        let steps = u64::try_from(position(last)).map_or(u64::MAX, |last| last.saturating_add(1));
        if steps > MOST_SILENCE.saturating_mul(self.frames.len() as u64) {
            return Err(Error::Sparse { first, last, steps, present: self.frames.len() });
        }
        let steps = steps as usize;
        self.check_size(steps, agents, ratios)?;
        if steps > self.frames.len() || self.unit == Unit::Microseconds {
            let wide = agents * ratios;
            self.log_beliefs.resize(steps.max(self.frames.len()) * wide, 0.0);
            self.posts.resize(steps.max(self.frames.len()) * agents, 0);
            // Frames that fall on one step are merged first, towards the front: that frees the slots the rest need.
            let mut kept: Vec<(usize, usize)> = Vec::with_capacity(self.frames.len());
            for frame in 0..self.frames.len() {
                let to = position(self.frames[frame]) as usize;
                match kept.last() {
                    Some(&(slot, step)) if step == to => self.merge(frame, slot, roster, ratios)?,
                    _ => {
                        let slot = kept.len();
                        shift(&mut self.log_beliefs, frame, slot, wide);
                        shift(&mut self.posts, frame, slot, agents);
                        kept.push((slot, to));
                    }
                }
            }
            for &(slot, to) in kept.iter().rev() {
                shift(&mut self.log_beliefs, slot, to, wide);
                shift(&mut self.posts, slot, to, agents);
            }
            self.log_beliefs.truncate(steps * wide);
            self.posts.truncate(steps * agents);
        }
        Ok(match self.unit {
            Unit::Steps => Times::Steps((0..steps as i64).map(|index| first + index).collect()),
            Unit::Microseconds => {
                // A step has the time of its first frame; a silent one follows the one before after a whole step.
                let (mut utc, mut offsets): (Vec<i64>, Vec<i32>) =
                    (Vec::with_capacity(steps), Vec::with_capacity(steps));
                for (&time, &offset) in self.frames.iter().zip(&self.offsets) {
                    let to = position(time) as usize;
                    while let (true, Some(&before)) = (utc.len() < to, utc.last()) {
                        utc.push(before + step);
                        offsets.extend(offsets.last().copied());
                    }
                    if utc.len() == to {
                        utc.push(time);
                        offsets.push(offset);
                    }
                }
                Times::Instants { utc, offsets }
            }
        })
    }

    fn merge(&mut self, frame: usize, slot: usize, roster: &Roster, ratios: usize) -> Result<(), Error> {
        let agents = roster.agents().len();
        for agent in 0..agents {
            let posts = std::mem::take(&mut self.posts[frame * agents + agent]);
            if posts == 0 {
                continue;
            }
            if self.posts[slot * agents + agent] > 0 {
                return Err(Error::DuplicateBelief {
                    agent: roster.agents()[agent].clone(),
                    time: format!("{} (rounded to a step)", self.frames[frame]),
                });
            }
            self.posts[slot * agents + agent] = posts;
            for ratio in 0..ratios {
                self.log_beliefs[(slot * ratios + ratio) * agents + agent] =
                    self.log_beliefs[(frame * ratios + ratio) * agents + agent];
            }
        }
        Ok(())
    }
}

/// Median of the differences of sorted, distinct times, the lower one of two (gaps only lengthen); 1 for a single time.
fn median_spacing(times: &[i64]) -> i64 {
    let mut spacing: Vec<i64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    if spacing.is_empty() {
        return 1;
    }
    let middle = (spacing.len() - 1) / 2;
    *spacing.select_nth_unstable(middle).1
}

/// Moves one chunk and clears the place it came from.
fn shift<T: Copy + Default>(cells: &mut [T], from: usize, to: usize, width: usize) {
    if from != to {
        cells.copy_within(from * width..(from + 1) * width, to * width);
        cells[from * width..(from + 1) * width].fill(T::default());
    }
}

fn widen<T: Copy + Default>(cells: &mut Vec<T>, narrow: usize, wide: usize, lines: usize) {
    cells.resize(lines * wide, T::default());
    for line in (1..lines).rev() {
        cells.copy_within(line * narrow..(line + 1) * narrow, line * wide);
    }
    for line in 0..lines {
        cells[line * wide + narrow..(line + 1) * wide].fill(T::default());
    }
}

fn narrow<T: Copy>(cells: &mut Vec<T>, wide: usize, narrow: usize, lines: usize) {
    for line in 0..lines {
        cells.copy_within(line * wide..line * wide + narrow, line * narrow);
    }
    cells.truncate(lines * narrow);
    cells.shrink_to_fit();
}

/// `new[i] = old[order[i]]` on chunks, in place.
fn permute<T: Copy>(cells: &mut [T], width: usize, order: &[usize]) {
    let mut done = vec![false; order.len()];
    let mut held = Vec::with_capacity(width);
    for start in 0..order.len() {
        if done[start] {
            continue;
        }
        held.clear();
        held.extend_from_slice(&cells[start * width..(start + 1) * width]);
        let mut slot = start;
        loop {
            done[slot] = true;
            let from = order[slot];
            if from == start {
                cells[slot * width..(slot + 1) * width].copy_from_slice(&held);
                break;
            }
            cells.copy_within(from * width..(from + 1) * width, slot * width);
            slot = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        vec!["a".into(), "b".into(), "c".into()]
    }

    #[test]
    fn a_panel_of_silence_is_refused_before_it_is_made() {
        let fill = |agents: i64, last: i64| {
            let mut rows = PanelBuilder::new(vec!["yes".into(), "no".into()], Unit::Steps);
            rows.set_limit(100);
            for agent in 0..agents {
                rows.push(if agent == 0 { last } else { agent }, &agent.to_string(), &[0.5], 1)?;
            }
            rows.finish()
        };
        assert!(fill(8, 0).is_ok());
        // Too many agents and times, and a gap of silence.
        assert!(matches!(fill(20, 0), Err(Error::TooLarge { .. })));
        assert!(matches!(fill(8, 60), Err(Error::TooLarge { steps: 60, agents: 8, .. })));
    }

    #[test]
    fn instants_keep_their_times_and_offsets() {
        const HOUR: i64 = 3_600_000_000;
        let mut rows = PanelBuilder::new(names(), Unit::Microseconds);
        // Days of 24, 23 and 24 hours, and one without a row.
        for (time, offset) in [(96 * HOUR - HOUR, 7200), (0, 3600), (24 * HOUR, 3600), (47 * HOUR, 7200)] {
            rows.local_offset(offset);
            rows.push(time, "ann", &[0.5, 0.1], 1).unwrap();
            rows.push(time, "bob", &[0.2, 0.3], 1).unwrap();
        }
        let panel = rows.finish().unwrap();
        let utc = [0, 24, 47, 71, 95].map(|hour| hour * HOUR).to_vec();
        assert_eq!(panel.times(), &Times::Instants { utc, offsets: vec![3600, 3600, 7200, 7200, 7200] });
        assert_eq!((panel.posts(3, 0), panel.posts(4, 0)), (0, 1));
    }

    #[test]
    fn rows_may_come_in_any_order() {
        let mut rows = PanelBuilder::new(names(), Unit::Steps);
        for agent in 0..20 {
            for time in [5, 2, 9, 3] {
                rows.push(time, &agent.to_string(), &[time as f64, agent as f64], 1).unwrap();
            }
        }
        let panel = rows.finish().unwrap();
        assert_eq!(panel.times(), &Times::Steps((2..=9).collect()));
        for step in 0..8 {
            let time = step as i64 + 2;
            let present = [5, 2, 9, 3].contains(&time);
            for agent in 0..20 {
                assert_eq!(panel.posts(step, agent), u32::from(present));
                let wanted = if present { (time as f64, agent as f64) } else { (0.0, 0.0) };
                assert_eq!((panel.frame(step)[(agent, 0)], panel.frame(step)[(agent, 1)]), wanted);
            }
        }
    }

    #[test]
    fn late_agents_widen_the_panel() {
        let mut rows = PanelBuilder::new(names(), Unit::Steps);
        for time in 0..30 {
            for agent in 0..=time {
                rows.push(time, &format!("agent {agent}"), &[time as f64, agent as f64], 2).unwrap();
            }
        }
        let panel = rows.finish().unwrap();
        assert_eq!(panel.silence(), (0..30).collect::<Vec<_>>());
        let (panel, filled) = panel.carry_forward();
        assert_eq!(filled, 30 * 29 / 2);
        assert!(panel.is_complete());
        assert_eq!(panel.frame(3)[(20, 0)], 20.0, "before the first post its first value holds");
    }

    #[test]
    fn instants_are_rounded_to_the_median_step() {
        let mut rows = PanelBuilder::new(names(), Unit::Microseconds);
        for time in [0, 1000, 2001, 2990, 6010] {
            rows.push(time, "x", &[time as f64, 0.0], 1).unwrap();
            rows.push(time, "y", &[1.0, 0.0], 1).unwrap();
        }
        let panel = rows.finish().unwrap();
        assert_eq!(panel.steps(), 7);
        assert_eq!(panel.frame(6)[(0, 0)], 6010.0);
        assert_eq!((panel.posts(4, 0), panel.posts(5, 1)), (0, 0));
    }

    #[test]
    fn instants_on_one_step_are_merged_or_refused() {
        let mut rows = PanelBuilder::new(names(), Unit::Microseconds);
        for time in [0, 1000, 2000, 3000] {
            rows.push(time, "x", &[time as f64, 0.0], 1).unwrap();
        }
        rows.push(2010, "y", &[7.0, 7.0], 1).unwrap();
        let panel = rows.finish().unwrap();
        assert_eq!((panel.steps(), panel.frame(2)[(1, 0)], panel.frame(3)[(0, 0)]), (4, 7.0, 3000.0));

        let mut rows = PanelBuilder::new(names(), Unit::Microseconds);
        for time in [0, 1000, 2000, 3000, 3010] {
            rows.push(time, "x", &[0.0, 0.0], 1).unwrap();
            rows.push(time, "y", &[0.0, 0.0], 1).unwrap();
        }
        assert!(matches!(rows.finish(), Err(Error::DuplicateBelief { .. })));
    }

    #[test]
    fn episodes_have_times_of_their_own() {
        let mut rows = PanelBuilder::new(names(), Unit::Microseconds);
        rows.set_limit(1000);
        // Days in one, hours in the other; rows of both mixed, and agents in the order of the rows.
        for (episode, time, agent) in [
            ("b", 0, "zoe"),
            ("a", 0, "ann"),
            ("a", 10, "ann"),
            ("b", 1000, "zoe"),
            ("b", 3000, "zoe"),
            ("a", 30, "bob"),
        ] {
            rows.set_episode(episode).unwrap();
            rows.push(time, agent, &[time as f64, 1.0], 2).unwrap();
        }
        let panel = rows.finish().unwrap();
        assert_eq!(panel.roster().agents(), ["zoe", "ann", "bob"]);
        assert_eq!(panel.episodes().names().unwrap(), ["b", "a"]);
        assert_eq!(panel.episodes().ranges().collect::<Vec<_>>(), [0..4, 4..8]);
        assert_eq!(panel.times().raw(), [0, 1000, 2000, 3000, 0, 10, 20, 30]);
        assert_eq!((panel.posts(3, 0), panel.posts(7, 2), panel.posts(7, 1)), (2, 2, 0));
        assert_eq!(panel.absences(), [(1, 0), (2, 0), (0, 1)]);
    }

    #[test]
    fn bad_episodes_are_named() {
        let fill = |rows: &[(&str, i64, &str)]| {
            let mut builder = PanelBuilder::new(names(), Unit::Steps);
            builder.set_limit(500);
            for (episode, time, agent) in rows {
                if *episode != "-" {
                    builder.set_episode(episode)?;
                }
                builder.push(*time, agent, &[0.0, 0.0], 1)?;
            }
            builder.finish()
        };
        let said = |rows: &[(&str, i64, &str)]| fill(rows).unwrap_err().to_string();
        let two = [("x", 0, "a"), ("x", 1, "b"), ("y", 0, "a"), ("y", 1, "a")];
        assert!(fill(&two).is_ok());
        assert!(matches!(fill(&[("x", 0, "a"), ("x", 0, "a")]), Err(Error::DuplicateBelief { .. })));
        assert!(fill(&[("x", 0, "a"), ("y", 0, "a"), ("x", 1, "b"), ("y", 1, "b")]).is_ok(), "the same time in both");
        assert!(said(&[("x", 0, "a"), ("", 1, "a")]).contains("name is empty"));
        assert!(said(&[("-", 0, "a"), ("x", 1, "a")]).contains("belong to no episode"));
        assert!(said(&[("x", 0, "a"), ("x", 1, "b"), ("y", 0, "a")]).contains("\"y\": it has a single time step"));
        assert_eq!(fill(&[("x", 0, "a"), ("x", 1, "a")]), Err(Error::TooFewAgents { agents: 1 }));
        assert!(matches!(fill(&[("x", 0, "a"), ("x", 90_000_000, "b")]), Err(Error::Episode { .. })));
        let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let many: Vec<(&str, i64, &str)> = many.iter().map(|name| (name.as_str(), 0, "a")).collect();
        assert!(matches!(fill(&many), Err(Error::TooLarge { .. })), "a name for every row");
    }

    #[test]
    fn bad_panels_are_named() {
        let mut rows = PanelBuilder::new(names(), Unit::Steps);
        rows.push(0, "x", &[0.0, 0.0], 1).unwrap();
        assert!(matches!(rows.push(0, "x", &[0.0, 0.0], 1), Err(Error::DuplicateBelief { .. })));
        rows.push(0, "z", &[0.0, 0.0], 0).unwrap();
        assert!(rows.push(0, "z", &[0.0, 0.0], 1).is_err(), "a second row is refused after recorded silence too");
        rows.push(10_000_000, "y", &[0.0, 0.0], 1).unwrap();
        assert!(matches!(rows.finish(), Err(Error::Sparse { .. })));
        for unit in [Unit::Steps, Unit::Microseconds] {
            let mut rows = PanelBuilder::new(names(), unit);
            for time in [i64::MIN, 0, 1, i64::MAX] {
                rows.push(time, "x", &[0.0, 0.0], 1).unwrap();
                rows.push(time, "y", &[0.0, 0.0], 1).unwrap();
            }
            assert!(rows.finish().is_err());
        }

        let roster = Roster::numbered(2, 2).unwrap();
        let silent = Panel::new(roster.clone(), Times::Steps(vec![0]), vec![0.0; 2], Some(vec![1, 0]));
        assert_eq!(silent, Err(Error::NeverSpeaks { agents: vec!["1".into()] }));
        let nan = Panel::complete(roster, vec![0.0, f64::NAN]);
        assert!(nan.unwrap_err().to_string().contains("agent \"1\" at step 0"));
    }
}
