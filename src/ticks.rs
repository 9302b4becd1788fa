//! Nanoseconds and ticks: the one place that rounds.
//!
//! A deadline of `D` nanoseconds comes due at tick `ceil(D / tick_ns)`, and a tick is reached when
//! `floor(now / tick_ns)` gets there, so no timer runs a nanosecond early. A timer that is armed at
//! or past its deadline is due at once: its tick is then one that the clock has already reached.

use crate::types::NEVER;

/// Up to here ticks are found by a product: 292 years.
pub(crate) const NEAR_NS: u64 = 1 << 63;

/// The tick of a deadline that does not come.
pub(crate) const NEVER_TICK: u64 = u64::MAX;

/// An instant at which a timer is due: the tick that the wheel goes by, and the exact deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) tick: u64,
    pub(crate) deadline_ns: u64,
}

/// The length of a tick, with its conversions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    tick_ns: u64,
    /// For division by a product: see `floor_near`.
    factor: u64,
    shift: u32,
}

impl Ticks {
    pub(crate) fn new(tick_ns: u64) -> Ticks {
        debug_assert!(tick_ns >= 2);
        // More than 2^(64 + shift) / tick_ns, by less than 1 + 2^(shift + 1) / tick_ns; below 2^64.
        let shift = (tick_ns - 1).ilog2();
        let factor = ((1u128 << (64 + shift)) / u128::from(tick_ns) + 1) as u64;
        Ticks { tick_ns, factor, shift }
    }

    /// `ns / tick_ns`.
    #[inline]
    fn floor(self, ns: u64) -> u64 {
        if ns < NEAR_NS { self.floor_near(ns) } else { ns / self.tick_ns }
    }

    /// `ns / tick_ns` without a division, of instants below `NEAR_NS`. (Granlund and Montgomery, "Division by
    /// invariant integers using multiplication", 1994, theorem 4.2, for 63 bits.)
    #[inline(always)]
    fn floor_near(self, ns: u64) -> u64 {
        debug_assert!(ns < NEAR_NS);
        ((u128::from(self.factor) * u128::from(ns)) >> 64) as u64 >> self.shift
    }

    /// Does the distance of a deadline from its tick always fit in 32 bits?
    #[inline]
    pub(crate) fn always_fits_low(self) -> bool {
        self.tick_ns <= 1 << 31
    }

    /// The tick that a clock at `now_ns` has reached. A clock at its end has reached every tick
    /// that a deadline can be rounded up to.
    #[inline]
    pub(crate) fn reached(self, now_ns: u64) -> u64 {
        if now_ns == NEVER { self.ceil(NEVER) } else { self.floor(now_ns) }
    }

    /// The tick of a deadline that comes, if the clock stands before it.
    #[inline]
    pub(crate) fn ceil(self, ns: u64) -> u64 {
        if ns == 0 { 0 } else { self.floor(ns - 1) + 1 }
    }

    /// As `ceil`, of an instant that is not 0 and not beyond `NEAR_NS`.
    #[inline(always)]
    pub(crate) fn ceil_near(self, ns: u64) -> u64 {
        self.floor_near(ns.wrapping_sub(1)) + 1
    }

    /// When a timer with this deadline is due, if the clock stands before it.
    #[inline]
    pub(crate) fn due(self, deadline_ns: u64) -> Due {
        let tick = if deadline_ns == NEVER { NEVER_TICK } else { self.ceil(deadline_ns) };
        Due { tick, deadline_ns }
    }

    /// When a timer is due that is armed at `now_ns`: at once if its deadline is not ahead.
    #[inline]
    pub(crate) fn due_from(self, deadline_ns: u64, now_ns: u64) -> Due {
        let mut due = self.due(deadline_ns);
        if deadline_ns <= now_ns && deadline_ns != NEVER {
            due.tick = due.tick.min(self.reached(now_ns));
        }
        due
    }

    /// Moves a due tick later within the slack, to the tick with the most trailing zeros, so that
    /// timers with slack meet. (The idea is Linux's `round_jiffies` and timer slack.)
    pub(crate) fn relax(self, due: Due, slack_ns: u64) -> Due {
        if slack_ns == 0 || due.tick == 0 || due.tick == NEVER_TICK {
            return due;
        }
        let last = self.floor(due.deadline_ns.saturating_add(slack_ns));
        if last <= due.tick {
            return due;
        }
        let differing = (due.tick - 1) ^ last;
        let keep = u64::MAX << (63 - differing.leading_zeros());
        Due { tick: last & keep, deadline_ns: due.deadline_ns }
    }

    /// The instant of a tick in nanoseconds; saturates at [`NEVER`].
    #[inline]
    pub(crate) fn instant(self, tick: u64) -> u64 {
        tick.saturating_mul(self.tick_ns)
    }

    /// What the deadline differs from its tick's instant by, modulo 2^64.
    #[inline]
    pub(crate) fn trim(self, due: Due) -> i64 {
        due.deadline_ns.wrapping_sub(due.tick.wrapping_mul(self.tick_ns)) as i64
    }

