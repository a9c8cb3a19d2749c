//! The state-space learner, for noisy beliefs with gaps, such as posts.
//!
//! In: a panel with silence and post counts. Out: a model, with δ and the noise of a post estimated beside the network.
//!
//! Repeating the last value of a silent account would overstate its persistence. Here silence is a missing observation:
//! beliefs Λ_i = (1−δ)AᵀΛ_{i−1} + δ(L̄ + w_i) are latent, the mean of c posts observes them with noise of variance σ²/c,
//! and expectation-maximisation alternates between the beliefs (a Kalman smoother) and the network (the constrained
//! regression of the whitened learner on expected moments). Every round raises the likelihood.
//!
//! Legend: B = (1−δ)A, d = δL̄, Q_k the covariance of δw for agent k, Ω the noise of a post; G_k, c_k as in the fit.

mod held_out;
mod learner;
mod parameters;
mod resampling;
mod summary;

pub use held_out::{WeightsChoice, choose, skill};
pub(crate) use held_out::{choose_observed, held_out, skill_observed, skill_of};
pub use learner::{Round, StateSpaceLearner};
pub(crate) use parameters::inverted;
pub(crate) use resampling::Resampling;
pub(crate) use summary::SeriesSummary;

use super::gsl::Constraint;
use super::posterior::SamplingParams;
use super::whitened;
use crate::error::require;
use crate::model::{self, WeightKind};
use crate::{Error, Model, Panel};
use serde::{Deserialize, Serialize};

/// Parameters of [`state_space`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `adaptation` | none | δ; estimated when not given | (0, 1) |
/// | `constraint` | simplex | constraint on a listener's weights | |
/// | `weights` | none | one weight per edge, or one strength per speaker; when not given [`fit`](crate::fit()) chooses by the predictive density of held-out steps where there is a support, and the learner itself takes edges | |
/// | `ridge` | 0 | added to every G_k, relative to its mean diagonal | ≥ 0 |
/// | `shrinkage` | 500 | of a weight towards the mean weight of the same speaker: 1/variance, per speaker of the listener | ≥ 0 |
/// | `rounds` | 200 | of expectation-maximisation, at most | ≥ 1 |
/// | `tolerance` | 2e-6 | stop when a round gains less log-likelihood than this per belief | ≥ 0 |
/// | `support` | none | for each listener the speakers it may hear; itself is always allowed | N lists |
/// | `common` | none | the group of each agent, whose lagged mean is controlled for | N numbers below N |
/// | `sampling` | default | how [`fit`](crate::fit()) samples the posterior; none for expectation-maximisation alone | |
/// | `sketch` | false | whether [`fit`](crate::fit()) ends with a short search for the maximum of an approximate posterior of speaker strengths, for very large graphs: no intervals and no forecast skill | with a support |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table above says it once")]
pub struct StateSpaceParams {
    pub adaptation: Option<f64>,
    pub constraint: Constraint,
    pub weights: Option<WeightKind>,
    pub ridge: f64,
    pub shrinkage: f64,
    pub rounds: usize,
    #[serde(with = "crate::learn::method::infinite")]
    pub tolerance: f64,
    pub support: Option<Vec<Vec<usize>>>,
    pub common: Option<Vec<usize>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingParams>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sketch: bool,
}

impl Default for StateSpaceParams {
    fn default() -> Self {
        StateSpaceParams {
            adaptation: None,
            constraint: Constraint::Simplex,
            weights: None,
            ridge: 0.0,
            shrinkage: 500.0,
            rounds: 200,
            tolerance: 2e-6,
            support: None,
            common: None,
            sampling: Some(SamplingParams::default()),
            sketch: false,
        }
    }
}

impl StateSpaceParams {
    /// Parameterisation of the weights; edges by default.
    pub(crate) fn kind(&self) -> WeightKind {
        self.weights.unwrap_or_default()
    }

    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(adaptation) = self.adaptation {
            model::check_adaptation(adaptation)?;
        }
        require(self.ridge >= 0.0 && self.ridge.is_finite(), "ridge", self.ridge, "zero or more")?;
        let shrinkage = self.shrinkage;
        require(shrinkage >= 0.0 && shrinkage.is_finite(), "shrinkage", shrinkage, "zero or more")?;
        require(self.rounds >= 1, "rounds", self.rounds, "at least 1")?;
        require(self.tolerance >= 0.0, "tolerance", self.tolerance, "zero or more")?;
        if let Some(sampling) = &self.sampling {
            sampling.check()?;
        }
        let graph = self.weights != Some(WeightKind::Strengths) || self.support.is_some();
        require(graph, "weights", "strengths", "edges unless there is a graph of who may listen to whom")?;
        require(!self.sketch || self.support.is_some(), "sketch", true, "false unless there is a graph")?;
        let strengths = !self.sketch || self.weights != Some(WeightKind::Edges);
        require(strengths, "weights", "edges", "strengths with a sketch")?;
        let simplex = self.weights != Some(WeightKind::Strengths) || self.constraint == Constraint::Simplex;
        require(simplex, "constraint", "free", "simplex with strengths, which are shares by nature")
    }
}

/// Smallest number of steps.
const FEWEST_STEPS: usize = 10;

pub(crate) fn check(panel: &Panel, steps: usize, params: &StateSpaceParams) -> Result<(), Error> {
    params.check()?;
    whitened::check_support(panel.agents(), params.support.as_deref())?;
    if let Some(groups) = &params.common {
        let sound = groups.len() == panel.agents() && groups.iter().all(|group| *group < panel.agents());
        require(sound, "common", format!("{} groups", groups.len()), "one number below N for each of the N agents")?;
    }
    if steps < FEWEST_STEPS {
        return Err(Error::NotReady { seen: steps, needed: FEWEST_STEPS });
    }
    Ok(())
}

/// Estimates a network from beliefs with silence and noise: [`StateSpaceLearner`] run to its end.
///
/// Errors: fewer than ten steps, all agents constant, parameters out of range, more covariances than memory holds.
pub fn state_space(panel: &Panel, params: &StateSpaceParams) -> Result<Model, Error> {
    let mut learner = StateSpaceLearner::new(panel, params)?;
    learner.run()?;
    learner.model()
}
