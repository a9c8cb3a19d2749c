//! Tracking: changes are noticed at once where everything is exact, and nothing is noticed that did not happen.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater::learn::track::{Memory, TrackParams, Tracker};
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::model::{ChangeKind, DetectedChange, Status};
use headwater::simulate::{Likelihoods, ScheduledChange, World, WorldParams, run, simulate};
use headwater::{Combination, Error, Frame, Model, Roster};

fn error(a: &Combination, b: &Combination) -> f64 {
    a.to_columns().iter().zip(b.to_columns()).map(|(a, b)| (a - b).powi(2)).sum()
}

/// All reports of a world, with the models known at some steps and the truth then.
fn follow(world: &mut World, tracking: TrackParams, at: &[usize]) -> (Vec<DetectedChange>, Vec<(Model, Model)>) {
    let mut tracker = Tracker::new(world.roster().clone(), tracking).unwrap();
    let (mut reports, mut models) = (Vec::new(), Vec::new());
    for step in 0..world.params().steps {
        let frame = world.next_frame().unwrap().to_vec();
        reports.extend(tracker.observe(&Frame::new(world.roster(), &frame).unwrap()).unwrap().changes);
        if at.contains(&step) {
            models.push((tracker.model().unwrap(), world.truth()));
        }
    }
    reports.extend(tracker.flush());
    (reports, models)
}

#[test]
fn flips_are_noticed_at_once_and_only_their_listeners_start_anew() {
    let coins = WorldParams::default();
    let released = WorldParams { likelihoods: Likelihoods::Released, truth: 1, ..WorldParams::default() };
    let gaussian = WorldParams { likelihoods: Likelihoods::Gaussian { dimension: 2 }, ..WorldParams::default() };
    for (base, seed) in [(&coins, 40), (&coins, 41), (&released, 42), (&gaussian, 43)] {
        let changes = vec![ScheduledChange::Topology { every: 1000, probability: 0.005 }];
        let params = WorldParams { steps: 3200, changes, seed, ..base.clone() };
        let mut world = World::new(params).unwrap();
        let (reports, models) = follow(&mut world, TrackParams::default(), &[999, 1003, 1150, 1999, 2150, 3150]);
        let events = world.events();
        assert_eq!(reports.len(), events.len(), "seed {seed}: {reports:?}");
        for (report, event) in reports.iter().zip(events) {
            assert_eq!(report.kind, ChangeKind::Topology);
            assert!(report.step - event.step <= 5 && report.since == event.step, "{report:?} {event:?}");
            let mut named = world.roster().names(&report.listeners);
            let mut changed = event.agents.clone();
            named.sort();
            changed.sort();
            assert_eq!(named, changed);
        }
        for position in [0, 2, 3, 4, 5] {
            let (model, truth) = &models[position];
            assert!(error(&model.combination, &truth.combination) < 1e-9, "seed {seed}, model {position}");
        }
        // Right after the change the others are as they were, to the bit, and still vouched for.
        let (before, after) = (&models[0].0, &models[1].0);
        let concerned: Vec<usize> =
            reports.iter().filter(|report| report.since == 1000).flat_map(|r| r.listeners.clone()).collect();
        for listener in (0..20).filter(|listener| !concerned.contains(listener)) {
            for speaker in 0..20 {
                assert_eq!(before.combination.weight(speaker, listener), after.combination.weight(speaker, listener));
            }
            assert_eq!(before.diagnostics.columns[listener], after.diagnostics.columns[listener]);
        }
        for &listener in &concerned {
            assert_eq!(after.diagnostics.columns[listener].status, Status::Statistical);
        }
    }
}

#[test]
fn nothing_is_noticed_where_nothing_happens() {
    let kinds = [
        Likelihoods::Appendix,
        Likelihoods::Released,
        Likelihoods::Gaussian { dimension: 2 },
        Likelihoods::Gaussian { dimension: 4 },
    ];
    for (number, likelihoods) in kinds.into_iter().enumerate() {
        for hypotheses in [2, 5] {
            let params = WorldParams {
                likelihoods,
                hypotheses,
                steps: 3000,
                truth: 1,
                seed: 60 + number as u64,
                ..WorldParams::default()
            };
            let (reports, _) = follow(&mut World::new(params).unwrap(), TrackParams::default(), &[]);
            assert!(reports.is_empty(), "{likelihoods:?}, {hypotheses} hypotheses: {reports:?}");
        }
    }
}

