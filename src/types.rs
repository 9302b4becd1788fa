//! The plain data that crosses the engine's door: what a timer is asked to be, what an expiry
//! tells, what the counters say. `repr(C)` where the C ABI shows the same bytes.

use crate::queue::QueueInner;
use std::ffi::c_void;

/// A timer's callback as C gives it.
pub type Callback = unsafe extern "C-unwind" fn(ctx: *mut c_void, expiry: *const Expiry);
/// Called once with the timer's `ctx` when the timer has ended.
pub type DropFn = unsafe extern "C-unwind" fn(ctx: *mut c_void);

/// Any shard (start), or all shards (statistics).
pub const SHARD_ANY: u32 = u32::MAX;
/// A deadline that does not come.
pub const NEVER: u64 = u64::MAX;
/// `Spec::delay_ns` is a deadline on the service's clock.
pub const TIMER_ABSOLUTE: u32 = 1 << 0;
/// The next deadline counts from the callback's end.
pub const TIMER_FIXED_DELAY: u32 = 1 << 1;
/// Every missed period is served, one call each.
pub const TIMER_BURST: u32 = 1 << 2;

/// What a callback, or a queue, is told of one expiry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Expiry {
    /// Whose expiry it is.
    pub timer: u64,
    /// When it was due, on the service's clock, in nanoseconds.
    pub deadline_ns: u64,
    /// The service's clock as this turn began; never before `deadline_ns`.
    pub now_ns: u64,
    /// Whole periods that went by unserved (periodic timers).
    pub missed: u64,
}

/// One expiry taken from a queue, with the timer's `ctx`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Event {
    /// What came due.
    pub expiry: Expiry,
    /// The timer's `ctx`; of a one-shot it is the taker's from now on.
    pub ctx: *mut c_void,
}

/// A timer that is pending, as [`visit`](crate::engine::Engine::visit) tells of it.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// Which one.
    pub timer: u64,
    /// When it is due, on the service's clock; [`NEVER`] if that does not come.
    pub deadline_ns: u64,
    /// 0: one shot.
    pub period_ns: u64,
    /// What its callback gets.
    pub ctx: *mut c_void,
    /// Has it a drop function?
    pub owned: bool,
}

/// A timer as it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// From now, or the deadline with [`TIMER_ABSOLUTE`].
    pub delay_ns: u64,
    /// 0: one shot.
    pub period_ns: u64,
    /// It may come this much later, to share a wake-up.
    pub slack_ns: u64,
    /// `TIMER_*` bits.
    pub flags: u32,
    /// [`SHARD_ANY`] or an index.
    pub shard: u32,
    /// `None` only with a queue.
    pub callback: Option<Callback>,
    /// Handed to `callback`, `drop`, `unfired` and the queue.
    pub ctx: *mut c_void,
    /// Called once with `ctx` when the timer has ended.
    pub drop: Option<DropFn>,
    /// Deliver here instead of calling back; null: none.
    pub queue: *const QueueInner,
}

/// Moves the deadlines that have gone by to instants spread evenly over `spread_ns` from now.
pub(crate) fn spread(specs: &mut [Spec], now_ns: u64, spread_ns: u64) {
    let is_overdue = |spec: &Spec| spec.flags & TIMER_ABSOLUTE != 0 && spec.delay_ns < now_ns;
    if spread_ns == 0 {
        return;
    }
    let count = specs.iter().filter(|spec| is_overdue(spec)).count() as u128;
    for (nth, spec) in specs.iter_mut().filter(|spec| is_overdue(spec)).enumerate() {
        let after = u128::from(spread_ns) * nth as u128 / count;
        spec.delay_ns = now_ns.saturating_add(after as u64);
    }
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            delay_ns: 0,
            period_ns: 0,
            slack_ns: 0,
            flags: 0,
            shard: SHARD_ANY,
            callback: None,
            ctx: std::ptr::null_mut(),
            drop: None,
            queue: std::ptr::null(),
        }
    }
}

/// The numbers of one shard, or of all. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Live now.
    pub pending: u64,
    /// Most live at once.
    pub high_water: u64,
    /// Accepted since the service started.
    pub started: u64,
    /// Callbacks run, or events taken.
    pub fired: u64,
    /// Timers that ended by firing.
    pub ended_by_fire: u64,
    /// Timers that ended by a cancel.
    pub cancelled: u64,
    /// Timers handed back by stop.
    pub returned: u64,
    /// Starts refused for want of room.
    pub rejected: u64,
    /// Periods that went by unserved.
    pub missed: u64,
    /// Times that a shard's thread woke.
    pub wakeups: u64,
    /// Callbacks over the configured limit.
    pub slow_callbacks: u64,
    /// Held for timers and wheels.
    pub memory_bytes: u64,
    /// How far the most overdue timer is behind now; 0: none is.
    pub overdue_ns: u64,
    /// Half of the expiries were at most this late: from the deadline to the reading of the clock with
    /// which the slice of at most 64 expiries began that it was delivered in (a queue's: put into the
    /// queue). This and the other percentiles are never below the truth, and less than 3.2 % above it.
    pub lateness_p50_ns: u64,
    /// 99 % of the expiries were at most this late.
    pub lateness_p99_ns: u64,
    /// 99.9 % of the expiries were at most this late.
    pub lateness_p999_ns: u64,
    /// The latest expiry.
    pub lateness_max_ns: u64,
    /// Half of the callbacks took at most this long. One callback in 64 is timed, unless slow ones are
    /// to be reported: then each is.
    pub callback_p50_ns: u64,
    /// 99 % of the callbacks took at most this long.
    pub callback_p99_ns: u64,
    /// 99.9 % of the callbacks took at most this long.
    pub callback_p999_ns: u64,
    /// The longest callback that was timed.
    pub callback_max_ns: u64,
}

/// What a shard looks like inside, or all together. Times are nanoseconds. What the owner alone knows
/// (reminders, buckets) is as it said at the end of one of its last 16 turns, or before its last long
/// rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Details {
    /// Reminders in the wheel of timers that live.
    pub reminders_live: u64,
    /// Reminders that cancels and resets have left behind, until they come up or are compacted away.
    pub reminders_dead: u64,
    /// Buckets that hold something, by level: a bucket of level `n` spans 64 to the power of `n` ticks.
    pub buckets_occupied: [u64; 11],
    /// Reminders in the longest bucket.
    pub bucket_longest: u64,
    /// Turns of the owner: it takes in what other threads handed over, and delivers what is due.
    pub turns: u64,
    /// Half of the turns took at most this long.
    pub turn_p50_ns: u64,
    /// 99 % of the turns took at most this long.
    pub turn_p99_ns: u64,
    /// 99.9 % of the turns took at most this long.
    pub turn_p999_ns: u64,
    /// The longest turn that was timed.
    pub turn_max_ns: u64,
    /// Starts and resets that wait for the owner to take them in. (Cancels do not wait: they end the
    /// timer where they are made, and leave a dead reminder.)
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
    /// Slots whose generations are used up.
    pub slots_retired: u64,
    /// How long the callback has been running that runs now, where each is timed; 0: none does.
    pub callback_running_ns: u64,
}
