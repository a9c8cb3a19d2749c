//! Parquet: no file panics the readers of beliefs and of posts, or becomes many times its size in memory.

#![no_main]

use bytes::Bytes;
use headwater_files::{BeliefsFormat, beliefs_from_bytes};
use headwater_posts::read::arrow::ArrowRows;
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::Arc;

/// A few bytes can unpack to many rows.
const ROWS: usize = 10_000;

fuzz_target!(|data: &[u8]| {
    let name = Path::new("fuzz.parquet");
    let _ = beliefs_from_bytes(data.to_vec(), BeliefsFormat::Parquet, name, false);
    let Ok(mut rows) = ArrowRows::from_parquet(Bytes::copy_from_slice(data), Arc::from(name)) else { return };
    for _ in 0..ROWS {
        if !matches!(rows.next(), Ok(Some(_))) {
            break;
        }
    }
});
