//! Streams: learners that take frame after frame and can be pickled.

use crate::beliefs::{BELIEFS, Frames, Graph, Numbers, marks};
use crate::error::PyError;
use crate::learners::{constraint, memory, paper, support};
use crate::model::{Model, change_json};
use crate::work::{Manner, done};
use headwater::learn::StreamingLearner;
use headwater::learn::gsl::Gsl;
use headwater::learn::track::{TrackParams, Tracker as Watching};
use headwater::learn::whitened::WhitenedParams;
use headwater::model::DetectedChange;
use headwater::{Frame, Roster, fit, progress};
use headwater_files::frame_from_values;
use numpy::PyReadonlyArray2;
use numpy::ndarray::ArrayView2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A learner and the last belief of each agent, which silent agents repeat; agents who have not spoken yet are neutral.
#[derive(Serialize, Deserialize)]
struct Stream<L> {
    learner: L,
    last: Vec<f64>,
    seen: usize,
    /// Beliefs that were repeated.
    repeated: usize,
    /// Detected changes.
    changes: Vec<DetectedChange>,
}

impl<L: StreamingLearner> Stream<L> {
    fn new(learner: L) -> Self {
        let last = vec![0.0; learner.roster().agents().len() * learner.roster().ratios()];
        Stream { learner, last, seen: 0, repeated: 0, changes: Vec::new() }
    }

    fn push(
        &mut self,
        frames: &Frames<'_>,
        silent: Option<&ArrayView2<'_, bool>>,
        log_ratios: bool,
    ) -> Result<(), PyError> {
        let (steps, agents, values) = frames.sides();
        let mut frame = vec![0.0; agents * values];
        let stage = progress::stage("following", steps as u64);
        for step in 0..steps {
            progress::check()?;
            frames.frame(step, silent, &mut frame);
            let mut said = self.last.clone();
            let silent =
                frame_from_values(Path::new(BELIEFS), step, &frame, self.learner.roster(), log_ratios, &mut said)?;
            let observed = Frame::new(self.learner.roster(), &said)?.with_filled(&silent)?;
            self.changes.extend(self.learner.observe(&observed)?.changes);
            self.last = said;
            self.seen += 1;
            self.repeated += silent.iter().filter(|silent| **silent).count();
            stage.advance();
        }
        Ok(())
    }

    fn model(&self) -> Result<Model, PyError> {
        let mut model = self.learner.model()?;
        if self.repeated > 0 {
            let cells = self.seen * self.learner.roster().agents().len();
            model.diagnostics.warnings.insert(0, fit::repeated(self.repeated, cells));
        }
        Ok(model.into())
    }
}

/// A stream that several Python threads may share; waiting for it releases the interpreter.
struct Held<L> {
    roster: Roster,
    stream: Mutex<Stream<L>>,
}

impl<L: StreamingLearner + Send> Held<L> {
    fn new(stream: Stream<L>) -> Self {
        Held { roster: stream.learner.roster().clone(), stream: Mutex::new(stream) }
    }

    fn lock(&self) -> MutexGuard<'_, Stream<L>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes frames; a single one on this thread, many under watch.
    fn push(
        &self,
        py: Python<'_>,
        frames: &Bound<'_, PyAny>,
        log_ratios: bool,
        silent: &Option<PyReadonlyArray2<'_, bool>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let array = Numbers::from_any(frames)?;
        let frames = array.view().frames(log_ratios)?;
        let sides = frames.sides();
        let marks = marks(silent, sides)?;
        let wanted = (self.roster.agents().len(), self.roster.hypotheses().len() - usize::from(log_ratios));
        if (sides.1, sides.2) != wanted {
            return Err(PyError::Core(headwater::Error::Shape {
                what: "frame",
                met: format!("{}×{}", sides.1, sides.2),
                wanted: format!("{}×{}", wanted.0, wanted.1),
            })
            .into());
        }
        let work = || self.lock().push(&frames, marks.as_ref(), log_ratios);
        match sides.0 {
            1 => Ok(py.detach(work)?),
            _ => done(py, &Manner { progress, threads: None }, work),
        }
    }

    fn seen(&self, py: Python<'_>) -> usize {
        py.detach(|| self.lock().seen)
    }

    fn model(&self, py: Python<'_>) -> PyResult<Model> {
        done(py, &Manner::default(), || self.lock().model())
    }

    fn changes(&self, py: Python<'_>) -> String {
        let changes = py.detach(|| self.lock().changes.clone());
        let changes = changes.iter().map(|change| change_json(change, &self.roster, change.step.into()));
        Value::from(changes.collect::<Vec<_>>()).to_string()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        let written = py.detach(|| ciborium::into_writer(&*self.lock(), &mut bytes).map_err(|error| error.to_string()));
        written.map_err(|error| PyValueError::new_err(format!("the stream cannot be saved: {error}")))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        ciborium::from_reader(data)
            .map(Held::new)
            .map_err(|error| PyValueError::new_err(format!("not a saved stream: {error}")))
    }
}

fn roster(agents: Vec<String>, hypotheses: Vec<String>) -> PyResult<Roster> {
    Ok(Roster::new(agents, hypotheses).map_err(PyError::from)?)
}

/// The methods of a stream class beside its constructor, which differs.
macro_rules! stream_class {
    ($class:ident, $($constructor:tt)*) => {
        #[pymethods]
        impl $class {
            $($constructor)*

            #[pyo3(signature = (frames, log_ratios = false, silent = None, progress = None))]
            fn push(
                &self,
                py: Python<'_>,
                frames: &Bound<'_, PyAny>,
                log_ratios: bool,
                silent: Option<PyReadonlyArray2<'_, bool>>,
                progress: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<()> {
                self.0.push(py, frames, log_ratios, &silent, progress)
            }

            #[getter]
            fn seen(&self, py: Python<'_>) -> usize {
                self.0.seen(py)
            }

            #[getter]
            fn agents(&self) -> Vec<String> {
                self.0.roster.agents().to_vec()
            }

            #[getter]
            fn hypotheses(&self) -> Vec<String> {
                self.0.roster.hypotheses().to_vec()
            }

            fn changes(&self, py: Python<'_>) -> String {
                self.0.changes(py)
            }

            fn model(&self, py: Python<'_>) -> PyResult<Model> {
                self.0.model(py)
            }

            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                self.0.to_bytes(py)
            }

            #[staticmethod]
            fn from_bytes(data: &[u8]) -> PyResult<Self> {
                Held::from_bytes(data).map($class)
            }
        }
    };
}

/// The whitened learner on a stream.
#[pyclass(frozen, module = "headwater._headwater")]
pub(crate) struct Tracker(Held<Watching>);

stream_class! {
    Tracker,
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
        let whitened = WhitenedParams {
            adaptation,
            constraint: self::constraint(constraint)?,
            ridge,
            symbols,
            support: support(graph.as_deref(), &roster)?,
            ..WhitenedParams::default()
        };
        let params = TrackParams { whitened, memory: memory(forget, recent)?, window: None };
        Ok(Tracker(Held::new(Stream::new(Watching::new(roster, params).map_err(PyError::from)?))))
    }
}

/// The paper's learner on a stream.
#[pyclass(frozen, module = "headwater._headwater")]
pub(crate) struct GslStream(Held<Gsl>);

stream_class! {
    GslStream,
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
        let mut learner = Gsl::new(roster, params).map_err(PyError::from)?;
        if let Some(support) = support {
            learner = learner.within(support).map_err(PyError::from)?;
        }
        Ok(GslStream(Held::new(Stream::new(learner))))
    }
}
