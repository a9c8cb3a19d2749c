//! The probability that an agent favours a wrong hypothesis.

use super::attribution::{Attribution, PATIENCE, SETTLED};
use crate::{Error, Model};
use faer::{Mat, MatRef};
use statrs::function::erf::{erfc, erfc_inv};

/// Probability, in the long run, that each agent names a wrong hypothesis: beliefs are Gaussian with mean P L̄ and
/// covariance Σ = (1−δ)²AᵀΣA + δ²R_L, private observations being independent across agents.
///
/// The Lyapunov equation is solved by doubling: O(N³H² log 1/δ). For one agent of a large network use
/// [`error_probability`].
pub fn error_probabilities(model: &Model, truth: usize) -> Result<Vec<f64>, Error> {
    let innovation = known_innovation(model)?;
    let stochastic = model.combination.stochastic().combination;
    let (agents, ratios) = (stochastic.agents(), model.evidence.ratios());
    let mean = Attribution::from_stochastic(stochastic.clone(), model.adaptation).expected(&model.evidence);
    let mut spread = vec![vec![0.0; ratios * ratios]; agents];
    let columns = stochastic.to_columns();
    for row in 0..ratios {
        for column in row..ratios {
            let diagonal = (0..agents).map(|agent| innovation.agent(agent)[row * ratios + column]).collect();
            for (agent, value) in lyapunov_diagonal(&columns, diagonal, model.adaptation).into_iter().enumerate() {
                spread[agent][row * ratios + column] = value;
                spread[agent][column * ratios + row] = value;
            }
        }
    }
    Ok((0..agents)
        .map(|agent| {
            let mean: Vec<f64> = mean.iter().map(|values| values[agent]).collect();
            wrong(&mean, &spread[agent], truth)
        })
        .collect())
}

/// [`error_probabilities`] for one agent, from its weights over past steps: O(N²) per step.
pub fn error_probability(model: &Model, truth: usize, agent: usize) -> Result<f64, Error> {
    let innovation = known_innovation(model)?;
    let stochastic = model.combination.stochastic().combination;
    let ratios = model.evidence.ratios();
    let attribution = Attribution::from_stochastic(stochastic.clone(), model.adaptation);
    let mean: Vec<f64> = attribution.expected(&model.evidence).iter().map(|values| values[agent]).collect();
    // Λ_k is a sum over the past of (1−δ)^t [A^t]_{ℓk} δL_ℓ: variances add with squared weights.
    let keep = (1.0 - model.adaptation).powi(2);
    let mut weights = vec![0.0; stochastic.agents()];
    let mut attention = vec![0.0; stochastic.agents()];
    attention[agent] = 1.0;
    let mut factor = model.adaptation.powi(2);
    let limit = factor * SETTLED * (1.0 - keep);
    let mut left = PATIENCE;
    while factor > limit {
        let next = stochastic.spread(&attention);
        left -= 1;
        let settled = left == 0 || next.iter().zip(&attention).all(|(a, b)| (a - b).abs() <= SETTLED);
        let weight = if settled { factor / (1.0 - keep) } else { factor };
        weights.iter_mut().zip(&attention).for_each(|(sum, a)| *sum += weight * a * a);
        if settled {
            break;
        }
        attention = next;
        factor *= keep;
    }
    let mut spread = vec![0.0; ratios * ratios];
    for (source, weight) in weights.iter().enumerate() {
        spread.iter_mut().zip(innovation.agent(source)).for_each(|(sum, cell)| *sum += weight * cell);
    }
    Ok(wrong(&mean, &spread, truth))
}

fn known_innovation(model: &Model) -> Result<&crate::model::Innovation, Error> {
    model.innovation.as_ref().ok_or_else(|| Error::Undefined {
        what: "error probability",
        reason: "the model does not hold the covariance of private evidence (\"innovation\"); learn it from a panel"
            .into(),
    })
}

/// Diagonal of Σ = (1−δ)²AᵀΣA + δ²·diag(r): Σ ← Σ + MᵀΣM, M ← M².
fn lyapunov_diagonal(columns: &[f64], diagonal: Vec<f64>, adaptation: f64) -> Vec<f64> {
    let agents = diagonal.len();
    let mut step = faer::Scale(1.0 - adaptation) * MatRef::from_column_major_slice(columns, agents, agents);
    let mut sum = Mat::<f64>::zeros(agents, agents);
    for (agent, value) in diagonal.into_iter().enumerate() {
        sum[(agent, agent)] = adaptation * adaptation * value;
    }
    let mut kept = 1.0 - adaptation;
    while kept * kept > SETTLED * adaptation {
        sum = &sum + step.transpose() * (&sum * &step);
        step = &step * &step;
        kept *= kept;
    }
    (0..agents).map(|agent| sum[(agent, agent)]).collect()
}

