//! One shard's lane of a queue: events in the order in which they came due.
//!
//! Ground rules: the shard's owner puts entries in, any number of threads take them out. It is the
//! stealing half of Chase and Lev's deque: takers move `top` by compare-and-swap, the owner moves
//! `bottom`. The array doubles when it is full; the old ones stay until the lane is dropped, because a
//! slow taker may still read them, and together they are smaller than the newest. An entry is a hint;
//! what it means is read from the timer's word.

use crate::sync::{AtomicPtr, AtomicU64, Ordering};
use crate::sys::memory::boxed;
use crossbeam_utils::CachePadded;

const FIRST: usize = if cfg!(loom) { 2 } else { 64 };

struct Array {
    entries: Box<[AtomicU64]>,
    older: *mut Array,
}

impl Array {
    fn new(length: usize, older: *mut Array) -> Option<*mut Array> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(length).ok()?;
        entries.resize_with(length, || AtomicU64::new(0));
        boxed(Array { entries: entries.into_boxed_slice(), older }).map(Box::into_raw)
    }

    fn at(&self, position: u64) -> &AtomicU64 {
        &self.entries[position as usize & (self.entries.len() - 1)]
    }
}

/// See the head of this file.
pub(crate) struct Lane {
    top: CachePadded<AtomicU64>,
    bottom: CachePadded<AtomicU64>,
    array: AtomicPtr<Array>,
}

