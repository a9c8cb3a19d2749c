//! Unweighted least squares within the symbols found, and whether chance can be excluded.

use super::{CLEAR, Problem, Split, centres, distance, rms, times};
use crate::learn::cholesky::Cholesky;
use faer::linalg::solvers::ColPivQr;
use faer::prelude::SolveLstsq;
use faer::{Mat, Side};

/// Largest residual of a certified column, in rounding errors of the largest log-belief.
const ROUNDINGS: f64 = 64.0;

/// Smallest pivot of a design of full rank, relative to the largest.
const FULL_RANK: f64 = 1e-9;

/// Decimal digits by which a certificate must exceed chance.
const DIGITS: f64 = 20.0;

/// Smallest pivot of normal equations of full rank, relative to the largest: they square the condition.
const NORMAL_FULL_RANK: f64 = 1e-6;

/// Steps of refinement of normal equations, at most.
const MOST_REFINEMENTS: usize = 30;

impl Problem<'_> {
    /// Root mean square of the regressors along each of H directions of the hypotheses. Agents with the same observation
    /// model move along fewer directions than there are hypotheses; along the others the equations carry no information.
    fn scales(&self) -> Vec<f64> {
        let (data, ratios) = (self.data, self.data.ratios);
        if ratios == 1 {
            let gram = &self.products.gram;
            let squares: f64 = (0..gram.nrows()).map(|index| gram[(index, index)]).sum();
            return vec![(squares / (gram.nrows() * self.y.len()) as f64).sqrt()];
        }
        let mut products = Mat::<f64>::zeros(ratios, ratios);
        for &speaker in self.regressors {
            for row in data.x.col_as_slice(speaker).chunks_exact(ratios) {
                for a in 0..ratios {
                    for b in 0..ratios {
                        products[(a, b)] += row[a] * row[b];
                    }
                }
            }
        }
        let Ok(eigen) = products.self_adjoint_eigen(Side::Lower) else { return vec![0.0; ratios] };
        // Measured along each direction: an eigenvalue of zero comes out as a rounding of the largest, and its root as 1e-8.
        let along = |direction: usize| {
            let row_along =
                |row: &[f64]| (0..ratios).map(|ratio| row[ratio] * eigen.U()[(ratio, direction)]).sum::<f64>();
            let series = self.regressors.iter().flat_map(|&speaker| data.x.col_as_slice(speaker).chunks_exact(ratios));
            rms(&series.map(row_along).collect::<Vec<f64>>())
        };
        (0..ratios).map(along).collect()
    }

    /// Least squares within symbols by an orthogonal factorisation, its condition number by pivots, and whether the rank
    /// is full.
    fn orthogonal(&self, symbols: &[usize], count: usize) -> (Vec<f64>, f64, bool) {
        let (data, ratios, size) = (self.data, self.data.ratios, self.regressors.len());
        let rows = self.y.len();
        let raw_y = data.y.col_as_slice(self.listener);
        let y_centres = centres(raw_y, symbols, count, ratios);
        let mut x_means = Mat::<f64>::zeros(size, count * ratios);
        let mut members = vec![0usize; count];
        for (step, &symbol) in symbols.iter().enumerate() {
            members[symbol] += 1;
            for ratio in 0..ratios {
                for (row, &speaker) in self.regressors.iter().enumerate() {
                    x_means[(row, symbol * ratios + ratio)] += data.x[(step * ratios + ratio, speaker)];
                }
            }
        }
        let mean = |row: usize, symbol: usize, ratio: usize| {
            x_means[(row, symbol * ratios + ratio)] / members[symbol].max(1) as f64
        };
        let design = Mat::from_fn(rows, size, |column, row| {
            let symbol = symbols[column / ratios];
            data.x[(column, self.regressors[row])] - mean(row, symbol, column % ratios)
        });
        let target = Mat::from_fn(rows, 1, |column, _| {
            let symbol = symbols[column / ratios];
            raw_y[column] - y_centres[symbol].as_ref().map_or(0.0, |centre| centre[column % ratios])
        });
        let qr = design.col_piv_qr();
        let condition = pivots(&qr, size);
        let solution = qr.solve_lstsq(&target);
        ((0..size).map(|row| solution[(row, 0)]).collect(), condition, condition < 1.0 / FULL_RANK)
    }

    /// The same for many shared regressors: normal equations, refined with residuals of the data, which makes the residuals as
    /// small as an orthogonal factorisation does.
    fn refined(&self, symbols: &[usize], count: usize) -> Option<(Vec<f64>, f64, bool)> {
        let (ratios, size) = (self.data.ratios, self.regressors.len());
        let (sums, _) = self.between(symbols, count);
        let factor = Cholesky::new(&self.products.gram - &sums * sums.transpose())?;
        let condition = factor.condition();
        let mut weights = vec![0.0; size];
        let mut last = f64::INFINITY;
        for _ in 0..MOST_REFINEMENTS {
            let mut left = self.residuals(&weights);
            let centres = centres(&left, symbols, count, ratios);
            for (row, &symbol) in left.chunks_exact_mut(ratios).zip(symbols) {
                let centre = centres[symbol].iter().flatten();
                row.iter_mut().zip(centre).for_each(|(value, centre)| *value -= centre);
            }
            let gradient = times(&self.products.x, &left);
            let step = factor.solve(Mat::from_fn(size, 1, |row, _| gradient[row]));
            let step = step.col_as_slice(0);
            weights.iter_mut().zip(step).for_each(|(weight, step)| *weight += step);
            let moved = step.iter().fold(0.0f64, |most, step| most.max(step.abs()));
            if moved > 0.5 * last || moved < f64::EPSILON {
                break;
            }
            last = moved;
        }
        Some((weights, condition, condition < 1.0 / NORMAL_FULL_RANK))
    }

    /// Unweighted least squares within the symbols found, and the certificate.
    pub(super) fn polish(&self, symbols: &[usize], first_residuals: &[f64]) -> Option<Split> {
        let (data, ratios, steps) = (self.data, self.data.ratios, self.steps());
        let mut used: Vec<usize> = symbols.to_vec();
        used.sort_unstable();
        used.dedup();
        let symbols: Vec<usize> = symbols.iter().map(|symbol| used.binary_search(symbol).unwrap_or_default()).collect();
        let count = used.len();
        let size = self.regressors.len();
        let rows = steps * ratios;
        if rows < size + count * ratios {
            return None;
        }
        let (weights, condition, full_rank) = match self.products.factor {
            Some(_) => self.refined(&symbols, count)?,
            None => self.orthogonal(&symbols, count),
        };
        if weights.iter().any(|weight| !weight.is_finite()) {
            return None;
        }
        let residuals = data.residuals(self.listener, self.regressors, &weights);
        let centres: Vec<Vec<f64>> =
            centres(&residuals, &symbols, count, ratios).into_iter().map(Option::unwrap_or_default).collect();
        let residual = residuals.chunks_exact(ratios).zip(&symbols).fold(0.0f64, |most, (row, &symbol)| {
            row.iter().zip(&centres[symbol]).fold(most, |most, (a, b)| most.max((a - b).abs()))
        });
        let rounding = ROUNDINGS * f64::EPSILON * data.largest;
        // One equation holds to `rounding` by chance about as often as that is part of what it could have been: of the
        // first residual, or where only one symbol occurred and that is rounding already, of what was heard.
        let first = rms(first_residuals);
        let first = if first > 10.0 * rounding { first } else { f64::INFINITY };
        let digits: Vec<f64> =
            self.scales().into_iter().map(|scale| (scale.min(first) / rounding).log10().max(0.0)).collect();
        let most = digits.iter().copied().fold(0.0, f64::max);
        let spare = digits.iter().sum::<f64>() * (steps as f64 - count as f64) - most * size as f64;
        let needed = steps as f64 * (count as f64).log10() + DIGITS;
        let certified = full_rank && residual <= rounding && spare > needed;
        let spread = residuals.chunks_exact(ratios).zip(&symbols).map(|(row, &symbol)| distance(row, &centres[symbol]));
        let spread = (spread.map(|distance| distance * distance).sum::<f64>() / steps as f64).sqrt();
        let pairs = (0..count).flat_map(|a| (0..a).map(move |b| (a, b)));
        let gaps: Vec<f64> = pairs.map(|(a, b)| distance(&centres[a], &centres[b])).collect();
        let apart = gaps.iter().copied().fold(f64::INFINITY, f64::min);
        let single = gaps.iter().all(|gap| *gap <= 10.0 * rounding);
        let separation = if count > 1 && spread > 0.0 { apart / spread } else { 0.0 };
        let constrained = if !certified && separation >= CLEAR {
            let plain =
                Problem::new(data, self.listener, self.regressors, None, &Mat::identity(ratios, ratios), self.sum);
            plain.refit(&symbols, count, false, &weights)
        } else {
            None
        };
        Some(Split { weights, condition, symbols, centres, certified, single, separation, constrained })
    }
}

/// Ratio of the largest to the smallest pivot.
fn pivots(qr: &ColPivQr<f64>, size: usize) -> f64 {
    let r = qr.thin_R();
    let least = (0..size.min(r.nrows())).map(|index| r[(index, index)].abs()).fold(f64::INFINITY, f64::min);
    if least > 0.0 { r[(0, 0)].abs() / least } else { f64::INFINITY }
}
