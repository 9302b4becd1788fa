//! The way from one thread to one shard: an unbounded queue of 64-bit entries with one producer and
//! one consumer.
//!
//! Ground rules: the thread that holds the port pushes; the shard's owner takes. Both are plain stores
//! and loads with one Release/Acquire pair a push; nothing is shared among producers. Entries lie in
//! blocks that the producer links in a chain and uses again once the consumer has left them (as in
//! Vyukov's unbounded SPSC queue), so a steady flow allocates nothing.
//!
//! When very many entries wait, the producer may purge those that mean nothing any more; a flag, which the
//! consumer holds while it takes, keeps the two apart, and neither waits for the other.
//!
//! An entry is a hint: slot, generation. What it means is read from the timer's word.

use crate::status::Error;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, Ordering, UnsafeCell};
use crossbeam_utils::CachePadded;
use std::ptr;

/// Entries in a block.
pub(crate) const BLOCK: usize = if cfg!(loom) { 2 } else { 254 };

struct Block {
    next: AtomicPtr<Block>,
    entries: [AtomicU64; BLOCK],
}

/// The producer's own view.
struct Producer {
    /// Where the next entry goes.
    tail: *mut Block,
    used: usize,
    /// The oldest block of the chain, and how many entries were pushed before the chain's blocks
    /// after it begin: it can be used again when the consumer has gone past them.
    oldest: *mut Block,
    oldest_end: u64,
    /// Blocks linked behind `tail`.
    ahead: usize,
}

/// The consumer's own view.
struct Consumer {
    head: *mut Block,
    used: usize,
}

/// See the head of this file.
pub(crate) struct Inbox {
    producer: CachePadded<UnsafeCell<Producer>>,
    /// Entries pushed so far. Written by the producer.
    pushed: CachePadded<AtomicU64>,
    first: AtomicPtr<Block>,
    consumer: CachePadded<UnsafeCell<Consumer>>,
    /// Entries taken so far. Written by the consumer.
    taken: AtomicU64,
    /// The consumer is taking, or the producer is purging.
    taking: AtomicBool,
    /// Blocks of the chain.
    blocks: AtomicU64,
}

/// `taking` is held.
struct Taking<'a>(&'a AtomicBool);

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `lock`.
        self.0.store(false, Ordering::Release);
    }
}

/// A place in the chain.
struct Walk {
    block: *mut Block,
    used: usize,
}

impl Walk {
    /// The next entry.
    ///
    /// # Safety
    /// The chain goes on that far, and nobody changes it meanwhile.
    unsafe fn next(&mut self) -> &AtomicU64 {
        if self.used == BLOCK {
            // SAFETY: the caller's promise; blocks live until the inbox is dropped.
            self.block = unsafe { (*self.block).next.load(Ordering::Relaxed) };
            self.used = 0;
        }
        self.used += 1;
        // SAFETY: as above.
        unsafe { &(&(*self.block).entries)[self.used - 1] }
    }

    /// Blocks that are linked behind this one.
    ///
    /// # Safety
    /// Nobody changes the chain meanwhile.
    unsafe fn blocks_behind(&self) -> usize {
        let mut count = 0;
        // SAFETY: blocks live until the inbox is dropped, here and below.
        let mut next = unsafe { (*self.block).next.load(Ordering::Relaxed) };
        while !next.is_null() {
            count += 1;
            // SAFETY: as above.
            next = unsafe { (*next).next.load(Ordering::Relaxed) };
        }
        count
    }
}

