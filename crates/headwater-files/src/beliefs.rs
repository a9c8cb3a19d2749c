//! Beliefs on disk: a long table (CSV or Parquet) or an array (`.npy`), streamed into or out of a panel.

use crate::npy::{self, Header, Kind};
use crate::time::{parse_time, written_offset};
use crate::{AtomicFile, Error};
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use headwater::panel::{self, PanelBuilder, Times, Unit};
use headwater::{Panel, Roster};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use rayon::prelude::*;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// More zero probabilities than this are a sign of rounding, not of certainty.
const MOST_ZEROS: f64 = 0.01;

/// Numbers of an array read at a time.
const FLOATS_AT_ONCE: usize = 1 << 18;

/// Rows per Parquet batch.
const BATCH: usize = 1 << 16;

/// How finely numbers were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// All are whole multiples of 10^−decimals.
    Decimals(u32),
    /// All are float32 numbers.
    Single,
    /// As finely as float64 can.
    Double,
}

impl Grain {
    /// More decimals than this are not called rounding.
    const MOST: u32 = 9;

    /// What has to be known where certificates are wanted.
    pub fn warning(self) -> Option<String> {
        match self {
            Grain::Decimals(decimals) => Some(format!(
                "the beliefs are rounded to {decimals} decimal{} (quantum 1e-{decimals}): nothing can be certified, and errors of that size enter the fit",
                if decimals == 1 { "" } else { "s" }
            )),
            Grain::Single => Some("the beliefs are float32 numbers: nothing can be certified".into()),
            Grain::Double => None,
        }
    }
}

/// Finds the grain of numbers as they pass by.
#[derive(Debug, Clone, Copy)]
struct Sieve {
    decimals: u32,
    single: bool,
}

impl Sieve {
    fn new() -> Self {
        Sieve { decimals: 1, single: true }
    }

    fn see(&mut self, value: f64) {
        // A multiple of 10^−d is one to within a few roundings of the product.
        let off = |decimals: u32| {
            let scaled = value * 10f64.powi(decimals as i32);
            (scaled - scaled.round()).abs() > 16.0 * f64::EPSILON * scaled.abs()
        };
        while self.decimals <= Grain::MOST && off(self.decimals) {
            self.decimals += 1;
        }
        self.single &= f64::from(value as f32) == value;
    }

    /// Whether nothing that passes by could change what was found.
    fn through(&self) -> bool {
        self.decimals > Grain::MOST && !self.single
    }

    fn merge(&mut self, other: Sieve) {
        self.decimals = self.decimals.max(other.decimals);
        self.single &= other.single;
    }

    fn grain(self) -> Grain {
        match self {
            Sieve { decimals, .. } if decimals <= Grain::MOST => Grain::Decimals(decimals),
            Sieve { single: true, .. } => Grain::Single,
            Sieve { .. } => Grain::Double,
        }
    }
}

/// A panel, and what was done to it at the door.
#[derive(Debug)]
pub struct Beliefs {
    /// The beliefs.
    pub panel: Panel,
    /// Probabilities of zero that were raised.
    pub zeros: usize,
    /// Numbers read.
    pub cells: usize,
    /// How finely they were written.
    pub grain: Grain,
}

impl Beliefs {
    /// What has to be known of probabilities that were zero.
    pub fn raised(&self) -> Option<String> {
        let Beliefs { zeros, cells, .. } = self;
        (*zeros > 0).then(|| format!("{zeros} of {cells} probabilities were 0 and were raised to 1e-12"))
    }
}

/// Reads beliefs by extension: `.parquet`, `.npy`, otherwise CSV; `-` is CSV on standard input.
///
/// With `log_ratios` the numbers are log ψ(θ_0)/ψ(θ_j) instead of probabilities.
pub fn read_beliefs(path: &Path, log_ratios: bool) -> Result<Beliefs, Error> {
    if path == Path::new("-") {
        return read_csv(std::io::stdin().lock(), path, log_ratios);
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("npy") => read_npy(path, log_ratios),
        Some("parquet") => read_parquet(path, log_ratios),
        _ => read_csv(BufReader::with_capacity(1 << 18, open(path)?), path, log_ratios),
    }
}

fn open(path: &Path) -> Result<File, Error> {
    if path.is_dir() {
        return Err(Error::file(path, "is a folder; a beliefs file is wanted"));
    }
    File::open(path).map_err(Error::io(path, "cannot read"))
}

