//! The verdict: whether the data support that these agents listen to each other.

use super::null_test::{Significance, discoveries};
use crate::Model;
use crate::learn::Method;
use crate::model::Skill;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Level of the permutation test, and the false discovery rate among agents.
const LEVEL: f64 = 0.05;

/// Outcome of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The permutation test is significant at 5 %, and held-out forecasts beat every baseline.
    Supported,
    /// A permutation test was run, and one of these does not hold.
    NoEvidence,
    /// No permutation test was run, whatever the forecast skill.
    #[default]
    NotTested,
}

impl Outcome {
    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Supported => "supported",
            Outcome::NoEvidence => "no-evidence",
            Outcome::NotTested => "not-tested",
        }
    }
}

/// Agents to whom others give significantly more weight than under the null, after Benjamini–Hochberg at 5 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SignificantAgents {
    /// How many.
    pub count: usize,
    /// Of how many.
    pub of: usize,
}

/// Whether the data support an answer. Its [`Display`](fmt::Display) is the one place that puts it into words.
///
/// Serialised as `{"outcome", "supported", "text", "p_value", "skill", "significant"}`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "VerdictJson", into = "VerdictJson")]
#[non_exhaustive]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// Forecast skill on held-out steps, where measured.
    pub skill: Option<Skill>,
    /// Of the permutation test of the skill, where run.
    pub p_value: Option<f64>,
    /// Agents significant after Benjamini–Hochberg, where tested.
    pub significant: Option<SignificantAgents>,
    /// The model was given, not learned: there is nothing to test.
    pub given: bool,
    /// The sentence of a file that recorded no outcome.
    recorded: Option<String>,
}

/// A verdict in JSON; files before version 2 have `supported` and `text` alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct VerdictJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    supported: bool,
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p_value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill: Option<Skill>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    significant: Option<SignificantAgents>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    given: bool,
}

impl From<VerdictJson> for Verdict {
    /// Without an outcome it is not known whether a null test was run.
    fn from(json: VerdictJson) -> Self {
        let VerdictJson { outcome, text, p_value, skill, significant, given, .. } = json;
        let recorded = outcome.is_none().then_some(text);
        Verdict { outcome: outcome.unwrap_or_default(), skill, p_value, significant, given, recorded }
    }
}

impl From<Verdict> for VerdictJson {
    fn from(verdict: Verdict) -> Self {
        let (supported, text) = (verdict.supported(), verdict.to_string());
        // What was read without an outcome is written without one.
        let outcome = verdict.recorded.is_none().then_some(verdict.outcome);
        let Verdict { p_value, skill, significant, given, .. } = verdict;
        VerdictJson { outcome, supported, text, p_value, skill, significant, given }
    }
}

impl Verdict {
    /// Judges a model by its forecast skill and, where one was run, by its permutation test.
    pub fn new(model: &Model, significance: Option<&Significance>) -> Self {
        Verdict {
            given: model.method == Method::Given && model.diagnostics.skill.is_none(),
            ..Verdict::from_skill(model.diagnostics.skill, significance)
        }
    }

    /// The same where only the skill is at hand.
    pub fn from_skill(skill: Option<Skill>, significance: Option<&Significance>) -> Self {
        let p_value = significance.and_then(|found| found.skill);
        let outcome = match (&skill, p_value) {
            (Some(skill), Some(p)) if beats_baselines(skill) && p <= LEVEL => Outcome::Supported,
            (Some(_), Some(_)) => Outcome::NoEvidence,
            _ => Outcome::NotTested,
        };
        let significant = significance.map(|found| SignificantAgents {
            count: discoveries(&found.agents, LEVEL).into_iter().filter(|found| *found).count(),
            of: found.agents.len(),
        });
        Verdict { outcome, skill, p_value, significant, ..Verdict::default() }
    }

    /// Whether the outcome is [`Outcome::Supported`].
    pub fn supported(&self) -> bool {
        self.outcome == Outcome::Supported
    }

    /// Whether held-out forecasts beat every baseline that they were compared with; none where there are none.
    pub fn beats_baselines(&self) -> Option<bool> {
        self.skill.as_ref().map(beats_baselines)
    }
}

/// Better than each agent's own past, than no change, and than a common trend where it was controlled for.
fn beats_baselines(skill: &Skill) -> bool {
    skill.against_own_past > 0.0
        && skill.against_persistence > 0.0
        && skill.beyond_common.is_none_or(|beyond| beyond > 0.0)
}

