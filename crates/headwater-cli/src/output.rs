//! Folders and small files that commands write; files appear whole or not at all.

use crate::error::CliError;
use headwater_files::AtomicFile;
pub(crate) use headwater_files::{create_folder as create, json_file as draft_json, write_bytes as write};
use std::path::{Path, PathBuf};

/// Checks that the outputs can be written, and that none is named twice or is also an input.
pub(crate) fn check<'a>(
    inputs: impl IntoIterator<Item = &'a PathBuf>,
    outputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), CliError> {
    let same = |a: &Path, b: &Path| a == b || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b));
    let mut taken: Vec<&PathBuf> = inputs.into_iter().collect();
    for output in outputs {
        if output.as_os_str() == "-" {
            return Err(CliError::usage("output to \"-\" is not supported", "name a file"));
        }
        if let Some(other) = taken.iter().find(|other| same(other, output)) {
            return Err(CliError::usage(
                format!("{} is named twice and would be overwritten", other.display()),
                "write to another file",
            ));
        }
        AtomicFile::check(output)?;
        taken.push(output);
    }
    Ok(())
}
