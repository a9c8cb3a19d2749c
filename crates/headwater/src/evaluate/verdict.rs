//! The verdict: whether the data support that these agents listen to each other, and which test decided.
//!
//! With a graph the graph test decides: common news cannot pass it. Where the graph cannot be rewired, such as a star, its
//! substitute decides: whether some account is heard. Without a graph, or where the data allow neither, circular shifts and
//! forecast skill decide; common news passes them, and the verdict says so.

mod json;
mod text;

use super::graph_test::{GraphNull, GraphTest, Untestable};
use super::null_test::{Significance, discoveries};
use super::too_few_steps::TooFewSteps;
use crate::Model;
use crate::learn::Method;
use crate::model::Skill;
use json::VerdictJson;
use serde::{Deserialize, Serialize};

/// Level of every test, and the false discovery rate among agents.
const LEVEL: f64 = 0.05;

/// Outcome of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The test that decides is significant at 5 %; circular shifts decide only together with held-out forecasts that beat
    /// every baseline.
    Supported,
    /// A test was run, and one of these does not hold.
    NoEvidence,
    /// No test was run, whatever the forecast skill.
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

/// The test that decided a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DecidingTest {
    /// Opinion travels along the graph more than along graphs like it, beyond common news.
    GraphTest,
    /// Some account is heard: for graphs that cannot be rewired, such as a star.
    SpeakerHeard,
    /// Forecasts beat every baseline and those from series shifted in time.
    CircularShifts,
}

impl DecidingTest {
    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            DecidingTest::GraphTest => "graph-test",
            DecidingTest::SpeakerHeard => "speaker-heard",
            DecidingTest::CircularShifts => "circular-shifts",
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

/// Whether the data support an answer. Its [`Display`](std::fmt::Display) is the one place that puts it into words;
/// [`Verdict::companions`] has what was found beside.
///
/// Serialised as `{"outcome", "supported", "text", "test", "common_news_excluded", "p_value", "graph_test",
/// "graph_untestable", "skill", "shifts_p_value", "shifts_impossible", "significant"}`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "VerdictJson", into = "VerdictJson")]
#[non_exhaustive]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// The test that decided, where one was run.
    pub test: Option<DecidingTest>,
    /// Of the test that decided.
    pub p_value: Option<f64>,
    /// The graph test with its companions, where a graph was tested.
    pub graph_test: Option<GraphTest>,
    /// Why the graph that was given could not be tested.
    pub graph_untestable: Option<Untestable>,
    /// Forecast skill on held-out steps, where measured.
    pub skill: Option<Skill>,
    /// Of the permutation test of the skill by circular shifts, where run.
    pub shifts_p_value: Option<f64>,
    /// Why that test was not possible, where it was asked for.
    pub shifts_impossible: Option<TooFewSteps>,
    /// Agents significant after Benjamini–Hochberg, where tested.
    pub significant: Option<SignificantAgents>,
    /// The model was given, not learned: there is nothing to test.
    pub given: bool,
    /// The sentence of a file that recorded no outcome.
    recorded: Option<String>,
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
        let mut verdict = Verdict { skill, ..Verdict::default() };
        verdict.add_shifts(significance);
        verdict
    }

    /// Adds the permutation test by circular shifts, where it was run.
    fn add_shifts(&mut self, significance: Option<&Significance>) {
        self.shifts_p_value = significance.and_then(|found| found.skill);
        self.significant = significance.map(|found| SignificantAgents {
            count: discoveries(&found.agents, LEVEL).into_iter().filter(|found| *found).count(),
            of: found.agents.len(),
        });
        self.decide();
    }

    /// With what came of testing a graph, which decides from now on; or with the reason why it cannot be tested.
    #[must_use]
    pub fn with_graph(mut self, tested: Result<GraphTest, Untestable>) -> Self {
        (self.graph_test, self.graph_untestable) = match tested {
            Ok(test) => (Some(test), None),
            Err(reason) => (None, Some(reason)),
        };
        // What is said of the beliefs no longer rests on how the model came about.
        self.given &= self.graph_test.is_none();
        self.decide();
        self
    }

    /// With the permutation test of a model's skill; a graph that was tested still decides.
    #[must_use]
    pub fn with_significance(mut self, significance: &Significance) -> Self {
        self.add_shifts(Some(significance));
        self
    }

    /// With the reason why there can be no permutation test by circular shifts.
    #[must_use]
    pub fn with_shifts_impossible(mut self, reason: TooFewSteps) -> Self {
        self.shifts_impossible = Some(reason);
        self
    }

    /// The test that decides, its p-value, and the outcome.
    fn decide(&mut self) {
        let level = |p: f64| if p <= LEVEL { Outcome::Supported } else { Outcome::NoEvidence };
        (self.test, self.p_value, self.outcome) = match (&self.graph_test, &self.skill, self.shifts_p_value) {
            (Some(test), ..) => {
                let decided = match test.null {
                    GraphNull::RewiredGraphs | GraphNull::RelabelledGraphs => DecidingTest::GraphTest,
                    GraphNull::ExchangedSpeakers => DecidingTest::SpeakerHeard,
                };
                (Some(decided), Some(test.p_value), level(test.p_value))
            }
            (None, Some(skill), Some(p)) => {
                let outcome = if beats_baselines(skill) { level(p) } else { Outcome::NoEvidence };
                (Some(DecidingTest::CircularShifts), Some(p), outcome)
            }
            (None, _, p) => (None, p, Outcome::NotTested),
        };
    }

    /// Whether the outcome is [`Outcome::Supported`].
    pub fn supported(&self) -> bool {
        self.outcome == Outcome::Supported
    }

    /// Whether the support is by a test that common news cannot pass: one of the graph that knows of groups.
    pub fn common_news_excluded(&self) -> bool {
        let excludes = |test: &GraphTest| match test.null {
            GraphNull::RewiredGraphs => true,
            GraphNull::RelabelledGraphs => test.groups_given,
            GraphNull::ExchangedSpeakers => false,
        };
        self.supported() && self.graph_test.as_ref().is_some_and(excludes)
    }

    /// What is said above numbers that were not found to be supported; none where they are, or where a model was given.
    pub fn caution(&self) -> Option<&'static str> {
        match self.outcome {
            Outcome::NoEvidence => Some("The numbers below are estimates that the data do not support."),
            Outcome::NotTested if !self.given => Some("Whether the data support the numbers below is not known."),
            _ => None,
        }
    }

    /// Whether held-out forecasts beat every baseline that they were compared with; none where there are none.
    pub fn beats_baselines(&self) -> Option<bool> {
        self.skill.as_ref().map(beats_baselines)
    }
}

