//! Theorems 1 and 2: dependence of the limiting errors on μ and M, and the rate of convergence, predicted and measured.
//!
//! Slopes are fitted seed by seed; an interval is two standard errors of their mean. The theorems give upper
//! bounds: a steeper decrease with M, or a slower growth with μ, is consistent with them.

use crate::Error;
use crate::claim::{ClaimStatus, PaperClaim};
use crate::curves::{SeedRange, mean};
use crate::experiment::{ExperimentContext, ExperimentResult, NamedFigure};
use crate::simulation::{self, evidence_distance, until};
use faer::{Mat, Side};
use headwater::simulate::{Likelihoods, World, WorldParams, run as run_world};
use headwater::words::number;
use headwater::{Combination, Model, Panel};
use headwater_report::{Axis, Chart, ChartSeries, Figure, FigurePanel, Point, Shape};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A small network of well-informed agents, which reaches its steady state within the run.
const AGENTS: usize = 10;

/// Step sizes for a window so long that its term is negligible, and windows for a step size so small that its term is.
const RATES: [f64; 5] = [0.02, 0.05, 0.1, 0.2, 0.4];
const LONG: usize = 1000;
const WINDOWS: [usize; 6] = [5, 10, 20, 40, 80, 160];
const SMALL: f64 = RATES[0];

/// So many of the windows are so short that their term is visible next to that of μ.
const SHORT: usize = 4;

/// Step sizes whose rate of convergence is measured, and the window for it.
const CONVERGENCE_RATES: [f64; 4] = [0.05, 0.1, 0.2, 0.4];
const CONVERGENCE_WINDOW: usize = 200;

/// Number of steps at which a decreasing error is measured.
const CHECKPOINT_COUNT: usize = 40;

/// Results of one seed.
#[derive(Serialize, Deserialize)]
struct LimitingErrors {
    /// Limiting error of A for each step size.
    by_rate: Vec<f64>,
    /// Limiting errors of A and of the evidence for each window.
    by_window: Vec<f64>,
    evidence: Vec<f64>,
    /// Error along the slowest direction at each checkpoint, for each step size.
    decreases: Vec<Vec<Vec<f64>>>,
}

