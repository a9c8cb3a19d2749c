//! The likelihood of posts with the hidden beliefs integrated out, by a Kalman filter whose covariance is kept diagonal,
//! and its gradient.
//!
//! In: posts of one log-ratio and [`MarginalParams`], as for [`super::marginal`]. Out: an approximate log-likelihood and its
//! exact derivatives. What is left out: correlations between what is not known of the beliefs of different agents. They
//! are small where each listener hears several speakers, because most of what is not known of a belief is its own news.
//! Cost: about three passes over time × edges for all lanes together. Memory: two arrays of T × N.
//!
//! Legend: as in [`super::marginal`]; m and p are mean and variance of ξ, F the variance of a forecast, K = p/F.

use super::lanes::{Lane, add_product, splat, zip};
use super::marginal::{LOG_TWO_PI, MarginalParams, Observation, Posts, Support};
use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

/// Agents that one thread takes at once. The sums of chunks are added in order, so that results do not depend on threads.
const CHUNK: usize = 512;

/// The edges of each speaker: who hears it, and the number of the edge in the support.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Audience {
    starts: Vec<usize>,
    edges: Vec<(u32, u32)>,
}

impl Audience {
    pub(crate) fn new(support: &Support) -> Self {
        let agents = support.agents();
        let mut starts = vec![0; agents + 1];
        support.speakers.iter().for_each(|&speaker| starts[speaker as usize + 1] += 1);
        for agent in 0..agents {
            starts[agent + 1] += starts[agent];
        }
        let mut next = starts.clone();
        let mut edges = vec![(0, 0); support.edges()];
        for listener in 0..agents {
            for edge in support.of(listener) {
                let place = &mut next[support.speakers[edge] as usize];
                edges[*place] = (listener as u32, edge as u32);
                *place += 1;
            }
        }
        Audience { starts, edges }
    }

    /// log |det(I − B)| to second order in all eigenvalues of B but the largest, which is keep.
    ///
    /// log det(I − B) = −Σ tr(Bʲ)/j; the part of the largest eigenvalue is exact. Adds the derivatives by the weights.
    pub(crate) fn determinant(
        &self,
        support: &Support,
        weights: &[f64],
        keep: f64,
        times: f64,
        by_weight: &mut [f64],
    ) -> Determinant {
        let (mut trace, mut squares) = (0.0, 0.0);
        for listener in 0..support.agents() {
            for edge in support.of(listener) {
                let speaker = support.speakers[edge] as usize;
                if speaker == listener {
                    trace += weights[edge];
                    squares += weights[edge].powi(2);
                    by_weight[edge] -= times * (1.0 + weights[edge]);
                } else if let Some(back) = support.edge(listener, speaker) {
                    squares += weights[edge] * weights[back];
                    by_weight[edge] -= times * weights[back];
                }
            }
        }
        Determinant {
            value: (1.0 - keep).ln() - (trace - keep) - 0.5 * (squares - keep * keep),
            by_keep: 1.0 + keep - 1.0 / (1.0 - keep),
        }
    }
}

/// A log-determinant, and its derivative by keep with the weights held.
pub(crate) struct Determinant {
    pub(crate) value: f64,
    pub(crate) by_keep: f64,
}

/// Mean and variance of a belief, or derivatives by them.
type State<const L: usize> = [Lane<L>; 2];

/// Approximate log-likelihood of the posts, and its gradient.
///
/// `first` holds the variance of each agent's belief about its level where an episode starts.
pub(crate) fn log_likelihood<const L: usize>(
    support: &Support,
    audience: &Audience,
    posts: &Posts,
    first: &[f64],
    params: &MarginalParams<L>,
) -> (Lane<L>, MarginalParams<L>) {
    let mut pass = Pass {
        support,
        posts,
        first,
        params,
        states: vec![[splat(0.0); 2]; posts.steps() * support.agents()],
        forecasts: vec![[splat(0.0); 2]; posts.observations.len()],
    };
    let mut value = splat(0.0);
    for step in 0..posts.steps() {
        add(&mut value, pass.forward(step));
    }
    // The weights in the order of the audience.
    let weights: Vec<Lane<L>> = audience.edges.iter().map(|&(_, edge)| params.weights[edge as usize]).collect();
    let mut gradient = MarginalParams::zeros(support, posts);
    let mut slopes = vec![[splat(0.0); 2]; support.agents()];
    for step in (0..posts.steps()).rev() {
        pass.backward(step, &mut slopes, &mut gradient);
        if !posts.begins(step) {
            slopes = passed(audience, &weights, &slopes);
        } else {
            slopes.fill([splat(0.0); 2]);
        }
    }
    (value, gradient)
}

