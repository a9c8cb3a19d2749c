//! The report page: one self-contained HTML file about a model.
//!
//! In: [`ReportInput`]. Out: a [`Page`], the data of the browser as `page/src/data.ts` describes them, and [`Page::html`], one
//! document without network access, under a strict content-security policy; the same input gives the same bytes. Names are
//! untrusted input and are shown as text only.

mod cards;
mod facts;
mod heatmap;
mod history;
mod html;
mod input;
mod network;
pub(crate) mod opinions;
mod pack;
mod verdict;

pub use cards::{Card, RemovalEffect};
pub use heatmap::PageHeatmap;
pub use history::PageSnapshot;
pub use input::{ReportInput, ranks};
pub use network::PageNetwork;
pub(crate) use network::strongest_edges;
pub use opinions::Opinions;
pub use pack::Packed;
pub use verdict::PageVerdict;

use crate::error::Error;
use headwater::words::count;
use headwater::{Model, Ranking, influence};
use serde::{Deserialize, Serialize};

/// Largest number of edges on the page.
pub const EDGES: usize = 20_000;

/// Largest number of agents with a card.
pub const CARDS: usize = 500;

/// Largest number of agents for the heat map.
pub const HEAT_AGENTS: usize = 500;

/// Stored weights × cards of a network that is too large for one factorisation: a few seconds of work.
const CARD_WORK: usize = 150_000_000;

/// Agents up to which one factorisation serves all cards.
const SOLVED_AGENTS: usize = 1000;

/// Number of cards for the largest networks.
const FEWEST_CARDS: usize = 20;

const FORMAT: &str = "headwater-page/1";

/// How to cite Headwater and the paper.
const CITE: [&str; 2] = [
    "The Headwater developers. Headwater: finds where opinions come from. Version {version}.",
    "V. Shumovskaia, M. Kayaalp, M. Cemri, A. H. Sayed. Discovering Influencers in Opinion Formation over Social Graphs. arXiv:2211.13292.",
];

/// The data of the page; `page/src/data.ts` explains the fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Version of the data.
    pub format: String,
    /// Title.
    pub title: String,
    /// The verdict, shown first.
    pub verdict: PageVerdict,
    /// Names in the model's order; indices refer to this list.
    pub agents: Vec<String>,
    /// The first is the reference.
    pub hypotheses: Vec<String>,
    /// Index of θ_0.
    pub reference: usize,
    /// Index of the hypothesis the network settles on.
    pub truth: usize,
    /// The ranking without its edges.
    pub ranking: Ranking,
    /// Who listens to whom.
    pub network: PageNetwork,
    /// One per agent, in the model's order.
    pub cards: Vec<Card>,
    /// Absent without beliefs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinions: Option<Opinions>,
    /// Absent for large networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat: Option<PageHeatmap>,
    /// Snapshots of a tracked model, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PageSnapshot>,
    /// The data: label and value.
    pub quality: Vec<(String, String)>,
    /// The method: label and value.
    pub method: Vec<(String, String)>,
    /// How to cite.
    pub cite: Vec<String>,
    /// What was left out to keep the page small.
    pub left_off: Vec<String>,
}

impl Page {
    /// Collects the data of the page. Cost at 500 agents: about a second, most of it for what-ifs and paths.
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
        let on_graph = from.on_graph();
        let lean = lean(from.model);
        let from = &ReportInput { model: lean.as_ref().unwrap_or(from.model), ..*from };
        let (model, ranking) = (from.model, from.ranking);
        let found = influence(model)?;
        let order = input::checked(model, ranking, &found)?;
        let mut left_off = Vec::new();
        let edges = strongest_edges(model);
        let kept = &edges[..edges.len().min(EDGES)];
        if kept.len() < edges.len() {
            left_off.push(format!("The {} strongest of {} edges are shown.", kept.len(), edges.len()));
        }
        let chosen = carded(model, &order, &mut left_off);
        let heat = (order.len() <= HEAT_AGENTS).then(|| heatmap::heatmap(from, &order));
        if heat.is_none() {
            left_off.push(format!("The heat map is left out above {HEAT_AGENTS} agents."));
        }
        let opinions = from.beliefs.map(|panel| Opinions::new(from, panel)).transpose()?;
        if let Some(opinions) = opinions.as_ref().filter(|opinions| opinions.merged > 1) {
            left_off.push(format!("Each point of the opinions is a mean over {}.", count(opinions.merged, "bin")));
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
            verdict: PageVerdict::new(from, on_graph, &notes),
            agents: model.roster.agents().to_vec(),
            hypotheses: model.roster.hypotheses().to_vec(),
            reference: 0,
            truth: found.truth,
            ranking: shown,
            network: network::network(from, on_graph, &edges, kept)?,
            cards: cards::cards(model, ranking, found.truth, &chosen)?,
            opinions,
            heat,
            history: history::history(model, kept, &mut left_off)?,
            quality: facts::quality(from),
            method: facts::method(from),
            cite: CITE.iter().map(|line| line.replace("{version}", env!("CARGO_PKG_VERSION"))).collect(),
            left_off,
        })
    }
}

/// A large model as a sparse one, where most of its weights are zero: the steps below go through all stored weights.
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

/// The agents that get a card, in the model's order.
fn carded(model: &Model, order: &[usize], left_off: &mut Vec<String>) -> Vec<usize> {
    let stored = model.combination.edges().count().max(1);
    let work = if order.len() <= SOLVED_AGENTS { CARDS } else { (CARD_WORK / stored).max(FEWEST_CARDS) };
    let many = order.len().min(CARDS).min(work);
    if many < order.len() {
        left_off.push(format!("Only the first {many} of {} agents have a card.", order.len()));
    }
    let mut chosen = order[..many].to_vec();
    chosen.sort_unstable();
    chosen
}

/// Title of a page that was given none, whatever the size of the effect.
const SUBJECT: &str = "Influence on opinion";

fn title(from: &ReportInput<'_>) -> String {
    let topic = from.run.map(|run| run.topic.join(", ")).filter(|topic| !topic.is_empty());
    match (from.title, topic) {
        ("", Some(topic)) => format!("{SUBJECT}: {topic}"),
        ("", None) => SUBJECT.to_owned(),
        (title, _) => title.to_owned(),
    }
}
