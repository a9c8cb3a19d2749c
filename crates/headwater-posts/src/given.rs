//! The user's own scores: the cells of a post in, an opinion out. Not a [`crate::Scorer`], because no text is read.

use crate::post::Scores;
use crate::read::{RowError, RowProblem};
use headwater_score::Sentiment;

/// The three classes may miss one by this much, as rounded numbers do; they are scaled.
const SUM_TOLERANCE: f64 = 0.01;

/// An opinion that came with the post.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given {
    /// The probability that it is positive rather than negative.
    Probability(f64),
    /// All three classes.
    Classes(Sentiment),
}

/// The range of a column of scores, which is mapped to probabilities from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreRange {
    low: f64,
    high: f64,
}

impl Default for ScoreRange {
    fn default() -> Self {
        ScoreRange { low: 0.0, high: 1.0 }
    }
}

impl ScoreRange {
    /// From the most negative score to the most positive one.
    ///
    /// ```
    /// use headwater_posts::given::ScoreRange;
    /// assert_eq!("-1..1".parse(), Ok(ScoreRange::new(-1.0, 1.0).unwrap()));
    /// assert!(ScoreRange::new(1.0, 1.0).is_none());
    /// ```
    pub fn new(low: f64, high: f64) -> Option<Self> {
        (low < high && low.is_finite() && (high - low).is_finite()).then_some(ScoreRange { low, high })
    }

    /// The probability that a score stands for.
    fn probability(self, score: f64) -> Option<f64> {
        (self.low..=self.high).contains(&score).then(|| (score - self.low) / (self.high - self.low))
    }
}

impl std::fmt::Display for ScoreRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.low, self.high)
    }
}

impl std::str::FromStr for ScoreRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ends = text
            .split_once("..")
            .and_then(|(low, high)| ScoreRange::new(low.trim().parse().ok()?, high.trim().parse().ok()?));
        ends.ok_or_else(|| format!("found {text:?}; expected the lowest and the highest score, such as -1..1"))
    }
}

/// Which columns are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// None.
    Nothing,
    /// The three classes, or else `score`.
    Either,
    /// The three classes.
    Classes,
}

/// Reads `negative,neutral,positive` where all three are filled, otherwise `score`.
pub(crate) fn given(scores: &Scores, wanted: Wanted, range: ScoreRange) -> Result<Given, RowError> {
    let number = |name: &str, text: &str| {
        let value = text.trim().parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value));
        value.ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            format!("column {name}: found {shown:?}; expected a probability from 0 to 1")
        })
    };
    if let Scores { negative: Some(negative), neutral: Some(neutral), positive: Some(positive), .. } = scores {
        let classes = [number("negative", negative)?, number("neutral", neutral)?, number("positive", positive)?];
        let sum: f64 = classes.iter().sum();
        if (sum - 1.0).abs() > SUM_TOLERANCE {
            return Err(format!("columns negative, neutral, positive: they sum to {sum}; expected 1").into());
        }
        let [negative, neutral, positive] = classes.map(|class| class / sum);
        return Ok(Given::Classes(Sentiment { negative, neutral, positive }));
    }
    let wanted_score = if range == ScoreRange::default() {
        "expected a probability from 0 to 1".to_owned()
    } else {
        format!("expected a score from {} to {}", range.low, range.high)
    };
    match &scores.score {
        _ if wanted == Wanted::Classes => {
            Err("columns negative, neutral, positive: one is empty; expected three probabilities".to_owned().into())
        }
        Some(score) => {
            let number = score.trim().parse::<f64>().ok();
            number.and_then(|number| range.probability(number)).map(Given::Probability).ok_or_else(|| {
                let shown: String = score.chars().take(40).collect();
                let problem = match number {
                    Some(number) if number.is_finite() => RowProblem::ScoreRange,
                    _ => RowProblem::Row,
                };
                RowError::new(problem, format!("column score: found {shown:?}; {wanted_score}"))
            })
        }
        None => Err(format!("column score: is empty; {wanted_score}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_and_classes() {
        let of = |cells: [&str; 4]| {
            let [score, negative, neutral, positive] =
                cells.map(|cell| Some(cell.to_owned()).filter(|cell| !cell.is_empty()));
            let scores = Scores { score, negative, neutral, positive };
            given(&scores, Wanted::Either, ScoreRange::default()).map_err(|error| error.reason)
        };
        assert_eq!(of(["0.25", "", "", ""]), Ok(Given::Probability(0.25)));
        assert_eq!(
            of(["0.25", "0.2", "0.5", "0.3"]),
            Ok(Given::Classes(Sentiment { negative: 0.2, neutral: 0.5, positive: 0.3 }))
        );
        assert!(of(["2", "", "", ""]).unwrap_err().contains("found \"2\""));
        assert!(of(["NaN", "", "", ""]).unwrap_err().contains("NaN"));
        assert!(of(["", "0.5", "", ""]).unwrap_err().contains("column score: is empty"));
        assert!(of(["", "0.5", "0.5", "0.5"]).unwrap_err().contains("sum to 1.5"));
    }

    #[test]
    fn scores_of_another_range_are_mapped_to_probabilities() {
        let range: ScoreRange = "-1..1".parse().unwrap();
        let of = |score: &str, range| {
            given(&Scores { score: Some(score.to_owned()), ..Scores::default() }, Wanted::Either, range)
        };
        for (score, probability) in [("-1", 0.0), ("0", 0.5), ("0.5", 0.75), ("1", 1.0)] {
            assert_eq!(of(score, range), Ok(Given::Probability(probability)));
        }
        let outside = of("-0.5", ScoreRange::default()).unwrap_err();
        assert_eq!(outside.problem, RowProblem::ScoreRange);
        assert!(of("1.5", range).unwrap_err().reason.ends_with("expected a score from -1 to 1"));
        assert_eq!(of("great", range).unwrap_err().problem, RowProblem::Row);
        for wrong in ["1..-1", "1", "..", "0..inf", "a..b"] {
            assert!(wrong.parse::<ScoreRange>().is_err(), "{wrong}");
        }
        assert_eq!(range.to_string(), "-1..1");
    }
}
