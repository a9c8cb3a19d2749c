//! Expectation-maximisation, round by round.

use super::parameters::{Parameters, extrapolated, in_all};
use super::{StateSpaceParams, check};
use crate::learn::blocks::Blocks;
use crate::learn::common_trend::CommonTrend;
use crate::learn::fit;
use crate::learn::kalman::{Filtered, Smoothed};
use crate::learn::method::Method;
use crate::learn::regressors::{DistinctAgents, Regressors};
use crate::learn::strengths::Strengths;
use crate::learn::whitened;
use crate::model::{self, ColumnDiagnostics, Common, Diagnostics, EpisodeEvidence, Innovation, Smoothing, Track};
use crate::{Combination, Error, Evidence, Model, Panel};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Result of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Round {
    /// Rounds done.
    pub number: usize,
    /// Penalised log-likelihood of all observations at the parameters this round started from.
    pub log_likelihood: f64,
    /// Gain of the previous round per observed belief; none in the first.
    pub gain: Option<f64>,
    /// Whether the gain was below the tolerance.
    pub converged: bool,
}

/// Expectation-maximisation, a round at a time, so that a caller can follow and stop it.
///
/// ```
/// use headwater::{learn::state_space::{StateSpaceLearner, StateSpaceParams}, simulate::noisy::{NoisyWorld, noisy}};
/// let (panel, _) = noisy(&NoisyWorld { agents: 5, steps: 200, ..NoisyWorld::default() }).unwrap();
/// let mut learner = StateSpaceLearner::new(&panel, &StateSpaceParams::default()).unwrap();
/// let (first, second) = (learner.round().unwrap(), learner.round().unwrap());
/// assert!(second.log_likelihood > first.log_likelihood);
/// ```
#[derive(Debug)]
pub struct StateSpaceLearner<'a> {
    /// What is learned from.
    panel: Cow<'a, Panel>,
    /// One block of transitions for each episode.
    blocks: Blocks,
    pub(super) params: StateSpaceParams,
    pub(super) distinct: DistinctAgents,
    beliefs: usize,
    pub(super) state: Parameters,
    latest: Option<Round>,
    /// The parameters before the first of two ordinary rounds.
    begun: Option<Vec<f64>>,
    /// Parameters to return to, should the extrapolated ones be less likely.
    fallback: Option<Parameters>,
}

impl<'a> StateSpaceLearner<'a> {
    /// Prepares a fit to a whole panel.
    pub fn new(panel: &'a Panel, params: &StateSpaceParams) -> Result<Self, Error> {
        StateSpaceLearner::of_part(panel, Cow::Borrowed(panel), params)
    }

    /// Prepares a fit to the first steps of each episode, so many as `seen`.
    pub(crate) fn with_seen(panel: &'a Panel, seen: &[usize], params: &StateSpaceParams) -> Result<Self, Error> {
        StateSpaceLearner::of_part(panel, Cow::Owned(panel.kept(seen)), params)
    }

    /// Prepares a fit to a part of a panel.
    fn of_part(panel: &'a Panel, part: Cow<'a, Panel>, params: &StateSpaceParams) -> Result<Self, Error> {
        check(panel, part.steps(), params)?;
        let distinct = DistinctAgents::from_panel(&panel.clone().carry_forward().0);
        if distinct.regressors.is_empty() {
            return Err(Error::Undefined {
                what: "a network",
                reason: "no agent's beliefs change: there is nothing to learn from".into(),
            });
        }
        let spoken = |step: usize| (0..part.agents()).filter(|&agent| part.posts(step, agent) > 0).count();
        let beliefs: usize = (0..part.steps()).map(spoken).sum();
        let state = Parameters::first(&part, params, &distinct);
        Ok(StateSpaceLearner {
            blocks: Blocks::of_episodes(&part),
            panel: part,
            params: params.clone(),
            distinct,
            beliefs: beliefs * panel.ratios(),
            state,
            latest: None,
            begun: None,
            fallback: None,
        })
    }

