//! The combination matrix A: who listens to whom, and how strongly.
//!
//! In: weights, dense or sparse. Out: `weight(speaker, listener)`, columns, products, the Perron vector and the
//! components. The storage is private to this module.
//!
//! Orientation: columns are listeners and sum to one; `a[speaker, listener]` is the weight the listener gives the
//! speaker. Influence flows speaker → listener.

mod centrality;

pub use centrality::{Centrality, SourceComponent};

use crate::Error;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Rows handled by one task of a dense product; fixed, so that the thread count changes no bit.
const ROWS_PER_TASK: usize = 256;

/// Cells below which a product is computed by one thread.
const PARALLEL_CELLS: usize = 1 << 18;

/// An N × N matrix of weights, columns contiguous.
///
/// ```
/// use headwater::Combination;
/// // Agent 0 listens to nobody; agent 1 halves its attention.
/// let a = Combination::from_columns(vec![1.0, 0.0, 0.5, 0.5], 2).unwrap();
/// assert_eq!(a.weight(0, 1), 0.5);
/// assert_eq!(a.centrality().unwrap().values, [1.0, 0.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Combination {
    agents: usize,
    weights: Storage,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Storage {
    /// `cells[listener·N + speaker]`.
    Dense(Vec<f64>),
    Sparse(Columns),
}

/// Compressed columns: speakers of listener k are `speakers[starts[k]..starts[k+1]]`, ascending.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Columns {
    /// N+1 offsets.
    pub starts: Vec<usize>,
    /// Row index of each weight.
    pub speakers: Vec<usize>,
    /// The weights.
    pub weights: Vec<f64>,
}

/// A made left-stochastic, and how much it was changed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stochastic {
    /// Non-negative, columns sum to one.
    pub combination: Combination,
    /// Sum of absolute changes.
    pub moved: f64,
    /// Listeners whose column had no positive weight; they have self-weight one.
    pub empty: Vec<usize>,
}

impl Combination {
    /// From N² numbers in column order: `cells[listener·N + speaker]`.
    pub fn from_columns(cells: Vec<f64>, agents: usize) -> Result<Self, Error> {
        if cells.len() != agents * agents {
            return Err(Error::Shape {
                what: "combination matrix",
                met: format!("{} numbers", cells.len()),
                wanted: format!("{agents}×{agents}"),
            });
        }
        finite(&cells)?;
        Ok(Combination { agents, weights: Storage::Dense(cells) })
    }

    /// From (speaker, listener, weight) in any order. A pair named twice is an error.
    pub fn from_triplets(mut triplets: Vec<(usize, usize, f64)>, agents: usize) -> Result<Self, Error> {
        triplets.sort_by_key(|&(speaker, listener, _)| (listener, speaker));
        let mut columns = Columns { starts: vec![0; agents + 1], speakers: Vec::new(), weights: Vec::new() };
        let mut before = None;
        for (speaker, listener, weight) in triplets {
            if speaker >= agents || listener >= agents {
                return Err(Error::Shape {
                    what: "edge",
                    met: format!("agents {speaker} → {listener}"),
                    wanted: format!("indices below {agents}"),
                });
            }
            if before == Some((speaker, listener)) {
                return Err(Error::Graph {
                    reason: format!("the weight of agent {speaker} for agent {listener} is given twice"),
                });
            }
            before = Some((speaker, listener));
            columns.starts[listener + 1] += 1;
            columns.speakers.push(speaker);
            columns.weights.push(weight);
        }
        for listener in 0..agents {
            columns.starts[listener + 1] += columns.starts[listener];
        }
        finite(&columns.weights)?;
        Ok(Combination { agents, weights: Storage::Sparse(columns) })
    }

    /// Equal weights, from which the paper's learner starts.
    pub fn uniform(agents: usize) -> Self {
        Combination { agents, weights: Storage::Dense(vec![1.0 / agents as f64; agents * agents]) }
    }

    /// N.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// Whether only the listed edges are stored.
    pub fn is_sparse(&self) -> bool {
        matches!(self.weights, Storage::Sparse(_))
    }

