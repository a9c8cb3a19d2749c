//! A network for export: agents and edges with their columns, and both over time where the model was tracked.
//!
//! In: a [`Model`], its [`Ranking`], and which edges are wanted ([`EdgeFilter`]). Out: an [`ExportNetwork`] with columns in the
//! model's order, so that every format has the same names and the same numbers.

use super::history::{History, history};
use super::table::{Cell, ColumnType, ColumnValues, ExportColumn, Field, Table};
use crate::network::places;
use crate::style::COLOURS;
use headwater::model::EdgeInterval;
use headwater::ranking::RankedAgent;
use headwater::{Error, Model, Ranking};
use std::collections::HashMap;

/// Up to this many agents get a position; the layout of more would take longer than the rest of the export.
const PLACED_AGENTS: usize = 5000;

/// Side of the square of positions.
const SIDE: f64 = 1000.0;

/// Which edges to write.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EdgeFilter {
    /// Only weights of at least this much.
    pub min_weight: f64,
    /// Only edges that are significant in the permutation test.
    pub significant: bool,
    /// Include negative weights, compared by absolute value.
    pub negative: bool,
    /// Include self-weights as self-loops.
    pub self_loops: bool,
}

impl EdgeFilter {
    pub(super) fn takes(&self, weight: f64) -> bool {
        weight != 0.0 && weight.abs() >= self.min_weight && (weight > 0.0 || self.negative)
    }
}

/// A network for other programs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExportNetwork {
    /// One or two sentences for the reader of the file.
    pub description: String,
    /// Columns of the whole network, one value each.
    pub facts: Vec<ExportColumn>,
    /// Names.
    pub agents: Vec<String>,
    /// Columns of the agents.
    pub agent_columns: Vec<ExportColumn>,
    /// Listener by listener.
    pub edges: Vec<Edge>,
    /// Columns of the edges.
    pub edge_columns: Vec<ExportColumn>,
    /// How agents are drawn; empty unless asked for.
    pub styles: Vec<NodeStyle>,
    /// Weights over time, where the model was tracked.
    pub history: Option<History>,
    /// Number of edges left out because their weight is negative.
    pub negative: usize,
}

/// A directed, weighted edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// Source.
    pub speaker: usize,
    /// Target.
    pub listener: usize,
    /// Weight that the listener gives the speaker.
    pub weight: f64,
}

/// How an agent is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeStyle {
    /// Diameter, which grows with the share of influence.
    pub size: f64,
    /// Red, green and blue of the hypothesis that the agent's own evidence supports.
    pub colour: (u8, u8, u8),
    /// Centre, where the network is small enough for a layout.
    pub position: Option<(f64, f64)>,
}

/// How a column is read from a row of the ranking.
enum RankedField {
    Real(fn(&RankedAgent) -> Option<f64>),
    Whole(fn(&RankedAgent) -> Option<usize>),
    Text(fn(&RankedAgent) -> Option<&String>),
}

const KNOWN: [(&str, RankedField); 25] = [
    ("rank", RankedField::Whole(|row| Some(row.rank))),
    ("influence", RankedField::Real(|row| Some(row.influence))),
    ("share", RankedField::Real(|row| row.share)),
    ("sign", RankedField::Real(|row| row.sign.map(f64::from))),
    ("share_low", RankedField::Real(|row| row.share_low)),
    ("share_high", RankedField::Real(|row| row.share_high)),
    ("centrality", RankedField::Real(|row| Some(row.centrality))),
    ("centrality_low", RankedField::Real(|row| row.centrality_low)),
    ("centrality_high", RankedField::Real(|row| row.centrality_high)),
    ("informativeness", RankedField::Real(|row| Some(row.informativeness))),
    ("origin", RankedField::Real(|row| Some(row.origin))),
    ("rank_low", RankedField::Whole(|row| row.rank_low)),
    ("rank_high", RankedField::Whole(|row| row.rank_high)),
    ("top_k_probability", RankedField::Real(|row| row.top_k_probability)),
    ("ahead_probability", RankedField::Real(|row| row.ahead_probability)),
    ("information", RankedField::Real(|row| row.information)),
    ("p_value", RankedField::Real(|row| row.p_value)),
    ("error_probability", RankedField::Real(|row| row.error_probability)),
    ("contrarian", RankedField::Text(|row| row.contrarian.as_ref())),
    ("contrarian_margin", RankedField::Real(|row| row.contrarian_margin)),
    ("contrarian_standard_errors", RankedField::Real(|row| row.contrarian_standard_errors)),
    ("posts", RankedField::Whole(|row| row.posts.and_then(|posts| usize::try_from(posts).ok()))),
    ("silent_share", RankedField::Real(|row| row.silent_share)),
    ("in_degree", RankedField::Whole(|row| row.in_degree)),
    ("pagerank", RankedField::Real(|row| row.pagerank)),
];

