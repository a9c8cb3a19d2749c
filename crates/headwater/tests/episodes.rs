//! Learners on several episodes: what adds up, what does not cross, and what a single episode must not change.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater::evaluate::{Bootstrap, CircularShifts, shiftable};
use headwater::learn::gsl::{Gsl, GslParams};
use headwater::learn::posterior::SamplingParams;
use headwater::learn::released::ReleasedParams;
use headwater::learn::state_space::{StateSpaceLearner, StateSpaceParams, state_space};
use headwater::learn::track::TrackParams;
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::model::{Status, WeightKind};
use headwater::panel::Times;
use headwater::progress::Progress;
use headwater::simulate::noisy::{NoisyWorld, noisy};
use headwater::simulate::{WorldParams, simulate};
use headwater::{Error, Method, Model, Panel, fit};

/// Stretches of a panel as episodes.
fn cut(panel: &Panel, stretches: &[std::ops::Range<usize>]) -> Panel {
    let steps = || stretches.iter().flat_map(Clone::clone);
    let cells = steps().flat_map(|step| panel.frame(step).cells().to_vec()).collect();
    let posts = steps().flat_map(|step| (0..panel.agents()).map(move |agent| panel.posts(step, agent))).collect();
    let times = Times::Steps(stretches.iter().flat_map(|range| 0..range.len() as i64).collect());
    let joined = Panel::new(panel.roster().clone(), times, cells, Some(posts)).unwrap();
    let episodes = stretches.iter().enumerate();
    joined.in_episodes(episodes.map(|(number, range)| (format!("episode {number}"), range.len())).collect()).unwrap()
}

fn fitted(panel: &Panel, method: impl Into<Method>) -> Result<Model, Error> {
    fit::fit(panel, &method.into(), &Progress::default())
}

fn squared_error(met: &Model, truth: &Model) -> f64 {
    let wanted = truth.combination.to_columns();
    met.combination.to_columns().iter().zip(wanted).map(|(met, wanted)| (met - wanted).powi(2)).sum()
}

fn noisy_world(steps: usize) -> (Panel, Model) {
    noisy(&NoisyWorld { agents: 6, steps, noise: 0.3, seed: 5, ..NoisyWorld::default() }).unwrap()
}

#[test]
fn a_single_named_episode_changes_no_bit() {
    let (panel, _) = simulate(&WorldParams { steps: 60, agents: 8, ..WorldParams::default() }).unwrap();
    let named = |panel: &Panel| panel.clone().in_episodes(vec![("x".to_owned(), panel.steps())]).unwrap();
    let gsl = GslParams { window: 5, adaptation: 0.05, ..GslParams::default() };
    for method in [Method::Whitened(WhitenedParams::default()), Method::Gsl(gsl)] {
        assert_eq!(fitted(&named(&panel), method.clone()).unwrap(), fitted(&panel, method).unwrap());
    }
    let (panel, _) = noisy_world(80);
    let params = StateSpaceParams { rounds: 8, ..StateSpaceParams::default() };
    let (with, without) = (fitted(&named(&panel), params.clone()).unwrap(), fitted(&panel, params).unwrap());
    assert_eq!(with, without);
    assert!(without.diagnostics.episodes.is_none());
    let draws = [&named(&panel), &panel].map(|panel| Bootstrap::new(panel, &with, 3).unwrap().draw(4).unwrap());
    assert_eq!(draws[0], draws[1]);
}

