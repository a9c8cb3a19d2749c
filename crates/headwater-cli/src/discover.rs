//! `headwater discover`: posts in, a ranking with its verdict out, and everything on the way in one folder.

use crate::beliefs::{BadRows, PostArgs, told};
use crate::error::CliError;
use crate::fit_args::FitArgs;
use crate::hints::warning_text;
use crate::output::check;
use crate::rank::text;
use crate::terminal::{Format, Terminal, wrapped};
use clap::Args;
use headwater::progress::Progress;
use headwater_discover::{
    BELIEFS_FILE, Discover, Discovery, Event, GraphInput, LOG_BELIEFS_FILE, MODEL_FILE, NULL_TEST_ACCOUNTS, Pseudonyms,
    RANKING_FILES, RUN_FILE, Store, USUAL_DRAWS, UncertaintyOptions, Warning,
};
use headwater_files::ranking_csv;
use headwater_report::{REPORT_FILE, RUN_ARTIFACTS};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// What to do about a run that takes long.
const QUICKER: &str = "longer bins or fewer users are quicker";

/// Rank influencers from posts
#[derive(Debug, Args)]
#[command(
    after_help = "Writes beliefs.parquet, log-beliefs.parquet, model.json, ranking.json, ranking.csv, edges.csv, report.html, network.gexf\nand run.json. Interrupted, the same command goes on where it stopped.\n\nExample: headwater discover posts.csv --graph follows.csv --topic 'biden OR \"white house\"' --out found\n         headwater discover 'dump/*.jsonl.gz' --preset x-v2 --pseudonymise key --out found"
)]
pub(crate) struct DiscoverArgs {
    #[command(flatten)]
    posts: PostArgs,
    /// Who follows whom: CSV source,target, the target follows the source. Only these edges can have weight
    #[arg(long, value_name = "EDGES")]
    graph: Option<PathBuf>,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace the results of other posts in that folder
    #[arg(long)]
    force: bool,
    /// Replace names of users by keyed hashes in everything that is written or shown; the key is in this file
    #[arg(long, value_name = "KEYFILE")]
    pseudonymise: Option<PathBuf>,
    #[command(flatten)]
    fit: FitArgs,
    #[command(flatten)]
    uncertainty: UncertaintyArgs,
    /// How to print the ranking
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Intervals and the null test.
#[derive(Debug, Args)]
#[command(next_help_heading = "Uncertainty")]
struct UncertaintyArgs {
    /// 90 % intervals of shares and ranks from this many bootstrap resamples; 0 for none
    #[arg(long, value_name = "N", default_value_t = USUAL_DRAWS, value_parser = parse_draws)]
    bootstrap: u64,
    /// Permutation test and p-values from this many circular shifts; 0 for none [default: 200, none above 100 users]
    #[arg(long, value_name = "N", value_parser = parse_draws)]
    null: Option<u64>,
    /// How many users the top is, for the probability of being among them
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    top: u64,
    /// Seed of resamples and circular shifts
    #[arg(long, default_value_t = 21)]
    seed: u64,
}

fn parse_draws(text: &str) -> Result<u64, String> {
    let draws = text.parse().ok().filter(|draws| *draws == 0 || (20..=100_000).contains(draws));
    draws.ok_or_else(|| "wanted 0, or 20 to 100000".to_owned())
}

impl DiscoverArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let discover = self.discover()?;
        let mut store = Store::folder(&self.out).with_artifacts(&RUN_ARTIFACTS).with_force(self.force);
        let found = run(&discover, &mut store, terminal)?;
        match self.format {
            Format::Json => terminal.json(&found.ranking),
            Format::Csv => terminal.result(&ranking_csv(&found.ranking)?),
            Format::Table => terminal.text(&(summary(&found) + "\n" + &self.next(&found))),
        }
    }

    fn discover(&self) -> Result<Discover, CliError> {
        let mut discover = Discover::new(self.posts.input());
        discover.options = self.posts.options()?;
        discover.graph = self.graph.clone().map(GraphInput::File);
        discover.fit = self.fit.params();
        discover.common = self.fit.common_input();
        discover.text_model = self.posts.scorer.text_model()?;
        discover.rejects.clone_from(&self.posts.rejects);
        discover.uncertainty = UncertaintyOptions {
            bootstrap: self.uncertainty.bootstrap,
            null: self.uncertainty.null,
            top: usize::try_from(self.uncertainty.top).unwrap_or(usize::MAX),
            seed: self.uncertainty.seed,
        };
        discover.pseudonyms = self.pseudonymise.as_deref().map(Pseudonyms::read).transpose()?;
        self.fit.check(self.graph.is_some())?;
        let files = [&self.posts.users, &self.graph, &self.pseudonymise, &self.fit.common];
        check(self.posts.posts.iter().chain(files.into_iter().flatten()), &self.posts.rejects)?;
        Ok(discover)
    }

    fn next(&self, found: &Discovery) -> String {
        let out = self.out.display();
        let first = found.ranking.agents.first().map_or("NAME", |agent| agent.agent.as_str());
        let files = [BELIEFS_FILE, LOG_BELIEFS_FILE, MODEL_FILE].into_iter().chain(RANKING_FILES);
        let files: Vec<&str> = files.chain(RUN_ARTIFACTS.iter().map(|artifact| artifact.file)).collect();
        format!(
            "Files in {out}: {}, {RUN_FILE}.\nNext: headwater explain {out}/{MODEL_FILE} --agent '{first}' --what-if remove\nThe page: {out}/{REPORT_FILE}\n",
            files.join(", "),
        )
    }
}

/// Runs the pipeline, and tells on the terminal what happens.
pub(crate) fn run(discover: &Discover, store: &mut Store, terminal: &Terminal) -> Result<Discovery, CliError> {
    let bad = Mutex::new(BadRows::new(None, terminal));
    let observer = |event: Event| tell(&event, &mut bad.lock().unwrap_or_else(PoisonError::into_inner), terminal);
    let run = |progress: &Progress| discover.run_observed(store, progress, &observer);
    Ok(terminal.watched(Some(QUICKER), run)?)
}

fn tell(event: &Event, bad: &mut BadRows<'_>, terminal: &Terminal) {
    if !matches!(event, Event::BadRows(_)) {
        bad.summary();
    }
    match event {
        Event::Reused(stage) => {
            terminal.remark(&format!("{}: done before, on the same files with the same options", stage.as_str()));
        }
        // Only a list in a file could fail, and there is none here.
        Event::BadRows(rows) => drop(bad.see(rows)),
        Event::Ingested(quality) => terminal.remark(wrapped(&told(quality)).trim_end()),
        Event::NullTestOff { accounts } => terminal.remark(&format!(
            "{accounts} users: no permutation test, which would take long above {NULL_TEST_ACCOUNTS}; --null {USUAL_DRAWS} asks for it"
        )),
        Event::Warning(Warning::Ingest(warning)) => terminal.warn(&warning_text(warning)),
        Event::Warning(warning) => terminal.warn(&warning.to_string()),
        _ => {}
    }
}

/// For people: the verdict, the table, and what to know beside it.
fn summary(found: &Discovery) -> String {
    let selection = found.run.choice.as_ref();
    text(&found.ranking) + &selection.map_or(String::new(), |selection| format!("Weights: {selection}.\n"))
}
