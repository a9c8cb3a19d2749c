//! From a model to who drives what the group believes, and why.
//!
//! In: a [`Model`]. Out: centrality × informativeness ([`influence()`]), who made whom think so ([`Attribution`]), the
//! strongest paths, what would change without an agent, how often each agent errs. Which hypothesis is the truth is
//! decided before (`model.truth`) or, for a model that does not say, here.

use crate::combination::{Centrality, add_scaled, dot};
use crate::model::likeliest;
use crate::{Combination, Error, Evidence, Model};
use faer::linalg::solvers::PartialPivLu;
use faer::prelude::Solve;
use faer::{Mat, MatRef};
use rayon::prelude::*;
use statrs::function::erf::{erfc, erfc_inv};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Who drives what the group believes.
#[derive(Debug, Clone, PartialEq)]
pub struct Influence {
    /// Index of θ*.
    pub truth: usize,
    /// Share of agents that believe θ*.
    pub agreement: f64,
    /// Perron vector, components and sources.
    pub centrality: Centrality,
    /// D_k(θ*‖θ_j), N × |Θ|; zero at θ*. Estimates can be negative.
    pub divergences: Vec<Vec<f64>>,
    /// Σ_j D_k(θ*‖θ_j). Estimates can be negative.
    pub informativeness: Vec<f64>,
    /// I_k = centrality × informativeness.
    pub influence: Vec<f64>,
    /// I_k normalised to sum to one; absent when the estimates do not add up to something positive.
    pub share: Option<Vec<f64>>,
    /// Network divergence K(θ*, θ_j) per hypothesis.
    pub divergence: Vec<f64>,
    /// The share of the network's mean opinion that originates in each agent at the model's δ; centrality is its limit
    /// as δ → 0, and unlike it this is positive outside the sources too.
    pub origin: Vec<f64>,
    /// Agents whose own evidence points elsewhere.
    pub contrarians: Vec<Contrarian>,
}

/// An agent whose private evidence contradicts the network's verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrarian {
    /// The agent.
    pub agent: usize,
    /// The hypothesis its evidence points to.
    pub believes: usize,
    /// How far its evidence prefers that to θ*, in nats per observation.
    pub margin: f64,
    /// The same in standard errors, where the model knows them.
    pub standard_errors: Option<f64>,
}

impl Influence {
    /// Agents by influence, highest first; ties by origin × informativeness, then by position.
    pub fn ranking(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.influence.len()).collect();
        let second = |agent: usize| self.origin[agent] * self.informativeness[agent];
        order.sort_by(|&a, &b| {
            self.influence[b].total_cmp(&self.influence[a]).then(second(b).total_cmp(&second(a))).then(a.cmp(&b))
        });
        order
    }

    /// Each agent's share of K(θ*, θ_j) for one hypothesis; `None` where that divergence is not positive.
    pub fn divergence_shares(&self, hypothesis: usize) -> Option<Vec<f64>> {
        let total = self.divergence[hypothesis];
        let part = |agent: usize| self.centrality.values[agent] * self.divergences[agent][hypothesis] / total;
        (total > 0.0).then(|| (0..self.divergences.len()).map(part).collect())
    }

    /// Agents whose informativeness was estimated below zero.
    pub fn negative(&self) -> Vec<usize> {
        (0..self.informativeness.len()).filter(|&agent| self.informativeness[agent] < 0.0).collect()
    }
}

/// Influence of every agent of a model.
///
/// Divergences follow the definition, with a zero column for the reference: `D(θ*‖θ_j) = L̂[k,j] − L̂[k,*]` (Note P1).
/// Cost: a few dozen products with A and one solve.
///
/// ```
/// use headwater::{influence, simulate::{simulate, WorldParams}};
/// let (_, truth) = simulate(&WorldParams { steps: 1, ..WorldParams::default() }).unwrap();
/// let influence = influence(&truth).unwrap();
/// assert!((influence.share.unwrap().iter().sum::<f64>() - 1.0).abs() < 1e-12);
/// ```
pub fn influence(model: &Model) -> Result<Influence, Error> {
    let agents = model.combination.agents();
    let centrality = match model.method.name() == "as-released" {
        true => model.combination.released_centrality()?,
        false => model.combination.centrality()?,
    };
    let (truth, agreement) = match model.truth {
        Some(verdict) => (verdict.hypothesis, verdict.agreement),
        None => verdict_of_evidence(&centrality.values, &model.evidence),
    };
    let hypotheses = model.evidence.ratios() + 1;
    let divergence_of =
        |agent: usize, hypothesis: usize| model.evidence.of(agent, hypothesis) - model.evidence.of(agent, truth);
    let divergences: Vec<Vec<f64>> =
        (0..agents).map(|agent| (0..hypotheses).map(|hypothesis| divergence_of(agent, hypothesis)).collect()).collect();
    let informativeness: Vec<f64> = divergences.iter().map(|row| row.iter().sum()).collect();
    let influence: Vec<f64> = centrality.values.iter().zip(&informativeness).map(|(u, d)| u * d).collect();
    let total: f64 = influence.iter().sum();
    let share = (total > 0.0).then(|| influence.iter().map(|value| value / total).collect());
    let divergence = (0..hypotheses)
        .map(|hypothesis| (0..agents).map(|agent| centrality.values[agent] * divergences[agent][hypothesis]).sum())
        .collect();
    Ok(Influence {
        origin: Attribution::of(model)?.network(),
        contrarians: contrarians(model, truth, &centrality.values),
        truth,
        agreement,
        centrality,
        divergences,
        informativeness,
        influence,
        share,
        divergence,
    })
}

/// θ* from the evidence alone: in the long run all log-beliefs are near uᵀL̄.
fn verdict_of_evidence(centrality: &[f64], evidence: &Evidence) -> (usize, f64) {
    let network: Vec<f64> = (0..evidence.ratios())
        .map(|ratio| evidence.ratio(ratio).iter().zip(centrality).map(|(value, u)| value * u).sum())
        .collect();
    let truth = likeliest(&network);
    let agreeing = (0..evidence.agents()).filter(|&agent| likeliest(evidence.agent(agent)) == truth).count();
    (truth, agreeing as f64 / evidence.agents() as f64)
}

/// Standard errors are the learner's own, or else those of the mean of the private evidence and what a column of A that does not sum to one adds:
/// log-beliefs are about uᵀL̂ for all, so a sum that is off by e shifts the evidence by e(1−δ)/δ times that.
fn contrarians(model: &Model, truth: usize, centrality: &[f64]) -> Vec<Contrarian> {
    let evidence = &model.evidence;
    let sums = model.combination.column_sums();
    let network = |hypothesis: usize| -> f64 {
        (0..evidence.agents()).map(|agent| centrality[agent] * evidence.of(agent, hypothesis)).sum()
    };
    let network: Vec<f64> = (0..=evidence.ratios()).map(network).collect();
    let ratios = evidence.ratios();
    let mut found = Vec::new();
    for agent in 0..evidence.agents() {
        let believes = likeliest(evidence.agent(agent));
        if believes == truth {
            continue;
        }
        let known = model.diagnostics.evidence_errors.as_ref().and_then(|errors| errors.get(agent)).map(|errors| {
            let of = |hypothesis: usize| if hypothesis == 0 { 0.0 } else { errors[hypothesis - 1] };
            of(truth).hypot(of(believes))
        });
        let standard_errors = known.or_else(|| {
            let (spread, steps) = model.innovation.as_ref().zip(model.diagnostics.evidence_steps)?;
            let cell = |a: usize, b: usize| match (a, b) {
                (0, _) | (_, 0) => 0.0,
                (a, b) => spread.agent(agent)[(a - 1) * ratios + b - 1],
            };
            let variance = cell(truth, truth) + cell(believes, believes) - 2.0 * cell(truth, believes);
            let lever = (1.0 - model.adaptation) / model.adaptation * (network[truth] - network[believes]);
            Some((variance.max(0.0) / steps as f64 + (lever * (sums[agent] - 1.0)).powi(2)).sqrt())
        });
        let margin = evidence.of(agent, truth) - evidence.of(agent, believes);
        let standard_errors = standard_errors.filter(|error| *error > 0.0).map(|error| margin / error);
        found.push(Contrarian { agent, believes, margin, standard_errors });
    }
    found
}

