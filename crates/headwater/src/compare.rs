//! Errors of a model against a known truth; agents are matched by name.
//!
//! In: a [`Model`] and a [`GroundTruth`]. Out: a [`Comparison`] of the parts that the truth has.

use crate::{Combination, Error, Evidence, Model, Roster, influence};
use serde::Serialize;

/// What is known of a network; any part may be missing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GroundTruth {
    /// Names.
    pub roster: Roster,
    /// A.
    pub combination: Option<Combination>,
    /// L̄.
    pub evidence: Option<Evidence>,
    /// δ.
    pub adaptation: Option<f64>,
    /// Influence shares with their signs.
    pub share: Option<Vec<f64>>,
}

impl GroundTruth {
    /// Of these agents and hypotheses nothing is known yet; set the fields that are.
    pub fn new(roster: Roster) -> Self {
        GroundTruth { roster, combination: None, evidence: None, adaptation: None, share: None }
    }

    /// All parts of a model.
    pub fn from_model(model: &Model) -> Result<Self, Error> {
        Ok(GroundTruth {
            roster: model.roster.clone(),
            combination: Some(model.combination.clone()),
            evidence: Some(model.evidence.clone()),
            adaptation: Some(model.adaptation),
            share: influence(model)?.signed_share(),
        })
    }

    /// The same in the order of another roster, all of whose agents and hypotheses must be known; evidence is relative to
    /// that roster's reference. Shares are dropped.
    pub fn aligned(&self, roster: &Roster) -> Result<Self, Error> {
        let agents: Vec<usize> =
            roster.agents().iter().map(|name| self.roster.agent(name)).collect::<Result<_, _>>()?;
        let size = agents.len();
        let combination = self.combination.as_ref().map(|truth| {
            let cells = (0..size * size).map(|cell| truth.weight(agents[cell % size], agents[cell / size]));
            Combination::from_columns(cells.collect(), size)
        });
        let evidence = self.evidence.as_ref().map(|truth| {
            let names = roster.hypotheses().iter();
            let order: Vec<usize> = names.map(|name| self.roster.hypothesis(name)).collect::<Result<_, _>>()?;
            let rows = agents.iter().flat_map(|&agent| order[1..].iter().map(move |&hypothesis| (agent, hypothesis)));
            let rows =
                rows.map(|(agent, hypothesis)| truth.against(agent, hypothesis) - truth.against(agent, order[0]));
            Evidence::from_rows(rows.collect(), size, order.len() - 1)
        });
        Ok(GroundTruth {
            roster: roster.clone(),
            combination: combination.transpose()?,
            evidence: evidence.transpose()?,
            adaptation: self.adaptation,
            share: None,
        })
    }
}

/// Distances between a model and a truth.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Agents that both name.
    pub agents: usize,
    /// ‖Â − A‖²_F.
    pub combination_error: Option<f64>,
    /// ‖L̂ − L̄‖²_F.
    pub evidence_error: Option<f64>,
    /// Σ |difference of signed shares|.
    pub influence_l1: Option<f64>,
    /// Probability that a true edge outweighs a missing one, off the diagonal.
    pub edge_auc: Option<f64>,
    /// Share of the true top k among the model's top k.
    pub top_k_hit: Option<f64>,
    /// |δ̂ − δ|.
    pub adaptation_error: Option<f64>,
}

/// Compares over the agents that both name; hypotheses are matched by name too, and evidence is brought to the
/// reference of the truth.
pub fn compare(model: &Model, known: &GroundTruth, top: usize) -> Result<Comparison, Error> {
    let pairs: Vec<(usize, usize)> = (known.roster.agents().iter().enumerate())
        .filter_map(|(theirs, name)| Some((model.roster.agent(name).ok()?, theirs)))
        .collect();
    if pairs.len() < 2 {
        return Err(Error::Undefined {
            what: "a comparison",
            reason: format!(
                "the model and the truth share {} agent name(s): the model has {:?}…, the truth {:?}…",
                pairs.len(),
                model.roster.agents()[0],
                known.roster.agents()[0]
            ),
        });
    }
    let mut combination_error = None;
    let mut edge_auc = None;
    if let Some(truth) = &known.combination {
        let mut error = 0.0;
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for &(our_listener, their_listener) in &pairs {
            for &(our_speaker, their_speaker) in &pairs {
                let met = model.combination.weight(our_speaker, our_listener);
                let wanted = truth.weight(their_speaker, their_listener);
                error += (met - wanted).powi(2);
                if our_speaker != our_listener {
                    if wanted > 0.0 { present.push(met.abs()) } else { absent.push(met.abs()) }
                }
            }
        }
        combination_error = Some(error);
        edge_auc = auc(present, absent);
    }
    let shares = influence(model)?.signed_share().zip(known.share.clone()).map(|(ours, theirs)| {
        let pick = |&(our, their): &(usize, usize)| [ours[our], theirs[their]];
        pairs.iter().map(pick).collect::<Vec<[f64; 2]>>()
    });
    let best = |shares: &[[f64; 2]], side: usize| {
        let mut order: Vec<usize> = (0..shares.len()).collect();
        order.sort_by(|&a, &b| shares[b][side].total_cmp(&shares[a][side]).then(a.cmp(&b)));
        order.truncate(top);
        order
    };
    let top_k_hit = shares.as_ref().filter(|_| top > 0).map(|shares| {
        let (ours, theirs) = (best(shares, 0), best(shares, 1));
        theirs.iter().filter(|agent| ours.contains(agent)).count() as f64 / theirs.len() as f64
    });
    Ok(Comparison {
        agents: pairs.len(),
        combination_error,
        evidence_error: known.evidence.as_ref().and_then(|truth| evidence_error(model, known, truth, &pairs)),
        influence_l1: shares.as_ref().map(|shares| shares.iter().map(|[a, b]| (a - b).abs()).sum()),
        edge_auc,
        top_k_hit,
        adaptation_error: known.adaptation.map(|truth| (model.adaptation - truth).abs()),
    })
}

