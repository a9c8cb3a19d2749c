//! The paper's model family: RoBERTa sequence classification with three labels, from a local folder, in pure Rust.
//!
//! In: posts. Out: the softmax of the model's logits. The folder is as published: `config.json`, `model.safetensors` or
//! `pytorch_model.bin`, `tokenizer.json` or `vocab.json` and `merges.txt`. Texts of similar length share a batch, batches
//! share the processor's cores, and a text that was scored before is not scored again.

mod config;
#[cfg(feature = "hub")]
pub mod hub;
mod kernel;
mod model;
mod pickle;
mod tensors;
mod tokens;

use crate::{Error, Scorer, Sentiment};
use config::Config;
use headwater::progress;
use model::Transformer;
use rayon::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
pub use tensors::{CheckpointBytes, ModelCheckpoint};
use tokens::Tokenizer;

/// A batch has about this many tokens: enough for fast products, few enough for the caches.
const BATCH: usize = 512;

/// Texts whose scores are remembered from call to call: about 50 bytes each.
const REMEMBERED: usize = 1 << 20;

/// A RoBERTa classifier with its tokenizer.
///
/// # Example
///
/// ```no_run
/// use headwater_score::{Roberta, Scorer};
/// let scorer = Roberta::open("twitter-roberta-base-sentiment".as_ref())?;
/// println!("{:?}", scorer.score(&["Bitcoin for the win"])?);
/// # Ok::<(), headwater_score::Error>(())
/// ```
pub struct Roberta {
    model: Transformer,
    tokenizer: Tokenizer,
    /// Which logit is negative, neutral, positive.
    labels: [usize; 3],
    states: [RandomState; 2],
    remembered: Mutex<HashMap<u128, Sentiment>>,
}

impl std::fmt::Debug for Roberta {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Roberta").field("labels", &self.labels).finish_non_exhaustive()
    }
}

impl Roberta {
    /// Opens a model's folder and checks every file in it.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        if !folder.is_dir() {
            return Err(Error::model(
                folder,
                "is not a folder; a model's folder holds config.json, weights and a tokenizer",
            ));
        }
        let path = folder.join("config.json");
        let config = Config::read(&path)?;
        let tokenizer = Tokenizer::open(folder, &config)?;
        let mut checkpoint = ModelCheckpoint::open(folder)?;
        let model = Transformer::read(&config, &mut checkpoint)?;
        let labels = config.labels().map_err(|problem| Error::model(&path, problem))?;
        let states = [RandomState::new(), RandomState::new()];
        Ok(Roberta { model, tokenizer, labels, states, remembered: Mutex::default() })
    }

    /// Token numbers of a post, after the paper's normalisation, with the marks of start and end.
    pub fn tokens(&self, post: &str) -> Result<Vec<u32>, Error> {
        self.tokenizer.encode(post)
    }

    /// The model's raw outputs for each post, in the model's own order of labels. Nothing is remembered.
    pub fn logits(&self, posts: &[&str]) -> Result<Vec<[f32; 3]>, Error> {
        let numbers: Vec<Vec<u32>> = posts.par_iter().map(|post| self.tokens(post)).collect::<Result<_, _>>()?;
        let mut order: Vec<usize> = (0..posts.len()).collect();
        order.sort_by_key(|index| numbers[*index].len());
        let batches: Vec<Vec<usize>> = batches(&order, |index| numbers[index].len());
        let found: Vec<Vec<[f32; 3]>> = batches
            .par_iter()
            .map(|batch| {
                progress::check()?;
                let texts: Vec<&[u32]> = batch.iter().map(|index| numbers[*index].as_slice()).collect();
                Ok(self.model.logits(&texts))
            })
            .collect::<Result<_, Error>>()?;
        let mut logits = vec![[0.0; 3]; posts.len()];
        for (index, found) in batches.iter().flatten().zip(found.iter().flatten()) {
            logits[*index] = *found;
        }
        Ok(logits)
    }

    fn sentiment(&self, logits: [f32; 3]) -> Sentiment {
        let largest = logits.into_iter().fold(f32::MIN, f32::max);
        let powers = logits.map(|logit| f64::from(logit - largest).exp());
        let total: f64 = powers.iter().sum();
        let [negative, neutral, positive] = self.labels.map(|label| powers[label] / total);
        Sentiment { negative, neutral, positive }
    }

    /// 128 bits of two keyed hashes: two texts with the same key are not to be feared.
    fn key(&self, post: &str) -> u128 {
        let [high, low] = &self.states;
        u128::from(high.hash_one(post)) << 64 | u128::from(low.hash_one(post))
    }
}

/// Cuts an order into runs of about [`BATCH`] tokens, as many as keep all threads busy to the end.
fn batches(order: &[usize], length: impl Fn(usize) -> usize) -> Vec<Vec<usize>> {
    let total: usize = order.iter().map(|index| length(*index)).sum();
    let threads = rayon::current_num_threads();
    let count = total.div_ceil(BATCH).next_multiple_of(threads);
    let share = total.div_ceil(count.max(1)).max(1);
    let mut batches: Vec<Vec<usize>> = Vec::with_capacity(count);
    let mut filled = usize::MAX;
    for index in order {
        if filled >= share {
            batches.push(Vec::new());
            filled = 0;
        }
        filled += length(*index);
        if let Some(batch) = batches.last_mut() {
            batch.push(*index);
        }
    }
    // The longest first: a thread that starts last should not finish last.
    batches.reverse();
    batches
}

impl Scorer for Roberta {
    fn score(&self, texts: &[&str]) -> Result<Vec<Sentiment>, Error> {
        let keys: Vec<u128> = texts.iter().map(|text| self.key(text)).collect();
        let mut known: HashMap<u128, Sentiment> = HashMap::new();
        let mut fresh: Vec<usize> = Vec::new();
        {
            let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            let mut seen = std::collections::HashSet::new();
            for (index, key) in keys.iter().enumerate() {
                if !seen.insert(*key) {
                    continue;
                }
                match remembered.get(key) {
                    Some(sentiment) => drop(known.insert(*key, *sentiment)),
                    None => fresh.push(index),
                }
            }
        }
        let posts: Vec<&str> = fresh.iter().map(|index| texts[*index]).collect();
        let logits = self.logits(&posts)?;
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, logits) in fresh.into_iter().zip(logits) {
            let sentiment = self.sentiment(logits);
            known.insert(keys[index], sentiment);
            if remembered.len() < REMEMBERED {
                remembered.insert(keys[index], sentiment);
            }
        }
        drop(remembered);
        let found: Option<Vec<Sentiment>> = keys.iter().map(|key| known.get(key).copied()).collect();
        // Every key was either remembered or scored above.
        found.ok_or_else(|| Error::Tokens { problem: "a post was lost on the way".to_owned() })
    }
}
