//! The posterior of speaker strengths by Hamiltonian Monte Carlo.
//!
//! In: a panel and who may hear whom. Out: a [`StrengthsPosterior`]: draws of the network, δ and the
//! evidence, with their convergence.

mod many;
mod meaning;
mod prepared;

use super::attention::{Attention, listener_weights};
use super::draws::Draws;
use super::lanes::LANES;
use super::marginal::Support;
use super::sampler::{Chains, Guide, Metric, POINTS_OF_A_STEP, Scaling, Search, maximise};
use super::standard::StandardTarget;
use super::target::{
    DRIFT_FREEDOM, Density, Evaluation, OF_DEVIATIONS, OF_NEWS, OF_STRENGTHS, RatioLayout, StrengthsTarget,
    UnknownVariance,
};
use super::{SAMPLING, SamplingParams, large};
use crate::learn::gsl::Constraint;
use crate::learn::state_space::StateSpaceParams;
use crate::model::WeightKind;
use crate::model::posterior::{EdgeInterval, Posterior, interval, rounded};
use crate::{Error, Model, Panel, progress};
pub(crate) use many::{forecast_skill, learn};
use many::{run_large, search, shift};
use meaning::{EpisodeDrifts, Reading, StrengthsDraw, combination};
use prepared::median;
pub(crate) use prepared::{Prepared, prepare};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest product of observations and squared number of agents for the exact likelihood; beyond it the filter's covariance
/// is kept diagonal, and the draws are moved by the difference between the maxima.
const MOST_WORK: usize = 60_000_000;

/// Most agents for expectation-maximisation with a dense covariance, where strengths on a graph can do without.
const MOST_DENSE: usize = 60;

/// Rounds of maximum, curvature and variances before the chains start, and steps of the search in the first and in the
/// others.
const ROUNDS: usize = 3;
const SEARCH: (usize, usize) = (150, 40);

/// Trajectories in which the chains adapt their step and their metric and leave their start: under a guide, which costs
/// little, and without.
const WARM_UP: (usize, usize) = (120, 60);

/// Steps of the search from the maximum of the approximate density to that of the exact one.
const CORRECTIONS: usize = 30;

/// Draws of each chain between two checks of convergence.
const BETWEEN_CHECKS: usize = 20;

/// Draws that are kept for intervals: at most, at least, and the numbers in all of them that a model file has room for.
const MOST_KEPT: usize = 500;
const FEWEST_KEPT: usize = 100;
const MOST_NUMBERS: usize = 2_000_000;

/// Names of the progress stages in which the maximum is found.
const APPROXIMATING: &str = "approximating the posterior";
const CORRECTING: &str = "correcting the approximation";

/// Whether the posterior of this model can be sampled: speaker strengths on a graph, no common trend, and with more than two
/// hypotheses not more posts than the exact likelihood takes.
pub(crate) fn applies(panel: &Panel, params: &StateSpaceParams) -> bool {
    params.kind() == WeightKind::Strengths
        && params.support.is_some()
        && params.constraint == Constraint::Simplex
        && params.common.is_none()
        && (panel.ratios() == 1 || is_exact(observations(panel), panel.agents()))
}

/// Whether the likelihood of so many observations is exact.
fn is_exact(observations: usize, agents: usize) -> bool {
    observations.saturating_mul(agents.pow(2)) <= MOST_WORK
}

/// Numbers observed.
fn observations(panel: &Panel) -> usize {
    let silent: usize = panel.silence().iter().sum();
    (panel.steps() * panel.agents() - silent) * panel.ratios()
}

/// Whether a network is learned without expectation-maximisation, which takes N³ operations a step: strengths on a graph of
/// more agents than that is good for, or a sketch, in one episode.
pub(crate) fn is_large(panel: &Panel, params: &StateSpaceParams) -> bool {
    let strengths = StateSpaceParams { weights: params.weights.or(Some(WeightKind::Strengths)), ..params.clone() };
    (panel.agents() > MOST_DENSE || params.sketch)
        && panel.ratios() == 1
        && panel.episodes().is_single()
        && applies(panel, &strengths)
}

/// The variance that maximises the expected density of numbers with these means and variances.
pub(crate) fn likeliest(
    law: UnknownVariance,
    values: &[f64],
    centre: f64,
    variances: impl Iterator<Item = f64>,
) -> f64 {
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() + variances.sum::<f64>();
    (law.freedom * law.variance + squares) / (law.freedom + values.len() as f64)
}

