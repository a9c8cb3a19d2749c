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

use super::fit;
use super::gsl::Constraint;
use super::hearing::{Crowd, Hearing};
use super::kalman::{Dynamics, Smoothed};
use super::moments::Moments;
use super::simplex;
use super::strengths::{self, Strengths};
use super::whitened;
use crate::error::require;
use crate::model::{self, Column, Diagnostics, Innovation, Method, Smoothing, Track, Weights};
use crate::{Combination, Error, Evidence, Model, Panel};
use faer::Mat;
use serde::{Deserialize, Serialize};

/// Parameters of [`state_space`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `adaptation` | none | δ; estimated when not given | (0, 1) |
/// | `constraint` | simplex | what a listener's weights must satisfy | |
/// | `weights` | edges | one weight per edge, or one strength per speaker | |
/// | `ridge` | 0 | added to every G_k, relative to its mean diagonal | ≥ 0 |
/// | `pull` | 100 | how strongly a weight is drawn to what others give the same speaker: 1/variance, per speaker heard | ≥ 0 |
/// | `rounds` | 200 | of expectation-maximisation, at most | ≥ 1 |
/// | `tolerance` | 1e-5 | stop when a round gains less log-likelihood than this per belief | ≥ 0 |
/// | `support` | none | for each listener the speakers it may hear; itself is always allowed | N lists |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table above says it once")]
pub struct StateSpace {
    pub adaptation: Option<f64>,
    pub constraint: Constraint,
    pub weights: Weights,
    pub ridge: f64,
    pub pull: f64,
    pub rounds: usize,
    pub tolerance: f64,
    pub support: Option<Vec<Vec<usize>>>,
}

impl Default for StateSpace {
    fn default() -> Self {
        StateSpace {
            adaptation: None,
            constraint: Constraint::Simplex,
            weights: Weights::Edges,
            ridge: 0.0,
            pull: 100.0,
            rounds: 200,
            tolerance: 1e-5,
            support: None,
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

/// Steps of the search for δ.
const STEPS_FOR_ADAPTATION: usize = 30;

/// Where the fit stands after a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Rounds done.
    pub number: usize,
    /// Log-likelihood of all that was said, of the parameters this round started from.
    pub log_likelihood: f64,
    /// What the latest round gained, per belief; none after the first.
    pub gain: Option<f64>,
    /// Whether it was too little to go on.
    pub converged: bool,
}

/// Expectation-maximisation, a round at a time, so that a caller can watch and stop it.
///
/// ```
/// use headwater::{learn::state_space::{Learner, StateSpace}, simulate::noisy::{NoisyWorld, noisy}};
/// let (panel, _) = noisy(&NoisyWorld { agents: 5, steps: 200, ..NoisyWorld::default() }).unwrap();
/// let mut learner = Learner::new(&panel, &StateSpace::default()).unwrap();
/// let (first, second) = (learner.round().unwrap(), learner.round().unwrap());
/// assert!(second.log_likelihood > first.log_likelihood);
/// ```
#[derive(Debug)]
pub struct Learner<'a> {
    panel: &'a Panel,
    /// Frames used, from the first.
    steps: usize,
    params: StateSpace,
    crowd: Crowd,
    beliefs: usize,
    state: State,
    latest: Option<Round>,
}

/// The parameters as they stand.
#[derive(Debug, Clone)]
struct State {
    dynamics: Dynamics,
    /// 1 − δ, or nothing when weights are free.
    sum: f64,
    /// (1−δ) times the columns, by position in the regressors of each listener.
    columns: Vec<Vec<f64>>,
    strengths: Option<Strengths>,
    /// What the weights are held to beside the likelihood: the prior of the strengths.
    penalty: f64,
    /// For each speaker the weight it is given, relative to an even share.
    common: Vec<f64>,
}

impl<'a> Learner<'a> {
    /// Prepares a fit to a whole panel.
    pub fn new(panel: &'a Panel, params: &StateSpace) -> Result<Self, Error> {
        Learner::of(panel, panel.steps(), params)
    }

