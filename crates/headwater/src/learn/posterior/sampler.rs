//! Maximum, curvature and Hamiltonian Monte Carlo of a log-density of up to about a thousand variables.
//!
//! In: a [`Density`] and a start. Out: draws of several chains. The chains move in the coordinates in which the curvature at
//! the maximum is the identity; that metric is fixed before the first draw, so that the chains keep the density.

use super::target::{Density, Evaluation};
use crate::{Error, progress};
use faer::{Mat, Side};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Step lengths that a search along a line tries at once.
const LENGTHS: [f64; 16] = [4.0, 2.0, 1.5, 1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 1e-4];

/// Points that a step of the search evaluates.
pub(crate) const POINTS_OF_A_STEP: usize = LENGTHS.len();

/// Pairs of steps and changes of the gradient that the search remembers.
const MEMORY: usize = 30;

/// Share of the gain expected from the slope with which a whole step is taken without trying others.
const SUFFICIENT: f64 = 0.1;

/// A thorough search ends when it gains less than this.
const SMALLEST_GAIN: f64 = 1e-4;

/// Displacement of the finite differences of the gradient.
const DISPLACEMENT: f64 = 1e-4;

/// Smallest curvature in any direction; the variables are logarithms and log-odds, or about as large.
pub(crate) const SMALLEST_CURVATURE: f64 = 0.05;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// How long to search for a maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Search {
    pub(crate) steps: usize,
    /// The search ends when it gains less than this.
    pub(crate) smallest_gain: f64,
    /// Whether to try the whole step alone first: for densities that are costly to evaluate.
    pub(crate) frugal: bool,
}

impl Search {
    /// For densities that are evaluated at many points almost as fast as at one.
    pub(crate) fn thorough(steps: usize) -> Self {
        Search { steps, smallest_gain: SMALLEST_GAIN, frugal: false }
    }
}

/// A point of high density by the limited-memory BFGS method, with its evaluation. `scales` are typical changes of the
/// variables; `each` is called after every step.
pub(crate) fn maximise(
    density: &impl Density,
    start: Vec<f64>,
    scales: &impl Metric,
    fixed: &[usize],
    search: Search,
    each: &dyn Fn(),
) -> Result<(Vec<f64>, Evaluation), Error> {
    let mut point = start;
    let evaluate = |points: &[Vec<f64>]| -> Result<Vec<Evaluation>, Error> {
        let mut found = density.evaluate(points)?;
        for here in &mut found {
            fixed.iter().for_each(|&place| here.gradient[place] = 0.0);
        }
        Ok(found)
    };
    let mut here = evaluate(std::slice::from_ref(&point))?.swap_remove(0);
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for _ in 0..search.steps {
        progress::check()?;
        each();
        let mut direction = here.gradient.clone();
        let mut shares = Vec::new();
        for (moved, bent) in pairs.iter().rev() {
            let share = dot(moved, &direction) / dot(moved, bent);
            direction.iter_mut().zip(bent).for_each(|(to, bent)| *to -= share * bent);
            shares.push(share);
        }
        direction = scales.precondition(&direction);
        if pairs.is_empty() {
            let largest = direction.iter().zip(&here.gradient).map(|(a, b)| (a * b).abs()).fold(0.0f64, f64::max);
            let scale = 1.0 / largest.sqrt().max(1.0);
            direction.iter_mut().for_each(|value| *value *= scale);
        }
        for ((moved, bent), share) in pairs.iter().zip(shares.iter().rev()) {
            let back = dot(bent, &direction) / dot(moved, bent);
            direction.iter_mut().zip(moved).for_each(|(to, moved)| *to += (share - back) * moved);
        }
        fixed.iter().for_each(|&place| direction[place] = 0.0);
        let along = |lengths: &[f64]| -> Vec<Vec<f64>> {
            lengths
                .iter()
                .map(|length| point.iter().zip(&direction).map(|(at, by)| at + length * by).collect())
                .collect()
        };
        let mut tried = along(&[1.0]);
        let mut found = Vec::new();
        if search.frugal {
            found = evaluate(&tried)?;
        }
        let slope = dot(&direction, &here.gradient);
        if !found.iter().any(|found| found.value - here.value > SUFFICIENT * slope) {
            tried = along(&LENGTHS);
            found = evaluate(&tried)?;
        }
        let best = (0..found.len()).max_by(|&a, &b| found[a].value.total_cmp(&found[b].value)).unwrap_or(0);
        let gain = found[best].value - here.value;
        if gain.is_nan() || gain <= 0.0 {
            if pairs.is_empty() {
                break;
            }
            pairs.clear();
            continue;
        }
        let moved: Vec<f64> = tried[best].iter().zip(&point).map(|(a, b)| a - b).collect();
        let bent: Vec<f64> = here.gradient.iter().zip(&found[best].gradient).map(|(a, b)| a - b).collect();
        if dot(&moved, &bent) > 1e-12 * (dot(&moved, &moved) * dot(&bent, &bent)).sqrt() {
            pairs.push((moved, bent));
            if pairs.len() > MEMORY {
                pairs.remove(0);
            }
        }
        point.clone_from(&tried[best]);
        here = found[best].clone();
        if gain < search.smallest_gain {
            break;
        }
    }
    Ok((point, here))
}

