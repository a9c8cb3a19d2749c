//! Circular shifts: every account's series is shifted in time by its own offset, within each episode.
//!
//! A companion of the verdict only: common news passes this test.

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
    let statistic = |offsets: &[Vec<usize>]| -> f64 {
        let mut total = 0.0;
        for (listener, speakers) in graph.speakers().iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let mut sum = 0.0;
            for &(start, episode) in &stretches {
                let (steps, offsets) = (episodes[episode], &offsets[episode]);
                let mut heard = vec![0.0; steps];
                for &speaker in speakers {
                    // heard[t] = Σ deviation[t − 1 + offset], cut where it wraps.
                    let row = &level.row(speaker)[start..start + steps];
                    let (late, early) = row.split_at((steps - 1 + offsets[speaker]) % steps);
                    heard.iter_mut().zip(early.iter().chain(late)).for_each(|(sum, value)| *sum += value);
                }
                let row = &news.row(listener)[start..start + steps];
                let (late, early) = row.split_at(offsets[listener]);
                sum += heard.iter().zip(early.iter().chain(late)).map(|(a, b)| a * b).sum::<f64>();
            }
            total += sum / speakers.len() as f64;
        }
        total
    };
    let accounts = graph.agents();
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
