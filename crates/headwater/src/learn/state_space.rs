//! The state-space learner: for beliefs that are noisy and often absent, such as posts.
//!
//! In: a panel with silence and post counts. Out: a model, with δ and the noise of a post estimated beside the network.
//!
//! Repeating yesterday's value for a silent user makes inactive accounts look like stubborn sources. Here silence is
//! silence: beliefs Λ_i = (1−δ)AᵀΛ_{i−1} + δ(L̄ + w_i) are hidden, a user with c posts shows them blurred by noise of
//! variance σ²/c, and expectation-maximisation goes back and forth between what they believed (a Kalman smoother) and the
//! network (the constrained regression of the whitened learner, on expected moments). Every round raises the likelihood.
//!
//! Legend: B = (1−δ)A, d = δL̄, Q_k the covariance of δw for agent k, Ω the noise of a post; G_k, c_k as in the fit.

use super::Method;
use super::ar_baseline;
use super::common_trend::CommonTrend;
use super::fit;
use super::gsl::Constraint;
use super::kalman::{Dynamics, Filtered, Smoothed, TrendLoading};
use super::moments::Moments;
use super::regressors::{DistinctAgents, Regressors};
use super::simplex;
use super::strengths::{self, Strengths};
use super::whitened::{self, Estimate};
use crate::error::require;
use crate::model::{
    self, ColumnDiagnostics, Common, Diagnostics, Innovation, Skill, Smoothing, Track, WeightKind, WeightsSelection,
};
use crate::{Combination, Error, Evidence, Model, Panel};
use faer::Mat;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Parameters of [`state_space`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `adaptation` | none | δ; estimated when not given | (0, 1) |
/// | `constraint` | simplex | what a listener's weights must satisfy | |
/// | `weights` | none | one weight per edge, or one strength per speaker; when not given [`fit`](crate::fit()) chooses by forecast skill where there is a support, and the learner itself takes edges | |
/// | `ridge` | 0 | added to every G_k, relative to its mean diagonal | ≥ 0 |
/// | `shrinkage` | 500 | of a weight towards what others give the same speaker: 1/variance, per speaker of the listener | ≥ 0 |
/// | `rounds` | 200 | of expectation-maximisation, at most | ≥ 1 |
/// | `tolerance` | 2e-6 | stop when a round gains less log-likelihood than this per belief | ≥ 0 |
/// | `support` | none | for each listener the speakers it may hear; itself is always allowed | N lists |
/// | `common` | none | the group of each agent whose trend, what its others said a step before, may move it as well | N numbers below N |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table above says it once")]
pub struct StateSpaceParams {
    pub adaptation: Option<f64>,
    pub constraint: Constraint,
    pub weights: Option<WeightKind>,
    pub ridge: f64,
    pub shrinkage: f64,
    pub rounds: usize,
    #[serde(with = "super::method::infinite")]
    pub tolerance: f64,
    pub support: Option<Vec<Vec<usize>>>,
    pub common: Option<Vec<usize>>,
}

impl Default for StateSpaceParams {
    fn default() -> Self {
        StateSpaceParams {
            adaptation: None,
            constraint: Constraint::Simplex,
            weights: None,
            ridge: 0.0,
            shrinkage: 500.0,
            rounds: 200,
            tolerance: 2e-6,
            support: None,
            common: None,
        }
    }
}

/// δ before anything is known.
const FIRST_ADAPTATION: f64 = 0.1;

/// The weight a listener gives itself before anything is known.
const FIRST_SELF_WEIGHT: f64 = 0.2;

/// Share of the variance of a single post that is noise, when nothing tells, and at least and at most.
const FIRST_NOISE: f64 = 0.5;
const FEWEST_NOISE: f64 = 0.1;
const MOST_NOISE: f64 = 0.9;

/// Mean squared deviation of 1/c below which post counts tell nothing about noise.
const LEAST_SPREAD: f64 = 1e-3;

/// Share of the variance of beliefs that is news of each step, before anything is known.
const FIRST_NEWS: f64 = 0.4;

/// Variances below this share of what is seen are rounding.
const SMALLEST_VARIANCE: f64 = 1e-9;

/// How far beyond two rounds a leap may go, in rounds.
const LONGEST_LEAP: f64 = 64.0;

/// Steps of the search for δ.
const STEPS_FOR_ADAPTATION: usize = 30;

/// Where the fit stands after a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Rounds done.
    pub number: usize,
    /// Log-likelihood of all that was said, less what the prior takes, of the parameters this round started from.
    pub log_likelihood: f64,
    /// What the round before gained, per belief; nothing is known of it in the first.
    pub gain: Option<f64>,
    /// Whether it was too little to go on.
    pub converged: bool,
}

/// Expectation-maximisation, a round at a time, so that a caller can watch and stop it.
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
    panel: &'a Panel,
    /// Frames used, from the first.
    steps: usize,
    params: StateSpaceParams,
    distinct: DistinctAgents,
    beliefs: usize,
    state: Parameters,
    latest: Option<Round>,
    /// The parameters before the first of two ordinary rounds.
    begun: Option<Vec<f64>>,
    /// Where to fall back to, should the present parameters turn out less likely.
    leap: Option<Parameters>,
}

/// The parameters as they stand.
#[derive(Debug, Clone)]
struct Parameters {
    dynamics: Dynamics,
    /// 1 − δ.
    sum: f64,
    /// (1−δ) times the columns, by position in the regressors of each listener.
    columns: Vec<Vec<f64>>,
    strengths: Option<Strengths>,
    /// What the weights are held to beside the likelihood: the prior of the strengths.
    penalty: f64,
    /// For each speaker the weight it is given, relative to an even share.
    common: Vec<f64>,
}

impl<'a> StateSpaceLearner<'a> {
    /// Prepares a fit to a whole panel.
    pub fn new(panel: &'a Panel, params: &StateSpaceParams) -> Result<Self, Error> {
        StateSpaceLearner::with_steps(panel, panel.steps(), params)
    }

