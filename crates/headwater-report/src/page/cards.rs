//! One card per agent: reasons for the rank, sources of the belief, agents influenced, effect of a removal.
//!
//! The numbers of an [`Explanation`](crate::Explanation), computed for all agents at once.

use super::pack::brief;
use crate::explanation::{shifts, strongest};
use headwater::influence::{Attribution, Paths, Removals, WhatIf};
use headwater::ranking::{RankedAgent, Ranking};
use headwater::words::{count, number, percent, within};
use headwater::{Error, Model};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Agents in a list of a card.
const LISTED: usize = 8;

/// Paths on a card, and agents most changed by a removal.
const FEW: usize = 5;

/// Attributions up to this are left out.
const NEGLIGIBLE: f64 = 1e-6;

/// The explanation of one agent's rank; agents by index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// The agent.
    pub agent: usize,
    /// Reasons for the rank, one sentence each.
    pub why: Vec<String>,
    /// Weight that the agent gives their own previous belief.
    pub self_weight: f64,
    /// Sources of the expected log-belief: agent, share, direct weight.
    pub shaped_by: Vec<(usize, f64, f64)>,
    /// Agents influenced: agent, share of their expected log-belief.
    pub shapes: Vec<(usize, f64)>,
    /// Strongest paths to the agent: agents from the source on, strength.
    pub paths: Vec<(Vec<usize>, f64)>,
    /// Effect of removing the agent.
    pub without: Option<RemovalEffect>,
}

/// Effect of removing an agent on the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemovalEffect {
    /// Belief of the others in the truth with the agent.
    pub before: f64,
    /// The same without the agent.
    pub after: f64,
    /// As a sentence.
    pub words: String,
    /// The most affected: agent, before, after.
    pub most: Vec<(usize, f64, f64)>,
}

/// Cards of these agents, in this order.
pub(super) fn cards(model: &Model, ranking: &Ranking, truth: usize, chosen: &[usize]) -> Result<Vec<Card>, Error> {
    let stochastic = model.combination.stochastic().combination;
    let attribution = Attribution::from_model(model)?;
    let (sources, reach) = (attribution.sources_of_many(chosen), attribution.reach_of_many(chosen));
    let paths = Paths::new(&stochastic, model.adaptation);
    let outcomes = Removals::new(model)?.without_each(chosen)?;
    let mut rows: Vec<Option<&RankedAgent>> = vec![None; model.roster.agents().len()];
    for row in &ranking.agents {
        rows[model.roster.agent(&row.agent)?] = Some(row);
    }
    let known = ranking.agents.iter().map(|row| row.informativeness).sum::<f64>() / ranking.agents.len().max(1) as f64;
    let card = |(position, &agent): (usize, &usize)| {
        let listed = |values: &[f64]| -> Vec<usize> {
            strongest(values, LISTED + 1).into_iter().filter(|&other| values[other] > NEGLIGIBLE).collect()
        };
        let mut from = listed(&sources[position]);
        from.truncate(LISTED);
        let others: Vec<usize> = from.iter().copied().filter(|&other| other != agent).take(FEW).collect();
        let mut routes: Vec<(Vec<usize>, f64)> = paths
            .between(&others, agent)
            .into_iter()
            .flatten()
            .map(|path| (path.agents, brief(path.strength)))
            .collect();
        routes.sort_by(|a, b| b.1.total_cmp(&a.1));
        let to = listed(&reach[position]).into_iter().filter(|&other| other != agent).take(LISTED);
        Card {
            agent,
            why: rows[agent].map_or(Vec::new(), |row| why(row, ranking, known)),
            self_weight: brief(stochastic.weight(agent, agent)),
            shaped_by: from
                .iter()
                .map(|&other| (other, brief(sources[position][other]), brief(stochastic.weight(other, agent))))
                .collect(),
            shapes: to.map(|other| (other, brief(reach[position][other]))).collect(),
            paths: routes,
            without: Some(without(model, agent, truth, &outcomes[position])),
        }
    };
    Ok(chosen.par_iter().enumerate().map(card).collect())
}

/// Reasons for the rank.
fn why(row: &RankedAgent, ranking: &Ranking, known: f64) -> Vec<String> {
    let agents = ranking.agents.len();
    let part = row.signed_share().map_or(String::new(), |share| format!(", {} of all influence", percent(share)));
    let mut why = vec![format!(
        "Rank {} of {agents}: centrality {} × informativeness {} = influence {}{part}.",
        row.rank,
        number(row.centrality),
        number(row.informativeness),
        number(row.influence)
    )];
    let relative = row.centrality * agents as f64;
    why.push(match relative {
        ..=0.0 => "Centrality is zero: in the long run the network gives this agent no weight.".to_owned(),
        _ => {
            format!("Centrality, the weight others give directly and through others, is {}.", versus_average(relative))
        }
    });
    why.push(if row.informativeness < 0.0 {
        format!("Informativeness is negative: the agent's own evidence speaks against {:?}.", ranking.truth)
    } else if known > 0.0 {
        let relative = versus_average(row.informativeness / known);
        format!("Informativeness, the strength of the agent's own evidence, is {relative}.")
    } else {
        "Informativeness cannot be compared with the average: positive and negative estimates cancel.".to_owned()
    });
    if let (Some(low), Some(high)) = (row.rank_low, row.rank_high) {
        let sure = if low == high { format!("{low}") } else { format!("between {low} and {high}") };
        why.push(format!("In 90% of the resamples the rank is {sure}."));
    }
    if let Some(p) = row.p_value {
        why.push(format!("Permutation test of the weight received from others: p = {p:.3}."));
    }
    let shown = ranking.verdict.supported() || ranking.verdict.given;
    if let Some(other) = row.contrarian.as_ref().filter(|_| shown) {
        let margin = match (row.contrarian_standard_errors, row.contrarian_margin) {
            (Some(errors), _) => format!(", by {errors:.1} standard errors"),
            (None, Some(margin)) => format!(", by {} nats per observation", number(margin)),
            _ => String::new(),
        };
        why.push(format!("The agent's own evidence points to {other:?} instead{margin}."));
    }
    why
}

/// A ratio to the average in words.
fn versus_average(ratio: f64) -> String {
    match ratio {
        0.95..=1.05 => "about average".to_owned(),
        10.0.. => format!("{ratio:.0} times the average"),
        1.0.. => format!("{ratio:.1} times the average"),
        _ => format!("{ratio:.2} times the average"),
    }
}

fn without(model: &Model, agent: usize, truth: usize, outcome: &WhatIf) -> RemovalEffect {
    let [before, after] = outcome.belief(truth);
    let fine = |share: f64| format!("{:.2}%", 100.0 * share);
    let (from, to) = (fine(before), fine(after));
    let (name, truth_name) = (within(&model.roster.agents()[agent]), &model.roster.hypotheses()[truth]);
    let course = if from == to {
        format!("stay at {from}")
    } else {
        format!("{} from {from} to {to}", if after > before { "rise" } else { "fall" })
    };
    let mut words = format!("Without {name}, the belief of the others in {truth_name:?} would {course}.");
    if !outcome.stranded.is_empty() {
        words.push_str(&format!(" {} would have nobody left to listen to.", count(outcome.stranded.len(), "agent")));
    }
    let most = shifts(outcome, truth, FEW).into_iter();
    RemovalEffect {
        before: brief(before),
        after: brief(after),
        words,
        most: most.map(|(other, before, after)| (other, brief(before), brief(after))).collect(),
    }
}
