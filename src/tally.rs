//! What a shard's owner counts and measures for those who operate it.
//!
//! Ground rules: written by the owner alone, each by a plain load and store, on lines that no other
//! thread writes (but for `named`); read by any thread at any time. Nothing in here decides anything, and a
//! model does not explore it.
//!
//! The clock is the dearest part of a measurement, so it is read once for many expiries: how late an
//! expiry is, is told by the reading that its slice of a turn began with. Of callbacks one in
//! [`SAMPLE`] is timed and counts for all, unless the host asked for slow ones to be reported: then
//! each is. Of short turns of a driven shard it is one in [`TURNS`]; long ones, and those of a
//! service's own thread, are all timed.

use crate::clock::Clock;
use crate::histogram::Histogram;
use crate::sync::ProcessWide;
use crate::sys::clock::monotonic_ns;
use crate::wheel::{LEVELS, Wheel};
use crossbeam_utils::CachePadded;
use std::sync::atomic::{Ordering, fence};

/// One callback in so many is timed.
pub(crate) const SAMPLE: u64 = 64;
/// One short turn in so many is timed; what the wheel holds is told after as many.
const TURNS: u64 = 16;
/// A shard that has nothing to do for so many ticks tells before it rests what its wheel holds.
const REST: u64 = 8;

/// A number that one thread writes and any thread reads, with no order among several.
#[derive(Debug, Default)]
pub(crate) struct Number(ProcessWide);

impl Number {
    /// By the writing thread alone; answers the new value.
    #[inline]
    pub(crate) fn add(&self, more: u64) -> u64 {
        let sum = self.get().wrapping_add(more);
        self.set(sum);
        sum
    }

    /// By the writing thread alone.
    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a shard's own thread woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// It had slept as long as it wanted.
    Deadline = 0,
    /// A timer that is due earlier was started, or made earlier.
    Earlier = 1,
    /// Much waits in an inbox.
    Pressure = 2,
    /// The service stops, or a trim is wanted.
    Other = 3,
}

impl Woken {
    pub(crate) fn of(number: u32) -> Woken {
        match number {
            0 => Woken::Deadline,
            1 => Woken::Earlier,
            2 => Woken::Pressure,
            _ => Woken::Other,
        }
    }
}

/// See the head of this file.
pub(crate) struct Tally {
    /// By `Woken`.
    pub(crate) woken: [Number; 4],
    pub(crate) slow_callbacks: Number,
    pub(crate) wheel_bytes: Number,
    pub(crate) turns: Number,
    pub(crate) turn_time: Histogram,
    pub(crate) lateness: Histogram,
    pub(crate) callback_time: Histogram,
    /// Reminders that the owner holds, live and dead.
    pub(crate) reminders: Number,
    /// Occupied buckets of each level.
    pub(crate) occupied: [Number; LEVELS],
    /// Reminders in the longest bucket.
    pub(crate) longest: Number,
    /// When the callback began that runs now, if each is timed; or 0.
    since: Number,
    /// The beginning of the callback that was last told to be stuck. Written by whoever tells it.
    named: CachePadded<ProcessWide>,
}

/// A turn while it is timed.
pub(crate) struct TurnTime {
    began_ns: u64,
    /// What it counts for, or 0: it is timed only if it turns out long.
    weight: u64,
}

impl Tally {
    /// `None`: no memory.
    pub(crate) fn new() -> Option<Tally> {
        Some(Tally {
            woken: Default::default(),
            slow_callbacks: Number::default(),
            wheel_bytes: Number::default(),
            turns: Number::default(),
            turn_time: Histogram::new()?,
            lateness: Histogram::new()?,
            callback_time: Histogram::new()?,
            reminders: Number::default(),
            occupied: Default::default(),
            longest: Number::default(),
            since: Number::default(),
            named: CachePadded::new(ProcessWide::new(0)),
        })
    }

    /// A turn begins; `now_ns` is what its clock says. With `all` each is timed.
    #[inline]
    pub(crate) fn turn_begins(&self, all: bool, clock: &Clock, now_ns: u64) -> TurnTime {
        let sampled = self.turns.add(1) % TURNS == 1;
        let weight = match (all, sampled) {
            (true, _) => 1,
            (false, true) => TURNS,
            (false, false) => 0,
        };
        // A manual clock stands still in a turn.
        let began_ns = match clock.is_manual() {
            false => now_ns,
            true if weight > 0 => monotonic_ns(),
            true => 0,
        };
        TurnTime { began_ns, weight }
    }

    /// A turn ends; `long`: it took more than one slice.
    #[inline]
    pub(crate) fn turn_ends(&self, turn: &TurnTime, clock: &Clock, long: bool) {
        let manual = clock.is_manual();
        let weight = if long && !manual { 1 } else { turn.weight };
        if weight > 0 {
            let now_ns = if manual { monotonic_ns() } else { clock.now() };
            self.turn_time.record(now_ns.saturating_sub(turn.began_ns), weight);
        }
    }

    /// The owner is about to rest or to go on, `idle` ticks before it has to look again: now and then, and
    /// before a long rest, it tells what its wheel holds.
    #[inline]
    pub(crate) fn tell(&self, wheel: &Wheel, due: usize, idle: u64) {
        self.reminders.set((wheel.len() + due) as u64);
        if idle >= REST || self.turns.get().is_multiple_of(TURNS) {
            for (number, occupied) in self.occupied.iter().zip(wheel.occupied()) {
                number.set(occupied.into());
            }
            self.longest.set(wheel.longest_bucket() as u64);
        }
    }

    /// A callback that is timed begins; answers when.
    #[inline]
    pub(crate) fn callback_begins(&self) -> u64 {
        let now_ns = monotonic_ns();
        // Release: pairs with the Acquire in `running_since`, for the timer that was noted before.
        self.since.0.store(now_ns, Ordering::Release);
        now_ns
    }

    /// It is over; answers how long it took.
    #[inline]
    pub(crate) fn callback_ends(&self, began_ns: u64, weight: u64) -> u64 {
        self.since.set(0);
        // Release: pairs with the Acquire fence in `running_since`: who sees the next callback's timer sees that this
        // one is over.
        fence(Ordering::Release);
        let elapsed_ns = monotonic_ns().saturating_sub(began_ns);
        self.callback_time.record(elapsed_ns, weight);
        elapsed_ns
    }

    /// When the callback began that runs now, if it is timed, and what `timer` says of it meanwhile, first.
    pub(crate) fn running_since(&self, timer: impl Fn() -> u64) -> Option<(u64, u64)> {
        // Acquire: pairs with the Release in `callback_begins`.
        let since_ns = self.since.0.load(Ordering::Acquire);
        let timer = timer();
        // Acquire: pairs with the Release fence in `callback_ends`.
        fence(Ordering::Acquire);
        (since_ns != 0 && self.since.get() == since_ns).then_some((timer, since_ns))
    }

    /// Is this thread the first to tell of the callback that began then?
    pub(crate) fn name_stuck(&self, since_ns: u64) -> bool {
        // Relaxed: only who is first matters.
        let last = self.named.load(Ordering::Relaxed);
        last < since_ns
            && self
                .named
                .compare_exchange(last, since_ns, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}
