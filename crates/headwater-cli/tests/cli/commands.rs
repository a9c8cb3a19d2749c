//! The program from outside: what it prints, writes and refuses.

use crate::place::Place;
use serde_json::Value;
use std::path::Path;

/// A small world in `w`.
fn with_world(arguments: &str) -> Place {
    let place = Place::new();
    place.done(&format!("simulate --out w --agents 8 --edge-probability 0.4 --steps 3000 {arguments}"));
    place
}

const LEARN: &str = "learn w/beliefs.parquet --out m.json --method gsl --adaptation 0.05";

#[test]
fn simulate_learn_rank_explain_compare() {
    let place = with_world("");
    let summary = place.json(&format!("{LEARN} --format json"));
    assert_eq!(summary["agents"], 8);
    assert_eq!(summary["verdict"]["outcome"], "not-tested");
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert_eq!(model["format"], "headwater-model/2");
    for key in ["agents", "hypotheses", "reference", "truth", "agreement", "adaptation", "method", "combination"] {
        assert!(!model[key].is_null(), "{key}");
    }
    assert_eq!(model["combination"].as_array().unwrap().len(), 8);
    assert_eq!(model["innovation"][0].as_array().unwrap().len(), 4);

    let ranking = place.json("rank m.json --format json");
    let agents = ranking["agents"].as_array().unwrap();
    let shares: f64 = agents.iter().map(|agent| agent["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    let ranks: Vec<u64> = agents.iter().map(|agent| agent["rank"].as_u64().unwrap()).collect();
    assert_eq!(ranks, (1..=8).collect::<Vec<_>>());
    assert!(agents[0].get("posts").is_none(), "what was not asked for is absent");
    assert_eq!(ranking["divergence"].as_object().unwrap().len(), 4);
    assert_eq!(place.json("rank m.json --top 2 --format json")["agents"].as_array().unwrap().len(), 2);

    let comparison = place.json("compare m.json w/truth.json");
    for key in ["combination_error", "evidence_error", "influence_l1", "edge_auc", "top_k_hit", "adaptation_error"] {
        assert!(comparison[key].is_number(), "{key}");
    }
    assert_eq!(comparison["top_k_hit"], 1.0);
    let same = place.json("compare w/truth.json w/truth.json");
    assert_eq!((&same["combination_error"], &same["influence_l1"]), (&Value::from(0.0), &Value::from(0.0)));

    let explained = place.json("explain w/truth.json --agent 0 --what-if neutral --format json");
    let origin: f64 = explained["sources"].as_array().unwrap().iter().map(|s| s["attribution"].as_f64().unwrap()).sum();
    assert!((origin - 1.0).abs() < 1e-9, "eight agents are all listed, and rows of P sum to one");
    assert!(explained["likelihoods"]["probabilities"].is_array());
    assert!(explained["what_if"]["belief_before"].as_f64() > explained["what_if"]["belief_after"].as_f64());
}

#[test]
fn every_format_of_every_result_prints() {
    let place = with_world("");
    place.done(LEARN);
    for command in ["rank m.json", "explain m.json --agent 3", "compare m.json w/truth.json", LEARN] {
        let table = place.done(&format!("{command} --format table"));
        for line in table.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let csv = place.done(&format!("{command} --format csv"));
        let width = csv.lines().next().unwrap().split(',').count();
        assert!(width >= 2 && csv.lines().count() > 2, "{csv}");
        place.json(&format!("{command} --format json"));
    }
}

#[test]
fn json_and_npz_models_say_the_same() {
    let place = with_world("");
    place.done(LEARN);
    place.done(&LEARN.replace("m.json", "m.npz"));
    assert_eq!(place.done("rank m.json --format csv"), place.done("rank m.npz --format csv"));
    assert_eq!(place.json("compare m.npz m.json")["combination_error"], 0.0);
}

#[test]
fn beliefs_in_every_format_learn_the_same() {
    let place = Place::new();
    for format in ["parquet", "csv", "npy"] {
        place.done(&format!("simulate --out {format} --agents 5 --edge-probability 0.6 --steps 300 --as {format}"));
        place.done(&format!("learn {format}/beliefs.{format} --out {format}.json --method gsl --adaptation 0.05"));
    }
    assert_eq!(place.read("parquet.json"), place.read("csv.json"));
    assert_eq!(place.read("parquet.json"), place.read("npy.json"));
    let piped = assert_cmd::Command::cargo_bin("headwater")
        .unwrap()
        .current_dir(place.folder())
        .args(["learn", "-", "--out", "piped.json", "--method", "gsl", "--adaptation", "0.05"])
        .write_stdin(place.read("csv/beliefs.csv"))
        .output()
        .unwrap();
    assert!(piped.status.success());
    assert_eq!(place.read("piped.json"), place.read("csv.json"));
    place.done("simulate --out r --agents 5 --edge-probability 0.6 --steps 300 --as csv --log-ratios");
    place.done("learn r/beliefs.csv --log-ratios --out r.json --method gsl --adaptation 0.05");
    let error = place.json("compare r.json csv.json")["combination_error"].as_f64().unwrap();
    assert!(error < 1e-20, "{error}");
}

#[test]
fn seeds_and_threads() {
    let place = Place::new();
    for (name, arguments) in [("a", "--seed 5"), ("b", "--seed 5 --threads 1"), ("c", "--seed 6")] {
        place.done(&format!("simulate --out {name} --agents 150 --steps 120 --hypotheses 3 {arguments}"));
    }
    let bytes = |name: &str| std::fs::read(place.path(name)).unwrap();
    assert_eq!(bytes("a/beliefs.parquet"), bytes("b/beliefs.parquet"));
    assert_eq!(place.read("a/truth.json"), place.read("b/truth.json"));
    assert_ne!(bytes("a/beliefs.parquet"), bytes("c/beliefs.parquet"));
    for threads in [1, 2] {
        let learn = "learn a/beliefs.parquet --method gsl --adaptation 0.05 --window 10";
        place.done(&format!("{learn} --out t{threads}.json --threads {threads}"));
    }
    assert_eq!(place.read("t1.json"), place.read("t2.json"));
}

#[test]
fn worlds_of_every_kind_are_written() {
    let place = Place::new();
    let kinds = [
        "--network star --agents 6",
        "--network preferential --agents 12 --weights random",
        "--network blocks --agents 12 --edge-probability 0.9 --blocks 2 --weights metropolis",
        "--likelihoods released --truth 1 --hypotheses 3",
        "--likelihoods gaussian:3 --influential 1",
        "--silence 0.3 --as csv",
        "--change topology:50:0.01 --change state:60:2 --change likelihoods:80",
    ];
    for (index, kind) in kinds.iter().enumerate() {
        place.done(&format!("simulate --out w{index} --steps 120 --burn-in 20 {kind}"));
        let truth: Value = serde_json::from_str(&place.read(&format!("w{index}/truth.json"))).unwrap();
        for key in ["centrality", "informativeness", "influence", "likelihoods", "combination", "adaptation"] {
            assert!(!truth[key].is_null(), "{kind}: {key}");
        }
    }
    let truth: Value = serde_json::from_str(&place.read("w6/truth.json")).unwrap();
    let steps: Vec<u64> =
        truth["changes"].as_array().unwrap().iter().map(|change| change["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [50, 60, 80, 100]);
    assert_eq!(truth["truth"], "h2");
    let rows = place.read("w5/beliefs.csv").lines().count() - 1;
    assert!((1500..1900).contains(&rows), "{rows} of 2400 cells speak");
}

#[test]
fn graphs_are_used_as_given() {
    let place = Place::new();
    place.write("g.csv", "source,target,weight\na,b,0.4\nb,b,0.6\nb,a,0.3\na,a,0.7\n");
    place.done("simulate --graph g.csv --out w --steps 200");
    let truth: Value = serde_json::from_str(&place.read("w/truth.json")).unwrap();
    assert_eq!(truth["combination"], serde_json::json!([[0.7, 0.4], [0.3, 0.6]]));
    place.write("chain.csv", "source,target\na,b\nb,c\n");
    let errors = place.refused("simulate --graph chain.csv --out x", 1);
    assert!(errors.contains("nothing \"b\" says can reach \"a\""), "{errors}");
    place.done("simulate --graph chain.csv --out w2 --steps 200 --allow-reducible");
    let table = place.done("rank w2/truth.json").replace('\n', " ");
    assert!(table.contains("not strongly connected") && table.contains("comes from a (100.0%)"), "{table}");

    // Learning on a support: only listed edges and self-weights, and the model is sparse.
    let place = with_world("--as csv");
    let truth: Value = serde_json::from_str(&place.read("w/truth.json")).unwrap();
    let mut edges = String::from("source,target\n");
    for speaker in 0..8 {
        for listener in 0..8 {
            if truth["combination"][speaker][listener].as_f64() > Some(0.0) && speaker != listener {
                edges.push_str(&format!("{speaker},{listener}\n"));
            }
        }
    }
    place.write("g.csv", &edges);
    place.done("learn w/beliefs.csv --graph g.csv --out m.json --method gsl --adaptation 0.05");
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert!(model["combination"]["sparse"].as_array().unwrap().len() <= edges.lines().count() - 1 + 8);
    let ranking = place.json("rank m.json --graph g.csv --beliefs w/beliefs.csv --format json");
    let first = &ranking["agents"][0];
    for key in ["in_degree", "pagerank", "posts", "silent_share"] {
        assert!(first[key].is_number(), "{key}");
    }
    let pagerank: f64 =
        ranking["agents"].as_array().unwrap().iter().map(|agent| agent["pagerank"].as_f64().unwrap()).sum();
    assert!((pagerank - 1.0).abs() < 1e-9);
}

/// As in `discover`: a network on a graph is learned among the agents that the graph names.
#[test]
fn agents_outside_the_graph_are_left_out() {
    let place = with_world("--silence 0.2 --hypotheses 2 --as csv");
    let ring = (0..6).map(|agent| format!("{},{agent}\n{},{agent}\n", (agent + 1) % 6, (agent + 2) % 6));
    place.write("ring.csv", format!("source,target\n{}8,1\n", ring.collect::<String>()));
    let rows = |kept: &dyn Fn(&str) -> bool| {
        let table = place.read("w/beliefs.csv");
        let (header, rows) = table.split_once('\n').unwrap();
        let kept = rows.lines().filter(|row| kept(row.split(',').nth(1).unwrap()));
        format!("{header}\n{}\n", kept.collect::<Vec<_>>().join("\n"))
    };
    place.write("six.csv", rows(&|agent| !["6", "7"].contains(&agent)));
    for method in ["--method whitened", "--method gsl --adaptation 0.05", "--rounds 5 --weights edges"] {
        let (_, told) = place.both(&format!("learn w/beliefs.csv --graph ring.csv {method} --out all.json"));
        let flat = told.replace('\n', " ");
        let named = ["(6, 7)", "(7, 6)"];
        let outside =
            |names: &&str| flat.contains(&format!("2 agents outside the graph {names}: their beliefs are left out"));
        assert!(named.iter().any(outside), "{told}");
        assert!(flat.contains("1 agent of the graph without beliefs (\"8\"): left out, with 1 edge"), "{told}");
        place.done(&format!("learn six.csv --graph ring.csv {method} --out six.json"));
        let (mut all, mut six) = (place.read_json("all.json"), place.read_json("six.json"));
        assert_eq!(all["agents"].as_array().unwrap().len(), 6);
        let warnings = |model: &mut Value| model["diagnostics"]["warnings"].take().to_string();
        assert!(warnings(&mut all).contains("outside the graph") && !warnings(&mut six).contains("outside the graph"));
        assert_eq!(all, six, "{method}");
    }
    // Whoever ranks gives the beliefs as they are.
    let (ranked, told) = place.both("rank all.json --beliefs w/beliefs.csv --format csv");
    assert!(told.contains("2 agents of the beliefs not in the model: left out"), "{told}");
    assert_eq!(ranked, place.done("rank all.json --beliefs six.csv --format csv"));
}

/// Another file of a run where a model is wanted is named for what it is.
#[test]
fn other_files_of_a_run_are_no_models() {
    let place = with_world("");
    place.done(LEARN);
    place.write("ranking.json", place.done("rank m.json --format json"));
    for command in ["rank ranking.json", "explain ranking.json --agent 0", "report ranking.json --out page.html"] {
        let told = place.refused(command, 1);
        assert!(told.contains("ranking.json: is a ranking; a model is expected, such as model.json"), "{told}");
    }
    place.done("export m.json --out network.json");
    let told = place.refused("rank network.json", 1);
    assert!(told.contains("is a network for other programs; a model is expected"), "{told}");
}

#[test]
fn known_evidence_initial_weights_batches_and_the_simplex() {
    let place = with_world("");
    place.done(&format!("{LEARN} --evidence w/truth.json"));
    let known = place.json("compare m.json w/truth.json")["combination_error"].as_f64().unwrap();
    place.done(&format!("{LEARN} --initial w/truth.json --learning-rate 1e-9"));
    let given = place.json("compare m.json w/truth.json")["combination_error"].as_f64().unwrap();
    assert!(given < 1e-6 && known > given, "{given} {known}");
    place.done(&format!("{LEARN} --constraint simplex --batch 10 --passes 2 --sparsity 0.001"));
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    for listener in 0..8 {
        let sum: f64 = (0..8).map(|speaker| model["combination"][speaker][listener].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}

#[test]
fn traces_end_at_the_model() {
    let place = with_world("");
    place.done(&format!("{LEARN} --trace t.csv --truth w/truth.json"));
    let trace = place.read("t.csv");
    let rows: Vec<&str> = trace.lines().collect();
    assert_eq!(rows[0], "step,error");
    let (step, error) = rows[rows.len() - 1].split_once(',').unwrap();
    assert_eq!(step, "2999");
    let wanted = place.json("compare m.json w/truth.json")["combination_error"].as_f64().unwrap();
    assert!((error.parse::<f64>().unwrap() - wanted).abs() < 1e-12);
    place.done(&format!("{LEARN} --trace t.csv --truth w/truth.json --trace-every 1000"));
    let steps: Vec<String> =
        place.read("t.csv").lines().skip(1).map(|row| row.split(',').next().unwrap().into()).collect();
    assert_eq!(steps, ["999", "1999", "2999"]);
    assert!(place.refused(&format!("{LEARN} --trace u.csv"), 2).contains("--truth"));
}

#[test]
fn a_checkpoint_continues_as_if_never_stopped() {
    let place = with_world("--as csv");
    let learn = "learn w/beliefs.csv --method gsl --adaptation 0.05 --passes 2";
    place.done(&format!("{learn} --out whole.json"));
    // The first 1000 steps, saved; then the whole file.
    let rows: Vec<String> = place.read("w/beliefs.csv").lines().map(str::to_owned).collect();
    place.write("head.csv", rows[..=8000].join("\n") + "\n");
    place.done("learn head.csv --method gsl --adaptation 0.05 --passes 1 --out h.json --checkpoint c.json");
    place.done("learn w/beliefs.csv --method gsl --resume c.json --out rest.json");
    place.done("learn w/beliefs.csv --method gsl --adaptation 0.05 --out once.json");
    let numbers = |name: &str| -> Value {
        let model: Value = serde_json::from_str(&place.read(name)).unwrap();
        serde_json::json!([model["combination"], model["evidence"]])
    };
    assert_eq!(numbers("rest.json"), numbers("once.json"));
    // Other options, other beliefs, other files.
    assert!(
        place
            .refused("learn w/beliefs.csv --method gsl --resume c.json --out x.json --window 5", 2)
            .contains("checkpoint")
    );
    place.done("simulate --out v --agents 8 --edge-probability 0.4 --steps 3000 --seed 2");
    let errors = place.refused("learn v/beliefs.parquet --method gsl --resume c.json --out x.json", 1);
    assert!(errors.contains("made with other beliefs"), "{errors}");
    assert!(
        place
            .refused("learn w/beliefs.csv --method gsl --resume h.json --out x.json", 1)
            .contains("not a Headwater checkpoint")
    );
    let skill = |name: &str| -> Value {
        serde_json::from_str::<Value>(&place.read(name)).unwrap()["diagnostics"]["skill"].clone()
    };
    assert_eq!(skill("rest.json"), skill("once.json"), "forecasts count from the same half");
    place.write("broken.json", place.read("c.json").replace("\"sum\":[", "\"sum\":[1.0,"));
    let errors = place.refused("learn w/beliefs.csv --method gsl --resume broken.json --out x.json", 1);
    assert!(errors.contains("is damaged"), "{errors}");
    // What a checkpoint knows it keeps: the same verdict after resuming with nothing left to learn.
    let known = "learn w/beliefs.csv --method gsl --adaptation 0.05 --passes 2 --evidence w/truth.json";
    place.done(&format!("{known} --out k.json --checkpoint k.c.json"));
    place.done("learn w/beliefs.csv --method gsl --resume k.c.json --out k2.json");
    assert_eq!(place.read("k.json"), place.read("k2.json"));
    place.write("g.csv", "source,target\n0,1\n");
    place.refused("learn w/beliefs.csv --method gsl --resume k.c.json --graph g.csv --out x.json", 2);
}

#[test]
fn tuning_beats_the_default_on_a_short_series() {
    let place = with_world("--likelihoods released");
    let output = place.run(&format!("{LEARN} --tune"));
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("tuned over 24 settings"));
    let tuned = place.json("compare m.json w/truth.json")["combination_error"].as_f64().unwrap();
    place.done(LEARN);
    let default = place.json("compare m.json w/truth.json")["combination_error"].as_f64().unwrap();
    assert!(tuned < default, "{tuned} {default}");
}

#[test]
fn a_rate_beyond_the_bound_is_warned_of_or_refused_with_numbers() {
    let place = with_world("");
    let bound = place.json(&format!("{LEARN} --format json"))["stability_bound"].as_f64().unwrap();
    let output = place.run(&format!("{LEARN} --learning-rate {}", 1.1 * bound));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("beyond the stability bound 2/((1−δ)²λ_max)"), "{errors}");
    let place = with_world("");
    let errors = place.refused(&format!("{LEARN} --learning-rate {}", 1e4 * bound), 1);
    assert!(errors.contains("diverged at step") && errors.contains("hint: use --learning-rate"), "{errors}");
    place.write("g.csv", "source,target\n0,nobody\n");
    assert!(place.refused(&format!("{LEARN} --tune --graph g.csv"), 1).contains("nobody"), "the real reason");
}

#[test]
fn intervals_and_p_values_are_there_when_asked_for() {
    let place = Place::new();
    place
        .done("simulate --out w --agents 8 --edge-probability 0.4 --hypotheses 2 --likelihoods gaussian:4 --steps 200");
    place.done("learn w/beliefs.parquet --out m.json");
    let trust = "rank m.json --beliefs w/beliefs.parquet --bootstrap 40 --null 40";
    let ranking = place.json(&format!("{trust} --format json"));
    for agent in ranking["agents"].as_array().unwrap() {
        let number = |key: &str| agent[key].as_f64().unwrap_or_else(|| panic!("{key}"));
        assert!(number("share_low") <= number("share_high") && number("rank_low") <= number("rank_high"));
        assert!((0.0..=1.0).contains(&number("p_value")) && (0.0..=1.0).contains(&number("top_k_probability")));
    }
    assert_eq!(ranking["verdict"]["supported"], true);
    assert!(ranking["verdict"]["text"].as_str().unwrap().contains("permutation test p = "));
    let edges = ranking["edges"].as_array().unwrap();
    assert!(edges.iter().all(|edge| edge["p_value"].is_number() && edge["source"] != edge["target"]));
    let again = place.json(&format!("{trust} --format json --threads 1"));
    assert_eq!(again, ranking, "seeded, whatever the threads");
    let table = place.done(trust);
    assert!(table.contains("90% share") && table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(place.refused("rank m.json --bootstrap 200", 2).contains("--beliefs"));
    // None, as in discover.
    let plain = "rank m.json --beliefs w/beliefs.parquet";
    assert_eq!(place.done(&format!("{plain} --bootstrap 0 --null 0")), place.done(plain));
    assert!(place.refused(&format!("{plain} --null 3"), 2).contains("must be 0, or from 20 to 100000"));
    // Series that nobody listened to.
    let mut rotated = String::from("time,agent,h0,h1\n");
    for step in 0..150 {
        for agent in 0..6 {
            let phase = (step * (7 + 3 * agent) + agent * agent * 13) % 101;
            let p = 0.2 + 0.006 * f64::from(phase);
            rotated.push_str(&format!("{step},{agent},{p},{}\n", 1.0 - p));
        }
    }
    place.write("noise.csv", rotated);
    place.done("learn noise.csv --out n.json");
    let verdict = place.json("rank n.json --beliefs noise.csv --null 40 --format json")["verdict"].clone();
    assert_eq!(verdict["supported"], false, "{verdict}");
    assert!(verdict["text"].as_str().unwrap().starts_with("No evidence that these agents listen"), "{verdict}");
}

#[test]
fn batches_longer_than_the_beliefs_forecast_nothing() {
    let place = with_world("");
    let errors = place.refused(&format!("{LEARN} --batch 100000"), 1);
    assert!(errors.contains("w/beliefs.parquet: 3000 time steps seen, but 100051 are needed"), "{errors}");
    // An incomplete last batch is neither learned from nor counted as forecast.
    let skill = |batch: usize| {
        place.done(&format!("{LEARN} --batch {batch}"));
        let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
        model["diagnostics"]["skill"].clone()
    };
    assert_eq!(skill(1)["steps"], 1500);
    assert_eq!(skill(1400)["steps"], 1351, "two whole batches end at step 2850, half-way is 1500");
}

#[test]
fn names_begin_no_line_of_their_own() {
    let place = Place::new();
    place.write("chain.csv", "source,target\n\"ann\nnote: forged\",bob\nbob,cem\n");
    place.done("simulate --graph chain.csv --out w --steps 200 --allow-reducible");
    let ranking = place.done("rank w/truth.json");
    assert!(ranking.contains("ann\\nnote: forged") || ranking.contains("ann\\nnote:\n"), "{ranking}");
    for text in
        [ranking, place.done("explain w/truth.json --agent bob"), place.refused("explain w/truth.json --agent x", 1)]
    {
        assert!(text.lines().all(|line| !line.starts_with("note: forged")), "{text}");
    }
}

#[test]
fn tables_are_as_wide_as_the_terminal() {
    let place = Place::new();
    let names =
        ["a_very_long_name_of_somebody_who_talks", "a_very_long_name_of_somebody_who_listens", "Bartholomew Feather"];
    place.write("g.csv", format!("source,target\n{0},{1}\n{1},{0}\n{0},{2}\n{2},{0}\n", names[0], names[1], names[2]));
    place.done("simulate --graph g.csv --out w --steps 200");
    let rank = |columns: &str| {
        let output = place.command("rank w/truth.json").env("COLUMNS", columns).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let wide = rank("200");
    assert!(names.iter().all(|name| wide.contains(name)), "{wide}");
    assert!(rank("80").lines().all(|line| line.chars().count() <= 80));
    let narrow = rank("60");
    let rows: Vec<&str> = narrow.lines().filter(|line| line.contains('%') && line.contains('…')).collect();
    assert_eq!(rows.len(), 2, "{narrow}");
    assert!(
        rows.iter().any(|row| row.contains("talks ")) && rows.iter().any(|row| row.contains("listens ")),
        "{narrow}"
    );
    // In a sentence a name is whole.
    let text = place.done(&["explain", "w/truth.json", "--agent", names[0]]);
    assert!(text.contains(&format!("\n{}: rank ", names[0])), "{text}");
}

#[test]
fn numbers_in_messages_are_short() {
    let place = with_world("");
    let told = place.refused("learn w/beliefs.parquet --out m.json --method gsl --adaptation 1e-300", 2);
    assert!(told.contains("1e-300") && !told.contains("0.0000000000"), "{told}");
}

#[test]
fn no_file_is_both_read_and_written() {
    let place = with_world("");
    let before = std::fs::read(place.path("w/beliefs.parquet")).unwrap();
    for arguments in [
        "learn w/beliefs.parquet --out w/beliefs.parquet",
        "learn w/beliefs.parquet --out w/../w/beliefs.parquet",
        "learn w/beliefs.parquet --out m.json --method gsl --adaptation 0.1 --trace m.json --truth w/truth.json",
    ] {
        assert!(place.refused(arguments, 2).contains("named twice"), "{arguments}");
    }
    assert_eq!(std::fs::read(place.path("w/beliefs.parquet")).unwrap(), before);
    let trace =
        format!("{LEARN} --trace t.csv --truth w/truth.json --checkpoint c.json").replace("m.json", "no/m.json");
    place.refused(&trace, 1);
}

#[test]
fn the_default_learner_is_exact() {
    let place = Place::new();
    for (hypotheses, steps) in [(5, 80), (2, 120)] {
        place.done(&format!("simulate --out w --hypotheses {hypotheses} --steps {steps}"));
        let summary = place.json("learn w/beliefs.parquet --out m.json --format json");
        assert_eq!((&summary["method"], &summary["certified"]), (&"whitened".into(), &20.into()));
        let found = place.json("compare m.json w/truth.json");
        assert!(found["combination_error"].as_f64().unwrap() < 1e-20, "{found}");
        assert!(found["influence_l1"].as_f64().unwrap() < 1e-6, "{found}");
        assert!(found["adaptation_error"].as_f64().unwrap() < 1e-9, "{found}");
    }
    let text = place.done("explain m.json --agent 0");
    assert!(text.contains("Private observations: probability of each symbol"), "{text}");
    let errors = place.refused("learn w/beliefs.parquet --out x.json --window 5", 2);
    assert!(errors.contains("--window is an option of --method gsl"), "{errors}");
}

#[test]
fn changes_are_followed() {
    let place = Place::new();
    place.done("simulate --out w --steps 1200 --change topology:400:0.02 --change state:1000:3 --seed 5");
    let lines = place.done("learn w/beliefs.parquet --out m.json --follow");
    let noticed: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let truth: Value = serde_json::from_str(&place.read("w/truth.json")).unwrap();
    let happened = truth["changes"].as_array().unwrap();
    assert_eq!(noticed.len(), happened.len(), "{lines}");
    for (noticed, happened) in noticed.iter().zip(happened) {
        let delay = noticed["time"].as_i64().unwrap() - happened["step"].as_i64().unwrap();
        // A turn of the state takes about 16/K steps to show; K is about 0.2 here.
        let patience = if noticed["kind"] == "state" { 150 } else { 5 };
        assert!((0..=patience).contains(&delay), "{noticed} {happened}");
        assert_eq!(noticed["kind"], happened["kind"]);
        if noticed["kind"] == "state" {
            assert_eq!((&noticed["truth"], &noticed["listeners"]), (&happened["truth"], &Value::Array(Vec::new())));
        } else {
            assert_eq!(noticed["listeners"], happened["agents"]);
        }
    }
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert_eq!(model["changes"].as_array().unwrap().len(), noticed.len());
    assert!(model["history"].as_array().unwrap().len() > noticed.len());
    let found: Value = serde_json::from_str(&place.done("compare m.json w/truth.json")).unwrap();
    assert!(found["combination_error"].as_f64().unwrap() < 1e-9);
    // Without --follow the summary has standard output to itself.
    let text = place.done("learn w/beliefs.parquet --out n.npz --recent 300");
    assert!(text.contains("Detected: 3 changes"), "{text}");
    place.done("rank n.npz");
    place.done("learn w/beliefs.parquet --out f.json --forget 0.99 --quiet --format json");
}

/// What is filled in is no change, and nothing that rests on it is called free of noise.
#[test]
fn silence_is_no_change() {
    let place = Place::new();
    place.done("simulate --out w --agents 10 --edge-probability 0.4 --steps 300 --as csv --seed 4");
    let rows = place.read("w/beliefs.csv");
    let missing = |line: &&str| !(line.starts_with("150,3,") || line.starts_with("200,"));
    let kept: Vec<&str> = rows.lines().filter(missing).collect();
    place.write("b.csv", kept.join("\n") + "\n");
    assert_eq!(place.done("learn b.csv --out m.json --follow"), "");
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert!(model["diagnostics"]["columns"].as_array().unwrap().iter().all(|column| column["status"] != "identified"));
}

/// Private observations of another kind come with symbols of their own.
#[test]
fn changed_likelihoods_are_noticed_and_learned_anew() {
    let place = Place::new();
    for seed in 50..54 {
        place.done(&format!(
            "simulate --out w --as npy --log-ratios --steps 1000 --change likelihoods:500 --seed {seed}"
        ));
        place.done("learn w/beliefs.npy --log-ratios --out m.json --follow");
        let found: Value = serde_json::from_str(&place.done("compare m.json w/truth.json")).unwrap();
        let [combination, influence] = ["combination_error", "influence_l1"].map(|key| found[key].as_f64().unwrap());
        assert!(combination < 1e-9 && influence < 1e-6, "seed {seed}: {found}");
    }
}

#[test]
fn the_released_procedure_learns_and_ranks() {
    let place = with_world("--hypotheses 2");
    let short = "learn w/beliefs.parquet --method as-released --adaptation 0.05 --passes 2 --quiet";
    let text = place.done(&format!("{short} --out m.json"));
    assert!(text.contains("learned by as-released"), "{text}");
    place.done(&format!("{short} --out n.json"));
    assert_eq!(place.read("m.json"), place.read("n.json"));
    place.done(&format!("{short} --out n.json --seed 46 --decay 0.999 --batch 10 --sparsity 0 --learning-rate 1e-4"));
    assert_ne!(place.read("m.json"), place.read("n.json"));
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert_eq!(model["method"], "as-released");
    assert!(model["diagnostics"]["warnings"][0].as_str().unwrap().contains("not for your own data"));
    let ranking: Value = serde_json::from_str(&place.done("rank m.json --format json")).unwrap();
    assert_eq!(ranking["agents"].as_array().unwrap().len(), 8);
}

#[test]
fn silence_has_its_own_learner() {
    let place = Place::new();
    place.done("simulate --out w --agents 5 --edge-probability 0.6 --hypotheses 2 --steps 150 --silence 0.3 --as csv");
    let learned: Value =
        serde_json::from_str(&place.done("learn w/beliefs.csv --out m.json --format json --rounds 15")).unwrap();
    assert_eq!(learned["method"], "state-space");
    assert!(learned["smoothing"]["noise"][0][0].as_f64().unwrap() > 0.0);
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert_eq!(
        (&model["method"], &model["diagnostics"]["smoothing"]["weights"]),
        (&"state-space".into(), &"edges".into())
    );
    let ranked: Value =
        serde_json::from_str(&place.done("rank m.json --beliefs w/beliefs.csv --bootstrap 20 --null 20 --format json"))
            .unwrap();
    assert!(ranked["agents"][0]["share_low"].is_number() && ranked["agents"][0]["p_value"].is_number());
    // The same model in the compact form gives the same ranking.
    place.done("learn w/beliefs.csv --out m.npz --rounds 15");
    assert_eq!(place.done("rank m.json --format csv"), place.done("rank m.npz --format csv"));
    // With a graph it is said which weights were taken, and why.
    place.write("edges.csv", "source,target\n0,1\n1,2\n2,3\n3,4\n4,0\n0,2\n");
    let text = place.done("learn w/beliefs.csv --out g.json --graph edges.csv --rounds 15");
    assert!(text.contains("Weights: one ") && text.contains("held-out steps"), "{text}");
    let strong: Value = serde_json::from_str(
        &place.done("learn w/beliefs.csv --out s.json --graph edges.csv --weights strengths --rounds 15 --format json"),
    )
    .unwrap();
    assert_eq!(strong["smoothing"]["strengths"].as_array().unwrap().len(), 5);
    // A common trend: of all agents, or of groups.
    place.write("groups.csv", "agent,group\n0,red\n1,red\n2,blue\n3,blue\n");
    for (common, groups) in [("network", "[0,0,0,0,0]"), ("groups.csv", "[0,0,1,1,2]")] {
        place.done(&format!("learn w/beliefs.csv --out c.json --rounds 15 --common {common}"));
        let model: Value = serde_json::from_str(&place.read("c.json")).unwrap();
        assert_eq!(model["diagnostics"]["smoothing"]["common"]["groups"].to_string(), groups);
        assert!(model["diagnostics"]["skill"]["beyond_common"].is_number());
    }
    place.write("strangers.csv", "agent,group\nnobody,red\n");
    let refused = place.refused("learn w/beliefs.csv --out x.json --common strangers.csv", 1);
    assert!(refused.contains("strangers.csv: names none of the agents"), "{refused}");
    // A sketch is quick, has no intervals, and says so.
    let output = place.run("learn w/beliefs.csv --out k.json --graph edges.csv --sketch");
    assert!(String::from_utf8_lossy(&output.stderr).contains("a sketch: "), "{output:?}");
    let sketch: Value = serde_json::from_str(&place.read("k.json")).unwrap();
    assert!(sketch["diagnostics"]["posterior"].is_null() && sketch["parameters"]["sketch"] == true, "{sketch}");
    for (arguments, wanted) in [
        ("--sketch", "a sketch is of speaker strengths on a graph"),
        ("--sketch --fit em", "cannot be used with"),
        ("--weights strengths", "need a graph"),
        ("--method whitened --shrinkage 3", "--shrinkage is an option of --method state-space"),
        ("--method whitened --common network", "--common is an option of --method state-space"),
        ("--method state-space --window 3", "--window is an option of --method gsl"),
        ("--shrinkage -1", "shrinkage is -1"),
        ("--rounds 0", "rounds is 0"),
    ] {
        let output = place.run(&format!("learn w/beliefs.csv --out x.json {arguments}"));
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(wanted), "{arguments}: {output:?}");
    }
    assert!(!place.has("x.json"));
}

#[test]
fn silence_is_carried_forward_counted_and_warned_of() {
    let place = with_world("--silence 0.2");
    let output = place.run(LEARN);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("of 24000 beliefs are missing (19.9%)"), "{errors}");
    let model: Value = serde_json::from_str(&place.read("m.json")).unwrap();
    assert!(model["diagnostics"]["warnings"][0].as_str().unwrap().contains("last belief was repeated"));
}

#[test]
fn bad_beliefs_are_refused_by_place_and_cure() {
    let place = Place::new();
    let learn = "--out m.json --method gsl --adaptation 0.05 --window 1";
    let rows: String = (0..5).map(|step| format!("{step},a,0.5,0.5\n{step},b,0.4,0.6\n")).collect();
    let head = "time,agent,yes,no\n";
    let cases = [
        (format!("{head}{rows}9,a,-0.5,1.5\n"), "line 12, column yes: found -0.5"),
        (format!("{head}{rows}9,a,NaN,0.5\n"), "line 12, column yes: found NaN"),
        (format!("{head}{rows}9,a,0.5,0.6\n"), "must sum to 1"),
        (format!("{head}{rows}9,a,1,0\n"), "1 of 22 probabilities are zero"),
        (format!("{head}{rows}4,a,0.5,0.5\n"), "line 12: agent \"a\" already has a belief at time 4"),
        ("time,agent,yes,no,mood\n0,a,0.5,0.5,glad\n".into(), "column mood: found \"glad\", which is not a number"),
        ("time,agent,yes\n0,a,1\n".into(), "1 hypothesis column(s) found"),
        (
            format!("{head}0,a,0.5,0.5\n0,b,0.5,0.5\n1,a,0.5,0.5\n1,b,0.5,0.5\n"),
            "b.csv: 2 time steps seen, but 3 are needed",
        ),
        (format!("{head}0,a,0.5,0.5\n1,a,0.5,0.5\n2,a,0.5,0.5\n"), "1 agent(s) found"),
    ];
    for (content, wanted) in cases {
        place.write("b.csv", content);
        let errors = place.refused(&format!("learn b.csv {learn}"), 1);
        assert!(errors.contains(wanted) && errors.starts_with("reading b.csv\n"), "{errors}\nwanted {wanted}");
    }
    place.write("b.csv", format!("{head}{rows}"));
    place.write("g.csv", "source,target\na,b\nzoe,a\n");
    // As in discover, agents of the graph without beliefs are left out.
    let (_, output) = place.both(&format!("learn b.csv --graph g.csv {learn}"));
    let warned = "warning: g.csv: 1 agent of the graph without beliefs (\"zoe\"): left out, with 1 edge";
    assert!(output.contains(warned), "{output}");
    place.write("g.csv", "source,target\nx,y\n");
    let errors = place.refused(&format!("learn b.csv --graph g.csv {learn}"), 1);
    assert!(errors.contains("g.csv: no edge is between two agents with beliefs"), "{errors}");
    let errors = place.refused(&format!("learn nowhere.csv {learn}"), 1);
    assert!(errors.contains("nowhere.csv: cannot read"), "{errors}");
    for (rate, adaptation, wanted) in [
        ("0.1", "0", "adaptation is 0"),
        ("0.1", "1", "adaptation is 1"),
        ("0.1", "-0.5", "adaptation is -0.5"),
        ("0", "0.1", "learning-rate is 0"),
        ("-1", "0.1", "learning-rate is -1"),
    ] {
        let command = format!("learn b.csv --out m.json --method gsl --adaptation {adaptation} --learning-rate {rate}");
        let errors = place.refused(&command, 2);
        assert!(errors.contains(wanted), "{errors}");
    }
    place.write("t.npy", b"\x93NUMPY\x01\x00");
    place.write("t.parquet", b"PAR1 and then nothing");
    for name in ["t.npy", "t.parquet"] {
        assert!(place.refused(&format!("learn {name} {learn}"), 1).contains("write it again"));
    }
    assert!(
        place
            .refused("learn b.csv --out no/such/m.json --method gsl --adaptation 0.1 --window 1", 1)
            .contains("m.json")
    );
}

/// What no test of a graph can use is refused by `rank` as by `test-graph`; what only this test cannot use leaves the others.
#[test]
fn graphs_that_cannot_be_tested_are_refused_by_cause_and_cure() {
    let place = Place::new();
    let table = |opinion: &dyn Fn(usize, usize) -> Option<f64>| -> String {
        let cells = (0..40).flat_map(|step| (0..8).map(move |agent| (step, agent)));
        let row = |(step, agent): (usize, usize)| {
            let value = opinion(step, agent)?;
            Some(format!("{step},a{agent},{value}\n"))
        };
        format!("time,agent,ratio\n{}", cells.filter_map(row).collect::<String>())
    };
    let opinion = |step: usize, agent: usize| f64::sin((step * step * 7 + agent * 31 + step * agent * 13) as f64 * 1.7);
    place.write("b.csv", table(&|step, agent| Some(opinion(step, agent))));
    place.write("two.csv", table(&|step, agent| (step == 0 || agent < 2).then(|| opinion(step, agent))));
    place.write("once.csv", table(&|step, agent| (step == 0).then(|| opinion(step, agent))));
    place.write("equal.csv", table(&|_, _| Some(0.25)));
    let edges: String = (0..8).flat_map(|one| [1, 3].map(|more| format!("a{one},a{}\n", (one + more) % 8))).collect();
    place.write("g.csv", format!("source,target\n{edges}"));
    place.write("strangers.csv", "source,target\nann,bob\nbob,cem\n");
    place.write("nobody.csv", "agent,group\nann,red\nbob,blue\n");
    place.done("learn b.csv --log-ratios --method whitened --out m.json");
    let cases = [
        ("b.csv", "strangers.csv", "", "no edge is between two agents", "source and target are names"),
        ("b.csv", "g.csv", " --groups nobody.csv", "nobody.csv: names none of the agents", "give agent,group"),
        ("two.csv", "g.csv", "", "two.csv: 2 account(s) speak at 5 steps or more", "more accounts"),
        ("once.csv", "g.csv", "", "once.csv: there is 1 time step", "more time steps"),
        ("equal.csv", "g.csv", "", "equal.csv: no account ever changes its opinion", "change over time"),
    ];
    for (beliefs, graph, more, cause, cure) in cases {
        for command in
            [format!("rank m.json --beliefs {beliefs}"), format!("test-graph {beliefs} --draws 19 --power 0")]
        {
            let errors = place.refused(&format!("{command} --log-ratios --graph {graph}{more}"), 1);
            assert!(
                errors.contains(cause) && errors.contains("hint: ") && errors.contains(cure),
                "{command}: {errors}"
            );
        }
    }
    // The order of agents in the beliefs is not that of the model.
    let lines: Vec<String> = place.read("b.csv").lines().skip(1).map(str::to_owned).collect();
    let turned = lines.chunks(8).flat_map(|step| step.iter().rev().map(|line| format!("{line}\n")));
    place.write("turned.csv", format!("time,agent,ratio\n{}", turned.collect::<String>()));
    let verdict = |beliefs: &str| {
        let ranking = place.json(&format!("rank m.json --beliefs {beliefs} --log-ratios --graph g.csv --format json"));
        ranking["verdict"].clone()
    };
    assert_eq!(verdict("turned.csv"), verdict("b.csv"));
    assert_eq!(verdict("b.csv")["test"], "graph-test");
    // Too short for this test only.
    place.write("short.csv", table(&|step, agent| (step < 6).then(|| opinion(step, agent))));
    let short = verdict("short.csv");
    assert_eq!(
        (&short["outcome"], &short["graph_untestable"]["reason"]),
        (&"not-tested".into(), &"too-few-steps".into())
    );
    place.refused("rank m.json --graph g.csv --groups nobody.csv", 2);
}

#[test]
fn wrong_usage_exits_with_two() {
    let place = Place::new();
    for arguments in [
        "",
        "no-such-command",
        "learn b.csv --out m.json --method gsl",
        "learn b.csv --out m.json --method gsl --adaptation auto",
        "learn b.csv --out m.json --method gsl --adaptation much",
        "learn b.csv --method gsl --adaptation 0.1",
        "simulate",
        "simulate --out w --change weather:5",
        "simulate --out w --likelihoods gaussian:0",
        "rank m.json --format xml",
        "rank m.json --threads 0",
        "compare m.json",
        "explain m.json --agent a --what-if explode",
        "learn b.csv --out m.json --forget 0.9 --recent 50",
        "learn b.csv --out m.json --method gsl --adaptation 0.1 --follow",
        "learn b.csv --out m.json --method as-released",
        "learn b.csv --out m.json --method as-released --adaptation 0.1 --graph e.csv",
        "learn b.csv --out m.json --window 5",
    ] {
        place.refused(arguments, 2);
    }
    let errors = place.refused("learn b.csv --out m.json --method gsl", 2);
    assert!(errors.contains("needs a number for --adaptation") && errors.contains("hint:"), "{errors}");
    for arguments in ["rank gone.json", "explain gone.json --agent a", "compare gone.json gone.json"] {
        assert!(place.refused(arguments, 1).contains("gone.json: cannot read"));
    }
    let place = with_world("");
    for (arguments, wanted) in [("--forget 1.5", "above 0 and below 1"), ("--recent 2", "at least 3 steps")] {
        let errors = place.refused(&format!("learn w/beliefs.parquet --out m.json {arguments}"), 2);
        assert!(errors.contains(wanted), "{errors}");
    }
    let errors = place.refused("explain w/truth.json --agent nobody", 1);
    assert!(errors.contains("no agent \"nobody\"") && errors.contains("known: 0, 1, 2"), "{errors}");
    for arguments in ["--adaptation 2", "--truth 9", "--silence 1", "--edge-probability 0"] {
        place.refused(&format!("simulate --out v {arguments}"), 2);
    }
    for arguments in ["--agents 1", "--hypotheses 1", "--edge-probability 0.0001"] {
        place.refused(&format!("simulate --out v {arguments}"), 1);
    }
}

#[test]
fn help_version_and_completions() {
    let place = Place::new();
    assert_eq!(place.done("--version"), format!("headwater {} (headwater-model/2)\n", env!("CARGO_PKG_VERSION")));
    for command in [
        "demo",
        "discover",
        "simulate",
        "score",
        "beliefs",
        "network",
        "learn",
        "rank",
        "explain",
        "compare",
        "reproduce",
        "completions",
    ] {
        let help = place.done(&format!("{command} --help"));
        assert!(help.contains("Example: headwater"), "{command}");
        assert!(help.contains("--threads") && help.contains("--quiet"), "{command}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(place.done(&format!("completions {shell}")).contains("headwater"));
    }
}

#[test]
fn exports_are_chosen_by_their_ending_and_whole() {
    let place = with_world("");
    let before = place.files();
    for (out, files) in [
        ("net.gexf", vec!["net.gexf"]),
        ("net.graphml", vec!["net.graphml"]),
        ("net.CSV", vec!["net.CSV", "net.nodes.CSV"]),
        ("net.parquet", vec!["net.parquet", "net.nodes.parquet"]),
        ("net.json", vec!["net.json"]),
    ] {
        assert_eq!(place.done(&format!("export w/truth.json --out {out}")), "");
        let mut wanted = [before.clone(), files.iter().map(|name| (*name).to_owned()).collect()].concat();
        wanted.sort();
        assert_eq!(place.files(), wanted);
        files.iter().for_each(|name| std::fs::remove_file(place.path(name)).unwrap());
    }
    for (arguments, code, told) in [
        ("--out net.dot", 2, ".gexf, .graphml, .csv, .parquet or .json"),
        ("--out net", 2, ".gexf, .graphml, .csv, .parquet or .json"),
        ("--out net.csv --json d3", 2, "--json needs a file that ends in .json"),
        ("--out net.gexf --significant", 2, "--ranking"),
        ("--out net.gexf --min-weight=-1", 2, "must be a number of at least 0"),
        ("--out w/truth.json", 2, "named twice"),
        ("--out no/net.gexf", 1, "there is no folder"),
        ("--out net.gexf --ranking w/truth.json", 1, "is not a ranking"),
    ] {
        let output = place.run(&format!("export w/truth.json {arguments}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
        assert!(said.contains(told), "{arguments}: {said}");
    }
    assert_eq!(place.files(), before);
    // A ranking of another world is refused, and of a table both files appear or none.
    place.write(
        "r.json",
        place.done("rank w/truth.json --format json").replace("\"agent\": \"0\"", "\"agent\": \"nobody\""),
    );
    assert_eq!(place.run("export w/truth.json --ranking r.json --out net.gexf").status.code(), Some(1));
    std::fs::create_dir(place.path("net.nodes.csv")).unwrap();
    assert_eq!(place.run("export w/truth.json --out net.csv").status.code(), Some(1));
    assert!(!place.has("net.csv") && !place.has("net.gexf"));
}

#[test]
fn quiet_means_results_only() {
    let place = with_world("");
    let output = place.run(&format!("{LEARN} --quiet"));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!output.stdout.is_empty());
}

#[test]
fn the_demo_finds_the_influencer_in_posts_and_the_network_in_beliefs() {
    let place = Place::new();
    let text = place.done("demo --out d");
    assert!(
        text.starts_with("Supported. Opinion travels along this graph more than along graphs like it: p"),
        "{text}"
    );
    assert!(text.lines().any(|line| line.starts_with("1 mira ")), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let flat = text.replace('\n', " ");
    assert!(flat.contains("The truly most influential user, mira, is ranked 1"), "{text}");
    assert!(flat.contains("100.0% of the true top 3 found"), "{text}");
    let error = flat.split("squared error of the weights ").nth(1).and_then(|rest| rest.split(' ').next());
    assert!(error.unwrap().parse::<f64>().unwrap() < 1e-20, "{text}");
    for name in [
        "posts.csv",
        "graph.csv",
        "truth.json",
        "beliefs.parquet",
        "model.json",
        "ranking.json",
        "ranking.csv",
        "edges.csv",
        "report.html",
        "network.gexf",
        "run.json",
        "exact/beliefs.parquet",
        "exact/truth.json",
        "exact/model.json",
    ] {
        assert!(place.has(&format!("d/{name}")), "{name}");
    }
    assert!(place.json("compare d/model.json d/truth.json --top 1")["top_k_hit"] == 1.0);
    assert!(flat.trim_end().ends_with(" d/report.html"), "{text}");
    assert!(place.read("d/report.html").contains("\"true\":{\"bits\":8"), "the true weights beside the learned ones");
    insta::assert_snapshot!("rank", place.done("rank d/exact/truth.json --top 5"));
    insta::assert_snapshot!("explain", place.done("explain d/exact/truth.json --agent 0 --what-if remove --top 4"));
}

/// Ctrl-C in the middle of a long run: no partial file; with a checkpoint, the state to continue from.
#[cfg(unix)]
#[test]
fn interrupts_leave_nothing_half_written() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    let place = with_world("");
    let program = assert_cmd::cargo::cargo_bin("headwater");
    // What it says is outside of its folder.
    let remarks = tempfile::NamedTempFile::new().unwrap();
    let interrupt = |arguments: &str, started: &dyn Fn() -> bool| {
        let remarks = std::fs::File::create(remarks.path()).unwrap();
        let mut child = Command::new(&program)
            .current_dir(place.folder())
            .args(arguments.split_whitespace())
            .stdout(Stdio::null())
            .stderr(remarks)
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while !started() && begin.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100));
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        child.wait().unwrap().code()
    };
    // A simulation that would take minutes.
    let hidden = |folder: &Path| std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    let folder = place.path("long");
    assert_eq!(interrupt("simulate --out long --steps 100000000", &|| hidden(&folder)), Some(130));
    assert!(!hidden(&folder), "the draft is gone");
    // A learner that would take minutes.
    let before = place.files();
    let learning = || std::fs::read_to_string(remarks.path()).is_ok_and(|said| said.contains("learning from"));
    assert_eq!(interrupt(&format!("{LEARN} --passes 100000"), &learning), Some(130));
    assert_eq!(place.files(), before);
    assert_eq!(interrupt(&format!("{LEARN} --passes 100000 --checkpoint c.json"), &learning), Some(130));
    assert!(place.has("c.json") && !place.has("m.json"));
}
