//! Learners that take one frame after another.

use super::forecast::Forecast;
use crate::model::DetectedChange;
use crate::{Error, Frame, Model, Roster};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A learner that takes frames as they come: [`Gsl`](super::gsl::Gsl) and [`Tracker`](super::track::Tracker).
///
/// Saved at any step and loaded again, it continues with the same bits.
///
/// ```
/// use headwater::learn::{StreamingLearner, gsl::{Gsl, GslParams}, track::{TrackParams, Tracker}};
/// use headwater::simulate::{WorldParams, simulate};
/// use headwater::{Error, Model, Panel};
/// fn learned(mut learner: impl StreamingLearner, panel: &Panel) -> Result<Model, Error> {
///     for step in 0..panel.steps() {
///         learner.observe(&panel.frame(step))?;
///     }
///     learner.model()
/// }
/// let (panel, _) = simulate(&WorldParams { steps: 100, ..WorldParams::default() })?;
/// learned(Gsl::new(panel.roster().clone(), GslParams::default())?, &panel)?;
/// learned(Tracker::new(panel.roster().clone(), TrackParams::default())?, &panel)?;
/// # Ok::<(), Error>(())
/// ```
pub trait StreamingLearner: Serialize + DeserializeOwned {
    /// Names of the agents and hypotheses.
    fn roster(&self) -> &Roster;

    /// Learns from the next frame.
    ///
    /// Errors: a frame of another shape, with a value that is no log-ratio, or with a silent agent whose belief is not
    /// filled in; the learner is then as it was before.
    fn observe(&mut self, frame: &Frame<'_>) -> Result<Update, Error>;

    /// The model as of now. Errors: not enough frames yet.
    fn model(&self) -> Result<Model, Error>;
}

/// What happened at one step of a [`StreamingLearner`], or in one block of [`Gsl::advance`](super::gsl::Gsl::advance).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Update {
    /// Frames seen in this pass over the data, the new ones included.
    pub seen: usize,
    /// The pass, from 0; a stream has one.
    pub pass: usize,
    /// Whether there is a model now.
    pub ready: bool,
    /// One-step forecasts of the new frames, each made before the learner used its frame; no steps where there was none.
    /// Of a panel only those of its second half in the first pass count.
    pub forecast: Forecast,
    /// Changes of the network or of the true hypothesis that were detected.
    pub changes: Vec<DetectedChange>,
}
