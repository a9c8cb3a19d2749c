//! Centrality: the Perron vector of A, its components and the sources of opinions.

use super::{Combination, Stochastic, distance};
use crate::Error;
use crate::graph::strong_components;
use faer::MatRef;

/// Power iteration stops when `‖Au − u‖₁` is below this: a few roundings of numbers that sum to one.
const PERRON_TOLERANCE: f64 = 1e-15;

/// Iterations after which the direct method is cheaper than power iteration.
const PERRON_ITERATIONS: usize = 400;

/// Up to this size a slowly mixing component is solved directly, O(N³).
const DIRECT_AGENTS: usize = 2000;

/// Iterations where the component is too large for the direct method.
const PATIENT_ITERATIONS: usize = 100_000;

/// Perron vector of A with its accuracy, components and sources.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Centrality {
    /// u ≥ 0, sums to one.
    pub values: Vec<f64>,
    /// ‖Au − u‖₁ of the left-stochastic matrix.
    pub residual: f64,
    /// What [`Combination::stochastic`] moved before.
    pub moved: f64,
    /// Strongly connected components, largest first.
    pub components: Vec<Vec<usize>>,
    /// Components that give no weight outside: all opinions originate in them. One component of all agents when the
    /// network is strongly connected.
    pub sources: Vec<SourceComponent>,
}

/// A strongly connected component that gives no weight to agents outside it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SourceComponent {
    /// Its members.
    pub agents: Vec<usize>,
    /// The share of the network's opinion that originates in it, from equal starting weights.
    pub share: f64,
}

impl Combination {
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
            .map(|index| SourceComponent {
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
        let sources = vec![SourceComponent { share: 1.0, agents: everybody.clone() }];
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

#[cfg(test)]
mod tests {
    use super::super::tests::random;
    use super::*;
    use proptest::prelude::*;

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
        assert_eq!(centrality.sources, [SourceComponent { agents: vec![2], share: 1.0 }]);
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

    proptest! {
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
