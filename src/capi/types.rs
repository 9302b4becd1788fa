//! The types and constants of the C ABI. What crosses the engine's door unchanged has the engine's
//! layout, which is checked as this file compiles.

use super::sized::OwnSize;
use crate::types;
use std::ffi::{c_char, c_void};
use std::mem::offset_of;

/// A timer's handle: shard, index and generation packed in 64 bits. Never 0 for a live timer. A
/// handle whose timer has ended never comes to mean another one.
pub type sw_timer = u64;

/// The handle of no timer.
pub const SW_TIMER_NONE: sw_timer = 0 as sw_timer;
/// Let the library choose the shard (start); all shards (statistics).
pub const SW_SHARD_ANY: u32 = u32::MAX;
/// A deadline that does not come.
pub const SW_NEVER: u64 = u64::MAX;
/// Where `sw_shard_visit` stands when it has told of all timers.
pub const SW_VISIT_END: u64 = u64::MAX;

/// Flag of a timer: `delay_ns` is a deadline on the service's clock.
pub const SW_TIMER_ABSOLUTE: u32 = 1 << 0;
/// Flag of a periodic timer: the next deadline counts from the callback's end.
pub const SW_TIMER_FIXED_DELAY: u32 = 1 << 1;
/// Flag of a periodic timer: every missed period is served, one call each. With a queue, those that
/// find an event of the timer waiting add to its `missed`.
pub const SW_TIMER_BURST: u32 = 1 << 2;

/// Attach, and leave starts, cancels and resets on the shard to every thread.
pub const SW_ATTACH_SHARED: u32 = 0;
/// Attach, and keep other threads' starts, cancels and resets off the shard: `SW_BUSY` for them.
pub const SW_ATTACH_EXCLUSIVE: u32 = 1;

/// A queue of expiries that the host takes instead of being called back. Opaque.
pub struct sw_queue {
    _opaque: (),
}

/// What a callback, or a queue, is told of one expiry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct sw_expiry {
    /// Whose expiry it is.
    pub timer: sw_timer,
    /// When it was due, on the service's clock. Of a periodic timer: the grid point that is served.
    pub deadline_ns: u64,
    /// The service's clock as this turn began; never before `deadline_ns`.
    pub now_ns: u64,
    /// Whole periods that went by unserved before this expiry (periodic timers).
    pub missed: u64,
}

/// A timer's callback. It runs on the shard's thread (threaded mode) or inside `sw_shard_poll`
/// (driven mode), never twice at a time on one shard, and may call everything except what would
/// wait for its own thread. `expiry` is valid during the call. A C++ exception must not leave it:
/// the process would end by `std::terminate`.
pub type sw_callback =
    Option<unsafe extern "C-unwind" fn(ctx: *mut c_void, expiry: *const sw_expiry)>;

/// Called exactly once with a timer's `ctx`, when the timer has ended or its start was refused.
pub type sw_drop = Option<unsafe extern "C-unwind" fn(ctx: *mut c_void)>;

/// Told by `sw_service_stop`, on its thread, of a timer that had not fired: the `arg` given to
/// stop, the timer, its `ctx` and its deadline on the service's clock.
pub type sw_unfired = Option<
    unsafe extern "C-unwind" fn(
        arg: *mut c_void,
        timer: sw_timer,
        ctx: *mut c_void,
        deadline_ns: u64,
    ),
>;

/// Who runs the wheels: a value of `sw_config.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum sw_mode {
    /// One thread for each shard, owned by the service.
    SW_MODE_THREADED = 0,
    /// The host's own threads poll the shards.
    SW_MODE_DRIVEN = 1,
}

/// The clock that deadlines are counted on, in nanoseconds: a value of `sw_config.clock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum sw_clock {
    /// Stands still while the machine is suspended.
    SW_CLOCK_MONOTONIC = 0,
    /// Goes on while the machine is suspended.
    SW_CLOCK_BOOTTIME = 1,
    /// Starts at 0 and is moved by `sw_clock_advance` alone. Driven mode only.
    SW_CLOCK_MANUAL = 2,
}

/// Which CPU each shard's thread is pinned to (threaded mode): a value of `sw_config.pinning`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum sw_pinning {
    /// Shard i to the i-th (modulo their number) CPU that the process may use.
    SW_PIN_AUTO = 0,
    /// Not pinned.
    SW_PIN_NONE = 1,
    /// Shard i to `cpus[i % cpu_count]`.
    SW_PIN_LIST = 2,
}

