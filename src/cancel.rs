//! Cancelling a timer. Any thread, lock-free, never waits.
//!
//! Where a cancel goes: the handle names shard, slot and generation; one compare-and-swap moves the
//! slot's word from `Pending` (or `Queued`) to `Free` with the next generation, and the timer is over.
//! Its slot goes into this thread's magazine, from there through the depot to whoever starts timers
//! next; its room is counted back at once. The reminder that is still in the owner's wheel, or on its way
//! there, finds another generation when it comes up, or when the owner compacts. The owner
//! is neither asked nor woken.

use crate::core::Entry;
use crate::extra::Extra;
use crate::gate::{EXCLUSIVE, Inside, Work};
use crate::handle::Handle;
use crate::port::Port;
use crate::queue::QueueInner;
use crate::record::{Record, drop_of};
use crate::shard::Shard;
use crate::status::{Error, Outcome};
use crate::sync::Ordering;
use crate::sys::call::drop_host;
use crate::types::DropFn;
use crate::word::{Offset, Phase, Word};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

/// What is left to do when a cancel has won and the gate is left: the host's drop. Until it is over the
/// word says `Ending`, and the slot is this thread's.
#[must_use]
pub(crate) struct Ended(Option<Drop>);

struct Drop {
    function: DropFn,
    ctx: *mut c_void,
    slot: u32,
}

/// A drop that this thread is running, and the one around it.
struct Frame {
    shard: *const Shard,
    timer: u64,
    outer: *const Frame,
}

#[cfg(not(loom))]
thread_local! {
    static DROPS: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}
#[cfg(loom)]
loom::thread_local! {
    static DROPS: Cell<*const Frame> = Cell::new(ptr::null());
}

/// Is this thread inside a drop of which that holds?
fn is_inside(mut holds: impl FnMut(&Frame) -> bool) -> bool {
    let mut next = DROPS.with(Cell::get);
    // SAFETY: frames lie on this thread's stack, and are taken out before they go.
    while let Some(frame) = unsafe { next.as_ref() } {
        if holds(frame) {
            return true;
        }
        next = frame.outer;
    }
    false
}

/// Is this thread inside the drop of that timer?
pub(crate) fn is_dropping(timer: u64) -> bool {
    is_inside(|frame| frame.timer == timer)
}

/// Is this thread inside the drop of a timer of these shards that it cancelled?
pub(crate) fn is_in_drop_of(shards: &[Shard]) -> bool {
    is_inside(|frame| shards.as_ptr_range().contains(&frame.shard))
}

/// Is this thread inside the drop of any timer that it cancelled?
pub(crate) fn is_in_drop() -> bool {
    !DROPS.with(Cell::get).is_null()
}

impl Ended {
    pub(crate) const NOTHING: Ended = Ended(None);

    /// Runs the timer's drop, then lets the slot go. Outside the gate.
    ///
    /// # Safety
    /// The calling thread has claimed the port, with which it cancelled a timer of this shard.
    pub(crate) unsafe fn finish(self, shard: &Shard, port: &Port) {
        let Some(Drop { function, ctx, slot }) = self.0 else { return };
        let record = shard.slab.at(slot);
        let mut word = record.word();
        let timer = shard.handle(slot, word.generation());
        let frame = Frame { shard, timer, outer: DROPS.with(Cell::get) };
        DROPS.with(|drops| drops.set(&raw const frame));
        // SAFETY: the timer has ended, and only the thread that ended it has this.
        unsafe { drop_host(function, ctx) };
        DROPS.with(|drops| drops.set(frame.outer));
        let (free, spent) = shard.slab.freed(word.generation());
        let extra = record.extra_index();
        while let Err(now) = record.swap(word, free) {
            word = now;
        }
        shard.slab.extras.give(extra);
        // SAFETY: the swap to `Free` made the slot this thread's to give.
        unsafe { shard.give_slot(port, slot, spent) };
        if word.phase() == Phase::EndingAwaited {
            shard.epoch.bump_and_wake_all();
        }
    }
}

