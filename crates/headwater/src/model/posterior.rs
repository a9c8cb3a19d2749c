//! Draws from the posterior of a model, and what follows from them.

use serde::{Deserialize, Serialize};

/// Effective number of draws of every share and of δ below which no interval is shown.
pub(crate) const FEWEST_EFFECTIVE_DRAWS: f64 = 100.0;

/// Largest R-hat of any share and of δ with which intervals are shown.
pub(crate) const LARGEST_R_HAT: f64 = 1.05;

/// A speaker's strength counts as learned when its posterior has at most this share of the prior variance.
const LEARNED_VARIANCE: f64 = 0.8;

/// Draws from the posterior of the network, by several chains.
///
/// Numbers are rounded to seven digits, so that a saved model is the same model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Posterior {
    /// Number of chains.
    pub chains: usize,
    /// Draws of each chain after its warm-up.
    pub draws: usize,
    /// Smallest effective number of draws of any share and of δ.
    pub effective_size: f64,
    /// Largest R-hat of any share and of δ.
    pub r_hat: f64,
    /// Whether the draws are independent ones from a normal law about the maximum of the posterior, with the curvature
    /// there, instead of chains.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub normal_approximation: bool,
    /// Draws at equal distances, of all chains.
    pub kept: Vec<PosteriorDraw>,
    /// 90 % intervals of the weights between different agents.
    pub edges: Vec<EdgeInterval>,
    /// How much was learned about the strength of each speaker beyond the graph, in nats: half the logarithm of prior
    /// variance over posterior variance. Empty where weights are not made of strengths.
    pub information: Vec<f64>,
}

/// One draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PosteriorDraw {
    /// δ.
    pub adaptation: f64,
    /// Of every agent.
    pub centrality: Vec<f64>,
    /// L̄, agent by agent, N × H.
    pub evidence: Vec<f64>,
}

/// The 90 % interval of one weight; agents by number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EdgeInterval {
    /// Speaker.
    pub speaker: usize,
    /// Listener.
    pub listener: usize,
    /// 5 % of the draws are below.
    pub low: f64,
    /// 5 % of the draws are above.
    pub high: f64,
    /// Probability that the speaker is heard at all, where edges may be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

impl PosteriorDraw {
    /// A draw, rounded.
    pub(crate) fn new(adaptation: f64, centrality: Vec<f64>, evidence: Vec<f64>) -> Self {
        let all = |values: Vec<f64>| values.into_iter().map(rounded).collect();
        PosteriorDraw { adaptation: rounded(adaptation), centrality: all(centrality), evidence: all(evidence) }
    }
}

impl EdgeInterval {
    pub(crate) fn new(speaker: usize, listener: usize, (low, high): (f64, f64)) -> Self {
        EdgeInterval { speaker, listener, low: rounded(low), high: rounded(high), probability: None }
    }

    /// The same, with the probability that the speaker is heard.
    pub(crate) fn with_probability(self, probability: f64) -> Self {
        EdgeInterval { probability: Some(rounded(probability)), ..self }
    }
}

/// To seven significant digits.
pub(crate) fn rounded(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

/// The 5 % and 95 % points of numbers, between neighbours where needed; zeros where there are none.
pub(crate) fn interval(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * values.len().saturating_sub(1) as f64;
        let below = values.get(place.floor() as usize).copied().unwrap_or(0.0);
        let above = values.get(place.ceil() as usize).copied().unwrap_or(0.0);
        below + place.fract() * (above - below)
    };
    (at(0.05), at(0.95))
}

impl Posterior {
    /// Whether the chains agree and are long enough for intervals.
    pub fn converged(&self) -> bool {
        Posterior::enough(self.effective_size, self.r_hat)
    }

    /// The same, of these two numbers.
    pub(crate) fn enough(effective_size: f64, r_hat: f64) -> bool {
        effective_size >= FEWEST_EFFECTIVE_DRAWS && r_hat < LARGEST_R_HAT
    }

    /// The 90 % interval of δ.
    pub fn adaptation(&self) -> (f64, f64) {
        interval(self.kept.iter().map(|draw| draw.adaptation).collect())
    }

    /// The 90 % interval of the centrality of an agent.
    pub fn centrality(&self, agent: usize) -> (f64, f64) {
        interval(self.kept.iter().map(|draw| draw.centrality[agent]).collect())
    }

    /// The 90 % interval of the evidence of an agent for one log-ratio of `ratios`.
    pub fn evidence(&self, agent: usize, ratio: usize, ratios: usize) -> (f64, f64) {
        interval(self.kept.iter().map(|draw| draw.evidence[agent * ratios + ratio]).collect())
    }

    /// Whether the posterior tells more about the strength of a speaker than the graph does.
    pub fn learned(&self, agent: usize) -> bool {
        self.information[agent] > -0.5 * LEARNED_VARIANCE.ln()
    }

    /// Agents about whose strength nothing was learned beyond the graph.
    pub fn not_learned(&self) -> Vec<usize> {
        (0..self.information.len()).filter(|&agent| !self.learned(agent)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        assert_eq!(interval((0..=20).map(f64::from).collect()), (1.0, 19.0));
        assert_eq!(interval(vec![1.0, 2.0]), (1.05, 1.95));
        assert_eq!(interval(vec![3.0]), (3.0, 3.0));
        assert_eq!(interval(vec![]), (0.0, 0.0));
    }

    #[test]
    fn a_variance_below_four_fifths_of_the_prior_counts_as_learned() {
        let posterior = Posterior {
            chains: 8,
            draws: 50,
            effective_size: 100.0,
            r_hat: 1.04,
            normal_approximation: false,
            kept: vec![PosteriorDraw::new(0.1, vec![0.5, 0.5], vec![1.0, 1.0 / 3.0])],
            edges: vec![],
            // Half the logarithm of 1/0.81 and of 1/0.79.
            information: vec![0.5 * (1.0f64 / 0.81).ln(), 0.5 * (1.0f64 / 0.79).ln()],
        };
        assert_eq!(posterior.not_learned(), [0]);
        assert!(posterior.converged());
        assert!(!Posterior { effective_size: 99.0, ..posterior.clone() }.converged());
        assert!(!Posterior { r_hat: 1.05, ..posterior.clone() }.converged());
        assert_eq!(posterior.evidence(1, 0, 1), (0.3333333, 0.3333333));
    }
}