pub(crate) fn run(context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
    let seeds = context.seeds();
    let steps = context.pick(80_000, 400_000);
    let slowest = slowest(context.seed)?;
    let keys: Vec<String> = seeds.iter().map(|seed| format!("seed-{seed}")).collect();
    let found: Vec<LimitingErrors> =
        context.jobs.all(&keys, |index| one(seeds[index], context.seed, steps, &slowest))?;
    let many = |of: &dyn Fn(&LimitingErrors) -> &Vec<f64>, index: usize| {
        SeedRange::from_values(found.iter().map(|limits| of(limits)[index]))
    };
    let slope = |of: &dyn Fn(&LimitingErrors) -> &Vec<f64>, x: &[f64]| {
        FittedSlope::from_slopes(&found.iter().map(|limits| self::slope(x, of(limits))).collect::<Vec<_>>())
    };
    let windows = WINDOWS.map(|window| window as f64);
    let by_rate = slope(&|limits| &limits.by_rate, &RATES);
    // Minus the error of the same step size with a window of 1000, on the same beliefs.
    let excess =
        |limits: &LimitingErrors| limits.by_window.iter().map(|error| error - limits.by_rate[0]).collect::<Vec<f64>>();
    let steep = |limits: &LimitingErrors| self::slope(&windows[..SHORT], &excess(limits)[..SHORT]);
    let by_window = FittedSlope::from_slopes(&found.iter().map(steep).collect::<Vec<_>>());
    let evidence = slope(&|limits| &limits.evidence, &windows);
    let (predicted, measured) = decreases(&found, &slowest);
    let chart = |title: &str, x: Axis, y: &str, points: Vec<Point>, fitted: &FittedSlope, bound: f64| {
        let name = format!(
            "slope {} ({} to {}), bound {bound}",
            number(fitted.slope),
            number(fitted.low),
            number(fitted.high)
        );
        let (first, last) = (points[0], points[points.len() - 1]);
        let line = vec![first, Point::new(last.x, first.y * (last.x / first.x).powf(bound))];
        let line = line.into_iter().map(|point| Point::new(point.x, point.y)).collect();
        FigurePanel::Chart(Chart {
            title: title.to_owned(),
            x,
            y: Axis::log(y),
            series: vec![
                ChartSeries::new(&format!("slope {bound}"), Shape::Reference, line),
                ChartSeries::new(&name, Shape::Dots, points),
            ],
        })
    };
    let points = |x: &[f64], of: &dyn Fn(&LimitingErrors) -> &Vec<f64>| {
        x.iter().enumerate().map(|(index, x)| many(of, index).at(*x)).collect::<Vec<_>>()
    };
    let added = |index: usize| SeedRange::from_values(found.iter().map(|limits| excess(limits)[index]));
    let excesses: Vec<Point> = (0..SHORT).map(|index| added(index).at(windows[index])).collect();
    let rates: Vec<Point> = predicted.iter().zip(&measured).map(|(x, y)| Point::new(*x, *y)).collect();
    let ends = [predicted[0], predicted[predicted.len() - 1]];
    let figure = Figure {
        title: "Theorems: predicted and measured rates".into(),
        panels: vec![
            chart(
                "limiting error of A against μ",
                Axis::log("μ"),
                "‖A_i − A‖²",
                points(&RATES, &|limits| &limits.by_rate),
                &by_rate,
                1.0,
            ),
            chart(
                "excess error of A from a short window",
                Axis::log("M"),
                "‖A_i − A‖² minus that of M = 1000",
                excesses,
                &by_window,
                -2.0,
            ),
            chart(
                "limiting error of L̂ against M",
                Axis::log("M"),
                "‖L̂_i − L̄‖²",
                points(&windows, &|limits| &limits.evidence),
                &evidence,
                -1.0,
            ),
            FigurePanel::Chart(Chart {
                title: "rate of convergence".into(),
                x: Axis::log("2μν (Theorem 1)"),
                y: Axis::log("measured decrease per step"),
                series: vec![
                    ChartSeries::new(
                        "measured = predicted",
                        Shape::Reference,
                        ends.iter().map(|x| Point::new(*x, *x)).collect(),
                    ),
                    ChartSeries::new("measured along the slowest direction", Shape::Dots, rates),
                ],
            }),
        ],
        columns: 2,
    };
    let ratios: Vec<f64> = predicted.iter().zip(&measured).map(|(x, y)| y / x).collect();
    let ratio = SeedRange::from_values(ratios.iter().copied());
    let numbers = json!({
        "agents": AGENTS, "seeds": seeds.len(), "steps": steps,
        "error_against_rate": by_rate, "error_against_window": by_window, "evidence_against_window": evidence,
        "nu": slowest.nu, "rates": CONVERGENCE_RATES, "predicted_decrease": predicted, "measured_decrease": measured,
    });
    let reported = |paper: &str, fitted: &FittedSlope, status: ClaimStatus, why: &str| PaperClaim {
        formula: format!("slope {} ({} to {})", number(fitted.slope), number(fitted.low), number(fitted.high)),
        explanation: why.to_owned(),
        ..PaperClaim::new(paper, status)
    };
    let within = |fitted: &FittedSlope, bound: f64, most: f64| ClaimStatus::when((fitted.slope - bound).abs() <= most);
    let claims = vec![
        reported("Theorem 1: the limiting error of A is O(μ)", &by_rate, within(&by_rate, 1.0, 0.3), "window of 1000 steps, so that the other term is small"),
        reported("Theorem 1: … + O(1/(δ³M²))", &by_window, ClaimStatus::when(by_window.slope <= -1.7),
            "excess error of windows of 5 to 40 steps over a window of 1000, at μ = 0.02; the theorem is an upper bound, so a steeper decrease is consistent with it"),
        reported("Theorem 2: the limiting error of L̂ is Tr(R)/M + …", &evidence, within(&evidence, -1.0, 0.3), "all windows; the other terms add to the smallest errors"),
        PaperClaim {
            formula: format!("measured over predicted: {} ({} to {})", number(ratio.median), number(ratio.low), number(ratio.high)),
            explanation: "initial error along the eigenvector of the smallest eigenvalue only; decrease of the squared mean error over the first two time constants".into(),
            ..PaperClaim::new("Theorem 1: the error decreases like (1 − 2μν)^i", ClaimStatus::when((0.7..=1.4).contains(&ratio.median)))
        },
    ];
    let caption = format!(
        "Limiting errors and rates in a simulated network of {AGENTS} well-informed agents; medians and ranges of {} seeds. Grey: the theorems' exponents through the first point.",
        seeds.len()
    );
    Ok(ExperimentResult { figures: vec![NamedFigure { stem: "theory".into(), caption, figure }], numbers, claims })
}

