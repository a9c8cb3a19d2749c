//! Progress on a terminal: spinners, bars, the time left, and what is announced about long work.

use super::Terminal;
use headwater::progress::ProgressState;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Shorter work shows no progress bar.
const PATIENCE: Duration = Duration::from_millis(700);

/// Longer work is announced where no bar can be shown.
const LONG: Duration = Duration::from_secs(30);

/// Time between two pictures of a spinner.
pub(super) const TICK: Duration = Duration::from_millis(200);

/// The first pieces of long work are watched for so long before its duration is estimated.
const LOOK: Duration = Duration::from_secs(2);

/// What is shown for work without a name.
const UNNAMED: &str = "working";

/// Time between two updates of the progress.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// A spinner for work without a known length; removed when dropped.
pub(crate) struct Spinner<'a> {
    terminal: &'a Terminal,
    bar: Option<ProgressBar>,
}

impl<'a> Spinner<'a> {
    pub(super) fn new(terminal: &'a Terminal, bar: Option<ProgressBar>) -> Self {
        Spinner { terminal, bar }
    }
}

impl Drop for Spinner<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            self.terminal.show(None);
            bar.finish_and_clear();
        }
    }
}

/// The progress bar of one stage.
pub(crate) struct StageBar<'a> {
    terminal: &'a Terminal,
    bar: Option<ProgressBar>,
    what: Cow<'static, str>,
    total: u64,
    started: Instant,
}

/// The share of a stage after which the time left is estimated, as its denominator.
const EARLY: u64 = 50;

/// The time after which the time left is estimated.
const EARLIEST: Duration = Duration::from_secs(1);

/// The time left of a stage by what is done of it since it began; none as long as that is too little to tell.
fn time_left(elapsed: Duration, done: u64, total: u64) -> Option<Duration> {
    if done == 0 || done.saturating_mul(EARLY) < total || elapsed < EARLIEST {
        return None;
    }
    Some(elapsed.mul_f64(total.saturating_sub(done) as f64 / done as f64))
}

/// The look of a bar; its prefix is the time left.
fn bar_style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{spinner} {msg} [{bar:24}] {pos}/{len} {elapsed}, {prefix}");
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

impl<'a> StageBar<'a> {
    pub(super) fn new(terminal: &'a Terminal, what: Cow<'static, str>, total: u64) -> Self {
        StageBar { terminal, bar: None, what, total, started: Instant::now() }
    }
}

impl StageBar<'_> {
    pub(crate) fn at(&mut self, done: u64) {
        if self.bar.is_none() && !self.terminal.quiet && self.started.elapsed() > PATIENCE {
            let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr());
            bar.set_style(bar_style());
            let bar = bar.with_message(self.what.clone()).with_elapsed(self.started.elapsed());
            // Something moves also while a long piece is under way.
            bar.enable_steady_tick(TICK);
            self.terminal.show(Some(bar.clone()));
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            // The bar is made late, so that its own estimate would be by the last moments only.
            let left = time_left(self.started.elapsed(), done, self.total);
            let told = left.map(|left| format!("about {:#} left", HumanDuration(left)));
            bar.set_prefix(told.unwrap_or_else(|| "time left not known yet".to_owned()));
            bar.set_position(done);
        }
    }
}

impl Drop for StageBar<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            self.terminal.show(None);
            bar.finish_and_clear();
        }
    }
}

/// What is announced about long work where no bar can be shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum Announcement<'a> {
    Nothing,
    /// The expected duration, and how to shorten it.
    Duration(Option<&'a str>),
}

/// The progress display of the current stage.
pub(super) struct ShownStage<'a> {
    terminal: &'a Terminal,
    announcement: Announcement<'a>,
    what: String,
    begun: Instant,
    announced: bool,
    bar: Option<StageBar<'a>>,
    spinner: Option<Spinner<'a>>,
}

impl<'a> ShownStage<'a> {
    pub(super) fn new(terminal: &'a Terminal, announcement: Announcement<'a>) -> Self {
        let (what, begun) = (String::new(), Instant::now());
        ShownStage { terminal, announcement, what, begun, announced: false, bar: None, spinner: None }
    }

