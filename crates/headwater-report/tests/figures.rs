//! Figures of every kind: well-formed, complete, and the same from run to run.

use headwater_report::{
    Axis, Chart, ChartSeries, Figure, FigurePanel, Heatmap, Link, NetworkChart, Node, Point, Shape,
};

fn sample() -> Figure {
    let curve = |factor: f64| (1..50).map(|x| Point::within(f64::from(x), factor / f64::from(x), 0.01, 1.0)).collect();
    let chart = Chart {
        title: "Lines <&>".into(),
        x: Axis::log("step"),
        y: Axis::log("squared error"),
        series: vec![
            ChartSeries::new("M = 1", Shape::Line, curve(1.0)),
            ChartSeries::new("the authors' own", Shape::Reference, curve(2.0)),
            ChartSeries::new(
                "a name that is long enough to need a row of its own in the legend",
                Shape::Dots,
                curve(3.0),
            ),
        ],
    };
    let bars = Chart {
        title: "Bars".into(),
        x: Axis::named("agent", (0..20).map(|agent| format!("agent {agent}")).collect()),
        y: Axis::linear("share"),
        series: vec![
            ChartSeries::new("true", Shape::Bars, (0..20).map(|x| Point::new(f64::from(x), 0.1)).collect()),
            ChartSeries::new(
                "learned",
                Shape::Bars,
                (0..20).map(|x| Point::within(f64::from(x), -0.1, -0.2, 0.0)).collect(),
            ),
        ],
    };
    let heat = Heatmap {
        title: "A".into(),
        rows: "speaker".into(),
        columns: "listener".into(),
        cells: vec![vec![0.5, -0.1], vec![0.0, 1.0]],
        darkest: 1.0,
    };
    let network = NetworkChart {
        title: "Net".into(),
        nodes: (0..4).map(|node| Node { name: format!("<script>{node}"), share: 0.25, colour: node }).collect(),
        links: vec![Link { from: 0, to: 1, weight: 0.5 }, Link { from: 2, to: 3, weight: 1.0 }],
        legend: vec![(0, "hub".into())],
        places: Vec::new(),
    };
    let panels = vec![
        FigurePanel::Chart(chart),
        FigurePanel::Chart(bars),
        FigurePanel::Heatmap(heat),
        FigurePanel::Network(network),
    ];
    Figure { title: "Sample".into(), panels, columns: 2 }
}

#[test]
fn a_figure_is_an_svg_a_png_and_a_table() {
    let figure = sample();
    let svg = figure.svg();
    assert_eq!(svg, figure.svg());
    assert!(!svg.contains("<script>") && svg.contains("&lt;script&gt;") && svg.contains("Lines &lt;&amp;&gt;"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    // The renderer is an independent reader: it refuses what is not well formed.
    let png = figure.png().unwrap();
    assert_eq!(&png[1..4], b"PNG");
    let blank = Figure { title: "Sample".into(), panels: Vec::new(), columns: 2 }.png().unwrap();
    assert!(png.len() > 10 * blank.len(), "something was drawn: {} against {}", png.len(), blank.len());
    let points = figure.points();
    assert_eq!(points.len(), 3 * 49 + 40 + 4 + 4 + 2);
    assert_eq!((points[0].x.as_str(), points[0].y, points[0].low), ("1", 1.0, Some(0.01)));
    assert!(points.iter().any(|point| point.x == "agent 19" && point.series == "learned"));
}

#[test]
fn nothing_and_nonsense_can_be_drawn() {
    let points =
        vec![Point::new(f64::NAN, 1.0), Point::new(1.0, f64::INFINITY), Point::within(0.0, -1.0, f64::NAN, 2.0)];
    for axis in [Axis::linear("x"), Axis::log("x")] {
        for shape in [Shape::Line, Shape::Reference, Shape::Dots, Shape::Bars, Shape::Counts] {
            let series = vec![ChartSeries::new("", shape, points.clone()), ChartSeries::new("", shape, Vec::new())];
            let chart = Chart { x: axis.clone(), y: axis.clone(), series, ..Chart::default() };
            let panels = vec![
                FigurePanel::Chart(chart),
                FigurePanel::Heatmap(Heatmap::default()),
                FigurePanel::Network(NetworkChart::default()),
            ];
            let figure = Figure { title: String::new(), panels, columns: 0 };
            assert!(!figure.svg().contains("NaN"));
            figure.png().unwrap();
        }
    }
}
