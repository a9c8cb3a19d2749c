//! The regression of one listener on its speakers by feasible generalised least squares.
//!
//! In: [`ListenerMoments`]. Out: a [`Fit`], unconstrained or on the simplex, and its [`Standing`]: whether noise-free
//! contrasts determine it. Only second moments are used, not the frames.
//!
//! Legend: S, C the moments; W = Σ⁻¹ the weights of the listener's hypotheses; `G = Σ W[h,g]S[h,g]`, c likewise;
//! b = G⁻¹c estimates (1−δ) times its column.

use super::moments::Moments;
use super::regressors::{ListenerMoments, Regressors};
use super::simplex::{self, Quadratic};
use super::whitened::WhitenedParams;
use crate::model::Status;
use crate::{Error, progress};
use faer::linalg::solvers::Llt;
use faer::prelude::Solve;
use faer::{Mat, MatRef, Side};
use rayon::prelude::*;

/// Range of δ̂.
pub(crate) const ADAPTATION: std::ops::RangeInclusive<f64> = 1e-4..=0.99;

/// Ridge of the first round, which weights all hypotheses equally, relative to the mean diagonal.
const FIRST_RIDGE: f64 = 1e-6;

/// Rounds of reweighting during the constrained refit.
const REFITS: usize = 3;

/// Floor of the eigenvalues of a residual covariance, relative to its largest.
const QUIET: f64 = 1e-10;

/// The same relative to the variance of the response: rounding errors of the moments.
const ROUNDING: f64 = 1e-15;

/// Eigenvalues of a residual covariance above this share of the largest make its rank.
const RANK: f64 = 1e-8;

/// Smallest relative eigenvalue of noise-free information that identifies a column.
const IDENTIFIED: f64 = 1e-11;

/// Ratio of the largest to the smallest weight of hypotheses in the search for symbols.
const MIX: f64 = 1e8;

/// Listeners solved for between two checks for a request to stop.
const LISTENERS_AT_ONCE: usize = 512;

/// The fit of one listener.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    /// (1−δ) times the column, by position in the regressors.
    pub(crate) weights: Vec<f64>,
    /// Residual covariance, H × H.
    pub(crate) covariance: Mat<f64>,
    /// 1ᵀb and its precision 1/(1ᵀG⁻¹1).
    pub(crate) vote: (f64, f64),
}

/// The unconstrained fits of all listeners.
pub(crate) fn fits(design: &Regressors<'_>, params: &WhitenedParams) -> Result<Vec<Fit>, Error> {
    progress::check()?;
    match design.shared() {
        Some(_) if design.listeners.is_empty() => Ok(Vec::new()),
        Some(_) => single_ratio(design, params),
        None => {
            design.each_watched("fitting listeners", |position| reweighted(&design.listener_moments(position), params))
        }
    }
}

/// G_k and c_k for given weights of the hypotheses.
pub(crate) fn normal(listener_moments: &ListenerMoments<'_>, weights: &Mat<f64>) -> (Mat<f64>, Vec<f64>) {
    let ListenerMoments { moments, listener, regressors } = listener_moments;
    let (agents, ratios, size) = (moments.agents(), moments.ratios(), regressors.len());
    let mut gram = Mat::<f64>::zeros(size, size);
    let mut linear = vec![0.0; size];
    for g in 0..ratios {
        for (position, &speaker) in regressors.iter().enumerate() {
            let column = moments.xx_column(g * agents + speaker);
            // Below the diagonal only: these sums read all moments once a listener and round, which is what takes the time.
            let out = &mut gram.col_as_slice_mut(position)[position..];
            for h in 0..ratios {
                let (weight, block) = (weights[(h, g)], &column[h * agents..(h + 1) * agents]);
                for (out, &row) in out.iter_mut().zip(&regressors[position..]) {
                    *out += weight * block[row];
                }
            }
        }
        let column = moments.xy_column(g * agents + listener);
        for h in 0..ratios {
            let (weight, block) = (weights[(h, g)], &column[h * agents..(h + 1) * agents]);
            linear.iter_mut().zip(regressors.iter()).for_each(|(out, &row)| *out += weight * block[row]);
        }
    }
    for column in 1..size {
        for row in 0..column {
            gram[(row, column)] = gram[(column, row)];
        }
    }
    (gram, linear)
}

