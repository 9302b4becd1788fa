//! Moving a deadline. Any thread.
//!
//! To a later instant a reset is one compare-and-swap on the timer's word and nothing else: the old
//! reminder comes up early, sees the word, and is filed again. To an earlier one the owner gets a new
//! reminder through the inbox, and is woken if it would be late; the old one is then out of date.
//! The rule that both follow: whoever makes the tick of a `Pending` word smaller, or makes a word
//! `Pending` that had no reminder, sends one.

use crate::arm::count_refusal;
use crate::clock::Clock;
use crate::gate::Work;
use crate::handle::Handle;
use crate::port::Port;
use crate::queue::QueueInner;
use crate::record::Record;
use crate::shard::Shard;
use crate::status::{Error, Outcome};
use crate::sync::Ordering;
use crate::ticks::Due;
use crate::types::NEVER;
use crate::word::{Offset, Phase, Word};

/// The instant that a timer is to be moved to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum To {
    /// This long from now.
    Delay(u64),
    /// This deadline.
    Deadline(u64),
}

impl To {
    /// The deadline `ns` if `AT`, otherwise the instant `ns` from now.
    #[inline(always)]
    pub(crate) fn of<const AT: bool>(ns: u64) -> To {
        if AT { To::Deadline(ns) } else { To::Delay(ns) }
    }

    /// The deadline, and the clock if it had to be read.
    #[inline]
    pub(crate) fn resolve(self, clock: &Clock) -> (u64, u64) {
        match self {
            To::Delay(delay_ns) => {
                let now_ns = clock.now();
                (now_ns.saturating_add(delay_ns), now_ns)
            }
            To::Deadline(deadline_ns) => (deadline_ns, clock.now_for(deadline_ns)),
        }
    }
}

impl Shard {
    /// Moves the deadline of a timer.
    ///
    /// # Safety
    /// The calling thread has claimed `port`.
    pub(crate) unsafe fn reset(
        &self,
        port: &Port,
        clock: &Clock,
        handle: Handle,
        to: To,
    ) -> Result<Outcome, Error> {
        let inside = self.gate.enter(&port.own.busy, Work::Other, port.is_owner())?;
        let Some(record) = self.slab.get(handle.slot) else { return Ok(Outcome::NotFound) };
        self.renew_notes(port);
        let mut word = record.word();
        if word.generation() != handle.generation || over(word) {
            return Ok(Outcome::NotFound);
        }
        let (deadline_ns, now_ns) = to.resolve(clock);
        loop {
            if word.generation() != handle.generation {
                return Ok(Outcome::NotFound);
            }
            let due = match self.extra_of(record) {
                Some(extra) => self.due_of(extra, deadline_ns, now_ns),
                None => self.ticks.due_from(deadline_ns, now_ns),
            };
            let moved = match word.phase() {
                Phase::Free | Phase::Ending | Phase::EndingAwaited => {
                    return Ok(Outcome::NotFound);
                }
                // SAFETY: the caller's promise; inside the gate.
                Phase::Pending | Phase::Queued => unsafe {
                    self.move_armed(port, clock, record, handle, word, due)?
                },
                _ => {
                    let own =
                        port.is_owner() && self.running.load(Ordering::Relaxed) == handle.pack();
                    if word.phase() != Phase::Running {
                        return Ok(if own { Outcome::NotFound } else { Outcome::Running });
                    }
                    let periodic = self.is_periodic(record);
                    if !own && !periodic {
                        return Ok(Outcome::Running);
                    }
                    if own && !periodic && word.offset() == Offset::NONE {
                        drop(inside);
                        return self.arm_again(port, clock, record, handle, due);
                    }
                    if own {
                        // SAFETY: the port's thread owns the shard.
                        unsafe { self.with_core(|core| core.regridded = true) };
                    }
                    self.put(port, clock, record, word, Phase::Running, due)?
                }
            };
            match moved {
                Ok(()) => return Ok(Outcome::Done),
                Err(now) => word = now,
            }
        }
    }

    /// Puts a deadline in the word. The inner error is the word as another thread has made it.
    fn put(
        &self,
        port: &Port,
        clock: &Clock,
        record: &Record,
        word: Word,
        phase: Phase,
        due: Due,
    ) -> Result<Result<(), Word>, Error> {
        let offset = self.encode(port, clock, record.kind(), due)?;
        let moved = self.swap(port, record, word, word.with(phase, offset));
        if moved.is_ok() {
            self.slab.release(word.offset());
            self.slab.set_low(record, offset, due);
        } else {
            self.slab.unencode(offset);
        }
        Ok(moved)
    }

