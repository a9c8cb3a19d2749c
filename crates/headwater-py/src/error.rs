//! Errors: which Python exception each of ours becomes. The text is the library's; a hint in the words of keyword arguments
//! follows on a second line ([`crate::hints`]).
//!
//! | ours | Python's |
//! |---|---|
//! | a name that is not there | `UnknownName`, a `KeyError` |
//! | something that cannot be computed, or diverged; a model hub that does not answer | `RuntimeError` |
//! | the operating system said no | `OSError`, `FileNotFoundError`, `PermissionError` |
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

/// Anything that can go wrong behind Python.
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
enum Kind {
    Value,
    Runtime,
    Unknown,
    Stopped,
    System(ErrorKind),
}

fn core_kind(error: &Core) -> Kind {
    match error {
        Core::UnknownName { .. } => Kind::Unknown,
        Core::Diverged { .. } | Core::Undefined { .. } => Kind::Runtime,
        Core::Stopped => Kind::Stopped,
        _ => Kind::Value,
    }
}

fn files_kind(error: &Files) -> Kind {
    match error {
        Files::Io { source, .. } => Kind::System(source.kind()),
        Files::NoFolder { .. } => Kind::System(ErrorKind::NotFound),
        Files::Data { source, .. } => core_kind(source),
        _ => Kind::Value,
    }
}

fn posts_kind(error: &Posts) -> Kind {
    match error {
        Posts::Core(error) => core_kind(error),
        Posts::Files(error) => files_kind(error),
        Posts::Io { source, .. } => Kind::System(source.kind()),
        Posts::Score(error) => score_kind(error),
        _ => Kind::Value,
    }
}

fn score_kind(error: &Score) -> Kind {
    match error {
        Score::Stopped(error) => core_kind(error),
        Score::Hub { .. } => Kind::Runtime,
        _ => Kind::Value,
    }
}

fn discover_kind(error: &Discover) -> Kind {
    match error {
        Discover::Unnamed { error, .. } => discover_kind(error),
        Discover::Core(error) | Discover::Data { source: error, .. } => core_kind(error),
        Discover::Files(error) => files_kind(error),
        Discover::Posts(error) => posts_kind(error),
        Discover::NothingKept { source, .. } => posts_kind(source),
        Discover::Score(error) => score_kind(error),
        Discover::Read { source, .. } | Discover::Write { source, .. } | Discover::Key { source, .. } => {
            Kind::System(source.kind())
        }
        _ => Kind::Value,
    }
}

fn report_kind(error: &Report) -> Kind {
    match error {
        Report::Model(error) => core_kind(error),
        Report::Files(error) => files_kind(error),
        Report::Write { source, .. } => Kind::System(source.kind()),
        _ => Kind::Value,
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
            Kind::Value => PyValueError::new_err(text),
            Kind::Runtime => PyRuntimeError::new_err(text),
            Kind::Unknown => unknown(text),
            Kind::Stopped => PyKeyboardInterrupt::new_err(text),
            Kind::System(ErrorKind::NotFound) => PyFileNotFoundError::new_err(text),
            Kind::System(ErrorKind::PermissionDenied) => PyPermissionError::new_err(text),
            Kind::System(_) => PyOSError::new_err(text),
        }
    }
}

/// A `KeyError` that shows its text, not the text's representation: that takes a class of Python's own.
fn unknown(text: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("headwater.errors").and_then(|module| module.getattr("UnknownName"));
        match class.and_then(|class| class.call1((text,))) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    })
}

/// A word that is none of those known.
pub(crate) fn no_choice(name: &str, met: &str, range: &str) -> PyErr {
    PyValueError::new_err(format!("{name} is {met:?}, but must be {range}"))
}
