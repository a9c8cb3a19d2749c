//! Columns by name: the columns of a table, or the keys of an object, in, the fields of a post out.
//!
//! [`ColumnMapping`] says which column or key is which field; a preset knows those of a platform.

use crate::Error;
use crate::given::{self, ScoreRange, Wanted};
use crate::post::{Post, PostDraft, Scores};
use crate::read::{ColumnNames, DateOrder, Preset, RecordPlace, RowError, TimeFormat};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The fields that a mapping can name, with the columns they are looked for in, the better first.
pub(crate) const FIELDS: [(&str, &[&str]); 10] = [
    ("user", &["user"]),
    ("time", &["time"]),
    ("text", &["text"]),
    ("id", &["id"]),
    ("lang", &["lang"]),
    ("repost", &["is_retweet", "repost_of", "repost"]),
    ("score", &["score"]),
    ("negative", &["negative"]),
    ("neutral", &["neutral"]),
    ("positive", &["positive"]),
];

/// Where the field that marks reposts is; unlike the others, all its names count.
pub(crate) const REPOST: usize = 5;

/// How many fields there are.
const COUNT: usize = FIELDS.len();

/// Which column or key is which field.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMapping {
    /// Names per field, in the order of `FIELDS`.
    pub(crate) names: [Vec<String>; COUNT],
    /// Fields whose names were given, which therefore must exist.
    pub(crate) given: [bool; COUNT],
    pub(crate) preset: Option<Preset>,
    /// Which score columns are read.
    scores: Wanted,
    /// From which score to which, where it is one column.
    range: ScoreRange,
    /// Whether a post needs a text.
    text: bool,
    times: TimeFormat,
}

impl Default for ColumnMapping {
    fn default() -> Self {
        ColumnMapping {
            names: FIELDS.map(|(_, names)| names.iter().map(|name| (*name).to_owned()).collect()),
            given: [false; COUNT],
            preset: None,
            scores: Wanted::Nothing,
            range: ScoreRange::default(),
            text: true,
            times: TimeFormat::default(),
        }
    }
}

impl ColumnMapping {
    /// With the names of a platform, or with names of one's own, or as they are. Beside a preset of JSON lines, which knows
    /// where everything is, no column can be named.
    pub fn new(preset: Option<Preset>, columns: &[(String, String)]) -> Result<Self, Error> {
        let mut mapping = ColumnMapping::default();
        if let Some(preset) = preset {
            if !columns.is_empty() && preset != Preset::FourCat {
                return Err(Error::PresetAndColumns { preset });
            }
            mapping = mapping.with_preset(preset);
        }
        mapping.with_columns(columns.iter().map(|(field, column)| (field, column)))
    }

    /// With the names of a platform.
    pub fn with_preset(mut self, preset: Preset) -> Self {
        self.preset = Some(preset);
        for (field, names) in preset.columns() {
            if let Some(position) = FIELDS.iter().position(|(name, _)| name == field)
                && !self.given[position]
            {
                self.names[position] = names.iter().map(|name| (*name).to_owned()).collect();
            }
        }
        self
    }

    /// With names of one's own: the column or key of each field, a dotted path reaching into objects.
    pub fn with_columns<F: AsRef<str>, N: AsRef<str>>(
        mut self,
        columns: impl IntoIterator<Item = (F, N)>,
    ) -> Result<Self, Error> {
        for (field, name) in columns {
            let (field, name) = (field.as_ref().trim(), name.as_ref().trim());
            let Some(position) = FIELDS.iter().position(|(known, names)| *known == field || names.contains(&field))
            else {
                let known = FIELDS.map(|(field, _)| field).join(", ");
                return Err(Error::option(format!(
                    "there is no field {field:?} to name a column for; there are {known}"
                )));
            };
            if name.is_empty() {
                return Err(Error::option(format!("the column for the field {field:?} is missing")));
            }
            self.names[position] = vec![name.to_owned()];
            self.given[position] = true;
        }
        Ok(self)
    }

