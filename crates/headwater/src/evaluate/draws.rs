//! Numbered random draws in parallel, saved batch by batch, continued after an interruption.

use crate::{Error, progress};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::ops::Range;

/// The draws numbered `range`, in order, on all threads.
///
/// `existing` are the first of them where an earlier run has saved some; only the others are drawn. After each batch
/// `on_batch` is given the number of its first draw and the batch, to save it. A draw is a function of its number, so the
/// result is the same for any number of threads and interruptions. `what` is shown as the stage of [`crate::progress`].
///
/// ```
/// use headwater::{Error, evaluate::draw_many};
/// let mut saved = vec![0, 1]; // of an earlier run
/// let on_batch = |first: u64, batch: &[u64]| {
///     assert_eq!(first, saved.len() as u64);
///     saved.extend_from_slice(batch);
///     Ok::<(), Error>(())
/// };
/// let all = draw_many("squaring", 0..5, vec![0, 1], on_batch, |number| Ok(number * number))?;
/// assert_eq!((all.as_slice(), saved.as_slice()), (&[0, 1, 4, 9, 16][..], &[0, 1, 4, 9, 16][..]));
/// # Ok::<(), Error>(())
/// ```
///
/// Errors: those of `draw` and of `on_batch`, and [`Error::Stopped`].
pub fn draw_many<T: Send, E: From<Error>>(
    what: &str,
    range: Range<u64>,
    existing: Vec<T>,
    mut on_batch: impl FnMut(u64, &[T]) -> Result<(), E>,
    draw: impl Fn(u64) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, E> {
    let mut all = existing;
    let wanted = range.end.saturating_sub(range.start);
    all.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
    let stage = progress::stage(what, wanted);
    stage.at(all.len() as u64);
    let one = |number: u64| {
        progress::check()?;
        let drawn = draw(number)?;
        stage.advance();
        Ok(drawn)
    };
    // A few at a time: a thread that waits within one would begin the others, and hold them all.
    let batch = 4 * rayon::current_num_threads() as u64;
    let mut next = range.start + all.len() as u64;
    while next < range.end {
        let end = range.end.min(next + batch);
        let drawn: Vec<T> = (next..end).into_par_iter().map(one).collect::<Result<_, Error>>()?;
        on_batch(next, &drawn)?;
        all.extend(drawn);
        next = end;
    }
    Ok(all)
}

/// The first `count` draws, kept in memory only.
pub(super) fn draw_all<T: Send>(
    what: &str,
    count: usize,
    draw: impl Fn(u64) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    draw_many(what, 0..count as u64, Vec::new(), |_, _| Ok::<(), Error>(()), draw)
}

/// The generator of a numbered draw.
pub(super) fn numbered(seed: u64, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}
