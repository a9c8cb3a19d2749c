//! A metric for the chains of large networks.
//!
//! The curvature of the posterior is taken as an arrow: a diagonal for strengths, deviations and news, a sparse operator for
//! levels, and a few common parameters (δ, noise, means) that are coupled with everything. With H = [D C; Cᵀ G] and
//! D = T⁻ᵀT⁻¹, S = H^{-½} is applied at the cost of a few passes over the edges.
//!
//! Levels are correlated through the network; their drifts (I − Bᵀ)μ hardly are. So T = (I − B₀ᵀ)⁻¹·diag(spreads), with B₀
//! the weights at the centre and the inverse as a series that ends with its slowest direction.

use super::marginal::Support;
use super::sampler::{Change, Metric, SMALLEST_CURVATURE};
use crate::Error;
use faer::{Mat, Side};
use std::ops::Range;

/// Terms of the series before the rest is taken for its slowest direction.
const TERMS: usize = 8;

/// See the head of the file.
#[derive(Debug, Clone)]
pub(crate) struct ArrowMetric {
    centre: Vec<f64>,
    support: Support,
    /// B₀ by edge, and the sum of the weights of a listener.
    weights: Vec<f64>,
    keep: f64,
    /// Where the levels of all episodes are.
    levels: Range<usize>,
    /// Of each variable; of the drift where the variable is a level.
    spreads: Vec<f64>,
    commons: Vec<usize>,
    /// TᵀC, a vector for each common parameter, zero at the common parameters.
    coupling: Vec<Vec<f64>>,
    /// R⁻ᵀ, where R Rᵀ = G − CᵀD⁻¹C.
    root: Mat<f64>,
    /// Corrections of the scale of each coordinate.
    factors: Vec<f64>,
}

/// The weights that a metric is built about.
pub(crate) struct Centre {
    pub(crate) point: Vec<f64>,
    pub(crate) weights: Vec<f64>,
    pub(crate) keep: f64,
}

impl ArrowMetric {
    /// Without coupling: every variable by its own spread.
    pub(crate) fn uncoupled(
        support: &Support,
        centre: Centre,
        levels: Range<usize>,
        spreads: Vec<f64>,
        commons: Vec<usize>,
    ) -> Self {
        let (size, count) = (spreads.len(), commons.len());
        let root = Mat::from_fn(count, count, |row, column| if row == column { spreads[commons[row]] } else { 0.0 });
        ArrowMetric {
            centre: centre.point,
            support: support.clone(),
            weights: centre.weights,
            keep: centre.keep,
            levels,
            coupling: vec![vec![0.0; size]; count],
            root,
            factors: vec![1.0; size],
            spreads,
            commons,
        }
    }

    /// Adds the curvature along the common parameters: minus the derivatives of the gradient, one vector for each.
    pub(crate) fn coupled(mut self, curvature: &[Vec<f64>]) -> Result<Self, Error> {
        let count = self.commons.len();
        for (coupling, column) in self.coupling.iter_mut().zip(curvature) {
            let mut column = column.clone();
            self.commons.iter().for_each(|&place| column[place] = 0.0);
            *coupling = column;
        }
        let coupling: Vec<Vec<f64>> = self.coupling.iter().map(|column| self.pull_apart(column)).collect();
        self.coupling = coupling;
        let block = Mat::from_fn(count, count, |row, column| {
            let own = 0.5 * (curvature[row][self.commons[column]] + curvature[column][self.commons[row]]);
            let shared: f64 = self.coupling[row].iter().zip(&self.coupling[column]).map(|(a, b)| a * b).sum();
            (own - shared) * self.spreads[self.commons[row]] * self.spreads[self.commons[column]]
        });
        let decomposed = block.self_adjoint_eigen(Side::Lower).map_err(|_| Error::Undefined {
            what: "the posterior",
            reason: "the curvature at its maximum is not finite".into(),
        })?;
        let (vectors, values) = (decomposed.U(), decomposed.S());
        // Any root does: V Λ^{-½}.
        self.root = Mat::from_fn(count, count, |row, column| {
            vectors[(row, column)] * self.spreads[self.commons[row]]
                / values[column].abs().max(SMALLEST_CURVATURE).sqrt()
        });
        Ok(self)
    }

