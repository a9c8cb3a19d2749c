//! Commands called by another program: nothing is printed, what would be is returned, and the work can be watched.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater::progress::Progress;
use headwater_cli::{CliError, call};
use std::ffi::OsString;
use std::path::Path;

fn words(folder: &Path, line: &str) -> Vec<OsString> {
    let place = |word: &str| word.replace('@', folder.to_str().unwrap());
    std::iter::once("headwater".to_owned()).chain(line.split(' ').map(place)).map(OsString::from).collect()
}

#[test]
fn results_and_warnings_are_returned() {
    let folder = tempfile::tempdir().unwrap();
    let say = |line: &str| call(words(folder.path(), line));
    say("simulate --out @/w --agents 6 --edge-probability 0.5 --steps 200 --silence 0.2").unwrap();
    let (result, warnings) = say("learn @/w/beliefs.parquet --out @/m.json --method whitened --format json").unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&result).unwrap()["adaptation"].is_number());
    assert!(warnings.iter().any(|warning| warning.contains("beliefs are missing")), "{warnings:?}");
    let usage = say("learn nothing.csv").unwrap_err();
    assert!(matches!(&usage, CliError::Usage { message, .. } if message.contains("--out")), "{usage}");
    let data = say("learn @/none.csv --out @/m.json").unwrap_err();
    assert!(
        matches!(&data, CliError::File { kind: std::io::ErrorKind::NotFound, .. })
            && data.to_string().contains("\nhint: check the path"),
        "{data}"
    );
}

#[test]
fn who_watches_can_stop_it() {
    let folder = tempfile::tempdir().unwrap();
    let say = |line: &str| call(words(folder.path(), line));
    say("simulate --out @/w --agents 6 --edge-probability 0.5 --steps 200 --silence 0.2").unwrap();
    let watch = Progress::default();
    watch.stop();
    let stopped = watch.over(Some(2), || say("learn @/w/beliefs.parquet --out @/m.json"));
    assert!(matches!(stopped, Ok(Err(CliError::Interrupted { .. }))), "{stopped:?}");
    assert!(!folder.path().join("m.json").exists());
}
