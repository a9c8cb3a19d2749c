//! Models and truths on disk: JSON that people and other programs read, or `.npz` that is compact and fast.

use crate::npy::{self, Header, Kind};
use crate::{AtomicFile, Error};
use headwater::combination::Columns;
use headwater::compare::GroundTruth;
use headwater::influence;
use headwater::influence::signed_shares;
use headwater::model::{
    ChangeKind, DetectedChange, Diagnostics, Innovation, Likelihood, NetworkSnapshot, Track, TrueHypothesis,
};
use headwater::simulate::WorldEvent;
use headwater::{Combination, Evidence, Method, Model, Roster};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The format of models as they are written; a file that says so loads in every later version.
pub const MODEL_FORMAT: &str = "headwater-model/2";

/// The first format, which records the name of the method without its parameters.
const FIRST_MODEL_FORMAT: &str = "headwater-model/1";

/// The key under which a serialised method has its name.
const METHOD_TAG: &str = "name";

const TRUTH_FORMAT: &str = "headwater-truth/1";

/// Beyond this many agents a matrix is written sparsely.
const DENSE_AGENTS: usize = 5000;

/// The keys of a model or truth; all but names are optional so that a truth may hold what is known.
#[derive(Debug, Serialize, Deserialize)]
struct Document {
    #[serde(default)]
    format: String,
    agents: Vec<String>,
    hypotheses: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    truth: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agreement: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adaptation: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// Of the method; absent in truths and in the first format of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parameters: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    combination: Option<Weights>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    evidence: Option<Vec<Vec<f64>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    innovation: Option<Vec<Vec<Vec<f64>>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    likelihoods: Option<Vec<Likelihood>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    centrality: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    informativeness: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    influence: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<Happening>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    history: Option<Vec<Past>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    diagnostics: Option<Diagnostics>,
}

/// A change, as a world made it or a learner noticed it.
#[derive(Debug, Serialize, Deserialize)]
struct Happening {
    /// When it was noticed, in the unit of the beliefs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<Value>,
    /// The first estimated frame of the new order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<usize>,
    #[serde(flatten)]
    event: WorldEvent,
}

