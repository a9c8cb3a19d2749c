//! Lagged second moments: sufficient statistics of the linear learners, which can be added.
//!
//! In: frames of a panel, a stretch at a time. Out: centred Σ x xᵀ, Σ x yᵀ and Σ y_k y_kᵀ with x = Λ_{i−1}, y = Λ_i,
//! mergeable across stretches and machines, and discounted by a factor.
//!
//! A frame is one vector of D = N·H numbers, ratio by ratio; entry `h·N + k` is log-ratio h of agent k. Every stretch is
//! centred on its own mean before it is squared, and stretches are merged by the exact formula for differing means, so a
//! large constant opinion costs no digits.

use crate::{Error, Panel, progress};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Frames per block; large, because the sums are read and written once per block.
const FRAMES_PER_BLOCK: usize = 1024;

/// Columns of a moment per task; fixed, so that the thread count changes no bit.
const COLUMNS_PER_TASK: usize = 128;

/// Bytes that moments may take together.
const MOST_BYTES: f64 = 64e9;

/// An error when this many moments of this many series would not fit into memory.
pub(crate) fn affordable(series: usize, count: usize, cure: &str) -> Result<(), Error> {
    let bytes = 16.0 * (series as f64).powi(2) * count as f64;
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    let reason = format!("second moments of {series} series, {count} times, take {:.0} GB; {cure}", bytes / 1e9);
    Err(Error::Undefined { what: "a fit of this size", reason })
}

/// Weighted, centred lagged moments of N agents and H log-ratios.
///
/// ```
/// use headwater::{Panel, Roster, learn::moments::Moments};
/// let roster = Roster::numbered(2, 2).unwrap();
/// let panel = Panel::complete(roster, vec![1.0, 0.0, 2.0, 1.0, 4.0, 1.0]).unwrap();
/// let moments = Moments::from_panel(&panel, 1..3);
/// // x₀ is 1, 2 and y₀ is 2, 4: the centred products are ½ and 1.
/// assert_eq!((moments.weight(), moments.xx(0, 0), moments.xy(0, 0)), (2.0, 0.5, 1.0));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    agents: usize,
    ratios: usize,
    weight: f64,
    /// Means estimated beyond one: of several episodes each is centred on its own.
    #[serde(default)]
    more_means: f64,
    /// The first frame seen; means are kept relative to it, so that their differences keep all digits.
    origin: Vec<f64>,
    mean_x: Vec<f64>,
    mean_y: Vec<f64>,
    /// D × D, symmetric.
    xx: Vec<f64>,
    /// D × D in column order: rows x, columns y.
    xy: Vec<f64>,
    /// N blocks of H × H.
    yy: Vec<f64>,
}

impl Moments {
    /// Moments of no transitions.
    pub fn empty(agents: usize, ratios: usize) -> Self {
        let size = agents * ratios;
        Moments {
            agents,
            ratios,
            weight: 0.0,
            more_means: 0.0,
            origin: Vec::new(),
            mean_x: vec![0.0; size],
            mean_y: vec![0.0; size],
            xx: vec![0.0; size * size],
            xy: vec![0.0; size * size],
            yy: vec![0.0; agents * ratios * ratios],
        }
    }

    /// Of the transitions into these steps of a complete panel (step 0 has none).
    pub fn from_panel(panel: &Panel, steps: Range<usize>) -> Self {
        let mut moments = Moments::empty(panel.agents(), panel.ratios());
        moments.push(panel, steps);
        moments
    }

    /// N.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// H.
    pub fn ratios(&self) -> usize {
        self.ratios
    }

    /// Number of transitions, or what discounting left of it.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// What a sum of squared residuals is divided by for a covariance: the transitions, less the means of further episodes.
    pub(crate) fn freedom(&self) -> f64 {
        self.weight - self.more_means
    }

    /// Mean of x, ratio by ratio.
    pub fn mean_x(&self) -> Vec<f64> {
        self.mean_x.iter().zip(&self.origin).map(|(mean, origin)| mean + origin).collect()
    }

