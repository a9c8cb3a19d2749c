//! Beliefs, models and truths survive the disk; what is wrong with a file is named.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater::evaluate::Significance;
use headwater::learn::posterior::SamplingParams;
use headwater::learn::state_space::StateSpaceParams;
use headwater::model::{DetectedChange, NetworkSnapshot, Track, WeightKind};
use headwater::simulate::noisy::{NoisyWorld, noisy};
use headwater::simulate::{Likelihoods, World, WorldParams, run};
use headwater::{Model, Panel, Ranking, fit};
use headwater_files::{
    BeliefsFormat, BeliefsWriter, CsvText, Edges, Grain, LoadedBeliefs, SimulatedTruth, beliefs_from_frames, edges_csv,
    model_from_bytes, model_to_bytes, read_beliefs, read_known, read_model, show_time, sides, write_model, write_truth,
};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn world(silence: f64) -> World {
    World::new(WorldParams { agents: 6, edge_probability: 0.6, steps: 40, silence, ..Default::default() }).unwrap()
}

fn write(folder: &TempDir, format: BeliefsFormat, log_ratios: bool, silence: f64) -> (PathBuf, Panel) {
    let mut world = world(silence);
    let panel = run(&mut world.clone()).unwrap();
    let path = folder.path().join(format!("beliefs.{}", format.extension()));
    let mut writer = BeliefsWriter::create(&path, format, world.roster(), 40, log_ratios).unwrap();
    for step in 0..40 {
        let frame = world.next_frame().unwrap().to_vec();
        let silent = world.silent();
        writer.write(step, &frame, &silent).unwrap();
    }
    writer.finish().unwrap().commit().unwrap();
    (path, panel)
}

#[test]
fn beliefs_survive_every_format() {
    for format in [BeliefsFormat::Csv, BeliefsFormat::Parquet, BeliefsFormat::Npy] {
        for log_ratios in [false, true] {
            for silence in [0.0, 0.3] {
                let folder = tempfile::tempdir().unwrap();
                let (path, wanted) = write(&folder, format, log_ratios, silence);
                let LoadedBeliefs { panel, zeros, grain, .. } = read_beliefs(&path, log_ratios).unwrap();
                assert_eq!((zeros, grain), (0, Grain::Double));
                assert_eq!(panel.roster().hypotheses(), wanted.roster().hypotheses());
                // Silence can hide an agent's first word, so agents may come in another order.
                for agent in 0..6 {
                    let name = &wanted.roster().agents()[agent];
                    let found = panel.roster().agent(name).unwrap();
                    for step in 0..40 {
                        assert_eq!(panel.posts(step, found), wanted.posts(step, agent));
                        for ratio in 0..4 {
                            let (met, wanted) = (panel.frame(step)[(found, ratio)], wanted.frame(step)[(agent, ratio)]);
                            // Probabilities near one cost the log-ratio a rounding or two.
                            assert!((met - wanted).abs() < 1e-14, "{format:?} {met} {wanted}");
                            assert!(!log_ratios || met == wanted, "log-ratios are exact");
                        }
                    }
                }
            }
        }
    }
}

