//! Memory that never moves, and whose addresses stay good while its owner lives: growing arrays of
//! records, extras, notes and magazines, addressed by a 32-bit index.
//!
//! Ground rules: any thread may grow an arena and read any element that it knows an index of. The
//! elements are made of atomics (or guard their cells by other means), so a reader with a stale
//! index reads a stale or strange value, never freed memory: this is what lets a canceller look at a
//! slot before it knows whether its handle is still good.
//!
//! Free elements can be given back to the system (`give_back`): their addresses stay, and read as what was
//! there or as zeros, until they are handed out again.
//!
//! Segment `k` holds `FIRST << k` elements, so an index finds its segment by its highest bit and the
//! table of segments stays in two cache lines. Memory comes zeroed and is touched as it is used.

use crate::returned::{Free, Returned, Row};
use crate::status::Error;
use crate::sync::{AtomicPtr, AtomicU32, Ordering};
pub(crate) use crate::sys::memory::Zeroed;
use crate::sys::memory::{PAGE, allocate, discard, release};
use std::ptr::{self, NonNull};

#[cfg(not(loom))]
const FIRST_BITS: u32 = 10;
#[cfg(loom)]
const FIRST_BITS: u32 = 2;
#[cfg(not(loom))]
const SEGMENTS: usize = 30 - FIRST_BITS as usize;
#[cfg(loom)]
const SEGMENTS: usize = if cfg!(shuttle) { 6 } else { 3 };

/// A growing array with stable addresses.
pub(crate) struct Arena<T: Zeroed> {
    /// Null, or where the segment would begin if it went back to the index `-FIRST`: an index is then found by
    /// adding it.
    segments: [AtomicPtr<T>; SEGMENTS],
    /// The first index that was never handed out.
    next: AtomicU32,
    end: u32,
    returned: Returned,
}

impl<T: Zeroed> Arena<T> {
    /// An arena that hands out the indices from `first` up to, not including, `end`.
    pub(crate) fn new(first: u32, end: u32) -> Arena<T> {
        Arena {
            segments: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            next: AtomicU32::new(first),
            end,
            returned: Returned::default(),
        }
    }

    /// The segment of an index, and the index counted from `-FIRST`.
    #[inline]
    fn place(index: u32) -> (usize, usize) {
        let shifted = u64::from(index) + (1 << FIRST_BITS);
        ((shifted.ilog2() - FIRST_BITS) as usize, shifted as usize)
    }

    fn length(segment: usize) -> usize {
        1 << (FIRST_BITS as usize + segment)
    }

    #[inline(always)]
    fn base(segment: &AtomicPtr<T>) -> *mut T {
        // Acquire: pairs with the Release in `grow`, so that the zeroed memory is seen zeroed.
        segment.load(Ordering::Acquire)
    }

