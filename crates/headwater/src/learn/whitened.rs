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

use super::atoms::{self, Atoms};
use super::gsl::Constraint;
use super::moments::Moments;
use super::simplex;
use super::symbols::{self, Split, Transitions};
use crate::error::require;
use crate::model::{self, Column, Diagnostics, Innovation, Likelihood, Method, Status, Truth};
use crate::{Combination, Error, Evidence, Model, Panel};
use faer::{Mat, Side};
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
pub struct Whitened {
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
    pub budget: f64,
    /// For each listener the speakers it may hear.
    pub support: Option<Vec<Vec<usize>>>,
}

impl Default for Whitened {
    fn default() -> Self {
        Whitened {
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

/// δ̂ is clipped to this.
const ADAPTATION: std::ops::RangeInclusive<f64> = 1e-4..=0.99;

/// Ridge of the first round, which weighs all hypotheses alike, relative to the mean diagonal.
const FIRST_RIDGE: f64 = 1e-6;

/// Rounds of reweighting during the constrained refit.
const REFITS: usize = 3;

/// Smallest eigenvalue of a residual covariance that counts, relative to its largest.
const QUIET: f64 = 1e-10;

/// The same relative to the variance that was explained: rounding of the moments.
const ROUNDING: f64 = 1e-15;

/// Eigenvalues of a residual covariance above this share of the largest make its rank.
const RANK: f64 = 1e-8;

/// Noise-free information this ill conditioned identifies nothing.
const IDENTIFIED: f64 = 1e-11;

/// Ratio of the largest to the smallest weight of hypotheses in the search for symbols.
const MIX: f64 = 1e8;

/// A series that moves by less than this, relative to the largest belief, does not move.
const STILL: f64 = 1e-12;

/// Share of steps at which an agent may say exactly what it said before and still be certified.
const MOST_REPEATS: f64 = 0.1;

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

/// Share of transitions at which an agent does not move at all.
fn repeats(panel: &Panel, agent: usize) -> f64 {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let cell = |step: usize, ratio: usize| panel.cells()[(step * ratios + ratio) * agents + agent];
    let still = |step: &usize| (0..ratios).all(|ratio| cell(*step, ratio) == cell(step - 1, ratio));
    (1..panel.steps()).filter(still).count() as f64 / (panel.steps() - 1) as f64
}

/// What the first stage knows of one listener.
#[derive(Debug, Clone)]
struct Fit {
    /// (1−δ) times the column, by position in the regressors.
    weights: Vec<f64>,
    /// Residual covariance, H × H.
    covariance: Mat<f64>,
    /// 1ᵀb and its precision 1/(1ᵀG⁻¹1).
    vote: (f64, f64),
}

/// A network fitted to moments alone, without a search for symbols.
#[derive(Debug, Clone)]
pub(crate) struct Estimate {
    pub(crate) combination: Combination,
    pub(crate) evidence: Evidence,
}

/// Which agents can be told apart.
#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    /// Speakers that enter as regressors: neither constant nor the copy of an earlier one.
    regressors: Vec<usize>,
    constant: Vec<bool>,
    /// For each agent the first one with the same series.
    original: Vec<usize>,
    /// For each original all that say the same, itself included.
    copies: Vec<Vec<usize>>,
}

/// Learns the network of a complete panel at once.
///
/// Errors: a panel with silence, fewer than three steps, all agents constant, parameters out of range. Cost: 3N²H² a
/// step for the moments, then for H = 1 one factorisation of N³/3, otherwise about ten of them per listener.
///
/// ```
/// use headwater::{learn::whitened::{whitened, Whitened}, simulate::{simulate, WorldParams}};
/// let (panel, truth) = simulate(&WorldParams { steps: 80, ..WorldParams::default() }).unwrap();
/// let model = whitened(&panel, &Whitened::default()).unwrap();
/// let error: f64 = model.combination.to_columns().iter().zip(truth.combination.to_columns())
///     .map(|(met, wanted)| (met - wanted).powi(2)).sum();
/// assert!(error < 1e-9); // the paper's learner is at 3.5 here
/// ```
pub fn whitened(panel: &Panel, params: &Whitened) -> Result<Model, Error> {
    check(panel, params)?;
    let steps = panel.steps();
    let moments = Moments::of(panel, 1..steps);
    let crowd = Crowd::of(panel, &moments);
    if crowd.regressors.is_empty() {
        return Err(Error::Undefined {
            what: "a network",
            reason: "no agent's beliefs change: there is nothing to learn from".into(),
        });
    }
    let mut warnings = crowd.warnings(panel);
    let agents = panel.agents();
    let listeners: Vec<usize> = (0..agents).filter(|&agent| !crowd.constant[agent]).collect();
    let transitions = (steps - 1) * panel.ratios();
    if transitions < crowd.regressors.len() + panel.ratios() {
        warnings.push(format!(
            "{} transitions of {} log-ratio(s) cannot determine {} weights per listener: without the constraint nothing is identified, and the weights shown are one of many fits",
            steps - 1,
            panel.ratios(),
            crowd.regressors.len()
        ));
    }
    let heard: Vec<Vec<usize>> = match &params.support {
        None => Vec::new(),
        Some(support) => listeners.iter().map(|&listener| crowd.within(&support[listener], listener)).collect(),
    };
    // What the listener at a position may hear.
    let regressors = |position: usize| heard.get(position).unwrap_or(&crowd.regressors).as_slice();
    let fits: Vec<Fit> = if panel.ratios() == 1 && params.support.is_none() {
        single_ratio(&moments, &listeners, &crowd.regressors, params)
    } else {
        let fit = |position: usize| reweighted(&moments, listeners[position], regressors(position), params);
        (0..listeners.len()).into_par_iter().map(fit).collect()
    };
    let mut adaptation = params.adaptation.unwrap_or_else(|| voted(&fits));
    let spread = spread(fits.iter().map(|fit| fit.vote.0));
    let standings: Vec<Standing> =
        (fits.par_iter().enumerate()).map(|(position, fit)| standing(&moments, fit, regressors(position))).collect();

    // Symbols.
    let mut splits: Vec<Option<Split>> = vec![None; listeners.len()];
    if params.symbols {
        let sum = 1.0 - adaptation;
        let sizes: Vec<usize> = (0..listeners.len()).map(|position| regressors(position).len()).collect();
        let (affordable, left_out) = affordable(&fits, &sizes, transitions, params.budget);
        if left_out > 0 {
            warnings.push(format!(
                "the search for symbols was left out for {left_out} of {} listeners: it would go beyond its budget of {:.0e} operations",
                listeners.len(),
                params.budget
            ));
        }
        let data = transitions_of(panel, &moments);
        let found: Vec<(usize, Option<Split>)> = affordable
            .par_iter()
            .map(|&position| {
                let (listener, fit) = (listeners[position], &fits[position]);
                let start = constrained(&moments, listener, fit, regressors(position), sum, params)
                    .map_or_else(|| fit.weights.clone(), |fit| fit.weights);
                let found = |mix: &Mat<f64>| symbols::split(&data, listener, regressors(position), &start, mix, sum);
                let first = found(&mixing(&fit.covariance));
                if first.as_ref().is_some_and(|split| split.certified) || panel.ratios() == 1 {
                    return (position, first);
                }
                // Blurred beliefs drown the quiet contrasts: weigh all hypotheses alike.
                let second = found(&Mat::identity(panel.ratios(), panel.ratios()));
                let clarity = |split: &Option<Split>| split.as_ref().map_or(0.0, |split| split.separation);
                (position, if clarity(&second) > clarity(&first) { second } else { first })
            })
            .collect();
        found.into_iter().for_each(|(position, split)| splits[position] = split);
    }
    // Exact relations among numbers on a grid, or among repeated ones, are no sign of anything.
    let coarse = on_a_grid(panel.cells());
    let repeating: Vec<usize> =
        listeners.iter().copied().filter(|&listener| repeats(panel, listener) > MOST_REPEATS).collect();
    if !repeating.is_empty() {
        warnings.push(format!(
            "these agents often repeat themselves exactly, as when silence is carried forward, so nothing is certified for them: {}",
            panel.roster().list(&repeating)
        ));
    }
    for (position, split) in splits.iter_mut().enumerate() {
        if let Some(split) = split {
            split.certified &= !coarse && repeating.binary_search(&listeners[position]).is_err();
            let mut heard = regressors(position).iter().zip(&split.weights).filter(|(_, weight)| weight.abs() > 1e-9);
            split.certified &= !heard.any(|(&speaker, _)| crowd.copies[speaker].len() > 1);
        }
    }
    let exact = splits.iter().flatten().any(|split| split.certified);
    let trusted = |split: &&Split| split.certified || (!exact && split.constrained.is_some());
    let mut votes: Vec<f64> =
        splits.iter().flatten().filter(trusted).map(|split| 1.0 - split.weights.iter().sum::<f64>()).collect();
    if params.adaptation.is_none() && !votes.is_empty() {
        votes.sort_by(f64::total_cmp);
        adaptation = votes[votes.len() / 2].clamp(*ADAPTATION.start(), *ADAPTATION.end());
    }
    let blurred = splits.iter().flatten().filter(|split| split.constrained.is_some()).count();
    if blurred > 0 {
        warnings.push(format!(
            "the private symbols of {blurred} listeners are clearly apart but blurred, as in rounded beliefs: their weights are fitted within symbols, but not certified"
        ));
    }

    // The columns.
    let sum = 1.0 - adaptation;
    let settled: Vec<Fit> = (0..listeners.len())
        .into_par_iter()
        .map(|position| {
            let fit = &fits[position];
            if let Some(split) = splits[position].as_ref().filter(|split| split.certified) {
                return Fit { weights: tidy(&split.weights, params.constraint, sum), ..fit.clone() };
            }
            if params.constraint == Constraint::Free {
                return fit.clone();
            }
            if let Some(within) = splits[position].as_ref().and_then(|split| split.constrained.as_ref()) {
                // Fitted for the first δ̂; columns sum to one whatever it is.
                return Fit { weights: tidy(within, params.constraint, sum), ..fit.clone() };
            }
            constrained(&moments, listeners[position], fit, regressors(position), sum, params)
                .unwrap_or_else(|| fit.clone())
        })
        .collect();
    let mut columns = vec![0.0; agents * agents];
    for (agent, column) in columns.chunks_exact_mut(agents).enumerate() {
        match listeners.binary_search(&agent) {
            Err(_) => column[agent] = 1.0,
            Ok(position) => {
                for (&speaker, weight) in regressors(position).iter().zip(&settled[position].weights) {
                    crowd.share(speaker, weight / sum, column);
                }
            }
        }
    }
    let doubtful = |position: &usize| {
        !standings[*position].confounded.is_empty() && !splits[*position].as_ref().is_some_and(|split| split.certified)
    };
    let doubtful: Vec<usize> = (0..listeners.len()).filter(doubtful).collect();
    if let Some(&first) = doubtful.first() {
        let of: Vec<usize> = doubtful.iter().map(|&position| listeners[position]).collect();
        warnings.push(format!(
            "the noise-free contrasts of these listeners do not tell all their speakers apart: {} (for {}, not {})",
            panel.roster().list(&of),
            panel.roster().agents()[listeners[first]],
            panel.roster().list(&standings[first].confounded)
        ));
    }
    let dense = Combination::from_columns(columns, agents)?;
    let combination = if params.support.is_some() { dense.to_sparse() } else { dense };
    let mut model = assemble(panel, &moments, combination, adaptation)?;
    let exact = private_models(&mut model, panel, &moments, &listeners, &splits, &mut warnings)?;
    let vote = if params.adaptation.is_some() || !votes.is_empty() {
        0.0
    } else {
        // A median is this much less sure than a mean.
        std::f64::consts::FRAC_PI_2 / fits.iter().map(|fit| fit.vote.1).sum::<f64>()
    };
    let mut errors = vec![vec![0.0; panel.ratios()]; agents];
    let shared = (panel.ratios() == 1 && params.support.is_none()).then(|| {
        let (mut gram, _) = normal(&moments, listeners[0], &Mat::identity(1, 1), &crowd.regressors);
        lift(&mut gram, 1e-12);
        levers(&moments, &gram, &crowd.regressors)
    });
    let shared = shared.flatten();
    let uncertain: Vec<(usize, Vec<f64>)> = (0..listeners.len())
        .into_par_iter()
        .filter(|&position| !exact[listeners[position]])
        .map(|position| {
            let agent = listeners[position];
            let (fit, evidence) = (&fits[position], model.evidence.agent(agent));
            let errors = evidence_errors(&moments, agent, fit, regressors(position), shared.as_deref(), evidence, vote);
            (agent, errors.into_iter().map(|error| error / adaptation).collect())
        })
        .collect();
    uncertain.into_iter().for_each(|(agent, found)| errors[agent] = found);
    model.diagnostics = Diagnostics {
        columns: (0..agents)
            .map(|agent| {
                let (status, rank) = match listeners.binary_search(&agent) {
                    Err(_) => (Status::Statistical, 0),
                    Ok(position) => match &splits[position] {
                        Some(split) if split.certified => (Status::Certified, standings[position].rank),
                        _ => (standings[position].status, standings[position].rank),
                    },
                };
                Column { agent: panel.roster().agents()[agent].clone(), status, rank }
            })
            .collect(),
        column_sum_spread: Some(spread),
        evidence_steps: Some(steps - 1),
        evidence_errors: Some(errors),
        steps: Some(steps),
        warnings,
        ..Diagnostics::default()
    };
    Ok(model)
}

impl Whitened {
    /// What a model was probably learned with: its weights tell whether they were constrained, and to which edges.
    pub fn like(model: &Model) -> Self {
        let signed = model.combination.edges().any(|(_, _, weight)| weight < 0.0);
        let speakers = |listener: usize| model.combination.listener(listener).map(|(speaker, _)| speaker).collect();
        Whitened {
            constraint: if signed { Constraint::Free } else { Constraint::Simplex },
            support: (model.combination.is_sparse()).then(|| (0..model.combination.agents()).map(speakers).collect()),
            ..Whitened::default()
        }
    }

    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(adaptation) = self.adaptation {
            model::check_adaptation(adaptation)?;
        }
        require(self.ridge >= 0.0 && self.ridge.is_finite(), "ridge", self.ridge, "zero or more")?;
        require(self.rounds >= 1, "rounds", self.rounds, "at least 1")
    }
}

fn check(panel: &Panel, params: &Whitened) -> Result<(), Error> {
    params.check()?;
    if panel.steps() < 3 {
        return Err(Error::NotReady { seen: panel.steps(), needed: 3 });
    }
    if let Some(support) = &params.support {
        let fits = support.len() == panel.agents() && support.iter().flatten().all(|&speaker| speaker < panel.agents());
        if !fits {
            return Err(Error::Shape {
                what: "support",
                met: format!("{} lists", support.len()),
                wanted: format!("{} lists of indices below that", panel.agents()),
            });
        }
    }
    if !panel.is_complete() {
        return Err(Error::Undefined {
            what: "the whitened fit",
            reason: "the panel has silent cells; fill them first (carry forward)".into(),
        });
    }
    Ok(())
}

impl Crowd {
    pub(crate) fn of(panel: &Panel, moments: &Moments) -> Self {
        let (agents, ratios) = (panel.agents(), panel.ratios());
        let largest = panel.cells().iter().fold(0.0f64, |most, value| most.max(value.abs()));
        let still = (STILL * largest).powi(2) * moments.weight();
        let moves =
            |agent: usize| (0..ratios).any(|ratio| moments.xx(ratio * agents + agent, ratio * agents + agent) > still);
        let constant: Vec<bool> = (0..agents).map(|agent| !moves(agent)).collect();
        let mut original: Vec<usize> = (0..agents).collect();
        let same = |a: usize, b: usize| {
            let lines = panel.cells().chunks_exact(agents);
            lines.into_iter().all(|line| (line[a] - line[b]).abs() <= STILL * largest)
        };
        for later in 0..agents {
            let twin = (0..later).find(|&earlier| {
                // Equal variances first: most pairs are told apart without a look at the series.
                let close = (0..ratios).all(|ratio| {
                    let (a, b) = (ratio * agents + earlier, ratio * agents + later);
                    let (xx, yy) = (moments.xx(a, a), moments.xx(b, b));
                    (xx - yy).abs() <= 1e-6 * xx.max(yy)
                });
                !constant[later] && original[earlier] == earlier && close && same(earlier, later)
            });
            original[later] = twin.unwrap_or(later);
        }
        let regressors = (0..agents).filter(|&agent| !constant[agent] && original[agent] == agent).collect();
        let mut copies = vec![Vec::new(); agents];
        original.iter().enumerate().for_each(|(agent, &original)| copies[original].push(agent));
        Crowd { regressors, constant, original, copies }
    }

