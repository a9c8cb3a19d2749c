//! The test against an independent transcription (`reference/graph_test.py`), under relabelling and thread counts, and its size.

use super::series::fit_all;
use super::*;
use crate::Roster;
use crate::panel::Times;
use crate::simulate::no_listening::{NoListening, Reading, SharedNews, no_listening};
use crate::simulate::noisy::{NoisyWorld, noisy};
use serde_json::Value;

/// A golden case: panel, graph, groups and the numbers wanted.
struct Case {
    json: Value,
    panel: Panel,
    graph: Graph,
    groups: Vec<usize>,
}

impl Case {
    fn read(name: &str) -> Self {
        let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let json: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let whole = |value: &Value| value.as_u64().unwrap() as usize;
        let (agents, ratios) = (whole(&json["agents"]), whole(&json["hypotheses"]) - 1);
        let posts: Vec<u32> = numbers(&json["posts"]).into_iter().map(|count| count as u32).collect();
        let rows = numbers(&json["values"]);
        let steps = posts.len() / agents;
        // [step][agent][ratio] to [step][ratio][agent].
        let cell = |place: usize| {
            let (step, ratio, agent) = (place / (agents * ratios), place / agents % ratios, place % agents);
            rows[(step * agents + agent) * ratios + ratio]
        };
        let cells = (0..rows.len()).map(cell).collect();
        let roster = Roster::numbered(agents, ratios + 1).unwrap();
        let panel = Panel::new(roster, Times::Steps((0..steps as i64).collect()), cells, Some(posts)).unwrap();
        let edges = json["edges"].as_array().unwrap().iter().map(|edge| (whole(&edge[0]), whole(&edge[1])));
        let graph = Graph::new(agents, edges.collect::<Vec<_>>()).unwrap();
        let groups = json["groups"].as_array().unwrap().iter().map(whole).collect();
        Case { panel, graph, groups, json }
    }

    fn processes(&self) -> Vec<Vec<Process>> {
        let (panels, all) = ([&self.panel], (0..self.panel.agents()).collect::<Vec<_>>());
        let one = |ratio: usize| {
            let noise = noise_of_a_post(&panels, ratio, &all);
            fit_all(&all.iter().map(|&account| measured(&panels, ratio, account, noise)).collect::<Vec<_>>())
        };
        (0..self.panel.ratios()).map(one).collect()
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

fn close(met: &[f64], wanted: &Value, what: &str) {
    let wanted = numbers(wanted);
    assert_eq!(met.len(), wanted.len(), "{what}");
    let scale = wanted.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    for (met, wanted) in met.iter().zip(&wanted) {
        assert!((met - wanted).abs() <= 1e-8 * scale, "{what}: {met} against {wanted}");
    }
}

const CASES: [&str; 2] = ["graph_test_groups", "graph_test_ratios"];

#[test]
fn processes_scores_guard_and_statistic_are_those_of_the_transcription() {
    for name in CASES {
        let case = Case::read(name);
        let (processes, n) = (case.processes(), case.panel.agents());
        let flat = |part: &dyn Fn(&Process) -> &Vec<Vec<f64>>| -> Vec<f64> {
            processes.iter().flatten().flat_map(|process| part(process).concat()).collect()
        };
        close(&flat(&|process| &process.deviations), &case.json["deviations"], name);
        close(&flat(&|process| &process.news), &case.json["news"], name);
        let tested = TestedGraph::new(&case.graph, &case.groups);
        let core = Core::new(&processes, &tested, 19, 1).unwrap();
        let all = |score: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..n * n).map(|cell| score(cell / n, cell % n)).collect()
        };
        let rows = &core.rows;
        let raw = |speakers: &Rows, listeners: &Rows| all(&|l, k| rows::dot(speakers.row(l), listeners.row(k)));
        close(&raw(&rows.before, &rows.after), &case.json["raw"]["lagged"], name);
        close(&raw(&rows.after, &rows.after), &case.json["raw"]["shared_news"], name);
        close(&raw(&rows.level, &rows.level), &case.json["raw"]["shared_level"], name);
        let off = |scores: &PairScores| all(&|l, k| if l == k { 0.0 } else { scores.score(l, k) });
        close(&off(&rows.lagged(&case.groups)), &case.json["centred"]["lagged"], name);
        close(&off(&rows.shared_news(&case.groups)), &case.json["centred"]["shared_news"], name);
        close(&off(&rows.shared_level(&case.groups)), &case.json["centred"]["shared_level"], name);
        close(&core.guard, &case.json["guard"], name);
        close(&off(&rows.guarded(&case.groups, core.guard)), &case.json["guarded"], name);
        close(&[core.observed], &case.json["statistic"], name);
    }
}

