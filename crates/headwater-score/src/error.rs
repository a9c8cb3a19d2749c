//! Errors of scorers.

use std::path::{Path, PathBuf};

/// Why a text has no score.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The work was asked to end.
    #[error(transparent)]
    Stopped(#[from] headwater::Error),
    /// A model's folder or one of its files cannot be used.
    #[error("{}: {problem}", path.display())]
    Model {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong and what is wanted.
        problem: String,
    },
    /// A text cannot be turned into tokens.
    #[error("the tokenizer cannot read a post: {problem}")]
    Tokens {
        /// The tokenizer's message.
        problem: String,
    },
    /// A model cannot be fetched from the hub.
    #[error("{url}: {problem}")]
    Hub {
        /// The address or name asked for.
        url: String,
        /// What came back and what is wanted.
        problem: String,
    },
    /// There is no folder in which a fetched model can be kept.
    #[error("there is no cache folder to keep the model in")]
    NoCache,
    /// This build has no text models (cargo feature `transformer`).
    #[error("this build of headwater has no text models: it was compiled without the feature transformer")]
    NoTransformer,
}

#[cfg_attr(not(feature = "transformer"), expect(dead_code, reason = "only models of the transformer have files"))]
impl Error {
    pub(crate) fn model(path: &Path, problem: impl Into<String>) -> Error {
        Error::Model { path: path.to_owned(), problem: problem.into() }
    }
}
