//! Numbers for the browser as base64 of little-endian integers: a byte or four instead of a dozen letters.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Base64 of little-endian integers; value = low + integer × step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Packed {
    /// 8, 16 or 32.
    pub bits: u8,
    /// What the integer 0 stands for.
    pub low: f64,
    /// Distance of two integers.
    pub step: f64,
    /// Whether the largest integer means that there is nothing.
    pub gaps: bool,
    /// Base64.
    pub data: String,
}

/// The largest integer of so many bits.
fn largest(bits: u8) -> u32 {
    u32::MAX >> (32 - u32::from(bits))
}

impl Packed {
    /// Whole numbers below `count`, as short as they go.
    pub fn indices(values: impl Iterator<Item = usize>, count: usize) -> Self {
        let bits = if count <= 1 << 16 { 16 } else { 32 };
        Packed { bits, low: 0.0, step: 1.0, gaps: false, data: encode(values.map(|value| value as u32), bits) }
    }

    /// Zeros and ones.
    pub fn flags(values: impl Iterator<Item = bool>) -> Self {
        Packed { bits: 8, low: 0.0, step: 1.0, gaps: false, data: encode(values.map(u32::from), 8) }
    }

    /// Numbers between two ends, which hold all of them. Zero stays exactly zero where it is between.
    pub fn between(values: impl Iterator<Item = f64>, ends: (f64, f64), bits: u8) -> Self {
        let (low, step) = scale(ends, largest(bits));
        let whole = values.map(|value| whole(value, low, step, largest(bits)));
        Packed { bits, low, step, gaps: false, data: encode(whole, bits) }
    }

    /// Shares of one, some of them not there.
    pub fn shares(values: impl Iterator<Item = Option<f64>>, bits: u8) -> Self {
        let most = largest(bits) - 1;
        let (low, step) = scale((0.0, 1.0), most);
        let whole = values.map(|value| value.map_or(largest(bits), |value| whole(value, low, step, most)));
        Packed { bits, low, step, gaps: true, data: encode(whole, bits) }
    }

    /// The numbers again; `None` where there is nothing.
    pub fn values(&self) -> Vec<Option<f64>> {
        let bytes = STANDARD.decode(&self.data).unwrap_or_default();
        let size = usize::from(self.bits / 8);
        let whole = bytes.chunks_exact(size).map(|bytes| {
            bytes.iter().rev().fold(0u32, |whole, byte| whole.checked_shl(8).unwrap_or(0) | u32::from(*byte))
        });
        let value = |whole: u32| self.low + f64::from(whole) * self.step;
        whole.map(|whole| (!self.gaps || whole != largest(self.bits)).then(|| value(whole))).collect()
    }
}

fn scale((low, high): (f64, f64), most: u32) -> (f64, f64) {
    if low >= 0.0 {
        return (low, ((high - low) / f64::from(most)).max(f64::MIN_POSITIVE));
    }
    let step = ((high.max(0.0) - low) / f64::from(most - 1)).max(f64::MIN_POSITIVE);
    (-(-low / step).ceil() * step, step)
}

fn whole(value: f64, low: f64, step: f64, most: u32) -> u32 {
    // A cast of a float stays within the integer's range.
    (((value - low) / step).round() as u32).min(most)
}

fn encode(values: impl Iterator<Item = u32>, bits: u8) -> String {
    let size = usize::from(bits / 8);
    let bytes: Vec<u8> = values.flat_map(|value| value.to_le_bytes().into_iter().take(size)).collect();
    STANDARD.encode(bytes)
}

/// Six significant digits: more than any reader of a card, and half the letters.
pub(crate) fn brief(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let back = |packed: Packed| packed.values().into_iter().map(Option::unwrap).collect::<Vec<_>>();
        assert_eq!(back(Packed::indices([0, 7, 65_535].into_iter(), 65_536)), [0.0, 7.0, 65_535.0]);
        assert_eq!(back(Packed::indices([70_000].into_iter(), 70_001)), [70_000.0]);
        assert_eq!(back(Packed::flags([true, false].into_iter())), [1.0, 0.0]);
        for bits in [8, 16, 32] {
            let values = [-0.3, 0.0, 1e-7, 0.9];
            let packed = Packed::between(values.into_iter(), (-0.3, 0.9), bits);
            let step = packed.step;
            let met = back(packed);
            assert_eq!(met[1], 0.0, "zero stays zero");
            assert!(met.iter().zip(values).all(|(a, b)| (a - b).abs() <= 0.51 * step), "{bits} {met:?}");
            let shares = Packed::shares([Some(0.0), None, Some(1.0), Some(0.25)].into_iter(), bits).values();
            assert_eq!((shares[1], shares[0]), (None, Some(0.0)));
            assert!((shares[2].unwrap() - 1.0).abs() < 1e-12 && (shares[3].unwrap() - 0.25).abs() < 0.002);
        }
        assert_eq!(back(Packed::between([0.0, 0.0].into_iter(), (0.0, 0.0), 16)), [0.0, 0.0]);
        assert_eq!((brief(0.123_456_789), brief(-1e-30), brief(0.0)), (0.123_457, -1e-30, 0.0));
    }
}
