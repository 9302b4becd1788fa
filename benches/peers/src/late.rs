//! W6: 10,000 timers a second for ten seconds of real time, started ten at a time by a periodic
//! timer of the library itself. How late does each fire, and what does all of it cost?
//!
//! Lateness is judged by this program: from the monotonic clock just before the start, plus the
//! delay, to the same clock as the callback begins.

use crate::contender::c::{Library, Peer};
use crate::contender::shardwheel::Wheels;
use crate::contender::{Clock, tokio};
use crate::measure::{Random, monotonic_ns, process_cpu_ns};
use ::tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use shardwheel::capi::sw_expiry;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const PERIOD_NS: u64 = 1_000_000;
const EVERY_NS: u64 = 100_000;
/// Delays are 1 to 100 ms; all timers have fired this long after the last was started.
const AFTERMATH: Duration = Duration::from_millis(300);

/// A timer of this workload. Relaxed throughout: the end of the run is waited for.
struct Slot {
    due_ns: AtomicU64,
    /// `NOT_FIRED` until it fires.
    late_ns: AtomicI64,
}

const NOT_FIRED: i64 = i64::MIN;

impl Slot {
    fn fire(&self) {
        self.late_ns.store(monotonic_ns() as i64 - self.due_ns.load(Relaxed) as i64, Relaxed);
    }
}

/// All timers, and who is next to be started. Only the library's periodic timer starts them.
struct Run {
    slots: Vec<Slot>,
    began_ns: u64,
    next: AtomicU64,
    seed: AtomicU64,
    all_started: AtomicBool,
}

impl Run {
    /// Lives as long as the process, since callbacks hold it.
    fn new(timers: usize) -> &'static Run {
        let slot = || Slot { due_ns: AtomicU64::new(0), late_ns: AtomicI64::new(NOT_FIRED) };
        Box::leak(Box::new(Run {
            slots: (0..timers).map(|_| slot()).collect(),
            began_ns: monotonic_ns(),
            next: AtomicU64::new(0),
            seed: AtomicU64::new(1),
            all_started: AtomicBool::new(false),
        }))
    }

    /// Starts as many timers as should have been started by now; answers whether more will be.
    fn start_those_that_are_next(&self, mut start: impl FnMut(usize, u64)) -> bool {
        let end = ((monotonic_ns() - self.began_ns) / EVERY_NS).min(self.slots.len() as u64);
        let mut random = Random::new(self.seed.load(Relaxed));
        self.seed.fetch_add(1, Relaxed);
        for nth in self.next.load(Relaxed)..end {
            let delay_ns = random.between(PERIOD_NS, 100 * PERIOD_NS);
            self.slots[nth as usize].due_ns.store(monotonic_ns() + delay_ns, Relaxed);
            start(nth as usize, delay_ns);
        }
        self.next.store(end, Relaxed);
        let more = end < self.slots.len() as u64;
        self.all_started.store(!more, Relaxed);
        more
    }

    fn wait(&self) {
        while !self.all_started.load(Relaxed) {
            thread::sleep(Duration::from_millis(100));
        }
        thread::sleep(AFTERMATH);
    }
}

/// What W6 found: p50 and p99 of the lateness in microseconds, CPU seconds, and how many timers
/// were early or never came.
pub fn measure(timers: usize, run: impl FnOnce(&'static Timing)) -> Vec<f64> {
    let timing = Box::leak(Box::new(Timing(Run::new(timers))));
    let cpu = process_cpu_ns();
    run(timing);
    let cpu = process_cpu_ns() - cpu;
    let mut late: Vec<_> = timing.0.slots.iter().map(|slot| slot.late_ns.load(Relaxed)).collect();
    late.sort_unstable();
    let lost = late.iter().filter(|&&late| late == NOT_FIRED).count();
    let late = &late[lost..];
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    let early = late.iter().filter(|&&late| late < 0).count();
    vec![at(0.50), at(0.99), cpu as f64 / 1e9, early as f64, lost as f64]
}

/// What a library's run is given.
pub struct Timing(&'static Run);

struct OnWheels {
    run: &'static Run,
    wheels: &'static Wheels,
}

/// shardwheel, with one thread.
pub fn on_wheels(wheels: Wheels, timing: &'static Timing) {
    unsafe extern "C-unwind" fn tick(ctx: *mut c_void, _expiry: *const sw_expiry) {
        // SAFETY: it is the one below, which lives as long as the process.
        let OnWheels { run, wheels } = unsafe { &*ctx.cast::<OnWheels>() };
        run.start_those_that_are_next(|slot, delay_ns| {
            let slot = std::ptr::from_ref(&run.slots[slot]).cast_mut().cast();
            // SAFETY: the slot lives as long as the process.
            unsafe { wheels.start(delay_ns, Some(fired), slot) };
        });
    }
    unsafe extern "C-unwind" fn fired(ctx: *mut c_void, _expiry: *const sw_expiry) {
        // SAFETY: it is one of the run's slots.
        unsafe { &*ctx.cast::<Slot>() }.fire();
    }
    let wheels = Box::leak(Box::new(wheels));
    let both = Box::leak(Box::new(OnWheels { run: timing.0, wheels }));
    // SAFETY: `both` lives as long as the process.
    unsafe { wheels.start_every(PERIOD_NS, Some(tick), std::ptr::from_mut(both).cast()) };
    timing.0.wait();
}

/// tokio, with one thread: a task for each timer.
pub fn on_tokio(timing: &'static Timing) {
    let run = timing.0;
    tokio::runtime(Clock::Real).block_on(async {
        let mut ticks = interval(Duration::from_nanos(PERIOD_NS));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let start = |slot: usize, delay_ns| {
            let deadline = Instant::now() + Duration::from_nanos(delay_ns);
            ::tokio::spawn(async move {
                sleep_until(deadline).await;
                run.slots[slot].fire();
            });
        };
        loop {
            ticks.tick().await;
            if !run.start_those_that_are_next(start) {
                break;
            }
        }
        ::tokio::time::sleep(AFTERMATH).await;
    });
}

struct OnPeer {
    run: &'static Run,
    start: Box<dyn Fn(usize, u64)>,
}

/// A C library's loop.
pub fn on_peer(library: Library, precise: bool, timing: &'static Timing) {
    unsafe extern "C" fn tick(ctx: *mut c_void) -> c_int {
        // SAFETY: it is the one below, which lives as long as the process.
        let OnPeer { run, start } = unsafe { &*ctx.cast::<OnPeer>() };
        run.start_those_that_are_next(start);
        let over = run.began_ns + run.slots.len() as u64 * EVERY_NS + AFTERMATH.as_nanos() as u64;
        c_int::from(monotonic_ns() < over)
    }
    unsafe extern "C" fn fired(ctx: *mut c_void, slot: usize) {
        // SAFETY: as above.
        unsafe { &*ctx.cast::<OnPeer>() }.run.slots[slot].fire();
    }
    let slots = timing.0.slots.len();
    let peer = if precise { Peer::precise(library, slots) } else { Peer::new(library, slots) };
    let start = Box::new(peer.starter());
    let both = Box::leak(Box::new(OnPeer { run: timing.0, start }));
    // SAFETY: `both` lives as long as the process.
    unsafe { peer.run(Some(tick), Some(fired), std::ptr::from_mut(both).cast()) };
}