/// Steps of the search for the maximum.
fn search_steps(round: usize) -> usize {
    if round == 0 { SEARCH.0 } else { SEARCH.1 }
}

/// Evaluations of the approximate density for its metric at most, in groups of [`LANES`] points.
fn most_evaluations(target: &StrengthsTarget) -> u64 {
    let groups = |points: usize| points.div_ceil(LANES);
    let search = |round: usize| 1 + search_steps(round) * groups(POINTS_OF_A_STEP);
    let curvature = (ROUNDS - 1) * groups(2 * target.size());
    let standard = target.size() + target.places_of_levels().count() + 2 + target.ratios.len();
    ((0..ROUNDS).map(search).sum::<usize>() + curvature) as u64 + most_corrections(standard)
}

/// Evaluations of [`curved`] at most, in groups of [`LANES`] points.
fn most_corrections(size: usize) -> u64 {
    (1 + CORRECTIONS * POINTS_OF_A_STEP.div_ceil(LANES) + (2 * size).div_ceil(LANES)) as u64
}

/// A density that tells of its evaluations, in groups of [`LANES`] points.
struct Counted<'a, D> {
    density: &'a D,
    each: &'a (dyn Fn(u64) + Sync),
}

impl<D: Density> Density for Counted<'_, D> {
    fn size(&self) -> usize {
        self.density.size()
    }

    fn evaluate(&self, points: &[Vec<f64>]) -> Result<Vec<Evaluation>, Error> {
        let found = self.density.evaluate(points)?;
        (self.each)(points.len().div_ceil(LANES) as u64);
        Ok(found)
    }
}

/// Where the metric of the chains is taken: the maximum given the variances of the hierarchy, which follow by
/// expectation-maximisation from the curvature there. At a maximum over the variances too, strengths would shrink to nothing.
/// Also the share of the variance of each strength, deviation and log news variance that the data leave.
fn approximate(prepared: &mut Prepared, each: &(dyn Fn(u64) + Sync)) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let Prepared { target, start, scales } = prepared;
    let mut point = start.clone();
    let mut scaling = Scaling::diagonal(point.clone(), scales);
    let fixed: Vec<usize> = (0..target.ratios.len()).map(|number| target.ratio(number).drift_scale()).collect();
    for round in 0..ROUNDS {
        let counted = Counted { density: &*target, each };
        point = maximise(&counted, point, &scaling, &fixed, Search::thorough(search_steps(round)), &|| ())?.0;
        if round + 1 == ROUNDS {
            break;
        }
        scaling = Scaling::from_curvature(&counted, point.clone(), scales, &|| ())?;
        let layout = target.attention();
        let variance = |places: std::ops::Range<usize>| places.map(|place| scaling.variance(place)).collect::<Vec<_>>();
        let about = |law: UnknownVariance, places: std::ops::Range<usize>, centre: f64| {
            likeliest(law, &point[places.clone()], centre, variance(places).into_iter())
        };
        let ratios: Vec<RatioLayout> = (0..target.ratios.len()).map(|number| target.ratio(number)).collect();
        let mut of_news = Vec::new();
        for places in &ratios {
            of_news.extend(point[places.news()].iter().map(|news| news - point[places.mean_news()]));
        }
        let news = ratios.iter().flat_map(|places| variance(places.news()));
        let held = [
            about(OF_STRENGTHS, layout.strengths(), 0.0),
            about(OF_DEVIATIONS, layout.deviations(), 0.0),
            likeliest(OF_NEWS, &of_news, 0.0, news),
        ];
        for number in 0..target.ratios.len() {
            point[target.ratio(number).drift_scale()] = drift_scale(target, &point, &scaling, number);
        }
        target.variances = held;
    }
    let shares = unknown(target, |place| scaling.variance(place));
    Ok((point, shares))
}

/// The share of the variance of each strength, deviation and log news variance that the data leave, by place; one elsewhere.
fn unknown(target: &StrengthsTarget, variance: impl Fn(usize) -> f64) -> Vec<f64> {
    let (layout, [of_strengths, of_deviations, of_news]) = (target.attention(), target.variances);
    let mut shares = vec![1.0; target.size()];
    let news = (0..target.ratios.len()).map(|number| (target.ratio(number).news(), of_news));
    for (places, held) in
        [(layout.strengths(), of_strengths), (layout.deviations(), of_deviations)].into_iter().chain(news)
    {
        places.for_each(|place| shares[place] = (variance(place) / held).clamp(0.0, 1.0));
    }
    shares
}

