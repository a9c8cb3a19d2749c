//! Lines, bands, dots and bars on two axes.

use crate::figure::DrawnPoint;
use crate::scale::{Scale, ScaleKind};
use crate::style::{COLOURS, DASHES, FAINT, GREY, INK, PANEL, TEXT, TITLE, width};
use crate::svg::{Anchor, Svg, TextStyle};

/// One axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    /// Label, with the unit.
    pub label: String,
    /// Linear or logarithmic.
    pub kind: ScaleKind,
    /// Lower and upper end; chosen from the points when not given.
    pub range: Option<(f64, f64)>,
    /// Names of the positions 0, 1, 2, …, for categories.
    pub names: Vec<String>,
    /// Labels of positions in order, such as dates; as many are shown as have space. Round numbers when empty.
    pub labels: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Self {
        Axis { label: label.to_owned(), ..Axis::default() }
    }

    /// A logarithmic axis.
    pub fn log(label: &str) -> Self {
        Axis { kind: ScaleKind::Log, ..Axis::linear(label) }
    }

    /// An axis of categories.
    pub fn named(label: &str, names: Vec<String>) -> Self {
        Axis { names, ..Axis::linear(label) }
    }

    /// A linear axis with labels of its own, such as dates.
    pub fn labelled(label: &str, labels: Vec<(f64, String)>) -> Self {
        Axis { labels, ..Axis::linear(label) }
    }

    /// The same with a fixed range.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Self {
        Axis { range: Some((low, high)), ..self }
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A line, with a band where there are intervals.
    Line,
    /// A thin grey line, for comparison.
    Reference,
    /// Dots, with whiskers where there are intervals.
    Dots,
    /// Bars from zero, grouped by position, with whiskers where there are intervals.
    Bars,
    /// Faint bars along the bottom, the largest number the highest; they have no vertical axis.
    Counts,
}

/// A point, with an interval where there is one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Horizontal coordinate.
    pub x: f64,
    /// Vertical coordinate.
    pub y: f64,
    /// Lower and upper end.
    pub interval: Option<(f64, f64)>,
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Point { x, y, interval: None }
    }

    /// A point with an interval.
    pub fn within(x: f64, y: f64, low: f64, high: f64) -> Self {
        Point { x, y, interval: Some((low, high)) }
    }
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartSeries {
    /// For the legend.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// In order of x.
    pub points: Vec<Point>,
}

impl ChartSeries {
    /// A series.
    pub fn new(name: &str, shape: Shape, points: Vec<Point>) -> Self {
        ChartSeries { name: name.to_owned(), shape, points }
    }
}

/// A chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// From back to front.
    pub series: Vec<ChartSeries>,
}

/// Distances around the drawing area.
const LEFT: f64 = 66.0;
const RIGHT: f64 = 16.0;
const BOTTOM: f64 = 46.0;
const LINE: f64 = 16.0;

/// Room between two labels of the horizontal axis.
const BETWEEN: f64 = 14.0;

/// Height of the largest count, as a share of the drawing area.
const COUNTS: f64 = 0.18;

/// Colour of counts.
const COUNT_COLOUR: &str = "#C9D6DF";

/// Colour and dash of a series.
#[derive(Clone, Copy)]
struct Pen {
    colour: &'static str,
    dash: &'static str,
    width: f64,
}

impl Chart {
    /// Colours go by number among the series that are not there for reference.
    fn pens(&self) -> Vec<Pen> {
        let mut next = 0;
        let mut references = 0;
        let pen = |series: &ChartSeries| match series.shape {
            Shape::Reference => {
                references += 1;
                Pen { colour: GREY, dash: DASHES[(references - 1) % DASHES.len()], width: 1.2 }
            }
            Shape::Counts => Pen { colour: COUNT_COLOUR, dash: "", width: 1.0 },
            _ => {
                next += 1;
                let index = next - 1;
                Pen { colour: COLOURS[index % COLOURS.len()], dash: DASHES[index % DASHES.len()], width: 1.8 }
            }
        };
        self.series.iter().map(pen).collect()
    }

