//! The ranking of agents by influence, with its uncertainty.
//!
//! In: a [`Model`], and as far as they are at hand the panel it was learned from, a graph, bootstrap intervals and p-values.
//! Out: a [`Ranking`], the same on the terminal, in `ranking.json`, on the page and in Python.

use crate::evaluate::graph_test::{GraphTestParams, ShiftPower, graph_test, shift_power, usual_draws};
use crate::evaluate::intervals::intervals;
use crate::evaluate::null_test::significance;
use crate::evaluate::{DecidingTest, Intervals, Outcome, Significance, TooFewSteps, Verdict, discoveries};
use crate::graph::Graph;
use crate::influence::{Influence, error_probabilities};
use crate::learn::refit_note;
use crate::model::Posterior;
use crate::model::posterior::{FEWEST_EFFECTIVE_DRAWS, LARGEST_R_HAT};
use crate::words::{count, number, percent, short};
use crate::{Error, Model, Panel, Roster, influence};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

pub use crate::interval_kind::IntervalKind;

/// Up to this many agents the error probabilities are computed along the way.
const ERROR_PROBABILITY_AGENTS: usize = 200;

/// How many agents the top is by default.
const TOP: usize = 3;

/// False discovery rate of the edges called significant.
const FALSE_DISCOVERIES: f64 = 0.05;

/// The damping of the usual PageRank.
const DAMPING: f64 = 0.85;

/// A ranking as it is printed and written.
///
/// ```
/// use headwater::simulate::{WorldParams, simulate};
/// use headwater::ranking::Ranking;
/// let (panel, truth) = simulate(&WorldParams { steps: 50, ..WorldParams::default() })?;
/// let mut ranking = Ranking::new(&truth)?;
/// ranking.add_activity(&panel)?;
/// assert_eq!((ranking.agents[0].rank, ranking.agents[0].silent_share), (1, Some(0.0)));
/// # Ok::<(), headwater::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ranking {
    /// The hypothesis the network settles on.
    pub truth: String,
    /// Share of the agents that agree.
    pub agreement: f64,
    /// θ_0.
    pub reference: String,
    /// Whether the data support an answer.
    pub verdict: Verdict,
    /// Network divergence K(θ*, θ) of every other hypothesis.
    pub divergence: BTreeMap<String, f64>,
    /// How the centrality came about.
    pub network: CentralityDetails,
    /// Kind of the intervals, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<IntervalKind>,
    /// Why there are none, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals_impossible: Option<TooFewSteps>,
    /// 90 % interval of δ, where the posterior was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptation_interval: Option<(f64, f64)>,
    /// Agents, the most influential first.
    pub agents: Vec<RankedAgent>,
    /// The smallest p-values first, where the permutation test was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<RankedEdge>>,
    /// How often listening would have been found in data like these, simulated, where there is no evidence and no graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<ShiftPower>,
    /// Notes on the numbers; not saved in files.
    #[serde(skip)]
    pub notes: Vec<String>,
}

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
}

impl RankedEdge {
    /// A weight with its p-value, and whether it is significant.
    pub fn new(source: String, target: String, weight: f64, p_value: f64, significant: bool) -> Self {
        RankedEdge { source, target, weight, p_value, significant }
    }
}

/// How the centrality came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CentralityDetails {
    /// ‖Au − u‖₁ of the Perron vector.
    pub residual: f64,
    /// Sum of absolute changes that made the weights non-negative and summing to one.
    pub moved: f64,
    /// Sizes of the strongly connected components.
    pub components: Vec<usize>,
    /// Where opinions originate.
    pub sources: Vec<OpinionSource>,
}

/// Agents that give weight to nobody outside their own group: a closed component from which opinions originate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpinionSource {
    /// Their names.
    pub agents: Vec<String>,
    /// The part of the network's opinion that starts with them.
    pub share: f64,
}

