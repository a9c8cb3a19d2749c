//! Parameters of a simulated world.

use crate::error::require;
use crate::graph::Rule;
use crate::{Error, model};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Networks are drawn pair by pair; beyond this size that takes hours.
const MOST_AGENTS: usize = 1_000_000;

/// Shape of a random network. All are undirected; every agent also has a self-weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkShape {
    /// Each pair with the same probability.
    Er,
    /// Agent 0 with everyone.
    Star,
    /// Newcomers attach to two others in proportion to their links.
    Preferential,
    /// Groups of consecutive agents; pairs of different groups are ten times less likely.
    Blocks {
        /// Number of groups.
        groups: usize,
    },
}

/// Distribution of the private observations under each hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Likelihoods {
    /// A coin per agent, by the generator of the paper's appendix.
    Appendix,
    /// A coin per agent, by the formula of the authors' released simulations. Note P4.
    Released,
    /// Gaussian observations of unit variance and this dimension, means drawn per hypothesis.
    Gaussian {
        /// Dimension.
        dimension: usize,
    },
}

/// A change at a scheduled step of a world. Steps count written frames; the frame of that number is the first changed one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ScheduledChange {
    /// Every so many steps each off-diagonal entry of the adjacency matrix flips with this probability.
    Topology {
        /// Period.
        every: usize,
        /// Probability.
        probability: f64,
    },
    /// The true state changes once, to this one or to another at random.
    State {
        /// When.
        at: usize,
        /// To which.
        to: Option<usize>,
    },
    /// Once, other agents become the influential ones and all private likelihoods are drawn again.
    Likelihoods {
        /// When.
        at: usize,
    },
}

/// Parses `appendix`, `released`, `gaussian` or `gaussian:DIM`.
///
/// ```
/// use headwater::simulate::Likelihoods;
/// assert_eq!("gaussian:2".parse(), Ok(Likelihoods::Gaussian { dimension: 2 }));
/// ```
impl FromStr for Likelihoods {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = match text.split_once(':') {
            None if text == "appendix" => Some(Likelihoods::Appendix),
            None if text == "released" => Some(Likelihoods::Released),
            None if text == "gaussian" => Some(Likelihoods::Gaussian { dimension: 1 }),
            Some(("gaussian", dimension)) => {
                let dimension = dimension.parse().ok().filter(|dimension| *dimension > 0);
                dimension.map(|dimension| Likelihoods::Gaussian { dimension })
            }
            _ => None,
        };
        found.ok_or_else(|| Error::Parameter {
            name: "likelihoods",
            value: format!("{text:?}"),
            range: "appendix, released or gaussian[:DIM], DIM a whole number of at least 1",
        })
    }
}

/// Parses `topology:EVERY:PROBABILITY`, `state:STEP[:INDEX]` or `likelihoods:STEP`.
///
/// ```
/// use headwater::simulate::ScheduledChange;
/// assert_eq!("state:500:2".parse(), Ok(ScheduledChange::State { at: 500, to: Some(2) }));
/// ```
impl FromStr for ScheduledChange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parts: Vec<&str> = text.split(':').collect();
        let step = |text: &str| text.parse::<usize>().ok();
        let found = match parts[..] {
            ["topology", every, probability] => (step(every).zip(probability.parse().ok()))
                .map(|(every, probability)| ScheduledChange::Topology { every, probability }),
            ["state", at] => step(at).map(|at| ScheduledChange::State { at, to: None }),
            ["state", at, to] => step(at).zip(step(to)).map(|(at, to)| ScheduledChange::State { at, to: Some(to) }),
            ["likelihoods", at] => step(at).map(|at| ScheduledChange::Likelihoods { at }),
            _ => None,
        };
        found.ok_or_else(|| Error::Parameter {
            name: "change",
            value: format!("{text:?}"),
            range: "topology:EVERY:PROBABILITY, state:STEP[:INDEX] or likelihoods:STEP",
        })
    }
}

