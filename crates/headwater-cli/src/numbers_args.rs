//! What the numbers of beliefs files are, for every command that reads some.

use crate::error::CliError;
use clap::{Args, ValueEnum};
use headwater_discover::{BELIEFS_FILE, LOG_BELIEFS_FILE};
use headwater_files::{BeliefNumbers, LoadedBeliefs, read_beliefs_of};
use std::path::PathBuf;

/// What the numbers of the beliefs are.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct NumbersArgs {
    /// The columns are log-ratios log ψ(θ_0)/ψ(θ_j) instead of probabilities
    #[arg(long, requires = "beliefs")]
    log_ratios: bool,
    /// One column `value` holds opinions on any scale, such as estimates or ratings, instead of probabilities
    #[arg(long, requires = "beliefs", conflicts_with = "log_ratios")]
    values: bool,
    /// Scale of the values [default: first-answers]
    #[arg(long, value_enum, requires = "values", value_name = "SCALE")]
    value_scale: Option<ValueScale>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ValueScale {
    /// Centred on the median of first answers and divided by their spread, within each episode
    FirstAnswers,
    /// As they are
    None,
}

impl NumbersArgs {
    /// What the numbers are.
    pub(crate) fn numbers(self) -> BeliefNumbers {
        match (self.log_ratios, self.values, self.value_scale) {
            (true, ..) => BeliefNumbers::LogRatios,
            (_, true, Some(ValueScale::None)) => BeliefNumbers::Values,
            (_, true, _) => BeliefNumbers::ScaledValues,
            _ => BeliefNumbers::Probabilities,
        }
    }

    /// Reads beliefs: of one file, or of several, each an episode.
    pub(crate) fn read(self, paths: &[PathBuf]) -> Result<LoadedBeliefs, CliError> {
        read_beliefs_of(paths, self.numbers()).map_err(|error| {
            let of_run = |path: &PathBuf| path.file_name().is_some_and(|name| name == LOG_BELIEFS_FILE);
            match CliError::from(error) {
                CliError::Data { message, .. } if !self.log_ratios && paths.iter().any(of_run) => CliError::Data {
                    message,
                    hint: Some(format!("this file of a run has log-ratios; give {BELIEFS_FILE}, which is beside it")),
                },
                other => other,
            }
        })
    }
}

/// A number of resamples or circular shifts; 0 for none.
pub(crate) fn parse_draws(text: &str) -> Result<u64, String> {
    let draws = text.parse().ok().filter(|draws| *draws == 0 || (20..=100_000).contains(draws));
    draws.ok_or_else(|| "must be 0, or from 20 to 100000".to_owned())
}
