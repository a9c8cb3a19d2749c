//! Ingest: batches of posts in, a panel and its quality out.
//!
//! Posts are visited once, batch by batch: selected, scored, added to their bin. Nothing of a post is kept but its part of
//! a sum and a hash of its id.

use crate::bin::{BinnedBeliefs, Bins, Hypotheses};
use crate::calendar::Calendar;
use crate::given::Given;
use crate::options::{PostOptions, PostsInput, ScorerChoice};
use crate::post::Post;
use crate::quality::{IngestWarning, MaxBad, Quality, UserQuality};
use crate::read::{BadRow, Preset, RowProblem};
use crate::reader::{PostBatch, PostReader};
use crate::select::{Selection, Selector};
use crate::{Error, Scorer};
use headwater::{Panel, progress};
use headwater_score::Builtin;
use std::collections::{HashMap, HashSet};

/// What a caller sees and decides while posts are read. `()` does nothing.
pub trait PostHooks {
    /// Sees a batch before it is selected from, and may change it: rename users, hide reasons.
    fn batch(&mut self, batch: &mut PostBatch) {
        let _ = batch;
    }

    /// Sees the rows of a batch that cannot be used.
    fn bad_rows(&mut self, rows: &[BadRow]) -> Result<(), Error> {
        let _ = rows;
        Ok(())
    }

    /// Replaces the users of the options, under the names that [`PostHooks::batch`] gives them. Whoever does so also says
    /// which of them are absent.
    fn users(&self) -> Option<HashSet<String>> {
        None
    }

