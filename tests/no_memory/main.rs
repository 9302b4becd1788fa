//! An allocator that fails: whatever call needs memory and gets none is refused, or goes on later, and
//! nothing is lost.
//!
//! A test binary of its own, because its global allocator refuses the n-th allocation that the library makes,
//! for every n of a scenario: that one alone, or all from then on. The test's own allocations are not
//! refused.

#![cfg(all(feature = "capi", not(loom)))]

mod rust_api;
#[path = "../support/mod.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::*;

struct Failing;

thread_local! {
    /// Does this thread run the library's code?
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Do all threads but the harness's own, which goes on beside the test?
static ALL: AtomicBool = AtomicBool::new(false);
/// Allocations of the library so far; which of them are refused.
static COUNT: AtomicU64 = AtomicU64::new(0);
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
static REFUSED: AtomicU64 = AtomicU64::new(0);

fn is_first_thread() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::gettid() == libc::getpid() }
}

fn refuses() -> bool {
    let inside = INSIDE.try_with(Cell::get).unwrap_or(false);
    if !inside && (!ALL.load(Ordering::SeqCst) || is_first_thread()) {
        return false;
    }
    let nth = COUNT.fetch_add(1, Ordering::SeqCst);
    let refused = (FIRST.load(Ordering::SeqCst)..=LAST.load(Ordering::SeqCst)).contains(&nth);
    REFUSED.fetch_add(refused.into(), Ordering::SeqCst);
    refused
}

// SAFETY: hands everything that is not refused to the system's allocator.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        if refuses() { null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        if refuses() { null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        if refuses() { null_mut() } else { unsafe { System.realloc(at, layout, size) } }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Nothing is refused any more; answers how many allocations there were, and how many were refused.
fn relent() -> (u64, u64) {
    FIRST.store(u64::MAX, Ordering::SeqCst);
    (COUNT.load(Ordering::SeqCst), REFUSED.load(Ordering::SeqCst))
}

/// From now on the allocations from the `nth` to the `last` are refused.
fn refuse(nth: u64, last: u64) {
    COUNT.store(0, Ordering::SeqCst);
    REFUSED.store(0, Ordering::SeqCst);
    LAST.store(last, Ordering::SeqCst);
    FIRST.store(nth, Ordering::SeqCst);
}

/// A call of the library: its allocations count.
fn call<T>(work: impl FnOnce() -> T) -> T {
    INSIDE.set(true);
    let answer = work();
    INSIDE.set(false);
    answer
}

/// What has been asked for and what has come of it.
struct Run {
    door: Door,
    log: Log,
    spec: sw_timer_spec,
    accepted: Vec<sw_timer>,
    /// Specs with a drop function, accepted or not.
    offered: u64,
    /// Cancelled while memory was short.
    cancelled: u64,
    taken: u64,
    /// Made and refused.
    allocations: (u64, u64),
}

// SAFETY: what the pointers in a spec name here is used by any thread.
unsafe impl Send for Run {}

impl Run {
    #[track_caller]
    fn done(&mut self, status: sw_status, timers: &[sw_timer]) {
        match status {
            SW_OK => self.accepted.extend(timers),
            SW_NO_MEMORY => {}
            other => panic!("{other:?}"),
        }
    }

    fn plain(&mut self, delay_ns: u64) {
        let (raw, log, mut timer) = (self.door.raw(), self.log, SW_TIMER_NONE);
        let back = Some(Log::callback as unsafe extern "C-unwind" fn(_, _));
        // SAFETY: the log takes its own context.
        let status = call(|| unsafe { sw_timer_start(raw, delay_ns, back, log.ctx(), &mut timer) });
        self.done(status, &[timer]);
    }

    fn with_spec(&mut self, edit: impl FnOnce(&mut sw_timer_spec)) {
        let (raw, mut spec, mut timer) = (self.door.raw(), self.spec, SW_TIMER_NONE);
        edit(&mut spec);
        self.offered += u64::from(spec.queue.is_null());
        // SAFETY: a good spec.
        let status = call(|| unsafe { sw_timer_start_spec(raw, &spec, &mut timer) });
        self.done(status, &[timer]);
    }

    fn batch(&mut self, count: usize) {
        let specs = vec![sw_timer_spec { delay_ns: 3 * HOUR, ..self.spec }; count];
        let mut timers = vec![SW_TIMER_NONE; count];
        self.offered += count as u64;
        let (raw, out) = (self.door.raw(), timers.as_mut_ptr());
        // SAFETY: as many specs as handles.
        let status = call(|| unsafe { sw_timer_start_batch(raw, specs.as_ptr(), count, out) });
        self.done(status, &timers);
    }

