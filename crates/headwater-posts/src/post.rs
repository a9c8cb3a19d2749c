//! Posts: records in, posts out, with a reason for each row that is none.
//!
//! [`Mapping`] says which column or key is which field; a preset knows the objects of a platform. [`Posts`] reads one post
//! after another, [`Posts::batches`] does so on a thread of its own, so that reading and scoring overlap.

use crate::Error;
use crate::given::{self, Given, Wanted};
use crate::read::preset::text;
use crate::read::{Bad, Columns, LONGEST_RECORD, Place, Preset, Record, Records, Row, WANTED_TIME, lookup, parse_time};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// One post.
#[derive(Debug, Clone, PartialEq)]
pub struct Post {
    /// Its number or address on the platform, by which copies are known.
    pub id: Option<String>,
    /// Who said it.
    pub user: String,
    /// When, in seconds since 1970.
    pub time: i64,
    /// What.
    pub text: String,
    /// The language it is marked with.
    pub lang: Option<String>,
    /// Whether it repeats somebody else's post.
    pub repost: bool,
    /// Whether it is a new wording of a post that was there before.
    pub update: bool,
    /// The user's own score, where that was asked for.
    pub given: Option<Given>,
    /// Where it stands.
    pub place: Place,
}

/// The fields of a post, still as text.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "as in Post")]
pub struct PostDraft {
    pub id: Option<String>,
    pub user: Option<String>,
    pub time: Option<String>,
    pub text: Option<String>,
    pub lang: Option<String>,
    pub repost: bool,
    pub update: bool,
    pub scores: Scores,
}

/// Score columns, still as text: `score`, or the three classes.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Scores {
    pub score: Option<String>,
    pub negative: Option<String>,
    pub neutral: Option<String>,
    pub positive: Option<String>,
}

/// The fields that `--map` can name, with the columns they are looked for in, the better first.
const FIELDS: [(&str, &[&str]); 10] = [
    ("user", &["user"]),
    ("time", &["time"]),
    ("text", &["text"]),
    ("id", &["id"]),
    ("lang", &["lang"]),
    ("repost", &["is_retweet", "repost_of", "repost"]),
    ("score", &["score"]),
    ("negative", &["negative"]),
    ("neutral", &["neutral"]),
    ("positive", &["positive"]),
];

/// Where the field that marks reposts is; unlike the others, all its names count.
const REPOST: usize = 5;

/// How many fields there are.
const COUNT: usize = FIELDS.len();

/// This many lines without a needed key, and none with it, are wrong names and not bad lines.
const STRANGERS: u64 = 20;

/// Which column or key is which field.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    /// Names per field, in the order of `FIELDS`.
    names: [Vec<String>; COUNT],
    /// Fields whose names were given, which therefore must exist.
    given: [bool; COUNT],
    preset: Option<Preset>,
    /// Which score columns are read.
    scores: Wanted,
    /// Whether a post needs a text.
    text: bool,
}

impl Default for Mapping {
    fn default() -> Self {
        Mapping {
            names: FIELDS.map(|(_, names)| names.iter().map(|name| (*name).to_owned()).collect()),
            given: [false; COUNT],
            preset: None,
            scores: Wanted::Nothing,
            text: true,
        }
    }
}

impl Mapping {
    /// With the names of a platform.
    pub fn preset(mut self, preset: Preset) -> Self {
        self.preset = Some(preset);
        for (field, names) in preset.columns() {
            if let Some(position) = FIELDS.iter().position(|(name, _)| name == field)
                && !self.given[position]
            {
                self.names[position] = names.iter().map(|name| (*name).to_owned()).collect();
            }
        }
        self
    }

