//! Selection: a post in, why it is left out (or that it stays) out.
//!
//! In this order, and a post is counted under the first that applies: copies of an id and new wordings of it, users, dates, language, reposts,
//! topics. The number of posts a user needs can only be checked at the end, by [`crate::ingest`].

use crate::Error;
use crate::platform::hashed_id;
use crate::post::Post;
use crate::query::{Query, Text};
use crate::read::{MILLIONTHS, open_text};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

/// A date in the zone of the bins, or an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The whole day.
    Date(Date),
    /// One second.
    Instant(Timestamp),
    /// A number, where times are plain numbers; in millionths of their unit.
    Number(i64),
}

impl Moment {
    /// Whether it is a plain number.
    pub fn is_numeric(self) -> bool {
        matches!(self, Moment::Number(_))
    }
}

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        // An RFC 3339 instant reads as a date, too; what has a time of day is none.
        if let Ok(instant) = text.parse() {
            return Ok(Moment::Instant(instant));
        }
        if let Some(date) = text.parse().ok().filter(|_| text.len() <= "-009999-01-01".len()) {
            return Ok(Moment::Date(date));
        }
        let number = text.parse::<f64>().ok().map(|number| (number * MILLIONTHS).round());
        let number = number.filter(|number| number.abs() <= LARGEST_NUMBER).map(|number| Moment::Number(number as i64));
        number.ok_or_else(|| {
            format!("found {text:?}; expected a date such as 2024-05-01, or a number where times are plain numbers")
        })
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Moment::Date(date) => write!(f, "{date}"),
            Moment::Instant(instant) => write!(f, "{instant}"),
            Moment::Number(number) => write!(f, "{}", *number as f64 / MILLIONTHS),
        }
    }
}

/// The largest number that a time may be limited by, in millionths.
const LARGEST_NUMBER: f64 = 1e18;

/// Seconds, or millionths of plain numbers, from `from` to `to`, both included.
pub fn window(from: Option<Moment>, to: Option<Moment>, zone: &TimeZone) -> Result<Range<i64>, Error> {
    let out_of_range = |error: jiff::Error| Error::option(format!("the date is out of range: {error}"));
    let start_of =
        |date: Date| date.to_zoned(zone.clone()).map(|zoned| zoned.timestamp().as_second()).map_err(out_of_range);
    let start = match from {
        None => i64::MIN,
        Some(Moment::Date(date)) => start_of(date)?,
        Some(Moment::Instant(instant)) => instant.as_second(),
        Some(Moment::Number(number)) => number,
    };
    let end = match to {
        None => i64::MAX,
        Some(Moment::Date(date)) => match date.tomorrow() {
            Ok(next) => start_of(next)?,
            Err(_) => i64::MAX,
        },
        Some(Moment::Instant(instant)) => instant.as_second() + 1,
        Some(Moment::Number(number)) => number + 1,
    };
    if start >= end {
        return Err(Error::option("the limits are the wrong way round: the first is after the last"));
    }
    Ok(start..end)
}

/// A query and when it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Topic {
    query: Query,
    window: Range<i64>,
}

impl Topic {
    /// Reads `query` or `query@from..to`, where either date may be missing.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self, Error> {
        let (query, range) = match text.rsplit_once('@') {
            Some((query, range)) if range.contains("..") => (query, Some(range)),
            _ => (text, None),
        };
        let window = match range {
            None => i64::MIN..i64::MAX,
            Some(range) => {
                let wrong = |offset: usize, problem: String| Error::Query {
                    query: text.to_owned(),
                    column: query.chars().count() + 2 + offset,
                    problem,
                };
                let (from, to) = range.split_once("..").unwrap_or_default();
                let moment = |text: &str, offset: usize| match text.trim() {
                    "" => Ok(None),
                    date => match date.parse().map_err(|problem| wrong(offset, problem))? {
                        // A topic is limited by dates only.
                        Moment::Number(_) => {
                            Err(wrong(offset, format!("found {date:?}; expected a date such as 2024-05-01")))
                        }
                        moment => Ok(Some(moment)),
                    },
                };
                let (from, to) = (moment(from, 0)?, moment(to, from.chars().count() + 2)?);
                window(from, to, zone).map_err(|error| wrong(0, error.to_string()))?
            }
        };
        let query = Query::parse(query).map_err(|error| match error {
            // The caret stands under the topic as it was given.
            Error::Query { column, problem, .. } => Error::Query { query: text.to_owned(), column, problem },
            other => other,
        })?;
        Ok(Topic { query, window })
    }
}

