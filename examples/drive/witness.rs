//! How late this machine wakes any thread at all: on each shard's CPU a thread sleeps a millisecond
//! at a time and notes by how much it overslept. No library can be on time where this is not, so
//! the report shows it beside the lateness. The verdict does not ask it, except for a soak's drift.

use crate::clock::{self, MS};
use crate::lateness::{self, Lateness};
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

pub struct Witness {
    over: Arc<AtomicBool>,
    threads: Vec<(JoinHandle<()>, Arc<Lateness>)>,
    all: Histogram<u64>,
}

impl Witness {
    /// Shards go to the CPUs that the process may use, one after the other, and so do these.
    pub fn call(shards: usize) -> Witness {
        let over = Arc::new(AtomicBool::new(false));
        let cpus = core_affinity::get_core_ids().unwrap_or_default();
        let watch = |cpu| {
            let over = Arc::clone(&over);
            let overslept = Arc::new(Lateness::new());
            let noted = Arc::clone(&overslept);
            let thread = thread::spawn(move || {
                core_affinity::set_for_current(cpu);
                while !over.load(Relaxed) {
                    let instant = clock::now() + MS;
                    clock::sleep_until(instant);
                    noted.record(clock::now() - instant);
                }
            });
            (thread, overslept)
        };
        let threads = cpus.into_iter().take(shards).map(watch).collect();
        Witness { over, threads, all: lateness::empty() }
    }

    /// How much all of them have overslept until now.
    pub fn so_far(&mut self) -> &Histogram<u64> {
        for (_, overslept) in &self.threads {
            overslept.take(&mut self.all);
        }
        &self.all
    }

    /// How much all of them overslept.
    pub fn hear(mut self) -> Histogram<u64> {
        self.over.store(true, Relaxed);
        for (thread, overslept) in self.threads {
            thread.join().expect("a witness does not panic");
            overslept.take(&mut self.all);
        }
        self.all
    }
}
