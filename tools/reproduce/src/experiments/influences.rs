//! Figure 4: influence shares, true and learned, with three and with one well-informed agent.

use crate::Error;
use crate::claim::{ClaimStatus, NONE, PaperClaim};
use crate::curves::SeedRange;
use crate::experiment::{ExperimentContext, ExperimentResult, NamedFigure};
use crate::simulation::{self, PaperNetwork, until};
use headwater::simulate::WorldParams;
use headwater::words::{number, percent};
use headwater::{Model, influence};
use headwater_report::{Axis, Chart, ChartSeries, Figure, FigurePanel, Point, Shape};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Influential agents in the two cases.
const CASES: [usize; 2] = [3, 1];

/// Steps the paper's learner sees, and our learner.
const STEPS: usize = 120_000;
const OUR_STEPS: usize = 200;

/// Influence shares of one seed and case.
#[derive(Serialize, Deserialize)]
struct InfluenceShares {
    truth: Vec<f64>,
    paper: Vec<f64>,
    ours: Vec<f64>,
}

pub(crate) fn run(context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
    let network = PaperNetwork::find(context.released)?;
    let seeds = context.seeds();
    let tasks: Vec<(usize, u64)> = CASES.iter().flat_map(|&case| seeds.iter().map(move |&seed| (case, seed))).collect();
    let keys: Vec<String> = tasks.iter().map(|(case, seed)| format!("influential-{case}-seed-{seed}")).collect();
    let found: Vec<InfluenceShares> = context.jobs.all(&keys, |index| one(&network, tasks[index].0, tasks[index].1))?;
    let mut panels = Vec::new();
    let mut claims = Vec::new();
    let mut numbers = serde_json::Map::new();
    for (position, &case) in CASES.iter().enumerate() {
        let found = &found[position * seeds.len()..(position + 1) * seeds.len()];
        let agents = found[0].truth.len();
        let bars = |of: fn(&InfluenceShares) -> &Vec<f64>| {
            let point =
                |agent: usize| SeedRange::from_values(found.iter().map(|shares| of(shares)[agent])).at(agent as f64);
            (0..agents).map(point).collect::<Vec<Point>>()
        };
        let truth: Vec<Point> = (0..agents).map(|agent| Point::new(agent as f64, found[0].truth[agent])).collect();
        let words = if case == 1 { "1 influential agent".to_owned() } else { format!("{case} influential agents") };
        panels.push(FigurePanel::Chart(Chart {
            title: words.clone(),
            x: Axis::named("agent", (0..agents).map(|agent| agent.to_string()).collect()),
            y: Axis::linear("share of influence"),
            series: vec![
                ChartSeries::new("true", Shape::Bars, truth),
                ChartSeries::new("the paper's learner, M = 50", Shape::Bars, bars(|shares| &shares.paper)),
                ChartSeries::new("ours, 200 steps", Shape::Bars, bars(|shares| &shares.ours)),
            ],
        }));
        let hits =
            |of: fn(&InfluenceShares) -> &Vec<f64>| found.iter().filter(|shares| leads(of(shares), case)).count();
        let l1 = |of: fn(&InfluenceShares) -> &Vec<f64>| {
            SeedRange::from_values(found.iter().map(|shares| l1_distance(of(shares), &shares.truth)))
        };
        let middle =
            |points: &[Point]| points[..case].iter().map(|point| percent(point.y)).collect::<Vec<_>>().join(", ");
        let (paper_hits, our_hits) = (hits(|shares| &shares.paper), hits(|shares| &shares.ours));
        // The median over seeds, agent by agent: do the influential ones rank first?
        let medians: Vec<f64> = bars(|shares| &shares.paper).iter().map(|point| point.y).collect();
        numbers.insert(
            format!("{case}_influential"),
            json!({
                "true_shares": found[0].truth,
                "paper_shares": medians,
                "our_shares": bars(|shares| &shares.ours).iter().map(|point| point.y).collect::<Vec<f64>>(),
                "paper_top_correct": format!("{paper_hits} of {}", seeds.len()),
                "our_top_correct": format!("{our_hits} of {}", seeds.len()),
                "paper_l1": l1(|shares| &shares.paper),
                "our_l1": l1(|shares| &shares.ours),
            }),
        );
        let status = match (paper_hits == seeds.len(), leads(&medians, case)) {
            (true, true) => ClaimStatus::Reproduced,
            (_, true) => ClaimStatus::PartlyReproduced,
            _ => ClaimStatus::NotReproduced,
        };
        let of_seeds = |hits: usize| format!("top {case} correct in {hits} of {} seeds", seeds.len());
        let true_shares: Vec<Point> = (0..case).map(|agent| Point::new(agent as f64, found[0].truth[agent])).collect();
        claims.push(PaperClaim {
            authors: authors(context, case, &found[0].truth)?,
            formula: format!(
                "{}; shares {} (true {})",
                of_seeds(paper_hits),
                middle(&bars(|shares| &shares.paper)),
                middle(&true_shares)
            ),
            ours: format!("{}; L1 error of the shares {}", of_seeds(our_hits), number(l1(|shares| &shares.ours).median)),
            explanation: "the paper's learner averages the evidence over 50 steps, which leaves the shares noisy even where the weights are accurate".into(),
            ..PaperClaim::new(&format!("With {words}, the learned influences identify them (Fig. 4)"), status)
        });
    }
    numbers.insert("network".into(), json!(network.description()));
    numbers.insert("seeds".into(), json!(seeds.len()));
    let figure = Figure { title: "Influence shares".into(), panels, columns: 1 };
    let caption = format!(
        "Shares of influence on {}, true and learned. Bars are medians over {} seeds, whiskers show the range.",
        network.description(),
        seeds.len()
    );
    let figures = vec![NamedFigure { stem: "influences".into(), caption, figure }];
    Ok(ExperimentResult { figures, numbers: numbers.into(), claims })
}

