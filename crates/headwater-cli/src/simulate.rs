//! `headwater simulate`: simulated beliefs with known truth.

use crate::error::CliError;
use crate::output::create;
use crate::terminal::{Terminal, count};
use clap::{Args, ValueEnum};
use headwater::Roster;
use headwater::graph::Rule;
use headwater::simulate::{Likelihoods, NetworkShape, ScheduledChange, World, WorldParams};
use headwater_files::{BeliefsFormat, BeliefsWriter, Edges, SimulatedTruth, read_edges, write_truth};
use std::path::{Path, PathBuf};

/// Simulates a network of agents, and writes their beliefs and the truth
#[derive(Debug, Args)]
#[command(
    after_help = "Writes DIR/beliefs.{parquet,csv,npy} and DIR/truth.json.\n\nExample: headwater simulate --out world --agents 20 --steps 20000 --likelihoods released --truth 1"
)]
pub(crate) struct SimulateArgs {
    /// Output folder; created if needed
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Type of network; all are undirected with self-loops
    #[arg(long, value_enum, default_value = "er")]
    network: NetworkName,
    /// Number of agents
    #[arg(long, default_value_t = 20, value_name = "N", conflicts_with = "graph")]
    agents: usize,
    /// Probability of an edge (er), or of an edge inside a block (blocks; a tenth of it between blocks)
    #[arg(long, default_value_t = 0.2, value_name = "P")]
    edge_probability: f64,
    /// Number of blocks for --network blocks
    #[arg(long, default_value_t = 4, value_name = "N")]
    blocks: usize,
    /// Weights of the edges
    #[arg(long, value_enum, default_value = "uniform")]
    weights: RuleName,
    /// Edges source,target[,weight] instead of a random network; weights are used as given
    #[arg(long, value_name = "EDGES", conflicts_with = "network")]
    graph: Option<PathBuf>,
    /// Accept a --graph that is not strongly connected
    #[arg(long)]
    allow_reducible: bool,
    /// Number of hypotheses
    #[arg(long, default_value_t = 5, value_name = "N")]
    hypotheses: usize,
    /// Private observations: appendix (coins, the paper's generator), released (coins, the authors' scripts),
    /// gaussian[:DIM]
    #[arg(long, default_value = "appendix", value_parser = str::parse::<Likelihoods>, value_name = "KIND")]
    likelihoods: Likelihoods,
    /// Number of well-informed agents, which are the first ones [default: 3]
    #[arg(long, value_name = "K")]
    influential: Option<usize>,
    /// Informativeness of these agents: σ² of the paper's appendix, v of the authors' scripts
    #[arg(long, default_value_t = 0.5, value_name = "X")]
    influential_scale: f64,
    /// Informativeness of all other agents, on the same scale
    #[arg(long, default_value_t = 0.05, value_name = "X")]
    other_scale: f64,
    /// Index of the true hypothesis
    #[arg(long, default_value_t = 0, value_name = "INDEX")]
    truth: usize,
    /// δ, weight of private evidence in a belief
    #[arg(long, default_value_t = 0.05, value_name = "δ", allow_negative_numbers = true)]
    adaptation: f64,
    /// Steps to write
    #[arg(long, default_value_t = 1000, value_name = "T")]
    steps: usize,
    /// Steps before those, starting from uniform beliefs; not written
    #[arg(long, default_value_t = 500, value_name = "T")]
    burn_in: usize,
    /// Probability that an agent is silent at a step
    #[arg(long, default_value_t = 0.0, value_name = "P")]
    silence: f64,
    /// Change during the simulation; repeatable: topology:EVERY:PROBABILITY, state:STEP[:INDEX], likelihoods:STEP
    #[arg(long, value_parser = str::parse::<ScheduledChange>, value_name = "CHANGE")]
    change: Vec<ScheduledChange>,
    /// File format of the beliefs
    #[arg(long = "as", value_enum, default_value = "parquet", value_name = "FORMAT")]
    format: FormatName,
    /// Write log-ratios log ψ(θ_0)/ψ(θ_j) instead of probabilities
    #[arg(long)]
    log_ratios: bool,
    /// Seed of the simulation
    #[arg(long, default_value_t = 21)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum NetworkName {
    /// Erdős–Rényi: all edges have the same probability
    Er,
    /// Star with agent 0 in the centre
    Star,
    /// Preferential attachment, two edges per new agent
    Preferential,
    /// Stochastic block model
    Blocks,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RuleName {
    /// Averaging rule: equal weights
    Uniform,
    /// Metropolis weights
    Metropolis,
    /// Random weights that sum to one
    Random,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    Parquet,
    Csv,
    Npy,
}

impl From<FormatName> for BeliefsFormat {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Parquet => BeliefsFormat::Parquet,
            FormatName::Csv => BeliefsFormat::Csv,
            FormatName::Npy => BeliefsFormat::Npy,
        }
    }
}

