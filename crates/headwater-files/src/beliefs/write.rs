//! Beliefs written as a long table or an array, frame by frame or row by row.

use super::BeliefsFormat;
use crate::npy::{self, NpyHeader, NpyType};
use crate::{AtomicFile, CsvText, Error};
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use headwater::{Roster, panel};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::path::Path;
use std::sync::Arc;

/// Rows per Parquet batch.
const BATCH: usize = 1 << 16;

/// Writes beliefs frame by frame.
pub struct BeliefsWriter {
    roster: Roster,
    log_ratios: bool,
    sink: FrameSink,
    numbers: Vec<f64>,
}

enum FrameSink {
    Table(TableSink),
    Npy(AtomicFile),
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
        let mut file = AtomicFile::create(path)?;
        let names: Vec<&str> = roster.hypotheses()[usize::from(log_ratios)..].iter().map(String::as_str).collect();
        let sink = match format {
            BeliefsFormat::Npy => {
                let header = NpyHeader::new(NpyType::Float64, false, &[steps, roster.agents().len(), names.len()]);
                header.write(&mut file).map_err(Error::io(path, "cannot write"))?;
                FrameSink::Npy(file)
            }
            BeliefsFormat::Csv | BeliefsFormat::Parquet => {
                let parquet = format == BeliefsFormat::Parquet;
                FrameSink::Table(TableSink::new(file, parquet, &names, DataType::Int64, MoreColumns::default())?)
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
                FrameSink::Table(_) if silent => {}
                FrameSink::Table(table) => {
                    table.row((None, RowTime::Step(time)), &self.roster.agents()[agent], &self.numbers, None)?;
                }
                FrameSink::Npy(file) => {
                    if silent {
                        self.numbers.fill(f64::NAN);
                    }
                    npy::write_floats(file, &self.numbers).map_err(Error::io(file.path(), "cannot write"))?;
                }
            }
        }
        Ok(())
    }

    /// Completes the file; it takes its name when the returned file is committed.
    pub fn finish(self) -> Result<AtomicFile, Error> {
        match self.sink {
            FrameSink::Table(table) => table.finish(),
            FrameSink::Npy(file) => Ok(file),
        }
    }
}

/// Writes a long table row by row: `time,agent`, probabilities, `posts`; Parquet if the name ends so, otherwise CSV.
///
/// Times are text, RFC 3339 with an offset, in both: the offset says which day it was where people live.
pub struct BeliefsRows {
    hypotheses: usize,
    numbers: Vec<f64>,
    table: TableSink,
    text: CsvText,
}

impl BeliefsRows {
    /// Starts a file over these hypotheses, the reference first.
    pub fn create(path: &Path, hypotheses: &[&str], text: CsvText) -> Result<Self, Error> {
        BeliefsRows::with_columns(path, hypotheses, text, MoreColumns { episodes: false, posts: true })
    }

    /// The same with a column `episode` in front, for rows of [`BeliefsRows::write_in`].
    pub fn with_episodes(path: &Path, hypotheses: &[&str], text: CsvText) -> Result<Self, Error> {
        BeliefsRows::with_columns(path, hypotheses, text, MoreColumns { episodes: true, posts: true })
    }

    fn with_columns(path: &Path, hypotheses: &[&str], text: CsvText, more: MoreColumns) -> Result<Self, Error> {
        let parquet = BeliefsFormat::from_path(path) == BeliefsFormat::Parquet;
        let table = TableSink::new(AtomicFile::create(path)?, parquet, hypotheses, DataType::Utf8, more)?;
        // Text of other formats is never run.
        let text = if parquet { CsvText::Raw } else { text };
        Ok(BeliefsRows { hypotheses: hypotheses.len(), numbers: Vec::new(), table, text })
    }

    /// Writes one row from log-ratios against the reference.
    pub fn write(&mut self, time: &str, agent: &str, log_ratios: &[f64], posts: u32) -> Result<(), Error> {
        self.write_row(None, time, agent, log_ratios, posts)
    }

    /// The same of an episode.
    pub fn write_in(
        &mut self,
        episode: &str,
        time: &str,
        agent: &str,
        log_ratios: &[f64],
        posts: u32,
    ) -> Result<(), Error> {
        self.write_row(Some(episode), time, agent, log_ratios, posts)
    }

    fn write_row(
        &mut self,
        episode: Option<&str>,
        time: &str,
        agent: &str,
        log_ratios: &[f64],
        posts: u32,
    ) -> Result<(), Error> {
        panel::probabilities(log_ratios[..self.hypotheses - 1].iter().copied(), &mut self.numbers);
        let episode = episode.map(|episode| self.text.cell(episode));
        self.table.row((episode.as_deref(), RowTime::Text(time)), &self.text.cell(agent), &self.numbers, Some(posts))
    }

    /// Completes the file; it takes its name when the returned file is committed.
    pub fn finish(self) -> Result<AtomicFile, Error> {
        self.table.finish()
    }
}

/// Columns that a table may have beside time, agent and hypotheses.
#[derive(Debug, Clone, Copy, Default)]
struct MoreColumns {
    episodes: bool,
    posts: bool,
}

/// The time of a row: a step number, or text.
#[derive(Clone, Copy)]
enum RowTime<'a> {
    Step(i64),
    Text(&'a str),
}

