//! What was due when it was filed: it waits for the next turn, in front of all that the wheel holds.
//!
//! Ground rules: the owner's. While a turn runs, those that were there when it began are in front, and it serves no more
//! than these. Room is made before anything is done that could not be undone.

use super::{Core, is_newest};
use crate::record::Record;
use crate::slab::Slab;
use crate::status::Error;
use crate::wheel::{Records, Reminder};
use std::cmp::Reverse;

/// So many are put in order without a change among equals.
const FEW: usize = 64;
/// Ticks by which one is so far past that order is of no matter: half of what a reminder can tell apart.
const LONG_PAST: u64 = 1 << 17;

impl Core {
    #[inline(never)]
    pub(super) fn file_ready(
        &mut self,
        record: &Record,
        slot: u32,
        tag: u16,
        tick: u64,
    ) -> Result<(), Error> {
        self.reserve_ready(2)?;
        self.push_ready(record, slot, tag, tick);
        Ok(())
    }

    /// Puts a reminder with those that are due, in the place of the last if that is the slot's own, and
    /// not one that the running turn serves.
    pub(super) fn push_ready(&mut self, record: &Record, slot: u32, tag: u16, tick: u64) {
        self.disordered |= tick < self.ready_tick && !self.ready.is_empty();
        self.ready_tick = self.ready_tick.max(tick);
        // A reminder carries the low bits of its tick: of those long past it is told that they are so.
        let tick = tick.max(self.ready_tick.saturating_sub(LONG_PAST));
        let reminder = Reminder::new(slot, tag.into(), tick);
        let replaces = self.ready.len() > self.ready_now;
        match self.ready.back_mut() {
            Some(last) if replaces && is_newest(record, slot, *last) => *last = reminder,
            _ => self.ready.push_back(reminder),
        }
    }

    /// Before a turn: what was armed at or past its deadline comes in the order of deadlines, and mostly is so already. Of
    /// one tick, if there are many, in any order.
    pub(crate) fn order_ready(&mut self) {
        if !std::mem::take(&mut self.disordered) {
            return;
        }
        let last = self.ready_tick;
        let ready = self.ready.make_contiguous();
        if ready.len() > FEW {
            return ready.sort_unstable_by_key(|reminder| Reverse(reminder.age(last)));
        }
        for end in 1..ready.len() {
            let age = ready[end].age(last);
            let place = ready[..end].partition_point(|other| other.age(last) >= age);
            ready[place..=end].rotate_right(1);
        }
    }

    /// Makes sure that `count` reminders can be put with those that are due at once. `file` asks for
    /// one more than it uses, which leaves room for one `file_surely` at any time.
    #[inline]
    pub(crate) fn reserve_ready(&mut self, count: usize) -> Result<(), Error> {
        self.ready.try_reserve(count).map_err(|_| Error::NoMemory)
    }

    /// Can one reminder be put with those that are due at once, and one more?
    #[inline(always)]
    pub(crate) fn has_room_for_ready(&self) -> bool {
        self.ready.capacity() - self.ready.len() >= 2
    }

    /// Between turns: drops what is due first and has ended, so that nobody looks for its sake.
    pub(crate) fn drop_dead_due(&mut self, slab: &Slab) {
        while self.batch.rest().first().is_some_and(|&reminder| !slab.lives(reminder)) {
            self.batch.next();
        }
        while self.ready.front().is_some_and(|&reminder| !slab.lives(reminder)) {
            self.ready.pop_front();
        }
    }
}
