//! A panel on disk, bit for bit: Parquet with a row per belief, `time,agent`, a log-ratio per hypothesis but the reference, and
//! `posts`. What the rows do not tell (silent steps, the order of agents, all hypotheses) is in the file's metadata.
//!
//! Beliefs as people read them are probabilities ([`crate::BeliefsRows`]), which lose the last digits of a log-ratio.

use crate::limit::{check_hypotheses, panel_limit};
use crate::{AtomicFile, Error, ParquetBatches};
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use headwater::panel::Times;
use headwater::{Panel, Roster};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The key of our metadata.
const KEY: &str = "headwater-panel/1";

/// Rows written at a time.
const BATCH: usize = 1 << 16;

/// Silence takes no space in the file, and rows little: a panel may be so many times larger than one made from a CSV file.
const SPARSEST: u64 = 6;

#[derive(Serialize, Deserialize)]
struct PanelFrame {
    hypotheses: Vec<String>,
    agents: Vec<String>,
    /// Whether times are instants, microseconds since 1970; otherwise step numbers.
    instants: bool,
    times: Vec<i64>,
    /// Seconds that the local clock is ahead of UTC at each instant.
    #[serde(default)]
    offsets: Vec<i32>,
    /// Names and numbers of steps of the episodes, where they have names; the rows then have a column `episode`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    episodes: Vec<(String, usize)>,
}

/// Writes a panel; the file takes its name when the result is committed.
pub fn write_panel(path: &Path, panel: &Panel) -> Result<AtomicFile, Error> {
    let broken = |error: &dyn std::fmt::Display| Error::file(path, error.to_string());
    let (roster, instants) = (panel.roster(), matches!(panel.times(), Times::Instants { .. }));
    let frame = PanelFrame {
        hypotheses: roster.hypotheses().to_vec(),
        agents: roster.agents().to_vec(),
        instants,
        times: panel.times().raw().to_vec(),
        offsets: match panel.times() {
            Times::Instants { offsets, .. } => offsets.clone(),
            Times::Steps(_) => Vec::new(),
        },
        episodes: match panel.episodes().names() {
            Some(names) => names.iter().cloned().zip(panel.episodes().ranges().map(|range| range.len())).collect(),
            None => Vec::new(),
        },
    };
    let kind = if instants { DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())) } else { DataType::Int64 };
    let episodes = (!frame.episodes.is_empty()).then(|| Field::new("episode", DataType::Utf8, false));
    let mut fields: Vec<Field> = episodes.into_iter().collect();
    fields.extend([Field::new("time", kind, false), Field::new("agent", DataType::Utf8, false)]);
    fields.extend(roster.hypotheses()[1..].iter().map(|name| Field::new(name, DataType::Float64, false)));
    fields.push(Field::new("posts", DataType::Int64, false));
    let schema = Arc::new(Schema::new(fields));
    let metadata = serde_json::to_string(&frame).map_err(|error| broken(&error))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), metadata)]))
        .build();
    let file = AtomicFile::create(path)?;
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(|error| broken(&error))?;
    let agents = panel.agents();
    let spoken = (0..panel.steps() * agents).filter(|cell| panel.posts(cell / agents, cell % agents) > 0);
    let spoken: Vec<usize> = spoken.collect();
    for cells in spoken.chunks(BATCH) {
        let columns = columns(panel, &frame, cells);
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|error| broken(&error))?;
        writer.write(&batch).map_err(|error| broken(&error))?;
    }
    writer.into_inner().map_err(|error| broken(&error))
}

