//! Node-link JSON: what `networkx.node_link_data` gives since networkx 3.4, and the same with `links` for d3.

use super::ExportNetwork;
use super::table::{Cell, Table};
use std::io::{Error, Write};

/// The program that will read the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reader {
    /// Edges are under `edges`.
    #[default]
    Networkx,
    /// Edges are under `links`.
    D3,
}

/// The whole network as one object; missing values are absent.
pub fn write(network: &ExportNetwork, reader: Reader, mut out: impl Write) -> Result<(), Error> {
    out.write_all(b"{\"directed\":true,\"multigraph\":false,\"graph\":")?;
    object(&network.fact_table(), 0, &mut out)?;
    out.write_all(b",\n\"nodes\":")?;
    list(&network.agent_table(), &mut out)?;
    let key = match reader {
        Reader::Networkx => "edges",
        Reader::D3 => "links",
    };
    write!(out, ",\n\"{key}\":")?;
    list(&network.edge_table(), &mut out)?;
    out.write_all(b"}\n")?;
    out.flush()
}

fn list(table: &Table<'_>, out: &mut impl Write) -> Result<(), Error> {
    for row in 0..table.rows {
        out.write_all(if row == 0 { b"[\n" } else { b",\n" })?;
        object(table, row, out)?;
    }
    out.write_all(if table.rows == 0 { b"[]" } else { b"\n]" })
}

fn object(table: &Table<'_>, row: usize, out: &mut impl Write) -> Result<(), Error> {
    let known = table.fields.iter().filter_map(|field| Some((field.name, (field.cell)(row)?)));
    for (position, (name, cell)) in known.enumerate() {
        out.write_all(if position == 0 { b"{" } else { b"," })?;
        write!(out, "\"{name}\":")?;
        match cell {
            Cell::Text(text) => serde_json::to_writer(&mut *out, text)?,
            other => write!(out, "{other}")?,
        }
    }
    if table.fields.iter().all(|field| (field.cell)(row).is_none()) {
        out.write_all(b"{")?;
    }
    out.write_all(b"}")
}

#[cfg(test)]
mod tests {
    use super::super::network::tests::{hostile, lonely};
    use super::*;
    use serde_json::Value;

    fn read(network: &ExportNetwork, reader: Reader) -> Value {
        let mut out = Vec::new();
        write(network, reader, &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn both_readers_find_their_edges() {
        let network = hostile();
        let (networkx, d3) = (read(&network, Reader::Networkx), read(&network, Reader::D3));
        assert_eq!(networkx["edges"], d3["links"]);
        assert_eq!((&networkx["links"], &d3["edges"]), (&Value::Null, &Value::Null));
        assert_eq!((networkx["directed"].as_bool(), networkx["multigraph"].as_bool()), (Some(true), Some(false)));
        for (row, edge) in network.edges.iter().enumerate() {
            let found = &networkx["edges"][row];
            assert_eq!(found["source"], network.agents[edge.speaker].as_str());
            assert_eq!(found["target"], network.agents[edge.listener].as_str());
            assert_eq!(found["weight"], edge.weight);
        }
        let names: Vec<&str> =
            networkx["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect();
        assert_eq!(names, network.agents);
        // Missing values are absent rather than null.
        assert!(networkx["nodes"][0].get("contrarian").is_none());
        assert_eq!(networkx["graph"]["truth"], "<yes>");
    }

    #[test]
    fn without_edges_there_is_an_empty_list() {
        let lonely = read(&lonely(), Reader::Networkx);
        assert_eq!((lonely["nodes"].as_array().unwrap().len(), &lonely["edges"]), (1, &serde_json::json!([])));
    }
}