    /// One round: the smoothed beliefs, then the network. Cost: about 11(NH)³ operations a step.
    ///
    /// Every third round starts from the extrapolation of the two before it, if that is likelier, which speeds up
    /// convergence.
    pub fn round(&mut self) -> Result<Round, Error> {
        let fallback = self.fallback.take();
        let mut from_extrapolation = fallback.is_some();
        let mut filtered = self.state.filtered(&self.panel);
        if let Some(fallback) = fallback {
            let reached = self.latest.map_or(f64::NEG_INFINITY, |latest| latest.log_likelihood);
            if !filtered.as_ref().is_ok_and(|(log_likelihood, _)| *log_likelihood >= reached) {
                self.state = fallback;
                from_extrapolation = false;
                filtered = self.state.filtered(&self.panel);
            }
        }
        let (log_likelihood, filtered) = filtered?;
        let smoothed = self.state.dynamics.smooth(&self.panel, &filtered, &self.blocks.ranges)?;
        drop(filtered);
        let begun = std::mem::take(&mut self.begun);
        let before = self.state.numbers(&self.params);
        self.state.maximise(&self.panel, &smoothed, &self.params, &self.distinct)?;
        match begun {
            None => self.begun = Some(before),
            Some(first) => {
                let ahead = extrapolated(&first, &before, &self.state.numbers(&self.params));
                let mut state = self.state.clone();
                if state.read(&ahead, &self.params, &self.distinct) {
                    self.fallback = Some(std::mem::replace(&mut self.state, state));
                }
            }
        }
        let latest = self.latest;
        let gain = latest.map(|latest| (log_likelihood - latest.log_likelihood) / self.beliefs as f64);
        let round = Round {
            number: latest.map_or(0, |latest| latest.number) + 1,
            log_likelihood,
            gain,
            // Only the gain of an ordinary round indicates convergence.
            converged: !from_extrapolation && gain.is_some_and(|gain| gain < self.params.tolerance),
        };
        self.latest = Some(round);
        Ok(round)
    }

