//! The likelihood of posts with the hidden beliefs integrated out, and its gradient, for several parameter vectors at once.
//!
//! In: posts of one log-ratio and [`MarginalParams`]. Out: the log-likelihood and its derivatives by every weight, news
//! variance, level and the noise of a post. Exact: a Kalman filter that takes the observations of a step one after another,
//! and its adjoint. Cost per step: N² per observation and 6N per weight, for all lanes together. Memory: 2√T covariances.
//!
//! Legend: ξ = x − μ, ξ_t = Bᵀξ_{t−1} + η, η ~ N(0, Q); z = μ + ξ + v, v ~ N(0, σ²/c); ξ ~ N(0, V₀) where an episode starts.
//! A bar in the comments of the adjoint is a derivative of the log-likelihood, G the one by a covariance.

use super::lanes::{LANES, Lane, add_product, add_row, dot, map, mul, splat, zip};
use pulp::{Arch, NullaryFnOnce};

/// Who may hear whom: the speakers of each listener, the listener itself first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Support {
    pub(crate) starts: Vec<usize>,
    pub(crate) speakers: Vec<u32>,
}

impl Support {
    /// Of the speakers of each listener; the listener itself is added where it is missing, repetitions are dropped.
    pub(crate) fn new(listeners: &[Vec<usize>]) -> Self {
        let (mut starts, mut speakers) = (vec![0], Vec::new());
        for (listener, heard) in listeners.iter().enumerate() {
            speakers.push(listener as u32);
            let mut others: Vec<u32> =
                heard.iter().filter(|&&speaker| speaker != listener).map(|&speaker| speaker as u32).collect();
            others.sort_unstable();
            others.dedup();
            speakers.extend(others);
            starts.push(speakers.len());
        }
        Support { starts, speakers }
    }

    pub(crate) fn agents(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn edges(&self) -> usize {
        self.speakers.len()
    }

    /// The edge from a speaker to a listener, if there is one.
    pub(crate) fn edge(&self, speaker: usize, listener: usize) -> Option<usize> {
        let edges = self.of(listener);
        if speaker == listener {
            return Some(edges.start);
        }
        let others = edges.start + 1..edges.end;
        let found = self.speakers[others.clone()].binary_search(&(speaker as u32));
        found.ok().map(|place| others.start + place)
    }

    /// The edges of a listener, by number.
    #[inline(always)]
    pub(crate) fn of(&self, listener: usize) -> std::ops::Range<usize> {
        self.starts[listener]..self.starts[listener + 1]
    }
}

/// One observation: the mean of the posts of an agent in a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Observation {
    pub(crate) agent: u32,
    pub(crate) value: f64,
    /// One over the number of posts.
    pub(crate) share: f64,
}

/// The posts of one log-ratio, step after step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Posts {
    pub(crate) agents: usize,
    /// Where the observations of each step begin; one more than steps.
    pub(crate) starts: Vec<usize>,
    pub(crate) observations: Vec<Observation>,
    /// Episode of each step; episodes follow each other.
    pub(crate) episodes: Vec<u32>,
}

impl Posts {
    pub(crate) fn steps(&self) -> usize {
        self.episodes.len()
    }

    /// Whether an episode starts at this step.
    #[inline(always)]
    pub(crate) fn begins(&self, step: usize) -> bool {
        step == 0 || self.episodes[step] != self.episodes[step - 1]
    }

    #[inline(always)]
    pub(crate) fn at(&self, step: usize) -> &[Observation] {
        &self.observations[self.starts[step]..self.starts[step + 1]]
    }

    pub(crate) fn episode_count(&self) -> usize {
        self.episodes.last().map_or(0, |last| *last as usize + 1)
    }
}

/// Parameters of the likelihood of one log-ratio, or derivatives by them, lane by lane.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MarginalParams<const L: usize = LANES> {
    /// B, by edge of the support.
    pub(crate) weights: Vec<Lane<L>>,
    /// Q, by agent.
    pub(crate) news: Vec<Lane<L>>,
    /// σ².
    pub(crate) noise: Lane<L>,
    /// μ, by episode and agent.
    pub(crate) levels: Vec<Lane<L>>,
}

impl<const L: usize> MarginalParams<L> {
    pub(crate) fn zeros(support: &Support, posts: &Posts) -> Self {
        MarginalParams {
            weights: vec![splat(0.0); support.edges()],
            news: vec![splat(0.0); support.agents()],
            noise: splat(0.0),
            levels: vec![splat(0.0); support.agents() * posts.episode_count()],
        }
    }
}

