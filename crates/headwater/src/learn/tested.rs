//! A model together with its test: learned from the whole panel, its forecast skill measured on steps it has not seen.
//!
//! In: a panel as it comes, silence included, and parameters. Out: a model whose diagnostics carry the skill and what has to
//! be known beside it. What the command line and the Python package both do; how far it is can be seen in [`crate::progress`].

use super::gsl::{self, Constraint, Gsl, GslParams};
use super::state_space::{self, StateSpaceLearner, StateSpaceParams};
use super::track::Tracker;
use super::whitened::{self, WhitenedParams};
use crate::confidence::{self, Forecast, unless_stopped};
use crate::model::{Skill, Status, Weights};
use crate::{Error, Model, Panel, progress};
use rayon::prelude::*;
use std::borrow::Cow;

/// Frames the paper's learner takes between two reports.
const FRAMES_PER_LOOK: usize = 4096;

/// A learner that forecasts this much worse than doing nothing is running away.
const RUNAWAY: f64 = 100.0;

/// Beliefs without gaps.
#[derive(Debug)]
pub struct FilledPanel<'a> {
    /// Whoever was silent repeats what it last said.
    pub panel: Cow<'a, Panel>,
    /// Which cells were silent, step by step; empty when none was.
    pub silent: Vec<bool>,
    /// What has to be known of that.
    pub warning: Option<String>,
}

/// Fills the gaps for learners that cannot do with them.
pub fn fill(panel: &Panel) -> FilledPanel<'_> {
    if panel.is_complete() {
        return FilledPanel { panel: Cow::Borrowed(panel), silent: Vec::new(), warning: None };
    }
    let (agents, cells) = (panel.agents(), panel.steps() * panel.agents());
    let silent = (0..cells).map(|cell| panel.posts(cell / agents, cell % agents) == 0).collect();
    let (panel, filled) = panel.clone().carry_forward();
    let warning = repeated(filled, cells);
    FilledPanel { panel: Cow::Owned(panel), silent, warning: Some(warning) }
}

/// What has to be known of beliefs that were repeated because nothing was said.
pub fn repeated(filled: usize, cells: usize) -> String {
    format!(
        "{filled} of {cells} beliefs are missing ({:.1}%); an agent's last opinion was repeated, which makes quiet agents look stubborn; --method state-space does without",
        100.0 * filled as f64 / cells as f64
    )
}

impl FilledPanel<'_> {
    /// What rests on beliefs that were filled in is not free of noise, whatever it looks like.
    pub fn distrust(&self, model: &mut Model) {
        let identified = model.diagnostics.columns.iter_mut().filter(|column| column.status == Status::Identified);
        if !self.silent.is_empty() {
            identified.for_each(|column| column.status = Status::Statistical);
        }
    }
}

/// The whitened learner and its skill, on beliefs without gaps.
///
/// ```
/// use headwater::learn::{tested, whitened::WhitenedParams};
/// use headwater::simulate::{WorldParams, simulate};
/// let (panel, _) = simulate(&WorldParams { steps: 100, ..WorldParams::default() })?;
/// let model = tested::whitened(&tested::fill(&panel), &WhitenedParams::default())?;
/// assert!(model.diagnostics.skill.unwrap().against_own_past > 0.0);
/// # Ok::<(), headwater::Error>(())
/// ```
pub fn whitened(filled: &FilledPanel<'_>, params: &WhitenedParams) -> Result<Model, Error> {
    let panel = &filled.panel;
    let mut model = whitened::whitened(panel, params)?;
    // Where nothing was certified, a search for symbols would find nothing either.
    let certified = model.diagnostics.columns.iter().any(|column| column.status == Status::Certified);
    let params = WhitenedParams { symbols: params.symbols && certified, ..params.clone() };
    let _stage = progress::stage("forecasting unseen steps", 0);
    let forecast = unless_stopped(whitened::held_out(panel, &params))?;
    model.diagnostics.skill = forecast.and_then(|forecast| confidence::skill(panel, &forecast));
    filled.distrust(&mut model);
    Ok(model)
}

/// What a tracker that has seen all frames found, and its skill: every frame was forecast from the one before it.
pub fn tracked(filled: &FilledPanel<'_>, tracker: &Tracker) -> Result<Model, Error> {
    let panel = &filled.panel;
    let mut model = tracker.model()?;
    let forecast = tracker.forecast(panel.steps() - panel.steps().div_ceil(5));
    model.diagnostics.skill = confidence::skill(panel, &forecast);
    filled.distrust(&mut model);
    Ok(model)
}

