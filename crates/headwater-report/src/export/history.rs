//! A tracked network over time: periods, the weights in each, and the times that bound them.

use super::network::{Edge, EdgeFilter};
use headwater::influence::Influence;
use headwater::model::{ChangeKind, Track};
use headwater::{Combination, Evidence, Model, influence};
use jiff::{Timestamp, ToSpan};
use std::collections::{BTreeMap, HashSet};

/// A network over time: consecutive periods, each with its own weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// Whether times are dates rather than numbers.
    pub dates: bool,
    /// Start of each period, and the end of the last one.
    pub bounds: Vec<String>,
    /// Edges of an earlier period that the final network does not have; their weight is zero.
    pub gone: Vec<Edge>,
    /// By edge (those of the final network first, then `gone`) and period; `None` where the edge did not exist.
    pub weights: Vec<Vec<Option<f64>>>,
    /// Columns of the agents: by period, then by agent.
    pub agents: Vec<(&'static str, Vec<Vec<Option<f64>>>)>,
}

impl History {
    /// One edge over time.
    pub(super) fn weights(&self, row: usize) -> impl Iterator<Item = Option<f64>> + '_ {
        self.weights.get(row).into_iter().flatten().copied()
    }
}

/// The history of a tracked model. A snapshot holds until the next one, the last one until the end.
pub(super) fn history(
    model: &Model,
    edges: &[Edge],
    filter: &EdgeFilter,
    wanted: impl Fn(usize, usize) -> bool,
) -> Option<History> {
    let track = &model.track;
    let mut periods: Vec<(usize, &Combination, &Evidence)> =
        track.history.iter().map(|snapshot| (snapshot.step, &snapshot.combination, &snapshot.evidence)).collect();
    let newest = periods.last()?.0;
    let last = model.diagnostics.steps.map_or(newest, |steps| steps.saturating_sub(1)).max(newest);
    if periods.last().is_some_and(|period| *period.1 != model.combination) {
        // The final network has no snapshot of its own: it is known of the last step only.
        if last == newest {
            periods.pop();
        }
        periods.push((last, &model.combination, &model.evidence));
    }
    let steps: Vec<usize> = periods.iter().map(|period| period.0).chain([last]).collect();
    let (dates, bounds) = bounds(track, &steps);

    let takes = |&(speaker, listener, weight): &(usize, usize, f64)| wanted(speaker, listener) && filter.takes(weight);
    let present: HashSet<(usize, usize)> = edges.iter().map(|edge| (edge.speaker, edge.listener)).collect();
    let mut gone: BTreeMap<(usize, usize), Edge> = BTreeMap::new();
    for (_, combination, _) in &periods {
        for (speaker, listener, _) in
            combination.edges().filter(takes).filter(|edge| !present.contains(&(edge.0, edge.1)))
        {
            gone.insert((listener, speaker), Edge { speaker, listener, weight: 0.0 });
        }
    }
    let gone: Vec<Edge> = gone.into_values().collect();
    let weight = |edge: &Edge, combination: &Combination| {
        let weight = combination.weight(edge.speaker, edge.listener);
        filter.takes(weight).then_some(weight)
    };
    let series = |edge: &Edge| periods.iter().map(|(_, combination, _)| weight(edge, combination)).collect();
    let weights = edges.iter().chain(&gone).map(series).collect();

    // After a change of state, earlier periods had another true hypothesis.
    let truth = model.truth.filter(|_| track.changes.iter().all(|change| change.kind != ChangeKind::State));
    let found: Vec<Option<Influence>> = (periods.iter())
        .map(|(_, combination, evidence)| {
            let (roster, method) = (model.roster.clone(), model.method.clone());
            let (combination, evidence) = ((*combination).clone(), (*evidence).clone());
            let mut then = Model::new(roster, combination, evidence, model.adaptation, method);
            then.truth = truth;
            influence(&then).ok()
        })
        .collect();
    let nothing = || vec![None; model.roster.agents().len()];
    let column = |get: fn(&Influence) -> Option<Vec<f64>>| {
        let values = |found: &Option<_>| {
            found.as_ref().and_then(get).map_or_else(nothing, |values| values.into_iter().map(Some).collect())
        };
        found.iter().map(values).collect()
    };
    let agents = vec![
        ("share_over_time", column(Influence::signed_share)),
        ("centrality_over_time", column(|found| Some(found.centrality.values.clone()))),
        ("informativeness_over_time", column(|found| Some(found.informativeness.clone()))),
    ];
    Some(History { dates, bounds, gone, weights, agents })
}

