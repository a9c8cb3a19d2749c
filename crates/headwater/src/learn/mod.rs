//! Learners: a [`Panel`](crate::Panel) in, a [`Model`](crate::Model) out.

mod atoms;
mod fit;
pub mod gsl;
pub(crate) mod hearing;
pub mod moments;
mod simplex;
mod symbols;
pub mod whitened;