    /// With names of one's own: `text=body,user=author.handle`.
    pub fn rename(mut self, pairs: &str) -> Result<Self, Error> {
        let known = || FIELDS.map(|(field, _)| field).join(", ");
        for pair in pairs.split(',').filter(|pair| !pair.trim().is_empty()) {
            let Some((field, name)) = pair.split_once('=').map(|(field, name)| (field.trim(), name.trim())) else {
                return Err(Error::option(format!("met {pair:?} in --map; wanted field=column, such as text=body")));
            };
            let Some(position) = FIELDS.iter().position(|(known, names)| *known == field || names.contains(&field))
            else {
                return Err(Error::option(format!(
                    "there is no field {field:?} for --map to name; there are {}",
                    known()
                )));
            };
            if name.is_empty() {
                return Err(Error::option(format!("met {pair:?} in --map; the column after = is missing")));
            }
            self.names[position] = vec![name.to_owned()];
            self.given[position] = true;
        }
        Ok(self)
    }

    /// Reads score columns; a post without them is bad.
    pub fn with_scores(mut self, wanted: Wanted) -> Self {
        self.scores = wanted;
        self
    }

    /// Does without the text, where nothing looks at it.
    pub fn without_text(mut self) -> Self {
        self.text = false;
        self
    }

    /// The platform, if one was named.
    pub fn platform(&self) -> Option<Preset> {
        self.preset
    }

    /// The names of the columns or keys of a field, the better first.
    pub fn names(&self, field: &str) -> &[String] {
        FIELDS.iter().position(|(name, _)| *name == field).map_or(&[], |position| &self.names[position])
    }

    /// Fields that a post cannot do without.
    fn needed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..COUNT).filter(|&field| match field {
            0 | 1 => true,
            2 => self.text || self.given[field],
            _ => self.given[field],
        })
    }
}

/// Where each field is in a table.
struct Layout {
    columns: Arc<Columns>,
    /// Columns of each field, the better first: where a cell is empty the next stands in.
    positions: [Vec<usize>; COUNT],
}

impl Layout {
    fn new(columns: &Arc<Columns>, mapping: &Mapping, file: &Path) -> Result<Self, Error> {
        let positions: [Vec<usize>; COUNT] = std::array::from_fn(|field| {
            mapping.names[field].iter().filter_map(|name| columns.position(name)).collect()
        });
        let missing: Vec<&str> =
            mapping.needed().filter(|&field| positions[field].is_empty()).map(|field| FIELDS[field].0).collect();
        if !missing.is_empty() {
            return Err(strange(mapping, file, &missing, "the columns", columns.names.iter()));
        }
        let absent = |fields: std::ops::Range<usize>| -> Vec<&'static str> {
            fields.filter(|&field| positions[field].is_empty()).map(|field| FIELDS[field].0).collect()
        };
        let (score, classes) = (absent(6..7), absent(7..COUNT));
        let missing = match mapping.scores {
            Wanted::Classes => classes,
            Wanted::Either if !classes.is_empty() => score,
            Wanted::Either | Wanted::Nothing => Vec::new(),
        };
        if !missing.is_empty() {
            return Err(strange(mapping, file, &missing, "the columns", columns.names.iter()));
        }
        Ok(Layout { columns: columns.clone(), positions })
    }

    fn draft(&self, cells: &csv::StringRecord) -> PostDraft {
        let cell = |field: usize| {
            let mut texts = self.positions[field].iter().filter_map(|&column| cells.get(column));
            texts.find(|text| !text.is_empty()).map(str::to_owned)
        };
        let repost = self.positions[REPOST].iter().any(|&column| cells.get(column).is_some_and(says_yes));
        PostDraft { repost, ..draft(cell) }
    }
}

/// Names beyond this say no more.
const SHOWN: usize = 40;

/// Wrong names: what was looked for, and what there is.
fn strange<'a>(
    mapping: &Mapping,
    file: &Path,
    missing: &[&'static str],
    what: &str,
    found: impl Iterator<Item = &'a String>,
) -> Error {
    let names: Vec<&str> = found.map(String::as_str).collect();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    let named = |field: &&'static str| match FIELDS.iter().position(|(name, _)| name == field) {
        Some(position) if mapping.given[position] => format!(" ({} was to be {field})", mapping.names[position][0]),
        _ => String::new(),
    };
    let given: String = missing.iter().map(named).collect();
    let found = format!("{what} {}{more}{given}", names[..names.len().min(SHOWN)].join(", "));
    let suggestion = missing.iter().map(|field| format!("{field}={}", guess(field, &names))).collect::<Vec<_>>();
    Error::Columns { path: file.to_path_buf(), missing: missing.to_vec(), found, suggestion: suggestion.join(",") }
}