    /// The same matrix with its non-zero weights only.
    pub fn to_sparse(&self) -> Self {
        let triplets = self.edges().filter(|&(_, _, weight)| weight != 0.0).collect();
        Combination::from_triplets(triplets, self.agents).expect("edges of a matrix are unique and in range")
    }

    /// The weight a listener gives a speaker.
    pub fn weight(&self, speaker: usize, listener: usize) -> f64 {
        match &self.weights {
            Storage::Dense(cells) => cells[listener * self.agents + speaker],
            Storage::Sparse(columns) => {
                let range = columns.starts[listener]..columns.starts[listener + 1];
                match columns.speakers[range.clone()].binary_search(&speaker) {
                    Ok(position) => columns.weights[range.start + position],
                    Err(_) => 0.0,
                }
            }
        }
    }

    /// A listener's column: (speaker, weight), stored weights only, by speaker.
    pub fn listener(&self, listener: usize) -> Box<dyn Iterator<Item = (usize, f64)> + '_> {
        match &self.weights {
            Storage::Dense(cells) => {
                Box::new(cells[listener * self.agents..(listener + 1) * self.agents].iter().copied().enumerate())
            }
            Storage::Sparse(columns) => {
                let range = columns.starts[listener]..columns.starts[listener + 1];
                Box::new(columns.speakers[range.clone()].iter().copied().zip(columns.weights[range].iter().copied()))
            }
        }
    }

    /// All stored weights as (speaker, listener, weight), listener by listener.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        (0..self.agents)
            .flat_map(move |listener| self.listener(listener).map(move |(speaker, weight)| (speaker, listener, weight)))
    }

    /// N² numbers in column order, whatever the storage.
    pub fn to_columns(&self) -> Vec<f64> {
        match &self.weights {
            Storage::Dense(cells) => cells.clone(),
            Storage::Sparse(_) => {
                let mut cells = vec![0.0; self.agents * self.agents];
                for (speaker, listener, weight) in self.edges() {
                    cells[listener * self.agents + speaker] = weight;
                }
                cells
            }
        }
    }

    /// The numbers in column order when stored densely.
    pub fn dense(&self) -> Option<&[f64]> {
        match &self.weights {
            Storage::Dense(cells) => Some(cells),
            Storage::Sparse(_) => None,
        }
    }

    /// The compressed columns when stored sparsely.
    pub fn sparse(&self) -> Option<&Columns> {
        match &self.weights {
            Storage::Dense(_) => None,
            Storage::Sparse(columns) => Some(columns),
        }
    }

    /// `A v`: weights given to each speaker, summed over the listeners k with factors `v[k]`.
    pub fn spread(&self, v: &[f64]) -> Vec<f64> {
        let agents = self.agents;
        let mut out = vec![0.0; agents];
        match &self.weights {
            Storage::Dense(cells) => {
                let rows = |(task, out): (usize, &mut [f64])| {
                    let first = task * ROWS_PER_TASK;
                    for (listener, &factor) in v.iter().enumerate() {
                        let column = &cells[listener * agents + first..][..out.len()];
                        out.iter_mut().zip(column).for_each(|(out, weight)| *out += factor * weight);
                    }
                };
                if cells.len() < PARALLEL_CELLS {
                    out.chunks_mut(ROWS_PER_TASK).enumerate().for_each(rows);
                } else {
                    out.par_chunks_mut(ROWS_PER_TASK).enumerate().for_each(rows);
                }
            }
            Storage::Sparse(_) => {
                for (speaker, listener, weight) in self.edges() {
                    out[speaker] += weight * v[listener];
                }
            }
        }
        out
    }

    /// `Aᵀ v`: the weighted mean of `v` over the speakers of each listener.
    pub fn hear(&self, v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.agents];
        self.hear_into(v, &mut out);
        out
    }

    /// [`Combination::hear`] without an allocation.
    pub fn hear_into(&self, v: &[f64], out: &mut [f64]) {
        let agents = self.agents;
        let stored = match &self.weights {
            Storage::Dense(cells) => cells.len(),
            Storage::Sparse(columns) => columns.weights.len(),
        };
        let one = |(listener, out): (usize, &mut f64)| {
            *out = match &self.weights {
                Storage::Dense(cells) => dot(&cells[listener * agents..(listener + 1) * agents], v),
                Storage::Sparse(columns) => {
                    let range = columns.starts[listener]..columns.starts[listener + 1];
                    let weights = columns.speakers[range.clone()].iter().zip(&columns.weights[range]);
                    weights.map(|(&speaker, weight)| weight * v[speaker]).sum()
                }
            };
        };
        if stored < PARALLEL_CELLS {
            out.iter_mut().enumerate().for_each(one);
        } else {
            out.par_iter_mut().enumerate().for_each(one);
        }
    }

    /// `A V` for vectors side by side: agent ℓ's numbers are `out[ℓ·width..]`.
    pub(crate) fn spread_many(&self, v: &[f64], width: usize, out: &mut [f64]) {
        out.fill(0.0);
        for (speaker, listener, weight) in self.edges().filter(|&(_, _, weight)| weight != 0.0) {
            add_scaled(&mut out[speaker * width..][..width], weight, &v[listener * width..][..width]);
        }
    }

    /// `Aᵀ V` likewise.
    pub(crate) fn hear_many(&self, v: &[f64], width: usize, out: &mut [f64]) {
        out.fill(0.0);
        for (speaker, listener, weight) in self.edges().filter(|&(_, _, weight)| weight != 0.0) {
            add_scaled(&mut out[listener * width..][..width], weight, &v[speaker * width..][..width]);
        }
    }

    /// Sums of the columns; all one for a left-stochastic matrix.
    pub fn column_sums(&self) -> Vec<f64> {
        match &self.weights {
            Storage::Dense(cells) => cells.chunks_exact(self.agents).map(|column| column.iter().sum()).collect(),
            Storage::Sparse(columns) => {
                columns.starts.windows(2).map(|range| columns.weights[range[0]..range[1]].iter().sum()).collect()
            }
        }
    }

    /// A as a left-stochastic matrix: negative weights set to zero, columns normalised.
    ///
    /// A listener without positive weights gets self-weight one and is listed in [`Stochastic::empty`].
    pub fn stochastic(&self) -> Stochastic {
        /// Columns that sum to one within this are not rescaled.
        const ALREADY: f64 = 1e-12;
        let mut moved = 0.0;
        let mut empty = Vec::new();
        let mut combination = self.clone();
        for listener in 0..self.agents {
            let column = combination.column_mut(listener);
            let sum: f64 = column.iter().map(|weight| weight.max(0.0)).sum();
            if sum <= 0.0 {
                empty.push(listener);
                moved += 1.0 + column.iter().map(|weight| weight.abs()).sum::<f64>();
                column.fill(0.0);
                continue;
            }
            let scale = if (sum - 1.0).abs() <= ALREADY { 1.0 } else { sum };
            for weight in column {
                let kept = weight.max(0.0) / scale;
                moved += (*weight - kept).abs();
                *weight = kept;
            }
        }
        for &listener in &empty {
            combination.set_self_weight(listener, 1.0);
        }
        Stochastic { combination, moved, empty }
    }

    fn column_mut(&mut self, listener: usize) -> &mut [f64] {
        match &mut self.weights {
            Storage::Dense(cells) => &mut cells[listener * self.agents..(listener + 1) * self.agents],
            Storage::Sparse(columns) => &mut columns.weights[columns.starts[listener]..columns.starts[listener + 1]],
        }
    }

    fn set_self_weight(&mut self, agent: usize, weight: f64) {
        match &mut self.weights {
            Storage::Dense(cells) => cells[agent * self.agents + agent] = weight,
            Storage::Sparse(columns) => {
                let range = columns.starts[agent]..columns.starts[agent + 1];
                match columns.speakers[range.clone()].binary_search(&agent) {
                    Ok(position) => columns.weights[range.start + position] = weight,
                    Err(position) => {
                        columns.speakers.insert(range.start + position, agent);
                        columns.weights.insert(range.start + position, weight);
                        columns.starts[agent + 1..].iter_mut().for_each(|start| *start += 1);
                    }
                }
            }
        }
    }

    /// A without one agent; its listeners keep their other weights as they are. Agents after it move up by one.
    pub fn without(&self, agent: usize) -> Self {
        let moved = |index: usize| index - usize::from(index > agent);
        let kept = self.edges().filter(|&(speaker, listener, _)| speaker != agent && listener != agent);
        let agents = self.agents - 1;
        if self.is_sparse() {
            let triplets = kept.map(|(speaker, listener, weight)| (moved(speaker), moved(listener), weight)).collect();
            return Combination::from_triplets(triplets, agents).expect("edges of a matrix are unique and in range");
        }
        Combination { agents, weights: Storage::Dense(kept.map(|(_, _, weight)| weight).collect()) }
    }
}

