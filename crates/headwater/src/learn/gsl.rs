//! The paper's learner, graph social learning (Algorithm 1): a stochastic gradient on the one-step forecast error.
//!
//! In: frames Λ_i, one at a time ([`Gsl::observe`]) or a panel block by block ([`Gsl::advance`]). Out: an [`Update`] for
//! each, and a [`Model`] on demand.
//!
//! Legend for the kernels: x = Λ_{i−1} − m0, y = Λ_i − m1 with m1, m0 the window means, c = 1−δ, μ the learning rate;
//! the update is A ← A + μc·x(y − c·Aᵀx)ᵀ, which is the paper's with its L̂ folded in. Columns of A do not see each other.
//!
//! The block form does B of these updates at once. Their regressors are common to all columns, so with X and Y the
//! N × BH matrices of the block and G the strictly block-lower part of XᵀX,
//! (I + μc²G) R = Yᵀ − c·XᵀA and A ← A + μc·XR give the same A as B single steps, at the speed of matrix products;
//! row i of R is the residual that step i met.

use super::forecast::{self, Forecast};
use super::{Method, StreamingLearner, Update};
use crate::combination::dot;
use crate::error::require;
use crate::model::{self, ColumnDiagnostics, Diagnostics, Skill};
use crate::{Combination, Error, Evidence, Frame, Model, Panel, Roster, progress};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What each column of A must satisfy after an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// Nothing, as in the paper.
    #[default]
    Free,
    /// Non-negative and summing to one: the nearest such column.
    Simplex,
}

/// Parameters of [`Gsl`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `adaptation` | 0.05 | δ, the weight of private evidence in a belief | (0, 1) |
/// | `window` | 50 | M, steps in the running means | ≥ 1 |
/// | `learning_rate` | 0.1 | μ | > 0 |
/// | `batch` | 1 | W, steps averaged into one update | ≥ 1 |
/// | `sparsity` | 0 | α, soft threshold μα after each update | ≥ 0 |
/// | `passes` | 1 | times the data are gone through | ≥ 1 |
/// | `constraint` | free | what columns must satisfy | |
/// | `support` | none | for each listener the speakers it may hear; itself is always allowed | N lists |
/// | `evidence` | none | L̄ where it is known; the regressors are then not centred | N × H |
/// | `initial` | none | the first weights, column by column; equal weights when not given | N² numbers |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GslParams {
    /// δ.
    pub adaptation: f64,
    /// M.
    pub window: usize,
    /// μ.
    pub learning_rate: f64,
    /// W.
    pub batch: usize,
    /// α.
    pub sparsity: f64,
    /// How often the panel is gone through.
    pub passes: usize,
    /// What columns must satisfy.
    pub constraint: Constraint,
    /// For each listener the speakers it may hear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support: Option<Vec<Vec<usize>>>,
    /// L̄, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The first weights, column by column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Vec<f64>>,
}

impl Default for GslParams {
    fn default() -> Self {
        GslParams {
            adaptation: 0.05,
            window: 50,
            learning_rate: 0.1,
            batch: 1,
            sparsity: 0.0,
            passes: 1,
            constraint: Constraint::Free,
            support: None,
            evidence: None,
            initial: None,
        }
    }
}

impl GslParams {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), Error> {
        model::check_adaptation(self.adaptation)?;
        require((1..=LONGEST).contains(&self.window), "window", self.window, "between 1 and 10⁹")?;
        let rate = self.learning_rate;
        require(rate > 0.0 && rate.is_finite(), "learning-rate", rate, "a positive number")?;
        require((1..=LONGEST).contains(&self.batch), "batch", self.batch, "between 1 and 10⁹")?;
        require(self.sparsity >= 0.0 && self.sparsity.is_finite(), "sparsity", self.sparsity, "zero or more")?;
        require(self.passes >= 1, "passes", self.passes, "at least 1")
    }

    /// Frames that make the first update possible.
    pub fn needed(&self) -> usize {
        self.window + 1 + self.batch
    }
}

