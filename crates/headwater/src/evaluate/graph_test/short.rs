//! The graph test in conversations of a few steps, where an account's own past cannot be fitted.
//!
//! The change of an account, less a line in its own opinion, is compared with the mean opinion of those it follows one step
//! before. The line takes what regression to the mean and a pull towards the mean of all give. The null law is that of the same
//! graph with the accounts exchanged at random, within groups where they are given, and alike in all episodes. Where the graph
//! leaves nothing to exchange, such as a star, it is tested whether some speaker is heard.

use super::heard::exchanged;
use super::result::{GraphNull, GraphTest, GraphTestLimit, Untestable};
use super::rewiring::Rewirings;
use super::{Excess, GraphTestParams, LEAST_REWIRED, NO_SPREAD, induced, p_value, pulls};
use crate::evaluate::draws::{draw_all, numbered};
use crate::graph::Graph;
use crate::{Error, Panel};
use rand::seq::SliceRandom;

/// Steps of an episode from which on an account's own past is fitted.
const LONG: usize = 10;

/// Accounts that the test needs.
const FEWEST_ACCOUNTS: usize = 4;

/// Changes of a step that a line in the own opinion needs.
const FEWEST_CHANGES: usize = 4;

/// Rewired graphs from which it is judged whether there are graphs like the given one.
const TRIED: u64 = 19;

/// Episodes that exchanging scores of speakers needs.
pub(super) const FEWEST_EPISODES: usize = 4;

/// Whether these are conversations, which have names, and some of them is short. A short series of posts is none.
pub(super) fn applies(panels: &[&Panel]) -> bool {
    panels.iter().all(|panel| panel.episodes().names().is_some()) && panels.iter().any(|panel| panel.steps() < LONG)
}

/// One step of an episode and one log-ratio.
struct Transition {
    /// Opinion less the mean of all, none where silent.
    before: Vec<Option<f64>>,
    /// Change less a line in the own opinion, none where unknown.
    change: Vec<Option<f64>>,
}

pub(super) fn short_test(panels: &[&Panel], graph: &Graph, params: &GraphTestParams) -> Result<GraphTest, Error> {
    let accounts = select(panels)?;
    let graph = induced(graph, &accounts)?;
    let edges = graph.edges().count();
    if edges == 0 {
        return Err(Untestable::NoEdges { accounts: accounts.len() }.into());
    }
    let groups: Vec<usize> = match &params.groups {
        Some(groups) => {
            super::communities::pooled(&accounts.iter().map(|&account| groups[account]).collect::<Vec<_>>())
        }
        None => vec![0; accounts.len()],
    };
    let rewirings = Rewirings::new(&graph, &groups, params.seed);
    let rewired_share = (0..TRIED).map(|number| rewirings.moved(&rewirings.draw(number))).sum::<f64>() / TRIED as f64;
    let lengths: usize = panels.iter().map(|panel| panel.steps()).sum();
    let cells = accounts.len() * lengths;
    let said: usize = panels
        .iter()
        .map(|panel| {
            let here =
                |&account: &usize| (0..panel.steps()).filter(move |&step| panel.posts(step, account) > 0).count();
            accounts.iter().map(here).sum::<usize>()
        })
        .sum();
    let silent_share = 1.0 - said as f64 / cells as f64;
    let mut limits: Vec<GraphTestLimit> = vec![GraphTestLimit::ShortEpisodes];
    limits.extend(GraphTest::silence_limit(silent_share));
    let (excess, p, null, speaker) = if rewired_share < LEAST_REWIRED {
        let found = heard_in_episodes(panels, &accounts, params)?;
        let Some(found) = found else { return Err(Untestable::CannotBeRewired.into()) };
        limits.insert(0, GraphTestLimit::CannotBeRewired);
        let excess = Excess::new(found.observed, &found.null, 1.0);
        (excess, p_value(found.observed, &found.null), GraphNull::ExchangedSpeakers, Some(accounts[found.speaker]))
    } else {
        let transitions = transitions(panels, &accounts, &groups);
        let (observed, unit) = statistic(&transitions, &graph, &(0..accounts.len()).collect::<Vec<_>>());
        let drawn = draw_all("exchanging accounts", params.draws, |number| {
            Ok(statistic(&transitions, &graph, &relabelled(&groups, params.seed, number)).0)
        })?;
        let excess = Excess::new(observed, &drawn, unit.max(f64::MIN_POSITIVE));
        (excess, p_value(observed, &drawn), GraphNull::RelabelledGraphs, None)
    };
    if excess.spread < NO_SPREAD {
        return Err(Untestable::NoContrast.into());
    }
    Ok(GraphTest {
        p_value: p,
        effect: excess.effect,
        low: excess.low,
        high: excess.high,
        z: excess.effect / excess.spread,
        null,
        draws: params.draws,
        steps: lengths,
        episodes: panels.len(),
        left_out: panels[0].agents() - accounts.len(),
        accounts: accounts.len(),
        edges,
        silent_share,
        groups: groups.iter().max().map_or(0, |most| most + 1),
        groups_given: params.groups.is_some(),
        guard: [0.0; 2],
        rewired_share,
        unguarded_p: None,
        direction_p: None,
        shift_p: None,
        speaker,
        limits,
        power: None,
    })
}

