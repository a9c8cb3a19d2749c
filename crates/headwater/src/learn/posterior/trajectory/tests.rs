//! Against the dense Kalman smoother, and against the joint Gaussian of all beliefs and posts written out.

use super::*;
use crate::learn::kalman::Dynamics;
use crate::simulate::noisy::{AttentionShape, NoisyWorld, noisy};
use faer::Mat;
use faer::prelude::Solve;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};

/// A small world: random weights with some zeros, post precisions with silence.
fn world(agents: usize, steps: usize, silence: f64, seed: u64) -> (SparseDynamics, Observations) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let listeners: Vec<Vec<(usize, f64)>> = (0..agents)
        .map(|listener| {
            let heard = |speaker: usize, rng: &mut ChaCha8Rng| speaker == listener || rng.random::<f64>() < 0.5;
            let speakers: Vec<usize> = (0..agents).filter(|&speaker| heard(speaker, &mut rng)).collect();
            let raw: Vec<f64> = speakers.iter().map(|_| rng.random::<f64>() + 0.05).collect();
            let sum: f64 = raw.iter().sum();
            speakers.into_iter().zip(raw).map(|(speaker, weight)| (speaker, 0.9 * weight / sum)).collect()
        })
        .collect();
    let mut dynamics = SparseDynamics::new(&listeners).unwrap();
    let mut uniform = |low: f64, high: f64| low + (high - low) * rng.random::<f64>();
    for agent in 0..agents {
        dynamics.drift[agent] = uniform(-0.2, 0.4);
        dynamics.innovation[agent] = uniform(0.05, 0.5);
        dynamics.first_mean[agent] = uniform(-1.0, 1.0);
        dynamics.first_variance[agent] = uniform(0.5, 2.0);
    }
    let means = (0..steps * agents).map(|_| uniform(-2.0, 2.0)).collect();
    let precisions =
        (0..steps * agents).map(|_| if uniform(0.0, 1.0) < silence { 0.0 } else { uniform(0.2, 8.0) }).collect();
    (dynamics, Observations::new(agents, means, precisions).unwrap())
}

/// Mean and covariance of the trajectory by conditioning its joint Gaussian, built forward in time, on the posts.
fn written_out(dynamics: &SparseDynamics, posts: &Observations) -> (Vec<f64>, Mat<f64>) {
    let (agents, steps) = (dynamics.agents(), posts.steps());
    let size = agents * steps;
    // Each belief as a linear function of the first beliefs and innovations.
    let mut mean = vec![0.0; size];
    let mut loading = Mat::<f64>::zeros(size, size);
    for agent in 0..agents {
        mean[agent] = dynamics.first_mean[agent];
        loading[(agent, agent)] = dynamics.first_variance[agent].sqrt();
    }
    for step in 1..steps {
        for listener in 0..agents {
            let row = step * agents + listener;
            mean[row] = dynamics.drift[listener];
            loading[(row, row)] = dynamics.innovation[listener].sqrt();
            for edge in dynamics.starts[listener]..dynamics.starts[listener + 1] {
                let from = (step - 1) * agents + dynamics.speakers[edge] as usize;
                mean[row] += dynamics.weights[edge] * mean[from];
                for column in 0..size {
                    let carried = dynamics.weights[edge] * loading[(from, column)];
                    loading[(row, column)] += carried;
                }
            }
        }
    }
    let covariance = &loading * loading.transpose();
    let seen: Vec<usize> = (0..size).filter(|&cell| posts.precisions[cell] > 0.0).collect();
    let met = Mat::from_fn(seen.len(), seen.len(), |row, column| {
        let noise = if row == column { 1.0 / posts.precisions[seen[row]] } else { 0.0 };
        covariance[(seen[row], seen[column])] + noise
    });
    let across = Mat::from_fn(seen.len(), size, |row, column| covariance[(seen[row], column)]);
    let llt = met.llt(faer::Side::Lower).unwrap();
    let gain = llt.solve(&across);
    let surprise = Mat::from_fn(seen.len(), 1, |row, _| posts.means[seen[row]] - mean[seen[row]]);
    let moved = gain.transpose() * surprise;
    (
        mean.iter().enumerate().map(|(cell, mean)| mean + moved[(cell, 0)]).collect(),
        &covariance - across.transpose() * &gain,
    )
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_mean_is_that_of_the_joint_gaussian(
        agents in 1usize..5, steps in 1usize..7, silence in 0.0f64..1.0, seed in 0u64..1000,
    ) {
        let (dynamics, posts) = world(agents, steps, silence, seed);
        let mean = Trajectory::new(&dynamics, &posts).unwrap().mean(1e-13).unwrap();
        let (wanted, _) = written_out(&dynamics, &posts);
        prop_assert!(largest_difference(&mean, &wanted) < 1e-8);
    }
}

