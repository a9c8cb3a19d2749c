//! Presets: the objects of a platform in, fields of posts out.
//!
//! A line may hold one post, a page of them, or something else (a deletion, a like), which is stepped over and counted.
//! `docs/reference/presets.md` says how to get such files. Each platform has a module of its own with `fits`, which tells
//! its objects from others, and `post`, which makes a [`PostDraft`] of one.

mod bluesky;
mod fourcat;
mod mastodon;
mod reddit;
mod telegram;
mod x;
mod zeeschuimer;

pub(crate) use reddit::is_deleted;

use super::ColumnNames;
use super::document::{LISTS, chat_of, with_chat};
use crate::post::PostDraft;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Preset {
    /// X API v2 as twarc2 saves it: pages with `data` and `includes`, or one flattened post per line.
    XV2,
    /// X API v1.1 statuses.
    XV1,
    /// The archive that X gives users of their own account: `tweets.js`.
    XArchive,
    /// Bluesky: Jetstream events, answers of searchPosts and of feeds.
    Bluesky,
    /// Mastodon: statuses of the API, `outbox.json` of an archive.
    Mastodon,
    /// Reddit: comments and submissions.
    Reddit,
    /// Telegram: `result.json` of its desktop program.
    Telegram,
    /// Items that Zeeschuimer saved.
    Zeeschuimer,
    /// The CSV of 4CAT.
    FourCat,
}

impl std::fmt::Display for Preset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What posts are that were taken for something else. [`OtherFormat::preset`] is the preset that reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherFormat {
    /// The objects of a platform.
    Platform(Preset),
    /// Posts with user, time and text, for which no preset is needed.
    Plain,
    /// A table, where a preset reads JSON lines.
    Table {
        /// The preset asked for.
        given: Preset,
        /// The preset that reads it, if one does.
        preset: Option<Preset>,
    },
}

impl OtherFormat {
    /// The preset that reads these posts; `None` where none is needed, or none fits.
    pub fn preset(self) -> Option<Preset> {
        match self {
            OtherFormat::Platform(preset) => Some(preset),
            OtherFormat::Plain => None,
            OtherFormat::Table { preset, .. } => preset,
        }
    }
}

impl std::fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OtherFormat::Platform(preset) => write!(f, "looks like {} (preset {preset})", preset.words()),
            OtherFormat::Plain => write!(f, "looks like posts with user, time and text, which need no preset"),
            OtherFormat::Table { given, preset: None } => write!(f, "is a table, but {given} comes as JSON lines"),
            OtherFormat::Table { given, preset: Some(preset) } => {
                write!(
                    f,
                    "is a table, but {given} comes as JSON lines; it looks like {} (preset {preset})",
                    preset.words()
                )
            }
        }
    }
}

impl From<Preset> for String {
    fn from(preset: Preset) -> Self {
        preset.to_string()
    }
}

impl TryFrom<String> for Preset {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl std::str::FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Preset::ALL.into_iter().find(|preset| preset.name() == text).ok_or_else(|| {
            let known = Preset::ALL.map(Preset::name).join(", ");
            format!("found {text:?}; expected one of {known}")
        })
    }
}

