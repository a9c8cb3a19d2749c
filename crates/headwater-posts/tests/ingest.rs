//! The whole way through the ingest, as a program that uses the library would go.

use headwater_posts::bin::{BinnedBeliefs, Hypotheses};
use headwater_posts::calendar::{Bin, Calendar};
use headwater_posts::ingest::Ingest;
use headwater_posts::mapping::ColumnMapping;
use headwater_posts::quality::{MaxBad, Quality};
use headwater_posts::read::{Preset, Records};
use headwater_posts::reader::PostReader;
use headwater_posts::select::{Selection, Topic};
use headwater_posts::{Error, Scorer, Sentiment};
use jiff::tz::TimeZone;
use std::io::Cursor;
use std::path::Path;

/// Counts good and bad words.
struct Toy;

impl Scorer for Toy {
    fn score(&self, texts: &[&str]) -> Result<Vec<Sentiment>, headwater_score::Error> {
        let count = |text: &str, word: &str| 0.1 + text.matches(word).count() as f64;
        let one = |text: &&str| {
            let (negative, neutral, positive) = (count(text, "bad"), 0.5, count(text, "good"));
            let sum = negative + neutral + positive;
            Sentiment { negative: negative / sum, neutral: neutral / sum, positive: positive / sum }
        };
        Ok(texts.iter().map(one).collect())
    }
}

fn through(
    content: &[u8],
    mapping: ColumnMapping,
    selection: Selection,
    change: impl Fn(Ingest) -> Ingest,
) -> Result<(BinnedBeliefs, Quality), Error> {
    let records = Records::from_stream(Box::new(Cursor::new(content.to_vec())), Path::new("memory"))?;
    let calendar = Calendar::new(Bin::Day, TimeZone::UTC);
    let mut ingest = change(Ingest::new(selection, Some(Box::new(Toy)), calendar, Hypotheses::Two));
    for batch in PostReader::new(records, mapping).batches() {
        ingest.take(&mut batch?)?;
    }
    ingest.finish_binned()
}

const POSTS: &str = "user,time,text,lang\n\
    ann,2024-05-01,good good biden,en\n\
    bob,2024-05-01,bad biden,\n\
    ann,2024-05-02,schlecht biden,de\n\
    bob,2024-05-02,good weather,en\n\
    eve,2024-05-03,bad biden,en\n";

#[test]
fn texts_are_selected_scored_and_binned() {
    let topics = vec![Topic::parse("biden", &TimeZone::UTC).unwrap()];
    let selection = Selection { topics, languages: vec!["en".into()], ..Selection::default() };
    let (beliefs, quality) = through(POSTS.as_bytes(), ColumnMapping::default(), selection, |ingest| ingest).unwrap();
    let cells: Vec<(&str, i64, f64)> = beliefs
        .cells()
        .map(|cell| (beliefs.user(cell.user), cell.slot.start / 86400 - 19844, cell.ratios[0]))
        .collect();
    let wanted = [("ann", 0, 21f64.ln()), ("bob", 0, -(11f64.ln())), ("eve", 2, -(11f64.ln()))];
    assert_eq!(cells.len(), wanted.len());
    for (met, wanted) in cells.iter().zip(wanted) {
        assert_eq!((met.0, met.1), (wanted.0, wanted.1));
        assert!((met.2 - wanted.2).abs() < 1e-12, "{met:?} {wanted:?}");
    }
    assert_eq!((quality.dropped.language, quality.dropped.topic, quality.unmarked), (1, 1, 1));
    assert_eq!((quality.users, quality.bins, quality.kept, quality.posts), (3, 3, 3, 5));
    assert!((quality.silent_share - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn rare_users_and_bad_rows_end_the_run_only_past_the_limit() {
    let everything = || Selection::default();
    let (_, quality) =
        through(POSTS.as_bytes(), ColumnMapping::default(), everything(), |ingest| ingest.min_posts(2)).unwrap();
    assert_eq!((quality.users, quality.rare_users, quality.dropped.min_posts, quality.kept), (2, 1, 1, 4));
    let broken = format!("{POSTS}ann,never,x,en\n");
    assert_eq!(
        through(broken.as_bytes(), ColumnMapping::default(), everything(), |ingest| ingest).unwrap().1.rejected,
        1
    );
    let strict = |ingest: Ingest| ingest.max_bad(MaxBad::Count(0));
    let error = through(broken.as_bytes(), ColumnMapping::default(), everything(), strict).unwrap_err().to_string();
    assert!(
        error.starts_with("1 of 6 rows cannot be read, which is more than 0; the first: memory, line 7:"),
        "{error}"
    );
    let window = 0..1;
    let nothing = Selection { window, ..Selection::default() };
    let error = through(POSTS.as_bytes(), ColumnMapping::default(), nothing, |ingest| ingest).unwrap_err();
    assert!(error.to_string().contains("5 outside the dates (posts run from 2024-05-01T00:00:00+00:00"), "{error}");
}

#[test]
fn pages_of_a_platform_go_the_same_way() {
    let status = |id: u32, user: &str, text: &str| {
        format!(
            "{{\"id\": \"{id}\", \"created_at\": \"2024-05-0{id}T00:00:00Z\", \"content\": \"<p>{text}</p>\", \"account\": {{\"acct\": \"{user}\"}}}}"
        )
    };
    let lines = format!(
        "[{},{}]\n{}\n{{\"event\": \"delete\"}}\n",
        status(1, "ann", "good"),
        status(2, "bob", "bad"),
        status(1, "ann", "good")
    );
    let mapping = ColumnMapping::default().with_preset(Preset::Mastodon);
    let (_, quality) = through(lines.as_bytes(), mapping, Selection::default(), |ingest| ingest).unwrap();
    assert_eq!((quality.posts, quality.duplicates, quality.other_lines, quality.kept), (3, 1, 1, 2));
}

#[test]
fn a_new_wording_is_no_copy_and_the_first_stands() {
    let event = |operation: &str, user: &str, text: &str| {
        format!(
            "{{\"did\": \"{user}\", \"time_us\": 1725911162329308, \"kind\": \"commit\", \"commit\": {{\"operation\": \"{operation}\", \"collection\": \"app.bsky.feed.post\", \"rkey\": \"k\", \"record\": {{\"text\": \"{text}\"}}}}}}\n"
        )
    };
    let lines = event("create", "a", "good") + &event("update", "a", "bad") + &event("update", "b", "bad");
    let mapping = ColumnMapping::default().with_preset(Preset::Bluesky);
    let (beliefs, quality) = through(lines.as_bytes(), mapping, Selection::default(), |ingest| ingest).unwrap();
    assert_eq!((quality.posts, quality.duplicates, quality.updates, quality.kept), (3, 0, 1, 2));
    let ratios: Vec<f64> = beliefs.cells().map(|cell| cell.ratios[0]).collect();
    assert!(ratios[0] > ratios[1], "{ratios:?}");
}