/// One agent; what was not computed is absent. The columns are explained in `docs/reference/ranking.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RankedAgent {
    /// Name.
    pub agent: String,
    /// 1 is the most influential.
    pub rank: usize,
    /// Centrality × informativeness.
    pub influence: f64,
    /// Part of all influence, in absolute value where some influences are negative; shares sum to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// +1 or −1, the sign of the influence; present only where some influences are negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<i8>,
    /// Lower end of its 90 % interval, in the direction of the sign: below zero where the sign is uncertain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_high: Option<f64>,
    /// Weight of the agent in the network's long-run opinion.
    pub centrality: f64,
    /// Divergence of the agent's private evidence, summed over the hypotheses.
    pub informativeness: f64,
    /// Share of the network's mean opinion that originates with this agent.
    pub origin: f64,
    /// Lower end of the 90 % interval of the rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_low: Option<usize>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_high: Option<usize>,
    /// Share of resamples that rank the agent among the first k.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k_probability: Option<f64>,
    /// Probability that the agent's share is larger than that of the next agent in the ranking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_probability: Option<f64>,
    /// 90 % interval of the centrality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centrality_low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centrality_high: Option<f64>,
    /// What was learned about the strength of the agent as a speaker beyond the graph, in nats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub information: Option<f64>,
    /// Of the permutation test of the weight others give this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Probability that the agent's belief favours a wrong hypothesis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_probability: Option<f64>,
    /// The hypothesis that the agent's own evidence favours, where that is not the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian: Option<String>,
    /// By how much, in nats an observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian_margin: Option<f64>,
    /// The same in standard errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrarian_standard_errors: Option<f64>,
    /// Number of posts.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "post_count")]
    pub posts: Option<u64>,
    /// Share of steps without a post.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_share: Option<f64>,
    /// Followers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_degree: Option<usize>,
    /// PageRank in the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagerank: Option<f64>,
}

impl RankedAgent {
    /// The share with its sign.
    pub fn signed_share(&self) -> Option<f64> {
        self.share.map(|share| if self.sign == Some(-1) { -share } else { share })
    }

    /// The 90 % interval of the share with its sign.
    pub fn signed_interval(&self) -> Option<(f64, f64)> {
        Some(self.directed((self.share_low?, self.share_high?)))
    }

    /// An interval of the signed share in the direction of the sign, or back.
    fn directed(&self, (low, high): (f64, f64)) -> (f64, f64) {
        if self.sign == Some(-1) { (-high, -low) } else { (low, high) }
    }
}

/// How uncertainty is measured: bootstrap resamples for intervals, circular shifts for p-values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncertainty {
    /// How many resamples; none for no intervals.
    pub bootstrap: Option<u64>,
    /// How many circular shifts; none for no p-values.
    pub null: Option<u64>,
    /// How many agents the top is.
    pub top: usize,
    /// Of both.
    pub seed: u64,
}

impl Default for Uncertainty {
    fn default() -> Self {
        Uncertainty { bootstrap: None, null: None, top: 3, seed: 21 }
    }
}

impl Ranking {
    /// The ranking by a model alone.
    pub fn new(model: &Model) -> Result<Self, Error> {
        Ranking::from_influence(model, &influence(model)?)
    }

