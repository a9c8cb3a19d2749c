//! Private observation models: how they are drawn, and their moments.

use super::{Likelihoods, WorldParams};
use crate::model::Likelihood;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Bounds on probabilities of the appendix's generator. Note P3.
const SMALLEST_LIKELIHOOD: f64 = 0.02;

/// One observation model per agent, informative where `influential`.
pub(super) fn draw_likelihoods(params: &WorldParams, influential: &[bool], rng: &mut ChaCha8Rng) -> Vec<Likelihood> {
    let scale = |agent: usize| if influential[agent] { params.influential_scale } else { params.other_scale };
    let coin = |heads: Vec<f64>| {
        let tails = heads.iter().map(|p| 1.0 - p).collect();
        Likelihood::Discrete { probabilities: vec![heads, tails] }
    };
    (0..params.agents)
        .map(|agent| match params.likelihoods {
            Likelihoods::Appendix => {
                let draw = |hypothesis| if hypothesis == 0 { 0.3 } else { appendix(scale(agent), rng) };
                coin((0..params.hypotheses).map(draw).collect())
            }
            Likelihoods::Released => {
                let v = scale(agent);
                coin((0..params.hypotheses).map(|s| (0.3 + v * s as f64) / (1.0 + v * s as f64)).collect())
            }
            Likelihoods::Gaussian { dimension } => {
                let mut row = || -> Vec<f64> {
                    let draw = |_| -> f64 { scale(agent) * Distribution::<f64>::sample(&StandardNormal, rng) };
                    (0..params.hypotheses).map(draw).collect()
                };
                Likelihood::Gaussian { means: (0..dimension).map(|_| row()).collect() }
            }
        })
        .collect()
}

/// One probability of the appendix's generator, redrawn until it is one. Note P3.
fn appendix(scale: f64, rng: &mut ChaCha8Rng) -> f64 {
    loop {
        let [heads, tails]: [f64; 2] = [0.3, 0.7].map(|base| {
            let noise: f64 = StandardNormal.sample(rng);
            base + scale * noise
        });
        let p = heads / (heads + tails);
        if heads > 0.0 && tails > 0.0 && (SMALLEST_LIKELIHOOD..=1.0 - SMALLEST_LIKELIHOOD).contains(&p) {
            return p;
        }
    }
}

/// Mean (H) and covariance (H × H) of log L(ζ|θ_0)/L(ζ|θ_j) under the true state.
pub(super) fn moments(likelihood: &Likelihood, truth: usize) -> (Vec<f64>, Vec<f64>) {
    match likelihood {
        Likelihood::Discrete { probabilities } => {
            let ratios = probabilities[0].len() - 1;
            let ratio = |row: &[f64], ratio: usize| (row[0] / row[ratio + 1]).ln();
            let expect = |value: &dyn Fn(&[f64]) -> f64| -> f64 {
                probabilities.iter().map(|row| row[truth] * value(row)).sum()
            };
            let mean: Vec<f64> = (0..ratios).map(|j| expect(&|row| ratio(row, j))).collect();
            let covariance = (0..ratios * ratios)
                .map(|cell| {
                    let (j, l) = (cell / ratios, cell % ratios);
                    expect(&|row| (ratio(row, j) - mean[j]) * (ratio(row, l) - mean[l]))
                })
                .collect();
            (mean, covariance)
        }
        Likelihood::Gaussian { means } => {
            let ratios = means[0].len() - 1;
            // D(θ*‖θ) = ½‖m* − m_θ‖², and the ratio is linear in ζ with slope m_0 − m_j.
            let divergence = |hypothesis: usize| -> f64 {
                means.iter().map(|row| 0.5 * (row[truth] - row[hypothesis]).powi(2)).sum()
            };
            let mean = (0..ratios).map(|j| divergence(j + 1) - divergence(0)).collect();
            let slope = |row: &Vec<f64>, j: usize| row[0] - row[j + 1];
            let covariance = (0..ratios * ratios)
                .map(|cell| means.iter().map(|row| slope(row, cell / ratios) * slope(row, cell % ratios)).sum())
                .collect();
            (mean, covariance)
        }
        Likelihood::Unknown => unreachable!("worlds know their own likelihoods"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn appendix_probabilities_stay_inside() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..20_000 {
            let p = appendix(0.5, &mut rng);
            assert!((0.02..=0.98).contains(&p));
        }
    }
}
