//! Starting timers. Any thread.
//!
//! The starting thread does all the work: it takes a credit and a slot of its port, fills the record,
//! publishes the word, and hands the owner a reminder through its inbox; on the owner's own thread
//! the reminder goes straight into the wheel. From the moment the word says `Pending` the timer can be
//! cancelled, whether or not the owner has taken it in.
//!
//! Each step before the word is published can fail and is undone; none after it can.

use crate::clock::Clock;
use crate::core::Entry;
use crate::extra::Extra;
use crate::gate::Work;
use crate::port::Port;
use crate::record::{Kind, pointer_of, pointer_of_drop};
use crate::reset::To;
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::Ordering;
use crate::tally::Woken;
use crate::ticks::Due;
use crate::types::{Spec, TIMER_ABSOLUTE, TIMER_BURST, TIMER_FIXED_DELAY};
use crate::word::{Offset, Phase, Word};
use std::ffi::c_void;
use std::ptr;

/// A timer that has all it needs and has not been published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prepared {
    slot: u32,
    word: Word,
    tick: u64,
}

/// What a spec asks for, apart from where.
pub(crate) fn check(spec: &Spec) -> Result<(), Error> {
    const PERIODIC: u32 = TIMER_FIXED_DELAY | TIMER_BURST;
    let known = spec.flags & !(TIMER_ABSOLUTE | PERIODIC) == 0;
    let modes = match spec.flags & PERIODIC {
        0 => true,
        PERIODIC => false,
        _ => spec.period_ns != 0,
    };
    let delivered = spec.callback.is_some() || !spec.queue.is_null();
    if known && modes && delivered { Ok(()) } else { Err(Error::Invalid) }
}

#[inline(always)]
fn needs_extra(spec: &Spec) -> bool {
    spec.period_ns != 0 || spec.slack_ns != 0 || spec.drop.is_some() || !spec.queue.is_null()
}

impl Spec {
    #[inline(always)]
    fn to(&self) -> To {
        let absolute = self.flags & TIMER_ABSOLUTE != 0;
        if absolute { To::Deadline(self.delay_ns) } else { To::Delay(self.delay_ns) }
    }

    /// When it is due and what it calls, if that is all.
    #[inline(always)]
    pub(crate) fn plain(&self) -> Option<(To, *mut c_void)> {
        let plain = self.flags & !TIMER_ABSOLUTE == 0 && !needs_extra(self);
        (plain && self.callback.is_some()).then(|| (self.to(), pointer_of(self.callback)))
    }
}

impl Shard {
    /// Starts one timer. `out`, if not null, is written before the callback can run.
    ///
    /// # Safety
    /// The calling thread has claimed `port`; `out` is null or can be written; the spec's functions and
    /// ctx may be used as `Engine::arm` says.
    pub(crate) unsafe fn arm(
        &self,
        port: &Port,
        clock: &Clock,
        spec: &Spec,
        out: *mut u64,
    ) -> Result<(), Error> {
        let (_, now_ns) = spec.to().resolve(clock);
        self.with_credit(port, || {
            // SAFETY: the caller's promises; inside the gate.
            unsafe {
                let prepared = self.prepare(port, clock, now_ns, spec, 1)?;
                self.publish(port, clock, prepared, out);
            }
            Ok(())
        })
    }

    /// Takes a credit and all else that one timer of a batch needs. `now_ns` and `ahead` as in `prepare`.
    ///
    /// # Safety
    /// As `arm`.
    pub(crate) unsafe fn prepare_one(
        &self,
        port: &Port,
        clock: &Clock,
        now_ns: u64,
        spec: &Spec,
        ahead: usize,
    ) -> Result<Prepared, Error> {
        self.with_credit(port, || {
            // SAFETY: the caller's promises; inside the gate.
            unsafe { self.prepare(port, clock, now_ns, spec, ahead) }
        })
    }

    /// Runs `f` inside the gate with a credit spent, which is given back if `f` fails.
    #[inline]
    fn with_credit<R>(
        &self,
        port: &Port,
        f: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        loop {
            {
                let _inside = self.gate.enter(&port.own.busy, Work::Start, port.is_owner())?;
                if port.spend() {
                    return f().inspect_err(|&error| {
                        port.free_credits(1);
                        count_refusal(port, error);
                    });
                }
            }
            self.find_credits(port).inspect_err(|&error| count_refusal(port, error))?;
        }
    }

    /// The instant at which a timer of this spec is due that is armed at `now_ns`, and a tick that has been reached,
    /// from which its offsets can count.
    #[inline]
    fn due_of_spec(&self, now_ns: u64, spec: &Spec) -> (Due, u64) {
        let deadline_ns = match spec.flags & TIMER_ABSOLUTE {
            0 => now_ns.saturating_add(spec.delay_ns),
            _ => spec.delay_ns,
        };
        let due = self.ticks.relax(self.ticks.due_from(deadline_ns, now_ns), spec.slack_ns);
        (due, self.ticks.reached(now_ns).min(due.tick))
    }