fn text(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn complaint(content: &str) -> String {
    let (_folder, path) = text("b.csv", content);
    read_beliefs(&path, false).unwrap_err().to_string()
}

const TWO: &str = "time,agent,yes,no\n0,a,0.5,0.5\n0,b,0.4,0.6\n";

#[test]
fn csv_problems_are_named() {
    let cases = [
        ("1,a,0.5,-0.5\n", "line 4, column no: found -0.5; a probability must not be negative"),
        ("1,a,NaN,0.5\n", "line 4, column yes: found NaN"),
        ("1,a,0.5,0.4\n", "line 4, column yes…no: the probabilities sum to 0.9"),
        ("0,a,0.5,0.5\n", "line 4: agent \"a\" already has a belief at time 0"),
        ("1,a,happy,0.5\n", "line 4, column yes: found \"happy\", which is not a number"),
        ("1,a,,0.5\n", "line 4, column yes: found \"\", which is not a number"),
        ("1,a,0.5\n", "line 4: has 3 cells where the header has 4"),
        (
            "2024-01-01T00:00:00Z,a,0.5,0.5\n",
            "line 4, column time: found \"2024-01-01T00:00:00Z\"; expected a step number",
        ),
        ("soon,a,0.5,0.5\n", "line 4, column time"),
        ("1,,0.5,0.5\n", "line 4, column agent: is empty"),
        ("1,a,1,0\n1,b,1,0\n", "line 4: 2 of 8 probabilities are zero"),
        ("90000000000,a,0.5,0.5\n", "only 2 of them are present"),
    ];
    for (rows, wanted) in cases {
        let met = complaint(&format!("{TWO}{rows}"));
        assert!(met.contains(wanted) && met.contains("b.csv"), "{met}\nwanted: {wanted}");
    }
    let whole = [
        ("", "there is no column \"time\""),
        ("time,agent,yes,no\n", "holds no beliefs"),
        ("time,agent,yes\n0,a,1\n", "line 1: 1 hypothesis column(s) found (yes)"),
        ("when,agent,yes,no\n0,a,1,0\n", "there is no column \"time\" among \"when,agent,yes,no\""),
        ("time,agent,yes,no\n0,a,0.5,0.5\n1,a,0.5,0.5\n", "1 agent(s) found"),
        ("time,agent,yes,yes\n0,a,0.5,0.5\n0,b,0.5,0.5\n", "named twice"),
        ("time,agent,yes,no,posts\n0,a,0.5,0.5,-1\n", "line 2, column posts: found \"-1\""),
        ("time,agent,yes,no,posts\n0,a,0.5,0.5,0\n0,b,0.5,0.5,1\n", "these agents never speak: a"),
    ];
    for (content, wanted) in whole {
        let met = complaint(content);
        assert!(met.contains(wanted), "{met}\nwanted: {wanted}");
    }
    let gone = read_beliefs(Path::new("no/such/file.csv"), false).unwrap_err().to_string();
    assert!(gone.contains("no/such/file.csv: cannot read"), "{gone}");
}

#[test]
fn csv_of_other_people_is_read() {
    // BOM, CRLF, quotes, any column order, RFC 3339 with offsets, posts, a gap.
    let content = "\u{feff}no,posts,agent,time,yes\r\n0.25,3,\"Ann, B\",2024-03-01T00:00:00+01:00,0.75\r\n\
                   0.5,1,bob,2024-03-01T00:00:00+01:00,0.5\r\n0.5,1,bob,2024-03-02T00:00:00+01:00,0.5\r\n\
                   0.5,2,bob,2024-03-04T01:00:00+02:00,0.5\r\n";
    let (_folder, path) = text("b.csv", content);
    let panel = read_beliefs(&path, false).unwrap().panel;
    assert_eq!(panel.roster().agents(), ["Ann, B", "bob"]);
    assert_eq!(panel.roster().hypotheses(), ["no", "yes"]);
    assert_eq!(
        (panel.steps(), panel.posts(0, 0), panel.posts(1, 0), panel.posts(2, 1), panel.posts(3, 1)),
        (4, 3, 0, 0, 2)
    );
    assert!((panel.frame(0)[(0, 0)] - (1.0f64 / 3.0).ln()).abs() < 1e-15);
    assert_eq!(show_time(panel.times(), 3), "2024-03-04T01:00:00+02:00");
}

#[test]
fn rounding_is_noticed() {
    let grain = |values: [f64; 4]| {
        let rows: String = (0..4).map(|row| format!("{},{},{}\n", row / 2, row % 2, values[row])).collect();
        let (_folder, path) = text("b.csv", &format!("time,agent,h1\n{rows}"));
        read_beliefs(&path, true).unwrap().grain
    };
    assert_eq!(grain([0.123, -1.5, 12.25, 7.0]), Grain::Decimals(3));
    assert_eq!(grain([0.123456, -1.5, 12.25, 7.0]), Grain::Decimals(6));
    assert_eq!(grain([f64::from(0.1f32), f64::from(1.7f32), 2.0, 3.0]), Grain::Single);
    assert_eq!(grain([0.1f64.sqrt(), -1.5, 12.25, 7.0]), Grain::Double);
}

#[test]
fn a_few_zeros_are_raised_and_counted() {
    let mut content = String::from("time,agent,yes,no\n");
    for step in 0..100 {
        content.push_str(&format!("{step},a,0.5,0.5\n{step},b,0.4,0.6\n"));
    }
    content.push_str("100,a,1,0\n");
    let (_folder, path) = text("b.csv", &content);
    let beliefs = read_beliefs(&path, false).unwrap();
    assert_eq!((beliefs.zeros, beliefs.cells), (1, 402));
    assert!((beliefs.panel.frame(100)[(0, 0)] - 1e12f64.ln()).abs() < 1e-12);
}

#[test]
fn broken_binary_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for format in [BeliefsFormat::Parquet, BeliefsFormat::Npy] {
        let (path, _) = write(&folder, format, false, 0.0);
        let bytes = std::fs::read(&path).unwrap();
        for keep in [0, 5, 60, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..keep]).unwrap();
            let met = read_beliefs(&path, false).unwrap_err().to_string();
            assert!(met.contains("write it again"), "{met}");
        }
    }
}

