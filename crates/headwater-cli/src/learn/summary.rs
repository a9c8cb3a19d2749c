//! What `headwater learn` prints about a model.

use crate::error::CliError;
use crate::rank::legend;
use crate::terminal::{command_line, count, csv, name_cell, number, percent, shell_quoted, table};
use headwater::evaluate::Verdict;
use headwater::model::{Smoothing, Status};
use headwater::{Model, influence};
use headwater_files::CsvText;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::Path;

/// Up to this many agents the ranking is shown along with the model.
const RANKED_AGENTS: usize = 1000;

/// Uncertainty of the weights that are statistical estimates.
#[derive(Debug, Serialize)]
struct Estimates {
    /// Listeners with such weights.
    listeners: usize,
    /// Root mean square standard error of a weight, before the constraint.
    standard_error: f64,
    /// Target standard error, and the approximate number of steps it would take.
    precision: f64,
    steps_needed: f64,
    /// Largest condition number of the regressions.
    condition: Option<f64>,
}

impl Estimates {
    fn from_model(model: &Model, precision: f64) -> Option<Self> {
        let columns = || model.diagnostics.columns.iter().filter(|column| column.status == Status::Statistical);
        let errors: Vec<f64> = columns().filter_map(|column| column.weight_error).collect();
        let mean = errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64;
        let steps = model.diagnostics.steps? as f64;
        (!errors.is_empty()).then(|| Estimates {
            listeners: errors.len(),
            standard_error: mean.sqrt(),
            precision,
            steps_needed: (steps * mean / (precision * precision)).ceil(),
            condition: columns().filter_map(|column| column.condition).max_by(f64::total_cmp),
        })
    }
}

/// What is printed.
#[derive(Debug, Serialize)]
pub(super) struct LearnSummary {
    verdict: Verdict,
    method: String,
    agents: usize,
    hypotheses: usize,
    steps: usize,
    adaptation: f64,
    reference: String,
    truth: Option<String>,
    agreement: Option<f64>,
    #[serde(flatten)]
    settings: Map<String, Value>,
    certified: usize,
    identified: usize,
    column_sum_spread: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimates: Option<Estimates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothing: Option<Smoothing>,
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    top: Vec<TopAgent>,
    model: String,
}

#[derive(Debug, Serialize)]
struct TopAgent {
    agent: String,
    share: Option<f64>,
    centrality: f64,
    informativeness: f64,
}

impl LearnSummary {
    pub(super) fn new(
        model: &Model,
        settings: Map<String, Value>,
        precision: f64,
        path: &Path,
    ) -> Result<Self, CliError> {
        let mut top = Vec::new();
        if model.combination.agents() <= RANKED_AGENTS {
            let found = influence(model)?;
            let shares = found.signed_share();
            top.extend(found.ranking().into_iter().take(5).map(|agent| TopAgent {
                agent: model.roster.agents()[agent].clone(),
                share: shares.as_ref().map(|share| share[agent]),
                centrality: found.centrality.values[agent],
                informativeness: found.informativeness[agent],
            }));
        }
        let columns =
            |status: Status| model.diagnostics.columns.iter().filter(|column| column.status == status).count();
        Ok(LearnSummary {
            verdict: Verdict::new(model, None),
            method: model.method.name().to_owned(),
            agents: model.roster.agents().len(),
            hypotheses: model.roster.hypotheses().len(),
            steps: model.diagnostics.steps.unwrap_or(0),
            adaptation: model.adaptation,
            reference: model.roster.reference().to_owned(),
            truth: model.truth.map(|truth| model.roster.hypotheses()[truth.hypothesis].clone()),
            agreement: model.truth.map(|truth| truth.agreement),
            settings,
            certified: columns(Status::Certified),
            identified: columns(Status::Identified),
            column_sum_spread: model.diagnostics.column_sum_spread,
            // With silence, the errors of the state-space learner do not fall as 1/√T.
            estimates: Estimates::from_model(model, precision).filter(|_| model.diagnostics.smoothing.is_none()),
            smoothing: model.diagnostics.smoothing.clone(),
            warnings: model.diagnostics.warnings.clone(),
            top,
            model: path.display().to_string(),
        })
    }

