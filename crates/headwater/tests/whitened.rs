//! The whitened learner: exact from a few dozen rounds, and honest where it is not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stderr, reason = "measurements are shown")]

use headwater::compare::{GroundTruth, compare};
use headwater::learn::gsl::Constraint;
use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::model::Status;
use headwater::simulate::{Likelihoods, WorldParams, simulate};
use headwater::{Model, Panel, Roster};

struct Outcome {
    error: f64,
    adaptation: f64,
    certified: usize,
    shares: f64,
}

fn study(params: &WorldParams) -> Outcome {
    let (panel, truth) = simulate(params).unwrap();
    let model = whitened(&panel, &WhitenedParams::default()).unwrap();
    let found = compare(&model, &GroundTruth::from_model(&truth).unwrap(), 3).unwrap();
    let certified = model.diagnostics.columns.iter().filter(|column| column.status == Status::Certified).count();
    Outcome {
        error: found.combination_error.unwrap(),
        adaptation: found.adaptation_error.unwrap(),
        certified,
        shares: found.influence_l1.unwrap_or(f64::NAN),
    }
}

fn all(base: &WorldParams, seeds: std::ops::Range<u64>, bound: f64) {
    for seed in seeds {
        let outcome = study(&WorldParams { seed, ..base.clone() });
        eprintln!(
            "seed {seed}: error {:.1e}, δ {:.1e}, {} certified, shares {:.1e}",
            outcome.error, outcome.adaptation, outcome.certified, outcome.shares
        );
        assert!(outcome.error <= bound && outcome.adaptation <= 1e-3, "seed {seed}: {:e}", outcome.error);
    }
}

#[test]
fn released_coins() {
    for steps in [80, 200] {
        let base = WorldParams { likelihoods: Likelihoods::Released, truth: 1, steps, ..WorldParams::default() };
        all(&base, 100..106, 1e-9);
    }
}

#[test]
fn appendix_coins() {
    for truth in [0, 3] {
        all(&WorldParams { steps: 60, truth, ..WorldParams::default() }, 200..204, 1e-9);
    }
}

#[test]
fn two_hypotheses_are_exact_and_certified() {
    let base = WorldParams { steps: 120, hypotheses: 2, ..WorldParams::default() };
    for seed in 300..306 {
        let outcome = study(&WorldParams { seed, ..base.clone() });
        assert!(outcome.error <= 1e-12 && outcome.certified == 20, "{seed}: {:e} {}", outcome.error, outcome.certified);
    }
}

#[test]
fn gaussian_observations_of_few_dimensions() {
    for dimension in 1..=3 {
        let likelihoods = Likelihoods::Gaussian { dimension };
        all(&WorldParams { steps: 200, likelihoods, ..WorldParams::default() }, 400..402, 1e-9);
    }
}

fn certified(model: &Model) -> usize {
    model.diagnostics.columns.iter().filter(|column| column.status == Status::Certified).count()
}

/// The panel with its numbers changed, cell by cell: (step, ratio, agent, value).
fn changed(panel: &Panel, change: impl Fn(usize, usize, usize, f64) -> f64) -> Panel {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let cells = panel.cells().iter().enumerate();
    let cells =
        cells.map(|(cell, &value)| change(cell / (agents * ratios), cell / agents % ratios, cell % agents, value));
    Panel::complete(panel.roster().clone(), cells.collect()).unwrap()
}

fn error(model: &Model, truth: &Model) -> f64 {
    compare(model, &GroundTruth::from_model(truth).unwrap(), 3).unwrap().combination_error.unwrap()
}

