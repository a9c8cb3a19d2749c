//! Formats met in the wild: a small file of each, made for the test, becomes beliefs without a flag, or is refused with a cure.

use crate::place::Place;
use serde_json::{Value, json};
use std::io::Write;

/// Reads a file with the built-in scorer: the summary, the users in order, and what the terminal said.
fn read(place: &Place, file: &str, more: &[&str]) -> (Value, Vec<String>, String) {
    let output =
        place.run(&[&["beliefs", file, "--out", "b.csv", "--summary", "summary", "--any-language"], more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{file}: {said}");
    let summary = place.read_json("summary");
    let users = summary["by_user"].as_array().unwrap().iter().map(|user| user["user"].as_str().unwrap().to_owned());
    let users = users.collect();
    (summary, users, said)
}

/// A file of a platform, which is recognised, and read the same with its preset.
fn recognised(place: &Place, file: &str, preset: &str, users: &[&str]) -> Value {
    let (summary, found, said) = read(place, file, &[]);
    assert!(said.contains(&format!("(--preset {preset})")), "{file}: {said}");
    assert_eq!(
        (found.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), &summary["recognised"]),
        (users, &json!([preset])),
        "{file}"
    );
    let beliefs = place.read("b.csv");
    let (_, again, said) = read(place, file, &["--preset", preset]);
    assert!(!said.contains("recognised"), "{said}");
    assert_eq!((again, place.read("b.csv")), (found, beliefs), "{file}");
    // And scored: a row per post.
    place.done(&["score", file, "--out", "scored.csv"]);
    let rows = place.read("scored.csv");
    assert!(rows.lines().next().unwrap().contains("negative,neutral,positive,score"), "{rows}");
    summary
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| value.to_string() + "\n").collect()
}

const TABLE: &str = "user,time,text\nann,2024-05-01,What a great day\nbob,2024-05-02,This is awful\n";

#[test]
fn packed_files() {
    let place = Place::new();
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("posts.csv", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(TABLE.as_bytes()).unwrap();
    place.write("posts.zip", zip.finish().unwrap().into_inner());
    // As Reddit's dumps are made.
    let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
    zstd.window_log(31).unwrap();
    zstd.long_distance_matching(true).unwrap();
    let comments = [("ann", 1_700_000_000, "I love it"), ("bob", 1_700_100_000, "Terrible"), ("[deleted]", 1, "x")];
    let comment = |(author, time, body): (&str, i64, &str)| json!({"author": author, "created_utc": time, "body": body, "id": body});
    zstd.write_all(lines(&comments.map(comment)).as_bytes()).unwrap();
    zstd.flush().unwrap();
    place.write("RC_2023-11.zst", zstd.finish().unwrap());
    assert_eq!(read(&place, "posts.zip", &[]).1, ["ann", "bob"]);
    let summary = recognised(&place, "RC_2023-11.zst", "reddit", &["ann", "bob"]);
    assert_eq!(summary["other_lines"], 1, "an account that is gone");
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(TABLE.as_bytes()).unwrap();
    place.write("posts.csv.bz2", bzip2.finish().unwrap());
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(0)).unwrap();
    xz.write_all(TABLE.as_bytes()).unwrap();
    place.write("posts.csv.xz", xz.finish().unwrap());
    place.write("posts.tar.gz", tar_gz(&[("posts/posts.csv", TABLE), ("posts/readme.md", "nothing")]));
    for file in ["posts.csv.bz2", "posts.csv.xz", "posts.tar.gz"] {
        assert_eq!(read(&place, file, &[]).1, ["ann", "bob"], "{file}");
    }
    place.write("two.tar.gz", tar_gz(&[("a.csv", TABLE), ("b.csv", TABLE)]));
    let told = place.refused(&["beliefs", "two.tar.gz", "--out", "c.csv"], 1);
    assert!(told.contains("is an archive of 2 files (a.csv, b.csv); unpack it, and give those with posts"), "{told}");
}