/// The posterior in the variables of the chains, about a point.
fn standardise(target: &StrengthsTarget, point: &[f64], unknown: Vec<f64>) -> Result<StandardTarget, Error> {
    let attention = Attention::new(&target.support, point);
    let precisions =
        (0..target.ratios.len()).flat_map(|number| large::drift_precisions(target, number, point, &attention));
    StandardTarget::new(target, point, unknown, precisions.collect())
}

/// Logarithm of the scale of the Student law of the drifts, by expectation-maximisation.
fn drift_scale(target: &StrengthsTarget, point: &[f64], scaling: &Scaling, number: usize) -> f64 {
    let agents = target.support.agents();
    let places = target.ratio(number);
    let attention = Attention::new(&target.support, point);
    let drifts = target.drifts(point, &attention);
    let (centre, count) = (point[places.drift_centre()], places.levels().len());
    let squares: Vec<f64> = (0..count)
        .map(|cell| {
            let (first, agent) = (places.levels().start + cell / agents * agents, cell % agents);
            let deviation = |column: usize| {
                let heard: f64 = target
                    .support
                    .of(agent)
                    .map(|edge| {
                        attention.weights[edge] * scaling.root[(first + target.support.speakers[edge] as usize, column)]
                    })
                    .sum();
                scaling.root[(first + agent, column)] - heard
            };
            let variance: f64 = (0..target.size()).map(|column| deviation(column).powi(2)).sum();
            (drifts[number * count + cell] - centre).powi(2) + variance
        })
        .collect();
    likeliest_scale(&squares, point[places.drift_scale()])
}

/// The logarithm of the scale of a Student law that fits numbers with these expected squares, from a first value.
pub(crate) fn likeliest_scale(squares: &[f64], first: f64) -> f64 {
    let mut scale = (2.0 * first).exp();
    for _ in 0..30 {
        let weighed = |square: &f64| (DRIFT_FREEDOM + 1.0) * square / (DRIFT_FREEDOM + square / scale);
        scale = squares.iter().map(weighed).sum::<f64>() / squares.len() as f64;
    }
    0.5 * scale.ln()
}

/// Draws of the parameters and who may hear whom.
pub(crate) struct StrengthsPosterior {
    support: Support,
    reading: Reading,
    draws: Draws<Vec<f64>>,
    episodes: EpisodeDrifts,
    /// Whether the draws are from the normal law about the maximum.
    normal: bool,
}

/// Samples the posterior until the chains have converged, have made `sampling.draws` draws each, or are asked to finish.
/// `first` is a fit with the covariances of several log-ratios.
pub(crate) fn sample(
    panel: &Panel,
    params: &StateSpaceParams,
    sampling: &SamplingParams,
    first: &Model,
) -> Result<StrengthsPosterior, Error> {
    sampling.check()?;
    let support = params.support.as_deref().unwrap_or_default();
    let reading = Reading::from_model(first);
    let panel = &*reading.axes.along(panel);
    let mut prepared = prepare(panel, panel.steps(), support, params.adaptation);
    if prepared.target.audience.is_some() {
        let metric = search(&mut prepared, sampling.seed)?;
        let shift = shift(&prepared.target, &metric, sampling.seed)?;
        run_large(panel, reading, &prepared.target, &metric, &prepared.scales, &shift, sampling)
    } else {
        sample_guided(panel, reading, prepared, sampling)
    }
}

