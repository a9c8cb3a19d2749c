//! Is it real? Forecast skill against simple rivals, intervals by resampling, and a null in which nobody listens.
//!
//! In: a model and the panel it was learned from. Out: [`Skill`], [`Intervals`], [`Significance`]. A model that forecasts
//! no better than "nobody changes their mind" and each agent's own past has found nothing about who listens to whom.
//!
//! A resample is a pure function of its number: any number of threads draws the same ones.

use crate::learn::moments::{Moments, affordable};
use crate::learn::regressors::DistinctAgents;
use crate::learn::ring::Ring;
use crate::learn::state_space::{self, Resampling, StateSpaceParams};
use crate::learn::whitened::{self, Estimate, WhitenedParams};
use crate::model::{Method, Skill};
use crate::{Combination, Error, Model, Panel, progress};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Squared one-step errors on unseen frames, summed over agents and log-ratios.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Forecast {
    /// The first frame forecast.
    pub from: usize,
    /// One past the last frame forecast; 0 stands for the end of the panel.
    #[serde(default)]
    pub end: usize,
    /// Number of frames forecast.
    pub steps: usize,
    /// Summed squared error of the model.
    pub error: f64,
    /// The same for "nobody changes their mind".
    pub persistence: f64,
}

impl Forecast {
    /// Adds the forecasts of a later stretch.
    pub fn add(&mut self, later: &Forecast) {
        self.steps += later.steps;
        self.end = self.end.max(later.end);
        self.error += later.error;
        self.persistence += later.persistence;
    }
}

/// Whether the data support an answer, in a sentence for the first line of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the model forecasts better than its rivals.
    pub supported: bool,
    /// Why, with the numbers.
    pub text: String,
}

/// Share of false alarms tolerated among the agents called significant.
const FALSE_DISCOVERIES: f64 = 0.05;

/// Judges a model by its forecast skill and by how its data compare with their rotations.
pub fn judge(skill: Option<&Skill>, significance: &Significance) -> Verdict {
    let by_skill = verdict(skill);
    let Some(p) = significance.skill else { return by_skill };
    let found = discoveries(&significance.agents, FALSE_DISCOVERIES).into_iter().filter(|found| *found).count();
    let supported = by_skill.supported && p <= 0.05;
    let heard =
        format!("{found} of {} agents are heard by others more than chance would have it", significance.agents.len());
    let chance = format!("a series that nobody listened to would do as well with probability {p:.3}");
    let text = if supported {
        let reason =
            by_skill.text.trim_start_matches("The beliefs of these agents predict each other").trim_end_matches('.');
        format!("The beliefs of these agents predict each other better than chance{reason}; {chance}. {heard}.")
    } else {
        let reason = by_skill.text.split_once(": ").map_or("", |(_, reason)| reason).trim_end_matches('.');
        format!("No evidence that these agents listen to each other: {reason}; {chance}. {heard}.")
    };
    Verdict { supported, text }
}

/// Judges a model by its forecast skill on steps it had not seen.
pub fn verdict(skill: Option<&Skill>) -> Verdict {
    let Some(skill) = skill else {
        return Verdict {
            supported: false,
            text: "Not tested: this model carries no forecast on unseen steps, so nothing here says whether these agents listen to each other.".into(),
        };
    };
    let compared = |share: f64| match share {
        ..-10.0 => "more than ten times worse".to_owned(),
        ..=0.0 => format!("{:.1} % worse", -100.0 * share),
        _ => format!("{:.1} % better", 100.0 * share),
    };
    let numbers = format!(
        "on {} unseen steps the network forecasts {} than each agent's own past and {} than \"nobody changes their mind\"",
        skill.steps,
        compared(skill.against_own_past),
        compared(skill.against_persistence)
    );
    // News that reaches all moves beliefs together though nobody listens: the rotations do not tell that apart.
    let gained = skill.beyond_common.filter(|_| skill.against_own_past > 0.0);
    let trend = gained.map_or(String::new(), |beyond| {
        let why = if beyond > 0.0 { "" } else { ": the same news for all would explain as much" };
        format!("; with both told what the others said on the whole a step before, {}{why}", compared(beyond))
    });
    let supported = skill.against_own_past > 0.0
        && skill.against_persistence > 0.0
        && skill.beyond_common.is_none_or(|beyond| beyond > 0.0);
    let text = if supported {
        format!("The beliefs of these agents predict each other: {numbers}{trend}.")
    } else {
        format!("No evidence that these agents listen to each other: {numbers}{trend}.")
    };
    Verdict { supported, text }
}

