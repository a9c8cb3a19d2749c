//! `headwater demo`: the pipeline on simulated data, estimates beside true values.
//!
//! First simulated posts, through the same stages as `discover`; then simulated beliefs without noise, from which the network is
//! recovered up to rounding.

use crate::discover::run as run_discover;
use crate::error::CliError;
use crate::output::{create, write};
use crate::rank::legend;
use crate::simulate::write_world;
use crate::terminal::{Format, Terminal, command_line, csv, name_cell, number, percent, shell_quoted, table};
use clap::Args;
use headwater::compare::{Comparison, GroundTruth, compare};
use headwater::evaluate::Verdict;
use headwater::influence;
use headwater::learn::gsl::{GslParams, gsl};
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::simulate::{World, WorldParams, run};
use headwater_discover::{Discover, GraphInput, MODEL_FILE, Store};
use headwater_files::{BeliefsFormat, CsvText, SimulatedTruth, read_beliefs, write_model, write_truth};
use headwater_posts::simulate::PostWorld;
use headwater_report::page::{Page, ReportInput};
use headwater_report::{REPORT_FILE, RUN_ARTIFACTS};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Days of posts, and the noise of a post.
const DAYS: usize = 400;
const NOISE: f64 = 0.5;

/// Resamples and circular shifts: fewer than by default, so that the demo takes seconds.
const RESAMPLES: u64 = 100;
const SHIFTS: u64 = 40;

/// Steps of the beliefs without noise.
const STEPS: usize = 100;

/// Runs the pipeline on simulated posts and shows the estimates beside the true values
#[derive(Debug, Args)]
#[command(after_help = "Example: headwater demo --out demo")]
pub(crate) struct DemoArgs {
    /// Keep the posts, the follow graph, the truth and all files of discover in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of the simulation
    #[arg(long, default_value_t = 21)]
    seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

impl DemoArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let (outcome, page) = self.outcome(terminal)?;
        match self.format {
            Format::Json => terminal.json(&outcome),
            Format::Csv => terminal.result(&outcome.csv(terminal.csv_text())),
            Format::Table => terminal.text(&(outcome.text() + &self.next(page.as_deref()))),
        }
    }

    /// Both simulations. Without a folder only the page is kept.
    fn outcome(&self, terminal: &Terminal) -> Result<(DemoResult, Option<PathBuf>), CliError> {
        let exact = self.exact(terminal)?;
        let world = PostWorld::new(self.seed, DAYS, NOISE)?;
        let (users, written) = (world.truth.roster.agents().len(), world.posts.len());
        terminal.remark(&format!(
            "simulating {written} posts of {users} users over {DAYS} days; {} is the best informed and has the most listeners",
            PostWorld::INFLUENCER
        ));
        let mut discover = Discover::new(world.posts_input());
        discover.graph = Some(world.edges()?.into());
        discover.uncertainty.bootstrap = RESAMPLES;
        discover.uncertainty.null = Some(SHIFTS);
        discover.truth = Some(GroundTruth::from_model(&world.truth)?);
        let (found, page) = match &self.out {
            Some(folder) => {
                let (posts, graph) = write_posts(folder, &world)?;
                (discover.posts, discover.graph) = (vec![posts].into(), Some(GraphInput::File(graph)));
                let mut store = Store::folder(folder).with_artifacts(&RUN_ARTIFACTS);
                (run_discover(&discover, &mut store, terminal)?, Some(folder.join(REPORT_FILE)))
            }
            None => {
                let found = run_discover(&discover, &mut Store::memory(), terminal)?;
                let page = kept(&Page::new(&ReportInput::from_discovery(&found))?.html()?);
                (found, page)
            }
        };

        let (learned, known) = (influence(&found.model)?, influence(&world.truth)?);
        let (shares, true_shares) = (learned.signed_share(), known.signed_share());
        let names = found.model.roster.agents();
        let agents = (learned.ranking().into_iter().enumerate()).map(|(position, agent)| {
            let truly = world.truth.roster.agent(&names[agent])?;
            Ok(DemoAgent {
                rank: position + 1,
                agent: names[agent].clone(),
                share: shares.as_ref().map(|shares| shares[agent]),
                true_share: true_shares.as_ref().map(|shares| shares[truly]),
                centrality: learned.centrality.values[agent],
                true_centrality: known.centrality.values[truly],
                informativeness: learned.informativeness[agent],
                true_informativeness: known.informativeness[truly],
            })
        });
        let outcome = DemoResult {
            verdict: found.verdict.clone(),
            reference: found.model.roster.reference().to_owned(),
            comparison: compare(&found.model, &GroundTruth::from_model(&world.truth)?, 3)?,
            adaptation: (found.model.adaptation, world.truth.adaptation),
            agents: agents.collect::<Result<_, CliError>>()?,
            posts: written,
            exact,
        };
        Ok((outcome, page))
    }

    /// The beliefs without noise, kept only where a folder is given.
    fn exact(&self, terminal: &Terminal) -> Result<ExactResult, CliError> {
        let params = WorldParams { steps: STEPS, seed: self.seed, ..WorldParams::default() };
        let mut world = World::new(params)?;
        let panel = match &self.out {
            Some(folder) => {
                let folder = folder.join("exact");
                let path = write_world(world.clone(), &folder, BeliefsFormat::Parquet, false, terminal)?;
                read_beliefs(&path, false)?.panel
            }
            None => run(&mut world)?,
        };
        let truth = world.truth();
        let model = whitened(&panel, &WhitenedParams::default())?;
        let paper = gsl(&panel, &GslParams::default())?;
        if let Some(folder) = &self.out {
            write_model(&folder.join("exact/model.json"), &model)?;
        }
        Ok(ExactResult {
            comparison: compare(&model, &GroundTruth::from_model(&truth)?, 3)?,
            paper: compare(&paper, &GroundTruth::from_model(&truth)?, 3)?,
        })
    }

    fn next(&self, page: Option<&Path>) -> String {
        let files = match &self.out {
            Some(folder) => format!(
                "\nFiles in {0}: posts.csv, graph.csv, truth.json, the files of discover (beliefs.parquet, model.json, ranking.json, ranking.csv, edges.csv, report.html, network.gexf, run.json), and exact/, the second simulation.\nNext:\n{1}",
                folder.display(),
                command_line(&format!(
                    "headwater explain {} --agent {} --what-if remove",
                    shell_quoted(&folder.join(MODEL_FILE).display().to_string()),
                    PostWorld::INFLUENCER
                ))
            ),
            None => format!("\nTo keep all files:\n{}", command_line("headwater demo --out demo")),
        };
        let page = page.map_or(String::new(), |page| {
            format!("Report page, with the true weights beside the estimates: {}\n", page.display())
        });
        files + &page
    }
}

