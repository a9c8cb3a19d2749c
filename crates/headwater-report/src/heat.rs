//! Heat maps: rows down, columns across; maps to be compared share one scale.

use crate::figure::DrawnPoint;
use crate::style::{FAINT, INK, PANEL, TITLE, shade};
use crate::svg::{Anchor, Svg, TextStyle};

/// A heat map of a matrix.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heatmap {
    /// Title.
    pub title: String,
    /// Label of the rows.
    pub rows: String,
    /// Label of the columns.
    pub columns: String,
    /// Row by row; all rows of one length.
    pub cells: Vec<Vec<f64>>,
    /// The value that gets the darkest shade.
    pub darkest: f64,
}

const LEFT: f64 = 34.0;
const BOTTOM: f64 = 30.0;
const BAR: f64 = 64.0;

impl Heatmap {
    pub(crate) fn size(&self) -> (f64, f64) {
        (LEFT + PANEL.1 + BAR, TITLE + 14.0 + PANEL.1 + BOTTOM)
    }

    pub(crate) fn draw(&self, svg: &mut Svg, corner: (f64, f64)) {
        let (height, wide) = (self.cells.len().max(1), self.cells.first().map_or(1, Vec::len).max(1));
        let origin = (corner.0 + LEFT, corner.1 + TITLE + 14.0);
        svg.text(
            (origin.0, corner.1 + TITLE),
            &self.title,
            TextStyle { bold: true, ..TextStyle::plain(Anchor::Start) },
        );
        let cell = (PANEL.1 / wide as f64, PANEL.1 / height as f64);
        svg.rect(origin, (PANEL.1, PANEL.1), &shade(0.0));
        for (row, cells) in self.cells.iter().enumerate() {
            for (column, value) in cells.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                let place = (origin.0 + column as f64 * cell.0, origin.1 + row as f64 * cell.1);
                // Slightly wider, so that no gap shows between neighbours.
                svg.rect(place, (cell.0 + 0.2, cell.1 + 0.2), &shade(value / self.darkest));
            }
        }
        let (right, bottom) = (origin.0 + PANEL.1, origin.1 + PANEL.1);
        for (from, to) in [
            (origin, (right, origin.1)),
            ((origin.0, bottom), (right, bottom)),
            (origin, (origin.0, bottom)),
            ((right, origin.1), (right, bottom)),
        ] {
            svg.line(from, to, INK, 1.0);
        }
        let below = (origin.0 + PANEL.1 / 2.0, bottom + 20.0);
        svg.text(below, &format!("{} (0…{})", self.columns, wide - 1), TextStyle::plain(Anchor::Middle));
        let beside = (origin.0 - 12.0, origin.1 + PANEL.1 / 2.0);
        let style = TextStyle { turned: true, ..TextStyle::plain(Anchor::Middle) };
        svg.text(beside, &format!("{} (0…{})", self.rows, height - 1), style);
        self.bar(svg, (right + 12.0, origin.1));
    }

    /// The colour bar.
    fn bar(&self, svg: &mut Svg, corner: (f64, f64)) {
        let negative = self.cells.iter().flatten().any(|value| *value < -0.005 * self.darkest);
        let lowest = if negative { -1.0 } else { 0.0 };
        let (steps, height) = (48, 0.7 * PANEL.1);
        for step in 0..steps {
            let value = 1.0 - (1.0 - lowest) * (f64::from(step) + 0.5) / f64::from(steps);
            let place = (corner.0, corner.1 + height * f64::from(step) / f64::from(steps));
            svg.rect(place, (12.0, height / f64::from(steps) + 0.2), &shade(value));
        }
        svg.line((corner.0, corner.1 + height), (corner.0 + 12.0, corner.1 + height), FAINT, 1.0);
        let label = |value: f64| format!("{value:.2}");
        for (value, level) in [(1.0, 0.0), ((1.0 + lowest) / 2.0, 0.5), (lowest, 1.0)] {
            let place = (corner.0 + 17.0, corner.1 + level * height + 4.0);
            svg.text(place, &label(value * self.darkest), TextStyle::plain(Anchor::Start));
        }
    }

    pub(crate) fn points(&self) -> Vec<DrawnPoint> {
        let cell = |row: usize, column: usize, value: f64| DrawnPoint {
            panel: self.title.clone(),
            series: format!("{} {row}", self.rows),
            x: column.to_string(),
            y: value,
            low: None,
            high: None,
        };
        let row = |(row, cells): (usize, &Vec<f64>)| {
            cells.iter().enumerate().map(|(column, value)| cell(row, column, *value)).collect::<Vec<_>>()
        };
        self.cells.iter().enumerate().flat_map(row).collect()
    }
}
