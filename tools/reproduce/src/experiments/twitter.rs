//! Figures 7 to 9: the three Twitter networks: centralities, influences, drawings; the released procedure, the
//! paper's formula and our learner on the authors' own series, and on circular shifts of them.

use crate::Error;
use crate::claim::{ClaimStatus, NONE, PaperClaim};
use crate::curves::{SeedRange, mean};
use crate::experiment::{ExperimentContext, ExperimentResult, NamedFigure};
use crate::released_data::TwitterNetwork;
use headwater::compare::{GroundTruth, compare};
use headwater::evaluate::skill::skill as forecast_skill;
use headwater::evaluate::{CircularShifts, Verdict, shifted};
use headwater::learn::gsl::{Gsl, GslParams};
use headwater::learn::released::{ReleasedParams, as_released};
use headwater::learn::state_space::{self, StateSpaceParams, state_space};
use headwater::learn::whitened::{WhitenedParams, held_out, whitened};
use headwater::model::Skill;
use headwater::words::number;
use headwater::{Combination, Method, Model, Panel, influence};
use headwater_report::{Axis, Chart, ChartSeries, Figure, FigurePanel, Link, NetworkChart, Node, Point, Shape};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A method by which a network is learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompetingMethod {
    /// The authors' scripts as they are.
    Released,
    /// The same with the evidence corrected to Aᵀ, ranked by the Perron vector as the paper defines it.
    Corrected,
    /// Algorithm 1 with the paper's W, δ, μ and α.
    Paper,
    /// The whitened learner.
    Whitened,
    /// The state-space learner, on the series as they were before silent days repeated the last value.
    StateSpace,
}

impl CompetingMethod {
    const ALL: [CompetingMethod; 5] = [
        CompetingMethod::Released,
        CompetingMethod::Corrected,
        CompetingMethod::Paper,
        CompetingMethod::Whitened,
        CompetingMethod::StateSpace,
    ];

    fn name(self) -> &'static str {
        match self {
            CompetingMethod::Released => "as released",
            CompetingMethod::Corrected => "released, corrected to Aᵀ",
            CompetingMethod::Paper => "Algorithm 1",
            CompetingMethod::Whitened => "whitened",
            CompetingMethod::StateSpace => "state-space",
        }
    }

    fn key(self) -> &'static str {
        match self {
            CompetingMethod::Released => "released",
            CompetingMethod::Corrected => "corrected",
            CompetingMethod::Paper => "paper",
            CompetingMethod::Whitened => "whitened",
            CompetingMethod::StateSpace => "state-space",
        }
    }

    /// Whether it depends on a seed.
    fn is_random(self) -> bool {
        !matches!(self, CompetingMethod::Whitened | CompetingMethod::StateSpace)
    }
}

/// Rounds of the state-space fit, the same for the series and their circular shifts.
const ROUNDS: usize = 10;

/// The paper's window.
const WINDOW: usize = 50;

/// Seed of the released scripts; the others follow it.
const FIRST: u64 = 45;

/// Correlation from which published centralities count as reproduced.
const SAME: f64 = 0.98;

/// Results of one fit.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MethodFit {
    centrality: Vec<f64>,
    influence: Vec<f64>,
    /// Probability that a followed account has a larger weight than one that is not followed.
    auc: Option<f64>,
}

/// Results of all fits of one network by one method.
#[derive(Serialize)]
struct MethodSummary {
    seeds: usize,
    /// Rank of the hub by centrality and by influence, over the seeds.
    hub_by_centrality: SeedRange,
    hub_by_influence: SeedRange,
    hub_first: usize,
    correlation: SeedRange,
    auc: Option<SeedRange>,
    /// Permutation test of the hub's centrality.
    p_value: f64,
    circular_shifts: usize,
    /// In how many circular shifts the hub is first.
    hub_first_shifted: usize,
}

