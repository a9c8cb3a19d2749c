//! `headwater compare`: how far a model is from the truth.

use crate::error::CliError;
use crate::terminal::{Format, Terminal, csv, number, table};
use clap::Args;
use headwater::compare::{Comparison, compare};
use headwater_files::{read_known, read_model};
use serde::Serialize;
use std::path::PathBuf;

/// Compares a model with the truth; agents are matched by name
#[derive(Debug, Args)]
#[command(after_help = "Example: headwater compare model.json world/truth.json --format table")]
pub(crate) struct CompareArgs {
    /// The model (.json or .npz)
    model: PathBuf,
    /// The truth, or another model
    truth: PathBuf,
    /// k of top_k_hit, the share of the true top k agents found
    #[arg(long, default_value_t = 3, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// Output format
    #[arg(long, value_enum, default_value = "json")]
    format: Format,
}

#[derive(Serialize)]
struct PrintedComparison<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    /// The model's reference hypothesis.
    reference: &'a str,
}

impl CompareArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let model = read_model(&self.model)?;
        let found = compare(&model, &read_known(&self.truth)?, self.top as usize)?;
        if self.format == Format::Json {
            return terminal.json(&PrintedComparison { comparison: &found, reference: model.roster.reference() });
        }
        let rows = [
            ("agents", Some(found.agents as f64), "in both"),
            ("combination_error", found.combination_error, "squared Frobenius distance of the weights"),
            ("evidence_error", found.evidence_error, "squared Frobenius distance of the evidence"),
            ("influence_l1", found.influence_l1, "L1 distance of the influence shares"),
            ("edge_auc", found.edge_auc, "AUC of true edges by weight"),
            ("top_k_hit", found.top_k_hit, "share of the true top agents found"),
            ("adaptation_error", found.adaptation_error, "absolute error of δ"),
        ];
        match self.format {
            Format::Csv => {
                let exact = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
                let rows = rows.iter().map(|(name, value, _)| vec![(*name).to_owned(), exact(*value)]);
                terminal.result(&csv(&["measure", "value"], rows.collect(), terminal.csv_text()))
            }
            _ => {
                let shown = |value: f64| if value.fract() == 0.0 { value.to_string() } else { number(value) };
                let shown = |value: Option<f64>| value.map_or("–".to_owned(), shown);
                let rows = rows.map(|(name, value, meaning)| vec![name.to_owned(), meaning.to_owned(), shown(value)]);
                terminal.text(&table(&["measure", "meaning", "value"], 2, rows.to_vec()))
            }
        }
    }
}
