//! The numbers of a service: sums over its ports and owners. A read stops nobody and writes no line that
//! a hot path uses.

use crate::clock::Clock;
use crate::engine::Engine;
use crate::histogram::Histogram;
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::{Ordering, fence};
use crate::sys::clock::monotonic_ns;
use crate::tally::{Number, Woken};
use crate::types::{Details, SHARD_ANY, Stats};
use crate::word::Phase;

impl Engine {
    /// The numbers of one shard, or of all ([`SHARD_ANY`]).
    ///
    /// # Errors
    /// `Invalid`, `Forked`.
    pub fn stats(&self, shard: u32) -> Result<Stats, Error> {
        let shards = self.counted(shard)?;
        let mut sum = Stats::default();
        for shard in shards {
            sum.add(&shard.stats(self.clock()));
        }
        let lateness = Histogram::points(shards.iter().map(|shard| &shard.tally.lateness));
        let callback = Histogram::points(shards.iter().map(|shard| &shard.tally.callback_time));
        Ok(Stats {
            lateness_p50_ns: lateness.p50,
            lateness_p99_ns: lateness.p99,
            lateness_p999_ns: lateness.p999,
            lateness_max_ns: lateness.max,
            callback_p50_ns: callback.p50,
            callback_p99_ns: callback.p99,
            callback_p999_ns: callback.p999,
            callback_max_ns: callback.max,
            ..sum
        })
    }

    /// What one shard, or all together ([`SHARD_ANY`]), look like inside.
    ///
    /// # Errors
    /// `Invalid`, `Forked`.
    pub fn details(&self, shard: u32) -> Result<Details, Error> {
        let shards = self.counted(shard)?;
        let mut sum = Details::default();
        for shard in shards {
            sum.add(&shard.details());
        }
        let turn = Histogram::points(shards.iter().map(|shard| &shard.tally.turn_time));
        Ok(Details {
            turn_p50_ns: turn.p50,
            turn_p99_ns: turn.p99,
            turn_p999_ns: turn.p999,
            turn_max_ns: turn.max,
            ..sum
        })
    }

    /// The shards that a read is about. Whoever reads looks after stuck callbacks, too.
    fn counted(&self, shard: u32) -> Result<&[Shard], Error> {
        self.alive()?;
        let shards = match shard {
            SHARD_ANY => self.shards(),
            index => std::slice::from_ref(self.shard(index)?),
        };
        self.tell_stuck();
        Ok(shards)
    }
}

impl Shard {
    fn stats(&self, clock: &Clock) -> Stats {
        let mut stats = Stats {
            pending: self.pending(),
            high_water: self.high_water(),
            returned: self.returned.load(Ordering::Relaxed),
            wakeups: self.tally.woken.iter().map(Number::get).sum(),
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
            stats.ended_by_fire = stats.ended_by_fire.wrapping_add(counters.fired_for_good());
            stats.missed = stats.missed.wrapping_add(counters.missed.get());
            stats.rejected += counters.rejected.get();
        }
        stats
    }

    fn details(&self) -> Details {
        let tally = &self.tally;
        let (reminders, pending) = (tally.reminders.get(), self.pending());
        let retired: u64 = self.ports().map(|port| port.own.retired.get()).sum();
        // In this order: what is given back or retired is never more than what was handed out by then.
        let returned = self.slab.records.returned();
        let allocated = (u64::from(self.slab.end()) - 1).saturating_sub(returned);
        let timer = || self.running.load(Ordering::Relaxed);
        let since = tally.running_since(timer).filter(|_| self.slow_callback_ns != 0);
        Details {
            reminders_live: reminders.min(pending),
            reminders_dead: reminders.saturating_sub(pending),
            buckets_occupied: std::array::from_fn(|level| tally.occupied[level].get()),
            bucket_longest: tally.longest.get(),
            turns: tally.turns.get(),
            inbox_depth: self.ports().map(|port| port.inbox.waiting()).sum(),
            wakeups_deadline: tally.woken[Woken::Deadline as usize].get(),
            wakeups_earlier: tally.woken[Woken::Earlier as usize].get(),
            wakeups_pressure: tally.woken[Woken::Pressure as usize].get(),
            slots_allocated: allocated,
            slots_cached: allocated.saturating_sub(pending + retired),
            slots_retired: retired,
            callback_running_ns: since
                .map_or(0, |(_, since_ns)| monotonic_ns().saturating_sub(since_ns)),
            ..Details::default()
        }
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
        self.missed = self.missed.wrapping_add(other.missed);
        self.wakeups += other.wakeups;
        self.slow_callbacks += other.slow_callbacks;
        self.memory_bytes += other.memory_bytes;
        self.overdue_ns = self.overdue_ns.max(other.overdue_ns);
    }
}

impl Details {
    fn add(&mut self, other: &Details) {
        self.reminders_live += other.reminders_live;
        self.reminders_dead += other.reminders_dead;
        for (sum, more) in self.buckets_occupied.iter_mut().zip(other.buckets_occupied) {
            *sum += more;
        }
        self.bucket_longest = self.bucket_longest.max(other.bucket_longest);
        self.turns += other.turns;
        self.inbox_depth += other.inbox_depth;
        self.wakeups_deadline += other.wakeups_deadline;
        self.wakeups_earlier += other.wakeups_earlier;
        self.wakeups_pressure += other.wakeups_pressure;
        self.slots_allocated += other.slots_allocated;
        self.slots_cached += other.slots_cached;
        self.slots_retired += other.slots_retired;
        self.callback_running_ns = self.callback_running_ns.max(other.callback_running_ns);
    }
}

const _: () = assert!(crate::wheel::LEVELS == 11);

/// Numbers of which no two are the same, for tests of what is told of them.
#[cfg(all(test, not(loom)))]
pub(crate) fn numbered() -> (Stats, Details) {
    // Small enough that times and sizes are told in their least units.
    let mut last = 100;
    let mut next = || {
        last += 1;
        last
    };
    let stats = Stats {
        pending: next(),
        high_water: next(),
        started: next(),
        fired: next(),
        ended_by_fire: next(),
        cancelled: next(),
        returned: next(),
        rejected: next(),
        missed: next(),
        // More than those of known reason.
        wakeups: 10_000,
        slow_callbacks: next(),
        memory_bytes: next(),
        overdue_ns: next(),
        lateness_p50_ns: next(),
        lateness_p99_ns: next(),
        lateness_p999_ns: next(),
        lateness_max_ns: next(),
        callback_p50_ns: next(),
        callback_p99_ns: next(),
        callback_p999_ns: next(),
        callback_max_ns: next(),
    };
    let details = Details {
        reminders_live: next(),
        reminders_dead: next(),
        buckets_occupied: std::array::from_fn(|_| next()),
        bucket_longest: next(),
        turns: next(),
        turn_p50_ns: next(),
        turn_p99_ns: next(),
        turn_p999_ns: next(),
        turn_max_ns: next(),
        inbox_depth: next(),
        wakeups_deadline: next(),
        wakeups_earlier: next(),
        wakeups_pressure: next(),
        // More than the cached and retired ones.
        slots_allocated: 20_000,
        slots_cached: next(),
        slots_retired: next(),
        callback_running_ns: next(),
    };
    (stats, details)
}
