//! Readers: paths in, records out, one at a time.
//!
//! A [`RawRecord`] is one row as it stands in the file: the cells of a table ([`csv`], [`arrow`]), the object of a line ([`jsonl`])
//! or of a list ([`document`]). What it means is decided by [`crate::reader`]. The format and the compression are told from the first
//! bytes, so that pipes and odd names work; memory is bounded by [`LONGEST_RECORD`], whatever the file holds.

pub mod arrow;
pub mod csv;
mod detect;
pub mod document;
mod encoding;
pub(crate) mod html;
pub mod jsonl;
pub(crate) mod preset;
mod record;
mod tar;
mod time;
mod unpack;

pub use detect::ByteStream;
pub(crate) use detect::open_text;
pub use encoding::Encoding;
pub(crate) use encoding::MetEncodings;
pub use preset::{OtherFormat, Preset};
pub(crate) use record::RowError;
pub(crate) use record::lookup;
pub use record::{BadRow, ColumnNames, RawRecord, RecordPlace, RecordValue, RowProblem};
pub use time::{DateOrder, parse_time};
pub(crate) use time::{MILLIONTHS, TimeFormat, is_time};

use crate::Error;
use arrow_array::RecordBatch;
use detect::{CountedReader, Looks, looks_like, text_of};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A row or line of more bytes than this is a quote that was never closed, or no text at all.
pub const LONGEST_RECORD: usize = 16 << 20;

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
            .map_err(|error| Error::file(name, format!("is not a pattern of file names: {}", error.msg)))?;
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
    current: Option<RecordSource>,
    bytes: Arc<AtomicU64>,
    total: Option<u64>,
    met: MetEncodings,
}

enum RecordSource {
    Csv(csv::CsvTable),
    Jsonl(jsonl::JsonLines),
    Document(document::JsonDocument),
    Arrow(Box<arrow::ArrowRows>),
}

impl Records {
    /// From these files; see [`expand`].
    pub fn open(names: &[PathBuf]) -> Result<Self, Error> {
        let paths = expand(names)?;
        let sizes = paths.iter().map(|path| std::fs::metadata(path).map(|found| found.len()).ok());
        Ok(Records {
            total: sizes.sum(),
            waiting: paths.into_iter(),
            current: None,
            bytes: Arc::new(AtomicU64::new(0)),
            met: MetEncodings::default(),
        })
    }

    /// From bytes in memory or from elsewhere, under a name.
    pub fn from_stream(stream: ByteStream, name: &Path) -> Result<Self, Error> {
        let met = MetEncodings::default();
        let current = Some(understand(stream, Arc::from(name), None, &met)?);
        Ok(Records { waiting: Vec::new().into_iter(), current, bytes: Arc::new(AtomicU64::new(0)), total: None, met })
    }

    /// From tables in memory, under a name.
    pub fn from_batches(batches: Vec<RecordBatch>, name: &Path) -> Self {
        let rows = arrow::ArrowRows::from_batches(batches, Arc::from(name));
        let current = Some(RecordSource::Arrow(Box::new(rows)));
        let met = MetEncodings::default();
        Records { waiting: Vec::new().into_iter(), current, bytes: Arc::new(AtomicU64::new(0)), total: None, met }
    }

    /// The next record; one that cannot be read is [`BadRow`] and the next may be fine, an error ends it all.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not tell a bad row from an error")]
    pub fn next(&mut self) -> Result<Option<Result<RawRecord, BadRow>>, Error> {
        loop {
            let found = match &mut self.current {
                None => None,
                Some(RecordSource::Csv(table)) => table.next()?,
                Some(RecordSource::Jsonl(lines)) => lines.next()?,
                Some(RecordSource::Document(document)) => document.next()?,
                Some(RecordSource::Arrow(rows)) => rows.next()?,
            };
            if found.is_some() {
                return Ok(found);
            }
            match self.waiting.next() {
                None => return Ok(None),
                Some(path) => self.current = Some(open(&path, &self.bytes, &self.met)?),
            }
        }
    }

    /// The file being read and its columns, if it is a table.
    pub fn table(&self) -> Option<(&Arc<Path>, &Arc<ColumnNames>)> {
        match self.current.as_ref()? {
            RecordSource::Csv(table) => Some(table.header()),
            RecordSource::Arrow(rows) => rows.header(),
            RecordSource::Jsonl(_) | RecordSource::Document(_) => None,
        }
    }

