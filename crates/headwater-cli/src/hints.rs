//! Cures of what goes wrong with posts, scorers and the pipeline, in the words of the command line.

use crate::error::{CliError, cure, hint};
use crate::terminal::count;
use headwater_discover::{Error as Discover, KeyProblem};
use headwater_posts::read::OtherFormat;
use headwater_posts::{Error as Posts, IngestWarning, LossReason};
use headwater_score::Error as Score;

impl From<Score> for CliError {
    fn from(error: Score) -> Self {
        let hint = match error {
            Score::Stopped(error) => return error.into(),
            Score::Model { .. } => {
                Some("a model's folder holds config.json, model.safetensors and tokenizer.json, as published")
            }
            Score::Hub { .. } => Some("without the hub, give --model a folder"),
            Score::NoCache => {
                return CliError::usage(error.to_string(), "name one with --cache");
            }
            Score::NoTransformer => Some("install a build with text models, or use --scorer builtin"),
            _ => None,
        };
        CliError::Data { message: error.to_string(), hint: hint.map(str::to_owned) }
    }
}

impl From<Posts> for CliError {
    fn from(error: Posts) -> Self {
        let hint = match &error {
            Posts::Option { .. } => return CliError::Usage { message: error.to_string(), hint: None },
            Posts::PresetAndColumns { .. } => {
                return CliError::usage(error.to_string(), "use either --map or --preset");
            }
            Posts::Io { source, .. } => Some(cure(source).to_owned()),
            Posts::Columns { suggestion, .. } => {
                let pair =
                    |(field, column): &(&str, Option<String>)| format!("{field}={}", column.as_deref().unwrap_or("…"));
                let pairs: Vec<String> = suggestion.iter().map(pair).collect();
                Some(format!(
                    "name them with --map {}; dots reach into objects (user=author.handle); --preset knows the files of a platform",
                    pairs.join(",")
                ))
            }
            Posts::Format { found, .. } => Some(match (found, found.preset()) {
                (_, Some(preset)) => format!("use --preset {preset}"),
                (OtherFormat::Plain, None) => "leave --preset out".to_owned(),
                (_, None) => "name the columns with --map instead of --preset".to_owned(),
            }),
            Posts::TextColumn { .. } => Some("say which column is the text with --map text=COLUMN".to_owned()),
            Posts::OtherColumns { .. } => Some("score files with other columns one by one".to_owned()),
            Posts::TooManyBad { .. } => Some("--rejects FILE lists them all; --max-bad lets more pass".to_owned()),
            other => posts_hint(other),
        };
        let message = error.to_string();
        match error {
            Posts::Files(error) => error.into(),
            Posts::Core(error) => error.into(),
            Posts::Score(error) => error.into(),
            Posts::Io { source, .. } => CliError::File { message, hint, kind: source.kind() },
            _ => CliError::Data { message, hint },
        }
    }
}

/// How to make a key for pseudonyms.
const KEY: &str = "make a key with: (umask 077; head -c 32 /dev/urandom > key); whoever has it can tell who is who";

impl From<Discover> for CliError {
    fn from(error: Discover) -> Self {
        if let Discover::Unnamed { error, names } = error {
            return CliError::from(*error).map_text(|text| names.replace_in(text));
        }
        let message = error.to_string();
        let hint = match &error {
            Discover::Data { source, .. } => hint(source),
            Discover::NothingKept { source, .. } => posts_hint(source),
            _ => cure_of(&error).map(str::to_owned),
        };
        match error {
            Discover::Core(error) => error.into(),
            Discover::Files(error) => error.into(),
            Discover::Posts(error) => error.into(),
            Discover::Score(error) => error.into(),
            Discover::Read { source, .. } | Discover::Write { source, .. } => {
                CliError::File { message, hint: Some(cure(&source).to_owned()), kind: source.kind() }
            }
            Discover::Key { source, .. } => CliError::File { message, hint, kind: source.kind() },
            Discover::NotAFile { .. }
            | Discover::Overwrite { .. }
            | Discover::StrengthsWithoutGraph
            | Discover::StrengthsUnconstrained => CliError::Usage { message, hint },
            _ => CliError::Data { message, hint },
        }
    }
}

/// What cures an error of the pipeline.
fn cure_of(error: &Discover) -> Option<&'static str> {
    Some(match error {
        Discover::NotAFile { .. } => "save it to a file first",
        Discover::Overwrite { .. } => "write to another folder",
        Discover::WeakKey { problem: KeyProblem::Readable, .. } => "keep it to yourself: chmod 600, then run it again",
        Discover::Key { .. } | Discover::WeakKey { .. } => KEY,
        Discover::PseudonymCollision => "take another key",
        Discover::Hidden { .. } => "run it without --pseudonymise to see the reason",
        Discover::HiddenColumns { .. } => "name the columns with --map, or run it without --pseudonymise to see them",
        Discover::GraphWithoutPosters { .. } => {
            "source and target must be names as in the posts, capitals included; --map user=… takes another column"
        }
        Discover::GraphWithoutEdges { .. } => "give the edges among the users who post, or leave out --graph",
        Discover::UsersOutsideGraph => "names must be the same in --users and --graph, capitals included",
        Discover::TooFewBins { .. } => "take shorter bins (--bin 6h), posts over a longer time, or a wider topic",
        Discover::FolderInUse { .. } => "wait for that run to end, or choose another folder with --out",
        Discover::OtherInputs { .. } => "choose another folder with --out, or replace the results with --force",
        Discover::ConstantScores { .. } => "check the column score, or choose another --scorer",
        Discover::StrengthsWithoutGraph => {
            "add --graph EDGES (source,target: the target follows the source), or leave --weights out"
        }
        Discover::StrengthsUnconstrained => "leave --constraint out, or use --weights edges",
        _ => return None,
    })
}

/// What to do where no posts are left, or those of one user.
fn posts_hint(error: &Posts) -> Option<String> {
    let cure = match error {
        Posts::NothingLeft { main, .. } => main.map_or("give a file with posts", loss_cure),
        Posts::OneUser { main, .. } => main.map_or("give a file with posts by more users", loss_cure),
        Posts::SparseBins { .. } => {
            "leave out posts with a wrong time with --from and --to, or take longer bins (--bin week)"
        }
        _ => return None,
    };
    Some(cure.to_owned())
}

/// What brings posts back that are not used for a reason.
fn loss_cure(reason: LossReason) -> &'static str {
    match reason {
        LossReason::OtherLines => "check that --preset names the platform of this file",
        LossReason::Unreadable => "mend the rows that --rejects lists",
        LossReason::Duplicates => "map the right column to id with --map id=…",
        LossReason::Updates => "give the file from its beginning",
        LossReason::Users => "check the names in --users, capitals included",
        LossReason::Dates => "choose dates within the posts, or leave them out",
        LossReason::Language => "use --any-language or another --lang",
        LossReason::Reposts => "use --reposts keep",
        LossReason::Topic => "widen the topic: more words with OR, or a prefix*",
        LossReason::MinPosts => "lower --min-posts",
        _ => "choose other options",
    }
}

/// A warning, with the option that avoids it.
pub(crate) fn warning_text(warning: &IngestWarning) -> String {
    match warning {
        IngestWarning::OtherLanguages { .. } => format!("{warning}; --any-language keeps them"),
        IngestWarning::AbsentUsers { users } => {
            format!("{} of --users: no post of theirs is left", count(*users, "user"))
        }
        _ => warning.to_string(),
    }
}
