//! `headwater score`: posts in, the same posts with how negative, neutral and positive they are out.

use crate::failure::Failure;
use crate::output::check;
use crate::scorer::{ScorerName, ScorerOptions, scorer};
use crate::screen::{Screen, count};
use clap::Args;
use headwater_files::Draft;
use headwater_posts::read::{Bad, Record, Records, Row};
use headwater_posts::score::builtin::{Builtin, Explanation};
use indexmap::IndexSet;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Scores every post: how negative, neutral and positive it is
#[derive(Debug, Args)]
#[command(
    after_help = "Adds the columns negative, neutral, positive and score = positive/(negative+positive) to every readable row; an input column of one of these names gets _in behind it.\n\nExample: headwater score posts.csv --out scored.csv --explain"
)]
pub(crate) struct Score {
    /// Files of posts (CSV, JSON lines, Parquet, plain or compressed) or 'patterns*'; - is standard input
    #[arg(value_name = "POSTS", required = true)]
    posts: Vec<PathBuf>,
    /// File to write, CSV
    #[arg(long, value_name = "SCORED.csv")]
    out: PathBuf,
    /// Other names of columns or keys, such as text=body or text=post.content
    #[arg(long, value_name = "NAME=COLUMN,…", value_delimiter = ',')]
    map: Vec<String>,
    /// Add a column why: the terms that moved each score, and how much each adds to log(positive/negative)
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    scorer: ScorerOptions,
}

/// Posts that are scored at a time: many for the fast scorer, few for the slow one, so that progress is seen.
const SHARE: [usize; 2] = [8192, 256];

/// Terms that the column `why` has at most.
const TERMS: usize = 8;

impl Score {
    pub(crate) fn run(self, screen: &mut Screen) -> Result<(), Failure> {
        let builtin = self.scorer.scorer == ScorerName::Builtin;
        if self.explain && !builtin {
            return Err(Failure::usage(
                "--explain is for --scorer builtin; a text model has no terms",
                "leave one of the two out",
            ));
        }
        let extension = self.out.extension().and_then(|extension| extension.to_str());
        if let Some(extension @ ("parquet" | "npy" | "json" | "jsonl" | "gz" | "zst" | "xlsx")) = extension {
            let message = format!("scored posts are not written as .{extension}");
            return Err(Failure::usage(message, "let --out end in .csv"));
        }
        check(&self.posts, [&self.out])?;
        let mut rows = rows(&self.posts, &self.map)?;
        let Some(scorer) = scorer(&self.scorer, screen)? else {
            return Err(Failure::usage(
                "--scorer column takes scores that are there already",
                "use it with headwater beliefs",
            ));
        };
        let explainer = self.explain.then(Builtin::new);
        let mut out = csv::Writer::from_writer(Draft::create(&self.out)?);
        let failed = |error: csv::Error| Failure::data(format!("{}: cannot write: {error}", self.out.display()));

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
        let language = rows.header.iter().position(|name| name == "lang");
        let total = rows.source.records.total();
        // A pipe does not say how long it is.
        let _alive = total.is_none().then(|| screen.alive("scoring"));
        let (mut scored, mut foreign) = (0, 0);
        let mut progress = screen.progress("scoring (kB)", total.unwrap_or(0) >> 10);
        loop {
            let block = rows.next(share)?;
            if block.is_empty() {
                break;
            }
            let texts: Vec<&str> = block.iter().map(|(text, _)| text.as_str()).collect();
            let scores = scorer.score(&texts)?;
            for ((text, row), score) in block.iter().zip(&scores) {
                let numbers =
                    [score.negative, score.neutral, score.positive, score.score()].map(|value| value.to_string());
                let why = explainer.as_ref().map(|explainer| why(&explainer.explain(text)));
                let fields = row.iter().chain(&numbers).map(String::as_str).chain(why.as_deref());
                out.write_record(fields).map_err(failed)?;
            }
            let marked = language.into_iter().flat_map(|column| block.iter().map(move |(_, row)| &row[column]));
            foreign += marked.filter(|lang| !lang.is_empty() && !lang.to_lowercase().starts_with("en")).count();
            scored += block.len();
            if total.is_some() {
                progress.at(rows.position() >> 10);
            }
        }
        drop(progress);
        if scored == 0 {
            return Err(Failure::data(format!("{}: has no readable post", self.posts[0].display())));
        }
        let draft = out.into_inner().map_err(|error| failed(error.into_error().into()))?;
        draft.commit()?;
        if rows.unreadable > 0 {
            let first = rows.first_unreadable.as_deref().unwrap_or_default();
            screen.warn(&format!("{} left out; the first: {first}", count(rows.unreadable, "unreadable row")));
        }
        if builtin && foreign > 0 {
            screen.warn(&format!(
                "{} marked as not English; the built-in scorer knows English only",
                count(foreign, "post")
            ));
        }
        screen.remark(&format!("{} scored, in {}", count(scored, "post"), self.out.display()));
        Ok(())
    }
}

/// `love +1.20; ¬good -0.71; (the rest) +0.05`, the strongest first; they sum to log(positive/negative).
fn why(explanation: &Explanation) -> String {
    let strong = || explanation.terms.iter().take(TERMS).filter(|term| term.contribution.abs() >= 0.005);
    let all: f64 = explanation.terms.iter().map(|term| term.contribution).sum();
    let rest = all - strong().map(|term| term.contribution).sum::<f64>();
    let mut words: Vec<String> = strong().map(|term| format!("{} {:+.2}", term.term, term.contribution)).collect();
    if rest.abs() >= 0.005 {
        words.push(format!("(the rest) {rest:+.2}"));
    }
    words.join("; ")
}

