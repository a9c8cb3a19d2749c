//! One chain of the sampler of sparse edges.
//!
//! In: an [`EdgesTarget`] (posts, who may be heard, scales of the priors). State: a [`Chain`]. A sweep draws
//! 1. all hidden beliefs together;
//! 2. noise, and weights, keep, drifts and news given the beliefs;
//! 3. agent by agent: its weights, drift and news with its own beliefs integrated out, then its beliefs;
//! 4. keep and the scale of all news given the standardised news and the levels, so that the beliefs move along;
//! 5. the parameters of the priors.

mod own;
mod priors;
mod shared;

use super::pairs::{Quadratic, Slab, move_pairs, truncated};
use super::path::Products;
use crate::Error;
use crate::learn::posterior::target::TYPICAL;
use crate::learn::posterior::trajectory::{Observations, SparseDynamics, Trajectory};
use pulp::Arch;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, StandardNormal};

/// Relative error of a draw of all beliefs.
const TOLERANCE: f64 = 1e-4;

/// Moves of weight between pairs in a sweep, for each speaker that may be heard.
const PAIRS: usize = 20;

/// Share of the moves of random walks that should be accepted.
const ACCEPTED: f64 = 0.35;

/// Values of the parameter of the Dirichlet law of weights.
pub(crate) const CONCENTRATIONS: [f64; 5] = [1.0, 1.5, 2.0, 3.0, 4.0];

/// Prior mean and strength of the probability that a speaker is heard: all pairs of these.
pub(crate) const MEANS: usize = 20;
pub(crate) const STRENGTHS: usize = 10;

pub(crate) fn inclusion_prior(cell: usize) -> (f64, f64) {
    let mean = 0.02 + 0.58 * (cell / STRENGTHS) as f64 / (MEANS - 1) as f64;
    let strength = 40f64.powf((cell % STRENGTHS) as f64 / (STRENGTHS - 1) as f64);
    (mean * strength, (1.0 - mean) * strength)
}

/// The posts and the priors.
#[derive(Debug, Clone)]
pub(crate) struct EdgesTarget {
    pub(crate) agents: usize,
    pub(crate) steps: usize,
    /// For each listener: itself, then the others it may hear.
    pub(crate) speakers: Vec<Vec<usize>>,
    /// Means of posts and their number, agent by agent.
    pub(crate) values: Vec<f64>,
    pub(crate) counts: Vec<f64>,
    /// The same, step by step.
    pub(crate) values_by_step: Vec<f64>,
    pub(crate) counts_by_step: Vec<f64>,
    /// Mean and variance of the first belief of each agent.
    pub(crate) first: Vec<(f64, f64)>,
    /// Typical variance of beliefs.
    pub(crate) spread: f64,
    /// δ, where it is given.
    pub(crate) adaptation: Option<f64>,
    /// Standard deviations of the logarithms of scales: of news and noise, and of the drifts.
    pub(crate) log_scales: (f64, f64),
}

/// All that is unknown.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) keep: f64,
    /// A, for each listener in the order of its speakers.
    pub(crate) weights: Vec<Vec<f64>>,
    pub(crate) drifts: Vec<f64>,
    pub(crate) news: Vec<f64>,
    pub(crate) noise: f64,
    /// Logarithm of typical news, and variance about it.
    pub(crate) mean_news: f64,
    pub(crate) spread_news: f64,
    pub(crate) drift_centre: f64,
    /// Squared scale of the drifts, and the factor of each.
    pub(crate) drift_scale: f64,
    pub(crate) drift_factors: Vec<f64>,
    pub(crate) inclusion: usize,
    pub(crate) concentration: f64,
    /// Hidden beliefs, agent by agent.
    pub(crate) beliefs: Vec<f64>,
}

/// Sizes of moves, adapted in the warm-up.
#[derive(Debug, Clone)]
struct Steps {
    own: Vec<f64>,
    shared: f64,
    moves: f64,
}

pub(crate) struct Chain {
    pub(crate) state: State,
    pub(crate) rng: ChaCha8Rng,
    steps: Steps,
    /// x_t − d − Bᵀx_{t−1}, agent by agent, T − 1 each.
    errors: Vec<f64>,
    /// Beliefs step by step.
    frames: Vec<f64>,
    rows: Vec<f64>,
    /// Listeners that hear each speaker, and that may hear it.
    heard: Vec<usize>,
    possible: Vec<usize>,
}