    /// Prepares a fit to the first steps of a panel.
    pub(crate) fn with_steps(panel: &'a Panel, steps: usize, params: &StateSpaceParams) -> Result<Self, Error> {
        check(panel, steps, params)?;
        let distinct = DistinctAgents::from_panel(&panel.clone().carry_forward().0);
        if distinct.regressors.is_empty() {
            return Err(Error::Undefined {
                what: "a network",
                reason: "no agent's beliefs change: there is nothing to learn from".into(),
            });
        }
        let beliefs: usize =
            (0..steps).map(|step| (0..panel.agents()).filter(|&agent| panel.posts(step, agent) > 0).count()).sum();
        let state = Parameters::first(panel, steps, params, &distinct);
        Ok(StateSpaceLearner {
            panel,
            steps,
            params: params.clone(),
            distinct,
            beliefs: beliefs * panel.ratios(),
            state,
            latest: None,
            begun: None,
            leap: None,
        })
    }

    /// One round: what they believed, then the network. Cost: about 11(NH)³ operations a step.
    ///
    /// Every third round starts from where the two before it point to, if that is likelier: alone they would creep.
    pub fn round(&mut self) -> Result<Round, Error> {
        let leap = self.leap.take();
        let mut leapt = leap.is_some();
        let mut filtered = self.state.filtered(self.panel, self.steps);
        if let Some(fallback) = leap {
            let reached = self.latest.map_or(f64::NEG_INFINITY, |latest| latest.log_likelihood);
            if !filtered.as_ref().is_ok_and(|(log_likelihood, _)| *log_likelihood >= reached) {
                self.state = fallback;
                leapt = false;
                filtered = self.state.filtered(self.panel, self.steps);
            }
        }
        let (log_likelihood, filtered) = filtered?;
        let smoothed = self.state.dynamics.smooth(self.panel, &filtered, &[1, self.steps])?;
        drop(filtered);
        let begun = std::mem::take(&mut self.begun);
        let before = self.state.numbers(&self.params);
        self.state.maximise(&smoothed, &self.params, &self.distinct);
        match begun {
            None => self.begun = Some(before),
            Some(first) => {
                let ahead = extrapolated(&first, &before, &self.state.numbers(&self.params));
                let mut state = self.state.clone();
                if state.read(&ahead, &self.params, &self.distinct) {
                    self.leap = Some(std::mem::replace(&mut self.state, state));
                }
            }
        }
        let latest = self.latest;
        let gain = latest.map(|latest| (log_likelihood - latest.log_likelihood) / self.beliefs as f64);
        let round = Round {
            number: latest.map_or(0, |latest| latest.number) + 1,
            log_likelihood,
            gain,
            // A leap may fall short; what an ordinary round still gains tells.
            converged: !leapt && gain.is_some_and(|gain| gain < self.params.tolerance),
        };
        self.latest = Some(round);
        Ok(round)
    }

    /// Rounds until one gains too little, or there were enough.
    pub fn run(&mut self) -> Result<(), Error> {
        while !self.done() {
            self.round()?;
        }
        self.settle();
        Ok(())
    }

    /// Gives up a leap that was not tried.
    fn settle(&mut self) {
        if let Some(state) = self.leap.take() {
            self.state = state;
        }
    }

    /// Whether another round is worth it.
    pub fn done(&self) -> bool {
        self.latest.is_some_and(|latest| latest.converged || latest.number >= self.params.rounds)
    }

    /// What was learned so far, with the moments of what they believed in so many stretches, for resampling.
    fn smoothed(&self, stretches: usize) -> Result<(f64, Smoothed), Error> {
        let filtered = self.state.dynamics.filter(self.panel, self.steps, true)?;
        let smoothed = self.state.dynamics.smooth(self.panel, &filtered, &borders(self.steps, stretches))?;
        Ok((filtered.log_likelihood, smoothed))
    }

    /// Mean and variance of the first frame's beliefs, as the fit has them.
    pub fn start(&self) -> (&[f64], &[f64]) {
        (&self.state.dynamics.start, &self.state.dynamics.spread)
    }

    /// The network so far.
    pub fn combination(&self) -> Result<Combination, Error> {
        self.state.combination(&self.params, &self.distinct)
    }

