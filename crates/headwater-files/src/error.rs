//! What can be wrong with a file: which, where in it, what was met and what would be right.

use headwater::words::exact;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Everything that can go wrong between a path and a number.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system said no.
    #[error("{}: {doing}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What it answered.
        source: std::io::Error,
    },
    /// A file cannot be written where there is no folder.
    #[error("{}: there is no folder {}", .path.display(), .folder.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder that is missing.
        folder: PathBuf,
    },
    /// Something in a file is wrong at a known place.
    #[error("{}, {place}: {problem}", .path.display())]
    Place {
        /// The file.
        path: PathBuf,
        /// Line, row or cell, and column.
        place: String,
        /// What was met and what would be right.
        problem: String,
    },
    /// Something is wrong with a file as a whole.
    #[error("{}: {problem}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was met and what would be right.
        problem: String,
    },
    /// A graph has no edge between two of the agents.
    #[error("{}: no edge is between two agents with beliefs; names must be the same up to case and a leading @; the graph has {named}", .path.display())]
    NoEdgeAmongAgents {
        /// The file.
        path: PathBuf,
        /// Some of the names that it has.
        named: String,
    },
    /// Groups contain none of the agents.
    #[error("{}: names none of the agents; names must be the same, capitals included", .path.display())]
    NoGroupMembers {
        /// The file.
        path: PathBuf,
    },
    /// A number in a file is outside its range.
    #[error("{}: {field} is {value}, but must be {range}", .path.display())]
    Range {
        /// The file.
        path: PathBuf,
        /// What the number is.
        field: &'static str,
        /// The number.
        value: String,
        /// The numbers that are allowed.
        range: String,
    },
    /// The file can be read, but its contents cannot be used.
    #[error("{}: {source}", .path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// Why.
        source: headwater::Error,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, doing, source }
    }

    pub(crate) fn file(path: &Path, problem: impl Into<String>) -> Error {
        Error::File { path: path.to_owned(), problem: problem.into() }
    }

    pub(crate) fn place(path: &Path, place: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Place { path: path.to_owned(), place: place.into(), problem: problem.into() }
    }

    pub(crate) fn range(
        path: &Path,
        field: &'static str,
        value: &dyn std::fmt::Display,
        range: impl Into<String>,
    ) -> Error {
        Error::Range { path: path.to_owned(), field, value: exact(value), range: range.into() }
    }

    pub(crate) fn data(path: &Path) -> impl FnOnce(headwater::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Data { path, source }
    }
}