/// A long table being written.
enum TableSink {
    Csv(Box<csv::Writer<AtomicFile>>),
    Parquet(Box<ParquetTable>),
}

/// Rows that wait for their batch. Of the two columns of times one is used.
struct ParquetTable {
    writer: ArrowWriter<AtomicFile>,
    schema: Arc<Schema>,
    episodes: Option<StringBuilder>,
    steps: Int64Builder,
    texts: StringBuilder,
    agents: StringBuilder,
    values: Vec<Float64Builder>,
    posts: Option<Int64Builder>,
    rows: usize,
}

impl TableSink {
    fn new(file: AtomicFile, parquet: bool, names: &[&str], time: DataType, more: MoreColumns) -> Result<Self, Error> {
        let MoreColumns { episodes, posts } = more;
        let path = file.path().to_owned();
        if !parquet {
            let mut writer = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(file);
            let first = episodes.then_some(&"episode").into_iter();
            let header = first.chain(&["time", "agent"]).chain(names).chain(posts.then_some(&"posts"));
            writer.write_record(header).map_err(|error| cannot_write(&path, error))?;
            return Ok(TableSink::Csv(Box::new(writer)));
        }
        let mut fields: Vec<Field> =
            episodes.then(|| Field::new("episode", DataType::Utf8, false)).into_iter().collect();
        fields.extend([Field::new("time", time, false), Field::new("agent", DataType::Utf8, false)]);
        fields.extend(names.iter().map(|name| Field::new(*name, DataType::Float64, false)));
        fields.extend(posts.then(|| Field::new("posts", DataType::Int64, false)));
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))
            .map_err(|error| Error::file(&path, error.to_string()))?;
        Ok(TableSink::Parquet(Box::new(ParquetTable {
            writer,
            schema,
            episodes: episodes.then(StringBuilder::new),
            steps: Int64Builder::new(),
            texts: StringBuilder::new(),
            agents: StringBuilder::new(),
            values: names.iter().map(|_| Float64Builder::new()).collect(),
            posts: posts.then(Int64Builder::new),
            rows: 0,
        })))
    }

    fn row(
        &mut self,
        (episode, time): (Option<&str>, RowTime<'_>),
        agent: &str,
        numbers: &[f64],
        posts: Option<u32>,
    ) -> Result<(), Error> {
        match self {
            TableSink::Csv(writer) => {
                let line = || -> csv::Result<()> {
                    episode.map_or(Ok(()), |episode| writer.write_field(episode))?;
                    match time {
                        RowTime::Step(step) => writer.write_field(step.to_string())?,
                        RowTime::Text(text) => writer.write_field(text)?,
                    }
                    writer.write_field(agent)?;
                    numbers.iter().try_for_each(|number| writer.write_field(shown(*number)))?;
                    posts.map_or(Ok(()), |posts| writer.write_field(posts.to_string()))?;
                    writer.write_record(None::<&[u8]>)
                }();
                line.map_err(|error| cannot_write(writer.get_ref().path(), error))
            }
            TableSink::Parquet(table) => {
                if let (Some(column), Some(episode)) = (&mut table.episodes, episode) {
                    column.append_value(episode);
                }
                match time {
                    RowTime::Step(step) => table.steps.append_value(step),
                    RowTime::Text(text) => table.texts.append_value(text),
                }
                table.agents.append_value(agent);
                table.values.iter_mut().zip(numbers).for_each(|(column, number)| column.append_value(*number));
                if let (Some(column), Some(posts)) = (&mut table.posts, posts) {
                    column.append_value(i64::from(posts));
                }
                table.rows += 1;
                if table.rows == BATCH { table.flush() } else { Ok(()) }
            }
        }
    }

    fn finish(self) -> Result<AtomicFile, Error> {
        match self {
            TableSink::Csv(writer) => {
                let path = writer.get_ref().path().to_owned();
                writer.into_inner().map_err(|error| Error::io(&path, "cannot write")(error.into_error()))
            }
            TableSink::Parquet(mut table) => {
                table.flush()?;
                let path = table.writer.inner().path().to_owned();
                table.writer.into_inner().map_err(|error| Error::file(&path, error.to_string()))
            }
        }
    }
}

impl ParquetTable {
    fn flush(&mut self) -> Result<(), Error> {
        let path = self.writer.inner().path().to_owned();
        let broken = |error: &dyn std::fmt::Display| Error::file(&path, error.to_string());
        let time: ArrayRef = match self.schema.field(usize::from(self.episodes.is_some())).data_type() {
            DataType::Int64 => Arc::new(self.steps.finish()),
            _ => Arc::new(self.texts.finish()),
        };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        columns.extend(self.episodes.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.extend([time, Arc::new(self.agents.finish())]);
        columns.extend(self.values.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.extend(self.posts.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        self.rows = 0;
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(|error| broken(&error))?;
        self.writer.write(&batch).map_err(|error| broken(&error))
    }
}

fn cannot_write(path: &Path, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(source) => Error::io(path, "cannot write")(source),
        other => Error::file(path, format!("cannot write: {other:?}")),
    }
}

/// The shortest text that reads back as the same number.
fn shown(number: f64) -> String {
    if number.abs() < 1e-5 { format!("{number:e}") } else { number.to_string() }
}
