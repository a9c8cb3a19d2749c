//! Figures 7 to 9: the three Twitter networks: centralities, influences, drawings; what the released procedure, the paper's
//! formula and our learner make of the authors' own series, and of the same series rotated against each other.

use super::authors::Twitter;
use super::stage::Spread;
use super::{Claim, NONE, Outcome, Plate, Run, Standing};
use crate::error::CliError;
use crate::terminal::number;
use headwater::Method;
use headwater::compare::{GroundTruth, compare};
use headwater::evaluate::skill::skill as forecast_skill;
use headwater::evaluate::{CircularShifts, Verdict, shifted};
use headwater::learn::gsl::{Gsl, GslParams};
use headwater::learn::released::{ReleasedParams, as_released};
use headwater::learn::state_space::{self, StateSpaceParams, state_space};
use headwater::learn::whitened::{WhitenedParams, held_out, whitened};
use headwater::model::Skill;
use headwater::{Combination, Model, Panel as Beliefs, influence};
use headwater_report::{Axis, Chart, Figure, Link, Network, Node, Panel, Point, Series, Shape};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How a network is learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The authors' scripts as they are.
    Released,
    /// The same with the one slip of the evidence mended, ranked by the Perron vector the paper defines.
    Mended,
    /// Algorithm 1 with the paper's W, δ, μ and α.
    Paper,
    /// The whitened learner.
    Whitened,
    /// The state-space learner, on the series as they were before silent days repeated the last value.
    StateSpace,
}

impl Way {
    const ALL: [Way; 5] = [Way::Released, Way::Mended, Way::Paper, Way::Whitened, Way::StateSpace];

    fn name(self) -> &'static str {
        match self {
            Way::Released => "as released",
            Way::Mended => "released, with the paper's Aᵀ",
            Way::Paper => "Algorithm 1",
            Way::Whitened => "whitened",
            Way::StateSpace => "state-space",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Way::Released => "released",
            Way::Mended => "mended",
            Way::Paper => "paper",
            Way::Whitened => "whitened",
            Way::StateSpace => "state-space",
        }
    }

    /// Whether it depends on a seed.
    fn is_random(self) -> bool {
        !matches!(self, Way::Whitened | Way::StateSpace)
    }
}

/// Rounds of the state-space fit, of the series and of their rotations alike.
const ROUNDS: usize = 10;

/// The paper's window.
const WINDOW: usize = 50;

/// Seed of the released scripts; the others follow it.
const FIRST: u64 = 45;

/// Correlation at which published centralities count as found again.
const SAME: f64 = 0.98;

/// What one fit says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fit {
    centrality: Vec<f64>,
    influence: Vec<f64>,
    /// Chance that a followed account outweighs one that is not.
    auc: Option<f64>,
}

/// What the fits of one network and way say together.
#[derive(Serialize)]
struct Found {
    seeds: usize,
    /// Place of the hub by centrality and by influence, over the seeds.
    hub_by_centrality: Spread,
    hub_by_influence: Spread,
    hub_first: usize,
    correlation: Spread,
    auc: Option<Spread>,
    /// How often a rotation gives the hub as much centrality.
    p_value: f64,
    rotations: usize,
    /// In how many rotations the hub was first all the same.
    hub_first_rotated: usize,
}

