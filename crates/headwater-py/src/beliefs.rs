//! Beliefs and graphs: arrays, data frames and files in; what learners take out.

use crate::columns::{FrameColumn, table};
use crate::error::{PyError, no_choice};
use crate::model::Model;
use crate::work::{Manner, done};
use arrow_array::RecordBatchReader;
use headwater::graph::{Graph as Links, Rule};
use headwater::panel::{Times, probabilities};
use headwater::simulate::{Likelihoods, NetworkShape, ScheduledChange, World, WorldParams, run};
use headwater::{Panel, Roster};
use headwater_files::{
    ArrayNames, Edges, Grain, LoadedBeliefs, beliefs_from_array, beliefs_from_batches, beliefs_from_frames,
    read_beliefs, read_edges, sides,
};
use numpy::ndarray::{ArrayView2, ArrayView3, ArrayViewD, Axis, Ix3};
use numpy::{Element, IntoPyArray, PyArray3, PyArrayMethods, PyReadonlyArray2, PyReadonlyArrayDyn};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyRecordBatchReader;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What beliefs that have no file are called in messages.
pub(crate) const BELIEFS: &str = "beliefs";

/// T steps of N agents, in the library's own shape.
#[pyclass(frozen, module = "headwater._headwater")]
pub(crate) struct Beliefs {
    pub(crate) panel: Arc<Panel>,
    raised: Option<String>,
    pub(crate) grain: Grain,
    /// Where they were read.
    path: Option<PathBuf>,
}

impl Beliefs {
    /// Names the file, where there is one, that an error of the library concerns.
    pub(crate) fn about(&self) -> impl Fn(headwater::Error) -> PyError {
        let path = self.path.clone();
        move |source| match &path {
            Some(path) if !matches!(source, headwater::Error::Parameter { .. }) => {
                headwater_files::Error::Data { path: path.clone(), source }.into()
            }
            _ => source.into(),
        }
    }
}

impl From<LoadedBeliefs> for Beliefs {
    fn from(read: LoadedBeliefs) -> Self {
        Beliefs { raised: read.raised(), grain: read.grain, panel: Arc::new(read.panel), path: None }
    }
}

/// Numbers in an array, whatever their order in memory.
pub(crate) enum Numbers<'py> {
    Double(PyReadonlyArrayDyn<'py, f64>),
    Single(PyReadonlyArrayDyn<'py, f32>),
}

impl<'py> Numbers<'py> {
    pub(crate) fn from_any(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = array.extract() {
            return Ok(Numbers::Double(array));
        }
        match array.extract() {
            Ok(array) => Ok(Numbers::Single(array)),
            Err(_) => Err(PyTypeError::new_err(format!(
                "beliefs: found {}; expected a numpy array of float64 or float32 numbers",
                array.get_type().name()?
            ))),
        }
    }

    pub(crate) fn view(&self) -> View<'_> {
        match self {
            Numbers::Double(array) => View::Double(array.as_array()),
            Numbers::Single(array) => View::Single(array.as_array()),
        }
    }
}

/// The same without the interpreter.
pub(crate) enum View<'a> {
    Double(ArrayViewD<'a, f64>),
    Single(ArrayViewD<'a, f32>),
}

impl<'a> View<'a> {
    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            View::Double(array) => array.shape(),
            View::Single(array) => array.shape(),
        }
    }

    /// As T×N×numbers, or what is wrong.
    pub(crate) fn frames(self, log_ratios: bool) -> PyResult<Frames<'a>> {
        sides(self.shape(), log_ratios)
            .map_err(|problem| PyValueError::new_err(format!("{BELIEFS}: has {problem}")))?;
        Ok(match self {
            View::Double(array) => Frames::Double(three(array)?),
            View::Single(array) => Frames::Single(three(array)?),
        })
    }
}