/// Records one by one, also where a line holds a list of posts.
struct Source {
    records: Records,
    waiting: VecDeque<Record>,
}

impl Source {
    fn open(names: &[PathBuf]) -> Result<Self, Failure> {
        Ok(Source { records: Records::open(names)?, waiting: VecDeque::new() })
    }

    fn next(&mut self) -> Result<Option<Result<Record, Bad>>, Failure> {
        loop {
            if let Some(record) = self.waiting.pop_front() {
                return Ok(Some(Ok(record)));
            }
            match self.records.next()? {
                Some(Ok(Record { place, row: Row::Json(Value::Array(posts)) })) => {
                    let record = |post| Record { place: place.clone(), row: Row::Json(post) };
                    self.waiting.extend(posts.into_iter().map(record));
                }
                other => return Ok(other),
            }
        }
    }
}

/// The rows of some files of posts, in order, under one header.
struct Rows {
    source: Source,
    /// The first row, from which the header was read.
    first: Option<Record>,
    header: Vec<String>,
    /// Column or key of the text.
    text: String,
    /// Whether the first line was JSON.
    json: bool,
    /// Whether the last column of the header holds keys that the first line did not have.
    more: bool,
    unreadable: usize,
    first_unreadable: Option<String>,
}

/// Name of the column for keys that the first line of JSON did not have.
const MORE: &str = "more";

/// Keys of all lines of JSON in some files, in order of appearance.
fn keys(names: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut source = Source::open(names)?;
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
fn rows(names: &[PathBuf], map: &[String]) -> Result<Rows, Failure> {
    let mut text = "text";
    for entry in map {
        match entry.split_once('=') {
            Some(("text", column)) => text = column,
            Some(_) => {}
            None => {
                return Err(Failure::usage(format!("--map {entry:?} is not NAME=COLUMN"), "such as --map text=body"));
            }
        }
    }
    let mut rows = Rows {
        source: Source::open(names)?,
        first: None,
        header: Vec::new(),
        text: text.to_owned(),
        json: false,
        more: false,
        unreadable: 0,
        first_unreadable: None,
    };
    rows.first = rows.record()?;
    match (&rows.first, rows.source.records.table()) {
        (Some(Record { row: row @ Row::Json(_), .. }), _) => {
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
    let lost = rows.first.as_ref().is_some_and(|record| record.row.get(text).is_none());
    if lost && !rows.json {
        return Err(Failure::Data {
            message: format!("{}: no column {text:?}; found {}", names[0].display(), rows.header.join(", ")),
            hint: Some("say which column is the text with --map text=COLUMN".to_owned()),
        });
    }
    if rows.more {
        let mut name = MORE.to_owned();
        while rows.header.contains(&name) {
            name.push_str("_keys");
        }
        rows.header.push(name);
    }
    Ok(rows)
}

impl Rows {
    /// The next row that can be read.
    fn record(&mut self) -> Result<Option<Record>, Failure> {
        while let Some(found) = self.source.next()? {
            match found {
                Ok(record) => return Ok(Some(record)),
                Err(bad) => self.leave(&bad),
            }
        }
        Ok(None)
    }

    fn leave(&mut self, bad: &Bad) {
        self.unreadable += 1;
        self.first_unreadable.get_or_insert_with(|| bad.to_string());
    }

    /// At most so many rows, each with its text; none at the end.
    fn next(&mut self, most: usize) -> Result<Vec<(String, Vec<String>)>, Failure> {
        let mut block = Vec::new();
        while block.len() < most {
            let next = match self.first.take() {
                Some(first) => Some(first),
                None => self.record()?,
            };
            let Some(record) = next else { break };
            let Some(text) = record.row.get(&self.text).map(|text| text.into_owned()) else {
                let reason = format!("there is no text in {:?}", self.text);
                self.leave(&Bad { place: record.place, reason });
                continue;
            };
            block.push((text, self.cells(&record)?));
        }
        Ok(block)
    }

    /// What stands under each column of the header.
    fn cells(&self, record: &Record) -> Result<Vec<String>, Failure> {
        if let Row::Cells(columns, cells) = &record.row
            && columns.names == self.header
        {
            return Ok(cells.iter().map(str::to_owned).collect());
        }
        let own = &self.header[..self.header.len() - usize::from(self.more)];
        let value = |name: &String| match &record.row {
            // A key with a dot in it is a key, not a path.
            Row::Json(object) => object.get(name).map_or(String::new(), shown),
            row @ Row::Cells(..) => row.get(name).unwrap_or_default().into_owned(),
        };
        let mut cells: Vec<String> = own.iter().map(value).collect();
        let others: Vec<&str> =
            record.row.names().into_iter().filter(|name| !own.iter().any(|known| known == name)).collect();
        if self.more {
            let Row::Json(object) = &record.row else { return Ok(cells) };
            let kept = |name: &&str| Some(((*name).to_owned(), object.get(*name)?.clone()));
            let rest: serde_json::Map<_, _> = others.iter().filter_map(kept).collect();
            cells.push(if rest.is_empty() { String::new() } else { Value::Object(rest).to_string() });
        } else if !others.is_empty() {
            return Err(Failure::Data {
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
