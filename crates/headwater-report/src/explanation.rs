//! The explanation of one agent's rank: sources of the belief, agents influenced, effect of a removal.
//!
//! In: a [`Model`] and one of its agents. Out: an [`Explanation`], for the terminal, JSON and Python.

use headwater::evaluate::Verdict;
use headwater::influence::{Attribution, Influence, Intervention, WhatIf, by_hops, error_probability, strongest_paths};
use headwater::model::Likelihood;
use headwater::{Error, Model, influence};
use serde::{Deserialize, Serialize};

/// Path lengths for which attribution is listed separately.
const HOPS: usize = 3;

/// A hypothetical change of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhatIfKind {
    /// The agent is removed; their listeners redistribute the weight to the others they listen to.
    Remove,
    /// The agent goes on speaking, but stays neutral between the hypotheses.
    Neutral,
}

impl WhatIfKind {
    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            WhatIfKind::Remove => "remove",
            WhatIfKind::Neutral => "neutral",
        }
    }
}

/// The explanation of one agent's rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The agent.
    pub agent: String,
    /// Whether the data support the numbers: that of a ranking, or what the model alone tells.
    pub verdict: Verdict,
    /// 1 is the most influential.
    pub rank: usize,
    /// Number of agents.
    pub agents: usize,
    /// The hypothesis the network settles on.
    pub truth: String,
    /// θ_0.
    pub reference: String,
    /// All hypotheses.
    pub hypotheses: Vec<String>,
    /// Centrality × informativeness.
    pub influence: f64,
    /// Share of all influence, in absolute value where some influences are negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// +1 or −1, the sign of the influence; present only where some influences are negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<i8>,
    /// Weight that the network gives the agent, directly and through others.
    pub centrality: f64,
    /// Strength of the agent's own evidence for the truth, summed over the alternatives.
    pub informativeness: f64,
    /// Weight that the agent gives their own previous belief.
    pub self_weight: f64,
    /// D(θ*‖θ) and the agent's share of the network divergence, per hypothesis.
    pub divergences: Vec<Divergence>,
    /// Probability that the agent ranks another hypothesis first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_probability: Option<f64>,
    /// The hypothesis that the agent's own evidence supports, where it is not the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian: Option<ContraryEvidence>,
    /// Sources of the agent's expected log-belief, the largest share first.
    pub sources: Vec<BeliefSource>,
    /// Agents influenced, the largest share first.
    pub shapes: Vec<ShapedAgent>,
    /// Distribution of the agent's private observations, where recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihoods: Option<Likelihood>,
    /// Result of the what-if, where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIfResult>,
}

/// An agent's evidence against one alternative hypothesis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// The alternative.
    pub hypothesis: String,
    /// D(θ*‖θ).
    pub divergence: f64,
    /// The agent's share of the network divergence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_network: Option<f64>,
}

/// Evidence for another hypothesis than the truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContraryEvidence {
    /// The hypothesis that it supports.
    pub believes: String,
    /// Margin in nats per observation.
    pub margin: f64,
    /// The same in standard errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_errors: Option<f64>,
}

/// A source of the explained agent's belief.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BeliefSource {
    /// The source.
    pub agent: String,
    /// Share of the explained agent's expected log-belief that originates here.
    pub attribution: f64,
    /// Weight that the explained agent gives the source directly.
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

/// An agent whom the explained one influences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShapedAgent {
    /// The influenced agent.
    pub agent: String,
    /// Share of that agent's expected log-belief that originates in the explained one.
    pub attribution: f64,
}

/// Result of a what-if.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhatIfResult {
    /// Which one.
    pub kind: WhatIfKind,
    /// Belief in the truth at the mean log-belief of the others.
    pub belief_before: f64,
    /// The same after the change.
    pub belief_after: f64,
    /// Agents who listen to nobody else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<String>,
    /// The others, the most affected first.
    pub agents: Vec<BeliefShift>,
}

/// The belief of one agent before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BeliefShift {
    /// The agent.
    pub agent: String,
    /// Belief in the truth.
    pub before: f64,
    /// The same after the change.
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

/// The others by the change of their belief in a hypothesis, the largest first: agent, before, after.
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
    /// use headwater_report::{Explanation, explanation::WhatIfKind};
    /// let (_, truth) = simulate(&WorldParams { steps: 1, ..WorldParams::default() })?;
    /// let explanation = Explanation::new(&truth, 0, 3, Some(WhatIfKind::Remove))?;
    /// assert_eq!((explanation.agent.as_str(), explanation.sources.len()), ("0", 3));
    /// # Ok::<(), headwater::Error>(())
    /// ```
    pub fn new(model: &Model, agent: usize, top: usize, what_if: Option<WhatIfKind>) -> Result<Self, Error> {
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
            BeliefSource {
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
            verdict: Verdict::new(model, None),
            rank,
            agents: names.len(),
            truth: hypotheses[found.truth].clone(),
            reference: model.roster.reference().to_owned(),
            hypotheses: hypotheses.to_vec(),
            influence: found.influence[agent],
            share: found.share.as_ref().map(|share| share[agent]),
            sign: found.sign.as_ref().map(|sign| sign[agent]),
            centrality: found.centrality.values[agent],
            informativeness: found.informativeness[agent],
            self_weight: stochastic.weight(agent, agent),
            divergences: (0..hypotheses.len()).filter(|&other| other != found.truth).map(divergence).collect(),
            error_probability: match model.innovation {
                Some(_) => Some(error_probability(model, found.truth, agent)?),
                None => None,
            },
            contrarian: found.contrarians.iter().find(|contrarian| contrarian.agent == agent).map(|contrarian| {
                ContraryEvidence {
                    believes: hypotheses[contrarian.believes].clone(),
                    margin: contrarian.margin,
                    standard_errors: contrarian.standard_errors,
                }
            }),
            sources: strongest(&sources, top).into_iter().map(source).collect(),
            shapes: strongest(&reach, top)
                .into_iter()
                .filter(|&other| other != agent)
                .map(|other| ShapedAgent { agent: names[other].clone(), attribution: reach[other] })
                .collect(),
            likelihoods: model.likelihoods.as_ref().map(|likelihoods| likelihoods[agent].clone()),
            what_if: what_if.map(|kind| what_if_result(model, &found, agent, kind, top)).transpose()?,
        })
    }
}

impl Explanation {
    /// With the verdict of a ranking of the model.
    #[must_use]
    pub fn with_verdict(self, verdict: Verdict) -> Self {
        Explanation { verdict, ..self }
    }

    /// Whether its numbers are findings: the data support them, or the model was given.
    pub fn supported(&self) -> bool {
        self.verdict.supported() || self.verdict.given
    }
}

fn what_if_result(
    model: &Model,
    found: &Influence,
    agent: usize,
    kind: WhatIfKind,
    top: usize,
) -> Result<WhatIfResult, Error> {
    let intervention = match kind {
        WhatIfKind::Remove => Intervention::Remove,
        WhatIfKind::Neutral => Intervention::Freeze(vec![0.0; model.evidence.ratios()]),
    };
    let outcome = influence::what_if(model, agent, &intervention)?;
    let [belief_before, belief_after] = outcome.belief(found.truth);
    let named = |(other, before, after): (usize, f64, f64)| BeliefShift {
        agent: model.roster.agents()[other].clone(),
        before,
        after,
    };
    Ok(WhatIfResult {
        kind,
        belief_before,
        belief_after,
        left_alone: model.roster.names(&outcome.stranded),
        agents: shifts(&outcome, found.truth, top).into_iter().map(named).collect(),
    })
}
