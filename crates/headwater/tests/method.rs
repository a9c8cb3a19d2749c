//! A model records its method with every parameter: fitting again with the record is the same fit.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater::evaluate::{Bootstrap, CircularShifts};
use headwater::learn::gsl::{Constraint, GslParams};
use headwater::learn::posterior::SamplingParams;
use headwater::learn::released::ReleasedParams;
use headwater::learn::state_space::StateSpaceParams;
use headwater::learn::track::{Memory, TrackParams};
use headwater::learn::whitened::WhitenedParams;
use headwater::model::WeightKind;
use headwater::progress::Progress;
use headwater::simulate::noisy::{NoisyWorld, noisy};
use headwater::simulate::{Likelihoods, WorldParams, simulate};
use headwater::{Error, Method, Model, Panel, fit};

fn world_of(hypotheses: usize) -> Panel {
    let likelihoods = Likelihoods::Gaussian { dimension: 3 };
    simulate(&WorldParams { agents: 6, steps: 80, hypotheses, likelihoods, ..WorldParams::default() }).unwrap().0
}

fn world() -> Panel {
    world_of(2)
}

fn posts() -> Panel {
    noisy(&NoisyWorld { agents: 6, edge_probability: 0.5, steps: 120, ..NoisyWorld::default() }).unwrap().0
}

fn ring(agents: usize) -> Option<Vec<Vec<usize>>> {
    Some((0..agents).map(|agent| vec![(agent + 1) % agents, (agent + 2) % agents]).collect())
}

fn whitened() -> Vec<WhitenedParams> {
    let usual = WhitenedParams::default();
    vec![
        WhitenedParams { ridge: 0.3, ..usual.clone() },
        WhitenedParams { rounds: 1, ..usual.clone() },
        WhitenedParams { adaptation: Some(0.2), ..usual.clone() },
        WhitenedParams { constraint: Constraint::Free, ..usual.clone() },
        WhitenedParams { support: ring(6), ..usual },
    ]
}

/// Five rounds of expectation-maximisation, without draws from the posterior, for which rounds do not count.
fn em() -> StateSpaceParams {
    StateSpaceParams { rounds: 5, tolerance: 0.0, sampling: None, ..StateSpaceParams::default() }
}

fn state_space() -> Vec<StateSpaceParams> {
    let usual = em();
    vec![
        StateSpaceParams { ridge: 0.3, ..usual.clone() },
        StateSpaceParams { rounds: 2, ..usual.clone() },
        StateSpaceParams { tolerance: 1e-2, ..usual.clone() },
        StateSpaceParams { tolerance: f64::INFINITY, ..usual.clone() },
        StateSpaceParams { adaptation: Some(0.2), ..usual.clone() },
        StateSpaceParams { constraint: Constraint::Free, ..usual.clone() },
        StateSpaceParams { shrinkage: 3.0, ..usual.clone() },
        StateSpaceParams { weights: Some(WeightKind::Strengths), support: ring(6), ..usual.clone() },
        StateSpaceParams {
            weights: Some(WeightKind::Strengths),
            support: ring(6),
            sampling: Some(SamplingParams { draws: 20, ..SamplingParams::default() }),
            ..usual.clone()
        },
        // Chosen by forecast skill; the record holds the choice.
        StateSpaceParams { weights: None, support: ring(6), ..usual },
    ]
}

fn learn(panel: &Panel, method: &Method) -> Model {
    fit(panel, method, &Progress::default()).unwrap()
}

/// Fits, saves and reads the method, and fits with that.
fn again(panel: &Panel, method: &Method) -> (Model, Model) {
    let model = learn(panel, method);
    let saved = serde_json::to_string(&model.method).unwrap();
    let read: Method = serde_json::from_str(&saved).unwrap();
    assert_eq!(read, model.method, "{saved}");
    let mut second = learn(panel, &read);
    // Which was chosen is recorded; why is known of the first fit only.
    if let (Some(first), Some(second)) = (&model.diagnostics.smoothing, &mut second.diagnostics.smoothing) {
        second.selection = first.selection;
    }
    (model, second)
}

#[test]
fn a_refit_with_the_record_is_the_same_fit() {
    let (panel, said) = (world(), posts());
    let gsl = GslParams { window: 5, learning_rate: 0.01, ..GslParams::default() };
    let methods = whitened().into_iter().map(Method::from).chain([
        GslParams { support: ring(6), initial: Some(vec![1.0 / 6.0; 36]), ..gsl.clone() }.into(),
        GslParams { passes: 2, batch: 2, sparsity: 1e-3, constraint: Constraint::Simplex, ..gsl }.into(),
        ReleasedParams { passes: 2, ..ReleasedParams::default() }.into(),
        TrackParams { memory: Memory::Recent(40), ..TrackParams::default() }.into(),
    ]);
    for method in methods {
        let (first, second) = again(&panel, &method);
        assert_eq!(first, second);
    }
    for params in state_space() {
        let (first, second) = again(&said, &params.into());
        assert_eq!(first, second);
    }
}

/// Draws differ as soon as one parameter does, so none of them is lost on the way to a refit.
#[test]
fn resamples_and_shifts_are_fitted_with_the_recorded_parameters() {
    let (panel, said) = (world(), posts());
    let draws = |panel: &Panel, method: Method| {
        let model = learn(panel, &method);
        let drawn = Bootstrap::new(panel, &model, 1).unwrap().draw(0).unwrap();
        let shifted = CircularShifts::for_model(panel, &model, 1).draw(0).unwrap();
        let direct = CircularShifts::new(panel, &model.method, 1).draw(0).unwrap();
        assert_eq!(shifted, direct);
        (drawn, shifted)
    };
    let usual = draws(&panel, WhitenedParams::default().into());
    // A single log-ratio is not reweighted.
    let (three, once) = (world_of(3), WhitenedParams { rounds: 1, ..WhitenedParams::default() });
    let (once, usual_rounds) = (draws(&three, once.into()), draws(&three, WhitenedParams::default().into()));
    assert!(once.0 != usual_rounds.0 && once.1 != usual_rounds.1);
    for params in whitened().into_iter().filter(|params| params.rounds > 1) {
        let found = draws(&panel, params.clone().into());
        assert_ne!(found.0, usual.0, "{params:?}");
        // δ alone scales a column, which the simplex undoes again.
        assert!(params.adaptation.is_some() || found.1 != usual.1, "{params:?}");
    }
    let usual = em();
    let plain = draws(&said, usual.clone().into());
    for params in state_space() {
        let found = draws(&said, params.clone().into());
        // A tolerance that is met earlier ends the fit earlier; one that is not met in five rounds changes nothing.
        let ends = params.tolerance == 0.0 || params.tolerance == f64::INFINITY;
        assert!(!ends || found.0 != plain.0, "{params:?}");
        // Observed and shifted panels get ten rounds, whatever the fit got.
        let same = StateSpaceParams { rounds: usual.rounds, tolerance: usual.tolerance, ..params.clone() } == usual;
        assert_eq!(found.1 == plain.1, same, "{params:?}");
    }
}

#[test]
fn what_is_no_learner_fits_nothing() {
    let unknown = Method::Unknown { name: "gsl".into() };
    for method in [Method::Given, unknown] {
        assert!(matches!(fit(&world(), &method, &Progress::default()), Err(Error::Undefined { .. })));
    }
}
