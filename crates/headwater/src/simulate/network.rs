//! Random networks of a given shape.

use super::asl::{Purpose, stream};
use super::{NetworkShape, WorldParams};
use crate::Error;
use crate::graph::Graph;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Graphs drawn before the search for a strongly connected one ends with an error.
pub(super) const DRAWS: usize = 10_000;

/// A strongly connected network of the shape that the parameters ask for.
pub(super) fn draw_graph(params: &WorldParams) -> Result<Graph, Error> {
    let mut rng = stream(params.seed, Purpose::Graph);
    let agents = params.agents;
    for _ in 0..DRAWS {
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        match params.network {
            NetworkShape::Er => pairs.extend(draw_pairs(agents, &mut rng, |_, _| params.edge_probability)),
            NetworkShape::Star => pairs.extend((1..agents).map(|agent| (0, agent))),
            NetworkShape::Preferential => {
                // Each link enters both ends, so a uniform draw from the ends is a draw by degree.
                let mut ends = vec![0, 1];
                pairs.push((0, 1));
                for agent in 2..agents {
                    let mut chosen: Vec<usize> = Vec::new();
                    while chosen.len() < 2 {
                        let other = ends[rng.random_range(0..ends.len())];
                        if !chosen.contains(&other) {
                            chosen.push(other);
                        }
                    }
                    for other in chosen {
                        pairs.push((other, agent));
                        ends.extend([other, agent]);
                    }
                }
            }
            NetworkShape::Blocks { groups } => {
                let group = |agent: usize| agent * groups / agents;
                let probability =
                    |a: usize, b: usize| params.edge_probability * if group(a) == group(b) { 1.0 } else { 0.1 };
                pairs.extend(draw_pairs(agents, &mut rng, probability));
            }
        }
        let both = pairs.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
        let graph = Graph::new(agents, both)?;
        if graph.connected().is_ok() {
            return Ok(graph);
        }
    }
    Err(Error::Graph {
        reason: format!(
            "no strongly connected network in {DRAWS} draws with {agents} agents and edge probability {}; it needs about {:.3}",
            params.edge_probability,
            (agents as f64).ln() / agents as f64
        ),
    })
}

fn draw_pairs(agents: usize, rng: &mut ChaCha8Rng, probability: impl Fn(usize, usize) -> f64) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for a in 0..agents {
        for b in a + 1..agents {
            if rng.random::<f64>() < probability(a, b) {
                pairs.push((a, b));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Rule;
    use crate::simulate::World;

    fn small() -> WorldParams {
        WorldParams { agents: 8, edge_probability: 0.4, steps: 200, burn_in: 100, ..WorldParams::default() }
    }

    #[test]
    fn every_network_is_strongly_connected() {
        for network in
            [NetworkShape::Er, NetworkShape::Star, NetworkShape::Preferential, NetworkShape::Blocks { groups: 3 }]
        {
            for rule in [Rule::Uniform, Rule::Metropolis, Rule::Random] {
                let params = WorldParams { network, rule, agents: 30, edge_probability: 0.5, ..small() };
                let truth = World::new(params).unwrap().truth();
                assert_eq!(truth.combination.components().len(), 1);
                assert!(truth.combination.column_sums().iter().all(|sum| (sum - 1.0).abs() < 1e-12));
            }
        }
        let sparse = WorldParams { agents: 200, edge_probability: 0.001, ..small() };
        assert!(World::new(sparse).unwrap_err().to_string().contains("edge probability 0.001"));
    }
}
