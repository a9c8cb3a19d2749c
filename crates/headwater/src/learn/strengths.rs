//! Speaker strengths: with a known graph, one number per speaker instead of one per edge.
//!
//! In: expected moments of who hears whom. Out: the strengths g, the weights s a listener gives itself, and δ, that make
//! them likeliest: `a[ℓ,k] = (1−s_k) F[ℓ,k] g_ℓ / Σ_{m≠k} F[m,k] g_m`, `a[k,k] = s_k`; a listener who follows nobody
//! hears itself. Log-strengths have a standard normal prior, so that who is heard by few stays near the middle; so have the
//! log-odds of the s_k about their common mean s: one s for all would make a speaker that few follow look strong when
//! those few are stubborn.
//!
//! Legend: b = (1−δ)a a column; G, c its normal equations; the loss of a listener is ½bᵀGb − cᵀb.

use super::fit;
use super::hearing::Hearing;
use super::quasi_newton::minimise;
use super::state_space::inverted;
use faer::{Mat, MatRef};

/// Steps of the search within one round; it goes on from there in the next.
const STEPS: usize = 30;

/// Strengths as they stand.
#[derive(Debug, Clone)]
pub(crate) struct Strengths {
    /// log g.
    logs: Vec<f64>,
    /// log s_k/(1−s_k).
    owns: Vec<f64>,
    /// Their mean.
    own: f64,
}

/// What one listener may hear, and what came of it.
struct Listener {
    agent: usize,
    /// Speakers, by position in the columns.
    speakers: Vec<usize>,
    /// Which of them is the listener itself.
    own: Option<usize>,
    gram: Mat<f64>,
    linear: Vec<f64>,
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

impl Strengths {
    pub(crate) fn equal(agents: usize, own: f64) -> Self {
        Strengths { logs: vec![0.0; agents], owns: vec![logit(own); agents], own: logit(own) }
    }

    pub(crate) fn given(strengths: &[f64], owns: impl Iterator<Item = f64>, own: f64) -> Self {
        Strengths {
            logs: strengths.iter().map(|strength| strength.ln()).collect(),
            // A listener who follows nobody hears itself alone; its odds are not finite, and matter to nobody.
            owns: owns.map(|own| logit(own.clamp(1e-6, 1.0 - 1e-6))).collect(),
            own: logit(own),
        }
    }

    /// g, with a geometric mean of one.
    pub(crate) fn relative(&self) -> Vec<f64> {
        let mean = self.logs.iter().sum::<f64>() / self.logs.len() as f64;
        self.logs.iter().map(|log| (log - mean).exp()).collect()
    }

    /// All as numbers that may be extrapolated.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        self.logs.iter().chain(&self.owns).copied().chain([self.own])
    }

    pub(crate) fn read(&mut self, numbers: &[f64]) {
        let agents = self.logs.len();
        self.logs.copy_from_slice(&numbers[..agents]);
        self.owns.copy_from_slice(&numbers[agents..2 * agents]);
        self.own = numbers[2 * agents];
    }

    /// The columns b of all listeners.
    pub(crate) fn columns(&self, hearing: &Hearing<'_>, sum: f64) -> Vec<Vec<f64>> {
        hearing.each(|position| {
            let speakers = hearing.regressors(position);
            let own = speakers.binary_search(&hearing.original(hearing.listeners[position])).ok();
            self.column(hearing.listeners[position], speakers, own).iter().map(|weight| sum * weight).collect()
        })
    }

    /// s, about which the listeners' own ones lie.
    pub(crate) fn self_weight(&self) -> f64 {
        logistic(self.own)
    }

    /// The negative logarithm of the prior.
    pub(crate) fn penalty(&self) -> f64 {
        let off = self.owns.iter().map(|own| own - self.own);
        0.5 * self.logs.iter().copied().chain(off).map(|value| value * value).sum::<f64>()
    }

