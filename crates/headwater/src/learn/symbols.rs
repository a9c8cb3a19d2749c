//! Symbols: when private observations come from a finite alphabet, a listener's points lie on a few parallel hyperplanes.
//!
//! In: the frames, a listener, a first fit and the weights of its hypotheses. Out: which symbol was seen at each step,
//! the exact column, and whether it can be certified: an agreement to rounding error that chance does not explain.
//!
//! Legend: T−1 transitions of H rows each, y_t[h] = x_t[h]·b + δℓ_{s(t)}[h]; V mixes hypotheses so that contrasts of
//! small variance count more.

mod certificate;
mod products;

pub(crate) use products::{LARGE, SharedProducts};

use super::cholesky::Cholesky;
use super::simplex::{self, Reduced};
use crate::progress;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use products::{Held, Products};
use std::cell::Cell;

/// Quantiles at which the first split of the residuals is tried.
const QUANTILES: [f64; 13] = [0.5, 0.3, 0.7, 0.1, 0.9, 0.2, 0.8, 0.4, 0.6, 0.05, 0.95, 0.02, 0.98];

/// Largest number of rounds of refitting and reassigning per start.
const ROUNDS: usize = 60;

/// Largest number of symbols.
const MOST_SYMBOLS: usize = 6;

/// Residual, relative to the first one, at which no other start is tried.
const SETTLED: f64 = 1e-6;

/// Smallest distance of clearly separated symbols, in root mean square distances to the own centre.
pub(crate) const CLEAR: f64 = 5.0;

/// Centred transitions shared by all listeners: x by speaker, ratio and step.
pub(crate) struct Transitions {
    /// (T−1)H × N, frame by frame; an agent's series is one column.
    pub(crate) x: Mat<f64>,
    /// The same for y.
    pub(crate) y: Mat<f64>,
    pub(crate) ratios: usize,
    /// Largest |Λ|: the scale of rounding errors.
    pub(crate) largest: f64,
}

/// Result for one listener.
#[derive(Debug, Clone)]
pub(crate) struct Split {
    /// The column times 1−δ, by position in the list of regressors.
    pub(crate) weights: Vec<f64>,
    /// Condition number of the design within symbols, by its pivots.
    pub(crate) condition: f64,
    /// Symbol at each transition.
    pub(crate) symbols: Vec<usize>,
    /// Mean residual of each symbol: δℓ_s, one per ratio, relative to centred data.
    pub(crate) centres: Vec<Vec<f64>>,
    /// Whether chance can be excluded.
    pub(crate) certified: bool,
    /// Whether all centres coincide to rounding: only one symbol ever occurred.
    pub(crate) single: bool,
    /// Smallest distance between two centres over the root mean square distance of a point to its own.
    pub(crate) separation: f64,
    /// The column on the simplex within these symbols, where they are clearly separated but not exact.
    pub(crate) constrained: Option<Vec<f64>>,
}

impl Split {
    /// How often each symbol occurred.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.centres.len()];
        self.symbols.iter().for_each(|&symbol| counts[symbol] += 1);
        counts
    }
}

/// Operations that wait for memory take about this many times as long as those of a matrix product.
const MEMORY_BOUND: f64 = 4.0;

/// One listener's problem: regressors it may hear, hypotheses mixed by V.
struct Problem<'a> {
    data: &'a Transitions,
    listener: usize,
    regressors: &'a [usize],
    products: Held<'a>,
    y: Vec<f64>,
    linear: Vec<f64>,
    /// 1−δ of the first fit.
    sum: f64,
    /// Operations so far.
    work: Cell<f64>,
}

impl Transitions {
    fn steps(&self) -> usize {
        self.x.nrows() / self.ratios
    }

    /// y − xᵀb of one listener, step by step, H numbers each.
    pub(crate) fn residuals(&self, listener: usize, regressors: &[usize], weights: &[f64]) -> Vec<f64> {
        let mut out = self.y.col_as_slice(listener).to_vec();
        for (&speaker, weight) in regressors.iter().zip(weights).filter(|(_, weight)| **weight != 0.0) {
            out.iter_mut().zip(self.x.col_as_slice(speaker)).for_each(|(out, x)| *out -= x * weight);
        }
        out
    }
}

/// Whether there are enough equations: fewer than unknowns fit any split.
pub(crate) fn enough(data: &Transitions, regressors: usize) -> bool {
    let (steps, ratios) = (data.steps(), data.ratios);
    regressors > 0 && steps >= 3 && steps * ratios >= regressors + 2 * ratios
}

