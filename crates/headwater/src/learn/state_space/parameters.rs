//! The parameters of the state-space model: their start, one maximisation step, and their extrapolation.

use super::StateSpaceParams;
use super::summary::{SMALLEST_VARIANCE, SeriesSummary};
use crate::learn::blocks::{Blocks, Centre};
use crate::learn::common_trend::CommonTrend;
use crate::learn::fit;
use crate::learn::gsl::Constraint;
use crate::learn::kalman::{Dynamics, Filtered, Smoothed, TrendLoading};
use crate::learn::moments::Moments;
use crate::learn::regressors::{DistinctAgents, Regressors};
use crate::learn::simplex;
use crate::learn::strengths::{self, Strengths};
use crate::learn::whitened::{self, Estimate};
use crate::model::{EpisodeEvidence, WeightKind};
use crate::{Combination, Error, Evidence, Model, Panel};
use faer::Mat;
use std::sync::Arc;

/// Initial δ.
const FIRST_ADAPTATION: f64 = 0.1;

/// Initial self-weight.
const FIRST_SELF_WEIGHT: f64 = 0.2;

/// Initial innovation variance, as a share of the variance of the beliefs.
const FIRST_NEWS: f64 = 0.4;

/// Longest extrapolation, in rounds.
const LONGEST_LEAP: f64 = 64.0;

/// Largest number of steps of the search for δ.
const STEPS_FOR_ADAPTATION: usize = 30;

/// Current values of the parameters.
#[derive(Debug, Clone)]
pub(super) struct Parameters {
    pub(super) dynamics: Dynamics,
    /// 1 − δ.
    pub(super) sum: f64,
    /// (1−δ) times the columns, by position in the regressors of each listener.
    pub(super) columns: Vec<Vec<f64>>,
    pub(super) strengths: Option<Strengths>,
    /// Negative log-prior of the weights.
    pub(super) penalty: f64,
    /// For each speaker its mean weight, relative to equal weights.
    pub(super) common: Vec<f64>,
    /// Share of each level of the episodes in the evidence of an agent, N numbers each.
    shares: Vec<f64>,
}

/// How many steps each episode has.
pub(super) fn all_steps(panel: &Panel) -> Vec<usize> {
    panel.episodes().ranges().map(|range| range.len()).collect()
}

/// The moments of all episodes from those of each, about the levels that they have.
pub(super) fn in_all(panel: &Panel, episodes: &[Moments]) -> Result<Moments, Error> {
    let centre = if panel.episodes().have_own_levels() { Centre::Episode } else { Centre::Shared };
    let numbers: Vec<usize> = (0..episodes.len()).collect();
    Blocks::of_episodes(panel).sum(episodes, &numbers, centre)
}

/// Share of each level in the evidence of an agent: that of the steps at which the agent spoke.
fn level_shares(panel: &Panel) -> Vec<f64> {
    let (agents, episodes) = (panel.agents(), panel.episodes());
    let mut shares = vec![0.0; agents * episodes.level_count()];
    for (number, range) in episodes.ranges().enumerate() {
        for agent in 0..agents {
            let spoken = range.clone().filter(|step| panel.posts(*step, agent) > 0).count();
            shares[episodes.level(number) * agents + agent] += spoken as f64;
        }
    }
    for agent in 0..agents {
        let all: f64 = shares.iter().skip(agent).step_by(agents).sum();
        let equal = 1.0 / episodes.level_count() as f64;
        shares
            .iter_mut()
            .skip(agent)
            .step_by(agents)
            .for_each(|share| *share = if all > 0.0 { *share / all } else { equal });
    }
    shares
}

/// Squared extrapolation of three successive parameter vectors (SQUAREM, Varadhan and Roland).
pub(super) fn extrapolated(first: &[f64], second: &[f64], third: &[f64]) -> Vec<f64> {
    let step: Vec<f64> = second.iter().zip(first).map(|(b, a)| b - a).collect();
    let bend: Vec<f64> = third.iter().zip(second).zip(&step).map(|((c, b), step)| c - b - step).collect();
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let reach = (norm(&step) / norm(&bend).max(f64::MIN_POSITIVE)).clamp(1.0, LONGEST_LEAP);
    let ahead = first.iter().zip(&step).zip(&bend);
    ahead.map(|((first, step), bend)| first + 2.0 * reach * step + reach * reach * bend).collect()
}