    /// The regressors among the speakers a listener may hear, itself included; a copy counts as its original.
    fn within(&self, speakers: &[usize], listener: usize) -> Vec<usize> {
        let mut heard: Vec<usize> = speakers.iter().chain([&listener]).map(|&speaker| self.original[speaker]).collect();
        heard.sort_unstable();
        heard.dedup();
        heard.retain(|&speaker| !self.constant[speaker]);
        heard
    }

    /// Only the summed weight of identical agents is known; it is shared out evenly.
    fn share(&self, speaker: usize, weight: f64, column: &mut [f64]) {
        let copies = &self.copies[speaker];
        copies.iter().for_each(|&agent| column[agent] = weight / copies.len() as f64);
    }

    fn warnings(&self, panel: &Panel) -> Vec<String> {
        let mut warnings = Vec::new();
        let constant: Vec<usize> = (0..self.constant.len()).filter(|&agent| self.constant[agent]).collect();
        if !constant.is_empty() {
            warnings.push(format!(
                "these agents never change their mind, so nobody can be seen listening to them nor they to anybody: {}",
                panel.roster().list(&constant)
            ));
        }
        for &speaker in self.regressors.iter().filter(|&&speaker| self.copies[speaker].len() > 1) {
            warnings.push(format!(
                "these agents say the same at every step, so only their summed weight is known: {}",
                panel.roster().list(&self.copies[speaker])
            ));
        }
        warnings
    }
}

/// G_k and c_k for given weights of the hypotheses.
fn normal(moments: &Moments, listener: usize, weights: &Mat<f64>, regressors: &[usize]) -> (Mat<f64>, Vec<f64>) {
    let (agents, ratios, size) = (moments.agents(), moments.ratios(), regressors.len());
    let mut gram = Mat::<f64>::zeros(size, size);
    let mut linear = vec![0.0; size];
    for g in 0..ratios {
        for (position, &speaker) in regressors.iter().enumerate() {
            let column = moments.xx_column(g * agents + speaker);
            let out = gram.col_as_slice_mut(position);
            for h in 0..ratios {
                let (weight, block) = (weights[(h, g)], &column[h * agents..(h + 1) * agents]);
                for (out, &row) in out.iter_mut().zip(regressors) {
                    *out += weight * block[row];
                }
            }
        }
        let column = moments.xy_column(g * agents + listener);
        for h in 0..ratios {
            let (weight, block) = (weights[(h, g)], &column[h * agents..(h + 1) * agents]);
            linear.iter_mut().zip(regressors).for_each(|(out, &row)| *out += weight * block[row]);
        }
    }
    (gram, linear)
}

/// Residual covariance of a listener, from the moments.
fn covariance(moments: &Moments, listener: usize, weights: &[f64], regressors: &[usize]) -> Mat<f64> {
    let (agents, ratios) = (moments.agents(), moments.ratios());
    // For each pair of ratios: S b, then bᵀS b; and bᵀC.
    let heard: Vec<Vec<f64>> = (0..ratios)
        .map(|g| {
            let mut sums = vec![0.0; ratios * agents];
            for (&speaker, weight) in regressors.iter().zip(weights).filter(|(_, weight)| **weight != 0.0) {
                let column = moments.xx_column(g * agents + speaker);
                sums.iter_mut().zip(column).for_each(|(sum, value)| *sum += weight * value);
            }
            sums
        })
        .collect();
    let along = |values: &[f64], h: usize| -> f64 {
        regressors.iter().zip(weights).map(|(&speaker, weight)| weight * values[h * agents + speaker]).sum()
    };
    let crossed = |h: usize, g: usize| along(moments.xy_column(g * agents + listener), h);
    Mat::from_fn(ratios, ratios, |h, g| {
        let squares = along(&heard[g], h).midpoint(along(&heard[h], g));
        (moments.yy(listener)[h * ratios + g] - crossed(h, g) - crossed(g, h) + squares) / moments.weight()
    })
}

/// Σ⁻¹ with the eigenvalues of Σ floored.
fn inverse(moments: &Moments, listener: usize, covariance: &Mat<f64>) -> Mat<f64> {
    let ratios = moments.ratios();
    let explained: f64 = (0..ratios).map(|h| moments.yy(listener)[h * ratios + h]).sum::<f64>() / moments.weight();
    powered(covariance, |value, largest| 1.0 / value.max(QUIET * largest).max(ROUNDING * explained))
}

/// Σ^{−1/2} with its condition capped, scaled so that the quietest contrast has weight one.
fn mixing(covariance: &Mat<f64>) -> Mat<f64> {
    powered(covariance, |value, largest| 1.0 / (value / largest).max(1.0 / MIX).sqrt())
}

/// A function of a symmetric matrix: of each eigenvalue and the largest one.
fn powered(matrix: &Mat<f64>, function: impl Fn(f64, f64) -> f64) -> Mat<f64> {
    let size = matrix.nrows();
    let Some((values, vectors)) = eigen(matrix) else { return Mat::identity(size, size) };
    let largest = values[size - 1].max(f64::MIN_POSITIVE);
    let scaled = Mat::from_fn(size, size, |row, column| vectors[(row, column)] * function(values[column], largest));
    scaled * vectors.transpose()
}

/// Eigenvalues, ascending, and eigenvectors of a symmetric matrix.
fn eigen(matrix: &Mat<f64>) -> Option<(Vec<f64>, Mat<f64>)> {
    let found = matrix.self_adjoint_eigen(Side::Lower).ok()?;
    let values = found.S().column_vector();
    Some(((0..matrix.nrows()).map(|index| values[index]).collect(), found.U().to_owned()))
}

/// Adds a ridge relative to the mean diagonal.
fn lift(gram: &mut Mat<f64>, ridge: f64) {
    let size = gram.nrows();
    let mean = (0..size).map(|index| gram[(index, index)]).sum::<f64>() / size as f64;
    (0..size).for_each(|index| gram[(index, index)] += ridge * mean);
}

/// H = 1: all G_k are multiples of one matrix, so one factorisation serves every listener.
fn single_ratio(moments: &Moments, listeners: &[usize], regressors: &[usize], params: &Whitened) -> Vec<Fit> {
    let unit = Mat::from_fn(1, 1, |_, _| 1.0);
    let (mut gram, _) = normal(moments, listeners[0], &unit, regressors);
    lift(&mut gram, params.ridge.max(1e-14));
    let size = regressors.len();
    let factored = simplex::factor(&gram);
    let targets = Mat::from_fn(size, listeners.len(), |row, column| moments.xy(regressors[row], listeners[column]));
    let solved = factored.as_ref().map(|llt| faer::prelude::Solve::solve(llt, &targets));
    let products = solved.as_ref().map(|solved| &gram * solved);
    let precision = factored.as_ref().map_or(0.0, |llt| simplex::solve(llt, &vec![1.0; size]).iter().sum::<f64>());
    (listeners.par_iter().enumerate())
        .map(|(position, &listener)| {
            let weights: Vec<f64> = match &solved {
                Some(solved) => solved.col_as_slice(position).to_vec(),
                None => vec![0.0; size],
            };
            // yᵀy − 2bᵀc + bᵀGb, the last from one product for all listeners.
            let crossed = |values: &[f64]| weights.iter().zip(values).map(|(a, b)| a * b).sum::<f64>();
            let (target, product) =
                (targets.col_as_slice(position), products.as_ref().map(|p| p.col_as_slice(position)));
            let squares = product.map_or(0.0, crossed);
            let left = (moments.yy(listener)[0] - 2.0 * crossed(target) + squares) / moments.weight();
            let residual = Mat::from_fn(1, 1, |_, _| left);
            let noise = left.max(f64::MIN_POSITIVE);
            Fit { vote: (weights.iter().sum(), 1.0 / (noise * precision)), weights, covariance: residual }
        })
        .collect()
}

/// Feasible generalised least squares of one listener.
fn reweighted(moments: &Moments, listener: usize, regressors: &[usize], params: &Whitened) -> Fit {
    let (ratios, size) = (moments.ratios(), regressors.len());
    let mut weights_of = Mat::<f64>::identity(ratios, ratios);
    let nothing = vec![0.0; size];
    let covariance_of = covariance(moments, listener, &nothing, regressors);
    let mut fit = Fit { weights: nothing, covariance: covariance_of, vote: (0.0, 0.0) };
    for round in 0..params.rounds {
        let (mut gram, linear) = normal(moments, listener, &weights_of, regressors);
        lift(&mut gram, if round == 0 { FIRST_RIDGE.max(params.ridge) } else { params.ridge });
        let Some(llt) = simplex::factor(&gram) else { break };
        let weights = simplex::solve(&llt, &linear);
        let ones: f64 = simplex::solve(&llt, &vec![1.0; size]).iter().sum();
        let moved = weights.iter().zip(&fit.weights).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
        let covariance = covariance(moments, listener, &weights, regressors);
        weights_of = inverse(moments, listener, &covariance);
        fit = Fit { vote: (weights.iter().sum(), 1.0 / ones), weights, covariance };
        if moved < 1e-13 {
            break;
        }
    }
    fit
}

/// The fit under b ≥ 0, 1ᵀb = sum, reweighted a few times. `None` when it cannot be had.
fn constrained(
    moments: &Moments,
    listener: usize,
    fit: &Fit,
    regressors: &[usize],
    sum: f64,
    params: &Whitened,
) -> Option<Fit> {
    let mut fit = fit.clone();
    let refits = if moments.ratios() == 1 { 1 } else { REFITS };
    for _ in 0..refits {
        let weights_of = inverse(moments, listener, &fit.covariance);
        let (mut gram, linear) = normal(moments, listener, &weights_of, regressors);
        lift(&mut gram, params.ridge.max(1e-14));
        let weights = simplex::on_simplex(&gram, &linear, sum, &fit.weights)?;
        let covariance = covariance(moments, listener, &weights, regressors);
        fit = Fit { weights, covariance, ..fit };
    }
    Some(fit)
}

/// 1 minus the weighted median of the column sums.
fn voted(fits: &[Fit]) -> f64 {
    let mut votes: Vec<(f64, f64)> =
        fits.iter().map(|fit| fit.vote).filter(|(sum, weight)| sum.is_finite() && *weight > 0.0).collect();
    votes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = votes.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut passed = 0.0;
    for (sum, weight) in &votes {
        passed += weight;
        if passed >= half {
            return (1.0 - sum).clamp(*ADAPTATION.start(), *ADAPTATION.end());
        }
    }
    *ADAPTATION.start()
}

fn spread(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().fold(f64::MIN, f64::max) - values.fold(f64::MAX, f64::min)
}

/// What the noise-free contrasts of one listener say.
#[derive(Debug, Clone)]
struct Standing {
    status: Status,
    /// Rank of the residual covariance.
    rank: usize,
    /// Speakers that the noise-free contrasts do not tell apart.
    confounded: Vec<usize>,
}

/// Up to this many regressors it is worked out who is confounded with whom.
const NAMED: usize = 300;

/// Whether noise-free contrasts determine the column.
fn standing(moments: &Moments, fit: &Fit, regressors: &[usize]) -> Standing {
    let ratios = moments.ratios();
    let statistical = |rank| Standing { status: Status::Statistical, rank, confounded: Vec::new() };
    let Some((values, vectors)) = eigen(&fit.covariance) else { return statistical(ratios) };
    let rank = values.iter().filter(|value| **value > RANK * values[ratios - 1]).count();
    if rank == ratios {
        return statistical(rank);
    }
    let quiet = vectors.subcols(0, ratios - rank);
    let (gram, _) = normal(moments, 0, &(quiet * quiet.transpose()), regressors);
    let size = regressors.len();
    // Scaled to unit diagonal, so that agents of different vigour compare.
    let scale: Vec<f64> = (0..size).map(|index| gram[(index, index)].max(f64::MIN_POSITIVE).sqrt()).collect();
    let scaled = Mat::from_fn(size, size, |row, column| gram[(row, column)] / (scale[row] * scale[column]));
    let well = scaled.llt(Side::Lower).is_ok_and(|llt| {
        // Inverse iteration for the smallest eigenvalue; the largest is between 1 and the size.
        let mut v: Vec<f64> = (0..size).map(|index| 1.0 + (index as f64 * 0.618).fract()).collect();
        let mut smallest = f64::INFINITY;
        for _ in 0..8 {
            let norm = v.iter().map(|value| value * value).sum::<f64>().sqrt();
            v.iter_mut().for_each(|value| *value /= norm);
            v = simplex::solve(&llt, &v);
            smallest = 1.0 / v.iter().map(|value| value * value).sum::<f64>().sqrt();
        }
        smallest > IDENTIFIED * size as f64
    });
    if well {
        return Standing { status: Status::Identified, rank, confounded: Vec::new() };
    }
    let mut standing = statistical(rank);
    if let Some((_, vectors)) = (size <= NAMED).then(|| eigen(&scaled)).flatten() {
        let component = |row: usize| vectors[(row, 0)].abs();
        let largest = (0..size).map(component).fold(0.0, f64::max);
        standing.confounded =
            (0..size).filter(|&row| component(row) > 0.3 * largest).map(|row| regressors[row]).collect();
    }
    standing
}

fn transitions_of(panel: &Panel, moments: &Moments) -> Transitions {
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    let centred = |first: usize, mean: &[f64]| {
        let frames = panel.block(first..first + steps - 1);
        Mat::from_fn(agents, (steps - 1) * ratios, |agent, column| {
            frames[(agent, column)] - mean[column % ratios * agents + agent]
        })
    };
    Transitions {
        x: centred(0, &moments.mean_x()),
        y: centred(1, &moments.mean_y()),
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
fn tidy(weights: &[f64], constraint: Constraint, sum: f64) -> Vec<f64> {
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
    crowd: &Crowd,
    params: &Whitened,
    model: Option<&Model>,
) -> Result<Estimate, Error> {
    let agents = moments.agents();
    let listeners: Vec<usize> = (0..agents).filter(|&agent| !crowd.constant[agent]).collect();
    let exact = |agent: usize| {
        let column = |model: &Model| model.diagnostics.columns.get(agent).map(|column| column.status);
        model.is_some_and(|model| column(model) == Some(Status::Certified))
    };
    let heard = |listener: usize| match &params.support {
        None => crowd.regressors.clone(),
        Some(support) => crowd.within(&support[listener], listener),
    };
    let fits: Vec<Fit> = if moments.ratios() == 1 && params.support.is_none() {
        single_ratio(moments, &listeners, &crowd.regressors, params)
    } else {
        listeners.par_iter().map(|&listener| reweighted(moments, listener, &heard(listener), params)).collect()
    };
    let settled = model.filter(|_| (0..agents).any(exact)).map(|model| model.adaptation);
    let adaptation = params.adaptation.or(settled).unwrap_or_else(|| voted(&fits));
    let sum = 1.0 - adaptation;
    let mut columns = vec![0.0; agents * agents];
    columns.par_chunks_exact_mut(agents).enumerate().for_each(|(agent, column)| {
        let Ok(position) = listeners.binary_search(&agent) else {
            column[agent] = 1.0;
            return;
        };
        if let Some(model) = model.filter(|_| exact(agent)) {
            model.combination.listener(agent).for_each(|(speaker, weight)| column[speaker] = weight);
            return;
        }
        let (fit, regressors) = (&fits[position], heard(agent));
        let refitted = match params.constraint {
            Constraint::Free => None,
            Constraint::Simplex => constrained(moments, agent, fit, &regressors, sum, params),
        };
        let weights = refitted.map_or_else(|| fit.weights.clone(), |fit| fit.weights);
        regressors.iter().zip(weights).for_each(|(&speaker, weight)| crowd.share(speaker, weight / sum, column));
    });
    let combination = Combination::from_columns(columns, agents)?;
    let mut rows = mean_evidence(moments, &combination, adaptation);
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
fn mean_evidence(moments: &Moments, combination: &Combination, adaptation: f64) -> Vec<f64> {
    let (agents, ratios) = (moments.agents(), moments.ratios());
    let mut evidence = vec![0.0; agents * ratios];
    let (mean_x, mean_y) = (moments.mean_x(), moments.mean_y());
    for ratio in 0..ratios {
        let heard = combination.hear(&mean_x[ratio * agents..(ratio + 1) * agents]);
        for agent in 0..agents {
            let mean = mean_y[ratio * agents + agent];
            evidence[agent * ratios + ratio] = (mean - (1.0 - adaptation) * heard[agent]) / adaptation;
        }
    }
    evidence
}

/// The model with evidence as means over all steps.
fn assemble(panel: &Panel, moments: &Moments, combination: Combination, adaptation: f64) -> Result<Model, Error> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let evidence = mean_evidence(moments, &combination, adaptation);
    Ok(Model {
        truth: Some(model::settled(panel, adaptation)),
        innovation: Some(model::innovation(panel, &combination, adaptation)?),
        roster: panel.roster().clone(),
        combination,
        evidence: Evidence::from_rows(evidence, agents, ratios)?,
        adaptation,
        method: Method::Whitened,
        likelihoods: None,
        diagnostics: Diagnostics::default(),
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

fn levers(moments: &Moments, gram: &Mat<f64>, regressors: &[usize]) -> Option<Vec<Lever>> {
    let (agents, ratios) = (moments.agents(), moments.ratios());
    let llt = simplex::factor(gram)?;
    let mean_x = moments.mean_x();
    let ones = vec![1.0; regressors.len()];
    let along = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let total = along(&simplex::solve(&llt, &ones), &ones);
    let lever = |ratio: usize| {
        let mean: Vec<f64> = regressors.iter().map(|&speaker| mean_x[ratio * agents + speaker]).collect();
        let solved = simplex::solve(&llt, &mean);
        let crossed = along(&solved, &ones);
        Lever { across: (along(&solved, &mean) - crossed * crossed / total).max(0.0), level: crossed / total }
    };
    Some((0..ratios).map(lever).collect())
}

/// Standard errors of δ times the evidence of one listener: of the mean residual, of the weights whose sum is fixed, and
/// of that sum, whose variance is `vote`. `shared` are the levers of a single log-ratio, for residuals of unit variance.
fn evidence_errors(
    moments: &Moments,
    listener: usize,
    fit: &Fit,
    regressors: &[usize],
    shared: Option<&[Lever]>,
    evidence: &[f64],
    vote: f64,
) -> Vec<f64> {
    let own = || {
        let (mut gram, _) = normal(moments, listener, &inverse(moments, listener, &fit.covariance), regressors);
        lift(&mut gram, 1e-12);
        levers(moments, &gram, regressors)
    };
    let noise = fit.covariance[(0, 0)].max(0.0);
    let levers: Option<Vec<Lever>> = match shared {
        Some(shared) => Some(shared.iter().map(|lever| Lever { across: noise * lever.across, ..*lever }).collect()),
        None => own(),
    };
    (0..moments.ratios())
        .map(|ratio| {
            let mean = fit.covariance[(ratio, ratio)].max(0.0) / moments.weight();
            let lever = levers.as_ref().map_or(Lever { across: 0.0, level: 0.0 }, |levers| levers[ratio]);
            (mean + lever.across + vote * (lever.level - evidence[ratio]).powi(2)).sqrt()
        })
        .collect()
}

/// Replaces means by what the recovered private models say exactly, where they are, and says where.
fn private_models(
    model: &mut Model,
    panel: &Panel,
    moments: &Moments,
    listeners: &[usize],
    splits: &[Option<Split>],
    warnings: &mut Vec<String>,
) -> Result<Vec<bool>, Error> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let (mean_x, mean_y) = (moments.mean_x(), moments.mean_y());
    let mut found: Vec<Option<Atoms>> = vec![None; agents];
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
                    .map(|(speaker, weight)| weight * mean_x[ratio * agents + speaker])
                    .sum();
                mean_y[ratio * agents + listener] - (1.0 - model.adaptation) * heard
            })
            .collect();
        found[listener] = atoms::recover(split, &base, model.adaptation);
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
    let truth = atoms::likeliest(&found, ratios + 1);
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
    model.truth = Some(Truth { hypothesis: truth, agreement: model::agreement(panel, model.adaptation, truth) });
    let fallen: Vec<usize> = (0..agents).filter(|agent| found[*agent].is_none() && !unseen.contains(agent)).collect();
    if !fallen.is_empty() {
        warnings
            .push(format!("private likelihoods not identified, fell back to means: {}", panel.roster().list(&fallen)));
    }
    let known = |atoms: Option<Atoms>| atoms.map_or(Likelihood::Unknown, Atoms::into_likelihood);
    model.likelihoods = Some(found.into_iter().map(known).collect());
    Ok(exact)
}

/// Forecasts of the last fifth of a panel by a fit that has seen only the rest; symbols are not looked for.
pub fn held_out(panel: &Panel, params: &Whitened) -> Result<crate::confidence::Forecast, Error> {
    let steps = panel.steps();
    let split = steps - steps.div_ceil(5);
    let seen = panel.slice(0..split)?;
    let model = whitened(&seen, &Whitened { symbols: false, ..params.clone() })?;
    crate::confidence::forecast(panel, split, &model)
}
