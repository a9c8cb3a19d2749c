//! Data and method as rows of label and value. File paths are left out: they describe the analyst's machine, not the data.

use super::{ReportInput, opinions};
use headwater::words::{number, percent, within};
use headwater_discover::{InputFile, RunRecord};
use serde_json::Value;

/// LabelledRows of label and value.
type LabelledRows = Vec<(String, String)>;

/// Options that name files, or that are shown elsewhere.
const HIDDEN: [&str; 9] = ["posts", "users", "graph", "rejects", "pseudonymise", "model", "topic", "seed", "common"];

/// Labels of counts, in the order of processing; others follow under their key.
const LABELS: [(&str, &str); 19] = [
    ("rows", "rows read"),
    ("rejected", "rows that could not be read"),
    ("other_lines", "lines that are not posts"),
    ("posts", "posts"),
    ("duplicates", "duplicate posts"),
    ("updates", "edits of a post"),
    ("dropped", "posts left out"),
    ("kept", "posts kept"),
    ("first", "first post kept"),
    ("last", "last post kept"),
    ("unmarked", "posts without a language tag"),
    ("clipped", "opinions clipped"),
    ("users", "users"),
    ("absent_users", "users without a post"),
    ("rare_users", "users with too few posts"),
    ("bins", "time bins"),
    ("beliefs", "beliefs (user, bin)"),
    ("silent_share", "silent (user, bin)"),
    ("graph", "graph"),
];

/// What the numbers rest on: agents, steps, silence, and what became of the posts.
pub(super) fn quality(from: &ReportInput<'_>) -> LabelledRows {
    let mut rows: LabelledRows = Vec::new();
    let mut add = |label: &str, value: String| rows.push((label.to_owned(), value));
    add("agents", from.model.roster.agents().len().to_string());
    if let Some(panel) = from.beliefs {
        let (steps, last) = (panel.steps(), panel.steps() - 1);
        add("steps", steps.to_string());
        add("first step", opinions::shown_time(from, panel, 0));
        add("last step", opinions::shown_time(from, panel, last));
        if let Some(zone) = opinions::zone(from) {
            add("time zone", zone);
        }
        let silence = panel.silence();
        let silent: usize = silence.iter().sum();
        add("silent (agent, step)", percent(silent as f64 / (steps * panel.agents()) as f64));
        if let Some((agent, &most)) = silence.iter().enumerate().rev().max_by_key(|(_, silent)| **silent)
            && most > 0
        {
            let name = within(&panel.roster().agents()[agent]);
            add("most often silent", format!("{name}, {} of the steps", percent(most as f64 / steps as f64)));
        }
    }
    if let Some(run) = from.run {
        rows.extend(quality_rows(run));
    }
    rows
}

/// How the model was learned, so that it can be repeated.
pub(super) fn method(from: &ReportInput<'_>) -> LabelledRows {
    let model = from.model;
    let mut rows: LabelledRows = Vec::new();
    let mut add = |label: &str, value: String| rows.push((label.to_owned(), value));
    add("learned by", model.method.name().to_owned());
    add("δ (weight of private evidence)", number(model.adaptation));
    add("hypotheses", model.roster.hypotheses().join(", "));
    add("reference", model.roster.reference().to_owned());
    if let Some(steps) = model.diagnostics.steps {
        add("steps used for learning", steps.to_string());
    }
    if let Some(skill) = &model.diagnostics.skill {
        add("held-out steps forecast", skill.steps.to_string());
        add("forecast error below an autoregressive baseline by", percent(skill.against_own_past));
        add("forecast error below the persistence baseline by", percent(skill.against_persistence));
    }
    if let Some(smoothing) = &model.diagnostics.smoothing {
        add("kind of weights", smoothing.weights.name().to_owned());
        let noise: Vec<String> =
            (0..smoothing.noise.len()).map(|ratio| number(smoothing.noise[ratio][ratio])).collect();
        add("noise variance of a post", noise.join(", "));
        add(
            "rounds of the fit",
            format!("{}{}", smoothing.rounds, if smoothing.converged { "" } else { ", not converged" }),
        );
    }
    if let Some(spread) = model.diagnostics.column_sum_spread {
        add("spread of the column sums", number(spread));
    }
    let components = from.ranking.network.components.len();
    add("strongly connected components", components.to_string());
    add("network divergence", {
        let parts = from.ranking.divergence.iter().map(|(name, value)| format!("{name} {}", number(*value)));
        parts.collect::<Vec<_>>().join(", ")
    });
    match from.run {
        Some(run) => rows.extend(method_rows(run)),
        None => add("version", env!("CARGO_PKG_VERSION").to_owned()),
    }
    rows
}