/// Coordinates in which a density is about standard normal: θ = centre + S y.
pub(crate) trait Metric: Sync {
    /// The point with coordinates zero.
    fn centre(&self) -> &[f64];

    /// S y.
    fn spread(&self, y: &[f64]) -> Vec<f64>;

    /// Sᵀ g.
    fn pull(&self, gradient: &[f64]) -> Vec<f64>;

    /// Whether it takes coordinates that are mixed by a matrix.
    fn is_dense(&self) -> bool {
        false
    }

    /// Takes other coordinates of the same points.
    fn recoordinate(&mut self, change: &Change);

    /// S Sᵀ g.
    fn precondition(&self, gradient: &[f64]) -> Vec<f64> {
        self.spread(&self.pull(gradient))
    }

    /// The point with these coordinates.
    fn point(&self, y: &[f64]) -> Vec<f64> {
        self.spread(y).iter().zip(self.centre()).map(|(by, centre)| centre + by).collect()
    }

    /// The coordinates of a point.
    #[cfg(test)]
    fn coordinates(&self, point: &[f64]) -> Vec<f64> {
        use faer::linalg::solvers::Solve;
        let size = point.len();
        let unit = |place: usize| (0..size).map(|other| f64::from(u8::from(other == place))).collect::<Vec<f64>>();
        let columns: Vec<Vec<f64>> = (0..size).map(|place| self.spread(&unit(place))).collect();
        let root = Mat::from_fn(size, size, |row, column| columns[column][row]);
        let off = Mat::from_fn(size, 1, |row, _| point[row] - self.centre()[row]);
        root.partial_piv_lu().solve(&off).col_as_slice(0).to_vec()
    }
}

/// A [`Metric`] with a dense S.
#[derive(Debug, Clone)]
pub(crate) struct Scaling {
    pub(crate) centre: Vec<f64>,
    /// S: the inverse of the symmetric square root of the curvature in scaled variables, times their scales.
    pub(crate) root: Mat<f64>,
}

impl Scaling {
    /// Every variable by its own typical change.
    pub(crate) fn diagonal(centre: Vec<f64>, scales: &[f64]) -> Self {
        let root = Mat::from_fn(scales.len(), scales.len(), |a, b| if a == b { scales[a] } else { 0.0 });
        Scaling { centre, root }
    }

    /// From the curvature of a density at a point, by finite differences of its gradient; `scales` are typical changes of
    /// the variables.
    pub(crate) fn from_curvature(
        density: &impl Density,
        centre: Vec<f64>,
        scales: &[f64],
        each: &dyn Fn(),
    ) -> Result<Self, Error> {
        let size = density.size();
        let mut columns: Vec<Vec<f64>> = Vec::new();
        let places: Vec<usize> = (0..size).collect();
        for group in places.chunks(2 * super::lanes::LANES) {
            let mut points = Vec::new();
            for &place in group {
                for by in [-DISPLACEMENT, DISPLACEMENT] {
                    let mut point = centre.clone();
                    point[place] += by * scales[place];
                    points.push(point);
                }
            }
            let found = density.evaluate(&points)?;
            for (&place, pair) in group.iter().zip(found.chunks(2)) {
                let by = 2.0 * DISPLACEMENT * scales[place];
                columns.push(pair[0].gradient.iter().zip(&pair[1].gradient).map(|(a, b)| (a - b) / by).collect());
            }
            each();
        }
        let scaled = Mat::from_fn(size, size, |row, column| {
            0.5 * (columns[column][row] + columns[row][column]) * scales[row] * scales[column]
        });
        let decomposed = scaled.self_adjoint_eigen(Side::Lower).map_err(|_| Error::Undefined {
            what: "the posterior",
            reason: "the curvature at its maximum is not finite".into(),
        })?;
        let (vectors, values) = (decomposed.U(), decomposed.S());
        let narrowed = Mat::from_fn(size, size, |row, column| {
            vectors[(row, column)] / values[column].abs().max(SMALLEST_CURVATURE).sqrt()
        });
        // The symmetric root: densities of almost the same curvature get almost the same coordinates.
        let root = narrowed * vectors.transpose();
        let root = Mat::from_fn(size, size, |row, column| root[(row, column)] * scales[row]);
        Ok(Scaling { centre, root })
    }

