//! Changes of a network over time, and its state at some steps.

use crate::{Combination, Evidence};
use serde::{Deserialize, Serialize};

/// Kind of a change of a tracked network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Some listeners have other weights, or private observations of another distribution.
    Topology,
    /// Another hypothesis is true.
    State,
}

impl ChangeKind {
    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Topology => "topology",
            ChangeKind::State => "state",
        }
    }
}

/// A change that was detected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DetectedChange {
    /// The frame at which it was detected, counted from the first one seen.
    pub step: usize,
    /// The first frame after the change, as estimated.
    pub since: usize,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// The listeners concerned; none for a change of state.
    pub listeners: Vec<usize>,
    /// The new truth after a change of state.
    pub truth: Option<usize>,
}

impl DetectedChange {
    /// A change of the weights of some listeners, detected at `step` and in force from `since` on.
    pub fn topology(step: usize, since: usize, listeners: Vec<usize>) -> Self {
        DetectedChange { step, since, kind: ChangeKind::Topology, listeners, truth: None }
    }

    /// A change of the true hypothesis, detected at `step` and in force from `since` on.
    pub fn state(step: usize, since: usize, truth: usize) -> Self {
        DetectedChange { step, since, kind: ChangeKind::State, listeners: Vec::new(), truth: Some(truth) }
    }
}

/// The network as it was known at a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NetworkSnapshot {
    /// The frame, counted from the first one seen.
    pub step: usize,
    /// A.
    pub combination: Combination,
    /// L̂.
    pub evidence: Evidence,
}

impl NetworkSnapshot {
    /// The network as known at a step.
    pub fn new(step: usize, combination: Combination, evidence: Evidence) -> Self {
        NetworkSnapshot { step, combination, evidence }
    }
}

/// Changes and snapshots of a tracked network; empty for other models.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Track {
    /// From the first to the last.
    pub changes: Vec<DetectedChange>,
    /// From the first to the last.
    pub history: Vec<NetworkSnapshot>,
    /// Times of the frames named above as text, by step, where they differ from the step number.
    pub times: Vec<(usize, String)>,
}

impl Track {
    /// Time of a frame as text.
    pub fn time(&self, step: usize) -> String {
        let known = self.times.iter().find(|(known, _)| *known == step);
        known.map_or_else(|| step.to_string(), |(_, time)| time.clone())
    }
}
