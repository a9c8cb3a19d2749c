//! The panel: T × N × H log-beliefs with a mask, the input of every learner.
//!
//! In: rows (time, agent, beliefs) through [`PanelBuilder`], or a whole array. Out: a [`Panel`] without NaN, in time
//! order, one frame per step. Beliefs are validated here; later stages rely on it.
//!
//! A frame is stored as the N × H matrix Λ_i in column order, frames one after another, so that a run of frames is the
//! N × (B·H) matrix of the block kernels without a copy.

mod builder;
mod episodes;
mod frame;
mod log_ratios;

pub use builder::{PanelBuilder, Unit};
pub use episodes::Episodes;
pub use frame::Frame;
pub use log_ratios::{SMALLEST_PROBABILITY, SUM_TOLERANCE, log_ratio, log_ratios, probabilities};

use crate::{Error, Roster};
use faer::MatRef;
use rayon::prelude::*;
use std::ops::Range;

/// Largest log-ratio accepted in absolute value; squares of larger ones could overflow.
pub const LARGEST_LOG_RATIO: f64 = 1e50;

/// Cells checked by one task.
const CELLS_AT_ONCE: usize = 1 << 15;

/// Times of the frames, with their unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Times {
    /// Step numbers.
    Steps(Vec<i64>),
    /// Instants, with the local clock that they are shown in.
    Instants {
        /// Microseconds since 1970 in UTC.
        utc: Vec<i64>,
        /// Seconds that the local clock is ahead of UTC, for each instant.
        offsets: Vec<i32>,
    },
}

impl Times {
    /// Instants without a local clock: microseconds since 1970, shown in UTC.
    pub fn utc(utc: Vec<i64>) -> Self {
        let offsets = vec![0; utc.len()];
        Times::Instants { utc, offsets }
    }

    /// The raw numbers, whatever their unit.
    pub fn raw(&self) -> &[i64] {
        match self {
            Times::Steps(times) | Times::Instants { utc: times, .. } => times,
        }
    }

    /// How many there are, `None` where instants and offsets differ in number.
    fn count(&self) -> Option<usize> {
        match self {
            Times::Steps(times) => Some(times.len()),
            Times::Instants { utc, offsets } => (utc.len() == offsets.len()).then_some(utc.len()),
        }
    }

    /// Those of stretches of steps, one after another.
    fn gathered(&self, stretches: &[Range<usize>]) -> Self {
        match self {
            Times::Steps(times) => Times::Steps(gathered(times, stretches)),
            Times::Instants { utc, offsets } => {
                Times::Instants { utc: gathered(utc, stretches), offsets: gathered(offsets, stretches) }
            }
        }
    }

    /// These and then others of the same unit.
    fn followed_by(mut self, later: &Times) -> Result<Self, Error> {
        match (&mut self, later) {
            (Times::Steps(times), Times::Steps(more)) => times.extend(more),
            (Times::Instants { utc, offsets }, Times::Instants { utc: more, offsets: theirs }) => {
                utc.extend(more);
                offsets.extend(theirs);
            }
            _ => {
                return Err(Error::Shape {
                    what: "times of the episodes",
                    met: "step numbers in some and dates in others".to_owned(),
                    wanted: "one kind in all".to_owned(),
                });
            }
        }
        Ok(self)
    }
}

fn gathered<T: Copy>(cells: &[T], stretches: &[Range<usize>]) -> Vec<T> {
    stretches.iter().flat_map(|steps| &cells[steps.clone()]).copied().collect()
}

/// T × N × H log-beliefs `Λ_i[k, j] = log ψ_k,i(θ_0)/ψ_k,i(θ_j)`, with the number of posts behind each cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    roster: Roster,
    times: Times,
    /// T frames of N×H in column order. A silent cell holds 0.
    log_beliefs: Vec<f64>,
    /// T×N counts, 0 = silent; absent when every cell has exactly one.
    posts: Option<Vec<u32>>,
    episodes: Episodes,
}

