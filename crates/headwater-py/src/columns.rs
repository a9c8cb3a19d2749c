//! Tables as columns: numpy arrays and lists by name, from which any data frame is made; data frames as record batches.

use crate::work::{Manner, done};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, FieldRef, Schema};
use headwater_files::write_bytes;
use numpy::IntoPyArray;
use numpy::datetime::{Datetime, units::Microseconds};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// One column.
pub(crate) enum FrameColumn {
    Numbers(Vec<f64>),
    Whole(Vec<i64>),
    Flags(Vec<bool>),
    /// Microseconds since 1970 in UTC.
    Instants(Vec<i64>),
    Text(Vec<String>),
}

/// Columns by name, in order.
pub(crate) fn table(py: Python<'_>, columns: Vec<(String, FrameColumn)>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in columns {
        match column {
            FrameColumn::Numbers(values) => dict.set_item(name, values.into_pyarray(py))?,
            FrameColumn::Whole(values) => dict.set_item(name, values.into_pyarray(py))?,
            FrameColumn::Flags(values) => dict.set_item(name, values.into_pyarray(py))?,
            FrameColumn::Instants(values) => {
                let instants: Vec<Datetime<Microseconds>> = values.into_iter().map(Datetime::from).collect();
                dict.set_item(name, instants.into_pyarray(py))?;
            }
            FrameColumn::Text(values) => dict.set_item(name, PyList::new(py, values)?)?,
        }
    }
    Ok(dict)
}

/// Rows of JSON as columns: what is absent is NaN, or empty where the others are text.
pub(crate) fn columns_from_rows(names: &[&str], rows: &[Map<String, Value>]) -> Vec<(String, FrameColumn)> {
    let column = |name: &str| {
        let cells = || rows.iter().map(|row| row.get(name));
        if cells().flatten().any(Value::is_string) {
            let text = |cell: Option<&Value>| cell.and_then(Value::as_str).unwrap_or_default().to_owned();
            return FrameColumn::Text(cells().map(text).collect());
        }
        match cells().map(|cell| cell.and_then(Value::as_i64)).collect() {
            Some(whole) => FrameColumn::Whole(whole),
            None => {
                FrameColumn::Numbers(cells().map(|cell| cell.and_then(Value::as_f64).unwrap_or(f64::NAN)).collect())
            }
        }
    };
    names.iter().map(|name| ((*name).to_owned(), column(name))).collect()
}

/// The batches of a data frame, in which words that stand for longer ones (dictionaries, categories) are written out.
pub(crate) fn plain_batches(reader: Box<dyn RecordBatchReader + Send>) -> Result<Vec<RecordBatch>, ArrowError> {
    let plain = |field: &FieldRef| match field.data_type() {
        DataType::Dictionary(_, value) => {
            let value = if **value == DataType::Utf8View { DataType::Utf8 } else { (**value).clone() };
            Arc::new(field.as_ref().clone().with_data_type(value))
        }
        _ => field.clone(),
    };
    let schema = Arc::new(Schema::new(reader.schema().fields().iter().map(plain).collect::<Vec<_>>()));
    let mut batches = Vec::new();
    for batch in reader {
        let batch = batch?;
        let columns = batch.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<_, _>>()?;
        batches.push(RecordBatch::try_new(schema.clone(), columns)?);
    }
    if batches.is_empty() {
        // A frame without rows has columns all the same.
        batches.push(RecordBatch::new_empty(schema));
    }
    Ok(batches)
}

/// Text as a file, whole or not at all.
#[pyfunction]
pub(crate) fn write_text(py: Python<'_>, path: PathBuf, text: &str) -> PyResult<()> {
    done(py, &Manner::default(), || Ok(write_bytes(&path, text.as_bytes())?))
}
