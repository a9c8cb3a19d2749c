//! One chain of the sampler of sparse edges.
//!
//! In: an [`EdgesTarget`] (posts, who may be heard, scales of the priors). State: a [`Chain`]. A sweep draws
//! 1. all hidden beliefs together;
//! 2. noise, and weights, keep, drifts and news given the beliefs;
//! 3. agent by agent: its weights, drift and news with its own beliefs integrated out, then its beliefs;
//! 4. keep and the scale of all news given the standardised news and the levels, so that the beliefs move along;
//! 5. the parameters of the priors.

use super::pairs::{Quadratic, Slab, move_pairs, truncated};
use super::path::{self, Products, Seen, TwoColumns, Whitened};
use crate::Error;
use crate::learn::cholesky::Cholesky;
use crate::learn::posterior::target::{DRIFT_FREEDOM, OF_NEWS, TYPICAL};
use crate::learn::posterior::trajectory::{Observations, SparseDynamics, Trajectory};
use faer::Mat;
use pulp::Arch;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{ChiSquared, Distribution, Gamma, StandardNormal};
use statrs::function::gamma::ln_gamma;

/// Relative error of a draw of all beliefs.
const TOLERANCE: f64 = 1e-4;

/// Moves of weight between pairs in a sweep, for each speaker that may be heard.
const PAIRS: usize = 20;

/// Moves of self-weight and news of an agent, and of keep and the scale of news.
const OWN_MOVES: usize = 3;
const SHARED_MOVES: usize = 6;

/// Share of such moves that should be accepted.
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

