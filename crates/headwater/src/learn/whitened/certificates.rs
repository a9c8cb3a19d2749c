//! The search for symbols of all listeners, and the conditions under which a column is certified.

use super::{Means, WhitenedParams};
use crate::learn::fit::{self, Fit};
use crate::learn::regressors::Regressors;
use crate::learn::symbols::{self, SharedProducts, Split, Transitions};
use crate::{Error, Panel, progress};
use faer::Mat;
use rayon::prelude::*;

/// Largest share of exactly repeated beliefs of a certified agent.
pub(super) const MOST_REPEATS: f64 = 0.1;

/// Listeners searched between two looks at the budget.
const AT_ONCE: usize = 64;

/// Sums of exact weights that differ by less are the same.
const SAME_SUM: f64 = 1e-9;

/// Log-beliefs that are all multiples of 10^−d for some d up to this are rounded.
const DECIMALS: i32 = 9;

/// Whether all numbers lie on a decimal grid.
fn on_a_grid(cells: &[f64]) -> bool {
    (0..=DECIMALS).any(|decimals| {
        let unit = 10f64.powi(decimals);
        let whole = |scaled: f64| (scaled - scaled.round()).abs() <= 16.0 * f64::EPSILON * scaled.abs();
        cells.iter().all(|value| whole(value * unit))
    })
}

/// For each agent the share of transitions at which its belief does not change.
pub(super) fn repeats(panel: &Panel) -> Vec<f64> {
    let (agents, width) = (panel.agents(), panel.agents() * panel.ratios());
    let mut still = vec![0usize; agents];
    let mut moved = vec![false; agents];
    for step in (1..panel.steps()).filter(|step| !panel.episodes().begins(*step)) {
        let (before, now) = panel.cells()[(step - 1) * width..(step + 1) * width].split_at(width);
        moved.fill(false);
        for (before, now) in before.chunks_exact(agents).zip(now.chunks_exact(agents)) {
            moved.iter_mut().zip(before.iter().zip(now)).for_each(|(moved, (before, now))| *moved |= before != now);
        }
        still.iter_mut().zip(&moved).for_each(|(still, moved)| *still += usize::from(!moved));
    }
    still.into_iter().map(|still| still as f64 / panel.episodes().transitions() as f64).collect()
}

