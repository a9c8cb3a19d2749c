//! Speaker strengths on graphs of many agents, without expectation-maximisation.
//!
//! In: a panel and who may hear whom. Out: a [`Model`] from the maximum of the posterior, found under a filter with a
//! diagonal covariance and corrected by the exact gradient; with draws of chains, or of the normal law about the maximum.

use super::meaning::{EpisodeDrifts, Reading, StrengthsDraw};
use super::prepared::{Prepared, posts, prepare};
use super::{APPROXIMATING, CORRECTING, StrengthsPosterior, moved, run, standardise, unknown};
use crate::learn::method::Method;
use crate::learn::posterior::arrow::ArrowMetric;
use crate::learn::posterior::attention::Attention;
use crate::learn::posterior::draws::Draws;
use crate::learn::posterior::filter::{self, Audience};
use crate::learn::posterior::marginal::MarginalParams;
use crate::learn::posterior::sampler::Metric;
use crate::learn::posterior::target::{Density, StrengthsTarget};
use crate::learn::posterior::trajectory::{Observations, SparseDynamics, Trajectory};
use crate::learn::posterior::{SamplingParams, large};
use crate::learn::regressors::DistinctAgents;
use crate::learn::state_space::{self, StateSpaceParams};
use crate::model::{self, ColumnDiagnostics, Skill, Smoothing, WeightKind};
use crate::{Combination, Error, Evidence, Model, Panel, progress};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Most steps × edges for chains: about two minutes of one core. Beyond, draws are from the normal approximation.
const MOST_SAMPLED: usize = 2_000_000;

/// Relative error of the smoothed beliefs, of which only the sign of a mean matters.
const SMOOTHED: f64 = 1e-4;

/// The maximum of the approximate density of a large network, with its curvature.
pub(super) fn search(prepared: &mut Prepared, seed: u64) -> Result<ArrowMetric, Error> {
    let stage = progress::stage(APPROXIMATING, large::SEARCH_STEPS as u64);
    large::approximate(prepared, seed, &|| stage.advance())
}

/// From the maximum of the approximate density to that of the exact one.
pub(super) fn shift(target: &StrengthsTarget, metric: &ArrowMetric, seed: u64) -> Result<Vec<f64>, Error> {
    let stage = progress::stage(CORRECTING, large::CLIMB as u64);
    let reached = large::climb(target, metric, seed, &|| stage.advance())?;
    Ok(reached.iter().zip(metric.centre()).map(|(a, b)| a - b).collect())
}

/// Chains under the approximate density of a large network, with draws moved by `shift`.
pub(super) fn run_large(
    panel: &Panel,
    reading: Reading,
    target: &StrengthsTarget,
    metric: &ArrowMetric,
    scales: &[f64],
    shift: &[f64],
    sampling: &SamplingParams,
) -> Result<StrengthsPosterior, Error> {
    let unknown = unknown(target, |place| metric.variance(place));
    let standard = standardise(target, metric.centre(), unknown)?;
    let metric = large::standardised(&standard, metric, scales)?;
    run(panel, reading, &standard, metric, None, shift, sampling)
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
    let scales = prepared.scales.clone();
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
            run_large(panel, reading, &target, &metric, &scales, &shift, sampling)?
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
