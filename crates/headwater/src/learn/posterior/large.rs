//! Maximum and curvature of the posterior of large networks: coordinates for the chains without a dense matrix.
//!
//! In: a prepared density. Out: an [`ArrowMetric`] about its maximum. The maximum is found by a quasi-Newton search; the
//! diagonal of the curvature is estimated from random directions, its columns of the common parameters by differences.

use super::arrow::{ArrowMetric, Centre};
use super::attention::Attention;
use super::sampler::{Metric, Search, maximise};
use super::standard::StandardTarget;
use super::strengths::{Prepared, likeliest, likeliest_scale};
use super::target::{DRIFT_FREEDOM, Density, OF_DEVIATIONS, OF_NEWS, OF_STRENGTHS, StrengthsTarget, UnknownVariance};
use crate::{Error, progress};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Rounds of maximum, curvature and variances.
const ROUNDS: usize = 4;

/// Steps of the search in the first round and in the others.
const SEARCH: (usize, usize) = (120, 40);

/// Steps of the search for a sketch.
pub(crate) const SKETCH: usize = 40;

/// The search of a round ends when it gains less than this share of the number of variables.
const SMALLEST_GAIN: f64 = 1e-5;

/// Pairs of random directions for the diagonal of the curvature.
const DIRECTIONS: usize = 32;

/// Displacement of differences of the gradient, in spreads.
const DISPLACEMENT: f64 = 1e-3;

/// Steps by the unbiased gradient, their first length, and after how many steps it falls.
pub(crate) const CLIMB: usize = 40;
const RATE: f64 = 0.4;
const CONSTANT: usize = 15;

/// Draws of the hidden beliefs for each of them: at least, at most, and for how many beliefs × edges the least are enough.
const DRAWS: (usize, usize) = (4, 32);
const DRAWN: usize = 20_000_000;

/// Largest move of a coordinate of the metric in one step.
const LARGEST_MOVE: f64 = 1.0;

/// Standard deviation of the logarithm of the factor of the variance of a drift, by its prior.
pub(crate) const SPREAD_OF_FACTORS: f64 = 0.8;

/// Typical change of the logarithm of a standard deviation of the hierarchy.
pub(crate) const SPREAD_OF_DEVIATIONS: f64 = 0.2;

/// Steps that the search takes at most.
pub(crate) const SEARCH_STEPS: usize = SEARCH.0 + (ROUNDS - 1) * SEARCH.1;

/// Spreads of the common parameters where nothing is known of the curvature.
fn common_spreads(target: &StrengthsTarget, scales: &[f64]) -> Vec<(usize, f64)> {
    let (layout, places) = (target.attention(), target.ratio(0));
    let spread = scales[places.drift_centre()];
    vec![
        (layout.own(), 0.3),
        (layout.blend(), 0.2),
        (layout.keep(), 0.2),
        (places.mean_news(), 0.1),
        (places.noise(), 0.05),
        (places.drift_centre(), 0.1 * spread),
        (places.drift_scale(), 0.2),
    ]
}

/// Standard deviation of the drift of each agent: by the data and the prior.
fn drift_spreads(target: &StrengthsTarget, point: &[f64], attention: &Attention) -> Vec<f64> {
    let prior = (DRIFT_FREEDOM + 1.0) / DRIFT_FREEDOM * (-2.0 * point[target.ratio(0).drift_scale()]).exp();
    drift_precisions(target, 0, point, attention).iter().map(|data| (data + prior).sqrt().recip()).collect()
}

