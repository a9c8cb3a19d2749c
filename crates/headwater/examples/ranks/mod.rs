//! Ranks of values, for studies that compare rankings.

/// The place of every value, 1 for the largest.
pub(crate) fn positions(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let mut positions = vec![0; values.len()];
    order.iter().enumerate().for_each(|(position, &agent)| positions[agent] = position + 1);
    positions
}

/// Spearman's rank correlation of values without ties.
pub(crate) fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let distance: f64 = positions(a).iter().zip(positions(b)).map(|(a, b)| (*a as f64 - b as f64).powi(2)).sum();
    let count = a.len() as f64;
    1.0 - 6.0 * distance / (count * (count * count - 1.0))
}
