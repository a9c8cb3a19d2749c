//! Coverage of posterior intervals in worlds with a known answer.
//!
//! `cargo run --release -p headwater --example posterior_coverage -- WORLD [FIRST_SEED] [WORLDS]`; worlds: `hub`,
//! `hub-noisy` (noise 1.5), `hub-silent`, `strengths`, `strengths-silent` (60 % silence), `strengths-100` (100 agents).
//! Prints a line for each world and a summary.

#![expect(clippy::print_stdout, reason = "a study prints its tables")]

mod ranks;

use headwater::influence::signed_shares;
use headwater::learn::posterior;
use headwater::learn::state_space::{StateSpaceLearner, StateSpaceParams};
use headwater::model::WeightKind;
use headwater::simulate::noisy::{NoisyWorld, noisy};
use headwater::{Model, Ranking};
use ranks::{positions, rank_correlation};
use std::time::Instant;

/// Rates of posting that leave six bins of ten without a post.
const SILENT: (f64, f64) = (0.05, 1.05);

/// Shares of agents outside the source component are zero up to rounding.
const ROUNDING: f64 = 1e-6;

#[derive(Default)]
struct Covered {
    shares: f64,
    ranks: f64,
    centrality: f64,
    evidence: f64,
    adaptation: f64,
    strongest: f64,
    share_width: f64,
    rank_width: f64,
    correlation: f64,
    first: f64,
    estimate: f64,
    bias: f64,
    seconds: f64,
    converged: f64,
}

fn world(name: &str) -> Option<NoisyWorld> {
    let hub = NoisyWorld { steps: 700, noise: 0.5, ..NoisyWorld::default() };
    let strengths = NoisyWorld { steps: 700, ..NoisyWorld::strengths() };
    Some(match name {
        "hub" => hub,
        "hub-noisy" => NoisyWorld { noise: 1.5, ..hub },
        "hub-silent" => NoisyWorld { rates: SILENT, ..hub },
        "strengths" => strengths,
        "strengths-silent" => NoisyWorld { rates: SILENT, ..strengths },
        "strengths-100" => NoisyWorld { agents: 100, edge_probability: 0.1, steps: 300, ..strengths },
        _ => return None,
    })
}

fn measure(params: &NoisyWorld) -> Result<Covered, headwater::Error> {
    let (panel, truth) = noisy(params)?;
    let agents = params.agents;
    let speakers = |listener| truth.combination.listener(listener).map(|(speaker, _)| speaker).collect();
    let fit = StateSpaceParams {
        weights: Some(WeightKind::Strengths),
        support: Some((0..agents).map(speakers).collect()),
        rounds: 1,
        ..StateSpaceParams::default()
    };
    let clock = Instant::now();
    let mut learner = StateSpaceLearner::new(&panel, &fit)?;
    learner.run()?;
    let mut model: Model = learner.model()?;
    posterior::sample(&panel, &fit, &mut model)?;
    let seconds = clock.elapsed().as_secs_f64();
    let found = model.diagnostics.posterior.as_ref().ok_or(headwater::Error::Stopped)?;
    let centrality = truth.combination.centrality()?.values;
    let evidence: Vec<f64> = (0..agents).map(|agent| truth.evidence.agent(agent)[0]).collect();
    let influence: Vec<f64> = centrality.iter().zip(&evidence).map(|(u, mean)| u * mean).collect();
    let shares = signed_shares(&influence).unwrap_or_default();
    let ranks = positions(&shares);
    let strongest = ranks.iter().position(|rank| *rank == 1).unwrap_or(0);
    let inside =
        |(low, high): (f64, f64), value: f64| f64::from(u8::from(low - ROUNDING <= value && value <= high + ROUNDING));
    let mut covered = Covered { seconds, converged: f64::from(u8::from(found.converged())), ..Covered::default() };
    let intervals = found.intervals(truth.truth.map_or(0, |truth| truth.hypothesis), 1, 3);
    for agent in 0..agents {
        let (low, high) = intervals.share[agent];
        covered.shares += inside((low, high), shares[agent]) / agents as f64;
        covered.share_width += (high - low) / agents as f64;
        let (first, last) = intervals.rank[agent];
        covered.ranks += inside((first as f64, last as f64), ranks[agent] as f64) / agents as f64;
        covered.rank_width += (last - first) as f64 / agents as f64;
        covered.centrality += inside(found.centrality(agent), centrality[agent]) / agents as f64;
        covered.evidence += inside(found.evidence(agent, 0, 1), evidence[agent]) / agents as f64;
    }
    covered.adaptation = inside(found.adaptation(), params.adaptation);
    covered.strongest = inside(intervals.share[strongest], shares[strongest]);
    let ranking = Ranking::new(&model)?;
    let of = |name: &str| ranking.agents.iter().find(|row| row.agent == name);
    let learned: Vec<f64> =
        model.roster.agents().iter().map(|name| of(name).map_or(0.0, |row| row.centrality)).collect();
    covered.correlation = rank_correlation(&learned, &centrality);
    covered.first = f64::from(u8::from(learned.iter().all(|value| *value <= learned[0])));
    covered.estimate = model.adaptation;
    covered.bias = of(&model.roster.agents()[strongest]).and_then(|row| row.share).unwrap_or(0.0) - shares[strongest];
    println!(
        "{}: shares {:.2}, ranks {:.2}, centrality {:.2}, evidence {:.2}, δ {} ({:.3}), strongest {} ({:+.3}), correlation {:.3}, effective draws {:.0}, R-hat {:.3}, {} draws, {seconds:.0} s",
        params.seed,
        covered.shares,
        covered.ranks,
        covered.centrality,
        covered.evidence,
        covered.adaptation,
        covered.estimate,
        covered.strongest,
        covered.bias,
        covered.correlation,
        found.effective_size,
        found.r_hat,
        found.chains * found.draws,
    );
    Ok(covered)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("hub", String::as_str);
    let base = world(name).ok_or("worlds: hub, hub-noisy, hub-silent, strengths, strengths-silent, strengths-100")?;
    let first: u64 = arguments.get(1).map_or(Ok(5000), |text| text.parse())?;
    let worlds: u64 = arguments.get(2).map_or(Ok(40), |text| text.parse())?;
    let mut all = Vec::new();
    for seed in first..first + worlds {
        all.push(measure(&NoisyWorld { seed, ..base.clone() })?);
    }
    let mean = |of: fn(&Covered) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    println!("\n{name}, seeds {first} to {}: 90 % intervals cover", first + worlds - 1);
    println!(
        "shares {:.1} %, ranks {:.1} %, centralities {:.1} %, evidence {:.1} %, δ {:.1} %, strongest share {:.1} %",
        100.0 * mean(|one| one.shares),
        100.0 * mean(|one| one.ranks),
        100.0 * mean(|one| one.centrality),
        100.0 * mean(|one| one.evidence),
        100.0 * mean(|one| one.adaptation),
        100.0 * mean(|one| one.strongest)
    );
    println!(
        "mean width of a share {:.4}, of a rank {:.1}; rank correlation of centrality {:.3}; agent 0 first {:.1} %; mean δ {:.3}; strongest share off by {:+.4}; converged {:.1} %; {:.0} s a world",
        mean(|one| one.share_width),
        mean(|one| one.rank_width),
        mean(|one| one.correlation),
        100.0 * mean(|one| one.first),
        mean(|one| one.estimate),
        mean(|one| one.bias),
        100.0 * mean(|one| one.converged),
        mean(|one| one.seconds)
    );
    Ok(())
}
