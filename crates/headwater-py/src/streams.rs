//! Streams: a learner that takes frame after frame, and can be put to rest in a pickle.

use crate::beliefs::{BELIEFS, Frames, Graph, Numbers, marks};
use crate::learners::{constraint, memory, paper, support};
use crate::model::{Model, change_json};
use crate::trouble::Trouble;
use crate::work::{Manner, done};
use faer::MatRef;
use headwater::learn::gsl::Gsl;
use headwater::learn::track::{Tracker as Watching, Tracking};
use headwater::learn::whitened::Whitened;
use headwater::model::Change;
use headwater::{Roster, watch};
use headwater_files::frame_of;
use numpy::PyReadonlyArray2;
use numpy::ndarray::ArrayView2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Something that takes frames.
trait Learner: Serialize + DeserializeOwned + Send {
    fn roster(&self) -> &Roster;
    fn take(&mut self, frame: &[f64], silent: &[bool]) -> Result<Option<Change>, headwater::Error>;
}

impl Learner for Watching {
    fn roster(&self) -> &Roster {
        Watching::roster(self)
    }

    fn take(&mut self, frame: &[f64], silent: &[bool]) -> Result<Option<Change>, headwater::Error> {
        self.push_partly(frame, if silent.contains(&true) { silent } else { &[] })
    }
}

impl Learner for Gsl {
    fn roster(&self) -> &Roster {
        Gsl::roster(self)
    }

    fn take(&mut self, frame: &[f64], _silent: &[bool]) -> Result<Option<Change>, headwater::Error> {
        let (agents, ratios) = (self.roster().agents().len(), self.roster().ratios());
        self.learn(MatRef::from_column_major_slice(frame, agents, ratios)).map(|_| None)
    }
}

/// A learner, and what everybody last said: the silent repeat it. Who has not spoken yet is neutral.
#[derive(Serialize, Deserialize)]
struct Stream<L> {
    learner: L,
    last: Vec<f64>,
    seen: usize,
}

impl<L: Learner> Stream<L> {
    fn new(learner: L) -> Self {
        let last = vec![0.0; learner.roster().agents().len() * learner.roster().ratios()];
        Stream { learner, last, seen: 0 }
    }

    fn push(
        &mut self,
        frames: &Frames<'_>,
        silent: Option<&ArrayView2<'_, bool>>,
        log_ratios: bool,
    ) -> Result<Vec<Change>, Trouble> {
        let (steps, agents, values) = frames.sides();
        let mut frame = vec![0.0; agents * values];
        let mut changes = Vec::new();
        let stage = watch::stage("following", steps as u64);
        for step in 0..steps {
            watch::check()?;
            frames.frame(step, silent, &mut frame);
            let mut said = self.last.clone();
            let silent = frame_of(Path::new(BELIEFS), step, &frame, self.learner.roster(), log_ratios, &mut said)?;
            changes.extend(self.learner.take(&said, &silent)?);
            self.last = said;
            self.seen += 1;
            stage.advance();
        }
        Ok(changes)
    }
}

/// Takes frames; a single one on this thread, many under watch.
fn take<L: Learner>(
    py: Python<'_>,
    stream: &Mutex<Stream<L>>,
    frames: &Bound<'_, PyAny>,
    log_ratios: bool,
    silent: &Option<PyReadonlyArray2<'_, bool>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Change>> {
    let array = Numbers::of(frames)?;
    let frames = array.view().frames(log_ratios)?;
    let sides = frames.sides();
    let marks = marks(silent, sides)?;
    let work = || {
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        let roster = stream.learner.roster();
        let wanted = (roster.agents().len(), roster.hypotheses().len() - usize::from(log_ratios));
        if (sides.1, sides.2) != wanted {
            return Err(Trouble::Core(headwater::Error::Shape {
                what: "frame",
                met: format!("{}×{}", sides.1, sides.2),
                wanted: format!("{}×{}", wanted.0, wanted.1),
            }));
        }
        stream.push(&frames, marks.as_ref(), log_ratios)
    };
    match sides.0 {
        1 => Ok(py.detach(work)?),
        _ => done(py, &Manner { progress, threads: None }, work),
    }
}

fn saved<'py, L: Learner>(py: Python<'py>, stream: &Mutex<Stream<L>>) -> PyResult<Bound<'py, PyBytes>> {
    let mut bytes = Vec::new();
    let written = py.detach(|| {
        ciborium::into_writer(&*stream.lock().unwrap_or_else(PoisonError::into_inner), &mut bytes)
            .map_err(|error| error.to_string())
    });
    written.map_err(|error| PyValueError::new_err(format!("the stream cannot be saved: {error}")))?;
    Ok(PyBytes::new(py, &bytes))
}

