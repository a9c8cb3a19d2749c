//! Names of agents and hypotheses, and their indices; hypothesis 0 is the reference.
//!
//! In: two lists of names. Out: a [`Roster`], part of every panel and model, so that a number can be traced to its agent.

use crate::Error;
use crate::words::list;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Names of the agents and of the hypotheses. Hypothesis 0 is the reference θ_0.
///
/// ```
/// let roster = headwater::Roster::new(["ann", "bob"], ["yes", "no"]).unwrap();
/// assert_eq!(roster.agent("bob").unwrap(), 1);
/// assert_eq!(roster.reference(), "yes");
/// assert_eq!(roster.ratios(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RosterNames", into = "RosterNames")]
pub struct Roster {
    agents: Vec<String>,
    hypotheses: Vec<String>,
    index: HashMap<String, usize>,
}

#[derive(Clone, Serialize, Deserialize)]
struct RosterNames {
    agents: Vec<String>,
    hypotheses: Vec<String>,
}

impl TryFrom<RosterNames> for Roster {
    type Error = Error;
    fn try_from(names: RosterNames) -> Result<Self, Error> {
        Roster::new(names.agents, names.hypotheses)
    }
}

impl From<Roster> for RosterNames {
    fn from(roster: Roster) -> Self {
        RosterNames { agents: roster.agents, hypotheses: roster.hypotheses }
    }
}

impl Roster {
    /// At least two agents and two hypotheses, all names different.
    pub fn new<A: Into<String>, B: Into<String>>(
        agents: impl IntoIterator<Item = A>,
        hypotheses: impl IntoIterator<Item = B>,
    ) -> Result<Self, Error> {
        let agents: Vec<String> = agents.into_iter().map(Into::into).collect();
        let hypotheses: Vec<String> = hypotheses.into_iter().map(Into::into).collect();
        if hypotheses.len() < 2 {
            return Err(Error::TooFewHypotheses { hypotheses: hypotheses.len() });
        }
        if agents.len() < 2 {
            return Err(Error::TooFewAgents { agents: agents.len() });
        }
        index_of(&hypotheses, "hypothesis")?;
        let index = index_of(&agents, "agent")?;
        Ok(Roster { agents, hypotheses, index })
    }

    /// Agents `0`…`N−1` and hypotheses `h0`…`hH`: the names of arrays and simulated worlds.
    pub fn numbered(agents: usize, hypotheses: usize) -> Result<Self, Error> {
        Roster::new(
            (0..agents).map(|agent| agent.to_string()),
            (0..hypotheses).map(|hypothesis| format!("h{hypothesis}")),
        )
    }

    /// Agent names in order.
    pub fn agents(&self) -> &[String] {
        &self.agents
    }

    /// Hypothesis names in order; the first is the reference.
    pub fn hypotheses(&self) -> &[String] {
        &self.hypotheses
    }

    /// Number of log-ratios per agent, |Θ|−1.
    pub fn ratios(&self) -> usize {
        self.hypotheses.len() - 1
    }

    /// Name of the reference hypothesis θ_0.
    pub fn reference(&self) -> &str {
        &self.hypotheses[0]
    }

    /// Index of an agent by name.
    pub fn agent(&self, name: &str) -> Result<usize, Error> {
        self.index.get(name).copied().ok_or_else(|| unknown("agent", name, &self.agents))
    }

    /// Index of a hypothesis by name.
    pub fn hypothesis(&self, name: &str) -> Result<usize, Error> {
        self.hypotheses
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| unknown("hypothesis", name, &self.hypotheses))
    }

    /// The first few names of a set of agents, and how many more there are.
    pub fn list(&self, agents: &[usize]) -> String {
        let names = list(agents.iter().take(SHOWN).map(|&agent| self.agents[agent].as_str()));
        let rest = agents.len().saturating_sub(SHOWN);
        names + &if rest > 0 { format!(" and {rest} more") } else { String::new() }
    }

    /// The names of a set of agents.
    pub fn names(&self, agents: &[usize]) -> Vec<String> {
        agents.iter().map(|&agent| self.agents[agent].clone()).collect()
    }
}

fn index_of(names: &[String], kind: &'static str) -> Result<HashMap<String, usize>, Error> {
    let mut index = HashMap::with_capacity(names.len());
    for (position, name) in names.iter().enumerate() {
        if index.insert(name.clone(), position).is_some() {
            return Err(Error::DuplicateName { kind, name: name.clone() });
        }
    }
    Ok(index)
}

/// Names shown in a message.
const SHOWN: usize = 8;

fn unknown(kind: &'static str, name: &str, known: &[String]) -> Error {
    let mut names = list(known.iter().take(SHOWN).map(String::as_str));
    if known.len() > SHOWN {
        names.push_str(&format!(", … ({} in all)", known.len()));
    }
    Error::UnknownName { kind, name: name.to_owned(), known: names }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let twice = Roster::new(["a", "a"], ["x", "y"]);
        assert_eq!(twice, Err(Error::DuplicateName { kind: "agent", name: "a".into() }));
        assert_eq!(Roster::new(["a"], ["x", "y"]), Err(Error::TooFewAgents { agents: 1 }));
        assert_eq!(Roster::new(["a", "b"], ["x"]), Err(Error::TooFewHypotheses { hypotheses: 1 }));
        let roster = Roster::numbered(3, 2).unwrap();
        assert_eq!(roster.agents(), ["0", "1", "2"]);
        assert_eq!(roster.hypotheses(), ["h0", "h1"]);
        assert!(roster.agent("3").unwrap_err().to_string().contains("known: 0, 1, 2"));
        // A name does not begin a line of its own.
        let roster = Roster::new(["a\nnote: b", "c"], ["x", "y"]).unwrap();
        assert_eq!(roster.list(&[0, 1]), "a\\nnote: b, c");
        assert!(roster.agent("d").unwrap_err().to_string().contains("known: a\\nnote: b, c"));
    }
}
