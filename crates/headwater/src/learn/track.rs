//! Tracking: a network watched frame by frame, and what changes in it.
//!
//! In: one complete frame after another. Out: a [`Change`] when one is noticed, and at any time a [`Model`] of what holds
//! now. The statistics are those of the whitened learner: a ring of moments for all that was seen, a window of frames for
//! the symbols, and per listener a guard that knows what its next frame may look like.
//!
//! A listener whose weights change leaves its guard: its residual is none of its atoms, its noise-free contrasts are not
//! zero, or, where everything is noisy, its errors are larger than they used to be for too long (CUSUM). Only that listener
//! starts anew. A change of the true state leaves all of that as it was and shows in which symbols occur: the residual
//! over δ *is* the log-likelihood ratio of the private observation, and its sum against the present truth is a CUSUM too.

use super::change_detector::{ChangeDetector, EVIDENCE};
use super::fit::{self, Fit, Standing};
use super::forecast::Forecast;
use super::gsl::Constraint;
use super::moments::{Moments, affordable};
use super::private_likelihoods;
use super::regressors::{DistinctAgents, Regressors};
use super::ring::Ring;
use super::symbols::Split;
use super::whitened::{self, Means, Precision, WhitenedParams};
use super::{Method, StreamingLearner, Update};
use crate::error::require;
use crate::model::{
    self, ChangeKind, ColumnDiagnostics, DetectedChange, Diagnostics, Innovation, Likelihood, NetworkSnapshot, Status,
    Track, TrueHypothesis,
};
use crate::{Combination, Error, Evidence, Frame, Model, Panel, Roster};
use faer::Mat;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// How far back a tracker looks for what it cannot know exactly.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// To the last change of the listener.
    #[default]
    All,
    /// Every step back counts this much less.
    Forget(f64),
    /// This many steps.
    Recent(usize),
}

impl Memory {
    /// Whether its number is in range.
    pub fn check(self) -> Result<(), Error> {
        match self {
            Memory::All => Ok(()),
            Memory::Forget(factor) => {
                require(factor > 0.0 && factor < 1.0, "forget", factor, "a factor above 0 and below 1")
            }
            Memory::Recent(steps) => require(steps >= 3, "recent", steps, "at least 3 steps"),
        }
    }

    /// Steps that count, about.
    fn steps(self) -> usize {
        match self {
            Memory::All => usize::MAX,
            Memory::Forget(factor) => (1.0 / (1.0 - factor)) as usize,
            Memory::Recent(steps) => steps,
        }
    }
}

/// Parameters of a [`Tracker`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `whitened` | | the learner's own parameters | |
/// | `memory` | all | how far back statistical fits look | λ in (0, 1), or ≥ 3 steps |
/// | `window` | none | frames kept for symbols; chosen from N and H when not given | ≥ 16 |
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrackParams {
    /// The learner's own parameters.
    pub whitened: WhitenedParams,
    /// How far back statistical fits look.
    pub memory: Memory,
    /// Frames kept for symbols.
    pub window: Option<usize>,
}

/// Weights solved from something conditioned worse than this are solved again later, when more was seen.
const POOR: f64 = 1e5;

/// A weight above this is heard.
const HEARD: f64 = 1e-6;

/// Steps a report waits for other listeners that noticed the same change.
const GATHER: usize = 2;

/// Transitions per stretch of the ring, at least.
const STRETCH: usize = 32;

/// Steps of the present state before its mean residual means something.
const STEPS_FOR_A_MEAN: usize = 100;

/// Frames kept, at least.
const WINDOW: usize = 256;

/// Transitions beyond what the unknowns ask for before a first fit, and between two.
const SPARE: usize = 10;

/// Bytes the ring of moments may take, about.
const RING_BYTES: usize = 2_000_000_000;

/// Numbers the history may hold, about; beyond it every other snapshot is dropped.
const HISTORY: usize = 4_000_000;

/// A network under watch.
///
/// ```
/// use headwater::learn::track::{Tracker, TrackParams};
/// use headwater::simulate::{ScheduledChange, WorldParams, simulate};
/// let changes = vec![ScheduledChange::Topology { every: 200, probability: 0.02 }];
/// let (panel, truth) = simulate(&WorldParams { steps: 400, changes, ..WorldParams::default() }).unwrap();
/// let mut tracker = Tracker::new(panel.roster().clone(), TrackParams::default()).unwrap();
/// let mut changes = Vec::new();
/// for step in 0..panel.steps() {
///     changes.extend(tracker.observe(&panel.frame(step)).unwrap().changes);
/// }
/// assert_eq!((changes.len(), changes[0].since), (1, 200));
/// let model = tracker.model().unwrap(); // exact again
/// assert!((model.combination.weight(0, 0) - truth.combination.weight(0, 0)).abs() < 1e-9);
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tracker {
    roster: Roster,
    params: TrackParams,
    window: usize,
    stretch: usize,
    /// The latest frames in column order.
    frames: Vec<f64>,
    /// Number of the first of them.
    base: usize,
    /// Frames seen in all.
    seen: usize,
    /// Who was silent in the last frame but one, and in the last; nobody where empty.
    silent: [Vec<bool>; 2],
    largest: f64,
    ring: Ring,
    /// The first step whose transition is not in the ring.
    open: usize,
    watches: Vec<WatchedListener>,
    adaptation: Option<f64>,
    state: TruthDetector,
    /// A change of topology that waits for other listeners.
    gathering: Option<DetectedChange>,
    ready: VecDeque<DetectedChange>,
    track: Track,
    /// Squared errors of forecasting each frame from the one before, and of "nobody changes their mind".
    errors: Vec<(f64, f64)>,
    /// What the latest fit of everybody had to say of who cannot be told apart.
    remarks: Vec<String>,
}