/// Samples the exact posterior by trajectories along the gradient of the approximate one, which costs much less.
fn sample_guided(
    panel: &Panel,
    reading: Reading,
    exact: Prepared,
    sampling: &SamplingParams,
) -> Result<StrengthsPosterior, Error> {
    let Prepared { target, start, scales } = exact;
    let mut prepared = Prepared { target: target.approximated(), start, scales };
    let stage = progress::stage(APPROXIMATING, most_evaluations(&target));
    let done = AtomicU64::new(0);
    let each = |groups| stage.at(done.fetch_add(groups, Ordering::Relaxed) + groups);
    let (point, unknown) = approximate(&mut prepared, &each)?;
    let Prepared { target: approximation, mut scales, .. } = prepared;
    let guide = standardise(&approximation, &point, unknown)?;
    target.places_of_levels().for_each(|place| scales[place] = 1.0);
    let layout = target.attention();
    [layout.strengths(), layout.deviations()].into_iter().flatten().for_each(|place| scales[place] = 0.3);
    (0..target.ratios.len()).flat_map(|number| target.ratio(number).news()).for_each(|place| scales[place] = 0.3);
    scales.resize(guide.factors().end, large::SPREAD_OF_FACTORS);
    scales.resize(guide.size(), large::SPREAD_OF_DEVIATIONS);
    let begun = guide.variables(&point);
    let metric = curved(&guide, &Scaling::diagonal(begun, &scales), &scales, &each)?;
    drop(stage);
    let exact = guide.of(&target);
    let stage = progress::stage(CORRECTING, most_corrections(guide.size()));
    let done = AtomicU64::new(0);
    let each = |groups| stage.at(done.fetch_add(groups, Ordering::Relaxed) + groups);
    let metric_of_exact = curved(&exact, &metric, &scales, &each)?;
    drop(stage);
    run(panel, reading, &exact, metric_of_exact, Some(Guide { density: guide, metric }), &[], sampling)
}

/// The curvature at a maximum near the centre of a first metric.
fn curved(
    density: &StandardTarget,
    first: &Scaling,
    scales: &[f64],
    each: &(dyn Fn(u64) + Sync),
) -> Result<Scaling, Error> {
    let counted = Counted { density, each };
    let search = Search::thorough(CORRECTIONS);
    // At a maximum over the scales of the hierarchy too, these would be too large.
    let scales_of_drifts =
        (0..density.target().ratios.len()).map(|number| density.target().ratio(number).drift_scale());
    let fixed: Vec<usize> = density.log_deviations().chain(scales_of_drifts).collect();
    let (point, _) = maximise(&counted, first.centre.clone(), first, &fixed, search, &|| ())?;
    Scaling::from_curvature(&counted, point, scales, &|| ())
}

/// The point moved, where `by` is not empty.
fn moved(point: &[f64], by: &[f64]) -> Vec<f64> {
    if by.is_empty() {
        return point.to_vec();
    }
    point.iter().zip(by).map(|(at, by)| at + by).collect()
}

/// Runs the chains; the draws are moved by `shift`, where there is one. With a guide, the chains start under that and are
/// driven by it.
fn run<M: Metric + Clone>(
    panel: &Panel,
    reading: Reading,
    density: &StandardTarget,
    mut metric: M,
    mut guide: Option<Guide<StandardTarget, M>>,
    shift: &[f64],
    sampling: &SamplingParams,
) -> Result<StrengthsPosterior, Error> {
    let count = sampling.chains.next_multiple_of(LANES);
    let begun = guide.as_ref().map_or(&metric, |guide| &guide.metric).clone();
    let begins = guide.as_ref().map_or(density, |guide| &guide.density);
    let mut chains = Chains::new(begins, begun, count, 1.0, sampling.seed)?;
    let mut posterior = StrengthsPosterior {
        support: density.target().support.clone(),
        reading,
        draws: Draws::new(count),
        episodes: EpisodeDrifts::new(panel),
        normal: false,
    };
    // Usually the third check is passed.
    let expected = sampling.draws.min(3 * BETWEEN_CHECKS);
    let warm_up = if guide.is_some() { WARM_UP.0 } else { WARM_UP.1 };
    let stage = progress::stage(SAMPLING, (warm_up + expected) as u64);
    for number in 0..warm_up {
        chains.advance(guide.as_ref().map_or(density, |guide| &guide.density), None, true)?;
        // Twice, because the first draws are correlated the more, the worse the metric is.
        if number == warm_up / 4 || number == warm_up / 2 {
            chains.begin_measuring();
        }
        if number + 1 == warm_up / 2 || number == 7 * warm_up / 8 {
            let change = chains.recoordinate();
            if let (Some(guide), Some(change)) = (&mut guide, &change) {
                guide.metric.recoordinate(change);
                metric.recoordinate(change);
            }
        }
        stage.advance();
    }
    chains.settle();
    if let Some(given) = &guide {
        match chains.clone().guided(density, given, metric.clone())? {
            Some(guided) => chains = guided,
            None => {
                // The approximation is too far off to be of use.
                chains = chains.unguided(density, metric)?;
                guide = None;
            }
        }
    }
    for number in 1..=sampling.draws {
        chains.advance(density, guide.as_ref(), false)?;
        stage.at((warm_up + number.min(expected)) as u64);
        let points: Vec<Vec<f64>> = chains
            .points()
            .iter()
            .map(|variables| Ok(moved(&density.point(variables)?, shift)))
            .collect::<Result<_, Error>>()?;
        let draws: Vec<Result<StrengthsDraw, Error>> =
            points.par_iter().map(|point| posterior.reading.draw(density.target(), point)).collect();
        for ((chain, draw), point) in draws.into_iter().enumerate().zip(&points) {
            posterior.draws.push(chain, draw?);
            posterior.episodes.add(density.target(), point);
        }
        let finishing = progress::finishing() && number >= 4;
        if number % BETWEEN_CHECKS == 0 || number == sampling.draws || finishing {
            posterior.draws.check();
            if finishing || posterior.draws.converged() || posterior.draws.hopeless(sampling.draws) {
                break;
            }
        }
    }
    Ok(posterior)
}

