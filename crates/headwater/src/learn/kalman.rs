//! Kalman filter and smoother: latent beliefs given irregular, noisy observations.
//!
//! In: [`Dynamics`] and the first steps of a panel, silence and post counts included. Out: one-step forecasts with the
//! log-likelihood ([`Filtered`]), and then the expected lagged moments, stretch by stretch ([`Smoothed`]).
//!
//! The state is a frame: D = N·H numbers, ratio by ratio. Legend: x_t = Bᵀx_{t−1} + d + η, η ~ N(0, Q), Q one H × H block
//! per agent; an agent with c posts shows z = x + v, v ~ N(0, Ω/c). Where a trend m_t is given, it adds β m_t to x_t.

use super::cholesky::Cholesky;
use super::common_trend::CommonTrend;
use super::moments::{Moments, mirror};
use crate::{Error, Panel, progress};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Tasks that a large product is cut into; fixed, so that the thread count changes no bit.
const TASKS: usize = 6;

/// Columns below which a product is one task.
const FEW_COLUMNS: usize = 64;

/// Backward steps prepared at a time, each as one task.
const STEPS_AT_A_TIME: usize = 16;

/// Bytes that the covariances of all steps may take.
const MOST_BYTES: f64 = 8e9;

/// Parameters of the state equation and of the observation noise.
#[derive(Debug, Clone)]
pub(crate) struct Dynamics {
    pub(crate) agents: usize,
    pub(crate) ratios: usize,
    /// B = (1−δ)A, N × N: column = listener.
    pub(crate) hears: Mat<f64>,
    /// d = δL̄, D numbers for each level of the episodes.
    pub(crate) drift: Vec<f64>,
    /// Q, one H × H block per agent.
    pub(crate) innovation: Vec<Mat<f64>>,
    /// Ω, H × H, of a single post.
    pub(crate) noise: Mat<f64>,
    /// Mean of the first frame of an episode, D numbers for each level.
    pub(crate) start: Vec<f64>,
    /// Variances of the first frame of an episode.
    pub(crate) spread: Vec<f64>,
    /// Common trends, where they are controlled for.
    pub(crate) trend_loading: Option<TrendLoading>,
}

/// A common trend and the loadings on it.
#[derive(Debug, Clone)]
pub(crate) struct TrendLoading {
    pub(crate) trend: Arc<CommonTrend>,
    /// One number per group and ratio: group by group.
    pub(crate) loading: Vec<f64>,
}

impl TrendLoading {
    /// Adds `times` the contribution of the trend to a frame.
    fn add(&self, step: usize, agents: usize, times: f64, frame: &mut [f64]) {
        let ratios = frame.len() / agents;
        for (cell, (out, trend)) in frame.iter_mut().zip(self.trend.at(step)).enumerate() {
            *out += times * self.loading[self.trend.groups[cell % agents] * ratios + cell / agents] * trend;
        }
    }
}

/// Filtered beliefs.
#[derive(Debug)]
pub(crate) struct Filtered {
    pub(crate) log_likelihood: f64,
    /// Log-density of what is said at each step given the steps before; these add up to the likelihood.
    pub(crate) log_densities: Vec<f64>,
    /// T × D: means of each frame given the frames before.
    pub(crate) forecast: Vec<f64>,
    /// T × D: the same given the frame itself as well.
    known: Vec<f64>,
    /// Covariances P that belong to the latter, when they were asked for.
    spreads: Vec<Mat<f64>>,
    /// BᵀP of all but the last: the covariance of a forecast is made of it. Empty at the end of an episode.
    carried: Vec<Mat<f64>>,
}

/// Smoothed beliefs.
#[derive(Debug)]
pub(crate) struct Smoothed {
    /// T × D means.
    pub(crate) frames: Vec<f64>,
    /// Expected moments of each stretch asked for.
    pub(crate) stretches: Vec<Moments>,
    /// Σ c·E[(z−x)(z−x)ᵀ] over the observations, and their number.
    pub(crate) noise: (Mat<f64>, usize),
}

