//! Topics: what can be read is read the same after printing, and matches without a panic.

#![no_main]

use headwater_posts::Error;
use headwater_posts::query::{Query, Text};
use headwater_posts::select::Topic;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    let _ = Topic::parse(data, &TimeZone::UTC);
    match Query::parse(data) {
        Ok(query) => {
            query.matches(&Text::new(data));
            assert_eq!(Query::parse(&query.to_string()).ok(), Some(query));
        }
        Err(Error::Query { column, .. }) => assert!((1..=data.chars().count() + 1).contains(&column)),
        Err(error) => panic!("{error}"),
    }
});
