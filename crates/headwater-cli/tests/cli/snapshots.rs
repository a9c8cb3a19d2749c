//! Whole outputs of every command, for its usual and its wrong uses. Accept a change after reading it: `just snapshots`.

use crate::place::Place;
