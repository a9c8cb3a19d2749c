//! Learners: a [`Panel`](crate::Panel) in, a [`Model`](crate::Model) out.

mod atoms;
pub mod gsl;
pub mod moments;
mod simplex;
mod symbols;
pub mod whitened;
