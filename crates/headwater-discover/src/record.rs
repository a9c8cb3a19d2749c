//! The record of a run: what went in, with which options, and what every stage found. Written as `run.json`, shown on the
//! report page, returned to Rust and Python.

use crate::Error;
use crate::discover::{CommonInput, Discover, Run};
use crate::follow_graph::GraphCounts;
use crate::pseudonyms::hex;
use headwater::evaluate::Verdict;
use headwater::learn::posterior::SamplingParams;
use headwater::model::{WeightKind, WeightsSelection};
use headwater::{Model, Ranking};
use headwater_files::{CsvText, MODEL_FORMAT};
use headwater_posts::{PostsInput, Quality, UserList};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Instead of the name of a file, where names are replaced.
const NOT_RECORDED: &str = "not recorded";

/// The version of `run.json`.
pub const RUN_FORMAT: &str = "headwater-run/2";

/// The stages of a run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StageName {
    /// Posts are read, scored and binned.
    Score,
    /// The network is fitted.
    Learn,
    /// Accounts are ranked; intervals and the null test are computed.
    Rank,
    /// The report page and the network file are made.
    Report,
}

impl StageName {
    /// As in `run.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            StageName::Score => "score",
            StageName::Learn => "learn",
            StageName::Rank => "rank",
            StageName::Report => "report",
        }
    }
}

/// Everything about a run but its large results. Two runs on the same inputs with the same options differ in `timings` only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRecord {
    /// [`RUN_FORMAT`].
    pub format: String,
    /// "headwater".
    pub program: String,
    /// Of the program.
    pub version: String,
    /// Of `model.json`.
    pub model_format: String,
    /// Of resamples and circular shifts.
    pub seed: u64,
    /// Every file that was read.
    pub inputs: Vec<InputFile>,
    /// As given or by default.
    pub options: RunOptions,
    /// Fingerprint of the key, where names were replaced.
    pub pseudonyms: Option<String>,
    /// As given; names in it are replaced where names are.
    pub topic: Vec<String>,
    /// Accounts of the graph that have another name in the posts, up to case and a leading `@`, by their name in the graph.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub matched: BTreeMap<String, String>,
    /// What became of the posts and of the graph.
    pub counts: RunCounts,
    /// Which kind of weights was selected, where there was a choice.
    pub choice: Option<WeightsSelection>,
    /// Whether the data support an answer; absent until accounts are ranked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What each stage depended on and made, by which a later run knows whether it can be reused.
    #[serde(default)]
    pub stages: BTreeMap<StageName, StageFiles>,
    /// Seconds, and whether the stage was reused.
    #[serde(default)]
    pub timings: BTreeMap<String, StageTiming>,
}

/// What became of the posts, and of the graph.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunCounts {
    /// Rows read, kept, left out; accounts one by one are in the ranking.
    #[serde(flatten)]
    pub quality: Quality,
    /// Edges and accounts of the follow graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphCounts>,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// `posts`, `graph`, `users`, `groups`, `test-groups` or `scorer`.
    pub role: String,
    /// Absent for data in memory, and where names are replaced: files may be named after accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its length.
    pub bytes: u64,
    /// Its hash.
    pub sha256: String,
}

/// What a stage depended on, as a hash, and the hashes of the files it made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageFiles {
    /// Hash of what it depended on.
    pub key: String,
    /// SHA-256 by file name.
    pub files: BTreeMap<String, String>,
}

/// How long a stage took, in the run that made it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageTiming {
    /// To the millisecond.
    pub seconds: f64,
    /// Whether an earlier run had made it.
    pub reused: bool,
}

/// Every option of a run under the name that the command line and Python use, as given or by default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "docs/reference explains the options once")]
#[serde(default)]
#[non_exhaustive]
pub struct RunOptions {
    pub posts: Vec<String>,
    pub preset: Option<String>,
    #[serde(default)]
    pub date_order: Option<String>,
    pub map: Vec<String>,
    pub max_bad: Option<String>,
    pub rejects: Option<String>,
    pub topic: Vec<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub lang: Vec<String>,
    pub any_language: bool,
    pub reposts: String,
    pub min_posts: u64,
    pub users: Option<String>,
    pub scorer: String,
    pub model: Option<String>,
    pub hypotheses: usize,
    #[serde(default)]
    pub score_range: Option<String>,
    pub bin: String,
    pub timezone: String,
    pub carry_forward: bool,
    pub graph: Option<String>,
    pub pseudonymise: bool,
    pub adaptation: Option<f64>,
    pub constraint: String,
    pub ridge: f64,
    pub weights: String,
    pub shrinkage: f64,
    pub rounds: usize,
    #[serde(default)]
    pub sampling: Option<SamplingParams>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sketch: bool,
    #[serde(default)]
    pub minutes: Option<f64>,
    pub common: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<String>,
    pub bootstrap: u64,
    pub null: u64,
    pub top: usize,
    pub seed: u64,
    pub raw_csv: bool,
}

