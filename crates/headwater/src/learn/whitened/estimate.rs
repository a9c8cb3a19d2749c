//! A network fitted to moments: its columns combined, and evidence as means over all steps.

use super::WhitenedParams;
use crate::learn::fit;
use crate::learn::gsl::Constraint;
use crate::learn::moments::Moments;
use crate::learn::regressors::{DistinctAgents, Regressors};
use crate::model::{EpisodeEvidence, Likelihood, Status};
use crate::{Combination, Error, Evidence, Model, Panel};
use std::ops::Range;

/// A network fitted to moments alone, without a search for symbols.
#[derive(Debug, Clone)]
pub(crate) struct Estimate {
    pub(crate) combination: Combination,
    pub(crate) evidence: Evidence,
}

/// Mean past and mean present of every agent and ratio, ratio by ratio.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    pub(super) x: Vec<f64>,
    pub(super) y: Vec<f64>,
}

impl Means {
    pub(crate) fn from_panel(panel: &Panel) -> Self {
        if panel.episodes().is_single() {
            return Means::within(panel, 0..panel.steps());
        }
        let mut all = Means { x: vec![0.0; panel.width()], y: vec![0.0; panel.width()] };
        let transitions = panel.episodes().transitions() as f64;
        for range in panel.episodes().ranges() {
            let share = (range.len() - 1) as f64 / transitions;
            let one = Means::within(panel, range);
            for (sum, mean) in [(&mut all.x, one.x), (&mut all.y, one.y)] {
                sum.iter_mut().zip(mean).for_each(|(sum, mean)| *sum += share * mean);
            }
        }
        all
    }

    /// Over the transitions of an episode.
    pub(crate) fn within(panel: &Panel, steps: Range<usize>) -> Self {
        let width = panel.agents() * panel.ratios();
        let count = (steps.len() - 1) as f64;
        let cells = &panel.cells()[steps.start * width..steps.end * width];
        // Relative to the first frame, so that a large mean does not cost accuracy.
        let mean = |frames: &[f64]| {
            let mut sums = vec![0.0; width];
            for frame in frames.chunks_exact(width) {
                sums.iter_mut().zip(frame).zip(cells).for_each(|((sum, value), origin)| *sum += value - origin);
            }
            sums.iter().zip(cells).map(|(sum, origin)| sum / count + origin).collect()
        };
        Means { x: mean(&cells[..cells.len() - width]), y: mean(&cells[width..]) }
    }

    fn from_moments(moments: &Moments) -> Self {
        Means { x: moments.mean_x(), y: moments.mean_y() }
    }
}

/// Combines the columns; an agent whose belief never changes has self-weight one.
pub(crate) fn combine(
    design: &Regressors<'_>,
    distinct: &DistinctAgents,
    weights: &[Vec<f64>],
    sum: f64,
    agents: usize,
    sparse: bool,
) -> Result<Combination, Error> {
    let still = (0..agents).filter(|&agent| distinct.constant[agent]).map(|agent| (agent, agent, 1.0));
    let heard = design.listeners.iter().enumerate().flat_map(|(position, &listener)| {
        let speakers = design.regressors(position).iter().zip(&weights[position]);
        let shared = speakers.flat_map(move |(&speaker, weight)| distinct.share(speaker, weight / sum));
        shared.map(move |(speaker, weight)| (speaker, listener, weight))
    });
    if sparse {
        return Combination::from_triplets(
            still.chain(heard).filter(|(_, _, weight)| *weight != 0.0).collect(),
            agents,
        );
    }
    let mut columns = vec![0.0; agents * agents];
    still.chain(heard).for_each(|(speaker, listener, weight)| columns[listener * agents + speaker] = weight);
    Combination::from_columns(columns, agents)
}

/// A certified column under the constraint: negative rounding errors are set to zero.
pub(crate) fn tidy(weights: &[f64], constraint: Constraint, sum: f64) -> Vec<f64> {
    /// A weight below this is no rounding error and is kept.
    const NEGATIVE: f64 = -1e-6;
    if constraint == Constraint::Free || weights.iter().any(|weight| *weight < NEGATIVE) {
        return weights.to_vec();
    }
    let total: f64 = weights.iter().map(|weight| weight.max(0.0)).sum();
    weights.iter().map(|weight| weight.max(0.0) * sum / total).collect()
}

