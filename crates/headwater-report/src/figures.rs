//! The standard figures of a model: ranking with intervals, network, heat map, opinions over time, error curves.

use crate::chart::{Axis, Chart, ChartSeries, Point, Shape};
use crate::error::Error;
use crate::figure::{Figure, FigurePanel};
use crate::heat::Heatmap;
use crate::network::{Link, NetworkChart, Node, places};
use crate::page::ReportInput;
use crate::page::opinions::{BeliefSums, bin_width, changes, shown_times, zone};
use headwater::Combination;
use headwater::compare::GroundTruth;
use headwater::words::short;

/// Agents in the figure of a ranking.
const RANKED: usize = 25;

/// Agents in a heat map, by rank.
const SHADED: usize = 100;

/// Agents whose own opinions are drawn.
const FOLLOWED: usize = 3;

/// Points of a curve; more cannot be told apart at this size.
const POINTS: usize = 80;

/// Links in the figure of a network, the strongest.
const LINKS: usize = 1000;

fn figure(title: &str, panels: Vec<FigurePanel>) -> Figure {
    Figure { title: title.to_owned(), columns: panels.len().max(1), panels }
}

/// The highest-ranked agents by share of influence, with intervals where known.
pub fn ranking(from: &ReportInput<'_>) -> Figure {
    let rows = || from.ranking.agents.iter().take(RANKED);
    let shares = from.ranking.agents.iter().all(|row| row.share.is_some());
    let points = rows().enumerate().map(|(place, row)| Point {
        x: place as f64,
        y: row.signed_share().unwrap_or(row.influence),
        interval: row.signed_interval().filter(|_| shares),
    });
    let chart = Chart {
        x: Axis::named("agents by rank", rows().map(|row| short(&row.agent)).collect()),
        y: Axis::linear(if shares { "share of influence" } else { "influence" }),
        series: vec![ChartSeries::new("", Shape::Dots, points.collect())],
        ..Chart::default()
    };
    figure("Shares of influence", vec![FigurePanel::Chart(chart)])
}

/// The network: areas by share of influence, colours by opinion where beliefs are given.
pub fn network(from: &ReportInput<'_>) -> Result<Figure, Error> {
    let model = from.model;
    let (names, hypotheses) = (model.roster.agents(), model.roster.hypotheses());
    let edges = crate::page::strongest_edges(model);
    let heaviest = edges.first().map_or(1.0, |edge| edge.2);
    let sums = from.beliefs.map(|panel| BeliefSums::new(model, panel, POINTS)).transpose()?;
    let side = |agent: usize| -> usize {
        let leaning = |hypothesis: usize| sums.as_ref().and_then(|sums| sums.leaning(agent, hypothesis));
        let beliefs: Option<Vec<f64>> = (0..hypotheses.len()).map(leaning).collect();
        let most = |beliefs: Vec<f64>| (0..beliefs.len()).rev().max_by(|&a, &b| beliefs[a].total_cmp(&beliefs[b]));
        beliefs.and_then(most).unwrap_or(0)
    };
    let mut nodes: Vec<Node> = names
        .iter()
        .enumerate()
        .map(|(agent, name)| Node { name: short(name), share: 0.0, colour: side(agent) })
        .collect();
    for row in &from.ranking.agents {
        nodes[model.roster.agent(&row.agent)?].share = row.share.unwrap_or(0.0);
    }
    let legend = match sums {
        Some(_) => {
            hypotheses.iter().enumerate().map(|(place, name)| (place, format!("leans towards {name}"))).collect()
        }
        None => Vec::new(),
    };
    let link = |&(from, to, weight): &(usize, usize, f64)| Link { from, to, weight: weight / heaviest };
    // The strongest last, on top of the others.
    let links = edges.iter().take(LINKS).rev().map(link).collect();
    let places = places(names.len(), &edges);
    Ok(figure(
        "Who listens to whom",
        vec![FigurePanel::Network(NetworkChart { title: String::new(), nodes, links, legend, places })],
    ))
}

/// The weights as heat maps, agents by rank; beside them the true ones where known.
pub fn heat(from: &ReportInput<'_>) -> Result<Figure, Error> {
    let model = from.model;
    let order: Vec<&String> = from.ranking.agents.iter().take(SHADED).map(|row| &row.agent).collect();
    let cells = |weights: &Combination, roster: &headwater::Roster| -> Vec<Vec<f64>> {
        let place: Vec<Option<usize>> = order.iter().map(|name| roster.agent(name).ok()).collect();
        let weight = |speaker: Option<usize>, listener: Option<usize>| {
            speaker.zip(listener).map_or(0.0, |(speaker, listener)| weights.weight(speaker, listener))
        };
        place.iter().map(|&speaker| place.iter().map(|&listener| weight(speaker, listener)).collect()).collect()
    };
    let learned = ("learned", cells(&model.combination, &model.roster));
    let known = |truth: &GroundTruth| truth.combination.as_ref().map(|weights| ("true", cells(weights, &truth.roster)));
    let all: Vec<(&str, Vec<Vec<f64>>)> = from.truth.and_then(known).into_iter().chain([learned]).collect();
    let darkest = all.iter().flat_map(|(_, cells)| cells.iter().flatten()).fold(0.0f64, |most, v| most.max(v.abs()));
    let panel = |(title, cells): (&str, Vec<Vec<f64>>)| {
        FigurePanel::Heatmap(Heatmap {
            title: title.to_owned(),
            rows: "speaker by rank".to_owned(),
            columns: "listener by rank".to_owned(),
            cells,
            darkest: if darkest > 0.0 { darkest } else { 1.0 },
        })
    };
    Ok(figure("Weights", all.into_iter().map(panel).collect()))
}