impl RunOptions {
    /// Those that decide what becomes of the posts, by what they are: files count by their contents.
    pub(crate) fn of_posts(&self) -> Value {
        let RunOptions { preset, map, max_bad, topic, from, to, lang, any_language, reposts, min_posts, .. } = self;
        let RunOptions { scorer, hypotheses, bin, timezone, carry_forward, date_order, score_range, .. } = self;
        json!([
            [json!(preset), json!(map), json!(max_bad), json!(topic), json!(from), json!(to)],
            [json!(lang), json!(any_language), json!(reposts), json!(min_posts)],
            [json!(scorer), json!(hypotheses), json!(bin), json!(timezone), json!(carry_forward)],
            [json!(date_order), json!(score_range)],
        ])
    }

    /// Those that decide the fit.
    pub(crate) fn of_fit(&self) -> Value {
        let RunOptions { adaptation, constraint, ridge, weights, shrinkage, rounds, sampling, minutes, common, .. } =
            self;
        let fit =
            json!([adaptation, constraint, ridge, weights, shrinkage, rounds, sampling, minutes, common.is_some()]);
        if self.sketch { json!([fit, "sketch"]) } else { fit }
    }

    /// Without the names of files, which may be named after accounts.
    pub(crate) fn without_paths(mut self) -> Self {
        self.posts = vec![NOT_RECORDED.to_owned()];
        for path in
            [&mut self.rejects, &mut self.users, &mut self.graph, &mut self.model, &mut self.common, &mut self.groups]
        {
            if path.is_some() {
                *path = Some(NOT_RECORDED.to_owned());
            }
        }
        self
    }
}

impl RunCounts {
    /// Accounts one by one are in the ranking, and warnings were told.
    pub(crate) fn new(mut quality: Quality, graph: Option<GraphCounts>) -> Self {
        quality.by_user.clear();
        RunCounts { quality, graph }
    }
}

impl RunRecord {
    /// What a stage found beside its files, as the store keeps it.
    pub(crate) fn stage_result(&self, name: StageName) -> Value {
        match name {
            StageName::Score => json!(ScoreResult {
                counts: self.counts.clone(),
                topic: self.topic.clone(),
                matched: self.matched.clone(),
            }),
            StageName::Learn | StageName::Rank | StageName::Report => json!(InFiles {}),
        }
    }
}

/// What scoring and binning found beside the beliefs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ScoreResult {
    pub(crate) counts: RunCounts,
    pub(crate) topic: Vec<String>,
    /// Accounts of the graph under another name in the posts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) matched: BTreeMap<String, String>,
}

/// A stage whose result is in its files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InFiles {}

