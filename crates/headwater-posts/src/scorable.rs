//! Rows to be scored: posts in, their text and all their columns out, under one header.

use crate::Error;
use crate::ingest::PostHooks;
use crate::ingest::main_problem;
use crate::mapping::{ColumnMapping, begins_like_repost};
use crate::options::PostsInput;
use crate::platform::PlatformReader;
use crate::quality::MaxBad;
use crate::read::{BadRow, ColumnNames, Encoding, Preset, RawRecord, RecordPlace, RecordValue, Records, RowProblem};
use headwater::words::list;
use indexmap::IndexSet;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Records one by one, also where a line holds a list of posts; those of a platform as rows of a table.
struct ScorableRecords {
    records: Records,
    preset: Option<Preset>,
    /// Whether platforms are recognised, and those that were.
    recognises: bool,
    recognised: Vec<Preset>,
    /// The columns of a platform's posts.
    columns: Arc<ColumnNames>,
    waiting: VecDeque<Result<RawRecord, BadRow>>,
    platform: PlatformReader,
}

/// What is known of a platform's post, by the names under which it is looked for.
const FIELDS: [&str; 6] = ["id", "user", "time", "lang", "repost", "text"];

impl ScorableRecords {
    fn open(input: &PostsInput, mapping: &ColumnMapping) -> Result<Self, Error> {
        let columns = Arc::new(ColumnNames::new(FIELDS.map(str::to_owned).to_vec()));
        Ok(ScorableRecords {
            records: input.records()?,
            preset: mapping.platform(),
            recognises: mapping.recognises(),
            recognised: Vec::new(),
            columns,
            waiting: VecDeque::new(),
            platform: PlatformReader::default(),
        })
    }

