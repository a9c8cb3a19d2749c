//! Kalman filter and smoother: what the agents believed, given all that some of them said now and then.
//!
//! In: [`Dynamics`] and the first steps of a panel, silence and post counts included. Out: one-step forecasts with the
//! log-likelihood ([`Filtered`]), and then the expected lagged moments, stretch by stretch ([`Smoothed`]).
//!
//! The state is a frame: D = N·H numbers, ratio by ratio. Legend: x_t = Bᵀx_{t−1} + d + η, η ~ N(0, Q), Q one H × H block
//! per agent; an agent with c posts shows z = x + v, v ~ N(0, Ω/c). Where a mood m_t is given, it adds β m_t to x_t.

use super::moments::Moments;
use super::mood::Mood;
use crate::{Error, Panel, watch};
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::Llt;
use faer::prelude::Solve;
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};
use rayon::prelude::*;
use std::sync::Arc;

/// Columns of a product per task; fixed, so that the thread count changes no bit.
const COLUMNS_PER_TASK: usize = 64;

/// Bytes that the covariances of all steps may take.
const MOST_BYTES: f64 = 8e9;

/// Where beliefs go from one step to the next, and how what is said blurs them.
#[derive(Debug, Clone)]
pub(crate) struct Dynamics {
    pub(crate) agents: usize,
    pub(crate) ratios: usize,
    /// B = (1−δ)A, N × N: column = listener.
    pub(crate) hears: Mat<f64>,
    /// d = δL̄, D numbers.
    pub(crate) drift: Vec<f64>,
    /// Q, one H × H block per agent.
    pub(crate) innovation: Vec<Mat<f64>>,
    /// Ω, H × H, of a single post.
    pub(crate) noise: Mat<f64>,
    /// Mean of the first frame.
    pub(crate) start: Vec<f64>,
    /// Variances of the first frame.
    pub(crate) spread: Vec<f64>,
    /// What else moves them, where that is allowed.
    pub(crate) sway: Option<Sway>,
}

/// The mood, and how far beliefs follow it.
#[derive(Debug, Clone)]
pub(crate) struct Sway {
    pub(crate) mood: Arc<Mood>,
    /// One number per group and ratio: group by group.
    pub(crate) loading: Vec<f64>,
}

impl Sway {
    /// Adds `times` what the mood adds to a frame.
    fn add(&self, step: usize, agents: usize, times: f64, frame: &mut [f64]) {
        let ratios = frame.len() / agents;
        for (cell, (out, mood)) in frame.iter_mut().zip(self.mood.at(step)).enumerate() {
            *out += times * self.loading[self.mood.groups[cell % agents] * ratios + cell / agents] * mood;
        }
    }
}

/// What was known of each frame from those before it, and with it.
#[derive(Debug)]
pub(crate) struct Filtered {
    pub(crate) log_likelihood: f64,
    /// T × D: means of each frame given the frames before.
    pub(crate) forecast: Vec<f64>,
    /// T × D: the same given the frame itself as well.
    known: Vec<f64>,
    /// Covariances that belong to them, when they were asked for.
    spreads: Vec<Spread>,
}

#[derive(Debug)]
struct Spread {
    forecast: Mat<f64>,
    known: Mat<f64>,
}

/// What is known of each frame from all of them.
#[derive(Debug)]
pub(crate) struct Smoothed {
    /// T × D means.
    pub(crate) frames: Vec<f64>,
    /// Expected moments of each stretch asked for.
    pub(crate) stretches: Vec<Moments>,
    /// Σ c·E[(z−x)(z−x)ᵀ] over what was said, and how many cells that is.
    pub(crate) noise: (Mat<f64>, usize),
}

