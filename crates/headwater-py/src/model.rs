//! Models and rankings.

use crate::beliefs::{Beliefs, Graph};
use crate::columns::{FrameColumn, columns_from_rows, table};
use crate::error::{PyError, no_choice};
use crate::learners::draws;
use crate::work::{Manner, done};
use headwater::compare::{GroundTruth, compare};
use headwater::evaluate::{DecidingTest, Verdict};
use headwater::model::DetectedChange;
use headwater::ranking::{Ranking as Ranked, Uncertainty};
use headwater::words::count;
use headwater::{Influence, Model as Learned, Panel, Roster, influence};
use headwater_files::{CsvText, Groups, model_from_bytes, model_to_bytes, ranking_table, read_model, write_model};
use headwater_report::explanation::WhatIfKind;
use headwater_report::export::{EdgeFilter, ExportFormat, ExportNetwork, json, write_files};
use headwater_report::page::{Page, ReportInput};
use headwater_report::{Explanation, figures};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Serialize;
use serde_json::{Value, json as json_value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A learned or given model.
#[pyclass(frozen, module = "headwater._headwater")]
pub(crate) struct Model {
    pub(crate) model: Learned,
    /// Computed when first asked for.
    found: OnceLock<Influence>,
}

impl From<Learned> for Model {
    fn from(model: Learned) -> Self {
        Model { model, found: OnceLock::new() }
    }
}

impl Model {
    fn found(&self, py: Python<'_>) -> PyResult<&Influence> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let found = done(py, &Manner::default(), || Ok(influence(&self.model)?))?;
        Ok(self.found.get_or_init(|| found))
    }
}

fn text(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A change as `learn --follow` prints it, with its step.
pub(crate) fn change_json(change: &DetectedChange, roster: &Roster, time: Value) -> Value {
    json_value!({
        "time": time,
        "step": change.step,
        "since": change.since,
        "kind": change.kind.name(),
        "listeners": roster.names(&change.listeners),
        "truth": change.truth.map(|truth| roster.hypotheses()[truth].clone()),
    })
}

/// The beliefs of a model's agents: those that it was learned without are left out.
fn of_model(panel: &Arc<Panel>, model: &Learned) -> PyResult<Arc<Panel>> {
    Ok(model.beliefs_among(panel).map_err(PyError::from)?.map_or_else(|| panel.clone(), Arc::new))
}

#[pymethods]
impl Model {
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        done(py, &Manner::default(), || Ok(read_model(&path)?.into()))
    }

    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Ok(model_from_bytes(data).map_err(PyError::from)?.into())
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| model_to_bytes(&self.model)).map_err(PyError::from)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        Ok(py.detach(|| write_model(&path, &self.model)).map_err(PyError::from)?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let load = slf.get_type().getattr("from_bytes")?;
        Ok((load, (slf.get().to_bytes(slf.py())?,)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Model>().is_ok_and(|other| other.get().model == self.model)
    }

    #[getter]
    fn agents(&self) -> Vec<String> {
        self.model.roster.agents().to_vec()
    }

    #[getter]
    fn hypotheses(&self) -> Vec<String> {
        self.model.roster.hypotheses().to_vec()
    }

    #[getter]
    fn reference(&self) -> &str {
        self.model.roster.reference()
    }

    #[getter]
    fn truth(&self) -> Option<&str> {
        self.model.truth.map(|truth| self.model.roster.hypotheses()[truth.hypothesis].as_str())
    }

    #[getter]
    fn agreement(&self) -> Option<f64> {
        self.model.truth.map(|truth| truth.agreement)
    }

    #[getter]
    fn adaptation(&self) -> f64 {
        self.model.adaptation
    }

    #[getter]
    fn method(&self) -> &str {
        self.model.method.name()
    }

    #[getter]
    fn steps(&self) -> Option<usize> {
        self.model.diagnostics.steps
    }

    #[getter]
    fn sparse(&self) -> bool {
        self.model.combination.is_sparse()
    }

    fn dense<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let agents = self.model.combination.agents();
        // Columns are contiguous: the transpose of their rows.
        let columns = self.model.combination.to_columns().into_pyarray(py).reshape([agents, agents])?;
        columns.transpose()
    }

    #[expect(clippy::type_complexity, reason = "data, indices, indptr")]
    fn csc<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>) {
        let sparse = self.model.combination.to_sparse();
        let columns = sparse.sparse().cloned().unwrap_or_default();
        let whole = |list: Vec<usize>| list.into_iter().map(|index| index as i64).collect::<Vec<_>>().into_pyarray(py);
        (columns.weights.into_pyarray(py), whole(columns.speakers), whole(columns.starts))
    }

    #[getter]
    fn evidence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let evidence = &self.model.evidence;
        let rows: Vec<f64> = (0..evidence.agents()).flat_map(|agent| evidence.agent(agent).to_vec()).collect();
        rows.into_pyarray(py).reshape([evidence.agents(), evidence.ratios()])
    }

    #[getter]
    fn innovation<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray3<f64>>>> {
        let Some(innovation) = &self.model.innovation else { return Ok(None) };
        let (agents, ratios) = (self.model.evidence.agents(), self.model.evidence.ratios());
        innovation.cells().to_vec().into_pyarray(py).reshape([agents, ratios, ratios]).map(Some)
    }

    #[getter]
    fn centrality<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.found(py)?.centrality.values.clone().into_pyarray(py))
    }

    #[getter]
    fn informativeness<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.found(py)?.informativeness.clone().into_pyarray(py))
    }

    #[getter]
    fn influence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.found(py)?.influence.clone().into_pyarray(py))
    }

    #[getter]
    fn share<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        Ok(self.found(py)?.share.clone().map(|share| share.into_pyarray(py)))
    }

    #[getter]
    fn sign<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<i8>>>> {
        Ok(self.found(py)?.sign.clone().map(|sign| sign.into_pyarray(py)))
    }

    fn likelihoods(&self) -> PyResult<String> {
        text(&self.model.likelihoods)
    }

    fn warnings(&self) -> Vec<String> {
        self.model.diagnostics.warnings.clone()
    }

    fn diagnostics(&self) -> PyResult<String> {
        text(&self.model.diagnostics)
    }

    fn changes(&self) -> PyResult<String> {
        let track = &self.model.track;
        let time = |step: usize| {
            let shown = track.time(step);
            shown.parse::<i64>().map_or(Value::from(shown), Value::from)
        };
        let changes = track.changes.iter();
        text(&changes.map(|change| change_json(change, &self.model.roster, time(change.step))).collect::<Vec<_>>())
    }

    fn verdict(&self) -> PyResult<VerdictParts> {
        verdict_parts(&Verdict::new(&self.model, None))
    }

    #[expect(clippy::too_many_arguments, reason = "they are the command's options")]
    #[pyo3(signature = (
        beliefs = None, graph = None, groups = None, bootstrap = None, null = None, top = 3, seed = 21, progress = None,
        threads = None
    ))]
    fn rank(
        &self,
        py: Python<'_>,
        beliefs: Option<PyRef<'_, Beliefs>>,
        graph: Option<PyRef<'_, Graph>>,
        groups: Option<BTreeMap<String, String>>,
        bootstrap: Option<u64>,
        null: Option<u64>,
        top: usize,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<Ranking> {
        if groups.is_some() && (beliefs.is_none() || graph.is_none()) {
            return Err(PyValueError::new_err("groups are those of the graph test, which needs beliefs and graph"));
        }
        for (name, draws) in [("bootstrap", bootstrap), ("null", null)] {
            if beliefs.is_none() && draws.is_some() {
                return Err(PyValueError::new_err(format!("{name} needs the beliefs that the model was learned from")));
            }
            self::draws(name, draws)?;
        }
        let panel = beliefs.as_ref().map(|beliefs| of_model(&beliefs.panel, &self.model)).transpose()?;
        let given = panel.as_ref().zip(beliefs.as_ref().map(|beliefs| beliefs.about()));
        let graph = graph.map(|graph| graph.links(&self.model.roster)).transpose()?;
        let model = &self.model;
        done(py, &Manner { progress, threads }, || {
            let mut ranking = Ranked::new(model)?;
            if let Some((panel, about)) = &given {
                ranking.add_activity(panel).map_err(about)?;
                ranking.add_uncertainty(&Uncertainty { bootstrap, null, top, seed }, model, panel).map_err(&about)?;
            }
            if let Some(graph) = &graph {
                ranking.add_graph(graph, &model.roster)?;
                let groups = groups.map(|groups| Groups::new(groups).among(&model.roster)).transpose()?;
                if let Some((panel, about)) = &given {
                    let groups = groups.map(|(groups, _)| groups);
                    ranking.add_graph_test(panel, graph, groups, &model.roster, seed).map_err(about)?;
                }
            }
            if let Some((panel, about)) = &given {
                ranking.add_power(panel, model, seed).map_err(about)?;
            }
            Ok(Ranking { ranking })
        })
    }

    #[pyo3(signature = (agent, what_if = None, top = 10))]
    fn explain(&self, py: Python<'_>, agent: &str, what_if: Option<&str>, top: usize) -> PyResult<String> {
        let what_if_kind = match what_if {
            None => None,
            Some("remove") => Some(WhatIfKind::Remove),
            Some("neutral") => Some(WhatIfKind::Neutral),
            Some(other) => return Err(no_choice("what_if", other, "remove or neutral")),
        };
        let agent = self.model.roster.agent(agent).map_err(PyError::from)?;
        text(&done(py, &Manner::default(), || Ok(Explanation::new(&self.model, agent, top, what_if_kind)?))?)
    }

    #[pyo3(signature = (truth, top = 3))]
    fn compare(&self, truth: &Model, top: usize) -> PyResult<String> {
        let found = GroundTruth::from_model(&truth.model).and_then(|known| compare(&self.model, &known, top));
        let mut found = json_value!(found.map_err(PyError::from)?);
        found["reference"] = self.model.roster.reference().into();
        text(&found)
    }

    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let names = self.model.roster.agents();
        let edges: Vec<(usize, usize, f64)> =
            self.model.combination.edges().filter(|(_, _, weight)| *weight != 0.0).collect();
        let named = |of: fn(&(usize, usize, f64)) -> usize| {
            FrameColumn::Text(edges.iter().map(|edge| names[of(edge)].clone()).collect())
        };
        table(
            py,
            vec![
                ("source".to_owned(), named(|edge| edge.0)),
                ("target".to_owned(), named(|edge| edge.1)),
                ("weight".to_owned(), FrameColumn::Numbers(edges.iter().map(|edge| edge.2).collect())),
            ],
        )
    }

    #[pyo3(signature = (ranking = None, beliefs = None, graph = None, truth = None, title = ""))]
    fn page(
        &self,
        py: Python<'_>,
        ranking: Option<PyRef<'_, Ranking>>,
        beliefs: Option<PyRef<'_, Beliefs>>,
        graph: Option<PyRef<'_, Graph>>,
        truth: Option<PyRef<'_, Model>>,
        title: &str,
    ) -> PyResult<String> {
        let model = &self.model;
        let given = ranking.as_ref().map(|ranking| &ranking.ranking);
        let panel = beliefs.as_ref().map(|beliefs| of_model(&beliefs.panel, &self.model)).transpose()?;
        let panel = panel.as_ref();
        let graph = match graph {
            Some(graph) => graph.among(&model.roster)?,
            None => None,
        };
        let truth = truth.map(|truth| GroundTruth::from_model(&truth.model)).transpose().map_err(PyError::from)?;
        done(py, &Manner::default(), || {
            let plain;
            let ranking = match given {
                Some(ranking) => ranking,
                None => {
                    let mut ranking = Ranked::new(model)?;
                    if let Some(panel) = panel {
                        ranking.add_activity(panel)?;
                    }
                    if let Some(graph) = &graph {
                        ranking.add_graph(graph, &model.roster)?;
                    }
                    plain = ranking;
                    &plain
                }
            };
            let input = ReportInput {
                beliefs: panel.map(AsRef::as_ref),
                graph: graph.as_ref(),
                truth: truth.as_ref(),
                title,
                ..ReportInput::new(model, ranking)
            };
            Ok(Page::new(&input)?.html()?)
        })
    }

    fn figure(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        if !["ranking", "network", "heat"].contains(&name) {
            return Err(no_choice("figure", name, "ranking, network or heat"));
        }
        done(py, &Manner::default(), || {
            let ranking = Ranked::new(&self.model)?;
            let input = ReportInput::new(&self.model, &ranking);
            Ok(match name {
                "ranking" => figures::ranking(&input),
                "network" => figures::network(&input)?,
                _ => figures::heat(&input)?,
            }
            .svg())
        })
    }

    #[pyo3(signature = (path, ranking = None, raw_csv = false))]
    fn export(
        &self,
        py: Python<'_>,
        path: PathBuf,
        ranking: Option<PyRef<'_, Ranking>>,
        raw_csv: bool,
    ) -> PyResult<Vec<String>> {
        let given = ranking.as_ref().map(|ranking| &ranking.ranking);
        done(py, &Manner::default(), || {
            let format = ExportFormat::from_path(&path)?;
            let plain;
            let ranking = match given {
                Some(ranking) => ranking,
                None => {
                    plain = Ranked::new(&self.model)?;
                    &plain
                }
            };
            let mut network = ExportNetwork::new(&self.model, ranking, &EdgeFilter::default())?;
            if format == ExportFormat::Gexf {
                network = network.drawn(&self.model, ranking);
            }
            let replaced = write_files(&path, &network, json::Reader::Networkx, csv_text(raw_csv))?;
            let mut warnings = Vec::new();
            if network.negative > 0 {
                warnings.push(format!("{} left out", count(network.negative, "negative weight")));
            }
            if replaced > 0 {
                let characters = count(replaced, "character");
                warnings.push(format!(
                    "XML does not allow {characters} of the names, replaced by \u{fffd}; .csv and .json keep them"
                ));
            }
            Ok(warnings)
        })
    }
}

