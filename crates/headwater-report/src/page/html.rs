//! The HTML document: the data as inert JSON, script and style allowed by their hashes, and for browsers without scripts the
//! verdict and the ranking as a table.

use super::Page;
use crate::error::Error;
use crate::svg::escape;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use headwater::words::{number, percent, percent_range};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Built from `page/src`, committed, so that no Node is needed here.
const SCRIPT: &str = include_str!("../../page/dist/page.js");
const STYLE: &str = include_str!("../../page/dist/page.css");

/// Rows of the table for browsers without scripts; `ranking.json` has all.
const ROWS: usize = 100;

impl Page {
    /// The page as one self-contained file.
    pub fn html(&self) -> Result<String, Error> {
        let data = inert(&serde_json::to_string(self)?);
        let (script, style) = (hash(SCRIPT), hash(STYLE));
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
        );
        let title = escape(&self.title);
        Ok(format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main id=\"app\"></main>\n<noscript>\n{}</noscript>\n<script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
            self.plain()
        ))
    }

    /// The part for browsers without scripts. Names are isolated from the direction of the surrounding text.
    fn plain(&self) -> String {
        let mut out = format!("<h1>{}</h1>\n", escape(&self.title));
        let mut line = |tag: &str, text: &str| {
            // Writing to a string cannot go wrong.
            let _ = writeln!(out, "<{tag}>{}</{tag}>", escape(text));
        };
        line("h2", &self.verdict.headline);
        line("p", &self.verdict.text);
        let lists = [&self.verdict.tested, &self.verdict.sure, &self.verdict.assumed, &self.verdict.warnings];
        lists.into_iter().flatten().for_each(|text| line("p", text));
        let mut heading = vec!["", "agent", "share", "influence", "centrality", "informativeness"];
        let (interval, p) = (
            self.ranking.agents.iter().any(|row| row.share_low.is_some()),
            self.ranking.agents.iter().any(|row| row.p_value.is_some()),
        );
        heading.extend(interval.then_some("90% interval of the share"));
        heading.extend(p.then_some("p"));
        let heading: String = heading.iter().map(|name| format!("<th>{name}</th>")).collect();
        let _ = writeln!(out, "<table>\n<tr>{heading}</tr>");
        for row in self.ranking.agents.iter().take(ROWS) {
            let mut cells = vec![
                row.rank.to_string(),
                format!("<bdi>{}</bdi>", escape(&row.agent)),
                row.signed_share().map_or("–".to_owned(), percent),
                number(row.influence),
                number(row.centrality),
                number(row.informativeness),
            ];
            if interval {
                let ends = row.signed_interval();
                cells.push(ends.map_or(String::new(), |(low, high)| percent_range(low, high)));
            }
            if p {
                cells.push(row.p_value.map_or(String::new(), |p| format!("{p:.3}")));
            }
            let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
            let _ = writeln!(out, "<tr>{cells}</tr>");
        }
        out.push_str("</table>\n");
        let more = self.ranking.agents.len().saturating_sub(ROWS);
        if more > 0 {
            let _ = writeln!(out, "<p>And {more} more; enable scripts to see all.</p>");
        }
        out
    }
}

/// JSON that cannot end its script block: the escaped characters occur inside strings only.
fn inert(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            other => out.push(other),
        }
    }
    out
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_end_its_block() {
        let text = serde_json::to_string("</script><!--&\u{2028}\u{2029}").unwrap();
        let safe = inert(&text);
        assert!(safe.is_ascii() && !safe.contains(['<', '>', '&']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "</script><!--&\u{2028}\u{2029}");
    }

    #[test]
    fn the_assets_cannot_end_their_blocks() {
        for text in [SCRIPT, STYLE] {
            let low = text.to_lowercase();
            assert!(!low.contains("</script") && !low.contains("</style") && !low.contains("<!--"));
        }
    }
}
