//! An instant on a service's clock, and durations as the engine counts them.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// An instant on a service's clock, in whole nanoseconds.
///
/// It means something only to the service that it came from: two services may count from different
/// zeros (a manual clock starts at 0, the others with the machine). Arithmetic saturates: what
/// would lie past the end is [`Time::NEVER`], what would lie before the beginning is
/// [`Time::ZERO`], a difference that would be negative is zero.
///
/// ```
/// use shardwheel::Time;
/// use std::time::Duration;
///
/// let noon = Time::from_nanos(5_000);
/// assert_eq!(noon + Duration::from_micros(2), Time::from_nanos(7_000));
/// assert_eq!(noon - Time::from_nanos(1_000), Duration::from_micros(4));
/// assert_eq!(noon + Duration::MAX, Time::NEVER);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Time(u64);

impl Time {
    /// The first instant of a clock.
    pub const ZERO: Time = Time(0);
    /// The instant that does not come.
    pub const NEVER: Time = Time(crate::types::NEVER);

    /// The instant so many nanoseconds after the clock's zero.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Nanoseconds since the clock's zero.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    #[inline]
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(nanos(duration)))
    }
}

impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    #[inline]
    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(nanos(duration)))
    }
}

impl Sub for Time {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Time::NEVER => f.write_str("Time::NEVER"),
            Time(nanos) => write!(f, "Time({:?})", Duration::from_nanos(nanos)),
        }
    }
}

/// Nanoseconds of a duration. One that does not fit (584 years) is [`crate::types::NEVER`].
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    let whole = duration.as_secs().checked_mul(1_000_000_000);
    whole
        .and_then(|whole| whole.checked_add(duration.subsec_nanos().into()))
        .unwrap_or(crate::types::NEVER)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact_up_to_the_end() {
        for n in [0, 1, 999_999_999, 1_000_000_000, u64::MAX - 1, u64::MAX] {
            assert_eq!(nanos(Duration::from_nanos(n)), n);
        }
        assert_eq!(nanos(Duration::from_nanos(u64::MAX) + Duration::from_nanos(1)), u64::MAX);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
    }

    #[test]
    fn arithmetic_saturates() {
        let time = Time::from_nanos(10);
        assert_eq!(time - Duration::from_nanos(11), Time::ZERO);
        assert_eq!(time - Time::from_nanos(11), Duration::ZERO);
        assert_eq!(Time::NEVER + Duration::from_nanos(1), Time::NEVER);
        assert!(Time::ZERO < time && time < Time::NEVER);
        assert_eq!(format!("{time:?} {:?}", Time::NEVER), "Time(10ns) Time::NEVER");
    }
}
