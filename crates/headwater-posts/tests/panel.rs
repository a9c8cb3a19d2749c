//! The panel in memory is the panel that the written file reads as, where the file shows how long a bin is.

use headwater_files::read_beliefs;
use headwater_posts::bin::Hypotheses;
use headwater_posts::calendar::{Bin, Calendar};
use headwater_posts::given::Given;
use headwater_posts::ingest::Ingest;
use headwater_posts::post::Post;
use headwater_posts::read::RecordPlace;
use headwater_posts::reader::PostBatch;
use headwater_posts::select::Selection;
use headwater_posts::{PostOptions, PostsInput, ScorerChoice, Sentiment, bin_posts, read_posts};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

fn post(user: &str, time: i64, [negative, neutral, positive]: [f64; 3]) -> Post {
    let sum = negative + neutral + positive;
    Post {
        id: None,
        user: user.to_owned(),
        time,
        text: String::new(),
        lang: None,
        repost: false,
        update: false,
        given: Some(Given::Classes(Sentiment {
            negative: negative / sum,
            neutral: neutral / sum,
            positive: positive / sum,
        })),
        place: RecordPlace { file: Arc::from(Path::new("memory")), line: 1 },
    }
}

/// Names that need quotes, too.
const USERS: [&str; 5] = ["ann", "bob, the \"builder\"", "Zoë", "d", "\u{1f600}"];

/// By how much clocks change, in microseconds.
const HOUR: i64 = 3_600_000_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_file_agree(
        posts in prop::collection::vec((0usize..5, 0i64..60 * 86_400, [0.0f64..1.0, 0.01f64..1.0, 0.0f64..1.0]), 2..80),
        bin in prop::sample::select(vec!["hour", "6h", "day", "36h", "week"]),
        zone in prop::sample::select(vec!["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
        three: bool,
        carry_forward: bool,
        csv: bool,
    ) {
        // Around the days on which clocks change in March.
        let first = 1_614_556_800;
        let bin: Bin = bin.parse().unwrap();
        let calendar = Calendar::new(bin, TimeZone::get(zone).unwrap());
        let hypotheses = if three { Hypotheses::Three } else { Hypotheses::Two };
        let ingest = || {
            let batch = posts.iter().map(|(user, time, classes)| post(USERS[*user], first + time, *classes));
            let mut ingest = Ingest::new(Selection::default(), None, calendar.clone(), hypotheses)
                .carry_forward(carry_forward);
            ingest.take(&mut PostBatch { posts: batch.collect(), ..PostBatch::default() }).unwrap();
            ingest
        };
        // One user is no network.
        let Ok((beliefs, quality)) = ingest().finish_binned() else { return Ok(()) };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(if csv { "beliefs.csv" } else { "beliefs.parquet" });
        beliefs.write(&path, headwater_files::CsvText::default()).unwrap().commit().unwrap();
        let read = read_beliefs(&path, false);
        let (panel, _) = ingest().finish().unwrap();
        prop_assert_eq!(panel.steps() as u64, quality.bins);
        // A file has no bins, only times: the step is their median distance.
        let mut spoken: Vec<i64> = beliefs.cells().map(|cell| cell.slot.number).collect();
        spoken.dedup();
        let mut distances: Vec<i64> = spoken.windows(2).map(|pair| pair[1] - pair[0]).collect();
        distances.sort_unstable();
        // One bin is longer or shorter where clocks change: it must not be the median itself.
        let middle = (distances.len().max(1) - 1) / 2;
        let usual = |place: usize| distances.get(place) == Some(&1);
        if carry_forward || (usual(middle) && usual(middle + 1) && (middle == 0 || usual(middle - 1))) {
            let read = read.unwrap().panel;
            prop_assert_eq!(panel.roster(), read.roster());
            prop_assert_eq!(panel.steps(), read.steps());
            for step in 0..panel.steps() {
                let apart = panel.times().raw()[step] - read.times().raw()[step];
                prop_assert!(apart.abs() <= HOUR, "{}", apart);
                for agent in 0..panel.agents() {
                    prop_assert_eq!(panel.posts(step, agent), read.posts(step, agent));
                }
            }
            for (here, there) in panel.cells().iter().zip(read.cells()) {
                prop_assert!((here - there).abs() < 1e-12, "{} {}", here, there);
            }
        }
        // The cells are the means, bit for bit.
        let mut rows = 0;
        beliefs
            .visit(|cell| {
                rows += 1;
                let agent = panel.roster().agents().iter().position(|name| name == beliefs.user(cell.user)).unwrap();
                let found = (0..panel.steps()).any(|step| {
                    let ratio = |ratio: usize| panel.cells()[(step * panel.ratios() + ratio) * panel.agents() + agent];
                    panel.posts(step, agent) == cell.posts
                        && (0..panel.ratios()).all(|at| ratio(at).to_bits() == cell.ratios[at].to_bits())
                });
                if found { Ok(()) } else { Err(format!("{cell:?}")) }
            })
            .unwrap();
        prop_assert_eq!(rows, beliefs.rows());
        prop_assert_eq!(quality.beliefs + quality.carried_forward, rows);
    }
}

#[test]
fn tables_in_memory_are_read_as_files_are() {
    let text = "user,time,score\nann,2024-05-01,0.9\nbob,2024-05-01,0.2\nann,2024-05-03,0.5\nbob,never,0.1\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("posts.csv");
    std::fs::write(&path, text).unwrap();
    let cells = |column: usize| text.lines().skip(1).map(move |line| line.split(',').nth(column).unwrap().to_owned());
    let column = |column: usize| -> arrow_array::ArrayRef {
        Arc::new(arrow_array::StringArray::from(cells(column).collect::<Vec<_>>()))
    };
    let columns = [("user", column(0)), ("time", column(1)), ("score", column(2))];
    let batch = arrow_array::RecordBatch::try_from_iter(columns).unwrap();
    let options = PostOptions { scorer: ScorerChoice::Column, ..PostOptions::default() };
    let (panel, quality) = read_posts(&path.as_path().into(), &options, None, &mut ()).unwrap();
    let (memory, counted) = read_posts(&PostsInput::from(vec![batch]), &options, None, &mut ()).unwrap();
    assert_eq!((&panel, &quality), (&memory, &counted));
    assert_eq!((panel.steps(), quality.rejected, quality.silent_share), (3, 1, 0.5));
    assert_eq!(panel.cells()[0], 9f64.ln());
    let (beliefs, _) = bin_posts(&path.as_path().into(), &options, None, &mut ()).unwrap();
    assert!(!beliefs.is_constant());
}