fn three<T>(array: ArrayViewD<'_, T>) -> PyResult<ArrayView3<'_, T>> {
    let array = if array.ndim() == 2 { array.insert_axis(Axis(2)) } else { array };
    array.into_dimensionality::<Ix3>().map_err(|error| PyValueError::new_err(error.to_string()))
}

/// T×N×numbers.
pub(crate) enum Frames<'a> {
    Double(ArrayView3<'a, f64>),
    Single(ArrayView3<'a, f32>),
}

impl Frames<'_> {
    pub(crate) fn sides(&self) -> (usize, usize, usize) {
        match self {
            Frames::Double(array) => array.dim(),
            Frames::Single(array) => array.dim(),
        }
    }

    /// Fills frames, agent by agent, from a step on; NaN for who is marked as silent.
    fn read(&self, first: usize, silent: Option<&ArrayView2<'_, bool>>, out: &mut [f64]) {
        let (_, agents, values) = self.sides();
        let frames = out.par_chunks_mut((agents * values).max(1)).enumerate();
        frames.for_each(|(frame, out)| self.frame(first + frame, silent, out));
    }

    /// The same for one frame.
    pub(crate) fn frame(&self, step: usize, silent: Option<&ArrayView2<'_, bool>>, out: &mut [f64]) {
        match self {
            Frames::Double(array) => copy(&array.index_axis(Axis(0), step), out),
            Frames::Single(array) => copy(&array.index_axis(Axis(0), step), out),
        }
        let Some(silent) = silent else { return };
        let (_, _, values) = self.sides();
        let marks = silent.index_axis(Axis(0), step);
        for (belief, _) in out.chunks_mut(values).zip(&marks).filter(|(_, silent)| **silent) {
            belief.fill(f64::NAN);
        }
    }
}

fn copy<T: Element + Copy + Into<f64>>(from: &ArrayView2<'_, T>, out: &mut [f64]) {
    match from.as_slice() {
        Some(numbers) => out.iter_mut().zip(numbers).for_each(|(out, number)| *out = (*number).into()),
        None => out.iter_mut().zip(from.iter()).for_each(|(out, number)| *out = (*number).into()),
    }
}

/// Marks of silence that fit the frames.
pub(crate) fn marks<'a>(
    silent: &'a Option<PyReadonlyArray2<'_, bool>>,
    (steps, agents, _): (usize, usize, usize),
) -> PyResult<Option<ArrayView2<'a, bool>>> {
    let Some(silent) = silent else { return Ok(None) };
    let marks = silent.as_array();
    if marks.dim() != (steps, agents) {
        return Err(PyValueError::new_err(format!(
            "{BELIEFS}: marks of silence have shape {:?}; expected ({steps}, {agents})",
            marks.dim()
        )));
    }
    Ok(Some(marks))
}

#[pymethods]
impl Beliefs {
    #[staticmethod]
    #[pyo3(signature = (array, log_ratios = false, silent = None, agents = None, hypotheses = None))]
    fn from_array(
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        log_ratios: bool,
        silent: Option<PyReadonlyArray2<'_, bool>>,
        agents: Option<Vec<String>>,
        hypotheses: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let array = Numbers::from_any(array)?;
        let frames = array.view().frames(log_ratios)?;
        let sides = frames.sides();
        let marks = marks(&silent, sides)?;
        let names = names(agents, hypotheses, sides, log_ratios)?;
        done(py, &Manner::default(), || {
            let path = Path::new(BELIEFS);
            if let (Frames::Double(array), None) = (&frames, &marks)
                && let Some(array) = array.as_slice()
            {
                return Ok(beliefs_from_array(path, sides, log_ratios, names, array)?.into());
            }
            let read = |first: usize, out: &mut [f64]| {
                frames.read(first, marks.as_ref(), out);
                Ok(())
            };
            Ok(beliefs_from_frames(path, sides, log_ratios, names, read)?.into())
        })
    }

    #[staticmethod]
    #[pyo3(signature = (stream, log_ratios = false))]
    fn from_arrow(py: Python<'_>, stream: PyRecordBatchReader, log_ratios: bool) -> PyResult<Self> {
        let reader = stream.into_reader()?;
        done(py, &Manner::default(), move || {
            let (path, schema) = (Path::new(BELIEFS), reader.schema());
            let broken = |error: arrow_schema::ArrowError| headwater_files::Error::File {
                path: path.into(),
                problem: error.to_string(),
            };
            let batches = reader.map(|batch| batch.map_err(broken));
            Ok(beliefs_from_batches(path, &schema, batches, log_ratios)?.into())
        })
    }

