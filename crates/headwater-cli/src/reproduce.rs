//! `headwater reproduce`: the paper's figures and tables, beside the authors' released numbers and beside our learner.
//!
//! Each experiment is a function from a [`Run`] to an [`Outcome`]: figures, headline numbers, and what the paper claims
//! beside what was found. This file runs them and writes what they found; `page` puts the claims side by side.

mod authors;
mod drift;
mod evidence_error;
mod graph_error;
mod influences;
mod jobs;
mod matrices;
mod page;
mod sentiment_table;
mod stage;
mod theory;
mod truth_rate;
mod twitter;

use crate::error::CliError;
use crate::output::{create, write, write_json};
use crate::terminal::{Format, Terminal, csv, table};
use authors::Authors;
use clap::Args;
use clap::builder::PossibleValuesParser;
use headwater_report::{Drawn, Figure};
use jobs::Jobs;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Makes the paper's figures and tables anew, beside the authors' released numbers and beside our learner
#[derive(Debug, Args)]
#[command(after_help = EXPLAINED)]
pub(crate) struct Reproduce {
    /// Which experiments; all when none is named
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(EXPERIMENTS.map(|experiment| experiment.name)))]
    names: Vec<String>,
    /// Folder for figures (SVG, PNG), points (CSV), headline numbers (JSON) and the page
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Fewer seeds: everything within two minutes on two cores
    #[arg(long)]
    quick: bool,
    /// Also what an earlier run has finished
    #[arg(long)]
    again: bool,
    /// Folder of the authors' released files [default: $HEADWATER_DATA, or ../shared/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to write the page, with its figures in a folder beside it [default: DIR/replication.md]
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Folder of the paper's RoBERTa model, for sentiment-table
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Seed of the first repetition
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

const EXPLAINED: &str = "matrices: true and learned weights. graph-error: error of the weights against steps. evidence-error: the same for the\nevidence. influences: true and learned shares. truth-rate: how often an agent names the truth. topology-drift, state-drift:\nwhat a change does. twitter: the three networks of the paper. sentiment-table: its sample posts. theory: the theorems' rates,\nmeasured.\n\nA run that was interrupted goes on where it stopped.\n\nExample: headwater reproduce --out paper --quick";

/// One of the paper's figures, or several that belong together.
#[derive(Clone, Copy)]
struct Experiment {
    name: &'static str,
    title: &'static str,
    run: fn(&Run<'_>) -> Result<Outcome, CliError>,
    /// Whether it simulates on the authors' network, if that is there, and otherwise on one like it.
    simulates: bool,
    /// Whether there is nothing to show without the authors' Twitter files.
    needs_twitter: bool,
    /// Whether --model changes what it shows.
    takes_a_model: bool,
}

impl Experiment {
    const fn new(name: &'static str, title: &'static str, run: fn(&Run<'_>) -> Result<Outcome, CliError>) -> Self {
        Experiment { name, title, run, simulates: true, needs_twitter: false, takes_a_model: false }
    }
}

const EXPERIMENTS: [Experiment; 10] = [
    Experiment::new("matrices", "Combination matrices", matrices::run),
    Experiment::new("graph-error", "Learning the weights", graph_error::run),
    Experiment::new("evidence-error", "Learning the evidence", evidence_error::run),
    Experiment::new("influences", "Influences", influences::run),
    Experiment::new("truth-rate", "How often the truth is named", truth_rate::run),
    Experiment::new("topology-drift", "A topology that changes", drift::topology),
    Experiment::new("state-drift", "A state that changes", drift::state),
    Experiment {
        simulates: false,
        needs_twitter: true,
        ..Experiment::new("twitter", "The Twitter networks", twitter::run)
    },
    Experiment {
        simulates: false,
        takes_a_model: true,
        ..Experiment::new("sentiment-table", "Sentiment of sample posts", sentiment_table::run)
    },
    Experiment { simulates: false, ..Experiment::new("theory", "The theorems", theory::run) },
];

/// Changes whenever an experiment computes something else than before, so that old results are not taken for new ones.
const REVISION: u32 = 1;

/// What an experiment is given.
pub(crate) struct Run<'a> {
    quick: bool,
    seed: u64,
    authors: &'a Authors,
    /// Folder of a RoBERTa model.
    model: Option<PathBuf>,
    jobs: Jobs<'a>,
}

impl Run<'_> {
    /// Seeds of the repetitions.
    fn seeds(&self) -> Vec<u64> {
        let count = if self.quick { 3 } else { 10 };
        (0..count).map(|number| self.seed.wrapping_add(number)).collect()
    }

