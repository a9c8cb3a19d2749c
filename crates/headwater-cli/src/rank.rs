//! `headwater rank`: the ranking of a model's agents by influence.

use crate::error::CliError;
use crate::fit_args::{groups_among, of_model, read_graph};
use crate::numbers_args::{NumbersArgs, parse_draws};
use crate::terminal::{Format, Terminal, name_cell, number, percent, percent_range, shown, table};
use clap::Args;
use headwater::ranking::{RankedAgent, Uncertainty};
use headwater::{Model, Ranking};
use headwater_files::{ranking_csv, read_model};
use std::path::PathBuf;

/// k of `top_k_probability` by default.
const TOP: usize = 3;

/// Ranks the agents of a model by influence = centrality × informativeness
#[derive(Debug, Args)]
#[command(
    after_help = "share: share of all influence, negative where influence is. centrality: weight that the network\ngives the agent, directly and through others. inform.: strength of the agent's own evidence, summed\nover the hypotheses. origin: share of the network's mean opinion that originates with the agent.\n\nExample: headwater rank model.json --top 10 --format csv > ranking.csv"
)]
pub(crate) struct RankArgs {
    /// The model (.json or .npz)
    model: PathBuf,
    /// Beliefs that the model was learned from: adds numbers of posts and silence. Repeated: files of episodes
    #[arg(long, value_name = "BELIEFS")]
    beliefs: Vec<PathBuf>,
    #[command(flatten)]
    numbers: NumbersArgs,
    /// Number of bootstrap resamples for 90 % intervals of shares and ranks, such as 200; 0 for none
    #[arg(long, value_name = "N", requires = "beliefs", value_parser = parse_draws)]
    bootstrap: Option<u64>,
    /// Number of circular shifts for the permutation test and p-values of agents and edges, such as 200; 0 for none
    #[arg(long, value_name = "N", requires = "beliefs", value_parser = parse_draws)]
    null: Option<u64>,
    /// Seed of resamples, circular shifts and the graph test
    #[arg(long, default_value_t = 21)]
    seed: u64,
    /// Follow graph: adds followers (in-degree) and PageRank, and with --beliefs the graph test, which decides the verdict
    #[arg(long, value_name = "EDGES")]
    graph: Option<PathBuf>,
    /// Groups of agents for the graph test: CSV agent,group [default: communities of the graph]
    #[arg(long, value_name = "FILE", requires = "graph", requires = "beliefs")]
    groups: Option<PathBuf>,
    /// Show only the first K agents; also k of top_k_probability [default: 20 in a table, otherwise all; k = 3]
    #[arg(long, value_name = "K")]
    top: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Rows of a table, unless more are asked for.
const SHOWN: usize = 20;

/// An optional column: its heading and its cell of a row.
type OptionalColumn = (&'static str, fn(&RankedAgent) -> Option<String>);

/// What short headings stand for.
pub(crate) const HEADINGS: [(&str, &str); 6] = [
    ("inform.", "informativeness, the strength of the agent's own evidence"),
    ("origin", "share of the mean opinion that starts with the agent"),
    ("p", "permutation test of the weight that others give the agent"),
    ("error", "probability that the agent believes in another hypothesis"),
    ("silent", "share of the steps without a post"),
    ("follow.", "followers in the graph"),
];

/// The meanings of those headings that a table has, as a line below it.
pub(crate) fn legend(header: &[&str]) -> String {
    let used = HEADINGS.iter().filter(|(name, _)| header.contains(name));
    let used: Vec<String> = used.map(|(name, meaning)| format!("{name}: {meaning}")).collect();
    format!("{}.\n", used.join("; "))
}

impl RankArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let model = read_model(&self.model)?;
        let mut ranking = Ranking::new(&model)?;
        ranking.add_posterior(&model, self.top.unwrap_or(TOP))?;
        let mut beliefs = None;
        if let Some(path) = self.beliefs.first() {
            let panel = beliefs.insert(of_model(self.numbers.read(&self.beliefs)?.panel, &model, terminal)?);
            ranking.add_activity(panel).map_err(CliError::about(path))?;
            let uncertainty = Uncertainty {
                bootstrap: self.bootstrap.filter(|draws| *draws > 0),
                null: self.null.filter(|draws| *draws > 0),
                top: self.top.unwrap_or(TOP),
                seed: self.seed,
            };
            let test = |_: &_| ranking.add_uncertainty(&uncertainty, &model, panel);
            terminal.watched(None, test).map_err(CliError::about(path))?;
            ranking.too_few_steps().iter().for_each(|warning| terminal.warn(warning));
        }
        if let Some(path) = &self.graph {
            let graph = read_graph(path, &model.roster, terminal)?;
            ranking.add_graph(&graph, &model.roster)?;
            let groups = self.groups.as_deref().map(|path| groups_among(path, &model.roster, terminal)).transpose()?;
            if let Some((panel, file)) = beliefs.as_ref().zip(self.beliefs.first()) {
                let test = |_: &_| ranking.add_graph_test(panel, &graph, groups, &model.roster, self.seed);
                terminal.watched(None, test).map_err(CliError::about(file))?;
            }
        }
        if let Some((panel, file)) = beliefs.as_ref().zip(self.beliefs.first()) {
            terminal.watched(None, |_| ranking.add_power(panel, &model, self.seed)).map_err(CliError::about(file))?;
        }
        if let Some(top) = self.top {
            ranking.agents.truncate(top);
        }
        match self.format {
            Format::Json => terminal.json(&ranking),
            Format::Csv => terminal.result(&ranking_csv(&ranking, terminal.csv_text())?),
            Format::Table => terminal.text(&text(&ranking, &model, self.top.unwrap_or(0))),
        }
    }
}

