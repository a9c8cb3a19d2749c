//! The authors' released numbers, where they are available.
//!
//! In: the folder of third-party data. Out: matrices, curves and series as they are in the files.

use crate::files::read_text;
use crate::{Error, ReleasedParts};
use headwater::panel::{PanelBuilder, Unit};
use headwater::{Panel, Roster};
use std::path::{Path, PathBuf};

/// The folder of third-party data; any part of it may be missing.
#[derive(Debug, Clone)]
pub(crate) struct ReleasedData {
    folder: PathBuf,
}

/// One of the paper's three Twitter networks.
#[derive(Debug, Clone)]
pub(crate) struct TwitterNetwork {
    pub(crate) name: &'static str,
    /// Passes of the released script over its data.
    pub(crate) passes: usize,
    /// Factor on μ after each batch.
    pub(crate) decay: f64,
    /// The most followed agent.
    pub(crate) hub: usize,
    pub(crate) panel: Panel,
    /// Perron vector of the follow graph's weights.
    pub(crate) original: Vec<f64>,
    /// Centralities as published.
    pub(crate) published: Vec<f64>,
    /// Influences as published, in the order of `published`.
    pub(crate) published_influence: Vec<f64>,
    /// Speaker, listener, weight.
    pub(crate) edges: Vec<(usize, usize, f64)>,
}

/// One group of people who revised their answers.
#[derive(Debug, Clone)]
pub(crate) struct PeopleGroup {
    pub(crate) name: String,
    pub(crate) condition: String,
    /// The account that everybody sees, where there is one. For comparison only.
    pub(crate) hub: Option<String>,
    /// An episode of three steps for each question.
    pub(crate) panel: Panel,
    /// Who is seen, and by whom.
    pub(crate) edges: Vec<(String, String)>,
}

/// Folders of people in experiments.
const PEOPLE: [&str; 2] = ["becker-2017", "clinicians-2023"];

/// Answers to one question.
const ANSWERS: [&str; 3] = ["response_1", "response_2", "response_3"];

/// Name, passes, decay, hub.
const NETWORKS: [(&str, usize, f64, usize); 3] =
    [("elon_musk", 250, 0.9996, 19), ("journalist", 150, 1.0, 25), ("ben", 250, 1.0, 17)];

impl ReleasedData {
    pub(crate) fn new(folder: &Path) -> Self {
        ReleasedData { folder: folder.to_owned() }
    }

    /// Which parts there are.
    pub(crate) fn parts(&self) -> ReleasedParts {
        ReleasedParts {
            simulations: self.folder.join("epfl-synthetic").is_dir(),
            twitter: self.folder.join("epfl-twitter").is_dir(),
        }
    }

    /// Whether the answers of people are there.
    pub(crate) fn has_people(&self) -> bool {
        PEOPLE.iter().all(|name| self.folder.join(name).join("responses.csv").is_file())
    }

    /// People who estimate quantities: a question is an episode.
    pub(crate) fn estimates(&self) -> Result<Vec<PeopleGroup>, Error> {
        let table = CellTable::read(&self.folder.join(PEOPLE[0]).join("responses.csv"), true)?;
        people(&table, "task", Some("is_hub"))
    }

    /// Clinicians who estimate a probability: a group has one question.
    pub(crate) fn clinicians(&self) -> Result<Vec<PeopleGroup>, Error> {
        let folder = self.folder.join(PEOPLE[1]);
        let mut groups = people(&CellTable::read(&folder.join("responses.csv"), true)?, "vignette", None)?;
        let table = CellTable::read(&folder.join("edges.csv"), true)?;
        let [group, source, target] = [table.place("group")?, table.place("source")?, table.place("target")?];
        for row in 0..table.rows.len() {
            let cell = |place: usize| table.cell(row, place);
            // Group numbers of the conditions overlap; who sees somebody is not alone.
            let found = groups.iter_mut().find(|known| known.name == cell(group) && known.condition == "Social");
            if let Some(found) = found {
                found.edges.push((cell(source).to_owned(), cell(target).to_owned()));
            }
        }
        Ok(groups)
    }

    /// A matrix of the simulations, row by row.
    pub(crate) fn matrix(&self, name: &str) -> Result<Option<Vec<Vec<f64>>>, Error> {
        let path = self.folder.join("epfl-synthetic").join(name);
        if !path.is_file() {
            return Ok(None);
        }
        let table = CellTable::read(&path, false)?;
        (0..table.rows.len()).map(|row| table.numbers(row, 0)).collect::<Result<_, _>>().map(Some)
    }

    /// An error curve of the simulations: step and error.
    pub(crate) fn curve(&self, name: &str) -> Result<Option<Vec<(f64, f64)>>, Error> {
        let path = self.folder.join("epfl-synthetic").join(format!("error_21_{name}.csv"));
        if !path.is_file() {
            return Ok(None);
        }
        let table = CellTable::read(&path, true)?;
        let (steps, errors) = (table.column("step")?, table.column("error")?);
        Ok(Some(steps.into_iter().zip(errors).collect()))
    }