/// Writes the posts, the follow graph and the truth; returns the paths of the first two.
fn write_posts(folder: &Path, world: &PostWorld) -> Result<(PathBuf, PathBuf), CliError> {
    create(folder)?;
    let (posts, graph) = (folder.join("posts.csv"), folder.join("graph.csv"));
    let rows = world.rows().map(|row| row.to_vec());
    write(&posts, csv(&["user", "time", "text"], rows.collect(), CsvText::Raw).as_bytes())?;
    let rows = world.follows.iter().map(|(source, target)| vec![(*source).to_owned(), (*target).to_owned()]);
    write(&graph, csv(&["source", "target"], rows.collect(), CsvText::Raw).as_bytes())?;
    let truth = SimulatedTruth { model: world.truth.clone(), changes: Vec::new() };
    write_truth(&folder.join("truth.json"), &truth)?.commit()?;
    Ok((posts, graph))
}

/// Writes the page to one fixed temporary file, so that pages do not accumulate. `None` where it belongs to another user.
fn kept(page: &str) -> Option<PathBuf> {
    let path = std::env::temp_dir().join("headwater-demo.html");
    write(&path, page.as_bytes()).ok()?;
    Some(path)
}

/// Estimates beside true values.
#[derive(Serialize)]
struct DemoResult {
    verdict: Verdict,
    reference: String,
    posts: usize,
    comparison: Comparison,
    /// δ, estimated and true.
    adaptation: (f64, f64),
    agents: Vec<DemoAgent>,
    exact: ExactResult,
}

/// Results for beliefs without noise.
#[derive(Serialize)]
struct ExactResult {
    comparison: Comparison,
    /// The paper's learner on the same beliefs.
    paper: Comparison,
}

#[derive(Serialize)]
struct DemoAgent {
    rank: usize,
    agent: String,
    share: Option<f64>,
    true_share: Option<f64>,
    centrality: f64,
    true_centrality: f64,
    informativeness: f64,
    true_informativeness: f64,
}

impl DemoResult {
    fn text(&self) -> String {
        let shown = |share: Option<f64>| share.map_or("–".to_owned(), percent);
        let measure = |value: Option<f64>| value.map_or("–".to_owned(), number);
        let rows = self.agents.iter().take(8).map(|row| {
            vec![
                row.rank.to_string(),
                name_cell(&row.agent),
                shown(row.share),
                shown(row.true_share),
                number(row.centrality),
                number(row.true_centrality),
                number(row.informativeness),
                number(row.true_informativeness),
            ]
        });
        let header = ["", "agent", "share", "(true)", "centrality", "(true)", "inform.", "(true)"];
        let place = self.agents.iter().position(|row| row.agent == PostWorld::INFLUENCER);
        let verdict = &self.verdict;
        format!(
            "{verdict}\n\nRanking from {} posts, influence = centrality × informativeness:\n\n{}{}\nThe truly most influential user, {}, is ranked {}. δ = {} (true {}). Reference: {:?}.\n\nBeliefs without noise, 20 agents over {STEPS} steps: squared error of the weights {} (the paper's learner on the same steps: {}), L1 error of the influence shares {}; {} of the true top 3 found.\n",
            self.posts,
            table(&header, 2, rows.collect()),
            legend(&header),
            PostWorld::INFLUENCER,
            place.map_or("–".to_owned(), |place| (place + 1).to_string()),
            number(self.adaptation.0),
            number(self.adaptation.1),
            self.reference,
            measure(self.exact.comparison.combination_error),
            measure(self.exact.paper.combination_error),
            measure(self.exact.comparison.influence_l1),
            shown(self.exact.comparison.top_k_hit),
        )
    }

    fn csv(&self, text: CsvText) -> String {
        let exact = |share: Option<f64>| share.map_or(String::new(), |share| share.to_string());
        let rows = self.agents.iter().map(|row| {
            let numbers = [row.centrality, row.true_centrality, row.informativeness, row.true_informativeness];
            let head = [row.rank.to_string(), row.agent.clone(), exact(row.share), exact(row.true_share)];
            head.into_iter().chain(numbers.map(|value| value.to_string())).collect()
        });
        let header = [
            "rank",
            "agent",
            "share",
            "true_share",
            "centrality",
            "true_centrality",
            "informativeness",
            "true_informativeness",
        ];
        csv(&header, rows.collect(), text)
    }
}
