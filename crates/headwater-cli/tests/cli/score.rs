//! `headwater score` from outside.

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const POSTS: &str = "\u{feff}id,text,score,lang\r\n\
    1,\"I love it,\nreally \"\"love\"\" it\",0.3,en\r\n\
    2,The meeting is on Monday,,de\r\n\
    2,The meeting is on Monday,,de\r\n\
    3,\"This is awful, I hate it\",0.9,en\r\n";

fn folder(posts: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("posts.csv"), posts).unwrap();
    folder
}

/// Exit code, standard output, standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::cargo_bin("headwater").unwrap().current_dir(folder).arg("score").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn table(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
    reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../headwater-score/tests/fixtures/roberta-tiny")
}

#[test]
fn every_row_is_kept_and_scored() {
    let folder = folder(POSTS);
    let (code, out, errors) = run(folder.path(), &["posts.csv", "--out", "scored.csv", "--explain"]);
    assert_eq!((code, out.as_str()), (0, ""), "{errors}");
    assert!(errors.contains("2 posts tagged as not English") && errors.contains("4 scored posts"), "{errors}");
    let rows = table(&folder.path().join("scored.csv"));
    assert_eq!(rows[0].join(","), "id,text,score_in,lang,negative,neutral,positive,score,why");
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[1][..4], ["1", "I love it,\nreally \"love\" it", "0.3", "en"]);
    assert_eq!(rows[2], rows[3]);
    let number = |row: usize, column: usize| rows[row][column].parse::<f64>().unwrap();
    for row in 1..5 {
        let (negative, neutral, positive) = (number(row, 4), number(row, 5), number(row, 6));
        assert!((negative + neutral + positive - 1.0).abs() < 1e-12);
        assert!((number(row, 7) - positive / (negative + positive)).abs() < 1e-12);
    }
    assert!(number(1, 7) > 0.8 && number(4, 7) < 0.2);
    assert!(rows[1][8].contains("love +") && rows[4][8].contains("hate -"), "{} | {}", rows[1][8], rows[4][8]);
}

#[test]
fn a_text_model_scores_too() {
    let folder = folder(POSTS);
    let model = fixture();
    let model = model.to_str().unwrap();
    let (code, _, errors) =
        run(folder.path(), &["posts.csv", "--out", "s.csv", "--scorer", "roberta", "--model", model]);
    assert_eq!(code, 0, "{errors}");
    let rows = table(&folder.path().join("s.csv"));
    assert_eq!((rows.len(), rows[2] == rows[3], rows[1][7] == rows[2][7]), (5, true, false));
}