pub(super) fn run(run: &Run<'_>) -> Result<Outcome, CliError> {
    let networks = run.authors.twitter()?;
    let (seeds, rotations) = (run.pick(4, 12), run.pick(9, 99));
    let mut tasks = Vec::new();
    for index in 0..networks.len() {
        for way in Way::ALL {
            let seeds = if way.is_random() { seeds } else { 1 };
            // A fit that smooths takes seconds.
            let rotations = if way == Way::StateSpace { run.pick(4, 39) } else { rotations };
            tasks.extend((0..seeds).map(|seed| (index, way, FIRST + seed, None)));
            tasks.extend((0..rotations).map(|number| (index, way, FIRST, Some(number))));
        }
    }
    let key = |(index, way, seed, rotation): &(usize, Way, u64, Option<u64>)| {
        let turned = rotation.map_or(String::new(), |number| format!("-rotation-{number}"));
        format!("{}-{}-seed-{seed}{turned}", networks[*index].name, way.key())
    };
    let keys: Vec<String> = tasks.iter().map(key).collect();
    let fits: Vec<Fit> = run.jobs.all(&keys, |task| {
        let (index, way, seed, rotation) = tasks[task];
        let network = &networks[index];
        match rotation {
            Some(number) => fit(network, &shifted(&network.panel, run.seed, number)?, way, seed),
            None => fit(network, &network.panel, way, seed),
        }
    })?;
    let of = |index: usize, way: Way, turned: bool| -> Vec<&Fit> {
        let wanted =
            |task: &&(usize, Way, u64, Option<u64>)| task.0 == index && task.1 == way && task.3.is_some() == turned;
        tasks.iter().zip(&fits).filter(|(task, _)| wanted(task)).map(|(_, fit)| fit).collect()
    };
    let mut numbers = serde_json::Map::new();
    let (mut claims, mut panels) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for (index, network) in networks.iter().enumerate() {
        let found: Vec<Found> =
            Way::ALL.iter().map(|way| summary(network, &of(index, *way, false), &of(index, *way, true))).collect();
        let verdicts = verdicts(network, run)?;
        claims.extend(self::claims(network, &found, &verdicts));
        let rows: serde_json::Map<String, Value> =
            Way::ALL.iter().zip(&found).map(|(way, found)| (way.name().to_owned(), json!(found))).collect();
        numbers.insert(network.name.to_owned(), json!({ "hub": hub(network), "ways": rows, "verdicts": { "whitened": verdicts[0], "state-space": verdicts[1] } }));
        let released = of(index, Way::Released, false);
        let ours = [of(index, Way::Whitened, false)[0], of(index, Way::StateSpace, false)[0]];
        panels[0].push(centralities(network, &released, ours));
        panels[1].push(influences(network, &released, ours));
        panels[2].push(drawing(network));
    }
    let [centralities, influences, drawings] = panels;
    let figure = |title: &str, panels: Vec<Panel>| Figure { title: title.to_owned(), panels, columns: 3 };
    let plates = vec![
        Plate {
            stem: "centralities".into(),
            caption: "Centralities in the three networks, agents in the order of the follow graph's own Perron vector (the hub first): the follow graph, the authors' published vector, ours as released (median of the seeds, whiskers over seeds), the whitened and the state-space learner.".into(),
            figure: figure("Twitter: centralities", centralities),
        },
        Plate {
            stem: "influences".into(),
            caption: "Influences, in the same order, each divided by its largest absolute value: published, as released, the whitened and the state-space learner.".into(),
            figure: figure("Twitter: influences", influences),
        },
        Plate {
            stem: "networks".into(),
            caption: "The follow graphs. Areas are centralities of the follow graph.".into(),
            figure: figure("Twitter: who follows whom", drawings),
        },
    ];
    Ok(Outcome { plates, numbers: numbers.into(), claims })
}

fn hub(network: &Twitter) -> &str {
    &network.panel.roster().agents()[network.hub]
}

fn fit(network: &Twitter, panel: &Beliefs, way: Way, seed: u64) -> Result<Fit, CliError> {
    let released = ReleasedParams {
        passes: network.passes,
        decay: network.decay,
        transposed: way == Way::Mended,
        seed,
        ..ReleasedParams::default()
    };
    let model = match way {
        Way::Released => as_released(panel, &released)?,
        Way::Mended => {
            let mut model = as_released(panel, &released)?;
            // Ranked by the definition of the paper, not by the largest eigenvalue.
            model.method = Method::Gsl(GslParams::default());
            model
        }
        Way::Paper => paper(network, panel, &released)?,
        Way::Whitened => whitened(panel, &WhitenedParams { symbols: false, ..WhitenedParams::default() })?,
        Way::StateSpace => {
            let params = StateSpaceParams { rounds: ROUNDS, tolerance: 0.0, ..StateSpaceParams::default() };
            state_space(&panel.clone().silence_repeats().0, &params)?
        }
    };
    let found = influence(&model)?;
    let known = GroundTruth {
        roster: model.roster.clone(),
        combination: Some(Combination::from_triplets(network.edges.clone(), panel.agents())?),
        evidence: None,
        adaptation: None,
        share: None,
    };
    let auc = compare(&model, &known, 1)?.edge_auc;
    Ok(Fit { centrality: found.centrality.values, influence: found.influence, auc })
}

/// Algorithm 1 with what Section VI says, from the same random weights.
fn paper(network: &Twitter, panel: &Beliefs, released: &ReleasedParams) -> Result<Model, CliError> {
    let params = GslParams {
        adaptation: released.adaptation,
        window: WINDOW,
        learning_rate: released.learning_rate,
        batch: released.batch,
        sparsity: released.sparsity,
        passes: network.passes,
        ..GslParams::default()
    };
    // No update at all leaves the first weights of the scripts.
    let still = ReleasedParams { learning_rate: 1e-300, sparsity: 0.0, passes: 1, ..released.clone() };
    let start = as_released(panel, &still)?.combination;
    let mut learner = Gsl::new(panel.roster().clone(), params)?.starting_from(&start)?;
    while learner.advance(panel, usize::MAX)?.is_some() {}
    Ok(learner.finish(panel, None)?)
}

