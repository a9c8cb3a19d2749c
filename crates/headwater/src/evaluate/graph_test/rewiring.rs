//! Random graphs like the given one: every account keeps its numbers of speakers, listeners and mutual edges, and every two
//! groups the number of edges between them.
//!
//! Two one-way edges exchange their speakers where these are of one group, or their listeners where those are; two mutual edges
//! exchange partners. From the given graph a number of exchanges leads to a common start, and each draw makes as many exchanges
//! from there on its own. Exchanges are symmetric, so that under the null the given graph and the draws are exchangeable and the
//! p-value is valid however slowly the graphs mix (Besag and Clifford 1989).

use crate::evaluate::draws::numbered;
use crate::graph::Graph;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Tries of an exchange per edge, to the common start and from there to a draw. Few tries succeed in small dense graphs: among
/// 25 accounts 16 come within a fiftieth of the share of edges that 200 move, 4 within a tenth. In large sparse graphs nearly
/// all succeed, and two move nearly every edge several times. A function of the number of edges alone, which all graphs like
/// one share.
fn tries_per_edge(edges: usize) -> usize {
    match edges {
        ..=10_000 => 16,
        10_001..=50_000 => 4,
        _ => 2,
    }
}

/// Accounts up to which edges are a table of bits.
const TABLE_ACCOUNTS: usize = 4096;

/// Number of the stream that leads to the common start; draws have those from 0.
const START: u64 = u64::MAX;

/// Draws of graphs like one graph.
#[derive(Debug)]
pub(super) struct Rewirings {
    given: Wiring,
    start: Wiring,
    /// One-way edges by the group of their speaker, and by the group of their listener, which exchanges keep.
    by_speaker: Buckets,
    by_listener: Buckets,
    /// Ends of mutual edges by group: edge 2i is seen from its first account, 2i + 1 from its second.
    by_end: Buckets,
    seed: u64,
}

/// The edges of one graph.
#[derive(Debug, Clone)]
pub(super) struct Wiring {
    /// Speaker and listener.
    one_way: Vec<[u32; 2]>,
    mutual: Vec<[u32; 2]>,
    present: EdgeSet,
}

/// The speakers of each listener.
#[derive(Debug)]
pub(super) struct SpeakerLists {
    starts: Vec<usize>,
    speakers: Vec<u32>,
}

impl SpeakerLists {
    /// Those of a graph.
    pub(super) fn from_graph(graph: &Graph) -> Self {
        let mut starts = vec![0];
        let mut speakers = Vec::new();
        for list in graph.speakers() {
            speakers.extend(list.iter().map(|&speaker| speaker as u32));
            starts.push(speakers.len());
        }
        SpeakerLists { starts, speakers }
    }

    /// Listeners that have speakers, and these.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[u32])> + '_ {
        let lists = self.starts.windows(2).map(|ends| &self.speakers[ends[0]..ends[1]]);
        lists.enumerate().filter(|(_, speakers)| !speakers.is_empty())
    }
}

/// Members of each group, and the group of each member.
#[derive(Debug)]
struct Buckets {
    members: Vec<Vec<u32>>,
    group: Vec<u32>,
}

impl Buckets {
    fn new(groups: impl Iterator<Item = usize>, count: usize) -> Self {
        let mut buckets = Buckets { members: vec![Vec::new(); count], group: Vec::new() };
        for (member, group) in groups.enumerate() {
            buckets.members[group].push(member as u32);
            buckets.group.push(group as u32);
        }
        buckets
    }

    /// A member, and another of its group (or the same).
    fn pair(&self, rng: &mut ChaCha8Rng) -> (usize, usize) {
        let one = rng.random_range(0..self.group.len() as u32) as usize;
        let group = &self.members[self.group[one] as usize];
        (one, group[rng.random_range(0..group.len() as u32) as usize] as usize)
    }
}

impl Rewirings {
    pub(super) fn new(graph: &Graph, groups: &[usize], seed: u64) -> Self {
        let count = groups.iter().max().map_or(0, |most| most + 1);
        let mut given = Wiring { one_way: Vec::new(), mutual: Vec::new(), present: EdgeSet::new(graph) };
        for (speaker, listener) in graph.edges() {
            let edge = [speaker as u32, listener as u32];
            if !given.present.contains(edge[1], edge[0]) {
                given.one_way.push(edge);
            } else if speaker < listener {
                given.mutual.push(edge);
            }
        }
        let group = |account: u32| groups[account as usize];
        let by_speaker = Buckets::new(given.one_way.iter().map(|edge| group(edge[0])), count);
        let by_listener = Buckets::new(given.one_way.iter().map(|edge| group(edge[1])), count);
        let by_end = Buckets::new(given.mutual.iter().flatten().map(|&end| group(end)), count);
        let start = given.clone();
        let mut rewirings = Rewirings { given, start, by_speaker, by_listener, by_end, seed };
        let mut start = rewirings.given.clone();
        rewirings.exchange(&mut start, &mut numbered(seed, START));
        rewirings.start = start;
        rewirings
    }

