//! People in experiments: groups of people who revise an estimate, with a known network.
//!
//! In: the folders `becker-2017` and `clinicians-2023`. Out: in every group the account towards which the others move most,
//! whether some account is heard, and whether opinion travels along the graph. Nothing of the design is used: neither that there
//! is a hub nor which condition a group is of.

use crate::Error;
use crate::claim::{ClaimStatus, PaperClaim};
use crate::experiment::{ExperimentContext, ExperimentResult, NamedFigure};
use crate::released_data::PeopleGroup;
use headwater::evaluate::graph_test::{GraphTest, GraphTestParams, PowerWorlds, graph_test, heard_test, pulls};
use headwater::graph::Graph;
use headwater_report::{Axis, Chart, ChartSeries, Figure, FigurePanel, Point, Shape};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Level of the tests.
const LEVEL: f64 = 0.05;

/// What was found in a group of the first data set.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct HeardGroup {
    group: String,
    condition: String,
    accounts: usize,
    episodes: usize,
    /// Of the test whether some account is heard.
    p_value: f64,
    /// Rank of the hub by the pull towards an account, and whether it is the account that is ahead in the test, where there is
    /// a hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    hub_rank: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hub_ahead: Option<bool>,
}

/// What was found in a group of the second data set.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct GraphGroup {
    group: String,
    condition: String,
    accounts: usize,
    edges: usize,
    p_value: f64,
    effect: f64,
    z: f64,
}

pub(crate) fn run(context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
    let (first, second) = (estimates(context)?, clinicians(context)?);
    let claims = [claims_of_estimates(&first), claims_of_clinicians(&second)].concat();
    let numbers = json!({ "draws": context.pick(199, 999), "estimates": first, "clinicians": second });
    let caption = "One dot is one group of people: p of the test whether some account is heard (left, 4 or 5 questions a group) and whether opinion travels along the graph (right, one case a group). The line is 5 %.".to_owned();
    Ok(ExperimentResult {
        figures: vec![NamedFigure { stem: "people".into(), caption, figure: figure(&first, &second) }],
        numbers,
        claims,
    })
}

fn params(context: &ExperimentContext<'_>) -> GraphTestParams {
    GraphTestParams {
        draws: context.pick(199, 999),
        power: PowerWorlds::Worlds(0),
        seed: context.seed,
        ..GraphTestParams::default()
    }
}

/// Estimates of a quantity: a hub that everybody sees, a network without one, or nobody to see.
fn estimates(context: &ExperimentContext<'_>) -> Result<Vec<HeardGroup>, Error> {
    let groups = context.released.estimates()?;
    let keys: Vec<String> = groups.iter().map(|group| format!("estimates-{}", group.name)).collect();
    let params = params(context);
    context.jobs.all(&keys, |index| {
        let group = &groups[index];
        let panel = &group.panel;
        let test = heard_test(panel, &params)?;
        let hub = group.hub.as_ref().map(|name| panel.roster().agent(name)).transpose()?;
        let found = pulls(panel);
        let rank = |hub: usize| 1 + found.iter().filter(|pull| pull.gain > found[hub].gain).count();
        Ok(HeardGroup {
            group: group.name.clone(),
            condition: group.condition.clone(),
            accounts: panel.agents(),
            episodes: panel.episodes().count(),
            p_value: test.p_value,
            hub_rank: hub.map(rank),
            hub_ahead: hub.map(|hub| test.speaker == hub),
        })
    })
}

/// Clinicians who see the answers of their neighbours, or nobody's: those get a graph of the others.
fn clinicians(context: &ExperimentContext<'_>) -> Result<Vec<GraphGroup>, Error> {
    let groups = context.released.clinicians()?;
    let graphs: Vec<&PeopleGroup> = groups.iter().filter(|group| !group.edges.is_empty()).collect();
    let keys: Vec<String> =
        groups.iter().map(|group| format!("clinicians-{}-{}", group.condition, group.name)).collect();
    let params = params(context);
    context.jobs.all(&keys, |index| {
        let group = &groups[index];
        let before = groups[..index].iter().filter(|other| other.edges.is_empty()).count();
        let graph = match group.edges.is_empty() {
            false => own_graph(group)?,
            true => laid_on(group, graphs[before % graphs.len()])?,
        };
        let GraphTest { p_value, effect, z, edges, accounts, .. } = graph_test(&[&group.panel], &graph, &params)?;
        let (name, condition) = (group.name.clone(), group.condition.clone());
        Ok(GraphGroup { group: name, condition, accounts, edges, p_value, effect, z })
    })
}

/// Who sees whom among those who answered.
fn own_graph(group: &PeopleGroup) -> Result<Graph, Error> {
    let place = |name: &String| group.panel.roster().agent(name).ok();
    let edges = group.edges.iter().filter_map(|(source, target)| Some((place(source)?, place(target)?)));
    Ok(Graph::new(group.panel.agents(), edges.collect::<Vec<_>>())?)
}

