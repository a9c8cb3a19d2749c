//! The time of a post: a text in, seconds since 1970 out.
//!
//! RFC 3339 with any offset, a date and time without one (UTC), a date (midnight UTC), seconds, milliseconds,
//! microseconds or nanoseconds since 1970, a date with the year at its end where the order is given, X's `Wed Oct 10 20:19:24 +0000 2018`, and mail's `Wed, 10 Oct 2018 20:19:24 GMT`.

use super::record::{RowError, RowProblem};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::TimeZone;

/// What a time should have looked like.
const WANTED: &str = "expected a time such as 2024-05-01T14:30:00-04:00, or seconds since 1970";

/// Counts of seconds are below this until the year 5138; what is larger counts something smaller.
const MOST_SECONDS: i128 = 100_000_000_000;

/// What a time that is a plain number should have looked like.
const WANTED_NUMBER: &str = "expected a plain number such as 3.5, because the bins are in the units of the times";

/// Which comes first in a date whose year is last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateOrder {
    /// The month, as in the United States: 12/31/2024.
    MonthFirst,
    /// The day, as in most of Europe: 31.12.2024.
    DayFirst,
}

impl std::fmt::Display for DateOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DateOrder::MonthFirst => "mdy",
            DateOrder::DayFirst => "dmy",
        })
    }
}

impl std::str::FromStr for DateOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "mdy" => Ok(DateOrder::MonthFirst),
            "dmy" => Ok(DateOrder::DayFirst),
            _ => Err(format!("found {text:?}; expected mdy (12/31/2024) or dmy (31.12.2024)")),
        }
    }
}

/// How times are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TimeFormat {
    pub(crate) order: Option<DateOrder>,
    /// Whether they are plain numbers, which are kept in millionths.
    pub(crate) numeric: bool,
}

/// Millionths in one.
pub(crate) const MILLIONTHS: f64 = 1e6;

impl TimeFormat {
    /// Seconds since 1970, or millionths of a unit.
    pub(crate) fn parse(self, text: &str, column: &str) -> Result<i64, RowError> {
        let met = || format!("column {column}: found {:?}", text.chars().take(60).collect::<String>());
        if self.numeric {
            let number = text.trim().parse::<f64>().ok().filter(|number| number.abs() < 1e12);
            let number = number.map(|number| (number * MILLIONTHS).round() as i64);
            return number.ok_or_else(|| RowError::new(RowProblem::NumericTime, format!("{}; {WANTED_NUMBER}", met())));
        }
        if let Some(time) = parse_time(text) {
            return Ok(time);
        }
        match (CivilDate::split(text), self.order) {
            (Some(_), None) => Err(RowError::new(
                RowProblem::DateOrder,
                format!("{}, which does not say whether the day or the month comes first; {WANTED}", met()),
            )),
            (Some(date), Some(order)) => date.time(order).ok_or_else(|| {
                let order = if order == DateOrder::DayFirst { "day" } else { "month" };
                RowError::new(
                    RowProblem::DateOrder,
                    format!("{}, which is no date with the {order} first; {WANTED}", met()),
                )
            }),
            (None, _) => Err(format!("{}; {WANTED}", met()).into()),
        }
    }
}

/// Whether a text is a time, in whatever order.
pub(crate) fn is_time(text: &str) -> bool {
    parse_time(text).is_some() || CivilDate::split(text).is_some()
}

/// A date with its year last, and perhaps a time of day.
struct CivilDate<'a> {
    /// Day and month, in whatever order, and the year.
    numbers: [i16; 3],
    clock: &'a str,
}

impl<'a> CivilDate<'a> {
    /// `5/1/2024`, `01.05.2024`, `01-05-24`, each with or without `14:30:05` or `2:30 PM`.
    fn split(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (date, clock) = text.split_once([' ', ',', 'T']).unwrap_or((text, ""));
        let separator = date.chars().find(|character| !character.is_ascii_digit())?;
        if !matches!(separator, '/' | '.' | '-') {
            return None;
        }
        let mut parts = date.split(separator);
        let numbers = [parts.next()?, parts.next()?, parts.next()?];
        let digits = numbers.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        let short = (1..=2).contains(&numbers[0].len()) && (1..=2).contains(&numbers[1].len());
        if parts.next().is_some() || !digits || !short || !matches!(numbers[2].len(), 2 | 4) {
            return None;
        }
        let [first, second, year] = numbers.map(|part| part.parse().unwrap_or(0));
        // As strptime does: 69 to 99 are of the last century.
        let year = match (numbers[2].len(), year) {
            (4, year) => year,
            (_, year @ 69..) => 1900 + year,
            (_, year) => 2000 + year,
        };
        Some(CivilDate { numbers: [first, second, year], clock: clock.trim_start_matches([',', ' ']) })
    }

