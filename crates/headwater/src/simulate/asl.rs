//! Adaptive social learning: a world that runs the paper's recursion.

mod changes;

pub use changes::WorldEvent;

use super::WorldParams;
use super::likelihoods::{draw_likelihoods, moments};
use super::network::draw_graph;
use crate::error::require;
use crate::graph::{Disconnected, Graph, Rule};
use crate::model::{Diagnostics, Innovation, Likelihood, Track, TrueHypothesis};
use crate::panel::{LARGEST_LOG_RATIO, Times};
use crate::{Combination, Error, Evidence, Model, Panel, Roster, progress};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Streams of the seeded generator, one per purpose.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Graph = 1,
    Weights,
    Likelihoods,
    Observations,
    Silence,
    Changes,
}

pub(super) fn stream(seed: u64, purpose: Purpose) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(purpose as u64);
    rng
}

/// A running world.
#[derive(Debug, Clone)]
pub struct World {
    params: WorldParams,
    roster: Roster,
    graph: Graph,
    combination: Combination,
    likelihoods: Vec<Likelihood>,
    truth: usize,
    /// Λ_i, N × H in column order.
    log_ratios: Vec<f64>,
    /// log ψ, agent by agent, for the belief-space form.
    log_beliefs: Vec<f64>,
    /// log L_k(ζ|θ) of the latest observations, agent by agent.
    observed: Vec<f64>,
    heard: Vec<f64>,
    rng: Streams,
    step: usize,
    events: Vec<WorldEvent>,
}

#[derive(Debug, Clone)]
struct Streams {
    weights: ChaCha8Rng,
    likelihoods: ChaCha8Rng,
    observations: ChaCha8Rng,
    silence: ChaCha8Rng,
    changes: ChaCha8Rng,
}

impl World {
    /// A world on a random network, after its burn-in.
    pub fn new(params: WorldParams) -> Result<Self, Error> {
        params.check()?;
        let graph = draw_graph(&params)?;
        let mut weights = stream(params.seed, Purpose::Weights);
        let combination = graph.weigh_with(params.rule, &mut weights)?;
        let roster = Roster::numbered(params.agents, params.hypotheses)?;
        World::start(params, roster, graph, combination, weights)
    }

    /// A world on given edges (speaker, listener, weight). Weights are used as given when there are any, otherwise the
    /// rule of the parameters applies; `agents` are the names, in order.
    pub fn on_graph(
        mut params: WorldParams,
        agents: Vec<String>,
        edges: &[(usize, usize, Option<f64>)],
    ) -> Result<Self, Error> {
        params.agents = agents.len();
        params.check()?;
        let hypotheses = (0..params.hypotheses).map(|hypothesis| format!("h{hypothesis}"));
        let roster = Roster::new(agents, hypotheses)?;
        // A weight of zero is no edge.
        let heard = edges.iter().filter(|(_, _, weight)| *weight != Some(0.0));
        let graph = Graph::new(params.agents, heard.map(|&(speaker, listener, _)| (speaker, listener)))?;
        let one_way =
            graph.edges().find(|&(speaker, listener)| graph.speakers()[speaker].binary_search(&listener).is_err());
        if let (Rule::Metropolis, Some((speaker, listener))) = (params.rule, one_way) {
            let names = roster.names(&[speaker, listener]);
            return Err(Error::Graph {
                reason: format!(
                    "metropolis weights need edges in both directions, but {:?} listens to {:?} and not the other way round; use uniform or random weights",
                    names[1], names[0]
                ),
            });
        }
        if !params.allow_reducible {
            graph.connected().map_err(|pair| disconnected(pair, &roster))?;
        }
        let mut weights = stream(params.seed, Purpose::Weights);
        let given: Option<Vec<(usize, usize, f64)>> =
            edges.iter().map(|&(speaker, listener, weight)| Some((speaker, listener, weight?))).collect();
        let combination = match given {
            Some(triplets) => check_weights(Combination::from_triplets(triplets, params.agents)?, &roster)?,
            None => graph.weigh_with(params.rule, &mut weights)?,
        };
        World::start(params, roster, graph, combination, weights)
    }

