//! Posts and commands: texts scored, and any command of the command line inside this process.

use crate::error::{PyError, no_choice};
use crate::work::{Manner, done};
use headwater::progress;
use headwater_score::{Builtin, ModelSource, Scorer, Sentiment};
use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use std::ffi::OsString;

/// Texts scored between two looks.
const AT_ONCE: usize = 1024;

/// n×3 probabilities: negative, neutral, positive.
#[pyfunction]
#[pyo3(signature = (texts, scorer = "builtin", model = None, progress = None, threads = None))]
pub(crate) fn score<'py>(
    py: Python<'py>,
    texts: Vec<PyBackedStr>,
    scorer: &str,
    model: Option<&str>,
    progress: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let wanted = match (scorer, model) {
        ("builtin", None) => None,
        ("builtin", Some(_)) => {
            return Err(PyValueError::new_err("model is for scorer=\"roberta\"; builtin needs none"));
        }
        ("roberta", Some(model)) => Some(model),
        ("roberta", None) => {
            return Err(PyValueError::new_err(
                "scorer=\"roberta\" needs model\nhint: give the folder of a model, such as a copy of twitter-roberta-base-sentiment",
            ));
        }
        (other, _) => return Err(no_choice("scorer", other, "builtin or roberta")),
    };
    let count = texts.len();
    let scores = done(py, &Manner { progress, threads }, || {
        let scorer: Box<dyn Scorer> = match wanted {
            None => Box::new(Builtin::new()),
            Some(model) => open(model)?,
        };
        let stage = progress::stage("scoring", count as u64);
        let mut scores: Vec<f64> = Vec::with_capacity(3 * count);
        for some in texts.chunks(AT_ONCE) {
            progress::check()?;
            let some: Vec<&str> = some.iter().map(|text| &**text).collect();
            let found = scorer.score(&some)?;
            scores.extend(
                found.iter().flat_map(|Sentiment { negative, neutral, positive }| [negative, neutral, positive]),
            );
            stage.at((scores.len() / 3) as u64);
        }
        Ok(scores)
    })?;
    scores.into_pyarray(py).reshape([count, 3])
}

/// A text model, fetched where it is the name of one on the hub.
fn open(model: &str) -> Result<Box<dyn Scorer>, PyError> {
    let mut stage = None;
    let mut told = |_: &str, done: u64, total: u64| {
        if done == 0 {
            // The old one is over before the new one begins.
            stage = None;
        }
        stage.get_or_insert_with(|| progress::stage("fetching", total)).at(done);
    };
    let source = ModelSource::new(model);
    let folder = source.folder(&mut told)?;
    drop(stage);
    Ok(ModelSource::new(folder.to_string_lossy()).open(&mut |_, _, _| ())?)
}

/// A command inside this process: its result as text, and its warnings.
#[pyfunction]
#[pyo3(signature = (arguments, progress = None, threads = None))]
pub(crate) fn call(
    py: Python<'_>,
    arguments: Vec<OsString>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<(String, Vec<String>)> {
    let arguments = std::iter::once(OsString::from("headwater")).chain(arguments);
    let arguments: Vec<OsString> = arguments.collect();
    done(py, &Manner { progress, threads }, || Ok(headwater_cli::call(arguments)?))
}

/// The command line: the exit code.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> i32 {
    py.detach(|| headwater_cli::run(arguments))
}