#[test]
fn a_turn_of_the_state_is_noticed_and_leaves_the_graph_alone() {
    for (seed, likelihoods) in
        [(70, Likelihoods::Appendix), (71, Likelihoods::Appendix), (72, Likelihoods::Gaussian { dimension: 2 })]
    {
        let changes = vec![ScheduledChange::State { at: 1500, to: Some(3) }];
        let params = WorldParams { likelihoods, steps: 3000, changes, seed, ..WorldParams::default() };
        let mut world = World::new(params).unwrap();
        let (reports, models) = follow(&mut world, TrackParams::default(), &[300, 1499, 1510, 1700, 2999]);
        let truth = &models[4].1;
        let strength: f64 =
            (0..20).map(|agent| truth.evidence.against(agent, 0) - truth.evidence.against(agent, 3)).sum();
        let patience = if strength >= 0.6 { 60 } else { (25.0 / strength) as usize };
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert_eq!((reports[0].kind, reports[0].truth, reports[0].listeners.len()), (ChangeKind::State, Some(3), 0));
        assert!((1500..=1500 + patience).contains(&reports[0].step), "K = {strength}: {:?}", reports[0]);
        for (model, truth) in &models {
            assert!(error(&model.combination, &truth.combination) < 1e-9);
        }
        // With the likelihoods known, the evidence under the new truth is known as soon as the turn is.
        if likelihoods == Likelihoods::Appendix {
            let gap =
                (0..20).map(|agent| (models[3].0.evidence.against(agent, 2) - truth.evidence.against(agent, 2)).abs());
            assert!(gap.fold(0.0, f64::max) < 1e-6);
            assert_eq!(models[3].0.truth.unwrap().hypothesis, 3);
        }
        assert_eq!(models[4].0.track.changes, reports);
        assert!(models[4].0.track.history.len() >= 2);
    }
}

#[test]
fn noisy_listeners_are_guarded_by_their_errors() {
    // Two hypotheses and Gaussian observations: no contrast is free of noise. Half of all edges flip at once.
    let changes = vec![ScheduledChange::Topology { every: 3000, probability: 0.5 }];
    let likelihoods = Likelihoods::Gaussian { dimension: 1 };
    let params = WorldParams {
        agents: 8,
        edge_probability: 0.5,
        hypotheses: 2,
        likelihoods,
        steps: 6000,
        changes,
        seed: 80,
        ..WorldParams::default()
    };
    let mut world = World::new(params).unwrap();
    let (reports, models) = follow(&mut world, TrackParams::default(), &[2999, 5999]);
    let topology: Vec<&DetectedChange> = reports.iter().filter(|report| report.kind == ChangeKind::Topology).collect();
    assert!(!topology.is_empty() && topology.iter().all(|report| report.step >= 3000), "{reports:?}");
    let (kept, truth) = &models[1];
    let stuck = error(&models[0].0.combination, &truth.combination);
    assert!(error(&kept.combination, &truth.combination) < 0.5 * stuck);
}

#[test]
fn forgetting_and_windows_follow_a_drift() {
    let changes = vec![ScheduledChange::Topology { every: 1500, probability: 0.3 }];
    let likelihoods = Likelihoods::Gaussian { dimension: 4 };
    let params = WorldParams {
        agents: 8,
        edge_probability: 0.5,
        likelihoods,
        steps: 3000,
        changes,
        seed: 81,
        ..WorldParams::default()
    };
    let mut world = World::new(params).unwrap();
    let panel = run(&mut world).unwrap();
    let truth = world.truth();
    let whole = error(&whitened(&panel, &WhitenedParams::default()).unwrap().combination, &truth.combination);
    for memory in [Memory::Forget(0.998), Memory::Recent(800), Memory::All] {
        let mut tracker =
            Tracker::new(panel.roster().clone(), TrackParams { memory, ..TrackParams::default() }).unwrap();
        for step in 0..panel.steps() {
            tracker.observe(&panel.frame(step)).unwrap();
        }
        let followed = error(&tracker.model().unwrap().combination, &truth.combination);
        assert!(followed < 0.5 * whole, "{memory:?}: {followed:.2e} against {whole:.2e}");
        let forecast = tracker.forecast(2400);
        assert_eq!(forecast.steps, 600);
        assert!(forecast.error < forecast.persistence);
    }
}

