//! The owner looks at a reminder: is its timer due, and what then.
//!
//! One compare-and-swap moves the word from `Pending` to `Running` (or `Queued`); from then on a
//! cancel answers that the callback is running. After the callback another one moves it to `Free`, or
//! back to `Pending` with the next deadline. An exclusive owner stores where others must swap, but for
//! `Queued`, which takers on any thread move.

use crate::core::is_newest;
use crate::extra::Extra;
use crate::grid::{Grid, is_burst};
use crate::queue::QueueInner;
use crate::record::{Record, callback_of, drop_of};
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::{Ordering, look_again};
use crate::sys::call::{call_host, drop_host, slow_hook};
use crate::tally::SAMPLE;
use crate::ticks::Due;
use crate::turn::{Served, Turn};
use crate::types::{Callback, Expiry, NEVER};
use crate::wheel::Reminder;
use crate::word::{Offset, Phase, Word};
use std::ffi::c_void;

/// The first callbacks of a turn, which are all timed.
const TIMED: u64 = 2;
/// After a callback that took longer the clock is read again, by which lateness is told. In a model never: it must do
/// the same each time.
const LONG_NS: u64 = if cfg!(loom) { u64::MAX } else { 50_000 };

impl Turn<'_> {
    /// Looks at a reminder. An error means that nothing was done and it must be looked at again.
    ///
    /// # Safety
    /// The calling thread owns the shard; the reminder came from its core.
    #[inline(never)]
    pub(crate) unsafe fn serve(&self, reminder: Reminder) -> Result<Served, Error> {
        let slab = &self.shard.slab;
        let slot = reminder.slot();
        let record = slab.at(slot);
        loop {
            let word = record.word();
            if !is_newest(record, slot, reminder) {
                return Ok(Served::Skipped);
            }
            let waiting = match word.phase() {
                Phase::Pending => false,
                Phase::Queued => true,
                _ => return Ok(Served::Skipped),
            };
            let Some(due) = slab.decode(record, word.offset()) else {
                return Ok(Served::Skipped);
            };
            // SAFETY: the caller owns the shard.
            let (tick, due_tick) = unsafe {
                self.shard.with_core(|core| {
                    (core.wheel.elapsed(), core.due_tick(slab, record, word, due.tick))
                })
            };
            if due_tick != due.tick {
                // It was moved to a deadline that was past already; the word says so now.
                continue;
            }
            // One that was put off comes in its own place, behind what is due before it. One that was
            // armed after the turn read the clock, at or past its deadline, has a tick that was
            // reached before; it waits for the next turn.
            if due.tick > tick || due.deadline_ns > self.now_ns {
                // SAFETY: as above.
                unsafe { self.shard.with_core(|core| core.put_off(record, slot, due.tick))? };
                return Ok(Served::Skipped);
            }
            // SAFETY: the caller owns the shard; the record has been looked at just now.
            let served = unsafe {
                if !record.kind().has_extra() {
                    self.fire_once(record, slot, word, due, None)
                } else {
                    // The slot may have changed hands since the word was read; then the word says so.
                    let Some(extra) = slab.extras.get(record.extra_index()) else {
                        look_again();
                        continue;
                    };
                    let periodic = extra.period_ns.load(Ordering::Relaxed) != 0;
                    let queue = extra.queue.load(Ordering::Relaxed).cast::<QueueInner>();
                    if waiting && !periodic {
                        return Ok(Served::Skipped);
                    } else if !queue.is_null() {
                        self.deliver(record, slot, word, due, extra, queue)
                    } else if periodic {
                        self.fire_periodic(record, slot, word, due, extra)
                    } else {
                        self.fire_once(record, slot, word, due, Some(extra))
                    }
                }
            };
            if let Some(result) = served {
                return result;
            }
        }
    }

    /// Moves the word of a timer of this shard.
    #[inline]
    pub(crate) fn swap(&self, record: &Record, seen: Word, new: Word) -> Result<(), Word> {
        self.shard.swap(self.port, record, seen, new)
    }

    /// Fires a one-shot. `None`: another thread moved the word first.
    unsafe fn fire_once(
        &self,
        record: &Record,
        slot: u32,
        word: Word,
        due: Due,
        extra: Option<&Extra>,
    ) -> Option<Result<Served, Error>> {
        let shard = self.shard;
        // SAFETY: the caller owns the shard. Room for a timer that is armed again in its callback.
        if let Err(error) = unsafe { shard.with_core(|core| core.reserve_ready(1)) } {
            return Some(Err(error));
        }
        self.swap(record, word, word.with(Phase::Running, Offset::NONE)).ok()?;
        shard.slab.release(word.offset());
        let counters = &self.port.own.counters;
        shard.before_end(self.port);
        let nth = counters.fired.add(1);
        counters.ended_by_fire.add(1);
        let callback = match extra {
            Some(extra) => extra.callback.load(Ordering::Relaxed),
            None => record.callback(),
        };
        let timer = shard.handle(slot, word.generation());
        let expiry = Expiry { timer, deadline_ns: due.deadline_ns, now_ns: self.now_ns, missed: 0 };
        self.call(callback, record.ctx(), &expiry, nth);
        // SAFETY: the caller owns the shard, and `reserve_ready` made room.
        unsafe { self.settle(record, slot, None) };
        Some(Ok(Served::Delivered))
    }

    /// Fires a periodic timer. `None`: another thread moved the word first.
    unsafe fn fire_periodic(
        &self,
        record: &Record,
        slot: u32,
        word: Word,
        due: Due,
        extra: &Extra,
    ) -> Option<Result<Served, Error>> {
        let shard = self.shard;
        // SAFETY: the caller owns the shard.
        if let Err(error) = unsafe { shard.with_core(|core| core.reserve_ready(2)) } {
            return Some(Err(error));
        }
        let grid = Grid::of(extra);
        let (served_ns, missed) = grid.serve(due.deadline_ns, self.reached_ns());
        let (offset, next) = match self.next_offset(record, &grid, extra, served_ns) {
            Ok(next) => next,
            Err(error) => return Some(Err(error)),
        };
        if self.swap(record, word, word.with(Phase::Running, offset)).is_err() {
            shard.slab.unencode(offset);
            return None;
        }
        shard.slab.release(word.offset());
        if let Some(next) = next {
            shard.slab.set_low(record, offset, next);
        }
        let counters = &self.port.own.counters;
        let nth = counters.fired.add(1);
        counters.missed.add(missed);
        let expiry = Expiry {
            timer: shard.handle(slot, word.generation()),
            deadline_ns: served_ns,
            now_ns: self.now_ns,
            missed,
        };
        // SAFETY: the caller owns the shard.
        unsafe { shard.with_core(|core| core.regridded = false) };
        self.call(extra.callback.load(Ordering::Relaxed), record.ctx(), &expiry, nth);
        // SAFETY: the caller owns the shard, and `reserve_ready` made room.
        unsafe { self.settle(record, slot, Some((extra, offset))) };
        Some(Ok(Served::Delivered))
    }

    /// The instant of the tick that this turn has reached.
    pub(crate) fn reached_ns(&self) -> u64 {
        self.shard.ticks.instant(self.now_tick).min(self.now_ns)
    }

    /// The next deadline on a grid whose point `served_ns` is being served; none yet for a timer that
    /// counts from the end of its callback.
    pub(crate) fn next_offset(
        &self,
        record: &Record,
        grid: &Grid,
        extra: &Extra,
        served_ns: u64,
    ) -> Result<(Offset, Option<Due>), Error> {
        if grid.fixed_delay {
            return Ok((Offset::NONE, None));
        }
        let next_ns = served_ns.saturating_add(grid.period_ns);
        let next = self.shard.due_of(extra, next_ns, 0);
        Ok((self.shard.slab.encode(record.kind(), next, || u64::MAX)?, Some(next)))
    }

    /// Measures how late an expiry is delivered.
    #[inline]
    pub(crate) fn note_lateness(&self, deadline_ns: u64) {
        let late_ns = self.slice_ns.get().saturating_sub(deadline_ns);
        self.shard.tally.lateness.record(late_ns, 1);
    }

    /// Runs the callback, the `nth` of this thread.
    #[inline(always)]
    pub(crate) fn call(&self, callback: *mut c_void, ctx: *mut c_void, expiry: &Expiry, nth: u64) {
        let shard = self.shard;
        let Some(callback) = callback_of(callback) else { return };
        self.note_lateness(expiry.deadline_ns);
        // Relaxed: read back by this thread, from inside the callback.
        shard.running.store(expiry.timer, Ordering::Relaxed);
        let each = shard.slow_callback_ns != 0 || nth.wrapping_sub(self.fired) <= TIMED;
        if each || nth % SAMPLE == 1 {
            self.call_timed(callback, ctx, expiry, if each { 1 } else { SAMPLE });
        } else {
            // SAFETY: whoever started the timer promised that its callback can be called with its ctx.
            unsafe { call_host(callback, ctx, expiry) };
        }
        shard.running.store(0, Ordering::Relaxed);
    }

    /// Runs the callback by the clock, and tells the host if it took long.
    #[inline(never)]
    fn call_timed(&self, callback: Callback, ctx: *mut c_void, expiry: &Expiry, weight: u64) {
        let shard = self.shard;
        let limit_ns = shard.slow_callback_ns;
        let began_ns = shard.tally.callback_begins();
        // SAFETY: as in `call`.
        unsafe { call_host(callback, ctx, expiry) };
        let elapsed_ns = shard.tally.callback_ends(began_ns, weight);
        if elapsed_ns > LONG_NS {
            // Those behind it are late by that.
            self.slice_ns.set(self.slice_ns.get().max(self.clock.now()));
        }
        if limit_ns != 0 && elapsed_ns > limit_ns && !shard.forked() {
            shard.tally.slow_callbacks.add(1);
            if let Some(hook) = shard.hooks.on_slow_callback {
                let (arg, index) = (shard.hooks.arg, shard.index);
                // SAFETY: the host gave the hook for this; ctx has not been dropped.
                unsafe { slow_hook(hook, arg, index, expiry.timer, ctx, elapsed_ns) };
            }
        }
    }

    /// After the callback: ends the timer, or arms it for the deadline that its word holds.
    ///
    /// # Safety
    /// The calling thread owns the shard, has just run the callback, and has reserved room in `ready`.
    pub(crate) unsafe fn settle(
        &self,
        record: &Record,
        slot: u32,
        periodic: Option<(&Extra, Offset)>,
    ) {
        let shard = self.shard;
        loop {
            let word = record.word();
            let next = match word.phase() {
                Phase::Running if word.offset() != Offset::NONE => {
                    let due = shard.slab.decode(record, word.offset());
                    due.map(|due| (word.offset(), due))
                }
                // Counts from the end of the callback.
                Phase::Running => {
                    periodic.map(|(extra, _)| shard.after(record, extra, self.clock.now()))
                }
                _ => None,
            };
            let Some((offset, due)) = next else {
                // SAFETY: the callback is over and nothing is armed.
                if unsafe { self.end(record, slot, word) } {
                    return;
                }
                continue;
            };
            if self.swap(record, word, word.with(Phase::Pending, offset)).is_err() {
                if word.offset() == Offset::NONE {
                    shard.slab.unencode(offset);
                }
                continue;
            }
            if word.offset() == Offset::NONE {
                shard.slab.set_low(record, offset, due);
            }
            // The next point of its grid, not one that a reset has put there.
            let again = periodic.is_some_and(|(extra, grid)| {
                word.offset() == grid && due.tick <= self.now_tick && is_burst(extra)
            });
            // SAFETY: the caller owns the shard, and `reserve_ready` made room.
            unsafe {
                let again = again && !shard.with_core(|core| core.regridded);
                self.file_next(record, slot, due.tick, again);
            }
            return;
        }
    }

    /// Files the reminder of a timer's next deadline; one that comes `again` in this very turn.
    ///
    /// # Safety
    /// The calling thread owns the shard, and has reserved room in `ready`.
    pub(crate) unsafe fn file_next(&self, record: &Record, slot: u32, tick: u64, again: bool) {
        // SAFETY: the caller owns the shard.
        unsafe {
            self.shard.with_core(|core| {
                // What the callbacks of this turn have started was armed before. Without memory that waits.
                let _ = self.shard.settle_fresh(core, self.clock);
                if again {
                    core.file_again(record, slot, tick);
                } else {
                    core.file_surely(record, slot, tick);
                }
            });
        }
    }

    /// Ends a timer whose callback is over: drop, then the slot. False: the word has changed.
    unsafe fn end(&self, record: &Record, slot: u32, word: Word) -> bool {
        let shard = self.shard;
        let has_extra = record.kind().has_extra();
        let mut word = word;
        if has_extra {
            // The callback is over; while drop runs nobody can arm it again.
            let phase = match word.phase() {
                Phase::Awaited => Phase::EndingAwaited,
                _ => Phase::Ending,
            };
            let ending = word.with(phase, Offset::NONE);
            if self.swap(record, word, ending).is_err() {
                return false;
            }
        }
        if has_extra {
            let index = record.extra_index();
            let drop = drop_of(shard.slab.extras.at(index).drop.load(Ordering::Relaxed));
            if let Some(drop) = drop.filter(|_| !shard.forked()) {
                // Relaxed, here and below: who waits and follows it has a fence of its own.
                shard.running.store(shard.handle(slot, word.generation()), Ordering::Relaxed);
                // SAFETY: the timer has ended with this callback, and only its end runs drop.
                unsafe { drop_host(drop, record.ctx()) };
                shard.running.store(0, Ordering::Relaxed);
            }
            // A waiter may have come while drop ran.
            word = record.word();
        }
        let (free, spent) = shard.slab.freed(word.generation());
        let extra = has_extra.then(|| record.extra_index());
        while let Err(now) = self.swap(record, word, free) {
            if !has_extra && now.phase() == Phase::Running {
                return false;
            }
            word = now;
        }
        if let Some(index) = extra {
            shard.slab.extras.give(index);
        }
        // SAFETY: the swap to `Free` made the slot this thread's.
        unsafe { shard.give_slot(self.port, slot, spent) };
        if matches!(word.phase(), Phase::Awaited | Phase::EndingAwaited) {
            shard.epoch.bump_and_wake_all();
        }
        true
    }
}

