//! What is read, and which of it counts as what: the options of every job that starts from posts.

use crate::Error;
use crate::bin::Hypotheses;
use crate::calendar::Bin;
use crate::given::{ScoreRange, Wanted};
use crate::mapping::ColumnMapping;
use crate::quality::MaxBad;
use crate::read::{DateOrder, Preset, Records, expand};
use crate::select::{Moment, Selection, Topic, read_users, window};
use arrow_array::RecordBatch;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Where posts come from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PostsInput {
    /// Files, patterns such as `dump/*.csv`, or `-` for standard input.
    Files(Vec<PathBuf>),
    /// Tables in memory.
    Batches {
        /// What messages call them.
        name: PathBuf,
        /// The tables, one after another.
        batches: Vec<RecordBatch>,
    },
}

impl PostsInput {
    /// Opens the first of them.
    pub fn records(&self) -> Result<Records, Error> {
        match self {
            PostsInput::Files(names) => Records::open(names),
            PostsInput::Batches { name, batches } => Ok(Records::from_batches(batches.clone(), name)),
        }
    }

    /// The files behind the names; none for tables in memory.
    pub fn files(&self) -> Result<Vec<PathBuf>, Error> {
        match self {
            PostsInput::Files(names) => expand(names),
            PostsInput::Batches { .. } => Ok(Vec::new()),
        }
    }

    /// What messages call the posts.
    pub fn name(&self) -> &Path {
        match self {
            PostsInput::Files(names) => names.first().map_or(Path::new("posts"), PathBuf::as_path),
            PostsInput::Batches { name, .. } => name,
        }
    }
}

impl From<Vec<PathBuf>> for PostsInput {
    fn from(files: Vec<PathBuf>) -> Self {
        PostsInput::Files(files)
    }
}

impl From<&Path> for PostsInput {
    fn from(file: &Path) -> Self {
        PostsInput::Files(vec![file.to_owned()])
    }
}

impl From<Vec<RecordBatch>> for PostsInput {
    fn from(batches: Vec<RecordBatch>) -> Self {
        PostsInput::Batches { name: PathBuf::from("posts"), batches }
    }
}

/// Users who may count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum UserList {
    /// A CSV with a column `user`, or one name per line.
    File(PathBuf),
    /// Their names.
    Names(Vec<String>),
}

impl UserList {
    /// Their names, each once.
    pub fn read(&self) -> Result<HashSet<String>, Error> {
        match self {
            UserList::File(path) => read_users(path),
            UserList::Names(names) => {
                let names = names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).map(str::to_owned);
                let names: HashSet<String> = names.collect();
                if names.is_empty() {
                    return Err(Error::option("the list of users names no users"));
                }
                Ok(names)
            }
        }
    }
}

/// What says how positive a post is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ScorerChoice {
    /// [`headwater_score::Builtin`].
    #[default]
    Builtin,
    /// A text model, or any other scorer that the caller gives.
    Roberta,
    /// The posts' own columns: `score`, or `negative`, `neutral` and `positive`.
    Column,
}

/// Whether a repost is the reposter's opinion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reposts {
    /// It is.
    #[default]
    Keep,
    /// It is not: reposts are left out.
    Drop,
}

