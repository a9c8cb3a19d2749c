//! `config.json`: the shape of the model and the order of its labels.

use crate::Error;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What the forward pass needs to know.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Config {
    #[serde(default)]
    model_type: Option<String>,
    pub(super) hidden_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) intermediate_size: usize,
    pub(super) vocab_size: usize,
    pub(super) max_position_embeddings: usize,
    #[serde(default = "one")]
    pub(super) type_vocab_size: usize,
    #[serde(default = "small")]
    pub(super) layer_norm_eps: f32,
    #[serde(default = "gelu")]
    hidden_act: String,
    #[serde(default = "pad")]
    pub(super) pad_token_id: u32,
    #[serde(default)]
    position_embedding_type: Option<String>,
    #[serde(default)]
    id2label: BTreeMap<String, String>,
}

fn one() -> usize {
    1
}

fn small() -> f32 {
    1e-12
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn pad() -> u32 {
    1
}

impl Config {
    pub(super) fn read(path: &Path) -> Result<Config, Error> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::model(path, format!("cannot be read: {error}")))?;
        let config: Config = serde_json::from_str(&text)
            .map_err(|error| Error::model(path, format!("is not the configuration of a RoBERTa model: {error}")))?;
        config.check().map_err(|problem| Error::model(path, problem))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        if let Some(kind) = &self.model_type
            && kind != "roberta"
        {
            return Err(format!("model_type is {kind:?}; only \"roberta\" can be run"));
        }
        if self.hidden_act != "gelu" {
            return Err(format!("hidden_act is {:?}; only \"gelu\" can be run", self.hidden_act));
        }
        if let Some(kind) = &self.position_embedding_type
            && kind != "absolute"
        {
            return Err(format!("position_embedding_type is {kind:?}; only \"absolute\" can be run"));
        }
        let sizes = [
            ("hidden_size", self.hidden_size, 1 << 14),
            ("num_hidden_layers", self.num_hidden_layers, 256),
            ("num_attention_heads", self.num_attention_heads, 256),
            ("intermediate_size", self.intermediate_size, 1 << 16),
            ("vocab_size", self.vocab_size, 1 << 22),
            ("type_vocab_size", self.type_vocab_size, 1 << 10),
            ("max_position_embeddings", self.max_position_embeddings, 1 << 16),
        ];
        if let Some((name, size, most)) = sizes.into_iter().find(|(_, size, most)| *size == 0 || size > most) {
            return Err(format!("{name} is {size}; 1 to {most} can be run"));
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let (size, heads) = (self.hidden_size, self.num_attention_heads);
            return Err(format!("hidden_size {size} cannot be shared by {heads} attention heads"));
        }
        if self.max_tokens() < 2 {
            return Err(format!("max_position_embeddings {} leaves no space for text", self.max_position_embeddings));
        }
        self.labels().map(drop)
    }

    /// Positions are counted from the one after the padding's.
    pub(super) fn max_tokens(&self) -> usize {
        self.max_position_embeddings.saturating_sub(self.pad_token_id as usize + 1)
    }

    /// Which outputs are negative, neutral and positive.
    pub(super) fn labels(&self) -> Result<[usize; 3], String> {
        // transformers does not write the names it gives by default.
        if self.id2label.is_empty() {
            return Ok([0, 1, 2]);
        }
        let shown = || format!("{:?}", self.id2label.values().collect::<Vec<_>>());
        let mut found = [None; 3];
        for (id, label) in &self.id2label {
            let class = match label.to_lowercase().as_str() {
                "negative" | "neg" | "label_0" => 0,
                "neutral" | "neu" | "label_1" => 1,
                "positive" | "pos" | "label_2" => 2,
                _ => return Err(format!("its labels are {}; negative, neutral and positive are needed", shown())),
            };
            found[class] = id.parse::<usize>().ok().filter(|id| *id < 3);
        }
        match (found, self.id2label.len()) {
            ([Some(negative), Some(neutral), Some(positive)], 3)
                if negative != neutral && neutral != positive && negative != positive =>
            {
                Ok([negative, neutral, positive])
            }
            _ => Err(format!("its labels are {}; negative, neutral and positive are needed", shown())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: &str) -> Result<[usize; 3], String> {
        let text = format!(
            r#"{{"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
                 "vocab_size": 20, "max_position_embeddings": 12 {change}}}"#
        );
        let config: Config = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        config.check()?;
        config.labels()
    }

    #[test]
    fn labels_are_found_by_name() {
        assert_eq!(config(""), Ok([0, 1, 2]));
        let named = r#", "id2label": {"0": "Positive", "1": "negative", "2": "NEUTRAL"}"#;
        assert_eq!(config(named), Ok([1, 2, 0]));
        let plain = r#", "id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}"#;
        assert_eq!(config(plain), Ok([0, 1, 2]));
        let two = r#", "id2label": {"0": "negative", "1": "positive"}"#;
        assert!(config(two).unwrap_err().contains("neutral"));
        let other = r#", "id2label": {"0": "joy", "1": "anger", "2": "fear"}"#;
        assert!(config(other).unwrap_err().contains("joy"));
    }

    #[test]
    fn other_models_are_refused() {
        for (change, part) in [
            (r#", "model_type": "bert""#, "bert"),
            (r#", "hidden_act": "relu""#, "relu"),
            (r#", "position_embedding_type": "relative_key""#, "relative_key"),
            (r#", "type_vocab_size": 0"#, "type_vocab_size"),
            (r#", "pad_token_id": 11"#, "leaves no space"),
        ] {
            assert!(config(change).unwrap_err().contains(part), "{change}");
        }
    }
}