/// The verdict, the table and notes as text.
pub(crate) fn text(ranking: &Ranking, model: &Model, top: usize) -> String {
    let mut text = format!("{}\n\n", ranking.verdict);
    let companions = ranking.verdict.companions();
    if !companions.is_empty() {
        text.push_str(&(companions.join("\n") + "\n\n"));
    }
    if let Some(power) = &ranking.power {
        text.push_str(&format!("{power}\n\n"));
    }
    match ranking.verdict.caution() {
        Some(caution) => text.push_str(caution),
        None => text.push_str(&format!(
            "The network settles on {:?}; {} of the agents agree.",
            ranking.truth,
            percent(ranking.agreement)
        )),
    }
    text.push_str(&format!(" Reference: {:?}.\n\n", ranking.reference));
    text.push_str(&rows(ranking, top));
    if let Some(kind) = ranking.intervals {
        text.push_str(&format!("{}\n", kind.coverage(model)));
    }
    text.push_str(&format!("\nNetwork divergence from {:?}: ", ranking.truth));
    let parts = ranking.divergence.iter().map(|(name, value)| format!("{} {}", shown(name), number(*value)));
    text.push_str(&parts.collect::<Vec<_>>().join(", "));
    text.push('\n');
    let notes = ranking.notes.iter().cloned().chain(ranking.contrarian_notes());
    notes.for_each(|note| text.push_str(&format!("note: {note}\n")));
    text
}

fn rows(ranking: &Ranking, top: usize) -> String {
    let extra: [OptionalColumn; 7] = [
        ("90% share", |row| row.signed_interval().map(|(low, high)| percent_range(low, high))),
        ("p", |row| row.p_value.map(|p| format!("{p:.3}"))),
        ("error", |row| row.error_probability.map(percent)),
        ("posts", |row| row.posts.map(|posts| posts.to_string())),
        ("silent", |row| row.silent_share.map(percent)),
        ("follow.", |row| row.in_degree.map(|degree| degree.to_string())),
        ("pagerank", |row| row.pagerank.map(number)),
    ];
    let mut shown: Vec<&OptionalColumn> =
        extra.iter().filter(|(_, show)| ranking.agents.iter().any(|row| show(row).is_some())).collect();
    // Eighty characters hold three optional columns; the others are in JSON and CSV.
    for name in ["error", "posts", "silent", "pagerank"] {
        if shown.len() > 3 {
            shown.retain(|(other, _)| *other != name);
        }
    }
    let mut header = vec!["", "agent", "share", "centrality", "inform.", "origin"];
    header.extend(shown.iter().map(|(name, _)| *name));
    let rows = ranking.agents.iter().map(|row| {
        let mark = if row.informativeness < 0.0 { "*" } else { "" };
        let mut cells = vec![
            row.rank.to_string(),
            name_cell(&row.agent),
            row.signed_share().map_or("–".into(), percent),
            number(row.centrality),
            format!("{}{mark}", number(row.informativeness)),
            percent(row.origin),
        ];
        cells.extend(shown.iter().map(|(_, show)| show(row).unwrap_or_default()));
        cells
    });
    let mut text = table(&header, 2, rows.take(SHOWN.max(top)).collect());
    if let Some(more @ 1..) = ranking.agents.len().checked_sub(SHOWN.max(top)) {
        text.push_str(&format!("… and {more} more; the formats csv and json have all of them\n"));
    }
    text + &legend(&header)
}
