//! A network as files describe it: agents with numbers, edges with numbers, and both over time where that is known.
//!
//! In: a [`Model`], its [`Ranking`], and which edges are wanted ([`Choice`]). Out: a [`Network`], all columns of equal length
//! and in the model's order, so that every format has the same names and the same numbers.

use crate::network::places;
use crate::style::COLOURS;
use headwater::Ranking;
use headwater::model::{ChangeKind, Track};
use headwater::ranking::RankedAgent;
use headwater::{Combination, Error, Evidence, Model, influence};
use jiff::{Timestamp, ToSpan};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// Up to this many agents are placed; placing more takes longer than everything else.
const PLACED_AGENTS: usize = 5000;

/// Side of the square that agents are placed in.
const SIDE: f64 = 1000.0;

/// Which edges to write.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Choice {
    /// Only weights of at least this much.
    pub min_weight: f64,
    /// Only edges that the null calls significant.
    pub significant: bool,
    /// Weights below zero too, by their size.
    pub negative: bool,
    /// What agents give themselves too, as loops.
    pub own: bool,
}

impl Choice {
    fn takes(&self, weight: f64) -> bool {
        weight != 0.0 && weight.abs() >= self.min_weight && (weight > 0.0 || self.negative)
    }
}

/// A network for other programs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Network {
    /// What it is, in a sentence or two.
    pub description: String,
    /// What is known of the whole; one value each.
    pub facts: Vec<Column>,
    /// Names.
    pub agents: Vec<String>,
    /// What is known of agents.
    pub agent_columns: Vec<Column>,
    /// Listener by listener.
    pub edges: Vec<Edge>,
    /// What is known of edges.
    pub edge_columns: Vec<Column>,
    /// How agents are drawn; empty unless asked for.
    pub looks: Vec<Look>,
    /// Weights over time, where the model was tracked.
    pub history: Option<History>,
    /// Edges left out because their weight is below zero.
    pub negative: usize,
}

/// Who hears whom, and how much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// Who is heard.
    pub speaker: usize,
    /// Who hears.
    pub listener: usize,
    /// The part of its attention that the listener gives the speaker.
    pub weight: f64,
}

/// How an agent is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Diameter, by share of influence.
    pub size: f64,
    /// Red, green and blue, by the hypothesis that its own evidence points to.
    pub colour: (u8, u8, u8),
    /// Centre, where the network is small enough to be laid out.
    pub place: Option<(f64, f64)>,
}

/// A network over time: moments one after another, each with its own weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// Whether times are dates rather than numbers.
    pub dates: bool,
    /// When each moment begins, and when the last one ends.
    pub bounds: Vec<String>,
    /// Edges that were there and are not now; their weight is zero.
    pub gone: Vec<Edge>,
    /// By edge, those of now before those that are gone, then by moment; none when the edge was not there.
    pub weights: Vec<Vec<Option<f64>>>,
    /// Numbers of agents: by moment, then by agent.
    pub agents: Vec<(&'static str, Vec<Vec<Option<f64>>>)>,
}

impl History {
    /// One edge over time.
    pub(super) fn weights(&self, row: usize) -> impl Iterator<Item = Option<f64>> + '_ {
        self.weights.get(row).into_iter().flatten().copied()
    }
}

/// Something that is known of every agent, every edge, or the whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// As in the JSON of `headwater rank`.
    pub name: &'static str,
    /// In the model's order.
    pub values: Values,
}

/// The values of a column; none where nothing is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Numbers.
    Real(Vec<Option<f64>>),
    /// Counts.
    Whole(Vec<Option<i64>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
    /// Words.
    Text(Vec<Option<String>>),
}

/// What kind of values a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Numbers.
    Real,
    /// Counts.
    Whole,
    /// Yes or no.
    Flag,
    /// Words.
    Text,
}