/// Tests whether some speaker is heard in conversations of a few steps: a robust score of every speaker in each episode, the
/// largest total, and the same with the scores of each episode exchanged between the speakers who speak in it. `None` with fewer
/// than four episodes.
///
/// # Errors
/// [`Error::Stopped`].
pub(super) fn heard_in_episodes(
    panels: &[&Panel],
    accounts: &[usize],
    params: &GraphTestParams,
) -> Result<Option<super::heard::Heard>, Error> {
    let mut scores: Vec<Vec<Option<f64>>> = Vec::new();
    for panel in panels.iter().flat_map(|panel| panel.by_episode()) {
        let found = pulls::scores(&panel, 0);
        let speaks = |account: usize| (0..panel.steps().saturating_sub(1)).any(|step| panel.posts(step, account) > 0);
        scores.push(accounts.iter().map(|&account| speaks(account).then_some(found[account])).collect());
    }
    if scores.len() < FEWEST_EPISODES {
        return Ok(None);
    }
    exchanged(&scores, params.draws, params.seed).map(Some)
}

/// Accounts that change at least once, in the order of their names.
fn select(panels: &[&Panel]) -> Result<Vec<usize>, Error> {
    let longest = panels.iter().map(|panel| panel.steps()).max().unwrap_or(0);
    if longest < 2 {
        return Err(Untestable::TooFewSteps { steps: longest, needed: 2 }.into());
    }
    let first = panels[0];
    let both = |panel: &Panel, account: usize| {
        (1..panel.steps()).filter(|&step| panel.posts(step - 1, account) > 0 && panel.posts(step, account) > 0).count()
    };
    let mut accounts: Vec<usize> =
        (0..first.agents()).filter(|&account| panels.iter().any(|panel| both(panel, account) > 0)).collect();
    if accounts.len() < FEWEST_ACCOUNTS {
        let (accounts, needed) = (accounts.len(), FEWEST_ACCOUNTS);
        return Err(Untestable::TooFewAccounts { accounts, needed, steps: 2 }.into());
    }
    let moves = |panel: &&&Panel| {
        (1..panel.steps()).any(|step| {
            let (before, now) = (panel.frame(step - 1), panel.frame(step));
            accounts.iter().any(|&account| {
                let spoken = panel.posts(step - 1, account) > 0 && panel.posts(step, account) > 0;
                spoken && (0..panel.ratios()).any(|ratio| before[(account, ratio)] != now[(account, ratio)])
            })
        })
    };
    if !panels.iter().any(|panel| moves(&panel)) {
        return Err(Untestable::NoChange.into());
    }
    let names = first.roster().agents();
    accounts.sort_by(|one, other| names[*one].cmp(&names[*other]));
    Ok(accounts)
}

