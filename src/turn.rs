//! One turn of a shard, by its owner: take in what other threads handed over, then deliver what is due.
//!
//! Order within a turn: what the last turn left over of a tick, then what was due when it was armed,
//! then the wheel, tick by tick. A timer that is armed during a turn and is due at once waits
//! for the next one. A long turn is worked off in slices: between them the owner takes in starts; a
//! cancel needs no slice, because each timer is decided by its word at the moment it is called.

use crate::clock::Clock;
use crate::core::{Core, Entry, SLICE};
use crate::gate::STOPPED;
use crate::port::Port;
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::{Ordering, leaves_out_upkeep};
use crate::ticks::NEVER_TICK;
use crate::wheel::{Collected, Records, Reminder};
use std::cell::Cell;

/// Expiries between two looks at the inboxes.
const EXPIRIES: usize = 64;
/// Entries that are prefetched and taken in at a time.
const GULP: usize = 32;

/// What a turn works with.
pub(crate) struct Turn<'a> {
    pub(crate) shard: &'a Shard,
    pub(crate) port: &'a Port,
    pub(crate) clock: &'a Clock,
    /// The clock as the turn began, and the tick that it had reached.
    pub(crate) now_ns: u64,
    pub(crate) now_tick: u64,
    /// The clock as the slice at hand began, or after a long callback in it.
    pub(crate) slice_ns: Cell<u64>,
    /// What `Counters::fired` of the port was.
    pub(crate) fired: u64,
}

/// What became of a reminder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    /// Its timer was delivered: called back, or put in a queue.
    Delivered,
    /// Nothing to do now.
    Skipped,
}

impl Shard {
    /// Delivers what is due, at most `budget` expiries.
    ///
    /// # Safety
    /// The calling thread owns the shard, has claimed `port`, and is not inside a turn of the shard.
    pub(crate) unsafe fn turn(&self, port: &Port, clock: &Clock, budget: usize) -> usize {
        // SAFETY: the caller owns the shard.
        let (now_ns, now_tick) = unsafe {
            self.with_core(|core| {
                core.now_ns = core.now_ns.max(clock.now());
                let now_tick = self.ticks.reached(core.now_ns);
                core.look(core.now_ns, now_tick);
                (core.now_ns, now_tick)
            })
        };
        let slice_ns = Cell::new(now_ns);
        let fired = port.own.counters.fired.get();
        let turn = Turn { shard: self, port, clock, now_ns, now_tick, slice_ns, fired };
        let time = self.tally.turn_begins(self.alarm.is_threaded(), clock, now_ns);
        self.note_origin(now_tick);
        self.slab.extras.reuse_notes();
        // SAFETY: the caller owns the shard. What there is no memory for is tried again.
        unsafe {
            let _ = self.with_core(|core| core.settle_fresh(&self.slab));
            self.take_in_inboxes();
        }
        self.note_high_water(port);
        // SAFETY: as above.
        unsafe {
            self.with_core(|core| {
                core.order_ready();
                core.horizon = turn.now_tick;
                core.ready_now = core.ready.len();
            });
        }
        let mut fired = 0;
        let mut looked = 0;
        while fired < budget && !self.gate.is(STOPPED) {
            // SAFETY: as above.
            let next = unsafe { self.with_core(|core| turn.next(core)) };
            let reminder = match next {
                Next::Look(reminder) => reminder,
                Next::MoreWork => {
                    // SAFETY: as above.
                    unsafe { self.take_in_all(clock) };
                    continue;
                }
                Next::Over => break,
            };
            // SAFETY: as above; the reminder was handed out by the owner's own core.
            let served = unsafe {
                if turn.fire_plain(reminder) { Ok(Served::Delivered) } else { turn.serve(reminder) }
            };
            match served {
                Ok(Served::Delivered) => fired += 1,
                Ok(Served::Skipped) => {}
                Err(_) => {
                    // SAFETY: as above.
                    unsafe { self.with_core(|core| core.put_back(reminder)) };
                    break;
                }
            }
            if self.forked() {
                break;
            }
            looked += 1;
            if looked % EXPIRIES == 0 {
                self.slab.extras.reuse_notes();
                // SAFETY: as above.
                unsafe { self.take_in_all(clock) };
                turn.slice_ns.set(now_ns.max(clock.now()));
            }
        }
        // SAFETY: as above.
        unsafe { self.with_core(|core| (core.horizon, core.ready_now) = (0, 0)) };
        self.tally.turn_ends(&time, clock, looked >= EXPIRIES);
        fired
    }

    /// Takes in the newest timers and what waits in the inboxes. Without memory it stays there and is tried again.
    ///
    /// # Safety
    /// The calling thread owns the shard.
    pub(crate) unsafe fn take_in_all(&self, clock: &Clock) {
        // SAFETY: the caller owns the shard. What there is no memory for is tried again.
        unsafe {
            let _ = self.with_core(|core| self.settle_fresh(core, clock));
            self.take_in_inboxes();
        }
    }

    /// Files the reminders of the newest timers. Who guesses what lies ahead looks at the clock first: they may have
    /// been started long after it last did, past their deadlines.
    #[inline]
    pub(crate) fn settle_fresh(&self, core: &mut Core, clock: &Clock) -> Result<(), Error> {
        if core.has_guessed() {
            self.look(core, clock);
        }
        core.settle_fresh(&self.slab)
    }

    /// The owner looks at the clock.
    pub(crate) fn look(&self, core: &mut Core, clock: &Clock) {
        let now_ns = clock.now();
        core.look(now_ns, self.ticks.reached(now_ns));
    }

