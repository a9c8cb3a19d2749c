//! Bootstrap of the state-space model: fits to resampled blocks of smoothed beliefs.

use super::parameters::Parameters;
use super::{StateSpaceLearner, StateSpaceParams};
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
    borders: Vec<usize>,
}

/// Rounds of a fit to resampled posts, which starts from the fit to all posts.
const REFIT_ROUNDS: usize = 30;

impl Resampling {
    /// Smooths the panel of a model by that model, and divides it into blocks.
    pub(crate) fn new(panel: &Panel, model: &Model, params: &StateSpaceParams, count: usize) -> Result<Self, Error> {
        let mut learner = StateSpaceLearner::new(panel, params)?;
        learner.state.take(model, params, &learner.distinct);
        let (_, smoothed) = learner.smoothed(count)?;
        let borders = super::learner::borders(panel.steps(), count);
        let StateSpaceLearner { distinct, state, params, .. } = learner;
        Ok(Resampling { params, distinct, state, stretches: smoothed.stretches, borders })
    }

    /// The network fitted to the posts of these blocks, smoothed again. Slow, but it includes the variance of the smoothed
    /// beliefs.
    pub(crate) fn refit(&self, panel: &Panel, numbers: &[usize]) -> Result<Estimate, Error> {
        let stretches: Vec<_> =
            numbers.iter().map(|&number| self.borders[number] - 1..self.borders[number + 1] - 1).collect();
        let panel = panel.joined(&stretches)?;
        let mut learner =
            StateSpaceLearner::new(&panel, &StateSpaceParams { rounds: REFIT_ROUNDS, ..self.params.clone() })?;
        let fresh = std::mem::replace(&mut learner.state, self.state.clone()).dynamics.trend_loading;
        if let (Some(trend_loading), Some(fresh)) = (&mut learner.state.dynamics.trend_loading, fresh) {
            trend_loading.trend = fresh.trend;
        }
        learner.distinct = self.distinct.clone();
        learner.run()?;
        learner.state.estimate(&self.params, &self.distinct)
    }

    pub(crate) fn len(&self) -> usize {
        self.stretches.len()
    }

    /// The network fitted to these blocks, each as often as it is listed.
    pub(crate) fn draw(&self, numbers: &[usize]) -> Result<Estimate, Error> {
        let (agents, ratios) = (self.state.dynamics.agents, self.state.dynamics.ratios);
        let mut moments = Moments::empty(agents, ratios);
        for &number in numbers {
            moments.merge(&self.stretches[number])?;
        }
        let mut state = self.state.clone();
        let design =
            Regressors::from_moments(&moments, &self.distinct, self.params.support.as_deref(), (0..agents).collect());
        state.listen(&design, &self.params, &self.distinct);
        state.estimate(&self.params, &self.distinct)
    }
}
