//! The files that a run of the pipeline adds to its folder: the report page and the network.

use crate::export::{EdgeFilter, ExportNetwork, gexf};
use crate::page::{Page, ReportInput};
use headwater_discover::{Artifact, Discovery};

/// The report page.
pub const REPORT_FILE: &str = "report.html";
/// The network for Gephi.
pub const NETWORK_FILE: &str = "network.gexf";

/// Both files, for [`headwater_discover::Store::with_artifacts`].
pub const RUN_ARTIFACTS: [Artifact; 2] =
    [Artifact { file: REPORT_FILE, render: page }, Artifact { file: NETWORK_FILE, render: network }];

fn page(found: &Discovery) -> Result<Vec<u8>, String> {
    let html = Page::new(&ReportInput::from_discovery(found)).and_then(|page| page.html());
    Ok(html.map_err(|error| error.to_string())?.into_bytes())
}

fn network(found: &Discovery) -> Result<Vec<u8>, String> {
    let network =
        ExportNetwork::new(&found.model, &found.ranking, &EdgeFilter::default()).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    gexf::write(&network.drawn(&found.model, &found.ranking), &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}