    /// Moves a timer that is armed, or whose event waits in a queue (which withdraws the event).
    ///
    /// # Safety
    /// The calling thread has claimed the port, which is inside the gate.
    unsafe fn move_armed(
        &self,
        port: &Port,
        clock: &Clock,
        record: &Record,
        handle: Handle,
        word: Word,
        due: Due,
    ) -> Result<Result<(), Word>, Error> {
        let queued = word.phase() == Phase::Queued;
        let before = self.slab.decode(record, word.offset());
        // What a note says is the owner's to rely on; any other thread sends a reminder in any case.
        let known = port.is_owner() || word.offset().far_note().is_none();
        let mut later = known && !queued && before.is_some_and(|before| due.tick >= before.tick);
        if later && port.is_owner() {
            // SAFETY: the port's thread owns the shard. In a turn one that was due is so at the next turn only, if it is
            // reset to now.
            later = unsafe { self.with_core(|core| due.tick > core.horizon) };
        }
        if !later && !port.is_owner() {
            // SAFETY: the caller is the port's thread.
            unsafe { self.reserve(port, 1)? };
        }
        if !later && port.is_owner() {
            // SAFETY: the port's thread owns the shard.
            unsafe { self.with_core(|core| core.reserve_ready(2))? };
        }
        // Before the swap, which proves that it is this timer's: after it the timer is anybody's.
        let queue = self.extra_of(record).map(|extra| extra.queue.load(Ordering::Relaxed));
        let moved = self.put(port, clock, record, word, Phase::Pending, due)?;
        if moved.is_err() || later {
            return Ok(moved);
        }
        if queued && let Some(queue) = queue {
            // SAFETY: the timer named it, and a queue is not freed while this thread is in the gate.
            unsafe { (*queue.cast::<QueueInner>()).left() };
        }
        let Handle { slot, generation, .. } = handle;
        // SAFETY: the caller has claimed the port and room was reserved; an owner owns the shard.
        unsafe {
            if port.is_owner() {
                self.with_core(|core| {
                    // Which makes room there. Without memory it waits.
                    let _ = self.settle_fresh(core, clock);
                    core.file_surely(record, slot, due.tick);
                });
                self.alarm.notice(due.tick, clock);
                self.tidy_if_stirred();
            } else {
                self.hand_over(port, clock, slot, generation, due.tick);
            }
        }
        Ok(moved)
    }

    /// Arms a one-shot again from inside its own callback: it lives again, so it needs room. Its
    /// reminder is filed when the callback is over.
    fn arm_again(
        &self,
        port: &Port,
        clock: &Clock,
        record: &Record,
        handle: Handle,
        due: Due,
    ) -> Result<Outcome, Error> {
        loop {
            let inside = self.gate.enter(&port.own.busy, Work::Start, port.is_owner())?;
            if !port.spend() {
                drop(inside);
                self.find_credits(port).inspect_err(|&error| count_refusal(port, error))?;
                continue;
            }
            let word = record.word();
            if word.generation() != handle.generation || word.phase() != Phase::Running {
                port.free_credits(1);
                return Ok(Outcome::NotFound);
            }
            match self.put(port, clock, record, word, Phase::Running, due) {
                Ok(Ok(())) => {
                    port.revive();
                    return Ok(Outcome::Done);
                }
                Ok(Err(_)) => port.free_credits(1),
                Err(error) => {
                    port.free_credits(1);
                    return Err(error);
                }
            }
        }
    }

    /// How long a timer still has. For one whose callback is running and that is not armed again:
    /// `Running` and 0.
    pub(crate) fn remaining(&self, clock: &Clock, handle: Handle) -> (Outcome, u64) {
        let Some(record) = self.slab.get(handle.slot) else { return (Outcome::NotFound, 0) };
        loop {
            let word = record.word();
            if word.generation() != handle.generation || over(word) {
                return (Outcome::NotFound, 0);
            }
            let due = self.slab.decode(record, word.offset());
            // Acquire fence: partner of the Release of `swap` and `publish`; if what `decode` read
            // is of a later word, that word is seen now.
            crate::sync::fence(Ordering::Acquire);
            if record.word() != word {
                continue;
            }
            return match (word.phase(), due) {
                (Phase::Pending | Phase::Running, Some(due)) if due.deadline_ns == NEVER => {
                    (Outcome::Done, NEVER)
                }
                (Phase::Pending | Phase::Running, Some(due)) => {
                    (Outcome::Done, due.deadline_ns.saturating_sub(clock.now()))
                }
                (Phase::Queued, _) => (Outcome::Done, 0),
                _ => (Outcome::Running, 0),
            };
        }
    }
}

/// Has the timer of this word ended?
fn over(word: Word) -> bool {
    word.phase() == Phase::Free || word.phase().is_ending()
}