    fn time(&self, order: DateOrder) -> Option<i64> {
        let [first, second, year] = self.numbers;
        let (month, day) = if order == DateOrder::MonthFirst { (first, second) } else { (second, first) };
        let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
        if self.clock.is_empty() {
            return parse_time(&date.to_string());
        }
        let clock = self.clock.trim_end_matches("Uhr").trim_end().to_ascii_lowercase();
        let (clock, half) = match (clock.strip_suffix("am"), clock.strip_suffix("pm")) {
            (Some(clock), _) => (clock.trim_end(), Some(0)),
            (_, Some(clock)) => (clock.trim_end(), Some(12)),
            _ => (clock.as_str(), None),
        };
        // The hour, and what follows it as it is: minutes, seconds, a zone.
        let (hour, rest) = clock.split_once(':')?;
        let hour: i8 = hour.parse().ok()?;
        let hour = match half {
            None => hour,
            Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
            Some(_) => return None,
        };
        parse_time(&format!("{date} {hour:02}:{}", rest.to_ascii_uppercase()))
    }
}

/// Seconds since 1970, rounded down.
///
/// ```
/// use headwater_posts::read::parse_time;
/// let times = ["1970-01-01T01:00:10+01:00", "10", "10000000000000", "1970-01-01 00:00:10", "Thu Jan 01 00:00:10 +0000 1970"];
/// assert_eq!(times.map(parse_time), [Some(10), Some(10), Some(10_000_000_000), Some(10), Some(10)]);
/// ```
pub fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    let first = text.bytes().next()?;
    if first.is_ascii_alphabetic() {
        return parse_named(text);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'))
        && let Some(seconds) = parse_count(text)
    {
        return Some(seconds);
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(seconds(instant));
    }
    // "2018-10-10 20:19:24 UTC" and "… +0000", as databases write them.
    if let Some((clock, zone)) = text.rsplit_once(' ')
        && (zone.starts_with(['+', '-']) || zone == "UTC" || zone == "Z" || zone == "GMT")
    {
        let zone = if zone.starts_with(['+', '-']) { zone } else { "Z" };
        return format!("{clock}{zone}").parse::<Timestamp>().ok().map(seconds);
    }
    let clock = match text.parse::<DateTime>() {
        Ok(clock) => clock,
        Err(_) => text.parse::<Date>().ok()?.into(),
    };
    clock.to_zoned(TimeZone::UTC).ok().map(|zoned| seconds(zoned.timestamp()))
}

fn seconds(instant: Timestamp) -> i64 {
    instant.as_nanosecond().div_euclid(1_000_000_000) as i64
}

/// A count since 1970 in the unit its size tells; eight digits that make a date are one.
fn parse_count(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.len() == 8
        && digits.len() == text.len()
        && let Ok(date) = text.parse::<Date>()
    {
        return date.to_zoned(TimeZone::UTC).ok().map(|zoned| seconds(zoned.timestamp()));
    }
    let count = match text.parse::<i64>() {
        Ok(whole) => i128::from(whole),
        // Spreadsheets and data frames write counts as 1.6e9 or 1611100000.5.
        Err(_) if text.contains(['.', 'e', 'E']) => {
            text.parse::<f64>().ok().filter(|number| number.abs() < 1e19)?.floor() as i128
        }
        Err(_) => return None,
    };
    let mut unit = 1;
    while (count / unit).abs() >= MOST_SECONDS && unit < 1_000_000_000 {
        unit *= 1000;
    }
    let count = i64::try_from(count.div_euclid(unit)).ok()?;
    Timestamp::from_second(count).ok().map(|_| count)
}

