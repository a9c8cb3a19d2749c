//! `headwater score` from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

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
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../headwater-posts/tests/fixtures/roberta-tiny")
}

#[test]
fn every_row_is_kept_and_scored() {
    let folder = folder(POSTS);
    let (code, out, errors) = run(folder.path(), &["posts.csv", "--out", "scored.csv", "--explain"]);
    assert_eq!((code, out.as_str()), (0, ""), "{errors}");
    assert!(errors.contains("2 posts marked as not English") && errors.contains("4 posts scored"), "{errors}");
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
        (&["posts.csv", "--out", "o.csv", "--map", "body"], 2, "is not NAME=COLUMN"),
        (&["posts.csv", "--out", "no/such/o.csv"], 1, "cannot write into its folder"),
        (&["posts.csv", "--out", "o.csv", "--scorer", "roberta"], 2, "needs --model"),
        (&["posts.csv", "--out", "o.csv", "--model", "x"], 2, "--model is for --scorer roberta"),
        (&["posts.csv", "--out", "o.csv", "--scorer", "roberta", "--model", "./none"], 1, "is not a folder"),
        (&["posts.csv", "--out", "o.csv", "--scorer", "roberta", "--model", "model"], 1, "config.json: cannot be read"),
        (&["posts.csv", "--out", "o.csv", "--scorer", "roberta", "--model", "m", "--explain"], 2, "has no terms"),
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
    assert!(
        errors.contains("1 unreadable row left out; the first: posts.csv, line 3: has 3 cells where the header has 2"),
        "{errors}"
    );
    assert_eq!(table(&folder.path().join("o.csv")).len(), 3);
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
