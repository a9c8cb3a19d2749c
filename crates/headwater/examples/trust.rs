//! How far the measures of trust can be trusted: coverage of the intervals, false alarms of the null.
//!
//! `cargo run --release -p headwater --example trust [worlds]` (default 200).

#![expect(clippy::print_stdout, reason = "a study prints its table")]

use headwater::evaluate::{Bootstrap, CircularShifts};
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::simulate::{Likelihoods, WorldParams, simulate};
use headwater::{Error, Method, Panel, influence};
use rayon::prelude::*;

const RESAMPLES: u64 = 200;

fn world(steps: usize, seed: u64) -> WorldParams {
    WorldParams {
        agents: 8,
        edge_probability: 0.4,
        hypotheses: 2,
        likelihoods: Likelihoods::Gaussian { dimension: 4 },
        steps,
        seed,
        ..WorldParams::default()
    }
}

/// Shares covered, ranks covered, mean width of the share and rank intervals.
fn coverage(steps: usize, seed: u64) -> Result<[f64; 4], Error> {
    let (panel, truth) = simulate(&world(steps, seed))?;
    let params = WhitenedParams::default();
    let model = whitened(&panel, &params)?;
    let bootstrap = Bootstrap::new(&panel, &model, seed)?;
    let draws: Vec<_> = (0..RESAMPLES).map(|number| bootstrap.draw(number)).collect::<Result<_, _>>()?;
    let intervals = bootstrap.intervals(&draws, 3)?;
    let known = influence(&truth)?;
    let shares = known.share.clone().unwrap_or_default();
    let mut rank = [0; 8];
    known.ranking().into_iter().enumerate().for_each(|(position, agent)| rank[agent] = position + 1);
    let mut out = [0.0; 4];
    for agent in 0..8 {
        let ((low, high), (first, last)) = (intervals.share[agent], intervals.rank[agent]);
        out[0] += f64::from(low <= shares[agent] && shares[agent] <= high) / 8.0;
        out[1] += f64::from(first <= rank[agent] && rank[agent] <= last) / 8.0;
        out[2] += (high - low) / 8.0;
        out[3] += (last - first) as f64 / 8.0;
    }
    Ok(out)
}

/// Share of agents called significant at 5 % among series that were rotated against each other.
fn false_alarms(seed: u64) -> Result<f64, Error> {
    let (panel, _) = simulate(&world(150, seed))?;
    let (agents, steps) = (panel.agents(), panel.steps());
    let turned = (0..panel.cells().len()).map(|cell| {
        let (step, agent) = (cell / agents, cell % agents);
        panel.cells()[(step + (agent + 1) * 17 + seed as usize * agent) % steps * agents + agent]
    });
    let turned = Panel::complete(panel.roster().clone(), turned.collect())?;
    let rotation = CircularShifts::new(&turned, &Method::Whitened(WhitenedParams::default()), seed);
    let draws: Vec<_> = (0..RESAMPLES / 2).map(|number| rotation.draw(number)).collect::<Result<_, _>>()?;
    let found = CircularShifts::compare(&rotation.observed()?, &draws);
    Ok(found.agents.iter().filter(|p| **p <= 0.05).count() as f64 / agents as f64)
}

fn main() -> Result<(), Error> {
    let worlds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200);
    println!(
        "| 8 agents, Gaussian of dimension 4, two hypotheses | shares covered | ranks covered | mean width of shares | mean width of ranks |"
    );
    println!("|---|---|---|---|---|");
    for steps in [150, 300] {
        let all: Vec<[f64; 4]> =
            (0..worlds).into_par_iter().map(|seed| coverage(steps, 5000 + seed)).collect::<Result<_, _>>()?;
        let mean = |index: usize| all.iter().map(|row| row[index]).sum::<f64>() / all.len() as f64;
        println!(
            "| T = {steps} | {:.1} % | {:.1} % | {:.3} | {:.2} |",
            100.0 * mean(0),
            100.0 * mean(1),
            mean(2),
            mean(3)
        );
    }
    let alarms: Vec<f64> =
        (0..worlds).into_par_iter().map(|seed| false_alarms(9000 + seed)).collect::<Result<_, _>>()?;
    let share = alarms.iter().sum::<f64>() / alarms.len() as f64;
    println!("\nRotated data, {worlds} cases: {:.1} % of the agents called significant at 5 %.", 100.0 * share);
    Ok(())
}