impl Parameters {
    /// The penalised log-likelihood, and the filtered beliefs.
    pub(super) fn filtered(&self, panel: &Panel) -> Result<(f64, Filtered), Error> {
        let filtered = self.dynamics.filter(panel, panel.steps(), true)?;
        Ok((filtered.log_likelihood - self.penalty, filtered))
    }

    /// All parameters as unconstrained numbers: logarithms of positive ones.
    pub(super) fn numbers(&self, params: &StateSpaceParams) -> Vec<f64> {
        let Dynamics { drift, innovation, noise, start, trend_loading, ratios, .. } = &self.dynamics;
        let logarithm = |block: &Mat<f64>| fit::powered(block, |value, _| value.ln());
        let cells = |block: Mat<f64>| (0..ratios * ratios).map(move |cell| block[(cell / ratios, cell % ratios)]);
        let mut numbers = vec![self.sum.ln()];
        numbers.extend(
            drift.iter().chain(start).chain(trend_loading.iter().flat_map(|trend_loading| &trend_loading.loading)),
        );
        numbers.extend(innovation.iter().chain([noise]).flat_map(|block| cells(logarithm(block))));
        match (&self.strengths, params.constraint) {
            (Some(strengths), _) => numbers.extend(strengths.numbers()),
            (None, Constraint::Simplex) => {
                numbers.extend(self.columns.iter().flatten().map(|weight| weight / self.sum))
            }
            (None, Constraint::Free) => numbers.extend(self.columns.iter().flatten()),
        }
        numbers
    }

    /// The inverse of [`Parameters::numbers`], clipped to the allowed range. Returns whether the result is valid.
    pub(super) fn read(&mut self, numbers: &[f64], params: &StateSpaceParams, distinct: &DistinctAgents) -> bool {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        if numbers.iter().any(|number| !number.is_finite()) {
            return false;
        }
        let (size, blocks) = (self.dynamics.drift.len(), (agents + 1) * ratios * ratios);
        let loadings = self.dynamics.trend_loading.as_ref().map_or(0, |trend_loading| trend_loading.loading.len());
        let (head, rest) = numbers.split_at(1 + 2 * size);
        let (loading, rest) = rest.split_at(loadings);
        let (news, weights) = rest.split_at(blocks);
        if params.adaptation.is_none() {
            self.sum = head[0].exp().clamp(1.0 - fit::ADAPTATION.end(), 1.0 - fit::ADAPTATION.start());
        }
        self.dynamics.drift.copy_from_slice(&head[1..=size]);
        self.dynamics.start.copy_from_slice(&head[1 + size..]);
        if let Some(trend_loading) = &mut self.dynamics.trend_loading {
            trend_loading.loading.copy_from_slice(loading);
        }
        let block = |index: usize| {
            let cell = |h: usize, g: usize| news[(index * ratios + h) * ratios + g];
            fit::powered(&Mat::from_fn(ratios, ratios, cell), |value, _| value.exp())
        };
        for agent in 0..agents {
            self.dynamics.innovation[agent] = self.floored(&block(agent), agent);
        }
        self.dynamics.noise = block(agents);
        let nothing = Moments::empty(agents, ratios);
        let design = Regressors::from_moments(&nothing, distinct, params.support.as_deref(), (0..agents).collect());
        if let Some(strengths) = &mut self.strengths {
            strengths.read(weights);
            self.columns = strengths.columns(&design, self.sum);
            self.penalty = strengths.penalty();
        } else {
            let mut left = weights;
            for column in &mut self.columns {
                let (mine, others) = left.split_at(column.len());
                left = others;
                if params.constraint == Constraint::Free {
                    column.copy_from_slice(mine);
                    continue;
                }
                let total: f64 = mine.iter().map(|weight| weight.max(0.0)).sum();
                if total <= 0.0 {
                    return false;
                }
                column.iter_mut().zip(mine).for_each(|(weight, mine)| *weight = self.sum * mine.max(0.0) / total);
            }
            self.pool(&design, params);
        }
        self.write_hears(&design, distinct);
        true
    }