    /// For the terminal.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.verdict);
        let setting = |key: &str| self.settings.get(key).and_then(Value::as_f64).map(number);
        let settings = match (setting("window"), setting("learning_rate")) {
            (Some(window), Some(rate)) => format!(", M = {window}, μ = {rate}"),
            _ => String::new(),
        };
        text.push_str(&format!(
            "{} and {} hypotheses over {}, learned by {} (δ = {}{settings}).\n",
            count(self.agents, "agent"),
            self.hypotheses,
            count(self.steps, "step"),
            self.method,
            number(self.adaptation),
        ));
        if let Some(choice) = self.settings.get("choice").and_then(Value::as_str) {
            text.push_str(&format!("Weights: {choice}.\n"));
        }
        if let Some(smoothing) = &self.smoothing {
            let noise: Vec<String> =
                smoothing.noise.iter().enumerate().map(|(ratio, row)| number(row[ratio].sqrt())).collect();
            text.push_str(&format!(
                "Noise of a single post (standard deviation of the log-belief): {}. The fit {} after {} rounds.\n",
                noise.join(", "),
                if smoothing.converged { "converged" } else { "did not converge" },
                smoothing.rounds
            ));
        }
        if ["whitened", "tracked"].contains(&self.method.as_str()) {
            text.push_str(&format!(
                "Listeners by status of their weights: {} certified, {} identified, {} statistical.\n",
                self.certified,
                self.identified,
                self.agents - self.certified - self.identified
            ));
        }
        if let Some(changes) = self.settings.get("changes").and_then(Value::as_u64) {
            text.push_str(&format!("Detected: {}.\n", count(changes as usize, "change")));
        }
        if let (Some(truth), Some(agreement)) = (&self.truth, self.agreement) {
            text.push_str(&format!(
                "The estimated network settles on {truth:?}; {} of the agents agree. Reference: {:?}.\n",
                percent(agreement),
                self.reference
            ));
        }
        if let Some(spread) = self.column_sum_spread {
            let sums = "The weights of each listener should have the same sum";
            text.push_str(&format!("{sums}; the estimated sums differ by up to {}.\n", number(spread)));
        }
        if let Some(estimates) = &self.estimates {
            let condition = estimates
                .condition
                .map_or(String::new(), |worst| format!("; largest condition number {}", number(worst)));
            text.push_str(&format!(
                "Standard error of a weight, before the constraint: about {}. A standard error of {} needs about {} steps{condition}.\n",
                number(estimates.standard_error),
                estimates.precision,
                whole(estimates.steps_needed)
            ));
        }
        if !self.top.is_empty() {
            let rows = self.top.iter().enumerate().map(|(position, top)| {
                let share = top.share.map_or("–".into(), percent);
                let numbers = [share, number(top.centrality), number(top.informativeness)];
                [(position + 1).to_string(), name_cell(&top.agent)].into_iter().chain(numbers).collect()
            });
            let header = ["", "agent", "share", "centrality", "inform."];
            text.push_str(&format!("\n{}{}", table(&header, 2, rows.collect()), legend(&header)));
        }
        let next = command_line(&format!("headwater rank {}", shell_quoted(&self.model)));
        text.push_str(&format!("\nModel: {}\nNext:\n{next}", self.model));
        text
    }

    /// Keys and values as CSV.
    pub(super) fn csv(&self, text: CsvText) -> String {
        let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut rows = vec![
            ("supported".to_owned(), self.verdict.supported().to_string()),
            ("verdict".to_owned(), self.verdict.to_string()),
            ("method".to_owned(), self.method.clone()),
            ("agents".to_owned(), self.agents.to_string()),
            ("hypotheses".to_owned(), self.hypotheses.to_string()),
            ("steps".to_owned(), self.steps.to_string()),
            ("adaptation".to_owned(), self.adaptation.to_string()),
            ("reference".to_owned(), self.reference.clone()),
            ("truth".to_owned(), self.truth.clone().unwrap_or_default()),
            ("agreement".to_owned(), optional(self.agreement)),
            ("certified".to_owned(), self.certified.to_string()),
            ("identified".to_owned(), self.identified.to_string()),
        ];
        rows.extend(self.settings.iter().map(|(key, value)| (key.clone(), value.to_string())));
        rows.push(("model".to_owned(), self.model.clone()));
        csv(&["key", "value"], rows.into_iter().map(|(key, value)| vec![key, value]).collect(), text)
    }
}

/// A number of steps.
fn whole(steps: f64) -> String {
    if steps < 1e6 { format!("{steps:.0}") } else { number(steps) }
}
