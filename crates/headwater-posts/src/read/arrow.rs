//! Arrow tables, from a Parquet file or from memory: rows of cells out, as text. Fields of structures are columns with
//! dotted names.

use super::{BadRow, ColumnNames, LONGEST_RECORD, RawRecord, RecordPlace, RecordValue};
use crate::Error;
use ::parquet::file::reader::ChunkReader;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType};
use csv::StringRecord;
use headwater_files::{Expansion, ParquetBatches};
use std::fmt::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Rows decoded at a time.
const BATCH: usize = 4096;

/// Batches of a table, one after another.
type ArrowBatches = Box<dyn Iterator<Item = Result<RecordBatch, String>> + Send>;

/// An Arrow table being read.
pub struct ArrowRows {
    batches: ArrowBatches,
    /// What a batch that cannot be read says of the table.
    broken: fn(&Path, &dyn std::fmt::Display) -> Error,
    file: Arc<Path>,
    batch: Option<ArrowBatch>,
    line: u64,
    /// What the cells of a file become as text: names of fields are repeated in every element of a list. None in memory.
    expansion: Option<Expansion>,
}

struct ArrowBatch {
    columns: Arc<ColumnNames>,
    arrays: Vec<ArrayRef>,
    rows: usize,
    next: usize,
}

impl ArrowRows {
    /// Reads the schema of a Parquet file.
    pub fn from_parquet(from: impl ChunkReader + 'static, file: Arc<Path>) -> Result<Self, Error> {
        let expansion = Some(Expansion::new(from.len()));
        let batches = ParquetBatches::new(from, BATCH).map_err(|error| broken(&file, &error))?;
        Ok(ArrowRows { batches: Box::new(batches), broken, file, batch: None, line: 0, expansion })
    }

    /// From tables in memory, under a name.
    pub fn from_batches(batches: Vec<RecordBatch>, file: Arc<Path>) -> Self {
        let batches = Box::new(batches.into_iter().map(Ok));
        let broken = |file: &Path, error: &dyn std::fmt::Display| Error::file(file, error.to_string());
        ArrowRows { batches, broken, file, batch: None, line: 0, expansion: None }
    }

    /// The file and its columns, once a row was read.
    pub fn header(&self) -> Option<(&Arc<Path>, &Arc<ColumnNames>)> {
        Some((&self.file, &self.batch.as_ref()?.columns))
    }

    /// The next row.
    #[expect(clippy::should_implement_trait, reason = "as Records::next")]
    pub fn next(&mut self) -> Result<Option<Result<RawRecord, BadRow>>, Error> {
        loop {
            if let Some(batch) = self.batch.as_mut().filter(|batch| batch.next < batch.rows) {
                let row = batch.next;
                batch.next += 1;
                self.line += 1;
                let place = RecordPlace { file: self.file.clone(), line: self.line };
                let (cells, bytes) = batch.cells(row);
                if let Some(expansion) = &mut self.expansion {
                    expansion.add(bytes).map_err(|error| (self.broken)(&self.file, &error))?;
                }
                return Ok(Some(match cells {
                    Ok(cells) => Ok(RawRecord { place, row: RecordValue::Cells(batch.columns.clone(), cells) }),
                    Err(reason) => Err(BadRow::new(place, reason)),
                }));
            }
            match self.batches.next() {
                None => return Ok(None),
                Some(batch) => {
                    let batch = batch.map_err(|error| (self.broken)(&self.file, &error))?;
                    let before = self.batch.take().map(|batch| batch.columns);
                    let batch = ArrowBatch::new(&batch, before).map_err(|error| (self.broken)(&self.file, &error))?;
                    self.batch = Some(batch);
                }
            }
        }
    }
}

fn broken(file: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::file(file, format!("cannot be read as Parquet ({error}); write it again"))
}

impl ArrowBatch {
    /// `before` are the columns of the batch before.
    fn new(batch: &RecordBatch, before: Option<Arc<ColumnNames>>) -> Result<Self, ArrowError> {
        let (mut names, mut arrays) = (Vec::new(), Vec::new());
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            flatten(field.name(), array, &mut names, &mut arrays)?;
        }
        // The same list for the same columns: whoever looks for columns does so once.
        let before = before.filter(|before| *before.names() == *names);
        let columns = before.unwrap_or_else(|| Arc::new(ColumnNames::new(names)));
        Ok(ArrowBatch { columns, arrays, rows: batch.num_rows(), next: 0 })
    }

    /// The cells of a row, and bytes of text that were made, also of cells that cannot be used.
    fn cells(&self, row: usize) -> (Result<StringRecord, String>, u64) {
        let options = FormatOptions::new();
        let mut cells = StringRecord::new();
        let mut text = LimitedText::default();
        for array in &self.arrays {
            match array.as_string_view_opt() {
                _ if array.is_null(row) => cells.push_field(""),
                Some(texts) => cells.push_field(texts.value(row)),
                None => {
                    text.text.clear();
                    let formatter = ArrayFormatter::try_new(array, &options);
                    let written = formatter.and_then(|formatter| formatter.value(row).write(&mut text));
                    if let Err(error) = written {
                        let bytes = (cells.as_slice().len() + text.text.len()) as u64;
                        return (Err(text.refusal().unwrap_or_else(|| error.to_string())), bytes);
                    }
                    cells.push_field(&text.text);
                }
            }
        }
        let bytes = cells.as_slice().len() as u64;
        (Ok(cells), bytes)
    }
}