    pub(super) fn first(panel: &Panel, params: &StateSpaceParams, distinct: &DistinctAgents) -> Self {
        let (agents, ratios) = (panel.agents(), panel.ratios());
        let size = agents * ratios;
        let summary = SeriesSummary::from_panel(panel, panel.steps());
        let spread: Vec<f64> = (0..size).map(|cell| summary.series(cell).1).collect();
        let news = |agent: usize| {
            Mat::from_fn(ratios, ratios, |h, g| if h == g { FIRST_NEWS * spread[h * agents + agent] } else { 0.0 })
        };
        let trend_loading = params.common.as_ref().map(|groups| {
            let trend = CommonTrend::from_panel(panel, &all_steps(panel), groups);
            TrendLoading { loading: vec![0.0; trend.count * ratios], trend: Arc::new(trend) }
        });
        let dynamics = Dynamics {
            agents,
            ratios,
            hears: Mat::zeros(agents, agents),
            drift: vec![0.0; summary.levels.len()],
            innovation: (0..agents).map(news).collect(),
            noise: summary.noise,
            start: summary.levels,
            spread,
            trend_loading,
        };
        let sum = 1.0 - params.adaptation.unwrap_or(FIRST_ADAPTATION);
        let nothing = Moments::empty(agents, ratios);
        let design = Regressors::from_moments(&nothing, distinct, params.support.as_deref(), (0..agents).collect());
        let strengths = match (params.kind(), &params.support) {
            (WeightKind::Strengths, Some(_)) => Some(Strengths::equal(agents, &design, FIRST_SELF_WEIGHT)),
            _ => None,
        };
        let columns = design.each(|position| {
            let speakers = design.regressors(position);
            let own = |speaker: usize| f64::from(u8::from(speaker == design.original(design.listeners[position])));
            let weight =
                |speaker: usize| (1.0 - FIRST_SELF_WEIGHT) / speakers.len() as f64 + FIRST_SELF_WEIGHT * own(speaker);
            let total: f64 = speakers.iter().map(|&speaker| weight(speaker)).sum();
            speakers.iter().map(|&speaker| sum * weight(speaker) / total).collect()
        });
        let shares = level_shares(panel);
        let mut state =
            Parameters { dynamics, sum, columns, strengths, common: vec![0.0; agents], penalty: 0.0, shares };
        state.pool(&design, params);
        state.write_hears(&design, distinct);
        for (level, means) in state.dynamics.start.clone().chunks(size).enumerate() {
            state.write_drift(level, means, means);
        }
        state
    }

    /// Takes the parameters from a model of the same panel.
    pub(super) fn take(&mut self, panel: &Panel, model: &Model, params: &StateSpaceParams, distinct: &DistinctAgents) {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        let nothing = Moments::empty(agents, ratios);
        let design = Regressors::from_moments(&nothing, distinct, params.support.as_deref(), (0..agents).collect());
        self.sum = 1.0 - model.adaptation;
        self.columns = design.each(|position| {
            let whole = |speaker: usize| {
                let copies = distinct.copies[speaker].iter();
                copies.map(|&copy| model.combination.weight(copy, design.listeners[position])).sum::<f64>()
            };
            design.regressors(position).iter().map(|&speaker| self.sum * whole(speaker)).collect()
        });
        self.pool(&design, params);
        self.write_hears(&design, distinct);
        let episodes = panel.episodes();
        for level in 0..episodes.level_count() {
            let own = model.diagnostics.episodes.as_ref().filter(|_| episodes.have_own_levels());
            let own = own.and_then(|known| known.iter().find(|known| known.episode == episodes.label(level)));
            let fits = |own: &&EpisodeEvidence| {
                own.evidence.len() == agents && own.evidence.iter().all(|row| row.len() == ratios)
            };
            let own = own.filter(fits);
            for cell in 0..agents * ratios {
                let (agent, ratio) = (cell % agents, cell / agents);
                let evidence = own.map_or_else(|| model.evidence.agent(agent)[ratio], |own| own.evidence[agent][ratio]);
                self.dynamics.drift[level * agents * ratios + cell] = model.adaptation * evidence;
            }
        }
        if let Some(innovation) = &model.innovation {
            for agent in 0..agents {
                let known = innovation.agent(agent);
                let block = Mat::from_fn(ratios, ratios, |h, g| known[h * ratios + g] * model.adaptation.powi(2));
                self.dynamics.innovation[agent] = self.floored(&block, agent);
            }
        }
        if let Some(smoothing) = &model.diagnostics.smoothing {
            // A model from a file may be inconsistent; values that do not fit are left at their start.
            let square = smoothing.noise.len() == ratios && smoothing.noise.iter().all(|row| row.len() == ratios);
            let noise = |h: usize, g: usize| smoothing.noise[h][g];
            if square && (0..ratios).all(|h| noise(h, h) > 0.0) {
                self.dynamics.noise = Mat::from_fn(ratios, ratios, noise);
            }
            if let (Some(trend_loading), Some(common)) = (&mut self.dynamics.trend_loading, &smoothing.common) {
                let known: Vec<f64> = common.loading.iter().flatten().copied().collect();
                if known.len() == trend_loading.loading.len() {
                    trend_loading.loading = known;
                }
            }
            let sound =
                |strengths: &&[f64]| strengths.len() == agents && strengths.iter().all(|g| *g > 0.0 && g.is_finite());
            if let Some(strengths) = smoothing.strengths.as_deref().filter(sound) {
                let own = |agent: usize| model.combination.weight(agent, agent);
                self.strengths = Some(Strengths::given(strengths, &design, own));
            }
        }
    }