    /// Prepares a fit to the first steps of a panel.
    pub(crate) fn of(panel: &'a Panel, steps: usize, params: &StateSpace) -> Result<Self, Error> {
        check(panel, steps, params)?;
        let crowd = Crowd::of(&panel.clone().carry_forward().0);
        if crowd.regressors.is_empty() {
            return Err(Error::Undefined {
                what: "a network",
                reason: "no agent's beliefs change: there is nothing to learn from".into(),
            });
        }
        let beliefs: usize = (0..steps)
            .map(|step| (0..panel.agents()).filter(|&agent| panel.posts(step, agent) > 0).count())
            .sum();
        let state = State::first(panel, steps, params, &crowd);
        Ok(Learner { panel, steps, params: params.clone(), crowd, beliefs: beliefs * panel.ratios(), state, latest: None })
    }

    /// One round: what they believed, then the network. Cost: about 14(NH)³ operations a step.
    pub fn round(&mut self) -> Result<Round, Error> {
        let filtered = self.state.dynamics.filter(self.panel, self.steps, true)?;
        let smoothed = self.state.dynamics.smooth(self.panel, &filtered, &[1, self.steps])?;
        let log_likelihood = filtered.log_likelihood - self.state.penalty;
        drop(filtered);
        self.state.maximise(&smoothed, &self.params, &self.crowd);
        let before = self.latest;
        let gain = before.map(|before| (log_likelihood - before.log_likelihood) / self.beliefs as f64);
        let round = Round {
            number: before.map_or(0, |before| before.number) + 1,
            log_likelihood,
            gain,
            converged: gain.is_some_and(|gain| gain < self.params.tolerance),
        };
        self.latest = Some(round);
        Ok(round)
    }

    /// Rounds until one gains too little, or there were enough.
    pub fn run(&mut self) -> Result<(), Error> {
        while !self.done() {
            self.round()?;
        }
        Ok(())
    }

    /// Whether another round is worth it.
    pub fn done(&self) -> bool {
        self.latest.is_some_and(|latest| latest.converged || latest.number >= self.params.rounds)
    }

    /// What was learned so far, with the moments of what they believed in so many stretches, for resampling.
    fn smoothed(&self, stretches: usize) -> Result<(f64, Smoothed), Error> {
        let filtered = self.state.dynamics.filter(self.panel, self.steps, true)?;
        let transitions = self.steps - 1;
        let borders: Vec<usize> = (0..=stretches).map(|border| 1 + border * transitions / stretches).collect();
        let smoothed = self.state.dynamics.smooth(self.panel, &filtered, &borders)?;
        Ok((filtered.log_likelihood, smoothed))
    }

    /// The network so far.
    pub fn combination(&self) -> Result<Combination, Error> {
        self.state.combination(&self.params, &self.crowd)
    }

    /// What was learned so far.
    pub fn model(&self) -> Result<Model, Error> {
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
        let evidence = (0..agents * ratios).map(|cell| dynamics.drift[cell % ratios * agents + cell / ratios] / adaptation);
        let mut model = Model {
            roster: self.panel.roster().clone(),
            combination,
            evidence: Evidence::from_rows(evidence.collect(), agents, ratios)?,
            adaptation,
            method: Method::StateSpace,
            truth: Some(model::settled(&believed, adaptation)),
            innovation: Some(Innovation::from_cells((0..agents).flat_map(news).collect(), agents, ratios)?),
            likelihoods: None,
            diagnostics: Diagnostics::default(),
            track: Track::default(),
        };
        whitened::silence_the_still(&mut model, &self.crowd)?;
        let hearing = Hearing::by(&smoothed.stretches[0], &self.crowd, self.params.support.as_deref(), (0..agents).collect());
        let precisions = hearing.each(|position| {
            let ear = hearing.ear(position);
            whitened::Precision::of(&ear, &fit::inverse(&ear, &dynamics.innovation[hearing.listeners[position]]))
        });
        let mut columns: Vec<Column> = names.iter().map(|name| Column::statistical(name, ratios)).collect();
        let mut errors = vec![vec![0.0; ratios]; agents];
        for (precision, &agent) in precisions.iter().zip(&hearing.listeners) {
            columns[agent].condition = precision.condition;
            columns[agent].weight_error = precision.sound().map(|precision| precision.weight_error / sum);
            let covariance = &dynamics.innovation[agent];
            let found =
                whitened::evidence_errors(Some(precision), covariance, self.steps - 1, model.evidence.agent(agent), 0.0);
            errors[agent] = found.into_iter().map(|error| error / adaptation).collect();
        }
        let round = self.latest.unwrap_or(Round { number: 0, log_likelihood, gain: None, converged: false });
        let mut warnings = self.crowd.warnings(self.panel);
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
                weights: self.params.weights,
                strengths: self.state.strengths.as_ref().map(Strengths::relative),
            }),
            warnings,
            ..Diagnostics::default()
        };
        Ok(model)
    }

    /// Squared errors of one-step forecasts of what is said from a step on: summed, and over how many cells.
    fn forecast(&self, from: usize) -> Result<(f64, usize), Error> {
        let (agents, ratios) = (self.panel.agents(), self.panel.ratios());
        let size = agents * ratios;
        let filtered = self.state.dynamics.filter(self.panel, self.panel.steps(), false)?;
        let mut error = (0.0, 0);
        for step in from..self.panel.steps() {
            for agent in (0..agents).filter(|&agent| self.panel.posts(step, agent) > 0) {
                for ratio in 0..ratios {
                    let cell = step * size + ratio * agents + agent;
                    error.0 += (self.panel.cells()[cell] - filtered.forecast[cell]).powi(2);
                }
                error.1 += 1;
            }
        }
        Ok(error)
    }
}