#[test]
fn kept_scores_are_those_computed_when_asked_for() {
    let case = Case::read("graph_test_groups");
    let core = Core::new(&case.processes(), &TestedGraph::new(&case.graph, &case.groups), 19, 1).unwrap();
    let asked = core.rows.guarded(&case.groups, core.guard);
    let kept = core.rows.guarded(&case.groups, core.guard).keep_for(usize::MAX);
    for (speaker, listener) in case.graph.edges() {
        assert_eq!(asked.score(speaker, listener).to_bits(), kept.score(speaker, listener).to_bits());
    }
}

#[test]
fn sums_over_speakers_are_those_of_pairs() {
    for name in CASES {
        let case = Case::read(name);
        let tested = TestedGraph::new(&case.graph, &case.groups);
        let core = Core::new(&case.processes(), &tested, 19, 1).unwrap();
        let guarded = || core.rows.guarded(&case.groups, core.guard);
        let lagged = || core.rows.lagged(&case.groups);
        let rewirings = Rewirings::new(&case.graph, &case.groups, 3);
        for wiring in [rewirings.given().clone(), rewirings.draw(0), rewirings.draw(1)] {
            let blocks = |scores: PairScores| scores.keep_for(0);
            let (sums, directed) = tested.statistics(&wiring, &blocks(guarded()), Some(&blocks(lagged())));
            let kept = |scores: PairScores| scores.keep_for(usize::MAX);
            let (pairs, by_pairs) = tested.statistics(&wiring, &kept(guarded()), Some(&kept(lagged())));
            assert!((sums - pairs).abs() < 1e-12 * pairs.abs().max(1.0), "{sums} {pairs}");
            assert!((directed - by_pairs).abs() < 1e-12 * by_pairs.abs().max(1.0), "{directed} {by_pairs}");
            assert!(directed != 0.0 && tested.statistics(&wiring, &blocks(guarded()), None) == (sums, 0.0));
            let (rows, by_rows) = tested.statistics(&wiring, &guarded(), Some(&lagged()));
            assert!((rows - pairs).abs() < 1e-12 && (by_rows - by_pairs).abs() < 1e-12);
            for (speaker, listener) in wiring.edges() {
                let (block, pair) = (blocks(guarded()).score(speaker, listener), guarded().score(speaker, listener));
                assert!((block - pair).abs() < 1e-14, "{block} {pair}");
            }
        }
    }
}

/// Cheap parameters.
fn quick() -> GraphTestParams {
    GraphTestParams { draws: 99, power: PowerWorlds::Worlds(0), ..GraphTestParams::default() }
}

fn strengths(seed: u64) -> (Panel, Graph) {
    let (panel, truth) = noisy(&NoisyWorld { steps: 200, seed, ..NoisyWorld::strengths() }).unwrap();
    let edges = truth.combination.edges().map(|(speaker, listener, _)| (speaker, listener));
    let graph = Graph::new(panel.agents(), edges.collect::<Vec<_>>()).unwrap();
    (panel, graph)
}

/// The panel and the graph with accounts in another order under their old names.
fn reordered(panel: &Panel, graph: &Graph, order: &[usize]) -> (Panel, Graph) {
    let (n, old) = (panel.agents(), panel.roster());
    let names: Vec<String> = order.iter().map(|&account| old.agents()[account].clone()).collect();
    let roster = Roster::new(names, old.hypotheses().to_vec()).unwrap();
    let cells = panel.cells().chunks(n).flat_map(|frame| order.iter().map(|&account| frame[account])).collect();
    let posts = (0..panel.steps()).flat_map(|step| order.iter().map(move |&account| panel.posts(step, account)));
    let moved = Panel::new(roster, panel.times().clone(), cells, Some(posts.collect())).unwrap();
    let mut place = vec![0; n];
    order.iter().enumerate().for_each(|(index, &account)| place[account] = index);
    let edges = graph.edges().map(|(speaker, listener)| (place[speaker], place[listener]));
    (moved, Graph::new(n, edges.collect::<Vec<_>>()).unwrap())
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..proptest::prelude::ProptestConfig::with_cases(6) })]

    #[test]
    fn the_order_of_accounts_changes_nothing(
        order in proptest::strategy::Strategy::prop_shuffle(proptest::strategy::Just((0..25usize).collect::<Vec<_>>())),
        seed in 0u64..1000,
    ) {
        let (panel, graph) = strengths(seed);
        let (moved, rewritten) = reordered(&panel, &graph, &order);
        let one = graph_test(&[&panel], &graph, &quick()).unwrap();
        proptest::prop_assert_eq!(graph_test(&[&moved], &rewritten, &quick()).unwrap(), one);
    }
}

