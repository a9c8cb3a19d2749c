//! A verdict in JSON.

use super::{DecidingTest, Outcome, SignificantAgents, Verdict};
use crate::evaluate::graph_test::{GraphTest, Untestable};
use crate::evaluate::too_few_steps::TooFewSteps;
use crate::model::Skill;
use serde::{Deserialize, Serialize};

/// A verdict in JSON; files before version 2 have `supported` and `text` alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct VerdictJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    supported: bool,
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test: Option<DecidingTest>,
    #[serde(default)]
    common_news_excluded: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p_value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    graph_test: Option<GraphTest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    graph_untestable: Option<Untestable>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill: Option<Skill>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shifts_p_value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shifts_impossible: Option<TooFewSteps>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    significant: Option<SignificantAgents>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    given: bool,
}

impl From<VerdictJson> for Verdict {
    /// Without an outcome it is not known whether a null test was run. Files without `test` have the p-value of circular
    /// shifts.
    fn from(json: VerdictJson) -> Self {
        let VerdictJson { outcome, text, test, p_value, graph_test, graph_untestable, skill, .. } = json;
        let recorded = outcome.is_none().then_some(text);
        let outcome = outcome.unwrap_or_default();
        let shifted = test.is_none() && outcome != Outcome::NotTested;
        Verdict {
            outcome,
            test: if shifted { Some(DecidingTest::CircularShifts) } else { test },
            p_value,
            graph_test,
            graph_untestable,
            skill,
            shifts_p_value: if shifted { p_value } else { json.shifts_p_value },
            shifts_impossible: json.shifts_impossible,
            significant: json.significant,
            given: json.given,
            recorded,
        }
    }
}

impl From<Verdict> for VerdictJson {
    fn from(verdict: Verdict) -> Self {
        let (supported, text) = (verdict.supported(), verdict.to_string());
        let common_news_excluded = verdict.common_news_excluded();
        // What was read without an outcome is written without one.
        let outcome = verdict.recorded.is_none().then_some(verdict.outcome);
        let Verdict { test, p_value, graph_test, graph_untestable, skill, .. } = verdict;
        let Verdict { shifts_p_value, shifts_impossible, significant, given, .. } = verdict;
        VerdictJson {
            outcome,
            supported,
            text,
            test,
            common_news_excluded,
            p_value,
            graph_test,
            graph_untestable,
            skill,
            shifts_p_value,
            shifts_impossible,
            significant,
            given,
        }
    }
}
