//! The hypothesis on which a network settles.

use crate::Panel;

/// The hypothesis the network settles on, and how many agents share it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TrueHypothesis {
    /// Index of θ*.
    pub hypothesis: usize,
    /// Share of the agents that believe it.
    pub agreement: f64,
}

impl TrueHypothesis {
    /// A hypothesis by its index, and the share of the agents that believe it.
    pub fn new(hypothesis: usize, agreement: f64) -> Self {
        TrueHypothesis { hypothesis, agreement }
    }
}

/// The hypothesis the network settles on: the largest log belief averaged over agents and the last min(T, 3/δ) steps of each
/// episode, with the share of agents whose own average agrees. Note P8.
pub fn settled(panel: &Panel, adaptation: f64) -> TrueHypothesis {
    let means = recent_means(panel, adaptation);
    let network: Vec<f64> = (0..panel.ratios()).map(|ratio| means.iter().map(|mean| mean[ratio]).sum()).collect();
    let hypothesis = likeliest(&network);
    TrueHypothesis { hypothesis, agreement: agreeing(&means, hypothesis) }
}

/// The share of agents whose own beliefs, averaged over the last min(T, 3/δ) steps, favour a hypothesis.
pub fn agreement(panel: &Panel, adaptation: f64, hypothesis: usize) -> f64 {
    agreeing(&recent_means(panel, adaptation), hypothesis)
}

fn agreeing(means: &[Vec<f64>], hypothesis: usize) -> f64 {
    means.iter().filter(|mean| likeliest(mean) == hypothesis).count() as f64 / means.len().max(1) as f64
}

/// Mean log-ratios over the last min(T, 3/δ) steps of each episode, of each agent that speaks in them.
fn recent_means(panel: &Panel, adaptation: f64) -> Vec<Vec<f64>> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let span = ((3.0 / adaptation).ceil() as usize).max(1);
    let mut sums = vec![vec![0.0; ratios]; agents];
    let mut spoken = vec![0usize; agents];
    for step in panel.episodes().ranges().flat_map(|range| range.end - span.min(range.len())..range.end) {
        let frame = panel.frame(step);
        for agent in (0..agents).filter(|&agent| panel.posts(step, agent) > 0) {
            spoken[agent] += 1;
            sums[agent].iter_mut().enumerate().for_each(|(ratio, sum)| *sum += frame[(agent, ratio)]);
        }
    }
    let heard = sums.into_iter().zip(spoken).filter(|(_, spoken)| *spoken > 0);
    heard.map(|(sum, spoken)| sum.iter().map(|sum| sum / spoken as f64).collect()).collect()
}

/// The hypothesis with the largest belief: a log-ratio is log ψ(θ_0)/ψ(θ_j), so the smallest one, or the reference
/// when none is negative.
pub fn likeliest(log_ratios: &[f64]) -> usize {
    let mut best = (0, 0.0);
    for (ratio, &value) in log_ratios.iter().enumerate() {
        if value < best.1 {
            best = (ratio + 1, value);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roster;

    #[test]
    fn the_network_settles_on_the_largest_mean_belief() {
        let roster = Roster::numbered(3, 3).unwrap();
        // Frames in column order: ratio 1 of three agents, then ratio 2.
        let frame = [-1.0, -1.0, 0.5, 2.0, 2.0, 0.1];
        let panel = Panel::complete(roster, frame.repeat(4)).unwrap();
        let truth = settled(&panel, 0.5);
        assert_eq!(truth.hypothesis, 1);
        assert!((truth.agreement - 2.0 / 3.0).abs() < 1e-15);
    }
}