#[test]
fn a_tracker_on_a_quiet_stretch_agrees_with_the_learner() {
    let (panel, _) = simulate(&WorldParams { steps: 120, seed: 90, ..WorldParams::default() }).unwrap();
    let mut tracker = Tracker::new(panel.roster().clone(), TrackParams::default()).unwrap();
    for step in 0..panel.steps() {
        tracker.observe(&panel.frame(step)).unwrap();
    }
    let (followed, at_once) = (tracker.model().unwrap(), whitened(&panel, &WhitenedParams::default()).unwrap());
    assert!(error(&followed.combination, &at_once.combination) < 1e-18);
    assert!((followed.adaptation - at_once.adaptation).abs() < 1e-12);
    assert_eq!(followed.truth.unwrap().hypothesis, at_once.truth.unwrap().hypothesis);
    let gap = (0..20).map(|agent| (followed.evidence.against(agent, 1) - at_once.evidence.against(agent, 1)).abs());
    assert!(gap.fold(0.0, f64::max) < 1e-9);
}

#[test]
fn bad_frames_and_settings_are_refused() {
    let roster = || Roster::numbered(3, 2).unwrap();
    for memory in [Memory::Forget(0.0), Memory::Forget(1.0), Memory::Forget(f64::NAN), Memory::Recent(2)] {
        assert!(Tracker::new(roster(), TrackParams { memory, ..TrackParams::default() }).is_err());
    }
    assert!(Tracker::new(roster(), TrackParams { window: Some(3), ..TrackParams::default() }).is_err());
    let mut tracker = Tracker::new(roster(), TrackParams::default()).unwrap();
    let other = Roster::numbered(4, 2).unwrap();
    assert!(matches!(tracker.observe(&Frame::new(&other, &[0.0; 4]).unwrap()), Err(Error::Shape { .. })));
    assert!(tracker.observe(&Frame::new(&roster(), &[0.0, f64::NAN, 0.0]).unwrap()).is_err());
    assert!(matches!(tracker.model(), Err(Error::NotReady { .. })));
    // Nobody ever moves: no answer, and no panic.
    for _ in 0..300 {
        let update = tracker.observe(&Frame::new(&roster(), &[0.5, -0.5, 0.25]).unwrap()).unwrap();
        assert!(!update.ready && update.changes.is_empty());
    }
    assert_eq!(tracker.seen(), 300);
    assert!(tracker.model().is_err());
}

/// Saved after any number of frames and loaded again, a tracker goes on as if nothing had been: same reports, same bits.
#[test]
fn a_saved_tracker_goes_on() {
    let changes = vec![
        ScheduledChange::Topology { every: 150, probability: 0.02 },
        ScheduledChange::State { at: 260, to: Some(3) },
    ];
    let gaussian = WorldParams { likelihoods: Likelihoods::Gaussian { dimension: 4 }, ..WorldParams::default() };
    for base in [WorldParams::default(), gaussian] {
        let params = WorldParams { agents: 8, edge_probability: 0.4, steps: 400, changes: changes.clone(), ..base };
        let (panel, _) = simulate(&params).unwrap();
        for memory in [Memory::All, Memory::Forget(0.99)] {
            let params = TrackParams { memory, ..TrackParams::default() };
            let mut whole = Tracker::new(panel.roster().clone(), params.clone()).unwrap();
            let mut saved = Tracker::new(panel.roster().clone(), params).unwrap();
            for step in 0..panel.steps() {
                let frame = panel.frame(step);
                assert_eq!(whole.observe(&frame).unwrap(), saved.observe(&frame).unwrap(), "step {step}");
                if [0, 1, 37, 149, 152, 300].contains(&step) {
                    let mut bytes = Vec::new();
                    ciborium::into_writer(&saved, &mut bytes).unwrap();
                    saved = ciborium::from_reader(bytes.as_slice()).unwrap();
                }
            }
            assert_eq!(whole.model().unwrap(), saved.model().unwrap());
        }
    }
}