#[test]
fn bad_input_is_refused_and_leaves_nothing() {
    let folder = folder(POSTS);
    std::fs::write(folder.path().join("empty.csv"), "id,text\n").unwrap();
    std::fs::create_dir(folder.path().join("model")).unwrap();
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    for (arguments, code, part) in [
        (&["none.csv", "--out", "o.csv"][..], 1, "none.csv: cannot read"),
        (&["empty.csv", "--out", "o.csv"], 1, "has no readable post"),
        (&["posts.csv", "--out", "o.csv", "--map", "text=body"], 1, "no column \"body\"; found id, text, score, lang"),
        (&["posts.csv", "--out", "o.csv", "--map", "body"], 2, "not of the form field=column, such as text=body"),
        (&["posts.csv", "--out", "o.csv", "--map", "txt=body"], 2, "there is no field \"txt\""),
        (&["posts.csv", "--out", "o.csv", "--scorer", "column"], 2, "hint: headwater beliefs --scorer column"),
        (&["posts.csv", "--out", "o.csv", "--preset", "x-v1"], 1, "is a table, but x-v1 comes as JSON lines"),
        (&["posts.csv", "--out", "o.csv", "--rejects", "o.csv"], 2, "named twice"),
        (&["posts.csv", "--out", "no/such/o.csv"], 1, "there is no folder no/such"),
        (&["posts.csv", "--out", "o.csv", "--scorer", "roberta"], 2, "needs --model"),
        (&["posts.csv", "--out", "o.csv", "--model", "x"], 2, "--model is an option of --scorer roberta"),
        (&["posts.csv", "--out", "o.csv", "--scorer", "roberta", "--model", "./none"], 1, "is not a folder"),
        (&["posts.csv", "--out", "o.csv", "--scorer", "roberta", "--model", "model"], 1, "config.json: cannot be read"),
        (
            &["posts.csv", "--out", "o.csv", "--scorer", "roberta", "--model", "m", "--explain"],
            2,
            "--scorer builtin only",
        ),
        (
            &[
                "posts.csv",
                "--out",
                "o.csv",
                "--scorer",
                "roberta",
                "--model",
                "a/b",
                "--hub-url",
                "http://127.0.0.1:1",
                "--cache",
                "/proc/none",
            ],
            1,
            "cannot be created",
        ),
    ] {
        let (found, out, errors) = run(folder.path(), arguments);
        assert_eq!((found, out.as_str()), (code, ""), "{arguments:?}\n{errors}");
        assert!(errors.contains(part) && errors.starts_with("error: "), "{arguments:?}\n{errors}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before, "{arguments:?}");
    }
}

#[test]
fn unreadable_rows_are_named_and_left_out() {
    let folder = folder("id,text\n1,good\n2,too,many\n3,bad\n");
    let (code, _, errors) = run(folder.path(), &["posts.csv", "--out", "o.csv"]);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("warning: posts.csv, line 3: has 3 cells where the header has 2"), "{errors}");
    assert!(errors.contains("warning: 1 unreadable row left out"), "{errors}");
    assert_eq!(table(&folder.path().join("o.csv")).len(), 3);
}

#[test]
fn too_many_unreadable_rows_end_it_and_can_be_listed() {
    let folder = folder("id,text\n1,good\n2,too,many\n3,bad\n4\n");
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    for limit in ["1", "49%"] {
        let (code, _, errors) = run(folder.path(), &["posts.csv", "--out", "o.csv", "--max-bad", limit]);
        assert_eq!((code, files()), (1, 1), "{errors}");
        assert!(errors.contains("hint: --rejects FILE lists them all"), "{errors}");
    }
    let (code, _, errors) = run(folder.path(), &["posts.csv", "--out", "o.csv", "--max-bad", "50%"]);
    assert_eq!((code, files()), (0, 2), "{errors}");
    // Whoever is stopped by them wants the list most of all.
    let arguments = ["posts.csv", "--out", "p.csv", "--max-bad", "1", "--rejects", "r.csv"];
    let (code, _, errors) = run(folder.path(), &arguments);
    assert_eq!((code, files()), (1, 3), "{errors}");
    assert!(
        errors.contains("2 of 4 rows cannot be read, which is more than 1; the first: posts.csv, line 3"),
        "{errors}"
    );
    let rows = table(&folder.path().join("r.csv"));
    assert_eq!((rows[0].join(","), rows[2][1].as_str()), ("file,line,reason".to_owned(), "5"));
}

