//! The whitened learner: the same regression as the paper's, solved at once, with the hypotheses of each listener
//! weighted by how quiet they are.
//!
//! In: a complete panel. Out: a model, with δ estimated, each column of A certified, identified or statistical, and the
//! private likelihoods where the observations give themselves away.
//!
//! A is a regression coefficient with regressors common to all listeners, so lagged second moments suffice. The H
//! residuals of a listener are strongly correlated; when its private observation has fewer degrees of freedom than H, some
//! contrasts of them are free of noise and determine its column exactly. Weighting by the inverse residual covariance
//! finds those contrasts by itself.
//!
//! Legend: S, C the moments; W_k = Σ_k⁻¹ the weights of listener k's hypotheses; `G_k = Σ W[h,g]S[h,g]`, c_k likewise;
//! b_k = G_k⁻¹c_k estimates (1−δ) times column k.

use super::Method;
use super::fit::{self, Fit, Standing};
use super::gsl::Constraint;
use super::moments::Moments;
use super::private_likelihoods::{self, PrivateLikelihoods};
use super::regressors::{DistinctAgents, ListenerMoments, Regressors};
use super::simplex;
use super::symbols::{self, Split, Transitions};
use crate::error::require;
use crate::model::{self, ColumnDiagnostics, Diagnostics, Innovation, Likelihood, Status, Track, TrueHypothesis};
use crate::{Combination, Error, Evidence, Model, Panel, progress};
use faer::Mat;
use faer::prelude::Solve;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Parameters of [`whitened`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `adaptation` | none | δ; estimated when not given | (0, 1) |
/// | `constraint` | simplex | what a listener's weights must satisfy | |
/// | `ridge` | 0 | added to every G_k, relative to its mean diagonal | ≥ 0 |
/// | `rounds` | 8 | of reweighting | ≥ 1 |
/// | `symbols` | true | look for finite alphabets, certify columns | |
/// | `budget` | 2·10¹² | operations the search for symbols may take | ≥ 0 |
/// | `support` | none | for each listener the speakers it may hear; itself is always allowed | N lists |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhitenedParams {
    /// δ, or `None` to estimate it.
    pub adaptation: Option<f64>,
    /// What a listener's weights must satisfy.
    pub constraint: Constraint,
    /// Relative ridge for short series.
    pub ridge: f64,
    /// Rounds of reweighting.
    pub rounds: usize,
    /// Whether to look for symbols.
    pub symbols: bool,
    /// Operations the search for symbols may take, about.
    #[serde(with = "super::method::infinite")]
    pub budget: f64,
    /// For each listener the speakers it may hear.
    pub support: Option<Vec<Vec<usize>>>,
}

impl Default for WhitenedParams {
    fn default() -> Self {
        WhitenedParams {
            adaptation: None,
            constraint: Constraint::Simplex,
            ridge: 0.0,
            rounds: 8,
            symbols: true,
            budget: 2e12,
            support: None,
        }
    }
}

/// Share of steps at which an agent may say exactly what it said before and still be certified.
const MOST_REPEATS: f64 = 0.1;

/// Information matrices conditioned worse than this do not tell speakers apart.
const COLLINEAR: f64 = 1e10;

/// Exact columns whose δ differ by more than this are of agents that do not share one.
const ONE_ADAPTATION: f64 = 1e-6;

/// A weight above this is heard.
const HEARD: f64 = 1e-6;

/// Sums of exact weights that differ by less are the same.
const SAME_SUM: f64 = 1e-9;

/// Log-beliefs that are all multiples of 10^−d for some d up to this are rounded.
const DECIMALS: i32 = 9;

/// Whether all numbers lie on a decimal grid.
fn on_a_grid(cells: &[f64]) -> bool {
    (0..=DECIMALS).any(|decimals| {
        let unit = 10f64.powi(decimals);
        let whole = |scaled: f64| (scaled - scaled.round()).abs() <= 16.0 * f64::EPSILON * scaled.abs();
        cells.iter().all(|value| whole(value * unit))
    })
}

/// For each agent the share of transitions at which it does not move at all.
fn repeats(panel: &Panel) -> Vec<f64> {
    let (agents, width) = (panel.agents(), panel.agents() * panel.ratios());
    let mut still = vec![0usize; agents];
    let mut moved = vec![false; agents];
    for (before, now) in panel.cells().chunks_exact(width).zip(panel.cells().chunks_exact(width).skip(1)) {
        moved.fill(false);
        for (before, now) in before.chunks_exact(agents).zip(now.chunks_exact(agents)) {
            moved.iter_mut().zip(before.iter().zip(now)).for_each(|(moved, (before, now))| *moved |= before != now);
        }
        still.iter_mut().zip(&moved).for_each(|(still, moved)| *still += usize::from(!moved));
    }
    still.into_iter().map(|still| still as f64 / (panel.steps() - 1) as f64).collect()
}

