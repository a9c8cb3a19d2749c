//! Errors: which Python exception each of ours becomes. The text is the library's; a hint in the words of keyword arguments
//! follows on a second line ([`crate::hints`]).
//!
//! | ours | Python's |
//! |---|---|
//! | an unknown name | `UnknownName`, a `KeyError` |
//! | something that cannot be computed, or diverged; a model hub that does not answer | `RuntimeError` |
//! | an error of the operating system | `OSError`, `FileNotFoundError`, `PermissionError` |
//! | stopped | `KeyboardInterrupt` |
//! | everything else | `ValueError` |

use crate::hints::{core_text, discover_text, files_text, posts_text, report_text, score_text};
use headwater::Error as Core;
use headwater_discover::Error as Discover;
use headwater_files::Error as Files;
use headwater_posts::Error as Posts;
use headwater_report::Error as Report;
use headwater_score::Error as Score;
use pyo3::exceptions::{
    PyFileNotFoundError, PyKeyboardInterrupt, PyOSError, PyPermissionError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use std::io::ErrorKind;

/// Any error of the compiled part.
pub(crate) enum PyError {
    Core(Core),
    Files(Files),
    Posts(Posts),
    Score(Score),
    Discover(Discover),
    Report(Report),
    Python(PyErr),
}

macro_rules! py_errors {
    ($($from:ty => $to:ident),*) => {
        $(impl From<$from> for PyError {
            fn from(error: $from) -> Self {
                PyError::$to(error)
            }
        })*
    };
}
py_errors!(
    Core => Core, Files => Files, Posts => Posts, Score => Score, Discover => Discover, Report => Report,
    PyErr => Python
);

/// A class of exceptions.
#[derive(Clone, Copy)]
enum ExceptionKind {
    Value,
    Runtime,
    Unknown,
    Stopped,
    System(ErrorKind),
}

fn core_kind(error: &Core) -> ExceptionKind {
    match error {
        Core::UnknownName { .. } => ExceptionKind::Unknown,
        Core::Diverged { .. } | Core::Undefined { .. } => ExceptionKind::Runtime,
        Core::Stopped => ExceptionKind::Stopped,
        _ => ExceptionKind::Value,
    }
}

fn files_kind(error: &Files) -> ExceptionKind {
    match error {
        Files::Io { source, .. } => ExceptionKind::System(source.kind()),
        Files::NoFolder { .. } => ExceptionKind::System(ErrorKind::NotFound),
        Files::Data { source, .. } => core_kind(source),
        _ => ExceptionKind::Value,
    }
}

fn posts_kind(error: &Posts) -> ExceptionKind {
    match error {
        Posts::Core(error) => core_kind(error),
        Posts::Files(error) => files_kind(error),
        Posts::Io { source, .. } => ExceptionKind::System(source.kind()),
        Posts::Score(error) => score_kind(error),
        _ => ExceptionKind::Value,
    }
}

fn score_kind(error: &Score) -> ExceptionKind {
    match error {
        Score::Stopped(error) => core_kind(error),
        Score::Hub { .. } => ExceptionKind::Runtime,
        _ => ExceptionKind::Value,
    }
}

fn discover_kind(error: &Discover) -> ExceptionKind {
    match error {
        Discover::Unnamed { error, .. } => discover_kind(error),
        Discover::Core(error) | Discover::Data { source: error, .. } => core_kind(error),
        Discover::Files(error) => files_kind(error),
        Discover::Posts(error) => posts_kind(error),
        Discover::NothingKept { source, .. } => posts_kind(source),
        Discover::Score(error) => score_kind(error),
        Discover::Read { source, .. } | Discover::Write { source, .. } | Discover::Key { source, .. } => {
            ExceptionKind::System(source.kind())
        }
        _ => ExceptionKind::Value,
    }
}

fn report_kind(error: &Report) -> ExceptionKind {
    match error {
        Report::Model(error) => core_kind(error),
        Report::Files(error) => files_kind(error),
        Report::Write { source, .. } => ExceptionKind::System(source.kind()),
        _ => ExceptionKind::Value,
    }
}

impl From<PyError> for PyErr {
    fn from(error: PyError) -> Self {
        let (kind, text) = match error {
            PyError::Python(error) => return error,
            PyError::Core(error) => (core_kind(&error), core_text(&error)),
            PyError::Files(error) => (files_kind(&error), files_text(&error)),
            PyError::Posts(error) => (posts_kind(&error), posts_text(&error)),
            PyError::Score(error) => (score_kind(&error), score_text(&error)),
            PyError::Discover(error) => (discover_kind(&error), discover_text(&error)),
            PyError::Report(error) => (report_kind(&error), report_text(&error)),
        };
        match kind {
            ExceptionKind::Value => PyValueError::new_err(text),
            ExceptionKind::Runtime => PyRuntimeError::new_err(text),
            ExceptionKind::Unknown => unknown(text),
            ExceptionKind::Stopped => PyKeyboardInterrupt::new_err(text),
            ExceptionKind::System(ErrorKind::NotFound) => PyFileNotFoundError::new_err(text),
            ExceptionKind::System(ErrorKind::PermissionDenied) => PyPermissionError::new_err(text),
            ExceptionKind::System(_) => PyOSError::new_err(text),
        }
    }
}

/// A `KeyError` that shows its text and not the representation of the text, which needs a class defined in Python.
fn unknown(text: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("headwater.errors").and_then(|module| module.getattr("UnknownName"));
        match class.and_then(|class| class.call1((text,))) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    })
}

/// An argument that is none of the allowed words.
pub(crate) fn no_choice(name: &str, met: &str, range: &str) -> PyErr {
    PyValueError::new_err(format!("{name} is {met:?}, but must be {range}"))
}
