//! Times in files: step numbers, or RFC 3339 instants (a bare date is midnight UTC).

use headwater::Model;
use headwater::panel::{Times, Unit};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

/// Reads a time and says which kind it is.
pub(crate) fn parse_time(text: &str) -> Option<(Unit, i64)> {
    let text = text.trim();
    if let Ok(step) = text.parse::<i64>() {
        return Some((Unit::Steps, step));
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some((Unit::Microseconds, instant.as_microsecond()));
    }
    let midnight = text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some((Unit::Microseconds, midnight.timestamp().as_microsecond()))
}

/// A time in full: the step number, or RFC 3339 on the local clock.
pub fn show_time(times: &Times, step: usize) -> String {
    match times {
        Times::Steps(steps) => steps[step].to_string(),
        Times::Instants { utc, offsets } => match (Timestamp::from_microsecond(utc[step]), offsets[step]) {
            (Ok(instant), 0) => instant.to_string(),
            (Ok(instant), offset) => match Offset::from_seconds(offset) {
                Ok(offset) => instant.display_with_offset(offset).to_string(),
                Err(_) => instant.to_string(),
            },
            (Err(_), _) => utc[step].to_string(),
        },
    }
}

/// A time for people: the step number, the local date where every step starts at midnight, otherwise local date and time.
pub fn show_date(times: &Times, step: usize) -> String {
    let Times::Instants { utc, offsets } = times else { return show_time(times, step) };
    let local = |step: usize| local(utc[step], offsets[step]);
    let Some(shown) = local(step) else { return show_time(times, step) };
    if (0..utc.len()).all(|step| local(step).is_some_and(|time| time.time() == Time::midnight())) {
        return shown.date().to_string();
    }
    shown.strftime("%Y-%m-%d %H:%M").to_string()
}

/// Every `stride`-th time for people, from the first on, as [`show_date`] writes it.
pub fn show_dates(times: &Times, stride: usize) -> Vec<String> {
    let steps = (0..times.raw().len()).step_by(stride.max(1));
    let Times::Instants { utc, offsets } = times else { return steps.map(|step| show_time(times, step)).collect() };
    let days =
        (0..utc.len()).all(|step| local(utc[step], offsets[step]).is_some_and(|time| time.time() == Time::midnight()));
    let shown = |step: usize| match local(utc[step], offsets[step]) {
        Some(time) if days => time.date().to_string(),
        Some(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        None => show_time(times, step),
    };
    steps.map(shown).collect()
}

/// The zone of the local clock as far as the times tell: UTC, or the offsets from it in order. `None` for step numbers.
pub fn show_offsets(times: &Times) -> Option<String> {
    let Times::Instants { offsets, .. } = times else { return None };
    let mut met: Vec<i32> = Vec::new();
    offsets.iter().for_each(|offset| {
        if !met.contains(offset) {
            met.push(*offset)
        }
    });
    let name = |offset: &i32| match *offset {
        0 => "UTC".to_owned(),
        seconds => {
            let (sign, size) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
            format!("UTC{sign}{:02}:{:02}", size / 3600, size / 60 % 60)
        }
    };
    Some(met.iter().map(name).collect::<Vec<_>>().join(", "))
}

/// Seconds that a clock is ahead of UTC by the end of an RFC 3339 time: `+01:00`, `-05:00`, otherwise 0.
pub(crate) fn written_offset(text: &str) -> i32 {
    let text = text.trim();
    let Some(end) = text.len().checked_sub(6).and_then(|start| text.get(start..)) else { return 0 };
    let sign = match end.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return 0,
    };
    let clock = end[1..].split_once(':').and_then(|(h, m)| Some((h.parse::<i32>().ok()?, m.parse::<i32>().ok()?)));
    clock.map_or(0, |(hours, minutes)| sign * (3600 * hours + 60 * minutes))
}

fn local(utc: i64, offset: i32) -> Option<DateTime> {
    Some(Offset::from_seconds(offset).ok()?.to_datetime(Timestamp::from_microsecond(utc).ok()?))
}

/// Gives the steps that a tracked model speaks of the times they had.
pub fn name_times(model: &mut Model, times: &Times) {
    let track = &model.track;
    let steps = track.changes.iter().map(|change| change.step).chain(track.history.iter().map(|past| past.step));
    model.track.times = steps.map(|step| (step, show_time(times, step))).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_steps_or_instants() {
        assert_eq!(parse_time(" 12"), Some((Unit::Steps, 12)));
        assert_eq!(parse_time("1970-01-01T01:00:00+01:00"), Some((Unit::Microseconds, 0)));
        assert_eq!(parse_time("1970-01-02"), Some((Unit::Microseconds, 86_400_000_000)));
        assert_eq!(parse_time("yesterday"), None);
        assert_eq!(show_time(&Times::utc(vec![86_400_000_000]), 0), "1970-01-02T00:00:00Z");
        let days = Times::Instants { utc: vec![82_800_000_000, 165_600_000_000], offsets: vec![3600, 7200] };
        assert_eq!(
            (show_time(&days, 0), show_date(&days, 0)),
            ("1970-01-02T00:00:00+01:00".into(), "1970-01-02".into())
        );
        assert_eq!((show_dates(&days, 1).len(), show_dates(&days, 2)), (2, vec!["1970-01-02".to_owned()]));
        assert_eq!(show_offsets(&days).as_deref(), Some("UTC+01:00, UTC+02:00"));
        let offsets =
            ["2024-03-01T00:00:00+01:00", "2024-03-01T00:00:00-05:30", "2024-03-01T00:00:00Z", "2024-03-01", "7"];
        assert_eq!(offsets.map(written_offset), [3600, -19_800, 0, 0, 0]);
        let hours = Times::Instants { utc: vec![82_800_000_000, 165_600_000_000], offsets: vec![3600, 3600] };
        assert_eq!(
            (show_date(&hours, 0), show_date(&hours, 1)),
            ("1970-01-02 00:00".into(), "1970-01-02 23:00".into())
        );
    }
}
