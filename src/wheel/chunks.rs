//! The memory of the wheel: a pool of chunks.
//!
//! Chunks have a fixed size and are named by a `u32`. The pool grows by whole segments, never
//! moves a chunk, and asks the allocator only when its free list runs short, so that a wheel that
//! has grown to its working set allocates nothing. Every growth can be refused and is then
//! without effect.

use super::reminder::{NoMemory, Reminder};

/// Reminders of a chunk.
pub(super) const ENTRIES: usize = 63;
/// No chunk.
pub(super) const NONE: u32 = u32::MAX;

/// Bits of a position inside a chunk, where a place is `chunk << POS_BITS | position`.
pub(super) const POS_BITS: u32 = 6;
const SEGMENT_BITS: u32 = 6;
const SEGMENT: usize = 1 << SEGMENT_BITS;
/// Chunks whose places fit a `u32`, and stay clear of `NONE`.
const MOST: usize = (1 << (u32::BITS - POS_BITS)) - SEGMENT;

/// A piece of a bucket's chain, or of the free list.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Chunk {
    /// The chunk behind this one. Means nothing in the last chunk of a bucket.
    pub(super) next: u32,
    /// How many entries count. Means nothing in the last chunk of a bucket.
    pub(super) len: u32,
    /// The reminders, oldest first.
    pub(super) entries: [Reminder; ENTRIES],
}

const _: () = assert!(size_of::<Chunk>() == 512);

impl Chunk {
    const EMPTY: Chunk = Chunk { next: NONE, len: 0, entries: [Reminder::NONE; ENTRIES] };
}

type Segment = [Chunk; SEGMENT];

/// The chunks of one wheel.
#[derive(Default)]
pub(super) struct Pool {
    /// `None` is a hole: a segment that was given back.
    segments: Vec<Option<Box<Segment>>>,
    holes: usize,
    /// First chunk of the free list, if `spare` is not 0.
    free: u32,
    /// Chunks of the free list.
    spare: usize,
    /// Chunks that may be in use at once, for tests that run out of memory.
    #[cfg(test)]
    pub(super) limit: Option<usize>,
}

impl Pool {
    /// The chunk of that name.
    #[inline(always)]
    pub(super) fn chunk(&self, chunk: u32) -> &Chunk {
        let segment = self.segments[(chunk >> SEGMENT_BITS) as usize].as_ref();
        &segment.expect("a chunk in use is in no hole")[chunk as usize % SEGMENT]
    }

    /// The chunk of that name, to write.
    #[inline(always)]
    pub(super) fn chunk_mut(&mut self, chunk: u32) -> &mut Chunk {
        let segment = self.segments[(chunk >> SEGMENT_BITS) as usize].as_mut();
        &mut segment.expect("a chunk in use is in no hole")[chunk as usize % SEGMENT]
    }

    /// Chunks that `take` can give without asking the allocator.
    #[inline(always)]
    pub(super) fn spare(&self) -> usize {
        #[cfg(test)]
        if let Some(limit) = self.limit {
            return self.spare.min(limit.saturating_sub(self.used()));
        }
        self.spare
    }

    /// Sees to it that `take` can be called `count` times.
    #[inline(always)]
    pub(super) fn reserve(&mut self, count: usize) -> Result<(), NoMemory> {
        while self.spare() < count {
            self.grow()?;
        }
        Ok(())
    }

    /// Takes a chunk off the free list. There must be one: see `reserve`.
    #[inline]
    pub(super) fn take(&mut self) -> u32 {
        assert!(self.spare() > 0, "reserve comes before take");
        let chunk = self.free;
        self.free = self.chunk(chunk).next;
        self.spare -= 1;
        chunk
    }

    /// Puts a chunk on the free list.
    #[inline]
    pub(super) fn give(&mut self, chunk: u32) {
        let free = self.free;
        self.chunk_mut(chunk).next = free;
        self.free = chunk;
        self.spare += 1;
    }

    /// Puts a whole chain, linked from `head` to `tail`, on the free list. The caller says at
    /// the end with `all_spare` that no chunk is left in use.
    pub(super) fn give_chain(&mut self, head: u32, tail: u32) {
        let free = self.free;
        self.chunk_mut(tail).next = free;
        self.free = head;
    }

