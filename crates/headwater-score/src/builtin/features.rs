//! Features: a post in, the numbered and weighted things that can move its score out.
//!
//! Words (one to three in a row, marked when negated), pieces of words, what the lexicon says, and the shape of the
//! post. Each is hashed into one of [`BUCKETS`]; training and scoring share this module, so that both see the same.
//! A feature remembers where it came from, which is how a score explains itself.

use super::lexicon::{BOOST, CAPITALS, Lexicon, NEGATED};
use super::text::{TextToken, TokenKind, Tokens};

/// Number of buckets that features are hashed into.
pub const BUCKETS: usize = 1 << 20;

/// Where a feature came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Tokens from here, so many.
    Words(u16, u8),
    /// A piece of this token.
    Piece(u16),
    /// A summary of the post.
    Summary(&'static str),
}

/// One feature of a post.
#[derive(Debug, Clone, Copy)]
pub struct Feature {
    /// Its number, below [`BUCKETS`].
    pub bucket: u32,
    /// How much of it.
    pub value: f32,
    pub(super) origin: Origin,
}

/// The features of one post; reused from post to post.
#[derive(Debug, Default)]
pub struct Features {
    tokens: Tokens,
    hashes: Vec<u64>,
    edges: Vec<usize>,
    valences: Vec<f32>,
    list: Vec<Feature>,
}

/// FNV-1a: short inputs, no set-up.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |state, byte| step(state, *byte))
}