pub(crate) fn run(context: &ExperimentContext<'_>) -> Result<ExperimentResult, Error> {
    let networks = context.released.twitter()?;
    let (seeds, shifts) = (context.pick(4, 12), context.pick(9, 99));
    let mut tasks = Vec::new();
    for index in 0..networks.len() {
        for method in CompetingMethod::ALL {
            let seeds = if method.is_random() { seeds } else { 1 };
            // A state-space fit takes seconds.
            let shifts = if method == CompetingMethod::StateSpace { context.pick(4, 39) } else { shifts };
            tasks.extend((0..seeds).map(|seed| (index, method, FIRST + seed, None)));
            tasks.extend((0..shifts).map(|number| (index, method, FIRST, Some(number))));
        }
    }
    let key = |(index, method, seed, shift): &(usize, CompetingMethod, u64, Option<u64>)| {
        let suffix = shift.map_or(String::new(), |number| format!("-shift-{number}"));
        format!("{}-{}-seed-{seed}{suffix}", networks[*index].name, method.key())
    };
    let keys: Vec<String> = tasks.iter().map(key).collect();
    let fits: Vec<MethodFit> = context.jobs.all(&keys, |task| {
        let (index, method, seed, shift) = tasks[task];
        let network = &networks[index];
        match shift {
            Some(number) => fit(network, &shifted(&network.panel, context.seed, number)?, method, seed),
            None => fit(network, &network.panel, method, seed),
        }
    })?;
    let fits_of = |index: usize, method: CompetingMethod, shifted: bool| -> Vec<&MethodFit> {
        let wanted = |task: &&(usize, CompetingMethod, u64, Option<u64>)| {
            task.0 == index && task.1 == method && task.3.is_some() == shifted
        };
        tasks.iter().zip(&fits).filter(|(task, _)| wanted(task)).map(|(_, fit)| fit).collect()
    };
    let mut numbers = serde_json::Map::new();
    let (mut claims, mut panels) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for (index, network) in networks.iter().enumerate() {
        let found: Vec<MethodSummary> = CompetingMethod::ALL
            .iter()
            .map(|method| summary(network, &fits_of(index, *method, false), &fits_of(index, *method, true)))
            .collect();
        let verdicts = verdicts(network, context)?;
        claims.extend(self::claims(network, &found, &verdicts));
        let rows: serde_json::Map<String, Value> = CompetingMethod::ALL
            .iter()
            .zip(&found)
            .map(|(method, found)| (method.name().to_owned(), json!(found)))
            .collect();
        numbers.insert(network.name.to_owned(), json!({ "hub": hub(network), "methods": rows, "verdicts": { "whitened": verdicts[0], "state-space": verdicts[1] } }));
        let released = fits_of(index, CompetingMethod::Released, false);
        let ours = [
            fits_of(index, CompetingMethod::Whitened, false)[0],
            fits_of(index, CompetingMethod::StateSpace, false)[0],
        ];
        panels[0].push(centralities(network, &released, ours));
        panels[1].push(influences(network, &released, ours));
        panels[2].push(drawing(network));
    }
    let [centralities, influences, drawings] = panels;
    let figure = |title: &str, panels: Vec<FigurePanel>| Figure { title: title.to_owned(), panels, columns: 3 };
    let figures = vec![
        NamedFigure {
            stem: "centralities".into(),
            caption: "Centralities in the three networks, agents in the order of the follow graph's own Perron vector (the hub first): the follow graph, the authors' published vector, our run of the released code (median and range over seeds), the whitened and the state-space learner.".into(),
            figure: figure("Twitter: centralities", centralities),
        },
        NamedFigure {
            stem: "influences".into(),
            caption: "Influences in the same order, each divided by its largest absolute value: published, our run of the released code, the whitened and the state-space learner.".into(),
            figure: figure("Twitter: influences", influences),
        },
        NamedFigure {
            stem: "networks".into(),
            caption: "The follow graphs; the area of a node is its centrality.".into(),
            figure: figure("Twitter: follow graphs", drawings),
        },
    ];
    Ok(ExperimentResult { figures, numbers: numbers.into(), claims })
}