/// `out = alpha·left·right (+ out)`, on all threads when it is large.
fn product(out: MatMut<'_, f64>, add: Accum, left: MatRef<'_, f64>, right: MatRef<'_, f64>, alpha: f64) {
    if out.ncols() <= COLUMNS_PER_TASK {
        return matmul(out, add, left, right, alpha, Par::Seq);
    }
    let tasks = out.par_col_chunks_mut(COLUMNS_PER_TASK).enumerate();
    tasks.for_each(|(task, out)| {
        let right = right.subcols(task * COLUMNS_PER_TASK, out.ncols());
        matmul(out, add, left, right, alpha, Par::Seq);
    });
}

/// Solves for many right-hand sides, on all threads when there are many.
fn solved(llt: &Llt<f64>, mut right: Mat<f64>) -> Mat<f64> {
    if right.ncols() <= COLUMNS_PER_TASK {
        llt.solve_in_place(&mut right);
    } else {
        right.par_col_chunks_mut(COLUMNS_PER_TASK).for_each(|mut part| llt.solve_in_place(&mut part));
    }
    right
}

fn factored(matrix: &Mat<f64>) -> Result<Llt<f64>, Error> {
    matrix.llt(Side::Lower).map_err(|_| Error::Undefined {
        what: "the state-space fit",
        reason: "a covariance of the beliefs is no longer positive: the scores are too extreme or too few".into(),
    })
}

/// Both halves alike: rounding must not build up over thousands of steps.
fn symmetric(matrix: &mut Mat<f64>) {
    for column in 1..matrix.ncols() {
        for row in 0..column {
            let mean = 0.5 * (matrix[(row, column)] + matrix[(column, row)]);
            matrix[(row, column)] = mean;
            matrix[(column, row)] = mean;
        }
    }
}

impl Dynamics {
    fn size(&self) -> usize {
        self.agents * self.ratios
    }

    /// Bᵀ applied to every ratio of the rows of a D × n matrix.
    pub(crate) fn heard(&self, matrix: MatRef<'_, f64>) -> Mat<f64> {
        let mut out = Mat::zeros(matrix.nrows(), matrix.ncols());
        for ratio in 0..self.ratios {
            let rows = ratio * self.agents;
            let into = out.as_mut().subrows_mut(rows, self.agents);
            product(into, Accum::Replace, self.hears.transpose(), matrix.subrows(rows, self.agents), 1.0);
        }
        out
    }

    /// Bᵀx + d, and what the mood adds to a step.
    fn next_mean(&self, known: &[f64], step: usize) -> Vec<f64> {
        let heard = self.heard(MatRef::from_column_major_slice(known, known.len(), 1));
        let mut mean: Vec<f64> =
            heard.col_as_slice(0).iter().zip(&self.drift).map(|(heard, drift)| heard + drift).collect();
        if let Some(sway) = &self.sway {
            sway.add(step, self.agents, 1.0, &mut mean);
        }
        mean
    }

    /// Adds Q to the covariance of a frame.
    fn stir(&self, covariance: &mut Mat<f64>) {
        for (agent, block) in self.innovation.iter().enumerate() {
            for h in 0..self.ratios {
                for g in 0..self.ratios {
                    covariance[(h * self.agents + agent, g * self.agents + agent)] += block[(h, g)];
                }
            }
        }
    }