    /// One of two numbers.
    fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// What an experiment found.
struct Outcome {
    plates: Vec<Plate>,
    numbers: Value,
    claims: Vec<Claim>,
}

/// A figure with the name of its files and what it shows.
struct Plate {
    stem: String,
    caption: String,
    figure: Figure,
}

/// How far something the paper says was found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Standing {
    Agreed,
    InPart,
    NotReproduced,
    /// Not something the paper says.
    Beyond,
}

impl Standing {
    fn when(agreed: bool) -> Self {
        if agreed { Standing::Agreed } else { Standing::NotReproduced }
    }

    fn words(self) -> &'static str {
        match self {
            Standing::Agreed => "agreed",
            Standing::InPart => "agreed in part",
            Standing::NotReproduced => "not reproduced",
            Standing::Beyond => "beyond the paper",
        }
    }
}

/// One thing the paper says, and what was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Claim {
    /// What the paper says.
    paper: String,
    /// What the authors' files hold.
    authors: String,
    /// What the paper's formula gives.
    formula: String,
    /// What the released procedure gives.
    released: String,
    /// What our learner gives.
    ours: String,
    standing: Standing,
    why: String,
}

/// Nothing to say in a column.
const NONE: &str = "–";

impl Claim {
    fn new(paper: &str, standing: Standing) -> Self {
        let none = || NONE.to_owned();
        Claim {
            paper: paper.to_owned(),
            authors: none(),
            formula: none(),
            released: none(),
            ours: none(),
            standing,
            why: String::new(),
        }
    }
}

/// What is kept of a finished experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Headline {
    experiment: String,
    settings: Value,
    seconds: f64,
    numbers: Value,
    figures: Vec<Caption>,
    claims: Vec<Claim>,
}

/// A figure that was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Caption {
    /// File name without extension.
    stem: String,
    caption: String,
}