/// Residual covariance of a listener, from the moments.
pub(crate) fn covariance(listener_moments: &ListenerMoments<'_>, weights: &[f64]) -> Mat<f64> {
    let ListenerMoments { moments, listener, regressors } = listener_moments;
    let (agents, ratios) = (moments.agents(), moments.ratios());
    // For each pair of ratios h ≥ g: S b, then bᵀS b; and bᵀC.
    let heard: Vec<Vec<f64>> = (0..ratios)
        .map(|g| {
            let mut sums = vec![0.0; (ratios - g) * agents];
            for (&speaker, weight) in regressors.iter().zip(weights).filter(|(_, weight)| **weight != 0.0) {
                let column = &moments.xx_column(g * agents + speaker)[g * agents..];
                sums.iter_mut().zip(column).for_each(|(sum, value)| *sum += weight * value);
            }
            sums
        })
        .collect();
    let along = |values: &[f64]| -> f64 {
        regressors.iter().zip(weights).map(|(&speaker, weight)| weight * values[speaker]).sum()
    };
    let crossed = |h: usize, g: usize| along(&moments.xy_column(g * agents + listener)[h * agents..]);
    Mat::from_fn(ratios, ratios, |row, column| {
        let (h, g) = (row.max(column), row.min(column));
        let squares = along(&heard[g][(h - g) * agents..]);
        (moments.yy(*listener)[h * ratios + g] - crossed(h, g) - crossed(g, h) + squares) / moments.freedom()
    })
}

/// Σ⁻¹ with the eigenvalues of Σ floored.
pub(crate) fn inverse(listener_moments: &ListenerMoments<'_>, covariance: &Mat<f64>) -> Mat<f64> {
    let ListenerMoments { moments, listener, .. } = listener_moments;
    let ratios = moments.ratios();
    let explained: f64 = (0..ratios).map(|h| moments.yy(*listener)[h * ratios + h]).sum::<f64>() / moments.freedom();
    powered(covariance, |value, largest| 1.0 / value.max(QUIET * largest).max(ROUNDING * explained))
}

/// Σ^{−1/2} with its condition capped, scaled so that the quietest contrast has weight one.
pub(crate) fn mixing(covariance: &Mat<f64>) -> Mat<f64> {
    powered(covariance, |value, largest| 1.0 / (value / largest).max(1.0 / MIX).sqrt())
}

/// A function of a symmetric matrix: of each eigenvalue and the largest one.
pub(crate) fn powered(matrix: &Mat<f64>, function: impl Fn(f64, f64) -> f64) -> Mat<f64> {
    let size = matrix.nrows();
    let Some((values, vectors)) = eigen(matrix) else { return Mat::identity(size, size) };
    let largest = values[size - 1].max(f64::MIN_POSITIVE);
    let scaled = Mat::from_fn(size, size, |row, column| vectors[(row, column)] * function(values[column], largest));
    scaled * vectors.transpose()
}

/// Eigenvalues, ascending, and eigenvectors of a symmetric matrix.
pub(crate) fn eigen(matrix: &Mat<f64>) -> Option<(Vec<f64>, Mat<f64>)> {
    let found = matrix.self_adjoint_eigen(Side::Lower).ok()?;
    let values = found.S().column_vector();
    Some(((0..matrix.nrows()).map(|index| values[index]).collect(), found.U().to_owned()))
}

/// G_k of a single log-ratio up to its scale, read from the moments column by column, with a ridge.
struct SingleRatio<'a> {
    moments: &'a Moments,
    regressors: &'a [usize],
    ridge: f64,
}

impl<'a> SingleRatio<'a> {
    /// With a ridge relative to the mean diagonal.
    fn new(listener_moments: &'a ListenerMoments<'_>, ridge: f64) -> Self {
        let ListenerMoments { moments, regressors, .. } = listener_moments;
        let trace: f64 = regressors.iter().map(|&speaker| moments.xx(speaker, speaker)).sum();
        SingleRatio { moments, regressors, ridge: ridge * trace / regressors.len().max(1) as f64 }
    }
}

