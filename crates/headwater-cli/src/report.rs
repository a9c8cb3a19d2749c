//! `headwater report`: a model and its ranking as one page that opens anywhere, and as figures.

use crate::error::CliError;
use crate::output::{check, create, write};
use crate::terminal::{Terminal, count};
use clap::Args;
use headwater::Model;
use headwater::Ranking;
use headwater::compare::GroundTruth;
use headwater_discover::{RUN_FORMAT, RunRecord};
use headwater_files::{read_beliefs, read_edges, read_known, read_model};
use headwater_report::page::{Page, ReportInput};
use headwater_report::{Error, Figure, figures};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Writes a page that shows everything about a model: one file, no network access
#[derive(Debug, Args)]
#[command(
    after_help = "The ranking is shown as given and never resampled; without one, the model's plain ranking is shown.\n\nExample: headwater report found/model.json --ranking found/ranking.json --beliefs found/beliefs.parquet --out report.html"
)]
pub(crate) struct ReportArgs {
    /// The model (.json or .npz)
    model: PathBuf,
    /// The ranking to show, as JSON of `rank` or `discover`
    #[arg(long, value_name = "RANKING")]
    ranking: Option<PathBuf>,
    /// The beliefs it was learned from: adds opinions over time, silence
    #[arg(long, value_name = "BELIEFS")]
    beliefs: Option<PathBuf>,
    /// The beliefs are log-ratios
    #[arg(long, requires = "beliefs")]
    log_ratios: bool,
    /// Who follows whom: edges outside it were impossible
    #[arg(long, value_name = "EDGES")]
    graph: Option<PathBuf>,
    /// The truth, or another model: its weights stand beside the learned ones
    #[arg(long, value_name = "TRUTH")]
    truth: Option<PathBuf>,
    /// The record of a run of `discover`: adds what became of the posts, options and hashes
    #[arg(long, value_name = "RUN.json")]
    run: Option<PathBuf>,
    /// Above everything [default: the topic]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    title: String,
    /// The page to write (.html)
    #[arg(long, value_name = "FILE.html")]
    out: PathBuf,
    /// Writes the figures too, as SVG and PNG, to this folder
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Error while learning, as `learn --trace` writes it: one more figure
    #[arg(long, value_name = "CSV", requires = "figures")]
    trace: Vec<PathBuf>,
}

impl ReportArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        self.check_paths()?;
        let model = read_model(&self.model)?;
        let panel = match &self.beliefs {
            Some(path) => Some(read_beliefs(path, self.log_ratios)?.panel),
            None => None,
        };
        let graph = match &self.graph {
            Some(path) => {
                // As in discover: those who follow without ever speaking are nobody here.
                let edges = read_edges(path)?.among(&model.roster);
                if edges.is_empty() {
                    return Err(stranger(path, "no edge is between two of the model's agents"));
                }
                Some(edges.graph(&model.roster)?)
            }
            None => None,
        };
        let truth = self.truth.as_deref().map(|path| known(path, &model)).transpose()?;
        let run = self.run.as_deref().map(recorded).transpose()?;
        let ranking = match &self.ranking {
            Some(path) => given(path)?,
            None => {
                let mut ranking = Ranking::new(&model)?;
                if let (Some(panel), Some(path)) = (&panel, &self.beliefs) {
                    ranking.add_activity(panel).map_err(CliError::about(path))?;
                }
                if let Some(graph) = &graph {
                    ranking.add_graph(graph, &model.roster)?;
                }
                ranking
            }
        };
        let ingredients = ReportInput {
            beliefs: panel.as_ref(),
            graph: graph.as_ref(),
            truth: truth.as_ref(),
            run: run.as_ref(),
            title: &self.title,
            ..ReportInput::new(&model, &ranking)
        };
        let alive = terminal.spinner("gathering");
        let page = Page::new(&ingredients).map_err(|error| self.about(error))?;
        let html = page.html().map_err(|error| self.about(error))?;
        let drawn = match &self.figures {
            Some(folder) => Some((folder, self.drawn(&ingredients)?)),
            None => None,
        };
        drop(alive);
        write(&self.out, html.as_bytes())?;
        page.left_off.iter().for_each(|note| terminal.remark(&format!("note: {note}")));
        let megabytes = html.len() as f64 / 1e6;
        let agents = count(page.agents.len(), "agent");
        terminal.remark(&format!("{}: {agents}, {megabytes:.2} MB", self.out.display()));
        if let Some((folder, drawn)) = drawn {
            create(folder)?;
            for (name, bytes) in drawn {
                write(&folder.join(name), &bytes)?;
            }
            terminal.remark(&format!("figures in {}", folder.display()));
        }
        Ok(())
    }

    fn check_paths(&self) -> Result<(), CliError> {
        if !self.out.extension().is_some_and(|extension| extension == "html" || extension == "htm") {
            return Err(CliError::usage(
                format!("{} would hold a page, and is not named so", self.out.display()),
                "name it FILE.html; headwater export writes other files",
            ));
        }
        let inputs = [&self.ranking, &self.beliefs, &self.graph, &self.truth, &self.run].into_iter().flatten();
        check(inputs.chain([&self.model]).chain(&self.trace), [&self.out])
    }

    /// Names the file that does not fit.
    fn about(&self, error: Error) -> CliError {
        let named = |path: &Option<PathBuf>, hint: &str| CliError::Data {
            message: path.as_ref().map_or(error.to_string(), |path| format!("{}: {error}", path.display())),
            hint: Some(hint.to_owned()),
        };
        match &error {
            Error::Ranking { .. } => named(&self.ranking, RANK),
            Error::Beliefs { .. } => named(&self.beliefs, "give the beliefs that the model was learned from"),
            _ => error.into(),
        }
    }

    /// Every figure as SVG and PNG.
    fn drawn(&self, ingredients: &ReportInput<'_>) -> Result<Vec<(String, Vec<u8>)>, CliError> {
        let about = |error| self.about(error);
        let mut drawn: Vec<(&str, Figure)> = vec![
            ("ranking", figures::ranking(ingredients)),
            ("network", figures::network(ingredients).map_err(about)?),
            ("heat", figures::heat(ingredients).map_err(about)?),
        ];
        drawn.extend(figures::opinions(ingredients).map_err(about)?.map(|figure| ("opinions", figure)));
        if !self.trace.is_empty() {
            let traces: Vec<_> = self.trace.iter().map(|path| trace(path)).collect::<Result<_, _>>()?;
            drawn.push(("errors", figures::errors(&traces)));
        }
        let mut files = Vec::new();
        for (name, figure) in drawn {
            files.push((format!("{name}.svg"), figure.svg().into_bytes()));
            files.push((format!("{name}.png"), figure.png().map_err(about)?));
        }
        Ok(files)
    }
}

