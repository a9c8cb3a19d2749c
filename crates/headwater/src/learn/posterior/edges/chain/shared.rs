//! Moves of what all agents share: keep, the scale of all news, and the levels of the beliefs.

use super::{ACCEPTED, Chain, EdgesTarget, State, normal};
use crate::Error;
use crate::learn::cholesky::Cholesky;
use faer::Mat;
use rand::RngExt;

/// Moves of keep and the scale of news.
const SHARED_MOVES: usize = 6;

/// log |det(I − keep·A)| and the solution of (I − keep·Aᵀ)μ = d.
fn levels(target: &EdgesTarget, state: &State, drifts: &[f64]) -> (f64, Vec<f64>) {
    let n = target.agents;
    let mut matrix = vec![0.0; n * n];
    for (listener, (speakers, weights)) in target.speakers.iter().zip(&state.weights).enumerate() {
        matrix[listener * n + listener] += 1.0;
        for (&speaker, weight) in speakers.iter().zip(weights) {
            matrix[listener * n + speaker] -= state.keep * weight;
        }
    }
    // Rows are diagonally dominant: no pivoting.
    let mut right = drifts.to_vec();
    let mut determinant = 0.0;
    for pivot in 0..n {
        let diagonal = matrix[pivot * n + pivot];
        determinant += diagonal.ln();
        for row in pivot + 1..n {
            let factor = matrix[row * n + pivot] / diagonal;
            if factor != 0.0 {
                for column in pivot..n {
                    matrix[row * n + column] -= factor * matrix[pivot * n + column];
                }
                right[row] -= factor * right[pivot];
            }
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| matrix[row * n + column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row * n + row];
    }
    (determinant, right)
}

impl Chain {
    /// Keep and the scale of all news, given standardised news and levels.
    pub(in crate::learn::posterior::edges) fn shared(&mut self, target: &EdgesTarget, adapt: bool) {
        let (agents, steps) = (target.agents, target.steps);
        let state = &self.state;
        let (determinant, means) = levels(target, state, &state.drifts);
        let mut starts = vec![0];
        let (mut heard, mut shares) = (Vec::new(), Vec::new());
        for (speakers, weights) in target.speakers.iter().zip(&state.weights) {
            for (&speaker, &weight) in speakers.iter().zip(weights).filter(|(_, weight)| **weight > 0.0) {
                heard.push(speaker);
                shares.push(weight);
            }
            starts.push(heard.len());
        }
        // Scaled news step by step, and the heard mean of levels.
        let mut surprises = vec![0.0; (steps - 1) * agents];
        for agent in 0..agents {
            for step in 0..steps - 1 {
                surprises[step * agents + agent] = self.errors[agent * (steps - 1) + step];
            }
        }
        let mixed: Vec<f64> = (0..agents)
            .map(|agent| (starts[agent]..starts[agent + 1]).map(|edge| shares[edge] * means[heard[edge]]).sum())
            .collect();
        let energy = |frames: &[f64]| -> f64 {
            let mut squares = 0.0;
            for agent in 0..agents {
                for step in 0..steps {
                    let off = target.values[agent * steps + step] - frames[step * agents + agent];
                    squares += target.counts[agent * steps + step] * off * off;
                }
            }
            -0.5 * squares / state.noise
        };
        let precisions: Vec<f64> = (0..agents).map(|agent| self.drift_precision(agent)).collect();
        let prior = |keep: f64, shift: f64, determinant: f64| -> f64 {
            let drifts: f64 = (0..agents)
                .map(|agent| {
                    let off = means[agent] - keep * mixed[agent] - state.drift_centre;
                    -0.5 * off * off * precisions[agent]
                })
                .sum();
            let (centre, deviation) = target.mean_news_prior();
            drifts + determinant + (keep * (1.0 - keep)).ln()
                - 0.5 * ((state.mean_news + shift - centre) / deviation).powi(2)
        };
        let (mut keep, mut shift) = (state.keep, 0.0);
        let mut here = energy(&self.frames) + prior(keep, 0.0, determinant);
        let mut best: Option<Vec<f64>> = None;
        let mut trial = state.clone();
        trial.beliefs.clear();
        let mut size = self.steps.shared;
        for _ in 0..SHARED_MOVES {
            let odds = (keep / (1.0 - keep)).ln() + 2.0 * size * normal(&mut self.rng);
            let moved = match target.adaptation {
                Some(_) => keep,
                None => 1.0 / (1.0 + (-odds).exp()),
            };
            let shifted = shift + size * normal(&mut self.rng);
            let factor = (0.5 * shifted).exp();
            trial.keep = moved;
            let mut there = f64::NEG_INFINITY;
            let mut frames = self.frames[..agents].to_vec();
            if moved > 0.0 && moved < 1.0 {
                frames.reserve(agents * (steps - 1));
                for step in 0..steps - 1 {
                    for agent in 0..agents {
                        let mut sum = 0.0;
                        for edge in starts[agent]..starts[agent + 1] {
                            sum += shares[edge] * (frames[step * agents + heard[edge]] - means[heard[edge]]);
                        }
                        frames.push(means[agent] + moved * sum + factor * surprises[step * agents + agent]);
                    }
                }
                there = energy(&frames) + prior(moved, shifted, levels(target, &trial, &state.drifts).0);
            }
            let accepted = self.rng.random::<f64>().ln() < there - here;
            if adapt {
                let gain = (self.steps.moves + 10.0).powf(-0.6);
                size *= (gain * (f64::from(u8::from(accepted)) - ACCEPTED)).exp();
            }
            if accepted {
                (keep, shift, here) = (moved, shifted, there);
                best = Some(frames);
            }
        }
        self.steps.shared = size;
        if let Some(frames) = best {
            let state = &mut self.state;
            state.keep = keep;
            state.mean_news += shift;
            state.news.iter_mut().for_each(|news| *news *= shift.exp());
            for agent in 0..agents {
                state.drifts[agent] = means[agent] - keep * mixed[agent];
            }
            for agent in 0..agents {
                for step in 0..steps {
                    state.beliefs[agent * steps + step] = frames[step * agents + agent];
                }
            }
            self.frames = frames;
            self.refresh(target);
        }
    }

    /// Levels given the deviations from them: all beliefs of an agent move by the same number.
    pub(in crate::learn::posterior::edges) fn levels(&mut self, target: &EdgesTarget) -> Result<(), Error> {
        let (agents, steps) = (target.agents, target.steps);
        let state = &mut self.state;
        // The change of the levels has a normal law with this precision and this slope of its logarithm at zero.
        let mut precision = Mat::<f64>::zeros(agents, agents);
        let mut slope = Mat::<f64>::zeros(agents, 1);
        for agent in 0..agents {
            let (mean, variance) = target.first[agent];
            precision[(agent, agent)] += 1.0 / variance;
            slope[(agent, 0)] += (mean - state.beliefs[agent * steps]) / variance;
            for cell in agent * steps..(agent + 1) * steps {
                let weight = target.counts[cell] / state.noise;
                precision[(agent, agent)] += weight;
                slope[(agent, 0)] += weight * (target.values[cell] - state.beliefs[cell]);
            }
        }
        for listener in 0..agents {
            let scale = 1.0 / (state.drift_scale * state.drift_factors[listener]);
            let off = state.drifts[listener] - state.drift_centre;
            let heard = target.speakers[listener].iter().zip(&state.weights[listener]);
            let mut row: Vec<(usize, f64)> = heard
                .filter(|(_, weight)| **weight > 0.0)
                .map(|(&speaker, weight)| (speaker, -state.keep * weight))
                .collect();
            // A listener is the first of its speakers.
            row[0].1 += 1.0;
            for &(i, a) in &row {
                slope[(i, 0)] -= scale * off * a;
                for &(j, b) in &row {
                    precision[(i, j)] += scale * a * b;
                }
            }
        }
        let factor = Cholesky::new(precision).ok_or(Error::Undefined {
            what: "the levels of the beliefs",
            reason: "their precision is singular".into(),
        })?;
        let mut change = factor.solve(slope);
        let mut noise: Vec<f64> = (0..agents).map(|_| normal(&mut self.rng)).collect();
        // Lᵀ·x = noise has the covariance of the law.
        let lower = factor.into_lower();
        for row in (0..agents).rev() {
            let known: f64 = (row + 1..agents).map(|below| lower[(below, row)] * noise[below]).sum();
            noise[row] = (noise[row] - known) / lower[(row, row)];
            change[(row, 0)] += noise[row];
        }
        for agent in 0..agents {
            let by = change[(agent, 0)];
            for step in 0..steps {
                state.beliefs[agent * steps + step] += by;
                self.frames[step * agents + agent] += by;
            }
            let heard = target.speakers[agent].iter().zip(&state.weights[agent]);
            let heard: f64 = heard.map(|(&speaker, weight)| weight * change[(speaker, 0)]).sum();
            state.drifts[agent] += by - state.keep * heard;
        }
        Ok(())
    }
}