/// Operations of the least search for one listener, about: its products, one round, and the weights within symbols.
pub(crate) fn least_work(data: &Transitions, regressors: usize, shared: bool) -> f64 {
    let (size, rows) = (regressors as f64, data.x.nrows() as f64);
    let products = if shared { 0.0 } else { rows * size * size };
    products + size.powi(3) / 3.0 + MEMORY_BOUND * rows * size
}

/// Searches for the symbols of one listener. Returns them with the number of operations, about.
///
/// `first` is its fit without symbols, `mix` the H × H matrix W^{1/2}, `sum` 1−δ.
pub(crate) fn split(
    data: &Transitions,
    listener: usize,
    regressors: &[usize],
    shared: Option<&SharedProducts>,
    first: &[f64],
    mix: &Mat<f64>,
    sum: f64,
) -> (Option<Split>, f64) {
    if !enough(data, regressors.len()) {
        return (None, 0.0);
    }
    let problem = Problem::new(data, listener, regressors, shared, mix, sum);
    let split = problem.search(first);
    (split, problem.work.get() + least_work(data, regressors.len(), shared.is_some()))
}

impl<'a> Problem<'a> {
    fn search(&self, first: &[f64]) -> Option<Split> {
        let (problem, data, steps, ratios) = (self, self.data, self.steps(), self.data.ratios);
        let raw = data.residuals(problem.listener, problem.regressors, first);
        let along = leading(&raw, ratios);
        let scale = rms(&problem.residuals(first));
        let mut best: Option<(f64, Vec<usize>)> = None;
        for quantile in QUANTILES {
            let symbols = divide(&along, &(0..steps).collect::<Vec<_>>(), quantile, vec![0; steps], 1);
            let Some((residual, symbols)) = problem.settle(symbols, 2, first) else { continue };
            if best.as_ref().is_none_or(|(least, _)| residual < *least) {
                best = Some((residual, symbols));
            }
            if best.as_ref().is_some_and(|(least, _)| *least < SETTLED * scale) {
                break;
            }
        }
        let (mut residual, mut symbols) = best?;
        let mut count = 2;
        // More than two symbols: split the loosest one further while that helps.
        while residual >= SETTLED * scale && count < MOST_SYMBOLS {
            let Some((finer, split)) = problem.finer(&symbols, count, first) else { break };
            if finer > 0.5 * residual {
                break;
            }
            (residual, symbols, count) = (finer, split, count + 1);
        }
        problem.polish(&symbols, &raw)
    }

    fn new(
        data: &'a Transitions,
        listener: usize,
        regressors: &'a [usize],
        shared: Option<&'a SharedProducts>,
        mix: &Mat<f64>,
        sum: f64,
    ) -> Self {
        let work = Cell::new(0.0);
        if let Some(SharedProducts(products)) = shared {
            let y = data.y.col_as_slice(listener).to_vec();
            let linear = times(&products.x, &y);
            return Problem { data, listener, regressors, products: Held::Shared(products), y, linear, sum, work };
        }
        let ratios = data.ratios;
        let mixed = |series: &[f64], row: usize| -> f64 {
            let (step, to) = (row / ratios, row % ratios);
            (0..ratios).map(|from| series[step * ratios + from] * mix[(from, to)]).sum()
        };
        let columns = data.x.nrows();
        let mut x = Mat::zeros(regressors.len(), columns);
        for (row, &speaker) in regressors.iter().enumerate() {
            let series = data.x.col_as_slice(speaker);
            (0..columns).for_each(|column| x[(row, column)] = mixed(series, column));
        }
        let y: Vec<f64> = (0..columns).map(|column| mixed(data.y.col_as_slice(listener), column)).collect();
        let gram = &x * x.transpose();
        let linear = times(&x, &y);
        let products = Held::Own(Products { x, gram, factor: None });
        Problem { data, listener, regressors, products, y, linear, sum, work }
    }

    fn steps(&self) -> usize {
        self.data.steps()
    }

    fn residuals(&self, weights: &[f64]) -> Vec<f64> {
        if self.products.factor.is_some() {
            // Not mixed: weights on the simplex are sparse, and few series are read.
            return self.data.residuals(self.listener, self.regressors, weights);
        }
        let mut heard = Mat::zeros(self.y.len(), 1);
        let weights = MatRef::from_column_major_slice(weights, weights.len(), 1);
        matmul(heard.as_mut(), Accum::Replace, self.products.x.transpose(), weights, 1.0, Par::Seq);
        self.y.iter().enumerate().map(|(column, y)| y - heard[(column, 0)]).collect()
    }

