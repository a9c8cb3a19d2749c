//! What a piece of work takes, for tests of hostile input in several crates. Linux only.

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Int32Array,
    RecordBatch, StringArray, StructArray,
};
use arrow_schema::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

const MOST_MEMORY: u64 = 256 << 20;
const MOST_SECONDS: u64 = 10;

/// Kilobytes of a line of /proc/self/status, as bytes.
fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Seconds of processor time of this process; a tick is a hundredth.
fn processor_seconds() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) / 100
}

/// Does something and checks that it takes at most 256 MB and ten seconds of processor time.
pub(crate) fn within_limits<T>(what: &str, act: impl FnOnce() -> T) -> T {
    // Sets the largest use of memory to the present one.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let (memory, seconds) = (status("VmRSS"), processor_seconds());
    let result = act();
    let (memory, seconds) = (status("VmHWM").saturating_sub(memory), processor_seconds() - seconds);
    assert!(memory <= MOST_MEMORY && seconds <= MOST_SECONDS, "{what}: {} MB, {seconds} s", memory >> 20);
    result
}

/// A Parquet file of one column, batch by batch.
fn column(batches: impl IntoIterator<Item = ArrayRef>) -> Vec<u8> {
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = None;
    for array in batches {
        let batch = RecordBatch::try_from_iter([("x", array)]).unwrap();
        let new = || ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.clone())).unwrap();
        writer.get_or_insert_with(new).write(&batch).unwrap();
    }
    let file = writer.unwrap().into_inner().unwrap();
    assert!(file.len() < 1 << 20, "{}", file.len());
    file
}

/// Lists of so many values each, equally long.
fn lists(values: ArrayRef, length: i32) -> ArrayRef {
    let field = Arc::new(Field::new("item", values.data_type().clone(), true));
    Arc::new(FixedSizeListArray::new(field, length, values, None))
}

/// A footer without data, from the elements of its schema and a number of rows.
fn footer(elements: usize, schema: &[u8], rows: u64) -> Vec<u8> {
    let varint = |mut value: u64| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let rows = varint(2 * rows);
    // Version 1; a list of structures; the number of rows; a list of one group of rows, which has no columns.
    let schema = [&[0x15, 0x02, 0x19, 0xfc][..], &varint(elements as u64), schema, &[0x16], &rows].concat();
    file(&[&schema[..], &[0x19, 0x1c, 0x19, 0x0c, 0x16, 0x00, 0x16], &rows, &[0x00, 0x00]].concat())
}

/// A file with this footer and nothing else.
fn file(footer: &[u8]) -> Vec<u8> {
    [b"PAR1", footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

/// Files with one column and without rows that state 2^31 - 1 elements of a list, or twenty times as many, in a few bytes.
fn stated_elements() -> Vec<(&'static str, Vec<u8>)> {
    const MANY: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x07];
    // Version 1; a schema of a root and a column of flags; no rows.
    let start = [
        &[0x15, 0x02, 0x19, 0x2c, 0x48, 0x01, b'r', 0x15, 0x02, 0x00][..],
        &[0x15, 0x00, 0x25, 0x00, 0x18, 0x01, b'x', 0x00, 0x16, 0x00],
    ]
    .concat();
    let flags = [&[0xf1][..], &MANY].concat().repeat(20);
    let maps = [&MANY[..], &[0x11]].concat().repeat(20);
    // An unknown field, a list of twenty lists of flags; the same of maps.
    let unknown = |kind: u8, elements: &[u8]| [&[0xb9, 0xf0 | kind, 20][..], elements, &[0x00]].concat();
    let after = |rest: &[u8]| file(&[&start[..], &[0x19, 0x0c], rest].concat());
    // Who goes by the stated type, a text, does not see what follows its length: for others the version, and a field like that above.
    let hidden = [&[0xd9, 0xf9, 20][..], &flags, &[0x00]].concat();
    let hidden = [&[0x18, hidden.len() as u8][..], &hidden, &start[2..], &[0x19, 0x0c, 0x00]].concat();
    vec![
        ("groups of rows", file(&[&start[..], &[0x19, 0xfc], &MANY, &[0x00; 10]].concat())),
        ("lists of flags in the footer", after(&unknown(0x09, &flags))),
        ("maps of flags in the footer", after(&unknown(0x0b, &maps))),
        ("a text in place of the version", file(&hidden)),
    ]
}

/// Parquet files of less than a megabyte that would become very much larger, each with a word for it.
pub(crate) fn hostile_parquet() -> Vec<(&'static str, Vec<u8>)> {
    let flags = |count: usize| -> ArrayRef { Arc::new(BooleanArray::from(vec![true; count])) };
    let dictionary = |values: ArrayRef, rows: usize| -> ArrayRef {
        Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(vec![0; rows]), values))
    };
    let long = "x".repeat(200_000);
    let field = Arc::new(Field::new("y".repeat(100_000), DataType::Int32, false));
    let structures = StructArray::new(vec![field].into(), vec![Arc::new(Int32Array::from(vec![7; 50_000]))], None);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![&long[..]]));
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![long.as_bytes()]));
    let fixed: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([long.as_bytes()].into_iter()).unwrap());
    // A group with one child: the name "x", repetition required, one child.
    let group = [0x35, 0x00, 0x18, 0x01, b'x', 0x15, 0x02, 0x00];
    // A column of type boolean.
    let leaf = [0x15, 0x00, 0x25, 0x00, 0x18, 0x01, b'x', 0x00];
    let root = |children: &[u8]| [&[0x48, 0x01, b'r', 0x15][..], children, &[0x00]].concat();
    let deep = [root(&[0x02]), group.repeat(100_000), leaf.to_vec()].concat();
    let mut wide = [root(&[0x02]), vec![0x35, 0x00, 0x18, 0xc0, 0x9a, 0xc]].concat();
    wide.extend(long.as_bytes());
    // A long name above 50000 columns.
    wide.extend([0x15, 0xa0, 0x8d, 0x06, 0x00]);
    wide.extend(leaf.repeat(50_000));
    let mut files = stated_elements();
    files.extend([
        ("flags", column((0..64).map(|_| flags(1 << 20)))),
        ("lists of flags", column((0..32).map(|_| lists(flags(1 << 20), 1 << 13)))),
        ("lists of texts", column([lists(dictionary(texts, 100_000), 1000)])),
        ("lists of structures", column([lists(Arc::new(structures), 100)])),
        ("bytes", column([dictionary(bytes, 10_000)])),
        ("fixed bytes", column([dictionary(fixed, 10_000)])),
        ("no columns", footer(1, &root(&[0x00]), 1 << 60)),
        ("deep", footer(100_002, &deep, 0)),
        ("long names", footer(50_002, &wide, 0)),
    ]);
    files
}
