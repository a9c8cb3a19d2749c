//! The whitened learner: the paper's regression by feasible generalised least squares, with the log-ratios of each listener
//! weighted by their inverse residual covariance.
//!
//! In: a complete panel. Out: a model, with δ estimated, each column of A certified, identified or statistical, and the
//! private likelihoods where they are identified.
//!
//! A is a regression coefficient with regressors common to all listeners, so lagged second moments suffice. The H
//! residuals of a listener are strongly correlated; when its private observation has fewer degrees of freedom than H, some
//! contrasts of them are free of noise and determine its column exactly. Weighting by the inverse residual covariance
//! finds those contrasts.
//!
//! Legend: S, C the moments; W_k = Σ_k⁻¹ the weights of listener k's hypotheses; `G_k = Σ W[h,g]S[h,g]`, c_k likewise;
//! b_k = G_k⁻¹c_k estimates (1−δ) times column k.

mod certificates;
mod estimate;
mod precision;
mod private_models;

pub(crate) use certificates::splits;
pub(crate) use estimate::{
    Estimate, Means, combine, estimate, evidence_by_episode, mean_evidence, silence_the_still, tidy,
};
pub(crate) use precision::{Precision, evidence_errors};

use super::Method;
use super::fit::{self, Fit, Standing};
use super::gsl::Constraint;
use super::regressors::{DistinctAgents, Regressors};
use crate::error::require;
use crate::model::{self, ColumnDiagnostics, Diagnostics, Status, Track};
use crate::{Combination, Error, Evidence, Model, Panel};
use certificates::{MOST_REPEATS, repeats, votes};
use faer::Mat;
use private_models::private_models;
use serde::{Deserialize, Serialize};

/// Parameters of [`whitened`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `adaptation` | none | δ; estimated when not given | (0, 1) |
/// | `constraint` | simplex | constraint on a listener's weights | |
/// | `ridge` | 0 | added to every G_k, relative to its mean diagonal | ≥ 0 |
/// | `rounds` | 8 | of reweighting | ≥ 1 |
/// | `symbols` | true | search for finite alphabets of private observations, certify columns | |
/// | `budget` | 10¹² | operations the search for symbols may take | ≥ 0 |
/// | `support` | none | for each listener the speakers it may hear; itself is always allowed | N lists |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhitenedParams {
    /// δ, or `None` to estimate it.
    pub adaptation: Option<f64>,
    /// Constraint on a listener's weights.
    pub constraint: Constraint,
    /// Relative ridge for short series.
    pub ridge: f64,
    /// Rounds of reweighting.
    pub rounds: usize,
    /// Whether to search for symbols.
    pub symbols: bool,
    /// Operations the search for symbols may take, about.
    #[serde(with = "crate::learn::method::infinite")]
    pub budget: f64,
    /// For each listener the speakers it may hear.
    pub support: Option<Vec<Vec<usize>>>,
}

impl Default for WhitenedParams {
    fn default() -> Self {
        WhitenedParams {
            adaptation: None,
            constraint: Constraint::Simplex,
            ridge: 0.0,
            rounds: 8,
            symbols: true,
            budget: 1e12,
            support: None,
        }
    }
}

impl WhitenedParams {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(adaptation) = self.adaptation {
            model::check_adaptation(adaptation)?;
        }
        require(self.ridge >= 0.0 && self.ridge.is_finite(), "ridge", self.ridge, "zero or more")?;
        require(self.rounds >= 1, "rounds", self.rounds, "at least 1")
    }
}

/// Checks that a support has one list per agent and valid indices.
pub(crate) fn check_support(agents: usize, support: Option<&[Vec<usize>]>) -> Result<(), Error> {
    let Some(support) = support else { return Ok(()) };
    if support.len() == agents && support.iter().flatten().all(|&speaker| speaker < agents) {
        return Ok(());
    }
    Err(Error::Shape {
        what: "support",
        met: format!("{} lists", support.len()),
        wanted: format!("{agents} lists of indices below that"),
    })
}