/// The name that most likely stands for a field.
fn guess<'a>(field: &str, found: &[&'a str]) -> &'a str {
    let usual: &[&str] = match field {
        "user" => &["username", "author", "screen_name", "handle", "account", "user_name", "user_id", "name", "did"],
        "time" => &["created_at", "timestamp", "date", "datetime", "when", "published", "createdat", "day"],
        "text" => &["body", "content", "full_text", "message", "tweet", "post", "selftext", "title"],
        "score" => &["probability", "positive", "sentiment", "p"],
        _ => &[],
    };
    let wanted = || [field].into_iter().chain(usual.iter().copied());
    // Of equal names that which is not so deep: a post's time, and not its author's.
    let find = |fits: &dyn Fn(&str) -> bool| {
        let fitting = found.iter().filter(|name| fits(name));
        fitting.min_by_key(|name| name.matches('.').count()).copied()
    };
    let last = |usual: &str| find(&|name| name.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case(usual)));
    // Else something within an object of that name.
    let within = |usual: &str| find(&|name| name.split('.').any(|key| key.eq_ignore_ascii_case(usual)));
    wanted().find_map(last).or_else(|| wanted().find_map(within)).unwrap_or("…")
}

/// What `--map` can name in an object: its keys, and the paths into the objects below it.
fn leaves(object: &serde_json::Map<String, Value>) -> Vec<String> {
    /// Deeper paths are nothing to suggest.
    const DEEPEST: usize = 3;
    let mut found = Vec::new();
    let mut visit = vec![(String::new(), object, 0)];
    // Whole objects one after another, so that what is not deep stands first.
    while !visit.is_empty() && found.len() <= SHOWN {
        let mut below = Vec::new();
        for (path, object, depth) in visit {
            for (key, value) in object {
                let path = format!("{path}{key}");
                match value {
                    Value::Object(inner) if depth < DEEPEST && !inner.is_empty() => {
                        below.push((format!("{path}."), inner, depth + 1));
                    }
                    _ => found.push(path),
                }
            }
        }
        visit = below;
    }
    found
}

/// All fields but the mark of a repost.
fn draft(mut cell: impl FnMut(usize) -> Option<String>) -> PostDraft {
    PostDraft {
        user: cell(0),
        time: cell(1),
        text: cell(2),
        id: cell(3),
        lang: cell(4),
        repost: false,
        update: false,
        scores: Scores { score: cell(6), negative: cell(7), neutral: cell(8), positive: cell(9) },
    }
}

/// `is_retweet` holds 1 or true, `repost_of` the id of another post.
fn says_yes(text: &str) -> bool {
    !matches!(
        text.trim().to_ascii_lowercase().as_str(),
        "" | "0" | "0.0" | "false" | "f" | "no" | "n" | "null" | "none" | "nan" | "[]"
    )
}

impl PostDraft {
    fn finish(self, mapping: &Mapping, place: &Place) -> Result<Post, String> {
        let missing = |field: usize| {
            let name = if mapping.preset.is_some() { FIELDS[field].0 } else { &mapping.names[field][0] };
            format!("column {name}: is empty")
        };
        let user = self.user.map(|user| user.trim().to_owned()).filter(|user| !user.is_empty());
        let user = user.ok_or_else(|| format!("{}; a name is wanted", missing(0)))?;
        let time = self.time.ok_or_else(|| format!("{}; {WANTED_TIME}", missing(1)))?;
        let time = parse_time(&time).ok_or_else(|| {
            let shown: String = time.chars().take(60).collect();
            format!("column {}: met {shown:?}; {WANTED_TIME}", mapping.names[1][0])
        })?;
        let text = match self.text {
            Some(text) => text,
            None if !mapping.text => String::new(),
            None => return Err(format!("{}; a post without words has no opinion", missing(2))),
        };
        let given = match mapping.scores {
            Wanted::Nothing => None,
            wanted => Some(given::given(&self.scores, wanted)?),
        };
        let lang = self.lang.map(|lang| lang.trim().to_owned()).filter(|lang| !lang.is_empty());
        let PostDraft { id, repost, update, .. } = self;
        Ok(Post { id, user, time, text, lang, repost, update, given, place: place.clone() })
    }
}

