//! Bootstrap of the state-space model: fits to resampled blocks of smoothed beliefs.

use super::parameters::Parameters;
use super::{StateSpaceLearner, StateSpaceParams};
use crate::learn::blocks::{Blocks, Centre};
use crate::learn::moments::Moments;
use crate::learn::regressors::{DistinctAgents, Regressors};
use crate::learn::whitened::Estimate;
use crate::{Error, Model, Panel};

/// Moments of the smoothed beliefs, block by block, for fits to blocks drawn at random.
#[derive(Debug)]
pub(crate) struct Resampling {
    params: StateSpaceParams,
    distinct: DistinctAgents,
    state: Parameters,
    stretches: Vec<Moments>,
    blocks: Blocks,
    centre: Centre,
}

/// Rounds of a fit to resampled posts, which starts from the fit to all posts.
const REFIT_ROUNDS: usize = 30;

impl Resampling {
    /// Smooths the panel of a model by that model, and divides it into blocks.
    pub(crate) fn new(panel: &Panel, model: &Model, params: &StateSpaceParams, blocks: Blocks) -> Result<Self, Error> {
        let mut learner = StateSpaceLearner::new(panel, params)?;
        learner.state.take(panel, model, params, &learner.distinct);
        let (_, smoothed) = learner.smoothed(&blocks)?;
        let StateSpaceLearner { distinct, state, params, .. } = learner;
        let centre = if panel.episodes().have_own_levels() { Centre::Episode } else { Centre::Shared };
        Ok(Resampling { params, distinct, state, stretches: smoothed.stretches, blocks, centre })
    }

    /// The network fitted to the posts of these blocks, smoothed again. Slow, but it includes the variance of the smoothed
    /// beliefs.
    pub(crate) fn refit(&self, panel: &Panel, numbers: &[usize]) -> Result<Estimate, Error> {
        let panel = panel.joined(&self.blocks.frames(numbers))?;
        let mut learner =
            StateSpaceLearner::new(&panel, &StateSpaceParams { rounds: REFIT_ROUNDS, ..self.params.clone() })?;
        let mut state = self.state.clone();
        let own = self.centre == Centre::Episode && self.blocks.are_episodes();
        state.move_to(&learner.state, own.then_some(numbers));
        learner.state = state;
        learner.distinct = self.distinct.clone();
        learner.run()?;
        learner.state.estimate(&self.params, &self.distinct)
    }

    pub(crate) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// The network fitted to these blocks, each as often as it is listed.
    pub(crate) fn draw(&self, numbers: &[usize]) -> Result<Estimate, Error> {
        let agents = self.state.dynamics.agents;
        let moments = self.blocks.sum(&self.stretches, numbers, self.centre)?;
        let mut state = self.state.clone();
        state.average_levels();
        let design =
            Regressors::from_moments(&moments, &self.distinct, self.params.support.as_deref(), (0..agents).collect());
        state.listen(&design, &[], &self.params, &self.distinct);
        state.estimate(&self.params, &self.distinct)
    }
}
