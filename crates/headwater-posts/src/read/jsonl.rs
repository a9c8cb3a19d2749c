//! JSON lines: bytes in, one object per line out. An empty line is nothing; a line that is not JSON is bad. JSON that is spread
//! over many lines is read by [`super::document`].

use super::record::RowError;
use super::{BadRow, ByteStream, LONGEST_RECORD, RawRecord, RecordPlace, RecordValue, RowProblem};
use crate::Error;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// Lines being read.
pub struct JsonLines {
    reader: BufReader<ByteStream>,
    file: Arc<Path>,
    line: u64,
    buffer: Vec<u8>,
}

impl JsonLines {
    /// Of a stream.
    pub fn new(from: ByteStream, file: Arc<Path>) -> Self {
        let reader = BufReader::with_capacity(1 << 18, from);
        JsonLines { reader, file, line: 0, buffer: Vec::new() }
    }

    /// The next object.
    #[expect(clippy::should_implement_trait, reason = "as Records::next")]
    pub fn next(&mut self) -> Result<Option<Result<RawRecord, BadRow>>, Error> {
        loop {
            self.buffer.clear();
            let mut limited = (&mut self.reader).take(LONGEST_RECORD as u64);
            let count = limited.read_until(b'\n', &mut self.buffer).map_err(Error::io(&self.file, "cannot read"))?;
            self.line += 1;
            if count == 0 {
                return Ok(None);
            }
            if count == LONGEST_RECORD && self.buffer.last() != Some(&b'\n') {
                let problem = format!("the line does not end within {} MB; expected one post per line", count >> 20);
                return Err(Error::Line { path: self.file.to_path_buf(), line: self.line, problem });
            }
            if self.buffer.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let place = RecordPlace { file: self.file.clone(), line: self.line };
            if too_many_values(&self.buffer) {
                let reason = "holds more objects and values than a post has; expected one post per line".to_owned();
                return Ok(Some(Err(BadRow::new(place, reason))));
            }
            let found = match serde_json::from_slice::<Value>(&self.buffer) {
                Ok(value) => Ok(RawRecord { place, row: RecordValue::Json(value) }),
                Err(_) if std::str::from_utf8(&self.buffer).is_err() => {
                    Err(BadRow::with(place, RowError::new(RowProblem::Encoding, "is not UTF-8 text")))
                }
                Err(error) => Err(BadRow::new(place, problem(&error))),
            };
            return Ok(Some(found));
        }
    }
}

/// Whether the values of a line would take far more memory than its text: an object of few bytes takes hundreds.
pub(super) fn too_many_values(line: &[u8]) -> bool {
    const MOST_BYTES: usize = 128 << 20;
    const OBJECT: usize = 700;
    const VALUE: usize = 64;
    // Short lines cannot.
    if line.len() < MOST_BYTES / OBJECT {
        return false;
    }
    let bytes = line.iter().map(|byte| match byte {
        b'{' => OBJECT,
        b'[' => 4 * VALUE,
        b',' => VALUE,
        _ => 0,
    });
    bytes.sum::<usize>() > MOST_BYTES
}

fn problem(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "is the beginning of an object only; expected a whole one on each line (jq -c . makes such lines)"
            .into();
    }
    let text = error.to_string();
    let what = text.split(" at line").next().unwrap_or_default();
    format!("is not JSON: {what} at column {}", error.column())
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    #[test]
    fn lines_are_objects_or_bad() {
        let all = read("p.jsonl", b"\xef\xbb\xbf{\"a\": 1}\r\n\n{\"a\":\n [1]\n{\"a\": 2} x\n{\"a\": 3}").unwrap();
        let lines: Vec<u64> = all.iter().flatten().map(|record| record.place.line).collect();
        assert_eq!(lines, [1, 4, 6]);
        let told: Vec<&String> = all.iter().filter_map(|row| row.as_ref().err()).collect();
        assert!(told[0].starts_with("p.jsonl, line 3: is the beginning"), "{told:?}");
        assert!(told[1].starts_with("p.jsonl, line 5: is not JSON: trailing characters at column 10"), "{told:?}");
    }

    #[test]
    fn a_line_that_is_cut_off_does_not_make_a_file_of_lines_something_else() {
        let cut = [&b"{\"a\":\n"[..], &b"{\"a\": 1}\n".repeat(2)].concat();
        assert_eq!(read("p.jsonl", &cut).unwrap().len(), 3);
        let bad = read("p.jsonl", b"{\"a\": 1}\n{\"a\": \"\xc3\x28 \xc3\xbc\"}\n").unwrap();
        assert!(bad[1].as_ref().unwrap_err().ends_with("is not UTF-8 text"));
    }

    #[test]
    fn deep_nesting_is_bad_and_no_overflow() {
        let deep = [b"{}\n".to_vec(), b"[".repeat(100_000)].concat();
        let all = read("p.jsonl", &deep).unwrap();
        assert!(all[1].as_ref().unwrap_err().contains("recursion limit"), "{all:?}");
    }
}