impl ExportNetwork {
    /// The network of a model, with the columns of a ranking of it.
    ///
    /// # Errors
    /// Where the ranking belongs to another model: it has unknown agents, or other weights. A ranking cut to its first rows is
    /// accepted; the other agents then lack its columns.
    pub fn new(model: &Model, ranking: &Ranking, filter: &EdgeFilter) -> Result<Self, Error> {
        let agents = model.roster.agents().to_vec();
        let mut rows: Vec<Option<&RankedAgent>> = vec![None; agents.len()];
        for row in &ranking.agents {
            rows[model.roster.agent(&row.agent)?] = Some(row);
        }
        let mut agent_columns: Vec<ExportColumn> =
            KNOWN.iter().map(|(name, known)| ExportColumn { name, values: values(known, &rows) }).collect();
        agent_columns.retain(|column| column.values.any_known());
        let own = (0..agents.len()).map(|agent| Some(model.combination.weight(agent, agent))).collect();
        agent_columns.push(ExportColumn { name: "self_weight", values: ColumnValues::Real(own) });

        let tested = tested(model, ranking)?;
        let significant = |speaker, listener| tested.get(&(speaker, listener)).is_some_and(|found| found.1);
        let wanted = |speaker, listener| {
            (filter.self_loops || speaker != listener) && (!filter.significant || significant(speaker, listener))
        };
        let heard = model.combination.edges().filter(|&(speaker, listener, _)| wanted(speaker, listener));
        let mut negative = 0;
        let mut edges = Vec::new();
        for (speaker, listener, weight) in heard {
            negative += usize::from(weight < 0.0 && !filter.negative);
            if filter.takes(weight) {
                edges.push(Edge { speaker, listener, weight });
            }
        }
        let test = |edge: &Edge| tested.get(&(edge.speaker, edge.listener));
        let mut edge_columns = Vec::new();
        if ranking.edges.is_some() {
            let p_values = edges.iter().map(|edge| test(edge).map(|found| found.0)).collect();
            let flags = edges.iter().map(|edge| test(edge).map(|found| found.1)).collect();
            edge_columns.push(ExportColumn { name: "p_value", values: ColumnValues::Real(p_values) });
            edge_columns.push(ExportColumn { name: "significant", values: ColumnValues::Flag(flags) });
        }
        edge_columns.extend(intervals(model, &edges));
        let history = history(model, &edges, filter, wanted);
        Ok(ExportNetwork {
            description: description(model, ranking),
            facts: facts(model, ranking),
            agents,
            agent_columns,
            edges,
            edge_columns,
            styles: Vec::new(),
            history,
            negative,
        })
    }

    /// Adds sizes, colours and positions, for formats that store a drawing.
    ///
    /// Positions do not depend on the edge filter.
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
        let styles = self.agents.iter().enumerate().map(|(agent, name)| {
            let row = rows.get(name.as_str());
            NodeStyle {
                size: 8.0 + 52.0 * row.and_then(|row| row.share).unwrap_or_default().clamp(0.0, 1.0).sqrt(),
                colour: colour(model, row.and_then(|row| row.contrarian.as_ref()).unwrap_or(&ranking.truth)),
                // The vertical axis of a figure points down, that of Gephi up.
                position: places.get(agent).map(|(x, y)| ((x - 0.5) * SIDE, (0.5 - y) * SIDE)),
            }
        });
        ExportNetwork { styles: styles.collect(), ..self }
    }

    pub(super) fn agent_table(&self) -> Table<'_> {
        let mut fields = vec![Field::complete("id", ColumnType::Text, |row| Cell::Text(&self.agents[row]))];
        fields.extend(self.agent_columns.iter().map(Field::from_column));
        Table { rows: self.agents.len(), fields }
    }

    pub(super) fn edge_table(&self) -> Table<'_> {
        let name = |agent: usize| Cell::Text(&self.agents[agent]);
        let mut fields = vec![
            Field::complete("source", ColumnType::Text, move |row| name(self.edges[row].speaker)),
            Field::complete("target", ColumnType::Text, move |row| name(self.edges[row].listener)),
            Field::complete("weight", ColumnType::Real, |row| Cell::Real(self.edges[row].weight)),
        ];
        fields.extend(self.edge_columns.iter().map(Field::from_column));
        Table { rows: self.edges.len(), fields }
    }

    pub(super) fn fact_table(&self) -> Table<'_> {
        Table { rows: 1, fields: self.facts.iter().map(Field::from_column).collect() }
    }
}

