//! The hot operations, `TIMES` of each at a time, through the C ABI. The instruction counts and the
//! criterion benches measure the same ones.
//!
//! A driven shard has a manual clock, so that each run does the same. A threaded service has the
//! machine's.

use shardwheel::capi::*;
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::null_mut;

/// Operations in one call.
pub const TIMES: usize = 1_024;
/// Specs in a batch.
const BATCH: usize = 64;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const HOUR: u64 = 3_600 * SECOND;

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

/// A service with timers that are live all the time, and those that an operation works on. The owner
/// and another thread may use it in turn.
pub struct Bench {
    service: *mut sw_service,
    is_driven: bool,
    live: Vec<sw_timer>,
    /// The handles to work on.
    timers: Vec<sw_timer>,
    /// Where in `live` they are from.
    chosen: Vec<usize>,
    random: u64,
    specs: Vec<sw_timer_spec>,
    now: u64,
}

// SAFETY: a service is used from any thread.
unsafe impl Send for Bench {}

// SAFETY, for all calls below: the service lives as long as the bench; outputs can be written; the
// callback needs nothing.
impl Bench {
    /// A driven shard, which the calling thread attaches to, with so many live timers.
    pub fn driven(how: u32, live: usize) -> Bench {
        let bench = Bench::with(SW_MODE_DRIVEN, SW_CLOCK_MANUAL, 1);
        // SAFETY: see above.
        unsafe {
            assert_eq!(sw_shard_attach(bench.service, 0, how), SW_OK);
            sw_clock_advance(bench.service, 12_345 * SECOND);
        }
        bench.filled(live)
    }

    /// A service of two shards with threads.
    #[allow(dead_code)] // The counts do not have it.
    pub fn threaded(live: usize) -> Bench {
        Bench::with(SW_MODE_THREADED, SW_CLOCK_MONOTONIC, 2).filled(live)
    }

    fn with(mode: sw_mode, clock: sw_clock, shards: u32) -> Bench {
        let mut service = null_mut();
        // SAFETY: see above.
        unsafe {
            let mut config = std::mem::zeroed();
            sw_config_init(&mut config);
            (config.mode, config.clock, config.shards) = (mode as u32, clock as u32, shards);
            assert_eq!(sw_service_start(&config, &mut service), SW_OK);
        }
        Bench {
            service,
            is_driven: mode == SW_MODE_DRIVEN,
            live: Vec::new(),
            timers: vec![0; TIMES],
            chosen: vec![0; TIMES],
            random: 1,
            specs: (0..TIMES).map(spec).collect(),
            now: 0,
        }
    }

    fn filled(mut self, live: usize) -> Bench {
        self.turn();
        for nth in 0..live {
            let (deadline, mut timer) = (self.now + 2_000 * HOUR + nth as u64 * 997_001, 0);
            // SAFETY: see above.
            let status = unsafe {
                sw_timer_start_at(self.service, deadline, Some(nothing), null_mut(), &mut timer)
            };
            assert_eq!(status, SW_OK);
            self.live.push(timer);
        }
        self.turn();
        self
    }

    /// What an owner's loop does now and then. Answers how many timers fired.
    pub fn turn(&mut self) -> usize {
        let (poll, mut fired) = (black_box(sw_shard_poll as Poll), 0);
        if self.is_driven {
            // SAFETY: see above.
            assert_eq!(unsafe { poll(self.service, 0, 0, &mut fired) }, SW_OK);
        }
        // SAFETY: see above.
        self.now = unsafe { sw_clock_now(self.service) };
        fired
    }

    fn start_by(&mut self, start: Start, time: impl Fn(usize) -> u64) {
        let start = black_box(start);
        for (nth, timer) in self.timers.iter_mut().enumerate() {
            // SAFETY: see above.
            unsafe { start(self.service, time(nth), Some(nothing), null_mut(), timer) };
        }
    }

    pub fn start_at(&mut self) {
        let now = self.now;
        self.start_by(sw_timer_start_at, |nth| now + delay(nth));
    }

    fn start(&mut self) {
        self.start_by(sw_timer_start, delay);
    }

    fn start_batch(&mut self) {
        let start = black_box(sw_timer_start_batch as StartBatch);
        for (specs, timers) in self.specs.chunks(BATCH).zip(self.timers.chunks_mut(BATCH)) {
            // SAFETY: see above.
            let status = unsafe { start(self.service, specs.as_ptr(), BATCH, timers.as_mut_ptr()) };
            assert_eq!(status, SW_OK);
        }
    }

