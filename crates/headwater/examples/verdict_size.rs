//! Size and power of the graph test, as in docs/studies/calibration.md:
//! `cargo run --release -p headwater --example verdict_size [WORLDS] [size|power] [FIRST SEED] [NAME]`.

#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use headwater::evaluate::graph_test::{GraphTest, GraphTestParams, PowerWorlds, graph_test};
use headwater::graph::Graph;
use headwater::simulate::crowd::{Crowd, crowd};
use headwater::simulate::no_listening::{Disturbance, NoListening, Reading, SharedNews, TiedToAudience, no_listening};
use headwater::simulate::noisy::{NoisyWorld, noisy};
use headwater::{Error, Panel};
use rayon::prelude::*;

/// Rewirings of each world.
const DRAWS: usize = 299;

fn params(seed: u64) -> GraphTestParams {
    GraphTestParams { draws: DRAWS, power: PowerWorlds::Worlds(0), seed, ..GraphTestParams::default() }
}

/// The tests of worlds that a function makes from seeds.
fn tests(
    worlds: u64,
    from: u64,
    world: impl Fn(u64) -> Result<(Panel, Graph), Error> + Sync,
) -> Result<Vec<GraphTest>, Error> {
    (from..from + worlds)
        .into_par_iter()
        .map(|seed| {
            let (panel, graph) = world(seed)?;
            graph_test(&[&panel], &graph, &params(seed))
        })
        .collect()
}

/// One row: share of p ≤ 0.05 for the verdict and its companions.
fn row(name: &str, tests: &[GraphTest]) {
    if tests.is_empty() {
        return;
    }
    let share = |p: &dyn Fn(&GraphTest) -> Option<f64>| {
        let known: Vec<f64> = tests.iter().filter_map(p).collect();
        if known.is_empty() {
            return "–".to_owned();
        }
        format!("{:.0}", 100.0 * known.iter().filter(|p| **p <= 0.05).count() as f64 / known.len() as f64)
    };
    let mean = |value: &dyn Fn(&GraphTest) -> f64| tests.iter().map(value).sum::<f64>() / tests.len() as f64;
    println!(
        "| {name} | {:.0} | {} | {} | {} | {} | {:.1} | {:.0} |",
        100.0 * mean(&|test| test.silent_share),
        share(&|test| test.shift_p),
        share(&|test| test.unguarded_p),
        share(&|test| Some(test.p_value)),
        share(&|test| test.direction_p),
        mean(&|test| test.groups as f64),
        100.0 * mean(&|test| test.rewired_share),
    );
}

fn header(what: &str, worlds: u64, from: u64) {
    println!(
        "\n| {what}, {worlds} worlds from seed {from} | silent % | shifts | unguarded | **verdict** | direction | groups | edges rewired % |"
    );
    println!("|---|---|---|---|---|---|---|---|");
}

