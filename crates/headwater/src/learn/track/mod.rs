//! Tracking: the network of a stream, frame by frame, and its changes.
//!
//! In: one complete frame after another. Out: each [`DetectedChange`], and at any time a [`Model`]. The statistics are those
//! of the whitened learner: a ring of moments of all frames, a window of frames for the symbols, and a change detector per
//! listener.
//!
//! A change of a listener's weights shows in its residuals: they are none of the known atoms, or noise-free contrasts are
//! not zero, or, where all directions are noisy, the errors grow (CUSUM). Only that listener is fitted again. A change of
//! the true state does not affect the weights but the frequencies of the symbols: the residual over δ is the
//! log-likelihood ratio of the private observation, and its sum against the present truth is a CUSUM as well.

mod change_detector;
mod listener;
mod model;
mod refit;
mod truth_detector;

use super::forecast::Forecast;
use super::moments::{Moments, affordable};
use super::private_likelihoods;
use super::ring::Ring;
use super::whitened::WhitenedParams;
use super::{StreamingLearner, Update};
use crate::error::require;
use crate::model::{ChangeKind, DetectedChange, Track};
use crate::{Error, Frame, Model, Roster};
use change_detector::{ChangeDetector, EVIDENCE};
use listener::{ListenerResidual, ListenerState, residual};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use truth_detector::TruthDetector;

/// How far back the statistical fits of a tracker reach.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// To the last change of the listener's weights.
    #[default]
    All,
    /// Weights decay by this factor per step.
    Forget(f64),
    /// A window of this many steps.
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

    /// Effective number of steps.
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
/// | `memory` | all | how far back statistical fits reach | λ in (0, 1), or ≥ 3 steps |
/// | `window` | none | frames kept for symbols; chosen from N and H when not given | ≥ 16 |
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrackParams {
    /// The learner's own parameters.
    pub whitened: WhitenedParams,
    /// How far back statistical fits reach.
    pub memory: Memory,
    /// Frames kept for symbols.
    pub window: Option<usize>,
}

/// Weights below this count as zero.
const HEARD: f64 = 1e-6;

/// Steps for which a change is held back to collect all its listeners.
const GATHER: usize = 2;

/// Transitions per stretch of the ring, at least.
const STRETCH: usize = 32;

/// Frames kept, at least.
const WINDOW: usize = 256;

/// Transitions beyond the number of unknowns before the first fit, and between two fits.
const SPARE: usize = 10;

/// Approximate limit of the bytes of the ring of moments.
const RING_BYTES: usize = 2_000_000_000;

/// A learner for networks that change.
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
    /// Silent agents of the last frame but one, and of the last; none where empty.
    silent: [Vec<bool>; 2],
    largest: f64,
    ring: Ring,
    /// The first step whose transition is not in the ring.
    open: usize,
    #[serde(rename = "watches")]
    states: Vec<ListenerState>,
    adaptation: Option<f64>,
    #[serde(rename = "state")]
    truth_detector: TruthDetector,
    /// A change of topology whose listeners are being collected.
    gathering: Option<DetectedChange>,
    ready: VecDeque<DetectedChange>,
    track: Track,
    /// Squared errors of forecasting each frame from the one before, and of forecasting no change.
    errors: Vec<(f64, f64)>,
    /// Warnings of the latest fit of all listeners about agents that cannot be told apart.
    remarks: Vec<String>,
}

