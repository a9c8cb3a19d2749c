//! The ranking as a table: rows of JSON values, or CSV.

use crate::{CsvText, Error};
use headwater::model::EdgeInterval;
use headwater::ranking::RankedEdge;
use headwater::{Model, Ranking};
use serde_json::{Map, Value};
use std::path::Path;

/// Columns of the ranking as a table, in order.
const COLUMNS: [&str; 26] = [
    "agent",
    "rank",
    "influence",
    "share",
    "sign",
    "share_low",
    "share_high",
    "centrality",
    "centrality_low",
    "centrality_high",
    "informativeness",
    "origin",
    "rank_low",
    "rank_high",
    "top_k_probability",
    "ahead_probability",
    "information",
    "p_value",
    "error_probability",
    "contrarian",
    "contrarian_margin",
    "contrarian_standard_errors",
    "posts",
    "silent_share",
    "in_degree",
    "pagerank",
];

/// The agents of a ranking as rows of a table, and the columns that hold something, in order.
pub fn ranking_table(ranking: &Ranking) -> (Vec<&'static str>, Vec<Map<String, Value>>) {
    let fields = |agent| match serde_json::to_value(agent) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    };
    let rows: Vec<Map<String, Value>> = ranking.agents.iter().filter_map(fields).collect();
    let used = COLUMNS.into_iter().filter(|key| rows.iter().any(|row| row.contains_key(*key))).collect();
    (used, rows)
}

/// The same as CSV with a header line.
///
/// ```
/// use headwater::{Ranking, simulate::{WorldParams, simulate}};
/// let (_, truth) = simulate(&WorldParams { steps: 1, ..WorldParams::default() })?;
/// let sheet = headwater_files::ranking_csv(&Ranking::new(&truth)?, headwater_files::CsvText::default())?;
/// assert!(sheet.starts_with("agent,rank,influence,share,"));
/// assert_eq!(sheet.lines().count(), 21);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ranking_csv(ranking: &Ranking, text: CsvText) -> Result<String, Error> {
    let (used, rows) = ranking_table(ranking);
    let cell = |value: Option<&Value>| match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    table_csv(&used, text, rows.iter().map(|row| used.iter().map(|key| cell(row.get(*key))).collect()))
}

/// Weights between different agents as CSV: `source,target,weight`; where a null test was run `p_value,significant`, the
/// smallest p-value first; otherwise listener by listener, with 90 % intervals `low,high` where the posterior was sampled, and the `probability` that there
/// is such an edge where edges may be absent.
pub fn edges_csv(ranking: &Ranking, model: &Model, text: CsvText) -> Result<String, Error> {
    if let Some(tested) = &ranking.edges {
        let row = |edge: &RankedEdge| {
            let numbers = [Value::from(edge.weight), Value::from(edge.p_value), Value::from(edge.significant)];
            let numbers = numbers.map(|value| value.to_string());
            [edge.source.clone(), edge.target.clone()].into_iter().chain(numbers).collect()
        };
        return table_csv(&["source", "target", "weight", "p_value", "significant"], text, tested.iter().map(row));
    }
    let names = model.roster.agents();
    if let Some(posterior) = model.diagnostics.posterior.as_ref().filter(|posterior| posterior.converged()) {
        // Probabilities come with all edges or with none.
        let probable = posterior.edges.iter().any(|edge| edge.probability.is_some());
        let header = ["source", "target", "weight", "low", "high", "probability"];
        let row = |edge: &EdgeInterval| {
            let weight = model.combination.weight(edge.speaker, edge.listener);
            let numbers = [Some(weight), Some(edge.low), Some(edge.high), edge.probability];
            let numbers = numbers.into_iter().flatten().map(|value| value.to_string());
            [names[edge.speaker].clone(), names[edge.listener].clone()].into_iter().chain(numbers).collect()
        };
        let used = &header[..if probable { 6 } else { 5 }];
        return table_csv(used, text, posterior.edges.iter().map(row));
    }
    let heard = model.combination.edges().filter(|&(speaker, listener, weight)| speaker != listener && weight > 0.0);
    let row = |(speaker, listener, weight): (usize, usize, f64)| {
        vec![names[speaker].clone(), names[listener].clone(), weight.to_string()]
    };
    table_csv(&["source", "target", "weight"], text, heard.map(row))
}

fn table_csv(header: &[&str], text: CsvText, rows: impl Iterator<Item = Vec<String>>) -> Result<String, Error> {
    let broken = |error: &dyn std::fmt::Display| Error::file(Path::new("the table"), format!("cannot write: {error}"));
    let mut sheet = csv::Writer::from_writer(Vec::new());
    sheet.write_record(header).map_err(|error| broken(&error))?;
    for row in rows {
        sheet.write_record(row.iter().map(|cell| text.cell(cell).into_owned())).map_err(|error| broken(&error))?;
    }
    let bytes = sheet.into_inner().map_err(|error| broken(&error))?;
    String::from_utf8(bytes).map_err(|error| broken(&error))
}
