//! The explanation: why an agent is where it is, who shaped it, whom it shapes, what if it were not there.
//!
//! In: a [`Model`] and one of its agents. Out: an [`Explanation`], the same on the screen, as JSON and in Python.

use headwater::influence::{
    Attribution, Influence, Intervention, WhatIf, by_hops, error_probability, strongest_paths, what_if,
};
use headwater::model::Likelihood;
use headwater::{Error, Model, influence};
use serde::{Deserialize, Serialize};

/// Hops for which totals are shown.
const HOPS: usize = 3;

/// A thought experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Thought {
    /// The agent is gone, and its listeners give its weight to the others they hear.
    Remove,
    /// It goes on speaking, but never takes a side.
    Neutral,
}

impl Thought {
    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Thought::Remove => "remove",
            Thought::Neutral => "neutral",
        }
    }
}

/// Why an agent is where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Its name.
    pub agent: String,
    /// 1 is the most influential.
    pub rank: usize,
    /// How many there are.
    pub agents: usize,
    /// The hypothesis the network settles on.
    pub truth: String,
    /// θ_0.
    pub reference: String,
    /// All hypotheses.
    pub hypotheses: Vec<String>,
    /// Centrality × informativeness.
    pub influence: f64,
    /// Part of all influence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// How much the network listens to it.
    pub centrality: f64,
    /// How much it knows, summed over the hypotheses.
    pub informativeness: f64,
    /// What it gives itself.
    pub self_weight: f64,
    /// D(θ*‖θ) and the agent's share of the network divergence, per hypothesis.
    pub divergences: Vec<Divergence>,
    /// How often it is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_probability: Option<f64>,
    /// What its own evidence points to, where that is not the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian: Option<Contrary>,
    /// Who made it think so, the strongest first.
    pub sources: Vec<Source>,
    /// Whom it shapes, the most shaped first.
    pub shapes: Vec<Reach>,
    /// Its private observations, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihoods: Option<Likelihood>,
    /// The thought experiment, where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Change>,
}

/// What an agent knows against one hypothesis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// Not the truth.
    pub hypothesis: String,
    /// D(θ*‖θ).
    pub divergence: f64,
    /// Its part of the network's divergence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_network: Option<f64>,
}

/// Evidence against the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrary {
    /// The hypothesis it points to.
    pub believes: String,
    /// By how much, in nats an observation.
    pub margin: f64,
    /// The same in standard errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_errors: Option<f64>,
}

/// Somebody who made the agent think so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its name.
    pub agent: String,
    /// Share of the explained agent's expected log-belief that originates here.
    pub attribution: f64,
    /// What the explained agent gives it directly.
    pub weight: f64,
    /// Attribution that arrives over 0, 1, … hops.
    pub by_hops: Vec<f64>,
    /// The strongest path, both ends included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
    /// Product of (1−δ)·weight along it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_strength: Option<f64>,
}

/// Somebody whom the agent shapes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reach {
    /// Its name.
    pub agent: String,
    /// Share of that agent's expected log-belief that originates in the explained one.
    pub attribution: f64,
}

/// What a thought experiment comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Which one.
    pub kind: Thought,
    /// Belief in the truth that the mean log-belief of the others amounts to.
    pub belief_before: f64,
    /// The same then.
    pub belief_after: f64,
    /// Those who heard nobody else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<String>,
    /// The most changed first.
    pub agents: Vec<Shift>,
}

/// One of the others in a thought experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// Its name.
    pub agent: String,
    /// Its belief in the truth.
    pub before: f64,
    /// The same then.
    pub after: f64,
}

/// Positions of the largest values, the largest first, ties by position.
pub(crate) fn strongest(values: &[f64], top: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    let before = |&a: &usize, &b: &usize| values[b].total_cmp(&values[a]).then(a.cmp(&b));
    if top < order.len() {
        order.select_nth_unstable_by(top, before);
        order.truncate(top);
    }
    order.sort_by(before);
    order
}

/// The others by how much their belief in a hypothesis changes, the most changed first: agent, before, after.
pub(crate) fn shifts(outcome: &WhatIf, truth: usize, top: usize) -> Vec<(usize, f64, f64)> {
    let mut shifts: Vec<(usize, f64, f64)> = (outcome.others.iter().enumerate())
        .map(|(position, &other)| {
            let [before, after] = outcome.belief_of(position, truth);
            (other, before, after)
        })
        .collect();
    shifts.sort_by(|a, b| (b.2 - b.1).abs().total_cmp(&(a.2 - a.1).abs()));
    shifts.truncate(top);
    shifts
}

