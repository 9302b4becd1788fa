//! The C calls that the example makes, each with its arguments in order. Nothing is decided here.

use shardwheel::capi::{self, sw_service, sw_stats, sw_status, sw_timer, sw_timer_spec};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// A started service. It lives until the process ends: callbacks and producers share it freely.
#[derive(Debug, Clone, Copy)]
pub struct Service(*mut sw_service);

// SAFETY: every call below may be made from any thread.
unsafe impl Send for Service {}
// SAFETY: as above.
unsafe impl Sync for Service {}

/// What the library says of a status.
pub fn text(status: sw_status) -> &'static str {
    // SAFETY: the answer is a static C string for any number.
    unsafe { CStr::from_ptr(capi::sw_status_text(status as i32)) }.to_str().unwrap_or("?")
}

fn accepted(status: sw_status) -> Result<(), sw_status> {
    if status == sw_status::SW_OK { Ok(()) } else { Err(status) }
}

impl Service {
    /// Pinned shard threads and the monotonic clock: the defaults.
    pub fn start(shards: u32, tick_ns: u64, max_timers: u64) -> Result<Service, sw_status> {
        let mut config = MaybeUninit::uninit();
        let mut service = null_mut();
        // SAFETY: init fills the configuration; both pointers are valid during the calls.
        let status = unsafe {
            capi::sw_config_init(config.as_mut_ptr());
            let mut config = config.assume_init();
            config.shards = shards;
            config.tick_ns = tick_ns;
            config.max_timers = max_timers;
            config.thread_name = c"drive".as_ptr();
            capi::sw_service_start(&config, &mut service)
        };
        accepted(status).map(|()| Service(service))
    }

    pub fn shards(self) -> usize {
        // SAFETY: the service lives.
        unsafe { capi::sw_shard_count(self.0) as usize }
    }

    pub fn shard_of(timer: sw_timer) -> usize {
        capi::sw_timer_shard(timer) as usize
    }

    /// A specification with every default, to be filled in.
    pub fn spec() -> sw_timer_spec {
        let mut spec = MaybeUninit::uninit();
        // SAFETY: init fills it.
        unsafe {
            capi::sw_timer_spec_init(spec.as_mut_ptr());
            spec.assume_init()
        }
    }

    /// The short call where it says all that there is to say, the long one otherwise.
    pub fn start_timer(self, spec: &sw_timer_spec) -> Result<sw_timer, sw_status> {
        let mut timer = 0;
        let plain = spec.period_ns == 0 && spec.shard == capi::SW_SHARD_ANY;
        // SAFETY: the service lives; the callback is this example's, which takes any ctx.
        let status = unsafe {
            if plain {
                let (delay, callback) = (spec.delay_ns, spec.callback);
                capi::sw_timer_start(self.0, delay, callback, spec.ctx, &mut timer)
            } else {
                capi::sw_timer_start_spec(self.0, spec, &mut timer)
            }
        };
        accepted(status).map(|()| timer)
    }

    /// All or none. `timers` has room for as many as there are specifications.
    pub fn start_batch(
        self,
        specs: &[sw_timer_spec],
        timers: &mut [sw_timer],
    ) -> Result<(), sw_status> {
        assert!(timers.len() >= specs.len());
        let (count, out) = (specs.len(), timers.as_mut_ptr());
        // SAFETY: as above; both arrays hold `count`.
        accepted(unsafe { capi::sw_timer_start_batch(self.0, specs.as_ptr(), count, out) })
    }

    pub fn cancel(self, timer: sw_timer) -> sw_status {
        // SAFETY: the service lives; any handle will do.
        unsafe { capi::sw_timer_cancel(self.0, timer) }
    }

    pub fn cancel_wait(self, timer: sw_timer) -> sw_status {
        // SAFETY: as above.
        unsafe { capi::sw_timer_cancel_wait(self.0, timer) }
    }

    pub fn reset(self, timer: sw_timer, delay_ns: u64) -> sw_status {
        // SAFETY: as above.
        unsafe { capi::sw_timer_reset(self.0, timer, delay_ns) }
    }

    /// The counters of one shard, or of all.
    pub fn stats(self, shard: Option<usize>) -> sw_stats {
        let shard = shard.map_or(capi::SW_SHARD_ANY, |shard| shard as u32);
        // SAFETY: `sw_stats` is all numbers; `size` says how many there are.
        unsafe {
            let mut stats: sw_stats = MaybeUninit::zeroed().assume_init();
            stats.size = size_of::<sw_stats>();
            let status = capi::sw_stats_read(self.0, shard, &mut stats);
            assert_eq!(status, sw_status::SW_OK, "sw_stats_read");
            stats
        }
    }

    /// Stops, and tells `unfired` of what had not fired. Answers how many were told.
    pub fn stop(self, unfired: capi::sw_unfired) -> Result<u64, sw_status> {
        let mut returned = 0;
        // SAFETY: the service lives; `unfired` takes any argument.
        let status = unsafe { capi::sw_service_stop(self.0, unfired, null_mut(), &mut returned) };
        accepted(status).map(|()| returned)
    }

    /// The last call of all.
    pub fn free(self) -> Result<(), sw_status> {
        // SAFETY: nobody uses a copy of this after the end of the run.
        accepted(unsafe { capi::sw_service_free(self.0) })
    }
}