/// Where there is too little to hold a part out there is no forecast, and the verdict says so; who asked for the end gets it.
pub(crate) fn unless_stopped<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Err(Error::Stopped) => Err(Error::Stopped),
        other => Ok(other.ok()),
    }
}

/// Forecasts of the frames from `from` on by a model that has not seen them:
/// Λ_i ≈ (1−δ)AᵀΛ_{i−1} + δL̂.
pub fn forecast(panel: &Panel, from: usize, model: &Model) -> Result<Forecast, Error> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    if from == 0 || from >= panel.steps() {
        return Err(Error::NotReady { seen: panel.steps(), needed: from.max(1) + 1 });
    }
    let mut forecast = Forecast { from, steps: panel.steps() - from, ..Forecast::default() };
    let mut heard = vec![0.0; agents];
    for ratio in 0..ratios {
        let evidence = model.evidence.ratio(ratio);
        let line = |step: usize| &panel.cells()[(step * ratios + ratio) * agents..(step * ratios + ratio + 1) * agents];
        for step in from..panel.steps() {
            let (before, now) = (line(step - 1), line(step));
            model.combination.hear_into(before, &mut heard);
            for agent in 0..agents {
                let expected = (1.0 - model.adaptation) * heard[agent] + model.adaptation * evidence[agent];
                forecast.error += (now[agent] - expected).powi(2);
                forecast.persistence += (now[agent] - before[agent]).powi(2);
            }
        }
    }
    Ok(forecast)
}

/// Skill of a forecast of the last frames of a panel. `None` when nothing was forecast or nothing changed.
pub fn skill(panel: &Panel, forecast: &Forecast) -> Option<Skill> {
    let end = if forecast.end == 0 { panel.steps() } else { forecast.end };
    let own_past = own_past_error(panel, end.checked_sub(forecast.steps)?..end)?;
    if forecast.steps == 0 || forecast.persistence <= 0.0 || own_past <= 0.0 {
        return None;
    }
    Some(Skill {
        against_persistence: 1.0 - forecast.error / forecast.persistence,
        against_own_past: 1.0 - forecast.error / own_past,
        beyond_common: None,
        steps: forecast.steps,
    })
}

/// Summed squared error over these frames, when each log-ratio of each agent is forecast by its own AR(1) with
/// intercept, fitted to the frames before.
fn own_past_error(panel: &Panel, steps: Range<usize>) -> Option<f64> {
    let from = steps.start;
    if from < 3 {
        return None;
    }
    let width = panel.agents() * panel.ratios();
    let cells = panel.cells();
    let mut means = vec![[0.0; 2]; width];
    let pairs = (from - 1) as f64;
    for step in 1..from {
        for cell in 0..width {
            means[cell][0] += cells[(step - 1) * width + cell] / pairs;
            means[cell][1] += cells[step * width + cell] / pairs;
        }
    }
    let mut products = vec![[0.0; 2]; width];
    for step in 1..from {
        for cell in 0..width {
            let x = cells[(step - 1) * width + cell] - means[cell][0];
            let y = cells[step * width + cell] - means[cell][1];
            products[cell][0] += x * x;
            products[cell][1] += x * y;
        }
    }
    let mut error = 0.0;
    for step in steps {
        for cell in 0..width {
            let [square, product] = products[cell];
            let slope = if square > 0.0 { product / square } else { 0.0 };
            let forecast = means[cell][1] + slope * (cells[(step - 1) * width + cell] - means[cell][0]);
            error += (cells[step * width + cell] - forecast).powi(2);
        }
    }
    Some(error)
}

/// How a panel is fitted, for fitting it again.
#[derive(Debug, Clone, PartialEq)]
pub enum Learning {
    /// By the whitened regression, silence filled.
    Whitened(WhitenedParams),
    /// By the state-space model, silence and noise as they are.
    StateSpace(StateSpaceParams),
}

