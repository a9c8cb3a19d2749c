//! Headwater's files: beliefs, edges, models and truths on disk.
//!
//! In: paths. Out: the library's types, or an [`Error`] that names the file, the place in it, and what would be right.
//! Formats are chosen by extension. Everything written appears whole or not at all ([`AtomicFile`]).

mod atomic_file;
mod beliefs;
mod cells;
mod edges;
mod error;
mod groups;
mod limit;
mod model;
mod names;
mod npy;
mod output;
mod panel_file;
mod parquet_file;
mod parquet_footer;
mod ranking;
mod thrift;
mod time;

pub use atomic_file::{AtomicFile, discard_unfinished, move_file, sync_folder};
pub use beliefs::{
    ArrayNames, BeliefNumbers, BeliefsFormat, BeliefsRows, BeliefsWriter, Grain, LoadedBeliefs, beliefs_from_array,
    beliefs_from_batches, beliefs_from_bytes, beliefs_from_frames, frame_from_values, read_beliefs, read_beliefs_of,
    sides,
};
pub use cells::{CsvText, restored_cell};
pub use edges::{AbsentAgents, Edges, GraphNotes, edges_from_reader, read_edges};
pub use error::Error;
pub use groups::{Groups, read_groups};
pub use limit::{Expansion, LimitedExpansion, TooMuchExpansion};
pub use model::{
    MODEL_FORMAT, SimulatedTruth, model_from_bytes, model_to_bytes, read_known, read_model, write_model, write_truth,
};
pub use names::{folded_name, matched_names};
pub use output::{create_folder, json_file, write_bytes, write_json};
pub use panel_file::{read_panel, write_panel};
pub use parquet_file::ParquetBatches;
pub use ranking::{edges_csv, ranking_csv, ranking_table};
pub use time::{name_times, show_date, show_dates, show_offsets, show_time};
