//! Weights of one listener with atoms at zero: moves of weight between two speakers.
//!
//! In: a log-likelihood that is quadratic in the weights, and their spike-and-slab prior. A move takes two speakers i and j
//! at random and draws the weight of i given the sum of both: j alone, i alone, or both with a normal law cut to the
//! interval between. Exact for a flat slab; other slabs are corrected by Metropolis and Hastings.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use statrs::function::{erf::erfc, gamma::ln_gamma};

/// Log-likelihood c·a − ½ a·G·a of weights a.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Quadratic {
    /// G, row by row.
    pub(crate) gram: Vec<f64>,
    /// c.
    pub(crate) slope: Vec<f64>,
}

/// The prior of the weights of a listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slab<'a> {
    /// Log-odds that each speaker is heard.
    pub(crate) log_odds: &'a [f64],
    /// Parameter of the symmetric Dirichlet law of the weights that are not zero.
    pub(crate) concentration: f64,
    /// A speaker that is always heard.
    pub(crate) always: Option<usize>,
    /// Weights that are not zero and not among those moved.
    pub(crate) beside: usize,
}

const SQRT_TWO_PI_LN: f64 = 0.918_938_533_204_672_8;

/// Curvatures below this are those of speakers that cannot be told apart.
const LEAST_CURVATURE: f64 = 1e-10;

/// Widths of intervals below which a normal density is constant.
const NARROW: f64 = 1e-5;

/// ln(Φ(b) − Φ(a)), a < b.
fn log_mass(a: f64, b: f64) -> f64 {
    let (a, b) = if a > 0.0 { (-b, -a) } else { (a, b) };
    if b - a < NARROW {
        let middle = 0.5 * (a + b);
        return -0.5 * middle * middle - SQRT_TWO_PI_LN + (b - a).ln();
    }
    let tail = |x: f64| 0.5 * erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
    if b < -25.0 {
        // Mills' ratio to the third order on both ends.
        let log_tail = |x: f64| {
            let square = 1.0 / (x * x);
            -0.5 * x * x - (-x).ln() - SQRT_TWO_PI_LN
                + (1.0 - square * (1.0 - 3.0 * square * (1.0 - 5.0 * square))).ln()
        };
        let upper = log_tail(b);
        return upper + (-(log_tail(a) - upper).exp()).ln_1p();
    }
    (tail(b) - tail(a)).ln()
}

/// A standard normal number between a and b, by rejection (Robert 1995). NaN where there is no such number.
pub(crate) fn truncated(a: f64, b: f64, rng: &mut impl Rng) -> f64 {
    if a.is_nan() || b.is_nan() || a >= b || a == f64::INFINITY || b == f64::NEG_INFINITY {
        return f64::NAN;
    }
    if a > 0.0 {
        return tail(a, b, rng);
    }
    if b < 0.0 {
        return -tail(-b, -a, rng);
    }
    if b - a > 2.5 {
        loop {
            let x: f64 = StandardNormal.sample(rng);
            if x >= a && x <= b {
                return x;
            }
        }
    }
    loop {
        let x = a + (b - a) * rng.random::<f64>();
        if rng.random::<f64>() < (-0.5 * x * x).exp() {
            return x;
        }
    }
}

/// Beyond, the tail of the normal law is an exponential one to rounding.
const EXPONENTIAL: f64 = 1e8;

/// The same for 0 < a < b, from an exponential law.
fn tail(a: f64, b: f64, rng: &mut impl Rng) -> f64 {
    if a > EXPONENTIAL {
        return (a - (rng.random::<f64>() * (-a * (b - a)).exp_m1()).ln_1p() / a).min(b);
    }
    let rate = 0.5 * (a + (a * a + 4.0).sqrt());
    let best = rate.min(b) - rate;
    loop {
        let x = a - (rng.random::<f64>() * (-rate * (b - a)).exp_m1()).ln_1p() / rate;
        let off = x - rate;
        if x <= b && rng.random::<f64>() < (0.5 * (best * best - off * off)).exp() {
            return x;
        }
    }
}

/// Ways to share a sum of two weights: both, the first alone, the second alone.
struct Ways {
    probabilities: [f64; 3],
    mean: f64,
    deviation: f64,
}