    /// What was learned so far.
    pub fn model(&mut self) -> Result<Model, Error> {
        self.settle();
        let (agents, ratios) = (self.panel.agents(), self.panel.ratios());
        let (log_likelihood, smoothed) = self.smoothed(1)?;
        let believed = Panel::complete(self.panel.roster().clone(), smoothed.frames)?;
        let combination = self.combination()?;
        let dynamics = &self.state.dynamics;
        let (sum, adaptation) = (self.state.sum, 1.0 - self.state.sum);
        let names = self.panel.roster().agents();
        let news = |agent: usize| {
            let block = &dynamics.innovation[agent];
            (0..ratios * ratios).map(move |cell| block[(cell / ratios, cell % ratios)] / (adaptation * adaptation))
        };
        let evidence =
            (0..agents * ratios).map(|cell| dynamics.drift[cell % ratios * agents + cell / ratios] / adaptation);
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
        let design = Regressors::from_moments(
            &smoothed.stretches[0],
            &self.distinct,
            self.params.support.as_deref(),
            (0..agents).collect(),
        );
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
            let found = whitened::evidence_errors(
                Some(precision),
                covariance,
                self.steps - 1,
                model.evidence.agent(agent),
                0.0,
            );
            errors[agent] = found.into_iter().map(|error| error / adaptation).collect();
        }
        let round = self.latest.unwrap_or(Round { number: 0, log_likelihood, gain: None, converged: false });
        let mut warnings = self.distinct.warnings(self.panel);
        if !round.converged {
            warnings.push(format!(
                "the fit stopped after {} rounds while each still gained {:.1e} nats a belief: more rounds may move the weights",
                round.number,
                round.gain.unwrap_or(f64::NAN)
            ));
        }
        model.diagnostics = Diagnostics {
            columns,
            column_sum_spread: None,
            evidence_steps: Some(self.steps - 1),
            evidence_errors: Some(errors),
            steps: Some(self.steps),
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

    /// T × D forecasts of every frame from the frames before it, seen or not.
    fn forecasts(&self) -> Result<Vec<f64>, Error> {
        Ok(self.state.dynamics.filter(self.panel, self.panel.steps(), false)?.forecast)
    }
}

/// Forecast skill on the last fifth of a panel: the network's, and what it is compared with.
#[derive(Debug, Clone)]
pub(crate) struct HeldOut {
    pub(crate) skill: Option<Skill>,
    /// The network that forecast, learned from the rest.
    pub(crate) combination: Combination,
    /// Its squared error.
    error: f64,
}

/// Forecasts the last fifth of a panel, one step ahead, by a fit that has seen only the rest: against what was last said,
/// and against each agent's own past with noise and silence treated alike; and against that own past once more with both
/// told the trend.
///
/// `None` when nothing is said there, or nothing changes.
pub fn skill(panel: &Panel, params: &StateSpaceParams) -> Result<Option<Skill>, Error> {
    beyond_common(panel, params, &held_out(panel, params)?)
}

/// Adds what the network forecasts better than each agent's own past when both are told the trend: of the groups given, or
/// of all.
fn beyond_common(panel: &Panel, params: &StateSpaceParams, found: &HeldOut) -> Result<Option<Skill>, Error> {
    let Some(skill) = found.skill else { return Ok(None) };
    let groups = params.common.clone().unwrap_or_else(|| vec![0; panel.agents()]);
    let trend = CommonTrend::from_panel(panel, split(panel), &groups);
    let rival = alone(panel, Some(&trend));
    let network = match &params.common {
        Some(_) => found.error,
        None => held_out(panel, &StateSpaceParams { common: Some(groups), ..params.clone() })?.error,
    };
    Ok(Some(Skill { beyond_common: (rival > 0.0).then(|| 1.0 - network / rival), ..skill }))
}

/// The choice between one weight per edge and one strength per speaker, and the skill of the chosen kind.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WeightsChoice {
    /// The kind chosen, and what it was compared by.
    pub selection: WeightsSelection,
    /// Skill of the chosen kind on held-out steps; none where there are too few to hold some out.
    pub skill: Option<Skill>,
}

/// Strengths or edges: whichever forecasts held-out steps better; strengths, which are fewer numbers, where that cannot be
/// measured.
pub fn choose(panel: &Panel, params: &StateSpaceParams) -> Result<WeightsChoice, Error> {
    let with = |weights: WeightKind| StateSpaceParams { weights: Some(weights), ..params.clone() };
    let unmeasured = || {
        let selection = WeightsSelection { chosen: WeightKind::Strengths, skill_edges: None, skill_strengths: None };
        Ok(WeightsChoice { selection, skill: None })
    };
    // Small fits keep one core busy.
    let (strengths, edges) =
        rayon::join(|| held_out(panel, &with(WeightKind::Strengths)), || held_out(panel, &with(WeightKind::Edges)));
    let strengths = match strengths {
        Err(Error::NotReady { .. }) => return unmeasured(),
        other => other?,
    };
    let edges = edges?;
    let (Some(strong), Some(free)) = (strengths.skill, edges.skill) else { return unmeasured() };
    let (chosen, found) = match strong.against_own_past >= free.against_own_past {
        true => (WeightKind::Strengths, strengths),
        false => (WeightKind::Edges, edges),
    };
    let selection = WeightsSelection {
        chosen,
        skill_edges: Some(free.against_own_past),
        skill_strengths: Some(strong.against_own_past),
    };
    Ok(WeightsChoice { selection, skill: beyond_common(panel, &with(chosen), &found)? })
}

/// Borders of so many stretches of transitions, as even as can be.
fn borders(steps: usize, stretches: usize) -> Vec<usize> {
    (0..=stretches).map(|border| 1 + border * (steps - 1) / stretches).collect()
}

/// The first step of a panel that is held out.
fn split(panel: &Panel) -> usize {
    panel.steps() - panel.steps().div_ceil(5)
}

pub(crate) fn held_out(panel: &Panel, params: &StateSpaceParams) -> Result<HeldOut, Error> {
    let seen = split(panel);
    let mut learner = StateSpaceLearner::with_steps(panel, seen, params)?;
    learner.run()?;
    let error = forecast_error(panel, &learner.forecasts()?);
    let own_past = alone(panel, None);
    let (carried, _) = panel.clone().carry_forward();
    let persistence = squared_error(panel, seen, |step, cell| carried.cells()[(step - 1) * panel.width() + cell]);
    let skill = (own_past > 0.0 && persistence > 0.0).then(|| Skill {
        against_persistence: 1.0 - error / persistence,
        against_own_past: 1.0 - error / own_past,
        beyond_common: None,
        steps: panel.steps() - seen,
    });
    Ok(HeldOut { skill, combination: learner.combination()?, error })
}

/// Squared error of each agent's own past, perhaps with the trend, on what is held out.
fn alone(panel: &Panel, trend: Option<&CommonTrend>) -> f64 {
    let seen = split(panel);
    forecast_error(panel, &ar_baseline::forecasts(panel, seen, &SeriesSummary::from_panel(panel, seen), trend))
}

fn forecast_error(panel: &Panel, forecasts: &[f64]) -> f64 {
    squared_error(panel, split(panel), |step, cell| forecasts[step * panel.width() + cell])
}

/// Summed squared errors of forecasts of what is said from a step on.
fn squared_error(panel: &Panel, from: usize, forecast: impl Fn(usize, usize) -> f64) -> f64 {
    let mut error = 0.0;
    for step in from..panel.steps() {
        for cell in (0..panel.width()).filter(|cell| panel.posts(step, cell % panel.agents()) > 0) {
            error += (panel.cells()[step * panel.width() + cell] - forecast(step, cell)).powi(2);
        }
    }
    error
}

