//! Least squares on a scaled simplex: min ½bᵀGb − cᵀb subject to b ≥ 0 and 1ᵀb = s.
//!
//! In: G (positive semi-definite, column order), c and s. Out: the minimiser, by exchanging whole blocks of variables
//! between the free and the zero set, and one at a time where blocks would cycle.

use crate::progress;
use faer::linalg::solvers::Llt;
use faer::prelude::Solve;
use faer::{Mat, MatRef, Side};

/// Rounds of block exchanges without progress before variables are moved one at a time.
const PATIENCE: usize = 5;

/// A dual this far below zero, relative to its largest term, is a rounding error.
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

/// The free variables of a minimum, with what is needed to solve for another sum without G.
#[derive(Debug, Clone)]
pub(crate) struct Face {
    size: usize,
    free: Vec<usize>,
    /// The minimiser without the constraint on the sum, and its change per unit of the multiplier.
    unconstrained: Vec<f64>,
    ones: Vec<f64>,
    stiffness: f64,
    /// Of each variable at zero: (Gb)ᵢ for these two, and cᵢ.
    beyond: Vec<[f64; 3]>,
}

/// Whether a variable at zero should grow: its dual Gb − c + ν is below zero by more than rounding.
fn enters(product: f64, linear: f64, multiplier: f64) -> bool {
    let scale = product.abs().max(linear.abs()).max(multiplier.abs());
    product - linear + multiplier < -SLACK * scale
}

impl Face {
    /// The minimiser on the free variables with the others at zero.
    fn on(free: Vec<usize>, gram: &Mat<f64>, linear: &[f64]) -> Option<Self> {
        let reduced = Mat::from_fn(free.len(), free.len(), |row, column| gram[(free[row], free[column])]);
        let llt = factor(&reduced)?;
        let target: Vec<f64> = free.iter().map(|&index| linear[index]).collect();
        let unconstrained = solve(&llt, &target);
        let ones = solve(&llt, &vec![1.0; free.len()]);
        let stiffness = 1.0 / ones.iter().sum::<f64>();
        Some(Face { size: linear.len(), free, unconstrained, ones, stiffness, beyond: Vec::new() })
    }

    /// Values of the free variables, and the multiplier, for a sum.
    fn values(&self, sum: f64) -> (Vec<f64>, f64) {
        let multiplier = (self.unconstrained.iter().sum::<f64>() - sum) * self.stiffness;
        let pairs = self.unconstrained.iter().zip(&self.ones);
        (pairs.map(|(value, one)| value - multiplier * one).collect(), multiplier)
    }

    fn optimum(&self, values: &[f64], multiplier: f64) -> Optimum {
        let mut out = vec![0.0; self.size];
        self.free.iter().zip(values).for_each(|(&index, value)| out[index] = *value);
        Optimum { values: out, multiplier, stiffness: self.stiffness }
    }

    /// Prepares [`moved`](Self::moved).
    fn look_beyond(&mut self, gram: &Mat<f64>, linear: &[f64]) {
        let mut is_free = vec![false; self.size];
        self.free.iter().for_each(|&index| is_free[index] = true);
        let along = |index: usize, values: &[f64]| -> f64 {
            self.free.iter().zip(values).map(|(&other, value)| gram[(other, index)] * value).sum()
        };
        let bound = (0..self.size).filter(|&index| !is_free[index]);
        self.beyond =
            bound.map(|index| [along(index, &self.unconstrained), along(index, &self.ones), linear[index]]).collect();
    }

    /// The minimiser for another sum, if the same variables are free there.
    pub(crate) fn moved(&self, sum: f64) -> Option<Optimum> {
        let (values, multiplier) = self.values(sum);
        let stays = values.iter().all(|value| *value >= 0.0)
            && !self
                .beyond
                .iter()
                .any(|[product, one, linear]| enters(product - multiplier * one, *linear, multiplier));
        stays.then(|| self.optimum(&values, multiplier))
    }
}

