//! The numbers of a service: sums over its ports and owners. A read stops nobody and writes no line that
//! a hot path uses.

use crate::clock::Clock;
use crate::engine::Engine;
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::{Ordering, fence};
use crate::types::{SHARD_ANY, Stats};
use crate::word::Phase;

impl Engine {
    /// The numbers of one shard, or of all ([`SHARD_ANY`]).
    ///
    /// # Errors
    /// `Invalid`, `Forked`.
    pub fn stats(&self, shard: u32) -> Result<Stats, Error> {
        self.alive()?;
        if shard != SHARD_ANY {
            return Ok(self.shard(shard)?.stats(self.clock()));
        }
        let mut sum = Stats::default();
        for shard in self.shards() {
            sum.add(&shard.stats(self.clock()));
        }
        Ok(sum)
    }
}

impl Shard {
    fn stats(&self, clock: &Clock) -> Stats {
        let mut stats = Stats {
            pending: self.pending(),
            high_water: self.high_water(),
            returned: self.returned.load(Ordering::Relaxed),
            wakeups: self.tally.wakeups.get(),
            slow_callbacks: self.tally.slow_callbacks.get(),
            memory_bytes: self.bytes(),
            overdue_ns: self.overdue_ns(clock),
            ..Stats::default()
        };
        for port in self.ports() {
            let counters = &port.own.counters;
            stats.started += counters.started.get();
            stats.cancelled += counters.cancelled.get();
            stats.fired += counters.fired.get();
            stats.ended_by_fire = stats.ended_by_fire.wrapping_add(counters.ended_by_fire.get());
            stats.missed += counters.missed.get();
            stats.rejected += counters.rejected.get();
        }
        stats
    }

    /// How far the most overdue timer is behind. When nothing can be due this costs two loads; otherwise
    /// it reads every record once, in order.
    fn overdue_ns(&self, clock: &Clock) -> u64 {
        let now_ns = clock.now();
        let reached = self.ticks.reached(now_ns);
        if self.alarm.armed() > reached || self.is_empty() {
            return 0;
        }
        (1..self.slab.end())
            .filter_map(|slot| {
                let record = self.slab.at(slot);
                let word = record.word();
                if word.phase() != Phase::Pending {
                    return None;
                }
                let due = self.slab.decode(record, word.offset())?;
                // Acquire fence: as in `remaining`.
                fence(Ordering::Acquire);
                let same = record.word() == word && due.tick <= reached;
                same.then(|| now_ns.saturating_sub(due.deadline_ns))
            })
            .max()
            .unwrap_or(0)
    }
}

impl Stats {
    fn add(&mut self, other: &Stats) {
        self.pending += other.pending;
        self.high_water += other.high_water;
        self.started += other.started;
        self.fired += other.fired;
        self.ended_by_fire = self.ended_by_fire.wrapping_add(other.ended_by_fire);
        self.cancelled += other.cancelled;
        self.returned += other.returned;
        self.rejected += other.rejected;
        self.missed += other.missed;
        self.wakeups += other.wakeups;
        self.slow_callbacks += other.slow_callbacks;
        self.memory_bytes += other.memory_bytes;
        self.overdue_ns = self.overdue_ns.max(other.overdue_ns);
    }
}
