//! Purging: the producer drops waiting entries that mean nothing any more.
//!
//! Ground rules: by the producer, while it holds the flag that keeps the consumer out; the chain of blocks does not
//! change meanwhile. What stays keeps its order.

use super::{BLOCK, Block, Inbox};
use crate::sync::{AtomicU64, Ordering};

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

impl Inbox {
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
}
