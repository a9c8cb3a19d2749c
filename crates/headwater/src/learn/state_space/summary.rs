//! Moments of the observed series, from which a fit starts.

use crate::Panel;
use crate::learn::fit;
use faer::Mat;

/// Share of noise in the variance of a single post: default, smallest and largest.
const FIRST_NOISE: f64 = 0.5;
const FEWEST_NOISE: f64 = 0.1;
const MOST_NOISE: f64 = 0.9;

/// Mean squared deviation of 1/c below which post counts tell nothing about noise.
const LEAST_SPREAD: f64 = 1e-3;

/// Smallest variance, relative to the observed one.
pub(super) const SMALLEST_VARIANCE: f64 = 1e-9;

/// Moments of the series before any fit.
pub(crate) struct SeriesSummary {
    /// D means of the observations.
    means: Vec<f64>,
    /// The same of each level of the episodes, D numbers each; of all where an agent is absent.
    pub(super) levels: Vec<f64>,
    /// D variances of the beliefs about their level: those of the observations less the noise of the posts.
    pub(super) variances: Vec<f64>,
    /// H × H covariance of the noise of a post.
    pub(super) noise: Mat<f64>,
}

impl SeriesSummary {
    /// Mean and variance of the beliefs of one series; a constant series has a small share of the pooled variance.
    pub(crate) fn series(&self, cell: usize) -> (f64, f64) {
        let pooled = self.variances.iter().sum::<f64>() / self.variances.len() as f64;
        (self.means[cell], self.variances[cell].max(SMALLEST_VARIANCE * pooled))
    }

    /// Mean of the beliefs of one series at one of the levels of the episodes.
    pub(crate) fn level(&self, level: usize, cell: usize) -> f64 {
        self.levels[level * self.means.len() + cell]
    }

    /// Variance of the noise of a post on one ratio.
    pub(crate) fn noise(&self, ratio: usize) -> f64 {
        self.noise[(ratio, ratio)]
    }

    /// Means of many posts vary less than single posts: the regression of products of deviations on 1/c, with an intercept
    /// per agent, estimates the noise of a post independently of the beliefs.
    pub(crate) fn from_panel(panel: &Panel, steps: usize) -> Self {
        let (agents, ratios) = (panel.agents(), panel.ratios());
        let size = agents * ratios;
        let (mut means, mut spreads, mut shares) = (vec![0.0; size], vec![0.0; size], vec![0.0; agents]);
        let episodes = panel.episodes();
        let level_of: Vec<usize> = (0..steps).map(|step| episodes.level(episodes.at(step))).collect();
        let mut levels = vec![0.0; size * episodes.level_count()];
        let (mut slope, mut whole) = (Mat::<f64>::zeros(ratios, ratios), Mat::<f64>::zeros(ratios, ratios));
        let (mut weight, mut cells) = (0.0, 0.0);
        for agent in 0..agents {
            let said: Vec<usize> = (0..steps).filter(|&step| panel.posts(step, agent) > 0).collect();
            let count = said.len().max(1) as f64;
            let share = |step: usize| 1.0 / f64::from(panel.posts(step, agent));
            let value = |step: usize, ratio: usize| panel.cells()[step * size + ratio * agents + agent];
            shares[agent] = said.iter().map(|&step| share(step)).sum::<f64>() / count;
            for ratio in 0..ratios {
                let cell = ratio * agents + agent;
                means[cell] = said.iter().map(|&step| value(step, ratio)).sum::<f64>() / count;
                for level in 0..episodes.level_count() {
                    let here = || said.iter().filter(|step| level_of[**step] == level);
                    levels[level * size + cell] = match here().count() {
                        0 => means[cell],
                        count => here().map(|&step| value(step, ratio)).sum::<f64>() / count as f64,
                    };
                }
            }
            for &step in &said {
                let above = share(step) - shares[agent];
                let level = &levels[level_of[step] * size..];
                let deviation = |ratio: usize| value(step, ratio) - level[ratio * agents + agent];
                for h in 0..ratios {
                    spreads[h * agents + agent] += deviation(h).powi(2) / count;
                    for g in 0..ratios {
                        slope[(h, g)] += above * deviation(h) * deviation(g);
                        whole[(h, g)] += deviation(h) * deviation(g) / share(step);
                    }
                }
                weight += above * above;
                cells += 1.0;
            }
        }
        let most = Mat::from_fn(ratios, ratios, |h, g| whole[(h, g)] / f64::max(cells, 1.0));
        let largest = (0..ratios).map(|h| most[(h, h)]).fold(f64::MIN_POSITIVE, f64::max);
        let noise = match weight > LEAST_SPREAD * cells {
            true => Mat::from_fn(ratios, ratios, |h, g| slope[(h, g)] / weight),
            false => Mat::from_fn(ratios, ratios, |h, g| FIRST_NOISE * most[(h, g)]),
        };
        let noise = fit::powered(&noise, |value, _| value.clamp(FEWEST_NOISE * largest, MOST_NOISE * largest));
        let variance = |cell: usize| {
            let blur = noise[(cell / agents, cell / agents)] * shares[cell % agents];
            (spreads[cell] - blur).max(FEWEST_NOISE * spreads[cell])
        };
        SeriesSummary { variances: (0..size).map(variance).collect(), means, levels, noise }
    }
}
