//! Rows of a ranking: agents, and how the centrality came about.

use serde::{Deserialize, Deserializer, Serialize};

/// How the centrality came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CentralityDetails {
    /// ‖Au − u‖₁ of the Perron vector.
    pub residual: f64,
    /// Sum of absolute changes that made the weights non-negative and summing to one.
    pub moved: f64,
    /// Sizes of the strongly connected components.
    pub components: Vec<usize>,
    /// Where opinions originate.
    pub sources: Vec<OpinionSource>,
}

/// Agents that give weight to nobody outside their own group: a closed component from which opinions originate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpinionSource {
    /// Their names.
    pub agents: Vec<String>,
    /// The part of the network's opinion that starts with them.
    pub share: f64,
}

/// One agent; what was not computed is absent. The columns are explained in `docs/reference/ranking.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RankedAgent {
    /// Name.
    pub agent: String,
    /// 1 is the most influential.
    pub rank: usize,
    /// Centrality × informativeness.
    pub influence: f64,
    /// Part of all influence, in absolute value where some influences are negative; shares sum to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// +1 or −1, the sign of the influence; present only where some influences are negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<i8>,
    /// Lower end of its 90 % interval, in the direction of the sign: below zero where the sign is uncertain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_high: Option<f64>,
    /// Weight of the agent in the network's long-run opinion.
    pub centrality: f64,
    /// Divergence of the agent's private evidence, summed over the hypotheses.
    pub informativeness: f64,
    /// Share of the network's mean opinion that originates with this agent.
    pub origin: f64,
    /// Lower end of the 90 % interval of the rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_low: Option<usize>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_high: Option<usize>,
    /// Share of resamples that rank the agent among the first k.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k_probability: Option<f64>,
    /// Probability that the agent's share is larger than that of the next agent in the ranking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_probability: Option<f64>,
    /// 90 % interval of the centrality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centrality_low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centrality_high: Option<f64>,
    /// What was learned about the strength of the agent as a speaker beyond the graph, in nats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub information: Option<f64>,
    /// Of the permutation test of the weight others give this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Probability that the agent's belief favours a wrong hypothesis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_probability: Option<f64>,
    /// The hypothesis that the agent's own evidence favours, where that is not the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian: Option<String>,
    /// By how much, in nats an observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian_margin: Option<f64>,
    /// The same in standard errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian_standard_errors: Option<f64>,
    /// Number of posts.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "post_count")]
    pub posts: Option<u64>,
    /// Share of steps without a post.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_share: Option<f64>,
    /// Followers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_degree: Option<usize>,
    /// PageRank in the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagerank: Option<f64>,
}

impl RankedAgent {
    /// The share with its sign.
    pub fn signed_share(&self) -> Option<f64> {
        self.share.map(|share| if self.sign == Some(-1) { -share } else { share })
    }

    /// The 90 % interval of the share with its sign.
    pub fn signed_interval(&self) -> Option<(f64, f64)> {
        Some(self.directed((self.share_low?, self.share_high?)))
    }

    /// An interval of the signed share in the direction of the sign, or back.
    pub(super) fn directed(&self, (low, high): (f64, f64)) -> (f64, f64) {
        if self.sign == Some(-1) { (-high, -low) } else { (low, high) }
    }
}

/// A number of posts; files of version 0.1 have posts per step, which is another number, and is left out.
fn post_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<f64>::deserialize(from)?;
    Ok(number.filter(|number| *number >= 0.0 && number.fract() == 0.0).map(|number| number as u64))
}
