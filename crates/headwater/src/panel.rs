//! The panel: T × N × H log-beliefs with a mask, the only shape learners see.
//!
//! In: rows (time, agent, beliefs) through [`PanelBuilder`], or a whole array. Out: a [`Panel`] without NaN, in time
//! order, one frame per step. This is the door: what is wrong with a belief is said here and nowhere later.
//!
//! A frame is stored as the N × H matrix Λ_i in column order, frames one after another, so that a run of frames *is*
//! the N × (B·H) matrix of the block kernels, without a copy.

use crate::{Error, Roster};
use faer::MatRef;
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

/// A probability of zero is raised to this before the logarithm, and counted.
pub const SMALLEST_PROBABILITY: f64 = 1e-12;

/// Probabilities must sum to one within this.
pub const SUM_TOLERANCE: f64 = 1e-6;

/// A log-ratio beyond this is no opinion, and its square would leave the range of numbers.
pub const LARGEST_LOG_RATIO: f64 = 1e50;

/// Cells that are looked at in one task.
const CELLS_AT_ONCE: usize = 1 << 15;

/// In a builder: an agent said that it was silent, which is not the same as saying nothing.
const SAID_SILENT: u32 = u32::MAX;

/// How many steps of silence a gap may open for each step that is present before we doubt the times.
const MOST_SILENCE: u64 = 1000;

/// Turns probabilities into log-ratios `log ψ(θ_0)/ψ(θ_j)`; returns how many zeros were raised.
///
/// ```
/// let mut ratio = [0.0];
/// let raised = headwater::panel::log_ratios(&[0.75, 0.25], &mut ratio, &["yes", "no"]).unwrap();
/// assert_eq!((raised, ratio[0]), (0, 3f64.ln()));
/// ```
pub fn log_ratios<S: AsRef<str>>(probabilities: &[f64], out: &mut [f64], hypotheses: &[S]) -> Result<usize, Error> {
    if let (&[first, second], [ratio]) = (probabilities, &mut *out)
        && let Some(found) = log_ratio(first, second)
    {
        *ratio = found;
        return Ok(0);
    }
    let mut raised = 0;
    let mut sum = 0.0;
    for (position, &value) in probabilities.iter().enumerate() {
        let problem = if !value.is_finite() {
            "a probability must be a finite number in 0…1"
        } else if value < 0.0 {
            "a probability must not be negative"
        } else {
            raised += usize::from(value == 0.0);
            sum += value;
            continue;
        };
        let hypothesis = hypotheses[position].as_ref().to_owned();
        return Err(Error::Belief { hypothesis, problem: format!("met {value}; {problem}") });
    }
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        let first = hypotheses[0].as_ref();
        let last = hypotheses[hypotheses.len() - 1].as_ref();
        return Err(Error::Belief {
            hypothesis: format!("{first}…{last}"),
            problem: format!("the probabilities sum to {sum}, but must sum to 1 within {SUM_TOLERANCE:e}"),
        });
    }
    // One rounding of the quotient costs less than the difference of two large logarithms.
    let raised_to = |value: f64| if value == 0.0 { SMALLEST_PROBABILITY } else { value };
    let reference = raised_to(probabilities[0]);
    for (ratio, &value) in out.iter_mut().zip(&probabilities[1..]) {
        let quotient = reference / raised_to(value);
        // Beyond the range of a quotient the logarithms are far enough apart to be subtracted.
        *ratio = if quotient.is_normal() { quotient.ln() } else { reference.ln() - raised_to(value).ln() };
    }
    Ok(raised)
}

/// What nearly all beliefs need: two hypotheses, and nothing to be said. `None` where [`log_ratios`] has to look closer.
#[inline]
pub fn log_ratio(first: f64, second: f64) -> Option<f64> {
    let quotient = first / second;
    let plain = first > 0.0 && second > 0.0 && (first + second - 1.0).abs() <= SUM_TOLERANCE && quotient.is_normal();
    plain.then(|| quotient.ln())
}

