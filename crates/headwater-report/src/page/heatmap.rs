//! The weights as a heat map, the true ones on the same scale where they are known.

use super::ReportInput;
use super::pack::Packed;
use headwater::Combination;
use serde::{Deserialize, Serialize};

/// The weights as a heat map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageHeatmap {
    /// Agents by rank: row and column i are agent `order[i]`.
    pub order: Vec<usize>,
    /// Row = speaker, column = listener, row by row.
    pub learned: Packed,
    /// The true weights on the same scale.
    #[serde(rename = "true", default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Packed>,
}

pub(super) fn heatmap(from: &ReportInput<'_>, order: &[usize]) -> PageHeatmap {
    let model = from.model;
    let names = model.roster.agents();
    let learned = &model.combination;
    // By name: the truth may have other agents, in another order.
    let known: Option<(&Combination, Vec<Option<usize>>)> = from.truth.and_then(|truth| {
        let place = names.iter().map(|name| truth.roster.agent(name).ok()).collect::<Vec<_>>();
        truth.combination.as_ref().filter(|_| place.iter().any(Option::is_some)).map(|weights| (weights, place))
    });
    let cells = || order.iter().flat_map(|&speaker| order.iter().map(move |&listener| (speaker, listener)));
    let true_weight = |(speaker, listener): (usize, usize)| {
        let (weights, place) = known.as_ref()?;
        Some(weights.weight(place[speaker]?, place[listener]?))
    };
    let learned_weight = |(speaker, listener): (usize, usize)| learned.weight(speaker, listener);
    let all = cells().map(learned_weight).chain(cells().filter_map(true_weight));
    let ends = all.fold((0.0f64, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    PageHeatmap {
        learned: Packed::between(cells().map(learned_weight), ends, 8),
        known: known.is_some().then(|| Packed::between(cells().map(|cell| true_weight(cell).unwrap_or(0.0)), ends, 8)),
        order: order.to_vec(),
    }
}
