//! JSON lines: bytes in, one object per line out. An empty line is nothing; a line that is not JSON is bad. A file whose
//! first line only begins an object or a list, and that goes on so, is JSON over many lines and refused as a whole.

use super::{BadRow, ByteStream, LONGEST_RECORD, RawRecord, RecordPlace, RecordValue};
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
    /// The character with which the first line begins something that it does not end.
    begun: Option<char>,
    /// Lines that are objects or lists, and lines that are not JSON.
    whole: u64,
    broken: u64,
}

/// This many lines without one object say enough.
const ENOUGH: u64 = 20;

impl JsonLines {
    /// Of a stream.
    pub fn new(from: ByteStream, file: Arc<Path>) -> Self {
        let reader = BufReader::with_capacity(1 << 18, from);
        JsonLines { reader, file, line: 0, buffer: Vec::new(), begun: None, whole: 0, broken: 0 }
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
                return if self.broken > self.whole { self.spread().map(|()| None) } else { Ok(None) };
            }
            if count == LONGEST_RECORD && self.buffer.last() != Some(&b'\n') {
                let problem = format!(
                    "the line does not end within {} MB; wanted one post per line (jq -c '.[]' makes such lines of a list)",
                    count >> 20
                );
                return Err(Error::Line { path: self.file.to_path_buf(), line: self.line, problem });
            }
            if self.buffer.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let place = RecordPlace { file: self.file.clone(), line: self.line };
            if too_many_values(&self.buffer) {
                let reason = "holds more objects and values than a post has; wanted one post per line".to_owned();
                self.broken += 1;
                return Ok(Some(Err(BadRow { place, reason })));
            }
            let value = match serde_json::from_slice::<Value>(&self.buffer) {
                Ok(value) => value,
                Err(error) => {
                    if error.is_eof() && self.whole + self.broken == 0 {
                        self.begun = Some(if self.buffer.trim_ascii_start().starts_with(b"[") { '[' } else { '{' });
                    }
                    self.broken += 1;
                    if self.whole == 0 && self.broken >= ENOUGH {
                        self.spread()?;
                    }
                    return Ok(Some(Err(BadRow { place, reason: problem(&error) })));
                }
            };
            self.whole += u64::from(value.is_object() || value.is_array());
            return Ok(Some(Ok(RawRecord { place, row: RecordValue::Json(value) })));
        }
    }

    /// Refuses a file that is JSON, but not a post per line.
    fn spread(&self) -> Result<(), Error> {
        let Some(begun) = self.begun else { return Ok(()) };
        let cure = if begun == '[' { "jq -c '.[]'" } else { "jq -c ." };
        let problem = format!("is JSON spread over many lines; wanted one post per line: {cure} FILE > posts.jsonl");
        Err(Error::file(&self.file, problem))
    }
}

/// Whether the values of a line would take far more memory than its text: an object of few bytes takes hundreds.
fn too_many_values(line: &[u8]) -> bool {
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
        return "is the beginning of an object only; wanted a whole one on each line (jq -c . makes such lines)".into();
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
    fn json_over_many_lines_is_refused_with_the_cure() {
        let post = "  {\n    \"user\": \"ann\",\n    \"time\": 1,\n    \"text\": \"x\"\n  }";
        for posts in [1, 2, 50] {
            let list = format!("[\n{}\n]\n", vec![post; posts].join(",\n"));
            let told = read("p.json", list.as_bytes()).unwrap_err();
            assert_eq!(
                told,
                "p.json: is JSON spread over many lines; wanted one post per line: jq -c '.[]' FILE > posts.jsonl"
            );
        }
        let inline = "[\n{\"user\": 1},\n{\"user\": 2}\n]\n";
        assert!(read("p.json", inline.as_bytes()).unwrap_err().contains("jq -c '.[]'"));
        assert!(read("p.json", post.as_bytes()).unwrap_err().contains("jq -c . FILE"));
        // A line that is cut off does not make a file of lines something else.
        let cut = [&b"{\"a\":\n"[..], &b"{\"a\": 1}\n".repeat(2)].concat();
        assert_eq!(read("p.jsonl", &cut).unwrap().len(), 3);
    }

    #[test]
    fn deep_nesting_is_bad_and_no_overflow() {
        let deep = [b"{}\n".to_vec(), b"[".repeat(100_000)].concat();
        let all = read("p.jsonl", &deep).unwrap();
        assert!(all[1].as_ref().unwrap_err().contains("recursion limit"), "{all:?}");
    }
}
