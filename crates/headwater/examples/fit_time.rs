//! Seconds the whitened fit takes without the search for symbols: our side of scripts/bench-statsmodels.
//!
//! `cargo run --release -p headwater --example fit_time AGENTS STEPS RATIOS RUNS [PANEL]`: prints one JSON line. The
//! log-ratios go to PANEL as little-endian f64, T × H × N, so that another program can fit the same numbers.

#![expect(clippy::print_stdout, reason = "a timing prints its figures")]

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use headwater::Panel;
use headwater::learn::gsl::Constraint;
use headwater::learn::moments::Moments;
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::simulate::{Likelihoods, WorldParams, simulate};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

/// The least of several timings, in seconds; work that comes to nothing is not timed.
fn best<T>(runs: usize, mut work: impl FnMut() -> Result<T, headwater::Error>) -> Result<f64, headwater::Error> {
    let mut least = f64::INFINITY;
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        black_box(work()?);
        least = least.min(start.elapsed().as_secs_f64());
    }
    Ok(least)
}

/// The products behind the moments by faer alone: Σ x yᵀ, and half as many operations for the symmetric Σ x xᵀ.
fn products(panel: &Panel, out: &mut Mat<f64>) {
    let (size, steps) = (panel.agents() * panel.ratios(), panel.steps());
    let x = MatRef::from_column_major_slice(panel.cells(), size, steps);
    matmul(out.as_mut(), Accum::Replace, x, x.transpose(), 1.0, Par::rayon(0));
    let half = x.subcols(0, steps / 2);
    matmul(out.as_mut(), Accum::Add, half, half.transpose(), 1.0, Par::rayon(0));
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [agents, steps, ratios, runs] =
        [0, 1, 2, 3].map(|index| arguments.get(index).and_then(|text| text.parse().ok()));
    let (Some(agents), Some(steps), Some(ratios), Some(runs)) = (agents, steps, ratios, runs) else {
        return Err("expected AGENTS STEPS RATIOS RUNS [PANEL]".into());
    };
    // The world of benches/whitened.rs.
    let (panel, _) = simulate(&WorldParams {
        agents,
        edge_probability: (20.0 / agents as f64).min(1.0),
        hypotheses: ratios + 1,
        likelihoods: Likelihoods::Gaussian { dimension: 1 },
        steps,
        ..WorldParams::default()
    })?;
    if let Some(path) = arguments.get(4) {
        std::fs::write(path, panel.cells().iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())?;
    }
    let fit = |constraint| {
        let params = WhitenedParams { constraint, symbols: false, ..WhitenedParams::default() };
        best(runs, || whitened(&panel, &params))
    };
    let mut out = Mat::<f64>::zeros(agents * ratios, agents * ratios);
    let moments = best(runs, || Ok(Moments::from_panel(&panel, 1..steps)))?;
    let products = best(runs, || {
        products(&panel, &mut out);
        Ok(())
    })?;
    let (free, simplex) = (fit(Constraint::Free)?, fit(Constraint::Simplex)?);
    println!(r#"{{"moments": {moments}, "products": {products}, "free": {free}, "simplex": {simplex}}}"#);
    Ok(())
}
