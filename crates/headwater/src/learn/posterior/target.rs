//! The posterior density of the parameters given the posts, with the hidden beliefs integrated out.
//!
//! In: the posts of each log-ratio and who may hear whom. Out: the logarithm of the density up to a constant and its
//! gradient, at several points at once.
//!
//! Parameters: log-strengths, deviations, c, κ and log-odds of keep (see [`super::attention`]); then for each log-ratio the
//! logarithms of the news variances, their mean, the logarithm of the noise of a post, centre and log-scale of the drifts,
//! and the levels by episode and agent. Drifts d = (I − Bᵀ)μ have a Student prior; the levels are the parameters because
//! the posts determine them much better.

use super::attention::{Attention, AttentionLayout};
use super::filter::{self, Audience};
use super::lanes::{LANES, Lane};
use super::marginal::{MarginalParams, Posts, Support, log_likelihood};
use super::score;
use crate::Error;
use crate::progress;
use faer::Mat;
use faer::linalg::solvers::DenseSolveCore;
use rayon::prelude::*;
use std::borrow::Cow;

/// Normal law with mean zero and an unknown variance, which has an inverse gamma prior worth `freedom` numbers about
/// `variance`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UnknownVariance {
    pub(crate) variance: f64,
    pub(crate) freedom: f64,
}

/// Of the log-strengths.
pub(crate) const OF_STRENGTHS: UnknownVariance = UnknownVariance { variance: 1.0, freedom: 4.0 };
/// Of the deviations of the self-weights.
pub(crate) const OF_DEVIATIONS: UnknownVariance = UnknownVariance { variance: 0.25, freedom: 4.0 };
/// Of the log news variances about their mean.
pub(crate) const OF_NEWS: UnknownVariance = UnknownVariance { variance: 0.5, freedom: 4.0 };
/// Mean and standard deviation of c.
pub(crate) const OF_OWN: (f64, f64) = (-1.0, 2.0);
/// Mean and standard deviation of κ.
pub(crate) const OF_BLEND: (f64, f64) = (0.5, 0.5);
/// Standard deviations of the logarithms of scales: of news and noise, which the data determine well, and of the drifts.
pub(crate) const OF_LOG_SCALES: (f64, f64) = (3.0, 1.5);
/// Shares of the variance of the beliefs about which noise, news and squared drifts are expected.
pub(crate) const TYPICAL: (f64, f64, f64) = (0.3, 0.05, 0.0025);
/// Degrees of freedom of the law of the drifts.
pub(crate) const DRIFT_FREEDOM: f64 = 3.0;

/// Most steps × agents for which several points are evaluated side by side: a gigabyte or so.
const MOST_LANED: usize = 4_000_000;

/// Log-density of normal numbers about a centre, and its derivatives by each number; the derivative by the centre is minus
/// their sum.
fn normal_log_density(values: &[f64], centre: f64, variance: f64, gradient: &mut [f64]) -> f64 {
    let mut squares = 0.0;
    for (gradient, value) in gradient.iter_mut().zip(values) {
        squares += (value - centre).powi(2);
        *gradient -= (value - centre) / variance;
    }
    -0.5 * squares / variance
}

/// One log-ratio: its posts, and numbers that the priors are relative to.
#[derive(Debug, Clone)]
pub(crate) struct Ratio {
    pub(crate) posts: Posts,
    /// Variance of the belief of each agent about its level where an episode starts.
    pub(crate) first: Vec<f64>,
    /// Typical variance of beliefs.
    pub(crate) spread: f64,
}

/// The posterior of speaker strengths.
#[derive(Debug, Clone)]
pub(crate) struct StrengthsTarget {
    pub(crate) support: Support,
    /// Where the filter's covariance is kept diagonal.
    pub(crate) audience: Option<Audience>,
    pub(crate) ratios: Vec<Ratio>,
    /// Variances of the log-strengths, the deviations and the log news variances, which are held.
    pub(crate) variances: [f64; 3],
    /// δ, where it is given.
    pub(crate) adaptation: Option<f64>,
    /// [`OF_LOG_SCALES`], or narrower in tests.
    pub(crate) log_scales: (f64, f64),
    /// Whether the density has the priors of strengths, deviations, news and drifts, and is one of levels; otherwise all that
    /// is the caller's.
    pub(crate) hierarchy: bool,
}

