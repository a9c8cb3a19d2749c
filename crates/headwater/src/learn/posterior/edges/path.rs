//! The hidden beliefs of one agent given those of all others.
//!
//! In: what is seen of the agent at every step (its own posts, and the beliefs of its listeners one step later) as one
//! number with a precision. The beliefs obey x_t = b·x_{t−1} + u_t + η_t, η ~ N(0, Q), where u_t is a combination of known
//! series. Out: the likelihood as a function of b, Q and the coefficients, with the beliefs integrated out, and draws.

use pulp::{Arch, NullaryFnOnce};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// What is seen of an agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// By step.
    pub(crate) values: Vec<f64>,
    pub(crate) precisions: Vec<f64>,
    /// Mean and variance of the first belief.
    pub(crate) first: (f64, f64),
}

/// A log-likelihood that is quadratic in the coefficients β of some columns: −½(logs + yy − 2 β·cy + β·CC·β).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TwoColumns {
    /// Sum of the logarithms of the variances of the forecasts, up to a constant.
    logs: f64,
    yy: f64,
    uy: f64,
    oy: f64,
    uu: f64,
    uo: f64,
    oo: f64,
}

impl TwoColumns {
    /// For the column `inputs` and a constant, which are β·u_t + d.
    pub(crate) fn new(seen: &Seen, inputs: &[f64], own: f64, news: f64) -> Self {
        let (mut mean, mut variance) = (seen.first.0, seen.first.1);
        let (mut input, mut one) = (0.0, 0.0);
        let mut sums = TwoColumns::default();
        let mut product = 1.0;
        for (step, (&value, &precision)) in seen.values.iter().zip(&seen.precisions).enumerate() {
            if step > 0 {
                mean *= own;
                input = own * input + inputs[step - 1];
                one = own * one + 1.0;
                variance = own * own * variance + news;
            }
            let growth = 1.0 + variance * precision;
            let left = 1.0 / growth;
            let weight = precision * left;
            let error = value - mean;
            if step > 0 {
                product *= growth;
                sums.yy += weight * error * error;
                sums.uy += weight * error * input;
                sums.oy += weight * error * one;
                sums.uu += weight * input * input;
                sums.uo += weight * input * one;
                sums.oo += weight * one * one;
                if product > 1e200 {
                    sums.logs += product.ln();
                    product = 1.0;
                }
            }
            variance *= left;
            mean += variance * precision * error;
            input *= left;
            one *= left;
        }
        sums.logs += product.ln();
        sums
    }

    /// At coefficient β, with the constant integrated out under a normal law of this mean and precision.
    pub(crate) fn log_likelihood(&self, coefficient: f64, constant: (f64, f64)) -> f64 {
        let (mean, precision) = constant;
        let squares = self.yy - 2.0 * coefficient * self.uy + coefficient * coefficient * self.uu;
        let total = self.oo + precision;
        let pull = self.oy - coefficient * self.uo + precision * mean;
        -0.5 * (self.logs + squares + total.ln() - pull * pull / total)
    }
}

/// Sums of products of the columns of a likelihood: those of the speakers, a constant, and what is seen.
///
/// `beliefs` are those of all agents, step by step; column `c` is `scale` times those of `speakers[c]`.
pub(crate) struct Whitened<'a> {
    pub(crate) seen: &'a Seen,
    pub(crate) beliefs: &'a [f64],
    pub(crate) agents: usize,
    pub(crate) speakers: &'a [usize],
    pub(crate) scale: f64,
    pub(crate) own: f64,
    pub(crate) news: f64,
}

impl Whitened<'_> {
    /// (n+2)² sums, both triangles.
    pub(crate) fn products(&self, rows: &mut Vec<f64>) -> Vec<f64> {
        let width = self.speakers.len() + 2;
        let mut products = vec![0.0; width * width];
        Arch::new().dispatch(Whiten { of: self, rows });
        Arch::new().dispatch(Products { rows, width, products: &mut products });
        products
    }
}

