//! Options of the state-space fit, which `learn` and `discover` share.

use crate::error::CliError;
use crate::terminal::{Terminal, count};
use clap::{Args, ValueEnum};
use headwater::graph::Graph;
use headwater::learn::gsl::Constraint;
use headwater::learn::posterior::SamplingParams;
use headwater::learn::state_space::StateSpaceParams;
use headwater::model::WeightKind;
use headwater::{Model, Panel, Roster};
use headwater_discover::CommonInput;
use headwater_files::{read_edges, read_groups};
use std::path::{Path, PathBuf};

const FIT: &str = "Fit";

const STATE_SPACE: &str = "State-space";

/// The value of `--common` for one group of all agents.
const NETWORK: &str = "network";

/// How to shorten a fit.
pub(crate) const QUICKER: &str =
    "longer bins, fewer users, --sketch on a graph, or --carry-forward with --method whitened take less time";

/// The graph among the agents with beliefs; as in `discover` the others are left out with a warning.
pub(crate) fn read_graph(path: &Path, roster: &Roster, terminal: &Terminal) -> Result<Graph, CliError> {
    let (graph, notes) = read_edges(path)?.graph_among(roster)?;
    notes.warnings().iter().for_each(|warning| terminal.warn(&format!("{}: {warning}", path.display())));
    Ok(graph)
}

/// The group of each agent in a file; those without one form a group of their own, with a warning.
pub(crate) fn groups_among(path: &Path, roster: &Roster, terminal: &Terminal) -> Result<Vec<usize>, CliError> {
    let (groups, unnamed) = read_groups(path)?.among(roster)?;
    if unnamed > 0 {
        let agents = count(unnamed, "agent");
        terminal.warn(&format!("{}: {agents} without a group form a group of their own", path.display()));
    }
    Ok(groups)
}

/// The beliefs without agents that the graph does not name, as in `discover`; and a warning where there are any.
pub(crate) fn on_graph(panel: Panel, path: &Path) -> Result<(Panel, Option<String>), CliError> {
    match read_edges(path)?.inside(panel.roster()) {
        Some((inside, warning)) => Ok((panel.among(&inside)?, Some(warning))),
        None => Ok((panel, None)),
    }
}

/// The beliefs of a model's agents: those that the model was learned without are left out.
pub(crate) fn of_model(panel: Panel, model: &Model, terminal: &Terminal) -> Result<Panel, CliError> {
    let Some(among) = model.beliefs_among(&panel)? else { return Ok(panel) };
    let others = count(panel.agents() - among.agents(), "agent");
    terminal.remark(&format!("{others} of the beliefs not in the model: left out"));
    Ok(among)
}