    /// Can the deadline be found again from its tick and its low 32 bits?
    #[inline]
    pub(crate) fn fits_low(self, due: Due) -> bool {
        self.trim(due).unsigned_abs() < self.tick_ns.min(1 << 31)
    }

    /// The deadline with these low 32 bits that lies within a tick of a tick's instant; that instant, if
    /// none does.
    #[inline]
    pub(crate) fn with_low(self, tick: u64, low: u32) -> Due {
        let instant = tick.wrapping_mul(self.tick_ns);
        let trim = i64::from(low.wrapping_sub(instant as u32) as i32);
        let near = trim.unsigned_abs() < self.tick_ns;
        Due { tick, deadline_ns: if near { instant.wrapping_add(trim as u64) } else { instant } }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_up_to_the_nanosecond() {
        let ticks = Ticks::new(1_000_000);
        assert_eq!(ticks.due(0).tick, 0);
        assert_eq!(ticks.due(1).tick, 1);
        assert_eq!(ticks.due(1_000_000).tick, 1);
        assert_eq!(ticks.due(1_000_001).tick, 2);
        assert_eq!(ticks.reached(999_999), 0);
        assert_eq!(ticks.reached(1_000_000), 1);
        assert_eq!(ticks.due(NEVER).tick, NEVER_TICK);
        assert!(ticks.reached(NEVER) >= ticks.due(NEVER - 1).tick);
        assert!(ticks.reached(NEVER) < NEVER_TICK);
    }

    #[test]
    fn products_divide() {
        let lengths = [2, 3, 7, 641, 1_000, 4_095, 4_096, 4_097, 999_999, 1_000_000, 1_234_567];
        let long = [1 << 31, (1 << 31) + 1, 3_600_000_000_000, (1 << 62) + 1, u64::MAX >> 1];
        let lengths = lengths.into_iter().chain(long);
        for tick_ns in lengths {
            let ticks = Ticks::new(tick_ns);
            for near in [0, 1, 2, 1_000, 1 << 32, 1 << 63, NEVER] {
                for multiple in [near, near / tick_ns * tick_ns] {
                    for ns in (0..5).map(|n| multiple.wrapping_add(n).wrapping_sub(2)) {
                        assert_eq!(ticks.floor(ns), ns / tick_ns, "{ns} / {tick_ns}");
                        assert_eq!(ticks.ceil(ns), ns.div_ceil(tick_ns), "{ns} / {tick_ns}");
                        if (1..=NEAR_NS).contains(&ns) {
                            assert_eq!(ticks.ceil_near(ns), ticks.ceil(ns), "{ns} / {tick_ns}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn armed_late_is_due_at_once() {
        let ticks = Ticks::new(1_000);
        assert_eq!(ticks.due_from(1_500, 1_400).tick, 2);
        assert_eq!(ticks.due_from(1_500, 1_500).tick, 1);
        assert_eq!(ticks.due_from(1_500, 1_700).tick, 1);
        assert_eq!(ticks.due_from(0, 1_700).tick, 0);
        assert_eq!(ticks.due_from(NEVER, NEVER).tick, NEVER_TICK);
    }

    #[test]
    fn low_bits_restore_the_deadline() {
        for tick_ns in [1_000, 1_234_567, 1_000_000] {
            let ticks = Ticks::new(tick_ns);
            for deadline in [0, 1, 999, 1_000, 1_001, 123_456_789_012, u64::MAX - 1] {
                let due = ticks.due(deadline);
                assert!(ticks.fits_low(due));
                assert_eq!(ticks.with_low(due.tick, deadline as u32), due);
                // Low bits of some other deadline give the tick's instant, or one within a tick.
                let other = ticks.with_low(due.tick, (deadline as u32).wrapping_add(1 << 30));
                assert_eq!(ticks.trim(other), 0);
            }
        }
    }

    #[test]
    fn slack_moves_later_and_never_too_far() {
        let ticks = Ticks::new(1_000);
        for tick in 0..200u64 {
            for slack in 0..70u64 {
                let due = Due { tick, deadline_ns: tick * 1_000 };
                let relaxed = ticks.relax(due, slack * 1_000);
                assert!(relaxed.tick >= tick && relaxed.tick <= tick + slack);
                let best = (tick..=tick + slack).map(u64::trailing_zeros).max().unwrap();
                assert_eq!(relaxed.tick.trailing_zeros(), best, "{tick} + {slack}");
            }
        }
        // Off the grid, to the nanosecond.
        for deadline_ns in 6_000..9_000 {
            let due = ticks.due(deadline_ns);
            for slack_ns in [1, 250, 999, 1_000, 1_500, 2_999] {
                let tick = ticks.relax(due, slack_ns).tick;
                assert!(tick == due.tick || tick * 1_000 <= deadline_ns + slack_ns);
            }
            let late = Due { tick: due.tick + 9, deadline_ns };
            assert_eq!(ticks.relax(late, 1_500), late, "armed when it was over");
        }
    }
}
