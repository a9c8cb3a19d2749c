//! GEXF 1.3, the format of Gephi.
//!
//! Where the model was tracked the graph is dynamic: every weight has its intervals under the reserved attribute `weight`,
//! an edge has spells for the periods in which it existed, and agents have their share, centrality and informativeness over
//! time. Readers without support for time find the final weights.
//!
//! Start and end are always both given, and times finer than days come under `timeformat="date"` too: Gephi reads either, and
//! networkx fails on an open end and on `dateTime`.

use super::history::History;
use super::network::{Edge, ExportNetwork};
use super::table::{Cell, ColumnType, Field};
use super::xml::XmlText;
use std::io::{Error, Write};

/// Columns that are attributes of the elements rather than data.
const ENDS: [&str; 4] = ["id", "source", "target", "weight"];

/// Writes the network; returns how many characters XML does not allow and were replaced.
pub fn write(network: &ExportNetwork, mut out: impl Write) -> Result<usize, Error> {
    let mut texts = XmlText::default();
    let identifiers = texts.identifiers(&network.agents);
    let (agents, edges) = (network.agent_table(), network.edge_table());
    let (of_agents, of_edges) = (data(&agents.fields), data(&edges.fields));
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
    out.write_all(b"<gexf xmlns=\"http://gexf.net/1.3\" xmlns:viz=\"http://gexf.net/1.3/viz\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://gexf.net/1.3 http://gexf.net/1.3/gexf.xsd\" version=\"1.3\">\n")?;
    let description = texts.escape(&network.description);
    writeln!(out, "<meta><creator>Headwater</creator><description>{description}</description></meta>")?;
    let mode = match &network.history {
        None => "mode=\"static\"".to_owned(),
        Some(history) => {
            let (start, end) = history.span();
            let format = if history.dates { "date" } else { "double" };
            format!(
                "mode=\"dynamic\" timeformat=\"{format}\" timerepresentation=\"interval\" start=\"{start}\" end=\"{end}\""
            )
        }
    };
    writeln!(out, "<graph defaultedgetype=\"directed\" idtype=\"string\" {mode}>")?;
    for (class, fields) in [("node", &of_agents), ("edge", &of_edges)] {
        declare(class, "static", fields.iter().map(|field| (field.name, field.kind)), &mut out)?;
    }
    if let Some(history) = &network.history {
        declare("node", "dynamic", history.agents.iter().map(|(name, _)| (*name, ColumnType::Real)), &mut out)?;
        declare("edge", "dynamic", [("weight", ColumnType::Real)].into_iter(), &mut out)?;
    }
    writeln!(out, "<nodes count=\"{}\">", identifiers.len())?;
    for (agent, identifier) in identifiers.iter().enumerate() {
        write!(out, "<node id=\"{identifier}\" label=\"{identifier}\"><attvalues>")?;
        values(&of_agents, agent, &mut texts, &mut out)?;
        if let Some(history) = &network.history {
            for (name, periods) in &history.agents {
                let series = periods.iter().map(|values| values.get(agent).copied().flatten());
                over_time(name, &history.intervals(series), &mut out)?;
            }
        }
        out.write_all(b"</attvalues>")?;
        if let Some(style) = network.styles.get(agent) {
            write!(out, "<viz:size value=\"{:.2}\"/>", style.size)?;
            if let Some((x, y)) = style.position {
                write!(out, "<viz:position x=\"{x:.2}\" y=\"{y:.2}\" z=\"0\"/>")?;
            }
            let (red, green, blue) = style.colour;
            write!(out, "<viz:color r=\"{red}\" g=\"{green}\" b=\"{blue}\"/>")?;
        }
        out.write_all(b"</node>\n")?;
    }
    let gone: &[Edge] = network.history.as_ref().map_or(&[], |history| &history.gone);
    writeln!(out, "</nodes>\n<edges count=\"{}\">", network.edges.len() + gone.len())?;
    for (row, edge) in network.edges.iter().chain(gone).enumerate() {
        let (source, target, weight) =
            (&identifiers[edge.speaker], &identifiers[edge.listener], Cell::Real(edge.weight));
        write!(out, "<edge id=\"{row}\" source=\"{source}\" target=\"{target}\" weight=\"{weight}\"")?;
        let known = row < network.edges.len() && of_edges.iter().any(|field| (field.cell)(row).is_some());
        if !known && network.history.is_none() {
            out.write_all(b"/>\n")?;
            continue;
        }
        out.write_all(b"><attvalues>")?;
        if known {
            values(&of_edges, row, &mut texts, &mut out)?;
        }
        let intervals = network.history.as_ref().map(|history| history.intervals(history.weights(row)));
        over_time("weight", intervals.as_deref().unwrap_or_default(), &mut out)?;
        out.write_all(b"</attvalues>")?;
        spells(intervals.as_deref().unwrap_or_default(), &mut out)?;
        out.write_all(b"</edge>\n")?;
    }
    out.write_all(b"</edges>\n</graph>\n</gexf>\n")?;
    out.flush()?;
    Ok(texts.replaced)
}

fn data<'a, 'b>(fields: &'b [Field<'a>]) -> Vec<&'b Field<'a>> {
    fields.iter().filter(|field| !ENDS.contains(&field.name)).collect()
}

