//! Bluesky: events of Jetstream (the present wire, the one before, and v2), posts as searches and feeds return them.

use super::{text, text_at};
use crate::post::PostDraft;
use serde_json::Value;

const POST: &str = "app.bsky.feed.post";
const REPOST: &str = "app.bsky.feed.repost";

/// What v2 calls its commits.
const V2_COMMIT: &str = "network.bsky.jetstream.subscribeEvents#commit";

pub(super) fn fits(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some();
    let view = post_view(value);
    (has("did") && (has("commit") || has("kind")))
        || type_of(payload(value)).is_some_and(|kind| kind.starts_with("network.bsky.jetstream."))
        || (view.get("author").is_some_and(|author| author.get("did").is_some()) && view.get("record").is_some())
}

fn type_of(value: &Value) -> Option<&str> {
    value.get("$type").and_then(Value::as_str)
}

/// The message in a frame of v2.
fn payload(value: &Value) -> &Value {
    value.get("payload").filter(|_| type_of(value) == Some("message")).unwrap_or(value)
}

/// The post of an entry of a feed.
fn post_view(value: &Value) -> &Value {
    value.get("post").filter(|post| post.is_object()).unwrap_or(value)
}

pub(super) fn post(value: &Value) -> Option<PostDraft> {
    let message = payload(value);
    if type_of(message) == Some(V2_COMMIT) {
        return commit(message, message, text_at(message, &["time"]));
    }
    if let Some(event) = message.get("commit") {
        return commit(message, event, text_at(message, &["time_us"]));
    }
    viewed(value)
}

/// The creation or change of a record: a post, or a repost, which has no text of its own.
fn commit(event: &Value, commit: &Value, seen: Option<String>) -> Option<PostDraft> {
    // The first wire abbreviated: "type" with c, u, d.
    let operation = commit.get("operation").or_else(|| commit.get("type")).and_then(Value::as_str)?;
    let update = matches!(operation, "update" | "u");
    if !update && !matches!(operation, "create" | "c") {
        return None;
    }
    let collection = commit.get("collection").and_then(Value::as_str)?;
    let repost = match collection {
        POST => false,
        REPOST => true,
        _ => return None,
    };
    let record = commit.get("record")?;
    let user = text_at(event, &["did"]);
    // Record keys are unique within one repository only, and an update keeps its key.
    let id = user.as_ref().zip(text_at(commit, &["rkey"])).map(|(user, key)| format!("at://{user}/{collection}/{key}"));
    Some(PostDraft {
        id,
        user,
        time: claimed(record).or(seen),
        text: text_at(record, &["text"]).filter(|_| !repost),
        lang: language(record),
        repost: Some(repost),
        repost_of: text_at(record, &["subject", "uri"]).filter(|_| repost),
        update,
        ..PostDraft::default()
    })
}

/// A post as searches return it, or an entry of a feed, which may say who reposted it.
fn viewed(value: &Value) -> Option<PostDraft> {
    let view = post_view(value);
    let record = view.get("record")?;
    let repost =
        value.get("reason").filter(|reason| type_of(reason).is_some_and(|kind| kind.ends_with("#reasonRepost")));
    let author = match repost {
        Some(reason) => reason.get("by")?,
        None => view.get("author")?,
    };
    let handle = text_at(author, &["handle"]).filter(|handle| handle != "handle.invalid");
    let uri = text_at(view, &["uri"]);
    let (id, time) = match repost {
        Some(reason) => {
            let id = text_at(reason, &["uri"])
                .or_else(|| Some(format!("{} by {}", uri.as_deref()?, text_at(author, &["did"])?)));
            (id, text_at(reason, &["indexedAt"]))
        }
        None => (uri.clone(), claimed(record).or_else(|| text_at(view, &["indexedAt"]))),
    };
    Some(PostDraft {
        id,
        user: handle.or_else(|| text_at(author, &["did"])),
        time,
        text: text_at(record, &["text"]),
        lang: language(record),
        repost: Some(repost.is_some()),
        repost_of: uri.filter(|_| repost.is_some()),
        ..PostDraft::default()
    })
}

/// The time that the author's program claims, where it is one.
fn claimed(record: &Value) -> Option<String> {
    text_at(record, &["createdAt"]).filter(|time| crate::read::parse_time(time).is_some())
}

fn language(record: &Value) -> Option<String> {
    text(record.get("langs")?.get(0)?)
}
