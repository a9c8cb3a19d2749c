//! Moves of one agent, with its own beliefs integrated out.

use super::{ACCEPTED, Chain, EdgesTarget, PAIRS, normal, normalise, without_constant};
use crate::learn::posterior::edges::pairs::{Slab, move_pairs};
use crate::learn::posterior::edges::path::{self, Seen, TwoColumns, Whitened};
use rand::RngExt;

/// Moves of self-weight and news of an agent.
const OWN_MOVES: usize = 3;

impl Chain {
    /// The listeners of an agent, with the weight b that each gives it.
    fn listeners(&self, target: &EdgesTarget, agent: usize) -> Vec<(usize, f64)> {
        let mut found = Vec::new();
        for listener in (0..target.agents).filter(|&listener| listener != agent) {
            // The others are in order.
            if let Ok(place) = target.speakers[listener][1..].binary_search(&agent) {
                let weight = self.state.weights[listener][place + 1];
                if weight > 0.0 {
                    found.push((listener, self.state.keep * weight));
                }
            }
        }
        found
    }

    /// What is seen of an agent.
    fn seen(&self, target: &EdgesTarget, agent: usize, listeners: &[(usize, f64)]) -> Seen {
        let steps = target.steps;
        let mut precisions: Vec<f64> =
            target.series(&target.counts, agent).iter().map(|count| count / self.state.noise).collect();
        let mut values: Vec<f64> =
            target.series(&target.values, agent).iter().zip(&precisions).map(|(value, w)| value * w).collect();
        let beliefs = target.series(&self.state.beliefs, agent);
        for &(listener, weight) in listeners {
            let scale = weight / self.state.news[listener];
            let errors = &self.errors[listener * (steps - 1)..(listener + 1) * (steps - 1)];
            for step in 0..steps - 1 {
                values[step] += scale * (errors[step] + weight * beliefs[step]);
                precisions[step] += scale * weight;
            }
        }
        for (value, precision) in values.iter_mut().zip(&precisions) {
            *value = if *precision > 0.0 { *value / precision } else { 0.0 };
        }
        Seen { values, precisions, first: target.first[agent] }
    }

