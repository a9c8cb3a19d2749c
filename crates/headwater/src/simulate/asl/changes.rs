//! Scheduled changes of a running world: topology, true state, likelihoods.

use super::World;
use crate::graph::{Graph, Rule};
use crate::simulate::ScheduledChange;
use crate::simulate::likelihoods::draw_likelihoods;
use crate::simulate::network::DRAWS;
use crate::{Combination, Error};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// A change that took place in a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorldEvent {
    /// The first written frame after the change.
    pub step: usize,
    /// "topology", "state" or "likelihoods".
    pub kind: String,
    /// Listeners whose weights changed, or the agents that are influential now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The new true state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<String>,
}

impl WorldEvent {
    /// An event at a step, "topology", "state" or "likelihoods"; set the fields that belong to it.
    pub fn new(step: usize, kind: &str) -> Self {
        WorldEvent { step, kind: kind.to_owned(), agents: Vec::new(), truth: None }
    }
}

impl World {
    /// Makes the changes scheduled for the next step.
    pub(super) fn change(&mut self) -> Result<(), Error> {
        for index in 0..self.params.changes.len() {
            match self.params.changes[index] {
                ScheduledChange::Topology { every, probability }
                    if self.step > 0 && self.step.is_multiple_of(every) =>
                {
                    self.rewire(probability)?;
                }
                ScheduledChange::State { at, to } if at == self.step => {
                    self.truth = to.unwrap_or_else(|| {
                        let other = self.rng.changes.random_range(0..self.params.hypotheses - 1);
                        other + usize::from(other >= self.truth)
                    });
                    let truth = self.roster.hypotheses()[self.truth].clone();
                    self.event("state", &[], Some(truth));
                }
                ScheduledChange::Likelihoods { at } if at == self.step => {
                    let mut order: Vec<usize> = (0..self.params.agents).collect();
                    order.shuffle(&mut self.rng.changes);
                    let mut influential = vec![false; self.params.agents];
                    order[..self.params.influential].iter().for_each(|&agent| influential[agent] = true);
                    self.likelihoods = draw_likelihoods(&self.params, &influential, &mut self.rng.likelihoods);
                    let agents: Vec<usize> = (0..self.params.agents).filter(|&agent| influential[agent]).collect();
                    self.event("likelihoods", &agents, None);
                }
                ScheduledChange::Topology { .. }
                | ScheduledChange::State { .. }
                | ScheduledChange::Likelihoods { .. } => {}
            }
        }
        Ok(())
    }

    fn rewire(&mut self, probability: f64) -> Result<(), Error> {
        let agents = self.params.agents;
        let symmetric = self.params.rule == Rule::Metropolis;
        for _ in 0..DRAWS {
            let mut linked = vec![false; agents * agents];
            self.graph.edges().for_each(|(speaker, listener)| linked[listener * agents + speaker] = true);
            for listener in 0..agents {
                for speaker in (0..agents).filter(|&speaker| speaker != listener) {
                    if symmetric && speaker > listener {
                        continue;
                    }
                    if self.rng.changes.random::<f64>() < probability {
                        linked[listener * agents + speaker] ^= true;
                        if symmetric {
                            linked[speaker * agents + listener] = linked[listener * agents + speaker];
                        }
                    }
                }
            }
            let cells = linked.iter().enumerate().filter(|(_, linked)| **linked);
            let graph = Graph::new(agents, cells.map(|(cell, _)| (cell % agents, cell / agents)))?;
            if graph.connected().is_err() && !self.params.allow_reducible {
                continue;
            }
            // Only listeners who hear others than before divide their attention anew; under the Metropolis rule the
            // neighbours' degrees count too, so all columns are made again, most of them as they were.
            let weighed = graph.weigh_with(self.params.rule, &mut self.rng.weights)?;
            let again = |listener: usize| symmetric || graph.speakers()[listener] != self.graph.speakers()[listener];
            let column = |listener: usize| {
                let source = if again(listener) { &weighed } else { &self.combination };
                source.listener(listener).map(|(speaker, weight)| (speaker, listener, weight)).collect::<Vec<_>>()
            };
            let triplets = (0..agents).flat_map(column).collect();
            let combination = Combination::from_triplets(triplets, agents)?;
            let differs = |&listener: &usize| !combination.listener(listener).eq(self.combination.listener(listener));
            let changed: Vec<usize> = (0..agents).filter(differs).collect();
            if !changed.is_empty() {
                self.combination = combination;
                self.graph = graph;
                self.event("topology", &changed, None);
            }
            return Ok(());
        }
        Err(Error::Graph {
            reason: format!(
                "flipping edges with probability {probability} left no strongly connected network in {DRAWS} draws; lower the probability"
            ),
        })
    }

    fn event(&mut self, kind: &str, agents: &[usize], truth: Option<String>) {
        let agents = self.roster.names(agents);
        self.events.push(WorldEvent { step: self.step, kind: kind.to_owned(), agents, truth });
    }
}
