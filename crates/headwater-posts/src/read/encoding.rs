//! Encodings: bytes in, UTF-8 out, where it is certain what they are.
//!
//! UTF-16 is known by its mark, or by the zeros between Latin letters. Windows-1252 (and Latin-1, which is the same where
//! text is concerned) has no mark. It is decided at the first byte that is not ASCII, by what follows: no character there is
//! UTF-8, every byte is one that Western European text has, and none stands where only another alphabet would put it. What
//! is neither stays as it is, and its rows are bad.

use super::ByteStream;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// An encoding that is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Encoding {
    /// Two bytes per character, as spreadsheets save "Unicode text".
    #[serde(rename = "UTF-16")]
    Utf16,
    /// One byte per character: Western European.
    #[serde(rename = "Windows-1252")]
    Windows1252,
}

impl Encoding {
    const ALL: [Encoding; 2] = [Encoding::Utf16, Encoding::Windows1252];

    fn bit(self) -> u8 {
        match self {
            Encoding::Utf16 => 1,
            Encoding::Windows1252 => 2,
        }
    }
}

impl std::fmt::Display for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Encoding::Utf16 => "UTF-16",
            Encoding::Windows1252 => "Windows-1252",
        })
    }
}

/// The encodings that were met, shared by whoever reads and whoever tells.
#[derive(Debug, Clone, Default)]
pub(crate) struct MetEncodings(Arc<AtomicU8>);

impl MetEncodings {
    fn add(&self, encoding: Encoding) {
        self.0.fetch_or(encoding.bit(), Ordering::Relaxed);
    }

    /// Those met so far.
    pub(crate) fn all(&self) -> impl Iterator<Item = Encoding> {
        let bits = self.0.load(Ordering::Relaxed);
        Encoding::ALL.into_iter().filter(move |encoding| bits & encoding.bit() != 0)
    }
}

/// Bytes looked at, and looked ahead.
const WINDOW: usize = 1 << 16;

/// What is done to the bytes that come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing but ASCII so far.
    Undecided,
    Utf8,
    Utf16 {
        big_endian: bool,
    },
    Windows1252,
}

/// A text as UTF-8, without a byte order mark.
pub(super) struct DecodedText {
    from: ByteStream,
    mode: Mode,
    met: MetEncodings,
    /// Bytes read and not decoded.
    raw: Vec<u8>,
    ended: bool,
    /// Bytes decoded and not given out yet, from `given` on.
    text: Vec<u8>,
    given: usize,
    /// The first half of a character of UTF-16.
    high: Option<u16>,
}

impl DecodedText {
    /// Of a stream that begins with `head`.
    pub(super) fn new(head: &[u8], mut from: ByteStream, met: MetEncodings) -> std::io::Result<Self> {
        let (mark, mode) = match head {
            [0xef, 0xbb, 0xbf, ..] => (3, Mode::Utf8),
            [0xff, 0xfe, ..] => (2, Mode::Utf16 { big_endian: false }),
            [0xfe, 0xff, ..] => (2, Mode::Utf16 { big_endian: true }),
            _ => (0, unmarked(head)),
        };
        from.read_exact(&mut [0; 3][..mark])?;
        if matches!(mode, Mode::Utf16 { .. }) {
            met.add(Encoding::Utf16);
        }
        Ok(DecodedText { from, mode, met, raw: Vec::new(), ended: false, text: Vec::new(), given: 0, high: None })
    }

