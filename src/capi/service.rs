//! A service from start to free, and its clock.

use super::engine;
use super::sized;
use super::status::{done, give, sw_status, sw_status::*};
use super::types::*;
use crate::config::{ClockKind, Config, Hooks, MAX_SHARDS, Mode, Pinning};
use crate::engine::Engine;
use crate::shared::Shared;
use crate::sys::call::unfired_host;
use crate::sys::memory::boxed;
use std::borrow::Cow;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::panic::RefUnwindSafe;

/// A timer service: a number of shards behind one door. Opaque.
pub struct sw_service {
    pub(super) engine: Shared<Engine>,
}

// No export unwinds, so nobody who catches a panic can find a service half changed.
impl RefUnwindSafe for sw_service {}

/// Fills a configuration with the default of each field.
///
/// `config`: where to; NULL does nothing. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_config_init(config: *mut sw_config) {
    if config.is_null() {
        return;
    }
    let default = sw_config {
        size: size_of::<sw_config>(),
        mode: sw_mode::SW_MODE_THREADED as u32,
        clock: sw_clock::SW_CLOCK_MONOTONIC as u32,
        shards: 0,
        pinning: sw_pinning::SW_PIN_AUTO as u32,
        cpus: std::ptr::null(),
        cpu_count: 0,
        tick_ns: 0,
        max_timers: 0,
        slow_callback_ns: 0,
        thread_name: std::ptr::null(),
        hook_arg: std::ptr::null_mut(),
        on_thread_start: None,
        on_thread_stop: None,
        on_slow_callback: None,
    };
    // SAFETY: not null, so the caller's promise.
    unsafe { config.write(default) };
}

/// Starts a service.
///
/// `config`: what to build; NULL: all defaults. `service`: receives the service; not NULL. It is
/// to be given back with `sw_service_free`. The hooks and `hook_arg` must stay usable, from the
/// service's threads, until it has been stopped.
///
/// Returns `SW_OK`; `SW_INVALID` (a field out of its range, a wrong `size`, NULL `service`);
/// `SW_NO_MEMORY`; `SW_SYSTEM` (no thread, no descriptor, or a CPU that cannot be pinned to).
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_service_start(
    config: *const sw_config,
    service: *mut *mut sw_service,
) -> sw_status {
    if service.is_null() {
        return SW_INVALID;
    }
    // SAFETY: the caller's promise.
    let config = match unsafe { asked(config) } {
        Ok(config) => config,
        Err(status) => return status,
    };
    // Before there is a service that would have to be stopped.
    let Some(place) = boxed(MaybeUninit::<sw_service>::uninit()) else { return SW_NO_MEMORY };
    let started =
        Engine::start(config).map(|engine| Box::into_raw(Box::write(place, sw_service { engine })));
    // SAFETY: not null, so the caller's promise.
    unsafe { give(started, service) }
}

/// Gives memory that a peak of timers has left behind back to the system: that of free slots at once,
/// that of the wheels by their owners: a service's own threads soon after, a host's in the next
/// poll of each shard. No start, cancel or firing waits for it, but a wheel's owner may be busy with it for
/// some milliseconds for each million timers that there were.
///
/// Returns `SW_OK`; `SW_NO_MEMORY` (to look for it takes a little); `SW_INVALID`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_service_trim(service: *mut sw_service) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    done(engine.trim())
}

/// Sets a hook that is told of callbacks while they still run, once they have run for longer than
/// `slow_callback_ns`. (`on_slow_callback` hears of them when they are over.)
///
/// No thread is made for it. Who looks: the service's own threads, at the other shards, before they
/// sleep; a thread that polls, after its poll; and every thread that reads statistics. So a
/// shard that is stuck for long is seen for certain if something reads them now and then. The first that
/// finds a stuck callback calls `hook`, on its own thread: once for each callback.
///
/// `hook`: not NULL; gets `arg`, the shard, the timer, and for how long its callback has run. When it is
/// called the callback may just have ended. Everything is allowed inside but to free the service; both
/// must stay usable until it has been stopped and no other call on it is under way.
///
/// Returns `SW_OK`; `SW_INVALID` (also: `slow_callback_ns` is 0); `SW_BUSY` (there is a hook
/// already); `SW_STOPPED`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_service_on_stuck(
    service: *mut sw_service,
    hook: Option<
        unsafe extern "C-unwind" fn(arg: *mut c_void, shard: u32, timer: sw_timer, elapsed_ns: u64),
    >,
    arg: *mut c_void,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    let Some(hook) = hook else { return SW_INVALID };
    // SAFETY: the caller's promise.
    done(unsafe { engine.on_stuck(hook, arg) })
}

