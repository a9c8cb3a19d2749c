//! What a run recorded (`run.json`), as rows of label and value. Paths are left out: they say more about the analyst's
//! machine than about the data.

use serde::Serialize;
use serde_json::Value;

/// Rows for the page: what became of the data, and how it was done.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// Rows read, kept, dropped and why.
    pub quality: Vec<(String, String)>,
    /// Options, seed, hashes.
    pub method: Vec<(String, String)>,
    /// What was asked for, as given.
    pub topic: Vec<String>,
}

/// Options that say where things are.
const PLACES: [&str; 10] =
    ["posts", "users", "graph", "rejects", "pseudonymise", "model", "cache", "hub_url", "topic", "seed"];

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

impl Facts {
    /// From `run.json`, or what of it is known while a run is under way.
    pub fn of(run: &Value) -> Self {
        let mut facts = Facts::default();
        flatten(&run["counts"], "", &mut facts.quality);
        let text = |value: &Value| plain(value).filter(|text| !text.is_empty());
        let mut add = |label: &str, value: Option<String>| {
            facts.method.extend(value.map(|value| (label.to_owned(), value)));
        };
        let topics: Vec<String> =
            run["topic"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        add("topic", (!topics.is_empty()).then(|| topics.join(" · ")));
        add("version", text(&run["version"]));
        add("seed", text(&run["seed"]));
        add("choice of weights", text(&run["choice"]));
        add("names", (!run["pseudonyms"].is_null()).then(|| "replaced by keyed hashes".to_owned()));
        for (option, value) in run["options"].as_object().into_iter().flatten() {
            if !PLACES.contains(&option.as_str()) && *value != Value::Bool(false) {
                add(&format!("--{}", option.replace('_', "-")), text(value));
            }
        }
        for input in run["inputs"].as_array().into_iter().flatten() {
            if let (Some(role), Some(hash)) = (input["role"].as_str(), input["sha256"].as_str()) {
                add(&format!("SHA-256 of {role}"), Some(hash.to_owned()));
            }
        }
        facts.topic = topics;
        facts
    }
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
        let run = json!({
            "version": "1.2.3", "seed": 21, "topic": ["a OR b"], "pseudonyms": "abc", "choice": null,
            "inputs": [{"role": "posts", "path": "some/where.csv", "bytes": 3, "sha256": "00ff"}],
            "options": {"bin": "day", "posts": ["some/where.csv"], "lang": [], "carry_forward": false, "to": null},
            "counts": {"rows": 10, "rejected": 0, "silent_share": 0.25, "dropped": {"off_topic": 3, "lang": 0}},
        });
        let facts = Facts::of(&run);
        let row = |label: &str, value: &str| (label.to_owned(), value.to_owned());
        let quality =
            [row("rows read", "10"), row("posts left out: off topic", "3"), row("silent (user and bin)", "25.0%")];
        assert_eq!(facts.quality, quality);
        let method = [
            row("topic", "a OR b"),
            row("version", "1.2.3"),
            row("seed", "21"),
            row("names", "replaced by keyed hashes"),
            row("--bin", "day"),
            row("SHA-256 of posts", "00ff"),
        ];
        assert_eq!(facts.method, method);
        assert_eq!(Facts::of(&json!(null)), Facts::default());
    }
}
