//! The calendar: an instant in, its bin out.
//!
//! Days and weeks (from Monday) are those of a time zone, 23 or 25 hours long when its clocks change. Bins of three and more
//! hours start on the local clock, at 0, 6, 12 and 18 for `6h`; bins of one and two hours always have that length.

use crate::read::MILLIONTHS;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan, Unit};
use std::str::FromStr;

/// How long a bin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bin {
    /// So many hours.
    Hours(u16),
    /// A local day.
    Day,
    /// Seven local days from Monday.
    Week,
    /// So many millionths of a unit, where times are plain numbers.
    Units(i64),
}

impl Bin {
    /// Whether times are plain numbers rather than instants.
    pub fn is_numeric(self) -> bool {
        matches!(self, Bin::Units(_))
    }
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
            _ if text.parse::<f64>().is_ok() => {
                let units = text.parse::<f64>().ok().map(|units| (units * MILLIONTHS).round());
                let units = units.filter(|units| *units >= 1.0 && *units <= 1e15).map(|units| Bin::Units(units as i64));
                units.ok_or_else(|| format!("found {text:?}; expected a positive number such as 1 or 0.5"))
            }
            _ => {
                let hours = text.strip_suffix('h').and_then(|hours| hours.parse().ok());
                hours.filter(|hours| (1..=MOST_HOURS).contains(hours)).map(Bin::Hours).ok_or_else(|| {
                    format!(
                        "found {text:?}; expected hour, day, week, a number of hours such as 6h (at most {MOST_HOURS}h), or a plain number where times are plain numbers"
                    )
                })
            }
        }
    }
}

impl std::fmt::Display for Bin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bin::Hours(1) => write!(f, "hour"),
            Bin::Hours(hours) => write!(f, "{hours}h"),
            Bin::Day => write!(f, "day"),
            Bin::Week => write!(f, "week"),
            Bin::Units(units) => write!(f, "{}", *units as f64 / MILLIONTHS),
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
        if let Bin::Units(width) = self.bin {
            return Some(time.div_euclid(width));
        }
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
            Bin::Units(width) => time.div_euclid(width),
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
            Bin::Units(width) => return number.checked_mul(width),
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

    /// Seconds that the zone's clock is ahead of UTC at an instant.
    pub fn offset(&self, time: i64) -> i32 {
        if self.bin.is_numeric() {
            return 0;
        }
        Timestamp::from_second(time).map_or(0, |instant| self.zone.to_offset(instant).seconds())
    }

    /// Whether times are plain numbers.
    pub fn is_numeric(&self) -> bool {
        self.bin.is_numeric()
    }

    /// RFC 3339 with the zone's offset, or a plain number.
    pub fn show(&self, time: i64) -> String {
        if self.bin.is_numeric() {
            return (time as f64 / MILLIONTHS).to_string();
        }
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
            Bin::Units(_) => false,
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
    fn bins_of_plain_numbers_are_in_their_own_units() {
        let mut calendar = Calendar::new("0.5".parse().unwrap(), TimeZone::UTC);
        let mut slot = |time: f64| calendar.slot((time * MILLIONTHS) as i64).unwrap();
        assert_eq!([0.0, 0.49, 0.5, 9.99, -0.1].map(|time| slot(time).number), [0, 0, 1, 19, -1]);
        let (first, last) = (slot(0.2), slot(9.9));
        assert_eq!((calendar.count(first, last), calendar.between(first, last).count()), (20, 20));
        assert_eq!((calendar.show(last.start), calendar.offset(last.start)), ("9.5".to_owned(), 0));
        assert_eq!("0.5".parse::<Bin>().unwrap().to_string(), "0.5");
        for wrong in ["0", "-1", "NaN", "inf", "1e-9"] {
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
}
