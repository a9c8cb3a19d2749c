//! The autoregressive baseline: each agent forecast from its own past.
//!
//! In: the first steps of a panel, silence and post counts included. Out: one-step forecasts of every log-ratio of every
//! agent from its own past alone. Each series is an AR(1) observed with the noise of its posts, fitted by
//! expectation-maximisation; the noise of a post is common to all agents, as in the network's model, so that the baseline
//! filters noise as well as the network does and any improvement of the network is due to the other agents.
//!
//! Legend: x_t = φx_{t−1} + d + βm_t + η, η ~ N(0, q), m the trend where one is given; with c posts z = x + v,
//! v ~ N(0, σ²/c).

use super::common_trend::CommonTrend;
use super::state_space::SeriesSummary;
use crate::Panel;
use std::ops::Range;

/// Rounds of expectation-maximisation.
const ROUNDS: usize = 60;

/// Largest |φ|.
const LARGEST_SLOPE: f64 = 0.9999;

/// Initial φ.
const FIRST_SLOPE: f64 = 0.8;

/// Smallest variance, relative to the observed one.
const SMALLEST_VARIANCE: f64 = 1e-9;

/// One log-ratio of one agent.
#[derive(Debug, Clone)]
struct Ar1Series {
    slope: f64,
    /// Of each level of the episodes.
    drift: Vec<f64>,
    news: f64,
    /// Mean of the first belief of an episode, by level.
    start: Vec<f64>,
    /// Variance of the first belief, and the scale below which variances are rounding.
    spread: f64,
}

/// An episode: its steps, how many of them are seen, and its level.
type Part = (Range<usize>, usize, usize);

/// The observation of a step: the value and its number of posts; none for silence.
type Said = Option<(f64, f64)>;

/// Sums of one pass over all series.
#[derive(Debug, Default)]
struct PassSums {
    residuals: f64,
    count: f64,
    /// Per group: products of the trend with the residuals, and with itself.
    trend: Vec<(f64, f64)>,
}

impl Ar1Series {
    /// One-step forecasts with their variances, and filtered values with theirs, in an episode.
    fn filter(&self, said: &[Said], push: &[f64], noise: f64, level: usize) -> Vec<[f64; 4]> {
        let (mut mean, mut variance) = (self.start[level], self.spread);
        let mut out = Vec::with_capacity(said.len());
        for (step, said) in said.iter().enumerate() {
            if step > 0 {
                mean = self.slope * mean + self.drift[level] + push[step];
                variance = self.slope * self.slope * variance + self.news;
            }
            let (forecast, before) = (mean, variance);
            if let Some((value, posts)) = said {
                let gain = variance / (variance + noise / posts);
                mean += gain * (value - mean);
                variance *= 1.0 - gain;
            }
            out.push([forecast, before, mean, variance]);
        }
        out
    }

    /// One round of expectation-maximisation: smooths, then takes the likeliest parameters.
    ///
    /// `push` is the contribution of the trend to each step. Returns the smoothed beliefs of the steps that are seen.
    fn round(&mut self, parts: &[Part], said: &[Said], push: &[f64], noise: f64, sums: &mut PassSums) -> Vec<f64> {
        let levels = self.drift.len();
        let mut believed = vec![0.0; said.len()];
        // By level: sums of x, y, x², xy, y², transitions, and of first beliefs with their number.
        let mut level_sums = vec![[0.0; 8]; levels];
        for (range, seen, level) in parts.iter().filter(|(_, seen, _)| *seen > 0) {
            let seen = range.start..range.start + seen;
            let (said, push, believed) = (&said[seen.clone()], &push[seen.clone()], &mut believed[seen]);
            let filtered = self.filter(said, push, noise, *level);
            let last = filtered.len() - 1;
            let (mut mean, mut variance) = (filtered[last][2], filtered[last][3]);
            let [x, y, xx, xy, yy, count, first, firsts] = &mut level_sums[*level];
            let mut residual = |step: usize, mean: f64, variance: f64| {
                if let Some((value, posts)) = said[step] {
                    sums.residuals += posts * ((value - mean).powi(2) + variance);
                    sums.count += 1.0;
                }
            };
            residual(last, mean, variance);
            believed[last] = mean;
            for step in (0..last).rev() {
                let [_, _, known, spread] = filtered[step];
                let [forecast, ahead, ..] = filtered[step + 1];
                let back = self.slope * spread / ahead;
                let (next, next_variance) = (mean, variance);
                mean = known + back * (next - forecast);
                variance = spread + back * back * (next_variance - ahead);
                let lagged = back * next_variance;
                believed[step] = mean;
                let left = next - push[step + 1];
                *x += mean;
                *y += left;
                *xx += mean * mean + variance;
                *xy += mean * left + lagged;
                *yy += left * left + next_variance;
                residual(step, mean, variance);
            }
            *count += last as f64;
            *first += mean;
            *firsts += 1.0;
        }
        let (mut xx, mut xy, mut yy, mut transitions) = (0.0, 0.0, 0.0, 0.0);
        for [x, y, squares, products, later, count, ..] in level_sums.iter().filter(|sums| sums[5] > 0.0) {
            xx += squares - x * (x / count);
            xy += products - x * (y / count);
            yy += later - y * (y / count);
            transitions += count;
        }
        if xx > 0.0 {
            self.slope = (xy / xx).clamp(-LARGEST_SLOPE, LARGEST_SLOPE);
        }
        for (level, [x, y, _, _, _, count, first, firsts]) in level_sums.iter().enumerate() {
            if *count > 0.0 {
                self.drift[level] = y / count - self.slope * (x / count);
            }
            if *firsts > 0.0 {
                self.start[level] = first / firsts;
            }
        }
        let left = (yy - 2.0 * self.slope * xy + self.slope * self.slope * xx) / transitions;
        self.news = left.max(SMALLEST_VARIANCE * self.spread);
        believed
    }
}