/// One listener under watch.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct WatchedListener {
    /// The first step its present weights hold for.
    since: usize,
    /// When to fit again, in frames seen.
    next: usize,
    /// Frames since `since` when symbols were last looked for.
    searched: usize,
    known: Option<KnownColumn>,
    /// Whether what is known is of the time before a change.
    stale: bool,
}

/// What is known of a listener.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct KnownColumn {
    /// (1−δ) times its weights, zeros left out.
    weights: Vec<(usize, f64)>,
    column: ColumnDiagnostics,
    /// Residual covariance, H × H.
    #[serde(with = "super::saved")]
    covariance: Mat<f64>,
    /// What its free fit says of 1−δ, and how surely.
    vote: (f64, f64),
    /// Standard errors of its evidence.
    errors: Vec<f64>,
    /// Mean residual in the present state, and of how many steps.
    mean: (Vec<f64>, usize),
    guard: ChangeDetector,
}

/// Which hypothesis is true, by the private observations.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TruthDetector {
    truth: usize,
    /// The first step of the present state.
    since: usize,
    /// Log-likelihood of each hypothesis since then, up to a constant.
    scores: Vec<f64>,
    /// Whether the truth has once been clearly ahead of each.
    settled: Vec<bool>,
    /// Evidence for each other hypothesis since it last was nil, and when that was.
    doubts: Vec<(f64, usize)>,
}

/// What a fit says of one listener.
struct ListenerFit<'a> {
    weights: Vec<(usize, f64)>,
    fit: Fit,
    standing: &'a Standing,
    split: Option<&'a Split>,
    /// Transitions behind it, or what forgetting left of them.
    transitions: f64,
    /// Speakers it chose from.
    speakers: usize,
    /// How surely its weights are known, where they are estimates.
    precision: Option<Precision>,
    /// Variance of 1−δ̂, and δ̂.
    vote: f64,
    adaptation: f64,
}

/// What one step says of one listener.
struct ListenerResidual {
    residual: Vec<f64>,
    onset: Option<usize>,
}

impl Tracker {
    /// A tracker that has seen nothing.
    pub fn new(roster: Roster, params: TrackParams) -> Result<Self, Error> {
        params.whitened.check()?;
        params.memory.check()?;
        let (agents, ratios) = (roster.agents().len(), roster.ratios());
        let most = params
            .whitened
            .support
            .as_ref()
            .map_or(agents, |support| support.iter().map(|speakers| speakers.len() + 1).max().unwrap_or(1));
        let needed = most / ratios + SPARE;
        if params.memory.steps() < needed {
            return Err(Error::Undefined {
                what: "a fit to so short a memory",
                reason: format!(
                    "about {} steps count, and {most} weights per listener need {needed}: remember more, or give a graph",
                    params.memory.steps()
                ),
            });
        }
        let window = params.window.unwrap_or(WINDOW.max(4 * agents / ratios + WINDOW / 2));
        require(window >= 16, "window", window, "at least 16 frames")?;
        let size = agents * ratios;
        affordable(size, 5, "follow fewer agents")?;
        let capacity = (RING_BYTES / (16 * size * size)).clamp(4, 256);
        let watch = WatchedListener { since: 1, next: 0, searched: 0, known: None, stale: false };
        Ok(Tracker {
            window,
            // Short enough that forgetting a stretch as one is forgetting step by step.
            stretch: STRETCH.max(window / 8).min(params.memory.steps() / 8).max(1),
            frames: Vec::new(),
            base: 0,
            seen: 0,
            silent: [Vec::new(), Vec::new()],
            largest: 0.0,
            ring: Ring::new(agents, ratios, capacity),
            open: 1,
            watches: vec![watch; agents],
            adaptation: None,
            state: TruthDetector::new(roster.hypotheses().len(), 1),
            gathering: None,
            ready: VecDeque::new(),
            track: Track::default(),
            errors: Vec::new(),
            remarks: Vec::new(),
            params,
            roster,
        })
    }

