//! The wheel looked at the slow way, for tests.

use super::buckets::Bucket;
use super::chunks::{ENTRIES, NONE};
use super::reminder::{Reminder, TICK_BITS};
use super::{Wheel, bits};
use std::collections::HashSet;

impl Wheel {
    /// All reminders with their buckets: bucket by bucket, in each in order.
    pub(super) fn dump(&self) -> Vec<(usize, Reminder)> {
        let mut all = Vec::new();
        for bucket in 0..bits::BUCKETS {
            for chunk in self.chain(bucket) {
                let len = self.buckets.chunk_len(bucket, chunk);
                let entries = &self.buckets.pool.chunk(chunk).entries[..len];
                all.extend(entries.iter().map(|&reminder| (bucket, reminder)));
            }
        }
        all
    }

    /// Whether a cascade has begun and is not finished.
    pub(super) fn is_cascading(&self) -> bool {
        self.cascading.is_some()
    }

    /// The chunks of a bucket, in order.
    fn chain(&self, bucket: usize) -> Vec<u32> {
        let Bucket { head, tail } = self.buckets.buckets[bucket];
        let mut chain = Vec::new();
        if head != NONE {
            chain.push(head);
            while chain[chain.len() - 1] != self.buckets.buckets[bucket].last() {
                chain.push(self.buckets.pool.chunk(chain[chain.len() - 1]).next);
                assert!(chain.len() <= self.buckets.pool.used(), "bucket {bucket} is a circle");
            }
        } else {
            assert_eq!(tail, NONE);
        }
        chain
    }

    /// Panics unless everything that the ground rules say holds.
    pub(super) fn check(&self) {
        let all = self.dump();
        assert_eq!(self.len, all.len(), "count");
        let held: HashSet<usize> = all.iter().map(|&(bucket, _)| bucket).collect();
        let mut chunks = HashSet::new();
        for bucket in 0..bits::BUCKETS {
            let level = bits::level(bucket) as usize;
            let occupied = self.buckets.occupied[level] >> (bucket & 63) & 1 == 1;
            assert_eq!(occupied, held.contains(&bucket), "occupancy of {bucket}");
            for chunk in self.chain(bucket) {
                assert!(chunks.insert(chunk), "chunk {chunk} is used twice");
                let len = self.buckets.chunk_len(bucket, chunk);
                let least = usize::from(occupied);
                assert!((least..=ENTRIES).contains(&len), "chunk {chunk} has {len}");
            }
        }
        for (level, word) in self.buckets.occupied.iter().enumerate() {
            assert_eq!(self.buckets.levels >> level & 1 == 1, *word != 0, "level {level}");
        }
        assert_eq!(chunks.len(), self.buckets.pool.used(), "chunks are lost");

        // Each is where its tick belongs, as far as it knows its tick.
        let present = bits::bucket_of(self.elapsed, self.elapsed);
        let began = self.cascading.map(|bucket| bits::first_tick(self.elapsed, bucket));
        for &(bucket, reminder) in &all {
            let level = bits::level(bucket);
            let staged = self.cascading.is_some_and(|b| level < bits::level(b));
            let from = if staged { began.unwrap() } else { self.elapsed };
            let first = bits::first_tick(from, bucket);
            assert!(first > from || bucket == present || staged, "{bucket} is past");
            let known = ((1 << TICK_BITS) - 1) & !bits::below(level);
            assert_eq!(first & known, reminder.tick() & known, "{reminder:?} in {bucket}");
        }

        // What comes next, found by looking at everything.
        let next = match began {
            Some(first) if self.len > 0 => Some(first),
            _ => all.iter().map(|&(bucket, _)| bits::first_tick(self.elapsed, bucket)).min(),
        };
        assert_eq!(self.next_tick(), next);
    }
}
