//! Explanations, the report page, figures and exports of a model and its ranking.
//!
//! The numbers come from the library `headwater`; this crate orders, words, draws and writes them.
//!
//! | module | contents |
//! |---|---|
//! | [`explanation`] | the explanation of one agent's rank |
//! | [`page`] | the report as one self-contained HTML file |
//! | [`figures`] | the standard figures of a model |
//! | [`figure`] | a figure of several panels, as SVG and PNG and as a table of its points |
//! | [`chart`] | lines, bands, dots and bars on two axes |
//! | [`heat`] | heat maps of matrices |
//! | [`network`] | network drawings with a deterministic layout |
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