fn size(worlds: u64, from: u64) -> Result<(), Error> {
    header("nobody listens: rejected at 5 %", worlds, from);
    let base = NoListening::default;
    let common = || NoListening { shared: SharedNews::All, share: 0.3, ..base() };
    let groups = |count: usize| NoListening { shared: SharedNews::Groups(count), share: 0.5, ..base() };
    let places = || NoListening { shared: SharedNews::Places, share: 0.4, ..base() };
    let disturbed = |disturbance: Disturbance| NoListening { disturbance, ..base() };
    let list = [
        ("independent", base()),
        ("common news 30 %", common()),
        ("two groups, 50 % of news their own", groups(2)),
        ("three groups, mutual edges", NoListening { mutual: true, ..groups(3) }),
        ("places (continuous homophily), 40 % of news by place", places()),
        ("places, mutual edges", NoListening { mutual: true, ..places() }),
        ("places, mostly silent", NoListening { rates: (0.05, 0.58), ..places() }),
        (
            "places, audience tied to everything, by half",
            NoListening { tied: TiedToAudience::Everything, tie: 0.5, ..places() },
        ),
        ("places, audience tied to everything, fully", NoListening { tied: TiedToAudience::Everything, ..places() }),
        ("audience tied to activity", NoListening { tied: TiedToAudience::Activity, ..base() }),
        (
            "audience tied to activity, variance, persistence",
            NoListening { tied: TiedToAudience::Everything, ..base() },
        ),
        ("common news, hubs read first", NoListening { reading: Reading::HubsFirst, ..common() }),
        ("common news, reading graded by audience", NoListening { reading: Reading::Graded, ..common() }),
        ("three groups, hubs read first", NoListening { reading: Reading::HubsFirst, ..groups(3) }),
        ("places, hubs read first", NoListening { reading: Reading::HubsFirst, ..places() }),
        ("silence tied to opinion", disturbed(Disturbance::SilenceByOpinion)),
        ("heavy tails (t, 3 degrees of freedom)", disturbed(Disturbance::HeavyTails)),
        ("weekly cycle", disturbed(Disturbance::WeeklyCycle)),
        ("own drift", disturbed(Disturbance::OwnDrift)),
        ("common drift", disturbed(Disturbance::CommonDrift)),
        (
            "*places, reading graded by audience: cannot be told apart*",
            NoListening { reading: Reading::Graded, ..places() },
        ),
    ];
    let only = std::env::args().nth(4).unwrap_or_default();
    for (name, world) in list.into_iter().filter(|(name, _)| name.contains(&only)) {
        row(name, &tests(worlds, from, |seed| no_listening(&NoListening { seed, ..world.clone() }))?);
    }
    Ok(())
}

/// Steps and posts per step of the worlds of strengths.
const STEPS: [usize; 3] = [100, 300, 700];
const RATES: [(&str, (f64, f64)); 3] = [("46", (0.05, 1.75)), ("68", (0.05, 0.75)), ("83", (0.05, 0.3))];

fn power(worlds: u64, from: u64) -> Result<(), Error> {
    header("listening: found at 5 %", worlds, from);
    let known = |params: NoisyWorld| -> Result<(Panel, Graph), Error> {
        let (panel, truth) = noisy(&params)?;
        let edges = truth.combination.edges().map(|(speaker, listener, _)| (speaker, listener));
        let graph = Graph::new(panel.agents(), edges.collect::<Vec<_>>())?;
        Ok((panel, graph))
    };
    for (noise, steps) in [(0.5, 700), (1.5, 700), (1.5, 300)] {
        let hub = |seed| known(NoisyWorld { noise, steps, seed, ..NoisyWorld::default() });
        row(&format!("hub, noise {noise}, 25 accounts, {steps} steps"), &tests(worlds, from, hub)?);
    }
    for (silent, rates) in RATES {
        for steps in STEPS {
            let world = |seed| known(NoisyWorld { steps, rates, seed, ..NoisyWorld::strengths() });
            row(&format!("strengths, 25 accounts, {silent} % silent, {steps} steps"), &tests(worlds, from, world)?);
        }
    }
    for (agents, silence, worlds) in
        [(100, 0.3, worlds), (100, 0.7, worlds), (100, 0.82, worlds), (300, 0.7, worlds.div_ceil(2))]
    {
        for steps in STEPS {
            let world = |seed| {
                let (panel, graph, _) = crowd(&Crowd { agents, silence, steps, seed, ..Crowd::default() })?;
                Ok((panel, graph))
            };
            row(
                &format!("crowd, {agents} accounts, {:.0} % silent, {steps} steps", 100.0 * silence),
                &tests(worlds, from, world)?,
            );
        }
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let worlds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(120);
    let wanted = std::env::args().nth(2);
    let from: u64 = std::env::args().nth(3).and_then(|text| text.parse().ok()).unwrap_or(90_000);
    let asked = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    if asked("size") {
        size(worlds, from)?;
    }
    if asked("power") {
        power(worlds, from)?;
    }
    Ok(())
}
