//! Edges: CSV `source,target[,weight]`, the source influences the target (the target follows the source).

use crate::cells::may_be_neutralised;
use crate::{CsvText, Error, folded_name, matched_names, restored_cell};
use headwater::Roster;
use headwater::graph::Graph;
use headwater::words::count;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The rows of an edge file, checked but not yet tied to a roster.
#[derive(Debug, Clone, PartialEq)]
pub struct Edges {
    path: PathBuf,
    rows: Vec<EdgeRow>,
    /// Unweighted rows that said the same as an earlier one.
    pub repeated: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct EdgeRow {
    line: u64,
    source: String,
    target: String,
    weight: Option<f64>,
}

/// Reads an edge file.
pub fn read_edges(path: &Path) -> Result<Edges, Error> {
    edges_from_reader(File::open(path).map_err(Error::io(path, "cannot read"))?, path)
}

/// Edges of a CSV file that is read from elsewhere; `path` names it in messages.
pub fn edges_from_reader(from: impl Read, path: &Path) -> Result<Edges, Error> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(from);
    let header = reader.headers().map_err(|error| Error::file(path, error.to_string()))?.clone();
    let column = |name: &str| header.iter().position(|header| header.trim().eq_ignore_ascii_case(name));
    let (Some(source), Some(target)) = (column("source"), column("target")) else {
        let met = header.iter().collect::<Vec<_>>().join(",");
        return Err(Error::place(path, "line 1", format!("columns are {met:?}; expected source,target[,weight]")));
    };
    let weight = column("weight");
    let rows = reader.records().map(|record| {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, |position| position.line());
            Error::place(path, format!("line {line}"), error.to_string())
        })?;
        let line = record.position().map_or(0, |position| position.line());
        let text = |column: usize| record.get(column).map(str::trim).unwrap_or_default().to_owned();
        let weight = match weight.and_then(|column| record.get(column)).map(str::trim) {
            None | Some("") => None,
            // What is no number is none that is allowed, either.
            Some(text) => Some((text.parse().unwrap_or(f64::NAN), format!("{text:?}"))),
        };
        Ok((line, text(source), text(target), weight))
    });
    let edges = collect(path, rows)?;
    // Marks that we put before names which a spreadsheet would run.
    let ours = may_be_neutralised(edges.rows.iter().flat_map(|row| [row.source.as_str(), row.target.as_str()]));
    Ok(if ours { edges.renamed(|name| restored_cell(name).to_owned()) } else { edges })
}

/// A row as it came: where, both names, and the weight with how it was written.
type Raw = (u64, String, String, Option<(f64, String)>);

fn collect(path: &Path, raw: impl Iterator<Item = Result<Raw, Error>>) -> Result<Edges, Error> {
    let mut rows: Vec<EdgeRow> = Vec::new();
    let mut seen: HashMap<(String, String), u64> = HashMap::new();
    let mut repeated = 0;
    for row in raw {
        let (line, source, target, weight) = row?;
        for (name, column) in [(&source, "source"), (&target, "target")] {
            if name.is_empty() {
                let place = format!("line {line}, column {column}");
                return Err(Error::place(path, place, "is empty; an agent's name is expected"));
            }
        }
        let weight = match weight {
            Some((weight, text)) if !(weight.is_finite() && weight >= 0.0) => {
                return Err(Error::place(
                    path,
                    format!("line {line}, column weight"),
                    format!("found {text}; a weight must be a number of at least 0"),
                ));
            }
            weight => weight.map(|(weight, _)| weight),
        };
        if let Some(first) = seen.insert((source.clone(), target.clone()), line) {
            if weight.is_some() {
                return Err(Error::place(
                    path,
                    format!("line {line}"),
                    format!("the edge {source} → {target} is already on line {first}; keep one"),
                ));
            }
            repeated += 1;
            continue;
        }
        rows.push(EdgeRow { line, source, target, weight });
    }
    if rows.is_empty() {
        return Err(Error::file(path, "holds no edges"));
    }
    let unweighted = rows.iter().find(|row| row.weight.is_none());
    if let Some(row) = unweighted
        && rows.iter().any(|row| row.weight.is_some())
    {
        return Err(Error::place(
            path,
            format!("line {}, column weight", row.line),
            "is empty, but other edges have a weight; give all of them one, or none",
        ));
    }
    Ok(Edges { path: path.to_owned(), rows, repeated })
}

