//! The pipeline that the command line, the demo, Python and the report share: posts in, a ranking with its verdict out.
//!
//! [`Discover`] holds the inputs and options, [`Store`] keeps results, [`Discovery`] holds the results:
//!
//! | stage | in | out |
//! |---|---|---|
//! | score | posts | a [`Panel`] of log-beliefs, its [`Quality`], the follow graph among its accounts |
//! | learn | the panel and the graph | a [`Model`] with its forecast skill |
//! | rank | the model and the panel | a [`Ranking`] with intervals, p-values and a [`Verdict`] |
//! | report | all of it | the files that the store's [`Artifact`]s make |

mod discover;
mod error;
mod event;
mod follow_graph;
mod ingest;
mod input_names;
mod inputs;
mod journal;
mod lock;
mod pseudonyms;
mod record;
mod store;

pub use discover::{
    BELIEFS_FILE, CommonInput, Discover, GroupsInput, LOG_BELIEFS_FILE, MODEL_FILE, NULL_TEST_ACCOUNTS, Observer,
    RANKING_FILES, USUAL_DRAWS, UncertaintyOptions,
};
pub use error::{Error, InputChange};
pub use event::{RunEvent, Warning};
pub use follow_graph::{GraphCounts, GraphInput};
pub use input_names::InputNames;
pub use pseudonyms::{KeyProblem, Pseudonyms, SHORTEST_KEY};
pub use record::{InputFile, RUN_FORMAT, RunCounts, RunOptions, RunRecord, StageFiles, StageName, StageTiming};
pub use store::{Artifact, RUN_FILE, Store};

use headwater::compare::GroundTruth;
use headwater::evaluate::Verdict;
use headwater::graph::Graph;
use headwater::{Model, Panel, Ranking};
use headwater_posts::Quality;

/// The results of a run. Read the verdict first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Discovery {
    /// Beliefs of the accounts by time bin.
    pub panel: Panel,
    /// Who follows whom among them, where a graph was given.
    pub graph: Option<Graph>,
    /// Counts of posts read, kept and left out.
    pub quality: Quality,
    /// Who listens to whom.
    pub model: Model,
    /// The accounts by influence, with intervals and p-values.
    pub ranking: Ranking,
    /// Whether the data support an answer.
    pub verdict: Verdict,
    /// The ground truth, where given.
    pub truth: Option<GroundTruth>,
    /// Inputs, options, counts, timings.
    pub run: RunRecord,
}
