//! The posterior of sparse edges: one weight per edge, zero for those who are not heard, with or without a graph.
//!
//! In: a panel of two hypotheses and who may hear whom. Out: an [`EdgesPosterior`]: draws of the network, δ and the
//! evidence, with their convergence, and the probability that each edge is there.
//!
//! Model: x_t = (1−δ)Aᵀx_{t−1} + d + η, η ~ N(0, Q); posts as in [`super::marginal`]. A listener always gives weight to
//! itself. Others are heard with a probability of the speaker, which has a Beta law with unknown mean and strength; the
//! weights that are not zero have a symmetric Dirichlet law with unknown parameter. Drifts have a Student law, news
//! variances a log-normal one, with unknown centres and scales; δ is uniform.
//!
//! [`chain`] has the sweep of the Gibbs sampler, [`path`] the beliefs of one agent given all others, [`pairs`] the moves of
//! weight between two speakers.

mod chain;
mod pairs;
mod path;

use super::draws::{Draw, Draws};
use super::target::{OF_LOG_SCALES, TYPICAL};
use super::{SAMPLING, SamplingParams};
use crate::influence::signed_shares;
use crate::learn::gsl::Constraint;
use crate::learn::state_space::{SeriesSummary, StateSpaceParams};
use crate::model::WeightKind;
use crate::model::posterior::{EdgeInterval, Posterior, interval};
use crate::{Combination, Error, Model, Panel, progress};
use chain::{CONCENTRATIONS, Chain, EdgesTarget, State};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Largest number of agents.
const MOST_AGENTS: usize = 60;

/// Largest product of steps and squared numbers of speakers of all listeners: about 60 ms for a sweep, half an hour or more
/// in all on two cores.
const MOST_WORK: usize = 200_000_000;

/// The same for draws that nobody asked for: minutes.
const MOST_WORK_UNASKED: usize = 40_000_000;

/// Steps below which sampling is of no use.
const FEWEST_STEPS: usize = 20;

/// Sweeps in which a chain adapts its moves and leaves its start.
const WARM_UP: usize = 300;

/// Sweeps from one draw to the next.
const SWEEPS: usize = 4;

/// Chains of strengths for one of edges: these leave their start more slowly, and their draws cost more.
const FEWER_CHAINS: usize = 4;

/// Draws of each chain between two checks of convergence.
const BETWEEN_CHECKS: usize = 20;

/// Draws that are kept for intervals, at most.
const MOST_KEPT: usize = 500;

/// Observations below which the mean of an agent says little about its level.
const FEW: usize = 5;

/// Shares of others that are heard where a chain starts: none, nearly all, and some.
const STARTS: [f64; 4] = [0.0, 0.9, 0.2, 0.5];

/// Whether the posterior of this model can be sampled: one weight per edge, two hypotheses, one episode, no common trend, and
/// not too many agents, edges and steps.
pub(crate) fn applies(panel: &Panel, params: &StateSpaceParams) -> bool {
    params.kind() == WeightKind::Edges
        && params.constraint == Constraint::Simplex
        && params.common.is_none()
        && panel.ratios() == 1
        && panel.episodes().is_single()
        && (2..=MOST_AGENTS).contains(&panel.agents())
        && panel.steps() >= FEWEST_STEPS
        && work(panel, params) <= MOST_WORK
}

/// Whether the draws take minutes at most.
pub(crate) fn take_minutes(panel: &Panel, params: &StateSpaceParams) -> bool {
    applies(panel, params) && work(panel, params) <= MOST_WORK_UNASKED
}

/// Steps times squared numbers of speakers of all listeners.
fn work(panel: &Panel, params: &StateSpaceParams) -> usize {
    let degrees = match &params.support {
        Some(support) => support.iter().map(|speakers| (speakers.len() + 1).pow(2)).sum::<usize>(),
        None => panel.agents().pow(3),
    };
    panel.steps().saturating_mul(degrees)
}

