//! A service's clock, in nanoseconds.

use crate::config::ClockKind;
use crate::status::Error;
use crate::sync::{AtomicU64, Ordering};
use crate::sys::clock::{boottime_ns, monotonic_coarse_ns, monotonic_ns};

/// The coarse clock is behind by a kernel tick at most, which is 10 ms where it is slowest.
const COARSE_LAG_NS: u64 = 50_000_000;

/// Where a service's time comes from. Any thread reads it.
#[derive(Debug)]
pub(crate) struct Clock {
    kind: ClockKind,
    manual_ns: AtomicU64,
}

impl Clock {
    pub(crate) fn new(kind: ClockKind) -> Clock {
        Clock { kind, manual_ns: AtomicU64::new(0) }
    }

    pub(crate) fn kind(&self) -> ClockKind {
        self.kind
    }

    pub(crate) fn is_manual(&self) -> bool {
        self.kind == ClockKind::Manual
    }

    /// Now, on a manual clock.
    #[inline]
    pub(crate) fn manual_now(&self) -> u64 {
        // Acquire: pairs with `advance`: who sees the new time sees what came before it.
        self.manual_ns.load(Ordering::Acquire)
    }

    /// Now.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        match self.kind {
            ClockKind::Monotonic => monotonic_ns(),
            ClockKind::Boottime => boottime_ns(),
            ClockKind::Manual => self.manual_now(),
        }
    }

    /// Now, or some instant before now when the deadline is certainly ahead of both. A coarse reading
    /// costs a sixth of an exact one.
    #[inline]
    pub(crate) fn now_for(&self, deadline_ns: u64) -> u64 {
        if self.is_manual() { self.now() } else { self.real_now_for(deadline_ns) }
    }

    fn real_now_for(&self, deadline_ns: u64) -> u64 {
        if self.kind == ClockKind::Monotonic {
            let coarse_ns = monotonic_coarse_ns();
            if deadline_ns > coarse_ns.saturating_add(COARSE_LAG_NS) {
                return coarse_ns;
            }
        }
        self.now()
    }

    /// Moves a manual clock on; it stops at its end.
    pub(crate) fn advance(&self, by_ns: u64) -> Result<(), Error> {
        if !self.is_manual() {
            return Err(Error::Unsupported);
        }
        let mut now = self.manual_ns.load(Ordering::Relaxed);
        loop {
            let later = now.saturating_add(by_ns);
            match self.manual_ns.compare_exchange_weak(
                now,
                later,
                // Pairs with the Acquire in `now`.
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(seen) => now = seen,
            }
        }
    }
}
