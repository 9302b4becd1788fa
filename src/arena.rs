//! Memory that never moves and is never given back while its owner lives: growing arrays of
//! records, extras, notes and magazines, addressed by a 32-bit index.
//!
//! Ground rules: any thread may grow an arena and read any element that it knows an index of. The
//! elements are made of atomics (or guard their cells by other means), so a reader with a stale
//! index reads a stale or strange value, never freed memory: this is what lets a canceller look at a
//! slot before it knows whether its handle is still good.
//!
//! Segment `k` holds `FIRST << k` elements, so an index finds its segment by its highest bit and the
//! table of segments stays in two cache lines. Memory comes zeroed and is touched as it is used.

use crate::status::Error;
use crate::sync::{AtomicPtr, AtomicU32, Ordering};
pub(crate) use crate::sys::memory::Zeroed;
use crate::sys::memory::{allocate, release};
use std::ptr::{self, NonNull};

#[cfg(not(loom))]
const FIRST_BITS: u32 = 10;
#[cfg(loom)]
const FIRST_BITS: u32 = 2;
#[cfg(not(loom))]
const SEGMENTS: usize = 30 - FIRST_BITS as usize;
#[cfg(loom)]
const SEGMENTS: usize = 3;

/// A growing array with stable addresses.
pub(crate) struct Arena<T: Zeroed> {
    segments: [AtomicPtr<T>; SEGMENTS],
    /// The first index that was never handed out.
    next: AtomicU32,
    end: u32,
}

impl<T: Zeroed> Arena<T> {
    /// An arena that hands out the indices from `first` up to, not including, `end`.
    pub(crate) fn new(first: u32, end: u32) -> Arena<T> {
        Arena {
            segments: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            next: AtomicU32::new(first),
            end,
        }
    }

    #[inline]
    fn place(index: u32) -> (usize, usize) {
        let shifted = u64::from(index) + (1 << FIRST_BITS);
        let top = shifted.ilog2();
        ((top - FIRST_BITS) as usize, (shifted - (1 << top)) as usize)
    }

    fn length(segment: usize) -> usize {
        1 << (FIRST_BITS as usize + segment)
    }

    /// The element, if its segment has been made.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (segment, offset) = Self::place(index);
        // Acquire: pairs with the Release in `grow`, so that the zeroed memory is seen zeroed.
        let base = self.segments.get(segment)?.load(Ordering::Acquire);
        if base.is_null() {
            return None;
        }
        // SAFETY: `offset` is below the segment's length, and a segment lives as long as `self`.
        Some(unsafe { &*base.add(offset) })
    }

    /// An element that is known to have been handed out.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> &T {
        self.get(index).expect("an index that was handed out")
    }

    /// Hands out up to `want` fresh indices in a row: the first, and how many.
    pub(crate) fn fresh(&self, want: u32) -> Result<(u32, u32), Error> {
        // Relaxed: the counter only divides indices among threads; what they name is published by
        // other means.
        let mut first = self.next.load(Ordering::Relaxed);
        loop {
            let count = want.min(self.end.saturating_sub(first));
            if count == 0 {
                return Err(Error::NoMemory);
            }
            let (low, _) = Self::place(first);
            let (high, _) = Self::place(first + count - 1);
            self.grow(low)?;
            self.grow(high)?;
            match self.next.compare_exchange_weak(
                first,
                first + count,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok((first, count)),
                Err(now) => first = now,
            }
        }
    }

    /// One past the largest index handed out so far.
    pub(crate) fn used(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }

    /// Bytes of the elements handed out so far.
    pub(crate) fn bytes(&self) -> usize {
        self.used() as usize * size_of::<T>()
    }

    fn grow(&self, segment: usize) -> Result<(), Error> {
        if !self.segments[segment].load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        let fresh = allocate::<T>(Self::length(segment)).ok_or(Error::NoMemory)?;
        // Release: pairs with the Acquire in `get`.
        let won = self.segments[segment].compare_exchange(
            ptr::null_mut(),
            fresh.as_ptr(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if won.is_err() {
            // SAFETY: `fresh` came from `allocate` with this length and nobody else has seen it.
            unsafe { release(fresh, Self::length(segment)) };
        }
        Ok(())
    }
}

impl<T: Zeroed> Drop for Arena<T> {
    fn drop(&mut self) {
        for (index, segment) in self.segments.iter().enumerate() {
            if let Some(base) = NonNull::new(segment.load(Ordering::Relaxed)) {
                // SAFETY: allocated with this length; `&mut self` says that nobody reads it now.
                unsafe { release(base, Self::length(index)) };
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // SAFETY: an integer.
    unsafe impl Zeroed for u64 {}

    #[test]
    fn places_are_distinct_and_stable() {
        let arena = Arena::<u64>::new(1, 5_000);
        assert!(arena.get(1).is_none());
        let mut seen = std::collections::HashSet::new();
        let mut total = 0;
        while let Ok((first, count)) = arena.fresh(62) {
            for index in first..first + count {
                assert!(seen.insert(std::ptr::from_ref(arena.at(index)) as usize));
                assert_eq!(*arena.at(index), 0);
                total += 1;
            }
        }
        assert_eq!(total, 4_999);
        assert!(arena.get(u32::MAX).is_none());
        assert!(arena.get(1 << 29).is_none());
    }
}