impl From<&WhitenedParams> for Learning {
    fn from(params: &WhitenedParams) -> Self {
        Learning::Whitened(params.clone())
    }
}

impl From<&StateSpaceParams> for Learning {
    fn from(params: &StateSpaceParams) -> Self {
        Learning::StateSpace(params.clone())
    }
}

impl Learning {
    /// What a model was probably learned with; models of other learners are judged by the whitened regression.
    pub fn like(model: &Model) -> Self {
        match model.method {
            Method::StateSpace => Learning::StateSpace(StateSpaceParams::like(model)),
            _ => Learning::Whitened(WhitenedParams::like(model)),
        }
    }
}

/// Block bootstrap of the influence shares.
///
/// The panel is cut into stretches; a resample draws as many of them with replacement, adds up their moments and fits
/// those. No second pass over the data. What is certified in the model is exact and stays.
///
/// With the state-space model the moments are those of the smoothed beliefs, which take the model's word for what was
/// hidden and so vary too little: a few resamples are smoothed and fitted anew, and all are stretched by how much more
/// those vary.
#[derive(Debug)]
pub struct Bootstrap<'a> {
    model: &'a Model,
    truth: usize,
    stretches: Stretches,
    seed: u64,
}

#[derive(Debug)]
enum Stretches {
    Seen { distinct: DistinctAgents, params: WhitenedParams, ring: Ring },
    Smoothed { resampling: Box<Resampling>, shares: Vec<f64>, middle: Vec<f64>, factor: f64 },
}

/// Resamples that are smoothed and fitted anew.
const REFITS: u64 = 8;

/// Their numbers, apart from those of the resamples.
const FIRST_REFIT: u64 = 1 << 40;

/// One resample: influence shares of all agents, and where each ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    shares: Vec<f64>,
    ranks: Vec<usize>,
}

/// What the resamples say of each agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Intervals {
    /// 90 % interval of the influence share.
    pub share: Vec<(f64, f64)>,
    /// 90 % interval of the rank.
    pub rank: Vec<(usize, usize)>,
    /// Probability of being among the top k.
    pub top: Vec<f64>,
}

/// Stretches a bootstrap cuts the panel into: long enough to keep what hangs together, many enough to vary.
const STRETCHES: usize = 30;

impl<'a> Bootstrap<'a> {
    /// Prepares resampling of the panel a model was learned from. `learning` is how it was learned.
    pub fn new(panel: &Panel, model: &'a Model, learning: impl Into<Learning>, seed: u64) -> Result<Self, Error> {
        same_agents(panel, model)?;
        let transitions = panel.steps().saturating_sub(1);
        if transitions < 10 {
            return Err(Error::NotReady { seen: panel.steps(), needed: 11 });
        }
        let count = STRETCHES.min(transitions / 2);
        affordable(panel.width(), count + 1, "resample fewer agents")?;
        let truth = crate::influence(model)?.truth;
        let stretches = match learning.into() {
            Learning::Whitened(params) => Stretches::Seen {
                distinct: DistinctAgents::of(panel),
                params: WhitenedParams { symbols: false, ..params },
                ring: Ring::of(panel, count),
            },
            Learning::StateSpace(params) => stretched(panel, model, truth, &params, count, seed)?,
        };
        Ok(Bootstrap { model, truth, stretches, seed })
    }

    /// The resample of this number.
    pub fn draw(&self, number: u64) -> Result<Draw, Error> {
        let mut rng = numbered(self.seed, number);
        let mut numbers = |count: usize| -> Vec<usize> { (0..count).map(|_| rng.random_range(0..count)).collect() };
        let estimate = match &self.stretches {
            Stretches::Seen { distinct, params, ring } => {
                whitened::estimate(&ring.draw(numbers(ring.len()))?, distinct, params, Some(self.model))?
            }
            Stretches::Smoothed { resampling, .. } => resampling.draw(&numbers(resampling.len()))?,
        };
        let mut shares = shares(&estimate, self.truth)?;
        if let Stretches::Smoothed { shares: known, middle, factor, .. } = &self.stretches {
            let off = shares.iter().zip(middle).map(|(share, middle)| factor * (share - middle));
            shares = known.iter().zip(off).map(|(known, off)| known + off).collect();
        }
        let mut ranks = vec![0; shares.len()];
        by_share(&shares).into_iter().enumerate().for_each(|(position, agent)| ranks[agent] = position + 1);
        Ok(Draw { shares, ranks })
    }