/// What a service is built from. Fill it with `sw_config_init`, then change what should differ.
/// It is copied by `sw_service_start`, together with `cpus` and `thread_name`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct sw_config {
    /// `sizeof(sw_config)`, set by `sw_config_init`.
    pub size: usize,
    /// A value of `enum sw_mode`. Default: `SW_MODE_THREADED`.
    pub mode: u32,
    /// A value of `enum sw_clock`. Default: `SW_CLOCK_MONOTONIC`.
    pub clock: u32,
    /// 1 to 256; 0: one for each CPU that the process may use. Default: 0.
    pub shards: u32,
    /// A value of `enum sw_pinning`. Default: `SW_PIN_AUTO`.
    pub pinning: u32,
    /// The CPUs for `SW_PIN_LIST`; otherwise not looked at.
    pub cpus: *const u32,
    /// How many `cpus` there are; at least 1 for `SW_PIN_LIST`.
    pub cpu_count: usize,
    /// Granularity, 1 microsecond to 1 hour; 0: 1 ms. A timer comes at the latest one tick after
    /// its deadline when its shard is not overloaded.
    pub tick_ns: u64,
    /// Live timers in each shard, at most 2^28; 0: 2^24.
    pub max_timers: u64,
    /// A callback that takes longer than this is counted and told to `on_slow_callback`; 0: off.
    pub slow_callback_ns: u64,
    /// Prefix of the threads' names, "PREFIX-SHARD", UTF-8, cut to 15 bytes. NULL: "wheel".
    pub thread_name: *const c_char,
    /// First argument of each hook.
    pub hook_arg: *mut c_void,
    /// Runs on a shard's thread as it begins, after it is pinned and named. May be NULL.
    pub on_thread_start: Option<unsafe extern "C-unwind" fn(hook_arg: *mut c_void, shard: u32)>,
    /// Runs on a shard's thread as it ends. May be NULL.
    pub on_thread_stop: Option<unsafe extern "C-unwind" fn(hook_arg: *mut c_void, shard: u32)>,
    /// Told of a callback that took longer than `slow_callback_ns`, after it and before its drop.
    /// May be NULL.
    pub on_slow_callback: Option<
        unsafe extern "C-unwind" fn(
            hook_arg: *mut c_void,
            shard: u32,
            timer: sw_timer,
            ctx: *mut c_void,
            elapsed_ns: u64,
        ),
    >,
}

/// A timer with everything that can be asked of it. Fill it with `sw_timer_spec_init`, then change
/// what should differ.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct sw_timer_spec {
    /// `sizeof(sw_timer_spec)`, set by `sw_timer_spec_init`.
    pub size: usize,
    /// From now, or the deadline with `SW_TIMER_ABSOLUTE`. The whole range is accepted; what lies
    /// in the past is due at the next turn. Default: 0.
    pub delay_ns: u64,
    /// Distance of a periodic timer's deadlines; 0: one shot. Default: 0.
    pub period_ns: u64,
    /// The timer may come this much later, to share a wake-up. Default: 0.
    pub slack_ns: u64,
    /// `SW_TIMER_*` flags. `SW_TIMER_FIXED_DELAY` and `SW_TIMER_BURST` exclude each other and want
    /// a period. Default: 0.
    pub flags: u32,
    /// `SW_SHARD_ANY` or an index. Default: `SW_SHARD_ANY`.
    pub shard: u32,
    /// What to call; NULL only with a queue.
    pub callback: sw_callback,
    /// Handed to `callback`, `drop`, `unfired` and the queue. May be NULL.
    pub ctx: *mut c_void,
    /// Called once with `ctx` when the timer has ended, and also when its start is refused. Not
    /// called when a one-shot's event is taken from a queue: `ctx` is then the taker's. May be
    /// NULL.
    pub drop: sw_drop,
    /// Deliver here instead of calling back: a queue of the same service. May be NULL.
    pub queue: *mut sw_queue,
}

/// One expiry taken from a queue.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct sw_event {
    /// What came due.
    pub expiry: sw_expiry,
    /// The timer's `ctx`; of a one-shot it is the taker's from now on.
    pub ctx: *mut c_void,
}

/// A timer that is pending, as `sw_shard_visit` tells of it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct sw_pending {
    /// Its handle.
    pub timer: sw_timer,
    /// When it is due, on the service's clock; `SW_NEVER` if that does not come.
    pub deadline_ns: u64,
    /// Its period; 0: one shot.
    pub period_ns: u64,
    /// What its callback gets.
    pub ctx: *mut c_void,
}

