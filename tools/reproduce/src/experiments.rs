//! One module per experiment.

pub(crate) mod drift;
pub(crate) mod evidence_error;
pub(crate) mod graph_error;
pub(crate) mod influences;
pub(crate) mod matrices;
pub(crate) mod people;
pub(crate) mod sentiment_table;
pub(crate) mod theory;
pub(crate) mod truth_rate;
pub(crate) mod twitter;
