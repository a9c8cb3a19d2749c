//! Scorers: a text in, how negative, neutral and positive it is out.

pub mod builtin;
pub mod column;
pub mod roberta;

use crate::Error;

/// Probabilities of the three classes; they sum to one.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Sentiment {
    pub negative: f64,
    pub neutral: f64,
    pub positive: f64,
}

impl Sentiment {
    /// positive/(negative+positive): the paper's p₂/(p₀+p₂).
    pub fn score(self) -> f64 {
        self.positive / (self.negative + self.positive)
    }
}

/// Something that scores texts.
pub trait Scorer: Send + Sync {
    /// One sentiment per text, in order.
    fn score(&self, texts: &[&str]) -> Result<Vec<Sentiment>, Error>;
}