    /// B from the columns; an agent whose belief never changes has self-weight only.
    pub(super) fn write_hears(&mut self, design: &Regressors<'_>, distinct: &DistinctAgents) {
        let agents = self.dynamics.agents;
        let mut hears = Mat::zeros(agents, agents);
        for agent in (0..agents).filter(|&agent| distinct.constant[agent]) {
            hears[(agent, agent)] = self.sum;
        }
        for (position, (&listener, weights)) in design.listeners.iter().zip(&self.columns).enumerate() {
            for (&speaker, &weight) in design.regressors(position).iter().zip(weights) {
                for (copy, weight) in distinct.share(speaker, weight) {
                    hears[(copy, listener)] += weight;
                }
            }
        }
        self.dynamics.hears = hears;
    }

    /// d = ȳ − Bᵀx̄ of a level.
    pub(super) fn write_drift(&mut self, level: usize, mean_x: &[f64], mean_y: &[f64]) {
        let heard = self.dynamics.heard(faer::MatRef::from_column_major_slice(mean_x, mean_x.len(), 1));
        let drift = &mut self.dynamics.drift[level * mean_x.len()..(level + 1) * mean_x.len()];
        drift.iter_mut().zip(mean_y.iter().zip(heard.col_as_slice(0))).for_each(|(d, (y, heard))| *d = y - heard);
    }

    /// Moves these parameters to resampled posts, of which `fresh` was made: to these episodes, where episodes with levels of
    /// their own were drawn.
    pub(super) fn move_to(&mut self, fresh: &Parameters, episodes: Option<&[usize]>) {
        let size = self.dynamics.agents * self.dynamics.ratios;
        if let Some(episodes) = episodes {
            for levels in [&mut self.dynamics.drift, &mut self.dynamics.start] {
                *levels =
                    episodes.iter().flat_map(|&level| levels[level * size..(level + 1) * size].to_vec()).collect();
            }
        }
        self.shares.clone_from(&fresh.shares);
        if let (Some(found), Some(fresh)) = (&mut self.dynamics.trend_loading, &fresh.dynamics.trend_loading) {
            found.trend = fresh.trend.clone();
        }
    }

    /// One level instead of those of episodes: its drift is that of these moments.
    pub(super) fn average_levels(&mut self) {
        let (agents, size) = (self.dynamics.agents, self.dynamics.agents * self.dynamics.ratios);
        self.dynamics.drift.truncate(size);
        self.dynamics.start.truncate(size);
        self.shares = vec![1.0; agents];
    }

    /// The mean drift over the levels of the episodes.
    pub(super) fn mean_drift(&self, cell: usize) -> f64 {
        let (agents, size) = (self.dynamics.agents, self.dynamics.agents * self.dynamics.ratios);
        let levels = self.dynamics.drift.chunks(size).zip(self.shares.chunks(agents));
        levels.map(|(drift, share)| share[cell % agents] * drift[cell]).sum()
    }