/// A `.npy` file as NumPy writes it, without NumPy.
fn npy(folder: &TempDir, descr: &str, fortran: bool, shape: &str, body: &[u8]) -> PathBuf {
    let fortran = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(body);
    let path = folder.path().join("x.npy");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn arrays_of_every_kind_are_read() {
    let folder = tempfile::tempdir().unwrap();
    // Two steps, two agents, two hypotheses.
    let cells = [0.25, 0.75, 0.5, 0.5, 0.125, 0.875, f64::NAN, f64::NAN];
    let wanted = [(0.25f64 / 0.75).ln(), 0.0, (0.125f64 / 0.875).ln(), 0.0];
    let order: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];
    let little: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
    let big: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
    let single: Vec<u8> = cells.iter().flat_map(|cell| (*cell as f32).to_le_bytes()).collect();
    let columns: Vec<u8> = order.iter().flat_map(|&cell| cells[cell].to_le_bytes()).collect();
    for (descr, fortran, body) in
        [("<f8", false, little), (">f8", false, big), ("<f4", false, single), ("<f8", true, columns)]
    {
        let panel = read_beliefs(&npy(&folder, descr, fortran, "(2, 2, 2)", &body), false).unwrap().panel;
        let met: Vec<f64> = (0..2).flat_map(|step| [0, 1].map(|agent| panel.frame(step)[(agent, 0)])).collect();
        assert!(met.iter().zip(wanted).all(|(met, wanted)| (met - wanted).abs() < 1e-6), "{descr} {met:?}");
        assert_eq!((panel.posts(1, 0), panel.posts(1, 1)), (1, 0));
    }
    let ratios: Vec<u8> = [0.1, 0.2, 0.3, 0.4].iter().flat_map(|cell: &f64| cell.to_le_bytes()).collect();
    let panel = read_beliefs(&npy(&folder, "<f8", false, "(2, 2)", &ratios), true).unwrap().panel;
    assert_eq!((panel.ratios(), panel.frame(1)[(1, 0)]), (1, 0.4));
}

#[test]
fn array_problems_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let say = |shape: &str, cells: &[f64]| {
        let body: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
        read_beliefs(&npy(&folder, "<f8", false, shape, &body), false).unwrap_err().to_string()
    };
    assert!(say("(1, 2, 2)", &[0.5, 0.5, 0.5, -0.5]).contains("cell [0, 1]: hypothesis h1: found -0.5"));
    assert!(say("(1, 2, 2)", &[0.5, 0.5, 0.5, f64::NAN]).contains("cell [0, 1]: hypothesis h1: found NaN"));
    assert!(say("(1, 2, 2)", &[0.5, 0.5, f64::NAN, f64::NAN]).contains("never speak: 1"));
    assert!(say("(4,)", &[0.5; 4]).contains("has shape [4]; expected (T, N, number of hypotheses)"));
    assert!(say("(4, 1, 1)", &[1.0; 4]).contains("1 hypothesis column(s)"));
    assert!(say("(0, 2, 2)", &[]).contains("no time steps"));
    assert!(say("(99999999999, 99999999999, 2)", &[0.5]).contains("truncated or damaged"));
    let path = npy(&folder, "|O", false, "(1,)", b"x");
    assert!(read_beliefs(&path, false).unwrap_err().to_string().contains("\"|O\""));
}