/// All steps of all episodes and log-ratios.
fn transitions(panels: &[&Panel], accounts: &[usize], groups: &[usize]) -> Vec<Transition> {
    let mut all = Vec::new();
    for panel in panels {
        for step in (1..panel.steps()).filter(|step| !panel.episodes().begins(*step)) {
            let (frame, next) = (panel.frame(step - 1), panel.frame(step));
            for ratio in 0..panel.ratios() {
                let said = |account: &usize| (panel.posts(step - 1, *account) > 0).then(|| frame[(*account, ratio)]);
                let own: Vec<Option<f64>> = accounts.iter().map(said).collect();
                let change: Vec<Option<f64>> = accounts
                    .iter()
                    .zip(&own)
                    .map(|(account, own)| {
                        let now = (panel.posts(step, *account) > 0).then(|| next[(*account, ratio)])?;
                        own.map(|own| now - own)
                    })
                    .collect();
                let mean = mean(own.iter().flatten());
                let before = own.iter().map(|own| own.map(|own| own - mean)).collect();
                let change = less_a_line(&own, &change, groups);
                all.push(Transition { before, change });
            }
        }
    }
    all
}

fn mean<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Changes less their line in the own opinion, in each group for itself; none where a group has too few.
fn less_a_line(own: &[Option<f64>], change: &[Option<f64>], groups: &[usize]) -> Vec<Option<f64>> {
    let mut out = vec![None; own.len()];
    for group in 0..groups.iter().max().map_or(0, |most| most + 1) {
        let members: Vec<(usize, f64, f64)> = (0..own.len())
            .filter(|&place| groups[place] == group)
            .filter_map(|place| Some((place, own[place]?, change[place]?)))
            .collect();
        if members.len() < FEWEST_CHANGES {
            continue;
        }
        let (x, y) = (mean(members.iter().map(|(_, x, _)| x)), mean(members.iter().map(|(.., y)| y)));
        let square: f64 = members.iter().map(|(_, own, _)| (own - x).powi(2)).sum();
        let product: f64 = members.iter().map(|(_, own, change)| (own - x) * (change - y)).sum();
        let slope = if square > 0.0 { product / square } else { 0.0 };
        members.iter().for_each(|(place, own, change)| out[*place] = Some(change - y - slope * (own - x)));
    }
    out
}

/// Σ over listeners and steps of the change times the mean opinion of those it follows, where place k of the graph is held by
/// account `holder[k]`; and the root of the product of the sums of squares, which makes it a correlation.
fn statistic(transitions: &[Transition], graph: &Graph, holder: &[usize]) -> (f64, f64) {
    let (mut sum, mut changes, mut means) = (0.0, 0.0, 0.0);
    for Transition { before, change } in transitions {
        for (place, speakers) in graph.speakers().iter().enumerate() {
            let Some(change) = change[holder[place]] else { continue };
            let (total, count) = speakers
                .iter()
                .filter_map(|&speaker| before[holder[speaker]])
                .fold((0.0, 0.0), |(total, count), value| (total + value, count + 1.0));
            if count > 0.0 {
                let mean: f64 = total / count;
                sum += change * mean;
                changes += change * change;
                means += mean * mean;
            }
        }
    }
    (sum, (changes * means).sqrt())
}

