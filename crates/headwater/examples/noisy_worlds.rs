//! What is found in worlds of noisy, often silent posts: by the state-space learner with one weight per edge or one
//! strength per speaker, and by the paper's rule of repeating what was last said.
//!
//! `cargo run --release -p headwater --example noisy_worlds [worlds] [hub|strengths|trust|coverage|large] [first seed]` (default
//! 40, the first three, seeds from 100, 300 and 500).

#![expect(clippy::print_stdout, reason = "a study prints its tables")]

use headwater::evaluate::intervals::intervals;
use headwater::evaluate::{CircularShifts, Verdict};
use headwater::graph::{Graph, Rule};
use headwater::learn::state_space::{self, StateSpaceLearner, StateSpaceParams, state_space};
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::model::WeightKind;
use headwater::simulate::noisy::{NoisyWorld, noisy};
use headwater::{Error, Model, Panel, influence};
use rayon::prelude::*;

const ROTATIONS: u64 = 100;

fn centrality(model: &Model) -> Result<Vec<f64>, Error> {
    Ok(influence(model)?.centrality.values)
}

/// Whether agent 0 is first by centrality.
fn hub_first(model: &Model) -> Result<f64, Error> {
    let u = centrality(model)?;
    Ok(f64::from((1..u.len()).all(|agent| u[0] > u[agent])))
}

fn repeated(panel: &Panel, support: Option<Vec<Vec<usize>>>) -> Result<Model, Error> {
    whitened(&panel.clone().carry_forward().0, &WhitenedParams { symbols: false, support, ..WhitenedParams::default() })
}

fn graph_of(truth: &Model) -> Result<Graph, Error> {
    let edges = truth.combination.edges().filter(|(_, _, weight)| *weight > 0.0);
    Graph::new(truth.combination.agents(), edges.map(|(speaker, listener, _)| (speaker, listener)))
}

/// Rank correlation of two lists; ties share their mean rank.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |values: &[f64]| -> Vec<f64> {
        let below = |value: f64| values.iter().filter(|other| **other < value).count() as f64;
        let same = |value: f64| values.iter().filter(|other| **other == value).count() as f64;
        values.iter().map(|&value| below(value) + 0.5 * (same(value) - 1.0)).collect()
    };
    let (x, y) = (ranks(a), ranks(b));
    let middle = (a.len() - 1) as f64 / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - middle) * (y - middle)).sum::<f64>();
    product(&x, &y) / (product(&x, &x) * product(&y, &y)).sqrt()
}

/// Runs one world after another on all threads; the mean and standard deviation of each figure.
fn worlds<const N: usize>(
    count: u64,
    world: impl Fn(u64) -> Result<[f64; N], Error> + Sync + Send,
) -> Result<[(f64, f64); N], Error> {
    let all: Vec<[f64; N]> = (0..count).into_par_iter().map(world).collect::<Result<_, _>>()?;
    let mean = |index: usize| all.iter().map(|row| row[index]).sum::<f64>() / all.len() as f64;
    let spread =
        |index: usize| all.iter().map(|row| (row[index] - mean(index)).powi(2)).sum::<f64>() / all.len() as f64;
    Ok(std::array::from_fn(|index| (mean(index), spread(index).sqrt())))
}