#[test]
fn exact_recovery_from_short_episodes() {
    let (panel, truth) = simulate(&WorldParams { steps: 260, ..WorldParams::default() }).unwrap();
    // Twelve conversations of nine steps each, far apart; one of them would not do.
    let stretches: Vec<_> = (0..12).map(|number| 20 * number..20 * number + 9).collect();
    let episodes = cut(&panel, &stretches);
    let model = whitened(&episodes, &WhitenedParams::default()).unwrap();
    assert!(squared_error(&model, &truth) < 1e-8, "{}", squared_error(&model, &truth));
    assert!(model.diagnostics.columns.iter().all(|column| column.status != Status::Statistical));
    assert!(squared_error(&whitened(&panel.slice(0..9).unwrap(), &WhitenedParams::default()).unwrap(), &truth) > 0.1);
    // With a graph the moments are gathered listener by listener.
    let support = (0..truth.combination.agents())
        .map(|listener| truth.combination.listener(listener).map(|(speaker, _)| speaker).collect());
    let on_graph = WhitenedParams { support: Some(support.collect()), ..WhitenedParams::default() };
    let model = whitened(&episodes, &on_graph).unwrap();
    assert!(squared_error(&model, &truth) < 1e-8);
    let found = fitted(&episodes, on_graph).unwrap().diagnostics.skill.unwrap();
    // Three of twelve episodes are held out, without their first steps.
    assert_eq!(found.steps, 3 * 8);
    assert!(found.against_own_past > 0.0 && found.against_persistence > 0.0, "{found:?}");
}

#[test]
fn evidence_of_episodes_is_theirs_and_their_mean_is_the_models() {
    let (panel, _) = simulate(&WorldParams { steps: 200, agents: 6, ..WorldParams::default() }).unwrap();
    let params = WhitenedParams { symbols: false, adaptation: Some(0.05), ..WhitenedParams::default() };
    let model = whitened(&cut(&panel, &[0..60, 100..200]), &params).unwrap();
    let episodes = model.diagnostics.episodes.as_ref().unwrap();
    assert_eq!((episodes[0].episode.as_str(), episodes[0].steps, episodes[1].steps), ("episode 0", 60, 100));
    for agent in 0..6 {
        for ratio in 0..4 {
            // By definition: the mean of what its speakers do not explain.
            let residual = |step: usize| {
                let (before, now) = (panel.frame(step - 1), panel.frame(step));
                let heard: f64 = model.combination.listener(agent).map(|(k, a)| a * before[(k, ratio)]).sum();
                (now[(agent, ratio)] - 0.95 * heard) / 0.05
            };
            let (one, other): (f64, f64) = ((1..60).map(residual).sum(), (101..200).map(residual).sum());
            let close = |met: f64, wanted: f64| (met - wanted).abs() < 1e-9 * (1.0 + wanted.abs());
            assert!(close(episodes[0].evidence[agent][ratio], one / 59.0));
            assert!(close(episodes[1].evidence[agent][ratio], other / 99.0));
            assert!(close(model.evidence.agent(agent)[ratio], (one + other) / 158.0));
        }
    }
}

#[test]
fn no_update_crosses_an_episode() {
    let (panel, _) = simulate(&WorldParams { steps: 90, agents: 5, ..WorldParams::default() }).unwrap();
    let episodes = cut(&panel, &[0..25, 40..43, 50..90]);
    for params in [
        GslParams { window: 4, adaptation: 0.05, ..GslParams::default() },
        GslParams { window: 4, adaptation: 0.05, batch: 3, ..GslParams::default() },
    ] {
        let mut whole = Gsl::new(episodes.roster().clone(), params.clone()).unwrap();
        // Pieces of any length give the same bits.
        while whole.advance(&episodes, 7).unwrap().is_some() {}
        assert_eq!(whole.position(), (68, 0));
        let mut streamed = Gsl::new(episodes.roster().clone(), params).unwrap();
        for range in [0..25, 40..43, 50..90] {
            range.for_each(|step| drop(streamed.observe(&panel.frame(step)).unwrap()));
            streamed.begin_episode().unwrap();
        }
        assert_eq!(whole.combination(), streamed.combination());
        // The step from one episode to the next is not learned from.
        let crossed = panel.clone();
        let mut joined = Gsl::new(crossed.roster().clone(), whole.params().clone()).unwrap();
        for step in (0..25).chain(40..43).chain(50..90) {
            joined.observe(&crossed.frame(step)).unwrap();
        }
        assert_ne!(whole.combination(), joined.combination());
        let model = fitted(&episodes, whole.params().clone()).unwrap();
        assert_eq!(model.diagnostics.episodes.as_ref().unwrap().len(), 3);
    }
    let long = GslParams { window: 60, adaptation: 0.05, ..GslParams::default() };
    assert!(matches!(fitted(&episodes, long), Err(Error::NotReady { seen: 40, .. })));
}

