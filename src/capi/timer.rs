//! Timers: start, cancel, reset.

use super::engine;
use super::queue::inner;
use super::service::sw_service;
use super::sized;
use super::status::{done, found, give, sw_status, sw_status::*};
use super::types::*;
use crate::engine::Engine;
use crate::status::Outcome;
use crate::sys::call::drop_host;
use crate::types::{Callback, Spec};
use std::ffi::c_void;

/// Fills a timer's description with the default of each field: a one-shot on any shard, at once.
///
/// `spec`: where to; NULL does nothing. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_spec_init(spec: *mut sw_timer_spec) {
    if spec.is_null() {
        return;
    }
    let default = sw_timer_spec {
        size: size_of::<sw_timer_spec>(),
        delay_ns: 0,
        period_ns: 0,
        slack_ns: 0,
        flags: 0,
        shard: SW_SHARD_ANY,
        callback: None,
        ctx: std::ptr::null_mut(),
        drop: None,
        queue: std::ptr::null_mut(),
    };
    // SAFETY: not null, so the caller's promise.
    unsafe { spec.write(default) };
}

/// Starts a one-shot timer.
///
/// `delay_ns`: from now; the whole range is accepted, and 0 is due at the shard's next turn,
/// never inside this call. `callback`: not NULL. `ctx`: its first argument. `timer`: receives the
/// handle, before the callback can run; may be NULL.
///
/// Returns `SW_OK`; `SW_INVALID`; `SW_FULL`; `SW_NO_MEMORY`; `SW_BUSY` (each shard is attached
/// exclusively by another thread); `SW_STOPPED`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_start(
    service: *mut sw_service,
    delay_ns: u64,
    callback: sw_callback,
    ctx: *mut c_void,
    timer: *mut sw_timer,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    let Some(callback) = for_engine(callback) else { return SW_INVALID };
    // SAFETY: the caller's promise.
    done(unsafe { engine.arm_one::<false>(delay_ns, callback, ctx, timer) })
}

/// Starts a one-shot timer with a deadline on the service's clock.
///
/// `deadline_ns`: the whole range is accepted; what lies in the past is due at the shard's next
/// turn, never inside this call. The rest, and what it returns: as `sw_timer_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_start_at(
    service: *mut sw_service,
    deadline_ns: u64,
    callback: sw_callback,
    ctx: *mut c_void,
    timer: *mut sw_timer,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    let Some(callback) = for_engine(callback) else { return SW_INVALID };
    // SAFETY: the caller's promise.
    done(unsafe { engine.arm_one::<true>(deadline_ns, callback, ctx, timer) })
}

/// Starts a periodic timer, whose first deadline is one period from now. Periods that are missed
/// are skipped and counted in `sw_expiry.missed`; the grid stays.
///
/// `period_ns`: not 0. The rest, and what it returns: as `sw_timer_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_start_every(
    service: *mut sw_service,
    period_ns: u64,
    callback: sw_callback,
    ctx: *mut c_void,
    timer: *mut sw_timer,
) -> sw_status {
    if period_ns == 0 {
        return SW_INVALID;
    }
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    let callback = for_engine(callback);
    if callback.is_none() {
        return SW_INVALID;
    }
    let every = Spec { delay_ns: period_ns, period_ns, callback, ctx, ..Spec::default() };
    // SAFETY: the caller's promise.
    done(unsafe { engine.arm(&every, timer) })
}

/// The same function with the engine's name for the expiry.
fn for_engine(callback: sw_callback) -> Option<Callback> {
    // SAFETY: the two types of function differ in what a pointer points to, which the ABI does not
    // see, and an `sw_expiry` has an `Expiry`'s layout (checked in types.rs).
    unsafe { std::mem::transmute::<sw_callback, Option<Callback>>(callback) }
}

/// A spec as it was read.
pub(super) struct Asked {
    pub(super) spec: Spec,
    /// It says nothing that this library does not know.
    pub(super) understood: bool,
}

/// Reads a spec; `None`: it is null or its size is wrong, so that nothing of it can be trusted.
///
/// # Safety
/// `spec` is null or points to as many bytes as its `size` says.
pub(super) unsafe fn asked(spec: *const sw_timer_spec) -> Option<Asked> {
    // SAFETY: the caller's promise.
    let (known, understood) = unsafe {
        let size = sized::claimed(spec)?;
        (sized::known(spec), sized::asks_nothing_new(spec, size))
    };
    let spec = Spec {
        delay_ns: known.delay_ns,
        period_ns: known.period_ns,
        slack_ns: known.slack_ns,
        flags: known.flags,
        shard: known.shard,
        callback: for_engine(known.callback),
        ctx: known.ctx,
        drop: known.drop,
        queue: inner(known.queue),
    };
    Some(Asked { spec, understood })
}

