//! Beliefs over time, packed into one or two bytes each; bins are merged where there are very many.

use super::ReportInput;
use super::pack::Packed;
use crate::error::Error;
use headwater::model::Track;
use headwater::panel::{Times, probabilities};
use headwater::{Model, Panel};
use headwater_files::{show_date, show_dates, show_offsets};
use serde::{Deserialize, Serialize};

/// Bytes that all series together may take.
const CELLS: usize = 400_000;

/// Points that a chart can show.
const POINTS: usize = 2000;

/// Opinions over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opinions {
    /// Start of each bin on the local clock: dates where all bins start at midnight.
    pub times: Vec<String>,
    /// Zone of the times; absent for step numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Bins merged into one point.
    pub merged: usize,
    /// Belief in each hypothesis but the last: agent by agent, hypothesis by hypothesis, bin by bin.
    pub beliefs: Packed,
    /// Mean over those who spoke, hypothesis by hypothesis, bin by bin.
    pub mean: Packed,
    /// Number of agents with a post, bin by bin.
    #[serde(default)]
    pub spoke: Vec<usize>,
    /// Mean belief of each agent in the reference; absent for agents without a post.
    pub leaning: Vec<Option<f64>>,
    /// Detected changes: bin, kind, listeners.
    pub changes: Vec<(usize, String, Vec<usize>)>,
}

/// Sums of beliefs by agent and point in time: |Θ| numbers, and how many steps were added.
pub(crate) struct BeliefSums {
    hypotheses: usize,
    /// Points in time.
    pub(crate) points: usize,
    /// Steps in one of them.
    pub(crate) merged: usize,
    sums: Vec<f64>,
    spoken: Vec<u32>,
}

impl BeliefSums {
    /// At most so many points in time.
    pub(crate) fn new(model: &Model, panel: &Panel, most: usize) -> Result<Self, Error> {
        let wrong = |problem: String| Error::Beliefs { problem };
        if panel.roster().hypotheses() != model.roster.hypotheses() {
            return Err(wrong(format!(
                "their hypotheses are {}, those of the model are {}",
                panel.roster().hypotheses().join(", "),
                model.roster.hypotheses().join(", ")
            )));
        }
        let place: Vec<usize> = (panel.roster().agents().iter())
            .map(|name| model.roster.agent(name).map_err(|_| wrong(format!("agent {name:?} is not in the model"))))
            .collect::<Result<_, _>>()?;
        let (agents, hypotheses, steps) = (model.roster.agents().len(), model.roster.hypotheses().len(), panel.steps());
        let merged = steps.div_ceil(most).max((agents * steps * (hypotheses - 1)).div_ceil(CELLS)).max(1);
        let points = steps.div_ceil(merged);
        let (mut sums, mut spoken) = (vec![0.0; agents * points * hypotheses], vec![0; agents * points]);
        let mut belief = Vec::new();
        for step in 0..steps {
            let frame = panel.frame(step);
            for (speaker, &agent) in place.iter().enumerate().filter(|(speaker, _)| panel.posts(step, *speaker) > 0) {
                probabilities((0..hypotheses - 1).map(|ratio| frame[(speaker, ratio)]), &mut belief);
                let cell = agent * points + step / merged;
                spoken[cell] += 1;
                let out = &mut sums[cell * hypotheses..][..hypotheses];
                out.iter_mut().zip(&belief).for_each(|(sum, value)| *sum += value);
            }
        }
        Ok(BeliefSums { hypotheses, points, merged, sums, spoken })
    }

    /// What an agent thought of a hypothesis at a point, where it spoke.
    pub(crate) fn belief(&self, agent: usize, hypothesis: usize, point: usize) -> Option<f64> {
        let cell = agent * self.points + point;
        let spoken = self.spoken[cell];
        (spoken > 0).then(|| self.sums[cell * self.hypotheses + hypothesis] / f64::from(spoken))
    }

    /// Beliefs in a hypothesis of all agents with a post at a point.
    pub(crate) fn all(&self, hypothesis: usize, point: usize) -> impl Iterator<Item = f64> {
        (0..self.spoken.len() / self.points).filter_map(move |agent| self.belief(agent, hypothesis, point))
    }

