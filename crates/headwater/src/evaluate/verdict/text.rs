//! A verdict in words: the sentence, and what was found beside.

use super::{DecidingTest, Outcome, SignificantAgents, Verdict};
use crate::evaluate::graph_test::{GraphNull, GraphTestLimit};
use crate::model::Skill;
use crate::words::{count, percent};
use std::fmt;

/// What circular shifts cannot exclude.
const COMMON_NEWS: &str =
    "Common news was not excluded: accounts that read the same news at different times pass this test as well.";

/// What introduces the tests beside the graph test.
pub(super) const NEVER_DECIDE: &str =
    "Simpler tests beside this one never decide, because each of them can give a small p-value where nobody listens:";

/// Their questions, and what a small p-value cannot exclude: without groups and guard, circular shifts, direction.
const BESIDE: [(&str, &str); 3] = [
    (
        "Connections: do accounts change after those they follow, more than after accounts to which they are connected at random?",
        "that accounts who are alike follow each other and react to the same news in the same way",
    ),
    (
        "Timing: do accounts change just after those they follow, more than when all series are shifted against each other in time?",
        "news that reaches many accounts at about the same time",
    ),
    (
        "Direction: do accounts change after those they follow, more than those they follow change after them?",
        "that the accounts with many followers read the same news first",
    ),
];

impl Verdict {
    /// What was found beside the graph test that decided, and what limits it, a sentence each: what was tested, tests that
    /// never decide, skill, power where nothing was found, limits. Empty where no graph was tested.
    pub fn companions(&self) -> Vec<String> {
        let Some(test) = &self.graph_test else { return Vec::new() };
        let groups = match (test.groups_given, test.null) {
            (true, _) => format!("; {} given", count(test.groups, "group")),
            // Without groups accounts are exchanged among all.
            (false, GraphNull::RelabelledGraphs) => String::new(),
            (false, _) => format!("; {} found in the graph", count(test.groups, "group")),
        };
        let mut lines = vec![format!(
            "Tested: {}, {}, {}, {} silent{groups}.",
            count(test.accounts, "account"),
            count(test.edges, "edge"),
            count(test.steps, "time step"),
            percent(test.silent_share),
        )];
        if test.left_out > 0 {
            let accounts = count(test.left_out, "account");
            lines.push(format!("Left out: {accounts} that speak too rarely or never change."));
        }
        let beside = BESIDE.iter().zip([test.unguarded_p, test.shift_p, test.direction_p]);
        let beside: Vec<String> = beside
            .filter_map(|((question, not), p)| Some(format!("{question} p = {:.3}. Cannot exclude {not}.", p?)))
            .collect();
        if !beside.is_empty() {
            lines.push(NEVER_DECIDE.to_owned());
            lines.extend(beside);
        }
        if let Some(skill) = &self.skill {
            let shifts = self.shifts_p_value.map_or(String::new(), |p| format!("; permutation test p = {p:.3}"));
            lines.push(format!(
                "Forecasts, which do not decide either: {}{shifts}. Cannot exclude news that reaches many accounts.",
                SkillText(skill)
            ));
        }
        if let Some(SignificantAgents { count, of }) = self.significant {
            lines.push(significant_text(count, of));
        }
        if !self.supported() {
            lines.extend(test.power.as_ref().map(ToString::to_string));
        }
        // That the graph cannot be rewired is in the verdict itself.
        let limits = test.limits.iter().filter(|limit| **limit != GraphTestLimit::CannotBeRewired);
        lines.extend(limits.map(ToString::to_string));
        lines
    }
}

fn significant_text(count: usize, of: usize) -> String {
    format!("{count} of {of} agents are significant at 5 % after Benjamini–Hochberg.")
}

/// Forecast skill in words.
struct SkillText<'a>(&'a Skill);

impl fmt::Display for SkillText<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skill = self.0;
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
        Ok(())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.recorded {
            return to.write_str(text);
        }
        if self.given {
            return to.write_str("Not tested: this model was given, not learned.");
        }
        if self.supported() {
            to.write_str(if self.common_news_excluded() {
                "Supported. "
            } else {
                "Supported, common news not excluded. "
            })?;
        }
        if let Some(test) = &self.graph_test {
            write!(to, "{test}")?;
            if self.test == Some(DecidingTest::SpeakerHeard) {
                write!(to, " {}", GraphTestLimit::CannotBeRewired)?;
            }
            return Ok(());
        }
        let impossible = self.shifts_impossible.filter(|_| self.shifts_p_value.is_none());
        if let (Some(reason), Outcome::NotTested) = (impossible, self.outcome) {
            write!(to, "Not tested: a permutation test is not possible, because {}.", reason.of_shifts())?;
        } else if let Some(skill) = &self.skill {
            to.write_str(match self.outcome {
                Outcome::Supported => "The beliefs of these agents predict each other: ",
                Outcome::NoEvidence => "No evidence that these agents listen to each other: ",
                Outcome::NotTested => "Not tested against chance, because no permutation test was run: ",
            })?;
            write!(to, "{}", SkillText(skill))?;
            if let Some(p) = self.p_value {
                write!(to, "; permutation test p = {p:.3}")?;
            }
            to.write_str(".")?;
            if let Some(SignificantAgents { count, of }) = self.significant {
                write!(to, " {}", significant_text(count, of))?;
            }
        } else {
            to.write_str(
                "Not tested: there is no forecast of held-out steps, so nothing here shows whether these agents listen to each other.",
            )?;
        }
        if self.supported() {
            write!(to, " {COMMON_NEWS}")?;
        }
        if let Some(reason) = &self.graph_untestable {
            write!(to, " The graph test, which would exclude common news, is not possible with these data: {reason}.")?;
        }
        Ok(())
    }
}