    /// Goes through the first `steps` frames of a panel. With `keep` the covariances are kept for the smoother.
    pub(crate) fn filter(&self, panel: &Panel, steps: usize, keep: bool) -> Result<Filtered, Error> {
        let (agents, ratios, size) = (self.agents, self.ratios, self.size());
        if keep {
            self.affordable(steps)?;
        }
        let mut out = Filtered {
            log_likelihood: 0.0,
            forecast: Vec::with_capacity(steps * size),
            known: Vec::with_capacity(steps * size),
            spreads: Vec::with_capacity(if keep { steps } else { 0 }),
        };
        let mut mean = self.start.clone();
        let mut covariance = Mat::from_fn(size, size, |row, column| if row == column { self.spread[row] } else { 0.0 });
        for step in 0..steps {
            watch::check()?;
            if step > 0 {
                mean = self.next_mean(&mean, step);
                let half = self.heard(covariance.as_ref());
                let mut next = self.heard(half.transpose());
                self.stir(&mut next);
                symmetric(&mut next);
                covariance = next;
            }
            out.forecast.extend_from_slice(&mean);
            let forecast = keep.then(|| covariance.clone());
            let spoken: Vec<usize> = (0..agents).filter(|&agent| panel.posts(step, agent) > 0).collect();
            if !spoken.is_empty() {
                let entries: Vec<usize> =
                    (0..ratios).flat_map(|ratio| spoken.iter().map(move |&agent| ratio * agents + agent)).collect();
                let frame = &panel.cells()[step * size..(step + 1) * size];
                let surprise: Vec<f64> = entries.iter().map(|&entry| frame[entry] - mean[entry]).collect();
                let mut gain = Mat::zeros(size, entries.len());
                for (place, &entry) in entries.iter().enumerate() {
                    gain.col_as_slice_mut(place).copy_from_slice(covariance.col_as_slice(entry));
                }
                let mut met = Mat::from_fn(entries.len(), entries.len(), |row, column| {
                    covariance[(entries[row], entries[column])]
                });
                for (place, &agent) in spoken.iter().enumerate() {
                    let posts = f64::from(panel.posts(step, agent));
                    for h in 0..ratios {
                        for g in 0..ratios {
                            met[(h * spoken.len() + place, g * spoken.len() + place)] += self.noise[(h, g)] / posts;
                        }
                    }
                }
                let llt = factored(&met)?;
                let weighed = solved(&llt, gain.transpose().to_owned());
                let scaled = solved(&llt, Mat::from_fn(entries.len(), 1, |row, _| surprise[row]));
                let distance: f64 = surprise.iter().zip(scaled.col_as_slice(0)).map(|(a, b)| a * b).sum();
                let log_volume: f64 = (0..entries.len()).map(|row| 2.0 * llt.L()[(row, row)].ln()).sum::<f64>();
                out.log_likelihood -=
                    0.5 * (distance + log_volume + entries.len() as f64 * (2.0 * std::f64::consts::PI).ln());
                let moved = &gain * &scaled;
                mean.iter_mut().zip(moved.col_as_slice(0)).for_each(|(mean, moved)| *mean += moved);
                product(covariance.as_mut(), Accum::Add, gain.as_ref(), weighed.as_ref(), -1.0);
                symmetric(&mut covariance);
            }
            out.known.extend_from_slice(&mean);
            if let Some(forecast) = forecast {
                out.spreads.push(Spread { forecast, known: covariance.clone() });
            }
        }
        Ok(out)
    }

    fn affordable(&self, steps: usize) -> Result<(), Error> {
        let bytes = 16.0 * (self.size() as f64).powi(2) * steps as f64;
        if bytes <= MOST_BYTES {
            return Ok(());
        }
        let reason = format!(
            "{} agents over {steps} steps take {:.0} GB of covariances; use longer bins or fewer agents, or carry silence forward and learn with the whitened method",
            self.agents,
            bytes / 1e9
        );
        Err(Error::Undefined { what: "a state-space fit of this size", reason })
    }

