//! How late this machine wakes any thread at all: on each shard's CPU a thread sleeps a millisecond
//! at a time and notes by how much it overslept. No library can be on time where this is not, so
//! the report shows it beside the lateness. The verdict does not ask it.

use crate::clock::{self, MS};
use crate::lateness;
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

pub struct Witness {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Histogram<u64>>>,
}

impl Witness {
    /// Shards go to the CPUs that the process may use, one after the other, and so do these.
    pub fn call(shards: usize) -> Witness {
        let over = Arc::new(AtomicBool::new(false));
        let cpus = core_affinity::get_core_ids().unwrap_or_default();
        let watch = |cpu| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                core_affinity::set_for_current(cpu);
                let mut overslept = lateness::empty();
                while !over.load(Relaxed) {
                    let instant = clock::now() + MS;
                    clock::sleep_until(instant);
                    overslept.saturating_record(clock::now() - instant);
                }
                overslept
            })
        };
        let threads = cpus.into_iter().take(shards).map(watch).collect();
        Witness { over, threads }
    }

    /// How much all of them overslept.
    pub fn hear(self) -> Histogram<u64> {
        self.over.store(true, Relaxed);
        let mut all = lateness::empty();
        for thread in self.threads {
            all.add(thread.join().expect("a witness does not panic")).expect("the same bounds");
        }
        all
    }
}
