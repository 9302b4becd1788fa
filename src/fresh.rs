//! The owner's newest timers, whose reminders are not in the wheel yet.
//!
//! Ground rules: plain memory of the shard's owner, a part of its `Core`. A timer that is started on the owner's
//! thread is only noted here; one that is cancelled before the next has been started is taken back
//! at once, and others that have ended meanwhile are dropped when the list is full or the owner looks at the
//! wheel. Most timers are cancelled soon, and such ones cost the wheel nothing. Whoever files,
//! collects, or asks the wheel for its next tick settles this list first, so that order is kept.

use crate::core::Entry;

/// How many timers are noted.
const FRESH: usize = if cfg!(loom) { 2 } else { 63 };
/// With one before the first, which is no timer's: a power of two, so that any count is in bounds.
const PLACES: usize = (FRESH + 1).next_power_of_two();

/// See the head of this file. The timers are those in the places from 1 to `count`.
pub(crate) struct Fresh {
    count: usize,
    entries: [Entry; PLACES],
}

impl Fresh {
    pub(crate) fn new() -> Fresh {
        Fresh { count: 0, entries: [Entry::new(0, 0); PLACES] }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Notes a timer, if there is room.
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: Entry) -> bool {
        let room = self.count < FRESH;
        if room {
            self.count += 1;
            self.entries[self.count % PLACES] = entry;
        }
        room
    }

    /// Takes the newest timer back, if it is this one.
    #[inline(always)]
    pub(crate) fn take_back(&mut self, entry: Entry) -> bool {
        let found = self.entries[self.count % PLACES] == entry;
        if found {
            self.count -= 1;
        }
        found
    }

    /// The timer that was started `nth`, of those that are noted.
    #[inline(always)]
    pub(crate) fn get(&self, nth: usize) -> Option<Entry> {
        (nth < self.count).then(|| self.entries[(nth + 1) % PLACES])
    }

    /// The first `count` have been filed.
    pub(crate) fn forget_first(&mut self, count: usize) {
        self.entries.copy_within(count + 1..=self.count, 1);
        self.count -= count;
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_taken_back_and_the_rest_keeps_its_order() {
        let mut fresh = Fresh::new();
        let entries: Vec<Entry> = (1..=FRESH as u32).map(|slot| Entry::new(slot, 7)).collect();
        assert!(entries.iter().all(|&entry| fresh.push(entry)));
        assert!(!fresh.push(entries[0]), "full");
        assert!(!fresh.take_back(entries[0]), "not the newest");
        assert!(!fresh.take_back(Entry::new(FRESH as u32, 8)), "another generation");
        assert!(fresh.take_back(entries[FRESH - 1]) && !fresh.take_back(entries[FRESH - 1]));
        let noted = |fresh: &Fresh| (0..).map_while(|nth| fresh.get(nth)).collect::<Vec<_>>();
        assert_eq!(noted(&fresh), entries[..FRESH - 1]);
        fresh.forget_first(3);
        assert_eq!(noted(&fresh), entries[3..FRESH - 1]);
        fresh.forget_first(FRESH - 4);
        assert!(fresh.is_empty() && !fresh.take_back(entries[0]));
    }
}
