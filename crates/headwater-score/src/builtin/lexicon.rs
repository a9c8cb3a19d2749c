//! The lexicon: a word in, how bad or good it is out, from −4 to 4.
//!
//! `lexicon.tsv` is the VADER lexicon (MIT, see THIRD-PARTY.md) in lower case without its
//! four entries of two words; an emoji has the sum of the words of its description there. Looked up by the hash that
//! the features need anyway.

use super::features::hash;
use std::sync::OnceLock;

/// A table twice as large as its content, open addressing.
const SLOTS: usize = 1 << 14;

pub(super) struct Lexicon {
    /// Hash and valence in tenths; a valence of zero is an empty slot.
    slots: Vec<(u64, i8)>,
}

/// How much an intensifying word adds to the valence that follows, VADER's constant.
pub(super) const BOOST: f32 = 0.293;
/// What is left of a valence under negation, with its sign turned; VADER has 0.74, 0.6 predicts better here.
pub(super) const NEGATED: f32 = -0.6;

/// How much more a word in capitals counts.
pub(super) const CAPITALS: f32 = 1.25;

const STRONGER: &str = "absolutely amazingly awfully completely considerably decidedly deeply effing enormously entirely \
    especially exceptionally extremely fabulously flipping flippin fricking frickin frigging friggin fully fucking \
    fuckin greatly hella highly hugely incredibly intensely majorly more most particularly purely quite really \
    remarkably so substantially thoroughly totally tremendously uber unbelievably unusually utterly very too";
const WEAKER: &str = "almost barely hardly kinda kindof less little marginally occasionally partly scarcely slightly \
    somewhat sorta sortof";

impl Lexicon {
    /// The lexicon, read once.
    pub(super) fn shared() -> &'static Lexicon {
        static SHARED: OnceLock<Lexicon> = OnceLock::new();
        SHARED.get_or_init(|| {
            let mut slots = vec![(0, 0); SLOTS];
            let mut insert = |key: u64, tenths: i8| {
                let mut at = key as usize % SLOTS;
                while slots[at].1 != 0 && slots[at].0 != key {
                    at = (at + 1) % SLOTS;
                }
                slots[at] = (key, tenths);
            };
            for line in include_str!("lexicon.tsv").lines() {
                // A line without a number cannot occur: a test reads them all.
                let Some((word, valence)) = line.split_once('\t') else { continue };
                let tenths = valence.parse::<f32>().map_or(0, |valence| (valence * 10.0).round() as i8);
                if tenths != 0 {
                    insert(hash(word.as_bytes()), tenths);
                }
            }
            for (words, tenths) in [(STRONGER, 1), (WEAKER, -1)] {
                words.split_whitespace().for_each(|word| insert(booster(hash(word.as_bytes())), tenths));
            }
            Lexicon { slots }
        })
    }

    fn tenths(&self, key: u64) -> i8 {
        let mut at = key as usize % SLOTS;
        loop {
            match self.slots[at] {
                (_, 0) => return 0,
                (found, tenths) if found == key => return tenths,
                _ => at = (at + 1) % SLOTS,
            }
        }
    }

    /// The valence of the word with this hash, zero if unknown.
    pub(super) fn valence(&self, word: u64) -> f32 {
        f32::from(self.tenths(word)) / 10.0
    }

    /// Whether the word makes what follows stronger (1), weaker (−1) or neither.
    pub(super) fn boost(&self, word: u64) -> f32 {
        f32::from(self.tenths(booster(word)))
    }
}

fn booster(word: u64) -> u64 {
    word ^ 0x5bd1_e995_97f4_a7c5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_word_and_a_valence() {
        let lexicon = Lexicon::shared();
        let mut lines = 0;
        for line in include_str!("lexicon.tsv").lines() {
            let (word, valence) = line.split_once('\t').unwrap();
            let valence: f32 = valence.parse().unwrap();
            assert!(valence.abs() <= 4.0 && word == word.to_lowercase(), "{line}");
            assert!((lexicon.valence(hash(word.as_bytes())) - valence).abs() < 1e-6, "{line}");
            lines += 1;
        }
        assert!(lines > 7000 && 2 * lines < SLOTS + 2000, "{lines}");
        let boost = |word: &str| lexicon.boost(hash(word.as_bytes()));
        assert_eq!(["very", "kinda", "table"].map(boost), [1.0, -1.0, 0.0]);
    }
}