fn hub(network: &TwitterNetwork) -> &str {
    &network.panel.roster().agents()[network.hub]
}

fn fit(network: &TwitterNetwork, panel: &Panel, method: CompetingMethod, seed: u64) -> Result<MethodFit, Error> {
    let released = ReleasedParams {
        passes: network.passes,
        decay: network.decay,
        transposed: method == CompetingMethod::Corrected,
        seed,
        ..ReleasedParams::default()
    };
    let model = match method {
        CompetingMethod::Released => as_released(panel, &released)?,
        CompetingMethod::Corrected => {
            let mut model = as_released(panel, &released)?;
            // Ranked by the definition of the paper, not by the largest eigenvalue.
            model.method = Method::Gsl(GslParams::default());
            model
        }
        CompetingMethod::Paper => paper(network, panel, &released)?,
        CompetingMethod::Whitened => whitened(panel, &WhitenedParams { symbols: false, ..WhitenedParams::default() })?,
        CompetingMethod::StateSpace => {
            let params = StateSpaceParams { rounds: ROUNDS, tolerance: 0.0, ..StateSpaceParams::default() };
            state_space(&panel.clone().silence_repeats().0, &params)?
        }
    };
    let found = influence(&model)?;
    let mut known = GroundTruth::new(model.roster.clone());
    known.combination = Some(Combination::from_triplets(network.edges.clone(), panel.agents())?);
    let auc = compare(&model, &known, 1)?.edge_auc;
    Ok(MethodFit { centrality: found.centrality.values, influence: found.influence, auc })
}

