//! What is counted: operations through the C ABI on a driven shard with a manual clock, so that each
//! run does the same.
//!
//! Each operation is done once to warm up, and then `TIMES` times inside of `counted`, where the
//! counting begins and ends. "exclusive" and "shared" are the owner's, which has attached so; "foreign"
//! are those of another thread, on a shard that its owner has attached to shared.

use shardwheel::capi::*;
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Operations in one call of `counted`.
pub const TIMES: usize = 1024;
/// Timers that are there all the time.
const PENDING: usize = 20_000;
/// Specs in a batch.
const BATCH: usize = 64;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Callgrind counts from here to the return.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn counted(work: &mut &mut dyn FnMut()) {
    work();
    // So that the call above is not the last thing done here, which would be a jump.
    black_box(work);
}

unsafe extern "C-unwind" fn nothing(_ctx: *mut c_void, _expiry: *const sw_expiry) {}

type Start = unsafe extern "C" fn(
    *mut sw_service,
    u64,
    sw_callback,
    *mut c_void,
    *mut sw_timer,
) -> sw_status;

type Poll = unsafe extern "C" fn(*mut sw_service, u32, usize, *mut usize) -> sw_status;
type Cancel = unsafe extern "C" fn(*mut sw_service, sw_timer) -> sw_status;
type Reset = unsafe extern "C" fn(*mut sw_service, sw_timer, u64) -> sw_status;
type StartBatch =
    unsafe extern "C" fn(*mut sw_service, *const sw_timer_spec, usize, *mut sw_timer) -> sw_status;
type CancelBatch =
    unsafe extern "C" fn(*mut sw_service, *const sw_timer, usize, *mut usize) -> sw_status;

/// A service, and the timers of the operation that is counted. The owner and the other thread use it in
/// turn.
struct Bench {
    service: *mut sw_service,
    timers: Vec<sw_timer>,
    specs: Vec<sw_timer_spec>,
    now: u64,
}

// SAFETY: a service is used from any thread.
unsafe impl Send for Bench {}

// SAFETY, for all calls below: the service lives as long as the program; outputs can be written; the
// callback needs nothing.
impl Bench {
    fn new(how: u32) -> Bench {
        let mut service = null_mut();
        // SAFETY: see above.
        let now = unsafe {
            let mut config = std::mem::zeroed();
            sw_config_init(&mut config);
            config.mode = SW_MODE_DRIVEN as u32;
            config.clock = SW_CLOCK_MANUAL as u32;
            config.shards = 1;
            assert_eq!(sw_service_start(&config, &mut service), SW_OK);
            assert_eq!(sw_shard_attach(service, 0, how), SW_OK);
            sw_clock_advance(service, 12_345 * SECOND);
            sw_clock_now(service)
        };
        let mut bench = Bench { service, timers: vec![0; TIMES], specs: Vec::new(), now };
        bench.specs = (0..TIMES).map(|nth| bench.spec(nth)).collect();
        for nth in 0..PENDING {
            let deadline = now + 3_600 * SECOND + nth as u64 * 997_001;
            let mut timer = 0;
            // SAFETY: see above.
            unsafe { sw_timer_start_at(service, deadline, Some(nothing), null_mut(), &mut timer) };
        }
        bench.poll();
        bench
    }

    /// One of 1,024 delays, of 1 s to 61 s.
    fn delay(nth: usize) -> u64 {
        SECOND + (nth as u64 * 7_919) % 60_000 * MS
    }

    fn spec(&self, nth: usize) -> sw_timer_spec {
        // SAFETY: see above.
        unsafe {
            let mut spec = std::mem::zeroed();
            sw_timer_spec_init(&mut spec);
            spec.callback = Some(nothing);
            spec.delay_ns = Bench::delay(nth);
            spec
        }
    }

    fn poll(&mut self) -> usize {
        let (poll, mut fired) = (black_box(sw_shard_poll as Poll), 0);
        // SAFETY: see above.
        assert_eq!(unsafe { poll(self.service, 0, 0, &mut fired) }, SW_OK);
        fired
    }

    fn start_by(&mut self, start: Start, time: impl Fn(usize) -> u64) {
        let start = black_box(start);
        for (nth, timer) in self.timers.iter_mut().enumerate() {
            // SAFETY: see above.
            unsafe { start(self.service, time(nth), Some(nothing), null_mut(), timer) };
        }
    }

    fn start_at(&mut self) {
        let now = self.now;
        self.start_by(sw_timer_start_at, |nth| now + Bench::delay(nth));
    }

    fn start(&mut self) {
        self.start_by(sw_timer_start, Bench::delay);
    }

    fn start_batch(&mut self) {
        let start = black_box(sw_timer_start_batch as StartBatch);
        for (specs, timers) in self.specs.chunks(BATCH).zip(self.timers.chunks_mut(BATCH)) {
            // SAFETY: see above.
            let status = unsafe { start(self.service, specs.as_ptr(), BATCH, timers.as_mut_ptr()) };
            assert_eq!(status, SW_OK);
        }
    }

    fn cancel(&mut self) {
        let cancel = black_box(sw_timer_cancel as Cancel);
        for &timer in &self.timers {
            // SAFETY: see above.
            unsafe { cancel(self.service, timer) };
        }
    }

