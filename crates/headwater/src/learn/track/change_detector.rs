//! Change detection for one listener: tests whether its residuals still follow the fitted distribution.
//!
//! In: the fit of a listener, then its residuals one by one. Out: the onset of a change. Residuals of a certified listener
//! take one of a few values (atoms); those of an identified one are zero along some contrasts; all others have a known
//! covariance.

use crate::learn::symbols::Split;
use crate::learn::{fit, private_likelihoods};
use faer::Mat;
use serde::{Deserialize, Serialize};

/// Distance from the nearest atom, relative to the largest belief, at which a residual is another one.
const OFF: f64 = 1e-10;

/// The same in rounding errors, times the condition number of the weights.
const ROUNDINGS: f64 = 64.0;

/// Factor over the largest earlier value at which a noise-free contrast is no rounding error.
const LOUD: f64 = 30.0;

/// Nats of evidence for another state, or against a listener's errors, that count as a change: once in a million steps
/// by chance.
pub(crate) const EVIDENCE: f64 = 16.0;

/// Growth of the error variance for which the CUSUM is optimal.
const GROWTH: f64 = 2.0;

/// Squared errors are capped at this multiple of their expectation, so that one outlier is no change.
const OUTLIER: f64 = 9.0;

/// Largest alphabet.
const MOST_ATOMS: usize = 16;

/// Distribution of the next residual of a listener, and the test of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ChangeDetector {
    /// One of these atoms, with their counts in the present state.
    PrivateLikelihoods { atoms: Vec<Vec<f64>>, counts: Vec<usize>, blur: f64, jumps: Jumps, late: Late },
    /// Fixed along some directions.
    Contrasts {
        #[serde(with = "crate::learn::saved")]
        quiet: Mat<f64>,
        centre: Vec<f64>,
        limit: f64,
        jumps: Jumps,
    },
    /// Of known mean and covariance: a CUSUM of the squared, whitened errors, and the step at which it was last zero.
    Errors {
        #[serde(with = "crate::learn::saved")]
        whitener: Mat<f64>,
        centre: Vec<f64>,
        limit: f64,
        doubt: f64,
        burden: f64,
        onset: usize,
    },
    /// Not yet estimated.
    Open,
}

/// Atoms first seen after the fit.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Late {
    /// Number of atoms of the fit; later ones follow.
    known: usize,
    /// Whether each atom of the fit occurred often enough for the alphabet to be complete.
    complete: bool,
    /// Consecutive steps with later atoms.
    run: usize,
}

/// Occurrences of each symbol for a complete alphabet.
const SEEN_OFTEN: usize = 3;

/// Consecutive steps with later atoms that count as a change: the former symbols no longer occur.
const LATE_RUN: usize = 8;

/// Which of the last few residuals were no known atom.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Jumps(u8);

impl Jumps {
    /// Records a step. Returns the onset of a change when two of three jumped, or four of five with an incomplete alphabet.
    fn note(&mut self, jumped: bool, complete: bool, step: usize) -> Option<usize> {
        let (last, enough) = if complete { (0b111, 2) } else { (0b11111, 4) };
        self.0 = (self.0 << 1 | u8::from(jumped)) & 0b11111;
        let recent = self.0 & last;
        (recent.count_ones() >= enough).then(|| step - recent.ilog2() as usize)
    }
}

impl ChangeDetector {
    /// For a certified listener: the atoms are its past residuals.
    pub(crate) fn atoms(split: &Split, past: &[Vec<f64>], largest: f64) -> Self {
        let mut counts = split.counts();
        let ratios = past.first().map_or(0, Vec::len);
        let mut atoms = vec![vec![0.0; ratios]; counts.len()];
        for (residual, &symbol) in past.iter().zip(&split.symbols) {
            let share = 1.0 / counts[symbol] as f64;
            atoms[symbol].iter_mut().zip(residual).for_each(|(atom, value)| *atom += share * value);
        }
        // Two symbols that coincide to rounding are one: an agent that ever saw only one.
        let mut position = 1;
        while position < atoms.len() {
            match (0..position).find(|&earlier| apart(&atoms[earlier], &atoms[position]) <= OFF * largest) {
                Some(earlier) => {
                    atoms.remove(position);
                    counts[earlier] += counts.remove(position);
                }
                None => position += 1,
            }
        }
        let complete = counts.len() > 1 && counts.iter().all(|count| *count >= SEEN_OFTEN);
        let late = Late { known: atoms.len(), complete, run: 0 };
        ChangeDetector::PrivateLikelihoods {
            atoms,
            counts,
            blur: ROUNDINGS * f64::EPSILON * split.condition,
            jumps: Jumps::default(),
            late,
        }
    }

