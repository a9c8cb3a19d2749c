//! Covariance of the private log-likelihood ratios.

use crate::{Combination, Error, Panel};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Covariance of the private log-likelihood ratios of each agent: N blocks of H × H.
#[derive(Debug, Clone, PartialEq)]
pub struct Innovation {
    ratios: usize,
    cells: Vec<f64>,
}

impl Innovation {
    /// From N·H·H numbers, agent by agent.
    pub fn from_cells(cells: Vec<f64>, agents: usize, ratios: usize) -> Result<Self, Error> {
        if cells.len() != agents * ratios * ratios || cells.iter().any(|value| !value.is_finite()) {
            return Err(Error::Shape {
                what: "innovation",
                met: format!("{} numbers, or some not finite", cells.len()),
                wanted: format!("{agents}×{ratios}×{ratios} finite numbers"),
            });
        }
        Ok(Innovation { ratios, cells })
    }

    /// The H × H block of one agent, row by row.
    pub fn agent(&self, agent: usize) -> &[f64] {
        let size = self.ratios * self.ratios;
        &self.cells[agent * size..(agent + 1) * size]
    }

    /// All numbers, agent by agent.
    pub fn cells(&self) -> &[f64] {
        &self.cells
    }
}

/// Agents handled by one task; fixed, so that the thread count changes no bit.
const AGENTS_PER_TASK: usize = 128;

/// Steps handled at a time.
const STEPS_PER_BLOCK: usize = 64;

/// Products N²·T·H that a covariance may cost; beyond it the latest steps must do.
const COVARIANCE_PRODUCTS: usize = 200_000_000;

/// But never fewer steps than this: variances are then good to an eighth.
const COVARIANCE_STEPS: usize = 128;

/// Covariance of `(Λ_i − (1−δ)AᵀΛ_{i−1})/δ` per agent over a complete panel, as matrix products.
///
/// Over all steps for small networks; over the latest few hundred, or at least 128, for large ones.
pub fn innovation(panel: &Panel, combination: &Combination, adaptation: f64) -> Result<Innovation, Error> {
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    let used = (COVARIANCE_PRODUCTS / (agents * agents * ratios)).max(COVARIANCE_STEPS);
    let begin = steps.saturating_sub(used).max(1);
    if steps < 3 {
        return Err(Error::NotReady { seen: steps, needed: 3 });
    }
    if !panel.episodes().is_single() {
        return of_episodes(panel, combination, adaptation);
    }
    let Some(columns) = combination.dense() else { return sparse_innovation(panel, combination, adaptation) };
    let keep = 1.0 - adaptation;
    let size = ratios * ratios;
    let mut cells = vec![0.0; agents * size];
    let tasks = cells.par_chunks_mut(AGENTS_PER_TASK * size).enumerate();
    tasks.for_each(|(task, cells)| {
        let first = task * AGENTS_PER_TASK;
        let count = cells.len() / size;
        let listened =
            MatRef::from_column_major_slice(&columns[first * agents..(first + count) * agents], agents, count);
        let mut sums = vec![0.0; count * ratios];
        // Shifting by the first residual keeps the sums of squares small beside a large mean.
        let mut shift = vec![0.0; count * ratios];
        let mut heard = vec![0.0; count * STEPS_PER_BLOCK * ratios];
        let mut residual = vec![0.0; ratios];
        for start in (begin..steps).step_by(STEPS_PER_BLOCK) {
            let end = (start + STEPS_PER_BLOCK).min(steps);
            let width = (end - start) * ratios;
            let mut out = MatMut::from_column_major_slice_mut(&mut heard[..count * width], count, width);
            let before = panel.block(start - 1..end - 1);
            matmul(out.as_mut(), Accum::Replace, listened.transpose(), before, keep, Par::Seq);
            let now = panel.block(start..end);
            for step in 0..end - start {
                for agent in 0..count {
                    for ratio in 0..ratios {
                        let column = step * ratios + ratio;
                        residual[ratio] = now[(first + agent, column)] - out[(agent, column)];
                    }
                    if start == begin && step == 0 {
                        shift[agent * ratios..(agent + 1) * ratios].copy_from_slice(&residual);
                    }
                    for ratio in 0..ratios {
                        residual[ratio] -= shift[agent * ratios + ratio];
                        sums[agent * ratios + ratio] += residual[ratio];
                    }
                    for row in 0..ratios {
                        for column in 0..ratios {
                            cells[agent * size + row * ratios + column] += residual[row] * residual[column];
                        }
                    }
                }
            }
        }
        let observations = (steps - begin) as f64;
        for agent in 0..count {
            for row in 0..ratios {
                for column in 0..ratios {
                    let product = sums[agent * ratios + row] * sums[agent * ratios + column] / observations;
                    let cell = &mut cells[agent * size + row * ratios + column];
                    *cell = (*cell - product) / (observations - 1.0) / (adaptation * adaptation);
                }
            }
        }
    });
    Innovation::from_cells(cells, agents, ratios)
}

