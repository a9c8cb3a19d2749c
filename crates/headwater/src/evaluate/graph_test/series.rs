//! Each account on its own: an AR(1) process behind noise and silence, by EM.
//!
//! In: panels, one per episode. Out: for each account the smoothed deviation from its level and its smoothed news, what its own
//! past does not explain.

use crate::Panel;
use crate::panel::Frame;
use rayon::prelude::*;

/// Rounds of EM at most; more change the scores by less than a thousandth.
const ROUNDS: usize = 40;

/// Changes of the persistence and, relatively, of the news variance at which EM ends.
const PERSISTENCE_CHANGE: f64 = 1e-4;
const VARIANCE_CHANGE: f64 = 1e-3;

/// Largest persistence: a random walk has no level to deviate from.
const LARGEST_PERSISTENCE: f64 = 0.995;

/// Spread of 1/posts below which the noise of a post cannot be told from real variation.
const SMALLEST_SPREAD: f64 = 0.03;

/// One account's log-ratio in one episode: values, and the precision of each measurement, 0 where silent.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    pub(super) values: Vec<f64>,
    pub(super) precision: Vec<f64>,
}

/// The fitted process of one account and one log-ratio over all episodes.
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    pub(super) persistence: f64,
    /// Variance of the news of one step.
    pub(super) news_variance: f64,
    /// Level of each episode.
    pub(super) levels: Vec<f64>,
    /// Smoothed deviation from the level, by episode.
    pub(super) deviations: Vec<Vec<f64>>,
    /// Smoothed news divided by its variance, by episode; 0 at the first step.
    pub(super) news: Vec<Vec<f64>>,
}

/// Variance of the noise of one post, for one log-ratio: how squared deviations from an account's mean grow with 1/posts.
pub(super) fn noise_of_a_post(panels: &[&Panel], ratio: usize, accounts: &[usize]) -> f64 {
    let mut points = Vec::new();
    for panel in panels {
        for &account in accounts {
            let cells: Vec<(f64, f64)> = observed(panel, ratio, account).collect();
            let mean = cells.iter().map(|(value, _)| value).sum::<f64>() / cells.len().max(1) as f64;
            points.extend(cells.iter().map(|(value, posts)| (1.0 / posts, (value - mean).powi(2))));
        }
    }
    let count = points.len().max(1) as f64;
    let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
    let xx: f64 = points.iter().map(|point| (point.0 - mean_x).powi(2)).sum();
    let xy: f64 = points.iter().map(|point| (point.0 - mean_x) * (point.1 - mean_y)).sum();
    let slope = if (xx / count).sqrt() > SMALLEST_SPREAD { xy / xx } else { 0.5 * mean_y };
    slope.clamp(0.1 * mean_y, 0.9 * mean_y)
}

/// Values and post counts of an account where it speaks.
pub(super) fn observed(panel: &Panel, ratio: usize, account: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
    (0..panel.steps()).filter_map(move |step| {
        let posts = panel.posts(step, account);
        (posts > 0).then(|| (cell(&panel.frame(step), account, ratio), f64::from(posts)))
    })
}

fn cell(frame: &Frame<'_>, account: usize, ratio: usize) -> f64 {
    frame[(account, ratio)]
}

/// The measurements of an account, by episode.
pub(super) fn measured(panels: &[&Panel], ratio: usize, account: usize, noise: f64) -> Vec<Measured> {
    let one = |panel: &&Panel| {
        let mut out = Measured::default();
        for step in 0..panel.steps() {
            let posts = panel.posts(step, account);
            out.values.push(if posts > 0 { cell(&panel.frame(step), account, ratio) } else { 0.0 });
            out.precision.push(f64::from(posts) / noise);
        }
        out
    };
    panels.iter().map(one).collect()
}

/// Fits the accounts in parallel, each from its measurements by episode.
pub(super) fn fit_all(accounts: &[Vec<Measured>]) -> Vec<Process> {
    accounts.par_iter().map(|episodes| fit(episodes)).collect()
}

