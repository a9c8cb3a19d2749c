//! Errors: which Python exception each of ours becomes. The text is the command line's, its hint on a second line.
//!
//! | ours | Python's |
//! |---|---|
//! | a name that is not there | `UnknownName`, a `KeyError` |
//! | something that cannot be computed, or diverged; a model hub that does not answer | `RuntimeError` |
//! | the operating system said no | `OSError`, `FileNotFoundError`, `PermissionError` |
//! | stopped | `KeyboardInterrupt` |
//! | everything else | `ValueError` |

use crate::hints::{posts_text, score_text};
use headwater::Error as Core;
use headwater_cli::CliError;
use headwater_files::Error as Files;
use headwater_posts::Error as Posts;
use headwater_report::Error as Shown;
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
    Shown(Shown),
    Command(CliError),
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
py_errors!(Core => Core, Files => Files, Posts => Posts, Score => Score, Shown => Shown, CliError => Command, PyErr => Python);

/// A class of exceptions.
#[derive(Clone, Copy)]
enum Kind {
    Value,
    Runtime,
    Unknown,
    Stopped,
    System(ErrorKind),
}

fn of_core(error: &Core) -> Kind {
    match error {
        Core::UnknownName { .. } => Kind::Unknown,
        Core::Diverged { .. } | Core::Undefined { .. } => Kind::Runtime,
        Core::Stopped => Kind::Stopped,
        _ => Kind::Value,
    }
}

fn of_files(error: &Files) -> Kind {
    match error {
        Files::Io { source, .. } => Kind::System(source.kind()),
        Files::NoFolder { .. } => Kind::System(ErrorKind::NotFound),
        Files::Data { source, .. } => of_core(source),
        _ => Kind::Value,
    }
}

fn of_posts(error: &Posts) -> Kind {
    match error {
        Posts::Core(error) => of_core(error),
        Posts::Files(error) => of_files(error),
        Posts::Io { source, .. } => Kind::System(source.kind()),
        Posts::Score(error) => of_score(error),
        _ => Kind::Value,
    }
}

fn of_score(error: &Score) -> Kind {
    match error {
        Score::Stopped(error) => of_core(error),
        Score::Hub { .. } => Kind::Runtime,
        _ => Kind::Value,
    }
}

impl From<PyError> for PyErr {
    fn from(trouble: PyError) -> Self {
        let (kind, text) = match trouble {
            PyError::Python(error) => return error,
            PyError::Core(error) => (of_core(&error), shown(error)),
            PyError::Files(error) => (of_files(&error), shown(error)),
            PyError::Posts(error) => (of_posts(&error), posts_text(error)),
            PyError::Score(error) => (of_score(&error), score_text(error)),
            PyError::Shown(Shown::Model(error)) => (of_core(&error), shown(error)),
            PyError::Shown(error) => (Kind::Value, shown(error)),
            PyError::Command(failure @ CliError::Interrupted { .. }) => (Kind::Stopped, failure.to_string()),
            PyError::Command(CliError::File { message, hint, kind }) => {
                (Kind::System(kind), CliError::File { message, hint, kind }.to_string())
            }
            PyError::Command(failure) => (Kind::Value, failure.to_string()),
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

/// An error in the words of the command line, its hint on a second line.
fn shown(error: impl Into<CliError>) -> String {
    error.into().to_string()
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
