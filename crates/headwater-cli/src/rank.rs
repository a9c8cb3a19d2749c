//! `headwater rank`: who drives what the group believes.

use crate::failure::Failure;
use crate::screen::{Format, Screen, csv, number, percent, short, table};
use clap::Args;
use headwater::confidence::{Bootstrap, Learning, Rotation};
use headwater::model::Method;
use headwater::{Model, Panel};
use headwater_files::{read_beliefs, read_edges, read_model};
use headwater_report::Ranking;
use headwater_report::ranking::Row;
use rayon::prelude::*;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How many agents the top is, unless --top says so.
const TOP: usize = 3;

/// Draws that take longer than this are announced.
const LONG: Duration = Duration::from_secs(10);

/// Ranks the agents of a model by influence = centrality × informativeness
#[derive(Debug, Args)]
#[command(
    after_help = "share: the agent's part of all influence. centrality: how much the network listens to it. inform.: how much it\nknows, summed over the hypotheses. origin: the part of the network's mean opinion that starts with it.\n\nExample: headwater rank model.json --top 10 --format csv > ranking.csv"
)]
pub(crate) struct Rank {
    /// The model (.json or .npz)
    model: PathBuf,
    /// The beliefs it was learned from: adds posts per step and silence
    #[arg(long, value_name = "BELIEFS")]
    beliefs: Option<PathBuf>,
    /// The beliefs are log-ratios
    #[arg(long, requires = "beliefs")]
    log_ratios: bool,
    /// Adds 90 % intervals of shares and ranks, from this many resamples of the beliefs (200 is usual)
    #[arg(long, value_name = "N", requires = "beliefs", value_parser = clap::value_parser!(u64).range(20..=100_000))]
    bootstrap: Option<u64>,
    /// Adds p-values of agents and edges, from this many rotations in which nobody listens (200 is usual)
    #[arg(long, value_name = "N", requires = "beliefs", value_parser = clap::value_parser!(u64).range(20..=100_000))]
    null: Option<u64>,
    /// Seed of resamples and rotations
    #[arg(long, default_value_t = 21)]
    seed: u64,
    /// Who follows whom: adds followers (in-degree) and PageRank
    #[arg(long, value_name = "EDGES")]
    graph: Option<PathBuf>,
    /// Only the first K
    #[arg(long, value_name = "K")]
    top: Option<usize>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// How sure to be: resamples for intervals, rotations for p-values.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    pub(crate) bootstrap: Option<u64>,
    pub(crate) null: Option<u64>,
    /// How many agents the top is.
    pub(crate) top: usize,
    pub(crate) seed: u64,
}

