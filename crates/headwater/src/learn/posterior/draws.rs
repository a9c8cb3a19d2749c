//! Draws of several chains: convergence, moments, and what a model keeps of them.

use super::diagnostics::{effective_size, r_hat};
use crate::model::Innovation;
use crate::model::posterior::{FEWEST_EFFECTIVE_DRAWS, LARGEST_R_HAT, Posterior, PosteriorDraw, rounded};
use crate::{Error, Evidence, Model};

/// Draws of each chain before it is judged whether more would be of use.
const FEWEST_JUDGED: usize = 60;

/// What a draw of the parameters means. `W` is what the weights of the network are made of.
pub(super) struct Draw<W> {
    pub(super) weights: W,
    pub(super) adaptation: f64,
    pub(super) centrality: Vec<f64>,
    /// δL̄, the mean over the episodes, agent by agent, N × H.
    pub(super) drifts: Vec<f64>,
    pub(super) shares: Vec<f64>,
    /// Covariance of the news of each agent, agent by agent, N × H × H, and of the noise of a post, H × H.
    pub(super) news: Vec<f64>,
    pub(super) noise: Vec<f64>,
}

/// Draws by chain, with the convergence of shares and δ.
pub(super) struct Draws<W> {
    chains: Vec<Vec<Draw<W>>>,
    pub(super) effective_size: f64,
    pub(super) r_hat: f64,
}

impl<W> Draws<W> {
    /// Chains without draws.
    pub(super) fn new(chains: usize) -> Self {
        Draws { chains: (0..chains).map(|_| Vec::new()).collect(), effective_size: 0.0, r_hat: f64::INFINITY }
    }

    /// Draws that do not depend on each other.
    pub(super) fn independent(draws: Vec<Draw<W>>) -> Self {
        Draws { effective_size: draws.len() as f64, r_hat: 1.0, chains: vec![draws] }
    }

    /// One more draw of a chain.
    pub(super) fn push(&mut self, chain: usize, draw: Draw<W>) {
        self.chains[chain].push(draw);
    }

    /// Measures the convergence of shares and δ.
    pub(super) fn check(&mut self) {
        let series = |of: &dyn Fn(&Draw<W>) -> f64| -> Vec<Vec<f64>> {
            self.chains.iter().map(|chain| chain.iter().map(of).collect()).collect()
        };
        let agents = self.iter().next().map_or(0, |draw| draw.shares.len());
        let mut all: Vec<Vec<Vec<f64>>> = (0..agents).map(|agent| series(&|draw| draw.shares[agent])).collect();
        all.push(series(&|draw| draw.adaptation));
        self.effective_size = all.iter().map(|chains| effective_size(chains)).fold(f64::INFINITY, f64::min);
        self.r_hat = all.iter().map(|chains| r_hat(chains)).fold(1.0, f64::max);
    }

    /// Whether the chains agree and are long enough for intervals.
    pub(super) fn converged(&self) -> bool {
        Posterior::enough(self.effective_size, self.r_hat)
    }

    /// Whether the chains are so far from agreeing that `most` draws of each will not do: R-hat exceeds one, and the effective
    /// sample size is too small, by about as much as the draws are too few.
    pub(super) fn hopeless(&self, most: usize) -> bool {
        let count = self.chains[0].len();
        let factor = f64::max(
            (self.r_hat - 1.0) / (LARGEST_R_HAT - 1.0),
            FEWEST_EFFECTIVE_DRAWS / self.effective_size.max(f64::MIN_POSITIVE),
        );
        count >= FEWEST_JUDGED && factor * count as f64 > most as f64
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Draw<W>> {
        self.chains.iter().flatten()
    }

    pub(super) fn mean(&self, of: impl Fn(&Draw<W>) -> f64) -> f64 {
        let count: usize = self.chains.iter().map(Vec::len).sum();
        self.iter().map(of).sum::<f64>() / count as f64
    }

    pub(super) fn variance(&self, of: impl Fn(&Draw<W>) -> f64) -> f64 {
        let centre = self.mean(&of);
        self.mean(|draw| (of(draw) - centre).powi(2))
    }

    /// What is kept in a model, with at most so many draws; edges and information are the caller's.
    pub(super) fn summary(&self, most: usize) -> Posterior {
        let length = self.chains[0].len();
        let total = self.chains.len() * length;
        let every = total.div_ceil(most).max(1);
        // Draw by draw and then chain by chain, so that every chain is kept alike.
        let kept = (0..total).step_by(every).map(|place| {
            let draw = &self.chains[place % self.chains.len()][place / self.chains.len()];
            let evidence = draw.drifts.iter().map(|drift| drift / draw.adaptation).collect();
            PosteriorDraw::new(draw.adaptation, draw.centrality.clone(), evidence)
        });
        Posterior {
            chains: self.chains.len(),
            draws: length,
            effective_size: rounded(self.effective_size),
            r_hat: rounded(self.r_hat),
            normal_approximation: false,
            kept: kept.collect(),
            edges: Vec::new(),
            information: Vec::new(),
        }
    }

    /// Replaces the estimates of a model by posterior means, all but the weights.
    pub(super) fn apply(&self, model: &mut Model) -> Result<(), Error> {
        let agents = model.roster.agents().len();
        let ratios = model.evidence.ratios();
        model.adaptation = self.mean(|draw| draw.adaptation);
        // The ratio of means, because δ is in the denominator of every draw of the evidence.
        let evidence = |cell: usize| self.mean(|draw| draw.drifts[cell]) / model.adaptation;
        let evidence = (0..agents * ratios).map(evidence).collect();
        let error = |cell: usize| self.variance(|draw| draw.drifts[cell] / draw.adaptation).sqrt();
        let errors = |agent: usize| (0..ratios).map(|ratio| error(agent * ratios + ratio)).collect();
        model.diagnostics.evidence_errors = Some((0..agents).map(errors).collect());
        let news = |cell: usize| self.mean(|draw| draw.news[cell] / draw.adaptation.powi(2));
        let news = (0..agents * ratios * ratios).map(news).collect();
        model.innovation = Some(Innovation::from_cells(news, agents, ratios)?);
        model.evidence = Evidence::from_rows(evidence, agents, ratios)?;
        if let Some(smoothing) = &mut model.diagnostics.smoothing {
            let noise = |cell: usize| self.mean(|draw| draw.noise[cell]);
            smoothing.noise = (0..ratios).map(|h| (0..ratios).map(|g| noise(h * ratios + g)).collect()).collect();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_that_stay_apart_are_given_up() {
        let draw = |share: f64| Draw {
            weights: (),
            adaptation: 0.1,
            centrality: vec![],
            drifts: vec![],
            shares: vec![share],
            news: vec![],
            noise: vec![],
        };
        for (apart, given_up) in [(10.0, true), (0.0, false)] {
            let mut draws = Draws::new(4);
            for number in 0..80 {
                for chain in 0..4 {
                    let noise = (f64::from(number) * 12.9898 + chain as f64 * 78.233).sin() * 43758.5453;
                    draws.push(chain, draw(apart * chain as f64 + noise.fract()));
                }
                draws.check();
                assert!(number >= 59 || !draws.hopeless(200), "{number} draws are too few to tell");
            }
            assert_eq!(draws.hopeless(200), given_up, "{}", draws.r_hat);
            assert!(!draws.hopeless(1_000_000), "so many draws would do");
        }
    }
}
