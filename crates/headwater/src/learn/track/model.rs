//! The model of a tracker as of now.

use super::listener::{KnownColumn, ListenerState, residual};
use super::{Tracker, private_likelihoods};
use crate::learn::{Method, fit, whitened};
use crate::model::{
    self, ColumnDiagnostics, Diagnostics, Innovation, Likelihood, NetworkSnapshot, Status, TrueHypothesis,
};
use crate::{Combination, Error, Evidence, Model, Panel};

/// Approximate limit of the numbers in the history; beyond it every other snapshot is dropped.
const HISTORY: usize = 4_000_000;

impl Tracker {
    /// The model as of now. Errors: not enough frames yet, or no belief changes.
    pub fn model(&self) -> Result<Model, Error> {
        let (agents, ratios) = (self.roster.agents().len(), self.roster.ratios());
        let params = &self.params.whitened;
        let needed = agents / ratios + 11;
        let adaptation = self.adaptation.ok_or_else(|| match self.seen > needed {
            false => Error::NotReady { seen: self.seen, needed },
            true => Error::Undefined { what: "a network", reason: "no agent's beliefs change in what was seen".into() },
        })?;
        let sum = 1.0 - adaptation;
        let recent = Panel::complete(self.roster.clone(), self.frames.clone())?;
        let mut triplets = Vec::new();
        for (listener, state) in self.states.iter().enumerate() {
            let Some(known) = &state.known else {
                triplets.push((listener, listener, 1.0));
                continue;
            };
            let weights: Vec<f64> = known.weights.iter().map(|(_, weight)| *weight).collect();
            let tidied = whitened::tidy(&weights, params.constraint, sum);
            let shares = known.weights.iter().zip(tidied);
            triplets.extend(shares.map(|((speaker, _), weight)| (*speaker, listener, weight / sum)));
        }
        let mut combination = Combination::from_triplets(triplets, agents)?;
        if params.support.is_none() {
            combination = Combination::from_columns(combination.to_columns(), agents)?;
        }
        let found: Vec<Option<private_likelihoods::PrivateLikelihoods>> =
            self.states.iter().map(|state| state.known.as_ref()?.detector.recover(adaptation)).collect();
        let truth = self.truth_detector.truth;
        // Means over the present state, for those whose likelihoods are not known.
        let moments = self.moments(self.truth_detector.since);
        let (mean_x, mean_y) = (moments.mean_x(), moments.mean_y());
        let mut evidence = Vec::with_capacity(agents * ratios);
        let mut innovation = Vec::with_capacity(agents * ratios * ratios);
        for (listener, state) in self.states.iter().enumerate() {
            if let Some(atoms) = &found[listener] {
                let (mean, covariance) = atoms.moments(truth);
                evidence.extend(mean);
                innovation.extend(covariance);
                continue;
            }
            let weights = state.known.as_ref().map_or(&[][..], |known| &known.weights);
            let mean = residual(weights, listener, &mean_x, &mean_y, agents, ratios);
            evidence.extend(mean.iter().map(|value| value / adaptation));
            let scaled = |cell: usize, known: &KnownColumn| {
                known.covariance[(cell / ratios, cell % ratios)] / (adaptation * adaptation)
            };
            innovation
                .extend((0..ratios * ratios).map(|cell| state.known.as_ref().map_or(0.0, |known| scaled(cell, known))));
        }
        let known_likelihoods = found.iter().any(Option::is_some);
        let error =
            |(state, atoms): (&ListenerState, &Option<private_likelihoods::PrivateLikelihoods>)| match &state.known {
                Some(known) if atoms.is_none() => known.errors.clone(),
                _ => vec![0.0; ratios],
            };
        let errors = self.states.iter().zip(&found).map(error).collect();
        let likelihood = |atoms: Option<private_likelihoods::PrivateLikelihoods>| {
            atoms.map_or(Likelihood::Unknown, private_likelihoods::PrivateLikelihoods::into_likelihood)
        };
        let column = |(state, name): (&ListenerState, &String)| match &state.known {
            Some(known) if state.stale => ColumnDiagnostics::statistical(name, known.column.rank),
            Some(known) => known.column.clone(),
            None => ColumnDiagnostics::statistical(name, 0),
        };
        Ok(Model {
            combination,
            evidence: Evidence::from_rows(evidence, agents, ratios)?,
            adaptation,
            method: Method::Tracked(self.params.clone()),
            truth: Some(TrueHypothesis { hypothesis: truth, agreement: model::agreement(&recent, adaptation, truth) }),
            innovation: Some(Innovation::from_cells(innovation, agents, ratios)?),
            likelihoods: known_likelihoods.then(|| found.into_iter().map(likelihood).collect()),
            diagnostics: Diagnostics {
                columns: self.states.iter().zip(self.roster.agents()).map(column).collect(),
                column_sum_spread: self.spread(),
                evidence_errors: Some(errors),
                evidence_steps: Some(moments.weight() as usize),
                steps: Some(self.seen),
                warnings: self.warnings(),
                ..Diagnostics::default()
            },
            track: self.track.clone(),
            roster: self.roster.clone(),
        })
    }

    /// Largest minus smallest sum of weights as estimated.
    fn spread(&self) -> Option<f64> {
        let sums = self.states.iter().filter_map(|state| state.known.as_ref()).map(|known| match known.column.status {
            Status::Certified => known.weights.iter().map(|(_, weight)| weight).sum(),
            _ => known.vote.0,
        });
        sums.clone().next().map(|_| fit::spread(sums))
    }

    fn warnings(&self) -> Vec<String> {
        let these = |wanted: &dyn Fn(&ListenerState) -> bool| -> Vec<usize> {
            (0..self.states.len()).filter(|&listener| wanted(&self.states[listener])).collect()
        };
        let mut warnings = self.remarks.clone();
        let stale = these(&|state| state.stale);
        if !stale.is_empty() {
            warnings.push(format!(
                "the weights of these listeners changed recently and are not estimated again yet; the former ones are shown: {}",
                self.roster.list(&stale)
            ));
        }
        let unknown = these(&|state| state.known.is_none());
        if !unknown.is_empty() {
            warnings
                .push(format!("the weights of these listeners are not estimated yet: {}", self.roster.list(&unknown)));
        }
        warnings
    }

    /// Adds the present network to the history.
    pub(super) fn snapshot(&mut self) {
        let Ok(Model { combination, evidence, .. }) = self.model() else { return };
        let size = combination.edges().count();
        self.track.history.push(NetworkSnapshot { step: self.seen - 1, combination, evidence });
        if self.track.history.len() > 4 && self.track.history.len() * size > HISTORY {
            let mut keep = false;
            self.track.history.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }
}
