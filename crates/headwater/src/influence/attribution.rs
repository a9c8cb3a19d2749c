//! Attribution: the share of each agent's private evidence in a belief.

use crate::combination::add_scaled;
use crate::{Combination, Error, Evidence, Model};
use faer::linalg::solvers::PartialPivLu;
use faer::prelude::Solve;
use faer::{Mat, MatRef};
use rayon::prelude::*;

/// Exact attribution at finite δ: P = δ(I − (1−δ)Aᵀ)⁻¹, whose rows sum to one and E Λ = P L̄.
///
/// `P[k, ℓ]` is the share of agent k's expected log-belief that originates in ℓ's private information. The inverse is
/// never formed: rows and columns are solved for one at a time, by one LU for up to a thousand agents, otherwise by the
/// Neumann series with its tail summed in closed form.
///
/// ```
/// use headwater::{Combination, influence::Attribution};
/// // Agent 1 listens to agent 0 only, which listens to itself.
/// let a = Combination::from_columns(vec![1.0, 0.0, 1.0, 0.0], 2).unwrap();
/// let attribution = Attribution::new(&a, 0.25).unwrap();
/// assert_eq!(attribution.sources_of(1), [0.75, 0.25]);
/// ```
#[derive(Debug)]
pub struct Attribution {
    combination: Combination,
    adaptation: f64,
    /// LU of I − (1−δ)A.
    pub(super) lu: Option<PartialPivLu<f64>>,
}

/// Up to here one LU costs less than a second.
const DIRECT_AGENTS: usize = 1000;

/// Largest number of terms of a series; reached only by a matrix that does not mix.
pub(super) const PATIENCE: usize = 1_000_000;

/// A Neumann series has converged when its terms change by less than this.
pub(super) const SETTLED: f64 = 1e-15;

impl Attribution {
    /// Prepares the solver for weights and δ. Weights that are not left-stochastic are first made so.
    pub fn new(combination: &Combination, adaptation: f64) -> Result<Self, Error> {
        crate::model::check_adaptation(adaptation)?;
        Ok(Attribution::from_stochastic(combination.stochastic().combination, adaptation))
    }

    /// The same for a model.
    pub fn from_model(model: &Model) -> Result<Self, Error> {
        Attribution::new(&model.combination, model.adaptation)
    }

    pub(super) fn from_stochastic(combination: Combination, adaptation: f64) -> Self {
        let agents = combination.agents();
        let lu = (agents <= DIRECT_AGENTS).then(|| {
            let mut system = Mat::<f64>::identity(agents, agents);
            for (speaker, listener, weight) in combination.edges() {
                system[(speaker, listener)] -= (1.0 - adaptation) * weight;
            }
            system.partial_piv_lu()
        });
        Attribution { combination, adaptation, lu }
    }

    /// Shares of all agents in the belief of agent k: row k of P.
    pub fn sources_of(&self, agent: usize) -> Vec<f64> {
        let mut unit = vec![0.0; self.combination.agents()];
        unit[agent] = self.adaptation;
        self.solve(&unit)
    }

    /// Share of agent ℓ in the beliefs of all agents: column ℓ of P.
    pub fn reach_of(&self, agent: usize) -> Vec<f64> {
        let mut unit = vec![0.0; self.combination.agents()];
        unit[agent] = self.adaptation;
        self.solve_transposed(&unit)
    }

    /// The share of the network's mean opinion that originates in each agent: the mean row of P.
    pub fn network(&self) -> Vec<f64> {
        let agents = self.combination.agents();
        self.solve(&vec![self.adaptation / agents as f64; agents])
    }

    /// [`Attribution::sources_of`] for many agents at once: much less work than one by one.
    pub fn sources_of_many(&self, agents: &[usize]) -> Vec<Vec<f64>> {
        self.many(agents, Way::Back)
    }

    /// [`Attribution::reach_of`] for many agents at once.
    pub fn reach_of_many(&self, agents: &[usize]) -> Vec<Vec<f64>> {
        self.many(agents, Way::Forth)
    }

