//! Which scorer: options in, something that scores posts out. For every command that does.

use crate::failure::Failure;
use crate::screen::Screen;
use clap::{Args, ValueEnum};
use headwater_posts::Scorer;
use headwater_posts::score::builtin::Builtin;
use headwater_posts::score::roberta::{Roberta, hub};
use std::path::{Path, PathBuf};

/// Options that choose a scorer.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scorer")]
pub(crate) struct ScorerOptions {
    /// What says how negative, neutral and positive a post is
    #[arg(long, value_enum, default_value = "builtin")]
    pub(crate) scorer: ScorerName,
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

/// The scorer that the options ask for; `None` where posts bring their own scores.
pub(crate) fn scorer(options: &ScorerOptions, screen: &Screen) -> Result<Option<Box<dyn Scorer>>, Failure> {
    match (options.scorer, &options.model) {
        (ScorerName::Column, None) => Ok(None),
        (ScorerName::Builtin, None) => Ok(Some(Box::new(Builtin::new()))),
        (ScorerName::Builtin | ScorerName::Column, Some(_)) => {
            Err(Failure::usage("--model is for --scorer roberta; the others need none", "add --scorer roberta"))
        }
        (ScorerName::Roberta, None) => Err(Failure::usage(
            "--scorer roberta needs --model",
            "give the folder of a model, such as a copy of twitter-roberta-base-sentiment",
        )),
        (ScorerName::Roberta, Some(model)) => {
            let folder = folder(options, model, screen)?;
            let _alive = screen.alive("reading the model");
            Ok(Some(Box::new(Roberta::open(&folder)?)))
        }
    }
}

impl ScorerOptions {
    /// The folder of the model, fetched if need be; `None` where there is no model.
    pub(crate) fn folder(&self, screen: &Screen) -> Result<Option<PathBuf>, Failure> {
        match (self.scorer, &self.model) {
            (ScorerName::Roberta, Some(model)) => folder(self, model, screen).map(Some),
            _ => Ok(None),
        }
    }
}

fn folder(options: &ScorerOptions, model: &str, screen: &Screen) -> Result<PathBuf, Failure> {
    match Path::new(model) {
        folder if folder.exists() || !hub::is_name(model) => Ok(folder.to_owned()),
        _ => fetched(options, model, screen),
    }
}

fn fetched(options: &ScorerOptions, name: &str, screen: &Screen) -> Result<PathBuf, Failure> {
    let cache = match &options.cache {
        Some(cache) => cache.clone(),
        None => hub::default_cache()
            .ok_or_else(|| Failure::usage("there is no cache folder to keep the model in", "name one with --cache"))?,
    };
    let mut bar = None;
    let folder = hub::fetch(&options.hub_url, name, &cache, &mut |file, done, total| {
        if done == 0 {
            screen.remark(&format!("fetching {name}/{file}"));
            bar = Some(screen.progress("fetching", total));
        }
        if let Some(bar) = &mut bar {
            bar.at(done);
        }
    })?;
    Ok(folder)
}
