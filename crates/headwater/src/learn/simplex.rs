//! Least squares on a scaled simplex: min ½bᵀGb − cᵀb subject to b ≥ 0 and 1ᵀb = s.
//!
//! In: G (positive semi-definite, column order), c and s. Out: the minimiser, by exchanging whole blocks of variables
//! between the free and the zero set, and one at a time where blocks would cycle.

use faer::linalg::solvers::Llt;
use faer::prelude::Solve;
use faer::{Mat, MatRef, Side};

/// Rounds of block exchanges without progress before variables are moved one at a time.
const PATIENCE: usize = 5;

/// A dual this far below zero, relative to the largest term in it, is rounding.
const SLACK: f64 = 1e-11;

/// Factors a positive semi-definite matrix, adding the smallest ridge that makes it definite.
pub(crate) fn factor(matrix: &Mat<f64>) -> Option<Llt<f64>> {
    let size = matrix.nrows();
    if size == 0 {
        return None;
    }
    let trace: f64 = (0..size).map(|index| matrix[(index, index)]).sum();
    if !(trace > 0.0 && trace.is_finite()) {
        return None;
    }
    if let Ok(llt) = matrix.llt(Side::Lower) {
        return Some(llt);
    }
    let mut ridge = 1e-15 * trace / size as f64;
    for _ in 0..8 {
        let mut lifted = matrix.clone();
        (0..size).for_each(|index| lifted[(index, index)] += ridge);
        if let Ok(llt) = lifted.llt(Side::Lower) {
            return Some(llt);
        }
        ridge *= 100.0;
    }
    None
}

/// Solves for one right-hand side.
pub(crate) fn solve(llt: &Llt<f64>, b: &[f64]) -> Vec<f64> {
    let out = llt.solve(MatRef::from_column_major_slice(b, b.len(), 1));
    (0..b.len()).map(|row| out[(row, 0)]).collect()
}

/// A minimiser, and how the minimum depends on the sum.
#[derive(Debug, Clone)]
pub(crate) struct Optimum {
    pub(crate) values: Vec<f64>,
    /// The multiplier ν: the minimum falls by this much when the sum grows by one, to first order.
    pub(crate) multiplier: f64,
    /// How fast ν falls as the sum grows.
    pub(crate) stiffness: f64,
}

/// The minimiser on the free variables with the others at zero.
fn on(free: &[usize], gram: &Mat<f64>, linear: &[f64], sum: f64) -> Option<Optimum> {
    let reduced = Mat::from_fn(free.len(), free.len(), |row, column| gram[(free[row], free[column])]);
    let llt = factor(&reduced)?;
    let target: Vec<f64> = free.iter().map(|&index| linear[index]).collect();
    let unconstrained = solve(&llt, &target);
    let ones = solve(&llt, &vec![1.0; free.len()]);
    let stiffness = 1.0 / ones.iter().sum::<f64>();
    let multiplier = (unconstrained.iter().sum::<f64>() - sum) * stiffness;
    let values = unconstrained.iter().zip(&ones).map(|(value, one)| value - multiplier * one).collect();
    Some(Optimum { values, multiplier, stiffness })
}

/// The minimiser of ½bᵀGb − cᵀb over b ≥ 0, 1ᵀb = sum, starting from the support of `start`.
///
/// `None` when G has no positive direction at all.
pub(crate) fn on_simplex(gram: &Mat<f64>, linear: &[f64], sum: f64, start: &[f64]) -> Option<Vec<f64>> {
    optimum(gram, linear, sum, start).map(|optimum| optimum.values)
}