    /// Maximisation step: the likeliest parameters given the smoothed beliefs.
    pub(super) fn maximise(
        &mut self,
        panel: &Panel,
        smoothed: &Smoothed,
        params: &StateSpaceParams,
        distinct: &DistinctAgents,
    ) -> Result<(), Error> {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        let (size, episodes) = (agents * ratios, panel.episodes());
        let moments = in_all(panel, &smoothed.stretches)?;
        let design = Regressors::from_moments(&moments, distinct, params.support.as_deref(), (0..agents).collect());
        let own: &[Moments] = if episodes.have_own_levels() { &smoothed.stretches } else { &[] };
        self.listen(&design, own, params, distinct);
        self.follow(panel, &smoothed.frames, distinct);
        let (sum, count) = &smoothed.noise;
        let largest = (0..ratios).map(|h| sum[(h, h)] / *count as f64).fold(0.0, f64::max);
        let noise = Mat::from_fn(ratios, ratios, |h, g| sum[(h, g)] / *count as f64);
        self.dynamics.noise = fit::powered(&noise, |value, _| value.max(SMALLEST_VARIANCE * largest));
        self.dynamics.start.fill(0.0);
        for (number, range) in episodes.ranges().enumerate() {
            let share = if episodes.have_own_levels() { 1.0 } else { 1.0 / episodes.count() as f64 };
            let level = episodes.level(number) * size;
            let first = &smoothed.frames[range.start * size..(range.start + 1) * size];
            self.dynamics.start[level..level + size]
                .iter_mut()
                .zip(first)
                .for_each(|(mean, first)| *mean += share * first);
        }
        Ok(())
    }

    /// The likeliest network given moments: columns and δ, then the innovation covariances. `levels` are the moments of each
    /// episode where they have drifts of their own.
    pub(super) fn listen(
        &mut self,
        design: &Regressors<'_>,
        levels: &[Moments],
        params: &StateSpaceParams,
        distinct: &DistinctAgents,
    ) {
        match &mut self.strengths {
            Some(found) => {
                let share = params.adaptation.map(|adaptation| 1.0 - adaptation);
                let (columns, sum) = strengths::maximise(found, design, &self.dynamics.innovation, self.sum, share);
                (self.columns, self.sum) = (columns, sum);
                self.penalty = found.penalty();
            }
            None => {
                self.maximise_edges(design, params);
                self.pool(design, params);
            }
        }
        self.write_hears(design, distinct);
        let levels = if levels.is_empty() { design.moments().map(std::slice::from_ref) } else { Some(levels) };
        for (level, moments) in levels.into_iter().flatten().enumerate() {
            self.write_drift(level, &moments.mean_x(), &moments.mean_y());
        }
        let blocks = design.each(|position| {
            let left = fit::covariance(&design.listener_moments(position), &self.columns[position]);
            self.floored(&left, design.listeners[position])
        });
        design.listeners.iter().zip(blocks).for_each(|(&agent, block)| self.dynamics.innovation[agent] = block);
    }

