//! Intervals of influence shares and ranks: a block bootstrap.
//!
//! In: a model and the panel it was learned from. Out: [`BootstrapDraw`]s by number, and [`Intervals`] from many of them.

use super::draws::{draw_many, numbered};
use crate::influence::signed_shares;
use crate::learn::Refit;
use crate::learn::blocks::{Blocks, Centre};
use crate::learn::moments::{Moments, affordable};
use crate::learn::regressors::DistinctAgents;
use crate::learn::state_space::{Resampling, StateSpaceParams};
use crate::learn::whitened::{self, Estimate, WhitenedParams};
use crate::model::{Posterior, PosteriorDraw};
use crate::{Error, Model, Panel};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Block bootstrap of the influence shares, refitting with the parameters recorded in the model.
///
/// The panel is cut into blocks, of several episodes each for itself, or where they are many or short into whole episodes; a
/// resample draws as many of them with replacement, adds up their moments and fits
/// those, without a second pass over the data. Certified columns of the model are exact and do not vary. Where the method
/// of the model cannot be refitted to moments ([`crate::learn::refit_note`]), the whitened regression is.
///
/// With the state-space model the moments are those of the smoothed beliefs, which are conditional on the fitted model
/// and so vary too little: a few resamples are smoothed and fitted from the posts, and all deviations are scaled by how
/// much more those vary.
#[derive(Debug)]
pub struct Bootstrap<'a> {
    model: &'a Model,
    truth: usize,
    resampled: Resampled,
    seed: u64,
}

/// What is resampled: the moments of blocks of the panel, or the smoothed beliefs.
#[derive(Debug)]
enum Resampled {
    Observed { distinct: DistinctAgents, params: WhitenedParams, blocks: Blocks, moments: Vec<Moments> },
    Smoothed { resampling: Box<Resampling>, shares: Vec<f64>, middle: Vec<f64>, factor: f64 },
}

/// Resamples that are smoothed and fitted anew.
const REFITS: u64 = 8;

/// Their numbers, apart from those of the resamples.
const FIRST_REFIT: u64 = 1 << 40;

/// One resample: signed influence share and rank of every agent. A function of its number and the seed, so that draws can be
/// saved as they come and continued later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootstrapDraw {
    shares: Vec<f64>,
    ranks: Vec<usize>,
}

/// 90 % bootstrap intervals of each agent, in the order of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Intervals {
    /// 90 % interval of the signed influence share ([`crate::influence::Influence::signed_share`]).
    pub share: Vec<(f64, f64)>,
    /// 90 % interval of the rank.
    pub rank: Vec<(usize, usize)>,
    /// Probability of being among the top k.
    pub top: Vec<f64>,
}

impl Intervals {
    /// Intervals of shares and ranks, and the probability of being among the top k, one of each per agent.
    pub fn new(share: Vec<(f64, f64)>, rank: Vec<(usize, usize)>, top: Vec<f64>) -> Self {
        Intervals { share, rank, top }
    }
}

/// Blocks a bootstrap cuts the panel into: long enough to keep serial dependence, many enough to vary.
const BLOCKS: usize = 30;

impl<'a> Bootstrap<'a> {
    /// Prepares resampling of the panel a model was learned from.
    ///
    /// Errors: other agents or hypotheses than the model's, fewer than 11 steps, fewer than four short episodes, more moments
    /// than memory holds.
    pub fn new(panel: &Panel, model: &'a Model, seed: u64) -> Result<Self, Error> {
        same_agents(panel, model)?;
        let refit = Refit::from_model(model);
        let panel = &*refit.filled(panel);
        let cut = Blocks::to_resample(panel, BLOCKS)?;
        affordable(panel.width(), cut.len() + 1, "resample fewer agents")?;
        let truth = crate::influence(model)?.truth;
        let resampled = match refit {
            Refit::Whitened(params) => {
                panel.check_presence()?;
                let block = |range: &Range<usize>| {
                    let mut moments = Moments::empty(panel.agents(), panel.ratios());
                    moments.push_frames(&panel.cells()[(range.start - 1) * panel.width()..range.end * panel.width()]);
                    moments
                };
                Resampled::Observed {
                    distinct: DistinctAgents::from_panel(panel),
                    params: WhitenedParams { symbols: false, ..params },
                    moments: cut.ranges.iter().map(block).collect(),
                    blocks: cut,
                }
            }
            Refit::StateSpace(params) => stretched(panel, model, truth, &params, cut, seed)?,
        };
        Ok(Bootstrap { model, truth, resampled, seed })
    }

