//! `headwater score`: posts in, the same posts with how negative, neutral and positive they are out.

use crate::beliefs::{BadRows, PresetName, mapping};
use crate::error::CliError;
use crate::output::check;
use crate::scorer::{ReaderArgs, ReaderName, reader};
use crate::terminal::{Terminal, count};
use clap::Args;
use headwater_files::AtomicFile;
use headwater_posts::mapping::ColumnMapping;
use headwater_posts::quality::MaxBad;
use headwater_posts::read::{BadRow, ColumnNames, Preset, RawRecord, RecordPlace, RecordValue, Records};
use headwater_posts::{Error, RejectsFile};
use headwater_score::builtin::{Builtin, ScoreExplanation};
use indexmap::IndexSet;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Heading of `--help`, below the files.
const READING: &str = "Reading";

/// Scores every post: how negative, neutral and positive it is
#[derive(Debug, Args)]
#[command(
    after_help = "Adds the columns negative, neutral, positive and score = positive/(negative+positive) to every readable row; an input column of one of these names gets _in behind it. With a --preset of JSON lines there is a row per post, with the columns id, user, time, lang, repost and text.\n\nExample: headwater score posts.csv --out scored.csv --explain"
)]
pub(crate) struct Score {
    /// Files of posts (CSV, JSON lines, Parquet, plain or compressed) or 'patterns*'; - is standard input
    #[arg(value_name = "POSTS", required = true)]
    posts: Vec<PathBuf>,
    /// File to write, CSV
    #[arg(long, value_name = "SCORED.csv")]
    out: PathBuf,
    /// The platform the posts come from
    #[arg(help_heading = READING, long, value_enum)]
    preset: Option<PresetName>,
    /// Other names of columns or keys, such as text=body or text=post.content
    #[arg(help_heading = READING, long, value_name = "FIELD=NAME,…")]
    map: Vec<String>,
    /// Stop when more rows than this cannot be read, a share or a number [default: more than 100 and more than 1%]
    #[arg(help_heading = READING, long, value_name = "SHARE|N")]
    max_bad: Option<MaxBad>,
    /// Write rows that cannot be read as CSV file,line,reason
    #[arg(help_heading = READING, long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Add a column why: the terms that moved each score, and how much each adds to log(positive/negative)
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    scorer: ReaderArgs,
}

/// Posts that are scored at a time: many for the fast scorer, few for the slow one, so that progress is seen.
const SHARE: [usize; 2] = [8192, 256];

/// Terms that the column `why` has at most.
const TERMS: usize = 8;