/// The minimiser of ½bᵀGb − cᵀb over b ≥ 0, 1ᵀb = sum, starting from the support of `start`.
///
/// `None` when G has no positive direction at all.
pub(crate) fn on_simplex(gram: &Mat<f64>, linear: &[f64], sum: f64, start: &[f64]) -> Option<Vec<f64>> {
    optimum(gram, linear, sum, start).map(|optimum| optimum.values)
}

/// The same, with the multiplier of the sum.
pub(crate) fn optimum(gram: &Mat<f64>, linear: &[f64], sum: f64, start: &[f64]) -> Option<Optimum> {
    search(gram, linear, sum, start).map(|(optimum, _)| optimum)
}

/// The same, with its face.
pub(crate) fn faced(gram: &Mat<f64>, linear: &[f64], sum: f64, start: &[f64]) -> Option<(Optimum, Option<Face>)> {
    let (optimum, mut face) = search(gram, linear, sum, start)?;
    if let Some(face) = &mut face {
        face.look_beyond(gram, linear);
    }
    Some((optimum, face))
}

/// A minimiser and its face; no face where it is approximate.
fn search(gram: &Mat<f64>, linear: &[f64], sum: f64, start: &[f64]) -> Option<(Optimum, Option<Face>)> {
    let size = linear.len();
    let mut is_free: Vec<bool> = start.iter().map(|value| *value > 0.0).collect();
    if !is_free.contains(&true) {
        is_free.fill(true);
    }
    let free_of = |is_free: &[bool]| (0..size).filter(|&index| is_free[index]).collect::<Vec<usize>>();
    let mut fewest = usize::MAX;
    let mut patience = PATIENCE;
    for _ in 0..20 * size + 50 {
        // With thousands of variables a step takes long; after a request to stop the minimum is not needed.
        if progress::stopped() {
            return None;
        }
        let face = Face::on(free_of(&is_free), gram, linear)?;
        let (values, multiplier) = face.values(sum);
        let free = &face.free;
        // A variable leaves when negative; one at zero enters when its dual is.
        let mut wrong: Vec<usize> =
            free.iter().zip(&values).filter(|(_, value)| **value < 0.0).map(|(&index, _)| index).collect();
        for index in (0..size).filter(|&index| !is_free[index]) {
            let product: f64 = free.iter().zip(&values).map(|(&other, value)| gram[(other, index)] * value).sum();
            if enters(product, linear[index], multiplier) {
                wrong.push(index);
            }
        }
        if wrong.is_empty() {
            return Some((face.optimum(&values, multiplier), Some(face)));
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
    let face = Face::on(free_of(&is_free), gram, linear)?;
    let (values, multiplier) = face.values(sum);
    let positive: f64 = values.iter().map(|value| value.max(0.0)).sum();
    let near: Vec<f64> = values.iter().map(|value| value.max(0.0) * sum / positive).collect();
    Some((face.optimum(&near, multiplier), None))
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

    #[test]
    fn who_is_told_to_stop_searches_no_further() {
        let watch = progress::Progress::default();
        let found = || on_simplex(&Mat::identity(4, 4), &[0.8, 0.6, -1.0, 0.1], 1.0, &[0.0; 4]);
        assert!(watch.over(Some(1), found).unwrap().is_some());
        watch.stop();
        assert!(watch.over(Some(1), found).is_ok_and(|found| found.is_none()));
    }

    proptest! {
        #[test]
        fn optimal_on_random_problems(cells in proptest::collection::vec(-1.0f64..1.0, 60), shift in proptest::collection::vec(-2.0f64..2.0, 6)) {
            let half = Mat::from_fn(6, 10, |row, column| cells[row * 10 + column]);
            let gram = &half * half.transpose();
            let (met, face) = faced(&gram, &shift, 0.9, &[1.0; 6]).unwrap();
            let met = met.values;
            // Another sum: the same as found from G, or not known.
            for sum in [0.85, 1.3] {
                if let Some(moved) = face.as_ref().and_then(|face| face.moved(sum)) {
                    let anew = on_simplex(&gram, &shift, sum, &[1.0; 6]).unwrap();
                    let near = moved.values.iter().zip(&anew).all(|(moved, anew)| (moved - anew).abs() < 1e-7);
                    prop_assert!(near, "{moved:?} {anew:?}");
                }
            }
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