    fn start(
        params: WorldParams,
        roster: Roster,
        graph: Graph,
        combination: Combination,
        weights: ChaCha8Rng,
    ) -> Result<Self, Error> {
        let mut rng = Streams {
            weights,
            likelihoods: stream(params.seed, Purpose::Likelihoods),
            observations: stream(params.seed, Purpose::Observations),
            silence: stream(params.seed, Purpose::Silence),
            changes: stream(params.seed, Purpose::Changes),
        };
        let influential: Vec<bool> = (0..params.agents).map(|agent| agent < params.influential).collect();
        let likelihoods = draw_likelihoods(&params, &influential, &mut rng.likelihoods);
        let bounded = likelihoods.iter().all(|likelihood| {
            let (mean, spread) = moments(likelihood, params.truth);
            mean.iter().chain(&spread).all(|value| value.abs() < LARGEST_LOG_RATIO)
        });
        let scale = params.influential_scale.max(params.other_scale);
        require(bounded, "influential-scale", scale, "small enough to leave every observation a positive probability")?;
        let (agents, hypotheses) = (params.agents, params.hypotheses);
        let mut world = World {
            truth: params.truth,
            log_ratios: vec![0.0; agents * (hypotheses - 1)],
            log_beliefs: vec![-(hypotheses as f64).ln(); agents * hypotheses],
            observed: vec![0.0; agents * hypotheses],
            heard: vec![0.0; agents],
            params,
            roster,
            graph,
            combination,
            likelihoods,
            rng,
            step: 0,
            events: Vec::new(),
        };
        for _ in 0..world.params.burn_in {
            progress::check()?;
            world.observe();
            world.advance_ratios();
        }
        // The belief-space form goes on from the same state.
        let mut probabilities = Vec::new();
        for agent in 0..agents {
            let ratios = world.log_ratios[agent..].iter().step_by(agents).copied();
            crate::panel::probabilities(ratios, &mut probabilities);
            for (hypothesis, probability) in probabilities.iter().enumerate() {
                world.log_beliefs[agent * hypotheses + hypothesis] = probability.ln();
            }
        }
        Ok(world)
    }

    /// Names.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The parameters it runs with.
    pub fn params(&self) -> &WorldParams {
        &self.params
    }

    /// Λ of the next step, N × H in column order.
    pub fn next_frame(&mut self) -> Result<&[f64], Error> {
        self.change()?;
        self.observe();
        self.advance_ratios();
        self.step += 1;
        Ok(&self.log_ratios)
    }

    /// log ψ of the next step, agent by agent, by adapting and combining beliefs as the paper writes it.
    ///
    /// Use one of the two on a world, not both.
    pub fn next_beliefs(&mut self) -> Result<&[f64], Error> {
        self.change()?;
        self.observe();
        let (agents, hypotheses) = (self.params.agents, self.params.hypotheses);
        let adaptation = self.params.adaptation;
        let mut next = vec![0.0; agents * hypotheses];
        for (listener, next) in next.chunks_exact_mut(hypotheses).enumerate() {
            // Combine: the private belief is the weighted geometric mean of what is heard.
            for (speaker, weight) in self.combination.listener(listener) {
                let public = &self.log_beliefs[speaker * hypotheses..(speaker + 1) * hypotheses];
                next.iter_mut().zip(public).for_each(|(private, public)| *private += weight * public);
            }
            normalise(next);
            // Adapt: the new observation enters with weight δ.
            let observed = &self.observed[listener * hypotheses..(listener + 1) * hypotheses];
            for (belief, observed) in next.iter_mut().zip(observed) {
                *belief = (1.0 - adaptation) * *belief + adaptation * observed;
            }
            normalise(next);
        }
        self.log_beliefs = next;
        self.step += 1;
        Ok(&self.log_beliefs)
    }

    /// Which agents are silent at the latest step; draws anew at each call.
    pub fn silent(&mut self) -> Vec<bool> {
        let probability = self.params.silence;
        (0..self.params.agents).map(|_| self.rng.silence.random::<f64>() < probability).collect()
    }

    /// The true model as of now.
    pub fn truth(&self) -> Model {
        let (agents, ratios) = (self.params.agents, self.params.hypotheses - 1);
        let mut evidence = Vec::with_capacity(agents * ratios);
        let mut innovation = Vec::with_capacity(agents * ratios * ratios);
        for likelihood in &self.likelihoods {
            let (mean, covariance) = moments(likelihood, self.truth);
            evidence.extend(mean);
            innovation.extend(covariance);
        }
        Model {
            roster: self.roster.clone(),
            combination: self.combination.clone(),
            evidence: Evidence::from_rows(evidence, agents, ratios).expect("likelihoods are bounded"),
            adaptation: self.params.adaptation,
            method: crate::Method::Given,
            truth: Some(TrueHypothesis { hypothesis: self.truth, agreement: 1.0 }),
            innovation: Some(Innovation::from_cells(innovation, agents, ratios).expect("likelihoods are bounded")),
            likelihoods: Some(self.likelihoods.clone()),
            diagnostics: Diagnostics::default(),
            track: Track::default(),
        }
    }

