//! How finely numbers were written: in decimals, as float32 or as float64.

/// How finely numbers were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// All are whole multiples of 10^−decimals.
    Decimals(u32),
    /// All are float32 numbers.
    Single,
    /// As finely as float64 can.
    Double,
}

impl Grain {
    /// More decimals than this are not called rounding.
    const MOST: u32 = 9;

    /// Of numbers of both grains.
    pub(super) fn with(self, other: Grain) -> Self {
        match (self, other) {
            (Grain::Decimals(one), Grain::Decimals(other)) => Grain::Decimals(one.max(other)),
            (Grain::Double, _) | (_, Grain::Double) => Grain::Double,
            _ => Grain::Single,
        }
    }

    /// A warning where numbers are too coarse for certificates.
    pub fn warning(self) -> Option<String> {
        match self {
            Grain::Decimals(decimals) => Some(format!(
                "the beliefs are rounded to {decimals} decimal{} (quantum 1e-{decimals}): nothing can be certified, and errors of that size enter the fit",
                if decimals == 1 { "" } else { "s" }
            )),
            Grain::Single => Some("the beliefs are float32 numbers: nothing can be certified".into()),
            Grain::Double => None,
        }
    }
}

/// Finds the grain of numbers that it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct GrainDetector {
    decimals: u32,
    single: bool,
}

impl GrainDetector {
    pub(super) fn new() -> Self {
        GrainDetector { decimals: 1, single: true }
    }

    pub(super) fn observe(&mut self, value: f64) {
        // A multiple of 10^−d is one to within a few roundings of the product.
        let off = |decimals: u32| {
            let scaled = value * 10f64.powi(decimals as i32);
            (scaled - scaled.round()).abs() > 16.0 * f64::EPSILON * scaled.abs()
        };
        while self.decimals <= Grain::MOST && off(self.decimals) {
            self.decimals += 1;
        }
        self.single &= f64::from(value as f32) == value;
    }

    /// Whether no further number could change the result.
    pub(super) fn settled(&self) -> bool {
        self.decimals > Grain::MOST && !self.single
    }

    pub(super) fn merge(&mut self, other: GrainDetector) {
        self.decimals = self.decimals.max(other.decimals);
        self.single &= other.single;
    }

    pub(super) fn grain(self) -> Grain {
        match self {
            GrainDetector { decimals, .. } if decimals <= Grain::MOST => Grain::Decimals(decimals),
            GrainDetector { single: true, .. } => Grain::Single,
            GrainDetector { .. } => Grain::Double,
        }
    }
}