impl Edges {
    /// From rows in memory: source, target, weight; lines in messages are numbered from 1, `path` names them all.
    pub fn from_rows(
        path: &Path,
        rows: impl IntoIterator<Item = (String, String, Option<f64>)>,
    ) -> Result<Self, Error> {
        let numbered = (1..).zip(rows);
        collect(
            path,
            numbered.map(|(line, (source, target, weight))| {
                Ok((line, source, target, weight.map(|weight| (weight, weight.to_string()))))
            }),
        )
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// With other names.
    pub fn renamed(mut self, mut rename: impl FnMut(&str) -> String) -> Self {
        for row in &mut self.rows {
            (row.source, row.target) = (rename(&row.source), rename(&row.target));
        }
        self
    }

    /// Under the names of a roster, where these are the same up to case and a leading `@` ([`matched_names`]), and which
    /// name became which.
    pub fn matched(self, roster: &Roster) -> (Self, BTreeMap<String, String>) {
        let mut names = self.agents();
        // A name that is found as we would have written it needs no other.
        names.retain(|name| roster.agent(name).is_ok() || index(roster, name).is_err());
        let others = roster.agents().iter().map(String::as_str);
        let matches = matched_names(names.iter().map(String::as_str), others, folded_name);
        (if matches.is_empty() { self } else { self.under(&matches) }, matches)
    }

    /// With these names replaced.
    pub fn under(self, names: &BTreeMap<String, String>) -> Self {
        self.renamed(|name| names.get(name).map_or(name, String::as_str).to_owned())
    }

    /// Those between agents of a roster.
    pub fn among(mut self, roster: &Roster) -> Self {
        self.rows.retain(|row| index(roster, &row.source).is_ok() && index(roster, &row.target).is_ok());
        self
    }

    /// Agents of a roster that some edge names, [`Edges::matched`] included, and a warning that the others are left out, where
    /// there are others. `None` too where it names fewer than two agents: such a graph is refused.
    ///
    /// A network is learned on a graph among these agents, as in the pipeline from posts.
    pub fn inside(&self, roster: &Roster) -> Option<(Vec<usize>, String)> {
        let (edges, _) = self.clone().matched(roster);
        let named: HashSet<usize> = edges.agents().iter().filter_map(|name| index(roster, name).ok()).collect();
        let (inside, outside): (Vec<usize>, Vec<usize>) =
            (0..roster.agents().len()).partition(|agent| named.contains(agent));
        (!outside.is_empty() && inside.len() >= 2).then(|| {
            let names = count(outside.len(), "agent");
            (inside, format!("{names} outside the graph ({}): their beliefs are left out", roster.list(&outside)))
        })
    }

    /// The graph among the agents of a roster, names [`Edges::matched`]; and what names other agents and is left out.
    ///
    /// # Errors
    /// No edge is between two agents of the roster.
    pub fn graph_among(&self, roster: &Roster) -> Result<(Graph, GraphNotes), Error> {
        let (edges, matched) = self.clone().matched(roster);
        let mut absent = edges.agents();
        absent.retain(|name| index(roster, name).is_err());
        let all = edges.len();
        let kept = edges.among(roster);
        if kept.is_empty() {
            let shown: Vec<String> = absent.iter().take(NAMED).map(|name| format!("{name:?}")).collect();
            return Err(Error::NoEdgeAmongAgents { path: self.path.clone(), named: shown.join(", ") });
        }
        let edges = all - kept.len();
        let absent = (!absent.is_empty()).then_some(AbsentAgents { agents: absent, edges });
        Ok((kept.graph(roster)?, GraphNotes { matched, absent }))
    }

    /// Names in order of first appearance.
    pub fn agents(&self) -> Vec<String> {
        let mut seen = HashMap::new();
        let mut names: Vec<String> = Vec::new();
        for name in self.rows.iter().flat_map(|row| [&row.source, &row.target]) {
            if seen.insert(name.as_str(), ()).is_none() {
                names.push(name.clone());
            }
        }
        names
    }

    /// (speaker, listener, weight) by index into a list of names.
    pub fn indexed(&self, roster: &Roster) -> Result<Vec<(usize, usize, Option<f64>)>, Error> {
        let strangers: Vec<String> = self.agents().into_iter().filter(|name| index(roster, name).is_err()).collect();
        if let Some(first) = strangers.first() {
            let row = self.rows.iter().find(|row| row.source == *first || row.target == *first);
            let shown = strangers.iter().take(5).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            let more = if strangers.len() > 5 { format!(" and {} more", strangers.len() - 5) } else { String::new() };
            return Err(Error::place(
                &self.path,
                format!("line {}", row.map_or(0, |row| row.line)),
                format!(
                    "the graph names agents that never speak: {shown}{more}; remove them from the graph, or add their beliefs"
                ),
            ));
        }
        let index = |name: &str| index(roster, name).map_err(Error::data(&self.path));
        self.rows.iter().map(|row| Ok((index(&row.source)?, index(&row.target)?, row.weight))).collect()
    }

    /// The graph over a roster.
    pub fn graph(&self, roster: &Roster) -> Result<Graph, Error> {
        let edges = self.indexed(roster)?.into_iter().map(|(speaker, listener, _)| (speaker, listener));
        Graph::new(roster.agents().len(), edges).map_err(Error::data(&self.path))
    }
}

/// The agent of a name, or of the same name as we would have written it for a spreadsheet.
fn index(roster: &Roster, name: &str) -> Result<usize, headwater::Error> {
    roster.agent(name).or_else(|error| roster.agent(&CsvText::Neutralised.cell(name)).map_err(|_| error))
}

/// Names shown in a message.
const NAMED: usize = 5;

/// What should be known of a graph among agents with beliefs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphNotes {
    /// Names of the graph that stand for another name of the beliefs.
    pub matched: BTreeMap<String, String>,
    /// Agents of the graph without beliefs.
    pub absent: Option<AbsentAgents>,
}