/// A slope with its interval.
#[derive(Debug, Clone, Copy, Serialize)]
struct FittedSlope {
    slope: f64,
    low: f64,
    high: f64,
}

impl FittedSlope {
    /// The mean of the slopes of all seeds, plus and minus two standard errors.
    fn from_slopes(slopes: &[f64]) -> Self {
        let (count, slope) = (slopes.len() as f64, mean(slopes));
        let variance = slopes.iter().map(|value| (value - slope).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let error = (variance / count).sqrt();
        FittedSlope { slope, low: slope - 2.0 * error, high: slope + 2.0 * error }
    }
}

/// Least squares of log y on log x.
fn slope(x: &[f64], y: &[f64]) -> f64 {
    let logs: Vec<(f64, f64)> = x.iter().zip(y).map(|(x, y)| (x.ln(), y.ln())).collect();
    line(&logs)
}

/// Least squares of y on x.
fn line(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / count, points.iter().map(|p| p.1).sum::<f64>() / count);
    let product: f64 = points.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
    product / points.iter().map(|(x, _)| (x - mx).powi(2)).sum::<f64>()
}

fn world(seed: u64, network: u64, steps: usize) -> Result<(Panel, Model), Error> {
    let params = WorldParams {
        agents: AGENTS,
        edge_probability: 0.4,
        likelihoods: Likelihoods::Released,
        influential: AGENTS,
        truth: 1,
        steps,
        seed: network,
        ..WorldParams::default()
    };
    // One network for all seeds.
    let first = World::new(params.clone())?;
    let combination = first.truth().combination;
    let edges: Vec<(usize, usize, Option<f64>)> =
        combination.edges().filter(|edge| edge.2 > 0.0).map(|(a, b, weight)| (a, b, Some(weight))).collect();
    let names = (0..AGENTS).map(|agent| agent.to_string()).collect();
    let mut world = World::on_graph(WorldParams { seed, ..params }, names, &edges)?;
    let panel = run_world(&mut world)?;
    Ok((panel, world.truth()))
}

/// The direction in which learning is slowest, and ν.
struct SlowestDirection {
    nu: f64,
    direction: Vec<f64>,
}

/// From the covariance of the regressors, x = Λ_{i−1} minus the mean of its window.
fn slowest(seed: u64) -> Result<SlowestDirection, Error> {
    let (panel, truth) = world(seed.wrapping_add(1000), seed, 100_000)?;
    let (ratios, steps) = (panel.ratios(), panel.steps());
    let width = AGENTS * ratios;
    let cells = panel.cells();
    let mut sum = vec![0.0; width];
    cells[..CONVERGENCE_WINDOW * width]
        .chunks_exact(width)
        .for_each(|frame| sum.iter_mut().zip(frame).for_each(|(s, v)| *s += v));
    let mut gram = Mat::<f64>::zeros(AGENTS, AGENTS);
    for step in CONVERGENCE_WINDOW..steps {
        let frame = &cells[step * width..(step + 1) * width];
        let x: Vec<f64> = frame.iter().zip(&sum).map(|(value, sum)| value - sum / CONVERGENCE_WINDOW as f64).collect();
        for ratio in x.chunks_exact(AGENTS) {
            for a in 0..AGENTS {
                for b in 0..AGENTS {
                    gram[(a, b)] += ratio[a] * ratio[b];
                }
            }
        }
        let old = &cells[(step - CONVERGENCE_WINDOW) * width..(step - CONVERGENCE_WINDOW + 1) * width];
        sum.iter_mut().zip(frame.iter().zip(old)).for_each(|(sum, (new, old))| *sum += new - old);
    }
    let undefined = |_| Error::NoEigenvalues;
    let eigen = gram.self_adjoint_eigen(Side::Lower).map_err(undefined)?;
    let smallest = eigen.S().column_vector()[0] / (steps - CONVERGENCE_WINDOW) as f64;
    let direction = (0..AGENTS).map(|agent| eigen.U()[(agent, 0)]).collect();
    Ok(SlowestDirection { nu: (1.0 - truth.adaptation).powi(2) * smallest, direction })
}

/// Steps between two measurements of a steady state.
const APART: usize = 50;

