//! The authors' released numbers, where they are available.
//!
//! In: the folder of third-party data. Out: matrices, curves and series as they are in the files.

use crate::files::read_text;
use crate::{Error, ReleasedParts};
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

    /// A column by name.
    fn column(&self, name: &str) -> Result<Vec<f64>, Error> {
        let missing = || Error::Column { path: self.path.clone(), name: name.to_owned(), met: self.header.clone() };
        let place = self.header.iter().position(|header| header == name).ok_or_else(missing)?;
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
    fn sorted_values_find_their_place() {
        assert_eq!(unsorted(&[3.0, 2.0, 1.0], &[0.1, 0.7, 0.2]), [1.0, 3.0, 2.0]);
    }
}
