use super::chain::{MEANS, STRENGTHS, inclusion_prior};
use super::pairs::{Quadratic, Slab, move_pairs, truncated};
use super::path::{self, Seen, TwoColumns, Whitened};
use super::*;
use crate::learn::cholesky::Cholesky;
use crate::learn::posterior::target::{DRIFT_FREEDOM, OF_NEWS};
use crate::simulate::noisy::{NoisyWorld, noisy};
use faer::Mat;
use rand_distr::{Beta, ChiSquared, Distribution, Gamma, StandardNormal};

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

#[test]
fn truncated_normal_numbers_have_their_mean() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (a, b) in [(-0.4, 0.9), (-3.0, 2.0), (0.5, 0.6), (2.0, 9.0), (-8.0, -5.0), (-1.0, 30.0)] {
        // Midpoint rule on 100 000 cells.
        let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
        for cell in 0..100_000 {
            let x: f64 = a + (b - a) * (f64::from(cell) + 0.5) / 1e5;
            let density = (-0.5 * x * x).exp();
            mass += density;
            first += density * x;
            second += density * x * x;
        }
        let (mean, variance) = (first / mass, second / mass - (first / mass).powi(2));
        let found = (0..20_000).map(|_| truncated(a, b, &mut rng)).sum::<f64>() / 2e4;
        let z = (found - mean) / (variance / 2e4).sqrt();
        assert!(z.abs() < 4.0, "[{a}, {b}]: {found}, not {mean}: {z} standard errors");
    }
}

#[test]
fn truncated_normal_numbers_far_out_come_at_once() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (a, b) in
        [(1e7, 2e7), (1e9, 1e9 + 1.0), (1e200, 1e201), (1e200, f64::INFINITY), (-1e200, -1e199), (-1e200, 1e-9)]
    {
        let found = truncated(a, b, &mut rng);
        assert!((a..=b).contains(&found), "{found} is not between {a} and {b}");
    }
    let nan = f64::NAN;
    for (a, b) in [(nan, 1.0), (0.0, nan), (2.0, 1.0), (f64::INFINITY, f64::INFINITY)] {
        assert!(truncated(a, b, &mut rng).is_nan(), "between {a} and {b}");
    }
}

/// Probabilities and means of spike and slab by moves of pairs, beside sums over all supports and a grid of weights.
#[test]
fn moves_of_pairs_keep_the_density_of_the_weights() {
    const GRID: usize = 400;
    let quadratic =
        Quadratic { gram: vec![14.0, 3.0, -2.0, 3.0, 9.0, 4.0, -2.0, 4.0, 11.0], slope: vec![6.0, 5.0, 3.5] };
    let log_odds = [0.0, -0.4, 0.3];
    let value = |weights: [f64; 3]| -> f64 {
        let mut value = 0.0;
        for i in 0..3 {
            value += quadratic.slope[i] * weights[i];
            for j in 0..3 {
                value -= 0.5 * weights[i] * quadratic.gram[3 * i + j] * weights[j];
            }
        }
        value
    };
    for concentration in [1.0, 2.5] {
        let al: f64 = concentration;
        // Of two weights that are not zero x^(α−1)(1−x)^(α−1) Γ(2α)/Γ(α)², of three likewise.
        let gamma = statrs::function::gamma::gamma;
        let (two, three) = (gamma(2.0 * al) / gamma(al).powi(2), gamma(3.0 * al) / gamma(al).powi(3));
        let mut sums = [0.0; 6];
        let mut add = |weights: [f64; 3], mass: f64| {
            sums[0] += mass;
            for place in 1..3 {
                sums[place] += mass * f64::from(u8::from(weights[place] > 0.0));
                sums[place + 2] += mass * weights[place];
            }
            sums[5] += mass * weights[0] * weights[1];
        };
        add([1.0, 0.0, 0.0], value([1.0, 0.0, 0.0]).exp());
        for cell in 0..GRID {
            let x = (cell as f64 + 0.5) / GRID as f64;
            for place in 1..3 {
                let mut weights = [1.0 - x, 0.0, 0.0];
                weights[place] = x;
                let slab = two * (x * (1.0 - x)).powf(al - 1.0);
                add(weights, slab * (value(weights) + log_odds[place]).exp() / GRID as f64);
            }
            for other in 0..GRID {
                let y = (other as f64 + 0.5) / GRID as f64 * (1.0 - x);
                let weights = [1.0 - x - y, x, y];
                let slab = three * (x * y * (1.0 - x - y)).powf(al - 1.0) * (1.0 - x);
                let both = log_odds[1] + log_odds[2];
                add(weights, slab * (value(weights) + both).exp() / (GRID * GRID) as f64);
            }
        }
        let slab = Slab { log_odds: &log_odds, concentration, always: Some(0), beside: 0 };
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut weights = [0.5, 0.5, 0.0];
        // Means of batches are nearly independent.
        const BATCHES: usize = 100;
        let mut batches = Vec::new();
        for _ in 0..BATCHES {
            let mut found = [0.0; 5];
            for _ in 0..500 {
                move_pairs(&quadratic, slab, &mut weights, 4, &mut rng);
                for place in 1..3 {
                    found[place - 1] += f64::from(u8::from(weights[place] > 0.0)) / 500.0;
                    found[place + 1] += weights[place] / 500.0;
                }
                found[4] += weights[0] * weights[1] / 500.0;
            }
            batches.push(found);
        }
        for which in 0..5 {
            let mean = batches.iter().map(|batch| batch[which]).sum::<f64>() / BATCHES as f64;
            let square = batches.iter().map(|batch| (batch[which] - mean).powi(2)).sum::<f64>();
            let error = (square / (BATCHES * (BATCHES - 1)) as f64).sqrt();
            let wanted = sums[which + 1] / sums[0];
            // The grid is good to about 1e-4.
            assert!((mean - wanted).abs() < 4.0 * error + 2e-4, "α {al}, {which}: {mean} ± {error}, not {wanted}");
        }
    }
}

