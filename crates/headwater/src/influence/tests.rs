use super::error_probability::all_positive;
use super::*;
use crate::model::{Diagnostics, Innovation, Track, TrueHypothesis};
use crate::simulate::{World, WorldParams};
use crate::{Combination, Roster};
use faer::Mat;
use proptest::prelude::*;
use statrs::function::erf::erfc;

fn two_agents() -> Model {
    Model {
        roster: Roster::numbered(2, 2).unwrap(),
        combination: Combination::from_columns(vec![0.9, 0.1, 0.3, 0.7], 2).unwrap(),
        evidence: Evidence::from_rows(vec![0.2, 1.0], 2, 1).unwrap(),
        adaptation: 0.5,
        method: crate::Method::Given,
        truth: Some(TrueHypothesis { hypothesis: 0, agreement: 1.0 }),
        innovation: Some(Innovation::from_cells(vec![1.0, 4.0], 2, 1).unwrap()),
        likelihoods: None,
        diagnostics: Diagnostics::default(),
        track: Track::default(),
    }
}

#[test]
fn influence_by_hand() {
    // u = (¾, ¼), D = (0.2, 1), I = (0.15, 0.25).
    let influence = influence(&two_agents()).unwrap();
    assert!((influence.influence[0] - 0.15).abs() < 1e-15);
    assert!((influence.share.as_ref().unwrap()[1] - 0.625).abs() < 1e-14);
    assert!((influence.divergence[1] - 0.4).abs() < 1e-15 && influence.divergence[0] == 0.0);
    assert!((influence.divergence_shares(1).unwrap()[0] - 0.375).abs() < 1e-14);
    assert_eq!(influence.divergence_shares(0), None);
    assert_eq!(influence.ranking(), [1, 0]);
}

#[test]
fn shares_of_negative_influences_are_absolute_and_keep_the_sign() {
    let mut model = two_agents();
    assert_eq!(influence(&model).unwrap().sign, None);
    // u = (¾, ¼), D = (0.2, −0.5), I = (0.15, −0.125): the net sum 0.025 would give shares of 600 and −500 %.
    model.evidence = Evidence::from_rows(vec![0.2, -0.5], 2, 1).unwrap();
    let found = influence(&model).unwrap();
    let share = found.share.as_ref().unwrap();
    assert!((share[0] - 0.15 / 0.275).abs() < 1e-14 && (share[1] - 0.125 / 0.275).abs() < 1e-14);
    assert!((share.iter().sum::<f64>() - 1.0).abs() < 1e-14);
    assert_eq!(found.sign, Some(vec![1, -1]));
    assert!((found.signed_share().unwrap()[1] + 0.125 / 0.275).abs() < 1e-14);
    let mut ranking = crate::Ranking::from_influence(&model, &found).unwrap();
    ranking
        .add_intervals(
            &crate::evaluate::Intervals::new(vec![(0.4, 0.7), (-0.6, 0.1)], vec![(1, 1), (2, 2)], vec![1.0, 0.0]),
            &model.roster,
        )
        .unwrap();
    let last = &ranking.agents[1];
    assert_eq!((last.sign, last.share_low, last.share_high), (Some(-1), Some(-0.1), Some(0.6)));
    assert_eq!(last.signed_interval(), Some((-0.6, 0.1)));
    // All influences negative: shares remain; all zero: there are none.
    model.evidence = Evidence::from_rows(vec![-0.2, -0.5], 2, 1).unwrap();
    assert!(influence(&model).unwrap().share.is_some_and(|share| (share.iter().sum::<f64>() - 1.0).abs() < 1e-14));
    model.evidence = Evidence::from_rows(vec![0.0, 0.0], 2, 1).unwrap();
    assert_eq!(influence(&model).unwrap().share, None);
}

/// Note P1: with θ* = θ_j' the definition gives L̂[k,j] − L̂[k,j'], not the printed sum.
#[test]
fn informativeness_has_the_corrected_sign_for_any_truth() {
    for truth in 0..4 {
        let params =
            WorldParams { truth, hypotheses: 4, agents: 6, steps: 1, edge_probability: 0.6, ..Default::default() };
        let model = World::new(params).unwrap().truth();
        let influence = influence(&model).unwrap();
        for (agent, likelihood) in model.likelihoods.as_ref().unwrap().iter().enumerate() {
            let crate::model::Likelihood::Discrete { probabilities } = likelihood else { panic!("a coin") };
            for hypothesis in 0..4 {
                let kl: f64 = probabilities.iter().map(|row| row[truth] * (row[truth] / row[hypothesis]).ln()).sum();
                assert!((influence.divergences[agent][hypothesis] - kl).abs() < 1e-14);
            }
        }
    }
}