    /// Reads score columns; a post without them is bad.
    pub fn with_scores(mut self, wanted: Wanted) -> Self {
        self.scores = wanted;
        self
    }

    /// Reads scores of another range than from 0 to 1.
    pub fn with_score_range(mut self, range: ScoreRange) -> Self {
        self.range = range;
        self
    }

    /// Reads dates with the year last, in this order.
    pub fn with_date_order(mut self, order: DateOrder) -> Self {
        self.times.order = Some(order);
        self
    }

    /// Reads times as plain numbers.
    pub fn with_numeric_times(mut self) -> Self {
        self.times.numeric = true;
        self
    }

    /// Whether posts need a text.
    pub(crate) fn needs_text(&self) -> bool {
        self.text
    }

    /// Whether files of platforms are recognised: none was named.
    pub(crate) fn recognises(&self) -> bool {
        self.preset.is_none()
    }

    /// Whether a column was named.
    pub(crate) fn names_columns(&self) -> bool {
        self.given.contains(&true)
    }

    /// Puts the fields whose columns were named over what a platform's reader found.
    pub(crate) fn overlay(&self, draft: &mut PostDraft, named: PostDraft) {
        let PostDraft { user, time, text, id, lang, repost, scores, .. } = named;
        let Scores { score, negative, neutral, positive } = scores;
        let fields = [
            (0, &mut draft.user, user),
            (1, &mut draft.time, time),
            (2, &mut draft.text, text),
            (3, &mut draft.id, id),
            (4, &mut draft.lang, lang),
            (6, &mut draft.scores.score, score),
            (7, &mut draft.scores.negative, negative),
            (8, &mut draft.scores.neutral, neutral),
            (9, &mut draft.scores.positive, positive),
        ];
        fields.into_iter().filter(|(field, ..)| self.given[*field]).for_each(|(_, known, named)| *known = named);
        if self.given[REPOST] {
            draft.repost = repost;
        }
    }

    /// Does without the text, where nothing looks at it.
    pub fn without_text(mut self) -> Self {
        self.text = false;
        self
    }

    /// The platform, if one was named.
    pub fn platform(&self) -> Option<Preset> {
        self.preset
    }

    /// The names of the columns or keys of a field, the better first.
    pub fn names(&self, field: &str) -> &[String] {
        FIELDS.iter().position(|(name, _)| *name == field).map_or(&[], |position| &self.names[position])
    }

    /// Fields that a post cannot do without.
    pub(crate) fn needed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..COUNT).filter(|&field| match field {
            0 | 1 => true,
            2 => self.text || self.given[field],
            _ => self.given[field],
        })
    }
}

/// Where each field is in a table.
pub(crate) struct ColumnLayout {
    pub(crate) columns: Arc<ColumnNames>,
    /// Columns of each field, the better first: where a cell is empty the next stands in.
    positions: [Vec<usize>; COUNT],
}

impl ColumnLayout {
    pub(crate) fn new(columns: &Arc<ColumnNames>, mapping: &ColumnMapping, file: &Path) -> Result<Self, Error> {
        let positions: [Vec<usize>; COUNT] = std::array::from_fn(|field| {
            mapping.names[field].iter().filter_map(|name| columns.position(name)).collect()
        });
        let missing: Vec<&str> =
            mapping.needed().filter(|&field| positions[field].is_empty()).map(|field| FIELDS[field].0).collect();
        if !missing.is_empty() {
            return Err(wrong_names(mapping, file, &missing, "the columns", columns.names().iter()));
        }
        let absent = |fields: std::ops::Range<usize>| -> Vec<&'static str> {
            fields.filter(|&field| positions[field].is_empty()).map(|field| FIELDS[field].0).collect()
        };
        let (score, classes) = (absent(6..7), absent(7..COUNT));
        let missing = match mapping.scores {
            Wanted::Classes => classes,
            Wanted::Either if !classes.is_empty() => score,
            Wanted::Either | Wanted::Nothing => Vec::new(),
        };
        if !missing.is_empty() {
            return Err(wrong_names(mapping, file, &missing, "the columns", columns.names().iter()));
        }
        Ok(ColumnLayout { columns: columns.clone(), positions })
    }

    pub(crate) fn draft(&self, cells: &csv::StringRecord) -> PostDraft {
        let cell = |field: usize| {
            let mut texts = self.positions[field].iter().filter_map(|&column| cells.get(column));
            texts.find(|text| !text.is_empty()).map(str::to_owned)
        };
        let marks = &self.positions[REPOST];
        let repost = marks.iter().any(|&column| cells.get(column).is_some_and(says_yes));
        PostDraft { repost: (!marks.is_empty()).then_some(repost), ..draft(cell) }
    }
}

