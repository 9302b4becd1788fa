//! tokio's `Sleep`. A slot is a `Sleep` in place, as a task holds it; starting makes and polls it
//! once, cancelling drops it.

use super::{Clock, Service, Timers};
use std::future::Future;
use std::pin::Pin;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, RawWaker, RawWakerVTable, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::{Instant, Sleep, sleep_until};

/// Wake-ups that were counted instead of running a task. Relaxed: a statistic.
static WOKEN: AtomicU64 = AtomicU64::new(0);

fn count(_: *const ()) {
    WOKEN.fetch_add(1, Ordering::Relaxed);
}

/// A waker that counts; making and dropping one costs nothing.
pub fn counting() -> Waker {
    const TABLE: RawWakerVTable =
        RawWakerVTable::new(|_| RawWaker::new(null(), &TABLE), count, count, |_| {});
    // SAFETY: no function of the table uses the pointer.
    unsafe { Waker::from_raw(RawWaker::new(null(), &TABLE)) }
}

/// A runtime of one thread, which lives as long as the process.
pub fn runtime(clock: Clock) -> &'static Runtime {
    let paused = clock == Clock::Manual;
    let runtime = Builder::new_current_thread().enable_time().start_paused(paused).build();
    Box::leak(Box::new(runtime.expect("a runtime")))
}

/// The timers of one thread.
pub struct Sleeps<'a> {
    runtime: &'a Runtime,
    _inside: EnterGuard<'a>,
    slots: Box<[Option<Sleep>]>,
    waker: Waker,
    now: Instant,
}

impl<'a> Sleeps<'a> {
    pub fn new(runtime: &'a Runtime, slots: usize) -> Sleeps<'a> {
        let inside = runtime.enter();
        let slots = (0..slots).map(|_| None).collect();
        Sleeps { runtime, _inside: inside, slots, waker: counting(), now: Instant::now() }
    }
}

impl Timers for Sleeps<'_> {
    const HANDLE: usize = 0;

    #[inline]
    fn start(&mut self, slot: usize, delay_ns: u64) {
        let sleep = sleep_until(self.now + Duration::from_nanos(delay_ns));
        let slot = self.slots[slot].insert(sleep);
        // SAFETY: it stays in the slot until it is dropped there.
        let sleep = unsafe { Pin::new_unchecked(slot) };
        let _ = sleep.poll(&mut Context::from_waker(&self.waker));
    }

    #[inline]
    fn cancel(&mut self, slot: usize) {
        self.slots[slot] = None;
    }

    #[inline]
    fn push_out(&mut self, slot: usize, delay_ns: u64) {
        let deadline = self.now + Duration::from_nanos(delay_ns);
        if let Some(sleep) = &mut self.slots[slot] {
            // SAFETY: it stays in the slot until it is dropped there.
            unsafe { Pin::new_unchecked(sleep) }.reset(deadline);
        }
    }

    fn turn(&mut self) {
        self.runtime.block_on(tokio::task::yield_now());
        self.now = Instant::now();
    }

    fn advance(&mut self, by_ns: u64) -> u64 {
        let before = WOKEN.load(Ordering::Relaxed);
        self.runtime.block_on(tokio::time::advance(Duration::from_nanos(by_ns)));
        self.now = Instant::now();
        WOKEN.load(Ordering::Relaxed) - before
    }
}

/// A runtime with two workers, which other threads have entered.
pub struct Workers(Runtime);

impl Workers {
    pub fn new() -> Workers {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build();
        Workers(runtime.expect("a runtime"))
    }
}

impl Service for Workers {
    type Local<'a> = Visitor<'a>;

    fn local(&self, slots: usize) -> Visitor<'_> {
        Visitor(Sleeps::new(&self.0, slots))
    }
}

/// A plain thread that uses a runtime's timers.
pub struct Visitor<'a>(Sleeps<'a>);

impl Timers for Visitor<'_> {
    const HANDLE: usize = 0;

    #[inline]
    fn start(&mut self, slot: usize, delay_ns: u64) {
        self.0.start(slot, delay_ns);
    }

    #[inline]
    fn cancel(&mut self, slot: usize) {
        self.0.cancel(slot);
    }

    #[inline]
    fn push_out(&mut self, slot: usize, delay_ns: u64) {
        self.0.push_out(slot, delay_ns);
    }

    /// The workers serve the timers; only the clock is looked at.
    fn turn(&mut self) {
        self.0.now = Instant::now();
    }

    fn advance(&mut self, _by_ns: u64) -> u64 {
        unreachable!("its clock is the machine's")
    }
}