/// A network fitted to moments alone, without a search for symbols.
#[derive(Debug, Clone)]
pub(crate) struct Estimate {
    pub(crate) combination: Combination,
    pub(crate) evidence: Evidence,
}

/// Learns the network of a complete panel at once.
///
/// Errors: a panel with silence, fewer than three steps, all agents constant, parameters out of range. Cost: 3N²H² a
/// step for the moments, then for H = 1 one factorisation of N³/3, otherwise about ten of them per listener.
///
/// ```
/// use headwater::{learn::whitened::{whitened, WhitenedParams}, simulate::{simulate, WorldParams}};
/// let (panel, truth) = simulate(&WorldParams { steps: 80, ..WorldParams::default() }).unwrap();
/// let model = whitened(&panel, &WhitenedParams::default()).unwrap();
/// let error: f64 = model.combination.to_columns().iter().zip(truth.combination.to_columns())
///     .map(|(met, wanted)| (met - wanted).powi(2)).sum();
/// assert!(error < 1e-9); // the paper's learner is at 3.5 here
/// ```
pub fn whitened(panel: &Panel, params: &WhitenedParams) -> Result<Model, Error> {
    check(panel, params)?;
    let steps = panel.steps();
    let distinct = DistinctAgents::from_panel(panel);
    if distinct.regressors.is_empty() {
        return Err(Error::Undefined {
            what: "a network",
            reason: "no agent's beliefs change: there is nothing to learn from".into(),
        });
    }
    let mut warnings = distinct.warnings(panel);
    let design = Regressors::from_panel(panel, &distinct, params.support.as_deref());
    let listeners = &design.listeners;
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let most = (0..listeners.len()).map(|position| design.regressors(position).len()).max().unwrap_or(0);
    if (steps - 1) * ratios < most + ratios {
        warnings.push(format!(
            "{} transitions of {ratios} log-ratio(s) cannot determine {most} weights per listener: without the constraint nothing is identified, and the weights shown are one of many fits",
            steps - 1
        ));
    }
    let fits = fit::fits(&design, params)?;
    let mut adaptation = params.adaptation.unwrap_or_else(|| fit::voted(fits.iter().map(|fit| fit.vote)));
    let mut standings = design.each(|position| fit::standing(|| design.listener_moments(position), &fits[position]));
    let means = Means::from_panel(panel);
    let (mut splits, left_out) = match params.symbols {
        true => splits(panel, &means, &design, &fits, 1.0 - adaptation, params)?,
        false => (vec![None; listeners.len()], 0),
    };
    if left_out > 0 {
        warnings.push(format!(
            "the search for symbols was left out for {left_out} of {} listeners: it would go beyond its budget of {:.0e} operations",
            listeners.len(),
            params.budget
        ));
    }
    let repeats = repeats(panel);
    let repeating: Vec<usize> =
        listeners.iter().copied().filter(|&listener| repeats[listener] > MOST_REPEATS).collect();
    if !repeating.is_empty() {
        warnings.push(format!(
            "these agents often repeat themselves exactly, as when silence is carried forward, so nothing is certified for them: {}",
            panel.roster().list(&repeating)
        ));
    }
    let votes = votes(&splits);
    let exact_votes = splits.iter().flatten().any(|split| split.certified);
    if let (Some(vote), true) = (votes.get(votes.len() / 2), exact_votes) {
        let spread = votes[votes.len() - 1] - votes[0];
        if spread > ONE_ADAPTATION {
            warnings.push(format!(
                "certified weights sum to values that differ by up to {spread:.1e}: these agents do not share one δ, as the model assumes, so evidence and shares are off"
            ));
        }
        if let Some(given) = params.adaptation.filter(|given| (given - vote).abs() > ONE_ADAPTATION) {
            warnings.push(format!(
                "δ = {given} contradicts the beliefs, whose exact weights give δ = {vote:.6}: evidence and shares are off"
            ));
            if params.constraint == Constraint::Free {
                splits.iter_mut().flatten().for_each(|split| split.certified = false);
            }
        }
    }
    if params.adaptation.is_none() && !votes.is_empty() {
        adaptation = votes[votes.len() / 2].clamp(*fit::ADAPTATION.start(), *fit::ADAPTATION.end());
    }
    let blurred = splits.iter().flatten().filter(|split| split.constrained.is_some()).count();
    if blurred > 0 {
        warnings.push(format!(
            "the private symbols of {blurred} listeners are clearly apart but blurred, as in rounded beliefs: their weights are fitted within symbols, but not certified"
        ));
    }

    // The columns.
    let sum = 1.0 - adaptation;
    for (position, standing) in standings.iter_mut().enumerate() {
        // Single weights of copies are not known, nor what hides in the constant of who never moves.
        let heard = design.regressors(position).iter().zip(&fits[position].weights);
        let copied = heard.filter(|(_, weight)| weight.abs() > HEARD).any(|(&speaker, _)| design.copied(speaker));
        let missing = design.someone_never_moves() && (fits[position].vote.0 - sum).abs() > HEARD;
        if standing.status == Status::Identified && (copied || missing) {
            standing.status = Status::Statistical;
        }
    }
    let weights = design.each_watched("weighing listeners", |position| {
        let split = splits[position].as_ref();
        if let Some(split) = split.filter(|split| split.certified) {
            return tidy(&split.weights, params.constraint, sum);
        }
        let fit = &fits[position];
        // Contrasts free of noise know better than symbols that are blurred.
        let blurred = split.and_then(|split| split.constrained.as_ref()).filter(|within| {
            let standing = &standings[position];
            standing.status != Status::Identified
                || fit::as_quiet(&design.listener_moments(position), fit, standing.rank, within)
        });
        match (params.constraint, blurred) {
            (Constraint::Free, _) => fit.weights.clone(),
            // Fitted for the first δ̂; columns sum to one whatever it is.
            (_, Some(within)) => tidy(within, params.constraint, sum),
            _ => fit::constrained(&design.listener_moments(position), fit, sum, params)
                .map_or_else(|| fit.weights.clone(), |fit| fit.weights),
        }
    })?;
    let combination = combine(&design, &distinct, &weights, sum, agents, params.support.is_some())?;
    let certified = |position: usize| splits[position].as_ref().is_some_and(|split| split.certified);
    let doubtful: Vec<usize> = (0..listeners.len())
        .filter(|&position| !standings[position].confounded.is_empty() && !certified(position))
        .collect();
    if let Some(&first) = doubtful.first() {
        let of: Vec<usize> = doubtful.iter().map(|&position| listeners[position]).collect();
        let speakers = design.regressors(first);
        let confounded: Vec<usize> = standings[first].confounded.iter().map(|&place| speakers[place]).collect();
        warnings.push(format!(
            "the noise-free contrasts of these listeners do not tell all their speakers apart: {} (for {}, not {})",
            panel.roster().list(&of),
            panel.roster().agents()[listeners[first]],
            panel.roster().list(&confounded)
        ));
    }
    let mut model = assemble(panel, &means, combination, adaptation, params)?;
    silence_the_still(&mut model, &distinct)?;
    let exact = private_models(&mut model, panel, &means, listeners, &splits, &mut warnings)?;
    let vote = if params.adaptation.is_some() || !votes.is_empty() { 0.0 } else { variance_of_the_vote(&fits) };
    let shared = design.shared().map(|_| Precision::from_moments(&design.listener_moments(0), &Mat::identity(1, 1)));
    let precisions = design.each(|position| {
        (!certified(position)).then(|| {
            let fit = &fits[position];
            match &shared {
                Some(shared) => shared.scaled(fit.covariance[(0, 0)].max(0.0)),
                None => {
                    let listener_moments = design.listener_moments(position);
                    Precision::from_moments(&listener_moments, &fit::inverse(&listener_moments, &fit.covariance))
                }
            }
        })
    });
    let poor = |position: &usize| {
        let known = precisions[*position].as_ref().filter(|_| standings[*position].status == Status::Statistical);
        known.is_some_and(|precision| precision.sound().is_none())
    };
    let collinear: Vec<usize> = (0..listeners.len()).filter(poor).map(|position| listeners[position]).collect();
    if !collinear.is_empty() {
        warnings.push(format!(
            "what these listeners may hear is nearly collinear, so single weights mean little even where their sums do: {}",
            panel.roster().list(&collinear)
        ));
    }
    let mut errors = vec![vec![0.0; ratios]; agents];
    for (position, &agent) in listeners.iter().enumerate().filter(|(_, agent)| !exact[**agent]) {
        let (evidence, covariance) = (model.evidence.agent(agent), &fits[position].covariance);
        let found = evidence_errors(precisions[position].as_ref(), covariance, steps - 1, evidence, vote);
        errors[agent] = found.into_iter().map(|error| error / adaptation).collect();
    }
    let column = |agent: usize| {
        let name = panel.roster().agents()[agent].clone();
        let Ok(position) = listeners.binary_search(&agent) else {
            return ColumnDiagnostics::statistical(&name, 0);
        };
        let Standing { status, rank, .. } = standings[position];
        match splits[position].as_ref().filter(|split| split.certified) {
            Some(split) => ColumnDiagnostics {
                agent: name,
                status: Status::Certified,
                rank,
                condition: Some(split.condition),
                weight_error: Some(0.0),
            },
            None => ColumnDiagnostics {
                agent: name,
                status,
                rank,
                condition: precisions[position].as_ref().and_then(|precision| precision.condition),
                weight_error: (precisions[position].as_ref())
                    .and_then(Precision::sound)
                    .map(|precision| precision.weight_error / sum),
            },
        }
    };
    model.diagnostics = Diagnostics {
        columns: (0..agents).map(column).collect(),
        column_sum_spread: Some(fit::spread(fits.iter().zip(&splits).map(|(fit, split)| {
            let certain = split.as_ref().filter(|split| split.certified);
            certain.map_or(fit.vote.0, |split| split.weights.iter().sum())
        }))),
        evidence_steps: Some(steps - 1),
        evidence_errors: Some(errors),
        steps: Some(steps),
        warnings,
        ..Diagnostics::default()
    };
    Ok(model)
}

