//! What cures an error or avoids a warning, in the words of Python's keyword arguments.

use headwater::Error as Core;
use headwater_discover::{Error as Discover, Warning};
use headwater_files::Error as Files;
use headwater_posts::read::OtherFormat;
use headwater_posts::{Error as Posts, IngestWarning, LossReason};
use headwater_report::Error as Report;
use headwater_score::Error as Score;
use std::fmt::Display;
use std::io::ErrorKind;

/// A message, and on a second line the cure where it is known.
fn with_hint(message: impl Display, hint: Option<impl Display>) -> String {
    match hint {
        Some(hint) => format!("{message}\nhint: {hint}"),
        None => message.to_string(),
    }
}

/// The text of an error of the computation.
pub(crate) fn core_text(error: &Core) -> String {
    match error {
        // The library joins words by hyphens, a keyword by underscores.
        Core::Parameter { name, value, range } => {
            format!("{} is {value}, but must be {range}", name.replace('-', "_"))
        }
        Core::Stopped => "interrupted".to_owned(),
        error => with_hint(error, core_hint(error)),
    }
}

fn core_hint(error: &Core) -> Option<String> {
    match error {
        Core::NotReady { .. } => {
            Some("give beliefs over more time steps; GSL with a window M and a batch W needs M+1+W of them".to_owned())
        }
        Core::Diverged { bound, .. } => Some(format!("use learning_rate={:.2e} or less, or tune=True", bound / 10.0)),
        Core::TooLarge { .. } => {
            Some("leave out those who speak rarely (min_posts), or make bins longer (bin)".to_owned())
        }
        Core::NeverSpeaks { .. } => Some("remove these agents, or add their beliefs".to_owned()),
        _ => None,
    }
}

/// The text of an error of files.
pub(crate) fn files_text(error: &Files) -> String {
    let hint = match error {
        Files::Data { source: Core::Stopped, .. } => return core_text(&Core::Stopped),
        Files::Data { source, .. } => core_hint(source),
        Files::Io { source, .. } => Some(system_hint(source)),
        Files::NoFolder { .. } => Some("make it first".to_owned()),
        _ => None,
    };
    with_hint(error, hint)
}

/// What helps when the operating system said no.
fn system_hint(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull => "free some space, or write to another disk",
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData => "the file is cut off: fetch it again",
        _ => "check the path and its permissions",
    }
    .to_owned()
}

/// The text of an error of scorers.
pub(crate) fn score_text(error: &Score) -> String {
    let hint = match error {
        Score::Stopped(error) => return core_text(error),
        Score::Model { .. } => {
            Some("a model's folder holds config.json, model.safetensors and tokenizer.json, as published")
        }
        Score::Hub { .. } => Some("without the hub, give model a folder"),
        Score::NoCache => Some("give model its own folder"),
        Score::NoTransformer => Some("install a build with text models, or use scorer=\"builtin\""),
        _ => None,
    };
    with_hint(error, hint)
}

/// The text of an error of ingest.
pub(crate) fn posts_text(error: &Posts) -> String {
    match error {
        Posts::Core(error) => core_text(error),
        Posts::Files(error) => files_text(error),
        Posts::Score(error) => score_text(error),
        error => with_hint(error, posts_hint(error)),
    }
}

fn posts_hint(error: &Posts) -> Option<String> {
    Some(match error {
        Posts::PresetAndColumns { .. } => "use either columns or preset".to_owned(),
        Posts::Columns { suggestion, .. } => {
            let pair =
                |(field, column): &(&str, Option<String>)| format!("{field:?}: {:?}", column.as_deref().unwrap_or("…"));
            let pairs: Vec<String> = suggestion.iter().map(pair).collect();
            format!(
                "name them with columns={{{}}}; dots reach into objects (\"author.handle\"); preset knows the files of a platform",
                pairs.join(", ")
            )
        }
        Posts::Format { found, .. } => match (found, found.preset()) {
            (_, Some(preset)) => format!("use preset={:?}", preset.to_string()),
            (OtherFormat::Plain, None) => "leave preset out".to_owned(),
            (_, None) => "name the columns with columns instead of preset".to_owned(),
        },
        Posts::TooManyBad { .. } => "max_bad lets more pass".to_owned(),
        Posts::NothingLeft { main, .. } => main.map_or("give posts", loss_cure).to_owned(),
        Posts::OneUser { main, .. } => main.map_or("give posts by more users", loss_cure).to_owned(),
        Posts::Io { source, .. } => system_hint(source),
        _ => return None,
    })
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

/// The text of an error of the pipeline.
pub(crate) fn discover_text(error: &Discover) -> String {
    let hint = match error {
        Discover::Core(error) => return core_text(error),
        Discover::Files(error) => return files_text(error),
        Discover::Posts(error) => return posts_text(error),
        Discover::Score(error) => return score_text(error),
        Discover::Data { source, .. } => core_hint(source),
        Discover::NothingKept { source, .. } => posts_hint(source),
        Discover::Read { source, .. } | Discover::Write { source, .. } => Some(system_hint(source)),
        other => discover_hint(other).map(str::to_owned),
    };
    with_hint(error, hint)
}

fn discover_hint(error: &Discover) -> Option<&'static str> {
    Some(match error {
        Discover::NotAFile { .. } => "save it to a file first",
        Discover::Overwrite { .. } => "choose another folder for out",
        Discover::Key { .. } | Discover::ShortKey { .. } => {
            "make a key with Path(\"key\").write_bytes(secrets.token_bytes(32)); whoever has it can tell who is who"
        }
        Discover::PseudonymCollision => "take another key",
        Discover::Hidden { .. } => "leave pseudonymise out to see the reason",
        Discover::HiddenColumns { .. } => "name the columns with columns, or leave pseudonymise out to see them",
        Discover::GraphWithoutPosters { .. } => {
            "source and target must be names as in the posts, capitals included; columns={\"user\": …} takes another column"
        }
        Discover::GraphWithoutEdges { .. } => "give the edges among the users who post, or leave graph out",
        Discover::UsersOutsideGraph => "names must be the same in users and graph, capitals included",
        Discover::TooFewBins { .. } => "take shorter bins (bin=\"6h\"), posts over a longer time, or a wider topic",
        Discover::ConstantScores { .. } => "check the column score, or choose another scorer",
        Discover::StrengthsWithoutGraph => {
            "give graph (source, target: the target follows the source), or leave weights out"
        }
        Discover::StrengthsUnconstrained => "leave constraint out, or use weights=\"edges\"",
        _ => return None,
    })
}

/// The text of an error of pages and exports.
pub(crate) fn report_text(error: &Report) -> String {
    let hint = match error {
        Report::Model(error) => return core_text(error),
        Report::Files(error) => return files_text(error),
        Report::ExportFormat { .. } => Some("use .gexf, .graphml, .csv, .parquet or .json".to_owned()),
        Report::Write { source, .. } => Some(system_hint(source)),
        _ => None,
    };
    with_hint(error, hint)
}

/// A warning of ingest, with the keyword that avoids it.
pub(crate) fn warning_text(warning: &IngestWarning) -> String {
    match warning {
        IngestWarning::OtherLanguages { .. } => format!("{warning}; any_language=True keeps them"),
        _ => warning.to_string(),
    }
}

/// A warning of the pipeline.
pub(crate) fn run_warning(warning: &Warning) -> String {
    match warning {
        Warning::Ingest(warning) => warning_text(warning),
        warning => warning.to_string(),
    }
}
