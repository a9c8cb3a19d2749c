//! Learners: a [`Panel`](crate::Panel) or a stream of [`Frame`](crate::Frame)s in, a [`Model`](crate::Model) out.

mod ar_baseline;
pub(crate) mod blocks;
mod cholesky;
mod common_trend;
mod fit;
pub mod forecast;
pub mod gsl;
mod kalman;
mod method;
pub mod moments;
pub mod posterior;
mod private_likelihoods;
mod quasi_newton;
pub(crate) mod regressors;
pub mod released;
pub mod ring;
mod saved;
mod simplex;
pub mod state_space;
mod streaming;
mod strengths;
mod symbols;
pub mod track;
pub mod whitened;

pub use method::{Method, refit_note};
pub(crate) use method::{Refit, without_gaps};
pub use streaming::{StreamingLearner, Update};
