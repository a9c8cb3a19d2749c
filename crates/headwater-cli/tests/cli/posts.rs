//! Posts to beliefs and follow lists to networks, from outside.

use crate::place::Place;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A table of posts by two users over three days in `posts.csv`.
fn with_posts() -> Place {
    let place = Place::new();
    place.write(
        "posts.csv",
        "user,time,id,is_retweet,lang,score,text\n\
         ann,2024-05-01T10:00:00Z,1,0,en,0.9,Biden's plan\n\
         bob,2024-05-01T11:00:00Z,2,1,en,0.2,\"RT @x: Trump,\nagain\"\n\
         ann,2024-05-01T12:00:00Z,3,0,en,0.5,JoeBiden\n\
         ann,2024-05-03T23:30:00Z,4,0,,0.8,biden\n\
         bob,2024-05-03T01:00:00Z,5,0,de,1.0,Biden und Trump\n\
         bob,2024-05-03T01:00:00Z,5,0,de,1.0,Biden und Trump\n",
    );
    place
}

/// The summary of `beliefs` over `posts.csv` into `b.csv`.
fn summary_of(place: &Place, arguments: &[&str]) -> Value {
    let all = [&["beliefs", "posts.csv", "--out", "b.csv", "--scorer", "column", "--format", "json"], arguments];
    place.json(&all.concat())
}

/// `beliefs` over a file with its scores in a column.
fn beliefs<'a>(posts: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["beliefs", posts, "--out", "b.csv", "--scorer", "column"], more].concat()
}