/// Precision of the drift of each agent in the data, which tell the mean of its news and noise, by episode and agent.
pub(crate) fn drift_precisions(
    target: &StrengthsTarget,
    number: usize,
    point: &[f64],
    attention: &Attention,
) -> Vec<f64> {
    let (places, posts) = (target.ratio(number), &target.ratios[number].posts);
    let (agents, episodes) = (target.support.agents(), posts.episode_count());
    let noise = point[places.noise()].exp();
    let mut steps = vec![0.0; episodes];
    let mut precision = vec![0.0; agents * episodes];
    for step in 0..posts.steps() {
        let episode = posts.episodes[step] as usize;
        steps[episode] += 1.0;
        for one in posts.at(step) {
            precision[episode * agents + one.agent as usize] += 1.0 / (noise * one.share);
        }
    }
    (0..agents * episodes)
        .map(|cell| {
            let (episode, agent) = (cell / agents, cell % agents);
            let edges = target.support.of(agent);
            let own = attention.weights[edges.start];
            let squares: f64 = attention.weights[edges.start + 1..edges.end].iter().map(|weight| weight * weight).sum();
            let seen = precision[cell].max(1.0 / (point[places.news().start + agent].exp() + noise));
            let variance =
                point[places.news().start + agent].exp() / steps[episode] + ((1.0 - own).powi(2) + squares) / seen;
            1.0 / variance
        })
        .collect()
}

/// The metric about a point: curvature of all variables, and coupling with the common ones.
fn curved(
    target: &StrengthsTarget,
    point: &[f64],
    before: &[f64],
    scales: &[f64],
    held: [f64; 3],
    seed: u64,
) -> Result<ArrowMetric, Error> {
    let (layout, places) = (target.attention(), target.ratio(0));
    let attention = Attention::new(&target.support, point);
    let mut spreads = before.to_vec();
    let drifts = drift_spreads(target, point, &attention);
    spreads[places.levels()].copy_from_slice(&drifts);
    // The diagonal of strengths, deviations and news by random directions.
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let blocks = [(layout.strengths(), held[0]), (layout.deviations(), held[1]), (places.news(), held[2])];
    let mut diagonal = vec![0.0; spreads.len()];
    for _ in 0..DIRECTIONS.div_ceil(4) {
        let mut directions = Vec::new();
        let mut points = Vec::new();
        for _ in 0..4 {
            let mut direction = vec![0.0; spreads.len()];
            for (block, _) in &blocks {
                block.clone().for_each(|place| direction[place] = if rng.random::<bool>() { 1.0 } else { -1.0 });
            }
            for by in [-DISPLACEMENT, DISPLACEMENT] {
                let moved =
                    point.iter().zip(&direction).zip(&spreads).map(|((at, way), spread)| at + by * way * spread);
                points.push(moved.collect::<Vec<f64>>());
            }
            directions.push(direction);
        }
        let found = target.evaluate(&points)?;
        for (direction, pair) in directions.iter().zip(found.chunks(2)) {
            for place in 0..diagonal.len() {
                let bent = (pair[0].gradient[place] - pair[1].gradient[place]) / (2.0 * DISPLACEMENT * spreads[place]);
                diagonal[place] += direction[place] * bent / (4 * DIRECTIONS.div_ceil(4)) as f64;
            }
        }
    }
    for (block, variance) in blocks {
        // The data can only add to what the prior tells, up to the error of the estimate.
        block.for_each(|place| spreads[place] = diagonal[place].max(1.0 / variance).sqrt().recip());
    }
    let curvature = bent(target, point, &common_spreads(target, scales))?;
    uncoupled(target, point, &attention, spreads, scales).coupled(&curvature)
}

/// Minus the derivatives of the gradient along variables with the given spreads, a vector for each.
fn bent(density: &impl Density, point: &[f64], along: &[(usize, f64)]) -> Result<Vec<Vec<f64>>, Error> {
    let mut curvature = Vec::new();
    for pair in along.chunks(4) {
        let mut points = Vec::new();
        for &(place, spread) in pair {
            for by in [-0.1, 0.1] {
                let mut point = point.to_vec();
                point[place] += by * spread;
                points.push(point);
            }
        }
        let found = density.evaluate(&points)?;
        for (&(_, spread), pair) in pair.iter().zip(found.chunks(2)) {
            let by = 0.2 * spread;
            curvature.push(pair[0].gradient.iter().zip(&pair[1].gradient).map(|(a, b)| (a - b) / by).collect());
        }
    }
    Ok(curvature)
}

