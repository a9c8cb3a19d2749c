//! Times in files: step numbers, or RFC 3339 instants (a bare date is midnight UTC).

use headwater::Model;
use headwater::panel::{Times, Unit};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

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

/// A time as people write it: the step number, or RFC 3339 in UTC.
pub fn show_time(times: &Times, step: usize) -> String {
    match times {
        Times::Steps(steps) => steps[step].to_string(),
        Times::Instants(instants) => match Timestamp::from_microsecond(instants[step]) {
            Ok(instant) => instant.to_string(),
            Err(_) => instants[step].to_string(),
        },
    }
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
        assert_eq!(show_time(&Times::Instants(vec![86_400_000_000]), 0), "1970-01-02T00:00:00Z");
    }
}