    /// Takes the next frame and reports the changes detected.
    ///
    /// Where a belief was filled in because its agent was silent, neither that agent nor its listeners of the next step
    /// are tested for a change. Errors: as [`StreamingLearner::observe`].
    pub fn observe(&mut self, frame: &Frame<'_>) -> Result<Update, Error> {
        frame.check(&self.roster)?;
        self.frames.extend_from_slice(frame.cells());
        self.largest = frame.cells().iter().fold(self.largest, |most, value| most.max(value.abs()));
        self.seen += 1;
        self.silent = [std::mem::take(&mut self.silent[1]), frame.silent_agents()];
        if self.seen >= 2 {
            self.look();
        }
        self.store();
        self.refit()?;
        let step = self.seen - 1;
        if self.gathering.as_ref().is_some_and(|change| change.step + GATHER <= step) {
            self.report_gathered();
        }
        Ok(Update {
            seen: self.seen,
            pass: 0,
            ready: self.adaptation.is_some(),
            forecast: if step == 0 { Forecast::default() } else { self.forecast(step) },
            changes: self.ready.drain(..).collect(),
        })
    }

    /// Changes that were detected but not yet reported, for the end of a stream: a change of topology is reported two
    /// steps after its first listener, together with the others.
    pub fn flush(&mut self) -> Vec<DetectedChange> {
        self.report_gathered();
        self.ready.drain(..).collect()
    }

    /// How well each frame from a step on was forecast from what was known before it.
    pub fn forecast(&self, from: usize) -> Forecast {
        let mut forecast = Forecast { from: from.max(1), end: self.seen, ..Forecast::default() };
        for (error, persistence) in self.errors.iter().skip(forecast.from - 1) {
            forecast.steps += 1;
            forecast.error += error;
            forecast.persistence += persistence;
        }
        forecast
    }

    /// Whose network it is.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Frames seen.
    pub fn seen(&self) -> usize {
        self.seen
    }

    fn report_gathered(&mut self) {
        if let Some(mut change) = self.gathering.take() {
            change.listeners.sort_unstable();
            self.report(change);
        }
    }

    fn report(&mut self, change: DetectedChange) {
        self.track.changes.push(change.clone());
        self.ready.push_back(change);
    }

    fn width(&self) -> usize {
        self.roster.agents().len() * self.roster.ratios()
    }

    fn frame(&self, step: usize) -> &[f64] {
        &self.frames[(step - self.base) * self.width()..][..self.width()]
    }

    /// Compares the latest frame with what every listener's guard expects.
    fn look(&mut self) {
        let step = self.seen - 1;
        let (agents, ratios, largest) = (self.roster.agents().len(), self.roster.ratios(), self.largest);
        let mut watches = std::mem::take(&mut self.watches);
        let (before, now) = (self.frame(step - 1), self.frame(step));
        let silent = &self.silent;
        let glance = |(listener, watch): (usize, &mut WatchedListener)| {
            let known = watch.known.as_mut().filter(|_| !watch.stale)?;
            let filled = |when: usize, agent: usize| silent[when].get(agent).copied().unwrap_or(false);
            let unheard = known.weights.iter().any(|&(speaker, weight)| weight.abs() > HEARD && filled(0, speaker));
            if unheard || filled(1, listener) {
                return None;
            }
            let residual = residual(&known.weights, listener, before, now, agents, ratios);
            let onset = known.guard.step(&residual, largest, step);
            Some(ListenerResidual { residual, onset })
        };
        let glances: Vec<Option<ListenerResidual>> = watches.par_iter_mut().enumerate().map(glance).collect();
        let persistence: Vec<f64> = (0..agents)
            .map(|agent| {
                (0..ratios).map(|ratio| (now[ratio * agents + agent] - before[ratio * agents + agent]).powi(2)).sum()
            })
            .collect();
        let error = watches.iter_mut().zip(&glances).zip(&persistence).map(|((watch, glance), persistence)| {
            match (watch.known.as_mut(), glance) {
                (Some(known), Some(glance)) => known.forecast_error(&glance.residual),
                _ => *persistence,
            }
        });
        let errors = (error.sum(), persistence.iter().sum());
        let toward = self.toward(&watches, &glances);
        self.errors.push(errors);
        for (listener, glance) in glances.iter().enumerate() {
            if let Some(onset) = glance.as_ref().and_then(|glance| glance.onset) {
                let change = self.gathering.get_or_insert_with(|| DetectedChange {
                    step,
                    since: onset,
                    kind: ChangeKind::Topology,
                    listeners: Vec::new(),
                    truth: None,
                });
                change.since = change.since.min(onset);
                change.listeners.push(listener);
                watches[listener].restart(onset, self.seen);
            }
        }
        self.watches = watches;
        let turn = toward.and_then(|(toward, limit)| self.state.step(&toward, limit, step));
        if let Some((truth, since)) = turn {
            self.report(DetectedChange {
                step,
                since,
                kind: ChangeKind::State,
                listeners: Vec::new(),
                truth: Some(truth),
            });
            self.watches.iter_mut().for_each(WatchedListener::forget_state);
            self.snapshot();
        }
    }

