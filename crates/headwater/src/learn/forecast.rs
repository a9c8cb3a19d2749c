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
    /// Steps at the beginning of each episode that cannot be forecast.
    #[serde(default)]
    pub lead: usize,
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
/// Λ_i ≈ (1−δ)AᵀΛ_{i−1} + δL̂, with L̂ of the episode where episodes have evidence of their own.
pub fn forecast(panel: &Panel, from: usize, model: &Model) -> Result<Forecast, Error> {
    if from == 0 || from >= panel.steps() {
        return Err(Error::NotReady { seen: panel.steps(), needed: from.max(1) + 1 });
    }
    let steps: Vec<usize> = (from..panel.steps()).filter(|step| !panel.episodes().begins(*step)).collect();
    forecast_steps(panel, &steps, model)
}

/// The same of these steps, each of which follows another one of its episode.
pub(crate) fn forecast_steps(panel: &Panel, steps: &[usize], model: &Model) -> Result<Forecast, Error> {
    let (agents, ratios, episodes) = (panel.agents(), panel.ratios(), panel.episodes());
    let Some(&from) = steps.first() else {
        return Err(Error::NotReady { seen: panel.steps(), needed: panel.steps() + 1 });
    };
    let mut forecast = Forecast { from, steps: steps.len(), ..Forecast::default() };
    let mut heard = vec![0.0; agents];
    let own = |episode: usize| {
        let known = model.diagnostics.episodes.as_ref().filter(|_| episodes.have_own_levels())?;
        known.iter().find(|known| known.episode == episodes.label(episode))
    };
    let own: Vec<_> = (0..episodes.count()).map(own).collect();
    for ratio in 0..ratios {
        let mean = model.evidence.ratio(ratio);
        let evidence: Vec<Vec<f64>> = own
            .iter()
            .map(|own| own.map_or_else(|| mean.clone(), |own| own.evidence.iter().map(|row| row[ratio]).collect()))
            .collect();
        let line = |step: usize| &panel.cells()[(step * ratios + ratio) * agents..(step * ratios + ratio + 1) * agents];
        for &step in steps {
            let (before, now, evidence) = (line(step - 1), line(step), &evidence[episodes.at(step)]);
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
    let (episodes, held_out) = (panel.episodes(), panel.held_out_steps());
    let (seen, scored) = if episodes.is_single() {
        let from = end.checked_sub(forecast.steps)?;
        (vec![from], (from..end).collect())
    } else {
        let late = |step: &usize| step - episodes.range(episodes.at(*step)).start > forecast.lead;
        (held_out.seen, held_out.scored.into_iter().filter(late).collect::<Vec<usize>>())
    };
    let own_past = own_past_error(panel, &seen, &scored)?;
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

/// Summed squared error over these steps, when each log-ratio of each agent is forecast by its own AR(1) with intercept,
/// fitted to the first steps of each episode, so many as `seen`. Episodes share the slope, and where they have no levels of
/// their own also the intercept.
fn own_past_error(panel: &Panel, seen: &[usize], scored: &[usize]) -> Option<f64> {
    let episodes = panel.episodes();
    let transitions: usize = seen.iter().map(|seen| seen.saturating_sub(1)).sum();
    if transitions < 2 {
        return None;
    }
    let width = panel.agents() * panel.ratios();
    let cells = panel.cells();
    let known = || {
        let of = |(number, range): (usize, Range<usize>)| {
            (range.start + 1..range.start + seen[number].max(1)).map(move |step| (episodes.level(number), step))
        };
        episodes.ranges().enumerate().flat_map(of)
    };
    let mut pairs = vec![0.0; episodes.level_count()];
    known().for_each(|(level, _)| pairs[level] += 1.0);
    let mut means = vec![[0.0; 2]; width * pairs.len()];
    for (level, step) in known() {
        for cell in 0..width {
            means[level * width + cell][0] += cells[(step - 1) * width + cell] / pairs[level];
            means[level * width + cell][1] += cells[step * width + cell] / pairs[level];
        }
    }
    let mut products = vec![[0.0; 2]; width];
    for (level, step) in known() {
        for cell in 0..width {
            let x = cells[(step - 1) * width + cell] - means[level * width + cell][0];
            let y = cells[step * width + cell] - means[level * width + cell][1];
            products[cell][0] += x * x;
            products[cell][1] += x * y;
        }
    }
    let mut error = 0.0;
    for &step in scored {
        let level = episodes.level(episodes.at(step));
        for cell in 0..width {
            let [square, product] = products[cell];
            let [mean_x, mean_y] = means[level * width + cell];
            let slope = if square > 0.0 { product / square } else { 0.0 };
            let forecast = mean_y + slope * (cells[(step - 1) * width + cell] - mean_x);
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
        let forecast = Forecast { from: 10, end: 20, steps: 10, error: 5.0, persistence: 40.0, lead: 0 };
        let skill = skill(&panel, &forecast).unwrap();
        assert_eq!(skill.against_persistence, 0.875);
        assert!((skill.against_own_past - 0.5).abs() < 1e-12, "{skill:?}");
        assert_eq!(super::skill(&panel, &Forecast::default()), None);
    }
}