    /// Chooses some of the live timers.
    fn choose(&mut self) {
        for (timer, chosen) in self.timers.iter_mut().zip(&mut self.chosen) {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *chosen = (self.random >> 33) as usize % self.live.len();
            *timer = self.live[*chosen];
        }
    }

    /// Starts a timer for each of the chosen ones, which have ended.
    fn replace(&mut self) {
        let now = self.now;
        self.start_by(sw_timer_start_at, |nth| now + 2_000 * HOUR + delay(nth));
        for (&timer, &chosen) in self.timers.iter().zip(&self.chosen) {
            self.live[chosen] = timer;
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
        let (start, cancel) =
            (black_box(sw_timer_start_at as Start), black_box(sw_timer_cancel as Cancel));
        for nth in 0..TIMES {
            let (deadline, mut timer) = (self.now + delay(nth), 0);
            // SAFETY: see above.
            unsafe {
                start(self.service, deadline, Some(nothing), null_mut(), &mut timer);
                cancel(self.service, timer);
            }
        }
    }

    fn reset(&mut self, to: u64) {
        let reset = black_box(sw_timer_reset_at as Reset);
        for (nth, &timer) in self.timers.iter().enumerate() {
            // SAFETY: see above.
            unsafe { reset(self.service, timer, self.now + to + delay(nth)) };
        }
    }

    fn reset_later(&mut self) {
        self.reset(3_000 * HOUR);
    }

    fn choose_and_reset_later(&mut self) {
        self.choose();
        self.reset_later();
    }

    fn reset_earlier(&mut self) {
        self.reset(1_000 * HOUR);
    }

    /// What has been started becomes due, and nothing else.
    pub fn pass(&mut self) {
        // SAFETY: see above.
        assert_eq!(unsafe { sw_clock_advance(self.service, 62 * SECOND) }, SW_OK);
    }

    pub fn fire(&mut self) {
        assert_eq!(self.turn(), TIMES);
    }

    /// So many are due in one tick from now on.
    #[allow(dead_code)] // The counts do not have it.
    pub fn gather_storm(&mut self, count: usize) {
        let deadline = self.now + MS;
        for _ in 0..count {
            // SAFETY: see above.
            let status = unsafe {
                sw_timer_start_at(self.service, deadline, Some(nothing), null_mut(), null_mut())
            };
            assert_eq!(status, SW_OK);
        }
        assert_eq!(self.turn(), 0);
        // SAFETY: see above.
        assert_eq!(unsafe { sw_clock_advance(self.service, MS) }, SW_OK);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // SAFETY: see above; nobody else uses it any more.
        unsafe { sw_service_free(self.service) };
    }
}

/// One of so many delays, of 1 s to 61 s.
fn delay(nth: usize) -> u64 {
    SECOND + (nth as u64 * 7_919) % 60_000 * MS
}

fn spec(nth: usize) -> sw_timer_spec {
    // SAFETY: plain data that can be written.
    let mut spec = unsafe {
        let mut spec = std::mem::zeroed();
        sw_timer_spec_init(&mut spec);
        spec
    };
    spec.callback = Some(nothing);
    spec.delay_ns = delay(nth);
    spec
}

pub type Work = fn(&mut Bench);

/// An operation, with what makes it possible and what undoes it.
pub struct Operation {
    pub name: &'static str,
    pub before: Work,
    pub work: Work,
    pub after: Work,
}

const fn operation(name: &'static str, before: Work, work: Work, after: Work) -> Operation {
    Operation { name, before, work, after }
}

fn none(_: &mut Bench) {}

/// What any thread may do.
pub const ANYWHERE: [Operation; 8] = [
    operation("start", none, Bench::start, Bench::cancel),
    operation("start_at", none, Bench::start_at, Bench::cancel),
    operation("cancel", Bench::choose, Bench::cancel, Bench::replace),
    operation("start_at and cancel", none, Bench::start_and_cancel, none),
    operation("reset later", Bench::choose, Bench::reset_later, none),
    operation("reset earlier", Bench::choose_and_reset_later, Bench::reset_earlier, none),
    operation("start of a batch", none, Bench::start_batch, Bench::cancel),
    operation("cancel of a batch", Bench::choose, Bench::cancel_batch, Bench::replace),
];
