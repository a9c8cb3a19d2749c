//! Models and truths on disk: JSON that people and other programs read, or `.npz` that is compact and fast.

mod document;
mod npz;

use crate::{AtomicFile, Error};
use document::{
    Document, SavedChange, document, method_from, other_file, read_json, read_track, some, weights, with_numbers,
    write_json,
};
use headwater::compare::GroundTruth;
use headwater::influence;
use headwater::influence::signed_shares;
use headwater::model::{Innovation, SMALLEST_ADAPTATION, TrueHypothesis, check_adaptation};
use headwater::simulate::WorldEvent;
use headwater::{Combination, Evidence, Model, Roster};
use npz::{read_npz, write_npz};
use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::Path;

/// The format of models as they are written; a file that says so loads in every later version.
pub const MODEL_FORMAT: &str = "headwater-model/2";

/// The first format, which records the name of the method without its parameters.
const FIRST_MODEL_FORMAT: &str = "headwater-model/1";

/// The key under which a serialised method has its name.
const METHOD_TAG: &str = "name";

const TRUTH_FORMAT: &str = "headwater-truth/1";

/// Beyond this many agents a matrix is written sparsely.
const DENSE_AGENTS: usize = 5000;

/// What a simulated world knows of itself.
#[derive(Debug, Clone)]
pub struct SimulatedTruth {
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

/// The model behind the bytes of an `.npz` or JSON file.
pub fn model_from_bytes(bytes: &[u8]) -> Result<Model, Error> {
    let path = Path::new("the model");
    let npz = bytes.starts_with(b"PK");
    let (document, parts) = if npz { read_npz(Cursor::new(bytes), path)? } else { read_json(bytes, path)? };
    check(&document, path)?;
    whole(document, parts, path)
}

fn whole(document: Document, parts: Parts, path: &Path) -> Result<Model, Error> {
    let roster = roster(&document, path)?;
    let missing = |key: &str| Error::file(path, format!("has no {key:?}; a whole {MODEL_FORMAT} file is expected"));
    let adaptation = document.adaptation.ok_or_else(|| missing("adaptation"))?;
    if check_adaptation(adaptation).is_err() {
        let range = format!("a number of at least {SMALLEST_ADAPTATION:e} and below 1");
        return Err(Error::range(path, "adaptation", &adaptation, range));
    }
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
    let method = method_from(document.method, document.parameters, &mut diagnostics, path)?;
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

/// The numbers of a document, as far as it has them.
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
        return Err(Error::file(path, "is a folder; a model file is expected"));
    }
    let file = File::open(path).map_err(Error::io(path, "cannot read"))?;
    let reader = BufReader::with_capacity(1 << 18, file);
    let (document, parts) = if is_npz(path) {
        read_npz(reader, path)?
    } else {
        read_json(reader, path).map_err(|error| other_file(path).unwrap_or(error))?
    };
    check(&document, path)?;
    Ok((document, parts))
}

/// Refuses documents of other formats, and values out of their range.
fn check(document: &Document, path: &Path) -> Result<(), Error> {
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
        return Err(Error::range(path, "\"agreement\"", &agreement, "a share in 0…1"));
    }
    Ok(())
}

/// Writes a model, JSON or `.npz` by extension.
pub fn write_model(path: &Path, model: &Model) -> Result<(), Error> {
    let document = document(model, MODEL_FORMAT);
    let file = if is_npz(path) { AtomicFile::create_seekable(path)? } else { AtomicFile::create(path)? };
    let sparse = (model.combination.agents() > DENSE_AGENTS).then(|| model.combination.to_sparse());
    let combination = sparse.as_ref().unwrap_or(&model.combination);
    if is_npz(path) {
        return write_npz(file, path, &document, model, combination)?.commit();
    }
    let document = Document { combination: Some(weights(combination)), ..with_numbers(document, model) };
    write_json(file, &document)?.commit()
}

/// Writes a truth as JSON; it takes its name when the returned file is committed.
pub fn write_truth(path: &Path, truth: &SimulatedTruth) -> Result<AtomicFile, Error> {
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
        changes: some(truth.changes.iter().map(|event| SavedChange { time: None, since: None, event: event.clone() })),
        diagnostics: None,
        ..with_numbers(document(model, TRUTH_FORMAT), model)
    };
    write_json(AtomicFile::create(path)?, &document)
}
