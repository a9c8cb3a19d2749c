//! Beliefs on disk: a long table (CSV or Parquet) or an array (`.npy`), streamed into or out of a panel.
//!
//! | module | format |
//! |---|---|
//! | [`table`] | long tables: CSV, Parquet, Arrow batches in memory |
//! | [`array`] | arrays: `.npy`, arrays in memory, frames of a stream |
//! | [`write`] | both, written frame by frame or row by row |
//! | [`grain`] | how finely the numbers of a file were written |

mod array;
mod grain;
mod table;
mod write;

pub use array::{ArrayNames, beliefs_from_array, beliefs_from_frames, frame_from_values, sides};
pub use grain::Grain;
pub use table::beliefs_from_batches;
pub use write::{BeliefsRows, BeliefsWriter};

use crate::Error;
use bytes::Bytes;
use headwater::{Panel, panel};
use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::Path;

/// More zero probabilities than this are a sign of rounding, not of certainty.
const MOST_ZEROS: f64 = 0.01;

/// A panel read from a file or a table, and what was noted while reading it.
#[derive(Debug)]
pub struct LoadedBeliefs {
    /// The beliefs.
    pub panel: Panel,
    /// Probabilities of zero that were raised.
    pub zeros: usize,
    /// Numbers read.
    pub cells: usize,
    /// How finely they were written.
    pub grain: Grain,
}

impl LoadedBeliefs {
    /// A warning where probabilities of zero were raised.
    pub fn raised(&self) -> Option<String> {
        let LoadedBeliefs { zeros, cells, .. } = self;
        (*zeros > 0).then(|| format!("{zeros} of {cells} probabilities were 0 and were raised to 1e-12"))
    }
}

/// The formats of beliefs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeliefsFormat {
    /// Long table, text.
    Csv,
    /// Long table, columnar.
    Parquet,
    /// Array.
    Npy,
}

impl BeliefsFormat {
    /// The file's extension.
    pub fn extension(self) -> &'static str {
        match self {
            BeliefsFormat::Csv => "csv",
            BeliefsFormat::Parquet => "parquet",
            BeliefsFormat::Npy => "npy",
        }
    }

    /// The format of a file with this name; CSV unless its extension says otherwise.
    pub fn from_path(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("npy") => BeliefsFormat::Npy,
            Some("parquet") => BeliefsFormat::Parquet,
            _ => BeliefsFormat::Csv,
        }
    }
}

/// Reads beliefs by extension: `.parquet`, `.npy`, otherwise CSV; `-` is CSV on standard input.
///
/// With `log_ratios` the numbers are log ψ(θ_0)/ψ(θ_j) instead of probabilities.
pub fn read_beliefs(path: &Path, log_ratios: bool) -> Result<LoadedBeliefs, Error> {
    if path == Path::new("-") {
        return table::read_csv(std::io::stdin().lock(), path, log_ratios);
    }
    if path.is_dir() {
        return Err(Error::file(path, "is a folder; a beliefs file is expected"));
    }
    let file = File::open(path).map_err(Error::io(path, "cannot read"))?;
    match BeliefsFormat::from_path(path) {
        BeliefsFormat::Npy => array::read_npy(BufReader::with_capacity(1 << 20, file), path, log_ratios),
        BeliefsFormat::Parquet => table::read_parquet(file, path, log_ratios),
        BeliefsFormat::Csv => table::read_csv(BufReader::with_capacity(1 << 18, file), path, log_ratios),
    }
}

/// What the numbers of a beliefs file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BeliefNumbers {
    /// Probabilities of all hypotheses.
    #[default]
    Probabilities,
    /// Log-ratios log ψ(θ_0)/ψ(θ_j).
    LogRatios,
    /// Opinions on any scale, in one column `value`, divided by the spread of first answers of their episode
    /// ([`Panel::scaled_to_first`]).
    ScaledValues,
    /// The same as they are.
    Values,
}

/// Hypotheses of values: a high one is a belief in the first.
const OF_VALUES: [&str; 2] = ["high", "low"];

/// Reads beliefs of one file, or of several: then each is an episode, named like its file. Files as [`read_beliefs`] takes them.
pub fn read_beliefs_of<P: AsRef<Path>>(paths: &[P], numbers: BeliefNumbers) -> Result<LoadedBeliefs, Error> {
    let mut loaded: Vec<LoadedBeliefs> =
        paths.iter().map(|path| read_numbers(path.as_ref(), numbers)).collect::<Result<_, _>>()?;
    if loaded.len() > 1 {
        loaded = vec![put_together(paths, loaded)?];
    }
    let Some(mut beliefs) = loaded.pop() else {
        return Err(Error::file(Path::new(""), "no beliefs file was given"));
    };
    if numbers == BeliefNumbers::ScaledValues {
        beliefs.panel = beliefs.panel.scaled_to_first().map_err(Error::data(paths[0].as_ref()))?;
    }
    Ok(beliefs)
}

