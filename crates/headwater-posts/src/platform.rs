//! What a platform's objects need beyond themselves: who owns an archive, which text a repost repeats, who of two users with
//! one name is meant.

use crate::post::PostDraft;
use crate::read::{Preset, RecordPlace, archive_account};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

/// Reads the objects of platforms, one after another.
#[derive(Debug, Default)]
pub(crate) struct PlatformReader {
    texts: RecentTexts,
    /// The number of the first user with a name.
    names: HashMap<String, String>,
    /// Of the archive at hand.
    owner: Option<(Arc<Path>, String)>,
    /// Objects that hold something else than posts, or posts without words.
    pub(crate) passed: u64,
    /// Reposts of posts that are not among those read before.
    pub(crate) bare_reposts: u64,
}

impl PlatformReader {
    /// The posts of one object. Where texts are wanted, posts without are left out and counted.
    pub(crate) fn drafts(
        &mut self,
        preset: Preset,
        value: &Value,
        place: &RecordPlace,
        texts: bool,
    ) -> Vec<Result<PostDraft, String>> {
        let drafts = preset.posts(value);
        self.passed += u64::from(drafts.is_empty());
        let finished = drafts.into_iter().filter_map(|draft| match draft {
            Ok(draft) => self.finished(preset, draft, place, texts).map(Ok),
            Err(problem) => Some(Err(problem)),
        });
        finished.collect()
    }

    /// A draft of a table or an object with what is known from elsewhere.
    pub(crate) fn finished(
        &mut self,
        preset: Preset,
        mut draft: PostDraft,
        place: &RecordPlace,
        texts: bool,
    ) -> Option<PostDraft> {
        preset.polish(&mut draft);
        if preset == Preset::XArchive && draft.user.is_none() {
            draft.user = Some(self.owner_of(&place.file));
        }
        if let (Some(user), Some(number)) = (&mut draft.user, &draft.user_id) {
            let first = self.names.entry(user.clone()).or_insert_with(|| number.clone());
            if first != number {
                *user = format!("{user} ({number})");
            }
        }
        let wordless = draft.text.as_deref().is_none_or(|text| text.trim().is_empty());
        if preset.has_bare_reposts() {
            match (&draft.id, &draft.repost_of) {
                (_, Some(original)) if wordless => {
                    if let Some((text, lang)) = self.texts.get(original) {
                        draft.text = Some(text.to_owned());
                        draft.lang = draft.lang.take().or_else(|| lang.map(str::to_owned));
                        return Some(draft);
                    }
                }
                (Some(id), None) if !wordless => {
                    self.texts.keep(id, draft.text.as_deref().unwrap_or_default(), draft.lang.as_deref());
                }
                _ => {}
            }
        }
        if wordless && texts {
            let counter = if draft.repost == Some(true) { &mut self.bare_reposts } else { &mut self.passed };
            *counter += 1;
            return None;
        }
        Some(draft)
    }

    fn owner_of(&mut self, file: &Arc<Path>) -> String {
        match &self.owner {
            Some((known, owner)) if Arc::ptr_eq(known, file) => owner.clone(),
            _ => {
                let owner = archive_account(file).unwrap_or_else(|| folder_name(file));
                self.owner = Some((file.clone(), owner.clone()));
                owner
            }
        }
    }
}

/// What an archive is called that does not say whose it is: its folder, or itself.
fn folder_name(file: &Path) -> String {
    let folders = file.ancestors().skip(1).filter_map(|folder| folder.file_name()?.to_str());
    let folder = folders.take(2).find(|name| *name != "data");
    let own = || file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("archive");
    let zip = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zip"));
    folder.filter(|_| !zip).unwrap_or_else(own).to_owned()
}

/// Texts of posts, by id, as many as fit.
#[derive(Debug, Default)]
struct RecentTexts {
    texts: HashMap<u64, (Box<str>, Option<Box<str>>)>,
    order: VecDeque<u64>,
    bytes: usize,
}

impl RecentTexts {
    /// The texts of some hundred thousand posts.
    const MOST_BYTES: usize = 64 << 20;
    /// What each takes besides.
    const OVERHEAD: usize = 100;

