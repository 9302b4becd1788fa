//! A port: all that one thread keeps for one shard.
//!
//! Ground rules: a port is claimed by one thread at a time, and only that thread writes it, with plain
//! stores; other threads read its counters, and take what it has freed through `freed_taken`. Ports are
//! made when a thread first uses a shard, go back when the thread ends, and live as long as the
//! shard.
//!
//! Capacity is counted in credits, one for each timer that may live. A start spends a credit of its
//! port; a cancel or a firing counts as one that is free, which any port may take. So neither
//! touches a line that all threads write, and room that a cancel makes is there for every thread at
//! once.

use crate::gate::Busy;
use crate::inbox::Inbox;
use crate::shard::Shard;
use crate::slab::{MAGAZINE, Slab};
use crate::status::Error;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crate::tally::Number;
use crossbeam_utils::CachePadded;

/// A counter that one thread writes and any thread reads.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// By the writing thread alone: a load and a store, no locked instruction. Answers the new value.
    ///
    /// Release: pairs with the Acquire in `get`, so that whoever sees the end of a timer counted sees
    /// its start counted too.
    #[inline]
    pub(crate) fn add(&self, more: u64) -> u64 {
        let sum = self.0.load(Ordering::Relaxed).wrapping_add(more);
        self.0.store(sum, Ordering::Release);
        sum
    }

    /// By the writing thread alone.
    #[inline]
    pub(crate) fn sub(&self, less: u64) {
        self.add(less.wrapping_neg());
    }

    /// Acquire: pairs with the Release in `add`.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Takes what is there. Any thread, while the writing thread does not add.
    pub(crate) fn take_all(&self) -> u64 {
        // Relaxed: a number, with which nothing comes.
        self.0.swap(0, Ordering::Relaxed)
    }

    /// By the writing thread alone.
    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// What the port's thread has done, for the statistics and the accounting. Each only grows, and a start writes one
/// of them, and so does a cancel: the rest is found from them.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) started: Count,
    pub(crate) cancelled: Count,
    pub(crate) fired: Count,
    /// Timers that fired for the last time; among them those that `revived` counts.
    pub(crate) ended_by_fire: Count,
    /// Timers that were armed again in the callback that had ended them.
    revived: Count,
    pub(crate) missed: Count,
    pub(crate) rejected: Count,
    /// Credits that were given back for no timer, or for one that was not started after all.
    unspent: Count,
    /// What `starts_less_ends` came to when there were as many live timers as ever before.
    mark: Count,
}

impl Counters {
    /// Credits given back, ever. Any thread: as many as it finds counted, one after the other.
    fn freed(&self) -> u64 {
        let ended = self.cancelled.get().wrapping_add(self.ended_by_fire.get());
        ended.wrapping_add(self.unspent.get())
    }

    /// Timers that this thread has ended. While it is at work that may be too few, or, if `live`, too many.
    pub(crate) fn ended(&self, live: bool) -> u64 {
        let (cancelled, fired) = if live {
            let revived = self.revived.get();
            (self.cancelled.get(), self.ended_by_fire.get().wrapping_sub(revived))
        } else {
            (self.cancelled.get(), self.fired_for_good())
        };
        cancelled.wrapping_add(fired)
    }

    /// Timers that fired and are over.
    pub(crate) fn fired_for_good(&self) -> u64 {
        let ended = self.ended_by_fire.get();
        ended.wrapping_sub(self.revived.get())
    }

    /// Of no use but to be compared: what is counted elsewhere is missing.
    #[inline(always)]
    fn starts_less_ends(&self) -> u64 {
        let starts = self.started.get().wrapping_sub(self.cancelled.get());
        starts.wrapping_sub(self.ended_by_fire.get())
    }
}

/// Places for free slots, with one before the first that holds none: a power of two, so that any count is in
/// bounds.
const PLACES: usize = (2 * MAGAZINE + 1).next_power_of_two();

/// Free slots that the port's thread has at hand: `count` of them from place 1 on. Place 0 holds no slot.
struct Slots {
    count: usize,
    slots: [u32; PLACES],
}

impl Slots {
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.count < 2 * MAGAZINE
    }

    /// The newest, or 0.
    #[inline(always)]
    fn newest(&self) -> u32 {
        self.slots[self.count % PLACES]
    }

    #[inline(always)]
    fn push(&mut self, slot: u32) {
        self.count += 1;
        self.slots[self.count % PLACES] = slot;
    }
}

