//! Long work ends when it is asked to, whatever it is doing, and says how far it is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater::evaluate::intervals::intervals;
use headwater::evaluate::null_test::significance;
use headwater::fit;
use headwater::learn::gsl::{Gsl, GslParams};
use headwater::learn::state_space::StateSpaceParams;
use headwater::learn::whitened::WhitenedParams;
use headwater::progress::Progress;
use headwater::simulate::{WorldParams, simulate};
use headwater::{Error, Model, Panel};

fn world() -> (Panel, Model) {
    simulate(&WorldParams { agents: 8, steps: 120, ..WorldParams::default() }).unwrap()
}

type Work<'a> = Box<dyn Fn() -> Result<(), Error> + Send + Sync + 'a>;

/// Everything that may take long.
fn works<'a>(panel: &'a Panel, model: &'a Model) -> Vec<(&'static str, Work<'a>)> {
    let learner = || Gsl::new(panel.roster().clone(), GslParams { window: 5, ..GslParams::default() }).unwrap();
    vec![
        ("simulating", Box::new(|| simulate(&WorldParams::default()).map(drop))),
        ("whitened", Box::new(|| fit::whitened(&fit::fill(panel), &WhitenedParams::default()).map(drop))),
        ("state-space", Box::new(|| fit::state_space(panel, &StateSpaceParams::default()).map(drop))),
        ("gsl", Box::new(move || fit::gsl(panel, learner()).map(drop))),
        ("tuning", Box::new(move || fit::tune(panel, &learner()).map(drop))),
        ("resampling", Box::new(|| intervals(panel, model, 30, 3, 1).map(drop))),
        ("testing circular shifts", Box::new(|| significance(panel, model, 30, 1).map(drop))),
    ]
}

#[test]
fn everything_that_takes_long_can_be_stopped() {
    let (panel, model) = world();
    for (name, work) in works(&panel, &model) {
        let watch = Progress::default();
        watch.stop();
        assert_eq!(watch.over(Some(2), &work).unwrap(), Err(Error::Stopped), "{name}");
        assert_eq!(Progress::default().over(Some(2), &work).unwrap(), Ok(()), "{name}, unless stopped");
    }
}

#[test]
fn everything_that_takes_long_says_how_far_it_is() {
    let (panel, model) = world();
    for (name, work) in works(&panel, &model) {
        let watch = Progress::default();
        watch.over(Some(2), &work).unwrap().unwrap();
        assert!(!watch.progress().what.is_empty(), "{name}");
    }
    let watch = Progress::default();
    watch.over(Some(2), || significance(&panel, &model, 30, 1)).unwrap().unwrap();
    let progress = watch.progress();
    assert_eq!((progress.what.as_str(), progress.done, progress.total), ("testing circular shifts", 30, 30));
}
