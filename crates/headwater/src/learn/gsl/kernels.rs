//! Kernels of the update: single steps, the coupling of a block, the projection on the simplex.

use crate::combination::dot;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

/// Summed in the order of the tasks, whichever thread finished first.
pub(super) fn total(parts: impl IntoIterator<Item = [f64; 2]>) -> [f64; 2] {
    parts.into_iter().fold([0.0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]])
}

/// One update of one column: all H residuals first, then the rank-H change. Returns the squared residuals.
pub(super) fn single(
    column: &mut [f64],
    x: &[f64],
    y: &[f64],
    listener: usize,
    ratios: usize,
    keep: f64,
    rate: f64,
) -> f64 {
    let agents = column.len();
    let residual = |ratio: usize, column: &[f64]| {
        y[ratio * agents + listener] - keep * dot(column, &x[ratio * agents..(ratio + 1) * agents])
    };
    match ratios {
        1 => {
            let residual = residual(0, column);
            axpy(column, rate * residual, x);
            residual * residual
        }
        4 => {
            // The paper's five hypotheses: the change of all four ratios in one pass over the column.
            let residuals: [f64; 4] = std::array::from_fn(|ratio| residual(ratio, column));
            let [r0, r1, r2, r3] = residuals.map(|residual| rate * residual);
            let (x01, x23) = x.split_at(2 * agents);
            let ((x0, x1), (x2, x3)) = (x01.split_at(agents), x23.split_at(agents));
            for speaker in 0..agents {
                column[speaker] += (r0 * x0[speaker] + r1 * x1[speaker]) + (r2 * x2[speaker] + r3 * x3[speaker]);
            }
            residuals.iter().map(|residual| residual * residual).sum()
        }
        _ => {
            let residuals: Vec<f64> = (0..ratios).map(|ratio| residual(ratio, column)).collect();
            residuals.iter().zip(x.chunks_exact(agents)).for_each(|(residual, x)| axpy(column, rate * residual, x));
            residuals.iter().map(|residual| residual * residual).sum()
        }
    }
}

pub(super) fn axpy(column: &mut [f64], change: f64, x: &[f64]) {
    column.iter_mut().zip(x).for_each(|(a, x)| *a += change * x);
}

/// I + μc²G, G the strictly block-lower part of XᵀX with H × H blocks.
pub(super) fn coupling(x: MatRef<'_, f64>, ratios: usize, factor: f64) -> Mat<f64> {
    /// Rows per task; fixed, for the same bits on any number of threads.
    const ROWS: usize = 32;
    let width = x.ncols();
    let strips: Vec<Mat<f64>> = (0..width.div_ceil(ROWS))
        .into_par_iter()
        .map(|strip| {
            let first = strip * ROWS;
            let rows = ROWS.min(width - first);
            let mut out = Mat::zeros(rows, first + rows);
            let left = x.subcols(first, rows);
            matmul(out.as_mut(), Accum::Replace, left.transpose(), x.subcols(0, first + rows), factor, Par::Seq);
            out
        })
        .collect();
    Mat::from_fn(width, width, |row, column| {
        if row == column {
            1.0
        } else if row / ratios > column / ratios {
            strips[row / ROWS][(row % ROWS, column)]
        } else {
            0.0
        }
    })
}

/// The nearest point with non-negative entries that sum to one.
///
/// ```
/// let mut column = [0.8, 0.6, -1.0];
/// headwater::learn::gsl::project_on_simplex(&mut column);
/// assert!((column[0] - 0.6).abs() < 1e-15 && (column[1] - 0.4).abs() < 1e-15 && column[2] == 0.0);
/// ```
pub fn project_on_simplex(column: &mut [f64]) {
    let mut sorted = column.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let mut shift = 0.0;
    for (index, value) in sorted.iter().enumerate() {
        sum += value;
        let candidate = (sum - 1.0) / (index + 1) as f64;
        if *value > candidate {
            shift = candidate;
        }
    }
    column.iter_mut().for_each(|value| *value = (*value - shift).max(0.0));
}
