//! Tables: no bytes panic the reader, every row that it calls good has as many cells as the header, and there are not more
//! rows, good or bad, than lines.

#![no_main]

use headwater_posts::read::RecordValue;
use headwater_posts::read::csv::CsvTable;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let delimiter = [b',', b';', b'\t', b'|'][usize::from(*first) % 4];
    let stream = Box::new(Cursor::new(rest.to_vec()));
    let Ok(mut table) = CsvTable::new(stream, Arc::from(Path::new("fuzz.csv")), delimiter) else { return };
    let columns = table.header().1.names().len();
    let (mut line, mut rows) = (0, 0);
    while let Ok(Some(row)) = table.next() {
        rows += 1;
        let Ok(record) = row else { continue };
        assert!(record.place.line > line, "rows start on later and later lines");
        line = record.place.line;
        match record.row {
            RecordValue::Cells(_, cells) => assert_eq!(cells.len(), columns),
            RecordValue::Json(_) => unreachable!("a table"),
        }
    }
    assert!(rows <= rest.iter().filter(|byte| **byte == b'\n').count() + 1);
});
