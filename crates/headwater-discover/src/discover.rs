//! The pipeline: posts to a ranking with its verdict.

use crate::event::{RunEvent, Warning};
use crate::follow_graph::{GraphInput, RunGraph};
use crate::journal::Journal;
use crate::pseudonyms::Pseudonyms;
use crate::record::{InFiles, ScoreResult, StageName, stage_key};
use crate::store::{StageSpec, Store, hashes, write_file};
use crate::{Discovery, Error};
use headwater::compare::GroundTruth;
use headwater::evaluate::graph_test::check_opinions;
use headwater::evaluate::{Bootstrap, CircularShifts, TooFewSteps, draw_many};
use headwater::graph::Graph;
use headwater::learn::gsl::Constraint;
use headwater::learn::state_space::StateSpaceParams;
use headwater::model::WeightKind;
use headwater::progress::{self, Progress};
use headwater::ranking::Uncertainty;
use headwater::{Method, Model, Panel, Ranking, Roster, fit};
use headwater_files::{
    CsvText, Groups, edges_csv, ranking_csv, read_groups, read_model, read_panel, write_json, write_model,
};
use headwater_posts::{PostOptions, PostsInput};
use headwater_score::ModelSource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::path::{Path, PathBuf};

/// What people believed, bin by bin, as probabilities.
pub const BELIEFS_FILE: &str = "beliefs.parquet";
/// The same as log-ratios at full precision: what the model was learned from, and what a repeat of the run starts from.
pub const LOG_BELIEFS_FILE: &str = "log-beliefs.parquet";
/// The model.
pub const MODEL_FILE: &str = "model.json";
/// The ranking, the same as a table, and the edges.
pub const RANKING_FILES: [&str; 3] = ["ranking.json", "ranking.csv", "edges.csv"];

/// Above this many accounts circular shifts run only when asked for: each draw takes a fit.
pub const NULL_TEST_ACCOUNTS: usize = 100;

/// Resamples and circular shifts by default.
pub const USUAL_DRAWS: u64 = 200;

/// Posts in, a ranking with its verdict out.
///
/// Stages: read, score and bin the posts; fit the state-space model; rank accounts with intervals and a null test; make the
/// store's artifacts. With [`Store::folder`] every stage is resumable.
///
/// ```
/// use headwater::progress::Progress;
/// use headwater_discover::{Discover, Store};
/// use headwater_posts::simulate::PostWorld;
/// let world = PostWorld::new(21, 60, 0.7)?;
/// let mut discover = Discover::new(world.posts_input());
/// discover.graph = Some(world.edges()?.into());
/// (discover.uncertainty.bootstrap, discover.uncertainty.null) = (20, Some(20));
/// let found = discover.run(&mut Store::memory(), &Progress::default())?;
/// println!("{}", found.verdict);
/// assert_eq!(found.ranking.agents.len(), 24);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Discover {
    /// Where the posts are.
    pub posts: PostsInput,
    /// Which posts count, and as what.
    pub options: PostOptions,
    /// The text model, where the options ask for one.
    pub text_model: Option<ModelSource>,
    /// Where to list the rows that cannot be read, as CSV `file,line,reason`.
    pub rejects: Option<PathBuf>,
    /// Who follows whom; without it anybody may influence anybody.
    pub graph: Option<GraphInput>,
    /// How the network is fitted; `support` and `common` are filled in from `graph` and `common`.
    pub fit: StateSpaceParams,
    /// After how many minutes the caller ends the sampling of the posterior; for the record.
    pub minutes: Option<f64>,
    /// Groups whose previous mean may move their members beside the network.
    pub common: Option<CommonInput>,
    /// Groups of accounts for the graph test; without them communities of the graph.
    pub groups: Option<GroupsInput>,
    /// Intervals and the null test.
    pub uncertainty: UncertaintyOptions,
    /// Replaces names of accounts everywhere.
    pub pseudonyms: Option<Pseudonyms>,
    /// What is known of the truth, for the report.
    pub truth: Option<GroundTruth>,
    /// How text is written into the CSV files of a folder.
    pub csv_text: CsvText,
}