/// Covariances that are kept instead of computed again.
const KEPT_BYTES: usize = 8 << 20;

/// Log-likelihood of the posts, and its gradient.
///
/// `first` holds the variance of each agent's belief about its level where an episode starts.
pub(crate) fn log_likelihood(
    support: &Support,
    posts: &Posts,
    first: &[f64],
    params: &MarginalParams,
) -> (Lane, MarginalParams) {
    let mut gradient = MarginalParams::zeros(support, posts);
    let agents = support.agents();
    let steps = posts.steps();
    let covariance = agents * agents * LANES * size_of::<f64>();
    let segment = match steps * covariance <= KEPT_BYTES {
        true => steps,
        false => (steps as f64).sqrt().ceil() as usize,
    };
    let mut filter = Filter {
        support,
        posts,
        first,
        params,
        mean: vec![splat(0.0); agents],
        covariance: vec![splat(0.0); agents * agents],
        scratch: vec![splat(0.0); agents * agents],
        log_likelihood: splat(0.0),
    };
    let value = Arch::new().dispatch(WithGradient { filter: &mut filter, gradient: &mut gradient, segment });
    (value, gradient)
}

/// State of the filter after a step.
struct Filter<'a> {
    support: &'a Support,
    posts: &'a Posts,
    first: &'a [f64],
    params: &'a MarginalParams,
    mean: Vec<Lane>,
    /// Row by row; only columns from the diagonal on are in use between steps.
    covariance: Vec<Lane>,
    scratch: Vec<Lane>,
    log_likelihood: Lane,
}

/// What the adjoint needs of the steps of a segment.
#[derive(Default)]
struct Record {
    /// For each step: beliefs before it, and PB.
    means: Vec<Lane>,
    products: Vec<Lane>,
    /// For each observation: P e_i, then 1/S and the error of the forecast.
    columns: Vec<Lane>,
    errors: Vec<[Lane; 2]>,
}

impl Filter<'_> {
    /// Moves over one step; what the adjoint needs goes to the record.
    #[inline(always)]
    fn step(&mut self, step: usize, mut record: Option<&mut Record>) {
        let agents = self.support.agents();
        if self.posts.begins(step) {
            self.mean.fill(splat(0.0));
            self.covariance.fill(splat(0.0));
            for agent in 0..agents {
                self.covariance[agent * (agents + 1)] = splat(self.first[agent]);
            }
            if let Some(record) = record.as_deref_mut() {
                // Not used, but keeps one entry for each step.
                record.means.extend_from_slice(&self.mean);
                record.products.extend_from_slice(&self.covariance);
            }
        } else {
            self.predict(record.as_deref_mut());
        }
        let levels = &self.params.levels[self.posts.episodes[step] as usize * agents..][..agents];
        for observation in self.posts.at(step) {
            let agent = observation.agent as usize;
            let column = &mut self.scratch[..agents];
            for other in 0..agent {
                column[other] = self.covariance[other * agents + agent];
            }
            column[agent..].copy_from_slice(&self.covariance[agent * agents + agent..(agent + 1) * agents]);
            let noise = map(self.params.noise, |noise| noise * observation.share);
            let inverse = zip(column[agent], noise, |own, noise| 1.0 / (own + noise));
            let error = zip(levels[agent], self.mean[agent], |level, mean| observation.value - level - mean);
            let gain = mul(error, inverse);
            for lane in 0..LANES {
                self.log_likelihood[lane] += 0.5 * (inverse[lane].ln() - error[lane] * gain[lane] - LOG_TWO_PI);
            }
            add_row(&mut self.mean, gain, column);
            for row in 0..agents {
                let scale = zip(column[row], inverse, |value, inverse| -value * inverse);
                add_row(&mut self.covariance[row * agents + row..(row + 1) * agents], scale, &column[row..]);
            }
            if let Some(record) = record.as_deref_mut() {
                record.columns.extend_from_slice(column);
                record.errors.push([inverse, error]);
            }
        }
    }

    /// `mean ← Bᵀmean`, `P ← BᵀPB + Q`.
    #[inline(always)]
    fn predict(&mut self, record: Option<&mut Record>) {
        let agents = self.support.agents();
        let (covariance, scratch) = (&mut self.covariance, &mut self.scratch);
        mirror(covariance, agents);
        // BᵀP, by listener; PB is its transpose.
        for listener in 0..agents {
            gather(
                self.support,
                listener,
                &self.params.weights,
                covariance,
                0,
                &mut scratch[listener * agents..(listener + 1) * agents],
            );
        }
        transpose(scratch, agents);
        if let Some(record) = record {
            record.means.extend_from_slice(&self.mean);
            record.products.extend_from_slice(scratch);
        }
        for listener in 0..agents {
            let row = &mut covariance[listener * agents..(listener + 1) * agents];
            gather(self.support, listener, &self.params.weights, scratch, listener, row);
            let own = &mut row[listener];
            *own = zip(*own, self.params.news[listener], |own, news| own + news);
        }
        let heard = |listener: usize| {
            let mut sum = splat(0.0);
            for edge in self.support.of(listener) {
                add_product(&mut sum, self.params.weights[edge], self.mean[self.support.speakers[edge] as usize]);
            }
            sum
        };
        for listener in 0..agents {
            scratch[listener] = heard(listener);
        }
        self.mean.copy_from_slice(&scratch[..agents]);
    }
}

