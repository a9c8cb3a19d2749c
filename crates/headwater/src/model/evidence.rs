//! Mean log-likelihood ratios of the private observations.

use crate::Error;
use crate::panel::LARGEST_LOG_RATIO;
use faer::MatRef;
use serde::{Deserialize, Serialize};

/// Mean log-likelihood ratios L̄, N × H: `L̄[k, j] = D_k(θ*‖θ_j) − D_k(θ*‖θ_0)`.
///
/// ```
/// let evidence = headwater::Evidence::from_rows(vec![0.1, 0.2, -0.3, 0.4], 2, 2).unwrap();
/// assert_eq!(evidence.against(1, 0), 0.0); // the reference against itself
/// assert_eq!(evidence.against(1, 2), 0.4);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    agents: usize,
    ratios: usize,
    /// Agent by agent.
    rows: Vec<f64>,
}

impl Evidence {
    /// From N·H numbers, agent by agent.
    pub fn from_rows(rows: Vec<f64>, agents: usize, ratios: usize) -> Result<Self, Error> {
        if rows.len() != agents * ratios {
            return Err(Error::Shape {
                what: "evidence",
                met: format!("{} numbers", rows.len()),
                wanted: format!("{agents}×{ratios}"),
            });
        }
        if let Some(bad) = rows.iter().find(|value| value.is_nan() || value.abs() > LARGEST_LOG_RATIO) {
            let reason = format!("it holds {bad}, which is not a log-likelihood ratio");
            return Err(Error::Undefined { what: "evidence", reason });
        }
        Ok(Evidence { agents, ratios, rows })
    }

    /// From an N × H matrix.
    pub(crate) fn from_matrix(matrix: MatRef<'_, f64>) -> Result<Self, Error> {
        let (agents, ratios) = (matrix.nrows(), matrix.ncols());
        let rows = (0..agents * ratios).map(|cell| matrix[(cell / ratios, cell % ratios)]).collect();
        Evidence::from_rows(rows, agents, ratios)
    }

    /// N.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// H.
    pub fn ratios(&self) -> usize {
        self.ratios
    }

    /// The H ratios of one agent.
    pub fn agent(&self, agent: usize) -> &[f64] {
        &self.rows[agent * self.ratios..(agent + 1) * self.ratios]
    }

    /// Evidence of one agent against a hypothesis relative to the reference; zero for the reference itself.
    pub fn against(&self, agent: usize, hypothesis: usize) -> f64 {
        if hypothesis == 0 { 0.0 } else { self.agent(agent)[hypothesis - 1] }
    }

    /// One ratio of all agents.
    pub fn ratio(&self, ratio: usize) -> Vec<f64> {
        (0..self.agents).map(|agent| self.agent(agent)[ratio]).collect()
    }
}
