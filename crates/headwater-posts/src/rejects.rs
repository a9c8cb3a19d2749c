//! The rows that cannot be read, as CSV `file,line,reason`.

use crate::Error;
use crate::read::BadRow;
use headwater_files::{AtomicFile, CsvText};
use std::path::{Path, PathBuf};

/// A list of bad rows being written.
pub struct RejectsFile {
    path: PathBuf,
    writer: csv::Writer<AtomicFile>,
    text: CsvText,
    rows: usize,
}

impl RejectsFile {
    /// Starts the file.
    pub fn create(path: &Path, text: CsvText) -> Result<Self, Error> {
        let writer = csv::Writer::from_writer(AtomicFile::create(path)?);
        let mut rejects = RejectsFile { path: path.to_owned(), writer, text, rows: 0 };
        rejects.record(["file", "line", "reason"])?;
        Ok(rejects)
    }

    /// Adds rows.
    pub fn write(&mut self, rows: &[BadRow]) -> Result<(), Error> {
        self.rows += rows.len();
        for bad in rows {
            let (file, line) = (bad.place.file.display().to_string(), bad.place.line.to_string());
            self.record([file.as_str(), line.as_str(), bad.reason.as_str()])?;
        }
        Ok(())
    }

    /// Gives the file its name if the run ended well, or stopped with bad rows, which are then what is looked for.
    pub fn close(self, done: bool) -> Result<(), Error> {
        if done || self.rows > 0 {
            let path = self.path;
            let file =
                self.writer.into_inner().map_err(|error| Error::io(&path, "cannot write")(error.into_error()))?;
            file.commit()?;
        }
        Ok(())
    }

    fn record(&mut self, cells: [&str; 3]) -> Result<(), Error> {
        let cells = cells.map(|cell| self.text.cell(cell).into_owned());
        self.writer.write_record(cells).map_err(|error| Error::io(&self.path, "cannot write")(error.into()))
    }
}

impl std::fmt::Debug for RejectsFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RejectsFile").field("path", &self.path).field("rows", &self.rows).finish_non_exhaustive()
    }
}
