//! The graph test: does opinion travel along this graph more than along graphs like it?
//!
//! In: panels, one per episode, and a graph. Out: [`GraphTest`].
//!
//! 1. Each account on its own is an AR(1) process behind noise and silence (`series`): its smoothed deviation M and news E.
//! 2. A pair scores `S[l,k] = Σ_t M_l,t−1 E_k,t`, rows centred and of length one; row and column means of each block of groups
//!    are removed (`scores`). Groups are given, or communities of the graph (`communities`).
//! 3. The guard removes what shared news gives: the regression of S on `R0 = Σ E_l E_k` and `R1 = Σ M_l M_k` over pairs without an
//!    edge.
//! 4. The statistic is the sum over edges of S / (number of speakers of the listener); its null law comes from graphs that keep
//!    all degrees and the edges between groups (`rewiring`).
//!
//! Groups and guard are what common news and homophily cannot pass; see docs/concepts/verdict.md for what this cannot exclude.
//! Episodes and log-ratios add up. Accounts are put in the order of their names first, so that the order in a file changes
//! nothing. Cost: N·T for the processes, edges·T·draws for the null; no N×N matrix beyond 2000 accounts.

mod blocks;
mod communities;
mod heard;
mod power;
mod pulls;
mod result;
mod rewiring;
mod rows;
mod scores;
mod series;
mod shift_power;
mod shifts;
mod short;
#[cfg(test)]
mod tests;

pub use power::Power;
pub use pulls::{Pull, pulls};
pub use result::{GraphNull, GraphTest, GraphTestLimit, NOT_EXCLUDED, Untestable};
pub use shift_power::{ShiftPower, shift_power};

use super::draws::{draw_all, numbered};
use crate::error::require;
use crate::graph::Graph;
use crate::{Error, Panel};
use heard::heard;
use result::LEVEL;
use rewiring::{Rewirings, Wiring};
use rows::{Part, Rows};
use scores::{PairScores, ScoreRows};
use series::{Measured, Process, fit_all, measured, noise_of_a_post, observed};

/// Steps at which an account must have spoken to be tested.
const FEWEST_SPOKEN: usize = 5;

/// Accounts that the test needs.
const FEWEST_ACCOUNTS: usize = 4;

/// Steps that the test needs, in all episodes together.
const FEWEST_STEPS: usize = 10;

/// Mean share of edges that rewirings must move.
const LEAST_REWIRED: f64 = 0.05;

/// Share of pairs without an edge that a graph must leave.
const LEAST_UNLINKED: f64 = 0.02;

/// Spread of the null, in correlations per listener, below which it is rounding.
const NO_SPREAD: f64 = 1e-12;

/// Circular shifts at most; they are a companion.
const MOST_SHIFTS: usize = 199;

/// Whether power is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PowerWorlds {
    /// Where nothing was found and it costs less than about a minute of one core.
    #[default]
    WhereCheap,
    /// So many worlds for each weight; none with 0.
    Worlds(usize),
}

/// Parameters of [`graph_test`].
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `draws` | 999 | rewired graphs | 19 … 1 000 000 |
/// | `groups` | communities of the graph | group of each account | one per account |
/// | `companions` | yes | also unguarded, direction and shifts | |
/// | `power` | where nothing was found and it is cheap | simulated worlds for power | |
/// | `seed` | 21 | of everything drawn | |
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the table above says it once")]
pub struct GraphTestParams {
    pub draws: usize,
    pub groups: Option<Vec<usize>>,
    pub companions: bool,
    pub power: PowerWorlds,
    pub seed: u64,
}

impl Default for GraphTestParams {
    fn default() -> Self {
        GraphTestParams { draws: 999, groups: None, companions: true, power: PowerWorlds::WhereCheap, seed: 21 }
    }
}

/// Rewired graphs that [`graph_test`] draws beside a ranking: 999, fewer where there are many edges.
pub fn usual_draws(graph: &Graph) -> usize {
    match graph.edges().count() {
        ..=20_000 => 999,
        20_001..=100_000 => 199,
        _ => 99,
    }
}

/// The graph among the tested accounts, with their groups.
#[derive(Debug)]
struct TestedGraph<'a> {
    graph: &'a Graph,
    groups: &'a [usize],
    /// One over the number of speakers of each listener.
    weights: Vec<f64>,
}

impl<'a> TestedGraph<'a> {
    fn new(graph: &'a Graph, groups: &'a [usize]) -> Self {
        let weights = graph.speakers().iter().map(|list| 1.0 / list.len().max(1) as f64).collect();
        TestedGraph { graph, groups, weights }
    }

