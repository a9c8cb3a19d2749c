//! Fitting: a panel and a [`Method`] in, a model with its forecast skill out.
//!
//! [`fit()`] is what the command line, Python and the pipeline call. The other functions are its parts, for callers that
//! report progress between them.

use crate::evaluate::skill::measured;
use crate::learn::forecast::{self, Forecast, unless_stopped};
use crate::learn::gsl::{self, Constraint, Gsl, GslParams};
use crate::learn::posterior;
use crate::learn::released::as_released;
use crate::learn::state_space::{self, StateSpaceLearner, StateSpaceParams};
use crate::learn::track::{TrackParams, Tracker};
use crate::learn::whitened::{self, WhitenedParams};
use crate::model::{Status, WeightKind};
use crate::progress::Progress;
use crate::words::exact;
use crate::{Error, Frame, Method, Model, Panel, progress};
use rayon::prelude::*;
use std::borrow::Cow;

/// Learns a model from a panel and measures its forecast skill on held-out steps.
///
/// Silence is handled by the method: the state-space learner takes it as it is, the others repeat an agent's last belief
/// and say so in a warning. The model records the method with every parameter, and the kind of weights that was chosen
/// where a state-space fit with a support leaves it open. The skill is not a test; see [`crate::evaluate`] for those.
///
/// ```
/// use headwater::learn::whitened::WhitenedParams;
/// use headwater::simulate::{WorldParams, simulate};
/// use headwater::{Method, fit, progress::Progress};
/// let (panel, _) = simulate(&WorldParams { steps: 100, ..WorldParams::default() })?;
/// let model = fit(&panel, &Method::Whitened(WhitenedParams::default()), &Progress::default())?;
/// assert!(model.diagnostics.skill.unwrap().against_own_past > 0.0);
/// # Ok::<(), headwater::Error>(())
/// ```
///
/// Errors: those of the learner, [`Error::Stopped`], and a method that is no learner.
pub fn fit(panel: &Panel, method: &Method, progress: &Progress) -> Result<Model, Error> {
    progress.run(|| fit_here(panel, method))?
}

fn fit_here(panel: &Panel, method: &Method) -> Result<Model, Error> {
    if let Method::StateSpace(params) = method {
        return state_space(panel, params);
    }
    let filled = fill(panel);
    let mut model = match method {
        Method::Whitened(params) => whitened(&filled, params)?,
        Method::Tracked(params) => follow(&filled, params)?,
        Method::Gsl(params) => gsl(&filled.panel, Gsl::new(panel.roster().clone(), params.clone())?)?.0,
        Method::AsReleased(params) => {
            let _stage = progress::stage("learning as released", 0);
            as_released(&filled.panel, params)?
        }
        other => {
            let reason = format!("{:?} is not a method that learns with known parameters", other.name());
            return Err(Error::Undefined { what: "a fit", reason });
        }
    };
    model.diagnostics.warnings.splice(0..0, filled.warning);
    Ok(model)
}

/// Runs a tracker over all frames.
fn follow(filled: &FilledPanel<'_>, params: &TrackParams) -> Result<Model, Error> {
    let panel = &filled.panel;
    one_series(panel)?;
    let mut tracker = Tracker::new(panel.roster().clone(), params.clone())?;
    let stage = progress::stage("following", panel.steps() as u64);
    for step in 0..panel.steps() {
        progress::check()?;
        tracker.observe(&filled.frame(step)?)?;
        stage.advance();
    }
    tracker.flush();
    drop(stage);
    tracked(filled, &tracker)
}

/// An error where there are several episodes: changes are followed along one series of frames.
pub fn one_series(panel: &Panel) -> Result<(), Error> {
    match panel.episodes().count() {
        1 => Ok(()),
        count => Err(Error::Undefined {
            what: "a changing network",
            reason: format!("the beliefs have {count} episodes, and changes are followed along a single one"),
        }),
    }
}

/// Frames per block between two progress reports of the paper's learner.
const FRAMES_PER_LOOK: usize = 4096;

/// A forecast error larger than this multiple of the error of no change is reported as divergence.
const RUNAWAY: f64 = 100.0;

/// A panel without gaps.
#[derive(Debug)]
#[non_exhaustive]
pub struct FilledPanel<'a> {
    /// The panel, silent cells filled with the agent's last belief.
    pub panel: Cow<'a, Panel>,
    /// Which cells were silent, step by step; empty when none was.
    pub silent: Vec<bool>,
    /// A warning that tells how many cells were filled.
    pub warning: Option<String>,
}

/// Fills silent cells for learners that need complete panels.
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

/// The warning about beliefs that were repeated for silent agents.
pub fn repeated(filled: usize, cells: usize) -> String {
    format!(
        "{filled} of {cells} beliefs are missing ({:.1}%); an agent's last belief was repeated, which overstates the persistence of quiet agents; the state-space method needs no repetition",
        100.0 * filled as f64 / cells as f64
    )
}

