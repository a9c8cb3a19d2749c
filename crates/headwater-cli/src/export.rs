//! `headwater export`: the network for Gephi, networkx, igraph, d3 and spreadsheets.

use crate::error::CliError;
use crate::fit_args::read_graph;
use crate::output::check;
use crate::report::read_ranking;
use crate::terminal::{Terminal, count};
use clap::{Args, ValueEnum};
use headwater::Ranking;
use headwater_files::read_model;
use headwater_report::export::{EdgeFilter, ExportFormat, ExportNetwork, export_files, json, write_files};
use std::path::PathBuf;

/// Writes the network for other programs: Gephi, networkx, igraph, d3, spreadsheets
#[derive(Debug, Args)]
#[command(
    after_help = "The extension of --out selects the format:\n  .gexf     GEXF 1.3 for Gephi, with weights over time if the model was tracked (learn --follow)\n  .graphml  GraphML for networkx, igraph, Gephi, yEd\n  .csv      edges in NET.csv, agents in NET.nodes.csv; .parquet likewise\n  .json     node-link JSON for networkx or d3 (--json)\n\nAn edge runs from the speaker to the listener. Self-weights are in the column self_weight.\n\nExample: headwater export model.json --ranking ranking.json --significant --out net.gexf"
)]
pub(crate) struct ExportArgs {
    /// The model (.json or .npz)
    model: PathBuf,
    /// File to write: .gexf, .graphml, .csv, .parquet or .json
    #[arg(long, value_name = "NET")]
    out: PathBuf,
    /// JSON of rank or discover: adds intervals, p-values and posts [default: the ranking of the model alone]
    #[arg(long, value_name = "RANKING")]
    ranking: Option<PathBuf>,
    /// Follow graph: adds followers (in-degree) and PageRank
    #[arg(long, value_name = "EDGES")]
    graph: Option<PathBuf>,
    /// Only edges of at least this weight
    #[arg(long, value_name = "W", default_value_t = 0.0, value_parser = parse_weight)]
    min_weight: f64,
    /// Only edges that are significant in the ranking
    #[arg(long, requires = "ranking")]
    significant: bool,
    /// Include negative weights (of models learned with --constraint free)
    #[arg(long)]
    negative: bool,
    /// Include self-weights as self-loops
    #[arg(long)]
    self_loops: bool,
    /// Program that reads the .json [default: networkx]
    #[arg(long, value_enum, value_name = "READER")]
    json: Option<JsonReader>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum JsonReader {
    /// Edges under "edges": networkx.node_link_graph, since 3.4
    Networkx,
    /// Edges under "links": d3.forceLink
    D3,
}

fn parse_weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 0.0);
    weight.ok_or_else(|| "must be a number of at least 0".to_owned())
}

impl ExportArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let format = ExportFormat::from_path(&self.out)?;
        if self.json.is_some() && format != ExportFormat::Json {
            return Err(CliError::usage("--json needs a file that ends in .json", "omit it, or write to NET.json"));
        }
        let outputs = export_files(&self.out)?;
        check([&self.model].into_iter().chain(&self.ranking).chain(&self.graph), &outputs)?;
        let model = read_model(&self.model)?;
        let mut ranking = match &self.ranking {
            Some(path) => read_ranking(path)?,
            None => Ranking::new(&model).map_err(CliError::about(&self.model))?,
        };
        if let Some(path) = &self.graph {
            ranking.add_graph(&read_graph(path, &model.roster, terminal)?, &model.roster)?;
        }
        let source = self.ranking.as_ref().unwrap_or(&self.model);
        if self.significant && ranking.edges.is_none() {
            return Err(CliError::Data {
                message: format!("{}: has no p-values of edges, which --significant needs", source.display()),
                hint: Some("make it with: headwater rank MODEL --beliefs BELIEFS --null 200 --format json".to_owned()),
            });
        }
        let filter = EdgeFilter {
            min_weight: self.min_weight,
            significant: self.significant,
            negative: self.negative,
            self_loops: self.self_loops,
        };
        let mut network = ExportNetwork::new(&model, &ranking, &filter).map_err(CliError::about(source))?;
        if format == ExportFormat::Gexf {
            network = network.drawn(&model, &ranking);
        }
        if network.negative > 0 {
            let left = count(network.negative, "negative weight");
            terminal.warn(&format!("{left} left out; --negative keeps them"));
        }
        let reader = match self.json {
            Some(JsonReader::D3) => json::Reader::D3,
            Some(JsonReader::Networkx) | None => json::Reader::Networkx,
        };
        let replaced = write_files(&self.out, &network, reader, terminal.csv_text())?;
        if replaced > 0 {
            let characters = count(replaced, "character");
            terminal.warn(&format!(
                "XML does not allow {characters} of the names, replaced by \u{fffd}; .csv and .json keep them"
            ));
        }
        let (agents, edges) = (count(network.agents.len(), "agent"), count(network.edges.len(), "edge"));
        let files: Vec<String> = outputs.iter().rev().map(|path| path.display().to_string()).collect();
        let periods =
            network.history.as_ref().filter(|_| format == ExportFormat::Gexf).map_or(String::new(), |history| {
                format!(" over {}", count(history.bounds.len().saturating_sub(1), "period"))
            });
        terminal.remark(&format!("wrote {agents} and {edges}{periods} to {}", files.join(" and ")));
        Ok(())
    }
}