/// Exact attribution at finite δ: P = δ(I − (1−δ)Aᵀ)⁻¹, whose rows sum to one and E Λ = P L̄.
///
/// `P[k, ℓ]` is the share of agent k's expected log-belief that originates in ℓ's private information. The inverse is
/// never formed: rows and columns are solved for one at a time, by one LU for up to a thousand agents, otherwise by the
/// Neumann series with its tail summed in closed form.
///
/// ```
/// use headwater::{Combination, influence::Attribution};
/// // Agent 1 listens to agent 0 only, which listens to itself.
/// let a = Combination::from_columns(vec![1.0, 0.0, 1.0, 0.0], 2).unwrap();
/// let attribution = Attribution::new(&a, 0.25).unwrap();
/// assert_eq!(attribution.sources_of(1), [0.75, 0.25]);
/// ```
#[derive(Debug)]
pub struct Attribution {
    combination: Combination,
    adaptation: f64,
    /// LU of I − (1−δ)A.
    lu: Option<PartialPivLu<f64>>,
}

/// Up to here one LU costs less than a second.
const DIRECT_AGENTS: usize = 1000;

/// Terms of a series after which the rest is taken as settled: only a matrix that never mixes gets there.
const PATIENCE: usize = 1_000_000;

/// A Neumann series is settled when its terms change by less than this.
const SETTLED: f64 = 1e-15;

impl Attribution {
    /// Prepares the solver for weights and δ. Weights that are not left-stochastic are first made so.
    pub fn new(combination: &Combination, adaptation: f64) -> Result<Self, Error> {
        crate::model::check_adaptation(adaptation)?;
        Ok(Attribution::with(combination.stochastic().combination, adaptation))
    }

    /// The same for a model.
    pub fn of(model: &Model) -> Result<Self, Error> {
        Attribution::new(&model.combination, model.adaptation)
    }

    fn with(combination: Combination, adaptation: f64) -> Self {
        let agents = combination.agents();
        let lu = (agents <= DIRECT_AGENTS).then(|| {
            let mut system = Mat::<f64>::identity(agents, agents);
            for (speaker, listener, weight) in combination.edges() {
                system[(speaker, listener)] -= (1.0 - adaptation) * weight;
            }
            system.partial_piv_lu()
        });
        Attribution { combination, adaptation, lu }
    }

    /// Who made agent k think so: row k of P.
    pub fn sources_of(&self, agent: usize) -> Vec<f64> {
        let mut unit = vec![0.0; self.combination.agents()];
        unit[agent] = self.adaptation;
        self.solve(&unit)
    }

    /// Whom agent ℓ shapes: column ℓ of P.
    pub fn reach_of(&self, agent: usize) -> Vec<f64> {
        let mut unit = vec![0.0; self.combination.agents()];
        unit[agent] = self.adaptation;
        self.solve_transposed(&unit)
    }

    /// The share of the network's mean opinion that originates in each agent: the mean row of P.
    pub fn network(&self) -> Vec<f64> {
        let agents = self.combination.agents();
        self.solve(&vec![self.adaptation / agents as f64; agents])
    }

    /// [`Attribution::sources_of`] for many agents at once: much less work than one by one.
    pub fn sources_of_many(&self, agents: &[usize]) -> Vec<Vec<f64>> {
        self.many(agents, Way::Back)
    }

    /// [`Attribution::reach_of`] for many agents at once.
    pub fn reach_of_many(&self, agents: &[usize]) -> Vec<Vec<f64>> {
        self.many(agents, Way::Forth)
    }

    fn many(&self, chosen: &[usize], way: Way) -> Vec<Vec<f64>> {
        let agents = self.combination.agents();
        let blocks = chosen.par_chunks(BLOCK).flat_map_iter(|chosen| {
            let width = chosen.len();
            match &self.lu {
                Some(lu) => {
                    let mut units = Mat::<f64>::zeros(agents, width);
                    chosen.iter().enumerate().for_each(|(column, &agent)| units[(agent, column)] = self.adaptation);
                    let solved = match way {
                        Way::Back => lu.solve(units),
                        Way::Forth => lu.solve_transpose(units),
                    };
                    (0..width).map(|column| solved.col_as_slice(column).to_vec()).collect::<Vec<_>>()
                }
                None => {
                    let mut start = vec![0.0; agents * width];
                    chosen.iter().enumerate().for_each(|(at, &agent)| start[agent * width + at] = self.adaptation);
                    let sum = settle(start, self.adaptation, |term, next| match way {
                        Way::Back => self.combination.spread_many(term, width, next),
                        Way::Forth => self.combination.hear_many(term, width, next),
                    });
                    (0..width).map(|column| strided(&sum, column, width)).collect()
                }
            }
        });
        blocks.collect()
    }

    /// E Λ = P L̄, one vector per log-ratio.
    pub fn expected(&self, evidence: &Evidence) -> Vec<Vec<f64>> {
        (0..evidence.ratios())
            .map(|ratio| {
                let scaled: Vec<f64> = evidence.ratio(ratio).iter().map(|value| value * self.adaptation).collect();
                self.solve_transposed(&scaled)
            })
            .collect()
    }

    /// (I − (1−δ)A)⁻¹ b.
    fn solve(&self, b: &[f64]) -> Vec<f64> {
        match &self.lu {
            Some(lu) => vector(lu.solve(column(b)).as_ref()),
            None => self.series(b, |v| self.combination.spread(v)),
        }
    }

    /// (I − (1−δ)Aᵀ)⁻¹ b.
    fn solve_transposed(&self, b: &[f64]) -> Vec<f64> {
        match &self.lu {
            Some(lu) => vector(lu.solve_transpose(column(b)).as_ref()),
            None => self.series(b, |v| self.combination.hear(v)),
        }
    }

    /// Σ (1−δ)^t T^t b. Once T^t b no longer moves, the rest is a geometric sum.
    fn series(&self, b: &[f64], apply: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
        let keep = 1.0 - self.adaptation;
        let mut sum = vec![0.0; b.len()];
        let mut term = b.to_vec();
        let mut factor = 1.0;
        let largest = b.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        let mut left = PATIENCE;
        while factor > SETTLED * self.adaptation {
            let next = apply(&term);
            left -= 1;
            let change = next.iter().zip(&term).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
            let settled = left == 0 || change <= SETTLED * largest;
            let weight = if settled { factor / self.adaptation } else { factor };
            sum.iter_mut().zip(&term).for_each(|(sum, value)| *sum += weight * value);
            if settled {
                break;
            }
            term = next;
            factor *= keep;
        }
        sum
    }
}

