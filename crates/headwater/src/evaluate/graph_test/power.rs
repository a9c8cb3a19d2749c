//! Power for data like these: worlds of the same accounts, silence, noise, persistence and graph, in which listeners give their
//! speakers a known weight, and how often the test finds it.

use super::series::{Measured, Process, fit_all};
use super::{Core, TestedGraph};
use crate::Error;
use crate::evaluate::draws::{draw_all, numbered};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Weights tried: of what a listener thinks next, the part that is the mean of the accounts it follows.
pub(super) const WEIGHTS: [f64; 5] = [0.1, 0.2, 0.4, 0.6, 0.8];

/// Rewirings in each world: enough to tell whether p is at most 5 %.
const DRAWS: usize = 99;

/// Share of worlds in which a weight must be found.
const WANTED: f64 = 0.8;

/// Steps before the first one that is seen.
const BURN_IN: usize = 50;

/// Worlds for each weight by default.
pub(super) const WORLDS: usize = 20;

/// Seconds that power may cost by default, on one core; where the estimate is longer, it is left out.
const AFFORDABLE: f64 = 60.0;

/// How often the test would find listening in data like these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Power {
    /// Weights that listeners gave the accounts they follow.
    pub weights: Vec<f64>,
    /// Share of worlds with p ≤ 0.05, for each weight.
    pub found: Vec<f64>,
    /// Simulated worlds for each weight.
    pub worlds: usize,
    /// The smallest of the weights from which on all are found in 80 % of the worlds, where there is one.
    pub smallest: Option<f64>,
}

impl fmt::Display for Power {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.weights.iter().zip(&self.found);
        let parts: Vec<String> =
            parts.map(|(weight, found)| format!("weight {weight}: found in {:.0} %", 100.0 * found)).collect();
        write!(
            to,
            "Power for data like these, by the weight that listeners give those they follow: {}. {}",
            parts.join("; "),
            match self.smallest {
                Some(weight) =>
                    format!("From a weight of {weight} on, listening would be found in at least 80 % of cases."),
                None => "At no weight would it be found in 80 % of cases: a negative result says little.".to_owned(),
            }
        )
    }
}

/// Whether the default number of worlds costs less than about a minute on one core; an estimate from sizes alone.
pub(super) fn affordable(accounts: usize, cells: usize, edges: usize) -> bool {
    let cells = cells as f64;
    let (fit, pairs) = (cells * 1e-6, accounts as f64 * cells * 4e-9);
    let rewiring = (DRAWS * edges) as f64 * 1e-6;
    (fit + pairs + rewiring) * (WORLDS * WEIGHTS.len()) as f64 <= AFFORDABLE
}

/// The first weight from which on all are found as often as wanted.
pub(super) fn smallest(found: &[f64]) -> Option<f64> {
    let missed = found.iter().rposition(|share| *share < WANTED).map_or(0, |last| last + 1);
    WEIGHTS.get(missed).copied()
}

/// Simulates worlds like these and tests each.
pub(super) fn power(
    tested: &TestedGraph<'_>,
    processes: &[Vec<Process>],
    measured: &[Vec<Vec<Measured>>],
    worlds: usize,
    level: f64,
    seed: u64,
) -> Result<Power, Error> {
    let rejected = draw_all("simulating data like these", WEIGHTS.len() * worlds, |number| {
        let mut rng = numbered(seed ^ 0x0070_6f77_6572, number);
        let weight = WEIGHTS[number as usize / worlds];
        let simulated: Vec<Vec<Process>> = processes
            .iter()
            .zip(measured)
            .map(|(processes, measured)| fit_all(&world(tested, processes, measured, weight, &mut rng)))
            .collect();
        let core = Core::new(&simulated, tested, DRAWS, seed ^ number)?;
        Ok(core.p_value() <= level)
    })?;
    let found: Vec<f64> = rejected
        .chunks(worlds.max(1))
        .map(|worlds| worlds.iter().filter(|rejected: &&bool| **rejected).count() as f64 / worlds.len() as f64)
        .collect();
    Ok(Power { weights: WEIGHTS.to_vec(), smallest: smallest(&found), found, worlds })
}

/// The same accounts and silence with listening: `x_k ← φ_k((1 − w) x_k + w · mean of followed x) + news`, and new measurements.
pub(super) fn world(
    tested: &TestedGraph<'_>,
    processes: &[Process],
    measured: &[Vec<Measured>],
    weight: f64,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<Measured>> {
    let episodes = measured.first().map_or(0, Vec::len);
    let mut out: Vec<Vec<Measured>> = measured.to_vec();
    for episode in 0..episodes {
        let steps = measured[0][episode].values.len();
        let mut opinions = vec![0.0; processes.len()];
        for step in 0..BURN_IN + steps {
            let next =
                processes.iter().zip(tested.graph.speakers()).enumerate().map(|(account, (process, speakers))| {
                    let own = opinions[account];
                    let heard =
                        speakers.iter().map(|&speaker| opinions[speaker]).sum::<f64>() / speakers.len().max(1) as f64;
                    let weight = if speakers.is_empty() { 0.0 } else { weight };
                    let news: f64 = StandardNormal.sample(rng);
                    process.persistence * ((1.0 - weight) * own + weight * heard) + process.news_variance.sqrt() * news
                });
            opinions = next.collect();
            let Some(step) = step.checked_sub(BURN_IN) else { continue };
            for (account, process) in processes.iter().enumerate() {
                let cell = &mut out[account][episode];
                let noise: f64 = StandardNormal.sample(rng);
                if cell.precision[step] > 0.0 {
                    cell.values[step] =
                        process.levels[episode] + opinions[account] + noise / cell.precision[step].sqrt();
                }
            }
        }
    }
    out
}
