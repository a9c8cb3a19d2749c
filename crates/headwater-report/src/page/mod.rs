//! The page: everything an analyst wants to know of a model, in one file that needs nothing else.
//!
//! In: [`ReportInput`]. Out: a [`Page`], which is what `page/src/data.ts` says the browser is given, and [`Page::html`], one
//! self-contained document: no network access, a strict content-security policy, no clock; the same ingredients give the
//! same bytes. What anybody called themselves is hostile input and stays text.

mod cards;
mod facts;
mod html;
pub(crate) mod opinions;
mod pack;
mod verdict;

pub use cards::{Card, Without};
pub use opinions::Opinions;
pub use pack::Packed;
pub use verdict::PageVerdict;

use crate::error::Error;
use crate::network::places;
use headwater::Method;
use headwater::Ranking;
use headwater::compare::GroundTruth;
use headwater::graph::Graph;
use headwater::influence::Influence;
use headwater::model::{ChangeKind, Track};
use headwater::words::{count, number, percent, within};
use headwater::{Combination, Model, Panel, influence};
use headwater_discover::{Discovery, RunRecord};
use headwater_files::show_time;
use pack::brief;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Edges on the page, the strongest.
pub const EDGES: usize = 20_000;

/// Agents with a card.
pub const CARDS: usize = 500;

/// Agents up to which the weights are shown as a heat map.
pub const HEAT_AGENTS: usize = 500;

/// Stored weights × cards of a network too large to be solved at once: seconds of work.
const CARD_WORK: usize = 150_000_000;

/// Agents up to which one factorisation serves all cards.
const SOLVED_AGENTS: usize = 1000;

/// Cards that even the largest network gets.
const FEWEST_CARDS: usize = 20;

/// Characters that all snapshots may take.
const HISTORY: usize = 700_000;

/// A ranking's centrality may differ from the model's by this, relative to the largest: another machine rounds otherwise.
const SAME: f64 = 1e-6;

/// Weights up to this are what an exact fit leaves where there is no edge.
const ROUNDING: f64 = 1e-9;

const FORMAT: &str = "headwater-page/1";

/// The paper, and us.
const CITE: [&str; 2] = [
    "The Headwater developers. Headwater: finds where opinions come from. Version {version}.",
    "V. Shumovskaia, M. Kayaalp, M. Cemri, A. H. Sayed. Discovering Influencers in Opinion Formation over Social Graphs. arXiv:2211.13292.",
];

/// What a page is made from.
#[derive(Debug, Clone, Copy)]
pub struct ReportInput<'a> {
    /// What was learned.
    pub model: &'a Model,
    /// Shown as it is; nothing is resampled.
    pub ranking: &'a Ranking,
    /// What everybody said.
    pub beliefs: Option<&'a Panel>,
    /// Who follows whom.
    pub graph: Option<&'a Graph>,
    /// What is known of the truth.
    pub truth: Option<&'a GroundTruth>,
    /// The record of the run.
    pub run: Option<&'a RunRecord>,
    /// Above everything; chosen from the topic when empty.
    pub title: &'a str,
}

impl<'a> ReportInput<'a> {
    /// A model and its ranking, and nothing else.
    pub fn new(model: &'a Model, ranking: &'a Ranking) -> Self {
        ReportInput { model, ranking, beliefs: None, graph: None, truth: None, run: None, title: "" }
    }

    /// Everything that a run found.
    pub fn from_discovery(found: &'a Discovery) -> Self {
        ReportInput {
            beliefs: Some(&found.panel),
            graph: found.graph.as_ref(),
            truth: found.truth.as_ref(),
            run: Some(&found.run),
            ..ReportInput::new(&found.model, &found.ranking)
        }
    }

    /// Whether edges outside a graph were impossible.
    fn given(&self) -> bool {
        self.graph.is_some() || self.model.method != Method::Given && self.model.combination.is_sparse()
    }
}