/// T × D forecasts of all steps by series fitted to the first steps of each episode, so many as `seen`, perhaps with a common
/// trend, whose loading is the same for all agents of a group.
pub(crate) fn forecasts(
    panel: &Panel,
    seen: &[usize],
    summary: &SeriesSummary,
    trend: Option<&CommonTrend>,
) -> Vec<f64> {
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    let (size, episodes) = (agents * ratios, panel.episodes());
    let parts: Vec<Part> =
        episodes.ranges().enumerate().map(|(number, range)| (range, seen[number], episodes.level(number))).collect();
    // The steps that are seen and follow another one of their episode.
    let later: Vec<(usize, usize)> = parts
        .iter()
        .flat_map(|(range, seen, level)| (range.start + 1..range.start + seen.max(&1)).map(|step| (step, *level)))
        .collect();
    let mut out = vec![0.0; steps * size];
    for ratio in 0..ratios {
        let said: Vec<Vec<Said>> = (0..agents)
            .map(|agent| {
                let said = |step: usize| {
                    let posts = panel.posts(step, agent);
                    (posts > 0).then(|| (panel.cells()[step * size + ratio * agents + agent], f64::from(posts)))
                };
                (0..steps).map(said).collect()
            })
            .collect();
        let mut series: Vec<Ar1Series> = (0..agents)
            .map(|agent| {
                let cell = ratio * agents + agent;
                let (_, variance) = summary.series(cell);
                let levels: Vec<f64> = (0..episodes.level_count()).map(|level| summary.level(level, cell)).collect();
                let slope = FIRST_SLOPE;
                Ar1Series {
                    slope,
                    drift: levels.iter().map(|level| (1.0 - slope) * level).collect(),
                    news: (1.0 - slope * slope) * variance,
                    start: levels,
                    spread: variance,
                }
            })
            .collect();
        let mut noise = summary.noise(ratio);
        let met = |step: usize, agent: usize| trend.map_or(0.0, |trend| trend.at(step)[ratio * agents + agent]);
        let group = |agent: usize| trend.map_or(0, |trend| trend.groups[agent]);
        let mut loading = vec![0.0; trend.map_or(1, |trend| trend.count)];
        for _ in 0..ROUNDS {
            let mut sums = PassSums { trend: vec![(0.0, 0.0); loading.len()], ..PassSums::default() };
            for (agent, (series, said)) in series.iter_mut().zip(&said).enumerate() {
                let push: Vec<f64> = (0..steps).map(|step| loading[group(agent)] * met(step, agent)).collect();
                let believed = series.round(&parts, said, &push, noise, &mut sums);
                let (explained, size) = &mut sums.trend[group(agent)];
                for &(step, level) in &later {
                    let left = believed[step] - series.slope * believed[step - 1] - series.drift[level];
                    *explained += met(step, agent) * left / series.news;
                    *size += met(step, agent).powi(2) / series.news;
                }
            }
            noise = (sums.residuals / sums.count.max(1.0)).max(SMALLEST_VARIANCE * summary.noise(ratio));
            let found = sums.trend.iter().map(|(explained, size)| if *size > 0.0 { explained / size } else { 0.0 });
            loading = found.collect();
        }
        for (agent, (series, said)) in series.iter().zip(&said).enumerate() {
            let push: Vec<f64> = (0..steps).map(|step| loading[group(agent)] * met(step, agent)).collect();
            for (range, _, level) in &parts {
                let known = series.filter(&said[range.clone()], &push[range.clone()], noise, *level);
                for (step, known) in range.clone().zip(known) {
                    out[step * size + ratio * agents + agent] = known[0];
                }
            }
        }
    }
    out
}
