//! Permutation tests: how a panel compares with circular shifts of itself.
//!
//! In: a panel and a method, or a model. Out: [`ShiftDraw`]s by number, and the p-values of [`Significance`].

use super::draws::{draw_many, numbered};
use crate::learn::forecast::{skill, unless_stopped};
use crate::learn::moments::{Moments, affordable};
use crate::learn::regressors::DistinctAgents;
use crate::learn::state_space::{self, StateSpaceParams};
use crate::learn::whitened::{self, WhitenedParams};
use crate::learn::{Method, Refit};
use crate::model::Skill;
use crate::{Combination, Error, Model, Panel};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A permutation test by circular shifts: every agent's series is shifted by its own random offset, which keeps each
/// series as it is and removes every dependence between agents.
///
/// The observed panel and the shifted ones are fitted alike, with the recorded parameters of the method except that
/// symbols are not searched for and the state-space fit gets ten rounds.
#[derive(Debug)]
pub struct CircularShifts<'a> {
    panel: Cow<'a, Panel>,
    refit: Refit,
    seed: u64,
}

/// Rounds that the observed and the shifted panels get alike from the same start; more cost time and change no verdict.
const NULL_ROUNDS: usize = 10;

/// The statistics of one fit: the weight others give each agent, each edge, and the forecast skill. A function of its
/// number and the seed, so that draws can be saved as they come and continued later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShiftDraw {
    agents: Vec<f64>,
    edges: Vec<f64>,
    skill: Option<f64>,
}

/// P-values of a permutation test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Significance {
    /// Of the weight others give each agent.
    pub agents: Vec<f64>,
    /// Of each weight, column by column; one on the diagonal.
    pub edges: Vec<f64>,
    /// Of the forecast skill against each agent's own past, where it was measured.
    pub skill: Option<f64>,
    /// Circular shifts compared with.
    #[serde(alias = "rotations")]
    pub shifts: usize,
}

impl Significance {
    /// P-values of the agents, of the weights column by column, and of the skill, from this many shifts.
    pub fn new(agents: Vec<f64>, edges: Vec<f64>, skill: Option<f64>, shifts: usize) -> Self {
        Significance { agents, edges, skill, shifts }
    }
}

impl<'a> CircularShifts<'a> {
    /// Prepares shifts of a panel, to be fitted by a method; see [`crate::learn::refit_note`] for those that cannot be.
    pub fn new(panel: &'a Panel, method: &Method, seed: u64) -> Self {
        CircularShifts::from_refit(panel, Refit::from_method(method), seed)
    }

    /// The same for a model learned from this panel: with its recorded method and, where its parameters are unknown, its
    /// own edges as support.
    pub fn for_model(panel: &'a Panel, model: &Model, seed: u64) -> Self {
        CircularShifts::from_refit(panel, Refit::from_model(model), seed)
    }

    fn from_refit(panel: &'a Panel, refit: Refit, seed: u64) -> Self {
        let panel = refit.filled(panel);
        let refit = match refit {
            Refit::Whitened(params) => Refit::Whitened(WhitenedParams { symbols: false, ..params }),
            Refit::StateSpace(params) => {
                Refit::StateSpace(StateSpaceParams { rounds: NULL_ROUNDS, tolerance: 0.0, ..params })
            }
        };
        CircularShifts { panel, refit, seed }
    }

    /// The statistics of the panel as it is.
    pub fn observed(&self) -> Result<ShiftDraw, Error> {
        self.statistics(&self.panel)
    }

    /// The statistics of the shift with this number.
    pub fn draw(&self, number: u64) -> Result<ShiftDraw, Error> {
        self.statistics(&shifted(&self.panel, self.seed, number)?)
    }

    /// The skill of the same fit to another panel of these agents.
    pub(super) fn skill_of(&self, panel: &Panel) -> Result<Option<Skill>, Error> {
        let panel = self.refit.filled(panel);
        match &self.refit {
            Refit::Whitened(params) => {
                let forecast = unless_stopped(whitened::held_out(&panel, params))?;
                Ok(forecast.and_then(|forecast| skill(&panel, &forecast)))
            }
            Refit::StateSpace(params) => Ok(state_space::held_out(&panel, params)?.skill),
        }
    }

