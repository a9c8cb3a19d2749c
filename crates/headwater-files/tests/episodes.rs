//! Beliefs of several episodes on disk: the column, lists of files, values, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater::Panel;
use headwater_files::{
    BeliefNumbers, BeliefsFormat, BeliefsRows, BeliefsWriter, CsvText, Error, LoadedBeliefs, read_beliefs,
    read_beliefs_of, show_time,
};
use std::path::{Path, PathBuf};

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

const TWO: &str = "episode,time,agent,yes,no,posts\ntax,0,ann,0.5,0.5,1\nwar,0,bob,0.25,0.75,2\ntax,1,bob,0.4,0.6,1\nwar,2,ann,0.2,0.8,3\nwar,0,ann,0.5,0.5,1\ntax,0,cem,0.9,0.1,1\n";

#[test]
fn an_episode_column_makes_episodes() {
    let folder = tempfile::tempdir().unwrap();
    let panel = read_beliefs(&written(folder.path(), "b.csv", TWO), false).unwrap().panel;
    assert_eq!(panel.roster().agents(), ["ann", "bob", "cem"]);
    assert_eq!(panel.roster().hypotheses(), ["yes", "no"]);
    let episodes = panel.episodes();
    assert_eq!((episodes.names().unwrap(), episodes.range(1)), (&["tax".to_owned(), "war".to_owned()][..], 2..5));
    assert_eq!((panel.posts(2, 1), panel.posts(3, 0), panel.posts(4, 0)), (2, 0, 3));
    assert_eq!(panel.frame(2)[(1, 0)], (0.25f64 / 0.75).ln());
    assert_eq!(panel.absences(), [(2, 1)]);
    // The same numbers without the column are one conversation with two beliefs at one time.
    let flat: String = TWO.lines().map(|line| line.split_once(',').unwrap().1.to_owned() + "\n").collect();
    let error = read_beliefs(&written(folder.path(), "flat.csv", &flat), false).unwrap_err().to_string();
    assert!(error.contains("agent \"ann\" already has a belief at time 0; keep one"), "{error}");
}

/// The rows of a panel, in both formats of tables.
fn rewritten(panel: &Panel, path: &Path) -> Panel {
    let mut rows = BeliefsRows::with_episodes(path, &["yes", "no"], CsvText::Neutralised).unwrap();
    for step in 0..panel.steps() {
        let episode = panel.episodes().label(panel.episodes().at(step));
        for agent in (0..panel.agents()).filter(|&agent| panel.posts(step, agent) > 0) {
            let time = panel.times().raw()[step].to_string();
            let ratio = [panel.frame(step)[(agent, 0)]];
            rows.write_in(&episode, &time, &panel.roster().agents()[agent], &ratio, panel.posts(step, agent)).unwrap();
        }
    }
    rows.finish().unwrap().commit().unwrap();
    read_beliefs(path, false).unwrap().panel
}

