//! Forecast skill on held-out steps, and the choice between edges and strengths by it.

use super::summary::SeriesSummary;
use super::{StateSpaceLearner, StateSpaceParams};
use crate::learn::ar_baseline;
use crate::learn::common_trend::CommonTrend;
use crate::model::{Skill, WeightKind, WeightsSelection};
use crate::{Combination, Error, Panel};

/// Forecasts of the last fifth of a panel by a fit to the rest: the last fifth of each episode where all are at least ten
/// steps long, otherwise the last fifth of the episodes.
#[derive(Debug, Clone)]
pub(crate) struct HeldOut {
    pub(crate) skill: Option<Skill>,
    /// The network learned from the rest.
    pub(crate) combination: Combination,
    /// Its squared error.
    error: f64,
    /// Its mean log-density per held-out belief.
    density: f64,
}

/// Skill of one-step forecasts of the last fifth of a panel by a fit to the rest: against no change, against each agent's
/// own past with the same treatment of noise and silence, and against that own past after controlling for the group's
/// previous mean in both.
///
/// `None` without observations in the last fifth, or without changes.
pub fn skill(panel: &Panel, params: &StateSpaceParams) -> Result<Option<Skill>, Error> {
    skill_observed(panel, params, &|| ())
}

/// The same, with a report of every round; at most two fits of `params.rounds`.
pub(crate) fn skill_observed(
    panel: &Panel,
    params: &StateSpaceParams,
    each: RoundReport<'_>,
) -> Result<Option<Skill>, Error> {
    beyond_common(panel, params, &held_out_observed(panel, params, each)?, each)
}

/// Called after every round of a fit.
pub(crate) type RoundReport<'a> = &'a (dyn Fn() + Sync);

/// Adds the skill against each agent's own past after controlling for the common trend in both, of the groups given or of
/// all agents.
fn beyond_common(
    panel: &Panel,
    params: &StateSpaceParams,
    found: &HeldOut,
    each: RoundReport<'_>,
) -> Result<Option<Skill>, Error> {
    let Some(skill) = found.skill else { return Ok(None) };
    let groups = params.common.clone().unwrap_or_else(|| vec![0; panel.agents()]);
    let trend = CommonTrend::from_panel(panel, &panel.held_out_steps().seen, &groups);
    let rival = alone(panel, Some(&trend));
    let network = match &params.common {
        Some(_) => found.error,
        None => held_out_observed(panel, &StateSpaceParams { common: Some(groups), ..params.clone() }, each)?.error,
    };
    Ok(Some(Skill { beyond_common: (rival > 0.0).then(|| 1.0 - network / rival), ..skill }))
}

/// The choice between one weight per edge and one strength per speaker, and the skill of the chosen kind.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WeightsChoice {
    /// The kind chosen, and the skills compared.
    pub selection: WeightsSelection,
    /// Skill of the chosen kind on held-out steps; none where there are too few to hold some out.
    pub skill: Option<Skill>,
}

/// Strengths or edges, by the higher predictive density of held-out steps; strengths, which have fewer parameters, where that
/// cannot be measured.
pub fn choose(panel: &Panel, params: &StateSpaceParams) -> Result<WeightsChoice, Error> {
    choose_observed(panel, params, &|| ())
}

