//! Parquet files of unknown origin, opened so that no content can cause a panic or exhaust memory.
//!
//! - The Arrow schema that some writers embed is not read: a damaged one makes the Arrow crates panic, and Parquet's own types
//!   say everything that is needed here.
//! - Offsets and lengths in the footer are checked before anything else uses them.
//! - Headers of pages state how large each page becomes when it is decompressed. They are summed up before the first page is
//!   read; a file that unpacks to too many times its size is refused ([`Expansion`]).
//! - Texts are read as views, so that a long text in a dictionary is in memory once, however many rows repeat it.
//! - Wide tables are read fewer rows at a time.
//! - The Parquet crate panics on some contradictions between pages. Its panics end here, as errors ([`contained`]).

use crate::limit::Expansion;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::ChunkReader;
use std::cell::Cell;
use std::io::Read;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

/// Cells decoded at a time, at most.
const CELLS_AT_ONCE: usize = 1 << 18;

/// What reading a page costs beyond its bytes.
const PAGE_COST: u64 = 1 << 10;

/// Nested structures of a page header; real ones have three levels.
const DEEPEST_HEADER: usize = 8;

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
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let found = ArrowReaderMetadata::load(&from, options.clone()).map_err(|error| error.to_string())?;
        let metadata = found.metadata().clone();
        let mut expansion = Expansion::new(size);
        check_pages(&from, &metadata, &mut expansion)?;
        let schema = Arc::new(Schema::new(viewed(found.schema().fields())));
        let leaves = metadata.file_metadata().schema_descr().num_columns().max(1);
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

/// Bytes of the values of a column; those of nested ones roughly.
fn decoded_bytes(array: &ArrayRef) -> u64 {
    if let Some(texts) = array.as_string_view_opt() {
        return texts.lengths().map(|length| u64::from(length) + 8).sum();
    }
    if let Some(fields) = array.as_struct_opt() {
        return fields.columns().iter().map(decoded_bytes).sum();
    }
    array.get_array_memory_size() as u64
}

/// Fields with texts as views.
fn viewed(fields: &Fields) -> Fields {
    let field = |field: &Arc<Field>| {
        let kind = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Struct(inner) => DataType::Struct(viewed(inner)),
            other => other.clone(),
        };
        Field::new(field.name(), kind, field.is_nullable())
    };
    fields.iter().map(field).collect()
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
            let (start, end) = extent(column, from.len())?;
            let mut at = start;
            while at < end {
                let mut header =
                    PageHeaderReader { from: from.get_read(at).map_err(|error| error.to_string())?, taken: 0 };
                let (packed, whole) = header.sizes()?;
                // The headers count, so that a great many empty pages are no way around the limit.
                unpacked.add(whole + header.taken + PAGE_COST).map_err(|error| error.to_string())?;
                at = at
                    .checked_add(header.taken)
                    .and_then(|body| body.checked_add(packed))
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

/// Reads the header of a page, a structure in Thrift's compact encoding, as far as its sizes.
struct PageHeaderReader<R> {
    from: R,
    taken: u64,
}

impl<R: Read> PageHeaderReader<R> {
    /// Bytes of the page as it is stored, and as it is decompressed. The whole header is read.
    fn sizes(&mut self) -> Result<(u64, u64), String> {
        let (mut packed, mut whole) = (None, None);
        let mut id = 0;
        while let Some((next, kind)) = self.field(id)? {
            id = next;
            match (id, kind) {
                (2, 5) => whole = Some(self.number()?),
                (3, 5) => packed = Some(self.number()?),
                _ => self.skip(kind, 0)?,
            }
        }
        match (packed, whole) {
            (Some(packed), Some(whole)) if packed >= 0 && whole >= 0 => Ok((packed as u64, whole as u64)),
            _ => Err("the header of a page is damaged".to_owned()),
        }
    }

    fn byte(&mut self) -> Result<u8, String> {
        let mut byte = [0];
        self.from.read_exact(&mut byte).map_err(|_| "it ends within the header of a page".to_owned())?;
        self.taken += 1;
        Ok(byte[0])
    }

    fn unsigned(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("the header of a page is damaged".to_owned())
    }

    fn number(&mut self) -> Result<i64, String> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Number and type of the next field; `None` at the end of the structure.
    fn field(&mut self, before: i64) -> Result<Option<(i64, u8)>, String> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let id = if head >> 4 == 0 { self.number()? } else { before.wrapping_add(i64::from(head >> 4)) };
        Ok(Some((id, head & 0xf)))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), String> {
        let damaged = || "the header of a page is damaged".to_owned();
        if depth > DEEPEST_HEADER {
            return Err(damaged());
        }
        match kind {
            1 | 2 => Ok(()),
            3 => self.byte().map(drop),
            4..=6 => self.unsigned().map(drop),
            7 => self.pass(8),
            8 => {
                let length = self.unsigned()?;
                self.pass(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
                // An element takes a byte at least, so that the end of the file ends the loop.
                (0..count).try_for_each(|_| match head & 0xf {
                    1 | 2 => self.byte().map(drop),
                    kind => self.skip(kind, depth + 1),
                })
            }
            12 => {
                let mut id = 0;
                while let Some((next, kind)) = self.field(id)? {
                    id = next;
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(damaged()),
        }
    }

    fn pass(&mut self, count: u64) -> Result<(), String> {
        let passed = std::io::copy(&mut (&mut self.from).take(count), &mut std::io::sink());
        match passed {
            Ok(passed) if passed == count => {
                self.taken += count;
                Ok(())
            }
            _ => Err("it ends within the header of a page".to_owned()),
        }
    }
}
