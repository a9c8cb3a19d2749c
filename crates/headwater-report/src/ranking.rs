//! The ranking: who drives what the group believes, and how sure that is.
//!
//! In: a [`Model`], and as far as they are at hand the panel it was learned from, a graph, resamples and rotations. Out: a
//! [`Ranking`], the same on the screen, in `ranking.json`, on the page and in Python.

use crate::words::{count, number, percent, short};
use headwater::confidence::{
    Intervals, Learning, Significance, Verdict, discoveries, intervals, judge, significance, verdict,
};
use headwater::graph::Graph;
use headwater::influence::{Contrarian, Influence, error_probabilities};
use headwater::learn::tested::fill;
use headwater::model::Method;
use headwater::{Error, Model, Panel, Roster, influence};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Up to this many agents the error probabilities are computed along the way.
const ERROR_PROBABILITY_AGENTS: usize = 200;

/// Share of false alarms tolerated among the edges called significant.
const FALSE_DISCOVERIES: f64 = 0.05;

/// Influences that add up to so many times their net sum nearly cancel.
const CANCELLING: f64 = 3.0;

/// The damping of the usual PageRank.
const DAMPING: f64 = 0.85;

/// Columns of the ranking as a table.
const COLUMNS: [&str; 21] = [
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

/// A ranking as it is printed and written.
///
/// ```
/// use headwater::simulate::{WorldParams, simulate};
/// use headwater_report::Ranking;
/// let (panel, truth) = simulate(&WorldParams { steps: 50, ..WorldParams::default() })?;
/// let mut ranking = Ranking::new(&truth)?;
/// ranking.add_activity(&panel)?;
/// assert_eq!((ranking.agents[0].rank, ranking.agents[0].silent_share), (1, Some(0.0)));
/// # Ok::<(), headwater::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The hypothesis the network settles on.
    pub truth: String,
    /// Share of the agents that agree.
    pub agreement: f64,
    /// θ_0.
    pub reference: String,
    /// Whether the data support an answer.
    pub verdict: Verdict,
    /// Network divergence K(θ*, θ) of every other hypothesis.
    pub divergence: BTreeMap<String, f64>,
    /// How the centrality came about.
    pub network: Network,
    /// The first is the most influential.
    pub agents: Vec<Row>,
    /// The surest first, where the null was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<Edge>>,
    /// What a reader must know beside the numbers; not in files, the model says it again.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// One weight between different agents, with what the null says of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// Speaker.
    pub source: String,
    /// Listener.
    pub target: String,
    /// What the listener gives the speaker.
    pub weight: f64,
    /// How often a world in which nobody listens has as much.
    pub p_value: f64,
    /// Among the discoveries of Benjamini and Hochberg at 5 %.
    pub significant: bool,
}

/// How the centrality came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// ‖Au − u‖₁ of the Perron vector.
    pub residual: f64,
    /// Sum of absolute changes that made the weights non-negative and summing to one.
    pub moved: f64,
    /// Sizes of the strongly connected components.
    pub components: Vec<usize>,
    /// Where opinions originate.
    pub sources: Vec<Source>,
}

/// Agents that hear nobody outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Their names.
    pub agents: Vec<String>,
    /// The part of the network's opinion that starts with them.
    pub share: f64,
}

/// One agent; what was not asked for is absent. The columns are explained in `docs/reference/ranking.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub agent: String,
    /// 1 is the most influential.
    pub rank: usize,
    /// Centrality × informativeness.
    pub influence: f64,
    /// Part of all influence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Lower end of its 90 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_high: Option<f64>,
    /// How much the network listens to it.
    pub centrality: f64,
    /// How much it knows, summed over the hypotheses.
    pub informativeness: f64,
    /// The part of the network's mean opinion that starts with it.
    pub origin: f64,
    /// Lower end of the 90 % interval of the rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_low: Option<usize>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_high: Option<usize>,
    /// How often it is among the first k of a resample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k_probability: Option<f64>,
    /// How often a world in which nobody listens has it heard as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// How often it is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_probability: Option<f64>,
    /// What its own evidence points to, where that is not the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian: Option<String>,
    /// By how much, in nats an observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian_margin: Option<f64>,
    /// The same in standard errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian_standard_errors: Option<f64>,
    /// Posts per step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posts: Option<f64>,
    /// Share of steps without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_share: Option<f64>,
    /// Followers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_degree: Option<usize>,
    /// PageRank in the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagerank: Option<f64>,
}

/// How sure to be: resamples for intervals, rotations for p-values.
#[derive(Debug, Clone)]
pub struct Uncertainty {
    /// How many resamples; none for no intervals.
    pub bootstrap: Option<u64>,
    /// How many rotations; none for no p-values.
    pub null: Option<u64>,
    /// How many agents the top is.
    pub top: usize,
    /// Of both.
    pub seed: u64,
}

impl Default for Uncertainty {
    fn default() -> Self {
        Uncertainty { bootstrap: None, null: None, top: 3, seed: 21 }
    }
}

