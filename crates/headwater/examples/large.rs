//! A large network with a known support: time, memory and error of the whitened fit, for docs/studies/benchmarks.md.
//!
//! `cargo run --release -p headwater --example large [agents] [speakers] [steps]` (default 100 000, 50, 500).

#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use headwater::Error;
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::model::Status;
use headwater::simulate::{World, WorldParams, run};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Instant;

/// Peak memory so far in GB, where the system tells.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kilobytes| kilobytes / 1e6)
}

fn main() -> Result<(), Error> {
    let argument = |position: usize, default: usize| {
        std::env::args().nth(position).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (agents, speakers, steps) = (argument(1, 100_000), argument(2, 50), argument(3, 500));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut edges = Vec::with_capacity(agents * speakers);
    for listener in 0..agents {
        edges.push((listener, listener, None));
        edges.extend((1..speakers).map(|_| (rng.random_range(0..agents), listener, None)));
    }
    let params = WorldParams { hypotheses: 2, steps, burn_in: 200, allow_reducible: true, ..WorldParams::default() };
    let names = (0..agents).map(|agent| agent.to_string()).collect();
    let mut world = World::on_graph(params, names, &edges)?;
    let panel = run(&mut world)?;
    let truth = world.truth().combination;
    let mut support = vec![Vec::new(); agents];
    edges.iter().for_each(|&(speaker, listener, _)| support[listener].push(speaker));
    drop(edges);
    let before = peak();
    let start = Instant::now();
    let model = whitened(&panel, &WhitenedParams { support: Some(support), ..WhitenedParams::default() })?;
    let seconds = start.elapsed().as_secs_f64();
    let mut error = 0.0;
    for listener in 0..agents {
        let off = |(speaker, weight): (usize, f64)| (weight - model.combination.weight(speaker, listener)).powi(2);
        error += truth.listener(listener).map(off).sum::<f64>();
    }
    let certified = model.diagnostics.columns.iter().filter(|column| column.status == Status::Certified).count();
    println!(
        "{agents} agents, {speakers} speakers each, {steps} steps: {seconds:.0} s, {certified} certified, squared error {error:.1e}"
    );
    if let (Some(before), Some(after)) = (before, peak()) {
        println!("peak memory {before:.1} GB before the fit, {after:.1} GB after it");
    }
    Ok(())
}