/// What the browser is given; `page/src/data.ts` explains the fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Of this data.
    pub format: String,
    /// Above everything.
    pub title: String,
    /// First thing on the page.
    pub verdict: PageVerdict,
    /// Names in the model's order; every index counts here.
    pub agents: Vec<String>,
    /// The first is the reference.
    pub hypotheses: Vec<String>,
    /// Index of θ_0.
    pub reference: usize,
    /// Index of the hypothesis the network settles on.
    pub truth: usize,
    /// As `rank` prints it, without its edges.
    pub ranking: Ranking,
    /// Who listens to whom.
    pub network: Network,
    /// One per agent, in the model's order.
    pub cards: Vec<Card>,
    /// Absent without beliefs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinions: Option<Opinions>,
    /// Absent for large networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat: Option<Heat>,
    /// Of a tracked model, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Snapshot>,
    /// Label and value.
    pub quality: Vec<(String, String)>,
    /// Label and value.
    pub method: Vec<(String, String)>,
    /// How to cite.
    pub cite: Vec<String>,
    /// What was left off so that the page stays quick.
    pub left_off: Vec<String>,
}

/// Who listens to whom, the strongest edges first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// x and y of each agent in turn, 0…1.
    pub places: Packed,
    /// Agents.
    pub speakers: Packed,
    /// Agents.
    pub listeners: Packed,
    /// What the listener gives the speaker.
    pub weights: Packed,
    /// Where the null was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_values: Option<Packed>,
    /// 1 where significant after Benjamini and Hochberg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub significant: Option<Packed>,
    /// How many the model has.
    pub edges: usize,
    /// Whether edges outside a graph were impossible.
    pub given: bool,
}

/// Weights as a heat map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    /// Agents by rank: row and column i are agent `order[i]`.
    pub order: Vec<usize>,
    /// Row = speaker, column = listener, row by row.
    pub learned: Packed,
    /// The true weights on the same scale.
    #[serde(rename = "true", default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Packed>,
}

/// The network as it was at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When.
    pub time: String,
    /// By the model's order.
    pub share: Vec<f64>,
    /// Likewise.
    pub centrality: Vec<f64>,
    /// Likewise.
    pub informativeness: Vec<f64>,
    /// Of the network's edges, in their order.
    pub weights: Packed,
}

/// Speaker, listener, weight.
type Edge = (usize, usize, f64);

impl Page {
    /// Gathers everything. Cost at 500 agents: about a second, most of it what-ifs and paths.
    ///
    /// ```
    /// use headwater::simulate::{WorldParams, simulate};
    /// use headwater::Ranking;
    /// use headwater_report::page::{Page, ReportInput};
    /// let (panel, truth) = simulate(&WorldParams { steps: 50, ..WorldParams::default() })?;
    /// let ranking = Ranking::new(&truth)?;
    /// let page = Page::new(&ReportInput { beliefs: Some(&panel), ..ReportInput::new(&truth, &ranking) })?;
    /// assert_eq!((page.agents.len(), page.cards.len()), (20, 20));
    /// assert!(page.html()?.starts_with("<!doctype html>"));
    /// # Ok::<(), headwater_report::Error>(())
    /// ```
    pub fn new(from: &ReportInput<'_>) -> Result<Self, Error> {
        let given = from.given();
        let lean = lean(from.model);
        let from = &ReportInput { model: lean.as_ref().unwrap_or(from.model), ..*from };
        let (model, ranking) = (from.model, from.ranking);
        let found = influence(model)?;
        let order = checked(model, ranking, &found)?;
        let mut left_off = Vec::new();
        let edges = strongest_edges(model);
        let kept = &edges[..edges.len().min(EDGES)];
        if kept.len() < edges.len() {
            left_off.push(format!("Of {} edges the {} strongest are shown.", edges.len(), kept.len()));
        }
        let chosen = carded(model, &order, &mut left_off);
        let heat = (order.len() <= HEAT_AGENTS).then(|| heat(from, &order));
        if heat.is_none() {
            left_off.push(format!("The heat map is left off above {HEAT_AGENTS} agents."));
        }
        let opinions = from.beliefs.map(|panel| Opinions::new(model, panel)).transpose()?;
        if let Some(opinions) = opinions.as_ref().filter(|opinions| opinions.merged > 1) {
            left_off.push(format!("Opinions are means over {} at a time.", count(opinions.merged, "bin")));
        }
        let notes = match ranking.notes.is_empty() {
            true => Ranking::from_influence(model, &found)?.notes,
            false => ranking.notes.clone(),
        };
        let mut shown = ranking.clone();
        shown.edges = None;
        Ok(Page {
            format: FORMAT.to_owned(),
            title: title(from),
            verdict: PageVerdict::new(from, given, &notes),
            agents: model.roster.agents().to_vec(),
            hypotheses: model.roster.hypotheses().to_vec(),
            reference: 0,
            truth: found.truth,
            ranking: shown,
            network: network(from, given, &edges, kept)?,
            cards: cards::cards(model, ranking, found.truth, &chosen)?,
            opinions,
            heat,
            history: history(model, kept, &mut left_off)?,
            quality: quality(from),
            method: method(from),
            cite: CITE.iter().map(|line| line.replace("{version}", env!("CARGO_PKG_VERSION"))).collect(),
            left_off,
        })
    }
}

