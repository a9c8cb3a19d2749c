//! Output: results on standard output, remarks and progress on standard error, tables within 80 characters.

use crate::error::CliError;
use crate::interrupt::{Polling, requested};
use clap::ValueEnum;
use headwater::learn::posterior::SAMPLING;
use headwater::progress::{Progress, ProgressState};
pub(crate) use headwater::words::{count, number, percent, percent_range, shown};
use headwater_files::CsvText;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use progress::{Announcement, POLL, ShownStage, Spinner, StageBar, TICK};
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

mod progress;
mod table;
mod text;

pub(crate) use table::{csv, name_cell, table};
use text::escaped;
pub(crate) use text::{command_line, shell_quoted, wrapped};

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Readable text
    Table,
    /// JSON
    Json,
    /// CSV
    Csv,
}

/// Where a command prints.
#[derive(Debug)]
pub(crate) struct Terminal {
    quiet: bool,
    csv_text: CsvText,
    /// The bar on display, suspended while a line is printed.
    shown: Mutex<Option<ProgressBar>>,
    /// When sampling of the posterior ends at the latest.
    limits: Mutex<SamplingLimits>,
}

/// When the sampling of a posterior ends: at a time, or at Ctrl-C.
#[derive(Debug, Clone, Copy, Default)]
struct SamplingLimits {
    time: Option<Duration>,
    on_interrupt: bool,
}

impl Terminal {
    pub(crate) fn new(quiet: bool) -> Self {
        Terminal { quiet, csv_text: CsvText::default(), shown: Mutex::default(), limits: Mutex::default() }
    }

    pub(crate) fn with_csv_text(self, csv_text: CsvText) -> Self {
        Terminal { csv_text, ..self }
    }

    /// How text is written into CSV.
    pub(crate) fn csv_text(&self) -> CsvText {
        self.csv_text
    }

    /// Prints a result.
    pub(crate) fn result(&self, text: &str) -> Result<(), CliError> {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let mut out = std::io::stdout().lock();
        let text = if out.is_terminal() { escaped(text) } else { Cow::Borrowed(text) };
        match write!(out, "{text}{end}").and_then(|()| out.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(CliError::ClosedPipe),
            Err(error) => Err(CliError::data(format!("cannot print: {error}"))),
        }
    }

    /// Prints text, wrapped at spaces.
    pub(crate) fn text(&self, text: &str) -> Result<(), CliError> {
        self.result(&escaped(&wrapped(text)))
    }

    /// Prints a value as indented JSON.
    pub(crate) fn json(&self, value: &impl serde::Serialize) -> Result<(), CliError> {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.result(&text),
            Err(error) => Err(CliError::data(format!("cannot print: {error}"))),
        }
    }

    /// Prints a remark to standard error, unless quiet.
    pub(crate) fn remark(&self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }

    /// Warns, and keeps the warning for the model.
    pub(crate) fn keep(&self, warnings: &mut Vec<String>, text: String) {
        self.warn(&text);
        warnings.push(text);
    }

    /// Prints a warning; also when quiet, because it concerns the result.
    pub(crate) fn warn(&self, text: &str) {
        self.say(&format!("warning: {text}"));
    }

    /// Writes a line to standard error, above a bar that is shown.
    fn say(&self, text: &str) {
        match self.shown.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }

    fn show(&self, bar: Option<ProgressBar>) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = bar;
    }

    /// Does work and shows its progress: bars on a terminal, elsewhere one line for long work with its expected duration and a hint
    /// how to shorten it.
    pub(crate) fn watched<T: Send, E: From<headwater::Error> + Send>(
        &self,
        quicker: Option<&str>,
        work: impl FnOnce(&Progress) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        self.shown_while(Announcement::Duration(quicker), work)
    }

    /// Does work and shows its progress by bars, on a terminal only.
    pub(crate) fn with_bars<T: Send, E: From<headwater::Error> + Send>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send,
    ) -> Result<T, E> {
        self.shown_while(Announcement::Nothing, |_| work())
    }

    fn shown_while<T: Send, E: From<headwater::Error> + Send>(
        &self,
        announcement: Announcement<'_>,
        work: impl FnOnce(&Progress) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        let progress = &Progress::default();
        std::thread::scope(|scope| {
            // Dropped at the end of the work, whatever happens, which ends the polling.
            let (_working, working) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                let mut shown = ShownStage::new(self, announcement);
                let mut sampling = None;
                while working.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                    let state = progress.progress();
                    shown.update(&state);
                    self.limit(&state, progress, &mut sampling);
                }
            });
            progress.over(Some(rayon::current_num_threads()), || work(progress))?
        })
    }

    /// Limits the sampling of the posterior: by time, and perhaps by Ctrl-C, after which what is drawn is used.
    pub(crate) fn limit_sampling(&self, minutes: Option<f64>, on_interrupt: bool) {
        let time = minutes.map(|minutes| Duration::try_from_secs_f64(60.0 * minutes).unwrap_or(Duration::MAX));
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = SamplingLimits { time, on_interrupt };
    }

    /// Ends the sampling of the posterior at its limits. `sampling` is when it began.
    fn limit(&self, state: &ProgressState, progress: &Progress, sampling: &mut Option<(Instant, Option<Polling>)>) {
        let limits = *self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        if state.what != SAMPLING {
            *sampling = None;
            return;
        }
        let (begun, _) = sampling.get_or_insert_with(|| (Instant::now(), limits.on_interrupt.then(Polling::new)));
        let late = limits.time.is_some_and(|time| begun.elapsed() > time);
        if late || (limits.on_interrupt && requested()) {
            progress.finish_early();
        }
    }

    /// A spinner with the time passed, on a terminal only.
    pub(crate) fn spinner(&self, what: &str) -> Spinner<'_> {
        if self.quiet {
            return Spinner::new(self, None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(TICK);
        self.show(Some(bar.clone()));
        Spinner::new(self, Some(bar))
    }

    /// A bar that appears only on a terminal, and only for work that takes a while.
    pub(crate) fn bar(&self, what: impl Into<Cow<'static, str>>, total: u64) -> StageBar<'_> {
        StageBar::new(self, what.into(), total)
    }
}

/// Writes a line to standard error; errors are ignored, because there is no other place to report them.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escaped(text));
}