    /// The element, if its segment has been made.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (segment, shifted) = Self::place(index);
        let base = Self::base(self.segments.get(segment)?);
        if base.is_null() {
            return None;
        }
        let element = base.wrapping_add(shifted);
        // SAFETY: the base lies a length before the segment, whose indices, so counted, begin with its length
        // and end before twice that; a segment lives as long as `self`. So it is not null: said, because the
        // compiler would ask.
        unsafe {
            std::hint::assert_unchecked(!element.is_null());
            Some(&*element)
        }
    }

    /// An element that is known to have been handed out.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> &T {
        self.get(index).expect("an index that was handed out")
    }

    /// As `at`, without a look whether that is so.
    ///
    /// # Safety
    /// The index was handed out.
    #[inline(always)]
    pub(crate) unsafe fn handed_out(&self, index: u32) -> &T {
        let (segment, shifted) = Self::place(index);
        // SAFETY: what was handed out lies in a segment that has been made; otherwise as in `get`.
        unsafe { &*Self::base(self.segments.get_unchecked(segment)).wrapping_add(shifted) }
    }

    /// Hands out up to `want` indices in a row that have no content: ones that were given back, whose row
    /// says what mark they left, or ones that never had any.
    pub(crate) fn fresh(&self, want: u32) -> Result<Row, Error> {
        if let Some(row) = self.returned.take(want) {
            return Ok(row);
        }
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
                Ok(_) => return Ok(Row { first, count, mark: 0 }),
                Err(now) => first = now,
            }
        }
    }

    /// One past the largest index handed out so far.
    pub(crate) fn used(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }

    /// Elements that were given back and not handed out again.
    pub(crate) fn returned(&self) -> u64 {
        self.returned.count()
    }

    /// Elements handed out so far and not given back.
    pub(crate) fn held(&self) -> u64 {
        u64::from(self.used()).saturating_sub(self.returned())
    }

    /// Bytes of the elements handed out so far and not given back.
    pub(crate) fn bytes(&self) -> usize {
        self.held() as usize * size_of::<T>()
    }

    /// Gives back the pages that hold nothing but elements of `free`, which are the caller's, and takes these out
    /// of `free`. A row's mark is the greatest that `mark` says of its elements.
    pub(crate) fn give_back(&self, free: &mut Free, mark: impl Fn(&T) -> u32) {
        let mut from = 0;
        while let Some((first, end)) = free.next_run(from) {
            let (segment, shifted) = Self::place(first);
            let left = (2 * Self::length(segment) - shifted).min((end - first) as usize);
            from = first + left as u32;
            // Relaxed: the segment was made before the caller came by the elements.
            let base = self.segments[segment].load(Ordering::Relaxed);
            let Some((skipped, count, pages)) = whole_pages(base.wrapping_add(shifted), left)
            else {
                continue;
            };
            let first = first + skipped as u32;
            let last = first + count as u32;
            let mark = (first..last).map(|index| mark(self.at(index))).max().unwrap_or(0);
            let row = Row { first, count: count as u32, mark };
            // SAFETY: the pages lie in the segment, and hold nothing but elements that are the caller's
            // and that may be zeros.
            if self.returned.add(row, || unsafe { discard(pages) }) {
                free.remove(row);
            }
        }
    }

    fn grow(&self, segment: usize) -> Result<(), Error> {
        // Relaxed: it is not looked into here.
        if !self.segments[segment].load(Ordering::Relaxed).is_null() {
            return Ok(());
        }
        let fresh = allocate::<T>(Self::length(segment)).ok_or(Error::NoMemory)?;
        // Release: pairs with the Acquire in `get`.
        let won = self.segments[segment].compare_exchange(
            ptr::null_mut(),
            fresh.as_ptr().wrapping_sub(Self::length(segment)),
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

/// Of `count` elements at `start`: the whole pages that they fill, and which elements lie there, if only in
/// part: how many come before, and how many these are.
fn whole_pages<T>(start: *mut T, count: usize) -> Option<(usize, usize, *mut [u8])> {
    let size = size_of::<T>();
    let ahead = start.addr().next_multiple_of(PAGE) - start.addr();
    let length = (count * size).checked_sub(ahead)? / PAGE * PAGE;
    if length == 0 {
        return None;
    }
    let skipped = ahead / size;
    let pages = std::ptr::slice_from_raw_parts_mut(start.cast::<u8>().wrapping_add(ahead), length);
    Some((skipped, (ahead + length).div_ceil(size) - skipped, pages))
}

impl<T: Zeroed> Drop for Arena<T> {
    fn drop(&mut self) {
        for (index, segment) in self.segments.iter().enumerate() {
            let base = segment.load(Ordering::Relaxed);
            let length = Self::length(index);
            if !base.is_null()
                && let Some(first) = NonNull::new(base.wrapping_add(length))
            {
                // SAFETY: allocated with this length; `&mut self` says that nobody reads it now.
                unsafe { release(first, length) };
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
        while let Ok(Row { first, count, .. }) = arena.fresh(62) {
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

    #[test]
    fn what_is_given_back_reads_as_zeros_and_comes_again_with_its_mark() {
        let arena = Arena::<u64>::new(1, 1 << 20);
        let end = 20_000;
        for index in 1..end {
            let row = arena.fresh(1).unwrap();
            assert_eq!((row.first, row.mark), (index, 0));
            let place = std::ptr::from_ref(arena.at(index)).cast_mut();
            // SAFETY: the test's own arena, in one thread.
            unsafe { place.write(index.into()) };
        }
        let mut free = Free::new(end).unwrap();
        let kept = [1, 9_000, 9_001, end - 1];
        (1..end).filter(|index| !kept.contains(index)).for_each(|index| free.insert(index));
        arena.give_back(&mut free, |&value| value as u32);
        // All but some at the edges of segments and of kept ones.
        assert!(arena.returned() > 15_000, "{}", arena.returned());
        assert_eq!(arena.bytes() as u64, (u64::from(end) - arena.returned()) * 8);
        for index in kept {
            assert_eq!(*arena.at(index), index.into());
        }
        let mut again = 0;
        while arena.returned() > 0 {
            let Row { first, count, mark } = arena.fresh(62).unwrap();
            for index in first..first + count {
                assert!(!free.contains(index) && !kept.contains(&index));
                assert!(index <= mark, "the mark is the greatest");
                assert!([0, u64::from(index)].contains(arena.at(index)));
                again += 1;
            }
        }
        assert!(again > 15_000);
        assert_eq!(arena.fresh(1).unwrap().first, end);
    }
}
