//! The procedure of the authors' released Twitter scripts, step by step, so that what was published can be checked.
//!
//! In: a complete panel. Out: a model whose weights may be negative. It departs from the paper (Note P16): the
//! window is the whole past, the evidence is computed with A where the paper has Aᵀ, several passes are made over the data
//! without projection, and columns are normalised once at the end. Not meant for new data.

use super::Method;
use crate::error::require;
use crate::model::{self, ColumnDiagnostics, Diagnostics, Track};
use crate::{Combination, Error, Evidence, Model, Panel};
use faer::{Mat, MatRef};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Parameters of [`as_released`]; the defaults are those of the scripts for the journalist's network.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `adaptation` | 0.0001 | δ | (0, 1) |
/// | `learning_rate` | 0.0003 | μ | > 0 |
/// | `decay` | 1 | μ is multiplied by this after each batch; 0.9996 for elon_musk | (0, 1] |
/// | `sparsity` | 0.006 | α, weight of the subgradient of Σ\|a\| | ≥ 0 |
/// | `batch` | 30 | steps averaged into one update; the last may be shorter | ≥ 1 |
/// | `passes` | 150 | over the data; 250 for elon_musk and ben | ≥ 1 |
/// | `transposed` | false | the evidence with Aᵀ, as the paper has it, instead of A; everything else as released | |
/// | `seed` | 45 | of the random first weights | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table above says it once")]
pub struct ReleasedParams {
    pub adaptation: f64,
    pub learning_rate: f64,
    pub decay: f64,
    pub sparsity: f64,
    pub batch: usize,
    pub passes: usize,
    pub transposed: bool,
    pub seed: u64,
}

impl Default for ReleasedParams {
    fn default() -> Self {
        ReleasedParams {
            adaptation: 1e-4,
            learning_rate: 3e-4,
            decay: 1.0,
            sparsity: 0.006,
            batch: 30,
            passes: 150,
            transposed: false,
            seed: 45,
        }
    }
}

impl ReleasedParams {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), Error> {
        model::check_adaptation(self.adaptation)?;
        let rate = self.learning_rate;
        require(rate > 0.0 && rate.is_finite(), "learning-rate", rate, "a positive number")?;
        require(self.decay > 0.0 && self.decay <= 1.0, "decay", self.decay, "above 0 and at most 1")?;
        require(self.sparsity >= 0.0 && self.sparsity.is_finite(), "sparsity", self.sparsity, "zero or more")?;
        require(self.batch >= 1, "batch", self.batch, "at least 1")?;
        require(self.passes >= 1, "passes", self.passes, "at least 1")
    }
}

/// Lagged frames and running means at every step; columns are steps 1…T−1 times H.
struct LaggedFrames {
    /// Λ_{i−1} less its own past mean.
    x: Mat<f64>,
    /// Λ_i − mean(Λ_1…Λ_{i−1}).
    y: Mat<f64>,
    /// mean(Λ_0…Λ_{i−2}).
    mean: Mat<f64>,
}

/// Learns by the procedure of the released scripts.
///
/// Errors: silence, fewer than three steps, parameters out of range, weights that grow beyond all bounds.
///
/// ```
/// use headwater::{learn::released::{as_released, ReleasedParams}, simulate::{simulate, WorldParams}};
/// let (panel, _) = simulate(&WorldParams { steps: 100, hypotheses: 2, ..WorldParams::default() }).unwrap();
/// let model = as_released(&panel, &ReleasedParams { passes: 2, ..ReleasedParams::default() }).unwrap();
/// assert!((model.combination.column_sums()[0] - 1.0).abs() < 1e-12);
/// ```
pub fn as_released(panel: &Panel, params: &ReleasedParams) -> Result<Model, Error> {
    params.check()?;
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    if steps < 3 {
        return Err(Error::NotReady { seen: steps, needed: 3 });
    }
    if !panel.episodes().is_single() {
        let reason = "the authors' scripts take one series of beliefs, not several episodes".into();
        return Err(Error::Undefined { what: "the released procedure", reason });
    }
    if !panel.is_complete() {
        let reason = "the panel has silent cells; fill them first (carry forward)".into();
        return Err(Error::Undefined { what: "the released procedure", reason });
    }
    let (keep, past) = (1.0 - params.adaptation, LaggedFrames::from_panel(panel));
    let mut weights = first_weights(agents, params.seed);
    let mut rate = params.learning_rate;
    for _ in 0..params.passes {
        for first in (1..steps).step_by(params.batch) {
            let count = params.batch.min(steps - first);
            let part = |matrix: &Mat<f64>| matrix.subcols((first - 1) * ratios, count * ratios).to_owned();
            let (x, y, mean) = (part(&past.x), part(&past.y), part(&past.mean));
            let before = panel.block(first - 1..first - 1 + count);
            // Λ_i − (1−δ)AᵀΛ_{i−1} − δL̂_i, where δL̂_i has A instead of Aᵀ (Note P16).
            let usual = if params.transposed { weights.transpose() * mean } else { &weights * mean };
            let residual = y + (usual - weights.transpose() * before) * faer::Scale(keep);
            let gradient = x * residual.transpose();
            let scale = keep / count as f64;
            for column in 0..agents {
                for row in 0..agents {
                    let shrinkage = params.sparsity * sign(weights[(row, column)]);
                    weights[(row, column)] += rate * (scale * gradient[(row, column)] - shrinkage);
                }
            }
            rate *= params.decay;
        }
        if !weights.col_iter().all(|column| column.iter().all(|weight| weight.abs() < 1e12)) {
            let reason =
                format!("the weights grow without bound at learning rate {}; try a smaller one", params.learning_rate);
            return Err(Error::Undefined { what: "the released procedure", reason });
        }
    }
    finish(panel, &weights, params)
}