    /// Variance of a variable that is not common under the normal approximation, the common parameters held; of the drift
    /// where the variable is a level.
    pub(crate) fn variance(&self, place: usize) -> f64 {
        self.spreads[place].powi(2)
    }

    /// T y.
    fn spread_apart(&self, y: &[f64]) -> Vec<f64> {
        let mut out: Vec<f64> = y.iter().zip(&self.spreads).map(|(y, spread)| y * spread).collect();
        let agents = self.support.agents();
        for levels in out[self.levels.clone()].chunks_mut(agents) {
            let mut power = levels.to_vec();
            for term in 0..TERMS {
                let mut next = vec![0.0; agents];
                for (listener, next) in next.iter_mut().enumerate() {
                    let edges = self.support.of(listener);
                    let heard = self.support.speakers[edges.clone()].iter().zip(&self.weights[edges]);
                    *next = heard.map(|(&speaker, weight)| weight * power[speaker as usize]).sum();
                }
                power = next;
                let scale = if term + 1 == TERMS { 1.0 / (1.0 - self.keep) } else { 1.0 };
                levels.iter_mut().zip(&power).for_each(|(sum, power)| *sum += scale * power);
            }
        }
        out
    }

    /// Tᵀ g.
    fn pull_apart(&self, gradient: &[f64]) -> Vec<f64> {
        let mut out = gradient.to_vec();
        let agents = self.support.agents();
        for levels in out[self.levels.clone()].chunks_mut(agents) {
            let mut power = levels.to_vec();
            for term in 0..TERMS {
                let mut next = vec![0.0; agents];
                for (listener, power) in power.iter().enumerate() {
                    let edges = self.support.of(listener);
                    for (&speaker, weight) in self.support.speakers[edges.clone()].iter().zip(&self.weights[edges]) {
                        next[speaker as usize] += weight * power;
                    }
                }
                power = next;
                let scale = if term + 1 == TERMS { 1.0 / (1.0 - self.keep) } else { 1.0 };
                levels.iter_mut().zip(&power).for_each(|(sum, power)| *sum += scale * power);
            }
        }
        out.iter_mut().zip(&self.spreads).for_each(|(out, spread)| *out *= spread);
        out
    }
}

impl Metric for ArrowMetric {
    fn centre(&self) -> &[f64] {
        &self.centre
    }

    fn recoordinate(&mut self, change: &Change) {
        // A matrix is not asked for.
        if let Change::Scales(scales) = change {
            self.factors.iter_mut().zip(scales).for_each(|(factor, scale)| *factor *= scale);
        }
    }

    fn spread(&self, y: &[f64]) -> Vec<f64> {
        let mut y: Vec<f64> = y.iter().zip(&self.factors).map(|(y, factor)| y * factor).collect();
        let own: Vec<f64> = self.commons.iter().map(|&place| y[place]).collect();
        let commons: Vec<f64> = (0..own.len())
            .map(|row| own.iter().enumerate().map(|(column, y)| self.root[(row, column)] * y).sum())
            .collect();
        for (coupling, common) in self.coupling.iter().zip(&commons) {
            y.iter_mut().zip(coupling).for_each(|(y, coupling)| *y -= coupling * common);
        }
        let mut out = self.spread_apart(&y);
        self.commons.iter().zip(commons).for_each(|(&place, common)| out[place] = common);
        out
    }

