//! NumPy's array format, versions 1 to 3: header and numbers, nothing pickled.

use crate::Error;
use std::io::{Read, Write};
use std::path::Path;

/// Longest header we accept; NumPy's own limit is of this order.
const LONGEST_HEADER: usize = 1 << 16;

/// Numbers converted at a time.
const AT_ONCE: usize = 1 << 13;

/// What the numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NpyType {
    Float64,
    Float32,
    Int64,
    Int32,
    /// UTF-32 text of this many characters.
    Text(usize),
}

/// Everything before the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub(crate) kind: NpyType,
    pub(crate) big_endian: bool,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<usize>,
}

impl NpyType {
    fn size(self) -> usize {
        match self {
            NpyType::Float64 | NpyType::Int64 => 8,
            NpyType::Float32 | NpyType::Int32 => 4,
            NpyType::Text(length) => length.saturating_mul(4),
        }
    }
}

impl NpyHeader {
    /// A little-endian array as we write them.
    pub(crate) fn new(kind: NpyType, fortran: bool, shape: &[usize]) -> Self {
        NpyHeader { kind, big_endian: false, fortran, shape: shape.to_vec() }
    }

    /// Bytes of numbers that must follow; `None` beyond what a machine can hold.
    pub(crate) fn bytes(&self) -> Option<usize> {
        self.shape.iter().try_fold(self.kind.size(), |bytes, &side| bytes.checked_mul(side))
    }

    /// Reads a header; `path` and `member` are for messages.
    pub(crate) fn read(from: &mut impl Read, path: &Path) -> Result<Self, Error> {
        let broken = |what: &str| Error::file(path, format!("{what}; write it again with numpy.save"));
        let mut start = [0; 8];
        from.read_exact(&mut start).map_err(|_| broken("is shorter than a .npy header"))?;
        if &start[..6] != b"\x93NUMPY" {
            return Err(broken("is not a .npy file (it does not begin with \\x93NUMPY)"));
        }
        let length = match start[6] {
            1 => {
                let mut length = [0; 2];
                from.read_exact(&mut length).map_err(|_| broken("ends inside its header"))?;
                usize::from(u16::from_le_bytes(length))
            }
            2 | 3 => {
                let mut length = [0; 4];
                from.read_exact(&mut length).map_err(|_| broken("ends inside its header"))?;
                u32::from_le_bytes(length) as usize
            }
            version => return Err(broken(&format!("has .npy version {version}, known are 1 to 3"))),
        };
        if length > LONGEST_HEADER {
            return Err(broken(&format!("has a header of {length} bytes")));
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text).map_err(|_| broken("ends inside its header"))?;
        let text = String::from_utf8_lossy(&text);
        NpyHeader::parse(&text).map_err(|problem| broken(&problem))
    }

    /// `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`
    fn parse(text: &str) -> Result<Self, String> {
        let value = |key: &str| -> Result<&str, String> {
            let at = text.find(&format!("'{key}'")).ok_or(format!("has a header without {key:?}"))?;
            let rest = &text[at + key.len() + 2..];
            Ok(rest.trim_start().trim_start_matches(':').trim_start())
        };
        let descr = value("descr")?;
        let descr = descr.strip_prefix('\'').and_then(|rest| rest.split('\'').next()).unwrap_or(descr);
        let wanted = || format!("holds {descr:?}; float64 or float32 is expected");
        let (order, kind) = descr.split_at_checked(1).ok_or_else(wanted)?;
        let kind = match kind {
            "f8" => NpyType::Float64,
            "f4" => NpyType::Float32,
            "i8" => NpyType::Int64,
            "i4" => NpyType::Int32,
            text if text.starts_with('U') => NpyType::Text(text[1..].parse().map_err(|_| wanted())?),
            _ => return Err(wanted()),
        };
        let big_endian = match order {
            "<" | "|" => false,
            ">" => true,
            _ => return Err(wanted()),
        };
        let fortran = value("fortran_order")?.starts_with("True");
        let shape = value("shape")?;
        let shape = shape.strip_prefix('(').and_then(|rest| rest.split(')').next());
        let shape = shape.ok_or("has a header without a shape")?;
        let sides = shape.split(',').map(str::trim).filter(|side| !side.is_empty());
        let shape = sides.map(|side| side.parse().map_err(|_| format!("has a side of {side:?}")));
        Ok(NpyHeader { kind, big_endian, fortran, shape: shape.collect::<Result<_, String>>()? })
    }