    /// All chunks have come back.
    pub(super) fn all_spare(&mut self) {
        self.spare = self.total();
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Result<(), NoMemory> {
        #[cfg(test)]
        if self.limit.is_some_and(|limit| limit <= self.total()) {
            return Err(NoMemory);
        }
        if self.total() + SEGMENT > MOST {
            return Err(NoMemory);
        }
        if self.holes == 0 {
            self.segments.try_reserve(1).map_err(|_| NoMemory)?;
        }
        let mut chunks = Vec::new();
        chunks.try_reserve_exact(SEGMENT).map_err(|_| NoMemory)?;
        chunks.resize(SEGMENT, Chunk::EMPTY);
        let segment: Box<Segment> = chunks.into_boxed_slice().try_into().map_err(|_| NoMemory)?;
        let hole = match self.holes {
            0 => None,
            _ => self.segments.iter().position(Option::is_none),
        };
        let at = hole.unwrap_or(self.segments.len());
        if hole.is_some() {
            self.segments[at] = Some(segment);
            self.holes -= 1;
        } else {
            self.segments.push(Some(segment));
        }
        for chunk in (0..SEGMENT).rev() {
            self.give((at << SEGMENT_BITS | chunk) as u32);
        }
        Ok(())
    }

    /// Gives the segments in which no chunk is in use back to the allocator.
    pub(super) fn trim(&mut self) {
        let mut idle = Vec::new();
        if idle.try_reserve_exact(self.segments.len()).is_err() {
            return;
        }
        idle.resize(self.segments.len(), 0usize);
        let mut chunk = self.free;
        for _ in 0..self.spare {
            idle[(chunk >> SEGMENT_BITS) as usize] += 1;
            chunk = self.chunk(chunk).next;
        }
        let (mut chunk, spare) = (self.free, self.spare);
        self.spare = 0;
        for _ in 0..spare {
            let next = self.chunk(chunk).next;
            if idle[(chunk >> SEGMENT_BITS) as usize] < SEGMENT {
                self.give(chunk);
            }
            chunk = next;
        }
        for (segment, idle) in self.segments.iter_mut().zip(idle) {
            if idle == SEGMENT {
                *segment = None;
                self.holes += 1;
            }
        }
        while let Some(None) = self.segments.last() {
            self.segments.pop();
            self.holes -= 1;
        }
        if self.segments.is_empty() {
            self.segments = Vec::new();
        }
    }

    /// Chunks that the pool has memory for.
    pub(super) fn total(&self) -> usize {
        (self.segments.len() - self.holes) << SEGMENT_BITS
    }

    /// Chunks that are not on the free list.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.total() - self.spare
    }

    /// What the pool has from the allocator.
    pub(super) fn memory_bytes(&self) -> usize {
        self.total() * size_of::<Chunk>()
            + self.segments.capacity() * size_of::<Option<Box<Segment>>>()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn grows_and_trims_by_segments() {
        let mut pool = Pool::default();
        assert_eq!((pool.total(), pool.memory_bytes()), (0, 0));
        pool.reserve(3 * SEGMENT).unwrap();
        let mut taken: Vec<u32> = (0..3 * SEGMENT).map(|_| pool.take()).collect();
        assert_eq!((pool.used(), pool.spare()), (3 * SEGMENT, 0));
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), 3 * SEGMENT);
        // All of the first and the last segment, all but one of the middle one.
        let kept = taken.remove(SEGMENT + 5);
        taken.iter().for_each(|&chunk| pool.give(chunk));
        pool.trim();
        assert_eq!((pool.used(), pool.total()), (1, SEGMENT));
        // The hole in front is filled first, and the kept chunk has stayed what it is.
        pool.reserve(2 * SEGMENT - 1).unwrap();
        let again: Vec<u32> = (1..2 * SEGMENT).map(|_| pool.take()).collect();
        assert!(again.iter().all(|&chunk| chunk != kept && (chunk as usize) < 2 * SEGMENT));
        pool.give(kept);
        again.iter().for_each(|&chunk| pool.give(chunk));
        pool.trim();
        assert_eq!((pool.total(), pool.memory_bytes()), (0, 0));
        pool.reserve(1).unwrap();
        assert_eq!(pool.total(), SEGMENT);
    }

    #[test]
    fn refuses_beyond_its_limit() {
        let mut pool = Pool { limit: Some(70), ..Pool::default() };
        for _ in 0..70 {
            pool.reserve(1).unwrap();
            pool.take();
        }
        assert_eq!(pool.reserve(1), Err(NoMemory));
        pool.give(3);
        assert_eq!(pool.reserve(1), Ok(()));
        assert_eq!(pool.reserve(2), Err(NoMemory));
    }
}
