//! One JSON document: bytes in, the objects of its lists out, one at a time, wherever lines end.
//!
//! A list at the top gives its elements. An object at the top gives the elements of the list that holds the posts in the
//! exports of platforms (`LISTS`), also within `chats.list` of Telegram; an object without such a list is a record itself.
//! Several documents may follow each other. Memory is bounded by the longest element.

use super::jsonl::too_many_values;
use super::{BadRow, ByteStream, LONGEST_RECORD, RawRecord, RecordPlace, RecordValue};
use crate::Error;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

/// Keys of the lists of posts: Telegram, ActivityPub, Bluesky's searches and feeds, Mastodon's searches.
pub(crate) const LISTS: [&str; 5] = ["messages", "orderedItems", "posts", "feed", "statuses"];

/// The chats of a Telegram account are within these, and their list under [`CHAT_LIST`].
const CHATS: [&str; 2] = ["chats", "left_chats"];
const CHAT_LIST: &str = "list";

/// The key under which a message of Telegram gets the chat that it is in: numbers of messages are unique there only.
pub(crate) const CHAT: &str = "_chat";

/// What the archives of X put before the list.
const SCRIPTS: [&[u8]; 2] = [b"window.YTD.", b"Grailbird.data."];

/// How many bytes of a script come before its list.
pub(super) fn script(head: &[u8]) -> Option<usize> {
    const LONGEST: usize = 200;
    let blank = head.len() - head.trim_ascii_start().len();
    SCRIPTS.iter().find(|start| head[blank..].starts_with(start))?;
    head.iter().take(blank + LONGEST).position(|byte| *byte == b'=').map(|place| place + 1)
}

/// Whether JSON that begins so is a document rather than an object per line.
pub(super) fn is_document(head: &[u8], whole: bool) -> bool {
    let text = head.trim_ascii_start();
    if holds_posts(text) {
        return true;
    }
    let list = text.starts_with(b"[");
    let Some(end) = text.iter().position(|byte| *byte == b'\n') else { return list && !whole };
    let unfinished = |line: &[u8]| serde_json::from_slice::<IgnoredAny>(line).err().is_some_and(|error| error.is_eof());
    if !unfinished(&text[..end]) {
        return false;
    }
    // A line that is cut off stands before whole ones.
    let second = text[end..].trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default();
    list || !(second.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(second).is_ok())
}

/// Whether an object that begins so has one of the lists among its first keys.
fn holds_posts(text: &[u8]) -> bool {
    let mut rest = match text.strip_prefix(b"{") {
        Some(rest) => rest.trim_ascii_start(),
        None => return false,
    };
    while let Some(end) = value_end(rest) {
        let Ok(key) = serde_json::from_slice::<String>(&rest[..end]) else { return false };
        let Some(value) = rest[end..].trim_ascii_start().strip_prefix(b":") else { return false };
        let value = value.trim_ascii_start();
        let known = |keys: &[&str], start: &[u8]| keys.contains(&key.as_str()) && value.starts_with(start);
        if known(&LISTS, b"[") || known(&CHATS, b"{") {
            return true;
        }
        let Some(end) = value_end(value) else { return false };
        let Some(next) = value[end..].trim_ascii_start().strip_prefix(b",") else { return false };
        rest = next.trim_ascii_start();
    }
    false
}

/// Where the value ends with which a text begins; `None` where the text ends before.
fn value_end(text: &[u8]) -> Option<usize> {
    let mut scan = Scan::default();
    text.iter().position(|byte| scan.ends(*byte)).map(|place| place + usize::from(!scan.scalar))
}

/// Follows one value byte by byte.
#[derive(Debug, Default)]
struct Scan {
    begun: bool,
    depth: u64,
    quoted: bool,
    escaped: bool,
    /// A number or a word, which ends before what follows it.
    scalar: bool,
}