impl Panel {
    /// A complete panel from frames in column order (`log_beliefs[(t·H + j)·N + k]`), at steps 0, 1, 2, …
    ///
    /// ```
    /// use headwater::{Panel, Roster};
    /// let roster = Roster::numbered(2, 2).unwrap();
    /// let panel = Panel::complete(roster, vec![0.1, 0.2, 0.3, 0.4]).unwrap();
    /// assert_eq!(panel.steps(), 2);
    /// assert_eq!(panel.frame(1)[(0, 0)], 0.3);
    /// ```
    pub fn complete(roster: Roster, log_beliefs: Vec<f64>) -> Result<Self, Error> {
        let steps = log_beliefs.len() / (roster.agents().len() * roster.ratios());
        Panel::new(roster, Times::Steps((0..steps as i64).collect()), log_beliefs, None)
    }

    /// The same panel with other values where somebody spoke.
    pub(crate) fn with_cells(&self, log_beliefs: Vec<f64>) -> Panel {
        debug_assert_eq!(log_beliefs.len(), self.log_beliefs.len());
        Panel { log_beliefs, ..self.clone() }
    }

    /// A panel from its parts. `posts[t·N + k]` is the count behind a cell, 0 for silence.
    pub fn new(roster: Roster, times: Times, log_beliefs: Vec<f64>, posts: Option<Vec<u32>>) -> Result<Self, Error> {
        let panel = Panel::with_silent_agents(roster, times, log_beliefs, posts)?;
        let silent = panel.never_speaking();
        if !silent.is_empty() {
            return Err(Error::NeverSpeaks { agents: panel.roster.names(&silent) });
        }
        Ok(panel)
    }

    /// The same, where agents may be silent throughout: of an episode that is put together with others.
    fn with_silent_agents(
        roster: Roster,
        times: Times,
        mut log_beliefs: Vec<f64>,
        posts: Option<Vec<u32>>,
    ) -> Result<Self, Error> {
        let (steps, agents, ratios) = (times.raw().len(), roster.agents().len(), roster.ratios());
        if times.count().is_none() {
            return Err(Error::Shape {
                what: "offsets of times",
                met: "another number".to_owned(),
                wanted: format!("{steps}, one for each step"),
            });
        }
        if log_beliefs.len() != steps * agents * ratios {
            return Err(Error::Shape {
                what: "log-beliefs",
                met: format!("{} values", log_beliefs.len()),
                wanted: format!("{steps}×{agents}×{ratios}"),
            });
        }
        if posts.as_ref().is_some_and(|posts| posts.len() != steps * agents) {
            return Err(Error::Shape {
                what: "post counts",
                met: format!("{} values", posts.map_or(0, |posts| posts.len())),
                wanted: format!("{steps}×{agents}"),
            });
        }
        if let Some(posts) = &posts {
            for (cell, _) in posts.iter().enumerate().filter(|(_, count)| **count == 0) {
                let (step, agent) = (cell / agents, cell % agents);
                for ratio in 0..ratios {
                    log_beliefs[(step * ratios + ratio) * agents + agent] = 0.0;
                }
            }
        }
        // NaN fails this comparison. A whole chunk without early exit can be vectorised.
        let fine = |value: f64| value.abs() <= LARGEST_LOG_RATIO;
        let sound = |chunk: &[f64]| chunk.iter().fold(true, |sound, value| sound & fine(*value));
        if !log_beliefs.par_chunks(CELLS_AT_ONCE).all(sound)
            && let Some(bad) = log_beliefs.iter().position(|value| !fine(*value))
        {
            let (frame, ratio, agent) = (bad / (agents * ratios), bad / agents % ratios, bad % agents);
            return Err(Error::Belief {
                hypothesis: roster.hypotheses()[ratio + 1].clone(),
                problem: format!(
                    "found {} for agent {:?} at step {frame}; a log-ratio must be a number of moderate size",
                    log_beliefs[bad],
                    roster.agents()[agent]
                ),
            });
        }
        let posts = posts.filter(|posts| posts.iter().any(|&count| count != 1));
        Ok(Panel { roster, times, log_beliefs, posts, episodes: Episodes::single(steps) })
    }

