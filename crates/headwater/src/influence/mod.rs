//! Influence of the agents of a model, and its explanation.
//!
//! In: a [`Model`]. Out: centrality × informativeness ([`influence()`]), the origins of each agent's belief
//! ([`Attribution`]), the strongest paths, the effect of removing an agent, error probabilities. The true hypothesis is
//! that of the model (`model.truth`), or estimated from its evidence where it has none.

mod attribution;
mod error_probability;
mod paths;
mod what_if;

pub use attribution::Attribution;
pub use error_probability::{error_probabilities, error_probability};
pub use paths::{Path, Paths, by_hops, strongest_paths};
pub use what_if::{Intervention, Removals, WhatIf, what_if};

use crate::combination::Centrality;
use crate::model::likeliest;
use crate::{Error, Evidence, Model};

/// Influence of every agent, with its parts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Influence {
    /// Index of θ*.
    pub truth: usize,
    /// Share of agents that believe θ*.
    pub agreement: f64,
    /// Perron vector, components and sources.
    pub centrality: Centrality,
    /// D_k(θ*‖θ_j), N × |Θ|; zero at θ*. Estimates can be negative.
    pub divergences: Vec<Vec<f64>>,
    /// Σ_j D_k(θ*‖θ_j). Estimates can be negative.
    pub informativeness: Vec<f64>,
    /// I_k = centrality × informativeness.
    pub influence: Vec<f64>,
    /// |I_k| divided by the sum of all |I_k|: shares are not negative and sum to one. Absent where every influence is zero.
    pub share: Option<Vec<f64>>,
    /// +1 or −1 for each agent, the sign of I_k; present only where some influences are negative.
    pub sign: Option<Vec<i8>>,
    /// Network divergence K(θ*, θ_j) per hypothesis.
    pub divergence: Vec<f64>,
    /// The share of the network's mean opinion that originates in each agent at the model's δ; centrality is its limit
    /// as δ → 0, and unlike it this is positive outside the sources too.
    pub origin: Vec<f64>,
    /// Agents whose own evidence favours another hypothesis.
    pub contrarians: Vec<Contrarian>,
}

/// An agent whose private evidence favours another hypothesis than θ*.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Contrarian {
    /// The agent.
    pub agent: usize,
    /// The hypothesis favoured by its evidence.
    pub believes: usize,
    /// How far its evidence prefers that to θ*, in nats per observation.
    pub margin: f64,
    /// The same in standard errors, where the model knows them.
    pub standard_errors: Option<f64>,
}

impl Influence {
    /// Agents by influence, highest first; ties by origin × informativeness, then by position.
    pub fn ranking(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.influence.len()).collect();
        let second = |agent: usize| self.origin[agent] * self.informativeness[agent];
        order.sort_by(|&a, &b| {
            self.influence[b].total_cmp(&self.influence[a]).then(second(b).total_cmp(&second(a))).then(a.cmp(&b))
        });
        order
    }

    /// Shares with their signs; they sum to one in absolute value.
    pub fn signed_share(&self) -> Option<Vec<f64>> {
        signed_shares(&self.influence)
    }

    /// Each agent's share of K(θ*, θ_j) for one hypothesis; `None` where that divergence is not positive.
    pub fn divergence_shares(&self, hypothesis: usize) -> Option<Vec<f64>> {
        let total = self.divergence[hypothesis];
        let part = |agent: usize| self.centrality.values[agent] * self.divergences[agent][hypothesis] / total;
        (total > 0.0).then(|| (0..self.divergences.len()).map(part).collect())
    }

    /// Agents whose informativeness was estimated below zero.
    pub fn negative(&self) -> Vec<usize> {
        (0..self.informativeness.len()).filter(|&agent| self.informativeness[agent] < 0.0).collect()
    }
}