impl Scan {
    /// Whether the value ends with this byte, or, if it is scalar, before it.
    fn ends(&mut self, byte: u8) -> bool {
        if self.quoted {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.quoted = false,
                _ => {}
            }
            return !self.quoted && self.depth == 0;
        }
        let first = !std::mem::replace(&mut self.begun, true);
        match byte {
            b'"' if !self.scalar => self.quoted = true,
            b'{' | b'[' if !self.scalar => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                return self.depth == 0;
            }
            b',' | b'}' | b']' | b':' if self.depth == 0 => {
                self.scalar = true;
                return true;
            }
            byte if byte.is_ascii_whitespace() && self.depth == 0 => return self.scalar,
            _ if first => self.scalar = true,
            _ => {}
        }
        false
    }
}

/// Where in the document we are.
#[derive(Debug)]
enum Level {
    /// In a list whose elements are records, with what its object says of them.
    Records { chat: Option<Value> },
    /// In the list of chats.
    Chats,
    /// In an object whose lists are looked for.
    Object {
        /// The members that are no such lists, as they stand in the file.
        members: Vec<u8>,
        /// Whether there was one.
        lists: bool,
        /// Whether it is the object that the list of chats is in.
        chats: bool,
        line: u64,
    },
}

/// A document being read.
pub struct JsonDocument {
    reader: BufReader<ByteStream>,
    file: Arc<Path>,
    line: u64,
    levels: Vec<Level>,
    buffer: Vec<u8>,
}

impl JsonDocument {
    /// Of a stream that stands at its beginning.
    pub fn new(from: ByteStream, file: Arc<Path>) -> Self {
        let reader = BufReader::with_capacity(1 << 18, from);
        JsonDocument { reader, file, line: 1, levels: Vec::new(), buffer: Vec::new() }
    }

    /// The next record.
    #[expect(clippy::should_implement_trait, reason = "as Records::next")]
    pub fn next(&mut self) -> Result<Option<Result<RawRecord, BadRow>>, Error> {
        loop {
            let Some(byte) = self.peek()? else {
                return if self.levels.is_empty() { Ok(None) } else { Err(self.cut_off()) };
            };
            match (self.levels.pop(), byte) {
                (None, b'[') => self.enter(Level::Records { chat: None }),
                (None, b'{') => self.enter(self.object(false)),
                // What scripts end in, and what stands between documents that were joined.
                (None, b';' | b',') => self.reader.consume(1),
                (None, _) => return Err(self.problem("is not JSON: expected an object or a list")),
                (Some(Level::Records { .. } | Level::Chats), b']') => self.reader.consume(1),
                (Some(level @ (Level::Records { .. } | Level::Chats)), b',') => {
                    self.reader.consume(1);
                    self.levels.push(level);
                }
                (Some(Level::Chats), b'{') => {
                    self.levels.push(Level::Chats);
                    self.enter(self.object(false));
                }
                (Some(Level::Records { chat }), _) => {
                    let line = self.line;
                    self.buffer.clear();
                    self.value()?;
                    let record = self.record(line, chat.as_ref());
                    self.levels.push(Level::Records { chat });
                    return Ok(Some(record));
                }
                (Some(Level::Object { members, lists, line, .. }), b'}') => {
                    self.reader.consume(1);
                    if !lists && self.levels.is_empty() {
                        self.buffer = [b"{", members.as_slice(), b"}"].concat();
                        return Ok(Some(self.record(line, None)));
                    }
                }
                (Some(level @ Level::Object { .. }), b',') => {
                    self.reader.consume(1);
                    self.levels.push(level);
                }
                (Some(Level::Object { members, lists, chats, line }), b'"') => {
                    self.member(members, lists, chats, line)?;
                }
                (Some(_), _) => return Err(self.problem("is not JSON: expected a name in quotes")),
            }
        }
    }

    fn object(&self, chats: bool) -> Level {
        Level::Object { members: Vec::new(), lists: false, chats, line: self.line }
    }

    /// Steps over the bracket and goes one level down.
    fn enter(&mut self, level: Level) {
        self.reader.consume(1);
        self.levels.push(level);
    }

