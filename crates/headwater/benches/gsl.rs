//! The paper's learner against the machine's own matrix speed: `cargo bench --bench gsl`.
//!
//! `block` and `matmul` do the same 4N²BH operations per block, so their ratio is the share of the matmul rate that
//! the kernel reaches; `small` is the paper's size, 20 agents and 5 hypotheses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use headwater::learn::gsl::{Gsl, GslParams, stability_bound};
use headwater::model::{innovation, settled};
use headwater::{Combination, Panel, Roster};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn main() {
    divan::main();
}

const AGENTS: usize = 2000;
const STEPS: usize = 400;

fn panel(agents: usize, hypotheses: usize, steps: usize) -> Panel {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let cells = (0..agents * (hypotheses - 1) * steps).map(|_| rng.random::<f64>() - 0.5).collect();
    Panel::complete(Roster::numbered(agents, hypotheses).unwrap(), cells).unwrap()
}

fn params() -> GslParams {
    GslParams { learning_rate: 1e-3, ..GslParams::default() }
}

fn learn(bencher: Bencher<'_, '_>, panel: &Panel) {
    let learner = Gsl::new(panel.roster().clone(), params()).unwrap();
    bencher
        .counter(ItemsCount::new(panel.steps()))
        .with_inputs(|| learner.clone())
        .bench_refs(|learner| while learner.advance(panel, usize::MAX).unwrap().is_some() {});
}

#[divan::bench(sample_count = 10)]
fn block(bencher: Bencher<'_, '_>) {
    learn(bencher, &panel(AGENTS, 2, STEPS));
}

/// The two products of the block form over as many columns of X as the 349 updates of `block` have, by faer alone.
#[divan::bench(sample_count = 10)]
fn matmul_of_the_same_size(bencher: Bencher<'_, '_>) {
    let a = Mat::from_fn(AGENTS, AGENTS, |row, column| (row * 7 + column) as f64 * 1e-6);
    let x = Mat::from_fn(AGENTS, 128, |row, column| (row + column * 3) as f64 * 1e-4);
    let mut r = Mat::<f64>::zeros(128, AGENTS);
    let mut out = a.clone();
    let updates = STEPS - params().window - 1;
    bencher.counter(ItemsCount::new(STEPS)).bench_local(|| {
        for first in (0..updates).step_by(128) {
            let width = 128.min(updates - first);
            let x = x.as_ref().subcols(0, width);
            let mut r = r.as_mut().subrows_mut(0, width);
            matmul(r.as_mut(), Accum::Replace, x.transpose(), a.as_ref(), 1.0, Par::rayon(0));
            matmul(out.as_mut(), Accum::Add, x, r.as_ref(), 1e-9, Par::rayon(0));
        }
        black_box(&out);
    });
}

#[divan::bench]
fn small(bencher: Bencher<'_, '_>) {
    learn(bencher, &panel(20, 5, 20_000));
}

/// Below and above the border between single steps and blocks.
#[divan::bench(args = [48, 64, 96, 128, 256, 512])]
fn border(bencher: Bencher<'_, '_>, agents: usize) {
    learn(bencher, &panel(agents, 5, 1000));
}

#[divan::bench(sample_count = 10)]
fn bound(bencher: Bencher<'_, '_>) {
    let panel = panel(AGENTS, 2, STEPS);
    bencher.bench(|| stability_bound(&panel, &params(), false).unwrap());
}

#[divan::bench(sample_count = 10)]
fn residual_covariance(bencher: Bencher<'_, '_>) {
    let panel = panel(AGENTS, 2, STEPS);
    let uniform = Combination::uniform(AGENTS);
    bencher.bench(|| innovation(&panel, &uniform, 0.05).unwrap());
}

#[divan::bench(sample_count = 10)]
fn truth(bencher: Bencher<'_, '_>) {
    let panel = panel(AGENTS, 2, STEPS);
    bencher.bench(|| settled(&panel, 0.05));
}

#[divan::bench(sample_count = 10)]
fn stream_model(bencher: Bencher<'_, '_>) {
    let panel = panel(AGENTS, 2, 100);
    let mut learner = Gsl::new(panel.roster().clone(), params()).unwrap();
    while learner.advance(&panel, usize::MAX).unwrap().is_some() {}
    bencher.bench(|| learner.model().unwrap());
}