/// The posts, who may be heard, and the scales of the priors.
fn prepare(panel: &Panel, support: Option<&[Vec<usize>]>, adaptation: Option<f64>) -> EdgesTarget {
    let (agents, steps) = (panel.agents(), panel.steps());
    let summary = SeriesSummary::from_panel(panel, steps);
    let series: Vec<(f64, f64)> = (0..agents).map(|agent| summary.series(agent)).collect();
    let spread = series.iter().map(|one| one.1).sum::<f64>() / agents as f64;
    let said = |agent: usize| (0..steps).filter(|&step| panel.posts(step, agent) > 0).count();
    let mut means: Vec<f64> = (0..agents).filter(|&agent| said(agent) >= FEW).map(|agent| series[agent].0).collect();
    means.sort_by(f64::total_cmp);
    let middle = means.get(means.len() / 2).copied().unwrap_or(0.0);
    // The mean and variance of few posts say little about an agent.
    let first = (0..agents)
        .map(|agent| (if said(agent) >= FEW { series[agent].0 } else { middle }, series[agent].1.max(0.1 * spread)))
        .collect();
    let speakers = (0..agents)
        .map(|listener| {
            let mut others: Vec<usize> = match support {
                Some(support) => support[listener].clone(),
                None => (0..agents).collect(),
            };
            others.retain(|&speaker| speaker != listener);
            others.sort_unstable();
            others.dedup();
            others.insert(0, listener);
            others
        })
        .collect();
    let counts_by_step: Vec<f64> =
        (0..steps * agents).map(|cell| f64::from(panel.posts(cell / agents, cell % agents))).collect();
    let cells = panel.cells().iter().zip(&counts_by_step);
    let values_by_step: Vec<f64> = cells.map(|(value, count)| if *count > 0.0 { *value } else { 0.0 }).collect();
    let by_agent = |all: &[f64]| (0..agents * steps).map(|cell| all[cell % steps * agents + cell / steps]).collect();
    EdgesTarget {
        agents,
        steps,
        speakers,
        values: by_agent(&values_by_step),
        counts: by_agent(&counts_by_step),
        values_by_step,
        counts_by_step,
        first,
        spread,
        adaptation,
        log_scales: OF_LOG_SCALES,
    }
}

/// Where a chain starts: its number tells how many are heard, the rest is random.
fn start(target: &EdgesTarget, noise: f64, number: usize, seed: u64) -> State {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(2 * number as u64 + 1);
    let agents = target.agents;
    let share = STARTS[number % STARTS.len()];
    let weights = target.speakers.iter().map(|speakers| {
        let mut weights: Vec<f64> = (0..speakers.len())
            .map(|place| match place == 0 || rng.random::<f64>() < share {
                true => f64::from(u8::from(place == 0)) + 0.1 + rng.random::<f64>(),
                false => 0.0,
            })
            .collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        weights
    });
    let weights = weights.collect();
    let news: Vec<f64> = target.first.iter().map(|first| 0.3 * first.1).collect();
    State {
        keep: target.adaptation.map_or_else(|| 0.75 + 0.2 * rng.random::<f64>(), |adaptation| 1.0 - adaptation),
        weights,
        drifts: vec![0.0; agents],
        mean_news: news.iter().map(|news| news.ln()).sum::<f64>() / agents as f64,
        news,
        noise,
        spread_news: 0.5,
        drift_centre: 0.0,
        drift_scale: TYPICAL.2 * target.spread,
        drift_factors: vec![1.0; agents],
        inclusion: 0,
        concentration: CONCENTRATIONS[0],
        beliefs: vec![0.0; agents * target.steps],
    }
}

/// A draw with A, for each listener in the order of its speakers.
type EdgesDraw = Draw<Vec<Vec<f64>>>;

fn combination(speakers: &[Vec<usize>], weights: &[Vec<f64>]) -> Result<Combination, Error> {
    let listeners = speakers.iter().zip(weights).enumerate();
    let triplets = listeners.flat_map(|(listener, (speakers, weights))| {
        let heard = speakers.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
        heard.map(move |(&speaker, &weight)| (speaker, listener, weight))
    });
    Combination::from_triplets(triplets.collect(), speakers.len())
}