    /// The same from influence already computed.
    pub fn from_influence(model: &Model, found: &Influence) -> Result<Self, Error> {
        let errors = match model.innovation {
            Some(_) if model.combination.agents() <= ERROR_PROBABILITY_AGENTS => {
                Some(error_probabilities(model, found.truth)?)
            }
            _ => None,
        };
        let hypotheses = model.roster.hypotheses();
        let contrarian = |agent: usize| found.contrarians.iter().find(|contrarian| contrarian.agent == agent);
        let agents = (found.ranking().into_iter().enumerate())
            .map(|(position, agent)| RankedAgent {
                agent: model.roster.agents()[agent].clone(),
                rank: position + 1,
                influence: found.influence[agent],
                share: found.share.as_ref().map(|share| share[agent]),
                sign: found.sign.as_ref().map(|sign| sign[agent]),
                share_low: None,
                share_high: None,
                rank_low: None,
                rank_high: None,
                top_k_probability: None,
                ahead_probability: None,
                centrality_low: None,
                centrality_high: None,
                information: None,
                p_value: None,
                centrality: found.centrality.values[agent],
                informativeness: found.informativeness[agent],
                origin: found.origin[agent],
                error_probability: errors.as_ref().map(|errors| errors[agent]),
                contrarian: contrarian(agent).map(|contrarian| hypotheses[contrarian.believes].clone()),
                contrarian_margin: contrarian(agent).map(|contrarian| contrarian.margin),
                contrarian_standard_errors: contrarian(agent).and_then(|contrarian| contrarian.standard_errors),
                posts: None,
                silent_share: None,
                in_degree: None,
                pagerank: None,
            })
            .collect();
        let divergence = (0..hypotheses.len()).filter(|&hypothesis| hypothesis != found.truth);
        let mut ranking = Ranking {
            truth: hypotheses[found.truth].clone(),
            agreement: found.agreement,
            reference: model.roster.reference().to_owned(),
            verdict: Verdict::new(model, None),
            divergence: divergence
                .map(|hypothesis| (hypotheses[hypothesis].clone(), found.divergence[hypothesis]))
                .collect(),
            network: CentralityDetails {
                residual: found.centrality.residual,
                moved: found.centrality.moved,
                components: found.centrality.components.iter().map(Vec::len).collect(),
                sources: (found.centrality.sources.iter())
                    .map(|source| OpinionSource { agents: model.roster.names(&source.agents), share: source.share })
                    .collect(),
            },
            intervals: None,
            intervals_impossible: None,
            adaptation_interval: None,
            agents,
            edges: None,
            power: None,
            notes: notes(model, found),
        };
        ranking.add_posterior(model, TOP)?;
        Ok(ranking)
    }

    /// Adds credible intervals where the posterior of the model was sampled and its chains have converged. `top` is how many
    /// agents the top has.
    pub fn add_posterior(&mut self, model: &Model, top: usize) -> Result<(), Error> {
        let Some(posterior) = model.diagnostics.posterior.as_ref().filter(|posterior| posterior.converged()) else {
            return Ok(());
        };
        let (truth, ratios) = (model.roster.hypothesis(&self.truth)?, model.roster.ratios());
        self.add_intervals(&posterior.intervals(truth, ratios, top), &model.roster)?;
        self.intervals = Some(IntervalKind::Posterior);
        self.adaptation_interval = Some(posterior.adaptation());
        let agents: Vec<usize> =
            self.agents.iter().map(|row| model.roster.agent(&row.agent)).collect::<Result<_, _>>()?;
        let ahead = posterior.probabilities_ahead(truth, ratios, &agents);
        for (place, row) in self.agents.iter_mut().enumerate() {
            let (low, high) = posterior.centrality(agents[place]);
            (row.centrality_low, row.centrality_high) = (Some(low), Some(high));
            row.ahead_probability = ahead.get(place).copied();
            row.information = posterior.information.get(agents[place]).copied();
        }
        Ok(())
    }

    /// Adds intervals and p-values, where asked for, by fitting again with the recorded method. May take long. Where there are too
    /// few time steps for one of them, [`Ranking::too_few_steps`] says so.
    pub fn add_uncertainty(&mut self, wanted: &Uncertainty, model: &Model, panel: &Panel) -> Result<(), Error> {
        if wanted.bootstrap.is_none() && wanted.null.is_none() {
            return Ok(());
        }
        self.add_refit_note(model);
        if let Some(count) = wanted.bootstrap {
            match TooFewSteps::told_apart(intervals(panel, model, count, wanted.top, wanted.seed))? {
                Ok(found) => self.add_intervals(&found, &model.roster)?,
                Err(reason) => self.add_intervals_impossible(reason),
            }
        }
        if let Some(count) = wanted.null {
            match TooFewSteps::told_apart(significance(panel, model, count, wanted.seed))? {
                Ok(found) => self.add_significance(&found, model)?,
                Err(reason) => self.add_shifts_impossible(reason),
            }
        }
        Ok(())
    }

    /// Notes that bootstrap intervals are not possible.
    pub fn add_intervals_impossible(&mut self, reason: TooFewSteps) {
        self.intervals_impossible = Some(reason);
    }

    /// Notes that circular shifts are not possible, in the verdict as well.
    pub fn add_shifts_impossible(&mut self, reason: TooFewSteps) {
        self.verdict = std::mem::take(&mut self.verdict).with_shifts_impossible(reason);
    }