/// Variance of the sum of weights that the listeners agree on; a median is this much less sure than a mean.
pub(crate) fn variance_of_the_vote(fits: &[Fit]) -> f64 {
    std::f64::consts::FRAC_PI_2 / fits.iter().map(|fit| fit.vote.1).sum::<f64>()
}

/// Of an agent that never moves nothing private is known: its evidence is nil rather than its opinion.
pub(crate) fn silence_the_still(model: &mut Model, distinct: &DistinctAgents) -> Result<(), Error> {
    let (agents, ratios) = (model.evidence.agents(), model.evidence.ratios());
    let row = |agent: usize| match distinct.constant[agent] {
        true => vec![0.0; ratios],
        false => model.evidence.agent(agent).to_vec(),
    };
    model.evidence = Evidence::from_rows((0..agents).flat_map(row).collect(), agents, ratios)?;
    Ok(())
}

/// The splits of all listeners that can be afforded, with the certificates that chance, grids, repetition or copies
/// could have written struck out; and how many listeners were left out.
pub(crate) fn splits(
    panel: &Panel,
    means: &Means,
    design: &Regressors<'_>,
    fits: &[Fit],
    sum: f64,
    params: &WhitenedParams,
) -> Result<(Vec<Option<Split>>, usize), Error> {
    let ratios = panel.ratios();
    let sizes: Vec<usize> = (0..fits.len()).map(|position| design.regressors(position).len()).collect();
    let (affordable, left_out) = affordable(fits, &sizes, (panel.steps() - 1) * ratios, params.budget);
    let data = transitions_of(panel, means);
    // Exact relations among numbers on a grid, or among repeated ones, are no sign of anything.
    let (coarse, repeats) = (on_a_grid(panel.cells()), repeats(panel));
    let stage = progress::stage("looking for symbols", affordable.len() as u64);
    let found: Vec<(usize, Option<Split>)> = affordable
        .into_par_iter()
        .map(|position| {
            progress::check()?;
            let (listener, fit) = (design.listeners[position], &fits[position]);
            let speakers = design.regressors(position);
            let start = fit::constrained(&design.listener_moments(position), fit, sum, params)
                .map_or_else(|| fit.weights.clone(), |fit| fit.weights);
            let found = |mix: &Mat<f64>| symbols::split(&data, listener, speakers, &start, mix, sum);
            let mut split = found(&fit::mixing(&fit.covariance));
            if ratios > 1 && !split.as_ref().is_some_and(|split| split.certified) {
                // Blurred beliefs drown the quiet contrasts: weigh all hypotheses alike.
                let second = found(&Mat::identity(ratios, ratios));
                let clarity = |split: &Option<Split>| split.as_ref().map_or(0.0, |split| split.separation);
                split = if clarity(&second) > clarity(&split) { second } else { split };
            }
            if let Some(split) = &mut split {
                let mut heard = speakers.iter().zip(&split.weights).filter(|(_, weight)| weight.abs() > 1e-9);
                let copied = heard.any(|(&speaker, _)| design.copied(speaker));
                split.certified &= !coarse && !copied && repeats[listener] <= MOST_REPEATS;
            }
            stage.advance();
            progress::check().map(|()| (position, split))
        })
        .collect::<Result<_, Error>>()?;
    let mut splits: Vec<Option<Split>> = vec![None; fits.len()];
    found.into_iter().for_each(|(position, split)| splits[position] = split);
    if design.someone_never_moves() {
        // What a listener hears of an agent that never moves hides in the constant, and its weights sum to less. Only
        // those that leave nothing unexplained stay certified: the largest sum, if two agree on it.
        let total = |split: &Split| split.weights.iter().sum::<f64>();
        let sums: Vec<f64> = splits.iter().flatten().filter(|split| split.certified).map(total).collect();
        let largest = sums.iter().copied().fold(f64::MIN, f64::max);
        let whole = params.adaptation.map_or(largest, |given| 1.0 - given);
        let same = |sum: f64| (sum - whole).abs() <= SAME_SUM;
        let agreed = params.adaptation.is_some() || sums.iter().filter(|sum| same(**sum)).count() >= 2;
        splits.iter_mut().flatten().for_each(|split| split.certified &= agreed && same(total(split)));
    }
    Ok((splits, left_out))
}