fn check(panel: &Panel, params: &WhitenedParams) -> Result<(), Error> {
    params.check()?;
    if panel.steps() < 3 {
        return Err(Error::NotReady { seen: panel.steps(), needed: 3 });
    }
    check_support(panel.agents(), params.support.as_deref())?;
    let size = panel.agents() * panel.ratios();
    if params.support.is_none() {
        super::moments::affordable(size, 1, "give a graph of who may listen to whom, or fewer agents")?;
    }
    if panel.episodes().transitions() == panel.episodes().count() && !panel.episodes().is_single() {
        let reason =
            "every episode has two steps, which its own mean explains; at least one with three is expected".into();
        return Err(Error::Undefined { what: "a network", reason });
    }
    panel.check_presence()?;
    if !panel.is_complete() {
        return Err(Error::Undefined {
            what: "the whitened fit",
            reason: "the panel has silent cells; fill them first (carry forward)".into(),
        });
    }
    Ok(())
}

/// Largest difference of δ between exact columns of agents that share one δ.
const ONE_ADAPTATION: f64 = 1e-6;

/// Weights below this count as zero.
const HEARD: f64 = 1e-6;

/// Estimates the network of a complete panel.
///
/// Errors: a panel with silence, fewer than three steps, all agents constant, parameters out of range. Cost: 3N²H² a
/// step for the moments, then for H = 1 one factorisation of N³/3, otherwise about ten of them per listener.
///
/// ```
/// use headwater::{learn::whitened::{whitened, WhitenedParams}, simulate::{simulate, WorldParams}};
/// let (panel, truth) = simulate(&WorldParams { steps: 80, ..WorldParams::default() }).unwrap();
/// let model = whitened(&panel, &WhitenedParams::default()).unwrap();
/// let error: f64 = model.combination.to_columns().iter().zip(truth.combination.to_columns())
///     .map(|(met, wanted)| (met - wanted).powi(2)).sum();
/// assert!(error < 1e-9); // the error of the paper's learner is 3.5 here
/// ```
pub fn whitened(panel: &Panel, params: &WhitenedParams) -> Result<Model, Error> {
    check(panel, params)?;
    let steps = panel.steps();
    let distinct = DistinctAgents::from_panel(panel);
    if distinct.regressors.is_empty() {
        return Err(Error::Undefined {
            what: "a network",
            reason: "no agent's beliefs change: there is nothing to learn from".into(),
        });
    }
    let mut warnings = distinct.warnings(panel);
    let design = Regressors::from_panel(panel, &distinct, params.support.as_deref());
    let listeners = &design.listeners;
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let most = (0..listeners.len()).map(|position| design.regressors(position).len()).max().unwrap_or(0);
    let transitions = panel.episodes().transitions();
    if transitions * ratios < most + ratios {
        warnings.push(format!(
            "{transitions} transitions of {ratios} log-ratio(s) cannot determine {most} weights per listener: without the constraint nothing is identified, and the weights shown are one of many fits"
        ));
    }
    let fits = fit::fits(&design, params)?;
    let mut adaptation = params.adaptation.unwrap_or_else(|| fit::voted(fits.iter().map(|fit| fit.vote)));
    let mut standings = design.each(|position| fit::standing(|| design.listener_moments(position), &fits[position]));
    let means = Means::from_panel(panel);
    let (mut splits, left_out) = match params.symbols {
        true => splits(panel, &means, &design, &fits, 1.0 - adaptation, params)?,
        false => (vec![None; listeners.len()], 0),
    };
    if left_out > 0 {
        warnings.push(format!(
            "the search for symbols was skipped for {left_out} of {} listeners because it would exceed its budget of {:.0e} operations",
            listeners.len(),
            params.budget
        ));
    }
    let repeats = repeats(panel);
    let repeating: Vec<usize> =
        listeners.iter().copied().filter(|&listener| repeats[listener] > MOST_REPEATS).collect();
    if !repeating.is_empty() {
        warnings.push(format!(
            "beliefs of these agents are often exactly repeated, as when silence is carried forward, so their columns are not certified: {}",
            panel.roster().list(&repeating)
        ));
    }
    let votes = votes(&splits);
    let exact_votes = splits.iter().flatten().any(|split| split.certified);
    if let (Some(vote), true) = (votes.get(votes.len() / 2), exact_votes) {
        let spread = votes[votes.len() - 1] - votes[0];
        if spread > ONE_ADAPTATION {
            warnings.push(format!(
                "certified weights sum to values that differ by up to {spread:.1e}: the agents do not share one δ, as the model assumes, so evidence and shares are biased"
            ));
        }
        if let Some(given) = params.adaptation.filter(|given| (given - vote).abs() > ONE_ADAPTATION) {
            warnings.push(format!(
                "δ = {given} contradicts the beliefs, whose exact weights give δ = {vote:.6}: evidence and shares are biased"
            ));
            if params.constraint == Constraint::Free {
                splits.iter_mut().flatten().for_each(|split| split.certified = false);
            }
        }
    }
    if params.adaptation.is_none() && !votes.is_empty() {
        adaptation = votes[votes.len() / 2].clamp(*fit::ADAPTATION.start(), *fit::ADAPTATION.end());
    }
    let blurred = splits.iter().flatten().filter(|split| split.constrained.is_some()).count();
    if blurred > 0 {
        warnings.push(format!(
            "the private symbols of {blurred} listeners are clearly separated but not exact, as in rounded beliefs: their weights are fitted within symbols, but not certified"
        ));
    }

    // The columns.
    let sum = 1.0 - adaptation;
    for (position, standing) in standings.iter_mut().enumerate() {
        // Single weights of agents with equal series are not identified, nor the weight of an agent that never changes.
        let heard = design.regressors(position).iter().zip(&fits[position].weights);
        let copied = heard.filter(|(_, weight)| weight.abs() > HEARD).any(|(&speaker, _)| design.copied(speaker));
        let missing = design.someone_never_moves() && (fits[position].vote.0 - sum).abs() > HEARD;
        if standing.status == Status::Identified && (copied || missing) {
            standing.status = Status::Statistical;
        }
    }
    let weights = design.each_watched("weighing listeners", |position| {
        let split = splits[position].as_ref();
        if let Some(split) = split.filter(|split| split.certified) {
            return tidy(&split.weights, params.constraint, sum);
        }
        let fit = &fits[position];
        // Noise-free contrasts are more accurate than symbols of rounded beliefs.
        let blurred = split.and_then(|split| split.constrained.as_ref()).filter(|within| {
            let standing = &standings[position];
            standing.status != Status::Identified
                || fit::as_quiet(&design.listener_moments(position), fit, standing.rank, within)
        });
        match (params.constraint, blurred) {
            (Constraint::Free, _) => fit.weights.clone(),
            // Fitted for the first δ̂; columns sum to one whatever it is.
            (_, Some(within)) => tidy(within, params.constraint, sum),
            _ => fit::constrained(&design.listener_moments(position), fit, sum, params)
                .map_or_else(|| fit.weights.clone(), |fit| fit.weights),
        }
    })?;
    let combination = combine(&design, &distinct, &weights, sum, agents, params.support.is_some())?;
    let certified = |position: usize| splits[position].as_ref().is_some_and(|split| split.certified);
    let doubtful: Vec<usize> = (0..listeners.len())
        .filter(|&position| !standings[position].confounded.is_empty() && !certified(position))
        .collect();
    if let Some(&first) = doubtful.first() {
        let of: Vec<usize> = doubtful.iter().map(|&position| listeners[position]).collect();
        let speakers = design.regressors(first);
        let confounded: Vec<usize> = standings[first].confounded.iter().map(|&place| speakers[place]).collect();
        warnings.push(format!(
            "the noise-free contrasts of these listeners do not tell all their speakers apart: {} (for {}, not {})",
            panel.roster().list(&of),
            panel.roster().agents()[listeners[first]],
            panel.roster().list(&confounded)
        ));
    }
    let mut model = assemble(panel, &means, combination, adaptation, params)?;
    silence_the_still(&mut model, &distinct)?;
    let exact = private_models(&mut model, panel, &means, listeners, &splits, &mut warnings)?;
    let vote = if params.adaptation.is_some() || !votes.is_empty() { 0.0 } else { variance_of_the_vote(&fits) };
    let shared = design.shared().map(|_| Precision::from_moments(&design.listener_moments(0), &Mat::identity(1, 1)));
    let precisions = design.each(|position| {
        (!certified(position)).then(|| {
            let fit = &fits[position];
            match &shared {
                Some(shared) => shared.scaled(fit.covariance[(0, 0)].max(0.0)),
                None => {
                    let listener_moments = design.listener_moments(position);
                    Precision::from_moments(&listener_moments, &fit::inverse(&listener_moments, &fit.covariance))
                }
            }
        })
    });
    let poor = |position: &usize| {
        let known = precisions[*position].as_ref().filter(|_| standings[*position].status == Status::Statistical);
        known.is_some_and(|precision| precision.sound().is_none())
    };
    let collinear: Vec<usize> = (0..listeners.len()).filter(poor).map(|position| listeners[position]).collect();
    if !collinear.is_empty() {
        warnings.push(format!(
            "the speakers of these listeners are nearly collinear, so single weights are poorly determined even where their sums are not: {}",
            panel.roster().list(&collinear)
        ));
    }
    let mut errors = vec![vec![0.0; ratios]; agents];
    for (position, &agent) in listeners.iter().enumerate().filter(|(_, agent)| !exact[**agent]) {
        let (evidence, covariance) = (model.evidence.agent(agent), &fits[position].covariance);
        let found = evidence_errors(precisions[position].as_ref(), covariance, transitions, evidence, vote);
        errors[agent] = found.into_iter().map(|error| error / adaptation).collect();
    }
    let column = |agent: usize| {
        let name = panel.roster().agents()[agent].clone();
        let Ok(position) = listeners.binary_search(&agent) else {
            return ColumnDiagnostics::statistical(&name, 0);
        };
        let Standing { status, rank, .. } = standings[position];
        match splits[position].as_ref().filter(|split| split.certified) {
            Some(split) => ColumnDiagnostics {
                agent: name,
                status: Status::Certified,
                rank,
                condition: Some(split.condition),
                weight_error: Some(0.0),
            },
            None => ColumnDiagnostics {
                agent: name,
                status,
                rank,
                condition: precisions[position].as_ref().and_then(|precision| precision.condition),
                weight_error: (precisions[position].as_ref())
                    .and_then(Precision::sound)
                    .map(|precision| precision.weight_error / sum),
            },
        }
    };
    model.diagnostics = Diagnostics {
        columns: (0..agents).map(column).collect(),
        column_sum_spread: Some(fit::spread(fits.iter().zip(&splits).map(|(fit, split)| {
            let certain = split.as_ref().filter(|split| split.certified);
            certain.map_or(fit.vote.0, |split| split.weights.iter().sum())
        }))),
        evidence_steps: Some(transitions),
        evidence_errors: Some(errors),
        steps: Some(steps),
        episodes: evidence_by_episode(panel, &model.combination, adaptation),
        warnings,
        ..Diagnostics::default()
    };
    Ok(model)
}

