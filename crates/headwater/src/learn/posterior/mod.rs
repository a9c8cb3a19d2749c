//! Posterior of hidden beliefs given noisy, silent posts, for networks of thousands of agents.
//!
//! [`trajectory`] solves for the mean of all hidden beliefs and draws from their posterior without forming a covariance.

pub mod trajectory;