/// Groups whose previous mean may move their members beside the network.
#[derive(Debug, Clone)]
pub enum CommonInput {
    /// All accounts are one group.
    Network,
    /// A CSV file `agent,group`.
    File(PathBuf),
    /// Groups in memory.
    Groups(Groups),
}

/// The group of each account.
#[derive(Debug, Clone)]
pub enum GroupsInput {
    /// A CSV file `agent,group`.
    File(PathBuf),
    /// Groups in memory.
    Groups(Groups),
}

impl GroupsInput {
    /// The file, where there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            GroupsInput::File(path) => Some(path),
            GroupsInput::Groups(_) => None,
        }
    }
}

/// Intervals and the null test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncertaintyOptions {
    /// Bootstrap resamples; 0 for no intervals.
    pub bootstrap: u64,
    /// Circular shifts; 0 for none; `None` for [`USUAL_DRAWS`] up to [`NULL_TEST_ACCOUNTS`] accounts. With a graph the graph
    /// test decides the verdict without them.
    pub null: Option<u64>,
    /// How many accounts the top is.
    pub top: usize,
    /// Of resamples, shifts and the graph test.
    pub seed: u64,
}

impl Default for UncertaintyOptions {
    fn default() -> Self {
        UncertaintyOptions { bootstrap: USUAL_DRAWS, null: None, top: 3, seed: 21 }
    }
}

/// Receives what happens during a run.
pub type Observer<'a> = &'a (dyn Fn(RunEvent) + Sync);

impl Discover {
    /// With default options.
    pub fn new(posts: PostsInput) -> Self {
        Discover {
            posts,
            options: PostOptions::default(),
            text_model: None,
            rejects: None,
            graph: None,
            fit: StateSpaceParams::default(),
            minutes: None,
            common: None,
            groups: None,
            uncertainty: UncertaintyOptions::default(),
            pseudonyms: None,
            truth: None,
            csv_text: CsvText::default(),
        }
    }

    /// Runs all stages. Errors: see [`Error`]; [`headwater::Error::Stopped`] once `progress` is asked to stop.
    pub fn run(&self, store: &mut Store, progress: &Progress) -> Result<Discovery, Error> {
        self.run_observed(store, progress, &|_| ())
    }

    /// The same, telling an observer what happens on the way.
    pub fn run_observed(
        &self,
        store: &mut Store,
        progress: &Progress,
        observer: Observer<'_>,
    ) -> Result<Discovery, Error> {
        let found = progress.run(|| Run { discover: self, observer }.stages(store, progress));
        store.unlock();
        let found = found?;
        if self.pseudonyms.is_none() {
            return found;
        }
        found.map_err(|error| match error {
            Error::Core(headwater::Error::Stopped) => error,
            error => Error::Unnamed { error: Box::new(error), names: self.input_names() },
        })
    }

    /// What can be checked before anything is read.
    pub fn check(&self) -> Result<(), Error> {
        if self.fit.weights == Some(WeightKind::Strengths) && self.graph.is_none() {
            return Err(Error::StrengthsWithoutGraph);
        }
        if self.fit.weights == Some(WeightKind::Strengths) && self.fit.constraint == Constraint::Free {
            return Err(Error::StrengthsUnconstrained);
        }
        StateSpaceParams { weights: None, ..self.fit.clone() }.check()?;
        Ok(self.options.check()?)
    }
}

/// One run under way.
pub(crate) struct Run<'a> {
    pub(crate) discover: &'a Discover,
    pub(crate) observer: Observer<'a>,
}

/// What the first stage makes.
pub(crate) struct Ingested {
    pub(crate) panel: Panel,
    pub(crate) graph: Option<Graph>,
}