impl Quadratic for SingleRatio<'_> {
    fn diagonal(&self, index: usize) -> f64 {
        self.moments.xx(self.regressors[index], self.regressors[index]) + self.ridge
    }

    fn column(&self, index: usize) -> Vec<f64> {
        let whole = self.moments.xx_column(self.regressors[index]);
        let mut column: Vec<f64> = self.regressors.iter().map(|&row| whole[row]).collect();
        column[index] += self.ridge;
        column
    }
}

/// Adds a ridge relative to the mean diagonal.
pub(crate) fn lift(gram: &mut Mat<f64>, ridge: f64) {
    let size = gram.nrows();
    let mean = (0..size).map(|index| gram[(index, index)]).sum::<f64>() / size as f64;
    (0..size).for_each(|index| gram[(index, index)] += ridge * mean);
}

/// H = 1: all G_k are multiples of one matrix, so one factorisation serves every listener.
fn single_ratio(design: &Regressors<'_>, params: &WhitenedParams) -> Result<Vec<Fit>, Error> {
    let first = design.listener_moments(0);
    let (moments, regressors) = (&first.moments, &first.regressors);
    let (mut gram, _) = normal(&first, &Mat::identity(1, 1));
    lift(&mut gram, params.ridge.max(1e-14));
    let (size, listeners) = (regressors.len(), &design.listeners);
    let factored = simplex::factor(&gram);
    let targets = Mat::from_fn(size, listeners.len(), |row, column| moments.xy(regressors[row], listeners[column]));
    let mut solved = None;
    if let Some(llt) = &factored {
        let mut weights = targets.clone();
        for first in (0..listeners.len()).step_by(LISTENERS_AT_ONCE) {
            progress::check()?;
            let count = LISTENERS_AT_ONCE.min(listeners.len() - first);
            llt.solve_in_place(weights.as_mut().subcols_mut(first, count));
        }
        solved = Some(weights);
    }
    // The ridge that was added, on the diagonal.
    let lifted = gram[(0, 0)] - moments.xx(regressors[0], regressors[0]);
    let precision = factored.as_ref().map_or(0.0, |llt| simplex::solve(llt, &vec![1.0; size]).iter().sum::<f64>());
    let fits = (listeners.par_iter().enumerate())
        .map(|(position, &listener)| {
            let weights: Vec<f64> = match &solved {
                Some(solved) => solved.col_as_slice(position).to_vec(),
                None => vec![0.0; size],
            };
            // yᵀy − 2bᵀc + bᵀGb, where (G + ridge)b = c.
            let crossed = |values: &[f64]| weights.iter().zip(values).map(|(a, b)| a * b).sum::<f64>();
            let explained = if solved.is_some() { crossed(targets.col_as_slice(position)) } else { 0.0 };
            let left = (moments.yy(listener)[0] - explained - lifted * crossed(&weights)) / moments.freedom();
            let residual = Mat::from_fn(1, 1, |_, _| left);
            let noise = left.max(f64::MIN_POSITIVE);
            Fit { vote: (weights.iter().sum(), 1.0 / (noise * precision)), weights, covariance: residual }
        })
        .collect();
    Ok(fits)
}

