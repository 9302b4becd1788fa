//! The counters, as a struct and as text.

use super::engine;
use super::service::sw_service;
use super::sized;
use super::status::{sw_status, sw_status::*};
use super::types::*;
use crate::types::Stats;
use std::ffi::c_char;
use std::fmt::{self, Write};

/// Reads the counters.
///
/// `shard`: an index, or `SW_SHARD_ANY` for the sum. `stats`: receives them; not NULL, with its
/// `size` set. The percentiles of lateness and of the callbacks' time are not measured yet: they
/// read 0. While other threads are at work, the counters are of slightly different instants.
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

/// Writes the counters of every shard in the Prometheus text format, as `snprintf` would.
///
/// `buffer`: room for `capacity` bytes; NULL only if `capacity` is 0. At most `capacity` bytes
/// are written, the final NUL included. `needed`: receives the length of the whole text without
/// its NUL; may be NULL. The text is whole when `needed` is less than `capacity`.
///
/// Returns `SW_OK`, also on a stopped service and when the text was cut; `SW_INVALID`;
/// `SW_FORKED`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_stats_prometheus(
    service: *mut sw_service,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> sw_status {
    // SAFETY: the caller's promise.
    let Some(engine) = (unsafe { engine(service) }) else { return SW_INVALID };
    if buffer.is_null() && capacity != 0 {
        return SW_INVALID;
    }
    let shards: Result<Vec<Stats>, _> =
        (0..engine.shard_count()).map(|shard| engine.stats(shard)).collect();
    let shards = match shards {
        Ok(shards) => shards,
        Err(error) => return error.into(),
    };
    let mut text = Text { buffer: buffer.cast(), room: capacity.saturating_sub(1), length: 0 };
    // `Text` takes everything.
    let _ = exposition(&shards, &mut text);
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

/// One metric: name, kind, help, and where it stands.
struct Metric(&'static str, &'static str, &'static str, fn(&Stats) -> u64);

const METRICS: [Metric; 13] = [
    Metric("timers_pending", "gauge", "Timers that are live now.", |s| s.pending),
    Metric("timers_high_water", "gauge", "Most timers live at once.", |s| s.high_water),
    Metric("timers_started_total", "counter", "Timers accepted.", |s| s.started),
    Metric("fired_total", "counter", "Callbacks run, or events taken.", |s| s.fired),
    Metric("timers_ended_by_fire_total", "counter", "Timers that ended by firing.", |s| {
        s.ended_by_fire
    }),
    Metric("timers_cancelled_total", "counter", "Timers that ended by a cancel.", |s| s.cancelled),
    Metric("timers_returned_total", "counter", "Timers handed back by stop.", |s| s.returned),
    Metric("timers_rejected_total", "counter", "Starts refused because the shard was full.", |s| {
        s.rejected
    }),
    Metric("periods_missed_total", "counter", "Periods that went by unserved.", |s| s.missed),
    Metric("wakeups_total", "counter", "Times that the shard's thread woke.", |s| s.wakeups),
    Metric("slow_callbacks_total", "counter", "Callbacks over the configured limit.", |s| {
        s.slow_callbacks
    }),
    Metric("memory_bytes", "gauge", "Bytes held for timers and wheels.", |s| s.memory_bytes),
    Metric("overdue_nanoseconds", "gauge", "How far the most overdue timer is behind.", |s| {
        s.overdue_ns
    }),
];

fn exposition(shards: &[Stats], text: &mut impl Write) -> fmt::Result {
    for Metric(name, kind, help, value) in &METRICS {
        writeln!(text, "# HELP shardwheel_{name} {help}")?;
        writeln!(text, "# TYPE shardwheel_{name} {kind}")?;
        for (shard, stats) in shards.iter().enumerate() {
            writeln!(text, "shardwheel_{name}{{shard=\"{shard}\"}} {}", value(stats))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_shards() -> Vec<Stats> {
        let busy = Stats { pending: 3, started: u64::MAX, overdue_ns: 5, ..Stats::default() };
        vec![busy, Stats::default()]
    }

    #[test]
    fn each_metric_is_one_block_with_a_line_for_each_shard() {
        let mut text = String::new();
        exposition(&two_shards(), &mut text).unwrap();
        let pending = "# HELP shardwheel_timers_pending Timers that are live now.\n\
                       # TYPE shardwheel_timers_pending gauge\n\
                       shardwheel_timers_pending{shard=\"0\"} 3\n\
                       shardwheel_timers_pending{shard=\"1\"} 0\n";
        assert!(text.starts_with(pending), "{text}");
        let started = "shardwheel_timers_started_total{shard=\"0\"} 18446744073709551615\n";
        assert!(text.contains(started), "{text}");
        assert_eq!(text.lines().count(), METRICS.len() * 4);
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn counters_and_only_they_are_called_total() {
        for Metric(name, kind, ..) in &METRICS {
            assert_eq!(name.ends_with("_total"), *kind == "counter", "{name}");
        }
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
