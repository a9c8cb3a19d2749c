//! Graphs: who may listen to whom, without weights.
//!
//! In: edges speaker → listener. Out: degrees, PageRank, the support of a learner, weights by the usual rules.

use crate::{Combination, Error};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A directed graph over N agents; self-loops are implied and never stored.
///
/// ```
/// use headwater::graph::Graph;
/// let graph = Graph::new(3, [(0, 1), (0, 2), (1, 0), (2, 0)]).unwrap();
/// assert_eq!(graph.followers(), [2, 1, 1]);
/// assert!(graph.connected().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Speakers of each listener, ascending, without itself.
    speakers: Vec<Vec<usize>>,
}

/// Rule for the weights of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The averaging rule: equal weights for the listener and all its speakers.
    #[default]
    Uniform,
    /// 1/max(n_ℓ, n_k) for others, the remainder as self-weight; needs edges in both directions.
    Metropolis,
    /// Exponential draws, normalised.
    Random,
}

impl Graph {
    /// From (speaker, listener) pairs; self-loops and repeats are dropped.
    pub fn new(agents: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Result<Self, Error> {
        let mut speakers = vec![Vec::new(); agents];
        for (speaker, listener) in edges {
            if speaker >= agents || listener >= agents {
                return Err(Error::Shape {
                    what: "edge",
                    met: format!("agents {speaker} → {listener}"),
                    wanted: format!("indices below {agents}"),
                });
            }
            if speaker != listener {
                speakers[listener].push(speaker);
            }
        }
        for list in &mut speakers {
            list.sort_unstable();
            list.dedup();
        }
        Ok(Graph { speakers })
    }

    /// N.
    pub fn agents(&self) -> usize {
        self.speakers.len()
    }

    /// The speakers of each listener, itself not included.
    pub fn speakers(&self) -> &[Vec<usize>] {
        &self.speakers
    }

    /// All edges as (speaker, listener), listener by listener.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let lists = self.speakers.iter().enumerate();
        lists.flat_map(|(listener, speakers)| speakers.iter().map(move |&speaker| (speaker, listener)))
    }

    /// How many agents follow each agent: its in-degree in the graph of who follows whom.
    pub fn followers(&self) -> Vec<usize> {
        let mut count = vec![0; self.agents()];
        self.edges().for_each(|(speaker, _)| count[speaker] += 1);
        count
    }

    /// PageRank on the graph of who follows whom, with the usual damping factor.
    pub fn pagerank(&self, damping: f64) -> Vec<f64> {
        const TOLERANCE: f64 = 1e-14;
        let agents = self.agents() as f64;
        let mut rank = vec![1.0 / agents; self.agents()];
        for _ in 0..10_000 {
            let lost: f64 = rank.iter().zip(&self.speakers).filter(|(_, list)| list.is_empty()).map(|(r, _)| r).sum();
            let mut next = vec![(1.0 - damping + damping * lost) / agents; self.agents()];
            for (listener, speakers) in self.speakers.iter().enumerate() {
                let part = damping * rank[listener] / speakers.len().max(1) as f64;
                speakers.iter().for_each(|&speaker| next[speaker] += part);
            }
            let change: f64 = next.iter().zip(&rank).map(|(a, b)| (a - b).abs()).sum();
            rank = next;
            if change < TOLERANCE {
                break;
            }
        }
        rank
    }

    /// Weights by a rule, each listener's own included. The seed matters to [`Rule::Random`] only.
    ///
    /// Errors: [`Rule::Metropolis`] with an edge in one direction only.
    pub fn weigh(&self, rule: Rule, seed: u64) -> Result<Combination, Error> {
        self.weigh_with(rule, &mut ChaCha8Rng::seed_from_u64(seed))
    }

    /// [`Graph::weigh`] with a generator that is already in use.
    pub(crate) fn weigh_with(&self, rule: Rule, rng: &mut ChaCha8Rng) -> Result<Combination, Error> {
        let degree = |agent: usize| self.speakers[agent].len() + 1;
        let mut triplets = Vec::new();
        for (listener, speakers) in self.speakers.iter().enumerate() {
            match rule {
                Rule::Uniform => {
                    let weight = 1.0 / degree(listener) as f64;
                    triplets.extend(speakers.iter().chain([&listener]).map(|&speaker| (speaker, listener, weight)));
                }
                Rule::Metropolis => {
                    let mut rest = 1.0;
                    for &speaker in speakers {
                        if self.speakers[speaker].binary_search(&listener).is_err() {
                            return Err(Error::Graph {
                                reason: format!(
                                    "metropolis weights need edges in both directions, but {listener} listens to {speaker} and not the other way round; use uniform or random weights"
                                ),
                            });
                        }
                        let weight = 1.0 / degree(listener).max(degree(speaker)) as f64;
                        rest -= weight;
                        triplets.push((speaker, listener, weight));
                    }
                    triplets.push((listener, listener, rest.max(0.0)));
                }
                Rule::Random => {
                    let draws: Vec<f64> = (0..degree(listener)).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
                    let sum: f64 = draws.iter().sum();
                    let heard = speakers.iter().chain([&listener]).zip(&draws);
                    triplets.extend(heard.map(|(&speaker, draw)| (speaker, listener, draw / sum)));
                }
            }
        }
        Combination::from_triplets(triplets, self.agents())
    }

