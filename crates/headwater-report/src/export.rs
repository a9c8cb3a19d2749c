//! Files that other programs read: Gephi, networkx, igraph, d3, spreadsheets.
//!
//! In: an [`ExportNetwork`], which every writer takes. Out: bytes, or with [`write_files`] the files of the format that a file name
//! asks for.
//!
//! | module | what |
//! |---|---|
//! | [`network`] | the network to export, made from a model and a ranking |
//! | [`history`] | its weights over time, where the model was tracked |
//! | [`table`] | typed columns and rows |
//! | [`gexf`] | GEXF 1.3, with weights over time where the model was tracked |
//! | [`graphml`] | GraphML |
//! | [`csv`], [`parquet`] | edges and nodes as tables |
//! | [`json`] | node-link JSON for networkx and d3 |
//! | [`files`] | the format by the ending of a file name; files that appear whole or not at all |
//!
//! Text is escaped. Characters that XML 1.0 does not allow are replaced; the XML writers return how many.

pub mod csv;
pub mod files;
pub mod gexf;
pub mod graphml;
pub mod history;
pub mod json;
pub mod network;
pub mod parquet;
pub mod table;
mod xml;

pub use files::{ExportFormat, export_files, write_files};
pub use network::{EdgeFilter, ExportNetwork};
