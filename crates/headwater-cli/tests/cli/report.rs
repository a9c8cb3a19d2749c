//! The page by the command line: it shows what `rank` prints, writes one file, and refuses what does not fit.

use crate::place::{Place, files, page_data};
use serde_json::Value;

/// A world of eight agents with silence, its model and its ranking.
fn with_model() -> Place {
    let place = Place::new();
    place.done(
        "simulate --out world --agents 8 --edge-probability 0.4 --hypotheses 2 --steps 150 --silence 0.1 --as csv",
    );
    place.done("learn world/beliefs.csv --out model.json --rounds 10");
    place
}

fn page_of(place: &Place, name: &str) -> Value {
    page_data(&place.read(name))
}

#[test]
fn the_page_shows_what_rank_prints() {
    let place = with_model();
    let sure = "--beliefs world/beliefs.csv --bootstrap 20 --null 20";
    let ranking = place.done(&format!("rank model.json {sure} --format json"));
    std::fs::write(place.path("ranking.json"), &ranking).unwrap();
    let before = place.files();
    let all = "report model.json --ranking ranking.json --beliefs world/beliefs.csv --truth world/truth.json";
    place.done(&format!("{all} --out p.html"));
    let mut after = before.clone();
    after.push("p.html".to_owned());
    after.sort();
    assert_eq!(place.files(), after, "one file is written");
    let page = page_of(&place, "p.html");
    let mut wanted: Value = serde_json::from_str(&ranking).unwrap();
    let edges = wanted.as_object_mut().unwrap().remove("edges").unwrap();
    assert_eq!(page["ranking"], wanted);
    assert_eq!(page["network"]["edges"], edges.as_array().unwrap().len());
    assert!(page["network"]["p_values"].is_object() && page["heat"]["true"].is_object());
    assert_eq!(page["verdict"]["text"], wanted["verdict"]["text"]);
    assert_eq!(page["cards"].as_array().unwrap().len(), 8);
    // The same bytes again, whatever the threads.
    place.done(&format!("{all} --out q.html --threads 1"));
    assert_eq!(place.read("p.html"), place.read("q.html"));

    // Without a ranking: the plain one, with what the beliefs and the graph add.
    place.done("report model.json --beliefs world/beliefs.csv --out q.html --title A&B");
    let plain: Value =
        serde_json::from_str(&place.done("rank model.json --beliefs world/beliefs.csv --format json")).unwrap();
    assert_eq!(page_of(&place, "q.html")["ranking"], plain);
    assert_eq!(page_of(&place, "q.html")["title"], "A&B");
    place.done("report model.json --out q.html");
    let page = page_of(&place, "q.html");
    assert!(page.get("opinions").is_none() && page["heat"].get("true").is_none());

    // Figures, with the error while learning.
    place.done("simulate --out exact --agents 8 --steps 100");
    place.done("learn exact/beliefs.parquet --out gsl.json --method gsl --adaptation 0.05 --trace t.csv --truth exact/truth.json");
    place.done("report gsl.json --beliefs exact/beliefs.parquet --truth exact/truth.json --out q.html --figures figures --trace t.csv");
    let mut drawn: Vec<String> = ["errors", "heat", "network", "opinions", "ranking"]
        .iter()
        .flat_map(|name| [format!("{name}.png"), format!("{name}.svg")])
        .collect();
    drawn.sort();
    assert_eq!(files(&place.path("figures")), drawn);
    // Log-ratios and arrays.
    place.done("simulate --out arrays --agents 8 --steps 100 --as npy");
    place.done("learn arrays/beliefs.npy --out arrays.json");
    place.done("report arrays.json --beliefs arrays/beliefs.npy --out q.html");
    assert_eq!(page_of(&place, "q.html")["opinions"]["times"].as_array().unwrap().len(), 100);
}

#[test]
fn what_does_not_fit_is_refused_by_cause_and_cure() {
    let place = with_model();
    let write = |name: &str, text: &str| std::fs::write(place.path(name), text).unwrap();
    let refused = |arguments: &str, code: i32, wanted: &[&str]| {
        let errors = place.refused(&format!("report {arguments}"), code);
        wanted.iter().for_each(|part| assert!(errors.contains(part), "{arguments}: {errors}"));
    };
    let ranking = place.done("rank model.json --format json");
    write("others.json", &ranking.replace("\"agent\": \"3\"", "\"agent\": \"mallory\""));
    refused("model.json --ranking others.json --out p.html", 1, &["others.json", "no agent \"mallory\"", "hint: "]);
    write("few.json", &place.done("rank model.json --format json --top 2"));
    refused("model.json --ranking few.json --out p.html", 1, &["2 of 8 agents", "without --top"]);
    write("table.csv", &place.done("rank model.json --format csv"));
    refused("model.json --ranking table.csv --out p.html", 1, &["table.csv: is not a ranking", "--format json"]);
    refused("model.json --ranking model.json --out p.html", 1, &["model.json: is not a ranking"]);
    refused("model.json --ranking none.json --out p.html", 1, &["none.json: cannot read"]);
    refused("model.json --out p.pdf", 2, &["p.pdf", "FILE.html"]);
    refused("model.json --out no/such/p.html", 1, &["there is no folder"]);
    refused("model.json --run model.json --out p.html", 1, &["not the record of a run", "run.json"]);
    refused("model.json --log-ratios --out p.html", 2, &["--beliefs"]);
    refused("none.json --out p.html", 1, &["none.json"]);
    write("edges.csv", "source,target\nann,bob\n");
    refused("model.json --graph edges.csv --out p.html", 1, &["no edge is between two agents with beliefs"]);
    write("strange.csv", "time,agent,h0,h1\n0,ann,0.5,0.5\n0,bob,0.4,0.6\n");
    refused("model.json --beliefs strange.csv --out p.html", 1, &["strange.csv"]);
    write("ranking.json", &ranking);
    refused(
        "model.json --ranking ranking.json --beliefs strange.csv --out p.html",
        1,
        &["strange.csv", "not in the model"],
    );
    write("p2.html", "x");
    refused("p2.html --out p2.html", 2, &["twice"]);
    assert_eq!(place.read("p2.html"), "x");
}
