use super::*;
use crate::graph::Graph;
use crate::learn::method::Method;
use crate::learn::posterior::arrow::{ArrowMetric, Centre};
use crate::learn::posterior::filter::Audience;
use crate::learn::posterior::marginal::{Observation, Posts};
use crate::learn::posterior::target::{OF_BLEND, OF_OWN, Ratio, TYPICAL};
use crate::panel::Times;
use crate::simulate::crowd::{Crowd, crowd};
use crate::simulate::noisy::by_strength;
use crate::simulate::noisy::{NoisyWorld, noisy};
use crate::{Combination, Roster};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal, StudentT};

/// Three agents, who are silent at fixed times, and priors narrow enough for short chains.
fn small_target(ratios: usize) -> StrengthsTarget {
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
        ratios: vec![Ratio { posts, first: vec![0.5, 1.0, 0.7], spread: 1.0 }; ratios],
        variances: [OF_STRENGTHS, OF_DEVIATIONS, OF_NEWS].map(|law| law.variance),
        adaptation: None,
        log_scales: (0.3, 0.3),
        hierarchy: true,
    }
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// A draw of all parameters from their prior, written down independently of its density.
fn from_prior(target: &StrengthsTarget, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let layout = target.attention();
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
    let attention = Attention::new(&target.support, &point);
    for number in 0..target.ratios.len() {
        let places = target.ratio(number);
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
    }
    point
}

