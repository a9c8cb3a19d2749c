//! Folders and small files that commands write; files appear whole or not at all.

use crate::error::CliError;
use headwater_files::AtomicFile;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Whether these files can be written; and none of them is named twice or read as well.
pub(crate) fn check<'a>(
    inputs: impl IntoIterator<Item = &'a PathBuf>,
    outputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), CliError> {
    let same = |a: &Path, b: &Path| a == b || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b));
    let mut taken: Vec<&PathBuf> = inputs.into_iter().collect();
    for output in outputs {
        if output.as_os_str() == "-" {
            return Err(CliError::usage("\"-\" is no file to write to", "name a file"));
        }
        if let Some(other) = taken.iter().find(|other| same(other, output)) {
            return Err(CliError::usage(
                format!("{} is given twice, and would be overwritten", other.display()),
                "write to another file",
            ));
        }
        AtomicFile::check(output)?;
        taken.push(output);
    }
    Ok(())
}

/// Makes a folder and those above it.
pub(crate) fn create(folder: &Path) -> Result<(), CliError> {
    std::fs::create_dir_all(folder)
        .map_err(|error| CliError::data(format!("{}: cannot create the folder: {error}", folder.display())))
}

/// A file of these bytes, ready to be committed.
fn draft(path: &Path, bytes: &[u8]) -> Result<AtomicFile, CliError> {
    let mut draft = AtomicFile::create(path)?;
    // Flushed, so that a full disk shows here and not when other files have their names already.
    let written = draft.write_all(bytes).and_then(|()| draft.flush());
    written.map_err(|error| CliError::data(format!("{}: cannot write: {error}", path.display())))?;
    Ok(draft)
}

/// Writes a file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    Ok(draft(path, bytes)?.commit()?)
}

/// A value as indented JSON, ready to be committed.
pub(crate) fn draft_json(path: &Path, value: &impl Serialize) -> Result<AtomicFile, CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::data(format!("{}: cannot write: {error}", path.display())))?;
    draft(path, (text + "\n").as_bytes())
}

/// Writes a value as indented JSON.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), CliError> {
    Ok(draft_json(path, value)?.commit()?)
}
