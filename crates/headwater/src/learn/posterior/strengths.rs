//! The posterior of speaker strengths by Hamiltonian Monte Carlo.
//!
//! In: a panel of two hypotheses and who may hear whom. Out: a [`StrengthsPosterior`]: draws of the network, δ and the
//! evidence, with their convergence.

use super::attention::Attention;
use super::diagnostics::{effective_size, r_hat};
use super::lanes::LANES;
use super::marginal::{Observation, Posts, Support};
use super::sampler::{Chains, Scaling, maximise};
use super::target::{
    DRIFT_FREEDOM, Density, OF_BLEND, OF_DEVIATIONS, OF_LOG_SCALES, OF_NEWS, OF_STRENGTHS, Ratio, StrengthsTarget,
    UnknownVariance, Variances,
};
use super::{SAMPLING, SamplingParams};
use crate::influence::signed_shares;
use crate::learn::gsl::Constraint;
use crate::learn::state_space::{SeriesSummary, StateSpaceParams};
use crate::model::posterior::{EdgeInterval, Posterior, PosteriorDraw, interval, rounded};
use crate::model::{EpisodeEvidence, Innovation, WeightKind};
use crate::{Combination, Error, Evidence, Model, Panel, progress};

/// Largest product of observations and squared number of agents: about a second for every step of the chains on two
/// cores, and ten minutes in all.
const MOST_WORK: usize = 300_000_000;

/// Initial δ, self-weight, and share of news in the variance of beliefs.
const FIRST: (f64, f64, f64) = (0.1, 0.2, 0.3);

/// Observations below which the mean of an agent says little about its level.
const FEW: usize = 5;

/// Rounds of maximum, curvature and variances before the chains start, and steps of the search in the first and in the
/// others.
const ROUNDS: usize = 3;
const SEARCH: (usize, usize) = (150, 40);

/// Trajectories in which the chains adapt their step and leave their start.
const WARM_UP: usize = 60;

/// Draws of each chain between two checks of convergence.
const BETWEEN_CHECKS: usize = 20;

/// Draws that are kept for intervals, at most.
const MOST_KEPT: usize = 500;

/// Whether the posterior of this model can be sampled: speaker strengths on a graph, two hypotheses, no common trend, and
/// not too many agents and posts.
pub(crate) fn applies(panel: &Panel, params: &StateSpaceParams) -> bool {
    let observations: usize =
        (0..panel.steps()).map(|step| (0..panel.agents()).filter(|&k| panel.posts(step, k) > 0).count()).sum();
    params.kind() == WeightKind::Strengths
        && params.support.is_some()
        && params.constraint == Constraint::Simplex
        && params.common.is_none()
        && panel.ratios() == 1
        && observations.saturating_mul(panel.agents().pow(2)) <= MOST_WORK
}

/// The observations of one log-ratio of a panel, by episode.
fn posts(panel: &Panel, ratio: usize, steps: usize) -> Posts {
    let agents = panel.agents();
    let (mut starts, mut observations) = (vec![0], Vec::new());
    for step in 0..steps {
        for agent in 0..agents {
            let count = panel.posts(step, agent);
            if count > 0 {
                let value = panel.cells()[step * panel.width() + ratio * agents + agent];
                observations.push(Observation { agent: agent as u32, value, share: 1.0 / f64::from(count) });
            }
        }
        starts.push(observations.len());
    }
    let episodes = (0..steps).map(|step| panel.episodes().at(step) as u32).collect();
    Posts { agents, starts, observations, episodes }
}

/// A density with a start, and typical changes of its variables.
pub(crate) struct Prepared {
    pub(crate) target: StrengthsTarget,
    pub(crate) start: Vec<f64>,
    pub(crate) scales: Vec<f64>,
}

