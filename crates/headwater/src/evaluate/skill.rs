//! Forecast skill: how much better a method forecasts steps it has not seen than simple baselines do.

pub use crate::learn::forecast::{Forecast, forecast, skill};

use crate::learn::forecast::unless_stopped;
use crate::learn::gsl::{self, Gsl};
use crate::learn::{Method, Refit, posterior, state_space, whitened};
use crate::model::Skill;
use crate::{Error, Panel, progress};

/// Skill on the last fifth of a panel, by a fit with these parameters that has seen only the rest.
///
/// None where there are too few steps to hold some out, or nothing changes in them. A tracked model is measured by its own
/// forecasts on the way instead ([`crate::learn::track::Tracker::forecast`]); for methods that cannot be refitted see
/// [`crate::learn::refit_note`].
pub fn measured(panel: &Panel, method: &Method) -> Result<Option<Skill>, Error> {
    // Rounds of two fits at most, where there are rounds.
    let rounds = match method {
        Method::StateSpace(params) => 2 * params.rounds as u64,
        _ => 0,
    };
    let stage = progress::stage("forecasting held-out steps", rounds);
    if let Method::Gsl(params) = method {
        let learner = Gsl::new(panel.roster().clone(), params.clone())?;
        let forecast = unless_stopped(gsl::held_out(panel, learner))?;
        return Ok(forecast.and_then(|forecast| skill(panel, &forecast)));
    }
    match Refit::from_method(method) {
        Refit::Whitened(params) => {
            let panel = crate::learn::without_gaps(panel);
            let forecast = unless_stopped(whitened::held_out(&panel, &params))?;
            Ok(forecast.and_then(|forecast| skill(&panel, &forecast)))
        }
        Refit::StateSpace(params) if posterior::is_large(panel, &params) => posterior::forecast_skill(panel, &params),
        Refit::StateSpace(params) => match state_space::skill_observed(panel, &params, &|| stage.advance()) {
            Err(Error::NotReady { .. }) => Ok(None),
            other => other,
        },
    }
}
