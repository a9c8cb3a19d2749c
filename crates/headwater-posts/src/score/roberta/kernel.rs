//! Arithmetic of the forward pass in f32: products, normalisation, GELU, attention.
//!
//! Large products go to faer, the fastest f32 product measured here. Everything else is plain loops that the compiler
//! turns into vector instructions; pulp runs them compiled for what the processor has. Every token's numbers depend on
//! its own text only, not on what else is in the batch.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::Arch;

/// A layer `y = x W + b`: weights input by output, as the product wants them.
pub(super) struct Dense {
    weights: Vec<f32>,
    bias: Vec<f32>,
    inputs: usize,
}

/// What happens to a layer's output on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    Gelu,
    Tanh,
}

impl Dense {
    /// From checkpoints' weights, output by input; several layers with the same input become one.
    pub(super) fn new(parts: &[(Vec<f32>, Vec<f32>)], inputs: usize) -> Self {
        let outputs: usize = parts.iter().map(|(_, bias)| bias.len()).sum();
        let mut weights = vec![0.0; inputs * outputs];
        let mut first = 0;
        for (part, bias) in parts {
            for (output, row) in part.chunks_exact(inputs).enumerate() {
                for (input, weight) in row.iter().enumerate() {
                    weights[input * outputs + first + output] = *weight;
                }
            }
            first += bias.len();
        }
        let bias = parts.iter().flat_map(|(_, bias)| bias.iter().copied()).collect();
        Dense { weights, bias, inputs }
    }

    pub(super) fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Rows of input to rows of output.
    pub(super) fn apply(&self, arch: Arch, input: &[f32], output: &mut Vec<f32>, after: After) {
        let (rows, outputs) = (input.len() / self.inputs, self.outputs());
        output.resize(rows * outputs, 0.0);
        matmul(
            MatMut::from_row_major_slice_mut(output, rows, outputs),
            Accum::Replace,
            MatRef::from_row_major_slice(input, rows, self.inputs),
            MatRef::from_row_major_slice(&self.weights, self.inputs, outputs),
            1.0,
            Par::Seq,
        );
        let bias = &self.bias;
        arch.dispatch(|| {
            for row in output.chunks_exact_mut(bias.len()) {
                match after {
                    After::Nothing => row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias),
                    After::Gelu => row.iter_mut().zip(bias).for_each(|(value, bias)| *value = gelu(*value + bias)),
                    After::Tanh => row.iter_mut().zip(bias).for_each(|(value, bias)| *value = (*value + bias).tanh()),
                }
            }
        });
    }
}

/// Scale and shift of a normalised row.
pub(super) struct Norm {
    pub(super) scale: Vec<f32>,
    pub(super) shift: Vec<f32>,
    pub(super) epsilon: f32,
}

impl Norm {
    /// `state` becomes the normalised sum of itself and `addition`, row by row.
    pub(super) fn apply(&self, arch: Arch, state: &mut [f32], addition: &[f32]) {
        let width = self.scale.len();
        arch.dispatch(|| {
            for (row, addition) in state.chunks_exact_mut(width).zip(addition.chunks_exact(width)) {
                row.iter_mut().zip(addition).for_each(|(value, addition)| *value += addition);
                let mean = sum(row, |value| value) / width as f32;
                let variance = sum(row, |value| (value - mean) * (value - mean)) / width as f32;
                let factor = 1.0 / (variance + self.epsilon).sqrt();
                for ((value, scale), shift) in row.iter_mut().zip(&self.scale).zip(&self.shift) {
                    *value = (*value - mean) * factor * scale + shift;
                }
            }
        });
    }
}

/// A sum in sixteen lanes: vectorised, and always in the same order.
#[inline(always)]
fn sum(row: &[f32], map: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let mut chunks = row.chunks_exact(16);
    for chunk in &mut chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += map(*value));
    }
    lanes.iter_mut().zip(chunks.remainder()).for_each(|(lane, value)| *lane += map(*value));
    lanes.iter().sum()
}

/// e^x for x ≤ 0, about one unit in the last place; no branches.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Cephes: x = n ln 2 + r, a polynomial in r, and n added to the exponent. 1.5·2²³ rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * 0.693_359_4) - n * -2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_2e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    let power = f32::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    (p * r * r + r + 1.0) * power
}

/// x Φ(x) with erf by Abramowitz and Stegun 7.1.26: within 1.5e-7, the last digit of f32.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let mut p = 1.061_405_4;
    p = p * t - 1.453_152;
    p = p * t + 1.421_413_8;
    p = p * t - 0.284_496_72;
    p = p * t + 0.254_829_6;
    let erf = 1.0 - p * t * exp(-z * z);
    0.5 * x * (1.0 + erf.copysign(x))
}

/// Rows and columns that a small product handles at once: twelve vector registers of AVX2.
const ROWS: usize = 6;
const COLUMNS: usize = 16;

/// Space for the attention of one text; reused.
#[derive(Default)]
pub(super) struct Attention {
    queries: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    shares: Vec<f32>,
}

/// Shapes of the attention of one text.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Size of a token's state.
    pub(super) width: usize,
    pub(super) heads: usize,
    /// Tokens in the text.
    pub(super) tokens: usize,
    /// Tokens that ask: all, or the first only.
    pub(super) asking: usize,
}

