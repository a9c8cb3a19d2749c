//! Figures: panels side by side, as SVG and PNG, and a table of every number in them.

use crate::chart::Chart;
use crate::error::Error;
use crate::heat::Heatmap;
use crate::network::NetworkChart;
use crate::style::TITLE;
use crate::svg::{Anchor, Svg, TextStyle};
use resvg::{tiny_skia, usvg};
use std::sync::{Arc, OnceLock};

/// One panel of a figure.
#[derive(Debug, Clone, PartialEq)]
pub enum FigurePanel {
    /// Lines, dots or bars.
    Chart(Chart),
    /// A heat map.
    Heatmap(Heatmap),
    /// A network.
    Network(NetworkChart),
}

/// One number of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnPoint {
    /// Title of its panel.
    pub panel: String,
    /// Its series, its row, or "node" or "link".
    pub series: String,
    /// Horizontal coordinate: a number or a name.
    pub x: String,
    /// Value.
    pub y: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// A figure.
///
/// ```
/// use headwater_report::{Axis, Chart, Figure, FigurePanel, Point, ChartSeries, Shape};
/// let error = ChartSeries::new("error", Shape::Line, vec![Point::new(1.0, 4.0), Point::within(10.0, 0.5, 0.4, 0.6)]);
/// let chart = Chart { x: Axis::log("step"), y: Axis::log("squared error"), series: vec![error], ..Chart::default() };
/// let figure = Figure { title: "Errors".into(), panels: vec![FigurePanel::Chart(chart)], columns: 1 };
/// assert!(figure.svg().starts_with("<svg"));
/// assert_eq!(figure.points()[1].low, Some(0.4));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figure {
    /// Title.
    pub title: String,
    /// Row by row.
    pub panels: Vec<FigurePanel>,
    /// Panels per row.
    pub columns: usize,
}

const MARGIN: f64 = 12.0;

/// Pixels per unit of the drawing in PNG files.
const PIXELS: f32 = 2.0;

impl Figure {
    /// The drawing.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new();
        let style = TextStyle { size: TITLE, bold: true, ..TextStyle::plain(Anchor::Start) };
        svg.text((MARGIN, MARGIN + TITLE), &self.title, style);
        let (mut down, mut across) = (MARGIN + TITLE + 14.0, 0.0f64);
        for row in self.panels.chunks(self.columns.max(1)) {
            let mut left = MARGIN;
            let mut tallest = 0.0f64;
            for panel in row {
                panel.draw(&mut svg, (left, down));
                let (width, height) = panel.size();
                left += width + MARGIN;
                tallest = tallest.max(height);
            }
            across = across.max(left);
            down += tallest + MARGIN;
        }
        let title = 2.0 * MARGIN + crate::style::width(&self.title, TITLE) * 1.1;
        svg.finish(&self.title, across.max(title), down)
    }

    /// The drawing as PNG, with a built-in font.
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        let problem = |problem: String| Error::Png { title: self.title.clone(), problem };
        let options =
            usvg::Options { fontdb: fonts(), font_family: "DejaVu Sans".to_owned(), ..usvg::Options::default() };
        let tree = usvg::Tree::from_str(&self.svg(), &options).map_err(|error| problem(error.to_string()))?;
        let (width, height) = (tree.size().width() * PIXELS, tree.size().height() * PIXELS);
        let mut pixels = tiny_skia::Pixmap::new(width as u32, height as u32)
            .ok_or_else(|| problem(format!("{width} × {height} pixels are too many")))?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(PIXELS, PIXELS), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| problem(error.to_string()))
    }

    /// Every number that was drawn.
    pub fn points(&self) -> Vec<DrawnPoint> {
        self.panels.iter().flat_map(FigurePanel::points).collect()
    }
}

/// Parsed once.
fn fonts() -> Arc<usvg::fontdb::Database> {
    static FONTS: OnceLock<Arc<usvg::fontdb::Database>> = OnceLock::new();
    let load = || {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        Arc::new(fonts)
    };
    FONTS.get_or_init(load).clone()
}

impl FigurePanel {
    fn size(&self) -> (f64, f64) {
        match self {
            FigurePanel::Chart(chart) => chart.size(),
            FigurePanel::Heatmap(heat) => heat.size(),
            FigurePanel::Network(network) => network.size(),
        }
    }

    fn draw(&self, svg: &mut Svg, corner: (f64, f64)) {
        match self {
            FigurePanel::Chart(chart) => chart.draw(svg, corner),
            FigurePanel::Heatmap(heat) => heat.draw(svg, corner),
            FigurePanel::Network(network) => network.draw(svg, corner),
        }
    }

    fn points(&self) -> Vec<DrawnPoint> {
        match self {
            FigurePanel::Chart(chart) => chart.points(),
            FigurePanel::Heatmap(heat) => heat.points(),
            FigurePanel::Network(network) => network.points(),
        }
    }
}
