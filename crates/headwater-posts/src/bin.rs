//! Binning: opinions of posts in, mean log-odds per user and bin out.
//!
//! p = p₂/(p₀+p₂) is clipped to [ε, 1−ε], and log p/(1−p) averaged over the posts of a user in a bin. With three hypotheses
//! each of p₂, p₁, p₀ is raised to at least ε, and log p₂/p₁ and log p₂/p₀ are averaged. Only the sums are kept: memory
//! grows with the number of (user, bin) pairs, not with the number of posts.

use crate::Error;
use crate::calendar::{Calendar, Slot};
use crate::given::Given;
use headwater::panel::{PanelBuilder, Times, Unit};
use headwater::{Panel, Roster, progress};
use headwater_files::{AtomicFile, BeliefsRows, CsvText};
use headwater_score::Sentiment;
use indexmap::IndexSet;
use std::collections::HashMap;
use std::path::Path;

/// Probabilities nearer to 0 or 1 than this are clipped, and counted.
pub const CLIP: f64 = 1e-4;

/// Two hypotheses, or three with neutral as a state of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hypotheses {
    /// Positive (the reference) and negative.
    Two,
    /// Positive (the reference), neutral and negative.
    Three,
}

impl Hypotheses {
    /// Their names, the reference first.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Hypotheses::Two => &["positive", "negative"],
            Hypotheses::Three => &["positive", "neutral", "negative"],
        }
    }

    /// The log-ratios of one opinion, and whether it was clipped; `None` where three classes are needed and missing.
    pub fn ratios(self, opinion: Given) -> Option<([f64; 2], bool)> {
        match (self, opinion) {
            (Hypotheses::Two, Given::Probability(probability)) => Some(log_odds(probability)),
            (Hypotheses::Two, Given::Classes(Sentiment { negative, positive, .. })) => {
                let sum = negative + positive;
                // Wholly neutral speaks for neither.
                Some(if sum > 0.0 { log_odds(positive / sum) } else { ([0.0; 2], false) })
            }
            (Hypotheses::Three, Given::Classes(Sentiment { negative, neutral, positive })) => {
                let clipped = [negative, neutral, positive].iter().any(|class| *class < CLIP);
                let [negative, neutral, positive] = [negative, neutral, positive].map(|class| class.max(CLIP));
                Some(([(positive / neutral).ln(), (positive / negative).ln()], clipped))
            }
            (Hypotheses::Three, Given::Probability(_)) => None,
        }
    }
}

fn log_odds(probability: f64) -> ([f64; 2], bool) {
    let kept = probability.clamp(CLIP, 1.0 - CLIP);
    ([(kept / (1.0 - kept)).ln(), 0.0], kept != probability)
}

/// Sums per user and bin.
#[derive(Debug)]
pub struct Bins {
    hypotheses: Hypotheses,
    calendar: Calendar,
    users: IndexSet<Box<str>>,
    /// Bins in order of first appearance.
    slots: Vec<Slot>,
    slot_index: HashMap<i64, u32>,
    /// (user, slot) to its place in `sums` and `posts`; two flat lists beside it are half the size of one map.
    cells: HashMap<(u32, u32), u32>,
    sums: Vec<f64>,
    posts: Vec<u32>,
    /// Per user: posts, first and last second.
    spans: Vec<UserSpan>,
    /// Opinions that were clipped.
    pub clipped: u64,
}

/// When a user spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserSpan {
    /// How many posts.
    pub posts: u64,
    /// The first of them, in seconds since 1970.
    pub first: i64,
    /// The last of them.
    pub last: i64,
}

/// The belief of a user in a bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BinnedCell {
    /// Index of the user.
    pub user: usize,
    /// The bin.
    pub slot: Slot,
    /// Mean log-ratios against the reference; the second is for three hypotheses only.
    pub ratios: [f64; 2],
    /// Posts behind it.
    pub posts: u32,
}