fn hub(count: u64, from: u64) -> Result<(), Error> {
    println!(
        "\n| hub world, {count} worlds | hub first, state-space | hub first, strengths on the graph | hub first, edges of the graph | hub first, repeated + simplex | δ̂ (0.1) | noise variance | rounds |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for noise in [1.5, 0.5] {
        let [first, strong, edges, paper, adaptation, variance, rounds] = worlds(count, |seed| {
            let (panel, truth) = noisy(&NoisyWorld { noise, seed: from + seed, ..NoisyWorld::default() })?;
            let model = state_space(&panel, &StateSpaceParams::default())?;
            let support = Some(graph_of(&truth)?.speakers().to_vec());
            let known = StateSpaceParams { support: support.clone(), ..StateSpaceParams::default() };
            let strengths =
                state_space(&panel, &StateSpaceParams { weights: Some(WeightKind::Strengths), ..known.clone() })?;
            let smoothing = model.diagnostics.smoothing.as_ref();
            let variance = smoothing.map_or(f64::NAN, |smoothing| smoothing.noise[0][0]);
            let rounds = smoothing.map_or(f64::NAN, |smoothing| smoothing.rounds as f64);
            Ok([
                hub_first(&model)?,
                hub_first(&strengths)?,
                hub_first(&state_space(&panel, &known)?)?,
                hub_first(&repeated(&panel, None)?)?,
                model.adaptation,
                variance,
                rounds,
            ])
        })?;
        println!(
            "| noise {noise} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.4} ± {:.4} | {:.3} (true {:.2}) | {:.0} |",
            100.0 * first.0,
            100.0 * strong.0,
            100.0 * edges.0,
            100.0 * paper.0,
            adaptation.0,
            adaptation.1,
            variance.0,
            noise * noise,
            rounds.0
        );
    }
    Ok(())
}

fn strengths(count: u64, from: u64) -> Result<(), Error> {
    println!(
        "\n| worlds of strengths, {count} worlds | rank correlation of centrality | squared error of A | δ̂ (0.1) |"
    );
    println!("|---|---|---|---|");
    for noise in [0.5, 1.5] {
        let rows = worlds(count, |seed| {
            let (panel, truth) = noisy(&NoisyWorld { noise, seed: from + seed, ..NoisyWorld::strengths() })?;
            let graph = graph_of(&truth)?;
            let known = StateSpaceParams { support: Some(graph.speakers().to_vec()), ..StateSpaceParams::default() };
            let strong =
                state_space(&panel, &StateSpaceParams { weights: Some(WeightKind::Strengths), ..known.clone() })?;
            let free = state_space(&panel, &known)?;
            let even = graph.weigh(Rule::Uniform, 0)?;
            let wanted = centrality(&truth)?;
            let error = |columns: Vec<f64>| -> f64 {
                columns.iter().zip(truth.combination.to_columns()).map(|(a, b)| (a - b).powi(2)).sum()
            };
            Ok([
                rank_correlation(&wanted, &centrality(&strong)?),
                error(strong.combination.to_columns()),
                strong.adaptation,
                rank_correlation(&wanted, &centrality(&free)?),
                error(free.combination.to_columns()),
                free.adaptation,
                rank_correlation(&wanted, &even.centrality()?.values),
                error(even.to_columns()),
                f64::NAN,
            ])
        })?;
        for (name, row) in ["strengths", "one weight per edge", "the graph alone"].iter().zip(rows.chunks(3)) {
            println!(
                "| {name}, noise {noise} | {:.3} ± {:.3} | {:.2} | {:.4} |",
                row[0].0, row[0].1, row[1].0, row[2].0
            );
        }
    }
    Ok(())
}

fn trust(count: u64, from: u64) -> Result<(), Error> {
    println!(
        "\n| hub world, {count} worlds of 700 bins | supported | skill against own past | shares covered (90 %) | ranks covered |"
    );
    println!("|---|---|---|---|---|");
    for noise in [0.5, 1.5] {
        let [supported, skill, covered, ranks] = worlds(count, |seed| {
            let (panel, truth) = noisy(&NoisyWorld { noise, steps: 700, seed: from + seed, ..NoisyWorld::default() })?;
            let params = StateSpaceParams::default();
            let model = state_space(&panel, &params)?;
            let skill = state_space::skill(&panel, &params)?;
            let rotation = CircularShifts::for_model(&panel, &model, seed);
            let draws: Vec<_> = (0..ROTATIONS).map(|number| rotation.draw(number)).collect::<Result<_, _>>()?;
            let found = CircularShifts::compare(&rotation.observed()?, &draws);
            let (within, ranked) = covered(&panel, &truth, &model, seed)?;
            let supported = f64::from(Verdict::from_skill(skill, Some(&found)).supported());
            Ok([supported, skill.map_or(f64::NAN, |skill| skill.against_own_past), within, ranked])
        })?;
        println!(
            "| noise {noise} | {:.1} % | {:.2} % | {:.1} % | {:.1} % |",
            100.0 * supported.0,
            100.0 * skill.0,
            100.0 * covered.0,
            100.0 * ranks.0
        );
    }
    Ok(())
}

