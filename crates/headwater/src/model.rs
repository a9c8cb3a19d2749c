//! The model: what was learned, how, and what is known about how well.
//!
//! In: the parts a learner found. Out: a [`Model`] with everything the influence room needs and nothing it could
//! compute itself.

use crate::learn::Method;
use crate::panel::LARGEST_LOG_RATIO;
use crate::{Combination, Error, Panel, Roster};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Mean log-likelihood ratios L̄, N × H: `L̄[k, j] = D_k(θ*‖θ_j) − D_k(θ*‖θ_0)`.
///
/// ```
/// let evidence = headwater::Evidence::from_rows(vec![0.1, 0.2, -0.3, 0.4], 2, 2).unwrap();
/// assert_eq!(evidence.of(1, 0), 0.0); // the reference against itself
/// assert_eq!(evidence.of(1, 2), 0.4);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    agents: usize,
    ratios: usize,
    /// Agent by agent.
    rows: Vec<f64>,
}

impl Evidence {
    /// From N·H numbers, agent by agent.
    pub fn from_rows(rows: Vec<f64>, agents: usize, ratios: usize) -> Result<Self, Error> {
        if rows.len() != agents * ratios {
            return Err(Error::Shape {
                what: "evidence",
                met: format!("{} numbers", rows.len()),
                wanted: format!("{agents}×{ratios}"),
            });
        }
        if let Some(bad) = rows.iter().find(|value| value.is_nan() || value.abs() > LARGEST_LOG_RATIO) {
            let reason = format!("it holds {bad}, which is no log-likelihood ratio");
            return Err(Error::Undefined { what: "evidence", reason });
        }
        Ok(Evidence { agents, ratios, rows })
    }

    /// From an N × H matrix.
    pub fn from_matrix(matrix: MatRef<'_, f64>) -> Result<Self, Error> {
        let (agents, ratios) = (matrix.nrows(), matrix.ncols());
        let rows = (0..agents * ratios).map(|cell| matrix[(cell / ratios, cell % ratios)]).collect();
        Evidence::from_rows(rows, agents, ratios)
    }

    /// N.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// H.
    pub fn ratios(&self) -> usize {
        self.ratios
    }

    /// The H ratios of one agent.
    pub fn agent(&self, agent: usize) -> &[f64] {
        &self.rows[agent * self.ratios..(agent + 1) * self.ratios]
    }

    /// Evidence of one agent against a hypothesis relative to the reference; zero for the reference itself.
    pub fn of(&self, agent: usize, hypothesis: usize) -> f64 {
        if hypothesis == 0 { 0.0 } else { self.agent(agent)[hypothesis - 1] }
    }

    /// One ratio of all agents.
    pub fn ratio(&self, ratio: usize) -> Vec<f64> {
        (0..self.agents).map(|agent| self.agent(agent)[ratio]).collect()
    }
}

/// Covariance of the private log-likelihood ratios of each agent: N blocks of H × H.
#[derive(Debug, Clone, PartialEq)]
pub struct Innovation {
    ratios: usize,
    cells: Vec<f64>,
}

impl Innovation {
    /// From N·H·H numbers, agent by agent.
    pub fn from_cells(cells: Vec<f64>, agents: usize, ratios: usize) -> Result<Self, Error> {
        if cells.len() != agents * ratios * ratios || cells.iter().any(|value| !value.is_finite()) {
            return Err(Error::Shape {
                what: "innovation",
                met: format!("{} numbers, or some not finite", cells.len()),
                wanted: format!("{agents}×{ratios}×{ratios} finite numbers"),
            });
        }
        Ok(Innovation { ratios, cells })
    }

    /// The H × H block of one agent, row by row.
    pub fn agent(&self, agent: usize) -> &[f64] {
        let size = self.ratios * self.ratios;
        &self.cells[agent * size..(agent + 1) * size]
    }

    /// All numbers, agent by agent.
    pub fn cells(&self) -> &[f64] {
        &self.cells
    }
}

/// What a listener's weights are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightKind {
    /// One weight per edge.
    #[default]
    Edges,
    /// One strength per speaker; listeners divide their attention in proportion. Needs a support.
    Strengths,
}

impl WeightKind {
    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            WeightKind::Edges => "edges",
            WeightKind::Strengths => "strengths",
        }
    }
}

