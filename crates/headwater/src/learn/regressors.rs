//! Regressors of each listener, and their moments.
//!
//! In: a panel and perhaps a support. Out: the [`DistinctAgents`], and for each listener its [`ListenerMoments`]: second
//! moments of the listener and of its possible speakers. Without a support all listeners share the moments of the whole
//! panel; with one, each has small moments of its own, so that memory and work grow with the edges and not with N².

use super::moments::Moments;
use crate::{Error, Panel, progress};
use rayon::prelude::*;
use std::borrow::Cow;

/// Variation of a constant series, relative to the largest belief, at most.
const STILL: f64 = 1e-12;

/// Which agents can be told apart.
#[derive(Debug, Clone)]
pub(crate) struct DistinctAgents {
    /// Speakers that enter as regressors: neither constant nor the copy of an earlier one.
    pub(crate) regressors: Vec<usize>,
    pub(crate) constant: Vec<bool>,
    /// For each agent the first one with the same series.
    original: Vec<usize>,
    /// For each original all agents with the same series, itself included.
    pub(crate) copies: Vec<Vec<usize>>,
}

impl DistinctAgents {
    pub(crate) fn from_panel(panel: &Panel) -> Self {
        let (agents, ratios) = (panel.agents(), panel.ratios());
        let largest = panel.cells().iter().fold(0.0f64, |most, value| most.max(value.abs()));
        let mut squares = vec![0.0; agents * ratios];
        let mut all = 0;
        // About the mean of each episode: an agent is constant that never changes within one.
        for range in panel.episodes().ranges() {
            let frames = &panel.cells()[range.start * agents * ratios..range.end * agents * ratios];
            // The last frame is no regressor: an agent that changes only there is constant.
            let past = frames.len() - agents * ratios;
            let lines = || frames[..past].chunks_exact(agents).zip((0..ratios).cycle());
            let first = &frames[..agents * ratios];
            let count = (past / (agents * ratios)).max(1);
            all += count;
            let mut means = vec![0.0; agents * ratios];
            for (line, ratio) in lines() {
                for (agent, value) in line.iter().enumerate() {
                    means[ratio * agents + agent] += (value - first[ratio * agents + agent]) / count as f64;
                }
            }
            for (line, ratio) in lines() {
                for (agent, value) in line.iter().enumerate() {
                    let cell = ratio * agents + agent;
                    squares[cell] += (value - first[cell] - means[cell]).powi(2);
                }
            }
        }
        let still = (STILL * largest).powi(2) * all as f64;
        let moves = |agent: usize| (0..ratios).any(|ratio| squares[ratio * agents + agent] > still);
        let constant: Vec<bool> = (0..agents).map(|agent| !moves(agent)).collect();
        let same = |a: usize, b: usize| {
            panel.cells().chunks_exact(agents).all(|line| (line[a] - line[b]).abs() <= STILL * largest)
        };
        // Sorted by variance, only neighbours can have equal series.
        let mut order: Vec<usize> = (0..agents).filter(|&agent| !constant[agent]).collect();
        order.sort_by(|&a, &b| squares[a].total_cmp(&squares[b]).then(a.cmp(&b)));
        let mut original: Vec<usize> = (0..agents).collect();
        for (position, &agent) in order.iter().enumerate() {
            let near = order[position + 1..]
                .iter()
                .take_while(|&&other| squares[other] - squares[agent] <= 1e-6 * squares[other].max(still));
            for &other in near {
                let (a, b) = (original[agent], original[other]);
                if a != b && same(agent, other) {
                    let (keep, drop) = (a.min(b), a.max(b));
                    original.iter_mut().filter(|original| **original == drop).for_each(|original| *original = keep);
                }
            }
        }
        let regressors = (0..agents).filter(|&agent| !constant[agent] && original[agent] == agent).collect();
        let mut copies = vec![Vec::new(); agents];
        original.iter().enumerate().for_each(|(agent, &original)| copies[original].push(agent));
        DistinctAgents { regressors, constant, original, copies }
    }

    /// The regressors among the speakers a listener may hear, itself included; a copy counts as its original.
    pub(crate) fn within(&self, speakers: &[usize], listener: usize) -> Vec<usize> {
        let mut heard: Vec<usize> = speakers.iter().chain([&listener]).map(|&speaker| self.original[speaker]).collect();
        heard.sort_unstable();
        heard.dedup();
        heard.retain(|&speaker| !self.constant[speaker]);
        heard
    }

