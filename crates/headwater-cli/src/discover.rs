//! `headwater discover`: posts in, an honest ranking out, and everything on the way in one folder.
//!
//! Five stages: score and bin → learn → rank → report → write. Each reads what the one before it wrote, so that a run that was
//! interrupted goes on where it stopped and ends with the same bytes ([`stages`]). With `--pseudonymise` names are replaced
//! where posts enter; nothing behind that point knows them ([`pseudonyms`]).

mod follows;
mod pseudonyms;
mod record;
mod stages;

use crate::beliefs::{PostArgs, told};
use crate::error::CliError;
use crate::export::write_gexf;
use crate::fit_args::{FitOptions, fit};
use crate::output::{check, write, write_json};
use crate::rank::text;
use crate::terminal::{Format, Terminal, count, csv, wrapped};
use clap::{Args, Command, FromArgMatches};
use follows::{Follows, GraphCounts, unsaid};
use headwater::Model;
use headwater::Ranking;
use headwater::compare::GroundTruth as Truth;
use headwater::ranking::Uncertainty;
use headwater_files::{ranking_csv, read_beliefs, read_model, write_model};
use headwater_posts::Error as Posts;
use headwater_posts::bin::BinnedBeliefs;
use headwater_posts::quality::Quality;
use headwater_posts::read::expand;
use headwater_posts::select::read_users;
use headwater_report::page::{Facts, Page, ReportInput};
use pseudonyms::Pseudonyms;
use record::{Input, Run, Used};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use stages::{Stages, fields};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Above this many agents rotations are drawn only when asked for: a fit of each takes too long.
const NULL_AGENTS: usize = 100;

/// Resamples and rotations when nothing is said.
const USUAL: u64 = 200;

/// Bins that the learner needs.
const FEWEST_BINS: u64 = 10;

/// Options of posts that say where things are, not what they are: files count by their contents.
const PLACES: [&str; 5] = ["posts", "users", "model", "cache", "hub_url"];

/// Options that name files, which may be named after users.
const FILES: [&str; 8] = ["posts", "users", "graph", "rejects", "pseudonymise", "model", "cache", "common"];

/// What a run writes, beside `run.json`.
const BELIEFS: &str = "beliefs.parquet";
const MODEL: &str = "model.json";
const RANKING: [&str; 3] = ["ranking.json", "ranking.csv", "edges.csv"];
/// What is made from the others for people and other programs.
pub(crate) const REPORT: [&str; 2] = ["report.html", "network.gexf"];
const RUN: &str = "run.json";

/// Does everything: posts in; beliefs, a model, a ranking with how sure it is, a page, and a record of the run out
#[derive(Debug, Args)]
#[command(
    after_help = "Writes beliefs.parquet, model.json, ranking.json, ranking.csv, edges.csv, report.html, network.gexf and run.json.\nInterrupted, the same command goes on where it stopped.\n\nExample: headwater discover posts.csv --graph follows.csv --topic 'biden OR \"white house\"' --out found\n         headwater discover 'dump/*.jsonl.gz' --preset x-v2 --pseudonymise key --out found"
)]
pub(crate) struct Discover {
    // The first, before others take their values.
    #[command(flatten)]
    used: Used,
    #[command(flatten)]
    posts: PostArgs,
    /// Who follows whom: CSV source,target, the target follows the source; nobody hears anybody else
    #[arg(long, value_name = "EDGES")]
    graph: Option<PathBuf>,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace names of users by keyed hashes in everything that is written or shown; the key is in this file
    #[arg(long, value_name = "KEYFILE")]
    pseudonymise: Option<PathBuf>,
    #[command(flatten)]
    fit: FitOptions,
    #[command(flatten)]
    trust: TrustOptions,
    /// How to print the ranking
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// What is known of the truth: the demo's page shows it.
    #[arg(skip)]
    pub(crate) truth: Option<Truth>,
}