impl Reproduce {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let authors = Authors::find(self.data.clone());
        create(&self.out)?;
        let chosen: Vec<&Experiment> = EXPERIMENTS
            .iter()
            .filter(|experiment| self.names.is_empty() || self.names.iter().any(|name| name == experiment.name))
            .collect();
        if !authors.has_simulations() && chosen.iter().any(|experiment| experiment.simulates) {
            terminal.warn(&format!(
                "{} has no epfl-synthetic: the simulations run on a network drawn with the paper's parameters, without the authors' numbers beside them (--data names the folder)",
                authors.folder().display()
            ));
        }
        for experiment in chosen {
            self.one(experiment, &authors, terminal)?;
        }
        let headlines: Vec<(&Experiment, Headline)> =
            EXPERIMENTS.iter().filter_map(|experiment| Some((experiment, self.finished(experiment)?))).collect();
        let page = self.page.clone().unwrap_or_else(|| self.out.join("replication.md"));
        page::write_page(&page, &self.out, &headlines)?;
        terminal.remark(&format!("the page is {}", page.display()));
        self.print(&headlines, terminal)
    }

    fn settings(&self, experiment: &Experiment, authors: &Authors) -> Value {
        let mut settings = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "revision": REVISION,
            "quick": self.quick,
            "seed": self.seed,
            "authors": { "simulations": authors.has_simulations(), "twitter": authors.has_twitter() },
        });
        if let (true, Some(model)) = (experiment.takes_a_model, &self.model) {
            settings["model"] = json!(model);
        }
        settings
    }

    /// What an earlier run has left of an experiment.
    fn finished(&self, experiment: &Experiment) -> Option<Headline> {
        let text = std::fs::read_to_string(self.out.join(experiment.name).join("headline.json")).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn one(&self, experiment: &Experiment, authors: &Authors, terminal: &Terminal) -> Result<(), CliError> {
        if experiment.needs_twitter && !authors.has_twitter() {
            terminal.warn(&format!(
                "{} needs the authors' Twitter series, and {} has no epfl-twitter: left out (--data names the folder)",
                experiment.name,
                authors.folder().display()
            ));
            return Ok(());
        }
        let settings = self.settings(experiment, authors);
        if !self.again && self.finished(experiment).is_some_and(|found| found.settings == settings) {
            terminal.remark(&format!("{}: finished earlier", experiment.name));
            return Ok(());
        }
        terminal.remark(&format!("{}: {}", experiment.name, experiment.title));
        let started = Instant::now();
        let folder = self.out.join(experiment.name);
        let parts = folder.join("parts");
        create(&folder)?;
        if self.again {
            remove(&parts)?;
        }
        let jobs = Jobs { terminal, name: experiment.name, folder: parts.clone(), settings: settings.clone() };
        let run = Run { quick: self.quick, seed: self.seed, authors, model: self.model.clone(), jobs };
        let found = (experiment.run)(&run)?;
        let mut figures = Vec::new();
        for plate in found.plates {
            write(&folder.join(format!("{}.svg", plate.stem)), plate.figure.svg().as_bytes())?;
            let png = plate.figure.png().map_err(|error| CliError::data(error.to_string()))?;
            write(&folder.join(format!("{}.png", plate.stem)), &png)?;
            write(&folder.join(format!("{}.csv", plate.stem)), points(&plate.figure.points()).as_bytes())?;
            figures.push(Caption { stem: plate.stem, caption: plate.caption });
        }
        let headline = Headline {
            experiment: experiment.name.to_owned(),
            settings,
            seconds: (started.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            numbers: found.numbers,
            figures,
            claims: found.claims,
        };
        // Last, because it says that all the rest is there.
        write_json(&folder.join("headline.json"), &headline)?;
        remove(&parts)
    }

    fn print(&self, headlines: &[(&Experiment, Headline)], terminal: &Terminal) -> Result<(), CliError> {
        let claims = || {
            headlines
                .iter()
                .flat_map(|(experiment, found)| found.claims.iter().map(move |claim| (experiment.name, claim)))
        };
        match self.format {
            Format::Json => terminal.json(&headlines.iter().map(|(_, found)| found).collect::<Vec<_>>()),
            Format::Csv => {
                let row = |(name, claim): (&str, &Claim)| {
                    let Claim { paper, authors, formula, released, ours, why, .. } = claim.clone();
                    vec![
                        name.to_owned(),
                        paper,
                        claim.standing.words().to_owned(),
                        authors,
                        formula,
                        released,
                        ours,
                        why,
                    ]
                };
                let header = ["experiment", "claim", "standing", "authors", "formula", "released", "ours", "why"];
                terminal.result(&csv(&header, claims().map(row).collect()))
            }
            Format::Table => {
                let row = |(name, claim): (&str, &Claim)| {
                    vec![name.to_owned(), claim.paper.clone(), claim.standing.words().to_owned()]
                };
                terminal.result(&table(&["experiment", "the paper says", "standing"], 3, claims().map(row).collect()))
            }
        }
    }
}

/// Every point of a figure as CSV.
fn points(points: &[Drawn]) -> String {
    let shown = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let row = |point: &Drawn| {
        let Drawn { panel, series, x, y, low, high } = point.clone();
        vec![panel, series, x, y.to_string(), shown(low), shown(high)]
    };
    csv(&["panel", "series", "x", "y", "low", "high"], points.iter().map(row).collect())
}

/// Removes a folder that may not be there.
fn remove(folder: &Path) -> Result<(), CliError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CliError::data(format!("{}: cannot remove: {error}", folder.display())))
        }
        _ => Ok(()),
    }
}