    /// Loadings on the common trends, where there are any: the residuals of the network regressed on them.
    pub(super) fn follow(&mut self, panel: &Panel, frames: &[f64], distinct: &DistinctAgents) {
        let Dynamics { agents, ratios, drift, innovation, .. } = &self.dynamics;
        let (agents, ratios, size) = (*agents, *ratios, agents * ratios);
        let Some(trend_loading) = &self.dynamics.trend_loading else { return };
        let (steps, episodes) = (frames.len() / size, panel.episodes());
        let levels: Vec<usize> = (0..steps).map(|step| episodes.level(episodes.at(step))).collect();
        let before = faer::MatRef::from_column_major_slice(&frames[..(steps - 1) * size], size, steps - 1);
        let heard = self.dynamics.heard(before);
        let mut gram = vec![Mat::<f64>::zeros(ratios, ratios); trend_loading.trend.count];
        let mut linear = vec![vec![0.0; ratios]; trend_loading.trend.count];
        for agent in (0..agents).filter(|&agent| !distinct.constant[agent]) {
            let group = trend_loading.trend.groups[agent];
            let inverse = inverted(&innovation[agent]);
            for step in (1..steps).filter(|step| !episodes.begins(*step)) {
                let trend = |ratio: usize| trend_loading.trend.at(step)[ratio * agents + agent];
                let left = |ratio: usize| {
                    let cell = ratio * agents + agent;
                    frames[step * size + cell] - heard[(cell, step - 1)] - drift[levels[step] * size + cell]
                };
                for h in 0..ratios {
                    for g in 0..ratios {
                        gram[group][(h, g)] += inverse[(h, g)] * trend(h) * trend(g);
                        linear[group][h] += inverse[(h, g)] * trend(h) * left(g);
                    }
                }
            }
        }
        // A constant trend has loading zero.
        let solved = gram.iter().zip(&linear).flat_map(|(gram, linear)| match simplex::factor(gram) {
            Some(llt) => simplex::solve(&llt, linear),
            None => vec![0.0; ratios],
        });
        let loading = solved.collect();
        self.dynamics.trend_loading = Some(TrendLoading { trend: trend_loading.trend.clone(), loading });
    }

    /// A covariance with eigenvalues floored.
    pub(super) fn floored(&self, block: &Mat<f64>, agent: usize) -> Mat<f64> {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        let scale = (0..ratios).map(|h| self.dynamics.spread[h * agents + agent]).fold(0.0, f64::max);
        fit::powered(block, |value, _| value.max(SMALLEST_VARIANCE * scale))
    }

    /// The columns, and δ where it is not given: the minimum over the sum of all weights is convex, and its slope is
    /// the sum of the multipliers.
    pub(super) fn maximise_edges(&mut self, design: &Regressors<'_>, params: &StateSpaceParams) {
        let innovation = &self.dynamics.innovation;
        let columns = &self.columns;
        let common = &self.common;
        let normal = |position: usize| {
            let listener_moments = design.listener_moments(position);
            let (mut gram, mut linear) =
                fit::normal(&listener_moments, &inverted(&innovation[design.listeners[position]]));
            fit::lift(&mut gram, params.ridge.max(1e-14));
            for (place, precision, middle) in shrunk(design, position, common, params.shrinkage) {
                gram[(place, place)] += precision;
                linear[place] += precision * middle;
            }
            (gram, linear)
        };
        if params.constraint == Constraint::Free {
            let solved = design.each(|position| {
                let (gram, linear) = normal(position);
                let Some(llt) = simplex::factor(&gram) else { return (columns[position].clone(), (0.0, 0.0)) };
                let weights = simplex::solve(&llt, &linear);
                let ones: f64 = simplex::solve(&llt, &vec![1.0; weights.len()]).iter().sum();
                let vote = (weights.iter().sum(), 1.0 / ones);
                (weights, vote)
            });
            let voted = fit::voted(solved.iter().map(|(_, vote)| *vote));
            self.sum = 1.0 - params.adaptation.unwrap_or(voted);
            self.columns = solved.into_iter().map(|(weights, _)| weights).collect();
            return;
        }
        // Building G for every listener is the main cost. The active set usually stays the same from one sum to the next,
        // and G need not be built again.
        let mut faces: Vec<Option<simplex::Face>> = vec![None; columns.len()];
        let mut at = |sum: f64, start: &[Vec<f64>]| -> Vec<Option<simplex::Optimum>> {
            let found = design.each(|position| {
                if let Some(optimum) = faces[position].as_ref().and_then(|face| face.moved(sum)) {
                    return (Some(optimum), None);
                }
                let (gram, linear) = normal(position);
                match simplex::faced(&gram, &linear, sum, &start[position]) {
                    Some((optimum, face)) => (Some(optimum), face),
                    None => (None, None),
                }
            });
            let (optima, fresh): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            faces.iter_mut().zip(fresh).for_each(|(face, fresh)| {
                if fresh.is_some() {
                    *face = fresh;
                }
            });
            optima
        };
        let keep = |found: Vec<Option<simplex::Optimum>>, before: &[Vec<f64>]| -> Vec<Vec<f64>> {
            let pairs = found.into_iter().zip(before);
            pairs.map(|(found, before)| found.map_or_else(|| before.clone(), |found| found.values)).collect()
        };
        if let Some(adaptation) = params.adaptation {
            self.sum = 1.0 - adaptation;
            self.columns = keep(at(self.sum, columns), columns);
            return;
        }
        let (mut low, mut high) = (1.0 - fit::ADAPTATION.end(), 1.0 - fit::ADAPTATION.start());
        let (mut sum, mut weights) = (self.sum, columns.clone());
        for _ in 0..STEPS_FOR_ADAPTATION {
            let found = at(sum, &weights);
            let slope: f64 = found.iter().flatten().map(|optimum| optimum.multiplier).sum();
            let stiffness: f64 = found.iter().flatten().map(|optimum| optimum.stiffness).sum();
            weights = keep(found, &weights);
            if slope > 0.0 {
                low = sum;
            } else {
                high = sum;
            }
            let newton = sum + slope / stiffness;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            let moved = (next - sum).abs();
            sum = next;
            if moved < 1e-10 || high - low < 1e-10 {
                break;
            }
        }
        // The columns that belong to the last sum.
        self.columns = keep(at(sum, &weights), &weights);
        self.sum = sum;
    }