#[test]
fn draws_have_the_moments_of_the_joint_gaussian() {
    let (dynamics, posts) = world(3, 4, 0.4, 5);
    let (mean, covariance) = written_out(&dynamics, &posts);
    let mut trajectory = Trajectory::new(&dynamics, &posts).unwrap();
    let draws: Vec<Vec<f64>> = (0..20_000).map(|seed| trajectory.draw(seed, 1e-8).unwrap()).collect();
    let count = draws.len() as f64;
    let size = mean.len();
    for row in 0..size {
        let sd = covariance[(row, row)].sqrt();
        let met = draws.iter().map(|draw| draw[row]).sum::<f64>() / count;
        assert!((met - mean[row]).abs() < 4.5 * sd / count.sqrt(), "mean of {row}: {met} {}", mean[row]);
        for column in 0..=row {
            let products = draws.iter().map(|draw| (draw[row] - mean[row]) * (draw[column] - mean[column]));
            let (met, wanted) = (products.sum::<f64>() / count, covariance[(row, column)]);
            // Standard error of a covariance of normal numbers.
            let error = ((covariance[(row, row)] * covariance[(column, column)] + wanted * wanted) / count).sqrt();
            assert!((met - wanted).abs() < 4.5 * error, "covariance of {row}, {column}: {met} {wanted} ± {error}");
        }
    }
}

#[test]
fn the_mean_is_that_of_the_dense_smoother() {
    for (attention, noise) in [(AttentionShape::Hub, 1.5), (AttentionShape::Strengths, 0.5)] {
        let base = if attention == AttentionShape::Hub { NoisyWorld::default() } else { NoisyWorld::strengths() };
        let (panel, truth) = noisy(&NoisyWorld { agents: 12, steps: 150, noise, seed: 3, ..base }).unwrap();
        let agents = panel.agents();
        let listeners: Vec<Vec<(usize, f64)>> = (0..agents)
            .map(|listener| {
                let weight = |speaker| (1.0 - truth.adaptation) * truth.combination.weight(speaker, listener);
                (0..agents).map(|speaker| (speaker, weight(speaker))).filter(|(_, weight)| *weight > 0.0).collect()
            })
            .collect();
        let mut sparse = SparseDynamics::new(&listeners).unwrap();
        for agent in 0..agents {
            sparse.drift[agent] = 0.01 * agent as f64;
            sparse.innovation[agent] = 0.02 + 0.003 * agent as f64;
            sparse.first_mean[agent] = 0.5;
            sparse.first_variance[agent] = 0.8;
        }
        let variance = noise * noise;
        let precisions = (0..panel.steps())
            .flat_map(|step| (0..agents).map(move |agent| (step, agent)))
            .map(|(step, agent)| f64::from(panel.posts(step, agent)) / variance)
            .collect();
        let posts = Observations::new(agents, panel.cells().to_vec(), precisions).unwrap();
        let mut trajectory = Trajectory::new(&sparse, &posts).unwrap();
        let mean = trajectory.mean(1e-12).unwrap();
        let dense = Dynamics {
            agents,
            ratios: 1,
            hears: Mat::from_fn(agents, agents, |speaker, listener| {
                (1.0 - truth.adaptation) * truth.combination.weight(speaker, listener)
            }),
            drift: sparse.drift.clone(),
            innovation: sparse.innovation.iter().map(|q| Mat::from_fn(1, 1, |_, _| *q)).collect(),
            noise: Mat::from_fn(1, 1, |_, _| variance),
            start: sparse.first_mean.clone(),
            spread: sparse.first_variance.clone(),
            trend_loading: None,
        };
        let filtered = dense.filter(&panel, panel.steps(), true).unwrap();
        let smoothed = dense.smooth(&panel, &filtered, std::slice::from_ref(&(1..panel.steps()))).unwrap();
        let difference = largest_difference(&mean, &smoothed.frames);
        assert!(difference < 1e-8, "{attention:?}: {difference}");
    }
}

#[test]
fn few_iterations_suffice_at_any_silence() {
    for silence in [0.0, 0.5, 0.9] {
        let (dynamics, posts) = world(60, 200, silence, 11);
        let mut trajectory = Trajectory::new(&dynamics, &posts).unwrap();
        trajectory.mean(1e-6).unwrap();
        assert!(trajectory.iterations() <= 25, "{silence}: {}", trajectory.iterations());
    }
}

#[test]
fn wrong_numbers_are_refused() {
    assert!(SparseDynamics::new(&[vec![(1, 0.5)]]).is_err());
    assert!(SparseDynamics::new(&[vec![(0, 1.0)]]).is_err());
    assert!(SparseDynamics::new(&[vec![(0, f64::NAN)]]).is_err());
    let mut dynamics = SparseDynamics::new(&[vec![(0, 0.5)], vec![]]).unwrap();
    assert!(Observations::new(2, vec![0.0; 3], vec![0.0; 3]).is_err());
    assert!(Observations::new(2, vec![0.0; 4], vec![-1.0; 4]).is_err());
    assert!(Observations::new(2, vec![f64::NAN; 4], vec![1.0; 4]).is_err());
    let posts = Observations::new(2, vec![f64::NAN; 4], vec![0.0; 4]).unwrap();
    assert!(Trajectory::new(&dynamics, &posts).unwrap().mean(1e-6).unwrap().iter().all(|value| *value == 0.0));
    assert!(Trajectory::new(&dynamics, &posts).unwrap().mean(0.0).is_err());
    dynamics.innovation[1] = 0.0;
    assert!(Trajectory::new(&dynamics, &posts).is_err());
}
