//! Learners: beliefs in, a model out. Parameters have the names and defaults of the command line.

use crate::beliefs::{Beliefs, Graph, GraphBeliefs};
use crate::error::{PyError, no_choice};
use crate::model::Model;
use crate::work::{Manner, done};
use headwater::compare::GroundTruth;
use headwater::fit;
use headwater::learn::gsl::{Constraint, Gsl, GslParams};
use headwater::learn::posterior::SamplingParams;
use headwater::learn::state_space::StateSpaceParams;
use headwater::learn::track::{Memory, TrackParams, Tracker};
use headwater::learn::whitened::WhitenedParams;
use headwater::model::WeightKind;
use headwater::{Roster, progress};
use headwater_files::name_times;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub(crate) fn constraint(name: &str) -> PyResult<Constraint> {
    match name {
        "simplex" => Ok(Constraint::Simplex),
        "free" => Ok(Constraint::Free),
        other => Err(no_choice("constraint", other, "simplex or free")),
    }
}

pub(crate) fn support(graph: Option<&Graph>, roster: &Roster) -> PyResult<Option<Vec<Vec<usize>>>> {
    graph.map(|graph| graph.support(roster)).transpose()
}

/// How far back a tracker looks, where the network is followed.
pub(crate) fn memory(forget: Option<f64>, recent: Option<usize>) -> PyResult<Memory> {
    match (forget, recent) {
        (Some(_), Some(_)) => Err(PyValueError::new_err("forget and recent are alternatives; give one of them")),
        (Some(factor), None) => Ok(Memory::Forget(factor)),
        (None, Some(steps)) => Ok(Memory::Recent(steps)),
        (None, None) => Ok(Memory::All),
    }
}

/// What weights on a graph are made of; none where the fit selects.
pub(crate) fn weights(name: Option<&str>, graph: bool) -> PyResult<Option<WeightKind>> {
    match name {
        Some("auto" | "strengths") if !graph => Err(PyValueError::new_err(
            "speaker strengths need a graph of who follows whom\nhint: give graph (source, target: the target follows the source), or omit weights",
        )),
        None | Some("auto") => Ok(None),
        Some("edges") => Ok(Some(WeightKind::Edges)),
        Some("strengths") => Ok(Some(WeightKind::Strengths)),
        Some(other) => Err(no_choice("weights", other, "auto, edges or strengths")),
    }
}