/// The state-space learner and its skill; and which weights were chosen and why, where there was a choice: without `weights`
/// a graph leaves it between strengths and edges.
pub fn state_space(
    panel: &Panel,
    params: &StateSpaceParams,
    weights: Option<Weights>,
) -> Result<(Model, Option<String>), Error> {
    let of = |weights: Weights| StateSpaceParams { weights, ..params.clone() };
    let choosing = params.support.is_some() && params.constraint == Constraint::Simplex;
    let (params, skill, choice) = match weights {
        Some(weights) => (of(weights), None, None),
        None if !choosing => (of(Weights::Edges), None, None),
        None => {
            let _stage = progress::stage("forecasting unseen steps by strengths and by edges", 0);
            let choice = state_space::choose(panel, params)?;
            (of(choice.weights), Some(choice.skill), Some(choice.reason))
        }
    };
    let mut learner = StateSpaceLearner::new(panel, &params)?;
    let stage = progress::stage("learning", params.rounds as u64);
    while !learner.done() {
        learner.round()?;
        stage.advance();
    }
    drop(stage);
    let mut model = learner.model()?;
    model.diagnostics.skill = match skill {
        Some(skill) => skill,
        None => measured(panel, &params)?,
    };
    Ok((model, choice))
}

/// Forecast skill on the last fifth of the steps; none where there are too few to hold some out.
fn measured(panel: &Panel, params: &StateSpaceParams) -> Result<Option<Skill>, Error> {
    let _stage = progress::stage("forecasting unseen steps", 0);
    match state_space::skill(panel, params) {
        Err(Error::NotReady { .. }) => Ok(None),
        other => other,
    }
}

/// The paper's learner and its skill. Tells the stability bound too.
pub fn gsl(panel: &Panel, mut learner: Gsl) -> Result<(Model, f64), Error> {
    let (bound, warning) = stability(panel, &learner)?;
    let mut forecast = Forecast::default();
    let stage = progress::stage("learning", (panel.steps() * learner.params().passes) as u64);
    while let Some(step) = learner.advance(panel, FRAMES_PER_LOOK)? {
        forecast.add(&step.forecast);
        stage.at((step.pass * panel.steps() + step.seen) as u64);
    }
    drop(stage);
    let mut model = finish(panel, learner, forecast, bound)?;
    model.diagnostics.warnings.splice(0..0, warning);
    Ok((model, bound))
}

/// The largest learning rate that converges on these beliefs, and a warning where the one in use is larger.
pub fn stability(panel: &Panel, learner: &Gsl) -> Result<(f64, Option<String>), Error> {
    let rate = learner.params().learning_rate;
    let bound = gsl::stability_bound(panel, learner.params(), learner.knows_evidence())?;
    let warning = format!(
        "learning rate {rate} is beyond the stability bound 2/((1−δ)²λ_max) = {bound:.3e}: the weights may grow without end"
    );
    Ok((bound, (rate > bound).then_some(warning)))
}

/// What the paper's learner found once it has gone through the panel, forecasting on the way.
pub fn finish(panel: &Panel, learner: Gsl, mut forecast: Forecast, bound: f64) -> Result<Model, Error> {
    if learner.params().passes > 1 {
        // Several passes leave nothing unseen, so the skill takes a second fit.
        let _stage = progress::stage("forecasting unseen steps", 0);
        let again = gsl::held_out(panel, learner.afresh(learner.params().clone())?);
        forecast = unless_stopped(again)?.unwrap_or_default();
    }
    let mut model = learner.finish(panel, confidence::skill(panel, &forecast))?;
    if forecast.error > RUNAWAY * forecast.persistence {
        model.diagnostics.warnings.push(format!(
            "the weights are running away: forecasts are {:.3e} times worse than doing nothing; lower the learning rate (stability bound {bound:.3e})",
            forecast.error / forecast.persistence
        ));
    }
    Ok(model)
}

/// Tries settings of the paper's learner on the first four fifths of the beliefs: window and learning rate first, then
/// sparsity. Their squared errors on the rest, the best first; at least one.
pub fn tune(panel: &Panel, learner: &Gsl) -> Result<Vec<(GslParams, f64)>, Error> {
    let candidates = gsl::candidates(panel, learner.params(), learner.knows_evidence())?;
    let mut tried = try_out(panel, learner, &candidates)?;
    let Some((best, _)) = tried.first() else {
        return Err(Error::Undefined {
            what: "the best setting",
            reason: "the beliefs are too short to hold out a fifth".into(),
        });
    };
    let sparser = gsl::sparser(best, panel.agents());
    tried.extend(try_out(panel, learner, &sparser)?);
    tried.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ok(tried)
}

/// Held-out error of each setting that can be learned at all, best first.
fn try_out(panel: &Panel, learner: &Gsl, candidates: &[GslParams]) -> Result<Vec<(GslParams, f64)>, Error> {
    let stage = progress::stage("tuning", candidates.len() as u64);
    let error = |params: &GslParams| -> Result<Option<(GslParams, f64)>, Error> {
        let forecast = learner.afresh(params.clone()).and_then(|fresh| gsl::held_out(panel, fresh));
        let found = unless_stopped(forecast)?.map(|forecast| (params.clone(), forecast.error));
        stage.advance();
        Ok(found)
    };
    let found: Vec<Option<(GslParams, f64)>> = candidates.par_iter().map(error).collect::<Result<_, _>>()?;
    let mut tried: Vec<(GslParams, f64)> = found.into_iter().flatten().collect();
    tried.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ok(tried)
}