impl Values {
    fn kind(&self) -> Kind {
        match self {
            Values::Real(_) => Kind::Real,
            Values::Whole(_) => Kind::Whole,
            Values::Flag(_) => Kind::Flag,
            Values::Text(_) => Kind::Text,
        }
    }

    fn cell(&self, row: usize) -> Option<Cell<'_>> {
        match self {
            // No format has a number for what is not one.
            Values::Real(values) => values[row].filter(|value| value.is_finite()).map(Cell::Real),
            Values::Whole(values) => values[row].map(Cell::Whole),
            Values::Flag(values) => values[row].map(Cell::Flag),
            Values::Text(values) => values[row].as_deref().map(Cell::Text),
        }
    }

    fn known(&self) -> bool {
        match self {
            Values::Real(values) => values.iter().any(Option::is_some),
            Values::Whole(values) => values.iter().any(Option::is_some),
            Values::Flag(values) => values.iter().any(Option::is_some),
            Values::Text(values) => values.iter().any(Option::is_some),
        }
    }
}

/// One value, which prints as every format takes it: numbers with all their digits, words unescaped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell<'a> {
    Real(f64),
    Whole(i64),
    Flag(bool),
    Text(&'a str),
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // All digits either way; a tiny number would be a long row of zeros.
            Cell::Real(value) if *value != 0.0 && value.abs() < 1e-5 => write!(formatter, "{value:e}"),
            Cell::Real(value) => write!(formatter, "{value}"),
            Cell::Whole(value) => write!(formatter, "{value}"),
            Cell::Flag(value) => write!(formatter, "{value}"),
            Cell::Text(text) => formatter.write_str(text),
        }
    }
}

impl<'a> Cell<'a> {
    pub(super) fn real(self) -> Option<f64> {
        if let Cell::Real(value) = self { Some(value) } else { None }
    }

    pub(super) fn whole(self) -> Option<i64> {
        if let Cell::Whole(value) = self { Some(value) } else { None }
    }

    pub(super) fn flag(self) -> Option<bool> {
        if let Cell::Flag(value) = self { Some(value) } else { None }
    }

    pub(super) fn text(self) -> Option<&'a str> {
        if let Cell::Text(text) = self { Some(text) } else { None }
    }
}

/// Rows and columns, as most formats want them.
pub(super) struct Table<'a> {
    pub(super) rows: usize,
    pub(super) fields: Vec<Field<'a>>,
}

pub(super) struct Field<'a> {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether every row has a value.
    pub(super) certain: bool,
    pub(super) cell: Box<dyn Fn(usize) -> Option<Cell<'a>> + 'a>,
}

impl<'a> Field<'a> {
    fn certain(name: &'static str, kind: Kind, cell: impl Fn(usize) -> Cell<'a> + 'a) -> Self {
        Field { name, kind, certain: true, cell: Box::new(move |row| Some(cell(row))) }
    }

    fn of(column: &'a Column) -> Self {
        let cell = |row| column.values.cell(row);
        Field { name: column.name, kind: column.values.kind(), certain: false, cell: Box::new(cell) }
    }
}

/// What a ranking knows of an agent.
enum Presence {
    Real(fn(&RankedAgent) -> Option<f64>),
    Whole(fn(&RankedAgent) -> Option<usize>),
    Text(fn(&RankedAgent) -> Option<&String>),
}

