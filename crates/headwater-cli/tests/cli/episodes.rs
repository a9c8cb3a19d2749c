//! Episodes and values from outside: files in, models and tests out.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn headwater(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("headwater"));
    command.current_dir(folder).args(arguments).output().unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = headwater(folder, &[arguments, &["--format", "json", "--quiet"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = headwater(folder, arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Six questions, three answers each of twelve people: everybody moves towards number 3, who stays.
fn answers(folder: &Path) {
    let mut text = "episode,time,agent,value\n".to_owned();
    let mut graph = "source,target\n".to_owned();
    for question in 0..6 {
        let mut opinions: Vec<f64> = (0..12).map(|agent| f64::from((agent * 7 + question * 5) % 23)).collect();
        for time in 0..3 {
            for (agent, opinion) in opinions.iter().enumerate() {
                text += &format!("q{question},{time},p{agent},{}\n", 100.0 * opinion);
            }
            let hub = opinions[3];
            for (agent, opinion) in opinions.iter_mut().enumerate() {
                let noise = f64::from((agent as i32 * 5 + question * 3 + time) % 7 - 3) / 5.0;
                *opinion += 0.5 * (hub - *opinion) + noise;
            }
            opinions[3] = hub;
        }
    }
    (0..12).filter(|agent| *agent != 3).for_each(|agent| graph += &format!("p3,p{agent}\n"));
    std::fs::write(folder.join("answers.csv"), text).unwrap();
    std::fs::write(folder.join("sees.csv"), graph).unwrap();
}

#[test]
fn a_hub_is_heard_in_answers_to_questions() {
    let folder = tempfile::tempdir().unwrap();
    answers(folder.path());
    let test = ["test-graph", "answers.csv", "--values", "--graph", "sees.csv", "--draws", "199"];
    let found = json(folder.path(), &test);
    assert_eq!(
        (&found["null"], &found["episodes"], &found["steps"]),
        (&"exchanged-speakers".into(), &6.into(), &18.into())
    );
    assert!(found["p_value"].as_f64().unwrap() <= 0.05, "{found}");
    let text = headwater(folder.path(), &test);
    assert!(String::from_utf8_lossy(&text.stdout).contains("Ahead of the others: p3."));
    let learned = json(folder.path(), &["learn", "answers.csv", "--values", "--out", "m.json", "--ridge", "0.1"]);
    assert!(learned.is_object());
    let model: Value = serde_json::from_str(&std::fs::read_to_string(folder.path().join("m.json")).unwrap()).unwrap();
    assert_eq!((&model["reference"], model["diagnostics"]["episodes"].as_array().unwrap().len()), (&"high".into(), 6));
    let (code, errors) =
        refused(folder.path(), &["rank", "m.json", "--beliefs", "answers.csv", "--values", "--null", "20"]);
    assert!(code == Some(1) && errors.contains("too few for circular shifts"), "{errors}");
    let ranking = json(folder.path(), &["rank", "m.json", "--beliefs", "answers.csv", "--values", "--bootstrap", "20"]);
    assert!(ranking["agents"][0]["share_low"].is_number());
}

#[test]
fn files_are_episodes_one_each() {
    let folder = tempfile::tempdir().unwrap();
    for (name, seed) in [("a", "1"), ("b", "2")] {
        let world =
            ["simulate", "--out", name, "--agents", "6", "--steps", "40", "--seed", seed, "--as", "npy", "--quiet"];
        assert!(headwater(folder.path(), &world).status.success());
    }
    json(folder.path(), &["learn", "a/beliefs.npy", "b/beliefs.npy", "--out", "m.json"]);
    let model: Value = serde_json::from_str(&std::fs::read_to_string(folder.path().join("m.json")).unwrap()).unwrap();
    let episodes = model["diagnostics"]["episodes"].as_array().unwrap();
    let names: Vec<&str> = episodes.iter().map(|episode| episode["episode"].as_str().unwrap()).collect();
    assert_eq!(names, ["a/beliefs.npy", "b/beliefs.npy"], "files of the same name are named by their paths");
    let (code, errors) =
        refused(folder.path(), &["learn", "a/beliefs.npy", "b/beliefs.npy", "--out", "m.json", "--follow"]);
    assert!(code == Some(1) && errors.contains("the beliefs have 2 episodes"), "{errors}");
    let (code, errors) =
        refused(folder.path(), &["learn", "a/beliefs.npy", "--values", "--log-ratios", "--out", "m.json"]);
    assert!(code == Some(2) && errors.contains("cannot be used with"), "{errors}");
    let (code, errors) =
        refused(folder.path(), &["learn", "a/beliefs.npy", "--value-scale", "none", "--out", "m.json"]);
    assert_eq!(code, Some(2), "{errors}");
}

#[test]
fn topics_are_episodes() {
    let folder = tempfile::tempdir().unwrap();
    let posts = "user,time,text,score\nann,2024-05-01,tax,0.9\nbob,2024-05-01,tax war,0.2\nann,2024-05-03,tax,0.8\nbob,2024-05-06,war,0.4\ncem,2024-05-07,war,0.6\n";
    std::fs::write(folder.path().join("posts.csv"), posts).unwrap();
    let options = ["beliefs", "posts.csv", "--scorer", "column", "--episodes", "--out", "b.csv"];
    let found = json(folder.path(), &[&options[..], &["--topic", "tax", "--topic", "war"]].concat());
    assert_eq!((&found["tax"]["kept"], &found["war"]["kept"]), (&3.into(), &3.into()));
    let table = std::fs::read_to_string(folder.path().join("b.csv")).unwrap();
    assert!(table.starts_with("episode,time,agent,positive,negative,posts\ntax,2024-05-01"), "{table}");
    let (code, errors) = refused(folder.path(), &[&options[..], &["--topic", "tax"]].concat());
    assert!(code == Some(2) && errors.contains("episodes need at least two"), "{errors}");
    let (code, errors) = refused(folder.path(), &[&options[..], &["--topic", "tax", "--topic", "rain"]].concat());
    assert!(code == Some(1) && errors.contains("topic \"rain\":"), "{errors}");
}