    fn many(&self, chosen: &[usize], way: Way) -> Vec<Vec<f64>> {
        let agents = self.combination.agents();
        let blocks = chosen.par_chunks(BLOCK).flat_map_iter(|chosen| {
            let width = chosen.len();
            match &self.lu {
                Some(lu) => {
                    let mut units = Mat::<f64>::zeros(agents, width);
                    chosen.iter().enumerate().for_each(|(column, &agent)| units[(agent, column)] = self.adaptation);
                    let solved = match way {
                        Way::Back => lu.solve(units),
                        Way::Forth => lu.solve_transpose(units),
                    };
                    (0..width).map(|column| solved.col_as_slice(column).to_vec()).collect::<Vec<_>>()
                }
                None => {
                    let mut start = vec![0.0; agents * width];
                    chosen.iter().enumerate().for_each(|(at, &agent)| start[agent * width + at] = self.adaptation);
                    let sum = settle(start, self.adaptation, |term, next| match way {
                        Way::Back => self.combination.spread_many(term, width, next),
                        Way::Forth => self.combination.hear_many(term, width, next),
                    });
                    (0..width).map(|column| strided(&sum, column, width)).collect()
                }
            }
        });
        blocks.collect()
    }

    /// E Λ = P L̄, one vector per log-ratio.
    pub fn expected(&self, evidence: &Evidence) -> Vec<Vec<f64>> {
        (0..evidence.ratios())
            .map(|ratio| {
                let scaled: Vec<f64> = evidence.ratio(ratio).iter().map(|value| value * self.adaptation).collect();
                self.solve_transposed(&scaled)
            })
            .collect()
    }

    /// (I − (1−δ)A)⁻¹ b.
    fn solve(&self, b: &[f64]) -> Vec<f64> {
        match &self.lu {
            Some(lu) => vector(lu.solve(column(b)).as_ref()),
            None => self.series(b, |v| self.combination.spread(v)),
        }
    }

    /// (I − (1−δ)Aᵀ)⁻¹ b.
    pub(super) fn solve_transposed(&self, b: &[f64]) -> Vec<f64> {
        match &self.lu {
            Some(lu) => vector(lu.solve_transpose(column(b)).as_ref()),
            None => self.series(b, |v| self.combination.hear(v)),
        }
    }

    /// Σ (1−δ)^t T^t b. Once T^t b no longer moves, the rest is a geometric sum.
    fn series(&self, b: &[f64], apply: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
        let keep = 1.0 - self.adaptation;
        let mut sum = vec![0.0; b.len()];
        let mut term = b.to_vec();
        let mut factor = 1.0;
        let largest = b.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        let mut left = PATIENCE;
        while factor > SETTLED * self.adaptation {
            let next = apply(&term);
            left -= 1;
            let change = next.iter().zip(&term).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
            let settled = left == 0 || change <= SETTLED * largest;
            let weight = if settled { factor / self.adaptation } else { factor };
            sum.iter_mut().zip(&term).for_each(|(sum, value)| *sum += weight * value);
            if settled {
                break;
            }
            term = next;
            factor *= keep;
        }
        sum
    }
}

/// Direction of an attribution.
#[derive(Clone, Copy)]
enum Way {
    /// Sources of an agent's belief.
    Back,
    /// Agents whose beliefs contain the agent's evidence.
    Forth,
}

/// Vectors handled together: a few cache lines per agent; fixed, so that the thread count changes no bit.
pub(super) const BLOCK: usize = 32;

/// Tolerance of many series computed together, relative to their first terms: nine digits of every share.
const BLOCK_SETTLED: f64 = 1e-10;

/// Σ (1−δ)^t T^t b for vectors side by side, its tail summed in closed form.
pub(super) fn settle(start: Vec<f64>, adaptation: f64, apply: impl Fn(&[f64], &mut [f64])) -> Vec<f64> {
    let largest = start.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    let (mut sum, mut term, mut next) = (vec![0.0; start.len()], start, Vec::new());
    next.resize(term.len(), 0.0);
    let mut factor = 1.0;
    for left in (0..PATIENCE).rev() {
        apply(&term, &mut next);
        let change = next.iter().zip(&term).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
        let settled = left == 0 || change * factor <= BLOCK_SETTLED * adaptation * largest;
        add_scaled(&mut sum, if settled { factor / adaptation } else { factor }, &term);
        if settled {
            break;
        }
        std::mem::swap(&mut term, &mut next);
        factor *= 1.0 - adaptation;
    }
    sum
}

/// One of many vectors side by side.
pub(super) fn strided(values: &[f64], column: usize, width: usize) -> Vec<f64> {
    values.iter().skip(column).step_by(width).copied().collect()
}

fn column(values: &[f64]) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(values, values.len(), 1)
}

fn vector(matrix: MatRef<'_, f64>) -> Vec<f64> {
    (0..matrix.nrows()).map(|row| matrix[(row, 0)]).collect()
}