fn loaded<L: Learner>(data: &[u8]) -> PyResult<Mutex<Stream<L>>> {
    ciborium::from_reader(data)
        .map(Mutex::new)
        .map_err(|error| PyValueError::new_err(format!("these bytes are no saved stream: {error}")))
}

fn roster(agents: Vec<String>, hypotheses: Vec<String>) -> PyResult<Roster> {
    Ok(Roster::new(agents, hypotheses).map_err(Trouble::from)?)
}

/// The whitened learner on a stream.
#[pyclass(frozen, module = "headwater._headwater")]
pub(crate) struct Tracker(Mutex<Stream<Watching>>);

#[pymethods]
impl Tracker {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are the learner's parameters")]
    #[pyo3(signature = (
        agents, hypotheses, adaptation = None, constraint = "simplex", ridge = 0.0, symbols = true, forget = None,
        recent = None, graph = None
    ))]
    fn new(
        agents: Vec<String>,
        hypotheses: Vec<String>,
        adaptation: Option<f64>,
        constraint: &str,
        ridge: f64,
        symbols: bool,
        forget: Option<f64>,
        recent: Option<usize>,
        graph: Option<PyRef<'_, Graph>>,
    ) -> PyResult<Self> {
        let roster = roster(agents, hypotheses)?;
        let whitened = Whitened {
            adaptation,
            constraint: self::constraint(constraint)?,
            ridge,
            symbols,
            support: support(graph.as_deref(), &roster)?,
            ..Whitened::default()
        };
        let params = Tracking { whitened, memory: memory(forget, recent)?, window: None };
        Ok(Tracker(Mutex::new(Stream::new(Watching::new(roster, params).map_err(Trouble::from)?))))
    }

    #[pyo3(signature = (frames, log_ratios = false, silent = None, progress = None))]
    fn push(
        &self,
        py: Python<'_>,
        frames: &Bound<'_, PyAny>,
        log_ratios: bool,
        silent: Option<PyReadonlyArray2<'_, bool>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let changes = take(py, &self.0, frames, log_ratios, &silent, progress)?;
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let roster = stream.learner.roster();
        let changes: Vec<_> = changes.iter().map(|change| change_json(change, roster, change.step.into())).collect();
        Ok(serde_json::Value::from(changes).to_string())
    }

    #[getter]
    fn seen(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seen
    }

    #[getter]
    fn agents(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).learner.roster().agents().to_vec()
    }

    fn model(&self, py: Python<'_>) -> PyResult<Model> {
        done(py, &Manner::default(), || {
            Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).learner.model()?.into())
        })
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        saved(py, &self.0)
    }

    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        loaded(data).map(Tracker)
    }
}

/// The paper's learner on a stream.
#[pyclass(frozen, module = "headwater._headwater")]
pub(crate) struct GslStream(Mutex<Stream<Gsl>>);

#[pymethods]
impl GslStream {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are the learner's parameters")]
    #[pyo3(signature = (
        agents, hypotheses, adaptation, window = None, learning_rate = None, batch = None, sparsity = None,
        constraint = "free", graph = None
    ))]
    fn new(
        agents: Vec<String>,
        hypotheses: Vec<String>,
        adaptation: f64,
        window: Option<usize>,
        learning_rate: Option<f64>,
        batch: Option<usize>,
        sparsity: Option<f64>,
        constraint: &str,
        graph: Option<PyRef<'_, Graph>>,
    ) -> PyResult<Self> {
        let roster = roster(agents, hypotheses)?;
        let params = paper(adaptation, window, learning_rate, batch, sparsity, None, constraint)?;
        let support = support(graph.as_deref(), &roster)?;
        let mut learner = Gsl::new(roster, params).map_err(Trouble::from)?;
        if let Some(support) = support {
            learner = learner.within(support).map_err(Trouble::from)?;
        }
        Ok(GslStream(Mutex::new(Stream::new(learner))))
    }

    #[pyo3(signature = (frames, log_ratios = false, silent = None, progress = None))]
    fn push(
        &self,
        py: Python<'_>,
        frames: &Bound<'_, PyAny>,
        log_ratios: bool,
        silent: Option<PyReadonlyArray2<'_, bool>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        take(py, &self.0, frames, log_ratios, &silent, progress).map(drop)
    }

    #[getter]
    fn seen(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seen
    }

    #[getter]
    fn agents(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).learner.roster().agents().to_vec()
    }

    fn model(&self, py: Python<'_>) -> PyResult<Model> {
        done(py, &Manner::default(), || {
            Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).learner.model()?.into())
        })
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        saved(py, &self.0)
    }

    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        loaded(data).map(GslStream)
    }
}
