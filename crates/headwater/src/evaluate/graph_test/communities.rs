//! Groups of accounts: communities of the graph by Louvain's method, or given ones; small groups pooled.

use crate::graph::Graph;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Members below which a group is pooled with the other small ones.
const FEWEST_MEMBERS: usize = 4;

/// Members that centring a block without its diagonal needs.
const FEWEST_TO_CENTRE: usize = 3;

/// Passes over all nodes at one level, at most.
const PASSES: usize = 50;

/// Gain of modularity, in edges, that a move must exceed.
const SMALLEST_GAIN: f64 = 1e-9;

/// A weighted undirected graph: neighbours with weights, ascending; a node may be its own neighbour.
type Neighbours = Vec<Vec<(usize, f64)>>;

/// Communities of the graph without directions, a mutual edge counted twice: labels from 0.
pub(super) fn communities(graph: &Graph, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut neighbours: Neighbours = vec![Vec::new(); graph.agents()];
    for (speaker, listener) in graph.edges() {
        neighbours[speaker].push((listener, 1.0));
        neighbours[listener].push((speaker, 1.0));
    }
    neighbours.iter_mut().for_each(merge);
    let mut labels: Vec<usize> = (0..graph.agents()).collect();
    loop {
        let (moved, count) = numbered(&one_level(&neighbours, rng));
        labels.iter_mut().for_each(|label| *label = moved[*label]);
        if count == neighbours.len() {
            return numbered(&labels).0;
        }
        let mut coarser: Neighbours = vec![Vec::new(); count];
        for (node, list) in neighbours.iter().enumerate() {
            coarser[moved[node]].extend(list.iter().map(|&(other, weight)| (moved[other], weight)));
        }
        coarser.iter_mut().for_each(merge);
        neighbours = coarser;
    }
}

/// Sorts neighbours and adds up the weights of repeated ones.
fn merge(list: &mut Vec<(usize, f64)>) {
    list.sort_by_key(|(node, _)| *node);
    list.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 += later.1;
        }
        same
    });
}

/// Moves nodes one by one to the neighbouring community with the largest gain of modularity, until none moves.
fn one_level(neighbours: &Neighbours, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let degrees: Vec<f64> = neighbours.iter().map(|list| list.iter().map(|(_, weight)| weight).sum()).collect();
    let total: f64 = degrees.iter().sum();
    let mut community: Vec<usize> = (0..neighbours.len()).collect();
    let mut sums = degrees.clone();
    let mut towards = vec![0.0; neighbours.len()];
    for _ in 0..PASSES {
        let mut order: Vec<usize> = (0..neighbours.len()).collect();
        order.shuffle(rng);
        let mut moves = 0;
        for node in order {
            let mut met = Vec::new();
            for &(other, weight) in neighbours[node].iter().filter(|(other, _)| *other != node) {
                met.push(community[other]);
                towards[community[other]] += weight;
            }
            met.sort_unstable();
            met.dedup();
            let old = community[node];
            sums[old] -= degrees[node];
            let gain = |to: usize| if total > 0.0 { towards[to] - degrees[node] * sums[to] / total } else { 0.0 };
            let (mut best, mut most) = (old, gain(old));
            for &candidate in &met {
                if gain(candidate) > most + SMALLEST_GAIN {
                    (best, most) = (candidate, gain(candidate));
                }
            }
            moves += usize::from(best != old);
            community[node] = best;
            sums[best] += degrees[node];
            met.iter().for_each(|&label| towards[label] = 0.0);
        }
        if moves == 0 {
            break;
        }
    }
    community
}

/// Labels renumbered from 0 in order of their value, and how many there are.
fn numbered(labels: &[usize]) -> (Vec<usize>, usize) {
    let mut distinct = labels.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    (labels.iter().map(|label| distinct.partition_point(|other| other < label)).collect(), distinct.len())
}

/// Groups with fewer than four members pooled into one, and that one into the largest where it is still too small.
pub(super) fn pooled(labels: &[usize]) -> Vec<usize> {
    let sizes = |labels: &[usize], count: usize| {
        let mut sizes = vec![0; count];
        labels.iter().for_each(|&label| sizes[label] += 1);
        sizes
    };
    let (mut labels, count) = numbered(labels);
    let members = sizes(&labels, count);
    labels.iter_mut().filter(|label| members[**label] < FEWEST_MEMBERS).for_each(|label| *label = count);
    let (mut labels, count) = numbered(&labels);
    let members = sizes(&labels, count);
    let largest = (0..count).max_by_key(|&group| (members[group], std::cmp::Reverse(group))).unwrap_or(0);
    labels.iter_mut().filter(|label| members[**label] < FEWEST_TO_CENTRE).for_each(|label| *label = largest);
    numbered(&labels).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn two_cliques_are_two_communities() {
        let clique = |from: usize| (from..from + 5).flat_map(move |a| (from..from + 5).map(move |b| (a, b)));
        let graph = Graph::new(10, clique(0).chain(clique(5)).chain([(0, 5)])).unwrap();
        for seed in 0..5 {
            let found = communities(&graph, &mut ChaCha8Rng::seed_from_u64(seed));
            assert_eq!(found, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
        }
    }

    #[test]
    fn small_groups_are_pooled() {
        assert_eq!(pooled(&[7, 7, 7, 7, 2, 2, 3, 4]), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(pooled(&[7, 7, 7, 7, 2, 2]), [0; 6], "two left over join the largest");
        assert_eq!(pooled(&[1, 2, 3]), [0; 3]);
    }

    #[test]
    fn a_graph_without_edges_has_single_accounts() {
        let graph = Graph::new(3, []).unwrap();
        assert_eq!(communities(&graph, &mut ChaCha8Rng::seed_from_u64(1)), [0, 1, 2]);
    }
}
