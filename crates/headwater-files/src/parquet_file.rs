//! Parquet files of unknown origin, opened so that no content can cause a panic or exhaust memory.
//!
//! - The Arrow schema that some writers embed is not read: a damaged one makes the Arrow crates panic, and Parquet's own types
//!   say everything that is needed here.
//! - The fields of the footer and of the headers of pages must have their types, and lists as many elements as they state: the
//!   Parquet crate does not check that, and a few bytes could make it loop without end or ask for more memory than there is.
//! - Offsets and lengths in the footer are checked before anything else uses them.
//! - The schema may be nested only so deeply, because the Parquet crate reads it by recursion, and full names of nested columns
//!   may have only so many bytes in all.
//! - Headers of pages state how large each page becomes when it is decompressed, and how many values it has: a few bytes can stand
//!   for a billion equal values. Both are summed up before the first page is read; a file that unpacks to too many times its size
//!   is refused ([`Expansion`]).
//! - Texts and bytes are read as views, so that a long one in a dictionary is in memory once, however many rows repeat it.
//! - Wide tables are read fewer rows at a time.
//! - The Parquet crate panics on some contradictions between pages. Its panics end here, as errors ([`contained`]).

use crate::limit::Expansion;
use crate::parquet_footer::FOOTER;
use crate::thrift::ThriftReader;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, Type as PhysicalType};
use parquet::file::metadata::{ColumnChunkMetaData, FooterTail, ParquetMetaData};
use parquet::file::reader::ChunkReader;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

/// Cells decoded at a time, at most.
const CELLS_AT_ONCE: usize = 1 << 18;

/// What reading a page costs beyond its bytes.
const PAGE_COST: u64 = 1 << 10;

/// Bytes of memory that a value takes at least, of texts and of others.
const TEXT_COST: u64 = 16;
const VALUE_COST: u64 = 8;

/// Levels of nested columns.
const DEEPEST_SCHEMA: usize = 64;

/// Bytes at the end of a file that say where its footer begins.
const TAIL: u64 = 8;

/// The batches of a Parquet file.
pub struct ParquetBatches {
    schema: Arc<Schema>,
    metadata: Arc<ParquetMetaData>,
    /// `None` once it has panicked.
    reader: Option<ParquetRecordBatchReader>,
    expansion: Expansion,
}

thread_local! {
    /// Whether a panic of this thread is caught and becomes an error.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// What code of others returns, or that it panicked. Nothing is printed of such a panic: whoever calls gets an error.
fn contained<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !CONTAINED.get() {
                before(panic);
            }
        }));
    });
    let before = CONTAINED.replace(true);
    // What the closure has touched is not used again after a panic.
    let result = panic::catch_unwind(AssertUnwindSafe(act));
    CONTAINED.set(before);
    result.map_err(|_| "its pages contradict each other".to_owned())
}

impl ParquetBatches {
    /// Checks the footer and the headers of all pages; `rows` is how many a batch may have.
    ///
    /// # Errors
    /// In words, what is wrong with the file.
    pub fn new(from: impl ChunkReader + 'static, rows: usize) -> Result<Self, String> {
        contained(|| ParquetBatches::open(from, rows))?
    }

    fn open(from: impl ChunkReader + 'static, rows: usize) -> Result<Self, String> {
        let size = from.len();
        check_footer(&from)?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let found = ArrowReaderMetadata::load(&from, options.clone()).map_err(|error| error.to_string())?;
        let metadata = found.metadata().clone();
        let mut expansion = Expansion::new(size);
        check_pages(&from, &metadata, &mut expansion)?;
        let schema = Arc::new(Schema::new(viewed(found.schema().fields())));
        let leaves = metadata.file_metadata().schema_descr().num_columns();
        if leaves == 0 {
            // The Parquet crate would return as many empty rows as the footer states.
            return Err("it has no columns".to_owned());
        }
        let metadata_with_views = ArrowReaderMetadata::try_new(metadata.clone(), options.with_schema(schema.clone()))
            .map_err(|error| error.to_string())?;
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(from, metadata_with_views)
            .with_batch_size((CELLS_AT_ONCE / leaves).clamp(1, rows))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(ParquetBatches { schema, metadata, reader: Some(reader), expansion: Expansion::new(size) })
    }

    /// The columns. Texts are views.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The value of a key of the file's metadata.
    pub fn value(&self, key: &str) -> Option<&str> {
        let pairs = self.metadata.file_metadata().key_value_metadata();
        pairs.into_iter().flatten().find(|pair| pair.key == key)?.value.as_deref()
    }
}

impl Iterator for ParquetBatches {
    type Item = Result<RecordBatch, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        let batch = match contained(|| reader.next()).transpose()? {
            Ok(Ok(batch)) => batch,
            Ok(Err(error)) => return Some(Err(error.to_string())),
            Err(panicked) => {
                self.reader = None;
                return Some(Err(panicked));
            }
        };
        let bytes: u64 = batch.columns().iter().map(decoded_bytes).sum();
        Some(self.expansion.add(bytes).map(|()| batch).map_err(|error| error.to_string()))
    }
}