    /// Mean of y, ratio by ratio.
    pub fn mean_y(&self) -> Vec<f64> {
        self.mean_y.iter().zip(&self.origin).map(|(mean, origin)| mean + origin).collect()
    }

    /// Centred Σ x_a x_b.
    pub fn xx(&self, a: usize, b: usize) -> f64 {
        self.xx[b * self.size() + a]
    }

    /// Centred Σ x_a y_b.
    pub fn xy(&self, a: usize, b: usize) -> f64 {
        self.xy[b * self.size() + a]
    }

    /// Column b of Σ x xᵀ.
    pub fn xx_column(&self, b: usize) -> &[f64] {
        &self.xx[b * self.size()..(b + 1) * self.size()]
    }

    /// Column b of Σ x yᵀ.
    pub fn xy_column(&self, b: usize) -> &[f64] {
        &self.xy[b * self.size()..(b + 1) * self.size()]
    }

    /// Centred Σ y_k y_kᵀ of one agent, H × H.
    pub fn yy(&self, agent: usize) -> &[f64] {
        let size = self.ratios * self.ratios;
        &self.yy[agent * size..(agent + 1) * size]
    }

    fn size(&self) -> usize {
        self.agents * self.ratios
    }

    /// Adds the transitions into these steps. Cost: 3D² operations a step, as matrix products. Of several episodes each is
    /// centred on its own mean, and no transition crosses from one to the next.
    pub fn push(&mut self, panel: &Panel, steps: Range<usize>) {
        if panel.episodes().is_single() {
            let first = steps.start.max(1);
            if first < steps.end {
                self.push_frames(&panel.cells()[(first - 1) * self.size()..steps.end * self.size()]);
            }
            return;
        }
        for range in panel.episodes().ranges() {
            let (first, end) = (steps.start.max(range.start + 1), steps.end.min(range.end));
            if first < end {
                let mut one = Moments::empty(self.agents, self.ratios);
                one.push_frames(&panel.cells()[(first - 1) * self.size()..end * self.size()]);
                self.join_centred(&one);
            }
        }
    }

