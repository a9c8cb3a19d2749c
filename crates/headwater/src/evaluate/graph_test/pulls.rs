//! Towards whom do opinions move? One speaker at a time, in conversations of a few steps.
//!
//! In: a panel. Out: for each speaker how much better the changes of the others are explained with a pull towards it
//! ([`Pull`]), and a score of each speaker in each episode.
//!
//! A change is y = b₀(m − x) + b(s − x) + e with x the listener's own opinion, m the mean of all and s the speaker's, all one
//! step before, b₀ and b not negative, and e Student with two degrees of freedom: a few people answer something absurd.

use crate::Panel;
use rayon::prelude::*;

/// Degrees of freedom of the errors.
const FREEDOM: f64 = 2.0;

/// Rounds of reweighting.
const ROUNDS: usize = 40;

/// Squared scale of the errors, relative to the mean squared change, at least.
const SMALLEST_SCALE: f64 = 1e-12;

/// Changes of others that a score needs.
const FEWEST_CHANGES: usize = 10;

/// What is known of the pull of one speaker on the others.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Pull {
    /// Share of the distance to the speaker by which the others move in a step, beside the mean of all.
    pub weight: f64,
    /// Gain of log-likelihood over the mean of all alone; zero or more.
    pub gain: f64,
}

/// The pull of every speaker on all others, over all episodes and log-ratios; zero for a speaker with too few changes of others
/// to compare with. Cost: about 100 operations for each speaker, listener, step and round.
///
/// ```
/// use headwater::{Panel, Roster, evaluate::graph_test::pulls};
/// // Everybody moves half way towards agent 2, give or take, who thinks something else each time.
/// let mut opinions: Vec<f64> = (0..12).map(|agent| f64::from(agent * agent % 11)).collect();
/// let mut cells = Vec::new();
/// for hub in [9.0, 0.0, 7.0, 2.0] {
///     opinions[2] = hub;
///     cells.extend(&opinions);
///     opinions.iter_mut().zip([-0.1, 0.0, 0.1].iter().cycle()).for_each(|(x, error)| *x += 0.5 * (hub - *x) + error);
/// }
/// let panel = Panel::complete(Roster::numbered(12, 2)?, cells)?;
/// let found = pulls(&panel);
/// let first = (0..12).max_by(|a, b| found[*a].gain.total_cmp(&found[*b].gain)).unwrap();
/// assert_eq!(first, 2);
/// assert!((found[2].weight - 0.5).abs() < 0.1);
/// # Ok::<(), headwater::Error>(())
/// ```
pub fn pulls(panel: &Panel) -> Vec<Pull> {
    let episodes: Vec<usize> = (0..panel.episodes().count()).collect();
    let one = |speaker: usize| {
        let mut pull = Pull { weight: 0.0, gain: 0.0 };
        for ratio in 0..panel.ratios() {
            let Changes { changes, to_mean, to_speaker } = Changes::new(panel, ratio, speaker, &episodes);
            if changes.len() < FEWEST_CHANGES {
                continue;
            }
            let alone = Fit::not_negative(&changes, &[&to_mean]);
            let both = Fit::not_negative(&changes, &[&to_mean, &to_speaker]);
            let gain = (both.log_likelihood - alone.log_likelihood).max(0.0);
            pull.weight += both.weights[1] / panel.ratios() as f64;
            pull.gain += gain;
        }
        pull
    };
    (0..panel.agents()).into_par_iter().map(one).collect()
}

/// A score of every speaker in an episode: the signed root of the gain of log-likelihood by a pull towards it alone. The mean of
/// all is left out: with it a step or two have too few changes. It pulls towards all speakers alike.
pub(super) fn scores(panel: &Panel, episode: usize) -> Vec<f64> {
    let one = |speaker: usize| {
        let mut total = 0.0;
        for ratio in 0..panel.ratios() {
            let Changes { changes, to_speaker, .. } = Changes::new(panel, ratio, speaker, &[episode]);
            if changes.len() < FEWEST_CHANGES {
                continue;
            }
            let (none, one) = (Fit::free(&changes, None), Fit::free(&changes, Some(&to_speaker)));
            let gain = (one.log_likelihood - none.log_likelihood).max(0.0);
            total += gain.sqrt() * one.weights[0].signum();
        }
        total
    };
    (0..panel.agents()).into_par_iter().map(one).collect()
}

/// The changes of all but one agent, and what may explain them.
struct Changes {
    changes: Vec<f64>,
    to_mean: Vec<f64>,
    to_speaker: Vec<f64>,
}

impl Changes {
    /// Of the steps at which the speaker has said something.
    fn new(panel: &Panel, ratio: usize, speaker: usize, episodes: &[usize]) -> Self {
        let agents = panel.agents();
        let mut out = Changes { changes: Vec::new(), to_mean: Vec::new(), to_speaker: Vec::new() };
        for &episode in episodes {
            let range = panel.episodes().range(episode);
            for step in range.start..range.end - 1 {
                if panel.posts(step, speaker) == 0 {
                    continue;
                }
                let (now, next) = (panel.frame(step), panel.frame(step + 1));
                let spoken: Vec<usize> = (0..agents).filter(|&agent| panel.posts(step, agent) > 0).collect();
                let mean = spoken.iter().map(|&agent| now[(agent, ratio)]).sum::<f64>() / spoken.len() as f64;
                for &agent in spoken.iter().filter(|agent| **agent != speaker && panel.posts(step + 1, **agent) > 0) {
                    let own = now[(agent, ratio)];
                    out.changes.push(next[(agent, ratio)] - own);
                    out.to_mean.push(mean - own);
                    out.to_speaker.push(now[(speaker, ratio)] - own);
                }
            }
        }
        out
    }
}