/// How text is written into CSV.
pub(crate) fn csv_text(raw: bool) -> CsvText {
    if raw { CsvText::Raw } else { CsvText::Neutralised }
}

/// Outcome, sentence, p-value, deciding test, whether common news was excluded, the graph test as JSON, its companions.
type VerdictParts = (&'static str, String, Option<f64>, Option<&'static str>, bool, Option<String>, Vec<String>);

fn verdict_parts(verdict: &Verdict) -> PyResult<VerdictParts> {
    Ok((
        verdict.outcome.name(),
        verdict.to_string(),
        verdict.p_value,
        verdict.test.map(DecidingTest::name),
        verdict.common_news_excluded(),
        verdict.graph_test.as_ref().map(text).transpose()?,
        verdict.companions(),
    ))
}

/// A ranking with its verdict.
#[pyclass(frozen, module = "headwater._headwater")]
pub(crate) struct Ranking {
    ranking: Ranked,
}

impl From<Ranked> for Ranking {
    fn from(ranking: Ranked) -> Self {
        Ranking { ranking }
    }
}

#[pymethods]
impl Ranking {
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let ranking = serde_json::from_str(text)
            .map_err(|error| PyValueError::new_err(format!("this is not a ranking: {error}")))?;
        Ok(Ranking { ranking })
    }

    fn json(&self) -> PyResult<String> {
        text(&self.ranking)
    }

    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (names, rows) = ranking_table(&self.ranking);
        table(py, columns_from_rows(&names, &rows))
    }

    #[getter]
    fn verdict(&self) -> PyResult<VerdictParts> {
        verdict_parts(&self.ranking.verdict)
    }

    /// Whether the model was given, so that there is nothing to test.
    #[getter]
    fn given(&self) -> bool {
        self.ranking.verdict.given
    }

    #[getter]
    fn too_few_steps(&self) -> Vec<String> {
        self.ranking.too_few_steps()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.ranking.notes.iter().cloned().chain(self.ranking.contrarian_notes()).collect()
    }
}