/// What is seen of an agent in five steps, one of them silent, and two series it may hear.
fn small_path() -> (Seen, Vec<f64>) {
    let seen =
        Seen { values: vec![0.4, -0.3, 0.0, 1.2, 0.8], precisions: vec![2.0, 0.7, 0.0, 3.0, 1.1], first: (0.2, 0.6) };
    // Two other agents beside agent 0, step by step.
    let beliefs = vec![0.0, 0.5, -1.0, 0.0, 0.9, 0.3, 0.0, -0.2, 0.8, 0.0, 1.4, -0.6, 0.0, 0.1, 0.2];
    (seen, beliefs)
}

/// Log-density of what is seen, from the joint normal law written out; `inputs` are u_1 … u_4.
fn dense(seen: &Seen, inputs: &[f64], own: f64, news: f64) -> f64 {
    let steps = seen.values.len();
    let (mut means, mut covariance) = (vec![seen.first.0], Mat::<f64>::zeros(steps, steps));
    covariance[(0, 0)] = seen.first.1;
    for step in 1..steps {
        means.push(own * means[step - 1] + inputs[step - 1]);
        for other in 0..step {
            covariance[(step, other)] = own * covariance[(step - 1, other)];
            covariance[(other, step)] = covariance[(step, other)];
        }
        covariance[(step, step)] = own * own * covariance[(step - 1, step - 1)] + news;
    }
    let heard: Vec<usize> = (0..steps).filter(|&step| seen.precisions[step] > 0.0).collect();
    let law = Mat::from_fn(heard.len(), heard.len(), |i, j| {
        covariance[(heard[i], heard[j])] + if i == j { 1.0 / seen.precisions[heard[i]] } else { 0.0 }
    });
    let off = Mat::from_fn(heard.len(), 1, |i, _| seen.values[heard[i]] - means[heard[i]]);
    let factor = Cholesky::new(law).unwrap();
    let solved = factor.solve(off.clone());
    let squares: f64 = (0..heard.len()).map(|i| off[(i, 0)] * solved[(i, 0)]).sum();
    let lower = factor.into_lower();
    -0.5 * squares - (0..heard.len()).map(|i| lower[(i, i)].ln()).sum::<f64>()
}

