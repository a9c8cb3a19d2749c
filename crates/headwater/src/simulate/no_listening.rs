//! Worlds in which nobody listens, yet much moves together: what a test of listening must not be fooled by.
//!
//! In: a [`NoListening`]. Out: a panel and the graph of who follows whom, along which nothing travels. Each account is an AR(1)
//! process of its own; part of its news may be shared with all accounts, with its group, or with accounts at nearby places, and
//! those who share news may follow each other more.

use crate::error::require;
use crate::graph::Graph;
use crate::panel::Times;
use crate::{Error, Panel, Roster};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Poisson, StandardNormal, StudentT};
use std::f64::consts::TAU;

/// Who shares news in a world of [`NoListening`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedNews {
    /// Nobody.
    Nobody,
    /// All accounts; the graph is drawn without regard to it.
    All,
    /// The accounts of each of so many groups, who mostly follow each other.
    Groups(usize),
    /// Accounts by their places on a circle: the nearer, the more news they share and the more they follow each other.
    Places,
}

/// When shared news are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// By all at once.
    Together,
    /// By the most-followed fifth at once, by the others a step later.
    HubsFirst,
    /// By four grades of audience, one step after another, the most-followed first.
    Graded,
}

/// What goes with the number of followers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TiedToAudience {
    /// Nothing.
    Nothing,
    /// Posts per step.
    Activity,
    /// Posts per step, variance of news and persistence.
    Everything,
}

/// A disturbance of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// None.
    None,
    /// Those of high opinion post more.
    SilenceByOpinion,
    /// News have Student's t distribution with 3 degrees of freedom.
    HeavyTails,
    /// Opinions and posts have a common weekly cycle.
    WeeklyCycle,
    /// Each account has a trend of its own.
    OwnDrift,
    /// All accounts have a trend, some more than others.
    CommonDrift,
}

/// Parameters of [`no_listening`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `agents` | 60 | N | ≥ 4 |
/// | `steps` | 400 | T | ≥ 1 |
/// | `degree` | 8 | accounts that an account follows, on average | above 0 |
/// | `mutual` | no | every edge in both directions | |
/// | `shared` | nobody | who shares news | |
/// | `share` | 0 | part of the variance of news that is shared | [0, 1] |
/// | `reading` | together | when shared news are read | |
/// | `tied` | nothing | what goes with the number of followers | |
/// | `tie` | 1 | how strongly variance and persistence do: at 1 news spread 0.5–2 times the usual and persistence is 0.80–0.97 | [0, 1] |
/// | `disturbance` | none | a disturbance of the series | |
/// | `rates` | 0.3 … 4 | posts per step, uniform between | ≥ 0 |
/// | `noise` | 0.5 | standard deviation of one post | ≥ 0 |
/// | `seed` | 21 | of everything drawn | |
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the table above says it once")]
pub struct NoListening {
    pub agents: usize,
    pub steps: usize,
    pub degree: f64,
    pub mutual: bool,
    pub shared: SharedNews,
    pub share: f64,
    pub reading: Reading,
    pub tied: TiedToAudience,
    pub tie: f64,
    pub disturbance: Disturbance,
    pub rates: (f64, f64),
    pub noise: f64,
    pub seed: u64,
}

impl Default for NoListening {
    fn default() -> Self {
        NoListening {
            agents: 60,
            steps: 400,
            degree: 8.0,
            mutual: false,
            shared: SharedNews::Nobody,
            share: 0.0,
            reading: Reading::Together,
            tied: TiedToAudience::Nothing,
            tie: 1.0,
            disturbance: Disturbance::None,
            rates: (0.3, 4.0),
            noise: 0.5,
            seed: 21,
        }
    }
}

/// Persistence of an opinion from step to step.
const PERSISTENCE: f64 = 0.9;

/// Spread of the logarithm of popularity.
const POPULARITY: f64 = 0.7;

/// How much less accounts of different groups follow each other.
const ACROSS: f64 = 0.1;

/// Distance on the circle over which following fades.
const NEARBY: f64 = 0.08;

/// Waves around the circle that news at places consist of.
const WAVES: usize = 3;

/// Steps before the first.
const BURN_IN: usize = 200;

/// Latest reading of shared news, in steps.
const LATEST: usize = 3;