/// Errors of the one-step forecasts of all observations, in their order.
pub(crate) fn forecast_errors(support: &Support, posts: &Posts, first: &[f64], params: &MarginalParams<1>) -> Vec<f64> {
    let mut pass = Pass {
        support,
        posts,
        first,
        params,
        states: vec![[[0.0]; 2]; posts.steps() * support.agents()],
        forecasts: vec![[[0.0]; 2]; posts.observations.len()],
    };
    for step in 0..posts.steps() {
        pass.forward(step);
    }
    pass.forecasts.iter().map(|[_, [error]]| *error).collect()
}

fn add<const L: usize>(sum: &mut Lane<L>, value: Lane<L>) {
    *sum = zip(*sum, value, |a, b| a + b);
}

/// Derivatives by the beliefs a step before, from those by the forecasts.
fn passed<const L: usize>(audience: &Audience, weights: &[Lane<L>], slopes: &[State<L>]) -> Vec<State<L>> {
    let mut out = vec![[splat(0.0); 2]; slopes.len()];
    let chunk = |(number, out): (usize, &mut [State<L>])| {
        Arch::new().dispatch(Scatter { audience, weights, slopes, first: number * CHUNK, out });
    };
    match slopes.len() <= CHUNK {
        true => out.chunks_mut(CHUNK).enumerate().for_each(chunk),
        false => out.par_chunks_mut(CHUNK).enumerate().for_each(chunk),
    }
    out
}

struct Scatter<'a, const L: usize> {
    audience: &'a Audience,
    weights: &'a [Lane<L>],
    slopes: &'a [State<L>],
    first: usize,
    out: &'a mut [State<L>],
}

impl<const L: usize> NullaryFnOnce for Scatter<'_, L> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (place, out) in self.out.iter_mut().enumerate() {
            let range = self.audience.starts[self.first + place]..self.audience.starts[self.first + place + 1];
            let [mut mean, mut variance] = [splat(0.0); 2];
            for (&(listener, _), weight) in self.audience.edges[range.clone()].iter().zip(&self.weights[range]) {
                let [by_mean, by_variance] = self.slopes[listener as usize];
                add_product(&mut mean, *weight, by_mean);
                add_product(&mut variance, zip(*weight, *weight, |a, b| a * b), by_variance);
            }
            *out = [mean, variance];
        }
    }
}

/// The filter and what its adjoint needs.
struct Pass<'a, const L: usize> {
    support: &'a Support,
    posts: &'a Posts,
    first: &'a [f64],
    params: &'a MarginalParams<L>,
    /// After each step, T × N.
    states: Vec<State<L>>,
    /// For each observation: 1/F and the error of the forecast.
    forecasts: Vec<[Lane<L>; 2]>,
}

/// The observations of a step cut where the chunks of agents are.
fn cuts(observations: &[Observation], agents: usize) -> Vec<usize> {
    (1..=agents.div_ceil(CHUNK))
        .map(|number| observations.partition_point(|one| (one.agent as usize) < number * CHUNK))
        .collect()
}

/// Slices of lengths that add up to that of the whole.
fn split<'a, T>(mut whole: &'a mut [T], cuts: &[usize]) -> Vec<&'a mut [T]> {
    let mut last = 0;
    let mut parts = Vec::with_capacity(cuts.len());
    for &cut in cuts {
        let (part, rest) = whole.split_at_mut(cut - last);
        parts.push(part);
        whole = rest;
        last = cut;
    }
    parts
}