/// What the splits say of δ, sorted: the certified ones if there are any, otherwise those clearly apart.
fn votes(splits: &[Option<Split>]) -> Vec<f64> {
    let exact = splits.iter().flatten().any(|split| split.certified);
    let trusted = |split: &&Split| split.certified || (!exact && split.constrained.is_some());
    let vote = |split: &Split| 1.0 - split.weights.iter().sum::<f64>();
    let mut votes: Vec<f64> = splits.iter().flatten().filter(trusted).map(vote).collect();
    votes.sort_by(f64::total_cmp);
    votes
}

/// The columns side by side; an agent that never moves listens to itself.
pub(crate) fn combine(
    design: &Regressors<'_>,
    distinct: &DistinctAgents,
    weights: &[Vec<f64>],
    sum: f64,
    agents: usize,
    sparse: bool,
) -> Result<Combination, Error> {
    let still = (0..agents).filter(|&agent| distinct.constant[agent]).map(|agent| (agent, agent, 1.0));
    let heard = design.listeners.iter().enumerate().flat_map(|(position, &listener)| {
        let speakers = design.regressors(position).iter().zip(&weights[position]);
        let shared = speakers.flat_map(move |(&speaker, weight)| distinct.share(speaker, weight / sum));
        shared.map(move |(speaker, weight)| (speaker, listener, weight))
    });
    if sparse {
        return Combination::from_triplets(
            still.chain(heard).filter(|(_, _, weight)| *weight != 0.0).collect(),
            agents,
        );
    }
    let mut columns = vec![0.0; agents * agents];
    still.chain(heard).for_each(|(speaker, listener, weight)| columns[listener * agents + speaker] = weight);
    Combination::from_columns(columns, agents)
}