    /// Users of the batch seen last who are wanted beside those of [`PostHooks::users`].
    fn more_users(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Sees all users with a selected post, and says whom to leave out after all.
    fn unwanted(&mut self, users: &[String]) -> HashSet<String> {
        let _ = users;
        HashSet::new()
    }

    /// Sees a platform as soon as a file of its posts was recognised without being told.
    fn recognised(&mut self, preset: Preset) {
        let _ = preset;
    }

    /// Sees a warning as soon as it is known; all of them are in [`Quality::warnings`] as well.
    fn warning(&mut self, warning: &IngestWarning) {
        let _ = warning;
    }
}

impl PostHooks for () {}

/// Reads, selects, scores and bins posts.
///
/// `scorer` may be `None` where the options name the built-in scorer or the posts' own columns. Long work reports its
/// progress and can be stopped through [`headwater::progress`].
///
/// # Errors
/// [`Error::Columns`] or [`Error::Format`] where the posts are not as the options say, [`Error::TooManyBad`],
/// [`Error::NothingLeft`], [`Error::OneUser`], and [`Error::Core`] where the bins make no panel.
///
/// ```
/// use headwater_posts::{PostOptions, read_posts};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("posts.csv");
/// std::fs::write(&path, "user,time,text\nann,2024-05-01,What a great day\nbob,2024-05-02,This is awful\n").unwrap();
/// let (panel, quality) = read_posts(&path.as_path().into(), &PostOptions::default(), None, &mut ()).unwrap();
/// assert_eq!((panel.steps(), panel.agents(), quality.kept), (2, 2, 2));
/// assert!(panel.cells()[0] > 0.0 && panel.cells()[3] < 0.0);
/// ```
pub fn read_posts(
    input: &PostsInput,
    options: &PostOptions,
    scorer: Option<Box<dyn Scorer>>,
    hooks: &mut dyn PostHooks,
) -> Result<(Panel, Quality), Error> {
    let (beliefs, quality) = bin_posts(input, options, scorer, hooks)?;
    Ok((beliefs.panel()?, quality))
}

/// As [`read_posts`], up to the mean log-odds per user and bin: for files of beliefs, in which bins need not lie on equal
/// steps.
pub fn bin_posts(
    input: &PostsInput,
    options: &PostOptions,
    scorer: Option<Box<dyn Scorer>>,
    hooks: &mut dyn PostHooks,
) -> Result<(BinnedBeliefs, Quality), Error> {
    let mut selection = options.selection()?;
    let mapping = options.mapping()?;
    let mut warnings = Vec::new();
    let mut warn = |warning: IngestWarning, hooks: &mut dyn PostHooks| {
        hooks.warning(&warning);
        warnings.push(warning);
    };
    if options.foreign_languages() {
        warn(IngestWarning::ForeignLanguages, hooks);
    }
    let replaced = hooks.users();
    let counted_elsewhere = replaced.is_some();
    selection.users = match replaced {
        Some(users) => Some(users),
        None => options.users.as_ref().map(|users| users.read()).transpose()?,
    };
    let scorer = match (options.scorer, scorer) {
        (ScorerChoice::Column, _) => None,
        (_, Some(scorer)) => Some(scorer),
        (ScorerChoice::Builtin, None) => Some(Box::new(Builtin::new()) as Box<dyn Scorer>),
        (ScorerChoice::Roberta, None) => {
            return Err(Error::option("a text model is to score the posts, and none is given"));
        }
    };
    let calendar = Calendar::new(options.bin, options.timezone.clone());
    let mut ingest = Ingest::new(selection, scorer, calendar, options.hypotheses)
        .min_posts(options.min_posts)
        .max_bad(options.max_bad)
        .carry_forward(options.carry_forward);
    options.check()?;
    each_batch(PostReader::new(input.records()?, mapping), |mut batch| {
        for preset in batch.recognised.iter().filter(|preset| !ingest.quality.recognised.contains(preset)) {
            hooks.recognised(*preset);
        }
        for encoding in batch.decoded.iter().filter(|encoding| !ingest.quality.decoded.contains(encoding)) {
            warn(IngestWarning::Decoded { encoding: *encoding }, hooks);
        }
        hooks.batch(&mut batch);
        ingest.admit(hooks.more_users());
        let taken = ingest.take(&mut batch);
        hooks.bad_rows(&batch.bad)?;
        taken
    })?;
    let spoken = ingest.spoken;
    let users: Vec<String> = ingest.bins.users().map(str::to_owned).collect();
    let (beliefs, mut quality) = ingest.leave_out(hooks.unwanted(&users)).finish_binned()?;
    if !options.bin.is_numeric() && spoken.is_some_and(|(first, last)| first > -SMALL_TIMES && last < SMALL_TIMES) {
        warn(IngestWarning::SmallTimes, hooks);
    }
    if counted_elsewhere {
        quality.absent_users = 0;
    }
    if quality.dropped.language > 0 && options.english_by_default() {
        warn(IngestWarning::OtherLanguages { posts: quality.dropped.language }, hooks);
    }
    if quality.absent_users > 0 {
        warn(IngestWarning::AbsentUsers { users: quality.absent_users }, hooks);
    }
    if quality.clipped as f64 > MOST_CLIPPED * quality.kept as f64 {
        let share = quality.clipped as f64 / quality.kept as f64;
        warn(IngestWarning::Clipped { opinions: quality.clipped, share }, hooks);
    }
    quality.warnings = warnings;
    Ok((beliefs, quality))
}

/// Seconds since 1970 below which times are plain numbers: eleven days.
const SMALL_TIMES: i64 = 1_000_000;

/// A larger share of clipped opinions says that scores were rounded.
const MOST_CLIPPED: f64 = 0.01;

/// Visits posts batch by batch while a thread of its own reads ahead; reports progress in kilobytes.
pub fn each_batch<E: From<Error>>(
    posts: PostReader,
    mut each: impl FnMut(PostBatch) -> Result<(), E>,
) -> Result<(), E> {
    // A pipe does not say how long it is.
    let stage = match posts.total_bytes() {
        Some(bytes) => progress::stage("reading (kB)", bytes >> 10),
        None => progress::stage("reading", 0),
    };
    for batch in posts.batches() {
        let batch = batch?;
        stage.at(batch.bytes >> 10);
        each(batch)?;
    }
    Ok(())
}

/// Takes in posts, batch by batch.
pub struct Ingest {
    selector: Selector,
    /// `None`: the posts bring their own scores.
    scorer: Option<Box<dyn Scorer>>,
    bins: Bins,
    min_posts: u64,
    max_bad: MaxBad,
    carry_forward: bool,
    wanted_users: Option<HashSet<String>>,
    unwanted_users: HashSet<String>,
    quality: Quality,
    first_bad: Option<BadRow>,
    /// Bad rows by what is wrong with them.
    problems: HashMap<RowProblem, u64>,
    /// First and last second of everything read, selected or not.
    spoken: Option<(i64, i64)>,
}

impl Ingest {
    /// That has seen nothing.
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
            carry_forward: false,
            unwanted_users: HashSet::new(),
            quality: Quality::default(),
            first_bad: None,
            problems: HashMap::new(),
            spoken: None,
        }
    }

    /// Leaves out users with fewer posts than this.
    pub fn min_posts(mut self, posts: u64) -> Self {
        self.min_posts = posts;
        self
    }

    /// Refuses files with more unreadable rows than this.
    pub fn max_bad(mut self, max_bad: MaxBad) -> Self {
        self.max_bad = max_bad;
        self
    }

    /// Fills silence with the opinion held.
    pub fn carry_forward(mut self, fill: bool) -> Self {
        self.carry_forward = fill;
        self
    }

    /// Wants these users as well, where not all are wanted.
    pub fn admit(&mut self, users: impl IntoIterator<Item = String>) {
        self.selector.admit(users);
    }

    /// Leaves these users out, whatever was selected.
    pub fn leave_out(mut self, users: HashSet<String>) -> Self {
        self.unwanted_users.extend(users);
        self
    }

    /// Takes in a batch; what turns out to be unusable only here joins its bad rows.
    pub fn take(&mut self, batch: &mut PostBatch) -> Result<(), Error> {
        progress::check()?;
        self.quality.other_lines += batch.passed;
        self.quality.reposts_by_text += batch.reposts_by_text;
        self.quality.reposts_without_text += batch.bare_reposts;
        self.quality.deleted_accounts += batch.deleted;
        self.quality.recognised.clone_from(&batch.recognised);
        self.quality.decoded.clone_from(&batch.decoded);
        self.quality.rows += (batch.posts.len() + batch.bad.len()) as u64;
        for post in &batch.posts {
            let (first, last) = self.spoken.get_or_insert((post.time, post.time));
            (*first, *last) = ((*first).min(post.time), (*last).max(post.time));
        }
        let kept: Vec<&Post> = batch.posts.iter().filter(|post| self.selector.keep(post)).collect();
        let opinions = self.opinions(&kept)?;
        for (post, opinion) in kept.into_iter().zip(opinions) {
            if let Err(reason) = self.bins.add(&post.user, post.time, opinion) {
                batch.bad.push(BadRow::new(post.place.clone(), reason));
            }
        }
        self.quality.rejected += batch.bad.len() as u64;
        for bad in &batch.bad {
            *self.problems.entry(bad.problem).or_default() += 1;
        }
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
            first: self.first_bad.as_ref().map(BadRow::to_string).unwrap_or_default(),
            problem: main_problem(&self.problems),
        }
    }

    /// Posts read so far, selected or not.
    pub fn posts(&self) -> u64 {
        self.quality.posts
    }

    /// The panel, and what was met.
    pub fn finish(self) -> Result<(Panel, Quality), Error> {
        let (beliefs, quality) = self.finish_binned()?;
        Ok((beliefs.panel()?, quality))
    }

    /// The mean log-odds per user and bin, and what was met.
    pub fn finish_binned(self) -> Result<(BinnedBeliefs, Quality), Error> {
        if self.max_bad.exceeded(self.quality.rejected, self.quality.rows) {
            return Err(self.too_many_bad());
        }
        let Ingest {
            selector, bins, min_posts, wanted_users, unwanted_users, mut quality, spoken, carry_forward, ..
        } = self;
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
        let out: Vec<bool> = bins.users().map(|user| unwanted_users.contains(user)).collect();
        let rare: Vec<bool> = bins.spans().iter().zip(&out).map(|(span, out)| !out && span.posts < min_posts).collect();
        quality.rare_users = rare.iter().filter(|rare| **rare).count();
        let posts_of = |wanted: &dyn Fn(usize) -> bool| -> u64 {
            bins.spans().iter().enumerate().filter(|(user, _)| wanted(*user)).map(|(_, span)| span.posts).sum()
        };
        let stays = |user: usize| !out[user] && !rare[user];
        quality.dropped.user += posts_of(&|user| out[user]);
        quality.dropped.min_posts = posts_of(&|user| rare[user]);
        quality.kept = posts_of(&stays);
        let users: Vec<usize> = (0..rare.len()).filter(|&user| stays(user)).collect();
        let calendar = bins.calendar().clone();
        let spoken = spoken.map(|(first, last)| (calendar.show(first), calendar.show(last)));
        if users.is_empty() {
            return Err(quality.nothing_left(spoken));
        }
        let beliefs = bins.beliefs(stays).with_carry_forward(carry_forward);
        if let [only] = users[..] {
            return Err(quality.one_left(beliefs.user(only), spoken));
        }
        describe(&beliefs, &users, &mut quality);
        quality.carried_forward = beliefs.filled();
        Ok((beliefs, quality))
    }
}