/// `slope` and `curvature` are those of minus the log-likelihood by the first weight, at `weight`; `others` the number of
/// other weights that are not zero.
fn ways(
    slope: f64,
    curvature: f64,
    weight: f64,
    sum: f64,
    log_odds: [f64; 2],
    always: [bool; 2],
    others: usize,
) -> Ways {
    let curvature = curvature.max(LEAST_CURVATURE);
    let (mean, deviation) = (weight - slope / curvature, 1.0 / curvature.sqrt());
    let both = log_mass(-mean / deviation, (sum - mean) / deviation)
        + deviation.ln()
        + SQRT_TWO_PI_LN
        + 0.5 * slope * slope / curvature
        + log_odds[0]
        + log_odds[1]
        + (others as f64 + 1.0).ln();
    let alone = |to: f64, log_odds: f64, possible: bool| match possible {
        true => log_odds - slope * (to - weight) - 0.5 * curvature * (to - weight).powi(2),
        false => f64::NEG_INFINITY,
    };
    let logs = [both, alone(sum, log_odds[0], !always[1]), alone(0.0, log_odds[1], !always[0])];
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights = logs.map(|log| (log - most).exp());
    let total: f64 = weights.iter().sum();
    Ways { probabilities: weights.map(|weight| weight / total), mean, deviation }
}

/// Log-density of the slab less that of a flat one, as far as two of `count` weights that are not zero change it.
fn beyond_flat(concentration: f64, count: usize, weights: [f64; 2]) -> f64 {
    let n = count as f64;
    let logs: f64 = weights.iter().filter(|weight| **weight > 0.0).map(|weight| weight.ln()).sum();
    ln_gamma(n * concentration) - ln_gamma(n) - n * ln_gamma(concentration) + (concentration - 1.0) * logs
}

/// Moves weight between random pairs of speakers, `moves` times.
pub(crate) fn move_pairs(quadratic: &Quadratic, slab: Slab<'_>, weights: &mut [f64], moves: usize, rng: &mut impl Rng) {
    let size = weights.len();
    if size < 2 {
        return;
    }
    let mut slopes: Vec<f64> = (0..size)
        .map(|row| {
            let of = quadratic.gram[row * size..(row + 1) * size].iter().zip(&*weights);
            of.map(|(gram, weight)| gram * weight).sum::<f64>() - quadratic.slope[row]
        })
        .collect();
    let mut count = slab.beside + weights.iter().filter(|weight| **weight > 0.0).count();
    for _ in 0..moves {
        let i = rng.random_range(0..size);
        let j = rng.random_range(0..size - 1);
        let j = j + usize::from(j >= i);
        let sum = weights[i] + weights[j];
        if sum <= 0.0 {
            continue;
        }
        let others = count - usize::from(weights[i] > 0.0) - usize::from(weights[j] > 0.0);
        let at = |row: usize, column: usize| quadratic.gram[row * size + column];
        let curvature = at(i, i) + at(j, j) - 2.0 * at(i, j);
        let always = [slab.always == Some(i), slab.always == Some(j)];
        let log_odds = [slab.log_odds[i], slab.log_odds[j]];
        let found = ways(slopes[i] - slopes[j], curvature, weights[i], sum, log_odds, always, others);
        let chance = rng.random::<f64>();
        let (weight, now) = if chance < found.probabilities[0] {
            let limits = [-found.mean / found.deviation, (sum - found.mean) / found.deviation];
            let weight = found.mean + found.deviation * truncated(limits[0], limits[1], rng);
            if !(weight > 0.0 && weight < sum) {
                continue; // Rounding.
            }
            (weight, others + 2)
        } else if chance < found.probabilities[0] + found.probabilities[1] {
            (sum, others + 1)
        } else {
            (0.0, others + 1)
        };
        if slab.concentration != 1.0 {
            let gain = beyond_flat(slab.concentration, now, [weight, sum - weight])
                - beyond_flat(slab.concentration, count, [weights[i], weights[j]]);
            if rng.random::<f64>().ln() > gain {
                continue;
            }
        }
        let change = weight - weights[i];
        if change == 0.0 {
            continue;
        }
        weights[i] = weight;
        weights[j] = sum - weight;
        count = now;
        for row in 0..size {
            slopes[row] += change * (at(row, i) - at(row, j));
        }
    }
}
