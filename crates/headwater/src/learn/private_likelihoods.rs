//! Private likelihoods of a certified listener.
//!
//! In: the symbols of a certified column. Out: the listener's observation model under every hypothesis, hence its exact
//! evidence, and the log-likelihood ratios of its private observations.
//!
//! The mean residual of a symbol over δ is its vector of log-likelihood ratios ℓ_s. With q the law of the symbols under
//! θ_0, p_j(s) = q_s e^{−ℓ_s[j]} must sum to one for every j: H+1 linear equations for the m unknown q_s.

use crate::model::Likelihood;
use faer::Mat;
use faer::prelude::SolveLstsq;

/// Largest deviation of the recovered probabilities from a sum of one.
const CONSISTENT: f64 = 1e-5;

/// The private observation model of one agent, and its observations.
#[derive(Debug, Clone)]
pub(crate) struct PrivateLikelihoods {
    /// Symbols × hypotheses.
    pub(crate) probabilities: Vec<Vec<f64>>,
    /// Log-likelihood ratios of each symbol, H each.
    ratios: Vec<Vec<f64>>,
    /// How often each symbol occurred.
    counts: Vec<usize>,
}

/// Solves for the private model from the log-likelihood ratios of each symbol and how often it occurred. `None` when it
/// is no probability distribution.
pub(crate) fn recover(ratios: Vec<Vec<f64>>, counts: Vec<usize>) -> Option<PrivateLikelihoods> {
    let (symbols, hypotheses) = (ratios.len(), ratios.first()?.len() + 1);
    if symbols > hypotheses {
        return None;
    }
    let factor = |symbol: usize, hypothesis: usize| {
        if hypothesis == 0 { 1.0 } else { (-ratios[symbol][hypothesis - 1]).exp() }
    };
    let system = Mat::from_fn(hypotheses, symbols, |hypothesis, symbol| factor(symbol, hypothesis));
    let law = system.col_piv_qr().solve_lstsq(Mat::from_fn(hypotheses, 1, |_, _| 1.0));
    let probabilities: Vec<Vec<f64>> = (0..symbols)
        .map(|symbol| (0..hypotheses).map(|hypothesis| law[(symbol, 0)] * factor(symbol, hypothesis)).collect())
        .collect();
    let sound = probabilities.iter().flatten().all(|value| *value > 0.0 && *value < 1.0)
        && (0..hypotheses).all(|hypothesis| {
            let sum: f64 = probabilities.iter().map(|row| row[hypothesis]).sum();
            (sum - 1.0).abs() < CONSISTENT
        });
    sound.then_some(PrivateLikelihoods { probabilities, ratios, counts })
}

impl PrivateLikelihoods {
    /// Mean and covariance of the log-likelihood ratios under a hypothesis.
    pub(crate) fn moments(&self, truth: usize) -> (Vec<f64>, Vec<f64>) {
        let size = self.ratios[0].len();
        let weigh = |value: &dyn Fn(&[f64]) -> f64| -> f64 {
            self.probabilities.iter().zip(&self.ratios).map(|(row, ratios)| row[truth] * value(ratios)).sum()
        };
        let mean: Vec<f64> = (0..size).map(|ratio| weigh(&|ratios| ratios[ratio])).collect();
        let covariance = (0..size * size)
            .map(|cell| {
                let (row, column) = (cell / size, cell % size);
                weigh(&|ratios| (ratios[row] - mean[row]) * (ratios[column] - mean[column]))
            })
            .collect();
        (mean, covariance)
    }

    pub(crate) fn into_likelihood(self) -> Likelihood {
        Likelihood::Discrete { probabilities: self.probabilities }
    }
}

/// The hypothesis of largest likelihood of all private observations.
pub(crate) fn likeliest(all: &[Option<PrivateLikelihoods>], hypotheses: usize) -> usize {
    let score = |hypothesis: usize| -> f64 {
        all.iter()
            .flatten()
            .map(|atoms| {
                let seen = atoms.probabilities.iter().zip(&atoms.counts);
                seen.map(|(row, &count)| count as f64 * row[hypothesis].ln()).sum::<f64>()
            })
            .sum()
    };
    let scores: Vec<f64> = (0..hypotheses).map(score).collect();
    (0..hypotheses).fold(0, |best, next| if scores[next] > scores[best] { next } else { best })
}
