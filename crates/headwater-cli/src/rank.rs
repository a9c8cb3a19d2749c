//! `headwater rank`: who drives what the group believes.

use crate::failure::Failure;
use crate::screen::{Format, Screen, count, csv, number, percent, short, table};
use clap::Args;
use headwater::confidence::{Bootstrap, Learning, Rotation, Significance, Verdict, discoveries, judge, verdict};
use headwater::graph::Graph;
use headwater::influence::{Contrarian, Influence, error_probabilities};
use headwater::model::Method;
use headwater::{Model, Panel, Roster, influence};
use headwater_files::{read_beliefs, read_edges, read_model};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Up to this many agents the error probabilities are computed along the way.
const ERROR_PROBABILITY_AGENTS: usize = 200;

/// How many agents the top is, unless --top says so.
const TOP: usize = 3;

/// Draws that take longer than this are announced.
const LONG: Duration = Duration::from_secs(10);

/// Share of false alarms tolerated among the edges called significant.
const FALSE_DISCOVERIES: f64 = 0.05;

/// Influences that add up to so many times their net sum nearly cancel.
const CANCELLING: f64 = 3.0;

/// The damping of the usual PageRank.
const DAMPING: f64 = 0.85;

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

/// A ranking as it is printed and written.
#[derive(Debug, Serialize)]
pub(crate) struct Ranking {
    truth: String,
    agreement: f64,
    reference: String,
    verdict: Verdict,
    divergence: Map<String, Value>,
    network: Network,
    agents: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<Vec<EdgeRow>>,
    #[serde(skip)]
    notes: Vec<String>,
}

/// One weight between different agents, with what the null says of it.
#[derive(Debug, Serialize)]
struct EdgeRow {
    source: String,
    target: String,
    weight: f64,
    p_value: f64,
    /// Among the discoveries of Benjamini and Hochberg at 5 %.
    significant: bool,
}

/// How the centrality came about.
#[derive(Debug, Serialize)]
struct Network {
    /// ‖Au − u‖₁ of the Perron vector.
    residual: f64,
    /// Sum of absolute changes that made the weights non-negative and summing to one.
    moved: f64,
    /// Sizes of the strongly connected components.
    components: Vec<usize>,
    /// Where opinions originate.
    sources: Vec<SourceRow>,
}

#[derive(Debug, Serialize)]
struct SourceRow {
    agents: Vec<String>,
    share: f64,
}

#[derive(Debug, Clone, Serialize)]
struct Row {
    agent: String,
    rank: usize,
    influence: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share_low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share_high: Option<f64>,
    centrality: f64,
    informativeness: f64,
    origin: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_low: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_high: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k_probability: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_probability: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contrarian: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contrarian_margin: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contrarian_standard_errors: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    posts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    silent_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_degree: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pagerank: Option<f64>,
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
            ranking.add_trust(&trust, &model, &panel, screen).map_err(Failure::about(path))?;
        }
        if let Some(path) = &self.graph {
            ranking.add_graph(&read_edges(path)?.graph(&model.roster)?, &model.roster)?;
        }
        if let Some(top) = self.top {
            ranking.agents.truncate(top);
        }
        ranking.print(self.format, screen)
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

/// Positive weights between different agents with their p-values, the surest first.
fn edges(model: &Model, found: &Significance) -> Vec<EdgeRow> {
    let agents = model.combination.agents();
    let names = model.roster.agents();
    let heard: Vec<(usize, usize, f64)> =
        model.combination.edges().filter(|&(speaker, listener, weight)| speaker != listener && weight > 0.0).collect();
    let p_values: Vec<f64> =
        heard.iter().map(|&(speaker, listener, _)| found.edges[listener * agents + speaker]).collect();
    let significant = discoveries(&p_values, FALSE_DISCOVERIES);
    let mut rows: Vec<EdgeRow> = (heard.iter().zip(&p_values).zip(significant))
        .map(|((&(speaker, listener, weight), &p_value), significant)| EdgeRow {
            source: names[speaker].clone(),
            target: names[listener].clone(),
            weight,
            p_value,
            significant,
        })
        .collect();
    rows.sort_by(|a, b| a.p_value.total_cmp(&b.p_value).then(b.weight.total_cmp(&a.weight)));
    rows
}

