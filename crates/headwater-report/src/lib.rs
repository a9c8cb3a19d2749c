//! Pictures of what Headwater found, drawn in one place and one style.
//!
//! In: numbers with names. Out: a [`Figure`] as SVG and PNG, and every number in it as a table. Nothing is computed here that
//! a reader would want to check elsewhere.
//!
//! | room | what |
//! |---|---|
//! | [`figure`] | panels on a page; SVG, PNG, the table of points |
//! | [`chart`] | lines, bands, dots and bars on two axes |
//! | [`heat`] | a matrix as shades |
//! | [`network`] | who is linked to whom, laid out the same way every time |
//! | [`style`] | colours, dashes, sizes |

pub mod chart;
pub mod figure;
pub mod heat;
pub mod network;
mod scale;
pub mod style;
mod svg;

pub use chart::{Axis, Chart, Point, Series, Shape};
pub use figure::{Drawn, Error, Figure, Panel};
pub use heat::Heat;
pub use network::{Link, Network, Node};
pub use scale::Kind;