fn step(state: u64, byte: u8) -> u64 {
    (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Joins hashes so that order matters.
fn join(left: u64, right: u64) -> u64 {
    (left.rotate_left(23) ^ right).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn bucket(hash: u64) -> u32 {
    // The high bits of a product are the mixed ones.
    let mixed = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> (64 - BUCKETS.trailing_zeros())) as u32
}

const NEGATED_WORD: u64 = 0x94d0_49bb_1331_11eb;
const PIECE: u64 = 0x2545_f491_4f6c_dd1d;
const FIRST: u64 = 0xd6e8_feb8_6659_fd93;
const LAST: u64 = 0xa076_1d64_78bd_642f;

/// Tokens beyond this one are not looked at word by word: no post is that long.
const LONGEST_POST: usize = 1 << 14;

/// Norms of the groups of features: how much each may say. Found by trying, on folds of the training posts.
const WORDS: f32 = 1.0;
const PIECES: f32 = 1.5;
const LEXICON: f32 = 0.3;
const SHAPE: f32 = 0.1;

/// Lengths of pieces of words, the marks of start and end included.
const SHORTEST_PIECE: usize = 3;
const LONGEST_PIECE: usize = 5;

impl Features {
    /// The features of the post read last.
    pub fn list(&self) -> &[Feature] {
        &self.list
    }

    /// Replaces the features by those of a post.
    pub fn read(&mut self, post: &str) {
        self.tokens.read(post);
        self.list.clear();
        self.hashes.clear();
        for token in self.tokens.list() {
            self.hashes.push(hash(self.tokens.text(token).as_bytes()));
        }
        self.words();
        scale(&mut self.list, WORDS);
        let words = self.list.len();
        self.pieces();
        scale(&mut self.list[words..], PIECES);
        self.lexicon();
        self.shape();
    }

    /// What a feature is called when a score is explained; a piece goes by the name of its word.
    pub(super) fn name(&self, origin: Origin) -> String {
        let tokens = self.tokens.list();
        let words = |first: usize, count: usize| {
            let mut name = String::new();
            for token in &tokens[first..first + count] {
                if !name.is_empty() {
                    name.push(' ');
                }
                if token.negated {
                    name.push('¬');
                }
                name.push_str(self.tokens.text(token));
            }
            name
        };
        match origin {
            Origin::Words(first, count) => words(usize::from(first), usize::from(count)),
            Origin::Piece(token) => words(usize::from(token), 1),
            Origin::Summary(name) => format!("({name})"),
        }
    }

    fn push(&mut self, hash: u64, value: f32, origin: Origin) {
        self.list.push(Feature { bucket: bucket(hash), value, origin });
    }

    fn marked(&self, at: usize) -> u64 {
        if self.tokens.list()[at].negated { self.hashes[at] ^ NEGATED_WORD } else { self.hashes[at] }
    }

    /// Up to three tokens in a row.
    fn words(&mut self) {
        let count = self.hashes.len().min(LONGEST_POST);
        for first in 0..count {
            let mut joined = 1;
            for length in 1..=3.min(count - first) {
                joined = join(joined, self.marked(first + length - 1));
                self.push(joined, 1.0, Origin::Words(first as u16, length as u8));
            }
        }
    }

    /// Pieces of `^word$`, so that words nobody has seen still say something.
    fn pieces(&mut self) {
        for (index, token) in self.tokens.list().iter().enumerate().take(LONGEST_POST) {
            if !matches!(token.kind, TokenKind::Word | TokenKind::Tag) {
                continue;
            }
            let text = self.tokens.text(token);
            self.edges.clear();
            self.edges.extend(text.char_indices().map(|(at, _)| at));
            self.edges.push(text.len());
            let letters = self.edges.len() - 1;
            let origin = Origin::Piece(index as u16);
            for first in 0..(letters + 3).saturating_sub(SHORTEST_PIECE) {
                let mut state = PIECE;
                for length in 1..=LONGEST_PIECE {
                    // Place in ^word$: 0 is ^, letters + 1 is $.
                    match first + length - 1 {
                        0 => state = step(state, b'^'),
                        at if at <= letters => {
                            let bytes = &text.as_bytes()[self.edges[at - 1]..self.edges[at]];
                            state = bytes.iter().fold(state, |state, byte| step(state, *byte));
                        }
                        at if at == letters + 1 => state = step(state, b'$'),
                        _ => break,
                    }
                    if length >= SHORTEST_PIECE {
                        self.list.push(Feature { bucket: bucket(state), value: 1.0, origin });
                    }
                }
            }
        }
    }

    /// What the lexicon says, words in capitals counting more, after an intensifier more or less, negated the other way.
    fn lexicon(&mut self) {
        let lexicon = Lexicon::shared();
        self.valences.clear();
        for (index, token) in self.tokens.list().iter().enumerate() {
            let mut valence = lexicon.valence(self.hashes[index]);
            if valence == 0.0 && token.kind == TokenKind::Tag {
                valence = lexicon.valence(hash(&self.tokens.text(token).as_bytes()[1..]));
            }
            if valence == 0.0 {
                continue;
            }
            let mut size = valence.abs() * if token.capitals { CAPITALS } else { 1.0 };
            for before in self.hashes[..index].iter().rev().take(2) {
                size += BOOST * lexicon.boost(*before);
            }
            let turned = if token.negated { NEGATED } else { 1.0 };
            self.valences.push(size * valence.signum() * turned);
        }
        let (mut good, mut bad) = (0.0, 0.0);
        // As wide as the number of tokens of any post.
        let (mut goods, mut bads) = (0_usize, 0_usize);
        let (mut best, mut worst) = (f32::MIN, f32::MAX);
        for valence in &self.valences {
            (best, worst) = (best.max(*valence), worst.min(*valence));
            if *valence > 0.0 {
                (good, goods) = (good + valence, goods + 1);
            } else {
                (bad, bads) = (bad - valence, bads + 1);
            }
        }
        // VADER's compound, with its constant.
        let sum = good - bad;
        let balance = sum / (sum * sum + 15.0).sqrt();
        let last = self.valences.last().copied();
        self.summary("good words", goods.min(4) as i16, LEXICON);
        self.summary("bad words", bads.min(4) as i16, LEXICON);
        self.summary("balance of good and bad words", (balance * 5.0).round() as i16, LEXICON);
        self.summary("good and bad words", (goods.min(2) * 3 + bads.min(2)) as i16, LEXICON);
        if let Some(last) = last {
            self.summary("last good or bad word", last.round() as i16, LEXICON);
            self.summary("best word", best.round() as i16, LEXICON);
            self.summary("worst word", worst.round() as i16, LEXICON);
        }
        self.amount("good words", good / 4.0 * LEXICON);
        self.amount("bad words", bad / 4.0 * LEXICON);
        self.amount("balance of good and bad words", balance * 2.0 * LEXICON);
    }

    /// A count or class, as a feature of its own for each value.
    fn summary(&mut self, name: &'static str, value: i16, size: f32) {
        self.push(join(hash(name.as_bytes()), value as u64), size, Origin::Summary(name));
    }

    /// A quantity, as one feature.
    fn amount(&mut self, name: &'static str, value: f32) {
        self.push(hash(name.as_bytes()), value, Origin::Summary(name));
    }

    /// Counts of what is no word, and how the post begins and ends.
    fn shape(&mut self) {
        let tokens = self.tokens.list();
        let count = |wanted: fn(&TextToken) -> bool, most: usize| {
            tokens.iter().filter(|token| wanted(token)).count().min(most) as i16
        };
        let signs = |sign: char| {
            let stops = tokens.iter().filter(|token| token.kind == TokenKind::Stop);
            stops.map(|token| self.tokens.text(token).matches(sign).count()).sum::<usize>().min(3) as i16
        };
        let counts = [
            ("words in capitals", count(|token| token.capitals, 3)),
            ("drawn-out words", count(|token| token.drawn_out, 2)),
            ("negations", count(|token| token.negation, 3)),
            ("tags", count(|token| token.kind == TokenKind::Tag, 3)),
            ("accounts", count(|token| token.kind == TokenKind::User, 3)),
            ("links", count(|token| token.kind == TokenKind::Link, 2)),
            ("emoticons", count(|token| token.kind == TokenKind::Emoticon, 2)),
            ("exclamation marks", signs('!')),
            ("question marks", signs('?')),
            ("length", (tokens.len() / 5).min(6) as i16),
            ("reply", i16::from(tokens.first().is_some_and(|token| token.kind == TokenKind::User))),
        ];
        let ends = self.hashes.first().copied().zip(self.hashes.last().copied());
        counts.into_iter().for_each(|(name, value)| self.summary(name, value, SHAPE));
        if let Some((first, last)) = ends {
            self.push(join(FIRST, first), SHAPE, Origin::Summary("first word"));
            self.push(join(LAST, last), SHAPE, Origin::Summary("last word"));
        }
        self.amount("every post", 5.0 * SHAPE);
    }
}

/// Gives a group of features a norm of its own, whatever their number.
fn scale(group: &mut [Feature], size: f32) {
    let value = size / (group.len().max(1) as f32).sqrt();
    group.iter_mut().for_each(|feature| feature.value = value);
}
