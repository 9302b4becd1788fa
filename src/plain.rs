//! The short way of a plain timer: no extra, a near deadline, nothing out of the ordinary.
//!
//! Ground rules: each function does the whole of what `arm`, `cancel`, `reset` or `fire` would do, in the same
//! order, or does nothing and answers false; then the caller goes the long way, which finds out
//! why. So nothing here fails, waits or allocates. All that can refuse is asked before the
//! first write that counts. Of what the calling thread owns (its port, and the wheel if the shard is
//! its own) it writes by plain stores; the word by one compare-and-swap, or a store if the shard is
//! exclusively its own.

use crate::clock::Clock;
use crate::core::{Entry, is_newest};
use crate::gate::Work;
use crate::handle::Handle;
use crate::port::Port;
use crate::record::Kind;
use crate::reset::To;
use crate::shard::Shard;
use crate::turn::Turn;
use crate::types::Expiry;
use crate::wheel::Reminder;
use crate::word::{Offset, Phase, Word};
use std::ffi::c_void;

/// Is this generation's timer armed, for a near deadline and without an extra?
#[inline(always)]
fn is_plain(word: Word, kind: Kind, generation: u32) -> bool {
    word.is_pending(generation) && word.offset().is_near() && !kind.has_extra()
}

impl Shard {
    /// Starts a plain timer. `out`, if not null, is written before the callback can run.
    ///
    /// # Safety
    /// As `Shard::arm`.
    #[inline(always)]
    pub(crate) unsafe fn arm_plain(
        &self,
        port: &Port,
        clock: &Clock,
        to: To,
        callback: *mut c_void,
        ctx: *mut c_void,
        out: *mut u64,
    ) -> bool {
        let own = &*port.own;
        let owner = port.is_owner();
        let pass = port.pass();
        let Some(_inside) = self.gate.pass(&own.busy, Work::Start, pass) else { return false };
        let (deadline_ns, now_ns) = to.resolve(clock);
        let Some(tick) = self.tick_ahead(deadline_ns, now_ns) else { return false };
        let Some((kind, offset)) = self.plain_at(tick) else { return false };
        // SAFETY: the caller has claimed the port.
        let Some(slot) = (unsafe { port.next_slot() }) else { return false };
        let Some(record) = self.slab.get(slot) else { return false };
        let credits = port.credits();
        if credits == 0 {
            return false;
        }
        let generation = record.word().generation();
        if owner {
            // First: until the word is published it is a dead one.
            let entry = Entry::new(slot, generation);
            // SAFETY: the port's thread owns the shard.
            if !unsafe { self.with_core(|core| core.note_fresh(&self.slab, entry)) } {
                return false;
            }
        // SAFETY: the caller is the producer.
        } else if !unsafe { port.inbox.has_room() } {
            return false;
        }
        // SAFETY: the caller has claimed the port, and there is one.
        unsafe { port.take_next_slot() };
        own.credits.set(credits - 1);
        record.fill(kind, callback, ctx);
        record.set_low(deadline_ns);
        if !out.is_null() {
            // SAFETY: the caller says that it can be written.
            unsafe { out.write(self.handle(slot, generation)) };
        }
        own.counters.started.add(1);
        port.count_up();
        record.publish(Word::new(Phase::Pending, generation, offset));
        if owner {
            self.alarm.notice(tick, clock);
        } else {
            // SAFETY: the caller has claimed the port, and there is room.
            unsafe { self.hand_over(port, clock, slot, generation, tick) };
        }
        true
    }

    /// Cancels a plain timer that is armed.
    ///
    /// # Safety
    /// The calling thread has claimed `port`.
    #[inline(always)]
    pub(crate) unsafe fn cancel_plain(&self, port: &Port, handle: Handle) -> bool {
        let own = &*port.own;
        let pass = port.pass();
        let Some(_inside) = self.gate.pass(&own.busy, Work::Other, pass) else { return false };
        let Some(record) = self.slab.get(handle.slot) else { return false };
        let word = record.word();
        let kind = record.kind();
        // SAFETY: the caller has claimed the port.
        let room = unsafe { port.has_room_for_slot() };
        if !(is_plain(word, kind, handle.generation) && room) || port.at_peak() {
            return false;
        }
        let (free, spent) = self.slab.freed(word);
        if spent || self.swap(port, record, word, free).is_err() {
            return false;
        }
        port.count_down();
        own.counters.cancelled.add(1);
        if port.is_owner() {
            // SAFETY: the port's thread owns the shard.
            unsafe { self.take_back(handle.slot, word) };
        }
        // SAFETY: the caller has claimed the port, owns the slot by the swap, and there is room.
        unsafe { port.keep_slot(handle.slot) };
        true
    }

    /// Moves a plain timer that is armed to a later tick, or to another instant of the same.
    ///
    /// # Safety
    /// The calling thread has claimed `port`.
    #[inline(always)]
    pub(crate) unsafe fn put_off_plain(
        &self,
        port: &Port,
        clock: &Clock,
        handle: Handle,
        to: To,
    ) -> bool {
        let (busy, pass) = (&port.own.busy, port.pass());
        let Some(_inside) = self.gate.pass(busy, Work::Other, pass) else { return false };
        let Some(record) = self.slab.get(handle.slot) else { return false };
        let word = record.word();
        let kind = record.kind();
        if !is_plain(word, kind, handle.generation) {
            return false;
        }
        let (deadline_ns, now_ns) = to.resolve(clock);
        let Some(tick) = self.tick_ahead(deadline_ns, now_ns) else { return false };
        let Some(offset) = kind.offset(tick) else { return false };
        if offset.ticks() < word.offset().ticks() {
            return false;
        }
        if self.swap(port, record, word, word.with(Phase::Pending, offset)).is_err() {
            return false;
        }
        record.set_low(deadline_ns);
        true
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
        let kind = record.kind();
        let generation = word.generation();
        if !is_plain(word, kind, generation) || !is_newest(record, slot, reminder) {
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
        let running = word.with(Phase::Running, Offset::NONE);
        if shard.swap(port, record, word, running).is_err() {
            return false;
        }
        port.count_down();
        let nth = port.own.counters.fired.add(1);
        port.own.counters.ended_by_fire.add(1);
        let timer = shard.handle(slot, generation);
        let expiry = Expiry { timer, deadline_ns: due.deadline_ns, now_ns: self.now_ns, missed: 0 };
        self.call(record.callback(), record.ctx(), &expiry, nth);
        let (free, spent) = shard.slab.freed(running);
        // SAFETY: the caller has claimed the port and owns the shard.
        unsafe {
            let over = port.has_room_for_slot() && !spent && record.word() == running;
            if over && shard.swap(port, record, running, free).is_ok() {
                port.keep_slot(slot);
            } else {
                self.settle(record, slot, None);
            }
        }
        true
    }
}