/// Every shift of a series in time, by hand: with opposite offsets a follower echoes the followed at one of them only.
#[test]
fn shifts_are_those_of_series_one_by_one() {
    let (panel, graph) = strengths(11);
    let all: Vec<usize> = (0..25).collect();
    let noise = noise_of_a_post(&[&panel], 0, &all);
    let fitted = fit_all(&all.iter().map(|&account| measured(&[&panel], 0, account, noise)).collect::<Vec<_>>());
    let processes = [fitted];
    let (level, news) = (Rows::new(&processes, Part::Level), Rows::new(&processes, Part::News));
    let (steps, draws, seed) = (panel.steps(), 60, 5);
    let statistic = |offsets: &[usize]| -> f64 {
        let pair = |speaker: usize, listener: usize| -> f64 {
            let at = |t: usize| {
                let before = level.row(speaker)[(t + steps - 1 + offsets[speaker]) % steps];
                before * news.row(listener)[(t + offsets[listener]) % steps]
            };
            (0..steps).map(at).sum()
        };
        let lists = graph.speakers().iter().enumerate().filter(|(_, list)| !list.is_empty());
        lists.map(|(k, list)| list.iter().map(|&l| pair(l, k)).sum::<f64>() / list.len() as f64).sum()
    };
    let observed = statistic(&[0; 25]);
    let reached = (0..draws as u64).filter(|&number| {
        let mut rng = numbered(seed, number);
        let offsets: Vec<usize> = (0..25).map(|_| rand::RngExt::random_range(&mut rng, 20..steps - 20)).collect();
        statistic(&offsets) >= observed
    });
    let wanted = (1 + reached.count()) as f64 / (1 + draws) as f64;
    assert_eq!(shifts::shift_p(&level, &news, &graph, &[steps], draws, seed).unwrap(), Some(wanted));
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let (panel, graph) = strengths(4);
    let params = GraphTestParams { power: PowerWorlds::Worlds(2), ..quick() };
    let run = |threads: usize| {
        let progress = crate::progress::Progress::default();
        progress.over(Some(threads), || graph_test(&[&panel], &graph, &params)).unwrap().unwrap()
    };
    let one = run(1);
    assert_eq!((run(2), run(5)), (one.clone(), one));
}

/// Shares of p ≤ 0.05 for the verdict, unguarded, and shifts, over 40 worlds.
fn rejected(world: &NoListening) -> [usize; 3] {
    let tests = (0..40).map(|seed| {
        let (panel, graph) = no_listening(&NoListening { seed: 7000 + seed, steps: 200, ..world.clone() }).unwrap();
        graph_test(&[&panel], &graph, &quick()).unwrap()
    });
    tests.fold([0; 3], |counts, test| {
        let passed = |p: Option<f64>| usize::from(p.is_some_and(|p| p <= 0.05));
        [counts[0] + passed(Some(test.p_value)), counts[1] + passed(test.unguarded_p), counts[2] + passed(test.shift_p)]
    })
}

#[test]
fn common_news_and_homophily_do_not_pass() {
    // At 5 % fewer than 7 of 40 reject with probability 0.997.
    let base = NoListening::default();
    assert!(rejected(&base)[0] < 7);
    let common =
        rejected(&NoListening { shared: SharedNews::All, share: 0.3, reading: Reading::HubsFirst, ..base.clone() });
    assert!(common[0] < 7 && common[2] > 35, "shifts are passed by common news, the verdict is not: {common:?}");
    let groups = rejected(&NoListening { shared: SharedNews::Groups(2), share: 0.5, ..base });
    assert!(groups[0] < 7 && groups[1] > 35, "homophily passes without groups and guard only: {groups:?}");
}

#[test]
fn listening_is_found_and_power_says_so() {
    let (panel, truth) = noisy(&NoisyWorld { steps: 200, noise: 0.1, ..NoisyWorld::strengths() }).unwrap();
    let edges = truth.combination.edges().map(|(speaker, listener, _)| (speaker, listener));
    let graph = Graph::new(panel.agents(), edges.collect::<Vec<_>>()).unwrap();
    let test = graph_test(&[&panel], &graph, &GraphTestParams { power: PowerWorlds::Worlds(5), ..quick() }).unwrap();
    assert!(test.passed() && test.low > 0.0 && test.low < test.effect && test.effect < test.high, "{test:?}");
    assert_eq!((test.null, test.steps, test.episodes, test.accounts), (GraphNull::RewiredGraphs, 200, 1, 25));
    let power = test.power.clone().unwrap();
    assert!(power.found.iter().any(|found| *found >= 0.8) && power.smallest.is_some(), "{power:?}");
    // The same conversation twice is two episodes.
    let twice = graph_test(&[&panel, &panel], &graph, &quick()).unwrap();
    assert_eq!((twice.steps, twice.episodes), (400, 2));
    assert!((twice.effect - test.effect).abs() < 1e-3, "{} {}", twice.effect, test.effect);
}