    fn statistics(&self, panel: &Panel) -> Result<ShiftDraw, Error> {
        affordable(panel.width(), 2, "test fewer agents")?;
        let (combination, skill) = match &self.refit {
            Refit::Whitened(params) => {
                let moments = Moments::from_panel(panel, 1..panel.steps());
                let estimate = whitened::estimate(&moments, &DistinctAgents::from_panel(panel), params, None)?;
                (estimate.combination, self.skill_of(panel)?)
            }
            // One fit for both: the network that forecasts is the one that is tested.
            Refit::StateSpace(params) => {
                let held_out = state_space::held_out(panel, params)?;
                (held_out.combination, held_out.skill)
            }
        };
        Ok(ShiftDraw {
            agents: weight_from_others(&combination),
            edges: combination.to_columns(),
            skill: skill.map(|skill| skill.against_own_past),
        })
    }

    /// P-values: (1 + shifts that reach the observed value) over (1 + shifts).
    pub fn compare(observed: &ShiftDraw, draws: &[ShiftDraw]) -> Significance {
        let p = |value: f64, of: &dyn Fn(&ShiftDraw) -> f64| {
            let reached = draws.iter().filter(|draw| of(draw) >= value).count();
            (1 + reached) as f64 / (1 + draws.len()) as f64
        };
        let agents = observed.agents.len();
        Significance {
            agents: (0..agents).map(|agent| p(observed.agents[agent], &|draw| draw.agents[agent])).collect(),
            edges: (0..agents * agents)
                .map(|cell| {
                    let own = cell / agents == cell % agents;
                    if own { 1.0 } else { p(observed.edges[cell], &|draw| draw.edges[cell]) }
                })
                .collect(),
            skill: observed.skill.map(|skill| p(skill, &|draw| draw.skill.unwrap_or(f64::NEG_INFINITY))),
            shifts: draws.len(),
        }
    }
}

/// The panel with every agent's series shifted circularly by its own random offset, within each episode.
///
/// # Errors
/// [`Error::Undefined`] where an episode is too short to be shifted ([`shiftable`]).
pub fn shifted(panel: &Panel, seed: u64, number: u64) -> Result<Panel, Error> {
    shiftable(panel)?;
    let mut rng = numbered(seed, number);
    let lengths = panel.episodes().ranges().map(|range| range.len());
    let offsets: Vec<usize> = lengths
        .flat_map(|steps| (0..panel.agents()).map(|_| rng.random_range(0..steps)).collect::<Vec<usize>>())
        .collect();
    panel.rotated(&offsets)
}

/// Whether circular shifts of a panel say anything: of several episodes each must have ten steps, because a shift of three
/// puts first answers after last ones.
///
/// # Errors
/// [`Error::Undefined`], with the shortest episode.
pub fn shiftable(panel: &Panel) -> Result<(), Error> {
    let episodes = panel.episodes();
    if episodes.is_single() || episodes.have_own_levels() {
        return Ok(());
    }
    let shortest = (0..episodes.count()).min_by_key(|&number| episodes.range(number).len()).unwrap_or(0);
    let reason = format!(
        "episode {:?} has {} steps, too few for circular shifts, which need ten in every episode; test against a graph instead",
        episodes.label(shortest),
        episodes.range(shortest).len()
    );
    Err(Error::Undefined { what: "a permutation test by circular shifts", reason })
}

/// The weight all others give each agent.
fn weight_from_others(combination: &Combination) -> Vec<f64> {
    let mut given = vec![0.0; combination.agents()];
    for (speaker, listener, weight) in combination.edges() {
        if speaker != listener {
            given[speaker] += weight.max(0.0);
        }
    }
    given
}

/// Benjamini–Hochberg: which of these p-values are significant at a false discovery rate.
///
/// ```
/// let significant = headwater::evaluate::discoveries(&[0.01, 0.5, 0.02, 0.04], 0.05);
/// assert_eq!(significant, [true, false, true, false]);
/// ```
pub fn discoveries(p_values: &[f64], rate: f64) -> Vec<bool> {
    let mut sorted = p_values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let passing = sorted.iter().enumerate().filter(|(index, p)| **p <= rate * (index + 1) as f64 / count);
    let limit = passing.map(|(_, p)| *p).fold(f64::NEG_INFINITY, f64::max);
    p_values.iter().map(|p| *p <= limit).collect()
}

/// P-values of a model from this many circular shifts of the panel it was learned from.
pub fn significance(panel: &Panel, model: &Model, count: u64, seed: u64) -> Result<Significance, Error> {
    shiftable(panel)?;
    let shifts = CircularShifts::for_model(panel, model, seed);
    let observed = shifts.observed()?;
    let draws = draw_many(SHIFTING, 0..count, Vec::new(), |_, _| Ok::<(), Error>(()), |number| shifts.draw(number))?;
    Ok(CircularShifts::compare(&observed, &draws))
}

/// Name of the progress stage.
pub const SHIFTING: &str = "testing circular shifts";
