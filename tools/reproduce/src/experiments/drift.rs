//! Figure 6: the error of the learned weights when the topology or the true state changes.

use crate::Error;
use crate::claim::{ClaimStatus, NONE, PaperClaim};
use crate::curves::{SeedRange, curve, even, final_mean, mean, reference, twice};
use crate::experiment::{ExperimentContext, ExperimentResult, NamedFigure};
use crate::simulation::{self, PaperNetwork};
use headwater::Frame;
use headwater::learn::gsl::{Gsl, GslParams};
use headwater::learn::track::{TrackParams, Tracker};
use headwater::model::ChangeKind;
use headwater::simulate::{ScheduledChange, WorldParams};
use headwater::words::number;
use headwater_report::{Axis, Chart, ChartSeries, Figure};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The paper's drift: how often, and with which probability an entry flips.
const EVERY: usize = 1000;
const FLIPS: f64 = 0.005;

/// When the state changes, and to which.
const TURN: usize = 35_000;
const TURNED: usize = 3;

/// Points of a drawn curve.
const POINTS: usize = 200;

/// Results of one seed: error curves of the paper's learner by step size and of ours, and the changes ours detected.
#[derive(Serialize, Deserialize)]
struct DriftErrors {
    paper: Vec<Vec<f64>>,
    ours: Vec<f64>,
    changes: usize,
    detected: usize,
    /// Steps from the first changed frame to its detection.
    delays: Vec<f64>,
    false_alarms: usize,
}

pub(crate) fn topology(context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
    let network = PaperNetwork::find(context.released)?;
    let (seeds, steps, rates) = (context.seeds(), context.pick(40_000, 120_000), [0.1, 0.3]);
    let keys: Vec<String> = seeds.iter().map(|seed| format!("seed-{seed}")).collect();
    let change = ScheduledChange::Topology { every: EVERY, probability: FLIPS };
    let found: Vec<DriftErrors> =
        context.jobs.all(&keys, |index| follow(&network, change, steps, &rates, seeds[index]))?;
    let drawn = even(steps, POINTS);
    let mut series = Vec::new();
    let (mut theirs, mut apart) = (Vec::new(), 0);
    for (file, name) in
        [("graph_w50_perturbe_slow_001", "authors, first"), ("graph_w50_perturbe_slow_001_3", "authors, second")]
    {
        if let Some(points) = context.released.curve(file)? {
            apart = common_divisor(apart, &jumps(&points));
            let late: Vec<f64> = points.iter().filter(|(step, _)| *step > 50_000.0).map(|(_, error)| *error).collect();
            theirs.push(mean(&late));
            let within: Vec<(f64, f64)> = points.into_iter().filter(|(step, _)| *step <= steps as f64).collect();
            series.push(reference(name, &within, 250));
        }
    }
    for (index, rate) in rates.iter().enumerate() {
        let name = format!("the paper's learner, μ = {rate}");
        series.push(curve(&name, &drawn, found.iter().map(|errors| &errors.paper[index])));
    }
    series.push(curve("ours (tracker)", &drawn, found.iter().map(|errors| &errors.ours)));
    let late = |curve: &Vec<f64>| mean(&curve[curve.len() / 2..]);
    let ends: Vec<SeedRange> = (0..rates.len())
        .map(|index| SeedRange::from_values(found.iter().map(|errors| late(&errors.paper[index]))))
        .collect();
    let ours =
        SeedRange::from_values(found.iter().flat_map(|errors| errors.ours[errors.ours.len() / 2..].iter().copied()));
    let (changes, detected, delays, false_alarms) = reports(&found);
    let numbers = json!({
        "network": network.description(), "seeds": seeds.len(), "steps": steps,
        "paper_mean_over_second_half": rates.iter().zip(&ends).map(|(rate, end)| (rate.to_string(), json!(end))).collect::<serde_json::Map<_, _>>(),
        "authors_mean_after_50000": theirs,
        "ours_over_second_half": ours,
        "changes": changes, "detected": detected, "delay": delays, "false_alarms": false_alarms,
    });
    let adapts = ends.iter().all(|end| end.median < 1.0) && early(&found, 1) < early(&found, 0);
    // Their curves show when their topology changed.
    let other = theirs.is_empty() || apart <= EVERY;
    let status = match (adapts, other) {
        (true, true) => ClaimStatus::Reproduced,
        (true, false) => ClaimStatus::PartlyReproduced,
        _ => ClaimStatus::NotReproduced,
    };
    let authors = match theirs.is_empty() {
        true => NONE.to_owned(),
        false => format!(
            "mean after step 50 000: {}; all jumps of the error occur at multiples of {apart} steps",
            theirs.iter().map(|error| number(*error)).collect::<Vec<_>>().join(" and ")
        ),
    };
    let reached = rates.iter().zip(&ends).map(|(rate, end)| format!("μ = {rate}: {}", number(end.median)));
    let claim = PaperClaim {
        authors,
        formula: reached.collect::<Vec<_>>().join("; ") + " (mean over the second half)",
        ours: format!(
            "{detected} of {changes} changes detected, median delay in steps {} (at most {}); {false_alarms} false alarms; error {}",
            delays.median,
            delays.high,
            number(ours.median)
        ),
        explanation: format!(
            "over the first tenth of the steps the mean error is {} with μ = {} and {} with μ = {}; the changes behind the released curves are ten times rarer than the figure states, so these curves are lower between their jumps",
            number(early(&found, 0)),
            rates[0],
            number(early(&found, 1)),
            rates[1]
        ),
        ..PaperClaim::new(
            "The learner tracks a topology that changes every 1000 steps; a larger step size adapts faster (Fig. 6a)",
            status,
        )
    };
    let figure = figure("Topology changes every 1000 steps", series);
    let caption = format!(
        "Squared error of A on {} while entries flip with probability 0.5 % every 1000 steps. Medians and ranges of {} seeds; grey: the authors' released curves, whose step sizes are not documented and whose changes are rarer.",
        network.description(),
        seeds.len()
    );
    Ok(ExperimentResult {
        figures: vec![NamedFigure { stem: "topology-drift".into(), caption, figure }],
        numbers,
        claims: vec![claim],
    })
}