    /// Legend entries in rows that fit: the place of each, and the number of rows.
    fn legend(&self) -> (Vec<(f64, usize)>, usize) {
        let (mut across, mut row) = (0.0, 0);
        let mut places = Vec::new();
        for series in &self.series {
            let size = 28.0 + width(&series.name, TEXT) + 12.0;
            if across > 0.0 && across + size > PANEL.0 + RIGHT {
                (across, row) = (0.0, row + 1);
            }
            places.push((across, row));
            across += size;
        }
        let rows = if self.series.len() > 1 { row + 1 } else { 0 };
        (places, rows)
    }

    /// Room that upright names on the horizontal axis need.
    fn bottom(&self) -> f64 {
        let longest = self.x.names.iter().map(|name| width(name, TEXT)).fold(0.0, f64::max);
        if self.crowded() { BOTTOM + (longest - 8.0).clamp(0.0, 120.0) } else { BOTTOM }
    }

    /// Whether names on the horizontal axis must stand upright.
    fn crowded(&self) -> bool {
        let space = PANEL.0 / self.x.names.len().max(1) as f64;
        self.x.names.iter().any(|name| width(name, TEXT) > space - 4.0)
    }

    pub(crate) fn size(&self) -> (f64, f64) {
        let (_, rows) = self.legend();
        (LEFT + PANEL.0 + RIGHT, TITLE + 14.0 + rows as f64 * LINE + PANEL.1 + self.bottom())
    }

