//! Crowds: many accounts on a sparse graph, with speaker strengths and a given share of silence.
//!
//! In: a [`Crowd`]. Out: a panel and the graph. Listeners follow a Poisson number of accounts, drawn by popularity; beliefs move by
//! the paper's recursion with Gaussian evidence, as in [`noisy`](super::noisy).

use super::noisy::by_strength;
use crate::error::require;
use crate::graph::Graph;
use crate::model;
use crate::panel::Times;
use crate::{Combination, Error, Panel, Roster};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};

/// Parameters of [`crowd`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `agents` | 100 | N | ≥ 2 |
/// | `degree` | 20 | accounts that a listener follows, on average | above 0 |
/// | `steps` | 300 | T | ≥ 1 |
/// | `adaptation` | 0.1 | δ | (0, 1) |
/// | `self_weight` | 0.1 | of every listener | [0, 1) |
/// | `silence` | 0.7 | share of silent cells | (0, 1) |
/// | `noise` | 0.5 | standard deviation of one post | ≥ 0 |
/// | `seed` | 21 | of everything drawn | |
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the table above says it once")]
pub struct Crowd {
    pub agents: usize,
    pub degree: f64,
    pub steps: usize,
    pub adaptation: f64,
    pub self_weight: f64,
    pub silence: f64,
    pub noise: f64,
    pub seed: u64,
}

impl Default for Crowd {
    fn default() -> Self {
        Crowd {
            agents: 100,
            degree: 20.0,
            steps: 300,
            adaptation: 0.1,
            self_weight: 0.1,
            silence: 0.7,
            noise: 0.5,
            seed: 21,
        }
    }
}

/// Steps before the first.
const BURN_IN: usize = 300;

/// The panel of a crowd's posts, its graph, and the weights along it.
///
/// ```
/// use headwater::simulate::crowd::{Crowd, crowd};
/// let (panel, graph, _) = crowd(&Crowd { steps: 100, ..Crowd::default() })?;
/// let silent = panel.silence().iter().sum::<usize>() as f64 / (100.0 * 100.0);
/// assert!((silent - 0.7).abs() < 0.05 && graph.edges().count() > 1500);
/// # Ok::<(), headwater::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for a parameter out of its range.
pub fn crowd(params: &Crowd) -> Result<(Panel, Graph, Combination), Error> {
    model::check_adaptation(params.adaptation)?;
    require(params.agents >= 2, "agents", params.agents, "at least 2")?;
    require(params.degree > 0.0 && params.degree <= 1e6, "degree", params.degree, "above 0")?;
    require(params.steps >= 1, "steps", params.steps, "at least 1")?;
    require((0.0..1.0).contains(&params.self_weight), "self-weight", params.self_weight, "at least 0 and below 1")?;
    require(params.silence > 0.0 && params.silence < 1.0, "silence", params.silence, "above 0 and below 1")?;
    require(params.noise >= 0.0 && params.noise.is_finite(), "noise", params.noise, "zero or more")?;
    let stream = |number: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
        rng.set_stream(number);
        rng
    };
    let wrong = |name, value: f64| Error::Parameter { name, value: value.to_string(), range: "of moderate size" };
    let (agents, mut rng) = (params.agents, stream(1));
    let mut popularity: Vec<f64> = (0..agents).map(|_| normal(&mut rng).exp()).collect();
    for agent in 1..agents {
        popularity[agent] += popularity[agent - 1];
    }
    let total = popularity[agents - 1];
    let followed = Poisson::new(params.degree).map_err(|_| wrong("degree", params.degree))?;
    let mut edges = Vec::new();
    for listener in 0..agents {
        let before = edges.len();
        for _ in 0..(followed.sample(&mut rng) as usize).max(1) {
            let place = total * rng.random::<f64>();
            let speaker = popularity.partition_point(|sum| *sum < place).min(agents - 1);
            if speaker != listener {
                edges.push((speaker, listener));
            }
        }
        if edges.len() == before {
            edges.push(((listener + 1) % agents, listener));
        }
    }
    let graph = Graph::new(agents, edges)?;
    let strengths: Vec<f64> = (0..agents).map(|_| normal(&mut rng).exp()).collect();
    let combination = by_strength(&graph, &strengths, params.self_weight)?;
    let evidence: Vec<f64> = (0..agents).map(|_| 0.3 * (0.3 + 2.7 * rng.random::<f64>())).collect();
    let activity = Gamma::new(1.5, 1.0).map_err(|_| wrong("silence", params.silence))?;
    let mut rates: Vec<f64> = (0..agents).map(|_| f64::max(activity.sample(&mut rng), 1e-6)).collect();
    let (mut low, mut high) = (1e-4f64, 1e4f64);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        let silent = rates.iter().map(|rate| (-rate * middle).exp()).sum::<f64>() / agents as f64;
        if silent > params.silence { low = middle } else { high = middle }
    }
    rates.iter_mut().for_each(|rate| *rate *= low);
    let (mut news, mut posting) = (stream(2), stream(3));
    let mut beliefs = vec![0.0; agents];
    let (mut cells, mut posts) = (Vec::new(), Vec::new());
    for step in 0..BURN_IN + params.steps {
        let heard = combination.hear(&beliefs);
        for agent in 0..agents {
            let private = evidence[agent] + 2.0 * (2.0 * evidence[agent]).sqrt() * normal(&mut news);
            beliefs[agent] = (1.0 - params.adaptation) * heard[agent] + params.adaptation * private;
        }
        let Some(step) = step.checked_sub(BURN_IN) else { continue };
        for agent in 0..agents {
            let law = Poisson::new(rates[agent]).map_err(|_| wrong("silence", params.silence))?;
            let count = (law.sample(&mut posting) as u32).max(u32::from(step == 0));
            cells.push(beliefs[agent] + params.noise * normal(&mut posting) / f64::from(count.max(1)).sqrt());
            posts.push(count);
        }
    }
    let times = Times::Steps((0..params.steps as i64).collect());
    Ok((Panel::new(Roster::numbered(agents, 2)?, times, cells, Some(posts))?, graph, combination))
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}