    /// What was asked for and is not possible with so few time steps, in sentences.
    pub fn too_few_steps(&self) -> Vec<String> {
        let intervals = self.intervals_impossible.map(|reason| reason.without_intervals());
        let shifts = self.verdict.shifts_impossible.map(|reason| reason.without_shifts());
        intervals.into_iter().chain(shifts).collect()
    }

    /// Tests whether opinion travels along a graph of the agents of a roster, which then decides the verdict, with companions,
    /// and with power where nothing was found. `groups` are those of the agents, otherwise communities of the graph; the panel
    /// has at least these agents, in any order. Where this graph or this test is the obstacle, the verdict says so and rests on
    /// circular shifts as without a graph.
    ///
    /// Errors: [`Error::Untestable`] where the opinions allow no test of anything, [`Error::UnknownName`] for agents that the
    /// panel does not have, and those of [`graph_test`].
    pub fn add_graph_test(
        &mut self,
        panel: &Panel,
        graph: &Graph,
        groups: Option<Vec<usize>>,
        roster: &Roster,
        seed: u64,
    ) -> Result<(), Error> {
        let aligned;
        let panel = if panel.roster().agents() == roster.agents() {
            panel
        } else {
            let agents = roster.agents().iter().map(|name| panel.roster().agent(name));
            aligned = panel.among(&agents.collect::<Result<Vec<usize>, Error>>()?)?;
            &aligned
        };
        let params = GraphTestParams { draws: usual_draws(graph), groups, seed, ..GraphTestParams::default() };
        let tested = match graph_test(&[panel], graph, &params) {
            Err(Error::Untestable(reason)) if !reason.without_opinions() => Err(reason),
            found => Ok(found?),
        };
        self.verdict = std::mem::take(&mut self.verdict).with_graph(tested);
        Ok(())
    }

    /// Simulates how strong listening must be to be found in this panel, where circular shifts were run
    /// ([`Ranking::add_significance`]) and decide, and nothing was found. Panels that are too large or too small for that are
    /// left without.
    pub fn add_power(&mut self, panel: &Panel, model: &Model, seed: u64) -> Result<(), Error> {
        if self.verdict.outcome == Outcome::NoEvidence && self.verdict.test == Some(DecidingTest::CircularShifts) {
            self.power = shift_power(panel, model, seed)?;
        }
        Ok(())
    }

    /// Notes how intervals and p-values were made where the model's own method cannot be repeated exactly.
    pub fn add_refit_note(&mut self, model: &Model) {
        self.notes.extend(refit_note(model));
    }

    /// Adds bootstrap intervals.
    pub fn add_intervals(&mut self, intervals: &Intervals, roster: &Roster) -> Result<(), Error> {
        self.intervals = Some(IntervalKind::Bootstrap);
        for row in &mut self.agents {
            let agent = roster.agent(&row.agent)?;
            let (low, high) = row.directed(intervals.share[agent]);
            (row.share_low, row.share_high) = (Some(low), Some(high));
            (row.rank_low, row.rank_high) = (Some(intervals.rank[agent].0), Some(intervals.rank[agent].1));
            row.top_k_probability = Some(intervals.top[agent]);
        }
        Ok(())
    }

    /// Adds the p-values of the permutation test, and the verdict with it.
    pub fn add_significance(&mut self, found: &Significance, model: &Model) -> Result<(), Error> {
        for row in &mut self.agents {
            row.p_value = Some(found.agents[model.roster.agent(&row.agent)?]);
        }
        self.verdict = std::mem::take(&mut self.verdict).with_significance(found);
        self.edges = Some(edges(model, found));
        Ok(())
    }

    /// Adds in-degree and PageRank in a graph.
    pub fn add_graph(&mut self, graph: &Graph, roster: &Roster) -> Result<(), Error> {
        let (followers, pagerank) = (graph.followers(), graph.pagerank(DAMPING));
        for row in &mut self.agents {
            let agent = roster.agent(&row.agent)?;
            row.in_degree = Some(followers[agent]);
            row.pagerank = Some(pagerank[agent]);
        }
        Ok(())
    }

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

