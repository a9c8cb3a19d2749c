//! The forward pass: token numbers of a batch of texts in, three logits per text out.
//!
//! The texts of a batch stand one after the other without padding; only attention looks at one text at a time. Queries,
//! keys and values are one product. The last layer computes what the classifier reads, the first token of each text, and
//! nothing else.

use super::config::Config;
use super::kernel::{After, Attend, AttentionBuffers, AttentionShape, Dense, Norm};
use super::tensors::ModelCheckpoint;
use crate::Error;
use pulp::Arch;

/// A RoBERTa sequence classifier.
pub(super) struct Transformer {
    words: Vec<f32>,
    /// Positions with the embedding of the only token type added.
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    hidden: Dense,
    classes: Dense,
    width: usize,
    heads: usize,
    padding: u32,
    arch: Arch,
}

struct Layer {
    query: Dense,
    pairs: Dense,
    output: Dense,
    output_norm: Norm,
    intermediate: Dense,
    back: Dense,
    back_norm: Norm,
}

const EMBEDDINGS: &str = "roberta.embeddings";

impl Transformer {
    /// Reads the weights; all that are missing or of another shape are named.
    pub(super) fn read(config: &Config, checkpoint: &mut ModelCheckpoint) -> Result<Transformer, Error> {
        checkpoint.check(&wanted(config))?;
        let width = config.hidden_size;
        let epsilon = config.layer_norm_eps;
        let mut layers = Vec::with_capacity(config.num_hidden_layers);
        for index in 0..config.num_hidden_layers {
            let name = |part: &str| format!("roberta.encoder.layer.{index}.{part}");
            let mut dense = |parts: &[&str], inputs: usize| -> Result<Dense, Error> {
                let read = parts.iter().map(|part| pair(checkpoint, &name(part)));
                Ok(Dense::new(&read.collect::<Result<Vec<_>, _>>()?, inputs))
            };
            let query = dense(&["attention.self.query"], width)?;
            let pairs = dense(&["attention.self.key", "attention.self.value"], width)?;
            let output = dense(&["attention.output.dense"], width)?;
            let intermediate = dense(&["intermediate.dense"], width)?;
            let back = dense(&["output.dense"], config.intermediate_size)?;
            let output_norm = norm(checkpoint, &name("attention.output.LayerNorm"), epsilon)?;
            let back_norm = norm(checkpoint, &name("output.LayerNorm"), epsilon)?;
            layers.push(Layer { query, pairs, output, output_norm, intermediate, back, back_norm });
        }
        let mut positions = checkpoint.tensor(&format!("{EMBEDDINGS}.position_embeddings.weight"))?;
        let kind = checkpoint.tensor(&format!("{EMBEDDINGS}.token_type_embeddings.weight"))?;
        for row in positions.chunks_exact_mut(width) {
            row.iter_mut().zip(&kind).for_each(|(position, kind)| *position += kind);
        }
        Ok(Transformer {
            words: checkpoint.tensor(&format!("{EMBEDDINGS}.word_embeddings.weight"))?,
            positions,
            norm: norm(checkpoint, &format!("{EMBEDDINGS}.LayerNorm"), epsilon)?,
            layers,
            hidden: Dense::new(&[pair(checkpoint, "classifier.dense")?], width),
            classes: Dense::new(&[pair(checkpoint, "classifier.out_proj")?], width),
            width,
            heads: config.num_attention_heads,
            padding: config.pad_token_id,
            arch: Arch::new(),
        })
    }