    /// The graph itself.
    pub(super) fn given(&self) -> &Wiring {
        &self.given
    }

    /// The rewired graph with this number.
    pub(super) fn draw(&self, number: u64) -> Wiring {
        let mut wiring = self.start.clone();
        self.exchange(&mut wiring, &mut numbered(self.seed, number));
        wiring
    }

    /// Share of the edges of a draw that the given graph does not have.
    pub(super) fn moved(&self, wiring: &Wiring) -> f64 {
        let (mut moved, mut all) = (0usize, 0usize);
        for (speaker, listener) in wiring.edges() {
            moved += usize::from(!self.given.present.contains(speaker as u32, listener as u32));
            all += 1;
        }
        moved as f64 / all.max(1) as f64
    }

    fn exchange(&self, wiring: &mut Wiring, rng: &mut ChaCha8Rng) {
        let Wiring { one_way, mutual, present } = wiring;
        let tries = tries_per_edge(one_way.len() + 2 * mutual.len());
        if one_way.len() >= 2 {
            for _ in 0..tries * one_way.len() {
                // Which end is exchanged: speakers of one group, or listeners of one group.
                let end = usize::from(rng.random::<bool>());
                let (i, j) = if end == 0 { self.by_speaker.pair(rng) } else { self.by_listener.pair(rng) };
                let ([a, b], [c, d]) = (one_way[i], one_way[j]);
                if clash(present, a, b, c, d) {
                    continue;
                }
                present.remove(a, b);
                present.remove(c, d);
                present.insert(a, d);
                present.insert(c, b);
                // Each place keeps the groups of its speaker and its listener.
                (one_way[i], one_way[j]) = if end == 0 { ([c, b], [a, d]) } else { ([a, d], [c, b]) };
            }
        }
        if mutual.len() >= 2 {
            for _ in 0..tries * 2 * mutual.len() {
                let (x, y) = self.by_end.pair(rng);
                let (i, j) = (x / 2, y / 2);
                let (a, b) = (mutual[i][x % 2], mutual[i][1 - x % 2]);
                let (c, d) = (mutual[j][y % 2], mutual[j][1 - y % 2]);
                if i == j || clash(present, a, b, c, d) {
                    continue;
                }
                for (one, other) in [(a, b), (b, a), (c, d), (d, c)] {
                    present.remove(one, other);
                }
                for (one, other) in [(a, d), (d, a), (c, b), (b, c)] {
                    present.insert(one, other);
                }
                mutual[i][x % 2] = c;
                mutual[j][y % 2] = a;
            }
        }
    }
}

/// Whether a → d and c → b would be loops, the same edges again, or join accounts that have an edge already.
fn clash(present: &EdgeSet, a: u32, b: u32, c: u32, d: u32) -> bool {
    a == c
        || b == d
        || a == d
        || c == b
        || present.contains(a, d)
        || present.contains(d, a)
        || present.contains(c, b)
        || present.contains(b, c)
}

impl Wiring {
    /// (speaker, listener) of all edges, mutual ones in both directions.
    pub(super) fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let one_way = self.one_way.iter().map(|&[speaker, listener]| (speaker as usize, listener as usize));
        let mutual = self.mutual.iter().map(|&[one, other]| (one as usize, other as usize));
        one_way.chain(mutual.flat_map(|(one, other)| [(one, other), (other, one)]))
    }

    /// The speakers of each listener, ascending, so that equal graphs have equal lists.
    pub(super) fn speakers(&self, accounts: usize) -> SpeakerLists {
        let mut starts = vec![0; accounts + 1];
        self.edges().for_each(|(_, listener)| starts[listener + 1] += 1);
        (0..accounts).for_each(|account| starts[account + 1] += starts[account]);
        let mut next = starts.clone();
        let mut speakers = vec![0; starts[accounts]];
        for (speaker, listener) in self.edges() {
            speakers[next[listener]] = speaker as u32;
            next[listener] += 1;
        }
        starts.windows(2).for_each(|ends| speakers[ends[0]..ends[1]].sort_unstable());
        SpeakerLists { starts, speakers }
    }

    /// Edges in one direction only.
    pub(super) fn one_way(&self) -> usize {
        self.one_way.len()
    }
}