/// The metric of the chains about the same point, in the variables of a [`StandardTarget`].
pub(crate) fn standardised(
    standard: &StandardTarget,
    metric: &ArrowMetric,
    scales: &[f64],
) -> Result<ArrowMetric, Error> {
    let target = standard.target();
    let point = standard.variables(metric.centre());
    let mut spreads: Vec<f64> = (0..target.size()).map(|place| metric.variance(place).sqrt()).collect();
    spreads[target.ratio(0).levels()].fill(1.0);
    for (places, deviation) in standard.families_by_deviation() {
        places.for_each(|place| spreads[place] /= deviation);
    }
    spreads.resize(standard.factors().end, SPREAD_OF_FACTORS);
    spreads.resize(standard.size(), SPREAD_OF_DEVIATIONS);
    let attention = Attention::new(&target.support, metric.centre());
    let mut commons = common_spreads(target, scales);
    commons.extend(standard.log_deviations().map(|place| (place, SPREAD_OF_DEVIATIONS)));
    commons.iter().for_each(|&(place, spread)| spreads[place] = spread);
    let curvature = bent(standard, &point, &commons)?;
    let centre = Centre { point, weights: attention.weights, keep: attention.keep };
    let places = commons.into_iter().map(|(place, _)| place).collect();
    let levels = standard.size()..standard.size();
    ArrowMetric::uncoupled(&target.support, centre, levels, spreads, places).coupled(&curvature)
}

fn uncoupled(
    target: &StrengthsTarget,
    point: &[f64],
    attention: &Attention,
    mut spreads: Vec<f64>,
    scales: &[f64],
) -> ArrowMetric {
    let commons = common_spreads(target, scales);
    commons.iter().for_each(|&(place, spread)| spreads[place] = spread);
    let centre = Centre { point: point.to_vec(), weights: attention.weights.clone(), keep: attention.keep };
    let places = commons.into_iter().map(|(place, _)| place).collect();
    ArrowMetric::uncoupled(&target.support, centre, target.ratio(0).levels(), spreads, places)
}

/// Coordinates for the chains: the maximum given the variances of the hierarchy, and the curvature there; the variances
/// follow by expectation-maximisation, as for small networks.
pub(crate) fn approximate(prepared: &mut Prepared, seed: u64, each: &dyn Fn()) -> Result<ArrowMetric, Error> {
    let Prepared { target, start, scales } = prepared;
    let (layout, places) = (target.attention(), target.ratio(0));
    let mut held = [OF_STRENGTHS.variance, OF_DEVIATIONS.variance, OF_NEWS.variance];
    let mut point = start.clone();
    let fixed = [places.drift_scale()];
    let attention = Attention::new(&target.support, &point);
    let mut spreads = scales.clone();
    let drifts = drift_spreads(target, &point, &attention);
    spreads[places.levels()].copy_from_slice(&drifts);
    let mut metric = first_metric(target, &point, scales);
    for round in 0..ROUNDS {
        let search = Search {
            steps: if round == 0 { SEARCH.0 } else { SEARCH.1 },
            smallest_gain: SMALLEST_GAIN * target.size() as f64,
            frugal: true,
        };
        target.variances = held;
        point = maximise(target, point, &metric, &fixed, search, each)?.0;
        metric = curved(target, &point, &spreads, scales, held, seed.wrapping_add(round as u64))?;
        if round + 1 == ROUNDS {
            break;
        }
        let variance = |range: std::ops::Range<usize>| range.map(|place| metric.variance(place)).collect::<Vec<f64>>();
        let about = |law: UnknownVariance, range: std::ops::Range<usize>, centre: f64| {
            likeliest(law, &point[range.clone()], centre, variance(range).into_iter())
        };
        held = [
            about(OF_STRENGTHS, layout.strengths(), 0.0),
            about(OF_DEVIATIONS, layout.deviations(), 0.0),
            about(OF_NEWS, places.news(), point[places.mean_news()]),
        ];
        point[places.drift_scale()] = drift_scale(target, &point, &metric);
    }
    Ok(metric)
}

