//! Why a replication stopped.

use std::path::PathBuf;

/// Why a replication stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Error {
    #[error(transparent)]
    Core(#[from] headwater::Error),
    #[error(transparent)]
    Files(#[from] headwater_files::Error),
    #[error(transparent)]
    Posts(#[from] headwater_posts::Error),
    /// A scorer cannot be used.
    #[error(transparent)]
    Score(#[from] headwater_score::Error),
    #[error(transparent)]
    Report(#[from] headwater_report::Error),
    #[error("no experiment {name:?}; there is {}", crate::Experiment::ALL.map(crate::Experiment::name).join(", "))]
    UnknownExperiment { name: String },
    /// The operating system refused a file or folder.
    #[error("{}: {doing}: {source}", path.display())]
    Io { path: PathBuf, doing: &'static str, source: std::io::Error },
    /// A value that has no JSON.
    #[error("{}: cannot write: {source}", path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    /// A released file does not have the form that is expected.
    #[error("{}, line {line}: expected {wanted}", path.display())]
    Cell { path: PathBuf, line: usize, wanted: String },
    #[error("{}: no column {name:?}; there is {}", path.display(), met.join(", "))]
    Column { path: PathBuf, name: String, met: Vec<String> },
    #[error("the covariance of simulated beliefs has no eigenvalues")]
    NoEigenvalues,
}