/// The covariances of the episodes, each about its own mean, weighted by their degrees of freedom.
fn of_episodes(panel: &Panel, combination: &Combination, adaptation: f64) -> Result<Innovation, Error> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let (mut cells, mut freedom) = (vec![0.0; agents * ratios * ratios], 0.0);
    for episode in panel.by_episode().iter().filter(|episode| episode.steps() >= 3) {
        let weight = (episode.steps() - 2) as f64;
        let one = innovation(episode, combination, adaptation)?;
        cells.iter_mut().zip(one.cells()).for_each(|(sum, cell)| *sum += weight * cell);
        freedom += weight;
    }
    if freedom == 0.0 {
        return Err(Error::NotReady { seen: 2, needed: 3 });
    }
    Innovation::from_cells(cells.into_iter().map(|cell| cell / freedom).collect(), agents, ratios)
}

/// The same frame by frame, for networks of which most edges are absent.
fn sparse_innovation(panel: &Panel, combination: &Combination, adaptation: f64) -> Result<Innovation, Error> {
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    let (keep, size, width) = (1.0 - adaptation, ratios * ratios, agents * ratios);
    let count = (steps - 1) as f64;
    let mut heard = vec![0.0; agents];
    let mut residuals = vec![0.0; width];
    let mut shift = Vec::new();
    let mut sums = vec![0.0; width];
    let mut cells = vec![0.0; agents * size];
    for step in 1..steps {
        let (before, now) =
            (&panel.cells()[(step - 1) * width..step * width], &panel.cells()[step * width..(step + 1) * width]);
        for ratio in 0..ratios {
            let line = ratio * agents..(ratio + 1) * agents;
            combination.hear_into(&before[line.clone()], &mut heard);
            let out = residuals[line.clone()].iter_mut().zip(&now[line]).zip(&heard);
            out.for_each(|((residual, now), heard)| *residual = now - keep * heard);
        }
        // Shifting by the first residual keeps the sums of squares small beside a large mean.
        if shift.is_empty() {
            shift.clone_from(&residuals);
        }
        residuals.iter_mut().zip(&shift).for_each(|(residual, shift)| *residual -= shift);
        sums.iter_mut().zip(&residuals).for_each(|(sum, residual)| *sum += residual);
        for (agent, cells) in cells.chunks_exact_mut(size).enumerate() {
            for (cell, out) in cells.iter_mut().enumerate() {
                *out += residuals[cell / ratios * agents + agent] * residuals[cell % ratios * agents + agent];
            }
        }
    }
    for (agent, cells) in cells.chunks_exact_mut(size).enumerate() {
        for (cell, out) in cells.iter_mut().enumerate() {
            let product = sums[cell / ratios * agents + agent] * sums[cell % ratios * agents + agent] / count;
            *out = (*out - product) / (count - 1.0) / (adaptation * adaptation);
        }
    }
    Innovation::from_cells(cells, agents, ratios)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roster;

    #[test]
    fn innovation_of_episodes_is_within_them() {
        let cells: Vec<f64> = (0..20).map(|cell| f64::from(cell * cell % 7)).collect();
        let panel = Panel::complete(Roster::numbered(2, 2).unwrap(), cells).unwrap();
        let panel = panel.in_episodes(vec![("a".into(), 4), ("b".into(), 6)]).unwrap();
        let matrix = Combination::from_columns(vec![0.5, 0.5, 0.25, 0.75], 2).unwrap();
        let met = innovation(&panel, &matrix, 0.2).unwrap();
        let one = |from: usize, to: usize| innovation(&panel.slice(from..to).unwrap(), &matrix, 0.2).unwrap();
        let (a, b) = (one(0, 4), one(4, 10));
        for agent in 0..2 {
            let wanted = (2.0 * a.agent(agent)[0] + 4.0 * b.agent(agent)[0]) / 6.0;
            assert!((met.agent(agent)[0] - wanted).abs() < 1e-12 * wanted);
        }
    }

    #[test]
    fn innovation_is_the_covariance_of_the_residuals() {
        // A = I and δ = 1/2: the residual over δ is 2Λ_i − Λ_{i−1}.
        let roster = Roster::numbered(2, 2).unwrap();
        let series = [1e6 + 1.0, 0.0, 1e6 + 2.0, 1.0, 1e6 + 4.0, 3.0, 1e6 + 3.0, 3.0];
        let panel = Panel::complete(roster, series.to_vec()).unwrap();
        let identity = Combination::from_columns(vec![1.0, 0.0, 0.0, 1.0], 2).unwrap();
        let met = innovation(&panel, &identity, 0.5).unwrap();
        let sparse = innovation(&panel, &identity.to_sparse(), 0.5).unwrap();
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-8 * a.abs();
        assert!(met.cells().iter().zip(sparse.cells()).all(close));
        let residuals = [[3.0, 6.0, 2.0], [2.0, 5.0, 3.0]];
        for (agent, residuals) in residuals.iter().enumerate() {
            let mean = residuals.iter().sum::<f64>() / 3.0;
            let wanted = residuals.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0;
            assert!((met.agent(agent)[0] - wanted).abs() < 1e-8 * wanted, "{} {wanted}", met.agent(agent)[0]);
        }
    }
}
