//! The posterior of the state-space model.
//!
//! - [`trajectory`] solves for the mean of all hidden beliefs and draws from their posterior without forming a covariance.
//! - `strengths` samples the posterior of speaker strengths with the hidden beliefs integrated out: `marginal` is the
//!   exact likelihood with its gradient, `attention` the weights made of strengths, `target` adds the priors, `standard`
//!   has the variables in which the chains move, and `sampler` moves them.
//! - `edges` samples the posterior of sparse edges of up to 60 agents.

pub(crate) mod arrow;
pub(crate) mod attention;
pub(crate) mod axes;
pub mod diagnostics;
mod draws;
pub(crate) mod edges;
pub(crate) mod filter;
pub(crate) mod lanes;
pub(crate) mod large;
pub(crate) mod marginal;
pub(crate) mod sampler;
pub(crate) mod score;
pub(crate) mod standard;
pub(crate) mod strengths;
pub(crate) mod target;
pub mod trajectory;

pub(crate) use edges::take_minutes as edges_take_minutes;
pub(crate) use strengths::{forecast_skill, is_large, learn};

use crate::error::require;
use crate::learn::state_space::StateSpaceParams;
use crate::{Error, Model, Panel};
use serde::{Deserialize, Serialize};

/// Name of the progress stage in which the chains run.
pub const SAMPLING: &str = "sampling the posterior";

/// How the posterior is sampled.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `draws` | 1000 | of each chain after its warm-up, at most; sampling ends earlier when the chains have converged | ≥ 20 |
/// | `chains` | 16 | chains, rounded up to a multiple of eight; edges take a quarter as many, at least four | 2 to 1024 |
/// | `seed` | 21 | of all chains | |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table above says it once")]
pub struct SamplingParams {
    pub draws: usize,
    pub chains: usize,
    pub seed: u64,
}

impl Default for SamplingParams {
    fn default() -> Self {
        SamplingParams { draws: 1000, chains: 16, seed: 21 }
    }
}

impl SamplingParams {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), Error> {
        require((20..=1_000_000).contains(&self.draws), "draws", self.draws, "20 to 1000000")?;
        require((2..=1024).contains(&self.chains), "chains", self.chains, "2 to 1024")
    }
}

/// Samples the posterior of a state-space model of these parameters, where that is possible: speaker strengths on a graph, or
/// sparse edges of up to 60 agents and two hypotheses; no common trend, and not too many posts. The estimates of the model
/// become posterior means, and [`crate::model::Diagnostics`] get the draws. Otherwise the model stays as it is.
///
/// Sampling ends when the chains have converged, when they have made all draws, or when
/// [`finish_early`](crate::progress::Progress::finish_early) is called. Cost of strengths: about N² operations for each
/// observation, chain and step of the integrator; some hundred steps. Of edges: about the sum of the squared numbers of
/// speakers of all listeners for each step, chain and sweep; one or two thousand sweeps.
pub fn sample(panel: &Panel, params: &StateSpaceParams, model: &mut Model) -> Result<(), Error> {
    match &params.sampling {
        Some(sampling) if strengths::applies(panel, params) => {
            strengths::sample(panel, params, sampling, model)?.apply(model)
        }
        Some(sampling) if edges::applies(panel, params) => edges::sample(panel, params, sampling)?.apply(model),
        _ => Ok(()),
    }
}
