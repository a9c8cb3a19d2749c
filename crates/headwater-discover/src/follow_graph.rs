//! The follow graph of a run: edges in, who among those who post may listen to whom out.

use crate::Error;
use crate::pseudonyms::Pseudonyms;
use headwater::Roster;
use headwater::graph::Graph;
use headwater_files::{Edges, folded_name, matched_names, read_edges};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Where the edges come from.
#[derive(Debug, Clone)]
pub enum GraphInput {
    /// A CSV file `source,target`: the target follows the source.
    File(PathBuf),
    /// Edges in memory.
    Edges(Edges),
}

impl From<Edges> for GraphInput {
    fn from(edges: Edges) -> Self {
        GraphInput::Edges(edges)
    }
}

impl GraphInput {
    /// The file, where there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            GraphInput::File(path) => Some(path),
            GraphInput::Edges(_) => None,
        }
    }
}

/// Who follows whom, under the names of this run.
#[derive(Debug)]
pub(crate) struct RunGraph {
    /// For messages.
    name: String,
    edges: Edges,
    pub(crate) users: HashSet<String>,
    /// Folded names of accounts, by their name in this run: a pseudonym does not tell its own.
    folded: HashMap<String, String>,
    /// The folded names of the graph.
    folds: HashSet<String>,
}

/// What became of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphCounts {
    /// Edges read.
    pub edges: usize,
    /// Edges between accounts whose posts are kept.
    pub edges_kept: usize,
    /// Accounts in the graph.
    pub users: usize,
    /// Accounts in the graph without a post that is kept.
    pub users_without_posts: usize,
    /// Accounts that post, but are not in the graph.
    pub users_outside: usize,
    /// Accounts that post and are in the graph, but have no edge to or from another that posts.
    pub users_alone: usize,
    /// Accounts of the graph that were found among the posts up to case and a leading `@` only.
    #[serde(default)]
    pub users_matched: usize,
}

impl RunGraph {
    pub(crate) fn read(input: &GraphInput, mut pseudonyms: Option<&mut Pseudonyms>) -> Result<Self, Error> {
        let (name, edges) = match input {
            GraphInput::File(path) => {
                let edges = read_edges(path);
                let edges = if pseudonyms.is_some() { edges.map_err(Error::hiding_names)? } else { edges? };
                (path.display().to_string(), edges)
            }
            GraphInput::Edges(edges) => ("graph".to_owned(), edges.clone()),
        };
        let mut run_name = |name: &str| match pseudonyms.as_deref_mut() {
            Some(pseudonyms) => pseudonyms.replace(name),
            None => name.to_owned(),
        };
        let folded: HashMap<String, String> =
            edges.agents().iter().map(|name| (run_name(name), folded_name(name))).collect();
        let edges = edges.renamed(run_name);
        let folds = folded.values().cloned().collect();
        Ok(RunGraph { name, users: edges.agents().into_iter().collect(), edges, folded, folds })
    }

    /// Whether an account of the graph has this folded name.
    pub(crate) fn has_folded(&self, folded: &str) -> bool {
        self.folds.contains(folded)
    }

    /// Which account of the graph stands for which account that posts, where their names are not equal; `folded` has the
    /// folded names of those who post, by their name in this run.
    pub(crate) fn matches<'a>(
        &'a self,
        posters: impl IntoIterator<Item = &'a str>,
        folded: &HashMap<String, String>,
    ) -> BTreeMap<String, String> {
        let fold = |name: &str| folded.get(name).or_else(|| self.folded.get(name)).cloned().unwrap_or_default();
        matched_names(self.users.iter().map(String::as_str), posters, fold)
    }

    /// Nobody in the graph posts.
    pub(crate) fn no_posters(&self, posters: usize, example: Option<&String>) -> Error {
        Error::GraphWithoutPosters {
            graph: self.name.clone(),
            users: self.users.len(),
            first: self.edges.agents().into_iter().next().unwrap_or_default(),
            posters,
            example: example.cloned(),
        }
    }

    /// The graph among the accounts whose posts are kept, and what became of the rest.
    pub(crate) fn among(
        &self,
        roster: &Roster,
        matches: &BTreeMap<String, String>,
        users_without_posts: usize,
        users_outside: usize,
    ) -> Result<(Graph, GraphCounts), Error> {
        let kept = self.edges.clone().under(matches).among(roster);
        let graph = kept.graph(roster)?;
        let followers = graph.followers();
        let alone = |agent: &usize| followers[*agent] == 0 && graph.speakers()[*agent].is_empty();
        let users_alone = (0..graph.agents()).filter(alone).count();
        if users_alone == graph.agents() {
            return Err(Error::GraphWithoutEdges { graph: self.name.clone(), edges: self.edges.len() });
        }
        let counts = GraphCounts {
            edges: self.edges.len(),
            edges_kept: kept.len(),
            users: self.users.len(),
            users_without_posts,
            users_outside,
            users_alone,
            users_matched: matches.values().filter(|user| roster.agent(user).is_ok()).count(),
        };
        Ok((graph, counts))
    }
}
