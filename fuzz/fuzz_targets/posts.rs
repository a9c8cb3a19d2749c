//! The whole way from bytes, perhaps compressed, to bins: nothing panics, and every number that comes out is finite.

#![no_main]

use headwater_posts::bin::Hypotheses;
use headwater_posts::calendar::{Bin, Calendar};
use headwater_posts::given::Wanted;
use headwater_posts::ingest::Ingest;
use headwater_posts::mapping::ColumnMapping;
use headwater_posts::read::Records;
use headwater_posts::reader::{PostBatch, PostReader};
use headwater_posts::select::Selection;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

/// A few bytes can unpack to many rows.
const ROWS: usize = 10_000;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let bin = [Bin::Day, Bin::Week, Bin::Hours(1), Bin::Hours(6)][usize::from(*first) % 4];
    let Ok(zone) = TimeZone::get(["UTC", "America/New_York", "Australia/Lord_Howe"][usize::from(*first / 4) % 3])
    else {
        return;
    };
    let Ok(records) = Records::from_stream(Box::new(Cursor::new(rest.to_vec())), Path::new("fuzz")) else { return };
    let mut posts = PostReader::new(records, ColumnMapping::default().with_scores(Wanted::Either).without_text());
    let mut batch = PostBatch::default();
    for _ in 0..ROWS {
        match posts.next() {
            Ok(Some(Ok(post))) => batch.posts.push(post),
            Ok(Some(Err(bad))) => batch.bad.push(bad),
            Ok(None) | Err(_) => break,
        }
    }
    let mut ingest = Ingest::new(Selection::default(), None, Calendar::new(bin, zone), Hypotheses::Two);
    if ingest.take(&mut batch).is_err() {
        return;
    }
    if let Ok((beliefs, quality)) = ingest.finish_binned() {
        let left_out = quality.duplicates + quality.updates + quality.dropped.total();
        assert_eq!(quality.kept + left_out, quality.posts);
        assert!(beliefs.cells().all(|cell| cell.ratios[0].is_finite() && cell.posts > 0));
    }
});