#[test]
fn posts_become_beliefs() {
    let place = with_posts();
    let summary = summary_of(&place, &["--summary", "s.json"]);
    let odds = |p: f64| (p / (1.0 - p)).ln();
    let back = |ratio: f64| 1.0 / (1.0 + (-ratio).exp());
    let rows: Vec<Vec<String>> =
        place.read("b.csv").lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
    assert_eq!(rows[0], ["time", "agent", "positive", "negative", "posts"]);
    let expected = [
        ("2024-05-01T00:00:00+00:00", "ann", back((odds(0.9) + odds(0.5)) / 2.0), "2"),
        ("2024-05-01T00:00:00+00:00", "bob", 0.2, "1"),
        ("2024-05-03T00:00:00+00:00", "ann", 0.8, "1"),
        ("2024-05-03T00:00:00+00:00", "bob", 1.0 - 1e-4, "1"),
    ];
    assert_eq!(rows.len(), 5);
    for (row, (time, agent, positive, posts)) in rows[1..].iter().zip(expected) {
        assert_eq!((row[0].as_str(), row[1].as_str(), row[4].as_str()), (time, agent, posts));
        assert!((row[2].parse::<f64>().unwrap() - positive).abs() < 1e-12, "{row:?}");
    }
    assert_eq!(summary, serde_json::from_str::<Value>(&place.read("s.json")).unwrap());
    for (key, value) in [("rows", 6), ("rejected", 0), ("posts", 6), ("duplicates", 1), ("kept", 5), ("clipped", 1)] {
        assert_eq!(summary[key], value, "{key}");
    }
    assert_eq!((&summary["users"], &summary["bins"]), (&Value::from(2), &Value::from(3)));
    assert_eq!(summary["by_user"][0]["first"], "2024-05-01T10:00:00+00:00");
    assert!((summary["by_user"][1]["silent_share"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12);
    // The table is for the terminal, the beliefs for the file.
    let output = place.run(&beliefs("posts.csv", &[]));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("Kept 5 of 6 posts (1 duplicate)."));
    let quiet = place.run(&beliefs("posts.csv", &["--quiet"])).stderr;
    assert!(String::from_utf8_lossy(&quiet).starts_with("warning: 1 opinion (20.0%) clipped"));
    assert_eq!(quiet.iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[test]
fn every_selection() {
    let place = with_posts();
    let kept = |arguments: &[&str]| summary_of(&place, arguments)["kept"].as_u64().unwrap();
    place.write("users.txt", "ann\nbob\nzoe\n");
    assert_eq!(kept(&["--topic", "biden OR trump"]), 4);
    assert_eq!(kept(&["--topic", "trump@2024-05-01..2024-05-01", "--topic", "biden@2024-05-02.."]), 3);
    assert_eq!(kept(&["--reposts", "drop"]), 4);
    assert_eq!(kept(&["--from", "2024-05-02"]), 2);
    assert_eq!(kept(&["--to", "2024-05-01"]), 3);
    assert_eq!(kept(&["--from", "2024-05-02", "--timezone", "Asia/Tokyo"]), 2);
    assert_eq!(kept(&["--to", "2024-05-03", "--timezone", "Asia/Tokyo"]), 4, "in Tokyo the last post is of the 4th");
    assert_eq!(kept(&["--lang", "en"]), 4);
    assert_eq!(kept(&["--users", "users.txt"]), 5);
    assert_eq!(summary_of(&place, &["--users", "users.txt"])["absent_users"], 1);
    let error = place.refused(&beliefs("posts.csv", &["--min-posts", "3", "--out", "c.csv"]), 2);
    assert!(error.contains("--out"), "named twice: {error}");
    let error = place.refused(&["beliefs", "posts.csv", "--out", "c.csv", "--scorer", "column", "--min-posts", "3"], 1);
    assert!(error.contains("only one user is left, \"ann\"") && error.contains("hint: lower --min-posts"), "{error}");
}

#[test]
fn bins_zones_and_days_of_23_hours_survive_learning() {
    let place = Place::new();
    let mut posts = "user,time,score,text\n".to_owned();
    // From the day before to the day after the clocks go forward in New York, twice a day.
    for (day, score) in [(13, 0.3), (14, 0.6), (15, 0.7), (16, 0.4)] {
        for (hour, user) in [(6, "ann"), (23, "bob")] {
            posts += &format!("{user},2021-03-{day}T{hour:02}:30:00Z,{score},x\n");
        }
    }
    place.write("posts.csv", posts);
    let summary = summary_of(&place, &["--timezone", "America/New_York"]);
    assert_eq!((&summary["bins"], &summary["silent_share"]), (&Value::from(4), &Value::from(0.0)));
    let text = place.read("b.csv");
    assert!(text.contains("2021-03-14T00:00:00-05:00,ann") && text.contains("2021-03-15T00:00:00-04:00,bob"), "{text}");
    // Read back: four steps without silence.
    place.done(&["beliefs", "posts.csv", "--out", "b.parquet", "--scorer", "column", "--timezone", "America/New_York"]);
    for file in ["b.csv", "b.parquet"] {
        let beliefs = headwater_files::read_beliefs(&place.folder().join(file), false).unwrap();
        assert_eq!(beliefs.panel.steps(), 4);
        assert!(beliefs.panel.is_complete());
        assert!((beliefs.panel.frame(1)[(0, 0)] - (0.6f64 / 0.4).ln()).abs() < 1e-12);
    }
    // Every bin is there when opinions are carried on, so that the step is the bin.
    for (bin, bins) in [("week", 2), ("6h", 16), ("hour", 90)] {
        let summary = summary_of(&place, &["--bin", bin, "--timezone", "America/New_York", "--carry-forward"]);
        assert_eq!(summary["bins"], bins, "{bin}");
        let beliefs = headwater_files::read_beliefs(&place.folder().join("b.csv"), false).unwrap();
        assert_eq!((beliefs.panel.steps(), beliefs.panel.is_complete()), (bins as usize, true), "{bin}");
    }
}

#[test]
fn silence_stays_silence_or_is_carried_forward() {
    let place = with_posts();
    let summary = summary_of(&place, &["--carry-forward"]);
    assert_eq!(summary["carried_forward"], 2);
    let text = place.read("b.csv");
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[2], rows[0].replace("05-01T", "05-02T"));
    let panel = headwater_files::read_beliefs(&place.folder().join("b.csv"), false).unwrap().panel;
    assert!(panel.is_complete());
    summary_of(&place, &[]);
    let silent = headwater_files::read_beliefs(&place.folder().join("b.csv"), false).unwrap().panel;
    assert_eq!(silent.silence(), [0, 0], "with two times the step is the gap");
}

/// Samoa had no 30 December 2011.
#[test]
fn a_day_that_the_clocks_skipped_is_no_bin() {
    let place = Place::new();
    place.write(
        "posts.csv",
        "user,time,text,score\na,2011-12-29T12:00:00-10:00,x,0.3\nb,2011-12-31T12:00:00+14:00,y,0.7\n",
    );
    let zone = ["--timezone", "Pacific/Apia", "--carry-forward"];
    assert_eq!(summary_of(&place, &zone)["bins"], 2);
    assert_eq!(place.read("b.csv").lines().count(), 5);
}

#[test]
fn a_repost_is_one_whichever_column_says_so() {
    let place = Place::new();
    place.write("posts.csv", "user,time,text,score,is_retweet,repost_of\na,2024-05-01,x,0.3,0,55\na,2024-05-01,x,0.3,0,\nb,2024-05-02,y,0.7,0,\n");
    assert_eq!(summary_of(&place, &["--reposts", "drop"])["dropped"]["repost"], 1);
    // Lines of JSON are known by their first bytes, whatever the name.
    place.write(
        "posts.csv",
        "{\"user\":\"a\",\"time\":\"2024-05-01\",\"text\":\"x\",\"score\":0.3,\"is_retweet\":false,\"repost_of\":\"55\"}\n\
         {\"user\":\"a\",\"time\":\"2024-05-01\",\"text\":\"x\",\"score\":0.3}\n\
         {\"user\":\"b\",\"time\":\"2024-05-02\",\"text\":\"y\",\"score\":0.7}\n",
    );
    assert_eq!(summary_of(&place, &["--reposts", "drop"])["dropped"]["repost"], 1);
}

#[test]
fn no_file_is_both_read_and_written() {
    let place = with_posts();
    let before = place.read("posts.csv");
    place.write("e.csv", "source,target\na,b\nb,a\n");
    for arguments in [
        &["beliefs", "posts.csv", "--out", "posts.csv"][..],
        &["beliefs", "posts.csv", "--out", "b.csv", "--summary", "b.csv"],
        &["beliefs", "posts.csv", "--out", "b.csv", "--rejects", "./posts.csv"],
        &["score", "posts.csv", "--out", "posts.csv"],
        &["network", "e.csv", "--hub", "a", "--start", "b", "--out", "n.csv", "--left-out", "n.csv"],
    ] {
        assert!(place.refused(arguments, 2).contains("named twice"), "{arguments:?}");
    }
    assert_eq!(place.read("posts.csv"), before);
    for arguments in [["beliefs", "posts.csv", "--out", "-"], ["score", "posts.csv", "--out", "s.parquet"]] {
        place.refused(&arguments, 2);
    }
}

#[test]
fn three_hypotheses_from_three_columns() {
    let place = Place::new();
    place.write(
        "posts.csv",
        "user,time,negative,neutral,positive\nann,1,0.2,0.3,0.5\nann,2,0.5,0.3,0.2\nbob,3,0,0.5,0.5\n",
    );
    let summary = summary_of(&place, &["--hypotheses", "3"]);
    assert_eq!(summary["clipped"], 1);
    let text = place.read("b.csv");
    assert!(text.starts_with("time,agent,positive,neutral,negative,posts\n"), "{text}");
    let ann: Vec<f64> = text.lines().nth(1).unwrap().split(',').skip(2).map(|cell| cell.parse().unwrap()).collect();
    // Mean log-ratios: positive against neutral log √(10/9), against negative 0.
    let (neutral, negative) = ((0.5f64 / 0.3 * 0.2 / 0.3).sqrt().recip(), 1.0);
    let sum = 1.0 + neutral + negative;
    for (met, wanted) in ann.iter().zip([1.0 / sum, neutral / sum, negative / sum]) {
        assert!((met - wanted).abs() < 1e-12, "{ann:?}");
    }
    let place = with_posts();
    let error = place.refused(&beliefs("posts.csv", &["--hypotheses", "3"]), 1);
    assert!(error.contains("there is no negative, no neutral, no positive"), "{error}");
}

#[test]
fn bad_rows_are_named_counted_and_kept_aside() {
    let place = Place::new();
    let mut posts = "user,time,score,text\n".to_owned();
    (0..300).for_each(|row| posts += &format!("{},{},0.5,x\n", ["ann", "bob"][row % 2], row * 1000));
    posts += "ann,soon,0.5,x\nann,5,7,x\nann,5\n";
    place.write("posts.csv", &posts);
    let output = place.run(&beliefs("posts.csv", &["--rejects", "r.csv"]));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0));
    assert!(errors.contains("warning: posts.csv, line 302: column time: found \"soon\""), "{errors}");
    let rejects = place.read("r.csv");
    assert_eq!(rejects.lines().count(), 4);
    assert!(
        rejects.starts_with("file,line,reason\nposts.csv,302,\"column time: found \"\"soon\"\"; expected"),
        "{rejects}"
    );
    assert!(rejects.contains("posts.csv,304,has 2 cells where the header has 4"), "{rejects}");
    place.done(&beliefs("posts.csv", &["--max-bad", "1%"]));
    std::fs::remove_file(place.folder().join("b.csv")).unwrap();
    for limit in ["0.9%", "2"] {
        let error = place.refused(&beliefs("posts.csv", &["--max-bad", limit]), 1);
        assert!(error.contains("3 of 303 rows cannot be read, which is more than"), "{error}");
        assert!(error.contains("the first: posts.csv, line 302") && error.contains("hint: --rejects"), "{error}");
    }
    let mut many = "user,time,score,text\n".to_owned();
    (0..101).for_each(|_| many += "ann,soon,0.5,x\n");
    (0..50).for_each(|row| many += &format!("bob,{row},0.5,x\nann,{row},0.5,x\n"));
    place.write("many.csv", many);
    assert!(place.refused(&beliefs("many.csv", &[]), 1).contains("101 of 201 rows"));
    assert_eq!(place.run(&beliefs("many.csv", &["--rejects", "m.csv"])).status.code(), Some(1));
    assert_eq!(place.read("m.csv").lines().count(), 102, "what stopped the run is kept");
}