    fn listeners(&self) -> usize {
        self.graph.speakers().iter().filter(|list| !list.is_empty()).count()
    }

    /// Σ over edges of the score over the listener's number of speakers, and, where asked for, Σ over edges of the antisymmetric
    /// part of other scores, in which mutual edges cancel.
    fn statistics(&self, wiring: &Wiring, scores: &PairScores, directed: Option<&PairScores>) -> (f64, f64) {
        if scores.kept() && directed.is_none_or(PairScores::kept) {
            let weighted =
                |(speaker, listener): (usize, usize)| self.weights[listener] * scores.score(speaker, listener);
            let both_ways = |scores: &PairScores| -> f64 {
                let one = |(speaker, listener): (usize, usize)| {
                    scores.score(speaker, listener) - scores.score(listener, speaker)
                };
                wiring.edges().map(one).sum()
            };
            return (wiring.edges().map(weighted).sum(), 0.5 * directed.map_or(0.0, both_ways));
        }
        let lists = wiring.speakers(self.graph.agents());
        (scores.total(&lists, &self.weights), directed.map_or(0.0, |directed| directed.direction(&lists)))
    }
}

/// The statistic and its null.
#[derive(Debug)]
struct Core {
    rows: ScoreRows,
    guard: [f64; 2],
    observed: f64,
    null: Vec<f64>,
    /// The same of the direction, where asked for.
    direction: Option<(f64, Vec<f64>)>,
    rewired_share: f64,
}

/// What one rewired graph gives: statistic, direction, share of edges moved.
type Drawn = (f64, f64, f64);

impl Core {
    fn new(processes: &[Vec<Process>], tested: &TestedGraph<'_>, draws: usize, seed: u64) -> Result<Self, Error> {
        Core::with_direction(processes, tested, draws, seed, false)
    }

    fn with_direction(
        processes: &[Vec<Process>],
        tested: &TestedGraph<'_>,
        draws: usize,
        seed: u64,
        directed: bool,
    ) -> Result<Self, Error> {
        let rows = ScoreRows {
            before: Rows::new(processes, Part::Before),
            after: Rows::new(processes, Part::After),
            level: Rows::new(processes, Part::Level),
        };
        let edges = tested.graph.edges().count();
        let guard = rows.guard(tested.graph, tested.groups, &mut numbered(seed, GUARD));
        let scores = rows.guarded(tested.groups, guard).keep_for(edges * draws);
        let rewirings = Rewirings::new(tested.graph, tested.groups, seed);
        let lagged =
            (directed && rewirings.given().one_way() > 0).then(|| rows.lagged(tested.groups).keep_for(edges * draws));
        let one = |wiring: &Wiring| -> Drawn {
            let (statistic, direction) = tested.statistics(wiring, &scores, lagged.as_ref());
            (statistic, direction, rewirings.moved(wiring))
        };
        let observed = one(rewirings.given());
        let draw = |number| Ok(one(&rewirings.draw(number)));
        let drawn: Vec<Drawn> = draw_all("rewiring the graph", draws, draw)?;
        let null = drawn.iter().map(|drawn| drawn.0).collect();
        let direction = lagged.is_some().then(|| (observed.1, drawn.iter().map(|drawn| drawn.1).collect()));
        let rewired_share = drawn.iter().map(|drawn| drawn.2).sum::<f64>() / draws.max(1) as f64;
        Ok(Core { rows, guard, observed: observed.0, null, direction, rewired_share })
    }

    fn p_value(&self) -> f64 {
        p_value(self.observed, &self.null)
    }
}

/// Streams of the generator: draws have those from 0.
const GUARD: u64 = u64::MAX - 1;
const COMMUNITIES: u64 = u64::MAX - 2;

/// Differences below this are rounding: rewirings that give the given graph itself count as reaching it.
const SAME: f64 = 1e-12;

/// (1 + draws that reach the observed value) / (1 + draws).
fn p_value(observed: f64, null: &[f64]) -> f64 {
    let reached = null.iter().filter(|value| **value >= observed - SAME).count();
    (1 + reached) as f64 / (1 + null.len()) as f64
}

/// Excess over the mean of the null, its 90 % interval, and the null's standard deviation.
struct Excess {
    effect: f64,
    low: f64,
    high: f64,
    spread: f64,
}