/// Learns a network from beliefs with silence and noise: [`StateSpaceLearner`] run to its end.
///
/// Errors: fewer than ten steps, all agents constant, parameters out of range, more covariances than memory holds.
pub fn state_space(panel: &Panel, params: &StateSpaceParams) -> Result<Model, Error> {
    let mut learner = StateSpaceLearner::new(panel, params)?;
    learner.run()?;
    learner.model()
}

impl StateSpaceParams {
    /// What the weights are made of; edges unless told otherwise.
    pub(crate) fn kind(&self) -> WeightKind {
        self.weights.unwrap_or_default()
    }

    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(adaptation) = self.adaptation {
            model::check_adaptation(adaptation)?;
        }
        require(self.ridge >= 0.0 && self.ridge.is_finite(), "ridge", self.ridge, "zero or more")?;
        let shrinkage = self.shrinkage;
        require(shrinkage >= 0.0 && shrinkage.is_finite(), "shrinkage", shrinkage, "zero or more")?;
        require(self.rounds >= 1, "rounds", self.rounds, "at least 1")?;
        require(self.tolerance >= 0.0, "tolerance", self.tolerance, "zero or more")?;
        let graph = self.weights != Some(WeightKind::Strengths) || self.support.is_some();
        require(graph, "weights", "strengths", "edges when no graph says who may hear whom")?;
        let simplex = self.weights != Some(WeightKind::Strengths) || self.constraint == Constraint::Simplex;
        require(simplex, "constraint", "free", "simplex with strengths, which are shares by nature")
    }
}

/// Steps without which nothing is learned.
const FEWEST_STEPS: usize = 10;

fn check(panel: &Panel, steps: usize, params: &StateSpaceParams) -> Result<(), Error> {
    params.check()?;
    whitened::check_support(panel.agents(), params.support.as_deref())?;
    if let Some(groups) = &params.common {
        let sound = groups.len() == panel.agents() && groups.iter().all(|group| *group < panel.agents());
        require(sound, "common", format!("{} groups", groups.len()), "one number below N for each of the N agents")?;
    }
    if steps < FEWEST_STEPS {
        return Err(Error::NotReady { seen: steps, needed: FEWEST_STEPS });
    }
    Ok(())
}

/// Where a sequence of three goes if it goes on as it began: the squared extrapolation of Varadhan and Roland.
fn extrapolated(first: &[f64], second: &[f64], third: &[f64]) -> Vec<f64> {
    let step: Vec<f64> = second.iter().zip(first).map(|(b, a)| b - a).collect();
    let bend: Vec<f64> = third.iter().zip(second).zip(&step).map(|((c, b), step)| c - b - step).collect();
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let reach = (norm(&step) / norm(&bend).max(f64::MIN_POSITIVE)).clamp(1.0, LONGEST_LEAP);
    let ahead = first.iter().zip(&step).zip(&bend);
    ahead.map(|((first, step), bend)| first + 2.0 * reach * step + reach * reach * bend).collect()
}

impl Parameters {
    /// The log-likelihood, less the prior's penalty, and what was known as time went on.
    fn filtered(&self, panel: &Panel, steps: usize) -> Result<(f64, Filtered), Error> {
        let filtered = self.dynamics.filter(panel, steps, true)?;
        Ok((filtered.log_likelihood - self.penalty, filtered))
    }

    /// All parameters as numbers that may be extrapolated: logarithms of what is positive.
    fn numbers(&self, params: &StateSpaceParams) -> Vec<f64> {
        let Dynamics { drift, innovation, noise, start, trend_loading, ratios, .. } = &self.dynamics;
        let logarithm = |block: &Mat<f64>| fit::powered(block, |value, _| value.ln());
        let cells = |block: Mat<f64>| (0..ratios * ratios).map(move |cell| block[(cell / ratios, cell % ratios)]);
        let mut numbers = vec![self.sum.ln()];
        numbers.extend(
            drift.iter().chain(start).chain(trend_loading.iter().flat_map(|trend_loading| &trend_loading.loading)),
        );
        numbers.extend(innovation.iter().chain([noise]).flat_map(|block| cells(logarithm(block))));
        match (&self.strengths, params.constraint) {
            (Some(strengths), _) => numbers.extend(strengths.numbers()),
            (None, Constraint::Simplex) => {
                numbers.extend(self.columns.iter().flatten().map(|weight| weight / self.sum))
            }
            (None, Constraint::Free) => numbers.extend(self.columns.iter().flatten()),
        }
        numbers
    }

    /// Takes them back, within what is allowed. Whether that gives something to go on with.
    fn read(&mut self, numbers: &[f64], params: &StateSpaceParams, distinct: &DistinctAgents) -> bool {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        if numbers.iter().any(|number| !number.is_finite()) {
            return false;
        }
        let (size, blocks) = (agents * ratios, (agents + 1) * ratios * ratios);
        let loadings = self.dynamics.trend_loading.as_ref().map_or(0, |trend_loading| trend_loading.loading.len());
        let (head, rest) = numbers.split_at(1 + 2 * size);
        let (loading, rest) = rest.split_at(loadings);
        let (news, weights) = rest.split_at(blocks);
        if params.adaptation.is_none() {
            self.sum = head[0].exp().clamp(1.0 - fit::ADAPTATION.end(), 1.0 - fit::ADAPTATION.start());
        }
        self.dynamics.drift.copy_from_slice(&head[1..=size]);
        self.dynamics.start.copy_from_slice(&head[1 + size..]);
        if let Some(trend_loading) = &mut self.dynamics.trend_loading {
            trend_loading.loading.copy_from_slice(loading);
        }
        let block = |index: usize| {
            let cell = |h: usize, g: usize| news[(index * ratios + h) * ratios + g];
            fit::powered(&Mat::from_fn(ratios, ratios, cell), |value, _| value.exp())
        };
        for agent in 0..agents {
            self.dynamics.innovation[agent] = self.floored(&block(agent), agent);
        }
        self.dynamics.noise = block(agents);
        let nothing = Moments::empty(agents, ratios);
        let design = Regressors::from_moments(&nothing, distinct, params.support.as_deref(), (0..agents).collect());
        if let Some(strengths) = &mut self.strengths {
            strengths.read(weights);
            self.columns = strengths.columns(&design, self.sum);
            self.penalty = strengths.penalty();
        } else {
            let mut left = weights;
            for column in &mut self.columns {
                let (mine, others) = left.split_at(column.len());
                left = others;
                if params.constraint == Constraint::Free {
                    column.copy_from_slice(mine);
                    continue;
                }
                let total: f64 = mine.iter().map(|weight| weight.max(0.0)).sum();
                if total <= 0.0 {
                    return false;
                }
                column.iter_mut().zip(mine).for_each(|(weight, mine)| *weight = self.sum * mine.max(0.0) / total);
            }
            self.pool(&design, params);
        }
        self.write_hears(&design, distinct);
        true
    }