/// What is wrong with most bad rows, where it is the same.
pub(crate) fn main_problem(problems: &HashMap<RowProblem, u64>) -> RowProblem {
    let all: u64 = problems.values().sum();
    let most = problems.iter().find(|(_, count)| 2 * **count > all);
    most.map_or(RowProblem::Row, |(problem, _)| *problem)
}

fn describe(beliefs: &BinnedBeliefs, users: &[usize], quality: &mut Quality) {
    let Some((first, last)) = beliefs.extent() else { return };
    quality.users = users.len();
    quality.bins = beliefs.calendar().count(first, last);
    let mut spoke: Vec<u64> = vec![0; users.last().map_or(0, |user| user + 1)];
    beliefs.cells().for_each(|cell| spoke[cell.user] += 1);
    quality.beliefs = spoke.iter().sum();
    quality.silent_share = 1.0 - quality.beliefs as f64 / (quality.bins * users.len() as u64) as f64;
    let spans = || users.iter().map(|&user| beliefs.span(user));
    let show = |time: Option<i64>| time.map(|time| beliefs.calendar().show(time)).unwrap_or_default();
    quality.first = show(spans().map(|span| span.first).min());
    quality.last = show(spans().map(|span| span.last).max());
    quality.by_user = users
        .iter()
        .map(|&user| {
            let span = beliefs.span(user);
            UserQuality {
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