    /// The share of steps at which agent 5 identifies the true state, by model.
    pub(crate) fn truth_rate(&self, model: &str) -> Result<Option<f64>, Error> {
        let path = self.folder.join("epfl-synthetic/state_true_rate.csv");
        if !path.is_file() {
            return Ok(None);
        }
        let table = CellTable::read(&path, true)?;
        let rates = table.column("rate_all")?;
        let row = table.rows.iter().position(|row| row.first().is_some_and(|name| name == model));
        Ok(row.map(|row| rates[row]))
    }

    /// The three Twitter networks.
    pub(crate) fn twitter(&self) -> Result<Vec<TwitterNetwork>, Error> {
        NETWORKS.into_iter().map(|network| self.network(network)).collect()
    }

    fn network(&self, (name, passes, decay, hub): (&'static str, usize, f64, usize)) -> Result<TwitterNetwork, Error> {
        let file = |what: &str| self.folder.join("epfl-twitter").join(format!("{name}_{what}.csv"));
        let beliefs = CellTable::read(&file("log_beliefs"), true)?;
        let names: Vec<String> = beliefs.header.iter().skip(1).cloned().collect();
        let roster = Roster::new(names.clone(), ["positive", "negative"])?;
        let cells: Vec<Vec<f64>> =
            (0..beliefs.rows.len()).map(|row| beliefs.numbers(row, 1)).collect::<Result<_, _>>()?;
        let agents = CellTable::read(&file("agents"), true)?;
        let edges = CellTable::read(&file("edges"), true)?;
        let weights = edges.column("weight")?;
        let number = |row: usize, place: usize| {
            let name = edges.rows[row].get(place).map_or("", String::as_str);
            names.iter().position(|known| known == name).ok_or_else(|| edges.problem(row, "an agent's name"))
        };
        let edges = (0..edges.rows.len())
            .map(|row| Ok((number(row, 0)?, number(row, 1)?, weights[row])))
            .collect::<Result<_, Error>>()?;
        let influence = CellTable::read(&file("authors_influence_as_released"), false)?;
        let sorted: Vec<f64> =
            (0..influence.rows.len()).map(|row| Ok(influence.numbers(row, 0)?[0])).collect::<Result<_, Error>>()?;
        let original = agents.column("original_perron")?;
        Ok(TwitterNetwork {
            name,
            passes,
            decay,
            hub,
            panel: Panel::complete(roster, cells.concat())?,
            published: agents.column("authors_learned_perron")?,
            // The file is in the order of the original centralities, highest first.
            published_influence: unsorted(&sorted, &original),
            original,
            edges,
        })
    }
}

/// The groups of a table of answers, in the order of their first rows.
fn people(table: &CellTable, question: &str, hub: Option<&str>) -> Result<Vec<PeopleGroup>, Error> {
    let [group, condition, agent, question] =
        [table.place("group")?, table.place("condition")?, table.place("agent")?, table.place(question)?];
    let hub = hub.map(|name| table.place(name)).transpose()?;
    let answers = [table.place(ANSWERS[0])?, table.place(ANSWERS[1])?, table.place(ANSWERS[2])?];
    let mut groups: Vec<((String, String), PanelBuilder, Option<String>)> = Vec::new();
    for row in 0..table.rows.len() {
        let cell = |place: usize| table.cell(row, place);
        let key = (cell(group).to_owned(), cell(condition).to_owned());
        let known = groups.iter().position(|(known, ..)| *known == key);
        let place = known.unwrap_or(groups.len());
        if known.is_none() {
            let hypotheses = ["high", "low"].map(str::to_owned).to_vec();
            groups.push((key, PanelBuilder::new(hypotheses, Unit::Steps), None));
        }
        let (_, builder, leader) = &mut groups[place];
        builder.set_episode(cell(question))?;
        for (step, answer) in (0..).zip(answers) {
            if !cell(answer).is_empty() {
                let value = cell(answer).parse().ok().filter(|value: &f64| value.is_finite());
                let value = value.ok_or_else(|| table.problem(row, "a number for an answer"))?;
                builder.push(step, cell(agent), &[value], 1)?;
            }
        }
        if hub.is_some_and(|hub| matches!(cell(hub).to_lowercase().as_str(), "1" | "1.0" | "true")) {
            *leader = Some(cell(agent).to_owned());
        }
    }
    let finished = groups.into_iter().map(|((name, condition), builder, hub)| {
        Ok(PeopleGroup { name, condition, hub, panel: builder.finish()?.scaled_to_first()?, edges: Vec::new() })
    });
    finished.collect()
}

/// Values that were sorted by a key, highest first, back in the order of the keys.
fn unsorted(sorted: &[f64], keys: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&a, &b| keys[b].total_cmp(&keys[a]));
    let mut out = vec![0.0; keys.len()];
    order.into_iter().zip(sorted).for_each(|(place, value)| out[place] = *value);
    out
}

