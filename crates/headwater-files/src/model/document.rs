//! The keys of a model or truth as they stand in JSON, and their way to and from a [`Model`].

use super::{FIRST_MODEL_FORMAT, METHOD_TAG, Parts, TRUTH_FORMAT};
use crate::limit::check_hypotheses;
use crate::{AtomicFile, Error};
use headwater::model::{ChangeKind, DetectedChange, Diagnostics, Innovation, Likelihood, NetworkSnapshot, Track};
use headwater::simulate::WorldEvent;
use headwater::{Combination, Evidence, Method, Model, Roster};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

/// The keys of a model or truth; all but names are optional so that a truth may hold what is known.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) format: String,
    pub(super) agents: Vec<String>,
    pub(super) hypotheses: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) truth: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agreement: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) adaptation: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) method: Option<String>,
    /// Of the method; absent in truths and in the first format of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parameters: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) combination: Option<SavedWeights>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) evidence: Option<Vec<Vec<f64>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) innovation: Option<Vec<Vec<Vec<f64>>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) likelihoods: Option<Vec<Likelihood>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) centrality: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) informativeness: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) influence: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) share: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) changes: Option<Vec<SavedChange>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) history: Option<Vec<SavedSnapshot>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) diagnostics: Option<Diagnostics>,
}

/// A change, as a world made it or a learner noticed it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedChange {
    /// When it was noticed, in the unit of the beliefs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<Value>,
    /// The first estimated frame of the new order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<usize>,
    #[serde(flatten)]
    pub(super) event: WorldEvent,
}

/// The network as it was at a time.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedSnapshot {
    time: Value,
    step: usize,
    combination: SavedWeights,
    evidence: Vec<Vec<f64>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum SavedWeights {
    /// Rows = speakers, columns = listeners.
    Dense(Vec<Vec<f64>>),
    Sparse {
        sparse: Vec<(usize, usize, f64)>,
    },
}

/// The parameters of a method, beside its name; none where they are unknown.
fn parameters(method: &Method) -> Option<Map<String, Value>> {
    match serde_json::to_value(method) {
        Ok(Value::Object(mut parameters)) if !matches!(method, Method::Unknown { .. }) => {
            parameters.remove(METHOD_TAG);
            Some(parameters)
        }
        _ => None,
    }
}

/// The method of a document. Where the parameters are not recorded, a warning is added to the diagnostics.
pub(super) fn method_from(
    name: Option<String>,
    parameters: Option<Map<String, Value>>,
    diagnostics: &mut Diagnostics,
    path: &Path,
) -> Result<Method, Error> {
    match (name, parameters) {
        (None, _) => Ok(Method::Given),
        (Some(name), Some(mut parameters)) => {
            parameters.insert(METHOD_TAG.to_owned(), name.into());
            let method = serde_json::from_value(Value::Object(parameters));
            method.map_err(|error| Error::file(path, format!("\"parameters\" of the method: {error}")))
        }
        (Some(name), None) => {
            let method = Method::from_name(&name);
            let warning = unrecorded(&method).filter(|warning| !diagnostics.warnings.contains(warning));
            diagnostics.warnings.extend(warning);
            Ok(method)
        }
    }
}

/// A warning for a model in a file without the parameters of its method.
fn unrecorded(method: &Method) -> Option<String> {
    let unknown = method.unknown_parameters();
    let names = unknown.join(", ");
    let warning = format!(
        "the model file has the format {FIRST_MODEL_FORMAT}, which does not record these parameters of the method {}: {names}; intervals and p-values use their defaults",
        method.name()
    );
    (!unknown.is_empty()).then_some(warning)
}

