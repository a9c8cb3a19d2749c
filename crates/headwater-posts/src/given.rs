//! The user's own scores: the cells of a post in, an opinion out. Not a [`crate::Scorer`], because no text is read.

use crate::post::Scores;
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
pub(crate) fn given(scores: &Scores, wanted: Wanted) -> Result<Given, String> {
    let number = |name: &str, text: &str| {
        let value = text.trim().parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value));
        value.ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            format!("column {name}: met {shown:?}; wanted a probability from 0 to 1")
        })
    };
    if let Scores { negative: Some(negative), neutral: Some(neutral), positive: Some(positive), .. } = scores {
        let classes = [number("negative", negative)?, number("neutral", neutral)?, number("positive", positive)?];
        let sum: f64 = classes.iter().sum();
        if (sum - 1.0).abs() > SUM_TOLERANCE {
            return Err(format!("columns negative, neutral, positive: they sum to {sum}; wanted 1"));
        }
        let [negative, neutral, positive] = classes.map(|class| class / sum);
        return Ok(Given::Classes(Sentiment { negative, neutral, positive }));
    }
    match &scores.score {
        _ if wanted == Wanted::Classes => {
            Err("columns negative, neutral, positive: one is empty; wanted three probabilities".to_owned())
        }
        Some(score) => number("score", score).map(Given::Probability),
        None => Err("column score: is empty; wanted a probability from 0 to 1".to_owned()),
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
            given(&Scores { score, negative, neutral, positive }, Wanted::Either)
        };
        assert_eq!(of(["0.25", "", "", ""]), Ok(Given::Probability(0.25)));
        assert_eq!(
            of(["0.25", "0.2", "0.5", "0.3"]),
            Ok(Given::Classes(Sentiment { negative: 0.2, neutral: 0.5, positive: 0.3 }))
        );
        assert!(of(["2", "", "", ""]).unwrap_err().contains("met \"2\""));
        assert!(of(["NaN", "", "", ""]).unwrap_err().contains("NaN"));
        assert!(of(["", "0.5", "", ""]).unwrap_err().contains("column score: is empty"));
        assert!(of(["", "0.5", "0.5", "0.5"]).unwrap_err().contains("sum to 1.5"));
    }
}