#[test]
fn the_likelihood_of_a_path_is_that_of_the_joint_normal_law() {
    let (seen, beliefs) = small_path();
    let series = |agent: usize| -> Vec<f64> { (0..4).map(|step| beliefs[3 * step + agent]).collect() };
    let drift = (0.3, 1.7);
    // With the drift integrated out: on a grid.
    let exact = |own: f64, news: f64, weights: [f64; 2]| -> f64 {
        let (mut sum, width) = (0.0, 1e-3);
        for cell in -8000..8000 {
            let level = drift.0 + width * (f64::from(cell) + 0.5);
            let inputs: Vec<f64> =
                (0..4).map(|step| level + weights[0] * series(1)[step] + weights[1] * series(2)[step]).collect();
            sum += width * (dense(&seen, &inputs, own, news) - 0.5 * drift.1 * (level - drift.0).powi(2)).exp();
        }
        sum.ln()
    };
    let points = [(0.5, 0.2, [0.3, 0.1]), (0.8, 0.05, [0.0, 0.6])];
    let wanted = exact(points[1].0, points[1].1, points[1].2) - exact(points[0].0, points[0].1, points[0].2);
    let found: Vec<f64> = points
        .iter()
        .map(|&(own, news, [a, b])| {
            let total: f64 = a + b;
            let mixed: Vec<f64> =
                series(1).iter().zip(series(2)).map(|(one, other)| (a * one + b * other) / total).collect();
            TwoColumns::new(&seen, &mixed, own, news).log_likelihood(total, drift)
        })
        .collect();
    assert!((found[1] - found[0] - wanted).abs() < 1e-6, "{} {wanted}", found[1] - found[0]);
    // The sums of products give the same changes by the weights and the drift at fixed own weight and news.
    let (own, news) = (0.5, 0.2);
    let whitened = Whitened { seen: &seen, beliefs: &beliefs, agents: 3, speakers: &[1, 2], scale: 0.9, own, news };
    let products = whitened.products(&mut Vec::new());
    let by_products = |coefficients: [f64; 3]| -> f64 {
        let mut value = 0.0;
        for i in 0..3 {
            value += coefficients[i] * products[4 * i + 3];
            for j in 0..3 {
                value -= 0.5 * coefficients[i] * products[4 * i + j] * coefficients[j];
            }
        }
        value
    };
    let by_law = |[a, b, level]: [f64; 3]| -> f64 {
        let inputs: Vec<f64> = (0..4).map(|step| level + 0.9 * (a * series(1)[step] + b * series(2)[step])).collect();
        dense(&seen, &inputs, own, news)
    };
    let places = [[0.2, 0.7, -0.3], [0.9, 0.05, 0.4]];
    let (found, wanted) = (by_products(places[1]) - by_products(places[0]), by_law(places[1]) - by_law(places[0]));
    assert!((found - wanted).abs() < 1e-10, "{found} {wanted}");
}

#[test]
fn drawn_paths_have_the_mean_and_covariance_of_the_joint_normal_law() {
    const DRAWS: usize = 40_000;
    let (seen, _) = small_path();
    let (inputs, own, news) = ([0.3, -0.1, 0.4, 0.2], 0.7, 0.3);
    // Precision of the path: that of the dynamics and of what is seen.
    let mut precision = Mat::<f64>::zeros(5, 5);
    let mut right = Mat::<f64>::zeros(5, 1);
    for step in 0..5 {
        precision[(step, step)] += seen.precisions[step];
        right[(step, 0)] += seen.precisions[step] * seen.values[step];
        if step == 0 {
            precision[(0, 0)] += 1.0 / seen.first.1;
            right[(0, 0)] += seen.first.0 / seen.first.1;
        } else {
            precision[(step, step)] += 1.0 / news;
            precision[(step - 1, step - 1)] += own * own / news;
            precision[(step, step - 1)] -= own / news;
            precision[(step - 1, step)] -= own / news;
            right[(step, 0)] += inputs[step - 1] / news;
            right[(step - 1, 0)] -= own * inputs[step - 1] / news;
        }
    }
    let factor = Cholesky::new(precision).unwrap();
    let mean = factor.solve(right);
    let covariance = factor.solve(Mat::identity(5, 5));
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let (mut out, mut variances) = (vec![0.0; 5], Vec::new());
    let (mut sums, mut squares) = ([0.0; 5], [[0.0; 5]; 5]);
    for _ in 0..DRAWS {
        path::draw(&seen, &inputs, own, news, &mut rng, &mut out, &mut variances);
        for i in 0..5 {
            sums[i] += (out[i] - mean[(i, 0)]) / DRAWS as f64;
            for j in 0..5 {
                squares[i][j] += (out[i] - mean[(i, 0)]) * (out[j] - mean[(j, 0)]) / DRAWS as f64;
            }
        }
    }
    for i in 0..5 {
        let error = (covariance[(i, i)] / DRAWS as f64).sqrt();
        assert!(sums[i].abs() < 4.0 * error, "{i}: {} {error}", sums[i]);
        for j in 0..5 {
            let both = covariance[(i, i)] * covariance[(j, j)] + covariance[(i, j)].powi(2);
            let error = (both / DRAWS as f64).sqrt();
            assert!((squares[i][j] - covariance[(i, j)]).abs() < 4.0 * error, "{i} {j}: {} {error}", squares[i][j]);
        }
    }
}

