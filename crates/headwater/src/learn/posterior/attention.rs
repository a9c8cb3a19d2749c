//! Weights made of speaker strengths: their parameters, and derivatives by them.
//!
//! `b[ℓ,k] = keep·(1−s_k) g_ℓ / Σ_{m≠k} g_m` over the speakers of k, `b[k,k] = keep·s_k`, keep = 1 − δ. The log-odds of s_k are
//! `c + κ·log(g_k / Σ_{m≠k} g_m)` plus a deviation of the listener. A listener without other speakers has s_k = 1.

use super::marginal::Support;

/// Where the parameters of the weights are in a vector of all parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttentionLayout {
    pub(crate) agents: usize,
}

impl AttentionLayout {
    /// Number of parameters.
    pub(crate) fn size(self) -> usize {
        2 * self.agents + 3
    }

    /// Logarithms of the strengths.
    pub(crate) fn strengths(self) -> std::ops::Range<usize> {
        0..self.agents
    }

    /// Deviations of the log-odds of the self-weights.
    pub(crate) fn deviations(self) -> std::ops::Range<usize> {
        self.agents..2 * self.agents
    }

    /// c.
    pub(crate) fn own(self) -> usize {
        2 * self.agents
    }

    /// κ.
    pub(crate) fn blend(self) -> usize {
        2 * self.agents + 1
    }

    /// Log-odds of keep.
    pub(crate) fn keep(self) -> usize {
        2 * self.agents + 2
    }
}

pub(crate) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Weights b of one listener, its own first. Returns its log-strength less that of its other speakers together.
pub(crate) fn listener_weights(
    support: &Support,
    parameters: &[f64],
    listener: usize,
    keep: f64,
    weights: &mut [f64],
) -> f64 {
    let layout = AttentionLayout { agents: support.agents() };
    let speakers = &support.speakers[support.of(listener)];
    if speakers.len() == 1 {
        weights[0] = keep;
        return 0.0;
    }
    // Relative to the strongest speaker, so that no exponential overflows.
    let strongest = speakers[1..].iter().map(|&speaker| parameters[speaker as usize]).fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for (weight, &speaker) in weights[1..].iter_mut().zip(&speakers[1..]) {
        *weight = (parameters[speaker as usize] - strongest).exp();
        total += *weight;
    }
    let odds = parameters[listener] - strongest - total.ln();
    let deviation = parameters[layout.deviations().start + listener];
    let share = logistic(parameters[layout.own()] + parameters[layout.blend()] * odds + deviation);
    weights[0] = keep * share;
    let scale = keep * (1.0 - share) / total;
    weights[1..].iter_mut().for_each(|weight| *weight *= scale);
    odds
}

/// Weights of all edges, and what their derivatives need.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attention {
    /// b, by edge of the support.
    pub(crate) weights: Vec<f64>,
    /// Log-strength of each listener less that of its other speakers together.
    odds: Vec<f64>,
    pub(crate) keep: f64,
}

impl Attention {
    /// Of the first [`AttentionLayout::size`] parameters.
    pub(crate) fn new(support: &Support, parameters: &[f64]) -> Self {
        let mut attention = Attention::default();
        attention.set(support, parameters);
        attention
    }

    /// The same, in place.
    pub(crate) fn set(&mut self, support: &Support, parameters: &[f64]) {
        let layout = AttentionLayout { agents: support.agents() };
        self.keep = logistic(parameters[layout.keep()]);
        self.weights.resize(support.edges(), 0.0);
        self.odds.resize(layout.agents, 0.0);
        for listener in 0..layout.agents {
            self.odds[listener] =
                listener_weights(support, parameters, listener, self.keep, &mut self.weights[support.of(listener)]);
        }
    }

