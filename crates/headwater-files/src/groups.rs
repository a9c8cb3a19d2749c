//! Groups: CSV `agent,group`, who belongs together. Agents that are not named form a group of their own.

use crate::cells::may_be_neutralised;
use crate::{Error, restored_cell};
use headwater::Roster;
use headwater::words::shown;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The rows of a file of groups, checked but not yet tied to a roster.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    path: PathBuf,
    of: HashMap<String, String>,
}

/// Reads a file of groups.
pub fn read_groups(path: &Path) -> Result<Groups, Error> {
    let mut reader = csv::ReaderBuilder::new()
        .from_path(path)
        .map_err(|error| Error::file(path, format!("cannot be read: {error}")))?;
    let header = reader.headers().map_err(|error| Error::file(path, error.to_string()))?.clone();
    let column = |name: &str| header.iter().position(|header| header.trim() == name);
    let (Some(agent), Some(group)) = (column("agent").or_else(|| column("user")), column("group")) else {
        let met = header.iter().collect::<Vec<_>>().join(",");
        return Err(Error::place(path, "line 1", format!("columns are {met:?}; expected agent,group")));
    };
    let mut of: HashMap<String, String> = HashMap::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, |position| position.line());
            Error::place(path, format!("line {line}"), error.to_string())
        })?;
        let line = record.position().map_or(0, |position| position.line());
        let [agent, group] = [agent, group].map(|column| record.get(column).unwrap_or_default().trim());
        if agent.is_empty() || group.is_empty() {
            return Err(Error::place(path, format!("line {line}"), "an agent and its group are expected"));
        }
        if of.insert(agent.to_owned(), group.to_owned()).is_some_and(|before| before != group) {
            return Err(Error::place(
                path,
                format!("line {line}"),
                format!("{} is in another group already", shown(agent)),
            ));
        }
    }
    let ours = may_be_neutralised(of.keys().map(String::as_str));
    let groups = Groups { path: path.to_owned(), of };
    Ok(if ours { groups.renamed(|name| restored_cell(name).to_owned()) } else { groups })
}

impl Groups {
    /// Groups in memory: agent, group.
    pub fn new(groups: impl IntoIterator<Item = (String, String)>) -> Self {
        Groups { path: PathBuf::from("groups"), of: groups.into_iter().collect() }
    }

    /// Agent and group, by agent.
    pub fn sorted(&self) -> Vec<(&str, &str)> {
        let mut pairs: Vec<(&str, &str)> =
            self.of.iter().map(|(agent, group)| (agent.as_str(), group.as_str())).collect();
        pairs.sort_unstable();
        pairs
    }

    /// With other names.
    pub fn renamed(self, mut rename: impl FnMut(&str) -> String) -> Self {
        Groups { of: self.of.into_iter().map(|(agent, group)| (rename(&agent), group)).collect(), ..self }
    }

    /// The group of each agent as a number, and how many agents are not named.
    pub fn among(&self, roster: &Roster) -> Result<(Vec<usize>, usize), Error> {
        let mut numbers: HashMap<Option<&str>, usize> = HashMap::new();
        let mut groups = Vec::with_capacity(roster.agents().len());
        let mut unnamed = 0;
        for agent in roster.agents() {
            let group = self.of.get(agent).map(String::as_str);
            unnamed += usize::from(group.is_none());
            let next = numbers.len();
            groups.push(*numbers.entry(group).or_insert(next));
        }
        if unnamed == groups.len() {
            return Err(Error::NoGroupMembers { path: self.path.clone() });
        }
        Ok((groups, unnamed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Groups, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("groups.csv");
        std::fs::write(&path, text).unwrap();
        read_groups(&path)
    }

    #[test]
    fn numbers_follow_the_roster() {
        let groups = read("group,agent\nred,a\nblue,b\nred,c\n").unwrap();
        let roster = Roster::new(["b", "x", "c", "a"], ["p", "q"]).unwrap();
        assert_eq!(groups.among(&roster).unwrap(), (vec![0, 1, 2, 2], 1));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        assert!(said("name,party\na,red\n").contains("expected agent,group"));
        assert!(said("agent,group\na,red\na,blue\n").contains("line 3: a is in another group already"));
        assert!(said("agent,group\n,red\n").contains("line 2: an agent and its group are expected"));
        let strangers = read("agent,group\nz,red\n").unwrap().among(&Roster::numbered(2, 2).unwrap());
        assert!(strangers.unwrap_err().to_string().contains("names none of the agents"));
    }
}