fn derive(target: &EdgesTarget, state: &State) -> Result<EdgesDraw, Error> {
    let centrality = combination(&target.speakers, &state.weights)?.centrality()?.values;
    let influence: Vec<f64> = centrality.iter().zip(&state.drifts).map(|(u, drift)| u * drift).collect();
    Ok(Draw {
        weights: state.weights.clone(),
        adaptation: 1.0 - state.keep,
        centrality,
        drifts: state.drifts.clone(),
        shares: signed_shares(&influence).unwrap_or(influence),
        news: state.news.clone(),
        noise: vec![state.noise],
    })
}

/// Draws of the network and who may hear whom.
pub(crate) struct EdgesPosterior {
    speakers: Vec<Vec<usize>>,
    draws: Draws<Vec<Vec<f64>>>,
}

/// Samples the posterior until the chains have converged, have made `sampling.draws` draws each, or are asked to finish.
pub(crate) fn sample(
    panel: &Panel,
    params: &StateSpaceParams,
    sampling: &SamplingParams,
) -> Result<EdgesPosterior, Error> {
    sampling.check()?;
    let target = prepare(panel, params.support.as_deref(), params.adaptation);
    let noise = SeriesSummary::from_panel(panel, panel.steps()).noise(0);
    let count = (sampling.chains / FEWER_CHAINS).max(STARTS.len());
    let mut chains: Vec<Chain> = (0..count)
        .map(|number| Chain::new(&target, start(&target, noise, number, sampling.seed), number, sampling.seed))
        .collect();
    let warm_up = WARM_UP / SWEEPS;
    let stage = progress::stage(SAMPLING, (warm_up + sampling.draws) as u64);
    let mut drawn = Draws::new(count);
    let advance = |chains: &mut [Chain], adapt: bool| -> Result<Vec<EdgesDraw>, Error> {
        let draws: Vec<Result<EdgesDraw, Error>> = chains
            .par_iter_mut()
            .map(|chain| {
                for _ in 0..SWEEPS {
                    progress::check()?;
                    chain.sweep(&target, adapt)?;
                }
                derive(&target, &chain.state)
            })
            .collect();
        stage.advance();
        draws.into_iter().collect()
    };
    for _ in 0..warm_up {
        advance(&mut chains, true)?;
    }
    for number in 1..=sampling.draws {
        let draws = advance(&mut chains, false)?;
        draws.into_iter().enumerate().for_each(|(chain, draw)| drawn.push(chain, draw));
        let finishing = progress::finishing() && number >= 4;
        if number % BETWEEN_CHECKS == 0 || number == sampling.draws || finishing {
            drawn.check();
            if finishing || drawn.converged() || drawn.hopeless(sampling.draws) {
                break;
            }
        }
    }
    Ok(EdgesPosterior { speakers: target.speakers, draws: drawn })
}

impl EdgesPosterior {
    /// What is kept of it in a model.
    fn summary(&self) -> Posterior {
        let mut edges = Vec::new();
        for (listener, speakers) in self.speakers.iter().enumerate() {
            for (place, &speaker) in speakers.iter().enumerate().skip(1) {
                let found = interval(self.draws.iter().map(|draw| draw.weights[listener][place]).collect());
                let probability = self.draws.mean(|draw| f64::from(u8::from(draw.weights[listener][place] > 0.0)));
                edges.push(EdgeInterval::new(speaker, listener, found).with_probability(probability));
            }
        }
        Posterior { edges, ..self.draws.summary(MOST_KEPT) }
    }

    /// Replaces the estimates of a model by posterior means, and adds the draws.
    pub(crate) fn apply(&self, model: &mut Model) -> Result<(), Error> {
        let weights: Vec<Vec<f64>> = (0..self.speakers.len())
            .map(|listener| {
                let places = 0..self.speakers[listener].len();
                places.map(|place| self.draws.mean(|draw| draw.weights[listener][place])).collect()
            })
            .collect();
        model.combination = combination(&self.speakers, &weights)?;
        self.draws.apply(model)?;
        model.diagnostics.posterior = Some(self.summary());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