impl Shard {
    /// Cancels. `await_end`: whoever finds the callback running marks that it will wait for it.
    ///
    /// # Safety
    /// The calling thread has claimed `port`.
    pub(crate) unsafe fn cancel(
        &self,
        port: &Port,
        handle: Handle,
        await_end: bool,
    ) -> Result<Outcome, Error> {
        let inside = self.gate.enter(&port.own.busy, Work::Other, port.is_owner())?;
        // SAFETY: the caller's promise.
        let (outcome, ended) = unsafe { self.cancel_inside(port, handle, await_end, &inside) };
        drop(inside);
        // SAFETY: as above.
        unsafe { ended.finish(self, port) };
        Ok(outcome)
    }

    /// As `cancel`, inside the gate. The caller runs `Ended::finish` when it has left it.
    ///
    /// # Safety
    /// The calling thread has claimed `port`.
    unsafe fn cancel_inside(
        &self,
        port: &Port,
        handle: Handle,
        await_end: bool,
        _inside: &Inside<'_>,
    ) -> (Outcome, Ended) {
        let Some(record) = self.slab.get(handle.slot) else {
            return (Outcome::NotFound, Ended::NOTHING);
        };
        let mut word = record.word();
        loop {
            if word.generation() != handle.generation {
                return (Outcome::NotFound, Ended::NOTHING);
            }
            let moved = match word.phase() {
                Phase::Free | Phase::Ending | Phase::EndingAwaited => {
                    return (Outcome::NotFound, Ended::NOTHING);
                }
                // SAFETY: the caller has claimed the port.
                Phase::Pending | Phase::Queued => unsafe {
                    self.end_armed(port, record, handle.slot, word)
                        .map(|ended| (Outcome::Done, ended))
                },
                _ => self.doom(port, record, word, handle, await_end),
            };
            match moved {
                Ok(result) => return result,
                Err(now) => word = now,
            }
        }
    }

    /// The callback is running: sees to it that it does not run again.
    fn doom(
        &self,
        port: &Port,
        record: &Record,
        word: Word,
        handle: Handle,
        await_end: bool,
    ) -> Result<(Outcome, Ended), Word> {
        let own = port.is_owner() && self.running.load(Ordering::Relaxed) == handle.pack();
        let periodic = self.is_periodic(record);
        let doomed = if await_end && !own { Phase::Awaited } else { Phase::Doomed };
        let answer = if !(own && periodic) {
            Outcome::Running
        } else if word.phase() == Phase::Running {
            Outcome::Done
        } else {
            Outcome::NotFound
        };
        if word.phase() == Phase::Running {
            self.swap(port, record, word, word.with(doomed, Offset::NONE))?;
            self.slab.release(word.offset());
            if periodic || word.offset() != Offset::NONE {
                // It had a run to come, which counts as a timer that lives.
                self.before_end(port);
                port.own.counters.cancelled.add(1);
            }
        } else if doomed == Phase::Awaited && word.phase() == Phase::Doomed {
            self.swap(port, record, word, word.with(doomed, Offset::NONE))?;
        }
        Ok((answer, Ended::NOTHING))
    }

    /// What this record says now of its timer's period; true of the timer whose word is swapped next.
    pub(crate) fn is_periodic(&self, record: &Record) -> bool {
        self.extra_of(record).is_some_and(|extra| extra.period_ns.load(Ordering::Relaxed) != 0)
    }

    /// The extra that this record names now.
    pub(crate) fn extra_of(&self, record: &Record) -> Option<&Extra> {
        if !record.kind().has_extra() {
            return None;
        }
        self.slab.extras.get(record.extra_index())
    }

    /// The word of the timer in a slot, if it would be delivered to this queue. Any thread; true of timers that nobody
    /// starts or ends meanwhile.
    fn waits_for_queue(&self, slot: u32, queue: &QueueInner) -> Option<Word> {
        let record = self.slab.at(slot);
        let word = record.word();
        let named = self.extra_of(record).map(|extra| extra.queue.load(Ordering::Relaxed));
        let same = named == Some(std::ptr::from_ref(queue).cast_mut().cast());
        (word.waits() && same).then_some(word)
    }