    /// Changes so far.
    pub fn events(&self) -> &[WorldEvent] {
        &self.events
    }

    fn advance_ratios(&mut self) {
        let (agents, hypotheses) = (self.params.agents, self.params.hypotheses);
        let adaptation = self.params.adaptation;
        for ratio in 0..hypotheses - 1 {
            let column = &mut self.log_ratios[ratio * agents..(ratio + 1) * agents];
            self.combination.hear_into(column, &mut self.heard);
            for (agent, value) in column.iter_mut().enumerate() {
                let evidence = self.observed[agent * hypotheses] - self.observed[agent * hypotheses + ratio + 1];
                *value = (1.0 - adaptation) * self.heard[agent] + adaptation * evidence;
            }
        }
    }

    fn observe(&mut self) {
        let hypotheses = self.params.hypotheses;
        let rng = &mut self.rng.observations;
        for (likelihood, out) in self.likelihoods.iter().zip(self.observed.chunks_exact_mut(hypotheses)) {
            match likelihood {
                Likelihood::Discrete { probabilities } => {
                    let mut left: f64 = rng.random();
                    let mut symbol = 0;
                    while symbol + 1 < probabilities.len() && left >= probabilities[symbol][self.truth] {
                        left -= probabilities[symbol][self.truth];
                        symbol += 1;
                    }
                    out.iter_mut().zip(&probabilities[symbol]).for_each(|(out, p)| *out = p.ln());
                }
                Likelihood::Gaussian { means } => {
                    out.fill(0.0);
                    for row in means {
                        let noise: f64 = StandardNormal.sample(rng);
                        let observation = row[self.truth] + noise;
                        out.iter_mut().zip(row).for_each(|(out, mean)| *out -= 0.5 * (observation - mean).powi(2));
                    }
                }
                Likelihood::Unknown => unreachable!("worlds know their own likelihoods"),
            }
        }
    }
}

/// Runs a world to its end: the panel of its beliefs, and the true model at the end.
///
/// ```
/// use headwater::simulate::{simulate, WorldParams};
/// let (panel, truth) = simulate(&WorldParams { steps: 50, ..WorldParams::default() }).unwrap();
/// assert_eq!((panel.steps(), panel.agents(), panel.ratios()), (50, 20, 4));
/// assert!(truth.combination.column_sums().iter().all(|sum| (sum - 1.0).abs() < 1e-12));
/// ```
pub fn simulate(params: &WorldParams) -> Result<(Panel, Model), Error> {
    let mut world = World::new(params.clone())?;
    let panel = run(&mut world)?;
    Ok((panel, world.truth()))
}

/// Collects the remaining steps of a world into a panel.
pub fn run(world: &mut World) -> Result<Panel, Error> {
    let steps = world.params.steps - world.step.min(world.params.steps);
    let mut cells = Vec::with_capacity(steps * world.log_ratios.len());
    let mut posts = Vec::new();
    let stage = progress::stage("simulating", steps as u64);
    for _ in 0..steps {
        progress::check()?;
        stage.advance();
        cells.extend_from_slice(world.next_frame()?);
        if world.params.silence > 0.0 {
            posts.extend(world.silent().into_iter().map(|silent| u32::from(!silent)));
        }
    }
    let posts = (!posts.is_empty()).then_some(posts);
    Panel::new(world.roster.clone(), Times::Steps((0..steps as i64).collect()), cells, posts)
}

fn disconnected(pair: Disconnected, roster: &Roster) -> Error {
    let name = |agent: usize| &roster.agents()[agent];
    Error::Graph {
        reason: format!(
            "the network is not strongly connected: nothing {:?} says can reach {:?}; add edges",
            name(pair.speaker),
            name(pair.listener)
        ),
    }
}

fn check_weights(combination: Combination, roster: &Roster) -> Result<Combination, Error> {
    let negative = combination.edges().find(|&(_, _, weight)| weight < 0.0);
    if let Some((speaker, listener, weight)) = negative {
        let names = roster.names(&[speaker, listener]);
        return Err(Error::Graph {
            reason: format!("the weight of {} for {} is {weight}; weights must not be negative", names[0], names[1]),
        });
    }
    for (listener, sum) in combination.column_sums().iter().enumerate() {
        if (sum - 1.0).abs() > 1e-6 {
            return Err(Error::Graph {
                reason: format!(
                    "the weights agent {:?} gives (its own included) sum to {sum}, but must sum to 1",
                    roster.agents()[listener]
                ),
            });
        }
    }
    Ok(combination)
}

