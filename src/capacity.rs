//! How a shard keeps to `max_timers`, and what it knows of how many live, without a counter that all threads write.
//!
//! Ground rules: any thread. One credit for each timer that may live is with a port, with those that a
//! port has given back, or in the pool. A start that has none at hand looks everywhere; only when all
//! that is found is nothing does it close the gate to starts and take what other ports have at hand.
//! How many live is the sum of what the ports have counted: read one after the other, so exact when all is quiet, and
//! otherwise on the safe side for whoever asks.

use crate::gate::{COLLECTING, Work};
use crate::port::Port;
use crate::shard::Shard;
use crate::status::Error;
use crate::sync::{Ordering, leaves_out_upkeep};
use std::ptr;

/// Credits that a start takes at a time.
const CREDITS: u64 = if cfg!(loom) { 2 } else { 64 };

impl Shard {
    /// Finds credits for a timer to be started or armed again, and leaves them with the port; looks
    /// everywhere before it says that the shard is full. Outside the gate: it may close the gate itself.
    #[cold]
    pub(crate) fn find_credits(&self, port: &Port) -> Result<(), Error> {
        // What other ports have risen by meanwhile they note themselves, and so does the owner in its turns.
        if port.at_peak() {
            self.note_high_water(port);
        }
        loop {
            {
                // Credits are moved inside the gate alone, so that a collector misses none that are
                // on their way.
                let _inside = self.gate.enter(&port.own.busy, Work::Start, port.is_owner())?;
                if self.take_credits(port) {
                    return Ok(());
                }
            }
            if self.gate.close(COLLECTING) {
                let found = self.collect_credits(port);
                self.gate.open(COLLECTING);
                return if found { Ok(()) } else { Err(Error::Full) };
            }
            crate::sync::yield_now();
        }
    }

    /// Takes some of the credits that no port holds: those this port's thread has given back, those of
    /// the pool, those that others have given back.
    fn take_credits(&self, port: &Port) -> bool {
        let batch = (self.max_timers / CREDITS).clamp(1, CREDITS);
        let sources = std::iter::once(port.take_freed(batch))
            .filter(|&found| found > 0)
            .chain(std::iter::once_with(|| self.take_pool(batch)))
            .chain(self.ports().map(|other| other.take_freed(batch)));
        for found in sources {
            if found > 0 {
                port.own.credits.set(port.own.credits.get() + found);
                return true;
            }
        }
        false
    }

    /// Takes the unused credits of all other ports as well, while starts are kept out. Rare: only
    /// near the limit.
    fn collect_credits(&self, port: &Port) -> bool {
        let mut found = 0;
        for other in self.ports().filter(|other| !ptr::eq(*other, port)) {
            other.own.busy.settle(true);
            found += other.own.credits.take_all();
        }
        port.own.credits.set(port.own.credits.get() + found);
        found > 0 || self.take_credits(port)
    }

    fn take_pool(&self, most: u64) -> u64 {
        let mut pool = self.pool.load(Ordering::Relaxed);
        loop {
            let count = pool.min(most);
            if count == 0 {
                return 0;
            }
            // Relaxed: nothing comes with it. Room that timers have left is found in `freed`.
            match self.pool.compare_exchange_weak(
                pool,
                pool - count,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return count,
                Err(now) => pool = now,
            }
        }
    }

    /// Gives room back for a timer that stop has handed back.
    pub(crate) fn free_to_pool(&self) {
        self.pool.fetch_add(1, Ordering::Relaxed);
    }

    /// Live timers. Exact when all is quiet.
    pub(crate) fn pending(&self) -> u64 {
        let unused: u64 =
            self.ports().map(|port| port.own.credits.get() + port.freed_left()).sum::<u64>()
                + self.pool.load(Ordering::Relaxed);
        self.max_timers.saturating_sub(unused)
    }

    fn starts(&self) -> u64 {
        self.ports().map(|port| port.own.counters.started.get()).sum()
    }

    fn ends(&self, live: bool) -> u64 {
        self.ports()
            .map(|port| port.own.counters.ended(live))
            .fold(self.returned.load(Ordering::Relaxed), u64::wrapping_add)
    }

    /// Live timers, or fewer: starts are counted before ends, so what other threads do meanwhile can
    /// only make the answer smaller.
    fn live_at_least(&self) -> u64 {
        let starts = self.starts();
        starts.saturating_sub(self.ends(true))
    }

    /// Is there no live timer? Ends are counted before starts, so a yes is certain; while other threads
    /// are at work it may be a no in vain.
    pub(crate) fn is_empty(&self) -> bool {
        let ends = self.ends(false);
        self.starts() == ends
    }

    /// Notes how many live now, and where the port's thread will have to look again. The mark is exact
    /// for one thread; between looks it may miss what several threads start at once, at most
    /// `CREDITS` each.
    #[cold]
    pub(crate) fn note_high_water(&self, port: &Port) {
        if leaves_out_upkeep() {
            return;
        }
        let live = self.live_at_least();
        let most = self.raise_high_water(live);
        port.set_peak(most - live);
    }

    /// The most timers that have been live at once.
    pub(crate) fn high_water(&self) -> u64 {
        self.raise_high_water(self.live_at_least())
    }

    /// Notes that so many live, and answers how many did at most. All threads share this line, so it is written
    /// only when there is something to write.
    fn raise_high_water(&self, live: u64) -> u64 {
        let most = self.high_water.load(Ordering::Relaxed);
        if live <= most {
            most
        } else {
            self.high_water.fetch_max(live, Ordering::Relaxed).max(live)
        }
    }

    /// Called before the end of a timer is counted, by this port's thread. Once it is, its room is there for any
    /// thread.
    #[inline]
    pub(crate) fn before_end(&self, port: &Port) {
        if port.at_peak() {
            self.note_high_water(port);
        }
    }
}