/// Where the parameters of one log-ratio are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RatioLayout {
    start: usize,
    agents: usize,
    episodes: usize,
}

impl RatioLayout {
    pub(crate) fn news(self) -> std::ops::Range<usize> {
        self.start..self.start + self.agents
    }

    pub(crate) fn mean_news(self) -> usize {
        self.start + self.agents
    }

    pub(crate) fn noise(self) -> usize {
        self.start + self.agents + 1
    }

    pub(crate) fn drift_centre(self) -> usize {
        self.start + self.agents + 2
    }

    pub(crate) fn drift_scale(self) -> usize {
        self.start + self.agents + 3
    }

    pub(crate) fn levels(self) -> std::ops::Range<usize> {
        let first = self.start + self.agents + 4;
        first..first + self.episodes * self.agents
    }

    fn size(self) -> usize {
        self.agents * (1 + self.episodes) + 4
    }
}

/// Value and gradient of a log-density.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evaluation {
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
}

/// A log-density with its gradient, known up to a constant.
pub(crate) trait Density: Sync {
    /// Number of variables.
    fn size(&self) -> usize;

    /// Values and gradients at several points.
    fn evaluate(&self, points: &[Vec<f64>]) -> Result<Vec<Evaluation>, Error>;
}

impl Density for StrengthsTarget {
    fn size(&self) -> usize {
        self.ratio(self.ratios.len()).start
    }

    fn evaluate(&self, points: &[Vec<f64>]) -> Result<Vec<Evaluation>, Error> {
        if let (Some(audience), [_]) = (&self.audience, points) {
            progress::check()?;
            let likelihood = |ratio: &Ratio, params: &MarginalParams<1>| {
                filter::log_likelihood(&self.support, audience, &ratio.posts, &ratio.first, params)
            };
            return Ok(self.evaluate_group(points, likelihood));
        }
        let likelihood = |ratio: &Ratio, params: &MarginalParams| match &self.audience {
            None => log_likelihood(&self.support, &ratio.posts, &ratio.first, params),
            Some(audience) => filter::log_likelihood(&self.support, audience, &ratio.posts, &ratio.first, params),
        };
        let cells: usize = self.ratios.iter().map(|ratio| ratio.posts.steps() * self.support.agents()).sum();
        if self.audience.is_some() && cells > MOST_LANED {
            let alone =
                |point: &Vec<f64>| self.evaluate(std::slice::from_ref(point)).map(|mut found| found.swap_remove(0));
            return points.iter().map(alone).collect();
        }
        let groups: Vec<&[Vec<f64>]> = points.chunks(LANES).collect();
        let found: Vec<Result<Vec<Evaluation>, Error>> =
            groups.par_iter().map(|group| progress::check().map(|()| self.evaluate_group(group, likelihood))).collect();
        Ok(found.into_iter().collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
    }
}

impl StrengthsTarget {
    /// The same posterior with a filter whose covariance is diagonal.
    pub(crate) fn approximated(&self) -> StrengthsTarget {
        StrengthsTarget { audience: Some(Audience::new(&self.support)), ..self.clone() }
    }

    pub(crate) fn attention(&self) -> AttentionLayout {
        AttentionLayout { agents: self.support.agents() }
    }

    pub(crate) fn ratio(&self, number: usize) -> RatioLayout {
        let (agents, episodes) = (self.support.agents(), self.ratios[0].posts.episode_count());
        let mut layout = RatioLayout { start: self.attention().size(), agents, episodes };
        layout.start += number * layout.size();
        layout
    }

    /// Where the levels of all log-ratios are.
    pub(crate) fn places_of_levels(&self) -> impl Iterator<Item = usize> {
        (0..self.ratios.len()).flat_map(|number| self.ratio(number).levels())
    }