const KNOWN: [(&str, Presence); 20] = [
    ("rank", Presence::Whole(|row| Some(row.rank))),
    ("influence", Presence::Real(|row| Some(row.influence))),
    ("share", Presence::Real(|row| row.share)),
    ("share_low", Presence::Real(|row| row.share_low)),
    ("share_high", Presence::Real(|row| row.share_high)),
    ("centrality", Presence::Real(|row| Some(row.centrality))),
    ("informativeness", Presence::Real(|row| Some(row.informativeness))),
    ("origin", Presence::Real(|row| Some(row.origin))),
    ("rank_low", Presence::Whole(|row| row.rank_low)),
    ("rank_high", Presence::Whole(|row| row.rank_high)),
    ("top_k_probability", Presence::Real(|row| row.top_k_probability)),
    ("p_value", Presence::Real(|row| row.p_value)),
    ("error_probability", Presence::Real(|row| row.error_probability)),
    ("contrarian", Presence::Text(|row| row.contrarian.as_ref())),
    ("contrarian_margin", Presence::Real(|row| row.contrarian_margin)),
    ("contrarian_standard_errors", Presence::Real(|row| row.contrarian_standard_errors)),
    ("posts", Presence::Real(|row| row.posts)),
    ("silent_share", Presence::Real(|row| row.silent_share)),
    ("in_degree", Presence::Whole(|row| row.in_degree)),
    ("pagerank", Presence::Real(|row| row.pagerank)),
];

impl Network {
    /// The network of a model, with what a ranking of it knows.
    ///
    /// An error when the ranking is of another model: it names strangers, or other weights. A ranking of only the first few
    /// is fine; of the others less is known.
    pub fn new(model: &Model, ranking: &Ranking, choice: &Choice) -> Result<Self, Error> {
        let agents = model.roster.agents().to_vec();
        let mut rows: Vec<Option<&RankedAgent>> = vec![None; agents.len()];
        for row in &ranking.agents {
            rows[model.roster.agent(&row.agent)?] = Some(row);
        }
        let mut agent_columns: Vec<Column> =
            KNOWN.iter().map(|(name, known)| Column { name, values: values(known, &rows) }).collect();
        agent_columns.retain(|column| column.values.known());
        let own = (0..agents.len()).map(|agent| Some(model.combination.weight(agent, agent))).collect();
        agent_columns.push(Column { name: "self_weight", values: Values::Real(own) });

        let tested = tested(model, ranking)?;
        let significant = |speaker, listener| tested.get(&(speaker, listener)).is_some_and(|found| found.1);
        let wanted = |speaker, listener| {
            (choice.own || speaker != listener) && (!choice.significant || significant(speaker, listener))
        };
        let heard = model.combination.edges().filter(|&(speaker, listener, _)| wanted(speaker, listener));
        let mut negative = 0;
        let mut edges = Vec::new();
        for (speaker, listener, weight) in heard {
            negative += usize::from(weight < 0.0 && !choice.negative);
            if choice.takes(weight) {
                edges.push(Edge { speaker, listener, weight });
            }
        }
        let test = |edge: &Edge| tested.get(&(edge.speaker, edge.listener));
        let mut edge_columns = Vec::new();
        if ranking.edges.is_some() {
            let p_values = edges.iter().map(|edge| test(edge).map(|found| found.0)).collect();
            let flags = edges.iter().map(|edge| test(edge).map(|found| found.1)).collect();
            edge_columns.push(Column { name: "p_value", values: Values::Real(p_values) });
            edge_columns.push(Column { name: "significant", values: Values::Flag(flags) });
        }
        let history = history(model, &edges, choice, wanted);
        Ok(Network {
            description: description(model, ranking),
            facts: facts(model, ranking),
            agents,
            agent_columns,
            edges,
            edge_columns,
            looks: Vec::new(),
            history,
            negative,
        })
    }