/// Algorithm 1 with the parameters of Section VI, from the same random weights.
fn paper(network: &TwitterNetwork, panel: &Panel, released: &ReleasedParams) -> Result<Model, Error> {
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

/// Rank of an agent, 1 for the largest.
fn rank(values: &[f64], agent: usize) -> f64 {
    (1 + values.iter().filter(|value| **value > values[agent]).count()) as f64
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let centred = |v: &[f64]| {
        let mean = mean(v);
        v.iter().map(|value| value - mean).collect::<Vec<f64>>()
    };
    let (a, b) = (centred(a), centred(b));
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let scale = (product(&a, &a) * product(&b, &b)).sqrt();
    if scale > 0.0 { product(&a, &b) / scale } else { 0.0 }
}

fn summary(network: &TwitterNetwork, fits: &[&MethodFit], shifted: &[&MethodFit]) -> MethodSummary {
    let hub = network.hub;
    let range = |of: &dyn Fn(&MethodFit) -> f64| SeedRange::from_values(fits.iter().map(|fit| of(fit)));
    let typical = range(&|fit| fit.centrality[hub]).median;
    let reached = shifted.iter().filter(|fit| fit.centrality[hub] >= typical).count();
    MethodSummary {
        seeds: fits.len(),
        hub_by_centrality: range(&|fit| rank(&fit.centrality, hub)),
        hub_by_influence: range(&|fit| rank(&fit.influence, hub)),
        hub_first: fits.iter().filter(|fit| rank(&fit.centrality, hub) == 1.0).count(),
        correlation: range(&|fit| correlation(&fit.centrality, &network.published)),
        auc: fits.iter().all(|fit| fit.auc.is_some()).then(|| range(&|fit| fit.auc.unwrap_or(0.5))),
        p_value: (1 + reached) as f64 / (1 + shifted.len()) as f64,
        circular_shifts: shifted.len(),
        hub_first_shifted: shifted.iter().filter(|fit| rank(&fit.centrality, hub) == 1.0).count(),
    }
}

/// Verdicts of a report on these series, with a permutation test: by the whitened and the state-space learner.
fn verdicts(network: &TwitterNetwork, context: &ExperimentContext<'_>) -> Result<[Verdict; 2], Error> {
    use rayon::prelude::*;
    let judged = |panel: &Panel, skill: Option<Skill>, method: &Method, shifts: u64| {
        let null = CircularShifts::new(panel, method, context.seed);
        let draws = (0..shifts).into_par_iter().map(|number| null.draw(number)).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, Error>(Verdict::from_skill(skill, Some(&CircularShifts::compare(&null.observed()?, &draws))))
    };
    let params = WhitenedParams { symbols: false, ..WhitenedParams::default() };
    let skill = forecast_skill(&network.panel, &held_out(&network.panel, &params)?);
    let whitened = judged(&network.panel, skill, &Method::Whitened(params), context.pick(60, 200))?;
    let (said, _) = network.panel.clone().silence_repeats();
    let params = StateSpaceParams { rounds: ROUNDS, tolerance: 0.0, ..StateSpaceParams::default() };
    let skill = state_space::skill(&said, &params)?;
    Ok([whitened, judged(&said, skill, &Method::StateSpace(params), context.pick(20, 39))?])
}

fn claims(network: &TwitterNetwork, found: &[MethodSummary], verdicts: &[Verdict; 2]) -> Vec<PaperClaim> {
    let [released, corrected, paper, whitened, silent] = found else { return Vec::new() };
    let named = network.name;
    let first = |found: &MethodSummary| match found.seeds {
        1 => format!("hub ranked {}", found.hub_by_centrality.median),
        seeds => format!(
            "hub first in {} of {seeds} seeds (median rank {})",
            found.hub_first, found.hub_by_centrality.median
        ),
    };
    let null = |found: &MethodSummary| {
        format!(
            "permutation test p = {:.2}, hub first in {} of {} circular shifts",
            found.p_value, found.hub_first_shifted, found.circular_shifts
        )
    };
    let formula = format!(
        "{}; {}. Released scripts corrected to Aᵀ: {}; {}",
        first(paper),
        null(paper),
        first(corrected),
        null(corrected)
    );
    let reproduced = released.correlation.median >= SAME;
    let status = match (released.hub_first * 12 >= released.seeds * 10, paper.hub_first * 12 >= paper.seeds * 10) {
        (true, true) => ClaimStatus::Reproduced,
        (true, false) => ClaimStatus::PartlyReproduced,
        _ => ClaimStatus::NotReproduced,
    };
    let hub = PaperClaim {
        authors: format!("the published vector ranks the hub {}", rank(&network.published, network.hub)),
        formula,
        released: format!("{}; {}", first(released), null(released)),
        ours: format!(
            "{}; {}. {} State-space learner, with repeated values treated as missing: {}; {}. {}",
            first(whitened),
            null(whitened),
            verdicts[0],
            first(silent),
            null(silent),
            verdicts[1]
        ),
        explanation: "the released scripts compute the evidence with A where the paper has Aᵀ, and rank by the eigenvector of the largest eigenvalue of a matrix with negative entries; the permutation test compares the hub's centrality with that in circular shifts of the series, which remove any influence between agents".into(),
        ..PaperClaim::new(&format!("The learned centralities identify the hub of {named} as the most central agent (Fig. 8)"), status)
    };
    let vector = PaperClaim {
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
        explanation: if reproduced {
            "reproduced by the released scripts, not by the paper's formula".into()
        } else {
            "reproduced by neither the released scripts nor the paper's formula".into()
        },
        ..PaperClaim::new(
            &format!("The published centralities of {named} (Fig. 8)"),
            if reproduced { ClaimStatus::PartlyReproduced } else { ClaimStatus::NotReproduced },
        )
    };
    let auc = |found: &MethodSummary| found.auc.map_or(NONE.to_owned(), |auc| number(auc.median));
    let edges = PaperClaim {
        formula: auc(paper),
        released: auc(released),
        ours: format!("{}; state-space {}", auc(whitened), auc(silent)),
        explanation: "AUC: probability that a followed account has a larger learned weight than one that is not followed; 0.5 is chance".into(),
        ..PaperClaim::new(&format!("Edges of the follow graph of {named}, from the learned weights"), ClaimStatus::NotClaimed)
    };
    vec![hub, vector, edges]
}

/// Agents in the order of the follow graph's Perron vector.
fn order(network: &TwitterNetwork) -> Vec<usize> {
    let mut order: Vec<usize> = (0..network.original.len()).collect();
    order.sort_by(|&a, &b| network.original[b].total_cmp(&network.original[a]));
    order
}

fn centralities(network: &TwitterNetwork, released: &[&MethodFit], [whitened, silent]: [&MethodFit; 2]) -> FigurePanel {
    let order = order(network);
    let plain = |values: &[f64]| {
        order.iter().enumerate().map(|(x, &agent)| Point::new(x as f64, values[agent])).collect::<Vec<_>>()
    };
    let range = |&agent: &usize| SeedRange::from_values(released.iter().map(|fit| fit.centrality[agent]));
    let seeds = order.iter().enumerate().map(|(x, agent)| range(agent).at(x as f64)).collect();
    FigurePanel::Chart(Chart {
        title: network.name.to_owned(),
        x: Axis::linear("agent, by the follow graph's centrality"),
        y: Axis::linear("centrality"),
        series: vec![
            ChartSeries::new("follow graph", Shape::Reference, plain(&network.original)),
            ChartSeries::new("published", Shape::Dots, plain(&network.published)),
            ChartSeries::new("as released", Shape::Dots, seeds),
            ChartSeries::new("whitened", Shape::Dots, plain(&whitened.centrality)),
            ChartSeries::new("state-space", Shape::Dots, plain(&silent.centrality)),
        ],
    })
}

fn influences(network: &TwitterNetwork, released: &[&MethodFit], [whitened, silent]: [&MethodFit; 2]) -> FigurePanel {
    let order = order(network);
    let scaled = |values: &[f64]| {
        let largest = values.iter().fold(0.0f64, |most, value| most.max(value.abs())).max(f64::MIN_POSITIVE);
        order.iter().enumerate().map(|(x, &agent)| Point::new(x as f64, values[agent] / largest)).collect::<Vec<_>>()
    };
    let middle: Vec<f64> = (0..network.original.len())
        .map(|agent| SeedRange::from_values(released.iter().map(|fit| fit.influence[agent])).median)
        .collect();
    FigurePanel::Chart(Chart {
        title: network.name.to_owned(),
        x: Axis::linear("agent, by the follow graph's centrality"),
        y: Axis::linear("influence / largest"),
        series: vec![
            ChartSeries::new("published", Shape::Dots, scaled(&network.published_influence)),
            ChartSeries::new("as released", Shape::Dots, scaled(&middle)),
            ChartSeries::new("whitened", Shape::Dots, scaled(&whitened.influence)),
            ChartSeries::new("state-space", Shape::Dots, scaled(&silent.influence)),
        ],
    })
}

fn drawing(network: &TwitterNetwork) -> FigurePanel {
    let names = network.panel.roster().agents();
    let node = |agent: usize| Node {
        name: names[agent].clone(),
        share: network.original[agent],
        colour: if agent == network.hub { 2 } else { 4 },
    };
    let links = network.edges.iter().filter(|(speaker, listener, _)| speaker != listener);
    FigurePanel::Network(NetworkChart {
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
    fn ranks_and_correlations() {
        assert_eq!((rank(&[0.1, 0.5, 0.4], 1), rank(&[0.1, 0.5, 0.4], 0)), (1.0, 3.0));
        assert!((correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]) - 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[1.0, 1.0], &[2.0, 3.0]), 0.0);
    }
}