impl Score {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        self.scorer.check()?;
        if self.explain && self.scorer.scorer == ReaderName::Roberta {
            return Err(CliError::usage(
                "--explain is for --scorer builtin; a text model has no terms",
                "leave one of the two out",
            ));
        }
        let extension = self.out.extension().and_then(|extension| extension.to_str());
        if let Some(extension @ ("parquet" | "npy" | "json" | "jsonl" | "gz" | "zst" | "xlsx")) = extension {
            let message = format!("scored posts are not written as .{extension}");
            return Err(CliError::usage(message, "let --out end in .csv"));
        }
        check(&self.posts, [Some(&self.out), self.rejects.as_ref()].into_iter().flatten())?;
        let mut readable = ReadableRows::new(self.rejects.as_deref(), self.max_bad.unwrap_or_default(), terminal)?;
        let written = self.write(&mut readable, terminal);
        let ReadableRows { bad, listed, .. } = readable;
        listed.close_quietly(written.is_ok())?;
        let written = written?;
        written.draft.commit()?;
        if bad > 0 {
            terminal.warn(&format!("{} left out", count(bad as usize, "unreadable row")));
        }
        if written.foreign > 0 {
            terminal.warn(&format!(
                "{} marked as not English; the built-in scorer knows English only",
                count(written.foreign, "post")
            ));
        }
        if written.passed > 0 {
            terminal.remark(&format!("{} held no post", count(written.passed, "line")));
        }
        terminal.remark(&format!("{} scored, in {}", count(written.scored, "post"), self.out.display()));
        Ok(())
    }

    fn write(&self, readable: &mut ReadableRows<'_>, terminal: &Terminal) -> Result<ScoredFile, CliError> {
        let builtin = self.scorer.scorer == ReaderName::Builtin;
        let mut rows = rows(&self.posts, &mapping(self.preset, &self.map)?, readable)?;
        let scorer = reader(&self.scorer, terminal)?;
        let explainer = self.explain.then(Builtin::new);
        let mut out = csv::Writer::from_writer(AtomicFile::create(&self.out)?);
        let failed = |error: csv::Error| CliError::data(format!("{}: cannot write: {error}", self.out.display()));

        let mut added = vec!["negative", "neutral", "positive", "score"];
        if self.explain {
            added.push("why");
        }
        let mut header = Vec::new();
        for name in &rows.header {
            let mut name = name.clone();
            while added.contains(&name.as_str()) || header.contains(&name) {
                name.push_str("_in");
            }
            header.push(name);
        }
        out.write_record(header.iter().map(String::as_str).chain(added)).map_err(failed)?;

        let share = SHARE[usize::from(!builtin)];
        let total = rows.source.records.total();
        // A pipe does not say how long it is.
        let _alive = total.is_none().then(|| terminal.spinner("scoring"));
        let (mut scored, mut foreign) = (0, 0);
        let mut progress = terminal.bar("scoring (kB)", total.unwrap_or(0) >> 10);
        loop {
            let block = rows.next(share, readable)?;
            if block.is_empty() {
                break;
            }
            let texts: Vec<&str> = block.iter().map(|(text, _)| text.as_str()).collect();
            headwater::progress::check()?;
            let scores = scorer.score(&texts)?;
            for ((text, row), score) in block.iter().zip(&scores) {
                let numbers =
                    [score.negative, score.neutral, score.positive, score.score()].map(|value| value.to_string());
                let why = explainer.as_ref().map(|explainer| why(&explainer.explain(text)));
                let fields = row.iter().chain(&numbers).map(String::as_str).chain(why.as_deref());
                out.write_record(fields).map_err(failed)?;
            }
            let marked = rows.lang.into_iter().flat_map(|column| block.iter().map(move |(_, row)| &row[column]));
            foreign += marked.filter(|lang| !lang.is_empty() && !lang.to_lowercase().starts_with("en")).count();
            scored += block.len();
            if total.is_some() {
                progress.at(rows.position() >> 10);
            }
        }
        drop(progress);
        if scored == 0 {
            let first = readable.first.as_ref().map_or(String::new(), |first| format!("; the first row: {first}"));
            return Err(CliError::Data {
                message: format!("{}: has no readable post{first}", self.posts[0].display()),
                hint: (rows.source.passed > 0)
                    .then(|| "check that --preset names the platform of this file".to_owned()),
            });
        }
        readable.finish()?;
        let draft = out.into_inner().map_err(|error| failed(error.into_error().into()))?;
        Ok(ScoredFile { draft, scored, foreign: if builtin { foreign } else { 0 }, passed: rows.source.passed })
    }
}

/// Scored posts that wait for their name.
struct ScoredFile {
    draft: AtomicFile,
    scored: usize,
    /// Posts marked with another language than the scorer reads.
    foreign: usize,
    /// Lines that hold something else than posts.
    passed: usize,
}

/// ScoredRows that cannot be read: the first are named, all are counted and listed, too many are refused.
struct ReadableRows<'a> {
    listed: BadRows<'a>,
    max_bad: MaxBad,
    rows: u64,
    bad: u64,
    first: Option<BadRow>,
}

impl<'a> ReadableRows<'a> {
    fn new(rejects: Option<&Path>, max_bad: MaxBad, terminal: &'a Terminal) -> Result<Self, CliError> {
        let listed = BadRows::new(rejects.map(RejectsFile::create).transpose()?, terminal);
        Ok(ReadableRows { listed, max_bad, rows: 0, bad: 0, first: None })
    }

    /// A row that can be read, so far.
    fn pass(&mut self) {
        self.rows += 1;
    }

    fn leave(&mut self, bad: BadRow) -> Result<(), CliError> {
        self.rows += 1;
        self.bad += 1;
        self.listed.see(std::slice::from_ref(&bad))?;
        self.first.get_or_insert(bad);
        if self.max_bad.hopeless(self.bad, self.rows) { Err(self.too_many()) } else { Ok(()) }
    }

    fn finish(&self) -> Result<(), CliError> {
        if self.max_bad.exceeded(self.bad, self.rows) { Err(self.too_many()) } else { Ok(()) }
    }

    fn too_many(&self) -> CliError {
        let first = self.first.as_ref().map(BadRow::to_string).unwrap_or_default();
        Error::TooManyBad { bad: self.bad, rows: self.rows, allowed: self.max_bad.to_string(), first }.into()
    }
}

/// `love +1.20; ¬good -0.71; (the rest) +0.05`, the strongest first; they sum to log(positive/negative).
fn why(explanation: &ScoreExplanation) -> String {
    let strong = || explanation.terms.iter().take(TERMS).filter(|term| term.contribution.abs() >= 0.005);
    let all: f64 = explanation.terms.iter().map(|term| term.contribution).sum();
    let rest = all - strong().map(|term| term.contribution).sum::<f64>();
    let mut words: Vec<String> = strong().map(|term| format!("{} {:+.2}", term.term, term.contribution)).collect();
    if rest.abs() >= 0.005 {
        words.push(format!("(the rest) {rest:+.2}"));
    }
    words.join("; ")
}

