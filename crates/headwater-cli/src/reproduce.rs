//! `headwater reproduce`: the paper's figures and tables, next to the authors' released results and our learner.

use crate::error::CliError;
use crate::terminal::{Format, Terminal, csv, table};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use headwater_reproduce::{Experiment, PaperClaim, Replication, ReplicationEvent, ReplicationResults};
use std::path::PathBuf;

/// Reproduces the paper's figures and tables, next to the authors' released results and our learner
#[derive(Debug, Args)]
#[command(after_help = EXPERIMENTS)]
pub(crate) struct ReproduceArgs {
    /// Experiments to run [default: all]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(Experiment::ALL.map(Experiment::name)).try_map(|name| name.parse::<Experiment>()))]
    experiments: Vec<Experiment>,
    /// Folder for figures (SVG, PNG), points (CSV), headline numbers (JSON) and the page
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Fewer seeds: about two minutes on two cores
    #[arg(long)]
    quick: bool,
    /// Repeat experiments that an earlier run has finished
    #[arg(long)]
    again: bool,
    /// Folder of the authors' released files [default: $HEADWATER_DATA, or ../shared/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Page to write, with its figures in a folder beside it [default: DIR/replication.md]
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Folder of the paper's RoBERTa model, for sentiment-table
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Seed of the first repetition
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

const EXPERIMENTS: &str = "matrices: true and learned weights. graph-error: error of the weights over time. evidence-error: error of the evidence\nover time. influences: true and learned influence shares. truth-rate: how often an agent identifies the true state.\ntopology-drift, state-drift: effect of a change. twitter: the three networks of the paper. sentiment-table: its sample posts.\ntheory: predicted and measured rates of the theorems. people: not of the paper, people who revise an estimate with a known\nnetwork (page people.md).\n\nAn interrupted run continues where it stopped.\n\nExample: headwater reproduce --out paper --quick";

impl ReproduceArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let data = self.data.or_else(|| std::env::var_os("HEADWATER_DATA").map(PathBuf::from));
        let replication = Replication {
            experiments: self.experiments,
            page: self.page,
            model: self.model,
            quick: self.quick,
            seed: self.seed,
            again: self.again,
            ..Replication::new(self.out, data.unwrap_or_else(|| PathBuf::from("../shared/data")))
        };
        let results = terminal.with_bars(|| replication.run(|event| tell(terminal, event)))?;
        terminal.remark(&format!("the page is {}", results.page.display()));
        print(&results, self.format, terminal)
    }
}

fn tell(terminal: &Terminal, event: ReplicationEvent<'_>) {
    match event {
        ReplicationEvent::NoReleasedSimulations { folder } => terminal.warn(&format!(
            "{} has no epfl-synthetic: the simulations use a network drawn with the paper's parameters, without the authors' results for comparison (--data names the folder)",
            folder.display()
        )),
        ReplicationEvent::NoReleasedTwitter { experiment, folder } => terminal.warn(&format!(
            "{} needs the authors' Twitter series, and {} has no epfl-twitter: left out (--data names the folder)",
            experiment.name(),
            folder.display()
        )),
        ReplicationEvent::NoPeople { experiment, folder } => terminal.warn(&format!(
            "{} needs the answers of people, and {} has no becker-2017 and clinicians-2023: left out (--data names the folder)",
            experiment.name(),
            folder.display()
        )),
        ReplicationEvent::Started(experiment) => {
            terminal.remark(&format!("{}: {}", experiment.name(), experiment.title()));
        }
        ReplicationEvent::Reused(experiment) => terminal.remark(&format!("{}: finished earlier", experiment.name())),
        _ => {}
    }
}

fn print(results: &ReplicationResults, format: Format, terminal: &Terminal) -> Result<(), CliError> {
    match format {
        Format::Json => terminal.json(&results.experiments),
        Format::Csv => {
            let row = |(experiment, claim): (Experiment, &PaperClaim)| {
                let PaperClaim { claim, authors, formula, released, ours, status, explanation, .. } = claim.clone();
                let status = status.to_string();
                vec![experiment.name().to_owned(), claim, status, authors, formula, released, ours, explanation]
            };
            let header = ["experiment", "claim", "status", "authors", "formula", "released", "ours", "explanation"];
            terminal.result(&csv(&header, results.claims().map(row).collect(), terminal.csv_text()))
        }
        Format::Table => {
            let row = |(experiment, claim): (Experiment, &PaperClaim)| {
                vec![experiment.name().to_owned(), claim.claim.clone(), claim.status.to_string()]
            };
            let rows = results.claims().map(row).collect();
            terminal.text(&table(&["experiment", "claim of the paper", "status"], 3, rows))
        }
    }
}