#[test]
fn the_state_space_fit_takes_episodes() {
    let (panel, truth) = noisy_world(900);
    let params = StateSpaceParams { rounds: 40, sampling: None, ..StateSpaceParams::default() };
    let long = cut(&panel, &[0..300, 310..600, 620..900]);
    let mut learner = StateSpaceLearner::new(&long, &params).unwrap();
    let rounds: Vec<f64> = (0..6).map(|_| learner.round().unwrap().log_likelihood).collect();
    assert!(rounds.windows(2).all(|pair| pair[1] > pair[0] - 1e-6 * pair[0].abs()), "{rounds:?}");
    let model = state_space(&long, &params).unwrap();
    let whole = state_space(&panel, &params).unwrap();
    let (met, wanted) = (squared_error(&model, &truth), squared_error(&whole, &truth));
    assert!(met < 1.5 * wanted + 0.05, "{met} against {wanted} from one series");
    let episodes = model.diagnostics.episodes.as_ref().unwrap();
    assert_eq!(episodes.len(), 3);
    for agent in 0..6 {
        let spoken = |number: usize| {
            let range = long.episodes().range(number);
            range.filter(|step| long.posts(*step, agent) > 0).count() as f64
        };
        let all: f64 = (0..3).map(spoken).sum();
        let mean: f64 = (0..3).map(|number| spoken(number) / all * episodes[number].evidence[agent][0]).sum();
        assert!((model.evidence.agent(agent)[0] - mean).abs() < 1e-9 * (1.0 + mean.abs()));
    }
    // Short episodes share level and evidence; agents may be absent from some.
    let mut short: Vec<_> = (0..60).map(|number| 14 * number..14 * number + 6).collect();
    short[3] = 42..46;
    let short = cut(&panel, &short);
    let mut posts: Vec<u32> = (0..short.steps() * 6).map(|cell| short.posts(cell / 6, cell % 6)).collect();
    short.episodes().range(0).for_each(|step| posts[step * 6 + 2] = 0);
    let lengths: Vec<(String, usize)> =
        short.episodes().ranges().enumerate().map(|(number, range)| (number.to_string(), range.len())).collect();
    let absent =
        Panel::new(short.roster().clone(), short.times().clone(), short.cells().to_vec(), Some(posts)).unwrap();
    let absent = absent.in_episodes(lengths).unwrap();
    assert!(absent.absences().contains(&(2, 0)));
    let model = fitted(&absent, params.clone()).unwrap();
    assert!(model.diagnostics.episodes.is_none(), "a few steps do not determine the evidence of an episode");
    let skill = model.diagnostics.skill.unwrap();
    assert_eq!(skill.steps, (48..60).map(|number| absent.episodes().range(number).len() - 1).sum::<usize>());
    assert!(skill.against_persistence > 0.0 && skill.beyond_common.is_some(), "{skill:?}");
    let common = StateSpaceParams { common: Some(vec![0; 6]), ..params };
    assert!(fitted(&absent, common).unwrap().diagnostics.smoothing.unwrap().common.is_some());
    // Whole episodes are resampled.
    let bootstrap = Bootstrap::new(&absent, &model, 1).unwrap();
    let draws: Vec<_> = (0..20).map(|number| bootstrap.draw(number).unwrap()).collect();
    assert_ne!(draws[0], draws[1]);
    assert_eq!(draws[5], bootstrap.draw(5).unwrap());
    // Methods that repeat beliefs have none to repeat where an agent is absent.
    for method in
        [Method::Whitened(WhitenedParams::default()), Method::Gsl(GslParams { window: 2, ..GslParams::default() })]
    {
        let refused = fitted(&absent, method);
        assert!(matches!(&refused, Err(Error::Absent { episode, .. }) if episode == "0"), "{refused:?}");
    }
}

