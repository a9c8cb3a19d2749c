//! What a stream of bytes is: compression and format are told from its first bytes.

use super::csv;
use crate::Error;
use headwater_files::LimitedExpansion;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes looked at to tell the format.
const HEAD: usize = 1 << 16;

/// Bytes as text-like readers take them.
pub type ByteStream = Box<dyn Read + Send>;

/// Counts the bytes that are read.
pub(super) struct Counted<R> {
    pub(super) from: R,
    pub(super) bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(into)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Looks at the first bytes without losing them.
fn peek(mut from: ByteStream, path: &Path) -> Result<(Vec<u8>, ByteStream), Error> {
    let mut head = Vec::new();
    (&mut from).take(HEAD as u64).read_to_end(&mut head).map_err(Error::io(path, "cannot read"))?;
    Ok((head.clone(), Box::new(Cursor::new(head).chain(from))))
}

/// A text file, decompressed and without a byte order mark; for the small tables beside the posts.
pub(crate) fn open_text(path: &Path) -> Result<(Vec<u8>, ByteStream), Error> {
    let stream: ByteStream = if path.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        if path.is_dir() {
            return Err(Error::file(path, "is a folder; a file is wanted"));
        }
        Box::new(File::open(path).map_err(Error::io(path, "cannot read"))?)
    };
    unpacked(stream, path)
}

/// Undoes the compression and takes a byte order mark off; returns the first bytes along with all of them.
pub(super) fn unpacked(stream: ByteStream, path: &Path) -> Result<(Vec<u8>, ByteStream), Error> {
    let stored = Arc::new(AtomicU64::new(0));
    let (mut head, mut stream) = peek(Box::new(Counted { from: stream, bytes: stored.clone() }), path)?;
    if head.starts_with(&[0x1f, 0x8b]) {
        let decoder = flate2::read::MultiGzDecoder::new(stream);
        (head, stream) = peek(Box::new(LimitedExpansion::new(decoder, stored)), path)?;
    } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let decoder = zstd::Decoder::new(stream).map_err(Error::io(path, "cannot read"))?;
        (head, stream) = peek(Box::new(LimitedExpansion::new(decoder, stored)), path)?;
    }
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if head.starts_with(MARK) {
        head.drain(..MARK.len());
        let mut mark = [0; MARK.len()];
        stream.read_exact(&mut mark).map_err(Error::io(path, "cannot read"))?;
    }
    Ok((head, stream))
}

/// What the first bytes look like.
#[derive(Debug, PartialEq)]
pub(super) enum Looks {
    Json,
    Table { delimiter: u8 },
}

/// Tells objects from tables, and both from what is neither.
pub(super) fn looks_like(head: &[u8], path: &Path) -> Result<Looks, Error> {
    let not = |what: &str| Error::file(path, format!("{what}; wanted CSV, JSON lines or Parquet, plain, gzip or zstd"));
    let problem = match head {
        [] => Some("is empty"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("is UTF-16 text: save it as UTF-8"),
        [b'P', b'A', b'R', b'1', ..] => Some("is Parquet in a pipe or a compressed file: give the plain file"),
        [b'P', b'K', 3, 4, ..] => Some("is a zip archive or an Excel workbook: unpack it, or export it as CSV"),
        _ if head.contains(&0) => Some("is not text"),
        _ => None,
    };
    if let Some(problem) = problem {
        return Err(not(problem));
    }
    // The head may end within a character.
    if let Err(error) = std::str::from_utf8(head)
        && error.error_len().is_some()
        && error.valid_up_to() < head.iter().position(|byte| *byte == b'\n').unwrap_or(head.len())
    {
        return Err(not("begins with bytes that are not UTF-8 text"));
    }
    match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(not("is empty")),
        Some(b'{' | b'[') => Ok(Looks::Json),
        Some(_) => Ok(Looks::Table { delimiter: csv::delimiter(head) }),
    }
}
