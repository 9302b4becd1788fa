//! What belongs to a shard's owner alone: the wheel, what is due at once, and the batch at hand.
//!
//! Ground rules: plain memory, touched only by the thread that owns the shard at the time: its worker,
//! its attached thread, or the thread that polls it. No function of the host runs while it is
//! borrowed.

use crate::handle::GENERATION_BITS;
use crate::record::Record;
use crate::slab::Slab;
use crate::status::Error;
use crate::sys::prefetch::{prefetch_read, prefetch_write};
use crate::ticks::NEVER_TICK;
use crate::wheel::{Batch, Look, NoMemory, Records, Reminder, Wheel};
use crate::word::Phase;
use std::collections::VecDeque;

/// Reminders that one turn moves in cascades before it looks at the inboxes again, and that one
/// step of compaction visits.
pub(crate) const SLICE: usize = if cfg!(debug_assertions) { 256 } else { 8_192 };

/// An entry of an inbox.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry(u64);

impl Entry {
    #[inline]
    pub(crate) fn new(slot: u32, generation: u32) -> Entry {
        Entry(u64::from(slot) << GENERATION_BITS | u64::from(generation))
    }

    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Entry {
        Entry(bits)
    }

    #[inline]
    pub(crate) fn slot(self) -> u32 {
        (self.0 >> GENERATION_BITS) as u32
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        self.0 as u32 & crate::handle::GENERATION_MASK
    }
}

impl From<NoMemory> for Error {
    fn from(_: NoMemory) -> Error {
        Error::NoMemory
    }
}

/// See the head of this file.
pub(crate) struct Core {
    pub(crate) wheel: Wheel,
    /// Reminders of timers that were due when they were filed, in the order of filing.
    pub(crate) ready: VecDeque<Reminder>,
    /// Reminders of one tick that have been collected and not looked at yet.
    pub(crate) batch: Batch,
    /// While a turn runs: what is filed for this tick or an earlier one waits for the next turn.
    pub(crate) horizon: u64,
    /// The clock as the turn began; never goes back.
    pub(crate) now_ns: u64,
    /// Live reminders when compaction was last looked into, so that it is not begun in vain.
    pub(crate) compact_at: usize,
    pub(crate) compacting: bool,
    /// Reminders filed or timers cancelled since `compact` was last called.
    stirred: usize,
}

impl Core {
    /// A core whose wheel stands at the tick that the clock has reached.
    pub(crate) fn new(tick: u64) -> Core {
        let mut wheel = Wheel::new();
        wheel.start_at(tick);
        Core {
            wheel,
            ready: VecDeque::new(),
            batch: Batch::new(),
            horizon: 0,
            now_ns: 0,
            compact_at: COMPACT_FROM,
            compacting: false,
            stirred: 0,
        }
    }

    /// Files a reminder for `tick`: in the wheel, or with what is due at once.
    #[inline]
    pub(crate) fn file(
        &mut self,
        record: &Record,
        slot: u32,
        generation: u32,
        tick: u64,
    ) -> Result<(), Error> {
        record.set_remind(tick);
        if tick == NEVER_TICK {
            Ok(())
        } else if tick > self.horizon.max(self.wheel.elapsed()) {
            Ok(self.wheel.file(slot, generation, tick)?)
        } else {
            self.reserve_ready(2)?;
            self.ready.push_back(Reminder::new(slot, generation, tick));
            Ok(())
        }
    }

    /// Files a reminder that must not be lost, after `reserve_ready` has made room for it.
    pub(crate) fn file_surely(&mut self, record: &Record, slot: u32, generation: u32, tick: u64) {
        if self.file(record, slot, generation, tick).is_err() {
            self.ready.push_back(Reminder::new(slot, generation, tick));
        }
    }

    /// Files a reminder that comes up again in this very turn, after `reserve_ready`: of a timer that
    /// serves each missed period. `ready` counts what the turn still serves of the timers that were
    /// due.
    pub(crate) fn file_again(
        &mut self,
        record: &Record,
        slot: u32,
        generation: u32,
        tick: u64,
        ready: &mut usize,
    ) {
        record.set_remind(tick);
        if tick <= self.wheel.elapsed() || self.wheel.file(slot, generation, tick).is_err() {
            self.ready.push_front(Reminder::new(slot, generation, tick));
            *ready += 1;
        }
    }