impl Explanation {
    /// Explains one agent, naming at most `top` others in each list.
    ///
    /// ```
    /// use headwater::simulate::{WorldParams, simulate};
    /// use headwater_report::{Explanation, explanation::Thought};
    /// let (_, truth) = simulate(&WorldParams { steps: 1, ..WorldParams::default() })?;
    /// let explanation = Explanation::new(&truth, 0, 3, Some(Thought::Remove))?;
    /// assert_eq!((explanation.agent.as_str(), explanation.sources.len()), ("0", 3));
    /// # Ok::<(), headwater::Error>(())
    /// ```
    pub fn new(model: &Model, agent: usize, top: usize, thought: Option<Thought>) -> Result<Self, Error> {
        let found = influence(model)?;
        let names = model.roster.agents();
        let hypotheses = model.roster.hypotheses();
        let stochastic = model.combination.stochastic().combination;
        let attribution = Attribution::from_model(model)?;
        let sources = attribution.sources_of(agent);
        let hops = by_hops(&stochastic, model.adaptation, agent, HOPS);
        let paths = strongest_paths(&stochastic, model.adaptation, agent);
        let source = |other: usize| {
            let path = paths[other].as_ref().filter(|path| path.agents.len() > 1);
            Source {
                agent: names[other].clone(),
                attribution: sources[other],
                weight: stochastic.weight(other, agent),
                by_hops: hops.iter().map(|hop| hop[other]).collect(),
                path: path.map(|path| model.roster.names(&path.agents)),
                path_strength: path.map(|path| path.strength),
            }
        };
        let mut reach = attribution.reach_of(agent);
        reach[agent] = f64::MIN;
        let rank = found.ranking().iter().position(|&other| other == agent).map_or(0, |position| position + 1);
        let divergence = |hypothesis: usize| Divergence {
            hypothesis: hypotheses[hypothesis].clone(),
            divergence: found.divergences[agent][hypothesis],
            share_of_network: found.divergence_shares(hypothesis).map(|shares| shares[agent]),
        };
        Ok(Explanation {
            agent: names[agent].clone(),
            rank,
            agents: names.len(),
            truth: hypotheses[found.truth].clone(),
            reference: model.roster.reference().to_owned(),
            hypotheses: hypotheses.to_vec(),
            influence: found.influence[agent],
            share: found.share.as_ref().map(|share| share[agent]),
            centrality: found.centrality.values[agent],
            informativeness: found.informativeness[agent],
            self_weight: stochastic.weight(agent, agent),
            divergences: (0..hypotheses.len()).filter(|&other| other != found.truth).map(divergence).collect(),
            error_probability: match model.innovation {
                Some(_) => Some(error_probability(model, found.truth, agent)?),
                None => None,
            },
            contrarian: found.contrarians.iter().find(|contrarian| contrarian.agent == agent).map(|contrarian| {
                Contrary {
                    believes: hypotheses[contrarian.believes].clone(),
                    margin: contrarian.margin,
                    standard_errors: contrarian.standard_errors,
                }
            }),
            sources: strongest(&sources, top).into_iter().map(source).collect(),
            shapes: strongest(&reach, top)
                .into_iter()
                .filter(|&other| other != agent)
                .map(|other| Reach { agent: names[other].clone(), attribution: reach[other] })
                .collect(),
            likelihoods: model.likelihoods.as_ref().map(|likelihoods| likelihoods[agent].clone()),
            what_if: thought.map(|thought| change(model, &found, agent, thought, top)).transpose()?,
        })
    }
}

fn change(model: &Model, found: &Influence, agent: usize, kind: Thought, top: usize) -> Result<Change, Error> {
    let intervention = match kind {
        Thought::Remove => Intervention::Remove,
        Thought::Neutral => Intervention::Freeze(vec![0.0; model.evidence.ratios()]),
    };
    let outcome = what_if(model, agent, &intervention)?;
    let [belief_before, belief_after] = outcome.belief(found.truth);
    let named = |(other, before, after): (usize, f64, f64)| Shift {
        agent: model.roster.agents()[other].clone(),
        before,
        after,
    };
    Ok(Change {
        kind,
        belief_before,
        belief_after,
        left_alone: model.roster.names(&outcome.stranded),
        agents: shifts(&outcome, found.truth, top).into_iter().map(named).collect(),
    })
}
