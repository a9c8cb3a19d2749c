//! Updates of the weights from the steps that wait: one step, one batch, or one block at a time.

use super::kernels::{coupling, project_on_simplex, single, total};
use super::tuning::{bound, stability_bound};
use super::{Constraint, Gsl};
use crate::learn::forecast::Forecast;
use crate::{Error, Panel};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Below this many agents single steps are faster than the block kernel (measured by the benchmark `gsl`).
const BLOCK_AGENTS: usize = 96;

/// Columns of A per task; a function of N alone, so that the thread count changes no bit.
fn listeners_per_task(agents: usize) -> usize {
    if agents < 1024 { 64 } else { 256 }
}

/// Columns of X in a block: wide enough for the matrix products, narrow enough that the triangular part stays small.
fn block_width(agents: usize) -> usize {
    (agents / 2).clamp(32, 128)
}

impl Gsl {
    fn is_linear(&self) -> bool {
        self.params.batch == 1
            && self.params.sparsity == 0.0
            && self.params.constraint == Constraint::Free
            && self.support.is_none()
    }

    /// Steps that are applied together.
    pub(super) fn updates_at_once(&self) -> usize {
        if self.params.batch > 1 {
            return self.params.batch;
        }
        if !self.is_linear() || self.agents() < BLOCK_AGENTS {
            return 1;
        }
        (block_width(self.agents()) / self.ratios()).max(1)
    }

    /// Applies the pending steps: one at a time, as one batch, or as one block.
    pub(super) fn update(&mut self, count_from: usize, forecast: &mut Forecast) -> Result<(), Error> {
        let (agents, steps) = (self.agents(), self.pending.steps);
        // Of the pending steps, the last of which is frame seen−1, these come too early to count.
        let early = count_from.saturating_sub(self.window.seen.saturating_sub(steps)).min(steps) * self.ratios();
        let width = steps * self.ratios();
        let keep = 1.0 - self.params.adaptation;
        let rate = self.params.learning_rate * keep / self.params.batch as f64;
        let tasks = listeners_per_task(agents);
        let [early_error, error] = if steps == 1 {
            let (x, y, ratios) = (&self.pending.x, &self.pending.y, self.ratios());
            let one = |(task, columns): (usize, &mut [f64])| {
                let mut error = 0.0;
                for (position, column) in columns.chunks_exact_mut(agents).enumerate() {
                    error += single(column, x, y, task * tasks + position, ratios, keep, rate);
                }
                if early > 0 { [error, 0.0] } else { [0.0, error] }
            };
            if agents < BLOCK_AGENTS {
                total(self.columns.chunks_mut(tasks * agents).enumerate().map(one))
            } else {
                total(self.columns.par_chunks_mut(tasks * agents).enumerate().map(one).collect::<Vec<_>>())
            }
        } else {
            let x = MatRef::from_column_major_slice(&self.pending.x, agents, width);
            let y = MatRef::from_column_major_slice(&self.pending.y, agents, width);
            let coupling = (self.params.batch == 1).then(|| coupling(x, self.ratios(), rate * keep));
            let one = |(task, columns): (usize, &mut [f64])| {
                let count = columns.len() / agents;
                let mut a = MatMut::from_column_major_slice_mut(columns, agents, count);
                let mut residual = y.subrows(task * tasks, count).transpose().to_owned();
                matmul(residual.as_mut(), Accum::Add, x.transpose(), a.as_ref(), -keep, Par::Seq);
                if let Some(coupling) = &coupling {
                    solve_unit_lower_triangular_in_place(coupling.as_ref(), residual.as_mut(), Par::Seq);
                }
                matmul(a.as_mut(), Accum::Add, x, residual.as_ref(), rate, Par::Seq);
                [residual.subrows(0, early).squared_norm_l2(), residual.subrows(early, width - early).squared_norm_l2()]
            };
            total(self.columns.par_chunks_mut(tasks * agents).enumerate().map(one).collect::<Vec<_>>())
        };
        forecast.add(&Forecast { error, end: self.window.seen, ..self.pending.counted });
        self.pending.clear();
        if !(early_error + error).is_finite() {
            return Err(self.diverged());
        }
        if !self.is_linear() {
            self.shrink();
            self.restrict();
            if self.params.constraint == Constraint::Simplex {
                self.project();
            }
        }
        Ok(())
    }

    fn diverged(&self) -> Error {
        let (agents, ratios) = (self.agents(), self.ratios());
        let held = (self.window.seen.min(self.params.window + 1)) * ratios;
        let frames = MatRef::from_column_major_slice(&self.window.frames[..held * agents], agents, held);
        Error::Diverged {
            step: self.seen().saturating_sub(1),
            learning_rate: self.params.learning_rate,
            bound: bound(frames.to_owned(), ratios, self.params.adaptation, self.known.is_none()),
        }
    }

    /// The same error with the bound of the whole panel in place of the window's.
    pub(super) fn with_bound(&self, error: Error, panel: &Panel) -> Error {
        match (error, stability_bound(panel, &self.params, self.known.is_some())) {
            (Error::Diverged { step, learning_rate, .. }, Ok(bound)) => Error::Diverged { step, learning_rate, bound },
            (error, _) => error,
        }
    }

    /// a ← sign(a)·max(|a| − μα, 0).
    fn shrink(&mut self) {
        let threshold = self.params.learning_rate * self.params.sparsity;
        if threshold > 0.0 {
            self.columns.iter_mut().for_each(|a| *a = a.signum() * (a.abs() - threshold).max(0.0));
        }
    }

    /// Sets weights outside of the support to zero.
    pub(super) fn restrict(&mut self) {
        let Some(support) = &self.support else { return };
        let agents = self.roster.agents().len();
        for (speakers, column) in support.iter().zip(self.columns.chunks_exact_mut(agents)) {
            let mut allowed = speakers.iter().copied().peekable();
            for (speaker, weight) in column.iter_mut().enumerate() {
                if allowed.next_if_eq(&speaker).is_none() {
                    *weight = 0.0;
                }
            }
        }
    }

    fn project(&mut self) {
        let agents = self.agents();
        let support = self.support.as_ref();
        self.columns.par_chunks_mut(agents).enumerate().for_each(|(listener, column)| match support {
            None => project_on_simplex(column),
            Some(support) => {
                let mut weights: Vec<f64> = support[listener].iter().map(|&speaker| column[speaker]).collect();
                project_on_simplex(&mut weights);
                support[listener].iter().zip(weights).for_each(|(&speaker, weight)| column[speaker] = weight);
            }
        });
    }
}
