//! Long tables: CSV and Arrow (Parquet files or batches in memory), row by row into a panel.

use super::grain::GrainDetector;
use super::{LoadedBeliefs, check_zeros, ratios_of};
use crate::cells::may_be_neutralised;
use crate::limit::{check_hypotheses, panel_limit};
use crate::time::{parse_time, written_offset};
use crate::{Error, ParquetBatches, restored_cell};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Schema, TimeUnit};
use headwater::Roster;
use headwater::panel::{PanelBuilder, Times, Unit};
use parquet::file::reader::ChunkReader;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

/// Rows per Parquet batch.
const BATCH: usize = 1 << 16;

/// Columns of a long table: where episode, time, agent and posts are, and which are hypotheses.
struct TableLayout {
    episode: Option<usize>,
    time: usize,
    agent: usize,
    posts: Option<usize>,
    values: Vec<usize>,
    names: Vec<String>,
}

/// Columns named in a message, at most.
const COLUMNS_NAMED: usize = 20;

/// The first names of a header.
fn few(header: &[&str]) -> String {
    let more = if header.len() > COLUMNS_NAMED { ",…" } else { "" };
    header[..header.len().min(COLUMNS_NAMED)].join(",") + more
}

impl TableLayout {
    fn new<'a>(header: impl Iterator<Item = &'a str>, path: &Path, log_ratios: bool) -> Result<Self, Error> {
        let header: Vec<&str> = header.map(str::trim).collect();
        let mut places = HashMap::with_capacity(header.len());
        for (position, name) in header.iter().enumerate() {
            if places.insert(*name, position).is_some() {
                return Err(Error::place(path, "line 1", format!("the column {name:?} is named twice; keep one")));
            }
        }
        let find = |name: &str| places.get(name).copied();
        let missing = |name: &str| {
            let met = few(&header);
            Error::place(
                path,
                "line 1",
                format!("there is no column {name:?} among {met:?}; expected time,agent and a column per hypothesis"),
            )
        };
        let time = find("time").ok_or_else(|| missing("time"))?;
        let agent = find("agent").ok_or_else(|| missing("agent"))?;
        let (posts, episode) = (find("posts"), find("episode"));
        let named = [Some(time), Some(agent), posts, episode];
        let values: Vec<usize> = (0..header.len()).filter(|column| !named.contains(&Some(*column))).collect();
        check_hypotheses(path, values.len() + usize::from(log_ratios))?;
        let names: Vec<String> = values.iter().map(|&column| header[column].to_owned()).collect();
        let fewest = if log_ratios { 1 } else { 2 };
        if values.len() < fewest {
            return Err(Error::place(
                path,
                "line 1",
                format!(
                    "{} hypothesis column(s) found ({}); at least {fewest} are expected{}",
                    values.len(),
                    names.join(","),
                    if log_ratios { "" } else { ", with probabilities that sum to 1" }
                ),
            ));
        }
        Ok(TableLayout { episode, time, agent, posts, values, names })
    }

    /// Names of the hypotheses, the reference first.
    fn hypotheses(&self, log_ratios: bool) -> Vec<String> {
        if !log_ratios {
            return self.names.clone();
        }
        // Log-ratio columns name θ_1…θ_H; ours are h1…hH.
        let ours = self.names.iter().enumerate().all(|(position, name)| *name == format!("h{}", position + 1));
        let reference = if ours { "h0" } else { "reference" };
        std::iter::once(reference.to_owned()).chain(self.names.iter().cloned()).collect()
    }
}

/// Turns rows of numbers into a panel and says where a bad one was.
struct TableReader<'a> {
    path: &'a Path,
    builder: Option<PanelBuilder>,
    unit: Option<Unit>,
    log_ratios: bool,
    hypotheses: Vec<String>,
    ratios: Vec<f64>,
    zeros: usize,
    cells: usize,
    first_zero: Option<String>,
    grain: GrainDetector,
    /// Bytes of the file, so far or in all; `None` for tables in memory.
    bytes: Option<u64>,
}