pub(crate) fn prepare(panel: &Panel, steps: usize, support: &[Vec<usize>], adaptation: Option<f64>) -> Prepared {
    let agents = panel.agents();
    let summary = SeriesSummary::from_panel(panel, steps);
    let support = Support::new(support);
    let ratios: Vec<Ratio> = (0..panel.ratios())
        .map(|ratio| {
            let variances: Vec<f64> = (0..agents).map(|agent| summary.series(ratio * agents + agent).1).collect();
            let spread = variances.iter().sum::<f64>() / agents as f64;
            // The variance of few posts says little about an agent.
            let first = variances.iter().map(|variance| variance.max(0.1 * spread)).collect();
            Ratio { posts: posts(panel, ratio, steps), first, spread }
        })
        .collect();
    let variances = Variances::Held([OF_STRENGTHS.variance, OF_DEVIATIONS.variance, OF_NEWS.variance]);
    let target = StrengthsTarget { support, ratios, variances, adaptation, log_scales: OF_LOG_SCALES };
    let layout = target.attention();
    let mut start = vec![0.0; target.size()];
    let mut scales = vec![1.0; target.size()];
    let keep = 1.0 - adaptation.unwrap_or(FIRST.0);
    start[layout.blend()] = OF_BLEND.0;
    start[layout.keep()] = (keep / (1.0 - keep)).ln();
    let odds = Attention::new(&target.support, &start).mean_odds(&target.support);
    start[layout.own()] = (FIRST.1 / (1.0 - FIRST.1)).ln() - start[layout.blend()] * odds;
    let attention = Attention::new(&target.support, &start);
    scales[layout.strengths()].fill(0.3);
    scales[layout.deviations()].fill(0.3);
    for number in 0..panel.ratios() {
        let places = target.ratio(number);
        let ratio = &target.ratios[number];
        let spread = ratio.spread;
        let logs: Vec<f64> = ratio.first.iter().map(|variance| (FIRST.2 * variance).ln()).collect();
        start[places.mean_news()] = logs.iter().sum::<f64>() / agents as f64;
        start[places.news()].copy_from_slice(&logs);
        start[places.noise()] = summary.noise(number).ln();
        let mut said = vec![0; agents];
        ratio.posts.observations.iter().for_each(|one| said[one.agent as usize] += 1);
        let means: Vec<f64> = (0..agents).map(|agent| summary.series(number * agents + agent).0).collect();
        let counted = (0..agents).filter(|&agent| said[agent] >= FEW).map(|agent| means[agent]);
        let middle = median(counted.collect());
        for (place, cell) in places.levels().enumerate().map(|(cell, place)| (place, cell)) {
            let (episode, agent) = (cell / agents, cell % agents);
            let usual = if said[agent] >= FEW { means[agent] } else { middle };
            start[place] = own_level(panel, steps, number, episode, agent).unwrap_or(usual);
        }
        let drifts = target.drifts(&start, &attention);
        let centre = median(drifts.clone());
        let off = median(drifts.iter().map(|drift| (drift - centre).abs()).collect());
        start[places.drift_centre()] = centre;
        start[places.drift_scale()] = off.max(1e-3 * spread.sqrt()).ln();
        scales[places.levels()].fill(0.1 * spread.sqrt());
        scales[places.drift_centre()] = 0.1 * spread.sqrt();
        scales[places.news()].fill(0.2);
    }
    Prepared { target, start, scales }
}