    /// Makes sure that `count` reminders can be put with those that are due at once. `file` asks for
    /// one more than it uses, which leaves room for one `file_surely` at any time.
    pub(crate) fn reserve_ready(&mut self, count: usize) -> Result<(), Error> {
        self.ready.try_reserve(count).map_err(|_| Error::NoMemory)
    }

    /// Would `take_in` do anything with this entry?
    pub(crate) fn means_something(slab: &Slab, entry: Entry) -> bool {
        let word = slab.at(entry.slot()).word();
        word.generation() == entry.generation() && word.phase() == Phase::Pending
    }

    /// Takes in an entry of an inbox. An error leaves it where it is.
    #[inline]
    pub(crate) fn take_in(&mut self, slab: &Slab, entry: Entry) -> Result<(), Error> {
        let record = slab.at(entry.slot());
        let word = record.word();
        if word.generation() != entry.generation() || word.phase() != Phase::Pending {
            return Ok(());
        }
        self.stirred += 1;
        match slab.decode(record, word.offset()) {
            Some(due) => self.file(record, entry.slot(), entry.generation(), due.tick),
            None => Ok(()),
        }
    }

    /// Takes back the reminder of a timer that has just been cancelled, if it is the newest.
    #[inline]
    pub(crate) fn unfile(&mut self, slot: u32, generation: u32, tick: u64) -> bool {
        tick != NEVER_TICK && self.wheel.unfile(slot, generation, tick)
    }

    /// Is something due that has been collected already?
    pub(crate) fn has_due(&self) -> bool {
        !self.batch.is_empty() || !self.ready.is_empty()
    }

    /// Drops dead reminders once they outnumber the live ones: visits at most so many that the
    /// visits keep ahead of what has been filed or has died since the last time.
    pub(crate) fn compact(&mut self, slab: &Slab, live: usize, empty: bool) {
        let mut work = SLICE + 4 * std::mem::take(&mut self.stirred);
        if empty && !self.has_due() {
            self.wheel.clear();
            self.compacting = false;
            return;
        }
        if !self.compacting {
            self.compacting = self.wheel.len() > self.compact_at.max(2 * live);
        }
        if self.compacting && self.wheel.compact(&mut work, slab).finished {
            self.compacting = false;
            self.compact_at = COMPACT_FROM.max(2 * self.wheel.len());
            if self.wheel.memory_bytes() > ROOMY * size_of::<Reminder>() * self.compact_at {
                self.wheel.trim();
            }
        }
    }

    /// Has so much been filed or died, outside a turn, that it is time to compact?
    #[inline]
    pub(crate) fn is_stirred(&mut self) -> bool {
        self.stirred += 1;
        self.stirred >= COMPACT_FROM && (self.compacting || self.wheel.len() > self.compact_at)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.wheel.memory_bytes() + self.ready.capacity() * size_of::<Reminder>()
    }
}

/// A wheel with room for so many times its reminders gives memory back when it has been compacted.
const ROOMY: usize = 4;
/// Fewer reminders than this are never worth compacting.
const COMPACT_FROM: usize = 4_096;

impl Records for Slab {
    fn look(&self, reminder: Reminder) -> Look {
        let record = self.at(reminder.slot());
        let word = record.word();
        let current = word.generation() & GENERATION_IN_REMINDER == reminder.generation()
            && record.reminds_at(reminder.tick());
        if !current || !matches!(word.phase(), Phase::Pending | Phase::Queued) {
            return Look::Dead;
        }
        match self.decode(record, word.offset()) {
            Some(due) if due.tick != NEVER_TICK => Look::At(due.tick),
            _ => Look::Dead,
        }
    }

    fn refiled(&self, reminder: Reminder, tick: u64) {
        self.at(reminder.slot()).set_remind(tick);
    }

    fn prefetch(&self, reminder: Reminder) {
        if let Some(record) = self.get(reminder.slot()) {
            prefetch_read(std::ptr::from_ref(record));
        }
    }
}

impl Slab {
    /// The record will be looked at soon, and its word moved.
    pub(crate) fn prefetch_to_write(&self, reminder: Reminder) {
        if let Some(record) = self.get(reminder.slot()) {
            prefetch_write(std::ptr::from_ref(record));
        }
    }
}

/// The bits of a generation that a reminder carries.
pub(crate) const GENERATION_IN_REMINDER: u32 = (1 << crate::wheel::GEN_BITS) - 1;