impl<const L: usize> Pass<'_, L> {
    /// Moves over one step; its log-likelihood.
    fn forward(&mut self, step: usize) -> Lane<L> {
        let agents = self.support.agents();
        let (done, rest) = self.states.split_at_mut(step * agents);
        let before = match self.posts.begins(step) {
            true => None,
            false => Some(&done[(step - 1) * agents..]),
        };
        let observations = self.posts.at(step);
        let cuts = cuts(observations, agents);
        let forecasts = &mut self.forecasts[self.posts.starts[step]..self.posts.starts[step + 1]];
        let levels = &self.params.levels[self.posts.episodes[step] as usize * agents..][..agents];
        let forecasts = split(forecasts, &cuts);
        let jobs: Vec<Forward<'_, L>> = rest[..agents]
            .chunks_mut(CHUNK)
            .zip(forecasts)
            .enumerate()
            .map(|(number, (states, forecasts))| {
                let from = if number == 0 { 0 } else { cuts[number - 1] };
                Forward {
                    support: self.support,
                    params: self.params,
                    own: self.first,
                    levels,
                    before,
                    observations: &observations[from..cuts[number]],
                    first: number * CHUNK,
                    states,
                    forecasts,
                }
            })
            .collect();
        let values: Vec<Lane<L>> = match jobs.len() {
            1 => jobs.into_iter().map(|job| Arch::new().dispatch(job)).collect(),
            _ => jobs.into_par_iter().map(|job| Arch::new().dispatch(job)).collect(),
        };
        let mut value = splat(0.0);
        values.into_iter().for_each(|one| add(&mut value, one));
        value
    }

    /// Turns derivatives by the state after a step into those by the forecast before its posts, and adds to the gradient.
    fn backward(&self, step: usize, slopes: &mut [State<L>], gradient: &mut MarginalParams<L>) {
        let (agents, support) = (self.support.agents(), self.support);
        let observations = self.posts.at(step);
        let cuts = cuts(observations, agents);
        let forecasts = &self.forecasts[self.posts.starts[step]..self.posts.starts[step + 1]];
        let before = match self.posts.begins(step) {
            true => None,
            false => Some(&self.states[(step - 1) * agents..step * agents]),
        };
        let ends: Vec<usize> =
            (1..=agents.div_ceil(CHUNK)).map(|number| support.starts[(number * CHUNK).min(agents)]).collect();
        let levels = &mut gradient.levels[self.posts.episodes[step] as usize * agents..][..agents];
        let jobs: Vec<Backward<'_, L>> = split(&mut gradient.weights, &ends)
            .into_iter()
            .zip(slopes.chunks_mut(CHUNK))
            .zip(levels.chunks_mut(CHUNK).zip(gradient.news.chunks_mut(CHUNK)))
            .enumerate()
            .map(|(number, ((weights, slopes), (levels, news)))| {
                let from = if number == 0 { 0 } else { cuts[number - 1] };
                Backward {
                    support,
                    params: self.params,
                    before,
                    observations: &observations[from..cuts[number]],
                    forecasts: &forecasts[from..cuts[number]],
                    first: number * CHUNK,
                    slopes,
                    levels,
                    news,
                    weights,
                }
            })
            .collect();
        let noises: Vec<Lane<L>> = match jobs.len() {
            1 => jobs.into_iter().map(|job| Arch::new().dispatch(job)).collect(),
            _ => jobs.into_par_iter().map(|job| Arch::new().dispatch(job)).collect(),
        };
        noises.into_iter().for_each(|one| add(&mut gradient.noise, one));
    }
}

struct Forward<'a, const L: usize> {
    support: &'a Support,
    params: &'a MarginalParams<L>,
    own: &'a [f64],
    levels: &'a [Lane<L>],
    before: Option<&'a [State<L>]>,
    observations: &'a [Observation],
    first: usize,
    states: &'a mut [State<L>],
    forecasts: &'a mut [[Lane<L>; 2]],
}