/// The edges of a graph, for looking up.
#[derive(Debug, Clone)]
enum EdgeSet {
    /// A bit for each pair.
    Table {
        accounts: usize,
        bits: Vec<u64>,
    },
    Hashed(PairSet),
}

impl EdgeSet {
    fn new(graph: &Graph) -> Self {
        let accounts = graph.agents();
        let mut set = if accounts <= TABLE_ACCOUNTS {
            EdgeSet::Table { accounts, bits: vec![0; (accounts * accounts).div_ceil(64)] }
        } else {
            EdgeSet::Hashed(PairSet::with_room_for(graph.edges().count()))
        };
        graph.edges().for_each(|(speaker, listener)| set.insert(speaker as u32, listener as u32));
        set
    }

    fn contains(&self, speaker: u32, listener: u32) -> bool {
        match self {
            EdgeSet::Table { accounts, bits } => {
                let place = speaker as usize * accounts + listener as usize;
                bits[place / 64] >> (place % 64) & 1 == 1
            }
            EdgeSet::Hashed(edges) => edges.contains(speaker, listener),
        }
    }

    fn insert(&mut self, speaker: u32, listener: u32) {
        match self {
            EdgeSet::Table { accounts, bits } => {
                let place = speaker as usize * *accounts + listener as usize;
                bits[place / 64] |= 1 << (place % 64);
            }
            EdgeSet::Hashed(edges) => edges.insert(speaker, listener),
        }
    }

    fn remove(&mut self, speaker: u32, listener: u32) {
        match self {
            EdgeSet::Table { accounts, bits } => {
                let place = speaker as usize * *accounts + listener as usize;
                bits[place / 64] &= !(1 << (place % 64));
            }
            EdgeSet::Hashed(edges) => edges.remove(speaker, listener),
        }
    }
}

/// A set of pairs of different accounts that never grows: open addressing with linear probing, at most half full. Two flat words
/// a pair, so that a copy for each draw is cheap.
#[derive(Debug, Clone)]
struct PairSet {
    /// A power of two; [`NO_PAIR`] where free.
    slots: Vec<u64>,
}

/// No pair of different accounts.
const NO_PAIR: u64 = 0;

impl PairSet {
    fn with_room_for(pairs: usize) -> Self {
        PairSet { slots: vec![NO_PAIR; (2 * pairs + 8).next_power_of_two()] }
    }

    fn key(one: u32, other: u32) -> u64 {
        u64::from(one) << 32 | u64::from(other)
    }