/// Learns a network from beliefs with silence and noise: [`Learner`] run to its end.
///
/// Errors: fewer than ten steps, all agents constant, parameters out of range, more covariances than memory holds.
pub fn state_space(panel: &Panel, params: &StateSpace) -> Result<Model, Error> {
    let mut learner = Learner::new(panel, params)?;
    learner.run()?;
    learner.model()
}

impl StateSpace {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(adaptation) = self.adaptation {
            model::check_adaptation(adaptation)?;
        }
        require(self.ridge >= 0.0 && self.ridge.is_finite(), "ridge", self.ridge, "zero or more")?;
        require(self.pull >= 0.0 && self.pull.is_finite(), "pull", self.pull, "zero or more")?;
        require(self.rounds >= 1, "rounds", self.rounds, "at least 1")?;
        require(self.tolerance >= 0.0, "tolerance", self.tolerance, "zero or more")?;
        let graph = self.weights == Weights::Edges || self.support.is_some();
        require(graph, "weights", "strengths", "edges when no graph says who may hear whom")?;
        let simplex = self.weights == Weights::Edges || self.constraint == Constraint::Simplex;
        require(simplex, "constraint", "free", "simplex with strengths, which are shares by nature")
    }
}

/// Steps without which nothing is learned.
const FEWEST_STEPS: usize = 10;

fn check(panel: &Panel, steps: usize, params: &StateSpace) -> Result<(), Error> {
    params.check()?;
    whitened::check_support(panel.agents(), params.support.as_deref())?;
    if steps < FEWEST_STEPS {
        return Err(Error::NotReady { seen: steps, needed: FEWEST_STEPS });
    }
    Ok(())
}

impl State {
    fn first(panel: &Panel, steps: usize, params: &StateSpace, crowd: &Crowd) -> Self {
        let (agents, ratios) = (panel.agents(), panel.ratios());
        let size = agents * ratios;
        let Glance { means, variances, noise } = Glance::of(panel, steps);
        let pooled = variances.iter().sum::<f64>() / size as f64;
        let spread: Vec<f64> = variances.iter().map(|variance| variance.max(SMALLEST_VARIANCE * pooled)).collect();
        let news = |agent: usize| {
            Mat::from_fn(ratios, ratios, |h, g| if h == g { FIRST_NEWS * spread[h * agents + agent] } else { 0.0 })
        };
        let dynamics = Dynamics {
            agents,
            ratios,
            hears: Mat::zeros(agents, agents),
            drift: vec![0.0; size],
            innovation: (0..agents).map(news).collect(),
            noise,
            start: means,
            spread,
        };
        let strengths = match (params.weights, &params.support) {
            (Weights::Strengths, Some(_)) => Some(Strengths::equal(agents, FIRST_SELF_WEIGHT)),
            _ => None,
        };
        let sum = 1.0 - params.adaptation.unwrap_or(FIRST_ADAPTATION);
        let nothing = Moments::empty(agents, ratios);
        let hearing = Hearing::by(&nothing, crowd, params.support.as_deref(), (0..agents).collect());
        let columns = hearing.each(|position| {
            let speakers = hearing.regressors(position);
            let own = |speaker: usize| f64::from(u8::from(speaker == hearing.original(hearing.listeners[position])));
            let weight = |speaker: usize| {
                (1.0 - FIRST_SELF_WEIGHT) / speakers.len() as f64 + FIRST_SELF_WEIGHT * own(speaker)
            };
            let total: f64 = speakers.iter().map(|&speaker| weight(speaker)).sum();
            speakers.iter().map(|&speaker| sum * weight(speaker) / total).collect()
        });
        let mut state = State { dynamics, sum, columns, strengths, common: vec![0.0; agents], penalty: 0.0 };
        state.pool(&hearing, params);
        state.write_hears(&hearing, crowd);
        let means = state.dynamics.start.clone();
        state.write_drift(&means, &means);
        state
    }