/// The kind of weights that forecasts held-out steps better, with the skills compared.
///
/// Its [`Display`](std::fmt::Display) is the one place that puts it into words.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightsSelection {
    /// The kind chosen.
    pub chosen: WeightKind,
    /// Skill of one weight per edge against each agent's own past, where measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_edges: Option<f64>,
    /// Skill of one strength per speaker, where measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_strengths: Option<f64>,
}

impl std::fmt::Display for WeightsSelection {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = ["one weight per edge", "one strength per speaker"];
        let (chosen, other) = match self.chosen {
            WeightKind::Edges => ((names[0], self.skill_edges), (names[1], self.skill_strengths)),
            WeightKind::Strengths => ((names[1], self.skill_strengths), (names[0], self.skill_edges)),
        };
        let (Some(skill), Some(rival)) = (chosen.1, other.1) else {
            return write!(to, "{}: too few steps to compare with {}", chosen.0, other.0);
        };
        let (name, skill, other, rival) = (chosen.0, 100.0 * skill, other.0, 100.0 * rival);
        write!(
            to,
            "{name}: its forecasts of held-out steps are {skill:.3} % better than each agent's own past, those of {other} {rival:.3} %"
        )
    }
}

/// The hypothesis the network settles on, and how many agents share it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Truth {
    /// Index of θ*.
    pub hypothesis: usize,
    /// Share of the agents that believe it.
    pub agreement: f64,
}

/// A private observation model, where known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Likelihood {
    /// A finite alphabet: probability of each symbol under each hypothesis, symbols × hypotheses.
    Discrete {
        /// One row per symbol.
        probabilities: Vec<Vec<f64>>,
    },
    /// Gaussian observations of unit variance: mean under each hypothesis, dimension × hypotheses.
    Gaussian {
        /// One row per dimension.
        means: Vec<Vec<f64>>,
    },
    /// Not identified.
    Unknown,
}

/// How well a column of A is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Cannot be a coincidence.
    Certified,
    /// Exactly identified by noise-free contrasts.
    Identified,
    /// Estimated with statistical error.
    Statistical,
}

/// What is known about one listener's column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Name of the listener.
    pub agent: String,
    /// How well its weights are known.
    pub status: Status,
    /// Numerical rank of its residual covariance.
    pub rank: usize,
    /// Condition number of what its weights were solved from; large when its speakers are nearly collinear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<f64>,
    /// Typical (root mean square) standard error of one of its weights before any constraint; zero when certified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_error: Option<f64>,
}

impl Column {
    /// A column known up to statistical error.
    pub fn statistical(agent: &str, rank: usize) -> Self {
        Column { agent: agent.to_owned(), status: Status::Statistical, rank, condition: None, weight_error: None }
    }
}

/// Squared one-step forecast errors on steps the learner had not seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Skill {
    /// 1 − (model's error)/(error of "nobody changes their mind").
    pub against_persistence: f64,
    /// 1 − (model's error)/(error of each agent's own AR(1)).
    pub against_own_past: f64,
    /// The same with both told what the others said on the whole a step before: what is left is more than a common trend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_common: Option<f64>,
    /// Number of forecast steps.
    pub steps: usize,
}

/// What the state-space learner found beside the network, and how it got there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Smoothing {
    /// Of all that was said.
    pub log_likelihood: f64,
    /// Rounds of expectation-maximisation.
    pub rounds: usize,
    /// Whether another would have gained too little.
    pub converged: bool,
    /// Covariance of the noise of a single post, H × H.
    pub noise: Vec<Vec<f64>>,
    /// What the weights are made of.
    pub weights: WeightKind,
    /// Shrinkage of a weight towards what others give the same speaker.
    #[serde(alias = "pull")]
    pub shrinkage: f64,
    /// How the kind of weights was chosen, where it was not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<WeightsSelection>,
    /// Whether δ was given rather than estimated.
    pub adaptation_given: bool,
    /// Strength of each speaker, geometric mean one, where weights are made of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strengths: Option<Vec<f64>>,
    /// About what a listener gives itself, where weights are made of strengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_weight: Option<f64>,
    /// The trend that were allowed beside the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common: Option<Common>,
}

/// Moods that move beliefs beside the network: what the others of a group said on the whole, a step before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Common {
    /// The group of each agent.
    pub groups: Vec<usize>,
    /// How far each group follows its trend, by log-ratio.
    pub loading: Vec<Vec<f64>>,
}