fn normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// A draw of a variance: `freedom` numbers with this sum of squares, flat prior on the logarithm.
fn variance(freedom: f64, squares: f64, rng: &mut impl Rng) -> f64 {
    let gamma: f64 = Gamma::new(0.5 * freedom, 1.0).map_or(1.0, |law| law.sample(rng));
    0.5 * squares / gamma.max(f64::MIN_POSITIVE)
}

/// The logarithm of a variance under a normal prior (mean, deviation): proposal under the flat prior, then a correction.
fn log_normal_variance(old: f64, freedom: f64, squares: f64, prior: (f64, f64), rng: &mut impl Rng) -> f64 {
    let new = variance(freedom, squares, rng);
    let density = |value: f64| -0.5 * ((value.ln() - prior.0) / prior.1).powi(2);
    if new > 0.0 && new.is_finite() && rng.random::<f64>().ln() < density(new) - density(old) { new } else { old }
}

impl EdgesTarget {
    pub(crate) fn noise_prior(&self) -> (f64, f64) {
        ((TYPICAL.0 * self.spread).ln(), self.log_scales.0)
    }
    pub(crate) fn mean_news_prior(&self) -> (f64, f64) {
        ((TYPICAL.1 * self.spread).ln(), self.log_scales.0)
    }
    pub(crate) fn drift_scale_prior(&self) -> (f64, f64) {
        // Of the squared scale.
        ((TYPICAL.2 * self.spread).ln(), 2.0 * self.log_scales.1)
    }
    fn series<'a>(&self, all: &'a [f64], agent: usize) -> &'a [f64] {
        &all[agent * self.steps..(agent + 1) * self.steps]
    }
    /// How beliefs move.
    fn dynamics(&self, state: &State) -> Result<SparseDynamics, Error> {
        let listeners = self.speakers.iter().zip(&state.weights).map(|(speakers, weights)| {
            let heard = speakers.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
            heard.map(|(&speaker, weight)| (speaker, state.keep * weight)).collect()
        });
        let mut dynamics = SparseDynamics::new(&listeners.collect::<Vec<Vec<(usize, f64)>>>())?;
        dynamics.drift.clone_from(&state.drifts);
        dynamics.innovation.clone_from(&state.news);
        dynamics.first_mean = self.first.iter().map(|first| first.0).collect();
        dynamics.first_variance = self.first.iter().map(|first| first.1).collect();
        Ok(dynamics)
    }
}

/// Integrates the constant out of sums of products over columns (speakers, constant, what is seen).
fn without_constant(products: &[f64], width: usize, scale: f64, drift: (f64, f64), keep: &[usize]) -> Quadratic {
    let (one, seen) = (width - 2, width - 1);
    let (mean, precision) = drift;
    let at = |row: usize, column: usize| scale * products[row * width + column];
    let total = at(one, one) + precision;
    let pull = at(one, seen) + precision * mean;
    let mut quadratic = Quadratic::default();
    for &row in keep {
        quadratic.slope.push(at(row, seen) - at(row, one) * pull / total);
        for &column in keep {
            quadratic.gram.push(at(row, column) - at(row, one) * at(column, one) / total);
        }
    }
    quadratic
}

impl Chain {
    /// A chain that starts here; chains of the same seed differ by their numbers.
    pub(crate) fn new(target: &EdgesTarget, state: State, number: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(2 * number as u64);
        let steps = Steps { own: vec![0.3; target.agents], shared: 0.3, moves: 0.0 };
        let size = target.agents * (target.steps - 1);
        let (mut heard, mut possible) = (vec![0; target.agents], vec![0; target.agents]);
        for (speakers, weights) in target.speakers.iter().zip(&state.weights) {
            for (&speaker, &weight) in speakers.iter().zip(weights).skip(1) {
                possible[speaker] += 1;
                heard[speaker] += usize::from(weight > 0.0);
            }
        }
        let cells = 0..target.agents * target.steps;
        let frames =
            cells.map(|cell| state.beliefs[cell % target.agents * target.steps + cell / target.agents]).collect();
        let (errors, rows) = (vec![0.0; size], Vec::new());
        let mut chain = Chain { heard, possible, state, rng, steps, errors, frames, rows };
        chain.refresh(target);
        chain
    }

