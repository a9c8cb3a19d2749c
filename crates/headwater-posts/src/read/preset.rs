//! Presets: the objects of a platform in, fields of posts out.
//!
//! A line may hold one post, a page of them, or something else (a deletion, a like), which is stepped over and counted.
//! `docs/reference/presets.md` says how to get such files.

use super::{ColumnNames, html};
use crate::post::PostDraft;
use serde_json::Value;

/// Where a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// X API v2 as twarc2 saves it: pages with `data` and `includes`, or one flattened post per line.
    XV2,
    /// X API v1.1 statuses.
    XV1,
    /// Bluesky Jetstream events.
    Bluesky,
    /// Mastodon statuses.
    Mastodon,
    /// The CSV of 4CAT.
    FourCat,
}

impl std::fmt::Display for Preset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Preset::XV2 => "x-v2",
            Preset::XV1 => "x-v1",
            Preset::Bluesky => "bluesky",
            Preset::Mastodon => "mastodon",
            Preset::FourCat => "4cat",
        })
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

impl std::str::FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Preset::ALL.into_iter().find(|preset| preset.to_string() == text).ok_or_else(|| {
            let known = Preset::ALL.map(|preset| preset.to_string()).join(", ");
            format!("met {text:?}; wanted one of {known}")
        })
    }
}

impl Preset {
    /// Columns that 4CAT names differently, by field, the better first.
    pub(crate) fn columns(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Preset::FourCat => &[
                ("user", &["author"]),
                ("time", &["unix_timestamp", "timestamp"]),
                ("text", &["body"]),
                ("lang", &["language_guess", "language", "lang"]),
                ("repost", &["is_retweet", "is_repost", "is_reblog", "is_boost"]),
            ],
            _ => &[],
        }
    }

    /// All of them.
    const ALL: [Preset; 5] = [Preset::XV2, Preset::XV1, Preset::Bluesky, Preset::Mastodon, Preset::FourCat];

    /// What its files hold.
    fn words(self) -> &'static str {
        match self {
            Preset::XV2 => "posts of X API v2",
            Preset::XV1 => "statuses of X API v1.1",
            Preset::Bluesky => "events of Bluesky",
            Preset::Mastodon => "statuses of Mastodon",
            Preset::FourCat => "posts of 4CAT",
        }
    }

    /// Whether an object has the shape of its posts.
    fn fits(self, value: &Value) -> bool {
        let has = |value: &Value, keys: &[&str]| keys.iter().all(|key| value.get(key).is_some());
        let inside = |key: &str, wanted: &[&str]| {
            value.get(key).is_some_and(|object| wanted.iter().any(|key| object.get(key).is_some()))
        };
        match self {
            Preset::XV2 => {
                let data = value.get("data").map(|data| data.get(0).unwrap_or(data));
                has(value, &["author_id", "text"]) || data.is_some_and(|post| has(post, &["id", "text"]))
            }
            Preset::XV1 => has(value, &["created_at"]) && inside("user", &["screen_name", "id_str"]),
            Preset::Bluesky => has(value, &["did"]) && (has(value, &["commit"]) || has(value, &["kind"])),
            Preset::Mastodon => has(value, &["content"]) && inside("account", &["acct", "username"]),
            Preset::FourCat => false,
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
        let has = |name: &str| columns.position(name).is_some();
        let preset =
            (has("author") && has("body") && (has("timestamp") || has("unix_timestamp"))).then_some(Preset::FourCat);
        (self != Preset::FourCat).then_some(OtherFormat::Table { given: self, preset })
    }

    /// The posts of one line; none where it holds something else.
    pub fn posts(self, value: &Value) -> Vec<Result<PostDraft, String>> {
        match (self, value) {
            (_, Value::Array(values)) => values.iter().flat_map(|value| self.posts(value)).collect(),
            (Preset::XV2, _) => x_v2(value),
            (Preset::XV1, _) => x_v1(value).into_iter().map(Ok).collect(),
            (Preset::Bluesky, _) => bluesky(value).into_iter().map(Ok).collect(),
            (Preset::Mastodon, _) => mastodon(value).into_iter().map(Ok).collect(),
            (Preset::FourCat, _) => vec![Err("is an object; 4CAT's posts are a CSV".to_owned())],
        }
    }
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

fn find<'a>(list: Option<&'a Value>, id: Option<&str>) -> Option<&'a Value> {
    let id = id?;
    list?.as_array()?.iter().find(|item| item.get("id").and_then(Value::as_str) == Some(id))
}

fn x_v2(line: &Value) -> Vec<Result<PostDraft, String>> {
    let includes = line.get("includes");
    match line.get("data") {
        Some(Value::Array(posts)) => posts.iter().map(|post| x_v2_post(post, includes)).collect(),
        Some(post) => vec![x_v2_post(post, includes)],
        // A page without results, or with errors only.
        None if line.get("meta").is_some() || line.get("errors").is_some() => Vec::new(),
        None => vec![x_v2_post(line, includes)],
    }
}