/// The thread's side: no other thread touches these lines on a hot path.
pub(crate) struct Own {
    pub(crate) busy: Busy,
    /// Set while the port's thread owns the shard: its worker, its attached thread, or the thread
    /// that polls it now.
    pub(crate) owner: AtomicBool,
    /// What of the gate this thread passes: `EXCLUSIVE` while it owns the shard so, otherwise nothing.
    pub(crate) pass: AtomicU32,
    /// Credits at hand.
    pub(crate) credits: Count,
    pub(crate) counters: Counters,
    /// Slots that this thread has retired.
    pub(crate) retired: Number,
    slots: UnsafeCell<Slots>,
}

/// See the head of this file.
pub(crate) struct Port {
    shard: *const Shard,
    pub(crate) own: CachePadded<Own>,
    /// How many of the credits that were given back have been taken. Written by any thread that runs out of credits.
    freed_taken: CachePadded<AtomicU64>,
    pub(crate) inbox: Inbox,
    claimed: AtomicBool,
    pub(crate) next: AtomicPtr<Port>,
}

// SAFETY: `slots` is touched only by the thread that has claimed the port; see `take_slot`,
// `give_slot` and `give_up`.
unsafe impl Send for Port {}
// SAFETY: as above.
unsafe impl Sync for Port {}