impl Preset {
    /// The name by which it is chosen.
    pub fn name(self) -> &'static str {
        match self {
            Preset::XV2 => "x-v2",
            Preset::XV1 => "x-v1",
            Preset::XArchive => "x-archive",
            Preset::Bluesky => "bluesky",
            Preset::Mastodon => "mastodon",
            Preset::Reddit => "reddit",
            Preset::Telegram => "telegram",
            Preset::Zeeschuimer => "zeeschuimer",
            Preset::FourCat => "4cat",
        }
    }

    /// Which files it reads, for a list of all presets.
    pub fn about(self) -> &'static str {
        match self {
            Preset::XV2 => "X API v2 as twarc2 saves it",
            Preset::XV1 => "X API v1.1 statuses",
            Preset::XArchive => "Archive of an X account: tweets.js",
            Preset::Bluesky => "Bluesky: Jetstream events, answers of searchPosts and of feeds",
            Preset::Mastodon => "Mastodon: statuses, or outbox.json of an archive",
            Preset::Reddit => "Reddit: comments and submissions",
            Preset::Telegram => "Telegram: result.json",
            Preset::Zeeschuimer => "Zeeschuimer: items of X, TikTok, Threads, Truth Social",
            Preset::FourCat => "4CAT's CSV",
        }
    }

    /// Columns that a platform names differently, by field, the better first.
    pub(crate) fn columns(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Preset::FourCat => fourcat::COLUMNS,
            Preset::Reddit => {
                &[("user", &["author"]), ("time", &["created_utc"]), ("text", &["body", "selftext", "title"])]
            }
            _ => &[],
        }
    }

    /// All of them, those first whose objects look like others' as well.
    pub const ALL: [Preset; 9] = [
        Preset::Zeeschuimer,
        Preset::XV2,
        Preset::XV1,
        Preset::XArchive,
        Preset::Bluesky,
        Preset::Mastodon,
        Preset::Reddit,
        Preset::Telegram,
        Preset::FourCat,
    ];

    /// What its files hold.
    pub fn words(self) -> &'static str {
        match self {
            Preset::XV2 => "posts of X API v2",
            Preset::XV1 => "statuses of X API v1.1",
            Preset::XArchive => "an archive of X",
            Preset::Bluesky => "events of Bluesky",
            Preset::Mastodon => "statuses of Mastodon",
            Preset::Reddit => "comments and submissions of Reddit",
            Preset::Telegram => "messages of Telegram",
            Preset::Zeeschuimer => "items of Zeeschuimer",
            Preset::FourCat => "posts of 4CAT",
        }
    }

    /// Whether an object has the shape of its posts.
    fn fits(self, value: &Value) -> bool {
        let value = list_of(value).and_then(|list| list.first()).unwrap_or(value);
        match self {
            Preset::XV2 => x::fits_v2(value),
            Preset::XV1 => x::fits_v1(value),
            Preset::XArchive => x::fits_archive(value),
            Preset::Bluesky => bluesky::fits(value),
            Preset::Mastodon => mastodon::fits(value),
            Preset::Reddit => reddit::fits(value),
            Preset::Telegram => telegram::fits(value),
            Preset::Zeeschuimer => zeeschuimer::fits(value),
            Preset::FourCat => false,
        }
    }

    /// The platform of an object.
    pub(crate) fn recognised(value: &Value) -> Option<Preset> {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        Preset::ALL.into_iter().find(|preset| preset.fits(value))
    }

    /// The platform of a table.
    pub(crate) fn of_table(columns: &ColumnNames) -> Option<Preset> {
        let has = |name: &str| columns.position(name).is_some();
        if has("author") && has("created_utc") && (has("body") || has("selftext") || has("title")) {
            return Some(Preset::Reddit);
        }
        fourcat::fits(columns).then_some(Preset::FourCat)
    }

    /// Whether its reposts may come without the text that they repeat.
    pub(crate) fn has_bare_reposts(self) -> bool {
        matches!(self, Preset::Bluesky | Preset::Mastodon | Preset::Zeeschuimer)
    }

    /// What is done to the fields of a row.
    pub(crate) fn polish(self, draft: &mut PostDraft) {
        if self == Preset::FourCat {
            fourcat::polish(draft);
        }
    }

    /// What an object is, where it is not what was asked for; `given` is the preset that was.
    pub fn mistaken(given: Option<Preset>, value: &Value) -> Option<OtherFormat> {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        if given.is_some_and(|given| given.fits(value)) {
            return None;
        }
        if let Some(other) = Preset::ALL.into_iter().find(|preset| preset.fits(value)) {
            return Some(OtherFormat::Platform(other));
        }
        let plain = ["user", "time", "text"].iter().all(|key| value.get(key).and_then(text).is_some());
        (given.is_some() && plain).then_some(OtherFormat::Plain)
    }

    /// What a table is, where it is not what this preset reads.
    pub fn refuses(self, columns: &ColumnNames) -> Option<OtherFormat> {
        let preset = Preset::of_table(columns);
        let read = self == Preset::FourCat || (self == Preset::Reddit && preset == Some(self));
        (!read).then_some(OtherFormat::Table { given: self, preset })
    }

    /// The posts of one line; none where it holds something else.
    pub fn posts(self, value: &Value) -> Vec<Result<PostDraft, String>> {
        let one = |draft: Option<PostDraft>| draft.into_iter().map(Ok).collect();
        match (self, value) {
            (_, Value::Array(values)) => return values.iter().flat_map(|value| self.posts(value)).collect(),
            (Preset::XV2, _) => return x::v2(value),
            _ => {}
        }
        // A whole answer or export on one line.
        if let Some(list) = list_of(value) {
            let chat = value.get("messages").map(|_| chat_of(value));
            return list.iter().flat_map(|value| self.posts(&with_chat(value.clone(), chat.as_ref()))).collect();
        }
        match self {
            Preset::XV2 => Vec::new(),
            Preset::XV1 => one(x::v1(value)),
            Preset::XArchive => one(x::archive(value)),
            Preset::Bluesky => one(bluesky::post(value)),
            Preset::Mastodon => one(mastodon::post(value)),
            Preset::Reddit => one(reddit::post(value)),
            Preset::Telegram => one(telegram::post(value)),
            Preset::Zeeschuimer => zeeschuimer::post(value).into_iter().collect(),
            Preset::FourCat => vec![Err("is an object; 4CAT's posts are a CSV".to_owned())],
        }
    }
}

