//! How often the verdict is "supported": on rotations of real posts, where nobody listens and it should almost never be,
//! and on simulated worlds of posts, where somebody does.
//!
//! `cargo run --release -p headwater-files --example verdicts DRAWS BELIEFS [EDGES]` or `… verdicts WORLDS NOISE`.
//!
//! A verdict needs forecasts better than both rivals and better than all but one in twenty of a hundred rotations; here
//! rotations end as soon as they cannot change it any more.

#![expect(clippy::print_stdout, reason = "a study prints its table")]

use headwater::evaluate::{CircularShifts, ShiftDraw, Verdict, shifted};
use headwater::learn::state_space::{self, StateSpaceParams};
use headwater::model::WeightKind;
use headwater::simulate::noisy::{NoisyWorld, noisy};
use headwater::{Method, Panel};
use headwater_files::{read_beliefs, read_edges};
use rayon::prelude::*;
use std::error::Error;
use std::path::Path;

const ROTATIONS: u64 = 100;

/// More rotations than this that forecast as well, of a hundred, and the verdict is "no evidence".
const MOST_REACHED: usize = 4;

/// What was found in one panel.
struct PanelVerdict {
    supported: bool,
    skill: f64,
    beyond: f64,
    rotations: usize,
}

/// The verdict of `discover`, with a graph by whichever weights forecast better.
fn verdict(panel: &Panel, support: Option<Vec<Vec<usize>>>, seed: u64) -> Result<PanelVerdict, headwater::Error> {
    let params = StateSpaceParams { support, ..StateSpaceParams::default() };
    let (weights, skill) = if params.support.is_some() {
        let choice = state_space::choose(panel, &params)?;
        (choice.selection.chosen, choice.skill)
    } else {
        (WeightKind::Edges, state_space::skill(panel, &params)?)
    };
    let gain = skill.map_or(f64::NAN, |skill| skill.against_own_past);
    let beyond = skill.and_then(|skill| skill.beyond_common).unwrap_or(f64::NAN);
    let told = |supported: bool, rotations: usize| PanelVerdict { supported, skill: gain, beyond, rotations };
    if Verdict::from_skill(skill, None).beats_baselines() != Some(true) {
        return Ok(told(false, 0));
    }
    let method = Method::StateSpace(StateSpaceParams { weights: Some(weights), ..params });
    let rotation = CircularShifts::new(panel, &method, seed);
    let observed = rotation.observed()?;
    let mut draws: Vec<ShiftDraw> = Vec::new();
    for number in 0..ROTATIONS {
        draws.push(rotation.draw(number)?);
        let p = CircularShifts::compare(&observed, &draws).skill.unwrap_or(1.0);
        // p·(1 + rotations) − 1 of them did as well; more only add to that.
        if (p * (1 + draws.len()) as f64).round() as usize > 1 + MOST_REACHED {
            return Ok(told(false, draws.len()));
        }
    }
    let found = Verdict::from_skill(skill, Some(&CircularShifts::compare(&observed, &draws)));
    Ok(told(found.supported(), draws.len()))
}

fn table(what: &str, all: &[PanelVerdict]) {
    let supported = all.iter().filter(|found| found.supported).count();
    let with_skill = all.iter().filter(|found| found.rotations > 0).count();
    let mean = |of: fn(&PanelVerdict) -> f64| 100.0 * all.iter().map(of).sum::<f64>() / all.len() as f64;
    let (skill, beyond) = (mean(|found| found.skill), mean(|found| found.beyond));
    println!(
        "| | panels | beat the rivals | supported | mean skill against own past | the same, beyond the common trend |"
    );
    println!("|---|---|---|---|---|---|");
    println!("| {what} | {} | {with_skill} | {supported} | {skill:.3} % | {beyond:.3} % |", all.len());
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [count, source, rest @ ..] = &arguments[..] else {
        return Err("usage: verdicts DRAWS BELIEFS [EDGES], or verdicts WORLDS NOISE".into());
    };
    let count: u64 = count.parse()?;
    if let Ok(noise) = source.parse::<f64>() {
        let world = |seed: u64| {
            let (panel, _) = noisy(&NoisyWorld { noise, steps: 700, seed: 500 + seed, ..NoisyWorld::default() })?;
            verdict(&panel, None, seed)
        };
        let all: Vec<PanelVerdict> = (0..count).into_par_iter().map(world).collect::<Result<_, headwater::Error>>()?;
        table(&format!("hub worlds of 700 bins, noise {noise}"), &all);
        return Ok(());
    }
    let panel = read_beliefs(Path::new(source), false)?.panel;
    let support = match rest.first() {
        Some(edges) => Some(read_edges(Path::new(edges))?.graph(panel.roster())?.speakers().to_vec()),
        None => None,
    };
    let draw = |number: u64| verdict(&shifted(&panel, 977, number)?, support.clone(), number);
    let all: Vec<PanelVerdict> = (0..count).into_par_iter().map(draw).collect::<Result<_, headwater::Error>>()?;
    table("rotations of these posts", &all);
    Ok(())
}