#[test]
fn truths_and_models_survive_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    for likelihoods in [Likelihoods::Appendix, Likelihoods::Gaussian { dimension: 2 }] {
        let model = World::new(WorldParams { agents: 7, edge_probability: 0.5, likelihoods, ..Default::default() })
            .unwrap()
            .truth();
        let same = |met: &Model, wanted: &Model| {
            assert_eq!(met.combination.to_columns(), wanted.combination.to_columns());
            assert_eq!(
                (&met.roster, &met.evidence, &met.innovation, &met.likelihoods),
                (&wanted.roster, &wanted.evidence, &wanted.innovation, &wanted.likelihoods)
            );
            assert_eq!((met.truth, met.adaptation), (wanted.truth, wanted.adaptation));
        };
        let mut dense = model.clone();
        dense.combination = headwater::Combination::from_columns(model.combination.to_columns(), 7).unwrap();
        for name in ["m.json", "m.npz"] {
            for wanted in [&model, &dense] {
                let path = folder.path().join(name);
                write_model(&path, wanted).unwrap();
                let met = read_model(&path).unwrap();
                same(&met, wanted);
                assert_eq!(met.combination.is_sparse(), wanted.combination.is_sparse());
            }
        }
        let path = folder.path().join("truth.json");
        write_truth(&path, &SimulatedTruth { model: model.clone(), changes: Vec::new() }).unwrap().commit().unwrap();
        same(&read_model(&path).unwrap(), &model);
        let known = read_known(&path).unwrap();
        assert!((known.share.unwrap().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn what_a_tracked_model_went_through_survives_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = World::new(WorldParams { agents: 4, edge_probability: 0.8, ..Default::default() }).unwrap().truth();
    let past = |step| NetworkSnapshot::new(step, model.combination.clone(), model.evidence.clone());
    let mut track = Track::default();
    track.changes = vec![DetectedChange::topology(7, 6, vec![1, 3]), DetectedChange::state(20, 12, 2)];
    track.history = vec![past(5), past(30)];
    track.times = vec![(7, "2020-01-07T00:00:00Z".into()), (20, "20".into()), (5, "5".into()), (30, "30".into())];
    model.track = track.clone();
    for name in ["m.json", "m.npz"] {
        let path = folder.path().join(name);
        write_model(&path, &model).unwrap();
        let met = read_model(&path).unwrap().track;
        assert_eq!((&met.changes, met.history.len()), (&track.changes, 2));
        assert_eq!(met.history[1].evidence, model.evidence);
        assert_eq!(met.history[1].combination.to_columns(), model.combination.to_columns());
        assert_eq!((met.time(7), met.time(30), met.time(8)), ("2020-01-07T00:00:00Z".into(), "30".into(), "8".into()));
    }
    let text = std::fs::read_to_string(folder.path().join("m.json")).unwrap();
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, text.replace("\"kind\":\"topology\"", "\"kind\":\"weather\"")).unwrap();
    assert!(read_model(&broken).unwrap_err().to_string().contains("weather"));
}

/// Written by version 0.1.0; must load in every later one.
#[test]
fn the_first_model_format_still_loads() {
    for name in ["model-1-dense.json", "model-1-sparse.json", "model-1.npz"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kept").join(name);
        let model = read_model(&path).unwrap();
        assert_eq!(model.roster.agents(), ["ann", "bob", "cyd"]);
        assert_eq!(model.combination.weight(0, 1), 0.5);
        assert_eq!((model.evidence.against(0, 1), model.evidence.against(2, 2)), (0.5, -0.25));
        assert_eq!(model.truth.unwrap().hypothesis, 1);
        assert_eq!(model.method, headwater::Method::Unknown { name: "gsl".into() });
        let warning = model.diagnostics.warnings.last().unwrap();
        assert!(warning.contains("headwater-model/1") && warning.contains("learning_rate, batch"), "{warning}");
    }
}

#[test]
fn broken_models_are_named() {
    let good = std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kept/model-1-dense.json"))
        .unwrap();
    let say = |content: &str| {
        let (_folder, path) = text("m.json", content);
        read_model(&path).unwrap_err().to_string()
    };
    let change = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        say(&good.replace(from, to))
    };
    assert!(say("{").contains("line 1, column 1: is not a model"));
    assert!(change("headwater-model/1", "headwater-model/9").contains("\"headwater-model/9\""));
    assert!(change("\"adaptation\":0.1", "\"adaptation\":1.5").contains("adaptation is 1.5"));
    assert!(change("\"adaptation\":0.1,", "").contains("has no \"adaptation\""));
    assert!(change("\"truth\":\"no\"", "\"truth\":\"perhaps\"").contains("no hypothesis \"perhaps\""));
    assert!(change("[[0.5,0.5,0.0]", "[[0.5,0.5]").contains("\"combination\" must be 3×3"));
    let (_folder, path) = text("m.npz", "PK nonsense");
    assert!(read_model(&path).unwrap_err().to_string().contains("not a whole .npz file"));
}

#[test]
fn models_survive_as_bytes() {
    let mut tracked = world(0.0).truth();
    tracked.track.changes = vec![DetectedChange::state(9, 8, 1)];
    tracked.track.times = vec![(9, "2024-01-01T00:00:00Z".into())];
    for model in [world(0.0).truth(), tracked] {
        assert_eq!(model_from_bytes(&model_to_bytes(&model).unwrap()).unwrap(), model);
    }
    assert!(model_from_bytes(b"PK nonsense").unwrap_err().to_string().contains("not a whole .npz"));
}

