//! Moving forward: what comes up, and the cascades on the way there.
//!
//! A cascade empties a bucket of a higher level into the levels below. It may stop half-way, for
//! want of budget or of memory. Three things keep the filing order then:
//! - Before it begins, `elapsed` becomes the tick before the bucket's first. Nothing is lost by
//!   that, because the bucket is the earliest there is; and it makes every new filing for the
//!   bucket's range go to the bucket's own tail.
//! - What has been moved is filed as seen from the bucket's first tick, in levels that were empty
//!   and that no new filing can reach.
//! - `elapsed` becomes the bucket's first tick when the bucket is empty, and not before.
//!
//! Out of levels 1, 2 and 3 a reminder carries what the bucket does not say of its tick. Out of
//! higher ones the record is asked. Where the record says a tick before the bucket, the timer has
//! been made earlier after this reminder was filed; it is moved to the bucket's first tick, the
//! earliest there is. Each move leads to a lower level or a later tick, so that none is endless.

use super::reminder::{Batch, Look, NoMemory, Records};
use super::{Wheel, bits, chunks::ENTRIES};

/// How a call of [`Wheel::collect`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collected {
    /// The batch holds reminders of this tick, at least one.
    Tick(u64),
    /// The budget for cascades is used up. Call again: there may be more.
    MoreWork,
    /// Nothing at or before `now`, which is elapsed.
    Idle,
}

/// Records that are prefetched ahead of the one that is looked at.
pub(super) const AHEAD: usize = 12;

/// Lowest level out of which the record has to be asked.
pub(super) const ASK: u32 = 4;

impl Wheel {
    /// Moves reminders that come up at or before `now` to `out`: of one tick alone, the earliest,
    /// in filing order, at most as many as `out` can hold. Further ones of the same tick come with
    /// the next call. `elapsed` becomes that tick at the first of them.
    ///
    /// Moves at most `*work` reminders in cascades and takes from it what it moved.
    ///
    /// `out` is empty. A `now` before `elapsed` counts as
    /// `elapsed`. After `Err` everything is still filed and the call can be repeated.
    pub(crate) fn collect(
        &mut self,
        now: u64,
        out: &mut Batch,
        work: &mut usize,
        records: &impl Records,
    ) -> Result<Collected, NoMemory> {
        debug_assert!(out.is_empty());
        let now = now.max(self.elapsed);
        while let Some(bucket) = self.cascading.or_else(|| self.buckets.first()) {
            let first = bits::first_tick(self.elapsed, bucket);
            if first > now {
                break;
            }
            if bits::level(bucket) == 0 {
                self.elapsed = first;
                const { assert!(Batch::CAPACITY >= ENTRIES) };
                let count = self.buckets.take_oldest(bucket, ENTRIES, out.room());
                out.filled(count);
                self.len -= count;
                return Ok(Collected::Tick(first));
            }
            self.elapsed = first - 1;
            self.cascading = Some(bucket);
            while !self.buckets.buckets[bucket].is_empty() {
                if *work == 0 {
                    return Ok(Collected::MoreWork);
                }
                *work -= self.cascade(bucket, first, *work, records)?;
            }
            self.elapsed = first;
            self.cascading = None;
        }
        self.elapsed = now;
        Ok(Collected::Idle)
    }

    /// Moves at most `most` reminders of the first chunk of `bucket`, and at least one, to where
    /// they belong seen from `first`, the bucket's first tick. Returns how many.
    fn cascade(
        &mut self,
        bucket: usize,
        first: u64,
        most: usize,
        records: &impl Records,
    ) -> Result<usize, NoMemory> {
        // Each may need a chunk; one of them is the chunk it came from, if that is emptied.
        let len = self.buckets.chunk_len(bucket, self.buckets.buckets[bucket].head);
        let own = usize::from(len <= most);
        let mut count = len.min(most);
        if self.buckets.pool.reserve(count - own).is_err() {
            match self.buckets.pool.spare() {
                0 => return Err(NoMemory),
                spare => count = spare.min(count),
            }
        }
        let count = self.buckets.take_oldest(bucket, count, &mut self.moving);
        let moving = &self.moving[..count];
        let level = bits::level(bucket);
        if level < ASK {
            for &reminder in moving {
                let bucket = bits::bucket_below(level, reminder.tick());
                self.buckets.push_reserved(bucket, reminder);
            }
            return Ok(count);
        }
        moving.iter().take(AHEAD).for_each(|&reminder| records.prefetch(reminder));
        for (at, &reminder) in moving.iter().enumerate() {
            if let Some(&ahead) = moving.get(at + AHEAD) {
                records.prefetch(ahead);
            }
            match records.look(reminder) {
                Look::Dead => self.len -= 1,
                Look::At(tick) => {
                    let tick = tick.max(first);
                    self.buckets.push_reserved(bits::bucket_of(first, tick), reminder.at(tick));
                }
            }
        }
        Ok(count)
    }
}
