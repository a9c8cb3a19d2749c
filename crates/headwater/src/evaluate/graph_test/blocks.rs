//! Rows cut into blocks of a few columns, so that a block of all accounts stays in the cache while a graph is gone through.
//!
//! Speakers of a listener are anywhere among the accounts. With whole rows nearly every read misses the cache: for 10 000
//! accounts, 200 000 edges and 200 columns a sum over the edges takes 20 times as long as with blocks of 16 columns.

use super::rewiring::SpeakerLists;
use super::rows::Rows;

/// Columns of a block: 10 000 accounts take 1.3 MB.
const COLUMNS: usize = 16;

/// Rows of equal width, block by block; columns beyond the width are zero.
#[derive(Debug)]
pub(super) struct ColumnBlocks {
    accounts: usize,
    /// `[block][account]`.
    cells: Vec<[f64; COLUMNS]>,
}

impl ColumnBlocks {
    /// Rows that a function writes, given an account and a row of that width.
    pub(super) fn new(accounts: usize, width: usize, mut write: impl FnMut(usize, &mut [f64])) -> Self {
        let blocks = width.div_ceil(COLUMNS);
        let mut cells = vec![[0.0; COLUMNS]; blocks * accounts];
        let mut row = vec![0.0; width];
        for account in 0..accounts {
            write(account, &mut row);
            for (block, columns) in row.chunks(COLUMNS).enumerate() {
                cells[block * accounts + account][..columns.len()].copy_from_slice(columns);
            }
        }
        ColumnBlocks { accounts, cells }
    }

    pub(super) fn from_rows(rows: &Rows) -> Self {
        ColumnBlocks::new(rows.accounts(), rows.width, |account, row| row.copy_from_slice(rows.row(account)))
    }

    /// The inner product of a row with a row of others.
    pub(super) fn product(&self, one: usize, others: &ColumnBlocks, other: usize) -> f64 {
        let rows = self.cells.iter().skip(one).step_by(self.accounts);
        rows.zip(others.cells.iter().skip(other).step_by(self.accounts)).map(|(row, other)| product(row, other)).sum()
    }

    /// Σ over listeners of their weight times the inner product of their row among others with the sum of their speakers' rows.
    pub(super) fn total(&self, others: &ColumnBlocks, lists: &SpeakerLists, weights: &[f64]) -> f64 {
        let mut total = 0.0;
        let blocks = self.cells.chunks_exact(self.accounts.max(1));
        for (rows, others) in blocks.zip(others.cells.chunks_exact(self.accounts.max(1))) {
            for (listener, speakers) in lists.iter() {
                let mut sum = [0.0; COLUMNS];
                for &speaker in speakers {
                    sum.iter_mut().zip(&rows[speaker as usize]).for_each(|(sum, cell)| *sum += cell);
                }
                total += weights[listener] * product(&sum, &others[listener]);
            }
        }
        total
    }
}

fn product(one: &[f64; COLUMNS], other: &[f64; COLUMNS]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}