/// Posts being read.
pub struct Posts {
    records: Records,
    mapping: Mapping,
    layout: Option<Layout>,
    /// Of a page: the rest.
    waiting: VecDeque<Result<Post, Bad>>,
    /// In the file at hand: lines with all needed keys, and lines without, the first of them with its keys.
    known: u64,
    strangers: u64,
    stranger: Option<Error>,
    file: Option<Arc<Path>>,
    passed: u64,
}

impl Posts {
    /// Of these files.
    pub fn open(names: &[PathBuf], mapping: Mapping) -> Result<Self, Error> {
        Ok(Posts::of(Records::open(names)?, mapping))
    }

    /// Of records.
    pub fn of(records: Records, mapping: Mapping) -> Self {
        Posts {
            records,
            mapping,
            layout: None,
            waiting: VecDeque::new(),
            known: 0,
            strangers: 0,
            stranger: None,
            file: None,
            passed: 0,
        }
    }

    /// The next post.
    #[expect(clippy::should_implement_trait, reason = "as Records::next")]
    pub fn next(&mut self) -> Result<Option<Result<Post, Bad>>, Error> {
        loop {
            if let Some(post) = self.waiting.pop_front() {
                return Ok(Some(post));
            }
            let record = self.records.next()?;
            self.check_columns()?;
            let Some(record) = record else {
                self.end_of_file()?;
                return Ok(None);
            };
            let record = match record {
                Ok(record) => record,
                Err(bad) => return Ok(Some(Err(bad))),
            };
            if self.file.as_ref().is_none_or(|file| !Arc::ptr_eq(file, &record.place.file)) {
                self.end_of_file()?;
                self.file = Some(record.place.file.clone());
            }
            self.understand(record)?;
        }
    }

    /// Lines so far that held something else than posts.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Bytes there are to read, unless one of the files is a pipe.
    pub fn total_bytes(&self) -> Option<u64> {
        self.records.total()
    }

    /// Looks for our columns in a table that was not seen before, whether or not its rows can be read.
    fn check_columns(&mut self) -> Result<(), Error> {
        let Some((file, columns)) = self.records.table() else { return Ok(()) };
        if self.layout.as_ref().is_some_and(|layout| Arc::ptr_eq(&layout.columns, columns)) {
            return Ok(());
        }
        if let Some(problem) = self.mapping.preset.and_then(|preset| preset.refuses(columns)) {
            return Err(Error::file(file, problem));
        }
        self.layout = Some(Layout::new(columns, &self.mapping, file)?);
        Ok(())
    }

    fn understand(&mut self, record: Record) -> Result<(), Error> {
        let Record { place, row } = record;
        let drafts = match row {
            Row::Cells(_, cells) => self.layout.iter().map(|layout| Ok(layout.draft(&cells))).collect(),
            Row::Json(value) => match self.mapping.preset {
                Some(preset) => self.platform_objects(preset, &value, &place)?,
                None => self.plain_objects(&value, &place)?,
            },
        };
        self.passed += u64::from(drafts.is_empty());
        for draft in drafts {
            let post = draft.and_then(|draft| draft.finish(&self.mapping, &place));
            self.waiting.push_back(post.map_err(|reason| Bad { place: place.clone(), reason }));
        }
        Ok(())
    }

    /// Objects of another platform are bad; if all are, the preset is wrong.
    fn platform_objects(
        &mut self,
        preset: Preset,
        value: &Value,
        place: &Place,
    ) -> Result<Vec<Result<PostDraft, String>>, Error> {
        let Some(other) = Preset::mistaken(Some(preset), value) else {
            let drafts = preset.posts(value);
            self.known += u64::from(drafts.iter().any(Result::is_ok));
            return Ok(drafts);
        };
        let reason = format!("looks like {other}");
        let error = self.stranger.is_none().then(|| Error::file(&place.file, &reason));
        self.strange(error)?;
        Ok(vec![Err(reason)])
    }

