//! The short way of a plain timer: no extra, a near deadline, nothing out of the ordinary.
//!
//! Ground rules: each function does the whole of what `arm`, `cancel`, `reset` or `fire` would do, in the same
//! order, or does nothing and answers false; then the caller goes the long way, which finds out
//! why. So nothing here fails, waits or allocates. All that can refuse is asked before the
//! first write that counts. Of what the calling thread owns (its port, and the wheel if the shard is
//! its own) it writes by plain stores; the word by one compare-and-swap, or a store if the shard is
//! exclusively its own.
//!
//! There are two ways for each: `SOLE` for a thread that owns the shard exclusively (nobody else writes
//! anything here, and a deadline well ahead of the owner's last turn is not held against the
//! clock), and one for any thread.

use crate::clock::Clock;
use crate::core::{Entry, is_newest};
use crate::gate::{EXCLUSIVE, Work};
use crate::handle::Handle;
use crate::port::Port;
use crate::record::{Kind, Record};
use crate::reset::To;
use crate::shard::Shard;
use crate::turn::Turn;
use crate::types::Expiry;
use crate::wheel::Reminder;
use crate::word::{Offset, Phase, Word};
use std::ffi::c_void;

/// Is this generation's timer armed, for a near deadline and without an extra?
#[inline(always)]
fn is_plain(kind: Kind, word: Word, generation: u32) -> bool {
    word.is_pending_near(generation) && !kind.has_extra()
}

impl Shard {
    /// Starts a plain timer. `out`, if not null, is written before the callback can run.
    ///
    /// # Safety
    /// As `Shard::arm`; with `SOLE` the calling thread owns the shard exclusively.
    #[inline(always)]
    pub(crate) unsafe fn arm_plain<const SOLE: bool>(
        &self,
        port: &Port,
        clock: &Clock,
        to: To,
        callback: *mut c_void,
        ctx: *mut c_void,
        out: *mut u64,
    ) -> bool {
        let own = &*port.own;
        let owner = SOLE || port.is_owner();
        let pass = if SOLE { EXCLUSIVE } else { port.pass() };
        let Some(_inside) = self.gate.pass(&own.busy, Work::Start, pass) else { return false };
        // SAFETY: the caller has claimed the port.
        let slot = unsafe { port.next_slot() };
        let credits = port.credits();
        if slot == 0 || credits == 0 {
            return false;
        }
        // SAFETY: a port's slots have been handed out.
        let record = unsafe { self.slab.handed_out(slot) };
        let kind = self.plain_kind();
        // The slot is this thread's, whatever comes of it.
        record.fill(kind, callback, ctx);
        let Some((deadline_ns, tick)) = self.ahead::<SOLE>(clock, to) else { return false };
        let Some(offset) = kind.plain_offset(tick) else { return false };
        record.set_low(deadline_ns);
        let blank = record.word();
        let entry = Entry::new(slot, blank.free_generation());
        let room = if owner {
            // First: until the word is published it is a dead one.
            // SAFETY: the port's thread owns the shard.
            unsafe { self.with_core(|core| core.note_fresh(entry)) }
        } else {
            // SAFETY: the caller is the producer.
            unsafe { port.inbox.has_room() }
        };
        if !room {
            return false;
        }
        // SAFETY: the caller has claimed the port, and there is one.
        unsafe { port.take_next_slot() };
        own.credits.set(credits - 1);
        if !out.is_null() {
            // SAFETY: the caller says that it can be written.
            unsafe { out.write(self.handle_of(entry)) };
        }
        own.counters.started.add(1);
        record.publish(blank.begun(offset));
        // SAFETY: the caller has claimed the port, and there was room.
        unsafe { self.tell_owner::<SOLE>(port, clock, entry, tick, deadline_ns) };
        true
    }

    /// The deadline and its tick, if it lies ahead and a plain timer can have it.
    #[inline(always)]
    fn ahead<const SOLE: bool>(&self, clock: &Clock, to: To) -> Option<(u64, u64)> {
        let (deadline_ns, now_ns) = match to {
            To::Deadline(deadline_ns) if SOLE && !clock.is_manual() => {
                // SAFETY: `SOLE` says that the caller owns the shard.
                (deadline_ns, unsafe { self.with_core(|core| core.ahead_ns) })
            }
            To::Deadline(deadline_ns) if SOLE => (deadline_ns, clock.manual_now()),
            _ => to.resolve(clock),
        };
        Some((deadline_ns, self.tick_ahead(deadline_ns, now_ns)?))
    }