    #[staticmethod]
    #[pyo3(signature = (path, log_ratios = false))]
    fn from_file(py: Python<'_>, path: PathBuf, log_ratios: bool) -> PyResult<Self> {
        let read = done(py, &Manner::default(), || Ok(read_beliefs(&path, log_ratios)?))?;
        Ok(Beliefs { path: Some(path), ..read.into() })
    }

    /// Several beliefs as the episodes of one network.
    #[staticmethod]
    fn from_episodes(py: Python<'_>, names: Vec<String>, parts: Vec<Py<Beliefs>>) -> PyResult<Self> {
        let parts: Vec<(String, Arc<Panel>, Option<String>, Grain)> = names
            .into_iter()
            .zip(&parts)
            .map(|(name, part)| {
                let part = part.get();
                (name, part.panel.clone(), part.raised.clone(), part.grain)
            })
            .collect();
        done(py, &Manner::default(), move || {
            let raised: Vec<String> = parts.iter().filter_map(|(_, _, raised, _)| raised.clone()).collect();
            let grain = parts
                .iter()
                .map(|(.., grain)| *grain)
                .reduce(|one, other| if one == other { one } else { Grain::Double });
            let grain = grain.unwrap_or(Grain::Double);
            let episodes: Vec<(String, Panel)> =
                parts.into_iter().map(|(name, panel, ..)| (name, panel.as_ref().clone())).collect();
            let panel = Arc::new(Panel::from_episodes(&episodes)?);
            Ok(Beliefs { panel, raised: (!raised.is_empty()).then(|| raised.join("; ")), grain, path: None })
        })
    }

    /// Names of the episodes; none where there is one without a name.
    #[getter]
    fn episodes(&self) -> Option<Vec<String>> {
        self.panel.episodes().names().map(<[String]>::to_vec)
    }

    #[getter]
    fn agents(&self) -> Vec<String> {
        self.panel.roster().agents().to_vec()
    }

    #[getter]
    fn hypotheses(&self) -> Vec<String> {
        self.panel.roster().hypotheses().to_vec()
    }

    #[getter]
    fn steps(&self) -> usize {
        self.panel.steps()
    }

    #[getter]
    fn complete(&self) -> bool {
        self.panel.is_complete()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.raised.clone().into_iter().collect()
    }

    #[pyo3(signature = (log_ratios = false))]
    fn columns<'py>(&self, py: Python<'py>, log_ratios: bool) -> PyResult<Bound<'py, PyDict>> {
        let (panel, roster) = (&self.panel, self.panel.roster());
        let spoken: Vec<(usize, usize)> = (0..panel.steps())
            .flat_map(|step| (0..panel.agents()).map(move |agent| (step, agent)))
            .filter(|&(step, agent)| panel.posts(step, agent) > 0)
            .collect();
        let times: Vec<i64> = spoken.iter().map(|&(step, _)| panel.times().raw()[step]).collect();
        let time = match panel.times() {
            Times::Steps(_) => FrameColumn::Whole(times),
            Times::Instants { .. } => FrameColumn::Instants(times),
        };
        let names = roster.agents();
        let mut columns = Vec::new();
        if let Some(episodes) = panel.episodes().names() {
            let episode = |&(step, _): &(usize, usize)| episodes[panel.episodes().at(step)].clone();
            columns.push(("episode".to_owned(), FrameColumn::Text(spoken.iter().map(episode).collect())));
        }
        columns.push(("time".to_owned(), time));
        columns.push((
            "agent".to_owned(),
            FrameColumn::Text(spoken.iter().map(|&(_, agent)| names[agent].clone()).collect()),
        ));
        let hypotheses = &roster.hypotheses()[usize::from(log_ratios)..];
        let mut values = vec![Vec::with_capacity(spoken.len()); hypotheses.len()];
        let mut belief = Vec::new();
        for &(step, agent) in &spoken {
            numbers(panel, step, agent, log_ratios, &mut belief);
            values.iter_mut().zip(&belief).for_each(|(column, value)| column.push(*value));
        }
        columns.extend(hypotheses.iter().cloned().zip(values.into_iter().map(FrameColumn::Numbers)));
        let posts = spoken.iter().map(|&(step, agent)| i64::from(panel.posts(step, agent)));
        columns.push(("posts".to_owned(), FrameColumn::Whole(posts.collect())));
        table(py, columns)
    }

    #[pyo3(signature = (log_ratios = false))]
    fn array<'py>(&self, py: Python<'py>, log_ratios: bool) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let panel = &self.panel;
        let values = panel.roster().hypotheses().len() - usize::from(log_ratios);
        let mut cells = Vec::with_capacity(panel.steps() * panel.agents() * values);
        let mut belief = Vec::new();
        for step in 0..panel.steps() {
            for agent in 0..panel.agents() {
                match panel.posts(step, agent) {
                    0 => cells.extend(std::iter::repeat_n(f64::NAN, values)),
                    _ => {
                        numbers(panel, step, agent, log_ratios, &mut belief);
                        cells.extend_from_slice(&belief);
                    }
                }
            }
        }
        cells.into_pyarray(py).reshape([panel.steps(), panel.agents(), values])
    }
}

