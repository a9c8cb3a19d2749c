//! Rows of numbers, one per account: centred, scaled to length one per log-ratio, centred within groups.

use super::series::Process;
use rayon::prelude::*;

/// Squared length below which a row counts as zero: an account that never moves.
const NO_LENGTH: f64 = 1e-200;

/// One row of equal width per account.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    pub(super) width: usize,
    cells: Vec<f64>,
}

/// What is taken from a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Deviations from the level at all steps but the last: what a speaker thought before.
    Before,
    /// News at all steps but the first: what a listener then heard.
    After,
    /// Deviations at all steps.
    Level,
    /// News at all steps.
    News,
}

impl Rows {
    /// Rows of a part of the processes, `processes[ratio][account]`: centred in each episode, scaled to length one in each ratio.
    pub(super) fn new(processes: &[Vec<Process>], part: Part) -> Self {
        let accounts = processes.first().map_or(0, Vec::len);
        let one = |account: usize| {
            let mut row = Vec::new();
            for ratio in processes {
                let (process, start) = (&ratio[account], row.len());
                let series = match part {
                    Part::Before | Part::Level => &process.deviations,
                    Part::After | Part::News => &process.news,
                };
                for episode in series {
                    let from = usize::from(part == Part::After).min(episode.len());
                    let to = episode.len().saturating_sub(usize::from(part == Part::Before)).max(from);
                    let kept = &episode[from..to];
                    let mean = kept.iter().sum::<f64>() / kept.len().max(1) as f64;
                    row.extend(kept.iter().map(|value| value - mean));
                }
                let squares = dot(&row[start..], &row[start..]);
                let scale = if squares > NO_LENGTH { 1.0 / squares.sqrt() } else { 0.0 };
                row[start..].iter_mut().for_each(|value| *value *= scale);
            }
            row
        };
        let rows: Vec<Vec<f64>> = (0..accounts).into_par_iter().map(one).collect();
        Rows { width: rows.first().map_or(0, Vec::len), cells: rows.concat() }
    }

    pub(super) fn accounts(&self) -> usize {
        self.cells.len().checked_div(self.width).unwrap_or(0)
    }

    pub(super) fn row(&self, account: usize) -> &[f64] {
        &self.cells[account * self.width..(account + 1) * self.width]
    }

    /// The rows less the mean row of their group.
    pub(super) fn centred(mut self, groups: &[usize]) -> Self {
        let count = groups.iter().max().map_or(0, |most| most + 1);
        let (mut sums, mut members) = (vec![0.0; count * self.width], vec![0.0; count]);
        for (account, &group) in groups.iter().enumerate() {
            let row = &self.cells[account * self.width..(account + 1) * self.width];
            sums[group * self.width..(group + 1) * self.width].iter_mut().zip(row).for_each(|(sum, cell)| *sum += cell);
            members[group] += 1.0;
        }
        if self.width > 0 {
            self.cells.par_chunks_mut(self.width).zip(groups).for_each(|(row, &group)| {
                let sums = &sums[group * row.len()..(group + 1) * row.len()];
                row.iter_mut().zip(sums).for_each(|(cell, sum)| *cell -= sum / members[group]);
            });
        }
        self
    }

    /// a·self + b·other, of equal width.
    pub(super) fn combined(&self, a: f64, other: &Rows, b: f64) -> Self {
        let cells = self.cells.par_iter().zip(&other.cells).map(|(x, y)| a * x + b * y).collect();
        Rows { width: self.width, cells }
    }

    /// Both side by side.
    pub(super) fn beside(&self, other: &Rows) -> Self {
        let both = |account: usize| [self.row(account), other.row(account)].concat();
        let rows: Vec<Vec<f64>> = (0..self.accounts()).into_par_iter().map(both).collect();
        Rows { width: self.width + other.width, cells: rows.concat() }
    }
}

/// Inner product in a fixed order of eight partial sums, which the compiler can vectorise.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (whole_a, whole_b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = whole_a.remainder().iter().zip(whole_b.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in whole_a.zip(whole_b) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}