    fn pull(&self, gradient: &[f64]) -> Vec<f64> {
        let mut apart = gradient.to_vec();
        self.commons.iter().for_each(|&place| apart[place] = 0.0);
        let mut out = self.pull_apart(&apart);
        let left: Vec<f64> = self
            .commons
            .iter()
            .zip(&self.coupling)
            .map(|(&place, coupling)| gradient[place] - coupling.iter().zip(&out).map(|(a, b)| a * b).sum::<f64>())
            .collect();
        for (column, &place) in self.commons.iter().enumerate() {
            out[place] = left.iter().enumerate().map(|(row, left)| self.root[(row, column)] * left).sum();
        }
        out.iter_mut().zip(&self.factors).for_each(|(out, factor)| *out *= factor);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::posterior::attention::Attention;
    use faer::linalg::solvers::DenseSolveCore;

    /// Three agents and one episode: strengths 0..3, levels 3..6, two common parameters.
    fn metric() -> (ArrowMetric, Support) {
        let support = Support::new(&[vec![1, 2], vec![0], vec![0, 1]]);
        let parameters = [0.3, -0.7, 1.1, 0.2, 0.4, -0.2, 0.1, 0.5, 1.7];
        let attention = Attention::new(&support, &parameters);
        let centre = Centre { point: vec![0.5; 8], weights: attention.weights.clone(), keep: attention.keep };
        let spreads = vec![0.5, 0.8, 1.2, 0.3, 0.2, 0.4, 1.0, 0.7];
        (ArrowMetric::uncoupled(&support, centre, 3..6, spreads, vec![6, 7]), support)
    }

    fn matrix(metric: &ArrowMetric) -> Mat<f64> {
        let columns: Vec<Vec<f64>> = (0..8)
            .map(|column| {
                let mut unit = vec![0.0; 8];
                unit[column] = 1.0;
                metric.spread(&unit)
            })
            .collect();
        Mat::from_fn(8, 8, |row, column| columns[column][row])
    }

    #[test]
    fn the_square_of_the_metric_is_the_inverse_of_the_curvature() {
        let (apart, _) = metric();
        let root = matrix(&apart);
        // D of the part without common parameters, and a curvature of the common ones that makes the whole definite.
        let square = &root * root.transpose();
        let diagonal = square.partial_piv_lu().inverse();
        let coupling = |row: usize, column: usize| 0.3 * ((row * 2 + column) as f64).sin();
        let own = [[9.0, 0.4], [0.4, 7.0]];
        let whole = Mat::from_fn(8, 8, |row, column| match (row < 6, column < 6) {
            (true, true) => diagonal[(row, column)],
            (true, false) => coupling(row, column - 6),
            (false, true) => coupling(column, row - 6),
            (false, false) => own[row - 6][column - 6],
        });
        let columns: Vec<Vec<f64>> = (6..8).map(|column| (0..8).map(|row| whole[(row, column)]).collect()).collect();
        let found = matrix(&apart.coupled(&columns).unwrap());
        let product = &found * found.transpose() * &whole;
        for row in 0..8 {
            for column in 0..8 {
                let expected = if row == column { 1.0 } else { 0.0 };
                assert!((product[(row, column)] - expected).abs() < 1e-9, "{row} {column}: {}", product[(row, column)]);
            }
        }
    }

    #[test]
    fn levels_move_as_their_drifts_do() {
        let (metric, support) = metric();
        let root = matrix(&metric);
        // (I − Bᵀ)·T is about the diagonal of the spreads: the series ends with its slowest direction.
        for listener in 0..3 {
            for drift in 0..3 {
                let heard: f64 = support
                    .of(listener)
                    .map(|edge| metric.weights[edge] * root[(3 + support.speakers[edge] as usize, 3 + drift)])
                    .sum();
                let moved = root[(3 + listener, 3 + drift)] - heard;
                let expected = if listener == drift { metric.spreads[3 + drift] } else { 0.0 };
                assert!((moved - expected).abs() < 0.05, "{listener} {drift}: {moved} instead of {expected}");
            }
        }
    }

    #[test]
    fn spreading_and_pulling_are_adjoint() {
        let (apart, _) = metric();
        let columns: Vec<Vec<f64>> =
            (0..2).map(|which| (0..8).map(|row| ((row + 3 * which) as f64).cos()).collect()).collect();
        let mut metric = apart.coupled(&columns).unwrap();
        metric.recoordinate(&Change::Scales(vec![1.5, 0.7, 1.0, 2.0, 0.4, 1.1, 0.9, 1.3]));
        let (y, gradient) = ([0.3, -1.0, 0.2, 0.8, -0.5, 1.4, 0.1, -0.6], [1.0, 0.4, -0.3, 0.2, 0.9, -1.1, 0.5, 0.7]);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (forth, back) = (dot(&metric.spread(&y), &gradient), dot(&y, &metric.pull(&gradient)));
        assert!((forth - back).abs() < 1e-12 * (1.0 + forth.abs()), "{forth} {back}");
    }
}
