//! Figure 3: the error of the learned evidence, as a rolling mean over 50 steps.

use crate::Error;
use crate::claim::{ClaimStatus, NONE, PaperClaim};
use crate::curves::{SeedRange, curve, final_mean, mean, reference, spaced, twice};
use crate::experiment::{ExperimentContext, ExperimentResult, NamedFigure};
use crate::simulation::{self, CHECKPOINTS, PRINTED, PaperNetwork, evidence_distance, until};
use headwater::words::number;
use headwater_report::{Axis, Chart, ChartSeries, Figure};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Steps of the authors' curves.
const STEPS: usize = 70_000;

/// The paper's rolling mean.
const ROLLING: usize = 50;

/// Points of a drawn curve.
const POINTS: usize = 100;

/// Steps after which every symbol has usually been observed.
const BY: usize = 200;

/// Results of one seed: a curve per window, and ours.
#[derive(Serialize, Deserialize)]
struct EvidenceErrors {
    curves: Vec<Vec<f64>>,
    ours: Vec<f64>,
    /// Trace of the covariance of the private evidence: the mean squared error of a single observation.
    trace: f64,
}

pub(crate) fn run(context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
    let network = PaperNetwork::find(context.released)?;
    let seeds = context.seeds();
    let keys: Vec<String> = seeds.iter().map(|seed| format!("seed-{seed}")).collect();
    let found: Vec<EvidenceErrors> = context.jobs.all(&keys, |index| one(&network, seeds[index]))?;
    let mut series: Vec<ChartSeries> = Vec::new();
    let mut theirs = Vec::new();
    for (window, _) in PRINTED {
        let points = context.released.curve(&format!("L_w{window}"))?;
        theirs.push(points.as_ref().map(|points| final_mean(points, 5_000.0)));
        series.extend(points.map(|points| reference(&format!("authors, M = {window}"), &points, 150)));
    }
    for (index, (window, rate)) in PRINTED.into_iter().enumerate() {
        let name = format!("M = {window}, μ = {rate}");
        series.push(curve(&name, &drawn(window), found.iter().map(|errors| &errors.curves[index])));
    }
    series.push(curve("ours (whitened)", &CHECKPOINTS, found.iter().map(|errors| &errors.ours)));
    let chart = Chart {
        title: "rolling mean over 50 steps".into(),
        x: Axis::log("step i"),
        y: Axis::log("‖L̂_i − L̄‖²"),
        series,
    };
    let panels = twice(&chart, (1e-3, 300.0), (1e-31, 300.0));
    let figure = Figure { title: "Error of the learned evidence".into(), panels, columns: 2 };
    // The last ten drawn points lie within the last few thousand steps; each is a mean of 50.
    let late = |curve: &Vec<f64>| mean(&curve[curve.len().saturating_sub(10)..]);
    let ends: Vec<SeedRange> = (0..PRINTED.len())
        .map(|index| SeedRange::from_values(found.iter().map(|errors| late(&errors.curves[index]))))
        .collect();
    let by = CHECKPOINTS.iter().position(|steps| *steps == BY).unwrap_or_default();
    let early = SeedRange::from_values(found.iter().filter_map(|errors| errors.ours.get(by).copied()));
    let numbers = json!({
        "network": network.description(),
        "seeds": seeds.len(),
        "final_error": PRINTED.iter().zip(&ends).map(|((window, _), end)| (format!("M = {window}"), json!(end))).collect::<serde_json::Map<_, _>>(),
        "authors_final_error": PRINTED.iter().zip(&theirs).map(|((window, _), end)| (format!("M = {window}"), json!(end))).collect::<serde_json::Map<_, _>>(),
        "ours_by_step_200": early,
    });
    let listed = |values: Vec<Option<f64>>| {
        let shown = values
            .into_iter()
            .zip(PRINTED)
            .map(|(value, (window, _))| format!("M = {window}: {}", value.map_or(NONE.to_owned(), number)));
        shown.collect::<Vec<_>>().join(", ")
    };
    let claim = PaperClaim {
        authors: listed(theirs.clone()),
        formula: listed(ends.iter().map(|end| Some(end.median)).collect()),
        ours: format!("{} after {BY} steps, at most {}", number(early.median), number(early.high)),
        explanation: "the mean of M independent observations has variance Tr(R)/M however well the weights are learned; our estimate is exact once every possible symbol of an agent has been observed".into(),
        ..PaperClaim::new(
            "A larger window M gives a smaller error of the evidence (Fig. 3)",
            ClaimStatus::when(ends.windows(2).all(|pair| pair[0].median > pair[1].median)),
        )
    };
    let trace = found[0].trace;
    let floors = PRINTED.map(|(window, _)| trace / window as f64);
    let below = theirs.iter().zip(floors).any(|(met, floor)| met.is_some_and(|met| met < 0.7 * floor));
    let size = PaperClaim {
        authors: listed(theirs),
        formula: listed(ends.iter().map(|end| Some(end.median)).collect()),
        ours: format!("{} after {BY} steps", number(early.median)),
        explanation: format!(
            "the mean squared error of a mean of M independent observations is at least Tr(R)/M ({}); the released curves lie below this bound, so they do not come from the estimator as printed (the released code stops updating its window and divides M differences by M + 1)",
            listed(floors.map(Some).to_vec())
        ),
        ..PaperClaim::new(
            "The size of these errors (Fig. 3)",
            if below { ClaimStatus::NotReproduced } else { ClaimStatus::Reproduced },
        )
    };
    let caption = format!(
        "Squared error of the evidence on {}. Lines are medians over {} seeds, bands run from the smallest to the largest; grey: the authors' released curves.",
        network.description(),
        seeds.len()
    );
    Ok(ExperimentResult {
        figures: vec![NamedFigure { stem: "evidence-error".into(), caption, figure }],
        numbers,
        claims: vec![claim, size],
    })
}

/// Steps at which the rolling mean is drawn.
fn drawn(window: usize) -> Vec<usize> {
    spaced(window + 2 + ROLLING, STEPS, POINTS)
}

fn one(network: &PaperNetwork, seed: u64) -> Result<EvidenceErrors, Error> {
    let (panel, truth) = network.run(simulation::released(seed, STEPS))?;
    let ratios = truth.evidence.ratios();
    let variances = |agent: usize| -> f64 {
        let covariance = truth.innovation.as_ref().map_or(&[][..], |spread| spread.agent(agent));
        covariance.iter().step_by(ratios + 1).sum()
    };
    let trace = (0..truth.evidence.agents()).map(variances).sum();
    let mut errors = EvidenceErrors { curves: Vec::new(), ours: Vec::new(), trace };
    for (window, rate) in PRINTED {
        let mut learner = simulation::gsl(&panel, window, rate)?;
        let mut points = Vec::new();
        // The last 50 errors, as a ring: where drawn steps are close together their means share steps.
        let mut recent = vec![0.0; ROLLING];
        for step in drawn(window) {
            let from = step.saturating_sub(ROLLING).max(learner.position().0);
            until(&mut learner, &panel, from)?;
            for now in from + 1..=step {
                until(&mut learner, &panel, now)?;
                recent[now % ROLLING] = evidence_distance(&learner.evidence()?, &truth.evidence);
            }
            points.push(mean(&recent));
        }
        errors.curves.push(points);
    }
    for steps in CHECKPOINTS {
        let model = simulation::ours(&panel, steps)?;
        errors.ours.extend(model.map(|model| evidence_distance(&model.evidence, &truth.evidence)));
    }
    Ok(errors)
}
