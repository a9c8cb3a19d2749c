//! Simulate, learn, rank: the shortest program.

#![expect(clippy::print_stdout, reason = "an example shows its result")]

use headwater::learn::whitened::{WhitenedParams, whitened};
use headwater::simulate::{WorldParams, simulate};
use headwater::{Error, influence};

fn main() -> Result<(), Error> {
    let (panel, truth) = simulate(&WorldParams { steps: 100, ..WorldParams::default() })?;
    let model = whitened(&panel, &WhitenedParams::default())?;
    let learned = influence(&model)?;
    for agent in learned.ranking().into_iter().take(3) {
        println!("{} {:.4}", model.roster.agents()[agent], learned.influence[agent]);
    }
    println!("truth: {:?}", &influence(&truth)?.ranking()[..3]);
    Ok(())
}