/// The network as it was at a time.
#[derive(Debug, Serialize, Deserialize)]
struct Past {
    time: Value,
    step: usize,
    combination: Weights,
    evidence: Vec<Vec<f64>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Weights {
    /// Rows = speakers, columns = listeners.
    Dense(Vec<Vec<f64>>),
    Sparse {
        sparse: Vec<(usize, usize, f64)>,
    },
}

/// What a simulated world knows of itself.
#[derive(Debug, Clone)]
pub struct Truth {
    /// The model at the end.
    pub model: Model,
    /// What changed on the way.
    pub changes: Vec<WorldEvent>,
}

/// Reads a model or a truth, JSON or `.npz`.
pub fn read_model(path: &Path) -> Result<Model, Error> {
    let (document, parts) = read(path)?;
    whole(document, parts, path)
}

/// A model as the bytes of an `.npz` file.
pub fn model_to_bytes(model: &Model) -> Result<Vec<u8>, Error> {
    let (document, path) = (document(model, MODEL_FORMAT), Path::new("the model"));
    let bytes = write_npz(Cursor::new(Vec::new()), path, &document, model, &model.combination)?;
    Ok(bytes.into_inner())
}

/// The model behind such bytes.
pub fn model_of_bytes(bytes: &[u8]) -> Result<Model, Error> {
    let path = Path::new("the model");
    let (document, parts) = read_npz(Cursor::new(bytes), path)?;
    whole(document, parts, path)
}

fn whole(document: Document, parts: Parts, path: &Path) -> Result<Model, Error> {
    let roster = roster(&document, path)?;
    let missing = |key: &str| Error::file(path, format!("has no {key:?}; a whole {MODEL_FORMAT} file is wanted"));
    let adaptation = document.adaptation.ok_or_else(|| missing("adaptation"))?;
    headwater::model::check_adaptation(adaptation).map_err(Error::data(path))?;
    let truth = match &document.truth {
        None => None,
        Some(name) => {
            let hypothesis = roster.hypothesis(name).map_err(Error::data(path))?;
            Some(TrueHypothesis::new(hypothesis, document.agreement.unwrap_or(1.0)))
        }
    };
    if document.likelihoods.as_ref().is_some_and(|list| list.len() != roster.agents().len()) {
        return Err(Error::file(path, "\"likelihoods\" must have one entry per agent"));
    }
    let track = read_track(document.changes, document.history, &roster, path)?;
    let mut diagnostics = document.diagnostics.unwrap_or_default();
    let method = match (document.method, document.parameters) {
        (None, _) => Method::Given,
        (Some(name), Some(mut parameters)) => {
            parameters.insert(METHOD_TAG.to_owned(), name.into());
            let method = serde_json::from_value(Value::Object(parameters));
            method.map_err(|error| Error::file(path, format!("\"parameters\" of the method: {error}")))?
        }
        (Some(name), None) => {
            let method = Method::from_name(&name);
            let warning = unrecorded(&method).filter(|warning| !diagnostics.warnings.contains(warning));
            diagnostics.warnings.extend(warning);
            method
        }
    };
    let combination = parts.combination.ok_or_else(|| missing("combination"))?;
    let evidence = parts.evidence.ok_or_else(|| missing("evidence"))?;
    let mut model = Model::new(roster, combination, evidence, adaptation, method);
    model.innovation = parts.innovation;
    model.truth = truth;
    model.likelihoods = document.likelihoods;
    model.diagnostics = diagnostics;
    model.track = track;
    Ok(model)
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

/// What has to be known of a model in a file without the parameters of its method.
fn unrecorded(method: &Method) -> Option<String> {
    let unknown = method.unknown_parameters();
    let names = unknown.join(", ");
    let warning = format!(
        "the model file has the format {FIRST_MODEL_FORMAT}, which does not record these parameters of the method {}: {names}; intervals and p-values use their defaults",
        method.name()
    );
    (!unknown.is_empty()).then_some(warning)
}

/// Reads whatever a truth, or a model, knows.
pub fn read_known(path: &Path) -> Result<GroundTruth, Error> {
    let (document, parts) = read(path)?;
    let roster = roster(&document, path)?;
    let agents = roster.agents().len();
    let whole = parts.combination.is_some() && parts.evidence.is_some() && document.adaptation.is_some();
    let share = match document.influence.as_deref().and_then(signed_shares).or_else(|| document.share.clone()) {
        Some(share) => Some(share),
        None if whole => influence(&read_model(path)?).map_err(Error::data(path))?.signed_share(),
        None => None,
    };
    if share.as_ref().is_some_and(|share| share.len() != agents) {
        return Err(Error::file(path, "\"influence\" must have one number per agent"));
    }
    let mut known = GroundTruth::new(roster);
    known.combination = parts.combination;
    known.evidence = parts.evidence;
    known.adaptation = document.adaptation;
    known.share = share;
    Ok(known)
}

struct Parts {
    combination: Option<Combination>,
    evidence: Option<Evidence>,
    innovation: Option<Innovation>,
}

fn roster(document: &Document, path: &Path) -> Result<Roster, Error> {
    Roster::new(document.agents.iter().cloned(), document.hypotheses.iter().cloned()).map_err(Error::data(path))
}

fn is_npz(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npz")
}

fn read(path: &Path) -> Result<(Document, Parts), Error> {
    if path.is_dir() {
        return Err(Error::file(path, "is a folder; a model file is wanted"));
    }
    let file = File::open(path).map_err(Error::io(path, "cannot read"))?;
    let reader = BufReader::with_capacity(1 << 18, file);
    let (document, parts) = if is_npz(path) { read_npz(reader, path)? } else { read_json(reader, path)? };
    if ![MODEL_FORMAT, FIRST_MODEL_FORMAT, TRUTH_FORMAT].contains(&document.format.as_str()) {
        let met = if document.format.is_empty() { "no \"format\"".into() } else { format!("{:?}", document.format) };
        let known = format!("{MODEL_FORMAT:?}, {FIRST_MODEL_FORMAT:?} and {TRUTH_FORMAT:?}");
        return Err(Error::file(path, format!("has {met}; this program reads {known}")));
    }
    if let (Some(reference), Some(first)) = (&document.reference, document.hypotheses.first())
        && reference != first
    {
        return Err(Error::file(
            path,
            format!("\"reference\" is {reference:?}, but must be the first hypothesis, {first:?}"),
        ));
    }
    if let Some(agreement) = document.agreement.filter(|agreement| !(0.0..=1.0).contains(agreement)) {
        return Err(Error::file(path, format!("\"agreement\" is {agreement}, but must be a share in 0…1")));
    }
    Ok((document, parts))
}

fn read_json(reader: impl Read, path: &Path) -> Result<(Document, Parts), Error> {
    let mut document: Document = serde_json::from_reader(reader).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        Error::place(path, place, format!("is not a model: {error}"))
    })?;
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

fn ragged(path: &Path, key: &str, wanted: &str) -> Error {
    Error::file(path, format!("{key:?} must be {wanted} numbers"))
}

fn combined(weights: Weights, agents: usize, path: &Path) -> Result<Combination, Error> {
    let found = match weights {
        Weights::Sparse { sparse } => Combination::from_triplets(sparse, agents),
        Weights::Dense(rows) => {
            if rows.len() != agents || rows.iter().any(|row| row.len() != agents) {
                return Err(ragged(path, "combination", &format!("{agents}×{agents}")));
            }
            let cells = (0..agents * agents).map(|cell| rows[cell % agents][cell / agents]).collect();
            Combination::from_columns(cells, agents)
        }
    };
    found.map_err(Error::data(path))
}

fn evidenced(rows: &[Vec<f64>], agents: usize, ratios: usize, path: &Path) -> Result<Evidence, Error> {
    if rows.len() != agents || rows.iter().any(|row| row.len() != ratios) {
        return Err(ragged(path, "evidence", &format!("{agents}×{ratios}")));
    }
    Evidence::from_rows(rows.concat(), agents, ratios).map_err(Error::data(path))
}

/// What a tracked model went through. A truth's own changes are another matter, and have no time.
fn read_track(
    changes: Option<Vec<Happening>>,
    history: Option<Vec<Past>>,
    roster: &Roster,
    path: &Path,
) -> Result<Track, Error> {
    let mut track = Track::default();
    let shown = |time: &Value| time.as_str().map_or_else(|| time.to_string(), str::to_owned);
    for Happening { time, since, event } in changes.into_iter().flatten() {
        let (Some(time), Some(since)) = (time, since) else { continue };
        let kind = match event.kind.as_str() {
            "topology" => ChangeKind::Topology,
            "state" => ChangeKind::State,
            other => {
                return Err(Error::file(path, format!("has a change of kind {other:?}; wanted topology or state")));
            }
        };
        let listeners: Result<_, _> = event.agents.iter().map(|agent| roster.agent(agent)).collect();
        let truth = event.truth.map(|name| roster.hypothesis(&name)).transpose().map_err(Error::data(path))?;
        track.times.push((event.step, shown(&time)));
        let mut change = DetectedChange::topology(event.step, since, listeners.map_err(Error::data(path))?);
        (change.kind, change.truth) = (kind, truth);
        track.changes.push(change);
    }
    for Past { time, step, combination, evidence } in history.into_iter().flatten() {
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

fn read_npz(reader: impl Read + Seek, path: &Path) -> Result<(Document, Parts), Error> {
    let mut archive = ZipArchive::new(reader)
        .map_err(|error| Error::file(path, format!("is not a whole .npz file ({error}); write it again")))?;
    let text = read_text(&mut archive, path)?;
    let document: Document = serde_json::from_str(&text)
        .map_err(|error| Error::file(path, format!("its \"meta\" is not a model's: {error}")))?;
    let (agents, ratios) = (document.agents.len(), document.hypotheses.len().saturating_sub(1));
    let dense = read_array(&mut archive, path, "combination", &[agents, agents], true)?;
    let combination = match dense {
        Some(columns) => Some(Combination::from_columns(columns, agents).map_err(Error::data(path))?),
        None => read_sparse(&mut archive, path, agents)?,
    };
    let evidence = match read_array(&mut archive, path, "evidence", &[agents, ratios], false)? {
        Some(rows) => Some(Evidence::from_rows(rows, agents, ratios).map_err(Error::data(path))?),
        None => None,
    };
    let innovation = match read_array(&mut archive, path, "innovation", &[agents, ratios, ratios], false)? {
        Some(cells) => Some(Innovation::from_cells(cells, agents, ratios).map_err(Error::data(path))?),
        None => None,
    };
    Ok((document, Parts { combination, evidence, innovation }))
}

fn read_text(archive: &mut ZipArchive<impl Read + Seek>, path: &Path) -> Result<String, Error> {
    let broken = |problem: String| Error::file(path, format!("\"meta\": {problem}"));
    let mut member = archive.by_name("meta.npy").map_err(|error| broken(error.to_string()))?;
    let header = Header::read(&mut member, path)?;
    let Kind::Text(length) = header.kind else { return Err(broken("is not text".into())) };
    let mut bytes = Vec::new();
    member.read_to_end(&mut bytes).map_err(|error| broken(error.to_string()))?;
    if bytes.len() != 4 * length || !header.shape.is_empty() {
        return Err(broken("is not one whole text".into()));
    }
    let character = |bytes: &[u8]| {
        let bytes: [u8; 4] = bytes.try_into().ok()?;
        char::from_u32(if header.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let text: Option<String> = bytes.chunks_exact(4).map(character).collect();
    text.map(|text| text.trim_end_matches('\0').to_owned()).ok_or_else(|| broken("is not Unicode".into()))
}

/// One array in row order, or in column order when `columns`; `None` when the file does not hold it.
fn read_array(
    archive: &mut ZipArchive<impl Read + Seek>,
    path: &Path,
    name: &str,
    shape: &[usize],
    columns: bool,
) -> Result<Option<Vec<f64>>, Error> {
    let Ok(mut member) = archive.by_name(&format!("{name}.npy")) else { return Ok(None) };
    let header = Header::read(&mut member, path)?;
    let broken = |problem: String| Error::file(path, format!("array {name:?} {problem}"));
    // A shape of zeros asks for whatever length the one side has.
    let fits = if shape == [0] { header.shape.len() == 1 } else { header.shape == shape };
    if !fits {
        return Err(broken(format!("has shape {:?}; wanted {shape:?}", header.shape)));
    }
    if matches!(header.kind, Kind::Text(_)) || header.bytes().is_none_or(|bytes| bytes as u64 > member.size()) {
        return Err(broken("is truncated, or not numbers".into()));
    }
    let count = header.shape.iter().product();
    let mut numbers = vec![0.0; count];
    header.floats(&mut member, &mut numbers).map_err(|error| broken(format!("is damaged: {error}")))?;
    if header.fortran == columns || shape.len() < 2 {
        return Ok(Some(numbers));
    }
    // Only matrices are ever stored the other way round.
    let [rows, others @ ..] = shape else { return Ok(Some(numbers)) };
    let others: usize = others.iter().product();
    if shape.len() > 2 {
        return Err(broken("is in Fortran order; save it in C order".into()));
    }
    let turned = (0..count).map(|cell| {
        if columns {
            numbers[cell % rows * others + cell / rows]
        } else {
            numbers[cell % others * rows + cell / others]
        }
    });
    Ok(Some(turned.collect()))
}

fn read_sparse(
    archive: &mut ZipArchive<impl Read + Seek>,
    path: &Path,
    agents: usize,
) -> Result<Option<Combination>, Error> {
    let Some(starts) = read_array(archive, path, "combination_indptr", &[agents + 1], false)? else { return Ok(None) };
    let broken = || Error::file(path, "its sparse combination is damaged; wanted CSC arrays, column = listener");
    let speakers = read_array(archive, path, "combination_indices", &[0], false)?.ok_or_else(broken)?;
    let weights = read_array(archive, path, "combination_data", &[0], false)?.ok_or_else(broken)?;
    let sound = starts.windows(2).all(|pair| pair[0] <= pair[1])
        && starts.first() == Some(&0.0)
        && starts.last() == Some(&(weights.len() as f64))
        && speakers.len() == weights.len()
        && starts.iter().chain(&speakers).all(|index| *index >= 0.0 && index.fract() == 0.0);
    if !sound {
        return Err(broken());
    }
    let mut triplets = Vec::with_capacity(weights.len());
    for listener in 0..agents {
        for entry in starts[listener] as usize..starts[listener + 1] as usize {
            triplets.push((speakers[entry] as usize, listener, weights[entry]));
        }
    }
    Combination::from_triplets(triplets, agents).map(Some).map_err(Error::data(path))
}

/// Writes a model, JSON or `.npz` by extension.
pub fn write_model(path: &Path, model: &Model) -> Result<(), Error> {
    let document = document(model, MODEL_FORMAT);
    let draft = if is_npz(path) { AtomicFile::create_seekable(path)? } else { AtomicFile::create(path)? };
    let sparse = (model.combination.agents() > DENSE_AGENTS).then(|| model.combination.to_sparse());
    let combination = sparse.as_ref().unwrap_or(&model.combination);
    if is_npz(path) {
        return write_npz(draft, path, &document, model, combination)?.commit();
    }
    let document = Document { combination: Some(weights(combination)), ..with_numbers(document, model) };
    write_json(draft, &document)?.commit()
}

/// Writes a truth as JSON; it takes its name when the returned draft is committed.
pub fn write_truth(path: &Path, truth: &Truth) -> Result<AtomicFile, Error> {
    let model = &truth.model;
    let found = influence(model).map_err(Error::data(path))?;
    let sparse = model.combination.agents() > DENSE_AGENTS;
    let combination = if sparse {
        model.combination.clone()
    } else {
        let agents = model.combination.agents();
        Combination::from_columns(model.combination.to_columns(), agents).map_err(Error::data(path))?
    };
    let document = Document {
        combination: Some(weights(&combination)),
        centrality: Some(found.centrality.values),
        informativeness: Some(found.informativeness),
        influence: Some(found.influence),
        share: found.share,
        changes: some(truth.changes.iter().map(|event| Happening { time: None, since: None, event: event.clone() })),
        diagnostics: None,
        ..with_numbers(document(model, TRUTH_FORMAT), model)
    };
    write_json(AtomicFile::create(path)?, &document)
}

fn some<T>(list: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let list: Vec<T> = list.collect();
    (!list.is_empty()).then_some(list)
}

fn document(model: &Model, format: &str) -> Document {
    let track = &model.track;
    let changes = track.changes.iter().map(|change| {
        let mut event = WorldEvent::new(change.step, change.kind.name());
        event.agents = model.roster.names(&change.listeners);
        event.truth = change.truth.map(|truth| model.roster.hypotheses()[truth].clone());
        Happening { time: Some(time_value(&track.time(change.step))), since: Some(change.since), event }
    });
    let history = track.history.iter().map(|past| Past {
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

fn with_numbers(document: Document, model: &Model) -> Document {
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

fn weights(combination: &Combination) -> Weights {
    if combination.is_sparse() {
        return Weights::Sparse { sparse: combination.edges().collect() };
    }
    let agents = combination.agents();
    let row = |speaker| (0..agents).map(|listener| combination.weight(speaker, listener)).collect();
    Weights::Dense((0..agents).map(row).collect())
}

fn write_json(mut draft: AtomicFile, document: &Document) -> Result<AtomicFile, Error> {
    let path = draft.path().to_owned();
    serde_json::to_writer(&mut draft, document).map_err(|error| Error::file(&path, error.to_string()))?;
    writeln!(draft).map_err(Error::io(&path, "cannot write"))?;
    Ok(draft)
}

fn write_npz<W: Write + Seek>(
    to: W,
    path: &Path,
    document: &Document,
    model: &Model,
    combination: &Combination,
) -> Result<W, Error> {
    let broken = |error: &dyn std::fmt::Display| Error::file(path, format!("cannot write: {error}"));
    let mut archive = ZipWriter::new(to);
    let mut array = |name: &str, header: &Header, body: &mut dyn FnMut(&mut dyn Write) -> std::io::Result<()>| {
        let large = header.bytes().is_none_or(|bytes| bytes > 0xF000_0000);
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
        archive.start_file(format!("{name}.npy"), options).map_err(|error| broken(&error))?;
        header.write(&mut archive).and_then(|()| body(&mut archive)).map_err(|error| broken(&error))
    };
    let floats = |numbers: &[f64], to: &mut dyn Write| npy::write_floats(&mut { to }, numbers);
    let agents = combination.agents();
    match (combination.dense(), combination.sparse()) {
        (Some(columns), _) => {
            let header = Header::new(Kind::Float64, true, &[agents, agents]);
            array("combination", &header, &mut |to| floats(columns, to))?;
        }
        (None, Some(Columns { starts, speakers, weights })) => {
            let header = Header::new(Kind::Float64, false, &[weights.len()]);
            array("combination_data", &header, &mut |to| floats(weights, to))?;
            for (name, list) in [("combination_indices", speakers), ("combination_indptr", starts)] {
                let header = Header::new(Kind::Int64, false, &[list.len()]);
                array(name, &header, &mut |to| {
                    let bytes: Vec<u8> = list.iter().flat_map(|index| (*index as i64).to_le_bytes()).collect();
                    to.write_all(&bytes)
                })?;
            }
        }
        (None, None) => unreachable!("a matrix is dense or sparse"),
    }
    let ratios = model.evidence.ratios();
    let rows: Vec<f64> = (0..agents).flat_map(|agent| model.evidence.agent(agent).to_vec()).collect();
    let header = Header::new(Kind::Float64, false, &[agents, ratios]);
    array("evidence", &header, &mut |to| floats(&rows, to))?;
    if let Some(innovation) = &model.innovation {
        let header = Header::new(Kind::Float64, false, &[agents, ratios, ratios]);
        array("innovation", &header, &mut |to| floats(innovation.cells(), to))?;
    }
    let text = serde_json::to_string(document).map_err(|error| broken(&error))?;
    let characters: Vec<u8> = text.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect();
    let header = Header::new(Kind::Text(characters.len() / 4), false, &[]);
    array("meta", &header, &mut |to| to.write_all(&characters))?;
    archive.finish().map_err(|error| broken(&error))
}