/// How sure it is.
#[derive(Debug, Args)]
#[command(next_help_heading = "How sure")]
struct TrustOptions {
    /// 90 % intervals of shares and ranks, from this many resamples; 0 for none
    #[arg(long, value_name = "N", default_value_t = USUAL, value_parser = parse_draws)]
    bootstrap: u64,
    /// p-values of agents and edges, from this many rotations in which nobody listens; 0 for none [default: 200, none above 100 users]
    #[arg(long, value_name = "N", value_parser = parse_draws)]
    null: Option<u64>,
    /// How many the top is, for the probability to be among them
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    top: u64,
    /// Seed of resamples and rotations
    #[arg(long, default_value_t = 21)]
    seed: u64,
}

fn parse_draws(text: &str) -> Result<u64, String> {
    let draws = text.parse().ok().filter(|draws| *draws == 0 || (20..=100_000).contains(draws));
    draws.ok_or_else(|| "wanted 0, or 20 to 100000".to_owned())
}

/// What the first stage found.
#[derive(Debug, Serialize, Deserialize)]
struct Scored {
    counts: Value,
    /// As given, without names where they are hidden.
    topic: Vec<String>,
}

/// What the second stage found beside the model.
#[derive(Debug, Serialize, Deserialize)]
struct Choice {
    choice: Option<String>,
}

/// What the third stage would print.
#[derive(Debug, Serialize, Deserialize)]
struct Shown {
    text: String,
}

/// What the fourth stage found: nothing that is not in its files.
#[derive(Debug, Serialize, Deserialize)]
struct Made {}

/// What a run ends with.
pub(crate) struct Found {
    pub(crate) model: Model,
    /// The ranking as JSON.
    pub(crate) ranking: Value,
    csv: String,
    text: String,
}

/// Users who may count.
struct AllowedUsers {
    /// Those of --users.
    listed: Option<HashSet<String>>,
    /// Those that are in the graph, too.
    both: Option<HashSet<String>>,
}

/// Why the posts did not become beliefs.
enum ScoreError {
    Posts(Posts),
    Other(CliError),
}

impl From<Posts> for ScoreError {
    fn from(error: Posts) -> Self {
        ScoreError::Posts(error)
    }
}

impl From<CliError> for ScoreError {
    fn from(failure: CliError) -> Self {
        ScoreError::Other(failure)
    }
}

