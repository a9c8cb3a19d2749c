//! Options of the state-space fit, which `learn` and `discover` share.

use crate::error::CliError;
use crate::terminal::{Terminal, count};
use clap::{Args, ValueEnum};
use headwater::Roster;
use headwater::learn::gsl::Constraint;
use headwater::learn::state_space::StateSpaceParams;
use headwater::model::WeightKind;
use headwater_discover::CommonInput;
use headwater_files::read_groups;
use std::path::{Path, PathBuf};

const STATE_SPACE: &str = "State-space";

/// What `--common` says when all are one group.
const NETWORK: &str = "network";

/// What to do about a fit that takes long.
pub(crate) const QUICKER: &str = "longer bins, fewer users or --method whitened after --carry-forward are quicker";

/// How a network is fitted.
#[derive(Debug, Clone, Args)]
pub(crate) struct FitArgs {
    /// δ, the weight of private evidence in a belief: a number, or auto where the method can estimate it
    #[arg(long, value_name = "auto|δ", value_parser = parse_adaptation, allow_hyphen_values = true)]
    pub(crate) adaptation: Option<Adaptation>,
    /// What the weights a listener gives must satisfy [default: simplex; free for gsl]
    #[arg(long, value_enum)]
    pub(crate) constraint: Option<ConstraintName>,
    /// Added to the regressors' variance, relative to it, when there are few steps [default: 0]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) ridge: Option<f64>,
    /// What weights on a graph are made of [default: auto, with --graph]
    #[arg(help_heading = STATE_SPACE, long, value_enum)]
    pub(crate) weights: Option<WeightsName>,
    /// Shrinkage of a weight towards what others give the same speaker [default: 500]
    #[arg(help_heading = STATE_SPACE, long, alias = "pull", value_name = "S", allow_negative_numbers = true)]
    pub(crate) shrinkage: Option<f64>,
    /// Allow a common trend beside the network: the lagged mean of all users, or of the groups in a file (CSV agent,group)
    #[arg(help_heading = STATE_SPACE, long, value_name = "network|GROUPS")]
    pub(crate) common: Option<PathBuf>,
    /// Rounds of the fit, at most [default: 200]
    #[arg(help_heading = STATE_SPACE, long, value_name = "N")]
    pub(crate) rounds: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeightsName {
    /// Whichever of the two forecasts held-out steps better
    Auto,
    /// One weight per edge
    Edges,
    /// One strength per speaker, to which listeners pay attention in proportion
    Strengths,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConstraintName {
    /// Not negative, and summing to one
    Simplex,
    /// Anything, as in the paper
    Free,
}

impl From<ConstraintName> for Constraint {
    fn from(name: ConstraintName) -> Self {
        match name {
            ConstraintName::Simplex => Constraint::Simplex,
            ConstraintName::Free => Constraint::Free,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Adaptation {
    Auto,
    Value(f64),
}

fn parse_adaptation(text: &str) -> Result<Adaptation, String> {
    if text == "auto" {
        return Ok(Adaptation::Auto);
    }
    text.parse().map(Adaptation::Value).map_err(|_| "wanted a number, or auto".into())
}

impl FitArgs {
    /// δ, where a number was given.
    pub(crate) fn number_for_adaptation(&self) -> Option<f64> {
        match self.adaptation {
            Some(Adaptation::Value(value)) => Some(value),
            Some(Adaptation::Auto) | None => None,
        }
    }

    /// Whether an option of the state-space fit alone is given.
    pub(crate) fn has_state_space_option(&self) -> bool {
        self.weights.is_some() || self.shrinkage.is_some() || self.rounds.is_some() || self.common.is_some()
    }

    /// What can be said before anything is read.
    pub(crate) fn check(&self, graph: bool) -> Result<(), CliError> {
        if matches!(self.weights, Some(WeightsName::Strengths | WeightsName::Auto)) && !graph {
            return Err(CliError::usage(
                "speaker strengths need a graph of who may hear whom",
                "add --graph EDGES (source,target: the target follows the source), or leave --weights out",
            ));
        }
        if self.weights == Some(WeightsName::Strengths) && self.constraint == Some(ConstraintName::Free) {
            return Err(CliError::usage(
                "speaker strengths are shares of attention: --constraint free does not go with them",
                "leave --constraint out, or use --weights edges",
            ));
        }
        Ok(StateSpaceParams { weights: None, ..self.params() }.check()?)
    }

    /// The file of groups, where one is given.
    pub(crate) fn groups_file(&self) -> Option<&Path> {
        self.common.as_deref().filter(|given| *given != Path::new(NETWORK))
    }

    /// The group of each agent whose lagged mean may move it.
    pub(crate) fn groups(&self, roster: &Roster, terminal: &Terminal) -> Result<Option<Vec<usize>>, CliError> {
        let Some(path) = self.groups_file() else {
            return Ok(self.common.as_ref().map(|_| vec![0; roster.agents().len()]));
        };
        let (groups, unnamed) = read_groups(path)?.among(roster)?;
        if unnamed > 0 {
            let agents = count(unnamed, "agent");
            terminal.warn(&format!("{}: no group for {agents}, who form one of their own", path.display()));
        }
        Ok(Some(groups))
    }

    /// As the library takes them; who may listen to whom, and groups, are for the caller to add.
    pub(crate) fn params(&self) -> StateSpaceParams {
        let usual = StateSpaceParams::default();
        StateSpaceParams {
            adaptation: self.number_for_adaptation(),
            constraint: self.constraint.map_or(usual.constraint, Constraint::from),
            weights: match self.weights {
                Some(WeightsName::Strengths) => Some(WeightKind::Strengths),
                Some(WeightsName::Edges) => Some(WeightKind::Edges),
                Some(WeightsName::Auto) | None => None,
            },
            ridge: self.ridge.unwrap_or(usual.ridge),
            shrinkage: self.shrinkage.unwrap_or(usual.shrinkage),
            rounds: self.rounds.unwrap_or(usual.rounds),
            ..usual
        }
    }

    /// The common trend, as the pipeline takes it.
    pub(crate) fn common_input(&self) -> Option<CommonInput> {
        let common = self.common.as_ref()?;
        Some(match self.groups_file() {
            Some(_) => CommonInput::File(common.clone()),
            None => CommonInput::Network,
        })
    }
}
