//! Data quality: what came in, what was left out and why, and how much each user says.

use crate::Error;
use crate::bin::CLIP;
use crate::read::{Encoding, Preset};
use crate::select::Dropped;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// How many rows may be unreadable before the whole file is doubted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum MaxBad {
    /// More than 100 and more than 1 %: a handful in a small file, or a few per mille of a large one, are let pass.
    #[default]
    Either,
    /// A number of rows.
    Count(u64),
    /// A share of the rows.
    Share(f64),
}

/// So many rows, most of them bad, say enough to stop before the end.
const ENOUGH: u64 = 10_000;

impl FromStr for MaxBad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_suffix('%').map(|number| number.trim().parse::<f64>());
        match (percent, text.parse()) {
            (Some(Ok(percent)), _) if (0.0..=100.0).contains(&percent) => Ok(MaxBad::Share(percent / 100.0)),
            (None, Ok(count)) => Ok(MaxBad::Count(count)),
            _ => Err(format!("found {text:?}; expected a share such as 1%, or a number of rows")),
        }
    }
}

impl std::fmt::Display for MaxBad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MaxBad::Either => write!(f, "100 rows and 1%"),
            MaxBad::Count(count) => write!(f, "{count}"),
            MaxBad::Share(share) => write!(f, "{}%", share * 100.0),
        }
    }
}

impl MaxBad {
    /// Whether this is too much, among all rows.
    pub fn exceeded(self, bad: u64, rows: u64) -> bool {
        match self {
            MaxBad::Either => bad > 100 && bad as f64 > 0.01 * rows as f64,
            MaxBad::Count(count) => bad > count,
            MaxBad::Share(share) => bad as f64 > share * rows as f64,
        }
    }

    /// Whether it is so bad that the rest need not be read.
    pub fn hopeless(self, bad: u64, rows: u64) -> bool {
        let most = rows >= ENOUGH && bad > rows / 2;
        self.exceeded(bad, rows) && (most || matches!(self, MaxBad::Count(_)))
    }
}

/// What came in and what became of it. Rows = rejected + posts; posts = duplicates + updates + dropped +
/// kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Quality {
    /// Posts met, readable or not.
    pub rows: u64,
    /// Of these, unreadable.
    pub rejected: u64,
    /// Lines of a preset's file that hold something else than posts.
    pub other_lines: u64,
    /// Of these, posts of accounts that were deleted: they have no name, and are not one account.
    #[serde(skip_serializing_if = "is_zero")]
    pub deleted_accounts: u64,
    /// Platforms whose files were recognised without being told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recognised: Vec<Preset>,
    /// Encodings that were met and decoded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decoded: Vec<Encoding>,
    /// Posts read.
    pub posts: u64,
    /// Of these, reposts that only their text makes so: it begins with `RT @name`.
    pub reposts_by_text: u64,
    /// Reposts of posts that were not read before them, so that nobody knows what they say; they are no posts read.
    pub reposts_without_text: u64,
    /// Posts whose id was read before.
    pub duplicates: u64,
    /// New wordings of posts that were read before; the first stands.
    pub updates: u64,
    /// Posts left out, by reason.
    pub dropped: Dropped,
    /// Posts that make up the beliefs.
    pub kept: u64,
    /// Of these, without a mark of their language, where a language was asked for.
    pub unmarked: u64,
    /// Opinions that were clipped.
    pub clipped: u64,
    /// Users that were kept.
    pub users: usize,
    /// Users asked for by name of whom there is no post.
    pub absent_users: usize,
    /// Users left out because they posted too rarely.
    pub rare_users: usize,
    /// Bins from the first to the last, silent ones included.
    pub bins: u64,
    /// Rows of the beliefs before silence is filled.
    pub beliefs: u64,
    /// Share of (user, bin) pairs without a post.
    pub silent_share: f64,
    /// Silent pairs that were filled by carrying opinions forward.
    pub carried_forward: u64,
    /// First post that was kept.
    pub first: String,
    /// Last post that was kept.
    pub last: String,
    /// User by user, in order of first appearance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_user: Vec<UserQuality>,
    /// What should be known of the beliefs; not part of the summary's JSON, which has the numbers.
    #[serde(skip)]
    pub warnings: Vec<IngestWarning>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How much a user says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserQuality {
    /// The name.
    pub user: String,
    /// Posts kept.
    pub posts: u64,
    /// Bins with at least one.
    pub bins: u64,
    /// Share of the bins without.
    pub silent_share: f64,
    /// First post kept.
    pub first: String,
    /// Last post kept.
    pub last: String,
}

/// Why posts are not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LossReason {
    /// Lines of a preset's file that hold no post.
    OtherLines,
    /// Rows that cannot be read.
    Unreadable,
    /// Copies of another post.
    Duplicates,
    /// New wordings of another post.
    Updates,
    /// Users that were not asked for.
    Users,
    /// Outside the dates.
    Dates,
    /// Marked with another language.
    Language,
    /// Reposts.
    Reposts,
    /// Off topic.
    Topic,
    /// Users with too few posts.
    MinPosts,
}