/// Which posts count, and as what.
///
/// | field | default | purpose |
/// |---|---|---|
/// | `topic` | none | posts must match one of these queries, `QUERY` or `QUERY@FROM..TO` |
/// | `since`, `until` | none | first and last day, in the time zone; numbers where times are plain numbers |
/// | `bin` | day | length of a bin |
/// | `timezone` | UTC | zone of bins and dates |
/// | `reposts` | keep | whether a repost is the reposter's opinion |
/// | `languages` | none | posts marked with another language are left out; English for the built-in scorer |
/// | `any_language` | no | posts in every language stay |
/// | `min_posts` | 1 | users with fewer posts are left out |
/// | `users` | everybody | users who may count |
/// | `hypotheses` | two | whether neutral is a state of its own |
/// | `scorer` | built-in | what says how positive a post is |
/// | `carry_forward` | no | users hold their last opinion where they say nothing |
/// | `score_range` | 0 to 1 | lowest and highest score of a column |
/// | `preset` | recognised | the platform the posts come from |
/// | `date_order` | none | whether the day or the month comes first in dates with the year last |
/// | `columns` | none | (field, column or key) where they are named differently |
/// | `max_bad` | 100 rows and 1 % | rows that may be unreadable |
///
/// ```
/// use headwater_posts::PostOptions;
/// let options = PostOptions { topic: vec!["tram*".into()], min_posts: 5, ..PostOptions::default() };
/// assert_eq!(options.languages_used(), ["en"]);
/// assert!(options.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the table says it")]
pub struct PostOptions {
    pub topic: Vec<String>,
    #[serde(serialize_with = "optional")]
    pub since: Option<Moment>,
    #[serde(serialize_with = "optional")]
    pub until: Option<Moment>,
    #[serde(serialize_with = "text")]
    pub bin: Bin,
    #[serde(serialize_with = "zone")]
    pub timezone: TimeZone,
    pub reposts: Reposts,
    pub languages: Vec<String>,
    pub any_language: bool,
    pub min_posts: u64,
    pub users: Option<UserList>,
    #[serde(serialize_with = "number")]
    pub hypotheses: Hypotheses,
    pub scorer: ScorerChoice,
    pub carry_forward: bool,
    #[serde(serialize_with = "optional")]
    pub score_range: Option<ScoreRange>,
    #[serde(serialize_with = "optional")]
    pub preset: Option<Preset>,
    #[serde(serialize_with = "optional")]
    pub date_order: Option<DateOrder>,
    pub columns: Vec<(String, String)>,
    #[serde(serialize_with = "text")]
    pub max_bad: MaxBad,
}

impl Default for PostOptions {
    fn default() -> Self {
        PostOptions {
            topic: Vec::new(),
            since: None,
            until: None,
            bin: Bin::Day,
            timezone: TimeZone::UTC,
            reposts: Reposts::Keep,
            languages: Vec::new(),
            any_language: false,
            min_posts: 1,
            users: None,
            hypotheses: Hypotheses::Two,
            scorer: ScorerChoice::Builtin,
            carry_forward: false,
            score_range: None,
            preset: None,
            date_order: None,
            columns: Vec::new(),
            max_bad: MaxBad::Either,
        }
    }
}

