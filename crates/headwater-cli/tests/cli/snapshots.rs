//! Whole outputs of every command, for its usual and its wrong uses. Accept a change after reading it: `just snapshots`.

use crate::place::Place;

/// Everything a run prints: its exit code, standard output, standard error.
fn whole(place: &Place, arguments: &str) -> String {
    let output = place.run(arguments);
    // What is rounding differs between processors.
    let rounding = |line: &str| if line.starts_with("differ by up to") { "differ by up to …" } else { line }.to_owned();
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| rounding(line) + "\n").collect::<String>()
    };
    let code = output.status.code().unwrap();
    format!("$ headwater {arguments}\nexit {code}\n{}--- stderr\n{}", text(output.stdout), text(output.stderr))
}

/// Several runs, one after another.
fn all(place: &Place, runs: &[&str]) -> String {
    runs.iter().map(|run| whole(place, run)).collect::<Vec<_>>().join("\n")
}

/// A world of six agents, its model by the default learner, and posts with scores of their own.
fn prepared() -> Place {
    let place = Place::new();
    place.done("simulate --out w --agents 6 --edge-probability 0.5 --hypotheses 3 --steps 60 --as csv --seed 4");
    place.done("learn w/beliefs.csv --out m.json");
    place.write("bad.csv", "time,agent,yes,no\n0,ann,0.5,0.6\n");
    place.write("edges.csv", "source,target\n0,1\n1,2\n2,0\n");
    let mut posts = String::from("user,time,text,score\n");
    for day in 1..=20 {
        for (user, name) in ["ann", "bob", "cem"].iter().enumerate() {
            let score = 0.2 + 0.03 * f64::from((day * (user as i32 + 2) * 7) % 20);
            posts += &format!("{name},2024-05-{day:02}T10:00:00Z,the tram is {day},{score}\n");
        }
    }
    place.write("posts.csv", posts);
    place
}

#[test]
fn help_of_every_command() {
    let place = Place::new();
    let commands = [
        "",
        "demo",
        "discover",
        "simulate",
        "beliefs",
        "network",
        "learn",
        "rank",
        "explain",
        "compare",
        "test-graph",
        "report",
        "export",
        "reproduce",
        "score",
    ];
    for command in commands {
        let name = if command.is_empty() { "help" } else { command };
        insta::assert_snapshot!(format!("help_{name}"), whole(&place, format!("{command} --help").trim_start()));
    }
}

#[test]
fn simulate_and_learn() {
    let place = prepared();
    insta::assert_snapshot!(all(
        &place,
        &[
            "simulate --out v --agents 5 --steps 20 --seed 3",
            "simulate --out v --agents 1",
            "learn w/beliefs.csv --out n.json",
            "learn w/beliefs.csv --out n.json --method gsl",
            "learn w/beliefs.csv --out n.json --method gsl --adaptation 0.05 --window 10",
            "learn w/beliefs.csv --out n.json --window 10",
            "learn bad.csv --out n.json",
            "learn nowhere.csv --out n.json",
            "learn w/beliefs.csv --out w/beliefs.csv",
        ]
    ));
}

#[test]
fn rank_explain_and_compare() {
    let place = prepared();
    insta::assert_snapshot!(all(
        &place,
        &[
            "rank m.json",
            "rank m.json --beliefs w/beliefs.csv --bootstrap 20 --null 20 --seed 5",
            "rank m.json --graph edges.csv",
            "rank m.json --bootstrap 20",
            "rank w/beliefs.csv",
            "explain m.json --agent 0 --top 3",
            "explain m.json --agent 0 --what-if remove --top 3",
            "explain m.json --agent nobody",
            "compare w/truth.json w/truth.json",
            "compare m.json nowhere.json",
        ]
    ));
}

/// Beliefs of 24 accounts who listen to three others, as log-ratios, and who follows whom.
fn listeners() -> (String, String) {
    const BACK: [usize; 3] = [1, 5, 11];
    let mut beliefs = String::from("time,agent,ratio\n");
    let (mut opinions, mut state) = ([0.0f64; 24], 7u64);
    for step in 0..150 {
        let before = opinions;
        for account in 0..24 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let news = (state >> 33) as f64 / f64::from(1u32 << 31) - 0.5;
            let heard = BACK.map(|back| before[(account + 24 - back) % 24]).iter().sum::<f64>() / 3.0;
            opinions[account] = 0.9 * (0.3 * before[account] + 0.7 * heard) + news;
            beliefs += &format!("{step},u{account},{}\n", opinions[account]);
        }
    }
    let edges = (0..24).flat_map(|account| BACK.map(|back| format!("u{},u{account}\n", (account + 24 - back) % 24)));
    (beliefs, format!("source,target\n{}", edges.collect::<String>()))
}

