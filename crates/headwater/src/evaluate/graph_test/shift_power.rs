//! Power of a test by circular shifts where there is no graph: worlds of the same accounts, silence, noise and persistence, in
//! which every account listens to a few others drawn at random, and how often such a test finds it.
//!
//! The permutation test of a model refits a network for every shift, which is too slow for a hundred worlds. Here the test is a
//! score test: all lagged products of one account's smoothed deviation and another's news, compared with those of series
//! shifted in time. It asks the same question of the same data, but is not the same test.

use super::power::{WANTED, WEIGHTS, world};
use super::rows::{Part, Rows, dot};
use super::series::{Measured, Process, fit_all, measured, noise_of_a_post};
use super::{Selected, TestedGraph, p_value, select};
use crate::evaluate::draws::{draw_all, numbered};
use crate::graph::Graph;
use crate::words::percent;
use crate::{Error, Panel};
use rand::RngExt;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Accounts that each account listens to in a simulated world; fewer where there are fewer.
const SPEAKERS: usize = 3;

/// Circular shifts of each world: enough to tell whether p is at most 5 %.
const SHIFTS: usize = 99;

/// Worlds for each weight, and fewer where these cost too much.
const WORLDS: [usize; 2] = [20, 10];

/// Seconds that the simulation may cost on one core, by its sizes; where the estimate is longer, it is left out.
const AFFORDABLE: f64 = 20.0;

/// Significance level.
const LEVEL: f64 = 0.05;

/// Steps below which series have too few different shifts.
const FEWEST_STEPS: usize = 20;

/// Tells the streams of its generator from others with the same seed.
const STREAM: u64 = 0x0073_6869_6674;

/// How often a test by circular shifts would find listening in data like these, without a graph. Its text says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShiftPower {
    /// Weights that accounts gave the others they listen to.
    pub weights: Vec<f64>,
    /// Share of worlds with p ≤ 0.05, for each weight.
    pub found: Vec<f64>,
    /// Simulated worlds for each weight.
    pub worlds: usize,
    /// How many others each account listens to in these worlds.
    pub speakers: usize,
    /// The smallest of the weights that is found in 80 % of the worlds, where one is.
    pub smallest: Option<f64>,
}

impl fmt::Display for ShiftPower {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.weights.iter().zip(&self.found);
        let parts: Vec<String> = parts.map(|(weight, found)| format!("{weight} {}", percent(*found))).collect();
        let (worlds, speakers) = (self.worlds, self.speakers);
        write!(
            to,
            "Power, simulated: {worlds} worlds per weight with these accounts, silence and noise, in which every account listens to {speakers} others, and a quick score test by circular shifts. Found, by the weight given to them: {}. {}",
            parts.join(", "),
            match self.smallest {
                Some(weight) => format!("A weight of {weight} would be found in at least 80 % of cases."),
                None => "No weight would be found in 80 % of cases: a negative result says little.".to_owned(),
            }
        )
    }
}

/// Worlds for each weight that are affordable, by the sizes alone: the result must not depend on the machine.
fn affordable(accounts: usize, steps: usize, ratios: usize) -> Option<usize> {
    let cells = (accounts * steps * ratios) as f64;
    let (fit, shifts) = (cells * 1e-6, cells * accounts as f64 * SHIFTS as f64 * 1e-9);
    WORLDS.into_iter().find(|worlds| (fit + shifts) * (worlds * WEIGHTS.len()) as f64 <= AFFORDABLE)
}

