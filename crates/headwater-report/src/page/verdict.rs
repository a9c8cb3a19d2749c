//! The verdict of the page: who is most influential, how certain that is, and what was assumed.

use super::ReportInput;
use headwater::evaluate::graph_test::GraphNull;
use headwater::evaluate::{DecidingTest, Outcome, Verdict, discoveries};
use headwater::learn::refit_note;
use headwater::model::{Skill, Status};
use headwater::ranking::{IntervalKind, RankedAgent, Ranking};
use headwater::words::{count, number, percent, within};
use headwater::{Method, Model};
use serde::{Deserialize, Serialize};
use std::fmt;

/// False discovery rate of the agents called significant.
const FALSE_DISCOVERIES: f64 = 0.05;

/// How to get intervals.
const HOW_TO_GET_INTERVALS: &str =
    "rank the model together with its beliefs, with 200 bootstrap resamples, and make the page from that ranking";

/// How to get a verdict.
const HOW_TO_TEST: &str = "rank the model together with its beliefs and the graph of who follows whom, or without a graph with 200 circular shifts, and make the page from that ranking";

/// What the graph test compares.
const GRAPH_TEST: &str = "The question was whether accounts change their opinion after those they follow, along this graph more than along others. From the change of each account what its own past explains was removed, and what its group and news common to all explain. The rest was compared with what the accounts it follows thought a step before, and the same was done on random graphs in which every account keeps its numbers of followed accounts, followers and mutual connections, and groups the connections between them.";

/// What it compares in conversations of a few steps.
const SHORT_GRAPH_TEST: &str = "The question was whether accounts change their opinion towards those they follow. From the change of each account what its own opinion explains was removed. The rest was compared with what the accounts it follows thought a step before, and the same was done with the accounts exchanged at random on the same graph, within groups where they are given.";

/// What the test of a speaker compares.
const SPEAKER_TEST: &str = "The question was whether some account is ahead of the others. For each account it was measured, in one stretch of time after the other, how the changes of all others follow what that account thought a step before, and compared with accounts exchanged at random within each stretch.";

/// What circular shifts compare.
const SHIFTS: &str = "Held-out steps were forecast from the beliefs of the others and compared with forecasts from each agent's own past, from no change and, where it was controlled for, from the group's previous mean. The permutation test repeats this with each agent's series shifted in time, which keeps each series as it is and breaks the connection between them.";

/// Why there is no power where nothing was tested.
const NO_POWER: &str = "How strong listening would have to be in order to be found, the power, is not known: it is a property of a test, and none was run.";

/// Share of missing beliefs, steps and agents at which these are named as possible causes of a negative result, or of one that
/// a test may have.
const MUCH_SILENCE: f64 = 0.4;
const FEW_STEPS: usize = 100;
const FEW_AGENTS: usize = 10;

/// The first section of the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageVerdict {
    /// Whether the data support an answer, as the ranking has it.
    pub outcome: Outcome,
    /// The test that decided, where one was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<DecidingTest>,
    /// Of that test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Whether the support is by a test that common news cannot pass.
    #[serde(default)]
    pub common_news_excluded: bool,
    /// One sentence: who is most influential.
    pub headline: String,
    /// The sentence of the verdict, as in the ranking.
    pub text: String,
    /// How certain the result is.
    pub sure: Vec<String>,
    /// What was tested, what was found beside it, and what limits the test here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tested: Vec<String>,
    /// What to try next; empty where supported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// What was assumed.
    pub assumed: Vec<String>,
    /// Warnings.
    pub warnings: Vec<String>,
}

impl PageVerdict {
    /// `notes` are those of a ranking made from the model alone; files do not store them.
    pub(super) fn new(from: &ReportInput<'_>, on_graph: bool, notes: &[String]) -> Self {
        let (model, ranking) = (from.model, from.ranking);
        let outcome = ranking.verdict.outcome;
        let mut warnings = model.diagnostics.warnings.clone();
        let contrarians = ranking.contrarian_notes();
        warnings.extend(notes.iter().chain(&contrarians).map(|note| sentence(note.trim_start_matches("* "))));
        let resampled = ranking.agents.iter().any(|row| row.share_low.is_some() || row.p_value.is_some());
        let refit = refit_note(model).filter(|note| resampled && !notes.contains(note));
        warnings.extend(refit.map(|note| sentence(&note)));
        PageVerdict {
            outcome,
            test: ranking.verdict.test,
            p_value: ranking.verdict.p_value.filter(|_| ranking.verdict.test.is_some()),
            common_news_excluded: ranking.verdict.common_news_excluded(),
            headline: headline(model, ranking, outcome),
            text: ranking.verdict.to_string(),
            sure: sure(model, ranking),
            tested: tested(from, outcome),
            next: next(from, outcome),
            assumed: assumed(model, on_graph),
            warnings,
        }
    }
}

