//! Symbols: when private observations come from a finite alphabet, a listener's points lie on a few parallel hyperplanes.
//!
//! In: the frames, a listener, a first fit and the weights of its hypotheses. Out: which symbol was seen at each step,
//! the exact column, and whether it can be certified: an agreement to rounding error that chance does not explain.
//!
//! Legend: T−1 transitions of H rows each, y_t[h] = x_t[h]·b + δℓ_{s(t)}[h]; V mixes hypotheses so that contrasts of
//! small variance count more.

use super::simplex;
use crate::progress;
use faer::linalg::solvers::ColPivQr;
use faer::prelude::SolveLstsq;
use faer::{Mat, MatRef, Side};

/// Quantiles at which the first split of the residuals is tried.
const QUANTILES: [f64; 13] = [0.5, 0.3, 0.7, 0.1, 0.9, 0.2, 0.8, 0.4, 0.6, 0.05, 0.95, 0.02, 0.98];

/// Largest number of rounds of refitting and reassigning per start.
const ROUNDS: usize = 60;

/// Largest number of symbols.
const MOST_SYMBOLS: usize = 6;

/// Residual, relative to the first one, at which no other start is tried.
const SETTLED: f64 = 1e-6;

/// Largest residual of a certified column, in rounding errors of the largest log-belief.
const ROUNDINGS: f64 = 64.0;

/// Smallest pivot of a design of full rank, relative to the largest.
const FULL_RANK: f64 = 1e-9;

/// Smallest distance of clearly separated symbols, in root mean square distances to the own centre.
pub(crate) const CLEAR: f64 = 5.0;

/// Decimal digits by which a certificate must exceed chance.
const DIGITS: f64 = 20.0;

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

/// One listener's problem: regressors it may hear, hypotheses mixed by V.
struct Problem<'a> {
    data: &'a Transitions,
    listener: usize,
    regressors: &'a [usize],
    /// Mixed x, n × (T−1)H.
    x: Mat<f64>,
    y: Vec<f64>,
    gram: Mat<f64>,
    linear: Vec<f64>,
    /// 1−δ of the first fit.
    sum: f64,
}

impl Transitions {
    fn steps(&self) -> usize {
        self.x.nrows() / self.ratios
    }

    /// y − xᵀb of one listener, step by step, H numbers each.
    pub(crate) fn residuals(&self, listener: usize, regressors: &[usize], weights: &[f64]) -> Vec<f64> {
        let mut out = self.y.col_as_slice(listener).to_vec();
        for (&speaker, weight) in regressors.iter().zip(weights) {
            out.iter_mut().zip(self.x.col_as_slice(speaker)).for_each(|(out, x)| *out -= x * weight);
        }
        out
    }
}

/// Searches for the symbols of one listener.
///
/// `first` is its fit without symbols, `mix` the H × H matrix W^{1/2}, `sum` 1−δ.
pub(crate) fn split(
    data: &Transitions,
    listener: usize,
    regressors: &[usize],
    first: &[f64],
    mix: &Mat<f64>,
    sum: f64,
) -> Option<Split> {
    let (steps, ratios) = (data.steps(), data.ratios);
    let size = regressors.len();
    // Fewer equations than unknowns fit any split.
    if size == 0 || steps < 3 || steps * ratios < size + 2 * ratios {
        return None;
    }
    let problem = Problem::new(data, listener, regressors, mix, sum);

    let raw = data.residuals(listener, regressors, first);
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

impl<'a> Problem<'a> {
    fn new(data: &'a Transitions, listener: usize, regressors: &'a [usize], mix: &Mat<f64>, sum: f64) -> Self {
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
        Problem { data, listener, regressors, x, y, gram, linear, sum }
    }

    fn steps(&self) -> usize {
        self.data.steps()
    }

    fn residuals(&self, weights: &[f64]) -> Vec<f64> {
        let heard = self.x.transpose() * MatRef::from_column_major_slice(weights, weights.len(), 1);
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
        let ratios = self.data.ratios;
        let size = self.regressors.len();
        let mut sums = Mat::<f64>::zeros(size, count * ratios);
        let mut targets = vec![0.0; count * ratios];
        let mut members = vec![0usize; count];
        for (step, &symbol) in symbols.iter().enumerate() {
            members[symbol] += 1;
            for ratio in 0..ratios {
                let column = step * ratios + ratio;
                let mut sum = sums.col_mut(symbol * ratios + ratio);
                sum += self.x.col(column);
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
        let gram = &self.gram - &sums * sums.transpose();
        let between = times(&sums, &targets);
        let linear: Vec<f64> = self.linear.iter().zip(&between).map(|(total, between)| total - between).collect();
        if free {
            return Some(simplex::solve(&simplex::factor(&gram)?, &linear));
        }
        simplex::on_simplex(&gram, &linear, self.sum, start)
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

    /// Root mean square of the regressors along each of H directions of the hypotheses. Agents with the same observation
    /// model move along fewer directions than there are hypotheses; along the others the equations carry no information.
    fn scales(&self) -> Vec<f64> {
        let (data, ratios) = (self.data, self.data.ratios);
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

    /// Unweighted least squares within the symbols found, and the certificate.
    fn polish(&self, symbols: &[usize], first_residuals: &[f64]) -> Option<Split> {
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
        let raw_y: Vec<f64> = (0..rows).map(|column| data.y[(column, self.listener)]).collect();
        let y_centres = centres(&raw_y, &symbols, count, ratios);
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
        let full_rank = condition < 1.0 / FULL_RANK;
        let solution = qr.solve_lstsq(&target);
        let weights: Vec<f64> = (0..size).map(|row| solution[(row, 0)]).collect();
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
            let plain = Problem::new(data, self.listener, self.regressors, &Mat::identity(ratios, ratios), self.sum);
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

fn times(matrix: &Mat<f64>, vector: &[f64]) -> Vec<f64> {
    let out = matrix * MatRef::from_column_major_slice(vector, vector.len(), 1);
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