/// The list of posts that a whole answer or export holds.
fn list_of(value: &Value) -> Option<&Vec<Value>> {
    LISTS.iter().find_map(|key| value.get(key)?.as_array())
}

/// A string or number below some keys.
pub(crate) fn text_at(value: &Value, path: &[&str]) -> Option<String> {
    text(path.iter().try_fold(value, |value, key| value.get(key))?)
}

/// Anything that can stand in a cell.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(preset: Preset, value: &Value) -> PostDraft {
        let mut posts = preset.posts(value);
        assert_eq!(posts.len(), 1);
        posts.remove(0).unwrap()
    }

    fn brief(draft: &PostDraft) -> (&str, &str, &str, bool) {
        (
            draft.user.as_deref().unwrap(),
            draft.time.as_deref().unwrap(),
            draft.text.as_deref().unwrap(),
            draft.repost.unwrap(),
        )
    }

    #[test]
    fn x_v2_pages_flat_lines_and_streams() {
        let page = json!({
            "data": [
                {"id": "1", "author_id": "10", "created_at": "2021-01-20T12:00:00.000Z", "text": "RT @b: cut of…", "lang": "en",
                 "referenced_tweets": [{"type": "retweeted", "id": "7"}]},
                {"id": "2", "author_id": "11", "created_at": "2021-01-20T12:00:01.000Z", "text": "short",
                 "note_tweet": {"text": "long text"}, "referenced_tweets": [{"type": "quoted", "id": "7"}]},
                {"id": "3", "author_id": "99", "created_at": "2021-01-20T12:00:02.000Z", "text": "stranger"},
                {"id": "4", "author_id": "10", "text": "no time"}
            ],
            "includes": {"users": [{"id": "10", "username": "ann"}, {"id": "11", "username": "bob"}],
                         "tweets": [{"id": "7", "text": "cut off no more"}]},
            "meta": {"result_count": 4}
        });
        let posts = Preset::XV2.posts(&page);
        assert_eq!(brief(posts[0].as_ref().unwrap()), ("ann", "2021-01-20T12:00:00.000Z", "cut off no more", true));
        assert_eq!(posts[0].as_ref().unwrap().lang.as_deref(), Some("en"));
        assert_eq!(brief(posts[1].as_ref().unwrap()), ("bob", "2021-01-20T12:00:01.000Z", "long text", false));
        assert_eq!(posts[2].as_ref().unwrap().user.as_deref(), Some("99"));
        assert!(posts[3].as_ref().unwrap_err().contains("tweet.fields=created_at"));
        assert!(Preset::XV2.posts(&json!({"meta": {"result_count": 0}})).is_empty());
        let flat = json!({"id": "1", "author_id": "10", "author": {"username": "ann"}, "created_at": "t", "text": "RT @b: c…",
            "referenced_tweets": [{"type": "retweeted", "id": "7", "text": "the whole"}]});
        assert_eq!(brief(&one(Preset::XV2, &flat)), ("ann", "t", "the whole", true));
        let streamed =
            json!({"data": {"id": "1", "author_id": "10", "created_at": "t", "text": "x"}, "matching_rules": []});
        assert_eq!(brief(&one(Preset::XV2, &streamed)), ("10", "t", "x", false));
    }

    #[test]
    fn x_v1_statuses() {
        let status = json!({"id_str": "5", "user": {"screen_name": "ann"}, "created_at": "Wed Oct 10 20:19:24 +0000 2018",
            "text": "cut…", "truncated": true, "extended_tweet": {"full_text": "not cut"}, "lang": "en"});
        assert_eq!(brief(&one(Preset::XV1, &status)), ("ann", "Wed Oct 10 20:19:24 +0000 2018", "not cut", false));
        let repost = json!({"id": 6, "user": {"screen_name": "bob"}, "created_at": "t", "full_text": "RT @ann: no…",
            "retweeted_status": {"full_text": "not cut"}});
        assert_eq!(brief(&one(Preset::XV1, &repost)), ("bob", "t", "not cut", true));
        assert!(Preset::XV1.posts(&json!({"delete": {"status": {"id": 1}}})).is_empty());
    }

    #[test]
    fn bluesky_events() {
        let event = json!({"did": "did:plc:a", "time_us": 1_725_911_162_329_308_u64, "kind": "commit",
            "commit": {"operation": "create", "collection": "app.bsky.feed.post", "rkey": "3l3q",
                "record": {"text": "hello", "createdAt": "2024-09-09T19:46:02.102Z", "langs": ["en", "de"]}}});
        let post = one(Preset::Bluesky, &event);
        assert_eq!(brief(&post), ("did:plc:a", "2024-09-09T19:46:02.102Z", "hello", false));
        assert_eq!(
            (post.id.as_deref(), post.lang.as_deref()),
            (Some("at://did:plc:a/app.bsky.feed.post/3l3q"), Some("en"))
        );
        let mut odd = event.clone();
        odd["commit"]["record"]["createdAt"] = json!("once upon a time");
        assert_eq!(one(Preset::Bluesky, &odd).time.as_deref(), Some("1725911162329308"));
        assert!(!post.update);
        let mut update = event.clone();
        update["commit"]["operation"] = json!("update");
        assert!(one(Preset::Bluesky, &update).update);
        let mut repost = event.clone();
        repost["commit"]["collection"] = json!("app.bsky.feed.repost");
        repost["commit"]["record"] = json!({"createdAt": "2024-09-10T00:00:00Z",
            "subject": {"uri": "at://did:plc:b/app.bsky.feed.post/1"}});
        let repost = one(Preset::Bluesky, &repost);
        assert_eq!((repost.repost, repost.text), (Some(true), None));
        assert_eq!(repost.repost_of.as_deref(), Some("at://did:plc:b/app.bsky.feed.post/1"));
        // The wire before, and v2, say the same in other words.
        let mut before = event.clone();
        before["commit"]["type"] = json!("c");
        before["commit"].as_object_mut().unwrap().remove("operation");
        let mut after = event["commit"].clone();
        after["did"] = event["did"].clone();
        after["$type"] = json!("network.bsky.jetstream.subscribeEvents#commit");
        after["time"] = json!("2024-09-09T19:46:02.329308Z");
        let after = json!({"$type": "message", "payload": after});
        for other in [before, after] {
            assert_eq!(Preset::recognised(&other), Some(Preset::Bluesky));
            assert_eq!(one(Preset::Bluesky, &other), post);
        }
        let mut like = event;
        like["commit"]["collection"] = json!("app.bsky.feed.like");
        assert!(Preset::Bluesky.posts(&like).is_empty());
        assert!(Preset::Bluesky.posts(&json!({"did": "d", "kind": "identity"})).is_empty());
    }

    #[test]
    fn objects_of_another_platform_are_known() {
        let objects = [
            (Preset::XV2, json!({"data": [{"id": "1", "text": "x"}]})),
            (Preset::XV2, json!({"id": "1", "author_id": "7", "text": "x"})),
            (Preset::XV1, json!({"created_at": "t", "text": "x", "user": {"screen_name": "ann"}})),
            (Preset::Bluesky, json!({"did": "d", "kind": "identity"})),
            (Preset::Mastodon, json!([{"content": "x", "account": {"acct": "ann"}}])),
        ];
        for (preset, object) in &objects {
            assert_eq!(Preset::mistaken(Some(*preset), object), None);
            for other in Preset::ALL.into_iter().filter(|other| other != preset) {
                assert_eq!(Preset::mistaken(Some(other), object), Some(OtherFormat::Platform(*preset)));
            }
        }
        let plain = json!({"user": "ann", "time": 5, "text": "x"});
        assert_eq!(Preset::mistaken(Some(Preset::XV1), &plain), Some(OtherFormat::Plain));
        for object in [&plain, &json!({"delete": {}}), &json!(7), &json!([])] {
            assert_eq!(Preset::mistaken(None, object), None);
        }
        let columns = |names: &[&str]| ColumnNames::new(names.iter().map(|name| (*name).to_owned()).collect());
        let table = columns(&["id", "timestamp", "body", "author"]);
        assert_eq!(Preset::XV1.refuses(&table).unwrap().preset(), Some(Preset::FourCat));
        assert_eq!(Preset::XV1.refuses(&columns(&["user"])).unwrap().preset(), None);
        assert_eq!(Preset::FourCat.refuses(&table), None);
    }

    #[test]
    fn mastodon_statuses() {
        let status = json!({"id": "1", "uri": "https://a.b/1", "created_at": "2024-01-01T00:00:00.000Z", "language": "en",
            "content": "<p>one<br>two</p>", "spoiler_text": "politics", "account": {"acct": "ann@a.b"}, "reblog": null});
        assert_eq!(brief(&one(Preset::Mastodon, &status)).2, "politics\n\none\ntwo");
        let boost = json!({"id": "2", "created_at": "t", "content": "", "account": {"acct": "bob"}, "reblog": status});
        let post = one(Preset::Mastodon, &boost);
        assert_eq!(brief(&post), ("bob", "t", "politics\n\none\ntwo", true));
        assert_eq!(Preset::Mastodon.posts(&json!([status, boost])).len(), 2);
    }

    #[test]
    fn bluesky_searches_and_feeds() {
        let view = json!({"uri": "at://did:plc:a/app.bsky.feed.post/1", "author": {"did": "did:plc:a", "handle": "ann.bsky.social"},
            "record": {"text": "hello", "createdAt": "2024-09-09T19:46:02Z", "langs": ["en"]}, "indexedAt": "2024-09-09T20:00:00Z"});
        let answer = json!({"cursor": "1", "posts": [view]});
        assert_eq!(Preset::recognised(&answer), Some(Preset::Bluesky));
        let post = one(Preset::Bluesky, &answer);
        assert_eq!(brief(&post), ("ann.bsky.social", "2024-09-09T19:46:02Z", "hello", false));
        let feed = json!({"feed": [{"post": view, "reason": {"$type": "app.bsky.feed.defs#reasonRepost",
            "by": {"did": "did:plc:b", "handle": "bob.bsky.social"}, "indexedAt": "2024-09-10T00:00:00Z"}}]});
        let repost = one(Preset::Bluesky, &feed);
        assert_eq!(brief(&repost), ("bob.bsky.social", "2024-09-10T00:00:00Z", "hello", true));
        assert_ne!(repost.id, post.id);
    }

    #[test]
    fn mastodon_outboxes() {
        let create = json!({"id": "https://a.b/users/ann/statuses/1/activity", "type": "Create", "actor": "https://a.b/users/ann",
            "published": "2024-01-01T00:00:00Z", "object": {"id": "https://a.b/users/ann/statuses/1", "type": "Note",
            "summary": null, "content": "<p>one &amp; two</p>", "contentMap": {"en": "<p>one &amp; two</p>"}}});
        let announce = json!({"id": "https://a.b/users/ann/statuses/2/activity", "type": "Announce",
            "actor": "https://a.b/users/ann", "published": "2024-01-02T00:00:00Z", "object": "https://c.d/users/bob/statuses/9"});
        let outbox = json!({"type": "OrderedCollection", "orderedItems": [create, announce, {"type": "Like", "actor": "x", "object": "y"}]});
        assert_eq!(Preset::recognised(&outbox), Some(Preset::Mastodon));
        let posts = Preset::Mastodon.posts(&outbox);
        assert_eq!(posts.len(), 2);
        let (note, boost) = (posts[0].as_ref().unwrap(), posts[1].as_ref().unwrap());
        assert_eq!(brief(note), ("ann@a.b", "2024-01-01T00:00:00Z", "one & two", false));
        assert_eq!((note.id.as_deref(), note.lang.as_deref()), (Some("https://a.b/users/ann/statuses/1"), Some("en")));
        assert_eq!((boost.repost, boost.text.as_deref()), (Some(true), None));
        assert_eq!(boost.repost_of.as_deref(), Some("https://c.d/users/bob/statuses/9"));
    }

    #[test]
    fn reddit_comments_and_submissions() {
        let comment = json!({"id": "c1", "author": "ann", "created_utc": 1_600_000_000, "body": "1 &lt; 2 &amp;c", "link_id": "t3_s1"});
        assert_eq!(Preset::recognised(&comment), Some(Preset::Reddit));
        let post = one(Preset::Reddit, &comment);
        assert_eq!((brief(&post), post.id.as_deref()), (("ann", "1600000000", "1 < 2 &c", false), Some("t1_c1")));
        let submission =
            json!({"id": "c1", "author": "bob", "created_utc": "1600000000", "title": "Trams", "selftext": "are late"});
        let post = one(Preset::Reddit, &submission);
        assert_eq!((brief(&post).2, post.id.as_deref()), ("Trams\n\nare late", Some("t3_c1")));
        let removed = json!({"author": "bob", "created_utc": 1, "title": "Trams", "selftext": "[removed]", "crosspost_parent": "t3_x"});
        assert_eq!(brief(&one(Preset::Reddit, &removed)), ("bob", "1", "Trams", true));
        let gone = json!({"author": "[deleted]", "created_utc": 1, "body": "x"});
        assert!(one(Preset::Reddit, &gone).user.as_deref().is_some_and(is_deleted), "the reader counts it");
        assert_eq!(one(Preset::Reddit, &json!({"author": "a", "created_utc": 1, "body": "[deleted]"})).text, None);
    }

    #[test]
    fn telegram_messages() {
        let export = json!({"name": "Group", "type": "public_supergroup", "id": 77, "messages": [
            {"id": 1, "type": "service", "date": "2024-05-01T10:00:00", "actor": "Ann", "action": "join_group_by_link"},
            {"id": 2, "type": "message", "date": "2024-05-01T12:00:00", "date_unixtime": "1714557600", "from": "Ann", "from_id": "user1",
             "text": ["see ", {"type": "link", "text": "https://a.b"}, " now"]},
            {"id": 3, "type": "message", "date": "2024-05-01T12:00:00", "from": null, "from_id": "user2", "forwarded_from": "News",
             "text": "plain"}]});
        assert_eq!(Preset::recognised(&export), Some(Preset::Telegram));
        let posts = Preset::Telegram.posts(&export);
        assert_eq!(posts.len(), 2);
        let (first, second) = (posts[0].as_ref().unwrap(), posts[1].as_ref().unwrap());
        assert_eq!(brief(first), ("Ann", "1714557600", "see https://a.b now", false));
        assert_eq!((first.id.as_deref(), first.user_id.as_deref()), (Some("77/2"), Some("user1")));
        assert_eq!(brief(second), ("user2", "2024-05-01T12:00:00", "plain", true));
    }

    #[test]
    fn archives_of_x() {
        let tweet = json!({"tweet": {"id_str": "9", "full_text": "RT @bob: trams", "created_at": "Wed Oct 10 20:19:24 +0000 2018",
            "lang": "en", "retweeted": false}});
        assert_eq!(Preset::recognised(&tweet), Some(Preset::XArchive));
        let post = one(Preset::XArchive, &tweet);
        assert_eq!((post.user.as_deref(), post.repost, post.id.as_deref()), (None, None, Some("9")));
        assert_eq!(post.text.as_deref(), Some("RT @bob: trams"));
    }

    #[test]
    fn items_of_zeeschuimer() {
        let item = |platform: &str, data: Value| json!({"nav_index": "1:1", "item_id": "1", "source_platform": platform, "source_platform_url": "https://x", "data": data});
        let user = json!({"result": {"core": {"screen_name": "ann"}}});
        let original = json!({"rest_id": "7", "legacy": {"full_text": "the whole"}, "core": {"user_results": user}});
        let tweet = json!({"rest_id": "8", "core": {"user_results": {"result": {"legacy": {"screen_name": "bob"}}}},
            "legacy": {"full_text": "RT @ann: the wh…", "created_at": "Wed Oct 10 20:19:24 +0000 2018", "lang": "en",
            "retweeted_status_result": {"result": {"tweet": original}}}});
        let cases = [
            ("twitter.com", tweet, ("bob", "Wed Oct 10 20:19:24 +0000 2018", "the whole", true)),
            (
                "tiktok.com",
                json!({"id": "1", "author": {"uniqueId": "ann"}, "createTime": 5, "desc": "hi"}),
                ("ann", "5", "hi", false),
            ),
            (
                "threads.net",
                json!({"pk": "1", "user": {"username": "ann"}, "taken_at": 5, "caption": {"text": "hi"}, "text_post_app_info": {}}),
                ("ann", "5", "hi", false),
            ),
            (
                "truthsocial.com",
                json!({"id": "1", "created_at": "2024-01-01T00:00:00Z", "content": "<p>hi</p>", "account": {"acct": "ann"}}),
                ("ann", "2024-01-01T00:00:00Z", "hi", false),
            ),
        ];
        for (platform, data, wanted) in cases {
            let item = item(platform, data.clone());
            assert_eq!(Preset::recognised(&item), Some(Preset::Zeeschuimer), "{platform}");
            assert_eq!(brief(&one(Preset::Zeeschuimer, &item)), wanted, "{platform}");
            // As 4CAT keeps it.
            let mut kept = data;
            kept["__import_meta"] = json!({"source_platform": platform});
            assert_eq!(brief(&one(Preset::Zeeschuimer, &kept)), wanted, "{platform}");
            // Not every version says where the item was seen.
            let mut without = item.clone();
            without.as_object_mut().unwrap().remove("source_platform_url");
            assert_eq!(Preset::recognised(&without), Some(Preset::Zeeschuimer), "{platform}");
            assert_eq!(brief(&one(Preset::Zeeschuimer, &without)), wanted, "{platform}");
        }
        let other = Preset::Zeeschuimer.posts(&item("linkedin.com", json!({"id": 1})));
        assert!(other[0].as_ref().unwrap_err().contains("is an item of linkedin.com"));
    }

    #[test]
    fn tables_of_4cat_and_reddit_are_known() {
        let columns = |names: &[&str]| ColumnNames::new(names.iter().map(|name| (*name).to_owned()).collect());
        for names in [
            &["id", "thread_id", "timestamp", "body", "author"][..],
            &["id", "created_at", "body", "account_username", "thread_id", "timestamp"],
            &["id", "thread_id", "chat", "author", "author_username", "body", "unix_timestamp"],
            &["id", "thread_id", "created_at", "author", "body", "languages"],
        ] {
            assert_eq!(Preset::of_table(&columns(names)), Some(Preset::FourCat), "{names:?}");
        }
        assert_eq!(Preset::of_table(&columns(&["author", "created_utc", "body"])), Some(Preset::Reddit));
        assert_eq!(Preset::of_table(&columns(&["author", "body"])), None);
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse(), Ok(preset));
            assert_eq!(serde_json::from_value::<Preset>(serde_json::to_value(preset).unwrap()).unwrap(), preset);
        }
        let mut draft =
            PostDraft { text: Some("<p>a &amp; b</p>".into()), lang: Some("de,en".into()), ..PostDraft::default() };
        Preset::FourCat.polish(&mut draft);
        assert_eq!((draft.text.as_deref(), draft.lang.as_deref()), (Some("a & b"), Some("de")));
        draft.lang = Some("N/A".into());
        Preset::FourCat.polish(&mut draft);
        assert_eq!(draft.lang, None);
    }
}
