//! What a page is made from, and whether it fits together.

use crate::error::Error;
use headwater::compare::GroundTruth;
use headwater::graph::Graph;
use headwater::influence::Influence;
use headwater::words::number;
use headwater::{Method, Model, Panel, Ranking, influence};
use headwater_discover::{Discovery, RunRecord};

/// Largest difference between the centralities of a ranking and of its model, relative to the largest centrality: rounding
/// differs between machines.
const SAME: f64 = 1e-6;

/// What a report is made from.
#[derive(Debug, Clone, Copy)]
pub struct ReportInput<'a> {
    /// The model.
    pub model: &'a Model,
    /// Its ranking, shown as it is; nothing is resampled.
    pub ranking: &'a Ranking,
    /// The beliefs that the model was learned from.
    pub beliefs: Option<&'a Panel>,
    /// Who follows whom.
    pub graph: Option<&'a Graph>,
    /// The true network, where it is known.
    pub truth: Option<&'a GroundTruth>,
    /// The record of the run.
    pub run: Option<&'a RunRecord>,
    /// The time zone of the beliefs, where it is known without the record of the run.
    pub zone: Option<&'a str>,
    /// Title of the page; made from the topic when empty.
    pub title: &'a str,
}

impl<'a> ReportInput<'a> {
    /// A model and its ranking alone.
    pub fn new(model: &'a Model, ranking: &'a Ranking) -> Self {
        ReportInput { model, ranking, beliefs: None, graph: None, truth: None, run: None, zone: None, title: "" }
    }

    /// All results of a run.
    pub fn from_discovery(found: &'a Discovery) -> Self {
        ReportInput {
            beliefs: Some(&found.panel),
            graph: found.graph.as_ref(),
            truth: found.truth.as_ref(),
            run: Some(&found.run),
            ..ReportInput::new(&found.model, &found.ranking)
        }
    }

    /// Whether the weights were restricted to a given graph.
    pub(super) fn on_graph(&self) -> bool {
        self.graph.is_some() || self.model.method != Method::Given && self.model.combination.is_sparse()
    }
}

/// Whether a ranking is one of this model.
pub fn ranks(model: &Model, ranking: &Ranking) -> Result<bool, Error> {
    Ok(checked(model, ranking, &influence(model)?).is_ok())
}

/// Agents by rank; an error where the ranking belongs to another model.
pub(super) fn checked(model: &Model, ranking: &Ranking, found: &Influence) -> Result<Vec<usize>, Error> {
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
        return Err(wrong(format!("in it the network settles on {:?}, in the model on {truth:?}", ranking.truth)));
    }
    let most = found.centrality.values.iter().fold(0.0f64, |most, value| most.max(*value));
    let other = ranking.agents.iter().zip(&order);
    let other = other.filter(|(row, agent)| (row.centrality - found.centrality.values[**agent]).abs() > SAME * most);
    if let Some((row, &agent)) = other.into_iter().next() {
        return Err(wrong(format!(
            "its centrality of {:?} is {}, the model's {}; rank the model again",
            row.agent,
            number(row.centrality),
            number(found.centrality.values[agent])
        )));
    }
    Ok(order)
}