    /// For a listener with noise-free contrasts: those of the smallest variance.
    pub(crate) fn contrasts(
        covariance: &Mat<f64>,
        quiet: usize,
        mean: &[f64],
        past: &[Vec<f64>],
        largest: f64,
    ) -> Option<Self> {
        let (_, vectors) = fit::eigen(covariance)?;
        let quiet = vectors.subcols(0, quiet).to_owned();
        let usual = past.iter().map(|row| largest_along(&quiet, row)).fold(0.0, f64::max);
        let limit = LOUD * usual + OFF * largest;
        Some(ChangeDetector::Contrasts { quiet, centre: mean.to_vec(), limit, jumps: Jumps::default() })
    }

    /// For a listener with noise in all directions.
    pub(crate) fn errors(
        covariance: &Mat<f64>,
        mean: &[f64],
        past: &[Vec<f64>],
        (transitions, speakers): (f64, usize),
        agents: usize,
    ) -> Option<Self> {
        // Residuals of a fit are smaller than errors on unseen frames. The quietest directions are fitted closest, with
        // as many equations as there are steps.
        let spent = speakers as f64 / transitions;
        let inflated = (1.0 + spent) / (1.0 - spent);
        let whitener = fit::powered(covariance, |value, largest| {
            1.0 / (inflated * value.max(1e-12 * largest)).max(f64::MIN_POSITIVE).sqrt()
        });
        let doubts: Vec<f64> = past.iter().map(|row| doubt(&whitener, row)).collect();
        Some(ChangeDetector::Errors {
            limit: (EVIDENCE + (agents as f64).ln()) / exponent(&doubts)?,
            whitener,
            centre: mean.to_vec(),
            doubt: 0.0,
            burden: 2.0 * spent,
            onset: 0,
        })
    }

    /// Whether residuals are exactly the private observations.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self, ChangeDetector::PrivateLikelihoods { .. } | ChangeDetector::Contrasts { .. })
    }

    /// Tests the next residual. Returns the onset of a change.
    pub(crate) fn step(&mut self, residual: &[f64], largest: f64, step: usize) -> Option<usize> {
        match self {
            ChangeDetector::Open => None,
            ChangeDetector::PrivateLikelihoods { atoms, counts, blur, jumps, late } => {
                let off = OFF.max(*blur) * largest;
                let nearest = atoms.iter().position(|atom| apart(atom, residual) <= off);
                match nearest {
                    Some(symbol) => counts[symbol] += 1,
                    // A symbol never seen before, or a change: the next steps will tell.
                    None if atoms.len() < MOST_ATOMS => {
                        atoms.push(residual.to_vec());
                        counts.push(1);
                    }
                    None => {}
                }
                late.run = if nearest.is_some_and(|symbol| symbol < late.known) { 0 } else { late.run + 1 };
                late.complete |= counts[..late.known].iter().sum::<usize>() >= LATE_RUN * LATE_RUN;
                // Private observations of another kind come with symbols of their own. One alone may be what an agent that
                // had ever seen a single symbol sees in another state.
                let others = late.run >= LATE_RUN && (late.known > 1 || atoms.len() > late.known + 1);
                jumps.note(nearest.is_none(), late.complete, step).or_else(|| others.then(|| step + 1 - late.run))
            }
            ChangeDetector::Contrasts { quiet, centre, limit, jumps } => {
                let centred: Vec<f64> = residual.iter().zip(centre).map(|(value, centre)| value - *centre).collect();
                jumps.note(largest_along(quiet, &centred) > *limit, true, step)
            }
            ChangeDetector::Errors { whitener, centre, limit, doubt, onset, .. } => {
                let centred: Vec<f64> = residual.iter().zip(centre).map(|(value, centre)| value - *centre).collect();
                if *doubt == 0.0 {
                    *onset = step;
                }
                *doubt = (*doubt + self::doubt(whitener, &centred)).max(0.0);
                (*doubt > *limit).then_some(*onset)
            }
        }
    }

    /// The private observation model, where the residuals identify it.
    pub(crate) fn recover(&self, adaptation: f64) -> Option<private_likelihoods::PrivateLikelihoods> {
        let ChangeDetector::PrivateLikelihoods { atoms, counts, .. } = self else { return None };
        let ratios = atoms.iter().map(|atom| atom.iter().map(|value| value / adaptation).collect()).collect();
        (atoms.len() > 1).then(|| private_likelihoods::recover(ratios, counts.clone())).flatten()
    }
}