/// Records one by one, also where a line holds a list of posts; those of a platform as rows of a table.
struct ScoredRecords {
    records: Records,
    preset: Option<Preset>,
    /// The columns of a platform's posts.
    columns: Arc<ColumnNames>,
    waiting: VecDeque<Result<RawRecord, BadRow>>,
    /// Lines that hold something else than posts.
    passed: usize,
}

/// What is known of a platform's post, by the names under which `headwater beliefs` looks for it.
const FIELDS: [&str; 6] = ["id", "user", "time", "lang", "repost", "text"];

impl ScoredRecords {
    fn open(names: &[PathBuf], preset: Option<Preset>) -> Result<Self, CliError> {
        let columns = Arc::new(ColumnNames { names: FIELDS.map(str::to_owned).to_vec() });
        Ok(ScoredRecords { records: Records::open(names)?, preset, columns, waiting: VecDeque::new(), passed: 0 })
    }

    fn next(&mut self) -> Result<Option<Result<RawRecord, BadRow>>, CliError> {
        loop {
            if let Some(record) = self.waiting.pop_front() {
                return Ok(Some(record));
            }
            let Some(found) = self.records.next()? else { return Ok(None) };
            let RawRecord { place, row } = match found {
                Ok(record) => record,
                Err(bad) => return Ok(Some(Err(bad))),
            };
            match (self.preset, row) {
                (Some(preset), RecordValue::Cells(columns, cells)) => {
                    if let Some(problem) = preset.refuses(&columns) {
                        return Err(Error::Format { path: place.file.to_path_buf(), found: problem }.into());
                    }
                    return Ok(Some(Ok(RawRecord { place, row: RecordValue::Cells(columns, cells) })));
                }
                (Some(preset), RecordValue::Json(value)) => self.platform(preset, &value, &place),
                (None, RecordValue::Json(Value::Array(posts))) => {
                    let record = |post| Ok(RawRecord { place: place.clone(), row: RecordValue::Json(post) });
                    self.waiting.extend(posts.into_iter().map(record));
                }
                (None, row) => return Ok(Some(Ok(RawRecord { place, row }))),
            }
        }
    }

    /// The posts of a platform's line.
    fn platform(&mut self, preset: Preset, value: &Value, place: &RecordPlace) {
        let bad = |reason: String| BadRow { place: place.clone(), reason };
        if let Some(other) = Preset::mistaken(Some(preset), value) {
            self.waiting.push_back(Err(bad(other.to_string())));
            return;
        }
        let posts = preset.posts(value);
        self.passed += usize::from(posts.is_empty());
        for post in posts {
            let record = post.and_then(|post| {
                let text = post.text.ok_or("has no text; a post without words has no opinion")?;
                let repost = if post.repost { "1" } else { "0" }.to_owned();
                let known = [post.id, post.user, post.time, post.lang].map(Option::unwrap_or_default);
                let cells = known.into_iter().chain([repost, text]).collect();
                Ok(RawRecord { place: place.clone(), row: RecordValue::Cells(self.columns.clone(), cells) })
            });
            self.waiting.push_back(record.map_err(bad));
        }
    }
}

/// The rows of some files of posts, in order, under one header.
struct ScoredRows {
    source: ScoredRecords,
    /// The first row, from which the header was read.
    first: Option<RawRecord>,
    header: Vec<String>,
    /// Column or key of the text.
    text: String,
    /// Position of the language mark.
    lang: Option<usize>,
    /// Whether the first line was JSON.
    json: bool,
    /// Whether the last column of the header holds keys that the first line did not have.
    more: bool,
}

/// Name of the column for keys that the first line of JSON did not have.
const MORE: &str = "more";

/// Keys of all lines of JSON in some files, in order of appearance.
fn keys(names: &[PathBuf]) -> Result<Vec<String>, CliError> {
    let mut source = ScoredRecords::open(names, None)?;
    let mut keys = IndexSet::new();
    while let Some(found) = source.next()? {
        if let Ok(record) = found {
            for name in record.row.names().into_iter().filter(|name| !keys.contains(*name)).collect::<Vec<_>>() {
                keys.insert(name.to_owned());
            }
        }
    }
    Ok(keys.into_iter().collect())
}

