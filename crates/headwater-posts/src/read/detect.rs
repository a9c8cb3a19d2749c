//! What a stream of bytes is: compression and format are told from its first bytes.

use super::encoding::{DecodedText, MetEncodings};
use super::unpack::unpacked;
use super::{csv, document};
use crate::Error;
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
pub(super) struct CountedReader<R> {
    pub(super) from: R,
    pub(super) bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(into)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Looks at the first bytes without losing them.
pub(super) fn peek(mut from: ByteStream, path: &Path) -> Result<(Vec<u8>, ByteStream), Error> {
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
            return Err(Error::file(path, "is a folder; a file is expected"));
        }
        Box::new(File::open(path).map_err(Error::io(path, "cannot read"))?)
    };
    text_of(stream, path, Some(path).filter(|path| path.is_file()), MetEncodings::default())
}

/// Undoes compression and decodes the text; returns its first bytes along with all of them. `place` is where the file can be
/// opened again.
pub(super) fn text_of(
    stream: ByteStream,
    path: &Path,
    place: Option<&Path>,
    met: MetEncodings,
) -> Result<(Vec<u8>, ByteStream), Error> {
    let (head, stream) = unpacked(stream, path, place)?;
    let text = DecodedText::new(&head, stream, met).map_err(Error::io(path, "cannot read"))?;
    peek(Box::new(text), path)
}

/// What the first bytes look like.
#[derive(Debug, PartialEq)]
pub(super) enum Looks {
    Lines,
    /// After so many bytes.
    Document {
        skip: usize,
    },
    Table {
        delimiter: u8,
    },
}

/// Tells objects from tables, and both from what is neither.
pub(super) fn looks_like(head: &[u8], path: &Path) -> Result<Looks, Error> {
    let not = |what: &str| Error::file(path, format!("{what}; expected CSV, JSON or Parquet"));
    let problem = match head {
        [] => Some("is empty"),
        [b'P', b'A', b'R', b'1', ..] => Some("is Parquet in a pipe or a compressed file: give the plain file"),
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
        return Err(Error::Encoding { path: path.to_owned() });
    }
    if let Some(skip) = document::script(head) {
        return Ok(Looks::Document { skip });
    }
    match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(not("is empty")),
        Some(b'{' | b'[') if document::is_document(head, head.len() < HEAD) => Ok(Looks::Document { skip: 0 }),
        Some(b'{' | b'[') => Ok(Looks::Lines),
        Some(_) => Ok(Looks::Table { delimiter: csv::delimiter(head) }),
    }
}