    /// The resample with this number.
    pub fn draw(&self, number: u64) -> Result<BootstrapDraw, Error> {
        let mut rng = numbered(self.seed, number);
        let estimate = match &self.resampled {
            Resampled::Observed { distinct, params, blocks, moments } => {
                let sum = blocks.sum(moments, &blocks.draw(&mut rng), Centre::ObservedEpisode)?;
                whitened::estimate(&sum, distinct, params, Some(self.model))?
            }
            Resampled::Smoothed { resampling, .. } => resampling.draw(&resampling.blocks().draw(&mut rng))?,
        };
        let mut shares = shares(&estimate, self.truth)?;
        if let Resampled::Smoothed { shares: known, middle, factor, .. } = &self.resampled {
            let off = shares.iter().zip(middle).map(|(share, middle)| factor * (share - middle));
            shares = known.iter().zip(off).map(|(known, off)| known + off).collect();
        }
        Ok(BootstrapDraw::new(shares))
    }

    /// Intervals from many resamples.
    pub fn intervals(&self, draws: &[BootstrapDraw], top: usize) -> Result<Intervals, Error> {
        Ok(Intervals::from_draws(draws, top))
    }
}

impl Intervals {
    fn from_draws(draws: &[BootstrapDraw], top: usize) -> Self {
        let agents = draws.first().map_or(0, |draw| draw.shares.len());
        let mut intervals = Intervals { share: Vec::new(), rank: Vec::new(), top: Vec::new() };
        for agent in 0..agents {
            let mut shares: Vec<f64> = draws.iter().map(|draw| draw.shares[agent]).collect();
            let mut ranks: Vec<usize> = draws.iter().map(|draw| draw.ranks[agent]).collect();
            let within = ranks.iter().filter(|rank| **rank <= top).count();
            shares.sort_by(f64::total_cmp);
            ranks.sort_unstable();
            let (low, high) = ends(draws.len());
            // Scaled deviations can leave the range of a share.
            intervals.share.push((shares[low].clamp(-1.0, 1.0), shares[high].clamp(-1.0, 1.0)));
            intervals.rank.push((ranks[low], ranks[high]));
            intervals.top.push(within as f64 / draws.len() as f64);
        }
        intervals
    }
}

impl Posterior {
    /// Signed shares and ranks of every draw, under the hypothesis with the number `truth` of `ratios` + 1.
    fn draws(&self, truth: usize, ratios: usize) -> Vec<BootstrapDraw> {
        let of = |draw: &PosteriorDraw| {
            let against = |agent: usize, other: usize| match other {
                0 => 0.0,
                other => draw.evidence[agent * ratios + other - 1],
            };
            BootstrapDraw::new(shares_by(&draw.centrality, ratios, truth, against))
        };
        self.kept.iter().map(of).collect()
    }

    /// 90 % credible intervals of shares and ranks under the hypothesis with the number `truth` of `ratios` + 1, and the
    /// probabilities of being among the top `top`.
    pub fn intervals(&self, truth: usize, ratios: usize, top: usize) -> Intervals {
        Intervals::from_draws(&self.draws(truth, ratios), top)
    }

    /// Probabilities that each of these agents but the last has a larger share than the one after it.
    pub fn probabilities_ahead(&self, truth: usize, ratios: usize, agents: &[usize]) -> Vec<f64> {
        let draws = self.draws(truth, ratios);
        let ahead = |pair: &[usize]| draws.iter().filter(|draw| draw.shares[pair[0]] > draw.shares[pair[1]]).count();
        agents.windows(2).map(|pair| ahead(pair) as f64 / draws.len().max(1) as f64).collect()
    }
}