    /// Takes all that a timer needs but its credit, which the caller has spent. `now_ns` is the clock in this call, or
    /// before it if the deadline is given and lies ahead; `ahead` is how many entries of the inbox the caller
    /// needs in all, this one included.
    ///
    /// # Safety
    /// As `arm`; the port is inside the gate.
    pub(crate) unsafe fn prepare(
        &self,
        port: &Port,
        clock: &Clock,
        now_ns: u64,
        spec: &Spec,
        ahead: usize,
    ) -> Result<Prepared, Error> {
        let (due, origin) = self.due_of_spec(now_ns, spec);
        self.renew_notes(port);
        if !port.is_owner() {
            // SAFETY: the caller is the port's thread, which is the producer.
            unsafe { self.reserve(port, ahead)? };
        }
        // SAFETY: the caller has claimed the port.
        let slot = unsafe { port.take_slot(&self.slab)? };
        let record = self.slab.at(slot);
        let kind = Kind::new(origin, needs_extra(spec), spec.period_ns != 0 || spec.slack_ns != 0);
        let word = self.encode(port, clock, kind, due).and_then(|offset| {
            let callback = if kind.has_extra() {
                let index = self.slab.extras.take().inspect_err(|_| self.slab.unencode(offset))?;
                fill_extra(self.slab.extras.at(index), spec);
                ptr::without_provenance_mut(index as usize)
            } else {
                pointer_of(spec.callback)
            };
            record.fill(kind, callback, spec.ctx);
            self.slab.set_low(record, offset, due);
            Ok(Word::new(Phase::Pending, record.word().generation(), offset))
        });
        let prepared = word.and_then(|word| {
            let prepared = Prepared { slot, word, tick: due.tick };
            if port.is_owner() {
                // The reminder first: should the timer not be published, it is a dead one.
                // SAFETY: the port's thread owns the shard.
                let filed = unsafe {
                    self.with_core(|core| {
                        self.settle_fresh(core, clock)?;
                        core.file(record, slot, due.tick)
                    })
                };
                if let Err(error) = filed {
                    self.unfill(prepared);
                    return Err(error);
                }
            }
            Ok(prepared)
        });
        // SAFETY: the caller has claimed the port; the slot is still its own.
        prepared.inspect_err(|_| unsafe { port.give_slot(&self.slab, slot) })
    }

    /// The beginning of a call that may need a note: here an owner, who has read no word yet, can use those again that
    /// were given back.
    #[inline]
    pub(crate) fn renew_notes(&self, port: &Port) {
        if port.is_owner() {
            self.slab.extras.reuse_notes();
        }
    }

    /// The offset that says `due` in a record of this kind; in a note when it does not fit. If there is none to be
    /// had, the owner is asked to take a turn: then those can be used again that were given back.
    pub(crate) fn encode(
        &self,
        port: &Port,
        clock: &Clock,
        kind: Kind,
        due: Due,
    ) -> Result<Offset, Error> {
        let owner = port.is_owner();
        let most = || if owner { u64::MAX } else { 2 * self.pending() };
        self.slab.encode(kind, due, most).inspect_err(|_| {
            if !owner {
                self.alarm.ring(Woken::Pressure, clock);
            }
        })
    }

    fn unfill(&self, prepared: Prepared) {
        let record = self.slab.at(prepared.slot);
        self.slab.unencode(prepared.word.offset());
        if record.kind().has_extra() {
            self.slab.extras.give(record.extra_index());
        }
    }

    /// Undoes `prepare`.
    ///
    /// # Safety
    /// The calling thread has claimed the port; `prepared` is its own and has not been published.
    pub(crate) unsafe fn discard(&self, port: &Port, prepared: Prepared) {
        self.unfill(prepared);
        if port.is_owner() {
            let entry = Entry::new(prepared.slot, prepared.word.generation());
            // SAFETY: the port's thread owns the shard.
            unsafe { self.with_core(|core| core.take_back(entry)) };
        }
        // Its handle, which may have been seen, must not be the next timer's.
        let (free, spent) = self.slab.freed(prepared.word.generation());
        self.slab.at(prepared.slot).publish(free);
        port.free_credits(1);
        // SAFETY: the caller's promise.
        unsafe { self.give_slot(port, prepared.slot, spent) };
    }

    /// Makes a prepared timer live.
    ///
    /// # Safety
    /// As `arm`; the port is inside the gate; `prepared` is this thread's.
    #[inline]
    pub(crate) unsafe fn publish(
        &self,
        port: &Port,
        clock: &Clock,
        prepared: Prepared,
        out: *mut u64,
    ) {
        let Prepared { slot, word, tick } = prepared;
        if !out.is_null() {
            // SAFETY: the caller says that it can be written.
            unsafe { out.write(self.handle(slot, word.generation())) };
        }
        port.own.counters.started.add(1);
        self.slab.at(slot).publish(word);
        if port.is_owner() {
            self.alarm.notice(tick, clock);
            // SAFETY: the port's thread owns the shard.
            unsafe { self.tidy_if_stirred() };
        } else {
            // SAFETY: the caller has claimed the port and reserved room.
            unsafe { self.hand_over(port, clock, slot, word.generation(), tick) };
        }
    }
}

#[cold]
pub(crate) fn count_refusal(port: &Port, error: Error) {
    if error == Error::Full {
        port.own.counters.rejected.add(1);
    }
}

fn fill_extra(extra: &Extra, spec: &Spec) {
    // Relaxed: the word's Release publishes it.
    extra.callback.store(pointer_of(spec.callback), Ordering::Relaxed);
    extra.drop.store(pointer_of_drop(spec.drop), Ordering::Relaxed);
    extra.queue.store(spec.queue.cast_mut().cast(), Ordering::Relaxed);
    extra.period_ns.store(spec.period_ns, Ordering::Relaxed);
    extra.slack_ns.store(spec.slack_ns, Ordering::Relaxed);
    extra.flags.store(spec.flags, Ordering::Relaxed);
}