impl SimulateArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let edges = self.graph.as_deref().map(read_edges).transpose()?;
        let names = edges.as_ref().map(Edges::agents);
        let agents = names.as_ref().map_or(self.agents, Vec::len);
        let params = WorldParams {
            agents,
            network: match self.network {
                NetworkName::Er => NetworkShape::Er,
                NetworkName::Star => NetworkShape::Star,
                NetworkName::Preferential => NetworkShape::Preferential,
                NetworkName::Blocks => NetworkShape::Blocks { groups: self.blocks },
            },
            edge_probability: self.edge_probability,
            rule: match self.weights {
                RuleName::Uniform => Rule::Uniform,
                RuleName::Metropolis => Rule::Metropolis,
                RuleName::Random => Rule::Random,
            },
            hypotheses: self.hypotheses,
            likelihoods: self.likelihoods,
            influential: self.influential.unwrap_or(WorldParams::default().influential.min(agents)),
            influential_scale: self.influential_scale,
            other_scale: self.other_scale,
            truth: self.truth,
            adaptation: self.adaptation,
            steps: self.steps,
            burn_in: self.burn_in,
            silence: self.silence,
            allow_reducible: self.allow_reducible,
            changes: self.change,
            seed: self.seed,
        };
        let world = match (edges, names) {
            (Some(edges), Some(names)) => {
                if edges.repeated > 0 {
                    terminal.warn(&format!("{} in the graph", count(edges.repeated, "duplicate edge")));
                }
                let roster = Roster::new(names.iter().cloned(), ["h0", "h1"])?;
                let indexed = edges.indexed(&roster)?;
                World::on_graph(params, names, &indexed).map_err(|error| {
                    let path = self.graph.as_deref().unwrap_or(Path::new("the graph"));
                    match CliError::about(path)(error) {
                        CliError::Data { message, .. } if message.contains("not strongly connected") => {
                            let hint = Some("--allow-reducible accepts it".to_owned());
                            CliError::Data { message, hint }
                        }
                        other => other,
                    }
                })?
            }
            _ => World::new(params)?,
        };
        let beliefs = write_world(world, &self.out, self.format.into(), self.log_ratios, terminal)?;
        terminal.remark(&format!("wrote {} and {}", beliefs.display(), self.out.join("truth.json").display()));
        Ok(())
    }
}

/// Runs a simulation and writes beliefs and truth, both or none. Returns the path of the beliefs.
pub(crate) fn write_world(
    mut world: World,
    folder: &Path,
    format: BeliefsFormat,
    log_ratios: bool,
    terminal: &Terminal,
) -> Result<PathBuf, CliError> {
    create(folder)?;
    let steps = world.params().steps;
    let path = folder.join(format!("beliefs.{}", format.extension()));
    let mut writer = BeliefsWriter::create(&path, format, world.roster(), steps, log_ratios)?;
    let mut progress = terminal.bar("simulating", steps as u64);
    let silence = world.params().silence > 0.0;
    for step in 0..steps {
        let frame = world.next_frame()?.to_vec();
        let silent = if silence { world.silent() } else { Vec::new() };
        writer.write(step as i64, &frame, &silent)?;
        progress.at(step as u64);
    }
    let beliefs = writer.finish()?;
    let truth = SimulatedTruth { model: world.truth(), changes: world.events().to_vec() };
    let truth = write_truth(&folder.join("truth.json"), &truth)?;
    truth.commit()?;
    beliefs.commit()?;
    Ok(path)
}
