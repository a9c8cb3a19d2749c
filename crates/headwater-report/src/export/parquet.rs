//! Edges and nodes as Parquet: the same columns as CSV, typed, null for missing values.

use super::ExportNetwork;
use super::table::{Cell, ColumnType, Table};
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::io::{Error, Write};
use std::sync::Arc;

/// Rows that are held at a time.
const BATCH: usize = 1 << 16;

/// The edges.
pub fn edges(network: &ExportNetwork, out: impl Write + Send) -> Result<(), Error> {
    write(&network.edge_table(), out)
}

/// The agents.
pub fn nodes(network: &ExportNetwork, out: impl Write + Send) -> Result<(), Error> {
    write(&network.agent_table(), out)
}

fn write(table: &Table<'_>, out: impl Write + Send) -> Result<(), Error> {
    let kind = |kind: ColumnType| match kind {
        ColumnType::Real => DataType::Float64,
        ColumnType::Whole => DataType::Int64,
        ColumnType::Flag => DataType::Boolean,
        ColumnType::Text => DataType::Utf8,
    };
    let fields = table.fields.iter().map(|field| Field::new(field.name, kind(field.kind), !field.complete));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(Error::other)?;
    for first in (0..table.rows).step_by(BATCH) {
        let rows = first..(first + BATCH).min(table.rows);
        let columns: Vec<ArrayRef> = (table.fields.iter())
            .map(|field| {
                let cells = rows.clone().map(|row| (field.cell)(row));
                column(field.kind, cells)
            })
            .collect();
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(Error::other)?;
        writer.write(&batch).map_err(Error::other)?;
    }
    writer.into_inner().map_err(Error::other)?.flush()
}

fn column<'a>(kind: ColumnType, cells: impl Iterator<Item = Option<Cell<'a>>>) -> ArrayRef {
    match kind {
        ColumnType::Real => {
            let mut builder = Float64Builder::new();
            cells.for_each(|cell| builder.append_option(cell.and_then(Cell::real)));
            Arc::new(builder.finish())
        }
        ColumnType::Whole => {
            let mut builder = Int64Builder::new();
            cells.for_each(|cell| builder.append_option(cell.and_then(Cell::whole)));
            Arc::new(builder.finish())
        }
        ColumnType::Flag => {
            let mut builder = BooleanBuilder::new();
            cells.for_each(|cell| builder.append_option(cell.and_then(Cell::flag)));
            Arc::new(builder.finish())
        }
        ColumnType::Text => {
            let mut builder = StringBuilder::new();
            cells.for_each(|cell| builder.append_option(cell.and_then(Cell::text)));
            Arc::new(builder.finish())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::network::tests::{hostile, lonely};
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    #[test]
    fn tables_come_back_with_their_types() {
        let network = hostile();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("edges.parquet");
        edges(&network, std::fs::File::create(&path).unwrap()).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap()).unwrap();
        let batch = reader.build().unwrap().next().unwrap().unwrap();
        let (sources, weights) = (batch.column(0).as_string::<i32>(), batch.column(2).as_primitive::<Float64Type>());
        for (row, edge) in network.edges.iter().enumerate() {
            assert_eq!(sources.value(row), network.agents[edge.speaker]);
            assert_eq!(weights.value(row), edge.weight);
        }
        let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["source", "target", "weight", "p_value", "significant"]);
        assert_eq!(batch.column(3).null_count(), 1);
    }

    #[test]
    fn a_table_without_rows_is_a_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("edges.parquet");
        edges(&lonely(), std::fs::File::create(&path).unwrap()).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.build().unwrap().count(), 0);
    }
}
