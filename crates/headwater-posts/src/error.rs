//! Errors of ingest. Messages name what was met and what is wanted; which option cures it is for the caller to say.

use crate::quality::LossReason;
use crate::read::{OtherFormat, Preset, RecordPlace, RowProblem};
use headwater_files::TooMuchExpansion;
use std::path::{Path, PathBuf};

/// Anything that keeps posts from becoming beliefs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The panel cannot be built, or the work was asked to end.
    #[error(transparent)]
    Core(#[from] headwater::Error),
    /// A file cannot be used.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong and what is wanted.
        problem: String,
    },
    /// The operating system refused.
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A place of a file that cannot be passed over is wrong.
    #[error("{}, line {line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What was met and what is wanted.
        problem: String,
    },
    /// The columns of a table, or the keys of its objects, have other names than those looked for.
    #[error("{}: there is no {}; found {found}", path.display(), missing.join(", no "))]
    Columns {
        /// The file.
        path: PathBuf,
        /// Fields that were looked for.
        missing: Vec<&'static str>,
        /// What the file has instead.
        found: String,
        /// For each missing field the column that may be meant.
        suggestion: Vec<(&'static str, Option<String>)>,
    },
    /// The column of the text is not there.
    #[error("{}: no column {column:?}; found {found}", path.display())]
    TextColumn {
        /// The file.
        path: PathBuf,
        /// The column looked for.
        column: String,
        /// The columns there are.
        found: String,
    },
    /// A file has columns that the first file has not.
    #[error("{place}: has columns that the first file has not: {columns}")]
    OtherColumns {
        /// The first row with them.
        place: RecordPlace,
        /// Their names.
        columns: String,
    },
    /// The posts are those of another platform, or of none.
    #[error("{}: {found}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What they are.
        found: OtherFormat,
    },
    /// Columns are named beside a preset that knows where everything is.
    #[error("the preset {preset} knows where everything is; no column can be named beside it")]
    PresetAndColumns {
        /// The preset.
        preset: Preset,
    },
    /// A text in an encoding that is not known.
    #[error("{}: is not UTF-8 text, and its encoding is not certain; expected UTF-8, UTF-16 or Windows-1252", path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// No row of a file can be read, all for the same reason.
    #[error("{place}: {reason}")]
    WholeFile {
        /// What that is.
        problem: RowProblem,
        /// The first row.
        place: RecordPlace,
        /// What was met and what is wanted.
        reason: String,
    },
    /// A range of scores, where the posts' own scores are not used.
    #[error("a range of scores is given, but the posts' own scores are not used")]
    UnusedScoreRange,
    /// A topic that cannot be read.
    #[error("topic, column {column}: {problem}\n  {query}\n  {:>column$}", '^')]
    Query {
        /// The topic as given.
        query: String,
        /// Where, in characters from 1.
        column: usize,
        /// What was met and what is wanted.
        problem: String,
    },
    /// An option that contradicts another, or the data.
    #[error("{problem}")]
    Option {
        /// What was met and what is wanted.
        problem: String,
    },
    /// More rows than allowed cannot be read.
    #[error("{bad} of {rows} rows cannot be read, which is more than {allowed}; the first: {first}")]
    TooManyBad {
        /// Rows that cannot be read.
        bad: u64,
        /// Rows met so far.
        rows: u64,
        /// The limit in words.
        allowed: String,
        /// The first of them: file, line and reason.
        first: String,
        /// What is wrong with most of them, where they have it in common.
        problem: RowProblem,
    },
    /// Everything was read, and nothing is left.
    #[error("no post is left of {rows} rows: {reasons}")]
    NothingLeft {
        /// Rows met.
        rows: u64,
        /// Where they went.
        reasons: String,
        /// Why most of them are not used; `None` where there were none.
        main: Option<LossReason>,
    },
    /// A network needs at least two users.
    #[error("only one user is left, {user:?}, of {rows} rows: {reasons}; beliefs of at least two are needed")]
    OneUser {
        /// The user.
        user: String,
        /// Rows met.
        rows: u64,
        /// Where the others went.
        reasons: String,
        /// Why most of the other rows are not used; `None` where there were none.
        main: Option<LossReason>,
    },
    /// Hardly any bin between the first post and the last holds a post.
    #[error(
        "posts run from {first} to {last}, which is {bins} bins, and only {present} of them hold a post; are the times right, and the bins long enough?"
    )]
    SparseBins {
        /// The first bin with a post.
        first: String,
        /// The last.
        last: String,
        /// Bins from the first to the last.
        bins: u64,
        /// Those with a post.
        present: u64,
    },
    /// An account of the follow graph that is not there, or alone.
    #[error("{account:?} {problem}")]
    Account {
        /// Its name.
        account: String,
        /// What is wrong and what is wanted.
        problem: String,
    },
    /// A file of ours cannot be written.
    #[error(transparent)]
    Files(#[from] headwater_files::Error),
    /// A text cannot be scored.
    #[error(transparent)]
    Score(#[from] headwater_score::Error),
}

impl Error {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| match source.get_ref() {
            // Not the system's answer: the file is at fault.
            Some(inner) if inner.is::<TooMuchExpansion>() => Error::File { path, problem: source.to_string() },
            _ => Error::Io { path, doing, source },
        }
    }

    pub(crate) fn file(path: &Path, problem: impl Into<String>) -> Error {
        Error::File { path: path.to_owned(), problem: problem.into() }
    }

    pub(crate) fn option(problem: impl Into<String>) -> Error {
        Error::Option { problem: problem.into() }
    }
}
