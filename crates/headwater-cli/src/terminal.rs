//! Output: results on standard output, remarks and progress on standard error, tables within 80 characters.

use crate::error::CliError;
use crate::interrupt::{Polling, requested};
use clap::ValueEnum;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use headwater::learn::posterior::SAMPLING;
use headwater::progress::{Progress, ProgressState};
use headwater::words::acts;
pub(crate) use headwater::words::{count, number, percent, percent_range, short, shown};
use headwater_files::CsvText;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

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

/// Shorter work shows no progress bar.
const PATIENCE: Duration = Duration::from_millis(700);

/// Longer work is announced where no bar can be shown.
const LONG: Duration = Duration::from_secs(30);

/// Time between two pictures of a spinner.
const TICK: Duration = Duration::from_millis(200);

/// The first pieces of long work are watched for so long before its duration is estimated.
const LOOK: Duration = Duration::from_secs(2);

/// What is shown for work without a name.
const UNNAMED: &str = "working";

/// Time between two updates of the progress.
const POLL: Duration = Duration::from_millis(100);

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
            return Spinner { terminal: self, bar: None };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(TICK);
        self.show(Some(bar.clone()));
        Spinner { terminal: self, bar: Some(bar) }
    }

    /// A bar that appears only on a terminal, and only for work that takes a while.
    pub(crate) fn bar(&self, what: impl Into<Cow<'static, str>>, total: u64) -> StageBar<'_> {
        StageBar { terminal: self, bar: None, what: what.into(), total, started: Instant::now() }
    }
}

/// Writes a line to standard error; errors are ignored, because there is no other place to report them.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escaped(text));
}

/// A text whose control characters do nothing to a terminal: they are shown as escapes. Line ends stay; those of names are
/// escaped by [`shown`] before the names become part of a text.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(|character| acts(character) && character != '\n') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split('\n').map(shown).collect::<Vec<_>>().join("\n"))
}

/// A word as a shell reads it.
pub(crate) fn shell_quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-+=:,./@%".contains(character);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.contains(acts) {
        // As bash, zsh and ksh read it, on one line.
        let one = |character: char| match character {
            '\n' => "\\n".to_owned(),
            '\'' | '\\' => format!("\\{character}"),
            character if acts(character) => format!("\\u{:04x}", u32::from(character)),
            character => character.to_string(),
        };
        return format!("$'{}'", word.chars().map(one).collect::<String>());
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A spinner for work without a known length; removed when dropped.
pub(crate) struct Spinner<'a> {
    terminal: &'a Terminal,
    bar: Option<ProgressBar>,
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
enum Announcement<'a> {
    Nothing,
    /// The expected duration, and how to shorten it.
    Duration(Option<&'a str>),
}

/// The progress display of the current stage.
#[derive(Debug, Clone, Copy, Default)]
struct SamplingLimits {
    time: Option<Duration>,
    on_interrupt: bool,
}

struct ShownStage<'a> {
    terminal: &'a Terminal,
    announcement: Announcement<'a>,
    what: String,
    begun: Instant,
    announced: bool,
    bar: Option<StageBar<'a>>,
    spinner: Option<Spinner<'a>>,
}

impl<'a> ShownStage<'a> {
    fn new(terminal: &'a Terminal, announcement: Announcement<'a>) -> Self {
        let (what, begun) = (String::new(), Instant::now());
        ShownStage { terminal, announcement, what, begun, announced: false, bar: None, spinner: None }
    }