impl Lane {
    pub(crate) fn new() -> Lane {
        Lane {
            top: CachePadded::new(AtomicU64::new(0)),
            bottom: CachePadded::new(AtomicU64::new(0)),
            array: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Makes room for one entry. False: no memory, nothing changed. `live` says whether an entry still
    /// means something; when the lane is full of ones that do not, they are dropped instead.
    ///
    /// # Safety
    /// The calling thread owns the shard.
    pub(crate) unsafe fn reserve(&self, live: impl Fn(u64) -> bool) -> bool {
        let bottom = self.bottom.load(Ordering::Relaxed);
        // Acquire: pairs with the Release of `take`: the taker has read what it took.
        let top = self.top.load(Ordering::Acquire);
        let array = self.array.load(Ordering::Relaxed);
        // SAFETY: arrays live as long as the lane.
        let length = unsafe { array.as_ref() }.map_or(0, |array| array.entries.len() as u64);
        if bottom - top < length {
            return true;
        }
        // SAFETY: the caller is the owner, and an array of some length is there.
        length > 0 && unsafe { self.sweep(&live, &*array, top, bottom) } || self.grow(array, length)
    }

    /// When most entries mean nothing any more, takes all of them out at once and puts the others back, in
    /// order; takers find the lane empty meanwhile, or what has been put back. False: there are not that many.
    ///
    /// # Safety
    /// The calling thread owns the shard.
    unsafe fn sweep(
        &self,
        live: &impl Fn(u64) -> bool,
        array: &Array,
        mut top: u64,
        bottom: u64,
    ) -> bool {
        let means_something = |at: &u64| live(array.at(*at).load(Ordering::Relaxed));
        let count = (top..bottom).filter(means_something).count();
        if count as u64 > (bottom - top) / 2 {
            return false;
        }
        // Relaxed: the owner has written what it takes out here. A taker that comes too late finds `top` moved.
        while let Err(now) =
            self.top.compare_exchange(top, bottom, Ordering::Relaxed, Ordering::Acquire)
        {
            // Acquire: as in `reserve`.
            top = now;
        }
        for at in top..bottom {
            let entry = array.at(at).load(Ordering::Relaxed);
            if live(entry) {
                // SAFETY: the caller is the owner. The place is free: no more has been put back than read.
                unsafe { self.push(entry) };
            }
        }
        true
    }

    fn grow(&self, array: *mut Array, length: u64) -> bool {
        let Some(larger) = Array::new((length as usize * 2).max(FIRST), array) else {
            return false;
        };
        // SAFETY: just made; the old one, if any, lives as long as the lane.
        let (new, old) = unsafe { (&*larger, array.as_ref()) };
        if let Some(old) = old {
            // Relaxed: what takers have taken meanwhile is copied in vain.
            let entries = self.top.load(Ordering::Relaxed)..self.bottom.load(Ordering::Relaxed);
            for at in entries {
                new.at(at).store(old.at(at).load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        // Release: pairs with the Acquire in `take`, so that the copied entries are seen.
        self.array.store(larger, Ordering::Release);
        true
    }

    /// Adds an entry.
    ///
    /// # Safety
    /// The calling thread owns the shard and has reserved room.
    pub(crate) unsafe fn push(&self, entry: u64) {
        let bottom = self.bottom.load(Ordering::Relaxed);
        // SAFETY: reserved, so there is an array; it lives as long as the lane.
        let array = unsafe { &*self.array.load(Ordering::Relaxed) };
        array.at(bottom).store(entry, Ordering::Relaxed);
        // Release: pairs with the Acquire in `take`; hands over the entry.
        self.bottom.store(bottom + 1, Ordering::Release);
    }

    /// Takes the oldest entry. Any thread.
    pub(crate) fn take(&self) -> Option<u64> {
        // Relaxed, here and below: what it names is published by `bottom`, and an old value fails the exchange.
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            // Acquire: pairs with the Release in `push`.
            let bottom = self.bottom.load(Ordering::Acquire);
            if top >= bottom {
                return None;
            }
            // Acquire: pairs with the Release in `grow`. An array that is read after `bottom` holds all
            // entries below it.
            // SAFETY: there is an entry, so there is an array; it lives as long as the lane.
            let array = unsafe { &*self.array.load(Ordering::Acquire) };
            let entry = array.at(top).load(Ordering::Relaxed);
            // Release: tells the owner, which may now write over the place, that it has been read. The winner
            // alone has the entry: if `top` is still the same, the place was not written over.
            match self.top.compare_exchange(top, top + 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some(entry),
                Err(now) => top = now,
            }
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let mut array = self.array.load(Ordering::Relaxed);
        while !array.is_null() {
            // SAFETY: made by `Array::new`; in the chain once; nobody else is here.
            let this = unsafe { Box::from_raw(array) };
            array = this.older;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64 as Sum};

    #[test]
    fn oldest_first_and_each_once() {
        let lane = Lane::new();
        for round in 0..100u64 {
            for entry in 0..round {
                // SAFETY: the only thread.
                unsafe {
                    assert!(lane.reserve(|_| true));
                    lane.push(entry);
                }
            }
            for entry in 0..round {
                assert_eq!(lane.take(), Some(entry));
            }
            assert_eq!(lane.take(), None);
        }
    }

    #[test]
    fn dead_entries_do_not_make_it_grow() {
        let lane = Lane::new();
        for entry in 0..100_000u64 {
            // SAFETY: the only thread.
            unsafe {
                assert!(lane.reserve(|old| old % 1_000 == 0));
                lane.push(entry);
            }
        }
        // SAFETY: there is one.
        let length = unsafe { &*lane.array.load(Ordering::Relaxed) }.entries.len();
        assert!(length <= 512, "{length}");
        let kept: Vec<u64> =
            std::iter::from_fn(|| lane.take()).filter(|e| e % 1_000 == 0).collect();
        assert_eq!(kept, (0..100).map(|n| n * 1_000).collect::<Vec<_>>());
    }

    #[test]
    fn many_takers() {
        let lane = Lane::new();
        let sum = Sum::new(0);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = None;
                    loop {
                        let over = done.load(Ordering::Acquire);
                        match lane.take() {
                            Some(entry) => {
                                assert!(last.is_none_or(|last| last < entry));
                                last = Some(entry);
                                sum.fetch_add(entry, Ordering::Relaxed);
                            }
                            None if over => return,
                            None => std::thread::yield_now(),
                        }
                    }
                });
            }
            for entry in 1..=100_000u64 {
                // SAFETY: the only owner.
                unsafe {
                    assert!(lane.reserve(|_| true));
                    lane.push(entry);
                }
            }
            done.store(true, Ordering::Release);
        });
        assert_eq!(sum.load(Ordering::Relaxed), 100_000 * 100_001 / 2);
    }
}
