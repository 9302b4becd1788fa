//! Where a tick belongs: pure functions on ticks, levels and bucket numbers.
//!
//! A tick is read as eleven digits of six bits, digit 0 the lowest. Seen from `elapsed`, a later
//! tick belongs to the level of the highest digit in which the two differ, and there to the
//! bucket of its own digit. Buckets have one number: `level * 64 + digit`.

/// Bits of a digit.
pub(super) const DIGIT_BITS: u32 = 6;
/// Buckets of a level.
pub(super) const DIGITS: usize = 1 << DIGIT_BITS;
/// Levels that cover every `u64`.
pub(crate) const LEVELS: usize = 11;
/// Buckets of all levels.
pub(super) const BUCKETS: usize = LEVELS * DIGITS;

/// The level to which `tick` belongs, seen from `elapsed`. Equal ticks: level 0.
#[inline(always)]
pub(super) fn level_of(elapsed: u64, tick: u64) -> u32 {
    ((tick ^ elapsed) | 1).ilog2() / DIGIT_BITS
}

/// The bucket to which `tick` belongs, seen from `elapsed`.
#[inline(always)]
pub(super) fn bucket_of(elapsed: u64, tick: u64) -> usize {
    let level = level_of(elapsed, tick);
    (level as usize) << DIGIT_BITS | digit(tick, level)
}

/// The bucket to which `tick` belongs, seen from the first tick of its bucket at `level`, which is not the lowest:
/// mostly one of the next level down. The digits from `level` up do not count.
#[inline(always)]
pub(super) fn bucket_below(level: u32, tick: u64) -> usize {
    match digit(tick, level - 1) {
        0 => bucket_of(0, tick & below(level)),
        digit => (level as usize - 1) << DIGIT_BITS | digit,
    }
}

/// The digit of `tick` at `level`.
#[inline(always)]
pub(super) fn digit(tick: u64, level: u32) -> usize {
    (tick >> (level * DIGIT_BITS)) as usize & (DIGITS - 1)
}

/// The level of a bucket.
#[inline(always)]
pub(super) fn level(bucket: usize) -> u32 {
    (bucket >> DIGIT_BITS) as u32
}

/// The bits of a tick below its digit at `level`: how far into a bucket of that level a tick is.
#[inline(always)]
pub(super) fn below(level: u32) -> u64 {
    (1 << (level * DIGIT_BITS)) - 1
}

/// The first tick of `bucket`, seen from `elapsed`.
#[inline(always)]
pub(super) fn first_tick(elapsed: u64, bucket: usize) -> u64 {
    let level = level(bucket);
    let above = u64::MAX.checked_shl((level + 1) * DIGIT_BITS).unwrap_or(0);
    (elapsed & above) | ((bucket & (DIGITS - 1)) as u64) << (level * DIGIT_BITS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::wheel::tests::ORIGINS;

    /// The same by hand: the digits from the top, until two differ.
    fn by_hand(elapsed: u64, tick: u64) -> usize {
        let digits = |t: u64| (0..LEVELS).map(move |l| (u128::from(t) >> (6 * l)) as usize % 64);
        let (old, new): (Vec<_>, Vec<_>) = (digits(elapsed).collect(), digits(tick).collect());
        let level = (0..LEVELS).rev().find(|&l| old[l] != new[l]).unwrap_or(0);
        level * 64 + new[level]
    }

    #[test]
    fn the_short_way_down_is_the_same() {
        for level in 1..4 {
            for bucket in [0, 1, 5, 63] {
                let first = 77 << (6 * (level + 1)) | bucket << (6 * level);
                let steps = (0..=6 * level).flat_map(|bit| [0, 1, 2].map(|n| (1 << bit) + n));
                for into in steps.chain([0]).filter(|&into| into <= below(level)) {
                    let tick = first + into;
                    assert_eq!(bucket_below(level, tick), bucket_of(first, tick), "{tick}");
                }
            }
        }
    }

    #[test]
    fn every_boundary_from_every_origin() {
        for origin in ORIGINS {
            for level in 0..LEVELS as u32 {
                for k in [1u64, 2, 31, 63, 64] {
                    let span = k << (6 * level);
                    if level == 10 && k > 15 {
                        continue;
                    }
                    let edge = origin.saturating_add(span);
                    let aligned = edge & !below(level);
                    for base in [edge, aligned] {
                        for tick in [base.wrapping_sub(1), base, base.saturating_add(1)] {
                            if tick > origin {
                                one(origin, tick);
                            }
                        }
                    }
                }
            }
            if origin < u64::MAX {
                one(origin, u64::MAX);
                one(origin, origin + 1);
            }
        }
    }

    fn one(elapsed: u64, tick: u64) {
        let bucket = bucket_of(elapsed, tick);
        assert_eq!(bucket, by_hand(elapsed, tick), "{elapsed} {tick}");
        assert_eq!(level(bucket), level_of(elapsed, tick));
        let (first, span) = (first_tick(elapsed, bucket), below(level(bucket)));
        assert!(first <= tick && tick - first <= span, "{elapsed} {tick}");
        assert!(first > elapsed, "the whole bucket is still to come: {elapsed} {tick}");
        // From the tick before the bucket, and from anywhere between, it is the same bucket.
        for seen_from in [first - 1, elapsed + (first - 1 - elapsed) / 2] {
            assert_eq!(bucket_of(seen_from, tick), bucket);
            assert_eq!(first_tick(seen_from, bucket), first);
        }
        // From its first tick it belongs to a lower level, or is that very tick.
        assert!(level_of(first, tick) < level(bucket) || level(bucket) == 0);
    }

    #[test]
    fn the_present_tick_is_level_zero() {
        for origin in ORIGINS {
            assert_eq!(bucket_of(origin, origin), origin as usize & 63);
            assert_eq!(first_tick(origin, bucket_of(origin, origin)), origin);
        }
    }
}