fn finite(weights: &[f64]) -> Result<(), Error> {
    // Without an early exit inside a chunk the compiler can test many at once.
    let sound = weights.chunks(4096).all(|chunk| chunk.iter().fold(true, |sound, weight| sound & weight.is_finite()));
    if sound {
        return Ok(());
    }
    let met = weights.iter().find(|weight| !weight.is_finite()).copied().unwrap_or(f64::NAN);
    Err(Error::Graph { reason: format!("a weight is {met}; weights must be finite numbers") })
}

/// `out += factor · v`.
pub(crate) fn add_scaled(out: &mut [f64], factor: f64, v: &[f64]) {
    out.iter_mut().zip(v).for_each(|(out, value)| *out += factor * value);
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

/// Dot product in eight lanes: the order of additions is fixed, and the compiler can use vectors.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (chunks_a, chunks_b) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = chunks_a.remainder().iter().zip(chunks_b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in chunks_a.zip(chunks_b) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let pairs = [lanes[0] + lanes[4], lanes[1] + lanes[5], lanes[2] + lanes[6], lanes[3] + lanes[7]];
    (pairs[0] + pairs[2]) + (pairs[1] + pairs[3]) + tail
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn random(agents: usize, keep: f64, seed: u64) -> Combination {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut triplets = Vec::new();
        for listener in 0..agents {
            for speaker in 0..agents {
                if speaker == listener || speaker == (listener + 1) % agents || rng.random::<f64>() < keep {
                    triplets.push((speaker, listener, rng.random_range(0.1..1.0)));
                }
            }
        }
        Combination::from_triplets(triplets, agents).unwrap().stochastic().combination
    }

    #[test]
    fn negatives_and_empty_columns_are_reported() {
        let stochastic = Combination::from_columns(vec![1.5, -0.5, -0.2, 0.0], 2).unwrap().stochastic();
        assert_eq!(stochastic.combination.to_columns(), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(stochastic.empty, [1]);
        assert!((stochastic.moved - (0.5 + 0.5 + 1.0 + 0.2)).abs() < 1e-15);
        let sparse = Combination::from_triplets(vec![(0, 0, 1.0), (0, 1, -1.0)], 2).unwrap().stochastic();
        assert_eq!(sparse.combination.to_columns(), [1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn bad_matrices_are_refused() {
        assert!(Combination::from_columns(vec![0.0; 3], 2).is_err());
        assert!(Combination::from_columns(vec![f64::NAN; 4], 2).is_err());
        assert!(Combination::from_triplets(vec![(0, 2, 1.0)], 2).is_err());
        assert!(Combination::from_triplets(vec![(0, 1, 1.0), (0, 1, 1.0)], 2).is_err());
    }

    proptest! {
        #[test]
        fn storage_does_not_matter(agents in 2usize..30, seed in 0u64..1000) {
            let sparse = random(agents, 0.2, seed);
            let dense = Combination::from_columns(sparse.to_columns(), agents).unwrap();
            prop_assert_eq!(&dense.to_sparse(), &sparse);
            let v: Vec<f64> = (0..agents).map(|agent| (agent as f64).sin()).collect();
            prop_assert!(distance(&sparse.hear(&v), &dense.hear(&v)) < 1e-13);
            prop_assert!(distance(&sparse.spread(&v), &dense.spread(&v)) < 1e-13);
            prop_assert_eq!(sparse.without(0).to_columns(), dense.without(0).to_columns());
            prop_assert_eq!(sparse.weight(1, 0), dense.weight(1, 0));
        }
    }
}