    /// Weights, drift, news and beliefs of one agent given the beliefs of the others.
    pub(in crate::learn::posterior::edges) fn agent(&mut self, target: &EdgesTarget, agent: usize, adapt: bool) {
        let (agents, steps) = (target.agents, target.steps);
        let listeners = self.listeners(target, agent);
        let seen = self.seen(target, agent, &listeners);
        let speakers = &target.speakers[agent];
        let keep = self.state.keep;
        let drift = (self.state.drift_centre, self.drift_precision(agent));
        // The others' beliefs in their shares.
        let given = 1.0 - self.state.weights[agent][0];
        let alone = self.state.weights[agent][1..].iter().all(|weight| *weight == 0.0);
        let mut heard = vec![0.0; steps - 1];
        if !alone {
            for (&speaker, &weight) in speakers.iter().zip(&self.state.weights[agent]).skip(1) {
                if weight > 0.0 {
                    let share = weight / given;
                    let beliefs = target.series(&self.state.beliefs, speaker);
                    heard.iter_mut().zip(beliefs).for_each(|(heard, belief)| *heard += share * belief);
                }
            }
        }
        let others = self.state.weights[agent][1..].iter().filter(|weight| **weight > 0.0).count() as f64;
        let concentration = self.state.concentration;
        let log_density = |own: f64, news: f64, mean_news: f64, spread_news: f64| {
            let columns = TwoColumns::new(&seen, &heard, keep * own, news);
            let mut value =
                columns.log_likelihood(keep * (1.0 - own), drift) - 0.5 * (news.ln() - mean_news).powi(2) / spread_news;
            if !alone {
                value += concentration * own.ln() + others * concentration * (1.0 - own).ln();
            }
            value
        };
        let (mut own, mut news) = (self.state.weights[agent][0], self.state.news[agent]);
        let mut here = log_density(own, news, self.state.mean_news, self.state.spread_news);
        for _ in 0..OWN_MOVES {
            let size = self.steps.own[agent];
            let moved = news * (size * normal(&mut self.rng)).exp();
            let shifted = match alone {
                true => own,
                false => {
                    let odds = (own / (1.0 - own)).ln() + 2.0 * size * normal(&mut self.rng);
                    1.0 / (1.0 + (-odds).exp())
                }
            };
            let possible = alone || (shifted > 0.0 && shifted < 1.0);
            let there = match possible {
                true => log_density(shifted, moved, self.state.mean_news, self.state.spread_news),
                false => f64::NEG_INFINITY,
            };
            let accepted = self.rng.random::<f64>().ln() < there - here;
            if adapt {
                let gain = (self.steps.moves + 10.0).powf(-0.6);
                self.steps.own[agent] *= (gain * (f64::from(u8::from(accepted)) - ACCEPTED)).exp();
            }
            if accepted {
                (own, news, here) = (shifted, moved, there);
            }
        }
        if !alone {
            let factor = (1.0 - own) / given;
            self.state.weights[agent][1..].iter_mut().for_each(|weight| *weight *= factor);
            self.state.weights[agent][0] = own;
        }
        self.state.news[agent] = news;
        // Weights of the others, at this self-weight.
        let count = speakers.len() - 1;
        let whitened = Whitened {
            seen: &seen,
            beliefs: &self.frames,
            agents,
            speakers: &speakers[1..],
            scale: keep,
            own: keep * own,
            news,
        };
        let products = whitened.products(&mut self.rows);
        let width = count + 2;
        let all: Vec<usize> = (0..count).collect();
        if !alone && count > 1 {
            let quadratic = without_constant(&products, width, 1.0, drift, &all);
            let log_odds = self.log_odds(target, agent);
            let slab = Slab { log_odds: &log_odds[1..], concentration, always: None, beside: 1 };
            self.count(target, agent, false);
            let weights = &mut self.state.weights[agent];
            move_pairs(&quadratic, slab, &mut weights[1..], PAIRS * count, &mut self.rng);
            normalise(weights);
            self.count(target, agent, true);
        }
        // Drift, then beliefs.
        let weights = &self.state.weights[agent];
        let at = |row: usize, column: usize| products[row * width + column];
        let total = at(count, count) + drift.1;
        let explained: f64 = (0..count).map(|place| weights[place + 1] * at(place, count)).sum();
        let pull = at(count, count + 1) - explained + drift.0 * drift.1;
        let level = pull / total + normal(&mut self.rng) / total.sqrt();
        self.state.drifts[agent] = level;
        let own = keep * weights[0];
        let mut inputs = vec![level; steps - 1];
        for (&speaker, &weight) in speakers.iter().zip(weights).skip(1) {
            if weight > 0.0 {
                let scale = keep * weight;
                let beliefs = target.series(&self.state.beliefs, speaker);
                inputs.iter_mut().zip(beliefs).for_each(|(input, belief)| *input += scale * belief);
            }
        }
        let before = target.series(&self.state.beliefs, agent).to_vec();
        let mut variances = Vec::new();
        let out = &mut self.state.beliefs[agent * steps..(agent + 1) * steps];
        path::draw(&seen, &inputs, own, news, &mut self.rng, out, &mut variances);
        for step in 0..steps {
            self.frames[step * agents + agent] = out[step];
        }
        for (listener, weight) in listeners {
            let after = &self.state.beliefs[agent * steps..];
            let errors = &mut self.errors[listener * (steps - 1)..(listener + 1) * (steps - 1)];
            for ((error, after), before) in errors.iter_mut().zip(after).zip(&before) {
                *error -= weight * (after - before);
            }
        }
        self.refresh_agent(target, agent);
    }
}
