//! `headwater demo`: the main job on a simulated world, recovered beside true.

use crate::failure::Failure;
use crate::screen::{Screen, number, percent, table};
use crate::simulate::write_world;
use clap::Args;
use headwater::compare::{Known, compare};
use headwater::influence;
use headwater::learn::gsl::{GslParams, gsl};
use headwater::simulate::{World, WorldParams};
use headwater_files::{BeliefsFormat, read_beliefs, read_model, write_model};
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
}

impl Demo {
    pub(crate) fn run(self, screen: &mut Screen) -> Result<(), Failure> {
        let scratch = tempfile::tempdir().map_err(|error| Failure::data(format!("no temporary folder: {error}")))?;
        let folder = self.out.as_deref().unwrap_or(scratch.path());
        let params = WorldParams { steps: 40_000, seed: self.seed, ..WorldParams::default() };
        screen.remark("simulating 20 agents over 40 000 steps; agents 0, 1 and 2 are the well-informed ones");
        let beliefs = write_world(World::new(params)?, folder, BeliefsFormat::Parquet, false, screen)?;
        screen.remark("learning who listens to whom from their public beliefs alone");
        let model = gsl(&read_beliefs(&beliefs, false)?.panel, &GslParams::default())?;
        write_model(&folder.join("model.json"), &model)?;
        let truth = read_model(&folder.join("truth.json"))?;
        let (learned, known) = (influence(&model)?, influence(&truth)?);
        let comparison = compare(&model, &Known::of(&truth)?, 3)?;
        let share = |shares: &Option<Vec<f64>>, agent: usize| {
            shares.as_ref().map_or("–".to_owned(), |shares| percent(shares[agent]))
        };
        let rows = learned.ranking().into_iter().take(8).enumerate().map(|(position, agent)| {
            vec![
                (position + 1).to_string(),
                model.roster.agents()[agent].clone(),
                share(&learned.share, agent),
                share(&known.share, agent),
                number(learned.centrality.values[agent]),
                number(known.centrality.values[agent]),
                number(learned.informativeness[agent]),
                number(known.informativeness[agent]),
            ]
        });
        let header = ["", "agent", "share", "(true)", "centrality", "(true)", "inform.", "(true)"];
        let mut text = format!("{}\n\n", crate::rank::judged(&model).text);
        text.push_str("Who drives what the group believes: influence = centrality × informativeness\n\n");
        text.push_str(&table(&header, 2, rows.collect()));
        let measure = |value: Option<f64>| value.map_or("–".to_owned(), number);
        text.push_str(&format!(
            "\nSquared error of the weights {}, area under the edge curve {}, {} of the true top 3 found.\n",
            measure(comparison.combination_error),
            measure(comparison.edge_auc),
            comparison.top_k_hit.map_or("–".into(), percent)
        ));
        match &self.out {
            Some(folder) => text.push_str(&format!(
                "\nFiles in {0}: beliefs.parquet, truth.json, model.json.\nNext: headwater explain {0}/model.json --agent 0 --what-if remove\n",
                folder.display()
            )),
            None => text.push_str("\nKeep the files with: headwater demo --out demo\n"),
        }
        screen.result(&text)
    }
}