/// −1, 0 or 1.
fn sign(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value.signum() }
}

/// Uniform in 0…1, columns normalised.
fn first_weights(agents: usize, seed: u64) -> Mat<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut weights = Mat::from_fn(agents, agents, |_, _| rng.random::<f64>());
    normalise(&mut weights);
    weights
}

fn normalise(weights: &mut Mat<f64>) {
    for column in 0..weights.ncols() {
        let sum: f64 = weights.col_as_slice(column).iter().sum();
        weights.col_as_slice_mut(column).iter_mut().for_each(|weight| *weight /= sum);
    }
}

impl LaggedFrames {
    fn from_panel(panel: &Panel) -> Self {
        let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
        let cell = |step: usize, ratio: usize, agent: usize| panel.frame(step)[(agent, ratio)];
        let zeros = || Mat::zeros(agents, (steps - 1) * ratios);
        let (mut x, mut y, mut mean) = (zeros(), zeros(), zeros());
        for ratio in 0..ratios {
            for agent in 0..agents {
                let (mut early, mut late) = (0.0, 0.0);
                for step in 1..steps {
                    let column = (step - 1) * ratios + ratio;
                    if step >= 2 {
                        // Sums of Λ_0…Λ_{i−2} and of Λ_1…Λ_{i−1}.
                        early += cell(step - 2, ratio, agent);
                        late += cell(step - 1, ratio, agent);
                        mean[(agent, column)] = early / (step - 1) as f64;
                    }
                    let recent = if step >= 2 { late / (step - 1) as f64 } else { 0.0 };
                    x[(agent, column)] = cell(step - 1, ratio, agent) - mean[(agent, column)];
                    y[(agent, column)] = cell(step, ratio, agent) - recent;
                }
            }
        }
        LaggedFrames { x, y, mean }
    }
}

/// Evidence by the weights before normalisation, then the normalisation.
fn finish(panel: &Panel, weights: &Mat<f64>, params: &ReleasedParams) -> Result<Model, Error> {
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    let mean_over = |first: usize| {
        let frames: MatRef<'_, f64> = panel.block(first..first + steps - 1);
        Mat::from_fn(agents, ratios, |agent, ratio| {
            (0..steps - 1).map(|step| frames[(agent, step * ratios + ratio)]).sum::<f64>() / (steps - 1) as f64
        })
    };
    let (early, late) = (mean_over(0), mean_over(1));
    let heard = if params.transposed { weights.transpose() * early } else { weights * early };
    let evidence = (late - heard * faer::Scale(1.0 - params.adaptation)) * faer::Scale(1.0 / params.adaptation);
    let mut normal = weights.clone();
    normalise(&mut normal);
    let columns = (0..agents).flat_map(|column| normal.col_as_slice(column).to_vec()).collect();
    let combination = Combination::from_columns(columns, agents)?;
    let sums = (0..agents).map(|column| weights.col_as_slice(column).iter().sum::<f64>());
    Ok(Model {
        truth: Some(model::settled(panel, params.adaptation)),
        innovation: None,
        evidence: Evidence::from_matrix(evidence.as_ref())?,
        adaptation: params.adaptation,
        method: Method::AsReleased(params.clone()),
        likelihoods: None,
        diagnostics: Diagnostics {
            columns: panel.roster().agents().iter().map(|agent| ColumnDiagnostics::statistical(agent, ratios)).collect(),
            column_sum_spread: Some(super::fit::spread(sums)),
            evidence_steps: Some(steps - 1),
            steps: Some(steps * params.passes),
            warnings: vec![
                "learned as the authors' released scripts did, which is not what their paper says; meant for checking what was published, not for your own data".into(),
            ],
            ..Diagnostics::default()
        },
        track: Track::default(),
        combination,
        roster: panel.roster().clone(),
    })
}