/// The inverse of [`log_ratios`]: H log-ratios to |Θ| probabilities, without overflow.
pub fn probabilities(log_ratios: impl Iterator<Item = f64> + Clone, out: &mut Vec<f64>) {
    let lowest = log_ratios.clone().fold(0.0, f64::min);
    out.clear();
    out.push(lowest.exp());
    out.extend(log_ratios.map(|ratio| (lowest - ratio).exp()));
    let sum: f64 = out.iter().sum();
    out.iter_mut().for_each(|value| *value /= sum);
}

/// What the times of a panel are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Times {
    /// Step numbers.
    Steps(Vec<i64>),
    /// Instants, microseconds since 1970 in UTC.
    Instants(Vec<i64>),
}

impl Times {
    /// The raw numbers, whatever their unit.
    pub fn raw(&self) -> &[i64] {
        match self {
            Times::Steps(times) | Times::Instants(times) => times,
        }
    }
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

    /// A panel from its parts. `posts[t·N + k]` is the count behind a cell, 0 for silence.
    pub fn new(
        roster: Roster,
        times: Times,
        mut log_beliefs: Vec<f64>,
        posts: Option<Vec<u32>>,
    ) -> Result<Self, Error> {
        let (steps, agents, ratios) = (times.raw().len(), roster.agents().len(), roster.ratios());
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
        // Compared the way that NaN fails; a whole chunk at a time, which is what vectors are for.
        let fine = |value: f64| value.abs() <= LARGEST_LOG_RATIO;
        let sound = |chunk: &[f64]| chunk.iter().fold(true, |sound, value| sound & fine(*value));
        if !log_beliefs.par_chunks(CELLS_AT_ONCE).all(sound)
            && let Some(bad) = log_beliefs.iter().position(|value| !fine(*value))
        {
            let (frame, ratio, agent) = (bad / (agents * ratios), bad / agents % ratios, bad % agents);
            return Err(Error::Belief {
                hypothesis: roster.hypotheses()[ratio + 1].clone(),
                problem: format!(
                    "met {} for agent {:?} at step {frame}; a log-ratio must be a number of moderate size",
                    log_beliefs[bad],
                    roster.agents()[agent]
                ),
            });
        }
        let posts = posts.filter(|posts| posts.iter().any(|&count| count != 1));
        let panel = Panel { roster, times, log_beliefs, posts };
        let silent = panel.never_speaking();
        if !silent.is_empty() {
            return Err(Error::NeverSpeaks { agents: panel.roster.names(&silent) });
        }
        Ok(panel)
    }

    /// Names of agents and hypotheses.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// When each frame was.
    pub fn times(&self) -> &Times {
        &self.times
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

    /// Λ_i, N × H.
    pub fn frame(&self, step: usize) -> MatRef<'_, f64> {
        self.block(step..step + 1)
    }

