//! Notes to be read with the numbers of a ranking.

use super::{RankedAgent, Ranking};
use crate::influence::Influence;
use crate::model::Posterior;
use crate::model::posterior::{FEWEST_EFFECTIVE_DRAWS, LARGEST_R_HAT};
use crate::words::{count, number, percent, short};
use crate::{Model, Roster};

impl Ranking {
    /// Agents whose own evidence points to another hypothesis than the truth, in sentences: those by at least three standard
    /// errors one by one, the rest as a count. Empty where the data do not support an answer; what a given model holds needs
    /// no support.
    pub fn contrarian_notes(&self) -> Vec<String> {
        if !self.verdict.supported() && !self.verdict.given {
            return Vec::new();
        }
        let contrarian = |row: &&RankedAgent| row.contrarian.is_some();
        // With dozens of agents and several alternatives noise alone often gives two standard errors, seldom three.
        let clear = |row: &&RankedAgent| row.contrarian_standard_errors.is_none_or(|errors| errors >= 3.0);
        let (shown, unclear): (Vec<&RankedAgent>, Vec<&RankedAgent>) =
            self.agents.iter().filter(contrarian).partition(clear);
        let mut notes = Vec::new();
        for row in shown.iter().take(5) {
            let margin = match (row.contrarian_standard_errors, row.contrarian_margin) {
                (Some(errors), _) => format!(", by {errors:.1} standard errors"),
                (None, Some(margin)) => format!(", by {} nats an observation", number(margin)),
                (None, None) => String::new(),
            };
            let believes = row.contrarian.as_deref().unwrap_or_default();
            notes.push(format!("contrarian: the evidence of {} points to {believes:?}{margin}", short(&row.agent)));
        }
        if !unclear.is_empty() {
            notes.push(format!(
                "evidence against the verdict by less than three standard errors: {}",
                count(unclear.len(), "agent")
            ));
        }
        notes
    }
}

/// Notes on the numbers.
pub(super) fn notes(model: &Model, found: &Influence) -> Vec<String> {
    let mut notes = Vec::new();
    let names = |agents: &[usize]| model.roster.list(agents);
    let sources = &found.centrality.sources;
    let inside: usize = sources.iter().map(|source| source.agents.len()).sum();
    let agents = model.combination.agents();
    if inside < agents || sources.len() > 1 {
        let parts: Vec<String> =
            sources.iter().map(|source| format!("{} ({})", names(&source.agents), percent(source.share))).collect();
        notes.push(format!(
            "the network is not strongly connected: in the long run every opinion comes from {}; agents outside ({}) have centrality 0 and are ordered by origin",
            parts.join(" or "),
            agents - inside
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
    if let Some(posterior) = &model.diagnostics.posterior {
        notes.extend(posterior_notes(posterior, &model.roster));
    }
    if found.share.is_none() {
        notes.push("every estimated influence is zero, so there are no shares".into());
    }
    let (net, gross) =
        found.influence.iter().fold((0.0, 0.0), |(net, gross), value| (net + value, gross + value.abs()));
    if found.sign.is_some() {
        notes.push(format!(
            "some influences are negative: shares are taken over absolute influences and keep the sign (sum of absolute values {}, net sum {})",
            number(gross),
            number(net)
        ));
        if found.influence.iter().all(|value| *value <= 0.0) {
            notes.push("no influence is positive: ranks follow the influence with its sign, so that the first agents are those with the weakest influence".to_owned());
        }
    }
    notes
}

/// Notes on the draws of the posterior.
fn posterior_notes(posterior: &Posterior, roster: &Roster) -> Vec<String> {
    if !posterior.converged() {
        return vec![format!(
            "no intervals: the {} chains of the posterior have not converged after {} (smallest effective sample size {:.0}, {FEWEST_EFFECTIVE_DRAWS} needed; largest R-hat {:.3}, below {LARGEST_R_HAT} needed); more draws, more chains or more time would help",
            posterior.chains,
            count(posterior.draws, "draw"),
            posterior.effective_size,
            posterior.r_hat
        )];
    }
    let mut notes = Vec::new();
    if posterior.normal_approximation {
        notes.push(
            "intervals are from a normal approximation of the posterior, because the network is too large for chains; in simulated worlds 90 % intervals of centralities covered 78 to 81 %".to_owned(),
        );
    }
    if posterior.information.is_empty() {
        return notes;
    }
    let unknown = posterior.not_learned();
    if unknown.len() == posterior.information.len() {
        notes.push(
            "the centralities repeat the graph: the beliefs tell nothing about how strongly any agent is heard"
                .to_owned(),
        );
        return notes;
    }
    let note = format!(
        "nothing was learned beyond the graph about how strongly {} of {} are heard: {}",
        unknown.len(),
        count(posterior.information.len(), "agent"),
        roster.list(&unknown)
    );
    notes.extend((!unknown.is_empty()).then_some(note));
    notes
}