impl Ranking {
    pub(crate) fn new(model: &Model) -> Result<Self, Failure> {
        let found = influence(model)?;
        let errors = match model.innovation {
            Some(_) if model.combination.agents() <= ERROR_PROBABILITY_AGENTS => {
                Some(error_probabilities(model, found.truth)?)
            }
            _ => None,
        };
        let hypotheses = model.roster.hypotheses();
        let contrarian = |agent: usize| found.contrarians.iter().find(|contrarian| contrarian.agent == agent);
        let agents = (found.ranking().into_iter().enumerate())
            .map(|(position, agent)| Row {
                agent: model.roster.agents()[agent].clone(),
                rank: position + 1,
                influence: found.influence[agent],
                share: found.share.as_ref().map(|share| share[agent]),
                share_low: None,
                share_high: None,
                rank_low: None,
                rank_high: None,
                top_k_probability: None,
                p_value: None,
                centrality: found.centrality.values[agent],
                informativeness: found.informativeness[agent],
                origin: found.origin[agent],
                error_probability: errors.as_ref().map(|errors| errors[agent]),
                contrarian: contrarian(agent).map(|contrarian| hypotheses[contrarian.believes].clone()),
                contrarian_margin: contrarian(agent).map(|contrarian| contrarian.margin),
                contrarian_standard_errors: contrarian(agent).and_then(|contrarian| contrarian.standard_errors),
                posts: None,
                silent_share: None,
                in_degree: None,
                pagerank: None,
            })
            .collect();
        let divergence = (0..hypotheses.len()).filter(|&hypothesis| hypothesis != found.truth);
        Ok(Ranking {
            truth: hypotheses[found.truth].clone(),
            agreement: found.agreement,
            reference: model.roster.reference().to_owned(),
            verdict: judged(model),
            divergence: divergence
                .map(|hypothesis| (hypotheses[hypothesis].clone(), json!(found.divergence[hypothesis])))
                .collect(),
            network: Network {
                residual: found.centrality.residual,
                moved: found.centrality.moved,
                components: found.centrality.components.iter().map(Vec::len).collect(),
                sources: (found.centrality.sources.iter())
                    .map(|source| SourceRow { agents: model.roster.names(&source.agents), share: source.share })
                    .collect(),
            },
            agents,
            edges: None,
            notes: notes(model, &found),
        })
    }

