//! How often a column is certified that should not be: the table of docs/studies/exact-recovery.md.
//!
//! `cargo run --release -p headwater --example false_certificates [panels]` (default 200 of each kind).

#![expect(clippy::print_stdout, reason = "a study prints its table")]

use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::model::{Likelihood, Status};
use headwater::simulate::{Likelihoods, World, WorldParams, simulate};
use headwater::{Error, Model, Panel};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// A certified column further than this from the truth is wrong.
const EXACT: f64 = 1e-6;

/// Agent and copy, or the agent that never moves; influential ones, so that there is something to mistake.
const ODD: [usize; 2] = [0, 1];

/// Frames before the first one kept, from beliefs of zero.
const BURN_IN: usize = 200;

/// What is wrong with a panel.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    /// The observations have no symbols.
    NoSymbols,
    /// Each agent's series is rotated against the others.
    Rotated,
    /// One agent never changes its mind, and is heard.
    Constant,
    /// One agent says what another says, and both are heard.
    Copy,
}

struct Kind {
    name: &'static str,
    flaw: Flaw,
    hypotheses: usize,
    likelihoods: Likelihoods,
}

fn kinds() -> Vec<Kind> {
    use Likelihoods::{Appendix, Gaussian, Released};
    let kind = |name, flaw, hypotheses, likelihoods| Kind { name, flaw, hypotheses, likelihoods };
    vec![
        kind("Gaussian, two hypotheses", Flaw::NoSymbols, 2, Gaussian { dimension: 1 }),
        kind("rotated, appendix, two hypotheses", Flaw::Rotated, 2, Appendix),
        kind("rotated, appendix, five hypotheses", Flaw::Rotated, 5, Appendix),
        kind("rotated, released, five hypotheses", Flaw::Rotated, 5, Released),
        kind("a constant agent, two hypotheses", Flaw::Constant, 2, Appendix),
        kind("a constant agent, five hypotheses", Flaw::Constant, 5, Appendix),
        kind("an agent and its copy, two hypotheses", Flaw::Copy, 2, Appendix),
        kind("an agent and its copy, five hypotheses", Flaw::Copy, 5, Appendix),
    ]
}

/// Columns of one panel, or of many.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    /// All there are.
    columns: usize,
    /// Those the data cannot determine.
    undetermined: usize,
    /// Those among them that were certified.
    undetermined_certified: usize,
    /// Certified among the others.
    certified: usize,
    /// Certified among the others, and not the truth.
    wrong: usize,
}

impl Counts {
    fn plus(self, other: Counts) -> Counts {
        Counts {
            columns: self.columns + other.columns,
            undetermined: self.undetermined + other.undetermined,
            undetermined_certified: self.undetermined_certified + other.undetermined_certified,
            certified: self.certified + other.certified,
            wrong: self.wrong + other.wrong,
        }
    }
}

fn study(kind: &Kind, seed: u64) -> Result<Counts, Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let agents = rng.random_range(8..=20);
    let params = WorldParams {
        agents,
        edge_probability: 4.0 / agents as f64,
        hypotheses: kind.hypotheses,
        likelihoods: kind.likelihoods,
        truth: usize::from(kind.likelihoods == Likelihoods::Released),
        steps: rng.random_range(60..=200),
        seed,
        ..WorldParams::default()
    };
    let (panel, truth) = match kind.flaw {
        Flaw::NoSymbols => simulate(&params)?,
        Flaw::Rotated => {
            let (panel, truth) = simulate(&params)?;
            (rotated(&panel, &mut rng)?, truth)
        }
        Flaw::Constant | Flaw::Copy => odd(params, kind.flaw, &mut rng)?,
    };
    let model = whitened(&panel, &WhitenedParams::default())?;
    let mut counts = Counts { columns: agents, ..Counts::default() };
    for (listener, column) in model.diagnostics.columns.iter().enumerate() {
        let certified = usize::from(column.status == Status::Certified);
        let hears = |speaker: usize| truth.combination.weight(speaker, listener) > 0.0;
        let undetermined = match kind.flaw {
            Flaw::NoSymbols | Flaw::Rotated => true,
            Flaw::Constant => listener == ODD[0] || hears(ODD[0]),
            Flaw::Copy => ODD.contains(&listener) || ODD.iter().any(|&speaker| hears(speaker)),
        };
        if undetermined {
            counts.undetermined += 1;
            counts.undetermined_certified += certified;
        } else {
            counts.certified += certified;
            counts.wrong += certified * usize::from(off(&model, &truth, listener) > EXACT);
        }
    }
    Ok(counts)
}