    /// Mean weights of the speakers, and the penalty of the deviations from them.
    pub(super) fn pool(&mut self, design: &Regressors<'_>, params: &StateSpaceParams) {
        let mut given = vec![(0.0, 0.0); self.common.len()];
        for (position, weights) in self.columns.iter().enumerate() {
            let speakers = design.regressors(position);
            let own = design.original(design.listeners[position]);
            for (&speaker, weight) in speakers.iter().zip(weights).filter(|(speaker, _)| **speaker != own) {
                given[speaker].0 += weight;
                given[speaker].1 += 1.0 / speakers.len() as f64;
            }
        }
        self.common = given.iter().map(|(weight, even)| if *even > 0.0 { weight / even } else { 0.0 }).collect();
        let far = |(position, weights): (usize, &Vec<f64>)| -> f64 {
            let terms = shrunk(design, position, &self.common, params.shrinkage);
            terms.map(|(place, precision, middle)| 0.5 * precision * (weights[place] - middle).powi(2)).sum()
        };
        self.penalty = self.columns.iter().enumerate().map(far).sum();
    }

    pub(super) fn estimate(&self, params: &StateSpaceParams, distinct: &DistinctAgents) -> Result<Estimate, Error> {
        let (agents, ratios) = (self.dynamics.agents, self.dynamics.ratios);
        let evidence = |cell: usize| match distinct.constant[cell / ratios] {
            true => 0.0,
            false => self.mean_drift(cell % ratios * agents + cell / ratios) / (1.0 - self.sum),
        };
        Ok(Estimate {
            combination: self.combination(params, distinct)?,
            evidence: Evidence::from_rows((0..agents * ratios).map(evidence).collect(), agents, ratios)?,
        })
    }

    pub(super) fn combination(
        &self,
        params: &StateSpaceParams,
        distinct: &DistinctAgents,
    ) -> Result<Combination, Error> {
        let agents = self.dynamics.agents;
        let empty = Moments::empty(agents, self.dynamics.ratios);
        let design = Regressors::from_moments(&empty, distinct, params.support.as_deref(), (0..agents).collect());
        whitened::combine(&design, distinct, &self.columns, self.sum, agents, params.support.is_some())
    }
}

/// Shrinkage of each weight a listener gives another: its position, precision and centre. The centre is the mean weight of
/// the speaker, relative to equal weights of the listener's speakers.
fn shrunk<'a>(
    design: &'a Regressors<'_>,
    position: usize,
    common: &'a [f64],
    shrinkage: f64,
) -> impl Iterator<Item = (usize, f64, f64)> + 'a {
    let speakers = design.regressors(position);
    let own = design.original(design.listeners[position]);
    let count = speakers.len() as f64;
    let others = speakers.iter().enumerate().filter(move |(_, speaker)| **speaker != own);
    others.map(move |(place, &speaker)| (place, shrinkage * count, common[speaker] / count))
}

/// W = Q⁻¹; Q has been floored.
pub(crate) fn inverted(block: &Mat<f64>) -> Mat<f64> {
    fit::powered(block, |value, _| 1.0 / value)
}