    fn scales(&self) -> (Scale, Scale) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let bars = self.series.iter().any(|series| series.shape == Shape::Bars);
        let x = match (self.x.range, self.x.names.len()) {
            (Some((low, high)), _) => Scale::between(self.x.kind, low, high),
            (None, 0) => Scale::over(self.x.kind, points().map(|point| point.x), false),
            (None, names) => Scale::between(ScaleKind::Linear, -0.6, names as f64 - 0.4),
        };
        let measured = self.series.iter().filter(|series| series.shape != Shape::Counts);
        let heights = measured.flat_map(|series| &series.points).flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        let y = match self.y.range {
            Some((low, high)) => Scale::between(self.y.kind, low, high),
            None => Scale::over(self.y.kind, heights, bars),
        };
        (x, y)
    }

    pub(crate) fn draw(&self, svg: &mut Svg, corner: (f64, f64)) {
        let (pens, (places, rows)) = (self.pens(), self.legend());
        let (x, y) = self.scales();
        svg.text(
            (corner.0 + LEFT, corner.1 + TITLE),
            &self.title,
            TextStyle { bold: true, ..TextStyle::plain(Anchor::Start) },
        );
        let top = corner.1 + TITLE + 14.0;
        if rows > 0 {
            for ((series, pen), (across, row)) in self.series.iter().zip(&pens).zip(&places) {
                let place = (corner.0 + LEFT + across, top + *row as f64 * LINE + 6.0);
                sample(svg, place, series.shape, *pen);
                svg.text((place.0 + 28.0, place.1 + 4.0), &series.name, TextStyle::plain(Anchor::Start));
            }
        }
        let origin = (corner.0 + LEFT, top + rows as f64 * LINE);
        self.axes(svg, origin, &x, &y);
        let spot = |point: (f64, f64)| -> Option<(f64, f64)> {
            let (across, up) = (x.place(point.0)?, y.place(point.1)?);
            // Far outside is outside: keep numbers small for programs that draw it.
            Some((origin.0 + across.clamp(-9.0, 9.0) * PANEL.0, origin.1 + (1.0 - up.clamp(-9.0, 9.0)) * PANEL.1))
        };
        svg.clip(origin, PANEL);
        let bars = self.series.iter().filter(|series| series.shape == Shape::Bars).count();
        let mut bar = 0;
        for (series, pen) in self.series.iter().zip(&pens) {
            match series.shape {
                Shape::Line | Shape::Reference => line(svg, series, *pen, &spot),
                Shape::Counts => counts(svg, series, *pen, origin, &x),
                Shape::Dots => {
                    for point in &series.points {
                        whisker(svg, point, point.x, pen.colour, &spot);
                        if let Some(place) = spot((point.x, point.y)) {
                            svg.circle(place, 3.2, pen.colour, "#FFFFFF");
                        }
                    }
                }
                Shape::Bars => {
                    let wide = 0.8 / bars as f64;
                    let shift = (bar as f64 + 0.5) * wide - 0.4;
                    bar += 1;
                    for point in &series.points {
                        let (left, right) = (point.x + shift - wide / 2.0, point.x + shift + wide / 2.0);
                        let foot = if self.y.kind == ScaleKind::Log { f64::MIN_POSITIVE } else { 0.0 };
                        if let (Some(from), Some(to)) = (spot((left, point.y)), spot((right, foot))) {
                            let upper = (from.0, from.1.min(to.1));
                            svg.rect(upper, (to.0 - from.0 - 0.5, (to.1 - from.1).abs()), pen.colour);
                        }
                        whisker(svg, point, point.x + shift, INK, &spot);
                    }
                }
            }
        }
        svg.unclip();
    }

    fn axes(&self, svg: &mut Svg, origin: (f64, f64), x: &Scale, y: &Scale) {
        let (right, bottom) = (origin.0 + PANEL.0, origin.1 + PANEL.1);
        for (value, label) in y.ticks() {
            let Some(up) = y.place(value).filter(|up| (-1e-9..=1.0 + 1e-9).contains(up)) else { continue };
            let level = bottom - up * PANEL.1;
            svg.line((origin.0, level), (right, level), FAINT, 1.0);
            svg.text((origin.0 - 6.0, level + 4.0), &label, TextStyle::plain(Anchor::End));
        }
        let named: Vec<(f64, String)> =
            self.x.names.iter().enumerate().map(|(n, name)| (n as f64, name.clone())).collect();
        let upright = self.crowded();
        let ticks = match (named.is_empty(), self.x.labels.is_empty()) {
            (true, true) => x.ticks(),
            (true, false) => self.spaced_labels(x),
            (false, _) => named,
        };
        for (value, label) in ticks {
            let Some(across) = x.place(value).filter(|across| (-1e-9..=1.0 + 1e-9).contains(across)) else { continue };
            let place = origin.0 + across * PANEL.0;
            svg.line((place, bottom), (place, bottom + 4.0), INK, 1.0);
            if upright && !self.x.names.is_empty() {
                let style = TextStyle { turned: true, ..TextStyle::plain(Anchor::End) };
                svg.text((place + 4.0, bottom + 8.0), &label, style);
            } else {
                svg.text((place, bottom + 17.0), &label, TextStyle::plain(Anchor::Middle));
            }
        }
        svg.line((origin.0, origin.1), (origin.0, bottom), INK, 1.0);
        svg.line((origin.0, bottom), (right, bottom), INK, 1.0);
        let middle = (origin.0 + PANEL.0 / 2.0, bottom + self.bottom() - 10.0);
        svg.text(middle, &self.x.label, TextStyle::plain(Anchor::Middle));
        let left = (origin.0 - LEFT + 14.0, origin.1 + PANEL.1 / 2.0);
        svg.text(left, &self.y.label, TextStyle { turned: true, ..TextStyle::plain(Anchor::Middle) });
    }

    /// Labels at equal distances that do not touch each other, and do not reach beyond the drawing.
    fn spaced_labels(&self, x: &Scale) -> Vec<(f64, String)> {
        let labels = &self.x.labels;
        let widest = labels.iter().map(|(_, label)| width(label, TEXT)).fold(0.0, f64::max);
        let places: Vec<f64> = labels.iter().filter_map(|(value, _)| x.place(*value)).map(|at| at * PANEL.0).collect();
        let apart = match (places.first(), places.last()) {
            (Some(first), Some(last)) if places.len() > 1 => (last - first) / (places.len() - 1) as f64,
            _ => PANEL.0,
        };
        let decades = (0..).map(|power| 10usize.pow(power)).take(9);
        let strides = decades.flat_map(|decade| [1, 2, 5].map(|times| times * decade));
        let fits = |stride: &usize| *stride as f64 * apart >= widest + BETWEEN;
        let stride = strides.into_iter().find(fits).unwrap_or(usize::MAX);
        let inside = |value: &f64| x.place(*value).is_some_and(|at| at * PANEL.0 + widest / 2.0 <= PANEL.0 + RIGHT);
        labels.iter().step_by(stride).filter(|(value, _)| inside(value)).cloned().collect()
    }

    pub(crate) fn points(&self) -> Vec<DrawnPoint> {
        let name = |axis: &Axis, value: f64| match axis.names.get(value as usize) {
            Some(name) if value >= 0.0 => name.clone(),
            _ => axis.labels.iter().find(|(at, _)| *at == value).map_or(value.to_string(), |(_, label)| label.clone()),
        };
        let of = |series: &ChartSeries| {
            let drawn = |point: &Point| DrawnPoint {
                panel: self.title.clone(),
                series: series.name.clone(),
                x: name(&self.x, point.x),
                y: point.y,
                low: point.interval.map(|(low, _)| low),
                high: point.interval.map(|(_, high)| high),
            };
            series.points.iter().map(drawn).collect::<Vec<_>>()
        };
        self.series.iter().flat_map(of).collect()
    }
}