    /// Divides the weight of identical agents equally, because only its sum is identified.
    pub(crate) fn share(&self, speaker: usize, weight: f64) -> impl Iterator<Item = (usize, f64)> + '_ {
        let copies = &self.copies[speaker];
        copies.iter().map(move |&agent| (agent, weight / copies.len() as f64))
    }

    pub(crate) fn warnings(&self, panel: &Panel) -> Vec<String> {
        let mut warnings = Vec::new();
        let constant: Vec<usize> = (0..self.constant.len()).filter(|&agent| self.constant[agent]).collect();
        if !constant.is_empty() {
            warnings.push(format!(
                "the beliefs of these agents never change, so neither their weights nor those given to them can be estimated: {}",
                panel.roster().list(&constant)
            ));
        }
        for &speaker in self.regressors.iter().filter(|&&speaker| self.copies[speaker].len() > 1) {
            warnings.push(format!(
                "these agents have identical beliefs at every step, so only their summed weight is identified: {}",
                panel.roster().list(&self.copies[speaker])
            ));
        }
        warnings
    }
}

/// The moments of one listener and of the speakers it may hear.
#[derive(Debug)]
pub(crate) struct ListenerMoments<'a> {
    pub(crate) moments: Cow<'a, Moments>,
    /// Index of the listener in these moments.
    pub(crate) listener: usize,
    /// Indices of its speakers.
    pub(crate) regressors: Cow<'a, [usize]>,
}

/// Source of the moments.
#[derive(Debug)]
enum MomentSource<'a> {
    Whole(Cow<'a, Moments>),
    /// Agent by agent and ratio by ratio, T numbers each, and the number of steps of each episode: small moments are
    /// gathered when needed.
    Series(Vec<f64>, Vec<usize>),
}

/// Listeners with their regressors and moments.
#[derive(Debug)]
pub(crate) struct Regressors<'a> {
    pub(crate) listeners: Vec<usize>,
    distinct: &'a DistinctAgents,
    /// By position; empty when all may hear everyone.
    heard: Vec<Vec<usize>>,
    source: MomentSource<'a>,
    ratios: usize,
}

impl<'a> Regressors<'a> {
    /// Of all agents whose belief ever changes, from a whole panel.
    pub(crate) fn from_panel(panel: &Panel, distinct: &'a DistinctAgents, support: Option<&[Vec<usize>]>) -> Self {
        let source = match support {
            None => MomentSource::Whole(Cow::Owned(Moments::from_panel(panel, 1..panel.steps()))),
            Some(_) => {
                MomentSource::Series(series(panel), panel.episodes().ranges().map(|range| range.len()).collect())
            }
        };
        let listeners = (0..panel.agents()).filter(|&agent| !distinct.constant[agent]).collect();
        Regressors::new(listeners, distinct, support, source, panel.ratios())
    }

    /// Of some listeners, from given moments.
    pub(crate) fn from_moments(
        moments: &'a Moments,
        distinct: &'a DistinctAgents,
        support: Option<&[Vec<usize>]>,
        mut listeners: Vec<usize>,
    ) -> Self {
        listeners.retain(|&agent| !distinct.constant[agent]);
        Regressors::new(listeners, distinct, support, MomentSource::Whole(Cow::Borrowed(moments)), moments.ratios())
    }

    fn new(
        listeners: Vec<usize>,
        distinct: &'a DistinctAgents,
        support: Option<&[Vec<usize>]>,
        source: MomentSource<'a>,
        ratios: usize,
    ) -> Self {
        let within = |support: &[Vec<usize>]| {
            listeners.iter().map(|&listener| distinct.within(&support[listener], listener)).collect()
        };
        Regressors { heard: support.map_or_else(Vec::new, within), listeners, distinct, source, ratios }
    }

    /// The speakers the listener at a position may hear.
    pub(crate) fn regressors(&self, position: usize) -> &[usize] {
        self.heard.get(position).unwrap_or(&self.distinct.regressors)
    }

    /// The first agent with the same series as this one.
    pub(crate) fn original(&self, agent: usize) -> usize {
        self.distinct.original[agent]
    }

