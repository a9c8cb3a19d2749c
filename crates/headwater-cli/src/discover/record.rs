//! The record of a run: what went in, with which options, and what came of it. In: files and options. Out: `run.json`.

use super::Discover;
use super::pseudonyms::hex;
use crate::error::CliError;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use headwater_files::MODEL_FORMAT;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::any::TypeId;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The version of `run.json`.
const RUN_FORMAT: &str = "headwater-run/1";

/// Options that change nothing about the result, and would differ between folders.
const UNRECORDED: [&str; 3] = ["help", "out", "format"];

/// Every option as it was used, given or by default. It is an argument of no command, but looks on as others are read, so
/// that an option added later is recorded as well.
#[derive(Debug, Clone, Default)]
pub(crate) struct Used(Map<String, Value>);

impl Args for Used {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for Used {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = Discover::augment_args(Command::new("discover"));
        let mut used = Map::new();
        for argument in command.get_arguments() {
            let name = argument.get_id().as_str();
            if UNRECORDED.contains(&name) {
                continue;
            }
            let Ok(Some(texts)) = matches.try_get_raw(name) else {
                used.insert(name.to_owned(), Value::Null);
                continue;
            };
            let kind = argument.get_value_parser().type_id();
            let numeric = [
                TypeId::of::<u8>(),
                TypeId::of::<u16>(),
                TypeId::of::<u32>(),
                TypeId::of::<u64>(),
                TypeId::of::<usize>(),
                TypeId::of::<f64>(),
                TypeId::of::<bool>(),
            ];
            let plain = numeric.iter().any(|number| kind == *number);
            let mut values = texts.map(|text| {
                let text = text.to_string_lossy();
                let number = plain.then(|| serde_json::from_str(&text).ok()).flatten();
                number.unwrap_or_else(|| Value::String(text.into_owned()))
            });
            let many = matches!(argument.get_action(), clap::ArgAction::Append)
                || argument.get_num_args().is_some_and(|count| count.max_values() > 1);
            let value = if many { Value::Array(values.collect()) } else { values.next().unwrap_or(Value::Null) };
            used.insert(name.to_owned(), value);
        }
        Ok(Used(used))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Used::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Used {
    /// Those of a group, without some.
    pub(crate) fn of<T: Args>(&self, without: &[&str]) -> Map<String, Value> {
        let command = T::augment_args(Command::new("group"));
        let names = command.get_arguments().map(|argument| argument.get_id().as_str());
        let kept = names.filter(|name| !without.contains(name));
        kept.filter_map(|name| Some((name.to_owned(), self.0.get(name)?.clone()))).collect()
    }

    /// All of them, with what was decided on the way.
    pub(crate) fn with(&self, decided: Map<String, Value>) -> Map<String, Value> {
        let mut all = self.0.clone();
        all.extend(decided);
        all
    }
}

/// A file that was read.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Input {
    /// What it is.
    pub(crate) role: &'static str,
    /// Not recorded where names are hidden: files may be named after users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    bytes: u64,
    pub(crate) sha256: String,
}

impl Input {
    /// Reads a file for its hash. Only what can be read twice will do.
    pub(crate) fn of(role: &'static str, path: &Path) -> Result<Self, CliError> {
        let regular = std::fs::metadata(path).map_or(true, |found| found.is_file());
        if path == Path::new("-") || !regular {
            return Err(CliError::usage(
                format!(
                    "{}: discover reads files twice, once for their hash, and can go on after an interruption",
                    path.display()
                ),
                "save it to a file first",
            ));
        }
        let (bytes, sha256) = sha256(path)?;
        Ok(Input { role, path: Some(path.display().to_string()), bytes, sha256 })
    }

    /// The files of a folder, by name.
    pub(crate) fn folder(role: &'static str, folder: &Path) -> Result<Vec<Self>, CliError> {
        let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
        let mut paths: Vec<PathBuf> =
            entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        paths.sort();
        paths.iter().map(|path| Input::of(role, path)).collect()
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::File {
        message: format!("{}: cannot read: {error}", path.display()),
        hint: Some("check the path and its permissions".to_owned()),
        kind: error.kind(),
    }
}

/// Length and SHA-256 of a file.
pub(crate) fn sha256(path: &Path) -> Result<(u64, String), CliError> {
    let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let (mut sum, mut length, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut buffer).map_err(|error| unreadable(path, &error))?;
        if count == 0 {
            return Ok((length, hex(&sum.finalize())));
        }
        sum.update(&buffer[..count]);
        length += count as u64;
    }
}

/// A hash of everything a stage depends on. Another version of the program may do it differently.
pub(crate) fn key(stage: &str, depends: &Value) -> String {
    let all = json!([env!("CARGO_PKG_VERSION"), MODEL_FORMAT, RUN_FORMAT, stage, depends]);
    hex(&Sha256::digest(all.to_string()))
}

/// `run.json`. Two runs on the same files with the same options differ in nothing but `timings`.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    format: &'static str,
    program: &'static str,
    version: &'static str,
    model_format: &'static str,
    pub(crate) seed: u64,
    pub(crate) inputs: Vec<Input>,
    pub(crate) options: Map<String, Value>,
    /// What the stages found: `counts`, `choice`, …
    #[serde(flatten)]
    pub(crate) facts: Map<String, Value>,
    /// What each stage depended on and made, by which a later run knows whether it can be used again.
    pub(crate) stages: Map<String, Value>,
    pub(crate) timings: Map<String, Value>,
}

impl Run {
    pub(crate) fn new(seed: u64, inputs: Vec<Input>, options: Map<String, Value>) -> Self {
        Run {
            format: RUN_FORMAT,
            program: "headwater",
            version: env!("CARGO_PKG_VERSION"),
            model_format: MODEL_FORMAT,
            seed,
            inputs,
            options,
            facts: Map::new(),
            stages: Map::new(),
            timings: Map::new(),
        }
    }
}