    fn first(panel: &Panel, steps: usize, params: &StateSpaceParams, distinct: &DistinctAgents) -> Self {
        let (agents, ratios) = (panel.agents(), panel.ratios());
        let size = agents * ratios;
        let glance = SeriesSummary::from_panel(panel, steps);
        let spread: Vec<f64> = (0..size).map(|cell| glance.series(cell).1).collect();
        let news = |agent: usize| {
            Mat::from_fn(ratios, ratios, |h, g| if h == g { FIRST_NEWS * spread[h * agents + agent] } else { 0.0 })
        };
        let trend_loading = params.common.as_ref().map(|groups| {
            let trend = CommonTrend::from_panel(panel, steps, groups);
            TrendLoading { loading: vec![0.0; trend.count * ratios], trend: Arc::new(trend) }
        });
        let dynamics = Dynamics {
            agents,
            ratios,
            hears: Mat::zeros(agents, agents),
            drift: vec![0.0; size],
            innovation: (0..agents).map(news).collect(),
            noise: glance.noise,
            start: glance.means,
            spread,
            trend_loading,
        };
        let sum = 1.0 - params.adaptation.unwrap_or(FIRST_ADAPTATION);
        let nothing = Moments::empty(agents, ratios);
        let design = Regressors::from_moments(&nothing, distinct, params.support.as_deref(), (0..agents).collect());
        let strengths = match (params.kind(), &params.support) {
            (WeightKind::Strengths, Some(_)) => Some(Strengths::equal(agents, &design, FIRST_SELF_WEIGHT)),
            _ => None,
        };
        let columns = design.each(|position| {
            let speakers = design.regressors(position);
            let own = |speaker: usize| f64::from(u8::from(speaker == design.original(design.listeners[position])));
            let weight =
                |speaker: usize| (1.0 - FIRST_SELF_WEIGHT) / speakers.len() as f64 + FIRST_SELF_WEIGHT * own(speaker);
            let total: f64 = speakers.iter().map(|&speaker| weight(speaker)).sum();
            speakers.iter().map(|&speaker| sum * weight(speaker) / total).collect()
        });
        let mut state = Parameters { dynamics, sum, columns, strengths, common: vec![0.0; agents], penalty: 0.0 };
        state.pool(&design, params);
        state.write_hears(&design, distinct);
        let means = state.dynamics.start.clone();
        state.write_drift(&means, &means);
        state
    }

    /// What a model says, in place of what would be a start.
    fn take(&mut self, model: &Model, params: &StateSpaceParams, distinct: &DistinctAgents) {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        let nothing = Moments::empty(agents, ratios);
        let design = Regressors::from_moments(&nothing, distinct, params.support.as_deref(), (0..agents).collect());
        self.sum = 1.0 - model.adaptation;
        self.columns = design.each(|position| {
            let whole = |speaker: usize| {
                let copies = distinct.copies[speaker].iter();
                copies.map(|&copy| model.combination.weight(copy, design.listeners[position])).sum::<f64>()
            };
            design.regressors(position).iter().map(|&speaker| self.sum * whole(speaker)).collect()
        });
        self.pool(&design, params);
        self.write_hears(&design, distinct);
        for cell in 0..agents * ratios {
            self.dynamics.drift[cell] = model.adaptation * model.evidence.agent(cell % agents)[cell / agents];
        }
        if let Some(innovation) = &model.innovation {
            for agent in 0..agents {
                let known = innovation.agent(agent);
                let block = Mat::from_fn(ratios, ratios, |h, g| known[h * ratios + g] * model.adaptation.powi(2));
                self.dynamics.innovation[agent] = self.floored(&block, agent);
            }
        }
        if let Some(smoothing) = &model.diagnostics.smoothing {
            // A model from elsewhere may say anything; what does not fit is left as at the start.
            let square = smoothing.noise.len() == ratios && smoothing.noise.iter().all(|row| row.len() == ratios);
            let noise = |h: usize, g: usize| smoothing.noise[h][g];
            if square && (0..ratios).all(|h| noise(h, h) > 0.0) {
                self.dynamics.noise = Mat::from_fn(ratios, ratios, noise);
            }
            if let (Some(trend_loading), Some(common)) = (&mut self.dynamics.trend_loading, &smoothing.common) {
                let known: Vec<f64> = common.loading.iter().flatten().copied().collect();
                if known.len() == trend_loading.loading.len() {
                    trend_loading.loading = known;
                }
            }
            let sound =
                |strengths: &&[f64]| strengths.len() == agents && strengths.iter().all(|g| *g > 0.0 && g.is_finite());
            if let Some(strengths) = smoothing.strengths.as_deref().filter(sound) {
                let own = |agent: usize| model.combination.weight(agent, agent);
                self.strengths = Some(Strengths::given(strengths, &design, own));
            }
        }
    }

    /// B from the columns; an agent that never moves hears itself.
    fn write_hears(&mut self, design: &Regressors<'_>, distinct: &DistinctAgents) {
        let agents = self.dynamics.agents;
        let mut hears = Mat::zeros(agents, agents);
        for agent in (0..agents).filter(|&agent| distinct.constant[agent]) {
            hears[(agent, agent)] = self.sum;
        }
        for (position, (&listener, weights)) in design.listeners.iter().zip(&self.columns).enumerate() {
            for (&speaker, &weight) in design.regressors(position).iter().zip(weights) {
                for (copy, weight) in distinct.share(speaker, weight) {
                    hears[(copy, listener)] += weight;
                }
            }
        }
        self.dynamics.hears = hears;
    }

