//! The buckets: first-in first-out chains of chunks, and which of them are occupied.
//!
//! Ground rules. Reminders come in at the tail and go out at the head; a chunk that is emptied
//! goes back to the pool, so that no bucket has an empty one.
//! The tail of a bucket is a *place* (`chunk << 6 | position`), so that to append touches the
//! bucket and the entry and nothing else; `len` and `next` of a chunk are written when it stops
//! being the last.

use super::bits::{BUCKETS, DIGIT_BITS, DIGITS, LEVELS};
use super::chunks::{ENTRIES, NONE, POS_BITS, Pool};
use super::compact::Cursor;
use super::reminder::{NoMemory, Reminder};

/// Position in a full chunk, and in `NONE`: the next reminder needs a new chunk.
const FULL: u32 = ENTRIES as u32;

#[derive(Clone, Copy)]
pub(super) struct Bucket {
    /// First chunk, or `NONE`.
    pub(super) head: u32,
    /// Place behind the newest reminder, `NONE` if there is no chunk.
    pub(super) tail: u32,
}

impl Bucket {
    const EMPTY: Bucket = Bucket { head: NONE, tail: NONE };

    /// Whether there is no reminder.
    #[inline(always)]
    pub(super) fn is_empty(self) -> bool {
        self.head == NONE
    }

    /// Whether `append` can do: there is a last chunk and room in it.
    #[inline(always)]
    fn can_append(self) -> bool {
        self.tail & FULL != FULL
    }

    /// The last chunk.
    #[inline(always)]
    pub(super) fn last(self) -> u32 {
        self.tail >> POS_BITS
    }

    /// Reminders in the last chunk.
    #[inline(always)]
    pub(super) fn last_len(self) -> usize {
        (self.tail & FULL) as usize
    }
}

/// All buckets of a wheel.
pub(super) struct Buckets {
    /// A bit for each bucket that holds something, a word for each level.
    pub(super) occupied: [u64; LEVELS],
    /// A bit for each level that holds something.
    pub(super) levels: u32,
    pub(super) buckets: [Bucket; BUCKETS],
    /// Chunks in each bucket's chain; made with the first reminder.
    chunks: Vec<u32>,
    pub(super) pool: Pool,
    /// Where compaction stands. It is here because a chunk that goes must not be one of its.
    pub(super) cursor: Cursor,
}

impl Buckets {
    pub(super) fn new() -> Buckets {
        Buckets {
            occupied: [0; LEVELS],
            levels: 0,
            buckets: [Bucket::EMPTY; BUCKETS],
            chunks: Vec::new(),
            pool: Pool::default(),
            cursor: Cursor::START,
        }
    }

