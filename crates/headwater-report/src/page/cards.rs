//! One card per agent: why this rank, who shaped it, whom it shapes, what if it were gone.
//!
//! The same numbers as [`Explanation`](crate::Explanation) has for one agent, computed for all of them at once.

use super::pack::brief;
use crate::explanation::{shifts, strongest};
use headwater::influence::{Attribution, Paths, Removals, WhatIf};
use headwater::ranking::{RankedAgent, Ranking};
use headwater::words::{count, number, percent, within};
use headwater::{Error, Model};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Names in a list of a card.
const LISTED: usize = 8;

/// Paths on a card, and agents most changed by a removal.
const FEW: usize = 5;

/// Attribution below this is not worth a line.
const NEGLIGIBLE: f64 = 1e-6;

/// Why an agent is where it is; agents by index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Which.
    pub agent: usize,
    /// In words with the numbers.
    pub why: Vec<String>,
    /// What it gives itself.
    pub self_weight: f64,
    /// Who shaped it: agent, share of its expected log-belief, weight it gives directly.
    pub shaped_by: Vec<(usize, f64, f64)>,
    /// Whom it shapes: agent, share.
    pub shapes: Vec<(usize, f64)>,
    /// Strongest paths into it: agents from the source on, strength.
    pub paths: Vec<(Vec<usize>, f64)>,
    /// What if it were gone.
    pub without: Option<Without>,
}

/// The others without an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Without {
    /// Their belief in the truth now.
    pub before: f64,
    /// And then.
    pub after: f64,
    /// In a sentence.
    pub words: String,
    /// The most changed: agent, before, after.
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

/// Why an agent ranks where it does.
fn why(row: &RankedAgent, ranking: &Ranking, known: f64) -> Vec<String> {
    let agents = ranking.agents.len();
    let part = row.share.map_or(String::new(), |share| format!(", {} of all influence", percent(share)));
    let mut why = vec![format!(
        "Rank {} of {agents}: centrality {} × informativeness {} = influence {}{part}.",
        row.rank,
        number(row.centrality),
        number(row.informativeness),
        number(row.influence)
    )];
    let heard = row.centrality * agents as f64;
    why.push(match heard {
        ..=0.0 => "In the long run the network does not listen to it.".to_owned(),
        _ => format!("It is heard {} as the average agent, directly and through others.", times(heard)),
    });
    why.push(if row.informativeness < 0.0 {
        format!(
            "What it knows by itself is estimated to speak against {:?}, on which the network settles.",
            ranking.truth
        )
    } else if known > 0.0 {
        format!("It knows {} as the average agent beyond what it took from others.", times(row.informativeness / known))
    } else {
        "What it knows beyond what it took from others cannot be compared: estimates cancel.".to_owned()
    });
    if let (Some(low), Some(high)) = (row.rank_low, row.rank_high) {
        let sure = if low == high { format!("{low}") } else { format!("between {low} and {high}") };
        why.push(format!("In 90% of the resamples its rank is {sure}."));
    }
    if let Some(p) = row.p_value {
        why.push(format!("A world in which nobody listens has it heard as much with probability {p:.3}."));
    }
    if let Some(other) = &row.contrarian {
        let margin = match (row.contrarian_standard_errors, row.contrarian_margin) {
            (Some(errors), _) => format!(", by {errors:.1} standard errors"),
            (None, Some(margin)) => format!(", by {} nats an observation", number(margin)),
            _ => String::new(),
        };
        why.push(format!("Its own evidence points to {other:?} instead{margin}."));
    }
    why
}

/// A ratio as people say it.
fn times(ratio: f64) -> String {
    match ratio {
        0.95..=1.05 => "as much".to_owned(),
        10.0.. => format!("{ratio:.0} times as much"),
        1.0.. => format!("{ratio:.1} times as much"),
        _ => format!("{ratio:.2} times as much"),
    }
}

fn without(model: &Model, agent: usize, truth: usize, outcome: &WhatIf) -> Without {
    let [before, after] = outcome.belief(truth);
    let fine = |share: f64| format!("{:.2}%", 100.0 * share);
    let (from, to) = (fine(before), fine(after));
    let (name, truth_name) = (within(&model.roster.agents()[agent]), &model.roster.hypotheses()[truth]);
    let course = if from == to {
        format!("stay at {from}")
    } else {
        format!("{} from {from} to {to}", if after > before { "rise" } else { "fall" })
    };
    let mut words = format!("Without {name} the others' belief in {truth_name:?} would {course}.");
    if !outcome.stranded.is_empty() {
        words.push_str(&format!(" {} would have nobody else to hear.", count(outcome.stranded.len(), "agent")));
    }
    let most = shifts(outcome, truth, FEW).into_iter();
    Without {
        before: brief(before),
        after: brief(after),
        words,
        most: most.map(|(other, before, after)| (other, brief(before), brief(after))).collect(),
    }
}