impl Excess {
    fn new(observed: f64, null: &[f64], unit: f64) -> Self {
        let mut sorted: Vec<f64> = null.iter().map(|value| value / unit).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len().max(1) as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let spread = (sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        let quantile = |share: f64| {
            let place = share * (count - 1.0);
            let (below, part) = (place.floor() as usize, place.fract());
            let above = (below + 1).min(sorted.len().saturating_sub(1));
            sorted.get(below).map_or(mean, |low| low + part * (sorted[above] - low))
        };
        let observed = observed / unit;
        Excess { effect: observed - mean, low: observed - quantile(0.95), high: observed - quantile(0.05), spread }
    }
}

/// Accounts that can be tested, in the order of their names.
struct Selected {
    accounts: Vec<usize>,
    left_out: usize,
    silent_share: f64,
}

fn select(panels: &[&Panel]) -> Result<Selected, Error> {
    let (first, ratios) = (panels[0], panels[0].ratios());
    let steps: usize = panels.iter().map(|panel| panel.steps()).sum();
    if steps < FEWEST_STEPS {
        return Err(Untestable::TooFewSteps { steps, needed: FEWEST_STEPS }.into());
    }
    // Compared within episodes: levels may differ between them.
    let varies = |account: usize| {
        panels.iter().any(|panel| {
            (0..ratios).any(|ratio| {
                let mut values = observed(panel, ratio, account).map(|(value, _)| value);
                values.next().is_some_and(|one| values.any(|other| other != one))
            })
        })
    };
    let spoken = |account: usize| {
        panels
            .iter()
            .map(|panel| (0..panel.steps()).filter(|&step| panel.posts(step, account) > 0).count())
            .sum::<usize>()
    };
    let moving: Vec<usize> = (0..first.agents()).filter(|&account| varies(account)).collect();
    if moving.is_empty() {
        return Err(Untestable::NoChange.into());
    }
    let mut accounts: Vec<usize> = moving.into_iter().filter(|&account| spoken(account) >= FEWEST_SPOKEN).collect();
    if accounts.len() < FEWEST_ACCOUNTS {
        let (accounts, needed) = (accounts.len(), FEWEST_ACCOUNTS);
        return Err(Untestable::TooFewAccounts { accounts, needed, steps: FEWEST_SPOKEN }.into());
    }
    let names = first.roster().agents();
    accounts.sort_by(|one, other| names[*one].cmp(&names[*other]));
    let said: usize = accounts.iter().map(|&account| spoken(account)).sum();
    let silent_share = 1.0 - said as f64 / (accounts.len() * steps) as f64;
    Ok(Selected { left_out: first.agents() - accounts.len(), accounts, silent_share })
}

/// Whether opinions can be tested at all, with whatever graph: [`Error::Untestable`] where they never change, at most two accounts
/// speak, or there is one step. Cheap, to be asked before a fit.
pub fn check_opinions(panels: &[&Panel]) -> Result<(), Error> {
    match panels.first().map(|_| select(panels)) {
        Some(Err(Error::Untestable(reason))) if reason.without_opinions() => Err(reason.into()),
        _ => Ok(()),
    }
}

/// Tests whether opinion travels along a graph: panels of the same accounts, one per episode or with several, and who follows
/// whom.
///
/// ```
/// use headwater::evaluate::graph_test::{GraphTestParams, PowerWorlds, graph_test};
/// use headwater::graph::Graph;
/// use headwater::simulate::noisy::{NoisyWorld, noisy};
/// let (panel, truth) = noisy(&NoisyWorld { steps: 300, noise: 0.2, ..NoisyWorld::strengths() })?;
/// let edges = truth.combination.edges().map(|(speaker, listener, _)| (speaker, listener));
/// let graph = Graph::new(panel.agents(), edges.collect::<Vec<_>>())?;
/// let params = GraphTestParams { draws: 199, power: PowerWorlds::Worlds(0), ..GraphTestParams::default() };
/// assert!(graph_test(&[&panel], &graph, &params)?.passed());
/// # Ok::<(), headwater::Error>(())
/// ```
///
/// # Errors
/// [`Error::Untestable`] where the data allow no test, [`Error::Shape`] and [`Error::Parameter`] for wrong arguments, and
/// [`Error::Stopped`].
pub fn graph_test(panels: &[&Panel], graph: &Graph, params: &GraphTestParams) -> Result<GraphTest, Error> {
    check(panels, graph, params)?;
    let apart: Vec<Panel> = match panels.iter().all(|panel| panel.episodes().is_single()) {
        true => Vec::new(),
        false => panels.iter().flat_map(|panel| panel.by_episode()).collect(),
    };
    let apart: Vec<&Panel> = apart.iter().collect();
    let panels = if apart.is_empty() { panels } else { &apart };
    if short::applies(panels) {
        return short::short_test(panels, graph, params);
    }
    let selected = select(panels)?;
    let accounts = &selected.accounts;
    let graph = induced(graph, accounts)?;
    let edges = graph.edges().count();
    if edges == 0 {
        return Err(Untestable::NoEdges { accounts: accounts.len() }.into());
    }
    let seed = params.seed;
    let labels = match &params.groups {
        Some(groups) => accounts.iter().map(|&account| groups[account]).collect(),
        None => communities::communities(&graph, &mut numbered(seed, COMMUNITIES)),
    };
    let groups = communities::pooled(&labels);
    let tested = TestedGraph::new(&graph, &groups);
    let measured: Vec<Vec<Vec<Measured>>> = (0..panels[0].ratios())
        .map(|ratio| {
            // A ratio in which nobody moves says nothing and gets no weight.
            let noise = noise_of_a_post(panels, ratio, accounts).max(f64::MIN_POSITIVE);
            accounts.iter().map(|&account| measured(panels, ratio, account, noise)).collect()
        })
        .collect();
    let processes: Vec<Vec<Process>> = measured.iter().map(|accounts| fit_all(accounts)).collect();
    let core = Core::with_direction(&processes, &tested, params.draws, seed, params.companions)?;
    let mut limits: Vec<GraphTestLimit> = GraphTest::silence_limit(selected.silent_share).into_iter().collect();
    let lengths: Vec<usize> = panels.iter().map(|panel| panel.steps()).collect();
    let companions = Companions::new(&processes, &tested, &core, &lengths, params)?;
    if params.companions && core.direction.is_none() {
        limits.push(GraphTestLimit::MutualOnly);
    }
    let mut excess = Excess::new(core.observed, &core.null, tested.listeners() as f64);
    let (mut p, mut null, mut speaker) = (core.p_value(), GraphNull::RewiredGraphs, None);
    if core.rewired_share < LEAST_REWIRED {
        let pairs = accounts.len() * (accounts.len() - 1);
        if (pairs - edges.min(pairs)) as f64 <= LEAST_UNLINKED * pairs as f64 {
            return Err(Untestable::EverybodyLinked.into());
        }
        let shorter: Vec<usize> = lengths.iter().map(|steps| steps.saturating_sub(1)).collect();
        let found = heard(&core.rows.before, &core.rows.after, &shorter, params.draws, seed)?;
        let Some(found) = found else { return Err(Untestable::CannotBeRewired.into()) };
        limits.insert(0, GraphTestLimit::CannotBeRewired);
        excess = Excess::new(found.observed, &found.null, 1.0);
        p = p_value(found.observed, &found.null);
        (null, speaker) = (GraphNull::ExchangedSpeakers, Some(accounts[found.speaker]));
    }
    if excess.spread < NO_SPREAD {
        return Err(Untestable::NoContrast.into());
    }
    let cells = accounts.len() * lengths.iter().sum::<usize>() * panels[0].ratios();
    let worlds = match params.power {
        PowerWorlds::Worlds(worlds) => worlds,
        PowerWorlds::WhereCheap if p > LEVEL && power::affordable(accounts.len(), cells, edges) => power::WORLDS,
        PowerWorlds::WhereCheap => 0,
    };
    let power = (worlds > 0 && null == GraphNull::RewiredGraphs)
        .then(|| power::power(&tested, &processes, &measured, worlds, LEVEL, seed))
        .transpose()?;
    Ok(GraphTest {
        p_value: p,
        effect: excess.effect,
        low: excess.low,
        high: excess.high,
        z: excess.effect / excess.spread,
        null,
        draws: params.draws,
        steps: lengths.iter().sum(),
        episodes: panels.len(),
        accounts: accounts.len(),
        left_out: selected.left_out,
        edges,
        silent_share: selected.silent_share,
        groups: groups.iter().max().map_or(0, |most| most + 1),
        groups_given: params.groups.is_some(),
        guard: core.guard,
        rewired_share: core.rewired_share,
        unguarded_p: companions.unguarded,
        direction_p: core
            .direction
            .as_ref()
            .filter(|_| null == GraphNull::RewiredGraphs)
            .map(|(observed, null)| p_value(*observed, null)),
        shift_p: companions.shifts,
        speaker,
        limits,
        power,
    })
}

/// Whether some speaker is heard, without a graph.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct HeardTest {
    /// (1 + exchanges that reach the observed total) / (1 + draws).
    pub p_value: f64,
    /// Index of the account that is ahead.
    pub speaker: usize,
    /// Its total of standardised scores.
    pub total: f64,
}