/// Opens files of posts.
fn rows(names: &[PathBuf], mapping: &ColumnMapping, readable: &mut ReadableRows<'_>) -> Result<ScoredRows, CliError> {
    let mut rows = ScoredRows {
        source: ScoredRecords::open(names, mapping.platform())?,
        first: None,
        header: Vec::new(),
        text: String::new(),
        lang: None,
        json: false,
        more: false,
    };
    rows.first = rows.record(readable)?;
    match (&rows.first, rows.source.records.table()) {
        (Some(RawRecord { row: row @ RecordValue::Json(_), .. }), _) => {
            // Lines may have other keys than the first. A pipe cannot be read twice: what is new there goes into one cell.
            rows.json = true;
            rows.more = rows.source.records.total().is_none();
            rows.header = match rows.more {
                true => row.names().into_iter().map(str::to_owned).collect(),
                false => keys(names)?,
            };
        }
        (Some(record), _) => rows.header = record.row.names().into_iter().map(str::to_owned).collect(),
        (None, Some((_, columns))) => rows.header.clone_from(&columns.names),
        (None, None) => {}
    }
    let known = |field: &str| mapping.names(field).iter().find(|name| rows.header.contains(name));
    let text = known("text").or(mapping.names("text").first()).cloned().unwrap_or_default();
    rows.lang = known("lang").and_then(|lang| rows.header.iter().position(|name| name == lang));
    let lost = rows.first.as_ref().is_some_and(|record| record.row.get(&text).is_none());
    if lost && !rows.json {
        return Err(CliError::Data {
            message: format!("{}: no column {text:?}; found {}", names[0].display(), rows.header.join(", ")),
            hint: Some("say which column is the text with --map text=COLUMN".to_owned()),
        });
    }
    rows.text = text;
    if rows.more {
        let mut name = MORE.to_owned();
        while rows.header.contains(&name) {
            name.push_str("_keys");
        }
        rows.header.push(name);
    }
    Ok(rows)
}

impl ScoredRows {
    /// The next row that can be read.
    fn record(&mut self, readable: &mut ReadableRows<'_>) -> Result<Option<RawRecord>, CliError> {
        while let Some(found) = self.source.next()? {
            match found {
                Ok(record) => return Ok(Some(record)),
                Err(bad) => readable.leave(bad)?,
            }
        }
        Ok(None)
    }

    /// At most so many rows, each with its text; none at the end.
    fn next(&mut self, most: usize, readable: &mut ReadableRows<'_>) -> Result<Vec<(String, Vec<String>)>, CliError> {
        let mut block = Vec::new();
        while block.len() < most {
            let next = match self.first.take() {
                Some(first) => Some(first),
                None => self.record(readable)?,
            };
            let Some(record) = next else { break };
            let Some(text) = record.row.get(&self.text).map(|text| text.into_owned()) else {
                let reason = format!("there is no text in {:?}", self.text);
                readable.leave(BadRow { place: record.place, reason })?;
                continue;
            };
            readable.pass();
            block.push((text, self.cells(&record)?));
        }
        Ok(block)
    }

    /// What stands under each column of the header.
    fn cells(&self, record: &RawRecord) -> Result<Vec<String>, CliError> {
        if let RecordValue::Cells(columns, cells) = &record.row
            && columns.names == self.header
        {
            return Ok(cells.iter().map(str::to_owned).collect());
        }
        let own = &self.header[..self.header.len() - usize::from(self.more)];
        let value = |name: &String| match &record.row {
            // A key with a dot in it is a key, not a path.
            RecordValue::Json(object) => object.get(name).map_or(String::new(), shown),
            row @ RecordValue::Cells(..) => row.get(name).unwrap_or_default().into_owned(),
        };
        let mut cells: Vec<String> = own.iter().map(value).collect();
        let others: Vec<&str> =
            record.row.names().into_iter().filter(|name| !own.iter().any(|known| known == name)).collect();
        if self.more {
            let RecordValue::Json(object) = &record.row else { return Ok(cells) };
            let kept = |name: &&str| Some(((*name).to_owned(), object.get(*name)?.clone()));
            let rest: serde_json::Map<_, _> = others.iter().filter_map(kept).collect();
            cells.push(if rest.is_empty() { String::new() } else { Value::Object(rest).to_string() });
        } else if !others.is_empty() {
            return Err(CliError::Data {
                message: format!("{}: has columns that the first file has not: {}", record.place, others.join(", ")),
                hint: Some("score files with other columns one by one".to_owned()),
            });
        }
        Ok(cells)
    }

    /// Bytes read so far, as they lie on the disk.
    fn position(&self) -> u64 {
        self.source.records.bytes().load(Ordering::Relaxed)
    }
}

/// A value as a cell.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
