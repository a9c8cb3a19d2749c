//! Curves and ranges over seeds, and what others found, ready to be drawn.

use headwater_report::{Chart, ChartSeries, FigurePanel, Point, Shape};
use serde::{Deserialize, Serialize};

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
pub(crate) struct SeedRange {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl SeedRange {
    pub(crate) fn from_values(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (Some(low), Some(high)) = (values.first(), values.last()) else {
            return SeedRange { median: 0.0, low: 0.0, high: 0.0 };
        };
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        SeedRange { median, low: *low, high: *high }
    }

    pub(crate) fn at(self, x: f64) -> Point {
        Point::within(x, self.median, self.low, self.high)
    }
}

/// One curve out of those of several seeds: the median, and a band from the smallest to the largest.
pub(crate) fn curve<'a>(name: &str, steps: &[usize], seeds: impl Iterator<Item = &'a Vec<f64>>) -> ChartSeries {
    let seeds: Vec<&Vec<f64>> = seeds.collect();
    let range = |index: usize| SeedRange::from_values(seeds.iter().filter_map(|seed| seed.get(index).copied()));
    let points = steps.iter().enumerate().map(|(index, step)| range(index).at(*step as f64));
    ChartSeries::new(name, Shape::Line, points.collect())
}

/// What others found, thinned out for drawing.
pub(crate) fn reference(name: &str, points: &[(f64, f64)], most: usize) -> ChartSeries {
    let every = points.len().div_ceil(most).max(1);
    let points = points.iter().filter(|(step, _)| *step > 0.0).step_by(every);
    ChartSeries::new(name, Shape::Reference, points.map(|(x, y)| Point::new(*x, *y)).collect())
}

/// A chart twice: in the range of the paper's curves, and down to rounding errors.
pub(crate) fn twice(chart: &Chart, upper: (f64, f64), whole: (f64, f64)) -> Vec<FigurePanel> {
    let within = |title: &str, (low, high): (f64, f64)| {
        let y = chart.y.clone().between(low, high);
        FigurePanel::Chart(Chart { title: format!("{}{title}", chart.title), y, ..chart.clone() })
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
    fn steps_are_spaced_and_ranges_have_medians() {
        let steps = spaced(10, 1000, 5);
        assert_eq!((steps[0], steps[steps.len() - 1]), (10, 1000));
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(even(100, 4), [25, 50, 75, 100]);
        let range = SeedRange::from_values([3.0, 1.0, f64::NAN, 2.0, 10.0]);
        assert_eq!((range.median, range.low, range.high), (2.5, 1.0, 10.0));
        assert_eq!(final_mean(&[(0.0, 9.0), (100.0, 1.0), (200.0, 3.0)], 150.0), 2.0);
    }
}
