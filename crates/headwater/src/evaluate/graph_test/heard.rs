//! Some speaker is heard: the test for graphs that cannot be rewired, such as a star.
//!
//! In stretches of time each speaker gets a robust score, the median over listeners of how their news follow the speaker's
//! deviation. A speaker who is heard is ahead in stretch after stretch; under the null the scores of a stretch are exchanged
//! between speakers. The graph is not used.

use super::rows::{Rows, dot};
use crate::Error;
use crate::evaluate::draws::{draw_all, numbered};
use rand::seq::{SliceRandom, index};
use rayon::prelude::*;

/// Steps of a stretch, and stretches at most.
const STRETCH: usize = 30;
const MOST_STRETCHES: usize = 20;

/// Stretches that the test needs: exchanging the scores of one or two says nothing.
const FEWEST_STRETCHES: usize = 4;

/// Listeners at most; more change a median little.
const MOST_LISTENERS: usize = 400;

/// Scores beyond so many robust standard deviations count as that many.
const CLIPPED: f64 = 4.0;

/// Standard deviation of normal numbers over their median absolute deviation.
const NORMAL_SPREAD: f64 = 1.4826;

/// The largest total over speakers, who has it, and the same of each exchange.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) observed: f64,
    pub(super) speaker: usize,
    pub(super) null: Vec<f64>,
}

/// `episodes` are the lengths of the parts of each row, repeated for each log-ratio. None where there are too few stretches.
pub(super) fn heard(
    before: &Rows,
    after: &Rows,
    episodes: &[usize],
    draws: usize,
    seed: u64,
) -> Result<Option<Heard>, Error> {
    let per_ratio: usize = episodes.iter().sum();
    let mut stretches = Vec::new();
    let mut start = 0;
    for &steps in episodes {
        let pieces = (steps / STRETCH).clamp(1, MOST_STRETCHES);
        stretches.extend((0..pieces).map(|piece| start + piece * steps / pieces..start + (piece + 1) * steps / pieces));
        start += steps;
    }
    stretches.retain(|stretch| stretch.len() >= 2);
    if stretches.len() < FEWEST_STRETCHES {
        return Ok(None);
    }
    let (accounts, ratios) = (before.accounts(), before.width / per_ratio);
    let mut listeners: Vec<usize> = (0..accounts).collect();
    if accounts > MOST_LISTENERS {
        listeners = index::sample(&mut numbered(seed, u64::MAX), accounts, MOST_LISTENERS).into_vec();
        listeners.sort_unstable();
    }
    let mut scores = Vec::with_capacity(stretches.len());
    for stretch in &stretches {
        // The stretch of every ratio, centred and of length one.
        let piece = |row: &[f64]| {
            let mut out = Vec::with_capacity(stretch.len() * ratios);
            for ratio in 0..ratios {
                let part = &row[ratio * per_ratio + stretch.start..ratio * per_ratio + stretch.end];
                let mean = part.iter().sum::<f64>() / part.len() as f64;
                let from = out.len();
                out.extend(part.iter().map(|value| value - mean));
                let length = dot(&out[from..], &out[from..]).sqrt();
                out[from..].iter_mut().for_each(|value| *value /= length.max(f64::MIN_POSITIVE));
            }
            out
        };
        let heard: Vec<Vec<f64>> = listeners.iter().map(|&listener| piece(after.row(listener))).collect();
        let one = |speaker: usize| {
            let said = piece(before.row(speaker));
            let others = listeners.iter().zip(&heard).filter(|(listener, _)| **listener != speaker);
            median(others.map(|(_, heard)| dot(&said, heard)).collect())
        };
        let raw: Vec<f64> = (0..accounts).into_par_iter().map(one).collect();
        scores.push(raw.into_iter().map(Some).collect::<Vec<Option<f64>>>());
    }
    exchanged(&scores, draws, seed).map(Some)
}

/// Standardises the scores of each stretch, adds them up for each speaker, and compares the largest sum with those of scores
/// exchanged between the speakers of a stretch. A speaker may be absent from a stretch.
pub(super) fn exchanged(scores: &[Vec<Option<f64>>], draws: usize, seed: u64) -> Result<Heard, Error> {
    let speakers = scores.first().map_or(0, Vec::len);
    // For each stretch who speaks in it, and their scores.
    let stretches: Vec<(Vec<usize>, Vec<f64>)> = scores
        .iter()
        .map(|scores| {
            let present: Vec<usize> = (0..speakers).filter(|&speaker| scores[speaker].is_some()).collect();
            let raw: Vec<f64> = scores.iter().flatten().copied().collect();
            let centre = median(raw.clone());
            let spread = NORMAL_SPREAD * median(raw.iter().map(|score| (score - centre).abs()).collect());
            let standard =
                |score: &f64| if spread > 0.0 { ((score - centre) / spread).clamp(-CLIPPED, CLIPPED) } else { 0.0 };
            (present, raw.iter().map(standard).collect())
        })
        .collect();
    let scale = 1.0 / (stretches.len() as f64).sqrt();
    let largest = |totals: &[f64]| {
        let best = |best: (usize, f64), (speaker, total): (usize, &f64)| {
            if *total > best.1 { (speaker, *total) } else { best }
        };
        totals.iter().enumerate().fold((0, f64::NEG_INFINITY), best)
    };
    let totals = |stretches: &[(Vec<usize>, Vec<f64>)]| -> Vec<f64> {
        let mut totals = vec![0.0; speakers];
        for (present, scores) in stretches {
            present.iter().zip(scores).for_each(|(&speaker, score)| totals[speaker] += score);
        }
        totals.into_iter().map(|total| scale * total).collect()
    };
    let (speaker, observed) = largest(&totals(&stretches));
    let null = draw_all("exchanging speakers", draws, |number| {
        let (mut rng, mut mixed) = (numbered(seed, number), stretches.clone());
        mixed.iter_mut().for_each(|(_, scores)| scores.shuffle(&mut rng));
        Ok(largest(&totals(&mixed)).1)
    })?;
    Ok(Heard { observed, speaker, null })
}

/// The median; the mean of the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { 0.5 * (values[half - 1] + values[half]) }
}