    /// A point with the given δ instead of its own.
    pub(crate) fn pinned<'a>(&self, point: &'a [f64]) -> Cow<'a, [f64]> {
        let Some(adaptation) = self.adaptation else { return Cow::Borrowed(point) };
        let mut point = point.to_vec();
        point[self.attention().keep()] = ((1.0 - adaptation) / adaptation).ln();
        Cow::Owned(point)
    }

    /// The density at up to as many points as there are lanes.
    fn evaluate_group<const L: usize>(
        &self,
        points: &[Vec<f64>],
        likelihood: impl Fn(&Ratio, &MarginalParams<L>) -> (Lane<L>, MarginalParams<L>),
    ) -> Vec<Evaluation> {
        let points: Vec<Cow<'_, [f64]>> = points.iter().map(|point| self.pinned(point)).collect();
        let points = &points[..];
        let attention: Vec<Attention> = points.iter().map(|point| Attention::new(&self.support, point)).collect();
        let mut found: Vec<Evaluation> =
            points.iter().map(|point| Evaluation { value: 0.0, gradient: vec![0.0; point.len()] }).collect();
        let mut by_weight = vec![vec![0.0; self.support.edges()]; points.len()];
        for (number, ratio) in self.ratios.iter().enumerate() {
            let layout = self.ratio(number);
            let mut params = MarginalParams::<L>::zeros(&self.support, &ratio.posts);
            for lane in 0..L {
                // Lanes without a point repeat the last one.
                let point = &points[lane.min(points.len() - 1)];
                let weights = &attention[lane.min(points.len() - 1)].weights;
                params.weights.iter_mut().zip(weights).for_each(|(to, from)| to[lane] = *from);
                params.news.iter_mut().zip(&point[layout.news()]).for_each(|(to, from)| to[lane] = from.exp());
                params.levels.iter_mut().zip(&point[layout.levels()]).for_each(|(to, from)| to[lane] = *from);
                params.noise[lane] = point[layout.noise()].exp();
            }
            let (values, slopes) = likelihood(ratio, &params);
            for (lane, found) in found.iter_mut().enumerate() {
                found.value += values[lane];
                by_weight[lane].iter_mut().zip(&slopes.weights).for_each(|(to, from)| *to += from[lane]);
                let news = params.news.iter().zip(&slopes.news).map(|(news, slope)| news[lane] * slope[lane]);
                found.gradient[layout.news()].iter_mut().zip(news).for_each(|(to, from)| *to += from);
                let levels = found.gradient[layout.levels()].iter_mut().zip(&slopes.levels);
                levels.for_each(|(to, from)| *to += from[lane]);
                found.gradient[layout.noise()] += params.noise[lane] * slopes.noise[lane];
            }
        }
        for (lane, found) in found.iter_mut().enumerate() {
            found.value += self.log_prior(&points[lane], &attention[lane], &mut by_weight[lane], &mut found.gradient);
            attention[lane].add_gradient(&self.support, &points[lane], &by_weight[lane], &mut found.gradient);
            if self.adaptation.is_some() {
                found.gradient[self.attention().keep()] = 0.0;
            }
            if !found.value.is_finite() || found.gradient.iter().any(|slope| !slope.is_finite()) {
                *found = Evaluation { value: f64::NEG_INFINITY, gradient: vec![0.0; points[lane].len()] };
            }
        }
        found
    }

    /// Log-density of the prior; adds its derivatives.
    fn log_prior(&self, point: &[f64], attention: &Attention, by_weight: &mut [f64], gradient: &mut [f64]) -> f64 {
        let (agents, layout) = (self.support.agents(), self.attention());
        let [of_strengths, of_deviations, of_news] = self.variances;
        let normal = |place: usize, mean: f64, deviation: f64, gradient: &mut [f64]| {
            let off = (point[place] - mean) / deviation;
            gradient[place] -= off / deviation;
            -0.5 * off * off
        };
        let mut value = 0.0;
        let families = [(layout.strengths(), of_strengths), (layout.deviations(), of_deviations)];
        for (range, variance) in families.into_iter().filter(|_| self.hierarchy) {
            value += normal_log_density(&point[range.clone()], 0.0, variance, &mut gradient[range]);
        }
        value += normal(layout.own(), OF_OWN.0, OF_OWN.1, gradient);
        value += normal(layout.blend(), OF_BLEND.0, OF_BLEND.1, gradient);
        // δ is uniform: the density of the log-odds.
        value += (attention.keep * (1.0 - attention.keep)).ln();
        gradient[layout.keep()] += 1.0 - 2.0 * attention.keep;
        // log |det(I − B)| once for each log-ratio and episode.
        let times = (self.ratios.len() * self.ratios[0].posts.episode_count()) as f64;
        if !self.hierarchy {
            // The caller's variables are drifts.
        } else if let Some(audience) = &self.audience {
            let determinant = audience.determinant(&self.support, &attention.weights, attention.keep, times, by_weight);
            value += times * determinant.value;
            gradient[layout.keep()] += times * determinant.by_keep * attention.keep * (1.0 - attention.keep);
        } else {
            let (determinant, inverse) = self.determinant(attention);
            value += times * determinant;
            for listener in 0..agents {
                for edge in self.support.of(listener) {
                    by_weight[edge] -= times * inverse[(listener, self.support.speakers[edge] as usize)];
                }
            }
        }
        for (number, ratio) in self.ratios.iter().enumerate() {
            let places = self.ratio(number);
            if self.hierarchy {
                let centre = point[places.mean_news()];
                let mut slopes = vec![0.0; agents];
                value += normal_log_density(&point[places.news()], centre, of_news, &mut slopes);
                gradient[places.mean_news()] -= slopes.iter().sum::<f64>();
                gradient[places.news()].iter_mut().zip(&slopes).for_each(|(to, from)| *to += from);
            }
            value += normal(places.mean_news(), (TYPICAL.1 * ratio.spread).ln(), self.log_scales.0, gradient);
            value += normal(places.noise(), (TYPICAL.0 * ratio.spread).ln(), self.log_scales.0, gradient);
            value += normal(places.drift_centre(), 0.0, ratio.spread.sqrt(), gradient);
            let typical = 0.5 * (TYPICAL.2 * ratio.spread).ln();
            value += normal(places.drift_scale(), typical, self.log_scales.1, gradient);
            if self.hierarchy {
                value += self.log_prior_of_drifts(point, places, attention, by_weight, gradient);
            }
        }
        value
    }

    /// Student law of the drifts (I − Bᵀ)μ.
    fn log_prior_of_drifts(
        &self,
        point: &[f64],
        places: RatioLayout,
        attention: &Attention,
        by_weight: &mut [f64],
        gradient: &mut [f64],
    ) -> f64 {
        let agents = self.support.agents();
        let (centre, scale) = (point[places.drift_centre()], point[places.drift_scale()].exp());
        let mut value = 0.0;
        for episode in 0..places.episodes {
            let first = places.levels().start + episode * agents;
            let levels = &point[first..first + agents];
            for listener in 0..agents {
                let mut drift = levels[listener];
                for edge in self.support.of(listener) {
                    drift -= attention.weights[edge] * levels[self.support.speakers[edge] as usize];
                }
                let off = (drift - centre) / scale;
                let tail = DRIFT_FREEDOM + off * off;
                value -= 0.5 * (DRIFT_FREEDOM + 1.0) * (off * off / DRIFT_FREEDOM).ln_1p() + scale.ln();
                let slope = -(DRIFT_FREEDOM + 1.0) * off / (tail * scale);
                gradient[places.drift_centre()] -= slope;
                gradient[places.drift_scale()] -= slope * off * scale + 1.0;
                gradient[first + listener] += slope;
                for edge in self.support.of(listener) {
                    let speaker = self.support.speakers[edge] as usize;
                    gradient[first + speaker] -= slope * attention.weights[edge];
                    by_weight[edge] -= slope * levels[speaker];
                }
            }
        }
        value
    }

    /// log |det(I − B)| once for each log-ratio and episode.
    #[cfg(test)]
    pub(crate) fn log_determinant(&self, attention: &Attention) -> f64 {
        (self.ratios.len() * self.ratios[0].posts.episode_count()) as f64 * self.determinant(attention).0
    }

    /// log |det(I − B)|, and (I − B)⁻¹.
    fn determinant(&self, attention: &Attention) -> (f64, Mat<f64>) {
        let agents = self.support.agents();
        let mut matrix = Mat::<f64>::identity(agents, agents);
        for listener in 0..agents {
            for edge in self.support.of(listener) {
                matrix[(self.support.speakers[edge] as usize, listener)] -= attention.weights[edge];
            }
        }
        let factor = matrix.partial_piv_lu();
        let determinant = (0..agents).map(|place| factor.U()[(place, place)].abs().ln()).sum();
        (determinant, factor.inverse())
    }

    /// An unbiased estimate of the gradient of the log-density by draws of the hidden beliefs.
    pub(crate) fn drawn_gradient(&self, point: &[f64], draws: usize, seed: u64) -> Result<Vec<f64>, Error> {
        let failed = std::cell::RefCell::new(None);
        let likelihood = |ratio: &Ratio, params: &MarginalParams<1>| {
            let found = score::score(&self.support, &ratio.posts, &ratio.first, params, draws, seed);
            let nothing = |error| {
                failed.replace(Some(error));
                MarginalParams::zeros(&self.support, &ratio.posts)
            };
            ([0.0], found.unwrap_or_else(nothing))
        };
        let found = self.evaluate_group(&[point.to_vec()], likelihood).swap_remove(0);
        match failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(found.gradient),
        }
    }

    /// Drifts by ratio, episode and agent.
    pub(crate) fn drifts(&self, point: &[f64], attention: &Attention) -> Vec<f64> {
        let agents = self.support.agents();
        let mut drifts = Vec::new();
        for number in 0..self.ratios.len() {
            let places = self.ratio(number);
            for levels in point[places.levels()].chunks(agents) {
                for listener in 0..agents {
                    let heard: f64 = self
                        .support
                        .of(listener)
                        .map(|edge| attention.weights[edge] * levels[self.support.speakers[edge] as usize])
                        .sum();
                    drifts.push(levels[listener] - heard);
                }
            }
        }
        drifts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::posterior::strengths::prepare;
    use crate::simulate::noisy::{NoisyWorld, noisy};

    #[test]
    fn the_gradient_is_that_of_the_density() {
        let world = NoisyWorld { agents: 4, steps: 30, edge_probability: 0.6, ..NoisyWorld::strengths() };
        let (panel, truth) = noisy(&world).unwrap();
        let support: Vec<Vec<usize>> =
            (0..4).map(|listener| truth.combination.listener(listener).map(|(speaker, _)| speaker).collect()).collect();
        let prepared = prepare(&panel, 30, &support, None);
        let mut target = prepared.target;
        let point: Vec<f64> =
            prepared.start.iter().enumerate().map(|(place, start)| start + 0.3 * (place as f64).sin()).collect();
        let diagonal = Some(Audience::new(&target.support));
        target.variances = [0.5, 0.3, 0.2];
        for audience in [None, diagonal] {
            target.audience = audience;
            let here = target.evaluate(std::slice::from_ref(&point)).unwrap().swap_remove(0);
            for place in 0..point.len() {
                let moved: Vec<Vec<f64>> = [-1e-5, 1e-5]
                    .iter()
                    .map(|by| {
                        let mut point = point.clone();
                        point[place] += by;
                        point
                    })
                    .collect();
                let found = target.evaluate(&moved).unwrap();
                let slope = (found[1].value - found[0].value) / 2e-5;
                // Central differences of 1e-5: good to rounding of values of about 100, and to the third derivative.
                let close = (slope - here.gradient[place]).abs() < 1e-6 * (1.0 + slope.abs());
                assert!(close, "{place}: {slope} {}", here.gradient[place]);
            }
        }
    }
}