fn x_v2_post(post: &Value, includes: Option<&Value>) -> Result<PostDraft, String> {
    let included = |kind: &str| includes.and_then(|includes| includes.get(kind));
    let author = text_at(post, &["author_id"]);
    let user = find(included("users"), author.as_deref()).and_then(|user| text_at(user, &["username"]));
    let user = user
        .or_else(|| text_at(post, &["author", "username"]))
        .or_else(|| text_at(post, &["author_user", "username"]))
        .or(author);
    let references = post.get("referenced_tweets").and_then(Value::as_array);
    let reposted = references
        .and_then(|list| list.iter().find(|item| item.get("type").and_then(Value::as_str) == Some("retweeted")));
    // The text of a repost is cut off after 140 characters; the whole is with the post it repeats.
    let original = reposted.and_then(|reference| {
        let included = find(included("tweets"), reference.get("id").and_then(Value::as_str));
        included.or(Some(reference)).filter(|post| post.get("text").is_some())
    });
    let whole = |post: &Value| text_at(post, &["note_tweet", "text"]).or_else(|| text_at(post, &["text"]));
    let time = text_at(post, &["created_at"]);
    if time.is_none() && post.get("text").is_some() {
        return Err("has no created_at; ask the API for tweet.fields=created_at,author_id".to_owned());
    }
    Ok(PostDraft {
        id: text_at(post, &["id"]),
        user,
        time,
        text: original.and_then(whole).or_else(|| whole(post)),
        lang: text_at(post, &["lang"]),
        repost: reposted.is_some(),
        ..PostDraft::default()
    })
}

fn x_v1(status: &Value) -> Option<PostDraft> {
    // Streams also hold {"delete": …} and {"limit": …}.
    status.get("user").or_else(|| status.get("created_at"))?;
    let reposted = status.get("retweeted_status").filter(|original| original.is_object());
    let whole = |status: &Value| {
        let longer = text_at(status, &["extended_tweet", "full_text"]);
        longer.or_else(|| text_at(status, &["full_text"])).or_else(|| text_at(status, &["text"]))
    };
    Some(PostDraft {
        id: text_at(status, &["id_str"]).or_else(|| text_at(status, &["id"])),
        user: text_at(status, &["user", "screen_name"]).or_else(|| text_at(status, &["user", "id_str"])),
        time: text_at(status, &["created_at"]),
        text: reposted.and_then(whole).or_else(|| whole(status)),
        lang: text_at(status, &["lang"]),
        repost: reposted.is_some(),
        ..PostDraft::default()
    })
}

fn bluesky(event: &Value) -> Option<PostDraft> {
    let commit = event.get("commit")?;
    let is = |key: &str, wanted: &str| commit.get(key).and_then(Value::as_str) == Some(wanted);
    // Likes, follows, deletions and reposts (which carry no text) pass by.
    if !is("collection", "app.bsky.feed.post") || !(is("operation", "create") || is("operation", "update")) {
        return None;
    }
    let record = commit.get("record")?;
    let user = text_at(event, &["did"]);
    // RawRecord keys are unique within one repository only, and an update keeps its key.
    let id = user.as_ref().zip(text_at(commit, &["rkey"])).map(|(user, key)| format!("at://{user}/{key}"));
    // createdAt is what the author's program claims; without a usable one the time of the event stands in.
    let claimed = text_at(record, &["createdAt"]).filter(|time| super::parse_time(time).is_some());
    Some(PostDraft {
        id,
        user,
        time: claimed.or_else(|| text_at(event, &["time_us"])),
        text: text_at(record, &["text"]),
        lang: record.get("langs").and_then(|langs| text_at(langs.get(0)?, &[])),
        update: is("operation", "update"),
        ..PostDraft::default()
    })
}

fn mastodon(status: &Value) -> Option<PostDraft> {
    status.get("account").or_else(|| status.get("content"))?;
    let reposted = status.get("reblog").filter(|original| original.is_object());
    let said = reposted.unwrap_or(status);
    let warning = text_at(said, &["spoiler_text"]).filter(|text| !text.is_empty());
    let content = text_at(said, &["content"]).map(|content| html::plain(&content));
    Some(PostDraft {
        // The same status has another id on every server, but one address.
        id: text_at(status, &["uri"]).or_else(|| text_at(status, &["id"])),
        user: text_at(status, &["account", "acct"]).or_else(|| text_at(status, &["account", "username"])),
        time: text_at(status, &["created_at"]),
        text: match (warning, content) {
            (Some(warning), Some(content)) => Some(format!("{warning}\n\n{content}")),
            (_, content) => content,
        },
        lang: text_at(said, &["language"]),
        repost: reposted.is_some(),
        ..PostDraft::default()
    })
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
        (draft.user.as_deref().unwrap(), draft.time.as_deref().unwrap(), draft.text.as_deref().unwrap(), draft.repost)
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
        assert_eq!((post.id.as_deref(), post.lang.as_deref()), (Some("at://did:plc:a/3l3q"), Some("en")));
        let mut odd = event.clone();
        odd["commit"]["record"]["createdAt"] = json!("once upon a time");
        assert_eq!(one(Preset::Bluesky, &odd).time.as_deref(), Some("1725911162329308"));
        assert!(!post.update);
        let mut update = event.clone();
        update["commit"]["operation"] = json!("update");
        assert!(one(Preset::Bluesky, &update).update);
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
}