fn values(known: &RankedField, rows: &[Option<&RankedAgent>]) -> ColumnValues {
    let rows = rows.iter().copied();
    match known {
        RankedField::Real(get) => ColumnValues::Real(rows.map(|row| row.and_then(get)).collect()),
        RankedField::Whole(get) => {
            ColumnValues::Whole(rows.map(|row| row.and_then(get).map(|value| value as i64)).collect())
        }
        RankedField::Text(get) => ColumnValues::Text(rows.map(|row| row.and_then(get).cloned()).collect()),
    }
}

/// 90 % intervals of the weights, and probabilities that they are not zero, where the posterior was sampled and its chains
/// have converged.
fn intervals(model: &Model, edges: &[Edge]) -> Vec<ExportColumn> {
    let Some(posterior) = model.diagnostics.posterior.as_ref().filter(|posterior| posterior.converged()) else {
        return Vec::new();
    };
    let known: HashMap<(usize, usize), &EdgeInterval> =
        posterior.edges.iter().map(|edge| ((edge.speaker, edge.listener), edge)).collect();
    let column = |name, of: fn(&EdgeInterval) -> Option<f64>| {
        let value = |edge: &Edge| known.get(&(edge.speaker, edge.listener)).and_then(|found| of(found));
        ExportColumn { name, values: ColumnValues::Real(edges.iter().map(value).collect()) }
    };
    let mut columns = vec![
        column("low", |edge| Some(edge.low)),
        column("high", |edge| Some(edge.high)),
        column("probability", |edge| edge.probability),
    ];
    columns.retain(|column| column.values.any_known());
    columns
}

/// P-value and significance by speaker and listener.
type EdgeTests = HashMap<(usize, usize), (f64, bool)>;