/// A large model without the zeros among its weights, where most are: everything below goes through them.
fn lean(model: &Model) -> Option<Model> {
    let weights = &model.combination;
    let zeros = |weights: &[f64]| weights.iter().filter(|weight| **weight == 0.0).count();
    let mostly_zero =
        |weights: &[f64]| weights.len() > SOLVED_AGENTS * SOLVED_AGENTS && 4 * zeros(weights) > 3 * weights.len();
    weights.dense().is_some_and(mostly_zero).then(|| {
        let mut lean = model.clone();
        lean.combination = weights.to_sparse();
        lean
    })
}

/// Agents by rank, where the ranking is one of this model.
fn checked(model: &Model, ranking: &Ranking, found: &Influence) -> Result<Vec<usize>, Error> {
    let wrong = |problem: String| Error::Ranking { problem };
    let agents = model.roster.agents().len();
    let mut order = Vec::with_capacity(agents);
    let mut met = vec![false; agents];
    for row in &ranking.agents {
        let agent =
            model.roster.agent(&row.agent).map_err(|_| wrong(format!("the model has no agent {:?}", row.agent)))?;
        if std::mem::replace(&mut met[agent], true) {
            return Err(wrong(format!("agent {:?} is ranked twice", row.agent)));
        }
        order.push(agent);
    }
    if order.len() < agents {
        return Err(wrong(format!("it ranks {} of {agents} agents; all are needed", order.len())));
    }
    let truth = &model.roster.hypotheses()[found.truth];
    if ranking.truth != *truth {
        return Err(wrong(format!("it says that the network settles on {:?}, the model {truth:?}", ranking.truth)));
    }
    let most = found.centrality.values.iter().fold(0.0f64, |most, value| most.max(*value));
    let other = ranking.agents.iter().zip(&order);
    let other = other.filter(|(row, agent)| (row.centrality - found.centrality.values[**agent]).abs() > SAME * most);
    if let Some((row, &agent)) = other.into_iter().next() {
        return Err(wrong(format!(
            "it gives {:?} the centrality {}, the model {}; rank the model again",
            row.agent,
            number(row.centrality),
            number(found.centrality.values[agent])
        )));
    }
    Ok(order)
}

/// Positive weights between different agents, the strongest first.
pub(crate) fn strongest_edges(model: &Model) -> Vec<Edge> {
    let heard = |&(speaker, listener, weight): &Edge| speaker != listener && weight > ROUNDING;
    let mut edges: Vec<Edge> = model.combination.edges().filter(heard).collect();
    edges.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    edges
}

/// Who gets a card, in the model's order.
fn carded(model: &Model, order: &[usize], left_off: &mut Vec<String>) -> Vec<usize> {
    let stored = model.combination.edges().count().max(1);
    let work = if order.len() <= SOLVED_AGENTS { CARDS } else { (CARD_WORK / stored).max(FEWEST_CARDS) };
    let many = order.len().min(CARDS).min(work);
    if many < order.len() {
        left_off.push(format!("The first {many} of {} agents have a card.", order.len()));
    }
    let mut chosen = order[..many].to_vec();
    chosen.sort_unstable();
    chosen
}

