//! How well the posterior ranks large crowds of noisy, mostly silent accounts.
//!
//! `cargo run --release -p headwater --example crowd_ranking -- AGENTS STEPS SILENCE NOISE [FIRST_SEED] [WORLDS]`
//! Prints the rank correlation of the centrality with the true one, beside that of PageRank and of the number of listeners.

#![expect(clippy::print_stdout, reason = "a study prints its tables")]

mod ranks;

use headwater::learn::state_space::StateSpaceParams;
use headwater::model::WeightKind;
use headwater::simulate::crowd::{Crowd, crowd};
use headwater::{Method, fit, progress::Progress};
use ranks::rank_correlation;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: f64| arguments.get(place).map_or(Ok(default), |text| text.parse::<f64>());
    let (agents, steps, silence, noise) = (number(0, 1000.0)?, number(1, 300.0)?, number(2, 0.3)?, number(3, 0.5)?);
    let (first, worlds) = (number(4, 6000.0)? as u64, number(5, 3.0)? as u64);
    println!("{agents} accounts, {steps} steps, {:.0} % silent, noise {noise}", 100.0 * silence);
    let mut means = [0.0; 3];
    for seed in first..first + worlds {
        let world = Crowd { agents: agents as usize, steps: steps as usize, silence, noise, seed, ..Crowd::default() };
        let (panel, graph, truth) = crowd(&world)?;
        let clock = Instant::now();
        let params = StateSpaceParams {
            weights: Some(WeightKind::Strengths),
            support: Some(graph.speakers().to_vec()),
            ..StateSpaceParams::default()
        };
        let model = fit(&panel, &Method::StateSpace(params), &Progress::default())?;
        let seconds = clock.elapsed().as_secs_f64();
        let true_centrality = truth.centrality()?.values;
        let found = model.combination.centrality()?.values;
        let heard: Vec<f64> = graph.followers().iter().map(|count| *count as f64).collect();
        let correlations =
            [&found, &graph.pagerank(0.85), &heard].map(|values| rank_correlation(values, &true_centrality));
        means.iter_mut().zip(correlations).for_each(|(mean, value)| *mean += value / worlds as f64);
        let posterior = model.diagnostics.posterior.as_ref();
        let sampled = posterior.map_or(String::from("not sampled"), |posterior| {
            let (low, high) = posterior.adaptation();
            let covered = (0..panel.agents())
                .filter(|&agent| {
                    let (low, high) = posterior.centrality(agent);
                    low <= true_centrality[agent] && true_centrality[agent] <= high
                })
                .count();
            format!(
                "δ in {low:.3} to {high:.3}, centralities covered {:.1} %, {} draws, effective {:.0}, R-hat {:.3}, learned beyond the graph {}",
                100.0 * covered as f64 / panel.agents() as f64,
                posterior.chains * posterior.draws,
                posterior.effective_size,
                posterior.r_hat,
                panel.agents() - posterior.not_learned().len(),
            )
        });
        println!(
            "{seed}: centrality {:.3}, PageRank {:.3}, listeners {:.3}, δ {:.3}, {sampled}, {seconds:.0} s",
            correlations[0], correlations[1], correlations[2], model.adaptation
        );
    }
    println!("mean: centrality {:.3}, PageRank {:.3}, listeners {:.3}", means[0], means[1], means[2]);
    Ok(())
}
