//! Tar archives: bytes in, the bytes of one file out. Long names of GNU and POSIX are known; links and devices are none.

use std::io::{Error, ErrorKind, Read};

const BLOCK: usize = 512;

/// Longer names are none.
const LONGEST_NAME: u64 = 1 << 16;

/// Whether a tar archive begins so.
pub(super) fn begins(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar") && head.get(..BLOCK).is_some_and(sound)
}

/// Goes to the first file for whose name `wanted` says yes, and returns its length; the stream stands at its first byte.
pub(super) fn find(from: &mut dyn Read, mut wanted: impl FnMut(&str) -> bool) -> std::io::Result<Option<u64>> {
    let mut header = [0; BLOCK];
    // What entries before it say of the next.
    let (mut name, mut size): (Option<String>, Option<u64>) = (None, None);
    loop {
        if !whole(from, &mut header)? || header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if !sound(&header) {
            return Err(damaged());
        }
        let length = number(&header[124..136]).ok_or_else(damaged)?;
        match header[156] {
            b'L' => {
                let text = content(from, length)?;
                name = Some(text.trim_end_matches('\0').to_owned());
                continue;
            }
            b'x' => {
                let records = content(from, length)?;
                let value = |key: &str| records.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix(key));
                name = value("path=").map(str::to_owned).or(name);
                size = value("size=").and_then(|text| text.parse().ok()).or(size);
                continue;
            }
            _ => {}
        }
        let length = size.take().unwrap_or(length);
        let name = name.take().unwrap_or_else(|| short_name(&header));
        if matches!(header[156], b'0' | 0) && wanted(&name) {
            return Ok(Some(length));
        }
        skip(from, padded(length).ok_or_else(damaged)?)?;
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::InvalidData, "is not a whole tar archive; download or copy it again")
}

/// Whether the checksum of a header is right.
fn sound(header: &[u8]) -> bool {
    let sum = |range: std::ops::Range<usize>| header[range].iter().map(|byte| u64::from(*byte)).sum::<u64>();
    // The checksum itself counts as spaces.
    number(&header[148..156]) == Some(sum(0..148) + 8 * u64::from(b' ') + sum(156..BLOCK))
}

/// A number in octal digits, or, where the first bit is set, in bytes.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let bytes = field[1..]
            .iter()
            .try_fold(u64::from(field[0] & 0x7f), |value, byte| value.checked_mul(256)?.checked_add(u64::from(*byte)));
        return bytes;
    }
    let text = std::str::from_utf8(field).ok()?.trim_matches(|character: char| character == '\0' || character == ' ');
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

fn short_name(header: &[u8]) -> String {
    let text = |field: &[u8]| {
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).into_owned()
    };
    match text(&header[345..500]) {
        prefix if prefix.is_empty() || header[263] != b'0' => text(&header[..100]),
        prefix => format!("{prefix}/{}", text(&header[..100])),
    }
}

/// A length up to the next block.
fn padded(length: u64) -> Option<u64> {
    length.checked_next_multiple_of(BLOCK as u64)
}

/// A short text, and what fills its last block.
fn content(from: &mut dyn Read, length: u64) -> std::io::Result<String> {
    if length > LONGEST_NAME {
        return Err(damaged());
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    skip(from, padded(length).ok_or_else(damaged)? - length)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn skip(from: &mut dyn Read, length: u64) -> std::io::Result<()> {
    let skipped = std::io::copy(&mut from.take(length), &mut std::io::sink())?;
    if skipped == length { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Fills a block; says no at the end.
fn whole(from: &mut dyn Read, block: &mut [u8; BLOCK]) -> std::io::Result<bool> {
    let mut filled = 0;
    while filled < BLOCK {
        match from.read(&mut block[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut header = [0; BLOCK];
        let name = &name.as_bytes()[..name.len().min(100)];
        header[..name.len()].copy_from_slice(name);
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        let mut all = header.to_vec();
        all.extend_from_slice(content);
        all.resize(all.len().next_multiple_of(BLOCK), 0);
        all
    }

    /// An archive of these files; those whose names end in a slash are folders.
    pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let kind = |name: &str| if name.ends_with('/') { b'5' } else { b'0' };
        let mut all: Vec<u8> = files.iter().flat_map(|(name, content)| entry(name, kind(name), content)).collect();
        all.resize(all.len() + 2 * BLOCK, 0);
        all
    }

    #[test]
    fn files_are_found_by_name() {
        let long = format!("{}/posts.csv", "folder/".repeat(30));
        let all = [
            archive(&[("folder/", b""), ("first.csv", b"one")])[..3 * BLOCK].to_vec(),
            entry("././@LongLink", b'L', format!("{long}\0").as_bytes()),
            entry("cut", b'0', b"two"),
            entry("pax", b'x', b"26 path=third/of all.json\n"),
            entry("cut", b'0', &[b'x'; 600]),
            vec![0; 2 * BLOCK],
        ]
        .concat();
        assert!(begins(&all));
        let mut names = Vec::new();
        let none = find(&mut &all[..], |name| {
            names.push(name.to_owned());
            false
        });
        assert_eq!((none.unwrap(), names), (None, vec!["first.csv".to_owned(), long, "third/of all.json".to_owned()]));
        let mut stream = &all[..];
        assert_eq!(find(&mut stream, |name| name.starts_with("folder")).unwrap(), Some(3));
        assert_eq!(&stream[..3], b"two");
        let mut damaged = all.clone();
        damaged[3 * BLOCK + 3] ^= 1;
        assert!(find(&mut &damaged[..], |_| false).unwrap_err().to_string().contains("not a whole tar"));
        assert!(find(&mut &all[..all.len() - 4 * BLOCK + 100], |_| false).is_err());
    }
}