#[test]
fn the_posterior_of_strengths_adds_up_over_episodes() {
    let world =
        NoisyWorld { agents: 5, steps: 400, noise: 0.2, edge_probability: 0.6, seed: 2, ..NoisyWorld::strengths() };
    let (panel, truth) = noisy(&world).unwrap();
    let episodes = cut(&panel, &[0..130, 140..270, 280..400]);
    let support: Vec<Vec<usize>> =
        (0..5).map(|listener| truth.combination.listener(listener).map(|(speaker, _)| speaker).collect()).collect();
    let sampling = SamplingParams { draws: 60, chains: 8, seed: 4 };
    let params = StateSpaceParams {
        support: Some(support),
        weights: Some(WeightKind::Strengths),
        rounds: 20,
        sampling: Some(sampling),
        ..StateSpaceParams::default()
    };
    let model = fitted(&episodes, params.clone()).unwrap();
    assert!(model.diagnostics.posterior.is_some());
    let found = model.diagnostics.episodes.as_ref().unwrap();
    assert_eq!(found.iter().map(|episode| episode.steps).collect::<Vec<_>>(), [130, 130, 120]);
    let whole = fitted(&panel, params).unwrap();
    let (met, wanted) = (squared_error(&model, &truth), squared_error(&whole, &truth));
    assert!(met < 2.0 * wanted + 0.1, "{met} against {wanted} from one series");
    for agent in 0..5 {
        let spoken = |number: usize| {
            let range = episodes.episodes().range(number);
            range.filter(|step| episodes.posts(*step, agent) > 0).count() as f64
        };
        let all: f64 = (0..3).map(spoken).sum();
        let mean: f64 = (0..3).map(|number| spoken(number) / all * found[number].evidence[agent][0]).sum();
        let evidence = model.evidence.agent(agent)[0];
        assert!((evidence - mean).abs() < 1e-9 * (1.0 + mean.abs()), "{evidence} {mean}");
    }
}

#[test]
fn what_episodes_do_not_allow_says_why() {
    let (panel, _) = simulate(&WorldParams { steps: 80, agents: 5, ..WorldParams::default() }).unwrap();
    let threes = cut(&panel, &[0..3, 10..13, 20..23, 30..33]);
    let twos = cut(&panel, &[0..2, 10..12, 20..22]);
    let long = cut(&panel, &[0..30, 40..80]);
    let said = |result: Result<Model, Error>| result.unwrap_err().to_string();
    assert!(said(fitted(&twos, WhitenedParams::default())).contains("every episode has two steps"));
    assert!(said(fitted(&long, ReleasedParams::default())).contains("not several episodes"));
    assert!(said(fitted(&long, TrackParams::default())).contains("the beliefs have 2 episodes"));
    let shifts = shiftable(&threes).unwrap_err().to_string();
    assert!(shifts.contains("\"episode 0\" has 3 steps, too few for circular shifts"), "{shifts}");
    let model = fitted(&threes, WhitenedParams { ridge: 0.1, ..WhitenedParams::default() }).unwrap();
    assert!(CircularShifts::for_model(&threes, &model, 1).draw(0).is_err());
    assert!(Bootstrap::new(&threes, &model, 1).unwrap().draw(0).is_ok(), "four episodes are resampled");
    let three = cut(&panel, &[0..3, 10..13, 20..23]);
    let model = fitted(&three, WhitenedParams { ridge: 0.1, ..WhitenedParams::default() }).unwrap();
    assert!(Bootstrap::new(&three, &model, 1).unwrap_err().to_string().contains("at least 4 such episodes"));
    shiftable(&long).unwrap();
    let model = fitted(&long, WhitenedParams::default()).unwrap();
    let shift = CircularShifts::for_model(&long, &model, 1).draw(0).unwrap();
    assert_ne!(shift, CircularShifts::for_model(&long, &model, 1).observed().unwrap());
    assert!(Bootstrap::new(&long, &model, 1).unwrap().draw(0).is_ok(), "blocks within two long episodes");
}
