//! Learners: a [`Panel`](crate::Panel) in, a [`Model`](crate::Model) out.

mod atoms;
mod fit;
pub mod gsl;
mod guard;
pub(crate) mod hearing;
mod kalman;
pub mod moments;
mod mood;
mod quasi_newton;
pub mod released;
pub mod ring;
mod saved;
mod simplex;
mod solo;
pub mod state_space;
mod strengths;
mod symbols;
pub mod tested;
pub mod track;
pub mod whitened;
