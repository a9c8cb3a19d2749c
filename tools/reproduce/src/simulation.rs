//! The paper's simulations: its network and likelihoods, and the learners that several experiments run on them.

use crate::Error;
use crate::released_data::ReleasedData;
use headwater::learn::gsl::{Gsl, GslParams};
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::simulate::{Likelihoods, World, WorldParams, run};
use headwater::{Combination, Evidence, Model, Panel};

/// The hypothesis that is true in the released simulations.
pub(crate) const TRUTH: usize = 1;

/// Step size and window the paper prints for each curve.
pub(crate) const PRINTED: [(usize, f64); 3] = [(1, 0.001), (10, 0.01), (50, 0.1)];

/// Steps after which the error of the whitened learner is measured.
pub(crate) const CHECKPOINTS: [usize; 14] = [12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 200, 500, 1000, 2000];

/// The network of all simulations of an experiment.
pub(crate) struct PaperNetwork {
    names: Vec<String>,
    edges: Vec<(usize, usize, Option<f64>)>,
    /// Whether it is the authors'.
    pub(crate) released: bool,
}

impl PaperNetwork {
    /// The authors' network, or where it is not available one drawn with the same parameters.
    pub(crate) fn find(data: &ReleasedData) -> Result<Self, Error> {
        let matrix = data.matrix("matrix_21_true.csv")?;
        let released = matrix.is_some();
        let combination = match matrix {
            Some(rows) => combination(&rows)?,
            None => World::new(WorldParams { steps: 1, burn_in: 0, ..WorldParams::default() })?.truth().combination,
        };
        let heard = combination.edges().filter(|(_, _, weight)| *weight != 0.0);
        Ok(PaperNetwork {
            edges: heard.map(|(speaker, listener, weight)| (speaker, listener, Some(weight))).collect(),
            names: (0..combination.agents()).map(|agent| agent.to_string()).collect(),
            released,
        })
    }

    /// A simulation on it.
    pub(crate) fn world(&self, params: WorldParams) -> Result<World, Error> {
        Ok(World::on_graph(params, self.names.clone(), &self.edges)?)
    }

    /// A simulation on it, run to its end.
    pub(crate) fn run(&self, params: WorldParams) -> Result<(Panel, Model), Error> {
        let mut world = self.world(params)?;
        let panel = run(&mut world)?;
        Ok((panel, world.truth()))
    }

    /// What the page says about it.
    pub(crate) fn description(&self) -> &'static str {
        if self.released {
            "the authors' network and likelihoods"
        } else {
            "a network drawn with the paper's parameters (the authors' files are not available) and the released likelihoods"
        }
    }
}

/// A matrix, row by row, as weights.
pub(crate) fn combination(rows: &[Vec<f64>]) -> Result<Combination, Error> {
    let size = rows.len();
    let cells = (0..size * size).map(|cell| rows[cell % size].get(cell / size).copied().unwrap_or(f64::NAN));
    Ok(Combination::from_columns(cells.collect(), size)?)
}

/// Parameters of the released simulations.
pub(crate) fn released(seed: u64, steps: usize) -> WorldParams {
    WorldParams { likelihoods: Likelihoods::Released, truth: TRUTH, steps, seed, ..WorldParams::default() }
}

/// The paper's learner with a window and a step size.
pub(crate) fn gsl(panel: &Panel, window: usize, learning_rate: f64) -> Result<Gsl, Error> {
    Ok(Gsl::new(panel.roster().clone(), GslParams { window, learning_rate, ..GslParams::default() })?)
}

/// Continues learning until so many frames were seen.
pub(crate) fn until(learner: &mut Gsl, panel: &Panel, step: usize) -> Result<(), Error> {
    while learner.position().0 < step {
        let left = step - learner.position().0;
        if learner.advance(panel, left)?.is_none() {
            break;
        }
    }
    Ok(())
}

/// Squared distance of two sets of weights.
pub(crate) fn distance(a: &Combination, b: &Combination) -> f64 {
    a.to_columns().iter().zip(b.to_columns()).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Squared distance of two sets of evidence.
pub(crate) fn evidence_distance(a: &Evidence, b: &Evidence) -> f64 {
    let row = |agent: usize| a.agent(agent).iter().zip(b.agent(agent)).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    (0..a.agents()).map(row).sum()
}

/// The whitened learner after so many steps; `None` before it can say anything.
pub(crate) fn ours(panel: &Panel, steps: usize) -> Result<Option<Model>, Error> {
    if steps > panel.steps() {
        return Ok(None);
    }
    Ok(Some(whitened(&panel.slice(0..steps)?, &WhitenedParams::default())?))
}
