//! Text to token numbers: the paper's normalisation, then the model's own byte-level BPE.

use super::config::Config;
use crate::Error;
use serde_json::Value;
use std::path::Path;
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::processors::roberta::RobertaProcessing;
use tokenizers::{AddedToken, Tokenizer as Inner};

/// The model's tokenizer.
pub(super) struct Tokenizer {
    inner: Inner,
    most: usize,
}

impl Tokenizer {
    /// Opens `tokenizer.json`, else `vocab.json` and `merges.txt`.
    pub(super) fn open(folder: &Path, config: &Config) -> Result<Tokenizer, Error> {
        let whole = folder.join("tokenizer.json");
        let (vocabulary, merges) = (folder.join("vocab.json"), folder.join("merges.txt"));
        let (path, inner) = if whole.is_file() {
            let inner = Inner::from_file(&whole);
            (whole, inner.map_err(|error| error.to_string()))
        } else if vocabulary.is_file() && merges.is_file() {
            let inner = from_parts(folder, &vocabulary, &merges);
            (vocabulary, inner)
        } else {
            let problem = "has no tokenizer: tokenizer.json, or vocab.json and merges.txt, are needed";
            return Err(Error::model(folder, problem));
        };
        let mut inner = inner.map_err(|error| Error::model(&path, format!("is not a tokenizer: {error}")))?;
        // Length and padding are the forward pass's business.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|error| Error::model(&path, error.to_string()))?;
        let largest = inner.get_vocab(true).into_values().max().unwrap_or(0) as usize;
        if largest >= config.vocab_size {
            let problem =
                format!("has token numbers up to {largest}, config.json has vocab_size {}", config.vocab_size);
            return Err(Error::model(&path, problem));
        }
        Ok(Tokenizer { inner, most: config.max_tokens() })
    }

    /// The token numbers of a post, with the marks of start and end, cut to what the model can take.
    pub(super) fn encode(&self, post: &str) -> Result<Vec<u32>, Error> {
        let encoded = self.inner.encode_fast(normalised(post), true);
        let encoded = encoded.map_err(|error| Error::Tokens { problem: error.to_string() })?;
        let mut numbers = encoded.get_ids().to_vec();
        if numbers.is_empty() {
            return Err(Error::Tokens {
                problem: "a post has no tokens, not even the one that marks its start".to_owned(),
            });
        }
        if numbers.len() > self.most {
            // As transformers cuts: the text loses its end, the mark of the end stays.
            let end = numbers[numbers.len() - 1];
            numbers.truncate(self.most);
            numbers[self.most - 1] = end;
        }
        Ok(numbers)
    }
}

fn from_parts(folder: &Path, vocabulary: &Path, merges: &Path) -> Result<Inner, String> {
    let text = |error: tokenizers::Error| error.to_string();
    let (Some(vocabulary), Some(merges)) = (vocabulary.to_str(), merges.to_str()) else {
        return Err("the name of its folder is not UTF-8".to_owned());
    };
    let bpe = BPE::from_file(vocabulary, merges).build().map_err(text)?;
    let mut inner = Inner::new(bpe);
    let number = |token: &str| inner.token_to_id(token).ok_or_else(|| format!("it has no token {token}"));
    let (start, end) = (number("<s>")?, number("</s>")?);
    let settings = std::fs::read_to_string(folder.join("tokenizer_config.json")).unwrap_or_default();
    let settings: Value = serde_json::from_str(&settings).unwrap_or_default();
    let prefix = settings["add_prefix_space"].as_bool().unwrap_or(false);
    let processing = RobertaProcessing::new(("</s>".to_owned(), end), ("<s>".to_owned(), start));
    inner.with_pre_tokenizer(Some(ByteLevel::new(prefix, true, true)));
    inner.with_post_processor(Some(processing.trim_offsets(true).add_prefix_space(prefix)));
    // As transformers 5.22 reads these two files; its version 4 also strips spaces before <mask>.
    let special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"].map(|token| AddedToken::from(token, true));
    let known: Vec<AddedToken> =
        special.into_iter().filter(|token| inner.token_to_id(&token.content).is_some()).collect();
    inner.add_special_tokens(known).map_err(text)?;
    Ok(inner)
}

/// As the paper's model was trained: account names become `@user`, links `http`; words are what spaces separate.
pub(super) fn normalised(post: &str) -> String {
    let word = |word: &str| match word {
        _ if word.starts_with('@') && word.chars().nth(1).is_some() => "@user".to_owned(),
        _ if word.starts_with("http") => "http".to_owned(),
        _ => word.to_owned(),
    };
    post.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_links_are_normalised() {
        assert_eq!(normalised("@ann hi  @ http://t.co/x httpx é@b\n@c"), "@user hi  @ http http é@b\n@c");
        assert_eq!(normalised(""), "");
    }
}
