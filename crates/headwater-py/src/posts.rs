//! From posts (data frames or files) to beliefs; scores of texts; the command line.

use crate::columns::plain_batches;
use crate::discover::BeliefColumns;
use crate::error::{PyError, no_choice};
use crate::hints::warning_text;
use crate::work::{Manner, done};
use headwater::panel::probabilities;
use headwater::progress;
use headwater_posts::bin::Hypotheses;
use headwater_posts::read::{BadRow, Preset};
use headwater_posts::{Error, PostHooks, PostsInput, Reposts, ScorerChoice, UserList, bin_posts};
use headwater_score::{Builtin, ModelSource, Scorer, Sentiment};
use jiff::tz::TimeZone;
use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;
use pyo3_arrow::PyRecordBatchReader;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

/// Texts scored between two checks for Ctrl-C.
const SCORED_AT_ONCE: usize = 1024;

/// Bad rows warned of one by one.
const NAMED_ROWS: usize = 5;

/// Posts in files, or a data frame of them in memory.
#[pyclass(frozen, module = "headwater._headwater")]
pub(crate) struct Posts {
    pub(crate) input: PostsInput,
}

#[pymethods]
impl Posts {
    #[staticmethod]
    fn from_files(paths: Vec<PathBuf>) -> Self {
        Posts { input: paths.into() }
    }

    #[staticmethod]
    fn from_arrow(py: Python<'_>, stream: PyRecordBatchReader) -> PyResult<Self> {
        let reader = stream.into_reader()?;
        done(py, &Manner::default(), move || {
            let broken = |error: arrow_schema::ArrowError| Error::File {
                path: PathBuf::from("posts"),
                problem: error.to_string(),
            };
            Ok(Posts { input: plain_batches(reader).map_err(broken)?.into() })
        })
    }
}

/// Users to keep: a file, or their names.
#[derive(FromPyObject)]
pub(crate) enum UsersArgument {
    File(PathBuf),
    Names(Vec<String>),
}

/// Options of reading, selection and scoring.
#[pyclass(frozen, module = "headwater._headwater", name = "PostOptions")]
pub(crate) struct PostArguments {
    pub(crate) options: headwater_posts::PostOptions,
    pub(crate) text_model: Option<ModelSource>,
}

#[pymethods]
impl PostArguments {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are the options of ingest")]
    #[pyo3(signature = (
        *, topic = Vec::new(), since = None, until = None, bin = "day", timezone = "UTC", reposts = "keep",
        lang = Vec::new(), any_language = false, min_posts = 1, users = None, hypotheses = 2, scorer = "builtin",
        model = None, carry_forward = false, preset = None, columns = Vec::new(), max_bad = None, date_order = None,
        score_range = None
    ))]
    fn new(
        topic: Vec<String>,
        since: Option<&str>,
        until: Option<&str>,
        bin: &str,
        timezone: &str,
        reposts: &str,
        lang: Vec<String>,
        any_language: bool,
        min_posts: u64,
        users: Option<UsersArgument>,
        hypotheses: u64,
        scorer: &str,
        model: Option<String>,
        carry_forward: bool,
        preset: Option<&str>,
        columns: Vec<(String, String)>,
        max_bad: Option<&str>,
        date_order: Option<&str>,
        score_range: Option<&str>,
    ) -> PyResult<Self> {
        if any_language && !lang.is_empty() {
            return Err(PyValueError::new_err("lang and any_language contradict each other; give one of them"));
        }
        let zone = "an IANA name such as Europe/Berlin, America/New_York or UTC";
        let options = headwater_posts::PostOptions {
            topic,
            since: since.map(|text| parsed("since", text)).transpose()?,
            until: until.map(|text| parsed("until", text)).transpose()?,
            bin: parsed("bin", bin)?,
            timezone: TimeZone::get(timezone).map_err(|_| no_choice("timezone", timezone, zone))?,
            reposts: match reposts {
                "keep" => Reposts::Keep,
                "drop" => Reposts::Drop,
                other => return Err(no_choice("reposts", other, "keep or drop")),
            },
            languages: lang,
            any_language,
            min_posts,
            users: users.map(|users| match users {
                UsersArgument::File(path) => UserList::File(path),
                UsersArgument::Names(names) => UserList::Names(names),
            }),
            hypotheses: match hypotheses {
                2 => Hypotheses::Two,
                3 => Hypotheses::Three,
                other => return Err(PyValueError::new_err(format!("hypotheses is {other}, but must be 2 or 3"))),
            },
            scorer: match scorer {
                "builtin" => ScorerChoice::Builtin,
                "roberta" => ScorerChoice::Roberta,
                "column" => ScorerChoice::Column,
                other => return Err(no_choice("scorer", other, "builtin, roberta or column")),
            },
            carry_forward,
            score_range: score_range.map(|text| parsed("score_range", text)).transpose()?,
            preset: preset.map(preset_named).transpose()?,
            date_order: date_order.map(|text| parsed("date_order", text)).transpose()?,
            columns,
            max_bad: max_bad.map(|text| parsed("max_bad", text)).transpose()?.unwrap_or_default(),
        };
        options.check().map_err(PyError::from)?;
        Ok(PostArguments { options, text_model: text_model(scorer, model)? })
    }
}

