//! Ingest: posts in, a panel of beliefs out.
//!
//! In: dumps of posts. Out: the log-beliefs of the users who matter for a topic, bin by bin, and what was met on the way.
//! [`read_posts`] does all of it.
//!
//! | module | in → out |
//! |---|---|
//! | [`read`] | files, tables in memory → records: CSV, JSON, Parquet, Arrow; compressed, in archives, pipes, patterns |
//! | [`reader`], [`mapping`], [`post`] | records → posts: columns by name, presets of platforms, a reason for each bad row |
//! | [`query`], [`select`] | posts → posts: topics, dates, languages, reposts, users, copies |
//! | [`given`] | score columns of a post → its opinion |
//! | [`calendar`], [`mod@bin`] | opinions → mean log-odds per user and bin → panel, or table of beliefs |
//! | [`options`], [`ingest`], [`quality`] | all of it in one pass, and what was met |
//! | [`episodes`] | the same for each of several topics → a panel of as many episodes |
//! | [`scorable`] | posts → their text and all their columns, to be scored one by one |
//! | [`rejects`] | bad rows → CSV |
//! | [`simulate`] | parameters → posts with a known answer |
//! | [`network`] | follow edges → the accounts that matter, with weights |

pub mod bin;
pub mod calendar;
pub mod episodes;
pub mod error;
pub mod given;
pub mod ingest;
pub mod mapping;
pub mod network;
pub mod options;
mod platform;
pub mod post;
pub mod quality;
pub mod query;
pub mod read;
pub mod reader;
pub mod rejects;
pub mod scorable;
pub mod select;
pub mod simulate;

pub use episodes::{BinnedEpisodes, bin_episodes, check_topics};
pub use error::Error;
pub use headwater_score::{Scorer, Sentiment};
pub use ingest::{PostHooks, bin_posts, read_posts};
pub use options::{PostOptions, PostsInput, Reposts, ScorerChoice, UserList};
pub use quality::{IngestWarning, LossReason, Quality};
pub use rejects::RejectsFile;
