//! The experiments: names, what they need, and what they are given and give back.

use crate::Error;
use crate::claim::PaperClaim;
use crate::experiments::{
    drift, evidence_error, graph_error, influences, matrices, people, sentiment_table, theory, truth_rate, twitter,
};
use crate::jobs::Jobs;
use crate::released_data::ReleasedData;
use headwater_report::Figure;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::str::FromStr;

/// One of the paper's figures or tables, or several that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Experiment {
    /// Figure 1: true and learned weights.
    Matrices,
    /// Figure 2: error of the weights over time.
    GraphError,
    /// Figure 3: error of the evidence over time.
    EvidenceError,
    /// Figure 4: true and learned influence shares.
    Influences,
    /// Figure 5: how often an agent identifies the true state.
    TruthRate,
    /// Figure 6a: a topology that changes.
    TopologyDrift,
    /// Figure 6b: a true state that changes.
    StateDrift,
    /// Figures 7 to 9: the three Twitter networks.
    Twitter,
    /// Table 1: sentiment of sample posts.
    SentimentTable,
    /// Theorems 1 and 2: predicted and measured rates.
    Theory,
    /// Not of the paper: people who revise an estimate, with a known network.
    People,
}

impl Experiment {
    /// In the order of the page.
    pub const ALL: [Experiment; 11] = [
        Experiment::Matrices,
        Experiment::GraphError,
        Experiment::EvidenceError,
        Experiment::Influences,
        Experiment::TruthRate,
        Experiment::TopologyDrift,
        Experiment::StateDrift,
        Experiment::Twitter,
        Experiment::SentimentTable,
        Experiment::Theory,
        Experiment::People,
    ];

    /// Its name on the command line, in folders and in files.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::Matrices => "matrices",
            Experiment::GraphError => "graph-error",
            Experiment::EvidenceError => "evidence-error",
            Experiment::Influences => "influences",
            Experiment::TruthRate => "truth-rate",
            Experiment::TopologyDrift => "topology-drift",
            Experiment::StateDrift => "state-drift",
            Experiment::Twitter => "twitter",
            Experiment::SentimentTable => "sentiment-table",
            Experiment::Theory => "theory",
            Experiment::People => "people",
        }
    }

    /// Its heading on the page.
    pub fn title(self) -> &'static str {
        match self {
            Experiment::Matrices => "Combination matrices",
            Experiment::GraphError => "Error of the learned weights",
            Experiment::EvidenceError => "Error of the learned evidence",
            Experiment::Influences => "Influence shares",
            Experiment::TruthRate => "Rate of identifying the true state",
            Experiment::TopologyDrift => "Changes of the topology",
            Experiment::StateDrift => "Changes of the true state",
            Experiment::Twitter => "Twitter networks",
            Experiment::SentimentTable => "Sentiment of sample posts",
            Experiment::Theory => "Theorems: predicted and measured rates",
            Experiment::People => "People in experiments",
        }
    }

    /// Whether it simulates on the authors' network, if that is there, and otherwise on one like it.
    pub(crate) fn simulates(self) -> bool {
        self.is_of_the_paper() && !matches!(self, Experiment::Twitter | Experiment::SentimentTable | Experiment::Theory)
    }

    /// Whether the paper has it; others have pages of their own.
    pub fn is_of_the_paper(self) -> bool {
        self != Experiment::People
    }

    /// Whether there is nothing to show without the authors' Twitter files.
    pub(crate) fn needs_twitter(self) -> bool {
        self == Experiment::Twitter
    }

    /// Whether a RoBERTa model changes what it shows.
    pub(crate) fn takes_a_model(self) -> bool {
        self == Experiment::SentimentTable
    }

    pub(crate) fn run(self, context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
        match self {
            Experiment::Matrices => matrices::run(context),
            Experiment::GraphError => graph_error::run(context),
            Experiment::EvidenceError => evidence_error::run(context),
            Experiment::Influences => influences::run(context),
            Experiment::TruthRate => truth_rate::run(context),
            Experiment::TopologyDrift => drift::topology(context),
            Experiment::StateDrift => drift::state(context),
            Experiment::Twitter => twitter::run(context),
            Experiment::SentimentTable => sentiment_table::run(context),
            Experiment::Theory => theory::run(context),
            Experiment::People => people::run(context),
        }
    }
}

impl FromStr for Experiment {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let known = Experiment::ALL.into_iter().find(|experiment| experiment.name() == name);
        known.ok_or_else(|| Error::UnknownExperiment { name: name.to_owned() })
    }
}

/// What an experiment is given.
pub(crate) struct ExperimentContext<'a> {
    pub(crate) quick: bool,
    pub(crate) seed: u64,
    pub(crate) released: &'a ReleasedData,
    /// Folder of a RoBERTa model.
    pub(crate) model: Option<&'a Path>,
    pub(crate) jobs: Jobs,
}

impl ExperimentContext<'_> {
    /// Seeds of the repetitions.
    pub(crate) fn seeds(&self) -> Vec<u64> {
        let count = if self.quick { 3 } else { 10 };
        (0..count).map(|number| self.seed.wrapping_add(number)).collect()
    }

    /// One of two numbers.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// What an experiment found.
pub(crate) struct ExperimentResult {
    pub(crate) figures: Vec<NamedFigure>,
    pub(crate) numbers: Value,
    pub(crate) claims: Vec<PaperClaim>,
}

/// A figure with the name of its files and what it shows.
pub(crate) struct NamedFigure {
    pub(crate) stem: String,
    pub(crate) caption: String,
    pub(crate) figure: Figure,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_everywhere() {
        for experiment in Experiment::ALL {
            assert_eq!(experiment.name().parse::<Experiment>().ok(), Some(experiment));
            assert_eq!(serde_json::to_value(experiment).ok(), Some(experiment.name().into()));
        }
        let error = "figure-9".parse::<Experiment>().map_err(|error| error.to_string());
        assert!(
            error.is_err_and(|text| text.starts_with("no experiment \"figure-9\"; there is matrices, graph-error"))
        );
    }
}
