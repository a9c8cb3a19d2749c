//! Replication of the paper *Discovering Influencers in Opinion Formation over Social Graphs*: its figures and tables,
//! next to the authors' released results and our learner.
//!
//! In: a [`Replication`], which names experiments, folders and seeds. Out: figures, points and numbers in a folder, a
//! Markdown page, and [`ReplicationResults`] with every [`PaperClaim`] and what was found.
//!
//! Each experiment is a function from an `ExperimentContext` to an `ExperimentResult`. Its jobs are saved as they finish, so
//! that an interrupted run continues where it stopped. Progress is reported through [`headwater::progress`].

mod claim;
mod curves;
mod error;
mod experiment;
mod experiments;
mod files;
mod jobs;
mod markdown;
mod released_data;
mod simulation;

pub use claim::{ClaimStatus, PaperClaim};
pub use error::Error;
pub use experiment::Experiment;

use experiment::ExperimentContext;
use files::{create_folder, remove_folder, write, write_json, write_points};
use jobs::Jobs;
use released_data::ReleasedData;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Changes whenever an experiment computes or says something else than before, so that old results are not reused.
const REVISION: u32 = 2;

/// What to replicate, from what, and where the results go.
#[derive(Debug, Clone)]
pub struct Replication {
    /// All experiments when empty.
    pub experiments: Vec<Experiment>,
    /// Folder for figures (SVG, PNG), points (CSV) and numbers (JSON), one folder per experiment.
    pub out: PathBuf,
    /// File of the page, whose figures go to a folder of the same name; `replication.md` in `out` when `None`.
    pub page: Option<PathBuf>,
    /// Folder of the authors' released files; any part of it may be missing.
    pub data: PathBuf,
    /// Folder of the paper's RoBERTa model.
    pub model: Option<PathBuf>,
    /// Fewer seeds and shorter runs.
    pub quick: bool,
    /// Seed of the first repetition; the others follow it.
    pub seed: u64,
    /// Run experiments again that an earlier run has finished.
    pub again: bool,
}

/// What a replication tells while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicationEvent<'a> {
    /// Simulations run on a drawn network, because the folder does not have the authors'.
    NoReleasedSimulations {
        /// Where they were looked for.
        folder: &'a Path,
    },
    /// An experiment is left out, because the folder does not have the authors' Twitter series.
    NoReleasedTwitter {
        /// The experiment that needs them.
        experiment: Experiment,
        /// Where they were looked for.
        folder: &'a Path,
    },
    /// An experiment is left out, because the folder does not have the answers of people.
    NoPeople {
        /// The experiment that needs them.
        experiment: Experiment,
        /// Where they were looked for.
        folder: &'a Path,
    },
    /// An experiment begins.
    Started(Experiment),
    /// The results of an earlier run with the same settings are used.
    Reused(Experiment),
}

/// All finished experiments of a folder, and the page about them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReplicationResults {
    /// In the order of [`Experiment::ALL`]; those of earlier runs are included.
    pub experiments: Vec<ExperimentRecord>,
    /// File of the page.
    pub page: PathBuf,
    /// Its Markdown text.
    pub page_text: String,
    /// Files that this run wrote.
    pub files: Vec<PathBuf>,
}

impl ReplicationResults {
    /// Every claim with its experiment.
    pub fn claims(&self) -> impl Iterator<Item = (Experiment, &PaperClaim)> {
        self.experiments.iter().flat_map(|found| found.claims.iter().map(|claim| (found.experiment, claim)))
    }
}

/// A finished experiment, as `headline.json` has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExperimentRecord {
    /// Which one.
    pub experiment: Experiment,
    /// What its numbers depend on.
    pub settings: ReplicationSettings,
    /// How long it took.
    pub seconds: f64,
    /// Its headline numbers, by name.
    pub numbers: Value,
    /// Its figures.
    pub figures: Vec<FigureRecord>,
    /// What the paper claims, and what was found.
    pub claims: Vec<PaperClaim>,
}

/// What the numbers of an experiment depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReplicationSettings {
    /// Which of the authors' files there were.
    pub authors: ReleasedParts,
    /// Folder of a RoBERTa model, where the experiment uses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<PathBuf>,
    /// Whether it was a quick run.
    pub quick: bool,
    /// Revision of the experiments.
    pub revision: u32,
    /// First seed.
    pub seed: u64,
    /// Version of this crate.
    pub version: String,
}

