//! Snapshots of a tracked model, as many as the page can hold.

use super::network::WeightedEdge;
use super::pack::{Packed, brief};
use crate::error::Error;
use headwater::model::{ChangeKind, Track};
use headwater::{Model, influence};
use serde::{Deserialize, Serialize};

/// Characters that all snapshots may take.
const CHARACTERS: usize = 700_000;

/// The model at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageSnapshot {
    /// The time.
    pub time: String,
    /// Signed shares in the model's order.
    pub share: Vec<f64>,
    /// Likewise.
    pub centrality: Vec<f64>,
    /// Likewise.
    pub informativeness: Vec<f64>,
    /// Of the network's edges, in their order.
    pub weights: Packed,
}

pub(super) fn history(
    model: &Model,
    edges: &[WeightedEdge],
    left_off: &mut Vec<String>,
) -> Result<Vec<PageSnapshot>, Error> {
    let all = &model.track.history;
    let agents = model.roster.agents().len();
    // Three numbers of about ten characters per agent, four characters for three edges.
    let most = (CHARACTERS / (33 * agents + edges.len() * 4 / 3)).max(2);
    // The first, the last, and as many between them as fit.
    let shown: Vec<usize> = match all.len() {
        many if many > most => (0..most).map(|place| place * (many - 1) / (most - 1)).collect(),
        many => (0..many).collect(),
    };
    if shown.len() < all.len() {
        left_off.push(format!("{} of {} snapshots are shown.", shown.len(), all.len()));
    }
    let state_changed = model.track.changes.iter().any(|change| change.kind == ChangeKind::State);
    let mut then = model.clone();
    then.track = Track::default();
    let mut snapshots = Vec::new();
    for snapshot in shown.into_iter().map(|place| &all[place]) {
        then.combination = snapshot.combination.clone();
        then.evidence = snapshot.evidence.clone();
        // Where the state has changed, the evidence of the time tells which hypothesis was true.
        then.truth = model.truth.filter(|_| !state_changed);
        let found = influence(&then)?;
        let weights: Vec<f64> =
            edges.iter().map(|&(speaker, listener, _)| then.combination.weight(speaker, listener)).collect();
        let ends = weights.iter().fold((0.0f64, 0.0f64), |(low, high), value| (low.min(*value), high.max(*value)));
        let brief = |values: Vec<f64>| values.into_iter().map(brief).collect();
        snapshots.push(PageSnapshot {
            time: model.track.time(snapshot.step),
            share: brief(found.signed_share().unwrap_or_else(|| vec![0.0; agents])),
            centrality: brief(found.centrality.values),
            informativeness: brief(found.informativeness),
            weights: Packed::between(weights.into_iter(), ends, 8),
        });
    }
    Ok(snapshots)
}
