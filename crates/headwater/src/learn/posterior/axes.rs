//! Axes of several log-ratios along which news and noise do not depend on each other.
//!
//! The covariance Ω of the noise of a post and the mean covariance Q of the news of the agents become diagonal together in
//! y = W z, W = VᵀΩ^{−1/2}, where V are the eigenvectors of Ω^{−1/2}QΩ^{−1/2}. The network acts on agents and W on log-ratios, so
//! that the dynamics stay the same, and along each axis the model is that of a single log-ratio. It says that the news of all
//! agents have the same axes; their variances along these are free.

use crate::learn::fit::{eigen, powered};
use crate::{Model, Panel};
use faer::Mat;
use std::borrow::Cow;

/// Smallest eigenvalue of Ω, relative to the largest.
const FLAT: f64 = 1e-9;

/// W and its inverse.
#[derive(Debug, Clone)]
pub(crate) struct RatioAxes {
    forward: Mat<f64>,
    back: Mat<f64>,
}

impl RatioAxes {
    /// Of a single log-ratio: itself.
    pub(crate) fn single() -> Self {
        RatioAxes { forward: Mat::identity(1, 1), back: Mat::identity(1, 1) }
    }

    /// From the noise of a post and the mean news.
    pub(crate) fn new(noise: &Mat<f64>, news: &Mat<f64>) -> Self {
        let root = |power: f64| powered(noise, |value, largest| value.max(FLAT * largest).powf(power));
        let narrowed = root(-0.5);
        let shape = &narrowed * news * &narrowed;
        let size = noise.nrows();
        let vectors = eigen(&shape).map_or_else(|| Mat::identity(size, size), |(_, vectors)| vectors);
        RatioAxes { forward: vectors.transpose() * narrowed, back: root(0.5) * vectors }
    }

    /// Those of a model that was fitted with all covariances.
    pub(crate) fn from_model(model: &Model) -> Self {
        let (agents, ratios) = (model.roster.agents().len(), model.evidence.ratios());
        if ratios == 1 {
            return RatioAxes::single();
        }
        let noise = match &model.diagnostics.smoothing {
            Some(smoothing) if smoothing.noise.len() == ratios => {
                Mat::from_fn(ratios, ratios, |h, g| smoothing.noise[h][g])
            }
            _ => Mat::identity(ratios, ratios),
        };
        let mut news = Mat::zeros(ratios, ratios);
        if let Some(innovation) = &model.innovation {
            for agent in 0..agents {
                let block = innovation.agent(agent);
                news += Mat::from_fn(ratios, ratios, |h, g| block[h * ratios + g] / agents as f64);
            }
        }
        RatioAxes::new(&noise, &news)
    }

    fn size(&self) -> usize {
        self.forward.nrows()
    }

    /// A panel along these axes.
    pub(crate) fn along<'a>(&self, panel: &'a Panel) -> Cow<'a, Panel> {
        if self.size() == 1 {
            return Cow::Borrowed(panel);
        }
        let (agents, width) = (panel.agents(), panel.width());
        let cells = panel.cells();
        let value = |cell: usize| -> f64 {
            let (frame, axis, agent) = (cell / width * width, cell % width / agents, cell % agents);
            (0..self.size()).map(|ratio| self.forward[(axis, ratio)] * cells[frame + ratio * agents + agent]).sum()
        };
        Cow::Owned(panel.with_cells((0..cells.len()).map(value).collect()))
    }

    /// Log-ratios from numbers along the axes.
    pub(crate) fn ratios(&self, along: impl Fn(usize) -> f64) -> Vec<f64> {
        let size = self.size();
        (0..size).map(|ratio| (0..size).map(|axis| self.back[(ratio, axis)] * along(axis)).sum()).collect()
    }

    /// The covariance of log-ratios, row by row, from variances along the axes.
    pub(crate) fn covariance(&self, variance: impl Fn(usize) -> f64) -> Vec<f64> {
        let size = self.size();
        let entry = |cell: usize| {
            let (h, g) = (cell / size, cell % size);
            (0..size).map(|axis| self.back[(h, axis)] * variance(axis) * self.back[(g, axis)]).sum()
        };
        (0..size * size).map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Likelihoods, WorldParams, simulate};

    #[test]
    fn both_covariances_become_diagonal_and_come_back() {
        let noise = Mat::from_fn(2, 2, |h, g| [[2.0, 0.6], [0.6, 1.0]][h][g]);
        let news = Mat::from_fn(2, 2, |h, g| [[0.5, -0.2], [-0.2, 0.9]][h][g]);
        let axes = RatioAxes::new(&noise, &news);
        for (covariance, unit) in [(&noise, true), (&news, false)] {
            let turned = &axes.forward * covariance * axes.forward.transpose();
            assert!(turned[(0, 1)].abs() < 1e-12 && turned[(1, 0)].abs() < 1e-12, "{turned:?}");
            assert!(!unit || (turned[(0, 0)] - 1.0).abs() < 1e-12);
            let back = axes.covariance(|axis| turned[(axis, axis)]);
            for cell in 0..4 {
                assert!((back[cell] - covariance[(cell / 2, cell % 2)]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_panel_along_the_axes_has_the_same_beliefs() {
        let params = WorldParams {
            agents: 3,
            steps: 5,
            hypotheses: 3,
            likelihoods: Likelihoods::Gaussian { dimension: 2 },
            ..WorldParams::default()
        };
        let panel = simulate(&params).unwrap().0;
        let noise = Mat::from_fn(2, 2, |h, g| [[2.0, 0.6], [0.6, 1.0]][h][g]);
        let axes = RatioAxes::new(&noise, &Mat::identity(2, 2));
        let along = axes.along(&panel);
        for step in 0..5 {
            for agent in 0..3 {
                let cell = |panel: &Panel, ratio: usize| panel.cells()[step * 6 + ratio * 3 + agent];
                let back = axes.ratios(|axis| cell(&along, axis));
                assert!((0..2).all(|ratio| (back[ratio] - cell(&panel, ratio)).abs() < 1e-12));
            }
        }
    }
}
