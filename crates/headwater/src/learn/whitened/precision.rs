//! Standard errors of a listener's weights and evidence, from its information matrix.

use crate::learn::fit;
use crate::learn::regressors::ListenerMoments;
use crate::learn::simplex;
use faer::Mat;
use faer::prelude::Solve;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Information matrices conditioned worse than this do not tell speakers apart.
const COLLINEAR: f64 = 1e10;

/// How the mean of the regressors stands in their information matrix G, for one ratio.
#[derive(Debug, Clone, Copy)]
struct Lever {
    /// x̄ᵀG⁻¹x̄ less the part along the sum of the weights, which is fixed.
    across: f64,
    /// x̄ averaged with the weights of G⁻¹1.
    level: f64,
}

/// Standard errors of one listener's weights, from its information matrix G.
#[derive(Debug, Clone)]
pub(crate) struct Precision {
    /// Of G scaled to unit diagonal.
    pub(crate) condition: Option<f64>,
    /// Root mean square standard error of (1−δ) times a weight.
    pub(crate) weight_error: f64,
    levers: Vec<Lever>,
}

/// Random probes for the trace of an inverse, at most: accurate to a few per cent.
const PROBES: usize = 64;

impl Precision {
    /// Itself, unless the regressors are so collinear that standard errors of single weights are meaningless.
    pub(crate) fn sound(&self) -> Option<&Self> {
        self.condition.is_some_and(|condition| condition <= COLLINEAR).then_some(self)
    }

    pub(crate) fn from_moments(listener_moments: &ListenerMoments<'_>, weights: &Mat<f64>) -> Self {
        let ListenerMoments { moments, regressors, .. } = listener_moments;
        let (agents, ratios, size) = (moments.agents(), moments.ratios(), regressors.len());
        let (mut gram, _) = fit::normal(listener_moments, weights);
        fit::lift(&mut gram, 1e-12);
        let Some(llt) = simplex::factor(&gram) else {
            return Precision { condition: None, weight_error: 0.0, levers: Vec::new() };
        };
        let along = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        // The trace of the inverse: exactly when there are few regressors, otherwise by probes of random signs.
        let count = size.min(PROBES);
        let mut signs = ChaCha8Rng::seed_from_u64(size as u64);
        let probes = Mat::from_fn(size, count, |row, column| match () {
            () if size == count => f64::from(row == column),
            () if signs.random::<bool>() => 1.0,
            () => -1.0,
        });
        let solved = llt.solve(&probes);
        let probed = (0..count).map(|index| along(solved.col_as_slice(index), probes.col_as_slice(index))).sum::<f64>();
        let trace = if size == count { probed } else { probed / count as f64 };
        let mean_x = moments.mean_x();
        let ones = vec![1.0; size];
        let total = along(&simplex::solve(&llt, &ones), &ones);
        let lever = |ratio: usize| {
            let mean: Vec<f64> = regressors.iter().map(|&speaker| mean_x[ratio * agents + speaker]).collect();
            let solved = simplex::solve(&llt, &mean);
            let crossed = along(&solved, &ones);
            Lever { across: (along(&solved, &mean) - crossed * crossed / total).max(0.0), level: crossed / total }
        };
        Precision {
            condition: fit::condition(&gram, &llt),
            weight_error: (trace / size as f64).sqrt(),
            levers: (0..ratios).map(lever).collect(),
        }
    }

    /// For residuals of this variance instead of unit variance.
    pub(super) fn scaled(&self, noise: f64) -> Self {
        let lever = |lever: &Lever| Lever { across: noise * lever.across, ..*lever };
        Precision {
            weight_error: noise.sqrt() * self.weight_error,
            levers: self.levers.iter().map(lever).collect(),
            ..*self
        }
    }
}

/// Standard errors of δ times the evidence of one listener: of the mean residual, of the weights whose sum is fixed, and
/// of that sum, whose variance is `vote`.
pub(crate) fn evidence_errors(
    precision: Option<&Precision>,
    covariance: &Mat<f64>,
    transitions: usize,
    evidence: &[f64],
    vote: f64,
) -> Vec<f64> {
    (0..covariance.nrows())
        .map(|ratio| {
            let mean = covariance[(ratio, ratio)].max(0.0) / transitions as f64;
            let lever = precision.and_then(|precision| precision.levers.get(ratio));
            let Lever { across, level } = lever.copied().unwrap_or(Lever { across: 0.0, level: 0.0 });
            (mean + across + vote * (level - evidence[ratio]).powi(2)).sqrt()
        })
        .collect()
}
