//! Binning: opinions of posts in, mean log-odds per user and bin out.
//!
//! p = p₂/(p₀+p₂) is clipped to [ε, 1−ε], and log p/(1−p) averaged over the posts of a user in a bin. With three hypotheses
//! each of p₂, p₁, p₀ is raised to at least ε, and log p₂/p₁ and log p₂/p₀ are averaged. Only the sums are kept: memory
//! grows with the number of (user, bin) pairs, not with the number of posts.
//!
//! Days and weeks (from Monday) are those of a time zone, 23 or 25 hours long when its clocks change. Bins of three and more
//! hours start on the local clock, at 0, 6, 12 and 18 for `6h`; bins of one and two hours always have that length.

use crate::given::Given;
use headwater_score::Sentiment;
use indexmap::IndexSet;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan, Unit};
use std::collections::HashMap;
use std::str::FromStr;

/// Probabilities nearer to 0 or 1 than this are clipped, and counted.
pub const CLIP: f64 = 1e-4;

/// How long a bin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bin {
    /// So many hours.
    Hours(u16),
    /// A local day.
    Day,
    /// Seven local days from Monday.
    Week,
}

/// Longest bin in hours: a year.
const MOST_HOURS: u16 = 366 * 24;

/// Bins longer than this start on the local clock. A change of the clocks moves a start by an hour, which must round
/// to the same step when the file is read: more than two hours are needed.
const LONGEST_EXACT: u16 = 2;

impl FromStr for Bin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "hour" => Ok(Bin::Hours(1)),
            "day" => Ok(Bin::Day),
            "week" => Ok(Bin::Week),
            _ => {
                let hours = text.strip_suffix('h').and_then(|hours| hours.parse().ok());
                hours.filter(|hours| (1..=MOST_HOURS).contains(hours)).map(Bin::Hours).ok_or_else(|| {
                    format!(
                        "met {text:?}; wanted hour, day, week, or a number of hours such as 6h (at most {MOST_HOURS}h)"
                    )
                })
            }
        }
    }
}

/// One bin: its number, without gaps where nobody speaks, and its first second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Counted from 1970.
    pub number: i64,
    /// Seconds since 1970.
    pub start: i64,
}

/// The bins of a time zone.
#[derive(Debug, Clone)]
pub struct Calendar {
    bin: Bin,
    zone: TimeZone,
    /// The slot asked for last, and its end.
    latest: Option<(Slot, i64)>,
}

impl Calendar {
    /// Bins of a length in a zone.
    pub fn new(bin: Bin, zone: TimeZone) -> Self {
        Calendar { bin, zone, latest: None }
    }

    /// The bin of an instant, in seconds since 1970; `None` beyond the years −9999 to 9999.
    pub fn slot(&mut self, time: i64) -> Option<Slot> {
        if let Some((slot, end)) = self.latest
            && (slot.start..end).contains(&time)
        {
            return Some(slot);
        }
        let number = self.number(time)?;
        let slot = Slot { number, start: self.start(number, time)? };
        self.latest = self.start(number + 1, time).map(|end| (slot, end));
        Some(slot)
    }

    fn number(&self, time: i64) -> Option<i64> {
        let local = self.zone.to_datetime(Timestamp::from_second(time).ok()?);
        let days = days_since_1970(local.date());
        Some(match self.bin {
            Bin::Day => days,
            // 1970 began on a Thursday.
            Bin::Week => (days + 3).div_euclid(7),
            Bin::Hours(hours) if hours > LONGEST_EXACT => {
                (days * 24 + i64::from(local.hour())).div_euclid(i64::from(hours))
            }
            Bin::Hours(hours) => (time + self.minutes(time)?).div_euclid(i64::from(hours) * 3600),
        })
    }

