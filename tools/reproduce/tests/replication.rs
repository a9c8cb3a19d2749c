//! Replications: what they write, with and without the authors' files, stopped and continued.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater::progress::Progress;
use headwater_reproduce::{
    ClaimStatus, Error, Experiment, ExperimentRecord, Replication, ReplicationEvent, ReplicationResults,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn quick(out: &Path, data: &Path, experiments: &[Experiment]) -> Replication {
    Replication { experiments: experiments.to_vec(), quick: true, ..Replication::new(out, data) }
}

/// What a replication found, and what it told meanwhile.
fn run(replication: &Replication) -> (ReplicationResults, Vec<String>) {
    let mut told = Vec::new();
    let results = replication.run(|event| told.push(format!("{event:?}"))).unwrap();
    (results, told)
}

fn record(results: &ReplicationResults, experiment: Experiment) -> &ExperimentRecord {
    results.experiments.iter().find(|found| found.experiment == experiment).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn without_the_authors_files_what_can_run_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (out, nowhere) = (folder.path().join("p"), folder.path().join("nowhere"));
    let chosen = [Experiment::SentimentTable, Experiment::TruthRate, Experiment::Twitter];
    let (results, told) = run(&quick(&out, &nowhere, &chosen));
    let met = |event: ReplicationEvent<'_>| told.contains(&format!("{event:?}"));
    assert!(met(ReplicationEvent::NoReleasedSimulations { folder: &nowhere }), "{told:?}");
    assert!(met(ReplicationEvent::NoReleasedTwitter { experiment: Experiment::Twitter, folder: &nowhere }), "{told:?}");
    assert!(met(ReplicationEvent::Started(Experiment::TruthRate)) && told.len() == 4, "{told:?}");

    let place = out.join("truth-rate");
    let written = ["headline.json", "truth-rate.csv", "truth-rate.png", "truth-rate.svg"];
    assert_eq!(names(&place), written);
    assert!(written.iter().all(|name| results.files.contains(&place.join(name))), "{:?}", results.files);
    let rows = std::fs::read_to_string(place.join("truth-rate.csv")).unwrap();
    assert!(rows.starts_with("panel,series,x,y,low,high\n") && rows.lines().count() > 400);
    assert_eq!(record(&results, Experiment::SentimentTable).claims.len(), 3);
    assert!(results.claims().any(|(_, claim)| claim.status == ClaimStatus::Reproduced));
    assert_eq!(results.page, out.join("replication.md"));
    assert_eq!(std::fs::read_to_string(&results.page).unwrap(), results.page_text);
    let page = &results.page_text;
    assert!(page.contains("](truth-rate/truth-rate.svg)") && page.contains("quick run"), "{page}");

    // What simulates nothing has nothing to say about simulations.
    let (_, told) = run(&quick(&folder.path().join("q"), &nowhere, &[Experiment::SentimentTable]));
    assert_eq!(told, ["Started(SentimentTable)"]);

    // What is finished is not run again; elsewhere the page has copies of its figures.
    let docs = folder.path().join("docs.md");
    let again = Replication { page: Some(docs.clone()), ..quick(&out, &nowhere, &[Experiment::TruthRate]) };
    let (results, told) = run(&again);
    assert!(told.contains(&"Reused(TruthRate)".to_owned()), "{told:?}");
    assert_eq!(results.experiments.len(), 2);
    assert!(results.page_text.contains("](docs/truth-rate.svg)"));
    let copies = ["truth-rate.svg", "sentiment-table.svg"].map(|name| folder.path().join("docs").join(name));
    assert_eq!(results.files, [copies.to_vec(), vec![docs]].concat());
}

#[test]
fn a_stopped_run_keeps_its_finished_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let replication = quick(&folder.path().join("p"), &folder.path().join("nowhere"), &[Experiment::TruthRate]);
    let progress = Progress::default();
    let watched = progress.clone();
    let parts = folder.path().join("p/truth-rate/parts");
    let stopped = std::thread::scope(|scope| {
        let work = scope.spawn(|| progress.over(Some(1), || replication.run(|_| ())));
        while watched.progress().done == 0 && !work.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!((watched.progress().what.as_str(), watched.progress().total), ("truth-rate", 12));
        watched.stop();
        work.join().unwrap().unwrap()
    });
    assert!(matches!(stopped, Err(Error::Core(headwater::Error::Stopped))), "{stopped:?}");
    let saved = names(&parts);
    assert!(!saved.is_empty() && saved.len() < 12, "{saved:?}");
    // A job that is saved is not run again: a change of its result shows.
    let first = parts.join(&saved[0]);
    let mut job: Value = serde_json::from_str(&std::fs::read_to_string(&first).unwrap()).unwrap();
    job["result"]["predicted"] = 0.125.into();
    std::fs::write(&first, job.to_string()).unwrap();
    let (results, _) = run(&replication);
    assert!(!parts.exists());
    let models = record(&results, Experiment::TruthRate).numbers["models"].as_object().unwrap();
    assert_eq!(models.values().filter(|model| model["predicted"] == 0.125).count(), 1);
}

