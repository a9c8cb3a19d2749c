//! The paper's learner, graph social learning (Algorithm 1): a stochastic gradient on the one-step forecast error.
//!
//! In: frames Λ_i, one at a time ([`Gsl::observe`]) or a panel block by block ([`Gsl::advance`]). Out: an [`Update`] for
//! each, and a [`Model`] on demand.
//!
//! Legend for the kernels: x = Λ_{i−1} − m0, y = Λ_i − m1 with m1, m0 the window means, c = 1−δ, μ the learning rate;
//! the update is A ← A + μc·x(y − c·Aᵀx)ᵀ, which is the paper's with its L̂ substituted. Columns of A are updated independently.
//!
//! The block form does B of these updates at once. Their regressors are common to all columns, so with X and Y the
//! N × BH matrices of the block and G the strictly block-lower part of XᵀX,
//! (I + μc²G) R = Yᵀ − c·XᵀA and A ← A + μc·XR give the same A as B single steps, at the speed of matrix products;
//! row i of R is the residual of step i.

mod kernels;
mod model;
mod params;
mod tuning;
mod updates;

pub use kernels::project_on_simplex;
pub use params::{Constraint, GslParams};
pub use tuning::{candidates, held_out, sparser, stability_bound};

use super::forecast::{self, Forecast};
use super::{StreamingLearner, Update};
use crate::{Combination, Error, Evidence, Frame, Model, Panel, Roster, progress};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The learner. Saved at any step and loaded again, it continues with the same bits.
///
/// ```
/// use headwater::{Frame, Roster, learn::gsl::{Gsl, GslParams}};
/// let params = GslParams { window: 1, learning_rate: 1.0, adaptation: 0.5, ..GslParams::default() };
/// let roster = Roster::numbered(2, 2).unwrap();
/// let mut gsl = Gsl::new(roster.clone(), params).unwrap();
/// for frame in [[0.0, 0.0], [2.0, 0.0], [3.0, 1.0]] {
///     gsl.observe(&Frame::new(&roster, &frame).unwrap()).unwrap();
/// }
/// // At the third frame x = (2, 0), y = (1, 1), prediction ½·Aᵀx = (½, ½), so row 0 of A grows by ½·2·½.
/// assert_eq!(gsl.combination().to_columns(), [1.0, 0.5, 1.0, 0.5]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gsl {
    roster: Roster,
    params: GslParams,
    known: Option<Evidence>,
    /// Allowed speakers of each listener, ascending.
    support: Option<Vec<Vec<usize>>>,
    /// Initial weights, unless equal.
    initial: Option<Vec<f64>>,
    /// A, column by column.
    columns: Vec<f64>,
    window: Window,
    pending: Pending,
    pass: usize,
    /// Frames of this pass in earlier episodes, which the window does not remember.
    #[serde(default)]
    earlier: usize,
    /// Frames learned from over all passes.
    learned: usize,
}

/// The last M+1 frames and the sum of the last M.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Window {
    /// M+1 frames; frame i is at i mod (M+1).
    frames: Vec<f64>,
    /// Σ Λ_{i−M}…Λ_{i−1} where i frames were seen.
    sum: Vec<f64>,
    /// The same one frame earlier.
    sum_before: Vec<f64>,
    seen: usize,
}

/// Steps whose update waits for the rest of its batch or block.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Pending {
    x: Vec<f64>,
    y: Vec<f64>,
    steps: usize,
    /// Those of the steps that count as forecasts; their error is known when they are applied.
    counted: Forecast,
}

impl Gsl {
    /// A learner before its first frame.
    pub fn new(roster: Roster, mut params: GslParams) -> Result<Self, Error> {
        params.check()?;
        // Kept beside the other parameters while learning, and recorded with them in the model.
        let (support, evidence, initial) = (params.support.take(), params.evidence.take(), params.initial.take());
        let (agents, ratios) = (roster.agents().len(), roster.ratios());
        let cells = agents * ratios;
        let mut learner = Gsl {
            columns: vec![1.0 / agents as f64; agents * agents],
            window: Window { frames: Vec::new(), sum: vec![0.0; cells], sum_before: vec![0.0; cells], seen: 0 },
            roster,
            params,
            known: None,
            support: None,
            initial: None,
            pending: Pending::default(),
            pass: 0,
            earlier: 0,
            learned: 0,
        };
        if let Some(support) = support {
            learner = learner.within(support)?;
        }
        if let Some(initial) = initial {
            learner = learner.starting_from(&Combination::from_columns(initial, agents)?)?;
        }
        if let Some(evidence) = evidence {
            learner = learner.knowing(evidence)?;
        }
        Ok(learner)
    }