/// Replaces the observations by new ones under these parameters.
fn observe(target: &mut StrengthsTarget, point: &[f64], rng: &mut ChaCha8Rng) {
    let attention = Attention::new(&target.support, point);
    let (agents, support) = (target.support.agents(), target.support.clone());
    for number in 0..target.ratios.len() {
        let places = target.ratio(number);
        let levels = &point[places.levels()];
        let Ratio { posts, first, .. } = &mut target.ratios[number];
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
}

/// The variables of the chains at a point, with λ and the variances of the hierarchy drawn from their laws given the others.
fn variables_of(standard: &StandardTarget, point: &[f64], rng: &mut ChaCha8Rng) -> Vec<f64> {
    let chi = |freedom: f64, rng: &mut ChaCha8Rng| -> f64 { ChiSquared::new(freedom).unwrap().sample(rng) };
    let mut other = rng.clone();
    other.set_stream(9);
    standard.variables_with(
        point,
        &mut |off| ((DRIFT_FREEDOM + off * off) / chi(DRIFT_FREEDOM + 1.0, rng)).ln(),
        &mut |law, count, squares| {
            0.5 * ((law.freedom * law.variance + squares) / chi(law.freedom + count as f64, &mut other)).ln()
        },
    )
}

/// The joint-distribution test of Geweke (2004) with independent replicates: parameters drawn from their prior are a draw
/// from the posterior given data drawn from them, so that trajectories which keep the posterior must keep the prior too.
fn keeps_the_joint_law<M: Metric + Clone>(
    mut target: StrengthsTarget,
    metric: impl Fn(&StandardTarget, &[f64], Vec<f64>) -> M,
    guide: Option<fn(M) -> M>,
    observe: impl Fn(&mut StrengthsTarget, &[f64], &mut ChaCha8Rng),
) {
    const REPLICATES: usize = 6_000;
    const TRAJECTORIES: usize = 3;
    let (layout, places) = (target.attention(), target.ratio(target.ratios.len() - 1));
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
    // Any precisions are right as long as they do not depend on the position.
    let cells = target.places_of_levels().count();
    let unknown = (0..target.size()).map(|place| 0.5 + 0.5 * (0.9 * place as f64).sin()).collect();
    let standard = StandardTarget::new(
        &target,
        &start,
        unknown,
        (0..cells).map(|cell| 40.0 + 20.0 * (cell as f64).sin()).collect(),
    )
    .unwrap();
    let begun = variables_of(&standard, &start, &mut rng);
    let metric = metric(&standard, &start, begun);
    let guide_metric = guide.map(|off| off(metric.clone()));
    let mut chains = Chains::new(&standard, metric, 1, 0.0, 6).unwrap();
    chains.step = 0.1;
    chains.corrections = 8;
    let (mut accepted, mut differences) = (0.0, Vec::new());
    for _ in 0..REPLICATES {
        let before = from_prior(&target, &mut rng);
        observe(&mut target, &before, &mut rng);
        let density = standard.of(&target);
        let guide = guide_metric.clone().map(|metric| Guide { density: density.of(&target.approximated()), metric });
        chains.restart(&density, guide.as_ref(), &variables_of(&density, &before, &mut rng)).unwrap();
        for _ in 0..TRAJECTORIES {
            chains.advance(&density, guide.as_ref(), false).unwrap();
            accepted += chains.accepted / (REPLICATES * TRAJECTORIES) as f64;
        }
        let after = density.point(&chains.points()[0]).unwrap();
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

/// Any metric is right as long as it does not depend on the position; this one gives steps that are often accepted.
fn of_curvature(density: &StandardTarget, _: &[f64], start: Vec<f64>) -> Scaling {
    Scaling::from_curvature(density, start, &vec![0.3; density.size()], &|| ()).unwrap()
}

#[test]
fn trajectories_keep_the_joint_law_of_parameters_and_data() {
    keeps_the_joint_law(small_target(1), of_curvature, None, observe);
}

#[test]
fn trajectories_of_two_log_ratios_keep_the_joint_law() {
    keeps_the_joint_law(small_target(2), of_curvature, None, observe);
}

/// Two log-ratios over one network, whose news and noise depend on each other, as when neutral lies between.
fn two_log_ratios(seed: u64) -> (Panel, Combination, Vec<[f64; 2]>) {
    const AGENTS: usize = 8;
    const STEPS: usize = 250;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let edges = (0..AGENTS).flat_map(|listener| [1, 2, 4].map(|by| ((listener + by) % AGENTS, listener)));
    let graph = Graph::new(AGENTS, edges.collect::<Vec<_>>()).unwrap();
    let strengths: Vec<f64> = (0..AGENTS).map(|_| normal(&mut rng).exp()).collect();
    let combination = by_strength(&graph, &strengths, 0.2).unwrap();
    let evidence: Vec<[f64; 2]> = (0..AGENTS)
        .map(|_| {
            let mean = 0.3 + 0.6 * rand::RngExt::random::<f64>(&mut rng);
            [mean, 0.4 * mean]
        })
        .collect();
    // Both have the same axes (1, 0.4) and (0, 1).
    let mixed = |first: f64, second: f64| [first, 0.4 * first + second];
    let mut beliefs = [vec![0.0; AGENTS], vec![0.0; AGENTS]];
    let mut cells = Vec::new();
    for step in 0..200 + STEPS {
        let heard = [combination.hear(&beliefs[0]), combination.hear(&beliefs[1])];
        let mut said = [vec![0.0; AGENTS], vec![0.0; AGENTS]];
        for agent in 0..AGENTS {
            let news = mixed(2.0 * normal(&mut rng), 1.0 * normal(&mut rng));
            let noise = mixed(0.5 * normal(&mut rng), 0.2 * normal(&mut rng));
            for ratio in 0..2 {
                beliefs[ratio][agent] = 0.9 * heard[ratio][agent] + 0.1 * (evidence[agent][ratio] + news[ratio]);
                said[ratio][agent] = beliefs[ratio][agent] + noise[ratio];
            }
        }
        if step >= 200 {
            cells.extend(said.concat());
        }
    }
    let posts = (0..STEPS * AGENTS).map(|_| u32::from(rand::RngExt::random::<f64>(&mut rng) < 0.8)).collect();
    let (roster, times) = (Roster::numbered(AGENTS, 3).unwrap(), Times::Steps((0..STEPS as i64).collect()));
    (Panel::new(roster, times, cells, Some(posts)).unwrap(), combination, evidence)
}

#[test]
fn three_hypotheses_are_sampled_along_common_axes() {
    let (panel, truth, evidence) = two_log_ratios(1);
    let support = (0..8).map(|listener| truth.listener(listener).map(|(speaker, _)| speaker).collect()).collect();
    let params = StateSpaceParams {
        weights: Some(WeightKind::Strengths),
        support: Some(support),
        sampling: Some(SamplingParams { draws: 60, ..SamplingParams::default() }),
        ..StateSpaceParams::default()
    };
    let model = crate::fit(&panel, &Method::StateSpace(params), &crate::progress::Progress::default()).unwrap();
    let found = model.diagnostics.posterior.as_ref().unwrap();
    assert!(found.r_hat < 1.3, "{} {}", found.effective_size, found.r_hat);
    let centrality = truth.centrality().unwrap().values;
    let inside = |(low, high): (f64, f64), value: f64| usize::from(low <= value && value <= high);
    let of_centrality: usize = (0..8).map(|agent| inside(found.centrality(agent), centrality[agent])).sum();
    let of_evidence: usize = (0..16)
        .map(|cell| (cell / 2, cell % 2))
        .map(|(agent, ratio)| inside(found.evidence(agent, ratio, 2), evidence[agent][ratio]))
        .sum();
    assert!(of_centrality >= 6 && of_evidence >= 12, "{of_centrality} of 8, {of_evidence} of 16");
    // Of a post [[0.25, 0.1], [0.1, 0.08]]; the news of both log-ratios go together as 1 to 0.4.
    let noise = &model.diagnostics.smoothing.as_ref().unwrap().noise;
    assert!((noise[0][0] - 0.25).abs() < 0.06 && (noise[0][1] - 0.1).abs() < 0.04, "{noise:?}");
    let innovation = model.innovation.as_ref().unwrap();
    let mean = |cell: usize| (0..8).map(|agent| innovation.agent(agent)[cell]).sum::<f64>() / 8.0;
    assert!((mean(1) / mean(0) - 0.4).abs() < 0.15, "{} {}", mean(0), mean(1));
}

#[test]
fn guided_trajectories_keep_the_joint_law_of_parameters_and_data() {
    // In its coordinates the guide is another density than the sampled one.
    let off = |mut scaling: Scaling| {
        scaling.centre.iter_mut().enumerate().for_each(|(place, value)| *value += 0.01 * (place as f64).sin());
        scaling.root *= 0.97;
        scaling
    };
    keeps_the_joint_law(small_target(1), of_curvature, Some(off), observe);
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
    let mut target = small_target(1);
    target.audience = Some(Audience::new(&target.support));
    let metric = |density: &StandardTarget, point: &[f64], start: Vec<f64>| {
        let target = density.target();
        let attention = Attention::new(&target.support, point);
        let centre = Centre { point: start, weights: attention.weights, keep: attention.keep };
        let places = target.ratio(0);
        let commons = vec![target.attention().keep(), places.noise(), places.drift_centre()];
        let spreads = vec![0.3; density.size()];
        ArrowMetric::uncoupled(&target.support, centre, density.size()..density.size(), spreads, commons)
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
    let most = most_evaluations(&prepared.target);
    let done = AtomicU64::new(0);
    approximate(&mut prepared, &|groups| {
        done.fetch_add(groups, Ordering::Relaxed);
    })
    .unwrap();
    let done = done.into_inner();
    // The search usually ends before its last step.
    assert!((most / 20..=most).contains(&done), "{done} of {most}");
}

#[test]
fn a_sketch_ranks_and_says_what_it_is() {
    let world = Crowd { agents: 80, degree: 8.0, steps: 200, silence: 0.3, noise: 0.1, ..Crowd::default() };
    let (panel, graph, truth) = crowd(&world).unwrap();
    let params =
        StateSpaceParams { support: Some(graph.speakers().to_vec()), sketch: true, ..StateSpaceParams::default() };
    let fitted = |params: StateSpaceParams| {
        crate::fit(&panel, &Method::StateSpace(params), &crate::progress::Progress::default())
    };
    let model = fitted(params.clone()).unwrap();
    assert!(model.diagnostics.posterior.is_none() && model.diagnostics.skill.is_none());
    assert!(model.diagnostics.warnings.iter().any(|warning| warning.starts_with("a sketch: ")));
    let centrality = |combination: &Combination| combination.centrality().unwrap().values;
    let (found, wanted) = (centrality(&model.combination), centrality(&truth));
    let off = |values: &[f64]| -> f64 { values.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).sum() };
    // PageRank is what the graph alone tells.
    assert!(off(&found) < 0.8 * off(&graph.pagerank(1.0)), "{} {}", off(&found), off(&graph.pagerank(1.0)));
    let without = StateSpaceParams { support: None, ..params.clone() };
    assert!(matches!(fitted(without), Err(Error::Parameter { name: "sketch", .. })));
    let free = StateSpaceParams { constraint: Constraint::Free, weights: None, ..params };
    assert!(matches!(fitted(free), Err(Error::Undefined { what: "a sketch", .. })));
}
