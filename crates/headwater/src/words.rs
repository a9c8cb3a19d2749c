//! Text of names and numbers, the same on the terminal, in figures and on the page.

/// A name cut to the width of a table column.
pub fn short(name: &str) -> String {
    const LONGEST: usize = 20;
    if name.chars().count() <= LONGEST {
        return name.to_owned();
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
    format!("{:.1}%", 100.0 * share)
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
        assert_eq!(short(&"x".repeat(30)).chars().count(), 20);
        assert_eq!((count(1, "step"), count(2, "step")), ("1 step".into(), "2 steps".into()));
    }
}
