//! Golden cases of an independent NumPy transcription (`reference/make_golden.py`), to relative 1e-10.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater::influence::{Attribution, influence};
use headwater::learn::gsl::{Gsl, GslParams, gsl};
use headwater::model::TrueHypothesis;
use headwater::{Combination, Evidence, Model, Panel, Roster};
use serde_json::Value;

struct Golden {
    case: Value,
    agents: usize,
    ratios: usize,
}

impl Golden {
    fn read(name: &str) -> Self {
        let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let agents = case["agents"].as_u64().unwrap() as usize;
        let ratios = case["hypotheses"].as_u64().unwrap() as usize - 1;
        Golden { case, agents, ratios }
    }

    /// Numbers at a path, row by row.
    fn numbers(&self, path: &[&str]) -> Vec<f64> {
        fn flatten(value: &Value, out: &mut Vec<f64>) {
            match value {
                Value::Array(items) => items.iter().for_each(|item| flatten(item, out)),
                number => out.push(number.as_f64().unwrap()),
            }
        }
        let mut out = Vec::new();
        flatten(path.iter().fold(&self.case, |value, key| &value[key]), &mut out);
        out
    }

    fn setting(&self, name: &str) -> Option<f64> {
        self.case["settings"][name].as_f64()
    }

    fn roster(&self) -> Roster {
        Roster::numbered(self.agents, self.ratios + 1).unwrap()
    }

    fn panel(&self) -> Panel {
        let rows = self.numbers(&["log_beliefs"]);
        let frame = self.agents * self.ratios;
        let cells = (0..rows.len()).map(|cell| {
            let (step, ratio, agent) = (cell / frame, cell % frame / self.agents, cell % self.agents);
            rows[step * frame + agent * self.ratios + ratio]
        });
        Panel::complete(self.roster(), cells.collect()).unwrap()
    }

    fn matrix(&self, path: &[&str]) -> Combination {
        let rows = self.numbers(path);
        let n = self.agents;
        Combination::from_columns((0..n * n).map(|cell| rows[cell % n * n + cell / n]).collect(), n).unwrap()
    }

    fn params(&self) -> GslParams {
        GslParams {
            adaptation: self.case["adaptation"].as_f64().unwrap(),
            window: self.setting("window").unwrap() as usize,
            learning_rate: self.setting("rate").unwrap(),
            batch: self.setting("batch").unwrap_or(1.0) as usize,
            sparsity: self.setting("sparsity").unwrap_or(0.0),
            ..GslParams::default()
        }
    }

    fn truth(&self) -> Model {
        let hypothesis = self.case["truth"].as_u64().unwrap() as usize;
        let (roster, combination) = (self.roster(), self.matrix(&["combination"]));
        let evidence = Evidence::from_rows(self.numbers(&["true", "evidence"]), self.agents, self.ratios).unwrap();
        let mut truth = Model::new(roster, combination, evidence, self.params().adaptation, headwater::Method::Given);
        truth.truth = Some(TrueHypothesis::new(hypothesis, 1.0));
        truth
    }
}

fn close(met: &[f64], wanted: &[f64], what: &str) {
    assert_eq!(met.len(), wanted.len(), "{what}");
    let scale = wanted.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    for (met, wanted) in met.iter().zip(wanted) {
        assert!((met - wanted).abs() <= 1e-10 * wanted.abs().max(1e-3 * scale), "{what}: {met} against {wanted}");
    }
}

const CASES: [&str; 4] = ["gsl_h1_m1", "gsl_h4_m10", "gsl_known", "gsl_batch_sparse"];

#[test]
fn learned_matrices_and_evidence() {
    for name in CASES {
        let golden = Golden::read(name);
        let panel = golden.panel();
        let mut learner = Gsl::new(golden.roster(), golden.params()).unwrap();
        if golden.case["settings"]["known_evidence"] == true {
            learner = learner.knowing(golden.truth().evidence).unwrap();
        }
        let mut streaming = learner.clone();
        while learner.advance(&panel, 7).unwrap().is_some() {}
        for step in 0..panel.steps() {
            streaming.observe(&panel.frame(step)).unwrap();
        }
        for learner in [learner, streaming] {
            let wanted = golden.matrix(&["learned", "combination"]).to_columns();
            close(&learner.combination().to_columns(), &wanted, name);
            let evidence = learner.evidence().unwrap();
            let rows: Vec<f64> = (0..golden.agents).flat_map(|agent| evidence.agent(agent).to_vec()).collect();
            close(&rows, &golden.numbers(&["learned", "evidence"]), name);
        }
    }
}

#[test]
fn centrality_influence_and_attribution() {
    for name in CASES {
        let golden = Golden::read(name);
        let truth = golden.truth();
        let found = influence(&truth).unwrap();
        close(&found.centrality.values, &golden.numbers(&["true", "centrality"]), name);
        close(&found.influence, &golden.numbers(&["true", "influence"]), name);
        close(&found.divergences.concat(), &golden.numbers(&["true", "divergence"]), name);
        let attribution = Attribution::from_model(&truth).unwrap();
        let wanted = golden.numbers(&["true", "attribution"]);
        for agent in 0..golden.agents {
            let row = &wanted[agent * golden.agents..(agent + 1) * golden.agents];
            close(&attribution.sources_of(agent), row, name);
            let column: Vec<f64> = wanted[agent..].iter().step_by(golden.agents).copied().collect();
            close(&attribution.reach_of(agent), &column, name);
        }
    }
}

#[test]
fn a_whole_model_comes_out() {
    let golden = Golden::read("gsl_h4_m10");
    let model = gsl(&golden.panel(), &golden.params()).unwrap();
    assert_eq!(model.diagnostics.steps, Some(200));
    assert!(model.innovation.is_some() && model.diagnostics.skill.is_some());
}
