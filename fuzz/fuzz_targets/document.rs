//! JSON documents: no bytes panic the reader, and no record is longer than what it was read from.

#![no_main]

use headwater_posts::read::RecordValue;
use headwater_posts::read::document::JsonDocument;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

fuzz_target!(|data: &[u8]| {
    let mut document = JsonDocument::new(Box::new(Cursor::new(data.to_vec())), Arc::from(Path::new("fuzz.json")));
    let (mut met, mut line) = (0, 0);
    while let Ok(Some(record)) = document.next() {
        met += 1;
        let Ok(record) = record else { continue };
        assert!(record.place.line >= line, "records start on later and later lines");
        line = record.place.line;
        assert!(matches!(record.row, RecordValue::Json(_)));
    }
    assert!(met <= data.len());
});
