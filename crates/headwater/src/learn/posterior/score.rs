//! The gradient of the log-likelihood of posts for networks of any size: exact in the mean, from draws in the covariance.
//!
//! In: posts of one log-ratio and [`MarginalParams`], as for [`super::marginal`]. Out: an unbiased estimate of the derivatives.
//! By Fisher's identity they are the posterior expectation of those of the joint density of posts and hidden beliefs. The
//! posterior mean of the beliefs gives one part, without error; their covariance gives the other, from draws of
//! [`Trajectory`]. Cost: two solutions of a sparse system for each draw.
//!
//! The derivative by a belief's forecast is either its news over their variance (centred) or the adjoint of the errors of the
//! posts (non-centred). Both have the same conditional mean; they are mixed by how much the posts tell of the belief, which
//! keeps the error of one draw below the information in the data.

use super::marginal::{MarginalParams, Posts, Support};
use super::trajectory::{Observations, SparseDynamics, Trajectory};
use crate::Error;
use rayon::prelude::*;

/// Relative error of the posterior mean, and of draws.
const TOLERANCE: (f64, f64) = (1e-6, 1e-3);

/// Derivatives of the log-likelihood by all parameters, from this many draws.
pub(crate) fn score(
    support: &Support,
    posts: &Posts,
    first: &[f64],
    params: &MarginalParams<1>,
    draws: usize,
    seed: u64,
) -> Result<MarginalParams<1>, Error> {
    let mut gradient = MarginalParams::<1>::zeros(support, posts);
    let mut begin = 0;
    while begin < posts.steps() {
        let end = (begin + 1..posts.steps()).find(|&step| posts.begins(step)).unwrap_or(posts.steps());
        Episode::new(support, posts, begin..end, first, params)?.add(&mut gradient, draws, seed ^ begin as u64)?;
        begin = end;
    }
    Ok(gradient)
}

struct Episode<'a> {
    support: &'a Support,
    params: &'a MarginalParams<1>,
    dynamics: SparseDynamics,
    observations: Observations,
    steps: usize,
    number: usize,
    /// Observations.
    count: f64,
}

/// Derivatives by the weights, the log news variances and the log noise.
struct Slopes {
    weights: Vec<f64>,
    news: Vec<f64>,
    noise: f64,
}

impl<'a> Episode<'a> {
    fn new(
        support: &'a Support,
        posts: &Posts,
        range: std::ops::Range<usize>,
        first: &[f64],
        params: &'a MarginalParams<1>,
    ) -> Result<Self, Error> {
        let (agents, steps) = (support.agents(), range.len());
        let number = posts.episodes[range.start] as usize;
        let (mut means, mut precisions) = (vec![0.0; steps * agents], vec![0.0; steps * agents]);
        let mut count = 0.0;
        for step in range.clone() {
            for one in posts.at(step) {
                let agent = one.agent as usize;
                let cell = (step - range.start) * agents + agent;
                means[cell] = one.value - params.levels[number * agents + agent][0];
                precisions[cell] = 1.0 / (params.noise[0] * one.share);
                count += 1.0;
            }
        }
        let mut dynamics =
            SparseDynamics::from_support(support, params.weights.iter().map(|weight| weight[0]).collect());
        dynamics.innovation = params.news.iter().map(|news| news[0]).collect();
        dynamics.first_variance = first.to_vec();
        let observations = Observations::new(agents, means, precisions)?;
        Ok(Episode { support, params, dynamics, observations, steps, number, count })
    }

    fn add(&self, gradient: &mut MarginalParams<1>, draws: usize, seed: u64) -> Result<(), Error> {
        let agents = self.support.agents();
        let mut trajectory = Trajectory::new(&self.dynamics, &self.observations)?;
        let mean = trajectory.mean(TOLERANCE.0)?;
        let mut slopes = self.of_mean(&mean);
        let levels = &mut gradient.levels[self.number * agents..][..agents];
        for (cell, mean) in mean.iter().enumerate() {
            levels[cell % agents][0] += self.observations.precision_at(cell) * (self.observations.mean_at(cell) - mean);
        }
        let found: Vec<Result<Slopes, Error>> = (0..draws as u64)
            .into_par_iter()
            .map(|draw| {
                let mut trajectory = trajectory.clone();
                let off = trajectory.deviation(seed.wrapping_mul(1_000_003).wrapping_add(draw), TOLERANCE.1)?;
                Ok(self.of_deviation(&off, &trajectory))
            })
            .collect();
        for one in found {
            let one = one?;
            let share = 1.0 / draws as f64;
            slopes.weights.iter_mut().zip(&one.weights).for_each(|(sum, value)| *sum += share * value);
            slopes.news.iter_mut().zip(&one.news).for_each(|(sum, value)| *sum += share * value);
            slopes.noise += share * one.noise;
        }
        gradient.weights.iter_mut().zip(&slopes.weights).for_each(|(sum, value)| sum[0] += value);
        let news = gradient.news.iter_mut().zip(&slopes.news).zip(&self.params.news);
        news.for_each(|((sum, value), news)| sum[0] += value / news[0]);
        gradient.noise[0] += slopes.noise / self.params.noise[0];
        Ok(())
    }

    /// The part of the posterior mean.
    fn of_mean(&self, mean: &[f64]) -> Slopes {
        let agents = self.support.agents();
        let mut slopes = Slopes { weights: vec![0.0; self.support.edges()], news: vec![0.0; agents], noise: 0.0 };
        for step in 1..self.steps {
            let (before, now) = (&mean[(step - 1) * agents..step * agents], &mean[step * agents..(step + 1) * agents]);
            for listener in 0..agents {
                let news = now[listener] - self.heard(listener, before);
                let slope = news / self.dynamics.innovation[listener];
                slopes.news[listener] += 0.5 * slope * news;
                for edge in self.support.of(listener) {
                    slopes.weights[edge] += slope * before[self.support.speakers[edge] as usize];
                }
            }
        }
        for (cell, mean) in mean.iter().enumerate() {
            slopes.noise +=
                0.5 * self.observations.precision_at(cell) * (self.observations.mean_at(cell) - mean).powi(2);
        }
        slopes
    }