    /// Adds the derivatives by the parameters, from those by the weights.
    pub(crate) fn add_gradient(&self, support: &Support, parameters: &[f64], by_weight: &[f64], gradient: &mut [f64]) {
        let layout = AttentionLayout { agents: support.agents() };
        let blend = parameters[layout.blend()];
        for listener in 0..layout.agents {
            let edges = support.of(listener);
            let (weights, slopes) = (&self.weights[edges.clone()], &by_weight[edges.clone()]);
            let speakers = &support.speakers[edges];
            let total: f64 = weights.iter().zip(slopes).map(|(weight, slope)| weight * slope).sum();
            gradient[layout.keep()] += (1.0 - self.keep) * total;
            let given = self.keep - weights[0];
            if speakers.len() == 1 || given <= 0.0 {
                continue;
            }
            let mean = (total - weights[0] * slopes[0]) / given;
            let share = weights[0] / self.keep;
            let by_odds = self.keep * share * (1.0 - share) * (slopes[0] - mean);
            for place in 1..speakers.len() {
                gradient[speakers[place] as usize] +=
                    weights[place] * (slopes[place] - mean) - by_odds * blend * weights[place] / given;
            }
            gradient[layout.deviations().start + listener] += by_odds;
            gradient[layout.own()] += by_odds;
            gradient[layout.blend()] += by_odds * self.odds[listener];
            gradient[listener] += by_odds * blend;
        }
    }

    /// Adds a multiple of the derivatives of the mean of the odds.
    pub(crate) fn add_odds_gradient(support: &Support, parameters: &[f64], times: f64, gradient: &mut [f64]) {
        let listeners = || (0..support.agents()).filter(|&listener| support.of(listener).len() > 1);
        let share = times / listeners().count().max(1) as f64;
        for listener in listeners() {
            gradient[listener] += share;
            let others = &support.speakers[support.of(listener)][1..];
            let strength = |speaker: &u32| parameters[*speaker as usize];
            let strongest = others.iter().map(strength).fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = others.iter().map(|speaker| (strength(speaker) - strongest).exp()).sum();
            for speaker in others {
                gradient[*speaker as usize] -= share * (strength(speaker) - strongest).exp() / total;
            }
        }
    }

    /// Mean of the odds of listeners with other speakers.
    pub(crate) fn mean_odds(&self, support: &Support) -> f64 {
        let heard: Vec<f64> = (0..self.odds.len()).filter(|&k| support.of(k).len() > 1).map(|k| self.odds[k]).collect();
        heard.iter().sum::<f64>() / heard.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_by_hand() {
        // Agent 0 hears 1 and 2 with strengths 1 and 3, and has self-weight 1/2; agent 1 hears nobody else.
        let support = Support::new(&[vec![1, 2], vec![], vec![0]]);
        let parameters = [0.0, 0.0, 3f64.ln(), 0.0, 0.0, 0.0, 0.0, 0.0, 4f64.ln()];
        let attention = Attention::new(&support, &parameters);
        let expected = [0.4, 0.1, 0.3, 0.8, 0.4, 0.4];
        assert!(attention.weights.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{attention:?}");
    }

    #[test]
    fn the_gradient_is_that_of_the_weights() {
        let support = Support::new(&[vec![1, 2], vec![0], vec![], vec![0, 1, 2]]);
        let point = [0.3, -0.7, 1.1, 0.2, 0.4, -0.2, 0.1, 0.5, -0.6, 0.8, 1.7];
        let slopes: Vec<f64> = (0..support.edges()).map(|edge| (edge as f64 * 1.7).sin()).collect();
        let value = |point: &[f64]| -> f64 {
            Attention::new(&support, point).weights.iter().zip(&slopes).map(|(weight, slope)| weight * slope).sum()
        };
        let mut gradient = [0.0; 11];
        Attention::new(&support, &point).add_gradient(&support, &point, &slopes, &mut gradient);
        for place in 0..point.len() {
            let moved = |by: f64| {
                let mut point = point;
                point[place] += by;
                value(&point)
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            // Central differences of 1e-6 are good to rounding, about 1e-10.
            assert!((slope - gradient[place]).abs() < 1e-9, "{place}: {slope} {}", gradient[place]);
        }
    }
}
