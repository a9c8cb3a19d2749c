//! The whitened learner: `cargo bench -p headwater --bench whitened`.
//!
//! `moments` and `matmul` do the same products (D²·T for Σ x yᵀ and half of that for Σ x xᵀ); `free` and `simplex` are
//! whole fits without the search for symbols, N = 1000, T = 2000, H = 1.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on should stop")]

use divan::{Bencher, black_box};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use headwater::learn::gsl::Constraint;
use headwater::learn::moments::Moments;
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::simulate::{Likelihoods, WorldParams, simulate};
use headwater::{Model, Panel};

fn main() {
    divan::main();
}

const AGENTS: usize = 1000;
const STEPS: usize = 2000;

fn world() -> (Panel, Model) {
    let params = WorldParams {
        agents: AGENTS,
        edge_probability: 0.02,
        hypotheses: 2,
        likelihoods: Likelihoods::Gaussian { dimension: 1 },
        steps: STEPS,
        ..WorldParams::default()
    };
    simulate(&params).unwrap()
}

#[divan::bench(sample_count = 5)]
fn moments(bencher: Bencher<'_, '_>) {
    let (panel, _) = world();
    bencher.bench(|| Moments::from_panel(&panel, 1..STEPS));
}

#[divan::bench(sample_count = 5)]
fn matmul_of_the_same_size(bencher: Bencher<'_, '_>) {
    let (panel, _) = world();
    let x = MatRef::from_column_major_slice(panel.cells(), AGENTS, STEPS);
    let mut out = Mat::<f64>::zeros(AGENTS, AGENTS);
    bencher.bench_local(|| {
        matmul(out.as_mut(), Accum::Replace, x, x.transpose(), 1.0, Par::rayon(0));
        let half = x.subcols(0, STEPS / 2);
        matmul(out.as_mut(), Accum::Add, half, half.transpose(), 1.0, Par::rayon(0));
        black_box(&out);
    });
}

fn fit(bencher: Bencher<'_, '_>, constraint: Constraint) {
    let (panel, _) = world();
    let params = WhitenedParams { constraint, symbols: false, ..WhitenedParams::default() };
    bencher.bench(|| whitened(&panel, &params).unwrap());
}

#[divan::bench(sample_count = 3)]
fn free(bencher: Bencher<'_, '_>) {
    fit(bencher, Constraint::Free);
}

#[divan::bench(sample_count = 1)]
fn simplex(bencher: Bencher<'_, '_>) {
    fit(bencher, Constraint::Simplex);
}