fn sentence(note: &str) -> String {
    let mut letters = note.chars();
    let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{capital}{}.", letters.as_str().trim_end_matches('.'))
}

fn headline(model: &Model, ranking: &Ranking, outcome: Outcome) -> String {
    let Some(first) = ranking.agents.first() else { return "There are no agents.".to_owned() };
    let name = within(&first.agent);
    if outcome == Outcome::NoEvidence {
        return "No evidence that these agents influence each other.".to_owned();
    }
    if outcome == Outcome::NotTested && model.method != Method::Given {
        return "Whether these agents influence each other was not tested.".to_owned();
    }
    let much = first.signed_share().map_or(String::new(), |share| format!(" with {} of all influence", percent(share)));
    // What is supported comes before who leads.
    let verdict = &ranking.verdict;
    let name = match (verdict.test.filter(|_| outcome == Outcome::Supported), verdict.p_value, &verdict.skill) {
        (Some(DecidingTest::GraphTest), Some(p), _) => {
            format!("Opinion travels along the given graph (p = {p:.3}{}): {name}", effect(verdict))
        }
        (Some(DecidingTest::SpeakerHeard), Some(p), _) => {
            format!("Some account is heard (p = {p:.3}{}): {name}", effect(verdict))
        }
        (Some(DecidingTest::CircularShifts), _, Some(skill)) => {
            format!("Forecasts {}: {name}", improvement(skill))
        }
        _ => name,
    };
    // Support is for the network as a whole: the first may not be significant.
    let own = first.p_value.filter(|_| outcome == Outcome::Supported);
    let much = much + &own.map_or(String::new(), |p| format!(" (permutation test p = {p:.3})"));
    let rivals: Vec<&RankedAgent> = ranking.agents.iter().skip(1).filter(|row| row.rank_low == Some(1)).collect();
    match rivals.len() {
        0 if first.rank_high == Some(1) => {
            format!("{name} is the most influential agent{much}, also in at least 90% of the draws.")
        }
        0 => format!("{name} is the most influential agent{much}."),
        1 => format!("{name} ranks first{much}, but {} may also be first.", within(&rivals[0].agent)),
        few @ 2..=3 => {
            let names: Vec<String> = rivals.iter().map(|row| within(&row.agent)).collect();
            format!(
                "{name} ranks first{much}, but {} or {} may also be first.",
                names[..few - 1].join(", "),
                names[few - 1]
            )
        }
        many => format!("{name} ranks first{much}, but {many} other agents may also be first."),
    }
}

fn improvement(skill: &Skill) -> String {
    format!("improve by {} when the beliefs of the others are taken into account", percent(skill.against_own_past))
}

/// How strong the effect is that a test of a graph found, after a semicolon: by how much forecasts improve, and where they do not, the
/// correlation along the edges beyond chance.
fn effect(verdict: &Verdict) -> String {
    if let Some(skill) = verdict.skill.as_ref().filter(|skill| skill.against_own_past > 0.0) {
        return format!("; forecasts {}", improvement(skill));
    }
    match &verdict.graph_test {
        Some(test) if test.null != GraphNull::ExchangedSpeakers => format!(
            "; the correlation along its edges is {} above that of chance, with a 90% interval from {} to {}, while forecasts do not improve",
            number(test.effect),
            number(test.low),
            number(test.high)
        ),
        _ => String::new(),
    }
}

