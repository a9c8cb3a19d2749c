//! Arithmetic of the forward pass in f32: products, normalisation, GELU, attention.
//!
//! Large products go to faer, the fastest f32 product measured here. Everything else is plain loops that the compiler
//! turns into vector instructions; pulp runs them compiled for what the processor has. Every token's numbers depend on
//! its own text only, not on what else is in the batch.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::{Arch, NullaryFnOnce};

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
        arch.dispatch(Finish { output, bias: &self.bias, after });
    }
}

// What pulp runs is a struct with an inlined `call` each time: a closure may stay a function of its own, compiled for the
// oldest processor.

struct Finish<'a> {
    output: &'a mut [f32],
    bias: &'a [f32],
    after: After,
}

impl NullaryFnOnce for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Finish { output, bias, after } = self;
        for row in output.chunks_exact_mut(bias.len()) {
            match after {
                After::Nothing => row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias),
                After::Gelu => row.iter_mut().zip(bias).for_each(|(value, bias)| *value = gelu(*value + bias)),
                After::Tanh => row.iter_mut().zip(bias).for_each(|(value, bias)| *value = (*value + bias).tanh()),
            }
        }
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
        arch.dispatch(Normalise { norm: self, state, addition });
    }
}

struct Normalise<'a> {
    norm: &'a Norm,
    state: &'a mut [f32],
    addition: &'a [f32],
}

impl NullaryFnOnce for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Normalise { norm, state, addition } = self;
        let width = norm.scale.len();
        for (row, addition) in state.chunks_exact_mut(width).zip(addition.chunks_exact(width)) {
            row.iter_mut().zip(addition).for_each(|(value, addition)| *value += addition);
            let mean = sum(row, |value| value) / width as f32;
            let variance = sum(row, |value| (value - mean) * (value - mean)) / width as f32;
            let factor = 1.0 / (variance + norm.epsilon).sqrt();
            for ((value, scale), shift) in row.iter_mut().zip(&norm.scale).zip(&norm.shift) {
                *value = (*value - mean) * factor * scale + shift;
            }
        }
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
pub(super) struct AttentionBuffers {
    left: Vec<f32>,
    right: Vec<f32>,
    shares: Vec<f32>,
    found: Vec<f32>,
}

/// Shapes of the attention of one text.
#[derive(Clone, Copy)]
pub(super) struct AttentionShape {
    /// Size of a token's state.
    pub(super) width: usize,
    pub(super) heads: usize,
    /// Tokens in the text.
    pub(super) tokens: usize,
    /// Tokens that ask: all, or the first only.
    pub(super) asking: usize,
}

/// The attention of one text: what is asked, what answers, where the answer goes.
pub(super) struct Attend<'a> {
    pub(super) space: &'a mut AttentionBuffers,
    pub(super) shape: AttentionShape,
    /// Rows of `width`.
    pub(super) queries: &'a [f32],
    /// Rows of a key and a value, `width` each.
    pub(super) pairs: &'a [f32],
    /// Rows of `width`, one for each token that asks.
    pub(super) context: &'a mut [f32],
}

impl NullaryFnOnce for Attend<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Attend { space, shape: AttentionShape { width, heads, tokens, asking }, queries, pairs, context } = self;
        let size = width / heads;
        let scale = 1.0 / (size as f32).sqrt();
        let rows = asking.next_multiple_of(ROWS);
        for head in 0..heads {
            let from = head * size;
            // Scores: queries times keys transposed.
            pack::<ROWS>(&mut space.left, asking, size, |row| &queries[row * width + from..][..size]);
            pack::<COLUMNS>(&mut space.right, tokens, size, |column| &pairs[column * 2 * width + from..][..size]);
            let padded = tokens.next_multiple_of(COLUMNS);
            space.shares.resize(rows * padded, 0.0);
            product(&space.left, &space.right, size, padded, &mut space.shares);
            for row in space.shares.chunks_exact_mut(padded).take(asking) {
                softmax(&mut row[..tokens], scale);
            }
            // Context: shares times values.
            let shares = &space.shares;
            pack::<ROWS>(&mut space.left, asking, tokens, |row| &shares[row * padded..][..tokens]);
            pack_columns(&mut space.right, tokens, size, |at| &pairs[at * 2 * width + width + from..][..size]);
            let padded = size.next_multiple_of(COLUMNS);
            space.found.resize(rows * padded, 0.0);
            product(&space.left, &space.right, tokens, padded, &mut space.found);
            for (row, found) in space.found.chunks_exact(padded).take(asking).enumerate() {
                context[row * width + from..][..size].copy_from_slice(&found[..size]);
            }
        }
    }
}

/// Lines in panels of `WIDTH` that lie side by side: rows of the left factor ([`ROWS`]) or columns of the right one ([`COLUMNS`]).
#[inline(always)]
fn pack<'a, const WIDTH: usize>(to: &mut Vec<f32>, lines: usize, depth: usize, line: impl Fn(usize) -> &'a [f32]) {
    to.clear();
    to.resize(lines.next_multiple_of(WIDTH) * depth, 0.0);
    for (block, panel) in to.chunks_exact_mut(WIDTH * depth).enumerate() {
        for offset in 0..WIDTH.min(lines - block * WIDTH) {
            let line = line(block * WIDTH + offset);
            for (slots, value) in panel.chunks_exact_mut(WIDTH).zip(line) {
                slots[offset] = *value;
            }
        }
    }
}

/// Columns in panels of [`COLUMNS`], line by line; a line is one row of the matrix.
#[inline(always)]
fn pack_columns<'a>(to: &mut Vec<f32>, depth: usize, columns: usize, line: impl Fn(usize) -> &'a [f32]) {
    to.clear();
    to.resize(columns.next_multiple_of(COLUMNS) * depth, 0.0);
    for at in 0..depth {
        for (block, part) in line(at).chunks(COLUMNS).enumerate() {
            to[(block * depth + at) * COLUMNS..][..part.len()].copy_from_slice(part);
        }
    }
}

/// Packed rows times packed columns; `to` has rows of `padded`.
#[inline(always)]
fn product(rows: &[f32], columns: &[f32], depth: usize, padded: usize, to: &mut [f32]) {
    for (block, left) in rows.chunks_exact(ROWS * depth).enumerate() {
        for (panel, right) in columns.chunks_exact(COLUMNS * depth).enumerate() {
            let mut sums = [[0.0_f32; COLUMNS]; ROWS];
            for (left, right) in left.as_chunks::<ROWS>().0.iter().zip(right.as_chunks::<COLUMNS>().0) {
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
fn softmax(row: &mut [f32], scale: f32) {
    let mut lanes = [f32::MIN; COLUMNS];
    for chunk in row.chunks(COLUMNS) {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane = lane.max(*value));
    }
    let largest = lanes.into_iter().fold(f32::MIN, f32::max);
    row.iter_mut().for_each(|value| *value = exp((*value - largest) * scale));
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
        let matrix = |rows: usize, columns: usize, value: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
            (0..rows).flat_map(|row| (0..columns).map(move |column| value(row, column))).collect()
        };
        let a = matrix(rows, depth, &value);
        let b = matrix(depth, columns, &value);
        let turned = matrix(columns, depth, &|column, at| value(at, column));
        let (mut left, mut right, mut other) = (vec![], vec![], vec![]);
        pack::<ROWS>(&mut left, rows, depth, |row| &a[row * depth..][..depth]);
        pack_columns(&mut right, depth, columns, |at| &b[at * columns..][..columns]);
        pack::<COLUMNS>(&mut other, columns, depth, |column| &turned[column * depth..][..depth]);
        assert_eq!(right, other);
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