/// Which way attribution is followed.
#[derive(Clone, Copy)]
enum Way {
    /// To those who made an agent think so.
    Back,
    /// To those it shapes.
    Forth,
}

/// Vectors handled together: a few cache lines per agent; fixed, so that the thread count changes no bit.
const BLOCK: usize = 32;

/// Many series side by side are settled when no term changes by more than this, relative to where they began: nine digits of
/// every share.
const BLOCK_SETTLED: f64 = 1e-10;

/// Σ (1−δ)^t T^t b for vectors side by side, its tail summed in closed form.
fn settle(start: Vec<f64>, adaptation: f64, apply: impl Fn(&[f64], &mut [f64])) -> Vec<f64> {
    let largest = start.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    let (mut sum, mut term, mut next) = (vec![0.0; start.len()], start, Vec::new());
    next.resize(term.len(), 0.0);
    let mut factor = 1.0;
    for left in (0..PATIENCE).rev() {
        apply(&term, &mut next);
        let change = next.iter().zip(&term).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
        let settled = left == 0 || change * factor <= BLOCK_SETTLED * adaptation * largest;
        add_scaled(&mut sum, if settled { factor / adaptation } else { factor }, &term);
        if settled {
            break;
        }
        std::mem::swap(&mut term, &mut next);
        factor *= 1.0 - adaptation;
    }
    sum
}

/// One of many vectors side by side.
fn strided(values: &[f64], column: usize, width: usize) -> Vec<f64> {
    values.iter().skip(column).step_by(width).copied().collect()
}

fn column(values: &[f64]) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(values, values.len(), 1)
}

fn vector(matrix: MatRef<'_, f64>) -> Vec<f64> {
    (0..matrix.nrows()).map(|row| matrix[(row, 0)]).collect()
}

/// The strongest way an opinion takes from one agent to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// From the source to the listener, both included.
    pub agents: Vec<usize>,
    /// Product of (1−δ)·weight along the way.
    pub strength: f64,
}

/// The strongest path from every agent to `listener`: Dijkstra on −log((1−δ)a). `None` where there is none.
///
/// ```
/// use headwater::{Combination, influence::strongest_paths};
/// let a = Combination::from_columns(vec![0.5, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0, 1.0, 0.0], 3).unwrap();
/// let path = strongest_paths(&a, 0.2, 2)[0].clone().unwrap();
/// assert_eq!(path.agents, [0, 1, 2]);
/// assert!((path.strength - 0.8 * 0.5 * 0.8 * 1.0).abs() < 1e-15);
/// ```
pub fn strongest_paths(combination: &Combination, adaptation: f64, listener: usize) -> Vec<Option<Path>> {
    let agents = combination.agents();
    let everybody: Vec<usize> = (0..agents).collect();
    let toll = |weight: f64| ((1.0 - adaptation) * weight).ln();
    let hears = |agent: usize| {
        combination
            .listener(agent)
            .filter(|(_, weight)| *weight > 0.0)
            .map(move |(other, weight)| (other, toll(weight)))
    };
    shortest(agents, listener, &everybody, hears)
}

/// [`strongest_paths`] for many listeners of one network: logarithms are taken once, and a search ends with the last source
/// that was asked for.
#[derive(Debug)]
pub struct Paths {
    /// Per listener: speakers, and log((1−δ)a).
    heard: Vec<Vec<(usize, f64)>>,
}

impl Paths {
    /// Prepares the search.
    pub fn new(combination: &Combination, adaptation: f64) -> Self {
        let toll = |(speaker, weight): (usize, f64)| (speaker, ((1.0 - adaptation) * weight).ln());
        let of =
            |listener: usize| combination.listener(listener).filter(|(_, weight)| *weight > 0.0).map(toll).collect();
        Paths { heard: (0..combination.agents()).map(of).collect() }
    }

    /// The strongest path from each of these agents to a listener; `None` where there is none.
    pub fn between(&self, sources: &[usize], listener: usize) -> Vec<Option<Path>> {
        shortest(self.heard.len(), listener, sources, |agent| self.heard[agent].iter().copied())
    }
}

/// Dijkstra from a listener against the flow of opinions, until all sources are reached.
fn shortest<I: Iterator<Item = (usize, f64)>>(
    agents: usize,
    listener: usize,
    sources: &[usize],
    hears: impl Fn(usize) -> I,
) -> Vec<Option<Path>> {
    let mut cost = vec![f64::INFINITY; agents];
    let mut next = vec![listener; agents];
    let mut done = vec![false; agents];
    let mut waited_for = vec![false; agents];
    sources.iter().for_each(|&source| waited_for[source] = true);
    let mut left = waited_for.iter().filter(|waited| **waited).count();
    let mut queue = BinaryHeap::from([Reverse((Cost(0.0), listener))]);
    cost[listener] = 0.0;
    while left > 0
        && let Some(Reverse((_, agent))) = queue.pop()
    {
        if std::mem::replace(&mut done[agent], true) {
            continue;
        }
        left -= usize::from(waited_for[agent]);
        for (speaker, gain) in hears(agent) {
            if done[speaker] {
                continue;
            }
            let through = cost[agent] - gain;
            if through < cost[speaker] {
                cost[speaker] = through;
                next[speaker] = agent;
                queue.push(Reverse((Cost(through), speaker)));
            }
        }
    }
    let path = |&source: &usize| {
        if !done[source] {
            return None;
        }
        let mut path = vec![source];
        while let Some(&last) = path.last()
            && last != listener
        {
            path.push(next[last]);
        }
        Some(Path { agents: path, strength: (-cost[source]).exp() })
    };
    sources.iter().map(path).collect()
}

#[derive(PartialEq)]
struct Cost(f64);

impl Eq for Cost {}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cost {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// What reaches `listener` from each agent over exactly 0, 1, …, `most` hops: δ(1−δ)^h [A^h]; the sum over all hops is
/// the attribution.
pub fn by_hops(combination: &Combination, adaptation: f64, listener: usize, most: usize) -> Vec<Vec<f64>> {
    let mut term = vec![0.0; combination.agents()];
    term[listener] = adaptation;
    let mut hops = vec![term];
    for hop in 0..most {
        let next = combination.spread(&hops[hop]).iter().map(|value| (1.0 - adaptation) * value).collect();
        hops.push(next);
    }
    hops
}

/// What is done to an agent in a thought experiment.
#[derive(Debug, Clone, PartialEq)]
pub enum Intervention {
    /// It is gone; its listeners give its weight to the others they hear.
    Remove,
    /// It goes on speaking, but always with these log-ratios; all zero is a neutral opinion.
    Freeze(Vec<f64>),
}

/// What would change.
#[derive(Debug, Clone, PartialEq)]
pub struct WhatIf {
    /// The others, by their index in the model.
    pub others: Vec<usize>,
    /// Their expected log-ratios now, one vector per ratio.
    pub before: Vec<Vec<f64>>,
    /// And then.
    pub after: Vec<Vec<f64>>,
    /// Listeners that heard nobody else and are left to themselves.
    pub stranded: Vec<usize>,
}

impl WhatIf {
    /// Belief in a hypothesis that the mean log-ratios of the others amount to, before and after.
    pub fn belief(&self, hypothesis: usize) -> [f64; 2] {
        [&self.before, &self.after].map(|ratios| {
            let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
            belief(&ratios.iter().map(mean).collect::<Vec<_>>(), hypothesis)
        })
    }

