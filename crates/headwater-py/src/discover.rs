//! The pipeline: from posts and typed options to the results of a run. Nothing is written unless a folder is given.

use crate::beliefs::Graph;
use crate::columns::{FrameColumn, table};
use crate::error::{PyError, no_choice};
use crate::hints::run_warning;
use crate::learners::{constraint, draws, weights};
use crate::model::{Model, Ranking, csv_text};
use crate::posts::{BadRowWarnings, PostArguments, Posts};
use crate::work::{Manner, done, done_watched};
use headwater::learn::state_space::StateSpaceParams;
use headwater::panel::{Times, probabilities};
use headwater::ranking::EdgeRow;
use headwater_discover::UncertaintyOptions;
use headwater_discover::{
    CommonInput, Discover, Discovery as Found, GraphInput, GroupsInput, Pseudonyms, RunEvent, Store,
};
use headwater_files::Groups;
use headwater_posts::calendar::Calendar;
use headwater_report::RUN_ARTIFACTS;
use headwater_report::page::{Page, ReportInput};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Microseconds in a second.
const MICROSECONDS: i64 = 1_000_000;

/// The follow graph: in memory, or a file.
#[derive(FromPyObject)]
pub(crate) enum GraphArgument<'py> {
    Graph(PyRef<'py, Graph>),
    File(PathBuf),
}

/// Groups whose previous mean may move their members: "network", or the group of each account.
#[derive(FromPyObject)]
pub(crate) enum CommonArgument {
    Name(String),
    Groups(BTreeMap<String, String>),
}

impl CommonArgument {
    fn input(self) -> PyResult<CommonInput> {
        match self {
            CommonArgument::Name(name) if name == "network" => Ok(CommonInput::Network),
            CommonArgument::Name(other) => {
                Err(no_choice("common", &other, "network, or the group of each user by name"))
            }
            CommonArgument::Groups(groups) => Ok(CommonInput::Groups(Groups::new(groups))),
        }
    }
}

