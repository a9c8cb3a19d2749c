//! State of a tracker for one listener.

use super::change_detector::ChangeDetector;
use crate::model::ColumnDiagnostics;
use faer::Mat;
use serde::{Deserialize, Serialize};

/// State of one listener.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ListenerState {
    /// The first step of its present weights.
    pub(super) since: usize,
    /// Number of frames at which to fit again.
    pub(super) next: usize,
    /// Frames since `since` at the last search for symbols.
    pub(super) searched: usize,
    pub(super) known: Option<KnownColumn>,
    /// Whether the estimate is from before a change.
    pub(super) stale: bool,
}

/// Estimate of one listener's column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KnownColumn {
    /// (1−δ) times its weights, zeros left out.
    pub(super) weights: Vec<(usize, f64)>,
    pub(super) column: ColumnDiagnostics,
    /// Residual covariance, H × H.
    #[serde(with = "crate::learn::saved")]
    pub(super) covariance: Mat<f64>,
    /// 1−δ by its unconstrained fit, and the precision of that.
    pub(super) vote: (f64, f64),
    /// Standard errors of its evidence.
    pub(super) errors: Vec<f64>,
    /// Mean residual in the present state, and its number of steps.
    pub(super) mean: (Vec<f64>, usize),
    #[serde(rename = "guard")]
    pub(super) detector: ChangeDetector,
}

/// Residual of one listener at one step, and the onset of a change that it reveals.
pub(super) struct ListenerResidual {
    pub(super) residual: Vec<f64>,
    pub(super) onset: Option<usize>,
}

impl KnownColumn {
    /// Squared error of forecasting the mean residual, which is then updated.
    pub(super) fn forecast_error(&mut self, residual: &[f64]) -> f64 {
        let (mean, count) = &mut self.mean;
        *count += 1;
        let mut error = 0.0;
        for (mean, value) in mean.iter_mut().zip(residual) {
            error += (value - *mean).powi(2);
            *mean += (value - *mean) / *count as f64;
        }
        error
    }
}

impl ListenerState {
    /// Restarts at a step; the former estimate is kept until the next fit.
    pub(super) fn restart(&mut self, since: usize, seen: usize) {
        (self.since, self.next, self.searched, self.stale) = (since, seen, 0, true);
    }

    /// Resets symbol counts and means after a change of state.
    pub(super) fn forget_state(&mut self) {
        if let Some(known) = &mut self.known {
            known.mean.1 = 0;
        }
        match self.known.as_mut().map(|known| &mut known.detector) {
            Some(ChangeDetector::PrivateLikelihoods { counts, .. }) => counts.fill(0),
            // The mean residual has changed: no detection until the next fit has enough steps.
            Some(detector @ ChangeDetector::Errors { .. }) => *detector = ChangeDetector::Open,
            _ => {}
        }
    }

    pub(super) fn detector(&self) -> Option<&ChangeDetector> {
        self.known.as_ref().filter(|_| !self.stale).map(|known| &known.detector)
    }
}

/// y − bᵀx of one listener, H numbers.
pub(super) fn residual(
    weights: &[(usize, f64)],
    listener: usize,
    before: &[f64],
    now: &[f64],
    agents: usize,
    ratios: usize,
) -> Vec<f64> {
    (0..ratios)
        .map(|ratio| {
            let line = &before[ratio * agents..(ratio + 1) * agents];
            now[ratio * agents + listener]
                - weights.iter().map(|&(speaker, weight)| weight * line[speaker]).sum::<f64>()
        })
        .collect()
}