    /// Refits and reassigns until convergence, first on the simplex, then without constraint. Returns the residual left.
    fn settle(&self, mut symbols: Vec<usize>, count: usize, first: &[f64]) -> Option<(f64, Vec<usize>)> {
        let mut start = first.to_vec();
        let mut left = f64::INFINITY;
        for free in [false, true] {
            for _ in 0..ROUNDS {
                let weights = self.refit(&symbols, count, free, &start)?;
                let residuals = self.residuals(&weights);
                let (next, error) = self.reassign(&residuals, &symbols, count);
                left = error;
                start = weights;
                if next == symbols {
                    break;
                }
                symbols = next;
            }
        }
        left.is_finite().then_some((left, symbols))
    }

    /// Least squares with x and y centred within symbols: the total less the between-symbol part.
    fn refit(&self, symbols: &[usize], count: usize, free: bool, start: &[f64]) -> Option<Vec<f64>> {
        // After a request to stop; the caller checks for it.
        if progress::stopped() {
            return None;
        }
        let size = self.regressors.len();
        let (sums, targets) = self.between(symbols, count);
        let between = times(&sums, &targets);
        let linear: Vec<f64> = self.linear.iter().zip(&between).map(|(total, between)| total - between).collect();
        let gram = &self.products.gram;
        let (size, rows) = (size as f64, self.y.len() as f64);
        self.work.set(self.work.get() + MEMORY_BOUND * 2.0 * rows * size);
        if !free {
            return simplex::on_simplex(&Reduced { gram, removed: &sums }, &linear, self.sum, start);
        }
        if let Some(factor) = &self.products.factor {
            self.work.set(self.work.get() + MEMORY_BOUND * 4.0 * size * size);
            return solve_reduced(factor, &sums, &linear);
        }
        self.work.set(self.work.get() + size.powi(3) / 3.0);
        Some(simplex::solve(&simplex::factor(&(gram - &sums * sums.transpose()))?, &linear))
    }

    /// Sums of x and y over the steps of each symbol, divided by the roots of their numbers: what centring within symbols
    /// removes from the products.
    fn between(&self, symbols: &[usize], count: usize) -> (Mat<f64>, Vec<f64>) {
        let ratios = self.data.ratios;
        let mut sums = Mat::<f64>::zeros(self.regressors.len(), count * ratios);
        let mut targets = vec![0.0; count * ratios];
        let mut members = vec![0usize; count];
        for (step, &symbol) in symbols.iter().enumerate() {
            members[symbol] += 1;
            for ratio in 0..ratios {
                let column = step * ratios + ratio;
                let mut sum = sums.col_mut(symbol * ratios + ratio);
                sum += self.products.x.col(column);
                targets[symbol * ratios + ratio] += self.y[column];
            }
        }
        for (symbol, &members) in members.iter().enumerate() {
            let scale = 1.0 / (members.max(1) as f64).sqrt();
            for ratio in 0..ratios {
                let column = symbol * ratios + ratio;
                sums.col_mut(column).iter_mut().for_each(|value| *value *= scale);
                targets[column] *= scale;
            }
        }
        (sums, targets)
    }

    /// Assigns every step to the nearest hyperplane. Returns the root mean square distance.
    fn reassign(&self, residuals: &[f64], symbols: &[usize], count: usize) -> (Vec<usize>, f64) {
        let centres = centres(residuals, symbols, count, self.data.ratios);
        let mut error = 0.0;
        let nearest = residuals.chunks_exact(self.data.ratios).map(|row| {
            let distances = centres.iter().map(|centre| match centre {
                Some(centre) => row.iter().zip(centre).map(|(a, b)| (a - b).powi(2)).sum(),
                None => f64::INFINITY,
            });
            let (symbol, distance) =
                distances.enumerate().fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best });
            error += distance;
            symbol
        });
        let nearest: Vec<usize> = nearest.collect();
        (nearest, (error / self.steps() as f64).sqrt())
    }

    /// Splits the symbol with the largest spread in two, at several quantiles.
    fn finer(&self, symbols: &[usize], count: usize, first: &[f64]) -> Option<(f64, Vec<usize>)> {
        let weights = self.refit(symbols, count, true, first)?;
        let residuals = self.residuals(&weights);
        let centres = centres(&residuals, symbols, count, self.data.ratios);
        let spread = |symbol: usize| -> f64 {
            let rows = residuals.chunks_exact(self.data.ratios).zip(symbols).filter(|(_, other)| **other == symbol);
            rows.map(|(row, _)| match &centres[symbol] {
                Some(centre) => row.iter().zip(centre).map(|(a, b)| (a - b).powi(2)).sum::<f64>(),
                None => 0.0,
            })
            .sum()
        };
        let loosest = (0..count).max_by(|&a, &b| spread(a).total_cmp(&spread(b)))?;
        let members: Vec<usize> = (0..symbols.len()).filter(|&step| symbols[step] == loosest).collect();
        let along = leading(&residuals, self.data.ratios);
        let mut best: Option<(f64, Vec<usize>)> = None;
        for quantile in &QUANTILES[..5] {
            let started = divide(&along, &members, *quantile, symbols.to_vec(), count);
            let Some((residual, found)) = self.settle(started, count + 1, &weights) else { continue };
            if best.as_ref().is_none_or(|(least, _)| residual < *least) {
                best = Some((residual, found));
            }
        }
        best
    }
}

