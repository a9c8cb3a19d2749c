//! When a file as a whole is at fault, and not some of its rows.

use crate::Error;
use crate::read::{BadRow, RowProblem};

/// This many lines without a needed key, and none with it, are wrong names and not bad lines.
const STRANGERS: u64 = 20;

/// Rows for each row that shares its fault with others: more of these, and the file is at fault.
const MOST_SOUND: u64 = 20;

/// Rows of a file that cannot be read, each for a reason that concerns all of them, and those that can.
#[derive(Default)]
pub(super) struct Doubts {
    pub(super) sound: u64,
    doubtful: u64,
    first: Option<BadRow>,
}

impl Doubts {
    /// Counts a bad row; an error where the file is at fault.
    pub(super) fn see(&mut self, bad: &BadRow) -> Result<(), Error> {
        if bad.problem == RowProblem::Row {
            return Ok(());
        }
        self.doubtful += 1;
        self.first.get_or_insert_with(|| bad.clone());
        if self.doubtful >= STRANGERS { self.end(false) } else { Ok(()) }
    }

    /// Doubts the whole file where none of its rows is sound so far, or, once all were read, too many are not.
    pub(super) fn end(&mut self, whole: bool) -> Result<(), Error> {
        let most = if whole { self.sound / MOST_SOUND } else { 0 };
        if self.doubtful <= most || (!whole && self.sound > 0) {
            return Ok(());
        }
        match self.first.take() {
            Some(BadRow { place, problem: RowProblem::Encoding, .. }) => {
                Err(Error::Encoding { path: place.file.to_path_buf() })
            }
            Some(BadRow { place, problem, reason }) => Err(Error::WholeFile { problem, place, reason }),
            None => Ok(()),
        }
    }
}

/// Objects of a file that have the needed keys, and those that have not.
#[derive(Default)]
pub(super) struct Strangers {
    known: u64,
    strangers: u64,
    /// What to say of the first.
    first: Option<Error>,
}

impl Strangers {
    /// Counts an object that is as it should be, where `known`.
    pub(super) fn see(&mut self, known: bool) {
        self.known += u64::from(known);
    }

    /// Counts an object that is not as it should be, the first with what to say; an error when no other was as it should be.
    pub(super) fn unexpected(&mut self, error: impl FnOnce() -> Error) -> Result<(), Error> {
        self.strangers += 1;
        self.first.get_or_insert_with(error);
        if self.strangers >= STRANGERS { self.end() } else { Ok(()) }
    }

    /// Says that names are wrong if no object of a file had the right ones, and begins anew.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        match std::mem::take(self) {
            Strangers { known: 0, first: Some(error), .. } => Err(error),
            _ => Ok(()),
        }
    }
}