/// The panel of a world in which nobody listens, and its graph.
///
/// ```
/// use headwater::simulate::no_listening::{NoListening, SharedNews, no_listening};
/// let world = NoListening { shared: SharedNews::All, share: 0.3, steps: 50, ..NoListening::default() };
/// let (panel, graph) = no_listening(&world)?;
/// assert_eq!((panel.agents(), graph.agents()), (60, 60));
/// # Ok::<(), headwater::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for a parameter out of its range.
pub fn no_listening(world: &NoListening) -> Result<(Panel, Graph), Error> {
    let (low, high) = world.rates;
    require(world.agents >= 4, "agents", world.agents, "at least 4")?;
    require(world.steps >= 1, "steps", world.steps, "at least 1")?;
    require(
        world.degree > 0.0 && world.degree < world.agents as f64,
        "degree",
        world.degree,
        "above 0 and below the agents",
    )?;
    require((0.0..=1.0).contains(&world.share), "share", world.share, "0 to 1")?;
    require((0.0..=1.0).contains(&world.tie), "tie", world.tie, "0 to 1")?;
    require(world.noise >= 0.0 && world.noise.is_finite(), "noise", world.noise, "zero or more")?;
    require(low > 0.0 && high >= low && high <= 1e6, "rates", format!("{low}–{high}"), "above 0, the lower first")?;
    let stream = |number: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(world.seed);
        rng.set_stream(number);
        rng
    };
    let mut rng = stream(1);
    let places: Vec<f64> = match world.shared {
        SharedNews::Groups(groups) => (0..world.agents).map(|agent| (agent % groups.max(1)) as f64).collect(),
        _ => (0..world.agents).map(|_| rng.random::<f64>()).collect(),
    };
    let graph = graph(world, &places, &mut stream(2))?;
    let panel = panel(world, &places, &graph, &mut rng, &mut stream(3), &mut stream(4))?;
    Ok((panel, graph))
}

fn graph(world: &NoListening, places: &[f64], rng: &mut ChaCha8Rng) -> Result<Graph, Error> {
    let agents = world.agents;
    let popularity: Vec<f64> = (0..agents).map(|_| (POPULARITY * normal(rng)).exp()).collect();
    let alike = |one: usize, other: usize| match world.shared {
        SharedNews::Nobody | SharedNews::All => 1.0,
        SharedNews::Groups(_) if places[one] == places[other] => 1.0,
        SharedNews::Groups(_) => ACROSS,
        SharedNews::Places => {
            let apart = (places[one] - places[other]).abs();
            (-0.5 * (apart.min(1.0 - apart) / NEARBY).powi(2)).exp()
        }
    };
    let inclination = |speaker: usize, listener: usize| popularity[speaker] * alike(speaker, listener);
    let pairs: Vec<(usize, usize)> = (0..agents)
        .flat_map(|speaker| (0..agents).map(move |listener| (speaker, listener)))
        .filter(|(speaker, listener)| speaker != listener && (!world.mutual || speaker < listener))
        .collect();
    let wanted = world.degree * agents as f64 / if world.mutual { 2.0 } else { 1.0 };
    // The factor with which probabilities, cut at 0.9, add up to the edges wanted.
    let (mut low, mut high) = (1e-9f64, 1e9f64);
    let probability = |factor: f64, (speaker, listener): (usize, usize)| {
        let both = if world.mutual {
            (inclination(speaker, listener) * inclination(listener, speaker)).sqrt()
        } else {
            inclination(speaker, listener)
        };
        (factor * both).min(0.9)
    };
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        let sum: f64 = pairs.iter().map(|&pair| probability(middle, pair)).sum();
        if sum > wanted { high = middle } else { low = middle }
    }
    let chosen: Vec<(usize, usize)> =
        pairs.into_iter().filter(|&pair| rng.random::<f64>() < probability(low, pair)).collect();
    let back = chosen.iter().filter(|_| world.mutual).map(|&(one, other)| (other, one));
    Graph::new(agents, chosen.iter().copied().chain(back).collect::<Vec<_>>())
}