    /// A timer has been armed: the owner may have to look earlier, and at once if it is a sole one that has
    /// guessed wrong.
    ///
    /// # Safety
    /// The calling thread has claimed the port; an owner has noted the timer, another has room in its inbox.
    #[inline(always)]
    unsafe fn tell_owner<const SOLE: bool>(
        &self,
        port: &Port,
        clock: &Clock,
        entry: Entry,
        tick: u64,
        deadline_ns: u64,
    ) {
        if SOLE {
            self.alarm.notice_guess(tick, deadline_ns, clock);
        } else if port.is_owner() {
            self.alarm.notice(tick, clock);
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.hand_over(port, clock, entry.slot(), entry.generation(), tick) };
        }
    }

    /// Cancels a plain timer that is armed.
    ///
    /// # Safety
    /// The calling thread has claimed `port`; with `SOLE` it owns the shard exclusively.
    #[inline(always)]
    pub(crate) unsafe fn cancel_plain<const SOLE: bool>(
        &self,
        port: &Port,
        handle: Handle,
    ) -> bool {
        let own = &*port.own;
        let pass = if SOLE { EXCLUSIVE } else { port.pass() };
        let Some(_inside) = self.gate.pass(&own.busy, Work::Other, pass) else { return false };
        let Some(record) = self.slab.get(handle.slot) else { return false };
        let word = record.word();
        // SAFETY: the caller has claimed the port.
        let room = unsafe { port.has_room_for_slot() };
        if !is_plain(record.kind(), word, handle.generation) || !room || port.at_peak() {
            return false;
        }
        let (free, spent) = self.slab.freed(handle.generation);
        if spent {
            return false;
        }
        if !move_plain(SOLE, record, word, free) {
            return false;
        }
        own.counters.cancelled.add(1);
        if SOLE || port.is_owner() {
            // SAFETY: the port's thread owns the shard.
            unsafe { self.take_back(Entry::new(handle.slot, handle.generation)) };
        }
        // SAFETY: the caller has claimed the port, owns the slot by the swap, and there is room.
        unsafe { port.keep_slot(handle.slot) };
        true
    }

    /// Moves a plain timer that is armed. To a later tick that is all; to an earlier one the owner gets another
    /// reminder, and so it does for the same tick if a sole owner has guessed: what it guessed is put right when
    /// the reminder is filed, or when the old one comes up before.
    ///
    /// # Safety
    /// The calling thread has claimed `port`; with `SOLE` it owns the shard exclusively.
    #[inline(always)]
    pub(crate) unsafe fn reset_plain<const SOLE: bool>(
        &self,
        port: &Port,
        clock: &Clock,
        handle: Handle,
        to: To,
    ) -> bool {
        let owner = SOLE || port.is_owner();
        let pass = if SOLE { EXCLUSIVE } else { port.pass() };
        let Some(_inside) = self.gate.pass(&port.own.busy, Work::Other, pass) else { return false };
        let Some(record) = self.slab.get(handle.slot) else { return false };
        let Handle { slot, generation, .. } = handle;
        let word = record.word();
        let kind = record.kind();
        if !is_plain(kind, word, generation) {
            return false;
        }
        let Some((deadline_ns, tick)) = self.ahead::<SOLE>(clock, to) else { return false };
        let Some(offset) = kind.offset(tick) else { return false };
        let later = offset.ticks() >= word.offset().ticks() + u64::from(SOLE);
        let entry = Entry::new(slot, generation);
        if !later {
            // SAFETY: the port's thread owns the shard, or it is the producer.
            let room = unsafe {
                if owner {
                    self.with_core(|core| core.note_again(entry))
                } else {
                    port.inbox.has_room()
                }
            };
            if !room {
                return false;
            }
        }
        let moved = Word::new(Phase::Pending, generation, offset);
        if !move_plain(SOLE, record, word, moved) {
            return false;
        }
        record.set_low(deadline_ns);
        if !later {
            // SAFETY: the caller has claimed the port, and there was room.
            unsafe { self.tell_owner::<SOLE>(port, clock, entry, tick, deadline_ns) };
        }
        true
    }
}

/// Moves a plain timer's word: by a store for a sole owner, otherwise if it still is `seen`.
#[inline(always)]
fn move_plain(sole: bool, record: &Record, seen: Word, new: Word) -> bool {
    if sole {
        record.publish(new);
        true
    } else {
        record.swap(seen, new).is_ok()
    }
}

impl Turn<'_> {
    /// Fires a plain timer that is due.
    ///
    /// # Safety
    /// As `Turn::serve`.
    #[inline(always)]
    pub(crate) unsafe fn fire_plain(&self, reminder: Reminder) -> bool {
        let (shard, port) = (self.shard, self.port);
        let slot = reminder.slot();
        let record = shard.slab.at(slot);
        let word = record.word();
        let (generation, kind) = (word.generation(), record.kind());
        if !is_plain(kind, word, generation) || !is_newest(record, slot, reminder) {
            return false;
        }
        let due = shard.ticks.with_low(kind.tick(word.offset()), record.low());
        // SAFETY: the caller owns the shard. Room for a timer that is armed again in its callback.
        let (tick, room) =
            unsafe { shard.with_core(|core| (core.wheel.elapsed(), core.has_room_for_ready())) };
        // One that was put off comes in its own place, as in `serve`.
        if due.tick > tick || due.deadline_ns > self.now_ns || !room || port.at_peak() {
            return false;
        }
        let sole = port.is_exclusive();
        let running = Word::new(Phase::Running, generation, Offset::NONE);
        if !move_plain(sole, record, word, running) {
            return false;
        }
        port.own.counters.ended_by_fire.add(1);
        let nth = port.own.counters.fired.add(1);
        let timer = shard.handle(slot, generation);
        let expiry = Expiry { timer, deadline_ns: due.deadline_ns, now_ns: self.now_ns, missed: 0 };
        self.call(record.callback(), record.ctx(), &expiry, nth);
        let (free, spent) = shard.slab.freed(generation);
        // SAFETY: the caller has claimed the port and owns the shard.
        unsafe {
            let over = port.has_room_for_slot() && !spent && record.word() == running;
            if over && move_plain(sole, record, running, free) {
                port.keep_slot(slot);
            } else {
                self.settle(record, slot, None);
            }
        }
        true
    }
}