// SAFETY: the producer's view is touched by the thread that holds the port alone and the consumer's
// by the shard's owner alone; the blocks between them are handed over by `pushed` and `taken`.
unsafe impl Send for Inbox {}
// SAFETY: as above.
unsafe impl Sync for Inbox {}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        Inbox {
            producer: CachePadded::new(UnsafeCell::new(Producer {
                tail: ptr::null_mut(),
                used: BLOCK,
                oldest: ptr::null_mut(),
                oldest_end: BLOCK as u64,
                ahead: 0,
            })),
            pushed: CachePadded::new(AtomicU64::new(0)),
            first: AtomicPtr::new(ptr::null_mut()),
            consumer: CachePadded::new(UnsafeCell::new(Consumer {
                head: ptr::null_mut(),
                used: 0,
            })),
            taken: AtomicU64::new(0),
            taking: AtomicBool::new(false),
            blocks: AtomicU64::new(0),
        }
    }

    /// Makes sure that the next `count` pushes find room. `limit` is asked for the most entries that
    /// may lie here, only when a new block is needed.
    ///
    /// # Safety
    /// The caller is the producer.
    #[inline]
    pub(crate) unsafe fn reserve(
        &self,
        count: usize,
        limit: impl Fn() -> u64,
    ) -> Result<(), Error> {
        self.producer.with_mut(|producer| {
            // SAFETY: the caller is the producer.
            let producer = unsafe { &mut *producer };
            while BLOCK - producer.used + producer.ahead * BLOCK < count {
                self.lengthen(producer, &limit)?;
            }
            Ok(())
        })
    }

    #[cold]
    fn lengthen(&self, producer: &mut Producer, limit: &impl Fn() -> u64) -> Result<(), Error> {
        // Acquire: pairs with the Release in `take`: the consumer has left the blocks before.
        let taken = self.taken.load(Ordering::Acquire);
        let block = if producer.oldest != producer.tail && taken > producer.oldest_end {
            let block = producer.oldest;
            // SAFETY: a block of the chain; blocks live until the inbox is dropped.
            producer.oldest = unsafe { (*block).next.load(Ordering::Relaxed) };
            producer.oldest_end += BLOCK as u64;
            // SAFETY: as above; the consumer took an entry of a later block, so it has left this one.
            unsafe { (*block).next.store(ptr::null_mut(), Ordering::Relaxed) };
            block
        } else {
            let waiting = self.pushed.load(Ordering::Relaxed) - taken;
            if waiting + BLOCK as u64 > limit() {
                return Err(Error::Full);
            }
            let block = new_block().ok_or(Error::NoMemory)?;
            // Relaxed: for the statistics alone.
            self.blocks.fetch_add(1, Ordering::Relaxed);
            block
        };
        if producer.tail.is_null() {
            producer.tail = block;
            producer.oldest = block;
            producer.used = 0;
            // Release: pairs with the Acquire in `take`.
            self.first.store(block, Ordering::Release);
            return Ok(());
        }
        let mut last = producer.tail;
        for _ in 0..producer.ahead {
            // SAFETY: a block of the chain, as above.
            last = unsafe { (*last).next.load(Ordering::Relaxed) };
        }
        // Release: pairs with the Acquire in `take`, which follows the link.
        // SAFETY: as above.
        unsafe { (*last).next.store(block, Ordering::Release) };
        producer.ahead += 1;
        Ok(())
    }

    /// Is there room for a push without `reserve`?
    ///
    /// # Safety
    /// The caller is the producer.
    #[inline(always)]
    pub(crate) unsafe fn has_room(&self) -> bool {
        // SAFETY: the caller is the producer.
        self.producer.with(|producer| unsafe { (*producer).used } < BLOCK)
    }

    /// Adds an entry; true when this was the last of a block, a good moment to ask whether too
    /// much lies here.
    ///
    /// # Safety
    /// The caller is the producer and has reserved room for it.
    #[inline]
    pub(crate) unsafe fn push(&self, entry: u64) -> bool {
        self.producer.with_mut(|producer| {
            // SAFETY: the caller is the producer.
            let producer = unsafe { &mut *producer };
            if producer.used == BLOCK {
                // SAFETY: room was reserved, so a block is linked behind this one.
                producer.tail = unsafe { (*producer.tail).next.load(Ordering::Relaxed) };
                producer.used = 0;
                producer.ahead -= 1;
            }
            // SAFETY: a block of the chain, as above.
            let block = unsafe { &*producer.tail };
            block.entries[producer.used].store(entry, Ordering::Relaxed);
            producer.used += 1;
            let pushed = self.pushed.load(Ordering::Relaxed) + 1;
            // Release: pairs with the Acquire in `take`; hands over the entry and all before it.
            self.pushed.store(pushed, Ordering::Release);
            producer.used == BLOCK
        })
    }

    /// Entries that wait. Any thread; exact for the producer and the consumer alone.
    #[inline]
    pub(crate) fn waiting(&self) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed);
        self.pushed.load(Ordering::Relaxed).saturating_sub(taken)
    }

    /// Drops the waiting entries that `live` says mean nothing, and all but the first of equal ones;
    /// the rest keep their order. Does nothing while the consumer is taking.
    ///
    /// # Safety
    /// The caller is the producer.
    #[cold]
    pub(crate) unsafe fn purge(&self, live: impl Fn(u64) -> bool) {
        let Some(_consumer) = self.lock() else { return };
        let taken = self.taken.load(Ordering::Relaxed);
        let waiting = (self.pushed.load(Ordering::Relaxed) - taken) as usize;
        if waiting == 0 {
            return;
        }
        // SAFETY: this thread is the producer, and holds the consumer's lock.
        unsafe {
            let mut read = self.first_waiting();
            let mut write = self.first_waiting();
            let repeated = self.repeated(waiting);
            let mut kept = 0;
            for at in 0..waiting {
                let entry = read.next().load(Ordering::Relaxed);
                if live(entry) && repeated.binary_search(&at).is_err() {
                    write.next().store(entry, Ordering::Relaxed);
                    kept += 1;
                }
            }
            self.producer.with_mut(|producer| {
                let producer = &mut *producer;
                producer.tail = write.block;
                producer.used = write.used;
                producer.ahead = write.blocks_behind();
            });
            // Release: pairs with the Acquire in `take`.
            self.pushed.store(taken + kept, Ordering::Release);
        }
    }

    /// The places, in order, of waiting entries that repeat an earlier one; none without memory to find
    /// them.
    ///
    /// # Safety
    /// As `first_waiting`; at least so many wait.
    unsafe fn repeated(&self, waiting: usize) -> Vec<usize> {
        let mut places: Vec<(u64, usize)> = Vec::new();
        let mut repeated = Vec::new();
        if places.try_reserve_exact(waiting).is_err() || repeated.try_reserve(waiting).is_err() {
            return Vec::new();
        }
        // SAFETY: the caller's promise.
        let mut read = unsafe { self.first_waiting() };
        // SAFETY: as above.
        places.extend((0..waiting).map(|at| (unsafe { read.next().load(Ordering::Relaxed) }, at)));
        places.sort_unstable();
        let pairs = places.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        repeated.extend(pairs.map(|pair| pair[1].1));
        repeated.sort_unstable();
        repeated
    }

    /// A walk over the waiting entries.
    ///
    /// # Safety
    /// The caller is the producer, holds the consumer's lock, and something waits.
    unsafe fn first_waiting(&self) -> Walk {
        self.consumer.with_mut(|consumer| {
            // SAFETY: the lock keeps the consumer out.
            let consumer = unsafe { &mut *consumer };
            if consumer.head.is_null() {
                Walk { block: self.first.load(Ordering::Relaxed), used: 0 }
            } else {
                Walk { block: consumer.head, used: consumer.used }
            }
        })
    }

    /// Keeps `take` and `purge` apart: whoever comes second does without.
    fn lock(&self) -> Option<Taking<'_>> {
        // Acquire: pairs with the Release in `Taking::drop`.
        self.taking
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| Taking(&self.taking))
    }

    /// Hands at most `most` entries to `each`, one by one, with the one behind it if that is at hand; ends
    /// early when `each` refuses one, which stays. Answers how many were taken.
    ///
    /// # Safety
    /// The caller is the consumer.
    pub(crate) unsafe fn take(
        &self,
        most: usize,
        mut each: impl FnMut(u64, Option<u64>) -> bool,
    ) -> usize {
        let Some(_lock) = self.lock() else {
            // The producer is purging: the sooner it goes on the better.
            crate::sync::yield_now();
            return 0;
        };
        let taken = self.taken.load(Ordering::Relaxed);
        // Acquire: pairs with the Release in `push` and `purge`.
        let there = self.pushed.load(Ordering::Acquire) - taken;
        let want = there.min(most as u64) as usize;
        if want == 0 {
            return 0;
        }
        let done = self.consumer.with_mut(|consumer| {
            // SAFETY: the caller is the consumer.
            let consumer = unsafe { &mut *consumer };
            let mut done = 0;
            while done < want {
                if consumer.head.is_null() {
                    consumer.head = self.first.load(Ordering::Acquire);
                } else if consumer.used == BLOCK {
                    // SAFETY: blocks live until the inbox is dropped; an entry was pushed behind
                    // this block, so its successor is linked.
                    consumer.head = unsafe { (*consumer.head).next.load(Ordering::Acquire) };
                    consumer.used = 0;
                }
                // SAFETY: as above.
                let block = unsafe { &*consumer.head };
                let entry = block.entries[consumer.used].load(Ordering::Relaxed);
                consumer.used += 1;
                let next = block.entries.get(consumer.used).filter(|_| done + 1 < want);
                if !each(entry, next.map(|next| next.load(Ordering::Relaxed))) {
                    consumer.used -= 1;
                    break;
                }
                done += 1;
            }
            done
        });
        // Release: pairs with the Acquire in `lengthen`.
        self.taken.store(taken + done as u64, Ordering::Release);
        done
    }

    /// Calls `each` for the next entries without taking them: for prefetching.
    ///
    /// # Safety
    /// The caller is the consumer.
    pub(crate) unsafe fn peek(&self, most: usize, mut each: impl FnMut(u64)) {
        let Some(_lock) = self.lock() else { return };
        // Acquire: pairs with the Release in `push` and `purge`.
        let there = self.pushed.load(Ordering::Acquire) - self.taken.load(Ordering::Relaxed);
        self.consumer.with_mut(|consumer| {
            // SAFETY: the caller is the consumer.
            let consumer = unsafe { &mut *consumer };
            if consumer.head.is_null() {
                return;
            }
            // SAFETY: blocks live until the inbox is dropped.
            let block = unsafe { &*consumer.head };
            let end = (consumer.used + most.min(there as usize)).min(BLOCK);
            for entry in &block.entries[consumer.used..end] {
                each(entry.load(Ordering::Relaxed));
            }
        });
    }

    /// Bytes of the chain.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed) * size_of::<Block>() as u64
    }
}

