//! Long work under somebody's eyes: how far it is, and whether it should go on.
//!
//! In: a [`Progress`], and work done [`Progress::over`] it. Out: what the work returns, or [`Error::Stopped`]. Loops that may take
//! long ask [`check`] now and then and say how far they are through a [`stage`]; where nobody watches both cost next to
//! nothing. The watch belongs to the threads of one piece of work, so that no signature has to carry it and two pieces of
//! work at once do not hear each other's.

use crate::Error;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// More threads than this are a mistake that would bring a machine to its knees.
pub const MOST_THREADS: usize = 1024;

thread_local! {
    static CURRENT: RefCell<Option<Progress>> = const { RefCell::new(None) };
}

/// Sees how far work is, and can stop it; clones watch the same work.
///
/// ```
/// use headwater::progress::{self, Progress};
/// let watch = Progress::default();
/// assert_eq!(watch.over(Some(2), || progress::check().is_ok()), Ok(true));
/// watch.stop();
/// assert_eq!(watch.over(Some(2), || progress::check().is_ok()), Ok(false));
/// assert!(progress::check().is_ok()); // nobody watches here
/// ```
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    stopped: AtomicBool,
    /// Stages within each other.
    depth: AtomicUsize,
    done: AtomicU64,
    total: AtomicU64,
    what: Mutex<String>,
}

/// How far a stretch of work is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgressState {
    /// What is being done.
    pub what: String,
    /// How much of it.
    pub done: u64,
    /// Of how much; zero where that is not known.
    pub total: u64,
}

impl Progress {
    /// Asks the work to end as soon as it can.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// What was last reported.
    pub fn progress(&self) -> ProgressState {
        let what = self.0.what.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ProgressState { what, done: self.0.done.load(Ordering::Relaxed), total: self.0.total.load(Ordering::Relaxed) }
    }

    /// Does work on threads of its own, one per core unless told otherwise, that answer to this watch.
    pub fn over<T: Send>(&self, threads: Option<usize>, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let refused = || Error::Parameter {
            name: "threads",
            value: threads.map_or("one per core".to_owned(), |threads| threads.to_string()),
            range: "1 to 1024, and as many as this machine can start",
        };
        if threads.is_some_and(|threads| !(1..=MOST_THREADS).contains(&threads)) {
            return Err(refused());
        }
        let watch = self.clone();
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.unwrap_or(0))
            .start_handler(move |_| CURRENT.set(Some(watch.clone())))
            .build()
            .map_err(|_| refused())?;
        Ok(pool.install(work))
    }

    /// Does work that answers to this progress: here where this thread does already, otherwise [`Progress::over`] it with
    /// one thread per core.
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

/// A stretch of work that says how far it is; over when dropped. Stages within it are its own business and say nothing.
#[derive(Debug)]
#[must_use = "a stage is over when it is dropped"]
pub struct Stage {
    /// Who watches.
    watch: Option<Progress>,
    outermost: bool,
}

/// Begins a stretch of so much work; zero where that is not known.
pub fn stage(what: &str, total: u64) -> Stage {
    let watch = CURRENT.with_borrow(Option::clone);
    let outermost = watch.as_ref().is_some_and(|watch| watch.0.depth.fetch_add(1, Ordering::Relaxed) == 0);
    if let Some(watch) = watch.as_ref().filter(|_| outermost) {
        watch.begin(what, total);
    }
    Stage { watch, outermost }
}

impl Stage {
    fn seen(&self) -> Option<&Seen> {
        self.watch.as_ref().filter(|_| self.outermost).map(|watch| watch.0.as_ref())
    }

    /// One more is done.
    pub fn advance(&self) {
        self.seen().map(|seen| seen.done.fetch_add(1, Ordering::Relaxed));
    }

    /// So much is done.
    pub fn at(&self, done: u64) {
        self.seen().into_iter().for_each(|seen| seen.done.store(done, Ordering::Relaxed));
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.watch.as_ref().map(|watch| watch.0.depth.fetch_sub(1, Ordering::Relaxed));
    }
}

/// Whether somebody asked this work to end.
pub fn stopped() -> bool {
    CURRENT.with_borrow(|watch| watch.as_ref().is_some_and(|watch| watch.0.stopped.load(Ordering::Relaxed)))
}

/// Fails once somebody asked this work to end.
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
        let count = |watch: &Progress| {
            watch.over(Some(2), || (0..100).into_par_iter().filter(|_| check().is_ok()).count()).unwrap()
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
        let watch = Progress::default();
        let seen = watch.clone();
        let during = watch.over(Some(1), || {
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
        let learning = ProgressState { what: "learning".into(), done: 4, total: 10 };
        assert_eq!(during, Ok((learning, "after".to_owned())));
    }
}
