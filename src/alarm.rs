//! The alarm of a shard: when its owner will look by itself, and how to make it look earlier.
//!
//! Ground rules: `armed` holds the tick at which the owner looks next, or [`AWAKE`] while it is at
//! work (or has been told to be). The owner writes it before it sleeps; a thread that hands over work
//! for an earlier tick lowers it and rings. Neither can miss the other: the starter publishes its
//! entry, runs a full fence, then reads `armed`; the owner writes `armed`, runs a full fence, then
//! looks at the inboxes. A later deadline wakes nobody. All accesses to `armed` are Relaxed: nothing is handed
//! over through it, and what orders it against inboxes, clock and descriptor are the full fences.
//!
//! A service's own thread sleeps on a futex (or, on the boot-time clock, on a timer descriptor). A host
//! that drives the shard sleeps as it likes; it may ask for a descriptor, which is a timerfd that is
//! set to `armed`.

use crate::clock::Clock;
use crate::sync::{AtomicU32, Ordering, SwappedU64};
use crate::sys::barrier;
use crate::sys::futex::WaitWord;
use crate::sys::timerfd::TimerFd;
use crate::tally::Woken;
use crate::ticks::{NEVER_TICK, Ticks};
use std::io;
use std::sync::OnceLock;

/// The owner is at work, or something is due at once: nobody needs to ring.
pub(crate) const AWAKE: u64 = 0;

/// See the head of this file.
pub(crate) struct Alarm {
    armed: SwappedU64,
    /// What the service's own thread sleeps on.
    bell: WaitWord,
    /// What a host waits on, once asked for; or what the service's own thread sleeps on where a
    /// futex does not know the clock.
    descriptor: OnceLock<TimerFd>,
    /// Why it was rung last since the owner went to sleep, a `Woken`.
    why: AtomicU32,
    threaded: bool,
    ticks: Ticks,
}

impl Alarm {
    pub(crate) fn new(threaded: bool, ticks: Ticks) -> Alarm {
        Alarm {
            armed: SwappedU64::new(if threaded { AWAKE } else { NEVER_TICK }),
            bell: WaitWord::new(),
            descriptor: OnceLock::new(),
            why: AtomicU32::new(0),
            threaded,
            ticks,
        }
    }

    /// Is the owner one of the service's own threads?
    pub(crate) fn is_threaded(&self) -> bool {
        self.threaded
    }

    /// The tick at which the owner looks next: a lower bound of what it has to do.
    pub(crate) fn armed(&self) -> u64 {
        self.armed.load(Ordering::Relaxed)
    }

    /// Called by whoever handed over something for `tick`, after a full fence (the owner, for its own
    /// wheel, needs none).
    #[inline]
    pub(crate) fn notice(&self, tick: u64, clock: &Clock) {
        if tick < self.armed.load(Ordering::Relaxed) {
            self.lower(tick, clock);
        }
    }

    /// As `notice`, by an owner that has not looked at the clock: at once, if the deadline is past.
    #[inline]
    pub(crate) fn notice_guess(&self, tick: u64, deadline_ns: u64, clock: &Clock) {
        if self.armed() > tick {
            self.lower_guess(tick, deadline_ns, clock);
        }
    }

    #[cold]
    fn lower_guess(&self, tick: u64, deadline_ns: u64, clock: &Clock) {
        self.lower(if deadline_ns <= clock.now() { AWAKE } else { tick }, clock);
    }

    #[cold]
    fn lower(&self, tick: u64, clock: &Clock) {
        if self.threaded { self.wake_thread(Woken::Earlier) } else { self.show(tick, clock) }
    }

    /// Wakes the owner, whatever the tick.
    #[cold]
    pub(crate) fn ring(&self, why: Woken, clock: &Clock) {
        if self.threaded { self.wake_thread(why) } else { self.show(AWAKE, clock) }
    }

    /// The host has to look at `tick` at the latest.
    fn show(&self, tick: u64, clock: &Clock) {
        self.armed.fetch_min(tick, Ordering::Relaxed);
        // Full: partner of the one in `set_descriptor`: whoever makes the descriptor, or points it elsewhere, after
        // this has looked sees what is armed now.
        barrier::full();
        self.set_descriptor(clock);
    }