    /// Replaces the initial weights.
    pub fn starting_from(mut self, initial: &Combination) -> Result<Self, Error> {
        same("agents of the initial matrix", initial.agents(), self.agents())?;
        self.columns = initial.to_columns();
        self.restrict();
        self.initial = Some(self.columns.clone());
        Ok(self)
    }

    /// The earlier paper's variant: L̄ is known, and the regressors are not centred.
    pub fn knowing(mut self, evidence: Evidence) -> Result<Self, Error> {
        same("agents of the evidence", evidence.agents(), self.agents())?;
        same("log-ratios of the evidence", evidence.ratios(), self.ratios())?;
        self.known = Some(evidence);
        Ok(self)
    }

    /// Only these weights may be non-zero: for each listener its speakers; itself is always allowed. Starts from equal
    /// weights on them.
    pub fn within(mut self, mut support: Vec<Vec<usize>>) -> Result<Self, Error> {
        let agents = self.agents();
        same("listeners of the support", support.len(), agents)?;
        for (listener, speakers) in support.iter_mut().enumerate() {
            speakers.push(listener);
            speakers.sort_unstable();
            speakers.dedup();
            if let Some(&stranger) = speakers.iter().find(|speaker| **speaker >= agents) {
                return Err(Error::Shape {
                    what: "speaker of the support",
                    met: format!("index {stranger}"),
                    wanted: format!("an index below {agents}"),
                });
            }
        }
        self.support = Some(support);
        self.start();
        Ok(self)
    }

    /// Sets the weights to their initial values.
    fn start(&mut self) {
        let agents = self.agents();
        if let Some(initial) = &self.initial {
            self.columns.copy_from_slice(initial);
        } else {
            for (listener, column) in self.columns.chunks_exact_mut(agents).enumerate() {
                column.fill(1.0 / self.support.as_ref().map_or(agents, |support| support[listener].len()) as f64);
            }
        }
        self.restrict();
    }

    /// A learner before its first frame, with the same support, evidence and initial weights but these parameters.
    pub fn afresh(&self, params: GslParams) -> Result<Self, Error> {
        let mut fresh = Gsl::new(self.roster.clone(), params)?;
        fresh.known.clone_from(&self.known);
        fresh.support.clone_from(&self.support);
        fresh.initial.clone_from(&self.initial);
        fresh.start();
        Ok(fresh)
    }

    /// Whether L̄ is taken as known.
    pub fn knows_evidence(&self) -> bool {
        self.known.is_some()
    }

    /// Whether the parts of a learner that was read from a file are consistent.
    pub fn is_sound(&self) -> bool {
        let (agents, ratios) = (self.agents(), self.ratios());
        let cells = agents * ratios;
        let held = self.window.seen.min(self.params.window + 1);
        self.params.check().is_ok()
            && self.columns.len() == agents * agents
            && self.initial.as_ref().is_none_or(|initial| initial.len() == agents * agents)
            && self.window.frames.len() >= held * cells
            && self.window.sum.len() == cells
            && self.window.sum_before.len() == cells
            && self.pending.x.len() == self.pending.steps * cells
            && self.pending.y.len() == self.pending.steps * cells
            && self.known.as_ref().is_none_or(|known| (known.agents(), known.ratios()) == (agents, ratios))
            && self.support.as_ref().is_none_or(|support| {
                support.len() == agents && support.iter().flatten().all(|&speaker| speaker < agents)
            })
    }

    /// The parameters it runs with.
    pub fn params(&self) -> &GslParams {
        &self.params
    }

    /// Names.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Frames seen in this pass, and the pass.
    pub fn position(&self) -> (usize, usize) {
        (self.seen(), self.pass)
    }

    /// Frames seen in this pass.
    fn seen(&self) -> usize {
        self.earlier + self.window.seen
    }

    fn agents(&self) -> usize {
        self.roster.agents().len()
    }

    fn ratios(&self) -> usize {
        self.roster.ratios()
    }

    /// Learns from the next frame, N × H. One update, O(N²H), once M+1 frames (and a batch) are there.
    ///
    /// A belief that was filled in counts like any other. Errors: as [`StreamingLearner::observe`], and
    /// [`Error::Diverged`].
    pub fn observe(&mut self, frame: &Frame<'_>) -> Result<Update, Error> {
        frame.check(&self.roster)?;
        let mut forecast = Forecast::default();
        self.take(frame.cells(), 0);
        if self.pending.steps >= self.params.batch {
            self.update(0, &mut forecast)?;
        }
        Ok(self.updated(forecast))
    }

