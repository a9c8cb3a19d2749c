//! Power of the test by circular shifts, which decides where there is no graph: worlds of the same accounts, silence, noise and
//! persistence, in which every account listens to a few others drawn at random, and how often such a world is "supported".
//!
//! Each world is fitted and judged as the data were: its forecasts must beat every baseline, and its skill that of 95 % of worlds in
//! which nobody listens. These stand for the shifts of each world, which would take hours: a shifted world is a world in which
//! nobody listens.

use super::power::{WEIGHTS, smallest, world};
use super::series::{Measured, Process, fit_all, measured, noise_of_a_post};
use super::{Selected, TestedGraph, p_value, select};
use crate::evaluate::CircularShifts;
use crate::evaluate::draws::{draw_all, numbered};
use crate::evaluate::verdict::beats_baselines;
use crate::graph::Graph;
use crate::learn::Method;
use crate::model::Skill;
use crate::{Error, Model, Panel};
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Accounts that each account listens to in a simulated world; fewer where there are fewer.
const SPEAKERS: usize = 3;

/// Worlds in which nobody listens: at most two of them reach the skill of a world that is "supported".
const SILENT_WORLDS: usize = 59;

/// Worlds for each weight, and fewer where these cost too much.
const WORLDS: [usize; 2] = [20, 10];

/// Seconds that the simulation may cost on one core, by its sizes; where the estimate is longer, it is left out.
const AFFORDABLE: f64 = 60.0;

/// Significance level.
const LEVEL: f64 = 0.05;

/// Steps below which too few are held out.
const FEWEST_STEPS: usize = 20;

/// Tells the streams of its generator from others with the same seed.
const STREAM: u64 = 0x0073_6869_6674;

/// How often circular shifts and forecast skill would find listening in data like these, without a graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShiftPower {
    /// Weights that accounts gave the others they listen to.
    pub weights: Vec<f64>,
    /// Share of worlds that are "supported", for each weight.
    pub found: Vec<f64>,
    /// Simulated worlds for each weight.
    pub worlds: usize,
    /// How many others each account listens to in these worlds.
    pub speakers: usize,
    /// The smallest of the weights from which on all are found in 80 % of the worlds, where there is one.
    pub smallest: Option<f64>,
}

impl fmt::Display for ShiftPower {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.weights.iter().zip(&self.found);
        let parts: Vec<String> =
            parts.map(|(weight, found)| format!("weight {weight}: found in {:.0} %", 100.0 * found)).collect();
        let (worlds, speakers) = (self.worlds, self.speakers);
        // Of a share of one half, the largest.
        let error = 50.0 / (worlds.max(1) as f64).sqrt();
        write!(
            to,
            "Power, simulated: {worlds} worlds per weight with these accounts, silence and noise, in which every account listens to {speakers} others, judged as these data were. Results, with a standard error of up to {error:.0} points: {}. {}",
            parts.join("; "),
            match self.smallest {
                Some(weight) =>
                    format!("From a weight of {weight} on, listening would be found in at least 80 % of cases."),
                None => "At no weight would it be found in 80 % of cases: a negative result says little.".to_owned(),
            }
        )
    }
}

/// Worlds for each weight that are affordable, by the sizes alone: the result must not depend on the machine.
fn affordable(panel: &Panel, method: &Method) -> Option<usize> {
    let (cells, accounts) = (panel.cells().len() as f64, panel.agents() as f64);
    let fit = match method {
        // A dense covariance at every step of ten rounds.
        Method::StateSpace(_) => cells * accounts * accounts * 2e-8,
        _ => cells * accounts * 1e-8,
    };
    let all = |worlds: usize| (worlds * WEIGHTS.len() + SILENT_WORLDS) as f64;
    WORLDS.into_iter().find(|worlds| (fit + cells * 1e-6) * all(*worlds) <= AFFORDABLE)
}

