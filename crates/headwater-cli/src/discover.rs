//! `headwater discover`: from posts to a ranking with its verdict, with all intermediate results in one folder.

use crate::beliefs::{BadRowLog, PostArgs, quality_text, recognised_text};
use crate::error::CliError;
use crate::fit_args::FitArgs;
use crate::hints::warning_text;
use crate::interrupt;
use crate::numbers_args::parse_draws;
use crate::output::check;
use crate::rank::text;
use crate::terminal::{Format, Terminal, command_line, shell_quoted, wrapped};
use clap::Args;
use headwater::evaluate::Outcome;
use headwater::progress::Progress;
use headwater_discover::{
    BELIEFS_FILE, Discover, Discovery, GraphInput, GroupsInput, LOG_BELIEFS_FILE, MODEL_FILE, NULL_TEST_ACCOUNTS,
    Pseudonyms, RANKING_FILES, RUN_FILE, RunEvent, Store, USUAL_DRAWS, UncertaintyOptions, Warning,
};
use headwater_files::ranking_csv;
use headwater_posts::PostOptions;
use headwater_report::{REPORT_FILE, RUN_ARTIFACTS};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// How to shorten a run.
const QUICKER: &str = "longer bins, fewer users, or --sketch with a graph take less time";

/// Heading of what the run reads beside posts, and where it writes.
const RUN: &str = "Graph and output";

/// Rank influencers from posts
#[derive(Debug, Args)]
#[command(
    after_help = "Writes beliefs.parquet, log-beliefs.parquet, model.json, ranking.json, ranking.csv, edges.csv, report.html, network.gexf\nand run.json. After an interruption the same command resumes the run.\n\nExample: headwater discover posts.csv --graph follows.csv --topic 'biden OR \"white house\"' --out found\n         headwater discover 'dump/*.jsonl.gz' --preset x-v2 --pseudonymise key --out found"
)]
pub(crate) struct DiscoverArgs {
    #[command(flatten)]
    posts: PostArgs,
    /// Follow graph: CSV source,target (the target follows the source). Weights are restricted to these edges
    #[arg(help_heading = RUN, display_order = 0, long, value_name = "EDGES")]
    graph: Option<PathBuf>,
    /// Groups of users for the graph test: CSV agent,group [default: communities of the graph]
    #[arg(help_heading = RUN, display_order = 0, long, value_name = "FILE", requires = "graph")]
    groups: Option<PathBuf>,
    /// Output folder
    #[arg(help_heading = RUN, display_order = 0, long, value_name = "DIR")]
    out: PathBuf,
    /// Replace results of other inputs (posts, graph, lists of users or groups) and files of other origin in the output folder
    #[arg(help_heading = RUN, long)]
    force: bool,
    /// Replace user names by keyed hashes in all output; the file contains the key
    #[arg(help_heading = RUN, long, value_name = "KEYFILE")]
    pseudonymise: Option<PathBuf>,
    #[command(flatten)]
    fit: FitArgs,
    #[command(flatten)]
    uncertainty: UncertaintyArgs,
    /// Output format of the ranking
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Intervals and the null test.
#[derive(Debug, Args)]
#[command(next_help_heading = "Uncertainty")]
struct UncertaintyArgs {
    /// Number of bootstrap resamples for 90 % intervals where the posterior is not sampled; 0 for none
    #[arg(long, value_name = "N", default_value_t = USUAL_DRAWS, value_parser = parse_draws)]
    bootstrap: u64,
    /// Number of circular shifts for p-values of users and edges, and for the verdict where no graph is tested; 0 for none [default: 200; 0 above 100 users]
    #[arg(long, value_name = "N", value_parser = parse_draws)]
    null: Option<u64>,
    /// Print only the first K users; also k of top_k_probability [default: 20 in a table, otherwise all; k = 3]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    top: Option<u64>,
    /// Seed of draws, resamples and circular shifts
    #[arg(long, default_value_t = 21)]
    seed: u64,
}

impl UncertaintyArgs {
    /// How many users to print, where that was asked for.
    fn top(&self) -> Option<usize> {
        self.top.map(|top| usize::try_from(top).unwrap_or(usize::MAX))
    }
}

impl DiscoverArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let mut discover = self.discover()?;
        discover.csv_text = terminal.csv_text();
        let mut store = Store::folder(&self.out).with_artifacts(&RUN_ARTIFACTS).with_force(self.force);
        interrupt::resumable();
        terminal.limit_sampling(self.fit.minutes, false);
        let mut found = run(&discover, &mut store, terminal)?;
        // The files of the folder have all of them.
        if let Some(top) = self.uncertainty.top() {
            found.ranking.agents.truncate(top);
        }
        match self.format {
            Format::Json => terminal.json(&found.ranking),
            Format::Csv => terminal.result(&ranking_csv(&found.ranking, terminal.csv_text())?),
            Format::Table => {
                let shown = self.uncertainty.top().unwrap_or(0);
                terminal.text(&(summary(&found, shown) + "\n" + &self.next(&found)))
            }
        }
    }

    fn discover(&self) -> Result<Discover, CliError> {
        let mut discover = Discover::new(self.posts.input());
        discover.options = self.posts.options()?;
        discover.graph = self.graph.clone().map(GraphInput::File);
        discover.fit = self.fit.params(self.uncertainty.seed);
        discover.minutes = self.fit.minutes;
        discover.common = self.fit.common_input();
        discover.groups = self.groups.clone().map(GroupsInput::File);
        discover.text_model = self.posts.scorer.text_model()?;
        discover.rejects.clone_from(&self.posts.reading.rejects);
        discover.uncertainty = UncertaintyOptions {
            bootstrap: self.uncertainty.bootstrap,
            null: self.uncertainty.null,
            top: self.uncertainty.top().unwrap_or(UncertaintyOptions::default().top),
            seed: self.uncertainty.seed,
        };
        discover.pseudonyms = self.pseudonymise.as_deref().map(Pseudonyms::read).transpose()?;
        self.fit.check(self.graph.is_some())?;
        let files = [&self.posts.users, &self.graph, &self.groups, &self.pseudonymise, &self.fit.common];
        check(self.posts.posts.iter().chain(files.into_iter().flatten()), &self.posts.reading.rejects)?;
        Ok(discover)
    }

    fn next(&self, found: &Discovery) -> String {
        let out = self.out.display();
        let model = shell_quoted(&self.out.join(MODEL_FILE).display().to_string());
        let first = shell_quoted(found.ranking.agents.first().map_or("NAME", |agent| agent.agent.as_str()));
        let files = [BELIEFS_FILE, LOG_BELIEFS_FILE, MODEL_FILE].into_iter().chain(RANKING_FILES);
        let files: Vec<&str> = files.chain(RUN_ARTIFACTS.iter().map(|artifact| artifact.file)).collect();
        let next = match found.verdict.outcome {
            Outcome::Supported => {
                let explain = format!("headwater explain {model} --agent {first} --what-if remove");
                format!("\n{}", command_line(&explain))
            }
            Outcome::NotTested if found.verdict.shifts_impossible.is_some() => {
                " more time steps: a longer period, or shorter bins (--bin 6h)\n".to_owned()
            }
            Outcome::NotTested => {
                let graph = if self.graph.is_none() {
                    "; with --graph EDGES a test is run that common news alone does not pass"
                } else {
                    ""
                };
                format!(" the same command with --null {USUAL_DRAWS} tests whether this ranking is due to chance{graph}\n")
            }
            Outcome::NoEvidence => {
                " a longer period, a topic with more posts per account, longer bins or fewer and more active accounts; the page says more\n".to_owned()
            }
        };
        format!("Files in {out}: {}, {RUN_FILE}.\nNext:{next}Report page: {out}/{REPORT_FILE}\n", files.join(", "),)
    }
}