impl FilledPanel<'_> {
    /// The beliefs of one step, those filled in marked as such.
    pub fn frame(&self, step: usize) -> Result<Frame<'_>, Error> {
        let agents = self.panel.agents();
        match self.silent.get(step * agents..(step + 1) * agents) {
            Some(silent) => self.panel.frame(step).with_filled(silent),
            None => Ok(self.panel.frame(step)),
        }
    }

    /// Downgrades identified columns to statistical where beliefs were filled in: exact contrasts of filled values are no
    /// evidence.
    pub fn distrust(&self, model: &mut Model) {
        let identified = model.diagnostics.columns.iter_mut().filter(|column| column.status == Status::Identified);
        if !self.silent.is_empty() {
            identified.for_each(|column| column.status = Status::Statistical);
        }
    }
}

/// The whitened learner and its skill, on beliefs without gaps.
pub fn whitened(filled: &FilledPanel<'_>, params: &WhitenedParams) -> Result<Model, Error> {
    let panel = &filled.panel;
    let mut model = whitened::whitened(panel, params)?;
    // Where nothing was certified, a search for symbols would find nothing either.
    let certified = model.diagnostics.columns.iter().any(|column| column.status == Status::Certified);
    let params = WhitenedParams { symbols: params.symbols && certified, ..params.clone() };
    model.diagnostics.skill = measured(panel, &Method::Whitened(params))?;
    filled.distrust(&mut model);
    Ok(model)
}

/// The model of a tracker that has seen all frames, with its skill: every frame was forecast from the one before it.
pub fn tracked(filled: &FilledPanel<'_>, tracker: &Tracker) -> Result<Model, Error> {
    let panel = &filled.panel;
    let mut model = tracker.model()?;
    let forecast = tracker.forecast(panel.steps() - panel.steps().div_ceil(5));
    model.diagnostics.skill = forecast::skill(panel, &forecast);
    filled.distrust(&mut model);
    Ok(model)
}

/// The state-space learner and its skill. Where `params.weights` is none and there is a support, strengths and edges are
/// compared first, and the model's diagnostics tell the selection.
pub fn state_space(panel: &Panel, params: &StateSpaceParams) -> Result<Model, Error> {
    if posterior::is_large(panel, params) {
        return posterior::learn(panel, params);
    }
    if params.sketch {
        params.check()?;
        return Err(Error::Undefined {
            what: "a sketch",
            reason: "it takes two hypotheses, one episode, weights on the simplex and no common trend".into(),
        });
    }
    let with = |weights: WeightKind| StateSpaceParams { weights: Some(weights), ..params.clone() };
    let asked = params.weights == Some(WeightKind::Edges);
    let choosing = params.support.is_some() && params.constraint == Constraint::Simplex;
    let (params, choice) = match params.weights {
        Some(weights) => (with(weights), None),
        None if !choosing => (with(WeightKind::Edges), None),
        None => {
            // Rounds of three fits at most.
            let stage =
                progress::stage("forecasting held-out steps by strengths and by edges", 3 * params.rounds as u64);
            let choice = state_space::choose_observed(panel, params, &|| stage.advance())?;
            (with(choice.selection.chosen), Some(choice))
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
    // Draws of many sparse edges take long, so they have to be asked for.
    if asked || params.weights != Some(WeightKind::Edges) || posterior::edges_take_minutes(panel, &params) {
        posterior::sample(panel, &params, &mut model)?;
    }
    model.diagnostics.skill = match &choice {
        Some(choice) => choice.skill,
        None => measured(panel, &Method::StateSpace(params))?,
    };
    if let (Some(smoothing), Some(choice)) = (&mut model.diagnostics.smoothing, choice) {
        smoothing.selection = Some(choice.selection);
    }
    Ok(model)
}

/// The paper's learner and its skill, and the stability bound.
pub fn gsl(panel: &Panel, mut learner: Gsl) -> Result<(Model, f64), Error> {
    let (bound, warning) = stability(panel, &learner)?;
    let mut forecast = Forecast::default();
    let stage = progress::stage("learning", (panel.steps() * learner.params().passes) as u64);
    while let Some(update) = learner.advance(panel, FRAMES_PER_LOOK)? {
        forecast.add(&update.forecast);
        stage.at((update.pass * panel.steps() + update.seen) as u64);
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
        "learning rate {} is beyond the stability bound 2/((1−δ)²λ_max) = {bound:.3e}: the weights may grow without bound",
        exact(rate)
    );
    Ok((bound, (rate > bound).then_some(warning)))
}

/// The model of the paper's learner after the whole panel, with the skill of the forecasts made on the way.
pub fn finish(panel: &Panel, learner: Gsl, mut forecast: Forecast, bound: f64) -> Result<Model, Error> {
    if learner.params().passes > 1 || !panel.episodes().is_single() {
        // Several passes leave nothing unseen, so the skill takes a second fit.
        let _stage = progress::stage("forecasting held-out steps", 0);
        let again = gsl::held_out(panel, learner.afresh(learner.params().clone())?);
        forecast = unless_stopped(again)?.unwrap_or_default();
    }
    let mut model = learner.finish(panel, forecast::skill(panel, &forecast))?;
    if forecast.error > RUNAWAY * forecast.persistence {
        model.diagnostics.warnings.push(format!(
            "the weights diverge: the forecast error is {:.3e} times that of forecasting no change; lower the learning rate (stability bound {bound:.3e})",
            forecast.error / forecast.persistence
        ));
    }
    Ok(model)
}

/// Settings of the paper's learner with their squared forecast errors on the last fifth of the panel, best first: windows
/// and learning rates first, then sparsities for the best of them. At least one.
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