    /// Strongly connected, or the reason why not, by agent index.
    pub fn connected(&self) -> Result<(), Disconnected> {
        let mut listeners = vec![Vec::new(); self.agents()];
        self.edges().for_each(|(speaker, listener)| listeners[speaker].push(listener));
        let reached = |next: &[Vec<usize>]| {
            let mut seen = vec![false; self.agents()];
            seen[0] = true;
            let mut stack = vec![0];
            while let Some(agent) = stack.pop() {
                for &other in &next[agent] {
                    if !std::mem::replace(&mut seen[other], true) {
                        stack.push(other);
                    }
                }
            }
            seen.iter().position(|seen| !seen)
        };
        if let Some(listener) = reached(&listeners) {
            return Err(Disconnected { speaker: 0, listener });
        }
        match reached(&self.speakers) {
            Some(speaker) => Err(Disconnected { speaker, listener: 0 }),
            None => Ok(()),
        }
    }
}

/// A pair of agents without a path from speaker to listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disconnected {
    /// Start of the missing path.
    pub speaker: usize,
    /// End of the missing path.
    pub listener: usize,
}

/// Strongly connected components of a directed graph: sets of nodes each of which can be reached from every other.
///
/// Largest first, members ascending. O(nodes + edges), without recursion: a long chain does not exhaust the stack.
///
/// ```
/// use headwater::graph::strong_components;
/// assert_eq!(strong_components(4, [(0, 1), (1, 0), (1, 2), (3, 3)]), [vec![0, 1], vec![2], vec![3]]);
/// ```
///
/// # Panics
/// Where an edge names a node of `nodes` or more.
pub fn strong_components(nodes: usize, edges: impl IntoIterator<Item = (u32, u32)>) -> Vec<Vec<usize>> {
    let mut graph = DiGraph::<(), ()>::with_capacity(nodes, 0);
    for _ in 0..nodes {
        graph.add_node(());
    }
    for (from, to) in edges {
        graph.add_edge(from.into(), to.into(), ());
    }
    // Kosaraju's algorithm keeps its own stack.
    let components = kosaraju_scc(&graph).into_iter();
    let mut components: Vec<Vec<usize>> =
        components.map(|members| members.into_iter().map(|node| node.index()).collect()).collect();
    components.iter_mut().for_each(|members| members.sort_unstable());
    components.sort_by_key(|members| (std::cmp::Reverse(members.len()), members[0]));
    components
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> Graph {
        Graph::new(3, [(0, 1), (1, 0), (1, 2), (2, 1)]).unwrap()
    }

    #[test]
    fn rules_by_hand() {
        let uniform = path().weigh(Rule::Uniform, 1).unwrap();
        let third = 1.0 / 3.0;
        assert_eq!(uniform.to_columns(), [0.5, 0.5, 0.0, third, third, third, 0.0, 0.5, 0.5]);
        let metropolis = path().weigh(Rule::Metropolis, 1).unwrap();
        assert_eq!(metropolis.weight(0, 1), third);
        assert!((metropolis.weight(0, 0) - 2.0 * third).abs() < 1e-15);
        let random = path().weigh(Rule::Random, 1).unwrap();
        assert!(random.column_sums().iter().all(|sum| (sum - 1.0).abs() < 1e-15));
        assert!(Graph::new(2, [(0, 1)]).unwrap().weigh(Rule::Metropolis, 1).is_err());
    }

    #[test]
    fn connection_names_a_pair() {
        assert_eq!(path().connected(), Ok(()));
        let celebrity = Graph::new(3, [(0, 1), (0, 2), (1, 2), (2, 1)]).unwrap();
        assert_eq!(celebrity.connected(), Err(Disconnected { speaker: 1, listener: 0 }));
    }

    #[test]
    fn pagerank_by_hand() {
        // Two agents follow agent 0, which follows nobody: r1 = r2 = (0.15 + 0.85 r0)/3, the rest is r0.
        let graph = Graph::new(3, [(0, 1), (0, 2)]).unwrap();
        let rank = graph.pagerank(0.85);
        let wanted = (0.15 + 0.85 * rank[0]) / 3.0;
        assert!((rank[1] - wanted).abs() < 1e-13 && (rank.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((rank[0] - (wanted + 0.85 * 2.0 * rank[1])).abs() < 1e-12);
    }
}
