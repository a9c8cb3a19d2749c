//! One post, and its fields while they are still text.

use crate::given::Given;
use crate::read::RecordPlace;

/// One post.
#[derive(Debug, Clone, PartialEq)]
pub struct Post {
    /// Its number or address on the platform, by which copies are known.
    pub id: Option<String>,
    /// Who said it.
    pub user: String,
    /// When, in seconds since 1970, or in millionths of a unit where times are plain numbers.
    pub time: i64,
    /// What.
    pub text: String,
    /// The language it is marked with.
    pub lang: Option<String>,
    /// Whether it repeats somebody else's post.
    pub repost: bool,
    /// Whether it is a new wording of a post that was there before.
    pub update: bool,
    /// The user's own score, where that was asked for.
    pub given: Option<Given>,
    /// Where it stands.
    pub place: RecordPlace,
}

/// The fields of a post, still as text.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "as in Post")]
pub struct PostDraft {
    pub id: Option<String>,
    pub user: Option<String>,
    /// What the platform numbers the user with, where names need not be unique.
    pub user_id: Option<String>,
    pub time: Option<String>,
    pub text: Option<String>,
    pub lang: Option<String>,
    /// `None` where nothing but the text says so.
    pub repost: Option<bool>,
    /// The `id` of the post that it repeats.
    pub repost_of: Option<String>,
    pub update: bool,
    pub scores: Scores,
}

/// Score columns, still as text: `score`, or the three classes.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Scores {
    pub score: Option<String>,
    pub negative: Option<String>,
    pub neutral: Option<String>,
    pub positive: Option<String>,
}