    /// Intervals from many resamples.
    pub fn intervals(&self, draws: &[Draw], top: usize) -> Result<Intervals, Error> {
        let agents = draws.first().map_or(0, |draw| draw.shares.len());
        let mut intervals = Intervals { share: Vec::new(), rank: Vec::new(), top: Vec::new() };
        for agent in 0..agents {
            let mut shares: Vec<f64> = draws.iter().map(|draw| draw.shares[agent]).collect();
            let mut ranks: Vec<usize> = draws.iter().map(|draw| draw.ranks[agent]).collect();
            let within = ranks.iter().filter(|rank| **rank <= top).count();
            shares.sort_by(f64::total_cmp);
            ranks.sort_unstable();
            let (low, high) = ends(draws.len());
            intervals.share.push((shares[low], shares[high]));
            intervals.rank.push((ranks[low], ranks[high]));
            intervals.top.push(within as f64 / draws.len() as f64);
        }
        Ok(intervals)
    }
}

/// Draws by their numbers, on all threads.
fn many<T: Send>(what: &str, count: u64, draw: impl Fn(u64) -> Result<T, Error> + Sync) -> Result<Vec<T>, Error> {
    let stage = progress::stage(what, count);
    let one = |number: &u64| {
        progress::check()?;
        let drawn = draw(*number)?;
        stage.advance();
        Ok(drawn)
    };
    let numbers: Vec<u64> = (0..count).collect();
    let mut all = Vec::with_capacity(numbers.len());
    // A few at a time: a thread that waits within one would begin the others, and hold them all.
    for few in numbers.chunks(4 * rayon::current_num_threads()) {
        all.extend(few.par_iter().map(one).collect::<Result<Vec<T>, Error>>()?);
    }
    Ok(all)
}

/// What this many resamples of the panel a model was learned from say of shares, ranks and the top.
pub fn intervals(
    panel: &Panel,
    model: &Model,
    learning: impl Into<Learning>,
    count: u64,
    top: usize,
    seed: u64,
) -> Result<Intervals, Error> {
    let bootstrap = Bootstrap::new(panel, model, learning, seed)?;
    let draws = many("resampling", count, |number| bootstrap.draw(number))?;
    bootstrap.intervals(&draws, top)
}

/// How a panel compares with this many of its rotations.
pub fn significance(
    panel: &Panel,
    learning: impl Into<Learning>,
    count: u64,
    seed: u64,
) -> Result<Significance, Error> {
    let rotation = CircularShifts::new(panel, learning, seed);
    let observed = rotation.observed()?;
    let draws = many("rotating", count, |number| rotation.draw(number))?;
    Ok(CircularShifts::compare(&observed, &draws))
}

