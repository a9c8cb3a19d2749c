//! How well edges are found without a graph in hub worlds, and whether their probabilities and intervals hold.
//!
//! `cargo run --release -p headwater --example edges_auc -- NOISE [FIRST_SEED] [WORLDS] [FOLDER] [DRAWS] [AGENTS] [STEPS]`
//! (defaults 700, 20, none, 400 of each chain at most, 25, 1000). Prints a line for each world, a table of probabilities and a summary. With a folder it
//! writes beliefs, edges and areas there, which `scripts/edge-peers` compares with other programs.

#![expect(clippy::print_stdout, reason = "a study prints its tables")]

use headwater::influence::signed_shares;
use headwater::learn::posterior::{self, SamplingParams};
use headwater::learn::state_space::{StateSpaceLearner, StateSpaceParams};
use headwater::simulate::noisy::{NoisyWorld, noisy};
use headwater::{Model, Panel, Ranking};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

/// Area under the curve of scores of edges and of others; ties count half.
fn area(scores: &[(f64, bool)]) -> f64 {
    let (mut sum, mut pairs) = (0.0, 0.0);
    for (edge, _) in scores.iter().filter(|score| score.1) {
        for (other, _) in scores.iter().filter(|score| !score.1) {
            sum += if edge > other { 1.0 } else { 0.5 * f64::from(u8::from(edge == other)) };
            pairs += 1.0;
        }
    }
    sum / pairs
}

#[derive(Default)]
struct Found {
    area: f64,
    quick: f64,
    seconds: f64,
    shares: f64,
    width: f64,
    strongest: f64,
    adaptation: f64,
    estimate: f64,
    first: f64,
    converged: f64,
    /// Probabilities, and whether there is such an edge.
    edges: Vec<(f64, bool)>,
}

fn measure(panel: &Panel, truth: &Model, seed: u64, draws: usize) -> Result<Found, Failure> {
    let agents = panel.agents();
    let pairs = || (0..agents).flat_map(|listener| (0..agents).map(move |speaker| (speaker, listener)));
    let others = || pairs().filter(|(speaker, listener)| speaker != listener);
    let there = |(speaker, listener): (usize, usize)| truth.combination.weight(speaker, listener) > 0.0;
    let sampling = Some(SamplingParams { draws, ..SamplingParams::default() });
    let params = StateSpaceParams { sampling, ..StateSpaceParams::default() };
    let mut learner = StateSpaceLearner::new(panel, &params)?;
    learner.run()?;
    let mut model = learner.model()?;
    let scores: Vec<_> = others().map(|(k, l)| (model.combination.weight(k, l), there((k, l)))).collect();
    let mut found = Found { quick: area(&scores), ..Found::default() };
    let clock = Instant::now();
    posterior::sample(panel, &params, &mut model)?;
    found.seconds = clock.elapsed().as_secs_f64();
    let draws = model.diagnostics.posterior.as_ref().ok_or("not sampled")?;
    let probable = draws.edges.iter().map(|edge| {
        let probability = edge.probability.unwrap_or(f64::NAN);
        (probability, there((edge.speaker, edge.listener)))
    });
    found.edges = probable.collect();
    found.area = area(&found.edges);
    found.converged = f64::from(u8::from(draws.converged()));
    found.estimate = model.adaptation;
    let centrality = truth.combination.centrality()?.values;
    let influence: Vec<f64> = (0..agents).map(|agent| centrality[agent] * truth.evidence.agent(agent)[0]).collect();
    let shares = signed_shares(&influence).unwrap_or_default();
    // Intervals as for users; they are looked at here also where the chains have not converged.
    let mut lenient = model.clone();
    if let Some(draws) = &mut lenient.diagnostics.posterior {
        (draws.effective_size, draws.r_hat) = (f64::INFINITY, 1.0);
    }
    let mut ranking = Ranking::new(&lenient)?;
    ranking.add_posterior(&lenient, 3)?;
    for row in &ranking.agents {
        let agent = lenient.roster.agent(&row.agent)?;
        let (low, high) = (row.share_low.unwrap_or(f64::NAN), row.share_high.unwrap_or(f64::NAN));
        let within = f64::from(u8::from(low - 1e-6 <= shares[agent] && shares[agent] <= high + 1e-6));
        found.shares += within / agents as f64;
        found.width += (high - low) / agents as f64;
        if agent == 0 {
            found.strongest = within;
        }
    }
    found.first =
        f64::from(u8::from(ranking.agents.first().is_some_and(|row| row.agent == lenient.roster.agents()[0])));
    let (low, high) = draws.adaptation();
    found.adaptation = f64::from(u8::from(low <= truth.adaptation && truth.adaptation <= high));
    println!(
        "{seed}: AUC {:.3} (expectation-maximisation {:.3}), shares covered {:.2}, δ {:.3} in {low:.3}–{high:.3}, agent 0 {}, effective draws {:.0}, R-hat {:.3}, {} draws, {:.0} s",
        found.area,
        found.quick,
        found.shares,
        found.estimate,
        found.strongest,
        draws.effective_size,
        draws.r_hat,
        draws.chains * draws.draws,
        found.seconds
    );
    Ok(found)
}

