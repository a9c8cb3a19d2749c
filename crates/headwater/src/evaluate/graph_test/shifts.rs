//! Circular shifts: every account's series is shifted in time by its own offset, within each episode.
//!
//! A companion of the verdict only: common news passes this test.

use super::blocks::ColumnBlocks;
use super::rewiring::SpeakerLists;
use super::rows::Rows;
use crate::Error;
use crate::evaluate::draws::{draw_all, numbered};
use crate::graph::Graph;
use rand::RngExt;

/// Shifts of at least so many steps, or a fifth of an episode where that is less.
const SMALLEST_SHIFT: usize = 20;

/// Steps below which an episode has too few different shifts.
const FEWEST_STEPS: usize = 20;

/// Share of shifts in which followed accounts' deviations precede a listener's news at least as strongly as observed; none where
/// an episode is too short. `episodes` are lengths, repeated in the rows for each of `ratios`.
pub(super) fn shift_p(
    level: &Rows,
    news: &Rows,
    graph: &Graph,
    episodes: &[usize],
    draws: usize,
    seed: u64,
) -> Result<Option<f64>, Error> {
    let per_ratio: usize = episodes.iter().sum();
    if draws == 0 || per_ratio == 0 || episodes.iter().any(|&steps| steps < FEWEST_STEPS) {
        return Ok(None);
    }
    // Each stretch of a row: where it begins, and its episode.
    let mut stretches = Vec::new();
    for ratio in 0..level.width / per_ratio {
        let mut start = ratio * per_ratio;
        for (episode, &steps) in episodes.iter().enumerate() {
            stretches.push((start, episode));
            start += steps;
        }
    }
    let accounts = graph.agents();
    let lists = SpeakerLists::from_graph(graph);
    let weights: Vec<f64> = graph.speakers().iter().map(|list| 1.0 / list.len().max(1) as f64).collect();
    // Rows whose stretches begin later by an account's offset and by some steps, and wrap around.
    let shifted = |rows: &Rows, offsets: &[Vec<usize>], later: &dyn Fn(usize) -> usize| {
        ColumnBlocks::new(accounts, rows.width, |account, out| {
            for &(start, episode) in &stretches {
                let steps = episodes[episode];
                let first = (offsets[episode][account] + later(steps)) % steps;
                let row = &rows.row(account)[start..start + steps];
                out[start..start + steps - first].copy_from_slice(&row[first..]);
                out[start + steps - first..start + steps].copy_from_slice(&row[..first]);
            }
        })
    };
    let statistic = |offsets: &[Vec<usize>]| -> f64 {
        // What was thought a step before meets the news.
        let before = shifted(level, offsets, &|steps| steps - 1);
        before.total(&shifted(news, offsets, &|_| 0), &lists, &weights)
    };
    let observed = statistic(&vec![vec![0; accounts]; episodes.len()]);
    let reached = draw_all("shifting series", draws, |number| {
        let mut rng = numbered(seed, number);
        let mut offsets = |&steps: &usize| {
            let least = SMALLEST_SHIFT.min(steps / 5);
            (0..accounts).map(|_| rng.random_range(least..steps - least)).collect::<Vec<usize>>()
        };
        Ok(statistic(&episodes.iter().map(&mut offsets).collect::<Vec<_>>()) >= observed)
    })?;
    let reached = reached.into_iter().filter(|reached: &bool| *reached).count();
    Ok(Some((1 + reached) as f64 / (1 + draws) as f64))
}
