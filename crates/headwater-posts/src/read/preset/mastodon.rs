//! Mastodon: statuses as the API returns them, also those of Truth Social and Gab, and the outbox of an archive.

use super::{text, text_at};
use crate::post::PostDraft;
use crate::read::html;
use serde_json::Value;

pub(super) fn fits(value: &Value) -> bool {
    let account = value.get("account");
    let status = value.get("content").is_some()
        && account.is_some_and(|account| account.get("acct").is_some() || account.get("username").is_some());
    let activity = value.get("actor").and_then(Value::as_str).is_some()
        && value.get("object").is_some()
        && matches!(value.get("type").and_then(Value::as_str), Some("Create" | "Announce"));
    status || activity
}

pub(super) fn post(value: &Value) -> Option<PostDraft> {
    if value.get("actor").is_some() { activity(value) } else { status(value) }
}

fn status(status: &Value) -> Option<PostDraft> {
    status.get("account").or_else(|| status.get("content"))?;
    let reposted = status.get("reblog").filter(|original| original.is_object());
    let said = reposted.unwrap_or(status);
    Some(PostDraft {
        // The same status has another id on every server, but one address.
        id: address(status),
        user: text_at(status, &["account", "acct"]).or_else(|| text_at(status, &["account", "username"])),
        time: text_at(status, &["created_at"]),
        text: words(said, "spoiler_text"),
        lang: text_at(said, &["language"]),
        repost: Some(reposted.is_some()),
        repost_of: reposted.and_then(address),
        ..PostDraft::default()
    })
}

fn address(status: &Value) -> Option<String> {
    text_at(status, &["uri"]).or_else(|| text_at(status, &["id"]))
}

/// An activity of an outbox: a note that was written, or one that was boosted, mostly by its address alone.
fn activity(activity: &Value) -> Option<PostDraft> {
    let object = activity.get("object")?;
    let repost = match activity.get("type").and_then(Value::as_str)? {
        "Create" => false,
        "Announce" => true,
        _ => return None,
    };
    let language = object.get("contentMap").and_then(Value::as_object).and_then(|texts| texts.keys().next());
    let original = text(object).or_else(|| text_at(object, &["id"]));
    Some(PostDraft {
        id: if repost { text_at(activity, &["id"]) } else { original.clone() },
        user: activity.get("actor").and_then(Value::as_str).map(account_of),
        time: text_at(activity, &["published"]).or_else(|| text_at(object, &["published"])),
        text: words(object, "summary"),
        lang: language.cloned(),
        repost: Some(repost),
        repost_of: original.filter(|_| repost),
        ..PostDraft::default()
    })
}

/// The text without its HTML, after its warning, if any.
fn words(said: &Value, warning: &str) -> Option<String> {
    let warning = text_at(said, &[warning]).filter(|text| !text.is_empty());
    let content = text_at(said, &["content"]).map(|content| html::plain(&content))?;
    Some(match warning {
        Some(warning) => format!("{warning}\n\n{content}"),
        None => content,
    })
}

/// `ann@server` of `https://server/users/ann`.
fn account_of(actor: &str) -> String {
    let parts = actor.split_once("://").map(|(_, rest)| rest).and_then(|rest| rest.split_once('/'));
    match parts {
        Some((server, path)) => {
            let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
            format!("{}@{server}", name.trim_start_matches('@'))
        }
        None => actor.to_owned(),
    }
}
