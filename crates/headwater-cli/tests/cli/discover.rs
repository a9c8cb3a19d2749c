//! From posts to a ranking in one command, from outside: what it writes, how it goes on after an interruption, what it hides
//! and what it refuses.

use crate::place::{Place, files, page_data};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Names that occur nowhere else.
const USERS: [&str; 6] = ["Quillan", "rosamund_7", "Tiberius", "Wendeline", "xanthe.k", "Zebedee"];

const OUTPUTS: [&str; 9] = [
    "beliefs.parquet",
    "edges.csv",
    "log-beliefs.parquet",
    "model.json",
    "network.gexf",
    "ranking.csv",
    "ranking.json",
    "report.html",
    "run.json",
];

/// A key for pseudonyms.
const KEY: &[u8; 32] = b"thirty-two bytes, all but random";

/// Few draws, so that a run takes a moment.
const QUICK: &str = "--bootstrap 20 --null 20";

/// Posts of six users over 60 days in `posts.csv`, who follow each other as in `graph.csv`.
fn with_posts() -> Place {
    let place = Place::new();
    place.write("posts.csv", posts(&USERS, 60));
    let mut edges = String::from("source,target\n");
    for (listener, user) in USERS.iter().enumerate() {
        for step in [1, 2, 4] {
            edges += &format!("{},{user}\n", USERS[(listener + step) % USERS.len()]);
        }
    }
    place.write("graph.csv", edges);
    place
}

/// The outputs of a run; of the record everything but the timings.
fn outputs(place: &Place, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for name in files(&place.path(folder)) {
        let path = place.path(folder).join(&name);
        if path.is_dir() {
            continue;
        }
        let mut bytes = std::fs::read(path).unwrap();
        if name == "run.json" {
            let mut run: Value = serde_json::from_slice(&bytes).unwrap();
            assert!(run.as_object_mut().unwrap().remove("timings").is_some());
            bytes = run.to_string().into_bytes();
        }
        all.insert(name, bytes);
    }
    all
}

/// Posts with scores of their own: users drift, follow the first a little, and are silent now and then.
fn posts(users: &[&str], days: usize) -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut text = String::from("user,time,text,score\n");
    let mut beliefs = vec![0.0; users.len()];
    for day in 0..days {
        let before: Vec<f64> = beliefs.clone();
        for (user, name) in users.iter().enumerate() {
            beliefs[user] = 0.6 * before[user] + 0.3 * before[0] + draw() - 0.45;
            if draw() < 0.7 {
                let score = 1.0 / (1.0 + f64::exp(-beliefs[user] - 0.3 * (draw() - 0.5)));
                // Mornings from 1 January 2024 on.
                let time = 1_704_103_200 + 86_400 * day;
                text += &format!("{name},{time},the tram is {user},{score}\n");
            }
        }
    }
    text
}

fn discover(more: &str) -> String {
    format!("discover posts.csv --scorer column {QUICK} {more}")
}

#[test]
fn few_bins_are_ranked_without_what_takes_more_of_them() {
    let place = Place::new();
    let four = &USERS[..4];
    place.write(
        "graph.csv",
        "source,target\nQuillan,rosamund_7\nrosamund_7,Tiberius\nTiberius,Wendeline\nWendeline,Quillan\n",
    );
    for days in 10..=13 {
        place.write("posts.csv", posts(four, days));
        for (number, more) in ["--fit em", "--fit em --graph graph.csv", "--graph graph.csv"].into_iter().enumerate() {
            let out = format!("{days}-{number}");
            let (text, remarks) = place.both(&discover(&format!("{more} --out {out}")));
            let remarks = remarks.replace('\n', " ");
            let ranking = place.read_json(&format!("{out}/ranking.json"));
            assert_eq!(ranking["agents"].as_array().unwrap().len(), 4);
            let impossible = &ranking["verdict"]["shifts_impossible"];
            assert_eq!(impossible["needed"] == 10, days < 13, "{days}: {impossible}");
            assert_eq!(
                remarks.contains("warning: no permutation test: there are too few time steps"),
                days < 13,
                "{remarks}"
            );
            let tested = ranking["verdict"]["graph_test"].is_object();
            assert_eq!(ranking["verdict"]["outcome"] == "not-tested", days < 13 && !tested, "{text}");
            if days < 13 && !tested {
                assert!(text.contains("Next: more time steps") && !text.contains("--null"), "{text}");
                assert!(text.contains("is not known."), "{text}");
            }
            if more.contains("em") {
                let without = "warning: no intervals: resampling needs at least 11 time steps, and there are 10 steps";
                assert_eq!(remarks.contains(without), days == 10, "{remarks}");
                assert_eq!(ranking["intervals"].is_null(), days == 10);
            }
            // The same from what was saved.
            let (again, said) = place.both(&discover(&format!("{more} --out {out}")));
            assert_eq!(again, text);
            assert_eq!(said.contains("no permutation test"), days < 13, "{said}");
        }
    }
    // Ranked by hand.
    place.write("posts.csv", posts(four, 10));
    place.done(&discover("--fit em --out ten"));
    let (text, remarks) = place.both("rank ten/model.json --beliefs ten/beliefs.parquet --bootstrap 20 --null 20");
    assert!(text.starts_with("Not tested: a permutation test is not possible"), "{text}");
    assert!(remarks.contains("no intervals") && remarks.contains("no permutation test"), "{remarks}");
    let error = place.refused("rank ten/model.json --beliefs ten/log-beliefs.parquet", 1);
    assert!(
        error.contains("hint: this file of a run has log-ratios; give beliefs.parquet, which is beside it"),
        "{error}"
    );
    // Times in units of their own.
    let mut numbered = String::from("user,time,text,score\n");
    for (user, name) in USERS.iter().enumerate() {
        for bin in 0..10 {
            let score = (((bin * 7 + user * 13) % 19) as f64 / 9.5 - 1.0).clamp(-1.0, 1.0);
            numbered += &format!("{name},{}.25,x,{score}\n", bin);
        }
    }
    place.write("numbered.csv", numbered);
    let run =
        "discover numbered.csv --scorer column --score-range -1..1 --bin 1 --fit em --bootstrap 0 --null 20 --out n";
    let remarks = place.both(run).1;
    assert!(
        remarks.contains("no permutation test") && remarks.contains("over 10 bins from 0.25 to 9.25;"),
        "{remarks}"
    );
    assert!(!remarks.contains("UTC"), "plain numbers have no zone: {remarks}");
    let beliefs = "beliefs numbered.csv --scorer column --score-range -1..1 --bin 1 --out b.csv";
    assert!(place.both(&format!("{beliefs} --from 2 --to 5.25")).1.contains("over 4 bins from 2.25 to 5.25;"));
    assert!(place.refused(&format!("{beliefs} --from 2024-05-01"), 2).contains("times are plain numbers"));
    assert!(place.refused("beliefs posts.csv --scorer column --from 3 --out b.csv", 2).contains("3 is a plain number"));
}