impl<const L: usize> NullaryFnOnce for Forward<'_, L> {
    type Output = Lane<L>;

    #[inline(always)]
    fn call(self) -> Lane<L> {
        let mut value = splat(0.0);
        for (place, state) in self.states.iter_mut().enumerate() {
            let listener = self.first + place;
            let Some(before) = self.before else {
                *state = [splat(0.0), splat(self.own[listener])];
                continue;
            };
            let edges = self.support.of(listener);
            let (mut mean, mut variance) = (splat(0.0), self.params.news[listener]);
            for (&speaker, weight) in self.support.speakers[edges.clone()].iter().zip(&self.params.weights[edges]) {
                let [m, p] = before[speaker as usize];
                add_product(&mut mean, *weight, m);
                add_product(&mut variance, zip(*weight, *weight, |a, b| a * b), p);
            }
            *state = [mean, variance];
        }
        for (observation, forecast) in self.observations.iter().zip(self.forecasts.iter_mut()) {
            let agent = observation.agent as usize;
            let [mean, variance] = &mut self.states[agent - self.first];
            for lane in 0..L {
                let noise = self.params.noise[lane] * observation.share;
                let inverse = 1.0 / (variance[lane] + noise);
                let error = observation.value - self.levels[agent][lane] - mean[lane];
                value[lane] += 0.5 * (inverse.ln() - error * error * inverse - LOG_TWO_PI);
                mean[lane] += variance[lane] * inverse * error;
                variance[lane] *= noise * inverse;
                *forecast = {
                    let mut kept = *forecast;
                    kept[0][lane] = inverse;
                    kept[1][lane] = error;
                    kept
                };
            }
        }
        value
    }
}

struct Backward<'a, const L: usize> {
    support: &'a Support,
    params: &'a MarginalParams<L>,
    before: Option<&'a [State<L>]>,
    observations: &'a [Observation],
    forecasts: &'a [[Lane<L>; 2]],
    first: usize,
    slopes: &'a mut [State<L>],
    levels: &'a mut [Lane<L>],
    news: &'a mut [Lane<L>],
    weights: &'a mut [Lane<L>],
}

