//! How a model was learned: the learner, with every parameter.

use super::gsl::{Constraint, GslParams};
use super::released::ReleasedParams;
use super::state_space::StateSpaceParams;
use super::track::TrackParams;
use super::whitened::WhitenedParams;
use crate::{Model, Panel};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The method a model was learned with, with every parameter, so that a refit is the same fit.
///
/// ```
/// use headwater::learn::whitened::{WhitenedParams, whitened};
/// use headwater::{Method, simulate::{WorldParams, simulate}};
/// let (panel, _) = simulate(&WorldParams { steps: 100, ..WorldParams::default() })?;
/// let params = WhitenedParams { ridge: 0.01, ..WhitenedParams::default() };
/// assert_eq!(whitened(&panel, &params)?.method, Method::Whitened(params));
/// # Ok::<(), headwater::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// The paper's stochastic gradient.
    Gsl(GslParams),
    /// The whitened regression.
    Whitened(WhitenedParams),
    /// The authors' released Twitter scripts.
    AsReleased(ReleasedParams),
    /// The state-space model for noise and silence.
    StateSpace(StateSpaceParams),
    /// The whitened regression, followed frame by frame.
    Tracked(TrackParams),
    /// Not learned: a simulated truth or a model made by hand.
    Given,
    /// Learned by a method whose parameters were not recorded, as in files of the format `headwater-model/1`.
    Unknown {
        /// Name of the method.
        #[serde(rename = "method")]
        name: String,
    },
}

impl Method {
    /// The name used in files and on the command line.
    pub fn name(&self) -> &str {
        match self {
            Method::Gsl(_) => "gsl",
            Method::Whitened(_) => "whitened",
            Method::AsReleased(_) => "as-released",
            Method::StateSpace(_) => "state-space",
            Method::Tracked(_) => "tracked",
            Method::Given => "given",
            Method::Unknown { name } => name,
        }
    }

    /// The method of a file that records only its name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "given" => Method::Given,
            other => Method::Unknown { name: other.to_owned() },
        }
    }

    /// The parameters that were not recorded; none where all were.
    pub fn unknown_parameters(&self) -> &'static [&'static str] {
        let Method::Unknown { name } = self else { return &[] };
        match name.as_str() {
            "gsl" => &["window", "learning_rate", "batch", "sparsity", "passes", "constraint"],
            "whitened" => &["adaptation (given or estimated)", "constraint", "ridge", "rounds", "symbols", "budget"],
            "as-released" => &["learning_rate", "decay", "sparsity", "batch", "passes", "seed"],
            "state-space" => &["constraint", "ridge", "rounds", "tolerance"],
            _ => &["all"],
        }
    }
}

impl From<GslParams> for Method {
    fn from(params: GslParams) -> Self {
        Method::Gsl(params)
    }
}

impl From<WhitenedParams> for Method {
    fn from(params: WhitenedParams) -> Self {
        Method::Whitened(params)
    }
}

impl From<StateSpaceParams> for Method {
    fn from(params: StateSpaceParams) -> Self {
        Method::StateSpace(params)
    }
}

impl From<ReleasedParams> for Method {
    fn from(params: ReleasedParams) -> Self {
        Method::AsReleased(params)
    }
}

impl From<TrackParams> for Method {
    fn from(params: TrackParams) -> Self {
        Method::Tracked(params)
    }
}

/// A fit that resamples and null tests can repeat on other panels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Refit {
    /// By the whitened regression, silence filled.
    Whitened(WhitenedParams),
    /// By the state-space model, silence and noise as they are.
    StateSpace(StateSpaceParams),
}

impl Refit {
    /// The same fit where the method can be repeated on resampled moments; otherwise the whitened regression under the
    /// method's own constraint and support.
    pub(crate) fn from_method(method: &Method) -> Self {
        let whitened = |constraint: Constraint, support: Option<Vec<Vec<usize>>>| {
            Refit::Whitened(WhitenedParams { constraint, support, ..WhitenedParams::default() })
        };
        match method {
            Method::Whitened(params) => Refit::Whitened(params.clone()),
            Method::Tracked(params) => Refit::Whitened(params.whitened.clone()),
            Method::StateSpace(params) => Refit::StateSpace(params.clone()),
            Method::Gsl(params) => whitened(params.constraint, params.support.clone()),
            Method::AsReleased(_) => whitened(Constraint::Free, None),
            Method::Given => whitened(Constraint::Simplex, None),
            Method::Unknown { name } => match name.as_str() {
                "state-space" => Refit::StateSpace(StateSpaceParams::default()),
                // The constraint that these methods have unless told otherwise.
                "gsl" | "as-released" => whitened(Constraint::Free, None),
                _ => whitened(Constraint::Simplex, None),
            },
        }
    }

    /// The same for a model. Where the parameters were not recorded, the edges of a sparse model are its support, and of
    /// a state-space model the diagnostics hold some of them.
    pub(crate) fn from_model(model: &Model) -> Self {
        let mut refit = Refit::from_method(&model.method);
        if !matches!(model.method, Method::Given | Method::Unknown { .. }) {
            return refit;
        }
        let speakers = |listener: usize| model.combination.listener(listener).map(|(speaker, _)| speaker).collect();
        let edges = (model.combination.is_sparse()).then(|| (0..model.combination.agents()).map(speakers).collect());
        match &mut refit {
            Refit::Whitened(params) => params.support = edges,
            Refit::StateSpace(params) => {
                params.support = edges;
                if let Some(smoothing) = &model.diagnostics.smoothing {
                    params.weights = Some(smoothing.weights).filter(|_| params.support.is_some());
                    params.shrinkage = smoothing.shrinkage;
                    params.adaptation = smoothing.adaptation_given.then_some(model.adaptation);
                    params.common = smoothing.common.as_ref().map(|common| common.groups.clone());
                }
            }
        }
        refit
    }
}

impl Refit {
    /// The panel as this fit takes it: silence filled for the whitened regression.
    pub(crate) fn filled<'a>(&self, panel: &'a Panel) -> Cow<'a, Panel> {
        match self {
            Refit::Whitened(_) => without_gaps(panel),
            Refit::StateSpace(_) => Cow::Borrowed(panel),
        }
    }
}

/// A panel whose silent cells are filled with the last belief.
pub(crate) fn without_gaps(panel: &Panel) -> Cow<'_, Panel> {
    match panel.is_complete() {
        true => Cow::Borrowed(panel),
        false => Cow::Owned(panel.clone().carry_forward().0),
    }
}

/// A note on refits of a model whose own method cannot be repeated, or not exactly.
pub fn refit_note(model: &Model) -> Option<String> {
    match &model.method {
        Method::Whitened(_) | Method::StateSpace(_) => None,
        Method::Unknown { name } => {
            let refit = match Refit::from_model(model) {
                Refit::Whitened(_) => "whitened",
                Refit::StateSpace(_) => "state-space",
            };
            Some(format!(
                "intervals and p-values are those of the {refit} method with default parameters, because the model does not record these of {name}: {}",
                model.method.unknown_parameters().join(", ")
            ))
        }
        _ => Some("intervals and p-values are those of the whitened learner on the same beliefs".to_owned()),
    }
}

/// Serialises a number that may be infinite: JSON has no infinity, so it is written as null.
pub(crate) mod infinite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        Some(*value).filter(|value| value.is_finite()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}
