//! Cures of what goes wrong with posts and scorers, in the words of Python's keyword arguments.

use headwater_cli::CliError;
use headwater_posts::read::OtherFormat;
use headwater_posts::{Error as Posts, IngestWarning, LossReason};
use headwater_score::Error as Score;

/// A message, and on a second line the cure where it is known.
fn with_hint(message: String, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{message}\nhint: {hint}"),
        None => message,
    }
}

/// The text of an error of scorers.
pub(crate) fn score_text(error: Score) -> String {
    let hint = match &error {
        Score::Model { .. } => {
            "a model's folder holds config.json, model.safetensors and tokenizer.json, as published".to_owned()
        }
        Score::Hub { .. } => "without the hub, give model a folder".to_owned(),
        Score::NoCache => "give model its own folder".to_owned(),
        Score::NoTransformer => "install a build with text models, or use scorer=\"builtin\"".to_owned(),
        _ => return CliError::from(error).to_string(),
    };
    with_hint(error.to_string(), Some(hint))
}

/// The text of an error of ingest.
pub(crate) fn posts_text(error: Posts) -> String {
    let hint = match &error {
        Posts::PresetAndColumns { .. } => Some("use either columns or preset".to_owned()),
        Posts::Columns { suggestion, .. } => {
            let pair =
                |(field, column): &(&str, Option<String>)| format!("{field:?}: {:?}", column.as_deref().unwrap_or("…"));
            let pairs: Vec<String> = suggestion.iter().map(pair).collect();
            Some(format!(
                "name them with columns={{{}}}; dots reach into objects (\"author.handle\"); preset knows the files of a platform",
                pairs.join(", ")
            ))
        }
        Posts::Format { found, .. } => Some(match (found, found.preset()) {
            (_, Some(preset)) => format!("use preset={:?}", preset.to_string()),
            (OtherFormat::Plain, None) => "leave preset out".to_owned(),
            (_, None) => "name the columns with columns instead of preset".to_owned(),
        }),
        Posts::TextColumn { .. } => Some("say which column is the text with columns={\"text\": …}".to_owned()),
        Posts::TooManyBad { .. } => Some("max_bad lets more pass".to_owned()),
        Posts::NothingLeft { main, .. } => Some(main.map_or("give posts", loss_cure).to_owned()),
        Posts::OneUser { main, .. } => Some(main.map_or("give posts by more users", loss_cure).to_owned()),
        // What names no option is worded alike everywhere.
        Posts::Files(_) | Posts::Core(_) | Posts::Io { .. } => return CliError::from(error).to_string(),
        _ => None,
    };
    match error {
        Posts::Score(error) => score_text(error),
        error => with_hint(error.to_string(), hint),
    }
}

/// What brings posts back that are not used for a reason.
fn loss_cure(reason: LossReason) -> &'static str {
    match reason {
        LossReason::OtherLines => "check that preset names the platform of these posts",
        LossReason::Unreadable => "mend these rows, or drop them",
        LossReason::Duplicates => "map the right column to id: columns={\"id\": …}",
        LossReason::Updates => "give the posts from their beginning",
        LossReason::Users => "check the names in users, capitals included",
        LossReason::Dates => "choose since and until within the posts, or leave them out",
        LossReason::Language => "use any_language=True or another lang",
        LossReason::Reposts => "use reposts=\"keep\"",
        LossReason::Topic => "widen the topic: more words with OR, or a prefix*",
        LossReason::MinPosts => "lower min_posts",
        _ => "choose other options",
    }
}

/// A warning, with the keyword that avoids it.
#[expect(dead_code, reason = "for the pipeline's own call, which replaces that of the command")]
pub(crate) fn warning_text(warning: &IngestWarning) -> String {
    match warning {
        IngestWarning::OtherLanguages { .. } => format!("{warning}; any_language=True keeps them"),
        _ => warning.to_string(),
    }
}