#[test]
fn files_of_other_origin_are_replaced_only_by_force() {
    let place = with_posts();
    std::fs::create_dir(place.path("mine")).unwrap();
    place.write("mine/report.html", "my own report");
    let run = discover("--out mine");
    let error = place.refused(&run, 1);
    assert!(error.contains("mine/report.html: exists already") && error.contains("--force"), "{error}");
    assert_eq!((place.read("mine/report.html").as_str(), files(&place.path("mine")).len()), ("my own report", 1));
    place.done(&format!("{run} --force"));
    assert_eq!(files(&place.path("mine")), OUTPUTS);
    // Its own results it replaces.
    place.done(&discover("--out mine --seed 3"));
    place.write("file", "x");
    let error = place.refused(&discover("--out file"), 2);
    assert!(error.contains("file: is a file; results are written to a folder"), "{error}");
}

#[test]
fn a_page_of_a_run_has_its_time_zone() {
    let place = with_posts();
    place.done(&discover("--timezone Europe/Zurich --out z"));
    place.done("report z/model.json --ranking z/ranking.json --beliefs z/beliefs.parquet --out p.html");
    assert_eq!(page_data(&place.read("p.html"))["opinions"]["zone"], "Europe/Zurich");
}

#[test]
fn everything_is_written_and_recorded() {
    let place = with_posts();
    let (text, remarks) = place.both(&discover("--graph graph.csv --topic tram --out a"));
    assert_eq!(files(&place.path("a")), OUTPUTS);
    let verdict = place.read_json("a/ranking.json")["verdict"]["text"].as_str().unwrap().to_owned();
    let flat = text.replace('\n', " ");
    let order = [&verdict, "share", "Files in a:"].map(|part| flat.find(part).unwrap());
    assert!(order[0] == 0 && order.is_sorted(), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(remarks.contains("6 users over 60 bins"), "{remarks}");

    let ranking = place.read_json("a/ranking.json");
    let agents = ranking["agents"].as_array().unwrap();
    assert_eq!(agents.len(), USERS.len());
    let table = place.read("a/ranking.csv");
    let header: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    for field in
        ["share_low", "rank_high", "top_k_probability", "p_value", "posts", "silent_share", "in_degree", "pagerank"]
    {
        assert!(agents[0][field].is_number() && header.contains(&field), "{field}");
    }
    for agent in agents {
        let mut keys = agent.as_object().unwrap().keys();
        assert!(keys.all(|key| header.contains(&key.as_str())), "{agent}");
    }
    let edges = place.read("a/edges.csv");
    assert!(edges.starts_with("source,target,weight,p_value,significant,low,high\n"), "{edges}");
    let known = place.read("graph.csv");
    for edge in edges.lines().skip(1) {
        let ends = edge.split(',').take(2).collect::<Vec<_>>().join(",");
        assert!(known.contains(&ends), "{edge} is not in the graph");
    }

    let run = place.read_json("a/run.json");
    assert_eq!(run["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&run["model_format"], &run["seed"]), (&"headwater-model/2".into(), &21.into()));
    let sum: String = Sha256::digest(std::fs::read(place.path("posts.csv")).unwrap())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!((&run["inputs"][0]["path"], &run["inputs"][0]["sha256"]), (&"posts.csv".into(), &sum.into()));
    assert_eq!(run["inputs"].as_array().unwrap().len(), 2);
    for (option, value) in [("bin", "day"), ("timezone", "UTC"), ("scorer", "column"), ("graph", "graph.csv")] {
        assert_eq!(run["options"][option], value, "{option}");
    }
    assert_eq!((&run["options"]["null"], &run["options"]["topic"][0]), (&20.into(), &"tram".into()));
    let counts = &run["counts"];
    for (count, value) in [("users", 6), ("bins", 60), ("rejected", 0)] {
        assert_eq!(counts[count], value, "{count}");
    }
    assert!(counts["posts"].as_u64() > Some(200) && counts["kept"] == counts["posts"]);
    assert!(counts["silent_share"].as_f64() > Some(0.2));
    assert_eq!(counts["graph"]["edges_kept"], 18);
    for stage in ["score", "learn", "rank", "report", "write"] {
        assert!(run["timings"][stage]["seconds"].is_number(), "{stage}");
    }
    // The page shows this ranking, and what became of the posts; made again, it is the same to the byte.
    let page = place.read("a/report.html");
    let data = page_data(&page);
    assert_eq!(data["ranking"]["agents"], ranking["agents"]);
    assert_eq!(data["title"], "Influence on opinion: tram");
    assert!(
        data["quality"].to_string().contains("posts kept") && data["method"].to_string().contains("SHA-256 of posts")
    );
    assert!(!page.contains("posts.csv") && data["network"]["given"] == true);
    let (model, ranked) = ("a/model.json --run a/run.json --graph graph.csv", "--ranking a/ranking.json");
    place.both(&format!("report {model} {ranked} --beliefs a/beliefs.parquet --out again.html"));
    assert_eq!(place.read("again.html"), page);
    assert!(text.trim_end().ends_with("Report page: a/report.html"), "{text}");
    // No post is quoted anywhere.
    for name in OUTPUTS {
        let bytes = std::fs::read(place.path("a").join(name)).unwrap();
        assert!(!bytes.windows(11).any(|window| window == b"the tram is"), "{name}");
    }

    let (json, _) = place.both(&discover("--graph graph.csv --topic tram --out a --format json"));
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), ranking);
    let (printed, _) = place.both(&discover("--graph graph.csv --topic tram --out a --format csv"));
    assert_eq!(printed, table);
    // Without the null, the draws and the intervals their columns are absent.
    place.both("discover posts.csv --scorer column --fit em --bootstrap 0 --null 0 --out b");
    assert!(place.read("b/edges.csv").starts_with("source,target,weight\n"));
    assert!(!place.read("b/ranking.csv").contains("p_value") && !place.read("b/ranking.csv").contains("share_low"));
}

#[test]
fn interrupted_anywhere_it_ends_the_same() {
    let place = with_posts();
    place.both(&discover("--graph graph.csv --out whole"));
    let whole = outputs(&place, "whole");
    for stage in ["score", "learn", "rank", "report", "write"] {
        let run = discover(&format!("--graph graph.csv --out {stage}"));
        let killed = place.command(&run).env("HEADWATER_STOP_AFTER", stage).output().unwrap();
        assert_eq!(killed.status.code(), None, "killed by a signal");
        assert!(!place.path(stage).join("run.json").exists(), "{stage}: the folder says that it is unfinished");
        let (_, remarks) = place.both(&run);
        assert_eq!(
            remarks.matches("reused from an earlier run").count(),
            match stage {
                "score" => 1,
                "learn" => 2,
                "rank" => 3,
                _ => 4,
            },
            "{stage}: {remarks}"
        );
        assert_eq!(outputs(&place, stage), whole, "{stage}");
        assert_eq!(place.read_json(&format!("{stage}/run.json"))["timings"]["score"]["reused"], true);
    }
    // Killed, or asked by Ctrl-C to stop, again and again while it works, at whatever it happens to do.
    let program = assert_cmd::cargo::cargo_bin("headwater");
    let run = discover("--graph graph.csv --out killed");
    for pause in [5, 10, 20, 30, 40, 60, 80, 100, 120, 140, 160] {
        let mut child = std::process::Command::new(&program)
            .current_dir(place.folder())
            .args(run.split_whitespace())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(pause));
        if pause % 20 == 0 {
            let asked = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
            assert!(asked.success());
            // Without a code where the handler was not set yet, 0 where it was done before it was asked.
            let ended = child.wait_with_output().unwrap();
            assert!(matches!(ended.status.code(), None | Some(0 | 130)));
            let told = String::from_utf8(ended.stderr).unwrap();
            // Before the run has begun it says nothing else, and there is nothing to continue.
            let early = told == "\ninterrupted\n";
            let told = told.contains("interrupted; what is finished is kept, and the same command continues");
            assert_eq!(told || early, ended.status.code() == Some(130));
        } else {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
    place.both(&run);
    assert_eq!(outputs(&place, "killed"), whole);
}

#[test]
fn only_what_is_the_same_is_used_again() {
    let place = with_posts();
    let again = |more: &str| {
        let (_, remarks) = place.both(&discover(&format!("--out a {more}")));
        ["score", "learn", "rank"].map(|stage| remarks.contains(&format!("{stage}: reused")))
    };
    assert_eq!(again(""), [false; 3]);
    assert_eq!(again(""), [true; 3]);
    assert_eq!(again("--top 2"), [true, true, false]);
    assert_eq!(again("--graph graph.csv --force"), [false; 3]);
    assert_eq!(again("--min-posts 2 --force"), [false; 3]);
    // A run that is interrupted leaves the earlier one as it was.
    let before = outputs(&place, "a");
    let run = discover("--out a --hypotheses 2 --min-posts 3");
    place.command(&run).env("HEADWATER_STOP_AFTER", "learn").output().unwrap();
    let mut after = outputs(&place, "a");
    after.retain(|name, _| !name.starts_with(".headwater"));
    assert_eq!(after, before);
    // A file that was changed is made anew; what rests on it is not, if it turns out the same.
    place.both(&discover("--out a"));
    place.write("a/beliefs.parquet", "something else");
    assert_eq!(again(""), [false, true, true]);
    // Other posts under the same name.
    place.write("posts.csv", posts(&USERS, 50));
    assert_eq!(again("--force"), [false; 3]);
    assert_eq!(files(&place.path("a")), OUTPUTS);
}

#[test]
fn pseudonyms_hide_every_name_everywhere() {
    let place = with_posts();
    place.write_key("key", KEY);
    // Rows that cannot be read, and that say who wrote them.
    let bad = "Zebedee,Zebedee,Quillan\nno time,Quillan,Tiberius,0.5,and more\nTiberius,Wendeline,hello,0.5\n";
    place.write("posts.csv", place.read("posts.csv") + bad);
    place.write("users.txt", USERS.join("\n") + "\nSomebodyelse\n");
    let groups: Vec<String> = USERS.iter().map(|user| format!("{user},{}", user.len() % 2)).collect();
    place.write("groups.csv", format!("agent,group\n{}\n", groups.join("\n")));
    // With a fixed number of rounds the order of users moves the last digits only.
    let options = "--graph graph.csv --users users.txt --rejects r.csv --common groups.csv --rounds 20";
    let arguments = |out: &str, more: &str| -> Vec<String> {
        let mut all: Vec<String> =
            discover(&format!("{options} --out {out} {more}")).split_whitespace().map(str::to_owned).collect();
        all.extend(["--topic".to_owned(), "tram OR @quillan".to_owned()]);
        all
    };
    let run = |out: &str, more: &str, stop: &str| {
        let mut command = place.command("");
        command.args(arguments(out, more)).env("HEADWATER_STOP_AFTER", stop).output().unwrap()
    };
    let hidden = |what: &str, bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).to_lowercase();
        for user in USERS.iter().chain(&["Somebodyelse"]) {
            assert!(!text.contains(&user.to_lowercase()), "{user} is in {what}");
        }
    };
    let search = |folder: &str| {
        for name in files(&place.path(folder)) {
            let path = place.path(folder).join(&name);
            if path.is_file() {
                hidden(&name, &std::fs::read(&path).unwrap());
            }
            if name.ends_with("beliefs.parquet") {
                let agents = headwater_files::read_beliefs(&path, name.ends_with("log-beliefs.parquet"))
                    .unwrap()
                    .panel
                    .roster()
                    .agents()
                    .join(" ");
                hidden(&name, agents.as_bytes());
            }
        }
        hidden("r.csv", place.read("r.csv").as_bytes());
    };
    for stage in ["score", "learn", "rank", "report", "write"] {
        let output = run(stage, "--pseudonymise key", stage);
        hidden("the screen", &[output.stdout, output.stderr].concat());
        search(stage);
    }
    let output = run("a", "--pseudonymise key", "");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    hidden("the screen", &[output.stdout, output.stderr].concat());
    search("a");
    let topic = place.read_json("a/run.json")["options"]["topic"][0].as_str().unwrap().to_owned();
    assert!(topic.starts_with("tram OR @u-"), "{topic}");

    // Files and folders may be named after users, too.
    std::fs::create_dir(place.path("Zebedee")).unwrap();
    std::fs::copy(place.path("posts.csv"), place.path("Zebedee/tiberius.csv")).unwrap();
    let named = format!("discover Zebedee/tiberius.csv --scorer column {QUICK} --pseudonymise key --out b");
    place.both(&named);
    search("b");
    assert_eq!(place.read_json("b/run.json")["inputs"][0]["sha256"].as_str().unwrap().len(), 64);

    // Hashes are keyed: nobody can check which file was read.
    let plain: String = Sha256::digest(place.read("posts.csv")).iter().map(|byte| format!("{byte:02x}")).collect();
    let recorded = |folder: &str| place.read_json(&format!("{folder}/run.json"))["inputs"][0]["sha256"].clone();
    assert!(recorded("a") == recorded("b") && recorded("a") != plain.as_str());

    // The same numbers under other names; another key, other names.
    assert_eq!(run("open", "", "").status.code(), Some(0));
    let shares = |folder: &str| -> Vec<f64> {
        let ranking = place.read_json(&format!("{folder}/ranking.json"));
        ranking["agents"].as_array().unwrap().iter().map(|agent| agent["share"].as_f64().unwrap()).collect()
    };
    let names = |folder: &str| -> Vec<String> {
        let model = place.read_json(&format!("{folder}/model.json"));
        model["agents"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    // Sums over users come in another order.
    for (here, there) in shares("a").iter().zip(shares("open")) {
        assert!((here - there).abs() < 1e-6, "{here} {there}");
    }
    // The order of users tells nothing.
    assert!(names("a").is_sorted());
    assert!(names("a").iter().all(|name| name.len() == 14 && name.starts_with("u-")));
    let before = names("a");
    place.write_key("key", [&KEY[..31], b"!"].concat());
    assert_eq!(run("a", "--pseudonymise key --force", "").status.code(), Some(0));
    assert!(names("a").iter().all(|name| !before.contains(name)));
}

#[test]
fn pseudonyms_hide_names_in_refusals_too() {
    let place = with_posts();
    place.write_key("key", KEY);
    let refused = |arguments: &str| {
        let errors = place.refused(arguments, 1);
        for user in USERS {
            assert!(!errors.contains(user), "{user} is in {errors}");
        }
        errors
    };
    let run = |more: &str| discover(&format!("--pseudonymise key --out a {more}"));
    // One user, no header, a graph with a slip, a list with two columns.
    place.write("one.txt", "Quillan\n");
    assert!(refused(&run("--users one.txt")).contains("only one user is left, \"u-"));
    place.write("bare.csv", "Quillan,2024-01-01,hello\nTiberius,2024-01-02,hi\n");
    let errors = refused("discover bare.csv --pseudonymise key --out a");
    assert!(errors.contains("error: posts: there is no user"), "{errors}");
    place.write("slip.csv", "source,target,weight\nQuillan,Tiberius,1\nQuillan,Tiberius,1\n");
    assert!(refused(&run("--graph slip.csv")).contains("error: graph, line 3: cannot be used"));
    place.write("two.csv", "Quillan,Tiberius\n");
    assert!(refused(&run("--users two.csv")).contains("error: users: cannot be used"));
    place.write("strange.csv", "source,target\nann,bob\n");
    let errors = refused(&run("--graph strange.csv"));
    assert!(errors.contains("none of its 2 accounts") && !errors.contains("\"ann\""), "{errors}");

    // Files may be named after users.
    let errors = refused("discover Zebedee.csv --pseudonymise key --out a");
    assert!(errors.contains("error: posts: cannot read"), "{errors}");
    place.write("Zebedee.csv", "user,time,text\nann,never,x\n");
    assert!(refused("discover Zebedee.csv --pseudonymise key --out a").contains("posts, line 2"));

    let errors = place.refused(&discover("--pseudonymise nokey --out a"), 1);
    assert!(
        errors.contains("nokey: cannot read the key") && errors.contains("(umask 077; head -c 32 /dev/urandom > key)"),
        "{errors}"
    );
    for (weak, why) in
        [("", "at least 32 are needed"), ("too short", "at least 32 are needed"), (&"7".repeat(40), "are the same")]
    {
        place.write_key("weak", weak);
        let errors = place.refused(&discover("--pseudonymise weak --out a"), 1);
        assert!(errors.contains(why) && errors.contains("hint: make a key"), "{errors}");
    }
    #[cfg(unix)]
    {
        place.set_mode("key", 0o644);
        let errors = place.refused(&run(""), 1);
        assert!(
            errors.contains("can be read by other users")
                && errors.contains("hint: make it readable for you only, then run again: chmod 600 "),
            "{errors}"
        );
    }
}

#[test]
fn graphs_and_posts_need_not_name_the_same_users() {
    let place = with_posts();
    let graph = place.read("graph.csv").replace("Zebedee", "Nobody");
    place.write("other.csv", graph);
    let (_, remarks) = place.both(&discover("--graph other.csv --out a"));
    let flat = remarks.replace('\n', " ");
    assert!(flat.contains("1 account of the graph without a kept post: left out, with 6 edges"), "{remarks}");
    assert!(flat.contains("1 account outside the graph: their posts are left out"), "{remarks}");
    let model = place.read_json("a/model.json");
    let agents: Vec<&str> = model["agents"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(agents.len() == 5 && !agents.contains(&"Zebedee") && !agents.contains(&"Nobody"));
    let counts = &place.read_json("a/run.json")["counts"]["graph"];
    for (count, value) in
        [("users", 6), ("users_without_posts", 1), ("users_outside", 1), ("edges", 18), ("edges_kept", 12)]
    {
        assert_eq!(counts[count], value, "{count}");
    }
}

/// The graph writes names with capitals and an @. No posts are lost by that.
#[test]
fn names_match_up_to_case_and_an_at_sign() {
    let place = with_posts();
    place.both(&discover("--graph graph.csv --out plain"));
    let graph = place.read("graph.csv");
    let (header, rows) = graph.split_once('\n').unwrap();
    let other: String = rows
        .lines()
        .map(|row| {
            let (source, target) = row.split_once(',').unwrap();
            format!("@{},@{}\n", source.to_uppercase(), target.to_uppercase())
        })
        .collect();
    place.write("graph.csv", format!("{header}\n{other}"));
    let (_, remarks) = place.both(&discover("--graph graph.csv --out other"));
    let flat = remarks.replace('\n', " ");
    assert!(flat.contains("matched up to case and a leading @"), "{remarks}");
    assert!(!flat.contains("outside the graph") && !flat.contains("without a kept post"), "{remarks}");
    let (plain, found) = (place.read_json("plain/run.json"), place.read_json("other/run.json"));
    assert_eq!(found["counts"]["graph"]["users_matched"], 6);
    assert_eq!(found["counts"]["graph"]["edges_kept"], plain["counts"]["graph"]["edges_kept"]);
    // The same model under the names of the posts.
    assert_eq!(place.read("other/model.json"), place.read("plain/model.json"));
    // A pseudonym does not tell which name it stands for; the names still match.
    place.write_key("key", KEY);
    place.both(&discover("--graph graph.csv --pseudonymise key --out hidden"));
    assert_eq!(place.read_json("hidden/run.json")["counts"]["graph"]["users_matched"], 6);
}

/// Bins that are plain numbers: page and figures show times, not numbers of bins.
#[test]
fn numeric_bins_are_shown_as_times() {
    let place = Place::new();
    let mut text = String::from("user,time,text,score\n");
    for (row, line) in posts(&USERS, 60).lines().skip(1).enumerate() {
        let mut cells: Vec<&str> = line.split(',').collect();
        let day = (cells[1].parse::<i64>().unwrap() - 1_704_103_200) / 86_400;
        let time = (100.0 + 0.5 * day as f64).to_string();
        cells[1] = &time;
        text += &format!("{}\n", cells.join(","));
        assert!(row < 360);
    }
    place.write("posts.csv", text);
    place.both(&discover("--bin 0.5 --out found"));
    let times = &page_data(&place.read("found/report.html"))["opinions"]["times"];
    let times: Vec<&str> = times.as_array().unwrap().iter().map(|time| time.as_str().unwrap()).collect();
    assert_eq!((times.len(), times[0], times[1], times[59]), (60, "100", "100.5", "129.5"));
    let report = "report found/model.json --ranking found/ranking.json --beliefs found/beliefs.parquet";
    place.done(&format!("{report} --run found/run.json --figures figures --out page.html"));
    let figure = place.read("figures/opinions.svg");
    assert!(figure.contains(">100<") && !figure.contains(">200<"), "bins are numbered from 200 on");
}

#[test]
fn bad_input_is_refused_by_cause_and_cure() {
    let place = with_posts();
    let refused = |more: &str, parts: &[&str]| {
        let errors = place.refused(&discover(&format!("{more} --out a/b")), 1);
        for part in parts {
            assert!(errors.contains(part), "{part:?} is not in {errors}");
        }
        assert!(errors.contains("hint: "), "{errors}");
    };
    refused("--topic submarine", &["posts.csv: no post is left", "broaden the topic"]);
    refused("--from 2030-01-01", &["no post is left", "choose dates within the period"]);
    place.write("one.txt", "Quillan\n");
    refused("--users one.txt", &["posts.csv: only one user is left, \"Quillan\""]);
    refused("--to 2024-01-05", &["posts.csv", "5 time bins", "at least 10 are needed", "shorter bins"]);
    place.write("strange.csv", "source,target\nann,bob\nbob,ann\n");
    refused(
        "--graph strange.csv",
        &["strange.csv: none of its 2 accounts", "such as \"ann\"", "such as \"Quillan\"", "--map user="],
    );
    place.write("apart.csv", "source,target\nQuillan,ann\nbob,Tiberius\n");
    refused("--graph apart.csv", &["apart.csv", "none of its 2 edges joins two accounts"]);
    refused("--graph graph.csv --users strange.txt", &["strange.txt"]);
    place.write("elsewhere.txt", "ann\n");
    refused("--graph graph.csv --users elsewhere.txt", &["none of the accounts asked for is in the graph"]);
    let even: String = place
        .read("posts.csv")
        .lines()
        .map(|line| match line.rsplit_once(',') {
            Some((head, "score")) => format!("{head},score\n"),
            Some((head, _)) => format!("{head},0.5\n"),
            None => String::new(),
        })
        .collect();
    place.write("even.csv", even);
    let errors = place.refused(&format!("discover even.csv --scorer column {QUICK} --out a"), 1);
    assert!(errors.contains("even.csv: no score changes over time") && errors.contains("--scorer"), "{errors}");
    // The mean of three equal scores is not always that score to the last digit.
    let lines = |(number, line): (usize, &str)| -> String {
        let head: Vec<&str> = line.split(',').take(2).collect();
        (0..=number % 6).map(|post| format!("{},tram {number} {post},0.7\n", head.join(","))).collect()
    };
    let even: String = place.read("posts.csv").lines().skip(1).enumerate().map(lines).collect();
    place.write("level.csv", format!("user,time,text,score\n{even}"));
    let errors = place.refused(&format!("discover level.csv --scorer column {QUICK} --out a"), 1);
    assert!(errors.contains("level.csv: no score changes over time") && errors.contains("--scorer"), "{errors}");
    // Everybody but two is silent after the first day, and groups contain nobody.
    let quiet = |line: &&str| {
        ["user,", "Quillan,", "rosamund_7,"].iter().any(|start| line.starts_with(start))
            || line.contains(",1704103200,")
    };
    place.write(
        "two.csv",
        place.read("posts.csv").lines().filter(quiet).map(|line| format!("{line}\n")).collect::<String>(),
    );
    let errors = place.refused(&format!("discover two.csv --scorer column {QUICK} --graph graph.csv --out a"), 1);
    assert!(errors.contains("two.csv: 2 account(s) speak at 5 steps or more") && errors.contains("hint: "), "{errors}");
    place.write("nobody.csv", "agent,group\nann,red\n");
    refused("--graph graph.csv --groups nobody.csv", &["nobody.csv: names none of the agents", "give agent,group"]);
    assert!(place.refused(&discover("--groups nobody.csv --out a"), 2).contains("--graph"));
    // Wrong usage.
    assert!(place.refused("discover - --out a", 2).contains("save it to a file first"));
    std::fs::create_dir(place.path("same")).unwrap();
    place.write("same/edges.csv", place.read("graph.csv"));
    for wrong in ["--graph same/edges.csv --out same", "--rejects posts.csv --out a"] {
        assert!(place.refused(&format!("discover posts.csv {wrong}"), 2).contains("would be overwritten"));
    }
    assert!(place.refused("discover posts.csv --weights strengths --out a", 2).contains("need a graph"));
    for wrong in ["--null 3", "--bootstrap x", "--top 0"] {
        place.refused(&format!("discover posts.csv --out a {wrong}"), 2);
    }
}

#[test]
fn above_a_hundred_users_the_null_is_off_unless_asked_for() {
    let place = Place::new();
    let names: Vec<String> = (0..101).map(|user| format!("user{user}")).collect();
    place.write("posts.csv", posts(&names.iter().map(String::as_str).collect::<Vec<_>>(), 14));
    let (_, remarks) = place.both("discover posts.csv --scorer column --bootstrap 0 --rounds 2 --out a");
    assert!(remarks.contains("101 users: the permutation test is off"), "{remarks}");
    let run = place.read_json("a/run.json");
    assert_eq!((&run["options"]["null"], &run["verdict"]["outcome"]), (&0.into(), &"not-tested".into()));
    // With a graph the verdict does without it.
    let edges: String = (0..101)
        .flat_map(|user| [1, 5, 12].map(|step| format!("{},{}\n", names[user], names[(user + step) % 101])))
        .collect();
    place.write("graph.csv", format!("source,target\n{edges}"));
    let (text, remarks) =
        place.both("discover posts.csv --scorer column --bootstrap 0 --rounds 2 --fit em --graph graph.csv --out b");
    let flat = remarks.replace('\n', " ");
    assert!(flat.contains("101 users: no p-values of single users and edges"), "{remarks}");
    let run = place.read_json("b/run.json");
    assert_eq!((&run["options"]["null"], &run["verdict"]["test"]), (&0.into(), &"graph-test".into()));
    assert_ne!(run["verdict"]["outcome"], "not-tested");
    assert!(!text.contains("--null"), "{text}");
}

/// Cells of a CSV text that a spreadsheet would run.
fn formulas(text: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    let acts = |cell: &&str| cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    rows.iter().flat_map(|row| row.iter().filter(acts).map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn no_csv_runs_in_a_spreadsheet_and_ours_are_read_back() {
    let place = Place::new();
    let names = ["=HYPERLINK(\"x\")", "-x", "'-x", "@ann", "bob"];
    let mut posts = csv::Writer::from_writer(Vec::new());
    posts.write_record(["user", "time", "text", "score"]).unwrap();
    for day in 0..20 {
        for (place, name) in names.iter().enumerate() {
            let score = 0.5 + 0.4 * f64::sin((day * day * (place + 1)) as f64);
            let time = format!("2024-05-{:02}T12:00:00Z", day + 1);
            let text = if score > 0.5 { "@bob I love it" } else { "@bob I hate it" };
            posts.write_record([name, time.as_str(), text, &score.to_string()]).unwrap();
        }
    }
    place.write("posts.csv", posts.into_inner().unwrap());
    let run = "--scorer column --bootstrap 0 --null 20 --quiet";
    place.done(&format!("discover posts.csv {run} --out found"));
    place.done("export found/model.json --out net.csv --quiet");
    place.done("score posts.csv --out scored.csv --quiet");
    place.done("beliefs posts.csv --scorer column --out beliefs.csv --quiet");
    let printed = [
        place.done("rank found/model.json --format csv"),
        place.done("explain found/model.json --agent bob --format csv"),
    ];
    let files = ["found/ranking.csv", "found/edges.csv", "net.csv", "net.nodes.csv", "scored.csv", "beliefs.csv"];
    for (name, text) in
        files.map(|name| (name, place.read(name))).into_iter().chain(printed.map(|text| ("printed", text)))
    {
        assert_eq!(formulas(&text), Vec::<String>::new(), "{name}");
        assert!(text.contains("'-x") && text.contains("''-x"), "{name}: {text}");
    }
    // The names as they are, where asked for.
    assert!(place.done("rank found/model.json --format csv --raw-csv").contains("\n-x,"));
    // What we wrote, we read: the same agents in the graph, in beliefs and in scored posts.
    let mut wanted: Vec<&str> = names.to_vec();
    wanted.sort_unstable();
    let agents = |model: &str| {
        let model = place.read_json(model);
        let names = model["agents"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    assert_eq!(agents("found/model.json"), wanted);
    let (_, errors) = place.both("learn beliefs.csv --graph found/edges.csv --method whitened --out again.json");
    assert!(!errors.contains("left out"), "{errors}");
    assert_eq!(agents("again.json"), wanted);
    place.done(&format!("discover scored.csv {run} --graph net.csv --out from-scored"));
    // What `Next:` suggests works for a name that looks like an option.
    place.done(&["explain", "found/model.json", "--agent", "-x", "--what-if", "remove"]);
    assert_eq!(agents("from-scored/model.json"), wanted);
}

#[test]
fn explain_carries_the_verdict_of_the_run() {
    let place = Place::new();
    let rows: String = (0..25)
        .flat_map(|day| ["ann", "bob", "cem"].map(|user| (day, user)))
        .map(|(day, user)| {
            let score = 0.5 + 0.4 * f64::sin((day * day * user.len() * usize::from(user.as_bytes()[0])) as f64);
            format!("{user},2024-05-{:02}T12:00:00Z,hello,{score}\n", day + 1)
        })
        .collect();
    place.write("posts.csv", format!("user,time,text,score\n{rows}"));
    place.done("discover posts.csv --scorer column --bootstrap 0 --null 20 --out found --quiet");
    let verdict = place.read_json("found/ranking.json")["verdict"].clone();
    assert_eq!(verdict["outcome"], "no-evidence", "{verdict}");
    let told = place.json("explain found/model.json --agent bob --format json");
    assert_eq!(told["verdict"], verdict);
    let text = place.done("explain found/model.json --agent bob");
    assert!(text.starts_with("No evidence that these agents listen to each other"), "{text}");
    assert!(text.contains("estimates that the data do not support") && !text.contains("own evidence points"), "{text}");
    // A ranking of another model says nothing about this one.
    std::fs::create_dir(place.path("alone")).unwrap();
    place.write("alone/model.json", place.read("found/model.json"));
    assert!(place.done("explain alone/model.json --agent bob").starts_with("Not tested"));
    place.write("alone/ranking.json", place.read("found/ranking.json").replace("\"ann\"", "\"eve\""));
    assert!(place.done("explain alone/model.json --agent bob").starts_with("Not tested"));
    let errors = place.refused("explain alone/model.json --agent bob --ranking alone/ranking.json", 1);
    assert!(errors.contains("is not a ranking of"), "{errors}");
}

/// Eight accounts that do not listen, on a ring with chords: the graph test decides, and the run says how strong an effect would
/// have been found.
#[test]
fn with_a_graph_the_graph_test_decides_and_tells_its_power() {
    let place = Place::new();
    let names = ["ann", "bob", "cem", "dee", "eva", "fox", "gil", "hal"];
    let noise = |day: usize, user: usize| f64::sin((day * day * 7 + user * user * 31 + day * user * 13) as f64 * 1.7);
    let rows: String = (0..60)
        .flat_map(|day| (0..8).map(move |user| (day, user)))
        .filter(|(day, user)| (day * 5 + user * 3) % 7 != 0)
        .map(|(day, user)| {
            let (month, date) = (5 + day / 30, day % 30 + 1);
            format!("{},2024-{month:02}-{date:02}T12:00:00Z,x,{:.4}\n", names[user], 0.5 + 0.4 * noise(day, user))
        })
        .collect();
    place.write("posts.csv", format!("user,time,text,score\n{rows}"));
    let edges: String =
        (0..8).flat_map(|user| [1, 3].map(|step| format!("{},{}\n", names[user], names[(user + step) % 8]))).collect();
    place.write("net.csv", format!("source,target\n{edges}"));
    let run = "discover posts.csv --scorer column --graph net.csv --bootstrap 0 --null 20 --top 1";
    let text = place.done(&format!("{run} --out found --quiet"));
    let ranking = place.read_json("found/ranking.json");
    assert_eq!(ranking["verdict"]["outcome"], "no-evidence", "{}", ranking["verdict"]);
    let verdict = &ranking["verdict"];
    assert_eq!((&verdict["test"], &verdict["common_news_excluded"]), (&"graph-test".into(), &false.into()));
    let test = &verdict["graph_test"];
    assert_eq!(verdict["p_value"], test["p_value"]);
    assert_eq!((test["draws"].as_u64(), test["accounts"].as_u64()), (Some(999), Some(8)), "{test}");
    assert!(["unguarded_p", "direction_p", "shift_p"].iter().all(|p| test[*p].is_number()), "{test}");
    assert_eq!(test["power"]["found"].as_array().unwrap().len(), 5, "{test}");
    assert!(verdict["skill"].is_object() && verdict["shifts_p_value"].is_number(), "{verdict}");
    let flat = text.replace('\n', " ");
    for part in ["No evidence that opinion travels along this graph", "Power for data like these", "never decide"] {
        assert!(flat.contains(part), "{part}: {text}");
    }
    assert!(!flat.contains("--null"), "circular shifts would not change this verdict: {text}");
    // The same from the files of the run, without circular shifts, and with groups.
    let rank = "rank found/model.json --beliefs found/log-beliefs.parquet --log-ratios --graph net.csv --format json";
    let again = place.json(rank);
    assert_eq!(again["verdict"]["graph_test"], *test);
    assert!(again["verdict"].get("shifts_p_value").is_none());
    // One group, whatever the communities: with two of four accounts this graph could not be rewired.
    let groups: String = names.iter().map(|name| format!("{name},all\n")).collect();
    place.write("groups.csv", format!("agent,group\n{groups}"));
    let grouped = place.json(&format!("{rank} --groups groups.csv"));
    let found = &grouped["verdict"]["graph_test"];
    assert_eq!((&found["groups_given"], &found["groups"]), (&true.into(), &1.into()), "{}", grouped["verdict"]);
    place.done(&format!("{run} --groups groups.csv --out found --force --quiet"));
    let run = place.read_json("found/run.json");
    assert_eq!(run["options"]["groups"], "groups.csv");
    assert_eq!(place.read_json("found/ranking.json")["verdict"]["graph_test"], grouped["verdict"]["graph_test"]);
    // Without a graph circular shifts decide, and do not exclude common news.
    let text = place.done("discover posts.csv --scorer column --bootstrap 0 --null 20 --out alone --quiet");
    let ranking = place.read_json("alone/ranking.json");
    let alone = ranking["verdict"].clone();
    assert_eq!((&alone["test"], &alone["common_news_excluded"]), (&"circular-shifts".into(), &false.into()));
    assert!(alone.get("graph_test").is_none() && alone["p_value"] == alone["shifts_p_value"]);
    assert_eq!((ranking["power"]["worlds"].as_u64(), ranking["power"]["speakers"].as_u64()), (Some(20), Some(3)));
    assert!(text.contains("Power, simulated: 20 worlds per weight"), "{text}");
    let page = page_data(&place.read("alone/report.html"))["verdict"]["tested"].to_string();
    assert!(page.contains("Power, simulated") && !page.contains("was not simulated"), "{page}");
    let again = "rank alone/model.json --beliefs alone/beliefs.parquet --null 20 --format json";
    assert_eq!(place.json(again)["power"]["worlds"], 20);
    // Where everybody follows everybody there is no graph to compare with.
    let pairs = (0..8).flat_map(|user| (0..8).filter(move |other| *other != user).map(move |other| (user, other)));
    let all: String = pairs.map(|(user, other)| format!("{},{}\n", names[user], names[other])).collect();
    place.write("all.csv", format!("source,target\n{all}"));
    let verdict = place.json(&rank.replace("net.csv", "all.csv"))["verdict"].clone();
    assert_eq!(
        (&verdict["outcome"], &verdict["graph_untestable"]["reason"]),
        (&"not-tested".into(), &"everybody-linked".into())
    );
    assert!(verdict["text"].as_str().unwrap().contains("not possible with these data"), "{verdict}");
}