/// Columns of a long table: where time, agent and posts are, and which are hypotheses.
struct Layout {
    time: usize,
    agent: usize,
    posts: Option<usize>,
    values: Vec<usize>,
    names: Vec<String>,
}

impl Layout {
    fn new<'a>(header: impl Iterator<Item = &'a str>, path: &Path, log_ratios: bool) -> Result<Self, Error> {
        let header: Vec<&str> = header.map(str::trim).collect();
        let find = |name: &str| header.iter().position(|column| *column == name);
        for (position, name) in header.iter().enumerate() {
            if find(name) != Some(position) {
                return Err(Error::place(path, "line 1", format!("the column {name:?} is named twice; keep one")));
            }
        }
        let missing = |name: &str| {
            let met = header.join(",");
            Error::place(
                path,
                "line 1",
                format!("there is no column {name:?} among {met:?}; wanted time,agent and a column per hypothesis"),
            )
        };
        let time = find("time").ok_or_else(|| missing("time"))?;
        let agent = find("agent").ok_or_else(|| missing("agent"))?;
        let posts = find("posts");
        let values: Vec<usize> =
            (0..header.len()).filter(|column| ![Some(time), Some(agent), posts].contains(&Some(*column))).collect();
        let names: Vec<String> = values.iter().map(|&column| header[column].to_owned()).collect();
        let fewest = if log_ratios { 1 } else { 2 };
        if values.len() < fewest {
            return Err(Error::place(
                path,
                "line 1",
                format!(
                    "{} hypothesis column(s) met ({}); at least {fewest} are wanted{}",
                    values.len(),
                    names.join(","),
                    if log_ratios { "" } else { ", with probabilities that sum to 1" }
                ),
            ));
        }
        Ok(Layout { time, agent, posts, values, names })
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

/// Takes rows of numbers through the library's door and says where a bad one was.
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
    sieve: Sieve,
}

impl<'a> TableReader<'a> {
    fn new(path: &'a Path, layout: &Layout, log_ratios: bool) -> Self {
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
            sieve: Sieve::new(),
        }
    }

    fn row(
        &mut self,
        place: &dyn Fn() -> String,
        (unit, time): (Unit, i64),
        time_text: &dyn Fn() -> String,
        agent: &str,
        values: &[f64],
        posts: u32,
    ) -> Result<(), Error> {
        if agent.is_empty() {
            let place = format!("{}, column agent", place());
            return Err(Error::place(self.path, place, "is empty; a name is wanted"));
        }
        let unit = *self.unit.get_or_insert(unit);
        let builder = self.builder.get_or_insert_with(|| PanelBuilder::new(self.hypotheses.clone(), unit));
        let zeros = ratios_of(values, &mut self.ratios, &self.hypotheses, self.log_ratios).map_err(|error| {
            let (column, problem) = match error {
                headwater::Error::Belief { hypothesis, problem } => (format!(", column {hypothesis}"), problem),
                other => (String::new(), other.to_string()),
            };
            Error::place(self.path, format!("{}{column}", place()), problem)
        })?;
        self.cells += values.len();
        self.zeros += zeros;
        values.iter().for_each(|value| self.sieve.see(*value));
        if zeros > 0 && self.first_zero.is_none() {
            self.first_zero = Some(place());
        }
        if unit == Unit::Microseconds {
            builder.local_offset(written_offset(&time_text()));
        }
        builder.push(time, agent, &self.ratios, posts).map_err(|error| {
            let problem = match error {
                headwater::Error::DuplicateBelief { agent, .. } => {
                    format!("agent {agent:?} already has a belief at time {}; keep one", time_text())
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
            Error::place(self.path, format!("{}, column time", place()), format!("met {text:?}; wanted {wanted}"))
        })
    }

    fn finish(self) -> Result<Beliefs, Error> {
        check_zeros(self.path, self.zeros, self.cells, self.first_zero.as_deref())?;
        let builder = self.builder.ok_or_else(|| Error::file(self.path, "holds no beliefs"))?;
        let panel = builder.finish().map_err(Error::data(self.path))?;
        Ok(Beliefs { panel, zeros: self.zeros, cells: self.cells, grain: self.sieve.grain() })
    }
}

fn ratios_of(
    values: &[f64],
    ratios: &mut [f64],
    hypotheses: &[String],
    log_ratios: bool,
) -> Result<usize, headwater::Error> {
    if !log_ratios {
        return panel::log_ratios(values, ratios, hypotheses);
    }
    if let Some(bad) = values.iter().position(|value| !value.is_finite()) {
        return Err(headwater::Error::Belief {
            hypothesis: hypotheses[bad + 1].clone(),
            problem: format!("met {}; a log-ratio must be a finite number", values[bad]),
        });
    }
    ratios.copy_from_slice(values);
    Ok(0)
}

fn check_zeros(path: &Path, zeros: usize, cells: usize, first: Option<&str>) -> Result<(), Error> {
    if zeros as f64 <= MOST_ZEROS * cells as f64 {
        return Ok(());
    }
    Err(Error::place(
        path,
        first.unwrap_or_default(),
        format!(
            "{zeros} of {cells} probabilities are zero (this is the first); more than {}% says that they were rounded. Write more decimals, or log-ratios",
            100.0 * MOST_ZEROS
        ),
    ))
}

fn posts_of(number: f64) -> Option<u32> {
    (number >= 0.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX)).then_some(number as u32)
}

