//! Models as `.npz`: no archive panics the reader, and what is read can be written and read again.

#![no_main]

use headwater_files::{model_from_bytes, model_to_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Another beginning would be JSON, which has a target of its own.
    if !data.starts_with(b"PK") {
        return;
    }
    if let Ok(model) = model_from_bytes(data) {
        let written = model_to_bytes(&model).expect("a model can be written");
        assert!(model_from_bytes(&written).is_ok());
    }
});