    /// # Safety
    /// The calling thread owns the shard.
    unsafe fn take_in_inboxes(&self) {
        for port in self.ports() {
            // SAFETY: the caller owns the shard, so it is the consumer of its inboxes.
            unsafe { self.take_in_from(port) };
        }
    }

    unsafe fn take_in_from(&self, port: &Port) {
        // What arrives meanwhile is left for the next time, so that a busy producer cannot hold the
        // owner here.
        let mut left = port.inbox.waiting() as usize;
        while left > 0 {
            let gulp = left.min(GULP);
            // SAFETY: the caller is the consumer and owns the shard.
            let taken = unsafe {
                let mut last = 0;
                port.inbox.peek(gulp, |bits| {
                    let slot = Entry::from_bits(bits).slot();
                    if slot != last {
                        self.slab.prefetch(Reminder::new(slot, 0, 0));
                    }
                    last = slot;
                });
                self.with_core(|core| {
                    port.inbox.take(gulp, |bits, next| {
                        let entry = Entry::from_bits(bits);
                        let again = next.map(|bits| Entry::from_bits(bits).slot());
                        // Of one slot the later entry tells all: this timer is the same, or has ended.
                        again == Some(entry.slot()) || core.take_in(&self.slab, entry).is_ok()
                    })
                })
            };
            if taken < gulp {
                return;
            }
            left -= taken;
        }
    }

    /// The tick at which the owner has to look next; 0 when something is due already.
    ///
    /// # Safety
    /// The calling thread owns the shard.
    pub(crate) unsafe fn next_look(&self, clock: &Clock) -> u64 {
        // SAFETY: the caller owns the shard.
        unsafe {
            self.with_core(|core| {
                let _ = self.settle_fresh(core, clock);
                core.drop_dead_due(&self.slab);
                if core.has_due() {
                    0
                } else {
                    core.wheel.next_due(&self.slab).unwrap_or(NEVER_TICK)
                }
            })
        }
    }

    /// The end of a turn: drops dead reminders and says what the wheel holds.
    ///
    /// # Safety
    /// The calling thread owns the shard.
    #[inline(never)]
    pub(crate) unsafe fn tidy(&self) {
        if leaves_out_upkeep() {
            return;
        }
        let (live, empty) = (self.pending() as usize, self.is_empty());
        let trim = self.trim_wanted.load(Ordering::Relaxed);
        if trim {
            self.trim_wanted.store(false, Ordering::Relaxed);
        }
        // SAFETY: the caller owns the shard.
        unsafe {
            self.with_core(|core| {
                if trim {
                    core.trim();
                }
                core.compact(&self.slab, live, empty);
                while core.trimming && !self.alarm.is_threaded() {
                    core.compact(&self.slab, live, empty);
                }
                self.tally.wheel_bytes.set(core.bytes() as u64);
                let next = core.wheel.next_tick().unwrap_or(NEVER_TICK);
                let idle = next.saturating_sub(core.wheel.elapsed());
                self.tally.tell(&core.wheel, core.due(), idle);
            });
        }
    }

    /// Between turns: tidies when so much has been filed or has died that memory would grow.
    ///
    /// # Safety
    /// The calling thread owns the shard.
    #[inline(always)]
    pub(crate) unsafe fn tidy_if_stirred(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.with_core(|core| core.is_stirred()) {
                self.tidy();
            }
        }
    }

    /// Is a compaction under way, so that the owner should not sleep for long?
    ///
    /// # Safety
    /// The calling thread owns the shard.
    pub(crate) unsafe fn compacting(&self) -> bool {
        // SAFETY: the caller owns the shard.
        unsafe { self.with_core(|core| core.compacting) }
    }
}

impl Turn<'_> {
    /// The next reminder to look at in this turn.
    fn next(&self, core: &mut Core) -> Next {
        if let Some(reminder) = core.batch.next() {
            return Next::Look(reminder);
        }
        if core.ready_now > 0 {
            core.ready_now -= 1;
            return core.ready.pop_front().map_or(Next::Over, Next::Look);
        }
        let mut work = SLICE;
        let slab = &self.shard.slab;
        match core.wheel.collect(self.now_tick, &mut core.batch, &mut work, slab) {
            Ok(Collected::Tick(_)) => {
                for &reminder in core.batch.rest() {
                    slab.prefetch_to_write(reminder);
                }
                core.batch.next().map_or(Next::Over, Next::Look)
            }
            Ok(Collected::MoreWork) => Next::MoreWork,
            Ok(Collected::Idle) | Err(_) => Next::Over,
        }
    }
}

/// How a turn goes on.
enum Next {
    Look(Reminder),
    /// A slice of a cascade is done.
    MoreWork,
    Over,
}

impl Core {
    /// Puts a reminder back that could not be served for want of memory: it comes first next time.
    fn put_back(&mut self, reminder: Reminder) {
        if !self.batch.put_back(reminder) {
            self.ready.push_front(reminder);
        }
    }
}

/// Publishes that this thread runs a turn, for `cancel_wait` and `stop`; ends with the guard.
pub(crate) struct Turning<'a>(&'a Shard);

impl<'a> Turning<'a> {
    pub(crate) fn begin(shard: &'a Shard, token: u32) -> Turning<'a> {
        // Relaxed: against `stop` the fence in `Engine::poll` orders it.
        shard.turner.store(token, Ordering::Relaxed);
        Turning(shard)
    }
}

impl Drop for Turning<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `stop`, which waits for the turn to end.
        self.0.turner.store(0, Ordering::Release);
    }
}