struct Whiten<'a, 'b> {
    of: &'a Whitened<'b>,
    rows: &'a mut Vec<f64>,
}

impl NullaryFnOnce for Whiten<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Whitened { seen, beliefs, agents, speakers, scale, own, news } = *self.of;
        let count = speakers.len();
        let width = count + 2;
        let steps = seen.values.len();
        self.rows.clear();
        self.rows.resize((steps - 1) * width, 0.0);
        let mut inputs = vec![0.0; count + 1];
        let mut means = vec![0.0; count + 1];
        let (mut mean, mut variance) = seen.first;
        for step in 0..steps {
            if step > 0 {
                let before = &beliefs[(step - 1) * agents..step * agents];
                for (input, &speaker) in inputs.iter_mut().zip(speakers) {
                    *input = scale * before[speaker];
                }
                inputs[count] = 1.0;
                mean *= own;
                variance = own * own * variance + news;
            }
            let precision = seen.precisions[step];
            let left = 1.0 / (1.0 + variance * precision);
            let error = seen.values[step] - mean;
            if step > 0 {
                let root = (precision * left).sqrt();
                let row = &mut self.rows[(step - 1) * width..step * width];
                for ((column, past), input) in row.iter_mut().zip(&mut means).zip(&inputs) {
                    let forecast = own * *past + input;
                    *column = forecast * root;
                    *past = forecast * left;
                }
                row[count + 1] = error * root;
            }
            variance *= left;
            mean += variance * precision * error;
        }
    }
}

/// Sums of products of columns over rows.
pub(crate) struct Products<'a> {
    pub(crate) rows: &'a [f64],
    pub(crate) width: usize,
    pub(crate) products: &'a mut [f64],
}

impl NullaryFnOnce for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Products { rows, width, products } = self;
        let mut blocks = rows.chunks_exact(4 * width);
        for block in blocks.by_ref() {
            let (a, rest) = block.split_at(width);
            let (b, rest) = rest.split_at(width);
            let (c, d) = rest.split_at(width);
            for i in 0..width {
                let out = &mut products[i * width + i..(i + 1) * width];
                let (a0, b0, c0, d0) = (a[i], b[i], c[i], d[i]);
                for ((((out, a), b), c), d) in out.iter_mut().zip(&a[i..]).zip(&b[i..]).zip(&c[i..]).zip(&d[i..]) {
                    *out += (a0 * a + b0 * b) + (c0 * c + d0 * d);
                }
            }
        }
        for row in blocks.remainder().chunks_exact(width) {
            for i in 0..width {
                for j in i..width {
                    products[i * width + j] += row[i] * row[j];
                }
            }
        }
        for i in 1..width {
            for j in 0..i {
                products[i * width + j] = products[j * width + i];
            }
        }
    }
}

/// A draw of the beliefs, given the inputs u_1 … u_{T−1}.
pub(crate) fn draw(
    seen: &Seen,
    inputs: &[f64],
    own: f64,
    news: f64,
    rng: &mut impl Rng,
    out: &mut [f64],
    variances: &mut Vec<f64>,
) {
    let (mut mean, mut variance) = seen.first;
    variances.clear();
    for (step, (&value, &precision)) in seen.values.iter().zip(&seen.precisions).enumerate() {
        if step > 0 {
            mean = own * mean + inputs[step - 1];
            variance = own * own * variance + news;
        }
        variance /= 1.0 + variance * precision;
        mean += variance * precision * (value - mean);
        out[step] = mean;
        variances.push(variance);
    }
    let mut normal = || -> f64 { StandardNormal.sample(rng) };
    let last = out.len() - 1;
    out[last] += variances[last].sqrt() * normal();
    for step in (0..last).rev() {
        let forecast = own * own * variances[step] + news;
        let gain = variances[step] * own / forecast;
        out[step] += gain * (out[step + 1] - own * out[step] - inputs[step])
            + (variances[step] * news / forecast).sqrt() * normal();
    }
}