/// Belief in the consensus hypothesis over time: mean and interquartile range with the number of agents it is over, the
/// highest-ranked agents, and detected changes.
/// `None` without beliefs.
pub fn opinions(from: &ReportInput<'_>) -> Result<Option<Figure>, Error> {
    let (Some(panel), model) = (from.beliefs, from.model) else { return Ok(None) };
    let truth = model.roster.hypothesis(&from.ranking.truth)?;
    let sums = BeliefSums::new(model, panel, POINTS)?;
    let at = |point: usize| (point * sums.merged) as f64;
    let speaking: Vec<usize> = (0..sums.points).map(|point| sums.all(truth, point).count()).collect();
    let most = speaking.iter().max().copied().unwrap_or(0);
    let spoke = speaking.iter().enumerate().map(|(point, agents)| Point::new(at(point), *agents as f64)).collect();
    let mut series = vec![ChartSeries::new(&format!("agents with a post, at most {most}"), Shape::Counts, spoke)];
    let middle = |point: usize| {
        let mut all: Vec<f64> = sums.all(truth, point).collect();
        all.sort_by(f64::total_cmp);
        let (low, high) = (*all.get(all.len() / 4)?, *all.get(all.len() * 3 / 4)?);
        Some(Point::within(at(point), sums.mean(truth, point)?, low, high))
    };
    // A point without a number is silence: the line ends there.
    let silence = |point: usize| Point::new(at(point), f64::NAN);
    let everybody = (0..sums.points).map(|point| middle(point).unwrap_or_else(|| silence(point))).collect();
    series.push(ChartSeries::new("mean and interquartile range", Shape::Line, everybody));
    for row in from.ranking.agents.iter().take(FOLLOWED) {
        let agent = model.roster.agent(&row.agent)?;
        let said = |point: usize| Point::new(at(point), sums.belief(agent, truth, point).unwrap_or(f64::NAN));
        series.push(ChartSeries::new(&short(&row.agent), Shape::Line, (0..sums.points).map(said).collect()));
    }
    let drawn =
        series.iter().filter(|series| series.shape != Shape::Counts).flat_map(|series: &ChartSeries| &series.points);
    let ends = drawn.map(|point| point.interval.unwrap_or((point.y, point.y)));
    let (low, high) = ends.fold((1.0f64, 0.0f64), |(low, high), ends| (low.min(ends.0), high.max(ends.1)));
    // A point that is not a number separates the marks.
    let mark = |point: usize| [Point::new(at(point), low), Point::new(at(point), high), Point::new(f64::NAN, f64::NAN)];
    let changed = changes(&model.track, panel.steps(), sums.merged);
    if !changed.is_empty() {
        let marks = changed.iter().flat_map(|(point, ..)| mark(*point));
        series.insert(1, ChartSeries::new("change", Shape::Reference, marks.collect()));
    }
    let span = match zone(from) {
        Some(zone) => format!("time ({zone})"),
        None if bin_width(from).is_some() => "time".to_owned(),
        None => "step".to_owned(),
    };
    let span = if sums.merged > 1 { format!("{span}, means of {} steps", sums.merged) } else { span };
    let dates = shown_times(from, panel, sums.merged);
    let labels = dates.into_iter().enumerate().map(|(point, date)| (at(point), date)).collect();
    let chart = Chart {
        x: Axis::labelled(&span, labels),
        y: Axis::linear(&format!("belief in {}", short(&from.ranking.truth))),
        series,
        ..Chart::default()
    };
    Ok(Some(figure("Opinions over time", vec![FigurePanel::Chart(chart)])))
}

/// Error curves: name, and step with squared error of the weights.
pub fn errors(traces: &[(String, Vec<(f64, f64)>)]) -> Figure {
    let curve = |(name, trace): &(String, Vec<(f64, f64)>)| {
        ChartSeries::new(name, Shape::Line, trace.iter().map(|&(step, error)| Point::new(step, error)).collect())
    };
    let chart = Chart {
        x: Axis::linear("step"),
        y: Axis::log("squared error of the weights"),
        series: traces.iter().map(curve).collect(),
        ..Chart::default()
    };
    figure("Error while learning", vec![FigurePanel::Chart(chart)])
}