#[test]
fn arrays_in_memory_pass_the_same_door() {
    let folder = tempfile::tempdir().unwrap();
    let (path, wanted) = write(&folder, BeliefsFormat::Npy, true, 0.3);
    let from_disk = read_beliefs(&path, true).unwrap().panel;
    let name = Path::new("beliefs");
    let read = |first: usize, out: &mut [f64]| {
        for (position, cell) in out.iter_mut().enumerate() {
            let (step, agent, ratio) = (first + position / 24, position / 4 % 6, position % 4);
            let spoken = wanted.posts(step, agent) > 0;
            *cell = if spoken { wanted.frame(step)[(agent, ratio)] } else { f64::NAN };
        }
        Ok(())
    };
    assert_eq!(beliefs_from_frames(name, (40, 6, 4), true, None, read).unwrap().panel, from_disk);
    let names = (("abcdef".chars().map(String::from)).collect(), ["r", "s"].map(String::from).to_vec());
    let problem = beliefs_from_frames(name, (40, 6, 4), true, Some(names), read).unwrap_err().to_string();
    assert_eq!(problem, "beliefs: names: found 6 agents and 2 hypotheses, expected 6 and 5");
    assert_eq!(sides(&[3, 4], false).unwrap_err(), "shape [3, 4]; expected (T, N, number of hypotheses)");
}

#[test]
fn edges_in_memory_pass_the_same_checks() {
    let name = Path::new("graph");
    let edge = |source: &str, target: &str, weight| (source.to_owned(), target.to_owned(), weight);
    let say = |rows: Vec<(String, String, Option<f64>)>| Edges::from_rows(name, rows).unwrap_err().to_string();
    assert_eq!(Edges::from_rows(name, [edge("a", "b", None), edge("a", "b", None)]).unwrap().repeated, 1);
    assert_eq!(say(vec![]), "graph: holds no edges");
    assert!(say(vec![edge("a", "", None)]).contains("graph, line 1, column target: is empty"));
    assert!(say(vec![edge("a", "b", Some(f64::NAN))]).contains("line 1, column weight: found NaN"));
    assert!(say(vec![edge("a", "b", Some(1.0)), edge("a", "b", Some(1.0))]).contains("is already on line 1"));
}

#[test]
fn edges_come_with_intervals_and_probabilities_where_the_posterior_was_sampled() {
    let world = NoisyWorld { agents: 4, steps: 60, noise: 0.2, edge_probability: 0.5, ..NoisyWorld::default() };
    let (panel, _) = noisy(&world).unwrap();
    let sampling = Some(SamplingParams { draws: 20, ..SamplingParams::default() });
    let params = StateSpaceParams { sampling, weights: Some(WeightKind::Edges), ..StateSpaceParams::default() };
    let mut model = fit::state_space(&panel, &params).unwrap();
    // Twenty draws are too few; the table is about what is shown when there are enough.
    let posterior = model.diagnostics.posterior.as_mut().unwrap();
    (posterior.effective_size, posterior.r_hat) = (50.0, 1.0);
    let table = |model: &Model| edges_csv(&Ranking::new(model).unwrap(), model, CsvText::Raw).unwrap();
    assert!(table(&model).starts_with("source,target,weight\n"));
    model.diagnostics.posterior.as_mut().unwrap().effective_size = 100.0;
    let text = table(&model);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("source,target,weight,low,high,probability"));
    let rows: Vec<Vec<f64>> =
        lines.map(|line| line.split(',').skip(2).map(|cell| cell.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), 12);
    for row in &rows {
        let [weight, low, high, probability] = row[..] else { panic!("{row:?}") };
        assert!((0.0..=1.0).contains(&probability) && low <= high && weight <= probability + 1e-9, "{row:?}");
        assert_eq!(low == 0.0, probability < 0.95, "{row:?}");
    }
    // With circular shifts they stand beside the p-values.
    let mut ranking = Ranking::new(&model).unwrap();
    ranking.add_significance(&Significance::new(vec![0.5; 4], vec![0.25; 16], Some(0.5), 3), &model).unwrap();
    let tested = edges_csv(&ranking, &model, CsvText::Raw).unwrap();
    let mut lines = tested.lines();
    assert_eq!(lines.next(), Some("source,target,weight,p_value,significant,low,high,probability"));
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[3..5], ["0.25", "false"], "{line}");
        let without = [&cells[..3], &cells[5..]].concat().join(",");
        assert!(text.lines().any(|line| line == without), "{line}");
    }
    let json = serde_json::to_value(&ranking).unwrap();
    assert!(json["edges"][0]["low"].is_number() && json["edges"][0]["probability"].is_number());
    assert_eq!(serde_json::from_value::<Ranking>(json).unwrap().edges, ranking.edges);
    // The model file keeps them.
    let bytes = model_to_bytes(&model).unwrap();
    assert_eq!(model_from_bytes(&bytes).unwrap(), model);
}
