//! Stability bound, held-out forecasts, and settings to try.

use super::kernels::axpy;
use super::{Gsl, GslParams};
use crate::learn::forecast::Forecast;
use crate::{Error, Panel};
use faer::{Mat, MatRef};
use std::ops::Range;

/// The largest learning rate that is stable on this panel, 2/((1−δ)²λ_max), λ_max of the regressors' second moment.
///
/// Taken over at most about a thousand steps spread evenly over the panel.
pub fn stability_bound(panel: &Panel, params: &GslParams, known_evidence: bool) -> Result<f64, Error> {
    params.check()?;
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    if steps < params.needed() {
        return Err(Error::NotReady { seen: steps, needed: params.needed() });
    }
    let most = if agents <= 64 { 4096 } else { 128 } / ratios;
    let first = params.window + 1;
    let long = panel.episodes().ranges().filter(|range| range.len() > first);
    let eligible: Vec<Range<usize>> = long.map(|range| range.start + first..range.end).collect();
    let total: usize = eligible.iter().map(|range| range.len()).sum();
    if total == 0 {
        let seen = panel.episodes().ranges().map(|range| range.len()).max().unwrap_or(0);
        return Err(Error::NotReady { seen, needed: params.needed() });
    }
    let at = |number: usize| {
        let mut left = number;
        for range in &eligible {
            if left < range.len() {
                return range.start + left;
            }
            left -= range.len();
        }
        steps - 1
    };
    let count = total.min(most.max(2));
    let width = agents * ratios;
    let frame = |step: usize| &panel.cells()[step * width..(step + 1) * width];
    let scale = 1.0 / params.window as f64;
    let mut x = Vec::with_capacity(count * width);
    for sample in 0..count {
        let step = at(sample * total / count);
        let start = x.len();
        x.extend_from_slice(frame(step - 1));
        if !known_evidence {
            for earlier in step - 1 - params.window..step - 1 {
                axpy(&mut x[start..], -scale, frame(earlier));
            }
        }
    }
    let x = MatRef::from_column_major_slice(&x, agents, count * ratios).to_owned();
    Ok(bound(x, ratios, params.adaptation, false))
}

/// 2/((1−δ)²λ_max) from regressors side by side; `centre` subtracts their mean first.
pub(super) fn bound(mut x: Mat<f64>, ratios: usize, adaptation: f64, centre: bool) -> f64 {
    let (agents, columns) = (x.nrows(), x.ncols());
    let count = (columns / ratios).max(1) as f64;
    if centre {
        for agent in 0..agents {
            for ratio in 0..ratios {
                let mean = (ratio..columns).step_by(ratios).map(|column| x[(agent, column)]).sum::<f64>() / count;
                (ratio..columns).step_by(ratios).for_each(|column| x[(agent, column)] -= mean);
            }
        }
    }
    let gram = if agents <= columns { &x * x.transpose() } else { x.transpose() * &x };
    let keep = 1.0 - adaptation;
    2.0 * count / (keep * keep * largest_eigenvalue(&gram))
}

/// Largest eigenvalue of a positive semi-definite matrix by power iteration, to six digits.
fn largest_eigenvalue(matrix: &Mat<f64>) -> f64 {
    let size = matrix.nrows();
    let mut v = Mat::from_fn(size, 1, |row, _| 1.0 + (row as f64 * 0.618).fract());
    let mut value = 0.0;
    for _ in 0..1000 {
        let next = matrix * &v;
        let norm = next.norm_l2();
        if norm == 0.0 || !norm.is_finite() {
            return norm;
        }
        let settled = (norm - value).abs() <= 1e-6 * norm;
        value = norm;
        v = faer::Scale(1.0 / norm) * next;
        if settled {
            break;
        }
    }
    value
}

/// Share of a panel that [`held_out`] keeps from the learner.
const HELD_OUT: f64 = 0.2;

/// Forecast errors on the last fifth of a panel, by a learner that is trained on the rest and then held fixed: the last
/// fifth of each episode where all are at least ten steps long, otherwise the last fifth of the episodes.
///
/// `learner` must not have seen any frame.
pub fn held_out(panel: &Panel, mut learner: Gsl) -> Result<Forecast, Error> {
    if !panel.episodes().is_single() {
        return held_out_episodes(panel, learner);
    }
    let split = panel.steps() - (panel.steps() as f64 * HELD_OUT).ceil() as usize;
    let overlap = learner.params.window + 1;
    if split < learner.params.needed() {
        let needed = (learner.params.needed() as f64 / (1.0 - HELD_OUT)).ceil() as usize + 1;
        return Err(Error::NotReady { seen: panel.steps(), needed });
    }
    while learner.advance_within(panel, 0..split, usize::MAX, usize::MAX)?.is_some() {}
    learner.freeze();
    let mut forecast = Forecast { from: split, ..Forecast::default() };
    while let Some(update) = learner.advance_within(panel, split - overlap..panel.steps(), usize::MAX, 0)? {
        forecast.add(&update.forecast);
    }
    Ok(Forecast { end: panel.steps(), ..forecast })
}

fn held_out_episodes(panel: &Panel, mut learner: Gsl) -> Result<Forecast, Error> {
    let seen = panel.held_out_steps().seen;
    let lead = learner.params.window + 1;
    let known = panel.kept(&seen);
    while learner.advance_within(&known, 0..known.steps(), usize::MAX, usize::MAX)?.is_some() {}
    let mut forecast = Forecast { lead: lead - 1, end: panel.steps(), ..Forecast::default() };
    for (range, seen) in panel.episodes().ranges().zip(seen) {
        let stretch = range.start + seen.saturating_sub(lead)..range.end;
        if seen < range.len() && stretch.len() > lead {
            learner.freeze();
            while let Some(update) = learner.advance_within(panel, stretch.clone(), usize::MAX, 0)? {
                forecast.add(&update.forecast);
            }
        }
    }
    if forecast.steps == 0 {
        let seen = panel.episodes().ranges().map(|range| range.len()).max().unwrap_or(0);
        return Err(Error::NotReady { seen, needed: lead + 1 });
    }
    Ok(Forecast { end: panel.steps(), ..forecast })
}

impl Gsl {
    /// Before a pass in which nothing is learned: every update is zero.
    fn freeze(&mut self) {
        self.restart();
        self.params.learning_rate = 0.0;
        self.params.batch = 1;
        self.params.passes = 0;
    }
}

/// Settings to try on this panel: windows up to a fifth of it, learning rates below the stability bound.
/// `known_evidence` as in [`stability_bound`].
pub fn candidates(panel: &Panel, base: &GslParams, known_evidence: bool) -> Result<Vec<GslParams>, Error> {
    let mut out = Vec::new();
    for window in [2, 10, 50, 200] {
        let longest = panel.episodes().ranges().map(|range| range.len()).max().unwrap_or(0);
        if window > 2 && window > longest / 5 {
            continue;
        }
        let params = GslParams { window, ..base.clone() };
        let bound = stability_bound(panel, &params, known_evidence)?;
        for share in [0.003, 0.01, 0.03, 0.1, 0.3] {
            out.push(GslParams { learning_rate: share * bound, ..params.clone() });
        }
    }
    Ok(out)
}

/// Sparsities to try once window and learning rate are chosen, none included.
pub fn sparser(best: &GslParams, agents: usize) -> Vec<GslParams> {
    // A threshold of 1/N would remove uniform weights in 1/μ steps.
    let unit = 1.0 / agents as f64;
    [0.003, 0.01, 0.03, 0.1].map(|share| GslParams { sparsity: share * unit, ..best.clone() }).to_vec()
}