impl Discover {
    /// As from a command line, without the names of the program and the command.
    pub(crate) fn with(arguments: &[&str]) -> Result<Self, CliError> {
        let command = Discover::augment_args(Command::new("discover").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments);
        let discover = matches.and_then(|matches| Discover::from_arg_matches(&matches));
        discover.map_err(|error| CliError::Usage { message: error.to_string(), hint: None })
    }

    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let found = self.discover(terminal)?;
        match self.format {
            Format::Json => terminal.json(&found.ranking),
            Format::Csv => terminal.result(&found.csv),
            Format::Table => terminal.text(&format!("{}\n{}", found.text, self.next(&found.ranking))),
        }
    }

    fn next(&self, ranking: &Value) -> String {
        let out = self.out.display();
        let first = ranking["agents"][0]["agent"].as_str().unwrap_or("NAME");
        format!(
            "Files in {out}: {BELIEFS}, {MODEL}, {}, {RUN}.\nNext: headwater explain {out}/{MODEL} --agent '{first}' --what-if remove\nThe page: {out}/{}\n",
            [RANKING.as_slice(), &REPORT].concat().join(", "),
            REPORT[0]
        )
    }

    /// No file is both read and written.
    fn check_paths(&self) -> Result<(), CliError> {
        let files = [&self.posts.users, &self.graph, &self.pseudonymise, &self.fit.common];
        let inputs = || self.posts.posts.iter().chain(files.into_iter().flatten());
        check(inputs(), &self.posts.rejects)?;
        for file in [BELIEFS, MODEL, RUN].iter().chain(&RANKING).chain(&REPORT) {
            let Ok(output) = self.out.join(file).canonicalize() else { continue };
            if inputs().any(|input| input.canonicalize().is_ok_and(|input| input == output)) {
                let message = format!("{} is read, and would be overwritten", self.out.join(file).display());
                return Err(CliError::usage(message, "write to another folder"));
            }
        }
        Ok(())
    }

    /// All stages.
    pub(crate) fn discover(&self, terminal: &Terminal) -> Result<Found, CliError> {
        self.fit.check(self.graph.is_some())?;
        self.check_paths()?;
        let mut pseudonyms = self.pseudonymise.as_deref().map(Pseudonyms::read).transpose()?;
        let inputs = self.inputs(terminal)?;
        let follows = self.graph.as_deref().map(|path| Follows::read(path, pseudonyms.as_mut())).transpose()?;
        let hashes = |role: &str| -> Vec<&str> {
            inputs.iter().filter(|input| input.role == role).map(|input| input.sha256.as_str()).collect()
        };
        let key = pseudonyms.as_ref().map(Pseudonyms::fingerprint);
        let mut stages = Stages::new(&self.out);

        let read = ["posts", "users", "graph", "scorer"].map(&hashes);
        let depends = json!({
            "inputs": read,
            "options": self.used.of::<PostArgs>(&PLACES),
            "pseudonyms": key,
        });
        let scored: Scored = stages.stage("score", &depends, &[BELIEFS], terminal, |room| {
            self.score(room, pseudonyms.as_mut(), follows.as_ref(), terminal)
        })?;
        let beliefs = stages.path(BELIEFS);
        let panel = read_beliefs(&beliefs, false)?.panel;
        // What became of the graph was counted with the posts.
        let graph =
            follows.as_ref().map(|follows| follows.among(panel.roster(), 0, 0)).transpose()?.map(|(graph, _)| graph);

        let depends = json!({
            "beliefs": stages.hash(BELIEFS),
            "graph": [hashes("graph"), vec![key.as_deref().unwrap_or_default()]],
            "groups": hashes("groups"),
            "common": self.fit.common.is_some(),
            "options": self.used.of::<FitOptions>(&["common"]),
        });
        let learned: Choice = stages.stage("learn", &depends, &[MODEL], terminal, |room| {
            let support = graph.as_ref().map(|graph| graph.speakers().to_vec());
            let rename = |name: &str| match pseudonyms.as_mut() {
                Some(pseudonyms) => pseudonyms.of(name),
                None => name.to_owned(),
            };
            let groups = self.fit.groups(panel.roster(), rename, terminal).map_err(|failure| match key {
                Some(_) => unsaid("the groups of --common"),
                None => failure,
            })?;
            let learned = fit(&panel, support, groups, &self.fit, terminal).map_err(self.about())?;
            learned.model.diagnostics.warnings.iter().for_each(|warning| terminal.warn(warning));
            write_model(&room.join(MODEL), &learned.model)?;
            Ok(Choice { choice: learned.choice })
        })?;
        let model = read_model(&stages.path(MODEL))?;

        let trust = self.trust(panel.agents(), terminal);
        let depends = json!({
            "beliefs": stages.hash(BELIEFS),
            "model": stages.hash(MODEL),
            "graph": [hashes("graph"), vec![key.as_deref().unwrap_or_default()]],
            "options": [json!(trust.bootstrap), json!(trust.null), json!(trust.top), json!(trust.seed)],
        });
        let shown: Shown = stages.stage("rank", &depends, &RANKING, terminal, |room| {
            let mut ranking = Ranking::new(&model)?;
            ranking.add_activity(&panel).map_err(self.about())?;
            if let Some(graph) = &graph {
                ranking.add_graph(graph, &model.roster)?;
            }
            terminal.watched(None, |_| ranking.add_uncertainty(&trust, &model, &panel)).map_err(self.about())?;
            rank(room, &ranking, &model)
        })?;
        let mut decided = Map::new();
        decided.insert("topic".to_owned(), json!(scored.topic));
        decided.insert("lang".to_owned(), json!(self.posts.options()?.languages_used()));
        decided.insert("null".to_owned(), json!(trust.null.unwrap_or(0)));
        let mut read = inputs.clone();
        if key.is_some() {
            read.iter_mut().for_each(|input| input.path = None);
            decided.extend(FILES.map(|option| (option.to_owned(), json!("not recorded"))));
        }
        let mut run = Run::new(self.trust.seed, read, self.used.with(decided));
        run.facts.extend(fields(&json!({ "pseudonyms": key, "counts": scored.counts, "choice": learned.choice })));
        run.facts.insert("topic".to_owned(), json!(scored.topic));
        let read = |file: &str| {
            let path = stages.path(file);
            std::fs::read_to_string(&path)
                .map_err(|error| CliError::data(format!("{}: cannot read: {error}", path.display())))
        };
        let (ranking, csv) = (read(RANKING[0])?, read(RANKING[1])?);
        let unreadable = |error| CliError::data(format!("{}: cannot read: {error}", RANKING[0]));
        let shown_ranking: Ranking = serde_json::from_str(&ranking).map_err(unreadable)?;
        let ranking = serde_json::from_str(&ranking).map_err(unreadable)?;

        let facts = Facts::of(&json!(run));
        let depends = json!({
            "beliefs": stages.hash(BELIEFS),
            "model": stages.hash(MODEL),
            "ranking": stages.hash(RANKING[0]),
            "graph": [hashes("graph"), vec![key.as_deref().unwrap_or_default()]],
            "truth": self.truth.as_ref().map(|truth| format!("{truth:?}")),
            "facts": facts,
        });
        let _: Made = stages.stage("report", &depends, &REPORT, terminal, |room| {
            let ingredients = ReportInput {
                beliefs: Some(&panel),
                graph: graph.as_ref(),
                truth: self.truth.as_ref(),
                facts: Some(&facts),
                ..ReportInput::new(&model, &shown_ranking)
            };
            write(&room.join(REPORT[0]), Page::new(&ingredients)?.html()?.as_bytes())?;
            write_gexf(&room.join(REPORT[1]), &model, &shown_ranking)?;
            Ok(Made {})
        })?;
        stages.finish(run)?;
        let choice = learned.choice.map_or(String::new(), |choice| format!("Weights: {choice}.\n"));
        Ok(Found { model, ranking, csv, text: shown.text + &choice })
    }

    /// Every file that is read, with its hash.
    fn inputs(&self, terminal: &Terminal) -> Result<Vec<Input>, CliError> {
        let mut inputs = Vec::new();
        let _alive = terminal.spinner("hashing");
        for path in expand(&self.posts.posts)? {
            inputs.push(Input::of("posts", &path)?);
        }
        let files = [
            ("graph", self.graph.as_deref()),
            ("users", self.posts.users.as_deref()),
            ("groups", self.fit.groups_file()),
        ];
        for (role, path) in files {
            inputs.extend(path.map(|path| Input::of(role, path)).transpose()?);
        }
        if let Some(folder) = self.posts.scorer.folder(terminal)? {
            inputs.extend(Input::folder("scorer", &folder)?);
        }
        Ok(inputs)
    }

    /// The posts, for messages.
    fn first(&self) -> String {
        self.posts.posts.first().map(|path| path.display().to_string()).unwrap_or_default()
    }

    /// Names the posts in an error of the library.
    fn about(&self) -> impl Fn(headwater::Error) -> CliError {
        let first = self.posts.posts.first().cloned().unwrap_or_default();
        move |error| match error {
            headwater::Error::Parameter { .. } => error.into(),
            error => CliError::about(&first)(error),
        }
    }

    /// How sure to be.
    fn trust(&self, agents: usize, terminal: &Terminal) -> Uncertainty {
        let null = self.trust.null.unwrap_or(if agents > NULL_AGENTS { 0 } else { USUAL });
        if self.trust.null.is_none() && agents > NULL_AGENTS {
            terminal.remark(&format!(
                "{agents} users: no p-values, which would take long above {NULL_AGENTS}; --null {USUAL} asks for them"
            ));
        }
        let asked = |draws: u64| (draws > 0).then_some(draws);
        Uncertainty {
            bootstrap: asked(self.trust.bootstrap),
            null: asked(null),
            top: usize::try_from(self.trust.top).unwrap_or(usize::MAX),
            seed: self.trust.seed,
        }
    }

    /// Posts in, a table of beliefs out.
    fn score(
        &self,
        room: &Path,
        mut pseudonyms: Option<&mut Pseudonyms>,
        follows: Option<&Follows>,
        terminal: &Terminal,
    ) -> Result<Scored, CliError> {
        let hidden = pseudonyms.is_some();
        let known = self.known(pseudonyms.as_deref_mut(), follows)?;
        let mut outside: HashSet<String> = HashSet::new();
        let mut inside = 0_u64;
        let gathered = self.posts.gather::<ScoreError>(
            known.both.clone(),
            |batch| {
                for post in &mut batch.posts {
                    if let Some(pseudonyms) = pseudonyms.as_deref_mut() {
                        post.user = pseudonyms.of(&post.user);
                    }
                    let user = &post.user;
                    match follows {
                        Some(follows) if !follows.users.contains(user) => {
                            let asked = known.listed.as_ref().is_none_or(|listed| listed.contains(user));
                            if asked && !outside.contains(user) {
                                outside.insert(user.clone());
                            }
                        }
                        _ => inside += 1,
                    }
                }
                if hidden {
                    // Which cell was wrong is said with what is in it.
                    let reason = "cannot be read; why is not shown, because it may hold a name";
                    batch.bad.iter_mut().for_each(|bad| bad.reason = reason.to_owned());
                }
            },
            terminal,
        );
        let (beliefs, mut quality) = gathered.map_err(|trouble| match (trouble, follows) {
            (ScoreError::Posts(Posts::NothingLeft { .. }), Some(follows)) if inside == 0 && !outside.is_empty() => {
                follows.strange(outside.len(), outside.iter().min())
            }
            (ScoreError::Posts(Posts::Columns { path, missing, .. }), _) if hidden => CliError::Data {
                message: format!(
                    "{}: there is no {}; what it has instead may be names, and is not shown",
                    path.display(),
                    missing.join(", no ")
                ),
                hint: Some("name the columns with --map, or run it without --pseudonymise to see them".to_owned()),
            },
            (ScoreError::Posts(Posts::Line { path, line, .. }), _) if hidden => {
                unsaid(&format!("{}, line {line}", path.display()))
            }
            (ScoreError::Posts(Posts::File { path, .. }), _) if hidden => unsaid(&path.display().to_string()),
            (ScoreError::Posts(error @ (Posts::NothingLeft { .. } | Posts::OneUser { .. })), _) => {
                match CliError::from(error) {
                    CliError::Data { message, hint } => {
                        CliError::Data { message: format!("{}: {message}", self.first()), hint }
                    }
                    other => other,
                }
            }
            (ScoreError::Posts(error), _) => error.into(),
            (ScoreError::Other(failure), _) => failure,
        })?;
        if let Some(pseudonyms) = pseudonyms.as_deref() {
            pseudonyms.check()?;
        }
        self.check(&beliefs, &quality)?;
        terminal.remark(wrapped(&told(&quality)).trim_end());
        let path = room.join(BELIEFS);
        terminal.watched(None, |_| beliefs.write(&path))?.commit()?;
        let panel = read_beliefs(&path, false).map_err(|error| match error {
            // That file is ours; what is wrong with it comes from the posts.
            headwater_files::Error::Data { source, .. } => self.about()(source),
            error => error.into(),
        })?;
        if let Some(known) = &known.both {
            let present = panel.panel.roster().agents().iter().filter(|name| known.contains(*name)).count();
            quality.absent_users = known.len() - present;
        }
        let absent = quality.absent_users;
        let graph = match follows {
            Some(follows) => {
                let (_, counts) = follows.among(panel.panel.roster(), absent, outside.len())?;
                counts.warn(terminal);
                Some(counts)
            }
            None if absent > 0 => {
                terminal.warn(&format!("{} of --users: no post of theirs is left", count(absent, "user")));
                None
            }
            None => None,
        };
        let topic = self.posts.topic.iter().map(|topic| match pseudonyms.as_deref() {
            Some(pseudonyms) => pseudonyms.redact(topic),
            None => topic.clone(),
        });
        Ok(Scored { topic: topic.collect(), counts: counts(&quality, graph) })
    }

    /// The users who may count, under the names of this run.
    fn known(&self, pseudonyms: Option<&mut Pseudonyms>, follows: Option<&Follows>) -> Result<AllowedUsers, CliError> {
        let Some(path) = &self.posts.users else {
            return Ok(AllowedUsers { listed: None, both: follows.map(|follows| follows.users.clone()) });
        };
        let hidden = pseudonyms.is_some();
        let listed = read_users(path).map_err(|error| match error {
            Posts::File { path, .. } if hidden => unsaid(&path.display().to_string()),
            error => error.into(),
        })?;
        let listed: HashSet<String> = match pseudonyms {
            Some(pseudonyms) => listed.iter().map(|user| pseudonyms.of(user)).collect(),
            None => listed,
        };
        let both: HashSet<String> = match follows {
            Some(follows) => listed.intersection(&follows.users).cloned().collect(),
            None => listed.clone(),
        };
        if both.is_empty() {
            return Err(CliError::Data {
                message: format!("{}: none of these users is in the graph", path.display()),
                hint: Some("names must be the same in --users and --graph, capitals included".to_owned()),
            });
        }
        Ok(AllowedUsers { listed: Some(listed), both: Some(both) })
    }

    /// Whether there is anything to learn from.
    fn check(&self, beliefs: &BinnedBeliefs, quality: &Quality) -> Result<(), CliError> {
        let file = self.first();
        if quality.bins < FEWEST_BINS {
            return Err(CliError::Data {
                message: format!(
                    "{file}: posts from {} to {} fill {} of time, and at least {FEWEST_BINS} are needed",
                    quality.first,
                    quality.last,
                    count(quality.bins as usize, "bin"),
                ),
                hint: Some("take shorter bins (--bin 6h), posts over a longer time, or a wider topic".to_owned()),
            });
        }
        if beliefs.is_constant() {
            return Err(CliError::Data {
                message: format!("{file}: nobody's score ever changes, so there is nothing to learn from"),
                hint: Some("check the column score, or choose another --scorer".to_owned()),
            });
        }
        Ok(())
    }
}