    /// The same for one of the others, by position in [`WhatIf::others`].
    pub fn belief_of(&self, position: usize, hypothesis: usize) -> [f64; 2] {
        [&self.before, &self.after]
            .map(|ratios| belief(&ratios.iter().map(|values| values[position]).collect::<Vec<_>>(), hypothesis))
    }
}

fn belief(log_ratios: &[f64], hypothesis: usize) -> f64 {
    let mut out = Vec::new();
    crate::panel::probabilities(log_ratios.iter().copied(), &mut out);
    out[hypothesis]
}

/// Expected beliefs of the others if one agent were gone or always said the same:
/// (I − (1−δ)Ãᵀ)⁻¹(δL̄ + (1−δ) r s).
pub fn what_if(model: &Model, agent: usize, intervention: &Intervention) -> Result<WhatIf, Error> {
    let stochastic = model.combination.stochastic().combination;
    let agents = stochastic.agents();
    let ratios = model.evidence.ratios();
    let now = Attribution::with(stochastic.clone(), model.adaptation);
    let others: Vec<usize> = (0..agents).filter(|&other| other != agent).collect();
    let keep = 1.0 - model.adaptation;
    let mut reduced = stochastic.without(agent);
    let mut stranded = Vec::new();
    let frozen = match intervention {
        Intervention::Remove => {
            let renormalised = reduced.stochastic();
            stranded = renormalised.empty.iter().map(|&position| others[position]).collect();
            reduced = renormalised.combination;
            vec![0.0; ratios]
        }
        Intervention::Freeze(log_ratios) if log_ratios.len() == ratios => log_ratios.clone(),
        Intervention::Freeze(log_ratios) => {
            return Err(Error::Shape {
                what: "frozen opinion",
                met: format!("{} log-ratios", log_ratios.len()),
                wanted: format!("{ratios}"),
            });
        }
    };
    let then = Attribution::with(reduced, model.adaptation);
    let select = |values: Vec<f64>| -> Vec<f64> { others.iter().map(|&other| values[other]).collect() };
    let before = now.expected(&model.evidence).into_iter().map(select).collect();
    let after = (0..ratios)
        .map(|ratio| {
            let source: Vec<f64> = others
                .iter()
                .map(|&other| {
                    model.adaptation * model.evidence.agent(other)[ratio]
                        + keep * stochastic.weight(agent, other) * frozen[ratio]
                })
                .collect();
            then.solve_transposed(&source)
        })
        .collect();
    Ok(WhatIf { others, before, after, stranded })
}

/// [`what_if`] with [`Intervention::Remove`] for many agents of one network.
///
/// Without agent m, and with K the sums of what its listeners give others, the expected beliefs solve
/// `(M − (I − K)) x = δK L̄` on the others, M = I − (1−δ)Aᵀ. Up to a thousand agents M is inverted once; dropping row and
/// column m from the inverse is a rank-one update, and what is left, `(I − M⁻¹(I − K)) x = δM⁻¹K L̄`, takes GMRES a few products,
/// because I − K is zero but for m's listeners. Larger networks are left to settle, many removals side by side.
#[derive(Debug)]
pub struct Removals<'a> {
    model: &'a Model,
    stochastic: Combination,
    /// Per speaker: who hears it, and with what weight.
    listeners: Vec<Vec<(usize, f64)>>,
    /// Expected log-ratios now, one vector per ratio.
    expected: Vec<Vec<f64>>,
    inverse: Option<Mat<f64>>,
}

/// Products after which a removal is solved directly instead.
const KRYLOV: usize = 60;

/// How much smaller a round of products makes the residual.
const KRYLOV_GAIN: f64 = 1e-7;

/// Rounds after which a removal is solved directly instead.
const CORRECTIONS: usize = 5;

/// The residual of a removal, relative to δ times its solution: ten digits of the solution.
const REMOVAL_RESIDUAL: f64 = 1e-10;

impl<'a> Removals<'a> {
    /// Prepares the removals of a model's agents.
    pub fn new(model: &'a Model) -> Result<Self, Error> {
        crate::model::check_adaptation(model.adaptation)?;
        let stochastic = model.combination.stochastic().combination;
        let agents = stochastic.agents();
        let mut listeners = vec![Vec::new(); agents];
        for (speaker, listener, weight) in stochastic.edges() {
            if speaker != listener && weight > 0.0 {
                listeners[speaker].push((listener, weight));
            }
        }
        let attribution = Attribution::with(stochastic.clone(), model.adaptation);
        let expected = attribution.expected(&model.evidence);
        let inverse = attribution.lu.map(|lu| lu.solve_transpose(Mat::<f64>::identity(agents, agents)));
        Ok(Removals { model, stochastic, listeners, expected, inverse })
    }

    /// What would change without each of these agents.
    pub fn of(&self, chosen: &[usize]) -> Result<Vec<WhatIf>, Error> {
        match &self.inverse {
            Some(inverse) => chosen.par_iter().map(|&agent| self.solved(agent, inverse)).collect(),
            None => Ok(chosen.par_chunks(BLOCK).flat_map_iter(|chosen| self.settled(chosen)).collect()),
        }
    }

    /// What the listeners of an agent give others than it, and those of them who hear nobody else.
    fn kept(&self, agent: usize) -> (Vec<(usize, f64)>, Vec<usize>) {
        let rest = |&(listener, weight): &(usize, f64)| {
            // One minus nearly one has few digits: count what is left.
            let others = || self.stochastic.listener(listener).filter(|(speaker, _)| *speaker != agent);
            let kept = if weight < 0.5 { 1.0 - weight } else { others().map(|(_, weight)| weight).sum() };
            (listener, kept)
        };
        let (left, alone): (Vec<_>, Vec<_>) = self.listeners[agent].iter().map(rest).partition(|(_, kept)| *kept > 0.0);
        (left, alone.into_iter().map(|(listener, _)| listener).collect())
    }

    fn outcome(&self, agent: usize, after: &[Vec<f64>], stranded: Vec<usize>) -> WhatIf {
        let others: Vec<usize> = (0..self.stochastic.agents()).filter(|&other| other != agent).collect();
        let select = |values: &Vec<f64>| others.iter().map(|&other| values[other]).collect();
        let (before, after) = (self.expected.iter().map(select).collect(), after.iter().map(select).collect());
        WhatIf { others, before, after, stranded }
    }

