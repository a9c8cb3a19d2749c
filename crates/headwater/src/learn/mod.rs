//! Learners: a [`Panel`](crate::Panel) in, a [`Model`](crate::Model) out.

mod atoms;
mod fit;
pub mod gsl;
mod guard;
pub(crate) mod hearing;
pub mod moments;
pub mod released;
pub mod ring;
mod simplex;
mod symbols;
pub mod track;
pub mod whitened;