#[test]
fn rows_between_stray_quotes_are_bad_rows() {
    let place = Place::new();
    let mut posts = "user,time,score,text\n".to_owned();
    (0..300).for_each(|row| posts += &format!("{},2024-05-0{},0.5,x\n", ["ann", "bob"][row % 2], row % 9 + 1));
    posts += "ann,2024-05-01,0.5,\"Never\nbob,2024-05-02,0.5,x\nbob,2024-05-02,0.5,\"No way\nann,2024-05-03,0.5,\"two\nlines\"\n";
    place.write("posts.csv", posts);
    let output = place.run(&beliefs("posts.csv", &["--rejects", "r.csv", "--format", "json"]));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("warning: posts.csv, line 302: a quote opened here is closed by one on line 304"),
        "{errors}"
    );
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["rows"], &summary["rejected"], &summary["kept"]), (&304.into(), &3.into(), &301.into()));
    assert_eq!(place.read("r.csv").lines().count(), 4);
}

#[test]
fn bad_input_ends_with_cause_and_cure_and_nothing_written() {
    let place = with_posts();
    place.write("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    place.write("prose.txt", "It was a bright cold day in April,\nand the clocks were striking thirteen.\n");
    place.write("names.csv", "handle,created_at,body,score\nann,2024-05-01,hi,0.5\n");
    place.write("empty.csv", "");
    place.write("header.csv", "user,time,text,score\n");
    place.write("one.csv", "user,time,score\nann,1,0.5\nann,90000,0.5\n");
    let told = |posts: &str, more: &[&str], parts: &[&str]| {
        let error = place.refused(&beliefs(posts, more), 1);
        parts.iter().for_each(|part| assert!(error.contains(part), "{part}: {error}"));
    };
    told("image.png", &[], &["image.png: is not text; expected CSV, JSON or Parquet"]);
    told("prose.txt", &[], &["prose.txt: there is no user, no time", "found the columns It was a bright cold day"]);
    told(
        "names.csv",
        &["--topic", "x"],
        &["found the columns handle, created_at, body, score", "--map user=handle,time=created_at,text=body", "hint: "],
    );
    told("empty.csv", &[], &["empty.csv: is empty"]);
    told("header.csv", &[], &["no post is left of 0 rows", "hint: give a file with posts"]);
    told("absent.csv", &[], &["absent.csv: cannot read", "hint: check the path"]);
    told(".", &[], &[".: is a folder; give files, or a pattern such as './*.csv'"]);
    told("no*.csv", &[], &["no*.csv: matches no file"]);
    let topics = [
        ("(biden OR trump", ["topic, column 1: this parenthesis is never closed", "\n  (biden OR trump\n  ^"]),
        ("white house", ["put AND or OR between them", "\n        ^"]),
    ];
    for (topic, wanted) in topics {
        let arguments = ["beliefs", "posts.csv", "--out", "b.csv", "--scorer", "column", "--topic", topic];
        let errors = place.refused(&arguments, 2);
        assert!(wanted.iter().all(|text| errors.contains(text)), "{errors}");
    }
    told(
        "posts.csv",
        &["--from", "2030-01-01"],
        &["5 outside the dates (posts run from 2024-05-01T10:00:00+00:00 to", "hint: choose dates within the period"],
    );
    told("posts.csv", &["--topic", "zebra"], &["5 about something else", "hint: broaden the topic"]);
    told("one.csv", &[], &["only one user is left, \"ann\"", "hint: "]);
    place.write("other.jsonl", "{\"delete\": {}}\n{\"limit\": {}}\n");
    let error = place.refused(&["beliefs", "other.jsonl", "--preset", "x-v1", "--out", "b.csv"], 1);
    assert!(
        error.contains("no post is left of 2 rows: 2 that hold something else")
            && error.contains("hint: check that --preset")
    );
    place
        .write("v1.jsonl", "{\"created_at\": \"2024-05-01\", \"text\": \"x\", \"user\": {\"screen_name\": \"ann\"}}\n");
    for preset in ["x-v2", "bluesky", "mastodon", "4cat"] {
        let error = place.refused(&["beliefs", "v1.jsonl", "--preset", preset, "--out", "b.csv"], 1);
        let told = "error: v1.jsonl: looks like statuses of X API v1.1 (preset x-v1)\nhint: use --preset x-v1";
        assert!(error.contains(told), "{error}");
    }
    place.write("pretty.json", "[\n  {\n    \"user\": \"ann\"\n  }\n]\n");
    told("pretty.json", &[], &["error: pretty.json: there is no time; found the keys user"]);
    let usage = |more: &[&str], part: &str| {
        let error = place.refused(&beliefs("posts.csv", more), 2);
        assert!(error.contains(part), "{part}: {error}");
    };
    usage(&["--timezone", "Mars/Olympus"], "IANA name such as Europe/Berlin");
    usage(&["--bin", "month"], "expected hour, day, week");
    usage(&["--from", "yesterday"], "expected a date such as 2024-05-01");
    usage(&["--from", "2024-05-03", "--to", "2024-05-01"], "the wrong way round");
    usage(&["--map", "body"], "not of the form field=column");
    usage(&["--max-bad", "some"], "expected a share such as 1%");
    let error = place.refused(&["beliefs", "posts.csv", "--out", "b.npy", "--scorer", "column"], 2);
    assert!(error.contains("hint: use a name that ends in .csv or .parquet"), "{error}");
    let error = place.refused(&["beliefs", "posts.csv", "--out", "no/b.csv", "--scorer", "column"], 1);
    assert!(error.contains("no/b.csv: there is no folder no\nhint: create it with: mkdir -p no"), "{error}");
    let error = place.refused(&["beliefs", "posts.csv", "--out", "$(touch z)/b.csv", "--scorer", "column"], 1);
    assert!(error.contains("mkdir -p '$(touch z)'"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_to_be_full() {
    let place = with_posts();
    let error = place.refused(&["beliefs", "posts.csv", "--out", "/dev/full", "--scorer", "column"], 1);
    assert!(error.contains("/dev/full: cannot write") && error.contains("hint: free disk space"), "{error}");
    place.write("e.csv", "source,target\na,b\nb,a\n");
    let error = place.refused(&["network", "e.csv", "--hub", "a", "--start", "b", "--out", "/dev/full"], 1);
    assert!(error.contains("hint: free disk space"), "{error}");
}

#[test]
fn files_of_every_kind_say_the_same() {
    let place = with_posts();
    place.done(&beliefs("posts.csv", &[]));
    let wanted = place.read("b.csv");
    // The same table as JSON lines, with semicolons and CR LF, compressed, in two files, and in a pipe.
    let rows = table(place.read("posts.csv").as_bytes());
    let object = |row: &Vec<String>| {
        let pairs = rows[0].iter().cloned().zip(row.iter().map(|cell| Value::from(cell.as_str())));
        Value::Object(pairs.collect()).to_string() + "\n"
    };
    place.write("posts.jsonl", rows[1..].iter().map(object).collect::<String>());
    let quote = |row: &Vec<String>| row.iter().map(|cell| format!("\"{cell}\"")).collect::<Vec<_>>().join(";") + "\r\n";
    place.write("semicolons.csv", format!("\u{feff}{}", rows.iter().map(quote).collect::<String>()));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, place.read("posts.jsonl").as_bytes()).unwrap();
    place.write("packed", gzip.finish().unwrap());
    place.write("part-1.csv", rows[..3].iter().map(quote).collect::<String>());
    place.write("part-2.csv", rows[..1].iter().chain(&rows[3..]).map(quote).collect::<String>());
    for file in ["posts.jsonl", "semicolons.csv", "packed", "part-*.csv"] {
        place.done(&beliefs(file, &[]));
        assert_eq!(place.read("b.csv"), wanted, "{file}");
    }
    let piped = assert_cmd::Command::cargo_bin("headwater")
        .unwrap()
        .current_dir(place.folder())
        .args(beliefs("-", &[]))
        .write_stdin(place.read("posts.csv"))
        .output()
        .unwrap();
    assert!(piped.status.success());
    assert_eq!(place.read("b.csv"), wanted);
}

#[test]
fn networks_are_formed_and_everybody_left_out_has_a_reason() {
    let place = with_posts();
    place.write("e.csv", "source,target\nb,c\nb,d\nc,e\ne,f\nh,c\nh,d\nh,e\nd,h\ne,d\nc,d\nd,c\nb,c\nh,g\nd,e\n");
    let arguments = ["network", "e.csv", "--hub", "h", "--start", "b", "--out", "n.csv"];
    let summary: Value =
        serde_json::from_str(&place.done(&[&arguments[..], &["--format", "json", "--left-out", "l.csv"]].concat()))
            .unwrap();
    assert_eq!((&summary["accounts"], &summary["members"], &summary["edges"]), (&7.into(), &4.into(), &9.into()));
    let edges = place.read("n.csv");
    assert!(edges.starts_with("source,target,weight\nc,c,0.3333333333333333\n"), "{edges}");
    assert_eq!(edges.lines().count(), 1 + 9 + 4);
    let mut sums: HashMap<&str, f64> = HashMap::new();
    for line in edges.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        *sums.entry(cells[1]).or_default() += cells[2].parse::<f64>().unwrap();
    }
    assert!(sums.len() == 4 && sums.values().all(|sum| (sum - 1.0).abs() < 1e-12));
    assert_eq!(
        place.read("l.csv"),
        "account,reason\nb,not strongly connected with the hub\nf,not reached from the start account\ng,not reached from the start account\n"
    );
    // Learners and worlds take it as it is.
    place.done(&["simulate", "--graph", "n.csv", "--out", "w", "--steps", "50"]);
    let error = place.refused(&[&arguments[..], &["--min-posts", "1"]].concat(), 2);
    assert!(error.contains("hint: give --posts POSTS"), "{error}");
    std::fs::remove_file(place.folder().join("n.csv")).unwrap();
    let error = place.refused(&[&arguments[..], &["--min-posts", "1", "--posts", "posts.csv"]].concat(), 1);
    assert!(error.contains("\"h\" is strongly connected with nobody"), "{error}");
    let error = place.refused(&["network", "e.csv", "--hub", "H", "--start", "b", "--out", "n.csv"], 1);
    assert!(error.contains("did you mean \"h\"?"), "{error}");
    for (content, part) in [
        ("", "is empty"),
        ("\n", "is empty"),
        ("source,target\n", "holds no edges"),
        ("from,to\n", "line 1: columns are"),
    ] {
        place.write("none.csv", content);
        let error = place.refused(&["network", "none.csv", "--hub", "H", "--start", "b", "--out", "n.csv"], 1);
        assert!(error.contains(part) && error.contains("expected") && error.contains("source,target"), "{error}");
    }
    let error = place.refused(&["network", "posts.csv", "--hub", "H", "--start", "b", "--out", "n.csv"], 1);
    assert!(error.contains("expected source,target"), "{error}");
}

/// A CSV reader of our own, to check the other one: RFC 4180 as a state machine, with commas or semicolons.
fn table(bytes: &[u8]) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), Vec::new(), false);
    let mut bytes = bytes.iter().copied().peekable();
    let text = |cell: &mut Vec<u8>| String::from_utf8(std::mem::take(cell)).unwrap();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if quoted && bytes.peek() == Some(&b'"') => cell.extend(bytes.next()),
            b'"' => quoted = !quoted,
            _ if quoted => cell.push(byte),
            b',' => row.push(text(&mut cell)),
            b'\r' => {}
            b'\n' => {
                row.push(text(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            _ => cell.push(byte),
        }
    }
    if !cell.is_empty() || !row.is_empty() {
        row.push(text(&mut cell));
        rows.push(row);
    }
    rows
}