impl<'a> TableReader<'a> {
    fn new(path: &'a Path, layout: &TableLayout, log_ratios: bool) -> Self {
        let hypotheses = layout.hypotheses(log_ratios);
        TableReader {
            path,
            builder: None,
            unit: None,
            log_ratios,
            ratios: vec![0.0; hypotheses.len() - 1],
            hypotheses,
            zeros: 0,
            cells: 0,
            first_zero: None,
            grain: GrainDetector::new(),
            bytes: None,
        }
    }

    fn row(
        &mut self,
        place: &dyn Fn() -> String,
        (unit, time): (Unit, i64),
        time_text: &dyn Fn() -> String,
        (episode, agent): (Option<&str>, &str),
        values: &[f64],
        posts: u32,
    ) -> Result<(), Error> {
        for (column, name) in [("agent", Some(agent)), ("episode", episode)] {
            if name == Some("") {
                let place = format!("{}, column {column}", place());
                return Err(Error::place(self.path, place, "is empty; a name is expected"));
            }
        }
        let unit = *self.unit.get_or_insert(unit);
        let builder = self.builder.get_or_insert_with(|| PanelBuilder::new(self.hypotheses.clone(), unit));
        builder.set_limit(self.bytes.map_or(usize::MAX, panel_limit));
        if let Some(episode) = episode {
            builder.set_episode(episode).map_err(Error::data(self.path))?;
        }
        let zeros = ratios_of(values, &mut self.ratios, &self.hypotheses, self.log_ratios).map_err(|error| {
            let (column, problem) = match error {
                headwater::Error::Belief { hypothesis, problem } => (format!(", column {hypothesis}"), problem),
                other => (String::new(), other.to_string()),
            };
            Error::place(self.path, format!("{}{column}", place()), problem)
        })?;
        self.cells += values.len();
        self.zeros += zeros;
        values.iter().for_each(|value| self.grain.observe(*value));
        if zeros > 0 && self.first_zero.is_none() {
            self.first_zero = Some(place());
        }
        if unit == Unit::Microseconds {
            builder.local_offset(written_offset(&time_text()));
        }
        builder.push(time, agent, &self.ratios, posts).map_err(|error| {
            let problem = match error {
                error @ headwater::Error::TooLarge { .. } => return Error::data(self.path)(error),
                headwater::Error::DuplicateBelief { agent, .. } => {
                    let within = episode.map_or(String::new(), |episode| format!(" of episode {episode:?}"));
                    format!("agent {agent:?} already has a belief at time {}{within}; keep one", time_text())
                }
                other => other.to_string(),
            };
            Error::place(self.path, place(), problem)
        })
    }

    fn time(&self, text: &str, place: &dyn Fn() -> String) -> Result<(Unit, i64), Error> {
        let wanted = match self.unit {
            None => "a step number or an RFC 3339 time such as 2024-05-01T00:00:00Z",
            Some(Unit::Steps) => "a step number, as in the rows before",
            Some(Unit::Microseconds) => "an RFC 3339 time, as in the rows before",
        };
        parse_time(text).filter(|(unit, _)| self.unit.is_none_or(|known| known == *unit)).ok_or_else(|| {
            Error::place(self.path, format!("{}, column time", place()), format!("found {text:?}; expected {wanted}"))
        })
    }

    fn finish(self) -> Result<LoadedBeliefs, Error> {
        check_zeros(self.path, self.zeros, self.cells, self.first_zero.as_deref())?;
        let builder = self.builder.ok_or_else(|| Error::file(self.path, "holds no beliefs"))?;
        let panel = builder.finish().map_err(Error::data(self.path))?;
        Ok(LoadedBeliefs { panel, zeros: self.zeros, cells: self.cells, grain: self.grain.grain() })
    }
}

fn posts_of(number: f64) -> Option<u32> {
    (number >= 0.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX)).then_some(number as u32)
}

fn bad_posts(path: &Path, place: &str, met: &str) -> Error {
    Error::place(path, format!("{place}, column posts"), format!("found {met}; expected a whole number of at least 0"))
}