fn text<S: Serializer>(value: &impl std::fmt::Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn optional<S: Serializer>(value: &Option<impl std::fmt::Display>, to: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(ToString::to_string).serialize(to)
}

fn zone<S: Serializer>(zone: &TimeZone, to: S) -> Result<S::Ok, S::Error> {
    zone.iana_name().serialize(to)
}

fn number<S: Serializer>(hypotheses: &Hypotheses, to: S) -> Result<S::Ok, S::Error> {
    hypotheses.names().len().serialize(to)
}

/// Whether a topic holds for a while only.
fn has_dates(topic: &str) -> bool {
    topic.rsplit_once('@').is_some_and(|(_, range)| range.contains(".."))
}

impl PostOptions {
    /// The languages that stay; all where there are none.
    pub fn languages_used(&self) -> Vec<String> {
        match self.scorer {
            _ if !self.languages.is_empty() => self.languages.clone(),
            ScorerChoice::Builtin if !self.any_language => vec!["en".to_owned()],
            _ => Vec::new(),
        }
    }

    /// The options with what was decided for the caller: the languages.
    pub fn as_used(&self) -> PostOptions {
        PostOptions { languages: self.languages_used(), ..self.clone() }
    }

    /// Whether English was chosen for the caller.
    pub(crate) fn english_by_default(&self) -> bool {
        self.languages.is_empty() && !self.languages_used().is_empty()
    }

    /// Whether the built-in scorer is given languages that it does not read.
    pub(crate) fn foreign_languages(&self) -> bool {
        let english = |lang: &String| lang.to_ascii_lowercase().starts_with("en");
        self.scorer == ScorerChoice::Builtin && (self.any_language || !self.languages_used().iter().all(english))
    }

    /// Checks topics, dates and columns before anything is read.
    ///
    /// # Errors
    /// [`Error::Query`], [`Error::Option`], [`Error::PresetAndColumns`].
    pub fn check(&self) -> Result<(), Error> {
        self.selection()?;
        self.mapping()?;
        if self.score_range.is_some() && self.scorer != ScorerChoice::Column {
            return Err(Error::UnusedScoreRange);
        }
        let limits = || [self.since, self.until].into_iter().flatten();
        if self.bin.is_numeric() {
            if limits().any(|limit| !limit.is_numeric()) || self.topic.iter().any(|topic| has_dates(topic)) {
                return Err(Error::option(
                    "dates cannot limit posts whose times are plain numbers; give numbers, or leave them out",
                ));
            }
        } else if let Some(limit) = limits().find(|limit| limit.is_numeric()) {
            return Err(Error::option(format!(
                "{limit} is a plain number, but times are dates here; give a date such as 2024-05-01, or bins as plain numbers"
            )));
        }
        Ok(())
    }

    /// Which posts stay, users aside.
    pub(crate) fn selection(&self) -> Result<Selection, Error> {
        let topics = self.topic.iter().map(|topic| Topic::parse(topic, &self.timezone)).collect::<Result<_, _>>()?;
        Ok(Selection {
            topics,
            window: window(self.since, self.until, &self.timezone)?,
            languages: self.languages_used(),
            reposts: self.reposts == Reposts::Keep,
            users: None,
        })
    }

    /// Which column is which field.
    pub(crate) fn mapping(&self) -> Result<ColumnMapping, Error> {
        let mut mapping = ColumnMapping::new(self.preset, &self.columns)?;
        if let Some(order) = self.date_order {
            mapping = mapping.with_date_order(order);
        }
        if let Some(range) = self.score_range {
            mapping = mapping.with_score_range(range);
        }
        if self.bin.is_numeric() {
            mapping = mapping.with_numeric_times();
        }
        if self.scorer == ScorerChoice::Column {
            let three = self.hypotheses == Hypotheses::Three;
            mapping = mapping.with_scores(if three { Wanted::Classes } else { Wanted::Either });
            if self.topic.is_empty() {
                mapping = mapping.without_text();
            }
        }
        Ok(mapping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_recorded_as_used() {
        let options = PostOptions {
            since: Some("2024-05-01".parse().unwrap()),
            until: Some("2024-05-02T12:00:00Z".parse().unwrap()),
            bin: "6h".parse().unwrap(),
            timezone: TimeZone::get("Europe/Berlin").unwrap(),
            hypotheses: Hypotheses::Three,
            preset: Some(Preset::FourCat),
            columns: vec![("text".into(), "body".into())],
            users: Some(UserList::Names(vec!["ann".into()])),
            ..PostOptions::default()
        };
        let found = serde_json::to_value(options.as_used()).unwrap();
        let wanted = serde_json::json!({
            "topic": [], "since": "2024-05-01", "until": "2024-05-02T12:00:00Z", "bin": "6h", "timezone": "Europe/Berlin",
            "reposts": "keep", "languages": ["en"], "any_language": false, "min_posts": 1, "users": ["ann"],
            "hypotheses": 3, "scorer": "builtin", "carry_forward": false, "score_range": null,
            "preset": "4cat", "date_order": null, "columns": [["text", "body"]],
            "max_bad": "100 rows and 1%",
        });
        assert_eq!(found, wanted);
    }

    #[test]
    fn contradictions_are_found_before_anything_is_read() {
        let refused = |options: PostOptions| options.check().unwrap_err();
        let columns = vec![("text".to_owned(), "body".to_owned())];
        let both = PostOptions { preset: Some(Preset::XV2), columns, ..PostOptions::default() };
        assert!(matches!(refused(both), Error::PresetAndColumns { preset: Preset::XV2 }));
        let topic = PostOptions { topic: vec!["(".into()], ..PostOptions::default() };
        assert!(matches!(refused(topic), Error::Query { .. }));
        let range = PostOptions { score_range: Some("-1..1".parse().unwrap()), ..PostOptions::default() };
        assert!(matches!(refused(range), Error::UnusedScoreRange));
        let dated =
            PostOptions { bin: "1".parse().unwrap(), topic: vec!["a@2024-01-01..".into()], ..PostOptions::default() };
        assert!(refused(dated).to_string().contains("plain numbers"));
        let limited = |bin: &str, since: &str| PostOptions {
            bin: bin.parse().unwrap(),
            since: Some(since.parse().unwrap()),
            ..PostOptions::default()
        };
        assert!(limited("1", "3.5").check().is_ok() && limited("day", "2024-05-01").check().is_ok());
        assert!(refused(limited("1", "2024-05-01")).to_string().contains("plain numbers"));
        assert!(refused(limited("day", "3.5")).to_string().contains("3.5 is a plain number"));
        assert!(UserList::Names(vec![" ".into()]).read().is_err());
        assert!(PostOptions { any_language: true, ..PostOptions::default() }.foreign_languages());
        assert!(!PostOptions { languages: vec!["en-GB".into()], ..PostOptions::default() }.foreign_languages());
    }
}