#[test]
fn nothing_is_certified_that_should_not_be() {
    for seed in 500..506 {
        // Gaussian observations, two hypotheses: no symbols.
        let likelihoods = Likelihoods::Gaussian { dimension: 1 };
        let base = WorldParams { hypotheses: 2, steps: 120, seed, ..WorldParams::default() };
        let (panel, _) = simulate(&WorldParams { likelihoods, ..base.clone() }).unwrap();
        assert_eq!(certified(&whitened(&panel, &WhitenedParams::default()).unwrap()), 0);
        // Every agent's series rotated by its own offset: nobody listens to anybody.
        for hypotheses in [2, 5] {
            let (panel, _) = simulate(&WorldParams { hypotheses, ..base.clone() }).unwrap();
            let rotated =
                changed(&panel, |step, ratio, agent, _| panel.frame((step + 37 * agent + 11) % 120)[(agent, ratio)]);
            assert_eq!(certified(&whitened(&rotated, &WhitenedParams::default()).unwrap()), 0);
        }
    }
}

/// Agents that see alike move along fewer directions than there are hypotheses: very short series then fit wrong weights
/// exactly, and the certificate must know.
#[test]
fn short_series_of_agents_that_see_alike_are_not_certified_wrongly() {
    let mut certain = 0;
    for steps in [14, 15, 16, 17, 20] {
        for seed in 2000..2012 {
            let likelihoods = Likelihoods::Released;
            let (panel, truth) =
                simulate(&WorldParams { likelihoods, truth: 1, steps, seed, ..WorldParams::default() }).unwrap();
            let model = whitened(&panel, &WhitenedParams::default()).unwrap();
            for (listener, column) in model.diagnostics.columns.iter().enumerate() {
                if column.status == Status::Certified {
                    let off = |speaker| {
                        model.combination.weight(speaker, listener) - truth.combination.weight(speaker, listener)
                    };
                    assert!((0..20).all(|speaker| off(speaker).abs() < 1e-5), "T = {steps}, seed {seed}, {listener}");
                    certain += 1;
                }
            }
        }
    }
    assert!(certain > 300);
}

#[test]
fn grids_and_repetition_are_never_certified() {
    // A counter and its like obey exact relations among whole numbers.
    let (panel, _) = simulate(&WorldParams { hypotheses: 2, steps: 120, ..WorldParams::default() }).unwrap();
    let counting =
        changed(&panel, |step, _, agent, value| if agent == 0 { step as f64 } else { (value * 1e4).round() / 1e4 });
    assert_eq!(certified(&whitened(&counting, &WhitenedParams::default()).unwrap()), 0);
    // An agent that speaks four times and is carried forward in between looks like a stubborn source.
    let rare = changed(
        &panel,
        |step, ratio, agent, value| {
            if agent == 3 { panel.frame(step / 30 * 30)[(3, ratio)] } else { value }
        },
    );
    let model = whitened(&rare, &WhitenedParams::default()).unwrap();
    assert_eq!(model.diagnostics.columns[3].status, Status::Statistical);
    assert!(model.diagnostics.warnings.iter().any(|text| text.contains("exactly repeated") && text.ends_with(": 3")));
}

#[test]
fn a_full_dimension_is_statistical_and_says_so() {
    let likelihoods = Likelihoods::Gaussian { dimension: 4 };
    let (panel, truth) = simulate(&WorldParams { likelihoods, steps: 400, ..WorldParams::default() }).unwrap();
    let model = whitened(&panel, &WhitenedParams::default()).unwrap();
    assert!(model.diagnostics.columns.iter().all(|column| column.status == Status::Statistical && column.rank == 4));
    assert!(error(&model, &truth) < 0.5);
    let (panel, _) = simulate(&WorldParams {
        likelihoods: Likelihoods::Gaussian { dimension: 2 },
        steps: 200,
        ..WorldParams::default()
    })
    .unwrap();
    let model = whitened(&panel, &WhitenedParams::default()).unwrap();
    assert!(model.diagnostics.columns.iter().all(|column| column.status == Status::Identified && column.rank == 2));
}

