//! The two clocks of the system that a service can count on, in nanoseconds.
//!
//! Ground rules: any thread may read them. A read does not enter the kernel (the vdso answers) and
//! costs some 20 to 50 ns, which makes it the dearest part of a start: read once per call. Neither
//! clock is set by anyone; that a reading never lies before an earlier one of another thread is the
//! kernel's promise, and whoever must not depend on it clamps.

/// Nanoseconds of `CLOCK_MONOTONIC`, which stands still while the machine is suspended.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of `CLOCK_BOOTTIME`, which goes on while the machine is suspended.
#[inline]
pub(crate) fn boottime_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// Nanoseconds of `CLOCK_MONOTONIC` as of the last tick of the kernel: an instant that has been,
/// at a sixth of the price.
#[inline]
pub(crate) fn monotonic_coarse_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec of ours to write to.
    let refused = unsafe { libc::clock_gettime(clock, &mut now) };
    debug_assert_eq!(refused, 0, "both clocks exist on every Linux");
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// An instant as the kernel takes it. Every `u64` fits: 2^64 ns are 1.8 * 10^10 seconds, and the
/// kernel takes an instant beyond its own range (292 years) for its last one.
pub(super) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_move_and_do_not_step_back() {
        for clock in [monotonic_ns, boottime_ns] {
            let first = clock();
            let mut last = first;
            while last == first {
                let now = clock();
                assert!(now >= last);
                last = now;
            }
        }
        assert!(boottime_ns() + 1_000_000_000 > monotonic_ns());
    }

    #[test]
    fn an_instant_is_split_exactly() {
        let at = timespec(u64::MAX);
        assert_eq!((at.tv_sec, at.tv_nsec), (18_446_744_073, 709_551_615));
        let at = timespec(1_999_999_999);
        assert_eq!((at.tv_sec, at.tv_nsec), (1, 999_999_999));
    }
}
