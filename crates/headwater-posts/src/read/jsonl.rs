//! JSON lines: bytes in, one object per line out. An empty line is nothing; a line that is no JSON is bad.

use super::{Bad, LONGEST_RECORD, Place, Record, Row, Stream};
use crate::Error;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// Lines being read.
pub struct Lines {
    reader: BufReader<Stream>,
    file: Arc<Path>,
    line: u64,
    buffer: Vec<u8>,
}

impl Lines {
    /// Of a stream.
    pub fn new(from: Stream, file: Arc<Path>) -> Self {
        Lines { reader: BufReader::with_capacity(1 << 18, from), file, line: 0, buffer: Vec::new() }
    }

    /// The next object.
    #[expect(clippy::should_implement_trait, reason = "as Records::next")]
    pub fn next(&mut self) -> Result<Option<Result<Record, Bad>>, Error> {
        loop {
            self.buffer.clear();
            let mut limited = (&mut self.reader).take(LONGEST_RECORD as u64);
            let count = limited.read_until(b'\n', &mut self.buffer).map_err(Error::io(&self.file, "cannot read"))?;
            self.line += 1;
            if count == 0 {
                return Ok(None);
            }
            if count == LONGEST_RECORD && self.buffer.last() != Some(&b'\n') {
                let problem = format!("the line does not end within {} MB; wanted one post per line", count >> 20);
                return Err(Error::Line { path: self.file.to_path_buf(), line: self.line, problem });
            }
            if self.buffer.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let place = Place { file: self.file.clone(), line: self.line };
            return Ok(Some(match serde_json::from_slice(&self.buffer) {
                Ok(value) => Ok(Record { place, row: Row::Json(value) }),
                Err(error) => Err(Bad { place, reason: problem(&error) }),
            }));
        }
    }
}

fn problem(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "is the beginning of an object only; wanted a whole one on each line (jq -c . makes such lines)".into();
    }
    let text = error.to_string();
    let what = text.split(" at line").next().unwrap_or_default();
    format!("is no JSON: {what} at column {}", error.column())
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
        assert!(told[1].starts_with("p.jsonl, line 5: is no JSON: trailing characters at column 10"), "{told:?}");
    }

    #[test]
    fn deep_nesting_is_bad_and_no_overflow() {
        let deep = [b"{}\n".to_vec(), b"[".repeat(100_000)].concat();
        let all = read("p.jsonl", &deep).unwrap();
        assert!(all[1].as_ref().unwrap_err().contains("recursion limit"), "{all:?}");
    }
}