    /// Three logits per text. Every text has at least one token, and all are below the size of the vocabulary.
    pub(super) fn logits(&self, texts: &[&[u32]]) -> Vec<[f32; 3]> {
        let (arch, width) = (self.arch, self.width);
        let tokens: usize = texts.iter().map(|text| text.len()).sum();
        let mut state = Vec::with_capacity(tokens * width);
        let mut addition = Vec::with_capacity(tokens * width);
        for text in texts {
            let mut position = self.padding as usize;
            for token in *text {
                // A padding token inside a text has the padding's position, and does not count.
                let at = if *token == self.padding {
                    self.padding as usize
                } else {
                    position += 1;
                    position
                };
                state.extend_from_slice(&self.words[*token as usize * width..][..width]);
                addition.extend_from_slice(&self.positions[at * width..][..width]);
            }
        }
        self.norm.apply(arch, &mut state, &addition);

        let (mut queries, mut pairs, mut context, mut wide) = (vec![], vec![], vec![], vec![]);
        let mut space = AttentionBuffers::default();
        for (index, layer) in self.layers.iter().enumerate() {
            let last = index + 1 == self.layers.len();
            layer.pairs.apply(arch, &state, &mut pairs, After::Nothing);
            if last {
                state = firsts(&state, texts, width);
            }
            layer.query.apply(arch, &state, &mut queries, After::Nothing);
            context.resize(state.len(), 0.0);
            let (mut from, mut row) = (0, 0);
            for text in texts {
                let asking = if last { 1 } else { text.len() };
                arch.dispatch(Attend {
                    space: &mut space,
                    shape: AttentionShape { width, heads: self.heads, tokens: text.len(), asking },
                    queries: &queries[row * width..],
                    pairs: &pairs[from * 2 * width..],
                    context: &mut context[row * width..][..asking * width],
                });
                from += text.len();
                row += asking;
            }
            layer.output.apply(arch, &context, &mut addition, After::Nothing);
            layer.output_norm.apply(arch, &mut state, &addition);
            layer.intermediate.apply(arch, &state, &mut wide, After::Gelu);
            layer.back.apply(arch, &wide, &mut addition, After::Nothing);
            layer.back_norm.apply(arch, &mut state, &addition);
        }
        self.hidden.apply(arch, &state, &mut wide, After::Tanh);
        self.classes.apply(arch, &wide, &mut addition, After::Nothing);
        addition.chunks_exact(3).map(|logits| [logits[0], logits[1], logits[2]]).collect()
    }
}

/// The state of each text's first token.
fn firsts(state: &[f32], texts: &[&[u32]], width: usize) -> Vec<f32> {
    let mut at = 0;
    let mut found = Vec::with_capacity(texts.len() * width);
    for text in texts {
        found.extend_from_slice(&state[at * width..][..width]);
        at += text.len();
    }
    found
}

fn pair(checkpoint: &mut ModelCheckpoint, name: &str) -> Result<(Vec<f32>, Vec<f32>), Error> {
    Ok((checkpoint.tensor(&format!("{name}.weight"))?, checkpoint.tensor(&format!("{name}.bias"))?))
}

fn norm(checkpoint: &mut ModelCheckpoint, name: &str, epsilon: f32) -> Result<Norm, Error> {
    let (scale, shift) = pair(checkpoint, name)?;
    Ok(Norm { scale, shift, epsilon })
}

/// Every tensor that is needed, with its shape.
fn wanted(config: &Config) -> Vec<(String, Vec<usize>)> {
    let (width, wide) = (config.hidden_size, config.intermediate_size);
    let mut wanted = vec![
        (format!("{EMBEDDINGS}.word_embeddings.weight"), vec![config.vocab_size, width]),
        (format!("{EMBEDDINGS}.position_embeddings.weight"), vec![config.max_position_embeddings, width]),
        (format!("{EMBEDDINGS}.token_type_embeddings.weight"), vec![config.type_vocab_size, width]),
    ];
    let mut pair = |name: String, shape: Vec<usize>| {
        wanted.push((format!("{name}.bias"), vec![shape[0]]));
        wanted.push((format!("{name}.weight"), shape));
    };
    pair(format!("{EMBEDDINGS}.LayerNorm"), vec![width]);
    for index in 0..config.num_hidden_layers {
        let name = |part: &str| format!("roberta.encoder.layer.{index}.{part}");
        for part in ["query", "key", "value"] {
            pair(name(&format!("attention.self.{part}")), vec![width, width]);
        }
        pair(name("attention.output.dense"), vec![width, width]);
        pair(name("attention.output.LayerNorm"), vec![width]);
        pair(name("intermediate.dense"), vec![wide, width]);
        pair(name("output.dense"), vec![width, wide]);
        pair(name("output.LayerNorm"), vec![width]);
    }
    pair("classifier.dense".to_owned(), vec![width, width]);
    pair("classifier.out_proj".to_owned(), vec![3, width]);
    wanted
}