    /// One sweep; sizes of moves adapt where asked.
    pub(crate) fn sweep(&mut self, target: &EdgesTarget, adapt: bool) -> Result<(), Error> {
        self.draw_beliefs(target)?;
        self.noise(target);
        self.centred(target);
        self.refresh(target);
        for agent in 0..target.agents {
            self.agent(target, agent, adapt);
        }
        self.shared(target, adapt);
        self.levels(target)?;
        self.priors(target);
        self.steps.moves += f64::from(u8::from(adapt));
        Ok(())
    }

    /// All hidden beliefs, given the parameters.
    pub(super) fn draw_beliefs(&mut self, target: &EdgesTarget) -> Result<(), Error> {
        let (agents, steps) = (target.agents, target.steps);
        let precisions = target.counts_by_step.iter().map(|count| count / self.state.noise).collect();
        let posts = Observations::new(agents, target.values_by_step.clone(), precisions)?;
        let dynamics = target.dynamics(&self.state)?;
        let seed = self.rng.random::<u64>();
        self.frames = Trajectory::new(&dynamics, &posts)?.draw(seed, TOLERANCE)?;
        for agent in 0..agents {
            for step in 0..steps {
                self.state.beliefs[agent * steps + step] = self.frames[step * agents + agent];
            }
        }
        Ok(())
    }

    /// The variance of one post, given the beliefs.
    pub(super) fn noise(&mut self, target: &EdgesTarget) {
        let (mut squares, mut count) = (0.0, 0.0);
        for ((value, posts), belief) in target.values.iter().zip(&target.counts).zip(&self.state.beliefs) {
            if *posts > 0.0 {
                squares += posts * (value - belief).powi(2);
                count += 1.0;
            }
        }
        self.state.noise = log_normal_variance(self.state.noise, count, squares, target.noise_prior(), &mut self.rng);
    }

    /// Precision of the drift of an agent.
    fn drift_precision(&self, agent: usize) -> f64 {
        1.0 / (self.state.drift_scale * self.state.drift_factors[agent])
    }

    /// Log-odds that a listener hears each speaker, given whom the others hear.
    fn log_odds(&self, target: &EdgesTarget, listener: usize) -> Vec<f64> {
        let (yes, no) = inclusion_prior(self.state.inclusion);
        let others = target.speakers[listener].iter().zip(&self.state.weights[listener]).skip(1);
        let of = others.map(|(&speaker, &weight)| {
            let heard = self.heard[speaker] - usize::from(weight > 0.0);
            let silent = self.possible[speaker] - 1 - heard;
            ((yes + heard as f64) / (no + silent as f64)).ln()
        });
        std::iter::once(0.0).chain(of).collect()
    }

    /// Counts whom a listener hears, or takes its speakers off the counts.
    fn count(&mut self, target: &EdgesTarget, listener: usize, on: bool) {
        for (&speaker, &weight) in target.speakers[listener].iter().zip(&self.state.weights[listener]).skip(1) {
            if weight > 0.0 {
                if on { self.heard[speaker] += 1 } else { self.heard[speaker] -= 1 }
            }
        }
    }

