//! What a run recorded, as rows of label and value. Paths are left out: they say more about the analyst's
//! machine than about the data.

use headwater_discover::{InputFile, RunRecord};
use serde_json::Value;

/// Rows of label and value.
type Rows = Vec<(String, String)>;

/// Options that name files, or that are shown elsewhere.
const HIDDEN: [&str; 9] = ["posts", "users", "graph", "rejects", "pseudonymise", "model", "topic", "seed", "common"];

/// Labels of counts, in the order they are read; others come last and are called by their key.
const LABELS: [(&str, &str); 19] = [
    ("rows", "rows read"),
    ("rejected", "rows that could not be read"),
    ("other_lines", "lines that hold something else"),
    ("posts", "posts"),
    ("duplicates", "posts read before"),
    ("updates", "later wordings of a post"),
    ("dropped", "posts left out"),
    ("kept", "posts kept"),
    ("first", "first post kept"),
    ("last", "last post kept"),
    ("unmarked", "posts without a mark of their language"),
    ("clipped", "opinions clipped"),
    ("users", "users"),
    ("absent_users", "users without a post"),
    ("rare_users", "users who post too rarely"),
    ("bins", "bins of time"),
    ("beliefs", "beliefs (user and bin)"),
    ("silent_share", "silent (user and bin)"),
    ("graph", "graph"),
];

/// What became of the posts: rows read, kept, left out and why.
pub(super) fn quality_rows(run: &RunRecord) -> Rows {
    let mut rows = Rows::new();
    flatten(&as_json(&run.counts), "", &mut rows);
    rows
}

/// How it was done: topic, version, options, hashes.
pub(super) fn method_rows(run: &RunRecord) -> Rows {
    let mut rows = Rows::new();
    let mut add = |label: &str, value: Option<String>| {
        rows.extend(value.filter(|value| !value.is_empty()).map(|value| (label.to_owned(), value)));
    };
    add("topic", Some(run.topic.join(" · ")));
    add("version", Some(run.version.clone()));
    add("seed", Some(run.seed.to_string()));
    add("choice of weights", run.choice.map(|choice| choice.to_string()));
    add("names", run.pseudonyms.as_ref().map(|_| "replaced by keyed hashes".to_owned()));
    for (option, value) in as_json(&run.options).as_object().into_iter().flatten() {
        if !HIDDEN.contains(&option.as_str()) && *value != Value::Bool(false) {
            add(&format!("option {}", option.replace('_', "-")), plain(value));
        }
    }
    for InputFile { role, sha256, .. } in &run.inputs {
        add(&format!("SHA-256 of {role}"), Some(sha256.clone()));
    }
    rows
}

fn as_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn flatten(value: &Value, above: &str, rows: &mut Vec<(String, String)>) {
    let Some(fields) = value.as_object() else { return };
    let place = |key: &str| LABELS.iter().position(|(known, _)| *known == key && above.is_empty());
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| place(key).unwrap_or(LABELS.len()));
    for (key, value) in fields {
        let label = place(key).map_or_else(|| key.replace('_', " "), |place| LABELS[place].1.to_owned());
        let label = if above.is_empty() { label } else { format!("{above}: {label}") };
        if value.is_object() {
            flatten(value, &label, rows);
        } else if let Some(share) = value.as_f64().filter(|_| key.ends_with("_share")) {
            rows.push((label, headwater::words::percent(share)));
        } else if let Some(text) = plain(value).filter(|text| text != "0" && !text.is_empty()) {
            rows.push((label, text));
        }
    }
}

/// A value in words; nothing for what is absent.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(items.iter().filter_map(plain).collect::<Vec<_>>().join(", ")),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        Value::Number(_) | Value::Object(_) => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_becomes_rows_without_paths() {
        let run: RunRecord = serde_json::from_value(json!({
            "format": "headwater-run/2", "program": "headwater", "model_format": "headwater-model/2",
            "version": "1.2.3", "seed": 21, "topic": ["a OR b"], "pseudonyms": "abc", "choice": null,
            "inputs": [{"role": "posts", "path": "some/where.csv", "bytes": 3, "sha256": "00ff"}],
            "options": {"bin": "day", "posts": ["some/where.csv"], "lang": [], "carry_forward": false, "to": null},
            "counts": {"rows": 10, "rejected": 0, "silent_share": 0.25, "dropped": {"topic": 3, "language": 0}},
        }))
        .unwrap();
        let row = |label: &str, value: &str| (label.to_owned(), value.to_owned());
        let quality =
            [row("rows read", "10"), row("posts left out: topic", "3"), row("silent (user and bin)", "25.0%")];
        assert_eq!(quality_rows(&run), quality);
        let method = method_rows(&run);
        let begin = [
            row("topic", "a OR b"),
            row("version", "1.2.3"),
            row("seed", "21"),
            row("names", "replaced by keyed hashes"),
        ];
        assert_eq!(method[..4], begin);
        assert!(method.contains(&row("option bin", "day")) && method.contains(&row("SHA-256 of posts", "00ff")));
        assert!(!method.iter().any(|(label, value)| label.contains("posts") && value.contains("where")));
    }
}
