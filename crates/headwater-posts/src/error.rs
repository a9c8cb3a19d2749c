//! What can go wrong at the door.

use std::path::{Path, PathBuf};

/// Anything that keeps posts from becoming beliefs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be used.
    #[error("{}: {problem}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A model's folder or one of its files cannot be used.
    #[error("{}: {problem}", path.display())]
    Model {
        /// Which.
        path: PathBuf,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A post cannot be turned into tokens.
    #[error("the tokenizer cannot read a post: {problem}")]
    Tokens {
        /// What it says.
        problem: String,
    },
    /// A model cannot be fetched from the hub.
    #[error("{url}: {problem}")]
    Hub {
        /// What was asked for.
        url: String,
        /// What came back and what would be right.
        problem: String,
    },
}

impl Error {
    pub(crate) fn model(path: &Path, problem: impl Into<String>) -> Error {
        Error::Model { path: path.to_owned(), problem: problem.into() }
    }
}
