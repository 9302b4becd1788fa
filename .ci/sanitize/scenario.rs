//! The scenario for ThreadSanitizer: two shards with threads of their own, and four threads of the host that
//! start, push out, cancel, wait for and take timers while they fire, until the service is stopped under them.
//!
//! Ground rules: between the threads of the host there is nothing but threads as the system makes them
//! (`pthread_create`, `pthread_join`) and atomics, because the sanitizer sees into both, and not into the
//! standard library, which is not built with it. What the host's functions share with the host is written
//! plainly, without atomics, wherever the contract says that it may be: a context is written before its
//! start, read and written by its callback, and read after `cancel_wait`, after its drop, or after it
//! was taken from a queue. An order that the library fails to give is a race here.

use shardwheel::capi::*;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

const US: u64 = 1_000;
const THREADS: usize = 4;

/// What a timer is about. Plain memory.
#[derive(Default)]
struct Work {
    written_before: u64,
    runs: u64,
    dropped: u64,
}

struct Ctx {
    work: UnsafeCell<Work>,
    drops: AtomicU32,
}

static STOP: AtomicBool = AtomicBool::new(false);
static RUNS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);

fn ctx(number: u64) -> *mut Ctx {
    LIVE.fetch_add(1, Ordering::Relaxed);
    let work = UnsafeCell::new(Work { written_before: number, ..Work::default() });
    Box::into_raw(Box::new(Ctx { work, drops: AtomicU32::new(0) }))
}

/// Frees a context: whoever does so was the last to have it.
unsafe fn free(ctx: *mut Ctx) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(ctx) });
    LIVE.fetch_sub(1, Ordering::Relaxed);
}

unsafe extern "C-unwind" fn call(raw: *mut c_void, expiry: *const sw_expiry) {
    // SAFETY: the library orders callbacks of one timer, and starts before callbacks.
    unsafe {
        let work = (*raw.cast::<Ctx>()).work.get();
        assert_ne!((*work).written_before, 0);
        assert_eq!((*work).dropped, 0);
        (*work).runs += (*expiry).now_ns - (*expiry).deadline_ns + 1;
    }
    // Relaxed: a count.
    RUNS.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C-unwind" fn dropped(raw: *mut c_void) {
    let ctx = raw.cast::<Ctx>();
    // SAFETY: a drop comes after all callbacks and runs once; then nobody has the context.
    unsafe {
        (*(*ctx).work.get()).dropped += 1;
        assert_eq!((*ctx).drops.fetch_add(1, Ordering::Relaxed), 0);
        free(ctx);
    }
}

struct Host {
    service: *mut sw_service,
    queue: *mut sw_queue,
    seed: u64,
}

