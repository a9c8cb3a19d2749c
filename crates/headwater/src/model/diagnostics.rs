//! Diagnostics: how a model came about, and how well it is known.

use super::Posterior;
use serde::{Deserialize, Serialize};

/// Parameterisation of a listener's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightKind {
    /// One weight per edge.
    #[default]
    Edges,
    /// One strength per speaker; listeners divide their attention in proportion. Needs a support.
    Strengths,
}

impl WeightKind {
    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            WeightKind::Edges => "edges",
            WeightKind::Strengths => "strengths",
        }
    }
}

/// The kind of weights with the higher predictive density of held-out steps, with what was compared.
///
/// Its [`Display`](std::fmt::Display) is the one place that puts it into words.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WeightsSelection {
    /// The kind chosen.
    pub chosen: WeightKind,
    /// Skill of one weight per edge against each agent's own past, where measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_edges: Option<f64>,
    /// Skill of one strength per speaker, where measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_strengths: Option<f64>,
    /// Mean log-density of held-out beliefs given the steps before them, with one weight per edge, in nats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density_edges: Option<f64>,
    /// The same with one strength per speaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density_strengths: Option<f64>,
}

impl WeightsSelection {
    /// A kind that was taken because nothing could be compared.
    pub(crate) fn unmeasured(chosen: WeightKind) -> Self {
        WeightsSelection {
            chosen,
            skill_edges: None,
            skill_strengths: None,
            density_edges: None,
            density_strengths: None,
        }
    }
}

impl std::fmt::Display for WeightsSelection {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = ["one weight per edge", "one strength per speaker"];
        let (chosen, other) = match self.chosen {
            WeightKind::Edges => ((names[0], self.skill_edges), (names[1], self.skill_strengths)),
            WeightKind::Strengths => ((names[1], self.skill_strengths), (names[0], self.skill_edges)),
        };
        let (Some(skill), Some(rival)) = (chosen.1, other.1) else {
            return write!(to, "{}: too few steps to compare with {}", chosen.0, other.0);
        };
        let compared = |skill: f64| {
            let better = if skill < 0.0 { "worse" } else { "better" };
            format!("{:.1} % {better}", 100.0 * skill.abs())
        };
        write!(to, "{}: ", chosen.0)?;
        if let (Some(edges), Some(strengths)) = (self.density_edges, self.density_strengths) {
            let ahead = (strengths - edges).abs();
            write!(
                to,
                "the predictive log-density of a held-out belief is {ahead:.3} nats higher than with {}; ",
                other.0
            )?;
        }
        write!(
            to,
            "its forecasts of held-out steps are {} than each agent's own past, those of {} {}",
            compared(skill),
            other.0,
            compared(rival)
        )
    }
}

/// How well a column of A is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Exact: the fit agrees with the data to rounding error more often than chance could explain.
    Certified,
    /// Exactly identified by noise-free contrasts.
    Identified,
    /// Estimated with statistical error.
    Statistical,
}

/// What is known about one listener's column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ColumnDiagnostics {
    /// Name of the listener.
    pub agent: String,
    /// How well its weights are known.
    pub status: Status,
    /// Numerical rank of its residual covariance.
    pub rank: usize,
    /// Condition number of its normal equations; large when its speakers are nearly collinear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<f64>,
    /// Typical (root mean square) standard error of one of its weights before any constraint; zero when certified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_error: Option<f64>,
}

impl ColumnDiagnostics {
    /// A column known up to statistical error.
    pub fn statistical(agent: &str, rank: usize) -> Self {
        ColumnDiagnostics {
            agent: agent.to_owned(),
            status: Status::Statistical,
            rank,
            condition: None,
            weight_error: None,
        }
    }
}

/// Squared one-step forecast errors on steps the learner had not seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Skill {
    /// 1 − (model's error)/(error of forecasting no change).
    pub against_persistence: f64,
    /// 1 − (model's error)/(error of each agent's own AR(1)).
    pub against_own_past: f64,
    /// The same after controlling for the group's previous mean, in the model and in the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_common: Option<f64>,
    /// Number of forecast steps.
    pub steps: usize,
}

impl Skill {
    /// The skill against both baselines on this many steps; none was measured against a common trend.
    pub fn new(against_persistence: f64, against_own_past: f64, steps: usize) -> Self {
        Skill { against_persistence, against_own_past, beyond_common: None, steps }
    }
}

/// Estimates of the state-space learner beside the network, and its convergence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Smoothing {
    /// Log-likelihood of all observations.
    pub log_likelihood: f64,
    /// Rounds of expectation-maximisation.
    pub rounds: usize,
    /// Whether the gain of the last round was below the tolerance.
    pub converged: bool,
    /// Covariance of the noise of a single post, H × H.
    pub noise: Vec<Vec<f64>>,
    /// Parameterisation of the weights.
    pub weights: WeightKind,
    /// Shrinkage of a weight towards the mean weight of the same speaker.
    #[serde(alias = "pull")]
    pub shrinkage: f64,
    /// How the kind of weights was chosen, where it was not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<WeightsSelection>,
    /// Whether δ was given rather than estimated.
    pub adaptation_given: bool,
    /// Strength of each speaker, geometric mean one, where weights are made of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strengths: Option<Vec<f64>>,
    /// Typical self-weight, where weights are made of strengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_weight: Option<f64>,
    /// Common trends, where they were controlled for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common: Option<Common>,
}

/// Common trends beside the network: the lagged mean of the other members of an agent's group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Common {
    /// The group of each agent.
    pub groups: Vec<usize>,
    /// Loading of each group on its trend, by log-ratio.
    pub loading: Vec<Vec<f64>>,
}

/// How a model came about, and how well it is known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Per listener.
    #[serde(default)]
    pub columns: Vec<ColumnDiagnostics>,
    /// Largest minus smallest column sum before any normalisation.
    #[serde(default)]
    pub column_sum_spread: Option<f64>,
    /// Forecast skill, where measured.
    #[serde(default)]
    pub skill: Option<Skill>,
    /// Time steps the evidence is a mean of.
    #[serde(default)]
    pub evidence_steps: Option<usize>,
    /// Standard errors of the evidence, N × H, where the learner knows them; zero where the evidence is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_errors: Option<Vec<Vec<f64>>>,
    /// Time steps learned from, over all passes.
    #[serde(default)]
    pub steps: Option<usize>,
    /// Estimates of the state-space learner beside the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothing: Option<Smoothing>,
    /// Draws from the posterior, where it was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posterior: Option<Posterior>,
    /// Evidence of each episode, where there are several; [`Model::evidence`](crate::Model::evidence) is their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episodes: Option<Vec<EpisodeEvidence>>,
    /// Warnings as sentences.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The evidence of one episode: L̄ as estimated from its own steps.
///
/// The evidence of a model of several episodes is the mean over them, each weighted by its transitions, or for the
/// state-space learner by the steps at which the agent spoke in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EpisodeEvidence {
    /// Name of the episode.
    pub episode: String,
    /// Its time steps.
    pub steps: usize,
    /// N × H.
    pub evidence: Vec<Vec<f64>>,
}

impl EpisodeEvidence {
    /// The evidence of an episode of this name and number of steps, N × H.
    pub fn new(episode: String, steps: usize, evidence: Vec<Vec<f64>>) -> Self {
        EpisodeEvidence { episode, steps, evidence }
    }
}
