//! The way from one thread to one shard: an unbounded queue of 64-bit entries with one producer and
//! one consumer.
//!
//! Ground rules: the thread that holds the port pushes; the shard's owner takes. Both are plain stores
//! and loads with one Release/Acquire pair a push; nothing is shared among producers. Entries lie in
//! blocks that the producer links in a chain and uses again once the consumer has left them (as in
//! Vyukov's unbounded SPSC queue), so a steady flow allocates nothing.
//!
//! When very many entries wait, the producer may `purge` those that mean nothing any more; a flag, which the
//! consumer holds while it takes, keeps the two apart, and neither waits for the other.
//!
//! An entry is a hint: slot, generation. What it means is read from the timer's word.

mod purge;

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
        // Relaxed: what is not there yet is shown as what was there before.
        let there = self.pushed.load(Ordering::Relaxed) - self.taken.load(Ordering::Relaxed);
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
mod tests;