    /// Reads some more bytes.
    fn fill(&mut self) -> std::io::Result<()> {
        let before = self.raw.len();
        self.raw.resize(before + WINDOW, 0);
        let count = loop {
            match self.from.read(&mut self.raw[before..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.raw.truncate(before + *count.as_ref().unwrap_or(&0));
        self.ended = count? == 0;
        Ok(())
    }

    /// Decodes what comes next.
    fn advance(&mut self) -> std::io::Result<()> {
        self.fill()?;
        if self.mode == Mode::Undecided
            && let Some(first) = self.raw.iter().position(|byte| !byte.is_ascii())
        {
            while !self.ended && self.raw.len() - first < WINDOW {
                self.fill()?;
            }
            self.mode = decided(&self.raw, first, self.ended);
            if self.mode == Mode::Windows1252 {
                self.met.add(Encoding::Windows1252);
            }
        }
        self.text.clear();
        self.given = 0;
        match self.mode {
            Mode::Undecided | Mode::Utf8 => std::mem::swap(&mut self.text, &mut self.raw),
            Mode::Windows1252 => {
                let characters: String = self.raw.iter().map(|byte| windows_1252(*byte)).collect();
                self.text.extend_from_slice(characters.as_bytes());
                self.raw.clear();
            }
            Mode::Utf16 { big_endian } => self.decode_utf16(big_endian),
        }
        Ok(())
    }

    fn decode_utf16(&mut self, big_endian: bool) {
        let pairs = self.raw.len() / 2;
        let unit = |pair: &[u8]| {
            let bytes = [pair[0], pair[1]];
            if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        let mut units: Vec<u16> = self.high.take().into_iter().chain(self.raw.chunks_exact(2).map(unit)).collect();
        // A character may go on in the next piece.
        if !self.ended && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            self.high = units.pop();
        }
        let text: String =
            char::decode_utf16(units).map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        self.text.extend_from_slice(text.as_bytes());
        self.raw.drain(..2 * pairs);
    }
}

impl Read for DecodedText {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        while self.given == self.text.len() {
            if self.ended {
                return Ok(0);
            }
            // The usual case, without a copy.
            if self.mode == Mode::Utf8 && self.raw.is_empty() {
                return self.from.read(into);
            }
            self.advance()?;
        }
        let count = (self.text.len() - self.given).min(into.len());
        into[..count].copy_from_slice(&self.text[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

/// UTF-16 without a mark: every other byte of Latin text is zero.
fn unmarked(head: &[u8]) -> Mode {
    const LOOKED_AT: usize = 1024;
    const FEWEST: usize = 16;
    let head = &head[..head.len().min(LOOKED_AT)];
    let zeros = |first: usize| head.iter().skip(first).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd, pairs) = (zeros(0), zeros(1), head.len() / 2);
    let most = |zeros: usize, others: usize| pairs >= FEWEST && 20 * others <= pairs && 10 * zeros >= 9 * pairs;
    if most(odd, even) {
        Mode::Utf16 { big_endian: false }
    } else if most(even, odd) {
        Mode::Utf16 { big_endian: true }
    } else {
        Mode::Undecided
    }
}

/// What a text is whose first byte beyond ASCII is at `first`; `whole` where nothing comes after these bytes.
fn decided(bytes: &[u8], first: usize, whole: bool) -> Mode {
    let utf8 = match std::str::from_utf8(&bytes[first..]) {
        Ok(_) => true,
        // The window may end within a character.
        Err(error) if error.error_len().is_none() && !whole => true,
        Err(_) => bytes[first..].utf8_chunks().any(|chunk| !chunk.valid().is_ascii()),
    };
    if !utf8 && western(bytes, first) { Mode::Windows1252 } else { Mode::Utf8 }
}

/// What a byte of Windows-1252 says of the encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ascii,
    /// A letter of Western European languages.
    Letter,
    /// A sign that may stand within a word: an apostrophe, a dash, a soft hyphen.
    Joiner,
    /// A sign that stands between words. In words it would be a letter of another alphabet.
    Sign,
    /// No character, or a letter that other encodings have elsewhere.
    Doubtful,
}

fn kind(byte: u8) -> Kind {
    match byte {
        0x00..=0x7f => Kind::Ascii,
        // No character; then Š, š, Ž, ž, Ð, Ý, Þ, ð, ý and þ, where Czech and Turkish have other letters, and ÿ, which damaged
        // files have.
        0x81 | 0x8d | 0x8f | 0x90 | 0x9d => Kind::Doubtful,
        0x8a | 0x8e | 0x9a | 0x9e | 0xd0 | 0xdd | 0xde | 0xf0 | 0xfd..=0xff => Kind::Doubtful,
        0x85 | 0x91 | 0x92 | 0x96 | 0x97 | 0xa0 | 0xad | 0xb4 | 0xb7 => Kind::Joiner,
        0x8c | 0x9c | 0x9f => Kind::Letter,
        0xd7 | 0xf7 => Kind::Sign,
        0xc0.. => Kind::Letter,
        _ => Kind::Sign,
    }
}

/// Whether bytes from `first` on are certainly Western European text.
fn western(bytes: &[u8], first: usize) -> bool {
    /// As many letters beyond ASCII in a row are another alphabet, as many characters two bytes each.
    const LETTERS: usize = 3;
    const CHARACTERS: usize = 4;
    let letter = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphabetic);
    let (mut letters, mut characters) = (0, 0);
    (first..bytes.len()).all(|at| {
        let kind = kind(bytes[at]);
        letters = if kind == Kind::Letter { letters + 1 } else { 0 };
        characters = if kind == Kind::Ascii { 0 } else { characters + 1 };
        let within = kind == Kind::Sign && letter(at.checked_sub(1)) && letter(Some(at + 1));
        kind != Kind::Doubtful && !within && letters < LETTERS && characters < CHARACTERS
    })
}

fn windows_1252(byte: u8) -> char {
    const SIGNS: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => SIGNS[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let most = into.len().min(3);
            self.0.read(&mut into[..most])
        }
    }

    fn decode(bytes: &[u8]) -> (Vec<u8>, Vec<Encoding>) {
        let met = MetEncodings::default();
        let from: ByteStream = Box::new(std::io::Cursor::new(bytes.to_vec()));
        let mut text = Vec::new();
        DecodedText::new(bytes, from, met.clone()).unwrap().read_to_end(&mut text).unwrap();
        let owned: &'static [u8] = bytes.to_vec().leak();
        let mut again = Vec::new();
        DecodedText::new(bytes, Box::new(Slow(owned)), met.clone()).unwrap().read_to_end(&mut again).unwrap();
        assert_eq!(text, again);
        (text, met.all().collect())
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn utf_16_with_and_without_a_mark() {
        let text = "user,time,text\nann,2024-05-01,grüß dich 😀 – gut\n";
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            for text in [format!("\u{feff}{text}"), text.to_owned()] {
                let (decoded, met) = decode(&utf16(&text, bytes));
                assert_eq!(String::from_utf8(decoded).unwrap(), text.trim_start_matches('\u{feff}'));
                assert_eq!(met, [Encoding::Utf16]);
            }
        }
        // Half a character is one that nobody can read.
        let cut = [&b"\xff\xfe"[..], &[0x41, 0, 0x3d, 0xd8]].concat();
        assert_eq!(decode(&cut).0, "A\u{fffd}".as_bytes());
    }

    #[test]
    fn western_text_is_decoded_where_it_is_certain() {
        let (text, met) = decode(b"user,text\nann,gr\xfc\xdfe \x84sch\xf6n\x93 \x96 don\x92t, 5\xa0\x80\n");
        assert_eq!(String::from_utf8(text).unwrap(), "user,text\nann,grüße „schön“ – don’t, 5\u{a0}€\n");
        assert_eq!(met, [Encoding::Windows1252]);
        // Far from the beginning.
        let far = [&b"x".repeat(3 * WINDOW)[..], b" caf\xe9"].concat();
        assert!(decode(&far).0.ends_with("café".as_bytes()));
        let left = |bytes: &[u8]| {
            let (text, met) = decode(bytes);
            assert_eq!((text.as_slice(), met), (bytes, Vec::new()));
        };
        left("grüße, каша".as_bytes());
        // One bad byte does not make UTF-8 something else.
        left(b"gr\xc3\xbc\xc3\x9fe and \xff");
        // Polish in Windows-1250, Russian in Windows-1251, Czech, Japanese.
        left(b"pi\xb3ka no\xbfna");
        left(b"\xea\xe0\xf8\xe0");
        left(b"\x9eivot");
        left(b"\x82\xa0\x82\xa2\x82\xa4");
        assert_eq!(decode(b"\xef\xbb\xbfcaf\xc3\xa9").0, "café".as_bytes());
    }
}