    pub(super) fn update(&mut self, progress: &ProgressState) {
        let ProgressState { what, done, total, running, .. } = progress;
        // A stage that has ended is not shown any longer: its bar would stand still.
        let (what, total) = if *running { (what.as_str(), total) } else { (UNNAMED, &0) };
        if *what != self.what {
            // The old ones are cleared first.
            (self.bar, self.spinner) = (None, None);
            *self = ShownStage { what: what.to_owned(), ..ShownStage::new(self.terminal, self.announcement) };
        }
        if *total == 0 {
            if self.spinner.is_none() && self.begun.elapsed() > PATIENCE {
                self.spinner = Some(self.terminal.spinner(what));
            }
            return;
        }
        self.bar.get_or_insert_with(|| self.terminal.bar(what.to_owned(), *total)).at(*done);
        let Announcement::Duration(quicker) = self.announcement else { return };
        if self.announced || *done == 0 || self.begun.elapsed() < LOOK {
            return;
        }
        self.announced = true;
        if let Some(estimate) = estimate(progress, self.begun.elapsed(), peak_memory(), quicker) {
            self.terminal.remark(&estimate);
        }
    }
}

/// How long work will take, and how much memory, by its first pieces; none for short work.
fn estimate(progress: &ProgressState, elapsed: Duration, memory: Option<u64>, quicker: Option<&str>) -> Option<String> {
    let ProgressState { what, done, total, .. } = progress;
    let whole = elapsed.mul_f64(*total as f64 / (*done).max(1) as f64);
    if whole <= LONG {
        return None;
    }
    let memory = memory.map_or(String::new(), |bytes| format!(" and {} MB of memory", bytes.div_ceil(1_000_000)));
    let quicker = quicker.map_or(String::new(), |quicker| format!("; {quicker}"));
    Some(format!(
        "{what}: takes up to {}{memory}, by the first {done} of at most {total} steps{quicker}",
        duration(whole)
    ))
}

/// A rough duration in words.
fn duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} seconds"),
        seconds @ 120..7200 => format!("{} minutes", (seconds + 30) / 60),
        seconds => format!("{:.1} hours", seconds as f64 / 3600.0),
    }
}

/// The largest memory that this process has held so far, where the system tells it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater::progress::Progress;

    #[test]
    fn the_time_left_is_by_the_whole_stage() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(seconds(10), 20, 600), Some(seconds(290)));
        assert_eq!(time_left(seconds(10), 600, 600), Some(seconds(0)));
        assert_eq!(time_left(seconds(10), 0, 600), None);
        assert_eq!(time_left(seconds(10), 11, 600), None, "below two per cent");
        assert_eq!(time_left(seconds(1), 12, 600), Some(seconds(49)));
        assert_eq!(time_left(Duration::from_millis(999), 300, 600), None);
        assert_eq!(time_left(seconds(10), 0, 0), None);
    }

    #[test]
    fn long_work_is_announced_by_its_first_pieces() {
        let handle = Progress::default();
        let at = |done: u64, total: u64| {
            let state = handle.over(Some(1), || {
                let stage = headwater::progress::stage("learning", total);
                stage.at(done);
                handle.progress()
            });
            state.unwrap()
        };
        let say = |done, seconds| estimate(&at(done, 200), Duration::from_secs(seconds), Some(41_500_000), None);
        assert_eq!(say(10, 1), None, "20 seconds are not long");
        let wanted = "learning: takes up to 40 seconds and 42 MB of memory, by the first 10 of at most 200 steps";
        assert_eq!(say(10, 2).as_deref(), Some(wanted));
        let told = estimate(&at(1, 200), Duration::from_secs(60), None, Some("fewer users take less time"));
        let wanted = "learning: takes up to 3.3 hours, by the first 1 of at most 200 steps; fewer users take less time";
        assert_eq!(told.as_deref(), Some(wanted));
        assert_eq!(duration(Duration::from_secs(400)), "7 minutes");
        assert!(peak_memory().is_none_or(|bytes| bytes > 100_000));
    }
}