/// Resampling of smoothed beliefs, and by how much more refits vary than draws from them.
fn stretched(
    panel: &Panel,
    model: &Model,
    truth: usize,
    params: &StateSpaceParams,
    count: usize,
    seed: u64,
) -> Result<Stretches, Error> {
    let resampling = Resampling::new(panel, model, params, count)?;
    let all: Vec<usize> = (0..count).collect();
    let known = shares(&Estimate { combination: model.combination.clone(), evidence: model.evidence.clone() }, truth)?;
    let middle = shares(&resampling.draw(&all)?, truth)?;
    let pairs = (0..REFITS).into_par_iter().map(|number| {
        let mut rng = numbered(seed, FIRST_REFIT + number);
        let numbers: Vec<usize> = (0..count).map(|_| rng.random_range(0..count)).collect();
        let quick = shares(&resampling.draw(&numbers)?, truth)?;
        let anew = match resampling.refit(panel, &numbers) {
            // Somebody says nothing in these stretches, or nothing that changes.
            Err(Error::NeverSpeaks { .. } | Error::Undefined { .. }) => return Ok((0.0, 0.0)),
            other => shares(&other?, truth)?,
        };
        Ok((squared_distance(&quick, &middle), squared_distance(&anew, &known)))
    });
    let pairs: Vec<(f64, f64)> = pairs.collect::<Result<_, Error>>()?;
    let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let (quick, anew) = (sum(|pair| pair.0), sum(|pair| pair.1));
    let factor = if quick > 0.0 { (anew / quick).sqrt().max(1.0) } else { 1.0 };
    Ok(Stretches::Smoothed { resampling: Box::new(resampling), shares: known, middle, factor })
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Positions of the 5 % and 95 % points among sorted draws.
fn ends(count: usize) -> (usize, usize) {
    let last = count.saturating_sub(1) as f64;
    ((0.05 * last).floor() as usize, (0.95 * last).ceil() as usize)
}

/// Influence shares of an estimate for a given truth; without a positive total, influence as it is.
fn shares(estimate: &Estimate, truth: usize) -> Result<Vec<f64>, Error> {
    let centrality = estimate.combination.centrality()?.values;
    let evidence = &estimate.evidence;
    let known = |agent: usize| -> f64 {
        (0..=evidence.ratios()).map(|other| evidence.of(agent, other) - evidence.of(agent, truth)).sum()
    };
    let influence: Vec<f64> = centrality.iter().enumerate().map(|(agent, u)| u * known(agent)).collect();
    let total: f64 = influence.iter().sum();
    let scale = if total > 0.0 { total } else { 1.0 };
    Ok(influence.iter().map(|value| value / scale).collect())
}

fn by_share(shares: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]).then(a.cmp(&b)));
    order
}

/// The null in which nobody listens to anybody: every agent's series is rotated by its own random offset.
#[derive(Debug)]
pub struct CircularShifts<'a> {
    panel: &'a Panel,
    learning: Learning,
    seed: u64,
}

/// Rounds that the data and their rotations get alike from the same start; further ones cost time and change no verdict.
const NULL_ROUNDS: usize = 10;

/// What one fit says: how much each agent is heard by others, each edge, and the forecast skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    agents: Vec<f64>,
    edges: Vec<f64>,
    skill: Option<f64>,
}

/// How the data compare with their rotations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Significance {
    /// For each agent: how often a rotation has it heard as much.
    pub agents: Vec<f64>,
    /// For each weight, column by column; one on the diagonal.
    pub edges: Vec<f64>,
    /// How often a rotation forecasts as well.
    pub skill: Option<f64>,
    /// Rotations compared with.
    pub rotations: usize,
}

impl<'a> CircularShifts<'a> {
    /// Prepares rotations of a panel.
    pub fn new(panel: &'a Panel, learning: impl Into<Learning>, seed: u64) -> Self {
        let learning = match learning.into() {
            Learning::Whitened(params) => Learning::Whitened(WhitenedParams { symbols: false, ..params }),
            Learning::StateSpace(params) => {
                Learning::StateSpace(StateSpaceParams { rounds: NULL_ROUNDS, tolerance: 0.0, ..params })
            }
        };
        CircularShifts { panel, learning, seed }
    }

    /// The data as they are.
    pub fn observed(&self) -> Result<Heard, Error> {
        self.heard(self.panel)
    }

    /// The rotation of this number.
    pub fn draw(&self, number: u64) -> Result<Heard, Error> {
        self.heard(&rotated(self.panel, self.seed, number)?)
    }

    fn heard(&self, panel: &Panel) -> Result<Heard, Error> {
        affordable(panel.width(), 2, "rotate fewer agents")?;
        let (combination, skill) = match &self.learning {
            Learning::Whitened(params) => {
                let moments = Moments::of(panel, 1..panel.steps());
                let estimate = whitened::estimate(&moments, &DistinctAgents::of(panel), params, None)?;
                let forecast = unless_stopped(whitened::held_out(panel, params))?;
                (estimate.combination, forecast.and_then(|forecast| skill(panel, &forecast)))
            }
            // One fit for both: the network that forecasts is the one that is judged.
            Learning::StateSpace(params) => {
                let held_out = state_space::held_out(panel, params)?;
                (held_out.combination, held_out.skill)
            }
        };
        Ok(Heard {
            agents: heard_by_others(&combination),
            edges: combination.to_columns(),
            skill: skill.map(|skill| skill.against_own_past),
        })
    }