    /// Evidence of this step for each hypothesis and against the present truth, and how much of it makes a change.
    ///
    /// Exact listeners speak for themselves. Where there are none, those with noisy weights do: their residuals relative
    /// to what is usual, and with a limit that allows for errors in the weights, which last as long as beliefs do.
    fn toward(&self, watches: &[WatchedListener], glances: &[Option<ListenerResidual>]) -> Option<(Vec<f64>, f64)> {
        let adaptation = self.adaptation?;
        let (truth, hypotheses) = (self.state.truth, self.roster.hypotheses().len());
        let against = |values: &[f64], hypothesis: usize| if hypothesis == 0 { 0.0 } else { values[hypothesis - 1] };
        let mut toward = vec![0.0; hypotheses];
        let heard = || {
            watches.iter().zip(glances).filter_map(|(watch, glance)| Some((watch.known.as_ref()?, glance.as_ref()?)))
        };
        let mut exact = false;
        for (_, glance) in heard().filter(|(known, _)| known.guard.is_exact()) {
            exact = true;
            for (hypothesis, toward) in toward.iter_mut().enumerate() {
                *toward += (against(&glance.residual, truth) - against(&glance.residual, hypothesis)) / adaptation;
            }
        }
        if exact {
            return Some((toward, EVIDENCE));
        }
        let mut limit = None;
        for (known, glance) in heard() {
            let ChangeDetector::Errors { centre, burden, .. } = &known.guard else { continue };
            limit = Some(EVIDENCE * (1.0 + burden / adaptation));
            let covariance = |a: usize, b: usize| match (a, b) {
                (0, _) | (_, 0) => 0.0,
                _ => known.covariance[(a - 1, b - 1)],
            };
            for (hypothesis, toward) in toward.iter_mut().enumerate() {
                let unusual = |hypothesis| against(&glance.residual, hypothesis) - against(centre, hypothesis);
                let variance =
                    covariance(truth, truth) + covariance(hypothesis, hypothesis) - 2.0 * covariance(truth, hypothesis);
                *toward += (unusual(truth) - unusual(hypothesis)) / adaptation;
                *toward -= variance / (2.0 * adaptation * adaptation);
            }
        }
        limit.map(|limit| (toward, limit))
    }

    /// Closes a stretch of the ring when it is full, and drops frames that nobody needs.
    fn store(&mut self) {
        let width = self.width();
        if self.seen - self.open >= self.stretch {
            let frames = &self.frames[(self.open - 1 - self.base) * width..];
            self.ring.push(self.open, frames);
            self.open = self.seen;
            match self.params.memory {
                Memory::All => {}
                Memory::Recent(steps) => self.ring.drop_before(self.seen.saturating_sub(steps)),
                // What counts less than a millionth does not count.
                Memory::Forget(factor) => {
                    let steps = (1e-6f64.ln() / factor.ln()).ceil() as usize;
                    self.ring.drop_before(self.seen.saturating_sub(steps));
                }
            }
        }
        if self.seen - self.base > 2 * self.window {
            let drop = (self.seen - self.window).min(self.open - 1) - self.base;
            self.frames.drain(..drop * width);
            self.base += drop;
        }
    }

    /// The moments of all transitions since a step, as far back as memory goes; spread is about the mean of the present
    /// state and of former ones, each by itself.
    fn moments(&self, since: usize) -> Moments {
        let (agents, ratios, width) = (self.roster.agents().len(), self.roster.ratios(), self.width());
        let mut parts = [Moments::empty(agents, ratios), Moments::empty(agents, ratios)];
        let mut add = |first: usize, end: usize, moments: &Moments| {
            let part = &mut parts[usize::from(first < self.state.since)];
            let merged = match self.params.memory {
                Memory::Forget(factor) => {
                    let mut moments = moments.clone();
                    moments.discount(factor.powi((self.seen - end) as i32));
                    part.merge(&moments)
                }
                _ => part.merge(moments),
            };
            // Same shape by construction.
            drop(merged);
        };
        let mut frames = |first: usize, end: usize| {
            let first = first.max(self.base + 1);
            if first < end {
                let mut moments = Moments::empty(agents, ratios);
                moments.push_frames(&self.frames[(first - 1 - self.base) * width..(end - self.base) * width]);
                add(first, end, &moments);
            }
        };
        match self.ring.span(since) {
            None => frames(since, self.seen),
            Some((first, end)) => {
                frames(since, first);
                frames(end, self.seen);
                let mut first = first;
                for (end, moments) in self.ring.stretches(since) {
                    add(first, end, moments);
                    first = end;
                }
            }
        }
        let [mut present, former] = parts;
        present.pool(&former);
        present
    }

    /// Fits the listeners that are due.
    fn refit(&mut self) -> Result<(), Error> {
        let floor = match self.params.memory {
            Memory::Recent(steps) => self.seen.saturating_sub(steps).max(1),
            _ => 1,
        };
        let mut due: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (listener, watch) in self.watches.iter().enumerate().filter(|(_, watch)| watch.next <= self.seen) {
            due.entry(watch.since.max(floor)).or_default().push(listener);
        }
        let mut learned = false;
        for (since, listeners) in due {
            learned |= self.fit(since, listeners)?;
        }
        if learned {
            self.snapshot();
        }
        Ok(())
    }