/// Steps at which the error rises by more than a quarter from one record to the next.
fn jumps(points: &[(f64, f64)]) -> Vec<usize> {
    points.windows(2).filter(|pair| pair[1].1 > 1.25 * pair[0].1).map(|pair| pair[1].0 as usize).collect()
}

/// The greatest common divisor of these steps.
fn common_divisor(first: usize, steps: &[usize]) -> usize {
    let gcd = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    steps.iter().fold(first, |divisor, &step| gcd(step, divisor))
}

/// Median error over the first tenth of the drawn steps.
fn early(found: &[DriftErrors], index: usize) -> f64 {
    SeedRange::from_values(found.iter().map(|errors| mean(&errors.paper[index][..POINTS / 10]))).median
}

pub(crate) fn state(context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
    let network = PaperNetwork::find(context.released)?;
    let (seeds, steps) = (context.seeds(), 70_000);
    let keys: Vec<String> = seeds.iter().map(|seed| format!("seed-{seed}")).collect();
    let change = ScheduledChange::State { at: TURN, to: Some(TURNED) };
    let found: Vec<DriftErrors> =
        context.jobs.all(&keys, |index| follow(&network, change, steps, &[0.1], seeds[index]))?;
    let drawn = even(steps, POINTS);
    let mut series = Vec::new();
    let theirs = context.released.curve("graph_w50_perturbe_state")?;
    series.extend(theirs.as_ref().map(|points| reference("authors", points, 250)));
    series.push(curve("the paper's learner, μ = 0.1", &drawn, found.iter().map(|errors| &errors.paper[0])));
    series.push(curve("ours (tracker)", &drawn, found.iter().map(|errors| &errors.ours)));
    let turn = drawn.iter().position(|step| *step >= TURN).unwrap_or_default();
    let near = |errors: &DriftErrors, range: std::ops::Range<usize>| mean(&errors.paper[0][range]);
    let before = SeedRange::from_values(found.iter().map(|errors| near(errors, turn - 6..turn)));
    let after = SeedRange::from_values(found.iter().map(|errors| near(errors, turn + 1..turn + 7)));
    let end = SeedRange::from_values(found.iter().map(|errors| mean(&errors.paper[0][POINTS - 14..])));
    let ours = SeedRange::from_values(found.iter().flat_map(|errors| errors.ours[4..].iter().copied()));
    let (changes, detected, delays, false_alarms) = reports(&found);
    let last = theirs.as_ref().map(|points| final_mean(points, 5_000.0));
    let numbers = json!({
        "network": network.description(), "seeds": seeds.len(), "turn": TURN,
        "paper_before": before, "paper_after": after, "paper_final": end, "authors_final": last,
        "ours": ours, "changes": changes, "detected": detected, "delay": delays, "false_alarms": false_alarms,
    });
    let claim = PaperClaim {
        authors: last.map_or(NONE.into(), |last| format!("{} at the end", number(last))),
        formula: format!(
            "{} just before, {} just after, {} at the end",
            number(before.median),
            number(after.median),
            number(end.median)
        ),
        ours: format!(
            "detected in {detected} of {changes} simulations, median delay in steps {} (at most {}); {false_alarms} false alarms; error at most {}",
            delays.median,
            delays.high,
            number(ours.high)
        ),
        explanation: format!("here the state changes at step {TURN}; the authors do not document when theirs does"),
        ..PaperClaim::new(
            "A change of the true state does not disturb the learning of the weights (Fig. 6b)",
            ClaimStatus::when(after.median < 1.2 * before.median && end.median < before.median),
        )
    };
    let figure = figure("The true state changes at step 35 000", series);
    let caption = format!(
        "Squared error of A on {} when the true state changes halfway. Medians and ranges of {} seeds; grey: the authors' released curve.",
        network.description(),
        seeds.len()
    );
    Ok(ExperimentResult {
        figures: vec![NamedFigure { stem: "state-drift".into(), caption, figure }],
        numbers,
        claims: vec![claim],
    })
}

