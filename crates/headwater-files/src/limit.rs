//! Limits on what a small file may become in memory.

use crate::Error;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Unpacked bytes that are always allowed.
const ALWAYS_ALLOWED: u64 = 32 << 20;

/// Beyond that: unpacked bytes per stored byte. Posts and beliefs compress to a twentieth at best, and files made to exhaust a
/// reader to a thousandth and less.
const MOST_EXPANSION: u64 = 64;

/// Hypotheses of a panel or model. Each agent has a covariance of H×H numbers.
pub(crate) const MOST_HYPOTHESES: usize = 1000;

/// Log-ratios that a panel may always have.
const PANEL_NUMBERS: usize = 10 << 20;

/// Beyond that: log-ratios of a panel, silent ones included, per byte of its file.
const PANEL_NUMBERS_PER_BYTE: u64 = 10;

/// Refuses more hypotheses than anything can be computed with.
pub(crate) fn check_hypotheses(path: &Path, hypotheses: usize) -> Result<(), Error> {
    if hypotheses <= MOST_HYPOTHESES {
        return Ok(());
    }
    Err(Error::range(path, "the number of hypotheses", &hypotheses, format!("between 2 and {MOST_HYPOTHESES}")))
}

/// Log-ratios of a panel, silent ones included, that a file of so many bytes may become.
pub(crate) fn panel_limit(bytes: u64) -> usize {
    PANEL_NUMBERS.max(usize::try_from(bytes.saturating_mul(PANEL_NUMBERS_PER_BYTE)).unwrap_or(usize::MAX))
}

/// A compressed file that unpacks to too many times its size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it unpacks to more than {most} times its size, as files made to exhaust a reader do; if it is genuine, unpack it first"
)]
pub struct TooMuchExpansion {
    most: u64,
}

/// Counts what a compressed file unpacks to, and refuses more than a multiple of its size.
#[derive(Debug, Clone)]
pub struct Expansion {
    stored: u64,
    unpacked: u64,
    /// Bytes that are always allowed, and beyond that per stored byte.
    always: u64,
    most: u64,
}

impl Expansion {
    /// For a file of so many bytes.
    pub fn new(stored: u64) -> Self {
        Expansion { stored, unpacked: 0, always: ALWAYS_ALLOWED, most: MOST_EXPANSION }
    }

    /// With another limit: bytes that are always allowed, and beyond that per stored byte.
    pub(crate) fn with_limit(self, always: u64, most: u64) -> Self {
        Expansion { always, most, ..self }
    }

    /// Counts unpacked bytes.
    ///
    /// # Errors
    /// Where they are too many.
    pub fn add(&mut self, bytes: u64) -> Result<(), TooMuchExpansion> {
        self.unpacked = self.unpacked.saturating_add(bytes);
        if self.unpacked <= self.always.max(self.stored.saturating_mul(self.most)) {
            return Ok(());
        }
        Err(TooMuchExpansion { most: self.most })
    }
}

/// A decompressed stream that ends with an error where it becomes too many times longer than what it is made from.
pub struct LimitedExpansion<R> {
    from: R,
    stored: Arc<AtomicU64>,
    expansion: Expansion,
}

impl<R: Read> LimitedExpansion<R> {
    /// `stored` counts the compressed bytes that were read so far.
    pub fn new(from: R, stored: Arc<AtomicU64>) -> Self {
        LimitedExpansion { from, stored, expansion: Expansion::new(0) }
    }

    /// With another limit: bytes that are always allowed, and beyond that per stored byte. For readers that keep nothing of
    /// what they have read.
    pub fn with_limit(mut self, always: u64, most: u64) -> Self {
        self.expansion = self.expansion.with_limit(always, most);
        self
    }
}

impl<R: Read> Read for LimitedExpansion<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(into)?;
        self.expansion.stored = self.stored.load(Ordering::Relaxed);
        self.expansion.add(count as u64).map_err(std::io::Error::other)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_may_not_become_large() {
        let mut expansion = Expansion::new(1000);
        assert!(expansion.add(ALWAYS_ALLOWED).is_ok());
        assert!(expansion.add(1).unwrap_err().to_string().contains("64 times its size"));
        assert!(Expansion::new(1 << 20).add(64 << 20).is_ok());
        let zeros = LimitedExpansion::new(std::io::repeat(0), Arc::new(AtomicU64::new(10)));
        assert!(std::io::copy(&mut { zeros }, &mut std::io::sink()).is_err());
        let read = |bytes: u64| {
            let zeros = LimitedExpansion::new(std::io::repeat(0).take(bytes), Arc::new(AtomicU64::new(10)));
            std::io::copy(&mut zeros.with_limit(1000, 200), &mut std::io::sink())
        };
        assert_eq!(read(2000).unwrap(), 2000);
        assert!(read(2001).unwrap_err().to_string().contains("200 times its size"));
    }
}