/// Feasible generalised least squares of one listener.
fn reweighted(listener_moments: &ListenerMoments<'_>, params: &WhitenedParams) -> Fit {
    let (ratios, size) = (listener_moments.moments.ratios(), listener_moments.regressors.len());
    let mut weights_of = Mat::<f64>::identity(ratios, ratios);
    let nothing = vec![0.0; size];
    let covariance_of = covariance(listener_moments, &nothing);
    let mut fit = Fit { weights: nothing, covariance: covariance_of, vote: (0.0, 0.0) };
    for round in 0..params.rounds {
        if progress::stopped() {
            break;
        }
        let (mut gram, linear) = normal(listener_moments, &weights_of);
        lift(&mut gram, if round == 0 { FIRST_RIDGE.max(params.ridge) } else { params.ridge });
        let Some(llt) = simplex::factor(&gram) else { break };
        let weights = simplex::solve(&llt, &linear);
        let ones: f64 = simplex::solve(&llt, &vec![1.0; size]).iter().sum();
        let moved = weights.iter().zip(&fit.weights).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
        let covariance = covariance(listener_moments, &weights);
        weights_of = inverse(listener_moments, &covariance);
        fit = Fit { vote: (weights.iter().sum(), 1.0 / ones), weights, covariance };
        if moved < 1e-13 {
            break;
        }
    }
    fit
}

/// The fit under b ≥ 0, 1ᵀb = sum, reweighted a few times. `None` when G is singular.
pub(crate) fn constrained(
    listener_moments: &ListenerMoments<'_>,
    fit: &Fit,
    sum: f64,
    params: &WhitenedParams,
) -> Option<Fit> {
    let mut fit = fit.clone();
    if listener_moments.moments.ratios() == 1 {
        // One ratio has one weight, which changes nothing.
        let ListenerMoments { moments, listener, regressors } = listener_moments;
        let gram = SingleRatio::new(listener_moments, params.ridge.max(1e-14));
        let column = moments.xy_column(*listener);
        let linear: Vec<f64> = regressors.iter().map(|&speaker| column[speaker]).collect();
        let weights = simplex::on_simplex(&gram, &linear, sum, &fit.weights)?;
        let covariance = covariance(listener_moments, &weights);
        return Some(Fit { weights, covariance, ..fit });
    }
    for _ in 0..REFITS {
        let weights_of = inverse(listener_moments, &fit.covariance);
        let (mut gram, linear) = normal(listener_moments, &weights_of);
        lift(&mut gram, params.ridge.max(1e-14));
        let weights = simplex::on_simplex(&gram, &linear, sum, &fit.weights)?;
        let covariance = covariance(listener_moments, &weights);
        fit = Fit { weights, covariance, ..fit };
    }
    Some(fit)
}

/// 1 minus the weighted median of the column sums.
pub(crate) fn voted(votes: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut votes: Vec<(f64, f64)> = votes.filter(|(sum, weight)| sum.is_finite() && *weight > 0.0).collect();
    votes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = votes.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut passed = 0.0;
    for (sum, weight) in &votes {
        passed += weight;
        if passed >= half {
            return (1.0 - sum).clamp(*ADAPTATION.start(), *ADAPTATION.end());
        }
    }
    *ADAPTATION.start()
}

pub(crate) fn spread(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().fold(f64::MIN, f64::max) - values.fold(f64::MAX, f64::min)
}

/// What the noise-free contrasts of one listener determine.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) status: Status,
    /// Rank of the residual covariance.
    pub(crate) rank: usize,
    /// Positions of the regressors that the noise-free contrasts do not tell apart.
    pub(crate) confounded: Vec<usize>,
}

/// Whether other weights leave the noise-free contrasts as small as the fit does.
pub(crate) fn as_quiet(listener_moments: &ListenerMoments<'_>, fit: &Fit, rank: usize, weights: &[f64]) -> bool {
    let (ratios, other) = (fit.covariance.nrows(), covariance(listener_moments, weights));
    let Some((values, vectors)) = eigen(&fit.covariance) else { return true };
    let explained: f64 =
        (0..ratios).map(|h| listener_moments.moments.yy(listener_moments.listener)[h * ratios + h]).sum();
    let rounding = 10.0 * ROUNDING * explained / listener_moments.moments.freedom();
    (0..ratios - rank.min(ratios)).all(|index| {
        let v = vectors.col(index);
        v.transpose() * &other * v <= 4.0 * values[index].max(0.0) + rounding
    })
}

/// Scaled to unit diagonal, so that agents of different variance are comparable.
fn unit_diagonal(gram: &Mat<f64>) -> Mat<f64> {
    let size = gram.nrows();
    let scale: Vec<f64> = (0..size).map(|index| gram[(index, index)].max(f64::MIN_POSITIVE).sqrt()).collect();
    Mat::from_fn(size, size, |row, column| gram[(row, column)] / (scale[row] * scale[column]))
}