    /// Λ_i for a run of steps side by side, N × (B·H).
    pub fn block(&self, steps: Range<usize>) -> MatRef<'_, f64> {
        let width = self.agents() * self.ratios();
        let cells = &self.log_beliefs[steps.start * width..steps.end * width];
        MatRef::from_column_major_slice(cells, self.agents(), steps.len() * self.ratios())
    }

    /// A stretch of the panel; agents that say nothing in it are an error.
    pub fn slice(&self, steps: Range<usize>) -> Result<Panel, Error> {
        let (agents, width) = (self.agents(), self.agents() * self.ratios());
        let times = self.times.raw()[steps.clone()].to_vec();
        Panel::new(
            self.roster.clone(),
            match self.times {
                Times::Steps(_) => Times::Steps(times),
                Times::Instants(_) => Times::Instants(times),
            },
            self.log_beliefs[steps.start * width..steps.end * width].to_vec(),
            self.posts.as_ref().map(|posts| posts[steps.start * agents..steps.end * agents].to_vec()),
        )
    }

    /// The same beliefs with every agent's series rotated by its own offset, silence and counts with it.
    pub fn rotated(&self, offsets: &[usize]) -> Result<Panel, Error> {
        let (agents, width, steps) = (self.agents(), self.width(), self.steps());
        let from = |step: usize, agent: usize| (step + offsets[agent]) % steps;
        let cells = (0..self.log_beliefs.len()).map(|cell| {
            let (step, within) = (cell / width, cell % width);
            self.log_beliefs[from(step, within % agents) * width + within]
        });
        let posts = self.posts.as_ref().map(|posts| {
            (0..posts.len()).map(|cell| posts[from(cell / agents, cell % agents) * agents + cell % agents]).collect()
        });
        Panel::new(self.roster.clone(), self.times.clone(), cells.collect(), posts)
    }

    /// Stretches of the panel one after another, as if time had gone that way; agents that say nothing in them are an
    /// error.
    pub(crate) fn joined(&self, stretches: &[Range<usize>]) -> Result<Panel, Error> {
        let (agents, width) = (self.agents(), self.width());
        let cells: Vec<f64> = stretches
            .iter()
            .flat_map(|steps| &self.log_beliefs[steps.start * width..steps.end * width])
            .copied()
            .collect();
        let posts = self.posts.as_ref().map(|posts| {
            stretches.iter().flat_map(|steps| &posts[steps.start * agents..steps.end * agents]).copied().collect()
        });
        let steps = cells.len() / width;
        Panel::new(self.roster.clone(), Times::Steps((0..steps as i64).collect()), cells, posts)
    }

    /// The frames in column order, one after another.
    pub fn cells(&self) -> &[f64] {
        &self.log_beliefs
    }

    /// Posts behind a cell; 0 means silence.
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

    /// The paper's rule for silence: an agent that says nothing still holds its last opinion, and before its first
    /// word its first one. Returns how many cells were filled.
    pub fn carry_forward(mut self) -> (Self, usize) {
        let Some(posts) = self.posts.take() else { return (self, 0) };
        let (agents, ratios) = (self.agents(), self.ratios());
        let mut filled = 0;
        let mut last: Vec<Option<usize>> = vec![None; agents];
        for step in 0..self.steps() {
            for agent in 0..agents {
                if posts[step * agents + agent] > 0 {
                    if last[agent].is_none() {
                        (0..step).for_each(|early| self.copy_cell(agent, step, early, ratios));
                        filled += step;
                    }
                    last[agent] = Some(step);
                } else if let Some(from) = last[agent] {
                    self.copy_cell(agent, from, step, ratios);
                    filled += 1;
                }
            }
        }
        (self, filled)
    }

    /// What [`Panel::carry_forward`] did, undone where nobody noted it: a belief that is the same to the last bit as the one
    /// before is silence. Returns how many cells that is. Every other cell counts as one post.
    pub fn silence_repeats(mut self) -> (Self, usize) {
        let (agents, ratios, steps) = (self.agents(), self.ratios(), self.steps());
        let cell = |step: usize, ratio: usize, agent: usize| self.log_beliefs[(step * ratios + ratio) * agents + agent];
        let mut posts: Vec<u32> = (0..steps * agents).map(|place| self.posts(place / agents, place % agents)).collect();
        let mut silent = 0;
        for step in 1..steps {
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
    latest: usize,
    /// Room for agents in a frame; doubles when it runs out.
    capacity: usize,
    log_beliefs: Vec<f64>,
    posts: Vec<u32>,
    /// Log-ratios that the panel may have, silent ones included.
    limit: usize,
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
            latest: 0,
            capacity: 8,
            log_beliefs: Vec::new(),
            posts: Vec::new(),
            limit: usize::MAX,
        }
    }

    /// Limits the log-ratios that the panel may have, silent ones included: a few rows with many names at many times would fill
    /// the memory with silence. Beyond it [`PanelBuilder::push`] and [`PanelBuilder::finish`] return [`Error::TooLarge`].
    pub fn set_limit(&mut self, log_ratios: usize) {
        self.limit = log_ratios;
    }

    fn check_size(&self, steps: usize, agents: usize, ratios: usize) -> Result<(), Error> {
        match steps.checked_mul(agents).and_then(|cells| cells.checked_mul(ratios)) {
            Some(numbers) if numbers <= self.limit => Ok(()),
            _ => Err(Error::TooLarge { steps, agents, ratios, limit: self.limit }),
        }
    }

    /// Adds the log-ratios of one agent at one time. `posts = 0` says that the agent was silent.
    pub fn push(&mut self, time: i64, agent: &str, log_ratios: &[f64], posts: u32) -> Result<(), Error> {
        let ratios = self.hypotheses.len() - 1;
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

    /// Sorts by time, opens the gaps, and checks what only the whole can show.
    pub fn finish(mut self) -> Result<Panel, Error> {
        let roster = Roster::new(std::mem::take(&mut self.agents), std::mem::take(&mut self.hypotheses))?;
        let (agents, ratios) = (roster.agents().len(), roster.ratios());
        narrow(&mut self.log_beliefs, self.capacity, agents, self.frames.len() * ratios);
        narrow(&mut self.posts, self.capacity, agents, self.frames.len());
        self.sort(agents, ratios);
        let times = self.place(&roster, agents, ratios)?;
        self.posts.iter_mut().filter(|posts| **posts == SAID_SILENT).for_each(|posts| *posts = 0);
        Panel::new(roster, times, self.log_beliefs, Some(self.posts))
    }

    fn sort(&mut self, agents: usize, ratios: usize) {
        if self.frames.is_sorted() {
            return;
        }
        // Follow the cycles of the sorting permutation, so that only one frame is ever held twice.
        let mut order: Vec<usize> = (0..self.frames.len()).collect();
        order.sort_by_key(|&frame| self.frames[frame]);
        permute(&mut self.frames, 1, &order);
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
        let raw = (0..steps as i64).map(|index| first + index * step).collect();
        Ok(match self.unit {
            Unit::Steps => Times::Steps(raw),
            Unit::Microseconds => Times::Instants(raw),
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
    use proptest::prelude::*;

    fn names() -> Vec<String> {
        vec!["a".into(), "b".into(), "c".into()]
    }

    #[test]
    fn probabilities_are_checked_at_the_door() {
        let mut out = [0.0; 2];
        let mut say = |values: &[f64]| log_ratios(values, &mut out, &names()).map_err(|error| error.to_string());
        assert_eq!(say(&[0.5, 0.5, 0.0]), Ok(1));
        assert!(say(&[0.5, -0.1, 0.6]).unwrap_err().contains("\"b\": met -0.1"));
        assert!(say(&[f64::NAN, 0.5, 0.5]).unwrap_err().contains("\"a\": met NaN"));
        assert!(say(&[0.5, 0.4, 0.0]).unwrap_err().contains("sum to 0.9"));
        log_ratios(&[1.0 - 2e-17, 1e-17, 1e-17], &mut out, &names()).unwrap();
        assert!((out[0] - 1e17f64.ln()).abs() < 1e-12, "small but positive is left alone");
        log_ratios(&[1.0, 0.0, 0.0], &mut out, &names()).unwrap();
        assert!((out[0] - 1e12f64.ln()).abs() < 1e-12);
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
        assert_eq!(panel.frame(3)[(20, 0)], 20.0, "before the first word its first value stands");
    }

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
    fn bad_panels_are_named() {
        let mut rows = PanelBuilder::new(names(), Unit::Steps);
        rows.push(0, "x", &[0.0, 0.0], 1).unwrap();
        assert!(matches!(rows.push(0, "x", &[0.0, 0.0], 1), Err(Error::DuplicateBelief { .. })));
        rows.push(0, "z", &[0.0, 0.0], 0).unwrap();
        assert!(rows.push(0, "z", &[0.0, 0.0], 1).is_err(), "silence said twice is said twice");
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

    proptest! {
        #[test]
        fn probabilities_undo_log_ratios(raw in proptest::collection::vec(1e-6f64..1.0, 2..6)) {
            let sum: f64 = raw.iter().sum();
            let wanted: Vec<f64> = raw.iter().map(|value| value / sum).collect();
            let names: Vec<String> = (0..raw.len()).map(|index| index.to_string()).collect();
            let mut ratios = vec![0.0; raw.len() - 1];
            log_ratios(&wanted, &mut ratios, &names).unwrap();
            let mut back = Vec::new();
            probabilities(ratios.iter().copied(), &mut back);
            for (met, wanted) in back.iter().zip(&wanted) {
                prop_assert!((met - wanted).abs() < 1e-14);
            }
        }
    }
}
