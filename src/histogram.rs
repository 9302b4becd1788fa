//! A histogram of durations that one thread writes and any thread reads.
//!
//! The buckets are log-linear: each power of two is cut into 32, so that a bucket is at most 1/32 of
//! its lower bound wide, over all of `u64`. What is read is the upper bound of a bucket: never below
//! the truth, and less than 3.2 % above it. The greatest value is kept exactly.
//!
//! Ground rules: `record` is for the writing thread alone, and is a plain load and store of one bucket;
//! memory comes as zeros and is touched where values fall. A reader may see one bucket newer than
//! another.

use crate::sync::ProcessWide;
use crate::sys::memory::{Zeroed, allocate, release};
use crate::tally::Number;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;
/// 64 buckets of one value each, then 32 for each power of two from 2^6 on.
/// (A model measures nothing.)
const BUCKETS: usize =
    if cfg!(loom) { 1 } else { (u64::BITS as usize - SUB_BITS as usize + 1) * SUB };

#[derive(Default)]
struct Bucket(ProcessWide);

// SAFETY: an integer; zero is the `Default`.
unsafe impl Zeroed for Bucket {}

/// See the head of this file.
pub(crate) struct Histogram {
    buckets: NonNull<Bucket>,
    max: Number,
}

// SAFETY: the buckets are atomics, which live as long as this.
unsafe impl Send for Histogram {}
// SAFETY: as above.
unsafe impl Sync for Histogram {}

fn index_of(value: u64) -> usize {
    let shift = (value | SUB as u64).ilog2() - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// The greatest value of a bucket.
fn upper(index: usize) -> u64 {
    let shift = (index >> SUB_BITS).saturating_sub(1) as u32;
    let end = (index - ((shift as usize) << SUB_BITS)) as u64 + 1;
    // The last bucket ends where `u64` does.
    end.wrapping_shl(shift).wrapping_sub(1)
        | if end << shift >> shift == end { 0 } else { u64::MAX }
}

/// Some points of a distribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Points {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

impl Histogram {
    /// `None`: no memory.
    pub(crate) fn new() -> Option<Histogram> {
        Some(Histogram { buckets: allocate(BUCKETS)?, max: Number::default() })
    }

    fn buckets(&self) -> &[Bucket] {
        // SAFETY: allocated with this length, zeroed, and given back by drop alone.
        unsafe { std::slice::from_raw_parts(self.buckets.as_ptr(), BUCKETS) }
    }

    /// Counts a value `weight` times. By the writing thread alone.
    #[inline]
    pub(crate) fn record(&self, value: u64, weight: u64) {
        if cfg!(loom) {
            return;
        }
        let bucket = &self.buckets()[index_of(value)].0;
        // Relaxed: numbers to look at, which order nothing.
        bucket.store(bucket.load(Ordering::Relaxed).wrapping_add(weight), Ordering::Relaxed);
        if value > self.max.get() {
            self.max.set(value);
        }
    }

    fn count(&self, index: usize) -> u64 {
        self.buckets()[index].0.load(Ordering::Relaxed)
    }

    /// Points of all of these together.
    pub(crate) fn points<'a>(all: impl Iterator<Item = &'a Histogram> + Clone) -> Points {
        let at = |index| all.clone().map(|one| one.count(index)).sum::<u64>();
        let total: u64 = (0..BUCKETS).map(at).sum();
        let max = all.clone().map(|one| one.max.get()).max().unwrap_or(0);
        if total == 0 {
            return Points::default();
        }
        let mut ranks =
            [total.div_ceil(2), share(total, 990), share(total, 999)].into_iter().peekable();
        let (mut seen, mut found) = (0u64, [max; 3]);
        let mut next = 0;
        for index in 0..BUCKETS {
            seen += at(index);
            while ranks.next_if(|&rank| rank <= seen).is_some() {
                found[next] = upper(index).min(max);
                next += 1;
            }
        }
        let [p50, p99, p999] = found;
        Points { p50, p99, p999, max }
    }

    /// How many values were at most `2^power - 1`, for each of these powers in order (6 and above); then how
    /// many there are, and the sum of all, to within 1.6 %.
    pub(crate) fn cumulated<const N: usize>(&self, powers: [u32; N]) -> ([u64; N], u64, u128) {
        let (mut below, mut count, mut sum) = ([0; N], 0u64, 0u128);
        let mut next = 0;
        for index in 0..BUCKETS {
            while next < N && index == index_of(1 << powers[next]) {
                below[next] = count;
                next += 1;
            }
            let here = self.count(index);
            let low = if index == 0 { 0 } else { upper(index - 1) + 1 };
            let middle = low + (upper(index) - low) / 2;
            sum += u128::from(here) * u128::from(middle);
            count += here;
        }
        (below, count, sum)
    }
}

/// So many thousandths of a count, rounded up.
fn share(total: u64, thousandths: u64) -> u64 {
    (u128::from(total) * u128::from(thousandths)).div_ceil(1_000) as u64
}

impl Drop for Histogram {
    fn drop(&mut self) {
        // SAFETY: from `allocate` with this length; nobody else is here.
        unsafe { release(self.buckets, BUCKETS) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_begins_where_the_last_ended_and_is_narrow() {
        let mut low = 0;
        for index in 0..BUCKETS {
            let high = upper(index);
            assert_eq!((index_of(low), index_of(high)), (index, index));
            assert!(high >= low && u128::from(high - low) * 32 <= u128::from(low), "{low} {high}");
            low = high.wrapping_add(1);
        }
        assert_eq!(low, 0, "the last one ends with u64");
    }

    #[test]
    fn points_are_the_truth_or_less_than_3_2_percent_above() {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        for bits in [4, 10, 20, 40, 63] {
            let parts = [Histogram::new().unwrap(), Histogram::new().unwrap()];
            let mut values: Vec<u64> =
                (0..10_000).map(|_| draw() >> (63 - draw() % bits)).collect();
            for (nth, &value) in values.iter().enumerate() {
                parts[nth % 2].record(value, 1);
            }
            values.sort_unstable();
            let points = Histogram::points(parts.iter());
            for (point, rank) in [(points.p50, 5_000), (points.p99, 9_900), (points.p999, 9_990)] {
                let truth = values[rank - 1];
                let most = u128::from(truth) * 1_032 / 1_000;
                assert!(point >= truth && u128::from(point) <= most, "{bits}: {truth} {point}");
            }
            assert_eq!(points.max, values[9_999]);
        }
        assert_eq!(Histogram::points([].iter()), Points::default());
    }

    #[test]
    fn a_weight_counts_as_often() {
        let histogram = Histogram::new().unwrap();
        histogram.record(10, 98);
        histogram.record(1_000, 1);
        histogram.record(50_000, 1);
        let points = Histogram::points(std::iter::once(&histogram));
        assert_eq!((points.p50, points.max), (10, 50_000));
        assert!((1_000..1_032).contains(&points.p99), "{points:?}");
    }

    #[test]
    fn cumulated_counts_are_exact_at_powers_of_two() {
        let histogram = Histogram::new().unwrap();
        for value in [0, 5, 63, 64, 1_023, 1_024, 1 << 40] {
            histogram.record(value, 2);
        }
        let (below, count, sum) = histogram.cumulated([6, 10, 11]);
        assert_eq!((below, count), ([6, 10, 12], 14));
        let exact = 2 * (5 + 63 + 64 + 1_023 + 1_024 + (1u128 << 40));
        assert!(sum.abs_diff(exact) * 1_000 <= exact * 16, "{sum} {exact}");
    }
}
