//! What can be wrong on the way from a model to a picture or a page.

use std::path::PathBuf;
use thiserror::Error;

/// Something that cannot be shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The drawing cannot be turned into pixels.
    #[error("the figure {title:?} cannot be drawn as PNG: {problem}")]
    Png {
        /// Of the figure.
        title: String,
        /// Why.
        problem: String,
    },
    /// The ranking is not one of this model.
    #[error("the ranking is not of this model: {problem}")]
    Ranking {
        /// What does not fit.
        problem: String,
    },
    /// The beliefs are not those of this model.
    #[error("the beliefs are not of this model: {problem}")]
    Beliefs {
        /// What does not fit.
        problem: String,
    },
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] headwater::Error),
    /// The page's data cannot be written.
    #[error("the page cannot be written: {0}")]
    Page(#[from] serde_json::Error),
    /// The ending of a file name is none of the formats that a network is written in.
    #[error("{}: the ending of the file chooses the format, and this one is none", path.display())]
    ExportFormat {
        /// The file asked for.
        path: PathBuf,
    },
    /// The operating system refused to write.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file asked for.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be created, or cannot take its name.
    #[error(transparent)]
    Files(#[from] headwater_files::Error),
}