    /// Adds another episode, which keeps its own mean: centred products are added, and the mean becomes that of all
    /// transitions.
    pub(crate) fn join(&mut self, other: &Moments) {
        if self.weight == 0.0 {
            self.clone_from(other);
            return;
        }
        for (sum, part) in [(&mut self.xx, &other.xx), (&mut self.xy, &other.xy), (&mut self.yy, &other.yy)] {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        let total = self.weight + other.weight;
        if total > 0.0 {
            let part = other.weight / total;
            let moved: Vec<f64> = other.origin.iter().zip(&self.origin).map(|(theirs, ours)| theirs - ours).collect();
            for (mean, theirs) in [(&mut self.mean_x, &other.mean_x), (&mut self.mean_y, &other.mean_y)] {
                let theirs = theirs.iter().zip(&moved).map(|(mean, moved)| mean + moved);
                mean.iter_mut().zip(theirs).for_each(|(mean, theirs)| *mean += part * (theirs - *mean));
            }
        }
        self.weight = total;
    }

    /// The same of observed frames: the mean of a further episode takes a degree of freedom.
    pub(crate) fn join_centred(&mut self, other: &Moments) {
        let further = self.weight > 0.0;
        self.join(other);
        if further && other.weight > 0.0 {
            self.more_means += 1.0 + other.more_means;
        }
    }

    /// Adds a run of frames in column order, one transition fewer than frames.
    pub fn push_frames(&mut self, frames: &[f64]) {
        let size = self.size();
        if frames.len() > size {
            self.push_pairs(&frames[..frames.len() - size], &frames[size..]);
        }
    }

    /// Adds transitions, each from a frame of the first list to one of the second.
    pub(crate) fn push_pairs(&mut self, before: &[f64], after: &[f64]) {
        let block = FRAMES_PER_BLOCK * self.size();
        let blocks = before.chunks(block).zip(after.chunks(block));
        // After a request to stop the moments are not needed: the fit fails at its next check.
        blocks.take_while(|_| !progress::stopped()).for_each(|(before, after)| self.push_block(before, after));
        let size = self.size();
        mirror(MatMut::from_column_major_slice_mut(&mut self.xx, size, size));
    }

    fn push_block(&mut self, before: &[f64], after: &[f64]) {
        let size = self.size();
        let count = before.len() / size;
        if self.origin.is_empty() {
            self.origin = before[..size].to_vec();
        }
        let ((x, mean_x), (y, mean_y)) = rayon::join(|| centred(before, &self.origin), || centred(after, &self.origin));
        let (x_mat, y_mat) =
            (MatRef::from_column_major_slice(&x, size, count), MatRef::from_column_major_slice(&y, size, count));
        let chunk = COLUMNS_PER_TASK * size;
        self.xx.par_chunks_mut(chunk).zip(self.xy.par_chunks_mut(chunk)).enumerate().for_each(|(task, (xx, xy))| {
            let (first, columns) = (task * COLUMNS_PER_TASK, xx.len() / size);
            // Only the part on and below the diagonal; the rest is its mirror.
            let below = MatMut::from_column_major_slice_mut(xx, size, columns).subrows_mut(first, size - first);
            let right = x_mat.subrows(first, columns).transpose();
            matmul(below, Accum::Add, x_mat.subrows(first, size - first), right, 1.0, Par::Seq);
            let out = MatMut::from_column_major_slice_mut(xy, size, columns);
            matmul(out, Accum::Add, x_mat, y_mat.subrows(first, columns).transpose(), 1.0, Par::Seq);
        });
        for frame in y.chunks_exact(size) {
            for agent in 0..self.agents {
                for row in 0..self.ratios {
                    for column in 0..self.ratios {
                        self.yy[(agent * self.ratios + row) * self.ratios + column] +=
                            frame[row * self.agents + agent] * frame[column * self.agents + agent];
                    }
                }
            }
        }
        self.shift(count as f64, &mean_x, &mean_y);
    }

    /// Accounts for the difference of means when `weight` centred transitions join: Σ += ab/(a+b)·d dᵀ.
    fn shift(&mut self, weight: f64, mean_x: &[f64], mean_y: &[f64]) {
        let total = self.weight + weight;
        if total == 0.0 {
            return;
        }
        let factor = self.weight * weight / total;
        let part = weight / total;
        let dx: Vec<f64> = mean_x.iter().zip(&self.mean_x).map(|(new, old)| new - old).collect();
        let dy: Vec<f64> = mean_y.iter().zip(&self.mean_y).map(|(new, old)| new - old).collect();
        if factor > 0.0 {
            let size = self.size();
            self.xx.par_chunks_mut(size).zip(self.xy.par_chunks_mut(size)).enumerate().for_each(|(b, (xx, xy))| {
                let (to_x, to_y) = (factor * dx[b], factor * dy[b]);
                for (a, d) in dx.iter().enumerate() {
                    xx[a] += to_x * d;
                    xy[a] += to_y * d;
                }
            });
            for agent in 0..self.agents {
                for row in 0..self.ratios {
                    for column in 0..self.ratios {
                        self.yy[(agent * self.ratios + row) * self.ratios + column] +=
                            factor * dy[row * self.agents + agent] * dy[column * self.agents + agent];
                    }
                }
            }
        }
        self.mean_x.iter_mut().zip(&dx).for_each(|(mean, d)| *mean += part * d);
        self.mean_y.iter_mut().zip(&dy).for_each(|(mean, d)| *mean += part * d);
        self.weight = total;
    }

    /// Adds another stretch of the same agents.
    pub fn merge(&mut self, other: &Moments) -> Result<(), Error> {
        if (other.agents, other.ratios) != (self.agents, self.ratios) {
            return Err(Error::Shape {
                what: "moments",
                met: format!("{}×{}", other.agents, other.ratios),
                wanted: format!("{}×{}", self.agents, self.ratios),
            });
        }
        for (sum, part) in [(&mut self.xx, &other.xx), (&mut self.xy, &other.xy), (&mut self.yy, &other.yy)] {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        if self.origin.is_empty() {
            self.origin.clone_from(&other.origin);
        }
        let moved: Vec<f64> = other.origin.iter().zip(&self.origin).map(|(theirs, ours)| theirs - ours).collect();
        let here = |mean: &[f64]| -> Vec<f64> { mean.iter().zip(&moved).map(|(mean, moved)| mean + moved).collect() };
        if other.weight > 0.0 {
            self.shift(other.weight, &here(&other.mean_x), &here(&other.mean_y));
        }
        Ok(())
    }

    /// Adds an earlier stretch with other means: products centred on each stretch's own mean are added, the means stay
    /// those of `self`.
    pub(crate) fn pool(&mut self, former: &Moments) {
        for (sum, part) in [(&mut self.xx, &former.xx), (&mut self.xy, &former.xy), (&mut self.yy, &former.yy)] {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        if self.origin.is_empty() {
            self.origin.clone_from(&former.origin);
            self.mean_x.clone_from(&former.mean_x);
            self.mean_y.clone_from(&former.mean_y);
        }
        self.weight += former.weight;
    }

    /// Adds the posterior covariances of latent frames: of x, of x with y, and of each agent's y.
    pub(crate) fn blur(&mut self, xx: &Mat<f64>, xy: &Mat<f64>, yy: &[f64]) {
        let size = self.size();
        for column in 0..size {
            let part = column * size..(column + 1) * size;
            self.xx[part.clone()].iter_mut().zip(xx.col_as_slice(column)).for_each(|(sum, part)| *sum += part);
            self.xy[part].iter_mut().zip(xy.col_as_slice(column)).for_each(|(sum, part)| *sum += part);
        }
        self.yy.iter_mut().zip(yy).for_each(|(sum, part)| *sum += part);
    }

    /// Multiplies the weight of all transitions so far by a factor.
    pub fn discount(&mut self, factor: f64) {
        self.weight *= factor;
        self.more_means *= factor;
        for sums in [&mut self.xx, &mut self.xy, &mut self.yy] {
            sums.iter_mut().for_each(|sum| *sum *= factor);
        }
    }
}

/// Copies the lower triangle to the upper one.
pub(crate) fn mirror(mut matrix: MatMut<'_, f64>) {
    /// Side of a tile that fits a cache.
    const TILE: usize = 32;
    let size = matrix.ncols();
    for first in (0..size).step_by(TILE) {
        for second in (0..=first).step_by(TILE) {
            for column in first..(first + TILE).min(size) {
                for row in second..(second + TILE).min(column) {
                    matrix[(row, column)] = matrix[(column, row)];
                }
            }
        }
    }
}

/// Frames less their mean, and that mean relative to the origin.
fn centred(frames: &[f64], origin: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let size = origin.len();
    let count = (frames.len() / size) as f64;
    let mut mean = vec![0.0; size];
    for frame in frames.chunks_exact(size) {
        mean.iter_mut().zip(frame.iter().zip(origin)).for_each(|(mean, (value, origin))| *mean += value - origin);
    }
    mean.iter_mut().for_each(|mean| *mean /= count);
    let mut out = Vec::with_capacity(frames.len());
    for frame in frames.chunks_exact(size) {
        out.extend(frame.iter().zip(origin).zip(&mean).map(|((value, origin), mean)| value - origin - mean));
    }
    (out, mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{WorldParams, simulate};
    use proptest::prelude::*;

    fn panel(agents: usize, steps: usize, seed: u64) -> Panel {
        let params =
            WorldParams { agents, steps, seed, hypotheses: 3, edge_probability: 0.5, ..WorldParams::default() };
        simulate(&params).unwrap().0
    }

    fn close(a: &Moments, b: &Moments, tolerance: f64) {
        assert!((a.weight - b.weight).abs() < 1e-9);
        for (a, b, scale) in [(&a.xx, &b.xx, 1.0), (&a.xy, &b.xy, 1.0), (&a.yy, &b.yy, 1.0)] {
            let most = a.iter().fold(scale * 1e-300, |most: f64, value| most.max(value.abs()));
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * most));
        }
    }

    #[test]
    fn moments_by_definition() {
        let panel = panel(4, 700, 1);
        let moments = Moments::from_panel(&panel, 1..700);
        let value = |step: usize, entry: usize| panel.frame(step)[(entry % 4, entry / 4)];
        let mean = |from: usize| -> Vec<f64> {
            (0..8).map(|entry| (from..from + 699).map(|step| value(step, entry)).sum::<f64>() / 699.0).collect()
        };
        let (mean_x, mean_y) = (mean(0), mean(1));
        for a in 0..8 {
            for b in 0..8 {
                let xx: f64 = (0..699).map(|t| (value(t, a) - mean_x[a]) * (value(t, b) - mean_x[b])).sum();
                let xy: f64 = (0..699).map(|t| (value(t, a) - mean_x[a]) * (value(t + 1, b) - mean_y[b])).sum();
                assert!((moments.xx(a, b) - xx).abs() < 1e-12 && (moments.xy(a, b) - xy).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn episodes_are_centred_apart_and_not_joined_by_a_transition() {
        let panel = panel(4, 30, 5).in_episodes(vec![("a".into(), 12), ("b".into(), 18)]).unwrap();
        let (whole, apart) = (Moments::from_panel(&panel, 1..30), panel.by_episode());
        let (a, b) = (Moments::from_panel(&apart[0], 1..12), Moments::from_panel(&apart[1], 1..18));
        assert_eq!((whole.weight(), whole.freedom(), a.freedom()), (28.0, 27.0, 11.0));
        for row in 0..8 {
            for column in 0..8 {
                assert!((whole.xx(row, column) - a.xx(row, column) - b.xx(row, column)).abs() < 1e-12);
                assert!((whole.xy(row, column) - a.xy(row, column) - b.xy(row, column)).abs() < 1e-12);
            }
            let mean = (11.0 * a.mean_x()[row] + 17.0 * b.mean_x()[row]) / 28.0;
            assert!((whole.mean_x()[row] - mean).abs() < 1e-12);
            let mean = (11.0 * a.mean_y()[row] + 17.0 * b.mean_y()[row]) / 28.0;
            assert!((whole.mean_y()[row] - mean).abs() < 1e-12);
        }
        assert_eq!(Moments::from_panel(&panel, 12..13).weight(), 0.0, "no transition leads into the second episode");
        assert_eq!(Moments::from_panel(&panel, 5..20).weight(), 14.0);
    }

    #[test]
    fn a_large_mean_eats_no_digits() {
        let panel = panel(5, 900, 2);
        // A power of two, so that adding it rounds every number alike and only the sums are tested.
        let offset = f64::from(1 << 20);
        let rounded: Vec<f64> = panel.cells().iter().map(|value| (value + offset) - offset).collect();
        let lifted: Vec<f64> = panel.cells().iter().map(|value| value + offset).collect();
        let of =
            |cells: Vec<f64>| Moments::from_panel(&Panel::complete(panel.roster().clone(), cells).unwrap(), 1..900);
        close(&of(rounded), &of(lifted), 1e-12);
    }

    #[test]
    fn discounting_weighs_the_past() {
        let panel = panel(3, 300, 3);
        let mut twice = Moments::from_panel(&panel, 1..150);
        twice.merge(&Moments::from_panel(&panel, 1..150)).unwrap();
        twice.discount(0.5);
        close(&twice, &Moments::from_panel(&panel, 1..150), 1e-12);
        assert!(twice.merge(&Moments::empty(4, 2)).is_err());
    }

    proptest! {
        #[test]
        fn a_merge_is_the_whole(cut in 2usize..598, seed in 0u64..20) {
            let panel = panel(3, 600, seed);
            let mut parts = Moments::from_panel(&panel, 1..cut);
            parts.merge(&Moments::from_panel(&panel, cut..600)).unwrap();
            close(&parts, &Moments::from_panel(&panel, 1..600), 1e-11);
        }
    }
}
