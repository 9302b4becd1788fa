//! Upkeep: dead reminders are dropped before they come up, and memory is given back.
//!
//! Ground rules: the owner's, between its turns and at their ends, a bounded part at a time.

use super::{Core, SLICE};
use crate::alive::Known;
use crate::slab::Slab;
use crate::wheel::{Records, Reminder};

/// A wheel with room for so many reminders (8 MiB), and so many times what it holds, gives memory back
/// when it has been compacted.
const ROOM: usize = 1 << 20;
const ROOMY: usize = 16;
/// Fewer reminders than this are never worth compacting.
pub(super) const COMPACT_FROM: usize = 4_096;

impl Core {
    /// Drops dead reminders once they outnumber the live ones: visits at most so many that the
    /// visits keep ahead of what has been filed or has died since the last time.
    pub(crate) fn compact(&mut self, slab: &Slab, live: usize, empty: bool) {
        let mut work = SLICE + 4 * std::mem::take(&mut self.stirred);
        if empty {
            self.fresh.clear();
        }
        if empty && !self.has_due() {
            self.wheel.clear();
            self.compacting = false;
            self.give_back();
            return;
        }
        // In a turn those that were due when it began are counted, so they stay.
        if self.horizon == 0 && self.ready.len() > self.prune_at {
            self.ready.retain(|&reminder| slab.lives(reminder));
            self.prune_at = COMPACT_FROM.max(2 * self.ready.len());
        }
        if !self.compacting {
            self.compacting = self.wheel.len() > self.compact_at.max(2 * live);
        }
        if self.compacting && self.compact_some(&mut work, slab) {
            self.compacting = false;
            self.compact_at = COMPACT_FROM.max(2 * self.wheel.len());
            let room = self.wheel.memory_bytes() / size_of::<Reminder>();
            if room > ROOM && room / ROOMY > self.compact_at {
                self.wheel.trim();
            }
            self.give_back();
        }
    }

    /// True at the end of a round.
    fn compact_some(&mut self, work: &mut usize, slab: &Slab) -> bool {
        // What is wanted back may be that of timers that ended before the shard was owned exclusively.
        if self.sole && !self.trimming {
            self.wheel.compact(work, &Known(slab, &self.alive)).finished
        } else {
            self.wheel.compact(work, slab).finished
        }
    }

    /// Begins to give back memory: first a whole round of compaction drops what is dead.
    pub(crate) fn trim(&mut self) {
        (self.trimming, self.compacting) = (true, true);
        self.prune_at = 0;
    }

    /// Gives back memory, if that is wanted.
    fn give_back(&mut self) {
        if std::mem::take(&mut self.trimming) {
            self.wheel.trim();
            self.ready.shrink_to(COMPACT_FROM);
        }
    }

    /// Has so much been filed or died, outside a turn, that it is time to compact?
    #[inline]
    pub(crate) fn is_stirred(&self) -> bool {
        self.stirred >= COMPACT_FROM
            && (self.compacting
                || self.wheel.len() > self.compact_at
                || self.ready.len() > self.prune_at)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.wheel.memory_bytes()
            + self.ready.capacity() * size_of::<Reminder>()
            + self.alive.bytes()
    }
}
