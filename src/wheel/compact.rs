//! Compaction: dead reminders go before they come up.
//!
//! A round visits the buckets from the highest to the lowest, chunk by chunk, and can stop after
//! any chunk. Cascades move reminders downwards, that is towards the part that is still to be
//! visited; so a reminder that was dead when a round began is gone when the round ends. What
//! stays keeps its order and moves up in the chain, so that chunks are full again behind the
//! round.

use super::Wheel;
use super::bits::BUCKETS;
use super::buckets::Buckets;
use super::cascade::AHEAD;
use super::chunks::{ENTRIES, NONE, POS_BITS};
use super::reminder::{Records, Reminder};

/// What a call of [`Wheel::compact`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// Reminders that are gone.
    pub(crate) dropped: usize,
    /// The round is finished; the next call begins another.
    pub(crate) finished: bool,
}

/// Where a round stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The bucket that is being visited; once `at` is `NONE`, the last that was.
    bucket: usize,
    /// The chunk before `at`, which can take up more, or `NONE`.
    before: u32,
    /// The chunk to visit next, or `NONE`.
    at: u32,
}

impl Cursor {
    pub(super) const START: Cursor = Cursor { bucket: BUCKETS, before: NONE, at: NONE };

    /// `chunk`, the first of its bucket, is about to go; `next` is the one behind it.
    #[inline]
    pub(super) fn chunk_goes(&mut self, chunk: u32, next: u32) {
        if chunk == self.before {
            self.before = NONE;
        }
        if chunk == self.at {
            self.at = next;
        }
    }
}

impl Wheel {
    /// Drops dead reminders, going on where the last call stopped, and returns at the end of a
    /// round. Visits `*work` reminders and takes from it what it visited; a chunk that it has
    /// begun it finishes, which may be up to 62 more.
    ///
    /// At the end of a round all that were dead at its beginning are gone.
    pub(crate) fn compact(&mut self, work: &mut usize, records: &impl Records) -> Compacted {
        let mut dropped = 0;
        loop {
            let cursor = &mut self.buckets.cursor;
            if cursor.at == NONE {
                let Some(bucket) = self.buckets.last_below(self.buckets.cursor.bucket) else {
                    self.buckets.cursor = Cursor::START;
                    return Compacted { dropped, finished: true };
                };
                let at = self.buckets.buckets[bucket].head;
                self.buckets.cursor = Cursor { bucket, before: NONE, at };
            }
            if *work == 0 {
                return Compacted { dropped, finished: false };
            }
            let (visited, gone) = self.buckets.compact_chunk(records);
            *work = work.saturating_sub(visited);
            self.len -= gone;
            dropped += gone;
        }
    }
}

impl Buckets {
    /// Visits the chunk at the cursor. Returns how many reminders it had, and how many are gone.
    fn compact_chunk(&mut self, records: &impl Records) -> (usize, usize) {
        let Cursor { bucket, before, at } = self.cursor;
        let len = self.chunk_len(bucket, at);
        let last = at == self.buckets[bucket].last();
        let next = if last { NONE } else { self.pool.chunk(at).next };
        let mut live = self.pool.chunk(at).entries;
        let count = keep_live(&mut live[..len], records);

        // What fits goes to the chunk before, the rest stays here.
        let mut up = 0;
        if before != NONE {
            let before = self.pool.chunk_mut(before);
            let from = before.len as usize;
            up = count.min(ENTRIES - from);
            before.entries[from..from + up].copy_from_slice(&live[..up]);
            before.len += up as u32;
        }
        let rest = count - up;
        if rest > 0 {
            let chunk = self.pool.chunk_mut(at);
            chunk.entries[..rest].copy_from_slice(&live[up..count]);
            chunk.len = rest as u32;
            if last {
                self.buckets[bucket].tail = at << POS_BITS | rest as u32;
            }
            self.cursor.before = at;
        } else {
            self.unlink(bucket, before, at, next);
        }
        self.cursor.at = next;
        (len, len - count)
    }

    /// Gives back `chunk`, which stands between `before` and `next` in the chain of `bucket`.
    fn unlink(&mut self, bucket: usize, before: u32, chunk: u32, next: u32) {
        self.give_chunk(bucket, chunk);
        if before == NONE && next == NONE {
            self.set_empty(bucket);
        } else if before == NONE {
            self.buckets[bucket].head = next;
        } else if next == NONE {
            self.buckets[bucket].tail = before << POS_BITS | self.pool.chunk(before).len;
        } else {
            self.pool.chunk_mut(before).next = next;
        }
    }
}

/// Moves the live reminders to the front, in order. Returns how many there are.
fn keep_live(reminders: &mut [Reminder], records: &impl Records) -> usize {
    reminders.iter().take(AHEAD).for_each(|&reminder| records.prefetch(reminder));
    let mut count = 0;
    for at in 0..reminders.len() {
        if let Some(&ahead) = reminders.get(at + AHEAD) {
            records.prefetch(ahead);
        }
        let reminder = reminders[at];
        reminders[count] = reminder;
        count += usize::from(records.lives(reminder));
    }
    count
}