/// What became of the posts: rows read, kept, left out and why.
fn quality_rows(run: &RunRecord) -> LabelledRows {
    let mut rows = LabelledRows::new();
    let mut counts = run.counts.clone();
    for time in [&mut counts.quality.first, &mut counts.quality.last] {
        *time = local_minute(time);
    }
    flatten(&as_json(&counts), "", &mut rows);
    rows
}

/// An RFC 3339 time as date and minute on its own clock.
fn local_minute(time: &str) -> String {
    match time.split_once('T') {
        Some((date, clock)) if clock.is_ascii() && clock.len() >= 5 => format!("{date} {}", &clock[..5]),
        _ => time.to_owned(),
    }
}

/// Topic, version, options and hashes of a run.
fn method_rows(run: &RunRecord) -> LabelledRows {
    let mut rows = LabelledRows::new();
    let mut add = |label: &str, value: Option<String>| {
        rows.extend(value.filter(|value| !value.is_empty()).map(|value| (label.to_owned(), value)));
    };
    add("topic", Some(run.topic.join(" · ")));
    add("version", Some(run.version.clone()));
    add("seed", Some(run.seed.to_string()));
    add("selection of weights", run.choice.map(|choice| choice.to_string()));
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
            rows.push((label, percent(share)));
        // A count of zero says nothing, a time of 0 does.
        } else if let Some(text) = plain(value).filter(|text| (value.is_string() || text != "0") && !text.is_empty()) {
            rows.push((label, text));
        }
    }
}

/// A value as text; `None` where it is absent.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(items.iter().filter_map(plain).collect::<Vec<_>>().join(", ")),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        Value::Number(_) => Some(value.to_string()),
        Value::Object(fields) => {
            let fields =
                fields.iter().filter_map(|(key, value)| Some(format!("{} {}", key.replace('_', " "), plain(value)?)));
            Some(fields.collect::<Vec<_>>().join(", "))
        }
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
            "options": {"bin": "day", "posts": ["some/where.csv"], "lang": [], "carry_forward": false, "to": null,
                "sampling": {"chains": 16, "draws": 400, "seed": 21}},
            "counts": {
                "rows": 10, "rejected": 0, "silent_share": 0.25, "dropped": {"topic": 3, "language": 0}, "first": "0",
            },
        }))
        .unwrap();
        let row = |label: &str, value: &str| (label.to_owned(), value.to_owned());
        let quality = [
            row("rows read", "10"),
            row("posts left out: topic", "3"),
            row("first post kept", "0"),
            row("silent (user, bin)", "25.0%"),
        ];
        assert_eq!(quality_rows(&run), quality);
        let method = method_rows(&run);
        let begin = [
            row("topic", "a OR b"),
            row("version", "1.2.3"),
            row("seed", "21"),
            row("names", "replaced by keyed hashes"),
        ];
        assert_eq!(method[..4], begin);
        assert!(method.contains(&row("option sampling", "chains 16, draws 400, seed 21")), "{method:?}");
        assert!(method.contains(&row("option bin", "day")) && method.contains(&row("SHA-256 of posts", "00ff")));
        assert!(!method.iter().any(|(label, value)| label.contains("posts") && value.contains("where")));
    }
}
