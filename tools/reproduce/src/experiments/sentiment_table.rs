//! Table 1: sample posts, with the paper's probabilities and those of our scorers.

use crate::Error;
use crate::claim::{ClaimStatus, NONE, PaperClaim};
use crate::experiment::{ExperimentContext, ExperimentResult, NamedFigure};
use headwater::words::number;
use headwater_report::{Axis, Chart, ChartSeries, Figure, FigurePanel, Point, Shape};
use headwater_score::{Builtin, ModelSource, Scorer};
use serde_json::json;

/// Sample posts of the paper and the probability of positive sentiment it prints for each.
const SAMPLES: [(&str, f64); 3] = [
    ("#Bitcoin for the win", 0.99),
    ("Unless otherwise stated, I am adding Bitcoin every week", 0.82),
    ("Bitcoin falls from $66K highs, Tesla down 3% after Elon Musk warns he could sell more #Bitcoin", 0.02),
];

/// Tolerance of a probability.
const TOLERANCE: f64 = 0.1;

pub(crate) fn run(context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
    let texts = SAMPLES.map(|(text, _)| text);
    let score = |scorer: &dyn Scorer| -> Result<Vec<f64>, Error> {
        Ok(scorer.score(&texts)?.into_iter().map(|sentiment| sentiment.score()).collect())
    };
    let builtin = score(&Builtin::new())?;
    let roberta = context
        .model
        .map(|folder| score(&*ModelSource::new(folder.to_string_lossy()).open(&mut |_, _, _| ())?))
        .transpose()?;
    let points = |values: &[f64]| values.iter().enumerate().map(|(x, y)| Point::new(x as f64, *y)).collect();
    let mut series = vec![
        ChartSeries::new("the paper", Shape::Bars, points(&SAMPLES.map(|(_, probability)| probability))),
        ChartSeries::new("builtin", Shape::Bars, points(&builtin)),
    ];
    series.extend(roberta.as_ref().map(|values| ChartSeries::new("roberta", Shape::Bars, points(values))));
    let chart = Chart {
        title: "positive / (negative + positive)".into(),
        x: Axis::named("sample post", (1..=SAMPLES.len()).map(|number| number.to_string()).collect()),
        y: Axis::linear("probability").between(0.0, 1.05),
        series,
    };
    let figure = Figure {
        title: "Sentiment of the paper's sample posts".into(),
        panels: vec![FigurePanel::Chart(chart)],
        columns: 1,
    };
    let claim = |(index, (text, paper)): (usize, &(&str, f64))| {
        let met = roberta.as_ref().map(|values| values[index]);
        let side = |value: f64| (value > 0.5) == (*paper > 0.5);
        let status = match met {
            Some(met) => ClaimStatus::when((met - paper).abs() <= TOLERANCE),
            None if side(builtin[index]) => ClaimStatus::PartlyReproduced,
            None => ClaimStatus::NotReproduced,
        };
        PaperClaim {
            formula: met.map_or(NONE.to_owned(), |met| format!("roberta: {}", number(met))),
            ours: format!("builtin: {}", number(builtin[index])),
            explanation: match met {
                Some(_) => "with the RoBERTa model that was given".to_owned(),
                None => "no RoBERTa model was given: only the side of 0.5 on which the probability lies is compared"
                    .to_owned(),
            },
            ..PaperClaim::new(&format!("p = {paper} for “{text}” (Table 1)"), status)
        }
    };
    let numbers = json!({
        "samples": texts,
        "paper": SAMPLES.map(|(_, probability)| probability),
        "builtin": builtin,
        "roberta": roberta,
    });
    let caption = "The paper's sample posts in its order: probabilities in the paper and by our scorers.".to_owned();
    let claims = SAMPLES.iter().enumerate().map(claim).collect();
    Ok(ExperimentResult {
        figures: vec![NamedFigure { stem: "sentiment-table".into(), caption, figure }],
        numbers,
        claims,
    })
}
