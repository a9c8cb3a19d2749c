//! The stage of the paper's simulations: its network and likelihoods, and what several experiments do on it.

use super::authors::Authors;
use crate::error::CliError;
use headwater::learn::gsl::{Gsl, GslParams};
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::simulate::{Likelihoods, World, WorldParams, run};
use headwater::{Combination, Evidence, Model, Panel};
use headwater_report::{Chart, Panel as Picture, Point, Series, Shape};
use serde::{Deserialize, Serialize};

/// The hypothesis that is true in the released simulations.
pub(crate) const TRUTH: usize = 1;

/// Step size and window the paper prints for each curve.
pub(crate) const PRINTED: [(usize, f64); 3] = [(1, 0.001), (10, 0.01), (50, 0.1)];

/// Steps after which the whitened learner is looked at.
pub(crate) const ROUNDS: [usize; 14] = [12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 200, 500, 1000, 2000];

/// A network everybody in an experiment shares.
pub(crate) struct Stage {
    names: Vec<String>,
    edges: Vec<(usize, usize, Option<f64>)>,
    /// Whether it is the authors'.
    pub(crate) released: bool,
}

impl Stage {
    /// The authors' network, or where it is not at hand one drawn with the same parameters.
    pub(crate) fn find(authors: &Authors) -> Result<Self, CliError> {
        let matrix = authors.matrix("matrix_21_true.csv")?;
        let released = matrix.is_some();
        let combination = match matrix {
            Some(rows) => combination(&rows)?,
            None => World::new(WorldParams { steps: 1, burn_in: 0, ..WorldParams::default() })?.truth().combination,
        };
        let heard = combination.edges().filter(|(_, _, weight)| *weight != 0.0);
        Ok(Stage {
            edges: heard.map(|(speaker, listener, weight)| (speaker, listener, Some(weight))).collect(),
            names: (0..combination.agents()).map(|agent| agent.to_string()).collect(),
            released,
        })
    }

    /// A world on it.
    pub(crate) fn world(&self, params: WorldParams) -> Result<World, CliError> {
        Ok(World::on_graph(params, self.names.clone(), &self.edges)?)
    }

    /// A world on it, run to its end.
    pub(crate) fn run(&self, params: WorldParams) -> Result<(Panel, Model), CliError> {
        let mut world = self.world(params)?;
        let panel = run(&mut world)?;
        Ok((panel, world.truth()))
    }

    /// What the page says of it.
    pub(crate) fn words(&self) -> &'static str {
        if self.released {
            "the authors' network and likelihoods"
        } else {
            "a network drawn with the paper's parameters (the authors' is not at hand) and the released likelihoods"
        }
    }
}

/// A matrix, row by row, as weights.
pub(crate) fn combination(rows: &[Vec<f64>]) -> Result<Combination, CliError> {
    let size = rows.len();
    let cells = (0..size * size).map(|cell| rows[cell % size].get(cell / size).copied().unwrap_or(f64::NAN));
    Ok(Combination::from_columns(cells.collect(), size)?)
}

/// The released simulations' world.
pub(crate) fn released(seed: u64, steps: usize) -> WorldParams {
    WorldParams { likelihoods: Likelihoods::Released, truth: TRUTH, steps, seed, ..WorldParams::default() }
}

/// The paper's learner with a window and a step size.
pub(crate) fn gsl(panel: &Panel, window: usize, learning_rate: f64) -> Result<Gsl, CliError> {
    Ok(Gsl::new(panel.roster().clone(), GslParams { window, learning_rate, ..GslParams::default() })?)
}

/// Learns on until so many frames were seen.
pub(crate) fn until(learner: &mut Gsl, panel: &Panel, step: usize) -> Result<(), CliError> {
    while learner.position().0 < step {
        let left = step - learner.position().0;
        if learner.advance(panel, left)?.is_none() {
            break;
        }
    }
    Ok(())
}