/// What was read and what became of it; users one by one are in the ranking.
fn counts(quality: &Quality, graph: Option<GraphCounts>) -> Value {
    let mut counts = fields(quality);
    counts.remove("by_user");
    if let Some(graph) = graph {
        counts.insert("graph".to_owned(), json!(graph));
    }
    Value::Object(counts)
}

/// The ranking in its three forms, and what to print.
fn rank(room: &Path, ranking: &Ranking, model: &Model) -> Result<Shown, CliError> {
    let value = serde_json::to_value(ranking).map_err(|error| CliError::data(format!("cannot write: {error}")))?;
    write_json(&room.join(RANKING[0]), ranking)?;
    write(&room.join(RANKING[1]), ranking_csv(ranking)?.as_bytes())?;
    write(&room.join(RANKING[2]), edges(&value, model).as_bytes())?;
    Ok(Shown { text: text(ranking) })
}

/// Who hears whom: the surest first where that is known, otherwise listener by listener.
fn edges(ranking: &Value, model: &Model) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(tested) = ranking["edges"].as_array() {
        let keys = ["source", "target", "weight", "p_value", "significant"];
        return csv(&keys, tested.iter().map(|edge| keys.map(|key| text(&edge[key])).to_vec()).collect());
    }
    let names = model.roster.agents();
    let heard = model.combination.edges().filter(|&(speaker, listener, weight)| speaker != listener && weight > 0.0);
    let rows = heard
        .map(|(speaker, listener, weight)| vec![names[speaker].clone(), names[listener].clone(), weight.to_string()]);
    csv(&["source", "target", "weight"], rows.collect())
}
