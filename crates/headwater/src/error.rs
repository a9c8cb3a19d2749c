//! The error type of the library. Every message says what was met and what is wanted.

use crate::words::{exact, list};
use thiserror::Error;

/// Errors of this library.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A value of another shape than wanted.
    #[error("{what}: found {met}, expected {wanted}")]
    Shape {
        /// What has the wrong shape.
        what: &'static str,
        /// The shape met.
        met: String,
        /// The shape wanted.
        wanted: String,
    },
    /// A parameter is outside its range.
    #[error("{name} is {value}, but must be {range}")]
    Parameter {
        /// Name of the parameter, its words joined by hyphens.
        name: &'static str,
        /// The value met.
        value: String,
        /// The range wanted.
        range: &'static str,
    },
    /// A name occurs twice in a list of names.
    #[error("the {kind} {name:?} is named twice; names must be unique")]
    DuplicateName {
        /// "agent", "hypothesis" or "episode".
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A name is not in the roster.
    #[error("there is no {kind} {name:?} here; known: {known}")]
    UnknownName {
        /// "agent" or "hypothesis".
        kind: &'static str,
        /// The name.
        name: String,
        /// The first few known names.
        known: String,
    },
    /// Fewer than two agents.
    #[error("{agents} agent(s) found; a network needs at least 2")]
    TooFewAgents {
        /// How many were met.
        agents: usize,
    },
    /// Fewer than two hypotheses.
    #[error("{hypotheses} hypothesis column(s) found; an opinion needs at least 2")]
    TooFewHypotheses {
        /// How many were met.
        hypotheses: usize,
    },
    /// Fewer time steps than a learner needs.
    #[error("{seen} time steps seen, but {needed} are needed")]
    NotReady {
        /// Steps seen.
        seen: usize,
        /// Steps needed.
        needed: usize,
    },
    /// Agents without a single belief.
    #[error("these agents never speak: {}; remove them", list(.agents.iter().map(String::as_str)))]
    NeverSpeaks {
        /// Their names.
        agents: Vec<String>,
    },
    /// An episode that cannot be used.
    #[error("episode {episode:?}: {problem}")]
    Episode {
        /// Its name.
        episode: String,
        /// What was met and what is wanted.
        problem: String,
    },
    /// Agents without a single belief in an episode, for a learner that takes no silence.
    #[error(
        "these agents are absent from episode {episode:?}: {agents}; this method repeats last beliefs and has none to repeat there; the state-space method takes absence as it is"
    )]
    Absent {
        /// Their names.
        agents: String,
        /// Name of the episode.
        episode: String,
    },
    /// Two beliefs of one agent at one step.
    #[error("agent {agent:?} has two beliefs at time {time}; keep one")]
    DuplicateBelief {
        /// The agent.
        agent: String,
        /// The time as given.
        time: String,
    },
    /// A belief that is not a probability distribution, or a log-ratio out of range.
    #[error("hypothesis {hypothesis:?}: {problem}")]
    Belief {
        /// The column.
        hypothesis: String,
        /// What was met and what is wanted.
        problem: String,
    },
    /// Times so far apart that nearly all steps would be silent.
    #[error(
        "times run from {first} to {last}, {steps} steps, but only {present} of them are present; times must be step numbers 0, 1, 2, … or RFC 3339 dates"
    )]
    Sparse {
        /// First time.
        first: i64,
        /// Last time.
        last: i64,
        /// Steps in between.
        steps: u64,
        /// Distinct times present.
        present: usize,
    },
    /// A panel would be many times larger than what it is made from.
    #[error(
        "{steps} steps of {agents} agents with {ratios} log-ratio(s) each are more than the {limit} numbers that an input of this size may become; nearly all of them would be silence"
    )]
    TooLarge {
        /// Steps, silent ones included.
        steps: usize,
        /// Agents, with the space made for more.
        agents: usize,
        /// Log-ratios per belief.
        ratios: usize,
        /// The numbers allowed.
        limit: usize,
    },
    /// The learning rate is too large: the weights overflowed.
    #[error(
        "the estimate diverged at step {step}: with learning rate {learning_rate:.3e} the weights grow without bound (stability bound on these data: {bound:.3e})"
    )]
    Diverged {
        /// Step at which it was detected.
        step: usize,
        /// Learning rate in use.
        learning_rate: f64,
        /// 2/((1−δ)²λ_max) on the data at hand.
        bound: f64,
    },
    /// Data that do not allow to test whether opinion travels along a graph.
    #[error("{0}")]
    Untestable(crate::evaluate::graph_test::Untestable),
    /// A stop was requested.
    #[error("stopped on request")]
    Stopped,
    /// A graph or its weights are not valid for the purpose.
    #[error("{reason}")]
    Graph {
        /// Why, naming agents.
        reason: String,
    },
    /// A result is not defined for this input.
    #[error("{what} cannot be computed: {reason}")]
    Undefined {
        /// What was asked for.
        what: &'static str,
        /// Why not.
        reason: String,
    },
}

impl From<crate::evaluate::graph_test::Untestable> for Error {
    fn from(reason: crate::evaluate::graph_test::Untestable) -> Self {
        Error::Untestable(reason)
    }
}

/// Checks the range of a parameter.
pub(crate) fn require(
    holds: bool,
    name: &'static str,
    value: impl std::fmt::Display,
    range: &'static str,
) -> Result<(), Error> {
    if holds {
        return Ok(());
    }
    Err(Error::Parameter { name, value: exact(value), range })
}