    /// Mean over the agents with a post.
    pub(crate) fn mean(&self, hypothesis: usize, point: usize) -> Option<f64> {
        let (sum, many) = self.all(hypothesis, point).fold((0.0, 0u32), |(sum, many), value| (sum + value, many + 1));
        (many > 0).then(|| sum / f64::from(many))
    }

    /// Mean belief of an agent in a hypothesis over all posts.
    pub(crate) fn leaning(&self, agent: usize, hypothesis: usize) -> Option<f64> {
        let cells = agent * self.points..(agent + 1) * self.points;
        let spoken: u32 = self.spoken[cells.clone()].iter().sum();
        let sum: f64 = cells.map(|cell| self.sums[cell * self.hypotheses + hypothesis]).sum();
        (spoken > 0).then(|| sum / f64::from(spoken))
    }
}

impl Opinions {
    pub(super) fn new(from: &ReportInput<'_>, panel: &Panel) -> Result<Self, Error> {
        let model = from.model;
        let sums = &BeliefSums::new(model, panel, POINTS)?;
        let (agents, hypotheses, points) = (model.roster.agents().len(), model.roster.hypotheses().len(), sums.points);
        let cells = (0..agents).flat_map(|agent| {
            (0..hypotheses - 1)
                .flat_map(move |hypothesis| (0..points).map(move |point| sums.belief(agent, hypothesis, point)))
        });
        let mean = (0..hypotheses).flat_map(|hypothesis| (0..points).map(move |point| sums.mean(hypothesis, point)));
        // One byte is too coarse for a nearly constant series; two are used where they fit.
        let bits = if agents * (hypotheses - 1) * points <= CELLS / 2 { 16 } else { 8 };
        let leaning = |agent: usize| sums.leaning(agent, 0).map(|belief| (1e4 * belief).round() / 1e4);
        Ok(Opinions {
            times: shown_times(from, panel, sums.merged),
            zone: zone(from),
            merged: sums.merged,
            beliefs: Packed::shares(cells, bits),
            mean: Packed::shares(mean, 16),
            spoke: (0..points).map(|point| sums.all(0, point).count()).collect(),
            leaning: (0..agents).map(leaning).collect(),
            changes: changes(&model.track, panel.steps(), sums.merged),
        })
    }
}

/// Every `stride`-th time for people, as [`shown_time`] writes it.
pub(crate) fn shown_times(from: &ReportInput<'_>, panel: &Panel, stride: usize) -> Vec<String> {
    match (panel.times(), bin_width(from)) {
        (Times::Steps(steps), Some(width)) => {
            steps.iter().step_by(stride.max(1)).map(|step| bin_start(*step, width)).collect()
        }
        (times, _) => show_dates(times, stride),
    }
}

/// A time for people. Where the bins of a run are numbers, a step is the number of a bin: its start is shown.
pub(crate) fn shown_time(from: &ReportInput<'_>, panel: &Panel, step: usize) -> String {
    match (panel.times(), bin_width(from)) {
        (Times::Steps(steps), Some(width)) => bin_start(steps[step], width),
        (times, _) => show_date(times, step),
    }
}

/// Bins are whole numbers of millionths.
fn bin_start(step: i64, width: f64) -> String {
    ((step as f64 * width * 1e6).round() / 1e6).to_string()
}

/// How long a bin of the run is, where times are plain numbers.
pub(crate) fn bin_width(from: &ReportInput<'_>) -> Option<f64> {
    from.run?.options.bin.parse().ok()
}

/// The zone that times are shown in: that of the run, or the offsets of the beliefs. `None` for step numbers.
pub(crate) fn zone(from: &ReportInput<'_>) -> Option<String> {
    let offsets = show_offsets(from.beliefs?.times())?;
    let known = from.run.map(|run| run.options.timezone.as_str()).or(from.zone);
    Some(known.filter(|zone| !zone.is_empty()).map_or(offsets, str::to_owned))
}

/// Changes within the steps of these beliefs.
pub(crate) fn changes(track: &Track, steps: usize, merged: usize) -> Vec<(usize, String, Vec<usize>)> {
    let within = track.changes.iter().filter(|change| change.since < steps);
    within.map(|change| (change.since / merged, change.kind.name().to_owned(), change.listeners.clone())).collect()
}