pub(super) fn read_json(reader: impl Read, path: &Path) -> Result<(Document, Parts), Error> {
    let mut document: Document = serde_json::from_reader(reader).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        Error::place(path, place, format!("is not a model: {error}"))
    })?;
    check_hypotheses(path, document.hypotheses.len())?;
    let (agents, ratios) = (document.agents.len(), document.hypotheses.len().saturating_sub(1));
    let combination = document.combination.take().map(|weights| combined(weights, agents, path)).transpose()?;
    let evidence = document.evidence.take().map(|rows| evidenced(&rows, agents, ratios, path)).transpose()?;
    let innovation = match document.innovation.take() {
        None => None,
        Some(blocks) => {
            let square = |block: &Vec<Vec<f64>>| block.len() == ratios && block.iter().all(|row| row.len() == ratios);
            if blocks.len() != agents || !blocks.iter().all(square) {
                return Err(ragged(path, "innovation", &format!("{agents}×{ratios}×{ratios}")));
            }
            Some(Innovation::from_cells(blocks.concat().concat(), agents, ratios).map_err(Error::data(path))?)
        }
    };
    Ok((document, Parts { combination, evidence, innovation }))
}

/// What a model is called in the folder of a run.
const MODEL_NAME: &str = "model.json";

/// What another file of ours is, by its keys.
fn kind_of(reader: impl Read) -> Option<&'static str> {
    #[derive(Deserialize)]
    struct Keys {
        format: Option<IgnoredAny>,
        verdict: Option<IgnoredAny>,
        divergence: Option<IgnoredAny>,
        stages: Option<IgnoredAny>,
        nodes: Option<IgnoredAny>,
        edges: Option<IgnoredAny>,
    }
    let keys: Keys = serde_json::from_reader(reader).ok()?;
    if keys.verdict.is_some() && keys.divergence.is_some() {
        return Some("a ranking");
    }
    if keys.format.is_some() && keys.stages.is_some() {
        return Some("the record of a run");
    }
    (keys.nodes.is_some() && keys.edges.is_some()).then_some("a network for other programs")
}

/// Says of another file of ours what it is, and not where it is no model.
pub(super) fn other_file(path: &Path) -> Option<Error> {
    let kind = kind_of(BufReader::new(File::open(path).ok()?))?;
    Some(Error::file(path, format!("is {kind}; a model is expected, such as {MODEL_NAME}")))
}

fn ragged(path: &Path, key: &str, wanted: &str) -> Error {
    Error::file(path, format!("{key:?} must be {wanted} numbers"))
}

pub(super) fn combined(weights: SavedWeights, agents: usize, path: &Path) -> Result<Combination, Error> {
    let found = match weights {
        SavedWeights::Sparse { sparse } => Combination::from_triplets(sparse, agents),
        SavedWeights::Dense(rows) => {
            if rows.len() != agents || rows.iter().any(|row| row.len() != agents) {
                return Err(ragged(path, "combination", &format!("{agents}×{agents}")));
            }
            let cells = (0..agents * agents).map(|cell| rows[cell % agents][cell / agents]).collect();
            Combination::from_columns(cells, agents)
        }
    };
    found.map_err(Error::data(path))
}

pub(super) fn evidenced(rows: &[Vec<f64>], agents: usize, ratios: usize, path: &Path) -> Result<Evidence, Error> {
    if rows.len() != agents || rows.iter().any(|row| row.len() != ratios) {
        return Err(ragged(path, "evidence", &format!("{agents}×{ratios}")));
    }
    Evidence::from_rows(rows.concat(), agents, ratios).map_err(Error::data(path))
}

/// The changes and snapshots of a tracked model. The changes of a truth have no time and are left out.
pub(super) fn read_track(
    changes: Option<Vec<SavedChange>>,
    history: Option<Vec<SavedSnapshot>>,
    roster: &Roster,
    path: &Path,
) -> Result<Track, Error> {
    let mut track = Track::default();
    let shown = |time: &Value| time.as_str().map_or_else(|| time.to_string(), str::to_owned);
    for SavedChange { time, since, event } in changes.into_iter().flatten() {
        let (Some(time), Some(since)) = (time, since) else { continue };
        let kind = match event.kind.as_str() {
            "topology" => ChangeKind::Topology,
            "state" => ChangeKind::State,
            other => {
                return Err(Error::file(path, format!("has a change of kind {other:?}; expected topology or state")));
            }
        };
        let listeners: Result<_, _> = event.agents.iter().map(|agent| roster.agent(agent)).collect();
        let truth = event.truth.map(|name| roster.hypothesis(&name)).transpose().map_err(Error::data(path))?;
        track.times.push((event.step, shown(&time)));
        let mut change = DetectedChange::topology(event.step, since, listeners.map_err(Error::data(path))?);
        (change.kind, change.truth) = (kind, truth);
        track.changes.push(change);
    }
    for SavedSnapshot { time, step, combination, evidence } in history.into_iter().flatten() {
        track.times.push((step, shown(&time)));
        let combination = combined(combination, roster.agents().len(), path)?;
        let evidence = evidenced(&evidence, roster.agents().len(), roster.ratios(), path)?;
        track.history.push(NetworkSnapshot::new(step, combination, evidence));
    }
    Ok(track)
}