/// Legend: z value, w precision of a measurement, φ persistence, q variance of news, m posterior mean, v posterior variance,
/// c covariance of a step with the one before, f and g of the forward elimination of the tridiagonal precision.
pub(super) fn fit(episodes: &[Measured]) -> Process {
    let still = |episode: &Measured| vec![0.0; episode.values.len()];
    let mut deviations: Vec<Vec<f64>> = episodes.iter().map(still).collect();
    let mut news = deviations.clone();
    let mut levels = Vec::with_capacity(episodes.len());
    let (mut squares, mut count) = (0.0, 0.0);
    for episode in episodes {
        let weight: f64 = episode.precision.iter().sum();
        let total: f64 = episode.values.iter().zip(&episode.precision).map(|(z, w)| z * w).sum();
        let level = if weight > 0.0 { total / weight } else { 0.0 };
        for (z, _) in episode.values.iter().zip(&episode.precision).filter(|(_, w)| **w > 0.0) {
            squares += (z - level).powi(2);
            count += 1.0;
        }
        levels.push(level);
    }
    let (mut phi, transitions) =
        (0.8, episodes.iter().map(|episode| episode.values.len().saturating_sub(1)).sum::<usize>());
    let variance = (squares / f64::max(count, 1.0)).max(1e-6);
    let mut q = 0.3 * variance;
    let longest = episodes.iter().map(|episode| episode.values.len()).max().unwrap_or(0);
    let (mut f, mut g, mut v, mut c) = (vec![0.0; longest], vec![0.0; longest], vec![0.0; longest], vec![0.0; longest]);
    let mut last = ROUNDS - 1;
    for round in 0..ROUNDS {
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        let mut residuals = vec![0.0; episodes.len()];
        for (number, episode) in episodes.iter().enumerate() {
            let (z, w, m) = (&episode.values, &episode.precision, &mut deviations[number]);
            let steps = z.len();
            if steps == 0 {
                continue;
            }
            let e = -phi / q;
            for t in 0..steps {
                let before = if t == 0 { 1.0 / variance } else { 1.0 / q };
                let after = if t + 1 < steps { phi * phi / q } else { 0.0 };
                let (d, h) = (w[t] + before + after, w[t] * (z[t] - levels[number]));
                if t == 0 {
                    (f[t], g[t]) = (d, h);
                } else {
                    let k = e / f[t - 1];
                    (f[t], g[t]) = (d - e * k, h - k * g[t - 1]);
                }
            }
            m[steps - 1] = g[steps - 1] / f[steps - 1];
            v[steps - 1] = 1.0 / f[steps - 1];
            for t in (0..steps - 1).rev() {
                let k = -e / f[t];
                m[t] = g[t] / f[t] + k * m[t + 1];
                v[t] = 1.0 / f[t] + k * k * v[t + 1];
                c[t + 1] = k * v[t + 1];
            }
            for t in 1..steps {
                xx += m[t - 1] * m[t - 1] + v[t - 1];
                xy += m[t] * m[t - 1] + c[t];
                yy += m[t] * m[t] + v[t];
            }
            residuals[number] = (0..steps).map(|t| w[t] * (z[t] - levels[number] - m[t])).sum();
        }
        if round == last || transitions == 0 {
            break;
        }
        let (old_phi, old_q) = (phi, q);
        phi = (xy / xx).clamp(0.0, LARGEST_PERSISTENCE);
        q = ((yy - 2.0 * phi * xy + phi * phi * xx) / transitions as f64).max(1e-4 * variance);
        for (number, episode) in episodes.iter().enumerate() {
            let weight: f64 = episode.precision.iter().sum();
            if weight > 0.0 {
                levels[number] += residuals[number] / weight;
            }
        }
        let settled = (phi - old_phi).abs() < PERSISTENCE_CHANGE && (q / old_q - 1.0).abs() < VARIANCE_CHANGE;
        if settled && round + 2 < ROUNDS {
            // One more pass with the last parameters.
            last = last.min(round + 1);
        }
    }
    for (news, m) in news.iter_mut().zip(&deviations) {
        (1..m.len()).for_each(|t| news[t] = (m[t] - phi * m[t - 1]) / q);
    }
    Process { persistence: phi, news_variance: q, levels, deviations, news }
}