/// A text as what it stands for, or an error that names the argument.
fn parsed<T: FromStr<Err: Display>>(name: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

fn preset_named(name: &str) -> PyResult<Preset> {
    let mut presets = Preset::ALL;
    presets.sort_unstable();
    let [others @ .., last] = presets.map(Preset::name);
    let known = format!("{} or {last}", others.join(", "));
    name.parse().map_err(|_| no_choice("preset", name, &known))
}

/// The text model that a scorer needs, and no other has.
fn text_model(scorer: &str, model: Option<String>) -> PyResult<Option<ModelSource>> {
    match (scorer, model) {
        ("roberta", Some(model)) => Ok(Some(ModelSource::new(model))),
        ("roberta", None) => Err(PyValueError::new_err(
            "scorer=\"roberta\" needs model\nhint: give the folder of a model, such as a copy of twitter-roberta-base-sentiment",
        )),
        (_, Some(_)) => Err(PyValueError::new_err("model is an argument of scorer=\"roberta\"")),
        (_, None) => Ok(None),
    }
}

/// Rows that cannot be read: the first are named, the others counted.
#[derive(Debug, Default)]
pub(crate) struct BadRowWarnings {
    first: Vec<String>,
    count: usize,
}

impl BadRowWarnings {
    pub(crate) fn see(&mut self, rows: &[BadRow]) {
        let space = NAMED_ROWS - self.first.len();
        self.first.extend(rows.iter().take(space).map(BadRow::to_string));
        self.count += rows.len();
    }

    pub(crate) fn warnings(self) -> Vec<String> {
        let more = self.count - self.first.len();
        let more = (more > 0).then(|| format!("and {more} more unreadable rows"));
        self.first.into_iter().chain(more).collect()
    }
}

impl PostHooks for BadRowWarnings {
    fn bad_rows(&mut self, rows: &[BadRow]) -> Result<(), Error> {
        self.see(rows);
        Ok(())
    }
}

/// Posts as a table of beliefs, and warnings.
#[pyfunction]
#[pyo3(signature = (posts, options, progress = None))]
pub(crate) fn beliefs_from_posts<'py>(
    py: Python<'py>,
    posts: &Posts,
    options: &PostArguments,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Vec<String>)> {
    let hypotheses = options.options.hypotheses.names();
    let (columns, warnings) = done(py, &Manner { progress, threads: None }, || {
        let scorer = options.text_model.as_ref().map(open).transpose()?;
        let mut bad = BadRowWarnings::default();
        let (beliefs, quality) = bin_posts(&posts.input, &options.options, scorer, &mut bad)?;
        let mut columns = BeliefColumns::new(hypotheses.len());
        let mut numbers = Vec::new();
        beliefs.visit(|cell| {
            probabilities(cell.ratios[..hypotheses.len() - 1].iter().copied(), &mut numbers);
            let time = beliefs.time_of(cell.slot);
            columns.push(time, beliefs.user(cell.user), &numbers, cell.posts);
            progress::check().map_err(PyError::from)
        })?;
        let warnings = bad.warnings().into_iter().chain(quality.warnings.iter().map(warning_text));
        Ok((columns, warnings.collect::<Vec<String>>()))
    })?;
    Ok((columns.table(py, hypotheses)?, warnings))
}

/// n×3 probabilities: negative, neutral, positive.
#[pyfunction]
#[pyo3(signature = (texts, scorer = "builtin", model = None, progress = None, threads = None))]
pub(crate) fn score<'py>(
    py: Python<'py>,
    texts: Vec<PyBackedStr>,
    scorer: &str,
    model: Option<String>,
    progress: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    if !["builtin", "roberta"].contains(&scorer) {
        return Err(no_choice("scorer", scorer, "builtin or roberta"));
    }
    let model = text_model(scorer, model)?;
    let count = texts.len();
    let scores = done(py, &Manner { progress, threads }, || {
        let scorer: Box<dyn Scorer> = match &model {
            None => Box::new(Builtin::new()),
            Some(model) => open(model)?,
        };
        let stage = progress::stage("scoring", count as u64);
        let mut scores: Vec<f64> = Vec::with_capacity(3 * count);
        for some in texts.chunks(SCORED_AT_ONCE) {
            progress::check()?;
            let some: Vec<&str> = some.iter().map(|text| &**text).collect();
            let found = scorer.score(&some)?;
            scores.extend(
                found.iter().flat_map(|Sentiment { negative, neutral, positive }| [negative, neutral, positive]),
            );
            stage.at((scores.len() / 3) as u64);
        }
        Ok(scores)
    })?;
    scores.into_pyarray(py).reshape([count, 3])
}

/// A text model, downloaded where it is a name on the hub.
fn open(source: &ModelSource) -> Result<Box<dyn Scorer>, PyError> {
    let mut stage = None;
    let mut fetched = |_: &str, done: u64, total: u64| {
        if done == 0 {
            // The stage of the file before ends first.
            stage = None;
        }
        stage.get_or_insert_with(|| progress::stage("fetching", total)).at(done);
    };
    let folder = source.folder(&mut fetched)?;
    drop(stage);
    Ok(ModelSource::new(folder.to_string_lossy()).open(&mut |_, _, _| ())?)
}

/// The command line: the exit code.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> i32 {
    py.detach(|| headwater_cli::run(arguments))
}