impl Bins {
    /// Empty ones.
    pub fn new(calendar: Calendar, hypotheses: Hypotheses) -> Self {
        Bins {
            hypotheses,
            calendar,
            users: IndexSet::new(),
            slots: Vec::new(),
            slot_index: HashMap::new(),
            cells: HashMap::new(),
            sums: Vec::new(),
            posts: Vec::new(),
            spans: Vec::new(),
            clipped: 0,
        }
    }

    /// Adds the opinion of one post. Says no where three classes are needed, or the time is out of range.
    pub fn add(&mut self, user: &str, time: i64, opinion: Given) -> Result<(), &'static str> {
        let (ratios, clipped) = self
            .hypotheses
            .ratios(opinion)
            .ok_or("three hypotheses need the columns negative, neutral and positive; a score alone is not enough")?;
        let slot = self.calendar.slot(time).ok_or("the time is out of range")?;
        self.clipped += u64::from(clipped);
        let user = match self.users.get_index_of(user) {
            Some(user) => user,
            None => {
                self.spans.push(UserSpan { posts: 0, first: time, last: time });
                self.users.insert_full(user.into()).0
            }
        };
        let span = &mut self.spans[user];
        *span = UserSpan { posts: span.posts + 1, first: span.first.min(time), last: span.last.max(time) };
        let slots = &mut self.slots;
        let slot = *self.slot_index.entry(slot.number).or_insert_with(|| {
            slots.push(slot);
            slots.len() as u32 - 1
        });
        let width = self.width();
        let next = self.posts.len() as u32;
        let cell = *self.cells.entry((user as u32, slot)).or_insert(next);
        if cell == next {
            self.posts.push(0);
            self.sums.extend(std::iter::repeat_n(0.0, width));
        }
        let cell = cell as usize;
        self.posts[cell] += 1;
        self.sums[cell * width..(cell + 1) * width].iter_mut().zip(ratios).for_each(|(sum, ratio)| *sum += ratio);
        Ok(())
    }

    /// Log-ratios per cell.
    fn width(&self) -> usize {
        self.hypotheses.names().len() - 1
    }

    /// Users in order of first appearance.
    pub fn users(&self) -> impl ExactSizeIterator<Item = &str> {
        self.users.iter().map(AsRef::as_ref)
    }

    /// When each user spoke.
    pub fn spans(&self) -> &[UserSpan] {
        &self.spans
    }

    /// The bins.
    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// Their names.
    pub fn hypotheses(&self) -> Hypotheses {
        self.hypotheses
    }

    /// Beliefs of the users for whom `keep` holds, by time and then by first appearance of the user.
    pub fn beliefs(self, keep: impl Fn(usize) -> bool) -> BinnedBeliefs {
        let width = self.width();
        let Bins { hypotheses, calendar, users, slots, cells, sums, posts, spans, .. } = self;
        let mut order: Vec<(u32, u32, u32)> = cells
            .into_iter()
            .filter(|((user, _), _)| keep(*user as usize))
            .map(|((user, slot), cell)| (slot, user, cell))
            .collect();
        order.sort_unstable_by_key(|&(slot, user, _)| (slots[slot as usize].number, user));
        BinnedBeliefs {
            hypotheses,
            calendar,
            users,
            slots,
            order,
            sums,
            posts,
            spans,
            width,
            carry_forward: false,
            by_name: false,
        }
    }
}

/// Mean log-odds per user and bin. [`BinnedBeliefs::panel`] is what learners take, [`BinnedBeliefs::write`] the file that
/// reads as the same panel.
#[derive(Debug)]
pub struct BinnedBeliefs {
    hypotheses: Hypotheses,
    calendar: Calendar,
    users: IndexSet<Box<str>>,
    slots: Vec<Slot>,
    /// (slot, user, cell) in time order.
    order: Vec<(u32, u32, u32)>,
    sums: Vec<f64>,
    posts: Vec<u32>,
    spans: Vec<UserSpan>,
    width: usize,
    carry_forward: bool,
    by_name: bool,
}

/// Microseconds in a second.
const MICROSECONDS: i64 = 1_000_000;