/// The same, with a report of every round; at most three fits of `params.rounds`.
pub(crate) fn choose_observed(
    panel: &Panel,
    params: &StateSpaceParams,
    each: RoundReport<'_>,
) -> Result<WeightsChoice, Error> {
    let with = |weights: WeightKind| StateSpaceParams { weights: Some(weights), ..params.clone() };
    let unmeasured = || {
        let selection = WeightsSelection::unmeasured(WeightKind::Strengths);
        Ok(WeightsChoice { selection, skill: None })
    };
    // Small fits keep one core busy.
    let fit = |weights: WeightKind| held_out_observed(panel, &with(weights), each);
    let (strengths, edges) = rayon::join(|| fit(WeightKind::Strengths), || fit(WeightKind::Edges));
    let strengths = match strengths {
        Err(Error::NotReady { .. }) => return unmeasured(),
        other => other?,
    };
    let edges = edges?;
    let (Some(strong), Some(free)) = (strengths.skill, edges.skill) else { return unmeasured() };
    let densities = (edges.density, strengths.density);
    let (chosen, found) = match strengths.density >= edges.density {
        true => (WeightKind::Strengths, strengths),
        false => (WeightKind::Edges, edges),
    };
    let selection = WeightsSelection {
        chosen,
        skill_edges: Some(free.against_own_past),
        skill_strengths: Some(strong.against_own_past),
        density_edges: Some(densities.0),
        density_strengths: Some(densities.1),
    };
    Ok(WeightsChoice { selection, skill: beyond_common(panel, &with(chosen), &found, each)? })
}

pub(crate) fn held_out(panel: &Panel, params: &StateSpaceParams) -> Result<HeldOut, Error> {
    held_out_observed(panel, params, &|| ())
}

fn held_out_observed(panel: &Panel, params: &StateSpaceParams, each: RoundReport<'_>) -> Result<HeldOut, Error> {
    let seen = panel.held_out_steps().seen;
    let mut learner = StateSpaceLearner::with_seen(panel, &seen, params)?;
    learner.run_observed(each)?;
    let forecasts = learner.forecasts(panel, &seen)?;
    let error = forecast_error(panel, &forecasts.forecast);
    let scored = panel.held_out_steps().scored;
    let beliefs = scored.iter().flat_map(|&step| (0..panel.agents()).map(move |agent| (step, agent)));
    let beliefs = beliefs.filter(|&(step, agent)| panel.posts(step, agent) > 0).count() * panel.ratios();
    let density = scored.iter().map(|&step| forecasts.log_densities[step]).sum::<f64>() / beliefs.max(1) as f64;
    Ok(HeldOut { skill: skill_of(panel, error), combination: learner.combination()?, error, density })
}

/// Skill of forecasts of the held-out steps of a panel with this summed squared error.
pub(crate) fn skill_of(panel: &Panel, error: f64) -> Option<Skill> {
    let scored = panel.held_out_steps().scored;
    let own_past = alone(panel, None);
    let (carried, _) = panel.clone().carry_forward();
    let persistence = squared_error(panel, &scored, |step, cell| carried.cells()[(step - 1) * panel.width() + cell]);
    (own_past > 0.0 && persistence > 0.0).then(|| Skill {
        against_persistence: 1.0 - error / persistence,
        against_own_past: 1.0 - error / own_past,
        beyond_common: None,
        steps: scored.len(),
    })
}

/// Squared error of each agent's own past, perhaps with the trend, on the held-out steps.
fn alone(panel: &Panel, trend: Option<&CommonTrend>) -> f64 {
    let seen = panel.held_out_steps().seen;
    let known = panel.kept(&seen);
    forecast_error(
        panel,
        &ar_baseline::forecasts(panel, &seen, &SeriesSummary::from_panel(&known, known.steps()), trend),
    )
}

fn forecast_error(panel: &Panel, forecasts: &[f64]) -> f64 {
    squared_error(panel, &panel.held_out_steps().scored, |step, cell| forecasts[step * panel.width() + cell])
}

/// Summed squared errors of forecasts of the observations of these steps.
fn squared_error(panel: &Panel, steps: &[usize], forecast: impl Fn(usize, usize) -> f64) -> f64 {
    let mut error = 0.0;
    for &step in steps {
        for cell in (0..panel.width()).filter(|cell| panel.posts(step, cell % panel.agents()) > 0) {
            error += (panel.cells()[step * panel.width() + cell] - forecast(step, cell)).powi(2);
        }
    }
    error
}
