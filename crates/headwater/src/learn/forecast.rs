//! One-step forecasts of frames a learner has not seen, and their skill against two baselines.
//!
//! In: a panel, and a model or the forecasts of a learner along the way. Out: a [`Forecast`] and its [`Skill`].

use crate::model::Skill;
use crate::{Error, Model, Panel};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Squared one-step errors on unseen frames, summed over agents and log-ratios.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Forecast {
    /// The first frame forecast.
    pub from: usize,
    /// One past the last frame forecast; 0 stands for the end of the panel.
    #[serde(default)]
    pub end: usize,
    /// Number of frames forecast.
    pub steps: usize,
    /// Summed squared error of the model.
    pub error: f64,
    /// The same for forecasting no change.
    pub persistence: f64,
}

impl Forecast {
    /// Adds the forecasts of a later stretch.
    pub fn add(&mut self, later: &Forecast) {
        self.steps += later.steps;
        self.end = self.end.max(later.end);
        self.error += later.error;
        self.persistence += later.persistence;
    }
}

/// `None` for a forecast that cannot be made, such as with too few steps; only a request to stop stays an error.
pub(crate) fn unless_stopped<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Err(Error::Stopped) => Err(Error::Stopped),
        other => Ok(other.ok()),
    }
}

/// Forecasts of the frames from `from` on by a model that has not seen them:
/// Λ_i ≈ (1−δ)AᵀΛ_{i−1} + δL̂.
pub fn forecast(panel: &Panel, from: usize, model: &Model) -> Result<Forecast, Error> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    if from == 0 || from >= panel.steps() {
        return Err(Error::NotReady { seen: panel.steps(), needed: from.max(1) + 1 });
    }
    let mut forecast = Forecast { from, steps: panel.steps() - from, ..Forecast::default() };
    let mut heard = vec![0.0; agents];
    for ratio in 0..ratios {
        let evidence = model.evidence.ratio(ratio);
        let line = |step: usize| &panel.cells()[(step * ratios + ratio) * agents..(step * ratios + ratio + 1) * agents];
        for step in from..panel.steps() {
            let (before, now) = (line(step - 1), line(step));
            model.combination.hear_into(before, &mut heard);
            for agent in 0..agents {
                let expected = (1.0 - model.adaptation) * heard[agent] + model.adaptation * evidence[agent];
                forecast.error += (now[agent] - expected).powi(2);
                forecast.persistence += (now[agent] - before[agent]).powi(2);
            }
        }
    }
    Ok(forecast)
}

/// Skill of a forecast of the last frames of a panel. `None` when nothing was forecast or nothing changed.
pub fn skill(panel: &Panel, forecast: &Forecast) -> Option<Skill> {
    let end = if forecast.end == 0 { panel.steps() } else { forecast.end };
    let own_past = own_past_error(panel, end.checked_sub(forecast.steps)?..end)?;
    if forecast.steps == 0 || forecast.persistence <= 0.0 || own_past <= 0.0 {
        return None;
    }
    Some(Skill {
        against_persistence: 1.0 - forecast.error / forecast.persistence,
        against_own_past: 1.0 - forecast.error / own_past,
        beyond_common: None,
        steps: forecast.steps,
    })
}

/// Summed squared error over these frames, when each log-ratio of each agent is forecast by its own AR(1) with
/// intercept, fitted to the frames before.
fn own_past_error(panel: &Panel, steps: Range<usize>) -> Option<f64> {
    let from = steps.start;
    if from < 3 {
        return None;
    }
    let width = panel.agents() * panel.ratios();
    let cells = panel.cells();
    let mut means = vec![[0.0; 2]; width];
    let pairs = (from - 1) as f64;
    for step in 1..from {
        for cell in 0..width {
            means[cell][0] += cells[(step - 1) * width + cell] / pairs;
            means[cell][1] += cells[step * width + cell] / pairs;
        }
    }
    let mut products = vec![[0.0; 2]; width];
    for step in 1..from {
        for cell in 0..width {
            let x = cells[(step - 1) * width + cell] - means[cell][0];
            let y = cells[step * width + cell] - means[cell][1];
            products[cell][0] += x * x;
            products[cell][1] += x * y;
        }
    }
    let mut error = 0.0;
    for step in steps {
        for cell in 0..width {
            let [square, product] = products[cell];
            let slope = if square > 0.0 { product / square } else { 0.0 };
            let forecast = means[cell][1] + slope * (cells[(step - 1) * width + cell] - means[cell][0]);
            error += (cells[step * width + cell] - forecast).powi(2);
        }
    }
    Some(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roster;

    #[test]
    fn skill_by_hand() {
        // Agent 0 alternates 1, −1: its own AR(1) is perfect. Agent 1 is silent until it jumps to 1 at step 10, which
        // its own flat past misses by 1 ten times over.
        let cells: Vec<f64> =
            (0..20).flat_map(|step| [if step % 2 == 0 { 1.0 } else { -1.0 }, f64::from(step >= 10)]).collect();
        let panel = Panel::complete(Roster::numbered(2, 2).unwrap(), cells).unwrap();
        let forecast = Forecast { from: 10, end: 20, steps: 10, error: 5.0, persistence: 40.0 };
        let skill = skill(&panel, &forecast).unwrap();
        assert_eq!(skill.against_persistence, 0.875);
        assert!((skill.against_own_past - 0.5).abs() < 1e-12, "{skill:?}");
        assert_eq!(super::skill(&panel, &Forecast::default()), None);
    }
}
