//! The authors' released procedure: the formulas as the scripts have them, and what they published.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stderr, reason = "measurements are shown")]

use headwater::learn::released::{ReleasedParams, as_released};
use headwater::{Panel, Roster, influence};
use std::path::PathBuf;

/// The formulas of the scripts, one number at a time, from the same first weights.
fn by_hand(series: &[Vec<f64>], first: &[Vec<f64>], params: &ReleasedParams) -> Vec<Vec<f64>> {
    let (steps, agents, keep) = (series.len(), series[0].len(), 1.0 - params.adaptation);
    let mut a = first.to_vec();
    let mut rate = params.learning_rate;
    for _ in 0..params.passes {
        let mut start = 1;
        while start < steps {
            let end = (start + params.batch).min(steps);
            let mut mean = vec![vec![0.0; agents]; agents];
            for i in start..end {
                for l in 0..agents {
                    let past: f64 = (0..i.max(1) - 1).map(|j| series[j][l]).sum::<f64>() / (i.max(2) - 1) as f64;
                    let x = series[i - 1][l] - if i == 1 { 0.0 } else { past };
                    for k in 0..agents {
                        let heard: f64 = (0..agents).map(|m| a[m][k] * series[i - 1][m]).sum();
                        let mut evidence = 0.0;
                        for j in 1..i {
                            let product: f64 = (0..agents).map(|m| a[k][m] * series[j - 1][m]).sum();
                            evidence += (series[j][k] - keep * product) / (i - 1) as f64;
                        }
                        mean[l][k] += keep * x * (series[i][k] - keep * heard - evidence) / (end - start) as f64;
                    }
                }
            }
            for l in 0..agents {
                for k in 0..agents {
                    let sign = if a[l][k] > 0.0 { 1.0 } else { -1.0 };
                    a[l][k] += rate * (mean[l][k] - params.sparsity * sign);
                }
            }
            rate *= params.decay;
            start = end;
        }
    }
    a
}

#[test]
fn the_procedure_is_the_scripts() {
    let (agents, steps) = (3, 11);
    let series: Vec<Vec<f64>> =
        (0..steps).map(|t| (0..agents).map(|k| ((t * 7 + k * 5) % 11) as f64 / 4.0 - 1.0).collect()).collect();
    let panel = Panel::complete(Roster::numbered(agents, 2).unwrap(), series.concat()).unwrap();
    let params = ReleasedParams {
        adaptation: 0.1,
        learning_rate: 0.02,
        decay: 0.99,
        batch: 4,
        passes: 3,
        ..ReleasedParams::default()
    };
    // No update at all leaves the first weights.
    let still = ReleasedParams { learning_rate: 1e-300, sparsity: 0.0, passes: 1, ..params.clone() };
    let start = as_released(&panel, &still).unwrap().combination;
    let first: Vec<Vec<f64>> = (0..agents).map(|l| (0..agents).map(|k| start.weight(l, k)).collect()).collect();
    let wanted = by_hand(&series, &first, &params);
    let model = as_released(&panel, &params).unwrap();
    for k in 0..agents {
        let sum: f64 = (0..agents).map(|l| wanted[l][k]).sum();
        for l in 0..agents {
            assert!((model.combination.weight(l, k) - wanted[l][k] / sum).abs() < 1e-12);
        }
        // The evidence comes from the weights before they were normalised, with A instead of its transpose.
        let mean = |from: usize, agent: usize| (from..from + steps - 1).map(|t| series[t][agent]).sum::<f64>() / 10.0;
        let heard: f64 = (0..agents).map(|l| wanted[k][l] * mean(0, l)).sum();
        assert!((model.evidence.against(k, 1) - (mean(1, k) - 0.9 * heard) / 0.1).abs() < 1e-10);
    }
    for bad in [
        ReleasedParams { adaptation: 0.0, ..ReleasedParams::default() },
        ReleasedParams { learning_rate: 0.0, ..ReleasedParams::default() },
        ReleasedParams { decay: 0.0, ..ReleasedParams::default() },
        ReleasedParams { sparsity: -1.0, ..ReleasedParams::default() },
        ReleasedParams { batch: 0, ..ReleasedParams::default() },
        ReleasedParams { passes: 0, ..ReleasedParams::default() },
        ReleasedParams { learning_rate: 1e3, ..ReleasedParams::default() },
    ] {
        assert!(as_released(&panel, &bad).is_err(), "{bad:?}");
    }
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let product =
        |x: &[f64], mx: f64, y: &[f64], my: f64| x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>();
    product(a, ma, b, mb) / (product(a, ma, a, ma) * product(b, mb, b, mb)).sqrt()
}

/// One column of a CSV file, by name.
fn column(text: &str, name: &str) -> Vec<f64> {
    let mut lines = text.lines();
    let place = lines.next().unwrap().split(',').position(|header| header == name).unwrap();
    lines.map(|line| line.split(',').nth(place).unwrap().parse().unwrap()).collect()
}

#[test]
#[ignore = "needs third-party data: the folder that HEADWATER_DATA names"]
fn the_published_centralities_come_out_for_two_of_three_networks() {
    let folder =
        std::env::var_os("HEADWATER_DATA").map_or_else(|| PathBuf::from("../../../shared/data"), PathBuf::from);
    let folder = folder.join("epfl-twitter");
    for (network, passes, hub) in [("journalist", 150, 25), ("ben", 250, 17)] {
        let read = |what: &str| std::fs::read_to_string(folder.join(format!("{network}_{what}.csv"))).unwrap();
        let beliefs = read("log_beliefs");
        let agents = beliefs.lines().next().unwrap().split(',').count() - 1;
        let rows =
            beliefs.lines().skip(1).flat_map(|line| line.split(',').skip(1).map(|cell| cell.parse::<f64>().unwrap()));
        let panel = Panel::complete(Roster::numbered(agents, 2).unwrap(), rows.collect()).unwrap();
        let published = column(&read("agents"), "authors_learned_perron");
        for seed in [45, 46] {
            let model = as_released(&panel, &ReleasedParams { passes, seed, ..ReleasedParams::default() }).unwrap();
            let learned = influence(&model).unwrap().centrality.values;
            let first = (0..agents).max_by(|&a, &b| learned[a].total_cmp(&learned[b])).unwrap();
            let agreed = correlation(&learned, &published);
            eprintln!("{network}, seed {seed}: correlation {agreed:.4}, first a{first}");
            assert!(agreed >= 0.98 && first == hub);
        }
    }
}
