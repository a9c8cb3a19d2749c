//! Files and folders: one run at a time, results of other posts are kept, pipes, links, limits of the system.

use crate::place::{Place, files};

fn posts(days: u32) -> String {
    let mut text = String::from("user,time,text,score\n");
    for day in 0..days {
        for user in 0..3 {
            let score = 0.2 + f64::from((day * 7 + user * 3 + day * day * user) % 10) / 20.0;
            text += &format!("u{user},{},x,{score}\n", 1_700_000_000 + 86_400 * day);
        }
    }
    text
}

const DISCOVER: &str = "discover posts.csv --scorer column --bootstrap 0 --null 0 -q --out a";

#[test]
fn a_folder_in_use_is_refused_by_name() {
    let place = Place::new();
    place.write("posts.csv", posts(30));
    std::fs::create_dir_all(place.path("a/.headwater")).unwrap();
    place.write("a/.headwater/lock", "4711\n");
    let lock = std::fs::File::options().write(true).open(place.path("a/.headwater/lock")).unwrap();
    lock.lock().unwrap();
    let told = place.refused(DISCOVER, 1);
    assert!(told.contains("another run, process 4711, is writing to this folder") && told.contains("hint: "), "{told}");
    drop(lock);
    place.done(DISCOVER);
    assert!(!place.has("a/.headwater"));
}

#[test]
fn results_of_other_posts_are_replaced_only_by_force() {
    let place = Place::new();
    place.write("posts.csv", posts(30));
    place.done(DISCOVER);
    // Other options on the same posts are the same work.
    place.done(&format!("{DISCOVER} --bin 36h"));
    let before = place.read("a/run.json");
    place.write("posts.csv", posts(40));
    let told = place.refused(DISCOVER, 1);
    assert!(told.contains("a: holds the results of a run on other posts") && told.contains("--force"), "{told}");
    assert_eq!(place.read("a/run.json"), before);
    place.done(&format!("{DISCOVER} --force"));
    assert_ne!(place.read("a/run.json"), before);
    assert!(files(&place.path("a")).iter().all(|name| !name.starts_with('.')));
}

#[test]
fn results_on_another_graph_or_other_users_are_replaced_only_by_force() {
    let place = Place::new();
    place.write("posts.csv", posts(30));
    place.write("a.csv", "source,target\nu0,u1\nu1,u2\n");
    place.write("b.csv", "source,target\nu2,u1\nu1,u0\n");
    place.write("users.txt", "u0\nu1\nu2\n");
    place.write("groups.csv", "agent,group\nu0,x\nu1,x\nu2,y\n");
    place.done(&format!("{DISCOVER} --graph a.csv"));
    let steps = [
        ("--graph b.csv", "a run on another graph;"),
        ("", "a run on a graph, which this run does not have;"),
        ("--graph a.csv --users users.txt", "a run without a list of users;"),
        ("--graph a.csv --groups groups.csv", "a run without groups for the graph test;"),
        ("--graph a.csv --common groups.csv", "a run without groups with trends of their own;"),
    ];
    for (more, wanted) in steps {
        let before = place.read("a/run.json");
        let told = place.refused(&format!("{DISCOVER} {more}"), 1);
        assert!(told.contains(&format!("a: holds the results of {wanted}")) && told.contains("--force"), "{told}");
        assert_eq!(place.read("a/run.json"), before);
    }
    // The same files under other names, and other options.
    place.write("c.csv", place.read("a.csv"));
    place.done(&format!("{DISCOVER} --graph c.csv --bin 36h"));
    place.done(&format!("{DISCOVER} --graph b.csv --force"));
}

#[test]
fn a_refused_run_leaves_no_folder() {
    let place = Place::new();
    place.write("posts.csv", "user,time,text,score\nann,never,x,0.5\n");
    place.refused(DISCOVER, 1);
    assert!(!place.has("a"));
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::process::Command;

    fn shell(place: &Place, script: &str) -> std::process::Output {
        let program = assert_cmd::cargo::cargo_bin("headwater");
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("HEADWATER", program).current_dir(place.folder()).output().unwrap()
    }

    #[test]
    fn results_go_through_pipes() {
        let place = Place::new();
        place.done("simulate --agents 4 --steps 30 --out w --as csv -q");
        place.done("learn w/beliefs.csv --out m.npz -q");
        place.done("learn w/beliefs.csv --out m.json -q");
        for name in ["m.npz", "m.json"] {
            let output = shell(
                &place,
                &format!(
                    "mkfifo pipe-{name} && (timeout 60 cat pipe-{name} > read-{name} &) && \"$HEADWATER\" learn w/beliefs.csv --out pipe-{name} -q && sleep 0.2"
                ),
            );
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(
                std::fs::read(place.path(name)).unwrap(),
                std::fs::read(place.path(&format!("read-{name}"))).unwrap()
            );
        }
    }

    #[test]
    fn results_go_through_pipes_without_a_name() {
        let place = Place::new();
        place.done("simulate --agents 4 --steps 30 --out w --as csv -q");
        place.write("posts.csv", "user,time,text\nann,2024-05-01,good\n");
        let runs = [
            ("learn w/beliefs.csv -q", ">(cat > read; mv read all)"),
            ("score posts.csv -q", "/dev/stdout | cat > read; mv read all"),
        ];
        for (command, pipe) in runs {
            place.done(&format!("{command} --out file"));
            let script = format!(
                "\"$HEADWATER\" {command} --out {pipe}; for i in $(seq 100); do test -e all && exit 0; sleep 0.1; done; exit 1"
            );
            let output = shell(&place, &script);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(place.read("all"), place.read("file"));
            std::fs::remove_file(place.path("all")).unwrap();
        }
    }

    #[test]
    fn files_of_a_finished_run_keep_their_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let place = Place::new();
        place.write("posts.csv", posts(30));
        place.done(DISCOVER);
        let names = files(&place.path("a"));
        names.iter().for_each(|name| place.set_mode(&format!("a/{name}"), 0o600));
        place.done(&format!("{DISCOVER} --bin 36h"));
        // A run that reuses everything writes its record again.
        place.done(&format!("{DISCOVER} --bin 36h"));
        assert_eq!(files(&place.path("a")), names);
        for name in names {
            let mode = std::fs::metadata(place.path(&format!("a/{name}"))).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_limit_of_the_system_is_an_error() {
        let place = Place::new();
        let output = shell(&place, "ulimit -f 8; \"$HEADWATER\" simulate --agents 20 --steps 2000 --out w --as npy -q");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("beliefs.npy: cannot write") && told.contains("hint: the system limits"), "{told}");
        assert!(place.files().iter().all(|name| !name.contains("beliefs")), "{:?}", place.files());
    }

    #[test]
    fn long_names_are_written_and_longer_ones_explained() {
        let place = Place::new();
        place.done("simulate --agents 4 --steps 30 --out w --as csv -q");
        let name = format!("{}.json", "x".repeat(250));
        place.done(&format!("learn w/beliefs.csv --out {name} -q"));
        assert!(place.has(&name));
        let told = place.refused(&format!("learn w/beliefs.csv --out x{name} -q"), 1);
        assert!(told.contains("hint: choose a shorter name"), "{told}");
    }
}