    /// Reads the next member of an object: a list of posts is entered, anything else is kept.
    fn member(&mut self, mut members: Vec<u8>, mut lists: bool, chats: bool, line: u64) -> Result<(), Error> {
        self.buffer.clear();
        self.value()?;
        let key = serde_json::from_slice::<String>(&self.buffer).unwrap_or_default();
        if self.peek()? != Some(b':') {
            return Err(self.problem("is not JSON: expected a colon after a name"));
        }
        self.reader.consume(1);
        let first = self.peek()?;
        let inner = match first {
            Some(b'[') if LISTS.contains(&key.as_str()) => {
                // Only messages are numbered within their chat.
                let named = key == "messages" && !too_many_values(&members);
                let chat = named.then(|| serde_json::from_slice(&[b"{", &members[..], b"}"].concat()));
                Some(Level::Records { chat: chat.and_then(Result::ok).map(|members| chat_of(&members)) })
            }
            Some(b'[') if chats && key == CHAT_LIST => Some(Level::Chats),
            Some(b'{') if CHATS.contains(&key.as_str()) => Some(self.object(true)),
            _ => None,
        };
        lists |= inner.is_some();
        if inner.is_none() {
            if !members.is_empty() {
                members.push(b',');
            }
            members.append(&mut self.buffer);
            members.push(b':');
            self.value()?;
            members.append(&mut self.buffer);
            if members.len() > LONGEST_RECORD {
                return Err(self.too_long());
            }
        }
        self.levels.push(Level::Object { members, lists, chats, line });
        if let Some(inner) = inner {
            self.enter(inner);
        }
        Ok(())
    }

    /// The next byte that is not blank, which stays.
    fn peek(&mut self) -> Result<Option<u8>, Error> {
        loop {
            let bytes = self.reader.fill_buf().map_err(Error::io(&self.file, "cannot read"))?;
            let Some(place) = bytes.iter().position(|byte| !byte.is_ascii_whitespace()) else {
                if bytes.is_empty() {
                    return Ok(None);
                }
                let length = bytes.len();
                self.line += newlines(bytes);
                self.reader.consume(length);
                continue;
            };
            let found = bytes[place];
            self.line += newlines(&bytes[..place]);
            self.reader.consume(place);
            return Ok(Some(found));
        }
    }

    /// Adds the next value to the buffer as it stands in the file.
    fn value(&mut self) -> Result<(), Error> {
        let mut scan = Scan::default();
        loop {
            let bytes = self.reader.fill_buf().map_err(Error::io(&self.file, "cannot read"))?;
            if bytes.is_empty() {
                return Err(self.cut_off());
            }
            let end = bytes.iter().position(|byte| scan.ends(*byte));
            let length = end.map_or(bytes.len(), |place| place + usize::from(!scan.scalar));
            self.buffer.extend_from_slice(&bytes[..length]);
            self.line += newlines(&bytes[..length]);
            self.reader.consume(length);
            if self.buffer.len() > LONGEST_RECORD {
                return Err(self.too_long());
            }
            if end.is_some() {
                return if self.buffer.is_empty() {
                    Err(self.problem("is not JSON: expected a value"))
                } else {
                    Ok(())
                };
            }
        }
    }

    /// What is in the buffer.
    fn record(&self, line: u64, chat: Option<&Value>) -> Result<RawRecord, BadRow> {
        let place = RecordPlace { file: self.file.clone(), line };
        if too_many_values(&self.buffer) {
            return Err(BadRow::new(place, "holds more objects and values than a post has"));
        }
        match serde_json::from_slice::<Value>(&self.buffer) {
            Ok(value) => Ok(RawRecord { place, row: RecordValue::Json(with_chat(value, chat)) }),
            Err(error) => {
                let text = error.to_string();
                Err(BadRow::new(place, format!("is not JSON: {}", text.split(" at line").next().unwrap_or_default())))
            }
        }
    }

    fn problem(&self, problem: &str) -> Error {
        Error::Line { path: self.file.to_path_buf(), line: self.line, problem: problem.to_owned() }
    }

    fn cut_off(&self) -> Error {
        self.problem("the file ends before its list does; download or copy it again")
    }

    fn too_long(&self) -> Error {
        self.problem(&format!("a value does not end within {} MB; expected posts", LONGEST_RECORD >> 20))
    }
}