    /// Adds the number of posts and the share of silent steps.
    pub fn add_activity(&mut self, panel: &Panel) -> Result<(), Error> {
        let silence = panel.silence();
        let steps = panel.steps() as f64;
        for row in &mut self.agents {
            let agent = panel.roster().agent(&row.agent)?;
            row.posts = Some((0..panel.steps()).map(|step| u64::from(panel.posts(step, agent))).sum());
            row.silent_share = Some(silence[agent] as f64 / steps);
        }
        Ok(())
    }
}

/// Positive weights between different agents with their p-values, the smallest first.
fn edges(model: &Model, found: &Significance) -> Vec<RankedEdge> {
    let agents = model.combination.agents();
    let names = model.roster.agents();
    let heard: Vec<(usize, usize, f64)> =
        model.combination.edges().filter(|&(speaker, listener, weight)| speaker != listener && weight > 0.0).collect();
    let p_values: Vec<f64> =
        heard.iter().map(|&(speaker, listener, _)| found.edges[listener * agents + speaker]).collect();
    let significant = discoveries(&p_values, FALSE_DISCOVERIES);
    let mut rows: Vec<RankedEdge> = (heard.iter().zip(&p_values).zip(significant))
        .map(|((&(speaker, listener, weight), &p_value), significant)| RankedEdge {
            source: names[speaker].clone(),
            target: names[listener].clone(),
            weight,
            p_value,
            significant,
        })
        .collect();
    rows.sort_by(|a, b| a.p_value.total_cmp(&b.p_value).then(b.weight.total_cmp(&a.weight)));
    rows
}

/// Notes on the numbers.
fn notes(model: &Model, found: &Influence) -> Vec<String> {
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

/// A number of posts; files of version 0.1 have posts per step, which is another number, and is left out.
fn post_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<f64>::deserialize(from)?;
    Ok(number.filter(|number| *number >= 0.0 && number.fract() == 0.0).map(|number| number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Outcome;
    use crate::simulate::{WorldParams, simulate};

    #[test]
    fn contrarians_are_named_only_where_the_data_support_an_answer() {
        let (_, truth) = simulate(&WorldParams { steps: 1, ..WorldParams::default() }).unwrap();
        let mut ranking = Ranking::new(&truth).unwrap();
        for (place, errors) in [(0, Some(4.0)), (1, Some(2.0)), (2, None)] {
            let row = &mut ranking.agents[place];
            (row.contrarian, row.contrarian_margin) = (Some("h1".into()), Some(0.25));
            row.contrarian_standard_errors = errors;
        }
        let (first, third) = (ranking.agents[0].agent.clone(), ranking.agents[2].agent.clone());
        let wanted = [
            format!("contrarian: the evidence of {first} points to \"h1\", by 4.0 standard errors"),
            format!("contrarian: the evidence of {third} points to \"h1\", by 0.2500 nats an observation"),
            "evidence against the verdict by less than three standard errors: 1 agent".to_owned(),
        ];
        assert!(ranking.verdict.given);
        assert_eq!(ranking.contrarian_notes(), wanted);
        ranking.verdict.given = false;
        assert!(ranking.contrarian_notes().is_empty(), "nothing was tested");
        ranking.verdict.outcome = Outcome::Supported;
        assert_eq!(ranking.contrarian_notes(), wanted);
        ranking.verdict.outcome = Outcome::NoEvidence;
        assert!(ranking.contrarian_notes().is_empty());
        assert!(!ranking.notes.iter().any(|note| note.contains("contrarian")));
    }

    #[test]
    fn posts_are_a_count_and_those_per_step_of_older_files_are_left_out() {
        let (panel, truth) = simulate(&WorldParams { steps: 50, ..WorldParams::default() }).unwrap();
        let mut ranking = Ranking::new(&truth).unwrap();
        ranking.add_activity(&panel).unwrap();
        assert!(ranking.agents.iter().all(|row| row.posts == Some(50)));
        let mut json = serde_json::to_value(&ranking).unwrap();
        assert_eq!(json["agents"][0]["posts"].to_string(), "50");
        json["agents"][0]["posts"] = 1.5.into();
        let back: Ranking = serde_json::from_value(json).unwrap();
        assert_eq!((back.agents[0].posts, back.agents[1].posts), (None, Some(50)));
    }
}