    /// d = ȳ − Bᵀx̄.
    fn write_drift(&mut self, mean_x: &[f64], mean_y: &[f64]) {
        let heard = self.dynamics.heard(faer::MatRef::from_column_major_slice(mean_x, mean_x.len(), 1));
        self.dynamics.drift = mean_y.iter().zip(heard.col_as_slice(0)).map(|(y, heard)| y - heard).collect();
    }

    /// The parameters that make what they believed, and what was seen of it, likeliest.
    fn maximise(&mut self, smoothed: &Smoothed, params: &StateSpaceParams, distinct: &DistinctAgents) {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        let moments = &smoothed.stretches[0];
        let design = Regressors::from_moments(moments, distinct, params.support.as_deref(), (0..agents).collect());
        self.listen(&design, params, distinct);
        self.follow(&smoothed.frames, distinct);
        let (sum, count) = &smoothed.noise;
        let largest = (0..ratios).map(|h| sum[(h, h)] / *count as f64).fold(0.0, f64::max);
        let noise = Mat::from_fn(ratios, ratios, |h, g| sum[(h, g)] / *count as f64);
        self.dynamics.noise = fit::powered(&noise, |value, _| value.max(SMALLEST_VARIANCE * largest));
        self.dynamics.start.copy_from_slice(&smoothed.frames[..agents * ratios]);
    }

    /// The network that makes moments likeliest: columns and δ, then the news of each step.
    fn listen(&mut self, design: &Regressors<'_>, params: &StateSpaceParams, distinct: &DistinctAgents) {
        match &mut self.strengths {
            Some(found) => {
                let share = params.adaptation.map(|adaptation| 1.0 - adaptation);
                let (columns, sum) = strengths::maximise(found, design, &self.dynamics.innovation, self.sum, share);
                (self.columns, self.sum) = (columns, sum);
                self.penalty = found.penalty();
            }
            None => {
                self.maximise_edges(design, params);
                self.pool(design, params);
            }
        }
        self.write_hears(design, distinct);
        if let Some(moments) = design.moments() {
            self.write_drift(&moments.mean_x(), &moments.mean_y());
        }
        let blocks = design.each(|position| {
            let left = fit::covariance(&design.listener_moments(position), &self.columns[position]);
            self.floored(&left, design.listeners[position])
        });
        design.listeners.iter().zip(blocks).for_each(|(&agent, block)| self.dynamics.innovation[agent] = block);
    }

    /// How far each group follows its trend, where there is one: what the network leaves, regressed on it.
    fn follow(&mut self, frames: &[f64], distinct: &DistinctAgents) {
        let Dynamics { agents, ratios, drift, innovation, .. } = &self.dynamics;
        let (agents, ratios, size) = (*agents, *ratios, agents * ratios);
        let Some(trend_loading) = &self.dynamics.trend_loading else { return };
        let steps = frames.len() / size;
        let before = faer::MatRef::from_column_major_slice(&frames[..(steps - 1) * size], size, steps - 1);
        let heard = self.dynamics.heard(before);
        let mut gram = vec![Mat::<f64>::zeros(ratios, ratios); trend_loading.trend.count];
        let mut linear = vec![vec![0.0; ratios]; trend_loading.trend.count];
        for agent in (0..agents).filter(|&agent| !distinct.constant[agent]) {
            let group = trend_loading.trend.groups[agent];
            let inverse = inverted(&innovation[agent]);
            for step in 1..steps {
                let trend = |ratio: usize| trend_loading.trend.at(step)[ratio * agents + agent];
                let left = |ratio: usize| {
                    let cell = ratio * agents + agent;
                    frames[step * size + cell] - heard[(cell, step - 1)] - drift[cell]
                };
                for h in 0..ratios {
                    for g in 0..ratios {
                        gram[group][(h, g)] += inverse[(h, g)] * trend(h) * trend(g);
                        linear[group][h] += inverse[(h, g)] * trend(h) * left(g);
                    }
                }
            }
        }
        // Where the trend never moves it moves nobody.
        let solved = gram.iter().zip(&linear).flat_map(|(gram, linear)| match simplex::factor(gram) {
            Some(llt) => simplex::solve(&llt, linear),
            None => vec![0.0; ratios],
        });
        let loading = solved.collect();
        self.dynamics.trend_loading = Some(TrendLoading { trend: trend_loading.trend.clone(), loading });
    }

    /// A covariance with no direction quieter than rounding.
    fn floored(&self, block: &Mat<f64>, agent: usize) -> Mat<f64> {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        let scale = (0..ratios).map(|h| self.dynamics.spread[h * agents + agent]).fold(0.0, f64::max);
        fit::powered(block, |value, _| value.max(SMALLEST_VARIANCE * scale))
    }

