//! The ranking of agents by influence, with its uncertainty.
//!
//! In: a [`Model`], and as far as they are at hand the panel it was learned from, a graph, bootstrap intervals and p-values.
//! Out: a [`Ranking`], the same on the terminal, in `ranking.json`, on the page and in Python.

mod edges;
mod notes;
mod rows;

use crate::evaluate::graph_test::{GraphTestParams, ShiftPower, graph_test, shift_power, usual_draws};
use crate::evaluate::intervals::intervals;
use crate::evaluate::null_test::significance;
use crate::evaluate::{DecidingTest, Intervals, Outcome, Significance, TooFewSteps, Verdict};
use crate::graph::Graph;
use crate::influence::{Influence, error_probabilities};
use crate::learn::refit_note;
use crate::{Error, Model, Panel, Roster, influence};
use edges::edges;
use notes::notes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::interval_kind::IntervalKind;
pub use edges::{EdgeRow, RankedEdge};
pub use rows::{CentralityDetails, OpinionSource, RankedAgent};

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