/// Steps of an iteration for an extreme eigenvalue, whose order of magnitude is enough.
const ITERATIONS: usize = 8;

/// By repeated application of a map: the factor by which it stretches in the end.
fn stretch(size: usize, map: impl Fn(&[f64]) -> Vec<f64>) -> f64 {
    let norm = |v: &[f64]| v.iter().map(|value| value * value).sum::<f64>().sqrt();
    let mut v: Vec<f64> = (0..size).map(|index| 1.0 + (index as f64 * 0.618).fract()).collect();
    let mut factor = 0.0;
    for _ in 0..ITERATIONS {
        let length = norm(&v);
        v.iter_mut().for_each(|value| *value /= length);
        v = map(&v);
        factor = norm(&v);
    }
    factor
}

/// By inverse iteration; `None` when the matrix is not definite.
fn smallest_eigenvalue(matrix: &Mat<f64>) -> Option<f64> {
    let llt = matrix.llt(Side::Lower).ok()?;
    Some(1.0 / stretch(matrix.nrows(), |v| simplex::solve(&llt, v)))
}

/// Condition number of an information matrix scaled to unit diagonal, from its factor.
pub(crate) fn condition(gram: &Mat<f64>, llt: &Llt<f64>) -> Option<f64> {
    let size = gram.nrows();
    let scale: Vec<f64> = (0..size).map(|index| gram[(index, index)].max(f64::MIN_POSITIVE).sqrt()).collect();
    let times = |v: &[f64]| -> Vec<f64> { v.iter().zip(&scale).map(|(v, scale)| v * scale).collect() };
    let over = |v: &[f64]| -> Vec<f64> { v.iter().zip(&scale).map(|(v, scale)| v / scale).collect() };
    let product = |v: &[f64]| {
        let out = gram * MatRef::from_column_major_slice(&over(v), size, 1);
        over(out.col_as_slice(0))
    };
    let inverse = |v: &[f64]| times(&simplex::solve(llt, &times(v)));
    Some(stretch(size, product) * stretch(size, inverse)).filter(|condition| condition.is_finite())
}

/// Largest number of regressors for which confounded ones are determined.
const NAMED: usize = 300;

/// Whether noise-free contrasts determine the column.
pub(crate) fn standing<'a>(listener_moments: impl FnOnce() -> ListenerMoments<'a>, fit: &Fit) -> Standing {
    let ratios = fit.covariance.nrows();
    let statistical = |rank| Standing { status: Status::Statistical, rank, confounded: Vec::new() };
    let Some((values, vectors)) = eigen(&fit.covariance) else { return statistical(ratios) };
    let rank = values.iter().filter(|value| **value > RANK * values[ratios - 1]).count();
    if rank == ratios {
        return statistical(rank);
    }
    let quiet = vectors.subcols(0, ratios - rank);
    let listener_moments = listener_moments();
    // As many equations as unknowns are free of noise whatever the weights.
    if (listener_moments.moments.freedom() - 1.0) * (ratios - rank) as f64 <= listener_moments.regressors.len() as f64 {
        return statistical(rank);
    }
    let (gram, _) = normal(&listener_moments, &(quiet * quiet.transpose()));
    let size = listener_moments.regressors.len();
    let scaled = unit_diagonal(&gram);
    if smallest_eigenvalue(&scaled).is_some_and(|smallest| smallest > IDENTIFIED * size as f64) {
        return Standing { status: Status::Identified, rank, confounded: Vec::new() };
    }
    let mut standing = statistical(rank);
    if let Some((_, vectors)) = (size <= NAMED).then(|| eigen(&scaled)).flatten() {
        let component = |row: usize| vectors[(row, 0)].abs();
        let largest = (0..size).map(component).fold(0.0, f64::max);
        standing.confounded = (0..size).filter(|&row| component(row) > 0.3 * largest).collect();
    }
    standing
}
