//! The first thing on the page: who drives opinion here, how sure we are, what was assumed; in words for an analyst.

use super::ReportInput;
use headwater::evaluate::{Outcome, discoveries};
use headwater::learn::refit_note;
use headwater::model::Status;
use headwater::ranking::{RankedAgent, Ranking};
use headwater::words::{count, number, percent, within};
use headwater::{Method, Model};
use serde::{Deserialize, Serialize};

/// False discovery rate of the agents called significant.
const FALSE_DISCOVERIES: f64 = 0.05;

/// How to measure what was not measured.
const MEASURE: &str = "rank the model together with its beliefs, with 200 bootstrap resamples and 200 circular shifts, and make the page from that ranking";

/// What the page says first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageVerdict {
    /// Whether the data support an answer, as the ranking has it.
    pub outcome: Outcome,
    /// One sentence: who drives opinion here.
    pub headline: String,
    /// The verdict's own words, as `rank` prints them.
    pub text: String,
    /// How sure we are.
    pub sure: Vec<String>,
    /// What was assumed.
    pub assumed: Vec<String>,
    /// What to be careful about.
    pub warnings: Vec<String>,
}

impl PageVerdict {
    /// `notes` are those of the model's plain ranking, which files do not carry.
    pub(super) fn new(from: &ReportInput<'_>, given: bool, notes: &[String]) -> Self {
        let (model, ranking) = (from.model, from.ranking);
        let outcome = ranking.verdict.outcome;
        let mut warnings = model.diagnostics.warnings.clone();
        warnings.extend(notes.iter().map(|note| sentence(note.trim_start_matches("* "))));
        let resampled = ranking.agents.iter().any(|row| row.share_low.is_some() || row.p_value.is_some());
        let refit = refit_note(model).filter(|note| resampled && !notes.contains(note));
        warnings.extend(refit.map(|note| sentence(&note)));
        PageVerdict {
            outcome,
            headline: headline(model, ranking, outcome),
            text: ranking.verdict.to_string(),
            sure: sure(model, ranking, outcome),
            assumed: assumed(model, given),
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
    let Some(first) = ranking.agents.first() else { return "There is nobody here.".to_owned() };
    let name = within(&first.agent);
    if outcome == Outcome::NoEvidence {
        return format!("No evidence that these agents listen to each other; that {name} comes first may be chance.");
    }
    let much = first.share.map_or(String::new(), |share| format!(" with {} of all influence", percent(share)));
    if outcome == Outcome::NotTested && model.method != Method::Given {
        return format!(
            "{name} comes first{much}, but whether these agents listen to each other at all was not tested."
        );
    }
    let rivals: Vec<&RankedAgent> = ranking.agents.iter().skip(1).filter(|row| row.rank_low == Some(1)).collect();
    match rivals.len() {
        0 if first.rank_high == Some(1) => {
            format!("{name} drives opinion here{much}, and at least 90% of the resamples agree.")
        }
        0 => format!("{name} drives opinion here{much}."),
        1 => format!("{name} leads{much}, but {} may be first as well.", within(&rivals[0].agent)),
        few @ 2..=3 => {
            let names: Vec<String> = rivals.iter().map(|row| within(&row.agent)).collect();
            format!(
                "{name} leads{much}, but {} or {} may be first as well.",
                names[..few - 1].join(", "),
                names[few - 1]
            )
        }
        many => format!("{name} comes first{much}, but so may {many} others: who leads is not settled."),
    }
}

fn sure(model: &Model, ranking: &Ranking, outcome: Outcome) -> Vec<String> {
    let mut sure = Vec::new();
    let first = ranking.agents.first();
    if outcome == Outcome::NotTested && model.method != Method::Given {
        sure.push(format!("Whether the data support an answer was not tested. To test it, {MEASURE}."));
    }
    let interval = first.and_then(|row| Some((row, row.share_low?, row.share_high?, row.rank_low?, row.rank_high?)));
    match interval {
        Some((row, low, high, best, worst)) => {
            let ranks = if best == worst {
                format!("its rank is {best}")
            } else {
                format!("its rank between {best} and {worst}")
            };
            sure.push(format!(
                "In 90% of the resamples {}'s share of influence is between {} and {}, and {ranks}.",
                within(&row.agent),
                percent(low),
                percent(high)
            ));
            let wide = ranking.agents.iter().filter(|row| row.share_low.is_some_and(|low| low <= 0.0)).count();
            if wide > 0 {
                sure.push(format!("The intervals of {} reach down to zero influence.", count(wide, "agent")));
            }
        }
        None if model.method == Method::Given => {
            sure.push("The network was given, not estimated: its numbers have no intervals.".to_owned());
        }
        None => sure.push(format!("How uncertain the shares are was not measured; to measure it, {MEASURE}.")),
    }
    let p_values: Option<Vec<f64>> = ranking.agents.iter().map(|row| row.p_value).collect();
    if let (Some(p_values), Some(row)) = (p_values.filter(|values| !values.is_empty()), first) {
        let heard = discoveries(&p_values, FALSE_DISCOVERIES).into_iter().filter(|found| *found).count();
        sure.push(format!(
            "{heard} of {} are significant at 5 % after Benjamini–Hochberg; for {} the permutation test gives p = {:.3}.",
            count(p_values.len(), "agent"),
            within(&row.agent),
            p_values[0]
        ));
    }
    let columns = &model.diagnostics.columns;
    let of = |status: Status| columns.iter().filter(|column| column.status == status).count();
    if !columns.is_empty() {
        let kinds = [
            (of(Status::Certified), "certified (cannot be a coincidence)"),
            (of(Status::Identified), "identified exactly"),
            (of(Status::Statistical), "estimates with statistical error"),
        ];
        let told: Vec<String> =
            kinds.iter().filter(|(many, _)| *many > 0).map(|(many, kind)| format!("{many} {kind}")).collect();
        sure.push(format!("Of the weights of {}: {}.", count(columns.len(), "listener"), told.join(", ")));
    }
    sure.push(format!(
        "{} of the agents believe in {:?}, on which the network settles.",
        percent(ranking.agreement),
        ranking.truth
    ));
    sure
}

fn assumed(model: &Model, given: bool) -> Vec<String> {
    let mut assumed = vec![format!(
        "Opinions form by adaptive social learning: at every step everybody mixes what they hear with evidence of their own, which has the weight δ = {}, the same for all.",
        number(model.adaptation)
    )];
    assumed.push(if model.track.history.len() > 1 {
        "Who listens to whom changes only where a change is marked.".to_owned()
    } else {
        "Who listens to whom, and what everybody knows, does not change during the time covered.".to_owned()
    });
    if given {
        assumed.push("Nobody hears anybody but those they follow in the graph that was given.".to_owned());
    } else if model.method != Method::Given {
        assumed.push("Anybody may hear anybody: no graph was given.".to_owned());
    }
    match &model.method {
        Method::StateSpace(_) => assumed
            .push("Posts show opinions with noise, and silence says nothing of what the silent think.".to_owned()),
        Method::Whitened(_) | Method::Tracked(_) | Method::Gsl(_) | Method::AsReleased(_) => assumed.push(
            "What agents say is what they believe, without noise; the silent still think what they last said."
                .to_owned(),
        ),
        _ => {}
    }
    assumed.push(
        "Influence is what this model of opinion says of these data. It is no proof that anybody convinced anybody."
            .to_owned(),
    );
    assumed
}