#[test]
fn writers_keep_episodes() {
    let folder = tempfile::tempdir().unwrap();
    let panel = read_beliefs(&written(folder.path(), "b.csv", TWO), false).unwrap().panel;
    for name in ["again.csv", "again.parquet"] {
        let again = rewritten(&panel, &folder.path().join(name));
        assert_eq!((again.episodes(), again.times()), (panel.episodes(), panel.times()), "{name}");
        for step in 0..panel.steps() {
            for name in panel.roster().agents() {
                let [here, there] = [&panel, &again].map(|panel| panel.roster().agent(name).unwrap());
                assert_eq!(panel.posts(step, here), again.posts(step, there));
                assert!((panel.frame(step)[(here, 0)] - again.frame(step)[(there, 0)]).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn a_list_of_files_is_a_list_of_episodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, steps, shift) in [("a.npy", 3, 0.1), ("b.npy", 2, 0.2)] {
        let roster = headwater::Roster::numbered(2, 2).unwrap();
        let mut file = BeliefsWriter::create(&path(name), BeliefsFormat::Npy, &roster, steps, true).unwrap();
        (0..steps).for_each(|step| file.write(step as i64, &[shift, 1.0 + step as f64 + shift], &[]).unwrap());
        file.finish().unwrap().commit().unwrap();
    }
    let read = |names: &[&str]| -> Result<LoadedBeliefs, Error> {
        read_beliefs_of(&names.iter().map(|name| path(name)).collect::<Vec<_>>(), BeliefNumbers::LogRatios)
    };
    let both = read(&["a.npy", "b.npy"]).unwrap();
    assert_eq!((both.panel.episodes().names().unwrap(), both.cells), (&["a".to_owned(), "b".to_owned()][..], 10));
    assert_eq!((both.panel.steps(), both.panel.frame(4)[(1, 0)]), (5, 2.2));
    assert_eq!(show_time(both.panel.times(), 3), "0");
    let one = read(&["a.npy"]).unwrap().panel;
    assert!(one.episodes().names().is_none(), "one file is no list");
    // Names must differ: then paths do.
    let twice = read(&["a.npy", "a.npy"]).unwrap_err().to_string();
    assert!(twice.contains("is named twice"), "{twice}");
    written(folder.path(), "c.csv", "episode,time,agent,h1\nx,0,0,1\nx,1,1,1\n");
    let mixed = read(&["a.npy", "c.csv"]).unwrap_err().to_string();
    assert!(mixed.contains("c.csv") && mixed.contains("has a column episode; give it alone"), "{mixed}");
    written(folder.path(), "d.csv", "time,agent,h1,h2\n0,0,1,1\n1,1,1,1\n");
    let other = read(&["a.npy", "d.csv"]).unwrap_err().to_string();
    assert!(other.contains("hypotheses of an episode"), "{other}");
    assert!(read(&[]).is_err());
}

#[test]
fn values_are_opinions_on_any_scale() {
    let folder = tempfile::tempdir().unwrap();
    let text = "episode,time,agent,value\nq1,0,a,10\nq1,0,b,20\nq1,0,c,40\nq1,1,a,20\nq2,0,a,-1000\nq2,0,b,0\nq2,0,c,2000\nq2,1,c,0\n";
    let values = written(folder.path(), "v.csv", text);
    let read = |path: &PathBuf, numbers| read_beliefs_of(std::slice::from_ref(path), numbers);
    let scaled = read(&values, BeliefNumbers::ScaledValues).unwrap().panel;
    assert_eq!((scaled.ratios(), scaled.roster().hypotheses()), (1, &["high".to_owned(), "low".to_owned()][..]));
    // First answers 10, 20, 40: median 20, absolute deviations 10, 0 and 20.
    assert!((scaled.frame(0)[(2, 0)] - 20.0 / 14.826).abs() < 1e-12 && scaled.frame(1)[(0, 0)] == 0.0);
    assert!((scaled.frame(2)[(2, 0)] - 2000.0 / 1482.6).abs() < 1e-12);
    let plain = read(&values, BeliefNumbers::Values).unwrap().panel;
    assert_eq!((plain.frame(2)[(0, 0)], plain.roster()), (-1000.0, scaled.roster()));
    let equal = written(folder.path(), "equal.csv", "episode,time,agent,value\nq1,0,a,5\nq1,0,b,5\nq1,1,a,6\n");
    let error = read(&equal, BeliefNumbers::ScaledValues).unwrap_err().to_string();
    assert!(error.contains("equal.csv") && error.contains("episode \"q1\": all 2 first answers are 5"), "{error}");
    assert!(read(&equal, BeliefNumbers::Values).is_ok());
    for header in ["time,agent,estimate", "time,agent,value,other"] {
        let columns = header.split(',').count() - 2;
        let row = |time: u8, agent: &str| format!("{time},{agent}{}\n", ",1".repeat(columns));
        let other = written(folder.path(), "o.csv", &format!("{header}\n{}{}", row(0, "a"), row(1, "b")));
        let error = read(&other, BeliefNumbers::Values).unwrap_err().to_string();
        assert!(error.contains("values take one column \"value\""), "{error}");
    }
    let infinite = written(folder.path(), "i.csv", "time,agent,value\n0,a,inf\n1,b,2\n");
    assert!(read(&infinite, BeliefNumbers::Values).unwrap_err().to_string().contains("line 2, column value"));
}

#[test]
fn bad_episodes_are_refused_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |rows: &str| {
        let text = format!("episode,time,agent,yes,no\n{rows}");
        read_beliefs(&written(folder.path(), "bad.csv", &text), false).map(|_| ()).unwrap_err().to_string()
    };
    let row = |episode: &str, time: &str, agent: &str| format!("{episode},{time},{agent},0.5,0.5\n");
    let pair = |episode: &str| row(episode, "0", "a") + &row(episode, "1", "b");
    let said = refused(&(pair("x") + &row("x", "1", "b")));
    assert!(said.contains("line 4") && said.contains("at time 1 of episode \"x\"; keep one"), "{said}");
    let said = refused(&(pair("x") + &row("", "1", "c")));
    assert!(said.contains("line 4, column episode") && said.contains("is empty; a name is expected"), "{said}");
    let said = refused(&(pair("x") + &row("  ", "1", "c")));
    assert!(said.contains("line 4, column episode"), "{said}");
    let said = refused(&(pair("x") + &row("y", "7", "a")));
    assert!(said.contains("episode \"y\": it has a single time step"), "{said}");
    let said = refused(&(pair("x") + &row("y", "2024-05-01T00:00:00Z", "a")));
    assert!(said.contains("expected a step number, as in the rows before"), "{said}");
    let said = refused(&(row("x", "0", "a") + &row("x", "1", "a")));
    assert!(said.contains("a network needs at least 2"), "{said}");
    let said = refused(&(pair("x") + &row("y", "0", "a") + &row("y", "90000000", "a")));
    assert!(said.contains("episode \"y\"") && said.contains("step numbers"), "{said}");
    // A name in every row is no reason to fill the memory.
    let many: String = (0..3000).map(|number| row(&format!("e{number}"), "0", "a")).collect();
    assert!(refused(&(many + &pair("x"))).contains("single time step"));
    let nameless = written(folder.path(), "n.csv", "episode,time,agent\nx,0,a\n");
    assert!(read_beliefs(&nameless, false).unwrap_err().to_string().contains("0 hypothesis column(s) found"));
}