/// Simulates how strong listening must be to be found in a panel without a graph. `None` where the panel cannot be tested so:
/// too few steps or accounts that speak, or so many that it would take more than about 20 seconds.
///
/// # Errors
/// [`Error::Stopped`].
pub fn shift_power(panel: &Panel, seed: u64) -> Result<Option<ShiftPower>, Error> {
    let panels = [panel];
    let accounts = match select(&panels) {
        Ok(Selected { accounts, .. }) => accounts,
        Err(Error::Untestable(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let (count, steps, ratios) = (accounts.len(), panel.steps(), panel.ratios());
    let Some(worlds) = affordable(count, steps, ratios).filter(|_| steps >= FEWEST_STEPS) else { return Ok(None) };
    let measured: Vec<Vec<Vec<Measured>>> = (0..ratios)
        .map(|ratio| {
            let noise = noise_of_a_post(&panels, ratio, &accounts).max(f64::MIN_POSITIVE);
            accounts.iter().map(|&account| measured(&panels, ratio, account, noise)).collect()
        })
        .collect();
    let processes: Vec<Vec<Process>> = measured.iter().map(|accounts| fit_all(accounts)).collect();
    let speakers = SPEAKERS.min(count - 1);
    let rejected = draw_all("simulating data like these", WEIGHTS.len() * worlds, |number| {
        let mut rng = numbered(seed ^ STREAM, number);
        let graph = random_graph(count, speakers, &mut rng)?;
        let groups = vec![0; count];
        let tested = TestedGraph::new(&graph, &groups);
        let weight = WEIGHTS[number as usize / worlds];
        let simulated: Vec<Vec<Process>> = processes
            .iter()
            .zip(&measured)
            .map(|(processes, measured)| fit_all(&world(&tested, processes, measured, weight, &mut rng)))
            .collect();
        Ok(score_p(&simulated, steps, &mut rng) <= LEVEL)
    })?;
    let share = |worlds: &[bool]| worlds.iter().filter(|rejected| **rejected).count() as f64 / worlds.len() as f64;
    let found: Vec<f64> = rejected.chunks(worlds).map(share).collect();
    let smallest = found.iter().position(|share| *share >= WANTED).map(|first| WEIGHTS[first]);
    Ok(Some(ShiftPower { weights: WEIGHTS.to_vec(), found, worlds, speakers, smallest }))
}

/// Every account listens to so many others, drawn at random.
fn random_graph(accounts: usize, speakers: usize, rng: &mut ChaCha8Rng) -> Result<Graph, Error> {
    let mut edges = Vec::with_capacity(accounts * speakers);
    for listener in 0..accounts {
        // The listener itself is skipped.
        let others = sample(rng, accounts - 1, speakers).into_iter();
        edges.extend(others.map(|other| (other + usize::from(other >= listener), listener)));
    }
    Graph::new(accounts, edges)
}

/// Share of circular shifts whose statistic reaches the observed one: the sum over ordered pairs of the squared lagged product
/// of the speaker's deviation and the listener's news, where it is positive.
fn score_p(processes: &[Vec<Process>], steps: usize, rng: &mut ChaCha8Rng) -> f64 {
    let (level, news) = (Rows::new(processes, Part::Level), Rows::new(processes, Part::News));
    let accounts = level.accounts();
    let starts: Vec<usize> = (0..processes.len()).map(|ratio| ratio * steps).collect();
    let statistic = |offsets: &[usize]| -> f64 {
        let mut total = 0.0;
        for listener in 0..accounts {
            for speaker in (0..accounts).filter(|&speaker| speaker != listener) {
                // Σ_t news[t] · deviation[t − lag], cut where it wraps.
                let lag = (1 + offsets[listener] + steps - offsets[speaker]) % steps;
                let score: f64 = starts
                    .iter()
                    .map(|&start| {
                        let heard = &level.row(speaker)[start..start + steps];
                        let met = &news.row(listener)[start..start + steps];
                        dot(&met[lag..], &heard[..steps - lag]) + dot(&met[..lag], &heard[steps - lag..])
                    })
                    .sum();
                total += score.max(0.0).powi(2);
            }
        }
        total
    };
    let observed = statistic(&vec![0; accounts]);
    let null: Vec<f64> = (0..SHIFTS)
        .map(|_| statistic(&(0..accounts).map(|_| rng.random_range(0..steps)).collect::<Vec<_>>()))
        .collect();
    p_value(observed, &null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::noisy::{NoisyWorld, noisy};

    #[test]
    fn every_account_listens_to_others() {
        let graph = random_graph(6, 3, &mut numbered(1, 0)).unwrap();
        for (listener, speakers) in graph.speakers().iter().enumerate() {
            assert!(speakers.len() == 3 && !speakers.contains(&listener), "{listener}: {speakers:?}");
        }
    }

    #[test]
    fn scores_by_hand() {
        // Two accounts with unit news; the second says what the first said a step before.
        let process = |values: [f64; 20]| Process {
            deviations: vec![values.to_vec()],
            news: vec![values.to_vec()],
            ..Process::default()
        };
        let mut first = [0.0; 20];
        (first[3], first[8], first[9], first[15]) = (1.0, -2.0, 1.5, -0.5);
        let mut second = [0.0; 20];
        second[1..].copy_from_slice(&first[..19]);
        let pairs = [vec![process(first), process(second)]];
        // A shift by the same offset gives the observed value as well: about one in twenty.
        let p = score_p(&pairs, 20, &mut numbered(1, 0));
        assert!(p < 0.15, "{p}");
        let apart = [vec![process(first), process([first[0]; 20])]];
        assert!((score_p(&apart, 20, &mut numbered(1, 0)) - 1.0).abs() < 1e-12, "nothing moves: nothing to find");
    }

    #[test]
    fn power_grows_with_the_weight_and_falls_with_noise() {
        let power = |steps: usize, noise: f64| {
            let (panel, _) = noisy(&NoisyWorld { agents: 10, steps, noise, ..NoisyWorld::strengths() }).unwrap();
            shift_power(&panel, 1).unwrap().unwrap()
        };
        let clear = power(300, 0.1);
        assert_eq!((clear.worlds, clear.speakers, clear.found.len()), (20, 3, 5));
        assert!(clear.found[4] >= 0.9 && clear.found[0] <= clear.found[4], "{clear:?}");
        assert!(clear.smallest.is_some_and(|weight| weight <= 0.8), "{clear:?}");
        let noisy = power(40, 5.0);
        assert!(noisy.found.iter().sum::<f64>() < 0.7 * clear.found.iter().sum::<f64>(), "{noisy:?}");
        assert_eq!(power(300, 0.1), clear, "the same seed gives the same worlds");
        let text = clear.to_string();
        assert!(text.starts_with("Power, simulated: 20 worlds per weight"), "{text}");
    }

    #[test]
    fn without_listening_it_finds_as_much_as_its_level() {
        // 200 worlds in which nobody listens: p is at most 5 % in 5 %, and in 1.9 to 8.9 % with probability 99 %.
        let found = (0..200).filter(|&seed| {
            let mut rng = numbered(seed, 7);
            let graph = Graph::new(6, Vec::<(usize, usize)>::new()).unwrap();
            let groups = vec![0; 6];
            let process = Process { persistence: 0.8, news_variance: 1.0, levels: vec![0.0], ..Process::default() };
            let quiet = Measured { values: vec![0.0; 80], precision: vec![1.0; 80] };
            let tested = TestedGraph::new(&graph, &groups);
            let world = world(&tested, &vec![process; 6], &vec![vec![quiet]; 6], 0.0, &mut rng);
            score_p(&[fit_all(&world)], 80, &mut rng) <= LEVEL
        });
        let found = found.count();
        assert!((3..=18).contains(&found), "{found}");
    }

    #[test]
    fn large_and_small_panels_are_left_out() {
        assert_eq!(affordable(25, 700, 1), Some(20));
        assert_eq!(affordable(2000, 1000, 1), None);
        let (panel, _) = noisy(&NoisyWorld { agents: 10, steps: 15, ..NoisyWorld::strengths() }).unwrap();
        assert_eq!(shift_power(&panel, 1).unwrap(), None);
    }
}
