//! GraphML: typed keys, agents by name, edges from speaker to listener.
//!
//! Key names are those that Gephi recognises (`label`, `weight`). There are no keys of the graph, nor any that are specific to
//! one program.

use super::ExportNetwork;
use super::table::{Cell, ColumnType, Field};
use super::xml::XmlText;
use std::io::{Error, Write};

/// Columns that are attributes of the elements rather than data.
const ENDS: [&str; 3] = ["id", "source", "target"];

/// Writes the network; returns how many characters XML does not allow and were replaced.
pub fn write(network: &ExportNetwork, mut out: impl Write) -> Result<usize, Error> {
    let mut texts = XmlText::default();
    let identifiers = texts.identifiers(&network.agents);
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
    out.write_all(b"<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd\">\n")?;
    let (agents, edges) = (network.agent_table(), network.edge_table());
    let data = |field: &&Field<'_>| !ENDS.contains(&field.name);
    out.write_all(b"<key id=\"label\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n")?;
    for (class, table) in [("node", &agents), ("edge", &edges)] {
        for field in table.fields.iter().filter(data) {
            let (key, name, kind) = (key(class, field.name), field.name, kind(field.kind));
            writeln!(out, "<key id=\"{key}\" for=\"{class}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>")?;
        }
    }
    writeln!(out, "<graph id=\"headwater\" edgedefault=\"directed\">")?;
    writeln!(out, "<desc>{}</desc>", texts.escape(&network.description))?;
    let mut cells = |class: &str, fields: &[Field<'_>], row: usize, out: &mut dyn Write| -> Result<(), Error> {
        for field in fields.iter().filter(data) {
            let Some(cell) = (field.cell)(row) else { continue };
            write!(out, "<data key=\"{}\">", key(class, field.name))?;
            match cell {
                Cell::Text(text) => out.write_all(texts.escape(text).as_bytes())?,
                other => write!(out, "{other}")?,
            }
            out.write_all(b"</data>")?;
        }
        Ok(())
    };
    for (agent, identifier) in identifiers.iter().enumerate() {
        write!(out, "<node id=\"{identifier}\"><data key=\"label\">{identifier}</data>")?;
        cells("node", &agents.fields, agent, &mut out)?;
        out.write_all(b"</node>\n")?;
    }
    for (row, edge) in network.edges.iter().enumerate() {
        let (source, target) = (&identifiers[edge.speaker], &identifiers[edge.listener]);
        write!(out, "<edge id=\"e{row}\" source=\"{source}\" target=\"{target}\">")?;
        cells("edge", &edges.fields, row, &mut out)?;
        out.write_all(b"</edge>\n")?;
    }
    out.write_all(b"</graph>\n</graphml>\n")?;
    out.flush()?;
    Ok(texts.replaced)
}

/// Agents and edges share names such as `p_value`, but a key must be unique in the file.
fn key(class: &str, name: &str) -> String {
    if name == "weight" { name.to_owned() } else { format!("{class}_{name}") }
}

fn kind(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Real => "double",
        ColumnType::Whole => "long",
        ColumnType::Flag => "boolean",
        ColumnType::Text => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::super::network::tests::{hostile, lonely, xml};
    use super::*;

    #[test]
    fn hostile_names_break_nothing() {
        let network = hostile();
        let (text, replaced) = xml(|network, out| write(network, out), &network);
        assert_eq!(replaced, 1);
        assert!(text.contains("<node id=\"&lt;script&gt;alert(1)&lt;/script&gt;\">"), "{text}");
        assert!(text.contains("source=\"two&#10;lines, &quot;quoted&quot;\""), "{text}");
        assert!(text.contains("<key id=\"weight\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>"), "{text}");
        assert!(
            text.contains(
                "<key id=\"edge_significant\" for=\"edge\" attr.name=\"significant\" attr.type=\"boolean\"/>"
            )
        );
        assert_eq!(text.matches("<edge ").count(), network.edges.len());
        // Keys are unique in the file.
        let keys: Vec<&str> = text.split("<key id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let unique: std::collections::HashSet<&&str> = keys.iter().collect();
        assert_eq!(keys.len(), unique.len());
    }

    #[test]
    fn one_agent_is_a_network() {
        let (text, replaced) = xml(|network, out| write(network, out), &lonely());
        assert_eq!((replaced, text.matches("<node ").count(), text.matches("<edge ").count()), (0, 1, 0));
    }
}