    /// Writes a header of version 1, padded so that the numbers are aligned.
    pub(crate) fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        let descr = match self.kind {
            NpyType::Float64 => "<f8".to_owned(),
            NpyType::Float32 => "<f4".to_owned(),
            NpyType::Int64 => "<i8".to_owned(),
            NpyType::Int32 => "<i4".to_owned(),
            NpyType::Text(length) => format!("<U{length}"),
        };
        let fortran = if self.fortran { "True" } else { "False" };
        let sides: String = self.shape.iter().map(|side| format!("{side}, ")).collect();
        let sides = if self.shape.len() == 1 { sides.trim_end() } else { sides.trim_end_matches(", ") };
        let mut text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({sides}), }}");
        let padding = 64 - (10 + text.len() + 1) % 64;
        text.extend(std::iter::repeat_n(' ', padding % 64));
        text.push('\n');
        to.write_all(b"\x93NUMPY\x01\x00")?;
        to.write_all(&(text.len() as u16).to_le_bytes())?;
        to.write_all(text.as_bytes())
    }

    /// Reads the next numbers as f64.
    pub(crate) fn floats(&self, from: &mut impl Read, out: &mut [f64]) -> std::io::Result<()> {
        let mut bytes = vec![0; out.len().min(AT_ONCE) * self.kind.size()];
        for out in out.chunks_mut(AT_ONCE) {
            let bytes = &mut bytes[..out.len() * self.kind.size()];
            from.read_exact(bytes)?;
            self.convert(bytes, out);
        }
        Ok(())
    }

    /// Reads so many numbers as f64. Memory grows as they come: a header may state any number. `each` is told how many bytes
    /// are read next.
    pub(crate) fn count_floats(
        &self,
        from: &mut impl Read,
        count: usize,
        mut each: impl FnMut(u64) -> Result<(), String>,
    ) -> Result<Vec<f64>, String> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (start, next) = (numbers.len(), (count - numbers.len()).min(AT_ONCE));
            each((next * self.kind.size()) as u64)?;
            numbers.resize(start + next, 0.0);
            self.floats(from, &mut numbers[start..]).map_err(|error| format!("is damaged: {error}"))?;
        }
        Ok(numbers)
    }

    fn convert(&self, bytes: &[u8], out: &mut [f64]) {
        macro_rules! convert {
            ($number:ty) => {
                for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(size_of::<$number>())) {
                    let bytes = bytes.try_into().expect("chunks have the number's size");
                    let number =
                        if self.big_endian { <$number>::from_be_bytes(bytes) } else { <$number>::from_le_bytes(bytes) };
                    *out = number as f64;
                }
            };
        }
        match self.kind {
            NpyType::Float64 => convert!(f64),
            NpyType::Float32 => convert!(f32),
            NpyType::Int64 => convert!(i64),
            NpyType::Int32 => convert!(i32),
            NpyType::Text(_) => out.fill(f64::NAN),
        }
    }
}

/// Writes numbers as little-endian f64.
pub(crate) fn write_floats(to: &mut impl Write, numbers: &[f64]) -> std::io::Result<()> {
    let mut bytes = vec![0; 8 * numbers.len().min(AT_ONCE)];
    for chunk in numbers.chunks(AT_ONCE) {
        let bytes = &mut bytes[..8 * chunk.len()];
        for (bytes, number) in bytes.chunks_exact_mut(8).zip(chunk) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        to.write_all(bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_a_round_trip() {
        for shape in [vec![], vec![3], vec![3, 4], vec![1, 2, 5]] {
            let header = NpyHeader::new(NpyType::Float64, shape.len() == 2, &shape);
            let mut bytes = Vec::new();
            header.write(&mut bytes).unwrap();
            assert_eq!(bytes.len() % 64, 0);
            assert_eq!(NpyHeader::read(&mut bytes.as_slice(), Path::new("x.npy")).unwrap(), header);
        }
    }

    #[test]
    fn foreign_headers_are_named() {
        let say = |text: &str| NpyHeader::parse(text).unwrap_err();
        assert!(say("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }").contains("\"|O\""));
        assert!(say("{'fortran_order': False, 'shape': (2,), }").contains("descr"));
        assert!(say("{'descr': '<f8', 'fortran_order': False, 'shape': (a,), }").contains("side"));
        let message = NpyHeader::read(&mut &b"hello, world"[..], Path::new("x.npy")).unwrap_err().to_string();
        assert!(message.contains("x.npy: is not a .npy file"));
    }
}
