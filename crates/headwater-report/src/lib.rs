//! What Headwater found, as people and other programs want it: an explanation, a page, pictures in one style.
//!
//! In: a model, its ranking, and numbers with names. Out: an [`Explanation`], or a [`Figure`] as SVG and PNG with every number
//! in it as a table. Numbers come from the library; here they are put in order and in words.
//!
//! | room | what |
//! |---|---|
//! | [`explanation`] | why an agent is where it is |
//! | [`page`] | all of it as one self-contained HTML file |
//! | [`figures`] | the usual figures of a model |
//! | [`figure`] | panels on a page; SVG, PNG, the table of points |
//! | [`chart`] | lines, bands, dots and bars on two axes |
//! | [`heat`] | a matrix as shades |
//! | [`network`] | who is linked to whom, laid out the same way every time |
//! | [`export`] | files for Gephi, networkx, igraph, d3 and spreadsheets |
//! | [`style`] | colours, dashes, sizes |

mod artifacts;
pub mod chart;
mod error;
pub mod explanation;
pub mod export;
pub mod figure;
pub mod figures;
pub mod heat;
pub mod network;
pub mod page;
mod scale;
pub mod style;
mod svg;

pub use artifacts::{NETWORK_FILE, REPORT_FILE, RUN_ARTIFACTS};
pub use chart::{Axis, Chart, ChartSeries, Point, Shape};
pub use error::Error;
pub use explanation::Explanation;
pub use figure::{DrawnPoint, Figure, FigurePanel};
pub use heat::Heatmap;
pub use network::{Link, NetworkChart, Node};
pub use scale::ScaleKind;