/// Better than each agent's own past, than no change, and than a common trend where it was controlled for.
pub(super) fn beats_baselines(skill: &Skill) -> bool {
    skill.against_own_past > 0.0
        && skill.against_persistence > 0.0
        && skill.beyond_common.is_none_or(|beyond| beyond > 0.0)
}

#[cfg(test)]
mod tests {
    use super::text::NEVER_DECIDE;
    use super::*;
    use crate::evaluate::graph_test::GraphTestLimit;

    fn skill(against_persistence: f64, against_own_past: f64, beyond_common: Option<f64>) -> Option<Skill> {
        Some(Skill { against_persistence, against_own_past, beyond_common, steps: 9 })
    }

    fn tested(p: f64) -> Significance {
        Significance::new(vec![0.01, 0.5], vec![1.0; 4], Some(p), 99)
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
            "Supported, common news not excluded. The beliefs of these agents predict each other: on 9 held-out steps the network's forecasts are 20.0 % better than each agent's own past and 10.0 % better than no change; after controlling for the group's previous mean, 3.0 % better; permutation test p = 0.012. 1 of 2 agents are significant at 5 % after Benjamini–Hochberg. Common news was not excluded: accounts that read the same news at different times pass this test as well."
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
        let caution = |p| Verdict::from_skill(skill(0.1, 0.2, None), Some(&tested(p))).caution();
        assert_eq!((caution(0.01), caution(0.9).is_some()), (None, true));
        assert!(Verdict::default().caution().is_some_and(|said| said.ends_with("is not known.")));
        assert_eq!(Verdict { given: true, ..Verdict::default() }.caution(), None);
    }

    #[test]
    fn too_few_steps_for_shifts_are_the_reason_for_no_test() {
        let reason = TooFewSteps::told_apart::<()>(Err(crate::Error::NotReady { seen: 8, needed: 10 })).unwrap();
        let verdict = Verdict::from_skill(None, None).with_shifts_impossible(reason.unwrap_err());
        assert_eq!(
            verdict.to_string(),
            "Not tested: a permutation test is not possible, because there are too few time steps; its forecasts are learned from 8 of them, and need at least 10."
        );
        let json = serde_json::to_value(&verdict).unwrap();
        assert_eq!(json["shifts_impossible"]["needed"], 10);
        assert_eq!(serde_json::from_value::<Verdict>(json).unwrap(), verdict);
        // A graph that was tested decides without.
        let decided = verdict.with_graph(Ok(graph(0.01, GraphNull::RewiredGraphs)));
        assert!(decided.to_string().starts_with("Supported. Opinion travels"), "{decided}");
        assert!(TooFewSteps::told_apart::<()>(Err(crate::Error::Stopped)).is_err());
    }

