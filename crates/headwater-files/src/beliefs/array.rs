//! Arrays of T×N×numbers: `.npy` files and arrays in memory, frame by frame into a panel.

use super::grain::GrainDetector;
use super::{LoadedBeliefs, check_zeros, ratios_of};
use crate::Error;
use crate::limit::check_hypotheses;
use crate::npy::{NpyHeader, NpyType};
use headwater::panel::{self, Times};
use headwater::{Panel, Roster};
use rayon::prelude::*;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Numbers of an array read at a time.
const FLOATS_AT_ONCE: usize = 1 << 18;

pub(super) fn read_npy(mut reader: impl Read + Seek, path: &Path, log_ratios: bool) -> Result<LoadedBeliefs, Error> {
    let unreadable = || Error::io(path, "cannot read");
    let size = reader.seek(SeekFrom::End(0)).map_err(unreadable())?;
    reader.rewind().map_err(unreadable())?;
    let header = NpyHeader::read(&mut reader, path)?;
    if !matches!(header.kind, NpyType::Float64 | NpyType::Float32) {
        return Err(Error::file(path, "does not hold float64 or float32 numbers; convert it with .astype(float)"));
    }
    let (steps, agents, values) =
        sides(&header.shape, log_ratios).map_err(|problem| Error::file(path, format!("has {problem}")))?;
    let header_end = reader.stream_position().map_err(unreadable())?;
    let (met, needed) = (size.saturating_sub(header_end), header.bytes());
    if needed.is_none_or(|needed| needed as u64 != met) {
        let needed = needed.map_or("more than a machine holds".to_owned(), |needed| needed.to_string());
        return Err(Error::file(
            path,
            format!(
                "is truncated or damaged: {met} bytes of numbers found, {needed} needed for shape {:?}; write it again",
                header.shape
            ),
        ));
    }
    // Fortran order scatters a frame over the whole file, so that one is read as a whole and turned.
    let whole = if header.fortran {
        let mut whole = vec![0.0; steps * agents * values];
        header.floats(&mut reader, &mut whole).map_err(unreadable())?;
        Some(whole)
    } else {
        None
    };
    let cell = |step: usize, agent: usize, value: usize| step + steps * (agent + agents * value);
    beliefs_from_frames(path, (steps, agents, values), log_ratios, None, |first, frames| match &whole {
        None => header.floats(&mut reader, frames).map_err(unreadable()),
        Some(whole) => {
            for (position, out) in frames.iter_mut().enumerate() {
                let (step, agent) = (first + position / (agents * values), position / values % agents);
                *out = whole[cell(step, agent, position % values)];
            }
            Ok(())
        }
    })
}

/// T, N and numbers per belief of an array of this shape, or what is wrong with it.
pub fn sides(shape: &[usize], log_ratios: bool) -> Result<(usize, usize, usize), String> {
    let wanted = if log_ratios { "(T, N, H) or (T, N)" } else { "(T, N, number of hypotheses)" };
    match shape[..] {
        [steps, agents] if log_ratios => Ok((steps, agents, 1)),
        [steps, agents, values] => Ok((steps, agents, values)),
        _ => Err(format!("shape {shape:?}; expected {wanted}")),
    }
}

/// Names of agents and hypotheses, where an array's own numbers will not do.
pub type ArrayNames = (Vec<String>, Vec<String>);

/// Beliefs of an array of T×N×numbers; `path` names it in messages. `read` fills frames, agent by agent, from a step on: it is
/// asked for all steps in order, some at a time. NaN for all numbers of a belief is silence.
pub fn beliefs_from_frames(
    path: &Path,
    sides: (usize, usize, usize),
    log_ratios: bool,
    names: Option<ArrayNames>,
    mut read: impl FnMut(usize, &mut [f64]) -> Result<(), Error>,
) -> Result<LoadedBeliefs, Error> {
    let mut reader = ArrayReader::new(path, sides, log_ratios, names)?;
    let (steps, agents, values) = sides;
    let at_once = (FLOATS_AT_ONCE / (agents * values)).clamp(1, steps);
    let mut buffer = vec![0.0; at_once * agents * values];
    for first in (0..steps).step_by(at_once) {
        let frames = &mut buffer[..at_once.min(steps - first) * agents * values];
        read(first, frames)?;
        reader.read(first, frames)?;
    }
    reader.finish()
}

/// The same of an array in memory in C order, which is not copied.
pub fn beliefs_from_array(
    path: &Path,
    sides: (usize, usize, usize),
    log_ratios: bool,
    names: Option<ArrayNames>,
    array: &[f64],
) -> Result<LoadedBeliefs, Error> {
    let mut reader = ArrayReader::new(path, sides, log_ratios, names)?;
    reader.read(0, array)?;
    reader.finish()
}

/// Turns frames of an array into log-ratios, on all threads.
struct ArrayReader<'a> {
    path: &'a Path,
    sides: (usize, usize, usize),
    log_ratios: bool,
    roster: Roster,
    log_beliefs: Vec<f64>,
    /// Places of silent cells, T×N.
    silent: Vec<usize>,
    zeros: usize,
    first_zero: Option<String>,
    grain: GrainDetector,
}

