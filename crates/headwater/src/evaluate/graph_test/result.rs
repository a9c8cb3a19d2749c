//! What the graph test found, and what it could not test.

use super::power::Power;
use crate::words::count;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Level of the test.
pub(super) const LEVEL: f64 = 0.05;

/// Share of silent cells above which "not shown" is the usual outcome.
const MOSTLY_SILENT: f64 = 0.7;

/// What the statistic was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GraphNull {
    /// Graphs in which every account keeps its numbers of speakers, listeners and mutual edges, and groups the edges between
    /// them.
    RewiredGraphs,
    /// The same graph with the accounts exchanged at random, within groups where they are given: for episodes of a few steps.
    RelabelledGraphs,
    /// Scores of speakers exchanged within each episode or stretch of time: some speaker is heard, whatever the graph.
    ExchangedSpeakers,
}

/// A limit of the test on these data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GraphTestLimit {
    /// The graph is a star or otherwise cannot be rewired: it was tested whether some speaker is heard.
    CannotBeRewired,
    /// Some episodes have fewer than ten steps.
    ShortEpisodes,
    /// Every edge is mutual: there is no direction to test.
    MutualOnly,
    /// Most cells are silent: "not shown" does not mean that nobody listens.
    MostlySilent,
}

impl fmt::Display for GraphTestLimit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            GraphTestLimit::CannotBeRewired => {
                "With these groups this graph, like a star, leaves no similar graphs to compare with. Tested instead, without the graph: whether some account is ahead of the others again and again. An account that reads the news first would be ahead as well."
            }
            GraphTestLimit::ShortEpisodes => {
                "With fewer than ten steps an account's own past cannot be fitted: its change was taken less a line in its own opinion. Without given groups, accounts that are alike and follow each other for that reason are not told apart."
            }
            GraphTestLimit::MutualOnly => "All edges are mutual, so there is no direction to test.",
            GraphTestLimit::MostlySilent => {
                "More than 70 % of the steps are silent; listening is then found only among many accounts over many steps."
            }
        })
    }
}

/// Why data cannot be tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Untestable {
    /// No edge joins two accounts that can be tested.
    NoEdges {
        /// Accounts that can be tested.
        accounts: usize,
    },
    /// Too few accounts speak often enough.
    TooFewAccounts {
        /// Accounts that do.
        accounts: usize,
        /// Accounts that are needed.
        needed: usize,
        /// Steps at which an account must have spoken.
        steps: usize,
    },
    /// No account ever changes its opinion.
    NoChange,
    /// The opinions of all accounts change alike.
    NoContrast,
    /// Too few steps.
    TooFewSteps {
        /// Steps there are.
        steps: usize,
        /// Steps that are needed.
        needed: usize,
    },
    /// Too few episodes to exchange speakers between.
    TooFewEpisodes {
        /// Episodes there are.
        episodes: usize,
        /// Episodes that are needed.
        needed: usize,
    },
    /// Nearly everybody follows everybody: no other graph is like this one.
    EverybodyLinked,
    /// The graph cannot be rewired, and there are too few steps to test whether some speaker is heard.
    CannotBeRewired,
}

impl Untestable {
    /// Whether the opinions themselves allow no test of anything: they never change, at most two accounts speak, or there is one
    /// step. Otherwise only this test, or this graph, is the obstacle.
    pub fn without_opinions(&self) -> bool {
        match self {
            Untestable::NoChange => true,
            Untestable::TooFewAccounts { accounts, .. } => *accounts <= 2,
            Untestable::TooFewSteps { steps, .. } => *steps < 2,
            _ => false,
        }
    }
}

impl fmt::Display for Untestable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Untestable::NoEdges { accounts } => write!(
                to,
                "the graph has no edge between two of the {accounts} accounts whose opinions change often enough to be tested"
            ),
            Untestable::TooFewAccounts { accounts, needed, steps } => write!(
                to,
                "{accounts} account(s) speak at {steps} steps or more and change their opinion; the test needs at least {needed}"
            ),
            Untestable::NoChange => to.write_str("no account ever changes its opinion, so there is nothing that could travel"),
            Untestable::NoContrast => {
                to.write_str("the opinions of all accounts change alike, so nobody can be told to follow somebody else")
            }
            Untestable::TooFewSteps { steps, needed } => {
                let are = if *steps == 1 { "is" } else { "are" };
                write!(to, "there {are} {}; the test needs at least {needed}", count(*steps, "time step"))
            }
            Untestable::TooFewEpisodes { episodes, needed } => write!(
                to,
                "there are {episodes} episodes; to test whether some account is heard at least {needed} are needed"
            ),
            Untestable::EverybodyLinked => {
                to.write_str("nearly every account is linked with every other, so there is no other graph to compare with")
            }
            Untestable::CannotBeRewired => to.write_str(
                "this graph, like a star, cannot be compared with similar graphs, and there are too few time steps to test whether some account is heard",
            ),
        }
    }
}

