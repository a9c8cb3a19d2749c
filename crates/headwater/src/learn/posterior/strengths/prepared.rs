//! The density of the posterior of speaker strengths from a panel, and where the search for its maximum starts.

use super::is_exact;
use crate::Panel;
use crate::learn::posterior::attention::Attention;
use crate::learn::posterior::filter::Audience;
use crate::learn::posterior::marginal::{Observation, Posts, Support};
use crate::learn::posterior::target::{
    Density, OF_BLEND, OF_DEVIATIONS, OF_LOG_SCALES, OF_NEWS, OF_STRENGTHS, Ratio, StrengthsTarget,
};
use crate::learn::state_space::SeriesSummary;

/// Initial δ, self-weight, and share of news in the variance of beliefs.
const FIRST: (f64, f64, f64) = (0.1, 0.2, 0.3);

/// Observations below which the mean of an agent says little about its level.
const FEW: usize = 5;

/// The observations of one log-ratio of a panel, by episode.
pub(super) fn posts(panel: &Panel, ratio: usize, steps: usize) -> Posts {
    let agents = panel.agents();
    let (mut starts, mut observations) = (vec![0], Vec::new());
    for step in 0..steps {
        for agent in 0..agents {
            let count = panel.posts(step, agent);
            if count > 0 {
                let value = panel.cells()[step * panel.width() + ratio * agents + agent];
                observations.push(Observation { agent: agent as u32, value, share: 1.0 / f64::from(count) });
            }
        }
        starts.push(observations.len());
    }
    let episodes = (0..steps).map(|step| panel.episodes().at(step) as u32).collect();
    Posts { agents, starts, observations, episodes }
}

/// A density with a start, and typical changes of its variables.
pub(crate) struct Prepared {
    pub(crate) target: StrengthsTarget,
    pub(crate) start: Vec<f64>,
    pub(crate) scales: Vec<f64>,
}

pub(crate) fn prepare(panel: &Panel, steps: usize, support: &[Vec<usize>], adaptation: Option<f64>) -> Prepared {
    let agents = panel.agents();
    let summary = SeriesSummary::from_panel(panel, steps);
    let support = Support::new(support);
    let ratios: Vec<Ratio> = (0..panel.ratios())
        .map(|ratio| {
            let variances: Vec<f64> = (0..agents).map(|agent| summary.series(ratio * agents + agent).1).collect();
            let spread = variances.iter().sum::<f64>() / agents as f64;
            // The variance of few posts says little about an agent.
            let first = variances.iter().map(|variance| variance.max(0.1 * spread)).collect();
            Ratio { posts: posts(panel, ratio, steps), first, spread }
        })
        .collect();
    let variances = [OF_STRENGTHS.variance, OF_DEVIATIONS.variance, OF_NEWS.variance];
    let observations: usize = ratios.iter().map(|ratio| ratio.posts.observations.len()).sum();
    let exact = is_exact(observations, agents);
    let audience = (!exact).then(|| Audience::new(&support));
    let target = StrengthsTarget {
        support,
        audience,
        ratios,
        variances,
        adaptation,
        log_scales: OF_LOG_SCALES,
        hierarchy: true,
    };
    let layout = target.attention();
    let mut start = vec![0.0; target.size()];
    let mut scales = vec![1.0; target.size()];
    let keep = 1.0 - adaptation.unwrap_or(FIRST.0);
    start[layout.blend()] = OF_BLEND.0;
    start[layout.keep()] = (keep / (1.0 - keep)).ln();
    let odds = Attention::new(&target.support, &start).mean_odds(&target.support);
    start[layout.own()] = (FIRST.1 / (1.0 - FIRST.1)).ln() - start[layout.blend()] * odds;
    let attention = Attention::new(&target.support, &start);
    scales[layout.strengths()].fill(0.3);
    scales[layout.deviations()].fill(0.3);
    for number in 0..panel.ratios() {
        let places = target.ratio(number);
        let ratio = &target.ratios[number];
        let spread = ratio.spread;
        let logs: Vec<f64> = ratio.first.iter().map(|variance| (FIRST.2 * variance).ln()).collect();
        start[places.mean_news()] = logs.iter().sum::<f64>() / agents as f64;
        start[places.news()].copy_from_slice(&logs);
        start[places.noise()] = summary.noise(number).ln();
        let mut said = vec![0; agents];
        ratio.posts.observations.iter().for_each(|one| said[one.agent as usize] += 1);
        let means: Vec<f64> = (0..agents).map(|agent| summary.series(number * agents + agent).0).collect();
        let counted = (0..agents).filter(|&agent| said[agent] >= FEW).map(|agent| means[agent]);
        let middle = median(counted.collect());
        for (place, cell) in places.levels().enumerate().map(|(cell, place)| (place, cell)) {
            let (episode, agent) = (cell / agents, cell % agents);
            let usual = if said[agent] >= FEW { means[agent] } else { middle };
            start[place] = own_level(panel, steps, number, episode, agent).unwrap_or(usual);
        }
        let drifts = target.drifts(&start, &attention).split_off(number * places.levels().len());
        let drifts = drifts[..places.levels().len()].to_vec();
        let centre = median(drifts.clone());
        let off = median(drifts.iter().map(|drift| (drift - centre).abs()).collect());
        start[places.drift_centre()] = centre;
        start[places.drift_scale()] = off.max(1e-3 * spread.sqrt()).ln();
        scales[places.levels()].fill(0.1 * spread.sqrt());
        scales[places.drift_centre()] = 0.1 * spread.sqrt();
        scales[places.news()].fill(0.2);
    }
    Prepared { target, start, scales }
}

/// The mean of an agent in one of several episodes, where it speaks often enough in it.
fn own_level(panel: &Panel, steps: usize, ratio: usize, episode: usize, agent: usize) -> Option<f64> {
    if panel.episodes().is_single() {
        return None;
    }
    let range = panel.episodes().range(episode);
    let spoken: Vec<usize> = (range.start..range.end.min(steps)).filter(|&step| panel.posts(step, agent) > 0).collect();
    let value = |step: &usize| panel.frame(*step)[(agent, ratio)];
    (spoken.len() >= FEW).then(|| spoken.iter().map(value).sum::<f64>() / spoken.len() as f64)
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