fn columns(panel: &Panel, frame: &PanelFrame, cells: &[usize]) -> Vec<ArrayRef> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let time = |cell: &usize| frame.times[cell / agents];
    let times: ArrayRef = match frame.instants {
        true => {
            let mut builder = TimestampMicrosecondBuilder::with_capacity(cells.len()).with_timezone("UTC");
            cells.iter().for_each(|cell| builder.append_value(time(cell)));
            Arc::new(builder.finish())
        }
        false => {
            let mut builder = Int64Builder::with_capacity(cells.len());
            cells.iter().for_each(|cell| builder.append_value(time(cell)));
            Arc::new(builder.finish())
        }
    };
    let mut names = StringBuilder::new();
    cells.iter().for_each(|cell| names.append_value(&frame.agents[cell % agents]));
    let mut all: Vec<ArrayRef> = Vec::new();
    if !frame.episodes.is_empty() {
        let mut episodes = StringBuilder::new();
        cells.iter().for_each(|cell| episodes.append_value(&frame.episodes[panel.episodes().at(cell / agents)].0));
        all.push(Arc::new(episodes.finish()));
    }
    all.extend([times, Arc::new(names.finish()) as ArrayRef]);
    for ratio in 0..ratios {
        let mut builder = Float64Builder::with_capacity(cells.len());
        let value = |cell: &usize| panel.cells()[((cell / agents) * ratios + ratio) * agents + cell % agents];
        cells.iter().for_each(|cell| builder.append_value(value(cell)));
        all.push(Arc::new(builder.finish()));
    }
    let mut posts = Int64Builder::with_capacity(cells.len());
    cells.iter().for_each(|cell| posts.append_value(i64::from(panel.posts(cell / agents, cell % agents))));
    all.push(Arc::new(posts.finish()));
    all
}