    fn cancel_batch(&mut self) {
        let cancel = black_box(sw_timer_cancel_batch as CancelBatch);
        for timers in self.timers.chunks(BATCH) {
            // SAFETY: see above.
            let status = unsafe { cancel(self.service, timers.as_ptr(), BATCH, null_mut()) };
            assert_eq!(status, SW_OK);
        }
    }

    fn start_and_cancel(&mut self) {
        let start = black_box(sw_timer_start_at as Start);
        let cancel = black_box(sw_timer_cancel as Cancel);
        for nth in 0..TIMES {
            let (deadline, mut timer) = (self.now + Bench::delay(nth), 0);
            // SAFETY: see above.
            unsafe {
                start(self.service, deadline, Some(nothing), null_mut(), &mut timer);
                cancel(self.service, timer);
            }
        }
    }

    fn reset(&mut self, time: impl Fn(u64) -> u64) {
        let reset = black_box(sw_timer_reset_at as Reset);
        for (nth, &timer) in self.timers.iter().enumerate() {
            // SAFETY: see above.
            unsafe { reset(self.service, timer, self.now + time(Bench::delay(nth))) };
        }
    }

    fn reset_later(&mut self) {
        self.reset(|delay| delay + 30 * SECOND);
    }

    fn reset_earlier(&mut self) {
        self.reset(|delay| delay / 2);
    }

    /// All that has been started becomes due.
    fn pass(&mut self) {
        // SAFETY: see above.
        unsafe {
            sw_clock_advance(self.service, 100 * SECOND);
            self.now = sw_clock_now(self.service);
        }
    }

    fn fire(&mut self) {
        assert_eq!(self.poll(), TIMES);
    }
}

type Work = fn(&mut Bench);

/// An operation that is counted, with what comes before and after it.
struct Operation {
    name: &'static str,
    before: Work,
    counted: Work,
    after: Work,
}

const fn operation(name: &'static str, before: Work, counted: Work, after: Work) -> Operation {
    Operation { name, before, counted, after }
}

fn none(_: &mut Bench) {}

/// What any thread may do.
const ANYWHERE: [Operation; 8] = [
    operation("start", none, Bench::start, Bench::cancel),
    operation("start_at", none, Bench::start_at, Bench::cancel),
    operation("cancel", Bench::start_at, Bench::cancel, none),
    operation("start_at and cancel", none, Bench::start_and_cancel, none),
    operation("reset later", Bench::start_at, Bench::reset_later, Bench::cancel),
    operation("reset earlier", Bench::start_at, Bench::reset_earlier, Bench::cancel),
    operation("start of a batch", none, Bench::start_batch, Bench::cancel),
    operation("cancel of a batch", Bench::start_at, Bench::cancel_batch, none),
];

/// Another thread, which does what it is sent.
struct Foreign {
    jobs: Sender<(Bench, Work, bool)>,
    done: Receiver<Bench>,
}

impl Foreign {
    fn new() -> Foreign {
        let ((jobs, to_do), (report, done)) = (channel::<(Bench, Work, bool)>(), channel());
        thread::spawn(move || {
            for (mut bench, work, count) in to_do {
                perform(&mut bench, work, count);
                let _ = report.send(bench);
            }
        });
        Foreign { jobs, done }
    }

    fn perform(&self, bench: Bench, work: Work, count: bool) -> Bench {
        self.jobs.send((bench, work, count)).expect("the thread runs");
        self.done.recv().expect("the thread runs")
    }
}

fn perform(bench: &mut Bench, work: Work, count: bool) {
    if count {
        let mut job = || work(bench);
        counted(&mut (&mut job as &mut dyn FnMut()));
    } else {
        work(bench);
    }
}

/// The counted operations, in the order of the counting.
pub fn names() -> Vec<String> {
    let of = |who: &str| {
        let who = who.to_string();
        ANYWHERE.iter().map(move |operation| format!("{}, {who}", operation.name))
    };
    let owner = |how: &str| of(how).chain([format!("fire, {how}")]).collect::<Vec<_>>();
    let foreign = of("foreign").chain(["take in and fire, foreign".to_string()]);
    owner("exclusive").into_iter().chain(owner("shared")).chain(foreign).collect()
}

/// Does all of it. The first round of each operation warms up.
pub fn run() {
    for how in [SW_ATTACH_EXCLUSIVE, SW_ATTACH_SHARED] {
        let mut bench = Bench::new(how);
        for Operation { before, counted, after, .. } in &ANYWHERE {
            for count in [false, true] {
                perform(&mut bench, *before, false);
                perform(&mut bench, *counted, count);
                perform(&mut bench, *after, false);
                bench.poll();
            }
        }
        for count in [false, true] {
            bench.start_at();
            bench.pass();
            perform(&mut bench, Bench::fire, count);
        }
    }
    let (mut bench, other) = (Bench::new(SW_ATTACH_SHARED), Foreign::new());
    for Operation { before, counted, after, .. } in &ANYWHERE {
        for count in [false, true] {
            bench = other.perform(bench, *before, false);
            bench.poll();
            bench = other.perform(bench, *counted, count);
            bench = other.perform(bench, *after, false);
            bench.poll();
        }
    }
    for count in [false, true] {
        bench = other.perform(bench, Bench::start_at, false);
        bench.pass();
        perform(&mut bench, Bench::fire, count);
    }
}