/// Three agents, of whom one may hear only one other, who are silent at fixed times, and narrow priors of scales.
fn small_target() -> EdgesTarget {
    let (agents, steps) = (3, 6);
    let counts_by_step: Vec<f64> = (0..agents * steps)
        .map(|cell| (cell / agents, cell % agents))
        .map(|(step, agent)| if (step + agent) % 3 == 0 { 0.0 } else { (1 + step % 2) as f64 })
        .collect();
    let counts = (0..agents * steps).map(|cell| counts_by_step[cell % steps * agents + cell / steps]).collect();
    EdgesTarget {
        agents,
        steps,
        speakers: vec![vec![0, 1, 2], vec![1, 0], vec![2, 0, 1]],
        values: vec![0.0; agents * steps],
        counts,
        values_by_step: vec![0.0; agents * steps],
        counts_by_step,
        first: vec![(0.2, 0.5), (-0.1, 1.0), (0.0, 0.7)],
        spread: 1.0,
        adaptation: None,
        log_scales: (0.3, 0.3),
    }
}

/// A draw of everything unknown from its prior, written down independently of the sampler.
fn from_prior(target: &EdgesTarget, rng: &mut ChaCha8Rng) -> State {
    let agents = target.agents;
    let inclusion = rng.random_range(0..MEANS * STRENGTHS);
    let (yes, no) = inclusion_prior(inclusion);
    let heard: Vec<f64> = (0..agents).map(|_| Beta::new(yes, no).unwrap().sample(rng)).collect();
    let concentration = CONCENTRATIONS[rng.random_range(0..CONCENTRATIONS.len())];
    let weights: Vec<Vec<f64>> = target
        .speakers
        .iter()
        .map(|speakers| {
            let gamma = Gamma::new(concentration, 1.0).unwrap();
            let mut weights: Vec<f64> = speakers
                .iter()
                .enumerate()
                .map(|(place, &speaker)| {
                    let on = place == 0 || rng.random::<f64>() < heard[speaker];
                    if on { gamma.sample(rng) } else { 0.0 }
                })
                .collect();
            let total: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= total);
            weights
        })
        .collect();
    let chi = |freedom: f64, rng: &mut ChaCha8Rng| -> f64 { ChiSquared::new(freedom).unwrap().sample(rng) };
    let mean_news = TYPICAL.1.ln() + target.log_scales.0 * normal(rng);
    let spread_news = OF_NEWS.freedom * OF_NEWS.variance / chi(OF_NEWS.freedom, rng);
    let news: Vec<f64> = (0..agents).map(|_| (mean_news + spread_news.sqrt() * normal(rng)).exp()).collect();
    let drift_centre = normal(rng);
    let drift_scale = (TYPICAL.2.ln() + 2.0 * target.log_scales.1 * normal(rng)).exp();
    let drift_factors: Vec<f64> = (0..agents).map(|_| DRIFT_FREEDOM / chi(DRIFT_FREEDOM, rng)).collect();
    let drifts: Vec<f64> =
        drift_factors.iter().map(|factor| drift_centre + (drift_scale * factor).sqrt() * normal(rng)).collect();
    State {
        keep: rng.random(),
        weights,
        drifts,
        news,
        noise: (TYPICAL.0.ln() + target.log_scales.0 * normal(rng)).exp(),
        mean_news,
        spread_news,
        drift_centre,
        drift_scale,
        drift_factors,
        inclusion,
        concentration,
        beliefs: vec![0.0; agents * target.steps],
    }
}

