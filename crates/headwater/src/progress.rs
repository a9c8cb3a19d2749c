//! Progress of long computations, and requests to stop them.
//!
//! In: a [`Progress`], and a computation run by [`Progress::over`]. Out: its result, or [`Error::Stopped`]. Long loops call
//! [`check`] from time to time and report through a [`stage`]; without a progress both cost next to nothing. A progress
//! belongs to the threads of one computation, so no signature has to carry it and concurrent computations are separate.

use crate::Error;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Largest number of threads accepted.
pub const MOST_THREADS: usize = 1024;

thread_local! {
    static CURRENT: RefCell<Option<Progress>> = const { RefCell::new(None) };
}

/// A handle that shows the progress of a computation and can stop it; clones refer to the same computation.
///
/// ```
/// use headwater::progress::{self, Progress};
/// let handle = Progress::default();
/// assert_eq!(handle.over(Some(2), || progress::check().is_ok()), Ok(true));
/// handle.stop();
/// assert_eq!(handle.over(Some(2), || progress::check().is_ok()), Ok(false));
/// assert!(progress::check().is_ok()); // outside of the computation
/// ```
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    stopped: AtomicBool,
    finishing: AtomicBool,
    /// Stages within each other.
    depth: AtomicUsize,
    done: AtomicU64,
    total: AtomicU64,
    what: Mutex<String>,
}

/// Progress of the current stage.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgressState {
    /// Name of the stage.
    pub what: String,
    /// Units done.
    pub done: u64,
    /// Units in all; zero where that is not known.
    pub total: u64,
    /// Whether the stage is under way; between two stages the last one is shown as it ended.
    pub running: bool,
}

impl Progress {
    /// Requests the computation to stop as soon as possible.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Requests the computation to end with what it has, where it can; others go on to their end.
    pub fn finish_early(&self) {
        self.0.finishing.store(true, Ordering::Relaxed);
    }

    /// The last report.
    pub fn progress(&self) -> ProgressState {
        let what = self.0.what.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ProgressState {
            what,
            done: self.0.done.load(Ordering::Relaxed),
            total: self.0.total.load(Ordering::Relaxed),
            running: self.0.depth.load(Ordering::Relaxed) > 0,
        }
    }

    /// Runs a computation under this progress on threads of its own, one per core unless `threads` is given.
    pub fn over<T: Send>(&self, threads: Option<usize>, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let refused = || Error::Parameter {
            name: "threads",
            value: threads.map_or("one per core".to_owned(), |threads| threads.to_string()),
            range: "1 to 1024, and as many as this machine can start",
        };
        if threads.is_some_and(|threads| !(1..=MOST_THREADS).contains(&threads)) {
            return Err(refused());
        }
        let handle = self.clone();
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.unwrap_or(0))
            .start_handler(move |_| CURRENT.set(Some(handle.clone())))
            .build()
            .map_err(|_| refused())?;
        Ok(pool.install(work))
    }

    /// Runs a computation under this progress: on this thread where it already belongs to it, otherwise by
    /// [`Progress::over`] with one thread per core.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let mine = |current: &Option<Progress>| current.as_ref().is_some_and(|other| Arc::ptr_eq(&other.0, &self.0));
        if CURRENT.with_borrow(mine) { Ok(work()) } else { self.over(None, work) }
    }

    fn begin(&self, what: &str, total: u64) {
        what.clone_into(&mut self.0.what.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.done.store(0, Ordering::Relaxed);
        self.0.total.store(total, Ordering::Relaxed);
    }
}

/// A stage of a computation; it ends when dropped. Stages within another stage are not reported.
#[derive(Debug)]
#[must_use = "a stage is over when it is dropped"]
pub struct Stage {
    handle: Option<Progress>,
    outermost: bool,
}

/// Begins a stage of `total` units; zero where that is not known.
pub fn stage(what: &str, total: u64) -> Stage {
    let handle = CURRENT.with_borrow(Option::clone);
    let outermost = handle.as_ref().is_some_and(|handle| handle.0.depth.fetch_add(1, Ordering::Relaxed) == 0);
    if let Some(handle) = handle.as_ref().filter(|_| outermost) {
        handle.begin(what, total);
    }
    Stage { handle, outermost }
}

impl Stage {
    fn seen(&self) -> Option<&Seen> {
        self.handle.as_ref().filter(|_| self.outermost).map(|handle| handle.0.as_ref())
    }

    /// Reports one more unit as done.
    pub fn advance(&self) {
        self.seen().map(|seen| seen.done.fetch_add(1, Ordering::Relaxed));
    }

    /// Reports the number of units done.
    pub fn at(&self, done: u64) {
        self.seen().into_iter().for_each(|seen| seen.done.store(done, Ordering::Relaxed));
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.handle.as_ref().map(|handle| handle.0.depth.fetch_sub(1, Ordering::Relaxed));
    }
}

/// Whether a stop was requested.
pub fn stopped() -> bool {
    CURRENT.with_borrow(|handle| handle.as_ref().is_some_and(|handle| handle.0.stopped.load(Ordering::Relaxed)))
}

/// Whether the computation was asked to end with what it has.
pub fn finishing() -> bool {
    CURRENT.with_borrow(|handle| handle.as_ref().is_some_and(|handle| handle.0.finishing.load(Ordering::Relaxed)))
}

/// [`Error::Stopped`] once a stop was requested.
pub fn check() -> Result<(), Error> {
    if stopped() { Err(Error::Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn work_ends_when_asked_and_only_that_work() {
        let (one, other) = (Progress::default(), Progress::default());
        one.stop();
        let count = |handle: &Progress| {
            handle.over(Some(2), || (0..100).into_par_iter().filter(|_| check().is_ok()).count()).unwrap()
        };
        assert_eq!((count(&one), count(&other)), (0, 100));
    }

    #[test]
    fn no_threads_and_far_too_many_are_refused() {
        for threads in [0, MOST_THREADS + 1, usize::MAX] {
            assert!(matches!(
                Progress::default().over(Some(threads), || ()),
                Err(Error::Parameter { name: "threads", .. })
            ));
        }
    }

    #[test]
    fn progress_is_seen_from_outside_and_that_of_the_outermost_stage_only() {
        let handle = Progress::default();
        let seen = handle.clone();
        let during = handle.over(Some(1), || {
            let learning = stage("learning", 10);
            learning.at(3);
            let within = stage("within", 5);
            within.advance();
            learning.advance();
            drop(within);
            let during = seen.progress();
            drop(learning);
            let _after = stage("after", 0);
            (during, seen.progress().what)
        });
        let learning = ProgressState { what: "learning".into(), done: 4, total: 10, running: true };
        assert_eq!(during, Ok((learning, "after".to_owned())));
        assert!(!seen.progress().running, "nothing is under way any more");
    }
}