/// What the paper shows holds in a quick run on the authors' network.
#[test]
#[ignore = "needs the authors' released files: set HEADWATER_DATA"]
fn the_paper_is_reproduced_on_the_authors_network() {
    let data = PathBuf::from(std::env::var_os("HEADWATER_DATA").unwrap());
    assert!(data.join("epfl-synthetic").is_dir(), "{} has no epfl-synthetic", data.display());
    let folder = tempfile::tempdir().unwrap();
    let chosen = [Experiment::GraphError, Experiment::TruthRate, Experiment::Influences];
    let (results, _) = run(&quick(&folder.path().join("p"), &data, &chosen));
    let numbers = &record(&results, Experiment::GraphError).numbers;
    let end = |name: &str| numbers["final_error"][name]["median"].as_f64().unwrap();
    let within = |met: f64, wanted: f64| met < 2.5 * wanted && met > wanted / 2.5;
    assert!(within(end("M = 50, μ = 0.1"), 0.059) && within(end("L̄ known, μ = 0.1"), 0.047), "{numbers}");
    assert!(end("M = 1, μ = 0.001") > end("M = 10, μ = 0.01") && end("M = 10, μ = 0.01") > end("M = 50, μ = 0.1"));
    assert!(numbers["ours_by_step_80"]["high"].as_f64().unwrap() < 1e-4);
    let models = &record(&results, Experiment::TruthRate).numbers["models"];
    let rates: Vec<f64> = ["3inf", "1inf", "3inf_less", "1inf_less"]
        .map(|model| {
            let (met, wanted) = (&models[model]["rate"]["median"], &models[model]["authors"]);
            let (met, wanted) = (met.as_f64().unwrap(), wanted.as_f64().unwrap());
            assert!((met - wanted).abs() <= 0.03, "{model}: {met} against {wanted}");
            met
        })
        .to_vec();
    assert!(rates.windows(2).all(|pair| pair[0] > pair[1]), "{rates:?}");
    let shares = &record(&results, Experiment::Influences).numbers;
    for (case, count) in [("3_influential", 3), ("1_influential", 1)] {
        for learner in ["paper_shares", "our_shares"] {
            let shares: Vec<f64> =
                shares[case][learner].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).collect();
            let least = shares[..count].iter().copied().fold(f64::MAX, f64::min);
            assert!(shares[count..].iter().all(|share| *share < least), "{case} {learner}: {shares:?}");
        }
    }
}

/// People who revise an estimate: the targets of the page.
#[test]
#[ignore = "needs becker-2017 and clinicians-2023: set HEADWATER_DATA"]
fn what_experimenters_arranged_is_found() {
    let data = PathBuf::from(std::env::var_os("HEADWATER_DATA").unwrap());
    assert!(data.join("becker-2017").is_dir(), "{} has no becker-2017", data.display());
    let folder = tempfile::tempdir().unwrap();
    let (results, told) = run(&quick(&folder.path().join("p"), &data, &[Experiment::People]));
    assert_eq!(told, ["Started(People)"]);
    let found = record(&results, Experiment::People);
    let missed = found.claims.iter().find(|claim| claim.status != ClaimStatus::Reproduced);
    assert!(missed.is_none(), "{missed:?}");
    assert_eq!(found.claims.len(), 5);
    let groups = |name: &str| found.numbers[name].as_array().unwrap().len();
    assert_eq!((groups("estimates"), groups("clinicians")), (16, 42));
    let page = std::fs::read_to_string(folder.path().join("p/people.md")).unwrap();
    assert!(page.contains("](people/people.svg)") && page.contains("| Centralized |"), "{page}");
    assert!(!results.page_text.contains("people"), "the paper's page is about the paper");
}