    /// Bytes read so far, as they lie on the disk.
    pub fn bytes(&self) -> Arc<AtomicU64> {
        self.bytes.clone()
    }

    /// The encodings that were met and decoded so far.
    pub(crate) fn met(&self) -> MetEncodings {
        self.met.clone()
    }

    /// Bytes there are, unless one of the files is a pipe.
    pub fn total(&self) -> Option<u64> {
        self.total
    }
}

fn open(path: &Path, bytes: &Arc<AtomicU64>, met: &MetEncodings) -> Result<RecordSource, Error> {
    let name: Arc<Path> = Arc::from(path);
    if path.is_dir() {
        let pattern = path.join("*.csv");
        return Err(Error::file(
            path,
            format!("is a folder; give files, or a pattern such as '{}'", pattern.display()),
        ));
    }
    let stream: ByteStream = if path.as_os_str() == "-" {
        Box::new(CountedReader { from: std::io::stdin(), bytes: bytes.clone() })
    } else {
        let mut file = File::open(path).map_err(Error::io(path, "cannot read"))?;
        let mut magic = [0; 4];
        // A file of fewer bytes is told apart below.
        if file.read_exact(&mut magic).is_ok() && &magic == b"PAR1" {
            bytes.fetch_add(file.metadata().map_or(0, |found| found.len()), Ordering::Relaxed);
            return Ok(RecordSource::Arrow(Box::new(arrow::ArrowRows::from_parquet(file, name)?)));
        }
        let file = File::open(path).map_err(Error::io(path, "cannot read"))?;
        Box::new(CountedReader { from: file, bytes: bytes.clone() })
    };
    understand(stream, name, Some(path).filter(|path| path.is_file()), met)
}

/// A text of any kind, plain, compressed or in an archive; `place` is where it can be opened again.
fn understand(
    stream: ByteStream,
    name: Arc<Path>,
    place: Option<&Path>,
    met: &MetEncodings,
) -> Result<RecordSource, Error> {
    let (head, mut stream) = text_of(stream, &name, place, met.clone())?;
    Ok(match looks_like(&head, &name)? {
        Looks::Lines => RecordSource::Jsonl(jsonl::JsonLines::new(stream, name)),
        Looks::Document { skip } => {
            stream.read_exact(&mut vec![0; skip]).map_err(Error::io(&name, "cannot read"))?;
            RecordSource::Document(document::JsonDocument::new(stream, name))
        }
        Looks::Table { delimiter } => RecordSource::Csv(csv::CsvTable::new(stream, name, delimiter)?),
    })
}

/// The name of the account of an archive of X, which stands in a file beside the posts.
pub(crate) fn archive_account(tweets: &Path) -> Option<String> {
    const ACCOUNT: &str = "account.js";
    const MOST: u64 = 1 << 20;
    let beside = || {
        let mut bytes = Vec::new();
        File::open(tweets.with_file_name(ACCOUNT)).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let zip = File::open(tweets).ok().and_then(|mut file| {
        let mut magic = [0; 4];
        file.read_exact(&mut magic).ok()?;
        (&magic == b"PK\x03\x04").then_some(())
    });
    let bytes = if zip.is_some() { unpack::small_file_of_zip(tweets, ACCOUNT) } else { beside() }?;
    let list: serde_json::Value = serde_json::from_slice(bytes.get(document::script(&bytes)?..)?).ok()?;
    preset::text_at(list.get(0)?, &["account", "username"]).filter(|name| !name.is_empty())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// All records of one file with this content; the bad ones as they are shown, without the folder.
    pub(crate) fn read(name: &str, content: &[u8]) -> Result<Vec<Result<RawRecord, String>>, String> {
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

    fn cells(record: &Result<RawRecord, String>) -> Vec<String> {
        match &record.as_ref().unwrap().row {
            RecordValue::Cells(_, cells) => cells.iter().map(str::to_owned).collect(),
            RecordValue::Json(value) => vec![value.to_string()],
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
        assert!(said(b"PK\x03\x04rest").contains("not a whole zip archive"));
        assert!(said(b"\x89PNG\r\n\x1a\n\0\0").contains("not text"));
        assert!(said(b"\xea\xe0\xf8\xe0;b\n").contains("not UTF-8"));
        assert!(said(b"PAR1").contains("cannot be read as Parquet"));
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