impl Tracker {
    /// A tracker before its first frame.
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
                what: "a fit with this memory",
                reason: format!(
                    "it covers about {} steps, but {most} weights per listener need {needed}; use a longer memory or give a graph",
                    params.memory.steps()
                ),
            });
        }
        let window = params.window.unwrap_or(WINDOW.max(4 * agents / ratios + WINDOW / 2));
        require(window >= 16, "window", window, "at least 16 frames")?;
        let size = agents * ratios;
        affordable(size, 5, "follow fewer agents")?;
        let capacity = (RING_BYTES / (16 * size * size)).clamp(4, 256);
        let state = ListenerState { since: 1, next: 0, searched: 0, known: None, stale: false };
        Ok(Tracker {
            window,
            // Short enough that all steps of a stretch have nearly the same weight.
            stretch: STRETCH.max(window / 8).min(params.memory.steps() / 8).max(1),
            frames: Vec::new(),
            base: 0,
            seen: 0,
            silent: [Vec::new(), Vec::new()],
            largest: 0.0,
            ring: Ring::new(agents, ratios, capacity),
            open: 1,
            states: vec![state; agents],
            adaptation: None,
            truth_detector: TruthDetector::new(roster.hypotheses().len(), 1),
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

    /// Errors of the one-step forecasts of all frames from a step on, each made before its frame was used.
    pub fn forecast(&self, from: usize) -> Forecast {
        let mut forecast = Forecast { from: from.max(1), end: self.seen, ..Forecast::default() };
        for (error, persistence) in self.errors.iter().skip(forecast.from - 1) {
            forecast.steps += 1;
            forecast.error += error;
            forecast.persistence += persistence;
        }
        forecast
    }

    /// Names of agents and hypotheses.
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

    /// Tests the latest frame for changes, listener by listener.
    fn look(&mut self) {
        let step = self.seen - 1;
        let (agents, ratios, largest) = (self.roster.agents().len(), self.roster.ratios(), self.largest);
        let mut states = std::mem::take(&mut self.states);
        let (before, now) = (self.frame(step - 1), self.frame(step));
        let silent = &self.silent;
        let found = |(listener, state): (usize, &mut ListenerState)| {
            let known = state.known.as_mut().filter(|_| !state.stale)?;
            let filled = |when: usize, agent: usize| silent[when].get(agent).copied().unwrap_or(false);
            let unheard = known.weights.iter().any(|&(speaker, weight)| weight.abs() > HEARD && filled(0, speaker));
            if unheard || filled(1, listener) {
                return None;
            }
            let residual = residual(&known.weights, listener, before, now, agents, ratios);
            let onset = known.detector.step(&residual, largest, step);
            Some(ListenerResidual { residual, onset })
        };
        let residuals: Vec<Option<ListenerResidual>> = states.par_iter_mut().enumerate().map(found).collect();
        let persistence: Vec<f64> = (0..agents)
            .map(|agent| {
                (0..ratios).map(|ratio| (now[ratio * agents + agent] - before[ratio * agents + agent]).powi(2)).sum()
            })
            .collect();
        let error = states.iter_mut().zip(&residuals).zip(&persistence).map(|((state, found), persistence)| {
            match (state.known.as_mut(), found) {
                (Some(known), Some(found)) => known.forecast_error(&found.residual),
                _ => *persistence,
            }
        });
        let errors = (error.sum(), persistence.iter().sum());
        let toward = self.toward(&states, &residuals);
        self.errors.push(errors);
        for (listener, found) in residuals.iter().enumerate() {
            if let Some(onset) = found.as_ref().and_then(|found| found.onset) {
                let change = self.gathering.get_or_insert_with(|| DetectedChange {
                    step,
                    since: onset,
                    kind: ChangeKind::Topology,
                    listeners: Vec::new(),
                    truth: None,
                });
                change.since = change.since.min(onset);
                change.listeners.push(listener);
                states[listener].restart(onset, self.seen);
            }
        }
        self.states = states;
        let turn = toward.and_then(|(toward, limit)| self.truth_detector.step(&toward, limit, step));
        if let Some((truth, since)) = turn {
            self.report(DetectedChange {
                step,
                since,
                kind: ChangeKind::State,
                listeners: Vec::new(),
                truth: Some(truth),
            });
            self.states.iter_mut().for_each(ListenerState::forget_state);
            self.snapshot();
        }
    }

    /// Log-likelihood ratio of this step for each hypothesis against the present truth, and the threshold of a change.
    ///
    /// From exact listeners where there are any. Otherwise from those with estimated weights: their residuals relative to
    /// the mean, with a threshold that allows for errors of the weights, which persist as long as beliefs do.
    fn toward(&self, states: &[ListenerState], residuals: &[Option<ListenerResidual>]) -> Option<(Vec<f64>, f64)> {
        let adaptation = self.adaptation?;
        let (truth, hypotheses) = (self.truth_detector.truth, self.roster.hypotheses().len());
        let against = |values: &[f64], hypothesis: usize| if hypothesis == 0 { 0.0 } else { values[hypothesis - 1] };
        let mut toward = vec![0.0; hypotheses];
        let heard =
            || states.iter().zip(residuals).filter_map(|(state, found)| Some((state.known.as_ref()?, found.as_ref()?)));
        let mut exact = false;
        for (_, found) in heard().filter(|(known, _)| known.detector.is_exact()) {
            exact = true;
            for (hypothesis, toward) in toward.iter_mut().enumerate() {
                *toward += (against(&found.residual, truth) - against(&found.residual, hypothesis)) / adaptation;
            }
        }
        if exact {
            return Some((toward, EVIDENCE));
        }
        let mut limit = None;
        for (known, found) in heard() {
            let ChangeDetector::Errors { centre, burden, .. } = &known.detector else { continue };
            limit = Some(EVIDENCE * (1.0 + burden / adaptation));
            let covariance = |a: usize, b: usize| match (a, b) {
                (0, _) | (_, 0) => 0.0,
                _ => known.covariance[(a - 1, b - 1)],
            };
            for (hypothesis, toward) in toward.iter_mut().enumerate() {
                let unusual = |hypothesis| against(&found.residual, hypothesis) - against(centre, hypothesis);
                let variance =
                    covariance(truth, truth) + covariance(hypothesis, hypothesis) - 2.0 * covariance(truth, hypothesis);
                *toward += (unusual(truth) - unusual(hypothesis)) / adaptation;
                *toward -= variance / (2.0 * adaptation * adaptation);
            }
        }
        limit.map(|limit| (toward, limit))
    }

    /// Adds a full stretch to the ring, and drops frames that are no longer needed.
    fn store(&mut self) {
        let width = self.width();
        if self.seen - self.open >= self.stretch {
            let frames = &self.frames[(self.open - 1 - self.base) * width..];
            self.ring.push(self.open, frames);
            self.open = self.seen;
            match self.params.memory {
                Memory::All => {}
                Memory::Recent(steps) => self.ring.drop_before(self.seen.saturating_sub(steps)),
                // Weights below a millionth are dropped.
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

    /// The moments of all transitions since a step within the memory, centred on the mean of each state.
    fn moments(&self, since: usize) -> Moments {
        let (agents, ratios, width) = (self.roster.agents().len(), self.roster.ratios(), self.width());
        let mut parts = [Moments::empty(agents, ratios), Moments::empty(agents, ratios)];
        let mut add = |first: usize, end: usize, moments: &Moments| {
            let part = &mut parts[usize::from(first < self.truth_detector.since)];
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