impl Port {
    /// A port of this shard that its maker has claimed.
    pub(crate) fn new(shard: *const Shard) -> Port {
        Port {
            shard,
            own: CachePadded::new(Own {
                busy: Busy::new(),
                owner: AtomicBool::new(false),
                pass: AtomicU32::new(0),
                credits: Count::default(),
                counters: Counters::default(),
                retired: Number::default(),
                slots: UnsafeCell::new(Slots { count: 0, slots: [0; PLACES] }),
            }),
            freed_taken: CachePadded::new(AtomicU64::new(0)),
            inbox: Inbox::new(),
            claimed: AtomicBool::new(true),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The port's shard.
    #[inline(always)]
    pub(crate) fn shard(&self) -> &Shard {
        // SAFETY: a port lives as long as its shard, which made it.
        unsafe { &*self.shard }
    }

    /// Claims a port that a thread has left.
    pub(crate) fn claim(&self) -> bool {
        // Acquire: pairs with the Release in `give_up`: its last thread's writes are seen.
        self.claimed.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The port's thread leaves: credits and slots go where others find them.
    ///
    /// # Safety
    /// The caller has claimed this port, and it does not use it again.
    pub(crate) unsafe fn give_up(&self, slab: &Slab) {
        self.free_credits(self.own.credits.take_all());
        self.own.slots.with_mut(|slots| {
            // SAFETY: the caller has claimed the port.
            let slots = unsafe { &mut *slots };
            for some in slots.slots[1..=slots.count].chunks(MAGAZINE) {
                slab.flush(some);
            }
            slots.count = 0;
        });
        // Release: pairs with the Acquire in `claim`.
        self.claimed.store(false, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_owner(&self) -> bool {
        self.own.owner.load(Ordering::Relaxed)
    }

    /// What of the gate this thread passes.
    #[inline(always)]
    pub(crate) fn pass(&self) -> u32 {
        self.own.pass.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_exclusive(&self) -> bool {
        self.own.pass.load(Ordering::Relaxed) != 0
    }

    /// The slot that `take_next_slot` takes, if one is at hand; otherwise 0.
    ///
    /// # Safety
    /// The caller has claimed this port, here and in the three functions below.
    #[inline(always)]
    pub(crate) unsafe fn next_slot(&self) -> u32 {
        // SAFETY: the caller has claimed the port.
        self.own.slots.with(|slots| unsafe { (*slots).newest() })
    }

    /// Takes the slot that `next_slot` has shown.
    #[inline(always)]
    pub(crate) unsafe fn take_next_slot(&self) {
        // SAFETY: the caller has claimed the port.
        self.own.slots.with_mut(|slots| unsafe { (*slots).count -= 1 });
    }

    /// Is there room for a free slot?
    #[inline(always)]
    pub(crate) unsafe fn has_room_for_slot(&self) -> bool {
        // SAFETY: the caller has claimed the port.
        self.own.slots.with(|slots| unsafe { (*slots).has_room() })
    }

    /// Keeps a free slot, which the caller owns, for a start to come; there is room for it.
    #[inline(always)]
    pub(crate) unsafe fn keep_slot(&self, slot: u32) {
        // SAFETY: the caller has claimed the port.
        self.own.slots.with_mut(|slots| unsafe { (*slots).push(slot) });
    }

    /// Takes a free slot.
    ///
    /// # Safety
    /// The caller has claimed this port.
    #[inline]
    pub(crate) unsafe fn take_slot(&self, slab: &Slab) -> Result<u32, Error> {
        self.own.slots.with_mut(|slots| {
            // SAFETY: the caller has claimed the port.
            let slots = unsafe { &mut *slots };
            if slots.count == 0 {
                slots.count = slab.refill(&mut slots.slots[1..])?;
            }
            let slot = slots.newest();
            slots.count -= 1;
            Ok(slot)
        })
    }

    /// Keeps a free slot for a start to come; passes half of them on when it has many.
    ///
    /// # Safety
    /// The caller has claimed this port, and owns the slot.
    #[inline]
    pub(crate) unsafe fn give_slot(&self, slab: &Slab, slot: u32) {
        self.own.slots.with_mut(|slots| {
            // SAFETY: the caller has claimed the port.
            let slots = unsafe { &mut *slots };
            if !slots.has_room() {
                slab.flush(&slots.slots[1..=MAGAZINE]);
                slots.slots.copy_within(MAGAZINE + 1..=2 * MAGAZINE, 1);
                slots.count = MAGAZINE;
            }
        });
        // SAFETY: as above, and there is room now.
        unsafe { self.keep_slot(slot) };
    }

    /// The credits at hand.
    #[inline(always)]
    pub(crate) fn credits(&self) -> u64 {
        self.own.credits.get()
    }

    /// Spends a credit that is at hand.
    #[inline]
    pub(crate) fn spend(&self) -> bool {
        let credits = self.own.credits.get();
        if credits == 0 {
            return false;
        }
        self.own.credits.set(credits - 1);
        true
    }

    /// Gives back credits that the port's thread has, for no timer or for one that was not started after all.
    #[cold]
    pub(crate) fn free_credits(&self, count: u64) {
        self.own.counters.unspent.add(count);
    }

    /// A timer that had ended by firing has been armed again.
    pub(crate) fn revive(&self) {
        let counters = &self.own.counters;
        counters.revived.add(1);
        counters.mark.sub(1);
    }

    /// Takes at most `most` credits that were given back here. Any thread.
    pub(crate) fn take_freed(&self, most: u64) -> u64 {
        // Relaxed, here and in the loop: an old value fails the exchange, and what of `freed` is not seen yet
        // belongs to ends that this thread has not been told of.
        let mut taken = self.freed_taken.load(Ordering::Relaxed);
        loop {
            // `get` pairs with `add`: who takes the room sees the end of the timer that made it.
            let there = self.own.counters.freed().saturating_sub(taken);
            let count = there.min(most);
            if count == 0 {
                return 0;
            }
            match self.freed_taken.compare_exchange_weak(
                taken,
                taken + count,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return count,
                Err(now) => taken = now,
            }
        }
    }

    /// Credits that were given back here and not taken yet. Any thread; exact when all is quiet.
    pub(crate) fn freed_left(&self) -> u64 {
        let taken = self.freed_taken.load(Ordering::Relaxed);
        self.own.counters.freed().saturating_sub(taken)
    }

    /// Is it time to look whether more live now than ever? Asked before the end of a timer is noted.
    #[inline]
    pub(crate) fn at_peak(&self) -> bool {
        let counters = &self.own.counters;
        counters.starts_less_ends() as i64 > counters.mark.get() as i64
    }

    /// As many timers live now as ever before, less `below`.
    pub(crate) fn set_peak(&self, below: u64) {
        let counters = &self.own.counters;
        counters.mark.set(counters.starts_less_ends().wrapping_add(below));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn lines_of_different_writers_are_apart() {
        let port = Port::new(std::ptr::null());
        let own = std::ptr::from_ref(&*port.own) as usize;
        let taken = std::ptr::from_ref(&*port.freed_taken) as usize;
        let inbox = std::ptr::from_ref(&port.inbox) as usize;
        assert!(taken.abs_diff(own) >= size_of::<Own>().min(taken.abs_diff(own)));
        assert!(taken.abs_diff(own + size_of::<Own>()) < 4096);
        assert!(taken / 64 != own / 64 && taken / 64 != inbox / 64);
        assert!(align_of::<Port>() >= 64);
    }

    #[test]
    fn credits_come_back_once() {
        let port = Port::new(std::ptr::null());
        assert!(!port.spend());
        port.free_credits(5);
        assert_eq!(port.take_freed(3), 3);
        assert_eq!(port.take_freed(3), 2);
        assert_eq!(port.take_freed(3), 0);
        port.own.credits.set(5);
        for _ in 0..5 {
            assert!(port.spend());
        }
        assert!(!port.spend());
    }
}
