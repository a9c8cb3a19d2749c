//! The posterior of speaker strengths by Hamiltonian Monte Carlo.
//!
//! In: a panel and who may hear whom. Out: a [`StrengthsPosterior`]: draws of the network, δ and the
//! evidence, with their convergence.

mod meaning;
mod prepared;

use super::arrow::ArrowMetric;
use super::attention::{Attention, listener_weights};
use super::draws::Draws;
use super::filter::{self, Audience};
use super::lanes::LANES;
use super::marginal::{MarginalParams, Support};
use super::sampler::{Chains, Guide, Metric, POINTS_OF_A_STEP, Scaling, Search, maximise};
use super::target::{
    DRIFT_FREEDOM, Density, Evaluation, OF_DEVIATIONS, OF_NEWS, OF_STRENGTHS, RatioLayout, StrengthsTarget,
    UnknownVariance, Variances,
};
use super::trajectory::{Observations, SparseDynamics, Trajectory};
use super::{SAMPLING, SamplingParams, large};
use crate::learn::gsl::Constraint;
use crate::learn::method::Method;
use crate::learn::regressors::DistinctAgents;
use crate::learn::state_space::{self, StateSpaceParams};
use crate::model::posterior::{EdgeInterval, Posterior, interval, rounded};
use crate::model::{self, ColumnDiagnostics, Skill, Smoothing, WeightKind};
use crate::{Combination, Error, Evidence, Model, Panel, progress};
use meaning::{EpisodeDrifts, Reading, StrengthsDraw, combination};
pub(crate) use prepared::{Prepared, prepare};
use prepared::{median, posts};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest product of observations and squared number of agents for the exact likelihood; beyond it the filter's covariance
/// is kept diagonal, and the draws are moved by the difference between the maxima.
const MOST_WORK: usize = 60_000_000;

/// Most steps × edges for chains: about two minutes of one core. Beyond, draws are from the normal approximation.
const MOST_SAMPLED: usize = 2_000_000;

/// Most agents for expectation-maximisation with a dense covariance, where strengths on a graph can do without.
const MOST_DENSE: usize = 60;

/// Rounds of maximum, curvature and variances before the chains start, and steps of the search in the first and in the
/// others.
const ROUNDS: usize = 3;
const SEARCH: (usize, usize) = (150, 40);

/// Trajectories in which the chains adapt their step and leave their start.
const WARM_UP: usize = 60;

/// Steps of the search from the maximum of the approximate density to that of the exact one.
const CORRECTIONS: usize = 30;

/// Draws of each chain between two checks of convergence.
const BETWEEN_CHECKS: usize = 20;

/// Draws that are kept for intervals: at most, at least, and the numbers in all of them that a model file has room for.
const MOST_KEPT: usize = 500;
const FEWEST_KEPT: usize = 100;
const MOST_NUMBERS: usize = 2_000_000;

/// Relative error of the smoothed beliefs, of which only the sign of a mean matters.
const SMOOTHED: f64 = 1e-4;

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

/// Evaluations of [`approximate`] at most, in groups of [`LANES`] points.
fn most_evaluations(size: usize) -> u64 {
    let groups = |points: usize| points.div_ceil(LANES);
    let round = |round: usize| 1 + search_steps(round) * groups(POINTS_OF_A_STEP) + groups(2 * size);
    (0..ROUNDS).map(round).sum::<usize>() as u64
}

/// Evaluations of [`sample_guided`] by the exact density at most, in groups of [`LANES`] points.
fn most_corrections(size: usize) -> u64 {
    (1 + CORRECTIONS * POINTS_OF_A_STEP.div_ceil(LANES) + (2 * size).div_ceil(LANES)) as u64
}

/// A density that tells of its evaluations, in groups of [`LANES`] points.
struct Counted<'a> {
    density: &'a StrengthsTarget,
    each: &'a (dyn Fn(u64) + Sync),
}

impl Density for Counted<'_> {
    fn size(&self) -> usize {
        self.density.size()
    }

    fn evaluate(&self, points: &[Vec<f64>]) -> Result<Vec<Evaluation>, Error> {
        let found = self.density.evaluate(points)?;
        (self.each)(points.len().div_ceil(LANES) as u64);
        Ok(found)
    }
}