/// Log-probabilities that sum to one.
fn normalise(log: &mut [f64]) {
    let highest = log.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = log.iter().map(|value| (value - highest).exp()).sum();
    log.iter_mut().for_each(|value| *value -= highest + sum.ln());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Likelihoods, ScheduledChange};

    fn small() -> WorldParams {
        WorldParams { agents: 8, edge_probability: 0.4, steps: 200, burn_in: 100, ..WorldParams::default() }
    }

    #[test]
    fn both_forms_of_the_recursion_agree() {
        for likelihoods in [Likelihoods::Appendix, Likelihoods::Released, Likelihoods::Gaussian { dimension: 3 }] {
            let params = WorldParams { likelihoods, ..small() };
            let mut ratios = World::new(params.clone()).unwrap();
            let mut beliefs = World::new(params).unwrap();
            for _ in 0..200 {
                let frame = ratios.next_frame().unwrap();
                let log = beliefs.next_beliefs().unwrap();
                for agent in 0..8 {
                    for ratio in 0..4 {
                        let met = log[agent * 5] - log[agent * 5 + ratio + 1];
                        assert!((met - frame[ratio * 8 + agent]).abs() < 1e-12);
                    }
                }
            }
        }
    }

    #[test]
    fn one_step_by_hand() {
        let params = WorldParams { burn_in: 0, hypotheses: 2, adaptation: 0.25, ..small() };
        let mut world = World::new(params).unwrap();
        let start = vec![1.0; 8];
        world.log_ratios.copy_from_slice(&start);
        let frame = world.next_frame().unwrap().to_vec();
        for agent in 0..8 {
            let Likelihood::Discrete { probabilities } = &world.likelihoods[agent] else { panic!("a coin") };
            let possible = probabilities.iter().map(|row| 0.75 + 0.25 * (row[0] / row[1]).ln());
            assert!(possible.into_iter().any(|value| (frame[agent] - value).abs() < 1e-14));
        }
    }

    #[test]
    fn released_likelihoods_are_the_authors() {
        let params = WorldParams { likelihoods: Likelihoods::Released, ..small() };
        let world = World::new(params).unwrap();
        let Likelihood::Discrete { probabilities } = &world.likelihoods[0] else { panic!("a coin") };
        assert_eq!(probabilities[0], [0.3, 0.8 / 1.5, 1.3 / 2.0, 1.8 / 2.5, 2.3 / 3.0]);
        let Likelihood::Discrete { probabilities } = &world.likelihoods[3] else { panic!("a coin") };
        assert_eq!(probabilities[0][1], 0.35 / 1.05);
    }

    #[test]
    fn evidence_is_a_difference_of_divergences() {
        for likelihoods in [Likelihoods::Appendix, Likelihoods::Gaussian { dimension: 2 }] {
            let params = WorldParams { likelihoods, truth: 2, ..small() };
            let mut world = World::new(params).unwrap();
            let truth = world.truth();
            // An independent check: the mean over many draws, within five standard errors.
            let draws = 40_000;
            let mut sums = vec![0.0; 8 * 4];
            for _ in 0..draws {
                world.observe();
                for agent in 0..8 {
                    for ratio in 0..4 {
                        sums[agent * 4 + ratio] += world.observed[agent * 5] - world.observed[agent * 5 + ratio + 1];
                    }
                }
            }
            for agent in 0..8 {
                for ratio in 0..4 {
                    let met = sums[agent * 4 + ratio] / draws as f64;
                    let wanted = truth.evidence.agent(agent)[ratio];
                    let spread = truth.innovation.as_ref().unwrap().agent(agent)[ratio * 5].sqrt();
                    assert!((met - wanted).abs() < 5.0 * spread / (draws as f64).sqrt() + 1e-12);
                }
            }
        }
    }

    #[test]
    fn changes_happen_when_scheduled() {
        let changes = vec![
            ScheduledChange::Topology { every: 50, probability: 0.15 },
            ScheduledChange::State { at: 60, to: Some(3) },
            ScheduledChange::Likelihoods { at: 120 },
        ];
        for rule in [Rule::Uniform, Rule::Metropolis, Rule::Random] {
            let params = WorldParams { changes: changes.clone(), rule, ..small() };
            let mut world = World::new(params).unwrap();
            let before = world.truth();
            for _ in 0..51 {
                world.next_frame().unwrap();
            }
            let (old, new) = (&before.combination, world.truth().combination);
            let changed: Vec<String> = (0..8)
                .filter(|&listener| {
                    (0..8).any(|speaker| old.weight(speaker, listener) != new.weight(speaker, listener))
                })
                .map(|listener| listener.to_string())
                .collect();
            assert_eq!(world.events()[0].agents, changed, "the listeners named are those whose weights changed");
            run(&mut world).unwrap();
            let kinds: Vec<(usize, &str)> =
                world.events().iter().map(|event| (event.step, event.kind.as_str())).collect();
            let wanted = [(50, "topology"), (60, "state"), (100, "topology"), (120, "likelihoods"), (150, "topology")];
            assert_eq!(kinds, wanted);
            let after = world.truth();
            assert_ne!(before.combination, after.combination);
            assert_ne!(before.evidence, after.evidence);
            assert_eq!(after.truth.unwrap().hypothesis, 3);
            assert_eq!(after.combination.components().len(), 1);
        }
    }

    #[test]
    fn silence_changes_no_observation() {
        let (loud, _) = simulate(&small()).unwrap();
        let (quiet, _) = simulate(&WorldParams { silence: 0.3, ..small() }).unwrap();
        let cells = 200 * 8;
        let silent: usize = quiet.silence().iter().sum();
        assert!((silent as f64 / cells as f64 - 0.3).abs() < 0.05, "{silent} of {cells}");
        for step in 0..200 {
            for agent in 0..8 {
                if quiet.posts(step, agent) > 0 {
                    assert_eq!(quiet.frame(step)[(agent, 2)], loud.frame(step)[(agent, 2)]);
                }
            }
        }
    }

    #[test]
    fn given_graphs_are_checked() {
        let names = || ["a", "b", "c"].map(String::from).to_vec();
        let open = [(0, 1, None), (1, 2, None)];
        let error = World::on_graph(small(), names(), &open).unwrap_err().to_string();
        assert!(error.contains("nothing \"b\" says can reach \"a\""), "{error}");
        let weights = [(0, 1, Some(0.5)), (1, 2, Some(1.0)), (2, 0, Some(1.0))];
        let error = World::on_graph(small(), names(), &weights).unwrap_err().to_string();
        assert!(error.contains("agent \"b\" gives (its own included) sum to 0.5"), "{error}");
        let nothing = [(0, 0, Some(1.0)), (0, 1, Some(1.0)), (1, 0, Some(0.0)), (1, 2, Some(1.0)), (2, 2, Some(0.0))];
        let error = World::on_graph(small(), names(), &nothing).unwrap_err().to_string();
        assert!(error.contains("not strongly connected"), "a weight of zero connects nobody: {error}");
        let one_way = [(0, 1, None), (1, 2, None), (2, 0, None)];
        let metropolis = WorldParams { rule: Rule::Metropolis, ..small() };
        let error = World::on_graph(metropolis, names(), &one_way).unwrap_err().to_string();
        assert!(error.contains("\"a\" listens to \"c\""), "{error}");
        let weights = [(0, 1, Some(0.5)), (1, 1, Some(0.5)), (1, 2, Some(1.0)), (2, 0, Some(1.0))];
        let world = World::on_graph(small(), names(), &weights).unwrap();
        assert_eq!(world.truth().combination.weight(1, 1), 0.5);
    }

    #[test]
    fn parameters_are_checked() {
        let bad = [
            WorldParams { agents: 1, ..small() },
            WorldParams { hypotheses: 1, ..small() },
            WorldParams { adaptation: 1.0, ..small() },
            WorldParams { truth: 5, ..small() },
            WorldParams { silence: 1.0, ..small() },
            WorldParams { influential: 9, ..small() },
            WorldParams { edge_probability: 0.0, ..small() },
            WorldParams { likelihoods: Likelihoods::Released, influential_scale: 1e17, ..small() },
            WorldParams { likelihoods: Likelihoods::Gaussian { dimension: 1 }, influential_scale: 1e160, ..small() },
            WorldParams { changes: vec![ScheduledChange::State { at: 200, to: None }], ..small() },
        ];
        assert!(bad.into_iter().all(|params| World::new(params).is_err()));
    }
}