#[test]
fn the_truth_is_read_off_the_evidence_when_the_model_does_not_say() {
    let mut model = two_agents();
    model.truth = None;
    model.evidence = Evidence::from_rows(vec![-0.2, 0.1], 2, 1).unwrap();
    let influence = influence(&model).unwrap();
    assert_eq!((influence.truth, influence.agreement), (1, 0.5));
    assert_eq!(influence.contrarians.len(), 1);
    assert!((influence.contrarians[0].margin - 0.1).abs() < 1e-15);
    assert_eq!(influence.negative(), [1]);
}

#[test]
fn contrarians_have_a_margin_in_standard_errors() {
    let mut model = two_agents();
    model.evidence = Evidence::from_rows(vec![-0.5, 1.0], 2, 1).unwrap();
    model.diagnostics.evidence_steps = Some(100);
    let found = influence(&model).unwrap().contrarians;
    assert_eq!((found.len(), found[0].agent, found[0].believes), (1, 0, 1));
    // Standard error 1/√100.
    assert!((found[0].standard_errors.unwrap() - 5.0).abs() < 1e-12);
}

#[test]
fn series_and_factorisation_agree() {
    let params = WorldParams { agents: 30, steps: 1, ..Default::default() };
    let model = World::new(params).unwrap().truth();
    for adaptation in [1e-4, 0.05, 0.7] {
        let direct = Attribution::new(&model.combination, adaptation).unwrap();
        let mut series = Attribution::new(&model.combination, adaptation).unwrap();
        series.lu = None;
        for agent in [0, 7] {
            for (a, b) in direct.sources_of(agent).iter().zip(series.sources_of(agent)) {
                assert!((a - b).abs() < 1e-11, "{a} {b}");
            }
            for (a, b) in direct.reach_of(agent).iter().zip(series.reach_of(agent)) {
                assert!((a - b).abs() < 1e-11, "{a} {b}");
            }
        }
    }
}