/// Times that begin with the day of the week.
fn parse_named(text: &str) -> Option<i64> {
    // The name of the day says nothing that the date does not, and may be wrong where a file was made by hand.
    let date = text.split_once(' ').map_or(text, |(_, date)| date);
    if let Ok(instant) = strtime::parse("%b %d %H:%M:%S %z %Y", date).and_then(|parts| parts.to_timestamp()) {
        return Some(seconds(instant));
    }
    rfc2822::parse(text).ok().map(|zoned| seconds(zoned.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_kind() {
        let same = [
            "2018-10-10T20:19:24Z",
            "2018-10-10T20:19:24.999Z",
            "2018-10-10T16:19:24-04:00",
            "2018-10-10 20:19:24",
            "2018-10-10T20:19:24",
            "2018-10-10 20:19:24 UTC",
            "2018-10-10 22:19:24 +0200",
            "2018-10-10 20:19:24+00:00",
            "1539202764",
            "1539202764.7",
            "1.539202764e9",
            "1539202764000",
            "1539202764000000",
            "1539202764000000000",
            "Wed Oct 10 20:19:24 +0000 2018",
            "Thu Oct 10 20:19:24 +0000 2018",
            "Wed, 10 Oct 2018 20:19:24 GMT",
            " 2018-10-10t20:19:24z ",
        ];
        for text in same {
            assert_eq!(parse_time(text), Some(1_539_202_764), "{text}");
        }
        assert_eq!(parse_time("2018-10-10"), Some(1_539_129_600));
        assert_eq!(parse_time("20181010"), Some(1_539_129_600));
        assert_eq!(parse_time("-1"), Some(-1));
        assert_eq!(parse_time("1969-12-31T23:59:59.5Z"), Some(-1));
    }

    #[test]
    fn dates_with_the_year_last_need_an_order() {
        let read = |text: &str, order| TimeFormat { order, numeric: false }.parse(text, "time");
        let (us, german) = (Some(DateOrder::MonthFirst), Some(DateOrder::DayFirst));
        let day = parse_time("2024-05-01").unwrap();
        for (text, order) in [
            ("05/01/2024", us),
            ("5/1/2024", us),
            ("5/1/24", us),
            ("01.05.2024", german),
            ("1.5.2024", german),
            ("01-05-2024", german),
            ("1/5/2024", german),
        ] {
            assert_eq!(read(text, order), Ok(day), "{text}");
            assert_eq!(read(text, None).unwrap_err().problem, RowProblem::DateOrder, "{text}");
        }
        for text in ["5/1/2024 2:30 PM", "05/01/2024 14:30", "5/1/2024, 2:30:00 pm", "05/01/2024 16:30:00 +0200"] {
            assert_eq!(read(text, us), Ok(day + 52_200), "{text}");
        }
        assert_eq!(read("01.05.2024, 14:30 Uhr", german), Ok(day + 52_200));
        assert_eq!(read("5/1/2024 12:05 am", us), Ok(day + 300));
        assert_eq!(read("1/1/70", us), Ok(0));
        // Whatever is clear is read in any order.
        assert_eq!(read("2024-05-01", us), Ok(day));
        let wrong = read("31/12/2024", us).unwrap_err();
        assert!(
            wrong.problem == RowProblem::DateOrder && wrong.reason.contains("no date with the month first"),
            "{wrong:?}"
        );
        assert!(is_time("31.12.2024") && !is_time("1.2.3.4") && !is_time("10/20"));
    }

    #[test]
    fn plain_numbers_are_kept_in_millionths() {
        let read = |text: &str| TimeFormat { order: None, numeric: true }.parse(text, "time");
        assert_eq!(["0", "3.25", " -1e-6 "].map(read), [Ok(0), Ok(3_250_000), Ok(-1)]);
        for text in ["2024-05-01", "NaN", "inf", "1e13", ""] {
            assert_eq!(read(text).unwrap_err().problem, RowProblem::NumericTime, "{text}");
        }
    }

    #[test]
    fn what_is_no_time() {
        for text in
            ["", " ", "yesterday", "10/10/2018", "2018-13-01", "NaN", "-", "e", "1e400", "99999999999999999999", "--1"]
        {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
