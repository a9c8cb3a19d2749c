//! The ranking as a table: rows of JSON values, or CSV.

use crate::{CsvText, Error};
use headwater::ranking::EdgeRow;
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

/// How a column of the table of edges is read from a row.
type EdgeCell = fn(&EdgeRow) -> Option<String>;

const EDGE_COLUMNS: [(&str, EdgeCell); 8] = [
    ("source", |edge| Some(edge.source.clone())),
    ("target", |edge| Some(edge.target.clone())),
    ("weight", |edge| Some(edge.weight.to_string())),
    ("p_value", |edge| edge.p_value.map(|value| value.to_string())),
    ("significant", |edge| edge.significant.map(|value| value.to_string())),
    ("low", |edge| edge.low.map(|value| value.to_string())),
    ("high", |edge| edge.high.map(|value| value.to_string())),
    ("probability", |edge| edge.probability.map(|value| value.to_string())),
];

/// Weights between different agents as CSV: `source,target,weight`; where a null test was run `p_value,significant`, the
/// smallest p-value first, otherwise listener by listener; where the posterior was sampled 90 % intervals `low,high`, and the
/// `probability` that there is such an edge where edges may be absent.
pub fn edges_csv(ranking: &Ranking, model: &Model, text: CsvText) -> Result<String, Error> {
    let edges = EdgeRow::all(ranking, model);
    let mut columns = EDGE_COLUMNS.to_vec();
    // A table without rows has the columns that every table has, and those of the test where it was run.
    let always = if ranking.edges.is_some() { 5 } else { 3 };
    let known = |cell: EdgeCell| edges.iter().any(|edge| cell(edge).is_some());
    let mut place = 0;
    columns.retain(|(_, cell)| {
        place += 1;
        place <= always || known(*cell)
    });
    let header: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let row = |edge: &EdgeRow| columns.iter().map(|(_, cell)| cell(edge).unwrap_or_default()).collect();
    table_csv(&header, text, edges.iter().map(row))
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