fn sure(model: &Model, ranking: &Ranking) -> Vec<String> {
    let mut sure = Vec::new();
    let first = ranking.agents.first();
    let interval = first.and_then(|row| {
        let (low, high) = row.signed_interval()?;
        Some((row, low, high, row.rank_low?, row.rank_high?))
    });
    match interval {
        Some((row, low, high, best, worst)) => {
            let ranks =
                if best == worst { format!("rank {best}") } else { format!("a rank between {best} and {worst}") };
            let draws = match ranking.intervals {
                Some(IntervalKind::Posterior) => "posterior draws",
                _ => "resamples",
            };
            sure.push(format!(
                "In 90% of the {draws} {} has a share of influence between {} and {}, and {ranks}.",
                within(&row.agent),
                percent(low),
                percent(high)
            ));
            sure.push(ranking.intervals.unwrap_or(IntervalKind::Bootstrap).coverage(model));
            let wide = ranking.agents.iter().filter(|row| row.share_low.is_some_and(|low| low <= 0.0)).count();
            if wide > 0 {
                sure.push(format!("The intervals of {} include zero.", count(wide, "agent")));
            }
        }
        None if model.method == Method::Given => {
            sure.push("The network was given, not estimated; there are no intervals.".to_owned());
        }
        None => sure.push(match ranking.intervals_impossible {
            Some(reason) => sentence(&reason.without_intervals()),
            None => format!("The shares have no intervals. To get them, {HOW_TO_GET_INTERVALS}."),
        }),
    }
    let p_values: Option<Vec<f64>> = ranking.agents.iter().map(|row| row.p_value).collect();
    if let (Some(p_values), Some(row)) = (p_values.filter(|values| !values.is_empty()), first) {
        let significant = discoveries(&p_values, FALSE_DISCOVERIES).into_iter().filter(|found| *found).count();
        sure.push(format!(
            "{significant} of {} are significant at 5 % after Benjamini–Hochberg; for {} the permutation test gives p = {:.3}.",
            count(p_values.len(), "agent"),
            within(&row.agent),
            p_values[0]
        ));
    }
    let columns = &model.diagnostics.columns;
    let with = |status: Status| columns.iter().filter(|column| column.status == status).count();
    if !columns.is_empty() {
        let kinds = [
            (with(Status::Certified), "certified as exact"),
            (with(Status::Identified), "identified without noise"),
            (with(Status::Statistical), "estimates with statistical error"),
        ];
        let told: Vec<String> =
            kinds.iter().filter(|(many, _)| *many > 0).map(|(many, kind)| format!("{many} {kind}")).collect();
        sure.push(format!("Weights of {}: {}.", count(columns.len(), "listener"), told.join(", ")));
    }
    if ranking.verdict.caution().is_none() {
        sure.push(format!(
            "The network settles on {:?}; {} of the agents agree.",
            ranking.truth,
            percent(ranking.agreement)
        ));
    }
    sure
}

/// What was tested, what was found beside it, and what limits it with these data.
fn tested(from: &ReportInput<'_>, outcome: Outcome) -> Vec<String> {
    let verdict = &from.ranking.verdict;
    let Some(test) = verdict.test else {
        if from.model.method == Method::Given {
            return Vec::new();
        }
        let mut tested = vec![
            "No test was run: neither whether opinion travels along a graph nor a permutation test.".to_owned(),
            NO_POWER.to_owned(),
        ];
        if let Some(size) = DataSize::new(from) {
            tested.push(format!("The ranking rests on {size}."));
            let causes = size.causes();
            if !causes.is_empty() {
                tested.push(format!(
                    "A test of these data may find nothing even where agents listen, because of: {}.",
                    causes.join("; ")
                ));
            }
        }
        return tested;
    };
    let relabelled = verdict.graph_test.as_ref().is_some_and(|found| found.null == GraphNull::RelabelledGraphs);
    let mut tested = vec![
        match test {
            DecidingTest::GraphTest if relabelled => SHORT_GRAPH_TEST,
            DecidingTest::GraphTest => GRAPH_TEST,
            DecidingTest::SpeakerHeard => SPEAKER_TEST,
            _ => SHIFTS,
        }
        .to_owned(),
    ];
    tested.extend(verdict.companions());
    if outcome == Outcome::Supported {
        return tested;
    }
    if test == DecidingTest::CircularShifts {
        tested.push(match &from.ranking.power {
            Some(power) => power.to_string(),
            None => "How strong an effect would have been found was not simulated: that takes at least 20 steps, and not so many agents and steps that it would take long.".to_owned(),
        });
    }
    if let Some(size) = DataSize::new(from) {
        tested.push(format!("The test rests on {size}."));
        let common = verdict.skill.as_ref().is_some_and(|skill| {
            skill.against_own_past > 0.0 && skill.beyond_common.is_some_and(|beyond| beyond <= 0.0)
        });
        let mut causes = size.causes();
        if common {
            causes.insert(0, "a common trend: the group's previous mean forecasts as well as the network".to_owned());
        }
        if !causes.is_empty() {
            tested.push(format!("Possible causes, apart from nobody listening: {}.", causes.join("; ")));
        }
    }
    tested
}

