//! Worlds with irregular, noisy posts.
//!
//! In: a [`NoisyWorld`]. Out: a panel with silence and post counts, and its truth. Beliefs move by the paper's recursion
//! with Gaussian private evidence and two hypotheses; in each bin an agent posts a Poisson number of times at its own rate,
//! and the mean of c posts shows its log-belief with noise of standard deviation `noise`/√c.

use crate::error::require;
use crate::graph::{Graph, Rule};
use crate::model::{self, Diagnostics, Innovation, Track, TrueHypothesis};
use crate::panel::Times;
use crate::{Combination, Error, Evidence, Model, Panel, Roster};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Poisson, StandardNormal};

/// Structure of the network of a [`NoisyWorld`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionShape {
    /// Agent 0 has most listeners and strong evidence; weights are equal.
    Hub,
    /// Weights are proportional to log-normal speaker strengths.
    Strengths,
}

/// Parameters of [`noisy`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `attention` | hub | structure of the network | |
/// | `agents` | 25 | N | ≥ 2 |
/// | `edge_probability` | 0.12 | of each directed edge; 0.3 for strengths | (0, 1] |
/// | `hub_probability` | 0.75 | of an edge from the hub to an agent | (0, 1] |
/// | `self_weight` | 0.1 | of every listener, for strengths | [0, 1) |
/// | `adaptation` | 0.1 | δ | (0, 1) |
/// | `steps` | 1500 | bins | ≥ 1 |
/// | `burn_in` | 500 | bins before the first | |
/// | `rates` | 0.3 … 4 | posts per bin, uniform between | ≥ 0 |
/// | `noise` | 1.5 | standard deviation of one post | ≥ 0 |
/// | `seed` | 21 | of everything drawn | |
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the table above says it once")]
pub struct NoisyWorld {
    pub attention: AttentionShape,
    pub agents: usize,
    pub edge_probability: f64,
    pub hub_probability: f64,
    pub self_weight: f64,
    pub adaptation: f64,
    pub steps: usize,
    pub burn_in: usize,
    pub rates: (f64, f64),
    pub noise: f64,
    pub seed: u64,
}

impl Default for NoisyWorld {
    fn default() -> Self {
        NoisyWorld {
            attention: AttentionShape::Hub,
            agents: 25,
            edge_probability: 0.12,
            hub_probability: 0.75,
            self_weight: 0.1,
            adaptation: 0.1,
            steps: 1500,
            burn_in: 500,
            rates: (0.3, 4.0),
            noise: 1.5,
            seed: 21,
        }
    }
}

impl NoisyWorld {
    /// The world in which speakers have strengths.
    pub fn strengths() -> Self {
        NoisyWorld {
            attention: AttentionShape::Strengths,
            edge_probability: 0.3,
            steps: 1000,
            noise: 0.5,
            ..NoisyWorld::default()
        }
    }

    fn check(&self) -> Result<(), Error> {
        let share = |value: f64| value > 0.0 && value <= 1.0;
        model::check_adaptation(self.adaptation)?;
        require(self.agents >= 2, "agents", self.agents, "at least 2")?;
        require(share(self.edge_probability), "edge-probability", self.edge_probability, "above 0 and at most 1")?;
        require(share(self.hub_probability), "hub-probability", self.hub_probability, "above 0 and at most 1")?;
        let own = self.self_weight;
        require((0.0..1.0).contains(&own), "self-weight", own, "at least 0 and below 1")?;
        require(self.steps >= 1, "steps", self.steps, "at least 1")?;
        require(self.noise >= 0.0 && self.noise.is_finite(), "noise", self.noise, "zero or more")?;
        let (low, high) = self.rates;
        require(low > 0.0 && high >= low && high <= 1e6, "rates", format!("{low}–{high}"), "above 0, the lower first")
    }
}

/// Graphs drawn before the search ends with an error.
const DRAWS: usize = 10_000;