impl Ranking {
    /// What the model alone says.
    pub fn new(model: &Model) -> Result<Self, Error> {
        Ranking::of(model, &influence(model)?)
    }

    /// The same where the influence is at hand.
    pub fn of(model: &Model, found: &Influence) -> Result<Self, Error> {
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
                .map(|hypothesis| (hypotheses[hypothesis].clone(), found.divergence[hypothesis]))
                .collect(),
            network: Network {
                residual: found.centrality.residual,
                moved: found.centrality.moved,
                components: found.centrality.components.iter().map(Vec::len).collect(),
                sources: (found.centrality.sources.iter())
                    .map(|source| Source { agents: model.roster.names(&source.agents), share: source.share })
                    .collect(),
            },
            agents,
            edges: None,
            notes: notes(model, found),
        })
    }

    /// The agents as rows of a table, and the columns that hold something, in order.
    pub fn table(&self) -> (Vec<&'static str>, Vec<Map<String, Value>>) {
        let fields = |row: &Row| match serde_json::to_value(row) {
            Ok(Value::Object(fields)) => Some(fields),
            _ => None,
        };
        let rows: Vec<Map<String, Value>> = self.agents.iter().filter_map(fields).collect();
        let used = COLUMNS.into_iter().filter(|key| rows.iter().any(|row| row.contains_key(*key))).collect();
        (used, rows)
    }

    /// Adds intervals and p-values, where asked for, by fitting again the way the model was learned. May take long.
    pub fn add_trust(&mut self, trust: &Uncertainty, model: &Model, panel: &Panel) -> Result<(), Error> {
        if trust.bootstrap.is_none() && trust.null.is_none() {
            return Ok(());
        }
        let learning = Learning::like(model);
        let filled;
        let panel = match &learning {
            Learning::StateSpace(_) => panel,
            Learning::Whitened(_) => {
                filled = fill(panel);
                filled.panel.as_ref()
            }
        };
        if !matches!(model.method, Method::Whitened | Method::StateSpace) {
            self.notes.push("intervals and p-values are those of the whitened learner on the same beliefs".into());
        }
        if let Some(count) = trust.bootstrap {
            let found = intervals(panel, model, learning.clone(), count, trust.top, trust.seed)?;
            self.add_intervals(&found, &model.roster)?;
        }
        if let Some(count) = trust.null {
            self.add_significance(&significance(panel, learning, count, trust.seed)?, model)?;
        }
        Ok(())
    }

    /// Adds what resamples say.
    pub fn add_intervals(&mut self, intervals: &Intervals, roster: &Roster) -> Result<(), Error> {
        for row in &mut self.agents {
            let agent = roster.agent(&row.agent)?;
            (row.share_low, row.share_high) = (Some(intervals.share[agent].0), Some(intervals.share[agent].1));
            (row.rank_low, row.rank_high) = (Some(intervals.rank[agent].0), Some(intervals.rank[agent].1));
            row.top_k_probability = Some(intervals.top[agent]);
        }
        Ok(())
    }

    /// Adds what rotations say, and judges anew.
    pub fn add_significance(&mut self, found: &Significance, model: &Model) -> Result<(), Error> {
        for row in &mut self.agents {
            row.p_value = Some(found.agents[model.roster.agent(&row.agent)?]);
        }
        self.verdict = judge(model.diagnostics.skill.as_ref(), found);
        self.edges = Some(edges(model, found));
        Ok(())
    }

    /// Adds what the graph alone would say.
    pub fn add_graph(&mut self, graph: &Graph, roster: &Roster) -> Result<(), Error> {
        let (followers, pagerank) = (graph.followers(), graph.pagerank(DAMPING));
        for row in &mut self.agents {
            let agent = roster.agent(&row.agent)?;
            row.in_degree = Some(followers[agent]);
            row.pagerank = Some(pagerank[agent]);
        }
        Ok(())
    }

    /// Adds how much everybody speaks.
    pub fn add_activity(&mut self, panel: &Panel) -> Result<(), Error> {
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
}

/// Positive weights between different agents with their p-values, the surest first.
fn edges(model: &Model, found: &Significance) -> Vec<Edge> {
    let agents = model.combination.agents();
    let names = model.roster.agents();
    let heard: Vec<(usize, usize, f64)> =
        model.combination.edges().filter(|&(speaker, listener, weight)| speaker != listener && weight > 0.0).collect();
    let p_values: Vec<f64> =
        heard.iter().map(|&(speaker, listener, _)| found.edges[listener * agents + speaker]).collect();
    let significant = discoveries(&p_values, FALSE_DISCOVERIES);
    let mut rows: Vec<Edge> = (heard.iter().zip(&p_values).zip(significant))
        .map(|((&(speaker, listener, weight), &p_value), significant)| Edge {
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

/// A model made by hand or simulated has nothing to test.
pub fn judged(model: &Model) -> Verdict {
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
