//! Arrays: no bytes panic the reader, and what is read has only finite numbers.

#![no_main]

use headwater_files::{BeliefsFormat, beliefs_from_bytes};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    for log_ratios in [false, true] {
        let read = beliefs_from_bytes(data.to_vec(), BeliefsFormat::Npy, Path::new("fuzz.npy"), log_ratios);
        if let Ok(beliefs) = read {
            assert!(beliefs.panel.cells().iter().all(|cell| cell.is_finite()));
        }
    }
});