/// What a reader should know before trusting a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Diagnostics {
    /// Per listener.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// Largest minus smallest column sum before any normalisation.
    #[serde(default)]
    pub column_sum_spread: Option<f64>,
    /// Forecast skill, where measured.
    #[serde(default)]
    pub skill: Option<Skill>,
    /// Time steps the evidence is a mean of.
    #[serde(default)]
    pub evidence_steps: Option<usize>,
    /// Standard errors of the evidence, N × H, where the learner knows them; zero where the evidence is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_errors: Option<Vec<Vec<f64>>>,
    /// Time steps learned from, over all passes.
    #[serde(default)]
    pub steps: Option<usize>,
    /// What the state-space learner found beside the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothing: Option<Smoothing>,
    /// In words, with numbers.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// What kind of thing changed while a network was watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Some listeners weigh their speakers differently, or see private observations of another kind.
    Topology,
    /// Another hypothesis is true now.
    State,
}

impl ChangeKind {
    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Topology => "topology",
            ChangeKind::State => "state",
        }
    }
}

/// A change that was noticed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The frame at which it was noticed, counted from the first one seen.
    pub step: usize,
    /// The first frame of the new order, as estimated.
    pub since: usize,
    /// What kind of thing changed.
    pub kind: ChangeKind,
    /// The listeners concerned; none for a change of state.
    pub listeners: Vec<usize>,
    /// The new truth after a change of state.
    pub truth: Option<usize>,
}

/// The network as it was known at a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The frame, counted from the first one seen.
    pub step: usize,
    /// A.
    pub combination: Combination,
    /// L̂.
    pub evidence: Evidence,
}

/// What a network went through while it was watched; empty unless it was tracked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Track {
    /// From the first to the last.
    pub changes: Vec<Change>,
    /// From the first to the last.
    pub history: Vec<Snapshot>,
    /// When each frame named above was, as people write it: by step, where it is not the step itself.
    pub times: Vec<(usize, String)>,
}

impl Track {
    /// When a frame was.
    pub fn time(&self, step: usize) -> String {
        let known = self.times.iter().find(|(known, _)| *known == step);
        known.map_or_else(|| step.to_string(), |(_, time)| time.clone())
    }
}

/// A learned, simulated or given network.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Names.
    pub roster: Roster,
    /// A as learned.
    pub combination: Combination,
    /// L̄ or its estimate.
    pub evidence: Evidence,
    /// δ.
    pub adaptation: f64,
    /// How it was learned.
    pub method: Method,
    /// θ*, where the beliefs were at hand.
    pub truth: Option<Truth>,
    /// Covariance of the private log-likelihood ratios.
    pub innovation: Option<Innovation>,
    /// Private observation models, one per agent.
    pub likelihoods: Option<Vec<Likelihood>>,
    /// What to know before trusting it.
    pub diagnostics: Diagnostics,
    /// What happened while it was watched.
    pub track: Track,
}

/// The smallest δ: below it, 1 − δ has few digits of δ left, or is 1, and sums over (1 − δ)^t do not end.
pub const SMALLEST_ADAPTATION: f64 = 1e-12;

/// Checks δ; every room that takes one calls this.
pub fn check_adaptation(adaptation: f64) -> Result<(), Error> {
    crate::error::require(
        (SMALLEST_ADAPTATION..1.0).contains(&adaptation),
        "adaptation",
        adaptation,
        "a number of at least 1e-12 and below 1",
    )
}

/// Agents handled by one task; fixed, so that the thread count changes no bit.
const AGENTS_PER_TASK: usize = 128;

/// Steps handled at a time.
const STEPS_PER_BLOCK: usize = 64;

/// Products N²·T·H that a covariance may cost; beyond it the latest steps must do.
const COVARIANCE_PRODUCTS: usize = 200_000_000;

/// But never fewer steps than this: variances are then good to an eighth.
const COVARIANCE_STEPS: usize = 128;

