//! Cholesky factor of a definite matrix, made and used on one thread, so that the thread count changes no bit.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Mat, Par};

/// The lower triangular factor; what is above its diagonal is undefined.
pub(crate) struct Cholesky(Mat<f64>);

impl Cholesky {
    /// Reads on and below the diagonal; `None` where the matrix is not definite.
    pub(crate) fn new(mut matrix: Mat<f64>) -> Option<Self> {
        let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(matrix.nrows(), Par::Seq, Default::default()));
        let stack = MemStack::new(&mut memory);
        cholesky_in_place(matrix.as_mut(), Default::default(), Par::Seq, stack, Default::default()).ok()?;
        Some(Cholesky(matrix))
    }

    pub(crate) fn into_lower(self) -> Mat<f64> {
        self.0
    }

    pub(crate) fn solve(&self, mut right: Mat<f64>) -> Mat<f64> {
        solve_lower_triangular_in_place(self.0.as_ref(), right.as_mut(), Par::Seq);
        solve_upper_triangular_in_place(self.0.transpose(), right.as_mut(), Par::Seq);
        right
    }

    /// Ratio of the largest to the smallest pivot.
    pub(crate) fn condition(&self) -> f64 {
        let pivots = (0..self.0.nrows()).map(|index| self.0[(index, index)]);
        pivots.clone().fold(0.0, f64::max) / pivots.fold(f64::INFINITY, f64::min)
    }
}