/// Mean errors of A and of the evidence over the second half.
fn limit(panel: &Panel, truth: &Model, window: usize, rate: f64) -> Result<(f64, f64), Error> {
    let mut learner = simulation::gsl(panel, window, rate)?;
    let columns = truth.combination.to_columns();
    let (mut weights, mut evidence) = (Vec::new(), Vec::new());
    until(&mut learner, panel, panel.steps() / 2)?;
    while learner.position().0 < panel.steps() {
        let next = (learner.position().0 + APART).min(panel.steps());
        until(&mut learner, panel, next)?;
        weights.push(learner.distance(&columns));
        evidence.push(evidence_distance(&learner.evidence()?, &truth.evidence));
    }
    Ok((mean(&weights), mean(&evidence)))
}

fn one(seed: u64, network: u64, steps: usize, slowest: &SlowestDirection) -> Result<LimitingErrors, Error> {
    let (panel, truth) = world(seed, network, steps)?;
    let mut limits =
        LimitingErrors { by_rate: Vec::new(), by_window: Vec::new(), evidence: Vec::new(), decreases: Vec::new() };
    for rate in RATES {
        limits.by_rate.push(limit(&panel, &truth, LONG, rate)?.0);
    }
    for window in WINDOWS {
        let (weights, evidence) = limit(&panel, &truth, window, SMALL)?;
        limits.by_window.push(weights);
        limits.evidence.push(evidence);
    }
    for rate in CONVERGENCE_RATES {
        // An error of one along the slowest direction and none elsewhere.
        let column =
            |cell: usize| truth.combination.weight(cell % AGENTS, cell / AGENTS) - slowest.direction[cell % AGENTS];
        let off = Combination::from_columns((0..AGENTS * AGENTS).map(column).collect(), AGENTS)?;
        let mut learner = simulation::gsl(&panel, CONVERGENCE_WINDOW, rate)?.starting_from(&off)?;
        let mut errors_along = Vec::new();
        for checkpoint in checkpoints(rate, slowest) {
            until(&mut learner, &panel, checkpoint.min(panel.steps()))?;
            let combination = learner.combination();
            let along = |listener: usize| -> f64 {
                let error = |speaker: usize| {
                    truth.combination.weight(speaker, listener) - combination.weight(speaker, listener)
                };
                (0..AGENTS).map(|speaker| slowest.direction[speaker] * error(speaker)).sum()
            };
            errors_along.push((0..AGENTS).map(along).collect());
        }
        limits.decreases.push(errors_along);
    }
    Ok(limits)
}

/// Steps within the first two time constants of the squared error.
fn checkpoints(rate: f64, slowest: &SlowestDirection) -> Vec<usize> {
    let constant = 1.0 / (2.0 * rate * slowest.nu);
    (0..CHECKPOINT_COUNT)
        .map(|index| CONVERGENCE_WINDOW + (constant * (0.3 + 1.7 * index as f64 / CHECKPOINT_COUNT as f64)) as usize)
        .collect()
}

/// Predicted and measured decrease per step, by step size: the error is averaged over seeds before it is squared.
fn decreases(found: &[LimitingErrors], slowest: &SlowestDirection) -> (Vec<f64>, Vec<f64>) {
    let measured = CONVERGENCE_RATES.iter().enumerate().map(|(index, rate)| {
        let steps = checkpoints(*rate, slowest);
        let square = |checkpoint: usize| -> f64 {
            let along = |listener: usize| {
                mean(&found.iter().map(|limits| limits.decreases[index][checkpoint][listener]).collect::<Vec<_>>())
            };
            (0..AGENTS).map(|listener| along(listener).powi(2)).sum()
        };
        let points: Vec<(f64, f64)> =
            steps.iter().enumerate().map(|(checkpoint, step)| (*step as f64, square(checkpoint).ln())).collect();
        1.0 - line(&points).exp()
    });
    (CONVERGENCE_RATES.iter().map(|rate| 2.0 * rate * slowest.nu).collect(), measured.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_found() {
        assert!((slope(&[1.0, 2.0, 4.0], &[3.0, 12.0, 48.0]) - 2.0).abs() < 1e-12);
        let fitted = FittedSlope::from_slopes(&[1.0, 2.0, 3.0]);
        assert!((fitted.slope - 2.0).abs() < 1e-12 && (fitted.high - 2.0 - 2.0 / 3f64.sqrt()).abs() < 1e-12);
    }
}