/// Bins without a post for each bin that holds one before we doubt the times.
const MOST_SILENCE: u64 = 1000;
/// Log-ratios that a panel may always have, silent ones included, and beyond that per (user, bin) pair.
const PANEL_NUMBERS: usize = 10 << 20;
const PANEL_NUMBERS_PER_CELL: usize = 256;

/// Rows between two reports of progress.
const REPORTED: u64 = 4096;

/// Mean opinions of one user that differ by less are the same: means of equal scores differ in their last digits.
const SAME_OPINION: f64 = 1e-12;

impl BinnedBeliefs {
    /// With silence filled, or not: a user who says nothing still holds the last opinion, and before the first word the
    /// first one (Note P11). A row that is carried on also carries on the number of posts it rests on.
    pub fn with_carry_forward(mut self, fill: bool) -> Self {
        self.carry_forward = fill;
        self
    }

    /// With users ordered by name instead of by first appearance.
    pub fn with_users_by_name(mut self) -> Self {
        let (slots, users) = (&self.slots, &self.users);
        self.order.sort_unstable_by_key(|&(slot, user, _)| {
            (slots[slot as usize].number, users.get_index(user as usize).map(AsRef::<str>::as_ref))
        });
        self.by_name = true;
        self
    }

    /// The hypotheses.
    pub fn hypotheses(&self) -> Hypotheses {
        self.hypotheses
    }

    /// The bins.
    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// The name of a user.
    pub fn user(&self, user: usize) -> &str {
        self.users.get_index(user).map_or("", AsRef::as_ref)
    }

    /// When a user spoke.
    pub fn span(&self, user: usize) -> UserSpan {
        self.spans[user]
    }