/// Simulates how strong listening must be to be found in a panel without a graph, by the fit of a model of it. `None` where the
/// panel cannot be tested so: too few steps or accounts that speak, or so many that it would take more than about a minute.
///
/// # Errors
/// [`Error::Stopped`].
pub fn shift_power(panel: &Panel, model: &Model, seed: u64) -> Result<Option<ShiftPower>, Error> {
    let accounts = match select(&[panel]) {
        Ok(Selected { accounts, .. }) => accounts,
        Err(Error::Untestable(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let enough = panel.steps() >= FEWEST_STEPS;
    let Some(worlds) = affordable(panel, &model.method).filter(|_| enough) else { return Ok(None) };
    let worlds_like = WorldsLike::new(panel, accounts);
    let speakers = SPEAKERS.min(worlds_like.accounts.len() - 1);
    let test = CircularShifts::for_model(panel, model, seed);
    let skills = draw_all("simulating data like these", SILENT_WORLDS + WEIGHTS.len() * worlds, |number| {
        let mut rng = numbered(seed ^ STREAM, number);
        let listening = (number as usize).checked_sub(SILENT_WORLDS);
        let weight = listening.map_or(0.0, |number| WEIGHTS[number / worlds]);
        match test.skill_of(&worlds_like.draw(speakers, weight, &mut rng)?) {
            // Nothing that can be fitted is nothing found.
            Err(Error::NotReady { .. } | Error::Undefined { .. }) => Ok(None),
            skill => skill,
        }
    })?;
    let (silent, listening) = skills.split_at(SILENT_WORLDS);
    let silent: Vec<f64> = silent.iter().flatten().map(|skill| skill.against_own_past).collect();
    let supported = |skill: &Option<Skill>| {
        skill.is_some_and(|skill| beats_baselines(&skill) && p_value(skill.against_own_past, &silent) <= LEVEL)
    };
    let found: Vec<bool> = listening.iter().map(supported).collect();
    let share = |worlds: &[bool]| worlds.iter().filter(|found| **found).count() as f64 / worlds.len() as f64;
    let found: Vec<f64> = found.chunks(worlds).map(share).collect();
    Ok(Some(ShiftPower { weights: WEIGHTS.to_vec(), smallest: smallest(&found), found, worlds, speakers }))
}

/// Worlds with the accounts, silence, noise and persistence of a panel.
struct WorldsLike<'a> {
    panel: &'a Panel,
    accounts: Vec<usize>,
    /// By log-ratio and account.
    measured: Vec<Vec<Vec<Measured>>>,
    processes: Vec<Vec<Process>>,
}

impl<'a> WorldsLike<'a> {
    fn new(panel: &'a Panel, accounts: Vec<usize>) -> Self {
        let episodes = panel.by_episode();
        let episodes: Vec<&Panel> = episodes.iter().collect();
        let measured: Vec<Vec<Vec<Measured>>> = (0..panel.ratios())
            .map(|ratio| {
                let noise = noise_of_a_post(&episodes, ratio, &accounts).max(f64::MIN_POSITIVE);
                accounts.iter().map(|&account| measured(&episodes, ratio, account, noise)).collect()
            })
            .collect();
        let processes = measured.iter().map(|accounts| fit_all(accounts)).collect();
        WorldsLike { panel, accounts, measured, processes }
    }

    /// A panel in which every account listens to so many others with this weight; accounts that speak too rarely stay as they
    /// are.
    fn draw(&self, speakers: usize, weight: f64, rng: &mut ChaCha8Rng) -> Result<Panel, Error> {
        let count = self.accounts.len();
        let graph = random_graph(count, speakers, rng)?;
        let groups = vec![0; count];
        let tested = TestedGraph::new(&graph, &groups);
        let (agents, ratios) = (self.panel.agents(), self.panel.ratios());
        let mut cells = self.panel.cells().to_vec();
        for (ratio, (processes, measured)) in self.processes.iter().zip(&self.measured).enumerate() {
            let simulated = world(&tested, processes, measured, weight, rng);
            for (&account, episodes) in self.accounts.iter().zip(&simulated) {
                let values = episodes.iter().flat_map(|episode| episode.values.iter().zip(&episode.precision));
                for (step, (value, precision)) in values.enumerate() {
                    if *precision > 0.0 {
                        cells[(step * ratios + ratio) * agents + account] = *value;
                    }
                }
            }
        }
        Ok(self.panel.with_cells(cells))
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::null_test::significance;
    use crate::learn::state_space::StateSpaceParams;
    use crate::progress::Progress;
    use crate::simulate::noisy::{NoisyWorld, noisy};

    #[test]
    fn every_account_listens_to_others() {
        let graph = random_graph(6, 3, &mut numbered(1, 0)).unwrap();
        for (listener, speakers) in graph.speakers().iter().enumerate() {
            assert!(speakers.len() == 3 && !speakers.contains(&listener), "{listener}: {speakers:?}");
        }
    }

    /// A model of a panel, and whether it is supported by circular shifts.
    fn tested(panel: &Panel, shifts: u64) -> (Model, bool) {
        let params = StateSpaceParams { rounds: 10, sampling: None, ..StateSpaceParams::default() };
        let model = crate::fit(panel, &Method::StateSpace(params), &Progress::default()).unwrap();
        let found = significance(panel, &model, shifts, 5).unwrap();
        let skill = CircularShifts::for_model(panel, &model, 5).skill_of(panel).unwrap();
        let supported = skill.is_some_and(|skill| beats_baselines(&skill)) && found.skill.is_some_and(|p| p <= LEVEL);
        (model, supported)
    }

    fn power(steps: usize, noise: f64) -> ShiftPower {
        let (panel, _) = noisy(&NoisyWorld { agents: 8, steps, noise, ..NoisyWorld::strengths() }).unwrap();
        shift_power(&panel, &tested(&panel, 20).0, 1).unwrap().unwrap()
    }

    #[test]
    fn power_falls_with_noise_and_few_steps() {
        let clear = power(400, 0.1);
        assert_eq!((clear.worlds, clear.speakers, clear.found.len()), (20, 3, 5));
        let noisy = power(40, 5.0);
        assert!(noisy.found.iter().sum::<f64>() < 0.7 * clear.found.iter().sum::<f64>(), "{noisy:?} {clear:?}");
        assert!(noisy.found.iter().all(|share| *share <= 0.3), "{noisy:?}");
        assert_eq!(power(40, 5.0), noisy, "the same seed gives the same worlds");
        let text = clear.to_string();
        assert!(
            text.starts_with("Power, simulated: 20 worlds per weight")
                && text.contains("error of up to 11 points: weight 0.1: found in"),
            "{text}"
        );
    }

    /// Silence of all for a while, and of most in the end, must not look like listening: at the smallest weight little is found,
    /// and what is said of worlds of a known weight is what happens to them.
    #[test]
    fn what_is_simulated_is_what_happens() {
        let (panel, _) = noisy(&NoisyWorld { agents: 8, steps: 120, noise: 0.5, ..NoisyWorld::strengths() }).unwrap();
        let said = |step: usize, agent: usize| !(40..60).contains(&step) && (agent < 3 || step < 80);
        let posts = (0..120 * 8).map(|cell| u32::from(said(cell / 8, cell % 8)) * panel.posts(cell / 8, cell % 8));
        let (roster, times) = (panel.roster().clone(), panel.times().clone());
        let panel = Panel::new(roster, times, panel.cells().to_vec(), Some(posts.collect())).unwrap();
        let like = WorldsLike::new(&panel, (0..8).collect());
        for (place, weight) in [(0, 0.1), (4, 0.8)] {
            let (mut happened, mut said) = (0.0, 0.0);
            for number in 0..12 {
                let world = like.draw(3, weight, &mut numbered(9, number)).unwrap();
                let (model, supported) = tested(&world, 39);
                happened += f64::from(u8::from(supported)) / 12.0;
                if number == 0 {
                    said = shift_power(&world, &model, 2).unwrap().unwrap().found[place];
                }
            }
            // Standard errors of 14 and 11 points at one half.
            assert!((said - happened).abs() < 0.4, "weight {weight}: {said} said, {happened} happened");
            assert!(place > 0 || said <= 0.3, "{said}");
        }
    }

    #[test]
    fn the_smallest_weight_is_one_from_which_all_are_found() {
        assert_eq!(smallest(&[0.1, 0.85, 0.6, 0.8, 1.0]), Some(0.6));
        assert_eq!(smallest(&[0.9, 0.85, 0.8, 0.8, 1.0]), Some(0.1));
        assert_eq!(smallest(&[0.9, 0.85, 0.8, 0.8, 0.7]), None);
    }

    #[test]
    fn large_and_small_panels_are_left_out() {
        let state_space = Method::StateSpace(StateSpaceParams::default());
        let panel = |agents: usize, steps: usize| {
            let roster = crate::Roster::numbered(agents, 2).unwrap();
            Panel::complete(roster, (0..agents * steps).map(|cell| (cell as f64).sin()).collect()).unwrap()
        };
        assert_eq!(affordable(&panel(25, 700), &state_space), Some(20));
        assert_eq!(affordable(&panel(100, 1000), &state_space), None);
        let (short, _) = noisy(&NoisyWorld { agents: 10, steps: 15, ..NoisyWorld::strengths() }).unwrap();
        let model = crate::simulate::simulate(&crate::simulate::WorldParams::default()).unwrap().1;
        assert_eq!(shift_power(&short, &model, 1).unwrap(), None);
    }
}