/// Solves (G − UUᵀ)b = c from the factor of G.
fn solve_reduced(factor: &Cholesky, removed: &Mat<f64>, linear: &[f64]) -> Option<Vec<f64>> {
    let (size, few) = (removed.nrows(), removed.ncols());
    let both =
        Mat::from_fn(size, few + 1, |row, column| if column < few { removed[(row, column)] } else { linear[row] });
    let solved = factor.solve(both);
    let along = removed.transpose() * &solved;
    // I − UᵀG⁻¹U is positive semi-definite: within symbols there is no more variation than in all.
    let inner = Mat::from_fn(few, few, |row, column| f64::from(row == column) - along[(row, column)]);
    let target: Vec<f64> = (0..few).map(|row| along[(row, few)]).collect();
    let shift = simplex::solve(&simplex::factor(&inner)?, &target);
    let value =
        |row: usize| solved[(row, few)] + (0..few).map(|place| solved[(row, place)] * shift[place]).sum::<f64>();
    Some((0..size).map(value).collect())
}

fn times(matrix: &Mat<f64>, vector: &[f64]) -> Vec<f64> {
    let mut out = Mat::zeros(matrix.nrows(), 1);
    let vector = MatRef::from_column_major_slice(vector, vector.len(), 1);
    matmul(out.as_mut(), Accum::Replace, matrix.as_ref(), vector, 1.0, Par::Seq);
    (0..matrix.nrows()).map(|row| out[(row, 0)]).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|value| value * value).sum::<f64>() / values.len().max(1) as f64).sqrt()
}

/// Mean row of each symbol; `None` for one that does not occur.
fn centres(rows: &[f64], symbols: &[usize], count: usize, ratios: usize) -> Vec<Option<Vec<f64>>> {
    let mut sums = vec![vec![0.0; ratios]; count];
    let mut members = vec![0usize; count];
    for (row, &symbol) in rows.chunks_exact(ratios).zip(symbols) {
        members[symbol] += 1;
        sums[symbol].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let mean = |(sum, members): (Vec<f64>, usize)| {
        (members > 0).then(|| sum.into_iter().map(|value| value / members as f64).collect())
    };
    sums.into_iter().zip(members).map(mean).collect()
}

/// Each row projected on the direction in which the rows vary most.
fn leading(rows: &[f64], ratios: usize) -> Vec<f64> {
    let all = vec![0; rows.len() / ratios];
    let mean = centres(rows, &all, 1, ratios).pop().flatten().unwrap_or_else(|| vec![0.0; ratios]);
    let centred = |row: &[f64]| -> Vec<f64> { row.iter().zip(&mean).map(|(value, mean)| value - mean).collect() };
    // Power iteration; a rough direction is enough for a split.
    let mut direction: Vec<f64> = (0..ratios).map(|ratio| 1.0 + 0.1 * ratio as f64).collect();
    for _ in 0..50 {
        let mut next = vec![0.0; ratios];
        for row in rows.chunks_exact(ratios) {
            let row = centred(row);
            let along: f64 = row.iter().zip(&direction).map(|(a, b)| a * b).sum();
            next.iter_mut().zip(&row).for_each(|(next, value)| *next += along * value);
        }
        let norm = next.iter().map(|value| value * value).sum::<f64>().sqrt();
        if norm == 0.0 {
            break;
        }
        direction = next.iter().map(|value| value / norm).collect();
    }
    rows.chunks_exact(ratios).map(|row| centred(row).iter().zip(&direction).map(|(a, b)| a * b).sum()).collect()
}

/// Gives the upper part of `members` along a direction a new symbol; both parts keep at least one.
fn divide(along: &[f64], members: &[usize], quantile: f64, mut symbols: Vec<usize>, new: usize) -> Vec<usize> {
    let mut order = members.to_vec();
    order.sort_by(|&a, &b| along[a].total_cmp(&along[b]));
    let cut = ((order.len() as f64 * quantile).round() as usize).clamp(1, order.len().max(2) - 1);
    order[cut.min(order.len())..].iter().for_each(|&step| symbols[step] = new);
    symbols
}
