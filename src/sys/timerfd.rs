//! An alarm with a descriptor: what a shard sleeps on where futex does not do, and what a host's
//! poll loop waits for.
//!
//! Ground rules: any thread may call anything here; the kernel puts the calls in a row, and the
//! last one wins. So an `arm` or a `disarm` wipes out the `fire_now` before it, and who calls
//! them looks for work again afterwards; who calls `fire_now` publishes the work first. Nothing
//! here reads the descriptor, hence a waiter takes nothing away: it stays readable until the next
//! `arm` or `disarm`, for every thread that waits.
//!
//! `fire_now`, and `arm` for an instant that has gone by, make the descriptor readable before they
//! return. An hrtimer that is programmed for the past goes off by an interrupt soon after the call,
//! which is too late to promise that; and programming it is by far the dearest part (30 µs on a
//! virtual machine). So the count of expirations is set directly where the kernel lets us
//! (CONFIG_CHECKPOINT_RESTORE, as distributions build it), and otherwise we wait for the interrupt.

use super::clock;
use crate::config::ClockKind;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `_IOW('T', 0, u64)`.
const SET_TICKS: libc::c_ulong = 0x4008_5400;
/// How long `fire_now` waits for the interrupt before it takes another thread's `disarm` for the
/// reason that there is none.
const INTERRUPT_MS: i32 = 2;

/// An alarm on one clock.
#[derive(Debug)]
pub(crate) struct TimerFd {
    fd: OwnedFd,
    clock: ClockKind,
}

impl TimerFd {
    /// An alarm that is not armed. With the manual clock only `fire_now` and `disarm` make sense.
    /// Fails when the process is out of descriptors.
    pub(crate) fn new(clock: ClockKind) -> io::Result<Self> {
        let id = match clock {
            ClockKind::Monotonic | ClockKind::Manual => libc::CLOCK_MONOTONIC,
            ClockKind::Boottime => libc::CLOCK_BOOTTIME,
        };
        // SAFETY: takes no pointer.
        let fd = unsafe { libc::timerfd_create(id, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(TimerFd { fd: unsafe { OwnedFd::from_raw_fd(fd) }, clock })
    }

    /// Readable from this instant of the clock on, at once if it has gone by; `u64::MAX`: never.
    pub(crate) fn arm(&self, deadline_ns: u64) {
        let now = match self.clock {
            ClockKind::Monotonic => clock::monotonic_ns(),
            ClockKind::Boottime => clock::boottime_ns(),
            ClockKind::Manual => {
                debug_assert!(false, "the manual clock has no alarm");
                u64::MAX
            }
        };
        if deadline_ns == u64::MAX {
            self.disarm();
        } else if deadline_ns <= now {
            self.fire_now();
        } else {
            self.set(deadline_ns);
        }
    }

    /// Readable when this returns, until the next `arm` or `disarm`.
    pub(crate) fn fire_now(&self) {
        if !self.set_ticks() {
            self.set_past();
        }
    }

    /// Not readable, and nothing armed.
    pub(crate) fn disarm(&self) {
        self.set(0);
    }

    /// Sleeps until the descriptor is readable.
    pub(crate) fn wait(&self) {
        while self.poll(-1) < 0 {}
    }

    /// The descriptor, for the host to wait on; it stays ours.
    pub(crate) fn raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// The straight way to `fire_now`. False: not on this kernel.
    fn set_ticks(&self) -> bool {
        let ticks = 1u64;
        // SAFETY: this request reads one u64 from the address, which is that of a live one.
        unsafe { libc::ioctl(self.raw_fd(), SET_TICKS as _, &ticks) == 0 }
    }

    /// The long way to `fire_now`: an instant long past, and the wait for its interrupt.
    fn set_past(&self) {
        self.set(1);
        self.poll(INTERRUPT_MS);
    }

    /// 0 disarms; any other instant goes to the kernel as it is.
    fn set(&self, deadline_ns: u64) {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let at = libc::itimerspec { it_interval: zero, it_value: clock::timespec(deadline_ns) };
        let (fd, absolute) = (self.raw_fd(), libc::TFD_TIMER_ABSTIME);
        // SAFETY: `at` lives until the call is over; the old setting is not asked for.
        let refused = unsafe { libc::timerfd_settime(fd, absolute, &at, std::ptr::null_mut()) };
        debug_assert_eq!(refused, 0, "{}", io::Error::last_os_error());
    }

    fn poll(&self, timeout_ms: i32) -> i32 {
        let mut entry = libc::pollfd { fd: self.raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives until the call is over.
        unsafe { libc::poll(&mut entry, 1, timeout_ms) }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::Arc;

    pub(in crate::sys) fn readable(fd: i32) -> bool {
        let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives until the call is over.
        unsafe { libc::poll(&mut entry, 1, 0) == 1 }
    }

    const CLOCKS: [(ClockKind, fn() -> u64); 2] =
        [(ClockKind::Monotonic, clock::monotonic_ns), (ClockKind::Boottime, clock::boottime_ns)];

    #[test]
    fn fire_now_and_a_past_instant_are_readable_at_once() {
        for (clock, now) in CLOCKS {
            let alarm = TimerFd::new(clock).unwrap();
            for _ in 0..100 {
                assert!(!readable(alarm.raw_fd()));
                alarm.fire_now();
                assert!(readable(alarm.raw_fd()));
                alarm.wait();
                alarm.disarm();
                for past in [0, 1, now()] {
                    assert!(!readable(alarm.raw_fd()));
                    alarm.arm(past);
                    assert!(readable(alarm.raw_fd()));
                    alarm.disarm();
                }
            }
        }
    }

    #[test]
    fn both_ways_to_fire_are_readable_at_once() {
        let alarm = TimerFd::new(ClockKind::Manual).unwrap();
        for _ in 0..100 {
            alarm.set_past();
            assert!(readable(alarm.raw_fd()));
            alarm.disarm();
            assert!(!readable(alarm.raw_fd()));
            let there = alarm.set_ticks();
            assert_eq!(readable(alarm.raw_fd()), there);
            alarm.disarm();
            assert!(!readable(alarm.raw_fd()));
        }
    }

    #[test]
    fn an_alarm_goes_off_when_armed_for_and_not_before() {
        for (clock, now) in CLOCKS {
            let alarm = TimerFd::new(clock).unwrap();
            alarm.arm(u64::MAX - 1);
            assert!(!readable(alarm.raw_fd()));
            alarm.arm(u64::MAX);
            assert!(!readable(alarm.raw_fd()));
            let deadline = now() + 20_000_000;
            alarm.arm(deadline);
            alarm.wait();
            assert!(now() >= deadline);
            assert!(readable(alarm.raw_fd()));
            alarm.arm(now() + 3_600_000_000_000);
            assert!(!readable(alarm.raw_fd()));
        }
    }

    #[test]
    fn a_sleeper_is_woken_and_the_alarm_behind_it_stays_armed_no_longer() {
        let alarm = Arc::new(TimerFd::new(ClockKind::Monotonic).unwrap());
        alarm.arm(clock::monotonic_ns() + 3_600_000_000_000);
        let sleeper = std::thread::spawn({
            let alarm = alarm.clone();
            move || alarm.wait()
        });
        std::thread::sleep(std::time::Duration::from_millis(10));
        alarm.fire_now();
        sleeper.join().unwrap();
        alarm.disarm();
        assert!(!readable(alarm.raw_fd()));
    }
}
