//! Edges: no bytes panic the reader; edges have names, each pair once, and no negative weight.

#![no_main]

use headwater::Roster;
use headwater_files::edges_from_reader;
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Ok(edges) = edges_from_reader(data, Path::new("fuzz.csv")) else { return };
    let Ok(roster) = Roster::new(edges.agents(), ["yes", "no"]) else { return };
    let indexed = edges.indexed(&roster).expect("the roster has every name");
    let pairs: HashSet<(usize, usize)> = indexed.iter().map(|edge| (edge.0, edge.1)).collect();
    assert_eq!(pairs.len(), edges.len());
    assert!(indexed.iter().all(|edge| edge.2.is_none_or(|weight| weight >= 0.0 && weight.is_finite())));
    assert!(edges.graph(&roster).is_ok());
});
