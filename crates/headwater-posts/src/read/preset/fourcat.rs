//! 4CAT: one CSV for every data source, with columns that differ from source to source.

use crate::post::PostDraft;
use crate::read::{ColumnNames, html};

/// Columns by field, the better first: where a cell is empty the next stands in.
pub(super) const COLUMNS: &[(&str, &[&str])] = &[
    // Telegram's `author` is a number; `author_username` is empty where an account has none.
    ("user", &["author_username", "author", "account_username", "author_name", "author_id", "account_id"]),
    ("time", &["unix_timestamp", "timestamp", "created_at"]),
    ("text", &["body"]),
    ("lang", &["language_guess", "languages", "language", "lang"]),
    (
        "repost",
        &[
            "is_retweet",
            "is_repost",
            "is_reblog",
            "is_boost",
            "author_forwarded_from_name",
            "author_forwarded_from_username",
            "author_forwarded_from_id",
        ],
    ),
];

pub(super) fn fits(columns: &ColumnNames) -> bool {
    let has = |name: &&str| columns.position(name).is_some();
    has(&"body")
        && ["author", "account_username", "author_username"].iter().any(has)
        && ["timestamp", "unix_timestamp", "created_at"].iter().any(has)
        && ["thread_id", "id"].iter().any(has)
}

/// What some sources write into cells.
pub(super) fn polish(draft: &mut PostDraft) {
    // Truth Social's and Gab's texts are HTML.
    if let Some(text) = draft.text.as_mut().filter(|text| text.contains("</p>") || text.contains("<br")) {
        *text = html::plain(text);
    }
    // Bluesky's languages are a list, or N/A.
    let first = draft.lang.take().and_then(|langs| langs.split(',').next().map(|lang| lang.trim().to_owned()));
    draft.lang = first.filter(|lang| lang != "N/A");
}
