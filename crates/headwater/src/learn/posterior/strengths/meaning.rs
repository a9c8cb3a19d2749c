//! What a point of the posterior of speaker strengths means: centralities, shares, drifts and covariances of the log-ratios.

use crate::influence::signed_shares;
use crate::learn::posterior::attention::Attention;
use crate::learn::posterior::axes::RatioAxes;
use crate::learn::posterior::draws::Draw;
use crate::learn::posterior::marginal::Support;
use crate::learn::posterior::target::{RatioLayout, StrengthsTarget};
use crate::model::EpisodeEvidence;
use crate::{Combination, Error, Model, Panel};

/// A draw with the parameters of the weights.
pub(super) type StrengthsDraw = Draw<Vec<f64>>;

pub(super) fn combination(support: &Support, weights: &[f64]) -> Result<Combination, Error> {
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

/// How a point of the parameter space is read: the axes of its log-ratios, and the hypothesis that shares are of.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) axes: RatioAxes,
    truth: usize,
    /// Components that listen to nobody outside, where centralities are computed to nine digits only.
    sources: Option<Vec<Vec<usize>>>,
}

impl Reading {
    /// Of a single log-ratio.
    pub(super) fn single() -> Self {
        Reading { axes: RatioAxes::single(), truth: 0, sources: None }
    }

    /// Of a single log-ratio of many agents; every speaker of the support is heard.
    pub(super) fn of_many(support: &Support) -> Result<Self, Error> {
        let heard = combination(support, &vec![1.0; support.edges()])?;
        Ok(Reading { sources: Some(heard.source_components()), ..Reading::single() })
    }

    /// Along the axes and by the truth of a first fit.
    pub(super) fn from_model(model: &Model) -> Self {
        match model.evidence.ratios() {
            1 => Reading::single(),
            _ => Reading {
                axes: RatioAxes::from_model(model),
                truth: model.truth.map_or(0, |truth| truth.hypothesis),
                sources: None,
            },
        }
    }

    /// What a point means.
    pub(super) fn draw(&self, target: &StrengthsTarget, point: &[f64]) -> Result<StrengthsDraw, Error> {
        let point = &*target.pinned(point);
        let attention = Attention::new(&target.support, point);
        let (agents, ratios) = (target.support.agents(), target.ratios.len());
        let weights: Vec<f64> = attention.weights.iter().map(|weight| weight / attention.keep).collect();
        let network = combination(&target.support, &weights)?;
        let centrality = match &self.sources {
            Some(sources) => network.centrality_about(sources),
            None => network.centrality()?.values,
        };
        let by_episode = target.drifts(point, &attention);
        let along: Vec<Vec<f64>> = by_episode
            .chunks(agents * target.ratios[0].posts.episode_count())
            .map(|drifts| mean_over_episodes(target, drifts))
            .collect();
        let drifts: Vec<f64> = (0..agents).flat_map(|agent| self.axes.ratios(|axis| along[axis][agent])).collect();
        // D_k is the sum over all hypotheses of the evidence against them less that against the truth.
        let informativeness = |row: &[f64]| {
            let against = self.truth.checked_sub(1).map_or(0.0, |ratio| row[ratio]);
            row.iter().sum::<f64>() - (ratios + 1) as f64 * against
        };
        let influence: Vec<f64> =
            centrality.iter().zip(drifts.chunks(ratios)).map(|(u, row)| u * informativeness(row)).collect();
        let places: Vec<RatioLayout> = (0..ratios).map(|number| target.ratio(number)).collect();
        let news = |agent: usize| self.axes.covariance(|axis| point[places[axis].news().start + agent].exp());
        Ok(Draw {
            weights: point[..target.attention().size()].to_vec(),
            adaptation: 1.0 - attention.keep,
            centrality,
            shares: signed_shares(&influence).unwrap_or(influence),
            drifts,
            news: (0..agents).flat_map(news).collect(),
            noise: self.axes.covariance(|axis| point[places[axis].noise()].exp()),
        })
    }
}

/// Sums of the drifts of each episode over all draws, by axis, episode and agent, where there are several episodes.
pub(super) struct EpisodeDrifts {
    /// Name and number of steps.
    episodes: Vec<(String, usize)>,
    sums: Vec<f64>,
    draws: usize,
}

impl EpisodeDrifts {
    pub(super) fn new(panel: &Panel) -> Self {
        let several = panel.episodes().ranges().enumerate().filter(|_| !panel.episodes().is_single());
        let episodes: Vec<(String, usize)> =
            several.map(|(number, range)| (panel.episodes().label(number), range.len())).collect();
        EpisodeDrifts { sums: vec![0.0; episodes.len() * panel.width()], episodes, draws: 0 }
    }

    pub(super) fn add(&mut self, target: &StrengthsTarget, point: &[f64]) {
        if !self.episodes.is_empty() {
            let point = &*target.pinned(point);
            let drifts = target.drifts(point, &Attention::new(&target.support, point));
            self.sums.iter_mut().zip(&drifts).for_each(|(sum, drift)| *sum += drift);
            self.draws += 1;
        }
    }

    /// The evidence of each episode.
    pub(super) fn evidence(&self, axes: &RatioAxes, agents: usize, adaptation: f64) -> Option<Vec<EpisodeEvidence>> {
        let scale = self.draws as f64 * adaptation;
        let row = |episode: usize, agent: usize| {
            let along = |axis: usize| self.sums[(axis * self.episodes.len() + episode) * agents + agent] / scale;
            axes.ratios(along)
        };
        let one = |(episode, (name, steps)): (usize, &(String, usize))| {
            EpisodeEvidence::new(name.clone(), *steps, (0..agents).map(|agent| row(episode, agent)).collect())
        };
        (self.draws > 0).then(|| self.episodes.iter().enumerate().map(one).collect())
    }
}