/// What an agent says at a step.
fn numbers(panel: &Panel, step: usize, agent: usize, log_ratios: bool, out: &mut Vec<f64>) {
    let frame = panel.frame(step);
    let ratios = (0..panel.ratios()).map(|ratio| frame[(agent, ratio)]);
    if log_ratios {
        out.clear();
        out.extend(ratios);
    } else {
        probabilities(ratios, out);
    }
}

/// Names for an array, where some are given.
fn names(
    agents: Option<Vec<String>>,
    hypotheses: Option<Vec<String>>,
    (_, count, values): (usize, usize, usize),
    log_ratios: bool,
) -> PyResult<Option<ArrayNames>> {
    if agents.is_none() && hypotheses.is_none() {
        return Ok(None);
    }
    let usual = Roster::numbered(count, values + usize::from(log_ratios)).map_err(PyError::from)?;
    let agents = agents.unwrap_or_else(|| usual.agents().to_vec());
    Ok(Some((agents, hypotheses.unwrap_or_else(|| usual.hypotheses().to_vec()))))
}

/// Beliefs that a network is learned from, on a graph where there is one.
pub(crate) struct GraphBeliefs {
    pub(crate) panel: Arc<Panel>,
    /// The agents that are left, where others are left out.
    pub(crate) agents: Option<Vec<usize>>,
    pub(crate) warning: Option<String>,
}

impl GraphBeliefs {
    pub(crate) fn new(beliefs: &Beliefs, graph: Option<&Graph>) -> PyResult<Self> {
        match graph {
            Some(graph) => graph.inside(&beliefs.panel),
            None => Ok(GraphBeliefs { panel: beliefs.panel.clone(), agents: None, warning: None }),
        }
    }
}

/// Who may listen to whom, by name.
#[pyclass(frozen, module = "headwater._headwater")]
pub(crate) struct Graph {
    pub(crate) edges: Edges,
}

#[pymethods]
impl Graph {
    #[staticmethod]
    fn from_file(path: PathBuf) -> PyResult<Self> {
        Ok(Graph { edges: read_edges(&path).map_err(PyError::from)? })
    }

    #[staticmethod]
    #[pyo3(signature = (sources, targets, weights = None))]
    fn from_pairs(sources: Vec<String>, targets: Vec<String>, weights: Option<Vec<f64>>) -> PyResult<Self> {
        let counts = (sources.len(), targets.len(), weights.as_ref().map_or(sources.len(), Vec::len));
        if counts.0 != counts.1 || counts.0 != counts.2 {
            return Err(PyValueError::new_err(format!(
                "graph: {} sources, {} targets and {} weights, but their numbers must be equal",
                counts.0, counts.1, counts.2
            )));
        }
        let weight = |row: usize| weights.as_ref().map(|weights| weights[row]);
        let rows = sources.into_iter().zip(targets).enumerate();
        let rows = rows.map(|(row, (source, target))| (source, target, weight(row)));
        Ok(Graph { edges: Edges::from_rows(Path::new("graph"), rows).map_err(PyError::from)? })
    }
}

impl Graph {
    /// As the command line takes a graph: agents without beliefs are left out with a warning.
    pub(crate) fn links(&self, roster: &Roster) -> PyResult<Links> {
        let (links, notes) = self.edges.graph_among(roster).map_err(PyError::from)?;
        let warnings = notes.warnings();
        if !warnings.is_empty() {
            Python::attach(|py| -> PyResult<()> {
                py.import("headwater.errors")?.call_method1("tell", (warnings,))?;
                Ok(())
            })?;
        }
        Ok(links)
    }