/// Text of a cell, up to the length of a record.
#[derive(Default)]
struct LimitedText {
    text: String,
    refused: bool,
}

impl LimitedText {
    /// What is wrong with a cell that was refused.
    fn refusal(&self) -> Option<String> {
        self.refused.then(|| format!("a cell is longer than {} MB", LONGEST_RECORD >> 20))
    }
}

impl Write for LimitedText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.text.len() + more.len() > LONGEST_RECORD {
            self.refused = true;
            return Err(fmt::Error);
        }
        self.text.push_str(more);
        Ok(())
    }
}

fn flatten(
    name: &str,
    array: &ArrayRef,
    names: &mut Vec<String>,
    arrays: &mut Vec<ArrayRef>,
) -> Result<(), ArrowError> {
    if let Some(fields) = array.as_struct_opt() {
        for (field, inner) in fields.fields().iter().zip(fields.columns()) {
            flatten(&format!("{name}.{}", field.name()), inner, names, arrays)?;
        }
        return Ok(());
    }
    names.push(name.to_owned());
    arrays.push(match array.data_type() {
        // The instant is the same in every zone, and only this one is spelled without a zone database.
        DataType::Timestamp(unit, Some(_)) => {
            let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
            cast(&cast(array, &DataType::Int64)?, &utc)?
        }
        // Views, so that a long text in a dictionary is not copied into every row.
        DataType::Utf8 | DataType::LargeUtf8 => cast(array, &DataType::Utf8View)?,
        DataType::Dictionary(_, values) if values.is_string() => cast(array, &DataType::Utf8View)?,
        DataType::Dictionary(..) => cast(&cast(array, &DataType::Utf8)?, &DataType::Utf8View)?,
        _ => array.clone(),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{RecordValue, Records, parse_time};
    use super::*;
    use ::parquet::arrow::ArrowWriter;
    use arrow_array::{Float64Array, Int64Array, StringArray, StructArray, TimestampMillisecondArray};
    use arrow_schema::{Field, Schema};
    use std::fs::File;

    #[test]
    fn rows_of_every_type_are_text() {
        let times = TimestampMillisecondArray::from(vec![1_539_202_764_000, 0]).with_timezone("America/New_York");
        let handle: ArrayRef = Arc::new(StringArray::from(vec!["ann", "bob"]));
        let author = StructArray::from(vec![(Arc::new(Field::new("handle", DataType::Utf8, false)), handle)]);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("author", Arc::new(author)),
            ("time", Arc::new(times)),
            ("text", Arc::new(arrow_array::LargeStringArray::from(vec![Some("a\nb"), None]))),
            ("id", Arc::new(Int64Array::from(vec![7, 8]))),
            ("score", Arc::new(Float64Array::from(vec![0.25, 1.0]))),
        ];
        let fields: Vec<Field> =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.parquet");
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), schema.clone(), None).unwrap();
        let batch = RecordBatch::try_new(schema, arrays).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let read = |mut records: Records| {
            let mut rows = Vec::new();
            while let Some(record) = records.next().unwrap() {
                let RecordValue::Cells(columns, cells) = record.unwrap().row else { unreachable!("a table") };
                assert_eq!(columns.names(), ["author.handle", "time", "text", "id", "score"]);
                rows.push(cells.iter().map(str::to_owned).collect::<Vec<_>>());
            }
            rows
        };
        let rows = read(Records::open(&[path]).unwrap());
        assert_eq!(rows, read(Records::from_batches(vec![batch], Path::new("frame"))));
        assert_eq!(rows.iter().map(|row| parse_time(&row[1])).collect::<Vec<_>>(), [Some(1_539_202_764), Some(0)]);
        assert_eq!(
            (&rows[0][0], &rows[0][2], &rows[0][3], &rows[0][4]),
            (&"ann".into(), &"a\nb".into(), &"7".into(), &"0.25".into())
        );
        assert_eq!(rows[1][2], "");
    }
}