/// An optional column: its heading and what it shows of a row.
type Extra = (&'static str, fn(&Row) -> Option<String>);

impl Rank {
    pub(crate) fn run(self, screen: &mut Screen) -> Result<(), Failure> {
        let model = read_model(&self.model)?;
        let mut ranking = Ranking::new(&model)?;
        if let Some(path) = &self.beliefs {
            let panel = read_beliefs(path, self.log_ratios)?.panel;
            ranking.add_activity(&panel).map_err(Failure::about(path))?;
            let trust =
                Trust { bootstrap: self.bootstrap, null: self.null, top: self.top.unwrap_or(TOP), seed: self.seed };
            add_trust(&mut ranking, &trust, &model, &panel, screen).map_err(Failure::about(path))?;
        }
        if let Some(path) = &self.graph {
            ranking.add_graph(&read_edges(path)?.graph(&model.roster)?, &model.roster)?;
        }
        if let Some(top) = self.top {
            ranking.agents.truncate(top);
        }
        match self.format {
            Format::Json => screen.json(&ranking),
            Format::Csv => screen.result(&sheet(&ranking)),
            Format::Table => screen.text(&text(&ranking)),
        }
    }
}

/// Runs numbered draws on all threads, with a progress bar.
fn many<T: Send>(
    what: &'static str,
    count: u64,
    screen: &Screen,
    draw: impl Fn(u64) -> Result<T, headwater::Error> + Sync,
) -> Result<Vec<T>, headwater::Error> {
    let mut progress = screen.progress(what, count);
    let begun = Instant::now();
    let numbers: Vec<u64> = (0..count).collect();
    let mut all = Vec::with_capacity(numbers.len());
    let threads = rayon::current_num_threads();
    let (first, rest) = numbers.split_at(threads.min(numbers.len()));
    for few in [first].into_iter().chain(rest.chunks(4 * threads)) {
        all.extend(few.par_iter().map(|&number| draw(number)).collect::<Result<Vec<T>, _>>()?);
        progress.at(all.len() as u64);
        // A bar says it on a terminal only.
        let left = begun.elapsed().mul_f64(rest.len() as f64 / first.len().max(1) as f64);
        if all.len() == first.len() && left > LONG {
            let minutes = left.as_secs_f64() / 60.0;
            screen.remark(&format!("{what} {count} times: about {minutes:.1} minutes, by how long the first took"));
        }
    }
    Ok(all)
}

/// Intervals and p-values, where asked for, by fitting again the way the model was learned.
pub(crate) fn add_trust(
    ranking: &mut Ranking,
    trust: &Trust,
    model: &Model,
    panel: &Panel,
    screen: &Screen,
) -> Result<(), headwater::Error> {
    if trust.bootstrap.is_none() && trust.null.is_none() {
        return Ok(());
    }
    let learning = Learning::like(model);
    let filled;
    let panel = match &learning {
        Learning::StateSpace(_) => panel,
        Learning::Whitened(_) => {
            filled = panel.clone().carry_forward().0;
            &filled
        }
    };
    if !matches!(model.method, Method::Whitened | Method::StateSpace) {
        ranking.notes.push("intervals and p-values are those of the whitened learner on the same beliefs".into());
    }
    if let Some(count) = trust.bootstrap {
        let bootstrap = Bootstrap::new(panel, model, learning.clone(), trust.seed)?;
        let draws = many("resampling", count, screen, |number| bootstrap.draw(number))?;
        ranking.add_intervals(&bootstrap.intervals(&draws, trust.top)?, &model.roster)?;
    }
    if let Some(count) = trust.null {
        let rotation = Rotation::new(panel, learning, trust.seed);
        let observed = rotation.observed()?;
        let draws = many("rotating", count, screen, |number| rotation.draw(number))?;
        ranking.add_significance(&Rotation::compare(&observed, &draws), model)?;
    }
    Ok(())
}

/// For people: the verdict, the table, and what to know beside it.
pub(crate) fn text(ranking: &Ranking) -> String {
    let mut text = format!("{}\n\n", ranking.verdict.text);
    text.push_str(&format!(
        "The network settles on {:?}; {} of the agents agree. Reference: {:?}.\n\n",
        ranking.truth,
        percent(ranking.agreement),
        ranking.reference
    ));
    text.push_str(&rows(ranking));
    text.push_str(&format!("\nNetwork divergence from {:?}: ", ranking.truth));
    let parts = ranking.divergence.iter().map(|(name, value)| format!("{name} {}", number(*value)));
    text.push_str(&parts.collect::<Vec<_>>().join(", "));
    text.push('\n');
    ranking.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
    text
}

fn rows(ranking: &Ranking) -> String {
    let extra: [Extra; 7] = [
        ("90% share", |row| Some(format!("{}–{}", percent(row.share_low?), percent(row.share_high?)))),
        ("p", |row| row.p_value.map(|p| format!("{p:.3}"))),
        ("errs", |row| row.error_probability.map(percent)),
        ("posts", |row| row.posts.map(number)),
        ("silent", |row| row.silent_share.map(percent)),
        ("follow.", |row| row.in_degree.map(|degree| degree.to_string())),
        ("pagerank", |row| row.pagerank.map(number)),
    ];
    let mut shown: Vec<&Extra> =
        extra.iter().filter(|(_, show)| ranking.agents.iter().any(|row| show(row).is_some())).collect();
    // Eighty columns hold three extra ones; the others are in JSON and CSV.
    for name in ["errs", "posts", "silent", "pagerank"] {
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
            short(&row.agent),
            row.share.map_or("–".into(), percent),
            number(row.centrality),
            format!("{}{mark}", number(row.informativeness)),
            percent(row.origin),
        ];
        cells.extend(shown.iter().map(|(_, show)| show(row).unwrap_or_default()));
        cells
    });
    table(&header, 2, rows.collect())
}

pub(crate) fn sheet(ranking: &Ranking) -> String {
    let keys = [
        "agent",
        "rank",
        "influence",
        "share",
        "share_low",
        "share_high",
        "centrality",
        "informativeness",
        "origin",
        "rank_low",
        "rank_high",
        "top_k_probability",
        "p_value",
        "error_probability",
        "contrarian",
        "contrarian_margin",
        "contrarian_standard_errors",
        "posts",
        "silent_share",
        "in_degree",
        "pagerank",
    ];
    let values: Vec<Map<String, Value>> = ranking
        .agents
        .iter()
        .filter_map(|row| match serde_json::to_value(row) {
            Ok(Value::Object(fields)) => Some(fields),
            _ => None,
        })
        .collect();
    let used: Vec<&str> = keys.into_iter().filter(|key| values.iter().any(|row| row.contains_key(*key))).collect();
    let cell = |value: Option<&Value>| match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let rows = values.iter().map(|row| used.iter().map(|key| cell(row.get(*key))).collect());
    csv(&used, rows.collect())
}