/// Coordinates for the chains: the maximum given the variances of the hierarchy, and the curvature there; the variances
/// follow by expectation-maximisation. At a maximum over the variances too, strengths would shrink to nothing.
fn approximate(prepared: &mut Prepared, each: &(dyn Fn(u64) + Sync)) -> Result<Scaling, Error> {
    let Prepared { target, start, scales } = prepared;
    let mut point = start.clone();
    let mut scaling = Scaling::diagonal(point.clone(), scales);
    let fixed: Vec<usize> = (0..target.ratios.len()).map(|number| target.ratio(number).drift_scale()).collect();
    for round in 0..ROUNDS {
        let counted = Counted { density: target, each };
        point = maximise(&counted, point, &scaling, &fixed, Search::thorough(search_steps(round)), &|| ())?.0;
        scaling = Scaling::from_curvature(&counted, point.clone(), scales, &|| ())?;
        if round + 1 == ROUNDS {
            break;
        }
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
        target.variances = Variances::Held(held);
    }
    Ok(scaling)
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
        run(panel, reading, prepared.target, metric, None, &shift, sampling)
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
    let Prepared { mut target, start, scales } = exact;
    let mut prepared = Prepared { target: target.approximated(), start, scales };
    let stage = progress::stage(APPROXIMATING, most_evaluations(target.size()));
    let done = AtomicU64::new(0);
    let metric = approximate(&mut prepared, &|groups| stage.at(done.fetch_add(groups, Ordering::Relaxed) + groups))?;
    drop(stage);
    target.variances = prepared.target.variances;
    let fixed: Vec<usize> = (0..target.ratios.len()).map(|number| target.ratio(number).drift_scale()).collect();
    let stage = progress::stage(CORRECTING, most_corrections(target.size()));
    let done = AtomicU64::new(0);
    let each = |groups| stage.at(done.fetch_add(groups, Ordering::Relaxed) + groups);
    let counted = Counted { density: &target, each: &each };
    let search = Search::thorough(CORRECTIONS);
    let (point, _) = maximise(&counted, metric.centre.clone(), &metric, &fixed, search, &|| ())?;
    let exact = Scaling::from_curvature(&counted, point, &prepared.scales, &|| ())?;
    drop(stage);
    run(panel, reading, target, exact, Some((prepared.target, metric)), &[], sampling)
}

/// The maximum of the approximate density of a large network, with its curvature.
fn search(prepared: &mut Prepared, seed: u64) -> Result<ArrowMetric, Error> {
    let stage = progress::stage(APPROXIMATING, large::SEARCH_STEPS as u64);
    large::approximate(prepared, seed, &|| stage.advance())
}

/// From the maximum of the approximate density to that of the exact one.
fn shift(target: &StrengthsTarget, metric: &ArrowMetric, seed: u64) -> Result<Vec<f64>, Error> {
    let stage = progress::stage(CORRECTING, large::CLIMB as u64);
    let reached = large::climb(target, metric, seed, &|| stage.advance())?;
    Ok(reached.iter().zip(metric.centre()).map(|(a, b)| a - b).collect())
}

/// The point moved, where `by` is not empty.
fn moved(point: &[f64], by: &[f64]) -> Vec<f64> {
    if by.is_empty() {
        return point.to_vec();
    }
    point.iter().zip(by).map(|(at, by)| at + by).collect()
}