/// Reads a list of users: a CSV with a column `user`, or one name per line.
pub fn read_users(path: &Path) -> Result<HashSet<String>, Error> {
    let (head, stream) = open_text(path)?;
    let delimiter = crate::read::csv::delimiter(&head);
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).has_headers(false).from_reader(stream);
    let mut names = HashSet::new();
    let mut column = None;
    for record in reader.records() {
        let record = record.map_err(|error| Error::file(path, format!("is not a list of users: {error}")))?;
        let position = match column {
            Some(position) => position,
            None => {
                let found = record.iter().position(|name| name.trim() == "user");
                if found.is_none() && record.len() > 1 {
                    let found = headwater::words::list(record.iter());
                    let problem =
                        format!("there is no column \"user\" among {found}; expected one, or one name per line");
                    return Err(Error::file(path, problem));
                }
                column = Some(found.unwrap_or(0));
                if found.is_some() {
                    continue;
                }
                0
            }
        };
        let name = record.get(position).unwrap_or_default().trim();
        if !name.is_empty() {
            names.insert(name.to_owned());
        }
    }
    if names.is_empty() {
        return Err(Error::file(path, "names no users; expected a column \"user\", or one name per line"));
    }
    Ok(names)
}

/// Which posts stay.
#[derive(Debug, Clone)]
pub struct Selection {
    /// One of these must match, if there are any.
    pub topics: Vec<Topic>,
    /// Seconds since 1970.
    pub window: Range<i64>,
    /// Posts marked with another language are left out; posts without a mark stay.
    pub languages: Vec<String>,
    /// Whether reposts count as the reposter's opinion.
    pub reposts: bool,
    /// Only these.
    pub users: Option<HashSet<String>>,
}

impl Default for Selection {
    fn default() -> Self {
        Selection { topics: Vec::new(), window: i64::MIN..i64::MAX, languages: Vec::new(), reposts: true, users: None }
    }
}

/// Posts left out, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dropped {
    /// By users that were not asked for.
    pub user: u64,
    /// Before or after the dates.
    pub window: u64,
    /// Marked with another language.
    pub language: u64,
    /// Somebody else's words.
    pub repost: u64,
    /// About something else.
    pub topic: u64,
    /// By users with too few posts.
    pub min_posts: u64,
}

impl Dropped {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.user + self.window + self.language + self.repost + self.topic + self.min_posts
    }
}

/// Applies a [`Selection`] to one post after another.
#[derive(Debug)]
pub struct Selector {
    selection: Selection,
    /// Hashes of the ids met: 64 bits each, so that ten million ids take a tenth of a gigabyte. Among so many, the
    /// chance that any two different ones coincide is 3 in a million.
    seen: HashSet<u64>,
    /// Posts whose id was read before.
    pub duplicates: u64,
    /// New wordings of posts that were read before; the first stands.
    pub updates: u64,
    /// What else was left out.
    pub dropped: Dropped,
    /// Posts without a language mark that stayed although a language was asked for.
    pub unmarked: u64,
}

impl Selector {
    /// That has seen nothing.
    pub fn new(selection: Selection) -> Self {
        Selector {
            selection,
            seen: HashSet::new(),
            duplicates: 0,
            updates: 0,
            dropped: Dropped::default(),
            unmarked: 0,
        }
    }

    /// Wants these users as well, where not all are wanted.
    pub(crate) fn admit(&mut self, users: impl IntoIterator<Item = String>) {
        if let Some(wanted) = &mut self.selection.users {
            wanted.extend(users);
        }
    }

    /// Whether a post stays; counts it if not.
    pub fn keep(&mut self, post: &Post) -> bool {
        let selection = &self.selection;
        let repeated = post.id.as_deref().is_some_and(|id| !self.seen.insert(hashed_id(id)));
        let counter = if repeated && post.update {
            &mut self.updates
        } else if repeated {
            &mut self.duplicates
        } else if selection.users.as_ref().is_some_and(|users| !users.contains(&post.user)) {
            &mut self.dropped.user
        } else if !selection.window.contains(&post.time) {
            &mut self.dropped.window
        } else if !selection.languages.is_empty() && !self.speaks(post) {
            &mut self.dropped.language
        } else if post.repost && !selection.reposts {
            &mut self.dropped.repost
        } else if !selection.topics.is_empty() && !self.about(post) {
            &mut self.dropped.topic
        } else {
            self.unmarked += u64::from(!selection.languages.is_empty() && marked(post).is_none());
            return true;
        };
        *counter += 1;
        false
    }

    fn speaks(&self, post: &Post) -> bool {
        let Some(mark) = marked(post) else { return true };
        // en also stands for en-US and en_GB.
        let general = mark.split(['-', '_']).next().unwrap_or(mark);
        let languages = &self.selection.languages;
        languages.iter().any(|wanted| wanted.eq_ignore_ascii_case(mark) || wanted.eq_ignore_ascii_case(general))
    }

    fn about(&self, post: &Post) -> bool {
        let mut text = None;
        let topics = self.selection.topics.iter().filter(|topic| topic.window.contains(&post.time));
        topics.into_iter().any(|topic| topic.query.matches(text.get_or_insert_with(|| Text::new(&post.text))))
    }
}