fn read_numbers(path: &Path, numbers: BeliefNumbers) -> Result<LoadedBeliefs, Error> {
    let mut beliefs = read_beliefs(path, numbers != BeliefNumbers::Probabilities)?;
    if matches!(numbers, BeliefNumbers::ScaledValues | BeliefNumbers::Values) {
        let roster = beliefs.panel.roster();
        let array = BeliefsFormat::from_path(path) == BeliefsFormat::Npy;
        if roster.ratios() != 1 || (!array && roster.hypotheses()[1] != "value") {
            let met = roster.hypotheses()[1..].join(",");
            let wanted = if array { "an array of T×N numbers" } else { "one column \"value\"" };
            return Err(Error::file(path, format!("has the number columns {met:?}; values take {wanted}")));
        }
        let roster = headwater::Roster::new(roster.agents().to_vec(), OF_VALUES).map_err(Error::data(path))?;
        beliefs.panel = beliefs.panel.with_roster(roster).map_err(Error::data(path))?;
    }
    Ok(beliefs)
}

/// Several files as episodes of one panel.
fn put_together<P: AsRef<Path>>(paths: &[P], loaded: Vec<LoadedBeliefs>) -> Result<LoadedBeliefs, Error> {
    let stem = |path: &Path| path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let stems: Vec<String> = paths.iter().map(|path| stem(path.as_ref())).collect();
    let unique = |name: &String| stems.iter().filter(|stem| *stem == name).count() == 1;
    let (mut zeros, mut cells, mut grain) = (0, 0, None);
    let mut episodes = Vec::with_capacity(loaded.len());
    for ((path, name), one) in paths.iter().zip(&stems).zip(loaded) {
        if one.panel.episodes().names().is_some() {
            return Err(Error::file(
                path.as_ref(),
                "has a column episode; give it alone, or files without that column, one for each episode",
            ));
        }
        zeros += one.zeros;
        cells += one.cells;
        grain = Some(grain.map_or(one.grain, |grain: Grain| grain.with(one.grain)));
        let name = if unique(name) { name.clone() } else { path.as_ref().display().to_string() };
        episodes.push((name, one.panel));
    }
    let panel = Panel::from_episodes(&episodes).map_err(Error::data(paths[0].as_ref()))?;
    Ok(LoadedBeliefs { panel, zeros, cells, grain: grain.unwrap_or(Grain::Double) })
}

/// Beliefs of a file that is in memory; `path` names it in messages.
pub fn beliefs_from_bytes(
    bytes: Vec<u8>,
    format: BeliefsFormat,
    path: &Path,
    log_ratios: bool,
) -> Result<LoadedBeliefs, Error> {
    match format {
        BeliefsFormat::Npy => array::read_npy(Cursor::new(bytes), path, log_ratios),
        BeliefsFormat::Parquet => table::read_parquet(Bytes::from(bytes), path, log_ratios),
        BeliefsFormat::Csv => table::read_csv(bytes.as_slice(), path, log_ratios),
    }
}

/// Log-ratios of one belief; returns how many probabilities of zero were raised.
fn ratios_of(
    values: &[f64],
    ratios: &mut [f64],
    hypotheses: &[String],
    log_ratios: bool,
) -> Result<usize, headwater::Error> {
    if !log_ratios {
        return panel::log_ratios(values, ratios, hypotheses);
    }
    if let Some(bad) = values.iter().position(|value| !value.is_finite()) {
        return Err(headwater::Error::Belief {
            hypothesis: hypotheses[bad + 1].clone(),
            problem: format!("found {}; a log-ratio must be a finite number", values[bad]),
        });
    }
    ratios.copy_from_slice(values);
    Ok(0)
}

fn check_zeros(path: &Path, zeros: usize, cells: usize, first: Option<&str>) -> Result<(), Error> {
    if zeros as f64 <= MOST_ZEROS * cells as f64 {
        return Ok(());
    }
    Err(Error::place(
        path,
        first.unwrap_or_default(),
        format!(
            "{zeros} of {cells} probabilities are zero (this is the first); more than {}% says that they were rounded. Write more decimals, or log-ratios",
            100.0 * MOST_ZEROS
        ),
    ))
}