/// Reads what [`write_panel`] wrote.
pub fn read_panel(path: &Path) -> Result<Panel, Error> {
    let broken = |error: &dyn std::fmt::Display| Error::file(path, error.to_string());
    let file = File::open(path).map_err(Error::io(path, "cannot read"))?;
    let size = file.metadata().map_err(Error::io(path, "cannot read"))?.len();
    let batches = ParquetBatches::new(file, BATCH).map_err(|error| broken(&error))?;
    let Some(frame) = batches.value(KEY) else {
        return Err(broken(&"is not a panel of log-beliefs written by headwater"));
    };
    let frame: PanelFrame = serde_json::from_str(frame).map_err(|error| broken(&error))?;
    check_hypotheses(path, frame.hypotheses.len())?;
    let (agents, ratios) = (frame.agents.len(), frame.hypotheses.len().saturating_sub(1));
    let cells = frame.times.len().checked_mul(agents).and_then(|cells| Some((cells, cells.checked_mul(ratios)?)));
    let Some((places, numbers)) = cells.filter(|(_, numbers)| *numbers <= panel_limit(size.saturating_mul(SPARSEST)))
    else {
        return Err(broken(&"its metadata state more cells than its rows can fill"));
    };
    let (mut posts, mut values) = (vec![0_u32; places], vec![0.0; numbers]);
    let lengths: Vec<usize> = frame.episodes.iter().map(|(_, steps)| *steps).collect();
    if !lengths.is_empty()
        && lengths.iter().try_fold(0_usize, |sum, steps| sum.checked_add(*steps)) != Some(frame.times.len())
    {
        return Err(broken(&"its metadata state another number of steps than of times"));
    }
    let episode_of: Vec<usize> =
        lengths.iter().enumerate().flat_map(|(number, steps)| std::iter::repeat_n(number, *steps)).collect();
    let number_of: std::collections::HashMap<&str, usize> =
        frame.episodes.iter().enumerate().map(|(number, (name, _))| (name.as_str(), number)).collect();
    let step_of: std::collections::HashMap<(usize, i64), usize> = (frame.times.iter().enumerate())
        .map(|(step, time)| ((episode_of.get(step).copied().unwrap_or(0), *time), step))
        .collect();
    let agent_of: std::collections::HashMap<&str, usize> =
        frame.agents.iter().enumerate().map(|(agent, name)| (name.as_str(), agent)).collect();
    for batch in batches {
        let batch = batch.map_err(|error| broken(&error))?;
        let column =
            |name: &str| batch.column_by_name(name).ok_or_else(|| broken(&format!("there is no column {name:?}")));
        let wrong = |name: &str| broken(&format!("column {name:?} has another type"));
        let times: Vec<i64> = match frame.instants {
            true => {
                let times = column("time")?.as_primitive_opt::<arrow_array::types::TimestampMicrosecondType>();
                times.ok_or_else(|| wrong("time"))?.values().to_vec()
            }
            false => column("time")?.as_primitive_opt::<Int64Type>().ok_or_else(|| wrong("time"))?.values().to_vec(),
        };
        let episodes = match frame.episodes.is_empty() {
            true => None,
            false => Some(column("episode")?.as_string_view_opt().ok_or_else(|| wrong("episode"))?),
        };
        let names = column("agent")?.as_string_view_opt().ok_or_else(|| wrong("agent"))?;
        let counts = column("posts")?.as_primitive_opt::<Int64Type>().ok_or_else(|| wrong("posts"))?;
        let ratios_of: Vec<_> = frame.hypotheses[1..]
            .iter()
            .map(|name| column(name)?.as_primitive_opt::<Float64Type>().ok_or_else(|| wrong(name)))
            .collect::<Result<_, Error>>()?;
        for row in 0..batch.num_rows() {
            let episode = episodes.map_or(Some(0), |episodes| number_of.get(episodes.value(row)).copied());
            let step = episode.and_then(|episode| step_of.get(&(episode, times[row])));
            let place = (step, agent_of.get(names.value(row)));
            let (Some(&step), Some(&agent)) = place else {
                return Err(broken(&format!("row {row} names a time or an agent that the metadata do not")));
            };
            let count = u32::try_from(counts.value(row)).map_err(|error| broken(&error))?;
            posts[step * agents + agent] = count;
            for (ratio, column) in ratios_of.iter().enumerate() {
                values[(step * ratios + ratio) * agents + agent] = column.value(row);
            }
        }
    }
    let times = match (frame.instants, frame.offsets.is_empty()) {
        (true, true) => Times::utc(frame.times),
        (true, false) => Times::Instants { utc: frame.times, offsets: frame.offsets },
        (false, _) => Times::Steps(frame.times),
    };
    let roster = Roster::new(frame.agents, frame.hypotheses).map_err(Error::data(path))?;
    let panel = Panel::new(roster, times, values, Some(posts)).map_err(Error::data(path))?;
    if frame.episodes.is_empty() { Ok(panel) } else { panel.in_episodes(frame.episodes).map_err(Error::data(path)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_comes_back_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log-beliefs.parquet");
        let roster = Roster::new(["ann", "bob, \"b\""], ["positive", "neutral", "negative"]).unwrap();
        let values = vec![0.1, 1.0 / 3.0, -2e-17, 4.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 1e-9, 0.0];
        let posts = vec![1, 7, 0, 0, 2, 0];
        for times in [
            Times::Instants { utc: vec![-5, 10, 1_700_000_000_000_000], offsets: vec![0, 3600, -1] },
            Times::Steps(vec![3, 4, 5]),
        ] {
            let panel = Panel::new(roster.clone(), times, values.clone(), Some(posts.clone())).unwrap();
            write_panel(&path, &panel).unwrap().commit().unwrap();
            assert_eq!(read_panel(&path).unwrap(), panel);
            let panel = panel.in_episodes(vec![("tax".into(), 3)]).unwrap();
            write_panel(&path, &panel).unwrap().commit().unwrap();
            assert_eq!(read_panel(&path).unwrap(), panel);
        }
        // The same times in both episodes.
        let both = Panel::new(roster.clone(), Times::Steps(vec![0, 1, 0, 1]), vec![0.5; 16], None).unwrap();
        let both = both.in_episodes(vec![("tax".into(), 2), ("=war".into(), 2)]).unwrap();
        write_panel(&path, &both).unwrap().commit().unwrap();
        assert_eq!(read_panel(&path).unwrap(), both);
        let panel = Panel::new(roster.clone(), Times::utc(vec![1, 2, 3]), values, Some(posts)).unwrap();
        write_panel(&path, &panel).unwrap().commit().unwrap();
        let instants = crate::read_beliefs(&path, true).unwrap().panel;
        assert_eq!(instants.roster().agents(), roster.agents());
        std::fs::write(&path, "no Parquet").unwrap();
        assert!(read_panel(&path).is_err());
    }
}