    /// Has the shard timers that would be delivered to this queue?
    pub(crate) fn has_timers_of(&self, queue: &QueueInner) -> bool {
        (1..self.slab.end()).any(|slot| self.waits_for_queue(slot, queue).is_some())
    }

    /// Cancels the timer in a slot if it would be delivered to this queue.
    ///
    /// # Safety
    /// The calling thread has claimed `port`; starts with this queue are kept out.
    pub(crate) unsafe fn cancel_if_of(&self, port: &Port, slot: u32, queue: &QueueInner) {
        let Some(word) = self.waits_for_queue(slot, queue) else { return };
        let handle = Handle { shard: self.index, slot, generation: word.generation() };
        // A thread that is just becoming the exclusive owner gives way while a queue is freed.
        // SAFETY: the caller's promise.
        while unsafe { self.cancel(port, handle, false) } == Err(Error::Busy) {
            // It waits until nobody is at work here, so this thread does not try all the time.
            while self.gate.is(EXCLUSIVE) {
                crate::sync::yield_now();
            }
        }
    }

    /// Ends a timer that is armed or whose event waits, if the word still says so: counts the end, and
    /// gives back what the timer held.
    ///
    /// # Safety
    /// The calling thread has claimed the port, which is inside the gate.
    unsafe fn end_armed(
        &self,
        port: &Port,
        record: &Record,
        slot: u32,
        word: Word,
    ) -> Result<Ended, Word> {
        let (free, spent) = self.slab.freed(word.generation());
        let drop =
            self.extra_of(record).and_then(|extra| drop_of(extra.drop.load(Ordering::Relaxed)));
        // With a drop to run it is over only after that.
        let next = if drop.is_some() { word.with(Phase::Ending, Offset::NONE) } else { free };
        self.swap(port, record, word, next)?;
        self.before_end(port);
        port.own.counters.cancelled.add(1);
        if port.is_owner() {
            // SAFETY: the port's thread owns the shard.
            unsafe { self.take_back(Entry::new(slot, word.generation())) };
        }
        let Some(function) = drop else {
            // SAFETY: the swap to `Free` was won; the rest is the caller's promise.
            unsafe { self.give_up(port, record, slot, word, spent) };
            return Ok(Ended::NOTHING);
        };
        self.let_go(record, word);
        Ok(Ended(Some(Drop { function, ctx: record.ctx(), slot })))
    }

    /// The owner has cancelled: takes the timer back if it is the newest, and otherwise now and then drops
    /// reminders that are dead.
    ///
    /// # Safety
    /// The calling thread owns the shard.
    #[inline(always)]
    pub(crate) unsafe fn take_back(&self, entry: Entry) {
        // SAFETY: the caller's promise.
        unsafe {
            if !self.with_core(|core| core.take_back(entry)) {
                self.tidy_if_stirred();
            }
        }
    }

    /// Gives back what an ended timer held, and its slot.
    ///
    /// # Safety
    /// The calling thread has claimed the port and moved the word from `word` to `Free`.
    pub(crate) unsafe fn give_up(
        &self,
        port: &Port,
        record: &Record,
        slot: u32,
        word: Word,
        spent: bool,
    ) {
        self.let_go(record, word);
        if record.kind().has_extra() {
            self.slab.extras.give(record.extra_index());
        }
        // SAFETY: the caller's promise.
        unsafe { self.give_slot(port, slot, spent) };
    }

    /// Gives back the note that an ended timer's word named, and its event's place in the queue.
    fn let_go(&self, record: &Record, word: Word) {
        self.slab.release(word.offset());
        if word.phase() == Phase::Queued
            && let Some(extra) = self.extra_of(record)
        {
            let queue = extra.queue.load(Ordering::Relaxed).cast::<QueueInner>();
            // SAFETY: an event waited in it, so it is a queue, and it is not freed while this thread
            // is in the gate.
            unsafe { (*queue).left() };
        }
    }
}