/// A point near the maximum of the approximate density by a short search, and the logarithm of the density there; the
/// variances of the hierarchy keep their first values.
pub(crate) fn sketch(prepared: &Prepared, each: &dyn Fn()) -> Result<(Vec<f64>, f64), Error> {
    let Prepared { target, start, scales } = prepared;
    let fixed = [target.ratio(0).drift_scale()];
    let metric = first_metric(target, start, scales);
    let search = Search { steps: SKETCH, smallest_gain: SMALLEST_GAIN * target.size() as f64, frugal: true };
    let (point, found) = maximise(target, start.clone(), &metric, &fixed, search, each)?;
    Ok((point, found.value))
}

/// The metric where a search starts: typical changes, and for drifts what is known of their precision.
fn first_metric(target: &StrengthsTarget, start: &[f64], scales: &[f64]) -> ArrowMetric {
    let attention = Attention::new(&target.support, start);
    let mut spreads = scales.to_vec();
    let drifts = drift_spreads(target, start, &attention);
    spreads[target.ratio(0).levels()].copy_from_slice(&drifts);
    uncoupled(target, start, &attention, spreads, scales)
}

/// From the maximum of the approximate density, where the metric is, to that of the exact one: natural steps along its
/// estimated gradient; the mean of the second half of the path.
pub(crate) fn climb(
    target: &StrengthsTarget,
    metric: &ArrowMetric,
    seed: u64,
    each: &dyn Fn(),
) -> Result<Vec<f64>, Error> {
    let start = metric.centre();
    let fixed = target.ratio(0).drift_scale();
    let work: usize = target.ratios.iter().map(|ratio| ratio.posts.steps() * target.support.edges()).sum();
    let draws = (DRAWN / work.max(1)).clamp(DRAWS.0, DRAWS.1);
    let mut point = start.to_vec();
    let mut mean = vec![0.0; start.len()];
    for number in 0..CLIMB {
        progress::check()?;
        each();
        let mut gradient = target.drawn_gradient(&point, draws, seed.wrapping_add(1 + number as u64))?;
        gradient[fixed] = 0.0;
        let rate = RATE / (1.0 + number.saturating_sub(CONSTANT) as f64 / CONSTANT as f64).powf(0.7);
        let way: Vec<f64> =
            metric.pull(&gradient).iter().map(|value| (rate * value).clamp(-LARGEST_MOVE, LARGEST_MOVE)).collect();
        let mut step = metric.spread(&way);
        step[fixed] = 0.0;
        point.iter_mut().zip(&step).for_each(|(at, by)| *at += by);
        if number >= CLIMB / 2 {
            let share = 1.0 / (CLIMB - CLIMB / 2) as f64;
            mean.iter_mut().zip(&point).for_each(|(mean, at)| *mean += share * at);
        }
    }
    Ok(mean)
}

/// Logarithm of the scale of the Student law of the drifts, by expectation-maximisation.
fn drift_scale(target: &StrengthsTarget, point: &[f64], metric: &ArrowMetric) -> f64 {
    let places = target.ratio(0);
    let drifts = target.drifts(point, &Attention::new(&target.support, point));
    let centre = point[places.drift_centre()];
    let squares: Vec<f64> = drifts
        .iter()
        .zip(places.levels())
        .map(|(drift, place)| (drift - centre).powi(2) + metric.variance(place))
        .collect();
    likeliest_scale(&squares, point[places.drift_scale()])
}