/// Runs the chains; the draws are moved by `shift`, where there is one. With an approximation and its metric, the chains
/// start under that and are driven by it.
fn run<M: Metric + Clone>(
    panel: &Panel,
    reading: Reading,
    mut target: StrengthsTarget,
    metric: M,
    approximation: Option<(StrengthsTarget, M)>,
    shift: &[f64],
    sampling: &SamplingParams,
) -> Result<StrengthsPosterior, Error> {
    target.variances = Variances::Integrated;
    let count = sampling.chains.next_multiple_of(LANES);
    let mut guide = approximation.map(|(density, metric)| Guide { density, metric });
    if let Some(guide) = &mut guide {
        guide.density.variances = Variances::Integrated;
    }
    let start = guide.as_ref().map_or(&target, |guide| &guide.density);
    let begun = guide.as_ref().map_or(&metric, |guide| &guide.metric).clone();
    let mut chains = Chains::new(start, begun, count, 1.0, sampling.seed)?;
    let mut posterior = StrengthsPosterior {
        support: target.support.clone(),
        reading,
        draws: Draws::new(count),
        episodes: EpisodeDrifts::new(panel),
        normal: false,
    };
    // Usually the third check is passed.
    let expected = sampling.draws.min(3 * BETWEEN_CHECKS);
    let stage = progress::stage(SAMPLING, (WARM_UP + expected) as u64);
    for number in 0..WARM_UP {
        chains.advance(start, None, true)?;
        if number == WARM_UP / 2 {
            chains.begin_rescaling();
        } else if number == 3 * WARM_UP / 4 {
            chains.rescale();
        }
        stage.advance();
    }
    chains.settle();
    if let Some(guide) = &guide {
        chains = chains.guided(&target, guide, metric)?;
    }
    for number in 1..=sampling.draws {
        chains.advance(&target, guide.as_ref(), false)?;
        stage.at((WARM_UP + number.min(expected)) as u64);
        let points: Vec<Vec<f64>> = chains.points().iter().map(|point| moved(point, shift)).collect();
        let draws: Vec<Result<StrengthsDraw, Error>> =
            points.par_iter().map(|point| posterior.reading.draw(&target, point)).collect();
        for ((chain, draw), point) in draws.into_iter().enumerate().zip(&points) {
            posterior.draws.push(chain, draw?);
            posterior.episodes.add(&target, point);
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

/// Independent draws from the normal law with the curvature of the metric about the maximum.
fn normal_draws(
    panel: &Panel,
    target: &StrengthsTarget,
    metric: &ArrowMetric,
    shift: &[f64],
    sampling: &SamplingParams,
) -> Result<StrengthsPosterior, Error> {
    sampling.check()?;
    let stage = progress::stage("drawing from the normal approximation", sampling.draws as u64);
    let reading = Reading::of_many(&target.support)?;
    let draws: Vec<Result<StrengthsDraw, Error>> = (0..sampling.draws as u64)
        .into_par_iter()
        .map(|number| {
            progress::check()?;
            let mut rng = ChaCha8Rng::seed_from_u64(sampling.seed);
            rng.set_stream(number);
            let y: Vec<f64> = (0..target.size()).map(|_| StandardNormal.sample(&mut rng)).collect();
            let draw = reading.draw(target, &moved(&metric.point(&y), shift))?;
            stage.advance();
            Ok(draw)
        })
        .collect();
    Ok(StrengthsPosterior {
        support: target.support.clone(),
        reading,
        draws: Draws::independent(draws.into_iter().collect::<Result<_, _>>()?),
        episodes: EpisodeDrifts::new(panel),
        normal: true,
    })
}

/// Learns speaker strengths on a graph of many agents: from the maximum of the posterior, and from draws where `params` ask
/// for them.
pub(crate) fn learn(panel: &Panel, params: &StateSpaceParams) -> Result<Model, Error> {
    let params = StateSpaceParams { weights: Some(WeightKind::Strengths), ..params.clone() };
    state_space::check(panel, panel.steps(), &params)?;
    let agents = panel.agents();
    let distinct = DistinctAgents::from_panel(&panel.clone().carry_forward().0);
    if distinct.regressors.is_empty() {
        return Err(Error::Undefined {
            what: "a network",
            reason: "no agent's beliefs change: there is nothing to learn from".into(),
        });
    }
    let support = params.support.as_deref().unwrap_or_default();
    let seed = params.sampling.unwrap_or_default().seed;
    let mut prepared = prepare(panel, panel.steps(), support, params.adaptation);
    // The exact likelihood has a metric of its own, which this function does not use.
    let audience = Audience::new(&prepared.target.support);
    prepared.target.audience.get_or_insert(audience);
    let Maximum { target, metric, shift, reached, log_likelihood } = match params.sketch {
        true => sketched(prepared)?,
        false => {
            let metric = search(&mut prepared, seed)?;
            let target = prepared.target;
            let shift = shift(&target, &metric, seed)?;
            let reached = moved(metric.centre(), &shift);
            let log_likelihood = target.evaluate(std::slice::from_ref(&reached))?.swap_remove(0).value;
            Maximum { target, metric: Some(metric), shift, reached, log_likelihood }
        }
    };
    let reading = Reading::of_many(&target.support)?;
    let (believed, draw) = (smoothed(panel, &target, &reached)?, reading.draw(&target, &reached)?);
    let adaptation = draw.adaptation;
    let work = panel.steps().saturating_mul(target.support.edges());
    let posterior = match (&params.sampling, metric) {
        (Some(sampling), Some(metric)) if work <= MOST_SAMPLED => {
            sampling.check()?;
            run(panel, reading, target, metric, None, &shift, sampling)?
        }
        (Some(sampling), Some(metric)) => normal_draws(panel, &target, &metric, &shift, sampling)?,
        (None, _) | (_, None) => StrengthsPosterior {
            support: target.support.clone(),
            reading,
            // A single draw: the maximum.
            draws: Draws::independent(vec![draw]),
            episodes: EpisodeDrifts::new(panel),
            normal: false,
        },
    };
    let combination = Combination::from_triplets((0..agents).map(|agent| (agent, agent, 1.0)).collect(), agents)?;
    let evidence = Evidence::from_rows(vec![0.0; agents], agents, 1)?;
    let method = Method::StateSpace(params.clone());
    // What is learned is filled in from the draws.
    let mut model = Model::new(panel.roster().clone(), combination, evidence, adaptation, method);
    model.diagnostics.columns =
        panel.roster().agents().iter().map(|name| ColumnDiagnostics::statistical(name, 1)).collect();
    model.diagnostics.evidence_steps = Some(panel.steps() - 1);
    model.diagnostics.steps = Some(panel.steps());
    model.diagnostics.warnings = distinct.warnings(panel);
    model.diagnostics.smoothing = Some(Smoothing {
        log_likelihood,
        rounds: if params.sketch { large::SKETCH } else { large::CLIMB },
        converged: !params.sketch,
        noise: Vec::new(),
        weights: WeightKind::Strengths,
        shrinkage: params.shrinkage,
        selection: None,
        adaptation_given: params.adaptation.is_some(),
        strengths: None,
        self_weight: None,
        common: None,
    });
    posterior.apply(&mut model)?;
    if params.sampling.is_none() || params.sketch {
        model.diagnostics.posterior = None;
        model.diagnostics.evidence_errors = None;
    }
    model.truth = Some(model::settled(&believed, model.adaptation));
    if params.sketch {
        model.diagnostics.warnings.push(format!(
            "a sketch: the search for the best network ended after at most {} steps, and nothing was sampled, so there are neither intervals nor a forecast skill; a fit without it has them",
            large::SKETCH
        ));
    } else {
        model.diagnostics.skill = forecast_skill(panel, &params)?;
    }
    Ok(model)
}

/// Where the search for the maximum of a large network ended.
struct Maximum {
    target: StrengthsTarget,
    /// None of a sketch.
    metric: Option<ArrowMetric>,
    shift: Vec<f64>,
    reached: Vec<f64>,
    log_likelihood: f64,
}

/// A short search for the maximum of the approximate density.
fn sketched(prepared: Prepared) -> Result<Maximum, Error> {
    let stage = progress::stage(APPROXIMATING, large::SKETCH as u64);
    let (reached, log_likelihood) = large::sketch(&prepared, &|| stage.advance())?;
    Ok(Maximum { target: prepared.target, metric: None, shift: Vec::new(), reached, log_likelihood })
}

/// The posterior means of the hidden beliefs at these parameters, as a panel.
fn smoothed(panel: &Panel, target: &StrengthsTarget, point: &[f64]) -> Result<Panel, Error> {
    let (agents, places) = (panel.agents(), target.ratio(0));
    let attention = Attention::new(&target.support, point);
    let mut dynamics = SparseDynamics::from_support(&target.support, attention.weights);
    dynamics.innovation = point[places.news()].iter().map(|news| news.exp()).collect();
    dynamics.first_variance.clone_from(&target.ratios[0].first);
    let (levels, noise) = (&point[places.levels()], point[places.noise()].exp());
    let (mut means, mut precisions) = (vec![0.0; panel.steps() * agents], vec![0.0; panel.steps() * agents]);
    for step in 0..panel.steps() {
        for one in target.ratios[0].posts.at(step) {
            let cell = step * agents + one.agent as usize;
            means[cell] = one.value - levels[one.agent as usize];
            precisions[cell] = 1.0 / (noise * one.share);
        }
    }
    let observations = Observations::new(agents, means, precisions)?;
    let mut beliefs = Trajectory::new(&dynamics, &observations)?.mean(SMOOTHED)?;
    beliefs.iter_mut().enumerate().for_each(|(cell, belief)| *belief += levels[cell % agents]);
    Panel::complete(panel.roster().clone(), beliefs)
}

/// Skill of forecasts of the last fifth of a panel, by the approximate maximum for the rest.
pub(crate) fn forecast_skill(panel: &Panel, params: &StateSpaceParams) -> Result<Option<Skill>, Error> {
    let seed = params.sampling.unwrap_or_default().seed;
    // Without episodes the steps that are seen come first.
    let seen = panel.steps() - panel.held_out_steps().scored.len();
    if state_space::check(panel, seen, params).is_err() {
        return Ok(None);
    }
    let _stage = progress::stage("forecasting held-out steps", 0);
    let support = params.support.as_deref().unwrap_or_default();
    let mut prepared = prepare(panel, seen, support, params.adaptation);
    let audience = Audience::new(&prepared.target.support);
    prepared.target.audience.get_or_insert(audience);
    let metric = large::approximate(&mut prepared, seed, &|| ())?;
    let all = posts(panel, 0, panel.steps());
    let target = &prepared.target;
    let point = target.pinned(metric.centre());
    let places = target.ratio(0);
    let one = |value: f64| [value];
    let given = MarginalParams::<1> {
        weights: Attention::new(&target.support, &point).weights.into_iter().map(one).collect(),
        news: point[places.news()].iter().map(|news| [news.exp()]).collect(),
        noise: [point[places.noise()].exp()],
        levels: point[places.levels()].iter().copied().map(one).collect(),
    };
    let errors = filter::forecast_errors(&target.support, &all, &target.ratios[0].first, &given);
    let error = errors[all.starts[seen]..].iter().map(|error| error * error).sum();
    Ok(state_space::skill_of(panel, error))
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