fn evidence_error(model: &Model, known: &GroundTruth, truth: &Evidence, pairs: &[(usize, usize)]) -> Option<f64> {
    let names = known.roster.hypotheses();
    if names.len() != model.roster.hypotheses().len() {
        return None;
    }
    let ours: Vec<usize> = names.iter().map(|name| model.roster.hypothesis(name).ok()).collect::<Option<_>>()?;
    let mut error = 0.0;
    for &(our, their) in pairs {
        for hypothesis in 1..names.len() {
            let met = model.evidence.against(our, ours[hypothesis]) - model.evidence.against(our, ours[0]);
            error += (met - truth.against(their, hypothesis)).powi(2);
        }
    }
    Some(error)
}

/// Area under the ROC curve, ties counted half. `None` unless there is one of each.
fn auc(present: Vec<f64>, absent: Vec<f64>) -> Option<f64> {
    if present.is_empty() || absent.is_empty() {
        return None;
    }
    let wanted = (present.len() * absent.len()) as f64;
    let mut all: Vec<(f64, bool)> = present.into_iter().map(|value| (value, true)).collect();
    all.extend(absent.into_iter().map(|value| (value, false)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = 0usize;
    let mut wins = 0.0;
    for tied in all.chunk_by(|a, b| a.0 == b.0) {
        let positives = tied.iter().filter(|(_, present)| *present).count();
        let negatives = tied.len() - positives;
        wins += positives as f64 * (below as f64 + 0.5 * negatives as f64);
        below += negatives;
    }
    Some(wins / wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{World, WorldParams};

    fn world() -> Model {
        World::new(WorldParams { steps: 1, ..Default::default() }).unwrap().truth()
    }

    #[test]
    fn a_truth_equals_itself_under_other_names_and_orders() {
        let truth = world();
        let known = GroundTruth::from_model(&truth).unwrap();
        let same = compare(&truth, &known, 3).unwrap();
        assert_eq!(same.combination_error, Some(0.0));
        assert_eq!((same.edge_auc, same.top_k_hit, same.influence_l1), (Some(1.0), Some(1.0), Some(0.0)));

        // The same world with the agents reversed and another reference hypothesis.
        let agents = 20;
        let back = |agent: usize| agents - 1 - agent;
        let mut turned = truth.clone();
        let mut hypotheses = truth.roster.hypotheses().to_vec();
        hypotheses.swap(0, 2);
        turned.roster = Roster::new(truth.roster.agents().iter().rev().cloned(), hypotheses).unwrap();
        let edges = truth.combination.edges().map(|(speaker, listener, w)| (back(speaker), back(listener), w));
        turned.combination = Combination::from_triplets(edges.collect(), agents).unwrap();
        let order = [2, 1, 0, 3, 4];
        let rows = (0..agents).flat_map(|agent| {
            let truth = &truth;
            (1..5).map(move |j| {
                truth.evidence.against(back(agent), order[j]) - truth.evidence.against(back(agent), order[0])
            })
        });
        turned.evidence = Evidence::from_rows(rows.collect(), agents, 4).unwrap();
        turned.truth = truth.truth.map(|verdict| crate::model::TrueHypothesis { hypothesis: 2, ..verdict });
        let met = compare(&turned, &known, 3).unwrap();
        assert_eq!(met.combination_error, Some(0.0));
        assert!(met.evidence_error.unwrap() < 1e-28 && met.influence_l1.unwrap() < 1e-12);
    }

    #[test]
    fn a_truth_can_be_put_in_another_order() {
        let truth = world();
        let known = GroundTruth::from_model(&truth).unwrap();
        let names = truth.roster.agents().iter().rev().cloned();
        let roster = Roster::new(names, ["h3", "h1", "h2", "h0", "h4"]).unwrap();
        let turned = known.aligned(&roster).unwrap();
        let (a, b) = (known.combination.as_ref().unwrap(), turned.combination.as_ref().unwrap());
        assert_eq!(a.weight(0, 4), b.weight(19, 15));
        let wanted = truth.evidence.against(2, 4) - truth.evidence.against(2, 3);
        assert_eq!(turned.evidence.as_ref().unwrap().against(17, 4), wanted);
        let stranger = Roster::new(["0", "nobody"], ["h0", "h1"]).unwrap();
        assert!(known.aligned(&stranger).unwrap_err().to_string().contains("nobody"));
    }

    #[test]
    fn areas_by_hand() {
        assert_eq!(auc(vec![3.0, 1.0], vec![2.0, 1.0]), Some((2.0 + 0.5) / 4.0));
        assert_eq!(auc(vec![1.0], vec![]), None);
    }

    #[test]
    fn strangers_cannot_be_compared() {
        let truth = world();
        let mut known = GroundTruth::from_model(&truth).unwrap();
        known.roster = Roster::new((0..20).map(|agent| format!("x{agent}")), ["h0", "h1", "h2", "h3", "h4"]).unwrap();
        assert!(compare(&truth, &known, 3).unwrap_err().to_string().contains("share 0 agent"));
    }
}