/// A step number as a number, any other time as text.
fn time_value(time: &str) -> Value {
    time.parse::<i64>().map_or_else(|_| Value::from(time), Value::from)
}

pub(super) fn some<T>(list: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let list: Vec<T> = list.collect();
    (!list.is_empty()).then_some(list)
}

pub(super) fn document(model: &Model, format: &str) -> Document {
    let track = &model.track;
    let changes = track.changes.iter().map(|change| {
        let mut event = WorldEvent::new(change.step, change.kind.name());
        event.agents = model.roster.names(&change.listeners);
        event.truth = change.truth.map(|truth| model.roster.hypotheses()[truth].clone());
        SavedChange { time: Some(time_value(&track.time(change.step))), since: Some(change.since), event }
    });
    let history = track.history.iter().map(|past| SavedSnapshot {
        time: time_value(&track.time(past.step)),
        step: past.step,
        combination: weights(&past.combination),
        evidence: rows(&past.evidence),
    });
    Document {
        format: format.to_owned(),
        agents: model.roster.agents().to_vec(),
        hypotheses: model.roster.hypotheses().to_vec(),
        reference: Some(model.roster.reference().to_owned()),
        truth: model.truth.map(|verdict| model.roster.hypotheses()[verdict.hypothesis].clone()),
        agreement: model.truth.map(|verdict| verdict.agreement),
        adaptation: Some(model.adaptation),
        method: Some(model.method.name().to_owned()),
        parameters: if format == TRUTH_FORMAT { None } else { parameters(&model.method) },
        combination: None,
        evidence: None,
        innovation: None,
        likelihoods: model.likelihoods.clone(),
        centrality: None,
        informativeness: None,
        influence: None,
        share: None,
        changes: some(changes),
        history: some(history),
        diagnostics: Some(model.diagnostics.clone()),
    }
}

pub(super) fn with_numbers(document: Document, model: &Model) -> Document {
    let agents = 0..model.evidence.agents();
    let ratios = model.evidence.ratios();
    let block = |innovation: &Innovation, agent: usize| -> Vec<Vec<f64>> {
        innovation.agent(agent).chunks(ratios).map(<[f64]>::to_vec).collect()
    };
    Document {
        evidence: Some(rows(&model.evidence)),
        innovation: (model.innovation.as_ref())
            .map(|innovation| agents.map(|agent| block(innovation, agent)).collect()),
        ..document
    }
}

fn rows(evidence: &Evidence) -> Vec<Vec<f64>> {
    (0..evidence.agents()).map(|agent| evidence.agent(agent).to_vec()).collect()
}

pub(super) fn weights(combination: &Combination) -> SavedWeights {
    if combination.is_sparse() {
        return SavedWeights::Sparse { sparse: combination.edges().collect() };
    }
    let agents = combination.agents();
    let row = |speaker| (0..agents).map(|listener| combination.weight(speaker, listener)).collect();
    SavedWeights::Dense((0..agents).map(row).collect())
}

pub(super) fn write_json(mut file: AtomicFile, document: &Document) -> Result<AtomicFile, Error> {
    let path = file.path().to_owned();
    serde_json::to_writer(&mut file, document).map_err(|error| Error::file(&path, error.to_string()))?;
    writeln!(file).map_err(Error::io(&path, "cannot write"))?;
    Ok(file)
}