/// Names beyond this say no more.
const SHOWN: usize = 40;

/// Wrong names: what was looked for, and what there is.
pub(crate) fn wrong_names<'a>(
    mapping: &ColumnMapping,
    file: &Path,
    missing: &[&'static str],
    what: &str,
    found: impl Iterator<Item = &'a String>,
) -> Error {
    let names: Vec<&str> = found.map(String::as_str).collect();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    let named = |field: &&'static str| match FIELDS.iter().position(|(name, _)| name == field) {
        Some(position) if mapping.given[position] => format!(" ({} was to be {field})", mapping.names[position][0]),
        _ => String::new(),
    };
    let given: String = missing.iter().map(named).collect();
    let found = format!("{what} {}{more}{given}", headwater::words::list(names.iter().copied().take(SHOWN)));
    let suggestion = missing.iter().map(|field| (*field, guess(field, &names).map(str::to_owned))).collect();
    Error::Columns { path: file.to_path_buf(), missing: missing.to_vec(), found, suggestion }
}

/// The name that most likely stands for a field.
fn guess<'a>(field: &str, found: &[&'a str]) -> Option<&'a str> {
    let usual: &[&str] = match field {
        "user" => &[
            "username",
            "author",
            "screen_name",
            "handle",
            "account",
            "user_name",
            "user_id",
            "name",
            "did",
            "account_username",
            "author_username",
            "uniqueid",
            "unique_id",
            "from",
            "author_name",
            "nickname",
        ],
        "time" => &[
            "created_at",
            "timestamp",
            "date",
            "datetime",
            "when",
            "published",
            "createdat",
            "created_utc",
            "unix_timestamp",
            "createtime",
            "create_time",
            "taken_at",
            "day",
        ],
        "text" => &[
            "body",
            "content",
            "full_text",
            "message",
            "tweet",
            "post",
            "selftext",
            "caption",
            "desc",
            "description",
            "title",
        ],
        "score" => &["probability", "positive", "sentiment", "p"],
        _ => &[],
    };
    let wanted = || [field].into_iter().chain(usual.iter().copied());
    // Of equal names that which is not so deep: a post's time, and not its author's.
    let find = |fits: &dyn Fn(&str) -> bool| {
        let fitting = found.iter().filter(|name| fits(name));
        fitting.min_by_key(|name| name.matches('.').count()).copied()
    };
    let last = |usual: &str| find(&|name| name.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case(usual)));
    // Else something within an object of that name.
    let within = |usual: &str| find(&|name| name.split('.').any(|key| key.eq_ignore_ascii_case(usual)));
    wanted().find_map(last).or_else(|| wanted().find_map(within))
}

/// What a mapping can name in an object: its keys, and the paths into the objects below it.
pub(crate) fn leaves(object: &serde_json::Map<String, Value>) -> Vec<String> {
    /// Deeper paths are nothing to suggest.
    const DEEPEST: usize = 3;
    let mut found = Vec::new();
    let mut visit = vec![(String::new(), object, 0)];
    // Whole objects one after another, so that what is not deep stands first.
    while !visit.is_empty() && found.len() <= SHOWN {
        let mut below = Vec::new();
        for (path, object, depth) in visit {
            for (key, value) in object {
                let path = format!("{path}{key}");
                match value {
                    Value::Object(inner) if depth < DEEPEST && !inner.is_empty() => {
                        below.push((format!("{path}."), inner, depth + 1));
                    }
                    _ => found.push(path),
                }
            }
        }
        visit = below;
    }
    found
}