    /// Fits some listeners to what was seen since a step. Whether anything came out of it.
    fn fit(&mut self, since: usize, listeners: Vec<usize>) -> Result<bool, Error> {
        let (agents, ratios) = (self.roster.agents().len(), self.roster.ratios());
        let seen = self.seen.saturating_sub(since);
        let params = &self.params.whitened;
        let most = params
            .support
            .as_ref()
            .map_or(agents, |support| listeners.iter().map(|&listener| support[listener].len() + 1).max().unwrap_or(1));
        let needed = most / ratios + SPARE;
        if seen < needed {
            listeners.iter().for_each(|&listener| self.watches[listener].next = since + needed);
            return Ok(false);
        }
        let wait = SPARE + (seen / 4).min(self.params.memory.steps() / 8);
        listeners.iter().for_each(|&listener| self.watches[listener].next = self.seen + wait);

        let first = (since - 1).max(self.base);
        let stretch = Panel::complete(self.roster.clone(), self.frames[(first - self.base) * self.width()..].to_vec())?;
        let distinct = DistinctAgents::from_panel(&stretch);
        if listeners.len() == agents {
            self.remarks = distinct.warnings(&stretch);
        }
        let moments = self.moments(since);
        let design = Regressors::from_moments(&moments, &distinct, params.support.as_deref(), listeners);
        if design.listeners.is_empty() {
            return Ok(false);
        }
        let fits = fit::fits(&design, params)?;
        let given = params.adaptation.or(self.certain_adaptation());
        let adaptation = given.unwrap_or_else(|| {
            // Those not fitted now still have their say.
            let others = self
                .watches
                .iter()
                .enumerate()
                .filter(|(listener, _)| design.listeners.binary_search(listener).is_err());
            let others = others.filter_map(|(_, watch)| watch.known.as_ref()).map(|known| known.vote);
            fit::voted(fits.iter().map(|fit| fit.vote).chain(others))
        });
        let standings = design.each(|position| fit::standing(|| design.listener_moments(position), &fits[position]));
        let worth = |&listener: &usize| {
            let searched = self.watches[listener].searched;
            stretch.steps() > searched + searched / 2 && searched < self.window
        };
        let mut splits = vec![None; fits.len()];
        if params.symbols && design.listeners.iter().any(worth) {
            let means = Means::from_panel(&stretch);
            let params = WhitenedParams { adaptation: given, ..params.clone() };
            (splits, _) = whitened::splits(&stretch, &means, &design, &fits, 1.0 - adaptation, &params)?;
            design.listeners.iter().for_each(|&listener| self.watches[listener].searched = stretch.steps());
        }
        let sum = 1.0 - adaptation;
        let vote = match given {
            Some(_) => 0.0,
            None => whitened::variance_of_the_vote(&fits),
        };
        let found = design.each(|position| {
            let fit = &fits[position];
            let refitted = match params.constraint {
                Constraint::Simplex => fit::constrained(&design.listener_moments(position), fit, sum, params),
                Constraint::Free => None,
            };
            let fit = refitted.unwrap_or_else(|| fit.clone());
            let blurred = splits[position].as_ref().and_then(|split: &Split| split.constrained.as_ref());
            let blurred = blurred.filter(|within| {
                let standing = &standings[position];
                let known = standing.status == Status::Identified;
                let agrees = !known || fit::as_quiet(&design.listener_moments(position), &fit, standing.rank, within);
                agrees && params.constraint == Constraint::Simplex
            });
            let certain = splits[position].as_ref().filter(|split| split.certified);
            let weights = certain.map(|split| &split.weights).or(blurred).unwrap_or(&fit.weights);
            let precision = certain.is_none().then(|| {
                let listener_moments = design.listener_moments(position);
                Precision::from_moments(&listener_moments, &fit::inverse(&listener_moments, &fit.covariance))
            });
            let speakers = design.regressors(position).iter().zip(weights);
            let shared = speakers.flat_map(|(&speaker, &weight)| distinct.share(speaker, weight));
            let weights = shared.filter(|(_, weight)| *weight != 0.0).collect();
            let found = ListenerFit {
                weights,
                fit,
                standing: &standings[position],
                split: splits[position].as_ref(),
                transitions: moments.weight(),
                speakers: design.regressors(position).len(),
                precision,
                vote,
                adaptation,
            };
            self.known(design.listeners[position], found, first)
        });
        let (mut learned, mut newly) = (false, Vec::new());
        let listeners = design.listeners.clone();
        for (listener, known) in listeners.into_iter().zip(found) {
            let certified = known.column.status == Status::Certified;
            let watch = &mut self.watches[listener];
            // What was certain stays so unless it can be had better.
            let better = |old: &KnownColumn| certified && known.column.condition < old.column.condition;
            let certain = |old: &&KnownColumn| old.column.status == Status::Certified;
            if !watch.stale && watch.known.as_ref().filter(certain).is_some_and(|old| !better(old)) {
                continue;
            }
            // After a change the former weights are the better guess until there is enough to go by.
            if watch.known.is_some() && watch.stale && !certified && matches!(known.guard, ChangeDetector::Open) {
                continue;
            }
            if certified && known.column.condition.is_some_and(|condition| condition < POOR) {
                watch.next = usize::MAX;
            }
            let exact = watch.guard().is_some_and(ChangeDetector::is_exact);
            (watch.known, watch.stale, learned) = (Some(known), false, true);
            if !exact {
                newly.push(listener);
            }
        }
        let given = self.params.whitened.adaptation.or(self.certain_adaptation());
        self.adaptation = Some(given.unwrap_or(adaptation));
        newly.into_iter().for_each(|listener| self.credit(listener, first + 1));
        if self.state.since == 1
            && !self.watches.iter().any(|watch| watch.guard().is_some_and(ChangeDetector::is_exact))
        {
            self.state.truth = model::settled(&stretch, adaptation).hypothesis;
            self.state.settled = vec![true; self.roster.hypotheses().len()];
        }
        Ok(learned)
    }

