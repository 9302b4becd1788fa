//! Driven shards: the host's thread attaches, polls and sleeps.

use super::engine;
use super::service::sw_service;
use super::status::{done, give, sw_status, sw_status::*};
use super::types::*;
use crate::types::Pending;
use std::ffi::c_int;

/// Makes the calling thread the owner of a driven shard: its `SW_SHARD_ANY` starts go there, and
/// its starts, cancels and resets on that shard work on the wheel directly. Other threads' polls
/// of it are `SW_BUSY` until detach. Attaching is never needed, only faster. A thread may own
/// several shards, and its `SW_SHARD_ANY` goes to the one attached last. A thread that ends while
/// attached is detached.
///
/// `shard`: an index. `how`: `SW_ATTACH_SHARED` or `SW_ATTACH_EXCLUSIVE`, which also makes other
/// threads' starts, cancels and resets on this shard `SW_BUSY`. The owner may attach again to
/// change it.
///
/// Returns `SW_OK`; `SW_INVALID`; `SW_BUSY` (another thread's, inside a callback, or, to own it
/// exclusively, while another thread frees a queue);
/// `SW_UNSUPPORTED` (a threaded service); `SW_NO_MEMORY`; `SW_STOPPED`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_shard_attach(
    service: *mut sw_service,
    shard: u32,
    how: u32,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    match how {
        SW_ATTACH_SHARED => done(engine.attach(shard, false)),
        SW_ATTACH_EXCLUSIVE => done(engine.attach(shard, true)),
        _ => SW_INVALID,
    }
}

/// Ends what `sw_shard_attach` began.
///
/// `shard`: an index.
///
/// Returns `SW_OK`; `SW_INVALID` (also: not attached); `SW_BUSY` (another thread's, or inside a
/// callback); `SW_UNSUPPORTED` (a threaded service); `SW_FORKED`. The owning thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_shard_detach(service: *mut sw_service, shard: u32) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    done(engine.detach(shard))
}

/// Delivers what is due on a driven shard, in the order of deadlines: callbacks run on this
/// thread, inside this call.
///
/// `shard`: an index. `budget`: at most so many expiries; 0: all. `fired`: receives how many were
/// delivered, to callbacks and to queues; may be NULL.
///
/// Returns `SW_OK`; `SW_INVALID`; `SW_BUSY` (another thread polls it or has attached to it, or
/// this is inside a callback); `SW_UNSUPPORTED` (a threaded service); `SW_NO_MEMORY`; `SW_STOPPED`;
/// `SW_FORKED`. One thread at a time for each shard.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_shard_poll(
    service: *mut sw_service,
    shard: u32,
    budget: usize,
    fired: *mut usize,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    // SAFETY: the caller's promise.
    unsafe { give(engine.poll(shard, budget), fired) }
}

/// When a driven shard next wants a poll.
///
/// `shard`: an index. `deadline_ns`: receives a lower bound of that instant on the service's
/// clock, `SW_NEVER` if nothing is pending; not NULL.
///
/// Returns `SW_OK`; `SW_INVALID`; `SW_UNSUPPORTED` (a threaded service); `SW_STOPPED`;
/// `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_shard_next(
    service: *mut sw_service,
    shard: u32,
    deadline_ns: *mut u64,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    if deadline_ns.is_null() {
        return SW_INVALID;
    }
    // SAFETY: the caller's promise.
    unsafe { give(engine.next(shard), deadline_ns) }
}

/// A descriptor for epoll, poll or select that is readable when a driven shard wants a poll.
///
/// `shard`: an index. `fd`: receives the descriptor, not NULL. It is the service's: the host
/// neither reads nor closes it, and forgets it before the service is freed.
///
/// Returns `SW_OK`; `SW_INVALID`; `SW_UNSUPPORTED` (a threaded service); `SW_STOPPED`;
/// `SW_FORKED`; `SW_SYSTEM`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_shard_fd(
    service: *mut sw_service,
    shard: u32,
    fd: *mut c_int,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    if fd.is_null() {
        return SW_INVALID;
    }
    // SAFETY: the caller's promise.
    unsafe { give(engine.fd(shard), fd) }
}

/// Tells who is pending on a shard, a part at a time, for debugging, or to save timers before a
/// restart. The shard is not stopped and does not notice. Timers that are pending all the while are
/// told of exactly once; those that start or end meanwhile may be or not. A one-shot whose callback
/// runs is not told of, a periodic timer is.
///
/// `shard`: an index, in any mode. `place`: 0 before the first call; moves on; `SW_VISIT_END` when there are no
/// more; not NULL. `pending`: room for `capacity` timers, which are written in no order; not NULL.
/// `capacity`: at least 1; a call looks at no more than 64 times as many slots, so it may tell of none and
/// not be at the end. `visited`: receives how many were written; not NULL.
///
/// To start them again in another process on the same machine, whose clock goes on: specs with
/// `SW_TIMER_ABSOLUTE` and these deadlines, `ctx` translated, and `sw_timer_start_spread`.
///
/// Returns `SW_OK`, also on a stopped service, which has none; `SW_INVALID`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_shard_visit(
    service: *mut sw_service,
    shard: u32,
    place: *mut u64,
    pending: *mut sw_pending,
    capacity: usize,
    visited: *mut usize,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    if place.is_null() || pending.is_null() || capacity == 0 || visited.is_null() {
        return SW_INVALID;
    }
    // SAFETY: not null, so the caller's promise.
    let mut at = unsafe { place.read() };
    let mut count = 0;
    let mut write = |timer: Pending| {
        let Pending { timer, deadline_ns, period_ns, ctx, .. } = timer;
        // SAFETY: `count` is less than `capacity`.
        unsafe { pending.add(count).write(sw_pending { timer, deadline_ns, period_ns, ctx }) };
        count += 1;
    };
    let told = engine.visit(shard, &mut at, capacity, &mut write).map(|()| count);
    if told.is_ok() {
        // SAFETY: not null, so the caller's promise.
        unsafe { place.write(at) };
    }
    // SAFETY: not null, so the caller's promise.
    unsafe { give(told, visited) }
}