    fn solved(&self, agent: usize, inverse: &Mat<f64>) -> Result<WhatIf, Error> {
        let agents = self.stochastic.agents();
        let (kept, stranded) = self.kept(agent);
        let gone = inverse.col_as_slice(agent);
        // The inverse without row and column of the agent.
        let apply = |sparse: &mut dyn Iterator<Item = (usize, f64)>| {
            let mut out = vec![0.0; agents];
            sparse.for_each(|(other, value)| add_scaled(&mut out, value, inverse.col_as_slice(other)));
            let factor = -out[agent] / gone[agent];
            add_scaled(&mut out, factor, gone);
            out[agent] = 0.0;
            out
        };
        let product = |x: &[f64]| {
            let mut out = apply(&mut kept.iter().map(|&(listener, kept)| (listener, (1.0 - kept) * x[listener])));
            out.iter_mut().zip(x).for_each(|(out, x)| *out = x - *out);
            out
        };
        let mut after = Vec::new();
        for ratio in 0..self.model.evidence.ratios() {
            let mut right = self.model.evidence.ratio(ratio);
            right.iter_mut().for_each(|value| *value *= self.model.adaptation);
            kept.iter().for_each(|&(listener, kept)| right[listener] *= kept);
            stranded.iter().for_each(|&listener| right[listener] = self.model.evidence.agent(listener)[ratio]);
            right[agent] = 0.0;
            let mut x = self.expected[ratio].clone();
            x[agent] = 0.0;
            // Dropping an agent from the inverse cancels as many digits as δ is small: correct by the weights themselves.
            let mut rounds = 0;
            loop {
                let mut residual = self.stochastic.hear(&x);
                let left = 1.0 - self.model.adaptation;
                residual.iter_mut().zip(&x).zip(&right).for_each(|((out, x), right)| *out = right - x + left * *out);
                kept.iter().for_each(|&(listener, kept)| residual[listener] += (1.0 - kept) * x[listener]);
                residual[agent] = 0.0;
                let largest = |values: &[f64]| values.iter().fold(0.0f64, |most, value| most.max(value.abs()));
                if largest(&residual) <= REMOVAL_RESIDUAL * self.model.adaptation * largest(&x) {
                    break;
                }
                let correction = gmres(product, &apply(&mut residual.into_iter().enumerate()));
                let Some(correction) = correction.filter(|_| rounds < CORRECTIONS) else {
                    return what_if(self.model, agent, &Intervention::Remove);
                };
                add_scaled(&mut x, 1.0, &correction);
                rounds += 1;
            }
            after.push(x);
        }
        Ok(self.outcome(agent, &after, stranded))
    }

    fn settled(&self, chosen: &[usize]) -> Vec<WhatIf> {
        let (agents, width) = (self.stochastic.agents(), chosen.len());
        let kept: Vec<_> = chosen.iter().map(|&agent| self.kept(agent)).collect();
        let forget = |values: &mut [f64]| {
            chosen.iter().enumerate().for_each(|(column, &agent)| values[agent * width + column] = 0.0);
        };
        let ratios = self.model.evidence.ratios();
        let after: Vec<Vec<f64>> = (0..ratios)
            .map(|ratio| {
                let evidence = self.model.evidence.ratio(ratio);
                let mut start: Vec<f64> =
                    (0..agents * width).map(|cell| self.model.adaptation * evidence[cell / width]).collect();
                forget(&mut start);
                settle(start, self.model.adaptation, |term, next| {
                    self.stochastic.hear_many(term, width, next);
                    for (column, (kept, alone)) in kept.iter().enumerate() {
                        kept.iter().for_each(|&(listener, kept)| next[listener * width + column] /= kept);
                        let cells = alone.iter().map(|listener| listener * width + column);
                        cells.for_each(|cell| next[cell] = term[cell]);
                    }
                    forget(next);
                })
            })
            .collect();
        let one = |(column, (&agent, (_, alone))): (usize, (&usize, (_, Vec<usize>)))| {
            let after: Vec<_> = after.iter().map(|after| strided(after, column, width)).collect();
            self.outcome(agent, &after, alone)
        };
        chosen.iter().zip(kept).enumerate().map(one).collect()
    }
}

/// Solves `T x = b` to [`KRYLOV_GAIN`] by the generalised minimal residual method (Saad and Schultz); `None` when [`KRYLOV`]
/// products do not do.
fn gmres(product: impl Fn(&[f64]) -> Vec<f64>, b: &[f64]) -> Option<Vec<f64>> {
    let norm = |v: &[f64]| dot(v, v).sqrt();
    let size = norm(b);
    let mut x = vec![0.0; b.len()];
    if size == 0.0 {
        return Some(x);
    }
    let target = KRYLOV_GAIN * size;
    let mut basis = vec![b.iter().map(|value| value / size).collect::<Vec<f64>>()];
    // The triangle of the Hessenberg matrix after its rotations, column by column, and the rotated right side.
    let mut triangle: Vec<Vec<f64>> = Vec::new();
    let mut turns: Vec<(f64, f64)> = Vec::new();
    let mut right = vec![size];
    for step in 0..KRYLOV {
        let mut v = product(&basis[step]);
        let mut heights = Vec::with_capacity(step + 2);
        for known in &basis {
            let along = dot(known, &v);
            add_scaled(&mut v, -along, known);
            heights.push(along);
        }
        let rest = norm(&v);
        for (row, &(cosine, sine)) in turns.iter().enumerate() {
            let (upper, lower) = (heights[row], heights[row + 1]);
            (heights[row], heights[row + 1]) = (cosine * upper + sine * lower, cosine * lower - sine * upper);
        }
        let length = heights[step].hypot(rest);
        if length == 0.0 {
            return None;
        }
        let (cosine, sine) = (heights[step] / length, rest / length);
        heights[step] = length;
        turns.push((cosine, sine));
        triangle.push(heights);
        right.push(-sine * right[step]);
        right[step] *= cosine;
        if right[step + 1].abs() <= target || rest == 0.0 {
            let mut factors = vec![0.0; step + 1];
            for row in (0..=step).rev() {
                let known: f64 = (row + 1..=step).map(|column| triangle[column][row] * factors[column]).sum();
                factors[row] = (right[row] - known) / triangle[row][row];
            }
            factors.iter().zip(&basis).for_each(|(factor, v)| add_scaled(&mut x, *factor, v));
            return Some(x);
        }
        v.iter_mut().for_each(|value| *value /= rest);
        basis.push(v);
    }
    None
}

/// Probability, in the long run, that each agent names a wrong hypothesis: beliefs are Gaussian with mean P L̄ and
/// covariance Σ = (1−δ)²AᵀΣA + δ²R_L, private observations being independent across agents.
///
/// The Lyapunov equation is solved by doubling: O(N³H² log 1/δ). For one agent of a large network use
/// [`error_probability`].
pub fn error_probabilities(model: &Model, truth: usize) -> Result<Vec<f64>, Error> {
    let innovation = known_innovation(model)?;
    let stochastic = model.combination.stochastic().combination;
    let (agents, ratios) = (stochastic.agents(), model.evidence.ratios());
    let mean = Attribution::with(stochastic.clone(), model.adaptation).expected(&model.evidence);
    let mut spread = vec![vec![0.0; ratios * ratios]; agents];
    let columns = stochastic.to_columns();
    for row in 0..ratios {
        for column in row..ratios {
            let diagonal = (0..agents).map(|agent| innovation.agent(agent)[row * ratios + column]).collect();
            for (agent, value) in lyapunov_diagonal(&columns, diagonal, model.adaptation).into_iter().enumerate() {
                spread[agent][row * ratios + column] = value;
                spread[agent][column * ratios + row] = value;
            }
        }
    }
    Ok((0..agents)
        .map(|agent| {
            let mean: Vec<f64> = mean.iter().map(|values| values[agent]).collect();
            wrong(&mean, &spread[agent], truth)
        })
        .collect())
}

