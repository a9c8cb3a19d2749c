//! The door itself: batches of posts in, beliefs and their quality out.
//!
//! Posts are visited once, batch by batch: selected, scored, added to their bin. Nothing of a post is kept but its part of
//! a sum and a hash of its id.

use crate::bin::{Beliefs, Bins, Calendar, Hypotheses};
use crate::given::Given;
use crate::post::{Batch, Post};
use crate::quality::{MaxBad, Quality, User};
use crate::read::Bad;
use crate::select::{Selection, Selector};
use crate::{Error, Scorer};
use headwater::progress;
use std::collections::HashSet;

/// Takes in posts.
pub struct Ingest {
    selector: Selector,
    /// `None`: the posts bring their own scores.
    scorer: Option<Box<dyn Scorer>>,
    bins: Bins,
    min_posts: u64,
    max_bad: MaxBad,
    wanted_users: Option<HashSet<String>>,
    quality: Quality,
    first_bad: Option<Bad>,
    /// First and last second of everything read, selected or not.
    spoken: Option<(i64, i64)>,
}

impl Ingest {
    /// Open.
    pub fn new(
        selection: Selection,
        scorer: Option<Box<dyn Scorer>>,
        calendar: Calendar,
        hypotheses: Hypotheses,
    ) -> Self {
        Ingest {
            wanted_users: selection.users.clone(),
            selector: Selector::new(selection),
            scorer,
            bins: Bins::new(calendar, hypotheses),
            min_posts: 1,
            max_bad: MaxBad::default(),
            quality: Quality::default(),
            first_bad: None,
            spoken: None,
        }
    }

    /// Leaves out users with fewer posts than this.
    pub fn min_posts(mut self, posts: u64) -> Self {
        self.min_posts = posts;
        self
    }

    /// Doubts files with more unreadable rows than this.
    pub fn max_bad(mut self, max_bad: MaxBad) -> Self {
        self.max_bad = max_bad;
        self
    }

    /// Takes in a batch; what turns out to be unusable only here joins its bad rows.
    pub fn take(&mut self, batch: &mut Batch) -> Result<(), Error> {
        progress::check()?;
        self.quality.other_lines += batch.passed;
        self.quality.rows += (batch.posts.len() + batch.bad.len()) as u64;
        for post in &batch.posts {
            let (first, last) = self.spoken.get_or_insert((post.time, post.time));
            (*first, *last) = ((*first).min(post.time), (*last).max(post.time));
        }
        let kept: Vec<&Post> = batch.posts.iter().filter(|post| self.selector.keep(post)).collect();
        let opinions = self.opinions(&kept)?;
        for (post, opinion) in kept.into_iter().zip(opinions) {
            if let Err(reason) = self.bins.add(&post.user, post.time, opinion) {
                batch.bad.push(Bad { place: post.place.clone(), reason: reason.to_owned() });
            }
        }
        self.quality.rejected += batch.bad.len() as u64;
        if self.first_bad.is_none() {
            self.first_bad = batch.bad.first().cloned();
        }
        self.quality.posts = self.quality.rows - self.quality.rejected;
        if self.max_bad.hopeless(self.quality.rejected, self.quality.rows) {
            return Err(self.too_many_bad());
        }
        Ok(())
    }

    fn opinions(&self, posts: &[&Post]) -> Result<Vec<Given>, Error> {
        let Some(scorer) = &self.scorer else {
            return posts
                .iter()
                .map(|post| post.given.ok_or_else(|| Error::option("the posts were read without their scores")))
                .collect();
        };
        let texts: Vec<&str> = posts.iter().map(|post| post.text.as_str()).collect();
        Ok(scorer.score(&texts)?.into_iter().map(Given::Classes).collect())
    }

    fn too_many_bad(&self) -> Error {
        Error::TooManyBad {
            bad: self.quality.rejected,
            rows: self.quality.rows,
            allowed: self.max_bad.to_string(),
            first: self.first_bad.as_ref().map(Bad::to_string).unwrap_or_default(),
        }
    }

    /// Posts read so far, selected or not.
    pub fn posts(&self) -> u64 {
        self.quality.posts
    }

    /// Closes the door.
    pub fn finish(self) -> Result<(Beliefs, Quality), Error> {
        if self.max_bad.exceeded(self.quality.rejected, self.quality.rows) {
            return Err(self.too_many_bad());
        }
        let Ingest { selector, bins, min_posts, wanted_users, mut quality, spoken, .. } = self;
        quality.duplicates = selector.duplicates;
        quality.updates = selector.updates;
        quality.dropped = selector.dropped;
        quality.unmarked = selector.unmarked;
        quality.clipped = bins.clipped;
        // Free the ids before the cells are sorted.
        drop(selector);
        if let Some(mut wanted) = wanted_users {
            for user in bins.users() {
                wanted.remove(user);
            }
            quality.absent_users = wanted.len();
        }
        let rare: Vec<bool> = bins.spans().iter().map(|span| span.posts < min_posts).collect();
        quality.rare_users = rare.iter().filter(|rare| **rare).count();
        let posts_of = |wanted: bool| -> u64 {
            bins.spans().iter().zip(&rare).filter(|(_, rare)| **rare == wanted).map(|(span, _)| span.posts).sum()
        };
        quality.dropped.min_posts = posts_of(true);
        quality.kept = posts_of(false);
        let users: Vec<usize> = (0..rare.len()).filter(|&user| !rare[user]).collect();
        let calendar = bins.calendar().clone();
        let spoken = spoken.map(|(first, last)| (calendar.show(first), calendar.show(last)));
        if users.is_empty() {
            return Err(quality.nothing_left(spoken));
        }
        let beliefs = bins.beliefs(|user| !rare[user]);
        if let [only] = users[..] {
            return Err(quality.one_left(beliefs.user(only), spoken));
        }
        describe(&beliefs, &users, &mut quality);
        Ok((beliefs, quality))
    }
}

fn describe(beliefs: &Beliefs, users: &[usize], quality: &mut Quality) {
    let Some((first, last)) = beliefs.extent() else { return };
    quality.users = users.len();
    quality.bins = beliefs.calendar.count(first, last);
    let mut spoke: Vec<u64> = vec![0; users.last().map_or(0, |user| user + 1)];
    beliefs.cells().for_each(|cell| spoke[cell.user] += 1);
    quality.beliefs = spoke.iter().sum();
    quality.silent_share = 1.0 - quality.beliefs as f64 / (quality.bins * users.len() as u64) as f64;
    let spans = || users.iter().map(|&user| beliefs.span(user));
    let show = |time: Option<i64>| time.map(|time| beliefs.calendar.show(time)).unwrap_or_default();
    quality.first = show(spans().map(|span| span.first).min());
    quality.last = show(spans().map(|span| span.last).max());
    quality.by_user = users
        .iter()
        .map(|&user| {
            let span = beliefs.span(user);
            User {
                user: beliefs.user(user).to_owned(),
                posts: span.posts,
                bins: spoke[user],
                silent_share: 1.0 - spoke[user] as f64 / quality.bins as f64,
                first: show(Some(span.first)),
                last: show(Some(span.last)),
            }
        })
        .collect();
}
