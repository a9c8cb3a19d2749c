//! Folders and files that a replication writes; files appear whole or not at all.

use crate::Error;
use headwater_files::AtomicFile;
use headwater_report::DrawnPoint;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

fn io<'a>(path: &'a Path, doing: &'static str) -> impl Fn(std::io::Error) -> Error + 'a {
    move |source| Error::Io { path: path.to_owned(), doing, source }
}

/// Makes a folder and those above it.
pub(crate) fn create_folder(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(io(folder, "cannot create the folder"))
}

/// Removes a folder that may not exist.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(folder, "cannot remove")(error)),
        _ => Ok(()),
    }
}

/// The bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(io(path, "cannot read"))
}

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(io(path, "cannot read"))
}

/// Writes a file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).and_then(|()| file.flush()).map_err(io(path, "cannot write"))?;
    Ok(file.commit()?)
}

/// Writes a value as indented JSON.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(|source| Error::Json { path: path.to_owned(), source })?;
    write(path, (text + "\n").as_bytes())
}

/// Writes every point of a figure as CSV.
pub(crate) fn write_points(path: &Path, points: &[DrawnPoint]) -> Result<(), Error> {
    let failed = |error: csv::Error| io(path, "cannot write")(std::io::Error::other(error));
    let shown = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["panel", "series", "x", "y", "low", "high"]).map_err(failed)?;
    for DrawnPoint { panel, series, x, y, low, high } in points {
        let numbers = [y.to_string(), shown(*low), shown(*high)];
        let [y, low, high] = numbers.each_ref().map(String::as_str);
        writer.write_record([panel.as_str(), series, x, y, low, high]).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|error| io(path, "cannot write")(error.into_error()))?;
    write(path, &bytes)
}