    /// The first second of a bin near an instant.
    fn start(&self, number: i64, near: i64) -> Option<i64> {
        let local = match self.bin {
            Bin::Day => midnight(number)?,
            Bin::Week => midnight(number * 7 - 3)?,
            Bin::Hours(hours) if hours > LONGEST_EXACT => {
                let hours = number * i64::from(hours);
                midnight(hours.div_euclid(24))?.checked_add(hours.rem_euclid(24).hours()).ok()?
            }
            Bin::Hours(hours) => return Some(number * i64::from(hours) * 3600 - self.minutes(near)?),
        };
        let ambiguous = self.zone.to_ambiguous_timestamp(local);
        if matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. }) {
            // A start that the clocks skip is the first instant after it, however far they went.
            return self.zone.following(ambiguous.earlier().ok()?).next().map(|change| change.timestamp().as_second());
        }
        Some(ambiguous.compatible().ok()?.as_second())
    }

    /// Where the zone is off by less than an hour: half an hour in India.
    fn minutes(&self, time: i64) -> Option<i64> {
        Some(i64::from(self.zone.to_offset(Timestamp::from_second(time).ok()?).seconds()).rem_euclid(3600))
    }

    /// RFC 3339 with the zone's offset.
    pub fn show(&self, time: i64) -> String {
        match Timestamp::from_second(time) {
            Ok(instant) => {
                let offset = self.zone.to_offset(instant);
                instant.display_with_offset(offset).to_string()
            }
            Err(_) => time.to_string(),
        }
    }

    /// All bins from one to another; a local day that the clocks skipped is none.
    pub fn between(&self, first: Slot, last: Slot) -> impl Iterator<Item = Slot> + '_ {
        let mut near = first.start;
        (first.number..=last.number).filter_map(move |number| {
            near = self.start(number, near).unwrap_or(near);
            let slot = Slot { number, start: near };
            (self.start(number + 1, near) != Some(near)).then_some(slot)
        })
    }

    /// How many [`Calendar::between`] gives, without going through them: one post of the year 9999 makes 70 million
    /// hours.
    pub fn count(&self, first: Slot, last: Slot) -> u64 {
        let all = last.number - first.number + 1;
        let skips = match self.bin {
            Bin::Hours(hours) => hours > LONGEST_EXACT,
            Bin::Day | Bin::Week => true,
        };
        let Some(from) = Timestamp::from_second(first.start).ok().filter(|_| skips) else { return all as u64 };
        let changes = self.zone.following(from).map(|change| change.timestamp().as_second());
        // What the clocks skip is what lies between the bins before and after.
        let skipped = changes.take_while(|time| *time <= last.start).filter_map(|time| {
            let (before, after) = (self.number(time - 1)?, self.number(time)?);
            Some((after - before - 1).max(0))
        });
        (all - skipped.sum::<i64>()) as u64
    }
}

fn days_since_1970(date: Date) -> i64 {
    let epoch = jiff::civil::date(1970, 1, 1);
    date.since((Unit::Day, epoch)).map_or(0, |span| i64::from(span.get_days()))
}

fn midnight(days: i64) -> Option<DateTime> {
    let epoch = jiff::civil::date(1970, 1, 1);
    Some(epoch.checked_add(i32::try_from(days).ok()?.days()).ok()?.to_datetime(Time::midnight()))
}

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
    spans: Vec<Span>,
    /// Opinions that were clipped.
    pub clipped: u64,
}

/// When a user spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// How many posts.
    pub posts: u64,
    /// The first of them, in seconds since 1970.
    pub first: i64,
    /// The last of them.
    pub last: i64,
}

/// The belief of a user in a bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
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
                self.spans.push(Span { posts: 0, first: time, last: time });
                self.users.insert_full(user.into()).0
            }
        };
        let span = &mut self.spans[user];
        *span = Span { posts: span.posts + 1, first: span.first.min(time), last: span.last.max(time) };
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
    pub fn spans(&self) -> &[Span] {
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
    pub fn beliefs(self, keep: impl Fn(usize) -> bool) -> Beliefs {
        let width = self.width();
        let Bins { hypotheses, calendar, users, slots, cells, sums, posts, spans, .. } = self;
        let mut order: Vec<(u32, u32, u32)> = cells
            .into_iter()
            .filter(|((user, _), _)| keep(*user as usize))
            .map(|((user, slot), cell)| (slot, user, cell))
            .collect();
        order.sort_unstable_by_key(|&(slot, user, _)| (slots[slot as usize].number, user));
        Beliefs { hypotheses, calendar, users, slots, order, sums, posts, spans, width }
    }
}