#[test]
fn a_star_is_tested_for_some_speaker() {
    let mut rng = numbered(3, 1);
    let star = Graph::new(20, (1..20).map(|listener| (0, listener))).unwrap();
    let mut world = |weight: f64| {
        let (mut opinions, mut cells) = (vec![0.0; 20], Vec::new());
        for _ in 0..400 {
            let hub = opinions[0];
            for (account, opinion) in opinions.iter_mut().enumerate() {
                let news: f64 = rand_distr::Distribution::sample(&rand_distr::StandardNormal, &mut rng);
                let heard = if account == 0 { hub } else { (1.0 - weight) * *opinion + weight * hub };
                *opinion = 0.8 * heard + 0.5 * news;
            }
            cells.extend_from_slice(&opinions);
        }
        let panel = Panel::complete(Roster::numbered(20, 2).unwrap(), cells).unwrap();
        graph_test(&[&panel], &star, &GraphTestParams { draws: 199, ..quick() }).unwrap()
    };
    let (heard, unheard) = (world(0.4), world(0.0));
    assert_eq!((heard.null, heard.limits[0]), (GraphNull::ExchangedSpeakers, GraphTestLimit::CannotBeRewired));
    assert!(heard.passed() && heard.speaker == Some(0) && heard.direction_p.is_none(), "{heard:?}");
    assert!(!unheard.passed(), "{unheard:?}");
}

#[test]
fn what_cannot_be_tested_is_typed() {
    let (panel, graph) = strengths(4);
    let refused = |panel: &Panel, graph: &Graph| match graph_test(&[panel], graph, &quick()) {
        Err(Error::Untestable(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&panel, &Graph::new(25, []).unwrap()), Untestable::NoEdges { accounts: 25 });
    let everybody = (0..25).flat_map(|one| (0..25).map(move |other| (one, other)));
    assert_eq!(refused(&panel, &Graph::new(25, everybody).unwrap()), Untestable::EverybodyLinked);
    let roster = || Roster::numbered(25, 2).unwrap();
    let constant = Panel::complete(roster(), vec![0.3; 25 * 50]).unwrap();
    assert_eq!(refused(&constant, &graph), Untestable::NoChange);
    let alike: Vec<f64> = (0..25 * 50).map(|cell| f64::from((cell / 25 * 7 % 11) as u8)).collect();
    assert_eq!(refused(&Panel::complete(roster(), alike).unwrap(), &graph), Untestable::NoContrast);
    let short = Panel::complete(roster(), panel.cells()[..25 * 4].to_vec()).unwrap();
    assert_eq!(refused(&short, &graph), Untestable::TooFewSteps { steps: 4, needed: 10 });
    // Everybody but two is silent after the first step.
    let posts = (0..panel.steps() * 25).map(|cell| u32::from(cell < 25 || cell % 25 < 2)).collect();
    let silent = Panel::new(roster(), panel.times().clone(), panel.cells().to_vec(), Some(posts)).unwrap();
    assert_eq!(refused(&silent, &graph), Untestable::TooFewAccounts { accounts: 2, needed: 4, steps: 5 });
    // Which of these no graph could cure, asked before a fit.
    assert!(matches!(
        check_opinions(&[&silent]),
        Err(Error::Untestable(Untestable::TooFewAccounts { accounts: 2, .. }))
    ));
    assert!(matches!(check_opinions(&[&constant]), Err(Error::Untestable(Untestable::NoChange))));
    assert!(check_opinions(&[&panel]).is_ok() && check_opinions(&[&short]).is_ok() && check_opinions(&[]).is_ok());
    // Mutual edges have no direction.
    let back = graph.edges().flat_map(|(speaker, listener)| [(speaker, listener), (listener, speaker)]);
    let mutual = Graph::new(25, back.collect::<Vec<_>>()).unwrap();
    let test = graph_test(&[&panel], &mutual, &quick()).unwrap();
    assert!(test.direction_p.is_none() && test.limits.contains(&GraphTestLimit::MutualOnly), "{test:?}");
}