/// The panel of a world's posts, and its true model.
///
/// ```
/// use headwater::simulate::noisy::{NoisyWorld, noisy};
/// let (panel, truth) = noisy(&NoisyWorld { steps: 50, ..NoisyWorld::default() }).unwrap();
/// assert!(!panel.is_complete()); // some bins have no post
/// assert_eq!(headwater::influence(&truth).unwrap().ranking()[0], 0); // the hub
/// ```
pub fn noisy(params: &NoisyWorld) -> Result<(Panel, Model), Error> {
    params.check()?;
    let stream = |number: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
        rng.set_stream(number);
        rng
    };
    let (agents, adaptation) = (params.agents, params.adaptation);
    let mut rng = stream(1);
    let uniform = |rng: &mut ChaCha8Rng, low: f64, high: f64| low + (high - low) * rng.random::<f64>();
    let evidence: Vec<f64> = (0..agents)
        .map(|agent| match params.attention {
            AttentionShape::Hub => (if agent == 0 { 4.0 } else { 0.3 }) * uniform(&mut rng, 0.5, 1.5),
            AttentionShape::Strengths => 0.3 * uniform(&mut rng, 0.3, 3.0),
        })
        .collect();
    let combination = attention(params, &mut stream(2))?;
    let rates: Vec<f64> = (0..agents).map(|_| uniform(&mut rng, params.rates.0, params.rates.1)).collect();
    let (mut news, mut posting) = (stream(3), stream(4));
    let mut beliefs = vec![0.0; agents];
    let mut cells = Vec::with_capacity(params.steps * agents);
    let mut posts = Vec::with_capacity(params.steps * agents);
    for step in 0..params.burn_in + params.steps {
        let heard = combination.hear(&beliefs);
        for agent in 0..agents {
            let draw: f64 = StandardNormal.sample(&mut news);
            let private = evidence[agent] + 2.0 * (2.0 * evidence[agent]).sqrt() * draw;
            beliefs[agent] = (1.0 - adaptation) * heard[agent] + adaptation * private;
        }
        if step < params.burn_in {
            continue;
        }
        for agent in 0..agents {
            let law = Poisson::new(rates[agent]).map_err(|_| Error::Parameter {
                name: "rates",
                value: rates[agent].to_string(),
                range: "above 0 and of moderate size",
            })?;
            // Every agent posts in the first bin, so that none is without a belief.
            let count = (law.sample(&mut posting) as u32).max(u32::from(step == params.burn_in));
            let blur: f64 = StandardNormal.sample(&mut posting);
            cells.push(beliefs[agent] + params.noise * blur / f64::from(count.max(1)).sqrt());
            posts.push(count);
        }
    }
    let roster = Roster::numbered(agents, 2)?;
    let panel = Panel::new(roster.clone(), Times::Steps((0..params.steps as i64).collect()), cells, Some(posts))?;
    let truth = Model {
        roster,
        combination,
        innovation: Some(Innovation::from_cells(evidence.iter().map(|mean| 8.0 * mean).collect(), agents, 1)?),
        evidence: Evidence::from_rows(evidence, agents, 1)?,
        adaptation,
        method: crate::Method::Given,
        truth: Some(TrueHypothesis { hypothesis: 0, agreement: 1.0 }),
        likelihoods: None,
        diagnostics: Diagnostics::default(),
        track: Track::default(),
    };
    Ok((panel, truth))
}

/// Weights of a graph with one source component, in which the hub is the most central agent.
fn attention(params: &NoisyWorld, rng: &mut ChaCha8Rng) -> Result<Combination, Error> {
    let agents = params.agents;
    for _ in 0..DRAWS {
        let mut edges = Vec::new();
        for listener in 0..agents {
            for speaker in (0..agents).filter(|&speaker| speaker != listener) {
                let hub = params.attention == AttentionShape::Hub && speaker == 0;
                let probability = if hub { params.hub_probability } else { params.edge_probability };
                if rng.random::<f64>() < probability {
                    edges.push((speaker, listener));
                }
            }
        }
        let graph = Graph::new(agents, edges)?;
        let combination = match params.attention {
            AttentionShape::Hub => graph.weigh_with(Rule::Uniform, rng)?,
            AttentionShape::Strengths => {
                let strengths: Vec<f64> = (0..agents)
                    .map(|_| <StandardNormal as Distribution<f64>>::sample(&StandardNormal, rng).exp())
                    .collect();
                by_strength(&graph, &strengths, params.self_weight)?
            }
        };
        let centrality = combination.centrality()?;
        let first = |values: &[f64]| (0..agents).all(|agent| values[0] >= values[agent]);
        let clear = match params.attention {
            AttentionShape::Hub => first(&centrality.values),
            AttentionShape::Strengths => true,
        };
        if centrality.sources.len() == 1 && clear {
            return Ok(combination);
        }
    }
    Err(Error::Graph {
        reason: format!(
            "no network of {agents} agents with one clear origin in {DRAWS} draws; raise the edge probability"
        ),
    })
}

/// Weights with self-weight `own` and the rest in proportion to the strengths of the speakers.
pub fn by_strength(graph: &Graph, strengths: &[f64], own: f64) -> Result<Combination, Error> {
    let mut triplets = Vec::new();
    for (listener, speakers) in graph.speakers().iter().enumerate() {
        let total: f64 = speakers.iter().map(|&speaker| strengths[speaker]).sum();
        let kept = if speakers.is_empty() { 1.0 } else { own };
        triplets.push((listener, listener, kept));
        triplets.extend(speakers.iter().map(|&speaker| (speaker, listener, (1.0 - kept) * strengths[speaker] / total)));
    }
    Combination::from_triplets(triplets, graph.agents())
}