/// How a network is fitted.
#[derive(Debug, Clone, Args)]
pub(crate) struct FitArgs {
    /// δ, weight of private evidence in a belief: a number, or auto to estimate it
    #[arg(help_heading = FIT, long, value_name = "auto|δ", value_parser = parse_adaptation, allow_hyphen_values = true)]
    pub(crate) adaptation: Option<Adaptation>,
    /// Constraint on the weights of a listener [default: simplex; free for gsl]
    #[arg(help_heading = FIT, long, value_enum)]
    pub(crate) constraint: Option<ConstraintName>,
    /// Ridge penalty relative to the variance of the regressors, for short series [default: 0]
    #[arg(help_heading = FIT, long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) ridge: Option<f64>,
    /// Parameters of the weights on a graph [default: auto, with --graph]
    #[arg(help_heading = STATE_SPACE, long, value_enum)]
    pub(crate) weights: Option<WeightsName>,
    /// Shrinkage of a weight towards the mean weight of the same speaker [default: 500]
    #[arg(help_heading = STATE_SPACE, long, alias = "pull", value_name = "S", allow_negative_numbers = true)]
    pub(crate) shrinkage: Option<f64>,
    /// Add a common trend to the model: the lagged mean of all users, or of the groups in a file (CSV agent,group)
    #[arg(help_heading = STATE_SPACE, long, value_name = "network|GROUPS")]
    pub(crate) common: Option<PathBuf>,
    /// Maximum number of rounds of the fit [default: 200]
    #[arg(help_heading = STATE_SPACE, long, value_name = "N")]
    pub(crate) rounds: Option<usize>,
    /// How the fit ends: by sampling the posterior, where that is possible, or with the rounds above, for a quick look [default: posterior]
    #[arg(help_heading = STATE_SPACE, long, value_enum)]
    pub(crate) fit: Option<FitName>,
    /// Maximum number of posterior draws of each chain; fewer where the chains converge earlier [default: 1000]
    #[arg(help_heading = STATE_SPACE, long, value_name = "N")]
    pub(crate) draws: Option<usize>,
    /// Number of chains of the posterior, rounded up to a multiple of 8; edges take a quarter as many, at least 4 [default: 16]
    #[arg(help_heading = STATE_SPACE, long, value_name = "N")]
    pub(crate) chains: Option<usize>,
    /// A first answer for very large graphs: speaker strengths by a short search, without intervals and forecast skill
    #[arg(help_heading = STATE_SPACE, long, conflicts_with_all = ["fit", "draws", "chains", "minutes", "rounds"])]
    pub(crate) sketch: bool,
    /// Time for sampling the posterior; what is drawn by then is kept [default: until the chains converge]
    #[arg(help_heading = STATE_SPACE, long, value_name = "MINUTES", value_parser = parse_minutes, allow_negative_numbers = true)]
    pub(crate) minutes: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitName {
    /// Draws from the posterior of speaker strengths on a graph, or of edges among up to 60 users: calibrated intervals
    Posterior,
    /// Expectation-maximisation alone
    Em,
}

fn parse_minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok().filter(|minutes: &f64| *minutes > 0.0 && minutes.is_finite());
    minutes.ok_or_else(|| "must be a number of minutes above 0".into())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeightsName {
    /// Selected by the predictive density of held-out steps
    Auto,
    /// One weight per edge
    Edges,
    /// One strength per speaker; listeners divide their attention in proportion
    Strengths,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConstraintName {
    /// Non-negative, sum to one
    Simplex,
    /// Unconstrained, as in the paper
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
    text.parse().map(Adaptation::Value).map_err(|_| "must be a number or auto".into())
}

impl FitArgs {
    /// δ, where a number was given.
    pub(crate) fn number_for_adaptation(&self) -> Option<f64> {
        match self.adaptation {
            Some(Adaptation::Value(value)) => Some(value),
            Some(Adaptation::Auto) | None => None,
        }
    }

    /// Whether an option is given that only the state-space fit has.
    pub(crate) fn has_state_space_option(&self) -> bool {
        self.weights.is_some()
            || self.shrinkage.is_some()
            || self.rounds.is_some()
            || self.common.is_some()
            || self.fit.is_some()
            || self.sketch
            || self.has_sampling_option()
    }

    fn has_sampling_option(&self) -> bool {
        self.draws.is_some() || self.chains.is_some() || self.minutes.is_some()
    }

    /// Checks that need no data.
    pub(crate) fn check(&self, graph: bool) -> Result<(), CliError> {
        if matches!(self.weights, Some(WeightsName::Strengths | WeightsName::Auto)) && !graph {
            return Err(CliError::usage(
                "speaker strengths need a graph of who follows whom",
                "add --graph EDGES (source,target: the target follows the source), or omit --weights",
            ));
        }
        if self.weights == Some(WeightsName::Strengths) && self.constraint == Some(ConstraintName::Free) {
            return Err(CliError::usage(
                "speaker strengths are shares of attention and cannot be combined with --constraint free",
                "omit --constraint, or use --weights edges",
            ));
        }
        if self.sketch && (!graph || self.common.is_some() || self.weights == Some(WeightsName::Edges)) {
            return Err(CliError::usage(
                "a sketch is of speaker strengths on a graph, without a common trend",
                "add --graph EDGES and omit --weights edges and --common, or omit --sketch",
            ));
        }
        if self.fit == Some(FitName::Em) && self.has_sampling_option() {
            return Err(CliError::usage(
                "--draws, --chains and --minutes are options of the posterior, which --fit em does not sample",
                "omit them, or --fit em",
            ));
        }
        Ok(StateSpaceParams { weights: None, sketch: false, ..self.params(0) }.check()?)
    }

    /// The file of groups, where one is given.
    pub(crate) fn groups_file(&self) -> Option<&Path> {
        self.common.as_deref().filter(|given| *given != Path::new(NETWORK))
    }

    /// The group of each agent, whose lagged mean is the common trend.
    pub(crate) fn groups(&self, roster: &Roster, terminal: &Terminal) -> Result<Option<Vec<usize>>, CliError> {
        let Some(path) = self.groups_file() else {
            return Ok(self.common.as_ref().map(|_| vec![0; roster.agents().len()]));
        };
        groups_among(path, roster, terminal).map(Some)
    }

    /// The parameters of the library, without support and groups, which the caller adds.
    pub(crate) fn params(&self, seed: u64) -> StateSpaceParams {
        let usual = StateSpaceParams::default();
        let sampling = SamplingParams::default();
        let sampling = SamplingParams {
            draws: self.draws.unwrap_or(sampling.draws),
            chains: self.chains.unwrap_or(sampling.chains),
            seed,
        };
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
            sampling: (self.fit != Some(FitName::Em)).then_some(sampling),
            sketch: self.sketch,
            ..usual
        }
    }

    /// The common trend as an input of the pipeline.
    pub(crate) fn common_input(&self) -> Option<CommonInput> {
        let common = self.common.as_ref()?;
        Some(match self.groups_file() {
            Some(_) => CommonInput::File(common.clone()),
            None => CommonInput::Network,
        })
    }
}
