//! Simulated worlds: agents whose network, evidence and true hypothesis are known.
//!
//! In: [`WorldParams`] and perhaps a graph. Out: a [`World`] that yields one frame after another, and its truth as a
//! [`Model`](crate::Model). The recursion is the paper's: adapt ψ ∝ L^δ μ^{1−δ}, combine μ ∝ Π ψ^a; [`World::next_frame`]
//! runs it in log-ratios, Λ_i = (1−δ)AᵀΛ_{i−1} + δL_i, [`World::next_beliefs`] in belief space; a test compares them.
//!
//! Each purpose draws from its own stream of one seeded generator, so that, say, more silence changes no observation.

mod asl;
pub mod crowd;
mod likelihoods;
mod network;
pub mod no_listening;
pub mod noisy;
mod params;

pub use asl::{World, WorldEvent, run, simulate};
pub use params::{Likelihoods, NetworkShape, ScheduledChange, WorldParams};
