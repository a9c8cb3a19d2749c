//! Zeeschuimer: what a browser extension saw of a platform's website, one item per line.

use super::{mastodon, text_at, x};
use crate::post::PostDraft;
use serde_json::Value;

/// The platform of an item and what the platform sent. 4CAT keeps the former in `__import_meta` and the latter as the item.
fn parts(value: &Value) -> Option<(String, &Value)> {
    let (platform, data) = match value.get("__import_meta") {
        Some(meta) => (text_at(meta, &["source_platform"])?, value),
        None => (text_at(value, &["source_platform"])?, value.get("data").filter(|data| data.is_object())?),
    };
    Some((platform.trim_start_matches("www.").to_ascii_lowercase(), data))
}

pub(super) fn fits(value: &Value) -> bool {
    parts(value).is_some()
}

pub(super) fn post(value: &Value) -> Option<Result<PostDraft, String>> {
    let (platform, data) = parts(value)?;
    let draft = match platform.as_str() {
        "twitter.com" | "x.com" => x::website(data),
        "tiktok.com" => tiktok(data),
        "tiktok-comments" | "tiktok.com/comments" => tiktok_comment(data),
        "threads.net" | "threads.com" | "instagram.com" => threads(data),
        "truthsocial.com" | "gab.com" => mastodon::post(data),
        _ => {
            return Some(Err(format!(
                "is an item of {platform}; expected X, TikTok, Threads, Instagram, Truth Social or Gab"
            )));
        }
    };
    draft.map(Ok)
}

fn tiktok(video: &Value) -> Option<PostDraft> {
    // Without a description there is nothing to read, but it is a post all the same.
    video.get("createTime")?;
    Some(PostDraft {
        id: text_at(video, &["id"]),
        user: text_at(video, &["author", "uniqueId"]).or_else(|| text_at(video, &["author"])),
        time: text_at(video, &["createTime"]),
        text: text_at(video, &["desc"]),
        lang: text_at(video, &["textLanguage"]),
        repost: Some(false),
        ..PostDraft::default()
    })
}

fn tiktok_comment(comment: &Value) -> Option<PostDraft> {
    Some(PostDraft {
        id: text_at(comment, &["cid"]),
        user: text_at(comment, &["user", "unique_id"]),
        time: text_at(comment, &["create_time"]),
        text: text_at(comment, &["text"]),
        lang: text_at(comment, &["comment_language"]),
        repost: Some(false),
        ..PostDraft::default()
    })
}

fn threads(post: &Value) -> Option<PostDraft> {
    post.get("taken_at")?;
    let shared = post.get("text_post_app_info").and_then(|info| info.get("share_info"));
    let reposted = shared.and_then(|info| info.get("reposted_post")).filter(|original| original.is_object());
    let number = |post: &Value| text_at(post, &["pk"]).or_else(|| text_at(post, &["id"]));
    Some(PostDraft {
        id: number(post).or_else(|| text_at(post, &["code"])),
        user: text_at(post, &["user", "username"]),
        time: text_at(post, &["taken_at"]),
        text: text_at(reposted.unwrap_or(post), &["caption", "text"]),
        repost: Some(reposted.is_some()),
        repost_of: reposted.and_then(number),
        ..PostDraft::default()
    })
}
