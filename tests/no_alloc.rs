//! S8: no allocation on start, cancel, reset or firing once a shard has grown to its working set.
//!
//! A test binary of its own, because it counts what goes through the global allocator: on the
//! threads that ask for it (the test's own, and shard threads by their start hook), so that the
//! test runner's other threads do not count.

#[path = "support/mod.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use support::*;

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static COUNTED: Cell<bool> = const { Cell::new(false) };
}

fn note() {
    if COUNTED.with(Cell::get) {
        COUNT.fetch_add(1, Ordering::SeqCst);
    }
}

// SAFETY: hands everything to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test at a time: they share the count.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// How many allocations the counted threads make meanwhile; this thread is one of them.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = COUNT.load(Ordering::SeqCst);
    COUNTED.with(|counted| counted.set(true));
    work();
    COUNTED.with(|counted| counted.set(false));
    COUNT.load(Ordering::SeqCst) - before
}

/// A shard's working set, and rounds of everything with it.
struct Load {
    door: Door,
    log: Log,
    spec: sw_timer_spec,
    live: Vec<sw_timer>,
    specs: Vec<sw_timer_spec>,
    batch: Vec<sw_timer>,
}

const LIVE: usize = 2_000;

/// Moves time until the log has counted so many.
type Fire<'a> = &'a mut dyn FnMut(&Load, u64);

impl Load {
    fn new(door: Door) -> Load {
        let log = Log::counting();
        let spec = door.timer().delay(HOUR).log(log).spec();
        let live = vec![SW_TIMER_NONE; LIVE];
        Load { door, log, spec, live, specs: vec![spec; 64], batch: vec![0; 64] }
    }

    /// Fills, churns, resets to and fro, empties.
    fn churn(&mut self) {
        let door = self.door;
        for timer in &mut self.live {
            *timer = door.start(HOUR, self.log);
        }
        for round in 0..4 * LIVE {
            let timer = &mut self.live[round * 7 % LIVE];
            assert_eq!(door.cancel(*timer), SW_OK);
            *timer = door.start_spec(&self.spec).unwrap();
            assert_eq!(door.reset(*timer, 2 * HOUR), SW_OK);
            assert_eq!(door.reset_at(*timer, door.now() + HOUR), SW_OK);
        }
        for timer in &self.live {
            assert_eq!(door.cancel(*timer), SW_OK);
        }
    }

    /// Starts and cancels in batches.
    fn batches(&mut self) {
        let raw = self.door.raw();
        for _ in 0..20 {
            let (specs, timers) = (&self.specs, &mut self.batch);
            // SAFETY: as many specs as handles.
            let status = unsafe {
                sw_timer_start_batch(raw, specs.as_ptr(), specs.len(), timers.as_mut_ptr())
            };
            assert_eq!(status, SW_OK);
            assert_eq!(self.door.cancel_batch(timers), Ok(64));
        }
    }

    /// Starts what comes due over several ticks.
    fn start_some(&self) {
        for i in 0..LIVE as u64 {
            self.door.start(i % 90 * MS, self.log);
        }
    }

    /// Fires, across several ticks and two levels, with a periodic timer among the others.
    fn fire(&self, fire: Fire) {
        let every = self.door.start_every(3 * MS, self.log);
        let before = self.log.count();
        self.start_some();
        fire(self, before + LIVE as u64);
        self.door.cancel(every);
    }
}

/// Warms up, then counts five rounds of each kind of work. With a thread that works beside this
/// one the working set depends on how far it is behind: `stuck` is where it is furthest.
fn nothing_is_allocated(what: &str, door: Door, fire: Fire, stuck: Option<&Gate>) {
    let mut load = Load::new(door);
    if let Some(stuck) = stuck {
        for _ in 0..2 {
            load.churn();
            load.batches();
        }
        // All that a round fires comes due while the thread is stuck: it then finds it due at once.
        let before = load.log.count();
        load.start_some();
        std::thread::sleep(Duration::from_millis(120));
        stuck.open();
        fire(&load, before + LIVE as u64);
    }
    for _ in 0..60 {
        load.churn();
        load.batches();
        load.fire(fire);
    }
    let mut counts = [[0; 3]; 5];
    for round in &mut counts {
        *round = [
            allocations(|| load.churn()),
            allocations(|| load.batches()),
            allocations(|| load.fire(fire)),
        ];
    }
    assert_eq!(counts, [[0; 3]; 5], "{what}: allocations in rounds of churn, batches, firing");
}

#[test]
fn s8_driven() {
    let _one = one_at_a_time();
    for (what, how) in [
        ("nobody's", None),
        ("shared", Some(SW_ATTACH_SHARED)),
        ("exclusive", Some(SW_ATTACH_EXCLUSIVE)),
    ] {
        let svc = Setup::manual(MS).start();
        if let Some(how) = how {
            assert_eq!(svc.attach(0, how), SW_OK);
        }
        nothing_is_allocated(
            what,
            svc.door(),
            &mut |load, until| {
                for _ in 0..100 {
                    load.door.run(MS);
                }
                assert!(load.log.count() >= until);
            },
            None,
        );
    }
}

#[test]
fn s8_threaded() {
    let _one = one_at_a_time();
    let count_me = |_| COUNTED.with(|counted| counted.set(true));
    let svc = Setup::threaded(1).on_thread_start(count_me).start();
    static STUCK: Gate = Gate::new();
    svc.timer().run(|_| STUCK.wait()).start();
    let fire = &mut |load: &Load, until| {
        while load.log.count() < until {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    nothing_is_allocated("threaded", svc.door(), fire, Some(&STUCK));
}

#[test]
fn s8_in_callbacks() {
    let _one = one_at_a_time();
    // A callback that starts, cancels and re-arms: the shard's own thread allocates nothing.
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let log = Log::counting();
    let call = move |expiry: &sw_expiry| {
        let timer = door.start(HOUR, log);
        assert_eq!(door.cancel(timer), SW_OK);
        door.start(MS, log);
        assert_eq!(door.reset(expiry.timer, MS), SW_OK);
    };
    for _ in 0..50 {
        svc.timer().delay(MS).run(call).start();
    }
    for _ in 0..2_000 {
        svc.run(MS);
    }
    let count = allocations(|| {
        for _ in 0..2_000 {
            assert_eq!(svc.run(MS), 100);
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn s8_through_a_queue() {
    let _one = one_at_a_time();
    let svc = Setup::manual(MS).start();
    let queue = svc.queue();
    let log = Log::counting();
    let spec = svc.timer().log(log).queue(queue).spec();
    // SAFETY: plain numbers and pointers.
    let mut events: [sw_event; 64] = unsafe { std::mem::zeroed() };
    let mut round = || {
        for i in 0..500 {
            let spec = sw_timer_spec { delay_ns: i % 20 * MS, ..spec };
            svc.start_spec(&spec).unwrap();
        }
        let mut all = 0;
        for _ in 0..25 {
            svc.run(MS);
            loop {
                let mut taken = 0;
                let to = events.as_mut_ptr();
                // SAFETY: room for so many.
                let status = unsafe { sw_queue_poll(queue.raw(), to, events.len(), &mut taken) };
                assert_eq!(status, SW_OK);
                all += taken;
                if taken == 0 {
                    break;
                }
            }
        }
        assert_eq!(all, 500);
    };
    for _ in 0..20 {
        round();
    }
    assert_eq!(allocations(|| (0..20).for_each(|_| round())), 0);
}