/// The language a post is marked with; X's marks for no language at all are none.
fn marked(post: &Post) -> Option<&str> {
    const NONE: [&str; 9] = ["und", "zxx", "mul", "mis", "qme", "qst", "qht", "qam", "qct"];
    post.lang.as_deref().filter(|lang| !NONE.contains(lang))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::RecordPlace;
    use std::sync::Arc;

    fn post(text: &str, time: &str) -> Post {
        Post {
            id: None,
            user: "ann".into(),
            time: crate::read::parse_time(time).unwrap(),
            text: text.into(),
            lang: None,
            repost: false,
            update: false,
            given: None,
            place: RecordPlace { file: Arc::from(Path::new("p")), line: 1 },
        }
    }

    fn topic(text: &str) -> Topic {
        Topic::parse(text, &TimeZone::UTC).unwrap()
    }

    #[test]
    fn topics_hold_for_a_while() {
        let topics = vec![topic("trump@2017-01-01..2021-01-19"), topic("biden@2021-01-20..")];
        let mut selector = Selector::new(Selection { topics, ..Selection::default() });
        assert!(selector.keep(&post("Trump", "2021-01-19T23:59:59Z")));
        assert!(!selector.keep(&post("Trump", "2021-01-20T00:00:00Z")));
        assert!(!selector.keep(&post("Trump", "2016-12-31T23:59:59Z")));
        assert!(selector.keep(&post("Biden", "2021-01-20T00:00:00Z")));
        assert_eq!(selector.dropped, Dropped { topic: 2, ..Dropped::default() });
        let said = |text: &str| Topic::parse(text, &TimeZone::UTC).unwrap_err().to_string();
        assert!(said("biden@2021..").starts_with("topic, column 7: found \"2021\""));
        assert!(said("biden@2021-02-01..2021-01-01").contains("wrong way round"));
        assert!(said("(biden@2021-01-01..").contains("never closed"));
        assert_eq!(topic("@potus"), Topic { query: Query::parse("@potus").unwrap(), window: i64::MIN..i64::MAX });
    }

    #[test]
    fn dates_are_inclusive_in_the_zone() {
        let zone = TimeZone::get("America/New_York").unwrap();
        let date = |text: &str| Some(text.parse::<Moment>().unwrap());
        let range = window(date("2021-03-14"), date("2021-03-14"), &zone).unwrap();
        assert_eq!(range.end - range.start, 23 * 3600, "the day the clocks go forward");
        assert_eq!(range.start, crate::read::parse_time("2021-03-14T05:00:00Z").unwrap());
        let exact = window(date("2021-03-14T00:00:00Z"), date("2021-03-14T00:00:00Z"), &zone).unwrap();
        assert_eq!(exact.end - exact.start, 1);
        assert!(window(date("2021-03-15"), date("2021-03-14"), &zone).is_err());
        assert!("14.3.2021".parse::<Moment>().is_err());
        let plain = window(date("-0.5"), date("2.5"), &zone).unwrap();
        assert_eq!(plain, -500_000..2_500_001, "both included");
        assert_eq!(date("2.5").unwrap().to_string(), "2.5");
        assert!("1e300".parse::<Moment>().is_err() && "NaN".parse::<Moment>().is_err());
    }

    #[test]
    fn copies_languages_reposts_and_users() {
        let selection = Selection {
            languages: vec!["en".into()],
            reposts: false,
            users: Some(["ann".to_owned()].into()),
            ..Selection::default()
        };
        let mut selector = Selector::new(selection);
        let base = post("x", "1");
        let keeps = |change: &dyn Fn(&mut Post), selector: &mut Selector| {
            let mut post = base.clone();
            change(&mut post);
            selector.keep(&post)
        };
        assert!(keeps(&|post| post.id = Some("1".into()), &mut selector));
        assert!(!keeps(&|post| post.id = Some("1".into()), &mut selector));
        assert!(!keeps(&|post| post.user = "bob".into(), &mut selector));
        assert!(!keeps(&|post| post.lang = Some("de".into()), &mut selector));
        assert!(!keeps(&|post| post.repost = true, &mut selector));
        for lang in ["en", "en-US", "EN", "und"] {
            assert!(keeps(&|post| post.lang = Some(lang.into()), &mut selector), "{lang}");
        }
        assert!(keeps(&|_| (), &mut selector));
        let expected = Dropped { user: 1, language: 1, repost: 1, ..Dropped::default() };
        assert_eq!((selector.dropped, selector.unmarked), (expected, 3));
        assert_eq!((selector.duplicates, selector.dropped.total()), (1, 3));
        // A new wording is a post where the first was not read.
        for (id, stays) in [("1", false), ("2", true), ("2", false)] {
            assert_eq!(keeps(&|post| (post.id, post.update) = (Some(id.into()), true), &mut selector), stays);
        }
        assert_eq!((selector.duplicates, selector.updates), (1, 2));
    }

    #[test]
    fn users_come_as_a_column_or_as_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_users(&path).map(|users| {
                let mut users: Vec<String> = users.into_iter().collect();
                users.sort();
                users.join(" ")
            })
        };
        assert_eq!(read("party,user\nD,ann\nR,bob\n").unwrap(), "ann bob");
        assert_eq!(read("ann\n\n bob \n").unwrap(), "ann bob");
        assert_eq!(read("user\nann\n").unwrap(), "ann");
        assert!(read("name,party\nann,D\n").unwrap_err().to_string().contains("no column \"user\" among name, party"));
        assert!(read("user\n").unwrap_err().to_string().contains("names no users"));
    }
}