/// The configuration in the engine's words; `SW_INVALID`: it says something that C alone can say wrong.
///
/// # Safety
/// As `sw_service_start`.
unsafe fn asked(config: *const sw_config) -> Result<Config, sw_status> {
    if config.is_null() {
        return Ok(Config::default());
    }
    // SAFETY: the caller's promise: as many bytes as `size` says.
    let config = unsafe {
        let size = sized::claimed(config).ok_or(SW_INVALID)?;
        if !sized::asks_nothing_new(config, size) {
            return Err(SW_INVALID);
        }
        sized::known(config)
    };
    let mode = match config.mode {
        0 => Mode::Threaded,
        1 => Mode::Driven,
        _ => return Err(SW_INVALID),
    };
    let clock = match config.clock {
        0 => ClockKind::Monotonic,
        1 => ClockKind::Boottime,
        2 => ClockKind::Manual,
        _ => return Err(SW_INVALID),
    };
    let pinning = match config.pinning {
        0 => Pinning::Auto,
        1 => Pinning::None,
        // SAFETY: the caller's promise.
        2 => Pinning::List(unsafe { listed(&config) }?),
        _ => return Err(SW_INVALID),
    };
    let thread_name = if config.thread_name.is_null() {
        Config::default().thread_name
    } else {
        // SAFETY: not null, so the caller's promise: a string.
        let name = unsafe { CStr::from_ptr(config.thread_name) };
        Cow::Owned(owned(name.to_str().map_err(|_| SW_INVALID)?)?)
    };
    Ok(Config {
        mode,
        clock,
        shards: config.shards,
        pinning,
        tick_ns: config.tick_ns,
        max_timers: config.max_timers,
        slow_callback_ns: config.slow_callback_ns,
        thread_name,
        hooks: Hooks {
            arg: config.hook_arg,
            on_thread_start: config.on_thread_start,
            on_thread_stop: config.on_thread_stop,
            on_slow_callback: config.on_slow_callback,
        },
    })
}

/// The CPUs of `SW_PIN_LIST`. As shard i takes `cpus[i % cpu_count]`, those beyond the most shards
/// there can be are of no use, and a wild `cpu_count` does no harm.
///
/// # Safety
/// `cpus` is null or points to `cpu_count` numbers.
unsafe fn listed(config: &sw_config) -> Result<Vec<u32>, sw_status> {
    if config.cpus.is_null() || config.cpu_count == 0 {
        return Err(SW_INVALID);
    }
    let used = config.cpu_count.min(MAX_SHARDS as usize);
    // SAFETY: the caller's promise, and not more than `cpu_count`.
    let cpus = unsafe { std::slice::from_raw_parts(config.cpus, used) };
    let mut list = Vec::new();
    list.try_reserve_exact(used).map_err(|_| SW_NO_MEMORY)?;
    list.extend_from_slice(cpus);
    Ok(list)
}

/// A copy.
fn owned(text: &str) -> Result<String, sw_status> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| SW_NO_MEMORY)?;
    copy.push_str(text);
    Ok(copy)
}

/// Ends the service: no callback runs after it returns, its threads are joined, and every timer
/// that had not fired is handed to `unfired` once, then dropped. Statistics, the clock,
/// `sw_queue_free`, `sw_service_stop` and `sw_service_free` still work on a stopped service.
///
/// `unfired`: told of each timer, on this thread; NULL: none is told. `arg`: its first argument.
/// `returned`: receives how many timers had not fired; may be NULL.
///
/// Returns `SW_OK`, also for a second call, which returns none; `SW_INVALID` (NULL service);
/// `SW_WOULD_DEADLOCK` (on one of the service's own threads, inside one of its callbacks, or in
/// `unfired`);
/// `SW_FORKED`. Any other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_service_stop(
    service: *mut sw_service,
    unfired: sw_unfired,
    arg: *mut c_void,
    returned: *mut u64,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    let stopped = engine.stop(&mut |timer, ctx, deadline_ns| {
        if let Some(unfired) = unfired {
            // SAFETY: the host asked for it with this `arg`; the timer's drop comes after.
            unsafe { unfired_host(unfired, arg, timer, ctx, deadline_ns) };
        }
    });
    // SAFETY: the caller's promise.
    unsafe { give(stopped, returned) }
}

/// Stops the service if need be, telling nobody of its timers but their `drop`, then frees it and
/// the queues that are left. No other call on the service may be going on or follow.
///
/// `service`: NULL does nothing.
///
/// Returns `SW_OK`; `SW_WOULD_DEADLOCK` (as stop) or `SW_FORKED`: nothing is freed then. Any
/// other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_service_free(service: *mut sw_service) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_OK };
    if let Err(error) = engine.stop(&mut |_, _, _| {}) {
        return error.into();
    }
    // SAFETY: made by `sw_service_start`, and nobody uses it any more: the caller's promise.
    drop(unsafe { Box::from_raw(service) });
    SW_OK
}

/// How many shards the service has.
///
/// `service`: NULL: 0. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_shard_count(service: *const sw_service) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { engine(service) }.map_or(0, |engine| engine.shard_count())
}

/// The service's clock, in nanoseconds. It never steps back.
///
/// `service`: NULL: 0. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_clock_now(service: *const sw_service) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { engine(service) }.map_or(0, |engine| engine.now())
}

/// Moves a manual clock on. Nothing is delivered by it; the next poll of each shard does that.
///
/// `by_ns`: how far; the clock stops at `SW_NEVER`.
///
/// Returns `SW_OK`; `SW_INVALID` (NULL service); `SW_UNSUPPORTED` (not a manual clock);
/// `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_clock_advance(service: *mut sw_service, by_ns: u64) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    done(engine.advance(by_ns))
}