impl WhitenedParams {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(adaptation) = self.adaptation {
            model::check_adaptation(adaptation)?;
        }
        require(self.ridge >= 0.0 && self.ridge.is_finite(), "ridge", self.ridge, "zero or more")?;
        require(self.rounds >= 1, "rounds", self.rounds, "at least 1")
    }
}

/// Whether a support speaks of these agents.
pub(crate) fn check_support(agents: usize, support: Option<&[Vec<usize>]>) -> Result<(), Error> {
    let Some(support) = support else { return Ok(()) };
    if support.len() == agents && support.iter().flatten().all(|&speaker| speaker < agents) {
        return Ok(());
    }
    Err(Error::Shape {
        what: "support",
        met: format!("{} lists", support.len()),
        wanted: format!("{agents} lists of indices below that"),
    })
}

fn check(panel: &Panel, params: &WhitenedParams) -> Result<(), Error> {
    params.check()?;
    if panel.steps() < 3 {
        return Err(Error::NotReady { seen: panel.steps(), needed: 3 });
    }
    check_support(panel.agents(), params.support.as_deref())?;
    let size = panel.agents() * panel.ratios();
    if params.support.is_none() {
        super::moments::affordable(size, 1, "give a graph of who may hear whom, or fewer agents")?;
    }
    if !panel.is_complete() {
        return Err(Error::Undefined {
            what: "the whitened fit",
            reason: "the panel has silent cells; fill them first (carry forward)".into(),
        });
    }
    Ok(())
}

/// Mean past and mean present of every agent and ratio, ratio by ratio.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Means {
    pub(crate) fn from_panel(panel: &Panel) -> Self {
        let width = panel.agents() * panel.ratios();
        let cells = panel.cells();
        let count = (panel.steps() - 1) as f64;
        // Relative to the first frame, so that a large mean eats no digits.
        let mean = |frames: &[f64]| {
            let mut sums = vec![0.0; width];
            for frame in frames.chunks_exact(width) {
                sums.iter_mut().zip(frame).zip(cells).for_each(|((sum, value), origin)| *sum += value - origin);
            }
            sums.iter().zip(cells).map(|(sum, origin)| sum / count + origin).collect()
        };
        Means { x: mean(&cells[..cells.len() - width]), y: mean(&cells[width..]) }
    }

    fn from_moments(moments: &Moments) -> Self {
        Means { x: moments.mean_x(), y: moments.mean_y() }
    }
}

