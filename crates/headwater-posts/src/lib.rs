//! The door: posts in, beliefs out.
//!
//! In: dumps of posts. Out: the log-beliefs of the users who matter for a topic, bin by bin.

pub mod error;
pub mod score;

pub use error::Error;
pub use score::{Scorer, Sentiment};