fn declare<'a>(
    class: &str,
    mode: &str,
    fields: impl ExactSizeIterator<Item = (&'a str, ColumnType)>,
    out: &mut impl Write,
) -> Result<(), Error> {
    if fields.len() == 0 {
        return Ok(());
    }
    writeln!(out, "<attributes class=\"{class}\" mode=\"{mode}\">")?;
    for (name, kind) in fields {
        let kind = match kind {
            ColumnType::Real => "double",
            ColumnType::Whole => "integer",
            ColumnType::Flag => "boolean",
            ColumnType::Text => "string",
        };
        writeln!(out, "<attribute id=\"{name}\" title=\"{name}\" type=\"{kind}\"/>")?;
    }
    writeln!(out, "</attributes>")
}

fn values(fields: &[&Field<'_>], row: usize, texts: &mut XmlText, out: &mut impl Write) -> Result<(), Error> {
    for field in fields {
        let Some(cell) = (field.cell)(row) else { continue };
        let value = match cell {
            Cell::Text(text) => texts.escape(text),
            other => other.to_string(),
        };
        write!(out, "<attvalue for=\"{}\" value=\"{value}\"/>", field.name)?;
    }
    Ok(())
}

/// Start, end and value.
pub(super) type Interval<'a> = (&'a str, &'a str, f64);

fn over_time(name: &str, intervals: &[Interval<'_>], out: &mut impl Write) -> Result<(), Error> {
    for (start, end, value) in intervals {
        let value = Cell::Real(*value);
        write!(out, "<attvalue for=\"{name}\" value=\"{value}\" start=\"{start}\" end=\"{end}\"/>")?;
    }
    Ok(())
}

/// The periods in which an edge existed: its intervals, adjacent ones merged.
fn spells(intervals: &[Interval<'_>], out: &mut impl Write) -> Result<(), Error> {
    let mut whole: Vec<(&str, &str)> = Vec::new();
    for &(start, end, _) in intervals {
        match whole.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => whole.push((start, end)),
        }
    }
    if whole.is_empty() {
        return Ok(());
    }
    out.write_all(b"<spells>")?;
    whole.iter().try_for_each(|(start, end)| write!(out, "<spell start=\"{start}\" end=\"{end}\"/>"))?;
    out.write_all(b"</spells>")
}

impl History {
    /// Start of the first period, end of the last.
    fn span(&self) -> (&str, &str) {
        (self.bounds.first().map_or("", String::as_str), self.bounds.last().map_or("", String::as_str))
    }

    /// A series of one value per period as intervals; periods with the same value are merged.
    fn intervals(&self, series: impl Iterator<Item = Option<f64>>) -> Vec<Interval<'_>> {
        let mut intervals: Vec<Interval<'_>> = Vec::new();
        for (value, bounds) in series.zip(self.bounds.windows(2)) {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let (start, end) = (bounds[0].as_str(), bounds[1].as_str());
            match intervals.last_mut() {
                Some(last) if last.1 == start && last.2 == value => last.1 = end,
                _ => intervals.push((start, end, value)),
            }
        }
        intervals
    }
}

#[cfg(test)]
mod tests {
    use super::super::network::tests::{hostile, lonely, tracked, xml};
    use super::*;

    #[test]
    fn hostile_names_break_nothing() {
        let network = hostile();
        let (text, replaced) = xml(|network, out| write(network, out), &network);
        assert_eq!(replaced, 1);
        assert!(text.contains("xmlns=\"http://gexf.net/1.3\"") && text.contains("version=\"1.3\""));
        assert!(text.contains("defaultedgetype=\"directed\" idtype=\"string\" mode=\"static\""), "{text}");
        assert!(text.contains("label=\"&lt;script&gt;alert(1)&lt;/script&gt;\""), "{text}");
        assert!(text.contains("<attvalue for=\"significant\" value=\"true\"/>"), "{text}");
        assert!(text.contains("<viz:size value=") && text.contains("<viz:color r="));
        assert!(!text.contains("spell") && !text.contains("start="));
        assert_eq!(text.matches("<edge ").count(), network.edges.len());
    }

    #[test]
    fn one_agent_is_a_network() {
        let (text, _) = xml(|network, out| write(network, out), &lonely());
        assert!(text.contains("<edges count=\"0\">") && text.contains("<nodes count=\"1\">"), "{text}");
        assert!(!text.contains("class=\"edge\""), "{text}");
    }

    #[test]
    fn weights_over_time_have_intervals_and_edges_spells() {
        let network = tracked();
        let (text, _) = xml(|network, out| write(network, out), &network);
        assert!(
            text.contains(
                "mode=\"dynamic\" timeformat=\"double\" timerepresentation=\"interval\" start=\"10\" end=\"39\""
            ),
            "{text}"
        );
        assert!(text.contains("<attributes class=\"edge\" mode=\"dynamic\">\n<attribute id=\"weight\" title=\"weight\" type=\"double\"/>"), "{text}");
        // a → b exists from the start, with a larger weight from 20 on; b → a ends at 20.
        assert!(text.contains("<edge id=\"0\" source=\"a\" target=\"b\" weight=\"0.75\"><attvalues><attvalue for=\"weight\" value=\"0.5\" start=\"10\" end=\"20\"/><attvalue for=\"weight\" value=\"0.75\" start=\"20\" end=\"39\"/></attvalues><spells><spell start=\"10\" end=\"39\"/></spells></edge>"), "{text}");
        assert!(text.contains("<edge id=\"1\" source=\"b\" target=\"a\" weight=\"0\"><attvalues><attvalue for=\"weight\" value=\"0.25\" start=\"10\" end=\"20\"/></attvalues><spells><spell start=\"10\" end=\"20\"/></spells></edge>"), "{text}");
        assert!(text.contains("<attvalue for=\"centrality_over_time\""), "{text}");
    }
}
