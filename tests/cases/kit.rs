//! What only these tests need: numbers by chance that are the same each run, a clock that is not
//! the library's, contexts in an array, and a timer that somebody waits for.

use crate::support::*;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// One day in nanoseconds.
pub const DAY: u64 = 24 * HOUR;
/// How long a test waits for what must come before it calls it lost.
pub const LONG: Duration = Duration::from_secs(30);

/// Numbers by chance from a seed (splitmix64).
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// 0..limit
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// low..=high
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

fn os_clock(which: libc::clockid_t) -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is writable, the clock exists on every Linux.
    assert_eq!(unsafe { libc::clock_gettime(which, &mut at) }, 0);
    at.tv_sec as u64 * SEC + at.tv_nsec as u64
}

/// `CLOCK_MONOTONIC`, read by the test itself.
pub fn mono() -> u64 {
    os_clock(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_BOOTTIME`, read by the test itself.
pub fn boot() -> u64 {
    os_clock(libc::CLOCK_BOOTTIME)
}

pub fn sleep_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Starts a timer on a service with threads, waits for it, and answers how long it took from
/// before the start until its callback began.
#[track_caller]
pub fn measure(door: Door, delay_ns: u64) -> u64 {
    let (tell, hear) = mpsc::channel();
    let begin = mono();
    let _timer = door.timer().delay(delay_ns).run(move |_| tell.send(mono()).unwrap()).start();
    hear.recv_timeout(LONG).expect("the timer did not fire") - begin
}

/// A shard that is held up until it is let go, at the latest when this goes out of scope.
pub struct Hold(Arc<Gate>);

impl Hold {
    /// Lets the shard go on.
    pub fn open(&self) {
        self.0.open();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.open();
    }
}

/// Keeps a shard busy with a callback that waits until it is let go; returns when it runs.
pub fn hold_up_shard(door: Door, shard: u32) -> Hold {
    let (begun, go) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
    let (open, wait) = (begun.clone(), go.clone());
    let hold = move |_: &sw_expiry| {
        open.open();
        wait.wait();
    };
    door.timer().shard(shard).run(hold).start();
    begun.wait();
    Hold(go)
}

/// As [`hold_up_shard`], for a service with one shard.
pub fn hold_up(door: Door) -> Hold {
    hold_up_shard(door, 0)
}

/// Moves the manual clock from one answer of `next` to the following one, polling each time,
/// until nothing is pending. Answers how many of the polls delivered nothing.
#[track_caller]
pub fn drive(door: Door) -> u64 {
    let mut idle = 0;
    loop {
        let next = door.next();
        if next == SW_NEVER {
            return idle;
        }
        if next > door.now() {
            assert_eq!(door.poll(), 0, "Q1: something was due before `next`");
            door.advance_to(next);
        }
        if door.poll() == 0 {
            idle += 1;
            assert!(idle < 1_000_000, "polls and polls, and nothing is delivered");
        }
    }
}

/// What became of one timer; its context, for tests with very many. The array has to outlive the
/// service: declare it first.
#[derive(Default)]
pub struct Cell {
    pub ran: AtomicU32,
    pub dropped: AtomicU32,
    pub deadline: AtomicU64,
    pub now: AtomicU64,
}

pub fn cells(count: usize) -> Box<[Cell]> {
    (0..count).map(|_| Cell::default()).collect()
}

impl Cell {
    pub fn ran(&self) -> u32 {
        self.ran.load(Ordering::SeqCst)
    }

    pub fn dropped(&self) -> u32 {
        self.dropped.load(Ordering::SeqCst)
    }

    pub fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::SeqCst)
    }

    pub fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    pub fn ctx(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// A spec with this cell as context, callback and drop.
    pub fn spec(&self, door: Door) -> sw_timer_spec {
        let ctx = self.ctx();
        door.timer()
            .with(|spec| {
                spec.callback = Some(cell_callback);
                spec.ctx = ctx;
                spec.drop = Some(cell_drop);
            })
            .spec()
    }

    /// A one-shot with this cell as context and no drop.
    pub fn try_start(&self, door: Door, delay_ns: u64) -> Result<sw_timer, sw_status> {
        let mut timer = SW_TIMER_NONE;
        // SAFETY: the service is alive, the cell outlives it.
        let status = unsafe {
            sw_timer_start(door.raw(), delay_ns, Some(cell_callback), self.ctx(), &mut timer)
        };
        if status == SW_OK { Ok(timer) } else { Err(status) }
    }

    #[track_caller]
    pub fn start(&self, door: Door, delay_ns: u64) -> sw_timer {
        self.try_start(door, delay_ns).expect("sw_timer_start")
    }
}

unsafe extern "C-unwind" fn cell_callback(ctx: *mut c_void, expiry: *const sw_expiry) {
    // SAFETY: the context is a cell that outlives its service; the expiry is readable.
    let (cell, expiry) = unsafe { (&*ctx.cast_const().cast::<Cell>(), &*expiry) };
    cell.deadline.store(expiry.deadline_ns, Ordering::SeqCst);
    cell.now.store(expiry.now_ns, Ordering::SeqCst);
    cell.ran.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C-unwind" fn cell_drop(ctx: *mut c_void) {
    // SAFETY: the context is a cell that outlives its service.
    let cell = unsafe { &*ctx.cast_const().cast::<Cell>() };
    cell.dropped.fetch_add(1, Ordering::SeqCst);
}

/// The instant at which a deadline is due: the first tick at or after it.
pub fn due(deadline_ns: u64, tick_ns: u64) -> u64 {
    deadline_ns.div_ceil(tick_ns) * tick_ns
}