fn panel(
    world: &NoListening,
    places: &[f64],
    graph: &Graph,
    rng: &mut ChaCha8Rng,
    news: &mut ChaCha8Rng,
    posting: &mut ChaCha8Rng,
) -> Result<Panel, Error> {
    let (agents, followers) = (world.agents, graph.followers());
    // Rank by audience, 0 the least followed, as a share.
    let mut order: Vec<usize> = (0..agents).collect();
    order.sort_by_key(|&agent| (followers[agent], agent));
    let mut audience = vec![0.0; agents];
    order.iter().enumerate().for_each(|(rank, &agent)| audience[agent] = (rank as f64 + 0.5) / agents as f64);
    let everything = world.tied == TiedToAudience::Everything;
    let (low, high) = world.rates;
    let mut rates = Vec::with_capacity(agents);
    let mut spreads = Vec::with_capacity(agents);
    let mut persistence = Vec::with_capacity(agents);
    let mut drift = Vec::with_capacity(agents);
    for agent in 0..agents {
        let (uniform, size): (f64, f64) = (rng.random(), rng.random());
        let tied = if world.tied == TiedToAudience::Nothing { uniform } else { audience[agent] };
        rates.push(low + (high - low) * tied);
        let size = if everything { 1.25 + 1.5 * world.tie * (audience[agent] - 0.5) } else { (0.5 + size).sqrt() };
        spreads.push(0.155 * size);
        persistence.push(if everything { 0.885 + 0.17 * world.tie * (audience[agent] - 0.5) } else { PERSISTENCE });
        drift.push(match world.disturbance {
            Disturbance::OwnDrift => normal(rng),
            Disturbance::CommonDrift => 0.5 + rng.random::<f64>(),
            _ => 0.0,
        });
    }
    let delay: Vec<usize> = audience
        .iter()
        .map(|&audience| match world.reading {
            Reading::Together => 0,
            Reading::HubsFirst => usize::from(audience < 0.8),
            Reading::Graded => LATEST - ((audience * (LATEST + 1) as f64) as usize).min(LATEST),
        })
        .collect();
    let heavy = StudentT::new(3.0).map_err(|_| Error::Parameter {
        name: "degrees-of-freedom",
        value: "3".to_owned(),
        range: "above 0",
    })?;
    let factors = match world.shared {
        SharedNews::Nobody | SharedNews::All => 1,
        SharedNews::Groups(groups) => groups.max(1),
        SharedNews::Places => 2 * WAVES,
    };
    let loading = |agent: usize, factors: &[f64]| match world.shared {
        SharedNews::Nobody | SharedNews::All => factors[0],
        SharedNews::Groups(_) => factors[places[agent] as usize],
        SharedNews::Places => {
            let waves = (0..WAVES).map(|wave| {
                let angle = TAU * (wave + 1) as f64 * places[agent];
                angle.cos() * factors[2 * wave] + angle.sin() * factors[2 * wave + 1]
            });
            waves.sum::<f64>() / (WAVES as f64).sqrt()
        }
    };
    let (own, shared) = match world.shared {
        SharedNews::Nobody => (1.0, 0.0),
        _ => ((1.0 - world.share).sqrt(), world.share.sqrt()),
    };
    let mut past: Vec<Vec<f64>> = vec![vec![0.0; factors]; LATEST + 1];
    let mut opinions = vec![0.0; agents];
    let (mut cells, mut posts) = (Vec::new(), Vec::new());
    for step in 0..BURN_IN + world.steps {
        past.rotate_right(1);
        past[0] = (0..factors).map(|_| normal(news)).collect();
        for agent in 0..agents {
            let private = match world.disturbance {
                // Of variance one.
                Disturbance::HeavyTails => heavy.sample(news) / 3f64.sqrt(),
                _ => normal(news),
            };
            let heard = own * private + shared * loading(agent, &past[delay[agent]]);
            opinions[agent] = persistence[agent] * opinions[agent] + spreads[agent] * heard;
        }
        let Some(step) = step.checked_sub(BURN_IN) else { continue };
        let time = step as f64 / world.steps as f64;
        let week = if world.disturbance == Disturbance::WeeklyCycle { (TAU * step as f64 / 7.0).sin() } else { 0.0 };
        for agent in 0..agents {
            let opinion = opinions[agent] + drift[agent] * time + 0.3 * week;
            let rate = match world.disturbance {
                Disturbance::SilenceByOpinion => rates[agent] * opinion.clamp(-2.0, 2.0).exp(),
                Disturbance::WeeklyCycle => rates[agent] * (1.0 + 0.5 * week),
                _ => rates[agent],
            };
            let law = Poisson::new(rate).map_err(|_| Error::Parameter {
                name: "rates",
                value: rate.to_string(),
                range: "above 0 and of moderate size",
            })?;
            let count = (law.sample(posting) as u32).max(u32::from(step == 0));
            cells.push(opinion + world.noise * normal(posting) / f64::from(count.max(1)).sqrt());
            posts.push(count);
        }
    }
    let times = Times::Steps((0..world.steps as i64).collect());
    Panel::new(Roster::numbered(agents, 2)?, times, cells, Some(posts))
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}
