//! `headwater report`: a model and its ranking as one self-contained page, and as figures.

use crate::error::CliError;
use crate::fit_args::{of_model, read_graph};
use crate::numbers_args::NumbersArgs;
use crate::output::{check, create, write};
use crate::terminal::{Terminal, count};
use clap::Args;
use headwater::Model;
use headwater::Ranking;
use headwater::compare::GroundTruth;
use headwater_discover::{RUN_FILE, RUN_FORMAT, RunRecord};
use headwater_files::{read_known, read_model};
use headwater_report::page::{Page, ReportInput};
use headwater_report::{Error, Figure, figures};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Writes the report page of a model: one self-contained HTML file
#[derive(Debug, Args)]
#[command(
    after_help = "The ranking is shown as given and never resampled; without --ranking it is computed from the model, without intervals.\n\nExample: headwater report found/model.json --ranking found/ranking.json --beliefs found/beliefs.parquet --out report.html"
)]
pub(crate) struct ReportArgs {
    /// The model (.json or .npz)
    model: PathBuf,
    /// Ranking to show: JSON of `rank` or `discover`
    #[arg(long, value_name = "RANKING")]
    ranking: Option<PathBuf>,
    /// Beliefs that the model was learned from: adds opinions over time and silence. Repeated: files of episodes
    #[arg(long, value_name = "BELIEFS")]
    beliefs: Vec<PathBuf>,
    #[command(flatten)]
    numbers: NumbersArgs,
    /// Follow graph that the weights were restricted to
    #[arg(long, value_name = "EDGES")]
    graph: Option<PathBuf>,
    /// The truth, or another model: shows its weights beside the learned ones
    #[arg(long, value_name = "TRUTH")]
    truth: Option<PathBuf>,
    /// Record of a run of `discover`: adds counts of posts, options and hashes
    #[arg(long, value_name = "RUN.json")]
    run: Option<PathBuf>,
    /// Title of the page [default: made from the topic]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    title: String,
    /// The page to write (.html)
    #[arg(long, value_name = "FILE.html")]
    out: PathBuf,
    /// Also write the figures as SVG and PNG to this folder
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Error curve of `learn --trace`: adds a figure
    #[arg(long, value_name = "CSV", requires = "figures")]
    trace: Vec<PathBuf>,
}

