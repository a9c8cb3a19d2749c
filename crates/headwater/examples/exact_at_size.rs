//! Time, certified columns and error of the default fit of complete beliefs of many agents, for docs/studies/benchmarks.md.
//!
//! `cargo run --release -p headwater --example exact_at_size AGENTS STEPS [coins|gaussian] [SEED]`: two hypotheses, edge
//! probability 20/N; the forecast of held-out steps is part of the time.

#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use headwater::learn::whitened::WhitenedParams;
use headwater::model::Status;
use headwater::progress::Progress;
use headwater::simulate::{Likelihoods, WorldParams, simulate};
use headwater::{Method, fit};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |position: usize| arguments.get(position).and_then(|text| text.parse::<usize>().ok());
    let (Some(agents), Some(steps)) = (number(0), number(1)) else {
        return Err("expected AGENTS STEPS [coins|gaussian] [SEED]".into());
    };
    let gaussian = arguments.get(2).is_some_and(|kind| kind == "gaussian");
    let (panel, truth) = simulate(&WorldParams {
        agents,
        edge_probability: (20.0 / agents as f64).min(1.0),
        hypotheses: 2,
        likelihoods: if gaussian { Likelihoods::Gaussian { dimension: 1 } } else { Likelihoods::Appendix },
        steps,
        seed: number(3).unwrap_or(21) as u64,
        ..WorldParams::default()
    })?;
    let start = Instant::now();
    let model = fit(&panel, &Method::Whitened(WhitenedParams::default()), &Progress::default())?;
    let seconds = start.elapsed().as_secs_f64();
    let certified = model.diagnostics.columns.iter().filter(|column| column.status == Status::Certified).count();
    let (met, wanted) = (model.combination.to_columns(), truth.combination.to_columns());
    let error: f64 = met.iter().zip(wanted).map(|(met, wanted)| (met - wanted).powi(2)).sum();
    println!(
        "{agents} agents, {steps} steps: {seconds:.1} s, {certified} columns certified, squared error {error:.2e}"
    );
    model.diagnostics.warnings.iter().for_each(|warning| println!("  {warning}"));
    Ok(())
}
