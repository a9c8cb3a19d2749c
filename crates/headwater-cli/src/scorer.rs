//! Which scorer: options in, something that scores posts out. For every command that does.

use crate::error::CliError;
use crate::terminal::Terminal;
use clap::{Args, ValueEnum};
use headwater_posts::ScorerChoice;
use headwater_score::model_source::PUBLIC_HUB;
use headwater_score::{Builtin, ModelSource, Scorer};
use std::path::PathBuf;

/// Options that choose a scorer, or the scores that are there already.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scorer")]
pub(crate) struct ScorerArgs {
    /// What says how negative, neutral and positive a post is
    #[arg(long, value_enum, default_value = "builtin")]
    pub(crate) scorer: ScorerName,
    #[command(flatten)]
    model: ModelArgs,
}

/// Options that choose something that reads posts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scorer")]
pub(crate) struct ReaderArgs {
    /// What says how negative, neutral and positive a post is
    #[arg(long, value_enum, default_value = "builtin")]
    pub(crate) scorer: ReaderName,
    #[command(flatten)]
    model: ModelArgs,
}

/// Where a text model is.
#[derive(Debug, Args)]
struct ModelArgs {
    /// For roberta: a model's folder, or its name on the model hub
    #[arg(long, value_name = "DIR")]
    model: Option<String>,
    /// Where models are fetched from by name
    #[arg(long, value_name = "URL", default_value = PUBLIC_HUB)]
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
    CliError::usage("--model is for --scorer roberta; the others need none", "add --scorer roberta")
}

fn no_model() -> CliError {
    CliError::usage(
        "--scorer roberta needs --model",
        "give the folder of a model, such as a copy of twitter-roberta-base-sentiment",
    )
}

fn not_a_reader() -> CliError {
    CliError::usage(
        "--scorer column takes scores that are there already; there are builtin and roberta",
        "headwater beliefs --scorer column uses your own scores",
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

/// The folder of a model, fetched where it is the name of one on the hub.
fn folder(source: &ModelSource, terminal: &Terminal) -> Result<PathBuf, CliError> {
    let mut bar = None;
    let folder = source.folder(&mut |file, done, total| {
        if done == 0 {
            terminal.remark(&format!("fetching {}/{file}", source.model));
            bar = Some(terminal.bar("fetching", total));
        }
        if let Some(bar) = &mut bar {
            bar.at(done);
        }
    })?;
    Ok(folder)
}