    /// What a fit says of a listener, with its guard, from the frames of the window since `first`.
    fn known(&self, listener: usize, found: ListenerFit<'_>, first: usize) -> KnownColumn {
        let ListenerFit { weights, fit, standing, split, transitions, speakers, precision, vote, adaptation } = found;
        let (agents, ratios) = (self.roster.agents().len(), self.roster.ratios());
        let past: Vec<Vec<f64>> = (first + 1..self.seen)
            .map(|step| residual(&weights, listener, self.frame(step - 1), self.frame(step), agents, ratios))
            .collect();
        // In another state the mean was another.
        let present = past.len().min(self.seen - self.state.since);
        let lately = &past[past.len() - present..];
        let usual = |ratio: usize| lately.iter().map(|row| row[ratio]).sum::<f64>() / present.max(1) as f64;
        let mean: Vec<f64> = (0..ratios).map(usual).collect();
        let mut column = ColumnDiagnostics::statistical(&self.roster.agents()[listener], standing.rank);
        column.status = standing.status;
        let less = |row: &Vec<f64>| row.iter().zip(&mean).map(|(value, mean)| value - mean).collect();
        let centred = || past.iter().map(less).collect::<Vec<Vec<f64>>>();
        let guard = match split.filter(|split| split.certified) {
            Some(split) => {
                (column.status, column.condition) = (Status::Certified, Some(split.condition));
                column.weight_error = Some(0.0);
                ChangeDetector::atoms(split, &past, self.largest)
            }
            None if standing.rank < ratios => {
                let quiet = ratios - standing.rank;
                // A fit that could have made its contrasts small by chance guards nothing.
                let sure = transitions >= (5 * speakers / quiet + 20) as f64;
                let guard = ChangeDetector::contrasts(&fit.covariance, quiet, &mean, &centred(), self.largest);
                guard.filter(|_| sure).unwrap_or(ChangeDetector::Open)
            }
            // Likewise; and a mean wants its time.
            None if speakers as f64 > 0.2 * transitions || present < STEPS_FOR_A_MEAN => ChangeDetector::Open,
            None => ChangeDetector::errors(&fit.covariance, &mean, &centred(), (transitions, speakers), agents)
                .unwrap_or(ChangeDetector::Open),
        };
        let mut errors = vec![0.0; ratios];
        if split.is_none_or(|split| !split.certified) {
            column.condition = precision.as_ref().and_then(|precision| precision.condition);
            column.weight_error = precision
                .as_ref()
                .and_then(Precision::sound)
                .map(|precision| precision.weight_error / (1.0 - adaptation));
            let evidence: Vec<f64> = mean.iter().map(|mean| mean / adaptation).collect();
            errors = whitened::evidence_errors(precision.as_ref(), &fit.covariance, present.max(1), &evidence, vote);
            errors.iter_mut().for_each(|error| *error /= adaptation);
        }
        KnownColumn {
            weights,
            column,
            covariance: fit.covariance,
            vote: fit.vote,
            errors,
            mean: (mean, present),
            guard,
        }
    }

    /// Lets the private observations of a listener that has become exact speak for a hypothesis, from a step on.
    fn credit(&mut self, listener: usize, first: usize) {
        let (agents, ratios) = (self.roster.agents().len(), self.roster.ratios());
        let Some(known) = self.watches[listener].known.as_ref().filter(|known| known.guard.is_exact()) else { return };
        let first = first.max(self.state.since);
        let Some(adaptation) = self.adaptation else { return };
        let mut scores = std::mem::take(&mut self.state.scores);
        for step in first..self.seen {
            let row = residual(&known.weights, listener, self.frame(step - 1), self.frame(step), agents, ratios);
            row.iter().enumerate().for_each(|(ratio, value)| scores[ratio + 1] -= value / adaptation);
        }
        self.state.scores = scores;
        self.state.settle();
    }

    /// 1 minus the median sum of the weights that are certified.
    fn certain_adaptation(&self) -> Option<f64> {
        let known = self.watches.iter().filter_map(|watch| watch.known.as_ref());
        let certain = known.filter(|known| known.column.status == Status::Certified);
        let mut votes: Vec<f64> =
            certain.map(|known| 1.0 - known.weights.iter().map(|(_, weight)| weight).sum::<f64>()).collect();
        votes.sort_by(f64::total_cmp);
        votes.get(votes.len() / 2).map(|vote| vote.clamp(*fit::ADAPTATION.start(), *fit::ADAPTATION.end()))
    }

