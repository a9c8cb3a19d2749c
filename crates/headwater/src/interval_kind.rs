//! Kinds of intervals, and how often they covered the truth in simulated worlds.

use crate::Model;
use crate::learn::Method;
use serde::{Deserialize, Serialize};

/// Kind of the intervals of a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalKind {
    /// Credible intervals from draws of the posterior.
    Posterior,
    /// Of the block bootstrap.
    Bootstrap,
}

/// From draws of the posterior of strengths on a graph (`docs/studies/calibration.md`, "Coverage of posterior intervals").
const POSTERIOR: &str = "in simulated worlds with noisy posts they cover the true share in 91 to 97% of cases, that of the strongest agent in 75 to 100%";

/// From draws of the posterior of sparse edges (`docs/studies/calibration.md`, "Edges without a graph").
const EDGE_POSTERIOR: &str = "how often they cover the true share has not been measured";

/// From a normal approximation, for networks that are too large for chains.
const NORMAL_APPROXIMATION: &str =
    "in simulated worlds with noisy posts those of the centralities cover the truth in 78 to 81% of cases";

/// Of the bootstrap of a state-space model on a graph (`docs/studies/state-space.md`, "Coverage of intervals").
const BOOTSTRAP_ON_GRAPH: &str =
    "in simulated worlds with noisy posts and a graph they cover the true share in 71 to 74% of cases";

/// The same without a graph.
const BOOTSTRAP_WITHOUT_GRAPH: &str =
    "in simulated worlds with noisy posts and no graph they cover the true share in 65% of cases";

/// Of the bootstrap of a whitened regression on complete beliefs (`docs/studies/uncertainty.md`).
const BOOTSTRAP_OF_COMPLETE_BELIEFS: &str =
    "in simulated worlds with complete beliefs they cover the true share in 91.5 to 91.9% of cases";

impl IntervalKind {
    /// What the intervals of a model are and how often intervals of this kind cover the truth, as a sentence.
    pub fn coverage(self, model: &Model) -> String {
        let kind = match self {
            IntervalKind::Posterior => "credible intervals from draws of the posterior",
            IntervalKind::Bootstrap => "bootstrap intervals",
        };
        let measured = match (self, &model.method) {
            (IntervalKind::Posterior, _) => Some(match &model.diagnostics.posterior {
                Some(posterior) if posterior.normal_approximation => NORMAL_APPROXIMATION,
                Some(posterior) if posterior.information.is_empty() => EDGE_POSTERIOR,
                _ => POSTERIOR,
            }),
            (IntervalKind::Bootstrap, Method::StateSpace(params)) => {
                Some(if params.support.is_some() { BOOTSTRAP_ON_GRAPH } else { BOOTSTRAP_WITHOUT_GRAPH })
            }
            (IntervalKind::Bootstrap, Method::Whitened(_)) => Some(BOOTSTRAP_OF_COMPLETE_BELIEFS),
            _ => None,
        };
        let measured = measured.unwrap_or("how often they cover the truth was not measured for this method");
        format!("The intervals are {kind} with a nominal coverage of 90%; {measured}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::state_space::StateSpaceParams;
    use crate::learn::whitened::WhitenedParams;
    use crate::simulate::{WorldParams, simulate};

    #[test]
    fn coverage_is_by_kind_and_support() {
        let (_, mut model) = simulate(&WorldParams { steps: 1, agents: 3, ..WorldParams::default() }).unwrap();
        let mut said = |method: Method, kind: IntervalKind| {
            model.method = method;
            kind.coverage(&model)
        };
        let on_graph = StateSpaceParams { support: Some(vec![vec![0]; 3]), ..StateSpaceParams::default() };
        let said_on_graph = said(Method::StateSpace(on_graph.clone()), IntervalKind::Bootstrap);
        assert_eq!(
            said_on_graph,
            "The intervals are bootstrap intervals with a nominal coverage of 90%; in simulated worlds with noisy posts and a graph they cover the true share in 71 to 74% of cases."
        );
        let without = said(Method::StateSpace(StateSpaceParams::default()), IntervalKind::Bootstrap);
        assert!(without.contains("no graph") && without.contains("65%") && !without.contains("71"), "{without}");
        assert!(said(Method::StateSpace(on_graph), IntervalKind::Posterior).contains("91 to 97%"));
        let whitened = said(Method::Whitened(WhitenedParams::default()), IntervalKind::Bootstrap);
        assert!(whitened.contains("complete beliefs") && whitened.contains("91.5"), "{whitened}");
        let given = said(Method::Given, IntervalKind::Bootstrap);
        assert!(given.ends_with("was not measured for this method."), "{given}");
    }
}