impl Run<'_> {
    fn stages(&self, store: &mut Store, progress: &Progress) -> Result<Discovery, Error> {
        let discover = self.discover;
        discover.check()?;
        self.check_outputs(store)?;
        let mut pseudonyms = discover.pseudonyms.clone();
        store.lock()?;
        let mut inputs = self.inputs()?;
        if let Some(pseudonyms) = &pseudonyms {
            inputs.iter_mut().for_each(|input| input.sha256 = pseudonyms.keyed_hash(&input.sha256));
        }
        store.check_inputs(&inputs)?;
        let graph_input = discover.graph.as_ref();
        let follow_graph = graph_input.map(|input| RunGraph::read(input, pseudonyms.as_mut())).transpose()?;
        let fingerprint = pseudonyms.as_ref().map(Pseudonyms::fingerprint);
        let hashes = |role: &str| hashes(&inputs, role);
        let mut reused = |name: StageName| (self.observer)(RunEvent::Reused(name));
        let mut options = self.options();

        let read = ["posts", "users", "graph", "scorer"].map(&hashes);
        let stage = StageSpec {
            name: StageName::Score,
            depends: json!({
                "inputs": read,
                "options": options.of_posts(),
                "pseudonyms": fingerprint,
            }),
            files: &[BELIEFS_FILE, LOG_BELIEFS_FILE],
        };
        let (ingested, scored) = store.stage(
            &stage,
            &mut reused,
            |work| {
                let ingested = self.ingest(work, pseudonyms.as_mut(), follow_graph.as_ref())?;
                // Before a fit, and before anything is left behind.
                if follow_graph.is_some() {
                    check_opinions(&[&ingested.0.panel]).map_err(|error| self.about(error))?;
                    if let Some(groups) = &discover.groups {
                        self.groups_of(groups, ingested.0.panel.roster(), pseudonyms.as_mut())?;
                    }
                }
                Ok(ingested)
            },
            |path, scored: &ScoreResult| {
                let panel = read_panel(&path(LOG_BELIEFS_FILE))?;
                // What became of the graph was counted with the posts.
                let among = |graph: &RunGraph| graph.among(panel.roster(), &scored.matched, 0, 0);
                let graph = follow_graph.as_ref().map(among).transpose()?;
                Ok(Ingested { graph: graph.map(|(graph, _)| graph), panel })
            },
        )?;
        let Ingested { panel, graph } = ingested;
        let groups = discover.groups.as_ref().filter(|_| graph.is_some());
        let groups = groups.map(|groups| self.groups_of(groups, panel.roster(), pseudonyms.as_mut())).transpose()?;
        let groups = groups.map(|groups| self.told(groups));

        let on_graph = json!([hashes("graph"), fingerprint]);
        let stage = StageSpec {
            name: StageName::Learn,
            depends: json!({
                "beliefs": store.hash(LOG_BELIEFS_FILE),
                "graph": on_graph,
                "groups": hashes("groups"),
                "options": options.of_fit(),
            }),
            files: &[MODEL_FILE],
        };
        let (model, _) = store.stage(
            &stage,
            &mut reused,
            |work| {
                let model = self.learn(&panel, graph.as_ref(), pseudonyms.as_mut(), progress)?;
                if let Some(work) = work {
                    write_model(&work.join(MODEL_FILE), &model)?;
                }
                Ok((model, InFiles {}))
            },
            |path, _| Ok(read_model(&path(MODEL_FILE))?),
        )?;

        let uncertainty = self.uncertainty(panel.agents());
        options.null = uncertainty.null.unwrap_or(0);
        let depends = json!({
            "beliefs": store.hash(LOG_BELIEFS_FILE),
            "model": store.hash(MODEL_FILE),
            "graph": on_graph,
            "seed": uncertainty.seed,
        });
        let draws_key = stage_key(StageName::Rank, &depends);
        let asked = json!([uncertainty.bootstrap, uncertainty.null, uncertainty.top, options.raw_csv, groups]);
        let stage = StageSpec { name: StageName::Rank, depends: json!([depends, asked]), files: &RANKING_FILES };
        let (ranking, _) = store.stage(
            &stage,
            &mut reused,
            |work| {
                let on_graph = graph.as_ref().map(|graph| (graph, groups.clone()));
                let ranking = self.rank(work, &draws_key, &uncertainty, &model, &panel, on_graph)?;
                if let Some(work) = work {
                    write_ranking(work, &ranking, &model, discover.csv_text)?;
                }
                Ok((ranking, InFiles {}))
            },
            |path, _| {
                let mut ranking: Ranking = read_json(&path(RANKING_FILES[0]))?;
                ranking.notes = Ranking::new(&model)?.notes;
                if uncertainty.bootstrap.is_some() || uncertainty.null.is_some() {
                    ranking.add_refit_note(&model);
                }
                Ok(ranking)
            },
        )?;

        let impossible = ranking.too_few_steps().into_iter().map(Warning::Ranking);
        impossible.for_each(|warning| (self.observer)(RunEvent::Warning(warning)));
        if discover.uncertainty.null.is_none() && uncertainty.null.is_none() {
            let accounts = panel.agents();
            let decided = ranking.verdict.graph_test.is_some();
            (self.observer)(RunEvent::NullTestOff { accounts, decided });
        }
        let quality = scored.counts.quality.clone();
        let run = self.record(inputs, options, fingerprint, scored, &model, &ranking);
        let (truth, verdict) = (discover.truth.clone(), ranking.verdict.clone());
        let mut discovery = Discovery { panel, quality, graph, model, ranking, verdict, truth, run };
        let artifacts = store.artifacts().to_vec();
        if !artifacts.is_empty() {
            let made = [LOG_BELIEFS_FILE, MODEL_FILE, RANKING_FILES[0]].map(|file| store.hash(file).map(str::to_owned));
            let files: Vec<&str> = artifacts.iter().map(|artifact| artifact.file).collect();
            let stage = StageSpec {
                name: StageName::Report,
                depends: json!({
                    "files": made,
                    "graph": on_graph,
                    "truth": discovery.truth.as_ref().map(|truth| format!("{truth:?}")),
                    "record": discovery.run,
                }),
                files: &files,
            };
            store.stage(
                &stage,
                &mut reused,
                |work| {
                    let _stage = progress::stage("making the report", 0);
                    for artifact in &artifacts {
                        let rendered = (artifact.render)(&discovery);
                        let bytes = rendered.map_err(|problem| Error::Artifact { file: artifact.file, problem })?;
                        if let Some(work) = work {
                            write_file(work, artifact.file, &bytes)?;
                        }
                    }
                    Ok(((), InFiles {}))
                },
                |_, _| Ok(()),
            )?;
        }
        store.finish(&mut discovery.run)?;
        Ok(discovery)
    }
}

