//! The example's own reading of the clock. The verdict never asks the library what time it is.

use std::time::Duration;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

pub fn sleep_until(instant: u64) {
    let left = instant.saturating_sub(now());
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
}