    /// Variance of a variable under the normal approximation.
    pub(crate) fn variance(&self, place: usize) -> f64 {
        (0..self.root.ncols()).map(|column| self.root[(place, column)].powi(2)).sum()
    }
}

impl Metric for Scaling {
    fn centre(&self) -> &[f64] {
        &self.centre
    }

    fn spread(&self, y: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; y.len()];
        for (column, value) in y.iter().enumerate() {
            let column = self.root.col_as_slice(column);
            out.iter_mut().zip(column).for_each(|(out, entry)| *out += entry * value);
        }
        out
    }

    fn pull(&self, gradient: &[f64]) -> Vec<f64> {
        (0..gradient.len()).map(|column| dot(self.root.col_as_slice(column), gradient)).collect()
    }

    fn is_dense(&self) -> bool {
        true
    }

    fn recoordinate(&mut self, change: &Change) {
        match change {
            Change::Scales(scales) => {
                for (column, scale) in scales.iter().enumerate() {
                    self.root.col_as_slice_mut(column).iter_mut().for_each(|entry| *entry *= scale);
                }
            }
            Change::Dense(root) => self.root = &self.root * root,
        }
    }
}

/// Share of proposals that should be accepted.
const ACCEPTANCE: f64 = 0.8;

/// Length of a trajectory in the scaled coordinates, a quarter of a turn, and its relative spread.
const TURN: f64 = std::f64::consts::FRAC_PI_2;
const JITTER: (f64, f64) = (0.6, 1.3);

/// Most leapfrog steps of a trajectory.
const MOST_LEAPS: usize = 40;

/// Trajectories between two looks at how often the ends of guided ones are accepted, the share that is enough, and the fewest
/// and most corrections along a trajectory.
const SETTLING: usize = 10;
const ENOUGH_ACCEPTED: f64 = 0.65;
const CORRECTIONS: (usize, usize) = (2, 4);

/// Trajectories in which chains leave the density of a guide that is of no use, and adapt their step and metric.
const ADAPTING: usize = 60;

/// Draws that the expected variance one counts for beside measured ones, which are correlated.
const EXPECTED: f64 = 60.0;

/// Correlated draws that count as one for a covariance.
const CORRELATED: f64 = 4.0;

/// A linear change of coordinates: y = L·y′.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Diagonal.
    Scales(Vec<f64>),
    /// Lower triangular.
    Dense(Mat<f64>),
}

impl Change {
    /// y′ of y.
    fn apply(&self, y: &mut [f64]) {
        match self {
            Change::Scales(scales) => y.iter_mut().zip(scales).for_each(|(value, scale)| *value /= scale),
            Change::Dense(root) => {
                for row in 0..y.len() {
                    let before: f64 = (0..row).map(|column| root[(row, column)] * y[column]).sum();
                    y[row] = (y[row] - before) / root[(row, row)];
                }
            }
        }
    }
}

/// Sums of coordinates and of their products: all of them, or the squares.
#[derive(Debug, Clone)]
struct Moments {
    count: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
    products: Option<Mat<f64>>,
}

impl Moments {
    fn new(size: usize, dense: bool) -> Self {
        let products = dense.then(|| Mat::zeros(size, size));
        Moments { count: 0.0, sums: vec![0.0; size], squares: vec![0.0; size], products }
    }

