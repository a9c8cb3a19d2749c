//! Simulated posts with a known answer: parameters of a noisy world in, posts, follow edges and the truth out.
//!
//! Posts are put together from a bank of short sentences, all scored once; an account that holds a noisy belief takes the
//! sentence that the built-in scorer reads so.

use crate::bin::CLIP;
use crate::calendar::{Bin, Calendar};
use crate::{Error, PostsInput, Scorer};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use headwater::simulate::noisy::{NoisyWorld, noisy};
use headwater::{Model, Roster};
use headwater_files::Edges;
use headwater_score::Builtin;
use jiff::tz::TimeZone;
use std::path::Path;
use std::sync::Arc;

/// Names of the agents. The first is the influencer's, and stands in the middle of the alphabet: order tells nothing.
const NAMES: [&str; 24] = [
    "mira", "ada", "ben", "cleo", "dan", "eva", "finn", "gus", "hana", "ian", "june", "kai", "lena", "max", "nina",
    "omar", "pia", "quinn", "rosa", "sam", "tess", "uma", "vic", "zoe",
];

const OPENINGS: [&str; 8] = [
    "Honestly,",
    "Once more:",
    "After today:",
    "My two cents:",
    "Between us,",
    "Just saying,",
    "For the record,",
    "News from the stop:",
];

const SUBJECTS: [&str; 6] = [
    "the new tram",
    "the tram line",
    "the new timetable",
    "the ride downtown",
    "the stop on Mill Street",
    "the tram plan",
];

/// From bad to good, so that the bank leaves no gaps.
const JUDGEMENTS: [&str; 27] = [
    "is a disaster and I hate it",
    "is the worst, so angry and sad",
    "is awful",
    "is terrible and unfair",
    "is a bad idea",
    "is disappointing",
    "annoys me",
    "is too slow",
    "is late again",
    "could be better",
    "is not great",
    "is a bit of a mess",
    "is what it is",
    "runs as announced",
    "is on the agenda today",
    "is okay",
    "is fine",
    "is not bad",
    "works well",
    "is pretty good",
    "is nice",
    "makes me happy",
    "is great",
    "is excellent",
    "is wonderful, thank you",
    "is the best thing in years, love it",
    "is amazing, so happy and proud, thank you",
];

/// Noon before the first day, 1 January 2024, in seconds since 1970; each step of the world is a day.
const FIRST_DAY: i64 = 1_704_067_200;
const DAY: i64 = 86_400;

/// One post.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedPost {
    /// The account.
    pub user: &'static str,
    /// Seconds since 1970.
    pub time: i64,
    /// What it says.
    pub text: String,
}

/// Posts and the network behind them.
#[derive(Debug, Clone)]
pub struct PostWorld {
    /// By time.
    pub posts: Vec<SimulatedPost>,
    /// Who follows whom: source, target; the target follows the source.
    pub follows: Vec<(&'static str, &'static str)>,
    /// The network that made them.
    pub truth: Model,
}

impl PostWorld {
    /// The account most others listen to.
    pub const INFLUENCER: &'static str = NAMES[0];

    /// A world with one well-informed account that most others follow, over so many days, with posts of this noise.
    pub fn new(seed: u64, days: usize, noise: f64) -> Result<Self, Error> {
        let params = NoisyWorld { agents: NAMES.len(), steps: days, noise, seed, ..NoisyWorld::default() };
        let (panel, mut truth) = noisy(&params)?;
        truth.roster = Roster::new(NAMES, ["positive", "negative"])?;
        let bank = Bank::new()?;
        let mut posts = Vec::new();
        // What a sentence misses of what an agent wanted to say, its next one makes up for.
        let mut unsaid = [0.0; NAMES.len()];
        for day in 0..days {
            let start = posts.len();
            for (agent, user) in NAMES.into_iter().enumerate() {
                let count = panel.posts(day, agent);
                let belief = panel.cells()[day * NAMES.len() + agent];
                for number in 0..count {
                    // Evenly about the mean of the day, which the noise has already moved.
                    let place = (f64::from(number) + 0.5) / f64::from(count);
                    let wanted = belief + noise * (2.0 * place - 1.0) + unsaid[agent];
                    let (said, text) = bank.nearest(wanted);
                    unsaid[agent] = wanted - said;
                    let second = (place * DAY as f64) as i64 + agent as i64;
                    posts.push(SimulatedPost {
                        user,
                        time: FIRST_DAY + DAY * day as i64 + second.min(DAY - 1),
                        text: text.clone(),
                    });
                }
                // Nobody makes up for it days later.
                unsaid[agent] = 0.0;
            }
            posts[start..].sort_by_key(|post| post.time);
        }
        let heard =
            truth.combination.edges().filter(|&(speaker, listener, weight)| speaker != listener && weight > 0.0);
        let follows = heard.map(|(speaker, listener, _)| (NAMES[speaker], NAMES[listener])).collect();
        Ok(PostWorld { posts, follows, truth })
    }