impl StrengthsPosterior {
    /// Weights A of a listener, its own first, of a draw.
    fn weights(&self, draw: &StrengthsDraw, listener: usize) -> Vec<f64> {
        let mut weights = vec![0.0; self.support.of(listener).len()];
        listener_weights(&self.support, &draw.weights, listener, 1.0, &mut weights);
        weights
    }

    /// What is kept of it in a model.
    fn summary(&self) -> Posterior {
        let agents = self.support.agents();
        let edges: Vec<Vec<EdgeInterval>> = (0..agents)
            .into_par_iter()
            .map(|listener| {
                let weights: Vec<Vec<f64>> = self.draws.iter().map(|draw| self.weights(draw, listener)).collect();
                let speakers = &self.support.speakers[self.support.of(listener)];
                (1..speakers.len())
                    .map(|place| {
                        let found = interval(weights.iter().map(|weights| weights[place]).collect());
                        EdgeInterval::new(speakers[place] as usize, listener, found)
                    })
                    .collect()
            })
            .collect();
        let spread = |draw: &StrengthsDraw| likeliest(OF_STRENGTHS, &draw.weights[..agents], 0.0, std::iter::empty());
        let prior = self.draws.mean(spread);
        let information = (0..agents).map(|agent| {
            let variance = self.draws.variance(|draw| draw.weights[agent]);
            rounded(0.5 * (prior / variance).ln().max(0.0))
        });
        Posterior {
            normal_approximation: self.normal,
            edges: edges.concat(),
            information: information.collect(),
            ..self.draws.summary((MOST_NUMBERS / (2 * agents)).clamp(FEWEST_KEPT, MOST_KEPT))
        }
    }

    /// Posterior means of the weights A, by edge of the support.
    fn mean_weights(&self) -> Vec<f64> {
        let count = self.draws.iter().count() as f64;
        let listeners = (0..self.support.agents()).into_par_iter();
        let means: Vec<Vec<f64>> = listeners
            .map(|listener| {
                let mut sum = vec![0.0; self.support.of(listener).len()];
                for draw in self.draws.iter() {
                    let weights = self.weights(draw, listener);
                    sum.iter_mut().zip(&weights).for_each(|(sum, weight)| *sum += weight / count);
                }
                sum
            })
            .collect();
        means.concat()
    }

    /// Replaces the estimates of a model by posterior means, and adds the draws.
    pub(crate) fn apply(&self, model: &mut Model) -> Result<(), Error> {
        let agents = self.support.agents();
        let weights = self.mean_weights();
        model.combination = combination(&self.support, &weights)?;
        self.draws.apply(model)?;
        if let Some(smoothing) = &mut model.diagnostics.smoothing {
            let strengths: Vec<f64> = (0..agents).map(|agent| self.draws.mean(|draw| draw.weights[agent])).collect();
            let centre = strengths.iter().sum::<f64>() / agents as f64;
            smoothing.strengths = Some(strengths.iter().map(|strength| (strength - centre).exp()).collect());
            let own = |listener: usize| weights[self.support.starts[listener]];
            let others = (0..agents).filter(|&listener| self.support.of(listener).len() > 1);
            smoothing.self_weight = Some(median(others.map(own).collect()));
        }
        model.diagnostics.episodes = self.episodes.evidence(&self.reading.axes, agents, model.adaptation);
        model.diagnostics.posterior = Some(self.summary());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