    /// The occupied bucket with the lowest number. Of the lowest level: the earliest one.
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some(level << DIGIT_BITS | self.occupied[level].trailing_zeros() as usize)
    }

    /// The occupied bucket with the highest number below `bound`.
    pub(super) fn last_below(&self, bound: usize) -> Option<usize> {
        let (top, rest) = (bound >> DIGIT_BITS, bound & (DIGITS - 1));
        if rest > 0 {
            let word = self.occupied[top] & ((1 << rest) - 1);
            if word != 0 {
                return Some(top << DIGIT_BITS | word.ilog2() as usize);
            }
        }
        let levels = self.levels & ((1 << top) - 1);
        let level = levels.checked_ilog2()? as usize;
        Some(level << DIGIT_BITS | self.occupied[level].ilog2() as usize)
    }

    /// Reminders in `chunk`, which is one of `bucket`.
    #[inline]
    pub(super) fn chunk_len(&self, bucket: usize, chunk: u32) -> usize {
        let bucket = self.buckets[bucket];
        if chunk == bucket.last() { bucket.last_len() } else { self.pool.chunk(chunk).len as usize }
    }

    /// The reminders of `bucket`, if one chunk holds them all.
    pub(super) fn all_in_one_chunk(&self, bucket: usize) -> Option<&[Reminder]> {
        let Bucket { head, .. } = self.buckets[bucket];
        let alone = head == self.buckets[bucket].last();
        alone.then(|| &self.pool.chunk(head).entries[..self.buckets[bucket].last_len()])
    }

    /// Appends a reminder.
    #[inline(always)]
    pub(super) fn push(&mut self, bucket: usize, reminder: Reminder) -> Result<(), NoMemory> {
        if !self.buckets[bucket].can_append() {
            return self.push_first(bucket, reminder);
        }
        self.append(bucket, reminder);
        Ok(())
    }

    /// The rare end of `push`, which without it is small enough to be inlined.
    #[inline(never)]
    fn push_first(&mut self, bucket: usize, reminder: Reminder) -> Result<(), NoMemory> {
        self.pool.reserve(1)?;
        if self.chunks.is_empty() {
            self.chunks.try_reserve_exact(BUCKETS).map_err(|_| NoMemory)?;
            self.chunks.resize(BUCKETS, 0);
        }
        self.push_reserved(bucket, reminder);
        Ok(())
    }

    /// Appends a reminder. The pool has a chunk to spare for it, should it need one.
    #[inline(always)]
    pub(super) fn push_reserved(&mut self, bucket: usize, reminder: Reminder) {
        if !self.buckets[bucket].can_append() {
            self.make_room(bucket);
        }
        self.append(bucket, reminder);
    }

    /// Appends a reminder to a bucket whose last chunk has room.
    #[inline(always)]
    fn append(&mut self, bucket: usize, reminder: Reminder) {
        let place = self.buckets[bucket].tail;
        self.pool.chunk_mut(place >> POS_BITS).entries[(place & FULL) as usize] = reminder;
        self.buckets[bucket].tail = place + 1;
    }

    /// Makes an empty bucket an occupied one, gives a full last chunk another behind it.
    #[inline]
    fn make_room(&mut self, bucket: usize) {
        let Bucket { head, tail } = self.buckets[bucket];
        let chunk = self.pool.take();
        self.chunks[bucket] += 1;
        self.buckets[bucket].tail = chunk << POS_BITS;
        if head != NONE {
            let last = self.pool.chunk_mut(tail >> POS_BITS);
            (last.next, last.len) = (chunk, FULL);
            return;
        }
        self.buckets[bucket].head = chunk;
        self.occupied[bucket >> DIGIT_BITS] |= 1 << (bucket & (DIGITS - 1));
        self.levels |= 1 << (bucket >> DIGIT_BITS);
    }

    /// Moves the oldest reminders of `bucket`, which is not empty, to the front of `out`: as many
    /// as its first chunk has, but at most `most`. Returns how many.
    #[inline]
    pub(super) fn take_oldest(
        &mut self,
        bucket: usize,
        most: usize,
        out: &mut [Reminder],
    ) -> usize {
        let Bucket { head, tail } = self.buckets[bucket];
        let len = self.chunk_len(bucket, head);
        let count = len.min(most);
        let chunk = self.pool.chunk_mut(head);
        out[..count].copy_from_slice(&chunk.entries[..count]);
        if count == len {
            self.release_head(bucket);
        } else {
            chunk.entries.copy_within(count..len, 0);
            chunk.len = (len - count) as u32;
            if head == tail >> POS_BITS {
                self.buckets[bucket].tail = tail - count as u32;
            }
        }
        count
    }

    /// Drops the first chunk of `bucket`, with all that is in it.
    #[inline]
    fn release_head(&mut self, bucket: usize) {
        let Bucket { head, tail } = self.buckets[bucket];
        let next = if head == tail >> POS_BITS { NONE } else { self.pool.chunk(head).next };
        self.cursor.chunk_goes(head, next);
        self.pool.give(head);
        self.chunks[bucket] -= 1;
        self.buckets[bucket].head = next;
        if next == NONE {
            self.set_empty(bucket);
        }
    }

    /// `bucket` has lost its last chunk.
    #[inline]
    pub(super) fn set_empty(&mut self, bucket: usize) {
        self.buckets[bucket] = Bucket::EMPTY;
        let level = bucket >> DIGIT_BITS;
        self.occupied[level] &= !(1 << (bucket & (DIGITS - 1)));
        self.levels &= !(u32::from(self.occupied[level] == 0) << level);
    }

    /// A chunk of `bucket` goes back to the pool, from wherever in the chain.
    pub(super) fn give_chunk(&mut self, bucket: usize, chunk: u32) {
        self.pool.give(chunk);
        self.chunks[bucket] -= 1;
    }

    /// What the buckets have from the allocator.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pool.memory_bytes() + self.chunks.capacity() * size_of::<u32>()
    }

    /// Reminders in the longest bucket, as if all its chunks but the last were full.
    pub(super) fn longest(&self) -> usize {
        let mut longest = 0;
        for (level, &occupied) in self.occupied.iter().enumerate() {
            let mut occupied = occupied;
            while occupied != 0 {
                let bucket = level << DIGIT_BITS | occupied.trailing_zeros() as usize;
                occupied &= occupied - 1;
                let full = self.chunks[bucket] as usize - 1;
                longest = longest.max(full * ENTRIES + self.buckets[bucket].last_len());
            }
        }
        longest
    }

    /// Drops everything. Costs what the buckets are, not what they hold.
    pub(super) fn clear(&mut self) {
        for bucket in 0..BUCKETS {
            let Bucket { head, tail } = self.buckets[bucket];
            if head != NONE {
                self.pool.give_chain(head, tail >> POS_BITS);
                self.chunks[bucket] = 0;
                self.set_empty(bucket);
            }
        }
        self.pool.all_spare();
        self.cursor = Cursor::START;
    }

    /// Gives the pool's free memory to the allocator.
    pub(super) fn trim(&mut self) {
        self.pool.trim();
        if self.pool.total() == 0 {
            self.chunks = Vec::new();
        }
    }
}