    /// P-values: (1 + rotations that reach the observed value) over (1 + rotations).
    pub fn compare(observed: &Heard, draws: &[Heard]) -> Significance {
        let p = |value: f64, of: &dyn Fn(&Heard) -> f64| {
            let reached = draws.iter().filter(|draw| of(draw) >= value).count();
            (1 + reached) as f64 / (1 + draws.len()) as f64
        };
        let agents = observed.agents.len();
        Significance {
            agents: (0..agents).map(|agent| p(observed.agents[agent], &|draw| draw.agents[agent])).collect(),
            edges: (0..agents * agents)
                .map(|cell| {
                    let own = cell / agents == cell % agents;
                    if own { 1.0 } else { p(observed.edges[cell], &|draw| draw.edges[cell]) }
                })
                .collect(),
            skill: observed.skill.map(|skill| p(skill, &|draw| draw.skill.unwrap_or(f64::NEG_INFINITY))),
            rotations: draws.len(),
        }
    }
}

/// The panel with every agent's series rotated by its own random offset: what each one is like stays, who listens to whom
/// does not.
pub fn rotated(panel: &Panel, seed: u64, number: u64) -> Result<Panel, Error> {
    let mut rng = numbered(seed, number);
    let offsets: Vec<usize> = (0..panel.agents()).map(|_| rng.random_range(0..panel.steps())).collect();
    panel.rotated(&offsets)
}

/// The weight all others give each agent.
fn heard_by_others(combination: &Combination) -> Vec<f64> {
    let mut heard = vec![0.0; combination.agents()];
    for (speaker, listener, weight) in combination.edges() {
        if speaker != listener {
            heard[speaker] += weight.max(0.0);
        }
    }
    heard
}

/// Benjamini and Hochberg: which of these p-values are significant when at most `rate` of them may be false.
///
/// ```
/// let significant = headwater::confidence::discoveries(&[0.01, 0.5, 0.02, 0.04], 0.05);
/// assert_eq!(significant, [true, false, true, false]);
/// ```
pub fn discoveries(p_values: &[f64], rate: f64) -> Vec<bool> {
    let mut sorted = p_values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let passing = sorted.iter().enumerate().filter(|(index, p)| **p <= rate * (index + 1) as f64 / count);
    let limit = passing.map(|(_, p)| *p).fold(f64::NEG_INFINITY, f64::max);
    p_values.iter().map(|p| *p <= limit).collect()
}

fn numbered(seed: u64, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}