    /// B from the columns; an agent that never moves hears itself.
    fn write_hears(&mut self, hearing: &Hearing<'_>, crowd: &Crowd) {
        let agents = self.dynamics.agents;
        let mut hears = Mat::zeros(agents, agents);
        for agent in (0..agents).filter(|&agent| crowd.constant[agent]) {
            hears[(agent, agent)] = self.sum;
        }
        for (position, (&listener, weights)) in hearing.listeners.iter().zip(&self.columns).enumerate() {
            for (&speaker, &weight) in hearing.regressors(position).iter().zip(weights) {
                for (copy, weight) in crowd.share(speaker, weight) {
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
    fn maximise(&mut self, smoothed: &Smoothed, params: &StateSpace, crowd: &Crowd) {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        let moments = &smoothed.stretches[0];
        let hearing = Hearing::by(moments, crowd, params.support.as_deref(), (0..agents).collect());
        self.listen(&hearing, params, crowd);
        let (sum, count) = &smoothed.noise;
        let largest = (0..ratios).map(|h| sum[(h, h)] / *count as f64).fold(0.0, f64::max);
        let noise = Mat::from_fn(ratios, ratios, |h, g| sum[(h, g)] / *count as f64);
        self.dynamics.noise = fit::powered(&noise, |value, _| value.max(SMALLEST_VARIANCE * largest));
        self.dynamics.start.copy_from_slice(&smoothed.frames[..agents * ratios]);
    }

    /// The network that makes moments likeliest: columns and δ, then the news of each step.
    fn listen(&mut self, hearing: &Hearing<'_>, params: &StateSpace, crowd: &Crowd) {
        match &mut self.strengths {
            Some(found) => {
                let share = params.adaptation.map(|adaptation| 1.0 - adaptation);
                let (columns, sum) = strengths::maximise(found, hearing, &self.dynamics.innovation, self.sum, share);
                (self.columns, self.sum) = (columns, sum);
                self.penalty = found.penalty();
            }
            None => {
                self.maximise_edges(hearing, params);
                self.pool(hearing, params);
            }
        }
        self.write_hears(hearing, crowd);
        if let Some(moments) = hearing.moments() {
            self.write_drift(&moments.mean_x(), &moments.mean_y());
        }
        let blocks = hearing.each(|position| {
            let left = fit::covariance(&hearing.ear(position), &self.columns[position]);
            self.floored(&left, hearing.listeners[position])
        });
        hearing.listeners.iter().zip(blocks).for_each(|(&agent, block)| self.dynamics.innovation[agent] = block);
    }

    /// A covariance with no direction quieter than rounding.
    fn floored(&self, block: &Mat<f64>, agent: usize) -> Mat<f64> {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        let scale = (0..ratios).map(|h| self.dynamics.spread[h * agents + agent]).fold(0.0, f64::max);
        fit::powered(block, |value, _| value.max(SMALLEST_VARIANCE * scale))
    }

    /// The columns, and δ where it is not given: the minimum over the sum of all weights is convex, and its slope is
    /// the sum of the multipliers.
    fn maximise_edges(&mut self, hearing: &Hearing<'_>, params: &StateSpace) {
        let innovation = &self.dynamics.innovation;
        let columns = &self.columns;
        let common = &self.common;
        let normal = |position: usize| {
            let ear = hearing.ear(position);
            let (mut gram, mut linear) = fit::normal(&ear, &inverted(&innovation[hearing.listeners[position]]));
            fit::lift(&mut gram, params.ridge.max(1e-14));
            for (place, pull, middle) in pulls(hearing, position, common, params.pull) {
                gram[(place, place)] += pull;
                linear[place] += pull * middle;
            }
            (gram, linear)
        };
        if params.constraint == Constraint::Free {
            let solved = hearing.each(|position| {
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
        let at = |sum: f64, start: &[Vec<f64>]| -> Vec<Option<simplex::Optimum>> {
            hearing.each(|position| {
                let (gram, linear) = normal(position);
                simplex::optimum(&gram, &linear, sum, &start[position])
            })
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
            let pull: f64 = found.iter().flatten().map(|optimum| optimum.multiplier).sum();
            let stiffness: f64 = found.iter().flatten().map(|optimum| optimum.stiffness).sum();
            weights = keep(found, &weights);
            if pull > 0.0 {
                low = sum;
            } else {
                high = sum;
            }
            let newton = sum + pull / stiffness;
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
    fn pool(&mut self, hearing: &Hearing<'_>, params: &StateSpace) {
        let mut given = vec![(0.0, 0.0); self.common.len()];
        for (position, weights) in self.columns.iter().enumerate() {
            let speakers = hearing.regressors(position);
            let own = hearing.original(hearing.listeners[position]);
            for (&speaker, weight) in speakers.iter().zip(weights).filter(|(speaker, _)| **speaker != own) {
                given[speaker].0 += weight;
                given[speaker].1 += 1.0 / speakers.len() as f64;
            }
        }
        self.common = given.iter().map(|(weight, even)| if *even > 0.0 { weight / even } else { 0.0 }).collect();
        let far = |(position, weights): (usize, &Vec<f64>)| -> f64 {
            let pulled = pulls(hearing, position, &self.common, params.pull);
            pulled.map(|(place, pull, middle)| 0.5 * pull * (weights[place] - middle).powi(2)).sum()
        };
        self.penalty = self.columns.iter().enumerate().map(far).sum();
    }

    fn combination(&self, params: &StateSpace, crowd: &Crowd) -> Result<Combination, Error> {
        let agents = self.dynamics.agents;
        let empty = Moments::empty(agents, self.dynamics.ratios);
        let hearing = Hearing::by(&empty, crowd, params.support.as_deref(), (0..agents).collect());
        whitened::combine(&hearing, crowd, &self.columns, self.sum, agents, params.support.is_some())
    }
}

/// For each weight a listener gives another: its place, how strongly it is pulled, and to where. A weight is pulled
/// towards what others give the same speaker, as a share of what all speakers of the listener would get evenly.
fn pulls<'a>(
    hearing: &'a Hearing<'_>,
    position: usize,
    common: &'a [f64],
    pull: f64,
) -> impl Iterator<Item = (usize, f64, f64)> + 'a {
    let speakers = hearing.regressors(position);
    let own = hearing.original(hearing.listeners[position]);
    let count = speakers.len() as f64;
    let others = speakers.iter().enumerate().filter(move |(_, speaker)| **speaker != own);
    others.map(move |(place, &speaker)| (place, pull * count, common[speaker] / count))
}

/// W = Q⁻¹; Q has been floored.
pub(crate) fn inverted(block: &Mat<f64>) -> Mat<f64> {
    fit::powered(block, |value, _| 1.0 / value)
}

/// What the series look like before anything is fitted.
struct Glance {
    /// D means of what is said.
    means: Vec<f64>,
    /// D variances of what is believed: what the noise of the posts leaves.
    variances: Vec<f64>,
    /// H × H covariance of the noise of a post.
    noise: Mat<f64>,
}

impl Glance {
    /// Means of many posts vary less than single posts: products of deviations regressed on 1/c, each agent with its own
    /// level, give the noise of a post whatever the beliefs do.
    fn of(panel: &Panel, steps: usize) -> Self {
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
        Glance { variances: (0..size).map(variance).collect(), means, noise }
    }
}