fn columns_per_task(columns: usize) -> usize {
    if columns <= FEW_COLUMNS { columns.max(1) } else { columns.div_ceil(TASKS).next_multiple_of(4) }
}

/// `out = left·right`, on all threads when it is large.
fn product(out: MatMut<'_, f64>, left: MatRef<'_, f64>, right: MatRef<'_, f64>) {
    let width = columns_per_task(out.ncols());
    out.par_col_chunks_mut(width).enumerate().for_each(|(task, out)| {
        let right = right.subcols(task * width, out.ncols());
        matmul(out, Accum::Replace, left, right, 1.0, Par::Seq);
    });
}

/// `out (+)= alpha·left·right` where that is symmetric, on and below the diagonal. `first`: the column of the whole that
/// is the first of `out`.
fn lower_product(
    out: MatMut<'_, f64>,
    first: usize,
    add: Accum,
    left: MatRef<'_, f64>,
    right: MatRef<'_, f64>,
    alpha: f64,
) {
    let width = columns_per_task(out.ncols());
    out.par_col_chunks_mut(width).enumerate().for_each(|(task, out)| {
        let (begin, columns) = (task * width, out.ncols());
        let (top, rows) = (first + begin, left.nrows() - first - begin);
        matmul(
            out.subrows_mut(top, rows),
            add,
            left.subrows(top, rows),
            right.subcols(begin, columns),
            alpha,
            Par::Seq,
        );
    });
}

