//! Figure 1: the true combination matrix beside the learned ones.

use crate::Error;
use crate::claim::{ClaimStatus, NONE, PaperClaim};
use crate::experiment::{ExperimentContext, ExperimentResult, NamedFigure};
use crate::simulation::{self, PaperNetwork, distance, until};
use headwater::Combination;
use headwater::words::number;
use headwater_report::{Figure, FigurePanel, Heatmap};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// True and learned weights, column by column.
#[derive(Serialize, Deserialize)]
struct LearnedMatrices {
    truth: Vec<f64>,
    paper: Vec<f64>,
    ours: Vec<f64>,
}

/// Steps the paper's learner sees.
const STEPS: usize = 120_000;

/// Steps our learner sees.
const OUR_STEPS: usize = 80;

pub(crate) fn run(context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
    let network = PaperNetwork::find(context.released)?;
    let seed = context.seed;
    let found = context.jobs.all(&["learned".to_owned()], |_| {
        let (panel, truth) = network.run(simulation::released(seed, STEPS))?;
        let mut learner = simulation::gsl(&panel, 50, 0.1)?;
        until(&mut learner, &panel, STEPS)?;
        let ours = simulation::ours(&panel, OUR_STEPS)?.map(|model| model.combination.to_columns());
        Ok(LearnedMatrices {
            truth: truth.combination.to_columns(),
            paper: learner.combination().to_columns(),
            ours: ours.unwrap_or_default(),
        })
    })?;
    let LearnedMatrices { truth, paper, ours } = &found[0];
    let size = (truth.len() as f64).sqrt() as usize;
    let weights = |columns: &[f64]| Combination::from_columns(columns.to_vec(), size);
    let truth = weights(truth)?;
    let mut shown = vec![
        ("true", truth.clone()),
        ("the paper's learner, M = 50, 120 000 steps", weights(paper)?),
        ("ours, 80 steps", weights(ours)?),
    ];
    let released =
        context.released.matrix("matrix_21_w50.csv")?.map(|rows| simulation::combination(&rows)).transpose()?;
    if let Some(released) = released.filter(|released| released.agents() == size) {
        shown.insert(1, ("the authors' learned, M = 50", released));
    }
    let darkest = shown.iter().flat_map(|(_, weights)| weights.to_columns()).fold(0.0f64, |most, v| most.max(v.abs()));
    let heat = |(title, weights): &(&str, Combination)| {
        let row = |speaker: usize| (0..size).map(|listener| weights.weight(speaker, listener)).collect();
        FigurePanel::Heatmap(Heatmap {
            title: (*title).to_owned(),
            rows: "speaker".into(),
            columns: "listener".into(),
            cells: (0..size).map(row).collect(),
            darkest,
        })
    };
    let figure = Figure { title: "Combination matrix A".into(), panels: shown.iter().map(heat).collect(), columns: 2 };
    let measured = shown[1..].iter().map(|(name, weights)| {
        let (edge, rest) = separation(&truth, weights);
        json!({ "matrix": name, "squared_error": distance(weights, &truth), "smallest_on_an_edge": edge, "largest_off": rest })
    });
    let numbers = json!({ "network": network.description(), "seed": seed, "matrices": measured.collect::<Vec<_>>() });
    let words = |name: &str| match shown.iter().find(|(title, _)| title.starts_with(name)) {
        Some((_, weights)) => {
            let (edge, rest) = separation(&truth, weights);
            let separated = if edge > rest { "edges and non-edges separate" } else { "edges and non-edges overlap" };
            format!("squared error {}; {separated}", number(distance(weights, &truth)))
        }
        None => NONE.to_owned(),
    };
    let separated = |name: &str| {
        shown.iter().find(|(title, _)| title.starts_with(name)).is_some_and(|(_, weights)| {
            let (edge, rest) = separation(&truth, weights);
            edge > rest
        })
    };
    let claim = PaperClaim {
        authors: words("the authors'"),
        formula: words("the paper's"),
        ours: words("ours"),
        explanation:
            "criterion: the smallest weight learned for a true edge exceeds the largest learned for a missing one"
                .into(),
        ..PaperClaim::new(
            "\"An almost perfect recovery of the true combination weights\" with M = 50 (Fig. 1)",
            ClaimStatus::when(separated("the paper's")),
        )
    };
    let caption = format!(
        "True and learned combination matrices on {}; rows are speakers, columns listeners.",
        network.description()
    );
    Ok(ExperimentResult {
        figures: vec![NamedFigure { stem: "matrices".into(), caption, figure }],
        numbers,
        claims: vec![claim],
    })
}

/// The smallest weight on a true edge, and the largest elsewhere.
fn separation(truth: &Combination, learned: &Combination) -> (f64, f64) {
    let (mut edge, mut rest) = (f64::INFINITY, f64::NEG_INFINITY);
    for (wanted, met) in truth.to_columns().into_iter().zip(learned.to_columns()) {
        if wanted > 0.0 {
            edge = edge.min(met);
        } else {
            rest = rest.max(met.abs());
        }
    }
    (edge, rest)
}