/// Draws beliefs under the other parameters, and posts.
fn observe(target: &mut EdgesTarget, state: &mut State, rng: &mut ChaCha8Rng) {
    let (agents, steps) = (target.agents, target.steps);
    for step in 0..steps {
        for agent in 0..agents {
            let belief = match step {
                0 => target.first[agent].0 + target.first[agent].1.sqrt() * normal(rng),
                _ => {
                    let heard: f64 = target.speakers[agent]
                        .iter()
                        .zip(&state.weights[agent])
                        .map(|(&speaker, weight)| weight * state.beliefs[speaker * steps + step - 1])
                        .sum();
                    state.keep * heard + state.drifts[agent] + state.news[agent].sqrt() * normal(rng)
                }
            };
            state.beliefs[agent * steps + step] = belief;
            let count = target.counts[agent * steps + step];
            let value = if count > 0.0 { belief + (state.noise / count).sqrt() * normal(rng) } else { 0.0 };
            target.values[agent * steps + step] = value;
            target.values_by_step[step * agents + agent] = value;
        }
    }
}

/// What the joint-distribution tests compare. Bounded functions, because some laws have no fourth moments.
fn numbers(state: &State) -> Vec<(&'static str, f64)> {
    let bounded = |value: f64| value / (1.0 + value.abs());
    let on = |weight: f64| f64::from(u8::from(weight > 0.0));
    let (a, b) = (state.weights[0][1], state.weights[2][2]);
    let edges: f64 = state.weights.iter().flat_map(|weights| &weights[1..]).map(|weight| on(*weight)).sum();
    let (news, noise) = (bounded(state.news[0].ln()), bounded(state.noise.ln()));
    let drift = bounded(5.0 * state.drifts[1]);
    let (belief, last) = (bounded(state.beliefs[2]), bounded(state.beliefs[17]));
    vec![
        ("keep", state.keep),
        ("keep²", state.keep.powi(2)),
        ("a", a),
        ("a²", a * a),
        ("own", state.weights[1][0]),
        ("heard", on(a)),
        ("heard by two", on(a) * on(b)),
        ("edges", edges),
        ("Q", news),
        ("Q²", news * news),
        ("mean Q", bounded(state.mean_news)),
        ("spread Q", bounded(state.spread_news)),
        ("σ²", noise),
        ("drift", drift),
        ("drift²", drift * drift),
        ("centre", bounded(state.drift_centre)),
        ("scale", bounded(state.drift_scale.ln())),
        ("factor", bounded(state.drift_factors[2])),
        ("inclusion", state.inclusion as f64),
        ("α", state.concentration),
        ("belief", belief),
        ("belief²", belief * belief),
        ("last", last),
        ("product", belief * last),
        ("keep drift", state.keep * drift),
        ("a belief", a * belief),
        ("α a", state.concentration * a),
        ("σ²Q", noise * news),
    ]
}

/// The joint-distribution test of Geweke (2004) with independent replicates: parameters drawn from their prior are a draw
/// from the posterior given data drawn from them, so that moves which keep the posterior must keep the prior too. Numbers
/// that must have moved are named.
fn keeps_the_joint_law(
    name: &str,
    replicates: usize,
    moves: impl Fn(&mut Chain, &EdgesTarget) -> Result<(), Error>,
    moved: &[&str],
) {
    let mut target = small_target();
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let mut differences = Vec::new();
    let mut names = Vec::new();
    for replicate in 0..replicates {
        let mut state = from_prior(&target, &mut rng);
        observe(&mut target, &mut state, &mut rng);
        let before = numbers(&state);
        let mut chain = Chain::new(&target, state, replicate, 77);
        moves(&mut chain, &target).unwrap();
        let after = numbers(&chain.state);
        names = before.iter().map(|number| number.0).collect();
        differences.push(after.iter().zip(&before).map(|(after, before)| after.1 - before.1).collect::<Vec<f64>>());
    }
    for (which, number) in names.iter().enumerate() {
        let count = replicates as f64;
        let mean = differences.iter().map(|row| row[which]).sum::<f64>() / count;
        let square = differences.iter().map(|row| (row[which] - mean).powi(2)).sum::<f64>() / (count * (count - 1.0));
        assert!(square > 0.0 || !moved.contains(number), "{name}: {number} never moves");
        let z = mean / square.sqrt();
        assert!(square == 0.0 || z.abs() < 4.0, "{name}: {number} moves by {mean}, {z} standard errors");
    }
}

#[test]
fn sweeps_keep_the_joint_law_of_parameters_and_data() {
    let all: Vec<&str> = numbers(&from_prior(&small_target(), &mut ChaCha8Rng::seed_from_u64(0)))
        .into_iter()
        .map(|number| number.0)
        .collect();
    let three = |chain: &mut Chain, target: &EdgesTarget| (0..3).try_for_each(|_| chain.sweep(target, false));
    keeps_the_joint_law("sweeps", 8_000, three, &all);
}