/// Which part of the true shares and ranks the 90 % intervals of 200 resamples hold.
fn covered(panel: &Panel, truth: &Model, model: &Model, seed: u64) -> Result<(f64, f64), Error> {
    let intervals = intervals(panel, model, 200, 3, seed)?;
    let known = influence(truth)?;
    let shares = known.share.clone().unwrap_or_default();
    let agents = shares.len();
    let mut place = vec![0; agents];
    known.ranking().into_iter().enumerate().for_each(|(position, agent)| place[agent] = position + 1);
    let within = |agent: &usize| (intervals.share[*agent].0..=intervals.share[*agent].1).contains(&shares[*agent]);
    let ranked = |agent: &usize| (intervals.rank[*agent].0..=intervals.rank[*agent].1).contains(&place[*agent]);
    let part = |count: usize| count as f64 / agents as f64;
    Ok((part((0..agents).filter(within).count()), part((0..agents).filter(ranked).count())))
}

/// What the intervals of strengths on the graph cover.
fn coverage(count: u64, from: u64) -> Result<(), Error> {
    println!(
        "\n| strengths on the graph, {count} worlds of 700 bins, noise 0.5 | shares covered (90 %) | ranks covered | squared error of A |"
    );
    println!("|---|---|---|---|");
    for (name, base) in [("hub world", NoisyWorld::default()), ("worlds of strengths", NoisyWorld::strengths())] {
        let [shares, ranks, error] = worlds(count, |seed| {
            let (panel, truth) = noisy(&NoisyWorld { noise: 0.5, steps: 700, seed: from + seed, ..base.clone() })?;
            let support = Some(graph_of(&truth)?.speakers().to_vec());
            let params =
                StateSpaceParams { weights: Some(WeightKind::Strengths), support, ..StateSpaceParams::default() };
            let model = state_space(&panel, &params)?;
            let (shares, ranks) = covered(&panel, &truth, &model, seed)?;
            let pairs = model.combination.to_columns().into_iter().zip(truth.combination.to_columns());
            Ok([shares, ranks, pairs.map(|(a, b)| (a - b).powi(2)).sum()])
        })?;
        println!("| {name} | {:.1} % | {:.1} % | {:.3} |", 100.0 * shares.0, 100.0 * ranks.0, error.0);
    }
    Ok(())
}

/// How long 300 agents over 700 bins take, round by round.
fn large(seed: u64) -> Result<(), Error> {
    let world = NoisyWorld { agents: 300, edge_probability: 0.02, steps: 700, seed, ..NoisyWorld::default() };
    let (panel, _) = noisy(&world)?;
    let begun = std::time::Instant::now();
    let mut learner = StateSpaceLearner::new(&panel, &StateSpaceParams::default())?;
    while !learner.done() {
        let round = learner.round()?;
        println!(
            "round {}: log-likelihood {:.2}, {:.1} s",
            round.number,
            round.log_likelihood,
            begun.elapsed().as_secs_f64()
        );
    }
    let first = hub_first(&learner.model()?)?;
    println!("300 agents, 700 bins: {:.1} s, hub first: {}", begun.elapsed().as_secs_f64(), first == 1.0);
    let skill = state_space::skill(&panel, &StateSpaceParams::default())?;
    println!("with the two fits that measure skill, as in learn: {:.1} s; {skill:?}", begun.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> Result<(), Error> {
    let count: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(40);
    let wanted = std::env::args().nth(2);
    let from: Option<u64> = std::env::args().nth(3).and_then(|text| text.parse().ok());
    let asked = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    if asked("hub") {
        hub(count, from.unwrap_or(100))?;
    }
    if asked("strengths") {
        strengths(count, from.unwrap_or(300))?;
    }
    if wanted.as_deref() == Some("coverage") {
        coverage(count, from.unwrap_or(8000))?;
    }
    if wanted.as_deref() == Some("large") {
        large(from.unwrap_or(700))?;
    }
    if asked("trust") {
        trust(count, from.unwrap_or(500))?;
    }
    Ok(())
}