/// Covariance of `(Λ_i − (1−δ)AᵀΛ_{i−1})/δ` per agent over a complete panel, as matrix products.
///
/// Over all steps for small networks; over the latest few hundred, or at least 128, for large ones.
pub fn innovation(panel: &Panel, combination: &Combination, adaptation: f64) -> Result<Innovation, Error> {
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    let used = (COVARIANCE_PRODUCTS / (agents * agents * ratios)).max(COVARIANCE_STEPS);
    let begin = steps.saturating_sub(used).max(1);
    if steps < 3 {
        return Err(Error::NotReady { seen: steps, needed: 3 });
    }
    let Some(columns) = combination.dense() else { return sparse_innovation(panel, combination, adaptation) };
    let keep = 1.0 - adaptation;
    let size = ratios * ratios;
    let mut cells = vec![0.0; agents * size];
    let tasks = cells.par_chunks_mut(AGENTS_PER_TASK * size).enumerate();
    tasks.for_each(|(task, cells)| {
        let first = task * AGENTS_PER_TASK;
        let count = cells.len() / size;
        let listened =
            MatRef::from_column_major_slice(&columns[first * agents..(first + count) * agents], agents, count);
        let mut sums = vec![0.0; count * ratios];
        // Shifting by the first residual keeps the sums of squares small beside a large mean.
        let mut shift = vec![0.0; count * ratios];
        let mut heard = vec![0.0; count * STEPS_PER_BLOCK * ratios];
        let mut residual = vec![0.0; ratios];
        for start in (begin..steps).step_by(STEPS_PER_BLOCK) {
            let end = (start + STEPS_PER_BLOCK).min(steps);
            let width = (end - start) * ratios;
            let mut out = MatMut::from_column_major_slice_mut(&mut heard[..count * width], count, width);
            let before = panel.block(start - 1..end - 1);
            matmul(out.as_mut(), Accum::Replace, listened.transpose(), before, keep, Par::Seq);
            let now = panel.block(start..end);
            for step in 0..end - start {
                for agent in 0..count {
                    for ratio in 0..ratios {
                        let column = step * ratios + ratio;
                        residual[ratio] = now[(first + agent, column)] - out[(agent, column)];
                    }
                    if start == begin && step == 0 {
                        shift[agent * ratios..(agent + 1) * ratios].copy_from_slice(&residual);
                    }
                    for ratio in 0..ratios {
                        residual[ratio] -= shift[agent * ratios + ratio];
                        sums[agent * ratios + ratio] += residual[ratio];
                    }
                    for row in 0..ratios {
                        for column in 0..ratios {
                            cells[agent * size + row * ratios + column] += residual[row] * residual[column];
                        }
                    }
                }
            }
        }
        let observations = (steps - begin) as f64;
        for agent in 0..count {
            for row in 0..ratios {
                for column in 0..ratios {
                    let product = sums[agent * ratios + row] * sums[agent * ratios + column] / observations;
                    let cell = &mut cells[agent * size + row * ratios + column];
                    *cell = (*cell - product) / (observations - 1.0) / (adaptation * adaptation);
                }
            }
        }
    });
    Innovation::from_cells(cells, agents, ratios)
}

/// The same frame by frame, for networks of which most edges are absent.
fn sparse_innovation(panel: &Panel, combination: &Combination, adaptation: f64) -> Result<Innovation, Error> {
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    let (keep, size, width) = (1.0 - adaptation, ratios * ratios, agents * ratios);
    let count = (steps - 1) as f64;
    let mut heard = vec![0.0; agents];
    let mut residuals = vec![0.0; width];
    let mut shift = Vec::new();
    let mut sums = vec![0.0; width];
    let mut cells = vec![0.0; agents * size];
    for step in 1..steps {
        let (before, now) =
            (&panel.cells()[(step - 1) * width..step * width], &panel.cells()[step * width..(step + 1) * width]);
        for ratio in 0..ratios {
            let line = ratio * agents..(ratio + 1) * agents;
            combination.hear_into(&before[line.clone()], &mut heard);
            let out = residuals[line.clone()].iter_mut().zip(&now[line]).zip(&heard);
            out.for_each(|((residual, now), heard)| *residual = now - keep * heard);
        }
        // Shifting by the first residual keeps the sums of squares small beside a large mean.
        if shift.is_empty() {
            shift.clone_from(&residuals);
        }
        residuals.iter_mut().zip(&shift).for_each(|(residual, shift)| *residual -= shift);
        sums.iter_mut().zip(&residuals).for_each(|(sum, residual)| *sum += residual);
        for (agent, cells) in cells.chunks_exact_mut(size).enumerate() {
            for (cell, out) in cells.iter_mut().enumerate() {
                *out += residuals[cell / ratios * agents + agent] * residuals[cell % ratios * agents + agent];
            }
        }
    }
    for (agent, cells) in cells.chunks_exact_mut(size).enumerate() {
        for (cell, out) in cells.iter_mut().enumerate() {
            let product = sums[cell / ratios * agents + agent] * sums[cell % ratios * agents + agent] / count;
            *out = (*out - product) / (count - 1.0) / (adaptation * adaptation);
        }
    }
    Innovation::from_cells(cells, agents, ratios)
}