/// Each kind of move many times over, which shows smaller faults than whole sweeps.
#[test]
fn every_move_keeps_the_joint_law_of_parameters_and_data() {
    keeps_the_joint_law("beliefs", 8_000, |chain, target| chain.draw_beliefs(target), &["belief", "last"]);
    let given = |chain: &mut Chain, target: &EdgesTarget| {
        (0..10).for_each(|_| {
            chain.noise(target);
            chain.centred(target);
        });
        Ok(())
    };
    keeps_the_joint_law("given beliefs", 8_000, given, &["keep", "a", "heard", "Q", "σ²", "drift"]);
    let agents = |chain: &mut Chain, target: &EdgesTarget| {
        chain.refresh(target);
        (0..30).for_each(|round| chain.agent(target, round % 3, false));
        Ok(())
    };
    keeps_the_joint_law("agents", 8_000, agents, &["a", "own", "heard", "Q", "drift", "belief", "last"]);
    let shared = |chain: &mut Chain, target: &EdgesTarget| {
        chain.refresh(target);
        (0..10).for_each(|_| chain.shared(target, false));
        Ok(())
    };
    keeps_the_joint_law("shared", 20_000, shared, &["keep", "Q", "mean Q", "drift", "last"]);
    let levels = |chain: &mut Chain, target: &EdgesTarget| (0..3).try_for_each(|_| chain.levels(target));
    keeps_the_joint_law("levels", 8_000, levels, &["drift", "belief", "last"]);
    let priors = |chain: &mut Chain, target: &EdgesTarget| {
        (0..10).for_each(|_| chain.priors(target));
        Ok(())
    };
    let moved = ["mean Q", "spread Q", "centre", "scale", "factor", "inclusion", "α"];
    keeps_the_joint_law("priors", 8_000, priors, &moved);
}

fn quick() -> SamplingParams {
    SamplingParams { draws: 20, chains: 4, ..SamplingParams::default() }
}

/// Beliefs nearly without noise: most edges are plain.
#[test]
fn edges_are_found_and_the_number_of_threads_changes_no_bit() {
    let world =
        NoisyWorld { agents: 6, steps: 300, noise: 0.02, edge_probability: 0.3, seed: 5, ..NoisyWorld::default() };
    let (panel, truth) = noisy(&world).unwrap();
    let params = StateSpaceParams::default();
    assert!(applies(&panel, &params));
    let run = |threads: usize| {
        progress::Progress::default().over(Some(threads), || sample(&panel, &params, &quick())).unwrap().unwrap()
    };
    let (one, three) = (run(1).summary(), run(3).summary());
    assert_eq!(one, three);
    assert_eq!(one.edges.len(), 30);
    let mean = |real: bool| {
        let there = |edge: &&EdgeInterval| (truth.combination.weight(edge.speaker, edge.listener) > 0.0) == real;
        let these: Vec<f64> = one.edges.iter().filter(there).filter_map(|edge| edge.probability).collect();
        these.iter().sum::<f64>() / these.len() as f64
    };
    assert!(mean(true) > 0.8 && mean(false) < 0.2, "{} {}", mean(true), mean(false));
}

#[test]
fn only_edges_of_the_graph_have_probabilities() {
    let world = NoisyWorld { agents: 5, steps: 60, noise: 0.5, edge_probability: 0.4, ..NoisyWorld::default() };
    let (panel, _) = noisy(&world).unwrap();
    let support = vec![vec![1, 2], vec![0], vec![2, 0, 0], vec![0, 1, 2], vec![3]];
    let params = StateSpaceParams {
        weights: Some(WeightKind::Edges),
        support: Some(support),
        adaptation: Some(0.1),
        ..StateSpaceParams::default()
    };
    assert!(applies(&panel, &params));
    let posterior = sample(&panel, &params, &quick()).unwrap();
    let edges: Vec<(usize, usize)> =
        posterior.summary().edges.iter().map(|edge| (edge.speaker, edge.listener)).collect();
    assert_eq!(edges, [(1, 0), (2, 0), (0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (3, 4)]);
    assert!(posterior.draws.iter().all(|draw| (draw.adaptation - 0.1).abs() < 1e-15));
    assert!(!applies(&panel, &StateSpaceParams { common: Some(vec![0; 5]), ..params.clone() }));
    assert!(!applies(&panel, &StateSpaceParams { constraint: Constraint::Free, ..params }));
}