/// A regression with Student errors.
#[derive(Debug, Clone, Copy)]
struct Fit {
    log_likelihood: f64,
    weights: [f64; 2],
}

impl Fit {
    /// Of one or two regressors, with weights that are not negative.
    fn not_negative(changes: &[f64], regressors: &[&[f64]]) -> Self {
        Fit::reweighted(changes, regressors, |[[aa, ab], [_, bb]], [a, b]| {
            let single = |square: f64, product: f64| if square > 0.0 { (product / square).max(0.0) } else { 0.0 };
            if regressors.len() == 1 {
                return [single(aa, a), 0.0];
            }
            let determinant = aa * bb - ab * ab;
            let both = [(bb * a - ab * b) / determinant, (aa * b - ab * a) / determinant];
            if determinant > SMALLEST_SCALE * aa * bb && both.iter().all(|weight| *weight >= 0.0) {
                return both;
            }
            // On the border one of them is zero: the one that explains more stays.
            let (first, second) = (single(aa, a), single(bb, b));
            if first * a >= second * b { [first, 0.0] } else { [0.0, second] }
        })
    }

    /// Of one regressor or none.
    fn free(changes: &[f64], regressor: Option<&[f64]>) -> Self {
        let regressors: Vec<&[f64]> = regressor.into_iter().collect();
        Fit::reweighted(changes, &regressors, |[[square, _], _], [product, _]| {
            [if square > 0.0 { product / square } else { 0.0 }, 0.0]
        })
    }

    /// Expectation-maximisation: an error e of scale s² weighs (ν+1)/(ν + e²/s²).
    fn reweighted(changes: &[f64], regressors: &[&[f64]], solve: impl Fn([[f64; 2]; 2], [f64; 2]) -> [f64; 2]) -> Self {
        let count = changes.len() as f64;
        let typical = changes.iter().map(|change| change * change).sum::<f64>() / count;
        if typical <= 0.0 {
            return Fit { log_likelihood: 0.0, weights: [0.0; 2] };
        }
        let (mut precision, mut scale, mut weights) = (vec![1.0; changes.len()], typical, [0.0; 2]);
        let mut errors = changes.to_vec();
        for _ in 0..ROUNDS {
            let (mut gram, mut linear) = ([[0.0; 2]; 2], [0.0; 2]);
            for (one, regressor) in regressors.iter().enumerate() {
                for (other, second) in regressors.iter().enumerate() {
                    gram[one][other] =
                        precision.iter().zip(*regressor).zip(*second).map(|((w, a), b)| w * a * b).sum::<f64>();
                }
                linear[one] = precision.iter().zip(*regressor).zip(changes).map(|((w, a), y)| w * a * y).sum::<f64>();
            }
            weights = solve(gram, linear);
            for (place, error) in errors.iter_mut().enumerate() {
                let explained: f64 =
                    regressors.iter().zip(weights).map(|(values, weight)| weight * values[place]).sum();
                *error = changes[place] - explained;
            }
            let squares: f64 = precision.iter().zip(&errors).map(|(w, e)| w * e * e).sum();
            scale = (squares / count).max(SMALLEST_SCALE * typical);
            precision.iter_mut().zip(&errors).for_each(|(w, e)| *w = (FREEDOM + 1.0) / (FREEDOM + e * e / scale));
        }
        let tails: f64 = errors.iter().map(|e| (e * e / (FREEDOM * scale)).ln_1p()).sum();
        Fit { log_likelihood: -0.5 * count * scale.ln() - 0.5 * (FREEDOM + 1.0) * tails, weights }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minus the log-likelihood, by its definition.
    fn loss(changes: &[f64], regressors: [&[f64]; 2], weights: [f64; 2], scale: f64) -> f64 {
        let one = |place: usize| {
            let error = changes[place] - weights[0] * regressors[0][place] - weights[1] * regressors[1][place];
            0.5 * scale.ln() + 1.5 * (1.0 + error * error / (2.0 * scale)).ln()
        };
        (0..changes.len()).map(one).sum()
    }

    #[test]
    fn the_fit_is_the_maximum_of_the_likelihood() {
        let a: Vec<f64> = (0..40).map(|place| f64::from(place * 7 % 13) - 6.0).collect();
        let b: Vec<f64> = (0..40).map(|place| f64::from(place * 5 % 11) - 4.0).collect();
        let noise: Vec<f64> = (0..40).map(|place| (f64::from(place) * 1.7).sin().powi(3) * 3.0).collect();
        let changes: Vec<f64> = (0..40).map(|place| 0.3 * a[place] + 0.5 * b[place] + noise[place]).collect();
        let fit = Fit::not_negative(&changes, &[&a, &b]);
        let grid = |weights: [f64; 2]| {
            (1..4000).map(|part| loss(&changes, [&a, &b], weights, f64::from(part) * 1e-3)).fold(f64::MAX, f64::min)
        };
        let best = grid(fit.weights);
        assert!((best + fit.log_likelihood).abs() < 1e-3, "{best} {}", fit.log_likelihood);
        for (one, other) in [(0.01, 0.0), (-0.01, 0.0), (0.0, 0.01), (0.0, -0.01)] {
            assert!(grid([fit.weights[0] + one, fit.weights[1] + other]) > best - 1e-9);
        }
        // A pull away is none.
        let away: Vec<f64> = changes.iter().zip(&b).map(|(change, b)| change - b).collect();
        let fit = Fit::not_negative(&away, &[&a, &b]);
        assert!(fit.weights[1] == 0.0 && fit.weights[0] > 0.0, "{fit:?}");
        assert!(Fit::free(&away, Some(&b)).weights[0] < 0.0);
        assert_eq!(Fit::free(&[0.0; 12], Some(&b[..12])).log_likelihood, 0.0, "nobody moves");
    }
}
