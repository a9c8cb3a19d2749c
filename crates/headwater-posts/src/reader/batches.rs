//! Posts read on a thread of their own, batch by batch.

use super::PostReader;
use crate::Error;
use crate::post::Post;
use crate::read::{BadRow, Encoding, LONGEST_RECORD, Preset};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// Some posts, and what was met on the way.
#[derive(Debug, Default)]
pub struct PostBatch {
    /// In input order.
    pub posts: Vec<Post>,
    /// Rows that cannot be read.
    pub bad: Vec<BadRow>,
    /// Lines that hold something else than posts.
    pub passed: u64,
    /// Reposts of posts that were not read before, so that nobody knows what they say.
    pub bare_reposts: u64,
    /// Posts that only their text makes reposts.
    pub reposts_by_text: u64,
    /// Posts of accounts that were deleted, which are not one account; they are among those passed.
    pub deleted: u64,
    /// Platforms recognised so far.
    pub recognised: Vec<Preset>,
    /// Encodings met and decoded so far.
    pub decoded: Vec<Encoding>,
    /// Bytes read until here.
    pub bytes: u64,
}

/// Posts per batch.
const BATCH: usize = 4096;

/// Batches read ahead of the one that is worked on.
const AHEAD: usize = 2;

/// Bytes of text after which a batch is full, whatever their number.
const BATCH_BYTES: usize = 2 * LONGEST_RECORD;

/// Batches of posts, read on a thread of their own.
pub struct PostBatches {
    from: Receiver<ReaderMessage>,
    reader: Option<JoinHandle<()>>,
}

/// What the reading thread says: some posts, that it is done, or why it cannot go on.
enum ReaderMessage {
    PostBatch(PostBatch),
    End(Result<(), Error>),
}

impl PostBatches {
    pub(super) fn start(mut posts: PostReader) -> Self {
        let (to, from) = sync_channel(AHEAD);
        let (bytes, met) = (posts.records.bytes(), posts.records.met());
        let reader = std::thread::spawn(move || {
            loop {
                let (mut batch, mut ended, mut size) = (PostBatch::default(), None, 0);
                let before = (posts.passed(), posts.bare_reposts(), posts.reposts_by_text(), posts.deleted());
                while ended.is_none() && size < BATCH_BYTES && batch.posts.len() + batch.bad.len() < BATCH {
                    match posts.next() {
                        Ok(Some(Ok(post))) => {
                            size += post.text.len();
                            batch.posts.push(post);
                        }
                        Ok(Some(Err(bad))) => batch.bad.push(bad),
                        Ok(None) => ended = Some(Ok(())),
                        Err(error) => ended = Some(Err(error)),
                    }
                }
                batch.passed = posts.passed() - before.0;
                batch.bare_reposts = posts.bare_reposts() - before.1;
                batch.reposts_by_text = posts.reposts_by_text() - before.2;
                batch.deleted = posts.deleted() - before.3;
                batch.recognised = posts.recognised().to_vec();
                batch.decoded = met.all().collect();
                batch.bytes = bytes.load(Ordering::Relaxed);
                // Nobody listens any more: whoever asked has stopped.
                if to.send(ReaderMessage::PostBatch(batch)).is_err() {
                    return;
                }
                if let Some(ended) = ended {
                    let _ = to.send(ReaderMessage::End(ended));
                    return;
                }
            }
        });
        PostBatches { from, reader: Some(reader) }
    }
}

impl Iterator for PostBatches {
    type Item = Result<PostBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.take()?;
        match self.from.recv() {
            Ok(ReaderMessage::PostBatch(batch)) => {
                self.reader = Some(reader);
                Some(Ok(batch))
            }
            Ok(ReaderMessage::End(Ok(()))) => None,
            Ok(ReaderMessage::End(Err(error))) => Some(Err(error)),
            // The thread ended without a word: a bug of ours, which must not look like the end of the file.
            Err(_) => match reader.join() {
                Ok(()) => None,
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }
}