fn transitions_of(panel: &Panel, means: &Means) -> Transitions {
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    let centred = |first: usize, mean: &[f64]| {
        let frames = panel.block(first..first + steps - 1);
        let mut out = Mat::zeros((steps - 1) * ratios, agents);
        out.par_col_iter_mut().enumerate().for_each(|(agent, series)| {
            for (row, value) in series.iter_mut().enumerate() {
                *value = frames[(agent, row)] - mean[row % ratios * agents + agent];
            }
        });
        out
    };
    Transitions {
        x: centred(0, &means.x),
        y: centred(1, &means.y),
        ratios,
        largest: panel.cells().iter().fold(0.0f64, |most, value| most.max(value.abs())),
    }
}

/// Positions of the listeners whose symbols can be afforded, the noisiest fits first, and how many were left out.
fn affordable(fits: &[Fit], sizes: &[usize], rows: usize, budget: f64) -> (Vec<usize>, usize) {
    // A start costs about ten solves and residuals; half of the starts is a fair guess of how many are needed.
    let cost = |position: usize| {
        let (size, rows) = (sizes[position] as f64, rows as f64);
        rows * size * size + 60.0 * (size.powi(3) / 3.0 + rows * size)
    };
    let mut order: Vec<usize> = (0..fits.len()).collect();
    let noise = |position: usize| -> f64 {
        let covariance = &fits[position].covariance;
        (0..covariance.nrows()).map(|index| covariance[(index, index)]).sum()
    };
    order.sort_by(|&a, &b| noise(b).total_cmp(&noise(a)).then(a.cmp(&b)));
    let mut left = budget;
    order.retain(|&position| {
        left -= cost(position);
        left >= 0.0
    });
    let left_out = fits.len() - order.len();
    (order, left_out)
}

/// A certified column in the shape the constraint asks for: rounding below zero is zero.
pub(crate) fn tidy(weights: &[f64], constraint: Constraint, sum: f64) -> Vec<f64> {
    /// A weight below this much of zero is no rounding, and stays.
    const NEGATIVE: f64 = -1e-6;
    if constraint == Constraint::Free || weights.iter().any(|weight| *weight < NEGATIVE) {
        return weights.to_vec();
    }
    let total: f64 = weights.iter().map(|weight| weight.max(0.0)).sum();
    weights.iter().map(|weight| weight.max(0.0) * sum / total).collect()
}

/// Fits moments, such as those of resampled stretches: what is exact in `model` stays as it is there.
pub(crate) fn estimate(
    moments: &Moments,
    distinct: &DistinctAgents,
    params: &WhitenedParams,
    model: Option<&Model>,
) -> Result<Estimate, Error> {
    let agents = moments.agents();
    let exact = |agent: usize| {
        let column = |model: &Model| model.diagnostics.columns.get(agent).map(|column| column.status);
        model.is_some_and(|model| column(model) == Some(Status::Certified))
    };
    let design = Regressors::from_moments(moments, distinct, params.support.as_deref(), (0..agents).collect());
    let fits = fit::fits(&design, params)?;
    let settled = model.filter(|_| (0..agents).any(exact)).map(|model| model.adaptation);
    let adaptation = params.adaptation.or(settled).unwrap_or_else(|| fit::voted(fits.iter().map(|fit| fit.vote)));
    let sum = 1.0 - adaptation;
    let weights = design.each_watched("weighing listeners", |position| {
        let (fit, agent) = (&fits[position], design.listeners[position]);
        if let Some(model) = model.filter(|_| exact(agent)) {
            let speakers = design.regressors(position).iter();
            let whole =
                |speaker: &usize| distinct.copies[*speaker].iter().map(|&copy| model.combination.weight(copy, agent));
            return speakers.map(|speaker| sum * whole(speaker).sum::<f64>()).collect();
        }
        match params.constraint {
            Constraint::Free => fit.weights.clone(),
            Constraint::Simplex => fit::constrained(&design.listener_moments(position), fit, sum, params)
                .map_or_else(|| fit.weights.clone(), |fit| fit.weights),
        }
    })?;
    let combination = combine(&design, distinct, &weights, sum, agents, params.support.is_some())?;
    let mut rows = mean_evidence(&Means::from_moments(moments), &combination, adaptation, moments.ratios());
    for agent in (0..agents).filter(|&agent| exact(agent)) {
        let known = model.filter(|model| {
            let likelihood = model.likelihoods.as_ref().map(|likelihoods| &likelihoods[agent]);
            likelihood.is_some_and(|likelihood| *likelihood != Likelihood::Unknown)
        });
        if let Some(model) = known {
            rows[agent * moments.ratios()..(agent + 1) * moments.ratios()].copy_from_slice(model.evidence.agent(agent));
        }
    }
    Ok(Estimate { combination, evidence: Evidence::from_rows(rows, agents, moments.ratios())? })
}

