//! Scales: from numbers to positions, ticks and their labels.

/// Type of a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScaleKind {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic; values that are not positive are not shown.
    Log,
}

/// An axis with its range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    kind: ScaleKind,
    low: f64,
    high: f64,
}

/// Ticks on an axis, about.
const TICKS: f64 = 6.0;

impl Scale {
    /// A scale that shows all values, rounded outward a little; zero too where bars stand on it.
    pub(crate) fn over(kind: ScaleKind, values: impl Iterator<Item = f64>, from_zero: bool) -> Self {
        let seen = values.filter(|value| value.is_finite() && (kind == ScaleKind::Linear || *value > 0.0));
        let (mut low, mut high) = seen.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = if kind == ScaleKind::Log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if from_zero && kind == ScaleKind::Linear {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        match kind {
            ScaleKind::Linear => {
                if high - low <= 1e-12 * high.abs().max(low.abs()) {
                    let space = if high == 0.0 { 1.0 } else { 0.5 * high.abs() };
                    (low, high) = (low - space, high + space);
                }
                let space = 0.04 * (high - low);
                let below = if from_zero && low == 0.0 { 0.0 } else { space };
                Scale { kind, low: low - below, high: high + space }
            }
            ScaleKind::Log => Scale { kind, low: low / 1.3, high: high * 1.3 },
        }
    }

    /// A given range.
    pub(crate) fn between(kind: ScaleKind, low: f64, high: f64) -> Self {
        Scale { kind, low, high }
    }

    /// Where a value is, 0 at the low end and 1 at the high one.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let (value, low, high) = match self.kind {
            ScaleKind::Linear => (value, self.low, self.high),
            ScaleKind::Log if value > 0.0 => (value.ln(), self.low.ln(), self.high.ln()),
            ScaleKind::Log => return None,
        };
        let place = (value - low) / (high - low);
        place.is_finite().then_some(place)
    }

    /// Values worth a tick, with their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        match self.kind {
            ScaleKind::Linear => {
                let rough = (self.high - self.low) / TICKS;
                let unit = 10f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * unit).find(|s| *s >= rough).unwrap_or(unit);
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step).floor() as i64;
                let digits = (-(step * 1.000_001).log10().floor()).max(0.0) as usize;
                (first..=last).map(|n| n as f64 * step).map(|v| (v, shown(v, digits))).collect()
            }
            ScaleKind::Log => {
                let (first, last) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
                if last - first < 1 {
                    return self.within_a_decade();
                }
                let step = ((f64::from(last - first) / TICKS).ceil() as i32).max(1);
                let decades = (first..=last).filter(|decade| decade.rem_euclid(step) == 0);
                decades.map(|decade| (10f64.powi(decade), power(decade))).collect()
            }
        }
    }

    /// Ticks of a logarithmic axis that spans less than two powers of ten.
    fn within_a_decade(&self) -> Vec<(f64, String)> {
        let decade = 10f64.powf(self.low.log10().floor());
        let digits = (-decade.log10()).max(0.0) as usize;
        let candidates = [1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 30.0, 50.0].map(|m| m * decade);
        let inside = candidates.into_iter().filter(|v| (self.low..=self.high).contains(v));
        inside.map(|v| (v, shown(v, digits))).collect()
    }
}

/// A number with thin spaces between thousands.
fn shown(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    if let Some(rest) = rest {
        out = format!("{out}.{rest}");
    }
    let zero = out.chars().all(|letter| matches!(letter, '0' | '.'));
    if value < 0.0 && !zero { format!("−{out}") } else { out }
}

/// 10 to a power, small ones written out.
fn power(exponent: i32) -> String {
    match exponent {
        -2 => "0.01".into(),
        -1 => "0.1".into(),
        0 => "1".into(),
        1 => "10".into(),
        2 => "100".into(),
        _ => {
            let digits = exponent.to_string();
            let raised = digits.chars().map(|letter| match letter {
                '-' => '⁻',
                '0' => '⁰',
                '1' => '¹',
                '2' => '²',
                '3' => '³',
                digit => char::from_u32('⁰' as u32 + digit as u32 - '0' as u32).unwrap_or(digit),
            });
            format!("10{}", raised.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let labels = |scale: Scale| scale.ticks().into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(Scale::between(ScaleKind::Linear, 0.0, 1.0)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            labels(Scale::between(ScaleKind::Linear, -1.0, 70_000.0)),
            ["0", "20\u{2009}000", "40\u{2009}000", "60\u{2009}000"]
        );
        assert_eq!(labels(Scale::between(ScaleKind::Log, 1e-4, 20.0)), ["10⁻⁴", "10⁻³", "0.01", "0.1", "1", "10"]);
        assert_eq!(labels(Scale::between(ScaleKind::Log, 0.04, 0.4)), ["0.05", "0.07", "0.10", "0.20", "0.30"]);
        assert_eq!(labels(Scale::between(ScaleKind::Log, 1e-30, 1.0)).len(), 7);
    }

    #[test]
    fn whatever_comes_there_is_a_range() {
        for values in [vec![], vec![3.0], vec![0.0, 0.0], vec![f64::NAN, f64::INFINITY], vec![-1.0, 2.0]] {
            for kind in [ScaleKind::Linear, ScaleKind::Log] {
                let scale = Scale::over(kind, values.iter().copied(), false);
                assert!(scale.low < scale.high, "{values:?} {scale:?}");
                assert!(scale.ticks().len() < 20);
            }
        }
        assert_eq!(Scale::between(ScaleKind::Log, 1.0, 100.0).place(10.0), Some(0.5));
        assert_eq!(Scale::between(ScaleKind::Log, 1.0, 100.0).place(0.0), None);
        assert_eq!(shown(-1234.5, 1), "−1\u{2009}234.5");
    }
}
