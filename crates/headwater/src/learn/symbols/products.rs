//! Products of the regressors, of one listener or shared by many.

use super::Transitions;
use crate::learn::cholesky::Cholesky;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use rayon::prelude::*;
use std::ops::Deref;

/// Numbers of regressors above which listeners that share them also share their products, and weights come from refined
/// normal equations instead of an orthogonal factorisation.
pub(crate) const LARGE: usize = 200;

/// Columns of the shared products made as one task.
const COLUMNS_AT_ONCE: usize = 64;

/// Regressors and their products.
pub(super) struct Products {
    /// Mixed x, n × (T−1)H.
    pub(super) x: Mat<f64>,
    pub(super) gram: Mat<f64>,
    /// Of `gram`, where many listeners share it.
    pub(super) factor: Option<Cholesky>,
}

/// A listener's own products, or those it shares.
pub(super) enum Held<'a> {
    Own(Products),
    Shared(&'a Products),
}

impl Deref for Held<'_> {
    type Target = Products;

    fn deref(&self) -> &Products {
        match self {
            Held::Own(products) => products,
            Held::Shared(products) => products,
        }
    }
}

/// The products of regressors that many listeners share: one log-ratio, everybody may hear everyone.
pub(crate) struct SharedProducts(pub(super) Products);

impl SharedProducts {
    pub(crate) fn new(data: &Transitions, regressors: &[usize]) -> Self {
        let x = Mat::from_fn(regressors.len(), data.x.nrows(), |row, column| data.x[(column, regressors[row])]);
        let mut gram = Mat::zeros(x.nrows(), x.nrows());
        gram.par_col_chunks_mut(COLUMNS_AT_ONCE).enumerate().for_each(|(task, out)| {
            let right = x.subrows(task * COLUMNS_AT_ONCE, out.ncols()).transpose();
            matmul(out, Accum::Replace, x.as_ref(), right, 1.0, Par::Seq);
        });
        let factor = Cholesky::new(gram.clone());
        SharedProducts(Products { x, gram, factor })
    }
}