    /// What holds now. Errors: not enough seen yet.
    pub fn model(&self) -> Result<Model, Error> {
        let (agents, ratios) = (self.roster.agents().len(), self.roster.ratios());
        let params = &self.params.whitened;
        let needed = agents / ratios + 11;
        let adaptation = self.adaptation.ok_or_else(|| match self.seen > needed {
            false => Error::NotReady { seen: self.seen, needed },
            true => Error::Undefined { what: "a network", reason: "no agent's beliefs change in what was seen".into() },
        })?;
        let sum = 1.0 - adaptation;
        let recent = Panel::complete(self.roster.clone(), self.frames.clone())?;
        let mut triplets = Vec::new();
        for (listener, watch) in self.watches.iter().enumerate() {
            let Some(known) = &watch.known else {
                triplets.push((listener, listener, 1.0));
                continue;
            };
            let weights: Vec<f64> = known.weights.iter().map(|(_, weight)| *weight).collect();
            let tidied = whitened::tidy(&weights, params.constraint, sum);
            let shares = known.weights.iter().zip(tidied);
            triplets.extend(shares.map(|((speaker, _), weight)| (*speaker, listener, weight / sum)));
        }
        let mut combination = Combination::from_triplets(triplets, agents)?;
        if params.support.is_none() {
            combination = Combination::from_columns(combination.to_columns(), agents)?;
        }
        let found: Vec<Option<private_likelihoods::PrivateLikelihoods>> =
            self.watches.iter().map(|watch| watch.known.as_ref()?.guard.recover(adaptation)).collect();
        let truth = self.state.truth;
        // Means over the present state, for those whose likelihoods are not known.
        let moments = self.moments(self.state.since);
        let (mean_x, mean_y) = (moments.mean_x(), moments.mean_y());
        let mut evidence = Vec::with_capacity(agents * ratios);
        let mut innovation = Vec::with_capacity(agents * ratios * ratios);
        for (listener, watch) in self.watches.iter().enumerate() {
            if let Some(atoms) = &found[listener] {
                let (mean, covariance) = atoms.moments(truth);
                evidence.extend(mean);
                innovation.extend(covariance);
                continue;
            }
            let weights = watch.known.as_ref().map_or(&[][..], |known| &known.weights);
            let mean = residual(weights, listener, &mean_x, &mean_y, agents, ratios);
            evidence.extend(mean.iter().map(|value| value / adaptation));
            let scaled = |cell: usize, known: &KnownColumn| {
                known.covariance[(cell / ratios, cell % ratios)] / (adaptation * adaptation)
            };
            innovation
                .extend((0..ratios * ratios).map(|cell| watch.known.as_ref().map_or(0.0, |known| scaled(cell, known))));
        }
        let known_likelihoods = found.iter().any(Option::is_some);
        let error =
            |(watch, atoms): (&WatchedListener, &Option<private_likelihoods::PrivateLikelihoods>)| match &watch.known {
                Some(known) if atoms.is_none() => known.errors.clone(),
                _ => vec![0.0; ratios],
            };
        let errors = self.watches.iter().zip(&found).map(error).collect();
        let likelihood = |atoms: Option<private_likelihoods::PrivateLikelihoods>| {
            atoms.map_or(Likelihood::Unknown, private_likelihoods::PrivateLikelihoods::into_likelihood)
        };
        let column = |(watch, name): (&WatchedListener, &String)| match &watch.known {
            Some(known) if watch.stale => ColumnDiagnostics::statistical(name, known.column.rank),
            Some(known) => known.column.clone(),
            None => ColumnDiagnostics::statistical(name, 0),
        };
        Ok(Model {
            combination,
            evidence: Evidence::from_rows(evidence, agents, ratios)?,
            adaptation,
            method: Method::Tracked(self.params.clone()),
            truth: Some(TrueHypothesis { hypothesis: truth, agreement: model::agreement(&recent, adaptation, truth) }),
            innovation: Some(Innovation::from_cells(innovation, agents, ratios)?),
            likelihoods: known_likelihoods.then(|| found.into_iter().map(likelihood).collect()),
            diagnostics: Diagnostics {
                columns: self.watches.iter().zip(self.roster.agents()).map(column).collect(),
                column_sum_spread: self.spread(),
                evidence_errors: Some(errors),
                evidence_steps: Some(moments.weight() as usize),
                steps: Some(self.seen),
                warnings: self.warnings(),
                ..Diagnostics::default()
            },
            track: self.track.clone(),
            roster: self.roster.clone(),
        })
    }

    /// Largest minus smallest sum of weights as estimated.
    fn spread(&self) -> Option<f64> {
        let sums =
            self.watches.iter().filter_map(|watch| watch.known.as_ref()).map(|known| match known.column.status {
                Status::Certified => known.weights.iter().map(|(_, weight)| weight).sum(),
                _ => known.vote.0,
            });
        sums.clone().next().map(|_| fit::spread(sums))
    }