/// Columns computed at once, so that a weight is loaded once for all of them.
const COLUMNS: usize = 4;

/// `out[j] = Σ weight · rows[speaker][j]` over the speakers of a listener, for columns from `from` on.
#[inline(always)]
fn gather(support: &Support, listener: usize, weights: &[Lane], rows: &[Lane], from: usize, out: &mut [Lane]) {
    let agents = out.len();
    let edges = support.of(listener);
    let (speakers, weights) = (&support.speakers[edges.clone()], &weights[edges]);
    let mut column = from;
    while column + COLUMNS <= agents {
        let mut sums = [splat(0.0); COLUMNS];
        for (&speaker, &weight) in speakers.iter().zip(weights) {
            let row = &rows[speaker as usize * agents + column..][..COLUMNS];
            for place in 0..COLUMNS {
                add_product(&mut sums[place], weight, row[place]);
            }
        }
        out[column..column + COLUMNS].copy_from_slice(&sums);
        column += COLUMNS;
    }
    for (place, out) in out.iter_mut().enumerate().skip(column) {
        let mut sum = splat(0.0);
        for (&speaker, &weight) in speakers.iter().zip(weights) {
            add_product(&mut sum, weight, rows[speaker as usize * agents + place]);
        }
        *out = sum;
    }
}

/// `out[speaker] += weight · rows[listener]` over all edges.
#[inline(always)]
fn scatter(support: &Support, weights: &[Lane], rows: &[Lane], out: &mut [Lane]) {
    let agents = support.agents();
    out.fill(splat(0.0));
    for listener in 0..agents {
        let row = &rows[listener * agents..(listener + 1) * agents];
        for edge in support.of(listener) {
            let speaker = support.speakers[edge] as usize;
            add_row(&mut out[speaker * agents..(speaker + 1) * agents], weights[edge], row);
        }
    }
}

/// Copies what is right of the diagonal to the left of it.
#[inline(always)]
fn mirror(matrix: &mut [Lane], size: usize) {
    for row in 1..size {
        for column in 0..row {
            matrix[row * size + column] = matrix[column * size + row];
        }
    }
}

#[inline(always)]
fn transpose(matrix: &mut [Lane], size: usize) {
    for row in 1..size {
        for column in 0..row {
            matrix.swap(row * size + column, column * size + row);
        }
    }
}

pub(crate) const LOG_TWO_PI: f64 = 1.837_877_066_409_345_3;

struct WithGradient<'a, 'b> {
    filter: &'a mut Filter<'b>,
    gradient: &'a mut MarginalParams,
    segment: usize,
}

impl NullaryFnOnce for WithGradient<'_, '_> {
    type Output = Lane;

    #[inline(always)]
    fn call(self) -> Lane {
        let WithGradient { filter, gradient, segment } = self;
        let (agents, steps) = (filter.support.agents(), filter.posts.steps());
        let mut record = Record::default();
        // The state before each segment; the last segment is recorded at once.
        let mut states: Vec<(Vec<Lane>, Vec<Lane>)> = Vec::new();
        let last = (steps - 1) / segment;
        for step in 0..steps {
            if step.is_multiple_of(segment) && step / segment < last {
                states.push((filter.mean.clone(), filter.covariance.clone()));
            }
            if step / segment == last { filter.step(step, Some(&mut record)) } else { filter.step(step, None) }
        }
        let value = filter.log_likelihood;
        let mut adjoint = Adjoint {
            mean: vec![splat(0.0); agents],
            covariance: vec![splat(0.0); agents * agents],
            scratch: vec![splat(0.0); agents * agents],
        };
        for number in (0..=last).rev() {
            let range = number * segment..((number + 1) * segment).min(steps);
            if number < last {
                (filter.mean, filter.covariance) = states.pop().unwrap_or_default();
                record.means.clear();
                record.products.clear();
                record.columns.clear();
                record.errors.clear();
                for step in range.clone() {
                    filter.step(step, Some(&mut record));
                }
            }
            let mut seen = record.errors.len();
            for step in range.clone().rev() {
                let of = filter.posts.at(step);
                seen -= of.len();
                adjoint.step(filter, &record, step, step - range.start, seen, gradient);
            }
        }
        value
    }
}

