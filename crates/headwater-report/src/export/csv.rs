//! Edges and nodes as CSV: a header, a row each, an empty cell for a missing value; names are quoted where necessary.

use super::ExportNetwork;
use super::table::{Cell, Table};
use headwater_files::CsvText;
use std::io::{Error, Write};

/// The edges: `source,target,weight` and the other columns.
pub fn edges(network: &ExportNetwork, text: CsvText, out: impl Write) -> Result<(), Error> {
    write(&network.edge_table(), text, out)
}

/// The agents: `id` and the other columns.
pub fn nodes(network: &ExportNetwork, text: CsvText, out: impl Write) -> Result<(), Error> {
    write(&network.agent_table(), text, out)
}

fn write(table: &Table<'_>, text: CsvText, out: impl Write) -> Result<(), Error> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(table.fields.iter().map(|field| field.name)).map_err(Error::other)?;
    for row in 0..table.rows {
        for field in &table.fields {
            let cell = (field.cell)(row).map(|cell| match cell {
                Cell::Text(content) => text.cell(content).into_owned(),
                other => other.to_string(),
            });
            writer.write_field(cell.unwrap_or_default()).map_err(Error::other)?;
        }
        writer.write_record(None::<&[u8]>).map_err(Error::other)?;
    }
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::super::network::tests::{hostile, lonely};
    use super::*;

    fn text(write: impl Fn(&ExportNetwork, &mut Vec<u8>) -> Result<(), Error>, network: &ExportNetwork) -> String {
        let mut out = Vec::new();
        write(network, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_with_commas_quotes_and_lines_survive() {
        let network = hostile();
        let edges = text(|network, out| edges(network, CsvText::Raw, out), &network);
        assert!(edges.starts_with("source,target,weight,p_value,significant\n"), "{edges}");
        let mut reader = csv::Reader::from_reader(edges.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
        assert_eq!(rows.len(), network.edges.len());
        for (row, edge) in rows.iter().zip(&network.edges) {
            assert_eq!(row[0], network.agents[edge.speaker]);
            assert_eq!(row[1], network.agents[edge.listener]);
            assert_eq!(row[2].parse::<f64>().unwrap(), edge.weight);
        }
        let nodes = text(|network, out| nodes(network, CsvText::Raw, out), &network);
        let mut reader = csv::Reader::from_reader(nodes.as_bytes());
        let names: Vec<String> = reader.records().map(|row| row.unwrap()[0].to_owned()).collect();
        assert_eq!(names, network.agents);
    }

    #[test]
    fn no_name_is_run_as_a_formula_and_negative_numbers_stay_numbers() {
        let mut network = hostile();
        network.agents[0] = "=1+1".to_owned();
        network.edges[0].weight = -0.5;
        for table in [
            text(|network, out| edges(network, CsvText::Neutralised, out), &network),
            text(|network, out| nodes(network, CsvText::Neutralised, out), &network),
        ] {
            assert!(table.contains("'=1+1") && !table.contains("\n=1+1"), "{table}");
            let mut reader = csv::Reader::from_reader(table.as_bytes());
            for row in reader.records() {
                for cell in row.unwrap().iter().filter(|cell| cell.starts_with(['=', '+', '-', '@', '\t', '\r'])) {
                    assert!(cell.parse::<f64>().is_ok(), "{cell}");
                }
            }
        }
        assert!(text(|network, out| edges(network, CsvText::Neutralised, out), &network).contains(",-0.5,"));
    }

    #[test]
    fn without_edges_there_is_a_header() {
        assert_eq!(text(|network, out| edges(network, CsvText::default(), out), &lonely()), "source,target,weight\n");
        assert_eq!(text(|network, out| nodes(network, CsvText::default(), out), &lonely()).lines().count(), 2);
    }
}
