//! W5 and W7: timers that are only there.

use crate::contender::Timers;
use crate::measure::{CHUNK, Random, process_cpu_ns, resident_bytes, sleeps};
use crate::single::fill;
use std::thread;
use std::time::Duration;

const HOUR: u64 = 3_600_000_000_000;

/// W5: what each of `live` timers adds to the resident memory, without the handle that the host
/// keeps. `make` makes a contender with so many slots.
pub fn w5<T: Timers>(live: usize, mut make: impl FnMut(usize) -> T) -> f64 {
    // One of the same kind has been there, so that what all share is not counted.
    fill(&mut make(1_000), 1_000, &mut Random::new(5));
    let before = resident_bytes();
    let mut timers = make(live);
    let handles = live * T::HANDLE;
    fill(&mut timers, live, &mut Random::new(6));
    let grown = resident_bytes() as f64 - before as f64;
    (grown - handles as f64) / live as f64
}

/// W7: `live` timers are due in an hour; CPU milliseconds and wake-ups of ten seconds. `serve`
/// sees to it that some thread serves them.
pub fn w7(mut timers: impl Timers, live: usize, serve: impl FnOnce()) -> Vec<f64> {
    for slot in 0..live {
        timers.start(slot, HOUR);
        if (slot as u64).is_multiple_of(CHUNK) {
            timers.turn();
        }
    }
    serve();
    thread::sleep(Duration::from_secs(1));
    let (cpu, slept) = (process_cpu_ns(), sleeps());
    thread::sleep(Duration::from_secs(10));
    let (cpu, slept) = (process_cpu_ns() - cpu, sleeps() - slept);
    // This thread's own sleep, and the reading of the figures, are in both.
    vec![cpu as f64 / 1e6, slept as f64 - 1.0]
}
