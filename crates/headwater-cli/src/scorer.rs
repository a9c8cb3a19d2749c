//! Which scorer: options in, something that scores posts out. For every command that does.

use crate::error::CliError;
use crate::terminal::Terminal;
use clap::{Args, ValueEnum};
use headwater_posts::Scorer;
use headwater_posts::score::builtin::Builtin;
use headwater_posts::score::roberta::{Roberta, hub};
use std::path::{Path, PathBuf};

/// Options that choose a scorer, or the scores that are there already.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scorer")]
pub(crate) struct ScorerOptions {
    /// What says how negative, neutral and positive a post is
    #[arg(long, value_enum, default_value = "builtin")]
    pub(crate) scorer: ScorerName,
    #[command(flatten)]
    model: ModelOptions,
}

/// Options that choose something that reads posts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scorer")]
pub(crate) struct ReaderOptions {
    /// What says how negative, neutral and positive a post is
    #[arg(long, value_enum, default_value = "builtin")]
    pub(crate) scorer: ReaderName,
    #[command(flatten)]
    model: ModelOptions,
}

/// Where a text model is.
#[derive(Debug, Args)]
struct ModelOptions {
    /// For roberta: a model's folder, or its name on the model hub
    #[arg(long, value_name = "DIR")]
    model: Option<String>,
    /// Where models are fetched from by name
    #[arg(long, value_name = "URL", default_value = hub::PUBLIC)]
    hub_url: String,
    /// Folder for fetched models [default: headwater/models in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScorerName {
    /// Inside the program: English, fast, explainable
    Builtin,
    /// A RoBERTa model with three labels: --model says which
    Roberta,
    /// Your own columns: score, or negative,neutral,positive
    Column,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReaderName {
    /// Inside the program: English, fast, explainable
    Builtin,
    /// A RoBERTa model with three labels: --model says which
    Roberta,
    /// Not offered; known only to say where it belongs.
    #[value(hide = true)]
    Column,
}

/// The scorer that the options ask for; `None` where posts bring their own scores.
pub(crate) fn scorer(options: &ScorerOptions, terminal: &Terminal) -> Result<Option<Box<dyn Scorer>>, CliError> {
    let name = match options.scorer {
        ScorerName::Column if options.model.model.is_some() => return Err(needless_model()),
        ScorerName::Column => return Ok(None),
        ScorerName::Builtin => ReaderName::Builtin,
        ScorerName::Roberta => ReaderName::Roberta,
    };
    open(name, &options.model, terminal).map(Some)
}

impl ReaderOptions {
    /// Refuses what does not read posts, before anything is opened.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        if self.scorer == ReaderName::Column { Err(not_a_reader()) } else { Ok(()) }
    }
}

/// The scorer that reads posts.
pub(crate) fn reader(options: &ReaderOptions, terminal: &Terminal) -> Result<Box<dyn Scorer>, CliError> {
    open(options.scorer, &options.model, terminal)
}

fn needless_model() -> CliError {
    CliError::usage("--model is for --scorer roberta; the others need none", "add --scorer roberta")
}

fn not_a_reader() -> CliError {
    CliError::usage(
        "--scorer column takes scores that are there already; there are builtin and roberta",
        "headwater beliefs --scorer column uses your own scores",
    )
}

fn open(name: ReaderName, options: &ModelOptions, terminal: &Terminal) -> Result<Box<dyn Scorer>, CliError> {
    match (name, &options.model) {
        (ReaderName::Column, _) => Err(not_a_reader()),
        (ReaderName::Builtin, None) => Ok(Box::new(Builtin::new())),
        (ReaderName::Builtin, Some(_)) => Err(needless_model()),
        (ReaderName::Roberta, None) => Err(CliError::usage(
            "--scorer roberta needs --model",
            "give the folder of a model, such as a copy of twitter-roberta-base-sentiment",
        )),
        (ReaderName::Roberta, Some(model)) => {
            let folder = folder(options, model, terminal)?;
            let _alive = terminal.spinner("reading the model");
            Ok(Box::new(Roberta::open(&folder)?))
        }
    }
}

impl ScorerOptions {
    /// The folder of the model, fetched if need be; `None` where there is no model.
    pub(crate) fn folder(&self, terminal: &Terminal) -> Result<Option<PathBuf>, CliError> {
        match (self.scorer, &self.model.model) {
            (ScorerName::Roberta, Some(model)) => folder(&self.model, model, terminal).map(Some),
            _ => Ok(None),
        }
    }
}

fn folder(options: &ModelOptions, model: &str, terminal: &Terminal) -> Result<PathBuf, CliError> {
    match Path::new(model) {
        folder if folder.exists() || !hub::is_name(model) => Ok(folder.to_owned()),
        _ => fetched(options, model, terminal),
    }
}

fn fetched(options: &ModelOptions, name: &str, terminal: &Terminal) -> Result<PathBuf, CliError> {
    let cache = match &options.cache {
        Some(cache) => cache.clone(),
        None => hub::default_cache()
            .ok_or_else(|| CliError::usage("there is no cache folder to keep the model in", "name one with --cache"))?,
    };
    let mut bar = None;
    let folder = hub::fetch(&options.hub_url, name, &cache, &mut |file, done, total| {
        if done == 0 {
            terminal.remark(&format!("fetching {name}/{file}"));
            bar = Some(terminal.bar("fetching", total));
        }
        if let Some(bar) = &mut bar {
            bar.at(done);
        }
    })?;
    Ok(folder)
}