/// The standard error the columns report is the error that free fits make, and falls with the root of the steps. The
/// median over 15 worlds, because the few least certain directions of a world make most of its error.
#[test]
fn standard_errors_are_what_they_say() {
    for (dimension, hypotheses) in [(1, 2), (4, 5)] {
        let mut claims = Vec::new();
        for steps in [400, 1600] {
            let mut ratios = Vec::new();
            let mut claimed = 0.0;
            for seed in 0..15 {
                let likelihoods = Likelihoods::Gaussian { dimension };
                let base =
                    WorldParams { agents: 8, edge_probability: 0.4, hypotheses, likelihoods, ..WorldParams::default() };
                let (panel, truth) = simulate(&WorldParams { steps, seed, ..base }).unwrap();
                let free = WhitenedParams { constraint: Constraint::Free, symbols: false, ..WhitenedParams::default() };
                let model = whitened(&panel, &free).unwrap();
                let columns = &model.diagnostics.columns;
                let claim = columns.iter().map(|column| column.weight_error.unwrap().powi(2)).sum::<f64>();
                ratios.push(error(&model, &truth) / 8.0 / claim);
                claimed += claim;
                assert!(columns.iter().all(|column| column.condition.unwrap() >= 1.0));
            }
            ratios.sort_by(f64::total_cmp);
            eprintln!("dimension {dimension}, T = {steps}: squared errors over their claims {ratios:.2?}");
            assert!((0.6..1.6).contains(&ratios[7]), "{ratios:?}");
            claims.push(claimed);
        }
        assert!((0.15..0.4).contains(&(claims[1] / claims[0])), "{claims:?}");
    }
}

#[test]
fn constant_and_identical_agents_are_named() {
    let (panel, truth) = simulate(&WorldParams { steps: 150, ..WorldParams::default() }).unwrap();
    let still = changed(&panel, |_, _, agent, value| if agent == 4 { 0.25 } else { value });
    let model = whitened(&still, &WhitenedParams::default()).unwrap();
    assert!(
        model
            .diagnostics
            .warnings
            .iter()
            .any(|text| text.contains("beliefs of these agents never change") && text.ends_with(": 4"))
    );
    assert_eq!((model.combination.weight(4, 4), model.diagnostics.columns[4].status), (1.0, Status::Statistical));
    // Agent 7 says what agent 6 says: the listeners of either are not certified, and share the weight out.
    let twins =
        changed(&panel, |step, ratio, agent, value| if agent == 7 { panel.frame(step)[(6, ratio)] } else { value });
    let model = whitened(&twins, &WhitenedParams::default()).unwrap();
    assert!(model.diagnostics.warnings.iter().any(|text| text.contains("summed weight") && text.ends_with("6, 7")));
    for listener in 0..20 {
        let (six, seven) = (model.combination.weight(6, listener), model.combination.weight(7, listener));
        assert_eq!(six, seven);
        if six > 1e-6 {
            assert_ne!(model.diagnostics.columns[listener].status, Status::Certified, "{listener}");
        }
        // Who hears neither is recovered as before.
        let hears = truth.combination.weight(6, listener) + truth.combination.weight(7, listener) > 0.0;
        if !hears && listener != 7 {
            let off: f64 = (0..20)
                .map(|speaker| {
                    (model.combination.weight(speaker, listener) - truth.combination.weight(speaker, listener)).powi(2)
                })
                .sum();
            assert!(off < 1e-9, "{listener}: {off}");
        }
    }
}