    fn add(&mut self, position: &[f64]) {
        self.count += 1.0;
        self.sums.iter_mut().zip(position).for_each(|(sum, value)| *sum += value);
        self.squares.iter_mut().zip(position).for_each(|(sum, value)| *sum += value * value);
        if let Some(products) = &mut self.products {
            for (column, value) in position.iter().enumerate() {
                kick(products.col_as_slice_mut(column), *value, position);
            }
        }
    }

    /// What makes the covariance about one, drawn towards no change.
    fn change(&self) -> Change {
        let size = self.sums.len();
        let dense = self.products.as_ref().and_then(|products| {
            // A covariance of few draws is far off in many directions.
            let (draws, expected) = (self.count / CORRELATED, size as f64);
            let covariance = |row: usize, column: usize| {
                let found = (products[(row, column)] - self.sums[row] * self.sums[column] / self.count) / self.count;
                (draws * found + if row == column { expected } else { 0.0 }) / (draws + expected)
            };
            Mat::from_fn(size, size, covariance).llt(Side::Lower).ok().map(|found| found.L().to_owned())
        });
        match dense {
            Some(root) => Change::Dense(root),
            None => {
                let variance = |(sum, square): (&f64, &f64)| (square - sum * sum / self.count).max(0.0);
                let drawn = |pair| ((variance(pair) + EXPECTED) / (self.count + EXPECTED)).sqrt();
                Change::Scales(self.sums.iter().zip(&self.squares).map(drawn).collect())
            }
        }
    }
}

/// A density that is cheaper to evaluate than the one that is sampled and has almost the same shape in the coordinates of its
/// own metric. Its gradient drives the trajectories; a few times along each, the difference to the gradient of the sampled
/// density is made good (an integrator of two time scales, Tuckerman, Berne and Martyna 1992). The sampled density decides
/// whether the ends are accepted.
pub(crate) struct Guide<D, M> {
    pub(crate) density: D,
    pub(crate) metric: M,
}

/// The sampled density where a chain is, beside the guide.
#[derive(Debug, Clone, Default)]
struct Difference {
    /// Logarithm of the sampled density.
    value: f64,
    /// Its gradient minus that of the guide, in scaled coordinates.
    slopes: Vec<f64>,
}

/// Hamiltonian Monte Carlo: several chains side by side.
#[derive(Debug, Clone)]
pub(crate) struct Chains<M = Scaling> {
    pub(crate) metric: M,
    /// Positions in the scaled coordinates.
    positions: Vec<Vec<f64>>,
    /// Of the density whose gradient drives the trajectories.
    current: Vec<Evaluation>,
    /// How the sampled density differs from that of a guide, where one drives the trajectories.
    differences: Vec<Difference>,
    /// Times along a trajectory at which the difference is made good.
    pub(crate) corrections: usize,
    rngs: Vec<ChaCha8Rng>,
    common: ChaCha8Rng,
    /// Step of the leapfrog integrator, and the state of its adaptation (dual averaging).
    pub(crate) step: f64,
    averaged: f64,
    gap: f64,
    adapted: f64,
    centre: f64,
    pub(crate) accepted: f64,
    pub(crate) leaps: usize,
    measured: Option<Moments>,
}