fn off(model: &Model, truth: &Model, listener: usize) -> f64 {
    let difference =
        |speaker| model.combination.weight(speaker, listener) - truth.combination.weight(speaker, listener);
    (0..truth.combination.agents()).map(|speaker| difference(speaker).powi(2)).sum::<f64>().sqrt()
}

/// Every agent's series turned by its own offset, evenly spaced in random order: as far apart as so many can be.
fn rotated(panel: &Panel, rng: &mut ChaCha8Rng) -> Result<Panel, Error> {
    let (agents, ratios, steps) = (panel.agents(), panel.ratios(), panel.steps());
    let mut offsets: Vec<usize> = (0..agents).map(|agent| agent * steps / agents).collect();
    offsets.shuffle(rng);
    let cells = (0..panel.cells().len()).map(|cell| {
        let (step, ratio, agent) = (cell / (agents * ratios), cell / agents % ratios, cell % agents);
        panel.frame((step + offsets[agent]) % steps)[(agent, ratio)]
    });
    Panel::complete(panel.roster().clone(), cells.collect())
}

/// A world with a constant agent or a copy that the others do hear, which a change to the finished panel would not give.
fn odd(params: WorldParams, flaw: Flaw, rng: &mut ChaCha8Rng) -> Result<(Panel, Model), Error> {
    let steps = params.steps;
    let truth = World::new(params)?.truth();
    let (agents, ratios) = (truth.combination.agents(), truth.roster.ratios());
    let state = truth.truth.map_or(0, |truth| truth.hypothesis);
    let likelihoods = truth.likelihoods.clone().unwrap_or_default();
    let mut frame = vec![0.0; agents * ratios];
    let mut cells = Vec::with_capacity(steps * frame.len());
    for step in 0..BURN_IN + steps {
        let mut next = vec![0.0; agents * ratios];
        for (listener, likelihood) in likelihoods.iter().enumerate() {
            let Likelihood::Discrete { probabilities } = likelihood else { continue };
            let seen = &probabilities[usize::from(rng.random::<f64>() >= probabilities[0][state])];
            for ratio in 0..ratios {
                let heard: f64 = (truth.combination.listener(listener))
                    .map(|(speaker, weight)| weight * frame[ratio * agents + speaker])
                    .sum();
                let private = (seen[0] / seen[ratio + 1]).ln();
                next[ratio * agents + listener] = (1.0 - truth.adaptation) * heard + truth.adaptation * private;
            }
        }
        for line in next.chunks_exact_mut(agents) {
            match flaw {
                Flaw::Copy => line[ODD[1]] = line[ODD[0]],
                _ => line[ODD[0]] = 0.25,
            }
        }
        frame = next;
        if step >= BURN_IN {
            cells.extend_from_slice(&frame);
        }
    }
    Ok((Panel::complete(truth.roster.clone(), cells)?, truth))
}

fn main() -> Result<(), Error> {
    let panels: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200);
    println!(
        "| {panels} panels each | columns not determined by the data | certified of these | other columns | certified of these | certified but wrong |"
    );
    println!("|---|---|---|---|---|---|");
    for (number, kind) in kinds().iter().enumerate() {
        let first = 20_000 + 1000 * number as u64;
        let all: Vec<Counts> =
            (first..first + panels).into_par_iter().map(|seed| study(kind, seed)).collect::<Result<_, _>>()?;
        let counts = all.into_iter().fold(Counts::default(), Counts::plus);
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            kind.name,
            counts.undetermined,
            counts.undetermined_certified,
            counts.columns - counts.undetermined,
            counts.certified,
            counts.wrong
        );
    }
    Ok(())
}
