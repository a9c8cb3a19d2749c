//! Events of a run; its progress is reported through [`headwater::progress`].

use crate::follow_graph::GraphCounts;
use crate::record::StageName;
use headwater::words::count;
use headwater_posts::read::{BadRow, Preset};
use headwater_posts::{IngestWarning, Quality};

/// An event of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunEvent {
    /// An earlier run had finished this stage on the same inputs with the same options.
    Reused(StageName),
    /// Rows that cannot be read.
    BadRows(Vec<BadRow>),
    /// Posts of this platform were recognised without being told.
    Recognised(Preset),
    /// The posts were read, scored and binned.
    Ingested(Box<Quality>),
    /// The permutation test by circular shifts is off by default for this many accounts.
    NullTestOff {
        /// How many.
        accounts: usize,
        /// Whether a graph was tested, so that the verdict does not need it.
        decided: bool,
    },
    /// A warning about the result.
    Warning(Warning),
}

/// A warning about the result. Its text names the facts; callers add the options that change them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// About the posts.
    Ingest(IngestWarning),
    /// Accounts in the graph without a post that is kept.
    GraphUsersWithoutPosts(GraphCounts),
    /// Accounts that post, but are not in the graph.
    UsersOutsideGraph(usize),
    /// Accounts without an edge to or from another that posts.
    UsersAlone(usize),
    /// Accounts of the graph that were found among the posts up to case and a leading `@` only.
    UsersMatched(usize),
    /// Accounts that no group was given for.
    Ungrouped(usize),
    /// About the model.
    Model(String),
    /// What was asked for and is not in the ranking.
    Ranking(String),
}

impl Warning {
    /// What became of the graph, in warnings.
    pub(crate) fn about_graph(counts: &GraphCounts) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if counts.users_matched > 0 {
            warnings.push(Warning::UsersMatched(counts.users_matched));
        }
        if counts.users_without_posts > 0 {
            warnings.push(Warning::GraphUsersWithoutPosts(counts.clone()));
        }
        if counts.users_outside > 0 {
            warnings.push(Warning::UsersOutsideGraph(counts.users_outside));
        }
        if counts.users_alone > 0 {
            warnings.push(Warning::UsersAlone(counts.users_alone));
        }
        warnings
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Warning::Ingest(warning) => write!(f, "{warning}"),
            Warning::GraphUsersWithoutPosts(counts) => write!(
                f,
                "{} of the graph without a kept post: left out, with {}",
                count(counts.users_without_posts, "account"),
                count(counts.edges - counts.edges_kept, "edge")
            ),
            Warning::UsersOutsideGraph(users) => {
                write!(f, "{} outside the graph: their posts are left out", count(*users, "account"))
            }
            Warning::UsersAlone(users) => write!(
                f,
                "{} without an edge to or from an account with posts: no influence on or by others can be estimated",
                count(*users, "account")
            ),
            Warning::UsersMatched(users) => {
                write!(f, "{} of the graph matched up to case and a leading @", count(*users, "name"))
            }
            Warning::Ungrouped(users) => {
                write!(f, "{} without a group: they form a group of their own", count(*users, "account"))
            }
            Warning::Model(text) | Warning::Ranking(text) => write!(f, "{text}"),
        }
    }
}
