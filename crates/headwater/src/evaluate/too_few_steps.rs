//! What a panel has too few time steps for.

use crate::Error;
use crate::words::count;
use serde::{Deserialize, Serialize};

/// A computation was not possible, because there are too few time steps for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TooFewSteps {
    /// Time steps there are; of the permutation test those from which its forecasts are learned.
    pub seen: usize,
    /// Time steps that are needed.
    pub needed: usize,
}

impl TooFewSteps {
    /// Tells [`Error::NotReady`] from other errors.
    pub fn told_apart<T>(found: Result<T, Error>) -> Result<Result<T, TooFewSteps>, Error> {
        match found {
            Err(Error::NotReady { seen, needed }) => Ok(Err(TooFewSteps { seen, needed })),
            other => Ok(Ok(other?)),
        }
    }

    /// Why there are no bootstrap intervals.
    pub fn without_intervals(&self) -> String {
        format!(
            "no intervals: resampling needs at least {} time steps, and there are {}",
            self.needed,
            count(self.seen, "step")
        )
    }

    /// Why there is no permutation test.
    pub fn without_shifts(&self) -> String {
        format!("no permutation test: {}", self.of_shifts())
    }

    pub(super) fn of_shifts(&self) -> String {
        format!(
            "there are too few time steps; its forecasts are learned from {} of them, and need at least {}",
            self.seen, self.needed
        )
    }
}