/// Windows and batches longer than this are slips of the keyboard.
const LONGEST: usize = 1_000_000_000;

/// Below this many agents single steps beat the block kernel (measured: `cargo bench --bench gsl`).
const BLOCK_AGENTS: usize = 96;

/// Columns of A per task; a function of N alone, so that the thread count changes no bit.
fn listeners_per_task(agents: usize) -> usize {
    if agents < 1024 { 64 } else { 256 }
}

/// Columns of X in a block: wide enough for the matrix products, narrow enough that the triangular part stays small.
fn block_width(agents: usize) -> usize {
    (agents / 2).clamp(32, 128)
}

/// The learner. Serialisable at any step; reloaded, it continues bit for bit.
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
    /// Where it started, unless from equal weights.
    initial: Option<Vec<f64>>,
    /// A, column by column.
    columns: Vec<f64>,
    window: Window,
    pending: Pending,
    pass: usize,
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
    /// A learner that has seen nothing.
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

    /// Every parameter, with the support, the known evidence and the first weights.
    fn all_params(&self) -> GslParams {
        GslParams {
            support: self.support.clone(),
            evidence: self.known.clone(),
            initial: self.initial.clone(),
            ..self.params.clone()
        }
    }

    /// Starts from these weights instead.
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

    /// Sets the weights to where learning starts.
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

    /// A learner that has seen nothing yet, with the same knowledge and start but these parameters.
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

    /// Whether the parts of a learner read from elsewhere fit together.
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
        (self.window.seen, self.pass)
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

    /// Learns from the next frames of a panel, at most about `limit` of them, and goes on to the next pass when the
    /// panel is through. `None` when all passes are done. However the calls are cut, the result has the same bits.
    ///
    /// The panel must be complete (see [`Panel::carry_forward`]) and the same at every call.
    pub fn advance(&mut self, panel: &Panel, limit: usize) -> Result<Option<Update>, Error> {
        let count_from = if self.pass == 0 { panel.steps() / 2 } else { usize::MAX };
        self.advance_within(panel, 0..panel.steps(), limit, count_from)
    }

    /// [`Gsl::advance`] on a stretch of a panel; forecasts count from frame `count_from` of the stretch on.
    fn advance_within(
        &mut self,
        panel: &Panel,
        stretch: Range<usize>,
        limit: usize,
        count_from: usize,
    ) -> Result<Option<Update>, Error> {
        if panel.roster() != &self.roster {
            return Err(Error::Shape {
                what: "panel",
                met: format!("{} agents, {} log-ratios, or other names", panel.agents(), panel.ratios()),
                wanted: format!("the {} agents and {} log-ratios learned so far", self.agents(), self.ratios()),
            });
        }
        if stretch.len() < self.params.needed() {
            return Err(Error::NotReady { seen: stretch.len(), needed: self.params.needed() });
        }
        if self.window.seen >= stretch.len() {
            if self.pass + 1 >= self.params.passes {
                return Ok(None);
            }
            self.restart();
        }
        let width = self.agents() * self.ratios();
        let capacity = self.updates_at_once();
        let mut forecast = Forecast::default();
        let mut taken = 0;
        while self.window.seen < stretch.len() {
            let frame = stretch.start + self.window.seen;
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
        if self.window.seen == stretch.len() && self.params.batch == 1 && self.pending.steps > 0 {
            self.update(count_from, &mut forecast).map_err(|error| self.with_bound(error, panel))?;
        }
        Ok(Some(self.updated(forecast)))
    }

    /// Whether the last frames learned from are the panel's at the same steps: a learner is only continued on the data
    /// it was stopped on.
    pub fn remembers(&self, panel: &Panel) -> bool {
        let width = self.agents() * self.ratios();
        let held = self.window.seen.min(self.params.window + 1);
        panel.roster() == &self.roster
            && panel.steps() >= self.window.seen
            && (self.window.seen - held..self.window.seen).all(|step| {
                let slot = step % (self.params.window + 1);
                self.window.frames[slot * width..(slot + 1) * width] == panel.cells()[step * width..(step + 1) * width]
            })
    }

    /// Begins the next pass: the window and the batch start anew, the weights stay.
    pub fn restart(&mut self) {
        self.window.seen = 0;
        self.window.sum.fill(0.0);
        self.window.sum_before.fill(0.0);
        self.pending.clear();
        self.pass += 1;
    }

    fn updated(&self, forecast: Forecast) -> Update {
        let ready = self.window.seen > self.params.window;
        Update { seen: self.window.seen, pass: self.pass, ready, forecast, changes: Vec::new() }
    }

    fn is_linear(&self) -> bool {
        self.params.batch == 1
            && self.params.sparsity == 0.0
            && self.params.constraint == Constraint::Free
            && self.support.is_none()
    }

    fn updates_at_once(&self) -> usize {
        if self.params.batch > 1 {
            return self.params.batch;
        }
        if !self.is_linear() || self.agents() < BLOCK_AGENTS {
            return 1;
        }
        (block_width(self.agents()) / self.ratios()).max(1)
    }

    /// Takes a frame into the window; once the window is full, x and y of this step join the pending ones.
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

    /// Applies the pending steps: one at a time, as one batch, or as one block.
    fn update(&mut self, count_from: usize, forecast: &mut Forecast) -> Result<(), Error> {
        let (agents, steps) = (self.agents(), self.pending.steps);
        // Of the pending steps, the last of which is frame seen−1, these come too early to count.
        let early = count_from.saturating_sub(self.window.seen - steps).min(steps) * self.ratios();
        let width = steps * self.ratios();
        let keep = 1.0 - self.params.adaptation;
        let rate = self.params.learning_rate * keep / self.params.batch as f64;
        let tasks = listeners_per_task(agents);
        let [early_error, error] = if steps == 1 {
            let (x, y, ratios) = (&self.pending.x, &self.pending.y, self.ratios());
            let one = |(task, columns): (usize, &mut [f64])| {
                let mut error = 0.0;
                for (position, column) in columns.chunks_exact_mut(agents).enumerate() {
                    error += single(column, x, y, task * tasks + position, ratios, keep, rate);
                }
                if early > 0 { [error, 0.0] } else { [0.0, error] }
            };
            if agents < BLOCK_AGENTS {
                total(self.columns.chunks_mut(tasks * agents).enumerate().map(one))
            } else {
                total(self.columns.par_chunks_mut(tasks * agents).enumerate().map(one).collect::<Vec<_>>())
            }
        } else {
            let x = MatRef::from_column_major_slice(&self.pending.x, agents, width);
            let y = MatRef::from_column_major_slice(&self.pending.y, agents, width);
            let coupling = (self.params.batch == 1).then(|| coupling(x, self.ratios(), rate * keep));
            let one = |(task, columns): (usize, &mut [f64])| {
                let count = columns.len() / agents;
                let mut a = MatMut::from_column_major_slice_mut(columns, agents, count);
                let mut residual = y.subrows(task * tasks, count).transpose().to_owned();
                matmul(residual.as_mut(), Accum::Add, x.transpose(), a.as_ref(), -keep, Par::Seq);
                if let Some(coupling) = &coupling {
                    solve_unit_lower_triangular_in_place(coupling.as_ref(), residual.as_mut(), Par::Seq);
                }
                matmul(a.as_mut(), Accum::Add, x, residual.as_ref(), rate, Par::Seq);
                [residual.subrows(0, early).squared_norm_l2(), residual.subrows(early, width - early).squared_norm_l2()]
            };
            total(self.columns.par_chunks_mut(tasks * agents).enumerate().map(one).collect::<Vec<_>>())
        };
        forecast.add(&Forecast { error, end: self.window.seen, ..self.pending.counted });
        self.pending.clear();
        if !(early_error + error).is_finite() {
            return Err(self.diverged());
        }
        if !self.is_linear() {
            self.shrink();
            self.restrict();
            if self.params.constraint == Constraint::Simplex {
                self.project();
            }
        }
        Ok(())
    }

    fn diverged(&self) -> Error {
        let (agents, ratios) = (self.agents(), self.ratios());
        let held = (self.window.seen.min(self.params.window + 1)) * ratios;
        let frames = MatRef::from_column_major_slice(&self.window.frames[..held * agents], agents, held);
        Error::Diverged {
            step: self.window.seen.saturating_sub(1),
            learning_rate: self.params.learning_rate,
            bound: bound(frames.to_owned(), ratios, self.params.adaptation, self.known.is_none()),
        }
    }

    /// The same error with the bound of the whole panel in place of the window's.
    fn with_bound(&self, error: Error, panel: &Panel) -> Error {
        match (error, stability_bound(panel, &self.params, self.known.is_some())) {
            (Error::Diverged { step, learning_rate, .. }, Ok(bound)) => Error::Diverged { step, learning_rate, bound },
            (error, _) => error,
        }
    }

    /// a ← sign(a)·max(|a| − μα, 0).
    fn shrink(&mut self) {
        let threshold = self.params.learning_rate * self.params.sparsity;
        if threshold > 0.0 {
            self.columns.iter_mut().for_each(|a| *a = a.signum() * (a.abs() - threshold).max(0.0));
        }
    }

    /// Clears what the support forbids.
    fn restrict(&mut self) {
        let Some(support) = &self.support else { return };
        let agents = self.roster.agents().len();
        for (speakers, column) in support.iter().zip(self.columns.chunks_exact_mut(agents)) {
            let mut allowed = speakers.iter().copied().peekable();
            for (speaker, weight) in column.iter_mut().enumerate() {
                if allowed.next_if_eq(&speaker).is_none() {
                    *weight = 0.0;
                }
            }
        }
    }

    fn project(&mut self) {
        let agents = self.agents();
        let support = self.support.as_ref();
        self.columns.par_chunks_mut(agents).enumerate().for_each(|(listener, column)| match support {
            None => project_on_simplex(column),
            Some(support) => {
                let mut weights: Vec<f64> = support[listener].iter().map(|&speaker| column[speaker]).collect();
                project_on_simplex(&mut weights);
                support[listener].iter().zip(weights).for_each(|(&speaker, weight)| column[speaker] = weight);
            }
        });
    }

    /// A as learned so far.
    pub fn combination(&self) -> Combination {
        let dense = Combination::from_columns(self.columns.clone(), self.agents())
            .expect("updates that leave the numbers are errors");
        if self.support.is_some() { dense.to_sparse() } else { dense }
    }

    /// Squared Frobenius distance of A to a truth in column order, without a copy.
    pub fn distance(&self, truth: &[f64]) -> f64 {
        self.columns.iter().zip(truth).map(|(met, wanted)| (met - wanted).powi(2)).sum()
    }

    /// L̂ over the window, with known L̄ too.
    pub fn evidence(&self) -> Result<Evidence, Error> {
        let needed = self.params.window + 1;
        if self.window.seen < needed {
            return Err(Error::NotReady { seen: self.window.seen, needed });
        }
        let (agents, ratios) = (self.agents(), self.ratios());
        let (keep, scale) = (1.0 - self.params.adaptation, self.params.window as f64);
        let a = MatRef::from_column_major_slice(&self.columns, agents, agents);
        let before = MatRef::from_column_major_slice(&self.window.sum_before, agents, ratios);
        let mut evidence = MatRef::from_column_major_slice(&self.window.sum, agents, ratios).to_owned();
        matmul(evidence.as_mut(), Accum::Add, a.transpose(), before, -keep, Par::Seq);
        let unit = self.params.adaptation * scale;
        for cell in 0..agents * ratios {
            evidence[(cell / ratios, cell % ratios)] /= unit;
        }
        Evidence::from_matrix(evidence.as_ref())
    }

    /// The model as of now, from what a stream leaves behind: θ* from the frames of the window.
    pub fn model(&self) -> Result<Model, Error> {
        self.clone().into_model()
    }

    fn into_model(self) -> Result<Model, Error> {
        let evidence = self.evidence()?;
        let cells = self.agents() * self.ratios();
        let order: Vec<f64> = (self.window.seen - self.params.window - 1..self.window.seen)
            .flat_map(|index| {
                let slot = index % (self.params.window + 1);
                self.window.frames[slot * cells..(slot + 1) * cells].iter().copied()
            })
            .collect();
        let recent = Panel::complete(self.roster.clone(), order)?;
        let method = Method::Gsl(self.all_params());
        let dense = Combination::from_columns(self.columns, self.roster.agents().len())?;
        let combination = if self.support.is_some() { dense.to_sparse() } else { dense };
        let sums = combination.column_sums();
        let spread = sums.iter().fold(f64::MIN, |a, b| a.max(*b)) - sums.iter().fold(f64::MAX, |a, b| a.min(*b));
        let statistical = |agent: &String| ColumnDiagnostics::statistical(agent, self.roster.ratios());
        let columns = self.roster.agents().iter().map(statistical).collect();
        Ok(Model {
            truth: Some(model::settled(&recent, self.params.adaptation)),
            roster: self.roster,
            combination,
            evidence,
            adaptation: self.params.adaptation,
            track: model::Track::default(),
            method,
            innovation: None,
            likelihoods: None,
            diagnostics: Diagnostics {
                columns,
                column_sum_spread: Some(spread),
                evidence_steps: Some(self.params.window),
                steps: Some(self.learned),
                ..Diagnostics::default()
            },
        })
    }

    /// The model after a whole panel: also θ* over the last 3/δ steps and the innovation covariance.
    pub fn finish(self, panel: &Panel, skill: Option<Skill>) -> Result<Model, Error> {
        let mut model = self.into_model()?;
        model.truth = Some(model::settled(panel, model.adaptation));
        model.innovation = Some(model::innovation(panel, &model.combination, model.adaptation)?);
        model.diagnostics.skill = skill;
        Ok(model)
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

/// Summed in the order of the tasks, whichever thread finished first.
fn total(parts: impl IntoIterator<Item = [f64; 2]>) -> [f64; 2] {
    parts.into_iter().fold([0.0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]])
}

/// One update of one column: all H residuals first, then the rank-H change. Returns the squared residuals.
fn single(column: &mut [f64], x: &[f64], y: &[f64], listener: usize, ratios: usize, keep: f64, rate: f64) -> f64 {
    let agents = column.len();
    let residual = |ratio: usize, column: &[f64]| {
        y[ratio * agents + listener] - keep * dot(column, &x[ratio * agents..(ratio + 1) * agents])
    };
    match ratios {
        1 => {
            let residual = residual(0, column);
            axpy(column, rate * residual, x);
            residual * residual
        }
        4 => {
            // The paper's five hypotheses: the change of all four ratios in one pass over the column.
            let residuals: [f64; 4] = std::array::from_fn(|ratio| residual(ratio, column));
            let [r0, r1, r2, r3] = residuals.map(|residual| rate * residual);
            let (x01, x23) = x.split_at(2 * agents);
            let ((x0, x1), (x2, x3)) = (x01.split_at(agents), x23.split_at(agents));
            for speaker in 0..agents {
                column[speaker] += (r0 * x0[speaker] + r1 * x1[speaker]) + (r2 * x2[speaker] + r3 * x3[speaker]);
            }
            residuals.iter().map(|residual| residual * residual).sum()
        }
        _ => {
            let residuals: Vec<f64> = (0..ratios).map(|ratio| residual(ratio, column)).collect();
            residuals.iter().zip(x.chunks_exact(agents)).for_each(|(residual, x)| axpy(column, rate * residual, x));
            residuals.iter().map(|residual| residual * residual).sum()
        }
    }
}

fn axpy(column: &mut [f64], change: f64, x: &[f64]) {
    column.iter_mut().zip(x).for_each(|(a, x)| *a += change * x);
}

/// I + μc²G, G the strictly block-lower part of XᵀX with H × H blocks.
fn coupling(x: MatRef<'_, f64>, ratios: usize, factor: f64) -> Mat<f64> {
    /// Rows per task; fixed, for the same bits on any number of threads.
    const ROWS: usize = 32;
    let width = x.ncols();
    let strips: Vec<Mat<f64>> = (0..width.div_ceil(ROWS))
        .into_par_iter()
        .map(|strip| {
            let first = strip * ROWS;
            let rows = ROWS.min(width - first);
            let mut out = Mat::zeros(rows, first + rows);
            let left = x.subcols(first, rows);
            matmul(out.as_mut(), Accum::Replace, left.transpose(), x.subcols(0, first + rows), factor, Par::Seq);
            out
        })
        .collect();
    Mat::from_fn(width, width, |row, column| {
        if row == column {
            1.0
        } else if row / ratios > column / ratios {
            strips[row / ROWS][(row % ROWS, column)]
        } else {
            0.0
        }
    })
}

/// The nearest point with non-negative entries that sum to one.
///
/// ```
/// let mut column = [0.8, 0.6, -1.0];
/// headwater::learn::gsl::project_on_simplex(&mut column);
/// assert!((column[0] - 0.6).abs() < 1e-15 && (column[1] - 0.4).abs() < 1e-15 && column[2] == 0.0);
/// ```
pub fn project_on_simplex(column: &mut [f64]) {
    let mut sorted = column.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let mut shift = 0.0;
    for (index, value) in sorted.iter().enumerate() {
        sum += value;
        let candidate = (sum - 1.0) / (index + 1) as f64;
        if *value > candidate {
            shift = candidate;
        }
    }
    column.iter_mut().for_each(|value| *value = (*value - shift).max(0.0));
}

/// The largest learning rate that is stable on this panel, 2/((1−δ)²λ_max), λ_max of the regressors' second moment.
///
/// Taken over at most about a thousand steps spread evenly over the panel.
pub fn stability_bound(panel: &Panel, params: &GslParams, known_evidence: bool) -> Result<f64, Error> {
    params.check()?;
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    if steps < params.needed() {
        return Err(Error::NotReady { seen: steps, needed: params.needed() });
    }
    let most = if agents <= 64 { 4096 } else { 128 } / ratios;
    let first = params.window + 1;
    let count = (steps - first).min(most.max(2));
    let width = agents * ratios;
    let frame = |step: usize| &panel.cells()[step * width..(step + 1) * width];
    let scale = 1.0 / params.window as f64;
    let mut x = Vec::with_capacity(count * width);
    for sample in 0..count {
        let step = first + sample * (steps - first) / count;
        let start = x.len();
        x.extend_from_slice(frame(step - 1));
        if !known_evidence {
            for earlier in step - 1 - params.window..step - 1 {
                axpy(&mut x[start..], -scale, frame(earlier));
            }
        }
    }
    let x = MatRef::from_column_major_slice(&x, agents, count * ratios).to_owned();
    Ok(bound(x, ratios, params.adaptation, false))
}

/// 2/((1−δ)²λ_max) from regressors side by side; `centre` subtracts their mean first.
fn bound(mut x: Mat<f64>, ratios: usize, adaptation: f64, centre: bool) -> f64 {
    let (agents, columns) = (x.nrows(), x.ncols());
    let count = (columns / ratios).max(1) as f64;
    if centre {
        for agent in 0..agents {
            for ratio in 0..ratios {
                let mean = (ratio..columns).step_by(ratios).map(|column| x[(agent, column)]).sum::<f64>() / count;
                (ratio..columns).step_by(ratios).for_each(|column| x[(agent, column)] -= mean);
            }
        }
    }
    let gram = if agents <= columns { &x * x.transpose() } else { x.transpose() * &x };
    let keep = 1.0 - adaptation;
    2.0 * count / (keep * keep * largest_eigenvalue(&gram))
}

/// Power iteration on a positive semi-definite matrix; the bound needs two digits, it gets six.
fn largest_eigenvalue(matrix: &Mat<f64>) -> f64 {
    let size = matrix.nrows();
    let mut v = Mat::from_fn(size, 1, |row, _| 1.0 + (row as f64 * 0.618).fract());
    let mut value = 0.0;
    for _ in 0..1000 {
        let next = matrix * &v;
        let norm = next.norm_l2();
        if norm == 0.0 || !norm.is_finite() {
            return norm;
        }
        let settled = (norm - value).abs() <= 1e-6 * norm;
        value = norm;
        v = faer::Scale(1.0 / norm) * next;
        if settled {
            break;
        }
    }
    value
}

/// Share of a panel that [`held_out`] keeps from the learner.
const HELD_OUT: f64 = 0.2;

/// Forecast errors on the last fifth of a panel, by a learner that has seen only the rest and learns no more.
///
/// `learner` must be fresh.
pub fn held_out(panel: &Panel, mut learner: Gsl) -> Result<Forecast, Error> {
    let split = panel.steps() - (panel.steps() as f64 * HELD_OUT).ceil() as usize;
    let overlap = learner.params.window + 1;
    if split < learner.params.needed() {
        let needed = (learner.params.needed() as f64 / (1.0 - HELD_OUT)).ceil() as usize + 1;
        return Err(Error::NotReady { seen: panel.steps(), needed });
    }
    while learner.advance_within(panel, 0..split, usize::MAX, usize::MAX)?.is_some() {}
    learner.restart();
    // A learner that does not learn: every update is zero.
    learner.params.learning_rate = 0.0;
    learner.params.batch = 1;
    learner.params.passes = 0;
    let mut forecast = Forecast { from: split, ..Forecast::default() };
    while let Some(update) = learner.advance_within(panel, split - overlap..panel.steps(), usize::MAX, 0)? {
        forecast.add(&update.forecast);
    }
    Ok(Forecast { end: panel.steps(), ..forecast })
}

/// Settings worth trying on this panel: windows up to a fifth of it, learning rates below the stability bound.
/// `known_evidence` as in [`stability_bound`].
pub fn candidates(panel: &Panel, base: &GslParams, known_evidence: bool) -> Result<Vec<GslParams>, Error> {
    let mut out = Vec::new();
    for window in [2, 10, 50, 200] {
        if window > 2 && window > panel.steps() / 5 {
            continue;
        }
        let params = GslParams { window, ..base.clone() };
        let bound = stability_bound(panel, &params, known_evidence)?;
        for share in [0.003, 0.01, 0.03, 0.1, 0.3] {
            out.push(GslParams { learning_rate: share * bound, ..params.clone() });
        }
    }
    Ok(out)
}

/// Sparsities worth trying once window and learning rate are chosen, none included.
pub fn sparser(best: &GslParams, agents: usize) -> Vec<GslParams> {
    // A threshold of 1/N would remove uniform weights in 1/μ steps.
    let unit = 1.0 / agents as f64;
    [0.003, 0.01, 0.03, 0.1].map(|share| GslParams { sparsity: share * unit, ..best.clone() }).to_vec()
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
    if params.passes > 1 {
        forecast = held_out(panel, learner.afresh(params.clone())?)?;
    }
    learner.finish(panel, forecast::skill(panel, &forecast))
}
