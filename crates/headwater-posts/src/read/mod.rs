//! Readers: paths in, records out, one at a time.
//!
//! A [`Record`] is one row as it stands in the file: the cells of a table ([`csv`], [`parquet`]) or the object of a line
//! ([`jsonl`]). What it means is the business of [`crate::post`]. The format and the compression are told from the first
//! bytes, so that pipes and odd names work; memory is bounded by [`LONGEST_RECORD`], whatever the file holds.

pub mod csv;
pub(crate) mod html;
pub mod jsonl;
pub mod parquet;
pub(crate) mod preset;
mod time;

pub use preset::Preset;
pub(crate) use time::WANTED as WANTED_TIME;
pub use time::parse_time;

use crate::Error;
use serde_json::Value;
use std::borrow::Cow;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A row or line of more bytes than this is a quote that was never closed, or no text at all.
pub const LONGEST_RECORD: usize = 16 << 20;

/// Bytes looked at to tell the format.
const HEAD: usize = 1 << 16;

/// One row of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Where it stands.
    pub place: Place,
    /// What it holds.
    pub row: Row,
}

/// What a row holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// Cells of a table, one per column.
    Cells(Arc<Columns>, ::csv::StringRecord),
    /// The object of a line.
    Json(Value),
}

impl Row {
    /// The names of its columns, or of the keys of its object.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Row::Cells(columns, _) => columns.names.iter().map(String::as_str).collect(),
            Row::Json(Value::Object(object)) => object.keys().map(String::as_str).collect(),
            Row::Json(_) => Vec::new(),
        }
    }

    /// A cell, or the value of a key or dotted path as text; `None` where it is absent or null.
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        match self {
            Row::Cells(columns, cells) => {
                columns.position(name).and_then(|column| cells.get(column)).map(Cow::Borrowed)
            }
            Row::Json(object) => match lookup(object, name)? {
                Value::Null => None,
                Value::String(text) => Some(Cow::Borrowed(text)),
                other => Some(Cow::Owned(other.to_string())),
            },
        }
    }
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Their names, in order.
    pub names: Vec<String>,
}

impl Columns {
    /// Where a column is.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|column| column == name)
    }
}

/// The value of a key, or of a dotted path of keys and positions.
pub(crate) fn lookup<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    if let Some(found) = value.get(name) {
        return Some(found);
    }
    if !name.contains('.') {
        return None;
    }
    name.split('.').try_fold(value, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => value.get(key),
    })
}

/// Where a row stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as named on the command line; `-` is standard input.
    pub file: Arc<Path>,
    /// The line it starts on, from 1; in Parquet the row, from 1.
    pub line: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, line {}", self.file.display(), self.line)
    }
}

/// A row that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// Where it stands.
    pub place: Place,
    /// What was met and what would be right.
    pub reason: String,
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

/// The files behind a list of names: patterns (`dump/*.csv`) are expanded in order, `-` is standard input.
pub fn expand(names: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut paths = Vec::new();
    for name in names {
        let pattern = name.to_str().filter(|text| text.contains(['*', '?', '[']) && !name.exists());
        let Some(pattern) = pattern else {
            paths.push(name.clone());
            continue;
        };
        let found = glob::glob(pattern)
            .map_err(|error| Error::file(name, format!("is no pattern of file names: {}", error.msg)))?;
        let before = paths.len();
        paths.extend(found.filter_map(Result::ok).filter(|path| path.is_file()));
        if paths.len() == before {
            return Err(Error::file(name, "matches no file; check the folder and the pattern"));
        }
    }
    if paths.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Error::option("standard input (-) can be read only once"));
    }
    Ok(paths)
}

/// The records of several files, one after another.
pub struct Records {
    waiting: std::vec::IntoIter<PathBuf>,
    current: Option<Source>,
    bytes: Arc<AtomicU64>,
    total: Option<u64>,
}

enum Source {
    Csv(csv::Table),
    Jsonl(jsonl::Lines),
    Parquet(Box<parquet::Rows>),
}