/// What a chat says of itself, which every message of it gets: little, whatever else stands beside the messages.
pub(crate) fn chat_of(members: &Value) -> Value {
    const LONGEST: usize = 256;
    let short = |key: &&str| {
        let value = members.get(key)?;
        let fits = value.is_number() || value.as_str().is_some_and(|text| text.len() <= LONGEST);
        fits.then(|| ((*key).to_owned(), value.clone()))
    };
    Value::Object(["id", "name", "type"].iter().filter_map(short).collect())
}

/// A message with its chat.
pub(crate) fn with_chat(mut message: Value, chat: Option<&Value>) -> Value {
    if let (Value::Object(members), Some(chat)) = (&mut message, chat) {
        members.entry(CHAT).or_insert_with(|| chat.clone());
    }
    message
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;

    fn values(content: &str) -> Vec<(u64, String)> {
        let value = |record: RawRecord| match record.row {
            RecordValue::Json(value) => (record.place.line, value.to_string()),
            RecordValue::Cells(..) => unreachable!("JSON"),
        };
        read("p.json", content.as_bytes()).unwrap().into_iter().map(|record| value(record.unwrap())).collect()
    }

    #[test]
    fn lists_and_objects_over_many_lines() {
        let pretty = "[\n  {\n    \"a\": \"]}\\\"\",\n    \"b\": [1, {}]\n  },\n  {\n    \"a\": 2\n  }\n]\n";
        assert_eq!(values(pretty), [(2, "{\"a\":\"]}\\\"\",\"b\":[1,{}]}".to_owned()), (6, "{\"a\":2}".to_owned())]);
        let joined = "{\n  \"a\": 1,\n  \"b\": \"x\"\n}\n{\n  \"a\": null\n}\n";
        assert_eq!(values(joined), [(1, "{\"a\":1,\"b\":\"x\"}".to_owned()), (5, "{\"a\":null}".to_owned())]);
        let one_line = format!("[{}{{\"a\":1}}]", "{\"a\":1},".repeat(20_000));
        assert_eq!(values(&one_line).len(), 20_001);
        assert_eq!(values("window.YTD.tweets.part0 = [ {\"a\" : 1} ]"), [(1, "{\"a\":1}".to_owned())]);
    }

    #[test]
    fn lists_of_posts_within_objects() {
        let chat = "{\"name\": \"c\", \"id\": 7, \"messages\": [{\"id\": 1}, {\"id\": 2}]}";
        let wanted = "{\"_chat\":{\"id\":7,\"name\":\"c\"},\"id\":1}";
        assert_eq!(values(chat)[0].1, wanted);
        let account = format!(
            "{{\"about\": \"x\", \"chats\": {{\"about\": [], \"list\": [{chat}, {{\"id\": 8}}, {chat}]}}, \"z\": {{}}}}"
        );
        let found = values(&account);
        assert_eq!((found.len(), found[0].1.as_str()), (4, wanted));
        assert_eq!(values("{\"cursor\": \"2\", \"posts\": [{\"uri\": 1}]}"), [(1, "{\"uri\":1}".to_owned())]);
        assert!(values("{\"posts\": []}").is_empty());
    }

    #[test]
    fn what_is_broken_is_said_to_be() {
        let said = |content: &str| read("p.json", content.as_bytes()).unwrap_err();
        assert!(said("[\n{\"a\": 1},\n{\"a\"").contains("p.json, line 3: the file ends before its list does"));
        assert!(said("{\"posts\": [{}], 7}").contains("expected a name in quotes"));
        assert!(said(&format!("[\n\"{}\"]", "x".repeat(LONGEST_RECORD + 1))).contains("does not end within 16 MB"));
        // One bad element leaves the others.
        let all = read("p.json", b"[\n{\"a\": x},\n{\"a\": 1}\n]").unwrap();
        assert!(all[0].as_ref().unwrap_err().starts_with("p.json, line 2: is not JSON: expected value"));
        assert!(all[1].is_ok() && all.len() == 2);
        let deep = format!("[\n{}", "[".repeat(100_000));
        assert!(said(&deep).contains("ends before"));
    }
}
