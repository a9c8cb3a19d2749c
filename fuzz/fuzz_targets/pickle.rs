//! Torch checkpoints, both formats: nothing is executed, nothing panics, and no tensor is larger than the file.

#![no_main]

use headwater_score::roberta::ModelCheckpoint;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

/// Tensors read of each checkpoint.
const TENSORS: usize = 100;

fuzz_target!(|data: &[u8]| {
    let path = Path::new("fuzz.bin");
    let Ok(mut checkpoint) = ModelCheckpoint::from_torch(Cursor::new(data.to_vec()), path) else { return };
    let names: Vec<String> = checkpoint.tensors().take(TENSORS).map(|(name, _)| name.to_owned()).collect();
    for name in names {
        if let Ok(tensor) = checkpoint.tensor(&name) {
            assert!(2 * tensor.len() <= data.len() && tensor.iter().all(|value| value.is_finite()));
        }
    }
});