/// Derivatives by the state of the filter.
struct Adjoint {
    mean: Vec<Lane>,
    covariance: Vec<Lane>,
    scratch: Vec<Lane>,
}

impl Adjoint {
    #[inline(always)]
    fn step(
        &mut self,
        filter: &Filter<'_>,
        record: &Record,
        step: usize,
        place: usize,
        first: usize,
        gradient: &mut MarginalParams,
    ) {
        let (support, posts, params) = (filter.support, filter.posts, filter.params);
        let agents = support.agents();
        let levels = posts.episodes[step] as usize * agents;
        for (number, observation) in posts.at(step).iter().enumerate().rev() {
            let agent = observation.agent as usize;
            let column = &record.columns[(first + number) * agents..][..agents];
            let [inverse, error] = record.errors[first + number];
            // G p, p̄, S̄ and the derivative by the error of the forecast.
            let pulled = &mut self.scratch[..agents];
            for row in 0..agents {
                pulled[row] = dot(&self.covariance[row * agents..(row + 1) * agents], column);
            }
            let through_mean = dot(&self.mean, column);
            let through_covariance = dot(pulled, column);
            let mut by_variance = splat(0.0);
            let mut by_error = splat(0.0);
            for lane in 0..LANES {
                let (inverse, error) = (inverse[lane], error[lane]);
                by_variance[lane] = inverse * inverse * (through_covariance[lane] - through_mean[lane] * error)
                    - 0.5 * (inverse - error * error * inverse * inverse);
                by_error[lane] = inverse * (through_mean[lane] - error);
                gradient.noise[lane] += by_variance[lane] * observation.share;
                gradient.levels[levels + agent][lane] -= by_error[lane];
            }
            // p̄/2, added to row and column of the agent.
            let half = mul(map(error, |error| 0.5 * error), inverse);
            for row in 0..agents {
                for lane in 0..LANES {
                    pulled[row][lane] = half[lane] * self.mean[row][lane] - inverse[lane] * pulled[row][lane];
                }
            }
            for row in 0..agents {
                let change = pulled[row];
                let left = &mut self.covariance[row * agents + agent];
                *left = zip(*left, change, |left, change| left + change);
                let right = &mut self.covariance[agent * agents + row];
                *right = zip(*right, change, |right, change| right + change);
            }
            let own = &mut self.covariance[agent * (agents + 1)];
            *own = zip(*own, by_variance, |own, change| own + change);
            self.mean[agent] = zip(self.mean[agent], by_error, |mean, change| mean - change);
        }
        if posts.begins(step) {
            self.mean.fill(splat(0.0));
            self.covariance.fill(splat(0.0));
            return;
        }
        let means = &record.means[place * agents..][..agents];
        let products = &record.products[place * agents * agents..][..agents * agents];
        for listener in 0..agents {
            let own = self.covariance[listener * (agents + 1)];
            let sum = &mut gradient.news[listener];
            *sum = zip(*sum, own, |sum, own| sum + own);
            let row = &self.covariance[listener * agents..(listener + 1) * agents];
            for edge in support.of(listener) {
                let speaker = support.speakers[edge] as usize;
                let through = dot(&products[speaker * agents..(speaker + 1) * agents], row);
                let sum = &mut gradient.weights[edge];
                for lane in 0..LANES {
                    sum[lane] += 2.0 * through[lane] + means[speaker][lane] * self.mean[listener][lane];
                }
            }
        }
        // G ← B G Bᵀ, mean ← B mean.
        scatter(support, &params.weights, &self.covariance, &mut self.scratch);
        transpose(&mut self.scratch, agents);
        scatter(support, &params.weights, &self.scratch, &mut self.covariance);
        let before = &mut self.scratch[..agents];
        before.fill(splat(0.0));
        for listener in 0..agents {
            for edge in support.of(listener) {
                add_product(&mut before[support.speakers[edge] as usize], params.weights[edge], self.mean[listener]);
            }
        }
        self.mean.copy_from_slice(before);
    }
}

#[cfg(test)]
mod tests;