/// The graph of another group on this one: the first of the one by name takes the place of the first of the other, and so on.
fn laid_on(group: &PeopleGroup, other: &PeopleGroup) -> Result<Graph, Error> {
    let sorted = |group: &PeopleGroup| {
        let mut names: Vec<(String, usize)> =
            group.panel.roster().agents().iter().cloned().enumerate().map(|(place, name)| (name, place)).collect();
        names.sort();
        names
    };
    let (here, there) = (sorted(group), sorted(other));
    let place = |name: &String| {
        let rank = there.binary_search_by(|(known, _)| known.cmp(name)).ok()?;
        here.get(rank).map(|(_, place)| *place)
    };
    let edges = other.edges.iter().filter_map(|(source, target)| Some((place(source)?, place(target)?)));
    Ok(Graph::new(group.panel.agents(), edges.collect::<Vec<_>>())?)
}

fn count(all: usize, met: usize) -> String {
    format!("{met} of {all}")
}

fn claims_of_estimates(groups: &[HeardGroup]) -> Vec<PaperClaim> {
    let of =
        |condition: &str| -> Vec<&HeardGroup> { groups.iter().filter(|group| group.condition == condition).collect() };
    let heard = |groups: &[&HeardGroup]| groups.iter().filter(|group| group.p_value <= LEVEL).count();
    let (central, even, alone) = (of("Centralized"), of("Decentralized"), of("Solo"));
    let first = central.iter().filter(|group| group.hub_rank == Some(1)).count();
    vec![
        PaperClaim {
            ours: count(central.len(), first),
            explanation: "the account towards which the others move most, beside the mean of all, with Student errors; target: 5 of 6".into(),
            ..PaperClaim::new(
                "Estimates, everybody sees one hub: the hub is first",
                ClaimStatus::when(6 * first >= 5 * central.len() && first > 0),
            )
        },
        PaperClaim {
            ours: count(central.len(), heard(&central)),
            explanation: "scores of the accounts exchanged within each question, p at most 0.05; target: 4 of 6".into(),
            ..PaperClaim::new(
                "Estimates, everybody sees one hub: some account is heard",
                ClaimStatus::when(6 * heard(&central) >= 4 * central.len() && heard(&central) > 0),
            )
        },
        PaperClaim {
            ours: format!(
                "{} without a hub, {} who see nobody",
                count(even.len(), heard(&even)),
                count(alone.len(), heard(&alone))
            ),
            explanation: "the same test; target: none of those who see nobody".into(),
            ..PaperClaim::new(
                "Estimates, no hub or nobody to see: no account is heard",
                ClaimStatus::when(heard(&alone) == 0 && !alone.is_empty()),
            )
        },
    ]
}

fn claims_of_clinicians(groups: &[GraphGroup]) -> Vec<PaperClaim> {
    let of = |condition: &str| -> (usize, usize) {
        let all: Vec<&GraphGroup> = groups.iter().filter(|group| group.condition == condition).collect();
        (all.len(), all.iter().filter(|group| group.p_value <= LEVEL).count())
    };
    let ((social, supported), (control, alarms)) = (of("Social"), of("Control"));
    let explanation = "changes less a line in the own answer, accounts exchanged on the graph, p at most 0.05";
    vec![
        PaperClaim {
            ours: count(social, supported),
            explanation: format!("{explanation}; target: half"),
            ..PaperClaim::new(
                "Clinicians who see their neighbours: supported along the graph",
                ClaimStatus::when(2 * supported >= social && supported > 0),
            )
        },
        PaperClaim {
            ours: count(control, alarms),
            explanation: format!("{explanation}; a graph of the others laid on; target: at most one"),
            ..PaperClaim::new(
                "Clinicians who see nobody: not supported along a graph that is not theirs",
                ClaimStatus::when(alarms <= 1 && control > 0),
            )
        },
    ]
}

/// One panel for each data set: p by condition.
fn figure(first: &[HeardGroup], second: &[GraphGroup]) -> Figure {
    let estimates = first.iter().map(|group| (group.condition.as_str(), group.p_value)).collect::<Vec<_>>();
    let clinicians = second.iter().map(|group| (group.condition.as_str(), group.p_value)).collect::<Vec<_>>();
    let panel = |title: &str, conditions: &[&str], points: &[(&str, f64)]| {
        let of = |(place, condition): (usize, &&str)| {
            let mut values: Vec<f64> = points.iter().filter(|(name, _)| name == condition).map(|(_, p)| *p).collect();
            values.sort_by(f64::total_cmp);
            let last = values.len().max(2) as f64 - 1.0;
            // Side by side, the smallest first.
            let x = |rank: usize| place as f64 - 0.35 + 0.7 * rank as f64 / last;
            let points = values.iter().enumerate().map(|(rank, p)| Point::new(x(rank), *p)).collect();
            ChartSeries::new(condition, Shape::Dots, points)
        };
        let level = vec![Point::new(-0.5, LEVEL), Point::new(conditions.len() as f64 - 0.5, LEVEL)];
        let mut series = vec![ChartSeries::new("5 %", Shape::Reference, level)];
        series.extend(conditions.iter().enumerate().map(of));
        let labels = conditions.iter().enumerate().map(|(place, name)| (place as f64, (*name).to_owned())).collect();
        FigurePanel::Chart(Chart {
            title: title.to_owned(),
            x: Axis::labelled("condition", labels).between(-0.5, conditions.len() as f64 - 0.5),
            y: Axis::log("p").between(5e-4, 1.2),
            series,
        })
    };
    Figure {
        title: "People who revise an estimate".into(),
        panels: vec![
            panel("some account is heard", &["Centralized", "Decentralized", "Solo"], &estimates),
            panel("opinion travels along the graph", &["Social", "Control"], &clinicians),
        ],
        columns: 2,
    }
}

