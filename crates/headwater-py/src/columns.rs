//! Tables as columns: numpy arrays and lists by name, from which any data frame is made; Parquet for what goes through the door.

use crate::error::PyError;
use crate::work::{Manner, done};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, TimeUnit};
use headwater_files::AtomicFile;
use numpy::IntoPyArray;
use numpy::datetime::{Datetime, units::Microseconds};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3_arrow::PyRecordBatchReader;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One column.
pub(crate) enum Column {
    Numbers(Vec<f64>),
    Whole(Vec<i64>),
    /// Microseconds since 1970 in UTC.
    Instants(Vec<i64>),
    Text(Vec<String>),
}

/// Columns by name, in order.
pub(crate) fn table(py: Python<'_>, columns: Vec<(String, Column)>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in columns {
        match column {
            Column::Numbers(values) => dict.set_item(name, values.into_pyarray(py))?,
            Column::Whole(values) => dict.set_item(name, values.into_pyarray(py))?,
            Column::Instants(values) => {
                let instants: Vec<Datetime<Microseconds>> = values.into_iter().map(Datetime::from).collect();
                dict.set_item(name, instants.into_pyarray(py))?;
            }
            Column::Text(values) => dict.set_item(name, PyList::new(py, values)?)?,
        }
    }
    Ok(dict)
}

/// Rows of JSON as columns: what is absent is NaN, or empty where the others are text.
pub(crate) fn of_rows(names: &[&str], rows: &[Map<String, Value>]) -> Vec<(String, Column)> {
    let column = |name: &str| {
        let cells = || rows.iter().map(|row| row.get(name));
        if cells().flatten().any(Value::is_string) {
            let text = |cell: Option<&Value>| cell.and_then(Value::as_str).unwrap_or_default().to_owned();
            return Column::Text(cells().map(text).collect());
        }
        match cells().map(|cell| cell.and_then(Value::as_i64)).collect() {
            Some(whole) => Column::Whole(whole),
            None => Column::Numbers(cells().map(|cell| cell.and_then(Value::as_f64).unwrap_or(f64::NAN)).collect()),
        }
    };
    names.iter().map(|name| ((*name).to_owned(), column(name))).collect()
}

fn broken(path: &Path) -> impl Fn(ParquetError) -> PyError {
    let path = path.to_owned();
    move |error| PyError::Files(headwater_files::Error::File { path: path.clone(), problem: error.to_string() })
}

fn wrong(path: &Path) -> impl Fn(ArrowError) -> PyError {
    let path = path.to_owned();
    move |error| PyError::Files(headwater_files::Error::File { path: path.clone(), problem: error.to_string() })
}

fn denied(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> PyError {
    let path = path.to_owned();
    move |source| PyError::Files(headwater_files::Error::Io { path, doing, source })
}

/// A Parquet file as columns.
#[pyfunction]
pub(crate) fn read_parquet(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let columns = done(py, &Manner::default(), || {
        let file = File::open(&path).map_err(denied(&path, "cannot read"))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
        let reader = reader.map_err(broken(&path))?;
        let names: Vec<String> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
        let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(wrong(&path))?;
        let column = |position: usize| {
            let parts: Vec<ArrayRef> = batches.iter().map(|batch| batch.column(position).clone()).collect();
            gathered(&parts).map_err(wrong(&path))
        };
        names.into_iter().enumerate().map(|(position, name)| Ok((name, column(position)?))).collect()
    })?;
    table(py, columns)
}

fn gathered(parts: &[ArrayRef]) -> Result<Column, ArrowError> {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let kind = parts.first().map_or(DataType::Utf8, |part| part.data_type().clone());
    let wanted = match &kind {
        kind if kind.is_integer() => DataType::Int64,
        kind if kind.is_numeric() => DataType::Float64,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => micros,
        _ => DataType::Utf8,
    };
    let parts: Vec<ArrayRef> = parts.iter().map(|part| cast(part, &wanted)).collect::<Result<_, _>>()?;
    Ok(match wanted {
        DataType::Int64 => {
            Column::Whole(parts.iter().flat_map(|part| part.as_primitive::<Int64Type>().values().to_vec()).collect())
        }
        DataType::Float64 => {
            let numbers = parts.iter().flat_map(|part| part.as_primitive::<Float64Type>().iter());
            Column::Numbers(numbers.map(|number| number.unwrap_or(f64::NAN)).collect())
        }
        DataType::Utf8 => {
            let texts = parts.iter().flat_map(|part| part.as_string::<i32>().iter());
            Column::Text(texts.map(|text| text.unwrap_or_default().to_owned()).collect())
        }
        _ => {
            let times = parts.iter().flat_map(|part| part.as_primitive::<TimestampMicrosecondType>().values().to_vec());
            Column::Instants(times.collect())
        }
    })
}

/// Any data frame as a Parquet file, for the door.
#[pyfunction]
pub(crate) fn write_parquet(py: Python<'_>, stream: PyRecordBatchReader, path: PathBuf) -> PyResult<()> {
    let reader = stream.into_reader()?;
    done(py, &Manner::default(), move || {
        let file = File::create(&path).map_err(denied(&path, "cannot write"))?;
        // Words that stand for longer ones are written out: not every kind of them can be.
        let plain = |field: &FieldRef| match field.data_type() {
            DataType::Dictionary(_, value) => {
                let value = if **value == DataType::Utf8View { DataType::Utf8 } else { (**value).clone() };
                Arc::new(field.as_ref().clone().with_data_type(value))
            }
            _ => field.clone(),
        };
        let schema = Arc::new(Schema::new(reader.schema().fields().iter().map(plain).collect::<Vec<_>>()));
        let mut writer = ArrowWriter::try_new(file, schema.clone(), None).map_err(broken(&path))?;
        for batch in reader {
            let batch = batch.map_err(wrong(&path))?;
            let columns = batch.columns().iter().zip(schema.fields());
            let columns = columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<_, _>>();
            let batch = columns.and_then(|columns| RecordBatch::try_new(schema.clone(), columns));
            writer.write(&batch.map_err(wrong(&path))?).map_err(broken(&path))?;
        }
        writer.close().map_err(broken(&path))?;
        Ok(())
    })
}

/// Text as a file, whole or not at all.
#[pyfunction]
pub(crate) fn write_text(py: Python<'_>, path: PathBuf, text: &str) -> PyResult<()> {
    done(py, &Manner::default(), || {
        let mut draft = AtomicFile::create(&path)?;
        draft.write_all(text.as_bytes()).map_err(denied(&path, "cannot write"))?;
        Ok(draft.commit()?)
    })
}