    /// Where a pair would be if no other was in its way.
    fn home(&self, key: u64) -> usize {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 32) as usize & (self.slots.len() - 1)
    }

    /// The slot of a pair, or the free one where it would go.
    fn slot(&self, key: u64) -> usize {
        let mut slot = self.home(key);
        while self.slots[slot] != key && self.slots[slot] != NO_PAIR {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    fn contains(&self, one: u32, other: u32) -> bool {
        let key = PairSet::key(one, other);
        self.slots[self.slot(key)] == key
    }

    fn insert(&mut self, one: u32, other: u32) {
        let key = PairSet::key(one, other);
        let slot = self.slot(key);
        self.slots[slot] = key;
    }

    /// Takes a pair out and moves those behind it up, so that no gap ends their search early.
    fn remove(&mut self, one: u32, other: u32) {
        let last = self.slots.len() - 1;
        let mut free = self.slot(PairSet::key(one, other));
        let mut slot = free;
        self.slots[free] = NO_PAIR;
        loop {
            slot = (slot + 1) & last;
            let key = self.slots[slot];
            if key == NO_PAIR {
                return;
            }
            // It may move up where its home is not between the gap and where it is.
            if slot.wrapping_sub(self.home(key)) & last >= slot.wrapping_sub(free) & last {
                self.slots[free] = key;
                self.slots[slot] = NO_PAIR;
                free = slot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::HashSet;

    /// What a rewiring has to keep: speakers, listeners and mutual edges of each account, edges between groups.
    fn kept(edges: &[(usize, usize)], groups: &[usize]) -> (Vec<[usize; 3]>, Vec<usize>) {
        let (mut degrees, mut between) = (vec![[0; 3]; groups.len()], vec![0; 9]);
        let set: HashSet<(usize, usize)> = edges.iter().copied().collect();
        assert_eq!(set.len(), edges.len(), "no edge twice");
        for &(speaker, listener) in edges {
            assert_ne!(speaker, listener);
            degrees[speaker][0] += 1;
            degrees[listener][1] += 1;
            degrees[speaker][2] += usize::from(set.contains(&(listener, speaker)));
            between[groups[speaker] * 3 + groups[listener]] += 1;
        }
        (degrees, between)
    }

    fn random(accounts: usize, probability: f64, seed: u64) -> Graph {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let pairs = (0..accounts).flat_map(|a| (0..accounts).map(move |b| (a, b)));
        let edges: Vec<_> = pairs.filter(|_| rng.random::<f64>() < probability).collect();
        Graph::new(accounts, edges).unwrap()
    }

    #[test]
    fn degrees_and_edges_between_groups_stay() {
        for seed in 0..6 {
            let graph = random(30, 0.2, seed);
            let groups: Vec<usize> = (0..30).map(|account| account % 3).collect();
            let rewirings = Rewirings::new(&graph, &groups, seed);
            let given: Vec<_> = graph.edges().collect();
            for number in 0..5 {
                let draw = rewirings.draw(number);
                let edges: Vec<_> = draw.edges().collect();
                assert_eq!(kept(&edges, &groups), kept(&given, &groups));
                assert!(rewirings.moved(&draw) > 0.4, "{}", rewirings.moved(&draw));
            }
        }
    }

    #[test]
    fn hashed_edges_are_rewired_alike() {
        let graph = random(40, 0.15, 3);
        let (table, groups) = (EdgeSet::new(&graph), vec![0; 40]);
        let mut hashed = PairSet::with_room_for(graph.edges().count());
        graph.edges().for_each(|(a, b)| hashed.insert(a as u32, b as u32));
        let mut rewirings = Rewirings::new(&graph, &groups, 5);
        let wanted: Vec<_> = rewirings.draw(7).edges().collect();
        assert!(matches!(table, EdgeSet::Table { .. }));
        rewirings.start.present = EdgeSet::Hashed(hashed);
        let mut start = Wiring { present: rewirings.start.present.clone(), ..rewirings.given.clone() };
        rewirings.exchange(&mut start, &mut numbered(5, START));
        rewirings.start = start;
        assert_eq!(rewirings.draw(7).edges().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn pairs_are_those_of_a_set() {
        // Few slots and few names, so that pairs stand in each other's way and wrap around.
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let (mut set, mut known) = (PairSet::with_room_for(28), HashSet::new());
        assert_eq!(set.slots.len(), 64);
        for _ in 0..20_000 {
            let pair = (rng.random_range(0..12u32), rng.random_range(12..24u32));
            if known.contains(&pair) {
                set.remove(pair.0, pair.1);
                known.remove(&pair);
            } else if known.len() < 32 {
                set.insert(pair.0, pair.1);
                known.insert(pair);
            }
            let met = (0..12).flat_map(|a| (12..24).map(move |b| (a, b))).filter(|&(a, b)| set.contains(a, b));
            assert_eq!(met.collect::<HashSet<_>>(), known);
            assert_eq!(set.slots.iter().filter(|slot| **slot != NO_PAIR).count(), known.len());
        }
    }

    #[test]
    fn lists_of_speakers_have_every_edge_once() {
        let graph = random(30, 0.2, 5);
        let draw = Rewirings::new(&graph, &[0; 30], 1).draw(3);
        let lists = draw.speakers(30);
        let listed: Vec<(usize, usize)> =
            lists.iter().flat_map(|(listener, list)| list.iter().map(move |&one| (one as usize, listener))).collect();
        assert!(lists.iter().all(|(_, list)| list.is_sorted()));
        assert_eq!(listed.len(), graph.edges().count());
        assert_eq!(listed.into_iter().collect::<HashSet<_>>(), draw.edges().collect::<HashSet<_>>());
    }

    #[test]
    fn a_star_cannot_be_rewired() {
        let star = Graph::new(12, (1..12).map(|listener| (0, listener))).unwrap();
        let rewirings = Rewirings::new(&star, &[0; 12], 1);
        assert_eq!(rewirings.moved(&rewirings.draw(0)), 0.0);
    }
}