    fn reset(&self, timer: sw_timer, delay_ns: u64) {
        let raw = self.door.raw();
        // SAFETY: any handle will do.
        let status = call(|| unsafe { sw_timer_reset(raw, timer, delay_ns) });
        let expected = [SW_OK, SW_NO_MEMORY, SW_NOT_FOUND, SW_RUNNING];
        assert!(expected.contains(&status), "{status:?}");
    }

    fn cancel(&mut self, timer: sw_timer) {
        let raw = self.door.raw();
        // SAFETY: any handle will do.
        match call(|| unsafe { sw_timer_cancel(raw, timer) }) {
            SW_OK => self.cancelled += 1,
            // It ends by firing. Or this thread has nothing here yet.
            SW_NOT_FOUND | SW_RUNNING | SW_NO_MEMORY => {}
            other => panic!("{other:?}"),
        }
    }

    fn poll(&self) {
        let raw = self.door.raw();
        // SAFETY: no output is asked for.
        let status = call(|| unsafe { sw_shard_poll(raw, 0, 0, null_mut()) });
        assert!(matches!(status, SW_OK | SW_NO_MEMORY), "{status:?}");
    }

    /// Everything that asks for memory, on a thread that has nothing of its own here yet.
    fn all(&mut self, driven: bool) {
        let raw = self.door.raw();
        for nth in 0..300 {
            self.plain(nth * 7 % 90 * MS);
        }
        let mut queue = null_mut();
        // SAFETY: here and below: the service lives, outputs are writable.
        match call(|| unsafe { sw_queue_new(raw, &mut queue) }) {
            SW_OK => {
                for nth in 0..100 {
                    self.with_spec(|spec| {
                        (spec.delay_ns, spec.queue) = (nth % 50 * MS, queue);
                        (spec.drop, spec.callback) = (None, None);
                    });
                }
            }
            status => assert_eq!(status, SW_NO_MEMORY),
        }
        for nth in 0..100 {
            self.with_spec(|spec| (spec.delay_ns, spec.slack_ns) = (nth * MS, 5 * MS));
            self.with_spec(|spec| (spec.delay_ns, spec.flags) = (1 << 63, SW_TIMER_ABSOLUTE));
        }
        self.batch(200);
        if driven {
            self.poll();
            self.door.advance(40 * MS);
            self.poll();
        }
        for at in (0..self.accepted.len()).step_by(3) {
            self.reset(self.accepted[at], 60 * MS);
            self.reset(self.accepted[at], 20 * MS);
        }
        for at in (1..self.accepted.len()).step_by(3) {
            self.cancel(self.accepted[at]);
        }
        for nth in 0..2_000 {
            self.plain(nth % 70 * SEC);
        }
        self.operate();
        if driven {
            self.door.advance(40 * MS);
            self.poll();
        }
        if !queue.is_null() {
            self.take(queue);
        }
        // What is left is taken or cancelled with memory at hand.
        self.allocations = relent();
        self.end(queue, driven);
    }

    fn operate(&self) {
        let raw = self.door.raw();
        let blank = sw_pending { timer: 0, deadline_ns: 0, period_ns: 0, ctx: null_mut() };
        let (mut pending, mut place, mut needed) = ([blank; 8], 0, 0);
        // SAFETY: outputs are writable and as large as said.
        call(|| unsafe {
            let (out, count) = (pending.as_mut_ptr(), &raw mut needed);
            assert_eq!(sw_shard_visit(raw, 0, &mut place, out, 8, count), SW_OK);
            for print in [sw_stats_prometheus, sw_stats_report] {
                let status = print(raw, null_mut(), 0, &mut needed);
                assert!(matches!(status, SW_OK | SW_NO_MEMORY), "{status:?}");
            }
            let status = sw_service_trim(raw);
            assert!(matches!(status, SW_OK | SW_NO_MEMORY), "{status:?}");
        });
        self.door.stats();
    }

    fn take(&mut self, queue: *mut sw_queue) {
        // SAFETY: plain numbers and pointers.
        let mut events: [sw_event; 32] = unsafe { std::mem::zeroed() };
        loop {
            let mut taken = 0;
            let out = events.as_mut_ptr();
            // SAFETY: the queue lives; there is room for 32.
            match call(|| unsafe { sw_queue_poll(queue, out, 32, &mut taken) }) {
                SW_OK if taken == 0 => return,
                SW_OK => self.taken += taken as u64,
                status => return assert_eq!(status, SW_NO_MEMORY),
            }
        }
    }

