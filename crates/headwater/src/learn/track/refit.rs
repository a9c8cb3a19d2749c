//! Fits of the listeners that are due, from the moments and the window of frames.

use super::change_detector::ChangeDetector;
use super::listener::{KnownColumn, residual};
use super::{Memory, SPARE, Tracker};
use crate::learn::fit::{self, Fit, Standing};
use crate::learn::gsl::Constraint;
use crate::learn::regressors::{DistinctAgents, Regressors};
use crate::learn::symbols::Split;
use crate::learn::whitened::{self, Means, Precision, WhitenedParams};
use crate::model::{self, ColumnDiagnostics, Status};
use crate::{Error, Panel};
use std::collections::BTreeMap;

/// Certified weights with a larger condition number are solved again with more frames.
const POOR: f64 = 1e5;

/// Steps of the present state needed for a mean residual.
const STEPS_FOR_A_MEAN: usize = 100;

/// The fit of one listener.
struct ListenerFit<'a> {
    weights: Vec<(usize, f64)>,
    fit: Fit,
    standing: &'a Standing,
    split: Option<&'a Split>,
    /// Effective number of transitions.
    transitions: f64,
    /// Number of regressors.
    speakers: usize,
    /// Standard errors of the weights, where they are not exact.
    precision: Option<Precision>,
    /// Variance of 1−δ̂, and δ̂.
    vote: f64,
    adaptation: f64,
}

impl Tracker {
    /// Fits the listeners that are due.
    pub(super) fn refit(&mut self) -> Result<(), Error> {
        let floor = match self.params.memory {
            Memory::Recent(steps) => self.seen.saturating_sub(steps).max(1),
            _ => 1,
        };
        let mut due: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (listener, state) in self.states.iter().enumerate().filter(|(_, state)| state.next <= self.seen) {
            due.entry(state.since.max(floor)).or_default().push(listener);
        }
        let mut learned = false;
        for (since, listeners) in due {
            learned |= self.fit(since, listeners)?;
        }
        if learned {
            self.snapshot();
        }
        Ok(())
    }