/// The same, with what the sum costs.
pub(crate) fn optimum(gram: &Mat<f64>, linear: &[f64], sum: f64, start: &[f64]) -> Option<Optimum> {
    let size = linear.len();
    let mut is_free: Vec<bool> = start.iter().map(|value| *value > 0.0).collect();
    if !is_free.contains(&true) {
        is_free.fill(true);
    }
    let mut fewest = usize::MAX;
    let mut patience = PATIENCE;
    for _ in 0..20 * size + 50 {
        let free: Vec<usize> = (0..size).filter(|&index| is_free[index]).collect();
        let Optimum { values, multiplier, stiffness } = on(&free, gram, linear, sum)?;
        // A variable leaves when negative; one at zero enters when its dual Gb − c + ν is.
        let mut wrong: Vec<usize> =
            free.iter().zip(&values).filter(|(_, value)| **value < 0.0).map(|(&index, _)| index).collect();
        for index in (0..size).filter(|&index| !is_free[index]) {
            let pull: f64 = free.iter().zip(&values).map(|(&other, value)| gram[(other, index)] * value).sum();
            let scale = pull.abs().max(linear[index].abs()).max(multiplier.abs());
            if pull - linear[index] + multiplier < -SLACK * scale {
                wrong.push(index);
            }
        }
        if wrong.is_empty() {
            let mut out = vec![0.0; size];
            free.iter().zip(values).for_each(|(&index, value)| out[index] = value);
            return Some(Optimum { values: out, multiplier, stiffness });
        }
        if wrong.len() < fewest {
            (fewest, patience) = (wrong.len(), PATIENCE);
        } else if patience > 0 {
            patience -= 1;
        } else {
            // Murty's rule: the last wrong variable alone.
            wrong.sort_unstable();
            wrong.drain(..wrong.len() - 1);
        }
        let leaves_one = free.len() > wrong.iter().filter(|&&index| is_free[index]).count();
        if !leaves_one && wrong.iter().all(|&index| is_free[index]) {
            wrong.truncate(free.len() - 1);
        }
        wrong.iter().for_each(|&index| is_free[index] ^= true);
    }
    // Cycling on a degenerate problem: a feasible point near the last one.
    let free: Vec<usize> = (0..size).filter(|&index| is_free[index]).collect();
    let Optimum { values, multiplier, stiffness } = on(&free, gram, linear, sum)?;
    let positive: f64 = values.iter().map(|value| value.max(0.0)).sum();
    let mut out = vec![0.0; size];
    free.iter().zip(values).for_each(|(&index, value)| out[index] = value.max(0.0) * sum / positive);
    Some(Optimum { values: out, multiplier, stiffness })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::gsl::project_on_simplex;
    use proptest::prelude::*;

    #[test]
    fn the_identity_projects() {
        let target = [0.8, 0.6, -1.0, 0.1];
        let mut wanted = target;
        project_on_simplex(&mut wanted);
        let met = on_simplex(&Mat::identity(4, 4), &target, 1.0, &[0.0; 4]).unwrap();
        assert!(met.iter().zip(wanted).all(|(met, wanted)| (met - wanted).abs() < 1e-14));
    }

    proptest! {
        #[test]
        fn optimal_on_random_problems(cells in proptest::collection::vec(-1.0f64..1.0, 60), shift in proptest::collection::vec(-2.0f64..2.0, 6)) {
            let half = Mat::from_fn(6, 10, |row, column| cells[row * 10 + column]);
            let gram = &half * half.transpose();
            let met = on_simplex(&gram, &shift, 0.9, &[1.0; 6]).unwrap();
            prop_assert!((met.iter().sum::<f64>() - 0.9).abs() < 1e-9);
            prop_assert!(met.iter().all(|value| *value >= 0.0));
            // The gradient is the same on the support and no smaller off it.
            let gradient: Vec<f64> = (0..6)
                .map(|row| (0..6).map(|column| gram[(row, column)] * met[column]).sum::<f64>() - shift[row])
                .collect();
            let level = (0..6).filter(|&i| met[i] > 1e-9).map(|i| gradient[i]).fold(f64::MIN, f64::max);
            for index in 0..6 {
                prop_assert!(gradient[index] >= level - 1e-7 * (1.0 + level.abs()), "{met:?} {gradient:?}");
            }
        }
    }
}