    fn update(&mut self, progress: &ProgressState) {
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

/// Columns of a terminal.
const WIDTH: usize = 80;

/// Wraps lines at spaces; words that are longer than a line are kept whole.
pub(crate) fn wrapped(text: &str) -> String {
    let options = Options::new(WIDTH)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .break_words(false);
    text.lines().map(|line| textwrap::fill(line, &options) + "\n").collect()
}

/// A table of at most 80 columns; the first `texts` columns are text, the rest numbers.
pub(crate) fn table(header: &[&str], texts: usize, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH as u16);
    table.set_header(header.iter().copied());
    // A column of single words is never broken, unless a word takes half of the line.
    let words: Vec<bool> = (0..header.len())
        .map(|column| {
            let mut cells = rows.iter().filter_map(|row| row.get(column));
            cells.all(|cell| !cell.contains(' ') && cell.chars().count() <= WIDTH / 2)
        })
        .collect();
    for row in rows {
        // A line end inside a name would start a row of its own.
        table.add_row(row.iter().map(|cell| escaped(cell).replace('\n', "\\n")));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if words.get(index) == Some(&true) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        if index >= texts {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Rows as CSV text, quoted where needed; no header line where the header is empty.
pub(crate) fn csv(header: &[&str], rows: Vec<Vec<String>>, text: CsvText) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    let mut written = if header.is_empty() { Ok(()) } else { writer.write_record(header) };
    for row in rows {
        let cells = row.iter().map(|cell| text.cell(cell).into_owned());
        written = written.and_then(|()| writer.write_record(cells));
    }
    written.expect("memory takes rows of any length");
    let bytes = writer.into_inner().expect("memory can be flushed");
    String::from_utf8(bytes).expect("cells are text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_and_tables_are_not_touched() {
        let prose = "word ".repeat(40);
        assert!(wrapped(prose.trim_end()).lines().all(|line| line.chars().count() <= 80));
        for line in ["  agent  share", "1 0     38.6%", " x", &"-".repeat(80), &"a-b".repeat(40)] {
            assert_eq!(wrapped(line), format!("{line}\n"));
        }
        assert_eq!(wrapped("a\n\nb"), "a\n\nb\n");
        // A character of two columns counts twice.
        assert_eq!(wrapped(&["名前"; 17].join(" ")), format!("{}\n名前\n", ["名前"; 16].join(" ")));
    }

    #[test]
    fn tables_fit_a_terminal() {
        let rows = vec![vec!["a".repeat(100), "1".into()], vec!["名前".repeat(30), "2".into()]];
        let text = table(&["name", "value"], 1, rows);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn single_words_are_not_broken() {
        let row = |name: &str| vec![name.to_owned(), "some words of prose ".repeat(6), "12.3%".into()];
        let text = table(&["name", "meaning", "value"], 2, vec![row("a_name_of_twenty_cha"), row("b")]);
        assert!(text.contains("a_name_of_twenty_cha") && text.contains("12.3%"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

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

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(escaped("a\u{1b}[2Jb\u{9b}\r\t\nc\u{202e}"), "a\\u{1b}[2Jb\\u{9b}\\r\\t\nc\\u{202e}");
        let isolates = ["\u{2066}", "\u{2067}", "\u{2068}", "\u{2069}"];
        assert_eq!(isolates.map(escaped), ["\\u{2066}", "\\u{2067}", "\\u{2068}", "\\u{2069}"]);
        assert_eq!(escaped("名前 – ok\n"), "名前 – ok\n");
        assert!(table(&["name"], 1, vec![vec!["a\nb\u{7}".into()]]).contains("a\\nb\\u{7}"));
    }

    #[test]
    fn names_are_quoted_for_a_shell() {
        for (word, quoted) in [("ann", "ann"), ("", "''"), ("-x", "'-x'"), ("a b", "'a b'"), ("$(x)", "'$(x)'")] {
            assert_eq!(shell_quoted(word), quoted);
        }
        assert_eq!(shell_quoted("a\nb'\\\u{1b}\u{202e}"), r"$'a\nb\'\\\u001b\u202e'");
        assert_eq!(shell_quoted("';touch pwned;'"), ["'", "'\\''", ";touch pwned;", "'\\''", "'"].concat());
    }

    #[test]
    fn csv_is_quoted_where_needed() {
        assert_eq!(csv(&["a"], vec![vec!["x,\"y\"".into()]], CsvText::default()), "a\n\"x,\"\"y\"\"\"\n");
        assert_eq!(
            csv(&[], vec![vec!["two\nlines".into(), " x'y".into()]], CsvText::default()),
            "\"two\nlines\", x'y\n"
        );
    }
}