fn same_agents(panel: &Panel, model: &Model) -> Result<(), Error> {
    if panel.roster() == &model.roster {
        return Ok(());
    }
    Err(Error::Shape {
        what: "panel",
        met: format!("{} agents, {} log-ratios, or other names", panel.agents(), panel.ratios()),
        wanted: "the agents and hypotheses of the model, in its order".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roster;

    #[test]
    fn skill_by_hand() {
        // Agent 0 alternates 1, −1: its own AR(1) is perfect. Agent 1 is silent until it jumps to 1 at step 10, which
        // its own flat past misses by 1 ten times over.
        let cells: Vec<f64> =
            (0..20).flat_map(|step| [if step % 2 == 0 { 1.0 } else { -1.0 }, f64::from(step >= 10)]).collect();
        let panel = Panel::complete(Roster::numbered(2, 2).unwrap(), cells).unwrap();
        let forecast = Forecast { from: 10, end: 20, steps: 10, error: 5.0, persistence: 40.0 };
        let skill = skill(&panel, &forecast).unwrap();
        assert_eq!(skill.against_persistence, 0.875);
        assert!((skill.against_own_past - 0.5).abs() < 1e-12, "{skill:?}");
        assert_eq!(super::skill(&panel, &Forecast::default()), None);
    }

    /// A short version of `cargo run --example trust`: 90 % intervals over 12 worlds of 8 agents, with slack for so few.
    #[test]
    fn intervals_cover_and_the_null_is_quiet() {
        use crate::simulate::{Likelihoods, WorldParams, simulate};
        let (mut covered, mut alarms, mut detected) = (0, 0, 0);
        for seed in 0..12 {
            let params = WorldParams {
                agents: 8,
                edge_probability: 0.4,
                hypotheses: 2,
                likelihoods: Likelihoods::Gaussian { dimension: 4 },
                steps: 150,
                seed: 7000 + seed,
                ..WorldParams::default()
            };
            let (panel, truth) = simulate(&params).unwrap();
            let params = WhitenedParams::default();
            let model = whitened::whitened(&panel, &params).unwrap();
            let bootstrap = Bootstrap::new(&panel, &model, &params, seed).unwrap();
            let draws: Vec<Draw> = (0..100).map(|number| bootstrap.draw(number).unwrap()).collect();
            assert_eq!(draws[7], bootstrap.draw(7).unwrap(), "a resample is a function of its number");
            let intervals = bootstrap.intervals(&draws, 3).unwrap();
            let shares = crate::influence(&truth).unwrap().share.unwrap();
            covered += (0..8)
                .filter(|&agent| (intervals.share[agent].0..=intervals.share[agent].1).contains(&shares[agent]))
                .count();
            assert!((intervals.top.iter().sum::<f64>() - 3.0).abs() < 1e-9, "three places among the top three");
            // The data themselves are far from their rotations; a rotation is not.
            let rotation = CircularShifts::new(&panel, &params, seed);
            let mut draws: Vec<Heard> = (0..40).map(|number| rotation.draw(number).unwrap()).collect();
            let found = CircularShifts::compare(&rotation.observed().unwrap(), &draws);
            detected += usize::from(found.skill.unwrap() <= 0.05);
            assert_eq!(judge(Some(&SOME), &found).supported, found.skill.unwrap() <= 0.05);
            let null = draws.swap_remove(0);
            let none = CircularShifts::compare(&null, &draws);
            alarms += none.agents.iter().filter(|p| **p <= 0.05).count();
        }
        assert!((78..=96).contains(&covered), "{covered} of 96");
        assert!(alarms <= 10, "{alarms} of 96");
        assert!(detected >= 5, "{detected} of 12 networks are told from their rotations by 30 forecasts");
    }

    const SOME: Skill = Skill { against_persistence: 0.5, against_own_past: 0.1, beyond_common: None, steps: 30 };

    #[test]
    fn what_is_certified_does_not_vary() {
        use crate::simulate::{WorldParams, simulate};
        let (panel, truth) = simulate(&WorldParams { steps: 120, ..WorldParams::default() }).unwrap();
        let params = WhitenedParams::default();
        let model = whitened::whitened(&panel, &params).unwrap();
        let bootstrap = Bootstrap::new(&panel, &model, &params, 1).unwrap();
        let draws: Vec<Draw> = (0..5).map(|number| bootstrap.draw(number).unwrap()).collect();
        let intervals = bootstrap.intervals(&draws, 3).unwrap();
        let shares = crate::influence(&truth).unwrap().share.unwrap();
        for (share, (low, high)) in shares.iter().zip(intervals.share) {
            assert!((low - share).abs() < 1e-9 && (high - share).abs() < 1e-9);
        }
    }

    #[test]
    fn the_verdict_needs_both_rivals_beaten() {
        let skill = |against_persistence, against_own_past| Skill {
            against_persistence,
            against_own_past,
            beyond_common: None,
            steps: 9,
        };
        assert!(verdict(Some(&skill(0.1, 0.2))).supported);
        assert!(!verdict(Some(&skill(0.1, -0.2))).supported);
        assert!(verdict(Some(&skill(-0.1, 0.2))).text.contains("10.0 % worse than \"nobody"));
        assert!(!verdict(None).supported);
        let news = verdict(Some(&Skill { beyond_common: Some(-0.01), ..skill(0.1, 0.2) }));
        assert!(!news.supported && news.text.contains("1.0 % worse: the same news for all"), "{}", news.text);
        assert!(verdict(Some(&Skill { beyond_common: Some(0.01), ..skill(0.1, 0.2) })).supported);
    }
}