/// Largest difference of two rows.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |most, (a, b)| most.max((a - b).abs()))
}

/// Largest component of a row along some directions.
fn largest_along(directions: &Mat<f64>, row: &[f64]) -> f64 {
    let along =
        |direction: usize| -> f64 { row.iter().zip(directions.col_as_slice(direction)).map(|(a, b)| a * b).sum() };
    (0..directions.ncols()).map(|direction| along(direction).abs()).fold(0.0, f64::max)
}

/// Log-likelihood ratio of errors with larger variance against errors of the fitted variance, for one row.
fn doubt(whitener: &Mat<f64>, row: &[f64]) -> f64 {
    let size = row.len();
    let white = |to: usize| -> f64 { (0..size).map(|from| row[from] * whitener[(from, to)]).sum() };
    let square: f64 = (0..size).map(|to| white(to).powi(2)).sum();
    let square = square.min(OUTLIER * size as f64);
    square / 2.0 * (1.0 - 1.0 / GROWTH) - size as f64 / 2.0 * GROWTH.ln()
}

/// The r > 0 with mean e^{r·d} = 1: the rate at which the probability of a large CUSUM decays. `None` when the mean of the
/// steps is not negative.
fn exponent(steps: &[f64]) -> Option<f64> {
    let count = steps.len() as f64;
    let excess = |r: f64| steps.iter().map(|d| (r * d).exp()).sum::<f64>() / count - 1.0;
    if steps.is_empty() || steps.iter().sum::<f64>() >= 0.0 {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    if excess(high) < 0.0 {
        return Some(high); // Tails lighter than assumed earn no lower limit.
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if excess(middle) < 0.0 { low = middle } else { high = middle }
    }
    (low > 0.05).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_symbol_is_no_change_and_two_jumps_are() {
        let fresh = || ChangeDetector::PrivateLikelihoods {
            atoms: vec![vec![0.1], vec![-0.1]],
            counts: vec![5, 5],
            blur: 0.0,
            jumps: Jumps::default(),
            late: Late { known: 2, complete: true, run: 0 },
        };
        let mut detector = fresh();
        let seen = [0.1, 0.3, -0.1, 0.3, 0.3, 0.1];
        assert!(seen.iter().enumerate().all(|(step, value)| detector.step(&[*value], 1.0, step).is_none()));
        assert!(matches!(&detector, ChangeDetector::PrivateLikelihoods { counts, .. } if *counts == [7, 6, 3]));
        let mut detector = fresh();
        let onsets: Vec<Option<usize>> =
            [0.1, 0.3, 0.1, 0.4].iter().enumerate().map(|(step, v)| detector.step(&[*v], 1.0, step)).collect();
        assert_eq!(onsets, [None, None, None, Some(1)]);
        // Other symbols, never two of them new within three steps: the old ones are gone.
        let mut detector = fresh();
        let other = [0.3, 0.3, 0.3, -0.4, 0.3, -0.4, 0.3, 0.3];
        let onsets: Vec<Option<usize>> =
            other.iter().enumerate().map(|(step, v)| detector.step(&[*v], 1.0, step)).collect();
        assert_eq!((&onsets[..7], onsets[7]), (&[None; 7][..], Some(0)));
    }

    #[test]
    fn the_exponent_makes_a_martingale() {
        // ±1 with probabilities 1/4 and 3/4: e^r/4 + 3e^{-r}/4 = 1 at r = ln 3; lighter than assumed counts as 1.
        assert_eq!(exponent(&[1.0, -1.0, -1.0, -1.0]), Some(1.0));
        // ±2: at half of that.
        assert!((exponent(&[2.0, -2.0, -2.0, -2.0]).unwrap() - 3f64.ln() / 2.0).abs() < 1e-9);
        assert_eq!(exponent(&[1.0, -0.5]), None);
        assert_eq!(exponent(&[]), None);
    }
}
