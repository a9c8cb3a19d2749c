//! Errors of the pipeline. Messages name what was found and what is needed; the command line and Python add hints in terms of
//! their own options.

use crate::input_names::InputNames;
use crate::pseudonyms::KeyProblem;
use std::path::PathBuf;

/// Why a run ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The computation failed, or was stopped.
    #[error(transparent)]
    Core(#[from] headwater::Error),
    /// The computation failed on the beliefs of these posts.
    #[error("{posts}: {source}")]
    Data {
        /// The posts, for a message.
        posts: String,
        /// Why.
        source: headwater::Error,
    },
    /// A file of ours cannot be read or written.
    #[error(transparent)]
    Files(#[from] headwater_files::Error),
    /// The posts cannot be used.
    #[error(transparent)]
    Posts(#[from] headwater_posts::Error),
    /// No post is kept, or only those of one account.
    #[error("{posts}: {source}")]
    NothingKept {
        /// The posts, for a message.
        posts: String,
        /// Why.
        source: Box<headwater_posts::Error>,
    },
    /// The scorer cannot be used.
    #[error(transparent)]
    Score(#[from] headwater_score::Error),
    /// A file cannot be read.
    #[error("{}: cannot read: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A pipe or standard input, which can be read only once.
    #[error("{}: is not a regular file; a run reads its inputs twice, once for their hash", path.display())]
    NotAFile {
        /// Which.
        path: PathBuf,
    },
    /// Another run writes to the folder.
    #[error(
        "{}: another run{} is writing to this folder",
        folder.display(),
        process.map_or(String::new(), |process| format!(", process {process},"))
    )]
    FolderInUse {
        /// The folder.
        folder: PathBuf,
        /// The process of that run, where it is known.
        process: Option<u32>,
    },
    /// The folder holds the results of other inputs.
    #[error("{}: holds the results of a run {}; they would be replaced", folder.display(), inputs_of(role, *change))]
    OtherInputs {
        /// The folder.
        folder: PathBuf,
        /// Role of the first input that differs, as in [`InputFile::role`](crate::InputFile::role).
        role: String,
        /// How it differs.
        change: InputChange,
    },
    /// An output would overwrite an input.
    #[error("{}: is an input of this run and would be overwritten", path.display())]
    Overwrite {
        /// Which.
        path: PathBuf,
    },
    /// The output folder is a file.
    #[error("{}: is a file; results are written to a folder", path.display())]
    NotAFolder {
        /// Which.
        path: PathBuf,
    },
    /// A file that no run wrote has the name of an output.
    #[error("{}: exists already, and this folder has no record of a run that wrote it; it would be replaced", path.display())]
    OtherFile {
        /// Which.
        path: PathBuf,
    },
    /// The key for pseudonyms cannot be read.
    #[error("{}: cannot read the key: {source}", path.display())]
    Key {
        /// The key file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The key for pseudonyms does not protect names.
    #[error("{}: {problem}", path.display())]
    WeakKey {
        /// The key file.
        path: PathBuf,
        /// Why.
        problem: KeyProblem,
    },
    /// Two accounts would become one.
    #[error("two accounts have the same pseudonym under this key")]
    PseudonymCollision,
    /// A problem whose description may contain a name, in a run that replaces names.
    #[error("{place}: cannot be used; the reason is not shown, because it may contain a name")]
    Hidden {
        /// File and line.
        place: String,
    },
    /// An error of a run that replaces names: its inputs are called by what they are for.
    #[error("{}", names.replace_in(&error.to_string()))]
    Unnamed {
        /// What happened.
        error: Box<Error>,
        /// What the inputs are called.
        names: InputNames,
    },
    /// Columns are missing, and those that are there may be named after accounts.
    #[error("{}: there is no {}; the columns found are not shown, because they may be names", path.display(), missing.join(", no "))]
    HiddenColumns {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        missing: Vec<String>,
    },
    /// The graph and the posts have no account in common.
    #[error(
        "{graph}: none of its {users} accounts, such as {first:?}, has a post; the posts are by {posters} other accounts{}",
        example.as_ref().map_or(String::new(), |name| format!(", such as {name:?}"))
    )]
    GraphWithoutPosters {
        /// The graph, for a message.
        graph: String,
        /// Accounts in the graph.
        users: usize,
        /// One of them.
        first: String,
        /// Accounts that post.
        posters: usize,
        /// One of them.
        example: Option<String>,
    },
    /// No edge is left among those who post.
    #[error("{graph}: none of its {edges} edges joins two accounts whose posts are kept")]
    GraphWithoutEdges {
        /// The graph, for a message.
        graph: String,
        /// How many edges it has.
        edges: usize,
    },
    /// The accounts asked for are not in the graph.
    #[error("none of the accounts asked for is in the graph")]
    UsersOutsideGraph,
    /// Too few time bins.
    #[error("{posts}: posts from {first} to {last} fill {bins} time bins; at least {needed} are needed")]
    TooFewBins {
        /// The posts, for a message.
        posts: String,
        /// First post.
        first: String,
        /// Last post.
        last: String,
        /// Bins filled.
        bins: u64,
        /// Bins needed.
        needed: u64,
    },
    /// All scores of an account are equal.
    #[error("{posts}: no score changes over time, so a network cannot be estimated")]
    ConstantScores {
        /// The posts, for a message.
        posts: String,
    },
    /// Speaker strengths without a graph.
    #[error("speaker strengths need a graph of who follows whom")]
    StrengthsWithoutGraph,
    /// Speaker strengths without the simplex constraint.
    #[error("speaker strengths are shares of attention and need the simplex constraint")]
    StrengthsUnconstrained,
    /// A report or an export cannot be made.
    #[error("{file}: cannot be made: {problem}")]
    Artifact {
        /// Which.
        file: &'static str,
        /// Why.
        problem: String,
    },
    /// A record cannot be written or read.
    #[error("the record of the run cannot be written or read: {problem}")]
    Record {
        /// Why.
        problem: String,
    },
}

/// How an input of this run differs from that of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputChange {
    /// The earlier run had none.
    Added,
    /// This run has none.
    Dropped,
    /// Both have one, with other contents.
    Replaced,
}

/// What an earlier run had of an input that differs.
fn inputs_of(role: &str, change: InputChange) -> String {
    let (one, other) = match role {
        "posts" => ("posts", "other posts, or with other pseudonyms"),
        "graph" => ("a graph", "another graph"),
        "users" => ("a list of users", "another list of users"),
        "groups" => ("groups with trends of their own", "other groups with trends of their own"),
        "test-groups" => ("groups for the graph test", "other groups for the graph test"),
        role => return format!("with other inputs ({role})"),
    };
    match change {
        InputChange::Added => format!("without {one}"),
        InputChange::Dropped => format!("on {one}, which this run does not have"),
        InputChange::Replaced => format!("on {other}"),
    }
}

impl Error {
    /// The same without what may contain a name.
    pub(crate) fn hiding_names(error: headwater_files::Error) -> Self {
        use headwater_files::Error as Files;
        match error {
            Files::Place { path, place, .. } => Error::Hidden { place: format!("{}, {place}", path.display()) },
            Files::File { path, .. } | Files::Data { path, .. } => Error::Hidden { place: path.display().to_string() },
            other => other.into(),
        }
    }
}