/// Runs the pipeline, and reports its events on the terminal.
pub(crate) fn run(discover: &Discover, store: &mut Store, terminal: &Terminal) -> Result<Discovery, CliError> {
    let bad = Mutex::new(BadRowLog::new(None, terminal));
    let observer = |event: RunEvent| {
        tell(&event, &discover.options, &mut bad.lock().unwrap_or_else(PoisonError::into_inner), terminal);
    };
    let run = |progress: &Progress| discover.run_observed(store, progress, &observer);
    Ok(terminal.watched((!discover.fit.sketch).then_some(QUICKER), run)?)
}

fn tell(event: &RunEvent, options: &PostOptions, bad: &mut BadRowLog<'_>, terminal: &Terminal) {
    if !matches!(event, RunEvent::BadRows(_)) {
        bad.summary();
    }
    match event {
        RunEvent::Reused(stage) => {
            terminal.remark(&format!("{}: reused from an earlier run with the same inputs and options", stage.as_str()));
        }
        // Only writing to a file can fail, and there is none here.
        RunEvent::BadRows(rows) => drop(bad.see(rows)),
        RunEvent::Recognised(preset) => terminal.remark(&recognised_text(*preset)),
        RunEvent::Ingested(quality) => terminal.remark(wrapped(&quality_text(quality, options)).trim_end()),
        RunEvent::NullTestOff { accounts, decided: true } => terminal.remark(&format!(
            "{accounts} users: no p-values of single users and edges, because circular shifts take long above {NULL_TEST_ACCOUNTS} users; the verdict, decided by the graph test, does not need them; --null {USUAL_DRAWS} runs them"
        )),
        RunEvent::NullTestOff { accounts, decided: false } => terminal.remark(&format!(
            "{accounts} users: the permutation test is off by default above {NULL_TEST_ACCOUNTS} users because it takes long; --null {USUAL_DRAWS} runs it"
        )),
        RunEvent::Warning(Warning::Ingest(warning)) => terminal.warn(&warning_text(warning)),
        RunEvent::Warning(warning) => terminal.warn(&warning.to_string()),
        _ => {}
    }
}

/// The verdict, the table and notes as text.
fn summary(found: &Discovery, shown: usize) -> String {
    let selection = found.run.choice.as_ref();
    text(&found.ranking, &found.model, shown)
        + &selection.map_or(String::new(), |selection| format!("Weights: {selection}.\n"))
}