/// Bytes of the values of a column.
fn decoded_bytes(array: &ArrayRef) -> u64 {
    if let Some(texts) = array.as_string_view_opt() {
        return texts.lengths().map(|length| u64::from(length) + 8).sum();
    }
    if let Some(bytes) = array.as_binary_view_opt() {
        return bytes.lengths().map(|length| u64::from(length) + 8).sum();
    }
    if let Some(fields) = array.as_struct_opt() {
        return fields.columns().iter().map(decoded_bytes).sum();
    }
    if let Some(lists) = array.as_list_opt::<i32>() {
        return decoded_bytes(lists.values()) + VALUE_COST * lists.len() as u64;
    }
    if let Some(maps) = array.as_map_opt() {
        return decoded_bytes(maps.keys()) + decoded_bytes(maps.values()) + VALUE_COST * maps.len() as u64;
    }
    (array.get_array_memory_size() as u64).max(VALUE_COST * array.len() as u64)
}

/// Fields with texts and bytes as views.
fn viewed(fields: &Fields) -> Fields {
    fields.iter().map(viewed_field).collect()
}

fn viewed_field(field: &Arc<Field>) -> Arc<Field> {
    let kind = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Struct(inner) => DataType::Struct(viewed(inner)),
        DataType::List(inner) => DataType::List(viewed_field(inner)),
        DataType::Map(inner, sorted) => DataType::Map(viewed_field(inner), *sorted),
        other => other.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(kind))
}

/// Refuses footers whose fields have other types than they should have, columns that are nested too deeply, and columns whose
/// full names are too long in all.
fn check_footer(from: &impl ChunkReader) -> Result<(), String> {
    let told = |error: parquet::errors::ParquetError| error.to_string();
    let short = || "it is too short".to_owned();
    let end = from.len().checked_sub(TAIL).ok_or_else(short)?;
    let tail = from.get_bytes(end, TAIL as usize).map_err(told)?;
    let tail = FooterTail::try_new(tail.as_ref().try_into().map_err(|_| short())?).map_err(told)?;
    let start = end.checked_sub(tail.metadata_length() as u64).ok_or_else(|| "its footer is too long".to_owned())?;
    if tail.is_encrypted_footer() {
        return Err("it is encrypted".to_owned());
    }
    let footer = from.get_bytes(start, tail.metadata_length()).map_err(told)?;
    ThriftReader::new(&footer[..], "its footer").structure(FOOTER)?;
    let shape = ThriftReader::new(&footer[..], "its footer").schema(DEEPEST_SCHEMA)?;
    if shape.depth > DEEPEST_SCHEMA {
        return Err(format!("its columns are nested more than {DEEPEST_SCHEMA} levels deep"));
    }
    Expansion::new(from.len()).add(shape.paths).map_err(|error| error.to_string())
}

/// Checks every offset and length of the footer, and counts what all pages become when they are decompressed.
fn check_pages(from: &impl ChunkReader, metadata: &ParquetMetaData, unpacked: &mut Expansion) -> Result<(), String> {
    if metadata.file_metadata().num_rows() < 0 {
        return Err("its footer states a negative number of rows".to_owned());
    }
    for group in metadata.row_groups() {
        if group.num_rows() < 0 {
            return Err("its footer states a negative number of rows".to_owned());
        }
        for column in group.columns() {
            if !matches!(
                column.compression(),
                Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::GZIP(_) | Compression::ZSTD(_)
            ) {
                // The name without a level.
                let name = column.compression().to_string();
                let name = name.split('(').next().unwrap_or_default();
                return Err(format!("its columns are compressed with {name}; snappy, gzip and zstd can be read"));
            }
            let (start, end) = extent(column, from.len())?;
            let descriptor = column.column_descr();
            let value_cost = match descriptor.physical_type() {
                PhysicalType::BYTE_ARRAY => TEXT_COST,
                PhysicalType::FIXED_LEN_BYTE_ARRAY => descriptor.type_length().unsigned_abs().into(),
                _ => VALUE_COST,
            };
            let mut at = start;
            while at < end {
                let header = from.get_read(at).map_err(|error| error.to_string())?;
                let mut header = ThriftReader::new(header, "the header of a page");
                let sizes = header.page_sizes()?;
                // The headers count, so that a great many empty pages are no way around the limit.
                let values = sizes.values.saturating_mul(value_cost.max(VALUE_COST));
                let cost = sizes.whole.saturating_add(values).saturating_add(header.taken() + PAGE_COST);
                unpacked.add(cost).map_err(|error| error.to_string())?;
                at = at
                    .checked_add(header.taken())
                    .and_then(|body| body.checked_add(sizes.packed))
                    .filter(|next| *next <= end)
                    .ok_or_else(|| "a page is longer than its column".to_owned())?;
            }
        }
    }
    Ok(())
}

/// First byte of a column and the one after its last.
fn extent(column: &ColumnChunkMetaData, size: u64) -> Result<(u64, u64), String> {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let sizes =
        [start, column.data_page_offset(), column.compressed_size(), column.uncompressed_size(), column.num_values()];
    if sizes.iter().any(|size| *size < 0) {
        return Err(format!("its footer states a negative offset or length for {}", column.column_path()));
    }
    let (start, length) = (start as u64, column.compressed_size() as u64);
    match start.checked_add(length) {
        Some(end) if end <= size => Ok((start, end)),
        _ => Err(format!("its footer places {} beyond the end of the file", column.column_path())),
    }
}
