//! Style of the figures: colours that colour-blind readers can tell apart, and dashes for black-and-white print.

/// The palette of Okabe and Ito, darkest first; yellow is left out, it is too faint on white.
pub const COLOURS: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"];

/// Dashes that go with them.
pub(crate) const DASHES: [&str; 4] = ["", "7 3", "2 2.5", "9 3 2 3"];

/// For series shown for comparison only.
pub const GREY: &str = "#767676";

pub(crate) const INK: &str = "#222222";
pub(crate) const FAINT: &str = "#E3E3E3";
pub(crate) const PAPER: &str = "#FFFFFF";

/// Family of all text; the first is what PNG files are drawn with.
pub(crate) const FONT: &str = "DejaVu Sans, Verdana, sans-serif";

pub(crate) const TEXT: f64 = 11.0;
pub(crate) const TITLE: f64 = 14.0;

/// Size of a panel's drawing area in pixels, without its axes and legend.
pub(crate) const PANEL: (f64, f64) = (400.0, 250.0);

/// Width of a text, near enough to lay out legends and margins.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|letter| if letter.is_ascii_uppercase() || letter == 'm' { 0.72 } else { 0.58 }).sum::<f64>()
        * size
}

/// A shade for a value in −1…1: white at zero, blue above, orange below.
pub(crate) fn shade(value: f64) -> String {
    let strength = value.clamp(-1.0, 1.0);
    let end: [f64; 3] = if strength >= 0.0 { [8.0, 48.0, 107.0] } else { [127.0, 39.0, 4.0] };
    let middle: [f64; 3] = if strength >= 0.0 { [107.0, 174.0, 214.0] } else { [253.0, 141.0, 60.0] };
    let (from, to, along) = match strength.abs() {
        low if low < 0.5 => ([255.0; 3], middle, low * 2.0),
        high => (middle, end, high * 2.0 - 1.0),
    };
    let channel = |index: usize| (from[index] + (to[index] - from[index]) * along).round() as u8;
    format!("#{:02X}{:02X}{:02X}", channel(0), channel(1), channel(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_run_from_white_to_dark() {
        assert_eq!(shade(0.0), "#FFFFFF");
        assert_eq!(shade(1.0), "#08306B");
        assert_eq!(shade(-2.0), "#7F2704");
    }
}
