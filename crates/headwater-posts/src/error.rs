//! What can go wrong at the door.

use std::path::PathBuf;

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
}