impl Run<'_> {
    /// The posts, for messages.
    pub(crate) fn posts_name(&self) -> String {
        self.discover.posts.name().display().to_string()
    }

    /// Names the posts in an error of the library.
    pub(crate) fn about(&self, source: headwater::Error) -> Error {
        match source {
            headwater::Error::Parameter { .. } | headwater::Error::Stopped => source.into(),
            source => Error::Data { posts: self.posts_name(), source },
        }
    }

    fn learn(
        &self,
        panel: &Panel,
        graph: Option<&Graph>,
        pseudonyms: Option<&mut Pseudonyms>,
        progress: &Progress,
    ) -> Result<Model, Error> {
        let params = StateSpaceParams {
            support: graph.map(|graph| graph.speakers().to_vec()),
            common: self.groups(panel.roster(), pseudonyms)?,
            ..self.discover.fit.clone()
        };
        let model = fit(panel, &Method::StateSpace(params), progress).map_err(|error| self.about(error))?;
        for warning in &model.diagnostics.warnings {
            (self.observer)(RunEvent::Warning(Warning::Model(warning.clone())));
        }
        Ok(model)
    }

    /// The group of each account.
    fn groups(&self, roster: &Roster, pseudonyms: Option<&mut Pseudonyms>) -> Result<Option<Vec<usize>>, Error> {
        let groups = match &self.discover.common {
            None => return Ok(None),
            Some(CommonInput::Network) => return Ok(Some(vec![0; roster.agents().len()])),
            Some(CommonInput::Groups(groups)) => GroupsInput::Groups(groups.clone()),
            Some(CommonInput::File(path)) => GroupsInput::File(path.clone()),
        };
        Ok(Some(self.told(self.groups_of(&groups, roster, pseudonyms)?)))
    }

    /// Groups, with a warning where accounts have none.
    fn told(&self, (groups, ungrouped): (Vec<usize>, usize)) -> Vec<usize> {
        if ungrouped > 0 {
            (self.observer)(RunEvent::Warning(Warning::Ungrouped(ungrouped)));
        }
        groups
    }

    /// The group of each account as given, and how many have none.
    fn groups_of(
        &self,
        groups: &GroupsInput,
        roster: &Roster,
        pseudonyms: Option<&mut Pseudonyms>,
    ) -> Result<(Vec<usize>, usize), Error> {
        let hidden = pseudonyms.is_some();
        let groups = match groups {
            GroupsInput::Groups(groups) => groups.clone(),
            GroupsInput::File(path) => match read_groups(path) {
                Err(error) if hidden => return Err(Error::hiding_names(error)),
                other => other?,
            },
        };
        let groups = match pseudonyms {
            Some(pseudonyms) => groups.renamed(|name| pseudonyms.replace(name)),
            None => groups,
        };
        match groups.among(roster) {
            Err(error) if hidden => Err(Error::hiding_names(error)),
            other => Ok(other?),
        }
    }

    /// Which intervals and tests to compute.
    fn uncertainty(&self, accounts: usize) -> Uncertainty {
        let asked = &self.discover.uncertainty;
        let null = asked.null.unwrap_or(if accounts > NULL_TEST_ACCOUNTS { 0 } else { USUAL_DRAWS });
        let some = |draws: u64| (draws > 0).then_some(draws);
        Uncertainty { bootstrap: some(asked.bootstrap), null: some(null), top: asked.top, seed: asked.seed }
    }

    /// The ranking; draws are saved as they come, in the folder of the run.
    fn rank(
        &self,
        work: Option<&Path>,
        key: &str,
        uncertainty: &Uncertainty,
        model: &Model,
        panel: &Panel,
        on_graph: Option<(&Graph, Option<Vec<usize>>)>,
    ) -> Result<Ranking, Error> {
        let about = |error| self.about(error);
        let mut ranking = Ranking::new(model)?;
        ranking.add_activity(panel).map_err(about)?;
        if let Some((graph, groups)) = on_graph {
            ranking.add_graph(graph, &model.roster)?;
            ranking.add_graph_test(panel, graph, groups, &model.roster, uncertainty.seed).map_err(about)?;
        }
        if uncertainty.bootstrap.is_some() || uncertainty.null.is_some() {
            ranking.add_refit_note(model);
        }
        ranking.add_posterior(model, uncertainty.top)?;
        // Draws of the posterior make the resamples superfluous.
        if let Some(count) = uncertainty.bootstrap.filter(|_| model.diagnostics.posterior.is_none()) {
            match TooFewSteps::told_apart(Bootstrap::new(panel, model, uncertainty.seed)).map_err(about)? {
                Ok(bootstrap) => {
                    let draws =
                        self.drawn("resampling", count, work, "resamples", key, |number| bootstrap.draw(number))?;
                    let intervals = bootstrap.intervals(&draws, uncertainty.top).map_err(about)?;
                    ranking.add_intervals(&intervals, &model.roster)?;
                }
                Err(reason) => ranking.add_intervals_impossible(reason),
            }
        }
        if let Some(count) = uncertainty.null {
            let shifts = CircularShifts::for_model(panel, model, uncertainty.seed);
            match TooFewSteps::told_apart(shifts.observed()).map_err(about)? {
                Ok(observed) => {
                    let draws =
                        self.drawn("shifting circularly", count, work, "shifts", key, |number| shifts.draw(number))?;
                    ranking.add_significance(&CircularShifts::compare(&observed, &draws), model)?;
                }
                Err(reason) => ranking.add_shifts_impossible(reason),
            }
        }
        ranking.add_power(panel, model, uncertainty.seed).map_err(about)?;
        Ok(ranking)
    }

    /// Numbered draws, continued where an interrupted run left off.
    fn drawn<T: Serialize + DeserializeOwned + Send>(
        &self,
        what: &str,
        count: u64,
        work: Option<&Path>,
        name: &str,
        key: &str,
        draw: impl Fn(u64) -> Result<T, headwater::Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let mut saved = Vec::new();
        let mut journal = None;
        if let Some(work) = work {
            let _stage = progress::stage("reading saved draws", 0);
            let opened = Journal::open(&work.join(format!("{name}.jsonl")), key)?;
            (journal, saved) = (Some(opened.0), opened.1);
        }
        let save = |_: u64, draws: &[T]| match &mut journal {
            Some(journal) => journal.append(draws),
            None => Ok(()),
        };
        let drawn = draw_many(what, 0..count, saved, save, draw);
        drawn.map_err(|error| match error {
            Error::Core(error) => self.about(error),
            other => other,
        })
    }
}