fn bad_posts(path: &Path, place: &str, met: &str) -> Error {
    Error::place(path, format!("{place}, column posts"), format!("met {met}; wanted a whole number of at least 0"))
}

fn read_csv(from: impl Read, path: &Path, log_ratios: bool) -> Result<Beliefs, Error> {
    let mut reader = csv::ReaderBuilder::new().from_reader(from);
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
    let layout = Layout::new(reader.headers().map_err(broken)?.iter(), path, log_ratios)?;
    let mut door = TableReader::new(path, &layout, log_ratios);
    let mut record = csv::StringRecord::new();
    let mut values = vec![0.0; layout.values.len()];
    while reader.read_record(&mut record).map_err(broken)? {
        let line = record.position().map_or(0, |position| position.line());
        let place = || format!("line {line}");
        let cell = |column: usize| record.get(column).unwrap_or_default().trim();
        for (value, (&column, name)) in values.iter_mut().zip(layout.values.iter().zip(&layout.names)) {
            *value = cell(column).parse().map_err(|_| {
                Error::place(
                    path,
                    format!("line {line}, column {name}"),
                    format!(
                        "met {:?}, which is not a number; every column but time, agent and posts is a hypothesis",
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
        let time = door.time(cell(layout.time), &place)?;
        door.row(&place, time, &|| cell(layout.time).to_owned(), agent, &values, posts)?;
    }
    door.finish()
}

fn read_parquet(path: &Path, log_ratios: bool) -> Result<Beliefs, Error> {
    let broken = |error: &dyn std::fmt::Display| {
        Error::file(path, format!("is not a whole Parquet file ({error}); write it again"))
    };
    let builder = ParquetRecordBatchReaderBuilder::try_new(open(path)?).map_err(|error| broken(&error))?;
    let schema = builder.schema().clone();
    let batches = builder.with_batch_size(BATCH).build().map_err(|error| broken(&error))?;
    beliefs_of_batches(path, &schema, batches.map(|batch| batch.map_err(|error| broken(&error))), log_ratios)
}

/// Beliefs of a long table that is in memory, or comes batch by batch; `path` names it in messages.
pub fn beliefs_of_batches(
    path: &Path,
    schema: &Schema,
    batches: impl Iterator<Item = Result<RecordBatch, Error>>,
    log_ratios: bool,
) -> Result<Beliefs, Error> {
    let layout = Layout::new(schema.fields().iter().map(|field| field.name().as_str()), path, log_ratios)?;
    for (&column, name) in layout.values.iter().zip(&layout.names) {
        let kind = schema.field(column).data_type();
        if !kind.is_numeric() {
            return Err(Error::place(
                path,
                format!("column {name}"),
                format!("holds {kind}, not numbers; every column but time, agent and posts is a hypothesis"),
            ));
        }
    }
    let mut door = TableReader::new(path, &layout, log_ratios);
    let mut first_row = 0;
    for batch in batches {
        let batch = batch?;
        table_rows(&batch, &layout, &mut door, first_row)?;
        first_row += batch.num_rows();
    }
    door.finish()
}

fn table_rows(batch: &RecordBatch, layout: &Layout, door: &mut TableReader<'_>, first_row: usize) -> Result<(), Error> {
    let path = door.path;
    let convert = |column: usize, to: &DataType| -> Result<ArrayRef, Error> {
        let name = batch.schema().field(column).name().clone();
        let array = cast(batch.column(column), to)
            .map_err(|error| Error::place(path, format!("column {name}"), error.to_string()))?;
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
    let agents = convert(layout.agent, &DataType::Utf8)?;
    let agents = agents.as_string::<i32>();
    let posts = layout.posts.map(|column| convert(column, &DataType::Float64)).transpose()?;
    let kind = batch.column(layout.time).data_type().clone();
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let (numbers, texts, unit) = match kind {
        _ if kind.is_integer() => (Some(convert(layout.time, &DataType::Int64)?), None, Unit::Steps),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
            (Some(convert(layout.time, &micros)?), None, Unit::Microseconds)
        }
        _ => (None, Some(convert(layout.time, &DataType::Utf8)?), Unit::Steps),
    };
    let mut row_values = vec![0.0; values.len()];
    for row in 0..batch.num_rows() {
        let place = || format!("row {}", first_row + row + 1);
        row_values.iter_mut().zip(&values).for_each(|(value, column)| *value = column[row]);
        let time = match (&numbers, &texts) {
            (Some(array), _) if unit == Unit::Steps => (unit, array.as_primitive::<Int64Type>().value(row)),
            (Some(array), _) => (unit, array.as_primitive::<TimestampMicrosecondType>().value(row)),
            (None, Some(array)) => door.time(array.as_string::<i32>().value(row), &place)?,
            (None, None) => unreachable!("one of the two is set above"),
        };
        let posts = match &posts {
            None => 1,
            Some(array) => {
                let met = array.as_primitive::<Float64Type>().value(row);
                posts_of(met).ok_or_else(|| bad_posts(path, &place(), &met.to_string()))?
            }
        };
        let time_text = || match &texts {
            Some(array) => array.as_string::<i32>().value(row).to_owned(),
            None => headwater_time(time),
        };
        door.row(&place, time, &time_text, agents.value(row), &row_values, posts)?;
    }
    Ok(())
}

fn headwater_time((unit, time): (Unit, i64)) -> String {
    match unit {
        Unit::Steps => time.to_string(),
        Unit::Microseconds => crate::show_time(&Times::utc(vec![time]), 0),
    }
}

fn read_npy(path: &Path, log_ratios: bool) -> Result<Beliefs, Error> {
    let file = open(path)?;
    let size = file.metadata().map_err(Error::io(path, "cannot read"))?.len();
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let header = Header::read(&mut reader, path)?;
    if !matches!(header.kind, Kind::Float64 | Kind::Float32) {
        return Err(Error::file(path, "does not hold float64 or float32 numbers; convert it with .astype(float)"));
    }
    let (steps, agents, values) =
        sides(&header.shape, log_ratios).map_err(|problem| Error::file(path, format!("has {problem}")))?;
    let header_end = std::io::Seek::stream_position(&mut reader).map_err(Error::io(path, "cannot read"))?;
    let (met, needed) = (size.saturating_sub(header_end), header.bytes());
    if needed.is_none_or(|needed| needed as u64 != met) {
        let needed = needed.map_or("more than a machine holds".to_owned(), |needed| needed.to_string());
        return Err(Error::file(
            path,
            format!(
                "is truncated or damaged: {met} bytes of numbers met, {needed} needed for shape {:?}; write it again",
                header.shape
            ),
        ));
    }
    // Fortran order scatters a frame over the whole file, so that one is read as a whole and turned.
    let whole = if header.fortran {
        let mut whole = vec![0.0; steps * agents * values];
        header.floats(&mut reader, &mut whole).map_err(Error::io(path, "cannot read"))?;
        Some(whole)
    } else {
        None
    };
    let cell = |step: usize, agent: usize, value: usize| step + steps * (agent + agents * value);
    beliefs_of_frames(path, (steps, agents, values), log_ratios, None, |first, frames| match &whole {
        None => header.floats(&mut reader, frames).map_err(Error::io(path, "cannot read")),
        Some(whole) => {
            for (position, out) in frames.iter_mut().enumerate() {
                let (step, agent) = (first + position / (agents * values), position / values % agents);
                *out = whole[cell(step, agent, position % values)];
            }
            Ok(())
        }
    })
}

/// T, N and numbers per belief of an array of this shape, or what is wrong with it.
pub fn sides(shape: &[usize], log_ratios: bool) -> Result<(usize, usize, usize), String> {
    let wanted = if log_ratios { "(T, N, H) or (T, N)" } else { "(T, N, number of hypotheses)" };
    match shape[..] {
        [steps, agents] if log_ratios => Ok((steps, agents, 1)),
        [steps, agents, values] => Ok((steps, agents, values)),
        _ => Err(format!("shape {shape:?}; wanted {wanted}")),
    }
}

/// Names of agents and hypotheses, where an array's own numbers will not do.
pub type Names = (Vec<String>, Vec<String>);

/// Beliefs of an array of T×N×numbers; `path` names it in messages. `read` fills frames, agent by agent, from a step on: it is
/// asked for all steps in order, some at a time. NaN for all numbers of a belief is silence.
pub fn beliefs_of_frames(
    path: &Path,
    sides: (usize, usize, usize),
    log_ratios: bool,
    names: Option<Names>,
    mut read: impl FnMut(usize, &mut [f64]) -> Result<(), Error>,
) -> Result<Beliefs, Error> {
    let mut gate = Gate::open(path, sides, log_ratios, names)?;
    let (steps, agents, values) = sides;
    let at_once = (FLOATS_AT_ONCE / (agents * values)).clamp(1, steps);
    let mut buffer = vec![0.0; at_once * agents * values];
    for first in (0..steps).step_by(at_once) {
        let frames = &mut buffer[..at_once.min(steps - first) * agents * values];
        read(first, frames)?;
        gate.take(first, frames)?;
    }
    gate.close()
}

/// The same of an array that is at hand in C order: it is read where it is.
pub fn beliefs_of_array(
    path: &Path,
    sides: (usize, usize, usize),
    log_ratios: bool,
    names: Option<Names>,
    array: &[f64],
) -> Result<Beliefs, Error> {
    let mut gate = Gate::open(path, sides, log_ratios, names)?;
    gate.take(0, array)?;
    gate.close()
}

/// Where frames of an array become log-ratios, on all threads.
struct Gate<'a> {
    path: &'a Path,
    sides: (usize, usize, usize),
    log_ratios: bool,
    roster: Roster,
    log_beliefs: Vec<f64>,
    /// Places of silent cells, T×N.
    silent: Vec<usize>,
    zeros: usize,
    first_zero: Option<String>,
    sieve: Sieve,
}

impl<'a> Gate<'a> {
    fn open(
        path: &'a Path,
        sides: (usize, usize, usize),
        log_ratios: bool,
        names: Option<Names>,
    ) -> Result<Self, Error> {
        let (steps, agents, values) = sides;
        if steps == 0 {
            return Err(Error::file(path, "holds no time steps"));
        }
        let roster = match names {
            None => Roster::numbered(agents, values + usize::from(log_ratios)),
            Some((agents, hypotheses)) => Roster::new(agents, hypotheses),
        };
        let roster = roster.map_err(Error::data(path))?;
        let met = (roster.agents().len(), roster.hypotheses().len());
        if met != (agents, values + usize::from(log_ratios)) {
            return Err(Error::data(path)(headwater::Error::Shape {
                what: "names",
                met: format!("{} agents and {} hypotheses", met.0, met.1),
                wanted: format!("{agents} and {}", values + usize::from(log_ratios)),
            }));
        }
        let log_beliefs = vec![0.0; steps * agents * roster.ratios()];
        let sieve = Sieve::new();
        Ok(Gate { path, sides, log_ratios, roster, log_beliefs, silent: Vec::new(), zeros: 0, first_zero: None, sieve })
    }

    /// Frames from a step on.
    fn take(&mut self, first: usize, frames: &[f64]) -> Result<(), Error> {
        let (_, agents, values) = self.sides;
        let (path, roster, log_ratios, sieve) = (self.path, &self.roster, self.log_ratios, self.sieve);
        let width = agents * roster.ratios();
        let out = self.log_beliefs[first * width..].par_chunks_exact_mut(width);
        let checked: Vec<Result<Checked, Error>> = (frames.par_chunks_exact(agents * values).zip(out).enumerate())
            .map(|(frame, (values, out))| {
                array_frame(values, out, roster, log_ratios, sieve).map_err(|(agent, problem)| {
                    Error::place(path, format!("cell [{}, {agent}]", first + frame), problem)
                })
            })
            .collect();
        for (step, checked) in (first..).zip(checked) {
            let checked = checked?;
            self.silent.extend(checked.silent.iter().map(|agent| step * agents + agent));
            self.zeros += checked.zeros;
            self.sieve.merge(checked.sieve);
            if let (None, Some(agent)) = (&self.first_zero, checked.first_zero) {
                self.first_zero = Some(format!("cell [{step}, {agent}]"));
            }
        }
        Ok(())
    }

    fn close(self) -> Result<Beliefs, Error> {
        let (steps, agents, values) = self.sides;
        let cells = steps * agents * values;
        check_zeros(self.path, self.zeros, cells, self.first_zero.as_deref())?;
        let posts = (!self.silent.is_empty()).then(|| {
            let mut posts = vec![1; steps * agents];
            self.silent.iter().for_each(|&cell| posts[cell] = 0);
            posts
        });
        let times = Times::Steps((0..steps as i64).collect());
        let panel = Panel::new(self.roster, times, self.log_beliefs, posts).map_err(Error::data(self.path))?;
        Ok(Beliefs { panel, zeros: self.zeros, cells, grain: self.sieve.grain() })
    }
}

/// One frame of a stream, agent by agent, as N×H log-ratios in column order, and who was silent; the cells of the silent are
/// left as they are.
pub fn frame_of(
    path: &Path,
    step: usize,
    values: &[f64],
    roster: &Roster,
    log_ratios: bool,
    out: &mut [f64],
) -> Result<Vec<bool>, Error> {
    let checked = array_frame(values, out, roster, log_ratios, Sieve::new())
        .map_err(|(agent, problem)| Error::place(path, format!("cell [{step}, {agent}]"), problem))?;
    let mut silent = vec![false; roster.agents().len()];
    checked.silent.iter().for_each(|&agent| silent[agent] = true);
    Ok(silent)
}

/// What the gate met in one frame of an array.
struct Checked {
    silent: Vec<usize>,
    zeros: usize,
    first_zero: Option<usize>,
    sieve: Sieve,
}

/// Takes one frame (agent by agent) through the door into a frame in column order.
fn array_frame(
    values: &[f64],
    out: &mut [f64],
    roster: &Roster,
    log_ratios: bool,
    sieve: Sieve,
) -> Result<Checked, (usize, String)> {
    let agents = roster.agents().len();
    let mut checked = Checked { silent: Vec::new(), zeros: 0, first_zero: None, sieve };
    let mut ratios = vec![0.0; roster.ratios()];
    for (agent, row) in values.chunks_exact(values.len() / agents).enumerate() {
        if !checked.sieve.through() {
            row.iter().filter(|value| value.is_finite()).for_each(|value| checked.sieve.see(*value));
        }
        // Nearly all beliefs.
        if let (&[first, second], false) = (row, log_ratios)
            && let Some(ratio) = panel::log_ratio(first, second)
        {
            out[agent] = ratio;
            continue;
        }
        if row.iter().all(|value| value.is_nan()) {
            checked.silent.push(agent);
            continue;
        }
        let raised = ratios_of(row, &mut ratios, roster.hypotheses(), log_ratios).map_err(|error| match error {
            headwater::Error::Belief { hypothesis, problem } => (agent, format!("hypothesis {hypothesis}: {problem}")),
            other => (agent, other.to_string()),
        })?;
        if raised > 0 {
            checked.zeros += raised;
            checked.first_zero = checked.first_zero.or(Some(agent));
        }
        for (ratio, &value) in ratios.iter().enumerate() {
            out[ratio * agents + agent] = value;
        }
    }
    Ok(checked)
}

/// The formats beliefs are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeliefsFormat {
    /// Long table, text.
    Csv,
    /// Long table, columnar.
    Parquet,
    /// Array.
    Npy,
}

impl BeliefsFormat {
    /// The file's extension.
    pub fn extension(self) -> &'static str {
        match self {
            BeliefsFormat::Csv => "csv",
            BeliefsFormat::Parquet => "parquet",
            BeliefsFormat::Npy => "npy",
        }
    }
}

/// Writes beliefs frame by frame.
pub struct BeliefsWriter {
    roster: Roster,
    log_ratios: bool,
    sink: Sink,
    numbers: Vec<f64>,
}

enum Sink {
    Csv(AtomicFile),
    Npy(AtomicFile),
    Parquet { writer: Box<ArrowWriter<AtomicFile>>, schema: Arc<Schema>, rows: Rows },
}

#[derive(Default)]
struct Rows {
    time: Int64Builder,
    agent: StringBuilder,
    values: Vec<Float64Builder>,
    count: usize,
}

impl BeliefsWriter {
    /// Starts a file of `steps` frames.
    pub fn create(
        path: &Path,
        format: BeliefsFormat,
        roster: &Roster,
        steps: usize,
        log_ratios: bool,
    ) -> Result<Self, Error> {
        let mut draft = AtomicFile::create(path)?;
        let names = &roster.hypotheses()[usize::from(log_ratios)..];
        let sink = match format {
            BeliefsFormat::Csv => {
                writeln!(draft, "time,agent,{}", names.join(",")).map_err(Error::io(path, "cannot write"))?;
                Sink::Csv(draft)
            }
            BeliefsFormat::Npy => {
                let header = Header::new(Kind::Float64, false, &[steps, roster.agents().len(), names.len()]);
                header.write(&mut draft).map_err(Error::io(path, "cannot write"))?;
                Sink::Npy(draft)
            }
            BeliefsFormat::Parquet => {
                let mut fields =
                    vec![Field::new("time", DataType::Int64, false), Field::new("agent", DataType::Utf8, false)];
                fields.extend(names.iter().map(|name| Field::new(name, DataType::Float64, false)));
                let schema = Arc::new(Schema::new(fields));
                let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let writer = ArrowWriter::try_new(draft, schema.clone(), Some(properties))
                    .map_err(|error| Error::file(path, error.to_string()))?;
                let values = names.iter().map(|_| Float64Builder::new()).collect();
                Sink::Parquet { writer: Box::new(writer), schema, rows: Rows { values, ..Rows::default() } }
            }
        };
        Ok(BeliefsWriter { roster: roster.clone(), log_ratios, sink, numbers: Vec::new() })
    }

    /// Writes Λ of one step (N × H in column order), leaving out the silent.
    pub fn write(&mut self, time: i64, frame: &[f64], silent: &[bool]) -> Result<(), Error> {
        let agents = self.roster.agents().len();
        for agent in 0..agents {
            let ratios = frame[agent..].iter().step_by(agents).copied();
            if self.log_ratios {
                self.numbers.clear();
                self.numbers.extend(ratios);
            } else {
                panel::probabilities(ratios, &mut self.numbers);
            }
            let silent = silent.get(agent).copied().unwrap_or(false);
            match &mut self.sink {
                Sink::Csv(draft) if !silent => {
                    let name = quoted(&self.roster.agents()[agent]);
                    let line = || -> std::io::Result<()> {
                        write!(draft, "{time},{name}")?;
                        self.numbers.iter().try_for_each(|number| write_number(draft, *number))?;
                        writeln!(draft)
                    }();
                    line.map_err(Error::io(draft.path(), "cannot write"))?;
                }
                Sink::Npy(draft) => {
                    if silent {
                        self.numbers.fill(f64::NAN);
                    }
                    npy::write_floats(draft, &self.numbers).map_err(Error::io(draft.path(), "cannot write"))?;
                }
                Sink::Parquet { writer, schema, rows } if !silent => {
                    rows.time.append_value(time);
                    rows.agent.append_value(&self.roster.agents()[agent]);
                    for (column, number) in rows.values.iter_mut().zip(&self.numbers) {
                        column.append_value(*number);
                    }
                    rows.count += 1;
                    if rows.count == BATCH {
                        rows.flush(writer, schema)?;
                    }
                }
                Sink::Csv(_) | Sink::Parquet { .. } => {}
            }
        }
        Ok(())
    }

    /// Completes the file; it takes its name when the returned draft is committed.
    pub fn finish(self) -> Result<AtomicFile, Error> {
        match self.sink {
            Sink::Csv(draft) | Sink::Npy(draft) => Ok(draft),
            Sink::Parquet { mut writer, schema, mut rows } => {
                rows.flush(&mut writer, &schema)?;
                let path = writer.inner().path().to_owned();
                writer.into_inner().map_err(|error| Error::file(&path, error.to_string()))
            }
        }
    }
}

impl Rows {
    fn flush(&mut self, writer: &mut ArrowWriter<AtomicFile>, schema: &Arc<Schema>) -> Result<(), Error> {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.time.finish()), Arc::new(self.agent.finish())];
        columns.extend(self.values.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        self.count = 0;
        write_batch(writer, schema, columns)
    }
}

/// The shortest text that reads back as the same number.
fn write_number(draft: &mut AtomicFile, number: f64) -> std::io::Result<()> {
    if number.abs() < 1e-5 { write!(draft, ",{number:e}") } else { write!(draft, ",{number}") }
}

/// Writes a long table row by row: `time,agent`, probabilities, `posts`; Parquet if the name ends so, otherwise CSV.
///
/// Times are text, RFC 3339 with an offset, in both: the offset says which day it was where people live.
pub struct BeliefsRows {
    hypotheses: usize,
    numbers: Vec<f64>,
    sink: RowSink,
}

enum RowSink {
    Csv(AtomicFile),
    Parquet { writer: Box<ArrowWriter<AtomicFile>>, schema: Arc<Schema>, rows: Box<TextRows> },
}

struct TextRows {
    time: StringBuilder,
    agent: StringBuilder,
    values: Vec<Float64Builder>,
    posts: Int64Builder,
    count: usize,
}

impl BeliefsRows {
    /// Starts a file over these hypotheses, the reference first.
    pub fn create(path: &Path, hypotheses: &[&str]) -> Result<Self, Error> {
        let mut draft = AtomicFile::create(path)?;
        let sink = if path.extension().is_some_and(|extension| extension == "parquet") {
            let mut fields =
                vec![Field::new("time", DataType::Utf8, false), Field::new("agent", DataType::Utf8, false)];
            fields.extend(hypotheses.iter().map(|name| Field::new(*name, DataType::Float64, false)));
            fields.push(Field::new("posts", DataType::Int64, false));
            let schema = Arc::new(Schema::new(fields));
            let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
            let writer = ArrowWriter::try_new(draft, schema.clone(), Some(properties))
                .map_err(|error| Error::file(path, error.to_string()))?;
            let rows = TextRows {
                time: StringBuilder::new(),
                agent: StringBuilder::new(),
                values: hypotheses.iter().map(|_| Float64Builder::new()).collect(),
                posts: Int64Builder::new(),
                count: 0,
            };
            RowSink::Parquet { writer: Box::new(writer), schema, rows: Box::new(rows) }
        } else {
            let header = writeln!(draft, "time,agent,{},posts", hypotheses.join(","));
            header.map_err(Error::io(path, "cannot write"))?;
            RowSink::Csv(draft)
        };
        Ok(BeliefsRows { hypotheses: hypotheses.len(), numbers: Vec::new(), sink })
    }

    /// Writes one row from log-ratios against the reference.
    pub fn write(&mut self, time: &str, agent: &str, log_ratios: &[f64], posts: u32) -> Result<(), Error> {
        panel::probabilities(log_ratios[..self.hypotheses - 1].iter().copied(), &mut self.numbers);
        match &mut self.sink {
            RowSink::Csv(draft) => {
                let line = || -> std::io::Result<()> {
                    write!(draft, "{time},{}", quoted(agent))?;
                    self.numbers.iter().try_for_each(|number| write_number(draft, *number))?;
                    writeln!(draft, ",{posts}")
                }();
                line.map_err(Error::io(draft.path(), "cannot write"))
            }
            RowSink::Parquet { writer, schema, rows } => {
                rows.time.append_value(time);
                rows.agent.append_value(agent);
                rows.values.iter_mut().zip(&self.numbers).for_each(|(column, number)| column.append_value(*number));
                rows.posts.append_value(i64::from(posts));
                rows.count += 1;
                if rows.count == BATCH {
                    return rows.flush(writer, schema);
                }
                Ok(())
            }
        }
    }

    /// Completes the file; it takes its name when the returned draft is committed.
    pub fn finish(self) -> Result<AtomicFile, Error> {
        match self.sink {
            RowSink::Csv(draft) => Ok(draft),
            RowSink::Parquet { mut writer, schema, mut rows } => {
                rows.flush(&mut writer, &schema)?;
                let path = writer.inner().path().to_owned();
                writer.into_inner().map_err(|error| Error::file(&path, error.to_string()))
            }
        }
    }
}

impl TextRows {
    fn flush(&mut self, writer: &mut ArrowWriter<AtomicFile>, schema: &Arc<Schema>) -> Result<(), Error> {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.time.finish()), Arc::new(self.agent.finish())];
        columns.extend(self.values.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.push(Arc::new(self.posts.finish()));
        self.count = 0;
        write_batch(writer, schema, columns)
    }
}

fn write_batch(
    writer: &mut ArrowWriter<AtomicFile>,
    schema: &Arc<Schema>,
    columns: Vec<ArrayRef>,
) -> Result<(), Error> {
    let path = writer.inner().path().to_owned();
    let broken = |error: &dyn std::fmt::Display| Error::file(&path, error.to_string());
    let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|error| broken(&error))?;
    writer.write(&batch).map_err(|error| broken(&error))
}

fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", name.replace('"', "\"\""));
    }
    name.to_owned()
}