/// Runs the pipeline; returns its results and warnings.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are the options of the pipeline")]
#[pyo3(signature = (
    posts, options, out = None, graph = None, bootstrap = 200, null = None, top = 3, seed = 21,
    force = false, pseudonymise = None, adaptation = None, constraint = "simplex", ridge = 0.0, weights = None, shrinkage = None,
    rounds = None, sampling = None, sketch = false, common = None, groups = None, raw_csv = false, progress = None, threads = None
))]
pub(crate) fn discover(
    py: Python<'_>,
    posts: &Posts,
    options: &PostArguments,
    out: Option<PathBuf>,
    graph: Option<GraphArgument<'_>>,
    bootstrap: u64,
    null: Option<u64>,
    top: usize,
    seed: u64,
    force: bool,
    pseudonymise: Option<PathBuf>,
    adaptation: Option<f64>,
    constraint: &str,
    ridge: f64,
    weights: Option<&str>,
    shrinkage: Option<f64>,
    rounds: Option<usize>,
    sampling: Option<(usize, usize)>,
    sketch: bool,
    common: Option<CommonArgument>,
    groups: Option<BTreeMap<String, String>>,
    raw_csv: bool,
    progress: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<(Discovery, Vec<String>)> {
    if top == 0 {
        return Err(PyValueError::new_err("top is 0, but must be at least 1"));
    }
    draws("bootstrap", (bootstrap > 0).then_some(bootstrap))?;
    draws("null", null.filter(|draws| *draws > 0))?;
    let usual = StateSpaceParams::default();
    let mut run = Discover::new(posts.input.clone());
    run.options = options.options.clone();
    run.text_model.clone_from(&options.text_model);
    run.fit = StateSpaceParams {
        adaptation,
        constraint: self::constraint(constraint)?,
        ridge,
        weights: self::weights(weights, graph.is_some())?,
        shrinkage: shrinkage.unwrap_or(usual.shrinkage),
        rounds: rounds.unwrap_or(usual.rounds),
        sampling: crate::learners::sampling(sampling, seed),
        sketch,
        ..usual
    };
    run.graph = graph.map(|graph| match graph {
        GraphArgument::Graph(graph) => GraphInput::Edges(graph.edges.clone()),
        GraphArgument::File(path) => GraphInput::File(path),
    });
    run.common = common.map(CommonArgument::input).transpose()?;
    if groups.is_some() && run.graph.is_none() {
        return Err(PyValueError::new_err("groups are those of the graph test, which needs graph"));
    }
    run.groups = groups.map(|groups| GroupsInput::Groups(Groups::new(groups)));
    run.uncertainty = UncertaintyOptions { bootstrap, null, top, seed };
    run.csv_text = csv_text(raw_csv);
    run.pseudonyms = pseudonymise.as_deref().map(Pseudonyms::read).transpose().map_err(PyError::from)?;
    let mut store = match &out {
        Some(folder) => Store::folder(folder).with_artifacts(&RUN_ARTIFACTS).with_force(force),
        None => Store::memory(),
    };
    let calendar = Calendar::new(options.options.bin, options.options.timezone.clone());
    let (found, warnings) = done_watched(py, &Manner { progress, threads }, |progress| {
        let met = Mutex::new((Vec::new(), BadRowWarnings::default()));
        let observer = |event: RunEvent| {
            let (warnings, bad) = &mut *met.lock().unwrap_or_else(PoisonError::into_inner);
            match &event {
                RunEvent::BadRows(rows) => bad.see(rows),
                RunEvent::Warning(warning) => warnings.push(run_warning(warning)),
                _ => {}
            }
        };
        let found = run.run_observed(&mut store, progress, &observer)?;
        let (warnings, bad) = met.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((found, bad.warnings().into_iter().chain(warnings).collect::<Vec<String>>()))
    })?;
    Ok((Discovery { found, calendar, out }, warnings))
}

/// The results of a run.
#[pyclass(frozen, module = "headwater._headwater")]
pub(crate) struct Discovery {
    found: Found,
    calendar: Calendar,
    out: Option<PathBuf>,
}

#[pymethods]
impl Discovery {
    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        self.out.clone()
    }

    #[getter]
    fn model(&self) -> Model {
        self.found.model.clone().into()
    }

    #[getter]
    fn ranking(&self) -> Ranking {
        self.found.ranking.clone().into()
    }

    /// The record of the run as JSON.
    #[getter]
    fn run(&self) -> PyResult<String> {
        serde_json::to_string(&self.found.run).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The report page as HTML.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        done(py, &Manner::default(), || Ok(Page::new(&ReportInput::from_discovery(&self.found))?.html()?))
    }

    /// Weights between different accounts; with the null test the smallest p-value first, otherwise listener by
    /// listener; with intervals and probabilities where the posterior was sampled.
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let edges = EdgeRow::all(&self.found.ranking, &self.found.model);
        let text = |of: fn(&EdgeRow) -> &String| FrameColumn::Text(edges.iter().map(|edge| of(edge).clone()).collect());
        let numbers = |of: fn(&EdgeRow) -> f64| FrameColumn::Numbers(edges.iter().map(of).collect());
        let mut columns = vec![
            ("source", text(|edge| &edge.source)),
            ("target", text(|edge| &edge.target)),
            ("weight", numbers(|edge| edge.weight)),
        ];
        if self.found.ranking.edges.is_some() {
            let significant = edges.iter().map(|edge| edge.significant.unwrap_or_default()).collect();
            columns.push(("p_value", numbers(|edge| edge.p_value.unwrap_or(f64::NAN))));
            columns.push(("significant", FrameColumn::Flags(significant)));
        }
        if edges.iter().any(|edge| edge.low.is_some()) {
            columns.push(("low", numbers(|edge| edge.low.unwrap_or(f64::NAN))));
            columns.push(("high", numbers(|edge| edge.high.unwrap_or(f64::NAN))));
        }
        if edges.iter().any(|edge| edge.probability.is_some()) {
            columns.push(("probability", numbers(|edge| edge.probability.unwrap_or(f64::NAN))));
        }
        table(py, columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect())
    }

    /// What the accounts believed: `time`, `agent`, a column per hypothesis, `posts`.
    fn beliefs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let panel = &self.found.panel;
        let hypotheses = panel.roster().hypotheses();
        let mut rows = BeliefColumns::new(hypotheses.len());
        let mut belief = Vec::new();
        for (step, start) in panel.times().raw().iter().enumerate() {
            let shown = match panel.times() {
                Times::Steps(_) => start.to_string(),
                Times::Instants { .. } => self.calendar.show(start / MICROSECONDS),
            };
            let frame = panel.frame(step);
            for agent in (0..panel.agents()).filter(|&agent| panel.posts(step, agent) > 0) {
                probabilities((0..panel.ratios()).map(|ratio| frame[(agent, ratio)]), &mut belief);
                rows.push(shown.clone(), &panel.roster().agents()[agent], &belief, panel.posts(step, agent));
            }
        }
        rows.table(py, hypotheses)
    }
}

/// A table of beliefs under construction.
pub(crate) struct BeliefColumns {
    times: Vec<String>,
    agents: Vec<String>,
    values: Vec<Vec<f64>>,
    posts: Vec<i64>,
}

impl BeliefColumns {
    pub(crate) fn new(hypotheses: usize) -> Self {
        let values = vec![Vec::new(); hypotheses];
        BeliefColumns { times: Vec::new(), agents: Vec::new(), values, posts: Vec::new() }
    }

    pub(crate) fn push(&mut self, time: String, agent: &str, belief: &[f64], posts: u32) {
        self.times.push(time);
        self.agents.push(agent.to_owned());
        self.values.iter_mut().zip(belief).for_each(|(column, value)| column.push(*value));
        self.posts.push(i64::from(posts));
    }

    pub(crate) fn table<'py>(self, py: Python<'py>, hypotheses: &[impl AsRef<str>]) -> PyResult<Bound<'py, PyDict>> {
        // Numbers of bins, where times are plain numbers.
        let steps: Option<Vec<i64>> = self.times.iter().map(|time| time.parse().ok()).collect();
        let mut columns = vec![
            ("time".to_owned(), steps.map_or(FrameColumn::Text(self.times), FrameColumn::Whole)),
            ("agent".to_owned(), FrameColumn::Text(self.agents)),
        ];
        let names = hypotheses.iter().map(|name| name.as_ref().to_owned());
        columns.extend(names.zip(self.values.into_iter().map(FrameColumn::Numbers)));
        columns.push(("posts".to_owned(), FrameColumn::Whole(self.posts)));
        table(py, columns)
    }
}
