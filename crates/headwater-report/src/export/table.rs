//! Typed columns and rows, as every export format takes them.

use std::fmt;

/// A column of the agents, of the edges, or of the whole network.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportColumn {
    /// As in the JSON of a ranking.
    pub name: &'static str,
    /// In the model's order.
    pub values: ColumnValues,
}

/// The values of a column; `None` where a value is missing.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValues {
    /// Real numbers.
    Real(Vec<Option<f64>>),
    /// Integers.
    Whole(Vec<Option<i64>>),
    /// Booleans.
    Flag(Vec<Option<bool>>),
    /// Strings.
    Text(Vec<Option<String>>),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Real numbers.
    Real,
    /// Integers.
    Whole,
    /// Booleans.
    Flag,
    /// Strings.
    Text,
}

impl ColumnValues {
    fn kind(&self) -> ColumnType {
        match self {
            ColumnValues::Real(_) => ColumnType::Real,
            ColumnValues::Whole(_) => ColumnType::Whole,
            ColumnValues::Flag(_) => ColumnType::Flag,
            ColumnValues::Text(_) => ColumnType::Text,
        }
    }

    fn cell(&self, row: usize) -> Option<Cell<'_>> {
        match self {
            // Not all formats can hold NaN or infinity.
            ColumnValues::Real(values) => values[row].filter(|value| value.is_finite()).map(Cell::Real),
            ColumnValues::Whole(values) => values[row].map(Cell::Whole),
            ColumnValues::Flag(values) => values[row].map(Cell::Flag),
            ColumnValues::Text(values) => values[row].as_deref().map(Cell::Text),
        }
    }

    pub(super) fn any_known(&self) -> bool {
        match self {
            ColumnValues::Real(values) => values.iter().any(Option::is_some),
            ColumnValues::Whole(values) => values.iter().any(Option::is_some),
            ColumnValues::Flag(values) => values.iter().any(Option::is_some),
            ColumnValues::Text(values) => values.iter().any(Option::is_some),
        }
    }
}

/// One value; displayed with all digits, text unescaped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell<'a> {
    Real(f64),
    Whole(i64),
    Flag(bool),
    Text(&'a str),
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // All digits either way; exponents keep tiny numbers short.
            Cell::Real(value) if *value != 0.0 && value.abs() < 1e-5 => write!(formatter, "{value:e}"),
            Cell::Real(value) => write!(formatter, "{value}"),
            Cell::Whole(value) => write!(formatter, "{value}"),
            Cell::Flag(value) => write!(formatter, "{value}"),
            Cell::Text(text) => formatter.write_str(text),
        }
    }
}

impl<'a> Cell<'a> {
    pub(super) fn real(self) -> Option<f64> {
        if let Cell::Real(value) = self { Some(value) } else { None }
    }

    pub(super) fn whole(self) -> Option<i64> {
        if let Cell::Whole(value) = self { Some(value) } else { None }
    }

    pub(super) fn flag(self) -> Option<bool> {
        if let Cell::Flag(value) = self { Some(value) } else { None }
    }

    pub(super) fn text(self) -> Option<&'a str> {
        if let Cell::Text(text) = self { Some(text) } else { None }
    }
}

/// Rows and columns.
pub(super) struct Table<'a> {
    pub(super) rows: usize,
    pub(super) fields: Vec<Field<'a>>,
}

/// A column of a table.
pub(super) struct Field<'a> {
    pub(super) name: &'static str,
    pub(super) kind: ColumnType,
    /// Whether every row has a value.
    pub(super) complete: bool,
    pub(super) cell: Box<dyn Fn(usize) -> Option<Cell<'a>> + 'a>,
}

impl<'a> Field<'a> {
    pub(super) fn complete(name: &'static str, kind: ColumnType, cell: impl Fn(usize) -> Cell<'a> + 'a) -> Self {
        Field { name, kind, complete: true, cell: Box::new(move |row| Some(cell(row))) }
    }

    pub(super) fn from_column(column: &'a ExportColumn) -> Self {
        let cell = |row| column.values.cell(row);
        Field { name: column.name, kind: column.values.kind(), complete: false, cell: Box::new(cell) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        for value in [0.1, 1.0 / 3.0, 1e-300, -2.5e-7, 12.0, 0.0, 1e-5] {
            assert_eq!(Cell::Real(value).to_string().parse::<f64>().unwrap(), value);
        }
        assert_eq!((Cell::Real(1e-9).to_string(), Cell::Real(3.0).to_string()), ("1e-9".into(), "3".into()));
    }
}
