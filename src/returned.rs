//! Free elements of an arena whose memory has gone back to the system: where they are, for when
//! they are wanted again.
//!
//! Ground rules: the elements are nobody's meanwhile, and a stale index still reads something: what
//! they were, or zeros. All of this is behind a lock, which is taken only to give back and while
//! something is left to take again.

use crate::sync::ProcessWide;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

/// Indices in a row, and a mark that their last users left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) mark: u32,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    rows: Mutex<Vec<Row>>,
    /// Elements in all rows. Written under the lock.
    count: ProcessWide,
}

impl Returned {
    /// How many elements there are.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        // Relaxed: a hint; the lock decides.
        self.count.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes up to `want` elements.
    pub(crate) fn take(&self, want: u32) -> Option<Row> {
        if self.count() == 0 {
            return None;
        }
        let mut rows = self.lock();
        let row = rows.last_mut()?;
        let taken = Row { count: want.min(row.count), ..*row };
        row.first += taken.count;
        row.count -= taken.count;
        if row.count == 0 {
            rows.pop();
        }
        self.count.fetch_sub(taken.count.into(), Ordering::Relaxed);
        Some(taken)
    }

    /// Adds a row, once `release` has given its memory back; false without memory to note it.
    pub(crate) fn add(&self, row: Row, release: impl FnOnce()) -> bool {
        let mut rows = self.lock();
        if rows.try_reserve(1).is_err() {
            return false;
        }
        release();
        rows.push(row);
        self.count.fetch_add(row.count.into(), Ordering::Relaxed);
        true
    }
}

/// A set of indices of an arena: those that are free, while it is trimmed.
#[derive(Debug)]
pub(crate) struct Free {
    bits: Vec<u64>,
}

impl Free {
    /// An empty set for indices below `end`; `None` without memory.
    pub(crate) fn new(end: u32) -> Option<Free> {
        let mut bits = Vec::new();
        let words = (end as usize).div_ceil(64);
        bits.try_reserve_exact(words).ok()?;
        bits.resize(words, 0);
        Some(Free { bits })
    }

    /// An index that is too great is left out.
    pub(crate) fn insert(&mut self, index: u32) {
        if let Some(word) = self.bits.get_mut(index as usize / 64) {
            *word |= 1 << (index % 64);
        }
    }

    pub(crate) fn contains(&self, index: u32) -> bool {
        let word = self.bits.get(index as usize / 64).copied().unwrap_or(0);
        word & 1 << (index % 64) != 0
    }

    pub(crate) fn remove(&mut self, row: Row) {
        for index in row.first..row.first + row.count {
            self.bits[index as usize / 64] &= !(1 << (index % 64));
        }
    }

    /// The next indices in a row at or after `from`: the first, and the one after the last.
    pub(crate) fn next_run(&self, from: u32) -> Option<(u32, u32)> {
        let first = self.find(from, true)?;
        let end = self.find(first, false).unwrap_or(self.bits.len() as u32 * 64);
        Some((first, end))
    }

    /// The next index at or after `from` that is in the set, or not in it.
    fn find(&self, from: u32, within: bool) -> Option<u32> {
        let mut at = from as usize / 64;
        let mut mask = u64::MAX << (from % 64);
        while let Some(&word) = self.bits.get(at) {
            let found = if within { word } else { !word } & mask;
            if found != 0 {
                return Some(at as u32 * 64 + found.trailing_zeros());
            }
            (at, mask) = (at + 1, u64::MAX);
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_in_parts() {
        let returned = Returned::default();
        assert_eq!(returned.take(5), None);
        for (first, count) in [(10, 3), (100, 70)] {
            assert!(returned.add(Row { first, count, mark: first }, || {}));
        }
        assert_eq!(returned.count(), 73);
        assert_eq!(returned.take(62), Some(Row { first: 100, count: 62, mark: 100 }));
        assert_eq!(returned.take(62), Some(Row { first: 162, count: 8, mark: 100 }));
        assert_eq!(returned.take(62), Some(Row { first: 10, count: 3, mark: 10 }));
        assert_eq!((returned.take(62), returned.count()), (None, 0));
    }

    #[test]
    fn runs_are_found_across_words() {
        let mut free = Free::new(1_000).unwrap();
        let ranges = [(0, 1), (3, 64), (65, 200), (999, 1_000)];
        ranges.iter().for_each(|&(from, to)| (from..to).for_each(|index| free.insert(index)));
        free.insert(5_000);
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some((first, end)) = free.next_run(from) {
            found.push((first, end));
            from = end;
        }
        assert_eq!(found, ranges);
        free.remove(Row { first: 65, count: 100, mark: 0 });
        assert_eq!(free.next_run(64), Some((165, 200)));
        assert!(free.contains(165) && !free.contains(164) && !free.contains(5_000));
    }
}
