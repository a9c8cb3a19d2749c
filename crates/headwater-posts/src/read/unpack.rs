//! Compressed files and archives: bytes in, the bytes of the file within out. What they are is told from the first bytes.
//!
//! | first bytes | what | limit when unpacked |
//! |---|---|---|
//! | gzip, zstd | a stream | 128 times the size, 128 MB at least |
//! | zstd with a window of more than 128 MB, xz | a stream whose decoder keeps what it has unpacked | 64 times, 128 MB at least |
//! | bzip2 | a stream that is slow to decode | 64 times, 64 MB at least |
//! | zip, tar | an archive with one file of posts | as its compression |
//!
//! Posts are read as a stream and nothing of them is kept but sums, so that the limits only bound the time that a small file
//! may take, and the memory of decoders with long windows.

use super::detect::{CountedReader, peek};
use super::{ByteStream, tar};
use crate::Error;
use headwater_files::LimitedExpansion;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use zip::CompressionMethod;

/// Unpacked bytes that are always allowed, and beyond that per stored byte.
type Limit = (u64, u64);
const STREAMED: Limit = (128 << 20, 128);
const LONG_WINDOW: Limit = (128 << 20, 64);
const SLOW: Limit = (64 << 20, 64);

/// Windows up to this are kept in memory for any file, as the zstd program does.
const USUAL_WINDOW_LOG: u32 = 27;

/// Reddit's dumps are made with the longest window that there is.
const LONGEST_WINDOW_LOG: u32 = 31;

/// An archive within a compressed file within an archive is nobody's posts.
const DEEPEST: usize = 3;

/// The compression of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd { window_log: u32 },
    Bzip2,
    Xz,
}

impl Compression {
    fn told_by(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, rest @ ..] => Some(Compression::Zstd { window_log: window_log(rest) }),
            // A frame to be skipped, as parallel compressors write one first.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd { window_log: USUAL_WINDOW_LOG }),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Compression::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            _ => None,
        }
    }

    fn decoder(self, from: ByteStream) -> std::io::Result<(ByteStream, Limit)> {
        Ok(match self {
            Compression::Gzip => (Box::new(flate2::read::MultiGzDecoder::new(from)), STREAMED),
            Compression::Zstd { window_log } => {
                let mut decoder = zstd::Decoder::new(from)?;
                // Later frames may not ask for more than the first: its window sets the limit.
                let most = window_log.max(USUAL_WINDOW_LOG);
                decoder.window_log_max(most)?;
                (Box::new(decoder), if most > USUAL_WINDOW_LOG { LONG_WINDOW } else { STREAMED })
            }
            Compression::Bzip2 => (Box::new(bzip2::read::MultiBzDecoder::new(from)), SLOW),
            Compression::Xz => (Box::new(lzma_rust2::XzReader::new(from, true)), LONG_WINDOW),
        })
    }
}

/// The window of a zstd frame whose header goes on so, as a power of two.
fn window_log(header: &[u8]) -> u32 {
    let Some(descriptor) = header.first() else { return USUAL_WINDOW_LOG };
    // A frame in one segment is its own window; its size stands in the header, after a dictionary's number.
    if descriptor & 0x20 != 0 {
        let start = 1 + [0, 1, 2, 4][usize::from(descriptor & 3)];
        let length = [1, 2, 4, 8][usize::from(descriptor >> 6)];
        let bytes = header.get(start..start + length).unwrap_or_default();
        let size = bytes.iter().rev().fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
        return (64 - size.leading_zeros()).min(LONGEST_WINDOW_LOG);
    }
    let window = header.get(1).copied().unwrap_or(0);
    let more = u32::from(window & 7 != 0);
    (10 + u32::from(window >> 3) + more).min(LONGEST_WINDOW_LOG)
}