/// How many data there are.
struct DataSize {
    agents: usize,
    steps: usize,
    /// Share of missing beliefs.
    silent: f64,
}

impl DataSize {
    /// Of the beliefs, where they are known.
    fn new(from: &ReportInput<'_>) -> Option<Self> {
        let panel = from.beliefs?;
        let (agents, steps) = (panel.agents(), panel.steps());
        let silent = panel.silence().iter().sum::<usize>() as f64 / (steps * agents).max(1) as f64;
        Some(DataSize { agents, steps, silent })
    }

    /// Why a test of so few data may find nothing.
    fn causes(&self) -> Vec<String> {
        let missing = percent(self.silent);
        let silence = match self.silent > 0.5 {
            true => format!("silence: most beliefs, {missing}, are missing"),
            false => format!("silence: {missing} of the beliefs are missing"),
        };
        let causes = [
            (self.silent > MUCH_SILENCE, silence),
            (self.steps < FEW_STEPS, format!("few time steps: {}", self.steps)),
            (self.agents < FEW_AGENTS, format!("few agents: {}", self.agents)),
        ];
        causes.into_iter().filter(|(holds, _)| *holds).map(|(_, cause)| cause).collect()
    }
}

impl fmt::Display for DataSize {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{} and {}; {} of their beliefs are missing because of silence",
            count(self.agents, "agent"),
            count(self.steps, "time step"),
            percent(self.silent)
        )
    }
}

/// What may change the outcome.
fn next(from: &ReportInput<'_>, outcome: Outcome) -> Vec<String> {
    match outcome {
        Outcome::Supported => Vec::new(),
        _ if from.model.method == Method::Given => Vec::new(),
        Outcome::NotTested => {
            let first = match from.ranking.verdict.shifts_impossible {
                Some(_) => "More time steps: a longer period, or shorter bins.".to_owned(),
                None => format!("To test it, {HOW_TO_TEST}."),
            };
            let size = DataSize::new(from);
            let more = |wanted: fn(&DataSize) -> bool, cure: &str| {
                size.as_ref().filter(|size| wanted(size)).map(|_| cure.to_owned())
            };
            let cures = [
                more(|size| size.silent > MUCH_SILENCE, "Longer bins, or a topic with more posts per account."),
                more(|size| size.steps < FEW_STEPS, "A longer period."),
                more(|size| size.agents < FEW_AGENTS, "More accounts."),
            ];
            std::iter::once(first).chain(cures.into_iter().flatten()).collect()
        }
        Outcome::NoEvidence => vec![
            "A longer period, or a topic with more posts per account.".to_owned(),
            "Longer bins where many are silent, shorter ones where accounts answer within a bin.".to_owned(),
            match from.ranking.verdict.test {
                Some(DecidingTest::GraphTest) => "More accounts that post often, with the edges between them.",
                _ => "Fewer and more active accounts, and a graph of who follows whom.",
            }
            .to_owned(),
        ],
    }
}

fn assumed(model: &Model, on_graph: bool) -> Vec<String> {
    let mut assumed = vec![format!(
        "Opinions form by adaptive social learning: at every step each agent combines the beliefs of those they listen to with private evidence, which has the same weight δ = {} for all agents.",
        number(model.adaptation)
    )];
    assumed.push(if model.track.history.len() > 1 {
        "Who listens to whom changes only at the marked times.".to_owned()
    } else {
        "Who listens to whom, and how well informed each agent is, does not change over time.".to_owned()
    });
    if on_graph {
        assumed.push("Agents listen only to those they follow in the given graph.".to_owned());
    } else if model.method != Method::Given {
        assumed.push("Any agent may listen to any other: no graph was given.".to_owned());
    }
    match &model.method {
        Method::StateSpace(_) => assumed.push(
            "Posts measure opinions with noise; whether an agent posts does not depend on their opinion.".to_owned(),
        ),
        Method::Whitened(_) | Method::Tracked(_) | Method::Gsl(_) | Method::AsReleased(_) => assumed
            .push("Agents state their beliefs without noise; a silent agent keeps the belief last stated.".to_owned()),
        _ => {}
    }
    assumed.push(
        "Influence is an estimate under this model of opinion. It does not prove that anybody convinced anybody."
            .to_owned(),
    );
    assumed
}