pub(super) fn read_csv(from: impl Read, path: &Path, log_ratios: bool) -> Result<LoadedBeliefs, Error> {
    let mut table = csv::ReaderBuilder::new().from_reader(from);
    let broken = |error: csv::Error| {
        let place = error.position().map_or("line 1".to_owned(), |position| format!("line {}", position.line()));
        let problem = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("has {len} cells where the header has {expected_len}")
            }
            csv::ErrorKind::Utf8 { .. } => "is not UTF-8 text".to_owned(),
            _ => error.to_string(),
        };
        Error::place(path, place, problem)
    };
    let layout = TableLayout::new(table.headers().map_err(broken)?.iter(), path, log_ratios)?;
    let mut reader = TableReader::new(path, &layout, log_ratios);
    let mut record = csv::StringRecord::new();
    let mut values = vec![0.0; layout.values.len()];
    while table.read_record(&mut record).map_err(broken)? {
        reader.bytes = Some(table.position().byte());
        let line = record.position().map_or(0, |position| position.line());
        let place = || format!("line {line}");
        let cell = |column: usize| record.get(column).unwrap_or_default().trim();
        for (value, (&column, name)) in values.iter_mut().zip(layout.values.iter().zip(&layout.names)) {
            *value = cell(column).parse().map_err(|_| {
                Error::place(
                    path,
                    format!("line {line}, column {name}"),
                    format!(
                        "found {:?}, which is not a number; every column but episode, time, agent and posts is a hypothesis",
                        cell(column)
                    ),
                )
            })?;
        }
        let posts = match layout.posts {
            None => 1,
            Some(column) => (cell(column).parse().ok().and_then(posts_of))
                .ok_or_else(|| bad_posts(path, &place(), &format!("{:?}", cell(column))))?,
        };
        let agent = cell(layout.agent);
        let time = reader.time(cell(layout.time), &place)?;
        let episode = layout.episode.map(cell);
        reader.row(&place, time, &|| cell(layout.time).to_owned(), (episode, agent), &values, posts)?;
    }
    let mut loaded = reader.finish()?;
    if let Some(roster) = restored_names(loaded.panel.roster()).map_err(Error::data(path))? {
        loaded.panel = loaded.panel.with_roster(roster).map_err(Error::data(path))?;
    }
    Ok(loaded)
}

/// Names without the marks that we put before text which a spreadsheet would run; none where there are no such marks.
fn restored_names(roster: &Roster) -> Result<Option<Roster>, headwater::Error> {
    let names = roster.agents();
    let marked = names.iter().any(|name| restored_cell(name) != name);
    if !marked || !may_be_neutralised(names.iter().map(String::as_str)) {
        return Ok(None);
    }
    Roster::new(names.iter().map(|name| restored_cell(name)), roster.hypotheses().to_vec()).map(Some)
}

pub(super) fn read_parquet(
    from: impl ChunkReader + 'static,
    path: &Path,
    log_ratios: bool,
) -> Result<LoadedBeliefs, Error> {
    let broken = |error: String| Error::file(path, format!("cannot be read as Parquet ({error}); write it again"));
    let bytes = from.len();
    let batches = ParquetBatches::new(from, BATCH).map_err(broken)?;
    let schema = batches.schema().clone();
    from_batches(path, &schema, batches.map(|batch| batch.map_err(broken)), log_ratios, Some(bytes))
}

/// Beliefs of a long table that is in memory, or comes batch by batch; `path` names it in messages.
pub fn beliefs_from_batches(
    path: &Path,
    schema: &Schema,
    batches: impl Iterator<Item = Result<RecordBatch, Error>>,
    log_ratios: bool,
) -> Result<LoadedBeliefs, Error> {
    from_batches(path, schema, batches, log_ratios, None)
}

fn from_batches(
    path: &Path,
    schema: &Schema,
    batches: impl Iterator<Item = Result<RecordBatch, Error>>,
    log_ratios: bool,
    bytes: Option<u64>,
) -> Result<LoadedBeliefs, Error> {
    let layout = TableLayout::new(schema.fields().iter().map(|field| field.name().as_str()), path, log_ratios)?;
    for (&column, name) in layout.values.iter().zip(&layout.names) {
        let kind = schema.field(column).data_type();
        if !kind.is_numeric() {
            let kind = if kind.is_string() { "text".to_owned() } else { kind.to_string() };
            return Err(Error::place(
                path,
                format!("column {name}"),
                format!("holds {kind}, not numbers; every column but episode, time, agent and posts is a hypothesis"),
            ));
        }
    }
    for (column, name, wanted) in [(layout.time, "time", "times"), (layout.agent, "agent", "names")] {
        let kind = schema.field(column).data_type();
        if kind.is_nested() {
            return Err(Error::place(
                path,
                format!("column {name}"),
                format!("holds lists or structures, not {wanted}"),
            ));
        }
    }
    let mut reader = TableReader { bytes, ..TableReader::new(path, &layout, log_ratios) };
    let mut first_row = 0;
    for batch in batches {
        let batch = batch?;
        table_rows(&batch, &layout, &mut reader, first_row)?;
        first_row += batch.num_rows();
    }
    reader.finish()
}