/// The mean of an agent in one of several episodes, where it speaks often enough in it.
fn own_level(panel: &Panel, steps: usize, ratio: usize, episode: usize, agent: usize) -> Option<f64> {
    if panel.episodes().is_single() {
        return None;
    }
    let range = panel.episodes().range(episode);
    let spoken: Vec<usize> = (range.start..range.end.min(steps)).filter(|&step| panel.posts(step, agent) > 0).collect();
    let value = |step: &usize| panel.frame(*step)[(agent, ratio)];
    (spoken.len() >= FEW).then(|| spoken.iter().map(value).sum::<f64>() / spoken.len() as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The variance that maximises the expected density of numbers with these means and variances.
fn likeliest(law: UnknownVariance, values: &[f64], centre: f64, variances: impl Iterator<Item = f64>) -> f64 {
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() + variances.sum::<f64>();
    (law.freedom * law.variance + squares) / (law.freedom + values.len() as f64)
}

/// Coordinates for the chains: the maximum given the variances of the hierarchy, and the curvature there; the variances
/// follow by expectation-maximisation. At a maximum over the variances too, strengths would shrink to nothing.
fn approximate(prepared: &mut Prepared, each: &dyn Fn()) -> Result<Scaling, Error> {
    let Prepared { target, start, scales } = prepared;
    let mut point = start.clone();
    let mut scaling = Scaling::diagonal(point.clone(), scales);
    let fixed: Vec<usize> = (0..target.ratios.len()).map(|number| target.ratio(number).drift_scale()).collect();
    for round in 0..ROUNDS {
        let steps = if round == 0 { SEARCH.0 } else { SEARCH.1 };
        point = maximise(target, point, &scaling, &fixed, steps)?.0;
        scaling = Scaling::from_curvature(target, point.clone(), scales, each)?;
        if round + 1 == ROUNDS {
            break;
        }
        let layout = target.attention();
        let variance = |places: std::ops::Range<usize>| places.map(|place| scaling.variance(place)).collect::<Vec<_>>();
        let about = |law: UnknownVariance, places: std::ops::Range<usize>, centre: f64| {
            likeliest(law, &point[places.clone()], centre, variance(places).into_iter())
        };
        let news = target.ratio(0);
        let held = [
            about(OF_STRENGTHS, layout.strengths(), 0.0),
            about(OF_DEVIATIONS, layout.deviations(), 0.0),
            about(OF_NEWS, news.news(), point[news.mean_news()]),
        ];
        for number in 0..target.ratios.len() {
            point[target.ratio(number).drift_scale()] = drift_scale(target, &point, &scaling, number);
        }
        target.variances = Variances::Held(held);
    }
    Ok(scaling)
}

/// Logarithm of the scale of the Student law of the drifts, by expectation-maximisation.
fn drift_scale(target: &StrengthsTarget, point: &[f64], scaling: &Scaling, number: usize) -> f64 {
    let agents = target.support.agents();
    let places = target.ratio(number);
    let attention = Attention::new(&target.support, point);
    let drifts = target.drifts(point, &attention);
    let (centre, count) = (point[places.drift_centre()], places.levels().len());
    let squares: Vec<f64> = (0..count)
        .map(|cell| {
            let (first, agent) = (places.levels().start + cell / agents * agents, cell % agents);
            let deviation = |column: usize| {
                let heard: f64 = target
                    .support
                    .of(agent)
                    .map(|edge| {
                        attention.weights[edge] * scaling.root[(first + target.support.speakers[edge] as usize, column)]
                    })
                    .sum();
                scaling.root[(first + agent, column)] - heard
            };
            let variance: f64 = (0..target.size()).map(|column| deviation(column).powi(2)).sum();
            (drifts[number * count + cell] - centre).powi(2) + variance
        })
        .collect();
    let mut scale = (2.0 * point[places.drift_scale()]).exp();
    for _ in 0..30 {
        let weighed = |square: &f64| (DRIFT_FREEDOM + 1.0) * square / (DRIFT_FREEDOM + square / scale);
        scale = squares.iter().map(weighed).sum::<f64>() / count as f64;
    }
    0.5 * scale.ln()
}

/// What a draw of the parameters means.
struct Draw {
    /// A, by edge of the support.
    weights: Vec<f64>,
    strengths: Vec<f64>,
    adaptation: f64,
    centrality: Vec<f64>,
    /// δL̄, the mean over the episodes.
    drifts: Vec<f64>,
    shares: Vec<f64>,
    news: Vec<f64>,
    noise: f64,
}

fn combination(support: &Support, weights: &[f64]) -> Result<Combination, Error> {
    let listeners = 0..support.agents();
    let triplets = listeners.flat_map(|listener| {
        support.of(listener).map(move |edge| (support.speakers[edge] as usize, listener, weights[edge]))
    });
    Combination::from_triplets(triplets.collect(), support.agents())
}

/// The drifts of the agents, by episode, averaged over the episodes: each weighs as much as the steps at which the agent spoke
/// in it.
fn mean_over_episodes(target: &StrengthsTarget, by_episode: &[f64]) -> Vec<f64> {
    let (agents, posts) = (target.support.agents(), &target.ratios[0].posts);
    let episodes = posts.episode_count();
    if episodes == 1 {
        return by_episode.to_vec();
    }
    let mut spoken = vec![0.0; agents * episodes];
    for (step, &episode) in posts.episodes.iter().enumerate() {
        let here = &posts.observations[posts.starts[step]..posts.starts[step + 1]];
        here.iter().for_each(|one| spoken[episode as usize * agents + one.agent as usize] += 1.0);
    }
    let mean = |agent: usize| {
        let all = || (0..episodes).map(|episode| episode * agents + agent);
        all().map(|cell| spoken[cell] * by_episode[cell]).sum::<f64>() / all().map(|cell| spoken[cell]).sum::<f64>()
    };
    (0..agents).map(mean).collect()
}

fn derive(target: &StrengthsTarget, point: &[f64]) -> Result<Draw, Error> {
    let point = &*target.pinned(point);
    let attention = Attention::new(&target.support, point);
    let agents = target.support.agents();
    let weights: Vec<f64> = attention.weights.iter().map(|weight| weight / attention.keep).collect();
    let centrality = combination(&target.support, &weights)?.centrality()?.values;
    let by_episode = target.drifts(point, &attention);
    let drifts = mean_over_episodes(target, &by_episode[..agents * target.ratios[0].posts.episode_count()]);
    let influence: Vec<f64> = centrality.iter().zip(&drifts).map(|(u, drift)| u * drift).collect();
    let places = target.ratio(0);
    Ok(Draw {
        weights,
        strengths: point[target.attention().strengths()].to_vec(),
        adaptation: 1.0 - attention.keep,
        centrality,
        shares: signed_shares(&influence).unwrap_or(influence),
        drifts,
        news: point[places.news()].iter().map(|news| news.exp()).collect(),
        noise: point[places.noise()].exp(),
    })
}

/// Sums of the drifts of each episode over all draws, where there are several.
struct EpisodeDrifts {
    /// Name and number of steps.
    episodes: Vec<(String, usize)>,
    sums: Vec<f64>,
    draws: usize,
}

impl EpisodeDrifts {
    fn new(panel: &Panel) -> Self {
        let several = panel.episodes().ranges().enumerate().filter(|_| !panel.episodes().is_single());
        let episodes: Vec<(String, usize)> =
            several.map(|(number, range)| (panel.episodes().label(number), range.len())).collect();
        EpisodeDrifts { sums: vec![0.0; episodes.len() * panel.agents()], episodes, draws: 0 }
    }

    fn add(&mut self, target: &StrengthsTarget, point: &[f64]) {
        if !self.episodes.is_empty() {
            let point = &*target.pinned(point);
            let drifts = target.drifts(point, &Attention::new(&target.support, point));
            self.sums.iter_mut().zip(&drifts).for_each(|(sum, drift)| *sum += drift);
            self.draws += 1;
        }
    }

    /// The evidence of each episode.
    fn evidence(&self, agents: usize, adaptation: f64) -> Option<Vec<EpisodeEvidence>> {
        let mean = |sum: &f64| vec![sum / (self.draws as f64 * adaptation)];
        let one = |((name, steps), sums): (&(String, usize), &[f64])| {
            EpisodeEvidence::new(name.clone(), *steps, sums.iter().map(mean).collect())
        };
        (self.draws > 0).then(|| self.episodes.iter().zip(self.sums.chunks(agents)).map(one).collect())
    }
}

/// Draws by chain.
pub(crate) struct StrengthsPosterior {
    support: Support,
    chains: Vec<Vec<Draw>>,
    episodes: EpisodeDrifts,
    effective_size: f64,
    r_hat: f64,
}

/// Samples the posterior until the chains have converged, have made `sampling.draws` draws each, or are asked to finish.
pub(crate) fn sample(
    panel: &Panel,
    params: &StateSpaceParams,
    sampling: &SamplingParams,
) -> Result<StrengthsPosterior, Error> {
    sampling.check()?;
    let support = params.support.as_deref().unwrap_or_default();
    let mut prepared = prepare(panel, panel.steps(), support, params.adaptation);
    let stage = progress::stage("approximating the posterior", 0);
    let scaling = approximate(&mut prepared, &|| ())?;
    drop(stage);
    let mut target = prepared.target;
    target.variances = Variances::Integrated;
    let count = sampling.chains.next_multiple_of(LANES);
    let mut chains = Chains::new(&target, scaling, count, 1.0, sampling.seed)?;
    let mut posterior = StrengthsPosterior {
        chains: (0..count).map(|_| Vec::new()).collect(),
        support: target.support.clone(),
        episodes: EpisodeDrifts::new(panel),
        effective_size: 0.0,
        r_hat: f64::INFINITY,
    };
    // Usually the third check is passed.
    let expected = sampling.draws.min(3 * BETWEEN_CHECKS);
    let stage = progress::stage(SAMPLING, (WARM_UP + expected) as u64);
    for _ in 0..WARM_UP {
        chains.advance(&target, true)?;
        stage.advance();
    }
    chains.settle();
    for number in 1..=sampling.draws {
        chains.advance(&target, false)?;
        stage.at((WARM_UP + number.min(expected)) as u64);
        for (kept, point) in posterior.chains.iter_mut().zip(chains.points()) {
            kept.push(derive(&target, &point)?);
            posterior.episodes.add(&target, &point);
        }
        let finishing = progress::finishing() && number >= 4;
        if number % BETWEEN_CHECKS == 0 || number == sampling.draws || finishing {
            posterior.check();
            if finishing || posterior.summary().converged() {
                break;
            }
        }
    }
    Ok(posterior)
}

impl StrengthsPosterior {
    /// Measures the convergence of shares and δ.
    fn check(&mut self) {
        let series = |of: &dyn Fn(&Draw) -> f64| -> Vec<Vec<f64>> {
            self.chains.iter().map(|chain| chain.iter().map(of).collect()).collect()
        };
        let mut all: Vec<Vec<Vec<f64>>> =
            (0..self.support.agents()).map(|agent| series(&|draw| draw.shares[agent])).collect();
        all.push(series(&|draw| draw.adaptation));
        self.effective_size = all.iter().map(|chains| effective_size(chains)).fold(f64::INFINITY, f64::min);
        self.r_hat = all.iter().map(|chains| r_hat(chains)).fold(1.0, f64::max);
    }

    fn draws(&self) -> impl Iterator<Item = &Draw> {
        self.chains.iter().flatten()
    }

    fn mean(&self, of: impl Fn(&Draw) -> f64) -> f64 {
        let count: usize = self.chains.iter().map(Vec::len).sum();
        self.draws().map(of).sum::<f64>() / count as f64
    }

    fn variance(&self, of: impl Fn(&Draw) -> f64) -> f64 {
        let centre = self.mean(&of);
        self.mean(|draw| (of(draw) - centre).powi(2))
    }

    /// What is kept of it in a model.
    fn summary(&self) -> Posterior {
        let (agents, length) = (self.support.agents(), self.chains[0].len());
        let total = self.chains.len() * length;
        let every = total.div_ceil(MOST_KEPT).max(1);
        // Draw by draw and then chain by chain, so that every chain is kept alike.
        let kept = (0..total).step_by(every).map(|place| {
            let draw = &self.chains[place % self.chains.len()][place / self.chains.len()];
            let evidence = draw.drifts.iter().map(|drift| drift / draw.adaptation).collect();
            PosteriorDraw::new(draw.adaptation, draw.centrality.clone(), evidence)
        });
        let mut edges = Vec::new();
        for listener in 0..agents {
            for edge in self.support.of(listener).skip(1) {
                let found = interval(self.draws().map(|draw| draw.weights[edge]).collect());
                edges.push(EdgeInterval::new(self.support.speakers[edge] as usize, listener, found));
            }
        }
        let spread = |draw: &Draw| likeliest(OF_STRENGTHS, &draw.strengths, 0.0, std::iter::empty());
        let prior = self.mean(spread);
        let information = (0..agents).map(|agent| {
            let variance = self.variance(|draw| draw.strengths[agent]);
            rounded(0.5 * (prior / variance).ln().max(0.0))
        });
        Posterior {
            chains: self.chains.len(),
            draws: length,
            effective_size: rounded(self.effective_size),
            r_hat: rounded(self.r_hat),
            kept: kept.collect(),
            edges,
            information: information.collect(),
        }
    }

    /// Replaces the estimates of a model by posterior means, and adds the draws.
    pub(crate) fn apply(&self, model: &mut Model) -> Result<(), Error> {
        let agents = self.support.agents();
        let weights: Vec<f64> = (0..self.support.edges()).map(|edge| self.mean(|draw| draw.weights[edge])).collect();
        model.combination = combination(&self.support, &weights)?;
        model.adaptation = self.mean(|draw| draw.adaptation);
        // The ratio of means, because δ is in the denominator of every draw of the evidence.
        let drift = |agent: usize| self.mean(|draw| draw.drifts[agent]);
        let evidence: Vec<f64> = (0..agents).map(|agent| drift(agent) / model.adaptation).collect();
        let errors = (0..agents).map(|agent| self.variance(|draw| draw.drifts[agent] / draw.adaptation).sqrt());
        model.diagnostics.evidence_errors = Some(errors.map(|error| vec![error]).collect());
        let news = |agent: usize| self.mean(|draw| draw.news[agent] / draw.adaptation.powi(2));
        model.innovation = Some(Innovation::from_cells((0..agents).map(news).collect(), agents, 1)?);
        model.evidence = Evidence::from_rows(evidence, agents, 1)?;
        if let Some(smoothing) = &mut model.diagnostics.smoothing {
            let strengths: Vec<f64> = (0..agents).map(|agent| self.mean(|draw| draw.strengths[agent])).collect();
            let centre = strengths.iter().sum::<f64>() / agents as f64;
            smoothing.strengths = Some(strengths.iter().map(|strength| (strength - centre).exp()).collect());
            smoothing.noise = vec![vec![self.mean(|draw| draw.noise)]];
            let own = |listener: usize| self.mean(|draw| draw.weights[self.support.starts[listener]]);
            let others = (0..agents).filter(|&listener| self.support.of(listener).len() > 1);
            smoothing.self_weight = Some(median(others.map(own).collect()));
        }
        model.diagnostics.episodes = self.episodes.evidence(agents, model.adaptation);
        model.diagnostics.posterior = Some(self.summary());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
