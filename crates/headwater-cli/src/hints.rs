//! Hints for errors of posts, scorers and the pipeline, in terms of command-line options.

use crate::error::{CliError, cure, hint};
use crate::terminal::{count, shell_quoted};
use headwater_discover::{Error as Discover, KeyProblem};
use headwater_posts::read::{OtherFormat, RowProblem};
use headwater_posts::{Error as Posts, IngestWarning, LossReason};
use headwater_score::Error as Score;

impl From<Score> for CliError {
    fn from(error: Score) -> Self {
        let hint = match error {
            Score::Stopped(error) => return error.into(),
            Score::Model { .. } => {
                Some("the folder of a model contains config.json, model.safetensors and tokenizer.json")
            }
            Score::Hub { .. } => Some("to work without the hub, give --model a local folder"),
            Score::NoCache => {
                return CliError::usage(error.to_string(), "name a folder with --cache");
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
            Posts::Option { .. } | Posts::Query { .. } => {
                return CliError::Usage { message: error.to_string(), hint: None };
            }
            Posts::PresetAndColumns { .. } => {
                return CliError::usage(error.to_string(), "use either --map or --preset");
            }
            Posts::Io { source, .. } => Some(cure(source).to_owned()),
            Posts::Columns { suggestion, .. } => {
                let pair =
                    |(field, column): &(&str, Option<String>)| format!("{field}={}", column.as_deref().unwrap_or("…"));
                let pairs: Vec<String> = suggestion.iter().map(pair).collect();
                Some(format!(
                    "name the columns with --map {}; dots address nested fields (user=author.handle); --preset sets the columns of a platform",
                    pairs.join(",")
                ))
            }
            Posts::Format { found, .. } => Some(match (found, found.preset()) {
                (_, Some(preset)) => format!("use --preset {preset}"),
                (OtherFormat::Plain, None) => "omit --preset".to_owned(),
                (_, None) => "name the columns with --map instead of --preset".to_owned(),
            }),
            Posts::TextColumn { .. } => Some("name the column of the text with --map text=COLUMN".to_owned()),
            Posts::OtherColumns { .. } => Some("score files with different columns separately".to_owned()),
            Posts::UnusedScoreRange => {
                return CliError::usage(error.to_string(), "add --scorer column, or omit --score-range");
            }
            Posts::Encoding { .. } => Some(ENCODING.to_owned()),
            Posts::WholeFile { problem, .. } => problem_cure(*problem).map(str::to_owned),
            Posts::TooManyBad { problem, .. } => Some(match problem_cure(*problem) {
                Some(cure) => cure.to_owned(),
                None => "--rejects FILE lists them all; --max-bad raises the limit".to_owned(),
            }),
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

/// How to make UTF-8 of a text. Rows of another encoding are not bad rows, and skipping them would lose a language.
const ENCODING: &str = "save the file as UTF-8, or convert it: iconv -f WINDOWS-1250 -t UTF-8 FILE > posts.csv, with the encoding of the program that wrote it; iconv -c -t UTF-8 drops damaged bytes from UTF-8 text";

/// What cures rows that have the same wrong.
fn problem_cure(problem: RowProblem) -> Option<&'static str> {
    Some(match problem {
        RowProblem::Encoding => ENCODING,
        RowProblem::DateOrder => {
            "say which comes first: --date-order mdy (month, as in 12/31/2024) or --date-order dmy (day, as in 31.12.2024)"
        }
        RowProblem::NumericTime => "for dates use --bin day, hour, week or hours such as 6h",
        RowProblem::ScoreRange => "give the lowest and the highest score, such as --score-range -1..1",
        _ => return None,
    })
}

/// How to make a key for pseudonyms.
const KEY: &str =
    "make a key with: (umask 077; head -c 32 /dev/urandom > key); keep it secret, it links pseudonyms to names";

impl From<Discover> for CliError {
    fn from(error: Discover) -> Self {
        if let Discover::Unnamed { error, names } = error {
            return CliError::from(*error).map_text(|text| names.replace_in(text));
        }
        let message = error.to_string();
        let hint = match &error {
            Discover::Data { source, .. } => hint(source),
            Discover::NothingKept { source, .. } => posts_hint(source),
            Discover::WeakKey { problem: KeyProblem::Readable, path } => {
                let path = shell_quoted(&path.display().to_string());
                Some(format!("make it readable for you only, then run again: chmod 600 {path}"))
            }
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
            | Discover::NotAFolder { .. }
            | Discover::StrengthsWithoutGraph
            | Discover::StrengthsUnconstrained => CliError::Usage { message, hint },
            _ => CliError::Data { message, hint },
        }
    }
}

/// What resolves an error of the pipeline.
fn cure_of(error: &Discover) -> Option<&'static str> {
    Some(match error {
        Discover::NotAFile { .. } => "save it to a file first",
        Discover::Overwrite { .. } => "write to another folder",
        Discover::NotAFolder { .. } => "name a folder with --out; it is created where it does not exist",
        Discover::OtherFile { .. } => "choose another folder with --out, or replace the file with --force",
        Discover::Key { .. } | Discover::WeakKey { .. } => KEY,
        Discover::PseudonymCollision => "use another key",
        Discover::Hidden { .. } => "run without --pseudonymise to see the reason",
        Discover::HiddenColumns { .. } => "name the columns with --map, or run without --pseudonymise to see them",
        Discover::GraphWithoutPosters { .. } => {
            "source and target must be user names as in the posts, up to case and a leading @; --map user=… reads another column"
        }
        Discover::GraphWithoutEdges { .. } => "give edges between users who post, or omit --graph",
        Discover::UsersOutsideGraph => "use the same names in --users and --graph",
        Discover::TooFewBins { .. } => "use shorter bins (--bin 6h), posts over a longer period, or a broader topic",
        Discover::FolderInUse { .. } => "wait for that run to end, or choose another folder with --out",
        Discover::OtherInputs { .. } => "choose another folder with --out, or replace the results with --force",
        Discover::ConstantScores { .. } => "check the column score, or use another --scorer",
        Discover::StrengthsWithoutGraph => {
            "add --graph EDGES (source,target: the target follows the source), or omit --weights"
        }
        Discover::StrengthsUnconstrained => "omit --constraint, or use --weights edges",
        _ => return None,
    })
}

/// What to do where no posts remain, or only those of one user.
fn posts_hint(error: &Posts) -> Option<String> {
    let cure = match error {
        Posts::NothingLeft { main, .. } => main.map_or("give a file with posts", loss_cure),
        Posts::OneUser { main, .. } => main.map_or("give a file with posts by more users", loss_cure),
        Posts::SparseBins { .. } => {
            "exclude posts with a wrong time by --from and --to, or use longer bins (--bin week)"
        }
        _ => return None,
    };
    Some(cure.to_owned())
}

/// What keeps posts that were left out for a reason.
fn loss_cure(reason: LossReason) -> &'static str {
    match reason {
        LossReason::OtherLines => "check that --preset names the platform of this file",
        LossReason::Unreadable => "correct these rows; --rejects FILE lists them",
        LossReason::Duplicates => "map the right column to id with --map id=…",
        LossReason::Updates => "include the original posts, not only their edits",
        LossReason::Users => "check the names in --users (case-sensitive)",
        LossReason::Dates => "choose dates within the period of the posts, or omit them",
        LossReason::Language => "use --any-language or another --lang",
        LossReason::Reposts => "use --reposts keep",
        LossReason::Topic => "broaden the topic: more words with OR, or a prefix*",
        LossReason::MinPosts => "lower --min-posts",
        _ => "change the options",
    }
}

/// A warning, with the option that avoids it.
pub(crate) fn warning_text(warning: &IngestWarning) -> String {
    match warning {
        IngestWarning::OtherLanguages { .. } => format!("{warning}; --any-language keeps them"),
        IngestWarning::SmallTimes => format!("{warning}; --bin 1 (or another number) reads them in their own units"),
        IngestWarning::AbsentUsers { users } => {
            format!("{} of --users have no post left after selection", count(*users, "user"))
        }
        _ => warning.to_string(),
    }
}
