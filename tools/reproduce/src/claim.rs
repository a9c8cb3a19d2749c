//! Claims of the paper, and what was found.

use serde::{Deserialize, Serialize};

/// How far a claim of the paper was reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ClaimStatus {
    Reproduced,
    PartlyReproduced,
    NotReproduced,
    /// Not a claim of the paper.
    NotClaimed,
}

impl ClaimStatus {
    pub(crate) fn when(reproduced: bool) -> Self {
        if reproduced { ClaimStatus::Reproduced } else { ClaimStatus::NotReproduced }
    }
}

impl std::fmt::Display for ClaimStatus {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            ClaimStatus::Reproduced => "reproduced",
            ClaimStatus::PartlyReproduced => "partly reproduced",
            ClaimStatus::NotReproduced => "not reproduced",
            ClaimStatus::NotClaimed => "not claimed in the paper",
        })
    }
}

/// A claim of the paper, and what was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PaperClaim {
    /// What the paper claims.
    pub claim: String,
    /// What the authors' files contain.
    pub authors: String,
    /// What the paper's formula gives.
    pub formula: String,
    /// What the authors' released code gives.
    pub released: String,
    /// What our learner gives.
    pub ours: String,
    /// Whether it was reproduced.
    pub status: ClaimStatus,
    /// How it was compared, and reasons for a difference.
    pub explanation: String,
}

/// Where there is nothing to compare.
pub(crate) const NONE: &str = "–";

impl PaperClaim {
    /// A claim without anything beside it yet.
    pub(crate) fn new(claim: &str, status: ClaimStatus) -> Self {
        let none = || NONE.to_owned();
        PaperClaim {
            claim: claim.to_owned(),
            authors: none(),
            formula: none(),
            released: none(),
            ours: none(),
            status,
            explanation: String::new(),
        }
    }
}
