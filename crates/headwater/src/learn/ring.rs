//! Moments of consecutive stretches, for windows, discounting and resampling without a second pass over the data.
//!
//! In: frames, a stretch at a time. Out: the moments of a range of stretches, or of stretches drawn at random.

use super::moments::Moments;
use crate::{Error, Panel};
use serde::{Deserialize, Serialize};

/// Moments of consecutive stretches of one panel or stream.
///
/// ```
/// use headwater::{learn::{moments::Moments, ring::Ring}, simulate::{simulate, WorldParams}};
/// let (panel, _) = simulate(&WorldParams { steps: 61, ..WorldParams::default() }).unwrap();
/// let ring = Ring::from_panel(&panel, 4);
/// assert_eq!((ring.len(), ring.since(31).weight()), (4, 30.0)); // the last two stretches of 15 transitions
/// assert_eq!(ring.draw([0, 0, 1, 3]).unwrap().weight(), 60.0);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ring {
    agents: usize,
    ratios: usize,
    /// Stretches kept before old ones are merged.
    capacity: usize,
    stretches: Vec<Stretch>,
}

/// The moments of one run of transitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Stretch {
    /// The step the first transition leads into.
    first: usize,
    /// One past the step the last transition leads into.
    end: usize,
    moments: Moments,
}

impl Ring {
    /// An empty ring. Beyond `capacity` stretches the older half is merged in pairs, at a coarser resolution.
    pub fn new(agents: usize, ratios: usize, capacity: usize) -> Self {
        Ring { agents, ratios, capacity: capacity.max(4), stretches: Vec::new() }
    }

    /// The ring of a complete panel in this many stretches of nearly equal length.
    pub fn from_panel(panel: &Panel, count: usize) -> Self {
        let mut ring = Ring::new(panel.agents(), panel.ratios(), count);
        let (width, transitions) = (panel.agents() * panel.ratios(), panel.steps().saturating_sub(1));
        let border = |stretch: usize| 1 + stretch * transitions / count;
        for stretch in 0..count {
            let (first, end) = (border(stretch), border(stretch + 1));
            ring.push(first, &panel.cells()[(first - 1) * width..end * width]);
        }
        ring
    }

    /// Adds a stretch: frames in column order, the first of them the past of step `first`.
    pub fn push(&mut self, first: usize, frames: &[f64]) {
        let transitions = (frames.len() / (self.agents * self.ratios)).saturating_sub(1);
        if transitions == 0 {
            return;
        }
        let mut moments = Moments::empty(self.agents, self.ratios);
        moments.push_frames(frames);
        self.stretches.push(Stretch { first, end: first + transitions, moments });
        if self.stretches.len() > self.capacity {
            self.merge_older_half();
        }
    }

    fn merge_older_half(&mut self) {
        let half = self.stretches.len() / 2;
        let newer = self.stretches.split_off(half);
        let mut merged: Vec<Stretch> = Vec::with_capacity(self.capacity);
        for (position, stretch) in self.stretches.drain(..).enumerate() {
            match merged.last_mut() {
                Some(last) if position % 2 == 1 => {
                    // Same shape by construction.
                    drop(last.moments.merge(&stretch.moments));
                    last.end = stretch.end;
                }
                _ => merged.push(stretch),
            }
        }
        merged.extend(newer);
        self.stretches = merged;
    }

    /// Drops the stretches that end before a step.
    pub fn drop_before(&mut self, step: usize) {
        self.stretches.retain(|stretch| stretch.end > step);
    }

    /// Number of stretches.
    pub fn len(&self) -> usize {
        self.stretches.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// The first step of the first stretch at or after a step, and one past the last step of the last.
    pub(crate) fn span(&self, since: usize) -> Option<(usize, usize)> {
        let first = self.stretches.iter().find(|stretch| stretch.first >= since)?.first;
        Some((first, self.stretches.last()?.end))
    }

    /// The stretches at or after a step: their end, and their moments.
    pub(crate) fn stretches(&self, since: usize) -> impl Iterator<Item = (usize, &Moments)> {
        let after = self.stretches.iter().filter(move |stretch| stretch.first >= since);
        after.map(|stretch| (stretch.end, &stretch.moments))
    }

    /// The moments of all stretches that lie at or after a step.
    pub fn since(&self, step: usize) -> Moments {
        let mut sum = Moments::empty(self.agents, self.ratios);
        // Same shape by construction.
        self.stretches(step).for_each(|(_, moments)| drop(sum.merge(moments)));
        sum
    }

    /// The sum of these stretches, each as often as it is listed.
    pub fn draw(&self, numbers: impl IntoIterator<Item = usize>) -> Result<Moments, Error> {
        let mut sum = Moments::empty(self.agents, self.ratios);
        for number in numbers {
            let stretch = self.stretches.get(number).ok_or_else(|| Error::Shape {
                what: "stretch of a ring",
                met: number.to_string(),
                wanted: format!("below {}", self.stretches.len()),
            })?;
            sum.merge(&stretch.moments)?;
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{WorldParams, simulate};

    #[test]
    fn a_ring_beyond_its_capacity_loses_resolution_and_nothing_else() {
        let (panel, _) =
            simulate(&WorldParams { agents: 4, edge_probability: 0.8, steps: 101, ..WorldParams::default() }).unwrap();
        let width = panel.agents() * panel.ratios();
        let mut ring = Ring::new(panel.agents(), panel.ratios(), 6);
        for first in (1..101).step_by(5) {
            ring.push(first, &panel.cells()[(first - 1) * width..(first + 5) * width]);
        }
        assert!(ring.len() <= 6);
        let (all, whole) = (ring.since(0), Moments::from_panel(&panel, 1..101));
        assert_eq!(all.weight(), 100.0);
        for a in 0..width {
            for b in 0..width {
                assert!((all.xx(a, b) - whole.xx(a, b)).abs() < 1e-11 * whole.xx(a, a).max(whole.xx(b, b)));
            }
        }
        // The latest stretch is still there by itself.
        assert_eq!(ring.since(96).weight(), 5.0);
        let kept: Ring = serde_json::from_str(&serde_json::to_string(&ring).unwrap()).unwrap();
        assert_eq!(kept, ring);
        ring.drop_before(96);
        assert_eq!((ring.len(), ring.is_empty()), (1, false));
    }
}