#[test]
fn test_graph_and_its_refusals() {
    let place = Place::new();
    let (beliefs, edges) = listeners();
    place.write("b.csv", &beliefs);
    place.write("e.csv", &edges);
    place.write("strangers.csv", "source,target\nann,bob\n");
    place.write("more.csv", format!("{edges}ann,u0\n"));
    let halves: String =
        (0..24).map(|account| format!("u{account},{}\n", if account < 12 { "a" } else { "b" })).collect();
    place.write("groups.csv", format!("agent,group\n{halves}"));
    place.write("nobody.csv", "agent,group\nann,a\n");
    let kept =
        |line: &&str| !line.contains(",u") || line.starts_with("0,") || line.contains(",u0,") || line.contains(",u1,");
    place.write("two.csv", beliefs.lines().filter(kept).map(|line| format!("{line}\n")).collect::<String>());
    let cell = |line: &str| line.rsplit_once(',').map_or(String::new(), |(place, _)| format!("{place},0.5\n"));
    let equal: String = beliefs.lines().skip(1).map(cell).collect();
    place.write("equal.csv", format!("time,agent,ratio\n{equal}"));
    place.write(
        "star.csv",
        (1..24).fold("source,target\n".to_owned(), |text, account| format!("{text}u0,u{account}\n")),
    );
    let short: String = beliefs.lines().take(1 + 5 * 24).map(|line| format!("{line}\n")).collect();
    place.write("short.csv", short);
    place.write("once.csv", beliefs.lines().take(1 + 24).map(|line| format!("{line}\n")).collect::<String>());
    let run = |beliefs: &str, more: &str| format!("test-graph {beliefs} --log-ratios --graph {more}");
    let runs = [
        run("b.csv", "e.csv --draws 199 --power 4"),
        run("b.csv", "more.csv --draws 199 --groups groups.csv --power 0 --format csv"),
        run("b.csv", "e.csv --draws 99 --power 0 --format json"),
        run("b.csv", "star.csv --draws 99"),
        run("b.csv", "strangers.csv"),
        run("b.csv", "e.csv --groups nobody.csv"),
        run("two.csv", "e.csv"),
        run("equal.csv", "e.csv"),
        run("short.csv", "e.csv"),
        run("once.csv", "e.csv"),
        run("b.csv", "e.csv --draws 5"),
        "test-graph b.csv".to_owned(),
    ];
    insta::assert_snapshot!(all(&place, &runs.iter().map(String::as_str).collect::<Vec<_>>()));
}

#[test]
fn beliefs_score_and_network() {
    let place = prepared();
    insta::assert_snapshot!(all(
        &place,
        &[
            "beliefs posts.csv --scorer column --out b.csv",
            "beliefs posts.csv --scorer column --topic bus --out b.csv",
            "beliefs posts.csv --scorer column --topic (tram --out b.csv",
            "beliefs posts.csv --map text=body --out b.csv",
            "beliefs posts.csv --out b.npy",
            "score posts.csv --out s.csv",
            "score edges.csv --out s.csv",
            "score posts.csv --scorer roberta --out s.csv",
            "network edges.csv --hub 0 --start 0 --out n.csv",
            "network edges.csv --hub nobody --start 0 --out n.csv",
        ]
    ));
}

#[test]
fn discover_and_its_refusals() {
    let place = prepared();
    place.write("few.csv", "user,time,text,score\nann,2024-05-01,x,0.1\nbob,2024-05-02,y,0.9\n");
    place.write("key", "short");
    let run = "discover posts.csv --scorer column --bootstrap 20 --null 20";
    insta::assert_snapshot!(all(
        &place,
        &[
            &format!("{run} --out found"),
            &format!("{run} --out found --top 2"),
            &format!("{run} --out found --top 2"),
            "discover posts.csv --scorer column --bootstrap 0 --null 0 --out untested",
            &format!("{run} --graph edges.csv --out other"),
            &format!("{run} --pseudonymise key --out other"),
            &format!("{run} --weights strengths --out other"),
            "discover few.csv --scorer column --out other",
            "discover posts.csv --scorer column --topic bus --out other",
            "discover nowhere.csv --out other",
            "discover posts.csv",
        ]
    ));
}

#[test]
fn completions() {
    let place = Place::new();
    let whole = whole(&place, "completions bash");
    assert!(whole.lines().count() > 100 && whole.contains("--what-if"), "{whole}");
    // What follows changes with every option.
    insta::assert_snapshot!(whole.lines().take(8).map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn report_export_and_reproduce() {
    let place = prepared();
    insta::assert_snapshot!(all(
        &place,
        &[
            "report m.json --out p.html --quiet",
            "report m.json --out p.txt",
            "report m.json --ranking edges.csv --out p.html",
            "export m.json --out net.gexf",
            "export m.json --out net.xlsx",
            "export m.json --significant --out net.gexf",
            "reproduce figure-9 --out p",
            "completions tcsh",
            "wrong",
        ]
    ));
}