/// Squared distance of two sets of weights.
pub(crate) fn distance(a: &Combination, b: &Combination) -> f64 {
    a.to_columns().iter().zip(b.to_columns()).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Squared distance of two sets of evidence.
pub(crate) fn evidence_distance(a: &Evidence, b: &Evidence) -> f64 {
    let row = |agent: usize| a.agent(agent).iter().zip(b.agent(agent)).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    (0..a.agents()).map(row).sum()
}

/// The whitened learner after so many steps; `None` before it can say anything.
pub(crate) fn ours(panel: &Panel, steps: usize) -> Result<Option<Model>, CliError> {
    if steps > panel.steps() {
        return Ok(None);
    }
    Ok(Some(whitened(&panel.slice(0..steps)?, &WhitenedParams::default())?))
}

/// About so many steps up to the last, closer together at the beginning.
pub(crate) fn spaced(first: usize, last: usize, count: usize) -> Vec<usize> {
    let ratio = (last as f64 / first as f64).ln();
    let step = |index: usize| (first as f64 * (ratio * index as f64 / (count - 1) as f64).exp()).round() as usize;
    let mut steps: Vec<usize> = (0..count).map(step).map(|step| step.min(last)).collect();
    steps.dedup();
    steps
}

/// Evenly spaced steps up to the last.
pub(crate) fn even(last: usize, count: usize) -> Vec<usize> {
    (1..=count).map(|index| last * index / count).collect()
}

/// The median, smallest and largest of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (Some(low), Some(high)) = (values.first(), values.last()) else {
            return Spread { median: 0.0, low: 0.0, high: 0.0 };
        };
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        Spread { median, low: *low, high: *high }
    }

    pub(crate) fn at(self, x: f64) -> Point {
        Point::within(x, self.median, self.low, self.high)
    }
}

/// One curve out of those of several seeds: the median, and a band from the smallest to the largest.
pub(crate) fn curve<'a>(name: &str, steps: &[usize], seeds: impl Iterator<Item = &'a Vec<f64>>) -> Series {
    let seeds: Vec<&Vec<f64>> = seeds.collect();
    let spread = |index: usize| Spread::of(seeds.iter().filter_map(|seed| seed.get(index).copied()));
    let points = steps.iter().enumerate().map(|(index, step)| spread(index).at(*step as f64));
    Series::new(name, Shape::Line, points.collect())
}

/// What others found, thinned out for drawing.
pub(crate) fn reference(name: &str, points: &[(f64, f64)], most: usize) -> Series {
    let every = points.len().div_ceil(most).max(1);
    let points = points.iter().filter(|(step, _)| *step > 0.0).step_by(every);
    Series::new(name, Shape::Reference, points.map(|(x, y)| Point::new(*x, *y)).collect())
}

/// A chart twice: where the paper's curves are, and down to rounding.
pub(crate) fn twice(chart: &Chart, upper: (f64, f64), whole: (f64, f64)) -> Vec<Picture> {
    let within = |title: &str, (low, high): (f64, f64)| {
        let y = chart.y.clone().between(low, high);
        Picture::Chart(Chart { title: format!("{}{title}", chart.title), y, ..chart.clone() })
    };
    vec![within("", upper), within(", down to rounding", whole)]
}

/// Mean of what others found over the last steps.
pub(crate) fn final_mean(points: &[(f64, f64)], steps: f64) -> f64 {
    let last = points.last().map_or(0.0, |(step, _)| *step);
    let late: Vec<f64> = points.iter().filter(|(step, _)| *step > last - steps).map(|(_, error)| *error).collect();
    mean(&late)
}

/// The arithmetic mean; zero of nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_spaced_and_spreads_are_medians() {
        let steps = spaced(10, 1000, 5);
        assert_eq!((steps[0], steps[steps.len() - 1]), (10, 1000));
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(even(100, 4), [25, 50, 75, 100]);
        let spread = Spread::of([3.0, 1.0, f64::NAN, 2.0, 10.0]);
        assert_eq!((spread.median, spread.low, spread.high), (2.5, 1.0, 10.0));
        assert_eq!(final_mean(&[(0.0, 9.0), (100.0, 1.0), (200.0, 3.0)], 150.0), 2.0);
    }
}
