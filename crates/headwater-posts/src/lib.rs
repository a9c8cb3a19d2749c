//! The door: posts in, beliefs out.
//!
//! In: dumps of posts. Out: the log-beliefs of the users who matter for a topic, bin by bin.
//!
//! | room | in → out |
//! |---|---|
//! | [`read`] | files → records: CSV, JSON lines, Parquet; gzip, zstd, pipes, patterns |
//! | [`post`] | records → posts: columns by name, presets of platforms, a reason for each bad row |
//! | [`query`], [`select`] | posts → posts: topics, dates, languages, reposts, users, copies |
//! | [`mod@bin`] | opinions → mean log-odds per user and bin |
//! | [`door`], [`quality`] | all of it in one pass, and what was met on the way |
//! | [`network`] | edges → the accounts that matter, with weights |

pub mod bin;
pub mod error;
pub mod given;
pub mod ingest;
pub mod network;
pub mod post;
pub mod quality;
pub mod query;
pub mod read;
pub mod select;

pub use error::Error;
pub use headwater_score::{Scorer, Sentiment};
