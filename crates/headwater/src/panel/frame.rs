//! The log-beliefs of one time step.

use super::{LARGEST_LOG_RATIO, Panel};
use crate::{Error, Roster};
use std::ops::Index;

/// Λ_i, the N × H log-beliefs of one time step, with the agents that were silent.
///
/// Taken from a panel ([`Panel::frame`]) or made from a slice. A silent agent either has no belief at all, as in a panel
/// with gaps, or one that was filled in, such as its last one ([`Frame::with_filled`]). Learners take the second kind only.
///
/// ```
/// use headwater::{Frame, Roster};
/// let roster = Roster::numbered(2, 3)?;
/// // Both agents' first log-ratio, then both agents' second.
/// let frame = Frame::new(&roster, &[0.1, 0.2, 0.3, 0.4])?.with_filled(&[false, true])?;
/// assert_eq!((frame[(1, 0)], frame[(0, 1)]), (0.2, 0.3));
/// assert!(frame.is_silent(1) && !frame.is_silent(0));
/// # Ok::<(), headwater::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame<'a> {
    cells: &'a [f64],
    agents: usize,
    ratios: usize,
    silence: Silence<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Silence<'a> {
    Nobody,
    /// Whose belief was filled in.
    Filled(&'a [bool]),
    /// Post counts; an agent with none has no belief.
    Posts(&'a [u32]),
}

impl<'a> Frame<'a> {
    /// A frame in which every agent has spoken, from N·H log-ratios in column order (`cells[j·N + k]`).
    ///
    /// Errors: another number of values than the roster has agents and log-ratios.
    pub fn new(roster: &Roster, cells: &'a [f64]) -> Result<Self, Error> {
        let (agents, ratios) = (roster.agents().len(), roster.ratios());
        if cells.len() != agents * ratios {
            return Err(Error::Shape {
                what: "frame",
                met: format!("{} numbers", cells.len()),
                wanted: format!("{agents}×{ratios}"),
            });
        }
        Ok(Frame { cells, agents, ratios, silence: Silence::Nobody })
    }

    /// The same values, some of which were filled in because the agent was silent.
    ///
    /// Errors: another number of marks than agents.
    pub fn with_filled(self, filled: &'a [bool]) -> Result<Self, Error> {
        if filled.len() != self.agents {
            return Err(Error::Shape {
                what: "marks of silent agents",
                met: filled.len().to_string(),
                wanted: self.agents.to_string(),
            });
        }
        Ok(Frame { silence: Silence::Filled(filled), ..self })
    }

    pub(super) fn from_panel(panel: &'a Panel, step: usize) -> Self {
        let (agents, width) = (panel.agents(), panel.width());
        let silence = match &panel.posts {
            Some(posts) => Silence::Posts(&posts[step * agents..(step + 1) * agents]),
            None => Silence::Nobody,
        };
        let cells = &panel.log_beliefs[step * width..(step + 1) * width];
        Frame { cells, agents, ratios: panel.ratios(), silence }
    }

    /// N.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// H.
    pub fn ratios(&self) -> usize {
        self.ratios
    }

    /// All log-ratios in column order: `cells[j·N + k]` is log-ratio j of agent k.
    pub fn cells(&self) -> &'a [f64] {
        self.cells
    }

    /// Whether an agent was silent at this step.
    pub fn is_silent(&self, agent: usize) -> bool {
        match self.silence {
            Silence::Nobody => false,
            Silence::Filled(filled) => filled[agent],
            Silence::Posts(posts) => posts[agent] == 0,
        }
    }

    /// The marks of silent agents; empty when all have spoken.
    pub(crate) fn silent_agents(&self) -> Vec<bool> {
        let silent: Vec<bool> = (0..self.agents).map(|agent| self.is_silent(agent)).collect();
        if silent.contains(&true) { silent } else { Vec::new() }
    }

    /// Checks that a learner of these agents can take the frame.
    pub(crate) fn check(&self, roster: &Roster) -> Result<(), Error> {
        let (agents, ratios) = (roster.agents().len(), roster.ratios());
        if (self.agents, self.ratios) != (agents, ratios) {
            return Err(Error::Shape {
                what: "frame",
                met: format!("{}×{}", self.agents, self.ratios),
                wanted: format!("{agents}×{ratios}"),
            });
        }
        if let Silence::Posts(posts) = self.silence
            && let Some(silent) = posts.iter().position(|count| *count == 0)
        {
            let reason = format!("agent {:?} is silent and its belief is not filled in", roster.agents()[silent]);
            return Err(Error::Undefined { what: "an update", reason });
        }
        let wrong = |value: &f64| value.is_nan() || value.abs() > LARGEST_LOG_RATIO;
        if let Some(bad) = self.cells.iter().position(wrong) {
            let (agent, value) = (&roster.agents()[bad % agents], self.cells[bad]);
            return Err(Error::Belief {
                hypothesis: roster.hypotheses()[bad / agents + 1].clone(),
                problem: format!("found {value} for agent {agent:?}; a log-ratio must be a number of moderate size"),
            });
        }
        Ok(())
    }
}

/// Log-ratio j of agent k at `(k, j)`.
impl Index<(usize, usize)> for Frame<'_> {
    type Output = f64;

    fn index(&self, (agent, ratio): (usize, usize)) -> &f64 {
        assert!(agent < self.agents, "agent {agent} of {}", self.agents);
        &self.cells[ratio * self.agents + agent]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::Times;

    #[test]
    fn gaps_of_a_panel_are_no_beliefs() {
        let roster = Roster::numbered(2, 2).unwrap();
        let posts = Some(vec![1, 2, 0, 1]);
        let times = Times::Steps(vec![0, 1]);
        let panel = Panel::new(roster.clone(), times, vec![0.5, 0.6, 0.7, 0.8], posts).unwrap();
        assert_eq!(panel.frame(0).check(&roster), Ok(()));
        assert!(panel.frame(1).is_silent(0) && !panel.frame(1).is_silent(1));
        assert!(panel.frame(1).check(&roster).unwrap_err().to_string().contains("agent \"0\" is silent"));
        let (filled, _) = panel.carry_forward();
        let frame = filled.frame(1).with_filled(&[true, false]).unwrap();
        assert_eq!((frame[(0, 0)], frame.check(&roster)), (0.5, Ok(())));
        assert_eq!((frame.silent_agents(), filled.frame(0).silent_agents()), (vec![true, false], vec![]));
    }

    #[test]
    fn shapes_and_values_are_checked() {
        let roster = Roster::numbered(2, 3).unwrap();
        assert!(matches!(Frame::new(&roster, &[0.0; 3]), Err(Error::Shape { .. })));
        let frame = Frame::new(&roster, &[0.0, 0.0, 0.0, f64::NAN]).unwrap();
        assert!(frame.check(&roster).unwrap_err().to_string().contains("\"h2\": found NaN for agent \"1\""));
        assert!(frame.check(&Roster::numbered(4, 2).unwrap()).unwrap_err().to_string().contains("found 2×2"));
        assert!(frame.with_filled(&[true]).is_err());
    }
}