/// All fields but the mark of a repost.
pub(crate) fn draft(mut cell: impl FnMut(usize) -> Option<String>) -> PostDraft {
    PostDraft {
        user: cell(0),
        time: cell(1),
        text: cell(2),
        id: cell(3),
        lang: cell(4),
        scores: Scores { score: cell(6), negative: cell(7), neutral: cell(8), positive: cell(9) },
        ..PostDraft::default()
    }
}

/// `is_retweet` holds 1 or true, `repost_of` the id of another post.
pub(crate) fn says_yes(text: &str) -> bool {
    !matches!(
        text.trim().to_ascii_lowercase().as_str(),
        "" | "0" | "0.0" | "false" | "f" | "no" | "n" | "null" | "none" | "nan" | "[]"
    )
}

/// Whether a text begins as reposts did before platforms had them: `RT @name`.
pub(crate) fn begins_like_repost(text: &str) -> bool {
    let rest = text.trim_start().strip_prefix("RT").or_else(|| text.trim_start().strip_prefix("rt"));
    let name = rest.and_then(|rest| rest.strip_prefix(char::is_whitespace)).map(str::trim_start);
    let name = name.and_then(|name| name.strip_prefix('@'));
    name.is_some_and(|name| name.starts_with(|character: char| character.is_alphanumeric() || character == '_'))
}

impl PostDraft {
    pub(crate) fn finish(self, mapping: &ColumnMapping, place: &RecordPlace) -> Result<Post, RowError> {
        let missing = |field: usize| {
            let name = if mapping.preset.is_some() { FIELDS[field].0 } else { &mapping.names[field][0] };
            format!("column {name}: is empty")
        };
        let user = self.user.map(|user| user.trim().to_owned()).filter(|user| !user.is_empty());
        let user = user.ok_or_else(|| format!("{}; a name is expected", missing(0)))?;
        let time = self.time.ok_or_else(|| format!("{}; a time is expected", missing(1)))?;
        let time = mapping.times.parse(&time, &mapping.names[1][0])?;
        let text = match self.text {
            Some(text) => text,
            None if !mapping.text => String::new(),
            None => return Err(format!("{}; a post without words has no opinion", missing(2)).into()),
        };
        let given = match mapping.scores {
            Wanted::Nothing => None,
            wanted => Some(given::given(&self.scores, wanted, mapping.range)?),
        };
        let lang = self.lang.map(|lang| lang.trim().to_owned()).filter(|lang| !lang.is_empty());
        let repost = self.repost.unwrap_or_else(|| begins_like_repost(&text));
        let PostDraft { id, update, .. } = self;
        Ok(Post { id, user, time, text, lang, repost, update, given, place: place.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::{begins_like_repost, guess};

    #[test]
    fn fields_of_platforms_are_suggested() {
        // TikTok, Threads and X as their websites send them.
        let cases: [(&[&str], [&str; 3]); 3] = [
            (
                &["id", "desc", "createTime", "author.uniqueId", "author.nickname", "stats.diggCount"],
                ["author.uniqueId", "createTime", "desc"],
            ),
            (
                &["pk", "taken_at", "user.username", "user.pk", "caption.text"],
                ["user.username", "taken_at", "caption.text"],
            ),
            (
                &["rest_id", "core.screen_name", "legacy.created_at", "legacy.full_text", "legacy.lang"],
                ["core.screen_name", "legacy.created_at", "legacy.full_text"],
            ),
        ];
        for (found, wanted) in cases {
            assert_eq!(["user", "time", "text"].map(|field| guess(field, found).unwrap()), wanted);
        }
    }

    #[test]
    fn reposts_are_known_by_their_text() {
        for text in ["RT @bob: trams", "  RT  @_x", "rt @bob"] {
            assert!(begins_like_repost(text), "{text}");
        }
        for text in ["RT", "RT @", "RT bob", "ART @bob", "RT@bob", "so RT @bob", "RTs @bob", ""] {
            assert!(!begins_like_repost(text), "{text}");
        }
    }
}
