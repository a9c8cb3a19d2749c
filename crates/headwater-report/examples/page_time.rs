//! How long a page takes and how large it is: `cargo run --release -p headwater-report --example page_time`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use headwater::Ranking;
use headwater::evaluate::{Intervals, Significance};
use headwater::simulate::{WorldParams, simulate};
use headwater::{Combination, Error as Core, influence};
use headwater_report::Error;
use headwater_report::network::places;
use headwater_report::page::{Page, ReportInput};
use std::time::Instant;

fn main() -> Result<(), Error> {
    println!("agents  edges   bins   layout, s  page, s  size, MB");
    // Sparse, as with a graph, and dense, as without one.
    for (agents, steps, edge_probability) in [(20, 700, 0.2), (500, 700, 0.08), (500, 700, 1.0), (5000, 140, 0.002)] {
        let params =
            WorldParams { agents, steps, edge_probability, hypotheses: 2, burn_in: 50, ..WorldParams::default() };
        let (panel, mut model) = simulate(&params)?;
        if agents > 1000 {
            model.combination = model.combination.to_sparse();
        }
        let ranking = ranked(&panel, &model)?;
        let ingredients = ReportInput { beliefs: Some(&panel), ..ReportInput::new(&model, &ranking) };
        let layout = time(|| places(agents, &heard(&model.combination)));
        let mut size = 0;
        let mut whole = f64::MAX;
        for _ in 0..3 {
            let begun = Instant::now();
            size = Page::new(&ingredients)?.html()?.len();
            whole = whole.min(begun.elapsed().as_secs_f64());
        }
        let edges = heard(&model.combination).len();
        println!("{agents:6} {edges:6} {steps:6} {layout:10.3} {whole:8.3} {:9.2}", size as f64 / 1e6);
    }
    Ok(())
}

/// With every column there is; what is in them takes no time.
fn ranked(panel: &headwater::Panel, model: &headwater::Model) -> Result<Ranking, Core> {
    let agents = panel.agents();
    let mut ranking = Ranking::new(model)?;
    ranking.add_activity(panel)?;
    let share = influence(model)?.share.unwrap_or_default();
    let shares = share.iter().map(|share| (0.61 * share, 1.43 * share)).collect();
    let intervals = Intervals::new(shares, (1..=agents).map(|agent| (1, agent)).collect(), share);
    ranking.add_intervals(&intervals, &model.roster)?;
    let edges = (0..agents * agents).map(|cell| (cell % 201 + 1) as f64 / 201.0).collect();
    let found = Significance::new(vec![0.1; agents], edges, Some(0.01), 200);
    ranking.add_significance(&found, model)?;
    Ok(ranking)
}

fn heard(weights: &Combination) -> Vec<(usize, usize, f64)> {
    let mut heard: Vec<_> = weights.edges().filter(|edge| edge.0 != edge.1 && edge.2 > 0.0).collect();
    heard.sort_by(|a, b| b.2.total_cmp(&a.2));
    heard
}

/// The best of three.
fn time<T>(work: impl Fn() -> T) -> f64 {
    let once = |_| {
        let begun = Instant::now();
        drop(work());
        begun.elapsed().as_secs_f64()
    };
    (0..3).map(once).fold(f64::MAX, f64::min)
}