    /// Names of agents and hypotheses.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Time of each frame.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// The same frames at other times.
    ///
    /// # Errors
    /// [`Error::Shape`] where there is not one time for each frame.
    pub fn with_times(mut self, times: Times) -> Result<Self, Error> {
        if times.count() != Some(self.steps()) {
            return Err(Error::Shape {
                what: "times",
                met: format!("{} values", times.raw().len()),
                wanted: format!("{}, one for each step", self.steps()),
            });
        }
        self.times = times;
        Ok(self)
    }

    /// The same frames under other names of agents and hypotheses.
    ///
    /// # Errors
    /// [`Error::Shape`] where there is not one name for each.
    pub fn with_roster(mut self, roster: Roster) -> Result<Self, Error> {
        let counts = |roster: &Roster| (roster.agents().len(), roster.hypotheses().len());
        let (met, wanted) = (counts(&roster), counts(&self.roster));
        if met != wanted {
            let shown = |(agents, hypotheses): (usize, usize)| format!("{agents} agents and {hypotheses} hypotheses");
            return Err(Error::Shape { what: "names", met: shown(met), wanted: shown(wanted) });
        }
        self.roster = roster;
        Ok(self)
    }

    /// T, the number of frames.
    pub fn steps(&self) -> usize {
        self.times.raw().len()
    }

    /// N, the number of agents.
    pub fn agents(&self) -> usize {
        self.roster.agents().len()
    }

    /// H, the number of log-ratios per agent.
    pub fn ratios(&self) -> usize {
        self.roster.ratios()
    }

    /// N·H, the numbers in a frame.
    pub fn width(&self) -> usize {
        self.agents() * self.ratios()
    }