    /// The rows of a table `user,time,text`.
    pub fn rows(&self) -> impl Iterator<Item = [String; 3]> {
        let calendar = Calendar::new(Bin::Day, TimeZone::UTC);
        self.posts.iter().map(move |post| [post.user.to_owned(), calendar.show(post.time), post.text.clone()])
    }

    /// The posts as a table in memory.
    pub fn posts_input(&self) -> PostsInput {
        let rows: Vec<[String; 3]> = self.rows().collect();
        let column = |position: usize| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row[position].as_str())))
        };
        let table = [("user", column(0)), ("time", column(1)), ("text", column(2))];
        // Columns of equal length with names of their own always make a table.
        let batches = RecordBatch::try_from_iter(table).into_iter().collect::<Vec<_>>();
        PostsInput::from(batches)
    }

    /// The follow edges.
    pub fn edges(&self) -> Result<Edges, Error> {
        let rows = self.follows.iter().map(|(source, target)| ((*source).to_owned(), (*target).to_owned(), None));
        Ok(Edges::from_rows(Path::new("graph"), rows)?)
    }
}

/// Sentences by the log-odds that the built-in scorer gives them.
struct Bank {
    sentences: Vec<(f64, String)>,
}

impl Bank {
    fn new() -> Result<Self, Error> {
        let mut texts = Vec::new();
        for opening in OPENINGS {
            for subject in SUBJECTS {
                texts.extend(JUDGEMENTS.map(|judgement| format!("{opening} {subject} {judgement}.")));
            }
        }
        let scores = Builtin::new().score(&texts.iter().map(String::as_str).collect::<Vec<_>>())?;
        let odds = scores.into_iter().map(|score| score.score().clamp(CLIP, 1.0 - CLIP)).map(|p| (p / (1.0 - p)).ln());
        let mut sentences: Vec<(f64, String)> = odds.zip(texts).collect();
        sentences.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Bank { sentences })
    }

    fn nearest(&self, wanted: f64) -> &(f64, String) {
        let above = self.sentences.partition_point(|(odds, _)| *odds < wanted).min(self.sentences.len() - 1);
        let below = above.saturating_sub(1);
        let distance = |index: usize| (self.sentences[index].0 - wanted).abs();
        &self.sentences[if distance(below) <= distance(above) { below } else { above }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_say_what_their_authors_believe() {
        let (days, noise) = (60, 0.5);
        let world = PostWorld::new(3, days, noise).unwrap();
        let params = NoisyWorld { agents: NAMES.len(), steps: days, noise, seed: 3, ..NoisyWorld::default() };
        let (panel, _) = noisy(&params).unwrap();
        let texts: Vec<&str> = world.posts.iter().map(|post| post.text.as_str()).collect();
        let scores = Builtin::new().score(&texts).unwrap();
        let mut sums = vec![(0.0, 0_u32); days * NAMES.len()];
        for (post, score) in world.posts.iter().zip(scores) {
            let agent = NAMES.iter().position(|name| *name == post.user).unwrap();
            let cell = ((post.time - FIRST_DAY) / DAY) as usize * NAMES.len() + agent;
            let p = score.score().clamp(CLIP, 1.0 - CLIP);
            sums[cell] = (sums[cell].0 + (p / (1.0 - p)).ln(), sums[cell].1 + 1);
        }
        for (cell, (sum, count)) in sums.into_iter().enumerate() {
            assert_eq!(count, panel.posts(cell / NAMES.len(), cell % NAMES.len()));
            // The widest gap between two sentences is 0.27.
            assert!(count == 0 || (sum / f64::from(count) - panel.cells()[cell]).abs() < 0.27, "{cell}");
        }
        assert!(world.posts.is_sorted_by_key(|post| post.time));
        assert_eq!(headwater::influence(&world.truth).unwrap().ranking()[0], 0);
        assert!(world.follows.iter().filter(|(source, _)| *source == PostWorld::INFLUENCER).count() > 10);
    }
}
