//! `headwater test-graph`: does opinion travel along this graph?

use crate::error::CliError;
use crate::fit_args::{groups_among, read_graph};
use crate::numbers_args::NumbersArgs;
use crate::terminal::{Format, Terminal, count, csv, percent, shown, table};
use clap::Args;
use headwater::evaluate::graph_test::{GraphNull, GraphTest, GraphTestParams, PowerWorlds, graph_test};
use std::path::PathBuf;

/// Tests whether opinion travels along a graph more than along graphs like it
#[derive(Debug, Args)]
#[command(
    after_help = "Compared with: graphs in which every account keeps its numbers of speakers, listeners and mutual\nedges, and groups the edges between them; in named episodes of fewer than ten steps the same graph\nwith the accounts exchanged; where a graph allows neither, such as a star, scores of speakers exchanged\nwithin episodes. Groups: the accounts of --groups, otherwise communities of\nthe graph. Common news and homophily do not pass, except where accounts that are alike read the same\nnews sooner the more followers they have.\n\nExample: headwater test-graph beliefs.csv --graph follows.csv --groups parties.csv --format json"
)]
pub(crate) struct TestGraphArgs {
    /// Beliefs (.csv, .parquet or .npy; - reads CSV from standard input). Several files are episodes, one each
    #[arg(required = true)]
    beliefs: Vec<PathBuf>,
    /// Who follows whom: CSV source,target (the target follows the source)
    #[arg(long, value_name = "EDGES")]
    graph: PathBuf,
    #[command(flatten)]
    numbers: NumbersArgs,
    /// Number of rewired or relabelled graphs
    #[arg(long, value_name = "N", default_value_t = 999, value_parser = clap::value_parser!(u32).range(19..=1_000_000))]
    draws: u32,
    /// Groups of accounts: CSV agent,group [default: communities of the graph]
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// Simulated worlds per weight for the power of the test; 0 for none [default: 20 where p is above 0.05 and that takes under a minute]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    power: Option<u32>,
    /// Seed of rewired graphs, communities and simulated worlds
    #[arg(long, default_value_t = 21)]
    seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

impl TestGraphArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let panel = self.numbers.read(&self.beliefs)?.panel;
        let roster = panel.roster();
        let graph = read_graph(&self.graph, roster, terminal)?;
        let groups = self.groups.as_deref().map(|path| groups_among(path, roster, terminal)).transpose()?;
        let power = self.power.map_or(PowerWorlds::WhereCheap, |worlds| PowerWorlds::Worlds(worlds as usize));
        let params = GraphTestParams {
            draws: self.draws as usize,
            groups,
            power,
            seed: self.seed,
            ..GraphTestParams::default()
        };
        let found = terminal
            .watched(Some("fewer --draws, or --power 0, take less time"), |_| graph_test(&[&panel], &graph, &params))
            .map_err(CliError::about(&self.beliefs[0]))?;
        match self.format {
            Format::Json => terminal.json(&found),
            Format::Csv => terminal.result(&csv(&CSV, vec![csv_row(&found)], terminal.csv_text())),
            Format::Table => {
                let ahead = found.speaker.map(|speaker| roster.agents()[speaker].as_str());
                terminal.text(&text(&found, ahead))
            }
        }
    }
}

const CSV: [&str; 8] = ["p_value", "effect", "low", "high", "null", "draws", "steps", "episodes"];

fn null_name(found: &GraphTest) -> &'static str {
    match found.null {
        GraphNull::ExchangedSpeakers => "exchanged-speakers",
        GraphNull::RelabelledGraphs => "relabelled-graphs",
        _ => "rewired-graphs",
    }
}

fn csv_row(found: &GraphTest) -> Vec<String> {
    let numbers = [found.p_value, found.effect, found.low, found.high].map(|number| number.to_string());
    let counts = [found.draws, found.steps, found.episodes].map(|number| number.to_string());
    numbers.into_iter().chain([null_name(found).to_owned()]).chain(counts).collect()
}

/// The result as text.
fn text(found: &GraphTest, ahead: Option<&str>) -> String {
    let mut text = format!("{found}\n");
    if let Some(ahead) = ahead {
        text += &format!("Ahead of the others: {}.\n", shown(ahead));
    }
    let left_out = match found.left_out {
        0 => String::new(),
        out => format!(" ({} that speak too rarely or never change left out)", count(out, "account")),
    };
    let groups = match (found.groups_given, found.null) {
        (true, _) => "given",
        (false, GraphNull::RelabelledGraphs) => "of all accounts",
        _ => "found in the graph",
    };
    let within = if found.episodes > 1 { format!(" in {}", count(found.episodes, "episode")) } else { String::new() };
    text += &format!(
        "\n{}{left_out}, {}, {}{within}, {} silent; {} {groups}.\n\n",
        count(found.accounts, "account"),
        count(found.edges, "edge"),
        count(found.steps, "step"),
        percent(found.silent_share),
        count(found.groups, "group"),
    );
    let p = |p: Option<f64>| p.map_or("–".to_owned(), |p| format!("{p:.3}"));
    let row = |name: &str, meaning: &str, p: String| vec![name.to_owned(), meaning.to_owned(), p];
    let mut rows =
        vec![row("the test", "decides: along this graph, beyond groups and common news", p(Some(found.p_value)))];
    if found.null == GraphNull::RewiredGraphs {
        let beside = [
            ("connections", "more than along random ones; like accounts alone can do it", found.unguarded_p),
            ("timing", "more than when shifted in time; common news alone can do it", found.shift_p),
            ("direction", "more than the reverse; hubs that read first can do it", found.direction_p),
        ];
        rows.extend(beside.map(|(name, meaning, value)| row(name, meaning, p(value))));
    }
    text += &table(&["", "meaning", "p"], 2, rows);
    let excess = match found.null {
        GraphNull::ExchangedSpeakers => "Excess of the largest score over the null",
        _ => "Excess correlation",
    };
    text += &format!(
        "\n{excess} {:.4} (90 % interval {:.4} to {:.4}), {:.1} standard deviations of the null; not comparable between data sets.\n",
        found.effect, found.low, found.high, found.z
    );
    // Power says nothing about what was found.
    if let Some(power) = found.power.as_ref().filter(|_| !found.passed()) {
        text += &format!("{power}\n");
    }
    found.limits.iter().for_each(|limit| text += &format!("note: {limit}\n"));
    text
}
