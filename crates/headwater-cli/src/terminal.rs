//! Output: results on standard output, remarks and progress on standard error, tables within 80 characters.

use crate::error::CliError;
use crate::interrupt::{Polling, requested};
use clap::ValueEnum;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use headwater::learn::posterior::SAMPLING;
use headwater::progress::{Progress, ProgressState};
use headwater::words::acts;
pub(crate) use headwater::words::{count, number, percent, percent_range, shown};
use headwater_files::CsvText;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use textwrap::core::display_width;
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

/// Columns of a terminal where they are not known, and of lines of prose at most.
const WIDTH: usize = 80;

/// Columns of a terminal too narrow to be taken seriously.
const NARROWEST: usize = 20;

/// Columns that a name keeps when it is cut.
const SHORTEST_NAME: usize = 12;

/// Begins a line that is not wrapped; not printed.
const FIXED: char = '\u{2060}';

/// Stands for a space inside a name in a cell: a name is one word. Printed as a space.
const JOINT: char = '\u{a0}';

/// Columns of the terminal: the variable COLUMNS, those of the terminal, or 80.
fn width() -> usize {
    let told =
        std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok()).filter(|&columns| columns > 0);
    let width = told.unwrap_or_else(|| if std::io::stdout().is_terminal() { textwrap::termwidth() } else { WIDTH });
    width.max(NARROWEST)
}

/// Wraps lines of prose at spaces; words that are longer than a line, and lines of a [`table`], are kept whole.
pub(crate) fn wrapped(text: &str) -> String {
    wrapped_at(text, width().min(WIDTH))
}

fn wrapped_at(text: &str, width: usize) -> String {
    let options = Options::new(width)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .break_words(false);
    let line = |line: &str| match line.strip_prefix(FIXED) {
        Some(line) => line.to_owned() + "\n",
        None => textwrap::fill(line, &options) + "\n",
    };
    text.lines().map(line).collect()
}

/// A name as a cell of a table, or as a part of one: it is never broken, and cut only where a table would not fit.
pub(crate) fn name_cell(name: &str) -> String {
    shown(name).replace(' ', &JOINT.to_string())
}

/// A table; the first `texts` columns are text, the rest numbers. Where it is wider than the terminal, cells of several words
/// are wrapped between words, and if that is not enough the longest words of text are cut. To be printed by
/// [`Terminal::text`], or through [`wrapped`], which leaves its lines as they are.
pub(crate) fn table(header: &[&str], texts: usize, rows: Vec<Vec<String>>) -> String {
    table_at(header, texts, rows, width())
}

fn table_at(header: &[&str], texts: usize, rows: Vec<Vec<String>>, width: usize) -> String {
    // A line end inside a name would start a row of its own.
    let rows = rows.into_iter().map(|row| row.iter().map(|cell| shown(cell).into_owned()).collect());
    let header = header.iter().map(|cell| shown(cell).into_owned()).collect();
    let mut lines: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let widths = column_widths(&lines, texts, width);
    for (column, &width) in widths.iter().enumerate() {
        if column < texts {
            cut_column(&mut lines, column, width);
        }
        for cell in lines.iter_mut().filter_map(|line| line.get_mut(column)) {
            *cell = folded(cell, width);
        }
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let mut lines = lines.into_iter();
    table.set_header(lines.next().unwrap_or_default());
    table.add_rows(lines);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if index >= texts {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{FIXED}{}\n", line.trim_end().replace(JOINT, " "))).collect()
}

/// The width of every column: that of its longest cell where all fit, otherwise the widest columns are made narrower, down to
/// their longest word, then columns of text down to [`SHORTEST_NAME`].
fn column_widths(lines: &[Vec<String>], texts: usize, width: usize) -> Vec<usize> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let largest = |column: usize, measure: fn(&str) -> usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| measure(cell)).max().unwrap_or(0)
    };
    let longest_word = |cell: &str| cell.split(' ').map(display_width).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns).map(|column| largest(column, display_width)).collect();
    let words: Vec<usize> = (0..columns).map(|column| largest(column, longest_word)).collect();
    let names =
        (0..columns).map(|column| if column < texts { words[column].min(SHORTEST_NAME) } else { words[column] });
    // One space after every column but the last.
    let room = width.saturating_sub(columns.saturating_sub(1));
    for floors in [words.clone(), names.collect()] {
        while widths.iter().sum::<usize>() > room {
            let narrower = (0..columns).filter(|&column| widths[column] > floors[column]);
            let Some(widest) = narrower.max_by_key(|&column| widths[column]) else { break };
            widths[widest] -= 1;
        }
    }
    widths
}

