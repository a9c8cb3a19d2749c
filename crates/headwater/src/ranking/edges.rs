//! Weights between agents, with what is known about each.

use super::{FALSE_DISCOVERIES, Ranking};
use crate::Model;
use crate::evaluate::{Significance, discoveries};
use crate::model::EdgeInterval;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One weight between different agents, with its permutation test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RankedEdge {
    /// Speaker.
    pub source: String,
    /// Listener.
    pub target: String,
    /// Weight that the listener gives the speaker.
    pub weight: f64,
    /// Of the permutation test.
    pub p_value: f64,
    /// Significant at 5 % after Benjamini–Hochberg.
    pub significant: bool,
    /// Lower end of the 90 % interval of the weight, where the posterior was sampled and its chains have converged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Probability that the speaker is heard at all, where the posterior was sampled and edges may be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

impl RankedEdge {
    /// A weight with its p-value, and whether it is significant.
    pub fn new(source: String, target: String, weight: f64, p_value: f64, significant: bool) -> Self {
        RankedEdge { source, target, weight, p_value, significant, low: None, high: None, probability: None }
    }
}

/// One weight between different agents, as tables show it; what is not known is absent in all rows, or in this one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EdgeRow {
    /// Speaker.
    pub source: String,
    /// Listener.
    pub target: String,
    /// Weight that the listener gives the speaker.
    pub weight: f64,
    /// Of the permutation test, where it was run.
    pub p_value: Option<f64>,
    /// Significant at 5 % after Benjamini–Hochberg, where tested.
    pub significant: Option<bool>,
    /// Lower end of the 90 % interval, where the posterior was sampled and its chains have converged.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Probability that the speaker is heard at all, where the posterior was sampled and edges may be absent.
    pub probability: Option<f64>,
}

impl EdgeRow {
    /// Positive weights between different agents. Where the permutation test was run the smallest p-value first, otherwise
    /// listener by listener; a sampled posterior then has a row for every weight that it can make positive.
    pub fn all(ranking: &Ranking, model: &Model) -> Vec<EdgeRow> {
        if let Some(tested) = &ranking.edges {
            return tested.iter().map(EdgeRow::from).collect();
        }
        let names = model.roster.agents();
        let row = |speaker: usize, listener: usize, weight: f64| EdgeRow {
            source: names[speaker].clone(),
            target: names[listener].clone(),
            weight,
            p_value: None,
            significant: None,
            low: None,
            high: None,
            probability: None,
        };
        if let Some(posterior) = model.diagnostics.posterior.as_ref().filter(|posterior| posterior.converged()) {
            let sampled = posterior.edges.iter().map(|edge| EdgeRow {
                low: Some(edge.low),
                high: Some(edge.high),
                probability: edge.probability,
                ..row(edge.speaker, edge.listener, model.combination.weight(edge.speaker, edge.listener))
            });
            return sampled.collect();
        }
        let heard =
            model.combination.edges().filter(|&(speaker, listener, weight)| speaker != listener && weight > 0.0);
        heard.map(|(speaker, listener, weight)| row(speaker, listener, weight)).collect()
    }
}

impl From<&RankedEdge> for EdgeRow {
    fn from(edge: &RankedEdge) -> Self {
        EdgeRow {
            source: edge.source.clone(),
            target: edge.target.clone(),
            weight: edge.weight,
            p_value: Some(edge.p_value),
            significant: Some(edge.significant),
            low: edge.low,
            high: edge.high,
            probability: edge.probability,
        }
    }
}

/// Intervals of the weights by speaker and listener; empty where the posterior was not sampled or has not converged.
fn intervals(model: &Model) -> HashMap<(usize, usize), &EdgeInterval> {
    let posterior = model.diagnostics.posterior.as_ref().filter(|posterior| posterior.converged());
    let edges = posterior.map_or(&[][..], |posterior| &posterior.edges);
    edges.iter().map(|edge| ((edge.speaker, edge.listener), edge)).collect()
}

/// Positive weights between different agents with their p-values, the smallest first.
pub(super) fn edges(model: &Model, found: &Significance) -> Vec<RankedEdge> {
    let agents = model.combination.agents();
    let names = model.roster.agents();
    let heard: Vec<(usize, usize, f64)> =
        model.combination.edges().filter(|&(speaker, listener, weight)| speaker != listener && weight > 0.0).collect();
    let p_values: Vec<f64> =
        heard.iter().map(|&(speaker, listener, _)| found.edges[listener * agents + speaker]).collect();
    let significant = discoveries(&p_values, FALSE_DISCOVERIES);
    let known = intervals(model);
    let mut rows: Vec<RankedEdge> = (heard.iter().zip(&p_values).zip(significant))
        .map(|((&(speaker, listener, weight), &p_value), significant)| {
            let interval = known.get(&(speaker, listener));
            RankedEdge {
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
                probability: interval.and_then(|interval| interval.probability),
                ..RankedEdge::new(names[speaker].clone(), names[listener].clone(), weight, p_value, significant)
            }
        })
        .collect();
    rows.sort_by(|a, b| a.p_value.total_cmp(&b.p_value).then(b.weight.total_cmp(&a.weight)));
    rows
}