/// Beliefs and edges as CSV, for other programs.
fn write(folder: &Path, name: &str, panel: &Panel, truth: &Model) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    let agents = panel.agents();
    let mut beliefs = String::from("time,agent,log_ratio,posts\n");
    for step in 0..panel.steps() {
        for agent in (0..agents).filter(|&agent| panel.posts(step, agent) > 0) {
            writeln!(beliefs, "{step},{agent},{},{}", panel.cells()[step * agents + agent], panel.posts(step, agent))?;
        }
    }
    let mut edges = String::from("source,target\n");
    for (speaker, listener, _) in truth.combination.edges().filter(|edge| edge.0 != edge.1 && edge.2 > 0.0) {
        writeln!(edges, "{speaker},{listener}")?;
    }
    std::fs::write(folder.join(format!("{name}-beliefs.csv")), beliefs)?;
    Ok(std::fs::write(folder.join(format!("{name}-edges.csv")), edges)?)
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, or: u64| arguments.get(place).map_or(Ok(or), |text| text.parse::<u64>());
    let noise: f64 = arguments.first().map_or(Ok(0.5), |text| text.parse())?;
    let (first, worlds) = (number(1, 700)?, number(2, 20)?);
    let folder = arguments.get(3).map(Path::new);
    let draws = number(4, 400)? as usize;
    let (agents, steps) = (number(5, 25)? as usize, number(6, 1000)? as usize);
    let mut all = Vec::new();
    let mut areas = String::from("noise,seed,auc\n");
    for seed in first..first + worlds {
        let (panel, truth) = noisy(&NoisyWorld { agents, steps, noise, seed, ..NoisyWorld::default() })?;
        if let Some(folder) = folder {
            write(folder, &format!("{noise}-{seed}"), &panel, &truth)?;
        }
        let found = measure(&panel, &truth, seed, draws)?;
        writeln!(areas, "{noise},{seed},{}", found.area)?;
        all.push(found);
    }
    if let Some(folder) = folder {
        std::fs::write(folder.join(format!("headwater-{noise}.csv")), areas)?;
    }
    let count = all.len() as f64;
    let mean = |of: fn(&Found) -> f64| all.iter().map(of).sum::<f64>() / count;
    let middle = mean(|one| one.area);
    let error = (all.iter().map(|one| (one.area - middle).powi(2)).sum::<f64>() / (count * (count - 1.0))).sqrt();
    println!("\nhub worlds, {agents} agents, {steps} bins, noise {noise}, seeds {first} to {}", first + worlds - 1);
    println!("AUC {middle:.3} ± {error:.3}, of expectation-maximisation {:.3}", mean(|one| one.quick));
    println!(
        "90 % intervals cover: shares {:.1} %, the strongest share {:.0} %, δ {:.0} %; mean width of a share {:.4}; mean δ {:.3}; agent 0 first {:.0} %; converged {:.0} %; {:.0} s a world",
        100.0 * mean(|one| one.shares),
        100.0 * mean(|one| one.strongest),
        100.0 * mean(|one| one.adaptation),
        mean(|one| one.width),
        mean(|one| one.estimate),
        100.0 * mean(|one| one.first),
        100.0 * mean(|one| one.converged),
        mean(|one| one.seconds)
    );
    println!("\n| probability | pairs | mean | real |\n|---|---|---|---|");
    for tenth in 0..10 {
        let within = |one: &&(f64, bool)| ((one.0 * 10.0) as usize).min(9) == tenth;
        let here: Vec<(f64, bool)> = all.iter().flat_map(|one| &one.edges).filter(within).copied().collect();
        let pairs = here.len() as f64;
        let (said, real) = (here.iter().map(|one| one.0).sum::<f64>(), here.iter().filter(|one| one.1).count() as f64);
        let from = f64::from(tenth as u32) / 10.0;
        println!("| {from:.1}–{:.1} | {pairs} | {:.2} | {:.2} |", from + 0.1, said / pairs, real / pairs);
    }
    let sure: Vec<bool> = all.iter().flat_map(|one| &one.edges).filter(|one| one.0 >= 0.8).map(|one| one.1).collect();
    println!(
        "of {} called 0.8 or more {:.1} % are real",
        sure.len(),
        100.0 * sure.iter().filter(|real| **real).count() as f64 / sure.len() as f64
    );
    Ok(())
}