    fn wake_thread(&self, why: Woken) {
        // Of many that ring, one finds the owner asleep and pays for waking it.
        if self.armed.swap(AWAKE, Ordering::Relaxed) != AWAKE {
            // Relaxed: for the statistics alone.
            self.why.store(why as u32, Ordering::Relaxed);
            match self.descriptor.get() {
                Some(descriptor) => descriptor.fire_now(),
                None => self.bell.bump_and_wake_all(),
            }
        }
    }

    /// The service's thread sleeps until `tick`, unless `anything` waits for it already; answers what woke
    /// it.
    pub(crate) fn sleep(
        &self,
        tick: u64,
        clock: &Clock,
        anything: impl Fn() -> bool,
    ) -> Option<Woken> {
        let seen = self.bell.load();
        self.why.store(Woken::Deadline as u32, Ordering::Relaxed);
        if self.descriptor.get().is_some() {
            self.point_descriptor(tick, clock);
        }
        self.armed.store(tick, Ordering::Relaxed);
        // Full: partner of the fence between hand-over and `notice`.
        barrier::full();
        let sleeps = !anything();
        if sleeps {
            match self.descriptor.get() {
                Some(descriptor) => descriptor.wait(),
                None if tick == NEVER_TICK => self.bell.wait(seen, None),
                None => self.bell.wait(seen, Some(self.ticks.instant(tick))),
            }
        }
        self.armed.store(AWAKE, Ordering::Relaxed);
        sleeps.then(|| Woken::of(self.why.load(Ordering::Relaxed)))
    }

    /// A host's turn begins.
    pub(crate) fn wake(&self) {
        self.armed.store(AWAKE, Ordering::Relaxed);
    }

    /// A host's turn ends: the next is wanted at `tick`. False when something came in meanwhile; then
    /// the turn is not over.
    pub(crate) fn rest(&self, tick: u64, clock: &Clock, anything: impl Fn() -> bool) -> bool {
        self.armed.store(tick, Ordering::Relaxed);
        // Full: partner of the fence between hand-over and `notice`, and of the one in `set_descriptor`.
        barrier::full();
        if anything() {
            self.armed.store(AWAKE, Ordering::Relaxed);
            return false;
        }
        self.set_descriptor(clock);
        true
    }

    /// Makes the service's own thread sleep on a timer descriptor of its clock.
    pub(crate) fn sleep_on_descriptor(&self, clock: &Clock) -> io::Result<()> {
        let descriptor = TimerFd::new(clock.kind())?;
        let _ = self.descriptor.set(descriptor);
        Ok(())
    }

    /// The host's descriptor, made when first asked for.
    pub(crate) fn descriptor(&self, clock: &Clock) -> io::Result<i32> {
        if self.descriptor.get().is_none() {
            let _ = self.descriptor.set(TimerFd::new(clock.kind())?);
            // Either `rest` sees the descriptor, or this what it armed: by the fence in here.
            self.set_descriptor(clock);
        }
        Ok(self.descriptor.get().map_or(-1, TimerFd::raw_fd))
    }

    /// Sets the host's descriptor to what is armed, until that stays so: another thread may lower it
    /// and set the descriptor at the same time, and the lower one must win.
    pub(crate) fn set_descriptor(&self, clock: &Clock) {
        if self.descriptor.get().is_none() {
            return;
        }
        loop {
            let armed = self.armed.load(Ordering::Relaxed);
            let fired = self.point_descriptor(armed, clock);
            // Full: partner of the one in `rest`, of that before `notice`, and of that after the clock was moved:
            // whoever armed or moved it and did not see this descriptor pointed is seen here.
            barrier::full();
            let reached = clock.is_manual() && armed <= self.ticks.reached(clock.now());
            if self.armed.load(Ordering::Relaxed) == armed && (fired || !reached) {
                return;
            }
        }
    }

    /// True when it is made readable at once.
    fn point_descriptor(&self, tick: u64, clock: &Clock) -> bool {
        let Some(descriptor) = self.descriptor.get() else { return false };
        let now_if_manual = clock.is_manual().then(|| self.ticks.reached(clock.now()));
        if tick == AWAKE || now_if_manual.is_some_and(|reached| tick <= reached) {
            descriptor.fire_now();
            true
        } else {
            if tick == NEVER_TICK || now_if_manual.is_some() {
                descriptor.disarm();
            } else {
                descriptor.arm(self.ticks.instant(tick));
            }
            false
        }
    }
}