/// Tests whether some speaker is heard in the episodes of a panel, each of a few steps: in every episode a speaker is scored by
/// how well a pull towards it explains the changes of the others, with Student errors; scores are standardised, clipped and
/// added up, and the largest total is compared with those of scores exchanged between the speakers of each episode. An account
/// that is close to the middle in every episode is ahead too where everybody moves there.
///
/// # Errors
/// [`Untestable::TooFewEpisodes`] for fewer than four, and [`Error::Stopped`].
pub fn heard_test(panel: &Panel, params: &GraphTestParams) -> Result<HeardTest, Error> {
    require((19..=1_000_000).contains(&params.draws), "draws", params.draws, "19 to 1000000")?;
    let mut accounts: Vec<usize> = (0..panel.agents()).collect();
    let names = panel.roster().agents();
    accounts.sort_by(|one, other| names[*one].cmp(&names[*other]));
    let found = short::heard_in_episodes(&[panel], &accounts, params)?;
    let Some(found) = found else {
        return Err(
            Untestable::TooFewEpisodes { episodes: panel.episodes().count(), needed: short::FEWEST_EPISODES }.into()
        );
    };
    let p_value = p_value(found.observed, &found.null);
    Ok(HeardTest { p_value, speaker: accounts[found.speaker], total: found.observed })
}