/// Undoes compression and takes the file of posts out of an archive; returns the first bytes along with all of them. `place`
/// is where an archive can be read a second time: a pipe cannot.
pub(super) fn unpacked(stream: ByteStream, path: &Path, place: Option<&Path>) -> Result<(Vec<u8>, ByteStream), Error> {
    let (mut head, mut stream) = peek(stream, path)?;
    for _ in 0..DEEPEST {
        if let Some(compression) = Compression::told_by(&head) {
            (head, stream) = decompressed(compression, stream, path)?;
        } else if tar::begins(&head) {
            (head, stream) = from_tar(path, place)?;
        } else if head.starts_with(b"PK\x03\x04") {
            (head, stream) = from_zip(path, place)?;
        } else {
            break;
        }
    }
    let problem = match head.as_slice() {
        [b'P', b'K', 5, 6, ..] => "is a zip archive without files",
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => "is a 7z archive; unpack it, and give the file with posts",
        [b'R', b'a', b'r', b'!', ..] => "is a rar archive; unpack it, and give the file with posts",
        head if head.starts_with(b"PK\x03\x04") || tar::begins(head) || Compression::told_by(head).is_some() => {
            "is packed more than three times over; unpack it first"
        }
        _ => return Ok((head, stream)),
    };
    Err(Error::file(path, problem))
}

fn decompressed(compression: Compression, stream: ByteStream, path: &Path) -> Result<(Vec<u8>, ByteStream), Error> {
    let stored = Arc::new(AtomicU64::new(0));
    let counted = Box::new(CountedReader { from: stream, bytes: stored.clone() });
    let (decoder, (always, most)) = compression.decoder(counted).map_err(Error::io(path, "cannot read"))?;
    peek(Box::new(LimitedExpansion::new(decoder, stored).with_limit(always, most)), path)
}

/// Opens a file again, without what it is compressed with.
fn plain(path: &Path) -> Result<ByteStream, Error> {
    let file = File::open(path).map_err(Error::io(path, "cannot read"))?;
    let (head, stream) = peek(Box::new(file), path)?;
    match Compression::told_by(&head) {
        Some(compression) => decompressed(compression, stream, path).map(|(_, stream)| stream),
        None => Ok(stream),
    }
}

fn from_tar(path: &Path, place: Option<&Path>) -> Result<(Vec<u8>, ByteStream), Error> {
    let Some(place) = place else {
        return Err(Error::file(path, "is a tar archive in a pipe; save it to a file first, or unpack it"));
    };
    let broken = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::InvalidData => Error::file(path, error.to_string()),
        _ => Error::io(path, "cannot read")(error),
    };
    let mut choice = Choice::default();
    let mut files = plain(place)?;
    tar::find(&mut files, |name| {
        choice.see(name);
        false
    })
    .map_err(broken)?;
    drop(files);
    let wanted = choice.made().map_err(|problem| Error::file(path, problem))?;
    let mut stream = plain(place)?;
    let mut number = 0;
    let length = tar::find(&mut stream, |_| {
        number += 1;
        number == wanted + 1
    })
    .map_err(broken)?;
    let length = length.ok_or_else(|| Error::file(path, "changed while it was read"))?;
    peek(Box::new(Whole { from: stream, left: length }), path)
}

fn from_zip(path: &Path, place: Option<&Path>) -> Result<(Vec<u8>, ByteStream), Error> {
    let Some(place) = place else {
        return Err(Error::file(path, "is a zip archive in a pipe; save it to a file first, or unpack it"));
    };
    let mut choice = Choice::default();
    let mut archive = zip_archive(place).map_err(|error| Error::file(path, error))?;
    for name in archive.file_names() {
        choice.see(name);
    }
    if archive.index_for_name("xl/workbook.xml").is_some() {
        return Err(Error::file(path, "is an Excel workbook; export its sheet as CSV, or save it as CSV UTF-8"));
    }
    let wanted = choice.made().map_err(|problem| Error::file(path, problem))?;
    let name = archive.file_names().nth(wanted).map(str::to_owned).unwrap_or_default();
    let (stream, stored) = zip_member(place, &mut archive, &name).map_err(|problem| Error::file(path, problem))?;
    let (always, most) = STREAMED;
    peek(Box::new(LimitedExpansion::new(stream, stored).with_limit(always, most)), path)
}

type ZipFile = zip::ZipArchive<File>;

fn zip_archive(path: &Path) -> Result<ZipFile, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    zip::ZipArchive::new(file)
        .map_err(|error| format!("is not a whole zip archive ({error}); download or copy it again"))
}