/// The numbers of one shard, or of all together. Counters count since the service started; when
/// the service is quiet, `started == ended_by_fire + cancelled + returned + pending`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct sw_stats {
    /// `sizeof(sw_stats)`, set by the caller.
    pub size: usize,
    /// Timers that are live now.
    pub pending: u64,
    /// Most timers live at once.
    pub high_water: u64,
    /// Timers accepted.
    pub started: u64,
    /// Callbacks run, or events taken.
    pub fired: u64,
    /// Timers that ended by firing.
    pub ended_by_fire: u64,
    /// Timers that ended by a cancel.
    pub cancelled: u64,
    /// Timers handed back by stop.
    pub returned: u64,
    /// Starts refused with `SW_FULL`.
    pub rejected: u64,
    /// Periods that went by unserved.
    pub missed: u64,
    /// Times that a shard's thread woke.
    pub wakeups: u64,
    /// Callbacks that took longer than `slow_callback_ns`.
    pub slow_callbacks: u64,
    /// Bytes held for timers and wheels.
    pub memory_bytes: u64,
    /// How far the most overdue timer is behind now; 0: none is due.
    pub overdue_ns: u64,
    /// Lateness that half of the expiries kept within: from the deadline to the reading of the clock
    /// with which the slice of at most 64 expiries began that it was delivered in (to a queue: put
    /// there), or that followed a long callback. This and the other percentiles are never below the truth, and less than 3.2 % above.
    pub lateness_p50_ns: u64,
    /// Lateness that 99 % of the expiries kept within.
    pub lateness_p99_ns: u64,
    /// Lateness that 99.9 % of the expiries kept within.
    pub lateness_p999_ns: u64,
    /// Lateness of the latest expiry.
    pub lateness_max_ns: u64,
    /// Time that half of the callbacks kept within. The first two of a turn are timed and one in 64
    /// of the others, unless `slow_callback_ns` was set: then each is.
    pub callback_p50_ns: u64,
    /// Time that 99 % of the callbacks kept within.
    pub callback_p99_ns: u64,
    /// Time that 99.9 % of the callbacks kept within.
    pub callback_p999_ns: u64,
    /// Time of the longest callback that was timed.
    pub callback_max_ns: u64,
}

/// What a shard looks like inside, or all together. What its owner alone knows (reminders, buckets)
/// is as it said at the end of one of its last 16 turns, or before its last long rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct sw_details {
    /// `sizeof(sw_details)`, set by the caller.
    pub size: usize,
    /// Reminders in the wheel of timers that live.
    pub reminders_live: u64,
    /// Reminders that cancels and resets have left behind, until they come up or are dropped.
    pub reminders_dead: u64,
    /// Buckets that hold something, by level: one of level n spans 64 to the power of n ticks.
    pub buckets_occupied: [u64; 11],
    /// Reminders in the longest bucket.
    pub bucket_longest: u64,
    /// Turns: the shard's owner takes in what others handed over, and delivers what is due.
    pub turns: u64,
    /// Time that half of the turns kept within. Of the short turns of a driven shard one in 16 is
    /// timed.
    pub turn_p50_ns: u64,
    /// Time that 99 % of the turns kept within.
    pub turn_p99_ns: u64,
    /// Time that 99.9 % of the turns kept within.
    pub turn_p999_ns: u64,
    /// Time of the longest turn that was timed.
    pub turn_max_ns: u64,
    /// Starts and resets that wait for the owner to take them in. Cancels do not wait: they end
    /// the timer where they are made, and leave a dead reminder.
    pub inbox_depth: u64,
    /// Times that a shard's own thread woke because something was due.
    pub wakeups_deadline: u64,
    /// Times that it was woken for an earlier timer.
    pub wakeups_earlier: u64,
    /// Times that it was woken because much waited in an inbox.
    pub wakeups_pressure: u64,
    /// Slots that there is memory for: live, cached and retired ones.
    pub slots_allocated: u64,
    /// Free slots, at hand for starts to come.
    pub slots_cached: u64,
    /// Slots whose handles are used up.
    pub slots_retired: u64,
    /// How long the callback has been running that runs now, with `slow_callback_ns` set; 0: none.
    pub callback_running_ns: u64,
}

// SAFETY: repr(C), `size` first; numbers, raw pointers and optional functions.
unsafe impl OwnSize for sw_config {
    const FIRST: usize = size_of::<sw_config>();
}

// SAFETY: repr(C), `size` first; numbers, raw pointers and optional functions.
unsafe impl OwnSize for sw_timer_spec {
    const FIRST: usize = size_of::<sw_timer_spec>();
}

// SAFETY: repr(C), `size` first; numbers.
unsafe impl OwnSize for sw_stats {
    const FIRST: usize = size_of::<sw_stats>();
}

// SAFETY: repr(C), `size` first; numbers.
unsafe impl OwnSize for sw_details {
    const FIRST: usize = size_of::<sw_details>();
}

const _: () = {
    assert!(SW_SHARD_ANY == types::SHARD_ANY && SW_NEVER == types::NEVER);
    assert!(SW_TIMER_ABSOLUTE == types::TIMER_ABSOLUTE);
    assert!(SW_TIMER_FIXED_DELAY == types::TIMER_FIXED_DELAY);
    assert!(SW_TIMER_BURST == types::TIMER_BURST);
    assert!(size_of::<sw_expiry>() == size_of::<types::Expiry>());
    assert!(offset_of!(sw_expiry, timer) == offset_of!(types::Expiry, timer));
    assert!(offset_of!(sw_expiry, deadline_ns) == offset_of!(types::Expiry, deadline_ns));
    assert!(offset_of!(sw_expiry, now_ns) == offset_of!(types::Expiry, now_ns));
    assert!(offset_of!(sw_expiry, missed) == offset_of!(types::Expiry, missed));
    assert!(size_of::<sw_event>() == size_of::<types::Event>());
    assert!(offset_of!(sw_event, expiry) == offset_of!(types::Event, expiry));
    assert!(offset_of!(sw_event, ctx) == offset_of!(types::Event, ctx));
};