/// Does opinion travel along a graph? The result of [`graph_test`](super::graph_test).
///
/// `effect` is the excess over the null's mean of the average correlation between the deviation of a followed account and the
/// later news of its follower, after what groups and shared news explain; `low` and `high` are a 90 % interval from the spread of
/// the null. It is not comparable between data sets: strong listening makes consensus, which centring removes. With exchanged
/// speakers it is the excess of the largest standardised score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphTest {
    /// (1 + null draws that reach the observed statistic) / (1 + draws).
    pub p_value: f64,
    /// Excess over the mean of the null.
    pub effect: f64,
    /// Lower end of its 90 % interval.
    pub low: f64,
    /// Upper end of its 90 % interval.
    pub high: f64,
    /// The effect in standard deviations of the null.
    pub z: f64,
    /// What it was compared with.
    pub null: GraphNull,
    /// Draws from the null.
    pub draws: usize,
    /// Time steps of all episodes.
    pub steps: usize,
    /// Episodes.
    pub episodes: usize,
    /// Accounts tested.
    pub accounts: usize,
    /// Accounts left out because they speak too rarely or never change.
    pub left_out: usize,
    /// Edges between tested accounts.
    pub edges: usize,
    /// Share of silent steps among the tested accounts.
    pub silent_share: f64,
    /// Number of groups, small ones pooled.
    pub groups: usize,
    /// Whether the groups were given; otherwise they are communities of the graph.
    pub groups_given: bool,
    /// Coefficients of shared news and shared deviations, by which scores are corrected.
    pub guard: [f64; 2],
    /// Mean share of edges that a rewired graph does not share with the given one.
    pub rewired_share: f64,
    /// Without groups and guard: what homophily and shared news alone can give. Never the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unguarded_p: Option<f64>,
    /// Of the direction: do listeners follow speakers more than speakers follow listeners?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction_p: Option<f64>,
    /// Against circular shifts in time, which common news passes. Never the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift_p: Option<f64>,
    /// With exchanged speakers: index of the account that is ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<usize>,
    /// Limits that apply.
    pub limits: Vec<GraphTestLimit>,
    /// How often listening would have been found, where it was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
}

impl GraphTest {
    /// Whether p is at most 5 %.
    pub fn passed(&self) -> bool {
        self.p_value <= LEVEL
    }

    pub(super) fn silence_limit(silent_share: f64) -> Option<GraphTestLimit> {
        (silent_share > MOSTLY_SILENT).then_some(GraphTestLimit::MostlySilent)
    }
}

/// What this test cannot exclude, said wherever it passes.
pub const NOT_EXCLUDED: &str = "Not excluded: accounts that are alike, follow each other for that reason, and read the same news sooner the more followers they have.";

impl fmt::Display for GraphTest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = self.p_value;
        match (self.null, self.passed()) {
            (GraphNull::RewiredGraphs, true) => write!(
                to,
                "Opinion travels along this graph more than along graphs like it: p = {p:.3} against {} rewired graphs. {NOT_EXCLUDED}",
                self.draws
            ),
            (GraphNull::RewiredGraphs, false) => write!(
                to,
                "No evidence that opinion travels along this graph more than along graphs like it: p = {p:.3} against {} rewired graphs.",
                self.draws
            ),
            (GraphNull::RelabelledGraphs, true) => write!(
                to,
                "Opinion travels along this graph more than along the same graph among accounts exchanged at random: p = {p:.3} against {} exchanges. {NOT_EXCLUDED}",
                self.draws
            ),
            (GraphNull::RelabelledGraphs, false) => write!(
                to,
                "Not shown that opinion travels along this graph: p = {p:.3} against {} exchanges of accounts.",
                self.draws
            ),
            (GraphNull::ExchangedSpeakers, true) => {
                write!(to, "Some account is heard: p = {p:.3} against {} exchanges of speakers.", self.draws)
            }
            (GraphNull::ExchangedSpeakers, false) => {
                write!(
                    to,
                    "No evidence that any account is heard: p = {p:.3} against {} exchanges of speakers.",
                    self.draws
                )
            }
        }
    }
}
