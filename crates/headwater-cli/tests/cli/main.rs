//! The program from outside, in one test binary: what it prints, writes and refuses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod commands;
mod discover;
mod episodes;
mod folders;
mod formats;
mod place;
mod posts;
mod report;
mod reproduce;
mod score;
mod snapshots;
