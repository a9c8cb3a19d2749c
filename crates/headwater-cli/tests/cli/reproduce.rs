//! `reproduce` from outside: what it prints, and how it continues after an interrupt.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

fn headwater(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("headwater"));
    command.current_dir(folder).args(arguments.split_whitespace());
    command
}

fn done(folder: &Path, arguments: &str) -> Output {
    let output = headwater(folder, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn headline(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join(name).join("headline.json")).unwrap()).unwrap()
}

#[test]
fn results_are_printed_in_every_format_and_names_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let output = done(folder.path(), "reproduce twitter sentiment-table --quick --out p --data nowhere");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "warning: twitter needs the authors' Twitter series, and nowhere has no epfl-twitter: left out (--data names the folder)\nsentiment-table: Sentiment of sample posts\nthe page is p/replication.md\n"
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("experiment") && text.contains("partly reproduced"), "{text}");

    let arguments = "reproduce sentiment-table --quick --out p --data nowhere --page docs.md --format";
    let output = done(folder.path(), &format!("{arguments} json"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "sentiment-table: finished earlier\nthe page is docs.md\n");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed[0], headline(&folder.path().join("p"), "sentiment-table"));
    assert!(folder.path().join("docs/sentiment-table.svg").is_file());
    let output = done(folder.path(), &format!("{arguments} csv --quiet"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("experiment,claim,status,authors,formula,released,ours,explanation\n"), "{text}");
    assert_eq!((text.matches("\nsentiment-table,").count(), output.stderr.len()), (3, 0));

    let output = headwater(folder.path(), "reproduce figure-9 --out p").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("topology-drift"));
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = headwater(folder.path(), "reproduce theory --out file/p").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.starts_with("error: file/p: cannot create the folder: "), "{errors}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "reproduce truth-rate --quick --data nowhere --threads 1 --out";
    let mut child = headwater(folder.path(), &format!("{arguments} cut")).spawn().unwrap();
    let parts = folder.path().join("cut/truth-rate/parts");
    let finished = || std::fs::read_dir(&parts).map_or(0, |entries| entries.count());
    while finished() < 2 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!folder.path().join("cut/truth-rate/headline.json").exists());
    let first = parts.join("3inf-seed-1.json");
    // A job that is kept is not done again: its result may be changed under our hands, and the change shows.
    let mut kept: Value = serde_json::from_str(&std::fs::read_to_string(&first).unwrap()).unwrap();
    kept["result"]["predicted"] = 0.125.into();
    std::fs::write(&first, kept.to_string()).unwrap();
    let output = done(folder.path(), &format!("{arguments} cut"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.starts_with("warning: nowhere has no epfl-synthetic: "), "{errors}");
    assert!(!parts.exists());
    let found = headline(&folder.path().join("cut"), "truth-rate");
    assert_eq!(found["numbers"]["models"]["3inf"]["predicted"], 0.125);
    // All else is as if it had never stopped.
    done(folder.path(), &format!("{arguments} whole"));
    let whole = headline(&folder.path().join("whole"), "truth-rate");
    assert_eq!(found["numbers"]["models"]["3inf"]["rate"], whole["numbers"]["models"]["3inf"]["rate"]);
    assert_eq!(found["numbers"]["models"]["1inf_less"], whole["numbers"]["models"]["1inf_less"]);
}
