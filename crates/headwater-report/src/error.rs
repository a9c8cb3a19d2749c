//! Errors of reports, figures and exports.

use std::path::PathBuf;
use thiserror::Error;

/// Why a report, a figure or an export cannot be made.
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
    /// The ranking belongs to another model.
    #[error("the ranking does not belong to this model: {problem}")]
    Ranking {
        /// What does not fit.
        problem: String,
    },
    /// The beliefs belong to another model.
    #[error("the beliefs do not belong to this model: {problem}")]
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
    /// The file extension is not that of an export format.
    #[error("{}: the file extension is not that of an export format", path.display())]
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