    /// The columns, and δ where it is not given: the minimum over the sum of all weights is convex, and its slope is
    /// the sum of the multipliers.
    fn maximise_edges(&mut self, design: &Regressors<'_>, params: &StateSpaceParams) {
        let innovation = &self.dynamics.innovation;
        let columns = &self.columns;
        let common = &self.common;
        let normal = |position: usize| {
            let listener_moments = design.listener_moments(position);
            let (mut gram, mut linear) =
                fit::normal(&listener_moments, &inverted(&innovation[design.listeners[position]]));
            fit::lift(&mut gram, params.ridge.max(1e-14));
            for (place, precision, middle) in shrunk(design, position, common, params.shrinkage) {
                gram[(place, place)] += precision;
                linear[place] += precision * middle;
            }
            (gram, linear)
        };
        if params.constraint == Constraint::Free {
            let solved = design.each(|position| {
                let (gram, linear) = normal(position);
                let Some(llt) = simplex::factor(&gram) else { return (columns[position].clone(), (0.0, 0.0)) };
                let weights = simplex::solve(&llt, &linear);
                let ones: f64 = simplex::solve(&llt, &vec![1.0; weights.len()]).iter().sum();
                let vote = (weights.iter().sum(), 1.0 / ones);
                (weights, vote)
            });
            let voted = fit::voted(solved.iter().map(|(_, vote)| *vote));
            self.sum = 1.0 - params.adaptation.unwrap_or(voted);
            self.columns = solved.into_iter().map(|(weights, _)| weights).collect();
            return;
        }
        // Building G for every listener takes the time: what is free at one sum mostly is at the next, and then one is
        // enough.
        let mut faces: Vec<Option<simplex::Face>> = vec![None; columns.len()];
        let mut at = |sum: f64, start: &[Vec<f64>]| -> Vec<Option<simplex::Optimum>> {
            let found = design.each(|position| {
                if let Some(optimum) = faces[position].as_ref().and_then(|face| face.moved(sum)) {
                    return (Some(optimum), None);
                }
                let (gram, linear) = normal(position);
                match simplex::faced(&gram, &linear, sum, &start[position]) {
                    Some((optimum, face)) => (Some(optimum), face),
                    None => (None, None),
                }
            });
            let (optima, fresh): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            faces.iter_mut().zip(fresh).for_each(|(face, fresh)| {
                if fresh.is_some() {
                    *face = fresh;
                }
            });
            optima
        };
        let keep = |found: Vec<Option<simplex::Optimum>>, before: &[Vec<f64>]| -> Vec<Vec<f64>> {
            let pairs = found.into_iter().zip(before);
            pairs.map(|(found, before)| found.map_or_else(|| before.clone(), |found| found.values)).collect()
        };
        if let Some(adaptation) = params.adaptation {
            self.sum = 1.0 - adaptation;
            self.columns = keep(at(self.sum, columns), columns);
            return;
        }
        let (mut low, mut high) = (1.0 - fit::ADAPTATION.end(), 1.0 - fit::ADAPTATION.start());
        let (mut sum, mut weights) = (self.sum, columns.clone());
        for _ in 0..STEPS_FOR_ADAPTATION {
            let found = at(sum, &weights);
            let slope: f64 = found.iter().flatten().map(|optimum| optimum.multiplier).sum();
            let stiffness: f64 = found.iter().flatten().map(|optimum| optimum.stiffness).sum();
            weights = keep(found, &weights);
            if slope > 0.0 {
                low = sum;
            } else {
                high = sum;
            }
            let newton = sum + slope / stiffness;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            let moved = (next - sum).abs();
            sum = next;
            if moved < 1e-10 || high - low < 1e-10 {
                break;
            }
        }
        // The columns that belong to the last sum.
        self.columns = keep(at(sum, &weights), &weights);
        self.sum = sum;
    }

    /// What listeners give each speaker on the whole, and how far single weights are from it.
    fn pool(&mut self, design: &Regressors<'_>, params: &StateSpaceParams) {
        let mut given = vec![(0.0, 0.0); self.common.len()];
        for (position, weights) in self.columns.iter().enumerate() {
            let speakers = design.regressors(position);
            let own = design.original(design.listeners[position]);
            for (&speaker, weight) in speakers.iter().zip(weights).filter(|(speaker, _)| **speaker != own) {
                given[speaker].0 += weight;
                given[speaker].1 += 1.0 / speakers.len() as f64;
            }
        }
        self.common = given.iter().map(|(weight, even)| if *even > 0.0 { weight / even } else { 0.0 }).collect();
        let far = |(position, weights): (usize, &Vec<f64>)| -> f64 {
            let terms = shrunk(design, position, &self.common, params.shrinkage);
            terms.map(|(place, precision, middle)| 0.5 * precision * (weights[place] - middle).powi(2)).sum()
        };
        self.penalty = self.columns.iter().enumerate().map(far).sum();
    }

    fn estimate(&self, params: &StateSpaceParams, distinct: &DistinctAgents) -> Result<Estimate, Error> {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        let evidence = |cell: usize| match distinct.constant[cell / ratios] {
            true => 0.0,
            false => self.dynamics.drift[cell % ratios * agents + cell / ratios] / (1.0 - self.sum),
        };
        Ok(Estimate {
            combination: self.combination(params, distinct)?,
            evidence: Evidence::from_rows((0..agents * ratios).map(evidence).collect(), agents, ratios)?,
        })
    }

    fn combination(&self, params: &StateSpaceParams, distinct: &DistinctAgents) -> Result<Combination, Error> {
        let agents = self.dynamics.agents;
        let empty = Moments::empty(agents, self.dynamics.ratios);
        let design = Regressors::from_moments(&empty, distinct, params.support.as_deref(), (0..agents).collect());
        whitened::combine(&design, distinct, &self.columns, self.sum, agents, params.support.is_some())
    }
}

/// Smoothed beliefs, stretch by stretch, for fitting the network again to stretches drawn at random.
#[derive(Debug)]
pub(crate) struct Resampling {
    params: StateSpaceParams,
    distinct: DistinctAgents,
    state: Parameters,
    stretches: Vec<Moments>,
    borders: Vec<usize>,
}

/// Rounds of a fit to resampled posts: it starts from the answer for all of them.
const REFIT_ROUNDS: usize = 30;

impl Resampling {
    /// Smooths the panel a model was learned from, by that model, and cuts it into stretches.
    pub(crate) fn new(panel: &Panel, model: &Model, params: &StateSpaceParams, count: usize) -> Result<Self, Error> {
        let mut learner = StateSpaceLearner::new(panel, params)?;
        learner.state.take(model, params, &learner.distinct);
        let (_, smoothed) = learner.smoothed(count)?;
        let borders = borders(panel.steps(), count);
        let StateSpaceLearner { distinct, state, params, .. } = learner;
        Ok(Resampling { params, distinct, state, stretches: smoothed.stretches, borders })
    }