    /// The part of one draw of the deviation from the posterior mean.
    fn of_deviation(&self, off: &[f64], trajectory: &Trajectory<'_>) -> Slopes {
        let agents = self.support.agents();
        let mut slopes =
            Slopes { weights: vec![0.0; self.support.edges()], news: vec![0.0; agents], noise: -0.5 * self.count };
        let mut adjoint = vec![0.0; agents];
        for step in (0..self.steps).rev() {
            let now = &off[step * agents..(step + 1) * agents];
            for (agent, adjoint) in adjoint.iter_mut().enumerate() {
                let precision = self.observations.precision_at(step * agents + agent);
                *adjoint -= precision * now[agent];
                slopes.noise += 0.5 * precision * now[agent].powi(2);
            }
            if step == 0 {
                break;
            }
            let before = &off[(step - 1) * agents..step * agents];
            let mut next = vec![0.0; agents];
            for listener in 0..agents {
                let variance = self.dynamics.innovation[listener];
                let news = now[listener] - self.heard(listener, before);
                let told = variance * trajectory.information_at(step * agents + listener);
                let centred = told / (1.0 + told);
                let slope = centred * news / variance + (1.0 - centred) * adjoint[listener];
                slopes.news[listener] +=
                    0.5 * (centred * (news * news / variance - 1.0) + (1.0 - centred) * adjoint[listener] * news);
                for edge in self.support.of(listener) {
                    let speaker = self.support.speakers[edge] as usize;
                    slopes.weights[edge] += slope * before[speaker];
                    next[speaker] += self.params.weights[edge][0] * adjoint[listener];
                }
            }
            adjoint = next;
        }
        slopes
    }

    fn heard(&self, listener: usize, beliefs: &[f64]) -> f64 {
        let edges = self.support.of(listener);
        let heard = self.support.speakers[edges.clone()].iter().zip(&self.params.weights[edges]);
        heard.map(|(&speaker, weight)| weight[0] * beliefs[speaker as usize]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::posterior::lanes::LANES;
    use crate::learn::posterior::marginal::{Observation, log_likelihood};

    #[test]
    fn draws_have_the_mean_of_the_exact_gradient() {
        let support = Support::new(&[vec![1, 2], vec![0], vec![0, 1]]);
        let (mut starts, mut observations) = (vec![0], Vec::new());
        let episodes: Vec<u32> = vec![0, 0, 0, 0, 0, 1, 1, 1, 1];
        for step in 0..episodes.len() {
            for agent in (0..3).filter(|agent| (step + agent) % 3 != 0) {
                let value = ((step * 3 + agent) as f64 * 1.3).sin();
                observations.push(Observation { agent: agent as u32, value, share: 1.0 / (1 + step % 2) as f64 });
            }
            starts.push(observations.len());
        }
        let posts = Posts { agents: 3, starts, observations, episodes };
        let weights = [0.3, 0.2, 0.4, 0.5, 0.4, 0.2, 0.5, 0.2];
        let (news, noise, levels) = ([0.5, 0.2, 0.9], 0.6, [0.1, -0.2, 0.3, 0.0, 0.4, -0.5]);
        let first = [0.5, 1.0, 0.7];
        let exact = {
            let mut params = MarginalParams::zeros(&support, &posts);
            params.weights.iter_mut().zip(weights).for_each(|(to, from)| *to = [from; LANES]);
            params.news.iter_mut().zip(news).for_each(|(to, from)| *to = [from; LANES]);
            params.levels.iter_mut().zip(levels).for_each(|(to, from)| *to = [from; LANES]);
            params.noise = [noise; LANES];
            log_likelihood(&support, &posts, &first, &params).1
        };
        let params = MarginalParams::<1> {
            weights: weights.map(|weight| [weight]).to_vec(),
            news: news.map(|news| [news]).to_vec(),
            noise: [noise],
            levels: levels.map(|level| [level]).to_vec(),
        };
        // Means of fifty blocks of draws, and their standard error.
        let blocks: Vec<MarginalParams<1>> =
            (0..50).map(|block| score(&support, &posts, &first, &params, 400, block).unwrap()).collect();
        let close = |name: &str, exact: f64, of: &dyn Fn(&MarginalParams<1>) -> f64| {
            let mean = blocks.iter().map(of).sum::<f64>() / 50.0;
            let square = blocks.iter().map(|block| (of(block) - mean).powi(2)).sum::<f64>() / (49.0 * 50.0);
            let z = (mean - exact) / (square.sqrt() + 1e-9);
            assert!(z.abs() < 4.0, "{name}: {mean} instead of {exact}, {z} standard errors");
        };
        for edge in 0..support.edges() {
            close(&format!("weight {edge}"), exact.weights[edge][0], &|block| block.weights[edge][0]);
        }
        for agent in 0..3 {
            close(&format!("news {agent}"), exact.news[agent][0], &|block| block.news[agent][0]);
        }
        for cell in 0..6 {
            // No draws: the error is that of the solver.
            let found = blocks[0].levels[cell][0];
            assert!((found - exact.levels[cell][0]).abs() < 1e-5, "level {cell}: {found} {}", exact.levels[cell][0]);
        }
        close("noise", exact.noise[0], &|block| block.noise[0]);
    }
}