/// L̂ = (ȳ − (1−δ)Aᵀx̄)/δ, agent by agent.
fn mean_evidence(means: &Means, combination: &Combination, adaptation: f64, ratios: usize) -> Vec<f64> {
    let agents = combination.agents();
    let mut evidence = vec![0.0; agents * ratios];
    for ratio in 0..ratios {
        let heard = combination.hear(&means.x[ratio * agents..(ratio + 1) * agents]);
        for agent in 0..agents {
            let mean = means.y[ratio * agents + agent];
            evidence[agent * ratios + ratio] = (mean - (1.0 - adaptation) * heard[agent]) / adaptation;
        }
    }
    evidence
}

/// The model with evidence as means over all steps.
fn assemble(
    panel: &Panel,
    means: &Means,
    combination: Combination,
    adaptation: f64,
    params: &WhitenedParams,
) -> Result<Model, Error> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let evidence = mean_evidence(means, &combination, adaptation, ratios);
    Ok(Model {
        truth: Some(model::settled(panel, adaptation)),
        innovation: Some(model::innovation(panel, &combination, adaptation)?),
        roster: panel.roster().clone(),
        combination,
        evidence: Evidence::from_rows(evidence, agents, ratios)?,
        adaptation,
        method: Method::Whitened(params.clone()),
        likelihoods: None,
        diagnostics: Diagnostics::default(),
        track: Track::default(),
    })
}

/// How the mean of the regressors stands in their information matrix G, for one ratio.
#[derive(Debug, Clone, Copy)]
struct Lever {
    /// x̄ᵀG⁻¹x̄ less the part along the sum of the weights, which is fixed.
    across: f64,
    /// x̄ averaged with the weights of G⁻¹1.
    level: f64,
}

/// How surely one listener's weights are known, from its information matrix G.
#[derive(Debug, Clone)]
pub(crate) struct Precision {
    /// Of G scaled to unit diagonal.
    pub(crate) condition: Option<f64>,
    /// Root mean square standard error of (1−δ) times a weight.
    pub(crate) weight_error: f64,
    levers: Vec<Lever>,
}

/// Probes of the trace of an inverse, at most: good to a few parts in a hundred.
const PROBES: usize = 64;

impl Precision {
    /// Itself, unless what is heard is so collinear that single errors mean nothing.
    pub(crate) fn sound(&self) -> Option<&Self> {
        self.condition.is_some_and(|condition| condition <= COLLINEAR).then_some(self)
    }

    pub(crate) fn from_moments(listener_moments: &ListenerMoments<'_>, weights: &Mat<f64>) -> Self {
        let ListenerMoments { moments, regressors, .. } = listener_moments;
        let (agents, ratios, size) = (moments.agents(), moments.ratios(), regressors.len());
        let (mut gram, _) = fit::normal(listener_moments, weights);
        fit::lift(&mut gram, 1e-12);
        let Some(llt) = simplex::factor(&gram) else {
            return Precision { condition: None, weight_error: 0.0, levers: Vec::new() };
        };
        let along = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        // The trace of the inverse: exactly when there are few regressors, otherwise by probes of random signs.
        let count = size.min(PROBES);
        let mut signs = ChaCha8Rng::seed_from_u64(size as u64);
        let probes = Mat::from_fn(size, count, |row, column| match () {
            () if size == count => f64::from(row == column),
            () if signs.random::<bool>() => 1.0,
            () => -1.0,
        });
        let solved = llt.solve(&probes);
        let probed = (0..count).map(|index| along(solved.col_as_slice(index), probes.col_as_slice(index))).sum::<f64>();
        let trace = if size == count { probed } else { probed / count as f64 };
        let mean_x = moments.mean_x();
        let ones = vec![1.0; size];
        let total = along(&simplex::solve(&llt, &ones), &ones);
        let lever = |ratio: usize| {
            let mean: Vec<f64> = regressors.iter().map(|&speaker| mean_x[ratio * agents + speaker]).collect();
            let solved = simplex::solve(&llt, &mean);
            let crossed = along(&solved, &ones);
            Lever { across: (along(&solved, &mean) - crossed * crossed / total).max(0.0), level: crossed / total }
        };
        Precision {
            condition: fit::condition(&gram, &llt),
            weight_error: (trace / size as f64).sqrt(),
            levers: (0..ratios).map(lever).collect(),
        }
    }

    /// For residuals of this variance instead of unit variance.
    fn scaled(&self, noise: f64) -> Self {
        let lever = |lever: &Lever| Lever { across: noise * lever.across, ..*lever };
        Precision {
            weight_error: noise.sqrt() * self.weight_error,
            levers: self.levers.iter().map(lever).collect(),
            ..*self
        }
    }
}