const RANK: &str = "write one with: headwater rank MODEL --format json > ranking.json, without --top";

fn stranger(path: &Path, problem: &str) -> CliError {
    CliError::Data {
        message: format!("{}: {problem}", path.display()),
        hint: Some("names must be the same in all files, capitals included".to_owned()),
    }
}

fn known(path: &Path, model: &Model) -> Result<GroundTruth, CliError> {
    let known = read_known(path)?;
    if !model.roster.agents().iter().any(|name| known.roster.agent(name).is_ok()) {
        return Err(stranger(path, "it knows none of the model's agents"));
    }
    Ok(known)
}

/// A JSON file, or what is wrong with it and how to make it.
fn parsed<T: DeserializeOwned>(path: &Path, what: &str, hint: &str) -> Result<T, CliError> {
    let file = File::open(path).map_err(|error| CliError::Data {
        message: format!("{}: cannot read: {error}", path.display()),
        hint: Some("check the path and its permissions".to_owned()),
    })?;
    serde_json::from_reader(BufReader::new(file)).map_err(|error| CliError::Data {
        message: format!("{}: is not {what}: {error}", path.display()),
        hint: Some(hint.to_owned()),
    })
}

/// A ranking as rank or discover wrote it.
pub(crate) fn given(path: &Path) -> Result<Ranking, CliError> {
    parsed(path, "a ranking", RANK)
}

/// The record of a run; that of an older version lacks what this one needs.
fn recorded(path: &Path) -> Result<RunRecord, CliError> {
    let hint = "give run.json as this version of discover writes it: the same command finishes an older folder quickly";
    let run: RunRecord = parsed(path, "the record of a run", hint)?;
    if run.format == RUN_FORMAT {
        return Ok(run);
    }
    Err(CliError::Data {
        message: format!("{}: is not the record of a run in the format {RUN_FORMAT}", path.display()),
        hint: Some(hint.to_owned()),
    })
}

/// A curve of `learn --trace`, named after its file.
fn trace(path: &Path) -> Result<(String, Vec<(f64, f64)>), CliError> {
    let problem = |problem: String| CliError::data(format!("{}: {problem}", path.display()));
    let mut reader = csv::Reader::from_path(path).map_err(|error| problem(format!("cannot read: {error}")))?;
    let rows = reader.deserialize().collect::<Result<Vec<(f64, f64)>, _>>();
    let rows = rows.map_err(|error| problem(format!("wanted columns step,error: {error}")))?;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok((name, rows))
}
