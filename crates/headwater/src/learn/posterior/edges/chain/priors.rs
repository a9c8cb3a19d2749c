//! Draws of the parameters of the priors.

use super::{
    CONCENTRATIONS, Chain, EdgesTarget, MEANS, STRENGTHS, inclusion_prior, log_normal_variance, normal, variance,
};
use crate::learn::posterior::target::{DRIFT_FREEDOM, OF_NEWS};
use rand::{Rng, RngExt};
use rand_distr::{ChiSquared, Distribution};
use statrs::function::gamma::ln_gamma;

impl Chain {
    /// Parameters of the priors.
    pub(in crate::learn::posterior::edges) fn priors(&mut self, target: &EdgesTarget) {
        let agents = target.agents;
        let (state, rng) = (&mut self.state, &mut self.rng);
        // Student law of the drifts as a mixture of normal laws.
        for agent in 0..agents {
            let off = state.drifts[agent] - state.drift_centre;
            state.drift_factors[agent] =
                variance(DRIFT_FREEDOM + 1.0, DRIFT_FREEDOM + off * off / state.drift_scale, rng);
        }
        let (mut total, mut pull) = (1.0 / target.spread, 0.0);
        for agent in 0..agents {
            let precision = 1.0 / (state.drift_scale * state.drift_factors[agent]);
            total += precision;
            pull += precision * state.drifts[agent];
        }
        state.drift_centre = pull / total + normal(rng) / total.sqrt();
        let squares: f64 = (0..agents)
            .map(|agent| (state.drifts[agent] - state.drift_centre).powi(2) / state.drift_factors[agent])
            .sum();
        state.drift_scale =
            log_normal_variance(state.drift_scale, agents as f64, squares, target.drift_scale_prior(), rng);
        // News.
        let logs: Vec<f64> = state.news.iter().map(|news| news.ln()).collect();
        let (centre, deviation) = target.mean_news_prior();
        let precision = 1.0 / (deviation * deviation);
        let total = agents as f64 / state.spread_news + precision;
        let pull = logs.iter().sum::<f64>() / state.spread_news + precision * centre;
        state.mean_news = pull / total + normal(rng) / total.sqrt();
        let squares: f64 = logs.iter().map(|log| (log - state.mean_news).powi(2)).sum();
        let chi: f64 = ChiSquared::new(OF_NEWS.freedom + agents as f64).map_or(1.0, |law| law.sample(rng));
        state.spread_news = (OF_NEWS.freedom * OF_NEWS.variance + squares) / chi;
        // Who is heard.
        let (heard, possible) = (&self.heard, &self.possible);
        let cells = MEANS * STRENGTHS;
        let mut logs = Vec::with_capacity(cells);
        for cell in 0..cells {
            let (yes, no) = inclusion_prior(cell);
            let rising = |start: f64| -> Vec<f64> {
                let mut sums = vec![0.0];
                let mut sum = 0.0;
                for place in 0..agents {
                    sum += (start + place as f64).ln();
                    sums.push(sum);
                }
                sums
            };
            let (yes, no, all) = (rising(yes), rising(no), rising(yes + no));
            let of =
                |speaker: usize| yes[heard[speaker]] + no[possible[speaker] - heard[speaker]] - all[possible[speaker]];
            logs.push((0..agents).map(of).sum::<f64>());
        }
        state.inclusion = choose(&logs, rng);
        // The slab.
        let logs: Vec<f64> = CONCENTRATIONS
            .iter()
            .map(|&concentration| {
                let of = |weights: &Vec<f64>| {
                    let count = weights.iter().filter(|weight| **weight > 0.0).count() as f64;
                    let logs: f64 = weights.iter().filter(|weight| **weight > 0.0).map(|weight| weight.ln()).sum();
                    ln_gamma(count * concentration) - count * ln_gamma(concentration) + (concentration - 1.0) * logs
                };
                state.weights.iter().map(of).sum::<f64>()
            })
            .collect();
        state.concentration = CONCENTRATIONS[choose(&logs, rng)];
    }
}

/// One of several, with probabilities in proportion to the exponentials of these.
fn choose(logs: &[f64], rng: &mut impl Rng) -> usize {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let mut left = rng.random::<f64>() * weights.iter().sum::<f64>();
    for (place, weight) in weights.iter().enumerate() {
        left -= weight;
        if left <= 0.0 {
            return place;
        }
    }
    weights.len() - 1
}
