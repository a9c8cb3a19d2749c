//! The whitened learner: exact from a few dozen rounds, and honest where it is not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stderr, reason = "measurements are shown")]

use headwater::compare::{Known, compare};
use headwater::learn::whitened::{Whitened, whitened};
use headwater::model::Status;
use headwater::simulate::{Likelihoods, WorldParams, simulate};

struct Outcome {
    error: f64,
    adaptation: f64,
    certified: usize,
    shares: f64,
}

fn study(params: &WorldParams) -> Outcome {
    let (panel, truth) = simulate(params).unwrap();
    let model = whitened(&panel, &Whitened::default()).unwrap();
    let found = compare(&model, &Known::of(&truth).unwrap(), 3).unwrap();
    let certified = model.diagnostics.columns.iter().filter(|column| column.status == Status::Certified).count();
    Outcome {
        error: found.combination_error.unwrap(),
        adaptation: found.adaptation_error.unwrap(),
        certified,
        shares: found.influence_l1.unwrap_or(f64::NAN),
    }
}

fn all(base: &WorldParams, seeds: std::ops::Range<u64>, bound: f64) {
    for seed in seeds {
        let outcome = study(&WorldParams { seed, ..base.clone() });
        eprintln!(
            "seed {seed}: error {:.1e}, δ {:.1e}, {} certified, shares {:.1e}",
            outcome.error, outcome.adaptation, outcome.certified, outcome.shares
        );
        assert!(outcome.error <= bound && outcome.adaptation <= 1e-3, "seed {seed}: {:e}", outcome.error);
    }
}

#[test]
fn released_coins() {
    for steps in [80, 200] {
        let base = WorldParams { likelihoods: Likelihoods::Released, truth: 1, steps, ..WorldParams::default() };
        all(&base, 100..106, 1e-9);
    }
}

#[test]
fn appendix_coins() {
    for truth in [0, 3] {
        all(&WorldParams { steps: 60, truth, ..WorldParams::default() }, 200..204, 1e-9);
    }
}

#[test]
fn two_hypotheses_are_exact_and_certified() {
    let base = WorldParams { steps: 120, hypotheses: 2, ..WorldParams::default() };
    for seed in 300..306 {
        let outcome = study(&WorldParams { seed, ..base.clone() });
        assert!(outcome.error <= 1e-12 && outcome.certified == 20, "{seed}: {:e} {}", outcome.error, outcome.certified);
    }
}

#[test]
fn gaussian_observations_of_few_dimensions() {
    for dimension in 1..=3 {
        let likelihoods = Likelihoods::Gaussian { dimension };
        all(&WorldParams { steps: 200, likelihoods, ..WorldParams::default() }, 400..402, 1e-9);
    }
}