/// A small table of text.
struct CellTable {
    path: PathBuf,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl CellTable {
    fn read(path: &Path, header: bool) -> Result<Self, Error> {
        let text = read_text(path)?;
        let mut rows: Vec<Vec<String>> =
            text.lines().map(|line| line.split(',').map(|cell| cell.trim().to_owned()).collect()).collect();
        let header = if header && !rows.is_empty() { rows.remove(0) } else { Vec::new() };
        Ok(CellTable { path: path.to_owned(), header, rows })
    }

    fn problem(&self, row: usize, wanted: &str) -> Error {
        let line = row + 1 + usize::from(!self.header.is_empty());
        Error::Cell { path: self.path.clone(), line, wanted: wanted.to_owned() }
    }

    /// The numbers of a row from a column on.
    fn numbers(&self, row: usize, from: usize) -> Result<Vec<f64>, Error> {
        let cells = self.rows[row].iter().skip(from);
        let numbers: Option<Vec<f64>> = cells.map(|cell| cell.parse().ok().filter(|v: &f64| v.is_finite())).collect();
        numbers.filter(|numbers| !numbers.is_empty()).ok_or_else(|| self.problem(row, "numbers"))
    }

    /// Where a column is.
    fn place(&self, name: &str) -> Result<usize, Error> {
        let missing = || Error::Column { path: self.path.clone(), name: name.to_owned(), met: self.header.clone() };
        self.header.iter().position(|header| header == name).ok_or_else(missing)
    }

    /// The text of a cell; none is empty.
    fn cell(&self, row: usize, place: usize) -> &str {
        self.rows[row].get(place).map_or("", String::as_str)
    }

    /// A column by name.
    fn column(&self, name: &str) -> Result<Vec<f64>, Error> {
        let place = self.place(name)?;
        let cell = |row: usize| {
            let cell = self.rows[row].get(place).and_then(|cell| cell.parse().ok()).filter(|v: &f64| v.is_finite());
            cell.ok_or_else(|| self.problem(row, &format!("a number in column {name:?}")))
        };
        (0..self.rows.len()).map(cell).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_people_become_episodes() {
        let folder = tempfile::tempdir().unwrap();
        for name in PEOPLE {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let (released, answers) = (ReleasedData::new(folder.path()), folder.path().join("becker-2017/responses.csv"));
        assert!(!released.has_people());
        let head = "group,condition,task,agent,is_hub,response_1,response_2,response_3\n";
        let rows = "4,Centralized,q1,a,1.0,10,10,10\n4,Centralized,q1,b,,20,15,\n4,Centralized,q1,c,,40,20,15\n4,Centralized,q2,a,1.0,1,1,1\n4,Centralized,q2,b,,3,,2\n9,Solo,q1,d,,1,1,1\n9,Solo,q1,e,,2,2,2\n";
        std::fs::write(&answers, format!("{head}{rows}")).unwrap();
        let cases = folder.path().join("clinicians-2023");
        std::fs::write(cases.join("responses.csv"), "group,condition,agent,vignette,response_1,response_2,response_3\n7,Control,k,v,1,2,3\n7,Control,l,v,2,2,2\n7,Social,m,v,5,6,7\n7,Social,n,v,9,8,7\n").unwrap();
        std::fs::write(cases.join("edges.csv"), "group,source,target\n7,m,n\n7,n,m\n").unwrap();
        assert!(released.has_people());
        let groups = released.estimates().unwrap();
        assert_eq!(groups.len(), 2);
        let first = &groups[0];
        assert_eq!((first.name.as_str(), first.hub.as_deref(), groups[1].hub.as_deref()), ("4", Some("a"), None));
        assert_eq!(
            (first.panel.steps(), first.panel.episodes().names().unwrap()),
            (6, &["q1".to_owned(), "q2".to_owned()][..])
        );
        assert_eq!(first.panel.absences(), [(2, 1)]);
        // First answers 10, 20, 40: median 20, absolute deviations 10, 0, 20.
        assert_eq!((first.panel.frame(0)[(2, 0)], first.panel.posts(2, 1)), (20.0 / (1.4826 * 10.0), 0));
        let groups = released.clinicians().unwrap();
        assert_eq!(groups.iter().map(|group| group.edges.len()).collect::<Vec<_>>(), [0, 2]);
        std::fs::write(&answers, format!("{head}4,Solo,q1,a,,ten,,\n")).unwrap();
        assert!(released.estimates().unwrap_err().to_string().contains("line 2: expected a number for an answer"));
    }

    #[test]
    fn sorted_values_find_their_place() {
        assert_eq!(unsorted(&[3.0, 2.0, 1.0], &[0.1, 0.7, 0.2]), [1.0, 3.0, 2.0]);
    }
}
