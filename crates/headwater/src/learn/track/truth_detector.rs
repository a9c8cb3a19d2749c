//! The true hypothesis by the private observations, and its changes.

use super::change_detector::EVIDENCE;
use serde::{Deserialize, Serialize};

/// The true hypothesis by the private observations, with a CUSUM against each other one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TruthDetector {
    pub(super) truth: usize,
    /// The first step of the present state.
    pub(super) since: usize,
    /// Log-likelihood of each hypothesis since then, up to a constant.
    pub(super) scores: Vec<f64>,
    /// Whether the truth has once exceeded each by the threshold.
    pub(super) settled: Vec<bool>,
    /// CUSUM of each other hypothesis, and the step at which it was last zero.
    pub(super) doubts: Vec<(f64, usize)>,
}

impl TruthDetector {
    pub(super) fn new(hypotheses: usize, since: usize) -> Self {
        TruthDetector {
            truth: 0,
            since,
            scores: vec![0.0; hypotheses],
            settled: vec![false; hypotheses],
            doubts: vec![(0.0, since); hypotheses],
        }
    }

    /// Takes the likeliest of the hypotheses not yet excluded as the truth.
    pub(super) fn settle(&mut self) {
        let open = (0..self.scores.len()).filter(|&hypothesis| !self.settled[hypothesis]);
        let best = open.fold(self.truth, |best, next| if self.scores[next] > self.scores[best] { next } else { best });
        if best != self.truth {
            self.truth = best;
            self.doubts.iter_mut().for_each(|(doubt, _)| *doubt = 0.0);
        }
        let lead = self.scores[self.truth];
        self.settled.iter_mut().zip(&self.scores).for_each(|(settled, score)| *settled |= lead - score > EVIDENCE);
    }

    /// Adds the log-likelihood ratios of one step. Returns the new truth and its onset when it has changed.
    pub(super) fn step(&mut self, toward: &[f64], limit: f64, step: usize) -> Option<(usize, usize)> {
        self.scores.iter_mut().zip(toward).for_each(|(score, toward)| *score += toward);
        for ((doubt, onset), (toward, settled)) in self.doubts.iter_mut().zip(toward.iter().zip(&self.settled)) {
            if *doubt == 0.0 {
                *onset = step;
            }
            *doubt = if *settled { (*doubt + toward).max(0.0) } else { 0.0 };
        }
        let (truth, &(doubt, since)) = self.doubts.iter().enumerate().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
        if doubt <= limit {
            self.settle();
            return None;
        }
        let scores = self.doubts.iter().map(|(doubt, _)| *doubt).collect();
        let hypotheses = self.scores.len();
        *self = TruthDetector { truth, scores, ..TruthDetector::new(hypotheses, since) };
        self.settle();
        Some((truth, since))
    }
}