#[test]
fn attribution_is_the_sum_over_hops_and_tends_to_centrality() {
    let model =
        World::new(WorldParams { agents: 12, steps: 1, edge_probability: 0.3, ..Default::default() }).unwrap().truth();
    let sources = Attribution::from_model(&model).unwrap().sources_of(3);
    assert!((sources.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let hops = by_hops(&model.combination, model.adaptation, 3, 2000);
    for (agent, source) in sources.iter().enumerate() {
        let sum: f64 = hops.iter().map(|hop| hop[agent]).sum();
        assert!((sum - source).abs() < 1e-12);
    }
    let centrality = model.combination.centrality().unwrap().values;
    let limit = Attribution::new(&model.combination, 1e-7).unwrap().network();
    assert!(limit.iter().zip(&centrality).all(|(a, b)| (a - b).abs() < 1e-6));
}

#[test]
fn what_if_by_hand() {
    let model = two_agents();
    // Alone, agent 1 listens to itself: its expected belief is its own evidence, 1.
    let gone = what_if(&model, 0, &Intervention::Remove).unwrap();
    assert_eq!(gone.others, [1]);
    assert!((gone.after[0][0] - 1.0).abs() < 1e-15);
    // Beside a neutral agent: Λ = ½·0.7·Λ + ½·1, so Λ = 1/1.3.
    let neutral = what_if(&model, 0, &Intervention::Freeze(vec![0.0])).unwrap();
    assert!((neutral.after[0][0] - 0.5 / 0.65).abs() < 1e-15);
    // Beside one frozen at 2: the source grows by ½·0.3·2.
    let frozen = what_if(&model, 0, &Intervention::Freeze(vec![2.0])).unwrap();
    assert!((frozen.after[0][0] - 0.8 / 0.65).abs() < 1e-15);
    assert!(what_if(&model, 0, &Intervention::Freeze(vec![])).is_err());
    // Now: Λ solves the two equations Λ0 = ½(0.9Λ0 + 0.1Λ1) + 0.1, Λ1 = ½(0.3Λ0 + 0.7Λ1) + 0.5.
    let (a, b) = (neutral.before[0][0], gone.belief(0));
    let own = (a - 0.35 * a - 0.5) / 0.15;
    assert!((0.55 * own - 0.05 * a - 0.1).abs() < 1e-14);
    assert!((b[1] - 1.0 / (1.0 + (-1.0f64).exp())).abs() < 1e-15);
}

/// The largest difference between removals one by one and all at once.
fn removal_gap(model: &Model) -> f64 {
    let everybody: Vec<usize> = (0..model.combination.agents()).collect();
    let mut removals = Removals::new(model).unwrap();
    let direct = removals.without_each(&everybody).unwrap();
    removals.inverse = None;
    let settled = removals.without_each(&everybody).unwrap();
    let mut gap = 0.0f64;
    for (agent, (direct, settled)) in direct.iter().zip(&settled).enumerate() {
        let wanted = what_if(model, agent, &Intervention::Remove).unwrap();
        assert_eq!((&direct.others, &direct.stranded), (&wanted.others, &wanted.stranded));
        assert_eq!((&settled.others, &settled.stranded), (&wanted.others, &wanted.stranded));
        for ratio in 0..wanted.after.len() {
            for met in [direct, settled] {
                let after = met.after[ratio].iter().zip(&wanted.after[ratio]);
                let pairs = met.before[ratio].iter().zip(&wanted.before[ratio]).chain(after);
                gap = pairs.fold(gap, |gap, (a, b)| gap.max((a - b).abs()));
            }
        }
    }
    gap
}

#[test]
fn all_removals_at_once_are_those_one_by_one() {
    use crate::graph::Rule;
    for (seed, agents, edge_probability, rule) in
        [(1, 2, 0.9, Rule::Random), (2, 12, 0.3, Rule::Random), (3, 40, 0.1, Rule::Uniform), (4, 40, 1.0, Rule::Random)]
    {
        let influential = 2;
        let params = WorldParams { agents, steps: 1, edge_probability, seed, rule, influential, ..Default::default() };
        let mut model = World::new(params).unwrap().truth();
        for adaptation in [1e-4, 0.1, 0.9] {
            model.adaptation = adaptation;
            let gap = removal_gap(&model);
            assert!(gap < 1e-9, "{agents} agents, δ {adaptation}: {gap:e}");
        }
    }
    // A star: everybody hears the hub, some nothing else.
    let mut triplets = vec![(0, 0, 1.0)];
    triplets.extend((1..30).map(|listener| (0, listener, if listener < 5 { 1.0 } else { 0.9 })));
    triplets.extend((5..30).map(|listener| (listener, listener, 0.1)));
    let params = WorldParams { agents: 30, steps: 1, ..Default::default() };
    let mut model = World::new(params).unwrap().truth();
    model.combination = Combination::from_triplets(triplets, 30).unwrap();
    let gap = removal_gap(&model);
    assert!(gap < 1e-9, "star: {gap:e}");
    assert_eq!(Removals::new(&model).unwrap().without_each(&[0]).unwrap()[0].stranded, [1, 2, 3, 4]);
}

#[test]
fn many_at_once_are_those_one_by_one() {
    let model = World::new(WorldParams { agents: 50, steps: 1, ..Default::default() }).unwrap().truth();
    let mut attribution = Attribution::from_model(&model).unwrap();
    let chosen: Vec<usize> = (0..50).rev().collect();
    let wanted: Vec<[Vec<f64>; 2]> =
        chosen.iter().map(|&agent| [attribution.sources_of(agent), attribution.reach_of(agent)]).collect();
    for _ in 0..2 {
        let (sources, reach) = (attribution.sources_of_many(&chosen), attribution.reach_of_many(&chosen));
        for (wanted, met) in wanted.iter().zip(sources.iter().zip(&reach)) {
            let pairs = wanted[0].iter().zip(met.0).chain(wanted[1].iter().zip(met.1));
            assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-9));
        }
        attribution.lu = None;
    }
    let paths = Paths::new(&model.combination, model.adaptation);
    let all = strongest_paths(&model.combination, model.adaptation, 7);
    assert_eq!(paths.between(&[3, 49, 7], 7), [all[3].clone(), all[49].clone(), all[7].clone()]);
}