/// An archive of these files, compressed.
fn tar_gz(files: &[(&str, &str)]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for (name, content) in files {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        let mut block = content.as_bytes().to_vec();
        block.resize(block.len().next_multiple_of(512), 0);
        gzip.write_all(&header).unwrap();
        gzip.write_all(&block).unwrap();
    }
    gzip.write_all(&[0; 1024]).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn encodings() {
    let place = Place::new();
    let table = "user,time,text\nJörg,2024-05-01,What a great café\nbob,2024-05-02,This is awful\n";
    let utf16: Vec<u8> = format!("\u{feff}{table}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin: Vec<u8> = table.chars().map(|character| character as u8).collect();
    for (bytes, name) in [(utf16, "UTF-16"), (latin, "Windows-1252")] {
        place.write("posts.csv", bytes);
        let (summary, users, said) = read(&place, "posts.csv", &[]);
        assert_eq!((users, &summary["decoded"]), (vec!["Jörg".to_owned(), "bob".to_owned()], &json!([name])));
        assert!(said.contains(&format!("warning: the posts are not UTF-8 text; they were read as {name}")), "{said}");
    }
    // Windows-1251: not certain, and no advice to skip it.
    place.write("posts.csv", b"user,time,text\nann,2024-05-01,\xea\xe0\xf8\xe0\nbob,2024-05-02,\xf5\xeb\xe5\xe1\n");
    let told = place.refused(&["beliefs", "posts.csv", "--out", "c.csv"], 1);
    assert!(told.contains("is not UTF-8 text, and its encoding is not certain") && told.contains("iconv -f"), "{told}");
    let mut many = TABLE.to_owned().into_bytes();
    (0..200).for_each(|_| many.extend_from_slice(b"ann,2024-05-01,\xea\xe0\xf8\xe0\n"));
    place.write("posts.csv", many);
    let told = place.refused(&["beliefs", "posts.csv", "--out", "c.csv"], 1);
    assert!(
        told.contains("its encoding is not certain") && told.contains("iconv") && !told.contains("--max-bad"),
        "{told}"
    );
}

#[test]
fn dates_with_the_year_last() {
    let place = Place::new();
    place.write("us.csv", "user,time,text\nann,05/01/2024 2:30 PM,great\nbob,05/13/2024 9:00 AM,awful\n");
    place.write("de.csv", "user;time;text\nann;01.05.2024 14:30;great\nbob;13.05.2024;awful\n");
    for (file, order) in [("us.csv", "mdy"), ("de.csv", "dmy")] {
        let told = place.refused(&["beliefs", file, "--out", "c.csv"], 1);
        assert!(told.contains("does not say whether the day or the month comes first"), "{told}");
        assert!(told.contains("--date-order mdy") && told.contains("--date-order dmy"), "{told}");
        let (summary, ..) = read(&place, file, &["--date-order", order]);
        assert_eq!(summary["first"], "2024-05-01T14:30:00+00:00", "{file}");
    }
    place.refused(&["beliefs", "us.csv", "--out", "c.csv", "--date-order", "ymd"], 2);
}

#[test]
fn scores_and_times_in_units_of_their_own() {
    let place = Place::new();
    let mut posts = "user,time,score\n".to_owned();
    for step in 0..40 {
        let score = f64::from(step * 7 % 20) / 10.0 - 1.0;
        posts += &format!("{},{},{score}\n", ["ann", "bob"][step as usize % 2], f64::from(step) / 4.0);
    }
    place.write("election.csv", posts);
    let arguments = ["beliefs", "election.csv", "--out", "b.csv", "--scorer", "column", "--format", "json"];
    let told = place.refused(&arguments, 1);
    assert!(told.contains("expected a probability from 0 to 1") && told.contains("--score-range -1..1"), "{told}");
    let summary = place.json(&[&arguments[..], &["--score-range", "-1..1", "--bin", "0.5"]].concat());
    assert_eq!((&summary["bins"], &summary["first"], &summary["last"]), (&json!(20), &json!("0"), &json!("9.75")));
    let beliefs = place.read("b.csv");
    assert!(beliefs.starts_with("time,agent,positive,negative,posts\n0,ann,"), "{beliefs}");
    let panel = headwater_files::read_beliefs(&place.path("b.csv"), false).unwrap().panel;
    assert_eq!(panel.steps(), 20);
    let found = place.done(&[
        "discover",
        "election.csv",
        "--scorer",
        "column",
        "--score-range=-1..1",
        "--bin",
        "0.5",
        "--out",
        "found",
        "--bootstrap",
        "0",
        "--null",
        "0",
    ]);
    assert!(found.contains("ann"), "{found}");
    let told = place.refused(&["beliefs", "election.csv", "--out", "c.csv", "--score-range", "-1..1"], 2);
    assert!(told.contains("add --scorer column"), "{told}");
    // Without a bin they would be seconds of 1970.
    let output = place.run(&[&arguments[..], &["--score-range", "-1..1"]].concat());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--bin 1 (or another number)"));
}

#[test]
fn tables_of_4cat() {
    let place = Place::new();
    let sources = [
        (
            "x",
            "id,thread_id,timestamp,unix_timestamp,body,author,language_guess,is_retweet\n1,1,2024-05-01 10:00:00,1714557600,great,ann,en,no\n2,2,2024-05-02 10:00:00,1714644000,awful,bob,en,yes\n",
        ),
        (
            "truth",
            "id,created_at,body,account_id,account_username,thread_id,timestamp\n1,2024-05-01T10:00:00.000Z,<p>great &amp; good</p>,7,ann,1,2024-05-01 10:00:00\n2,2024-05-02T10:00:00.000Z,<p>awful</p>,8,bob,2,2024-05-02 10:00:00\n",
        ),
        (
            "telegram",
            "id,thread_id,chat,author,author_username,author_name,body,timestamp,unix_timestamp,author_forwarded_from_name\nc-1,c,c,111,ann,Ann A,great,2024-05-01 10:00:00,1714557600,\nc-2,c,c,222,bob,,awful,2024-05-02 10:00:00,1714644000,News\nc-3,c,c,222,bob,,,2024-05-02 10:00:00,1714644000,\n",
        ),
        (
            "bluesky",
            "id,thread_id,created_at,author,author_id,body,languages\nat://1,at://1,2024-05-01T10:00:00+00:00,ann,did:1,great,en\nat://2,at://2,2024-05-02T10:00:00+00:00,bob,did:2,awful,N/A\n",
        ),
    ];
    for (source, table) in sources {
        place.write("4cat.csv", table);
        let summary = recognised(&place, "4cat.csv", "4cat", &["ann", "bob"]);
        assert_eq!((&summary["kept"], &summary["rejected"]), (&json!(2), &json!(0)), "{source}");
    }
}

#[test]
fn items_of_zeeschuimer() {
    let place = Place::new();
    let item = |platform: &str, data: Value| json!({"source_platform": platform, "source_platform_url": "https://p", "item_id": "1", "data": data});
    let tweet = |id: &str, name: &str, text: &str| {
        json!({"rest_id": id, "core": {"user_results": {"result": {"core": {"screen_name": name}}}},
        "legacy": {"full_text": text, "created_at": "Wed May 01 10:00:00 +0000 2024", "lang": "en"}})
    };
    let tiktok = |id: &str, name: &str| json!({"id": id, "author": {"uniqueId": name}, "createTime": 1_714_557_600, "desc": "great"});
    let threads = |id: &str, name: &str| json!({"pk": id, "user": {"username": name}, "taken_at": 1_714_557_600, "caption": {"text": "great"}});
    let truth = |id: &str, name: &str| json!({"id": id, "created_at": "2024-05-01T10:00:00Z", "content": "<p>great</p>", "account": {"acct": name}});
    for items in [
        [item("twitter.com", tweet("1", "ann", "great")), item("twitter.com", tweet("2", "bob", "awful"))],
        [item("tiktok.com", tiktok("1", "ann")), item("tiktok.com", tiktok("2", "bob"))],
        [item("threads.net", threads("1", "ann")), item("threads.net", threads("2", "bob"))],
        [item("truthsocial.com", truth("1", "ann")), item("truthsocial.com", truth("2", "bob"))],
    ] {
        place.write("z.ndjson", lines(&items));
        recognised(&place, "z.ndjson", "zeeschuimer", &["ann", "bob"]);
    }
}

#[test]
fn exports_of_telegram() {
    let place = Place::new();
    let message = |id: u32, from: &str, number: &str, text: Value| {
        json!({"id": id, "type": "message", "date": "2024-05-01T12:00:00",
        "date_unixtime": "1714557600", "from": from, "from_id": number, "text": text})
    };
    let chat = |id: u32| {
        json!({"name": "c", "type": "private_group", "id": id, "messages": [
            {"id": 1, "type": "service", "date": "2024-05-01T12:00:00", "actor": "Ann", "actor_id": "user1", "action": "x", "text": ""},
            message(2, "Ann", "user1", json!(["great, ", {"type": "link", "text": "https://a.b"}])),
            message(3, "Bob", "user2", json!("awful")),
            message(4, "Ann", "user3", json!("another Ann")),
        ]})
    };
    place.write("result.json", serde_json::to_string_pretty(&chat(1)).unwrap());
    let summary = recognised(&place, "result.json", "telegram", &["Ann", "Bob", "Ann (user3)"]);
    assert_eq!((&summary["kept"], &summary["other_lines"]), (&json!(3), &json!(1)));
    // Numbers of messages are unique within a chat only.
    place.write("result.json", json!({"about": "x", "chats": {"list": [chat(1), chat(2)]}}).to_string());
    let (summary, ..) = read(&place, "result.json", &[]);
    assert_eq!((&summary["kept"], &summary["duplicates"]), (&json!(6), &json!(0)));
}

#[test]
fn outboxes_of_mastodon() {
    let place = Place::new();
    let outbox = |user: &str, number: u32, items: Vec<Value>| {
        let mut all = vec![
            json!({"id": format!("https://a.b/{number}/activity"), "type": "Create", "actor": format!("https://a.b/users/{user}"),
            "published": "2024-05-01T10:00:00Z", "object": {"id": format!("https://a.b/{number}"), "type": "Note", "content": "<p>great</p>"}}),
        ];
        all.extend(items);
        json!({"@context": "https://www.w3.org/ns/activitystreams", "id": "outbox.json", "type": "OrderedCollection",
            "totalItems": all.len(), "orderedItems": all})
    };
    let boost = |of: &str| {
        json!({"id": format!("https://a.b/boost-of-{of}"), "type": "Announce", "actor": "https://a.b/users/bob",
        "published": "2024-05-02T10:00:00Z", "object": of})
    };
    place.write("1.json", serde_json::to_string_pretty(&outbox("ann", 1, Vec::new())).unwrap());
    place.write("2.json", outbox("bob", 2, vec![boost("https://a.b/1"), boost("https://elsewhere/9")]).to_string());
    let summary = recognised(&place, "?.json", "mastodon", &["ann@a.b", "bob@a.b"]);
    assert_eq!((&summary["kept"], &summary["reposts_without_text"]), (&json!(3), &json!(1)));
    let (_, _, said) = read(&place, "?.json", &[]);
    assert!(said.contains("1 repost left out, because the post they repeat"), "{said}");
    assert_eq!(read(&place, "?.json", &["--reposts", "drop"]).0["dropped"]["repost"], 1);
}

#[test]
fn archives_of_x() {
    let place = Place::new();
    for user in ["ann", "bob"] {
        std::fs::create_dir_all(place.path(&format!("{user}-archive/data"))).unwrap();
        let tweet = |id: &str, text: &str| {
            json!({"tweet": {"id_str": format!("{user}{id}"), "full_text": text, "lang": "en",
            "created_at": "Wed May 01 10:00:00 +0000 2024"}})
        };
        let tweets = json!([tweet("1", "What a great day"), tweet("2", "RT @eve: awful")]);
        let script = format!("window.YTD.tweets.part0 = {}", serde_json::to_string_pretty(&tweets).unwrap());
        place.write(&format!("{user}-archive/data/tweets.js"), script);
    }
    place.write(
        "ann-archive/data/account.js",
        "window.YTD.account.part0 = [ {\"account\": {\"username\": \"Ann_X\"}} ]",
    );
    let summary = recognised(&place, "*/data/tweets.js", "x-archive", &["Ann_X", "bob-archive"]);
    assert_eq!((&summary["reposts_by_text"], &summary["kept"]), (&json!(2), &json!(4)));
    let (summary, _, said) = read(&place, "*/data/tweets.js", &["--reposts", "drop"]);
    assert_eq!(summary["dropped"]["repost"], 2);
    assert!(said.replace('\n', " ").contains("2 posts taken for reposts, because they begin with RT @name."), "{said}");
}

#[test]
fn every_wire_of_bluesky() {
    let place = Place::new();
    let post = |text: &str| json!({"$type": "app.bsky.feed.post", "text": text, "createdAt": "2024-05-01T10:00:00Z", "langs": ["en"]});
    let before = |did: &str, text: &str| {
        json!({"did": did, "time_us": 1_714_557_600_000_000_u64, "type": "com",
        "commit": {"type": "c", "collection": "app.bsky.feed.post", "rkey": "1", "record": post(text)}})
    };
    let v1 = |did: &str, collection: &str, record: Value| {
        json!({"did": did, "time_us": 1_714_557_600_000_000_u64, "kind": "commit",
        "commit": {"operation": "create", "collection": collection, "rkey": "1", "record": record}})
    };
    let v2 = |did: &str, text: &str| {
        json!({"$type": "message", "payload": {"$type": "network.bsky.jetstream.subscribeEvents#commit",
        "seq": 1, "did": did, "time": "2024-05-01T10:00:00Z", "operation": "create", "collection": "app.bsky.feed.post", "rkey": "1",
        "record": post(text)}})
    };
    let users = ["did:plc:a", "did:plc:b"];
    for events in [
        vec![before(users[0], "great"), before(users[1], "awful")],
        vec![
            json!({"did": "x", "kind": "identity", "time_us": 1}),
            v1(users[0], "app.bsky.feed.post", post("great")),
            v1(users[1], "app.bsky.feed.post", post("awful")),
        ],
        vec![v2(users[0], "great"), v2(users[1], "awful")],
    ] {
        place.write("events.jsonl", lines(&events));
        recognised(&place, "events.jsonl", "bluesky", &users);
    }
    // A repost is an opinion of whoever reposts, in the words of the post.
    let repost = |of: &str| json!({"subject": {"uri": of}, "createdAt": "2024-05-02T10:00:00Z"});
    let events = [
        v1(users[0], "app.bsky.feed.post", post("great")),
        v1(users[1], "app.bsky.feed.repost", repost("at://did:plc:a/app.bsky.feed.post/1")),
        v1("did:plc:c", "app.bsky.feed.repost", repost("at://did:plc:z/app.bsky.feed.post/1")),
    ];
    place.write("events.jsonl", lines(&events));
    let summary = recognised(&place, "events.jsonl", "bluesky", &users);
    assert_eq!((&summary["kept"], &summary["reposts_without_text"]), (&json!(2), &json!(1)));
    let view = |did: &str, handle: &str, text: &str| {
        json!({"uri": format!("at://{did}/app.bsky.feed.post/1"), "cid": "c",
        "author": {"did": did, "handle": handle}, "record": post(text), "indexedAt": "2024-05-01T10:00:00Z"})
    };
    let answer = json!({"cursor": "2", "hitsTotal": 2, "posts": [view("did:plc:a", "ann.example", "great"), view("did:plc:b", "bob.example", "awful")]});
    for text in [answer.to_string(), serde_json::to_string_pretty(&answer).unwrap()] {
        place.write("search.json", text);
        recognised(&place, "search.json", "bluesky", &["ann.example", "bob.example"]);
    }
}

#[test]
fn reddit_tables_and_plain_lists() {
    let place = Place::new();
    place.write(
        "reddit.csv",
        "id,author,created_utc,title,selftext\n1,ann,1714557600,Trams,are great\n2,bob,1714644000,Buses,[removed]\n",
    );
    recognised(&place, "reddit.csv", "reddit", &["ann", "bob"]);
    let posts = json!([{"user": "ann", "time": "2024-05-01", "text": "RT @bob: great"}, {"user": "bob", "time": "2024-05-02", "text": "awful"}]);
    place.write("pretty.json", serde_json::to_string_pretty(&posts).unwrap());
    let (summary, users, said) = read(&place, "pretty.json", &[]);
    assert_eq!((users.as_slice(), &summary["reposts_by_text"]), (&["ann".to_owned(), "bob".to_owned()][..], &json!(1)));
    assert!(summary.get("recognised").is_none() && said.contains("1 post taken for reposts"), "{said}");
}
