//! Learners: a [`Panel`](crate::Panel) in, a [`Model`](crate::Model) out.

pub mod gsl;
