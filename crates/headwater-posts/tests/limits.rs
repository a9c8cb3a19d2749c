//! Hostile posts: none of a megabyte takes more than 256 MB or ten seconds of processor time.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../../headwater-files/tests/support/mod.rs"]
mod support;

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use headwater_posts::bin::Hypotheses;
use headwater_posts::calendar::{Bin, Calendar};
use headwater_posts::given::Wanted;
use headwater_posts::ingest::Ingest;
use headwater_posts::mapping::ColumnMapping;
use headwater_posts::read::Records;
use headwater_posts::read::arrow::ArrowRows;
use headwater_posts::reader::PostReader;
use headwater_posts::select::Selection;
use jiff::tz::TimeZone;
use parquet::arrow::ArrowWriter;
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::sync::Arc;
use support::within_limits;

fn said<T>(result: Result<T, headwater_posts::Error>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// Reads posts with a score, up to their bins and the panel.
fn panel(bytes: &[u8]) -> Result<usize, String> {
    let records = said(Records::from_stream(Box::new(Cursor::new(bytes.to_vec())), Path::new("x")))?;
    let posts = PostReader::new(records, ColumnMapping::default().with_scores(Wanted::Either).without_text());
    let calendar = Calendar::new(Bin::Hours(1), TimeZone::UTC);
    let mut ingest = Ingest::new(Selection::default(), None, calendar, Hypotheses::Two);
    for batch in posts.batches() {
        said(ingest.take(&mut said(batch)?))?;
    }
    let (beliefs, _) = said(ingest.finish_binned())?;
    Ok(said(beliefs.panel())?.steps())
}

fn gzip(parts: &[u8], repeat: usize) -> Vec<u8> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    (0..repeat).for_each(|_| to.write_all(parts).unwrap());
    to.finish().unwrap()
}

/// One test, so that nothing else runs in its process meanwhile.
#[test]
fn a_megabyte_takes_bounded_memory_and_time() {
    // Compressed to a hundredth, as dumps with little variety are: posts are a stream, and nothing of them is kept.
    let rows = b"ann,1700000000,0.5\n".repeat(50_000);
    let genuine =
        [gzip(b"user,time,score\n", 1), gzip(&rows, 100), gzip(b"bob,1700000000,0.5\nbob,1700003600,0.5\n", 1)]
            .concat();
    assert!(genuine.len() < 1 << 20 && rows.len() * 100 > 90 * genuine.len(), "{}", genuine.len());
    assert_eq!(within_limits("repetitive", || panel(&genuine)), Ok(2));

    // Compressed to a thousandth.
    let bomb = [gzip(b"user,time,score\n", 1), gzip(&rows, 150)].concat();
    let told = within_limits("gzip", || panel(&bomb)).unwrap_err();
    assert!(told.starts_with("x: it unpacks to more than 128 times its size"), "{told}");
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    zstd.write_all(b"user,time,score\n").unwrap();
    (0..150).for_each(|_| zstd.write_all(&rows).unwrap());
    let bomb = zstd.finish().unwrap();
    let told = within_limits("zstd", || panel(&bomb)).unwrap_err();
    assert!(told.contains("more than 128 times its size"), "{told}");

    // Decoders with a long window keep what they have unpacked.
    let mut long = zstd::Encoder::new(Vec::new(), 1).unwrap();
    long.window_log(31).unwrap();
    long.write_all(b"user,time,score\n").unwrap();
    (0..150).for_each(|_| long.write_all(&rows).unwrap());
    let bomb = long.finish().unwrap();
    let told = within_limits("long window", || panel(&bomb)).unwrap_err();
    assert!(told.contains("more than 64 times its size"), "{told}");
    let mut slow = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    slow.write_all(b"user,time,score\n").unwrap();
    (0..80).for_each(|_| slow.write_all(&rows).unwrap());
    let bomb = slow.finish().unwrap();
    let told = within_limits("bzip2", || panel(&bomb)).unwrap_err();
    assert!(told.contains("more than 64 times its size"), "{told}");

    // A line of objects, each of which takes a hundred times its text.
    let line = format!("{{\"user\":[{}0]}}\n", "{\"\":{\"\":0}},".repeat(80_000));
    let lines = gzip(line.repeat(16).replace('\n', ",").as_bytes(), 1);
    assert!(within_limits("objects", || panel(&lines)).is_err());
    assert!(within_limits("object", || panel(line.as_bytes())).is_err());

    // What stands beside the messages of a chat is not copied to each of them.
    let beside = format!("\"x\":[{}0]", "{},".repeat(100_000));
    let document =
        format!("{{{beside},\"name\":\"{}\",\"messages\":[{}0]}}", "n".repeat(200_000), "{},".repeat(150_000));
    assert!(document.len() < 1 << 20);
    assert!(within_limits("document", || panel(document.as_bytes())).is_err());
    let chat = format!("{{\"name\":\"{}\",\"messages\":[{}0]}}", "n".repeat(900_000), "{},".repeat(30_000));
    assert!(within_limits("chat", || panel(chat.as_bytes())).is_err());

    let mut wide = "user,time,score".to_owned();
    (0..150_000).for_each(|column| write!(wide, ",c{column}").unwrap());
    wide += "\n";
    assert!(within_limits("columns", || panel(wide.as_bytes())).is_err());

    // Everybody speaks once, each in an hour of their own: nearly all of the panel would be silence.
    let mut sparse = "user,time,score\n".to_owned();
    (0..45_000_i64).for_each(|row| writeln!(sparse, "u{row},{},.5", 1_500_000_000 + 3600 * row).unwrap());
    let told = within_limits("sparse", || panel(sparse.as_bytes())).unwrap_err();
    assert!(told.contains("nearly all of them would be silence"), "{told}");

    // One long text in a dictionary, in every row.
    let (long, rows) = ("x".repeat(200_000), 20_000);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("user", Arc::new(StringArray::from(vec!["ann"; rows]))),
        ("time", Arc::new(Int64Array::from(vec![1_700_000_000; rows]))),
        (
            "text",
            Arc::new(DictionaryArray::new(Int32Array::from(vec![0; rows]), Arc::new(StringArray::from(vec![long])))),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    drop(batch);
    let bytes = Bytes::from(writer.into_inner().unwrap());
    assert!(bytes.len() < 1 << 20, "{}", bytes.len());
    let read = |bytes: Bytes| -> Result<u64, String> {
        let mut rows = said(ArrowRows::from_parquet(bytes, Arc::from(Path::new("x"))))?;
        let mut count = 0;
        while said(rows.next())?.is_some() {
            count += 1;
        }
        Ok(count)
    };
    let told = within_limits("dictionary", || read(bytes)).unwrap_err();
    assert!(told.contains("more than 64 times its size"), "{told}");
    for (what, file) in support::hostile_parquet() {
        let told = within_limits(what, || read(Bytes::from(file))).unwrap_err();
        let wanted = match what {
            "no columns" => "it has no columns",
            "groups of rows" => "it ends within its footer",
            "lists of flags in the footer" | "maps of flags in the footer" | "a text in place of the version" => {
                "its footer is damaged"
            }
            "deep" => "nested more than 64 levels deep",
            _ => "more than 64 times its size",
        };
        assert!(told.contains(wanted), "{what}: {told}");
    }
}
