//! How exactly the network is recovered, over many simulated worlds: the table of docs/studies/exact-recovery.md.
//!
//! `cargo run --release -p headwater --example exact_recovery [worlds]` (default 60).

#![expect(clippy::print_stdout, reason = "a study prints its table")]

use headwater::compare::{Comparison, GroundTruth, compare};
use headwater::learn::gsl::{GslParams, gsl};
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::model::Status;
use headwater::simulate::{Likelihoods, WorldParams, simulate};
use headwater::{Error, Model};
use rayon::prelude::*;

struct Case {
    name: &'static str,
    world: WorldParams,
    bound: f64,
}

fn cases() -> Vec<Case> {
    let base = WorldParams::default();
    let released = |steps| WorldParams { likelihoods: Likelihoods::Released, truth: 1, steps, ..base.clone() };
    let appendix = |steps, truth| WorldParams { steps, truth, ..base.clone() };
    let gaussian =
        |dimension| WorldParams { likelihoods: Likelihoods::Gaussian { dimension }, steps: 200, ..base.clone() };
    let hundred = |likelihoods| WorldParams {
        agents: 100,
        edge_probability: 0.05,
        likelihoods,
        steps: 150,
        truth: 1,
        ..base.clone()
    };
    let two = |steps| WorldParams { hypotheses: 2, steps, ..base.clone() };
    let case = |name, world, bound| Case { name, world, bound };
    vec![
        case("released, T = 40", released(40), 1e-9),
        case("released, T = 80", released(80), 1e-9),
        case("released, T = 200", released(200), 1e-9),
        case("appendix, truth 0, T = 60", appendix(60, 0), 1e-9),
        case("appendix, truth 3, T = 60", appendix(60, 3), 1e-9),
        case("two hypotheses, T = 60", two(60), 1e-12),
        case("two hypotheses, T = 120", two(120), 1e-12),
        case("gaussian, dimension 1, T = 200", gaussian(1), 1e-9),
        case("gaussian, dimension 2, T = 200", gaussian(2), 1e-9),
        case("gaussian, dimension 3, T = 200", gaussian(3), 1e-9),
        case("gaussian, dimension 4, T = 200", gaussian(4), f64::INFINITY),
        case("100 agents, appendix, T = 150", hundred(Likelihoods::Appendix), 1e-8),
        case("100 agents, released, T = 150", hundred(Likelihoods::Released), 1e-9),
    ]
}

struct RecoveryOutcome {
    found: Comparison,
    paper: Option<f64>,
    model: Model,
}

fn study(world: &WorldParams) -> Result<RecoveryOutcome, Error> {
    let (panel, truth) = simulate(world)?;
    let model = whitened(&panel, &WhitenedParams::default())?;
    let known = GroundTruth::from_model(&truth)?;
    // The paper's window of 50 needs 52 steps.
    let paper = match gsl(&panel, &GslParams::default()) {
        Ok(model) => compare(&model, &known, 3)?.combination_error,
        Err(_) => None,
    };
    Ok(RecoveryOutcome { found: compare(&model, &known, 3)?, paper, model })
}

fn main() -> Result<(), Error> {
    let worlds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60);
    println!(
        "| world | within the bound | largest error | paper's learner | largest error of δ | certified columns | largest error of shares |"
    );
    println!("|---|---|---|---|---|---|---|");
    for case in cases() {
        let outcomes: Vec<RecoveryOutcome> = (1000..1000 + worlds)
            .into_par_iter()
            .map(|seed| study(&WorldParams { seed, ..case.world.clone() }))
            .collect::<Result<_, _>>()?;
        let largest =
            |value: &dyn Fn(&RecoveryOutcome) -> Option<f64>| outcomes.iter().filter_map(value).fold(0.0f64, f64::max);
        let within =
            outcomes.iter().filter(|outcome| outcome.found.combination_error.is_some_and(|e| e <= case.bound)).count();
        let columns: usize = outcomes.iter().map(|outcome| outcome.model.diagnostics.columns.len()).sum();
        let certified: usize = outcomes
            .iter()
            .flat_map(|outcome| &outcome.model.diagnostics.columns)
            .filter(|column| column.status == Status::Certified)
            .count();
        let bound =
            if case.bound.is_finite() { format!("{within} of {worlds} (≤ {:e})", case.bound) } else { "–".into() };
        let paper = largest(&|outcome| outcome.paper);
        println!(
            "| {} | {bound} | {:.0e} | {} | {:.0e} | {:.1} % | {:.0e} |",
            case.name,
            largest(&|outcome| outcome.found.combination_error),
            if paper > 0.0 { format!("{paper:.1}") } else { "–".into() },
            largest(&|outcome| outcome.found.adaptation_error),
            100.0 * certified as f64 / columns as f64,
            largest(&|outcome| outcome.found.influence_l1),
        );
    }
    Ok(())
}
