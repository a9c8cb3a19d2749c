//! The scorer inside the binary: no download, no start-up, every score explainable.
//!
//! In: English posts. Out: probabilities of negative, neutral and positive. A linear model over words, pieces of words, a
//! lexicon and the shape of the post ([`features`]), trained by `tools/train-scorer` on SemEval's tweets with every
//! class counting the same, so that a post without evidence is not taken for positive because SemEval's posts often are.
//! `docs/studies/scorers.md` has the figures.

pub mod features;
mod lexicon;
mod text;
pub mod weights;

use crate::{Error, Scorer, Sentiment};
use features::Features;
use rayon::prelude::*;
use std::collections::HashMap;
use weights::BuiltinWeights;

/// Written by `tools/train-scorer`.
const TRAINED: &[u8] = include_bytes!("builtin/weights.bin");

/// Posts that a thread takes at a time.
const SHARE: usize = 256;

/// The scorer inside the binary.
///
/// # Example
///
/// ```
/// use headwater_score::{Builtin, Scorer};
/// let scorer = Builtin::new();
/// let scores = scorer.score(&["I love this", "I do not love this"])?;
/// assert!(scores[0].score() > 0.8 && scores[1].score() < 0.5);
/// # Ok::<(), headwater_score::Error>(())
/// ```
#[derive(Debug)]
pub struct Builtin {
    weights: BuiltinWeights,
}

impl Default for Builtin {
    fn default() -> Self {
        Builtin::new()
    }
}

/// Why a post has its score.
#[derive(Debug, Clone)]
pub struct ScoreExplanation {
    /// The probabilities.
    pub sentiment: Sentiment,
    /// What moved them, the strongest first. The contributions sum to log(positive/negative).
    pub terms: Vec<ScoreTerm>,
}

/// One thing that moved a score.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreTerm {
    /// Words as the model sees them (`¬` marks negated ones), or a summary of the post in parentheses.
    pub term: String,
    /// What it adds to log(positive/negative).
    pub contribution: f64,
    /// What it adds to log(positive/neutral) and log(negative/neutral): large for both means opinion of either kind.
    pub against_neutral: [f64; 2],
}

impl Builtin {
    /// The scorer with the weights of this version.
    pub fn new() -> Self {
        Builtin { weights: BuiltinWeights::from_bytes(TRAINED).expect("a test reads the weights that are built in") }
    }

    /// A scorer with other weights.
    pub fn with_weights(weights: BuiltinWeights) -> Self {
        Builtin { weights }
    }

    fn sentiment(&self, features: &mut Features, post: &str) -> Sentiment {
        features.read(post);
        let mut sums = [0.0_f32; 2];
        for feature in features.list() {
            let weights = self.weights.of(feature.bucket);
            sums[0] += feature.value * weights[0];
            sums[1] += feature.value * weights[1];
        }
        sentiment(sums.map(|sum| f64::from(sum) / f64::from(self.weights.temperature)))
    }

    /// A score with the terms that moved it.
    pub fn explain(&self, post: &str) -> ScoreExplanation {
        let mut features = Features::default();
        let sentiment = self.sentiment(&mut features, post);
        let mut terms: Vec<ScoreTerm> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let temperature = f64::from(self.weights.temperature);
        for feature in features.list() {
            let [negative, positive] =
                self.weights.of(feature.bucket).map(|weight| f64::from(feature.value * weight) / temperature);
            let name = features.name(feature.origin);
            let place = *places.entry(name.clone()).or_insert(terms.len());
            if place == terms.len() {
                terms.push(ScoreTerm { term: name, contribution: 0.0, against_neutral: [0.0; 2] });
            }
            let term = &mut terms[place];
            term.contribution += positive - negative;
            term.against_neutral[0] += positive;
            term.against_neutral[1] += negative;
        }
        terms.sort_by(|left, right| right.contribution.abs().total_cmp(&left.contribution.abs()));
        ScoreExplanation { sentiment, terms }
    }
}

/// Softmax of negative and positive against neutral.
fn sentiment([negative, positive]: [f64; 2]) -> Sentiment {
    let largest = negative.max(positive).max(0.0);
    let [negative, neutral, positive] = [negative, 0.0, positive].map(|sum| (sum - largest).exp());
    let total = negative + neutral + positive;
    Sentiment { negative: negative / total, neutral: neutral / total, positive: positive / total }
}

impl Scorer for Builtin {
    fn score(&self, texts: &[&str]) -> Result<Vec<Sentiment>, Error> {
        let share = texts.par_iter().with_min_len(SHARE);
        Ok(share.map_init(Features::default, |features, text| self.sentiment(features, text)).collect())
    }
}
