//! Strongest paths from speakers to listeners.

use crate::Combination;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The strongest path from one agent to another.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Path {
    /// From the source to the listener, both included.
    pub agents: Vec<usize>,
    /// Product of (1−δ)·weight along the path.
    pub strength: f64,
}

/// The strongest path from every agent to `listener`: Dijkstra on −log((1−δ)a). `None` where there is none.
///
/// ```
/// use headwater::{Combination, influence::strongest_paths};
/// let a = Combination::from_columns(vec![0.5, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0, 1.0, 0.0], 3).unwrap();
/// let path = strongest_paths(&a, 0.2, 2)[0].clone().unwrap();
/// assert_eq!(path.agents, [0, 1, 2]);
/// assert!((path.strength - 0.8 * 0.5 * 0.8 * 1.0).abs() < 1e-15);
/// ```
pub fn strongest_paths(combination: &Combination, adaptation: f64, listener: usize) -> Vec<Option<Path>> {
    let agents = combination.agents();
    let everybody: Vec<usize> = (0..agents).collect();
    let toll = |weight: f64| ((1.0 - adaptation) * weight).ln();
    let hears = |agent: usize| {
        combination
            .listener(agent)
            .filter(|(_, weight)| *weight > 0.0)
            .map(move |(other, weight)| (other, toll(weight)))
    };
    shortest(agents, listener, &everybody, hears)
}

/// [`strongest_paths`] for many listeners of one network: logarithms are taken once, and a search ends at the last of the
/// sources given.
#[derive(Debug)]
pub struct Paths {
    /// Per listener: speakers, and log((1−δ)a).
    heard: Vec<Vec<(usize, f64)>>,
}

impl Paths {
    /// Prepares the search.
    pub fn new(combination: &Combination, adaptation: f64) -> Self {
        let toll = |(speaker, weight): (usize, f64)| (speaker, ((1.0 - adaptation) * weight).ln());
        let of =
            |listener: usize| combination.listener(listener).filter(|(_, weight)| *weight > 0.0).map(toll).collect();
        Paths { heard: (0..combination.agents()).map(of).collect() }
    }

    /// The strongest path from each of these agents to a listener; `None` where there is none.
    pub fn between(&self, sources: &[usize], listener: usize) -> Vec<Option<Path>> {
        shortest(self.heard.len(), listener, sources, |agent| self.heard[agent].iter().copied())
    }
}

/// Dijkstra from a listener against the flow of opinions, until all sources are reached.
fn shortest<I: Iterator<Item = (usize, f64)>>(
    agents: usize,
    listener: usize,
    sources: &[usize],
    hears: impl Fn(usize) -> I,
) -> Vec<Option<Path>> {
    let mut cost = vec![f64::INFINITY; agents];
    let mut next = vec![listener; agents];
    let mut done = vec![false; agents];
    let mut waited_for = vec![false; agents];
    sources.iter().for_each(|&source| waited_for[source] = true);
    let mut left = waited_for.iter().filter(|waited| **waited).count();
    let mut queue = BinaryHeap::from([Reverse((Cost(0.0), listener))]);
    cost[listener] = 0.0;
    while left > 0
        && let Some(Reverse((_, agent))) = queue.pop()
    {
        if std::mem::replace(&mut done[agent], true) {
            continue;
        }
        left -= usize::from(waited_for[agent]);
        for (speaker, gain) in hears(agent) {
            if done[speaker] {
                continue;
            }
            let through = cost[agent] - gain;
            if through < cost[speaker] {
                cost[speaker] = through;
                next[speaker] = agent;
                queue.push(Reverse((Cost(through), speaker)));
            }
        }
    }
    let path = |&source: &usize| {
        if !done[source] {
            return None;
        }
        let mut path = vec![source];
        while let Some(&last) = path.last()
            && last != listener
        {
            path.push(next[last]);
        }
        Some(Path { agents: path, strength: (-cost[source]).exp() })
    };
    sources.iter().map(path).collect()
}

#[derive(PartialEq)]
struct Cost(f64);

impl Eq for Cost {}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cost {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Share of each agent in the belief of `listener` over exactly 0, 1, …, `most` hops: δ(1−δ)^h [A^h]; the sum over all
/// hops is the attribution.
pub fn by_hops(combination: &Combination, adaptation: f64, listener: usize, most: usize) -> Vec<Vec<f64>> {
    let mut term = vec![0.0; combination.agents()];
    term[listener] = adaptation;
    let mut hops = vec![term];
    for hop in 0..most {
        let next = combination.spread(&hops[hop]).iter().map(|value| (1.0 - adaptation) * value).collect();
        hops.push(next);
    }
    hops
}