    /// The cells that were spoken, by time, then by first appearance of the user.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = BinnedCell> {
        self.order.iter().map(|&(slot, user, cell)| {
            let (cell, posts) = (cell as usize, self.posts[cell as usize]);
            let mut ratios = [0.0; 2];
            let sums = &self.sums[cell * self.width..(cell + 1) * self.width];
            ratios.iter_mut().zip(sums).for_each(|(ratio, sum)| *ratio = sum / f64::from(posts));
            BinnedCell { user: user as usize, slot: self.slots[slot as usize], ratios, posts }
        })
    }

    /// First and last bin.
    pub fn extent(&self) -> Option<(Slot, Slot)> {
        let slot = |&(slot, ..): &(u32, u32, u32)| self.slots[slot as usize];
        Some((slot(self.order.first()?), slot(self.order.last()?)))
    }

    /// Users with at least one cell.
    fn speakers(&self) -> u64 {
        let mut spoke = vec![false; self.users.len()];
        self.order.iter().for_each(|&(_, user, _)| spoke[user as usize] = true);
        spoke.iter().filter(|spoke| **spoke).count() as u64
    }

    /// Silent (user, bin) pairs that carrying opinions forward fills; 0 without it.
    pub fn filled(&self) -> u64 {
        match self.extent() {
            Some((first, last)) if self.carry_forward => {
                self.calendar.count(first, last).saturating_mul(self.speakers()) - self.order.len() as u64
            }
            _ => 0,
        }
    }

    /// Number of rows, those filled included.
    pub fn rows(&self) -> u64 {
        self.order.len() as u64 + self.filled()
    }

    /// Visits every row by time, then by first appearance of the user, those filled included, up to the first error.
    pub fn visit<E>(&self, mut each: impl FnMut(BinnedCell) -> Result<(), E>) -> Result<(), E> {
        let Some((first, last)) = self.extent().filter(|_| self.carry_forward) else {
            return self.cells().try_for_each(each);
        };
        let mut held: Vec<Option<BinnedCell>> = vec![None; self.users.len()];
        for cell in self.cells() {
            held[cell.user].get_or_insert(cell);
        }
        let mut cells = self.cells().peekable();
        for slot in self.calendar.between(first, last) {
            while let Some(cell) = cells.next_if(|cell| cell.slot.number == slot.number) {
                held[cell.user] = Some(cell);
            }
            held.iter().flatten().try_for_each(|cell| each(BinnedCell { slot, ..*cell }))?;
        }
        Ok(())
    }

    /// Whether no user's opinion ever changes.
    pub fn is_constant(&self) -> bool {
        let mut said: HashMap<usize, [f64; 2]> = HashMap::new();
        let differ = |a: f64, b: f64| (a - b).abs() > SAME_OPINION * a.abs().max(1.0);
        !self.cells().any(|cell| {
            let first = said.entry(cell.user).or_insert(cell.ratios);
            first.iter().zip(cell.ratios).any(|(first, now)| differ(*first, now))
        })
    }

    /// Log-ratios that these cells may become, silent ones included.
    fn most_numbers(&self) -> usize {
        PANEL_NUMBERS.max(self.order.len().saturating_mul(self.width).saturating_mul(PANEL_NUMBERS_PER_CELL))
    }

    /// Refuses to fill so much silence that it would never end.
    pub(crate) fn check_filled(&self) -> Result<(), Error> {
        let (limit, agents) = (self.most_numbers(), self.speakers() as usize);
        if self.rows().saturating_mul(self.width as u64) <= limit as u64 {
            return Ok(());
        }
        let steps = (self.rows() / agents.max(1) as u64) as usize;
        Err(headwater::Error::TooLarge { steps, agents, ratios: self.width, limit }.into())
    }

    /// The panel: mean log-odds as they are, users by first appearance in time, one step per bin at the time the bin starts.
    /// Bins that nobody spoke in are silent steps.
    ///
    /// # Errors
    /// [`Error::SparseBins`] where hardly any bin holds a post, and what [`headwater::panel::PanelBuilder::finish`] tells.
    pub fn panel(&self) -> Result<Panel, Error> {
        self.check_filled()?;
        let bins = self.bins()?;
        let step_of: HashMap<i64, i64> = bins.iter().zip(0..).map(|(slot, step)| (slot.number, step)).collect();
        let names = self.hypotheses.names().iter().map(|name| (*name).to_owned()).collect();
        let mut builder = PanelBuilder::new(names, Unit::Steps);
        builder.set_limit(self.most_numbers());
        self.visit(|cell| {
            builder.push(step_of[&cell.slot.number], self.user(cell.user), &cell.ratios[..self.width], cell.posts)
        })?;
        let times = if self.calendar.is_numeric() {
            Times::Steps(bins.iter().map(|slot| slot.number).collect())
        } else {
            Times::Instants {
                utc: bins.iter().map(|slot| slot.start * MICROSECONDS).collect(),
                offsets: bins.iter().map(|slot| self.calendar.offset(slot.start)).collect(),
            }
        };
        let panel = builder.finish()?.with_times(times)?;
        if self.by_name { Ok(agents_by_name(&panel)?) } else { Ok(panel) }
    }

    /// Every bin from the first that anybody spoke in to the last.
    fn bins(&self) -> Result<Vec<Slot>, Error> {
        let Some((first, last)) = self.extent() else { return Ok(Vec::new()) };
        let (bins, present) = (self.calendar.count(first, last), self.order.chunk_by(|a, b| a.0 == b.0).count() as u64);
        if bins > MOST_SILENCE * present {
            let [first, last] = [first, last].map(|slot| self.calendar.show(slot.start));
            return Err(Error::SparseBins { first, last, bins, present });
        }
        Ok(self.calendar.between(first, last).collect())
    }

    /// The time of a bin in a table of beliefs: its start, or, where times are plain numbers, the number of the bin.
    pub fn time_of(&self, slot: Slot) -> String {
        if self.calendar.is_numeric() { slot.number.to_string() } else { self.calendar.show(slot.start) }
    }

    /// The table of beliefs (Parquet by extension, otherwise CSV), which takes its name when it is committed.
    pub fn write(&self, path: &Path, text: CsvText) -> Result<AtomicFile, Error> {
        self.check_filled()?;
        let mut rows = BeliefsRows::create(path, self.hypotheses.names(), text)?;
        let stage = progress::stage("writing", self.rows());
        let mut written = 0;
        let mut shown: Option<(i64, String)> = None;
        self.visit(|cell| {
            // One text per bin, not per row.
            if shown.as_ref().is_none_or(|(start, _)| *start != cell.slot.start) {
                shown = Some((cell.slot.start, self.time_of(cell.slot)));
            }
            let time = shown.as_ref().map_or("", |(_, text)| text);
            rows.write(time, self.user(cell.user), &cell.ratios, cell.posts)?;
            written += 1;
            if written % REPORTED == 0 {
                progress::check()?;
                stage.at(written);
            }
            Ok::<(), Error>(())
        })?;
        Ok(rows.finish()?)
    }
}