/// Which of the authors' files there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ReleasedParts {
    pub simulations: bool,
    pub twitter: bool,
}

/// A figure that was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FigureRecord {
    /// File name without extension.
    pub stem: String,
    /// What it shows.
    pub caption: String,
}

impl Replication {
    /// All experiments in full, with the authors' files in `data`.
    pub fn new(out: impl Into<PathBuf>, data: impl Into<PathBuf>) -> Self {
        Replication {
            experiments: Vec::new(),
            out: out.into(),
            page: None,
            data: data.into(),
            model: None,
            quick: false,
            seed: 1,
            again: false,
        }
    }

    /// Runs the experiments that are not finished yet, and writes the page about all finished ones.
    ///
    /// # Errors
    /// Files that cannot be read or written, released files that do not have the expected form, and
    /// [`headwater::Error::Stopped`] when the work was stopped.
    pub fn run(&self, mut event: impl FnMut(ReplicationEvent<'_>)) -> Result<ReplicationResults, Error> {
        let released = ReleasedData::new(&self.data);
        create_folder(&self.out)?;
        let chosen = || {
            let wanted = |experiment: &Experiment| self.experiments.is_empty() || self.experiments.contains(experiment);
            Experiment::ALL.into_iter().filter(wanted)
        };
        if !released.parts().simulations && chosen().any(Experiment::simulates) {
            event(ReplicationEvent::NoReleasedSimulations { folder: &self.data });
        }
        let mut files = Vec::new();
        for experiment in chosen() {
            if experiment.needs_twitter() && !released.parts().twitter {
                event(ReplicationEvent::NoReleasedTwitter { experiment, folder: &self.data });
                continue;
            }
            if !experiment.is_of_the_paper() && !released.has_people() {
                event(ReplicationEvent::NoPeople { experiment, folder: &self.data });
                continue;
            }
            let settings = self.settings(experiment, &released);
            if !self.again && self.finished(experiment).is_some_and(|found| found.settings == settings) {
                event(ReplicationEvent::Reused(experiment));
                continue;
            }
            event(ReplicationEvent::Started(experiment));
            self.run_one(experiment, settings, &released, &mut files)?;
        }
        let experiments: Vec<ExperimentRecord> =
            Experiment::ALL.into_iter().filter_map(|experiment| self.finished(experiment)).collect();
        let page = self.page.clone().unwrap_or_else(|| self.out.join("replication.md"));
        let page_text = markdown::write_page(&page, &self.out, &experiments, &mut files)?;
        Ok(ReplicationResults { experiments, page, page_text, files })
    }

    fn settings(&self, experiment: Experiment, released: &ReleasedData) -> ReplicationSettings {
        ReplicationSettings {
            authors: released.parts(),
            model: self.model.clone().filter(|_| experiment.takes_a_model()),
            quick: self.quick,
            revision: REVISION,
            seed: self.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// What an earlier run has left of an experiment.
    fn finished(&self, experiment: Experiment) -> Option<ExperimentRecord> {
        let text = std::fs::read_to_string(self.out.join(experiment.name()).join("headline.json")).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn run_one(
        &self,
        experiment: Experiment,
        settings: ReplicationSettings,
        released: &ReleasedData,
        files: &mut Vec<PathBuf>,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let folder = self.out.join(experiment.name());
        let parts = folder.join("parts");
        create_folder(&folder)?;
        if self.again {
            remove_folder(&parts)?;
        }
        let jobs = Jobs { name: experiment.name(), folder: parts.clone(), settings: settings.clone() };
        let model = self.model.as_deref();
        let found = experiment.run(&ExperimentContext { quick: self.quick, seed: self.seed, released, model, jobs })?;
        let mut figures = Vec::new();
        for named in found.figures {
            let [svg, png, csv] = ["svg", "png", "csv"].map(|kind| folder.join(format!("{}.{kind}", named.stem)));
            write(&svg, named.figure.svg().as_bytes())?;
            write(&png, &named.figure.png()?)?;
            write_points(&csv, &named.figure.points())?;
            files.extend([svg, png, csv]);
            figures.push(FigureRecord { stem: named.stem, caption: named.caption });
        }
        let record = ExperimentRecord {
            experiment,
            settings,
            seconds: (started.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            numbers: found.numbers,
            figures,
            claims: found.claims,
        };
        // Last, because it says that all the rest is there.
        let headline = folder.join("headline.json");
        write_json(&headline, &record)?;
        files.push(headline);
        remove_folder(&parts)
    }
}
