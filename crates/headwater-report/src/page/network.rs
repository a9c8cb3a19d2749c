//! The network of the page: positions of the agents, the strongest edges and their tests.

use super::ReportInput;
use super::pack::Packed;
use crate::error::Error;
use crate::network::places;
use headwater::Model;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Weights up to this are rounding errors of an exact fit where there is no edge.
const ROUNDING: f64 = 1e-9;

/// Speaker, listener, weight.
pub(crate) type WeightedEdge = (usize, usize, f64);

/// Who listens to whom, the strongest edges first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageNetwork {
    /// Positions: x and y of each agent in turn, 0…1.
    pub places: Packed,
    /// Speaker of each edge.
    pub speakers: Packed,
    /// Listener of each edge.
    pub listeners: Packed,
    /// Weight that the listener gives the speaker.
    pub weights: Packed,
    /// Where the permutation test was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_values: Option<Packed>,
    /// 1 where significant after Benjamini–Hochberg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub significant: Option<Packed>,
    /// Number of edges of the model.
    pub edges: usize,
    /// Whether the weights were restricted to a given graph.
    pub given: bool,
}

/// Positive weights between different agents, the strongest first.
pub(crate) fn strongest_edges(model: &Model) -> Vec<WeightedEdge> {
    let heard = |&(speaker, listener, weight): &WeightedEdge| speaker != listener && weight > ROUNDING;
    let mut edges: Vec<WeightedEdge> = model.combination.edges().filter(heard).collect();
    edges.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    edges
}

pub(super) fn network(
    from: &ReportInput<'_>,
    on_graph: bool,
    all: &[WeightedEdge],
    kept: &[WeightedEdge],
) -> Result<PageNetwork, Error> {
    let roster = &from.model.roster;
    let agents = roster.agents().len();
    let heaviest = kept.first().map_or(0.0, |edge| edge.2);
    let tested = match &from.ranking.edges {
        None => None,
        Some(edges) => {
            let mut tested = HashMap::with_capacity(edges.len());
            for edge in edges {
                let ends = (roster.agent(&edge.source), roster.agent(&edge.target));
                let (Ok(source), Ok(target)) = ends else {
                    let problem = format!(
                        "its edge {:?} → {:?} names an agent that the model does not have",
                        edge.source, edge.target
                    );
                    return Err(Error::Ranking { problem });
                };
                tested.insert((source, target), (edge.p_value, edge.significant));
            }
            Some(tested)
        }
    };
    // An edge that was not tested is not significant.
    let test = |edge: &WeightedEdge| {
        tested.as_ref().map(|tested| tested.get(&(edge.0, edge.1)).copied().unwrap_or((1.0, false)))
    };
    let tests: Option<Vec<(f64, bool)>> = tested.as_ref().and_then(|_| kept.iter().map(test).collect());
    let places = places(agents, all).into_iter().flat_map(|(x, y)| [x, y]);
    Ok(PageNetwork {
        places: Packed::between(places, (0.0, 1.0), 16),
        speakers: Packed::indices(kept.iter().map(|edge| edge.0), agents),
        listeners: Packed::indices(kept.iter().map(|edge| edge.1), agents),
        // Weights and p-values are printed: nine digits of the largest.
        weights: Packed::between(kept.iter().map(|edge| edge.2), (0.0, heaviest), 32),
        p_values: tests.as_ref().map(|tests| Packed::between(tests.iter().map(|test| test.0), (0.0, 1.0), 32)),
        significant: tests.map(|tests| Packed::flags(tests.into_iter().map(|test| test.1))),
        edges: all.len(),
        given: on_graph,
    })
}