/// Place of an agent, 1 for the largest.
fn place(values: &[f64], agent: usize) -> f64 {
    (1 + values.iter().filter(|value| **value > values[agent]).count()) as f64
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let centred = |v: &[f64]| {
        let mean = super::stage::mean(v);
        v.iter().map(|value| value - mean).collect::<Vec<f64>>()
    };
    let (a, b) = (centred(a), centred(b));
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let scale = (product(&a, &a) * product(&b, &b)).sqrt();
    if scale > 0.0 { product(&a, &b) / scale } else { 0.0 }
}

fn summary(network: &Twitter, fits: &[&Fit], rotated: &[&Fit]) -> Found {
    let hub = network.hub;
    let spread = |of: &dyn Fn(&Fit) -> f64| Spread::of(fits.iter().map(|fit| of(fit)));
    let typical = spread(&|fit| fit.centrality[hub]).median;
    let reached = rotated.iter().filter(|fit| fit.centrality[hub] >= typical).count();
    Found {
        seeds: fits.len(),
        hub_by_centrality: spread(&|fit| place(&fit.centrality, hub)),
        hub_by_influence: spread(&|fit| place(&fit.influence, hub)),
        hub_first: fits.iter().filter(|fit| place(&fit.centrality, hub) == 1.0).count(),
        correlation: spread(&|fit| correlation(&fit.centrality, &network.published)),
        auc: fits.iter().all(|fit| fit.auc.is_some()).then(|| spread(&|fit| fit.auc.unwrap_or(0.5))),
        p_value: (1 + reached) as f64 / (1 + rotated.len()) as f64,
        rotations: rotated.len(),
        hub_first_rotated: rotated.iter().filter(|fit| place(&fit.centrality, hub) == 1.0).count(),
    }
}

/// The first line of a report on these series, with the rotation null: by the whitened and the state-space learner.
fn verdicts(network: &Twitter, run: &Run<'_>) -> Result<[Verdict; 2], CliError> {
    use rayon::prelude::*;
    let judged = |panel: &Beliefs, skill: Option<Skill>, method: &Method, rotations: u64| {
        let null = CircularShifts::new(panel, method, run.seed);
        let draws = (0..rotations).into_par_iter().map(|number| null.draw(number)).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, CliError>(Verdict::from_skill(skill, Some(&CircularShifts::compare(&null.observed()?, &draws))))
    };
    let params = WhitenedParams { symbols: false, ..WhitenedParams::default() };
    let skill = forecast_skill(&network.panel, &held_out(&network.panel, &params)?);
    let whitened = judged(&network.panel, skill, &Method::Whitened(params), run.pick(60, 200))?;
    let (said, _) = network.panel.clone().silence_repeats();
    let params = StateSpaceParams { rounds: ROUNDS, tolerance: 0.0, ..StateSpaceParams::default() };
    let skill = state_space::skill(&said, &params)?;
    Ok([whitened, judged(&said, skill, &Method::StateSpace(params), run.pick(20, 39))?])
}

fn claims(network: &Twitter, found: &[Found], verdicts: &[Verdict; 2]) -> Vec<Claim> {
    let [released, mended, paper, whitened, silent] = found else { return Vec::new() };
    let named = network.name;
    let first = |found: &Found| match found.seeds {
        1 => format!("hub in place {}", found.hub_by_centrality.median),
        seeds => format!(
            "hub first in {} of {seeds} seeds (median place {})",
            found.hub_first, found.hub_by_centrality.median
        ),
    };
    let null = |found: &Found| {
        format!(
            "p = {:.2} for its centrality, and it is first in {} of {} rotations",
            found.p_value, found.hub_first_rotated, found.rotations
        )
    };
    let formula = format!(
        "{}; {}. With only the Aᵀ of the released scripts mended: {}; {}",
        first(paper),
        null(paper),
        first(mended),
        null(mended)
    );
    let reproduced = released.correlation.median >= SAME;
    let standing = match (released.hub_first * 12 >= released.seeds * 10, paper.hub_first * 12 >= paper.seeds * 10) {
        (true, true) => Standing::Agreed,
        (true, false) => Standing::InPart,
        _ => Standing::NotReproduced,
    };
    let hub = Claim {
        authors: format!("the published vector has the hub in place {}", place(&network.published, network.hub)),
        formula,
        released: format!("{}; {}", first(released), null(released)),
        ours: format!(
            "{}; {}. {} By the state-space learner, with repeated values taken as silence: {}; {}. {}",
            first(whitened),
            null(whitened),
            verdicts[0],
            first(silent),
            null(silent),
            verdicts[1]
        ),
        why: "the released scripts compute the evidence with A where the paper has Aᵀ, and take the eigenvector of the largest eigenvalue of a matrix with negative entries; where they put the hub first, compare with how often they do so on series that were rotated against each other, in which nobody can listen to anybody (p: how often a rotation gives the hub at least as much centrality)".into(),
        ..Claim::new(&format!("The learned centralities identify the hub of {named} as the most central agent (Fig. 8)"), standing)
    };
    let vector = Claim {
        authors: "the published vector".into(),
        formula: format!("correlation {}", number(paper.correlation.median)),
        released: format!(
            "correlation {} ({} to {})",
            number(released.correlation.median),
            number(released.correlation.low),
            number(released.correlation.high)
        ),
        ours: format!(
            "correlation {}; state-space {}",
            number(whitened.correlation.median),
            number(silent.correlation.median)
        ),
        why: if reproduced {
            "found again by the scripts as released, not by the paper's formula".into()
        } else {
            "found again by neither".into()
        },
        ..Claim::new(
            &format!("The published centralities of {named} (Fig. 8)"),
            if reproduced { Standing::InPart } else { Standing::NotReproduced },
        )
    };
    let auc = |found: &Found| found.auc.map_or(NONE.to_owned(), |auc| number(auc.median));
    let edges = Claim {
        formula: auc(paper),
        released: auc(released),
        ours: format!("{}; state-space {}", auc(whitened), auc(silent)),
        why: "chance that an account one follows outweighs one that one does not, in the learned weights; one half is guessing".into(),
        ..Claim::new(&format!("Edges of the follow graph among the learned weights, {named} (not claimed)"), Standing::Beyond)
    };
    vec![hub, vector, edges]
}

