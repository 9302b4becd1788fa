//! What the wheel holds, what it asks, and what it hands out.

use std::fmt;

/// Bits of a slot number.
pub(super) const SLOT_BITS: u32 = 29;
/// Low bits of a slot's generation that a reminder carries.
pub(crate) const GEN_BITS: u32 = 17;
/// Low bits of the tick that a reminder carries: the digits of levels 0, 1 and 2.
pub(super) const TICK_BITS: u32 = 18;

const _: () = assert!(SLOT_BITS + GEN_BITS + TICK_BITS == u64::BITS);

/// "Look at this slot, if it still has this generation": slot 29 | generation 17 | tick 18.
///
/// Only a hint. What is true of the timer stands in its record.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Reminder(u64);

impl Reminder {
    /// Fills the unused part of an array.
    pub(super) const NONE: Reminder = Reminder(0);

    /// Keeps the low [`GEN_BITS`] of `generation` and the low bits of `tick`.
    #[inline(always)]
    pub(crate) fn new(slot: u32, generation: u32, tick: u64) -> Reminder {
        debug_assert!(slot < 1 << SLOT_BITS);
        let generation = u64::from(generation) & ((1 << GEN_BITS) - 1);
        let tick = tick & ((1 << TICK_BITS) - 1);
        Reminder(u64::from(slot) << (GEN_BITS + TICK_BITS) | generation << TICK_BITS | tick)
    }

    /// The slot to look at.
    #[inline(always)]
    pub(crate) fn slot(self) -> u32 {
        (self.0 >> (GEN_BITS + TICK_BITS)) as u32
    }

    /// The low [`GEN_BITS`] of the generation that the slot had.
    #[inline(always)]
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> TICK_BITS) as u32 & ((1 << GEN_BITS) - 1)
    }

    /// The low [`TICK_BITS`] of the tick.
    #[inline(always)]
    pub(crate) fn tick(self) -> u64 {
        self.0 & ((1 << TICK_BITS) - 1)
    }

    /// How many ticks it is before `tick`, if these are fewer than 2^18.
    #[inline]
    pub(crate) fn age(self, tick: u64) -> u64 {
        tick.wrapping_sub(self.tick()) & ((1 << TICK_BITS) - 1)
    }

    /// The same slot and generation at another tick.
    #[inline(always)]
    pub(super) fn at(self, tick: u64) -> Reminder {
        let mask = (1 << TICK_BITS) - 1;
        Reminder((self.0 & !mask) | (tick & mask))
    }
}

impl fmt::Debug for Reminder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}@..{}", self.slot(), self.generation(), self.tick())
    }
}

/// What the owner of the records says of a reminder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// The timer has ended, or the slot has another generation: the reminder can go.
    Dead,
    /// The timer's tick as it is now.
    At(u64),
}

/// The records, as far as the wheel needs them.
pub(crate) trait Records {
    /// What is true of the timer that `reminder` speaks of.
    fn look(&self, reminder: Reminder) -> Look;
    /// Is it anything but dead?
    fn lives(&self, reminder: Reminder) -> bool {
        self.look(reminder) != Look::Dead
    }
    /// `look` will be asked about `reminder` soon.
    fn prefetch(&self, reminder: Reminder);
}

/// The allocator refused. Nothing was changed that would be missed: the call can be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoMemory;

/// Reminders that have come up, all of one tick, in filing order.
#[derive(Debug)]
pub(crate) struct Batch {
    reminders: [Reminder; Batch::CAPACITY],
    len: usize,
    pos: usize,
}

impl Batch {
    /// Most reminders of a batch.
    pub(crate) const CAPACITY: usize = 64;

    /// An empty batch.
    pub(crate) fn new() -> Batch {
        Batch { reminders: [Reminder::NONE; Batch::CAPACITY], len: 0, pos: 0 }
    }

    /// Those that `next` has not handed out yet.
    #[inline]
    pub(crate) fn rest(&self) -> &[Reminder] {
        &self.reminders[self.pos..self.len]
    }

    /// Hands out the next one.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Reminder> {
        let next = self.rest().first().copied();
        self.pos += usize::from(next.is_some());
        next
    }

    /// Takes back the one that was handed out last; false: there is no such one.
    pub(crate) fn put_back(&mut self, reminder: Reminder) -> bool {
        let last = self.pos.checked_sub(1).filter(|&last| self.reminders[last] == reminder);
        self.pos = last.unwrap_or(self.pos);
        last.is_some()
    }

    /// Whether all have been handed out.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pos == self.len
    }

    /// All its room, for new reminders in the place of what it holds.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [Reminder] {
        &mut self.reminders
    }

    /// It holds the first `count` of `room`.
    #[inline]
    pub(super) fn filled(&mut self, count: usize) {
        (self.len, self.pos) = (count, 0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch() {
        let slots = [0, 1, 12_345, (1 << SLOT_BITS) - 1];
        let generations = [0, 1, 77, (1 << GEN_BITS) - 1, 1 << GEN_BITS, u32::MAX];
        let ticks = [0, 1, (1 << TICK_BITS) - 1, 1 << TICK_BITS, u64::MAX];
        for slot in slots {
            for generation in generations {
                for tick in ticks {
                    let r = Reminder::new(slot, generation, tick);
                    assert_eq!(r.slot(), slot);
                    assert_eq!(r.generation(), generation & ((1 << GEN_BITS) - 1));
                    assert_eq!(r.tick(), tick & ((1 << TICK_BITS) - 1));
                    assert_eq!(r.at(5), Reminder::new(slot, generation, 5));
                    assert_eq!(r.age(tick.wrapping_add(77)), 77);
                }
            }
        }
    }

    #[test]
    fn a_batch_hands_out_each_once() {
        let mut batch = Batch::new();
        assert!(batch.is_empty() && batch.next().is_none());
        for i in 0..3 {
            batch.room()[i] = Reminder::new(i as u32, 0, 0);
        }
        batch.filled(3);
        assert_eq!(batch.next().map(Reminder::slot), Some(0));
        assert_eq!(batch.rest().len(), 2);
        assert_eq!(batch.next().map(Reminder::slot), Some(1));
        assert_eq!(batch.next().map(Reminder::slot), Some(2));
        assert!(batch.is_empty() && batch.next().is_none());
    }
}