/// The splits of all listeners within the budget, and how many listeners are beyond it. A split that rounding to a grid,
/// repeated beliefs or copied series could explain is not certified.
pub(crate) fn splits(
    panel: &Panel,
    means: &Means,
    design: &Regressors<'_>,
    fits: &[Fit],
    sum: f64,
    params: &WhitenedParams,
) -> Result<(Vec<Option<Split>>, usize), Error> {
    let ratios = panel.ratios();
    let data = transitions_of(panel, means);
    // Exact relations among rounded or repeated numbers are no evidence.
    let (coarse, repeats) = (on_a_grid(panel.cells()), repeats(panel));
    let order = noisiest_first(fits);
    let enough = |position: &usize| symbols::enough(&data, design.regressors(*position).len());
    let candidates: Vec<usize> = order.into_iter().filter(enough).collect();
    let large = candidates.first().is_some_and(|&position| design.regressors(position).len() > symbols::LARGE);
    let shared = (large && design.shared().is_some()).then(|| SharedProducts::new(&data, design.regressors(0)));
    let stage = progress::stage("looking for symbols", candidates.len() as u64);
    let search = |&position: &usize| {
        progress::check()?;
        let (listener, fit) = (design.listeners[position], &fits[position]);
        let speakers = design.regressors(position);
        let start = fit::constrained(&design.listener_moments(position), fit, sum, params)
            .map_or_else(|| fit.weights.clone(), |fit| fit.weights);
        let found = |mix: &Mat<f64>| symbols::split(&data, listener, speakers, shared.as_ref(), &start, mix, sum);
        let (mut split, mut work) = found(&fit::mixing(&fit.covariance));
        if ratios > 1 && !split.as_ref().is_some_and(|split| split.certified) {
            // Rounded beliefs hide the contrasts of small variance: weigh all hypotheses equally.
            let (second, more) = found(&Mat::identity(ratios, ratios));
            let clarity = |split: &Option<Split>| split.as_ref().map_or(0.0, |split| split.separation);
            split = if clarity(&second) > clarity(&split) { second } else { split };
            work += more;
        }
        if let Some(split) = &mut split {
            let mut heard = speakers.iter().zip(&split.weights).filter(|(_, weight)| weight.abs() > 1e-9);
            let copied = heard.any(|(&speaker, _)| design.copied(speaker));
            split.certified &= !coarse && !copied && repeats[listener] <= MOST_REPEATS;
        }
        stage.advance();
        progress::check().map(|()| (position, split, work))
    };
    let mut found: Vec<(usize, Option<Split>, f64)> = Vec::new();
    let (mut budget, mut waiting) = (params.budget, candidates.as_slice());
    while let Some(&next) = waiting.first() {
        // As many at a time as are sure to be affordable; the work of those before decides whether others follow.
        let least = symbols::least_work(&data, design.regressors(next).len(), shared.is_some());
        let count = (budget / least).min(AT_ONCE as f64) as usize;
        if count == 0 {
            break;
        }
        let (now, later) = waiting.split_at(count.min(waiting.len()));
        let done: Vec<(usize, Option<Split>, f64)> = now.par_iter().map(search).collect::<Result<_, Error>>()?;
        budget -= done.iter().map(|(.., work)| work).sum::<f64>();
        found.extend(done);
        waiting = later;
    }
    let left_out = waiting.len();
    let mut splits: Vec<Option<Split>> = vec![None; fits.len()];
    found.into_iter().for_each(|(position, split, _)| splits[position] = split);
    if design.someone_never_moves() {
        // The weight of an agent whose belief never changes is absorbed by the intercept, and the other weights sum to
        // less. Only columns with the largest sum stay certified, if at least two agree on it.
        let total = |split: &Split| split.weights.iter().sum::<f64>();
        let sums: Vec<f64> = splits.iter().flatten().filter(|split| split.certified).map(total).collect();
        let largest = sums.iter().copied().fold(f64::MIN, f64::max);
        let whole = params.adaptation.map_or(largest, |given| 1.0 - given);
        let same = |sum: f64| (sum - whole).abs() <= SAME_SUM;
        let agreed = params.adaptation.is_some() || sums.iter().filter(|sum| same(**sum)).count() >= 2;
        splits.iter_mut().flatten().for_each(|split| split.certified &= agreed && same(total(split)));
    }
    Ok((splits, left_out))
}

/// Estimates of δ by the splits, sorted: by the certified ones if there are any, otherwise by those with clear symbols.
pub(super) fn votes(splits: &[Option<Split>]) -> Vec<f64> {
    let exact = splits.iter().flatten().any(|split| split.certified);
    let trusted = |split: &&Split| split.certified || (!exact && split.constrained.is_some());
    let vote = |split: &Split| 1.0 - split.weights.iter().sum::<f64>();
    let mut votes: Vec<f64> = splits.iter().flatten().filter(trusted).map(vote).collect();
    votes.sort_by(f64::total_cmp);
    votes
}

fn transitions_of(panel: &Panel, means: &Means) -> Transitions {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    // The steps that follow another one of their episode.
    let later: Vec<usize> = (1..panel.steps()).filter(|step| !panel.episodes().begins(*step)).collect();
    let centred = |after: usize, mean: &[f64]| {
        let frames = panel.block(0..panel.steps());
        let mut out = Mat::zeros(later.len() * ratios, agents);
        out.par_col_iter_mut().enumerate().for_each(|(agent, series)| {
            for (row, value) in series.iter_mut().enumerate() {
                let step = later[row / ratios] - 1 + after;
                *value = frames[(agent, step * ratios + row % ratios)] - mean[row % ratios * agents + agent];
            }
        });
        out
    };
    Transitions {
        x: centred(0, &means.x),
        y: centred(1, &means.y),
        ratios,
        largest: panel.cells().iter().fold(0.0f64, |most, value| most.max(value.abs())),
    }
}

/// Positions of the listeners, the noisiest fits first.
fn noisiest_first(fits: &[Fit]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..fits.len()).collect();
    let noise = |position: usize| -> f64 {
        let covariance = &fits[position].covariance;
        (0..covariance.nrows()).map(|index| covariance[(index, index)]).sum()
    };
    order.sort_by(|&a, &b| noise(b).total_cmp(&noise(a)).then(a.cmp(&b)));
    order
}
