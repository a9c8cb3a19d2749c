//! Reddit: comments and submissions of its dumps and of its API.

use super::text_at;
use crate::post::PostDraft;
use crate::read::html;
use serde_json::Value;

/// What stands where a user or a moderator took something away.
const GONE: [&str; 2] = ["[deleted]", "[removed]"];

/// Whether this stands where the name of an account was; all accounts that are gone have it.
pub(crate) fn is_deleted(user: &str) -> bool {
    GONE.contains(&user.trim())
}

pub(super) fn fits(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some();
    has("author") && has("created_utc") && (has("body") || has("selftext") || has("title"))
}

pub(super) fn post(value: &Value) -> Option<PostDraft> {
    // The API wraps each in {"kind": …, "data": …}.
    let value = value.get("data").filter(|data| data.get("created_utc").is_some()).unwrap_or(value);
    let kept = |key: &str| {
        let text = text_at(value, &[key]).map(|text| html::entities(&text));
        text.filter(|text| !text.trim().is_empty() && !GONE.contains(&text.trim()))
    };
    let comment = value.get("body").is_some();
    let text = match (kept("body"), kept("title"), kept("selftext")) {
        (Some(body), ..) => Some(body),
        (None, Some(title), Some(text)) => Some(format!("{title}\n\n{text}")),
        (None, title, text) => title.or(text).filter(|_| !comment),
    };
    let user = text_at(value, &["author"])?;
    let prefix = if comment { "t1" } else { "t3" };
    let id = text_at(value, &["name"]).or_else(|| Some(format!("{prefix}_{}", text_at(value, &["id"])?)));
    let crossposted = text_at(value, &["crosspost_parent"]).filter(|parent| !parent.is_empty());
    Some(PostDraft {
        id,
        user: Some(user),
        time: text_at(value, &["created_utc"]),
        text,
        repost: Some(crossposted.is_some()),
        repost_of: crossposted,
        ..PostDraft::default()
    })
}
