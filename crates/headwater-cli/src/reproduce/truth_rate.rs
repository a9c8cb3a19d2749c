//! Figure 5: how often one agent names the true state, with more and better informed agents in the network.

use super::stage::{self, Spread, Stage, TRUTH, curve, spaced};
use super::{Claim, NONE, Outcome, Plate, Run, Standing};
use crate::error::CliError;
use crate::terminal::number;
use headwater::influence::error_probability;
use headwater::model::likeliest;
use headwater::simulate::WorldParams;
use headwater_report::{Axis, Chart, Figure, Panel, Point, Series, Shape};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Name in the authors' file, number of influential agents, v of these.
const MODELS: [(&str, usize, f64); 4] =
    [("3inf", 3, 0.5), ("1inf", 1, 0.5), ("3inf_less", 3, 0.2), ("1inf_less", 1, 0.2)];

/// Steps of the authors' files.
const STEPS: usize = 40_000;

/// The agent that is watched.
const AGENT: usize = 5;

/// Rates this close agree.
const CLOSE: f64 = 0.03;

/// Points of a drawn curve.
const POINTS: usize = 150;

/// Rates of one model and seed along the way, and what a Gaussian with the world's own moments predicts.
#[derive(Serialize, Deserialize)]
struct Rates {
    rates: Vec<f64>,
    predicted: f64,
}

pub(super) fn run(run: &Run<'_>) -> Result<Outcome, CliError> {
    let stage = Stage::find(run.authors)?;
    let seeds = run.seeds();
    let tasks: Vec<(usize, u64)> =
        (0..MODELS.len()).flat_map(|model| seeds.iter().map(move |&seed| (model, seed))).collect();
    let keys: Vec<String> = tasks.iter().map(|(model, seed)| format!("{}-seed-{seed}", MODELS[*model].0)).collect();
    let found: Vec<Rates> = run.jobs.all(&keys, |index| one(&stage, tasks[index].0, tasks[index].1))?;
    let steps = spaced(10, STEPS, POINTS);
    let mut series = Vec::new();
    let mut ends = Vec::new();
    let mut rows = serde_json::Map::new();
    for (position, (name, influential, scale)) in MODELS.into_iter().enumerate() {
        let found = &found[position * seeds.len()..(position + 1) * seeds.len()];
        let words = format!("{influential} influential, v = {scale}");
        series.push(curve(&words, &steps, found.iter().map(|rates| &rates.rates)));
        let end = Spread::of(found.iter().filter_map(|rates| rates.rates.last().copied()));
        let predicted = found[0].predicted;
        let authors = run.authors.truth_rate(name)?;
        rows.insert(name.to_owned(), json!({ "rate": end, "predicted": predicted, "authors": authors }));
        ends.push((words, end, predicted, authors));
    }
    for (words, _, _, authors) in &ends {
        let line = |rate: &f64| vec![Point::new(steps[0] as f64, *rate), Point::new(STEPS as f64, *rate)];
        series.extend(
            authors.as_ref().map(|rate| Series::new(&format!("authors, {words}"), Shape::Reference, line(rate))),
        );
    }
    let chart = Chart {
        title: format!("agent {AGENT}, share of steps so far"),
        x: Axis::log("step i"),
        y: Axis::linear("share").between(0.0, 1.0),
        series,
    };
    let figure =
        Figure { title: "Rate of correctly named truth".into(), panels: vec![Panel::Chart(chart)], columns: 1 };
    let order = Claim {
        formula: ends
            .iter()
            .map(|(words, end, _, _)| format!("{words}: {}", number(end.median)))
            .collect::<Vec<_>>()
            .join("; "),
        ours: "no learning is involved".into(),
        why: "more and better informed agents, higher rate".into(),
        ..Claim::new(
            "The presence of well-informed agents makes the network name the truth more often (Fig. 5)",
            Standing::when(ends.windows(2).all(|pair| pair[0].1.median > pair[1].1.median)),
        )
    };
    let mut claims = vec![order];
    for (words, end, predicted, authors) in &ends {
        let Some(authors) = authors else { continue };
        claims.push(Claim {
            authors: number(*authors),
            formula: format!("{} ({} to {})", number(end.median), number(end.low), number(end.high)),
            ours: format!("{} predicted from the moments", number(*predicted)),
            why: format!(
                "agent {AGENT} over {STEPS} steps, median of {} seeds; within {CLOSE} counts as agreed",
                seeds.len()
            ),
            ..Claim::new(&format!("Rate with {words} (Fig. 5)"), Standing::when((end.median - authors).abs() <= CLOSE))
        });
    }
    if let (Some(none), Some(_)) = (run.authors.truth_rate("0inf")?, run.authors.truth_rate("3inf")?) {
        claims.push(Claim {
            authors: format!("{} over 120 001 steps; its first 10 000 values are those of \"3inf\"", number(none)),
            formula: NONE.into(),
            why: "the released file looks like a longer run of \"3inf\", not of a network without influential agents; nothing to compare with".into(),
            ..Claim::new("A network without influential agents (released file \"0inf\", not in the figure)", Standing::NotReproduced)
        });
    }
    let numbers =
        json!({ "network": stage.words(), "seeds": seeds.len(), "agent": AGENT, "steps": STEPS, "models": rows });
    let caption = format!(
        "Share of the steps so far at which agent {AGENT} names the true state, on {}; bands over {} seeds; grey: the authors' final rates.",
        stage.words(),
        seeds.len()
    );
    Ok(Outcome { plates: vec![Plate { stem: "truth-rate".into(), caption, figure }], numbers, claims })
}

fn one(stage: &Stage, model: usize, seed: u64) -> Result<Rates, CliError> {
    let (_, influential, influential_scale) = MODELS[model];
    let params = WorldParams { influential, influential_scale, burn_in: 0, ..stage::released(seed, STEPS) };
    let mut world = stage.world(params)?;
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
    Ok(Rates { rates, predicted })
}
