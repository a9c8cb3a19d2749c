//! Numbers of several parameter vectors side by side, so that one pass over the data serves all of them with vector
//! instructions.

/// Parameter vectors evaluated at once: as many doubles as the widest registers hold.
pub(crate) const LANES: usize = 8;

/// One number of each parameter vector.
pub(crate) type Lane<const L: usize = LANES> = [f64; L];

/// The same number in every lane.
#[inline(always)]
pub(crate) fn splat<const L: usize>(value: f64) -> Lane<L> {
    [value; L]
}

#[inline(always)]
pub(crate) fn map<const L: usize>(a: Lane<L>, function: impl Fn(f64) -> f64) -> Lane<L> {
    std::array::from_fn(|lane| function(a[lane]))
}

#[inline(always)]
pub(crate) fn zip<const L: usize>(a: Lane<L>, b: Lane<L>, function: impl Fn(f64, f64) -> f64) -> Lane<L> {
    std::array::from_fn(|lane| function(a[lane], b[lane]))
}

#[inline(always)]
pub(crate) fn mul<const L: usize>(a: Lane<L>, b: Lane<L>) -> Lane<L> {
    zip(a, b, |a, b| a * b)
}

/// `sum += a · b`.
#[inline(always)]
pub(crate) fn add_product<const L: usize>(sum: &mut Lane<L>, a: Lane<L>, b: Lane<L>) {
    for lane in 0..L {
        sum[lane] += a[lane] * b[lane];
    }
}

/// `out[i] += scale · row[i]`.
#[inline(always)]
pub(crate) fn add_row(out: &mut [Lane], scale: Lane, row: &[Lane]) {
    for (out, value) in out.iter_mut().zip(row) {
        add_product(out, scale, *value);
    }
}

/// Σ a[i] · b[i].
#[inline(always)]
pub(crate) fn dot(a: &[Lane], b: &[Lane]) -> Lane {
    // Two sums, so that an addition need not wait for the one before it.
    let (mut even, mut odd) = (splat(0.0), splat(0.0));
    let (mut left, mut right) = (a.chunks_exact(2), b.chunks_exact(2));
    for (a, b) in left.by_ref().zip(right.by_ref()) {
        add_product(&mut even, a[0], b[0]);
        add_product(&mut odd, a[1], b[1]);
    }
    for (a, b) in left.remainder().iter().zip(right.remainder()) {
        add_product(&mut even, *a, *b);
    }
    zip(even, odd, |a, b| a + b)
}
