//! Options that choose a scorer, for every command that scores posts.

use crate::error::CliError;
use crate::terminal::Terminal;
use clap::{Args, ValueEnum};
use headwater_posts::ScorerChoice;
use headwater_score::model_source::PUBLIC_HUB;
use headwater_score::{Builtin, ModelSource, Scorer};
use std::path::PathBuf;

/// Options that choose a scorer, or a column with scores.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scorer")]
pub(crate) struct ScorerArgs {
    /// Scorer of the sentiment of posts
    #[arg(long, value_enum, default_value = "builtin")]
    pub(crate) scorer: ScorerName,
    #[command(flatten)]
    model: ModelArgs,
}

/// Options that choose a scorer that reads texts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scorer")]
pub(crate) struct ReaderArgs {
    /// Scorer of the sentiment of posts
    #[arg(long, value_enum, default_value = "builtin")]
    pub(crate) scorer: ReaderName,
    #[command(flatten)]
    model: ModelArgs,
}

/// Where a text model is.
#[derive(Debug, Args)]
struct ModelArgs {
    /// For roberta: folder of a model, or its name on the model hub
    #[arg(long, value_name = "DIR")]
    model: Option<String>,
    /// Model hub to download from
    #[arg(long, value_name = "URL", default_value = PUBLIC_HUB)]
    hub_url: String,
    /// Folder for downloaded models [default: headwater/models in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScorerName {
    /// Built-in linear model: English, fast, explainable
    Builtin,
    /// RoBERTa model with three labels, given by --model
    Roberta,
    /// Columns of the posts: score, or negative,neutral,positive
    Column,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReaderName {
    /// Built-in linear model: English, fast, explainable
    Builtin,
    /// RoBERTa model with three labels, given by --model
    Roberta,
    /// Not offered; accepted only for a helpful error message.
    #[value(hide = true)]
    Column,
}

/// The scorer that the options ask for; `None` where posts bring their own scores.
pub(crate) fn scorer(options: &ScorerArgs, terminal: &Terminal) -> Result<Option<Box<dyn Scorer>>, CliError> {
    let name = match options.scorer {
        ScorerName::Column if options.model.model.is_some() => return Err(needless_model()),
        ScorerName::Column => return Ok(None),
        ScorerName::Builtin => ReaderName::Builtin,
        ScorerName::Roberta => ReaderName::Roberta,
    };
    open(name, &options.model, terminal).map(Some)
}

impl ReaderArgs {
    /// Refuses what does not read posts, before anything is opened.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        if self.scorer == ReaderName::Column { Err(not_a_reader()) } else { Ok(()) }
    }
}

/// The scorer that reads posts.
pub(crate) fn reader(options: &ReaderArgs, terminal: &Terminal) -> Result<Box<dyn Scorer>, CliError> {
    open(options.scorer, &options.model, terminal)
}

fn needless_model() -> CliError {
    CliError::usage("--model is an option of --scorer roberta", "add --scorer roberta")
}

fn no_model() -> CliError {
    CliError::usage(
        "--scorer roberta needs --model",
        "name the folder of a model, such as a copy of twitter-roberta-base-sentiment",
    )
}

fn not_a_reader() -> CliError {
    CliError::usage(
        "--scorer column uses existing scores and cannot score texts; use builtin or roberta",
        "headwater beliefs --scorer column reads scores from a column",
    )
}

fn open(name: ReaderName, options: &ModelArgs, terminal: &Terminal) -> Result<Box<dyn Scorer>, CliError> {
    match (name, &options.model) {
        (ReaderName::Column, _) => Err(not_a_reader()),
        (ReaderName::Builtin, None) => Ok(Box::new(Builtin::new())),
        (ReaderName::Builtin, Some(_)) => Err(needless_model()),
        (ReaderName::Roberta, None) => Err(no_model()),
        (ReaderName::Roberta, Some(model)) => {
            let source = options.source(model);
            let folder = folder(&source, terminal)?;
            let _alive = terminal.spinner("reading the model");
            Ok(ModelSource::new(folder.to_string_lossy()).open(&mut |_, _, _| ())?)
        }
    }
}

impl ScorerArgs {
    /// Which scorer, as the library takes it.
    pub(crate) fn choice(&self) -> ScorerChoice {
        match self.scorer {
            ScorerName::Builtin => ScorerChoice::Builtin,
            ScorerName::Roberta => ScorerChoice::Roberta,
            ScorerName::Column => ScorerChoice::Column,
        }
    }

    /// The text model, where one is asked for; what contradicts is refused.
    pub(crate) fn text_model(&self) -> Result<Option<ModelSource>, CliError> {
        match (self.scorer, &self.model.model) {
            (ScorerName::Roberta, Some(model)) => Ok(Some(self.model.source(model))),
            (ScorerName::Roberta, None) => Err(no_model()),
            (_, Some(_)) => Err(needless_model()),
            (_, None) => Ok(None),
        }
    }
}

impl ModelArgs {
    fn source(&self, model: &str) -> ModelSource {
        ModelSource::new(model).with_hub(&self.hub_url).with_cache(self.cache.clone())
    }
}

/// The folder of a model, downloaded where it is a name on the hub.
fn folder(source: &ModelSource, terminal: &Terminal) -> Result<PathBuf, CliError> {
    let mut bar = None;
    let folder = source.folder(&mut |file, done, total| {
        if done == 0 {
            terminal.remark(&format!("downloading {}/{file}", source.model));
            bar = Some(terminal.bar("downloading", total));
        }
        if let Some(bar) = &mut bar {
            bar.at(done);
        }
    })?;
    Ok(folder)
}