    /// The same with sizes, colours and places, which only a format that is drawn wants.
    ///
    /// A place does not depend on which edges are wanted.
    pub fn drawn(self, model: &Model, ranking: &Ranking) -> Self {
        let agents = self.agents.len();
        let heard = |&(speaker, listener, weight): &(usize, usize, f64)| speaker != listener && weight > 0.0;
        let places = if agents <= PLACED_AGENTS {
            let mut edges: Vec<(usize, usize, f64)> = model.combination.edges().filter(heard).collect();
            edges.sort_by(|a, b| b.2.total_cmp(&a.2));
            places(agents, &edges)
        } else {
            Vec::new()
        };
        let rows: HashMap<&str, &RankedAgent> = ranking.agents.iter().map(|row| (row.agent.as_str(), row)).collect();
        let looks = self.agents.iter().enumerate().map(|(agent, name)| {
            let row = rows.get(name.as_str());
            Look {
                size: 8.0 + 52.0 * row.and_then(|row| row.share).unwrap_or_default().clamp(0.0, 1.0).sqrt(),
                colour: colour(model, row.and_then(|row| row.contrarian.as_ref()).unwrap_or(&ranking.truth)),
                // Figures count down the page, Gephi up.
                place: places.get(agent).map(|(x, y)| ((x - 0.5) * SIDE, (0.5 - y) * SIDE)),
            }
        });
        Network { looks: looks.collect(), ..self }
    }

    pub(super) fn agent_table(&self) -> Table<'_> {
        let mut fields = vec![Field::certain("id", Kind::Text, |row| Cell::Text(&self.agents[row]))];
        fields.extend(self.agent_columns.iter().map(Field::of));
        Table { rows: self.agents.len(), fields }
    }

    pub(super) fn edge_table(&self) -> Table<'_> {
        let name = |agent: usize| Cell::Text(&self.agents[agent]);
        let mut fields = vec![
            Field::certain("source", Kind::Text, move |row| name(self.edges[row].speaker)),
            Field::certain("target", Kind::Text, move |row| name(self.edges[row].listener)),
            Field::certain("weight", Kind::Real, |row| Cell::Real(self.edges[row].weight)),
        ];
        fields.extend(self.edge_columns.iter().map(Field::of));
        Table { rows: self.edges.len(), fields }
    }

    pub(super) fn fact_table(&self) -> Table<'_> {
        Table { rows: 1, fields: self.facts.iter().map(Field::of).collect() }
    }
}

fn values(known: &Presence, rows: &[Option<&RankedAgent>]) -> Values {
    let rows = rows.iter().copied();
    match known {
        Presence::Real(get) => Values::Real(rows.map(|row| row.and_then(get)).collect()),
        Presence::Whole(get) => Values::Whole(rows.map(|row| row.and_then(get).map(|value| value as i64)).collect()),
        Presence::Text(get) => Values::Text(rows.map(|row| row.and_then(get).cloned()).collect()),
    }
}

/// By speaker and listener: the p-value, and whether it is significant.
type Tested = HashMap<(usize, usize), (f64, bool)>;

fn tested(model: &Model, ranking: &Ranking) -> Result<Tested, Error> {
    let mut tested = Tested::new();
    for edge in ranking.edges.iter().flatten() {
        let (speaker, listener) = (model.roster.agent(&edge.source)?, model.roster.agent(&edge.target)?);
        let weight = model.combination.weight(speaker, listener);
        if weight != edge.weight {
            return Err(Error::Undefined {
                what: "significance of edges",
                reason: format!(
                    "the ranking is of another model: it gives {} → {} the weight {}, the model {weight}",
                    edge.source, edge.target, edge.weight
                ),
            });
        }
        tested.insert((speaker, listener), (edge.p_value, edge.significant));
    }
    Ok(tested)
}

fn description(model: &Model, ranking: &Ranking) -> String {
    format!(
        "Who hears whom, and how much: edges run from speaker to listener, weights are the listener's attention. Method {}, adaptation {}; the network settles on {:?}. {}",
        model.method.name(),
        Cell::Real(model.adaptation),
        ranking.truth,
        ranking.verdict
    )
}

fn facts(model: &Model, ranking: &Ranking) -> Vec<Column> {
    let text = |text: &str| Values::Text(vec![Some(text.to_owned())]);
    let real = |value: f64| Values::Real(vec![Some(value)]);
    let facts = [
        ("truth", text(&ranking.truth)),
        ("agreement", real(ranking.agreement)),
        ("reference", text(&ranking.reference)),
        ("method", text(model.method.name())),
        ("adaptation", real(model.adaptation)),
        ("supported", Values::Flag(vec![Some(ranking.verdict.supported())])),
        ("verdict", text(&ranking.verdict.to_string())),
    ];
    facts.into_iter().map(|(name, values)| Column { name, values }).collect()
}