    /// Learns from the next frames of a panel, at most about `limit` of them, and begins the next pass at its end. `None`
    /// when all passes are done. The result has the same bits for any sequence of limits.
    ///
    /// The panel must be complete (see [`Panel::carry_forward`]) and the same at every call.
    pub fn advance(&mut self, panel: &Panel, limit: usize) -> Result<Option<Update>, Error> {
        // Of several episodes others are held out, in a second fit.
        let counting = self.pass == 0 && panel.episodes().is_single();
        let count_from = if counting { panel.steps() / 2 } else { usize::MAX };
        self.advance_within(panel, 0..panel.steps(), limit, count_from)
    }

    /// [`Gsl::advance`] on a range of steps; forecasts count from frame `count_from` of the range on.
    fn advance_within(
        &mut self,
        panel: &Panel,
        stretch: Range<usize>,
        limit: usize,
        count_from: usize,
    ) -> Result<Option<Update>, Error> {
        panel.check_presence()?;
        if panel.roster() != &self.roster {
            return Err(Error::Shape {
                what: "panel",
                met: format!("{} agents, {} log-ratios, or other names", panel.agents(), panel.ratios()),
                wanted: format!("the {} agents and {} log-ratios learned so far", self.agents(), self.ratios()),
            });
        }
        let longest = panel
            .episodes()
            .ranges()
            .map(|range| range.end.min(stretch.end).saturating_sub(range.start.max(stretch.start)));
        let longest = longest.max().unwrap_or(0);
        if longest < self.params.needed() {
            return Err(Error::NotReady { seen: longest, needed: self.params.needed() });
        }
        if self.seen() >= stretch.len() {
            if self.pass + 1 >= self.params.passes {
                return Ok(None);
            }
            self.restart();
        }
        let width = self.agents() * self.ratios();
        let capacity = self.updates_at_once();
        let mut forecast = Forecast::default();
        let mut taken = 0;
        while self.seen() < stretch.len() {
            let frame = stretch.start + self.seen();
            if self.window.seen > 0 && panel.episodes().begins(frame) {
                self.finish_block(count_from, &mut forecast).map_err(|error| self.with_bound(error, panel))?;
                self.forget_window();
            }
            self.take(&panel.cells()[frame * width..(frame + 1) * width], count_from);
            taken += 1;
            if self.pending.steps >= capacity {
                progress::check()?;
                self.update(count_from, &mut forecast).map_err(|error| self.with_bound(error, panel))?;
            }
            // Blocks are never cut short by the limit: their borders, and so the bits, do not depend on it.
            if taken >= limit && (self.pending.steps == 0 || self.params.batch > 1) {
                break;
            }
        }
        // The last block may be short; an incomplete last batch is dropped.
        if self.seen() == stretch.len() {
            self.finish_block(count_from, &mut forecast).map_err(|error| self.with_bound(error, panel))?;
        }
        Ok(Some(self.updated(forecast)))
    }

    /// Whether the last frames learned from are the panel's at the same steps, so that learning can continue on it.
    pub fn remembers(&self, panel: &Panel) -> bool {
        let width = self.agents() * self.ratios();
        let held = self.window.seen.min(self.params.window + 1);
        panel.roster() == &self.roster
            && panel.steps() >= self.seen()
            && (self.window.seen - held..self.window.seen).all(|index| {
                let (slot, step) = (index % (self.params.window + 1), self.earlier + index);
                self.window.frames[slot * width..(slot + 1) * width] == panel.cells()[step * width..(step + 1) * width]
            })
    }

    /// Applies the steps that wait for the rest of their block; those of an incomplete batch go on waiting.
    fn finish_block(&mut self, count_from: usize, forecast: &mut Forecast) -> Result<(), Error> {
        if self.params.batch == 1 && self.pending.steps > 0 { self.update(count_from, forecast) } else { Ok(()) }
    }

    /// Begins another episode: no update crosses from the frames before. [`Gsl::advance`] does this by itself.
    pub fn begin_episode(&mut self) -> Result<(), Error> {
        self.finish_block(0, &mut Forecast::default())?;
        self.forget_window();
        Ok(())
    }

    fn forget_window(&mut self) {
        self.earlier += self.window.seen;
        self.window.seen = 0;
        self.window.sum.fill(0.0);
        self.window.sum_before.fill(0.0);
    }

    /// Begins the next pass: window and batch are emptied, the weights are kept.
    pub fn restart(&mut self) {
        self.forget_window();
        self.earlier = 0;
        self.pending.clear();
        self.pass += 1;
    }