    /// Keeps in mind that a line was not as it should be, the first with what to say, and gives up when no other was.
    fn strange(&mut self, error: Option<Error>) -> Result<(), Error> {
        self.strangers += 1;
        self.stranger = self.stranger.take().or(error);
        if self.strangers >= STRANGERS { self.end_of_file() } else { Ok(()) }
    }

    fn plain_objects(&mut self, value: &Value, place: &Place) -> Result<Vec<Result<PostDraft, String>>, Error> {
        let one = std::slice::from_ref(value);
        let values = value.as_array().map_or(one, Vec::as_slice);
        values.iter().map(|value| self.plain_object(value, place)).collect()
    }

    /// An object without our keys is bad; if all are, the names are wrong.
    fn plain_object(&mut self, value: &Value, place: &Place) -> Result<Result<PostDraft, String>, Error> {
        let Some(object) = value.as_object() else {
            return Ok(Err("is no object; wanted one post such as {\"user\": …, \"time\": …, \"text\": …}".to_owned()));
        };
        // An object is no cell: what is meant is inside it.
        let cell = |name: &String| lookup(value, name).filter(|found| !found.is_object());
        let found = |field: usize| self.mapping.names[field].iter().find_map(cell);
        let missing: Vec<&str> =
            self.mapping.needed().filter(|&field| found(field).is_none()).map(|field| FIELDS[field].0).collect();
        if missing.is_empty() {
            let says = |name: &String| lookup(value, name).and_then(text).is_some_and(|text| says_yes(&text));
            let repost = self.mapping.names[REPOST].iter().any(says);
            let plain = draft(|field| found(field).and_then(text).filter(|text| !text.is_empty()));
            self.known += 1;
            return Ok(Ok(PostDraft { repost, ..plain }));
        }
        // Whoever names columns knows what the file is, and has one of them wrong.
        let platform = || if self.mapping.given.contains(&true) { None } else { Preset::mistaken(None, value) };
        let error = self.stranger.is_none().then(|| match platform() {
            Some(platform) => Error::file(&place.file, format!("looks like {platform}")),
            None => strange(&self.mapping, &place.file, &missing, "the keys", leaves(object).iter()),
        });
        let reason = format!("there is no {} among the keys", missing.join(", no "));
        self.strange(error)?;
        Ok(Err(reason))
    }