/// Times of steps, and whether they are dates. The time of a step that was not recorded is extrapolated from those that were.
fn bounds(track: &Track, steps: &[usize]) -> (bool, Vec<String>) {
    let recorded: BTreeMap<usize, &str> = track.times.iter().map(|(step, time)| (*step, time.as_str())).collect();
    let numbers = || {
        let time = |step: &usize| -> Option<i64> {
            match recorded.get(step) {
                Some(time) => time.parse().ok(),
                // Integer times are step numbers.
                None => recorded.last_key_value().map_or(Some(*step as i64), |(other, time)| {
                    Some(time.parse::<i64>().ok()? + *step as i64 - *other as i64)
                }),
            }
        };
        steps.iter().map(|step| time(step).map(|time| time.to_string())).collect::<Option<Vec<String>>>()
    };
    if let Some(numbers) = numbers() {
        return (false, numbers);
    }
    let instants: Option<Vec<(usize, Timestamp)>> =
        recorded.iter().map(|(step, time)| Some((*step, time.parse().ok()?))).collect();
    let Some(instants) = instants.filter(|instants| !instants.is_empty()) else {
        return (false, steps.iter().map(usize::to_string).collect());
    };
    let ((first, begin), (newest, end)) = (instants[0], instants[instants.len() - 1]);
    let a_step = (end.as_microsecond() - begin.as_microsecond()).checked_div((newest - first) as i64).unwrap_or(0);
    let time = |step: &usize| match instants.iter().find(|(other, _)| other == step) {
        Some((_, time)) => *time,
        None => {
            let later = a_step.saturating_mul(*step as i64 - newest as i64);
            end.checked_add(later.microseconds()).unwrap_or(end)
        }
    };
    let times: Vec<Timestamp> = steps.iter().map(time).collect();
    /// Microseconds.
    const DAY: i64 = 86_400_000_000;
    let days = times.iter().all(|time| time.as_microsecond() % DAY == 0);
    (true, times.iter().map(|time| if days { time.strftime("%F").to_string() } else { time.to_string() }).collect())
}

#[cfg(test)]
mod tests {
    use super::super::network::ExportNetwork;
    use super::super::network::tests::tracked_model;
    use super::*;
    use headwater::Ranking;

    #[test]
    fn times_are_numbers_days_or_instants() {
        let track = |times: &[(usize, &str)]| {
            let mut track = Track::default();
            track.times = times.iter().map(|(step, time)| (*step, (*time).to_owned())).collect();
            track
        };
        assert_eq!(
            bounds(&track(&[(2, "102"), (5, "105")]), &[2, 5, 9]),
            (false, vec!["102".into(), "105".into(), "109".into()])
        );
        let days = track(&[(0, "2024-02-28T00:00:00Z"), (2, "2024-03-01T00:00:00Z")]);
        assert_eq!(
            bounds(&days, &[0, 2, 3]),
            (true, vec!["2024-02-28".into(), "2024-03-01".into(), "2024-03-02".into()])
        );
        let hours = track(&[(0, "2024-02-28T00:00:00Z"), (2, "2024-02-28T12:00:00Z")]);
        assert_eq!(bounds(&hours, &[0, 3]).1, ["2024-02-28T00:00:00Z", "2024-02-28T18:00:00Z"]);
        // The length of a step cannot be told from a single date.
        assert_eq!(bounds(&track(&[(4, "2024-02-28T00:00:00Z")]), &[4, 9]).1, ["2024-02-28", "2024-02-28"]);
        assert_eq!(bounds(&track(&[]), &[4, 9]), (false, vec!["4".into(), "9".into()]));
    }

    #[test]
    fn the_final_network_is_the_last_period() {
        let mut model = tracked_model();
        model.track.history.pop();
        let network = ExportNetwork::new(&model, &Ranking::new(&model).unwrap(), &EdgeFilter::default()).unwrap();
        let history = network.history.unwrap();
        assert_eq!(history.bounds, ["10", "39", "39"]);
        assert_eq!(history.weights, [vec![Some(0.5), Some(0.75)], vec![Some(0.25), None]]);
        assert_eq!(history.gone, [Edge { speaker: 1, listener: 0, weight: 0.0 }]);
        model.diagnostics.steps = None;
        let network = ExportNetwork::new(&model, &Ranking::new(&model).unwrap(), &EdgeFilter::default()).unwrap();
        assert_eq!(network.history.unwrap().bounds, ["10", "10"]);
    }
}
