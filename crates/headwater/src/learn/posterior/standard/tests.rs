use super::*;
use crate::learn::posterior::filter::Audience;
use crate::learn::posterior::strengths::prepare;
use crate::simulate::crowd::{Crowd, crowd};
use crate::simulate::noisy::{NoisyWorld, noisy};

fn world(agents: usize) -> (StrengthsTarget, Vec<f64>) {
    let world = NoisyWorld { agents, steps: 30, edge_probability: 0.6, ..NoisyWorld::strengths() };
    let (panel, truth) = noisy(&world).unwrap();
    let support: Vec<Vec<usize>> = (0..agents)
        .map(|listener| truth.combination.listener(listener).map(|(speaker, _)| speaker).collect())
        .collect();
    let prepared = prepare(&panel, 30, &support, None);
    let point = prepared.start.iter().enumerate().map(|(place, start)| start + 0.3 * (place as f64).sin()).collect();
    (prepared.target, point)
}

fn standard(target: &StrengthsTarget, point: &[f64]) -> StandardTarget {
    let cells = target.ratios.len() * target.ratio(0).levels().len();
    let unknown = (0..target.size()).map(|place| 0.5 + 0.5 * (0.9 * place as f64).sin()).collect();
    StandardTarget::new(target, point, unknown, (0..cells).map(|cell| 50.0 + 30.0 * (cell as f64).cos()).collect())
        .unwrap()
}

#[test]
fn the_gradient_is_that_of_the_density() {
    let (mut target, point) = world(4);
    for diagonal in [false, true] {
        target.audience = diagonal.then(|| Audience::new(&target.support));
        let standard = standard(&target, &point);
        let here: Vec<f64> = standard
            .variables(&point)
            .iter()
            .enumerate()
            .map(|(place, value)| value + 0.2 * (1.3 * place as f64).cos())
            .collect();
        let found = standard.evaluate(std::slice::from_ref(&here)).unwrap().swap_remove(0);
        for place in 0..here.len() {
            let moved: Vec<Vec<f64>> = [-1e-5, 1e-5]
                .iter()
                .map(|by| {
                    let mut here = here.clone();
                    here[place] += by;
                    here
                })
                .collect();
            let pair = standard.evaluate(&moved).unwrap();
            let slope = (pair[1].value - pair[0].value) / 2e-5;
            // Central differences of 1e-5: good to rounding of values of about 100, and to the third derivative.
            let close = (slope - found.gradient[place]).abs() < 1e-5 * (1.0 + slope.abs());
            assert!(close, "{place}: {slope} {}", found.gradient[place]);
        }
    }
}

/// The density of the parameters given the variances of the hierarchy is that of the variables with every λ integrated out.
/// The law of the variances is in the joint-distribution tests of `strengths`.
#[test]
fn the_density_is_that_of_the_parameters() {
    let (mut target, point) = world(3);
    target.variances = [0.5, 0.3, 0.2];
    let standard = standard(&target, &point);
    // The density of the variables at the parameters of the point, with one λ chosen.
    let at = |point: &[f64], chosen: Option<(usize, f64)>| -> f64 {
        let mut cell = 0;
        let mut factor = |off: f64| {
            cell += 1;
            match chosen {
                Some((which, value)) if which + 1 == cell => value,
                _ => ((3.0 + off * off) / 4.0).ln(),
            }
        };
        let mut held = [0.5f64, 0.3, 0.2].into_iter().map(|variance| 0.5 * variance.ln());
        let variables = standard.variables_with(point, &mut factor, &mut |_, _, _| held.next().unwrap());
        let value = standard.evaluate(std::slice::from_ref(&variables)).unwrap()[0].value;
        // From y to drifts: −½ ln V. The change to strengths, deviations and news is the same at all points.
        let scale = variables[standard.target().ratio(0).drift_scale()];
        let of_drifts = standard
            .factors()
            .zip(&standard.precisions)
            .map(|(place, precision)| 0.5 * (precision + (-2.0 * scale - variables[place]).exp()).ln());
        value + of_drifts.sum::<f64>()
    };
    let difference = |point: &[f64]| {
        let usual = at(point, None);
        // Given the parameters all λ are independent: their integrals multiply.
        let integrals: f64 = (0..standard.precisions.len())
            .map(|which| {
                let density = |number: i32| (at(point, Some((which, 0.05 * f64::from(number)))) - usual).exp();
                (0.05 * (-300..=300).map(density).sum::<f64>()).ln()
            })
            .sum();
        let attention = Attention::new(&target.support, point);
        target.evaluate(&[point.to_vec()]).unwrap()[0].value - usual - integrals - target.log_determinant(&attention)
    };
    let first = difference(&point);
    for number in 0..4 {
        let moved: Vec<f64> = point
            .iter()
            .enumerate()
            .map(|(place, at)| at + 0.2 * (place as f64 * 1.7 + f64::from(number)).sin())
            .collect();
        let other = difference(&moved);
        // The trapezoidal rule with steps of 0.05, of smooth functions at least ten times as wide.
        assert!((other - first).abs() < 1e-6, "{first} {other}");
    }
}

#[test]
fn variables_and_points_belong_together() {
    let (target, point) = world(4);
    let standard = standard(&target, &point);
    let back = standard.point(&standard.variables(&point)).unwrap();
    assert!(back.iter().zip(&point).all(|(a, b)| (a - b).abs() < 1e-10), "{back:?} {point:?}");
}

#[test]
fn networks_too_large_for_a_factor_are_solved_alike() {
    let (_, graph, truth) = crowd(&Crowd { agents: 120, steps: 10, degree: 6.0, ..Crowd::default() }).unwrap();
    let support = Support::new(graph.speakers());
    let mut weights = vec![0.0; support.edges()];
    for listener in 0..120 {
        truth.listener(listener).for_each(|(speaker, weight)| {
            weights[support.edge(speaker, listener).unwrap()] = 0.99 * weight;
        });
    }
    let factored = NetworkSolver::new(&support, weights.clone());
    let iterated = NetworkSolver { weights, factor: None };
    let right: Vec<f64> = (0..120).map(|agent| (agent as f64 * 0.7).sin()).collect();
    for transposed in [false, true] {
        let of = |solver: &NetworkSolver| match transposed {
            false => solver.solve(&support, &right).unwrap(),
            true => solver.solve_transposed(&support, &right).unwrap(),
        };
        let (a, b) = (of(&factored), of(&iterated));
        let largest = a.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
        // The condition number is a few hundred.
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-8 * largest));
    }
}