    /// Intervals and p-values, where asked for, by fitting again the way the model was learned.
    pub(crate) fn add_trust(
        &mut self,
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
            self.notes.push("intervals and p-values are those of the whitened learner on the same beliefs".into());
        }
        if let Some(count) = trust.bootstrap {
            let bootstrap = Bootstrap::new(panel, model, learning.clone(), trust.seed)?;
            let draws = many("resampling", count, screen, |number| bootstrap.draw(number))?;
            let intervals = bootstrap.intervals(&draws, trust.top)?;
            for row in &mut self.agents {
                let agent = model.roster.agent(&row.agent)?;
                (row.share_low, row.share_high) = (Some(intervals.share[agent].0), Some(intervals.share[agent].1));
                (row.rank_low, row.rank_high) = (Some(intervals.rank[agent].0), Some(intervals.rank[agent].1));
                row.top_k_probability = Some(intervals.top[agent]);
            }
        }
        if let Some(count) = trust.null {
            let rotation = Rotation::new(panel, learning, trust.seed);
            let observed = rotation.observed()?;
            let draws = many("rotating", count, screen, |number| rotation.draw(number))?;
            let found = Rotation::compare(&observed, &draws);
            for row in &mut self.agents {
                row.p_value = Some(found.agents[model.roster.agent(&row.agent)?]);
            }
            self.verdict = judge(model.diagnostics.skill.as_ref(), &found);
            self.edges = Some(edges(model, &found));
        }
        Ok(())
    }

    /// What the graph alone would say.
    pub(crate) fn add_graph(&mut self, graph: &Graph, roster: &Roster) -> Result<(), Failure> {
        let (followers, pagerank) = (graph.followers(), graph.pagerank(DAMPING));
        for row in &mut self.agents {
            let agent = roster.agent(&row.agent)?;
            row.in_degree = Some(followers[agent]);
            row.pagerank = Some(pagerank[agent]);
        }
        Ok(())
    }

    pub(crate) fn add_activity(&mut self, panel: &Panel) -> Result<(), headwater::Error> {
        let silence = panel.silence();
        let steps = panel.steps() as f64;
        for row in &mut self.agents {
            let agent = panel.roster().agent(&row.agent)?;
            let posts: f64 = (0..panel.steps()).map(|step| f64::from(panel.posts(step, agent))).sum();
            row.posts = Some(posts / steps);
            row.silent_share = Some(silence[agent] as f64 / steps);
        }
        Ok(())
    }

    fn print(&self, format: Format, screen: &mut Screen) -> Result<(), Failure> {
        match format {
            Format::Json => screen.json(self),
            Format::Csv => screen.result(&self.csv()),
            Format::Table => screen.text(&self.text()),
        }
    }

    /// For people: the verdict, the table, and what to know beside it.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.verdict.text);
        text.push_str(&format!(
            "The network settles on {:?}; {} of the agents agree. Reference: {:?}.\n\n",
            self.truth,
            percent(self.agreement),
            self.reference
        ));
        text.push_str(&self.table());
        text.push_str(&format!("\nNetwork divergence from {:?}: ", self.truth));
        let parts =
            self.divergence.iter().map(|(name, value)| format!("{name} {}", value.as_f64().map_or("–".into(), number)));
        text.push_str(&parts.collect::<Vec<_>>().join(", "));
        text.push('\n');
        self.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
        text
    }

    fn table(&self) -> String {
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
            extra.iter().filter(|(_, show)| self.agents.iter().any(|row| show(row).is_some())).collect();
        // Eighty columns hold three extra ones; the others are in JSON and CSV.
        for name in ["errs", "posts", "silent", "pagerank"] {
            if shown.len() > 3 {
                shown.retain(|(other, _)| *other != name);
            }
        }
        let mut header = vec!["", "agent", "share", "centrality", "inform.", "origin"];
        header.extend(shown.iter().map(|(name, _)| *name));
        let rows = self.agents.iter().map(|row| {
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

    pub(crate) fn csv(&self) -> String {
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
        let values: Vec<Map<String, Value>> = self
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
}

/// A model made by hand or simulated has nothing to test.
pub(crate) fn judged(model: &Model) -> Verdict {
    if model.method == Method::Given && model.diagnostics.skill.is_none() {
        return Verdict {
            supported: true,
            text: "This model was given, not learned: there is nothing to test.".into(),
        };
    }
    verdict(model.diagnostics.skill.as_ref())
}

/// What a reader must know beside the numbers.
fn notes(model: &Model, found: &Influence) -> Vec<String> {
    let mut notes = Vec::new();
    let names = |agents: &[usize]| model.roster.list(agents);
    let sources = &found.centrality.sources;
    let inside: usize = sources.iter().map(|source| source.agents.len()).sum();
    let agents = model.combination.agents();
    if inside < agents || sources.len() > 1 {
        let parts: Vec<String> =
            sources.iter().map(|source| format!("{} ({})", names(&source.agents), percent(source.share))).collect();
        notes.push(format!(
            "the network is not strongly connected: in the long run every opinion comes from {}; the {} outside have centrality 0 and are ordered by origin",
            parts.join(" or "),
            count(agents - inside, "agent")
        ));
    }
    // A weight moved by less than this in all is rounding.
    if found.centrality.moved > 1e-9 {
        notes.push(format!(
            "weights were made non-negative and summing to one for the centrality; {} moved in all",
            number(found.centrality.moved)
        ));
    }
    let negative = found.negative();
    if !negative.is_empty() {
        notes.push(format!("* informativeness estimated below zero: {}", names(&negative)));
    }
    if found.share.is_none() {
        notes.push("the estimated influences do not add up to something positive, so there are no shares".into());
    }
    let (net, gross) =
        found.influence.iter().fold((0.0, 0.0), |(net, gross), value| (net + value, gross + value.abs()));
    if found.share.is_some() && gross > CANCELLING * net {
        notes.push(format!(
            "influences for and against nearly cancel ({} in all, {} net), so shares are large numbers that mean little; compare centrality and informativeness",
            number(gross),
            number(net)
        ));
    }
    // With dozens of agents and several alternatives noise alone often gives two standard errors, seldom three.
    let clear = |contrarian: &&Contrarian| contrarian.standard_errors.is_none_or(|errors| errors >= 3.0);
    let shown: Vec<&Contrarian> = found.contrarians.iter().filter(clear).collect();
    for contrarian in shown.iter().take(5) {
        let margin = match contrarian.standard_errors {
            Some(errors) => format!("{errors:.1} standard errors"),
            None => format!("{} nats an observation", number(contrarian.margin)),
        };
        notes.push(format!(
            "contrarian: the evidence of {} points to {:?}, by {margin}",
            short(&model.roster.agents()[contrarian.agent]),
            model.roster.hypotheses()[contrarian.believes]
        ));
    }
    let unclear = found.contrarians.len() - shown.len();
    if unclear > 0 {
        notes.push(format!(
            "evidence against the verdict by less than three standard errors: {}",
            count(unclear, "agent")
        ));
    }
    notes
}
