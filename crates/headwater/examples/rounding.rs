//! What rounding the beliefs costs, over many simulated worlds: the table of docs/studies/exact-recovery.md.
//!
//! `cargo run --release -p headwater --example rounding [worlds]` (default 20).

#![expect(clippy::print_stdout, reason = "a study prints its table")]

use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::model::Status;
use headwater::panel::{log_ratios, probabilities};
use headwater::simulate::{Likelihoods, WorldParams, simulate};
use headwater::{Error, Panel};
use rayon::prelude::*;

/// A certified column further than this from the truth is certified falsely.
const EXACT: f64 = 1e-6;

/// How the beliefs are written down.
#[derive(Debug, Clone, Copy)]
enum Written {
    AsTheyAre,
    LogRatios { decimals: i32 },
    LogRatiosFloat32,
    Probabilities { decimals: i32 },
    ProbabilitiesFloat32,
}

impl Written {
    const ALL: [Written; 9] = [
        Written::AsTheyAre,
        Written::LogRatiosFloat32,
        Written::LogRatios { decimals: 6 },
        Written::LogRatios { decimals: 4 },
        Written::LogRatios { decimals: 3 },
        Written::ProbabilitiesFloat32,
        Written::Probabilities { decimals: 6 },
        Written::Probabilities { decimals: 4 },
        Written::Probabilities { decimals: 3 },
    ];

    fn name(self) -> String {
        match self {
            Written::AsTheyAre => "log-ratios, float64".into(),
            Written::LogRatiosFloat32 => "log-ratios, float32".into(),
            Written::LogRatios { decimals } => format!("log-ratios, {decimals} decimals"),
            Written::ProbabilitiesFloat32 => "probabilities, float32".into(),
            Written::Probabilities { decimals } => format!("probabilities, {decimals} decimals"),
        }
    }

    /// The log-ratios of one agent at one step as they are read back; returns how many zeros were raised.
    fn reread(self, ratios: &mut [f64], hypotheses: &[String]) -> Result<usize, Error> {
        let round = |decimals: i32| move |value: f64| (value * 10f64.powi(decimals)).round() / 10f64.powi(decimals);
        let single = |value: f64| f64::from(value as f32);
        let each = |ratios: &mut [f64], change: &dyn Fn(f64) -> f64| {
            ratios.iter_mut().for_each(|value| *value = change(*value));
            Ok(0)
        };
        match self {
            Written::AsTheyAre => Ok(0),
            Written::LogRatiosFloat32 => each(ratios, &single),
            Written::LogRatios { decimals } => each(ratios, &round(decimals)),
            Written::ProbabilitiesFloat32 => through_probabilities(ratios, hypotheses, &single),
            Written::Probabilities { decimals } => through_probabilities(ratios, hypotheses, &round(decimals)),
        }
    }
}

fn through_probabilities(
    ratios: &mut [f64],
    hypotheses: &[String],
    change: &dyn Fn(f64) -> f64,
) -> Result<usize, Error> {
    let mut values = Vec::new();
    probabilities(ratios.iter().copied(), &mut values);
    values.iter_mut().for_each(|value| *value = change(*value));
    // Rounded numbers need not sum to one, as probabilities must.
    let sum: f64 = values.iter().sum();
    values.iter_mut().for_each(|value| *value /= sum);
    log_ratios(&values, ratios, hypotheses)
}

struct RoundingOutcome {
    error: f64,
    certified: usize,
    falsely: usize,
    zeros: usize,
}

fn study(world: &WorldParams, written: Written) -> Result<RoundingOutcome, Error> {
    let (panel, truth) = simulate(world)?;
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let mut cells = panel.cells().to_vec();
    let mut zeros = 0;
    let mut one = vec![0.0; ratios];
    for frame in cells.chunks_exact_mut(agents * ratios) {
        for agent in 0..agents {
            one.iter_mut().enumerate().for_each(|(ratio, value)| *value = frame[ratio * agents + agent]);
            zeros += written.reread(&mut one, panel.roster().hypotheses())?;
            one.iter().enumerate().for_each(|(ratio, value)| frame[ratio * agents + agent] = *value);
        }
    }
    let model = whitened(&Panel::complete(panel.roster().clone(), cells)?, &WhitenedParams::default())?;
    let off = |listener: usize| -> f64 {
        let weights =
            |speaker| (model.combination.weight(speaker, listener), truth.combination.weight(speaker, listener));
        (0..agents).map(weights).map(|(met, wanted)| (met - wanted).powi(2)).sum()
    };
    let columns = model.diagnostics.columns.iter().enumerate();
    let certified: Vec<usize> =
        columns.filter(|(_, column)| column.status == Status::Certified).map(|(listener, _)| listener).collect();
    Ok(RoundingOutcome {
        error: (0..agents).map(off).sum(),
        falsely: certified.iter().filter(|&&listener| off(listener).sqrt() > EXACT).count(),
        certified: certified.len(),
        zeros,
    })
}

fn main() -> Result<(), Error> {
    let worlds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let base = WorldParams { steps: 200, ..WorldParams::default() };
    let kinds = [
        ("released", WorldParams { likelihoods: Likelihoods::Released, truth: 1, ..base.clone() }),
        ("appendix", base),
    ];
    println!("| world | beliefs | median error | largest error | certified columns | falsely certified |");
    println!("|---|---|---|---|---|---|");
    let mut zeros = 0;
    for (name, world) in &kinds {
        for written in Written::ALL {
            let mut outcomes: Vec<RoundingOutcome> = (3000..3000 + worlds)
                .into_par_iter()
                .map(|seed| study(&WorldParams { seed, ..world.clone() }, written))
                .collect::<Result<_, _>>()?;
            outcomes.sort_by(|a, b| a.error.total_cmp(&b.error));
            let total = |of: &dyn Fn(&RoundingOutcome) -> usize| outcomes.iter().map(of).sum::<usize>();
            let error = |position: usize| outcomes.get(position).map_or(f64::NAN, |outcome| outcome.error);
            let last = outcomes.len().saturating_sub(1);
            println!(
                "| {name} | {} | {:.1e} | {:.1e} | {} of {} | {} |",
                written.name(),
                error(last / 2).midpoint(error(last.div_ceil(2))),
                error(last),
                total(&|outcome| outcome.certified),
                outcomes.len() * world.agents,
                total(&|outcome| outcome.falsely),
            );
            zeros += total(&|outcome| outcome.zeros);
        }
    }
    println!("\nProbabilities that were rounded to zero and raised: {zeros}.");
    Ok(())
}
