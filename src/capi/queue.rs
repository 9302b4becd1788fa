//! Queues: expiries that the host takes when it likes.

use super::engine;
use super::service::sw_service;
use super::status::{done, give, sw_status, sw_status::*};
use super::types::*;
use crate::engine::Engine;
use crate::queue::QueueInner;
use crate::types::Event;
use std::ffi::c_int;

/// The engine's name for a queue: an `sw_queue` is nothing but the address of one.
pub(super) fn inner(queue: *const sw_queue) -> *const QueueInner {
    queue.cast()
}

/// Makes a queue. Timers started with it in their spec are delivered there instead of calling
/// back.
///
/// `queue`: receives the queue; not NULL. It is to be given back with `sw_queue_free`, or goes
/// with its service.
///
/// Returns `SW_OK`; `SW_INVALID`; `SW_NO_MEMORY`; `SW_STOPPED`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_queue_new(
    service: *mut sw_service,
    queue: *mut *mut sw_queue,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    if queue.is_null() {
        return SW_INVALID;
    }
    let made = engine.queue_new().map(|inner| inner.cast_mut().cast());
    // SAFETY: the caller's promise.
    unsafe { give(made, queue) }
}

/// Takes expiries from a queue. What one call takes of a shard is in the order of deadlines, oldest
/// first; of equal ones, in that of delivery. From one call to the next they come in the order in
/// which the shard's turns delivered them: that of deadlines, too, but for a timer that came in a
/// later turn than its deadline asks for (started or reset to the past, with slack) and a periodic
/// one whose event waited. A timer that is cancelled before it is taken is never seen.
///
/// `events`: room for `capacity` events; not NULL. `taken`: receives how many were taken; not
/// NULL. The `ctx` of a one-shot's event is the taker's from now on: its `drop` is not called.
///
/// Returns `SW_OK`, also when there was nothing to take; `SW_INVALID`; `SW_NO_MEMORY`;
/// `SW_STOPPED`; `SW_FORKED`. Any number of threads at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_queue_poll(
    queue: *mut sw_queue,
    events: *mut sw_event,
    capacity: usize,
    taken: *mut usize,
) -> sw_status {
    if queue.is_null() || events.is_null() || taken.is_null() {
        return SW_INVALID;
    }
    // SAFETY: the caller's promise; an `sw_event` has an `Event`'s layout (checked in types.rs).
    unsafe { give(Engine::queue_poll(inner(queue), events.cast::<Event>(), capacity), taken) }
}

/// A descriptor for epoll, poll or select that is readable while the queue has something to take.
///
/// `fd`: receives the descriptor; not NULL. It is the queue's: the host neither reads nor closes
/// it, and forgets it before the queue is freed.
///
/// Returns `SW_OK`; `SW_INVALID`; `SW_STOPPED`; `SW_FORKED`; `SW_SYSTEM`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_queue_fd(queue: *mut sw_queue, fd: *mut c_int) -> sw_status {
    if queue.is_null() || fd.is_null() {
        return SW_INVALID;
    }
    // SAFETY: the caller's promise.
    unsafe { give(Engine::queue_fd(inner(queue)), fd) }
}

/// Frees a queue, before its service. Timers that would have been delivered here are cancelled,
/// events that nobody took are withdrawn, and their `drop` runs. No other call on the queue may
/// be going on or follow.
///
/// `queue`: not NULL.
///
/// Returns `SW_OK`; `SW_INVALID`; `SW_BUSY` (another thread has attached exclusively to a shard
/// that has timers of this queue) or `SW_FORKED`: nothing is freed then. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_queue_free(queue: *mut sw_queue) -> sw_status {
    if queue.is_null() {
        return SW_INVALID;
    }
    // SAFETY: the caller's promise.
    done(unsafe { Engine::queue_free(inner(queue)) })
}