#[test]
fn listeners_left_alone_are_named() {
    let mut model = two_agents();
    model.combination = Combination::from_columns(vec![1.0, 0.0, 1.0, 0.0], 2).unwrap();
    assert_eq!(what_if(&model, 0, &Intervention::Remove).unwrap().stranded, [1]);
}

#[test]
fn error_probability_by_hand() {
    // A = I: each agent is alone, Λ has mean L̄ and variance δ²R/(1 − (1−δ)²) = R/3.
    let mut model = two_agents();
    model.combination = Combination::from_columns(vec![1.0, 0.0, 0.0, 1.0], 2).unwrap();
    let all = error_probabilities(&model, 0).unwrap();
    for (agent, (mean, variance)) in [(0.2, 1.0 / 3.0), (1.0, 4.0 / 3.0f64)].into_iter().enumerate() {
        let wanted = 0.5 * erfc(mean / (2.0 * variance).sqrt());
        assert!((all[agent] - wanted).abs() < 1e-12);
        assert!((error_probability(&model, 0, agent).unwrap() - wanted).abs() < 1e-12);
    }
    model.innovation = None;
    assert!(error_probabilities(&model, 0).unwrap_err().to_string().contains("innovation"));
}

#[test]
fn error_probability_meets_the_simulated_rate() {
    let params = WorldParams {
        agents: 8,
        edge_probability: 0.4,
        hypotheses: 4,
        truth: 1,
        steps: 200_000,
        influential_scale: 0.2,
        adaptation: 0.2,
        likelihoods: crate::simulate::Likelihoods::Gaussian { dimension: 3 },
        ..Default::default()
    };
    let mut world = World::new(params).unwrap();
    let truth = world.truth();
    let all = error_probabilities(&truth, 1).unwrap();
    for (agent, probability) in all.iter().enumerate() {
        assert!((error_probability(&truth, 1, agent).unwrap() - probability).abs() < 1e-6);
    }
    let mut errors = [0usize; 8];
    for _ in 0..200_000 {
        let frame = world.next_frame().unwrap();
        for (agent, errors) in errors.iter_mut().enumerate() {
            let row: Vec<f64> = frame[agent..].iter().step_by(8).copied().collect();
            *errors += usize::from(likeliest(&row) != 1);
        }
    }
    // Beliefs are exactly Gaussian here; 200 000 correlated steps leave a standard error of about 0.003.
    for (agent, errors) in errors.iter().enumerate() {
        let rate = *errors as f64 / 200_000.0;
        assert!((rate - all[agent]).abs() < 0.015, "agent {agent}: {rate} against {}", all[agent]);
    }
}

#[test]
fn orthants_by_hand() {
    // Two coordinates of correlation r at mean zero: 1/4 + asin(r)/2π.
    for r in [-0.9, 0.0, 0.5, 1.0f64] {
        let covariance = Mat::from_fn(2, 2, |a, b| if a == b { 1.0 } else { r });
        let wanted = 0.25 + r.asin() / std::f64::consts::TAU;
        let met = all_positive(&[0.0, 0.0], &covariance);
        assert!((met - wanted).abs() < 2e-4, "{r}: {met} {wanted}");
    }
}

proptest! {
    #[test]
    fn paths_beat_every_single_edge(seed in 0u64..200) {
        let params = WorldParams { agents: 10, steps: 1, edge_probability: 0.4, seed, rule: crate::graph::Rule::Random, ..Default::default() };
        let truth = World::new(params).unwrap().truth();
        let paths = strongest_paths(&truth.combination, 0.1, 4);
        for (speaker, weight) in truth.combination.listener(4) {
            let path = paths[speaker].as_ref().unwrap();
            if speaker != 4 {
                prop_assert!(path.strength >= 0.9 * weight - 1e-12);
            }
            let product: f64 = path.agents.windows(2).map(|hop| 0.9 * truth.combination.weight(hop[0], hop[1])).product();
            prop_assert!((product - path.strength).abs() < 1e-12);
        }
    }
}