/// Sets the evidence of agents whose belief never changes to zero: it is not identified.
pub(crate) fn silence_the_still(model: &mut Model, distinct: &DistinctAgents) -> Result<(), Error> {
    let (agents, ratios) = (model.evidence.agents(), model.evidence.ratios());
    let row = |agent: usize| match distinct.constant[agent] {
        true => vec![0.0; ratios],
        false => model.evidence.agent(agent).to_vec(),
    };
    model.evidence = Evidence::from_rows((0..agents).flat_map(row).collect(), agents, ratios)?;
    Ok(())
}

/// Fits moments, such as those of resampled blocks; certified columns of `model` are kept.
pub(crate) fn estimate(
    moments: &Moments,
    distinct: &DistinctAgents,
    params: &WhitenedParams,
    model: Option<&Model>,
) -> Result<Estimate, Error> {
    let agents = moments.agents();
    let exact = |agent: usize| {
        let column = |model: &Model| model.diagnostics.columns.get(agent).map(|column| column.status);
        model.is_some_and(|model| column(model) == Some(Status::Certified))
    };
    let design = Regressors::from_moments(moments, distinct, params.support.as_deref(), (0..agents).collect());
    let fits = fit::fits(&design, params)?;
    let settled = model.filter(|_| (0..agents).any(exact)).map(|model| model.adaptation);
    let adaptation = params.adaptation.or(settled).unwrap_or_else(|| fit::voted(fits.iter().map(|fit| fit.vote)));
    let sum = 1.0 - adaptation;
    let weights = design.each_watched("weighing listeners", |position| {
        let (fit, agent) = (&fits[position], design.listeners[position]);
        if let Some(model) = model.filter(|_| exact(agent)) {
            let speakers = design.regressors(position).iter();
            let whole =
                |speaker: &usize| distinct.copies[*speaker].iter().map(|&copy| model.combination.weight(copy, agent));
            return speakers.map(|speaker| sum * whole(speaker).sum::<f64>()).collect();
        }
        match params.constraint {
            Constraint::Free => fit.weights.clone(),
            Constraint::Simplex => fit::constrained(&design.listener_moments(position), fit, sum, params)
                .map_or_else(|| fit.weights.clone(), |fit| fit.weights),
        }
    })?;
    let combination = combine(&design, distinct, &weights, sum, agents, params.support.is_some())?;
    let mut rows = mean_evidence(&Means::from_moments(moments), &combination, adaptation, moments.ratios());
    for agent in (0..agents).filter(|&agent| exact(agent)) {
        let known = model.filter(|model| {
            let likelihood = model.likelihoods.as_ref().map(|likelihoods| &likelihoods[agent]);
            likelihood.is_some_and(|likelihood| *likelihood != Likelihood::Unknown)
        });
        if let Some(model) = known {
            rows[agent * moments.ratios()..(agent + 1) * moments.ratios()].copy_from_slice(model.evidence.agent(agent));
        }
    }
    Ok(Estimate { combination, evidence: Evidence::from_rows(rows, agents, moments.ratios())? })
}

/// The evidence of each episode, where there are several.
pub(crate) fn evidence_by_episode(
    panel: &Panel,
    combination: &Combination,
    adaptation: f64,
) -> Option<Vec<EpisodeEvidence>> {
    let (episodes, ratios) = (panel.episodes(), panel.ratios());
    if episodes.is_single() {
        return None;
    }
    let one = |(number, range): (usize, Range<usize>)| {
        let rows = mean_evidence(&Means::within(panel, range.clone()), combination, adaptation, ratios);
        let rows = rows.chunks(ratios).map(<[f64]>::to_vec).collect();
        EpisodeEvidence::new(episodes.label(number), range.len(), rows)
    };
    Some(episodes.ranges().enumerate().map(one).collect())
}

/// L̂ = (ȳ − (1−δ)Aᵀx̄)/δ, agent by agent.
pub(crate) fn mean_evidence(means: &Means, combination: &Combination, adaptation: f64, ratios: usize) -> Vec<f64> {
    let agents = combination.agents();
    let mut evidence = vec![0.0; agents * ratios];
    for ratio in 0..ratios {
        let heard = combination.hear(&means.x[ratio * agents..(ratio + 1) * agents]);
        for agent in 0..agents {
            let mean = means.y[ratio * agents + agent];
            evidence[agent * ratios + ratio] = (mean - (1.0 - adaptation) * heard[agent]) / adaptation;
        }
    }
    evidence
}