    /// A graph test with this p-value and its companions.
    fn graph(p_value: f64, against: GraphNull) -> GraphTest {
        let mut test: GraphTest = serde_json::from_value(serde_json::json!({
            "p_value": p_value, "effect": 0.1, "low": 0.05, "high": 0.15, "z": 3.0, "null": against, "draws": 199, "steps": 80,
            "episodes": 1, "accounts": 25, "left_out": 2, "edges": 150, "silent_share": 0.45, "groups": 4,
            "groups_given": false, "guard": [0.0, 0.0], "rewired_share": 0.5, "unguarded_p": 0.005, "direction_p": 0.25,
            "shift_p": 0.01, "limits": ["mostly-silent"],
            "power": {"weights": [0.1, 0.2], "found": [0.2, 0.9], "worlds": 20, "smallest": 0.2},
        }))
        .unwrap();
        if against == GraphNull::ExchangedSpeakers {
            (test.unguarded_p, test.direction_p, test.shift_p, test.power) = (None, None, None, None);
            test.limits = vec![GraphTestLimit::CannotBeRewired];
        }
        test
    }

    #[test]
    fn a_graph_that_was_tested_decides() {
        let by_shifts = |p| Verdict::from_skill(skill(0.1, 0.2, None), Some(&tested(p)));
        for (shifts, p, outcome) in
            [(0.01, 0.05, Outcome::Supported), (0.9, 0.05, Outcome::Supported), (0.01, 0.06, Outcome::NoEvidence)]
        {
            let verdict = by_shifts(shifts).with_graph(Ok(graph(p, GraphNull::RewiredGraphs)));
            assert_eq!((verdict.outcome, verdict.p_value), (outcome, Some(p)));
            assert_eq!((verdict.test, verdict.shifts_p_value), (Some(DecidingTest::GraphTest), Some(shifts)));
            assert_eq!(verdict.common_news_excluded(), outcome == Outcome::Supported);
            // In any order.
            let other = Verdict::from_skill(skill(0.1, 0.2, None), None)
                .with_graph(Ok(graph(p, GraphNull::RewiredGraphs)))
                .with_significance(&tested(shifts));
            assert_eq!(other, verdict);
        }
        // Neither skill nor shifts are needed.
        let alone = Verdict::from_skill(None, None).with_graph(Ok(graph(0.01, GraphNull::RewiredGraphs)));
        assert!(alone.supported() && alone.to_string().starts_with("Supported. Opinion travels along this graph"));
        let given = Verdict { given: true, ..Verdict::default() };
        assert!(!given.clone().with_graph(Ok(graph(0.01, GraphNull::RewiredGraphs))).given);
        assert!(given.with_graph(Err(Untestable::NoContrast)).given);
    }

    #[test]
    fn what_is_said_of_a_graph_and_beside_it() {
        let shifts = Verdict::from_skill(skill(-0.1, -0.2, None), Some(&tested(0.6)));
        let supported = shifts.clone().with_graph(Ok(graph(0.01, GraphNull::RewiredGraphs)));
        assert_eq!(
            supported.to_string(),
            "Supported. Opinion travels along this graph more than along graphs like it: p = 0.010 against 199 rewired graphs. Not excluded: accounts that are alike, follow each other for that reason, and read the same news sooner the more followers they have."
        );
        assert_eq!(
            supported.companions(),
            [
                "Tested: 25 accounts, 150 edges, 80 time steps, 45.0% silent; 4 groups found in the graph.",
                "Left out: 2 accounts that speak too rarely or never change.",
                NEVER_DECIDE,
                "Connections: do accounts change after those they follow, more than after accounts to which they are connected at random? p = 0.005. Cannot exclude that accounts who are alike follow each other and react to the same news in the same way.",
                "Timing: do accounts change just after those they follow, more than when all series are shifted against each other in time? p = 0.010. Cannot exclude news that reaches many accounts at about the same time.",
                "Direction: do accounts change after those they follow, more than those they follow change after them? p = 0.250. Cannot exclude that the accounts with many followers read the same news first.",
                "Forecasts, which do not decide either: on 9 held-out steps the network's forecasts are 20.0 % worse than each agent's own past and 10.0 % worse than no change; permutation test p = 0.600. Cannot exclude news that reaches many accounts.",
                "1 of 2 agents are significant at 5 % after Benjamini–Hochberg.",
                "More than 70 % of the steps are silent; listening is then found only among many accounts over many steps.",
            ]
        );
        // Power only where nothing was found.
        let none = shifts.clone().with_graph(Ok(graph(0.2, GraphNull::RewiredGraphs)));
        assert!(none.to_string().starts_with("No evidence that opinion travels along this graph"), "{none}");
        assert!(none.companions().iter().any(|line| line.starts_with("Power for data like these")));
        let star = shifts.with_graph(Ok(graph(0.01, GraphNull::ExchangedSpeakers)));
        let said = star.to_string();
        assert!(said.starts_with("Supported, common news not excluded. Some account is heard: p = 0.010"), "{said}");
        assert!(said.ends_with(&GraphTestLimit::CannotBeRewired.to_string()) && !star.common_news_excluded());
        assert!(star.companions().iter().all(|line| !line.contains("rewired") && !line.contains("similar graphs")));
    }