impl fmt::Display for Verdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.recorded {
            return to.write_str(text);
        }
        if self.given {
            return to.write_str("Not tested: this model was given, not learned.");
        }
        let Some(skill) = &self.skill else {
            return to.write_str(
                "Not tested: there is no forecast of held-out steps, so nothing here shows whether these agents listen to each other.",
            );
        };
        to.write_str(match self.outcome {
            Outcome::Supported => "The beliefs of these agents predict each other: ",
            Outcome::NoEvidence => "No evidence that these agents listen to each other: ",
            Outcome::NotTested => "Not tested against chance, because no permutation test was run: ",
        })?;
        let than = |share: f64| match share {
            ..-10.0 => "more than ten times worse".to_owned(),
            ..=0.0 => format!("{:.1} % worse", -100.0 * share),
            _ => format!("{:.1} % better", 100.0 * share),
        };
        write!(
            to,
            "on {} held-out steps the network's forecasts are {} than each agent's own past and {} than no change",
            skill.steps,
            than(skill.against_own_past),
            than(skill.against_persistence)
        )?;
        // News that reaches all agents moves beliefs together without influence; circular shifts cannot tell the two apart.
        if let Some(beyond) = skill.beyond_common.filter(|_| skill.against_own_past > 0.0) {
            let why = if beyond > 0.0 { "" } else { ", so a common trend would explain as much" };
            write!(to, "; after controlling for the group's previous mean, {}{why}", than(beyond))?;
        }
        if let Some(p) = self.p_value {
            write!(to, "; permutation test p = {p:.3}")?;
        }
        to.write_str(".")?;
        if let Some(SignificantAgents { count, of }) = self.significant {
            write!(to, " {count} of {of} agents are significant at 5 % after Benjamini–Hochberg.")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(against_persistence: f64, against_own_past: f64, beyond_common: Option<f64>) -> Option<Skill> {
        Some(Skill { against_persistence, against_own_past, beyond_common, steps: 9 })
    }

    fn tested(p: f64) -> Significance {
        Significance { agents: vec![0.01, 0.5], edges: vec![1.0; 4], skill: Some(p), shifts: 99 }
    }

    #[test]
    fn support_needs_the_test_and_every_baseline_beaten() {
        let outcome = |skill, found: Option<&Significance>| Verdict::from_skill(skill, found).outcome;
        assert_eq!(outcome(skill(0.1, 0.2, None), Some(&tested(0.05))), Outcome::Supported);
        assert_eq!(outcome(skill(0.1, 0.2, Some(0.01)), Some(&tested(0.01))), Outcome::Supported);
        assert_eq!(outcome(skill(0.1, 0.2, None), Some(&tested(0.06))), Outcome::NoEvidence);
        assert_eq!(outcome(skill(0.1, -0.2, None), Some(&tested(0.01))), Outcome::NoEvidence);
        assert_eq!(outcome(skill(-0.1, 0.2, None), Some(&tested(0.01))), Outcome::NoEvidence);
        assert_eq!(outcome(skill(0.1, 0.2, Some(-0.01)), Some(&tested(0.01))), Outcome::NoEvidence);
        assert_eq!(outcome(skill(0.1, 0.2, None), None), Outcome::NotTested, "positive skill is not a test");
        assert_eq!(outcome(None, None), Outcome::NotTested);
        assert_eq!(outcome(None, Some(&tested(0.01))), Outcome::NotTested, "no skill that could be supported");
    }

    #[test]
    fn one_sentence_for_each_outcome() {
        let said = |skill, found: Option<&Significance>| Verdict::from_skill(skill, found).to_string();
        assert_eq!(
            said(skill(0.1, 0.2, Some(0.03)), Some(&tested(0.012))),
            "The beliefs of these agents predict each other: on 9 held-out steps the network's forecasts are 20.0 % better than each agent's own past and 10.0 % better than no change; after controlling for the group's previous mean, 3.0 % better; permutation test p = 0.012. 1 of 2 agents are significant at 5 % after Benjamini–Hochberg."
        );
        assert_eq!(
            said(skill(-0.1, 0.2, Some(-0.01)), Some(&tested(0.012))),
            "No evidence that these agents listen to each other: on 9 held-out steps the network's forecasts are 20.0 % better than each agent's own past and 10.0 % worse than no change; after controlling for the group's previous mean, 1.0 % worse, so a common trend would explain as much; permutation test p = 0.012. 1 of 2 agents are significant at 5 % after Benjamini–Hochberg."
        );
        assert_eq!(
            said(skill(-20.0, 0.2, None), None),
            "Not tested against chance, because no permutation test was run: on 9 held-out steps the network's forecasts are 20.0 % better than each agent's own past and more than ten times worse than no change."
        );
        assert!(said(None, None).starts_with("Not tested: there is no forecast"));
    }

    #[test]
    fn json_is_the_documented_one_and_older_files_read() {
        let verdict = Verdict::from_skill(skill(0.1, 0.2, None), Some(&tested(0.01)));
        let json = serde_json::to_value(&verdict).unwrap();
        assert_eq!((&json["outcome"], &json["supported"]), (&"supported".into(), &true.into()));
        assert_eq!((&json["p_value"], &json["skill"]["steps"]), (&0.01.into(), &9.into()));
        assert_eq!(json["text"], verdict.to_string());
        assert_eq!(serde_json::from_value::<Verdict>(json).unwrap(), verdict);
        let old: Verdict = serde_json::from_str(r#"{"supported": true, "text": "They predict each other."}"#).unwrap();
        assert_eq!((old.outcome, old.to_string().as_str()), (Outcome::NotTested, "They predict each other."));
    }
}
