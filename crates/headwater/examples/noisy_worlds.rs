//! What the state-space learner finds in worlds of noisy posts, beside the paper's rule of repeating what was last said.
//!
//! `cargo run --release -p headwater --example noisy_worlds [worlds]` (default 40).

#![expect(clippy::print_stdout, reason = "a study prints its table")]

use headwater::learn::state_space::{Learner, StateSpace};
use headwater::simulate::noisy::{NoisyWorld, noisy};
use headwater::{Error, Model, influence};
use rayon::prelude::*;

fn first(model: &Model) -> Result<bool, Error> {
    let u = influence(model)?.centrality.values;
    Ok((1..u.len()).all(|agent| u[0] > u[agent]))
}

fn main() -> Result<(), Error> {
    let worlds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(40);
    let noise: f64 = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(1.5);
    let marks = [1, 5, 10, 20, 40, 60];
    let all: Vec<Vec<[f64; 6]>> = (0..worlds).into_par_iter().map(|seed| {
        let (panel, truth) = noisy(&NoisyWorld { seed: 100 + seed, noise, ..NoisyWorld::default() }).unwrap();
        let mut learner = Learner::new(&panel, &StateSpace { tolerance: 0.0, rounds: 100, pull: std::env::var("PULL").map_or(100.0, |t| t.parse().unwrap()), ..StateSpace::default() }).unwrap();
        let mut rows = Vec::new(); let u = influence(&truth).unwrap().centrality.values;
        while rows.len() < marks.len() {
            let round = learner.round().unwrap();
            if marks.contains(&round.number) {
                let model = learner.model().unwrap();
                let error: f64 = model.combination.to_columns().iter().zip(truth.combination.to_columns()).map(|(a, b)| (a - b).powi(2)).sum();
                rows.push([f64::from(first(&model).unwrap()), model.adaptation, model.diagnostics.smoothing.as_ref().unwrap().noise[0][0], error, rankcor(&u, &influence(&model).unwrap().centrality.values), round.log_likelihood]);
            }
        }
        rows
    }).collect();
    for (index, mark) in marks.iter().enumerate() {
        let mean = |what: usize| all.iter().map(|rows| rows[index][what]).sum::<f64>() / all.len() as f64;
        let sd = |what: usize| (all.iter().map(|rows| (rows[index][what] - mean(what)).powi(2)).sum::<f64>() / all.len() as f64).sqrt();
        println!("round {mark}: hub {:.3} δ {:.4}±{:.4} σ² {:.3} error {:.3} rank {:.3} ll {:.1}", mean(0), mean(1), sd(1), mean(2), mean(3), mean(4), mean(5));
    }
    Ok(())
}

fn rankcor(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |v: &[f64]| { let mut o: Vec<usize> = (0..v.len()).collect(); o.sort_by(|x, y| v[*x].total_cmp(&v[*y])); let mut r = vec![0.0; v.len()]; for (i, k) in o.iter().enumerate() { r[*k] = i as f64; } r };
    let (x, y) = (ranks(a), ranks(b));
    let m = (a.len() as f64 - 1.0) / 2.0;
    let c = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - m) * (y - m)).sum::<f64>();
    c(&x, &y) / c(&x, &x)
}
