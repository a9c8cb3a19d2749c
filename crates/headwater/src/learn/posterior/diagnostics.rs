//! Convergence of chains: split R-hat and effective sample size.

/// Potential scale reduction of chains cut in halves (Gelman et al. 2013); 1 where nothing varies.
///
/// `chains` hold draws of one number, all of the same length.
pub fn r_hat(chains: &[Vec<f64>]) -> f64 {
    let (within, between, length) = moments(chains);
    if within <= 0.0 || is_constant(chains) {
        return 1.0;
    }
    ((length - 1.0) / length + between / within).sqrt()
}

/// Whether all draws are the same number, such as a given δ: their variance is rounding.
fn is_constant(chains: &[Vec<f64>]) -> bool {
    let mut all = chains.iter().flatten();
    all.next().is_none_or(|first| all.all(|value| value == first))
}

/// Effective number of independent draws: Geyer's initial monotone sequence on the autocorrelations of all half chains
/// together (Vehtari et al. 2021).
pub fn effective_size(chains: &[Vec<f64>]) -> f64 {
    let halves = halves(chains);
    let (count, length) = (halves.len(), halves.first().map_or(0, |half| half.len()));
    let total = (count * length) as f64;
    let (within, between, n) = moments(chains);
    if within <= 0.0 || length < 4 || is_constant(chains) {
        return total;
    }
    let pooled = (n - 1.0) / n * within + between;
    let autocovariance = |lag: usize| -> f64 {
        let of = |half: &[f64]| {
            let mean = half.iter().sum::<f64>() / length as f64;
            half[..length - lag].iter().zip(&half[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n
        };
        halves.iter().map(|half| of(half)).sum::<f64>() / count as f64
    };
    let correlation = |lag: usize| 1.0 - (within * (n - 1.0) / n - autocovariance(lag)) / pooled;
    let mut sum = -1.0;
    let mut last = f64::INFINITY;
    let mut lag = 0;
    while lag + 1 < length {
        let first = if lag == 0 { 1.0 } else { correlation(lag) };
        let pair = (first + correlation(lag + 1)).min(last);
        if pair <= 0.0 {
            break;
        }
        sum += 2.0 * pair;
        last = pair;
        lag += 2;
    }
    (total / sum.max(1.0 / total.log10().max(1.0))).min(total * total.log10().max(1.0))
}

fn halves(chains: &[Vec<f64>]) -> Vec<&[f64]> {
    let half = chains.first().map_or(0, Vec::len) / 2;
    chains.iter().flat_map(|chain| [&chain[..half], &chain[chain.len() - half..]]).collect()
}

/// Mean variance within half chains, variance of their means, and their length.
fn moments(chains: &[Vec<f64>]) -> (f64, f64, f64) {
    let halves = halves(chains);
    let n = halves.first().map_or(0, |half| half.len()) as f64;
    let means: Vec<f64> = halves.iter().map(|half| half.iter().sum::<f64>() / n).collect();
    let within = halves
        .iter()
        .zip(&means)
        .map(|(half, mean)| half.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0))
        .sum::<f64>()
        / halves.len() as f64;
    let centre = means.iter().sum::<f64>() / means.len() as f64;
    let between = means.iter().map(|mean| (mean - centre).powi(2)).sum::<f64>() / (means.len() as f64 - 1.0);
    (within, between, n)
}