/// The authors' file for one influential agent, which contains something else.
fn authors(context: &ExperimentContext<'_>, case: usize, truth: &[f64]) -> Result<String, Error> {
    let (Some(known), Some(learned)) = (
        context.released.matrix("influences_21_true_1inf.csv")?,
        context.released.matrix("influences_21_w50_1inf.csv")?,
    ) else {
        return Ok(NONE.to_owned());
    };
    if case != 1 {
        return Ok(NONE.to_owned());
    }
    let share = |rows: &[Vec<f64>]| {
        let total: f64 = rows.iter().map(|row| row[0]).sum();
        rows.iter().map(|row| row[0] / total).collect::<Vec<f64>>()
    };
    let (known, learned) = (share(&known), share(&learned));
    let distance = l1_distance(&known, truth);
    Ok(format!(
        "in the released \"1inf\" file {} agents have more than 1.5 times the mean share (0, 1, 2: {}): it matches three influential agents with v = 0.2, not one with v = 0.5 (L1 distance {}); learned shares in it: {}",
        known.iter().filter(|share| **share > 1.5 / known.len() as f64).count(),
        known[..3].iter().map(|share| percent(*share)).collect::<Vec<_>>().join(", "),
        number(distance),
        learned[..3].iter().map(|share| percent(*share)).collect::<Vec<_>>().join(", "),
    ))
}

/// Whether the first so many agents have the largest shares.
fn leads(shares: &[f64], count: usize) -> bool {
    let least = shares[..count].iter().copied().fold(f64::INFINITY, f64::min);
    shares[count..].iter().all(|share| *share < least)
}

/// L1 distance of shares.
fn l1_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

fn one(network: &PaperNetwork, influential: usize, seed: u64) -> Result<InfluenceShares, Error> {
    let (panel, truth) = network.run(WorldParams { influential, ..simulation::released(seed, STEPS) })?;
    let mut learner = simulation::gsl(&panel, 50, 0.1)?;
    until(&mut learner, &panel, STEPS)?;
    let shares = |model: &Model| -> Result<Vec<f64>, Error> {
        let found = influence(model)?;
        Ok(found.signed_share().unwrap_or(found.influence))
    };
    let paper = shares(&learner.finish(&panel, None)?)?;
    let ours = simulation::ours(&panel, OUR_STEPS)?.map(|model| shares(&model)).transpose()?;
    Ok(InfluenceShares { truth: shares(&truth)?, paper, ours: ours.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_agents_lead_only_with_the_largest_shares() {
        assert!(leads(&[0.4, 0.3, 0.2, 0.1], 3) && leads(&[0.4, 0.3, 0.2, 0.1], 1));
        assert!(!leads(&[0.1, 0.3, 0.2], 1));
        assert_eq!(l1_distance(&[0.5, 0.5], &[0.25, 0.75]), 0.5);
    }
}
