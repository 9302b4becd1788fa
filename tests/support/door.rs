//! The calls of a service, with Rust types. `Copy`, for closures and threads; the test sees to
//! it that the service outlives them.
//!
//! Calls whose failure a test looks at answer the status (or a `Result`); the others fail the
//! test themselves.

use super::watch::{Ptr, Watch};
use super::*;
use std::ffi::c_void;

/// A timer handed back by stop.
#[derive(Clone, Copy, Debug)]
pub struct Unfired {
    pub timer: sw_timer,
    pub ctx: Ptr,
    pub deadline: u64,
}

#[derive(Clone, Copy)]
pub struct Door {
    raw: *mut sw_service,
    watch: &'static Watch,
}
// SAFETY: the C ABI may be called from any thread.
unsafe impl Send for Door {}
// SAFETY: as above.
unsafe impl Sync for Door {}

fn answer<T>(status: sw_status, value: T) -> Result<T, sw_status> {
    if status == SW_OK { Ok(value) } else { Err(status) }
}

// SAFETY of every call here: the service is alive (the test's part), outputs are locals.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Door {
    pub(super) fn new(raw: *mut sw_service, watch: &'static Watch) -> Door {
        Door { raw, watch }
    }

    pub(super) fn watch(self) -> &'static Watch {
        self.watch
    }

    /// The service as C sees it.
    pub fn raw(self) -> *mut sw_service {
        self.raw
    }

    /// A timer to fill in and start: every field of `sw_timer_spec`, closures as callbacks.
    pub fn timer(self) -> Timer {
        Timer::new(self)
    }

    /// `sw_timer_start` on a log, without a drop.
    #[track_caller]
    pub fn start(self, delay_ns: u64, log: Log) -> sw_timer {
        self.try_start(delay_ns, log).expect("sw_timer_start")
    }

    pub fn try_start(self, delay_ns: u64, log: Log) -> Result<sw_timer, sw_status> {
        let mut timer = SW_TIMER_NONE;
        let call = Some(Log::callback as _);
        let status = unsafe { sw_timer_start(self.raw, delay_ns, call, log.ctx(), &mut timer) };
        answer(status, timer)
    }

    #[track_caller]
    pub fn start_at(self, deadline_ns: u64, log: Log) -> sw_timer {
        let mut timer = SW_TIMER_NONE;
        let call = Some(Log::callback as _);
        let status =
            unsafe { sw_timer_start_at(self.raw, deadline_ns, call, log.ctx(), &mut timer) };
        answer(status, timer).expect("sw_timer_start_at")
    }

    #[track_caller]
    pub fn start_every(self, period_ns: u64, log: Log) -> sw_timer {
        let mut timer = SW_TIMER_NONE;
        let call = Some(Log::callback as _);
        let status =
            unsafe { sw_timer_start_every(self.raw, period_ns, call, log.ctx(), &mut timer) };
        answer(status, timer).expect("sw_timer_start_every")
    }

    pub fn start_spec(self, spec: &sw_timer_spec) -> Result<sw_timer, sw_status> {
        let mut timer = SW_TIMER_NONE;
        let status = unsafe { sw_timer_start_spec(self.raw, spec, &mut timer) };
        answer(status, timer)
    }

    pub fn start_batch(self, specs: &[sw_timer_spec]) -> Result<Vec<sw_timer>, sw_status> {
        let mut timers = vec![SW_TIMER_NONE; specs.len()];
        let status = unsafe {
            sw_timer_start_batch(self.raw, specs.as_ptr(), specs.len(), timers.as_mut_ptr())
        };
        answer(status, timers)
    }

    pub fn cancel(self, timer: sw_timer) -> sw_status {
        unsafe { sw_timer_cancel(self.raw, timer) }
    }

    pub fn cancel_wait(self, timer: sw_timer) -> sw_status {
        unsafe { sw_timer_cancel_wait(self.raw, timer) }
    }

    /// How many the batch says it cancelled.
    pub fn cancel_batch(self, timers: &[sw_timer]) -> Result<usize, sw_status> {
        let mut cancelled = usize::MAX;
        let status = unsafe {
            sw_timer_cancel_batch(self.raw, timers.as_ptr(), timers.len(), &mut cancelled)
        };
        answer(status, cancelled)
    }

    pub fn reset(self, timer: sw_timer, delay_ns: u64) -> sw_status {
        unsafe { sw_timer_reset(self.raw, timer, delay_ns) }
    }

    pub fn reset_at(self, timer: sw_timer, deadline_ns: u64) -> sw_status {
        unsafe { sw_timer_reset_at(self.raw, timer, deadline_ns) }
    }

    pub fn remaining(self, timer: sw_timer) -> Result<u64, sw_status> {
        let mut left = u64::MAX;
        let status = unsafe { sw_timer_remaining(self.raw, timer, &mut left) };
        answer(status, left)
    }

    pub fn now(self) -> u64 {
        unsafe { sw_clock_now(self.raw) }
    }

    /// Moves the manual clock.
    #[track_caller]
    pub fn advance(self, by_ns: u64) {
        assert_eq!(unsafe { sw_clock_advance(self.raw, by_ns) }, SW_OK);
    }

    /// Moves the manual clock to an instant that is not in its past.
    #[track_caller]
    pub fn advance_to(self, instant_ns: u64) {
        self.advance(instant_ns.checked_sub(self.now()).expect("the clock is past that"));
    }

    /// Polls shard 0 without a budget and answers how many it delivered.
    #[track_caller]
    pub fn poll(self) -> usize {
        self.poll_shard(0)
    }

    /// Polls shard 0 for at most so many.
    #[track_caller]
    pub fn poll_budget(self, budget: usize) -> usize {
        self.try_poll(0, budget).expect("sw_shard_poll")
    }

    #[track_caller]
    pub fn poll_shard(self, shard: u32) -> usize {
        self.try_poll(shard, 0).expect("sw_shard_poll")
    }

    pub fn try_poll(self, shard: u32, budget: usize) -> Result<usize, sw_status> {
        let mut fired = 0;
        let status = unsafe { sw_shard_poll(self.raw, shard, budget, &mut fired) };
        answer(status, fired)
    }

    /// Moves the manual clock, then polls shard 0.
    #[track_caller]
    pub fn run(self, by_ns: u64) -> usize {
        self.advance(by_ns);
        self.poll()
    }

    /// Moves the manual clock to an instant, then polls shard 0.
    #[track_caller]
    pub fn run_to(self, instant_ns: u64) -> usize {
        self.advance_to(instant_ns);
        self.poll()
    }

    /// `sw_shard_next` of shard 0.
    #[track_caller]
    pub fn next(self) -> u64 {
        self.next_of(0).expect("sw_shard_next")
    }

    pub fn next_of(self, shard: u32) -> Result<u64, sw_status> {
        let mut next = 0;
        let status = unsafe { sw_shard_next(self.raw, shard, &mut next) };
        answer(status, next)
    }

    pub fn fd_of(self, shard: u32) -> Result<i32, sw_status> {
        let mut fd = -1;
        let status = unsafe { sw_shard_fd(self.raw, shard, &mut fd) };
        answer(status, fd)
    }

    /// Whether the descriptor of shard 0 is readable.
    #[track_caller]
    pub fn readable(self) -> bool {
        readable(self.fd_of(0).expect("sw_shard_fd"))
    }

    pub fn attach(self, shard: u32, how: u32) -> sw_status {
        unsafe { sw_shard_attach(self.raw, shard, how) }
    }

    pub fn detach(self, shard: u32) -> sw_status {
        unsafe { sw_shard_detach(self.raw, shard) }
    }

    #[track_caller]
    pub fn queue(self) -> Queue {
        self.try_queue().expect("sw_queue_new")
    }

    pub fn try_queue(self) -> Result<Queue, sw_status> {
        let mut queue = std::ptr::null_mut();
        let status = unsafe { sw_queue_new(self.raw, &mut queue) };
        answer(status, queue).map(Queue::new)
    }

    /// Of all shards together.
    #[track_caller]
    pub fn stats(self) -> sw_stats {
        self.stats_of(SW_SHARD_ANY)
    }

    #[track_caller]
    pub fn stats_of(self, shard: u32) -> sw_stats {
        // SAFETY: plain numbers.
        let mut stats: sw_stats = unsafe { std::mem::zeroed() };
        stats.size = size_of::<sw_stats>();
        assert_eq!(unsafe { sw_stats_read(self.raw, shard, &mut stats) }, SW_OK);
        stats
    }

    pub fn pending(self) -> u64 {
        self.stats().pending
    }

    pub fn shard_count(self) -> u32 {
        unsafe { sw_shard_count(self.raw) }
    }

    /// Stops; nobody is told of the timers left.
    pub fn stop(self) -> sw_status {
        let none = std::ptr::null_mut();
        unsafe { sw_service_stop(self.raw, None, none, std::ptr::null_mut()) }
    }

    /// Stops and collects what is handed back.
    pub fn stop_into(self) -> Result<Vec<Unfired>, sw_status> {
        unsafe extern "C-unwind" fn collect(
            arg: *mut c_void,
            timer: sw_timer,
            ctx: *mut c_void,
            deadline: u64,
        ) {
            // SAFETY: `arg` is the vector below, and stop calls from one thread.
            let found = unsafe { &mut *arg.cast::<Vec<Unfired>>() };
            found.push(Unfired { timer, ctx: Ptr(ctx), deadline });
        }
        let mut found = Vec::<Unfired>::new();
        let arg = (&raw mut found).cast();
        let mut returned = u64::MAX;
        let status = unsafe { sw_service_stop(self.raw, Some(collect), arg, &mut returned) };
        if status == SW_OK {
            assert_eq!(found.len() as u64, returned, "stop counts what it hands back");
        }
        answer(status, found)
    }
}