    fn next(&mut self) -> Result<Option<Result<RawRecord, BadRow>>, Error> {
        loop {
            if let Some(record) = self.waiting.pop_front() {
                return Ok(Some(record));
            }
            let Some(found) = self.records.next()? else { return Ok(None) };
            let RawRecord { place, row } = match found {
                Ok(record) => record,
                Err(bad) => return Ok(Some(Err(bad))),
            };
            let preset = self.preset.or_else(|| self.platform_of(&row));
            match (preset, row) {
                (Some(preset), RecordValue::Cells(columns, cells)) => {
                    if let Some(problem) = preset.refuses(&columns) {
                        return Err(Error::Format { path: place.file.to_path_buf(), found: problem });
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

    /// The platform of a row that has no text where it is looked for; the first holds for all.
    fn platform_of(&mut self, row: &RecordValue) -> Option<Preset> {
        if !self.recognises {
            return None;
        }
        if let RecordValue::Json(_) = row
            && let Some(known) = self.recognised.first()
        {
            return Some(*known);
        }
        let found = match row {
            RecordValue::Cells(columns, _) if columns.position("text").is_none() => Preset::of_table(columns),
            RecordValue::Json(value) => {
                let first = value.as_array().and_then(|list| list.first()).unwrap_or(value);
                let preset = Preset::recognised(value);
                // Every key is kept where the text needs no looking for.
                preset.filter(|preset| *preset == Preset::Telegram || first.get("text").is_none())
            }
            RecordValue::Cells(..) => None,
        };
        if let Some(preset) = found
            && !self.recognised.contains(&preset)
        {
            self.recognised.push(preset);
        }
        found
    }

    /// The posts of a platform's line.
    fn platform(&mut self, preset: Preset, value: &Value, place: &RecordPlace) {
        let bad = |reason: String| BadRow::new(place.clone(), reason);
        if let Some(other) = Preset::mistaken(Some(preset), value) {
            self.waiting.push_back(Err(bad(other.to_string())));
            return;
        }
        for post in self.platform.drafts(preset, value, place, true) {
            let record = post.and_then(|post| {
                let text = post.text.ok_or("has no text; a post without words has no opinion")?;
                let repost = post.repost.unwrap_or_else(|| begins_like_repost(&text));
                let repost = if repost { "1" } else { "0" }.to_owned();
                let known = [post.id, post.user, post.time, post.lang].map(Option::unwrap_or_default);
                let cells = known.into_iter().chain([repost, text]).collect();
                Ok(RawRecord { place: place.clone(), row: RecordValue::Cells(self.columns.clone(), cells) })
            });
            self.waiting.push_back(record.map_err(bad));
        }
    }
}

/// The rows of some files of posts, in order, under one header.
pub struct ScorableRows {
    source: ScorableRecords,
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
    max_bad: MaxBad,
    /// Rows met, and those that cannot be read.
    rows: u64,
    bad: u64,
    first_bad: Option<BadRow>,
    problems: HashMap<RowProblem, u64>,
}

/// Name of the column for keys that the first line of JSON did not have.
const MORE: &str = "more";

/// Keys of objects that can become columns: every row has a cell for each.
const MOST_KEYS: usize = 1000;

/// Cells of a block of rows, at most.
const BLOCK_CELLS: usize = 1 << 20;

/// Keys of all lines of JSON in some files, in order of appearance.
fn keys(input: &PostsInput) -> Result<Vec<String>, Error> {
    let mut source = ScorableRecords::open(input, &ColumnMapping::default())?;
    source.recognises = false;
    let mut keys = IndexSet::new();
    while let Some(found) = source.next()? {
        if let Ok(record) = found {
            for name in record.row.names().into_iter().filter(|name| !keys.contains(*name)).collect::<Vec<_>>() {
                keys.insert(name.to_owned());
            }
            if keys.len() > MOST_KEYS {
                let problem = format!(
                    "has more than {MOST_KEYS} different keys, and each would be a column; expected posts with the same keys"
                );
                return Err(Error::file(input.name(), problem));
            }
        }
    }
    Ok(keys.into_iter().collect())
}

impl ScorableRows {
    /// Opens posts and reads the first row, from which the header is known.
    pub fn open(
        input: &PostsInput,
        mapping: &ColumnMapping,
        max_bad: MaxBad,
        hooks: &mut dyn PostHooks,
    ) -> Result<Self, Error> {
        let mut rows = ScorableRows {
            source: ScorableRecords::open(input, mapping)?,
            first: None,
            header: Vec::new(),
            text: String::new(),
            lang: None,
            json: false,
            more: false,
            max_bad,
            rows: 0,
            bad: 0,
            first_bad: None,
            problems: HashMap::new(),
        };
        rows.first = rows.record(hooks)?;
        match (&rows.first, rows.source.records.table()) {
            (Some(RawRecord { row: row @ RecordValue::Json(_), .. }), _) => {
                // Lines may have other keys than the first. A pipe cannot be read twice: what is new there goes into one cell.
                rows.json = true;
                rows.more = rows.source.records.total().is_none();
                rows.header = match rows.more {
                    true => row.names().into_iter().map(str::to_owned).collect(),
                    false => keys(input)?,
                };
            }
            (Some(record), _) => rows.header = record.row.names().into_iter().map(str::to_owned).collect(),
            (None, Some((_, columns))) => rows.header.extend_from_slice(columns.names()),
            (None, None) => {}
        }
        // Posts of a platform's objects have our own names.
        let ours = matches!(&rows.first, Some(RawRecord { row: RecordValue::Cells(columns, _), .. })
            if Arc::ptr_eq(columns, &rows.source.columns));
        let mapping = match rows.source.recognised.first() {
            _ if ours => ColumnMapping::default(),
            Some(preset) => mapping.clone().with_preset(*preset),
            None => mapping.clone(),
        };
        let known = |field: &str| mapping.names(field).iter().find(|name| rows.header.contains(name));
        let text = known("text").or(mapping.names("text").first()).cloned().unwrap_or_default();
        rows.lang = known("lang").and_then(|lang| rows.header.iter().position(|name| name == lang));
        let lost = rows.first.as_ref().is_some_and(|record| record.row.get(&text).is_none());
        if lost && !rows.json {
            let (path, column) = (input.name().to_owned(), text);
            return Err(Error::TextColumn { path, column, found: list(rows.header.iter().map(String::as_str)) });
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

    /// The columns of every row.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Position of the language mark among them.
    pub fn language(&self) -> Option<usize> {
        self.lang
    }

    /// Bytes there are to read, unless one of the files is a pipe.
    pub fn total_bytes(&self) -> Option<u64> {
        self.source.records.total()
    }

    /// Lines so far that held something else than posts.
    pub fn other_lines(&self) -> usize {
        self.source.platform.passed as usize
    }

    /// Reposts so far of posts that were not read before, so that nobody knows what they say.
    pub fn bare_reposts(&self) -> u64 {
        self.source.platform.bare_reposts
    }

    /// Platforms that were recognised so far.
    pub fn recognised(&self) -> &[Preset] {
        &self.source.recognised
    }

    /// Encodings that were met and decoded so far.
    pub fn decoded(&self) -> Vec<Encoding> {
        self.source.records.met().all().collect()
    }

    /// Rows so far that cannot be read.
    pub fn bad(&self) -> u64 {
        self.bad
    }

    /// The first of them.
    pub fn first_bad(&self) -> Option<&BadRow> {
        self.first_bad.as_ref()
    }

    /// Refuses the whole where too many rows cannot be read.
    pub fn finish(&self) -> Result<(), Error> {
        if self.max_bad.exceeded(self.bad, self.rows) { Err(self.too_many()) } else { Ok(()) }
    }

    fn leave(&mut self, bad: BadRow, hooks: &mut dyn PostHooks) -> Result<(), Error> {
        self.rows += 1;
        self.bad += 1;
        *self.problems.entry(bad.problem).or_default() += 1;
        hooks.bad_rows(std::slice::from_ref(&bad))?;
        self.first_bad.get_or_insert(bad);
        if self.max_bad.hopeless(self.bad, self.rows) { Err(self.too_many()) } else { Ok(()) }
    }

    fn too_many(&self) -> Error {
        let first = self.first_bad.as_ref().map(BadRow::to_string).unwrap_or_default();
        Error::TooManyBad {
            bad: self.bad,
            rows: self.rows,
            allowed: self.max_bad.to_string(),
            first,
            problem: main_problem(&self.problems),
        }
    }

    /// The next row that can be read.
    fn record(&mut self, hooks: &mut dyn PostHooks) -> Result<Option<RawRecord>, Error> {
        while let Some(found) = self.source.next()? {
            match found {
                Ok(record) => return Ok(Some(record)),
                Err(bad) => self.leave(bad, hooks)?,
            }
        }
        Ok(None)
    }

    /// At most so many rows, each with its text; none at the end.
    pub fn next(&mut self, most: usize, hooks: &mut dyn PostHooks) -> Result<Vec<(String, Vec<String>)>, Error> {
        let mut block = Vec::new();
        let most = most.min(BLOCK_CELLS / self.header.len().max(1)).max(1);
        while block.len() < most {
            let next = match self.first.take() {
                Some(first) => Some(first),
                None => self.record(hooks)?,
            };
            let Some(record) = next else { break };
            let Some(text) = record.row.get(&self.text).map(|text| text.into_owned()) else {
                let reason = format!("there is no text in {:?}", self.text);
                self.leave(BadRow::new(record.place, reason), hooks)?;
                continue;
            };
            self.rows += 1;
            block.push((text, self.cells(&record)?));
        }
        Ok(block)
    }

    /// What stands under each column of the header.
    fn cells(&self, record: &RawRecord) -> Result<Vec<String>, Error> {
        if let RecordValue::Cells(columns, cells) = &record.row
            && columns.names() == self.header
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
            return Err(Error::OtherColumns { place: record.place.clone(), columns: list(others) });
        }
        Ok(cells)
    }

    /// Bytes read so far, as they lie on the disk.
    pub fn bytes(&self) -> u64 {
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
