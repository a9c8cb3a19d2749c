use super::*;
use faer::Mat;
use faer::linalg::solvers::{DenseSolveCore, Solve};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Three agents, two episodes, some silence; lanes differ.
fn case() -> (Support, Posts, Vec<f64>, MarginalParams) {
    let support = Support::new(&[vec![1, 2], vec![0], vec![2]]);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut uniform = |low: f64, high: f64| low + (high - low) * rng.random::<f64>();
    let (mut starts, mut observations) = (vec![0], Vec::new());
    for _ in 0..9 {
        for agent in 0..3 {
            if uniform(0.0, 1.0) < 0.6 {
                observations.push(Observation {
                    agent,
                    value: uniform(-2.0, 2.0),
                    share: 1.0 / uniform(1.0, 4.0).floor(),
                });
            }
        }
        starts.push(observations.len());
    }
    let posts = Posts { agents: 3, starts, observations, episodes: vec![0, 0, 0, 0, 0, 1, 1, 1, 1] };
    let mut lanes = |low: f64, high: f64, count: usize| -> Vec<Lane> {
        (0..count).map(|_| std::array::from_fn(|_| uniform(low, high))).collect()
    };
    let params = MarginalParams {
        weights: lanes(0.1, 0.4, support.edges()),
        news: lanes(0.2, 1.0, 3),
        noise: lanes(0.3, 0.8, 1)[0],
        levels: lanes(-0.5, 0.5, 6),
    };
    (support, posts, vec![0.7, 1.1, 0.4], params)
}

/// The density of all observations, from their joint covariance written out.
fn joint(support: &Support, posts: &Posts, first: &[f64], params: &MarginalParams, lane: usize) -> f64 {
    let (agents, steps) = (support.agents(), posts.steps());
    let mut weights = Mat::<f64>::zeros(agents, agents);
    for listener in 0..agents {
        for edge in support.of(listener) {
            weights[(support.speakers[edge] as usize, listener)] = params.weights[edge][lane];
        }
    }
    // Every hidden belief as a sum of independent sources: first beliefs and news.
    let size = agents * steps;
    let mut sources = Mat::<f64>::zeros(size, size);
    for step in 0..steps {
        for agent in 0..agents {
            let own = step * agents + agent;
            if posts.begins(step) {
                sources[(own, own)] = first[agent].sqrt();
                continue;
            }
            for speaker in 0..agents {
                for source in 0..size {
                    let passed = weights[(speaker, agent)] * sources[((step - 1) * agents + speaker, source)];
                    sources[(own, source)] += passed;
                }
            }
            sources[(own, own)] = params.news[agent][lane].sqrt();
        }
    }
    let place = |number: usize| {
        let step = posts.starts.partition_point(|start| *start <= number) - 1;
        (step, posts.observations[number].agent as usize)
    };
    let count = posts.observations.len();
    let covariance = Mat::from_fn(count, count, |a, b| {
        let ((s, i), (t, j)) = (place(a), place(b));
        let shared: f64 =
            (0..size).map(|source| sources[(s * agents + i, source)] * sources[(t * agents + j, source)]).sum();
        shared + if a == b { params.noise[lane] * posts.observations[a].share } else { 0.0 }
    });
    let errors = Mat::from_fn(count, 1, |number, _| {
        let (step, agent) = place(number);
        posts.observations[number].value - params.levels[posts.episodes[step] as usize * agents + agent][lane]
    });
    let factor = covariance.llt(faer::Side::Lower).unwrap();
    let determinant: f64 = (0..count).map(|row| 2.0 * factor.L()[(row, row)].ln()).sum();
    let square = (errors.transpose() * factor.solve(&errors))[(0, 0)];
    let _ = factor.inverse();
    -0.5 * (determinant + square + count as f64 * LOG_TWO_PI)
}

#[test]
fn the_likelihood_is_that_of_the_joint_gaussian() {
    let (support, posts, first, params) = case();
    let (value, _) = log_likelihood(&support, &posts, &first, &params);
    for lane in 0..LANES {
        let expected = joint(&support, &posts, &first, &params, lane);
        assert!((value[lane] - expected).abs() < 1e-10, "{lane}: {} {expected}", value[lane]);
    }
}

#[test]
fn the_gradient_is_that_of_the_likelihood() {
    let (support, posts, first, params) = case();
    let (_, gradient) = log_likelihood(&support, &posts, &first, &params);
    let numbers = |params: &MarginalParams| -> Vec<Lane> {
        let all = params.weights.iter().chain(&params.news).chain(&params.levels).copied();
        all.chain([params.noise]).collect()
    };
    let slopes = numbers(&gradient);
    for place in 0..slopes.len() {
        let moved = |by: f64| {
            let mut params = params.clone();
            let (edges, agents, levels) = (params.weights.len(), params.news.len(), params.levels.len());
            let lane = match place {
                _ if place < edges => &mut params.weights[place],
                _ if place < edges + agents => &mut params.news[place - edges],
                _ if place < edges + agents + levels => &mut params.levels[place - edges - agents],
                _ => &mut params.noise,
            };
            lane.iter_mut().for_each(|value| *value += by);
            log_likelihood(&support, &posts, &first, &params).0
        };
        let (up, down) = (moved(1e-5), moved(-1e-5));
        for lane in 0..LANES {
            let slope = (up[lane] - down[lane]) / 2e-5;
            // Central differences of 1e-5 are good to about 1e-10 of the third derivative, and to rounding.
            assert!((slope - slopes[place][lane]).abs() < 1e-7, "{place}, {lane}: {slope} {}", slopes[place][lane]);
        }
    }
}

#[test]
fn segments_do_not_change_the_gradient() {
    let (support, posts, first, params) = case();
    let (value, gradient) = log_likelihood(&support, &posts, &first, &params);
    for segment in [1, 2, 4] {
        let mut other = MarginalParams::zeros(&support, &posts);
        let mut filter = Filter {
            support: &support,
            posts: &posts,
            first: &first,
            params: &params,
            mean: vec![splat(0.0); 3],
            covariance: vec![splat(0.0); 9],
            scratch: vec![splat(0.0); 9],
            log_likelihood: splat(0.0),
        };
        let again = WithGradient { filter: &mut filter, gradient: &mut other, segment }.call();
        // The instructions differ with what the processor has, so the last digits may.
        assert!(value.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-12));
        let close =
            |a: &[Lane], b: &[Lane]| a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-11);
        assert!(close(&gradient.weights, &other.weights) && close(&gradient.levels, &other.levels));
    }
}
