//! Scorers: texts in, how negative, neutral and positive each of them is out.
//!
//! | module | scorer |
//! |---|---|
//! | [`builtin`] | a linear model inside the binary: English, fast, explainable |
//! | [`roberta`] | a RoBERTa model with three labels (feature `transformer`), by name with feature `hub` |
//! | [`model_source`] | where a text model is: a folder, or a name on a model hub |

pub mod builtin;
pub mod error;
pub mod model_source;
#[cfg(feature = "transformer")]
pub mod roberta;

pub use builtin::Builtin;
pub use error::Error;
pub use model_source::ModelSource;
#[cfg(feature = "transformer")]
pub use roberta::Roberta;

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