    /// The weights of a listener.
    fn column(&self, listener: usize, speakers: &[usize], own: Option<usize>) -> Vec<f64> {
        let kept = logistic(self.owns[listener]);
        let strength = |place: usize| if Some(place) == own { 0.0 } else { self.logs[speakers[place]].exp() };
        let total: f64 = (0..speakers.len()).map(strength).sum();
        let weight = |place: usize| match own {
            _ if total == 0.0 => 1.0 / speakers.len() as f64,
            Some(own) if own == place => kept,
            Some(_) => (1.0 - kept) * strength(place) / total,
            // A listener whose own series cannot be told from nothing gives all to the others.
            None => strength(place) / total,
        };
        (0..speakers.len()).map(weight).collect()
    }
}

/// Strengths, self-weight and sum of weights that make the loss smallest, from where they stand; the columns b that
/// belong to them, and that sum.
pub(crate) fn maximise(
    strengths: &mut Strengths,
    hearing: &Hearing<'_>,
    innovation: &[Mat<f64>],
    sum: f64,
    given: Option<f64>,
) -> (Vec<Vec<f64>>, f64) {
    let listeners = hearing.each(|position| {
        let listener = hearing.listeners[position];
        let speakers = hearing.regressors(position).to_vec();
        let own = speakers.binary_search(&hearing.original(listener)).ok();
        let (gram, linear) = fit::normal(&hearing.ear(position), &inverted(&innovation[listener]));
        Listener { agent: listener, speakers, own, gram, linear }
    });
    let agents = strengths.logs.len();
    // Where in the numbers the common self-weight and the sum are.
    let (common, last) = (2 * agents, 2 * agents + 1);
    let start: Vec<f64> = strengths.numbers().chain([logit(given.unwrap_or(sum))]).collect();
    let read = |x: &[f64]| {
        let mut read = strengths.clone();
        read.read(&x[..last]);
        (read, logistic(x[last]))
    };
    let loss = |x: &[f64]| {
        let (strengths, sum) = read(x);
        let mut gradient = vec![0.0; x.len()];
        let mut loss = strengths.penalty();
        gradient.iter_mut().zip(&strengths.logs).for_each(|(slope, log)| *slope = *log);
        for (agent, own) in strengths.owns.iter().enumerate() {
            gradient[agents + agent] += own - strengths.own;
            gradient[common] -= own - strengths.own;
        }
        for listener in &listeners {
            let column = strengths.column(listener.agent, &listener.speakers, listener.own);
            let kept = logistic(strengths.owns[listener.agent]);
            let weights: Vec<f64> = column.iter().map(|weight| sum * weight).collect();
            let pulled = &listener.gram * MatRef::from_column_major_slice(&weights, weights.len(), 1);
            let pulled = pulled.col_as_slice(0);
            let slope: Vec<f64> = pulled.iter().zip(&listener.linear).map(|(pulled, linear)| pulled - linear).collect();
            let terms = weights.iter().zip(pulled).zip(&listener.linear);
            loss += terms.map(|((weight, pulled), linear)| weight * (0.5 * pulled - linear)).sum::<f64>();
            gradient[last] +=
                (1.0 - sum) * weights.iter().zip(&slope).map(|(weight, slope)| weight * slope).sum::<f64>();
            let others = || (0..column.len()).filter(|place| Some(*place) != listener.own);
            let given: f64 = others().map(|place| column[place]).sum();
            if given == 0.0 || others().next().is_none() {
                continue;
            }
            let mean = others().map(|place| column[place] * slope[place]).sum::<f64>() / given;
            for place in others() {
                gradient[listener.speakers[place]] += sum * column[place] * (slope[place] - mean);
            }
            if let Some(own) = listener.own {
                gradient[agents + listener.agent] += sum * kept * (1.0 - kept) * (slope[own] - mean);
            }
        }
        if given.is_some() {
            gradient[last] = 0.0;
        }
        (loss, gradient)
    };
    let (found, sum) = read(&minimise(loss, start, STEPS));
    let sum = given.unwrap_or_else(|| sum.clamp(1.0 - fit::ADAPTATION.end(), 1.0 - fit::ADAPTATION.start()));
    *strengths = found;
    (strengths.columns(hearing, sum), sum)
}