/// Red, green and blue of a hypothesis in the house palette.
fn colour(model: &Model, hypothesis: &str) -> (u8, u8, u8) {
    let number = model.roster.hypothesis(hypothesis).unwrap_or_default();
    let code = u32::from_str_radix(&COLOURS[number % COLOURS.len()][1..], 16).unwrap_or_default();
    let [_, red, green, blue] = code.to_be_bytes();
    (red, green, blue)
}

/// Each moment holds until the next one is known, the last one until the end.
fn history(model: &Model, edges: &[Edge], choice: &Choice, wanted: impl Fn(usize, usize) -> bool) -> Option<History> {
    let track = &model.track;
    let mut moments: Vec<(usize, &Combination, &Evidence)> =
        track.history.iter().map(|past| (past.step, &past.combination, &past.evidence)).collect();
    let newest = moments.last()?.0;
    let last = model.diagnostics.steps.map_or(newest, |steps| steps.saturating_sub(1)).max(newest);
    if moments.last().is_some_and(|moment| *moment.1 != model.combination) {
        // What holds in the end was not noted: it is known of the last step only.
        if last == newest {
            moments.pop();
        }
        moments.push((last, &model.combination, &model.evidence));
    }
    let steps: Vec<usize> = moments.iter().map(|moment| moment.0).chain([last]).collect();
    let (dates, bounds) = bounds(track, &steps);

    let takes = |&(speaker, listener, weight): &(usize, usize, f64)| wanted(speaker, listener) && choice.takes(weight);
    let now: HashSet<(usize, usize)> = edges.iter().map(|edge| (edge.speaker, edge.listener)).collect();
    let mut gone: BTreeMap<(usize, usize), Edge> = BTreeMap::new();
    for (_, combination, _) in &moments {
        for (speaker, listener, _) in combination.edges().filter(takes).filter(|edge| !now.contains(&(edge.0, edge.1)))
        {
            gone.insert((listener, speaker), Edge { speaker, listener, weight: 0.0 });
        }
    }
    let gone: Vec<Edge> = gone.into_values().collect();
    let weight = |edge: &Edge, combination: &Combination| {
        let weight = combination.weight(edge.speaker, edge.listener);
        choice.takes(weight).then_some(weight)
    };
    let series = |edge: &Edge| moments.iter().map(|(_, combination, _)| weight(edge, combination)).collect();
    let weights = edges.iter().chain(&gone).map(series).collect();

    // After a change of state the truth of now was not that of then.
    let truth = model.truth.filter(|_| track.changes.iter().all(|change| change.kind != ChangeKind::State));
    let found: Vec<Option<headwater::influence::Influence>> = (moments.iter())
        .map(|(_, combination, evidence)| {
            let (roster, method) = (model.roster.clone(), model.method.clone());
            let (combination, evidence) = ((*combination).clone(), (*evidence).clone());
            let mut then = Model::new(roster, combination, evidence, model.adaptation, method);
            then.truth = truth;
            influence(&then).ok()
        })
        .collect();
    let nothing = || vec![None; model.roster.agents().len()];
    let column = |get: fn(&headwater::influence::Influence) -> Option<&Vec<f64>>| {
        let values = |found: &Option<_>| {
            found.as_ref().and_then(get).map_or_else(nothing, |values| values.iter().copied().map(Some).collect())
        };
        found.iter().map(values).collect()
    };
    let agents = vec![
        ("share_over_time", column(|found| found.share.as_ref())),
        ("centrality_over_time", column(|found| Some(&found.centrality.values))),
        ("informativeness_over_time", column(|found| Some(&found.informativeness))),
    ];
    Some(History { dates, bounds, gone, weights, agents })
}

