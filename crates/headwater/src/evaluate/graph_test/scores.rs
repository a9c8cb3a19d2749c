//! Scores of pairs (speaker, listener): inner products of rows, less row and column effects within each block of groups, and
//! less what news shared by both would give.
//!
//! No N×N matrix is needed. Centring rows by group means removes the effects of a complete block. In the blocks on the diagonal
//! an account is not its own speaker; leaving the diagonal out changes the effects by a number per account and one per group,
//! which follow from the diagonal alone (see [`PairScores::new`]).

use super::blocks::ColumnBlocks;
use super::rewiring::SpeakerLists;
use super::rows::{Rows, dot};
use crate::graph::Graph;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Pairs of which scores are kept, 2048 accounts; beyond, sums over the edges of a graph are computed from blocks of rows.
const KEPT: usize = 1 << 22;

/// Ordered pairs up to which the guard uses all of them, and how many it samples beyond.
const ALL_PAIRS: usize = 250_000;
const SAMPLED_PAIRS: usize = 200_000;

/// Pairs without an edge below which the guard uses all pairs.
const FEWEST_UNLINKED: usize = 50;

/// One over the share of pairs without an edge below which the guard uses all pairs.
const SCARCE: usize = 1000;

/// Centred scores of all pairs.
#[derive(Debug)]
pub(super) struct PairScores {
    stored: Stored,
    groups: Vec<usize>,
    /// What the left-out diagonal changes in the effects of an account within its own group.
    own: Vec<f64>,
    /// The same of the mean of a group's block.
    block: Vec<f64>,
}

/// What scores are made from.
#[derive(Debug)]
enum Stored {
    /// Rows of speakers and listeners: for single pairs.
    Rows(Rows, Rows),
    /// All scores: for many graphs among few accounts.
    Table(Vec<f64>),
    /// The rows cut into blocks: for sums over graphs among many accounts.
    Blocks(ColumnBlocks, ColumnBlocks),
}

impl PairScores {
    /// Scores `speakers[l]·listeners[k]`, centred within blocks of groups, the diagonal left out. Every group has at least 3.
    ///
    /// With rows centred by group, a block has zero row and column sums, its diagonal d included. Least squares of the other
    /// cells on row and column effects: mean −Σd/(n(n−1)), effects (Σd/n − d_i)/(n−2) for row i and column i alike.
    pub(super) fn new(speakers: Rows, listeners: Rows, groups: &[usize]) -> Self {
        let (speakers, listeners) = (speakers.centred(groups), listeners.centred(groups));
        let count = groups.iter().max().map_or(0, |most| most + 1);
        let diagonal: Vec<f64> = (0..groups.len())
            .into_par_iter()
            .map(|account| dot(speakers.row(account), listeners.row(account)))
            .collect();
        let (mut members, mut sums) = (vec![0.0; count], vec![0.0; count]);
        for (value, &group) in diagonal.iter().zip(groups) {
            members[group] += 1.0;
            sums[group] += value;
        }
        let own = diagonal.iter().zip(groups).map(|(value, &group)| {
            let n: f64 = members[group];
            (sums[group] / n - value) / f64::max(n - 2.0, 1.0)
        });
        let own = own.collect();
        let block = sums.iter().zip(&members).map(|(sum, n)| -sum / (n * f64::max(n - 1.0, 1.0))).collect();
        PairScores { stored: Stored::Rows(speakers, listeners), groups: groups.to_vec(), own, block }
    }

    /// Ready for sums over graphs: all scores at once where they fit and more than that many will be asked for, otherwise blocks.
    pub(super) fn keep_for(mut self, wanted: usize) -> Self {
        let accounts = self.groups.len();
        if let Stored::Rows(speakers, listeners) = &self.stored {
            self.stored = if accounts * accounts <= KEPT.min(wanted) {
                let row = |speaker: usize| {
                    (0..accounts)
                        .map(|listener| self.compute(speakers, speaker, listeners, listener))
                        .collect::<Vec<_>>()
                };
                let rows: Vec<Vec<f64>> = (0..accounts).into_par_iter().map(row).collect();
                Stored::Table(rows.concat())
            } else {
                Stored::Blocks(ColumnBlocks::from_rows(speakers), ColumnBlocks::from_rows(listeners))
            };
        }
        self
    }