impl Shard {
    /// Moves a word: by compare-and-swap, or by a store where nobody else may move it.
    #[inline(always)]
    pub(crate) fn swap(
        &self,
        port: &crate::port::Port,
        record: &Record,
        seen: Word,
        new: Word,
    ) -> Result<(), Word> {
        if port.is_exclusive() && seen.phase() != Phase::Queued {
            record.publish(new);
            return Ok(());
        }
        record.swap(seen, new)
    }

    /// Keeps a slot whose timer this thread has ended, unless it is used up: then it is retired, by never
    /// being taken again.
    ///
    /// # Safety
    /// The calling thread has claimed the port and moved the slot's word to `Free`.
    #[inline]
    pub(crate) unsafe fn give_slot(&self, port: &crate::port::Port, slot: u32, spent: bool) {
        if spent {
            port.own.retired.add(1);
        } else {
            // SAFETY: the caller has claimed the port and owns the slot.
            unsafe { port.give_slot(&self.slab, slot) };
        }
    }

    /// When a timer with these extras is due that is armed at `now_ns`.
    pub(crate) fn due_of(&self, extra: &Extra, deadline_ns: u64, now_ns: u64) -> Due {
        let due = self.ticks.due_from(deadline_ns, now_ns);
        self.ticks.relax(due, extra.slack_ns.load(Ordering::Relaxed))
    }

    /// The next deadline of a timer that counts its period from now. In the one case where that needs
    /// memory (a period too long for a word) and there is none, the timer stays, for a deadline that
    /// does not come: it can be reset and cancelled.
    pub(crate) fn after(&self, record: &Record, extra: &Extra, now_ns: u64) -> (Offset, Due) {
        let period_ns = extra.period_ns.load(Ordering::Relaxed);
        let due = self.due_of(extra, now_ns.saturating_add(period_ns), now_ns);
        match self.slab.encode(record.kind(), due, || u64::MAX) {
            Ok(offset) => (offset, due),
            Err(_) => (Offset::NEVER, Due { tick: crate::ticks::NEVER_TICK, deadline_ns: NEVER }),
        }
    }
}