impl<const L: usize> NullaryFnOnce for Backward<'_, L> {
    /// Derivative by the noise.
    type Output = Lane<L>;

    #[inline(always)]
    fn call(self) -> Lane<L> {
        let mut by_noise = splat(0.0);
        for (observation, [inverse, error]) in self.observations.iter().zip(self.forecasts) {
            let place = observation.agent as usize - self.first;
            let [by_mean, by_variance] = &mut self.slopes[place];
            for lane in 0..L {
                let noise = self.params.noise[lane] * observation.share;
                let (inverse, error) = (inverse[lane], error[lane]);
                let variance = 1.0 / inverse - noise;
                let gain = variance * inverse;
                // m⁺ = m + K·error, p⁺ = p(1 − K); the likelihood is −(log F + error²/F)/2.
                let by_gain = error * by_mean[lane] - variance * by_variance[lane];
                let by_error = gain * by_mean[lane] - error * inverse;
                let by_forecast = 0.5 * inverse * (error * error * inverse - 1.0) - by_gain * gain * inverse;
                by_noise[lane] += observation.share * by_forecast;
                self.levels[place][lane] -= by_error;
                by_mean[lane] -= by_error;
                by_variance[lane] = (1.0 - gain) * by_variance[lane] + by_gain * inverse + by_forecast;
            }
        }
        let Some(before) = self.before else { return by_noise };
        let offset = self.support.starts[self.first];
        for (place, [by_mean, by_variance]) in self.slopes.iter().enumerate() {
            let edges = self.support.of(self.first + place);
            add(&mut self.news[place], *by_variance);
            let twice = by_variance.map(|slope| 2.0 * slope);
            let out = &mut self.weights[edges.start - offset..edges.end - offset];
            let heard = self.support.speakers[edges.clone()].iter().zip(&self.params.weights[edges]);
            for (out, (&speaker, weight)) in out.iter_mut().zip(heard) {
                let [m, p] = before[speaker as usize];
                add_product(out, *by_mean, m);
                add_product(out, zip(*weight, p, |b, p| b * p), twice);
            }
        }
        by_noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::posterior::lanes::LANES;
    use crate::learn::posterior::marginal;

    /// Agents that hear these, in two episodes with silence.
    fn case(listeners: &[Vec<usize>]) -> (Support, Posts) {
        let support = Support::new(listeners);
        let agents = listeners.len();
        let (mut starts, mut observations) = (vec![0], Vec::new());
        let episodes: Vec<u32> = [vec![0; 12], vec![1; 9]].concat();
        for step in 0..episodes.len() {
            for agent in (0..agents).filter(|agent| (step * 5 + agent * 3) % 7 > 2) {
                let value = ((step * agents + agent) as f64 * 1.3).sin();
                observations.push(Observation { agent: agent as u32, value, share: 1.0 / (1 + step % 3) as f64 });
            }
            starts.push(observations.len());
        }
        (support, Posts { agents, starts, observations, episodes })
    }

    fn params<const L: usize>(support: &Support, posts: &Posts) -> MarginalParams<L> {
        let mut params = MarginalParams::zeros(support, posts);
        for listener in 0..support.agents() {
            let edges = support.of(listener);
            let count = edges.len() as f64;
            for edge in edges {
                params.weights[edge] = [0.9 / count; L];
            }
            params.news[listener] = [0.1 + 0.05 * (listener % 5) as f64; L];
        }
        let levels = params.levels.iter_mut().enumerate();
        levels.for_each(|(place, level)| *level = [0.1 * (place as f64).cos(); L]);
        params.noise = [0.4; L];
        params
    }

    #[test]
    fn agents_who_hear_nobody_have_the_exact_likelihood() {
        let (support, posts) = case(&[vec![], vec![], vec![]]);
        let first = [0.5, 1.0, 0.7];
        let params = params(&support, &posts);
        let (exact, slopes) = marginal::log_likelihood(&support, &posts, &first, &params);
        let (value, gradient) = log_likelihood(&support, &Audience::new(&support), &posts, &first, &params);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-10 * (1.0 + a.abs());
        assert!(close(value[0], exact[0]), "{} {}", value[0], exact[0]);
        assert!(close(gradient.noise[0], slopes.noise[0]));
        for (found, exact) in
            [(&gradient.weights, &slopes.weights), (&gradient.news, &slopes.news), (&gradient.levels, &slopes.levels)]
        {
            assert!(found.iter().zip(exact).all(|(found, exact)| close(found[0], exact[0])));
        }
    }

    #[test]
    fn one_lane_is_as_eight_and_threads_change_nothing() {
        // More agents than a chunk has.
        let listeners: Vec<Vec<usize>> =
            (0..CHUNK + 70).map(|agent| vec![(agent * 7 + 1) % (CHUNK + 70), (agent * 3 + 2) % 50]).collect();
        let (support, posts) = case(&listeners);
        let audience = Audience::new(&support);
        let first = vec![0.8; listeners.len()];
        let (one, eight) = (params::<1>(&support, &posts), params::<LANES>(&support, &posts));
        let alone = log_likelihood(&support, &audience, &posts, &first, &one);
        let together = log_likelihood(&support, &audience, &posts, &first, &eight);
        assert_eq!(alone.0[0].to_bits(), together.0[3].to_bits());
        let equal = |a: &[Lane<1>], b: &[Lane]| a.iter().zip(b).all(|(a, b)| a[0].to_bits() == b[5].to_bits());
        assert!(equal(&alone.1.weights, &together.1.weights) && equal(&alone.1.news, &together.1.news));
        let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let again = single.install(|| log_likelihood(&support, &audience, &posts, &first, &one));
        assert_eq!(alone, again);
    }

    #[test]
    fn errors_are_those_of_forecasts_by_hand() {
        // One agent that keeps half of its belief: forecast 0 with variance 1, then of the filtered mean.
        let support = Support::new(&[vec![]]);
        let observations =
            vec![Observation { agent: 0, value: 1.0, share: 1.0 }, Observation { agent: 0, value: 2.0, share: 1.0 }];
        let posts = Posts { agents: 1, starts: vec![0, 1, 2], observations, episodes: vec![0, 0] };
        let params = MarginalParams::<1> { weights: vec![[0.5]], news: vec![[1.0]], noise: [1.0], levels: vec![[0.0]] };
        // The first post moves the mean to 1/2, so the forecast of the second is 1/4.
        assert_eq!(forecast_errors(&support, &posts, &[1.0], &params), [1.0, 1.75]);
    }
}
