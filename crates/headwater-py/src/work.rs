//! Long work: on threads of its own, without the interpreter lock, while the calling thread looks after progress and Ctrl-C.

use crate::error::PyError;
use headwater::progress::{Progress, ProgressState};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Who is told how far the work is, and how many threads do it.
#[derive(Default)]
pub(crate) struct Manner<'a, 'py> {
    pub(crate) progress: Option<&'a Bound<'py, PyAny>>,
    pub(crate) threads: Option<usize>,
}

/// Does work. The threads end with it, so that nothing is left behind for a process that forks.
pub(crate) fn done<T: Send>(
    py: Python<'_>,
    manner: &Manner<'_, '_>,
    work: impl FnOnce() -> Result<T, PyError> + Send,
) -> PyResult<T> {
    done_watched(py, manner, |_| work())
}

/// The same for work that takes its progress as an argument.
pub(crate) fn done_watched<T: Send>(
    py: Python<'_>,
    manner: &Manner<'_, '_>,
    work: impl FnOnce(&Progress) -> Result<T, PyError> + Send,
) -> PyResult<T> {
    let watch = Progress::default();
    let threads = manner.threads;
    std::thread::scope(|scope| {
        let (working, finished) = channel::<()>();
        // One thread looks at it; the lock is what the types ask for.
        let finished = Mutex::new(finished);
        let watched = watch.clone();
        let work = scope.spawn(move || {
            // Dropped at the end of the work, come what may, which ends the looking.
            let _working = working;
            watched.over(threads, || work(&watched))?
        });
        let mut raised = None;
        let mut told = None;
        let over = || match finished.lock() {
            Ok(finished) => finished.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout),
            Err(_) => true,
        };
        while !py.detach(over) {
            if raised.is_some() {
                continue;
            }
            let looked = py.check_signals().and_then(|()| tell(manner, watch.progress(), &mut told));
            raised = looked.err();
            if raised.is_some() {
                watch.stop();
            }
        }
        let outcome = match py.detach(|| work.join()) {
            Ok(outcome) => outcome,
            // A bug of ours, and no reason to end the interpreter.
            Err(panic) => Err(fault(panic.as_ref()).into()),
        };
        match raised {
            Some(error) => Err(error),
            None => {
                // So that a bar ends full.
                tell(manner, watch.progress(), &mut told)?;
                Ok(outcome?)
            }
        }
    })
}

/// What a panic said.
fn fault(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    PyRuntimeError::new_err(format!(
        "an error inside headwater: {}\nhint: please report it with what led to it",
        text.unwrap_or("no more is known")
    ))
}

/// Tells what is new.
fn tell(manner: &Manner<'_, '_>, now: ProgressState, told: &mut Option<ProgressState>) -> PyResult<()> {
    let Some(progress) = manner.progress else { return Ok(()) };
    if now.what.is_empty() || told.as_ref() == Some(&now) {
        return Ok(());
    }
    progress.call1((now.what.as_str(), now.done, now.total))?;
    *told = Some(now);
    Ok(())
}
