//! The combination matrix A: who listens to whom, and how strongly.
//!
//! In: weights, dense or sparse. Out: `weight(speaker, listener)`, columns, products, the Perron vector and the
//! components. How A is stored is the secret of this room: others ask for weights and products.
//!
//! Orientation: columns are listeners and sum to one; `a[speaker, listener]` is the weight the listener gives the
//! speaker. Influence flows speaker → listener.

use crate::Error;
use crate::graph::strong_components;
use faer::MatRef;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Power iteration stops when `‖Au − u‖₁` is below this: a few roundings of numbers that sum to one.
const PERRON_TOLERANCE: f64 = 1e-15;

/// Power iteration that has not settled by then is slow enough for the direct method to be cheaper.
const PERRON_ITERATIONS: usize = 400;

/// Up to this size a slowly mixing component is solved directly, O(N³).
const DIRECT_AGENTS: usize = 2000;

/// Iterations granted where the direct method is out of reach.
const PATIENT_ITERATIONS: usize = 100_000;

/// Rows handled by one task of a dense product; fixed, so that the thread count changes no bit.
const ROWS_PER_TASK: usize = 256;

/// Work below which a product is not worth a second thread.
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
    weights: Weights,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Weights {
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

/// A made left-stochastic, and what that took.
#[derive(Debug, Clone, PartialEq)]
pub struct Stochastic {
    /// Non-negative, columns sum to one.
    pub combination: Combination,
    /// Sum of absolute changes.
    pub moved: f64,
    /// Listeners whose column had no positive weight; they are left to listen to themselves.
    pub empty: Vec<usize>,
}

/// Perron vector of A with what is needed to trust it.
#[derive(Debug, Clone, PartialEq)]
pub struct Centrality {
    /// u ≥ 0, sums to one.
    pub values: Vec<f64>,
    /// ‖Au − u‖₁ of the left-stochastic matrix.
    pub residual: f64,
    /// What [`Combination::stochastic`] moved before.
    pub moved: f64,
    /// Strongly connected components, largest first.
    pub components: Vec<Vec<usize>>,
    /// Components that listen to nobody outside: opinions originate here and nowhere else. One, holding everybody,
    /// when the network is strongly connected.
    pub sources: Vec<Source>,
}

/// A strongly connected component that listens to nobody outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its members.
    pub agents: Vec<usize>,
    /// The share of the network's opinion that originates in it, when all start alike.
    pub share: f64,
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
        Ok(Combination { agents, weights: Weights::Dense(cells) })
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
        Ok(Combination { agents, weights: Weights::Sparse(columns) })
    }

    /// Everybody gives everybody the same weight: where the paper's learner starts.
    pub fn uniform(agents: usize) -> Self {
        Combination { agents, weights: Weights::Dense(vec![1.0 / agents as f64; agents * agents]) }
    }

    /// N.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// Whether only the listed edges are stored.
    pub fn is_sparse(&self) -> bool {
        matches!(self.weights, Weights::Sparse(_))
    }

    /// The same matrix with its non-zero weights only.
    pub fn to_sparse(&self) -> Self {
        let triplets = self.edges().filter(|&(_, _, weight)| weight != 0.0).collect();
        Combination::from_triplets(triplets, self.agents).expect("edges of a matrix are unique and in range")
    }

    /// The weight a listener gives a speaker.
    pub fn weight(&self, speaker: usize, listener: usize) -> f64 {
        match &self.weights {
            Weights::Dense(cells) => cells[listener * self.agents + speaker],
            Weights::Sparse(columns) => {
                let range = columns.starts[listener]..columns.starts[listener + 1];
                match columns.speakers[range.clone()].binary_search(&speaker) {
                    Ok(position) => columns.weights[range.start + position],
                    Err(_) => 0.0,
                }
            }
        }
    }

    /// What a listener hears: (speaker, weight), stored weights only, by speaker.
    pub fn listener(&self, listener: usize) -> Box<dyn Iterator<Item = (usize, f64)> + '_> {
        match &self.weights {
            Weights::Dense(cells) => {
                Box::new(cells[listener * self.agents..(listener + 1) * self.agents].iter().copied().enumerate())
            }
            Weights::Sparse(columns) => {
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
            Weights::Dense(cells) => cells.clone(),
            Weights::Sparse(_) => {
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
            Weights::Dense(cells) => Some(cells),
            Weights::Sparse(_) => None,
        }
    }

    /// The compressed columns when stored sparsely.
    pub fn sparse(&self) -> Option<&Columns> {
        match &self.weights {
            Weights::Dense(_) => None,
            Weights::Sparse(columns) => Some(columns),
        }
    }

    /// `A v`: what the speakers collect when listener k hands out `v[k]`.
    pub fn spread(&self, v: &[f64]) -> Vec<f64> {
        let agents = self.agents;
        let mut out = vec![0.0; agents];
        match &self.weights {
            Weights::Dense(cells) => {
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
            Weights::Sparse(_) => {
                for (speaker, listener, weight) in self.edges() {
                    out[speaker] += weight * v[listener];
                }
            }
        }
        out
    }

    /// `Aᵀ v`: what each listener hears when speaker ℓ says `v[ℓ]`.
    pub fn hear(&self, v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.agents];
        self.hear_into(v, &mut out);
        out
    }

    /// [`Combination::hear`] without an allocation.
    pub fn hear_into(&self, v: &[f64], out: &mut [f64]) {
        let agents = self.agents;
        let stored = match &self.weights {
            Weights::Dense(cells) => cells.len(),
            Weights::Sparse(columns) => columns.weights.len(),
        };
        let one = |(listener, out): (usize, &mut f64)| {
            *out = match &self.weights {
                Weights::Dense(cells) => dot(&cells[listener * agents..(listener + 1) * agents], v),
                Weights::Sparse(columns) => {
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
            Weights::Dense(cells) => cells.chunks_exact(self.agents).map(|column| column.iter().sum()).collect(),
            Weights::Sparse(columns) => {
                columns.starts.windows(2).map(|range| columns.weights[range[0]..range[1]].iter().sum()).collect()
            }
        }
    }

    /// The nearest use of A as a left-stochastic matrix: negatives set to zero, columns normalised.
    ///
    /// A listener left without any weight listens to itself and is named.
    pub fn stochastic(&self) -> Stochastic {
        /// Columns already sum to one within rounding: leave their bits alone.
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
            Weights::Dense(cells) => &mut cells[listener * self.agents..(listener + 1) * self.agents],
            Weights::Sparse(columns) => &mut columns.weights[columns.starts[listener]..columns.starts[listener + 1]],
        }
    }

    fn set_self_weight(&mut self, agent: usize, weight: f64) {
        match &mut self.weights {
            Weights::Dense(cells) => cells[agent * self.agents + agent] = weight,
            Weights::Sparse(columns) => {
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
        Combination { agents, weights: Weights::Dense(kept.map(|(_, _, weight)| weight).collect()) }
    }

    /// Strongly connected components of the positive weights, largest first, members ascending.
    pub fn components(&self) -> Vec<Vec<usize>> {
        let heard = self.edges().filter(|&(_, _, weight)| weight > 0.0);
        strong_components(self.agents, heard.map(|(speaker, listener, _)| (speaker as u32, listener as u32)))
    }

    /// The Perron vector: the share of the network's long-run opinion that originates in each agent.
    ///
    /// Power iteration on (I+A)/2 from the uniform vector; components that mix too slowly for it are solved directly.
    /// A matrix that is not left-stochastic is first made so, and the amount moved reported. Cost: a few dozen
    /// products with A.
    pub fn centrality(&self) -> Result<Centrality, Error> {
        let Stochastic { combination, moved, .. } = self.stochastic();
        let components = combination.components();
        let mut component_of = vec![0; self.agents];
        for (index, members) in components.iter().enumerate() {
            members.iter().for_each(|&agent| component_of[agent] = index);
        }
        let mut listens_outside = vec![false; components.len()];
        for (speaker, listener, weight) in combination.edges() {
            if weight > 0.0 && component_of[speaker] != component_of[listener] {
                listens_outside[component_of[listener]] = true;
            }
        }
        let sources: Vec<usize> = (0..components.len()).filter(|&index| !listens_outside[index]).collect();
        let mut values = combination.perron(&components, &sources);
        // What power iteration leaves on agents that cannot be sources is rounding.
        for (agent, value) in values.iter_mut().enumerate() {
            if listens_outside[component_of[agent]] {
                *value = 0.0;
            }
        }
        let sum: f64 = values.iter().sum();
        values.iter_mut().for_each(|value| *value /= sum);
        let residual = distance(&combination.spread(&values), &values);
        let sources = sources
            .into_iter()
            .map(|index| Source {
                share: components[index].iter().map(|&agent| values[agent]).sum(),
                agents: components[index].clone(),
            })
            .collect();
        Ok(Centrality { values, residual, moved, components, sources })
    }

    /// The centrality of the authors' released scripts: the absolute eigenvector of the eigenvalue with the largest real
    /// part, which is not one for a matrix with negative entries (Note P16). Cost: a dense eigendecomposition.
    pub fn released_centrality(&self) -> Result<Centrality, Error> {
        let undefined = |reason: &str| Error::Undefined { what: "the released centrality", reason: reason.into() };
        let columns = self.to_columns();
        let matrix = MatRef::from_column_major_slice(&columns, self.agents, self.agents);
        let eigen = matrix.eigen().map_err(|_| undefined("the eigenvalues do not converge"))?;
        let values = eigen.S().column_vector();
        let largest = (0..self.agents).max_by(|&a, &b| values[a].re.total_cmp(&values[b].re));
        let largest = largest.ok_or_else(|| undefined("there are no agents"))?;
        // Real for a real eigenvalue, up to a factor.
        let vector: Vec<f64> = (0..self.agents).map(|agent| eigen.U()[(agent, largest)].norm()).collect();
        let sum: f64 = vector.iter().sum();
        let values: Vec<f64> = vector.iter().map(|value| value / sum).collect();
        let residual = distance(&self.spread(&values), &values);
        let everybody: Vec<usize> = (0..self.agents).collect();
        let sources = vec![Source { share: 1.0, agents: everybody.clone() }];
        Ok(Centrality { values, residual, moved: 0.0, components: vec![everybody], sources })
    }

    fn perron(&self, components: &[Vec<usize>], sources: &[usize]) -> Vec<f64> {
        let start = vec![1.0 / self.agents as f64; self.agents];
        let (values, settled) = self.lazy_power(start, PERRON_ITERATIONS);
        if settled {
            return values;
        }
        if let [only] = sources
            && components[*only].len() <= DIRECT_AGENTS
        {
            return self.eliminate(&components[*only]);
        }
        self.lazy_power(values, PATIENT_ITERATIONS).0
    }

    fn lazy_power(&self, mut v: Vec<f64>, iterations: usize) -> (Vec<f64>, bool) {
        for _ in 0..iterations {
            let spread = self.spread(&v);
            let settled = distance(&spread, &v) <= PERRON_TOLERANCE;
            v.iter_mut().zip(&spread).for_each(|(old, new)| *old = 0.5 * (*old + new));
            if settled {
                return (v, true);
            }
        }
        (v, false)
    }

    /// Stationary vector of one closed component by state elimination (Grassmann, Taksar, Heyman): no subtraction,
    /// so every entry keeps its relative accuracy however slowly the component mixes.
    fn eliminate(&self, members: &[usize]) -> Vec<f64> {
        let size = members.len();
        // q[k][l]: listener k takes its opinion from l.
        let mut q: Vec<Vec<f64>> = members
            .iter()
            .map(|&listener| members.iter().map(|&speaker| self.weight(speaker, listener)).collect())
            .collect();
        for last in (1..size).rev() {
            let (head, tail) = q.split_at_mut(last);
            let gone = &tail[0][..last];
            let out: f64 = gone.iter().sum();
            for row in head {
                let factor = row[last] / out;
                row[last] = factor;
                if factor != 0.0 {
                    row[..last].iter_mut().zip(gone).for_each(|(cell, weight)| *cell += factor * weight);
                }
            }
        }
        let mut share = vec![1.0; size];
        for next in 1..size {
            share[next] = (0..next).map(|earlier| share[earlier] * q[earlier][next]).sum();
        }
        let sum: f64 = share.iter().sum();
        let mut values = vec![0.0; self.agents];
        members.iter().zip(share).for_each(|(&agent, share)| values[agent] = share / sum);
        values
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

    fn random(agents: usize, keep: f64, seed: u64) -> Combination {
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
    fn two_agents_by_hand() {
        // u solves u0 = 0.9 u0 + 0.3 u1, so u = (3, 1)/4.
        let a = Combination::from_columns(vec![0.9, 0.1, 0.3, 0.7], 2).unwrap();
        let centrality = a.centrality().unwrap();
        assert!((centrality.values[0] - 0.75).abs() < 1e-15);
        assert!(centrality.residual < 1e-15);
        assert_eq!(centrality.components, [[0, 1]]);
        assert_eq!(a.spread(&[1.0, 10.0]), [3.9, 7.1]);
        assert_eq!(a.hear(&[1.0, 10.0]), [1.9, 7.3]);
    }

    #[test]
    fn a_celebrity_is_the_only_source() {
        // 2 follows nobody; 0 and 1 follow each other and 2.
        let columns = vec![0.5, 0.3, 0.2, 0.4, 0.4, 0.2, 0.0, 0.0, 1.0];
        let centrality = Combination::from_columns(columns, 3).unwrap().centrality().unwrap();
        assert_eq!(centrality.values, [0.0, 0.0, 1.0]);
        assert_eq!(centrality.components, [vec![0, 1], vec![2]]);
        assert_eq!(centrality.sources, [Source { agents: vec![2], share: 1.0 }]);
    }

    #[test]
    fn two_sources_share_their_listeners() {
        // 2 gives 3/4 to source 0 and 1/4 to source 1, so its third of the network splits 3 : 1.
        let columns = vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.75, 0.25, 0.0];
        let centrality = Combination::from_columns(columns, 3).unwrap().centrality().unwrap();
        assert_eq!(centrality.sources.len(), 2);
        assert!((centrality.sources[0].share - 1.75 / 3.0).abs() < 1e-14);
        assert!((centrality.values[1] - 1.25 / 3.0).abs() < 1e-14);
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
    fn slow_mixing_is_solved_directly() {
        // Two cliques joined by a thread of weight 1e-9: power iteration would need 1e9 rounds.
        let (weak, strong) = (1e-9, 2e-9);
        let columns = vec![
            0.5,
            0.5,
            0.0,
            0.0, //
            0.5 - weak,
            0.5,
            weak,
            0.0, //
            0.0,
            strong,
            0.5 - strong,
            0.5, //
            0.0,
            0.0,
            0.5,
            0.5,
        ];
        let values = Combination::from_columns(columns, 4).unwrap().centrality().unwrap().values;
        // Flow balance: u1·weak = u2·strong, and u is flat inside a clique.
        for (met, wanted) in values.iter().zip([1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0]) {
            assert!((met - wanted).abs() < 1e-7, "{values:?}");
        }
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

        #[test]
        fn elimination_agrees_with_iteration(agents in 2usize..30, seed in 0u64..1000) {
            let a = random(agents, 0.2, seed);
            let all: Vec<usize> = (0..agents).collect();
            let values = a.centrality().unwrap().values;
            prop_assert!(distance(&a.eliminate(&all), &values) < 1e-12);
            prop_assert!(values.iter().all(|value| *value > 0.0));
        }

        #[test]
        fn relabelling_relabels_the_answer(agents in 2usize..20, seed in 0u64..1000) {
            let a = random(agents, 0.3, seed);
            let turned = |agent: usize| (agent + 1) % agents;
            let edges = a.edges().map(|(speaker, listener, weight)| (turned(speaker), turned(listener), weight));
            let b = Combination::from_triplets(edges.collect(), agents).unwrap();
            let (before, after) = (a.centrality().unwrap().values, b.centrality().unwrap().values);
            for agent in 0..agents {
                prop_assert!((before[agent] - after[turned(agent)]).abs() < 1e-13);
            }
        }
    }
}