    fn warnings(&self) -> Vec<String> {
        let these = |wanted: &dyn Fn(&WatchedListener) -> bool| -> Vec<usize> {
            (0..self.watches.len()).filter(|&listener| wanted(&self.watches[listener])).collect()
        };
        let mut warnings = self.remarks.clone();
        let stale = these(&|watch| watch.stale);
        if !stale.is_empty() {
            warnings.push(format!(
                "these listeners have changed lately and are not learned anew yet; their weights are those from before: {}",
                self.roster.list(&stale)
            ));
        }
        let unknown = these(&|watch| watch.known.is_none());
        if !unknown.is_empty() {
            warnings.push(format!("nothing is known of whom these agents hear: {}", self.roster.list(&unknown)));
        }
        warnings
    }

    /// Remembers what is known now.
    fn snapshot(&mut self) {
        let Ok(Model { combination, evidence, .. }) = self.model() else { return };
        let size = combination.edges().count();
        self.track.history.push(NetworkSnapshot { step: self.seen - 1, combination, evidence });
        if self.track.history.len() > 4 && self.track.history.len() * size > HISTORY {
            let mut keep = false;
            self.track.history.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }
}

impl StreamingLearner for Tracker {
    fn roster(&self) -> &Roster {
        Tracker::roster(self)
    }

    fn observe(&mut self, frame: &Frame<'_>) -> Result<Update, Error> {
        Tracker::observe(self, frame)
    }

    fn model(&self) -> Result<Model, Error> {
        Tracker::model(self)
    }
}

impl KnownColumn {
    /// Squared error of having expected the usual residual, which this one then joins.
    fn forecast_error(&mut self, residual: &[f64]) -> f64 {
        let (mean, count) = &mut self.mean;
        *count += 1;
        let mut error = 0.0;
        for (mean, value) in mean.iter_mut().zip(residual) {
            error += (value - *mean).powi(2);
            *mean += (value - *mean) / *count as f64;
        }
        error
    }
}

impl WatchedListener {
    /// Starts anew at a step; what was known stays as the best guess.
    fn restart(&mut self, since: usize, seen: usize) {
        (self.since, self.next, self.searched, self.stale) = (since, seen, 0, true);
    }

    /// After a change of state frequencies start anew, and means are others.
    fn forget_state(&mut self) {
        if let Some(known) = &mut self.known {
            known.mean.1 = 0;
        }
        match self.known.as_mut().map(|known| &mut known.guard) {
            Some(ChangeDetector::PrivateLikelihoods { counts, .. }) => counts.fill(0),
            // The mean residual is another now: no guard until the next fit has seen enough of it.
            Some(guard @ ChangeDetector::Errors { .. }) => *guard = ChangeDetector::Open,
            _ => {}
        }
    }

    fn guard(&self) -> Option<&ChangeDetector> {
        self.known.as_ref().filter(|_| !self.stale).map(|known| &known.guard)
    }
}

impl TruthDetector {
    fn new(hypotheses: usize, since: usize) -> Self {
        TruthDetector {
            truth: 0,
            since,
            scores: vec![0.0; hypotheses],
            settled: vec![false; hypotheses],
            doubts: vec![(0.0, since); hypotheses],
        }
    }

    /// Among the hypotheses that were never clearly behind, the likeliest is the truth.
    fn settle(&mut self) {
        let open = (0..self.scores.len()).filter(|&hypothesis| !self.settled[hypothesis]);
        let best = open.fold(self.truth, |best, next| if self.scores[next] > self.scores[best] { next } else { best });
        if best != self.truth {
            self.truth = best;
            self.doubts.iter_mut().for_each(|(doubt, _)| *doubt = 0.0);
        }
        let lead = self.scores[self.truth];
        self.settled.iter_mut().zip(&self.scores).for_each(|(settled, score)| *settled |= lead - score > EVIDENCE);
    }

    /// Takes one step's evidence for each hypothesis against the truth; the new truth and its onset when it changed.
    fn step(&mut self, toward: &[f64], limit: f64, step: usize) -> Option<(usize, usize)> {
        self.scores.iter_mut().zip(toward).for_each(|(score, toward)| *score += toward);
        for ((doubt, onset), (toward, settled)) in self.doubts.iter_mut().zip(toward.iter().zip(&self.settled)) {
            if *doubt == 0.0 {
                *onset = step;
            }
            *doubt = if *settled { (*doubt + toward).max(0.0) } else { 0.0 };
        }
        let (truth, &(doubt, since)) = self.doubts.iter().enumerate().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
        if doubt <= limit {
            self.settle();
            return None;
        }
        let scores = self.doubts.iter().map(|(doubt, _)| *doubt).collect();
        let hypotheses = self.scores.len();
        *self = TruthDetector { truth, scores, ..TruthDetector::new(hypotheses, since) };
        self.settle();
        Some((truth, since))
    }
}

/// y − bᵀx of one listener, H numbers.
fn residual(
    weights: &[(usize, f64)],
    listener: usize,
    before: &[f64],
    now: &[f64],
    agents: usize,
    ratios: usize,
) -> Vec<f64> {
    (0..ratios)
        .map(|ratio| {
            let line = &before[ratio * agents..(ratio + 1) * agents];
            now[ratio * agents + listener]
                - weights.iter().map(|&(speaker, weight)| weight * line[speaker]).sum::<f64>()
        })
        .collect()
}