    /// Whether other agents have exactly the same series.
    pub(crate) fn copied(&self, speaker: usize) -> bool {
        self.distinct.copies[speaker].len() > 1
    }

    /// Whether there is an agent whose belief never changes.
    pub(crate) fn someone_never_moves(&self) -> bool {
        self.distinct.constant.contains(&true)
    }

    /// The moments all listeners share: one log-ratio, no support.
    pub(crate) fn shared(&self) -> Option<&Moments> {
        match &self.source {
            MomentSource::Whole(moments) if self.ratios == 1 && self.heard.is_empty() => Some(moments),
            _ => None,
        }
    }

    /// The moments of all agents, where there are any.
    pub(crate) fn moments(&self) -> Option<&Moments> {
        match &self.source {
            MomentSource::Whole(moments) => Some(moments),
            MomentSource::Series(..) => None,
        }
    }

    /// The moments of the listener at a position.
    pub(crate) fn listener_moments(&self, position: usize) -> ListenerMoments<'_> {
        let (listener, regressors) = (self.listeners[position], self.regressors(position));
        match &self.source {
            MomentSource::Whole(moments) => {
                ListenerMoments { moments: Cow::Borrowed(moments), listener, regressors: Cow::Borrowed(regressors) }
            }
            MomentSource::Series(series, episodes) => {
                // A copy of an earlier agent is no regressor of its own, but still listens.
                let mut members = regressors.to_vec();
                if let Err(place) = members.binary_search(&listener) {
                    members.insert(place, listener);
                }
                let place = |agent: &usize| members.binary_search(agent).unwrap_or_default();
                let regressors = regressors.iter().map(place).collect();
                let listener = place(&listener);
                let moments =
                    Cow::Owned(gathered(series, episodes, (self.distinct.constant.len(), self.ratios), &members));
                ListenerMoments { moments, listener, regressors: Cow::Owned(regressors) }
            }
        }
    }

    /// One value per listener, in parallel.
    pub(crate) fn each<T: Send>(&self, task: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
        (0..self.listeners.len()).into_par_iter().map(task).collect()
    }

    /// The same with progress reports and checks for a request to stop.
    pub(crate) fn each_watched<T: Send>(
        &self,
        what: &str,
        task: impl Fn(usize) -> T + Sync + Send,
    ) -> Result<Vec<T>, Error> {
        let stage = progress::stage(what, self.listeners.len() as u64);
        let watched = |position: usize| {
            progress::check()?;
            let done = task(position);
            stage.advance();
            // A task that was stopped has no result.
            progress::check().map(|()| done)
        };
        (0..self.listeners.len()).into_par_iter().map(watched).collect()
    }
}

/// The panel agent by agent.
fn series(panel: &Panel) -> Vec<f64> {
    let (width, steps) = (panel.agents() * panel.ratios(), panel.steps());
    let (agents, ratios, cells) = (panel.agents(), panel.ratios(), panel.cells());
    let mut out = vec![0.0; width * steps];
    out.par_chunks_exact_mut(steps).enumerate().for_each(|(line, series)| {
        let (agent, ratio) = (line / ratios, line % ratios);
        series.iter_mut().enumerate().for_each(|(step, out)| *out = cells[step * width + ratio * agents + agent]);
    });
    out
}

/// The moments of a few agents.
fn gathered(series: &[f64], episodes: &[usize], (agents, ratios): (usize, usize), members: &[usize]) -> Moments {
    let steps = series.len() / (agents * ratios);
    let width = members.len() * ratios;
    let mut frames = vec![0.0; steps * width];
    for (place, &agent) in members.iter().enumerate() {
        for ratio in 0..ratios {
            let line = &series[(agent * ratios + ratio) * steps..][..steps];
            let cells = frames.iter_mut().skip(ratio * members.len() + place).step_by(width);
            cells.zip(line).for_each(|(cell, value)| *cell = *value);
        }
    }
    let mut moments = Moments::empty(members.len(), ratios);
    let mut frames = frames.as_slice();
    for steps in episodes {
        let (episode, later) = frames.split_at(steps * width);
        let mut one = Moments::empty(members.len(), ratios);
        one.push_frames(episode);
        moments.join_centred(&one);
        frames = later;
    }
    moments
}