/// Variance of the weighted median of the column sums, which is π/2 times that of their mean.
pub(crate) fn variance_of_the_vote(fits: &[Fit]) -> f64 {
    std::f64::consts::FRAC_PI_2 / fits.iter().map(|fit| fit.vote.1).sum::<f64>()
}

/// The model with evidence as means over all steps.
fn assemble(
    panel: &Panel,
    means: &Means,
    combination: Combination,
    adaptation: f64,
    params: &WhitenedParams,
) -> Result<Model, Error> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let evidence = mean_evidence(means, &combination, adaptation, ratios);
    Ok(Model {
        truth: Some(model::settled(panel, adaptation)),
        innovation: Some(model::innovation(panel, &combination, adaptation)?),
        roster: panel.roster().clone(),
        combination,
        evidence: Evidence::from_rows(evidence, agents, ratios)?,
        adaptation,
        method: Method::Whitened(params.clone()),
        likelihoods: None,
        diagnostics: Diagnostics::default(),
        track: Track::default(),
    })
}

/// Rounds of reweighting for a fit that is used for forecasts only.
const HELD_OUT_ROUNDS: usize = 3;

/// Forecasts of the last fifth of a panel by a fit that has seen only the rest: the last fifth of each episode where all are
/// at least ten steps long, otherwise the last fifth of the episodes.
///
/// With `params.symbols` they are looked for as well, for networks that are exact.
pub fn held_out(panel: &Panel, params: &WhitenedParams) -> Result<super::forecast::Forecast, Error> {
    let held_out = panel.held_out_steps();
    let seen = match panel.episodes().is_single() {
        true => panel.slice(0..held_out.seen[0])?,
        false => panel.kept(&held_out.seen),
    };
    // More rounds of reweighting do not change the forecasts noticeably.
    let rounds = params.rounds.min(HELD_OUT_ROUNDS);
    let model = whitened(&seen, &WhitenedParams { rounds, ..params.clone() })?;
    super::forecast::forecast_steps(panel, &held_out.scored, &model)
}
