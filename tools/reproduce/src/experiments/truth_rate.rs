//! Figure 5: how often one agent identifies the true state, for more and better informed agents in the network.

use crate::Error;
use crate::claim::{ClaimStatus, NONE, PaperClaim};
use crate::curves::{SeedRange, curve, spaced};
use crate::experiment::{ExperimentContext, ExperimentResult, NamedFigure};
use crate::simulation::{self, PaperNetwork, TRUTH};
use headwater::influence::error_probability;
use headwater::model::likeliest;
use headwater::simulate::WorldParams;
use headwater::words::number;
use headwater_report::{Axis, Chart, ChartSeries, Figure, FigurePanel, Point, Shape};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Name in the authors' file, number of influential agents, v of these.
const MODELS: [(&str, usize, f64); 4] =
    [("3inf", 3, 0.5), ("1inf", 1, 0.5), ("3inf_less", 3, 0.2), ("1inf_less", 1, 0.2)];

/// Steps of the authors' files.
const STEPS: usize = 40_000;

/// The agent whose rate is measured.
const AGENT: usize = 5;

/// Tolerance of a rate.
const TOLERANCE: f64 = 0.03;

/// Points of a drawn curve.
const POINTS: usize = 150;

/// Rates of one model and seed over time, and the prediction of the Gaussian approximation.
#[derive(Serialize, Deserialize)]
struct TruthRates {
    rates: Vec<f64>,
    predicted: f64,
}

pub(crate) fn run(context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
    let network = PaperNetwork::find(context.released)?;
    let seeds = context.seeds();
    let tasks: Vec<(usize, u64)> =
        (0..MODELS.len()).flat_map(|model| seeds.iter().map(move |&seed| (model, seed))).collect();
    let keys: Vec<String> = tasks.iter().map(|(model, seed)| format!("{}-seed-{seed}", MODELS[*model].0)).collect();
    let found: Vec<TruthRates> = context.jobs.all(&keys, |index| one(&network, tasks[index].0, tasks[index].1))?;
    let steps = spaced(10, STEPS, POINTS);
    let mut series = Vec::new();
    let mut ends = Vec::new();
    let mut rows = serde_json::Map::new();
    for (position, (name, influential, scale)) in MODELS.into_iter().enumerate() {
        let found = &found[position * seeds.len()..(position + 1) * seeds.len()];
        let words = format!("{influential} influential, v = {scale}");
        series.push(curve(&words, &steps, found.iter().map(|rates| &rates.rates)));
        let end = SeedRange::from_values(found.iter().filter_map(|rates| rates.rates.last().copied()));
        let predicted = found[0].predicted;
        let authors = context.released.truth_rate(name)?;
        rows.insert(name.to_owned(), json!({ "rate": end, "predicted": predicted, "authors": authors }));
        ends.push((words, end, predicted, authors));
    }
    for (words, _, _, authors) in &ends {
        let line = |rate: &f64| vec![Point::new(steps[0] as f64, *rate), Point::new(STEPS as f64, *rate)];
        series.extend(
            authors.as_ref().map(|rate| ChartSeries::new(&format!("authors, {words}"), Shape::Reference, line(rate))),
        );
    }
    let chart = Chart {
        title: format!("agent {AGENT}, running share of steps"),
        x: Axis::log("step i"),
        y: Axis::linear("share").between(0.0, 1.0),
        series,
    };
    let figure = Figure {
        title: "Rate of identifying the true state".into(),
        panels: vec![FigurePanel::Chart(chart)],
        columns: 1,
    };
    let order = PaperClaim {
        formula: ends
            .iter()
            .map(|(words, end, _, _)| format!("{words}: {}", number(end.median)))
            .collect::<Vec<_>>()
            .join("; "),
        ours: "not applicable (no learning)".into(),
        explanation: "the rate increases with the number and the informativeness of the influential agents".into(),
        ..PaperClaim::new(
            "Well-informed agents raise the rate at which the network identifies the true state (Fig. 5)",
            ClaimStatus::when(ends.windows(2).all(|pair| pair[0].1.median > pair[1].1.median)),
        )
    };
    let mut claims = vec![order];
    for (words, end, predicted, authors) in &ends {
        let Some(authors) = authors else { continue };
        claims.push(PaperClaim {
            authors: number(*authors),
            formula: format!("{} ({} to {})", number(end.median), number(end.low), number(end.high)),
            ours: format!("{} predicted by the Gaussian approximation", number(*predicted)),
            explanation: format!(
                "agent {AGENT}, {STEPS} steps, median of {} seeds; tolerance {TOLERANCE}",
                seeds.len()
            ),
            ..PaperClaim::new(
                &format!("Rate with {words} (Fig. 5)"),
                ClaimStatus::when((end.median - authors).abs() <= TOLERANCE),
            )
        });
    }
    if let (Some(none), Some(_)) = (context.released.truth_rate("0inf")?, context.released.truth_rate("3inf")?) {
        claims.push(PaperClaim {
            authors: format!("{} over 120 001 steps; its first 10 000 values are those of \"3inf\"", number(none)),
            formula: NONE.into(),
            explanation: "the released file appears to be a longer run of \"3inf\", not a network without influential agents, so there is nothing to compare".into(),
            ..PaperClaim::new("A network without influential agents (released file \"0inf\", not in the figure)", ClaimStatus::NotReproduced)
        });
    }
    let numbers = json!({ "network": network.description(), "seeds": seeds.len(), "agent": AGENT, "steps": STEPS, "models": rows });
    let caption = format!(
        "Running share of steps at which agent {AGENT} identifies the true state, on {}; bands show the range over {} seeds; grey: the authors' final rates.",
        network.description(),
        seeds.len()
    );
    Ok(ExperimentResult { figures: vec![NamedFigure { stem: "truth-rate".into(), caption, figure }], numbers, claims })
}

fn one(network: &PaperNetwork, model: usize, seed: u64) -> Result<TruthRates, Error> {
    let (_, influential, influential_scale) = MODELS[model];
    let params = WorldParams { influential, influential_scale, burn_in: 0, ..simulation::released(seed, STEPS) };
    let mut world = network.world(params)?;
    let agents = world.roster().agents().len();
    let predicted = 1.0 - error_probability(&world.truth(), TRUTH, AGENT)?;
    let mut drawn = spaced(10, STEPS, POINTS).into_iter().peekable();
    let (mut right, mut rates) = (0usize, Vec::new());
    for step in 1..=STEPS {
        let frame = world.next_frame()?;
        let opinion: Vec<f64> = frame[AGENT..].iter().step_by(agents).copied().collect();
        right += usize::from(likeliest(&opinion) == TRUTH);
        if drawn.next_if_eq(&step).is_some() {
            rates.push(right as f64 / step as f64);
        }
    }
    Ok(TruthRates { rates, predicted })
}