/// Influence of every agent of a model.
///
/// Divergences follow the definition, with a zero column for the reference: `D(θ*‖θ_j) = L̂[k,j] − L̂[k,*]` (Note P1).
/// Cost: a few dozen products with A and one solve.
///
/// ```
/// use headwater::{influence, simulate::{simulate, WorldParams}};
/// let (_, truth) = simulate(&WorldParams { steps: 1, ..WorldParams::default() }).unwrap();
/// let influence = influence(&truth).unwrap();
/// assert!((influence.share.unwrap().iter().sum::<f64>() - 1.0).abs() < 1e-12);
/// ```
pub fn influence(model: &Model) -> Result<Influence, Error> {
    let agents = model.combination.agents();
    let centrality = match model.method.name() == "as-released" {
        true => model.combination.released_centrality()?,
        false => model.combination.centrality()?,
    };
    let (truth, agreement) = match model.truth {
        Some(verdict) => (verdict.hypothesis, verdict.agreement),
        None => verdict_of_evidence(&centrality.values, &model.evidence),
    };
    let hypotheses = model.evidence.ratios() + 1;
    let divergence_of = |agent: usize, hypothesis: usize| {
        model.evidence.against(agent, hypothesis) - model.evidence.against(agent, truth)
    };
    let divergences: Vec<Vec<f64>> =
        (0..agents).map(|agent| (0..hypotheses).map(|hypothesis| divergence_of(agent, hypothesis)).collect()).collect();
    let informativeness: Vec<f64> = divergences.iter().map(|row| row.iter().sum()).collect();
    let influence: Vec<f64> = centrality.values.iter().zip(&informativeness).map(|(u, d)| u * d).collect();
    let share = signed_shares(&influence).map(|shares| shares.into_iter().map(f64::abs).collect());
    let negative = influence.iter().any(|value| *value < 0.0);
    let sign = negative.then(|| influence.iter().map(|value| if *value < 0.0 { -1 } else { 1 }).collect());
    let divergence = (0..hypotheses)
        .map(|hypothesis| (0..agents).map(|agent| centrality.values[agent] * divergences[agent][hypothesis]).sum())
        .collect();
    Ok(Influence {
        origin: Attribution::from_model(model)?.network(),
        contrarians: contrarians(model, truth, &centrality.values),
        truth,
        agreement,
        centrality,
        divergences,
        informativeness,
        influence,
        share,
        sign,
        divergence,
    })
}

/// Influences divided by the sum of their absolute values, signs kept; `None` where that sum is not positive.
///
/// Their net sum would be no denominator where some are negative: it can be near zero, and shares then exceed one.
///
/// ```
/// use headwater::influence::signed_shares;
/// assert_eq!(signed_shares(&[3.0, -2.0, 0.0]), Some(vec![0.6, -0.4, 0.0]));
/// assert_eq!(signed_shares(&[0.0, 0.0]), None);
/// ```
pub fn signed_shares(influence: &[f64]) -> Option<Vec<f64>> {
    let total: f64 = influence.iter().map(|value| value.abs()).sum();
    (total > 0.0).then(|| influence.iter().map(|value| value / total).collect())
}

/// θ* from the evidence alone: in the long run all log-beliefs are near uᵀL̄.
fn verdict_of_evidence(centrality: &[f64], evidence: &Evidence) -> (usize, f64) {
    let network: Vec<f64> = (0..evidence.ratios())
        .map(|ratio| evidence.ratio(ratio).iter().zip(centrality).map(|(value, u)| value * u).sum())
        .collect();
    let truth = likeliest(&network);
    let agreeing = (0..evidence.agents()).filter(|&agent| likeliest(evidence.agent(agent)) == truth).count();
    (truth, agreeing as f64 / evidence.agents() as f64)
}

/// Standard errors are the learner's own. Without them they combine the standard error of the mean evidence with the error
/// of a column of A that does not sum to one: log-beliefs are about uᵀL̂ for all, so a sum that is off by e shifts the
/// evidence by e(1−δ)/δ times that.
fn contrarians(model: &Model, truth: usize, centrality: &[f64]) -> Vec<Contrarian> {
    let evidence = &model.evidence;
    let sums = model.combination.column_sums();
    let network = |hypothesis: usize| -> f64 {
        (0..evidence.agents()).map(|agent| centrality[agent] * evidence.against(agent, hypothesis)).sum()
    };
    let network: Vec<f64> = (0..=evidence.ratios()).map(network).collect();
    let ratios = evidence.ratios();
    let mut found = Vec::new();
    for agent in 0..evidence.agents() {
        let believes = likeliest(evidence.agent(agent));
        if believes == truth {
            continue;
        }
        let known = model.diagnostics.evidence_errors.as_ref().and_then(|errors| errors.get(agent)).map(|errors| {
            let of = |hypothesis: usize| if hypothesis == 0 { 0.0 } else { errors[hypothesis - 1] };
            of(truth).hypot(of(believes))
        });
        let standard_errors = known.or_else(|| {
            let (spread, steps) = model.innovation.as_ref().zip(model.diagnostics.evidence_steps)?;
            let cell = |a: usize, b: usize| match (a, b) {
                (0, _) | (_, 0) => 0.0,
                (a, b) => spread.agent(agent)[(a - 1) * ratios + b - 1],
            };
            let variance = cell(truth, truth) + cell(believes, believes) - 2.0 * cell(truth, believes);
            let lever = (1.0 - model.adaptation) / model.adaptation * (network[truth] - network[believes]);
            Some((variance.max(0.0) / steps as f64 + (lever * (sums[agent] - 1.0)).powi(2)).sqrt())
        });
        let margin = evidence.against(agent, truth) - evidence.against(agent, believes);
        let standard_errors = standard_errors.filter(|error| *error > 0.0).map(|error| margin / error);
        found.push(Contrarian { agent, believes, margin, standard_errors });
    }
    found
}

#[cfg(test)]
mod tests;
