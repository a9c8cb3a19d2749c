//! Least squares on a scaled simplex: min ½bᵀGb − cᵀb subject to b ≥ 0 and 1ᵀb = s.
//!
//! In: G (positive semi-definite), c and s. Out: the minimiser, by a primal active-set method: starting from one positive
//! variable, or from a given feasible point, the variable with the most negative dual enters, and variables that would
//! become negative leave. Every iterate is feasible and no worse than the one before. The minimisers are sparse, so only a
//! few columns of G are ever read, and G may be singular.

use crate::progress;
use faer::linalg::solvers::Llt;
use faer::prelude::Solve;
use faer::{Mat, MatRef, Side};

/// A dual this far below zero, relative to its largest term, is a rounding error.
const SLACK: f64 = 1e-11;

/// Ridges tried in turn, relative to the largest diagonal: the first that keeps every face definite is used.
const RIDGES: [f64; 5] = [0.0, 1e-13, 1e-11, 1e-9, 1e-7];

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

/// A symmetric matrix that gives its diagonal and single columns.
pub(crate) trait Quadratic {
    fn diagonal(&self, index: usize) -> f64;
    fn column(&self, index: usize) -> Vec<f64>;
}

impl Quadratic for Mat<f64> {
    fn diagonal(&self, index: usize) -> f64 {
        self[(index, index)]
    }

    fn column(&self, index: usize) -> Vec<f64> {
        self.col_as_slice(index).to_vec()
    }
}

/// G − UUᵀ with few columns in U.
pub(crate) struct Reduced<'a> {
    pub(crate) gram: &'a Mat<f64>,
    pub(crate) removed: &'a Mat<f64>,
}