/// Parameters of a [`World`](super::World).
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `agents` | 20 | N | ≥ 2 |
/// | `network` | er | shape of the support | |
/// | `edge_probability` | 0.2 | of `er` and inside `blocks` | (0, 1] |
/// | `rule` | uniform | weights of the edges | |
/// | `hypotheses` | 5 | size of Θ | ≥ 2 |
/// | `likelihoods` | appendix | private observations | |
/// | `influential` | 3 | agents 0…k−1 are well informed | ≤ N |
/// | `influential_scale` | 0.5 | σ² or v of the influential | > 0 |
/// | `other_scale` | 0.05 | σ² or v of the rest | > 0 |
/// | `truth` | 0 | index of θ* | < hypotheses |
/// | `adaptation` | 0.05 | δ | (0, 1) |
/// | `steps` | 1000 | frames written | ≥ 1 |
/// | `burn_in` | 500 | frames before, from uniform beliefs | |
/// | `silence` | 0 | probability that a cell is silent | [0, 1) |
/// | `allow_reducible` | false | accept a given graph that is not strongly connected | |
/// | `seed` | 21 | of everything drawn | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table above says it once")]
pub struct WorldParams {
    pub agents: usize,
    pub network: NetworkShape,
    pub edge_probability: f64,
    pub rule: Rule,
    pub hypotheses: usize,
    pub likelihoods: Likelihoods,
    pub influential: usize,
    pub influential_scale: f64,
    pub other_scale: f64,
    pub truth: usize,
    pub adaptation: f64,
    pub steps: usize,
    pub burn_in: usize,
    pub silence: f64,
    pub allow_reducible: bool,
    pub changes: Vec<ScheduledChange>,
    pub seed: u64,
}

impl Default for WorldParams {
    fn default() -> Self {
        WorldParams {
            agents: 20,
            network: NetworkShape::Er,
            edge_probability: 0.2,
            rule: Rule::Uniform,
            hypotheses: 5,
            likelihoods: Likelihoods::Appendix,
            influential: 3,
            influential_scale: 0.5,
            other_scale: 0.05,
            truth: 0,
            adaptation: 0.05,
            steps: 1000,
            burn_in: 500,
            silence: 0.0,
            allow_reducible: false,
            changes: Vec::new(),
            seed: 21,
        }
    }
}

impl WorldParams {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.agents < 2 {
            return Err(Error::TooFewAgents { agents: self.agents });
        }
        require(self.agents <= MOST_AGENTS, "agents", self.agents, "at most a million")?;
        if self.hypotheses < 2 {
            return Err(Error::TooFewHypotheses { hypotheses: self.hypotheses });
        }
        model::check_adaptation(self.adaptation)?;
        let edges = self.edge_probability;
        require(edges > 0.0 && edges <= 1.0, "edge-probability", edges, "above 0 and at most 1")?;
        require(self.influential <= self.agents, "influential", self.influential, "at most the number of agents")?;
        require(self.truth < self.hypotheses, "truth", self.truth, "below the number of hypotheses")?;
        require((0.0..1.0).contains(&self.silence), "silence", self.silence, "at least 0 and below 1")?;
        require(self.steps >= 1, "steps", self.steps, "at least 1")?;
        for (name, scale) in [("influential-scale", self.influential_scale), ("other-scale", self.other_scale)] {
            require(scale > 0.0 && scale.is_finite(), name, scale, "a positive number")?;
        }
        if let NetworkShape::Blocks { groups } = self.network {
            require(groups >= 1 && groups <= self.agents, "blocks", groups, "between 1 and the number of agents")?;
        }
        if let Likelihoods::Gaussian { dimension } = self.likelihoods {
            require(dimension >= 1, "gaussian dimension", dimension, "at least 1")?;
        }
        for change in &self.changes {
            match *change {
                ScheduledChange::Topology { every, probability } => {
                    require(every >= 1, "topology period", every, "at least 1")?;
                    require((0.0..=1.0).contains(&probability), "topology probability", probability, "in 0…1")?;
                }
                ScheduledChange::State { at, to } => {
                    let to = to.unwrap_or(0);
                    require(to < self.hypotheses, "state", to, "below the number of hypotheses")?;
                    require(at < self.steps, "step of the change of state", at, "below the number of steps")?;
                }
                ScheduledChange::Likelihoods { at } => {
                    require(at < self.steps, "step of the change of likelihoods", at, "below the number of steps")?;
                }
            }
        }
        Ok(())
    }
}
