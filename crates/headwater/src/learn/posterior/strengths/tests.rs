use super::*;
use crate::learn::posterior::arrow::Centre;
use crate::learn::posterior::target::{OF_OWN, TYPICAL};
use crate::simulate::crowd::{Crowd, crowd};
use crate::simulate::noisy::{NoisyWorld, noisy};
use rand_distr::{ChiSquared, StudentT};

/// Three agents, who are silent at fixed times, and priors narrow enough for short chains.
fn small_target() -> StrengthsTarget {
    let (agents, steps) = (3, 6);
    let (mut starts, mut observations) = (vec![0], Vec::new());
    for step in 0..steps {
        for agent in (0..agents).filter(|agent| (step + agent) % 3 != 0) {
            observations.push(Observation { agent: agent as u32, value: 0.0, share: 1.0 / (1 + step % 2) as f64 });
        }
        starts.push(observations.len());
    }
    let posts = Posts { agents, starts, observations, episodes: vec![0; steps] };
    StrengthsTarget {
        support: Support::new(&[vec![1, 2], vec![0], vec![0, 1]]),
        audience: None,
        ratios: vec![Ratio { posts, first: vec![0.5, 1.0, 0.7], spread: 1.0 }],
        variances: Variances::Integrated,
        adaptation: None,
        log_scales: (0.3, 0.3),
    }
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// A draw of all parameters from their prior, written down independently of its density.
fn from_prior(target: &StrengthsTarget, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let (layout, places) = (target.attention(), target.ratio(0));
    let agents = layout.agents;
    let mut point = vec![0.0; target.size()];
    let deviation = |law: UnknownVariance, rng: &mut ChaCha8Rng| {
        let chi: f64 = ChiSquared::new(law.freedom).unwrap().sample(rng);
        (law.freedom * law.variance / chi).sqrt()
    };
    for (range, law) in [(layout.strengths(), OF_STRENGTHS), (layout.deviations(), OF_DEVIATIONS)] {
        let deviation = deviation(law, rng);
        range.for_each(|place| point[place] = deviation * normal(rng));
    }
    point[layout.own()] = OF_OWN.0 + OF_OWN.1 * normal(rng);
    point[layout.blend()] = OF_BLEND.0 + OF_BLEND.1 * normal(rng);
    let keep: f64 = rand::RngExt::random(rng);
    point[layout.keep()] = (keep / (1.0 - keep)).ln();
    point[places.mean_news()] = TYPICAL.1.ln() + target.log_scales.0 * normal(rng);
    let news = deviation(OF_NEWS, rng);
    places.news().for_each(|place| point[place] = point[places.mean_news()] + news * normal(rng));
    point[places.noise()] = TYPICAL.0.ln() + target.log_scales.0 * normal(rng);
    point[places.drift_centre()] = normal(rng);
    point[places.drift_scale()] = 0.5 * TYPICAL.2.ln() + target.log_scales.1 * normal(rng);
    let (centre, scale) = (point[places.drift_centre()], point[places.drift_scale()].exp());
    let student = StudentT::new(DRIFT_FREEDOM).unwrap();
    let drifts: Vec<f64> = (0..agents).map(|_| centre + scale * student.sample(rng)).collect();
    // Levels μ = Bᵀμ + d, by iteration: the columns of B sum to less than one.
    let attention = Attention::new(&target.support, &point);
    let mut levels = drifts.clone();
    for _ in 0..200_000 {
        let next: Vec<f64> = (0..agents)
            .map(|listener| {
                let heard = target.support.of(listener);
                drifts[listener]
                    + heard
                        .map(|edge| attention.weights[edge] * levels[target.support.speakers[edge] as usize])
                        .sum::<f64>()
            })
            .collect();
        let moved = next.iter().zip(&levels).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        levels = next;
        if moved < 1e-12 * (1.0 + levels[0].abs()) {
            break;
        }
    }
    point[places.levels()].copy_from_slice(&levels);
    point
}

/// Replaces the observations by new ones under these parameters.
fn observe(target: &mut StrengthsTarget, point: &[f64], rng: &mut ChaCha8Rng) {
    let places = target.ratio(0);
    let attention = Attention::new(&target.support, point);
    let (agents, levels) = (target.support.agents(), &point[places.levels()]);
    let support = target.support.clone();
    let Ratio { posts, first, .. } = &mut target.ratios[0];
    let mut off: Vec<f64> = first.iter().map(|variance| variance.sqrt() * normal(rng)).collect();
    for step in 0..posts.steps() {
        if step > 0 {
            off = (0..agents)
                .map(|listener| {
                    let heard: f64 = support
                        .of(listener)
                        .map(|edge| attention.weights[edge] * off[support.speakers[edge] as usize])
                        .sum();
                    heard + (0.5 * point[places.news().start + listener]).exp() * normal(rng)
                })
                .collect();
        }
        for place in posts.starts[step]..posts.starts[step + 1] {
            let one = &mut posts.observations[place];
            let agent = one.agent as usize;
            let noise = (0.5 * point[places.noise()]).exp() * one.share.sqrt();
            one.value = levels[agent] + off[agent] + noise * normal(rng);
        }
    }
}

/// The joint-distribution test of Geweke (2004) with independent replicates: parameters drawn from their prior are a draw
/// from the posterior given data drawn from them, so that trajectories which keep the posterior must keep the prior too.
fn keeps_the_joint_law<M: Metric + Clone>(
    mut target: StrengthsTarget,
    metric: impl Fn(&StrengthsTarget, Vec<f64>) -> M,
    guide: Option<fn(M) -> M>,
    observe: impl Fn(&mut StrengthsTarget, &[f64], &mut ChaCha8Rng),
) {
    const REPLICATES: usize = 6_000;
    const TRAJECTORIES: usize = 3;
    let (layout, places) = (target.attention(), target.ratio(0));
    let names = ["δ", "δ²", "g", "g of a speaker", "g²", "gg", "deviation", "c", "κ", "Q", "Q²", "mean Q", "σ²", "σ²Q"];
    let names: Vec<&str> =
        names.into_iter().chain(["drift", "drift²", "scale", "level", "level²", "δ level"]).collect();
    // Bounded functions, because Student laws have no fourth moments.
    let bounded = |value: f64| value / (1.0 + value.abs());
    let numbers = |point: &[f64]| -> Vec<f64> {
        let keep = 1.0 / (1.0 + (-point[layout.keep()]).exp());
        let (noise, news, level) = (point[places.noise()], point[places.news().start], point[places.levels().start]);
        let at = |place: usize| bounded(point[place]);
        vec![
            keep,
            keep * keep,
            at(0),
            at(1),
            at(0).powi(2),
            bounded(point[0] * point[1]),
            at(layout.deviations().start + 1),
            at(layout.own()),
            at(layout.blend()),
            bounded(news),
            bounded(news).powi(2),
            bounded(point[places.mean_news()]),
            bounded(noise),
            bounded(noise * news),
            at(places.drift_centre()),
            at(places.drift_centre()).powi(2),
            at(places.drift_scale()),
            bounded(level),
            bounded(level).powi(2),
            keep * bounded(level),
        ]
    };
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let start = from_prior(&target, &mut rng);
    observe(&mut target, &start, &mut rng);
    let metric = metric(&target, start);
    let guide_metric = guide.map(|off| off(metric.clone()));
    let mut chains = Chains::new(&target, metric, 1, 0.0, 6).unwrap();
    chains.step = 0.1;
    chains.corrections = 8;
    let (mut accepted, mut differences) = (0.0, Vec::new());
    for _ in 0..REPLICATES {
        let before = from_prior(&target, &mut rng);
        observe(&mut target, &before, &mut rng);
        let guide = guide_metric.clone().map(|metric| Guide { density: target.approximated(), metric });
        chains.restart(&target, guide.as_ref(), &before).unwrap();
        for _ in 0..TRAJECTORIES {
            chains.advance(&target, guide.as_ref(), false).unwrap();
            accepted += chains.accepted / (REPLICATES * TRAJECTORIES) as f64;
        }
        let after = chains.points().swap_remove(0);
        let pairs = numbers(&after).into_iter().zip(numbers(&before));
        differences.push(pairs.map(|(after, before)| after - before).collect::<Vec<f64>>());
    }
    assert!(accepted > 0.3, "too few moves to tell: {accepted}");
    for (which, name) in names.iter().enumerate() {
        let count = REPLICATES as f64;
        let mean = differences.iter().map(|row| row[which]).sum::<f64>() / count;
        let square = differences.iter().map(|row| (row[which] - mean).powi(2)).sum::<f64>() / (count * (count - 1.0));
        let z = mean / square.sqrt();
        assert!(z.abs() < 4.0, "{name} moves by {mean}, {z} standard errors");
    }
}

#[test]
fn trajectories_keep_the_joint_law_of_parameters_and_data() {
    // Any metric is right as long as it does not depend on the position; this one gives steps that are often accepted.
    let metric = |target: &StrengthsTarget, start: Vec<f64>| {
        Scaling::from_curvature(target, start, &vec![0.3; target.size()], &|| ()).unwrap()
    };
    keeps_the_joint_law(small_target(), metric, None, observe);
}

#[test]
fn guided_trajectories_keep_the_joint_law_of_parameters_and_data() {
    let metric = |target: &StrengthsTarget, start: Vec<f64>| {
        Scaling::from_curvature(target, start, &vec![0.3; target.size()], &|| ()).unwrap()
    };
    // In its coordinates the guide is another density than the sampled one.
    let off = |mut scaling: Scaling| {
        scaling.centre.iter_mut().enumerate().for_each(|(place, value)| *value += 0.01 * (place as f64).sin());
        scaling.root *= 0.97;
        scaling
    };
    keeps_the_joint_law(small_target(), metric, Some(off), observe);
}

/// New observations by the forecasts of the filter with a diagonal covariance, of which its likelihood is the exact density.
fn observe_by_forecasts(target: &mut StrengthsTarget, point: &[f64], rng: &mut ChaCha8Rng) {
    let places = target.ratio(0);
    let attention = Attention::new(&target.support, point);
    let (agents, levels) = (target.support.agents(), &point[places.levels()]);
    let support = target.support.clone();
    let Ratio { posts, first, .. } = &mut target.ratios[0];
    let (mut means, mut variances) = (vec![0.0; agents], first.clone());
    for step in 0..posts.steps() {
        if step > 0 {
            let heard = |values: &[f64], power: i32, listener: usize| -> f64 {
                let edges = support.of(listener);
                edges.map(|edge| attention.weights[edge].powi(power) * values[support.speakers[edge] as usize]).sum()
            };
            let news = |listener: usize| point[places.news().start + listener].exp();
            variances = (0..agents).map(|listener| heard(&variances, 2, listener) + news(listener)).collect();
            means = (0..agents).map(|listener| heard(&means, 1, listener)).collect();
        }
        for place in posts.starts[step]..posts.starts[step + 1] {
            let one = &mut posts.observations[place];
            let agent = one.agent as usize;
            let noise = point[places.noise()].exp() * one.share;
            let error = (variances[agent] + noise).sqrt() * normal(rng);
            one.value = levels[agent] + means[agent] + error;
            means[agent] += variances[agent] / (variances[agent] + noise) * error;
            variances[agent] *= noise / (variances[agent] + noise);
        }
    }
}

#[test]
fn trajectories_of_large_networks_keep_the_joint_law_of_parameters_and_data() {
    let mut target = small_target();
    target.audience = Some(Audience::new(&target.support));
    let metric = |target: &StrengthsTarget, start: Vec<f64>| {
        let attention = Attention::new(&target.support, &start);
        let centre = Centre { point: start, weights: attention.weights, keep: attention.keep };
        let places = target.ratio(0);
        let commons = vec![target.attention().keep(), places.noise(), places.drift_centre()];
        ArrowMetric::uncoupled(&target.support, centre, places.levels(), vec![0.3; target.size()], commons)
    };
    keeps_the_joint_law(target, metric, None, observe_by_forecasts);
}

fn distance(a: &Combination, b: &Combination) -> f64 {
    (0..a.agents())
        .map(|listener| {
            let mut off = vec![0.0; a.agents()];
            a.listener(listener).for_each(|(speaker, weight)| off[speaker] += weight);
            b.listener(listener).for_each(|(speaker, weight)| off[speaker] -= weight);
            off.iter().map(|off| off * off).sum::<f64>()
        })
        .sum()
}

/// Forty agents who post every second step or so.
fn crowd_of_forty() -> (Panel, StateSpaceParams, Combination) {
    let world = Crowd { agents: 40, steps: 120, silence: 0.3, degree: 6.0, ..Crowd::default() };
    let (panel, graph, truth) = crowd(&world).unwrap();
    let params = StateSpaceParams {
        weights: Some(WeightKind::Strengths),
        support: Some(graph.speakers().to_vec()),
        ..StateSpaceParams::default()
    };
    (panel, params, truth)
}

#[test]
fn the_climb_ends_where_the_exact_gradient_vanishes() {
    let (panel, params, _) = crowd_of_forty();
    let mut prepared = prepare(&panel, panel.steps(), params.support.as_deref().unwrap(), None);
    prepared.target.audience = Some(Audience::new(&prepared.target.support));
    let metric = large::approximate(&mut prepared, 21, &|| ()).unwrap();
    let reached = large::climb(&prepared.target, &metric, 21, &|| ()).unwrap();
    // By the exact filter, in the coordinates of the metric, where a posterior deviation is about one.
    prepared.target.audience = None;
    let size = |point: &[f64]| {
        let mut gradient = prepared.target.evaluate(&[point.to_vec()]).unwrap().swap_remove(0).gradient;
        gradient[prepared.target.ratio(0).drift_scale()] = 0.0;
        let pulled = metric.pull(&gradient);
        (pulled.iter().map(|slope| slope * slope).sum::<f64>() / pulled.len() as f64).sqrt()
    };
    let (before, after) = (size(metric.centre()), size(&reached));
    // What is left is the error of the draws; the climb from the maximum of the approximation gains 40 % at this size.
    assert!(after < 0.1 && after < 0.7 * before, "from {before} to {after} deviations");
}

#[test]
fn a_large_network_is_learned_alike_by_any_number_of_threads() {
    let (panel, params, truth) = crowd_of_forty();
    let params = StateSpaceParams { sampling: None, ..params };
    let model = learn(&panel, &params).unwrap();
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let again = single.install(|| learn(&panel, &params)).unwrap();
    assert_eq!(model.combination, again.combination);
    assert_eq!(model.adaptation.to_bits(), again.adaptation.to_bits());
    let skill = model.diagnostics.skill.unwrap();
    assert!(skill.against_own_past > 0.0, "{skill:?}");
    // Squared distance to the truth, beside that of equal strengths with the same self-weight.
    let own = 0.1;
    let triplets = params.support.as_deref().unwrap().iter().enumerate().flat_map(|(listener, speakers)| {
        let others = speakers.iter().filter(move |&&speaker| speaker != listener);
        let share = (1.0 - own) / others.clone().count() as f64;
        others.map(move |&speaker| (speaker, listener, share)).chain([(listener, listener, own)])
    });
    let equal = distance(&Combination::from_triplets(triplets.collect(), 40).unwrap(), &truth);
    let found = distance(&model.combination, &truth);
    assert!(found < equal, "{found} is not below {equal}");
}

#[test]
fn the_approximation_tells_how_far_it_is() {
    let (panel, truth) =
        noisy(&NoisyWorld { agents: 5, steps: 60, edge_probability: 0.6, ..NoisyWorld::strengths() }).unwrap();
    let mut support = vec![Vec::new(); 5];
    truth.combination.edges().for_each(|(speaker, listener, _)| support[listener].push(speaker));
    let mut prepared = prepare(&panel, panel.steps(), &support, None);
    let most = most_evaluations(prepared.target.size());
    let done = AtomicU64::new(0);
    approximate(&mut prepared, &|groups| {
        done.fetch_add(groups, Ordering::Relaxed);
    })
    .unwrap();
    let done = done.into_inner();
    // The search usually ends before its last step.
    assert!((most / 20..=most).contains(&done), "{done} of {most}");
}