/// What users believe, bin by bin.
#[derive(Debug)]
pub struct Beliefs {
    /// The hypotheses.
    pub hypotheses: Hypotheses,
    /// The bins.
    pub calendar: Calendar,
    users: IndexSet<Box<str>>,
    slots: Vec<Slot>,
    /// (slot, user, cell) in time order.
    order: Vec<(u32, u32, u32)>,
    sums: Vec<f64>,
    posts: Vec<u32>,
    spans: Vec<Span>,
    width: usize,
}

impl Beliefs {
    /// The name of a user.
    pub fn user(&self, user: usize) -> &str {
        self.users.get_index(user).map_or("", AsRef::as_ref)
    }

    /// When a user spoke.
    pub fn span(&self, user: usize) -> Span {
        self.spans[user]
    }

    /// The cells by time, then by first appearance of the user.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Cell> {
        self.order.iter().map(|&(slot, user, cell)| {
            let (cell, posts) = (cell as usize, self.posts[cell as usize]);
            let mut ratios = [0.0; 2];
            let sums = &self.sums[cell * self.width..(cell + 1) * self.width];
            ratios.iter_mut().zip(sums).for_each(|(ratio, sum)| *ratio = sum / f64::from(posts));
            Cell { user: user as usize, slot: self.slots[slot as usize], ratios, posts }
        })
    }

    /// First and last bin.
    pub fn extent(&self) -> Option<(Slot, Slot)> {
        let slot = |&(slot, ..): &(u32, u32, u32)| self.slots[slot as usize];
        Some((slot(self.order.first()?), slot(self.order.last()?)))
    }

    /// The cells with every silence filled: a user who says nothing still holds the last opinion, and before the first
    /// word the first one (Note P11). A row that is carried on also carries on the number of posts it rests on.
    pub fn carried_forward(&self, mut each: impl FnMut(Cell)) -> u64 {
        let Some((first, last)) = self.extent() else { return 0 };
        let mut held: Vec<Option<Cell>> = vec![None; self.users.len()];
        for cell in self.cells() {
            held[cell.user].get_or_insert(cell);
        }
        let mut cells = self.cells().peekable();
        let mut filled = 0;
        for slot in self.calendar.between(first, last) {
            while let Some(cell) = cells.next_if(|cell| cell.slot.number == slot.number) {
                held[cell.user] = Some(cell);
            }
            for cell in held.iter().flatten() {
                filled += u64::from(cell.slot.number != slot.number);
                each(Cell { slot, ..*cell });
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::parse_time;

    fn starts(bin: &str, zone: &str, times: &[&str]) -> Vec<String> {
        let mut calendar = Calendar::new(bin.parse().unwrap(), TimeZone::get(zone).unwrap());
        times
            .iter()
            .map(|time| {
                let slot = calendar.slot(parse_time(time).unwrap()).unwrap();
                calendar.show(slot.start)
            })
            .collect()
    }

    #[test]
    fn bins_follow_the_local_calendar() {
        let day = |time| starts("day", "America/New_York", &[time]).remove(0);
        assert_eq!(day("2021-03-14T04:59:59Z"), "2021-03-13T00:00:00-05:00");
        assert_eq!(day("2021-03-14T05:00:00Z"), "2021-03-14T00:00:00-05:00");
        assert_eq!(day("2021-03-15T03:59:59Z"), "2021-03-14T00:00:00-05:00");
        assert_eq!(day("2021-03-15T04:00:00Z"), "2021-03-15T00:00:00-04:00");
        assert_eq!(day("2021-11-08T04:59:59Z"), "2021-11-07T00:00:00-04:00");
        // In Havana the clocks skip the hour after midnight.
        assert_eq!(starts("day", "America/Havana", &["2021-03-14T12:00:00Z"]), ["2021-03-14T01:00:00-04:00"]);
        assert_eq!(starts("week", "Europe/Berlin", &["2024-03-31T21:59:59Z"]), ["2024-03-25T00:00:00+01:00"]);
        assert_eq!(starts("week", "Europe/Berlin", &["2024-03-31T22:00:00Z"]), ["2024-04-01T00:00:00+02:00"]);
        assert_eq!(starts("hour", "Asia/Kolkata", &["2024-05-01T00:29:59Z"]), ["2024-05-01T05:00:00+05:30"]);
        assert_eq!(starts("6h", "America/New_York", &["2021-07-01T11:00:00Z"]), ["2021-07-01T06:00:00-04:00"]);
        assert_eq!(starts("6h", "America/New_York", &["2021-12-01T11:30:00Z"]), ["2021-12-01T06:00:00-05:00"]);
        assert_eq!(starts("36h", "UTC", &["1970-01-03T00:00:00Z"]), ["1970-01-02T12:00:00+00:00"]);
        assert_eq!(starts("day", "UTC", &["1969-12-31T23:59:59Z"]), ["1969-12-31T00:00:00+00:00"]);
        // The hour that the clocks repeat is two bins.
        let twice = starts("hour", "America/New_York", &["2021-11-07T05:30:00Z", "2021-11-07T06:30:00Z"]);
        assert_eq!(twice, ["2021-11-07T01:00:00-04:00", "2021-11-07T01:00:00-05:00"]);
        for wrong in ["", "0h", "h", "9000h", "-1h", "month"] {
            assert!(wrong.parse::<Bin>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_cache_changes_nothing() {
        for (bin, zone) in
            [("day", "America/New_York"), ("6h", "Europe/Berlin"), ("hour", "Australia/Lord_Howe"), ("week", "UTC")]
        {
            let fresh = Calendar::new(bin.parse().unwrap(), TimeZone::get(zone).unwrap());
            let mut used = fresh.clone();
            for step in 0..20_000 {
                let time = 1_600_000_000 + step * 1800;
                assert_eq!(used.slot(time), fresh.clone().slot(time), "{bin} {zone} {time}");
            }
        }
    }

    #[test]
    fn bins_are_counted_without_going_through_them() {
        for zone in
            ["UTC", "America/New_York", "America/Havana", "Pacific/Apia", "Pacific/Kwajalein", "Australia/Lord_Howe"]
        {
            for bin in ["hour", "2h", "3h", "6h", "day", "36h", "week"] {
                let mut calendar = Calendar::new(bin.parse().unwrap(), TimeZone::get(zone).unwrap());
                for (from, to) in [
                    ("2011-12-25", "2012-01-05"),
                    ("1993-08-10", "1993-09-01"),
                    ("2021-01-01", "2021-12-31"),
                    ("1969-12-01", "1970-02-01"),
                ] {
                    let mut slot = |time: &str| calendar.slot(parse_time(time).unwrap()).unwrap();
                    let (first, last) = (slot(from), slot(to));
                    let bins: Vec<Slot> = calendar.between(first, last).collect();
                    assert!(bins.is_sorted_by(|a, b| a.start < b.start), "{zone} {bin} {from}");
                    assert_eq!(calendar.count(first, last), bins.len() as u64, "{zone} {bin} {from}");
                }
            }
        }
        // Samoa had no 30 December 2011: of the four days from the 28th on three are left.
        for (bin, count) in [("day", 3), ("6h", 12)] {
            let mut calendar = Calendar::new(bin.parse().unwrap(), TimeZone::get("Pacific/Apia").unwrap());
            let mut slot = |time: &str| calendar.slot(parse_time(time).unwrap()).unwrap();
            let (first, last) = (slot("2011-12-28T00:00:00-10:00"), slot("2011-12-31T23:00:00+14:00"));
            assert_eq!(calendar.count(first, last), count, "{bin}");
        }
        // Found by fuzzing: one impossible year cost half a minute.
        let mut calendar = Calendar::new(Bin::Hours(1), TimeZone::get("America/New_York").unwrap());
        let (first, last) = (calendar.slot(0).unwrap(), calendar.slot(253_370_764_800).unwrap());
        assert_eq!(calendar.count(first, last), 253_370_764_800 / 3600 + 1);
    }

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
        assert_eq!((beliefs.user(0), beliefs.span(0)), ("bob", Span { posts: 2, first: 86400, last: 86401 }));
        let mut filled = Vec::new();
        let count = beliefs.carried_forward(|cell| filled.push((cell.slot.number, cell.user, cell.ratios[0])));
        let (bob, late) = (9f64.ln() / 2.0, (0.25f64 / 0.75).ln());
        assert_eq!(
            filled,
            [(0, 0, bob), (0, 1, low), (1, 0, bob), (1, 1, low), (2, 0, bob), (2, 1, low), (3, 0, bob), (3, 1, late)]
        );
        assert_eq!(count, 5);
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