    /// Goes back from the last frame. `borders`: the stretches of transitions, each from its first step to the next border;
    /// the first is 1 and the last is one past the last step.
    pub(crate) fn smooth(&self, panel: &Panel, filtered: &Filtered, borders: &[usize]) -> Result<Smoothed, Error> {
        let (agents, ratios, size) = (self.agents, self.ratios, self.size());
        let steps = filtered.spreads.len();
        let mut frames = filtered.known.clone();
        let mut spread = filtered.spreads[steps - 1].known.clone();
        let mut noise = (Mat::zeros(ratios, ratios), 0);
        let mut blurs: Vec<Blur> = (1..borders.len()).map(|_| Blur::none(agents, ratios)).collect();
        let mut stretch = blurs.len();
        self.residuals(panel, steps - 1, &frames, &spread, &mut noise);
        for step in (0..steps - 1).rev() {
            watch::check()?;
            while stretch > 0 && borders[stretch] > step + 1 {
                stretch -= 1;
            }
            let Spread { known, .. } = &filtered.spreads[step];
            let ahead = &filtered.spreads[step + 1].forecast;
            // J = P_f Bᶠ (P⁻)⁻¹, held as its transpose.
            let crossed = self.heard(known.as_ref());
            let back = solved(&factored(ahead)?, crossed.clone());
            let mut difference = Mat::zeros(size, 1);
            for row in 0..size {
                difference[(row, 0)] = frames[(step + 1) * size + row] - filtered.forecast[(step + 1) * size + row];
            }
            let moved = back.transpose() * &difference;
            frames[step * size..(step + 1) * size]
                .iter_mut()
                .zip(moved.col_as_slice(0))
                .for_each(|(mean, moved)| *mean += moved);
            // Cov(x_t, x_{t+1}) = J P_s(t+1); then P_s(t) = P_f + (J P_s(t+1) − P_f Bᶠ)Jᵀ.
            let mut lagged = Mat::zeros(size, size);
            product(lagged.as_mut(), Accum::Replace, back.transpose(), spread.as_ref(), 1.0);
            let blur = &mut blurs[stretch];
            blur.present(&spread, agents, ratios);
            blur.lagged += &lagged;
            lagged -= crossed.transpose();
            let mut before = known.clone();
            product(before.as_mut(), Accum::Add, lagged.as_ref(), back.as_ref(), 1.0);
            symmetric(&mut before);
            spread = before;
            blur.past += &spread;
            self.residuals(panel, step, &frames, &spread, &mut noise);
        }
        // The network explains what the mood does not.
        let mut after = frames[size..].to_vec();
        if let Some(sway) = &self.sway {
            after.chunks_mut(size).zip(1..).for_each(|(frame, step)| sway.add(step, agents, -1.0, frame));
        }
        let stretches = blurs
            .iter()
            .zip(borders.windows(2))
            .map(|(blur, border)| {
                let mut moments = Moments::empty(agents, ratios);
                let transitions = (border[0] - 1) * size..(border[1] - 1) * size;
                moments.push_pairs(&frames[transitions.clone()], &after[transitions]);
                moments.blur(&blur.past, &blur.lagged, &blur.present);
                moments
            })
            .collect();
        Ok(Smoothed { frames, stretches, noise })
    }

    /// Adds what one frame says of the noise of a post.
    fn residuals(&self, panel: &Panel, step: usize, frames: &[f64], spread: &Mat<f64>, noise: &mut (Mat<f64>, usize)) {
        let (agents, ratios, size) = (self.agents, self.ratios, self.size());
        for agent in (0..agents).filter(|&agent| panel.posts(step, agent) > 0) {
            let posts = f64::from(panel.posts(step, agent));
            let entry = |ratio: usize| ratio * agents + agent;
            let left = |ratio: usize| panel.cells()[step * size + entry(ratio)] - frames[step * size + entry(ratio)];
            for h in 0..ratios {
                for g in 0..ratios {
                    noise.0[(h, g)] += posts * (left(h) * left(g) + spread[(entry(h), entry(g))]);
                }
            }
            noise.1 += 1;
        }
    }
}

/// What is not known of the frames of a stretch: summed covariances.
struct Blur {
    past: Mat<f64>,
    lagged: Mat<f64>,
    /// N blocks of H × H.
    present: Vec<f64>,
}

impl Blur {
    fn none(agents: usize, ratios: usize) -> Self {
        let size = agents * ratios;
        Blur {
            past: Mat::zeros(size, size),
            lagged: Mat::zeros(size, size),
            present: vec![0.0; agents * ratios * ratios],
        }
    }

    fn present(&mut self, spread: &Mat<f64>, agents: usize, ratios: usize) {
        for (cell, out) in self.present.iter_mut().enumerate() {
            let (agent, h, g) = (cell / (ratios * ratios), cell / ratios % ratios, cell % ratios);
            *out += spread[(h * agents + agent, g * agents + agent)];
        }
    }
}