/// The unpacked bytes of a file in an archive, and the number of packed ones read so far.
fn zip_member(path: &Path, archive: &mut ZipFile, name: &str) -> Result<(ByteStream, Arc<AtomicU64>), String> {
    let broken = |error: &dyn std::fmt::Display| format!("its file {name} cannot be read ({error}); unpack it first");
    let (start, packed, size, checksum, method) = {
        let member = archive.by_name(name).map_err(|error| broken(&error))?;
        let start = member.data_start().ok_or_else(|| broken(&"it has no beginning"))?;
        (start, member.compressed_size(), member.size(), member.crc32(), member.compression())
    };
    let mut file = File::open(path).map_err(|error| broken(&error))?;
    file.seek(SeekFrom::Start(start)).map_err(|error| broken(&error))?;
    let stored = Arc::new(AtomicU64::new(0));
    let packed = CountedReader { from: file.take(packed), bytes: stored.clone() };
    let unpacked: ByteStream = match method {
        CompressionMethod::Stored => Box::new(packed),
        CompressionMethod::Deflated => Box::new(flate2::read::DeflateDecoder::new(packed)),
        other => return Err(broken(&format!("method {other}"))),
    };
    let checked = Checked { from: flate2::CrcReader::new(Whole { from: unpacked, left: size }), checksum };
    Ok((Box::new(checked), stored))
}

/// A small file of a zip archive, by the end of its path.
pub(super) fn small_file_of_zip(path: &Path, ending: &str) -> Option<Vec<u8>> {
    const MOST: u64 = 1 << 20;
    let mut archive = zip_archive(path).ok()?;
    let name = archive.file_names().find(|name| name.rsplit('/').next() == Some(ending))?.to_owned();
    let (stream, _) = zip_member(path, &mut archive, &name).ok()?;
    let mut bytes = Vec::new();
    stream.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// So many bytes, and an error where there are fewer.
struct Whole<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let count = self.from.read(&mut into[..most])?;
        if count == 0 && most > 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        Ok(count)
    }
}

/// Bytes whose checksum is compared at the end.
struct Checked<R> {
    from: flate2::CrcReader<R>,
    checksum: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(into)?;
        if count == 0 && !into.is_empty() && self.from.crc().sum() != self.checksum {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "its checksum is wrong"));
        }
        Ok(count)
    }
}

/// Which file of an archive holds the posts.
#[derive(Debug, Default)]
struct Choice {
    seen: usize,
    /// Files, files with the ending of a table or of JSON, and files that platforms name so: how many, and where the first is.
    all: (usize, usize),
    tables: (usize, usize),
    known: (usize, usize),
    first: Vec<String>,
}