#[test]
fn bad_regimes_answer() {
    // Fewer transitions than agents.
    let (panel, _) = simulate(&WorldParams { agents: 60, hypotheses: 2, steps: 30, ..WorldParams::default() }).unwrap();
    let model = whitened(&panel, &WhitenedParams::default()).unwrap();
    assert!(model.combination.column_sums().iter().all(|sum| (sum - 1.0).abs() < 1e-9));
    assert!(model.diagnostics.warnings.iter().any(|text| text.contains("cannot determine 60 weights")));
    assert_eq!(certified(&model), 0);
    // All beliefs equal, at all times or among all agents.
    let flat = changed(&panel, |_, _, _, _| 0.5);
    assert!(whitened(&flat, &WhitenedParams::default()).unwrap_err().to_string().contains("no agent's beliefs change"));
    let together = changed(&panel, |step, ratio, _, _| panel.frame(step)[(0, ratio)]);
    assert!(whitened(&together, &WhitenedParams::default()).unwrap().evidence.against(0, 1).is_finite());
    // Too short, silent, or out of range.
    assert!(whitened(&panel.slice(0..2).unwrap(), &WhitenedParams::default()).is_err());
    let (silent, _) = simulate(&WorldParams { silence: 0.2, ..WorldParams::default() }).unwrap();
    assert!(whitened(&silent, &WhitenedParams::default()).unwrap_err().to_string().contains("silent"));
    for bad in [
        WhitenedParams { adaptation: Some(1.0), ..WhitenedParams::default() },
        WhitenedParams { ridge: -1.0, ..WhitenedParams::default() },
        WhitenedParams { rounds: 0, ..WhitenedParams::default() },
        WhitenedParams { support: Some(vec![vec![99]; 60]), ..WhitenedParams::default() },
    ] {
        assert!(whitened(&panel, &bad).is_err());
    }
    // One long gap, carried forward.
    let (panel, _) = simulate(&WorldParams { steps: 200, ..WorldParams::default() }).unwrap();
    let gap = changed(
        &panel,
        |step, ratio, agent, value| {
            if (80..140).contains(&step) { panel.frame(79)[(agent, ratio)] } else { value }
        },
    );
    let model = whitened(&gap, &WhitenedParams::default()).unwrap();
    assert!(model.combination.to_columns().iter().all(|weight| weight.is_finite()));
}

#[test]
fn confounded_speakers_are_named() {
    // In a star all leaves hear the same, so noise-free contrasts cannot tell them apart; symbols can, when asked.
    let (panel, truth) = simulate(&WorldParams {
        network: headwater::simulate::NetworkShape::Star,
        agents: 8,
        steps: 100,
        likelihoods: Likelihoods::Released,
        truth: 1,
        ..WorldParams::default()
    })
    .unwrap();
    let blind = whitened(&panel, &WhitenedParams { symbols: false, ..WhitenedParams::default() }).unwrap();
    let seeing = whitened(&panel, &WhitenedParams::default()).unwrap();
    let warned =
        |model: &Model| model.diagnostics.warnings.iter().any(|text| text.contains("do not tell all their speakers"));
    assert!(warned(&blind), "{:?}", blind.diagnostics.warnings);
    assert!(!warned(&seeing) && error(&seeing, &truth) < 1e-20, "{:?}", seeing.diagnostics.warnings);
}

#[test]
fn supports_and_free_weights() {
    let (panel, truth) = simulate(&WorldParams {
        steps: 60,
        hypotheses: 2,
        agents: 60,
        edge_probability: 0.08,
        ..WorldParams::default()
    })
    .unwrap();
    let support: Vec<Vec<usize>> =
        (0..60).map(|listener| truth.combination.listener(listener).map(|(speaker, _)| speaker).collect()).collect();
    // Sixty steps of one log-ratio are too few for sixty weights, but enough for a handful.
    let model = whitened(&panel, &WhitenedParams { support: Some(support), ..WhitenedParams::default() }).unwrap();
    assert!(model.combination.is_sparse());
    assert!(error(&model, &truth) < 1e-12, "{}", error(&model, &truth));
    let (panel, truth) = simulate(&WorldParams { steps: 100, ..WorldParams::default() }).unwrap();
    let free = WhitenedParams {
        constraint: Constraint::Free,
        symbols: false,
        adaptation: Some(0.05),
        ..WhitenedParams::default()
    };
    assert!(error(&whitened(&panel, &free).unwrap(), &truth) < 1e-9);
}

