//! Hostile files: none panics a reader, and none of a megabyte takes more than 256 MB or ten seconds of processor time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use headwater_files::{BeliefsFormat, Error, beliefs_from_bytes, model_from_bytes};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::sync::Arc;
use support::within_limits;
use zip::write::SimpleFileOptions;

mod support;

fn beliefs(format: BeliefsFormat, bytes: &[u8]) -> Result<usize, Error> {
    beliefs_from_bytes(bytes.to_vec(), format, Path::new("x"), false).map(|beliefs| beliefs.panel.steps())
}

/// A Parquet file of beliefs at these times, of agents by their place among these names.
fn parquet(times: &[i64], agents: &[i32], names: &[&str]) -> Vec<u8> {
    let (rows, names) = (times.len(), StringArray::from(names.to_vec()));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(Int64Array::from(times.to_vec()))),
        ("agent", Arc::new(DictionaryArray::new(Int32Array::from(agents.to_vec()), Arc::new(names)))),
        ("yes", Arc::new(Float64Array::from(vec![0.25; rows]))),
        ("no", Arc::new(Float64Array::from(vec![0.75; rows]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// Numbers from a seed, good enough to damage files with.
fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    }
}

#[test]
fn a_damaged_parquet_file_is_read_or_refused() {
    let good = parquet(&[0, 0, 1, 1], &[0, 1, 0, 1], &["ann", "bob"]);
    assert_eq!(beliefs(BeliefsFormat::Parquet, &good).unwrap(), 2);
    let schema = good.windows(12).position(|window| window == b"ARROW:schema").unwrap();
    let mut next = numbers(1);
    for round in 0..3000 {
        let mut bad = good.clone();
        // The embedded Arrow schema, which panicked the Arrow crates; the footer; anywhere.
        let range = [schema..good.len() - 8, good.len() / 2..good.len(), 0..good.len()][round % 3].clone();
        for _ in 0..=next(3) {
            let at = range.start + next(range.len());
            bad[at] = [0, 1, 0x7f, 0x80, 0xff, bad[at] ^ (1 << next(8)), next(256) as u8][next(7)];
        }
        if next(10) == 0 {
            bad.truncate(next(good.len()));
        }
        let _ = beliefs(BeliefsFormat::Parquet, &bad);
    }
}

#[test]
fn compressions_that_are_not_read_are_named() {
    let mut file = parquet(&[0, 0, 1, 1], &[0, 1, 0, 1], &["ann", "bob"]);
    // Compression 6 is zstd, 4 is Brotli; the number of values follows.
    let places: Vec<usize> = (0..file.len() - 2).filter(|&at| file[at..at + 3] == [0x15, 0x0c, 0x16]).collect();
    assert_eq!(places.len(), 4, "one for each column");
    places.into_iter().for_each(|at| file[at + 1] = 0x08);
    let told = beliefs(BeliefsFormat::Parquet, &file).unwrap_err().to_string();
    assert!(told.contains("its columns are compressed with BROTLI; snappy, gzip and zstd can be read"), "{told}");
}

#[test]
fn files_that_state_impossible_numbers_are_refused() {
    let header = |shape: &str| {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
        [&b"\x93NUMPY\x01\0"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
    };
    // No numbers at all, and names for a million million agents.
    let told = beliefs(BeliefsFormat::Npy, &header("(1, 1000000000000, 0)")).unwrap_err().to_string();
    assert!(told.contains("0 hypothesis"), "{told}");

    let model = |key: &str, value: &str| {
        let text = format!(
            r#"{{"format": "headwater-model/1", "agents": ["a", "b"], "hypotheses": ["x", "y"], "adaptation": 0.1,
                "combination": [[1, 0], [0, 1]], "evidence": [[0], [0]], "{key}": {value}}}"#
        );
        // The key stands twice: the other one goes.
        let text = if key == "adaptation" { text.replacen(r#""adaptation": 0.1,"#, "", 1) } else { text };
        model_from_bytes(text.replacen(&format!(r#""{key}": ["x", "y"],"#), "", 1).as_bytes())
    };
    assert!(model("note", "0").is_ok());
    for adaptation in ["1e-300", "0", "1", "-0.5"] {
        match model("adaptation", adaptation).unwrap_err() {
            Error::Range { field, value, range, .. } => {
                assert_eq!((field, value.parse()), ("adaptation", adaptation.parse::<f64>()));
                assert!(range.contains("1e-12"), "{range}");
            }
            other => unreachable!("{other}"),
        }
    }
    let many: Vec<String> = (0..1001).map(|hypothesis| format!("\"h{hypothesis}\"")).collect();
    let told = model("hypotheses", &format!("[{}]", many.join(","))).unwrap_err().to_string();
    assert!(told.contains("the number of hypotheses is 1001, but must be between 2 and 1000"), "{told}");
}

/// One test, so that nothing else runs in its process meanwhile.
#[test]
#[cfg(target_os = "linux")]
fn a_megabyte_takes_bounded_memory_and_time() {
    let wide = |columns: usize, start: &str| {
        let mut text = start.to_owned();
        (0..columns).for_each(|column| write!(text, ",h{column}").unwrap());
        text + "\n1,x" + &",0.1".repeat(columns) + "\n"
    };
    for columns in [80_000, 200_000] {
        let text = wide(columns, "time,agent");
        let told = within_limits("wide", || beliefs(BeliefsFormat::Csv, text.as_bytes())).unwrap_err().to_string();
        assert!(told.contains(&format!("the number of hypotheses is {columns}")), "{told}");
    }

    // Everybody speaks once, each at a time of their own: nearly all of the panel would be silence.
    let mut sparse = "time,agent,yes,no\n".to_owned();
    (0..50_000).for_each(|row| writeln!(sparse, "{row},a{row},.4,.6").unwrap());
    let told = within_limits("sparse", || beliefs(BeliefsFormat::Csv, sparse.as_bytes())).unwrap_err().to_string();
    assert!(told.contains("nearly all of them would be silence"), "{told}");
    let mut gap = "time,agent,yes,no\n".to_owned();
    (0..50_000).for_each(|row| writeln!(gap, "0,a{row},.4,.6").unwrap());
    gap += "1999,a0,.4,.6\n";
    assert!(within_limits("gap", || beliefs(BeliefsFormat::Csv, gap.as_bytes())).is_err());

    // One long name in a dictionary, in every row.
    let (long, times) = ("x".repeat(200_000), (0..30_000).collect::<Vec<_>>());
    let repeated = parquet(&times, &vec![0; times.len()], &[&long]);
    assert!(repeated.len() < 1 << 20, "{}", repeated.len());
    let told = within_limits("dictionary", || beliefs(BeliefsFormat::Parquet, &repeated)).unwrap_err().to_string();
    assert!(told.contains("times its size"), "{told}");

    for (what, file) in support::hostile_parquet() {
        let told = within_limits(what, || beliefs(BeliefsFormat::Parquet, &file)).unwrap_err().to_string();
        assert!(told.len() < 1000, "{what}: {told}");
    }

    for (member, shape) in [("meta", "<U268435456"), ("combination", "<f8")] {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let mut add = |name: &str, kind: &str, shape: &str, body: &[u8], repeat: usize| {
            archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
            let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
            archive.write_all(b"\x93NUMPY\x01\0").unwrap();
            archive.write_all(&(text.len() as u16).to_le_bytes()).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
            (0..repeat).for_each(|_| archive.write_all(body).unwrap());
        };
        let names: Vec<String> = (0..8000).map(|agent| format!("\"{agent}\"")).collect();
        let meta = format!(
            r#"{{"format": "headwater-model/1", "agents": [{}], "hypotheses": ["x", "y"], "adaptation": 0.1}}"#,
            names.join(",")
        );
        let text: Vec<u8> = meta.chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect();
        if member == "meta" {
            add("meta", shape, "()", &[0; 1 << 20], 1024);
        } else {
            add("meta", &format!("<U{}", meta.len()), "()", &text, 1);
            add("combination", shape, "(8000, 8000)", &[0; 1 << 20], 489);
        }
        let bytes = archive.finish().unwrap().into_inner();
        assert!(bytes.len() < 3 << 19, "{}", bytes.len());
        let told = within_limits(member, || model_from_bytes(&bytes)).unwrap_err().to_string();
        assert!(told.contains("times its size"), "{told}");
    }

    // As many values as a megabyte of text can hold, in every key that takes any.
    for (key, unit) in
        [("parameters", r#"{"":{"":0}},"#), ("history", r#"{"":0},"#), ("evidence", "[0],"), ("agents", "\"\",")]
    {
        let text = format!(r#"{{"{key}": [{}0]}}"#, unit.repeat((1 << 20) / unit.len()));
        assert!(within_limits(key, || model_from_bytes(text.as_bytes())).is_err());
    }
}
