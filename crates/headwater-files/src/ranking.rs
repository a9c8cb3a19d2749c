//! The ranking as a table: rows of JSON values, or CSV.

use crate::Error;
use headwater::Ranking;
use serde_json::{Map, Value};
use std::path::Path;

/// Columns of the ranking as a table, in order.
const COLUMNS: [&str; 21] = [
    "agent",
    "rank",
    "influence",
    "share",
    "share_low",
    "share_high",
    "centrality",
    "informativeness",
    "origin",
    "rank_low",
    "rank_high",
    "top_k_probability",
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
/// let sheet = headwater_files::ranking_csv(&Ranking::new(&truth)?)?;
/// assert!(sheet.starts_with("agent,rank,influence,share,"));
/// assert_eq!(sheet.lines().count(), 21);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ranking_csv(ranking: &Ranking) -> Result<String, Error> {
    let (used, rows) = ranking_table(ranking);
    let cell = |value: Option<&Value>| match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let broken =
        |error: &dyn std::fmt::Display| Error::file(Path::new("the ranking"), format!("cannot write: {error}"));
    let mut sheet = csv::Writer::from_writer(Vec::new());
    sheet.write_record(&used).map_err(|error| broken(&error))?;
    for row in &rows {
        sheet.write_record(used.iter().map(|key| cell(row.get(*key)))).map_err(|error| broken(&error))?;
    }
    let bytes = sheet.into_inner().map_err(|error| broken(&error))?;
    String::from_utf8(bytes).map_err(|error| broken(&error))
}
