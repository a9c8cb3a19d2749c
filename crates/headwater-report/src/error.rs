//! What can be wrong on the way from a model to a picture or a page.

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
}