    /// The beliefs that a network on this graph is learned from, with a warning where agents outside it are left out.
    pub(crate) fn inside(&self, panel: &Arc<Panel>) -> PyResult<GraphBeliefs> {
        Ok(match self.edges.inside(panel.roster()) {
            Some((agents, warning)) => GraphBeliefs {
                panel: Arc::new(panel.among(&agents).map_err(PyError::from)?),
                agents: Some(agents),
                warning: Some(warning),
            },
            None => GraphBeliefs { panel: panel.clone(), agents: None, warning: None },
        })
    }

    /// The speakers each listener may listen to.
    pub(crate) fn support(&self, roster: &Roster) -> PyResult<Vec<Vec<usize>>> {
        Ok(self.links(roster)?.speakers().to_vec())
    }

    /// Those edges that are between known agents, as for a page; none where there is none.
    pub(crate) fn among(&self, roster: &Roster) -> Result<Option<Links>, PyError> {
        let edges = self.edges.clone().matched(roster).0.among(roster);
        Ok(if edges.is_empty() { None } else { Some(edges.graph(roster)?) })
    }
}

/// A simulation with the options of `headwater simulate`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are the command's options")]
#[pyo3(signature = (
    network = "er", agents = 20, edge_probability = 0.2, blocks = 4, weights = "uniform", graph = None,
    allow_reducible = false, hypotheses = 5, likelihoods = "appendix", influential = None, influential_scale = 0.5,
    other_scale = 0.05, truth = 0, adaptation = 0.05, steps = 1000, burn_in = 500, silence = 0.0, changes = Vec::new(),
    seed = 21, progress = None
))]
pub(crate) fn simulate(
    py: Python<'_>,
    network: &str,
    agents: usize,
    edge_probability: f64,
    blocks: usize,
    weights: &str,
    graph: Option<PyRef<'_, Graph>>,
    allow_reducible: bool,
    hypotheses: usize,
    likelihoods: &str,
    influential: Option<usize>,
    influential_scale: f64,
    other_scale: f64,
    truth: usize,
    adaptation: f64,
    steps: usize,
    burn_in: usize,
    silence: f64,
    changes: Vec<String>,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Beliefs, Model)> {
    let edges = graph.as_ref().map(|graph| &graph.edges);
    let names = edges.map(Edges::agents);
    let agents = names.as_ref().map_or(agents, Vec::len);
    let likelihoods: Likelihoods = likelihoods.parse().map_err(PyError::Core)?;
    let changes: Vec<ScheduledChange> =
        changes.iter().map(|change| change.parse().map_err(PyError::Core)).collect::<Result<_, _>>()?;
    let params = WorldParams {
        agents,
        network: match network {
            "er" => NetworkShape::Er,
            "star" => NetworkShape::Star,
            "preferential" => NetworkShape::Preferential,
            "blocks" => NetworkShape::Blocks { groups: blocks },
            other => return Err(no_choice("network", other, "er, star, preferential or blocks")),
        },
        edge_probability,
        rule: match weights {
            "uniform" => Rule::Uniform,
            "metropolis" => Rule::Metropolis,
            "random" => Rule::Random,
            other => return Err(no_choice("weights", other, "uniform, metropolis or random")),
        },
        hypotheses,
        likelihoods,
        influential: influential.unwrap_or(WorldParams::default().influential.min(agents)),
        influential_scale,
        other_scale,
        truth,
        adaptation,
        steps,
        burn_in,
        silence,
        allow_reducible,
        changes,
        seed,
    };
    done(py, &Manner { progress, threads: None }, || {
        let mut world = match (edges, names) {
            (Some(edges), Some(names)) => {
                let roster = Roster::new(names.iter().cloned(), ["h0", "h1"])?;
                World::on_graph(params, names, &edges.indexed(&roster)?)?
            }
            _ => World::new(params)?,
        };
        let panel = run(&mut world)?;
        Ok((
            Beliefs { panel: Arc::new(panel), raised: None, grain: Grain::Double, path: None },
            Model::from(world.truth()),
        ))
    })
}