/// The hypothesis the network settles on: the largest log belief averaged over agents and the last min(T, 3/δ) steps,
/// with the share of agents whose own average agrees. Note P8.
pub fn settled(panel: &Panel, adaptation: f64) -> Truth {
    let means = recent_means(panel, adaptation);
    let network: Vec<f64> = (0..panel.ratios()).map(|ratio| means.iter().map(|mean| mean[ratio]).sum()).collect();
    let hypothesis = likeliest(&network);
    Truth { hypothesis, agreement: agreeing(&means, hypothesis) }
}

/// The share of agents whose own beliefs, averaged over the last min(T, 3/δ) steps, favour a hypothesis.
pub fn agreement(panel: &Panel, adaptation: f64, hypothesis: usize) -> f64 {
    agreeing(&recent_means(panel, adaptation), hypothesis)
}

fn agreeing(means: &[Vec<f64>], hypothesis: usize) -> f64 {
    means.iter().filter(|mean| likeliest(mean) == hypothesis).count() as f64 / means.len().max(1) as f64
}

/// Mean log-ratios over the last min(T, 3/δ) steps of each agent that speaks in them.
fn recent_means(panel: &Panel, adaptation: f64) -> Vec<Vec<f64>> {
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    let span = ((3.0 / adaptation).ceil() as usize).clamp(1, steps);
    let mut sums = vec![vec![0.0; ratios]; agents];
    let mut spoken = vec![0usize; agents];
    for step in steps - span..steps {
        let frame = panel.frame(step);
        for agent in (0..agents).filter(|&agent| panel.posts(step, agent) > 0) {
            spoken[agent] += 1;
            sums[agent].iter_mut().enumerate().for_each(|(ratio, sum)| *sum += frame[(agent, ratio)]);
        }
    }
    let heard = sums.into_iter().zip(spoken).filter(|(_, spoken)| *spoken > 0);
    heard.map(|(sum, spoken)| sum.iter().map(|sum| sum / spoken as f64).collect()).collect()
}

/// The hypothesis with the largest belief: a log-ratio is log ψ(θ_0)/ψ(θ_j), so the smallest one, or the reference
/// when none is negative.
pub fn likeliest(log_ratios: &[f64]) -> usize {
    let mut best = (0, 0.0);
    for (ratio, &value) in log_ratios.iter().enumerate() {
        if value < best.1 {
            best = (ratio + 1, value);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_settles_on_the_largest_mean_belief() {
        let roster = Roster::numbered(3, 3).unwrap();
        // Frames in column order: ratio 1 of three agents, then ratio 2.
        let frame = [-1.0, -1.0, 0.5, 2.0, 2.0, 0.1];
        let panel = Panel::complete(roster, frame.repeat(4)).unwrap();
        let truth = settled(&panel, 0.5);
        assert_eq!(truth.hypothesis, 1);
        assert!((truth.agreement - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn innovation_is_the_covariance_of_the_residuals() {
        // A = I and δ = 1/2: the residual over δ is 2Λ_i − Λ_{i−1}.
        let roster = Roster::numbered(2, 2).unwrap();
        let series = [1e6 + 1.0, 0.0, 1e6 + 2.0, 1.0, 1e6 + 4.0, 3.0, 1e6 + 3.0, 3.0];
        let panel = Panel::complete(roster, series.to_vec()).unwrap();
        let identity = Combination::from_columns(vec![1.0, 0.0, 0.0, 1.0], 2).unwrap();
        let met = innovation(&panel, &identity, 0.5).unwrap();
        let sparse = innovation(&panel, &identity.to_sparse(), 0.5).unwrap();
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-8 * a.abs();
        assert!(met.cells().iter().zip(sparse.cells()).all(close));
        let residuals = [[3.0, 6.0, 2.0], [2.0, 5.0, 3.0]];
        for (agent, residuals) in residuals.iter().enumerate() {
            let mean = residuals.iter().sum::<f64>() / 3.0;
            let wanted = residuals.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0;
            assert!((met.agent(agent)[0] - wanted).abs() < 1e-8 * wanted, "{} {wanted}", met.agent(agent)[0]);
        }
    }
}