impl InputFile {
    /// Reads a file for its hash. Only what can be read twice will do.
    pub(crate) fn read(role: &str, path: &Path) -> Result<Self, Error> {
        let regular = std::fs::metadata(path).map_or(true, |found| found.is_file());
        if path == Path::new("-") || !regular {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        let (bytes, sha256) = sha256_of_file(path)?;
        Ok(InputFile { role: role.to_owned(), path: Some(path.display().to_string()), bytes, sha256 })
    }

    /// The files of a folder, by name.
    pub(crate) fn read_folder(role: &str, folder: &Path) -> Result<Vec<Self>, Error> {
        let unreadable = |source| Error::Read { path: folder.to_owned(), source };
        let entries = std::fs::read_dir(folder).map_err(unreadable)?;
        let mut paths: Vec<PathBuf> =
            entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        paths.sort();
        paths.iter().map(|path| InputFile::read(role, path)).collect()
    }

    /// Data in memory, by the bytes that stand for them.
    pub(crate) fn in_memory(role: &str, write: impl FnOnce(&mut Hasher) -> Result<(), Error>) -> Result<Self, Error> {
        let mut hasher = Hasher::default();
        write(&mut hasher)?;
        let (bytes, sha256) = hasher.finish();
        Ok(InputFile { role: role.to_owned(), path: None, bytes, sha256 })
    }
}

/// A writer that keeps the length and the hash of what it is given.
#[derive(Debug, Default)]
pub(crate) struct Hasher {
    sum: Sha256,
    bytes: u64,
}

impl Hasher {
    fn finish(self) -> (u64, String) {
        (self.bytes, hex(&self.sum.finalize()))
    }
}

impl std::io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Length and SHA-256 of a file.
pub(crate) fn sha256_of_file(path: &Path) -> Result<(u64, String), Error> {
    let unreadable = |source| Error::Read { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut hasher = Hasher::default();
    std::io::copy(&mut file, &mut hasher).map_err(unreadable)?;
    Ok(hasher.finish())
}

/// A hash of everything a stage depends on. Another version of the program may compute it differently.
pub(crate) fn stage_key(stage: StageName, depends: &Value) -> String {
    let all = json!([env!("CARGO_PKG_VERSION"), MODEL_FORMAT, RUN_FORMAT, stage.as_str(), depends]);
    hex(&Sha256::digest(all.to_string()))
}

impl Run<'_> {
    /// Every option as used.
    pub(crate) fn options(&self) -> RunOptions {
        let Discover {
            posts,
            options,
            text_model,
            rejects,
            graph,
            fit,
            minutes,
            common,
            groups,
            uncertainty,
            pseudonyms,
            ..
        } = self.discover;
        let csv_text = &self.discover.csv_text;
        let shown = |path: &Path| path.display().to_string();
        let in_memory = || "in memory".to_owned();
        let recorded = RunOptions {
            posts: match posts {
                PostsInput::Files(files) => files.iter().map(|path| shown(path)).collect(),
                _ => vec![in_memory()],
            },
            preset: options.preset.map(|preset| preset.to_string()),
            date_order: options.date_order.map(|order| order.to_string()),
            map: options.columns.iter().map(|(field, column)| format!("{field}={column}")).collect(),
            max_bad: Some(options.max_bad.to_string()),
            rejects: rejects.as_deref().map(shown),
            topic: options.topic.clone(),
            from: options.since.map(|moment| moment.to_string()),
            to: options.until.map(|moment| moment.to_string()),
            lang: options.languages_used(),
            any_language: options.any_language,
            reposts: named(&options.reposts),
            min_posts: options.min_posts,
            users: options.users.as_ref().map(|users| match users {
                UserList::File(path) => shown(path),
                UserList::Names(_) => in_memory(),
            }),
            scorer: named(&options.scorer),
            model: self.text_model(text_model.as_ref()).map(|model| model.model.clone()),
            hypotheses: options.hypotheses.names().len(),
            score_range: options.score_range.map(|range| range.to_string()),
            bin: options.bin.to_string(),
            timezone: options.timezone.iana_name().unwrap_or("UTC").to_owned(),
            carry_forward: options.carry_forward,
            graph: graph.as_ref().map(|graph| graph.path().map_or_else(in_memory, shown)),
            pseudonymise: pseudonyms.is_some(),
            adaptation: fit.adaptation,
            constraint: named(&fit.constraint),
            ridge: fit.ridge,
            weights: fit.weights.map_or("auto", WeightKind::name).to_owned(),
            shrinkage: fit.shrinkage,
            rounds: fit.rounds,
            sampling: fit.sampling,
            sketch: fit.sketch,
            minutes: *minutes,
            common: common.as_ref().map(|common| match common {
                CommonInput::Network => "network".to_owned(),
                CommonInput::File(path) => shown(path),
                CommonInput::Groups(_) => in_memory(),
            }),
            groups: groups.as_ref().map(|groups| groups.path().map_or_else(in_memory, shown)),
            bootstrap: uncertainty.bootstrap,
            null: uncertainty.null.unwrap_or(0),
            top: uncertainty.top,
            seed: uncertainty.seed,
            raw_csv: *csv_text == CsvText::Raw,
        };
        if pseudonyms.is_some() { recorded.without_paths() } else { recorded }
    }

    /// The record, but for stages and timings, which the store knows.
    pub(crate) fn record(
        &self,
        mut inputs: Vec<InputFile>,
        mut options: RunOptions,
        pseudonyms: Option<String>,
        scored: ScoreResult,
        model: &Model,
        ranking: &Ranking,
    ) -> RunRecord {
        if pseudonyms.is_some() {
            inputs.iter_mut().for_each(|input| input.path = None);
        }
        options.topic.clone_from(&scored.topic);
        RunRecord {
            format: RUN_FORMAT.to_owned(),
            program: "headwater".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model_format: MODEL_FORMAT.to_owned(),
            seed: self.discover.uncertainty.seed,
            inputs,
            options,
            pseudonyms,
            topic: scored.topic,
            matched: scored.matched,
            counts: scored.counts,
            choice: model.diagnostics.smoothing.as_ref().and_then(|smoothing| smoothing.selection),
            verdict: Some(ranking.verdict.clone()),
            stages: BTreeMap::new(),
            timings: BTreeMap::new(),
        }
    }
}

/// An enum's name as it is serialised.
fn named(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