impl ReportArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        self.check_paths()?;
        let model = read_model(&self.model)?;
        let panel = match self.beliefs.is_empty() {
            false => Some(of_model(self.numbers.read(&self.beliefs)?.panel, &model, terminal)?),
            true => None,
        };
        let graph = match &self.graph {
            Some(path) => Some(read_graph(path, &model.roster, terminal)?),
            None => None,
        };
        let truth = self.truth.as_deref().map(|path| read_truth(path, &model)).transpose()?;
        let run = self.run.as_deref().map(read_run).transpose()?;
        let ranking = match &self.ranking {
            Some(path) => read_ranking(path)?,
            None => {
                let mut ranking = Ranking::new(&model)?;
                if let (Some(panel), Some(path)) = (&panel, self.beliefs.first()) {
                    ranking.add_activity(panel).map_err(CliError::about(path))?;
                }
                if let Some(graph) = &graph {
                    ranking.add_graph(graph, &model.roster)?;
                }
                ranking
            }
        };
        let zone = self.zone();
        let input = ReportInput {
            beliefs: panel.as_ref(),
            graph: graph.as_ref(),
            truth: truth.as_ref(),
            run: run.as_ref(),
            zone: zone.as_deref(),
            title: &self.title,
            ..ReportInput::new(&model, &ranking)
        };
        let alive = terminal.spinner("making the page");
        let page = Page::new(&input).map_err(|error| self.about(error))?;
        let html = page.html().map_err(|error| self.about(error))?;
        let drawn = match &self.figures {
            Some(folder) => Some((folder, self.drawn(&input)?)),
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
                format!("{}: a page needs a name that ends in .html", self.out.display()),
                "use FILE.html; headwater export writes other formats",
            ));
        }
        let inputs = [&self.ranking, &self.graph, &self.truth, &self.run].into_iter().flatten();
        check(inputs.chain([&self.model]).chain(&self.trace).chain(&self.beliefs), [&self.out])
    }

    /// The time zone of the run that wrote the model and the beliefs, where its record is beside them.
    fn zone(&self) -> Option<String> {
        let folder = self.model.parent()?;
        let together = !self.beliefs.is_empty() && self.beliefs.iter().all(|path| path.parent() == Some(folder));
        let run = together.then(|| read_run(&folder.join(RUN_FILE)).ok()).flatten()?;
        Some(run.options.timezone)
    }

    /// Names the file that an error concerns.
    fn about(&self, error: Error) -> CliError {
        let named = |path: &Option<PathBuf>, hint: &str| CliError::Data {
            message: path.as_ref().map_or(error.to_string(), |path| format!("{}: {error}", path.display())),
            hint: Some(hint.to_owned()),
        };
        match &error {
            Error::Ranking { .. } => named(&self.ranking, RANK),
            Error::Beliefs { .. } => {
                named(&self.beliefs.first().cloned(), "use the beliefs that the model was learned from")
            }
            _ => error.into(),
        }
    }

    /// Every figure as SVG and PNG.
    fn drawn(&self, input: &ReportInput<'_>) -> Result<Vec<(String, Vec<u8>)>, CliError> {
        let about = |error| self.about(error);
        let mut drawn: Vec<(&str, Figure)> = vec![
            ("ranking", figures::ranking(input)),
            ("network", figures::network(input).map_err(about)?),
            ("heat", figures::heat(input).map_err(about)?),
        ];
        drawn.extend(figures::opinions(input).map_err(about)?.map(|figure| ("opinions", figure)));
        if !self.trace.is_empty() {
            let traces: Vec<_> = self.trace.iter().map(|path| read_trace(path)).collect::<Result<_, _>>()?;
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

const RANK: &str = "make one with: headwater rank MODEL --format json > ranking.json, without --top";

fn unmatched(path: &Path, problem: &str) -> CliError {
    CliError::Data {
        message: format!("{}: {problem}", path.display()),
        hint: Some("use the same names in all files (case-sensitive)".to_owned()),
    }
}

fn read_truth(path: &Path, model: &Model) -> Result<GroundTruth, CliError> {
    let known = read_known(path)?;
    if !model.roster.agents().iter().any(|name| known.roster.agent(name).is_ok()) {
        return Err(unmatched(path, "it has none of the model's agents"));
    }
    Ok(known)
}

/// Reads a JSON file; an error names the file, with a hint how to make it.
fn read_json<T: DeserializeOwned>(path: &Path, what: &str, hint: &str) -> Result<T, CliError> {
    let file = File::open(path).map_err(|error| CliError::Data {
        message: format!("{}: cannot read: {error}", path.display()),
        hint: Some("check the path and its permissions".to_owned()),
    })?;
    serde_json::from_reader(BufReader::new(file)).map_err(|error| CliError::Data {
        message: format!("{}: is not {what}: {error}", path.display()),
        hint: Some(hint.to_owned()),
    })
}

/// Reads a ranking of rank or discover.
pub(crate) fn read_ranking(path: &Path) -> Result<Ranking, CliError> {
    read_json(path, "a ranking", RANK)
}

/// Reads the record of a run; records of older versions are refused.
fn read_run(path: &Path) -> Result<RunRecord, CliError> {
    let hint = "use the run.json of this version: run the same discover command again, which reuses finished stages";
    let run: RunRecord = read_json(path, "the record of a run", hint)?;
    if run.format == RUN_FORMAT {
        return Ok(run);
    }
    Err(CliError::Data {
        message: format!("{}: is not a run record of format {RUN_FORMAT}", path.display()),
        hint: Some(hint.to_owned()),
    })
}

/// Reads an error curve of `learn --trace`, named after its file.
fn read_trace(path: &Path) -> Result<(String, Vec<(f64, f64)>), CliError> {
    let problem = |problem: String| CliError::data(format!("{}: {problem}", path.display()));
    let mut reader = csv::Reader::from_path(path).map_err(|error| problem(format!("cannot read: {error}")))?;
    let rows = reader.deserialize().collect::<Result<Vec<(f64, f64)>, _>>();
    let rows = rows.map_err(|error| problem(format!("needs the columns step,error: {error}")))?;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok((name, rows))
}