/// [`error_probabilities`] for one agent, by following its attention backwards: O(N²) a step of memory.
pub fn error_probability(model: &Model, truth: usize, agent: usize) -> Result<f64, Error> {
    let innovation = known_innovation(model)?;
    let stochastic = model.combination.stochastic().combination;
    let ratios = model.evidence.ratios();
    let attribution = Attribution::with(stochastic.clone(), model.adaptation);
    let mean: Vec<f64> = attribution.expected(&model.evidence).iter().map(|values| values[agent]).collect();
    // Λ_k is a sum over the past of (1−δ)^t [A^t]_{ℓk} δL_ℓ: variances add with squared weights.
    let keep = (1.0 - model.adaptation).powi(2);
    let mut weights = vec![0.0; stochastic.agents()];
    let mut attention = vec![0.0; stochastic.agents()];
    attention[agent] = 1.0;
    let mut factor = model.adaptation.powi(2);
    let limit = factor * SETTLED * (1.0 - keep);
    let mut left = PATIENCE;
    while factor > limit {
        let next = stochastic.spread(&attention);
        left -= 1;
        let settled = left == 0 || next.iter().zip(&attention).all(|(a, b)| (a - b).abs() <= SETTLED);
        let weight = if settled { factor / (1.0 - keep) } else { factor };
        weights.iter_mut().zip(&attention).for_each(|(sum, a)| *sum += weight * a * a);
        if settled {
            break;
        }
        attention = next;
        factor *= keep;
    }
    let mut spread = vec![0.0; ratios * ratios];
    for (source, weight) in weights.iter().enumerate() {
        spread.iter_mut().zip(innovation.agent(source)).for_each(|(sum, cell)| *sum += weight * cell);
    }
    Ok(wrong(&mean, &spread, truth))
}

fn known_innovation(model: &Model) -> Result<&crate::model::Innovation, Error> {
    model.innovation.as_ref().ok_or_else(|| Error::Undefined {
        what: "error probability",
        reason: "the model does not hold the covariance of private evidence (\"innovation\"); learn it from a panel"
            .into(),
    })
}

/// Diagonal of Σ = (1−δ)²AᵀΣA + δ²·diag(r): Σ ← Σ + MᵀΣM, M ← M².
fn lyapunov_diagonal(columns: &[f64], diagonal: Vec<f64>, adaptation: f64) -> Vec<f64> {
    let agents = diagonal.len();
    let mut step = faer::Scale(1.0 - adaptation) * MatRef::from_column_major_slice(columns, agents, agents);
    let mut sum = Mat::<f64>::zeros(agents, agents);
    for (agent, value) in diagonal.into_iter().enumerate() {
        sum[(agent, agent)] = adaptation * adaptation * value;
    }
    let mut kept = 1.0 - adaptation;
    while kept * kept > SETTLED * adaptation {
        sum = &sum + step.transpose() * (&sum * &step);
        step = &step * &step;
        kept *= kept;
    }
    (0..agents).map(|agent| sum[(agent, agent)]).collect()
}

/// P(some θ ≠ θ* has at least the belief of θ*) for Gaussian log-ratios.
fn wrong(mean: &[f64], spread: &[f64], truth: usize) -> f64 {
    let ratios = mean.len();
    let value = |hypothesis: usize| if hypothesis == 0 { 0.0 } else { mean[hypothesis - 1] };
    let cell = |a: usize, b: usize| if a == 0 || b == 0 { 0.0 } else { spread[(a - 1) * ratios + b - 1] };
    let others: Vec<usize> = (0..=ratios).filter(|&hypothesis| hypothesis != truth).collect();
    // log ψ(θ*)/ψ(θ_j) = Λ_j − Λ_*.
    let margin: Vec<f64> = others.iter().map(|&other| value(other) - value(truth)).collect();
    let covariance = Mat::from_fn(ratios, ratios, |row, column| {
        let (a, b) = (others[row], others[column]);
        cell(a, b) - cell(a, truth) - cell(truth, b) + cell(truth, truth)
    });
    (1.0 - all_positive(&margin, &covariance)).clamp(0.0, 1.0)
}

/// Points of the lattice rule; the same ones always, so that the answer has no noise from run to run.
const LATTICE: usize = 4096;

/// P(Z > 0 in every coordinate), Z ~ N(mean, covariance): Genz's separation of variables on a Richtmyer lattice.
/// One dimension is exact.
fn all_positive(mean: &[f64], covariance: &Mat<f64>) -> f64 {
    let size = mean.len();
    // The least likely coordinates first: the later factors then vary least.
    let mut order: Vec<usize> = (0..size).collect();
    let tightness = |&coordinate: &usize| mean[coordinate] / covariance[(coordinate, coordinate)].max(1e-300).sqrt();
    order.sort_by(|a, b| tightness(a).total_cmp(&tightness(b)));
    let mut root = Mat::<f64>::zeros(size, size);
    for row in 0..size {
        for column in 0..=row {
            let known: f64 = (0..column).map(|k| root[(row, k)] * root[(column, k)]).sum();
            let left = covariance[(order[row], order[column])] - known;
            root[(row, column)] = if row == column {
                // Rounding can leave a singular direction slightly negative.
                let scale = covariance[(order[row], order[row])];
                if left > 1e-12 * scale { left.sqrt() } else { 0.0 }
            } else if root[(column, column)] > 0.0 {
                left / root[(column, column)]
            } else {
                0.0
            };
        }
    }
    let tail = |t: f64| 0.5 * erfc(t / std::f64::consts::SQRT_2);
    let points = if size == 1 { 1 } else { LATTICE };
    let mut sum = 0.0;
    let mut y = vec![0.0; size];
    for point in 0..points {
        let mut probability = 1.0;
        for row in 0..size {
            let shift: f64 = mean[order[row]] + (0..row).map(|k| root[(row, k)] * y[k]).sum::<f64>();
            if root[(row, row)] == 0.0 {
                if shift <= 0.0 {
                    probability = 0.0;
                    break;
                }
                y[row] = 0.0;
                continue;
            }
            let factor = tail(-shift / root[(row, row)]);
            probability *= factor;
            // A baker's-transformed lattice coordinate keeps away from the ends.
            let raw = ((point as f64 + 0.5) * PRIME_ROOTS[row % PRIME_ROOTS.len()]).fract();
            let uniform = (1.0 - (2.0 * raw - 1.0).abs()).clamp(1e-12, 1.0 - 1e-12);
            y[row] = std::f64::consts::SQRT_2 * erfc_inv((2.0 * uniform * factor).max(1e-300));
        }
        sum += probability;
    }
    sum / points as f64
}