    /// The score of a speaker and another account that may listen.
    pub(super) fn score(&self, speaker: usize, listener: usize) -> f64 {
        match &self.stored {
            Stored::Table(kept) => kept[speaker * self.groups.len() + listener],
            Stored::Rows(speakers, listeners) => self.compute(speakers, speaker, listeners, listener),
            Stored::Blocks(speakers, listeners) => {
                speakers.product(speaker, listeners, listener) - self.effect(speaker, listener)
            }
        }
    }

    /// Whether scores of pairs are at hand.
    pub(super) fn kept(&self) -> bool {
        matches!(self.stored, Stored::Table(_))
    }

    /// Σ over the edges of a graph of scores, weighted by listener.
    pub(super) fn total(&self, lists: &SpeakerLists, weights: &[f64]) -> f64 {
        if let Stored::Blocks(speakers, listeners) = &self.stored {
            let effects = |(listener, speakers): (usize, &[u32])| weights[listener] * self.effects(speakers, listener);
            return speakers.total(listeners, lists, weights) - lists.iter().map(effects).sum::<f64>();
        }
        let scores = |(listener, speakers): (usize, &[u32])| {
            weights[listener] * speakers.iter().map(|&speaker| self.score(speaker as usize, listener)).sum::<f64>()
        };
        lists.iter().map(scores).sum()
    }

    /// Σ over the edges of a graph of the antisymmetric part of the scores: what leaving out the diagonal changes cancels.
    pub(super) fn direction(&self, lists: &SpeakerLists) -> f64 {
        if let Stored::Blocks(speakers, listeners) = &self.stored {
            let ones = vec![1.0; self.groups.len()];
            return 0.5 * (speakers.total(listeners, lists, &ones) - listeners.total(speakers, lists, &ones));
        }
        let one_way = |(listener, speakers): (usize, &[u32])| {
            let both = speakers.iter().map(|&speaker| speaker as usize);
            both.map(|speaker| self.score(speaker, listener) - self.score(listener, speaker)).sum::<f64>()
        };
        0.5 * lists.iter().map(one_way).sum::<f64>()
    }

    fn compute(&self, speakers: &Rows, speaker: usize, listeners: &Rows, listener: usize) -> f64 {
        dot(speakers.row(speaker), listeners.row(listener)) - self.effect(speaker, listener)
    }

    /// What leaving out the diagonal changes in the score of a pair; the same in both directions.
    fn effect(&self, one: usize, other: usize) -> f64 {
        let group = self.groups[one];
        if group == self.groups[other] { self.block[group] + self.own[one] + self.own[other] } else { 0.0 }
    }

    fn effects(&self, some: &[u32], other: usize) -> f64 {
        some.iter().map(|&one| self.effect(one as usize, other)).sum()
    }
}

/// The rows that scores are made of.
#[derive(Debug)]
pub(super) struct ScoreRows {
    /// Deviations before.
    pub(super) before: Rows,
    /// News after.
    pub(super) after: Rows,
    /// Deviations at all steps.
    pub(super) level: Rows,
}

impl ScoreRows {
    /// S: does a listener's news follow a speaker's deviation a step before?
    pub(super) fn lagged(&self, groups: &[usize]) -> PairScores {
        PairScores::new(self.before.clone(), self.after.clone(), groups)
    }

    /// R0: do both have the same news at the same step?
    pub(super) fn shared_news(&self, groups: &[usize]) -> PairScores {
        PairScores::new(self.after.clone(), self.after.clone(), groups)
    }

    /// R1: do both deviate alike?
    pub(super) fn shared_level(&self, groups: &[usize]) -> PairScores {
        PairScores::new(self.level.clone(), self.level.clone(), groups)
    }

