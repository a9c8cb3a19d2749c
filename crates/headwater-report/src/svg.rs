//! SVG, written element by element; text is escaped here and nowhere else.

use crate::style::{FONT, INK, PAPER, TEXT};
use std::fmt::Write;

/// A drawing under construction.
pub(crate) struct Svg {
    body: String,
    clips: usize,
}

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Style of a text.
#[derive(Clone, Copy)]
pub(crate) struct TextStyle {
    pub(crate) size: f64,
    pub(crate) anchor: Anchor,
    pub(crate) bold: bool,
    pub(crate) turned: bool,
    pub(crate) colour: &'static str,
}

impl TextStyle {
    pub(crate) fn plain(anchor: Anchor) -> Self {
        TextStyle { size: TEXT, anchor, bold: false, turned: false, colour: INK }
    }
}

/// Escapes text and attributes. Characters that XML does not allow become a question mark.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('?'),
            other => out.push(other),
        }
    }
    out
}

/// A coordinate: two decimals are finer than any screen.
pub(crate) fn at(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

impl Svg {
    pub(crate) fn new() -> Self {
        Svg { body: String::new(), clips: 0 }
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot go wrong.
        let _ = writeln!(self.body, "{element}");
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str, width: f64) {
        let (x1, y1, x2, y2) = (at(from.0), at(from.1), at(to.0), at(to.1));
        self.add(format_args!(
            r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{stroke}" stroke-width="{}"/>"#,
            at(width)
        ));
    }

    pub(crate) fn rect(&mut self, corner: (f64, f64), size: (f64, f64), fill: &str) {
        let (x, y, width, height) = (at(corner.0), at(corner.1), at(size.0), at(size.1));
        self.add(format_args!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>"#));
    }

    pub(crate) fn circle(&mut self, centre: (f64, f64), radius: f64, fill: &str, stroke: &str) {
        let (x, y, radius) = (at(centre.0), at(centre.1), at(radius));
        self.add(format_args!(r#"<circle cx="{x}" cy="{y}" r="{radius}" fill="{fill}" stroke="{stroke}"/>"#));
    }

    /// A line through points; pieces are kept apart.
    pub(crate) fn path(&mut self, pieces: &[Vec<(f64, f64)>], stroke: &str, width: f64, dash: &str) {
        let mut d = String::new();
        for piece in pieces {
            for (index, (x, y)) in piece.iter().enumerate() {
                let letter = if index == 0 { 'M' } else { 'L' };
                let _ = write!(d, "{letter}{} {}", at(*x), at(*y));
            }
        }
        let dashes = if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
        self.add(format_args!(
            r#"<path d="{d}" fill="none" stroke="{stroke}" stroke-width="{}" stroke-linejoin="round"{dashes}/>"#,
            at(width)
        ));
    }

    /// A filled outline, half transparent.
    pub(crate) fn area(&mut self, outline: &[(f64, f64)], fill: &str) {
        let points: Vec<String> = outline.iter().map(|(x, y)| format!("{},{}", at(*x), at(*y))).collect();
        self.add(format_args!(r#"<polygon points="{}" fill="{fill}" fill-opacity="0.2"/>"#, points.join(" ")));
    }

    pub(crate) fn text(&mut self, place: (f64, f64), text: &str, look: TextStyle) {
        let anchor = match look.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (at(place.0), at(place.1));
        let turn = if look.turned { format!(r#" transform="rotate(-90 {x} {y})""#) } else { String::new() };
        let weight = if look.bold { r#" font-weight="bold""# } else { "" };
        self.add(format_args!(
            r#"<text x="{x}" y="{y}" font-size="{}" text-anchor="{anchor}" fill="{}"{weight}{turn}>{}</text>"#,
            at(look.size),
            look.colour,
            escape(text)
        ));
    }

    /// Everything until [`Svg::unclip`] shows only inside this rectangle.
    pub(crate) fn clip(&mut self, corner: (f64, f64), size: (f64, f64)) {
        self.clips += 1;
        let (name, x, y, width, height) = (self.clips, at(corner.0), at(corner.1), at(size.0), at(size.1));
        self.add(format_args!(
            r#"<clipPath id="clip{name}"><rect x="{x}" y="{y}" width="{width}" height="{height}"/></clipPath><g clip-path="url(#clip{name})">"#
        ));
    }

    pub(crate) fn unclip(&mut self) {
        self.add(format_args!("</g>"));
    }

    /// The whole document.
    pub(crate) fn finish(self, title: &str, width: f64, height: f64) -> String {
        let (width, height) = (at(width.ceil()), at(height.ceil()));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"{FONT}\" role=\"img\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>\n{}</svg>\n",
            escape(title),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        assert_eq!(escape("<script>\"&\u{1}"), "&lt;script&gt;&quot;&amp;?");
        assert_eq!((at(1.0), at(-0.001), at(2.345)), ("1".into(), "0".into(), "2.35".into()));
    }
}
