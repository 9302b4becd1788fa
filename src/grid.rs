//! The grid of a periodic timer: which of its points is served, and how many went by.
//!
//! Ground rules: numbers alone. Who serves a point, and arms the next, is told in `fire` and `queue`.

use crate::extra::Extra;
use crate::sync::Ordering;
use crate::types::{NEVER, TIMER_BURST, TIMER_FIXED_DELAY};

/// The grid of a periodic timer; of a one-shot, with a period of 0, its one point.
pub(crate) struct Grid {
    pub(crate) period_ns: u64,
    pub(crate) burst: bool,
    pub(crate) fixed_delay: bool,
}

impl Grid {
    pub(crate) fn of(extra: &Extra) -> Grid {
        let flags = extra.flags.load(Ordering::Relaxed);
        Grid {
            period_ns: extra.period_ns.load(Ordering::Relaxed),
            burst: flags & TIMER_BURST != 0,
            fixed_delay: flags & TIMER_FIXED_DELAY != 0,
        }
    }

    /// Which point of the grid is served now, and how many before it went by: the latest that is due
    /// (the first, if each is served). `reached_ns` is the instant of the tick that has been reached.
    pub(crate) fn serve(&self, deadline_ns: u64, reached_ns: u64) -> (u64, u64) {
        if self.period_ns == 0 || self.burst || self.fixed_delay || deadline_ns == NEVER {
            return (deadline_ns, 0);
        }
        let missed = reached_ns.saturating_sub(deadline_ns) / self.period_ns;
        (deadline_ns + missed * self.period_ns, missed)
    }
}

/// Is each missed point served?
pub(crate) fn is_burst(extra: &Extra) -> bool {
    extra.flags.load(Ordering::Relaxed) & TIMER_BURST != 0
}