/// A panel with its agents ordered by name.
fn agents_by_name(panel: &Panel) -> Result<Panel, headwater::Error> {
    let (agents, roster) = (panel.agents(), panel.roster());
    let mut order: Vec<usize> = (0..agents).collect();
    order.sort_unstable_by_key(|&agent| &roster.agents()[agent]);
    let names: Vec<&str> = order.iter().map(|&agent| roster.agents()[agent].as_str()).collect();
    let roster = Roster::new(names, roster.hypotheses().to_vec())?;
    let cells = panel.cells().chunks_exact(agents).flat_map(|chunk| order.iter().map(|&agent| chunk[agent]));
    let posts = (0..panel.steps()).flat_map(|step| order.iter().map(move |&agent| panel.posts(step, agent)));
    Panel::new(roster, panel.times().clone(), cells.collect(), Some(posts.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Bin;
    use jiff::tz::TimeZone;

    #[test]
    fn log_odds_are_averaged() {
        let mut bins = Bins::new(Calendar::new(Bin::Day, TimeZone::UTC), Hypotheses::Two);
        for (user, time, probability) in
            [("bob", 86400, 0.9), ("ann", 0, 0.0), ("bob", 86401, 0.5), ("ann", 3 * 86400, 0.25)]
        {
            bins.add(user, time, Given::Probability(probability)).unwrap();
        }
        assert_eq!(bins.clipped, 1);
        let beliefs = bins.beliefs(|_| true);
        let cells: Vec<(usize, i64, f64, u32)> =
            beliefs.cells().map(|cell| (cell.user, cell.slot.number, cell.ratios[0], cell.posts)).collect();
        let low = (CLIP / (1.0 - CLIP)).ln();
        assert_eq!(cells, [(1, 0, low, 1), (0, 1, 9f64.ln() / 2.0, 2), (1, 3, (0.25f64 / 0.75).ln(), 1)]);
        assert_eq!((beliefs.user(0), beliefs.span(0)), ("bob", UserSpan { posts: 2, first: 86400, last: 86401 }));
        let beliefs = beliefs.with_carry_forward(true);
        let mut filled = Vec::new();
        let visited = beliefs.visit(|cell| {
            filled.push((cell.slot.number, cell.user, cell.ratios[0]));
            Ok::<(), Error>(())
        });
        assert!(visited.is_ok());
        let count = beliefs.filled();
        let (bob, late) = (9f64.ln() / 2.0, (0.25f64 / 0.75).ln());
        assert_eq!(
            filled,
            [(0, 0, bob), (0, 1, low), (1, 0, bob), (1, 1, low), (2, 0, bob), (2, 1, low), (3, 0, bob), (3, 1, late)]
        );
        assert_eq!((count, beliefs.rows()), (5, 8));
    }

    #[test]
    fn steps_of_a_panel_are_the_bins() {
        // New York changed its clocks on 14 March 2021: four bins of six hours, the first of them an hour shorter.
        let zone = TimeZone::get("America/New_York").unwrap();
        let mut bins = Bins::new(Calendar::new("6h".parse().unwrap(), zone), Hypotheses::Two);
        let said = ["2021-03-13T17:00:00Z", "2021-03-14T06:00:00Z", "2021-03-15T17:00:00Z"];
        let times = said.map(|time| crate::read::parse_time(time).unwrap());
        for (user, time) in [("ann", times[0]), ("bob", times[1]), ("ann", times[2])] {
            bins.add(user, time, Given::Probability(0.75)).unwrap();
        }
        let beliefs = bins.beliefs(|_| true);
        let panel = beliefs.panel().unwrap();
        let shown: Vec<String> =
            panel.times().raw().iter().map(|time| beliefs.calendar().show(time / MICROSECONDS)).collect();
        assert_eq!(
            shown,
            [
                "2021-03-13T12:00:00-05:00",
                "2021-03-13T18:00:00-05:00",
                "2021-03-14T00:00:00-05:00",
                "2021-03-14T06:00:00-04:00",
                "2021-03-14T12:00:00-04:00",
                "2021-03-14T18:00:00-04:00",
                "2021-03-15T00:00:00-04:00",
                "2021-03-15T06:00:00-04:00",
                "2021-03-15T12:00:00-04:00",
            ]
        );
        let Times::Instants { offsets, .. } = panel.times() else { panic!("bins have times") };
        assert_eq!(offsets[..4], [-18_000, -18_000, -18_000, -14_400]);
        let spoke: Vec<(usize, usize)> = (0..9)
            .flat_map(|step| [(step, 0), (step, 1)])
            .filter(|&(step, user)| panel.posts(step, user) > 0)
            .collect();
        assert_eq!(spoke, [(0, 0), (2, 1), (8, 0)]);
    }

    #[test]
    fn users_can_be_ordered_by_name() {
        let mut bins = Bins::new(Calendar::new(Bin::Day, TimeZone::UTC), Hypotheses::Two);
        for (user, day, probability) in [("zoe", 0, 0.75), ("bob", 0, 0.5), ("ann", 1, 0.25), ("zoe", 1, 0.5)] {
            bins.add(user, day * 86_400, Given::Probability(probability)).unwrap();
        }
        let beliefs = bins.beliefs(|_| true).with_users_by_name();
        let said: Vec<&str> = beliefs.cells().map(|cell| beliefs.user(cell.user)).collect();
        assert_eq!(said, ["bob", "zoe", "ann", "zoe"]);
        let panel = beliefs.panel().unwrap();
        assert_eq!(panel.roster().agents(), ["ann", "bob", "zoe"]);
        assert_eq!(panel.cells(), [0.0, 0.0, 3f64.ln(), (0.25f64 / 0.75).ln(), 0.0, 0.0]);
        let posts: Vec<u32> = (0..6).map(|cell| panel.posts(cell / 3, cell % 3)).collect();
        assert_eq!(posts, [0, 1, 1, 1, 0, 1]);
    }

    #[test]
    fn two_posts_far_apart_are_refused() {
        let mut bins = Bins::new(Calendar::new(Bin::Hours(1), TimeZone::UTC), Hypotheses::Two);
        bins.add("ann", 0, Given::Probability(0.5)).unwrap();
        bins.add("bob", 253_370_764_800, Given::Probability(0.5)).unwrap();
        let error = bins.beliefs(|_| true).panel().unwrap_err();
        assert!(matches!(error, Error::SparseBins { bins: 70_380_769, present: 2, .. }), "{error}");
    }

    #[test]
    fn three_hypotheses_keep_neutral() {
        let classes = |negative, neutral, positive| Given::Classes(Sentiment { negative, neutral, positive });
        let (ratios, clipped) = Hypotheses::Three.ratios(classes(0.2, 0.3, 0.5)).unwrap();
        assert_eq!((ratios, clipped), ([(0.5f64 / 0.3).ln(), 2.5f64.ln()], false));
        assert_eq!(Hypotheses::Three.ratios(classes(0.0, 0.5, 0.5)), Some(([0.0, (0.5 / CLIP).ln()], true)));
        assert_eq!(Hypotheses::Three.ratios(Given::Probability(0.5)), None);
        assert_eq!(Hypotheses::Two.ratios(classes(0.0, 1.0, 0.0)), Some(([0.0; 2], false)));
        assert_eq!(Hypotheses::Two.ratios(classes(0.25, 0.5, 0.25)), Some(([0.0; 2], false)));
    }
}