fn table_rows(
    batch: &RecordBatch,
    layout: &TableLayout,
    reader: &mut TableReader<'_>,
    first_row: usize,
) -> Result<(), Error> {
    let path = reader.path;
    let convert = |column: usize, to: &DataType| -> Result<ArrayRef, Error> {
        let name = batch.schema().field(column).name().clone();
        let from = batch.column(column);
        let array = match (to, from.data_type()) {
            (
                DataType::Utf8View,
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..),
            ) => cast(from, to),
            (DataType::Utf8View, _) => cast(from, &DataType::Utf8).and_then(|texts| cast(&texts, to)),
            _ => cast(from, to),
        };
        let array = array.map_err(|error| Error::place(path, format!("column {name}"), error.to_string()))?;
        match (0..array.len()).find(|&row| array.is_null(row)) {
            None => Ok(array),
            Some(row) => {
                let null = batch.column(column).is_null(row);
                let problem = if null { "is null; leave out the row of a silent agent" } else { "is out of range" };
                Err(Error::place(path, format!("row {}, column {name}", first_row + row + 1), problem))
            }
        }
    };
    let values: Vec<ArrayRef> =
        layout.values.iter().map(|&column| convert(column, &DataType::Float64)).collect::<Result<_, _>>()?;
    let values: Vec<&[f64]> = values.iter().map(|array| &array.as_primitive::<Float64Type>().values()[..]).collect();
    // Views, so that a long name in a dictionary is not copied into every row.
    let agents = convert(layout.agent, &DataType::Utf8View)?;
    let agents = agents.as_string_view();
    let posts = layout.posts.map(|column| convert(column, &DataType::Float64)).transpose()?;
    let episodes = layout.episode.map(|column| convert(column, &DataType::Utf8View)).transpose()?;
    let kind = batch.column(layout.time).data_type().clone();
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let (numbers, texts, unit) = match kind {
        _ if kind.is_integer() => (Some(convert(layout.time, &DataType::Int64)?), None, Unit::Steps),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
            (Some(convert(layout.time, &micros)?), None, Unit::Microseconds)
        }
        _ => (None, Some(convert(layout.time, &DataType::Utf8View)?), Unit::Steps),
    };
    let mut row_values = vec![0.0; values.len()];
    for row in 0..batch.num_rows() {
        let place = || format!("row {}", first_row + row + 1);
        row_values.iter_mut().zip(&values).for_each(|(value, column)| *value = column[row]);
        let time = match (&numbers, &texts) {
            (Some(array), _) if unit == Unit::Steps => (unit, array.as_primitive::<Int64Type>().value(row)),
            (Some(array), _) => (unit, array.as_primitive::<TimestampMicrosecondType>().value(row)),
            (None, Some(array)) => reader.time(array.as_string_view().value(row), &place)?,
            (None, None) => unreachable!("one of the two is set above"),
        };
        let posts = match &posts {
            None => 1,
            Some(array) => {
                let met = array.as_primitive::<Float64Type>().value(row);
                posts_of(met).ok_or_else(|| bad_posts(path, &place(), &met.to_string()))?
            }
        };
        let shown = || match &texts {
            Some(array) => array.as_string_view().value(row).to_owned(),
            None => time_text(time),
        };
        let episode = episodes.as_ref().map(|episodes| episodes.as_string_view().value(row));
        reader.row(&place, time, &shown, (episode, agents.value(row)), &row_values, posts)?;
    }
    Ok(())
}

fn time_text((unit, time): (Unit, i64)) -> String {
    match unit {
        Unit::Steps => time.to_string(),
        Unit::Microseconds => crate::show_time(&Times::utc(vec![time]), 0),
    }
}