/// Refuses too few or too many resamples or circular shifts.
pub(crate) fn draws(name: &str, draws: Option<u64>) -> PyResult<()> {
    match draws.filter(|draws| !(20..=100_000).contains(draws)) {
        Some(draws) => Err(PyValueError::new_err(format!("{name} is {draws}, but must be 20 to 100000"))),
        None => Ok(()),
    }
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are the learner's parameters")]
#[pyo3(signature = (
    beliefs, adaptation = None, constraint = "simplex", ridge = 0.0, rounds = None, symbols = true, budget = None,
    graph = None, forget = None, recent = None, progress = None, threads = None
))]
pub(crate) fn whitened(
    py: Python<'_>,
    beliefs: &Beliefs,
    adaptation: Option<f64>,
    constraint: &str,
    ridge: f64,
    rounds: Option<usize>,
    symbols: bool,
    budget: Option<f64>,
    graph: Option<PyRef<'_, Graph>>,
    forget: Option<f64>,
    recent: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Model> {
    let usual = WhitenedParams::default();
    let GraphBeliefs { panel, warning, .. } = GraphBeliefs::new(beliefs, graph.as_deref())?;
    let params = WhitenedParams {
        adaptation,
        constraint: self::constraint(constraint)?,
        ridge,
        rounds: rounds.unwrap_or(usual.rounds),
        symbols,
        budget: budget.unwrap_or(usual.budget),
        support: support(graph.as_deref(), panel.roster())?,
    };
    let memory = memory(forget, recent)?;
    let (grain, about) = (beliefs.grain, beliefs.about());
    done(py, &Manner { progress, threads }, || {
        let filled = fit::fill(&panel);
        let mut model = if memory == Memory::All {
            fit::whitened(&filled, &params).map_err(&about)?
        } else {
            fit::one_series(&panel).map_err(&about)?;
            let params = TrackParams { whitened: params, memory, window: None };
            let mut tracker = Tracker::new(panel.roster().clone(), params)?;
            let stage = progress::stage("following", panel.steps() as u64);
            for step in 0..panel.steps() {
                progress::check()?;
                tracker.observe(&filled.frame(step)?).map_err(&about)?;
                stage.advance();
            }
            tracker.flush();
            let mut model = fit::tracked(&filled, &tracker).map_err(&about)?;
            name_times(&mut model, panel.times());
            model
        };
        // In the order of the command line.
        let before: Vec<String> = warning.into_iter().chain(grain.warning()).chain(filled.warning).collect();
        model.diagnostics.warnings.splice(0..0, before);
        Ok(model.into())
    })
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are the learner's parameters")]
#[pyo3(signature = (
    beliefs, adaptation = None, constraint = "simplex", ridge = 0.0, weights = None, shrinkage = None, rounds = None,
    tolerance = None, sampling = None, sketch = false, seed = 21, graph = None, groups = None, progress = None,
    threads = None
))]
pub(crate) fn state_space(
    py: Python<'_>,
    beliefs: &Beliefs,
    adaptation: Option<f64>,
    constraint: &str,
    ridge: f64,
    weights: Option<&str>,
    shrinkage: Option<f64>,
    rounds: Option<usize>,
    tolerance: Option<f64>,
    sampling: Option<(usize, usize)>,
    sketch: bool,
    seed: u64,
    graph: Option<PyRef<'_, Graph>>,
    groups: Option<Vec<usize>>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<(Model, Option<String>)> {
    let weights = self::weights(weights, graph.is_some())?;
    let usual = StateSpaceParams::default();
    let GraphBeliefs { panel, agents, warning } = GraphBeliefs::new(beliefs, graph.as_deref())?;
    let groups = groups.map(|groups| match &agents {
        Some(agents) => agents.iter().map(|&agent| groups[agent]).collect(),
        None => groups,
    });
    let params = StateSpaceParams {
        adaptation,
        constraint: self::constraint(constraint)?,
        ridge,
        shrinkage: shrinkage.unwrap_or(usual.shrinkage),
        rounds: rounds.unwrap_or(usual.rounds),
        tolerance: tolerance.unwrap_or(usual.tolerance),
        support: support(graph.as_deref(), panel.roster())?,
        common: groups,
        weights,
        sampling: self::sampling(sampling, seed),
        sketch,
    };
    params.check().map_err(PyError::from)?;
    let about = beliefs.about();
    done(py, &Manner { progress, threads }, || {
        let mut model = fit::state_space(&panel, &params).map_err(about)?;
        model.diagnostics.warnings.splice(0..0, warning);
        let selection = model.diagnostics.smoothing.as_ref().and_then(|smoothing| smoothing.selection);
        let choice = selection.map(|selection| selection.to_string());
        Ok((model.into(), choice))
    })
}

/// Draws and chains of the posterior, where it is sampled.
pub(crate) fn sampling(sampling: Option<(usize, usize)>, seed: u64) -> Option<SamplingParams> {
    sampling.map(|(draws, chains)| SamplingParams { draws, chains, seed })
}

/// Parameters of the paper's learner; what is not given is the paper's.
pub(crate) fn paper(
    adaptation: f64,
    window: Option<usize>,
    learning_rate: Option<f64>,
    batch: Option<usize>,
    sparsity: Option<f64>,
    passes: Option<usize>,
    constraint: &str,
) -> PyResult<GslParams> {
    let usual = GslParams::default();
    let params = GslParams {
        adaptation,
        window: window.unwrap_or(usual.window),
        learning_rate: learning_rate.unwrap_or(usual.learning_rate),
        batch: batch.unwrap_or(usual.batch),
        sparsity: sparsity.unwrap_or(usual.sparsity),
        passes: passes.unwrap_or(usual.passes),
        constraint: self::constraint(constraint)?,
        ..usual
    };
    params.check().map_err(PyError::from)?;
    Ok(params)
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are the learner's parameters")]
#[pyo3(signature = (
    beliefs, adaptation, window = None, learning_rate = None, batch = None, sparsity = None, passes = None,
    constraint = "free", tune = false, graph = None, evidence = None, initial = None, progress = None, threads = None
))]
pub(crate) fn gsl(
    py: Python<'_>,
    beliefs: &Beliefs,
    adaptation: f64,
    window: Option<usize>,
    learning_rate: Option<f64>,
    batch: Option<usize>,
    sparsity: Option<f64>,
    passes: Option<usize>,
    constraint: &str,
    tune: bool,
    graph: Option<PyRef<'_, Graph>>,
    evidence: Option<PyRef<'_, Model>>,
    initial: Option<PyRef<'_, Model>>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<(Model, String)> {
    let params = paper(adaptation, window, learning_rate, batch, sparsity, passes, constraint)?;
    let GraphBeliefs { panel, warning, .. } = GraphBeliefs::new(beliefs, graph.as_deref())?;
    let about = beliefs.about();
    let roster = panel.roster();
    let support = support(graph.as_deref(), roster)?;
    let known = |model: &Option<PyRef<'_, Model>>| -> Result<Option<GroundTruth>, PyError> {
        let Some(model) = model else { return Ok(None) };
        Ok(Some(GroundTruth::from_model(&model.model)?.aligned(roster)?))
    };
    let (evidence, initial) = (known(&evidence)?, known(&initial)?);
    done(py, &Manner { progress, threads }, || {
        let filled = fit::fill(&panel);
        let mut learner = Gsl::new(roster.clone(), params)?;
        if let Some(support) = support {
            learner = learner.within(support)?;
        }
        if let Some(combination) = initial.and_then(|known| known.combination) {
            learner = learner.starting_from(&combination)?;
        }
        if let Some(evidence) = evidence.and_then(|known| known.evidence) {
            learner = learner.knowing(evidence)?;
        }
        if tune {
            let best = fit::tune(&filled.panel, &learner).map_err(&about)?.swap_remove(0).0;
            learner = learner.afresh(best)?;
        }
        let GslParams { window, learning_rate, batch, sparsity, passes, .. } = learner.params().clone();
        let (mut model, bound) = fit::gsl(&filled.panel, learner).map_err(&about)?;
        model.diagnostics.warnings.splice(0..0, warning.into_iter().chain(filled.warning));
        let settings = serde_json::json!({
            "window": window,
            "learning_rate": learning_rate,
            "batch": batch,
            "sparsity": sparsity,
            "passes": passes,
            "stability_bound": bound,
        });
        Ok((model.into(), settings.to_string()))
    })
}
