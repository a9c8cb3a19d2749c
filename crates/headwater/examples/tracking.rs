//! How soon changes are noticed, how often falsely, and how soon the network is exact again: the table of
//! docs/studies/change-detection.md.
//!
//! `cargo run --release -p headwater --example tracking [worlds]` (default 20).

#![expect(clippy::print_stdout, reason = "a study prints its table")]

use headwater::learn::track::{TrackParams, Tracker};
use headwater::model::{ChangeKind, DetectedChange};
use headwater::simulate::{Likelihoods, ScheduledChange, World, WorldEvent, WorldParams};
use headwater::{Combination, Error, Frame};
use rayon::prelude::*;

/// What happened in one world.
#[derive(Default)]
struct TrackingOutcome {
    events: usize,
    /// Steps from a change to its report.
    delays: Vec<usize>,
    /// The same in units of 1/K.
    relative: Vec<f64>,
    missed: usize,
    /// Noticed more than 5 steps after a flip, or more than 60 after a turn with K ≥ 0.6.
    late: usize,
    false_reports: usize,
    /// Listeners named that did not change, and changed ones not named.
    wrong_listeners: usize,
    /// Squared error of A 150 steps after a change, or at any time without one.
    errors: Vec<f64>,
    certified: f64,
}

fn error(a: &Combination, b: &Combination) -> f64 {
    a.to_columns().iter().zip(b.to_columns()).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Tracks one world; a report belongs to the change of its kind that it follows within `patience` steps.
fn study(params: &WorldParams, kind: ChangeKind, patience: usize) -> Result<TrackingOutcome, Error> {
    let mut world = World::new(params.clone())?;
    let mut tracker = Tracker::new(world.truth().roster, TrackParams::default())?;
    let mut outcome = TrackingOutcome::default();
    let mut reports = Vec::new();
    let mut before = world.truth();
    let mut strength = Vec::new();
    for step in 0..params.steps {
        let frame = world.next_frame()?.to_vec();
        reports.extend(tracker.observe(&Frame::new(world.roster(), &frame)?)?.changes);
        let truth = world.truth();
        if world.events().last().is_some_and(|event| event.step == step && event.kind == "state") {
            let (from, to) = (before.truth.map_or(0, |t| t.hypothesis), truth.truth.map_or(0, |t| t.hypothesis));
            // K = Σ_k D_k(new‖old), from the evidence under the new truth.
            let gap = |agent: usize| truth.evidence.against(agent, from) - truth.evidence.against(agent, to);
            strength.push((0..params.agents).map(gap).sum::<f64>());
        }
        let last = world.events().last().map_or(0, |event| event.step);
        let check = if kind == ChangeKind::Topology { step == last + 150 } else { step > 200 && step % 100 == 0 };
        if check {
            outcome.errors.push(error(&tracker.model()?.combination, &truth.combination));
        }
        before = truth;
    }
    reports.extend(tracker.flush());
    let events: Vec<&WorldEvent> = world.events().iter().collect();
    outcome.events = events.len();
    let belongs = |report: &DetectedChange, number: usize| {
        let until = events.get(number + 1).map_or(params.steps, |next| next.step).min(events[number].step + patience);
        report.kind == kind && (events[number].step..until).contains(&report.step)
    };
    for (number, event) in events.iter().enumerate() {
        let found: Vec<&DetectedChange> = reports.iter().filter(|report| belongs(report, number)).collect();
        let Some(first) = found.first() else {
            outcome.missed += 1;
            continue;
        };
        outcome.delays.push(first.step - event.step);
        if let Some(strength) = strength.get(number) {
            outcome.relative.push((first.step - event.step) as f64 * strength);
            outcome.late += usize::from(*strength >= 0.6 && first.step - event.step > 60);
        } else {
            outcome.late += usize::from(first.step - event.step > 5);
        }
        if kind == ChangeKind::Topology {
            let named: Vec<String> = found.iter().flat_map(|report| before.roster.names(&report.listeners)).collect();
            let missing = event.agents.iter().filter(|agent| !named.contains(agent)).count();
            let extra = named.iter().filter(|agent| !event.agents.contains(agent)).count();
            outcome.wrong_listeners += missing + extra;
        }
    }
    let stray = |report: &&DetectedChange| !(0..events.len()).any(|number| belongs(report, number));
    outcome.false_reports = reports.iter().filter(stray).count();
    let columns = tracker.model()?.diagnostics.columns;
    let certified = columns.iter().filter(|column| column.status == headwater::model::Status::Certified).count();
    outcome.certified = certified as f64 / columns.len() as f64;
    Ok(outcome)
}

fn main() -> Result<(), Error> {
    let worlds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let base = WorldParams { steps: 10_000, ..WorldParams::default() };
    let topology = vec![ScheduledChange::Topology { every: 1000, probability: 0.005 }];
    let state = vec![ScheduledChange::State { at: 5000, to: None }];
    let released = |world: WorldParams| WorldParams { likelihoods: Likelihoods::Released, truth: 1, ..world };
    let flips = WorldParams { changes: topology, ..base.clone() };
    let turns = WorldParams { changes: state, ..base.clone() };
    let gaussian = |world: &WorldParams, dimension| WorldParams {
        likelihoods: Likelihoods::Gaussian { dimension },
        ..world.clone()
    };
    let cases = [
        ("topology flips, appendix", flips.clone(), ChangeKind::Topology),
        ("topology flips, released", released(flips.clone()), ChangeKind::Topology),
        ("topology flips, two hypotheses", WorldParams { hypotheses: 2, ..flips.clone() }, ChangeKind::Topology),
        ("topology flips, gaussian 2", gaussian(&flips, 2), ChangeKind::Topology),
        ("topology flips, gaussian 4", gaussian(&flips, 4), ChangeKind::Topology),
        ("quiet, appendix", base.clone(), ChangeKind::Topology),
        ("quiet, released", released(base.clone()), ChangeKind::Topology),
        ("quiet, gaussian 2", gaussian(&base, 2), ChangeKind::Topology),
        ("quiet, gaussian 4", gaussian(&base, 4), ChangeKind::Topology),
        ("state turns, appendix", turns.clone(), ChangeKind::State),
        ("state turns, released", released(turns.clone()), ChangeKind::State),
        ("state turns, gaussian 2", gaussian(&turns, 2), ChangeKind::State),
        ("state turns, gaussian 4", gaussian(&turns, 4), ChangeKind::State),
    ];
    println!(
        "| world | changes | noticed | late | delay: median, largest | largest delay · K | false reports | listeners wrong | largest error | certified |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, params, kind) in cases {
        let patience = if kind == ChangeKind::Topology { 150 } else { 5000 };
        let outcomes: Result<Vec<TrackingOutcome>, Error> = (2000..2000 + worlds)
            .into_par_iter()
            .map(|seed| study(&WorldParams { seed, ..params.clone() }, kind, patience))
            .collect();
        let outcomes = outcomes?;
        let mut delays: Vec<usize> = outcomes.iter().flat_map(|outcome| outcome.delays.iter().copied()).collect();
        delays.sort_unstable();
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        println!(
            "| {name} | {} | {} | {} | {}, {} | {:.1} | {} | {} | {:.0e} | {:.0} % |",
            outcomes.iter().map(|outcome| outcome.events).sum::<usize>(),
            delays.len(),
            outcomes.iter().map(|outcome| outcome.late).sum::<usize>(),
            delays.get(delays.len() / 2).copied().unwrap_or(0),
            delays.last().copied().unwrap_or(0),
            most(&mut outcomes.iter().flat_map(|outcome| outcome.relative.iter().copied())),
            outcomes.iter().map(|outcome| outcome.false_reports).sum::<usize>(),
            outcomes.iter().map(|outcome| outcome.wrong_listeners).sum::<usize>(),
            most(&mut outcomes.iter().flat_map(|outcome| outcome.errors.iter().copied())),
            100.0 * outcomes.iter().map(|outcome| outcome.certified).sum::<f64>() / outcomes.len() as f64,
        );
    }
    Ok(())
}