/// Accounts exchanged at random within their groups.
fn relabelled(groups: &[usize], seed: u64, number: u64) -> Vec<usize> {
    let mut rng = numbered(seed, number);
    let mut holder: Vec<usize> = (0..groups.len()).collect();
    for group in 0..groups.iter().max().map_or(0, |most| most + 1) {
        let places: Vec<usize> = (0..groups.len()).filter(|&place| groups[place] == group).collect();
        let mut mixed = places.clone();
        mixed.shuffle(&mut rng);
        places.into_iter().zip(mixed).for_each(|(place, account)| holder[place] = account);
    }
    holder
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roster;
    use crate::evaluate::graph_test::{graph_test, heard_test};
    use rand::RngExt;

    /// Episodes of three steps in which everybody moves by `weight` towards the mean of those it follows, with some noise.
    fn conversations(episodes: usize, graph: &Graph, weight: f64, seed: u64) -> Panel {
        let (agents, mut rng) = (graph.agents(), numbered(seed, 0));
        let mut normal = move || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let mut cells = Vec::new();
        for _ in 0..episodes {
            let mut opinions: Vec<f64> = (0..agents).map(|_| normal()).collect();
            cells.extend(&opinions);
            for _ in 0..2 {
                let heard = |listener: usize| {
                    let speakers = &graph.speakers()[listener];
                    let mean = speakers.iter().map(|&speaker| opinions[speaker]).sum::<f64>() / speakers.len() as f64;
                    if speakers.is_empty() { opinions[listener] } else { mean }
                };
                let towards: Vec<f64> = (0..agents).map(heard).collect();
                let own = opinions.iter_mut().zip(&towards);
                own.for_each(|(own, towards)| *own += weight * (towards - *own) + 0.1 * normal());
                cells.extend(&opinions);
            }
        }
        let panel = Panel::complete(Roster::numbered(agents, 2).unwrap(), cells).unwrap();
        panel.in_episodes((0..episodes).map(|number| (number.to_string(), 3)).collect()).unwrap()
    }

    fn ring(agents: usize) -> Graph {
        let edges = (0..agents).flat_map(|agent| [1, 5].map(|ahead| ((agent * 3 + ahead) % agents, agent)));
        Graph::new(agents, edges.filter(|(speaker, listener)| speaker != listener).collect::<Vec<_>>()).unwrap()
    }

    fn tested(panel: &Panel, graph: &Graph, groups: Option<Vec<usize>>) -> GraphTest {
        let params = GraphTestParams { draws: 199, groups, ..GraphTestParams::default() };
        let episodes = panel.by_episode();
        graph_test(&episodes.iter().collect::<Vec<_>>(), graph, &params).unwrap()
    }

    #[test]
    fn listening_along_the_graph_is_found_and_none_is_not() {
        let graph = ring(20);
        let found = tested(&conversations(2, &graph, 0.3, 1), &graph, None);
        assert_eq!((found.null, found.p_value, found.episodes), (GraphNull::RelabelledGraphs, 0.005, 2));
        assert!(found.effect > 0.3 && found.low > 0.0, "{found:?}");
        assert!(found.limits.contains(&GraphTestLimit::ShortEpisodes) && found.shift_p.is_none());
        // A pull to the mean of all is not along the graph; 40 worlds at 5 %.
        let everybody =
            Graph::new(20, (0..400).map(|cell| (cell / 20, cell % 20)).filter(|(a, b)| a != b).collect::<Vec<_>>());
        let everybody = everybody.unwrap();
        let alarms = (0..40)
            .filter(|&seed| tested(&conversations(2, &everybody, 0.3, 100 + seed), &graph, None).passed())
            .count();
        assert!(alarms <= 6, "{alarms} of 40");
        let groups: Vec<usize> = (0..20).map(|agent| agent % 2).collect();
        let found = tested(&conversations(2, &graph, 0.3, 1), &graph, Some(groups));
        assert!(found.passed() && found.groups == 2 && found.groups_given);
    }

    #[test]
    fn a_star_is_tested_for_a_speaker_who_is_heard() {
        let star =
            Graph::new(20, (0..20).filter(|agent| *agent != 7).map(|agent| (7, agent)).collect::<Vec<_>>()).unwrap();
        let panel = conversations(5, &star, 0.4, 3);
        let found = tested(&panel, &star, None);
        assert_eq!((found.null, found.speaker), (GraphNull::ExchangedSpeakers, Some(7)));
        assert!(found.passed(), "{found:?}");
        // The same without a graph.
        let heard = heard_test(&panel, &GraphTestParams { draws: 199, ..GraphTestParams::default() }).unwrap();
        assert_eq!((heard.p_value, heard.speaker), (found.p_value, 7));
        let first = pulls(&panel).iter().enumerate().max_by(|a, b| a.1.gain.total_cmp(&b.1.gain)).unwrap().0;
        assert_eq!(first, 7);
        // Nobody listens: 40 worlds at 5 %.
        let alarms = (0..40)
            .filter(|&seed| {
                let panel = conversations(5, &star, 0.0, 200 + seed);
                let params = GraphTestParams { draws: 99, ..GraphTestParams::default() };
                heard_test(&panel, &params).unwrap().p_value <= 0.05
            })
            .count();
        assert!(alarms <= 6, "{alarms} of 40");
        let few = conversations(3, &star, 0.4, 3);
        assert!(matches!(
            heard_test(&few, &GraphTestParams::default()),
            Err(Error::Untestable(Untestable::TooFewEpisodes { episodes: 3, needed: 4 }))
        ));
    }

    #[test]
    fn the_statistic_by_hand() {
        // Three accounts follow 0, which follows nobody; accounts 0 and 1 change places.
        let graph = Graph::new(4, vec![(0, 1), (0, 2), (0, 3)]).unwrap();
        let before = vec![Some(2.0), Some(-1.0), None, Some(-1.0)];
        let transitions = [Transition { before, change: vec![Some(0.5), Some(1.0), Some(-3.0), None] }];
        let (sum, unit) = statistic(&transitions, &graph, &[0, 1, 2, 3]);
        assert_eq!((sum, unit), (2.0 - 6.0, 80f64.sqrt()));
        assert_eq!(statistic(&transitions, &graph, &[1, 0, 2, 3]).0, -0.5 + 3.0);
        let own: Vec<Option<f64>> = [1.0, 2.0, 3.0, 4.0, 9.0].map(Some).to_vec();
        let line: Vec<Option<f64>> = own.iter().map(|own| own.map(|own| 3.0 - 0.5 * own)).collect();
        let left = less_a_line(&own, &line, &[0; 5]);
        assert!(left.iter().all(|left| left.unwrap().abs() < 1e-12));
        assert_eq!(less_a_line(&own, &line, &[0, 0, 1, 1, 1]), [None; 5], "groups too small for a line");
    }

    #[test]
    fn what_cannot_be_tested_says_so() {
        let graph = ring(20);
        let try_with = |panel: &Panel, graph: &Graph| {
            let episodes = panel.by_episode();
            graph_test(
                &episodes.iter().collect::<Vec<_>>(),
                graph,
                &GraphTestParams { draws: 19, ..GraphTestParams::default() },
            )
        };
        let episode = |cells: Vec<f64>| {
            let panel = Panel::complete(Roster::numbered(20, 2).unwrap(), cells).unwrap();
            let steps = panel.steps();
            panel.in_episodes(vec![("a".into(), steps)]).unwrap()
        };
        let still = episode((0..60).map(|cell| f64::from(cell % 20)).collect());
        assert_eq!(try_with(&still, &graph), Err(Untestable::NoChange.into()));
        let one = episode(vec![0.5; 20]);
        assert_eq!(try_with(&one, &graph), Err(Untestable::TooFewSteps { steps: 1, needed: 2 }.into()));
        let empty = Graph::new(20, Vec::new()).unwrap();
        let said = try_with(&conversations(2, &graph, 0.3, 1), &empty);
        assert_eq!(said, Err(Untestable::NoEdges { accounts: 20 }.into()));
    }
}
