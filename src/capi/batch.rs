//! Many timers in one call.

use super::engine;
use super::service::sw_service;
use super::sized;
use super::status::{done, give, sw_status, sw_status::*};
use super::timer::{Asked, asked, refuse};
use super::types::*;
use crate::types::{Spec, spread};
use std::cell::Cell;

/// Starts a number of timers: all of them, or none.
///
/// `specs`: `count` descriptions in a row, all of one `size`, which is the distance from one to
/// the next; NULL only if `count` is 0. Copied. `timers`: receives `count` handles, each before
/// its callback can run; may be NULL.
///
/// Whenever it is refused, for whatever reason, the `drop` of each spec has been called with its
/// `ctx`, except where its `size` is wrong.
///
/// Returns as `sw_timer_start_spec`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_start_batch(
    service: *mut sw_service,
    specs: *const sw_timer_spec,
    count: usize,
    timers: *mut sw_timer,
) -> sw_status {
    // SAFETY: the caller's promise.
    unsafe { start(service, specs, count, 0, timers) }
}

/// As `sw_timer_start_batch`, for timers that were saved before a restart: of those with
/// `SW_TIMER_ABSOLUTE` whose deadline has gone by, the deadlines are moved to instants spread evenly over
/// `spread_ns` from now, in the order in which they stand here, so that a restart is no stampede. The others keep
/// theirs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_start_spread(
    service: *mut sw_service,
    specs: *const sw_timer_spec,
    count: usize,
    spread_ns: u64,
    timers: *mut sw_timer,
) -> sw_status {
    // SAFETY: the caller's promise.
    unsafe { start(service, specs, count, spread_ns, timers) }
}

/// # Safety
/// As `sw_timer_start_spread`.
unsafe fn start(
    service: *mut sw_service,
    specs: *const sw_timer_spec,
    count: usize,
    spread_ns: u64,
    timers: *mut sw_timer,
) -> sw_status {
    // SAFETY: the caller's promise.
    let engine = unsafe { engine(service) };
    if count == 0 {
        // SAFETY: of no timer nothing is promised.
        return engine.map_or(SW_INVALID, |engine| done(unsafe { engine.arm_batch(&[], timers) }));
    }
    // SAFETY: the caller's promise.
    let Some(stride) = (unsafe { sized::claimed(specs) }) else { return SW_INVALID };
    if count > isize::MAX as usize / stride {
        return SW_INVALID;
    }
    let batch = Batch { specs, stride, count };
    let mut list = SCRATCH.try_with(Cell::take).unwrap_or_default();
    let status = match engine {
        None => Err(SW_INVALID),
        Some(_) if list.try_reserve(count).is_err() => Err(SW_NO_MEMORY),
        // SAFETY: the caller's promise.
        Some(engine) => match unsafe { batch.collect(&mut list) } {
            false => Err(SW_INVALID),
            true => {
                spread(&mut list, engine.now(), spread_ns);
                // SAFETY: the caller's promise.
                Ok(done(unsafe { engine.arm_batch(&list, timers) }))
            }
        },
    };
    list.clear();
    if list.capacity() <= SCRATCH_KEPT {
        // A thread that is ending has no place to keep it: freed then.
        let _ = SCRATCH.try_with(|scratch| scratch.set(list));
    }
    status.unwrap_or_else(|status| {
        // SAFETY: the caller's promise.
        unsafe { batch.refuse() };
        status
    })
}

thread_local! {
    /// Where a batch is translated. Kept from call to call, so that a start does not allocate once
    /// its thread has seen a batch of the size. A start inside a start (from a drop) finds it
    /// empty, which is slower and no more.
    static SCRATCH: Cell<Vec<Spec>> = const { Cell::new(Vec::new()) };
}

/// Most specs that a thread keeps room for between calls (5 MB).
const SCRATCH_KEPT: usize = 1 << 16;

/// The host's array of specs, which may be larger each than this library's.
struct Batch {
    specs: *const sw_timer_spec,
    stride: usize,
    count: usize,
}

impl Batch {
    /// Each spec in turn; `None` where its size is not the stride.
    ///
    /// # Safety
    /// `specs` points to `count` times `stride` bytes.
    unsafe fn read(&self) -> impl Iterator<Item = Option<Asked>> {
        (0..self.count).map(|index| {
            let spec = self.specs.wrapping_byte_add(index * self.stride);
            // SAFETY: within the array; one that claims more than the stride is not read.
            unsafe { if sized::claimed(spec) == Some(self.stride) { asked(spec) } else { None } }
        })
    }

    /// All specs in the engine's words; false if one of them cannot be.
    ///
    /// # Safety
    /// As `read`.
    unsafe fn collect(&self, list: &mut Vec<Spec>) -> bool {
        // SAFETY: the caller's promise.
        for asked in unsafe { self.read() } {
            match asked {
                Some(Asked { spec, understood: true }) => list.push(spec),
                _ => return false,
            }
        }
        true
    }

    /// Drops each spec that can be read.
    ///
    /// # Safety
    /// As `read`.
    unsafe fn refuse(&self) {
        // SAFETY: the caller's promise.
        for asked in unsafe { self.read() }.flatten() {
            refuse(&asked.spec);
        }
    }
}

/// Cancels a number of timers, each as `sw_timer_cancel` does.
///
/// `timers`: `count` handles, of which any may have ended; NULL only if `count` is 0.
/// `cancelled`: receives for how many of them `sw_timer_cancel` would have returned `SW_OK`; may
/// be NULL.
///
/// Returns `SW_OK` if at least one was cancelled or none was refused; `SW_INVALID`; `SW_BUSY` (a
/// shard is attached exclusively by another thread) and `SW_STOPPED` if one was refused and none
/// cancelled; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_timer_cancel_batch(
    service: *mut sw_service,
    timers: *const sw_timer,
    count: usize,
    cancelled: *mut usize,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    let timers = match count {
        0 => &[],
        _ if timers.is_null() || count > isize::MAX as usize / size_of::<sw_timer>() => {
            return SW_INVALID;
        }
        // SAFETY: not null and of a size that can be, so the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(timers, count) },
    };
    // SAFETY: the caller's promise.
    unsafe { give(engine.cancel_batch(timers), cancelled) }
}