impl Records {
    /// Of these files; see [`expand`].
    pub fn open(names: &[PathBuf]) -> Result<Self, Error> {
        let paths = expand(names)?;
        let sizes = paths.iter().map(|path| std::fs::metadata(path).map(|found| found.len()).ok());
        Ok(Records {
            total: sizes.sum(),
            waiting: paths.into_iter(),
            current: None,
            bytes: Arc::new(AtomicU64::new(0)),
        })
    }

    /// Of bytes in memory or from elsewhere, under a name.
    pub fn of(stream: Stream, name: &Path) -> Result<Self, Error> {
        let current = Some(understand(stream, Arc::from(name))?);
        Ok(Records { waiting: Vec::new().into_iter(), current, bytes: Arc::new(AtomicU64::new(0)), total: None })
    }

    /// The next record; one that cannot be read is [`Bad`] and the next may be fine, an error ends it all.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not tell the two kinds of trouble apart")]
    pub fn next(&mut self) -> Result<Option<Result<Record, Bad>>, Error> {
        loop {
            let found = match &mut self.current {
                None => None,
                Some(Source::Csv(table)) => table.next()?,
                Some(Source::Jsonl(lines)) => lines.next()?,
                Some(Source::Parquet(rows)) => rows.next()?,
            };
            if found.is_some() {
                return Ok(found);
            }
            match self.waiting.next() {
                None => return Ok(None),
                Some(path) => self.current = Some(open(&path, &self.bytes)?),
            }
        }
    }

    /// The file being read and its columns, if it is a table.
    pub fn table(&self) -> Option<(&Arc<Path>, &Arc<Columns>)> {
        match self.current.as_ref()? {
            Source::Csv(table) => Some(table.header()),
            Source::Parquet(rows) => rows.header(),
            Source::Jsonl(_) => None,
        }
    }

    /// Bytes read so far, as they lie on the disk.
    pub fn bytes(&self) -> Arc<AtomicU64> {
        self.bytes.clone()
    }

    /// Bytes there are, unless one of the files is a pipe.
    pub fn total(&self) -> Option<u64> {
        self.total
    }
}

/// Bytes as text-like readers take them.
pub type Stream = Box<dyn Read + Send>;