/// Agents in the order of the follow graph's Perron vector.
fn order(network: &Twitter) -> Vec<usize> {
    let mut order: Vec<usize> = (0..network.original.len()).collect();
    order.sort_by(|&a, &b| network.original[b].total_cmp(&network.original[a]));
    order
}

fn centralities(network: &Twitter, released: &[&Fit], [whitened, silent]: [&Fit; 2]) -> Panel {
    let order = order(network);
    let plain = |values: &[f64]| {
        order.iter().enumerate().map(|(x, &agent)| Point::new(x as f64, values[agent])).collect::<Vec<_>>()
    };
    let spread = |&agent: &usize| Spread::of(released.iter().map(|fit| fit.centrality[agent]));
    let seeds = order.iter().enumerate().map(|(x, agent)| spread(agent).at(x as f64)).collect();
    Panel::Chart(Chart {
        title: network.name.to_owned(),
        x: Axis::linear("agent, by the follow graph's centrality"),
        y: Axis::linear("centrality"),
        series: vec![
            Series::new("follow graph", Shape::Reference, plain(&network.original)),
            Series::new("published", Shape::Dots, plain(&network.published)),
            Series::new("as released", Shape::Dots, seeds),
            Series::new("whitened", Shape::Dots, plain(&whitened.centrality)),
            Series::new("state-space", Shape::Dots, plain(&silent.centrality)),
        ],
    })
}

fn influences(network: &Twitter, released: &[&Fit], [whitened, silent]: [&Fit; 2]) -> Panel {
    let order = order(network);
    let scaled = |values: &[f64]| {
        let largest = values.iter().fold(0.0f64, |most, value| most.max(value.abs())).max(f64::MIN_POSITIVE);
        order.iter().enumerate().map(|(x, &agent)| Point::new(x as f64, values[agent] / largest)).collect::<Vec<_>>()
    };
    let middle: Vec<f64> = (0..network.original.len())
        .map(|agent| Spread::of(released.iter().map(|fit| fit.influence[agent])).median)
        .collect();
    Panel::Chart(Chart {
        title: network.name.to_owned(),
        x: Axis::linear("agent, by the follow graph's centrality"),
        y: Axis::linear("influence / largest"),
        series: vec![
            Series::new("published", Shape::Dots, scaled(&network.published_influence)),
            Series::new("as released", Shape::Dots, scaled(&middle)),
            Series::new("whitened", Shape::Dots, scaled(&whitened.influence)),
            Series::new("state-space", Shape::Dots, scaled(&silent.influence)),
        ],
    })
}

fn drawing(network: &Twitter) -> Panel {
    let names = network.panel.roster().agents();
    let node = |agent: usize| Node {
        name: names[agent].clone(),
        share: network.original[agent],
        colour: if agent == network.hub { 2 } else { 4 },
    };
    let links = network.edges.iter().filter(|(speaker, listener, _)| speaker != listener);
    Panel::Network(Network {
        title: network.name.to_owned(),
        nodes: (0..names.len()).map(node).collect(),
        links: links.map(|&(from, to, weight)| Link { from, to, weight }).collect(),
        legend: vec![(2, "the hub (agent A)".into()), (4, "others".into())],
        places: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_correlations() {
        assert_eq!((place(&[0.1, 0.5, 0.4], 1), place(&[0.1, 0.5, 0.4], 0)), (1.0, 3.0));
        assert!((correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]) - 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[1.0, 1.0], &[2.0, 3.0]), 0.0);
    }
}