    /// Weights, keep, drifts and news given all beliefs.
    pub(super) fn centred(&mut self, target: &EdgesTarget) {
        let (agents, steps) = (target.agents, target.steps);
        let width = 2 * agents + 1;
        self.rows.clear();
        for step in 1..steps {
            self.rows.extend_from_slice(&self.frames[(step - 1) * agents..(step + 1) * agents]);
            self.rows.push(1.0);
        }
        let mut products = vec![0.0; width * width];
        Arch::new().dispatch(Products { rows: &self.rows, width, products: &mut products });
        let at = |row: usize, column: usize| products[row * width + column];
        let one = 2 * agents;
        let length = (steps - 1) as f64;
        for listener in 0..agents {
            let speakers = &target.speakers[listener];
            let mut columns = speakers.clone();
            columns.extend([one, agents + listener]);
            let size = columns.len();
            let mut own = vec![0.0; size * size];
            let keep = self.state.keep;
            for (i, &row) in columns.iter().enumerate() {
                for (j, &column) in columns.iter().enumerate() {
                    let scale = |place: usize| if place < speakers.len() { keep } else { 1.0 };
                    own[i * size + j] = at(row, column) * scale(i) * scale(j);
                }
            }
            let drift = (self.state.drift_centre, self.drift_precision(listener));
            let all: Vec<usize> = (0..speakers.len()).collect();
            let quadratic = without_constant(&own, size, 1.0 / self.state.news[listener], drift, &all);
            let log_odds = self.log_odds(target, listener);
            let slab =
                Slab { log_odds: &log_odds, concentration: self.state.concentration, always: Some(0), beside: 0 };
            self.count(target, listener, false);
            let weights = &mut self.state.weights[listener];
            move_pairs(&quadratic, slab, weights, PAIRS * speakers.len(), &mut self.rng);
            normalise(weights);
            self.count(target, listener, true);
        }
        // Sums over each listener's heard series f = Σ a x: of f, f², f·y.
        let mut sums = vec![[0.0; 3]; agents];
        for listener in 0..agents {
            let pairs: Vec<(usize, f64)> = target.speakers[listener]
                .iter()
                .zip(&self.state.weights[listener])
                .filter(|(_, weight)| **weight > 0.0)
                .map(|(&speaker, &weight)| (speaker, weight))
                .collect();
            for &(speaker, weight) in &pairs {
                sums[listener][0] += weight * at(speaker, one);
                sums[listener][2] += weight * at(speaker, agents + listener);
                for &(other, also) in &pairs {
                    sums[listener][1] += weight * also * at(speaker, other);
                }
            }
        }
        if target.adaptation.is_none() {
            let (mut curvature, mut slope) = (0.0, 0.0);
            for listener in 0..agents {
                let news = self.state.news[listener];
                let precision = self.drift_precision(listener);
                let total = length / news + precision;
                let pull = at(one, agents + listener) / news + precision * self.state.drift_centre;
                let first = sums[listener][0] / news;
                curvature += sums[listener][1] / news - first * first / total;
                slope += sums[listener][2] / news - first * pull / total;
            }
            let deviation = 1.0 / curvature.sqrt();
            let mean = slope / curvature;
            let keep = mean + deviation * truncated(-mean / deviation, (1.0 - mean) / deviation, &mut self.rng);
            if keep > 0.0 && keep < 1.0 {
                self.state.keep = keep;
            }
        }
        let keep = self.state.keep;
        for listener in 0..agents {
            let news = self.state.news[listener];
            let precision = self.drift_precision(listener);
            let total = length / news + precision;
            let y = at(one, agents + listener);
            let pull = (y - keep * sums[listener][0]) / news + precision * self.state.drift_centre;
            let drift = pull / total + normal(&mut self.rng) / total.sqrt();
            self.state.drifts[listener] = drift;
            let [f, ff, fy] = sums[listener];
            let yy = at(agents + listener, agents + listener);
            let squares =
                yy - 2.0 * keep * fy + keep * keep * ff - 2.0 * drift * (y - keep * f) + length * drift * drift;
            let prior = (self.state.mean_news, self.state.spread_news.sqrt());
            self.state.news[listener] = log_normal_variance(news, length, squares.max(0.0), prior, &mut self.rng);
        }
    }

    /// Errors of all transitions.
    pub(super) fn refresh(&mut self, target: &EdgesTarget) {
        for agent in 0..target.agents {
            self.refresh_agent(target, agent);
        }
    }

    fn refresh_agent(&mut self, target: &EdgesTarget, agent: usize) {
        let steps = target.steps;
        let errors = &mut self.errors[agent * (steps - 1)..(agent + 1) * (steps - 1)];
        let beliefs = &self.state.beliefs;
        let drift = self.state.drifts[agent];
        errors.iter_mut().zip(&beliefs[agent * steps + 1..]).for_each(|(error, belief)| *error = belief - drift);
        for (&speaker, &weight) in target.speakers[agent].iter().zip(&self.state.weights[agent]) {
            if weight > 0.0 {
                let scale = self.state.keep * weight;
                let heard = &beliefs[speaker * steps..];
                errors.iter_mut().zip(heard).for_each(|(error, belief)| *error -= scale * belief);
            }
        }
    }
}

/// Weights that sum to one, against drift by rounding.
fn normalise(weights: &mut [f64]) {
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
}