/// The tests beside the verdict.
#[derive(Debug, Default)]
struct Companions {
    unguarded: Option<f64>,
    shifts: Option<f64>,
}

impl Companions {
    fn new(
        processes: &[Vec<Process>],
        tested: &TestedGraph<'_>,
        core: &Core,
        lengths: &[usize],
        params: &GraphTestParams,
    ) -> Result<Self, Error> {
        if !params.companions || core.rewired_share < LEAST_REWIRED {
            return Ok(Companions::default());
        }
        let (graph, draws, seed) = (tested.graph, params.draws, params.seed);
        let together = vec![0; graph.agents()];
        let scores = core.rows.lagged(&together).keep_for(graph.edges().count() * draws);
        let rewirings = Rewirings::new(graph, &together, seed);
        let observed = tested.statistics(rewirings.given(), &scores, None).0;
        let draw = |number| Ok(tested.statistics(&rewirings.draw(number), &scores, None).0);
        let null: Vec<f64> = draw_all("rewiring without groups", draws, draw)?;
        let news = Rows::new(processes, Part::News);
        let shifts = shifts::shift_p(&core.rows.level, &news, graph, lengths, draws.min(MOST_SHIFTS), seed)?;
        Ok(Companions { unguarded: Some(p_value(observed, &null)), shifts })
    }
}

fn check(panels: &[&Panel], graph: &Graph, params: &GraphTestParams) -> Result<(), Error> {
    let Some(first) = panels.first() else {
        return Err(Untestable::TooFewSteps { steps: 0, needed: FEWEST_STEPS }.into());
    };
    require((19..=1_000_000).contains(&params.draws), "draws", params.draws, "19 to 1000000")?;
    if panels.iter().any(|panel| panel.roster() != first.roster()) {
        return Err(Error::Shape {
            what: "episodes",
            met: "different accounts or hypotheses".to_owned(),
            wanted: "the same in each".to_owned(),
        });
    }
    let wrong = |what, met: usize| Error::Shape { what, met: met.to_string(), wanted: first.agents().to_string() };
    if graph.agents() != first.agents() {
        return Err(wrong("accounts of the graph", graph.agents()));
    }
    match &params.groups {
        Some(groups) if groups.len() != first.agents() => Err(wrong("groups of accounts", groups.len())),
        _ => Ok(()),
    }
}

/// The graph among some accounts, in their order.
fn induced(graph: &Graph, accounts: &[usize]) -> Result<Graph, Error> {
    let mut place = vec![None; graph.agents()];
    accounts.iter().enumerate().for_each(|(index, &account)| place[account] = Some(index));
    let edges = graph.edges().filter_map(|(speaker, listener)| Some((place[speaker]?, place[listener]?)));
    Graph::new(accounts.len(), edges.collect::<Vec<_>>())
}