    fn updated(&self, forecast: Forecast) -> Update {
        let ready = self.window.seen > self.params.window;
        Update { seen: self.seen(), pass: self.pass, ready, forecast, changes: Vec::new() }
    }

    /// Adds a frame to the window; once the window is full, x and y of this step are added to the pending ones.
    fn take(&mut self, frame: &[f64], count_from: usize) {
        let (window, seen) = (self.params.window, self.window.seen);
        let slots = window + 1;
        let cells = frame.len();
        let slot = |index: usize| (index % slots) * cells..(index % slots + 1) * cells;
        if seen > window {
            let before = &self.window.frames[slot(seen - 1)];
            let scale = 1.0 / window as f64;
            match &self.known {
                None => {
                    let regressor = before.iter().zip(&self.window.sum_before).map(|(now, sum)| now - sum * scale);
                    self.pending.x.extend(regressor);
                    self.pending.y.extend(frame.iter().zip(&self.window.sum).map(|(now, sum)| now - sum * scale));
                }
                Some(evidence) => {
                    let (agents, adaptation) = (self.roster.agents().len(), self.params.adaptation);
                    self.pending.x.extend_from_slice(before);
                    let target =
                        |(cell, now): (usize, &f64)| now - adaptation * evidence.agent(cell % agents)[cell / agents];
                    self.pending.y.extend(frame.iter().enumerate().map(target));
                }
            }
            self.pending.steps += 1;
            if seen >= count_from {
                self.pending.counted.steps += 1;
                self.pending.counted.persistence +=
                    frame.iter().zip(before).map(|(now, before)| (now - before).powi(2)).sum::<f64>();
            }
        }
        // The sum over the last M frames; added up afresh every M steps so that rounding cannot pile up.
        self.window.sum_before.copy_from_slice(&self.window.sum);
        let fresh = (seen + 1).is_multiple_of(window);
        if !fresh {
            if seen >= window {
                let leaving = slot(seen - window);
                let leaving = &self.window.frames[leaving];
                for ((sum, now), gone) in self.window.sum.iter_mut().zip(frame).zip(leaving) {
                    *sum += now - gone;
                }
            } else {
                self.window.sum.iter_mut().zip(frame).for_each(|(sum, now)| *sum += now);
            }
        }
        if self.window.frames.len() < slots * cells && seen < slots {
            self.window.frames.resize((seen + 1) * cells, 0.0);
        }
        self.window.frames[slot(seen)].copy_from_slice(frame);
        self.window.seen += 1;
        self.learned += 1;
        if fresh {
            self.window.sum.fill(0.0);
            for index in seen + 1 - window..=seen {
                let frame = &self.window.frames[(index % slots) * cells..(index % slots + 1) * cells];
                self.window.sum.iter_mut().zip(frame).for_each(|(sum, value)| *sum += value);
            }
        }
    }
}

impl StreamingLearner for Gsl {
    fn roster(&self) -> &Roster {
        Gsl::roster(self)
    }

    fn observe(&mut self, frame: &Frame<'_>) -> Result<Update, Error> {
        Gsl::observe(self, frame)
    }

    fn model(&self) -> Result<Model, Error> {
        Gsl::model(self)
    }
}

fn same(what: &'static str, met: usize, wanted: usize) -> Result<(), Error> {
    if met == wanted {
        return Ok(());
    }
    Err(Error::Shape { what, met: met.to_string(), wanted: wanted.to_string() })
}

impl Pending {
    fn clear(&mut self) {
        self.x.clear();
        self.y.clear();
        self.steps = 0;
        self.counted = Forecast::default();
    }
}

/// Learns a whole panel and returns the model with its forecast skill.
///
/// With one pass the forecasts of the second half are made before their frames are learned from; with several passes
/// that is no longer so, and the skill comes from a second fit that never sees the last fifth.
///
/// Errors: too few steps, parameters out of range, a rate beyond the stability bound that made the weights overflow.
/// Cost: 4N²H operations a step.
pub fn gsl(panel: &Panel, params: &GslParams) -> Result<Model, Error> {
    let mut learner = Gsl::new(panel.roster().clone(), params.clone())?;
    let mut forecast = Forecast { from: panel.steps() / 2, ..Forecast::default() };
    while let Some(update) = learner.advance(panel, usize::MAX)? {
        forecast.add(&update.forecast);
    }
    if params.passes > 1 || !panel.episodes().is_single() {
        forecast = held_out(panel, learner.afresh(params.clone())?)?;
    }
    learner.finish(panel, forecast::skill(panel, &forecast))
}