    /// Says that names are wrong if no line of a file had the right ones.
    fn end_of_file(&mut self) -> Result<(), Error> {
        let stranger = self.stranger.take();
        let known = std::mem::take(&mut self.known);
        self.strangers = 0;
        match stranger {
            Some(error) if known == 0 => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads on a thread of its own.
    pub fn batches(self) -> Batches {
        Batches::start(self)
    }
}

/// Some posts, and what was met on the way.
#[derive(Debug, Default)]
pub struct Batch {
    /// In input order.
    pub posts: Vec<Post>,
    /// Rows that cannot be read.
    pub bad: Vec<Bad>,
    /// Lines that hold something else than posts.
    pub passed: u64,
    /// Bytes read until here.
    pub bytes: u64,
}

/// Posts per batch.
const BATCH: usize = 4096;

/// Batches read ahead of the one that is worked on.
const AHEAD: usize = 2;

/// Bytes of text after which a batch is full, whatever their number.
const BATCH_BYTES: usize = 2 * LONGEST_RECORD;

/// Batches of posts, read on a thread of their own.
pub struct Batches {
    from: Receiver<Message>,
    reader: Option<JoinHandle<()>>,
}

/// What the reading thread says: some posts, that it is done, or why it cannot go on.
enum Message {
    Batch(Batch),
    End(Result<(), Error>),
}

impl Batches {
    fn start(mut posts: Posts) -> Self {
        let (to, from) = sync_channel(AHEAD);
        let bytes = posts.records.bytes();
        let reader = std::thread::spawn(move || {
            loop {
                let (mut batch, mut ended, mut size) = (Batch::default(), None, 0);
                let before = posts.passed;
                while ended.is_none() && size < BATCH_BYTES && batch.posts.len() + batch.bad.len() < BATCH {
                    match posts.next() {
                        Ok(Some(Ok(post))) => {
                            size += post.text.len();
                            batch.posts.push(post);
                        }
                        Ok(Some(Err(bad))) => batch.bad.push(bad),
                        Ok(None) => ended = Some(Ok(())),
                        Err(error) => ended = Some(Err(error)),
                    }
                }
                batch.passed = posts.passed - before;
                batch.bytes = bytes.load(Ordering::Relaxed);
                // Nobody listens any more: whoever asked has stopped.
                if to.send(Message::Batch(batch)).is_err() {
                    return;
                }
                if let Some(ended) = ended {
                    let _ = to.send(Message::End(ended));
                    return;
                }
            }
        });
        Batches { from, reader: Some(reader) }
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.take()?;
        match self.from.recv() {
            Ok(Message::Batch(batch)) => {
                self.reader = Some(reader);
                Some(Ok(batch))
            }
            Ok(Message::End(Ok(()))) => None,
            Ok(Message::End(Err(error))) => Some(Err(error)),
            // The thread ended without a word: a bug of ours, which must not look like the end of the file.
            Err(_) => match reader.join() {
                Ok(()) => None,
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posts(content: &str, mapping: Mapping) -> Result<(Vec<Post>, Vec<String>), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        std::fs::write(&path, content).unwrap();
        let shown = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for batch in Posts::open(&[path], mapping).unwrap().batches() {
            let batch = batch.map_err(|error| shown(error.to_string()))?;
            good.extend(batch.posts);
            bad.extend(batch.bad.iter().map(|bad| shown(bad.to_string())));
        }
        Ok((good, bad))
    }

    #[test]
    fn tables_and_bad_rows() {
        let (good, bad) = posts(
            "user,time,text,id,is_retweet,lang\nann,2024-05-01,hello,1,0,en\nbob,soon,x,2,1,\n,2024-05-01,x,3,,\nbob,60,,4,1,\nbob,60,x,4,1,\n",
            Mapping::default(),
        )
        .unwrap();
        assert_eq!((good[0].user.as_str(), good[0].time, good[0].repost), ("ann", 1_714_521_600, false));
        assert_eq!((good[1].id.as_deref(), good[1].repost, good[1].lang.as_deref()), (Some("4"), true, None));
        assert_eq!(
            bad[0],
            "p, line 3: column time: met \"soon\"; wanted a time such as 2024-05-01T14:30:00-04:00, or seconds since 1970"
        );
        assert_eq!(bad[1], "p, line 4: column user: is empty; a name is wanted");
        assert_eq!(bad[2], "p, line 5: column text: is empty; a post without words has no opinion");
    }

    #[test]
    fn names_can_be_mapped_and_wrong_ones_are_listed() {
        let map = |pairs: &str| Mapping::default().rename(pairs);
        let objects = "{\"author\": {\"handle\": \"ann\"}, \"body\": \"hi\", \"time\": 5, \"of\": [{\"x\": 1}]}\n";
        let (good, _) = posts(objects, map("text=body, user=author.handle,repost_of=of.0.x").unwrap()).unwrap();
        assert_eq!((good[0].user.as_str(), good[0].text.as_str(), good[0].repost), ("ann", "hi", true));
        let wrong = posts(objects, map("user=author.name").unwrap()).unwrap_err();
        assert_eq!(
            wrong,
            "p: there is no user, no text; found the keys body, of, time, author.handle (author.name was to be user); name them with --map user=author.handle,text=body"
        );
        // An object where a name is wanted: what is inside it is meant, and not somebody's birthday.
        let objects = "{\"user\": {\"created\": {\"date\": 1}, \"login\": \"ann\"}, \"date\": 5, \"text\": \"x\"}\n";
        for mapping in [Mapping::default(), map("user=user").unwrap()] {
            let wrong = posts(objects, mapping).unwrap_err();
            assert!(wrong.ends_with("--map user=user.login,time=date"), "{wrong}");
        }
        let wrong = posts("handle,when,body\na,b,c\n", Mapping::default()).unwrap_err();
        assert_eq!(
            wrong,
            "p: there is no user, no time, no text; found the columns handle, when, body; name them with --map user=handle,time=when,text=body"
        );
        assert!(map("body").unwrap_err().to_string().contains("wanted field=column"));
        assert!(map("title=x").unwrap_err().to_string().contains("there are user, time, text"));
        assert!(
            posts("just some prose, really\nmore of it, too\n", Mapping::default()).unwrap_err().contains("no user")
        );
    }

    #[test]
    fn a_first_line_without_our_keys_is_a_bad_line_when_others_have_them() {
        let (good, bad) =
            posts("{\"x\": 1}\n{\"user\": \"a\", \"time\": 1, \"text\": \"t\"}\n7\n", Mapping::default()).unwrap();
        assert_eq!((good.len(), bad.len()), (1, 2));
        assert_eq!(bad[0], "p, line 1: there is no user, no time, no text among the keys");
        assert!(bad[1].contains("is no object"));
        let none = posts(&"{\"x\": 1}\n".repeat(50), Mapping::default()).unwrap_err();
        assert_eq!(
            none,
            "p: there is no user, no time, no text; found the keys x; name them with --map user=…,time=…,text=…"
        );
    }

    #[test]
    fn presets_of_tables_and_lines() {
        let csv = "id,thread_id,timestamp,unix_timestamp,body,author,language_guess,is_retweet\n1,1,2018-10-10 20:19:24,1539202764,hi,ann,en,yes\n";
        let (good, _) = posts(csv, Mapping::default().preset(Preset::FourCat)).unwrap();
        assert_eq!((good[0].time, good[0].user.as_str(), good[0].repost), (1_539_202_764, "ann", true));
        let rows = csv.to_owned() + "2,1,2018-10-10 20:19:24,,hi,ann,en,yes\n3,1,,,hi,ann,en,yes\n";
        let (good, bad) = posts(&rows, Mapping::default().preset(Preset::FourCat)).unwrap();
        assert_eq!((good[1].time, bad.len()), (good[0].time, 1), "where one time is missing the other stands in");
        let wrong = posts(csv, Mapping::default().preset(Preset::XV2)).unwrap_err();
        assert!(wrong.contains("is a table") && wrong.ends_with("use --preset 4cat"), "{wrong}");
        let lines = "{\"data\": [{\"id\": \"1\", \"author_id\": \"7\", \"created_at\": \"2021-01-20T12:00:00Z\", \"text\": \"a\"}]}\n{\"meta\": {}}\n{\"id\": \"2\", \"author_id\": \"7\", \"created_at\": \"x\", \"text\": \"a\"}\n";
        let (good, bad) = posts(lines, Mapping::default().preset(Preset::XV2)).unwrap();
        assert_eq!((good.len(), bad.len()), (1, 1));
    }

    #[test]
    fn posts_of_another_platform_are_recognised() {
        let v1 = "{\"created_at\": \"Wed Oct 10 20:19:24 +0000 2018\", \"text\": \"x\", \"id_str\": \"1\", \"user\": {\"screen_name\": \"ann\"}}\n";
        for mapping in
            [Mapping::default(), Mapping::default().preset(Preset::XV2), Mapping::default().preset(Preset::FourCat)]
        {
            for lines in [1, 100] {
                let wrong = posts(&v1.repeat(lines), mapping.clone()).unwrap_err();
                assert_eq!(wrong, "p: looks like statuses of X API v1.1; use --preset x-v1");
            }
        }
        let wrong = posts(v1, Mapping::default().rename("time=created_at").unwrap()).unwrap_err();
        assert!(wrong.ends_with("--map user=user.screen_name"), "{wrong}");
        // Among others it is a bad line.
        let v2 = "{\"id\": \"2\", \"author_id\": \"7\", \"created_at\": \"2021-01-20T12:00:00Z\", \"text\": \"a\"}\n";
        let (good, bad) = posts(&(v1.to_owned() + v2), Mapping::default().preset(Preset::XV2)).unwrap();
        assert_eq!(
            (good.len(), bad[0].as_str()),
            (1, "p, line 1: looks like statuses of X API v1.1; use --preset x-v1")
        );
    }
}
