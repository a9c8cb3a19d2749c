//! X: the API v2 and v1.1, the archive that users get of their own account, and objects of its website.

use super::text_at;
use crate::post::PostDraft;
use serde_json::Value;

pub(super) fn fits_v2(value: &Value) -> bool {
    let has = |value: &Value, keys: &[&str]| keys.iter().all(|key| value.get(key).is_some());
    let data = value.get("data").map(|data| data.get(0).unwrap_or(data));
    has(value, &["author_id", "text"]) || data.is_some_and(|post| has(post, &["id", "text"]))
}

pub(super) fn fits_v1(value: &Value) -> bool {
    let user = value.get("user");
    value.get("created_at").is_some()
        && user.is_some_and(|user| user.get("screen_name").is_some() || user.get("id_str").is_some())
}

pub(super) fn fits_archive(value: &Value) -> bool {
    let tweet = value.get("tweet").unwrap_or(value);
    tweet.get("created_at").is_some()
        && tweet.get("full_text").is_some()
        && (value.get("tweet").is_some() || tweet.get("user").is_none())
}

fn find<'a>(list: Option<&'a Value>, id: Option<&str>) -> Option<&'a Value> {
    let id = id?;
    list?.as_array()?.iter().find(|item| item.get("id").and_then(Value::as_str) == Some(id))
}

pub(super) fn v2(line: &Value) -> Vec<Result<PostDraft, String>> {
    let includes = line.get("includes");
    match line.get("data") {
        Some(Value::Array(posts)) => posts.iter().map(|post| v2_post(post, includes)).collect(),
        Some(post) => vec![v2_post(post, includes)],
        // A page without results, or with errors only.
        None if line.get("meta").is_some() || line.get("errors").is_some() => Vec::new(),
        None => vec![v2_post(line, includes)],
    }
}

fn v2_post(post: &Value, includes: Option<&Value>) -> Result<PostDraft, String> {
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
        repost: Some(reposted.is_some()),
        repost_of: reposted.and_then(|reference| text_at(reference, &["id"])),
        ..PostDraft::default()
    })
}

/// The text of a status of v1.1, uncut.
fn whole_status(status: &Value) -> Option<String> {
    let longer = text_at(status, &["extended_tweet", "full_text"]);
    longer.or_else(|| text_at(status, &["full_text"])).or_else(|| text_at(status, &["text"]))
}

pub(super) fn v1(status: &Value) -> Option<PostDraft> {
    // Streams also hold {"delete": …} and {"limit": …}.
    status.get("user").or_else(|| status.get("created_at"))?;
    let reposted = status.get("retweeted_status").filter(|original| original.is_object());
    Some(PostDraft {
        id: text_at(status, &["id_str"]).or_else(|| text_at(status, &["id"])),
        user: text_at(status, &["user", "screen_name"]).or_else(|| text_at(status, &["user", "id_str"])),
        time: text_at(status, &["created_at"]),
        text: reposted.and_then(whole_status).or_else(|| whole_status(status)),
        lang: text_at(status, &["lang"]),
        repost: Some(reposted.is_some()),
        repost_of: reposted.and_then(|original| text_at(original, &["id_str"])),
        ..PostDraft::default()
    })
}

/// A post of an archive, which names no author: it is the account's own. Reposts are known by their text.
pub(super) fn archive(value: &Value) -> Option<PostDraft> {
    let tweet = value.get("tweet").unwrap_or(value);
    let draft = v1(tweet)?;
    Some(PostDraft { repost: draft.repost.filter(|repost| *repost), ..draft })
}

/// A post as the website gets it.
pub(super) fn website(item: &Value) -> Option<PostDraft> {
    let unwrapped = |item: &'_ Value| -> Value { item.get("tweet").unwrap_or(item).clone() };
    let tweet = unwrapped(item);
    let legacy = tweet.get("legacy")?;
    let reposted = legacy.get("retweeted_status_result").and_then(|found| found.get("result")).map(unwrapped);
    let whole = |tweet: &Value| {
        text_at(tweet, &["note_tweet", "note_tweet_results", "result", "text"])
            .or_else(|| text_at(tweet, &["legacy", "full_text"]))
    };
    Some(PostDraft {
        id: text_at(&tweet, &["rest_id"]).or_else(|| text_at(legacy, &["id_str"])),
        user: text_at(&tweet, &["core", "user_results", "result", "core", "screen_name"])
            .or_else(|| text_at(&tweet, &["core", "user_results", "result", "legacy", "screen_name"]))
            .or_else(|| text_at(&tweet, &["user", "screen_name"]))
            .or_else(|| text_at(legacy, &["user_id_str"])),
        time: text_at(legacy, &["created_at"]),
        text: reposted.as_ref().and_then(whole).or_else(|| whole(&tweet)),
        lang: text_at(legacy, &["lang"]),
        repost: Some(reposted.is_some()),
        repost_of: reposted.as_ref().and_then(|original| text_at(original, &["rest_id"])),
        ..PostDraft::default()
    })
}