#[test]
fn threads_and_names_change_nothing() {
    let (panel, _) = simulate(&WorldParams { steps: 60, ..WorldParams::default() }).unwrap();
    let [one, two] = [1, 2].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| whitened(&panel, &WhitenedParams::default()).unwrap())
    });
    assert_eq!(one, two);
    // Agents in reverse order.
    let names: Vec<String> = panel.roster().agents().iter().rev().cloned().collect();
    let roster = Roster::new(names, panel.roster().hypotheses().iter().cloned()).unwrap();
    let turned = changed(&panel, |step, ratio, agent, _| panel.frame(step)[(19 - agent, ratio)]);
    let turned = Panel::complete(roster, turned.cells().to_vec()).unwrap();
    let other = whitened(&turned, &WhitenedParams::default()).unwrap();
    assert!(error(&other, &one) < 1e-20);
}

/// Beliefs as people save them. The bounds are ten times the errors that method.md gives for T = 200.
#[test]
fn rounded_beliefs_are_never_certified() {
    let base = WorldParams { likelihoods: Likelihoods::Released, truth: 1, steps: 200, ..WorldParams::default() };
    for seed in 600..602 {
        let (panel, truth) = simulate(&WorldParams { seed, ..base.clone() }).unwrap();
        for (decimals, bound) in [(3, 1e-2), (4, 3e-4), (6, 1e-8)] {
            let quantum = 10f64.powi(-decimals);
            let rounded = changed(&panel, |_, _, _, value| (value / quantum).round() * quantum);
            let model = whitened(&rounded, &WhitenedParams::default()).unwrap();
            eprintln!(
                "seed {seed}, {decimals} decimals: error {:.1e}, {} certified",
                error(&model, &truth),
                certified(&model)
            );
            assert_eq!(certified(&model), 0);
            assert!(error(&model, &truth) <= bound);
        }
        let single = changed(&panel, |_, _, _, value| f64::from(value as f32));
        let model = whitened(&single, &WhitenedParams::default()).unwrap();
        eprintln!("seed {seed}, float32: error {:.1e}, {} certified", error(&model, &truth), certified(&model));
        assert!(error(&model, &truth) <= 1e-9 && certified(&model) == 0);
    }
}

#[test]
fn an_agent_with_an_unseen_symbol_is_named() {
    // Few steps and well-informed agents, for whom one symbol is rare: somewhere one has seen only one of its two.
    let mut met = 0;
    for seed in 1000..1020 {
        let (panel, truth) =
            simulate(&WorldParams { steps: 40, truth: 3, influential: 20, seed, ..WorldParams::default() }).unwrap();
        let model = whitened(&panel, &WhitenedParams::default()).unwrap();
        let Some(text) = model.diagnostics.warnings.iter().find(|text| text.starts_with("only one private symbol"))
        else {
            continue;
        };
        met += 1;
        let name = text.rsplit(": ").next().unwrap().split(", ").next().unwrap();
        let agent = panel.roster().agent(name).unwrap();
        assert_eq!(model.likelihoods.as_ref().unwrap()[agent], headwater::model::Likelihood::Unknown);
        // The others are exact all the same.
        let known = (0..20)
            .filter(|&other| model.likelihoods.as_ref().unwrap()[other] != headwater::model::Likelihood::Unknown);
        for other in known {
            for hypothesis in 0..5 {
                assert!(
                    (model.evidence.against(other, hypothesis) - truth.evidence.against(other, hypothesis)).abs()
                        < 1e-6
                );
            }
        }
    }
    assert!(met > 0, "twenty short worlds hold at least one such agent");
}

