use super::*;
use crate::Model;
use crate::learn::whitened::{self, WhitenedParams};
use crate::model::{Diagnostics, Skill};

/// A short version of the example `trust`: 90 % intervals over 12 worlds of 8 agents, with slack for so few.
#[test]
fn intervals_cover_and_the_null_is_quiet() {
    use crate::simulate::{Likelihoods, WorldParams, simulate};
    let (mut covered, mut alarms, mut detected) = (0, 0, 0);
    for seed in 0..12 {
        let params = WorldParams {
            agents: 8,
            edge_probability: 0.4,
            hypotheses: 2,
            likelihoods: Likelihoods::Gaussian { dimension: 4 },
            steps: 150,
            seed: 7000 + seed,
            ..WorldParams::default()
        };
        let (panel, truth) = simulate(&params).unwrap();
        let params = WhitenedParams::default();
        let model = whitened::whitened(&panel, &params).unwrap();
        let bootstrap = Bootstrap::new(&panel, &model, seed).unwrap();
        let draws: Vec<BootstrapDraw> = (0..100).map(|number| bootstrap.draw(number).unwrap()).collect();
        assert_eq!(draws[7], bootstrap.draw(7).unwrap(), "a resample is a function of its number");
        let intervals = bootstrap.intervals(&draws, 3).unwrap();
        let shares = crate::influence(&truth).unwrap().share.unwrap();
        covered += (0..8)
            .filter(|&agent| (intervals.share[agent].0..=intervals.share[agent].1).contains(&shares[agent]))
            .count();
        assert!((intervals.top.iter().sum::<f64>() - 3.0).abs() < 1e-9, "three places among the top three");
        // The data themselves are far from their circular shifts; a shift is not.
        let shifts = CircularShifts::for_model(&panel, &model, seed);
        let mut draws: Vec<ShiftDraw> = (0..40).map(|number| shifts.draw(number).unwrap()).collect();
        let found = CircularShifts::compare(&shifts.observed().unwrap(), &draws);
        detected += usize::from(found.skill.unwrap() <= 0.05);
        assert_eq!(
            Verdict::new(&Model { diagnostics: with_skill(), ..model.clone() }, Some(&found)).supported(),
            found.skill.unwrap() <= 0.05
        );
        let null = draws.swap_remove(0);
        let none = CircularShifts::compare(&null, &draws);
        alarms += none.agents.iter().filter(|p| **p <= 0.05).count();
    }
    assert!((78..=96).contains(&covered), "{covered} of 96");
    assert!(alarms <= 10, "{alarms} of 96");
    assert!(detected >= 5, "{detected} of 12 networks are told from their circular shifts by 30 forecasts");
}

fn with_skill() -> Diagnostics {
    Diagnostics { skill: Some(SOME), ..Diagnostics::default() }
}

const SOME: Skill = Skill { against_persistence: 0.5, against_own_past: 0.1, beyond_common: None, steps: 30 };

#[test]
fn what_is_certified_does_not_vary() {
    use crate::simulate::{WorldParams, simulate};
    let (panel, truth) = simulate(&WorldParams { steps: 120, ..WorldParams::default() }).unwrap();
    let params = WhitenedParams::default();
    let model = whitened::whitened(&panel, &params).unwrap();
    let bootstrap = Bootstrap::new(&panel, &model, 1).unwrap();
    let draws: Vec<BootstrapDraw> = (0..5).map(|number| bootstrap.draw(number).unwrap()).collect();
    let intervals = bootstrap.intervals(&draws, 3).unwrap();
    let shares = crate::influence(&truth).unwrap().share.unwrap();
    for (share, (low, high)) in shares.iter().zip(intervals.share) {
        assert!((low - share).abs() < 1e-9 && (high - share).abs() < 1e-9);
    }
}