fn figure(title: &str, series: Vec<ChartSeries>) -> Figure {
    let chart = Chart { title: title.to_owned(), x: Axis::linear("step i"), y: Axis::log("‖A_i − A‖²"), series };
    let panels = twice(&chart, (1e-2, 10.0), (1e-31, 30.0));
    Figure { title: "Error of the learned weights under change".into(), panels, columns: 2 }
}

/// Number of changes, of detected ones, the delays, and the number of false alarms.
fn reports(found: &[DriftErrors]) -> (usize, usize, SeedRange, usize) {
    let sum = |of: fn(&DriftErrors) -> usize| found.iter().map(of).sum::<usize>();
    let delays = SeedRange::from_values(found.iter().flat_map(|errors| errors.delays.iter().copied()));
    (sum(|errors| errors.changes), sum(|errors| errors.detected), delays, sum(|errors| errors.false_alarms))
}

/// A report within so many steps after a change is a detection of it.
const WITHIN: usize = 200;

fn follow(
    network: &PaperNetwork,
    change: ScheduledChange,
    steps: usize,
    rates: &[f64],
    seed: u64,
) -> Result<DriftErrors, Error> {
    let mut world = network.world(WorldParams { changes: vec![change], ..simulation::released(seed, steps) })?;
    let roster = world.roster().clone();
    let params = |rate: &f64| GslParams { learning_rate: *rate, ..GslParams::default() };
    let mut learners: Vec<Gsl> =
        rates.iter().map(|rate| Gsl::new(roster.clone(), params(rate))).collect::<Result<_, _>>()?;
    let mut tracker = Tracker::new(roster, TrackParams::default())?;
    let mut errors = DriftErrors {
        paper: vec![Vec::new(); rates.len()],
        ours: Vec::new(),
        changes: 0,
        detected: 0,
        delays: Vec::new(),
        false_alarms: 0,
    };
    let mut drawn = even(steps, POINTS).into_iter().peekable();
    let mut reported = Vec::new();
    for step in 1..=steps {
        let frame = world.next_frame()?;
        let frame = Frame::new(tracker.roster(), frame)?;
        for learner in &mut learners {
            learner.observe(&frame)?;
        }
        reported.extend(tracker.observe(&frame)?.changes);
        if drawn.next_if_eq(&step).is_some() {
            let truth = world.truth().combination.to_columns();
            for (curve, learner) in errors.paper.iter_mut().zip(&learners) {
                curve.push(learner.distance(&truth));
            }
            let learned = tracker.model()?.combination.to_columns();
            errors.ours.push(learned.iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).sum());
        }
    }
    reported.extend(tracker.flush());
    let wanted = match change {
        ScheduledChange::State { .. } => ChangeKind::State,
        _ => ChangeKind::Topology,
    };
    let events: Vec<usize> = world.events().iter().map(|event| event.step).collect();
    errors.changes = events.len();
    let mut open = events;
    for report in reported {
        let detects = |event: &usize| report.kind == wanted && (*event..*event + WITHIN).contains(&report.step);
        match open.iter().position(detects) {
            Some(place) => errors.delays.push((report.step - open.remove(place)) as f64),
            None => errors.false_alarms += 1,
        }
    }
    errors.detected = errors.delays.len();
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_show_the_interval_between_changes() {
        let curve: Vec<(f64, f64)> =
            [1.0, 0.9, 2.0, 1.9, 1.8, 3.0].iter().enumerate().map(|(n, e)| (n as f64 * 500.0, *e)).collect();
        assert_eq!(jumps(&curve), [1000, 2500]);
        assert_eq!(common_divisor(0, &jumps(&curve)), 500);
        assert_eq!(common_divisor(300, &[600, 900]), 300);
    }
}