/// Standard errors of δ times the evidence of one listener: of the mean residual, of the weights whose sum is fixed, and
/// of that sum, whose variance is `vote`.
pub(crate) fn evidence_errors(
    precision: Option<&Precision>,
    covariance: &Mat<f64>,
    transitions: usize,
    evidence: &[f64],
    vote: f64,
) -> Vec<f64> {
    (0..covariance.nrows())
        .map(|ratio| {
            let mean = covariance[(ratio, ratio)].max(0.0) / transitions as f64;
            let lever = precision.and_then(|precision| precision.levers.get(ratio));
            let Lever { across, level } = lever.copied().unwrap_or(Lever { across: 0.0, level: 0.0 });
            (mean + across + vote * (level - evidence[ratio]).powi(2)).sqrt()
        })
        .collect()
}

/// Replaces means by what the recovered private models say exactly, where they are, and says where.
fn private_models(
    model: &mut Model,
    panel: &Panel,
    means: &Means,
    listeners: &[usize],
    splits: &[Option<Split>],
    warnings: &mut Vec<String>,
) -> Result<Vec<bool>, Error> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let mut found: Vec<Option<PrivateLikelihoods>> = vec![None; agents];
    let mut unseen = Vec::new();
    for (&listener, split) in listeners.iter().zip(splits) {
        let Some(split) = split.as_ref().filter(|split| split.certified) else { continue };
        if split.single {
            unseen.push(listener);
            continue;
        }
        // The centres are residuals of centred data; add what the means leave.
        let base: Vec<f64> = (0..ratios)
            .map(|ratio| {
                let heard: f64 = (model.combination.listener(listener))
                    .map(|(speaker, weight)| weight * means.x[ratio * agents + speaker])
                    .sum();
                means.y[ratio * agents + listener] - (1.0 - model.adaptation) * heard
            })
            .collect();
        let ratio = |(centre, base): (&f64, &f64)| (centre + base) / model.adaptation;
        let ratios = split.centres.iter().map(|centre| centre.iter().zip(&base).map(ratio).collect()).collect();
        found[listener] = private_likelihoods::recover(ratios, split.counts());
    }
    if !unseen.is_empty() {
        warnings.push(format!(
            "only one private symbol of these agents occurred, so their likelihoods are not identified and their evidence is a mean: {}",
            panel.roster().list(&unseen)
        ));
    }
    let exact = found.iter().map(Option::is_some).collect();
    if found.iter().all(Option::is_none) {
        return Ok(exact);
    }
    let truth = private_likelihoods::likeliest(&found, ratios + 1);
    let mut evidence = Vec::with_capacity(agents * ratios);
    let mut innovation = Vec::with_capacity(agents * ratios * ratios);
    for (agent, atoms) in found.iter().enumerate() {
        match atoms {
            Some(atoms) => {
                let (mean, covariance) = atoms.moments(truth);
                evidence.extend(mean);
                innovation.extend(covariance);
            }
            None => {
                evidence.extend_from_slice(model.evidence.agent(agent));
                match &model.innovation {
                    Some(known) => innovation.extend_from_slice(known.agent(agent)),
                    None => innovation.extend(std::iter::repeat_n(0.0, ratios * ratios)),
                }
            }
        }
    }
    model.evidence = Evidence::from_rows(evidence, agents, ratios)?;
    model.innovation = Some(Innovation::from_cells(innovation, agents, ratios)?);
    model.truth =
        Some(TrueHypothesis { hypothesis: truth, agreement: model::agreement(panel, model.adaptation, truth) });
    let fallen: Vec<usize> =
        (0..agents).filter(|agent| found[*agent].is_none() && unseen.binary_search(agent).is_err()).collect();
    if !fallen.is_empty() {
        warnings
            .push(format!("private likelihoods not identified, fell back to means: {}", panel.roster().list(&fallen)));
    }
    let known =
        |atoms: Option<PrivateLikelihoods>| atoms.map_or(Likelihood::Unknown, PrivateLikelihoods::into_likelihood);
    model.likelihoods = Some(found.into_iter().map(known).collect());
    Ok(exact)
}

/// Rounds of reweighting for a fit that is only to forecast.
const HELD_OUT_ROUNDS: usize = 3;

/// Forecasts of the last fifth of a panel by a fit that has seen only the rest.
///
/// With `params.symbols` they are looked for as well, for networks that are exact.
pub fn held_out(panel: &Panel, params: &WhitenedParams) -> Result<super::forecast::Forecast, Error> {
    let steps = panel.steps();
    let split = steps - steps.div_ceil(5);
    let seen = panel.slice(0..split)?;
    // Reweighting beyond a few rounds moves digits that no forecast shows.
    let rounds = params.rounds.min(HELD_OUT_ROUNDS);
    let model = whitened(&seen, &WhitenedParams { rounds, ..params.clone() })?;
    super::forecast::forecast(panel, split, &model)
}