    /// Each timer that was accepted ends once: it fires, is taken, or is cancelled.
    fn end(&mut self, queue: *mut sw_queue, driven: bool) {
        let stats = self.door.stats();
        assert_eq!(stats.started, self.accepted.len() as u64);
        assert_eq!(stats.cancelled, self.cancelled);
        let quiet = |run: &mut Run| {
            if !queue.is_null() {
                run.take(queue);
            }
            let ended = run.log.count() + run.taken;
            let far = run.door.stats().pending;
            ended + far + run.cancelled == run.accepted.len() as u64
        };
        if driven {
            self.door.advance(100 * SEC);
            self.poll();
            self.poll();
            assert!(quiet(self), "a timer is lost");
            assert!(self.door.stats().pending <= 300, "the far ones and the batch are left");
        } else {
            eventually("none is lost", || quiet(self) && self.door.stats().overdue_ns == 0);
        }
        for at in 0..self.accepted.len() {
            self.cancel(self.accepted[at]);
        }
        assert!(quiet(self), "a timer ends twice");
        eventually("each drop runs once, whatever became of its timer", || {
            self.log.dropped() == self.offered
        });
        assert_eq!(self.door.stats().pending, 0);
        if !queue.is_null() {
            // SAFETY: nobody else uses it.
            assert_eq!(unsafe { sw_queue_free(queue) }, SW_OK);
        }
    }
}

/// One run with a service of its own; answers how many allocations it made and how many were refused.
fn run(driven: bool, nth: u64, last: u64) -> (u64, u64) {
    relent();
    let setup = match driven {
        true => Setup::manual(MS),
        false => Setup::threaded(1).on_thread_start(|_| INSIDE.set(true)),
    };
    let svc = setup.start();
    let (door, log) = (svc.door(), Log::counting());
    let spec = svc.timer().log(log).spec();
    let accepted = Vec::with_capacity(4_000);
    let allocations = (0, 0);
    let mut run =
        Run { door, log, spec, accepted, offered: 0, cancelled: 0, taken: 0, allocations };
    std::thread::scope(|scope| {
        let run = &mut run;
        scope.spawn(move || {
            refuse(nth, last);
            run.all(driven);
        });
    });
    run.allocations
}

/// Each allocation of the scenario is refused once; then all from each on.
fn for_every(driven: bool) {
    for forever in [false, true] {
        let mut nth = 0;
        loop {
            let (made, refused) = run(driven, nth, if forever { u64::MAX } else { nth });
            if refused == 0 {
                assert!(made > 20, "a scenario that needs memory: {made}");
                break;
            }
            nth += 1;
        }
        println!("driven {driven}, forever {forever}: {nth} allocations, each refused");
    }
}

/// Starts a service of three threads; answers what came of it, and the service.
fn start() -> (sw_status, *mut sw_service) {
    let (mut config, mut service) = (std::mem::MaybeUninit::uninit(), null_mut());
    let cpus = [0];
    // SAFETY: init fills the configuration; all of it lives during the call.
    let status = unsafe {
        sw_config_init(config.as_mut_ptr());
        let mut config = config.assume_init();
        (config.shards, config.thread_name) = (3, c"short".as_ptr());
        config.pinning = SW_PIN_LIST as u32;
        (config.cpus, config.cpu_count) = (cpus.as_ptr(), 1);
        ALL.store(true, Ordering::SeqCst);
        call(|| sw_service_start(&config, &mut service))
    };
    ALL.store(false, Ordering::SeqCst);
    (status, service)
}

fn every_start() {
    let named = || tasks().iter().filter(|(_, name)| name.starts_with("short-")).count();
    for forever in [false, true] {
        let mut nth = 0;
        loop {
            refuse(nth, if forever { u64::MAX } else { nth });
            let (status, service) = start();
            let (made, refused) = relent();
            if status == SW_OK {
                assert_eq!(named(), 3);
                // SAFETY: just started, and not used any more.
                assert_eq!(unsafe { sw_service_free(service) }, SW_OK);
            } else {
                assert_eq!((status, service), (SW_NO_MEMORY, null_mut()));
            }
            eventually("no thread is left", || named() == 0);
            if refused == 0 {
                assert!(made > 10, "a start that needs memory: {made}");
                break;
            }
            nth += 1;
        }
        println!("start, forever {forever}: {nth} allocations, each refused");
    }
}

#[test]
fn every_allocation_is_refused_once_and_for_ever() {
    every_start();
    for_every(true);
    for_every(false);
    rust_api::for_every();
}