fn data(name: &str) -> PathBuf {
    let folder =
        std::env::var_os("HEADWATER_DATA").map_or_else(|| PathBuf::from("../../../shared/data"), PathBuf::from);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name);
    assert!(path.exists(), "{} is absent; set HEADWATER_DATA to the folder of third-party data", path.display());
    path
}

/// Days since 1970 of a date, by counting.
fn days(date: &str) -> i64 {
    let part = |range: std::ops::Range<usize>| date[range].parse::<i64>().unwrap();
    let (year, month, day) = (part(0..4), part(5..7), part(8..10));
    let leap = |year: i64| i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
    let years: i64 = (1970..year).map(|year| 365 + leap(year)).sum();
    let lengths = [31, 28 + leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    years + lengths[..month as usize - 1].iter().sum::<i64>() + day - 1
}

/// Days since 1970 in UTC of a time with an offset.
fn day_in_utc(time: &str) -> i64 {
    let number = |range: std::ops::Range<usize>| time[range].parse::<i64>().unwrap();
    let seconds = number(11..13) * 3600 + number(14..16) * 60 + number(17..19);
    let sign = if &time[19..20] == "-" { -1 } else { 1 };
    let offset = sign * (number(20..22) * 3600 + number(23..25) * 60);
    days(time) + (seconds - offset).div_euclid(86400)
}

/// Every row of a real table is read, and daily beliefs of a made-up score are what a plain computation says.
fn real(folder: &str, posts: usize) {
    let name = format!("{folder}/posts.csv");
    let path = data(folder);
    let mut bytes = Vec::new();
    match std::fs::File::open(path.join("posts.csv.gz")) {
        Ok(file) => flate2::read::MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap(),
        Err(_) => std::fs::File::open(path.join("posts.csv")).unwrap().read_to_end(&mut bytes).unwrap(),
    };
    let rows = table(&bytes);
    assert_eq!(rows.len(), posts + 1, "{name}");
    let place = Place::new();
    let score = |row: usize| (row * 7919 % 10_007) as f64 / 10_007.0;
    let column = |name: &str| rows[0].iter().position(|column| column == name).unwrap();
    let (user, time, id) = (column("user"), column("time"), column("id"));
    let mut scored = String::new();
    for (index, row) in rows.iter().enumerate() {
        let last = if index == 0 { "score".to_owned() } else { score(index).to_string() };
        let cells = row.iter().chain([&last]).map(|cell| format!("\"{}\"", cell.replace('"', "\"\"")));
        scored += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    place.write("posts.csv", scored);
    let mut seen = BTreeSet::new();
    let mut sums: BTreeMap<(i64, &str), (f64, u32)> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate().skip(1).filter(|(_, row)| seen.insert(&row[id])) {
        let p = score(index).clamp(1e-4, 1.0 - 1e-4);
        let sum = sums.entry((day_in_utc(&row[time]), &row[user])).or_default();
        *sum = (sum.0 + (p / (1.0 - p)).ln(), sum.1 + 1);
    }
    let summary = summary_of(&place, &[]);
    assert_eq!((&summary["rows"], &summary["rejected"]), (&Value::from(posts), &Value::from(0)), "{name}");
    assert_eq!(summary["duplicates"], posts - seen.len());
    let found = table(place.read("b.csv").as_bytes());
    assert_eq!(found.len() - 1, sums.len());
    for row in &found[1..] {
        let (sum, posts) = sums[&(days(&row[0]), row[1].as_str())];
        let wanted = 1.0 / (1.0 + (-sum / f64::from(posts)).exp());
        assert!((row[2].parse::<f64>().unwrap() - wanted).abs() < 1e-9, "{row:?}: {wanted}");
        assert!((row[3].parse::<f64>().unwrap() - (1.0 - wanted)).abs() < 1e-9);
        assert_eq!(row[4], posts.to_string());
    }
}

#[test]
#[ignore = "needs third-party data: the folder that HEADWATER_DATA names"]
fn house_gopleader_is_read_whole() {
    real("house-biden-gopleader", 12_151);
}

#[test]
#[ignore = "needs third-party data: the folder that HEADWATER_DATA names"]
fn house_pelosi_is_read_whole() {
    real("house-biden-pelosi", 4_057);
}

#[test]
#[ignore = "needs third-party data: the folder that HEADWATER_DATA names"]
fn congress_is_read_whole() {
    real("congress-biden", 127_920);
}

/// The raw texts arrive unchanged: what the reader makes of the gzip file is what the state machine makes of it.
#[test]
#[ignore = "needs third-party data: the folder that HEADWATER_DATA names"]
fn no_text_of_the_congress_is_changed() {
    let folder = data("congress-biden");
    let path = folder.join("posts.csv.gz");
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_end(&mut bytes).unwrap();
    let rows = table(&bytes);
    let mapping = headwater_posts::mapping::ColumnMapping::default();
    let mut posts = headwater_posts::reader::PostReader::open(&[path], mapping).unwrap();
    let mut line = 2;
    for row in &rows[1..] {
        let post = posts.next().unwrap().unwrap().unwrap();
        assert_eq!((&post.user, &post.text, post.id.as_ref()), (&row[0], &row[4], Some(&row[2])));
        assert_eq!((post.repost, post.place.line), (row[3] == "1", line));
        line += 1 + row[4].matches('\n').count() as u64;
    }
    assert!(posts.next().unwrap().is_none());
}

#[test]
#[ignore = "needs third-party data: the folder that HEADWATER_DATA names"]
fn the_house_network_is_formed_again() {
    let folder = data("house-biden-gopleader");
    let place = Place::new();
    let edges = folder.join("edges.csv");
    let arguments =
        ["network", edges.to_str().unwrap(), "--hub", "GOPLeader", "--start", "GOPLeader", "--out", "n.csv"];
    let summary: Value = serde_json::from_str(&place.done(&[&arguments[..], &["--format", "json"]].concat())).unwrap();
    // The folder's README: 28 users, 281 edges, strongly connected.
    assert_eq!((&summary["members"], &summary["edges"]), (&28.into(), &281.into()));
}

/// Dates read in the wrong order are not half read, and numbers on a scale of their own are not silently days of 1970.
#[test]
fn times_of_another_kind_come_with_their_cure() {
    let place = Place::new();
    let days: String =
        (1..=28).map(|day| format!("ann,05/{day:02}/2024,x,0.6\nbob,05/{day:02}/2024,x,0.4\n")).collect();
    place.write("us.csv", format!("user,time,text,score\n{days}"));
    let told = place.refused("beliefs us.csv --scorer column --date-order dmy --out b.csv", 1);
    assert!(told.contains("is no date with the day first") && told.contains("--date-order mdy"), "{told}");
    place.done("beliefs us.csv --scorer column --date-order mdy --out b.csv");
    let time = |step: i32| f64::from(step) * 0.25 - 0.1;
    let rows: String = (0..40).map(|step| format!("ann,{0},x,0.6\nbob,{0},x,0.4\n", time(step))).collect();
    place.write("own.csv", format!("user,time,text,score\n{rows}"));
    let (_, told) = place.both("beliefs own.csv --scorer column --out c.csv");
    assert!(told.contains("1970") && told.contains("--bin 1"), "{told}");
    place.done("beliefs own.csv --scorer column --bin 0.5 --out c.csv");
}
