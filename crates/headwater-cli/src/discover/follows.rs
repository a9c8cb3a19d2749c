//! The follow graph of a run: an edge file in, who of those who post may hear whom out.

use super::pseudonyms::Pseudonyms;
use crate::error::CliError;
use crate::terminal::{Terminal, count};
use headwater::Roster;
use headwater::graph::Graph;
use headwater_files::{Edges, Error, read_edges};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Who follows whom, under the names of this run.
pub(crate) struct Follows {
    path: PathBuf,
    edges: Edges,
    pub(crate) users: HashSet<String>,
}

/// What became of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GraphCounts {
    edges: usize,
    /// Between users who post.
    edges_kept: usize,
    users: usize,
    /// Users of whom no post is left.
    users_without_posts: usize,
    /// Users who post, but are not in the graph.
    users_outside: usize,
    /// Users who post, but neither follow nor are followed by others who do.
    users_alone: usize,
}

impl Follows {
    pub(crate) fn read(path: &Path, pseudonyms: Option<&mut Pseudonyms>) -> Result<Self, CliError> {
        let hidden = pseudonyms.is_some();
        let edges = read_edges(path).map_err(|error| match error {
            // What is wrong may be said with names.
            Error::Place { path, place, .. } if hidden => unsaid(&format!("{}, {place}", path.display())),
            Error::File { path, .. } | Error::Data { path, .. } if hidden => unsaid(&path.display().to_string()),
            error => error.into(),
        })?;
        let edges = match pseudonyms {
            Some(pseudonyms) => edges.renamed(|name| pseudonyms.of(name)),
            None => edges,
        };
        Ok(Follows { path: path.to_owned(), users: edges.agents().into_iter().collect(), edges })
    }

    /// Nobody in the graph posts.
    pub(crate) fn strange(&self, posters: usize, example: Option<&String>) -> CliError {
        let example = example.map_or(String::new(), |name| format!(", such as {name:?}"));
        let first = self.edges.agents().into_iter().next().unwrap_or_default();
        CliError::Data {
            message: format!(
                "{}: names nobody who posts: it has {}, such as {first:?}, and the posts are by {}{example}",
                self.path.display(),
                count(self.users.len(), "user"),
                count(posters, "other"),
            ),
            hint: Some(
                "source and target must be names as in the posts, capitals included; --map user=… takes another column"
                    .to_owned(),
            ),
        }
    }

    /// The graph among those whose posts are left, and what became of the rest.
    pub(crate) fn among(
        &self,
        roster: &Roster,
        absent: usize,
        outside: usize,
    ) -> Result<(Graph, GraphCounts), CliError> {
        let kept = self.edges.clone().among(roster);
        let graph = kept.graph(roster)?;
        let followers = graph.followers();
        let alone = |agent: &usize| followers[*agent] == 0 && graph.speakers()[*agent].is_empty();
        let users_alone = (0..graph.agents()).filter(alone).count();
        if users_alone == graph.agents() {
            return Err(CliError::Data {
                message: format!(
                    "{}: of its {} none joins two users whose posts are left",
                    self.path.display(),
                    count(self.edges.len(), "edge")
                ),
                hint: Some("give the edges among the users who post, or leave out --graph".to_owned()),
            });
        }
        let counts = GraphCounts {
            edges: self.edges.len(),
            edges_kept: kept.len(),
            users: self.users.len(),
            users_without_posts: absent,
            users_outside: outside,
            users_alone,
        };
        Ok((graph, counts))
    }
}

impl GraphCounts {
    /// Says what was left out.
    pub(crate) fn warn(&self, terminal: &Terminal) {
        if self.users_without_posts > 0 {
            terminal.warn(&format!(
                "the graph has {} without a post that is left; they and {} of theirs are left out",
                count(self.users_without_posts, "user"),
                count(self.edges - self.edges_kept, "edge"),
            ));
        }
        if self.users_outside > 0 {
            terminal.warn(&format!(
                "posts by {} outside the graph are left out: it says nothing of whom they hear",
                count(self.users_outside, "user"),
            ));
        }
        if self.users_alone > 0 {
            terminal.warn(&format!(
                "{} without an edge to or from anybody who posts: nothing reaches them or comes from them",
                count(self.users_alone, "user"),
            ));
        }
    }
}

/// A problem that may hold a name.
pub(super) fn unsaid(place: &str) -> CliError {
    CliError::Data {
        message: format!("{place}: cannot be used; the reason may hold a name, and names are not shown"),
        hint: Some("run it without --pseudonymise to see the reason".to_owned()),
    }
}