    /// Λ_i, N × H, with the agents that are silent.
    pub fn frame(&self, step: usize) -> Frame<'_> {
        Frame::from_panel(self, step)
    }

    /// Λ_i for a run of steps side by side, N × (B·H).
    pub(crate) fn block(&self, steps: Range<usize>) -> MatRef<'_, f64> {
        let width = self.agents() * self.ratios();
        let cells = &self.log_beliefs[steps.start * width..steps.end * width];
        MatRef::from_column_major_slice(cells, self.agents(), steps.len() * self.ratios())
    }

    /// A range of steps as a panel of its own. Errors: an agent without a post in it.
    pub fn slice(&self, steps: Range<usize>) -> Result<Panel, Error> {
        let (agents, width) = (self.agents(), self.agents() * self.ratios());
        let episodes = self.episodes_within(&steps);
        let panel = Panel::new(
            self.roster.clone(),
            self.times.gathered(std::slice::from_ref(&steps)),
            self.log_beliefs[steps.start * width..steps.end * width].to_vec(),
            self.posts.as_ref().map(|posts| posts[steps.start * agents..steps.end * agents].to_vec()),
        )?;
        Ok(Panel { episodes, ..panel })
    }

    /// Some agents as a panel of their own, in this order.
    ///
    /// ```
    /// use headwater::{Panel, Roster};
    /// let panel = Panel::complete(Roster::numbered(3, 2).unwrap(), vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).unwrap();
    /// let some = panel.among(&[2, 0]).unwrap();
    /// assert_eq!((some.roster().agents(), some.cells()), (&["2".to_owned(), "0".to_owned()][..], &[0.3, 0.1, 0.6, 0.4][..]));
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] for an index beyond the agents, and what [`Roster::new`] tells: fewer than one, or one twice.
    pub fn among(&self, agents: &[usize]) -> Result<Panel, Error> {
        if let Some(beyond) = agents.iter().find(|agent| **agent >= self.agents()) {
            return Err(Error::Shape {
                what: "index of an agent",
                met: beyond.to_string(),
                wanted: format!("below {}", self.agents()),
            });
        }
        let roster = Roster::new(self.roster.names(agents), self.roster.hypotheses().iter().cloned())?;
        let columns = self.log_beliefs.chunks_exact(self.agents());
        let log_beliefs = columns.flat_map(|column| agents.iter().map(|&agent| column[agent])).collect();
        let posts = self.posts.as_ref().map(|posts| {
            posts.chunks_exact(self.agents()).flat_map(|step| agents.iter().map(|&agent| step[agent])).collect()
        });
        let panel = Panel::new(roster, self.times.clone(), log_beliefs, posts)?;
        Ok(Panel { episodes: self.episodes.clone(), ..panel })
    }

    /// Every agent's series shifted circularly by its own offset in each episode, together with its silence and post counts.
    /// `offsets` are those of all agents in the first episode, then those in the second, and so on.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of offsets.
    pub fn rotated(&self, offsets: &[usize]) -> Result<Panel, Error> {
        let (agents, width) = (self.agents(), self.width());
        if offsets.len() != agents * self.episodes.count() {
            return Err(Error::Shape {
                what: "offsets",
                met: offsets.len().to_string(),
                wanted: format!("{}, one for each agent and episode", agents * self.episodes.count()),
            });
        }
        let episode_of: Vec<(usize, Range<usize>)> = self
            .episodes
            .ranges()
            .enumerate()
            .flat_map(|(number, range)| range.clone().map(move |_| (number, range.clone())))
            .collect();
        let from = |step: usize, agent: usize| {
            let (number, range) = &episode_of[step];
            range.start + (step - range.start + offsets[number * agents + agent]) % range.len()
        };
        let cells = (0..self.log_beliefs.len()).map(|cell| {
            let (step, within) = (cell / width, cell % width);
            self.log_beliefs[from(step, within % agents) * width + within]
        });
        let posts = self.posts.as_ref().map(|posts| {
            (0..posts.len()).map(|cell| posts[from(cell / agents, cell % agents) * agents + cell % agents]).collect()
        });
        let panel = Panel::new(self.roster.clone(), self.times.clone(), cells.collect(), posts)?;
        Ok(Panel { episodes: self.episodes.clone(), ..panel })
    }

    /// Several ranges of steps concatenated into one panel; where there are several episodes, each range becomes one.
    /// Errors: an agent without a post in them.
    pub(crate) fn joined(&self, stretches: &[Range<usize>]) -> Result<Panel, Error> {
        let (agents, width) = (self.agents(), self.width());
        let episodes = self.episodes_joined(stretches);
        let cells: Vec<f64> = stretches
            .iter()
            .flat_map(|steps| &self.log_beliefs[steps.start * width..steps.end * width])
            .copied()
            .collect();
        let posts = self.posts.as_ref().map(|posts| {
            stretches.iter().flat_map(|steps| &posts[steps.start * agents..steps.end * agents]).copied().collect()
        });
        let steps = cells.len() / width;
        let panel = Panel::new(self.roster.clone(), Times::Steps((0..steps as i64).collect()), cells, posts)?;
        Ok(Panel { episodes, ..panel })
    }

    /// The frames in column order, one after another.
    pub fn cells(&self) -> &[f64] {
        &self.log_beliefs
    }

    /// Number of posts of an agent at a step; 0 means silence.
    pub fn posts(&self, step: usize, agent: usize) -> u32 {
        self.posts.as_ref().map_or(1, |posts| posts[step * self.agents() + agent])
    }

    /// Whether every agent speaks at every step.
    pub fn is_complete(&self) -> bool {
        self.posts.as_ref().is_none_or(|posts| posts.iter().all(|&count| count > 0))
    }

    /// Number of silent cells per agent.
    pub fn silence(&self) -> Vec<usize> {
        let mut silent = vec![0; self.agents()];
        if let Some(posts) = &self.posts {
            for frame in posts.chunks_exact(self.agents()) {
                for (count, silent) in frame.iter().zip(&mut silent) {
                    *silent += usize::from(*count == 0);
                }
            }
        }
        silent
    }

    fn never_speaking(&self) -> Vec<usize> {
        let steps = self.steps();
        let silence = self.silence();
        silence.iter().enumerate().filter(|(_, silent)| **silent == steps).map(|(agent, _)| agent).collect()
    }

    /// Fills silent cells with the agent's last belief, and before its first post with its first one, as the paper does; in
    /// each episode for itself. Who is absent from an episode stays silent in it. Returns how many cells were filled.
    pub fn carry_forward(mut self) -> (Self, usize) {
        let Some(posts) = self.posts.take() else { return (self, 0) };
        let (agents, ratios) = (self.agents(), self.ratios());
        let mut filled = 0;
        let mut absent = Vec::new();
        for range in self.episodes.clone().ranges() {
            let mut last: Vec<Option<usize>> = vec![None; agents];
            for step in range.clone() {
                for agent in 0..agents {
                    if posts[step * agents + agent] > 0 {
                        if last[agent].is_none() {
                            (range.start..step).for_each(|early| self.copy_cell(agent, step, early, ratios));
                            filled += step - range.start;
                        }
                        last[agent] = Some(step);
                    } else if let Some(from) = last[agent] {
                        self.copy_cell(agent, from, step, ratios);
                        filled += 1;
                    }
                }
            }
            let never = (0..agents).filter(|agent| last[*agent].is_none());
            absent.extend(never.flat_map(|agent| range.clone().map(move |step| step * agents + agent)));
        }
        if !absent.is_empty() {
            let mut present = vec![1; posts.len()];
            absent.into_iter().for_each(|cell| present[cell] = 0);
            self.posts = Some(present);
        }
        (self, filled)
    }

    /// Undoes [`Panel::carry_forward`] where it was not recorded: a belief equal to the previous one in every bit is taken
    /// as silence. Returns how many cells that is. Every other cell counts as one post.
    pub fn silence_repeats(mut self) -> (Self, usize) {
        let (agents, ratios, steps) = (self.agents(), self.ratios(), self.steps());
        let cell = |step: usize, ratio: usize, agent: usize| self.log_beliefs[(step * ratios + ratio) * agents + agent];
        let mut posts: Vec<u32> = (0..steps * agents).map(|place| self.posts(place / agents, place % agents)).collect();
        let mut silent = 0;
        for step in (1..steps).filter(|step| !self.episodes.begins(*step)) {
            for agent in 0..agents {
                let same = (0..ratios).all(|ratio| cell(step, ratio, agent) == cell(step - 1, ratio, agent));
                if same && posts[step * agents + agent] > 0 {
                    posts[step * agents + agent] = 0;
                    silent += 1;
                }
            }
        }
        self.posts = (silent > 0).then_some(posts).or(self.posts);
        (self, silent)
    }

    fn copy_cell(&mut self, agent: usize, from: usize, to: usize, ratios: usize) {
        let agents = self.agents();
        for ratio in 0..ratios {
            self.log_beliefs[(to * ratios + ratio) * agents + agent] =
                self.log_beliefs[(from * ratios + ratio) * agents + agent];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_become_silence_again() {
        let roster = Roster::numbered(2, 2).unwrap();
        let times = Times::Steps((0..4).collect());
        let said =
            Panel::new(roster, times, vec![1.0, 5.0, 0.0, 6.0, 0.0, 0.0, 2.0, 7.0], Some(vec![1, 1, 0, 1, 0, 0, 1, 1]));
        let (carried, filled) = said.unwrap().carry_forward();
        let (undone, silent) = carried.silence_repeats();
        assert_eq!((filled, silent), (3, 3));
        assert_eq!(undone.silence(), [2, 1]);
        assert_eq!((undone.posts(1, 0), undone.posts(3, 0)), (0, 1));
    }
}
