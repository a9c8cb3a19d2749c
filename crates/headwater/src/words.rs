//! Text of names and numbers, the same on the terminal, in figures and on the page.

use std::borrow::Cow;
use std::fmt::Display;

/// Whether a character moves the cursor, begins a line or turns the direction of text: controls, line and paragraph
/// separators, embeddings, overrides and isolates.
pub fn acts(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name whose characters that act ([`acts`]), line ends included, are shown as escapes: it can neither begin a line nor
/// change what stands beside it.
pub fn shown(name: &str) -> Cow<'_, str> {
    if !name.contains(acts) {
        return Cow::Borrowed(name);
    }
    let one = |character: char| match acts(character) {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    Cow::Owned(name.chars().map(one).collect())
}

/// Names, each as [`shown`], one after the other.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// A name, as [`shown`], cut to the width of a label.
pub fn short(name: &str) -> String {
    const LONGEST: usize = 20;
    let name = shown(name);
    if name.chars().count() <= LONGEST {
        return name.into_owned();
    }
    name.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// A name within a sentence, isolated where it may be written from right to left.
pub fn within(name: &str) -> String {
    match name.is_ascii() {
        true => short(name),
        false => format!("\u{2068}{}\u{2069}", short(name)),
    }
}

/// Four significant digits, short.
pub fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if (1e-3..1e5).contains(&value.abs()) {
        let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
        return format!("{value:.digits$}");
    }
    format!("{value:.2e}")
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    let text = format!("{:.1}%", 100.0 * share);
    // What rounds to zero has no sign.
    if text == "-0.0%" { "0.0%".to_owned() } else { text }
}

/// Both ends of an interval of shares; a dash before a minus would read as two.
pub fn percent_range(low: f64, high: f64) -> String {
    let (low, high) = (percent(low), percent(high));
    let joint = if high.starts_with('-') { " to " } else { "–" };
    low + joint + &high
}

/// A number as given, with an exponent where it would have hundreds of digits.
pub fn exact(value: impl Display) -> String {
    const LONGEST: usize = 24;
    let text = value.to_string();
    match text.parse::<f64>() {
        Ok(number) if text.len() > LONGEST => format!("{number:e}"),
        _ => text,
    }
}

/// A count with its noun.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.12345, 12.3456, 123_456.0, 1e-9, -0.5, 1234.6].map(number);
        assert_eq!(shown, ["0", "0.1235", "12.35", "1.23e5", "1.00e-9", "-0.5000", "1235"]);
        assert_eq!([-0.0, -0.0004, 0.0004, -0.0006, 1.0].map(percent), ["0.0%", "0.0%", "0.0%", "-0.1%", "100.0%"]);
        let ranges = [(-0.638, -0.109), (-0.109, 0.2), (-0.1, -0.0001), (0.1, 0.2)];
        let shown = ranges.map(|(low, high)| percent_range(low, high));
        assert_eq!(shown, ["-63.8% to -10.9%", "-10.9%–20.0%", "-10.0%–0.0%", "10.0%–20.0%"]);
        assert_eq!(
            (exact(1e-300), exact(0.05), exact(usize::MAX)),
            ("1e-300".into(), "0.05".into(), usize::MAX.to_string())
        );
        assert_eq!((exact(-1e300), exact(f64::NAN)), ("-1e300".into(), "NaN".into()));
        assert_eq!(short(&"x".repeat(30)).chars().count(), 20);
        assert_eq!((count(1, "step"), count(2, "step")), ("1 step".into(), "2 steps".into()));
    }

    #[test]
    fn names_do_not_act() {
        assert_eq!(
            shown("a\nnote: b\u{1b}[2J\u{202e}\u{2067}\u{2028}"),
            "a\\nnote: b\\u{1b}[2J\\u{202e}\\u{2067}\\u{2028}"
        );
        assert_eq!(shown("名前 – ok"), "名前 – ok");
        assert_eq!((short("a\nb"), within("a\nb")), ("a\\nb".to_owned(), "a\\nb".to_owned()));
        assert_eq!(within("名\u{2069}前"), "\u{2068}名\\u{2069}前\u{2069}");
    }
}
