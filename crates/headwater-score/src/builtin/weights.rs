//! The weights: one byte per bucket and side, and the calibration.
//!
//! A softmax does not change when the same is added to all its classes, so two numbers per bucket are enough: negative
//! and positive, each against neutral. They are stored as one signed byte each, finer near zero: `q` stands for
//! `±largest·(q/127)²`. After the magic line come `largest` and the temperature as little-endian f32, then the bytes.

use super::features::BUCKETS;

const MAGIC: &[u8] = b"headwater-builtin/1\n";
const HEAD: usize = MAGIC.len() + 8;

/// Size of a weights file.
pub const FILE_SIZE: usize = HEAD + 2 * BUCKETS;

/// Weights as they are in memory.
#[derive(Debug, Clone)]
pub struct BuiltinWeights {
    bytes: Vec<[i8; 2]>,
    /// What each byte stands for, counted from −128.
    values: Box<[f32; 256]>,
    largest: f32,
    /// Sums of weights are divided by this before the softmax.
    pub temperature: f32,
}

fn values(largest: f32) -> Box<[f32; 256]> {
    let mut values = Box::new([0.0; 256]);
    for (at, value) in values.iter_mut().enumerate() {
        let step = (at as f32 - 128.0) / 127.0;
        *value = largest * step * step.abs();
    }
    values
}

impl BuiltinWeights {
    /// Rounds trained weights: negative and positive against neutral, per bucket.
    pub fn rounded(trained: &[[f32; 2]], temperature: f32) -> Self {
        let largest = trained.iter().flatten().fold(f32::MIN_POSITIVE, |largest, weight| largest.max(weight.abs()));
        let byte = |weight: f32| (127.0 * (weight.abs() / largest).sqrt()).round().copysign(weight) as i8;
        let bytes = trained.iter().map(|pair| pair.map(byte)).collect();
        BuiltinWeights { bytes, values: values(largest), largest, temperature }
    }

    /// Reads a weights file; `None` if it is not one.
    pub fn from_bytes(file: &[u8]) -> Option<Self> {
        let rest = file.strip_prefix(MAGIC)?;
        if file.len() != FILE_SIZE {
            return None;
        }
        let (largest, rest) = rest.split_first_chunk::<4>()?;
        let (temperature, rest) = rest.split_first_chunk::<4>()?;
        let (largest, temperature) = (f32::from_le_bytes(*largest), f32::from_le_bytes(*temperature));
        let bytes = rest.chunks_exact(2).map(|pair| [pair[0] as i8, pair[1] as i8]).collect();
        let sensible = largest.is_finite() && temperature.is_finite() && temperature > 0.0;
        sensible.then(|| BuiltinWeights { bytes, values: values(largest), largest, temperature })
    }

    /// The weights file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend(self.largest.to_le_bytes());
        file.extend(self.temperature.to_le_bytes());
        file.extend(self.bytes.iter().flatten().map(|byte| *byte as u8));
        file
    }

    /// Negative and positive against neutral.
    #[inline]
    pub fn of(&self, bucket: u32) -> [f32; 2] {
        self.bytes[bucket as usize].map(|byte| self.values[usize::from(byte as u8 ^ 0x80)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_survive_the_file() {
        let mut trained = vec![[0.0; 2]; BUCKETS];
        trained[7] = [1.5, -0.001];
        trained[8] = [-0.75, 0.0];
        let weights = BuiltinWeights::rounded(&trained, 1.25);
        let file = weights.to_bytes();
        assert_eq!(file.len(), FILE_SIZE);
        let read = BuiltinWeights::from_bytes(&file).unwrap();
        for bucket in [0, 7, 8] {
            assert_eq!(read.of(bucket), weights.of(bucket));
            for side in 0..2 {
                let (found, right) = (read.of(bucket)[side], trained[bucket as usize][side]);
                // Half a step of the square root, doubled by squaring.
                assert!((found - right).abs() <= 1.5 * (right.abs() / 1.5).sqrt() / 127.0 + 1e-4, "{found} {right}");
            }
        }
        assert_eq!(read.temperature, 1.25);
        assert!(BuiltinWeights::from_bytes(&file[1..]).is_none() && BuiltinWeights::from_bytes(&file[..99]).is_none());
    }
}