fn tested(model: &Model, ranking: &Ranking) -> Result<EdgeTests, Error> {
    let mut tested = EdgeTests::new();
    for edge in ranking.edges.iter().flatten() {
        let (speaker, listener) = (model.roster.agent(&edge.source)?, model.roster.agent(&edge.target)?);
        let weight = model.combination.weight(speaker, listener);
        if weight != edge.weight {
            return Err(Error::Undefined {
                what: "significance of edges",
                reason: format!(
                    "the ranking belongs to another model: its weight of {} → {} is {}, the model's {weight}",
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
        "Influence network: an edge runs from speaker to listener, its weight is the listener's attention to the speaker. Method {}, adaptation {}; the network settles on {:?}. {}",
        model.method.name(),
        Cell::Real(model.adaptation),
        ranking.truth,
        ranking.verdict
    )
}

fn facts(model: &Model, ranking: &Ranking) -> Vec<ExportColumn> {
    let text = |text: &str| ColumnValues::Text(vec![Some(text.to_owned())]);
    let real = |value: f64| ColumnValues::Real(vec![Some(value)]);
    let facts = [
        ("truth", text(&ranking.truth)),
        ("agreement", real(ranking.agreement)),
        ("reference", text(&ranking.reference)),
        ("method", text(model.method.name())),
        ("adaptation", real(model.adaptation)),
        ("supported", ColumnValues::Flag(vec![Some(ranking.verdict.supported())])),
        ("verdict", text(&ranking.verdict.to_string())),
    ];
    facts.into_iter().map(|(name, values)| ExportColumn { name, values }).collect()
}

/// Red, green and blue of a hypothesis in the palette.
fn colour(model: &Model, hypothesis: &str) -> (u8, u8, u8) {
    let number = model.roster.hypothesis(hypothesis).unwrap_or_default();
    let code = u32::from_str_radix(&COLOURS[number % COLOURS.len()][1..], 16).unwrap_or_default();
    let [_, red, green, blue] = code.to_be_bytes();
    (red, green, blue)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use headwater::learn::whitened::WhitenedParams;
    use headwater::model::{NetworkSnapshot, TrueHypothesis};
    use headwater::{Combination, Evidence, Method, Roster, influence, ranking};

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

    fn hostile_model() -> Model {
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

    pub(in super::super) fn hostile() -> ExportNetwork {
        let model = hostile_model();
        let ranking = ranked(&model);
        ExportNetwork::new(&model, &ranking, &EdgeFilter::default()).unwrap().drawn(&model, &ranking)
    }

    /// One agent without edges; no model is that small, but an exported network may be.
    pub(in super::super) fn lonely() -> ExportNetwork {
        ExportNetwork { agents: vec!["solo".to_owned()], ..ExportNetwork::default() }
    }

    pub(in super::super) fn tracked_model() -> Model {
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

    pub(in super::super) fn tracked() -> ExportNetwork {
        let model = tracked_model();
        ExportNetwork::new(&model, &Ranking::new(&model).unwrap(), &EdgeFilter::default()).unwrap()
    }

    /// What a writer of XML writes, and how many characters it replaced; another reader must accept it.
    pub(in super::super) fn xml(
        write: impl Fn(&ExportNetwork, &mut Vec<u8>) -> Result<usize, std::io::Error>,
        network: &ExportNetwork,
    ) -> (String, usize) {
        let mut out = Vec::new();
        let replaced = write(network, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        balanced(&text);
        (text, replaced)
    }

    fn balanced(text: &str) {
        let options = roxmltree::ParsingOptions { allow_dtd: false, ..roxmltree::ParsingOptions::default() };
        roxmltree::Document::parse_with_options(text, options).unwrap();
    }

    #[test]
    fn edges_are_chosen() {
        let model = hostile_model();
        let ranking = ranked(&model);
        let count = |filter: EdgeFilter| ExportNetwork::new(&model, &ranking, &filter).unwrap().edges.len();
        assert_eq!(count(EdgeFilter::default()), 6);
        assert_eq!(count(EdgeFilter { self_loops: true, ..EdgeFilter::default() }), 10);
        assert_eq!(count(EdgeFilter { min_weight: 0.3, ..EdgeFilter::default() }), 4);
        assert_eq!(count(EdgeFilter { significant: true, ..EdgeFilter::default() }), 3);
        assert_eq!(count(EdgeFilter { min_weight: 2.0, ..EdgeFilter::default() }), 0);
    }

    #[test]
    fn weights_below_zero_are_counted_or_kept() {
        let model = model(&["a", "b"], vec![1.2, -0.2, 0.5, 0.5]);
        let ranking = Ranking::new(&model).unwrap();
        let network = ExportNetwork::new(&model, &ranking, &EdgeFilter::default()).unwrap();
        assert_eq!((network.edges.len(), network.negative), (1, 1));
        let network =
            ExportNetwork::new(&model, &ranking, &EdgeFilter { negative: true, ..EdgeFilter::default() }).unwrap();
        assert_eq!((network.edges.len(), network.negative, network.edges[0].weight), (2, 0, -0.2));
    }

    #[test]
    fn dense_and_sparse_models_are_the_same_network() {
        let dense = hostile_model();
        let mut sparse = dense.clone();
        sparse.combination = dense.combination.to_sparse();
        let network = |model: &Model| ExportNetwork::new(model, &ranked(model), &EdgeFilter::default()).unwrap();
        let (dense, sparse) = (network(&dense), network(&sparse));
        assert_eq!((dense.edges, dense.agent_columns), (sparse.edges, sparse.agent_columns));
    }

    #[test]
    fn agents_keep_the_order_of_the_model_and_their_numbers() {
        let (model, network) = (hostile_model(), hostile());
        let found = influence(&model).unwrap();
        assert_eq!(network.agents, model.roster.agents());
        let column = |name: &str| &network.agent_columns.iter().find(|column| column.name == name).unwrap().values;
        assert_eq!(*column("influence"), ColumnValues::Real(found.influence.iter().copied().map(Some).collect()));
        assert_eq!(
            *column("self_weight"),
            ColumnValues::Real(vec![Some(0.5), Some(0.25), Some(0.699_999_999), Some(0.4)])
        );
        // Posts were not counted.
        assert!(network.agent_columns.iter().all(|column| column.name != "posts"));
        assert!(network.styles.iter().all(|style| style.position.is_some() && style.size >= 8.0));
    }

    #[test]
    fn a_short_ranking_will_do_and_another_models_will_not() {
        let model = hostile_model();
        let mut ranking = ranked(&model);
        ranking.agents.truncate(1);
        let network = ExportNetwork::new(&model, &ranking, &EdgeFilter::default()).unwrap();
        let ColumnValues::Whole(ranks) = &network.agent_columns[0].values else { panic!("ranks are counts") };
        assert_eq!(ranks.iter().flatten().collect::<Vec<_>>(), [&1]);
        if let Some(edges) = &mut ranking.edges {
            edges[0].weight += 0.1;
        }
        let told = ExportNetwork::new(&model, &ranking, &EdgeFilter::default()).unwrap_err().to_string();
        assert!(told.contains("the ranking belongs to another model"), "{told}");
        ranking.edges = None;
        ranking.agents[0].agent = "unknown".to_owned();
        assert!(ExportNetwork::new(&model, &ranking, &EdgeFilter::default()).is_err());
    }
}