impl Quadratic for Reduced<'_> {
    fn diagonal(&self, index: usize) -> f64 {
        self.gram[(index, index)] - self.removed.row(index).iter().map(|value| value * value).sum::<f64>()
    }

    fn column(&self, index: usize) -> Vec<f64> {
        let mut column = self.gram.column(index);
        for place in 0..self.removed.ncols() {
            let weight = self.removed[(index, place)];
            column.iter_mut().zip(self.removed.col_as_slice(place)).for_each(|(out, value)| *out -= weight * value);
        }
        column
    }
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
    fn look_beyond(&mut self, columns: &[Vec<f64>], linear: &[f64]) {
        let mut is_free = vec![false; self.size];
        self.free.iter().for_each(|&index| is_free[index] = true);
        let (products, ones) =
            (weighted(columns, &self.unconstrained, self.size), weighted(columns, &self.ones, self.size));
        let bound = (0..self.size).filter(|&index| !is_free[index]);
        self.beyond = bound.map(|index| [products[index], ones[index], linear[index]]).collect();
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

/// Σ weight · column.
fn weighted(columns: &[Vec<f64>], weights: &[f64], size: usize) -> Vec<f64> {
    let mut out = vec![0.0; size];
    for (column, weight) in columns.iter().zip(weights) {
        out.iter_mut().zip(column).for_each(|(out, value)| *out += weight * value);
    }
    out
}

/// The free variables with their columns of G and the Cholesky factor of their block, kept up to date as they change.
#[derive(Default)]
struct ActiveSet {
    free: Vec<usize>,
    columns: Vec<Vec<f64>>,
    /// Rows of the lower triangular factor.
    factor: Vec<Vec<f64>>,
}

impl ActiveSet {
    /// Adds a variable; false, and no change, where the block would not be definite.
    fn insert(&mut self, index: usize, column: Vec<f64>) -> bool {
        let mut row: Vec<f64> = Vec::with_capacity(self.free.len() + 1);
        for (place, &other) in self.free.iter().enumerate() {
            let above = &self.factor[place];
            let known: f64 = row.iter().zip(above).map(|(a, b)| a * b).sum();
            row.push((column[other] - known) / above[place]);
        }
        let left = column[index] - row.iter().map(|value| value * value).sum::<f64>();
        let rounding = 4.0 * f64::EPSILON * (self.free.len() + 1) as f64 * column[index];
        if left.is_nan() || left <= rounding {
            return false;
        }
        row.push(left.sqrt());
        self.free.push(index);
        self.columns.push(column);
        self.factor.push(row);
        true
    }

    /// Removes the variable at a place; rotations make the rest of the factor triangular again.
    fn remove(&mut self, place: usize) {
        self.free.remove(place);
        self.columns.remove(place);
        self.factor.remove(place);
        for pivot in place..self.factor.len() {
            let (a, b) = (self.factor[pivot][pivot], self.factor[pivot][pivot + 1]);
            let length = a.hypot(b);
            let (cosine, sine) = (a / length, b / length);
            for row in &mut self.factor[pivot..] {
                let (a, b) = (row[pivot], row[pivot + 1]);
                row[pivot] = cosine * a + sine * b;
                row[pivot + 1] = cosine * b - sine * a;
            }
            self.factor[pivot].truncate(pivot + 1);
        }
    }

    /// Solves with the block.
    fn solve(&self, target: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut out: Vec<f64> = Vec::with_capacity(self.free.len());
        for (place, target) in target.enumerate() {
            let row = &self.factor[place];
            let known: f64 = out.iter().zip(row).map(|(a, b)| a * b).sum();
            out.push((target - known) / row[place]);
        }
        for place in (0..out.len()).rev() {
            let row = &self.factor[place];
            out[place] /= row[place];
            let value = out[place];
            out[..place].iter_mut().zip(row).for_each(|(out, factor)| *out -= factor * value);
        }
        out
    }

    /// The minimiser with the other variables at zero, without the bounds.
    fn face(&self, linear: &[f64]) -> Face {
        let unconstrained = self.solve(self.free.iter().map(|&index| linear[index]));
        let ones = self.solve(self.free.iter().map(|_| 1.0));
        let stiffness = 1.0 / ones.iter().sum::<f64>();
        Face { size: linear.len(), free: self.free.clone(), unconstrained, ones, stiffness, beyond: Vec::new() }
    }
}

/// The minimiser of ½bᵀGb − cᵀb over b ≥ 0, 1ᵀb = sum. A start that is feasible up to its sum is where the search begins.
///
/// `None` when G has no positive direction at all.
pub(crate) fn on_simplex(gram: &impl Quadratic, linear: &[f64], sum: f64, start: &[f64]) -> Option<Vec<f64>> {
    search(gram, linear, sum, start).map(|(optimum, ..)| optimum.values)
}

/// The same, with its face; no face where the minimum is approximate.
pub(crate) fn faced(gram: &impl Quadratic, linear: &[f64], sum: f64, start: &[f64]) -> Option<(Optimum, Option<Face>)> {
    let (optimum, mut face, columns) = search(gram, linear, sum, start)?;
    if let Some(face) = &mut face {
        face.look_beyond(&columns, linear);
    }
    Some((optimum, face))
}

type Found = (Optimum, Option<Face>, Vec<Vec<f64>>);

/// How a search ended.
enum Search {
    Found(Found),
    /// A face is singular: a larger ridge is needed.
    Singular,
    /// A stop was requested: the minimum is not needed.
    Stopped,
}

fn search(gram: &impl Quadratic, linear: &[f64], sum: f64, start: &[f64]) -> Option<Found> {
    let largest = (0..linear.len()).map(|index| gram.diagonal(index)).fold(0.0f64, f64::max);
    if !(largest > 0.0 && largest.is_finite()) {
        return None;
    }
    for ridge in RIDGES {
        match attempt(gram, ridge * largest, linear, sum, start) {
            Search::Found(found) => return Some(found),
            Search::Stopped => return None,
            Search::Singular => {}
        }
    }
    None
}

fn attempt(gram: &impl Quadratic, ridge: f64, linear: &[f64], sum: f64, start: &[f64]) -> Search {
    let size = linear.len();
    let column = |index: usize| {
        let mut column = gram.column(index);
        column[index] += ridge;
        column
    };
    let mut set = ActiveSet::default();
    let mut values: Vec<f64> = Vec::new();
    let total: f64 = start.iter().sum();
    if total > 0.0 && start.iter().all(|value| *value >= 0.0) {
        for (index, value) in start.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            if !set.insert(index, column(index)) {
                return Search::Singular;
            }
            values.push(value * sum / total);
        }
    } else {
        // The best single variable.
        let alone = |index: usize| 0.5 * sum * (gram.diagonal(index) + ridge) - linear[index];
        let Some(best) = (0..size)
            .filter(|&index| gram.diagonal(index) + ridge > 0.0)
            .min_by(|&a, &b| alone(a).total_cmp(&alone(b)))
        else {
            return Search::Singular;
        };
        if !set.insert(best, column(best)) {
            return Search::Singular;
        }
        values.push(sum);
    }
    let mut is_free = vec![false; size];
    set.free.iter().for_each(|&index| is_free[index] = true);
    // Variables whose entry only rounding asked for, since the last progress.
    let mut refused = vec![false; size];
    for _ in 0..20 * size + 50 {
        if progress::stopped() {
            return Search::Stopped;
        }
        let (face, multiplier) = loop {
            let face = set.face(linear);
            let (target, multiplier) = face.values(sum);
            // How far towards the target every variable stays positive.
            let mut reach = 1.0f64;
            for (value, target) in values.iter().zip(&target).filter(|(_, target)| **target < 0.0) {
                reach = reach.min(value / (value - target));
            }
            if reach >= 1.0 {
                values = target;
                refused.fill(false);
                break (face, multiplier);
            }
            if reach > 0.0 {
                refused.fill(false);
            }
            for (value, target) in values.iter_mut().zip(&target) {
                // What reaches zero first is zero, not a rounding above it.
                let leaves = *target < 0.0 && *value / (*value - target) <= reach;
                *value = if leaves { 0.0 } else { *value + reach * (target - *value) };
            }
            for place in (0..values.len()).rev().filter(|&place| target[place] < 0.0).collect::<Vec<_>>() {
                if values[place] <= 0.0 && values.len() > 1 {
                    let index = set.free[place];
                    refused[index] |= reach == 0.0;
                    is_free[index] = false;
                    values.remove(place);
                    set.remove(place);
                }
            }
        };
        let products = weighted(&set.columns, &values, size);
        let waiting = (0..size)
            .filter(|&index| !is_free[index] && !refused[index] && enters(products[index], linear[index], multiplier));
        let dual = |index: usize| products[index] - linear[index];
        let Some(next) = waiting.min_by(|&a, &b| dual(a).total_cmp(&dual(b))) else {
            return Search::Found((face.optimum(&values, multiplier), Some(face), set.columns));
        };
        if !set.insert(next, column(next)) {
            return Search::Singular;
        }
        is_free[next] = true;
        values.push(0.0);
    }
    // Rounding kept it from ending: the last point is feasible.
    let face = set.face(linear);
    let multiplier = face.values(sum).1;
    Search::Found((face.optimum(&values, multiplier), None, set.columns))
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

    /// Checks the conditions of a minimum: the gradient is the same on the support and no smaller off it.
    fn assert_optimal(gram: &Mat<f64>, linear: &[f64], met: &[f64], sum: f64) {
        let size = linear.len();
        assert!((met.iter().sum::<f64>() - sum).abs() < 1e-9 && met.iter().all(|value| *value >= 0.0));
        let product = gram * MatRef::from_column_major_slice(met, size, 1);
        let gradient: Vec<f64> = (0..size).map(|row| product[(row, 0)] - linear[row]).collect();
        let level = (0..size).filter(|&index| met[index] > 1e-9).map(|index| gradient[index]).fold(f64::MIN, f64::max);
        let scale = linear.iter().fold(1.0f64, |most, value| most.max(value.abs()));
        assert!(gradient.iter().all(|value| *value >= level - 1e-7 * scale), "{met:?} {gradient:?}");
    }

    /// A Gram matrix of `rank` random rows, and the products with a response that listens to the first three columns.
    fn short_series(size: usize, rank: usize) -> (Mat<f64>, Vec<f64>) {
        let mut state = 7u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let x = Mat::from_fn(size, rank, |_, _| uniform());
        let y: Vec<f64> =
            (0..rank).map(|step| 0.3 * (x[(0, step)] + x[(1, step)] + x[(2, step)]) + 0.3 * uniform()).collect();
        let linear = (0..size).map(|row| (0..rank).map(|step| x[(row, step)] * y[step]).sum()).collect();
        (&x * x.transpose(), linear)
    }

    #[test]
    fn many_more_variables_than_equations() {
        let (gram, linear) = short_series(400, 60);
        let met = on_simplex(&gram, &linear, 0.9, &[-1.0; 400]).unwrap();
        assert_optimal(&gram, &linear, &met, 0.9);
        let free = met.iter().filter(|value| **value > 0.0).count();
        assert!((3..=60).contains(&free), "{free}");
        // From a feasible start the same minimum is found.
        let again = on_simplex(&gram, &linear, 0.9, &[1.0 / 400.0; 400]).unwrap();
        assert_optimal(&gram, &linear, &again, 0.9);
    }

    #[test]
    fn exact_copies_share_without_a_failure() {
        let (gram, linear) = short_series(6, 40);
        let copied = Mat::from_fn(12, 12, |row, column| gram[(row % 6, column % 6)]);
        let target: Vec<f64> = (0..12).map(|row| linear[row % 6]).collect();
        let met = on_simplex(&copied, &target, 0.9, &[1.0; 12]).unwrap();
        assert_optimal(&copied, &target, &met, 0.9);
        let once = on_simplex(&gram, &linear, 0.9, &[1.0; 6]).unwrap();
        for index in 0..6 {
            assert!((met[index] + met[index + 6] - once[index]).abs() < 1e-5);
        }
    }

    #[test]
    fn a_reduced_matrix_is_the_difference() {
        let (gram, linear) = short_series(8, 40);
        let removed = Mat::from_fn(8, 2, |row, column| 0.1 * (row as f64 - 3.0) / (column + 1) as f64);
        let whole = &gram - &removed * removed.transpose();
        let reduced = Reduced { gram: &gram, removed: &removed };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!((0..8).all(|index| near(reduced.diagonal(index), whole[(index, index)])));
        let (met, wanted) = (
            on_simplex(&reduced, &linear, 1.0, &[0.0; 8]).unwrap(),
            on_simplex(&whole, &linear, 1.0, &[0.0; 8]).unwrap(),
        );
        assert!(met.iter().zip(wanted).all(|(met, wanted)| near(*met, wanted)));
    }

    proptest! {
        #[test]
        fn variables_that_left_leave_no_trace(cells in proptest::collection::vec(-1.0f64..1.0, 60), gone in 0usize..6) {
            let half = Mat::from_fn(6, 10, |row, column| cells[row * 10 + column]);
            let gram = &half * half.transpose();
            let mut set = ActiveSet::default();
            (0..6).for_each(|index| assert!(set.insert(index, gram.column(index))));
            set.remove(gone);
            let met = set.solve((0..5).map(|place| place as f64));
            for (place, &row) in set.free.iter().enumerate() {
                let product: f64 = set.free.iter().zip(&met).map(|(&column, value)| gram[(row, column)] * value).sum();
                prop_assert!((product - place as f64).abs() < 1e-6, "{product} {place}");
            }
        }

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
            assert_optimal(&gram, &shift, &met, 0.9);
        }
    }
}