/// Simulated returns with a published lag-1 graph: not left-stochastic, so the ranking of edges is what counts.
#[test]
#[ignore = "needs third-party data: the folder that HEADWATER_DATA names"]
fn edges_of_the_finance_series_are_found() {
    let data = std::env::var("HEADWATER_DATA").unwrap_or_else(|_| "../../../shared/data".into());
    for name in ["1A", "1B"] {
        let path = |kind: &str| format!("{data}/finance/finance_20_{name}_{kind}.csv");
        let (series, edges) = (path("series"), path("edges"));
        let [series, edges] = [series, edges].map(|path| std::fs::read_to_string(path).unwrap());
        let names: Vec<&str> = series.lines().next().unwrap().split(',').collect();
        let rows: Vec<Vec<f64>> =
            series.lines().skip(1).map(|row| row.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
        let count = rows.len() as f64;
        let mean: Vec<f64> = (0..names.len()).map(|k| rows.iter().map(|row| row[k]).sum::<f64>() / count).collect();
        let spread: Vec<f64> = (0..names.len())
            .map(|k| (rows.iter().map(|row| (row[k] - mean[k]).powi(2)).sum::<f64>() / count).sqrt())
            .collect();
        let cells =
            rows.iter().flat_map(|row| (0..names.len()).map(|k| (row[k] - mean[k]) / spread[k]).collect::<Vec<_>>());
        let roster = Roster::new(names.iter().copied(), ["h0", "h1"]).unwrap();
        let panel = Panel::complete(roster, cells.collect()).unwrap();
        let params = WhitenedParams { constraint: Constraint::Free, ..WhitenedParams::default() };
        let model = whitened(&panel, &params).unwrap();
        let index = |name: &str| panel.roster().agent(name).unwrap();
        let triplets: Vec<(usize, usize, f64)> = edges
            .lines()
            .skip(1)
            .map(|row| row.split(',').collect::<Vec<_>>())
            .map(|cells| (index(cells[0]), index(cells[1]), 1.0))
            .collect();
        let combination = headwater::Combination::from_triplets(triplets, names.len()).unwrap();
        let mut known = GroundTruth::new(panel.roster().clone());
        known.combination = Some(combination);
        let auc = compare(&model, &known, 3).unwrap().edge_auc.unwrap();
        eprintln!("{name}: edge AUC {auc:.4}");
        assert!(auc >= 0.99, "{name}: {auc}");
    }
}

/// Above 200 speakers, listeners share products, and weights are refined normal equations: as exact, and the same bits for
/// any number of threads.
#[test]
fn columns_of_many_agents_are_exact_too() {
    let params = WorldParams {
        agents: 230,
        edge_probability: 0.05,
        hypotheses: 2,
        steps: 560,
        seed: 5,
        ..WorldParams::default()
    };
    let (panel, truth) = simulate(&params).unwrap();
    let [one, two] = [1, 2].map(|threads| {
        let fit = || whitened(&panel, &WhitenedParams::default()).unwrap();
        headwater::progress::Progress::default().over(Some(threads), fit).unwrap()
    });
    assert_eq!(one, two);
    assert!(one.diagnostics.columns.iter().all(|column| column.status == Status::Certified));
    let pairs = one.combination.to_columns().into_iter().zip(truth.combination.to_columns());
    let error: f64 = pairs.map(|(met, wanted)| (met - wanted).powi(2)).sum();
    assert!(error < 1e-20, "{error}");
}

/// Fewer steps than agents: the moments are singular, and the fit on the simplex still ends at feasible, sparse weights.
#[test]
fn fewer_steps_than_agents_have_a_sparse_fit() {
    let params = WorldParams {
        agents: 300,
        edge_probability: 0.05,
        hypotheses: 2,
        steps: 90,
        seed: 6,
        ..WorldParams::default()
    };
    let (panel, _) = simulate(&params).unwrap();
    let model = whitened(&panel, &WhitenedParams::default()).unwrap();
    for listener in 0..300 {
        let weights: Vec<f64> = (0..300).map(|speaker| model.combination.weight(speaker, listener)).collect();
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9 && weights.iter().all(|weight| *weight >= 0.0));
        assert!(weights.iter().filter(|weight| **weight > 0.0).count() <= 90);
    }
    assert!(model.diagnostics.warnings.iter().any(|warning| warning.contains("cannot determine 300 weights")));
}