impl BootstrapDraw {
    fn new(shares: Vec<f64>) -> Self {
        let mut ranks = vec![0; shares.len()];
        by_share(&shares).into_iter().enumerate().for_each(|(position, agent)| ranks[agent] = position + 1);
        BootstrapDraw { shares, ranks }
    }
}

/// Intervals from this many resamples of the panel a model was learned from. `top` is how many agents the top has.
pub fn intervals(panel: &Panel, model: &Model, count: u64, top: usize, seed: u64) -> Result<Intervals, Error> {
    let bootstrap = Bootstrap::new(panel, model, seed)?;
    let draws =
        draw_many(RESAMPLING, 0..count, Vec::new(), |_, _| Ok::<(), Error>(()), |number| bootstrap.draw(number))?;
    bootstrap.intervals(&draws, top)
}

/// Name of the progress stage.
pub const RESAMPLING: &str = "resampling";

/// Resampling of smoothed beliefs, and by how much more refits from the posts vary than draws from it.
fn stretched(
    panel: &Panel,
    model: &Model,
    truth: usize,
    params: &StateSpaceParams,
    cut: Blocks,
    seed: u64,
) -> Result<Resampled, Error> {
    let resampling = Resampling::new(panel, model, params, cut)?;
    let all: Vec<usize> = (0..resampling.blocks().len()).collect();
    let known = shares(&Estimate { combination: model.combination.clone(), evidence: model.evidence.clone() }, truth)?;
    let middle = shares(&resampling.draw(&all)?, truth)?;
    let pairs = (0..REFITS).into_par_iter().map(|number| {
        let mut rng = numbered(seed, FIRST_REFIT + number);
        let numbers = resampling.blocks().draw(&mut rng);
        let quick = shares(&resampling.draw(&numbers)?, truth)?;
        let anew = match resampling.refit(panel, &numbers) {
            // Some agent is silent or constant in these blocks.
            Err(Error::NeverSpeaks { .. } | Error::Undefined { .. }) => return Ok((0.0, 0.0)),
            other => shares(&other?, truth)?,
        };
        Ok((squared_distance(&quick, &middle), squared_distance(&anew, &known)))
    });
    let pairs: Vec<(f64, f64)> = pairs.collect::<Result<_, Error>>()?;
    let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let (quick, anew) = (sum(|pair| pair.0), sum(|pair| pair.1));
    let factor = if quick > 0.0 { (anew / quick).sqrt().max(1.0) } else { 1.0 };
    Ok(Resampled::Smoothed { resampling: Box::new(resampling), shares: known, middle, factor })
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Positions of the 5 % and 95 % points among sorted draws.
fn ends(count: usize) -> (usize, usize) {
    let last = count.saturating_sub(1) as f64;
    ((0.05 * last).floor() as usize, (0.95 * last).ceil() as usize)
}

/// Signed influence shares of an estimate for a given truth; influence as it is where all are zero.
fn shares(estimate: &Estimate, truth: usize) -> Result<Vec<f64>, Error> {
    let centrality = estimate.combination.centrality()?.values;
    let evidence = &estimate.evidence;
    Ok(shares_by(&centrality, evidence.ratios(), truth, |agent, other| evidence.against(agent, other)))
}

/// The same from the centralities, and the evidence of an agent against each hypothesis.
fn shares_by(centrality: &[f64], ratios: usize, truth: usize, against: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let known = |agent: usize| -> f64 { (0..=ratios).map(|other| against(agent, other) - against(agent, truth)).sum() };
    let influence: Vec<f64> = centrality.iter().enumerate().map(|(agent, u)| u * known(agent)).collect();
    signed_shares(&influence).unwrap_or(influence)
}

fn by_share(shares: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]).then(a.cmp(&b)));
    order
}

fn same_agents(panel: &Panel, model: &Model) -> Result<(), Error> {
    if panel.roster() == &model.roster {
        return Ok(());
    }
    Err(Error::Shape {
        what: "panel",
        met: format!("{} agents, {} log-ratios, or other names", panel.agents(), panel.ratios()),
        wanted: "the agents and hypotheses of the model, in its order".into(),
    })
}
