//! Parameters of the paper's learner.

use crate::error::require;
use crate::{Error, Evidence, model};
use serde::{Deserialize, Serialize};

/// Constraint on each column of A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// Nothing, as in the paper.
    #[default]
    Free,
    /// Non-negative and summing to one, by projection on the simplex.
    Simplex,
}

/// Parameters of [`Gsl`](super::Gsl).
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `adaptation` | 0.05 | δ, the weight of private evidence in a belief | (0, 1) |
/// | `window` | 50 | M, steps in the running means | ≥ 1 |
/// | `learning_rate` | 0.1 | μ | > 0 |
/// | `batch` | 1 | W, steps averaged into one update | ≥ 1 |
/// | `sparsity` | 0 | α, soft threshold μα after each update | ≥ 0 |
/// | `passes` | 1 | passes over the data | ≥ 1 |
/// | `constraint` | free | constraint on the columns | |
/// | `support` | none | for each listener the speakers it may hear; itself is always allowed | N lists |
/// | `evidence` | none | L̄ where it is known; the regressors are then not centred | N × H |
/// | `initial` | none | the first weights, column by column; equal weights when not given | N² numbers |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GslParams {
    /// δ.
    pub adaptation: f64,
    /// M.
    pub window: usize,
    /// μ.
    pub learning_rate: f64,
    /// W.
    pub batch: usize,
    /// α.
    pub sparsity: f64,
    /// Passes over the panel.
    pub passes: usize,
    /// Constraint on the columns.
    pub constraint: Constraint,
    /// For each listener the speakers it may hear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support: Option<Vec<Vec<usize>>>,
    /// L̄, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The first weights, column by column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Vec<f64>>,
}

impl Default for GslParams {
    fn default() -> Self {
        GslParams {
            adaptation: 0.05,
            window: 50,
            learning_rate: 0.1,
            batch: 1,
            sparsity: 0.0,
            passes: 1,
            constraint: Constraint::Free,
            support: None,
            evidence: None,
            initial: None,
        }
    }
}

impl GslParams {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), Error> {
        model::check_adaptation(self.adaptation)?;
        require((1..=LONGEST).contains(&self.window), "window", self.window, "between 1 and 10⁹")?;
        let rate = self.learning_rate;
        require(rate > 0.0 && rate.is_finite(), "learning-rate", rate, "a positive number")?;
        require((1..=LONGEST).contains(&self.batch), "batch", self.batch, "between 1 and 10⁹")?;
        require(self.sparsity >= 0.0 && self.sparsity.is_finite(), "sparsity", self.sparsity, "zero or more")?;
        require(self.passes >= 1, "passes", self.passes, "at least 1")
    }

    /// Frames needed for the first update.
    pub fn needed(&self) -> usize {
        self.window + 1 + self.batch
    }
}

/// Largest window and batch accepted.
const LONGEST: usize = 1_000_000_000;
