//! The numbers, as structs and as text.

use super::engine;
use super::service::sw_service;
use super::sized;
use super::status::{sw_status, sw_status::*};
use super::types::*;
use crate::engine::Engine;
use crate::status::Error;
use crate::types::{Details, Stats};
use std::ffi::c_char;
use std::fmt::{self, Write};

/// Reads the counters.
///
/// `shard`: an index, or `SW_SHARD_ANY` for the sum. `stats`: receives them; not NULL, with its
/// `size` set. While other threads are at work, the numbers are of slightly different instants. No
/// shard is stopped or slowed down by it; whoever reads also tells the hook of `sw_service_on_stuck`
/// what it finds.
///
/// Returns `SW_OK`, also on a stopped service; `SW_INVALID`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_stats_read(
    service: *mut sw_service,
    shard: u32,
    stats: *mut sw_stats,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    // SAFETY: the caller's promise: as many bytes as `size` says.
    let Some(size) = (unsafe { sized::claimed(stats) }) else { return SW_INVALID };
    // SAFETY: as above.
    if !unsafe { sized::asks_nothing_new(stats, size) } {
        return SW_INVALID;
    }
    match engine.stats(shard) {
        Ok(read) => {
            // SAFETY: not null and at least as large as this library's struct.
            unsafe { stats.write_unaligned(in_c(size, read)) };
            SW_OK
        }
        Err(error) => error.into(),
    }
}

/// The same numbers as C's struct of that size.
fn in_c(size: usize, stats: Stats) -> sw_stats {
    sw_stats {
        size,
        pending: stats.pending,
        high_water: stats.high_water,
        started: stats.started,
        fired: stats.fired,
        ended_by_fire: stats.ended_by_fire,
        cancelled: stats.cancelled,
        returned: stats.returned,
        rejected: stats.rejected,
        missed: stats.missed,
        wakeups: stats.wakeups,
        slow_callbacks: stats.slow_callbacks,
        memory_bytes: stats.memory_bytes,
        overdue_ns: stats.overdue_ns,
        lateness_p50_ns: stats.lateness_p50_ns,
        lateness_p99_ns: stats.lateness_p99_ns,
        lateness_p999_ns: stats.lateness_p999_ns,
        lateness_max_ns: stats.lateness_max_ns,
        callback_p50_ns: stats.callback_p50_ns,
        callback_p99_ns: stats.callback_p99_ns,
        callback_p999_ns: stats.callback_p999_ns,
        callback_max_ns: stats.callback_max_ns,
    }
}

/// Reads what a shard looks like inside.
///
/// `shard`: an index, or `SW_SHARD_ANY` for all together. `details`: receives it; not NULL, with its
/// `size` set.
///
/// Returns `SW_OK`, also on a stopped service; `SW_INVALID`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_details_read(
    service: *mut sw_service,
    shard: u32,
    details: *mut sw_details,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    // SAFETY: the caller's promise: as many bytes as `size` says.
    let Some(size) = (unsafe { sized::claimed(details) }) else { return SW_INVALID };
    // SAFETY: as above.
    if !unsafe { sized::asks_nothing_new(details, size) } {
        return SW_INVALID;
    }
    match engine.details(shard) {
        Ok(read) => {
            // SAFETY: not null and at least as large as this library's struct.
            unsafe { details.write_unaligned(details_in_c(size, read)) };
            SW_OK
        }
        Err(error) => error.into(),
    }
}

/// The same numbers as C's struct of that size.
fn details_in_c(size: usize, details: Details) -> sw_details {
    sw_details {
        size,
        reminders_live: details.reminders_live,
        reminders_dead: details.reminders_dead,
        buckets_occupied: details.buckets_occupied,
        bucket_longest: details.bucket_longest,
        turns: details.turns,
        turn_p50_ns: details.turn_p50_ns,
        turn_p99_ns: details.turn_p99_ns,
        turn_p999_ns: details.turn_p999_ns,
        turn_max_ns: details.turn_max_ns,
        inbox_depth: details.inbox_depth,
        wakeups_deadline: details.wakeups_deadline,
        wakeups_earlier: details.wakeups_earlier,
        wakeups_pressure: details.wakeups_pressure,
        slots_allocated: details.slots_allocated,
        slots_cached: details.slots_cached,
        slots_retired: details.slots_retired,
        callback_running_ns: details.callback_running_ns,
    }
}

