//! How far a model is supported by its data: forecast skill, intervals, permutation tests, the verdict.
//!
//! In: a model and the panel it was learned from. Out: [`Skill`](crate::model::Skill), [`Intervals`], [`Significance`],
//! [`Verdict`]. A panel and a graph alone, without a model: [`GraphTest`].
//!
//! A draw is a pure function of its number: any number of threads makes the same ones, and an interrupted run can continue.

mod draws;
pub mod graph_test;
pub mod intervals;
pub mod null_test;
pub mod skill;
mod too_few_steps;
pub mod verdict;

pub use draws::draw_many;
pub use graph_test::{GraphTest, GraphTestParams, Untestable, graph_test};
pub use intervals::{Bootstrap, BootstrapDraw, Intervals};
pub use null_test::{CircularShifts, ShiftDraw, Significance, discoveries, shiftable, shifted};
pub use too_few_steps::TooFewSteps;
pub use verdict::{DecidingTest, Outcome, SignificantAgents, Verdict};

#[cfg(test)]
mod tests;