impl<'a> ArrayReader<'a> {
    fn new(
        path: &'a Path,
        sides: (usize, usize, usize),
        log_ratios: bool,
        names: Option<ArrayNames>,
    ) -> Result<Self, Error> {
        let (steps, agents, values) = sides;
        if steps == 0 {
            return Err(Error::file(path, "holds no time steps"));
        }
        let hypotheses = values + usize::from(log_ratios);
        check_hypotheses(path, hypotheses)?;
        // Before names are made: an array without numbers may state any number of agents.
        if hypotheses < 2 {
            return Err(Error::data(path)(headwater::Error::TooFewHypotheses { hypotheses }));
        }
        let roster = match names {
            None => Roster::numbered(agents, values + usize::from(log_ratios)),
            Some((agents, hypotheses)) => Roster::new(agents, hypotheses),
        };
        let roster = roster.map_err(Error::data(path))?;
        let met = (roster.agents().len(), roster.hypotheses().len());
        if met != (agents, values + usize::from(log_ratios)) {
            return Err(Error::data(path)(headwater::Error::Shape {
                what: "names",
                met: format!("{} agents and {} hypotheses", met.0, met.1),
                wanted: format!("{agents} and {}", values + usize::from(log_ratios)),
            }));
        }
        let log_beliefs = vec![0.0; steps * agents * roster.ratios()];
        let grain = GrainDetector::new();
        Ok(ArrayReader {
            path,
            sides,
            log_ratios,
            roster,
            log_beliefs,
            silent: Vec::new(),
            zeros: 0,
            first_zero: None,
            grain,
        })
    }

    /// Frames from a step on.
    fn read(&mut self, first: usize, frames: &[f64]) -> Result<(), Error> {
        let (_, agents, values) = self.sides;
        let (path, roster, log_ratios, grain) = (self.path, &self.roster, self.log_ratios, self.grain);
        let width = agents * roster.ratios();
        let out = self.log_beliefs[first * width..].par_chunks_exact_mut(width);
        let checked: Vec<Result<CheckedFrame, Error>> = (frames.par_chunks_exact(agents * values).zip(out).enumerate())
            .map(|(frame, (values, out))| {
                array_frame(values, out, roster, log_ratios, grain).map_err(|(agent, problem)| {
                    Error::place(path, format!("cell [{}, {agent}]", first + frame), problem)
                })
            })
            .collect();
        for (step, checked) in (first..).zip(checked) {
            let checked = checked?;
            self.silent.extend(checked.silent.iter().map(|agent| step * agents + agent));
            self.zeros += checked.zeros;
            self.grain.merge(checked.grain);
            if let (None, Some(agent)) = (&self.first_zero, checked.first_zero) {
                self.first_zero = Some(format!("cell [{step}, {agent}]"));
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<LoadedBeliefs, Error> {
        let (steps, agents, values) = self.sides;
        let cells = steps * agents * values;
        check_zeros(self.path, self.zeros, cells, self.first_zero.as_deref())?;
        let posts = (!self.silent.is_empty()).then(|| {
            let mut posts = vec![1; steps * agents];
            self.silent.iter().for_each(|&cell| posts[cell] = 0);
            posts
        });
        let times = Times::Steps((0..steps as i64).collect());
        let panel = Panel::new(self.roster, times, self.log_beliefs, posts).map_err(Error::data(self.path))?;
        Ok(LoadedBeliefs { panel, zeros: self.zeros, cells, grain: self.grain.grain() })
    }
}

/// One frame of a stream, agent by agent, as N×H log-ratios in column order, and who was silent; the cells of the silent are
/// left as they are.
pub fn frame_from_values(
    path: &Path,
    step: usize,
    values: &[f64],
    roster: &Roster,
    log_ratios: bool,
    out: &mut [f64],
) -> Result<Vec<bool>, Error> {
    let checked = array_frame(values, out, roster, log_ratios, GrainDetector::new())
        .map_err(|(agent, problem)| Error::place(path, format!("cell [{step}, {agent}]"), problem))?;
    let mut silent = vec![false; roster.agents().len()];
    checked.silent.iter().for_each(|&agent| silent[agent] = true);
    Ok(silent)
}

/// What was noted in one frame of an array.
struct CheckedFrame {
    silent: Vec<usize>,
    zeros: usize,
    first_zero: Option<usize>,
    grain: GrainDetector,
}

/// Checks one frame (agent by agent) and writes its log-ratios in column order.
fn array_frame(
    values: &[f64],
    out: &mut [f64],
    roster: &Roster,
    log_ratios: bool,
    grain: GrainDetector,
) -> Result<CheckedFrame, (usize, String)> {
    let agents = roster.agents().len();
    let mut checked = CheckedFrame { silent: Vec::new(), zeros: 0, first_zero: None, grain };
    let mut ratios = vec![0.0; roster.ratios()];
    for (agent, row) in values.chunks_exact(values.len() / agents).enumerate() {
        if !checked.grain.settled() {
            row.iter().filter(|value| value.is_finite()).for_each(|value| checked.grain.observe(*value));
        }
        // Nearly all beliefs.
        if let (&[first, second], false) = (row, log_ratios)
            && let Some(ratio) = panel::log_ratio(first, second)
        {
            out[agent] = ratio;
            continue;
        }
        if row.iter().all(|value| value.is_nan()) {
            checked.silent.push(agent);
            continue;
        }
        let raised = ratios_of(row, &mut ratios, roster.hypotheses(), log_ratios).map_err(|error| match error {
            headwater::Error::Belief { hypothesis, problem } => (agent, format!("hypothesis {hypothesis}: {problem}")),
            other => (agent, other.to_string()),
        })?;
        if raised > 0 {
            checked.zeros += raised;
            checked.first_zero = checked.first_zero.or(Some(agent));
        }
        for (ratio, &value) in ratios.iter().enumerate() {
            out[ratio * agents + agent] = value;
        }
    }
    Ok(checked)
}