/// The ranking in its three forms.
fn write_ranking(work: &Path, ranking: &Ranking, model: &Model, text: CsvText) -> Result<(), Error> {
    write_json(&work.join(RANKING_FILES[0]), ranking)?;
    write_file(work, RANKING_FILES[1], ranking_csv(ranking, text)?.as_bytes())?;
    write_file(work, RANKING_FILES[2], edges_csv(ranking, model, text)?.as_bytes())
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    serde_json::from_str(&text).map_err(|error| Error::Record { problem: format!("{}: {error}", path.display()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IgnoredAny;
    use serde::{Deserializer, Serializer};
    use std::cell::RefCell;

    thread_local! {
        static WATCHED: RefCell<Progress> = RefCell::default();
    }

    /// A draw that is drawn, or read, in some stage.
    struct StageDraw(String);

    impl StageDraw {
        fn now() -> Self {
            StageDraw(WATCHED.with_borrow(Progress::progress).what)
        }
    }

    impl Serialize for StageDraw {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.serialize_u64(0)
        }
    }

    impl<'de> serde::Deserialize<'de> for StageDraw {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            IgnoredAny::deserialize(from).map(|_| StageDraw::now())
        }
    }

    #[test]
    fn reading_saved_draws_is_a_stage() {
        let folder = tempfile::tempdir().unwrap();
        let discover = Discover::new(PostsInput::from(vec![PathBuf::from("posts.csv")]));
        let run = Run { discover: &discover, observer: &|_| () };
        let stages = |count: u64| -> Vec<String> {
            let progress = Progress::default();
            let drawn = progress.over(Some(1), || {
                WATCHED.set(progress.clone());
                drop(progress::stage("hashing inputs", 0));
                run.drawn("resampling", count, Some(folder.path()), "resamples", "key", |_| Ok(StageDraw::now()))
            });
            drawn.unwrap().unwrap().into_iter().map(|stage| stage.0).collect()
        };
        assert_eq!(stages(2), ["resampling"; 2]);
        assert_eq!(stages(3), ["reading saved draws", "reading saved draws", "resampling"]);
    }
}