impl Attention {
    /// Queries, and keys and values (each in rows of `query_stride` and `pair_stride`, starting at these slices), to
    /// context: `asking` rows of `width`.
    #[expect(clippy::too_many_arguments, reason = "three inputs with their strides, one output")]
    pub(super) fn apply(
        &mut self,
        arch: Arch,
        shape: Shape,
        (queries, query_stride): (&[f32], usize),
        (keys, values, stride): (&[f32], &[f32], usize),
        context: &mut [f32],
    ) {
        let size = shape.width / shape.heads;
        let scale = 1.0 / (size as f32).sqrt();
        arch.dispatch(|| {
            for head in 0..shape.heads {
                let from = head * size;
                // Scores: queries times keys transposed.
                pack_rows(&mut self.queries, shape.asking, size, |row, at| {
                    queries[row * query_stride + from + at] * scale
                });
                pack_columns(&mut self.keys, size, shape.tokens, |at, column| keys[column * stride + from + at]);
                let padded = shape.tokens.next_multiple_of(COLUMNS);
                self.shares.resize(shape.asking.next_multiple_of(ROWS) * padded, 0.0);
                product(&self.queries, &self.keys, size, padded, &mut self.shares);
                for row in self.shares.chunks_exact_mut(padded).take(shape.asking) {
                    softmax(&mut row[..shape.tokens]);
                }
                // Context: shares times values.
                let shares = &self.shares;
                pack_rows(&mut self.queries, shape.asking, shape.tokens, |row, at| shares[row * padded + at]);
                pack_columns(&mut self.values, shape.tokens, size, |at, column| values[at * stride + from + column]);
                let padded = size.next_multiple_of(COLUMNS);
                self.keys.resize(shape.asking.next_multiple_of(ROWS) * padded, 0.0);
                product(&self.queries, &self.values, shape.tokens, padded, &mut self.keys);
                for (row, found) in self.keys.chunks_exact(padded).take(shape.asking).enumerate() {
                    context[row * shape.width + from..][..size].copy_from_slice(&found[..size]);
                }
            }
        });
    }
}

#[inline(always)]
fn pack_rows(to: &mut Vec<f32>, rows: usize, depth: usize, value: impl Fn(usize, usize) -> f32) {
    to.clear();
    to.resize(rows.next_multiple_of(ROWS) * depth, 0.0);
    for (block, panel) in to.chunks_exact_mut(ROWS * depth).enumerate() {
        for row in 0..ROWS.min(rows - block * ROWS) {
            for at in 0..depth {
                panel[at * ROWS + row] = value(block * ROWS + row, at);
            }
        }
    }
}

#[inline(always)]
fn pack_columns(to: &mut Vec<f32>, depth: usize, columns: usize, value: impl Fn(usize, usize) -> f32) {
    to.clear();
    to.resize(columns.next_multiple_of(COLUMNS) * depth, 0.0);
    for (block, panel) in to.chunks_exact_mut(COLUMNS * depth).enumerate() {
        let width = COLUMNS.min(columns - block * COLUMNS);
        for (at, line) in panel.chunks_exact_mut(COLUMNS).enumerate() {
            for (column, slot) in line[..width].iter_mut().enumerate() {
                *slot = value(at, block * COLUMNS + column);
            }
        }
    }
}

/// Packed rows times packed columns; `to` has rows of `padded`.
#[inline(always)]
fn product(rows: &[f32], columns: &[f32], depth: usize, padded: usize, to: &mut [f32]) {
    for (block, left) in rows.chunks_exact(ROWS * depth).enumerate() {
        for (panel, right) in columns.chunks_exact(COLUMNS * depth).enumerate() {
            let mut sums = [[0.0_f32; COLUMNS]; ROWS];
            for (left, right) in left.chunks_exact(ROWS).zip(right.chunks_exact(COLUMNS)) {
                for row in 0..ROWS {
                    for column in 0..COLUMNS {
                        sums[row][column] = left[row].mul_add(right[column], sums[row][column]);
                    }
                }
            }
            for (row, sums) in sums.iter().enumerate() {
                to[(block * ROWS + row) * padded + panel * COLUMNS..][..COLUMNS].copy_from_slice(sums);
            }
        }
    }
}

#[inline(always)]
fn softmax(row: &mut [f32]) {
    let largest = row.iter().copied().fold(f32::MIN, f32::max);
    row.iter_mut().for_each(|value| *value = exp(*value - largest));
    let factor = 1.0 / sum(row, |value| value);
    row.iter_mut().for_each(|value| *value *= factor);
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::function::erf::erf;

    #[test]
    fn functions_are_right_to_the_last_digits() {
        for step in -4000..=4000 {
            let x = step as f32 / 400.0;
            let right = 0.5 * f64::from(x) * (1.0 + erf(f64::from(x) / 2.0_f64.sqrt()));
            assert!((f64::from(gelu(x)) - right).abs() < 1e-6, "{x}: {} {right}", gelu(x));
            let x = -x.abs() * 9.0;
            let right = f64::from(x).exp();
            assert!((f64::from(exp(x)) - right).abs() <= 3e-7 * right + 1e-37, "{x}: {} {right}", exp(x));
        }
        assert_eq!((gelu(0.0), exp(0.0), exp(-200.0) < 1e-36), (0.0, 1.0, true));
    }

    #[test]
    fn small_products_are_products() {
        let (rows, depth, columns) = (7, 5, 19);
        let value = |row: usize, at: usize| ((row * 31 + at * 17) % 13) as f32 - 6.0;
        let (mut left, mut right) = (vec![], vec![]);
        pack_rows(&mut left, rows, depth, value);
        pack_columns(&mut right, depth, columns, value);
        let padded = columns.next_multiple_of(COLUMNS);
        let mut found = vec![0.0; rows.next_multiple_of(ROWS) * padded];
        product(&left, &right, depth, padded, &mut found);
        for row in 0..rows {
            for column in 0..columns {
                let right: f32 = (0..depth).map(|at| value(row, at) * value(at, column)).sum();
                assert_eq!(found[row * padded + column], right);
            }
        }
    }
}