/// Fractional parts of square roots of primes.
const PRIME_ROOTS: [f64; 12] = [
    0.414_213_562_373_095_1,
    0.732_050_807_568_877_2,
    0.236_067_977_499_789_8,
    0.645_751_311_064_590_7,
    0.316_624_790_355_399_8,
    0.605_551_275_463_989_3,
    0.123_105_625_617_660_59,
    0.358_898_943_540_673_5,
    0.795_831_523_312_719_5,
    0.385_164_807_134_504_4,
    0.567_764_362_830_021_9,
    0.082_762_530_298_219_68,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roster;
    use crate::model::{Diagnostics, Innovation, Track, Truth};
    use crate::simulate::{World, WorldParams};
    use proptest::prelude::*;

    fn two_agents() -> Model {
        Model {
            roster: Roster::numbered(2, 2).unwrap(),
            combination: Combination::from_columns(vec![0.9, 0.1, 0.3, 0.7], 2).unwrap(),
            evidence: Evidence::from_rows(vec![0.2, 1.0], 2, 1).unwrap(),
            adaptation: 0.5,
            method: crate::Method::Given,
            truth: Some(Truth { hypothesis: 0, agreement: 1.0 }),
            innovation: Some(Innovation::from_cells(vec![1.0, 4.0], 2, 1).unwrap()),
            likelihoods: None,
            diagnostics: Diagnostics::default(),
            track: Track::default(),
        }
    }

    #[test]
    fn influence_by_hand() {
        // u = (¾, ¼), D = (0.2, 1), I = (0.15, 0.25).
        let influence = influence(&two_agents()).unwrap();
        assert!((influence.influence[0] - 0.15).abs() < 1e-15);
        assert!((influence.share.as_ref().unwrap()[1] - 0.625).abs() < 1e-14);
        assert!((influence.divergence[1] - 0.4).abs() < 1e-15 && influence.divergence[0] == 0.0);
        assert!((influence.divergence_shares(1).unwrap()[0] - 0.375).abs() < 1e-14);
        assert_eq!(influence.divergence_shares(0), None);
        assert_eq!(influence.ranking(), [1, 0]);
    }

    /// Note P1: with θ* = θ_j' the definition gives L̂[k,j] − L̂[k,j'], not the printed sum.
    #[test]
    fn informativeness_has_the_corrected_sign_for_any_truth() {
        for truth in 0..4 {
            let params =
                WorldParams { truth, hypotheses: 4, agents: 6, steps: 1, edge_probability: 0.6, ..Default::default() };
            let model = World::new(params).unwrap().truth();
            let influence = influence(&model).unwrap();
            for (agent, likelihood) in model.likelihoods.as_ref().unwrap().iter().enumerate() {
                let crate::model::Likelihood::Discrete { probabilities } = likelihood else { panic!("a coin") };
                for hypothesis in 0..4 {
                    let kl: f64 =
                        probabilities.iter().map(|row| row[truth] * (row[truth] / row[hypothesis]).ln()).sum();
                    assert!((influence.divergences[agent][hypothesis] - kl).abs() < 1e-14);
                }
            }
        }
    }

    #[test]
    fn the_truth_is_read_off_the_evidence_when_the_model_does_not_say() {
        let mut model = two_agents();
        model.truth = None;
        model.evidence = Evidence::from_rows(vec![-0.2, 0.1], 2, 1).unwrap();
        let influence = influence(&model).unwrap();
        assert_eq!((influence.truth, influence.agreement), (1, 0.5));
        assert_eq!(influence.contrarians.len(), 1);
        assert!((influence.contrarians[0].margin - 0.1).abs() < 1e-15);
        assert_eq!(influence.negative(), [1]);
    }

    #[test]
    fn contrarians_have_a_margin_in_standard_errors() {
        let mut model = two_agents();
        model.evidence = Evidence::from_rows(vec![-0.5, 1.0], 2, 1).unwrap();
        model.diagnostics.evidence_steps = Some(100);
        let found = influence(&model).unwrap().contrarians;
        assert_eq!((found.len(), found[0].agent, found[0].believes), (1, 0, 1));
        // Standard error 1/√100.
        assert!((found[0].standard_errors.unwrap() - 5.0).abs() < 1e-12);
    }

    #[test]
    fn series_and_factorisation_agree() {
        let params = WorldParams { agents: 30, steps: 1, ..Default::default() };
        let model = World::new(params).unwrap().truth();
        for adaptation in [1e-4, 0.05, 0.7] {
            let direct = Attribution::new(&model.combination, adaptation).unwrap();
            let mut series = Attribution::new(&model.combination, adaptation).unwrap();
            series.lu = None;
            for agent in [0, 7] {
                for (a, b) in direct.sources_of(agent).iter().zip(series.sources_of(agent)) {
                    assert!((a - b).abs() < 1e-11, "{a} {b}");
                }
                for (a, b) in direct.reach_of(agent).iter().zip(series.reach_of(agent)) {
                    assert!((a - b).abs() < 1e-11, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn attribution_is_the_sum_over_hops_and_tends_to_centrality() {
        let model = World::new(WorldParams { agents: 12, steps: 1, edge_probability: 0.3, ..Default::default() })
            .unwrap()
            .truth();
        let sources = Attribution::of(&model).unwrap().sources_of(3);
        assert!((sources.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let hops = by_hops(&model.combination, model.adaptation, 3, 2000);
        for (agent, source) in sources.iter().enumerate() {
            let sum: f64 = hops.iter().map(|hop| hop[agent]).sum();
            assert!((sum - source).abs() < 1e-12);
        }
        let centrality = model.combination.centrality().unwrap().values;
        let limit = Attribution::new(&model.combination, 1e-7).unwrap().network();
        assert!(limit.iter().zip(&centrality).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    #[test]
    fn what_if_by_hand() {
        let model = two_agents();
        // Alone, agent 1 listens to itself: its expected belief is its own evidence, 1.
        let gone = what_if(&model, 0, &Intervention::Remove).unwrap();
        assert_eq!(gone.others, [1]);
        assert!((gone.after[0][0] - 1.0).abs() < 1e-15);
        // Beside a neutral agent: Λ = ½·0.7·Λ + ½·1, so Λ = 1/1.3.
        let neutral = what_if(&model, 0, &Intervention::Freeze(vec![0.0])).unwrap();
        assert!((neutral.after[0][0] - 0.5 / 0.65).abs() < 1e-15);
        // Beside one frozen at 2: the source grows by ½·0.3·2.
        let frozen = what_if(&model, 0, &Intervention::Freeze(vec![2.0])).unwrap();
        assert!((frozen.after[0][0] - 0.8 / 0.65).abs() < 1e-15);
        assert!(what_if(&model, 0, &Intervention::Freeze(vec![])).is_err());
        // Now: Λ solves the two equations Λ0 = ½(0.9Λ0 + 0.1Λ1) + 0.1, Λ1 = ½(0.3Λ0 + 0.7Λ1) + 0.5.
        let (a, b) = (neutral.before[0][0], gone.belief(0));
        let own = (a - 0.35 * a - 0.5) / 0.15;
        assert!((0.55 * own - 0.05 * a - 0.1).abs() < 1e-14);
        assert!((b[1] - 1.0 / (1.0 + (-1.0f64).exp())).abs() < 1e-15);
    }

    /// The largest difference between removals one by one and all at once.
    fn removal_gap(model: &Model) -> f64 {
        let everybody: Vec<usize> = (0..model.combination.agents()).collect();
        let mut removals = Removals::new(model).unwrap();
        let direct = removals.of(&everybody).unwrap();
        removals.inverse = None;
        let settled = removals.of(&everybody).unwrap();
        let mut gap = 0.0f64;
        for (agent, (direct, settled)) in direct.iter().zip(&settled).enumerate() {
            let wanted = what_if(model, agent, &Intervention::Remove).unwrap();
            assert_eq!((&direct.others, &direct.stranded), (&wanted.others, &wanted.stranded));
            assert_eq!((&settled.others, &settled.stranded), (&wanted.others, &wanted.stranded));
            for ratio in 0..wanted.after.len() {
                for met in [direct, settled] {
                    let after = met.after[ratio].iter().zip(&wanted.after[ratio]);
                    let pairs = met.before[ratio].iter().zip(&wanted.before[ratio]).chain(after);
                    gap = pairs.fold(gap, |gap, (a, b)| gap.max((a - b).abs()));
                }
            }
        }
        gap
    }

    #[test]
    fn all_removals_at_once_are_those_one_by_one() {
        use crate::graph::Rule;
        for (seed, agents, edge_probability, rule) in [
            (1, 2, 0.9, Rule::Random),
            (2, 12, 0.3, Rule::Random),
            (3, 40, 0.1, Rule::Uniform),
            (4, 40, 1.0, Rule::Random),
        ] {
            let influential = 2;
            let params =
                WorldParams { agents, steps: 1, edge_probability, seed, rule, influential, ..Default::default() };
            let mut model = World::new(params).unwrap().truth();
            for adaptation in [1e-4, 0.1, 0.9] {
                model.adaptation = adaptation;
                let gap = removal_gap(&model);
                assert!(gap < 1e-9, "{agents} agents, δ {adaptation}: {gap:e}");
            }
        }
        // A star: everybody hears the hub, some nothing else.
        let mut triplets = vec![(0, 0, 1.0)];
        triplets.extend((1..30).map(|listener| (0, listener, if listener < 5 { 1.0 } else { 0.9 })));
        triplets.extend((5..30).map(|listener| (listener, listener, 0.1)));
        let params = WorldParams { agents: 30, steps: 1, ..Default::default() };
        let mut model = World::new(params).unwrap().truth();
        model.combination = Combination::from_triplets(triplets, 30).unwrap();
        let gap = removal_gap(&model);
        assert!(gap < 1e-9, "star: {gap:e}");
        assert_eq!(Removals::new(&model).unwrap().of(&[0]).unwrap()[0].stranded, [1, 2, 3, 4]);
    }

    #[test]
    fn many_at_once_are_those_one_by_one() {
        let model = World::new(WorldParams { agents: 50, steps: 1, ..Default::default() }).unwrap().truth();
        let mut attribution = Attribution::of(&model).unwrap();
        let chosen: Vec<usize> = (0..50).rev().collect();
        let wanted: Vec<[Vec<f64>; 2]> =
            chosen.iter().map(|&agent| [attribution.sources_of(agent), attribution.reach_of(agent)]).collect();
        for _ in 0..2 {
            let (sources, reach) = (attribution.sources_of_many(&chosen), attribution.reach_of_many(&chosen));
            for (wanted, met) in wanted.iter().zip(sources.iter().zip(&reach)) {
                let pairs = wanted[0].iter().zip(met.0).chain(wanted[1].iter().zip(met.1));
                assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-9));
            }
            attribution.lu = None;
        }
        let paths = Paths::new(&model.combination, model.adaptation);
        let all = strongest_paths(&model.combination, model.adaptation, 7);
        assert_eq!(paths.between(&[3, 49, 7], 7), [all[3].clone(), all[49].clone(), all[7].clone()]);
    }

    #[test]
    fn listeners_left_alone_are_named() {
        let mut model = two_agents();
        model.combination = Combination::from_columns(vec![1.0, 0.0, 1.0, 0.0], 2).unwrap();
        assert_eq!(what_if(&model, 0, &Intervention::Remove).unwrap().stranded, [1]);
    }

    #[test]
    fn error_probability_by_hand() {
        // A = I: each agent is alone, Λ has mean L̄ and variance δ²R/(1 − (1−δ)²) = R/3.
        let mut model = two_agents();
        model.combination = Combination::from_columns(vec![1.0, 0.0, 0.0, 1.0], 2).unwrap();
        let all = error_probabilities(&model, 0).unwrap();
        for (agent, (mean, variance)) in [(0.2, 1.0 / 3.0), (1.0, 4.0 / 3.0f64)].into_iter().enumerate() {
            let wanted = 0.5 * erfc(mean / (2.0 * variance).sqrt());
            assert!((all[agent] - wanted).abs() < 1e-12);
            assert!((error_probability(&model, 0, agent).unwrap() - wanted).abs() < 1e-12);
        }
        model.innovation = None;
        assert!(error_probabilities(&model, 0).unwrap_err().to_string().contains("innovation"));
    }

    #[test]
    fn error_probability_meets_the_simulated_rate() {
        let params = WorldParams {
            agents: 8,
            edge_probability: 0.4,
            hypotheses: 4,
            truth: 1,
            steps: 200_000,
            influential_scale: 0.2,
            adaptation: 0.2,
            likelihoods: crate::simulate::Likelihoods::Gaussian { dimension: 3 },
            ..Default::default()
        };
        let mut world = World::new(params).unwrap();
        let truth = world.truth();
        let all = error_probabilities(&truth, 1).unwrap();
        for (agent, probability) in all.iter().enumerate() {
            assert!((error_probability(&truth, 1, agent).unwrap() - probability).abs() < 1e-6);
        }
        let mut errors = [0usize; 8];
        for _ in 0..200_000 {
            let frame = world.next_frame().unwrap();
            for (agent, errors) in errors.iter_mut().enumerate() {
                let row: Vec<f64> = frame[agent..].iter().step_by(8).copied().collect();
                *errors += usize::from(likeliest(&row) != 1);
            }
        }
        // Beliefs are exactly Gaussian here; 200 000 correlated steps leave a standard error of about 0.003.
        for (agent, errors) in errors.iter().enumerate() {
            let rate = *errors as f64 / 200_000.0;
            assert!((rate - all[agent]).abs() < 0.015, "agent {agent}: {rate} against {}", all[agent]);
        }
    }

    #[test]
    fn orthants_by_hand() {
        // Two coordinates of correlation r at mean zero: 1/4 + asin(r)/2π.
        for r in [-0.9, 0.0, 0.5, 1.0f64] {
            let covariance = Mat::from_fn(2, 2, |a, b| if a == b { 1.0 } else { r });
            let wanted = 0.25 + r.asin() / std::f64::consts::TAU;
            let met = all_positive(&[0.0, 0.0], &covariance);
            assert!((met - wanted).abs() < 2e-4, "{r}: {met} {wanted}");
        }
    }

    proptest! {
        #[test]
        fn paths_beat_every_single_edge(seed in 0u64..200) {
            let params = WorldParams { agents: 10, steps: 1, edge_probability: 0.4, seed, rule: crate::graph::Rule::Random, ..Default::default() };
            let truth = World::new(params).unwrap().truth();
            let paths = strongest_paths(&truth.combination, 0.1, 4);
            for (speaker, weight) in truth.combination.listener(4) {
                let path = paths[speaker].as_ref().unwrap();
                if speaker != 4 {
                    prop_assert!(path.strength >= 0.9 * weight - 1e-12);
                }
                let product: f64 = path.agents.windows(2).map(|hop| 0.9 * truth.combination.weight(hop[0], hop[1])).product();
                prop_assert!((product - path.strength).abs() < 1e-12);
            }
        }
    }
}