/// What a refusal owes the host: `drop(ctx)`.
pub(super) fn refuse(spec: &Spec) {
    if let Some(drop) = spec.drop {
        // SAFETY: the timer ends before it began, and the engine has not seen it.
        unsafe { drop_host(drop, spec.ctx) };
    }
}

/// Starts a timer as described.
///
/// `spec`: not NULL; filled by `sw_timer_spec_init` and then changed. Copied. `timer`: receives
/// the handle, before the callback can run; may be NULL.
///
/// Whenever it is refused, for whatever reason, `spec->drop` has been called with `spec->ctx`,
/// unless `spec` is NULL or its `size` is wrong.
///
/// Returns `SW_OK`; `SW_INVALID` (also: neither callback nor queue, flags that exclude each other
/// or want a period, a queue of another service); `SW_FULL`; `SW_NO_MEMORY`; `SW_BUSY` (the shard
/// is attached exclusively by another thread); `SW_STOPPED`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_start_spec(
    service: *mut sw_service,
    spec: *const sw_timer_spec,
    timer: *mut sw_timer,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(asked) = (unsafe { asked(spec) }) else { return SW_INVALID };
    // SAFETY: the caller's promise.
    match unsafe { engine(service) } {
        // SAFETY: the caller's promise.
        Some(engine) if asked.understood => done(unsafe { engine.arm(&asked.spec, timer) }),
        _ => {
            refuse(&asked.spec);
            SW_INVALID
        }
    }
}

/// Cancels a timer. Lock-free, never waits.
///
/// Returns `SW_OK` (it will not run again, and is not running); `SW_RUNNING` (its callback is
/// running now; a periodic timer will not run again); `SW_NOT_FOUND` (it had ended before);
/// `SW_INVALID` (NULL service, or no handle of it); `SW_BUSY` (the shard is attached exclusively
/// by another thread); `SW_STOPPED`; `SW_FORKED`. With `SW_OK` the timer's drop has run, on this
/// thread. In a periodic timer's own callback: `SW_OK`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_cancel(service: *mut sw_service, timer: sw_timer) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    found(engine.cancel(timer))
}

/// Cancels a timer, then waits until its callback is not running and its drop has run. What the
/// callback wrote is then visible here.
///
/// Returns `SW_OK` (a run was prevented); `SW_RUNNING` (it waited for the last run);
/// `SW_NOT_FOUND` (all was over); `SW_WOULD_DEADLOCK` (in the timer's own callback, or the wait
/// would close a circle: it will not run again, but may be running); and as `sw_timer_cancel`, with
/// `SW_STOPPED` when a callback that was running is over. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_cancel_wait(
    service: *mut sw_service,
    timer: sw_timer,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    found(engine.cancel_wait(timer))
}

/// Moves a timer's deadline; handle, shard and `ctx` stay. Of a periodic timer a new grid begins.
///
/// `delay_ns`: from now; the whole range is accepted.
///
/// Returns `SW_OK` (armed; inside the timer's own callback: again); `SW_RUNNING` (a one-shot's
/// callback runs, seen from elsewhere: unchanged); `SW_NOT_FOUND` (it had ended); `SW_FULL` (a
/// running one-shot, whose room another has taken; or the shard took no turn during hundreds of
/// thousands of resets); `SW_INVALID`; `SW_NO_MEMORY`; `SW_BUSY` (the shard is attached
/// exclusively by another thread); `SW_STOPPED`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_reset(
    service: *mut sw_service,
    timer: sw_timer,
    delay_ns: u64,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    found(engine.reset_after(timer, delay_ns))
}

/// As `sw_timer_reset`, to a deadline on the service's clock.
///
/// `deadline_ns`: the whole range is accepted; what lies in the past is due at the next turn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_reset_at(
    service: *mut sw_service,
    timer: sw_timer,
    deadline_ns: u64,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    found(engine.reset_at(timer, deadline_ns))
}

/// How long a timer still has.
///
/// `remaining_ns`: receives the time to its next deadline, 0 when it is due, `SW_NEVER` if that
/// does not come; not NULL.
///
/// Returns `SW_OK`; `SW_RUNNING` (a callback runs and it is not armed again) or `SW_NOT_FOUND`,
/// and nothing is written; `SW_INVALID`; `SW_STOPPED`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_remaining(
    service: *mut sw_service,
    timer: sw_timer,
    remaining_ns: *mut u64,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    if remaining_ns.is_null() {
        return SW_INVALID;
    }
    match engine.remaining(timer) {
        // SAFETY: not null, so the caller's promise.
        Ok((Outcome::Done, ns)) => unsafe { give(Ok(ns), remaining_ns) },
        Ok((outcome, _)) => outcome.into(),
        Err(error) => error.into(),
    }
}

/// The shard part of a handle, whatever has become of the timer. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn sw_timer_shard(timer: sw_timer) -> u32 {
    Engine::shard_of(timer)
}
