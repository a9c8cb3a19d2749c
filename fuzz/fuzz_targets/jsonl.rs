//! JSON lines: no bytes panic the reader.

#![no_main]

use headwater_posts::read::jsonl::JsonLines;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

fuzz_target!(|data: &[u8]| {
    let mut lines = JsonLines::new(Box::new(Cursor::new(data.to_vec())), Arc::from(Path::new("fuzz.jsonl")));
    let mut met = 0;
    while let Ok(Some(_)) = lines.next() {
        met += 1;
    }
    assert!(met <= data.iter().filter(|byte| **byte == b'\n').count() + 1);
});
