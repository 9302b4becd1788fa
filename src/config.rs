//! What a service is built from, with every default and bound in one place.

use crate::status::Error;
use std::borrow::Cow;
use std::ffi::c_void;

/// Most shards of one service.
pub const MAX_SHARDS: u32 = 256;
/// Most live timers that one shard can be allowed.
pub const MAX_TIMERS: u64 = 1 << 28;
/// Live timers that a shard is allowed when nothing is asked.
pub const DEFAULT_MAX_TIMERS: u64 = 1 << 24;
/// Tick when nothing is asked: 1 ms.
pub const DEFAULT_TICK_NS: u64 = 1_000_000;
/// Finest tick: 1 µs.
pub const MIN_TICK_NS: u64 = 1_000;
/// Coarsest tick: 1 hour.
pub const MAX_TICK_NS: u64 = 3_600_000_000_000;

/// Who runs the wheels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// One thread a shard, owned by the service.
    Threaded = 0,
    /// The host's own threads poll the shards.
    Driven = 1,
}

/// The clock that deadlines are counted on, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ClockKind {
    /// `CLOCK_MONOTONIC`: stands still while the machine is suspended.
    Monotonic = 0,
    /// `CLOCK_BOOTTIME`: goes on while the machine is suspended.
    Boottime = 1,
    /// Starts at 0 and moves by `advance` alone. Driven mode only.
    Manual = 2,
}

/// Which CPU each shard's thread is pinned to (threaded mode).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pinning {
    /// Shard `i` to the `i`-th (modulo their number) CPU that the process may use.
    Auto,
    /// Not pinned.
    None,
    /// Shard `i` to `cpus[i % cpus.len()]`.
    List(Vec<u32>),
}

/// Functions of the host that a service calls beside the timers' own. Raw, as C gives them.
#[derive(Debug, Clone, Copy)]
pub struct Hooks {
    /// First argument of each hook.
    pub arg: *mut c_void,
    /// Runs on a shard's thread, after it is pinned and named.
    pub on_thread_start: Option<unsafe extern "C-unwind" fn(*mut c_void, u32)>,
    /// Runs on a shard's thread as it ends.
    pub on_thread_stop: Option<unsafe extern "C-unwind" fn(*mut c_void, u32)>,
    /// Told of a callback that took longer than `slow_callback_ns`, before its drop: hook
    /// argument, shard, timer, ctx, elapsed nanoseconds.
    pub on_slow_callback:
        Option<unsafe extern "C-unwind" fn(*mut c_void, u32, u64, *mut c_void, u64)>,
}

impl Default for Hooks {
    fn default() -> Self {
        Hooks {
            arg: std::ptr::null_mut(),
            on_thread_start: None,
            on_thread_stop: None,
            on_slow_callback: None,
        }
    }
}

// SAFETY: whoever builds a service with hooks promises (`Service::start` is told so by its docs)
// that the functions may be called with `arg` on the service's threads.
unsafe impl Send for Hooks {}
// SAFETY: as above.
unsafe impl Sync for Hooks {}

/// Everything that a service is built from. `Config::default()` is the default of each field.
#[derive(Debug, Clone)]
pub struct Config {
    /// Who runs the wheels. Default: threaded.
    pub mode: Mode,
    /// Default: monotonic.
    pub clock: ClockKind,
    /// 1..=256; 0: one for each CPU that the process may use (at most 256). Default 0.
    pub shards: u32,
    /// Threaded mode only. Default: auto.
    pub pinning: Pinning,
    /// Granularity, 1 µs..=1 h; 0: 1 ms.
    pub tick_ns: u64,
    /// Live timers in each shard, at most 2^28; 0: 2^24.
    pub max_timers: u64,
    /// A callback longer than this is counted and told to the hook; 0: off.
    pub slow_callback_ns: u64,
    /// Prefix of the threads' names. Default "wheel".
    pub thread_name: Cow<'static, str>,
    /// The host's functions.
    pub hooks: Hooks,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            mode: Mode::Threaded,
            clock: ClockKind::Monotonic,
            shards: 0,
            pinning: Pinning::Auto,
            tick_ns: 0,
            max_timers: 0,
            slow_callback_ns: 0,
            thread_name: Cow::Borrowed("wheel"),
            hooks: Hooks::default(),
        }
    }
}

impl Config {
    /// Puts the defaults in the place of zeros and refuses what is out of range.
    pub(crate) fn checked(mut self, cpus: u32) -> Result<Config, Error> {
        if self.shards == 0 {
            self.shards = cpus.clamp(1, MAX_SHARDS);
        }
        if self.tick_ns == 0 {
            self.tick_ns = DEFAULT_TICK_NS;
        }
        if self.max_timers == 0 {
            self.max_timers = DEFAULT_MAX_TIMERS;
        }
        let listed = !matches!(&self.pinning, Pinning::List(cpus) if cpus.is_empty());
        let manual_driven = self.clock != ClockKind::Manual || self.mode == Mode::Driven;
        let fits = self.shards <= MAX_SHARDS
            && (MIN_TICK_NS..=MAX_TICK_NS).contains(&self.tick_ns)
            && self.max_timers <= MAX_TIMERS
            && !self.thread_name.contains('\0');
        if fits && listed && manual_driven { Ok(self) } else { Err(Error::Invalid) }
    }
}