    /// S less b₀R0 + b₁R1.
    pub(super) fn guarded(&self, groups: &[usize], [b0, b1]: [f64; 2]) -> PairScores {
        let speakers = self.before.combined(1.0, &self.after, -b0).beside(&self.level.combined(-b1, &self.level, 0.0));
        PairScores::new(speakers, self.after.beside(&self.level), groups)
    }

    /// The guard: coefficients of the regression of S on R0 and R1 over pairs without an edge in either direction. Pairs that
    /// share news but no edge show how much of a lagged score is news that one reads before the other.
    pub(super) fn guard(&self, graph: &Graph, groups: &[usize], rng: &mut ChaCha8Rng) -> [f64; 2] {
        let accounts = groups.len();
        let linked = Linked::new(graph);
        let unlinked = accounts * accounts.saturating_sub(1) - linked.pairs();
        let all = unlinked < FEWEST_UNLINKED || unlinked < accounts * accounts / SCARCE;
        let matrices = [self.lagged(groups), self.shared_news(groups), self.shared_level(groups)];
        let wanted =
            |speaker: usize, listener: usize| speaker != listener && (all || !linked.contains(speaker, listener));
        let products = |speaker: usize, listener: usize| {
            let [s, r0, r1] = [0, 1, 2].map(|matrix: usize| matrices[matrix].score(speaker, listener));
            [r0 * r0, r0 * r1, r1 * r1, r0 * s, r1 * s]
        };
        let add = |sums: [f64; 5], more: [f64; 5]| std::array::from_fn(|at| sums[at] + more[at]);
        let parts: Vec<[f64; 5]> = if accounts * accounts <= ALL_PAIRS {
            let row = |speaker: usize| {
                let others = (0..accounts).filter(|&listener| wanted(speaker, listener));
                others.map(|listener| products(speaker, listener)).fold([0.0; 5], add)
            };
            (0..accounts).into_par_iter().map(row).collect()
        } else {
            let mut sample = Vec::with_capacity(SAMPLED_PAIRS);
            // At least one pair of SCARCE will do, so this ends soon.
            while sample.len() < SAMPLED_PAIRS {
                let (speaker, listener) = (rng.random_range(0..accounts), rng.random_range(0..accounts));
                if wanted(speaker, listener) {
                    sample.push((speaker, listener));
                }
            }
            let part = |pairs: &[(usize, usize)]| {
                pairs.iter().map(|&(speaker, listener)| products(speaker, listener)).fold([0.0; 5], add)
            };
            sample.par_chunks(1000).map(part).collect()
        };
        solve(parts.into_iter().fold([0.0; 5], add))
    }
}

/// Least squares on two regressors without a constant, from their products; one regressor where both are the same.
fn solve([aa, ab, bb, ay, by]: [f64; 5]) -> [f64; 2] {
    let determinant = aa * bb - ab * ab;
    if determinant > 1e-12 * aa * bb {
        return [(bb * ay - ab * by) / determinant, (aa * by - ab * ay) / determinant];
    }
    if aa > 0.0 {
        return [ay / aa, 0.0];
    }
    [0.0, if bb > 0.0 { by / bb } else { 0.0 }]
}

/// Pairs with an edge in at least one direction.
#[derive(Debug)]
struct Linked {
    /// Ascending.
    neighbours: Vec<Vec<usize>>,
}

impl Linked {
    fn new(graph: &Graph) -> Self {
        let mut neighbours = graph.speakers().to_vec();
        graph.edges().for_each(|(speaker, listener)| neighbours[speaker].push(listener));
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        Linked { neighbours }
    }

    fn contains(&self, one: usize, other: usize) -> bool {
        self.neighbours[one].binary_search(&other).is_ok()
    }

    /// Ordered pairs.
    fn pairs(&self) -> usize {
        self.neighbours.iter().map(Vec::len).sum()
    }
}
