//! Columns by name: the columns of a table, or the keys of an object, in, the fields of a post out.
//!
//! [`ColumnMapping`] says which column or key is which field; a preset knows those of a platform.

use crate::Error;
use crate::given::{self, Wanted};
use crate::post::{Post, PostDraft, Scores};
use crate::read::{ColumnNames, Preset, RecordPlace, WANTED_TIME, parse_time};
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
    /// Whether a post needs a text.
    text: bool,
}

impl Default for ColumnMapping {
    fn default() -> Self {
        ColumnMapping {
            names: FIELDS.map(|(_, names)| names.iter().map(|name| (*name).to_owned()).collect()),
            given: [false; COUNT],
            preset: None,
            scores: Wanted::Nothing,
            text: true,
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
        let repost = self.positions[REPOST].iter().any(|&column| cells.get(column).is_some_and(says_yes));
        PostDraft { repost, ..draft(cell) }
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
    let found = format!("{what} {}{more}{given}", names[..names.len().min(SHOWN)].join(", "));
    let suggestion = missing.iter().map(|field| (*field, guess(field, &names).map(str::to_owned))).collect();
    Error::Columns { path: file.to_path_buf(), missing: missing.to_vec(), found, suggestion }
}

/// The name that most likely stands for a field.
fn guess<'a>(field: &str, found: &[&'a str]) -> Option<&'a str> {
    let usual: &[&str] = match field {
        "user" => &["username", "author", "screen_name", "handle", "account", "user_name", "user_id", "name", "did"],
        "time" => &["created_at", "timestamp", "date", "datetime", "when", "published", "createdat", "day"],
        "text" => &["body", "content", "full_text", "message", "tweet", "post", "selftext", "title"],
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
        repost: false,
        update: false,
        scores: Scores { score: cell(6), negative: cell(7), neutral: cell(8), positive: cell(9) },
    }
}

/// `is_retweet` holds 1 or true, `repost_of` the id of another post.
pub(crate) fn says_yes(text: &str) -> bool {
    !matches!(
        text.trim().to_ascii_lowercase().as_str(),
        "" | "0" | "0.0" | "false" | "f" | "no" | "n" | "null" | "none" | "nan" | "[]"
    )
}

impl PostDraft {
    pub(crate) fn finish(self, mapping: &ColumnMapping, place: &RecordPlace) -> Result<Post, String> {
        let missing = |field: usize| {
            let name = if mapping.preset.is_some() { FIELDS[field].0 } else { &mapping.names[field][0] };
            format!("column {name}: is empty")
        };
        let user = self.user.map(|user| user.trim().to_owned()).filter(|user| !user.is_empty());
        let user = user.ok_or_else(|| format!("{}; a name is wanted", missing(0)))?;
        let time = self.time.ok_or_else(|| format!("{}; {WANTED_TIME}", missing(1)))?;
        let time = parse_time(&time).ok_or_else(|| {
            let shown: String = time.chars().take(60).collect();
            format!("column {}: met {shown:?}; {WANTED_TIME}", mapping.names[1][0])
        })?;
        let text = match self.text {
            Some(text) => text,
            None if !mapping.text => String::new(),
            None => return Err(format!("{}; a post without words has no opinion", missing(2))),
        };
        let given = match mapping.scores {
            Wanted::Nothing => None,
            wanted => Some(given::given(&self.scores, wanted)?),
        };
        let lang = self.lang.map(|lang| lang.trim().to_owned()).filter(|lang| !lang.is_empty());
        let PostDraft { id, repost, update, .. } = self;
        Ok(Post { id, user, time, text, lang, repost, update, given, place: place.clone() })
    }
}
