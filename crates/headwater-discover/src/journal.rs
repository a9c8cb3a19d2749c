//! A journal of draws: each line one numbered draw, appended as it comes, so that an interrupted run goes on where it stopped.
//!
//! The first line names what the draws depend on; a journal of something else is started anew. A line that was cut off by a
//! crash ends the journal.

use crate::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// The first line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct JournalHeader {
    key: String,
}

/// Draws 0, 1, 2, … in a file.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens a journal, and returns the draws in it that belong to this key.
    pub(crate) fn open<T: DeserializeOwned>(path: &Path, key: &str) -> Result<(Self, Vec<T>), Error> {
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let (draws, length) = read(path, key);
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(failed)?;
        file.set_len(length).map_err(failed)?;
        if length == 0 {
            let mut header = serde_json::to_vec(&JournalHeader { key: key.to_owned() })?;
            header.push(b'\n');
            file.write_all(&header).map_err(failed)?;
        } else {
            std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).map_err(failed)?;
        }
        Ok((Journal { file, path: path.to_owned() }, draws))
    }

    /// Appends draws.
    pub(crate) fn append<T: Serialize>(&mut self, draws: &[T]) -> Result<(), Error> {
        let mut lines = Vec::new();
        for draw in draws {
            serde_json::to_writer(&mut lines, draw)?;
            lines.push(b'\n');
        }
        self.file.write_all(&lines).map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Error::Record { problem: error.to_string() }
    }
}

/// The draws of a journal, and its length in bytes up to the last whole one.
fn read<T: DeserializeOwned>(path: &Path, key: &str) -> (Vec<T>, u64) {
    let Ok(file) = File::open(path) else { return (Vec::new(), 0) };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut next = |line: &mut Vec<u8>| {
        line.clear();
        reader.read_until(b'\n', line).is_ok() && line.ends_with(b"\n")
    };
    if !next(&mut line) || !serde_json::from_slice::<JournalHeader>(&line).is_ok_and(|header| header.key == key) {
        return (Vec::new(), 0);
    }
    let mut length = line.len() as u64;
    let mut draws = Vec::new();
    while next(&mut line) {
        let Ok(draw) = serde_json::from_slice(&line) else { break };
        draws.push(draw);
        length += line.len() as u64;
    }
    (draws, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_goes_on_after_a_crash_and_starts_anew_for_another_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("draws.jsonl");
        let (mut journal, found) = Journal::open::<Vec<f64>>(&path, "a").unwrap();
        assert!(found.is_empty());
        let draws = [vec![0.1, 1.0 / 3.0], vec![-2e-300, 5.0]];
        journal.append(&draws).unwrap();
        // A crash in the middle of a line.
        let mut bytes = std::fs::read(&path).unwrap();
        let whole = bytes.len();
        bytes.extend(b"[0.5, 0.");
        std::fs::write(&path, &bytes).unwrap();
        let (mut journal, found) = Journal::open::<Vec<f64>>(&path, "a").unwrap();
        assert_eq!((found, std::fs::metadata(&path).unwrap().len()), (draws.to_vec(), whole as u64));
        journal.append(&[vec![7.0]]).unwrap();
        assert_eq!(Journal::open::<Vec<f64>>(&path, "a").unwrap().1.len(), 3);
        assert!(Journal::open::<Vec<f64>>(&path, "b").unwrap().1.is_empty());
        // No journal at all.
        std::fs::write(&path, "something else\n").unwrap();
        assert!(Journal::open::<Vec<f64>>(&path, "b").unwrap().1.is_empty());
    }
}
