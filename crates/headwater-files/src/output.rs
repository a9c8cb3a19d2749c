//! Folders and small files: whole or not at all.

use crate::{AtomicFile, Error};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// Makes a folder and those above it.
pub fn create_folder(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(Error::io(folder, "cannot create the folder"))
}

/// A file of these bytes, which takes its name when it is committed.
fn bytes_file(path: &Path, bytes: &[u8]) -> Result<AtomicFile, Error> {
    let mut file = AtomicFile::create(path)?;
    // Flushed, so that a full disk shows here and not when other files have their names already.
    file.write_all(bytes).and_then(|()| file.flush()).map_err(Error::io(path, "cannot write"))?;
    Ok(file)
}

/// Writes a file.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    bytes_file(path, bytes)?.commit()
}

/// A value as indented JSON, which takes its name when it is committed.
pub fn json_file(path: &Path, value: &impl Serialize) -> Result<AtomicFile, Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::file(path, error.to_string()))?;
    bytes_file(path, (text + "\n").as_bytes())
}

/// Writes a value as indented JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    json_file(path, value)?.commit()
}