/// What should be known of beliefs before they are used. Its text names no option: callers add how to avoid it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum IngestWarning {
    /// The built-in scorer was given other languages than English.
    ForeignLanguages,
    /// Posts marked with another language than English were left out, although no language was asked for.
    OtherLanguages {
        /// How many.
        posts: u64,
    },
    /// Users that were asked for by name have no post that is left.
    AbsentUsers {
        /// How many.
        users: usize,
    },
    /// A text was not UTF-8, and was decoded.
    Decoded {
        /// From what.
        encoding: Encoding,
    },
    /// All times lie within days of 1970: they may be plain numbers.
    SmallTimes,
    /// Many opinions were clipped.
    Clipped {
        /// How many.
        opinions: u64,
        /// Their share of all.
        share: f64,
    },
}

impl std::fmt::Display for IngestWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |number: u64, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
        match self {
            IngestWarning::ForeignLanguages => {
                write!(f, "the built-in scorer reads English; its opinion of other languages is noise")
            }
            IngestWarning::OtherLanguages { posts } => {
                write!(f, "{} marked with another language than English left out", count(*posts, "post"))
            }
            IngestWarning::AbsentUsers { users } => {
                write!(f, "{} asked for: no post of theirs is left", count(*users as u64, "user"))
            }
            IngestWarning::Decoded { encoding } => {
                write!(f, "the posts are not UTF-8 text; they were read as {encoding}")
            }
            IngestWarning::SmallTimes => {
                write!(f, "all times lie within days of 1970-01-01; they may be plain numbers, not seconds")
            }
            IngestWarning::Clipped { opinions, share } => write!(
                f,
                "{} ({:.1}%) clipped to stay {CLIP} away from certainty; scores this sure may be rounded",
                count(*opinions, "opinion"),
                100.0 * share
            ),
        }
    }
}

impl Quality {
    /// Nothing is left, and why.
    pub(crate) fn nothing_left(&self, spoken: Option<(String, String)>) -> Error {
        let (reasons, main) = self.reasons(spoken);
        let reasons = reasons.unwrap_or_else(|| "there is a header at most".to_owned());
        // Where there is no post at all, what there is instead is counted.
        let rows = if self.rows == 0 { self.other_lines } else { self.rows };
        Error::NothingLeft { rows, reasons, main }
    }

    /// One user is left, and where the others went.
    pub(crate) fn one_left(&self, user: &str, spoken: Option<(String, String)>) -> Error {
        let (reasons, main) = self.reasons(spoken);
        let reasons = reasons.unwrap_or_else(|| "nobody else is in the file".to_owned());
        Error::OneUser { user: user.to_owned(), rows: self.rows, reasons, main }
    }

    /// Where posts went, in words, and the reason for most of them.
    fn reasons(&self, spoken: Option<(String, String)>) -> (Option<String>, Option<LossReason>) {
        let ran = spoken.map_or(String::new(), |(first, last)| format!(" (posts run from {first} to {last})"));
        let dropped = &self.dropped;
        // Other lines are nothing to speak of where there are posts, too.
        let other_lines = if self.rows == 0 { self.other_lines } else { 0 };
        let reasons = [
            (other_lines, "that hold something else".to_owned(), LossReason::OtherLines),
            (self.rejected, "unreadable".to_owned(), LossReason::Unreadable),
            (self.duplicates, "copies of another".to_owned(), LossReason::Duplicates),
            (self.updates, "new wordings of another".to_owned(), LossReason::Updates),
            (dropped.user, "by users not asked for".to_owned(), LossReason::Users),
            (dropped.window, format!("outside the dates{ran}"), LossReason::Dates),
            (dropped.language, "marked with another language".to_owned(), LossReason::Language),
            (dropped.repost, "reposted".to_owned(), LossReason::Reposts),
            (dropped.topic, "about something else".to_owned(), LossReason::Topic),
            (dropped.min_posts, "by users with too few posts".to_owned(), LossReason::MinPosts),
        ];
        let told: Vec<String> =
            reasons.iter().filter(|(count, ..)| *count > 0).map(|(count, why, _)| format!("{count} {why}")).collect();
        let main = reasons.iter().max_by_key(|(count, ..)| *count).filter(|(count, ..)| *count > 0);
        ((!told.is_empty()).then(|| told.join(", ")), main.map(|(.., reason)| *reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_bad_rows() {
        assert_eq!("1%".parse(), Ok(MaxBad::Share(0.01)));
        assert_eq!("7".parse(), Ok(MaxBad::Count(7)));
        for wrong in ["", "%", "-1", "101%", "a few", "NaN%"] {
            assert!(wrong.parse::<MaxBad>().is_err(), "{wrong}");
        }
        let either = MaxBad::default();
        assert!(!either.exceeded(100, 100) && either.exceeded(101, 101) && !either.exceeded(101, 10_100));
        assert!(MaxBad::Share(0.01).exceeded(1, 50) && !MaxBad::Share(0.01).exceeded(1, 100));
        assert!(MaxBad::Count(0).exceeded(1, 1_000_000) && !MaxBad::Count(0).exceeded(0, 10));
        assert!(!either.hopeless(5000, 5000) && either.hopeless(5001, 10_000));
        assert_eq!(format!("{either}, {}, {}", MaxBad::Share(0.01), MaxBad::Count(3)), "100 rows and 1%, 1%, 3");
    }
}
