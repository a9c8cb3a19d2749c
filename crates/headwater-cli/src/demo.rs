//! `headwater demo`: the main job on a simulated world, recovered beside true.

use crate::failure::Failure;
use crate::rank::judged;
use crate::screen::{Format, Screen, csv, number, percent, table};
use crate::simulate::write_world;
use clap::Args;
use headwater::compare::{Comparison, Known, compare};
use headwater::confidence::{self, Verdict};
use headwater::influence;
use headwater::learn::gsl::{GslParams, gsl};
use headwater::learn::whitened::{Whitened, held_out, whitened};
use headwater::simulate::{World, WorldParams, run};
use headwater_files::{BeliefsFormat, read_beliefs, write_model};
use serde::Serialize;
use std::path::PathBuf;

/// Shows the whole path on a simulated world: beliefs, model, ranking, the recovered beside the true
#[derive(Debug, Args)]
#[command(after_help = "Example: headwater demo --out demo")]
pub(crate) struct Demo {
    /// Keep the beliefs, the truth and the model in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of the world
    #[arg(long, default_value_t = 21)]
    seed: u64,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

impl Demo {
    pub(crate) fn run(self, screen: &mut Screen) -> Result<(), Failure> {
        let params = WorldParams { steps: 100, seed: self.seed, ..WorldParams::default() };
        screen.remark("simulating 20 agents over 100 steps; agents 0, 1 and 2 are the well-informed ones");
        let mut world = World::new(params)?;
        let panel = match &self.out {
            Some(folder) => {
                let path = write_world(world.clone(), folder, BeliefsFormat::Parquet, false, screen)?;
                read_beliefs(&path, false)?.panel
            }
            None => run(&mut world)?,
        };
        let truth = world.truth();
        screen.remark("learning who listens to whom from their public beliefs alone");
        let params = Whitened::default();
        let mut model = whitened(&panel, &params)?;
        model.diagnostics.skill = confidence::skill(&panel, &held_out(&panel, &params)?);
        let paper = gsl(&panel, &GslParams::default())?;
        if let Some(folder) = &self.out {
            write_model(&folder.join("model.json"), &model)?;
        }
        let (learned, known) = (influence(&model)?, influence(&truth)?);
        let outcome = Outcome {
            verdict: judged(&model),
            reference: model.roster.reference().to_owned(),
            comparison: compare(&model, &Known::of(&truth)?, 3)?,
            paper: compare(&paper, &Known::of(&truth)?, 3)?,
            agents: (learned.ranking().into_iter().enumerate())
                .map(|(position, agent)| Row {
                    rank: position + 1,
                    agent: model.roster.agents()[agent].clone(),
                    share: learned.share.as_ref().map(|shares| shares[agent]),
                    true_share: known.share.as_ref().map(|shares| shares[agent]),
                    centrality: learned.centrality.values[agent],
                    true_centrality: known.centrality.values[agent],
                    informativeness: learned.informativeness[agent],
                    true_informativeness: known.informativeness[agent],
                })
                .collect(),
        };
        match self.format {
            Format::Json => screen.json(&outcome),
            Format::Csv => screen.result(&outcome.csv()),
            Format::Table => screen.text(&(outcome.text() + &self.next())),
        }
    }

    fn next(&self) -> String {
        match &self.out {
            Some(folder) => format!(
                "\nFiles in {0}: beliefs.parquet, truth.json, model.json.\nNext: headwater explain {0}/model.json --agent 0 --what-if remove\n",
                folder.display()
            ),
            None => "\nKeep the files with: headwater demo --out demo\n".to_owned(),
        }
    }
}

/// The recovered beside the true.
#[derive(Serialize)]
struct Outcome {
    verdict: Verdict,
    reference: String,
    comparison: Comparison,
    /// The paper's learner on the same beliefs.
    paper: Comparison,
    agents: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    rank: usize,
    agent: String,
    share: Option<f64>,
    true_share: Option<f64>,
    centrality: f64,
    true_centrality: f64,
    informativeness: f64,
    true_informativeness: f64,
}

impl Outcome {
    fn text(&self) -> String {
        let shown = |share: Option<f64>| share.map_or("–".to_owned(), percent);
        let measure = |value: Option<f64>| value.map_or("–".to_owned(), number);
        let rows = self.agents.iter().take(8).map(|row| {
            vec![
                row.rank.to_string(),
                row.agent.clone(),
                shown(row.share),
                shown(row.true_share),
                number(row.centrality),
                number(row.true_centrality),
                number(row.informativeness),
                number(row.true_informativeness),
            ]
        });
        let header = ["", "agent", "share", "(true)", "centrality", "(true)", "inform.", "(true)"];
        format!(
            "{}\n\nWho drives what the group believes: influence = centrality × informativeness\n\n{}\nSquared error of the weights {} (the paper's learner on the same 100 steps: {}), difference of influence shares {}; {} of the true top 3 found. Reference: {:?}.\n",
            self.verdict.text,
            table(&header, 2, rows.collect()),
            measure(self.comparison.combination_error),
            measure(self.paper.combination_error),
            measure(self.comparison.influence_l1),
            shown(self.comparison.top_k_hit),
            self.reference
        )
    }

    fn csv(&self) -> String {
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
        csv(&header, rows.collect())
    }
}