    /// Fits some listeners to the transitions since a step. Returns whether any estimate was updated.
    fn fit(&mut self, since: usize, listeners: Vec<usize>) -> Result<bool, Error> {
        let (agents, ratios) = (self.roster.agents().len(), self.roster.ratios());
        let seen = self.seen.saturating_sub(since);
        let params = &self.params.whitened;
        let most = params
            .support
            .as_ref()
            .map_or(agents, |support| listeners.iter().map(|&listener| support[listener].len() + 1).max().unwrap_or(1));
        let needed = most / ratios + SPARE;
        if seen < needed {
            listeners.iter().for_each(|&listener| self.states[listener].next = since + needed);
            return Ok(false);
        }
        let wait = SPARE + (seen / 4).min(self.params.memory.steps() / 8);
        listeners.iter().for_each(|&listener| self.states[listener].next = self.seen + wait);

        let first = (since - 1).max(self.base);
        let stretch = Panel::complete(self.roster.clone(), self.frames[(first - self.base) * self.width()..].to_vec())?;
        let distinct = DistinctAgents::from_panel(&stretch);
        if listeners.len() == agents {
            self.remarks = distinct.warnings(&stretch);
        }
        let moments = self.moments(since);
        let design = Regressors::from_moments(&moments, &distinct, params.support.as_deref(), listeners);
        if design.listeners.is_empty() {
            return Ok(false);
        }
        let fits = fit::fits(&design, params)?;
        let given = params.adaptation.or(self.certain_adaptation());
        let adaptation = given.unwrap_or_else(|| {
            // The estimates of listeners not fitted now count as well.
            let others = self
                .states
                .iter()
                .enumerate()
                .filter(|(listener, _)| design.listeners.binary_search(listener).is_err());
            let others = others.filter_map(|(_, state)| state.known.as_ref()).map(|known| known.vote);
            fit::voted(fits.iter().map(|fit| fit.vote).chain(others))
        });
        let standings = design.each(|position| fit::standing(|| design.listener_moments(position), &fits[position]));
        let worth = |&listener: &usize| {
            let searched = self.states[listener].searched;
            stretch.steps() > searched + searched / 2 && searched < self.window
        };
        let mut splits = vec![None; fits.len()];
        if params.symbols && design.listeners.iter().any(worth) {
            let means = Means::from_panel(&stretch);
            let params = WhitenedParams { adaptation: given, ..params.clone() };
            (splits, _) = whitened::splits(&stretch, &means, &design, &fits, 1.0 - adaptation, &params)?;
            design.listeners.iter().for_each(|&listener| self.states[listener].searched = stretch.steps());
        }
        let sum = 1.0 - adaptation;
        let vote = match given {
            Some(_) => 0.0,
            None => whitened::variance_of_the_vote(&fits),
        };
        let found = design.each(|position| {
            let fit = &fits[position];
            let refitted = match params.constraint {
                Constraint::Simplex => fit::constrained(&design.listener_moments(position), fit, sum, params),
                Constraint::Free => None,
            };
            let fit = refitted.unwrap_or_else(|| fit.clone());
            let blurred = splits[position].as_ref().and_then(|split: &Split| split.constrained.as_ref());
            let blurred = blurred.filter(|within| {
                let standing = &standings[position];
                let known = standing.status == Status::Identified;
                let agrees = !known || fit::as_quiet(&design.listener_moments(position), &fit, standing.rank, within);
                agrees && params.constraint == Constraint::Simplex
            });
            let certain = splits[position].as_ref().filter(|split| split.certified);
            let weights = certain.map(|split| &split.weights).or(blurred).unwrap_or(&fit.weights);
            let precision = certain.is_none().then(|| {
                let listener_moments = design.listener_moments(position);
                Precision::from_moments(&listener_moments, &fit::inverse(&listener_moments, &fit.covariance))
            });
            let speakers = design.regressors(position).iter().zip(weights);
            let shared = speakers.flat_map(|(&speaker, &weight)| distinct.share(speaker, weight));
            let weights = shared.filter(|(_, weight)| *weight != 0.0).collect();
            let found = ListenerFit {
                weights,
                fit,
                standing: &standings[position],
                split: splits[position].as_ref(),
                transitions: moments.weight(),
                speakers: design.regressors(position).len(),
                precision,
                vote,
                adaptation,
            };
            self.known(design.listeners[position], found, first)
        });
        let (mut learned, mut newly) = (false, Vec::new());
        let listeners = design.listeners.clone();
        for (listener, known) in listeners.into_iter().zip(found) {
            let certified = known.column.status == Status::Certified;
            let state = &mut self.states[listener];
            // A certified column is kept unless the new one is better conditioned.
            let better = |old: &KnownColumn| certified && known.column.condition < old.column.condition;
            let certain = |old: &&KnownColumn| old.column.status == Status::Certified;
            if !state.stale && state.known.as_ref().filter(certain).is_some_and(|old| !better(old)) {
                continue;
            }
            // After a change the former weights are kept until the new fit has enough transitions.
            if state.known.is_some() && state.stale && !certified && matches!(known.detector, ChangeDetector::Open) {
                continue;
            }
            if certified && known.column.condition.is_some_and(|condition| condition < POOR) {
                state.next = usize::MAX;
            }
            let exact = state.detector().is_some_and(ChangeDetector::is_exact);
            (state.known, state.stale, learned) = (Some(known), false, true);
            if !exact {
                newly.push(listener);
            }
        }
        let given = self.params.whitened.adaptation.or(self.certain_adaptation());
        self.adaptation = Some(given.unwrap_or(adaptation));
        newly.into_iter().for_each(|listener| self.credit(listener, first + 1));
        if self.truth_detector.since == 1
            && !self.states.iter().any(|state| state.detector().is_some_and(ChangeDetector::is_exact))
        {
            self.truth_detector.truth = model::settled(&stretch, adaptation).hypothesis;
            self.truth_detector.settled = vec![true; self.roster.hypotheses().len()];
        }
        Ok(learned)
    }