impl GraphNotes {
    /// One warning for each.
    pub fn warnings(&self) -> Vec<String> {
        let pairs = || self.matched.iter().take(NAMED).map(|(name, other)| format!("{name:?} is {other:?}"));
        let more = if self.matched.len() > NAMED { ", …" } else { "" };
        let matched = (!self.matched.is_empty()).then(|| {
            let names = count(self.matched.len(), "name");
            format!("{names} matched up to case and a leading @ ({}{more})", pairs().collect::<Vec<_>>().join(", "))
        });
        matched.into_iter().chain(self.absent.as_ref().map(ToString::to_string)).collect()
    }
}

/// Agents of a graph that have no beliefs, and the edges left out with them. Its text is a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AbsentAgents {
    /// Their names, in order of first appearance.
    pub agents: Vec<String>,
    /// Edges to or from them.
    pub edges: usize,
}

impl std::fmt::Display for AbsentAgents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: Vec<String> = self.agents.iter().take(NAMED).map(|name| format!("{name:?}")).collect();
        let more = if self.agents.len() > NAMED { ", …" } else { "" };
        write!(
            f,
            "{} of the graph without beliefs ({}{more}): left out, with {}",
            count(self.agents.len(), "agent"),
            shown.join(", "),
            count(self.edges, "edge")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Edges, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("edges.csv");
        std::fs::write(&path, text).unwrap();
        read_edges(&path)
    }

    fn roster_of(agents: &[&str]) -> Roster {
        Roster::new(agents.iter().copied(), ["x", "y"]).unwrap()
    }

    #[test]
    fn edges_are_read_with_and_without_weights() {
        let edges = read("source,target\na,b\nb,a\na,b\n").unwrap();
        assert_eq!((edges.agents(), edges.repeated), (vec!["a".into(), "b".into()], 1));
        let roster = Roster::new(["b", "a"], ["x", "y"]).unwrap();
        assert_eq!(edges.graph(&roster).unwrap().speakers(), [vec![1], vec![0]]);
        let few = edges.clone().renamed(|name| name.replace('b', "c")).among(&roster);
        assert!(few.is_empty() && edges.clone().among(&roster).len() == 2);
        let edges = read("\u{feff}target,weight,source\r\nb,0.5,a\r\n").unwrap();
        assert_eq!(edges.indexed(&roster).unwrap(), [(1, 0, Some(0.5))]);
    }

    #[test]
    fn bad_edges_are_named() {
        let say = |text: &str| read(text).unwrap_err().to_string();
        assert!(say("from,to\na,b\n").contains("line 1: columns are \"from,to\""));
        assert!(say("source,target\na,\n").contains("line 2, column target: is empty"));
        assert!(say("source,target,weight\na,b,-1\n").contains("line 2, column weight: found \"-1\""));
        assert!(say("source,target,weight\na,b,1\na,b,1\n").contains("already on line 2"));
        assert!(say("source,target,weight\na,b,1\nb,a,\n").contains("line 3, column weight: is empty"));
        assert!(say("source,target\n").contains("holds no edges"));
        let roster = Roster::new(["b", "a"], ["x", "y"]).unwrap();
        let stranger = read("source,target\na,b\nzoe,a\n").unwrap().graph(&roster).unwrap_err().to_string();
        assert!(stranger.contains("line 3") && stranger.contains("never speak: \"zoe\""), "{stranger}");
    }

    #[test]
    fn agents_without_beliefs_are_left_out_and_named() {
        let roster = Roster::new(["b", "a"], ["x", "y"]).unwrap();
        let (graph, notes) = read("source,target\na,b\nzoe,a\nb,max\n").unwrap().graph_among(&roster).unwrap();
        assert_eq!(graph.speakers(), [vec![1], vec![]]);
        assert_eq!(
            notes.warnings(),
            ["2 agents of the graph without beliefs (\"zoe\", \"max\"): left out, with 2 edges"]
        );
        assert_eq!(read("source,target\na,b\n").unwrap().graph_among(&roster).unwrap().1, GraphNotes::default());
        // Gephi writes its columns with capitals.
        assert_eq!(read("Source,Target,Weight\na,b,2\n").unwrap().indexed(&roster).unwrap(), [(1, 0, Some(2.0))]);
        let none = read("source,target\nX,Y\n").unwrap().graph_among(&roster).unwrap_err().to_string();
        assert!(none.contains("no edge is between two agents") && none.contains("\"X\", \"Y\""), "{none}");
    }

    #[test]
    fn names_match_up_to_case_and_an_at_sign() {
        let roster = Roster::new(["ann", "@Bob", "cleo", "CLEO", "dan"], ["x", "y"]).unwrap();
        let edges = read("source,target\n@Ann,bob\nCleo,@Ann\ncleo,bob\n").unwrap();
        let (graph, notes) = edges.graph_among(&roster).unwrap();
        assert_eq!(graph.speakers(), [vec![3], vec![0, 2], vec![], vec![], vec![]]);
        assert_eq!(
            notes.warnings(),
            [
                "3 names matched up to case and a leading @ (\"@Ann\" is \"ann\", \"Cleo\" is \"CLEO\", \"bob\" is \"@Bob\")"
            ]
        );
        let (inside, warning) = edges.inside(&roster).unwrap();
        assert_eq!(inside, [0, 1, 2, 3]);
        assert_eq!(warning, "1 agent outside the graph (dan): their beliefs are left out");
        assert_eq!(edges.inside(&roster_of(&["ann", "@Bob", "cleo", "CLEO"])), None, "nobody is outside");
        assert_eq!(edges.inside(&roster_of(&["ann", "x", "y"])), None, "one agent inside");
        // Two candidates: nobody knows which is meant.
        let roster = Roster::new(["ann", "ANN", "bob"], ["x", "y"]).unwrap();
        assert!(edges.graph_among(&roster).is_err());
    }

    #[test]
    fn neutralised_names_are_restored_and_names_of_others_are_kept() {
        // As we write them.
        let edges = read("source,target\n'-x,''=y\n").unwrap();
        assert_eq!(edges.agents(), ["-x", "'=y"]);
        // Somebody else's file: it has a name as it is.
        assert_eq!(read("source,target\n'-x,=y\n").unwrap().agents(), ["'-x", "=y"]);
        // Somebody else's file without such a name still finds its agents.
        let roster = Roster::new(["'-x", "a"], ["x", "y"]).unwrap();
        let edges = read("source,target\n'-x,a\n").unwrap();
        assert_eq!(edges.graph(&roster).unwrap().speakers(), [vec![], vec![0]]);
        let roster = Roster::new(["'-x", "-x"], ["x", "y"]).unwrap();
        let edges = read("source,target\n'-x,''-x\n").unwrap();
        assert_eq!(edges.indexed(&roster).unwrap(), [(1, 0, None)]);
    }
}