/// The page's tables, from the numbers of a finished run.
pub(crate) fn tables(numbers: &serde_json::Value) -> String {
    let read = |name: &str| numbers.get(name).cloned().unwrap_or_default();
    let first: Vec<HeardGroup> = serde_json::from_value(read("estimates")).unwrap_or_default();
    let second: Vec<GraphGroup> = serde_json::from_value(read("clinicians")).unwrap_or_default();
    let mut text = String::from(
        "### Estimates\n\n| group | condition | people | questions | rank of the hub | some account is heard, p | is it the hub? |\n|---|---|---|---|---|---|---|\n",
    );
    for group in &first {
        let rank = group.hub_rank.map_or("–".to_owned(), |rank| rank.to_string());
        let ahead = group.hub_ahead.map_or("–", |ahead| if ahead { "yes" } else { "no" });
        let HeardGroup { group, condition, accounts, episodes, p_value, .. } = group;
        text += &format!("| {group} | {condition} | {accounts} | {episodes} | {rank} | {p_value:.3} | {ahead} |\n");
    }
    text += "\n### Clinicians\n\n| group | condition | people | edges | p | z |\n|---|---|---|---|---|---|\n";
    for GraphGroup { group, condition, accounts, edges, p_value, z, .. } in &second {
        text += &format!("| {group} | {condition} | {accounts} | {edges} | {p_value:.3} | {z:.1} |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater::{Panel, Roster};

    fn group(names: &[&str], edges: &[(&str, &str)]) -> PeopleGroup {
        let cells = (0..2 * names.len()).map(|cell| cell as f64).collect();
        let roster = Roster::new(names.iter().copied(), ["high", "low"]).unwrap();
        PeopleGroup {
            name: "g".into(),
            condition: "Social".into(),
            hub: None,
            panel: Panel::complete(roster, cells).unwrap(),
            edges: edges.iter().map(|(source, target)| ((*source).to_owned(), (*target).to_owned())).collect(),
        }
    }

    #[test]
    fn a_graph_is_laid_on_by_the_order_of_names() {
        let other = group(&["q", "p", "s", "r"], &[("p", "q"), ("s", "p"), ("q", "gone")]);
        assert_eq!(own_graph(&other).unwrap().edges().collect::<Vec<_>>(), [(1, 0), (2, 1)]);
        // p, q, r, s are 1, 0, 3, 2 there; a, b, c are 2, 1, 0 here, and nobody takes the place of s.
        let here = group(&["c", "b", "a"], &[]);
        assert_eq!(laid_on(&here, &other).unwrap().edges().collect::<Vec<_>>(), [(2, 1)]);
    }

    #[test]
    fn targets_are_shares_of_the_groups() {
        let of = |condition: &str, p_value: f64, hub_rank: Option<usize>| HeardGroup {
            group: "1".into(),
            condition: condition.into(),
            accounts: 40,
            episodes: 4,
            p_value,
            hub_rank,
            hub_ahead: hub_rank.map(|rank| rank == 1),
        };
        let mut groups = vec![of("Solo", 0.5, None), of("Decentralized", 0.04, None)];
        groups.extend(
            [0.01, 0.02, 0.03, 0.04, 0.06, 0.07].map(|p| of("Centralized", p, Some(1 + usize::from(p > 0.06)))),
        );
        let met = |groups: &[HeardGroup]| -> Vec<(String, ClaimStatus)> {
            claims_of_estimates(groups).into_iter().map(|claim| (claim.ours, claim.status)).collect()
        };
        use ClaimStatus::{NotReproduced, Reproduced};
        let found = met(&groups);
        assert_eq!(found[0], ("5 of 6".into(), Reproduced));
        assert_eq!(found[1], ("4 of 6".into(), Reproduced));
        assert_eq!(found[2], ("1 of 1 without a hub, 0 of 1 who see nobody".into(), Reproduced));
        groups[0].p_value = 0.05;
        (groups[2].p_value, groups[2].hub_rank) = (0.5, Some(2));
        assert_eq!(met(&groups).iter().map(|(_, status)| *status).collect::<Vec<_>>(), [NotReproduced; 3]);
        assert_eq!(met(&[])[1].1, NotReproduced, "no groups at all");
        let numbers = json!({ "estimates": groups, "clinicians": [] });
        assert!(tables(&numbers).contains("| 1 | Centralized | 40 | 4 | 2 | 0.500 | yes |"), "{}", tables(&numbers));
    }
}