/// What a series looks like, for the legend.
fn sample(svg: &mut Svg, place: (f64, f64), shape: Shape, pen: Pen) {
    match shape {
        Shape::Line | Shape::Reference => {
            svg.path(&[vec![place, (place.0 + 22.0, place.1)]], pen.colour, pen.width, pen.dash);
        }
        Shape::Dots => svg.circle((place.0 + 11.0, place.1), 3.2, pen.colour, "#FFFFFF"),
        Shape::Bars | Shape::Counts => svg.rect((place.0 + 6.0, place.1 - 5.0), (11.0, 10.0), pen.colour),
    }
}

fn line(svg: &mut Svg, series: &ChartSeries, pen: Pen, spot: &dyn Fn((f64, f64)) -> Option<(f64, f64)>) {
    // A point that cannot be shown breaks the line rather than bend it.
    let mut pieces = vec![Vec::new()];
    // Upper and lower edge of each piece.
    let mut bands = vec![(Vec::new(), Vec::new())];
    for point in &series.points {
        match (spot((point.x, point.y)), pieces.last_mut()) {
            (Some(place), Some(piece)) => piece.push(place),
            _ => {
                pieces.push(Vec::new());
                bands.push((Vec::new(), Vec::new()));
            }
        }
        let ends = point.interval.and_then(|(low, high)| Some((spot((point.x, low))?, spot((point.x, high))?)));
        if let (Some((low, high)), Some((upper, lower))) = (ends, bands.last_mut()) {
            lower.push(low);
            upper.push(high);
        }
    }
    for (mut upper, lower) in bands.into_iter().filter(|(upper, _)| upper.len() > 1) {
        upper.extend(lower.into_iter().rev());
        svg.area(&upper, pen.colour);
    }
    // A point between two gaps is a dot.
    for piece in pieces.iter().filter(|piece| piece.len() == 1) {
        svg.circle(piece[0], pen.width, pen.colour, pen.colour);
    }
    pieces.retain(|piece| piece.len() > 1);
    svg.path(&pieces, pen.colour, pen.width, pen.dash);
}

/// Bars along the bottom of the drawing area.
fn counts(svg: &mut Svg, series: &ChartSeries, pen: Pen, origin: (f64, f64), x: &Scale) {
    let most = series.points.iter().map(|point| point.y).filter(|y| y.is_finite()).fold(1.0, f64::max);
    let places: Vec<Option<f64>> = series.points.iter().map(|point| x.place(point.x)).collect();
    let apart = match (places.first(), places.last()) {
        (Some(Some(first)), Some(Some(last))) if places.len() > 1 => (last - first) / (places.len() - 1) as f64,
        _ => 0.1,
    };
    let wide = (0.8 * apart * PANEL.0).max(0.5);
    for (point, place) in series.points.iter().zip(places) {
        let high = COUNTS * PANEL.1 * point.y / most;
        if let Some(across) = place.filter(|across| (0.0..=1.0).contains(across) && high > 0.0 && high.is_finite()) {
            svg.rect((origin.0 + across * PANEL.0 - wide / 2.0, origin.1 + PANEL.1 - high), (wide, high), pen.colour);
        }
    }
}

fn whisker(svg: &mut Svg, point: &Point, x: f64, colour: &str, spot: &dyn Fn((f64, f64)) -> Option<(f64, f64)>) {
    let Some((low, high)) = point.interval else { return };
    if let (Some(low), Some(high)) = (spot((x, low)), spot((x, high))) {
        svg.line(low, high, colour, 1.2);
    }
}
