//! What a sole owner knows of its reminders without a look at their records: two bytes a slot.
//!
//! Ground rules: plain memory of the shard's owner, a part of its `Core`, kept up only while it owns the shard
//! exclusively. Then it files every reminder and ends nearly every timer itself, so it can note which reminder
//! of a slot is the newest, and that it is dead. Compaction, which asks that of each reminder, so reads
//! thirty-two slots in a cache line instead of two. A reminder that is said to be dead is dead; one
//! that is said to live may have died before the shard was owned so. Where there was no memory for a
//! slot nothing is known of it, and its record is asked.

use crate::slab::Slab;
use crate::wheel::{Look, Records, Reminder};

/// Something is known: the low bits are those of the newest reminder's tag.
const KNOWN: u16 = 1 << 14;
/// The timer has ended.
const DEAD: u16 = 1 << 15;
/// Slots by which it grows, at least.
const GROWTH: usize = 1 << 15;

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Alive(Vec<u16>);

fn mark(tag: u32) -> u16 {
    KNOWN | (tag as u16 & (KNOWN - 1))
}

impl Alive {
    /// A reminder with this tag has been filed for the slot.
    #[inline(always)]
    pub(crate) fn filed(&mut self, slot: u32, tag: u16) {
        match self.0.get_mut(slot as usize) {
            Some(place) => *place = mark(tag.into()),
            None => self.filed_beyond(slot, tag),
        }
    }

    #[cold]
    fn filed_beyond(&mut self, slot: u32, tag: u16) {
        let length = (slot as usize + 1).next_multiple_of(GROWTH);
        if self.0.try_reserve(length - self.0.len()).is_ok() {
            self.0.resize(length, 0);
            self.0[slot as usize] = mark(tag.into());
        }
    }

    /// The timer in the slot has ended.
    #[inline(always)]
    pub(crate) fn ended(&mut self, slot: u32) {
        if let Some(place) = self.0.get_mut(slot as usize) {
            *place |= DEAD;
        }
    }

    /// Is the reminder its slot's newest, and its timer not known to have ended?
    #[inline(always)]
    fn knows(&self, reminder: Reminder) -> Option<bool> {
        let &known = self.0.get(reminder.slot() as usize)?;
        (known & KNOWN != 0).then(|| known == mark(reminder.generation()))
    }

    /// Forgets all.
    pub(crate) fn forget(&mut self) {
        self.0 = Vec::new();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u16>()
    }
}

/// The records, asked only where nothing is known.
pub(crate) struct Known<'a>(pub(crate) &'a Slab, pub(crate) &'a Alive);

impl Records for Known<'_> {
    fn look(&self, reminder: Reminder) -> Look {
        self.0.look(reminder)
    }

    #[inline]
    fn lives(&self, reminder: Reminder) -> bool {
        self.1.knows(reminder).unwrap_or_else(|| self.0.lives(reminder))
    }

    fn prefetch(&self, _: Reminder) {}
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn reminder(slot: u32, tag: u32) -> Reminder {
        Reminder::new(slot, tag, 1_000)
    }

    #[test]
    fn the_newest_lives_until_it_ends() {
        let mut alive = Alive::default();
        assert_eq!(alive.knows(reminder(7, 1)), None);
        alive.filed(7, 1);
        assert_eq!(alive.knows(reminder(7, 1)), Some(true));
        assert_eq!(alive.knows(reminder(7, 2)), Some(false));
        assert_eq!(alive.knows(reminder(8, 1)), None, "never filed");
        alive.ended(7);
        alive.ended(7);
        assert_eq!(alive.knows(reminder(7, 1)), Some(false));
        alive.filed(7, 2);
        assert_eq!(alive.knows(reminder(7, 2)), Some(true));
        assert_eq!(alive.knows(reminder(7, 1)), Some(false));
        alive.ended(8);
        assert_eq!(alive.knows(reminder(8, 1)), None, "nothing is known still");
    }

    #[test]
    fn any_tag_and_any_slot() {
        let mut alive = Alive::default();
        for slot in [1, 32_767, 32_768, 3_000_000] {
            for tag in [0, 1, 16_383, 16_384, u16::MAX] {
                alive.filed(slot, tag);
                assert_eq!(alive.knows(reminder(slot, tag.into())), Some(true));
                assert_eq!(alive.knows(reminder(slot, u32::from(tag) + 1)), Some(false));
            }
        }
        assert!(alive.bytes() >= 6_000_000);
        alive.forget();
        assert_eq!(alive.knows(reminder(1, 0)), None);
        assert_eq!(alive.bytes(), 0);
    }
}