/// P(some θ ≠ θ* has at least the belief of θ*) for Gaussian log-ratios.
fn wrong(mean: &[f64], spread: &[f64], truth: usize) -> f64 {
    let ratios = mean.len();
    let value = |hypothesis: usize| if hypothesis == 0 { 0.0 } else { mean[hypothesis - 1] };
    let cell = |a: usize, b: usize| if a == 0 || b == 0 { 0.0 } else { spread[(a - 1) * ratios + b - 1] };
    let others: Vec<usize> = (0..=ratios).filter(|&hypothesis| hypothesis != truth).collect();
    // log ψ(θ*)/ψ(θ_j) = Λ_j − Λ_*.
    let margin: Vec<f64> = others.iter().map(|&other| value(other) - value(truth)).collect();
    let covariance = Mat::from_fn(ratios, ratios, |row, column| {
        let (a, b) = (others[row], others[column]);
        cell(a, b) - cell(a, truth) - cell(truth, b) + cell(truth, truth)
    });
    (1.0 - all_positive(&margin, &covariance)).clamp(0.0, 1.0)
}

/// Points of the lattice rule; the same ones always, so that the answer has no noise from run to run.
const LATTICE: usize = 4096;

/// P(Z > 0 in every coordinate), Z ~ N(mean, covariance): Genz's separation of variables on a Richtmyer lattice.
/// One dimension is exact.
pub(super) fn all_positive(mean: &[f64], covariance: &Mat<f64>) -> f64 {
    let size = mean.len();
    // The least likely coordinates first: the later factors then vary least.
    let mut order: Vec<usize> = (0..size).collect();
    let tightness = |&coordinate: &usize| mean[coordinate] / covariance[(coordinate, coordinate)].max(1e-300).sqrt();
    order.sort_by(|a, b| tightness(a).total_cmp(&tightness(b)));
    let mut root = Mat::<f64>::zeros(size, size);
    for row in 0..size {
        for column in 0..=row {
            let known: f64 = (0..column).map(|k| root[(row, k)] * root[(column, k)]).sum();
            let left = covariance[(order[row], order[column])] - known;
            root[(row, column)] = if row == column {
                // Rounding can leave a singular direction slightly negative.
                let scale = covariance[(order[row], order[row])];
                if left > 1e-12 * scale { left.sqrt() } else { 0.0 }
            } else if root[(column, column)] > 0.0 {
                left / root[(column, column)]
            } else {
                0.0
            };
        }
    }
    let tail = |t: f64| 0.5 * erfc(t / std::f64::consts::SQRT_2);
    let points = if size == 1 { 1 } else { LATTICE };
    let mut sum = 0.0;
    let mut y = vec![0.0; size];
    for point in 0..points {
        let mut probability = 1.0;
        for row in 0..size {
            let shift: f64 = mean[order[row]] + (0..row).map(|k| root[(row, k)] * y[k]).sum::<f64>();
            if root[(row, row)] == 0.0 {
                if shift <= 0.0 {
                    probability = 0.0;
                    break;
                }
                y[row] = 0.0;
                continue;
            }
            let factor = tail(-shift / root[(row, row)]);
            probability *= factor;
            // A baker's-transformed lattice coordinate keeps away from the ends.
            let raw = ((point as f64 + 0.5) * PRIME_ROOTS[row % PRIME_ROOTS.len()]).fract();
            let uniform = (1.0 - (2.0 * raw - 1.0).abs()).clamp(1e-12, 1.0 - 1e-12);
            y[row] = std::f64::consts::SQRT_2 * erfc_inv((2.0 * uniform * factor).max(1e-300));
        }
        sum += probability;
    }
    sum / points as f64
}

/// Fractional parts of square roots of primes.
const PRIME_ROOTS: [f64; 12] = [
    0.414_213_562_373_095_1,
    0.732_050_807_568_877_2,
    0.236_067_977_499_789_8,
    0.645_751_311_064_590_7,
    0.316_624_790_355_399_8,
    0.605_551_275_463_989_3,
    0.123_105_625_617_660_59,
    0.358_898_943_540_673_5,
    0.795_831_523_312_719_5,
    0.385_164_807_134_504_4,
    0.567_764_362_830_021_9,
    0.082_762_530_298_219_68,
];