/// Writes the numbers of every shard in the Prometheus text format, as `snprintf` would.
///
/// `buffer`: room for `capacity` bytes; NULL only if `capacity` is 0. At most `capacity` bytes
/// are written, the final NUL included. `needed`: receives the length of the whole text without
/// its NUL; may be NULL. The text is whole when `needed` is less than `capacity`.
///
/// Returns `SW_OK`, also on a stopped service and when the text was cut; `SW_INVALID`;
/// `SW_NO_MEMORY`; `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_stats_prometheus(
    service: *mut sw_service,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> sw_status {
    // SAFETY: the caller's promise.
    unsafe { print(service, buffer, capacity, needed, |engine, text| engine.prometheus(text)) }
}

/// As `sw_stats_prometheus`, for people to read: what to look at first when timers are late.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_stats_report(
    service: *mut sw_service,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> sw_status {
    // SAFETY: the caller's promise.
    unsafe { print(service, buffer, capacity, needed, |engine, text| engine.report(text)) }
}

/// Has a text written where the caller wants it.
///
/// # Safety
/// As `sw_stats_prometheus`.
unsafe fn print(
    service: *mut sw_service,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
    write: impl FnOnce(&Engine, &mut Text) -> Result<(), Error>,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    if buffer.is_null() && capacity != 0 {
        return SW_INVALID;
    }
    let mut text = Text { buffer: buffer.cast(), room: capacity.saturating_sub(1), length: 0 };
    if let Err(error) = write(engine, &mut text) {
        return error.into();
    }
    // SAFETY: `buffer` has `capacity` bytes, of which `Text` left one for the NUL; `needed`: the
    // caller's promise.
    unsafe {
        if capacity > 0 {
            text.buffer.add(text.length.min(text.room)).write(0);
        }
        if !needed.is_null() {
            needed.write(text.length);
        }
    }
    SW_OK
}

/// A writer that keeps what fits and counts all.
struct Text {
    /// Has at least `room` bytes.
    buffer: *mut u8,
    room: usize,
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let fits = part.len().min(self.room.saturating_sub(self.length));
        if fits > 0 {
            // SAFETY: `length + fits` is at most `room`, and a text of ours is not in the buffer.
            unsafe { self.buffer.add(self.length).copy_from_nonoverlapping(part.as_ptr(), fits) };
        }
        self.length += part.len();
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::stats::numbered;

    #[test]
    fn c_has_the_numbers_of_rust() {
        let (stats, details) = numbered();
        let (c, rust) = (format!("{:?}", in_c(7, stats)), format!("{stats:?}"));
        assert_eq!(c, rust.replace("Stats { ", "sw_stats { size: 7, "));
        let (c, rust) = (format!("{:?}", details_in_c(7, details)), format!("{details:?}"));
        assert_eq!(c, rust.replace("Details { ", "sw_details { size: 7, "));
    }

    #[test]
    fn text_keeps_what_fits_and_counts_all() {
        let mut bytes = [b'.'; 8];
        for (room, kept) in [(0, "........"), (1, "a......."), (4, "abcd...."), (5, "abcde...")] {
            bytes.fill(b'.');
            let mut text = Text { buffer: bytes.as_mut_ptr(), room, length: 0 };
            for part in ["abc", "", "de"] {
                text.write_str(part).unwrap();
            }
            assert_eq!(text.length, 5);
            assert_eq!(bytes, kept.as_bytes());
        }
        let mut nowhere = Text { buffer: std::ptr::null_mut(), room: 0, length: 0 };
        nowhere.write_str("abc").unwrap();
        assert_eq!(nowhere.length, 3);
    }
}
