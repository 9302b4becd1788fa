//! Instants and spans as operands: small numbers, and by construction the ones where timer wheels
//! break: level boundaries and their neighbours, powers of two, horizons, the past, the very end.

use std::fmt;

/// The end of time.
pub const NEVER: u64 = u64::MAX;

/// What an operand is resolved against.
pub struct Moment<'a> {
    pub now: u64,
    pub tick_ns: u64,
    /// The deadlines of the live timers, newest first.
    pub deadlines: &'a [u64],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    form: u8,
    x: u8,
    y: u8,
}

impl Instant {
    pub fn decode(form: u8, x: u8, y: u8) -> Instant {
        Instant { form, x, y }
    }

    /// Whether the call that takes a deadline is to be used, not the one that takes a delay.
    pub fn is_absolute(self) -> bool {
        self.form & 16 != 0
    }

    pub fn resolve(self, moment: &Moment) -> u64 {
        let &Moment { now, tick_ns, deadlines } = moment;
        let (x, y) = (u64::from(self.x), u64::from(self.y));
        let tick = now / tick_ns;
        // A tick before, on it, a tick after; and a nanosecond off.
        let beside = |ticks: u64| {
            let ticks = (ticks + [1, 0, 2][self.y as usize % 3]).saturating_sub(1);
            let instant = ticks.saturating_mul(tick_ns);
            match self.y / 3 % 4 {
                0 | 1 => instant,
                2 => instant.saturating_sub(1),
                _ => instant.saturating_add(1),
            }
        };
        let after = |ticks: u64| now.saturating_add(beside(ticks));
        match self.form % 16 {
            0 => now.saturating_add(x.saturating_mul(tick_ns)),
            // Within a tick.
            1 => now.saturating_add(tick_ns / 256 * x + y),
            // As far as a level reaches.
            2 => after(64_u64.saturating_pow(self.x as u32 % 11)),
            // The next boundary of a level.
            3 | 4 => {
                let shift = 6 * (self.x as u32 % 11);
                beside((tick >> shift).saturating_add(1).checked_shl(shift).unwrap_or(u64::MAX - 1))
            }
            // As another timer, or a little beside it.
            5 | 6 => {
                let Some(at) = self.x.checked_rem(deadlines.len().min(255) as u8) else {
                    return now;
                };
                let deadline = deadlines[usize::from(at)];
                match self.y % 8 {
                    0..=2 => deadline,
                    3 => deadline.saturating_add(1),
                    4 => deadline.saturating_sub(1),
                    5 => deadline.saturating_add(tick_ns),
                    6 => deadline.saturating_sub(tick_ns),
                    _ => deadline.div_ceil(tick_ns).saturating_mul(tick_ns),
                }
            }
            7 => after(1 << (self.x % 64)),
            8 => beside(1 << (self.x % 64)),
            9 => NEVER - x,
            10 => now.saturating_sub(x.saturating_mul(tick_ns)),
            11 => now / tick_ns * tick_ns,
            // Round the horizon of a word's tick, and multiples of what it counts from.
            12 => after((1_u64 << 33).saturating_mul(1 + x % 4) - (x / 4 % 3) * (1 << 29)),
            13 => beside((1_u64 << 33).saturating_mul(1 + x)),
            14 => [NEVER, 0, now, NEVER - 1][usize::from(self.x % 4)],
            _ => now.saturating_add((x << 8 | y).saturating_mul(tick_ns)),
        }
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = if self.is_absolute() { "at" } else { "in" };
        let forms = [
            "ticks", "part", "level", "edge", "edge", "beside", "beside", "after2^", "at2^", "end",
            "past", "tick", "horizon", "origin", "special", "far",
        ];
        write!(f, "{call} {}({},{})", forms[usize::from(self.form % 16)], self.x, self.y)
    }
}

/// A period, a slack or a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(u8);

impl Span {
    pub fn decode(byte: u8) -> Span {
        Span(byte % 16)
    }

    pub fn resolve(self, tick_ns: u64) -> u64 {
        let ticks = |count: u64| tick_ns.saturating_mul(count);
        match self.0 {
            0 => ticks(1),
            1 => ticks(3),
            2 => tick_ns / 3 + 1,
            3 => ticks(64),
            4 => ticks(7) + tick_ns / 2,
            5 => ticks(64 * 64 * 64 + 1),
            6 => 1,
            7 => 1 << 62,
            8 => ticks(63),
            9 => 0,
            10 => ticks(1) - 1,
            11 => ticks(2),
            12 => ticks(100),
            13 => ticks(1 << 34),
            14 => NEVER,
            _ => ticks(10) + 1,
        }
    }
}
