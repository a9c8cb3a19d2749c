//! One row as it stands in its file, and where that is.

use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// One row of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct RawRecord {
    /// Where it stands.
    pub place: RecordPlace,
    /// What it holds.
    pub row: RecordValue,
}

/// What a row holds.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordValue {
    /// Cells of a table, one per column.
    Cells(Arc<ColumnNames>, ::csv::StringRecord),
    /// The object of a line.
    Json(Value),
}

impl RecordValue {
    /// The names of its columns, or of the keys of its object.
    pub fn names(&self) -> Vec<&str> {
        match self {
            RecordValue::Cells(columns, _) => columns.names().iter().map(String::as_str).collect(),
            RecordValue::Json(Value::Object(object)) => object.keys().map(String::as_str).collect(),
            RecordValue::Json(_) => Vec::new(),
        }
    }

    /// A cell, or the value of a key or dotted path as text; `None` where it is absent or null.
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        match self {
            RecordValue::Cells(columns, cells) => {
                columns.position(name).and_then(|column| cells.get(column)).map(Cow::Borrowed)
            }
            RecordValue::Json(object) => match lookup(object, name)? {
                Value::Null => None,
                Value::String(text) => Some(Cow::Borrowed(text)),
                other => Some(Cow::Owned(other.to_string())),
            },
        }
    }
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnNames {
    names: Vec<String>,
    /// The first column of each name: tables may have many columns.
    places: HashMap<String, usize>,
}

impl ColumnNames {
    /// In their order.
    pub fn new(names: Vec<String>) -> Self {
        let mut places = HashMap::with_capacity(names.len());
        for (column, name) in names.iter().enumerate() {
            places.entry(name.clone()).or_insert(column);
        }
        ColumnNames { names, places }
    }

    /// Their names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Where a column is.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The first name that an earlier column has already.
    pub fn repeated(&self) -> Option<&str> {
        let repeated = self.names.iter().enumerate().find(|(column, name)| self.position(name) != Some(*column));
        repeated.map(|(_, name)| name.as_str())
    }
}

/// The value of a key, or of a dotted path of keys and positions.
pub(crate) fn lookup<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    if let Some(found) = value.get(name) {
        return Some(found);
    }
    if !name.contains('.') {
        return None;
    }
    name.split('.').try_fold(value, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => value.get(key),
    })
}

/// Where a row stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPlace {
    /// The file as it was named; `-` is standard input.
    pub file: Arc<Path>,
    /// The line it starts on, from 1; in Parquet the row, from 1.
    pub line: u64,
}

impl std::fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, line {}", self.file.display(), self.line)
    }
}

/// What is wrong with a row, where the other rows of its file are likely to have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum RowProblem {
    /// Something of this row.
    #[default]
    Row,
    /// It is not UTF-8 text, and not certainly anything else.
    Encoding,
    /// Its date may be read in two ways, or is none in the order given.
    DateOrder,
    /// Its time is not the plain number that was asked for.
    NumericTime,
    /// Its score is not within the range.
    ScoreRange,
}

/// Why a row is no post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowError {
    pub(crate) problem: RowProblem,
    pub(crate) reason: String,
}

impl RowError {
    pub(crate) fn new(problem: RowProblem, reason: impl Into<String>) -> Self {
        RowError { problem, reason: reason.into() }
    }
}

impl From<String> for RowError {
    fn from(reason: String) -> Self {
        RowError::new(RowProblem::Row, reason)
    }
}

/// A row that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadRow {
    /// Where it stands.
    pub place: RecordPlace,
    /// Whether others are likely to have the same.
    pub problem: RowProblem,
    /// What was met and what would be right.
    pub reason: String,
}

impl BadRow {
    /// A row with a fault of its own.
    pub fn new(place: RecordPlace, reason: impl Into<String>) -> Self {
        BadRow { place, problem: RowProblem::Row, reason: reason.into() }
    }

    pub(crate) fn with(place: RecordPlace, error: RowError) -> Self {
        BadRow { place, problem: error.problem, reason: error.reason }
    }
}

impl std::fmt::Display for BadRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}
