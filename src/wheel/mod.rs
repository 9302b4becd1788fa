//! The timing wheel of one shard.
//!
//! The idea is that of Varghese and Lauck ("Hashed and hierarchical timing wheels", 1987), in the
//! form that kernels and runtimes have given it since: levels of 64 buckets, each level 64 times
//! coarser than the one below, and an entry that moves down a level when its bucket's time has
//! come. Eleven levels cover every `u64` tick, so that there is no overflow list and no wrapping.
//!
//! What is particular to this one:
//! - It holds *reminders*, eight bytes each, not timers: "look at this slot, if it still has this
//!   generation". Whether a timer is alive and when it is due stands in its record, which the
//!   wheel does not know. A timer is cancelled or put off without telling the wheel.
//! - Buckets are chains of chunks. Moving forward reads and writes rows of reminders and follows
//!   no pointer from one to the next. Chunks come from a pool: no allocation in a steady state.
//! - It is tickless. A word for each level says which buckets hold something; a jump of the clock
//!   costs buckets and reminders, never ticks.
//! - Order is kept: by tick, and within a tick by filing, whatever the way through the levels.
//!
//! Ground rules:
//! - One thread at a time, no atomics, no clock: `now` is an argument.
//! - Every tick up to `elapsed` is done, except that the reminders of tick `elapsed` itself may
//!   still be on their way out, over several calls of `collect`. New reminders are for ticks after
//!   `elapsed`; what is due earlier is the caller's to serve.
//! - Seen from `elapsed` each reminder is in the bucket where its tick belongs (see `bits`), or,
//!   while a cascade is interrupted, in a level below it (see `cascade`). As all levels below the
//!   lowest occupied one are empty and the buckets of a level are in order, the first bucket of
//!   the lowest occupied level is the earliest.
//! - A refusal of the allocator loses nothing: every call that fails can be repeated.

mod bits;
mod buckets;
mod cascade;
mod chunks;
mod compact;
mod reminder;

#[cfg(all(test, not(loom)))]
mod check;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use bits::LEVELS;
pub(crate) use cascade::Collected;
pub(crate) use reminder::{Batch, Look, NoMemory, Records, Reminder};

use buckets::Buckets;
use cascade::ASK;
use chunks::ENTRIES;

/// Reminders, in the order in which they come up.
pub(crate) struct Wheel {
    elapsed: u64,
    /// The bucket whose cascade has begun and is not finished.
    cascading: Option<usize>,
    len: usize,
    buckets: Buckets,
    /// The chunk that a cascade has in hand. It is kept here to save filling it each time.
    moving: [Reminder; ENTRIES],
}

impl Wheel {
    /// An empty wheel at tick 0. It takes memory with the first reminder.
    pub(crate) fn new() -> Wheel {
        Wheel {
            elapsed: 0,
            cascading: None,
            len: 0,
            buckets: Buckets::new(),
            moving: [Reminder::NONE; ENTRIES],
        }
    }

    /// The tick up to which everything has been collected; see the ground rules for this tick
    /// itself.
    #[inline]
    pub(crate) fn elapsed(&self) -> u64 {
        self.elapsed
    }

    /// Sets `elapsed` of an empty wheel.
    pub(crate) fn start_at(&mut self, tick: u64) {
        assert!(self.len == 0, "only an empty wheel can be set");
        (self.elapsed, self.cascading) = (tick, None);
    }

    /// Reminders that the wheel holds, live and dead.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Files a reminder at `tick`, which is after `elapsed`.
    #[inline]
    pub(crate) fn file(&mut self, slot: u32, generation: u32, tick: u64) -> Result<(), NoMemory> {
        debug_assert!(tick > self.elapsed, "{tick} is not after {}", self.elapsed);
        let bucket = bits::bucket_of(self.elapsed, tick);
        self.buckets.push(bucket, Reminder::new(slot, generation, tick))?;
        self.len += 1;
        Ok(())
    }

    /// The next tick at which `collect` has something to do, be it only a cascade: never later
    /// than the first reminder, and the first tick of that one's bucket. `None`: never.
    #[inline]
    pub(crate) fn next_tick(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let bucket = self.cascading.or_else(|| self.buckets.first())?;
        Some(bits::first_tick(self.elapsed, bucket))
    }

    /// As `next_tick`, but the tick of the first reminder itself where a look at one chunk tells it, so that nobody
    /// need wake for a cascade alone.
    pub(crate) fn next_due(&self, records: &impl Records) -> Option<u64> {
        let first = self.next_tick()?;
        let bucket = self.buckets.first()?;
        let level = bits::level(bucket);
        if level == 0 || self.cascading.is_some() {
            return Some(first);
        }
        let Some(reminders) = self.buckets.all_in_one_chunk(bucket) else { return Some(first) };
        let last = first + bits::below(level);
        let tick = |&reminder: &Reminder| {
            if level < ASK {
                return first + (reminder.tick() & bits::below(level));
            }
            match records.look(reminder) {
                Look::Dead => last,
                Look::At(tick) => tick.clamp(first, last),
            }
        };
        reminders.iter().map(tick).min()
    }

    /// Drops all reminders. The memory stays with the wheel, `elapsed` stays too.
    pub(crate) fn clear(&mut self) {
        if self.len > 0 {
            self.buckets.clear();
        }
        self.cascading = None;
        self.len = 0;
    }

    /// How many buckets of each level hold something.
    pub(crate) fn occupied(&self) -> [u32; LEVELS] {
        self.buckets.occupied.map(u64::count_ones)
    }

    /// Reminders in the longest bucket, or up to a chunk's more for each that compaction has thinned out.
    /// Costs a look at each occupied bucket.
    pub(crate) fn longest_bucket(&self) -> usize {
        self.buckets.longest()
    }

    /// What the wheel has from the allocator, and its own size.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Wheel>() + self.buckets.memory_bytes()
    }

    /// Gives memory that holds no reminders back to the allocator, as far as whole segments of the
    /// pool are free.
    pub(crate) fn trim(&mut self) {
        self.buckets.trim();
    }
}