impl<M: Metric> Chains<M> {
    /// Chains that start from a normal law about the centre of the scaling, `spread` times as wide as it.
    pub(crate) fn new(density: &impl Density, metric: M, chains: usize, spread: f64, seed: u64) -> Result<Self, Error> {
        let stream = |number: u64| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(number);
            rng
        };
        let mut rngs: Vec<ChaCha8Rng> = (0..chains as u64).map(|chain| stream(chain + 1)).collect();
        let size = density.size();
        let mut positions: Vec<Vec<f64>> =
            rngs.iter_mut().map(|rng| (0..size).map(|_| spread * normal(rng)).collect()).collect();
        let mut current = density.evaluate(&positions.iter().map(|y| metric.point(y)).collect::<Vec<_>>())?;
        // A start of density zero is drawn together with the centre.
        for _ in 0..20 {
            if current.iter().all(|here| here.value.is_finite()) {
                break;
            }
            for (position, here) in positions.iter_mut().zip(&current) {
                if !here.value.is_finite() {
                    position.iter_mut().for_each(|value| *value *= 0.7);
                }
            }
            current = density.evaluate(&positions.iter().map(|y| metric.point(y)).collect::<Vec<_>>())?;
        }
        let step = 1.0 / (size as f64).powf(0.25);
        Ok(Chains {
            metric,
            positions,
            current,
            differences: Vec::new(),
            corrections: CORRECTIONS.0,
            rngs,
            common: stream(0),
            step,
            averaged: 0.0,
            gap: 0.0,
            adapted: 0.0,
            centre: (2.0 * step).ln(),
            accepted: 0.0,
            leaps: 0,
            measured: None,
        })
    }

    /// The parameters of each chain.
    pub(crate) fn points(&self) -> Vec<Vec<f64>> {
        self.positions.iter().map(|y| self.metric.point(y)).collect()
    }

    /// Chains that moved under the density of a guide go on under the sampled one, with as many corrections of the guide as it
    /// takes for the ends of trajectories to be accepted; none where even the most do not suffice.
    pub(crate) fn guided<D: Density>(
        mut self,
        density: &D,
        guide: &Guide<D, M>,
        metric: M,
    ) -> Result<Option<Self>, Error> {
        self.metric = metric;
        self.differences = self.differences(density, guide, &self.positions, &self.current)?;
        self.corrections = CORRECTIONS.0;
        while self.corrections <= CORRECTIONS.1 {
            let mut accepted = 0.0;
            for _ in 0..SETTLING {
                self.advance(density, Some(guide), false)?;
                accepted += self.accepted / SETTLING as f64;
            }
            if accepted > ENOUGH_ACCEPTED {
                return Ok(Some(self));
            }
            self.corrections *= 2;
        }
        Ok(None)
    }

    /// Chains that moved under another density go on under the sampled one and adapt their step to it.
    pub(crate) fn unguided<D: Density>(mut self, density: &D, metric: M) -> Result<Self, Error> {
        self.metric = metric;
        self.current = density.evaluate(&self.points())?;
        (self.adapted, self.gap, self.averaged, self.centre) = (0.0, 0.0, 0.0, (2.0 * self.step).ln());
        for number in 0..ADAPTING {
            self.advance(density, None, true)?;
            if number + 1 == ADAPTING / 3 {
                self.begin_measuring();
            } else if number + 1 == 4 * ADAPTING / 5 {
                self.recoordinate();
            }
        }
        self.settle();
        Ok(self)
    }

    fn differences<D: Density>(
        &self,
        density: &D,
        guide: &Guide<D, M>,
        positions: &[Vec<f64>],
        guided: &[Evaluation],
    ) -> Result<Vec<Difference>, Error> {
        let points: Vec<Vec<f64>> = positions.iter().map(|y| self.metric.point(y)).collect();
        let sampled = density.evaluate(&points)?;
        let difference = |(sampled, guided): (&Evaluation, &Evaluation)| {
            let mut slopes = self.metric.pull(&sampled.gradient);
            slopes.iter_mut().zip(guide.metric.pull(&guided.gradient)).for_each(|(slope, guided)| *slope -= guided);
            Difference { value: sampled.value, slopes }
        };
        Ok(sampled.iter().zip(guided).map(difference).collect())
    }

    /// One trajectory of every chain, driven by the gradient of a guide or of the density itself. While adapting, the step
    /// follows the acceptance.
    pub(crate) fn advance<D: Density>(
        &mut self,
        density: &D,
        guide: Option<&Guide<D, M>>,
        adapt: bool,
    ) -> Result<(), Error> {
        let (driving, metric) = guide.map_or((density, &self.metric), |guide| (&guide.density, &guide.metric));
        let jitter = JITTER.0 + (JITTER.1 - JITTER.0) * self.common.random::<f64>();
        let step = self.step;
        let leaps = ((TURN * jitter / step).round() as usize).clamp(1, MOST_LEAPS);
        let parts = if guide.is_some() { self.corrections.min(leaps) } else { 1 };
        let leaps = leaps.div_ceil(parts);
        let size = density.size();
        let mut momenta: Vec<Vec<f64>> =
            self.rngs.iter_mut().map(|rng| (0..size).map(|_| normal(rng)).collect()).collect();
        let mut positions = self.positions.clone();
        let mut here = self.current.clone();
        let mut differences = self.differences.clone();
        let energy = |chain: usize, here: &[Evaluation], differences: &[Difference], momentum: &[f64]| {
            let value = differences.get(chain).map_or(here[chain].value, |difference| difference.value);
            value - 0.5 * dot(momentum, momentum)
        };
        let before: Vec<f64> =
            momenta.iter().enumerate().map(|(chain, momentum)| energy(chain, &here, &differences, momentum)).collect();
        // The differences of no guide are none.
        let make_good = |momenta: &mut [Vec<f64>], differences: &[Difference]| {
            for (momentum, difference) in momenta.iter_mut().zip(differences) {
                kick(momentum, 0.5 * step * leaps as f64, &difference.slopes);
            }
        };
        for _ in 0..parts {
            make_good(&mut momenta, &differences);
            for leap in 0..leaps {
                // Two half kicks between drifts are one whole.
                let length = if leap == 0 { 0.5 * step } else { step };
                let points: Vec<Vec<f64>> = (positions.par_iter_mut().zip(&mut momenta).zip(&here))
                    .map(|((position, momentum), here)| {
                        kick(momentum, length, &metric.pull(&here.gradient));
                        kick(position, step, momentum);
                        metric.point(position)
                    })
                    .collect();
                here = driving.evaluate(&points)?;
                self.leaps += 1;
            }
            for (momentum, here) in momenta.iter_mut().zip(&here) {
                kick(momentum, 0.5 * step, &metric.pull(&here.gradient));
            }
            if let Some(guide) = guide {
                differences = self.differences(density, guide, &positions, &here)?;
            }
            make_good(&mut momenta, &differences);
        }
        let mut mean = 0.0;
        for chain in 0..positions.len() {
            let after = energy(chain, &here, &differences, &momenta[chain]);
            let chance = if after.is_finite() { (after - before[chain]).min(0.0).exp() } else { 0.0 };
            mean += chance / positions.len() as f64;
            if self.rngs[chain].random::<f64>() < chance {
                self.positions[chain] = std::mem::take(&mut positions[chain]);
                self.current[chain] = std::mem::take(&mut here[chain]);
                if let Some(difference) = self.differences.get_mut(chain) {
                    *difference = std::mem::take(&mut differences[chain]);
                }
            }
        }
        if let Some(measured) = &mut self.measured {
            self.positions.iter().for_each(|position| measured.add(position));
        }
        self.accepted = mean;
        if adapt {
            self.adapt(mean);
        }
        Ok(())
    }

    /// Dual averaging (Hoffman and Gelman 2014).
    fn adapt(&mut self, acceptance: f64) {
        self.adapted += 1.0;
        let weight = 1.0 / (self.adapted + 10.0);
        self.gap += weight * (ACCEPTANCE - acceptance - self.gap);
        let log_step = self.centre - self.adapted.sqrt() / 0.05 * self.gap;
        let forget = self.adapted.powf(-0.75);
        self.averaged += forget * (log_step - self.averaged);
        self.step = log_step.exp().clamp(1e-3, 2.0);
    }

    /// From now on the covariance of the coordinates is measured.
    pub(crate) fn begin_measuring(&mut self) {
        self.measured = Some(Moments::new(self.positions[0].len(), self.metric.is_dense()));
    }

    /// Gives the coordinates about unit covariance; ends the measurement. Returns the change.
    pub(crate) fn recoordinate(&mut self) -> Option<Change> {
        let change = self.measured.take()?.change();
        self.metric.recoordinate(&change);
        self.positions.par_iter_mut().for_each(|position| change.apply(position));
        Some(change)
    }

    /// Ends the adaptation: the step is its average from now on.
    pub(crate) fn settle(&mut self) {
        if self.adapted > 0.0 {
            self.step = self.averaged.exp().clamp(1e-3, 2.0);
        }
    }
}

#[cfg(test)]
impl<M: Metric> Chains<M> {
    /// Continues the first chain from a point under another density and another guide.
    pub(crate) fn restart<D: Density>(
        &mut self,
        density: &D,
        guide: Option<&Guide<D, M>>,
        point: &[f64],
    ) -> Result<(), Error> {
        self.positions = vec![self.metric.coordinates(point)];
        let (driving, metric) = guide.map_or((density, &self.metric), |guide| (&guide.density, &guide.metric));
        self.current = driving.evaluate(&[metric.point(&self.positions[0])])?;
        self.differences = match guide {
            Some(guide) => self.differences(density, guide, &self.positions, &self.current)?,
            None => Vec::new(),
        };
        Ok(())
    }
}

fn kick(of: &mut [f64], length: f64, along: &[f64]) {
    of.iter_mut().zip(along).for_each(|(value, slope)| *value += length * slope);
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}