    /// The network that fits the posts of these stretches one after another, smoothed anew. Slow, but it knows what was
    /// hidden the first time as well.
    pub(crate) fn refit(&self, panel: &Panel, numbers: &[usize]) -> Result<Estimate, Error> {
        let stretches: Vec<_> =
            numbers.iter().map(|&number| self.borders[number] - 1..self.borders[number + 1] - 1).collect();
        let panel = panel.joined(&stretches)?;
        let mut learner =
            StateSpaceLearner::new(&panel, &StateSpaceParams { rounds: REFIT_ROUNDS, ..self.params.clone() })?;
        let fresh = std::mem::replace(&mut learner.state, self.state.clone()).dynamics.trend_loading;
        if let (Some(trend_loading), Some(fresh)) = (&mut learner.state.dynamics.trend_loading, fresh) {
            trend_loading.trend = fresh.trend;
        }
        learner.distinct = self.distinct.clone();
        learner.run()?;
        learner.state.estimate(&self.params, &self.distinct)
    }

    pub(crate) fn len(&self) -> usize {
        self.stretches.len()
    }

    /// The network that fits these stretches, each as often as it is named.
    pub(crate) fn draw(&self, numbers: &[usize]) -> Result<Estimate, Error> {
        let (agents, ratios) = (self.state.dynamics.agents, self.state.dynamics.ratios);
        let mut moments = Moments::empty(agents, ratios);
        for &number in numbers {
            moments.merge(&self.stretches[number])?;
        }
        let mut state = self.state.clone();
        let design =
            Regressors::from_moments(&moments, &self.distinct, self.params.support.as_deref(), (0..agents).collect());
        state.listen(&design, &self.params, &self.distinct);
        state.estimate(&self.params, &self.distinct)
    }
}

/// The shrinkage of each weight a listener gives another: its place, precision and centre. A weight is shrunk towards
/// what others give the same speaker, as a share of what all speakers of the listener would get evenly.
fn shrunk<'a>(
    design: &'a Regressors<'_>,
    position: usize,
    common: &'a [f64],
    shrinkage: f64,
) -> impl Iterator<Item = (usize, f64, f64)> + 'a {
    let speakers = design.regressors(position);
    let own = design.original(design.listeners[position]);
    let count = speakers.len() as f64;
    let others = speakers.iter().enumerate().filter(move |(_, speaker)| **speaker != own);
    others.map(move |(place, &speaker)| (place, shrinkage * count, common[speaker] / count))
}

/// W = Q⁻¹; Q has been floored.
pub(crate) fn inverted(block: &Mat<f64>) -> Mat<f64> {
    fit::powered(block, |value, _| 1.0 / value)
}

/// What the series look like before anything is fitted.
pub(crate) struct SeriesSummary {
    /// D means of what is said.
    means: Vec<f64>,
    /// D variances of what is believed: what the noise of the posts leaves.
    variances: Vec<f64>,
    /// H × H covariance of the noise of a post.
    noise: Mat<f64>,
}

impl SeriesSummary {
    /// Mean and variance of the beliefs of one series; a series that never moves has a little of what the others have.
    pub(crate) fn series(&self, cell: usize) -> (f64, f64) {
        let pooled = self.variances.iter().sum::<f64>() / self.variances.len() as f64;
        (self.means[cell], self.variances[cell].max(SMALLEST_VARIANCE * pooled))
    }

    /// Variance of the noise of a post on one ratio.
    pub(crate) fn noise(&self, ratio: usize) -> f64 {
        self.noise[(ratio, ratio)]
    }

    /// Means of many posts vary less than single posts: products of deviations regressed on 1/c, each agent with its own
    /// level, give the noise of a post whatever the beliefs do.
    fn from_panel(panel: &Panel, steps: usize) -> Self {
        let (agents, ratios) = (panel.agents(), panel.ratios());
        let size = agents * ratios;
        let (mut means, mut spreads, mut shares) = (vec![0.0; size], vec![0.0; size], vec![0.0; agents]);
        let (mut slope, mut whole) = (Mat::<f64>::zeros(ratios, ratios), Mat::<f64>::zeros(ratios, ratios));
        let (mut weight, mut cells) = (0.0, 0.0);
        for agent in 0..agents {
            let said: Vec<usize> = (0..steps).filter(|&step| panel.posts(step, agent) > 0).collect();
            let count = said.len().max(1) as f64;
            let share = |step: usize| 1.0 / f64::from(panel.posts(step, agent));
            let value = |step: usize, ratio: usize| panel.cells()[step * size + ratio * agents + agent];
            shares[agent] = said.iter().map(|&step| share(step)).sum::<f64>() / count;
            for ratio in 0..ratios {
                means[ratio * agents + agent] = said.iter().map(|&step| value(step, ratio)).sum::<f64>() / count;
            }
            for &step in &said {
                let above = share(step) - shares[agent];
                let deviation = |ratio: usize| value(step, ratio) - means[ratio * agents + agent];
                for h in 0..ratios {
                    spreads[h * agents + agent] += deviation(h).powi(2) / count;
                    for g in 0..ratios {
                        slope[(h, g)] += above * deviation(h) * deviation(g);
                        whole[(h, g)] += deviation(h) * deviation(g) / share(step);
                    }
                }
                weight += above * above;
                cells += 1.0;
            }
        }
        let most = Mat::from_fn(ratios, ratios, |h, g| whole[(h, g)] / f64::max(cells, 1.0));
        let largest = (0..ratios).map(|h| most[(h, h)]).fold(f64::MIN_POSITIVE, f64::max);
        let noise = match weight > LEAST_SPREAD * cells {
            true => Mat::from_fn(ratios, ratios, |h, g| slope[(h, g)] / weight),
            false => Mat::from_fn(ratios, ratios, |h, g| FIRST_NOISE * most[(h, g)]),
        };
        let noise = fit::powered(&noise, |value, _| value.clamp(FEWEST_NOISE * largest, MOST_NOISE * largest));
        let variance = |cell: usize| {
            let blur = noise[(cell / agents, cell / agents)] * shares[cell % agents];
            (spreads[cell] - blur).max(FEWEST_NOISE * spreads[cell])
        };
        SeriesSummary { variances: (0..size).map(variance).collect(), means, noise }
    }
}