impl Host {
    fn next(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 11) % below
    }

    /// One timer's life, of one of six kinds.
    ///
    /// # Safety
    /// The service and the queue are alive.
    unsafe fn step(&mut self) {
        // SAFETY: init fills the spec in; contexts live as `call` and `dropped` say.
        unsafe {
            let mut spec = std::mem::MaybeUninit::<sw_timer_spec>::uninit();
            sw_timer_spec_init(spec.as_mut_ptr());
            let mut spec = spec.assume_init();
            spec.ctx = ctx(1 + self.next(1_000)).cast();
            spec.drop = Some(dropped);
            spec.callback = Some(call);
            spec.delay_ns = self.next(300) * US;
            spec.shard = [SW_SHARD_ANY, 0, 1][self.next(3) as usize];
            let kind = self.next(6);
            match kind {
                1 => spec.period_ns = 20 * US,
                2 => (spec.queue, spec.callback) = (self.queue, None),
                _ => {}
            }
            let mut timer = 0;
            if sw_timer_start_spec(self.service, &spec, &mut timer) != SW_OK {
                return;
            }
            match kind {
                0 => {}
                1 => {
                    let _ = sw_timer_reset(self.service, timer, self.next(50) * US);
                    let _ = sw_timer_cancel_wait(self.service, timer);
                }
                2 => self.take(),
                3 => {
                    let _ = sw_timer_reset(self.service, timer, 1_000 * US);
                    let _ = sw_timer_cancel(self.service, timer);
                }
                4 => {
                    let _ = sw_timer_reset(self.service, timer, 1 * US);
                    let _ = sw_timer_cancel(self.service, timer);
                }
                _ => self.watched(),
            }
        }
    }

    /// A timer without a drop, whose context is read and freed once `cancel_wait` says that all is over.
    unsafe fn watched(&mut self) {
        let ctx = ctx(7);
        let delay_ns = self.next(30) * US;
        let mut timer = 0;
        // SAFETY: the context is freed when the timer has ended, or never was.
        unsafe {
            if sw_timer_start(self.service, delay_ns, Some(call), ctx.cast(), &mut timer) == SW_OK {
                for _ in 0..self.next(200) {
                    std::hint::spin_loop();
                }
                if sw_timer_cancel_wait(self.service, timer) == SW_STOPPED {
                    // Handed back by stop, or fired: `main` reads it only when stop is over.
                    return;
                }
            }
            assert!((*(*ctx).work.get()).written_before == 7);
            (*(*ctx).work.get()).runs += 1;
            free(ctx);
        }
    }

    unsafe fn take(&mut self) {
        let mut events = Vec::<sw_event>::with_capacity(8);
        let mut taken = 0;
        // SAFETY: room for eight; a one-shot's context is the taker's.
        unsafe {
            if sw_queue_poll(self.queue, events.as_mut_ptr(), 8, &mut taken) != SW_OK {
                return;
            }
            events.set_len(taken);
            for event in events {
                let ctx = event.ctx.cast::<Ctx>();
                assert_ne!((*(*ctx).work.get()).written_before, 0);
                (*(*ctx).work.get()).runs += 1;
                free(ctx);
                TAKEN.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

extern "C" fn run(host: *mut c_void) -> *mut c_void {
    // SAFETY: `main` made it for this thread alone, and joins before it goes.
    let host = unsafe { &mut *host.cast::<Host>() };
    while !STOP.load(Ordering::Relaxed) {
        // SAFETY: freed after the join.
        unsafe { host.step() };
    }
    null_mut()
}

fn round(number: u64) {
    // SAFETY: init fills the configuration in; the service outlives its threads of the host.
    unsafe {
        let mut config = std::mem::MaybeUninit::<sw_config>::uninit();
        sw_config_init(config.as_mut_ptr());
        let mut config = config.assume_init();
        (config.shards, config.pinning, config.tick_ns) = (2, SW_PIN_NONE as u32, 10 * US);
        let (mut service, mut queue) = (null_mut(), null_mut());
        assert_eq!(sw_service_start(&config, &mut service), SW_OK);
        assert_eq!(sw_queue_new(service, &mut queue), SW_OK);
        STOP.store(false, Ordering::Relaxed);
        let mut hosts: Vec<Host> = (1..=THREADS as u64)
            .map(|nth| Host { service, queue, seed: (number * 8 + nth).wrapping_mul(0x9e37_79b9_97f4_a7c1) })
            .collect();
        let mut threads = Vec::new();
        for host in &mut hosts {
            let mut thread = std::mem::MaybeUninit::<libc::pthread_t>::uninit();
            let host = std::ptr::from_mut(host).cast();
            assert_eq!(libc::pthread_create(thread.as_mut_ptr(), std::ptr::null(), run, host), 0);
            threads.push(thread.assume_init());
        }
        libc::usleep(200_000);
        // Under their hands.
        assert_eq!(sw_service_stop(service, None, null_mut(), null_mut()), SW_OK);
        STOP.store(true, Ordering::Relaxed);
        for thread in threads {
            assert_eq!(libc::pthread_join(thread, null_mut()), 0);
        }
        let mut stats: sw_stats = std::mem::zeroed();
        stats.size = size_of::<sw_stats>();
        assert_eq!(sw_stats_read(service, SW_SHARD_ANY, &mut stats), SW_OK);
        assert_eq!(stats.started, stats.ended_by_fire + stats.cancelled + stats.returned);
        assert_eq!(sw_service_free(service), SW_OK);
    }
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(20, |count| count.parse().expect("a number"));
    (1..=rounds).for_each(round);
    let (runs, taken) = (RUNS.load(Ordering::Relaxed), TAKEN.load(Ordering::Relaxed));
    // A handful of contexts without a drop were handed back while stop ran.
    let left = LIVE.load(Ordering::Relaxed);
    assert!(left <= rounds * THREADS as u64, "{left} contexts are left");
    println!("{rounds} rounds: {runs} callbacks, {taken} events taken, no race");
}