    /// Rounds until convergence or their largest number.
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_observed(&|| ())
    }

    /// The same, with a report of every round.
    pub(crate) fn run_observed(&mut self, each: &dyn Fn()) -> Result<(), Error> {
        while !self.done() {
            self.round()?;
            each();
        }
        self.settle();
        Ok(())
    }

    /// Returns to the parameters before an extrapolation that was not tested.
    fn settle(&mut self) {
        if let Some(state) = self.fallback.take() {
            self.state = state;
        }
    }

    /// Whether the fit has converged or reached its largest number of rounds.
    pub fn done(&self) -> bool {
        self.latest.is_some_and(|latest| latest.converged || latest.number >= self.params.rounds)
    }

    /// Log-likelihood and smoothed moments in these blocks.
    pub(super) fn smoothed(&self, blocks: &Blocks) -> Result<(f64, Smoothed), Error> {
        let filtered = self.state.dynamics.filter(&self.panel, self.panel.steps(), true)?;
        let smoothed = self.state.dynamics.smooth(&self.panel, &filtered, &blocks.ranges)?;
        Ok((filtered.log_likelihood, smoothed))
    }

    /// Mean and variance of the beliefs of the first frame, as fitted; of several long episodes the means of each.
    pub fn start(&self) -> (&[f64], &[f64]) {
        (&self.state.dynamics.start, &self.state.dynamics.spread)
    }

    /// The network so far.
    pub fn combination(&self) -> Result<Combination, Error> {
        self.state.combination(&self.params, &self.distinct)
    }

    /// The model so far.
    pub fn model(&mut self) -> Result<Model, Error> {
        self.settle();
        let (agents, ratios) = (self.panel.agents(), self.panel.ratios());
        let (log_likelihood, smoothed) = self.smoothed(&self.blocks)?;
        let moments = in_all(&self.panel, &smoothed.stretches)?;
        let believed = Panel::complete(self.panel.roster().clone(), smoothed.frames)?;
        let believed = believed.with_episodes_of(&self.panel)?;
        let transitions = self.panel.episodes().transitions();
        let combination = self.combination()?;
        let dynamics = &self.state.dynamics;
        let (sum, adaptation) = (self.state.sum, 1.0 - self.state.sum);
        let names = self.panel.roster().agents();
        let news = |agent: usize| {
            let block = &dynamics.innovation[agent];
            (0..ratios * ratios).map(move |cell| block[(cell / ratios, cell % ratios)] / (adaptation * adaptation))
        };
        let evidence =
            (0..agents * ratios).map(|cell| self.state.mean_drift(cell % ratios * agents + cell / ratios) / adaptation);
        let mut model = Model {
            roster: self.panel.roster().clone(),
            combination,
            evidence: Evidence::from_rows(evidence.collect(), agents, ratios)?,
            adaptation,
            method: Method::StateSpace(StateSpaceParams { weights: Some(self.params.kind()), ..self.params.clone() }),
            truth: Some(model::settled(&believed, adaptation)),
            innovation: Some(Innovation::from_cells((0..agents).flat_map(news).collect(), agents, ratios)?),
            likelihoods: None,
            diagnostics: Diagnostics::default(),
            track: Track::default(),
        };
        whitened::silence_the_still(&mut model, &self.distinct)?;
        let design =
            Regressors::from_moments(&moments, &self.distinct, self.params.support.as_deref(), (0..agents).collect());
        let precisions = design.each(|position| {
            let listener_moments = design.listener_moments(position);
            whitened::Precision::from_moments(
                &listener_moments,
                &fit::inverse(&listener_moments, &dynamics.innovation[design.listeners[position]]),
            )
        });
        let mut columns: Vec<ColumnDiagnostics> =
            names.iter().map(|name| ColumnDiagnostics::statistical(name, ratios)).collect();
        let mut errors = vec![vec![0.0; ratios]; agents];
        for (precision, &agent) in precisions.iter().zip(&design.listeners) {
            columns[agent].condition = precision.condition;
            columns[agent].weight_error = precision.sound().map(|precision| precision.weight_error / sum);
            let covariance = &dynamics.innovation[agent];
            let found =
                whitened::evidence_errors(Some(precision), covariance, transitions, model.evidence.agent(agent), 0.0);
            errors[agent] = found.into_iter().map(|error| error / adaptation).collect();
        }
        let round = self.latest.unwrap_or(Round { number: 0, log_likelihood, gain: None, converged: false });
        let mut warnings = self.distinct.warnings(&self.panel);
        if !round.converged {
            warnings.push(format!(
                "the fit ended at its largest number of rounds, {}, while the estimates were still moving: the shares are not final, and more rounds would change them",
                round.number
            ));
        }
        model.diagnostics = Diagnostics {
            columns,
            column_sum_spread: None,
            evidence_steps: Some(transitions),
            evidence_errors: Some(errors),
            steps: Some(self.panel.steps()),
            episodes: self.evidence_by_episode(),
            smoothing: Some(Smoothing {
                log_likelihood,
                rounds: round.number,
                converged: round.converged,
                noise: (0..ratios).map(|h| (0..ratios).map(|g| dynamics.noise[(h, g)]).collect()).collect(),
                weights: self.params.kind(),
                shrinkage: self.params.shrinkage,
                selection: None,
                adaptation_given: self.params.adaptation.is_some(),
                strengths: self.state.strengths.as_ref().map(Strengths::relative),
                self_weight: self.state.strengths.as_ref().map(|found| found.self_weight(&design)),
                common: dynamics.trend_loading.as_ref().map(|trend_loading| Common {
                    groups: trend_loading.trend.groups.clone(),
                    loading: trend_loading.loading.chunks(ratios).map(<[f64]>::to_vec).collect(),
                }),
            }),
            warnings,
            ..Diagnostics::default()
        };
        Ok(model)
    }

    /// The evidence of each episode, where they are long enough to have one of their own; an agent that is absent has none,
    /// and gets the mean of the others.
    fn evidence_by_episode(&self) -> Option<Vec<EpisodeEvidence>> {
        let (panel, agents, ratios) = (&self.panel, self.panel.agents(), self.panel.ratios());
        let (episodes, adaptation) = (panel.episodes(), 1.0 - self.state.sum);
        if !episodes.have_own_levels() {
            return None;
        }
        let absences = panel.absences();
        let one = |(number, range): (usize, Range<usize>)| {
            let drift = |agent: usize, ratio: usize| {
                let cell = ratio * agents + agent;
                match (self.distinct.constant[agent], absences.contains(&(agent, number))) {
                    (true, _) => 0.0,
                    (false, true) => self.state.mean_drift(cell),
                    (false, false) => self.state.dynamics.drift[number * agents * ratios + cell],
                }
            };
            let row = |agent: usize| (0..ratios).map(|ratio| drift(agent, ratio) / adaptation).collect();
            EpisodeEvidence::new(episodes.label(number), range.len(), (0..agents).map(row).collect())
        };
        Some(episodes.ranges().enumerate().map(one).collect())
    }

    /// Forecasts of every frame of a panel from the frames before it, where this one was learned from a part of it. At the
    /// first step of an episode it is the mean that an episode starts with.
    pub(super) fn forecasts(&mut self, whole: &Panel, seen: &[usize]) -> Result<Filtered, Error> {
        if let Some(found) = &mut self.state.dynamics.trend_loading {
            found.trend = Arc::new(CommonTrend::from_panel(whole, seen, &found.trend.groups));
        }
        self.state.dynamics.filter(whole, whole.steps(), false)
    }
}