/// When steps were, and whether that is a date. The time of a step that nobody noted follows from those that were.
fn bounds(track: &Track, steps: &[usize]) -> (bool, Vec<String>) {
    let noted: BTreeMap<usize, &str> = track.times.iter().map(|(step, time)| (*step, time.as_str())).collect();
    let numbers = || {
        let time = |step: &usize| -> Option<i64> {
            match noted.get(step) {
                Some(time) => time.parse().ok(),
                // Whole times are step numbers: one more for every step.
                None => noted.last_key_value().map_or(Some(*step as i64), |(other, time)| {
                    Some(time.parse::<i64>().ok()? + *step as i64 - *other as i64)
                }),
            }
        };
        steps.iter().map(|step| time(step).map(|time| time.to_string())).collect::<Option<Vec<String>>>()
    };
    if let Some(numbers) = numbers() {
        return (false, numbers);
    }
    let instants: Option<Vec<(usize, Timestamp)>> =
        noted.iter().map(|(step, time)| Some((*step, time.parse().ok()?))).collect();
    let Some(instants) = instants.filter(|instants| !instants.is_empty()) else {
        return (false, steps.iter().map(usize::to_string).collect());
    };
    let ((first, begin), (newest, end)) = (instants[0], instants[instants.len() - 1]);
    let a_step = (end.as_microsecond() - begin.as_microsecond()).checked_div((newest - first) as i64).unwrap_or(0);
    let time = |step: &usize| match instants.iter().find(|(other, _)| other == step) {
        Some((_, time)) => *time,
        None => {
            let later = a_step.saturating_mul(*step as i64 - newest as i64);
            end.checked_add(later.microseconds()).unwrap_or(end)
        }
    };
    let times: Vec<Timestamp> = steps.iter().map(time).collect();
    /// Microseconds.
    const DAY: i64 = 86_400_000_000;
    let days = times.iter().all(|time| time.as_microsecond() % DAY == 0);
    (true, times.iter().map(|time| if days { time.strftime("%F").to_string() } else { time.to_string() }).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use headwater::Roster;
    use headwater::learn::whitened::WhitenedParams;
    use headwater::model::{NetworkSnapshot, TrueHypothesis};
    use headwater::{Method, ranking};

    fn model(names: &[&str], columns: Vec<f64>) -> Model {
        let agents = names.len();
        let roster = Roster::new(names.iter().copied(), ["<yes>", "no"]).unwrap();
        let combination = Combination::from_columns(columns, agents).unwrap();
        let rows = (0..agents).map(|agent| 0.5 - 0.2 * agent as f64).collect();
        let evidence = Evidence::from_rows(rows, agents, 1).unwrap();
        let method = Method::Whitened(WhitenedParams::default());
        let mut model = Model::new(roster, combination, evidence, 0.1, method);
        model.truth = Some(TrueHypothesis::new(0, 0.75));
        model
    }

    /// Names that break careless writers.
    const NAMES: [&str; 4] = ["<script>alert(1)</script>", "two\nlines, \"quoted\"", "bell\u{7}", "Ünïcode 🦉 ' &amp;"];

    fn crowd() -> Model {
        #[rustfmt::skip]
        let columns = vec![
            0.5, 0.5, 0.0, 0.0,
            0.25, 0.25, 0.5, 0.0,
            0.0, 0.3, 0.699_999_999, 0.000_000_001,
            0.6, 0.0, 0.0, 0.4,
        ];
        model(&NAMES, columns)
    }

    fn ranked(model: &Model) -> Ranking {
        let mut ranking = Ranking::new(model).unwrap();
        let edge = |speaker: usize, listener: usize, p_value: f64| {
            let name = |agent: usize| model.roster.agents()[agent].clone();
            let weight = model.combination.weight(speaker, listener);
            ranking::RankedEdge::new(name(speaker), name(listener), weight, p_value, p_value < 0.05)
        };
        // All but the tiny one.
        ranking.edges =
            Some(vec![edge(1, 0, 0.01), edge(0, 1, 0.5), edge(2, 1, 0.02), edge(1, 2, 0.04), edge(0, 3, 1.0)]);
        ranking
    }

    pub(in super::super) fn hostile() -> Network {
        let model = crowd();
        let ranking = ranked(&model);
        Network::new(&model, &ranking, &Choice::default()).unwrap().drawn(&model, &ranking)
    }

    /// One agent whom nobody hears; no model is that small, but a description may be.
    pub(in super::super) fn lonely() -> Network {
        Network { agents: vec!["solo".to_owned()], ..Network::default() }
    }

    fn watched() -> Model {
        let mut model = model(&["a", "b"], vec![1.0, 0.0, 0.75, 0.25]);
        let then = Combination::from_columns(vec![0.75, 0.25, 0.5, 0.5], 2).unwrap();
        let evidence = model.evidence.clone();
        model.track.history = vec![
            NetworkSnapshot::new(10, then, evidence.clone()),
            NetworkSnapshot::new(20, model.combination.clone(), evidence),
        ];
        model.track.times = vec![(10, "10".to_owned()), (20, "20".to_owned())];
        model.diagnostics.steps = Some(40);
        model
    }

    pub(in super::super) fn tracked() -> Network {
        let model = watched();
        Network::new(&model, &Ranking::new(&model).unwrap(), &Choice::default()).unwrap()
    }

    /// Another reader can read it.
    pub(in super::super) fn balanced(text: &str) {
        let options = roxmltree::ParsingOptions { allow_dtd: false, ..roxmltree::ParsingOptions::default() };
        roxmltree::Document::parse_with_options(text, options).unwrap();
    }

    #[test]
    fn edges_are_chosen() {
        let model = crowd();
        let ranking = ranked(&model);
        let count = |choice: Choice| Network::new(&model, &ranking, &choice).unwrap().edges.len();
        assert_eq!(count(Choice::default()), 6);
        assert_eq!(count(Choice { own: true, ..Choice::default() }), 10);
        assert_eq!(count(Choice { min_weight: 0.3, ..Choice::default() }), 4);
        assert_eq!(count(Choice { significant: true, ..Choice::default() }), 3);
        assert_eq!(count(Choice { min_weight: 2.0, ..Choice::default() }), 0);
    }

    #[test]
    fn weights_below_zero_are_counted_or_kept() {
        let model = model(&["a", "b"], vec![1.2, -0.2, 0.5, 0.5]);
        let ranking = Ranking::new(&model).unwrap();
        let network = Network::new(&model, &ranking, &Choice::default()).unwrap();
        assert_eq!((network.edges.len(), network.negative), (1, 1));
        let network = Network::new(&model, &ranking, &Choice { negative: true, ..Choice::default() }).unwrap();
        assert_eq!((network.edges.len(), network.negative, network.edges[0].weight), (2, 0, -0.2));
    }

    #[test]
    fn dense_and_sparse_models_are_the_same_network() {
        let dense = crowd();
        let mut sparse = dense.clone();
        sparse.combination = dense.combination.to_sparse();
        let network = |model: &Model| Network::new(model, &ranked(model), &Choice::default()).unwrap();
        let (dense, sparse) = (network(&dense), network(&sparse));
        assert_eq!((dense.edges, dense.agent_columns), (sparse.edges, sparse.agent_columns));
    }

    #[test]
    fn agents_keep_the_order_of_the_model_and_their_numbers() {
        let (model, network) = (crowd(), hostile());
        let found = influence(&model).unwrap();
        assert_eq!(network.agents, model.roster.agents());
        let column = |name: &str| &network.agent_columns.iter().find(|column| column.name == name).unwrap().values;
        assert_eq!(*column("influence"), Values::Real(found.influence.iter().copied().map(Some).collect()));
        assert_eq!(*column("self_weight"), Values::Real(vec![Some(0.5), Some(0.25), Some(0.699_999_999), Some(0.4)]));
        // Nobody counted posts.
        assert!(network.agent_columns.iter().all(|column| column.name != "posts"));
        assert!(network.looks.iter().all(|look| look.place.is_some() && look.size >= 8.0));
    }

    #[test]
    fn a_short_ranking_will_do_and_another_models_will_not() {
        let model = crowd();
        let mut ranking = ranked(&model);
        ranking.agents.truncate(1);
        let network = Network::new(&model, &ranking, &Choice::default()).unwrap();
        let Values::Whole(ranks) = &network.agent_columns[0].values else { panic!("ranks are counts") };
        assert_eq!(ranks.iter().flatten().collect::<Vec<_>>(), [&1]);
        if let Some(edges) = &mut ranking.edges {
            edges[0].weight += 0.1;
        }
        let told = Network::new(&model, &ranking, &Choice::default()).unwrap_err().to_string();
        assert!(told.contains("the ranking is of another model"), "{told}");
        ranking.edges = None;
        ranking.agents[0].agent = "stranger".to_owned();
        assert!(Network::new(&model, &ranking, &Choice::default()).is_err());
    }

    #[test]
    fn times_are_numbers_days_or_instants() {
        let track = |times: &[(usize, &str)]| {
            let mut track = Track::default();
            track.times = times.iter().map(|(step, time)| (*step, (*time).to_owned())).collect();
            track
        };
        assert_eq!(
            bounds(&track(&[(2, "102"), (5, "105")]), &[2, 5, 9]),
            (false, vec!["102".into(), "105".into(), "109".into()])
        );
        let days = track(&[(0, "2024-02-28T00:00:00Z"), (2, "2024-03-01T00:00:00Z")]);
        assert_eq!(
            bounds(&days, &[0, 2, 3]),
            (true, vec!["2024-02-28".into(), "2024-03-01".into(), "2024-03-02".into()])
        );
        let hours = track(&[(0, "2024-02-28T00:00:00Z"), (2, "2024-02-28T12:00:00Z")]);
        assert_eq!(bounds(&hours, &[0, 3]).1, ["2024-02-28T00:00:00Z", "2024-02-28T18:00:00Z"]);
        // One date alone says nothing of the length of a step.
        assert_eq!(bounds(&track(&[(4, "2024-02-28T00:00:00Z")]), &[4, 9]).1, ["2024-02-28", "2024-02-28"]);
        assert_eq!(bounds(&track(&[]), &[4, 9]), (false, vec!["4".into(), "9".into()]));
    }

    #[test]
    fn what_holds_in_the_end_is_the_last_moment() {
        let mut model = watched();
        model.track.history.pop();
        let network = Network::new(&model, &Ranking::new(&model).unwrap(), &Choice::default()).unwrap();
        let history = network.history.unwrap();
        assert_eq!(history.bounds, ["10", "39", "39"]);
        assert_eq!(history.weights, [vec![Some(0.5), Some(0.75)], vec![Some(0.25), None]]);
        assert_eq!(history.gone, [Edge { speaker: 1, listener: 0, weight: 0.0 }]);
        model.diagnostics.steps = None;
        let network = Network::new(&model, &Ranking::new(&model).unwrap(), &Choice::default()).unwrap();
        assert_eq!(network.history.unwrap().bounds, ["10", "10"]);
    }

    #[test]
    fn numbers_keep_their_digits() {
        for value in [0.1, 1.0 / 3.0, 1e-300, -2.5e-7, 12.0, 0.0, 1e-5] {
            assert_eq!(Cell::Real(value).to_string().parse::<f64>().unwrap(), value);
        }
        assert_eq!((Cell::Real(1e-9).to_string(), Cell::Real(3.0).to_string()), ("1e-9".into(), "3".into()));
    }
}
