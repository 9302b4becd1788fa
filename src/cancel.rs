//! Cancelling a timer. Any thread, lock-free, never waits.
//!
//! Where a cancel goes: the handle names shard, slot and generation; one compare-and-swap moves the
//! slot's word from `Pending` (or `Queued`) to `Free` with the next generation, and the timer is over.
//! Its slot goes into this thread's magazine, from there through the depot to whoever starts timers
//! next; its room is counted back at once. The reminder that is still in the owner's wheel, or on its way
//! there, finds another generation when it comes up, or when the owner compacts. The owner
//! is neither asked nor woken.

use crate::extra::Extra;
use crate::gate::{Inside, Work};
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
use std::ffi::c_void;

/// What is left to do when a cancel has won and the gate is left: the host's drop.
#[must_use]
pub(crate) struct Ended {
    drop: Option<DropFn>,
    ctx: *mut c_void,
}

impl Ended {
    pub(crate) const NOTHING: Ended = Ended { drop: None, ctx: std::ptr::null_mut() };

    /// Runs the timer's drop. Outside the gate.
    pub(crate) fn finish(self) {
        if let Some(drop) = self.drop {
            // SAFETY: the timer has ended, and only the thread that ended it has this.
            unsafe { drop_host(drop, self.ctx) };
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
        ended.finish();
        Ok(outcome)
    }

    /// As `cancel`, inside the gate. The caller runs `Ended::finish` when it has left it.
    ///
    /// # Safety
    /// The calling thread has claimed `port`.
    pub(crate) unsafe fn cancel_inside(
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
                Phase::Free => return (Outcome::NotFound, Ended::NOTHING),
                Phase::Pending | Phase::Queued => {
                    let (free, spent) = self.slab.freed(word);
                    self.swap(port, record, word, free).map(|()| {
                        // SAFETY: the swap was won, and the caller has claimed the port.
                        let ended = unsafe { self.bury(port, record, handle.slot, word, spent) };
                        (Outcome::Done, ended)
                    })
                }
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
                self.count_end(port);
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

    /// Cancels the timer in a slot if it would be delivered to this queue.
    ///
    /// # Safety
    /// The calling thread has claimed `port`; starts with this queue are kept out.
    pub(crate) unsafe fn cancel_if_of(&self, port: &Port, slot: u32, queue: &QueueInner) {
        let record = self.slab.at(slot);
        let word = record.word();
        let named = self.extra_of(record).map(|extra| extra.queue.load(Ordering::Relaxed));
        if named != Some(std::ptr::from_ref(queue).cast_mut().cast()) {
            return;
        }
        let handle = Handle { shard: self.index, slot, generation: word.generation() };
        // SAFETY: the caller's promise.
        let _ = unsafe { self.cancel(port, handle, false) };
    }

    /// After the swap to `Free` is won: counts the end, gives back what the timer held.
    ///
    /// # Safety
    /// The calling thread has claimed the port and moved the word from `word` to `Free`.
    unsafe fn bury(
        &self,
        port: &Port,
        record: &Record,
        slot: u32,
        word: Word,
        spent: bool,
    ) -> Ended {
        self.count_end(port);
        port.own.counters.cancelled.add(1);
        if port.is_owner()
            && word.phase() == Phase::Pending
            && let Some(due) = self.slab.decode(record, word.offset())
        {
            // SAFETY: the port's thread owns the shard.
            unsafe { self.unfile(slot, word.generation(), due.tick) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.give_up(port, record, slot, word, spent) }
    }

    /// The owner has cancelled: takes the reminder back if it is the newest, and otherwise now and then
    /// drops those that are dead.
    ///
    /// # Safety
    /// The calling thread owns the shard.
    unsafe fn unfile(&self, slot: u32, generation: u32, tick: u64) {
        // SAFETY: the caller's promise.
        let stirred = unsafe {
            self.with_core(|core| !core.unfile(slot, generation, tick) && core.is_stirred())
        };
        if stirred {
            // SAFETY: the caller's promise.
            unsafe { self.tidy() };
        }
    }

    /// Gives back what an ended timer held: note, extra, place in a queue, slot.
    ///
    /// # Safety
    /// As `bury`.
    pub(crate) unsafe fn give_up(
        &self,
        port: &Port,
        record: &Record,
        slot: u32,
        word: Word,
        spent: bool,
    ) -> Ended {
        let mut ended = Ended::NOTHING;
        self.slab.release(word.offset());
        if record.kind().has_extra() {
            let index = record.extra_index();
            let extra = self.slab.extras.at(index);
            ended = Ended { drop: drop_of(extra.drop.load(Ordering::Relaxed)), ctx: record.ctx() };
            if word.phase() == Phase::Queued {
                let queue = extra.queue.load(Ordering::Relaxed).cast::<QueueInner>();
                // SAFETY: a queue outlives the timers that name it.
                unsafe { (*queue).left() };
            }
            self.slab.extras.give(index);
        }
        // SAFETY: the caller's promise.
        unsafe { self.give_slot(port, slot, spent) };
        ended
    }
}
