//! The model: what was learned, by which method, and what is known of its accuracy.
//!
//! In: the estimates of a learner. Out: a [`Model`], from which [`influence`](crate::influence()) is computed.

mod diagnostics;
mod evidence;
mod history;
mod innovation;
pub(crate) mod posterior;
mod true_hypothesis;

pub use diagnostics::{
    ColumnDiagnostics, Common, Diagnostics, EpisodeEvidence, Skill, Smoothing, Status, WeightKind, WeightsSelection,
};
pub use evidence::Evidence;
pub use history::{ChangeKind, DetectedChange, NetworkSnapshot, Track};
pub use innovation::{Innovation, innovation};
pub use posterior::{EdgeInterval, Posterior, PosteriorDraw};
pub use true_hypothesis::{TrueHypothesis, agreement, likeliest, settled};

use crate::learn::Method;
use crate::{Combination, Error, Panel, Roster};
use serde::{Deserialize, Serialize};

/// A learned, simulated or given network.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// Names.
    pub roster: Roster,
    /// A as learned.
    pub combination: Combination,
    /// L̄ or its estimate.
    pub evidence: Evidence,
    /// δ.
    pub adaptation: f64,
    /// How it was learned.
    pub method: Method,
    /// θ*, where it was estimated from the beliefs or is known.
    pub truth: Option<TrueHypothesis>,
    /// Covariance of the private log-likelihood ratios.
    pub innovation: Option<Innovation>,
    /// Private observation models, one per agent.
    pub likelihoods: Option<Vec<Likelihood>>,
    /// How it came about, and how well it is known.
    pub diagnostics: Diagnostics,
    /// Changes and snapshots, where the network was tracked.
    pub track: Track,
}

impl Model {
    /// A model with these estimates, of which nothing else is known; set the other fields as needed.
    ///
    /// ```
    /// use headwater::{Combination, Evidence, Method, Model, Roster};
    /// let combination = Combination::from_columns(vec![1.0, 0.0, 0.5, 0.5], 2)?;
    /// let evidence = Evidence::from_rows(vec![0.2, 0.1], 2, 1)?;
    /// let model = Model::new(Roster::numbered(2, 2)?, combination, evidence, 0.1, Method::Given);
    /// assert_eq!(headwater::influence(&model)?.ranking(), [0, 1]);
    /// # Ok::<(), headwater::Error>(())
    /// ```
    pub fn new(roster: Roster, combination: Combination, evidence: Evidence, adaptation: f64, method: Method) -> Self {
        Model {
            roster,
            combination,
            evidence,
            adaptation,
            method,
            truth: None,
            innovation: None,
            likelihoods: None,
            diagnostics: Diagnostics::default(),
            track: Track::default(),
        }
    }

    /// The beliefs of this model's agents in its order, where a panel has others beside them: a network on a graph is learned
    /// without agents outside the graph. `None` where there are no others, or agents of the model are missing.
    ///
    /// # Errors
    /// Those of [`Panel::among`].
    pub fn beliefs_among(&self, panel: &Panel) -> Result<Option<Panel>, Error> {
        let agents: Option<Vec<usize>> =
            self.roster.agents().iter().map(|name| panel.roster().agent(name).ok()).collect();
        agents.filter(|agents| agents.len() < panel.agents()).map(|agents| panel.among(&agents)).transpose()
    }
}

/// A private observation model, where known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Likelihood {
    /// A finite alphabet: probability of each symbol under each hypothesis, symbols × hypotheses.
    Discrete {
        /// One row per symbol.
        probabilities: Vec<Vec<f64>>,
    },
    /// Gaussian observations of unit variance: mean under each hypothesis, dimension × hypotheses.
    Gaussian {
        /// One row per dimension.
        means: Vec<Vec<f64>>,
    },
    /// Not identified.
    Unknown,
}

/// The smallest δ: below it, 1 − δ has few digits of δ left, or is 1, and sums over (1 − δ)^t do not end.
pub const SMALLEST_ADAPTATION: f64 = 1e-12;

/// Checks that δ is between [`SMALLEST_ADAPTATION`] and 1.
pub fn check_adaptation(adaptation: f64) -> Result<(), Error> {
    crate::error::require(
        (SMALLEST_ADAPTATION..1.0).contains(&adaptation),
        "adaptation",
        adaptation,
        "a number of at least 1e-12 and below 1",
    )
}