    fn keep(&mut self, id: &str, text: &str, lang: Option<&str>) {
        let key = hashed_id(id);
        // The first wording stands, as it does among the posts.
        if self.texts.contains_key(&key) {
            return;
        }
        self.bytes += text.len() + Self::OVERHEAD;
        self.texts.insert(key, (text.into(), lang.map(Into::into)));
        self.order.push_back(key);
        while self.bytes > Self::MOST_BYTES {
            let Some((text, _)) = self.order.pop_front().and_then(|oldest| self.texts.remove(&oldest)) else { break };
            self.bytes -= text.len() + Self::OVERHEAD;
        }
    }

    fn get(&self, id: &str) -> Option<(&str, Option<&str>)> {
        self.texts.get(&hashed_id(id)).map(|(text, lang)| (text.as_ref(), lang.as_deref()))
    }
}

/// A number that stands for an id where millions are kept.
pub(crate) fn hashed_id(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn place(file: &str) -> RecordPlace {
        RecordPlace { file: Arc::from(Path::new(file)), line: 1 }
    }

    #[test]
    fn reposts_get_the_text_that_they_repeat() {
        let mut reader = PlatformReader::default();
        let mut read = |value: Value| reader.drafts(Preset::Bluesky, &value, &place("x"), true);
        let event = |did: &str, collection: &str, record: Value| {
            json!({"did": did, "time_us": 1, "kind": "commit",
                "commit": {"operation": "create", "collection": collection, "rkey": "1", "record": record}})
        };
        let subject = json!({"subject": {"uri": "at://a/app.bsky.feed.post/1"}, "createdAt": "2024-01-02T00:00:00Z"});
        let repost = event("b", "app.bsky.feed.repost", subject);
        assert!(read(repost.clone()).is_empty(), "nobody knows what it repeats");
        read(event(
            "a",
            "app.bsky.feed.post",
            json!({"text": "hello", "langs": ["en"], "createdAt": "2024-01-01T00:00:00Z"}),
        ));
        let found = read(repost).remove(0).unwrap();
        assert_eq!(
            (found.user.as_deref(), found.text.as_deref(), found.repost),
            (Some("b"), Some("hello"), Some(true))
        );
        assert_eq!(found.lang.as_deref(), Some("en"));
        assert_eq!((reader.bare_reposts, reader.passed), (1, 0));
    }

    #[test]
    fn texts_are_kept_within_bounds() {
        let mut texts = RecentTexts::default();
        let long = "x".repeat(RecentTexts::MOST_BYTES / 4);
        for id in 0..8 {
            texts.keep(&id.to_string(), &long, None);
        }
        assert!(texts.bytes <= RecentTexts::MOST_BYTES && texts.get("0").is_none() && texts.get("7").is_some());
        assert_eq!(texts.texts.len(), texts.order.len());
    }

    #[test]
    fn users_of_one_name_are_told_apart() {
        let mut reader = PlatformReader::default();
        let mut user = |name: &str, number: &str| {
            let message =
                json!({"id": 1, "type": "message", "date": "2024-01-01", "from": name, "from_id": number, "text": "x"});
            reader.drafts(Preset::Telegram, &message, &place("x"), true).remove(0).unwrap().user.unwrap()
        };
        assert_eq!(user("Alex", "user1"), "Alex");
        assert_eq!(user("Alex", "user2"), "Alex (user2)");
        assert_eq!(user("Alex", "user1"), "Alex");
    }

    #[test]
    fn archives_belong_to_their_account() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("twitter-ann").join("data");
        std::fs::create_dir_all(&data).unwrap();
        let file: Arc<Path> = Arc::from(data.join("tweets.js"));
        assert_eq!(PlatformReader::default().owner_of(&file), "twitter-ann");
        let account = "window.YTD.account.part0 = [\n {\"account\": {\"username\": \"ann\", \"accountId\": \"1\"}}\n]";
        std::fs::write(data.join("account.js"), account).unwrap();
        assert_eq!(PlatformReader::default().owner_of(&file), "ann");
        assert_eq!(folder_name(Path::new("twitter-2024.zip")), "twitter-2024");
        assert_eq!(folder_name(Path::new("tweets.js")), "tweets");
    }
}
