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

/// Self-weights from which on an agent listens to nobody else.
const DEAF: f64 = 1.0 - 1e-12;

/// Accuracy in the sum of absolute values, and iterations, of [`Combination::centrality_about`].
const ABOUT: (f64, usize) = (1e-9, 5000);

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
        let (component_of, listens_outside) = combination.listening(&components);
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
        let sources: Vec<&[usize]> = sources.iter().map(|index| &components[*index][..]).collect();
        self.without_own_weights(&sources, PERRON_TOLERANCE, PATIENT_ITERATIONS)
    }

    /// The Perron vector of a left-stochastic matrix to nine digits, where the components that listen to nobody outside are
    /// known: for many matrices of the same edges.
    pub(crate) fn centrality_about(&self, sources: &[Vec<usize>]) -> Vec<f64> {
        let sources: Vec<&[usize]> = sources.iter().map(Vec::as_slice).collect();
        self.without_own_weights(&sources, ABOUT.0, ABOUT.1)
    }

    /// Power iteration on the weights that agents give to others, which mix fast also where agents mostly listen to
    /// themselves: opinions go the same ways without the time that they stay with an agent. Inside a component that
    /// listens to nobody else, an agent is then met less often by a factor of one less its own weight.
    fn without_own_weights(&self, sources: &[&[usize]], tolerance: f64, iterations: usize) -> Vec<f64> {
        let agents = self.agents;
        let mut own = vec![0.0; agents];
        for (speaker, listener, weight) in self.edges() {
            if speaker == listener {
                own[listener] = weight;
            }
        }
        let mut others: Vec<(u32, u32, f64)> = self
            .edges()
            .filter(|&(speaker, listener, weight)| speaker != listener && weight != 0.0 && own[listener] < DEAF)
            .map(|(speaker, listener, weight)| (speaker as u32, listener as u32, weight / (1.0 - own[listener])))
            .collect();
        others.shrink_to_fit();
        let deaf: Vec<usize> = (0..agents).filter(|&agent| own[agent] >= DEAF).collect();
        let mut v = vec![1.0 / agents as f64; agents];
        let mut next = vec![0.0; agents];
        for _ in 0..iterations {
            next.fill(0.0);
            for &(speaker, listener, weight) in &others {
                next[speaker as usize] += weight * v[listener as usize];
            }
            deaf.iter().for_each(|&agent| next[agent] += v[agent]);
            let moved = distance(&next, &v);
            // Half of the way, because the chain may be periodic.
            v.iter_mut().zip(&next).for_each(|(old, new)| *old = 0.5 * (*old + new));
            if moved <= tolerance {
                break;
            }
        }
        let mut values = vec![0.0; agents];
        for members in sources {
            let mass: f64 = members.iter().map(|&agent| v[agent]).sum();
            let stay = |agent: usize| if own[agent] < DEAF { v[agent] / (1.0 - own[agent]) } else { v[agent] };
            let total: f64 = members.iter().map(|&agent| stay(agent)).sum();
            members.iter().for_each(|&agent| values[agent] = mass * stay(agent) / total);
        }
        let sum: f64 = values.iter().sum();
        values.iter_mut().for_each(|value| *value /= sum);
        values
    }

    /// The component of each agent, and whether each component gives weight outside.
    fn listening(&self, components: &[Vec<usize>]) -> (Vec<usize>, Vec<bool>) {
        let mut component_of = vec![0; self.agents];
        for (index, members) in components.iter().enumerate() {
            members.iter().for_each(|&agent| component_of[agent] = index);
        }
        let mut outside = vec![false; components.len()];
        for (speaker, listener, weight) in self.edges() {
            if weight > 0.0 && component_of[speaker] != component_of[listener] {
                outside[component_of[listener]] = true;
            }
        }
        (component_of, outside)
    }

    /// Components that give no weight outside.
    pub(crate) fn source_components(&self) -> Vec<Vec<usize>> {
        let components = self.components();
        let (_, listens_outside) = self.listening(&components);
        let kept = components.into_iter().zip(listens_outside);
        kept.filter(|(_, outside)| !outside).map(|(members, _)| members).collect()
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

    /// Absorbed and stationary shares beside each other: 0 hears itself only, 1 and 2 each other, 3 and 4 both groups.
    #[test]
    fn shares_of_several_sources_do_not_depend_on_own_weights() {
        let rows = [
            (0, 0, 1.0),
            (1, 1, 0.999),
            (2, 1, 0.001),
            (1, 2, 0.5),
            (2, 2, 0.5),
            (3, 3, 0.9),
            (0, 3, 0.06),
            (4, 3, 0.04),
            (1, 4, 0.3),
            (3, 4, 0.7),
        ];
        let a = Combination::from_triplets(rows.to_vec(), 5).unwrap();
        let found = a.centrality_about(&a.source_components());
        // From 3: 0.6 to 0, else to 4; from 4: 0.3 to {1, 2}, else to 3. p = 0.6 + 0.4 q, q = 0.7 p.
        let p = 0.6 / (1.0 - 0.28);
        let alone = (1.0 + p + 0.7 * p) / 5.0;
        assert!((found[0] - alone).abs() < 1e-8, "{found:?}");
        // u1·0.001 = u2·0.5.
        assert!((found[1] / found[2] - 500.0).abs() < 1e-4 && found[3] == 0.0, "{found:?}");
    }

    proptest! {
        #[test]
        fn quick_iteration_agrees_with_the_usual(agents in 2usize..30, seed in 0u64..1000) {
            let a = random(agents, 0.2, seed);
            let found = a.centrality_about(&a.source_components());
            prop_assert!(distance(&found, &a.centrality().unwrap().values) < 1e-7);
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
