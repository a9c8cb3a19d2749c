//! Telegram: messages of `result.json`, which its desktop program exports.

use super::{text, text_at};
use crate::post::PostDraft;
use crate::read::document::CHAT;
use serde_json::Value;

pub(super) fn fits(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some();
    matches!(value.get("type").and_then(Value::as_str), Some("message" | "service"))
        && has("id")
        && (has("date") || has("date_unixtime"))
        && (has("from_id") || has("from") || has("actor") || has("actor_id") || has(CHAT))
}

pub(super) fn post(message: &Value) -> Option<PostDraft> {
    // Calls, joins and pins.
    if message.get("type").and_then(Value::as_str) != Some("message") {
        return None;
    }
    let chat = text_at(message, &[CHAT, "id"]);
    let forwarded = message.get("forwarded_from").or_else(|| message.get("forwarded_from_id"));
    // Deleted accounts have a number and no name.
    let (name, number) = (text_at(message, &["from"]), text_at(message, &["from_id"]));
    Some(PostDraft {
        id: text_at(message, &["id"]).map(|id| format!("{}/{id}", chat.as_deref().unwrap_or_default())),
        user: name.or_else(|| number.clone()).or_else(|| text_at(message, &[CHAT, "name"])),
        user_id: number,
        time: text_at(message, &["date_unixtime"]).or_else(|| text_at(message, &["date"])),
        text: message.get("text").and_then(joined).or_else(|| message.get("text_entities").and_then(joined)),
        repost: Some(forwarded.is_some()),
        ..PostDraft::default()
    })
}

/// A text, or a list of texts and of links, mentions and the like with their texts.
fn joined(value: &Value) -> Option<String> {
    let words = match value {
        Value::Array(parts) => {
            parts.iter().filter_map(|part| text(part).or_else(|| text_at(part, &["text"]))).collect::<String>()
        }
        other => text(other)?,
    };
    Some(words).filter(|words| !words.trim().is_empty())
}