    #[test]
    fn a_graph_that_cannot_be_tested_leaves_shifts_and_says_so() {
        let shifts = Verdict::from_skill(skill(0.1, 0.2, None), Some(&tested(0.01)));
        let verdict = shifts.clone().with_graph(Err(Untestable::EverybodyLinked));
        assert_eq!((verdict.outcome, verdict.test), (Outcome::Supported, Some(DecidingTest::CircularShifts)));
        assert!(!verdict.common_news_excluded() && verdict.companions().is_empty());
        let said = verdict.to_string();
        assert!(said.starts_with("Supported, common news not excluded. The beliefs of these agents"), "{said}");
        assert!(said.ends_with("not possible with these data: nearly every account is linked with every other, so there is no other graph to compare with."), "{said}");
        let untested = Verdict::from_skill(skill(0.1, 0.2, None), None).with_graph(Err(Untestable::EverybodyLinked));
        assert_eq!((untested.outcome, untested.test), (Outcome::NotTested, None));
        assert!(untested.to_string().contains("not possible with these data"));
        for verdict in [verdict, untested] {
            let json = serde_json::to_value(&verdict).unwrap();
            assert_eq!(json["graph_untestable"]["reason"], "everybody-linked");
            assert_eq!(serde_json::from_value::<Verdict>(json).unwrap(), verdict);
        }
    }

    #[test]
    fn json_is_the_documented_one_and_older_files_read() {
        let verdict = Verdict::from_skill(skill(0.1, 0.2, None), Some(&tested(0.01)));
        let json = serde_json::to_value(&verdict).unwrap();
        assert_eq!((&json["outcome"], &json["supported"]), (&"supported".into(), &true.into()));
        assert_eq!((&json["p_value"], &json["skill"]["steps"]), (&0.01.into(), &9.into()));
        assert_eq!(json["text"], verdict.to_string());
        assert_eq!((&json["test"], &json["common_news_excluded"]), (&"circular-shifts".into(), &false.into()));
        assert_eq!(serde_json::from_value::<Verdict>(json.clone()).unwrap(), verdict);
        // Files written before verdicts had a test.
        let mut before = json;
        for key in ["test", "common_news_excluded", "shifts_p_value"] {
            assert!(before.as_object_mut().unwrap().remove(key).is_some(), "{key}");
        }
        assert_eq!(serde_json::from_value::<Verdict>(before).unwrap(), verdict);
        let on_graph = verdict.with_graph(Ok(graph(0.02, GraphNull::RewiredGraphs)));
        let json = serde_json::to_value(&on_graph).unwrap();
        assert_eq!((&json["test"], &json["common_news_excluded"]), (&"graph-test".into(), &true.into()));
        assert_eq!((&json["p_value"], &json["shifts_p_value"]), (&0.02.into(), &0.01.into()));
        assert_eq!(json["graph_test"]["unguarded_p"], 0.005);
        assert_eq!(serde_json::from_value::<Verdict>(json).unwrap(), on_graph);
        let old: Verdict = serde_json::from_str(r#"{"supported": true, "text": "They predict each other."}"#).unwrap();
        assert_eq!((old.outcome, old.to_string().as_str()), (Outcome::NotTested, "They predict each other."));
    }
}