fn title(from: &ReportInput<'_>) -> String {
    let topic = from.run.map(|run| run.topic.join(", ")).filter(|topic| !topic.is_empty());
    match (from.title, topic) {
        ("", Some(topic)) => format!("Who drives opinion: {topic}"),
        ("", None) => "Who drives opinion".to_owned(),
        (title, _) => title.to_owned(),
    }
}

fn network(from: &ReportInput<'_>, given: bool, all: &[Edge], kept: &[Edge]) -> Result<Network, Error> {
    let roster = &from.model.roster;
    let agents = roster.agents().len();
    let heaviest = kept.first().map_or(0.0, |edge| edge.2);
    let tested = match &from.ranking.edges {
        None => None,
        Some(edges) => {
            let mut tested = HashMap::with_capacity(edges.len());
            for edge in edges {
                let ends = (roster.agent(&edge.source), roster.agent(&edge.target));
                let (Ok(source), Ok(target)) = ends else {
                    let problem = format!("its edge {:?} → {:?} names a stranger", edge.source, edge.target);
                    return Err(Error::Ranking { problem });
                };
                tested.insert((source, target), (edge.p_value, edge.significant));
            }
            Some(tested)
        }
    };
    // An edge that was not tested is not significant.
    let test =
        |edge: &Edge| tested.as_ref().map(|tested| tested.get(&(edge.0, edge.1)).copied().unwrap_or((1.0, false)));
    let tests: Option<Vec<(f64, bool)>> = tested.as_ref().and_then(|_| kept.iter().map(test).collect());
    let places = places(agents, all).into_iter().flat_map(|(x, y)| [x, y]);
    Ok(Network {
        places: Packed::between(places, (0.0, 1.0), 16),
        speakers: Packed::indices(kept.iter().map(|edge| edge.0), agents),
        listeners: Packed::indices(kept.iter().map(|edge| edge.1), agents),
        // Weights and p-values are printed: nine digits of the largest.
        weights: Packed::between(kept.iter().map(|edge| edge.2), (0.0, heaviest), 32),
        p_values: tests.as_ref().map(|tests| Packed::between(tests.iter().map(|test| test.0), (0.0, 1.0), 32)),
        significant: tests.map(|tests| Packed::flags(tests.into_iter().map(|test| test.1))),
        edges: all.len(),
        given,
    })
}