#[test]
fn posts_of_a_platform_become_rows_that_beliefs_takes() {
    let folder = folder("");
    let post = |id: u32, author: u32, text: &str| {
        format!(
            "{{\"id\":\"{id}\",\"author_id\":\"{author}\",\"created_at\":\"2021-01-2{author}T12:00:00.000Z\",\"lang\":\"en\",\"text\":\"{text}\"}}"
        )
    };
    let users = "\"includes\":{\"users\":[{\"id\":\"1\",\"username\":\"ann\"},{\"id\":\"2\",\"username\":\"bob\"}]}";
    let page = format!(
        "{{\"data\":[{},{}],{users}}}\n{{\"meta\":{{}}}}\n{}\n{{\"id\":\"9\",\"author_id\":\"1\",\"created_at\":\"2021-01-21\"}}\n",
        post(7, 1, "I love it"),
        post(8, 2, "awful"),
        post(8, 2, "awful")
    );
    std::fs::write(folder.path().join("p.jsonl"), &page).unwrap();
    let (code, _, errors) = run(folder.path(), &["p.jsonl", "--preset", "x-v2", "--out", "o.csv"]);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("2 lines without a post"), "a page without results, and a post without words: {errors}");
    let rows = table(&folder.path().join("o.csv"));
    assert_eq!(rows[0].join(","), "id,user,time,lang,repost,text,negative,neutral,positive,score");
    assert_eq!(rows[1][..6], ["7", "ann", "2021-01-21T12:00:00.000Z", "en", "0", "I love it"]);
    assert_eq!((rows.len(), rows[2][1].as_str(), rows[3][1].as_str()), (4, "bob", "2"), "copies are kept");
    let beliefs = ["beliefs", "o.csv", "--scorer", "column", "--out", "b.csv"];
    let output = Command::cargo_bin("headwater").unwrap().current_dir(folder.path()).args(beliefs).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(table(&folder.path().join("b.csv")).len(), 3);

    // The wrong preset is said to be wrong; 4CAT's table keeps its columns.
    let (code, _, errors) = run(folder.path(), &["p.jsonl", "--preset", "mastodon", "--out", "n.csv"]);
    assert!(code == 1 && errors.contains("looks like posts of X API v2 (preset x-v2)"), "{errors}");
    assert!(errors.contains("hint: check that --preset names the platform"), "{errors}");
    std::fs::write(
        folder.path().join("c.csv"),
        "id,author,timestamp,body,score\n1,ann,2018-10-10 20:19:24,I love it,5\n",
    )
    .unwrap();
    let (code, _, errors) = run(folder.path(), &["c.csv", "--preset", "4cat", "--out", "c4.csv"]);
    assert_eq!(code, 0, "{errors}");
    let rows = table(&folder.path().join("c4.csv"));
    assert_eq!(rows[0].join(","), "id,author,timestamp,body,score_in,negative,neutral,positive,score");
}

#[test]
fn only_scorers_that_read_are_offered() {
    let folder = folder(POSTS);
    let (code, help, _) = run(folder.path(), &["--help"]);
    assert!(
        code == 0 && help.contains("roberta") && !help.contains("column:") && !help.contains("Not offered"),
        "{help}"
    );
}

#[test]
fn lines_of_json_keep_all_their_keys() {
    let folder = folder("");
    let lines = "{\"id\":1,\"post\":{\"body\":\"I love it\"}}\n{\"id\":2,\"post\":{\"body\":\"awful\"},\"score\":0.4}\n{\"id\":3}\n";
    std::fs::write(folder.path().join("p.jsonl"), lines).unwrap();
    let (code, _, errors) = run(folder.path(), &["p.jsonl", "--map", "text=post.body", "--out", "o.csv"]);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("p.jsonl, line 3: there is no text in \"post.body\""), "{errors}");
    let rows = table(&folder.path().join("o.csv"));
    assert_eq!(rows[0].join(","), "id,post,score_in,negative,neutral,positive,score");
    assert_eq!(rows[2][..3], ["2", "{\"body\":\"awful\"}", "0.4"]);
    assert_eq!((rows.len(), rows[1][2].as_str()), (3, ""));
}

#[test]
fn a_line_may_hold_a_list_of_posts() {
    let folder = folder("[{\"text\":\"good\"},{\"text\":\"bad\",\"id\":7}]\n");
    let (code, _, errors) = run(folder.path(), &["posts.csv", "--out", "o.csv"]);
    assert_eq!(code, 0, "{errors}");
    let rows = table(&folder.path().join("o.csv"));
    assert_eq!((rows[0].join(","), rows.len()), ("text,id,negative,neutral,positive,score".to_owned(), 3));
}

#[test]
fn reasons_sum_to_the_score() {
    let folder = folder("id,text\n1,\"This is not good at all, but the food was great and the staff kind!!!\"\n");
    run(folder.path(), &["posts.csv", "--out", "o.csv", "--explain"]);
    let rows = table(&folder.path().join("o.csv"));
    let number = |column: usize| rows[1][column].parse::<f64>().unwrap();
    let terms = rows[1][6].split("; ").map(|term| term.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
    // Each of up to nine terms is rounded to two decimals.
    assert!((terms.sum::<f64>() - (number(4) / number(2)).ln()).abs() < 0.05, "{}", rows[1][6]);
}
