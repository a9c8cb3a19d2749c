//! Cures of what goes wrong with posts and scorers, in the words of the command line.

use crate::error::{CliError, cure};
use headwater_posts::Error as Posts;
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
        let hint = match error {
            Posts::Files(error) => return error.into(),
            Posts::Stopped(error) => return error.into(),
            Posts::Score(error) => return error.into(),
            Posts::Option { problem } => return CliError::Usage { message: problem, hint: None },
            Posts::Io { ref source, .. } => Some(cure(source)),
            Posts::Columns { .. } => {
                Some("dots reach into objects (user=author.handle); --preset knows the files of a platform")
            }
            Posts::TooManyBad { .. } => Some("--rejects FILE lists them all; --max-bad lets more pass"),
            Posts::NothingLeft { cure, .. } | Posts::OneUser { cure, .. } => Some(cure),
            _ => None,
        };
        let (message, hint) = (error.to_string(), hint.map(str::to_owned));
        match error {
            Posts::Io { source, .. } => CliError::File { message, hint, kind: source.kind() },
            _ => CliError::Data { message, hint },
        }
    }
}