struct Counted<R> {
    from: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(into)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Looks at the first bytes without losing them.
fn peek(mut from: Stream, path: &Path) -> Result<(Vec<u8>, Stream), Error> {
    let mut head = Vec::new();
    (&mut from).take(HEAD as u64).read_to_end(&mut head).map_err(Error::io(path, "cannot read"))?;
    Ok((head.clone(), Box::new(Cursor::new(head).chain(from))))
}

fn open(path: &Path, bytes: &Arc<AtomicU64>) -> Result<Source, Error> {
    let name: Arc<Path> = Arc::from(path);
    if path.is_dir() {
        let pattern = path.join("*.csv");
        return Err(Error::file(
            path,
            format!("is a folder; give files, or a pattern such as '{}'", pattern.display()),
        ));
    }
    let stream: Stream = if path.as_os_str() == "-" {
        Box::new(Counted { from: std::io::stdin(), bytes: bytes.clone() })
    } else {
        let mut file = File::open(path).map_err(Error::io(path, "cannot read"))?;
        let mut magic = [0; 4];
        // A file of fewer bytes is told apart below.
        if file.read_exact(&mut magic).is_ok() && &magic == b"PAR1" {
            bytes.fetch_add(file.metadata().map_or(0, |found| found.len()), Ordering::Relaxed);
            return Ok(Source::Parquet(Box::new(parquet::Rows::new(file, name)?)));
        }
        let file = File::open(path).map_err(Error::io(path, "cannot read"))?;
        Box::new(Counted { from: file, bytes: bytes.clone() })
    };
    understand(stream, name)
}

/// A text of either kind, plain or compressed.
fn understand(stream: Stream, name: Arc<Path>) -> Result<Source, Error> {
    let (head, stream) = unpacked(stream, &name)?;
    Ok(match looks_like(&head, &name)? {
        Looks::Json => Source::Jsonl(jsonl::Lines::new(stream, name)),
        Looks::Table { delimiter } => Source::Csv(csv::Table::new(stream, name, delimiter)?),
    })
}

/// A text file, decompressed and without a byte order mark; for the small tables beside the posts.
pub(crate) fn open_text(path: &Path) -> Result<(Vec<u8>, Stream), Error> {
    let stream: Stream = if path.as_os_str() == "-" {
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
fn unpacked(stream: Stream, path: &Path) -> Result<(Vec<u8>, Stream), Error> {
    let (mut head, mut stream) = peek(stream, path)?;
    if head.starts_with(&[0x1f, 0x8b]) {
        (head, stream) = peek(Box::new(flate2::read::MultiGzDecoder::new(stream)), path)?;
    } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let decoder = zstd::Decoder::new(stream).map_err(Error::io(path, "cannot read"))?;
        (head, stream) = peek(Box::new(decoder), path)?;
    }
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if head.starts_with(MARK) {
        head.drain(..MARK.len());
        let mut mark = [0; MARK.len()];
        stream.read_exact(&mut mark).map_err(Error::io(path, "cannot read"))?;
    }
    Ok((head, stream))
}

#[derive(Debug, PartialEq)]
enum Looks {
    Json,
    Table { delimiter: u8 },
}

/// Tells objects from tables, and both from what is neither.
fn looks_like(head: &[u8], path: &Path) -> Result<Looks, Error> {
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// All records of one file with this content; the bad ones as they are shown, without the folder.
    pub(crate) fn read(name: &str, content: &[u8]) -> Result<Vec<Result<Record, String>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let shown = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
        let mut records = Records::open(&[path]).map_err(|error| shown(error.to_string()))?;
        let mut all = Vec::new();
        while let Some(record) = records.next().map_err(|error| shown(error.to_string()))? {
            all.push(record.map_err(|bad| shown(bad.to_string())));
        }
        Ok(all)
    }

    fn cells(record: &Result<Record, String>) -> Vec<String> {
        match &record.as_ref().unwrap().row {
            Row::Cells(_, cells) => cells.iter().map(str::to_owned).collect(),
            Row::Json(value) => vec![value.to_string()],
        }
    }

    #[test]
    fn compressions_are_told_by_content() {
        let plain = b"\xef\xbb\xbfuser;text\r\na;\"x\r\ny\"\r\nb;z\r\n";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, plain).unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = zstd::encode_all(&plain[..], 3).unwrap();
        for content in [&plain[..], &gzip, &zstd] {
            let records = read("posts.odd", content).unwrap();
            assert_eq!(records.iter().map(cells).collect::<Vec<_>>(), [["a", "x\r\ny"], ["b", "z"]]);
            let lines: Vec<u64> = records.iter().map(|record| record.as_ref().unwrap().place.line).collect();
            assert_eq!(lines, [2, 4]);
        }
        let mut cut = gzip.clone();
        cut.truncate(gzip.len() - 6);
        assert!(read("posts.csv.gz", &cut).unwrap_err().starts_with("posts.csv.gz"));
    }

    #[test]
    fn what_is_no_table_is_said_to_be_none() {
        let said = |content: &[u8]| read("x", content).unwrap_err();
        assert!(said(b"").contains("x: is empty"));
        assert!(said(b"\xff\xfeu\0").contains("UTF-16"));
        assert!(said(b"PK\x03\x04rest").contains("Excel"));
        assert!(said(b"\x89PNG\r\n\x1a\n\0\0").contains("not text"));
        assert!(said(b"\xe9t\xe9;b\n").contains("not UTF-8"));
        assert!(said(b"PAR1").contains("whole Parquet"));
    }

    #[test]
    fn patterns_are_expanded_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.csv", "c.txt"] {
            std::fs::write(folder.path().join(name), "user,time,text\n").unwrap();
        }
        let found = expand(&[folder.path().join("*.csv")]).unwrap();
        assert_eq!(found, [folder.path().join("a.csv"), folder.path().join("b.csv")]);
        assert!(expand(&[folder.path().join("*.gz")]).unwrap_err().to_string().contains("matches no file"));
        assert!(expand(&["-".into(), "-".into()]).is_err());
    }
}