fn new_block() -> Option<*mut Block> {
    #[cfg(loom)]
    {
        Some(Box::into_raw(Box::new(Block {
            next: AtomicPtr::new(ptr::null_mut()),
            entries: std::array::from_fn(|_| AtomicU64::new(0)),
        })))
    }
    #[cfg(not(loom))]
    {
        // SAFETY: the layout is not of size zero; zero bytes are a valid block: atomics.
        let block = unsafe { std::alloc::alloc_zeroed(std::alloc::Layout::new::<Block>()) };
        (!block.is_null()).then_some(block.cast())
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        let mut block = self.producer.with(|producer| {
            // SAFETY: `&mut self`: nobody else is here.
            unsafe { (*producer).oldest }
        });
        while !block.is_null() {
            // SAFETY: each block of the chain was made by `new_block` with the global allocator and
            // is in the chain once, which begins at `oldest`.
            let this = unsafe { Box::from_raw(block) };
            block = this.next.load(Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn limit() -> u64 {
        u64::MAX
    }

    #[test]
    fn keeps_order_and_reuses_blocks() {
        let inbox = Inbox::new();
        let mut next_in = 0u64;
        let mut next_out = 0u64;
        for round in 0..2_000usize {
            for _ in 0..(round * 7) % 600 {
                // SAFETY: the only thread.
                unsafe {
                    inbox.reserve(1, limit).unwrap();
                    inbox.push(next_in);
                }
                next_in += 1;
            }
            // SAFETY: the only thread.
            unsafe {
                inbox.take((round * 11) % 700, |entry, _| {
                    assert_eq!(entry, next_out);
                    next_out += 1;
                    true
                });
            }
        }
        assert!(inbox.bytes() < 1 << 20, "{}", inbox.bytes());
        assert_eq!(inbox.waiting(), next_in - next_out);
    }

    #[test]
    fn refuses_at_its_limit_and_recovers() {
        let inbox = Inbox::new();
        let bound = || 4 * BLOCK as u64;
        let mut count = 0;
        // SAFETY: the only thread.
        while unsafe { inbox.reserve(1, bound) }.is_ok() {
            // SAFETY: the only thread, room reserved.
            unsafe { inbox.push(count) };
            count += 1;
        }
        assert_eq!(count, 4 * BLOCK as u64);
        // SAFETY: the only thread.
        unsafe {
            assert_eq!(inbox.take(usize::MAX, |_, _| true), 4 * BLOCK);
            inbox.reserve(300, bound).unwrap();
        }
    }

    #[test]
    fn purging_keeps_the_order_of_what_lives() {
        let inbox = Inbox::new();
        let mut expected = Vec::new();
        for entry in 0..10_000u64 {
            // SAFETY: the only thread.
            unsafe {
                inbox.reserve(1, limit).unwrap();
                inbox.push(entry % 3_000);
                if entry == 700 {
                    inbox.take(500, |_, _| true);
                }
                if entry % 2_500 == 2_499 {
                    inbox.purge(|entry| entry % 3 == 0);
                }
            }
        }
        // SAFETY: as above.
        unsafe {
            inbox.purge(|entry| entry % 3 == 0);
            assert_eq!(inbox.waiting(), 1_000);
            inbox.take(usize::MAX, |entry, _| {
                expected.push(entry);
                true
            });
            assert!(expected.is_sorted_by_key(|&entry| (entry < 501, entry)), "{expected:?}");
            inbox.reserve(1_000, limit).unwrap();
            for entry in 0..1_000 {
                inbox.push(entry);
            }
            let mut next = 0;
            inbox.take(usize::MAX, |entry, _| {
                assert_eq!(entry, next);
                next += 1;
                true
            });
            assert_eq!(next, 1_000);
        }
    }

    #[test]
    fn two_threads() {
        let inbox = Inbox::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for entry in 0..200_000 {
                    // SAFETY: the only producer.
                    unsafe {
                        inbox.reserve(1, limit).unwrap();
                        inbox.push(entry);
                    }
                }
            });
            let mut next = 0;
            while next < 200_000 {
                // SAFETY: the only consumer.
                unsafe {
                    inbox.take(1_000, |entry, _| {
                        assert_eq!(entry, next);
                        next += 1;
                        true
                    });
                }
            }
        });
    }
}