fn heat(from: &ReportInput<'_>, order: &[usize]) -> Heat {
    let model = from.model;
    let names = model.roster.agents();
    let learned = &model.combination;
    // By name: the truth may know other agents, and in another order.
    let known: Option<(&Combination, Vec<Option<usize>>)> = from.truth.and_then(|truth| {
        let place = names.iter().map(|name| truth.roster.agent(name).ok()).collect::<Vec<_>>();
        truth.combination.as_ref().filter(|_| place.iter().any(Option::is_some)).map(|weights| (weights, place))
    });
    let cells = || order.iter().flat_map(|&speaker| order.iter().map(move |&listener| (speaker, listener)));
    let true_weight = |(speaker, listener): (usize, usize)| {
        let (weights, place) = known.as_ref()?;
        Some(weights.weight(place[speaker]?, place[listener]?))
    };
    let learned_weight = |(speaker, listener): (usize, usize)| learned.weight(speaker, listener);
    let all = cells().map(learned_weight).chain(cells().filter_map(true_weight));
    let ends = all.fold((0.0f64, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    Heat {
        learned: Packed::between(cells().map(learned_weight), ends, 8),
        known: known.is_some().then(|| Packed::between(cells().map(|cell| true_weight(cell).unwrap_or(0.0)), ends, 8)),
        order: order.to_vec(),
    }
}

fn history(model: &Model, edges: &[Edge], left_off: &mut Vec<String>) -> Result<Vec<Snapshot>, Error> {
    let all = &model.track.history;
    let agents = model.roster.agents().len();
    // Three numbers of about ten letters per agent, four letters for three edges.
    let most = (HISTORY / (33 * agents + edges.len() * 4 / 3)).max(2);
    // The first, the last, and as many as there is room for between.
    let shown: Vec<usize> = match all.len() {
        many if many > most => (0..most).map(|place| place * (many - 1) / (most - 1)).collect(),
        many => (0..many).collect(),
    };
    if shown.len() < all.len() {
        left_off.push(format!("Of {} snapshots {} are shown.", all.len(), shown.len()));
    }
    let turned = model.track.changes.iter().any(|change| change.kind == ChangeKind::State);
    let mut then = model.clone();
    then.track = Track::default();
    let mut snapshots = Vec::new();
    for snapshot in shown.into_iter().map(|place| &all[place]) {
        then.combination = snapshot.combination.clone();
        then.evidence = snapshot.evidence.clone();
        // Where the truth itself has changed, what was known at the time says which it was.
        then.truth = model.truth.filter(|_| !turned);
        let found = influence(&then)?;
        let weights: Vec<f64> =
            edges.iter().map(|&(speaker, listener, _)| then.combination.weight(speaker, listener)).collect();
        let ends = weights.iter().fold((0.0f64, 0.0f64), |(low, high), value| (low.min(*value), high.max(*value)));
        let brief = |values: Vec<f64>| values.into_iter().map(brief).collect();
        snapshots.push(Snapshot {
            time: model.track.time(snapshot.step),
            share: brief(found.share.unwrap_or_else(|| vec![0.0; agents])),
            centrality: brief(found.centrality.values),
            informativeness: brief(found.informativeness),
            weights: Packed::between(weights.into_iter(), ends, 8),
        });
    }
    Ok(snapshots)
}

fn quality(from: &ReportInput<'_>) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |label: &str, value: String| rows.push((label.to_owned(), value));
    add("agents", from.model.roster.agents().len().to_string());
    if let Some(panel) = from.beliefs {
        let (steps, last) = (panel.steps(), panel.steps() - 1);
        add("steps", steps.to_string());
        add("first step", show_time(panel.times(), 0));
        add("last step", show_time(panel.times(), last));
        let silence = panel.silence();
        let silent: usize = silence.iter().sum();
        add("silent (agent and step)", percent(silent as f64 / (steps * panel.agents()) as f64));
        if let Some((agent, &most)) = silence.iter().enumerate().rev().max_by_key(|(_, silent)| **silent)
            && most > 0
        {
            let name = within(&panel.roster().agents()[agent]);
            add("most silent", format!("{name}, {} of the steps", percent(most as f64 / steps as f64)));
        }
    }
    if let Some(run) = from.run {
        rows.extend(facts::quality_rows(run));
    }
    rows
}

fn method(from: &ReportInput<'_>) -> Vec<(String, String)> {
    let model = from.model;
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |label: &str, value: String| rows.push((label.to_owned(), value));
    add("learned by", model.method.name().to_owned());
    add("δ, weight of own evidence", number(model.adaptation));
    add("hypotheses", model.roster.hypotheses().join(", "));
    add("reference", model.roster.reference().to_owned());
    if let Some(steps) = model.diagnostics.steps {
        add("steps learned from", steps.to_string());
    }
    if let Some(skill) = &model.diagnostics.skill {
        add("steps forecast", skill.steps.to_string());
        add("better than each agent's own past by", percent(skill.against_own_past));
        add("better than \"nobody changes their mind\" by", percent(skill.against_persistence));
    }
    if let Some(smoothing) = &model.diagnostics.smoothing {
        add("weights made of", smoothing.weights.name().to_owned());
        let noise: Vec<String> =
            (0..smoothing.noise.len()).map(|ratio| number(smoothing.noise[ratio][ratio])).collect();
        add("variance of a post's noise", noise.join(", "));
        add("rounds", format!("{}{}", smoothing.rounds, if smoothing.converged { "" } else { ", not converged" }));
    }
    if let Some(spread) = model.diagnostics.column_sum_spread {
        add("spread of the sums of weights", number(spread));
    }
    let components = from.ranking.network.components.len();
    add("strongly connected parts", components.to_string());
    add("network divergence", {
        let parts = from.ranking.divergence.iter().map(|(name, value)| format!("{name} {}", number(*value)));
        parts.collect::<Vec<_>>().join(", ")
    });
    match from.run {
        Some(run) => rows.extend(facts::method_rows(run)),
        None => add("version", env!("CARGO_PKG_VERSION").to_owned()),
    }
    rows
}