/// log |det(I − keep·A)| and the solution of (I − keep·Aᵀ)μ = d.
fn levels(target: &EdgesTarget, state: &State, drifts: &[f64]) -> (f64, Vec<f64>) {
    let n = target.agents;
    let mut matrix = vec![0.0; n * n];
    for (listener, (speakers, weights)) in target.speakers.iter().zip(&state.weights).enumerate() {
        matrix[listener * n + listener] += 1.0;
        for (&speaker, weight) in speakers.iter().zip(weights) {
            matrix[listener * n + speaker] -= state.keep * weight;
        }
    }
    // Rows are diagonally dominant: no pivoting.
    let mut right = drifts.to_vec();
    let mut determinant = 0.0;
    for pivot in 0..n {
        let diagonal = matrix[pivot * n + pivot];
        determinant += diagonal.ln();
        for row in pivot + 1..n {
            let factor = matrix[row * n + pivot] / diagonal;
            if factor != 0.0 {
                for column in pivot..n {
                    matrix[row * n + column] -= factor * matrix[pivot * n + column];
                }
                right[row] -= factor * right[pivot];
            }
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| matrix[row * n + column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row * n + row];
    }
    (determinant, right)
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

    /// The listeners of an agent, with the weight b that each gives it.
    fn listeners(&self, target: &EdgesTarget, agent: usize) -> Vec<(usize, f64)> {
        let mut found = Vec::new();
        for listener in (0..target.agents).filter(|&listener| listener != agent) {
            // The others are in order.
            if let Ok(place) = target.speakers[listener][1..].binary_search(&agent) {
                let weight = self.state.weights[listener][place + 1];
                if weight > 0.0 {
                    found.push((listener, self.state.keep * weight));
                }
            }
        }
        found
    }

    /// What is seen of an agent.
    fn seen(&self, target: &EdgesTarget, agent: usize, listeners: &[(usize, f64)]) -> Seen {
        let steps = target.steps;
        let mut precisions: Vec<f64> =
            target.series(&target.counts, agent).iter().map(|count| count / self.state.noise).collect();
        let mut values: Vec<f64> =
            target.series(&target.values, agent).iter().zip(&precisions).map(|(value, w)| value * w).collect();
        let beliefs = target.series(&self.state.beliefs, agent);
        for &(listener, weight) in listeners {
            let scale = weight / self.state.news[listener];
            let errors = &self.errors[listener * (steps - 1)..(listener + 1) * (steps - 1)];
            for step in 0..steps - 1 {
                values[step] += scale * (errors[step] + weight * beliefs[step]);
                precisions[step] += scale * weight;
            }
        }
        for (value, precision) in values.iter_mut().zip(&precisions) {
            *value = if *precision > 0.0 { *value / precision } else { 0.0 };
        }
        Seen { values, precisions, first: target.first[agent] }
    }

    /// Weights, drift, news and beliefs of one agent given the beliefs of the others.
    pub(super) fn agent(&mut self, target: &EdgesTarget, agent: usize, adapt: bool) {
        let (agents, steps) = (target.agents, target.steps);
        let listeners = self.listeners(target, agent);
        let seen = self.seen(target, agent, &listeners);
        let speakers = &target.speakers[agent];
        let keep = self.state.keep;
        let drift = (self.state.drift_centre, self.drift_precision(agent));
        // The others' beliefs in their shares.
        let given = 1.0 - self.state.weights[agent][0];
        let alone = self.state.weights[agent][1..].iter().all(|weight| *weight == 0.0);
        let mut heard = vec![0.0; steps - 1];
        if !alone {
            for (&speaker, &weight) in speakers.iter().zip(&self.state.weights[agent]).skip(1) {
                if weight > 0.0 {
                    let share = weight / given;
                    let beliefs = target.series(&self.state.beliefs, speaker);
                    heard.iter_mut().zip(beliefs).for_each(|(heard, belief)| *heard += share * belief);
                }
            }
        }
        let others = self.state.weights[agent][1..].iter().filter(|weight| **weight > 0.0).count() as f64;
        let concentration = self.state.concentration;
        let log_density = |own: f64, news: f64, mean_news: f64, spread_news: f64| {
            let columns = TwoColumns::new(&seen, &heard, keep * own, news);
            let mut value =
                columns.log_likelihood(keep * (1.0 - own), drift) - 0.5 * (news.ln() - mean_news).powi(2) / spread_news;
            if !alone {
                value += concentration * own.ln() + others * concentration * (1.0 - own).ln();
            }
            value
        };
        let (mut own, mut news) = (self.state.weights[agent][0], self.state.news[agent]);
        let mut here = log_density(own, news, self.state.mean_news, self.state.spread_news);
        for _ in 0..OWN_MOVES {
            let size = self.steps.own[agent];
            let moved = news * (size * normal(&mut self.rng)).exp();
            let shifted = match alone {
                true => own,
                false => {
                    let odds = (own / (1.0 - own)).ln() + 2.0 * size * normal(&mut self.rng);
                    1.0 / (1.0 + (-odds).exp())
                }
            };
            let possible = alone || (shifted > 0.0 && shifted < 1.0);
            let there = match possible {
                true => log_density(shifted, moved, self.state.mean_news, self.state.spread_news),
                false => f64::NEG_INFINITY,
            };
            let accepted = self.rng.random::<f64>().ln() < there - here;
            if adapt {
                let gain = (self.steps.moves + 10.0).powf(-0.6);
                self.steps.own[agent] *= (gain * (f64::from(u8::from(accepted)) - ACCEPTED)).exp();
            }
            if accepted {
                (own, news, here) = (shifted, moved, there);
            }
        }
        if !alone {
            let factor = (1.0 - own) / given;
            self.state.weights[agent][1..].iter_mut().for_each(|weight| *weight *= factor);
            self.state.weights[agent][0] = own;
        }
        self.state.news[agent] = news;
        // Weights of the others, at this self-weight.
        let count = speakers.len() - 1;
        let whitened = Whitened {
            seen: &seen,
            beliefs: &self.frames,
            agents,
            speakers: &speakers[1..],
            scale: keep,
            own: keep * own,
            news,
        };
        let products = whitened.products(&mut self.rows);
        let width = count + 2;
        let all: Vec<usize> = (0..count).collect();
        if !alone && count > 1 {
            let quadratic = without_constant(&products, width, 1.0, drift, &all);
            let log_odds = self.log_odds(target, agent);
            let slab = Slab { log_odds: &log_odds[1..], concentration, always: None, beside: 1 };
            self.count(target, agent, false);
            let weights = &mut self.state.weights[agent];
            move_pairs(&quadratic, slab, &mut weights[1..], PAIRS * count, &mut self.rng);
            normalise(weights);
            self.count(target, agent, true);
        }
        // Drift, then beliefs.
        let weights = &self.state.weights[agent];
        let at = |row: usize, column: usize| products[row * width + column];
        let total = at(count, count) + drift.1;
        let explained: f64 = (0..count).map(|place| weights[place + 1] * at(place, count)).sum();
        let pull = at(count, count + 1) - explained + drift.0 * drift.1;
        let level = pull / total + normal(&mut self.rng) / total.sqrt();
        self.state.drifts[agent] = level;
        let own = keep * weights[0];
        let mut inputs = vec![level; steps - 1];
        for (&speaker, &weight) in speakers.iter().zip(weights).skip(1) {
            if weight > 0.0 {
                let scale = keep * weight;
                let beliefs = target.series(&self.state.beliefs, speaker);
                inputs.iter_mut().zip(beliefs).for_each(|(input, belief)| *input += scale * belief);
            }
        }
        let before = target.series(&self.state.beliefs, agent).to_vec();
        let mut variances = Vec::new();
        let out = &mut self.state.beliefs[agent * steps..(agent + 1) * steps];
        path::draw(&seen, &inputs, own, news, &mut self.rng, out, &mut variances);
        for step in 0..steps {
            self.frames[step * agents + agent] = out[step];
        }
        for (listener, weight) in listeners {
            let after = &self.state.beliefs[agent * steps..];
            let errors = &mut self.errors[listener * (steps - 1)..(listener + 1) * (steps - 1)];
            for ((error, after), before) in errors.iter_mut().zip(after).zip(&before) {
                *error -= weight * (after - before);
            }
        }
        self.refresh_agent(target, agent);
    }

    /// Keep and the scale of all news, given standardised news and levels.
    pub(super) fn shared(&mut self, target: &EdgesTarget, adapt: bool) {
        let (agents, steps) = (target.agents, target.steps);
        let state = &self.state;
        let (determinant, means) = levels(target, state, &state.drifts);
        let mut starts = vec![0];
        let (mut heard, mut shares) = (Vec::new(), Vec::new());
        for (speakers, weights) in target.speakers.iter().zip(&state.weights) {
            for (&speaker, &weight) in speakers.iter().zip(weights).filter(|(_, weight)| **weight > 0.0) {
                heard.push(speaker);
                shares.push(weight);
            }
            starts.push(heard.len());
        }
        // Scaled news step by step, and the heard mean of levels.
        let mut surprises = vec![0.0; (steps - 1) * agents];
        for agent in 0..agents {
            for step in 0..steps - 1 {
                surprises[step * agents + agent] = self.errors[agent * (steps - 1) + step];
            }
        }
        let mixed: Vec<f64> = (0..agents)
            .map(|agent| (starts[agent]..starts[agent + 1]).map(|edge| shares[edge] * means[heard[edge]]).sum())
            .collect();
        let energy = |frames: &[f64]| -> f64 {
            let mut squares = 0.0;
            for agent in 0..agents {
                for step in 0..steps {
                    let off = target.values[agent * steps + step] - frames[step * agents + agent];
                    squares += target.counts[agent * steps + step] * off * off;
                }
            }
            -0.5 * squares / state.noise
        };
        let precisions: Vec<f64> = (0..agents).map(|agent| self.drift_precision(agent)).collect();
        let prior = |keep: f64, shift: f64, determinant: f64| -> f64 {
            let drifts: f64 = (0..agents)
                .map(|agent| {
                    let off = means[agent] - keep * mixed[agent] - state.drift_centre;
                    -0.5 * off * off * precisions[agent]
                })
                .sum();
            let (centre, deviation) = target.mean_news_prior();
            drifts + determinant + (keep * (1.0 - keep)).ln()
                - 0.5 * ((state.mean_news + shift - centre) / deviation).powi(2)
        };
        let (mut keep, mut shift) = (state.keep, 0.0);
        let mut here = energy(&self.frames) + prior(keep, 0.0, determinant);
        let mut best: Option<Vec<f64>> = None;
        let mut trial = state.clone();
        trial.beliefs.clear();
        let mut size = self.steps.shared;
        for _ in 0..SHARED_MOVES {
            let odds = (keep / (1.0 - keep)).ln() + 2.0 * size * normal(&mut self.rng);
            let moved = match target.adaptation {
                Some(_) => keep,
                None => 1.0 / (1.0 + (-odds).exp()),
            };
            let shifted = shift + size * normal(&mut self.rng);
            let factor = (0.5 * shifted).exp();
            trial.keep = moved;
            let mut there = f64::NEG_INFINITY;
            let mut frames = self.frames[..agents].to_vec();
            if moved > 0.0 && moved < 1.0 {
                frames.reserve(agents * (steps - 1));
                for step in 0..steps - 1 {
                    for agent in 0..agents {
                        let mut sum = 0.0;
                        for edge in starts[agent]..starts[agent + 1] {
                            sum += shares[edge] * (frames[step * agents + heard[edge]] - means[heard[edge]]);
                        }
                        frames.push(means[agent] + moved * sum + factor * surprises[step * agents + agent]);
                    }
                }
                there = energy(&frames) + prior(moved, shifted, levels(target, &trial, &state.drifts).0);
            }
            let accepted = self.rng.random::<f64>().ln() < there - here;
            if adapt {
                let gain = (self.steps.moves + 10.0).powf(-0.6);
                size *= (gain * (f64::from(u8::from(accepted)) - ACCEPTED)).exp();
            }
            if accepted {
                (keep, shift, here) = (moved, shifted, there);
                best = Some(frames);
            }
        }
        self.steps.shared = size;
        if let Some(frames) = best {
            let state = &mut self.state;
            state.keep = keep;
            state.mean_news += shift;
            state.news.iter_mut().for_each(|news| *news *= shift.exp());
            for agent in 0..agents {
                state.drifts[agent] = means[agent] - keep * mixed[agent];
            }
            for agent in 0..agents {
                for step in 0..steps {
                    state.beliefs[agent * steps + step] = frames[step * agents + agent];
                }
            }
            self.frames = frames;
            self.refresh(target);
        }
    }

    /// Levels given the deviations from them: all beliefs of an agent move by the same number.
    pub(super) fn levels(&mut self, target: &EdgesTarget) -> Result<(), Error> {
        let (agents, steps) = (target.agents, target.steps);
        let state = &mut self.state;
        // The change of the levels has a normal law with this precision and this slope of its logarithm at zero.
        let mut precision = Mat::<f64>::zeros(agents, agents);
        let mut slope = Mat::<f64>::zeros(agents, 1);
        for agent in 0..agents {
            let (mean, variance) = target.first[agent];
            precision[(agent, agent)] += 1.0 / variance;
            slope[(agent, 0)] += (mean - state.beliefs[agent * steps]) / variance;
            for cell in agent * steps..(agent + 1) * steps {
                let weight = target.counts[cell] / state.noise;
                precision[(agent, agent)] += weight;
                slope[(agent, 0)] += weight * (target.values[cell] - state.beliefs[cell]);
            }
        }
        for listener in 0..agents {
            let scale = 1.0 / (state.drift_scale * state.drift_factors[listener]);
            let off = state.drifts[listener] - state.drift_centre;
            let heard = target.speakers[listener].iter().zip(&state.weights[listener]);
            let mut row: Vec<(usize, f64)> = heard
                .filter(|(_, weight)| **weight > 0.0)
                .map(|(&speaker, weight)| (speaker, -state.keep * weight))
                .collect();
            // A listener is the first of its speakers.
            row[0].1 += 1.0;
            for &(i, a) in &row {
                slope[(i, 0)] -= scale * off * a;
                for &(j, b) in &row {
                    precision[(i, j)] += scale * a * b;
                }
            }
        }
        let factor = Cholesky::new(precision).ok_or(Error::Undefined {
            what: "the levels of the beliefs",
            reason: "their precision is singular".into(),
        })?;
        let mut change = factor.solve(slope);
        let mut noise: Vec<f64> = (0..agents).map(|_| normal(&mut self.rng)).collect();
        // Lᵀ·x = noise has the covariance of the law.
        let lower = factor.into_lower();
        for row in (0..agents).rev() {
            let known: f64 = (row + 1..agents).map(|below| lower[(below, row)] * noise[below]).sum();
            noise[row] = (noise[row] - known) / lower[(row, row)];
            change[(row, 0)] += noise[row];
        }
        for agent in 0..agents {
            let by = change[(agent, 0)];
            for step in 0..steps {
                state.beliefs[agent * steps + step] += by;
                self.frames[step * agents + agent] += by;
            }
            let heard = target.speakers[agent].iter().zip(&state.weights[agent]);
            let heard: f64 = heard.map(|(&speaker, weight)| weight * change[(speaker, 0)]).sum();
            state.drifts[agent] += by - state.keep * heard;
        }
        Ok(())
    }

    /// Parameters of the priors.
    pub(super) fn priors(&mut self, target: &EdgesTarget) {
        let agents = target.agents;
        let (state, rng) = (&mut self.state, &mut self.rng);
        // Student law of the drifts as a mixture of normal laws.
        for agent in 0..agents {
            let off = state.drifts[agent] - state.drift_centre;
            state.drift_factors[agent] =
                variance(DRIFT_FREEDOM + 1.0, DRIFT_FREEDOM + off * off / state.drift_scale, rng);
        }
        let (mut total, mut pull) = (1.0 / target.spread, 0.0);
        for agent in 0..agents {
            let precision = 1.0 / (state.drift_scale * state.drift_factors[agent]);
            total += precision;
            pull += precision * state.drifts[agent];
        }
        state.drift_centre = pull / total + normal(rng) / total.sqrt();
        let squares: f64 = (0..agents)
            .map(|agent| (state.drifts[agent] - state.drift_centre).powi(2) / state.drift_factors[agent])
            .sum();
        state.drift_scale =
            log_normal_variance(state.drift_scale, agents as f64, squares, target.drift_scale_prior(), rng);
        // News.
        let logs: Vec<f64> = state.news.iter().map(|news| news.ln()).collect();
        let (centre, deviation) = target.mean_news_prior();
        let precision = 1.0 / (deviation * deviation);
        let total = agents as f64 / state.spread_news + precision;
        let pull = logs.iter().sum::<f64>() / state.spread_news + precision * centre;
        state.mean_news = pull / total + normal(rng) / total.sqrt();
        let squares: f64 = logs.iter().map(|log| (log - state.mean_news).powi(2)).sum();
        let chi: f64 = ChiSquared::new(OF_NEWS.freedom + agents as f64).map_or(1.0, |law| law.sample(rng));
        state.spread_news = (OF_NEWS.freedom * OF_NEWS.variance + squares) / chi;
        // Who is heard.
        let (heard, possible) = (&self.heard, &self.possible);
        let cells = MEANS * STRENGTHS;
        let mut logs = Vec::with_capacity(cells);
        for cell in 0..cells {
            let (yes, no) = inclusion_prior(cell);
            let rising = |start: f64| -> Vec<f64> {
                let mut sums = vec![0.0];
                let mut sum = 0.0;
                for place in 0..agents {
                    sum += (start + place as f64).ln();
                    sums.push(sum);
                }
                sums
            };
            let (yes, no, all) = (rising(yes), rising(no), rising(yes + no));
            let of =
                |speaker: usize| yes[heard[speaker]] + no[possible[speaker] - heard[speaker]] - all[possible[speaker]];
            logs.push((0..agents).map(of).sum::<f64>());
        }
        state.inclusion = choose(&logs, rng);
        // The slab.
        let logs: Vec<f64> = CONCENTRATIONS
            .iter()
            .map(|&concentration| {
                let of = |weights: &Vec<f64>| {
                    let count = weights.iter().filter(|weight| **weight > 0.0).count() as f64;
                    let logs: f64 = weights.iter().filter(|weight| **weight > 0.0).map(|weight| weight.ln()).sum();
                    ln_gamma(count * concentration) - count * ln_gamma(concentration) + (concentration - 1.0) * logs
                };
                state.weights.iter().map(of).sum::<f64>()
            })
            .collect();
        state.concentration = CONCENTRATIONS[choose(&logs, rng)];
    }
}

/// One of several, with probabilities in proportion to the exponentials of these.
fn choose(logs: &[f64], rng: &mut impl Rng) -> usize {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let mut left = rng.random::<f64>() * weights.iter().sum::<f64>();
    for (place, weight) in weights.iter().enumerate() {
        left -= weight;
        if left <= 0.0 {
            return place;
        }
    }
    weights.len() - 1
}

/// Weights that sum to one, against drift by rounding.
fn normalise(weights: &mut [f64]) {
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
}
