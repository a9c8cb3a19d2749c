//! Records in, posts out, with a reason for each row that is none.
//!
//! [`PostReader`] reads one post after another, [`PostReader::batches`] does so on a thread of its own, so that reading and scoring
//! overlap.

mod batches;
mod doubts;

pub use batches::{PostBatch, PostBatches};

use crate::Error;
use crate::mapping::{
    ColumnLayout, ColumnMapping, FIELDS, REPOST, begins_like_repost, draft, leaves, says_yes, wrong_names,
};
use crate::platform::PlatformReader;
use crate::post::{Post, PostDraft};
use crate::read::preset::{is_deleted, text};
use crate::read::{BadRow, Preset, RawRecord, RecordPlace, RecordValue, Records, lookup};
use doubts::{Doubts, Strangers};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Posts being read.
pub struct PostReader {
    records: Records,
    mapping: ColumnMapping,
    layout: Option<ColumnLayout>,
    /// The mapping of the table at hand, where its platform was recognised.
    table: Option<ColumnMapping>,
    platform: PlatformReader,
    /// The platform of the file at hand, where none was named.
    recognised: Option<Preset>,
    /// All that were recognised, in order.
    seen: Vec<Preset>,
    reposts_by_text: u64,
    /// Posts of accounts that were deleted.
    deleted: u64,
    /// Of a page: the rest.
    waiting: VecDeque<Result<Post, BadRow>>,
    /// Of the file at hand.
    strangers: Strangers,
    doubts: Doubts,
    file: Option<Arc<Path>>,
    passed: u64,
}

impl PostReader {
    /// From these files and patterns.
    pub fn open(names: &[PathBuf], mapping: ColumnMapping) -> Result<Self, Error> {
        Ok(PostReader::new(Records::open(names)?, mapping))
    }

    /// From records.
    pub fn new(records: Records, mapping: ColumnMapping) -> Self {
        PostReader {
            records,
            mapping,
            layout: None,
            table: None,
            platform: PlatformReader::default(),
            recognised: None,
            seen: Vec::new(),
            reposts_by_text: 0,
            deleted: 0,
            waiting: VecDeque::new(),
            strangers: Strangers::default(),
            doubts: Doubts::default(),
            file: None,
            passed: 0,
        }
    }