impl Choice {
    /// Names of the files with posts in the archives that platforms give their users.
    const KNOWN: [&'static str; 4] = ["outbox.json", "result.json", "tweets.js", "tweet.js"];
    const ENDINGS: [&'static str; 7] = ["csv", "tsv", "json", "jsonl", "ndjson", "js", "txt"];
    const PACKED: [&'static str; 4] = ["gz", "zst", "bz2", "xz"];
    /// Names shown.
    const SHOWN: usize = 3;

    fn see(&mut self, name: &str) {
        let number = self.seen;
        self.seen += 1;
        let file = name.rsplit('/').next().unwrap_or(name);
        // Folders, and what macOS and others put beside the files.
        if file.is_empty() || file.starts_with('.') || name.starts_with("__MACOSX/") {
            return;
        }
        let count = |(count, first): &mut (usize, usize)| {
            *first = if *count == 0 { number } else { *first };
            *count += 1;
        };
        count(&mut self.all);
        if self.first.len() < Self::SHOWN {
            self.first.push(name.to_owned());
        }
        let mut endings = file.rsplit('.').map(str::to_ascii_lowercase);
        let ending =
            endings.next().filter(|ending| !Self::PACKED.contains(&ending.as_str())).or_else(|| endings.next());
        if ending.is_some_and(|ending| Self::ENDINGS.contains(&ending.as_str())) {
            count(&mut self.tables);
        }
        if Self::KNOWN.contains(&file) {
            count(&mut self.known);
        }
    }

    fn made(&self) -> Result<usize, String> {
        match [self.known, self.all, self.tables].into_iter().find(|(count, _)| *count == 1) {
            Some((_, only)) => Ok(only),
            None if self.all.0 == 0 => Err("is an archive without files".to_owned()),
            None => {
                let more = if self.all.0 > self.first.len() { ", …" } else { "" };
                let names = self.first.join(", ");
                let count = self.all.0;
                Err(format!("is an archive of {count} files ({names}{more}); unpack it, and give those with posts"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use std::io::Write;

    const TABLE: &[u8] = b"user,time,text\nann,2024-05-01,x\n";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        to.write_all(bytes).unwrap();
        to.finish().unwrap()
    }

    fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut to = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in files {
            to.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            to.write_all(bytes).unwrap();
        }
        to.finish().unwrap().into_inner()
    }

    #[test]
    fn every_compression_is_read() {
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bzip2.write_all(TABLE).unwrap();
        let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(0)).unwrap();
        xz.write_all(TABLE).unwrap();
        let packed = [
            ("bz2", bzip2.finish().unwrap()),
            ("xz", xz.finish().unwrap()),
            ("zip", zipped(&[("posts.csv", TABLE)])),
            ("tar", tar::tests::archive(&[("posts.csv", TABLE)])),
            ("tar.gz", gzip(&tar::tests::archive(&[("a/", b""), ("a/posts.csv", TABLE)]))),
            ("zip of gzip", zipped(&[("posts.csv.gz", &gzip(TABLE))])),
        ];
        for (name, bytes) in packed {
            assert_eq!(read(name, &bytes).unwrap().len(), 1, "{name}");
            let cut = read(name, &bytes[..bytes.len() * 3 / 5]);
            assert!(cut.is_err() || cut.unwrap().is_empty(), "{name}");
        }
    }

    #[test]
    fn reddit_dumps_have_the_longest_window() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(LONGEST_WINDOW_LOG).unwrap();
        encoder.long_distance_matching(true).unwrap();
        encoder.write_all(TABLE).unwrap();
        // Written in pieces, so that the header does not say how long it is.
        encoder.flush().unwrap();
        let dump = encoder.finish().unwrap();
        assert_eq!(Compression::told_by(&dump), Some(Compression::Zstd { window_log: LONGEST_WINDOW_LOG }));
        assert_eq!(read("RC_2024-01.zst", &dump).unwrap().len(), 1);
        let usual = zstd::encode_all(TABLE, 3).unwrap();
        assert!(matches!(Compression::told_by(&usual), Some(Compression::Zstd { window_log: 0..=27 })));
    }

    #[test]
    fn the_file_with_posts_is_found_in_an_archive() {
        let chosen = |names: &[&str]| {
            let mut choice = Choice::default();
            names.iter().for_each(|name| choice.see(name));
            choice.made()
        };
        assert_eq!(chosen(&["a/", "a/b.csv", "__MACOSX/a/._b.csv", "a/.DS_Store"]), Ok(1));
        assert_eq!(chosen(&["actor.json", "avatar.png", "outbox.json", "likes.json"]), Ok(2));
        assert_eq!(chosen(&["photos/1.jpg", "posts.jsonl.zst", "readme.md"]), Ok(1));
        let told = chosen(&["a.csv", "b.csv", "c.csv", "d.csv"]).unwrap_err();
        assert_eq!(told, "is an archive of 4 files (a.csv, b.csv, c.csv, …); unpack it, and give those with posts");
        assert!(chosen(&["a/"]).unwrap_err().contains("without files"));
    }

    #[test]
    fn what_is_not_read_says_what_to_do() {
        let said = |content: &[u8]| read("x", content).unwrap_err();
        assert!(said(&zipped(&[("xl/workbook.xml", b"<x/>"), ("a.xml", b"")])).contains("export its sheet as CSV"));
        assert!(said(&zipped(&[("a.csv", TABLE), ("b.csv", TABLE)])).contains("archive of 2 files (a.csv, b.csv)"));
        assert!(said(b"7z\xbc\xaf\x27\x1c rest").contains("7z archive; unpack it"));
        assert!(said(&gzip(&gzip(&gzip(&gzip(TABLE))))).contains("packed more than three times"));
        let piped = super::super::Records::from_stream(
            Box::new(std::io::Cursor::new(zipped(&[("a.csv", TABLE)]))),
            Path::new("-"),
        );
        assert!(piped.err().unwrap().to_string().contains("in a pipe; save it to a file first"));
        let mut damaged = zipped(&[("a.csv", TABLE)]);
        let directory = damaged.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
        damaged[directory + 16] ^= 1;
        assert!(said(&damaged).contains("its checksum is wrong"));
    }
}