/// Cuts the words of a column that are longer than its width: at their end, or in the middle where two would look the same.
fn cut_column(lines: &mut [Vec<String>], column: usize, width: usize) {
    let mut cells: HashMap<String, BTreeSet<String>> = HashMap::new();
    let words = || lines.iter().filter_map(|line| line.get(column)).flat_map(|cell| cell.split(' '));
    for word in words().filter(|word| display_width(word) > width) {
        cells.entry(cut(word, width, false)).or_default().insert(word.to_owned());
    }
    let alike = |word: &str| cells.get(&cut(word, width, false)).is_some_and(|words| words.len() > 1);
    let one = |word: &str| match display_width(word) > width {
        true => cut(word, width, alike(word)),
        false => word.to_owned(),
    };
    for cell in lines.iter_mut().filter_map(|line| line.get_mut(column)) {
        *cell = cell.split(' ').map(one).collect::<Vec<_>>().join(" ");
    }
}

/// The start of a word, or its start and its end, with … for the rest.
fn cut(word: &str, width: usize, middle: bool) -> String {
    let room = width.saturating_sub(1);
    let end = if middle { room / 2 } else { 0 };
    let (start, tail) = (fitting(word.chars(), room - end), fitting(word.chars().rev(), end));
    start.into_iter().chain(['…']).chain(tail.into_iter().rev()).collect()
}

/// The first characters that fit into so many columns.
fn fitting(characters: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut taken = 0;
    let fits = |character: &char| {
        taken += display_width(character.encode_utf8(&mut [0; 4]));
        taken <= room
    };
    characters.take_while(fits).collect()
}

/// A cell with line ends between words, so that no line is longer than the width.
fn folded(cell: &str, width: usize) -> String {
    if display_width(cell) <= width { cell.to_owned() } else { wrapped_at(cell, width).trim_end().to_owned() }
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

    /// A table as printed.
    fn printed(header: &[&str], texts: usize, rows: &[&[&str]], width: usize) -> String {
        let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        wrapped_at(&table_at(header, texts, rows, width), 80)
    }

    #[test]
    fn tables_fit_a_terminal() {
        let rows: [&[&str]; 2] = [&[&"a".repeat(100), "1"], &[&"名前".repeat(30), "2"]];
        for width in [20, 40, 80] {
            let text = printed(&["name", "value"], 1, &rows, width);
            assert!(text.lines().all(|line| display_width(line) <= width), "{text}");
            assert_eq!(text.lines().count(), 3, "{text}");
        }
        // As wide as the terminal is.
        assert!(printed(&["name", "value"], 1, &rows, 200).contains(&"a".repeat(100)));
    }

    #[test]
    fn words_are_not_broken() {
        let prose = "some words of prose ".repeat(6);
        let rows: [&[&str]; 2] = [&["a_name_of_twenty_cha", &prose, "12.3%"], &["b", &prose, "1%"]];
        let text = printed(&["name", "meaning", "value"], 2, &rows, 80);
        assert!(text.contains("a_name_of_twenty_cha") && text.contains("12.3%"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        // A name of two words beside one of a single word.
        let (ann, feather) = (name_cell("Ann Feather"), name_cell("Bartholomew_Feather"));
        let numbers = "1234567";
        let rows: [&[&str]; 2] = [&["1", &ann, numbers, numbers], &["2", &feather, numbers, numbers]];
        let text = printed(&["", "agent", "share", "origin"], 2, &rows, 38);
        assert!(text.contains("1 Ann Feather         1234567 1234567\n"), "{text}");
        assert!(text.contains("2 Bartholomew_Feather 1234567 1234567\n"), "{text}");
        let text = printed(&["", "agent", "share", "origin"], 2, &rows, 34);
        assert!(text.contains("2 Bartholomew_Fea… 1234567 1234567\n"), "{text}");
    }

    #[test]
    fn tables_are_not_wrapped_again() {
        let number = "1".repeat(30);
        let rows: [&[&str]; 1] = [&["a_name_that_is_not_short", &number, &number, &number]];
        let text = printed(&["name", "one", "two", "three"], 1, &rows, 80);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains(&format!("a_name_that… {number} {number} {number}\n")), "{text}");
    }

    #[test]
    fn names_that_are_cut_differ() {
        let rows: [&[&str]; 3] =
            [&["a_very_long_name_of_one"], &["a_very_long_name_of_two"], &["another_very_long_name"]];
        let text = printed(&["name"], 1, &rows, 20);
        assert_eq!(text, "name\na_very_lon…me_of_one\na_very_lon…me_of_two\nanother_very_long_n…\n");
        assert_eq!([cut("名前名前", 4, false), cut("名前名前", 6, true)], ["名…", "名…前"]);
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