    /// The estimate of a listener with its change detector, from the frames of the window since `first`.
    fn known(&self, listener: usize, found: ListenerFit<'_>, first: usize) -> KnownColumn {
        let ListenerFit { weights, fit, standing, split, transitions, speakers, precision, vote, adaptation } = found;
        let (agents, ratios) = (self.roster.agents().len(), self.roster.ratios());
        let past: Vec<Vec<f64>> = (first + 1..self.seen)
            .map(|step| residual(&weights, listener, self.frame(step - 1), self.frame(step), agents, ratios))
            .collect();
        // The mean differs between states.
        let present = past.len().min(self.seen - self.truth_detector.since);
        let lately = &past[past.len() - present..];
        let usual = |ratio: usize| lately.iter().map(|row| row[ratio]).sum::<f64>() / present.max(1) as f64;
        let mean: Vec<f64> = (0..ratios).map(usual).collect();
        let mut column = ColumnDiagnostics::statistical(&self.roster.agents()[listener], standing.rank);
        column.status = standing.status;
        let less = |row: &Vec<f64>| row.iter().zip(&mean).map(|(value, mean)| value - mean).collect();
        let centred = || past.iter().map(less).collect::<Vec<Vec<f64>>>();
        let detector = match split.filter(|split| split.certified) {
            Some(split) => {
                (column.status, column.condition) = (Status::Certified, Some(split.condition));
                column.weight_error = Some(0.0);
                ChangeDetector::atoms(split, &past, self.largest)
            }
            None if standing.rank < ratios => {
                let quiet = ratios - standing.rank;
                // Contrasts that may be small by overfitting are not tested.
                let sure = transitions >= (5 * speakers / quiet + 20) as f64;
                let detector = ChangeDetector::contrasts(&fit.covariance, quiet, &mean, &centred(), self.largest);
                detector.filter(|_| sure).unwrap_or(ChangeDetector::Open)
            }
            // Likewise, and with too few steps for a mean.
            None if speakers as f64 > 0.2 * transitions || present < STEPS_FOR_A_MEAN => ChangeDetector::Open,
            None => ChangeDetector::errors(&fit.covariance, &mean, &centred(), (transitions, speakers), agents)
                .unwrap_or(ChangeDetector::Open),
        };
        let mut errors = vec![0.0; ratios];
        if split.is_none_or(|split| !split.certified) {
            column.condition = precision.as_ref().and_then(|precision| precision.condition);
            column.weight_error = precision
                .as_ref()
                .and_then(Precision::sound)
                .map(|precision| precision.weight_error / (1.0 - adaptation));
            let evidence: Vec<f64> = mean.iter().map(|mean| mean / adaptation).collect();
            errors = whitened::evidence_errors(precision.as_ref(), &fit.covariance, present.max(1), &evidence, vote);
            errors.iter_mut().for_each(|error| *error /= adaptation);
        }
        KnownColumn {
            weights,
            column,
            covariance: fit.covariance,
            vote: fit.vote,
            errors,
            mean: (mean, present),
            detector,
        }
    }

    /// Adds the log-likelihood ratios of a listener that has become exact, from a step on.
    fn credit(&mut self, listener: usize, first: usize) {
        let (agents, ratios) = (self.roster.agents().len(), self.roster.ratios());
        let Some(known) = self.states[listener].known.as_ref().filter(|known| known.detector.is_exact()) else {
            return;
        };
        let first = first.max(self.truth_detector.since);
        let Some(adaptation) = self.adaptation else { return };
        let mut scores = std::mem::take(&mut self.truth_detector.scores);
        for step in first..self.seen {
            let row = residual(&known.weights, listener, self.frame(step - 1), self.frame(step), agents, ratios);
            row.iter().enumerate().for_each(|(ratio, value)| scores[ratio + 1] -= value / adaptation);
        }
        self.truth_detector.scores = scores;
        self.truth_detector.settle();
    }

    /// 1 minus the median sum of the weights that are certified.
    fn certain_adaptation(&self) -> Option<f64> {
        let known = self.states.iter().filter_map(|state| state.known.as_ref());
        let certain = known.filter(|known| known.column.status == Status::Certified);
        let mut votes: Vec<f64> =
            certain.map(|known| 1.0 - known.weights.iter().map(|(_, weight)| weight).sum::<f64>()).collect();
        votes.sort_by(f64::total_cmp);
        votes.get(votes.len() / 2).map(|vote| vote.clamp(*fit::ADAPTATION.start(), *fit::ADAPTATION.end()))
    }
}
