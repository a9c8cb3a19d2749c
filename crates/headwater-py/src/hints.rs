//! Hints for errors and warnings, in terms of Python keyword arguments.

use headwater::Error as Core;
use headwater_discover::{Error as Discover, KeyProblem, Warning};
use headwater_files::Error as Files;
use headwater_posts::read::{OtherFormat, RowProblem};
use headwater_posts::{Error as Posts, IngestWarning, LossReason};
use headwater_report::Error as Report;
use headwater_score::Error as Score;
use std::fmt::Display;
use std::io::ErrorKind;

/// A message, and on a second line the hint where one is known.
fn with_hint(message: impl Display, hint: Option<impl Display>) -> String {
    match hint {
        Some(hint) => format!("{message}\nhint: {hint}"),
        None => message.to_string(),
    }
}

/// The text of an error of the computation.
pub(crate) fn core_text(error: &Core) -> String {
    match error {
        // Names of parameters have hyphens in the library, underscores in Python.
        Core::Parameter { name, value, range } => {
            format!("{} is {value}, but must be {range}", name.replace('-', "_"))
        }
        Core::Stopped => "interrupted".to_owned(),
        error => with_hint(error, core_hint(error)),
    }
}

fn core_hint(error: &Core) -> Option<String> {
    match error {
        Core::NotReady { .. } => Some("use beliefs over more time steps".to_owned()),
        Core::Diverged { bound, .. } => Some(format!("use learning_rate={:.2e} or less, or tune=True", bound / 10.0)),
        Core::TooLarge { .. } => {
            Some("leave out accounts that speak rarely (min_posts), or take longer bins (bin)".to_owned())
        }
        Core::Untestable(_) => {
            Some("use beliefs of more accounts over more time steps, and a graph among them".to_owned())
        }
        Core::Absent { .. } => Some("use StateSpace, or remove these agents".to_owned()),
        Core::NeverSpeaks { .. } => Some("remove these agents, or add beliefs of theirs".to_owned()),
        _ => None,
    }
}

/// The text of an error of files.
pub(crate) fn files_text(error: &Files) -> String {
    let hint = match error {
        Files::Data { source: Core::Stopped, .. } => return core_text(&Core::Stopped),
        Files::Data { source, .. } => core_hint(source),
        Files::Io { source, .. } => Some(system_hint(source)),
        Files::NoFolder { .. } => Some("create the folder first".to_owned()),
        Files::NoEdgeAmongAgents { .. } => {
            Some("give edges between agents of the beliefs, with the names they have there".to_owned())
        }
        Files::NoGroupMembers { .. } => {
            Some("give the group of each agent by the name in the beliefs or posts, or omit groups".to_owned())
        }
        _ => None,
    };
    with_hint(error, hint)
}

/// What to do about an error of the operating system.
fn system_hint(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull => "free disk space, or write to another disk",
        ErrorKind::FileTooLarge => "the system limits the size of files; write to another disk, or raise the limit",
        ErrorKind::InvalidFilename => "choose a shorter name",
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData => "the file is truncated: download or copy it again",
        _ => "check the path and its permissions",
    }
    .to_owned()
}

/// The text of an error of scorers.
pub(crate) fn score_text(error: &Score) -> String {
    let hint = match error {
        Score::Stopped(error) => return core_text(error),
        Score::Model { .. } => Some("the folder of a model contains config.json, model.safetensors and tokenizer.json"),
        Score::Hub { .. } => Some("to work without the hub, give model a local folder"),
        Score::NoCache => Some("give model a local folder"),
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
                "name the columns with columns={{{}}}; dots address nested fields (\"author.handle\"); preset sets the columns of a platform",
                pairs.join(", ")
            )
        }
        Posts::Format { found, .. } => match (found, found.preset()) {
            (_, Some(preset)) => format!("use preset={:?}", preset.to_string()),
            (OtherFormat::Plain, None) => "omit preset".to_owned(),
            (_, None) => "use columns instead of preset".to_owned(),
        },
        Posts::UnusedScoreRange => "use scorer=\"column\", or omit score_range".to_owned(),
        Posts::Encoding { .. } => ENCODING.to_owned(),
        Posts::WholeFile { problem, .. } => problem_cure(*problem)?.to_owned(),
        Posts::TooManyBad { problem, .. } => problem_cure(*problem).unwrap_or("max_bad raises the limit").to_owned(),
        Posts::NothingLeft { main, .. } => main.map_or("give posts", loss_cure).to_owned(),
        Posts::OneUser { main, .. } => main.map_or("give posts by more users", loss_cure).to_owned(),
        Posts::SparseBins { .. } => {
            "exclude posts with a wrong time by since and until, or use longer bins (bin=\"week\")".to_owned()
        }
        Posts::Io { source, .. } => system_hint(source),
        _ => return None,
    })
}

