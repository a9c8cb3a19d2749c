//! The time of a post: a text in, seconds since 1970 out.
//!
//! RFC 3339 with any offset, a date and time without one (UTC), a date (midnight UTC), seconds, milliseconds,
//! microseconds or nanoseconds since 1970, X's `Wed Oct 10 20:19:24 +0000 2018`, and mail's `Wed, 10 Oct 2018 20:19:24 GMT`.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::TimeZone;

/// What a time should have looked like.
pub(crate) const WANTED: &str = "wanted a time such as 2024-05-01T14:30:00-04:00, or seconds since 1970";

/// Counts of seconds are below this until the year 5138; what is larger counts something smaller.
const MOST_SECONDS: i128 = 100_000_000_000;

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
    if let Ok(instant) = strtime::parse("%a %b %d %H:%M:%S %z %Y", text).and_then(|parts| parts.to_timestamp()) {
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
    fn what_is_no_time() {
        for text in
            ["", " ", "yesterday", "10/10/2018", "2018-13-01", "NaN", "-", "e", "1e400", "99999999999999999999", "--1"]
        {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
