//! The command line of Headwater: one file per command, glue only.
//!
//! In: arguments. Out: an exit code (0 done, 1 the data cannot be used, 2 wrong usage, 130 interrupted). Results go to
//! standard output, everything else to standard error.

mod beliefs;
mod compare;
mod demo;
mod discover;
mod error;
mod explain;
mod export;
mod fit_args;
mod hints;
mod interrupt;
mod learn;
mod network;
mod numbers_args;
mod output;
mod rank;
mod report;
mod reproduce;
mod score;
mod scorer;
mod simulate;
mod terminal;
mod test_graph;

use clap::{CommandFactory, Parser, Subcommand};
pub use error::CliError;
use headwater_files::CsvText;
use std::ffi::OsString;
use std::sync::LazyLock;
use terminal::Terminal;

/// Finds influencers from public beliefs: who listens to whom, how well informed each account is, and who drives the
/// opinion of the group.
#[derive(Debug, Parser)]
#[command(
    name = "headwater",
    version = VERSION.as_str(),
    after_help = "Start with: headwater demo",
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Number of threads; results do not depend on it [default: one per core]
    #[arg(long, global = true, display_order = 900, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=headwater::progress::MOST_THREADS as i64))]
    threads: Option<u16>,
    /// Print results and warnings only
    #[arg(long, short, global = true, display_order = 901)]
    quiet: bool,
    /// Write names that begin like a formula (= + - @) into CSV as they are; a spreadsheet may run them
    #[arg(long, global = true, display_order = 902)]
    raw_csv: bool,
}

/// The program and the model format, as `--version` prints them.
static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} ({})", env!("CARGO_PKG_VERSION"), headwater_files::MODEL_FORMAT));

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Discover(Box<discover::DiscoverArgs>),
    Simulate(simulate::SimulateArgs),
    Beliefs(Box<beliefs::BeliefsArgs>),
    Network(network::NetworkArgs),
    Learn(Box<learn::LearnArgs>),
    Rank(rank::RankArgs),
    Explain(explain::ExplainArgs),
    Compare(compare::CompareArgs),
    TestGraph(test_graph::TestGraphArgs),
    Report(Box<report::ReportArgs>),
    Export(export::ExportArgs),
    Reproduce(reproduce::ReproduceArgs),
    Score(score::ScoreArgs),
    /// Prints a completion script for a shell
    #[command(
        after_help = "Example: headwater completions bash > ~/.local/share/bash-completion/completions/headwater"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs one command and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are errors to clap, but go to standard output and succeed. A closed pipe is no news.
            let _ = error.print();
            return error.exit_code();
        }
    };
    interrupt::install();
    let text = if arguments.raw_csv { CsvText::Raw } else { CsvText::Neutralised };
    let terminal = Terminal::new(arguments.quiet).with_csv_text(text);
    match execute(arguments, &terminal) {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

fn execute(arguments: Arguments, terminal: &Terminal) -> Result<(), CliError> {
    with_threads(arguments.threads, || match arguments.command {
        Command::Demo(command) => command.run(terminal),
        Command::Discover(command) => command.run(terminal),
        Command::Simulate(command) => command.run(terminal),
        Command::Beliefs(command) => command.run(terminal),
        Command::Network(command) => command.run(terminal),
        Command::Learn(command) => command.run(terminal),
        Command::Rank(command) => command.run(terminal),
        Command::Explain(command) => command.run(terminal),
        Command::Compare(command) => command.run(terminal),
        Command::TestGraph(command) => command.run(terminal),
        Command::Report(command) => command.run(terminal),
        Command::Export(command) => command.run(terminal),
        Command::Reproduce(command) => command.run(terminal),
        Command::Score(command) => command.run(terminal),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "headwater", &mut script);
            terminal.result(&String::from_utf8_lossy(&script))
        }
    })
}

fn with_threads(threads: Option<u16>, command: impl FnOnce() -> Result<(), CliError> + Send) -> Result<(), CliError> {
    let Some(threads) = threads else { return command() };
    match rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build() {
        Ok(pool) => pool.install(command),
        Err(error) => Err(CliError::data(format!("cannot start {threads} threads: {error}"))),
    }
}