/// How to make UTF-8 of a text.
const ENCODING: &str =
    "save the file as UTF-8, or read it into a data frame with its encoding: pandas.read_csv(…, encoding=\"cp1250\")";

/// What cures rows that have the same wrong.
fn problem_cure(problem: RowProblem) -> Option<&'static str> {
    Some(match problem {
        RowProblem::Encoding => ENCODING,
        RowProblem::DateOrder => {
            "say which comes first: date_order=\"mdy\" (month, as in 12/31/2024) or date_order=\"dmy\" (day, as in 31.12.2024)"
        }
        RowProblem::NumericTime => "for dates use bin=\"day\", \"hour\", \"week\" or hours such as \"6h\"",
        RowProblem::ScoreRange => "give the lowest and the highest score, such as score_range=(-1, 1)",
        _ => return None,
    })
}

/// What keeps posts that were left out for a reason.
fn loss_cure(reason: LossReason) -> &'static str {
    match reason {
        LossReason::OtherLines => "check that preset names the platform of these posts",
        LossReason::Unreadable => "correct these rows, or remove them",
        LossReason::Duplicates => "map the right column to id: columns={\"id\": …}",
        LossReason::Updates => "include the original posts, not only their edits",
        LossReason::Users => "check the names in users (case-sensitive)",
        LossReason::Dates => "choose since and until within the period of the posts, or omit them",
        LossReason::Language => "use any_language=True or another lang",
        LossReason::Reposts => "use reposts=\"keep\"",
        LossReason::Topic => "broaden the topic: more words with OR, or a prefix*",
        LossReason::MinPosts => "lower min_posts",
        _ => "change the options",
    }
}

/// The text of an error of the pipeline.
pub(crate) fn discover_text(error: &Discover) -> String {
    let hint = match error {
        Discover::Unnamed { error, names } => return names.replace_in(&discover_text(error)),
        Discover::Core(error) => return core_text(error),
        Discover::Files(error) => return files_text(error),
        Discover::Posts(error) => return posts_text(error),
        Discover::Score(error) => return score_text(error),
        Discover::Data { source, .. } => core_hint(source),
        Discover::NothingKept { source, .. } => posts_hint(source),
        Discover::Read { source, .. } | Discover::Write { source, .. } => Some(system_hint(source)),
        Discover::WeakKey { problem: KeyProblem::Readable, path } => {
            Some(format!("make it readable for you only: Path({:?}).chmod(0o600)", path.display().to_string()))
        }
        other => discover_hint(other).map(str::to_owned),
    };
    with_hint(error, hint)
}

fn discover_hint(error: &Discover) -> Option<&'static str> {
    Some(match error {
        Discover::NotAFile { .. } => "save it to a file first",
        Discover::Overwrite { .. } => "choose another folder for out",
        Discover::NotAFolder { .. } => "give out a folder; it is created where it does not exist",
        Discover::OtherFile { .. } => "choose another folder for out, or replace the file with force=True",
        Discover::FolderInUse { .. } => "wait for that run to end, or choose another folder for out",
        Discover::OtherInputs { .. } => "choose another folder for out, or replace the results with force=True",
        Discover::Key { .. } | Discover::WeakKey { .. } => {
            "make a key with key = Path(\"key\"); key.touch(0o600); key.write_bytes(secrets.token_bytes(32)); keep it secret, it links pseudonyms to names"
        }
        Discover::PseudonymCollision => "use another key",
        Discover::Hidden { .. } => "omit pseudonymise to see the reason",
        Discover::HiddenColumns { .. } => "name the columns with columns, or omit pseudonymise to see them",
        Discover::GraphWithoutPosters { .. } => {
            "source and target must be user names as in the posts, up to case and a leading @; columns={\"user\": …} reads another column"
        }
        Discover::GraphWithoutEdges { .. } => "give edges between users who post, or omit graph",
        Discover::UsersOutsideGraph => "use the same names in users and graph",
        Discover::TooFewBins { .. } => "use shorter bins (bin=\"6h\"), posts over a longer period, or a broader topic",
        Discover::ConstantScores { .. } => "check the column score, or use another scorer",
        Discover::StrengthsWithoutGraph => {
            "give graph (source, target: the target follows the source), or omit weights"
        }
        Discover::StrengthsUnconstrained => "omit constraint, or use weights=\"edges\"",
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
        IngestWarning::SmallTimes => format!("{warning}; bin=1 (or another number) reads them in their own units"),
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
