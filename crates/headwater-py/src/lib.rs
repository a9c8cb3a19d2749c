//! The Python package's compiled part: conversions and calls, nothing numeric of its own.
//!
//! In: numpy arrays, anything that streams Arrow, paths. Out: numpy arrays, text, and the library's types behind Python
//! classes. Errors speak of keyword arguments ([`error`], [`hints`]); long work gives the interpreter lock away, says how far it
//! is and ends on Ctrl-C ([`work`]). The Python around it is in `python/headwater`; `_headwater.pyi` is the contract.

#![expect(clippy::needless_pass_by_value, reason = "what comes from Python comes by value")]

mod beliefs;
mod columns;
mod discover;
mod error;
mod hints;
mod learners;
mod model;
mod posts;
mod streams;
mod work;

use pyo3::prelude::*;

/// The compiled part: use `headwater` instead.
#[pymodule(name = "_headwater")]
mod module {
    use super::*;

    #[pymodule_export]
    use super::beliefs::{Beliefs, Graph, simulate};
    #[pymodule_export]
    use super::columns::write_text;
    #[pymodule_export]
    use super::discover::{Discovery, discover};
    #[pymodule_export]
    use super::learners::{gsl, state_space, whitened};
    #[pymodule_export]
    use super::model::{Model, Ranking};
    #[pymodule_export]
    use super::posts::{PostArguments, Posts, beliefs_from_posts, run, score};
    #[pymodule_export]
    use super::streams::{GslStream, Tracker};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