/// L of a covariance LLᵀ, on and below the diagonal.
fn factored(matrix: Mat<f64>) -> Result<Mat<f64>, Error> {
    Cholesky::new(matrix).map(Cholesky::into_lower).ok_or_else(|| Error::Undefined {
        what: "the state-space fit",
        reason: "a covariance of the beliefs is no longer positive: the scores are too extreme or too few".into(),
    })
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
            product(into, self.hears.transpose(), matrix.subrows(rows, self.agents));
        }
        out
    }

    /// Bᵀx + d, and what the trend adds to a step of a level.
    fn next_mean(&self, known: &[f64], step: usize, level: usize) -> Vec<f64> {
        let drift = &self.drift[level * self.size()..(level + 1) * self.size()];
        let heard = self.heard(MatRef::from_column_major_slice(known, known.len(), 1));
        let mut mean: Vec<f64> = heard.col_as_slice(0).iter().zip(drift).map(|(heard, drift)| heard + drift).collect();
        if let Some(trend_loading) = &self.trend_loading {
            trend_loading.add(step, self.agents, 1.0, &mut mean);
        }
        mean
    }

    /// The covariance of a forecast, BᵀPB + Q, of BᵀP.
    fn stirred(&self, carried: &Mat<f64>) -> Mat<f64> {
        let (agents, size) = (self.agents, self.size());
        let mut covariance = Mat::zeros(size, size);
        for ratio in 0..self.ratios {
            let out = covariance.as_mut().subcols_mut(ratio * agents, agents);
            let left = carried.as_ref().subcols(ratio * agents, agents);
            lower_product(out, ratio * agents, Accum::Replace, left, self.hears.as_ref(), 1.0);
        }
        mirror(covariance.as_mut());
        for (agent, block) in self.innovation.iter().enumerate() {
            for h in 0..self.ratios {
                for g in 0..self.ratios {
                    covariance[(h * agents + agent, g * agents + agent)] += block[(h, g)];
                }
            }
        }
        covariance
    }

    /// Filters the first `steps` frames of a panel. With `keep` the covariances are kept for the smoother.
    pub(crate) fn filter(&self, panel: &Panel, steps: usize, keep: bool) -> Result<Filtered, Error> {
        let (agents, ratios, size) = (self.agents, self.ratios, self.size());
        if keep {
            self.affordable(steps)?;
        }
        let mut out = Filtered {
            log_likelihood: 0.0,
            log_densities: vec![0.0; steps],
            forecast: Vec::with_capacity(steps * size),
            known: Vec::with_capacity(steps * size),
            spreads: Vec::new(),
            carried: Vec::new(),
        };
        let episodes = panel.episodes();
        let (mut mean, mut covariance, mut level) = (Vec::new(), Mat::zeros(0, 0), 0);
        for step in 0..steps {
            progress::check()?;
            if episodes.begins(step) {
                level = episodes.level(episodes.at(step));
                mean = self.start[level * size..(level + 1) * size].to_vec();
                covariance = Mat::from_fn(size, size, |row, column| if row == column { self.spread[row] } else { 0.0 });
                if keep && step > 0 {
                    out.carried.push(Mat::zeros(0, 0));
                }
            } else {
                mean = self.next_mean(&mean, step, level);
                let carried = self.heard(covariance.as_ref());
                covariance = self.stirred(&carried);
                if keep {
                    out.carried.push(carried);
                }
            }
            out.forecast.extend_from_slice(&mean);
            let spoken: Vec<usize> = (0..agents).filter(|&agent| panel.posts(step, agent) > 0).collect();
            if !spoken.is_empty() {
                let entries: Vec<usize> =
                    (0..ratios).flat_map(|ratio| spoken.iter().map(move |&agent| ratio * agents + agent)).collect();
                let frame = &panel.cells()[step * size..(step + 1) * size];
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
                // S = LLᵀ is the covariance of what is said; W = L⁻¹(P's rows of it) and s = L⁻¹(surprise) give the rest:
                // the mean moves by Wᵀs, P falls by WᵀW.
                let lower = factored(met)?;
                let mut weighed = Mat::from_fn(entries.len(), size, |row, column| covariance[(entries[row], column)]);
                weighed.par_col_chunks_mut(columns_per_task(size)).for_each(|part| {
                    solve_lower_triangular_in_place(lower.as_ref(), part, Par::Seq);
                });
                let mut scaled = Mat::from_fn(entries.len(), 1, |row, _| frame[entries[row]] - mean[entries[row]]);
                solve_lower_triangular_in_place(lower.as_ref(), scaled.as_mut(), Par::Seq);
                let distance: f64 = scaled.col_as_slice(0).iter().map(|value| value * value).sum();
                let log_volume: f64 = (0..entries.len()).map(|row| 2.0 * lower[(row, row)].ln()).sum::<f64>();
                let unlikely = 0.5 * (distance + log_volume + entries.len() as f64 * (2.0 * std::f64::consts::PI).ln());
                out.log_likelihood -= unlikely;
                out.log_densities[step] = -unlikely;
                let mut moved = Mat::zeros(size, 1);
                matmul(moved.as_mut(), Accum::Replace, weighed.transpose(), scaled.as_ref(), 1.0, Par::Seq);
                mean.iter_mut().zip(moved.col_as_slice(0)).for_each(|(mean, moved)| *mean += moved);
                lower_product(covariance.as_mut(), 0, Accum::Add, weighed.transpose(), weighed.as_ref(), -1.0);
                mirror(covariance.as_mut());
            }
            out.known.extend_from_slice(&mean);
            if keep {
                out.spreads.push(covariance.clone());
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

    /// Smooths backwards from the last frame. `blocks`: the stretches of transitions by the steps that they lead into, in
    /// order; together all steps but the first ones of episodes.
    pub(crate) fn smooth(
        &self,
        panel: &Panel,
        filtered: &Filtered,
        blocks: &[Range<usize>],
    ) -> Result<Smoothed, Error> {
        let (agents, ratios, size) = (self.agents, self.ratios, self.size());
        let steps = filtered.spreads.len();
        let mut frames = filtered.known.clone();
        let mut spread = filtered.spreads[steps - 1].clone();
        let mut noise = (Mat::zeros(ratios, ratios), 0);
        let mut blurs: Vec<Blur> = blocks.iter().map(|_| Blur::none(agents, ratios)).collect();
        let mut stretch = blocks.len() - 1;
        self.residuals(panel, steps - 1, &frames, &spread, &mut noise);
        let mut ways: Vec<Option<Back>> = Vec::new();
        for step in (0..steps - 1).rev() {
            progress::check()?;
            while stretch > 0 && blocks[stretch].start > step + 1 {
                stretch -= 1;
            }
            if ways.is_empty() {
                let steps = (step + 1).saturating_sub(STEPS_AT_A_TIME)..step + 1;
                let back = |step: usize| match panel.episodes().begins(step + 1) {
                    true => Ok(None),
                    false => self.back(&filtered.carried[step]).map(Some),
                };
                ways = steps.into_par_iter().map(back).collect::<Result<_, Error>>()?;
            }
            let Some(back) = ways.pop() else { break };
            let Some(Back { ahead, gain }) = back else {
                // The next step begins another episode, which tells nothing about this one.
                spread.copy_from(&filtered.spreads[step]);
                self.residuals(panel, step, &frames, &spread, &mut noise);
                continue;
            };
            let mut difference = Mat::zeros(size, 1);
            for row in 0..size {
                difference[(row, 0)] = frames[(step + 1) * size + row] - filtered.forecast[(step + 1) * size + row];
            }
            let mut moved = Mat::zeros(size, 1);
            matmul(moved.as_mut(), Accum::Replace, gain.transpose(), difference.as_ref(), 1.0, Par::Seq);
            frames[step * size..(step + 1) * size]
                .iter_mut()
                .zip(moved.col_as_slice(0))
                .for_each(|(mean, moved)| *mean += moved);
            // P_s(t) = P + J(P_s(t+1) − P⁻)Jᵀ, and Cov(x_t, x_{t+1}) = JP_s(t+1) = J(P_s(t+1) − P⁻) + PB.
            let blur = &mut blurs[stretch];
            blur.present(&spread, agents, ratios);
            spread -= &ahead;
            let mut learned = ahead;
            product(learned.as_mut(), gain.transpose(), spread.as_ref());
            blur.lagged += &learned;
            blur.carried += &filtered.carried[step];
            spread.copy_from(&filtered.spreads[step]);
            lower_product(spread.as_mut(), 0, Accum::Add, learned.as_ref(), gain.as_ref(), 1.0);
            mirror(spread.as_mut());
            blur.past += &spread;
            self.residuals(panel, step, &frames, &spread, &mut noise);
        }
        // The network explains what the trend does not.
        let mut after = frames[size..].to_vec();
        if let Some(trend_loading) = &self.trend_loading {
            after.chunks_mut(size).zip(1..).for_each(|(frame, step)| trend_loading.add(step, agents, -1.0, frame));
        }
        let stretches = blurs
            .iter()
            .zip(blocks)
            .map(|(blur, block)| {
                let mut moments = Moments::empty(agents, ratios);
                let transitions = (block.start - 1) * size..(block.end - 1) * size;
                moments.push_pairs(&frames[transitions.clone()], &after[transitions]);
                moments.blur(&blur.past, &(&blur.lagged + blur.carried.transpose()), &blur.present);
                moments
            })
            .collect();
        Ok(Smoothed { frames, stretches, noise })
    }

    /// The smoother gain of a step, from its BᵀP.
    fn back(&self, carried: &Mat<f64>) -> Result<Back, Error> {
        progress::check()?;
        let ahead = self.stirred(carried);
        let lower = factored(ahead.clone())?;
        let mut gain = carried.clone();
        solve_lower_triangular_in_place(lower.as_ref(), gain.as_mut(), Par::Seq);
        solve_upper_triangular_in_place(lower.transpose(), gain.as_mut(), Par::Seq);
        Ok(Back { ahead, gain })
    }

    /// Adds the contribution of one frame to the noise of a post.
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

/// Backward step of the smoother.
struct Back {
    /// P⁻, the covariance of the forecast.
    ahead: Mat<f64>,
    /// Jᵀ = (P⁻)⁻¹BᵀP.
    gain: Mat<f64>,
}

/// Summed posterior covariances of the frames of a stretch.
struct Blur {
    past: Mat<f64>,
    /// Of x_t with x_{t+1}: this, and the transpose of BᵀP.
    lagged: Mat<f64>,
    carried: Mat<f64>,
    /// N blocks of H × H.
    present: Vec<f64>,
}

impl Blur {
    fn none(agents: usize, ratios: usize) -> Self {
        let size = agents * ratios;
        Blur {
            past: Mat::zeros(size, size),
            lagged: Mat::zeros(size, size),
            carried: Mat::zeros(size, size),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::noisy::{NoisyWorld, noisy};

    #[test]
    fn episodes_are_smoothed_apart() {
        let (panel, truth) = noisy(&NoisyWorld { agents: 4, steps: 50, seed: 3, ..NoisyWorld::default() }).unwrap();
        let panel = panel.in_episodes(vec![("a".into(), 27), ("b".into(), 23)]).unwrap();
        let hears = Mat::from_fn(4, 4, |speaker, listener| 0.9 * truth.combination.weight(speaker, listener));
        let numbers = |seed: usize| -> Vec<f64> { (0..4).map(|k| 0.1 * ((seed + 3 * k) as f64).sin()).collect() };
        let dynamics = |level: usize| Dynamics {
            agents: 4,
            ratios: 1,
            hears: hears.clone(),
            drift: numbers(level),
            innovation: (0..4).map(|k| Mat::from_fn(1, 1, |_, _| 0.1 + 0.05 * k as f64)).collect(),
            noise: Mat::from_fn(1, 1, |_, _| 0.3),
            start: numbers(10 + level),
            spread: vec![0.5; 4],
            trend_loading: None,
        };
        let (one, other) = (dynamics(0), dynamics(1));
        let both = Dynamics {
            drift: [one.drift.clone(), other.drift.clone()].concat(),
            start: [one.start.clone(), other.start.clone()].concat(),
            ..dynamics(0)
        };
        let whole = both.filter(&panel, 50, true).unwrap();
        let smoothed = both.smooth(&panel, &whole, &[1..15, 15..27, 28..36, 36..50]).unwrap();
        let (mut log_likelihood, mut frames) = (0.0, Vec::new());
        let mut noise = 0.0;
        let mut stretches = Vec::new();
        for (dynamics, episode, blocks) in
            [(&one, &panel.by_episode()[0], &[1..15, 15..27][..]), (&other, &panel.by_episode()[1], &[1..9, 9..23][..])]
        {
            let filtered = dynamics.filter(episode, episode.steps(), true).unwrap();
            log_likelihood += filtered.log_likelihood;
            let found = dynamics.smooth(episode, &filtered, blocks).unwrap();
            noise += found.noise.0[(0, 0)];
            frames.extend(found.frames);
            stretches.extend(found.stretches);
        }
        assert!((whole.log_likelihood - log_likelihood).abs() < 1e-9, "{} {log_likelihood}", whole.log_likelihood);
        // What is said at the last steps given the others is the rest of the likelihood.
        let (steps, all) = (panel.steps(), &whole.log_densities);
        let before = both.filter(&panel, steps - 3, false).unwrap().log_likelihood;
        let last: f64 = all[steps - 3..].iter().sum();
        assert!((whole.log_likelihood - before - last).abs() < 1e-9, "{last}");
        assert!(smoothed.frames.iter().zip(&frames).all(|(met, wanted)| (met - wanted).abs() < 1e-12));
        assert!((smoothed.noise.0[(0, 0)] - noise).abs() < 1e-9);
        assert_eq!(smoothed.stretches.len(), 4);
        for (met, wanted) in smoothed.stretches.iter().zip(&stretches) {
            assert_eq!(met.weight(), wanted.weight());
            for cell in 0..16 {
                let (row, column) = (cell / 4, cell % 4);
                assert!((met.xx(row, column) - wanted.xx(row, column)).abs() < 1e-10);
                assert!((met.xy(row, column) - wanted.xy(row, column)).abs() < 1e-10);
            }
            assert!((0..4).all(|agent| (met.yy(agent)[0] - wanted.yy(agent)[0]).abs() < 1e-10));
        }
    }
}