    /// The next post.
    #[expect(clippy::should_implement_trait, reason = "as Records::next")]
    pub fn next(&mut self) -> Result<Option<Result<Post, BadRow>>, Error> {
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
            let file = match &record {
                Ok(record) => &record.place.file,
                Err(bad) => &bad.place.file,
            };
            if self.file.as_ref().is_none_or(|known| !Arc::ptr_eq(known, file)) {
                let file = file.clone();
                self.end_of_file()?;
                self.file = Some(file);
            }
            match record {
                Ok(record) => self.understand(record)?,
                Err(bad) => {
                    self.doubts.see(&bad)?;
                    return Ok(Some(Err(bad)));
                }
            }
        }
    }

    /// Lines so far that held something else than posts.
    pub fn passed(&self) -> u64 {
        self.passed + self.platform.passed + self.deleted
    }

    /// Reposts so far of posts that were not read before, so that nobody knows what they say.
    pub fn bare_reposts(&self) -> u64 {
        self.platform.bare_reposts
    }

    /// Posts so far that only their text makes reposts.
    pub fn reposts_by_text(&self) -> u64 {
        self.reposts_by_text
    }

    /// Posts so far of accounts that were deleted; they are among [`PostReader::passed`].
    pub fn deleted(&self) -> u64 {
        self.deleted
    }

    /// Platforms whose files were recognised so far.
    pub fn recognised(&self) -> &[Preset] {
        &self.seen
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
            return Err(Error::Format { path: file.to_path_buf(), found: problem });
        }
        self.table = None;
        let plain = ColumnLayout::new(columns, &self.mapping, file);
        let platform = || Preset::of_table(columns).filter(|_| self.mapping.recognises());
        let (layout, preset) = match plain {
            Ok(layout) => (layout, None),
            Err(error) => match platform() {
                None => return Err(error),
                Some(preset) => {
                    let mapping = self.mapping.clone().with_preset(preset);
                    let layout = ColumnLayout::new(columns, &mapping, file)?;
                    self.table = Some(mapping);
                    (layout, Some(preset))
                }
            },
        };
        self.layout = Some(layout);
        if let Some(preset) = preset {
            self.recognise(preset);
        }
        Ok(())
    }

    fn recognise(&mut self, preset: Preset) {
        self.recognised = Some(preset);
        if !self.seen.contains(&preset) {
            self.seen.push(preset);
        }
    }

    fn understand(&mut self, record: RawRecord) -> Result<(), Error> {
        let RawRecord { place, row } = record;
        let drafts = match row {
            RecordValue::Cells(_, cells) => self.row(&cells, &place),
            RecordValue::Json(value) => {
                if self.mapping.recognises()
                    && self.recognised.is_none()
                    && let Some(preset) = self.platform_of(&value)
                {
                    self.recognise(preset);
                }
                match self.mapping.preset.or(self.recognised) {
                    Some(preset) => self.platform_objects(preset, &value, &place)?,
                    None => {
                        let drafts = self.plain_objects(&value, &place)?;
                        self.passed += u64::from(drafts.is_empty());
                        drafts
                    }
                }
            }
        };
        for draft in drafts {
            let by_text =
                |draft: &PostDraft| draft.repost.is_none() && draft.text.as_deref().is_some_and(begins_like_repost);
            let mapping = self.table.as_ref().unwrap_or(&self.mapping);
            let post = draft.map_err(Into::into).and_then(|draft| {
                let by_text = by_text(&draft);
                draft.finish(mapping, &place).map(|post| (post, by_text))
            });
            let post = match post {
                Ok((post, _)) if is_deleted(&post.user) => {
                    self.doubts.sound += 1;
                    self.deleted += 1;
                    continue;
                }
                Ok((post, by_text)) => {
                    self.doubts.sound += 1;
                    self.reposts_by_text += u64::from(by_text);
                    Ok(post)
                }
                Err(error) => {
                    let bad = BadRow::with(place.clone(), error);
                    self.doubts.see(&bad)?;
                    Err(bad)
                }
            };
            self.waiting.push_back(post);
        }
        Ok(())
    }

    /// The platform of an object that is not as it should be without one.
    fn platform_of(&self, value: &Value) -> Option<Preset> {
        let first = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let has = |field: usize| {
            self.mapping.names[field].iter().any(|name| lookup(first, name).is_some_and(|found| !found.is_object()))
        };
        // A column that was named and is not there is to be told.
        let named = (0..self.mapping.given.len()).filter(|&field| self.mapping.given[field]).all(has);
        if !named || self.mapping.needed().all(has) { None } else { Preset::recognised(value) }
    }

    /// The post of a row, or none.
    fn row(&mut self, cells: &csv::StringRecord, place: &RecordPlace) -> Vec<Result<PostDraft, String>> {
        let Some(layout) = &self.layout else { return Vec::new() };
        let mapping = self.table.as_ref().unwrap_or(&self.mapping);
        let texts = mapping.needs_text();
        match mapping.preset {
            None => vec![Ok(layout.draft(cells))],
            // A submission has its words in two columns.
            Some(preset @ Preset::Reddit) => {
                let names = layout.columns.names().iter().zip(cells);
                let object = names.map(|(name, cell)| (name.clone(), Value::from(cell))).collect();
                let named = layout.draft(cells);
                let mut drafts =
                    self.platform.drafts(preset, &Value::Object(object), place, texts && !mapping.given[2]);
                drafts.iter_mut().flatten().for_each(|draft| {
                    draft.scores = named.scores.clone();
                    mapping.overlay(draft, named.clone());
                });
                drafts
            }
            Some(preset) => {
                let draft = layout.draft(cells);
                self.platform.finished(preset, draft, place, texts).into_iter().map(Ok).collect()
            }
        }
    }

    /// Objects of another platform are bad; if all are, the preset is wrong.
    fn platform_objects(
        &mut self,
        preset: Preset,
        value: &Value,
        place: &RecordPlace,
    ) -> Result<Vec<Result<PostDraft, String>>, Error> {
        let Some(other) = Preset::mistaken(Some(preset), value) else {
            let before = self.platform.bare_reposts;
            let texts = self.mapping.needs_text() && !self.mapping.given[2];
            let mut drafts = self.platform.drafts(preset, value, place, texts);
            if self.mapping.names_columns() {
                let [draft] = &mut drafts[..] else {
                    // One name cannot say where each of several posts has something.
                    return if drafts.is_empty() { Ok(drafts) } else { Err(Error::PresetAndColumns { preset }) };
                };
                draft.iter_mut().for_each(|draft| self.mapping.overlay(draft, self.named(value)));
            }
            self.strangers.see(drafts.iter().any(Result::is_ok) || self.platform.bare_reposts > before);
            return Ok(drafts);
        };
        self.strangers.unexpected(|| Error::Format { path: place.file.to_path_buf(), found: other })?;
        Ok(vec![Err(other.to_string())])
    }

    fn plain_objects(&mut self, value: &Value, place: &RecordPlace) -> Result<Vec<Result<PostDraft, String>>, Error> {
        let one = std::slice::from_ref(value);
        let values = value.as_array().map_or(one, Vec::as_slice);
        values.iter().map(|value| self.plain_object(value, place)).collect()
    }

    /// What an object has under the names of the mapping.
    fn named(&self, value: &Value) -> PostDraft {
        // An object is no cell: what is meant is inside it.
        let cell = |name: &String| lookup(value, name).filter(|found| !found.is_object());
        let says = |name: &String| lookup(value, name).and_then(text).is_some_and(|text| says_yes(&text));
        let marked = self.mapping.names[REPOST].iter().any(|name| lookup(value, name).is_some());
        let repost = marked.then(|| self.mapping.names[REPOST].iter().any(says));
        let found = |field: usize| self.mapping.names[field].iter().find_map(cell);
        let plain = draft(|field| found(field).and_then(text).filter(|text| !text.is_empty()));
        PostDraft { repost, ..plain }
    }

    /// An object without our keys is bad; if all are, the names are wrong.
    fn plain_object(&mut self, value: &Value, place: &RecordPlace) -> Result<Result<PostDraft, String>, Error> {
        let Some(object) = value.as_object() else {
            return Ok(Err(
                "is not an object; expected one post such as {\"user\": …, \"time\": …, \"text\": …}".to_owned()
            ));
        };
        // An object is no cell: what is meant is inside it.
        let cell = |name: &String| lookup(value, name).filter(|found| !found.is_object());
        let found = |field: usize| self.mapping.names[field].iter().find_map(cell);
        let missing: Vec<&str> =
            self.mapping.needed().filter(|&field| found(field).is_none()).map(|field| FIELDS[field].0).collect();
        if missing.is_empty() {
            self.strangers.see(true);
            return Ok(Ok(self.named(value)));
        }
        // Whoever names columns knows what the file is, and has one of them wrong.
        let platform = || if self.mapping.given.contains(&true) { None } else { Preset::mistaken(None, value) };
        let reason = format!("there is no {} among the keys", missing.join(", no "));
        self.strangers.unexpected(|| match platform() {
            Some(found) => Error::Format { path: place.file.to_path_buf(), found },
            None => wrong_names(&self.mapping, &place.file, &missing, "the keys", leaves(object).iter()),
        })?;
        Ok(Err(reason))
    }

    /// What can be said of a file once all of it was read.
    fn end_of_file(&mut self) -> Result<(), Error> {
        self.recognised = None;
        self.strangers.end()?;
        self.doubts.end(true)?;
        self.doubts = Doubts::default();
        Ok(())
    }

    /// Reads on a thread of its own.
    pub fn batches(self) -> PostBatches {
        PostBatches::start(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posts(content: &str, mapping: ColumnMapping) -> Result<(Vec<Post>, Vec<String>), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        std::fs::write(&path, content).unwrap();
        let shown = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for batch in PostReader::open(&[path], mapping).unwrap().batches() {
            // With the columns that may be meant behind it.
            let batch = batch.map_err(|error| match &error {
                Error::Columns { suggestion, .. } => {
                    let pair = |(field, column): &(&str, Option<String>)| {
                        format!("{field}={}", column.as_deref().unwrap_or("…"))
                    };
                    let pairs: Vec<String> = suggestion.iter().map(pair).collect();
                    shown(format!("{error}; {}", pairs.join(",")))
                }
                _ => shown(error.to_string()),
            })?;
            good.extend(batch.posts);
            bad.extend(batch.bad.iter().map(|bad| shown(bad.to_string())));
        }
        Ok((good, bad))
    }

    #[test]
    fn tables_and_bad_rows() {
        let (good, bad) = posts(
            "user,time,text,id,is_retweet,lang\nann,2024-05-01,hello,1,0,en\nbob,soon,x,2,1,\n,2024-05-01,x,3,,\nbob,60,,4,1,\nbob,60,x,4,1,\n",
            ColumnMapping::default(),
        )
        .unwrap();
        assert_eq!((good[0].user.as_str(), good[0].time, good[0].repost), ("ann", 1_714_521_600, false));
        assert_eq!((good[1].id.as_deref(), good[1].repost, good[1].lang.as_deref()), (Some("4"), true, None));
        assert_eq!(
            bad[0],
            "p, line 3: column time: found \"soon\"; expected a time such as 2024-05-01T14:30:00-04:00, or seconds since 1970"
        );
        assert_eq!(bad[1], "p, line 4: column user: is empty; a name is expected");
        assert_eq!(bad[2], "p, line 5: column text: is empty; a post without words has no opinion");
    }

    #[test]
    fn names_can_be_mapped_and_wrong_ones_are_listed() {
        let map = |pairs: &str| {
            let pairs = pairs.split(',').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
            ColumnMapping::default().with_columns(pairs)
        };
        let objects = "{\"author\": {\"handle\": \"ann\"}, \"body\": \"hi\", \"time\": 5, \"of\": [{\"x\": 1}]}\n";
        let (good, _) = posts(objects, map("text=body, user=author.handle,repost_of=of.0.x").unwrap()).unwrap();
        assert_eq!((good[0].user.as_str(), good[0].text.as_str(), good[0].repost), ("ann", "hi", true));
        let wrong = posts(objects, map("user=author.name").unwrap()).unwrap_err();
        assert_eq!(
            wrong,
            "p: there is no user, no text; found the keys body, of, time, author.handle (author.name was to be user); user=author.handle,text=body"
        );
        // An object where a name is wanted: what is inside it is meant, and not somebody's birthday.
        let objects = "{\"user\": {\"created\": {\"date\": 1}, \"login\": \"ann\"}, \"date\": 5, \"text\": \"x\"}\n";
        for mapping in [ColumnMapping::default(), map("user=user").unwrap()] {
            let wrong = posts(objects, mapping).unwrap_err();
            assert!(wrong.ends_with("; user=user.login,time=date"), "{wrong}");
        }
        let wrong = posts("handle,when,body\na,b,c\n", ColumnMapping::default()).unwrap_err();
        assert_eq!(
            wrong,
            "p: there is no user, no time, no text; found the columns handle, when, body; user=handle,time=when,text=body"
        );
        assert!(map("text").unwrap_err().to_string().contains("\"text\" is missing"));
        assert!(map("title=x").unwrap_err().to_string().contains("there are user, time, text"));
        assert!(
            posts("just some prose, really\nmore of it, too\n", ColumnMapping::default())
                .unwrap_err()
                .contains("no user")
        );
    }

    #[test]
    fn a_first_line_without_our_keys_is_a_bad_line_when_others_have_them() {
        let (good, bad) =
            posts("{\"x\": 1}\n{\"user\": \"a\", \"time\": 1, \"text\": \"t\"}\n7\n", ColumnMapping::default())
                .unwrap();
        assert_eq!((good.len(), bad.len()), (1, 2));
        assert_eq!(bad[0], "p, line 1: there is no user, no time, no text among the keys");
        assert!(bad[1].contains("is not an object"));
        let none = posts(&"{\"x\": 1}\n".repeat(50), ColumnMapping::default()).unwrap_err();
        assert_eq!(none, "p: there is no user, no time, no text; found the keys x; user=…,time=…,text=…");
    }

    #[test]
    fn presets_of_tables_and_lines() {
        let csv = "id,thread_id,timestamp,unix_timestamp,body,author,language_guess,is_retweet\n1,1,2018-10-10 20:19:24,1539202764,hi,ann,en,yes\n";
        let (good, _) = posts(csv, ColumnMapping::default().with_preset(Preset::FourCat)).unwrap();
        assert_eq!((good[0].time, good[0].user.as_str(), good[0].repost), (1_539_202_764, "ann", true));
        let rows = csv.to_owned() + "2,1,2018-10-10 20:19:24,,hi,ann,en,yes\n3,1,,,hi,ann,en,yes\n";
        let (good, bad) = posts(&rows, ColumnMapping::default().with_preset(Preset::FourCat)).unwrap();
        assert_eq!((good[1].time, bad.len()), (good[0].time, 1), "where one time is missing the other stands in");
        let wrong = posts(csv, ColumnMapping::default().with_preset(Preset::XV2)).unwrap_err();
        assert!(wrong.contains("is a table") && wrong.ends_with("looks like posts of 4CAT (preset 4cat)"), "{wrong}");
        let lines = "{\"data\": [{\"id\": \"1\", \"author_id\": \"7\", \"created_at\": \"2021-01-20T12:00:00Z\", \"text\": \"a\"}]}\n{\"meta\": {}}\n{\"id\": \"2\", \"author_id\": \"7\", \"created_at\": \"x\", \"text\": \"a\"}\n";
        let (good, bad) = posts(lines, ColumnMapping::default().with_preset(Preset::XV2)).unwrap();
        assert_eq!((good.len(), bad.len()), (1, 1));
    }

    #[test]
    fn posts_of_another_platform_are_recognised() {
        let v1 = "{\"created_at\": \"Wed Oct 10 20:19:24 +0000 2018\", \"text\": \"x\", \"id_str\": \"1\", \"user\": {\"screen_name\": \"ann\"}}\n";
        for mapping in [
            ColumnMapping::default().with_preset(Preset::Reddit),
            ColumnMapping::default().with_preset(Preset::XV2),
            ColumnMapping::default().with_preset(Preset::FourCat),
        ] {
            for lines in [1, 100] {
                let wrong = posts(&v1.repeat(lines), mapping.clone()).unwrap_err();
                assert_eq!(wrong, "p: looks like statuses of X API v1.1 (preset x-v1)");
            }
        }
        let wrong = posts(v1, ColumnMapping::default().with_columns([("time", "when")]).unwrap()).unwrap_err();
        assert!(wrong.contains("(when was to be time)"), "{wrong}");
        // Among others it is a bad line.
        let v2 = "{\"id\": \"2\", \"author_id\": \"7\", \"created_at\": \"2021-01-20T12:00:00Z\", \"text\": \"a\"}\n";
        let (good, bad) = posts(&(v1.to_owned() + v2), ColumnMapping::default().with_preset(Preset::XV2)).unwrap();
        assert_eq!((good.len(), bad[0].as_str()), (1, "p, line 1: looks like statuses of X API v1.1 (preset x-v1)"));
    }

    #[test]
    fn a_named_column_does_not_hide_the_platform() {
        let map = |field: &str, name: &str| ColumnMapping::default().with_columns([(field, name)]).unwrap();
        let v1 = "{\"created_at\": \"Wed Oct 10 20:19:24 +0000 2018\", \"text\": \"x\", \"id_str\": \"1\", \"user\": {\"screen_name\": \"ann\", \"name\": \"Ann A\"}}\n";
        let (good, _) = posts(v1, map("user", "user.name")).unwrap();
        assert_eq!((good[0].user.as_str(), good[0].time), ("Ann A", 1_539_202_764));
        let reddit = "id,author,created_utc,title,selftext,flair\n1,dan,1600000000,Trams,are late,news\n";
        let (good, _) = posts(reddit, map("text", "flair")).unwrap();
        assert_eq!((good[0].user.as_str(), good[0].text.as_str()), ("dan", "news"));
        let fourcat = "id,thread_id,timestamp,body,author,author_username\n1,1,2018-10-10 20:19:24,hi,77,cat\n";
        let (good, _) = posts(fourcat, map("user", "author")).unwrap();
        assert_eq!((good[0].user.as_str(), good[0].text.as_str()), ("77", "hi"));
        // Several posts in one object: one name cannot mean all of them.
        let page = "{\"data\": [{\"id\": \"1\", \"author_id\": \"7\", \"created_at\": \"2021-01-20T12:00:00Z\", \"text\": \"a\"}, {\"id\": \"2\", \"author_id\": \"7\", \"created_at\": \"2021-01-20T12:00:00Z\", \"text\": \"b\"}], \"meta\": {\"id\": 3}}\n";
        assert!(posts(page, map("id", "meta.id")).is_err());
    }

    #[test]
    fn deleted_accounts_are_not_one_account() {
        let lines = "{\"author\": \"[deleted]\", \"created_utc\": 1, \"body\": \"x\", \"id\": \"a\"}\n{\"author\": \"ann\", \"created_utc\": 1, \"body\": \"x\", \"id\": \"b\"}\n";
        let table = "user,time,text\n[deleted],1,x\nann,1,x\n[removed],1,x\n";
        for (content, deleted) in [(lines, 1), (table, 2)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("p");
            std::fs::write(&path, content).unwrap();
            let mut reader = PostReader::open(&[path], ColumnMapping::default()).unwrap();
            assert_eq!(reader.next().unwrap().unwrap().unwrap().user, "ann");
            assert!(reader.next().unwrap().is_none());
            assert_eq!((reader.deleted(), reader.passed()), (deleted, deleted));
        }
    }

    #[test]
    fn files_of_platforms_need_no_preset() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let files = [
            write(
                "v1.jsonl",
                "{\"created_at\": \"Wed Oct 10 20:19:24 +0000 2018\", \"text\": \"x\", \"id_str\": \"1\", \"user\": {\"screen_name\": \"ann\"}}\n{\"delete\": {}}\n",
            ),
            write("plain.csv", "user,time,text\nbob,2024-05-01,RT @ann: hi\n"),
            write(
                "4cat.csv",
                "id,thread_id,timestamp,body,author,author_username\n1,1,2018-10-10 20:19:24,hi,77,cat\n2,1,2018-10-10 20:19:24,,77,cat\n",
            ),
            write("reddit.csv", "id,author,created_utc,title,selftext\n1,dan,1600000000,Trams,are late\n"),
            write(
                "result.json",
                "{\n \"name\": \"c\",\n \"id\": 1,\n \"messages\": [\n  {\n   \"id\": 1,\n   \"type\": \"message\",\n   \"date_unixtime\": \"5\",\n   \"from\": \"eve\",\n   \"from_id\": \"user1\",\n   \"text\": [\"a\", {\"type\": \"bold\", \"text\": \"b\"}]\n  }\n ]\n}\n",
            ),
        ];
        let mut reader = PostReader::open(&files, ColumnMapping::default()).unwrap();
        let mut found = Vec::new();
        while let Some(post) = reader.next().unwrap() {
            let post = post.unwrap();
            found.push((post.user, post.text, post.repost));
        }
        let wanted = [
            ("ann", "x", false),
            ("bob", "RT @ann: hi", true),
            ("cat", "hi", false),
            ("dan", "Trams\n\nare late", false),
            ("eve", "ab", false),
        ];
        assert_eq!(found, wanted.map(|(user, text, repost)| (user.to_owned(), text.to_owned(), repost)));
        assert_eq!(reader.recognised(), [Preset::XV1, Preset::FourCat, Preset::Reddit, Preset::Telegram]);
        assert_eq!((reader.reposts_by_text(), reader.passed()), (1, 2), "a deletion, and a post without words");
        // A column that says no is believed, and one that is empty says no as well.
        let (good, _) =
            posts("user,time,text,is_retweet\nbob,1,RT @ann: hi,0\nbob,1,RT @ann: hi,\n", ColumnMapping::default())
                .unwrap();
        assert!(good.iter().all(|post| !post.repost));
    }

    #[test]
    fn what_all_rows_have_in_common_is_said_of_the_file() {
        let dates = "user,time,text\nann,01.05.2024,x\nbob,02.05.2024,y\n";
        let told = posts(dates, ColumnMapping::default()).unwrap_err();
        assert!(
            told.starts_with("p, line 2: column time: found \"01.05.2024\", which does not say whether the day"),
            "{told}"
        );
        let (good, _) =
            posts(dates, ColumnMapping::default().with_date_order(crate::read::DateOrder::DayFirst)).unwrap();
        assert_eq!(good[1].time - good[0].time, 86_400);
        // Among others it is a bad row.
        let among = format!("user,time,text\n{}bob,02.05.2024,y\n", "ann,2024-05-01,x\n".repeat(20));
        let (good, bad) = posts(&among, ColumnMapping::default()).unwrap();
        assert_eq!((good.len(), bad.len()), (20, 1));
        let (good, _) = posts("user,time,text\nann,0.5,x\n", ColumnMapping::default().with_numeric_times()).unwrap();
        assert_eq!(good[0].time, 500_000);
    }
}
